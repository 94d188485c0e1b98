# Filters across servers: postgres_fdw between three clusters on loopback.
use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# ---------------------------------------------------------------------------
# Three clusters, over TCP
# ---------------------------------------------------------------------------

my %node;
foreach my $name ('home', 'east', 'west')
{
	$node{$name} = PostgreSQL::Test::Cluster->new($name);
	$node{$name}->init;
	$node{$name}->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\ntimezone = 'UTC'\n");
	$node{$name}->start;
	$node{$name}->safe_psql('postgres', 'CREATE EXTENSION bloomfilter');
}
my $home = $node{home};

sub ask
{
	my ($sql) = @_;
	return $home->safe_psql('postgres', $sql);
}

# keys of each kind, the same on both remote servers
my $types = q{
	CREATE TYPE mood AS ENUM ('sad', 'ok', 'happy');
	CREATE DOMAIN code AS text;
};
my $columns = q{id int, c_int2 int2, c_int8 int8, c_text text, c_varchar varchar(20), c_bpchar char(8),
	c_name name, c_uuid uuid, c_timestamptz timestamptz, c_timestamp timestamp, c_date date, c_time time,
	c_numeric numeric, c_float8 float8, c_float4 float4, c_bytea bytea, c_inet inet, c_oid oid,
	c_array int[], c_jsonb jsonb, c_collated text COLLATE "C", c_null int};
my $keys = q{SELECT i, i::int2, i, 'text ' || i, 'v' || i, 'b' || i, 'n' || i, md5(i::text)::uuid,
	timestamptz '2024-01-01 UTC' + i * interval '1 minute', timestamp '2024-01-01' + i * interval '1 minute',
	date '2024-01-01' + i, time '00:00' + i * interval '1 second', i / 7.0, i / 7.0::float8, i / 8.0::float4,
	decode(md5(i::text), 'hex'), inet '10.0.0.0' + i, i::oid, ARRAY[i, i + 1], jsonb_build_object('i', i),
	'c' || i, CASE WHEN i % 2 = 0 THEN i END};

foreach my $name ('east', 'west')
{
	$node{$name}->safe_psql('postgres', $types . qq{
		CREATE TABLE keys ($columns);
		INSERT INTO keys $keys FROM generate_series(1, 10000) i;
		CREATE TABLE other (id int, feeling mood, label code, tenant int);
		INSERT INTO other SELECT i, (enum_range(NULL::mood))[1 + i % 3], 'label ' || i, i % 10 FROM generate_series(1, 1000) i;
		CREATE VIEW other_as_text AS SELECT id, feeling::text, label::text, tenant FROM other;
		CREATE TABLE part_0 AS SELECT i AS id, i % 1000 AS customer, 'note ' || i AS note FROM generate_series(1, 20000) i WHERE i % 1000 % 4 = 0;
		CREATE TABLE part_1 AS SELECT i AS id, i % 1000 AS customer, 'note ' || i AS note FROM generate_series(1, 20000) i WHERE i % 1000 % 4 = 1;
		CREATE TABLE part_2 AS SELECT i AS id, i % 1000 AS customer, 'note ' || i AS note FROM generate_series(1, 20000) i WHERE i % 1000 % 4 = 2;
		CREATE TABLE part_3 AS SELECT i AS id, i % 1000 AS customer, 'note ' || i AS note FROM generate_series(1, 20000) i WHERE i % 1000 % 4 = 3;
		CREATE TABLE nothing (id int);
		ANALYZE;
	});
}

ask(q{CREATE EXTENSION postgres_fdw; CREATE EXTENSION dblink;} . $types);
foreach my $name ('east', 'west')
{
	my $port = $node{$name}->port;

	# fetch_size is small, so that a scan takes many fetches
	ask(qq{
		CREATE SERVER $name FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '$port', dbname 'postgres',
			extensions 'bloomfilter', async_capable 'true', fetch_size '50', application_name 'probe');
		CREATE USER MAPPING FOR PUBLIC SERVER $name;
	});
}
ask(q{
	CREATE SERVER plain FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '} . $node{east}->port . q{', dbname 'postgres');
	CREATE USER MAPPING FOR PUBLIC SERVER plain;
	IMPORT FOREIGN SCHEMA public LIMIT TO (keys, other, other_as_text, nothing) FROM SERVER east INTO public;
	CREATE FOREIGN TABLE plain_keys (id int) SERVER plain OPTIONS (table_name 'keys');
	CREATE FOREIGN TABLE other_base (id int, label text) SERVER east OPTIONS (table_name 'other');
	CREATE TABLE parted (id int, customer int, note text) PARTITION BY LIST ((customer % 4));
	CREATE FOREIGN TABLE part_0 PARTITION OF parted FOR VALUES IN (0) SERVER east;
	CREATE FOREIGN TABLE part_1 PARTITION OF parted FOR VALUES IN (1) SERVER west;
	CREATE FOREIGN TABLE part_2 PARTITION OF parted FOR VALUES IN (2) SERVER east;
	CREATE FOREIGN TABLE part_3 PARTITION OF parted FOR VALUES IN (3) SERVER west;
	ANALYZE keys, other, parted;
});
# the local side of every test: keys of which 100 are remote ones
ask(qq{
	CREATE TABLE wanted ($columns);
	INSERT INTO wanted $keys FROM generate_series(100, 19900, 100) i;
	ANALYZE wanted;
});

# The lines of a plan that say what is evaluated where
sub plan
{
	my ($sql) = @_;
	return join("\n", grep { /Remote SQL|Filter:|Foreign Scan/ } split(/\n/, ask("EXPLAIN (VERBOSE, COSTS OFF) $sql")));
}

# How many rows foreign scans returned
sub rows_moved
{
	my ($sql) = @_;
	my $moved = 0;

	foreach my $line (split(/\n/, ask("EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) $sql")))
	{
		$moved += $1 * $2 if $line =~ /Foreign Scan.*\(actual rows=([\d.]+) loops=(\d+)\)/;
	}
	return $moved;
}

# ---------------------------------------------------------------------------
# A filter from a subquery is evaluated remotely, whatever the type
# ---------------------------------------------------------------------------

foreach my $type ('id', map { /^\s*(c_\w+)/ ? $1 : () } split(/,/, $columns))
{
	next if $type eq 'c_null';
	my $filter = "(SELECT bloom_agg($type) FROM wanted)";
	my $sql = "SELECT id FROM keys WHERE $filter @> $type";

	like(plan($sql), qr/Remote SQL: .*WHERE .*bloomfilter OPERATOR\(public\.@>\) $type\b/, "$type: shipped");
	unlike(plan($sql), qr/Filter:/, "$type: not evaluated here");
	is( ask("SELECT count(*), sum(id) FROM ($sql) s"),
		ask("SELECT count(*), sum(id) FROM (SELECT * FROM keys OFFSET 0) k WHERE $filter @> $type"),
		"$type: the same rows as here");
	is(ask("SELECT count(*) FROM keys k JOIN wanted w USING ($type) WHERE $filter @> $type"), '100', "$type: no match is lost");
}

# ---------------------------------------------------------------------------
# Other ways to write it
# ---------------------------------------------------------------------------

my $filter = '(SELECT bloom_agg(id) FROM wanted)';
my $one = ask('SELECT bloom_add(bloomfilter(10), 4711)');
my $exactly = ask("SELECT count(*) FROM generate_series(1, 10000) i WHERE $filter @> i");

foreach my $where ("id <@ $filter", "bloom_contains($filter, id)", "NOT ($filter @> id)",
	"(NOT $filter @> c_null OR c_null IS NULL)", "bloom_contains_any($filter, c_array)",
	"'$one'::bloomfilter @> id", "$filter @> id AND c_text > 'text 5'")
{
	unlike(plan("SELECT id FROM keys WHERE $where"), qr/Filter:/, 'shipped: ' . substr($where, 0, 40));
	is( ask("SELECT count(*), sum(id) FROM keys WHERE $where"),
		ask("SELECT count(*), sum(id) FROM (SELECT * FROM keys OFFSET 0) k WHERE $where"),
		'the same rows');
}
my $generic = "SET plan_cache_mode = force_generic_plan; PREPARE p(bloomfilter) AS SELECT count(*) FROM keys WHERE \$1 @> id;";
like(ask("$generic EXPLAIN (VERBOSE, COSTS OFF) EXECUTE p('$one')"), qr/Remote SQL: .*\$1::public\.bloomfilter OPERATOR\(public\.@>\) id/,
	'generic plan: shipped');
is(ask("$generic EXECUTE p('$one')"), '1', 'generic plan: answer');
like(plan("SELECT k.n FROM (SELECT bloom_agg(id) AS f FROM wanted GROUP BY id % 200 OFFSET 0) g, LATERAL (SELECT count(*) AS n FROM keys WHERE f @> id) k"),
	qr/Remote SQL: .*OPERATOR\(public\.@>\) id/, 'LATERAL: shipped');
like(plan("SELECT id FROM keys WHERE ($filter @> c_null) IS NOT TRUE"), qr/Filter: .*IS NOT TRUE/, 'IS NOT TRUE is evaluated here');
is(ask("SELECT count(*) FROM keys WHERE ($filter @> c_null) IS NOT TRUE"),
	ask("SELECT count(*) FROM keys WHERE (NOT $filter @> c_null OR c_null IS NULL)"), 'and its way round gives the same');

# commands
like(ask("EXPLAIN (VERBOSE, COSTS OFF) DELETE FROM keys WHERE $filter @> id"), qr/Foreign Delete.*Remote SQL: DELETE .*OPERATOR\(public\.@>\) id/s,
	'DELETE: shipped whole');
like(ask("EXPLAIN (VERBOSE, COSTS OFF) UPDATE keys SET c_text = 'x' WHERE $filter @> id"), qr/Foreign Update.*Remote SQL: UPDATE .*OPERATOR\(public\.@>\) id/s,
	'UPDATE: shipped whole');
is(ask("BEGIN; DELETE FROM keys WHERE $filter @> id; SELECT count(*) FROM keys; ROLLBACK"), 10000 - $exactly, 'DELETE: as many');

# ---------------------------------------------------------------------------
# What moves, and how often
# ---------------------------------------------------------------------------

my $join = 'SELECT count(*), sum(k.id) FROM keys k JOIN wanted w USING (id)';
is(ask($join), ask("$join WHERE $filter @> k.id"), 'a join gives the same with a filter');
is(rows_moved($join), 10000, 'all rows move without');
is(rows_moved("$join WHERE $filter @> k.id"), $exactly, 'only what passes moves with it');
cmp_ok($exactly, '<', 10000 / 20, 'that is a twentieth at most');

# one session's commands, as the remote server logs them
sub remote_log
{
	my ($sql) = @_;
	my $east = $node{east};

	$east->append_conf('postgresql.conf', "log_statement = 'all'\nlog_parameter_max_length = 40\n");
	$east->reload;
	my $from = -s $east->logfile;
	ask($sql);
	$east->append_conf('postgresql.conf', "log_statement = 'none'\n");
	$east->reload;
	return slurp_file($east->logfile, $from);
}

sub count_of
{
	my ($re, $log) = @_;
	my @found = ($log =~ /$re/g);
	return scalar(@found);
}

# reload is not immediate: wait until a session logs
my $log = '';
for (1 .. 100)
{
	$log = remote_log("SELECT id FROM keys WHERE $filter @> id");
	last if $log =~ /DECLARE/;
}
is(count_of(qr/DECLARE c\d+ CURSOR/, $log), 1, 'one cursor a scan');
cmp_ok(count_of(qr/FETCH 50 FROM/, $log), '>=', 4, 'many fetches');
is(count_of(qr/\$1 = '/, $log), 1, 'the filter is sent once, not with every fetch');

# Rescans.  From version 15 on, a remote cursor is opened anew once it has
# fetched more than one batch; what came in one batch is kept.
my $no_material = 'SET enable_material = off';
my $rescan = qq{SELECT count(k.id) FROM (VALUES (0), (-1), (-2)) v(i) LEFT JOIN (SELECT id FROM keys WHERE $filter @> id OFFSET 0) k ON k.id > v.i};
my $rescanned = 3 * $exactly;
ask(q{ALTER SERVER east OPTIONS (SET fetch_size '10000')});
like(ask("$no_material; EXPLAIN (COSTS OFF) $rescan"), qr/Nested Loop Left Join/, 'a plan with rescans');
$log = remote_log("$no_material; $rescan");
is(count_of(qr/DECLARE c\d+ CURSOR/, $log), 1, 'rescans of one batch do not ask again');
is(count_of(qr/\$1 = '/, $log), 1, 'nor send the filter again');
is(ask("$no_material; $rescan"), $rescanned, 'and find all rows');
ask(q{ALTER SERVER east OPTIONS (SET fetch_size '50')});
is(ask("$no_material; $rescan"), $rescanned, 'as do those of many batches');

# the remote planner sees a constant: parsed once, and with a selectivity
$node{east}->append_conf('postgresql.conf', "session_preload_libraries = 'auto_explain'\nauto_explain.log_min_duration = 0\n");
$node{east}->reload;
for (1 .. 100)
{
	$log = remote_log(q{SELECT id FROM keys WHERE (SELECT bloom_add(bloomfilter(10), 4711)) @> id});
	last if $log =~ /Query Text/;
}
like($log, qr/Filter: \('QkY[\w+\/=]*'::public\.bloomfilter OPERATOR\(public\.@>\) id\)/, 'the remote plan has a constant');
like($log, qr/Seq Scan on (public\.)?keys .* rows=\d{1,3} /, 'the remote planner estimates how many pass');
$node{east}->append_conf('postgresql.conf', "session_preload_libraries = ''\n");
$node{east}->reload;

# ---------------------------------------------------------------------------
# Partitions on two servers
# ---------------------------------------------------------------------------

my $parted = 'SELECT count(*), sum(o.id), min(note) FROM parted o JOIN (SELECT id FROM wanted WHERE id <= 1000) w ON w.id = o.customer';
my $parted_filter = '(SELECT bloom_agg(id) FROM wanted WHERE id <= 1000)';
my $plan = plan("$parted WHERE $parted_filter @> o.customer");
is(count_of(qr/Async Foreign Scan/, $plan), 4, 'four scans at once');
is(count_of(qr/Remote SQL: .*OPERATOR\(public\.@>\) customer/, $plan), 4, 'each with the filter');
is(ask("$parted WHERE $parted_filter @> o.customer"), ask($parted), 'the same answer');
is(rows_moved($parted), 20000, 'all rows move without');
cmp_ok(rows_moved("$parted WHERE $parted_filter @> o.customer"), '<=', 20000 / 20, 'a twentieth with it');

# ---------------------------------------------------------------------------
# Filters built remotely
# ---------------------------------------------------------------------------

my $template = "bloomfilter(10000, 0.001, layout => 'standard')";
my $parts = join(' UNION ALL ', map { "SELECT bloom_agg(customer, $template) AS f FROM part_$_" } 0 .. 3);
$plan = plan("SELECT bloom_union_agg(f) FROM ($parts) s");
is(count_of(qr/Remote SQL: SELECT public\.bloom_agg\(customer, '[\w+\/=]+'::public\.bloomfilter\)/, $plan), 4, 'bloom_agg is pushed down');
is(count_of(qr/Async Foreign Scan/, $plan), 4, 'to all at once');
is( ask("SELECT bloom_union_agg(f) = (SELECT bloom_agg(customer, $template) FROM parted) FROM ($parts) s"), 't',
	'the union is the filter of all rows');
is(rows_moved("SELECT bloom_union_agg(f) FROM ($parts) s"), 4, 'one row a part moves');
foreach my $args ('customer', 'customer, 1000', 'customer, 1000, 0.001')
{
	like(plan("SELECT bloom_agg($args) FROM part_0"), qr/Remote SQL: SELECT public\.bloom_agg\(customer/, "bloom_agg($args) is pushed down");
}
like(plan('SELECT customer % 10, bloom_agg(id, 1000) FROM part_0 GROUP BY 1'), qr/Remote SQL: SELECT .*bloom_agg.*GROUP BY 1/, 'with GROUP BY');
is(ask("SELECT bloom_union_agg(f) = bloom_agg(i, 100.0) FROM (SELECT bloom_agg(id, 100) AS f FROM nothing UNION ALL SELECT bloom_agg(i, 100.0) FROM generate_series(1, 5) i) s, generate_series(1, 5) i"),
	't', 'a part without rows changes nothing');

# the same through text results, as by dblink or Citus' run_command_on_shards
is( ask(qq{
		SELECT bloom_union_agg(result::bloomfilter) = (SELECT bloom_agg(customer, $template) FROM parted)
		FROM unnest(ARRAY['east', 'west', 'east', 'west'], ARRAY[0, 1, 2, 3]) AS part(server, n),
			dblink(server, format(\$\$SELECT bloom_agg(customer, $template) FROM part_%s\$\$, n)) AS (result text)}),
	't', 'filters as text');

# what is certainly missing there
is(ask("SELECT string_agg(id::text, ' ' ORDER BY id) = (SELECT string_agg(i::text, ' ' ORDER BY i) FROM generate_series(10100, 19900, 100) i)
		FROM wanted WHERE ((SELECT bloom_agg(id, 10000, 1e-6) FROM keys) @> id) IS NOT TRUE"),
	't', 'rows that the other server lacks');

# ---------------------------------------------------------------------------
# What does not ship is right, and has a way round
# ---------------------------------------------------------------------------

foreach my $case (
	[ 'no extension in the server\'s list', "plain_keys WHERE $filter @> id" ],
	[ 'enum',                               "other WHERE (SELECT bloom_agg('happy'::mood)) @> feeling" ],
	[ 'domain',                             "other WHERE (SELECT bloom_agg('label 7'::code)) @> label" ],
	[ 'cast to text',                       "other WHERE (SELECT bloom_agg('7'::text)) @> tenant::text" ],
	[ 'ROW',                                "other WHERE (SELECT bloom_agg((7, 47))) @> (tenant, id)" ])
{
	my ($what, $from) = @$case;
	like(plan("SELECT id FROM $from"), qr/Filter: .*@>/, "$what: evaluated here");
	cmp_ok(ask("SELECT count(*) FROM $from"), '>', 0, "$what: and finds");
}
foreach my $case (
	[ 'enum, by a view',        "other_as_text WHERE (SELECT bloom_agg('happy'::text)) @> feeling",                    333 ],
	[ 'domain, by a view',      "other_as_text WHERE (SELECT bloom_agg('label 7'::text)) @> label",                    1 ],
	[ 'domain, as its base',    "other_base WHERE (SELECT bloom_agg('label 7'::text)) @> label",                       1 ],
	[ 'ROW, as an array',       'other WHERE (SELECT bloom_agg(ARRAY[7, 47])) @> ARRAY[tenant, id]',                   1 ],
	[ 'ROW, as digests',
		"other_as_text WHERE (SELECT bloom_agg(bloom_hash(7) || bloom_hash('label 47'::text))) @> (bloom_hash(tenant) || bloom_hash(label))", 1 ])
{
	my ($what, $from, $count) = @$case;
	unlike(plan("SELECT id FROM $from"), qr/Filter:/, "$what: shipped");
	is(ask("SELECT count(*) FROM $from"), $count, "$what: finds");
}

# ---------------------------------------------------------------------------
# A remote database in another encoding
# ---------------------------------------------------------------------------

$node{west}->safe_psql('postgres', q{CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'});
$node{west}->safe_psql('latin', q{
	CREATE EXTENSION bloomfilter;
	CREATE TABLE words AS SELECT chr(192 + i % 60) || i AS word FROM generate_series(1, 1000) i});
ask(q{
	CREATE DATABASE unicode TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'});
my $latin = $home->safe_psql('unicode', q{
	CREATE EXTENSION bloomfilter;
	CREATE EXTENSION postgres_fdw;
	CREATE SERVER latin FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '} . $node{west}->port . q{', dbname 'latin', extensions 'bloomfilter');
	CREATE USER MAPPING FOR PUBLIC SERVER latin;
	CREATE FOREIGN TABLE words (word text) SERVER latin;
	CREATE TABLE mine AS SELECT chr(192 + i % 60) || i AS word FROM generate_series(10, 1000, 10) i;
	SELECT count(*) FROM mine JOIN words USING (word) WHERE (SELECT bloom_agg(word) FROM mine) @> words.word});
is($latin, '100', 'LATIN1 there, UTF8 here: no word is lost');

$_->stop foreach values %node;
done_testing();
