# Join filters beside other libraries that hook into the planner and the
# executor, however they are loaded, and for users without privileges.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $query = 'SELECT count(*) FROM fact f JOIN dim d ON f.k = d.k WHERE d.keep';
my $node = PostgreSQL::Test::Cluster->new('hooks');
$node->init;
$node->append_conf('postgresql.conf', <<SQL);
max_worker_processes = 8
auto_explain.log_min_duration = 0
auto_explain.log_analyze = on
pg_stat_statements.track_planning = on
SQL
$node->start;
$node->safe_psql('postgres', <<SQL);
CREATE EXTENSION pg_stat_statements;
CREATE TABLE fact AS SELECT i AS id, i % 1000 AS k FROM generate_series(1, 50000) i;
CREATE TABLE dim AS SELECT i AS k, i % 50 = 0 AS keep FROM generate_series(0, 999) i;
ANALYZE fact, dim;
CREATE ROLE reader LOGIN;
GRANT SELECT ON fact, dim TO reader;
SQL
my $expected = $node->safe_psql('postgres', $query);

# before and after the others, and alone
my @libraries = (
	'pg_stat_statements, auto_explain, bloomfilter',
	'bloomfilter, auto_explain, pg_stat_statements');
for my $libraries (@libraries)
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'");
	$node->restart;
	$node->safe_psql('postgres', 'SELECT pg_stat_statements_reset()');
	my $offset = -s $node->logfile;
	for my $workers (0, 2)
	{
		my $result = $node->safe_psql('postgres', <<SQL);
SET bloomfilter.join_filter = on;
SET max_parallel_workers_per_gather = $workers;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
$query;
SQL
		is($result, $expected, "$libraries: $workers workers: the result");
	}
	my $log = slurp_file($node->logfile, $offset);
	my @probes = $log =~ /Custom Scan \(BloomProbe\)/g;
	is(scalar @probes, 2, "$libraries: auto_explain logs the probes");
	my @counts = $log =~ /Bloom Filter: 1 on \(f\.k\)  Probed: (\d+)  Dropped: (\d+)/g;
	is($counts[0] - $counts[1], 1000, "$libraries: what passed a serial probe");
	is($counts[2], 50000, "$libraries: every row was probed by one of the participants");
	is($node->safe_psql('postgres', "SELECT calls, plans, rows FROM pg_stat_statements WHERE query = '$query'"),
		'2|2|2', "$libraries: pg_stat_statements counts");
}

# loaded by the session, as a user without privileges
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;
$node->safe_psql('postgres', <<SQL);
ALTER DATABASE postgres SET session_preload_libraries = 'bloomfilter';
ALTER ROLE reader SET bloomfilter.join_filter = on;
SQL
my $plan = $node->safe_psql('postgres', "EXPLAIN $query", extra_params => [ '-U', 'reader' ]);
like($plan, qr/BloomProbe/, 'session_preload_libraries and ALTER ROLE');
is($node->safe_psql('postgres', $query, extra_params => [ '-U', 'reader' ]),
	$expected, 'the result there');
unlike($node->safe_psql('postgres', "EXPLAIN $query"), qr/BloomProbe/, 'off for the others');

# the setting may come before the library
$node->safe_psql('postgres', 'ALTER DATABASE postgres RESET session_preload_libraries');
like($node->safe_psql('postgres',
		"SET bloomfilter.join_filter = on; LOAD 'bloomfilter'; EXPLAIN $query"),
	qr/BloomProbe/, 'set before the library is loaded');
my ($status, $out, $err) = $node->psql('postgres',
	"LOAD 'bloomfilter'; SET bloomfilter.join_filters = on");
like($err, qr/invalid configuration parameter name "bloomfilter.join_filters"/,
	'a misspelt setting');

# a worker may use what the leader loaded only for itself; a failed query
# leaves nothing behind
($status, $out, $err) = $node->psql('postgres', <<SQL, on_error_stop => 0);
LOAD 'bloomfilter';
SET bloomfilter.join_filter = on;
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT count(*) FROM fact f JOIN dim d ON f.k = d.k WHERE d.keep AND 1 / (f.id - 50000) < 0;
SELECT count(*) FROM fact f JOIN dim d ON f.k = d.k WHERE d.keep;
SQL
like($err, qr/division by zero/, 'an error in a parallel query');
is($out, $expected, 'and the query after it');

$node->stop;
done_testing();
