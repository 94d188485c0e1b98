# A filter that moves from one server to another has the same bytes and answers
# the same: pg_dump and pg_restore, COPY, logical replication, a standby.
use strict;
use warnings FATAL => 'all';

use FindBin;
use lib $FindBin::RealBin;

use BloomMove qw(set_up fingerprint answers);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $source = PostgreSQL::Test::Cluster->new('source');
$source->init(allows_streaming => 'logical');
$source->append_conf('postgresql.conf', "fsync = off\n");
$source->start;
set_up($source, 'postgres');
my $bytes = fingerprint($source, 'postgres');
my $answers = answers($source, 'postgres');
like($bytes, qr/^filters\|blocked blake2b 0\|[0-9a-f]{32}$/m, 'there are filters');
like($answers, qr/^cuckoo xxh3 2\|text\|3000\|/m, 'and they know their elements');

my $target = PostgreSQL::Test::Cluster->new('target');
$target->init;
$target->append_conf('postgresql.conf', "fsync = off\n");
$target->start;

# ---------------------------------------------------------------------------
# Dump and restore
# ---------------------------------------------------------------------------
my $dir = $source->backup_dir;
mkdir $dir;
my %restore = (
	plain => [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f' ],
	custom => [ 'pg_restore', '--exit-on-error' ],
	directory => [ 'pg_restore', '--exit-on-error', '-j', '2' ],
	inserts => [ 'psql', '-X', '-q', '-v', 'ON_ERROR_STOP=1', '-f' ]);
for my $format (sort keys %restore)
{
	my $file = "$dir/dump.$format";
	my @options = $format eq 'inserts' ? ('--inserts') : ("--format=$format");

	$source->command_ok([ 'pg_dump', '-f', $file, @options, 'postgres' ],
		"pg_dump, $format");
	$target->safe_psql('postgres', "CREATE DATABASE $format");
	my @command = @{ $restore{$format} };
	splice(@command, 1, 0, '-d', $format);
	$target->command_ok([ @command, $file ], "restore, $format");
	is(fingerprint($target, $format), $bytes, "$format: the same bytes");
	is(answers($target, $format), $answers, "$format: the same answers");
}
$target->safe_psql('plain', "INSERT INTO keys VALUES (0, 'after')");
is( $target->safe_psql('plain', "SELECT filter \@> 'after' FROM filters WHERE name = 'live'"),
	't', 'a restored trigger keeps its filter up to date');
$target->safe_psql('plain', 'REFRESH MATERIALIZED VIEW by_first');

# ---------------------------------------------------------------------------
# COPY, both formats, both ways
# ---------------------------------------------------------------------------
$target->safe_psql('postgres', <<'EOS');
CREATE EXTENSION bloomfilter;
CREATE TABLE filters (name text PRIMARY KEY, filter bloomfilter NOT NULL);
EOS
for my $format (qw(text csv binary))
{
	my $file = "$dir/filters.$format";

	$source->safe_psql('postgres', "COPY filters TO '$file' (FORMAT $format)");
	$target->safe_psql('postgres', "TRUNCATE filters; COPY filters FROM '$file' (FORMAT $format)");
	$target->safe_psql('postgres', "COPY filters TO '$file' (FORMAT $format)");
	my $differ = $source->safe_psql('postgres', <<EOS);
CREATE TABLE again (LIKE filters);
COPY again FROM '$file' (FORMAT $format);
SELECT count(*), count(*) FILTER (WHERE a.filter IS DISTINCT FROM f.filter) FROM filters f LEFT JOIN again a USING (name);
DROP TABLE again;
EOS
	is($differ, '22|0', "COPY there and back, $format");
}

# ---------------------------------------------------------------------------
# Logical replication, changes in text and in binary
# ---------------------------------------------------------------------------
$source->safe_psql('postgres', 'CREATE PUBLICATION p FOR TABLE filters');
for my $binary (qw(false true))
{
	$target->safe_psql('postgres', 'TRUNCATE filters');
	$target->safe_psql('postgres',
		"CREATE SUBSCRIPTION s CONNECTION '"
		  . $source->connstr
		  . " dbname=postgres' PUBLICATION p WITH (binary = $binary)");
	$target->wait_for_subscription_sync($source, 's');
	$source->safe_psql('postgres', <<'EOS');
UPDATE filters SET filter = bloom_add(filter, 'SP-1'::text) WHERE name ~ '^(standard|counting)';
UPDATE filters SET filter = bloom_add(filter, 7) WHERE name = 'integers';
INSERT INTO filters VALUES ('fresh', bloom_add(bloomfilter(100000), 'SP-1'::text));
EOS
	$source->wait_for_catchup('s');
	my $sql = 'SELECT name, md5(filter::bytea) FROM filters ORDER BY 1';
	is( $target->safe_psql('postgres', $sql),
		$source->safe_psql('postgres', $sql),
		"logical replication, binary = $binary");
	is($target->safe_psql('postgres', 'SELECT count(*) FROM filters'), '23', 'all of them');
	$target->safe_psql('postgres', 'DROP SUBSCRIPTION s');
	$source->safe_psql('postgres', "DELETE FROM filters WHERE name = 'fresh'");
}

# ---------------------------------------------------------------------------
# A standby
# ---------------------------------------------------------------------------
$source->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($source, 'base', has_streaming => 1);
$standby->start;
$source->safe_psql('postgres', <<'EOS');
INSERT INTO keys SELECT i, 'later-' || i FROM generate_series(1, 1000) i;
UPDATE filters SET filter = filter | (SELECT bloom_agg(code, filter) FROM keys)
	WHERE name ~ '^(blocked|standard)' AND name ~ '0$';
EOS
$source->wait_for_catchup($standby, 'replay', $source->lsn('insert'));
is(fingerprint($standby, 'postgres'), fingerprint($source, 'postgres'), 'standby: the same bytes');
is(answers($standby, 'postgres'), answers($source, 'postgres'), 'standby: the same answers');
is( $standby->safe_psql('postgres', <<'EOS'), '1000', 'standby: what came later');
SELECT count(*) FROM generate_series(1, 1000) i
WHERE (SELECT filter FROM filters WHERE name = 'live') @> ('later-' || i)
EOS
$source->stop('immediate');
$standby->promote;
$standby->safe_psql('postgres', "INSERT INTO keys VALUES (0, 'promoted')");
is( $standby->safe_psql('postgres', "SELECT filter \@> 'promoted' FROM filters WHERE name = 'live'"),
	't', 'promoted: it takes new elements');

$standby->stop;
$target->stop;
done_testing();
