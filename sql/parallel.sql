-- Aggregates in parallel plans: the same bytes as from one process.
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;

CREATE TABLE parallel_t (x int, g int, h int, n int, s text, f bloomfilter);
INSERT INTO parallel_t SELECT x, x % 4, x % 200, CASE WHEN x % 5 > 0 THEN x END, 'code-' || x, CASE WHEN x % 101 = 0 THEN bloom_add_all(bloomfilter(1000), ARRAY[7, x]) END
FROM generate_series(1, 20000) x;
ALTER TABLE parallel_t SET (parallel_workers = 2);
ANALYZE parallel_t;

-- is there a partial aggregate under a Gather with workers?
CREATE FUNCTION parallel_plan(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text ~ '"Partial Mode": "Partial"' AND plan::text ~ '"Partial Mode": "Finalize"' AND plan::text ~ '"Workers Planned": [1-9]';
END $$;
-- runs it in parallel and then not: is the plan as it should be, are all
-- results alike?
CREATE FUNCTION parallel_same(query text, OUT parallel boolean, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	results text[];
	serial text[];
BEGIN
	SET LOCAL max_parallel_workers_per_gather = 2;
	parallel := parallel_plan(query);
	EXECUTE 'SELECT array_agg(q::text ORDER BY q::text) FROM (' || query || ') q' INTO results;
	-- the workers alone, then nobody else
	SET LOCAL parallel_leader_participation = off;
	EXECUTE 'SELECT array_agg(q::text ORDER BY q::text) FROM (' || query || ') q' INTO serial;
	same := results = serial;
	SET LOCAL max_parallel_workers_per_gather = 0;
	EXECUTE 'SELECT array_agg(q::text ORDER BY q::text) FROM (' || query || ') q' INTO serial;
	same := same AND results = serial AND NOT parallel_plan(query);
END $$;

SELECT layout, hash, k, p.* FROM unnest('{blocked,standard}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash, unnest('{NULL,5}'::int[]) k,
	parallel_same(format('SELECT bloom_agg(x, bloomfilter(20000, layout => %L, hash => %L, hashes => %L)) FROM parallel_t', layout, hash, k)) p
ORDER BY layout, hash, k;
SELECT what, p.* FROM (VALUES
	('capacity', 'SELECT bloom_agg(x, 20000) FROM parallel_t'),
	('fpr', 'SELECT bloom_agg(x, 20000, 0.001) FROM parallel_t'),
	('small', 'SELECT bloom_agg(x % 10, 10) FROM parallel_t'),
	('large', 'SELECT bloom_agg(x, 1000000) FROM parallel_t'),
	('key', 'SELECT bloom_agg(x, bloomfilter(20000, hash => ''blake2b'', key => ''secret'')) FROM parallel_t'),
	('text', 'SELECT bloom_agg(s, 20000) FROM parallel_t'),
	('NULLs', 'SELECT bloom_agg(n, 20000) FROM parallel_t'),
	('only NULLs', 'SELECT bloom_agg(nullif(x, x), 20000) FROM parallel_t'),
	('no rows', 'SELECT bloom_agg(x, 20000) FROM parallel_t WHERE x % 7 = 8'),
	('one row', 'SELECT bloom_agg(x, 20000) FROM parallel_t WHERE x % 30000 = 77'),
	('FILTER', 'SELECT bloom_agg(x, 20000) FILTER (WHERE g = 1) FROM parallel_t'),
	('two', 'SELECT bloom_agg(x, 20000), bloom_agg(x, 20000), bloom_agg(x, 30000), bloom_agg(s, 20000), count(*) FROM parallel_t'),
	('GROUP BY', 'SELECT g, bloom_agg(x, 5000) FROM parallel_t GROUP BY g'),
	('many groups', 'SELECT h, bloom_agg(x, 100) FROM parallel_t GROUP BY h'),
	('parameters by group', 'SELECT g, bloom_agg(x, 5000 + g) FROM parallel_t GROUP BY g'),
	('kind of template', 'SELECT bloom_agg(x, bloom_add(bloomfilter(20000), -1)) FROM parallel_t'),
	('union', 'SELECT bloom_union_agg(f) FROM parallel_t'),
	('union, no rows', 'SELECT bloom_union_agg(f) FROM parallel_t WHERE x % 7 = 8'),
	('union, unsized', 'SELECT bloom_union_agg(coalesce(f, bloomfilter())) FROM parallel_t'),
	('union by group', 'SELECT g, bloom_union_agg(f) FROM parallel_t GROUP BY g'),
	('intersection', 'SELECT bloom_intersect_agg(f) FROM parallel_t'),
	('intersection, no rows', 'SELECT bloom_intersect_agg(f) FROM parallel_t WHERE x % 7 = 8'),
	('intersection, unsized', 'SELECT bloom_intersect_agg(coalesce(f, bloomfilter())) FROM parallel_t'),
	('intersection by group', 'SELECT g, bloom_intersect_agg(f) FROM parallel_t GROUP BY g')) v(what, query), parallel_same(query) p;
-- and they are what they should be
SELECT bool_and(a.f @> x) AS found FROM parallel_t, (SELECT bloom_agg(x, 20000) AS f FROM parallel_t) a;
SELECT i @> 7 AS common, (bloom_info(i)).bits_set < 20 AS little FROM (SELECT bloom_intersect_agg(f) AS i FROM parallel_t) a;
-- sorted groups
SET enable_hashagg = off;
SELECT p.* FROM parallel_same('SELECT g, bloom_agg(x, 5000) FROM parallel_t GROUP BY g') p;
RESET enable_hashagg;
-- an InitPlan builds in parallel, and workers probe with it
SELECT count(*) FROM parallel_t WHERE (SELECT bloom_agg(x, 100, 0.00001) FROM parallel_t WHERE x <= 100) @> x;
-- (a filter that the planner cannot see: of a constant it knows how little passes)
SELECT parallel_plan('SELECT count(*) FROM parallel_t WHERE (SELECT bloom_add(bloomfilter(10), 7)) @> x') AS probes;
SELECT count(*) FROM parallel_t WHERE bloom_add(bloomfilter(10, 0.00001), 7) @> x;
-- partition by partition, partially
CREATE TABLE parallel_parts (k int, g int, x int) PARTITION BY LIST (k);
CREATE TABLE parallel_parts1 PARTITION OF parallel_parts FOR VALUES IN (1);
CREATE TABLE parallel_parts2 PARTITION OF parallel_parts FOR VALUES IN (2);
INSERT INTO parallel_parts SELECT 1 + x % 2, x % 3, x FROM generate_series(1, 4000) x;
ANALYZE parallel_parts;
SET enable_partitionwise_aggregate = on;
SELECT p.* FROM parallel_same('SELECT bloom_agg(x, 4000) FROM parallel_parts') p;
SELECT p.* FROM parallel_same('SELECT g, bloom_agg(x, 4000) FROM parallel_parts GROUP BY g') p;
RESET enable_partitionwise_aggregate;
DROP TABLE parallel_parts;

-- one WARNING a statement, and only from the process that talks to the client
SELECT parallel_plan('SELECT bloom_agg(x, 10000) FROM parallel_t');
SELECT bloom_cardinality(bloom_agg(x, 10000)) > 19000 AS more FROM parallel_t;
SELECT count(f) FROM (SELECT bloom_agg(x, 1000) AS f FROM parallel_t GROUP BY g) s;

-- errors arrive from workers
\set VERBOSITY sqlstate
SELECT bloom_agg(x, 0.01) FROM parallel_t;
SELECT bloom_agg(x, bloom_add(bloomfilter(10), 'x')) FROM parallel_t;
SELECT bloom_union_agg(bloomfilter(1000 + g * 1000)) FROM parallel_t;
\set VERBOSITY default

DROP FUNCTION parallel_same, parallel_plan;
DROP TABLE parallel_t;
