# The live filter on a streaming standby: every replayed key is contained, while
# inserts, growth and builds of all kinds are replayed, and after promotion.
#
# wal_consistency_checking makes the standby compare each page that it has
# replayed with the one that the primary had, and end where they differ.

use strict;
use warnings;

use FindBin;
use lib $FindBin::RealBin;
use LiveFilter;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep time);

my $dir = PostgreSQL::Test::Utils::tempdir;
my $primary = new_node('primary', <<'EOF', allows_streaming => 1);
shared_buffers = 4MB
max_wal_size = 1GB
wal_keep_size = 1GB
wal_consistency_checking = 'all'
max_standby_streaming_delay = -1
min_parallel_table_scan_size = 0
restart_after_crash = off
EOF
$primary->start;
create_extension($primary);
$primary->safe_psql('postgres', <<'EOF');
CREATE TABLE codes (code text, n int);
CREATE INDEX codes_index ON codes USING bloomfilter (code) WITH (capacity = 10);
CREATE INDEX other_index ON codes USING bloomfilter (n, code) WITH (capacity = 1000, hash = blake2b);
CREATE TABLE rebuilt (code text);
CREATE INDEX rebuilt_index ON rebuilt USING bloomfilter (code) WITH (capacity = 10);
CREATE UNLOGGED TABLE unlogged (code text);
CREATE INDEX unlogged_index ON unlogged USING bloomfilter (code) WITH (capacity = 10);
INSERT INTO unlogged VALUES ('lost');
EOF
$primary->backup('start');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'start', has_streaming => 1);
$standby->start;

# ---------------------------------------------------------------------------
# Probes while it replays
# ---------------------------------------------------------------------------
my $rounds = $slow ? 60 : 6;
my $load = '';
for my $round (1 .. $rounds)
{
	$load .= join('',
		map { "INSERT INTO codes SELECT '$round-$_-' || i, i FROM generate_series(1, 60) i;\n"
		  } 1 .. 20);
	$load .= "INSERT INTO rebuilt SELECT '$round-' || i FROM generate_series(1, 500) i;\n";
	$load .= "BEGIN;\nINSERT INTO codes SELECT 'undone-$round-' || i, i FROM generate_series(1, 500) i;\nROLLBACK;\n";
	$load .= ("REINDEX INDEX rebuilt_index;\n",
		"CREATE INDEX built ON codes USING bloomfilter (code);\nDROP INDEX built;\n",
		"CREATE INDEX CONCURRENTLY built ON codes USING bloomfilter (n) WITH (capacity = 1);\nDROP INDEX CONCURRENTLY built;\n",
		"VACUUM rebuilt;\n",
		"REINDEX INDEX CONCURRENTLY rebuilt_index;\n",
		"CHECKPOINT;\n")[ $round % 6 ];
}

# Each row that a snapshot of the standby sees was replayed before it
my $probe = <<'EOF';
SELECT 'probed ' || count(*) || ' missing ' || count(*) FILTER (WHERE NOT bloom_index_contains('codes_index', code)
	OR NOT bloom_index_contains('other_index', ROW(n, code))) FROM codes;
SELECT bloom_index_check('codes_index', true);
EOF
my $writer = start_psql($primary, $load, "$dir/load");
my $prober = start_psql($standby, $probe x 5000 , "$dir/probes");

# This one asks again and again in one transaction, with one snapshot and one
# call site, of an index that grows meanwhile
my $long = start_psql($standby, <<'EOF', "$dir/long");
BEGIN ISOLATION LEVEL REPEATABLE READ;
DO $$
BEGIN
	FOR i IN 1 .. 20 LOOP
		PERFORM pg_sleep(0.03);
		IF EXISTS (SELECT FROM codes WHERE NOT bloom_index_contains('codes_index', code)) THEN
			RAISE 'a key is missing';
		END IF;
	END LOOP;
END $$;
COMMIT;
EOF

is(end_psql($writer), 0, 'the primary works');
note slurp_file("$dir/load.err") if -s "$dir/load.err";
is(end_psql($long), 0, 'probes in a long transaction');
$primary->wait_for_catchup($standby);
kill('TERM', $prober);
end_psql($prober);
is(slurp_file("$dir/probes.err"), '', 'no probe failed');
my @probes = split /\n/, slurp_file("$dir/probes");
my @seen = map { /probed (\d+)/ } @probes;
cmp_ok(scalar(grep { $_ > 0 && $_ < 1200 * $rounds } @seen),
	'>', 2, 'probes while keys were replayed: ' . @seen);
is_deeply([ grep { /missing/ && !/missing 0$/ } @probes ], [],
	'every replayed key is contained');

# ---------------------------------------------------------------------------
# The same on both, and what a standby cannot do
# ---------------------------------------------------------------------------
for my $index ('codes_index', 'other_index', 'rebuilt_index')
{
	my $query = "SELECT md5(bloom_index_filter('$index')::text), layers, bits_set FROM bloom_index_info('$index')";

	is($standby->safe_psql('postgres', $query),
		$primary->safe_psql('postgres', $query),
		"$index has the same bits on both");
	is(checks_fail($standby, $index), '', "$index is sound on the standby");
}
cmp_ok( $standby->safe_psql('postgres',
		"SELECT layers FROM bloom_index_info('codes_index')"),
	'>', 5, 'it has grown');
my (undef, undef, $err) = $standby->psql('postgres',
	"SELECT bloom_index_contains('unlogged_index', 'lost')");
like($err, qr/cannot access temporary or unlogged relations during recovery/,
	'an unlogged index has no answer on a standby');

# Were the pages compared at all?  Generic records are what inserts write; a
# page that is there only to be compared is "for WAL verification".
my $start = $primary->safe_psql('postgres', 'SELECT pg_current_wal_insert_lsn()');
$primary->safe_psql('postgres',
	"INSERT INTO codes SELECT 'dumped-' || i, i FROM generate_series(1, 1000) i");
my ($wal) = run_command([
	$primary->installed_command('pg_waldump'), '--bkp-details',
	'--rmgr=Generic', '--path', $primary->data_dir . '/pg_wal',
	'--start', $start, '--end',
	$primary->safe_psql('postgres', 'SELECT pg_current_wal_flush_lsn()') ]);
my $verified = () = $wal =~ /FPW for WAL verification/gi;
cmp_ok($verified, '>', 1000, 'replayed pages were compared');
$primary->wait_for_catchup($standby);
unlike(slurp_file($standby->logfile), qr/inconsistent page found/,
	'and found to be the same');

# ---------------------------------------------------------------------------
# Promotion
# ---------------------------------------------------------------------------
$writer = start_psql($primary,
	join('', map { "INSERT INTO codes VALUES ('last-$_', $_);\n" } 1 .. 100000),
	"$dir/last");
usleep(200_000);
kill_all($primary);
end_psql($writer);
$standby->promote;
for my $index ('codes_index', 'other_index', 'rebuilt_index')
{
	is(checks_fail($standby, $index), '', "$index after promotion");
}
$standby->safe_psql('postgres',
	"INSERT INTO codes SELECT 'new-' || i, i FROM generate_series(1, 20000) i; INSERT INTO unlogged VALUES ('new')"
);
is($standby->safe_psql('postgres', <<'EOF'), '0|f|t', 'the new primary adds and grows');
SELECT (SELECT count(*) FROM codes WHERE NOT bloom_index_contains('codes_index', code)),
	bloom_index_contains('unlogged_index', 'lost'), bloom_index_contains('unlogged_index', 'new')
EOF
is(checks_fail($standby, 'codes_index'), '', 'and is sound');
$standby->stop('fast');
done_testing();
