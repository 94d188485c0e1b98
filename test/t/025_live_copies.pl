# The live filter where rows come by other ways than INSERT: pg_dump and
# restore, and logical replication.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LiveFilter;
use PostgreSQL::Test::Utils;
use Test::More;

my $dir = PostgreSQL::Test::Utils::tempdir;
my $node = new_node('copies', '', allows_streaming => 'logical');
$node->start;
create_extension($node);
$node->safe_psql('postgres', <<'EOF');
CREATE SCHEMA app;
CREATE TABLE app.codes (id int PRIMARY KEY, code text, tenant int);
CREATE INDEX codes_index ON app.codes USING bloomfilter (code) WITH (capacity = 100, fpr = 0.001, expansion = 4, hash = blake2b);
CREATE INDEX pair_index ON app.codes USING bloomfilter (tenant, lower(code)) WHERE tenant > 1;
INSERT INTO app.codes SELECT i, 'Code-' || i, i % 5 FROM generate_series(1, 5000) i;
CREATE TABLE app.parts (code text) PARTITION BY HASH (code);
CREATE TABLE app.part_0 PARTITION OF app.parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE app.part_1 PARTITION OF app.parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE INDEX parts_index ON app.parts USING bloomfilter (code) WITH (capacity = 10);
INSERT INTO app.parts SELECT 'part-' || i FROM generate_series(1, 1000) i;
CREATE MATERIALIZED VIEW app.view AS SELECT code FROM app.codes WHERE id <= 100;
CREATE INDEX view_index ON app.view USING bloomfilter (code);
EOF

# How many keys each of them lacks
my $missing = <<'EOF';
SELECT (SELECT count(*) FROM app.codes WHERE NOT bloom_index_contains('app.codes_index', code)),
	(SELECT count(*) FROM app.codes WHERE tenant > 1 AND NOT bloom_index_contains('app.pair_index', ROW(tenant, lower(code)))),
	(SELECT count(*) FROM app.parts WHERE NOT bloom_index_contains('app.parts_index', code)),
	(SELECT count(*) FROM app.view WHERE NOT bloom_index_contains('app.view_index', code)),
	(SELECT count(*) FROM app.codes), (SELECT count(*) FROM app.parts), (SELECT count(*) FROM app.view)
EOF
my $definitions = "SELECT indexdef FROM pg_indexes WHERE schemaname = 'app' ORDER BY 1";
my $expected = '0|0|0|0|5000|1000|100';
is($node->safe_psql('postgres', $missing), $expected, 'at home');

# ---------------------------------------------------------------------------
# pg_dump
# ---------------------------------------------------------------------------
foreach my $how ([ 'plain', 'psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-f' ],
	[ 'custom', 'pg_restore', '--exit-on-error', '-j', '2', '-d', 'restored_custom' ])
{
	my ($format, @restore) = @$how;
	my $database = "restored_$format";
	my $file = "$dir/$format";

	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->command_ok([ 'pg_dump', '-F', $format, '-f', $file, 'postgres' ], "pg_dump, $format");
	local $ENV{PGDATABASE} = $database;
	$node->command_ok([ @restore, $file ], 'and restore');
	is($node->safe_psql($database, $missing), $expected, "$format: nothing is missing");
	is( $node->safe_psql($database, $definitions),
		$node->safe_psql('postgres', $definitions), "$format: the same definitions");
	is($node->safe_psql($database, <<'EOF'), 't', "$format: and sound");
SELECT bool_and(bloom_index_check(indexrelid, true) IS NOT NULL)
FROM pg_index JOIN pg_class c ON c.oid = indexrelid JOIN pg_am a ON a.oid = relam WHERE amname = 'bloomfilter' AND c.relkind = 'i'
EOF
}

# The data alone, into tables whose indexes are there, by INSERT and by COPY
foreach my $option ('--inserts', '--load-via-partition-root')
{
	$node->safe_psql('restored_plain', 'TRUNCATE app.codes, app.parts');
	$node->command_ok([ 'pg_dump', '--data-only', $option, '-f', "$dir/data", 'postgres' ], "pg_dump --data-only $option");
	local $ENV{PGDATABASE} = 'restored_plain';
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', "$dir/data" ], 'and load');
	is($node->safe_psql('restored_plain', $missing), $expected, 'nothing is missing');
}

# ---------------------------------------------------------------------------
# Logical replication: a subscriber's index gets what the apply worker and the
# workers of the first copy write
# ---------------------------------------------------------------------------
$node->safe_psql('postgres', <<'EOF');
CREATE PUBLICATION all_codes FOR TABLE app.codes;
SELECT pg_create_logical_replication_slot('codes_slot', 'pgoutput');
EOF
$node->safe_psql('restored_custom', 'TRUNCATE app.codes');
my $connection = 'host=' . $node->host . ' port=' . $node->port . ' dbname=postgres';
$node->safe_psql('restored_custom',
	"CREATE SUBSCRIPTION codes_subscription CONNECTION '$connection' PUBLICATION all_codes WITH (create_slot = false, slot_name = codes_slot)");
$node->poll_query_until('restored_custom',
	"SELECT bool_and(srsubstate IN ('r', 's')) AND count(*) = 1 FROM pg_subscription_rel")
  or die 'no first copy';
$node->safe_psql('postgres', <<'EOF');
INSERT INTO app.codes SELECT i, 'More-' || i, i % 5 FROM generate_series(5001, 8000) i;
UPDATE app.codes SET code = 'Changed-' || id WHERE id % 10 = 0;
DELETE FROM app.codes WHERE id % 10 = 1;
BEGIN; INSERT INTO app.codes VALUES (9000, 'undone', 2); ROLLBACK;
INSERT INTO app.codes VALUES (9001, 'last', 2);
EOF
$node->poll_query_until('restored_custom',
	'SELECT EXISTS (SELECT FROM app.codes WHERE id = 9001)')
  or die 'not replicated';
is($node->safe_psql('restored_custom', $missing), '0|0|0|0|7201|1000|100',
	'a subscriber misses nothing');
is($node->safe_psql('restored_custom', <<'EOF'), 't|f|t|t', 'and is sound');
SELECT bloom_index_contains('app.codes_index', 'Changed-10'), bloom_index_contains('app.codes_index', 'undone'),
	bloom_index_check('app.codes_index', true) IS NOT NULL, bloom_index_check('app.pair_index', true) IS NOT NULL
EOF
$node->safe_psql('restored_custom', 'DROP SUBSCRIPTION codes_subscription');
$node->stop('fast');
done_testing();
