-- Filters that size themselves to the distinct values.
SET extra_float_digits = 0;
SET max_parallel_workers_per_gather = 0;
CREATE FUNCTION selfsize_bound(t float8, q float8) RETURNS float8 IMMUTABLE LANGUAGE sql
RETURN t * q + 3 * sqrt(t * q * (1 - q));

-- in memory: the same bytes as a filter sized by the caller, whatever the
-- duplicates
SELECT n, count(*) AS builds, bool_and(f = coalesce(sized, bloomfilter())) AS same, bool_and((bloom_info(f)).capacity IS NOT DISTINCT FROM nullif(n, 0)) AS capacity
FROM (VALUES (0, 1), (1, 1), (1, 10), (1, 1000), (2, 1), (2, 10), (2, 1000), (3, 1), (3, 10), (3, 1000), (4, 1), (5, 7), (8, 3), (9, 3), (10, 1), (10, 10), (10, 1000), (100, 10), (256, 1), (257, 1), (1000, 1), (1000, 10), (1000, 1000)) v(n, duplicates),
	LATERAL (SELECT bloom_agg(x % n) AS f FROM generate_series(1, n * duplicates) x) s,
	LATERAL (SELECT bloom_agg(x, nullif(n, 0)) AS sized FROM generate_series(0, n - 1) x) z
GROUP BY n ORDER BY n;
SELECT bool_and(f = sized) AS same, bool_and((bloom_info(f)).capacity = n) AS capacity
FROM generate_series(1, 300) n, LATERAL (SELECT bloom_agg(x) AS f FROM generate_series(1, n) x) s, LATERAL (SELECT bloom_agg(x, n) AS sized FROM generate_series(1, n) x) z;
SELECT bloom_agg(x / 10) = bloom_agg(DISTINCT x / 10, 20000) AS same, bloom_agg(x / 10) = bloom_agg(x / 10 ORDER BY x DESC) AS "order", bloom_agg(DISTINCT x / 10) = bloom_agg(x / 10) AS "distinct",
	bloom_agg(x / 10) = bloom_agg((x / 10)::int8) AS "bigint", bloom_agg(CASE WHEN x % 2 = 0 THEN x / 10 END) = bloom_agg(x / 10) AS "NULLs"
FROM generate_series(0, 199999) x;
-- every way to leave the size open
CREATE TEMP TABLE selfsize_t AS SELECT x, x % 10 AS g, 'code-' || x AS s FROM generate_series(1, 3000) x;
SELECT i.layout, i.hash, i.keyed, k, fpr, f = sized AS same, i.capacity, i.target_fpr = fpr AS target, k IS NULL OR i.hashes = k AS hashes
FROM unnest('{blocked,standard}'::text[]) l, unnest('{xxh3,blake2b}'::text[]) h, unnest('{NULL,secret}'::bytea[]) key, unnest('{NULL,5}'::int[]) k, unnest('{0.01,0.001}'::float8[]) fpr,
	LATERAL (SELECT bloom_agg(x, bloomfilter(layout => l, hash => h, key => key, hashes => k, fpr => fpr)) AS f, bloom_agg(x, bloomfilter(3000, layout => l, hash => h, key => key, hashes => k, fpr => fpr)) AS sized FROM selfsize_t) s,
	LATERAL bloom_info(f) i
WHERE (h = 'blake2b' OR key IS NULL) AND (fpr = 0.01 OR k IS NULL)
ORDER BY l, h, keyed, k, fpr;
SELECT bloom_agg(x, NULL) = bloom_agg(x, 3000) AS "NULL", bloom_agg(x, NULL, 0.001) = bloom_agg(x, 3000, 0.001) AS fpr, bloom_agg(x, NULL::float8, NULL) = bloom_agg(x, 3000) AS "NULLs", bloom_agg(x, bloomfilter(NULL)) = bloom_agg(x) AS template,
	bloom_agg(x, bloomfilter(fpr => 0.001)) = bloom_agg(x, NULL, 0.001) AS template, bloom_agg(s) = bloom_agg(s, 3000) AS text, bloom_agg((g, s)) = bloom_agg((g, s), 3000) AS "row"
FROM selfsize_t;
SELECT bloom_agg(x, NULL, 0.1 + g * 0.01) FROM selfsize_t;
SELECT bloom_agg(x, bloomfilter(fpr => 0.01 + g * 0.01)) FROM selfsize_t;
SELECT bloom_agg(x, bloomfilter(layout => CASE g WHEN 0 THEN 'standard' ELSE 'blocked' END)) FROM selfsize_t;
SELECT bloom_agg(x, CASE g WHEN 0 THEN 3000 END) FROM selfsize_t;
SELECT bloom_agg(x, NULL, 0) FROM selfsize_t;
SELECT bloom_agg(x, NULL, 1.5) FROM selfsize_t;

-- small groups take little
SELECT max(pg_column_size(f)) <= 192 AS "three rows", max(pg_column_size(s)) <= 192 AS standard, count(*)
FROM (SELECT bloom_agg(x) AS f, bloom_agg(x, bloomfilter(layout => 'standard')) AS s FROM generate_series(1, 3000) x GROUP BY x / 3) s;
SELECT count(*) AS groups, bool_and((bloom_info(f)).capacity = 10) AS capacity, sum(pg_column_size(f)) / count(*) AS bytes FROM (SELECT x % 20000 AS g, bloom_agg(x) AS f FROM generate_series(1, 200000) x GROUP BY 1) s;
-- groups of different sizes, FILTER, twice in a query
SELECT bool_and(f = sized) AS same, bool_and(h = i) AS filter, bool_and(f = t) AS twice, sum((bloom_info(f)).capacity) AS rows
FROM (SELECT width_bucket(x, 0, 3000, 7) AS b, bloom_agg(x) AS f, bloom_agg(x) FILTER (WHERE x % 3 = 0) AS h, bloom_agg(x + 0) AS t FROM selfsize_t GROUP BY 1) s
JOIN (SELECT width_bucket(x, 0, 3000, 7) AS b, bloom_agg(x, n) AS sized, bloom_agg(x, m) FILTER (WHERE x % 3 = 0) AS i
	FROM selfsize_t, LATERAL (SELECT count(*) AS n, count(*) FILTER (WHERE x % 3 = 0) AS m FROM selfsize_t u WHERE width_bucket(u.x, 0, 3000, 7) = width_bucket(selfsize_t.x, 0, 3000, 7)) c WHERE x % 50 <> -1 GROUP BY 1) z USING (b);
SELECT c, (bloom_info(f)).capacity, (bloom_info(f)).target_fpr, (bloom_info(f)).layout
FROM (SELECT g AS c, bloom_agg(x, bloomfilter(fpr => 0.1 / (g + 1), layout => CASE g % 2 WHEN 1 THEN 'standard' ELSE 'blocked' END)) AS f FROM selfsize_t WHERE g < 4 GROUP BY g) s ORDER BY c;
SELECT a, b, (bloom_info(f)).capacity FROM (SELECT x % 2 AS a, x % 3 AS b, bloom_agg(x) AS f FROM selfsize_t GROUP BY GROUPING SETS ((1), (2), (1, 2), ())) s ORDER BY a, b;
-- window frames, growing and moving
SELECT count(*), bool_and(growing = g) AS growing, bool_and(moving = m) AS moving, bool_and(whole = w) AS whole
FROM (SELECT x, bloom_agg(x / 2) OVER (ORDER BY x) AS growing, bloom_agg(x) OVER (ORDER BY x ROWS BETWEEN 20 PRECEDING AND 5 FOLLOWING) AS moving, bloom_agg(x) OVER () AS whole FROM generate_series(1, 400) x) s,
	LATERAL (SELECT bloom_agg(y / 2) AS g FROM generate_series(1, x) y) g, LATERAL (SELECT bloom_agg(y) AS m FROM generate_series(greatest(x - 20, 1), least(x + 5, 400)) y) m, LATERAL (SELECT bloom_agg(y) AS w FROM generate_series(1, 400) y) w;
-- appended to afterwards
CREATE TEMP TABLE selfsize_new (x int);
SELECT f | (SELECT bloom_agg(x, f) FROM selfsize_new) = f AS nothing FROM (SELECT bloom_agg(x) AS f FROM selfsize_t) s;
INSERT INTO selfsize_new SELECT generate_series(2995, 3010);
SELECT bool_and(u @> x) AS found, count(*), (bloom_info(u)).capacity, abs((bloom_info(u)).cardinality / 3010 - 1) < 0.02 AS cardinality
FROM (SELECT f | (SELECT bloom_agg(x, f) FROM selfsize_new) AS u FROM (SELECT bloom_agg(x) AS f FROM selfsize_t) s) u, generate_series(1, 3010) x GROUP BY u;

-- beyond memory
CREATE TABLE selfsize_big (x int, d int, g int, h int, s text) WITH (parallel_workers = 2);
INSERT INTO selfsize_big SELECT x, (x * 7919::bigint % 20000)::int, x % 3, x % 200, 'code-' || x FROM generate_series(1, 200000) x;
ANALYZE selfsize_big;
-- of this process, and of workers that have ended
CREATE FUNCTION selfsize_no_files() RETURNS boolean LANGUAGE sql AS $$
	SELECT NOT EXISTS (SELECT FROM pg_ls_tmpdir() WHERE substring(name FROM '\d+')::int NOT IN (SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()))
$$;
-- all there, as small as promised, at the rate promised?  n distinct integers
-- from 1 on
CREATE FUNCTION selfsize_check(f bloomfilter, n int, times float8 = 2.1, OUT missed bigint, OUT small boolean, OUT within boolean, OUT expected boolean, OUT holds boolean) LANGUAGE plpgsql AS $$
DECLARE
	sized bloomfilter := bloomfilter(n, (bloom_info(f)).target_fpr, layout => (bloom_info(f)).layout, hash => (bloom_info(f)).hash);
	t int := 200000;
BEGIN
	SELECT count(*) INTO missed FROM generate_series(1, n) x WHERE NOT f @> x;
	small := (bloom_info(f)).bits BETWEEN (bloom_info(sized)).bits * 0.99 AND (bloom_info(sized)).bits * times;
	SELECT count(*) <= selfsize_bound(t, (bloom_info(f)).target_fpr) INTO within FROM generate_series(n + 1, n + t) x WHERE f @> x;
	expected := bloom_expected_fpr(f) <= (bloom_info(f)).target_fpr * 1.03;
	-- elements that looked like duplicates were not counted
	holds := (bloom_info(f)).capacity >= 0.99 * n;
END $$;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT layout, hash, fpr, n, c.*
FROM unnest('{blocked,standard}'::text[]) layout, (VALUES ('xxh3', 0.01, 200000), ('blake2b', 0.001, 50000)) v(hash, fpr, n),
	LATERAL (SELECT bloom_agg(x, bloomfilter(fpr => fpr, layout => layout, hash => hash)) AS f FROM selfsize_big WHERE x <= n) s, selfsize_check(f, n) c
ORDER BY layout, hash, n;
SELECT selfsize_no_files() AS "no files";
-- around the limits: of the list, of memory, of each size
SELECT layout, count(*), sum(missed) AS missed, bool_and(small) AS small, bool_and(expected) AS expected, bool_and(holds) AS holds
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{3,4,5,6,7,8,9,12,13,3071,3072,3073,3100,3135,3136,3137,4096,6144,13216,13217,13218,26433,52865,54000,60000,100000}'::int[]) n,
	LATERAL (SELECT bloom_agg(x, bloomfilter(layout => layout)) AS f FROM generate_series(1, n) x) s,
	LATERAL (SELECT count(*) FILTER (WHERE NOT f @> x) AS missed FROM generate_series(1, n) x) m,
	LATERAL (SELECT (bloom_info(f)).bits <= 2.1 * (bloom_info(bloomfilter(n, layout => layout))).bits AS small, bloom_expected_fpr(f) <= 0.0103 OR n < 1000 AS expected, (bloom_info(f)).capacity >= 0.99 * n AS holds) c
GROUP BY layout ORDER BY layout;
-- duplicates, near and far
SELECT what, c.* FROM (SELECT 'near' AS what, bloom_agg(x / 10 + 1) AS f FROM generate_series(0, 199999) x
	UNION ALL SELECT 'far', bloom_agg(x % 20000 + 1) FROM generate_series(0, 199999) x
	UNION ALL SELECT 'mixed', bloom_agg(d + 1) FROM selfsize_big) s, selfsize_check(f, 20000) c;
-- few distinct ones stay in memory, and exact
SELECT bloom_agg(x % 3000) = bloom_agg(x % 3000, 3000) AS same FROM generate_series(1, 200000) x;
-- groups, some beyond
SELECT g, count(*), bool_and(f @> x) AS found, bool_and((bloom_info(f)).expected_fpr <= 0.0103) AS expected, bool_and((bloom_info(f)).capacity BETWEEN 66000 AND 2.1 * 66667) AS small
FROM selfsize_big JOIN (SELECT g, bloom_agg(x) AS f FROM selfsize_big GROUP BY g) a USING (g) GROUP BY g ORDER BY g;
SET enable_hashagg = off;
SELECT count(*), bool_and(f @> x) AS found FROM selfsize_big JOIN (SELECT g, bloom_agg(x) AS f FROM selfsize_big GROUP BY g) a USING (g);
RESET enable_hashagg;
SELECT count(DISTINCT g), bool_and(f @> x) AS found FROM (SELECT x, x % 500 AS g FROM selfsize_big) t JOIN (SELECT x % 500 AS g, bloom_agg(x) AS f FROM selfsize_big GROUP BY 1) a USING (g);
SELECT bool_and(a @> x AND b @> s AND c @> x) AS found FROM selfsize_big, (SELECT bloom_agg(x) AS a, bloom_agg(s) AS b, bloom_agg(x, bloomfilter(layout => 'standard')) AS c FROM selfsize_big) f;
SELECT selfsize_no_files() AS "no files";
-- windows
SELECT count(*), bool_and(f @> x) AS found, bool_and(f = g) AS same FROM (SELECT x, bloom_agg(x) OVER () AS f, bloom_agg(x) OVER (PARTITION BY 1) AS g FROM selfsize_big WHERE x <= 20000) s;
SELECT count(*), bool_and(f @> x) AS found, bool_and(bloom_cardinality(f) BETWEEN 4000 * 0.97 AND 4001 * 1.03) AS cardinality
FROM (SELECT x, bloom_agg(x) OVER (ORDER BY x ROWS 4000 PRECEDING) AS f FROM selfsize_big WHERE x <= 4020 OFFSET 4000) s;
SELECT count(*), bool_and(f @> x) AS found, max((bloom_info(f)).capacity) > 9000 AS grown FROM (SELECT x, bloom_agg(x) OVER (ORDER BY x / 1000) AS f FROM selfsize_big WHERE x < 10000) s;
SELECT selfsize_no_files() AS "no files";
-- rescanned
SELECT count(*), bool_and(f @> 5 AND f @> 4000 + n) AS found, bool_and((bloom_info(f)).capacity >= 4000 + n) AS capacity FROM generate_series(1, 20) n, LATERAL (SELECT bloom_agg(x) AS f FROM selfsize_big WHERE x <= 4000 + n) s;
-- cursors that are closed early, and held open; scans that are cut short
BEGIN;
DECLARE c CURSOR FOR SELECT g, bloom_agg(x) AS f FROM selfsize_big GROUP BY g ORDER BY g;
MOVE 1 c;
CLOSE c;
SELECT selfsize_no_files() AS "no files";
DECLARE c CURSOR FOR SELECT bloom_agg(x) OVER (ORDER BY x / 5000) FROM selfsize_big WHERE x < 20000;
MOVE 6000 c;
SAVEPOINT s;
DECLARE d CURSOR FOR SELECT bloom_agg(x) OVER (ORDER BY x / 5000) FROM selfsize_big WHERE x < 20000;
MOVE 6000 d;
ROLLBACK TO s;
MOVE 1000 c;
COMMIT;
SELECT selfsize_no_files() AS "no files";
BEGIN;
DECLARE c CURSOR WITH HOLD FOR SELECT (bloom_agg(x) OVER (ORDER BY x / 5000)) @> x AS found FROM selfsize_big WHERE x < 10000;
COMMIT;
MOVE 9998 c;
FETCH c;
CLOSE c;
SELECT selfsize_no_files() AS "no files";
SELECT count(*) FROM (SELECT bloom_agg(x) OVER (ORDER BY x / 5000) AS f FROM selfsize_big WHERE x < 20000 LIMIT 6000) s WHERE f @> 1;
-- errors and cancellation, in between
SELECT bloom_agg(1 / (x - 150000)) FROM selfsize_big;
SELECT selfsize_no_files() AS "no files";
SELECT bloom_agg(1 / (x - 15000) + x) OVER (ORDER BY x / 5000) FROM (SELECT x FROM selfsize_big WHERE x < 20000 ORDER BY x) s;
SELECT selfsize_no_files() AS "no files";
DO $$
BEGIN
	PERFORM bloom_agg(1 / (x - 150000) + x) FROM selfsize_big;
EXCEPTION WHEN division_by_zero THEN
	ASSERT selfsize_no_files();
	ASSERT (SELECT bloom_agg(x) @> 5 FROM selfsize_big);
END $$;
SET statement_timeout = '300ms';
\set VERBOSITY sqlstate
SELECT bloom_agg(a.x::bigint * 200000 + b.x) FROM selfsize_big a, selfsize_big b;
\set VERBOSITY default
RESET statement_timeout;
SELECT selfsize_no_files() AS "no files";

-- in parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE FUNCTION selfsize_plan(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text ~ '"Partial Mode": "Partial"' AND plan::text ~ '"Partial Mode": "Finalize"' AND plan::text ~ '"Workers Planned": [1-9]';
END $$;
-- in parallel, by the workers alone, and in one process
CREATE FUNCTION selfsize_same(query text, OUT parallel boolean, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	results text[];
	others text[];
BEGIN
	SET LOCAL max_parallel_workers_per_gather = 2;
	parallel := selfsize_plan(query);
	EXECUTE 'SELECT array_agg(q::text ORDER BY q::text) FROM (' || query || ') q' INTO results;
	SET LOCAL parallel_leader_participation = off;
	EXECUTE 'SELECT array_agg(q::text ORDER BY q::text) FROM (' || query || ') q' INTO others;
	same := results = others;
	SET LOCAL max_parallel_workers_per_gather = 0;
	EXECUTE 'SELECT array_agg(q::text ORDER BY q::text) FROM (' || query || ') q' INTO others;
	same := same AND results = others AND NOT selfsize_plan(query);
END $$;
CREATE TYPE selfsize_mood AS ENUM ('sad', 'ok', 'happy');
CREATE TYPE selfsize_pair AS (a int, b text);
-- within memory the bytes are the same
SET work_mem = '64MB';
CREATE TABLE selfsize_small WITH (parallel_workers = 2) AS SELECT * FROM selfsize_big WHERE x <= 30000;
ANALYZE selfsize_small;
SELECT what, p.* FROM (VALUES
	('integers', 'SELECT bloom_agg(x) FROM selfsize_small'),
	('fpr', 'SELECT bloom_agg(x, NULL, 0.001) FROM selfsize_small'),
	('standard', 'SELECT bloom_agg(x, bloomfilter(layout => ''standard'')) FROM selfsize_small'),
	('blake2b', 'SELECT bloom_agg(x, bloomfilter(hash => ''blake2b'')) FROM selfsize_small'),
	('key', 'SELECT bloom_agg(x, bloomfilter(hash => ''blake2b'', key => ''secret'', hashes => 3)) FROM selfsize_small'),
	('duplicates', 'SELECT bloom_agg(d) FROM selfsize_small'),
	('few', 'SELECT bloom_agg(g) FROM selfsize_small'),
	('text', 'SELECT bloom_agg(s) FROM selfsize_small'),
	('numeric', 'SELECT bloom_agg(d / 100.0) FROM selfsize_small'),
	('enums', 'SELECT bloom_agg((''{sad,ok,happy}''::selfsize_mood[])[g + 1]) FROM selfsize_small'),
	('arrays', 'SELECT bloom_agg(ARRAY[g, d]) FROM selfsize_small'),
	('anonymous records', 'SELECT bloom_agg(ROW(g, s)) FROM selfsize_small'),
	('records', 'SELECT bloom_agg((g, s)::selfsize_pair) FROM selfsize_small'),
	('nested records', 'SELECT bloom_agg(ROW(g, ROW(d, NULL, (''{sad,ok,happy}''::selfsize_mood[])[g + 1]))) FROM selfsize_small'),
	('jsonb', 'SELECT bloom_agg(to_jsonb(d)) FROM selfsize_small'),
	('records or NULL', 'SELECT g, bloom_agg(CASE WHEN g > 0 THEN ROW(x, ''a'') END) FROM selfsize_small GROUP BY g'),
	('only NULLs', 'SELECT bloom_agg(nullif(x, x)) FROM selfsize_small'),
	('no rows', 'SELECT bloom_agg(x) FROM selfsize_small WHERE x % 7 = 8'),
	('one row', 'SELECT bloom_agg(x) FROM selfsize_small WHERE x % 300000 = 77'),
	('FILTER', 'SELECT bloom_agg(x) FILTER (WHERE g = 1) FROM selfsize_small'),
	('several', 'SELECT bloom_agg(x), bloom_agg(x), bloom_agg(d), bloom_agg(s), bloom_agg(x, 30000), count(*) FROM selfsize_small'),
	('GROUP BY', 'SELECT g, bloom_agg(x) FROM selfsize_small GROUP BY g'),
	('many groups', 'SELECT h, bloom_agg(x) FROM selfsize_small GROUP BY h'),
	('HAVING', 'SELECT g FROM selfsize_small GROUP BY g HAVING bloom_agg(x) @> 100')) v(what, query), selfsize_same(query) p;
SELECT bloom_agg(x) = bloom_agg(x, 200000) AS same FROM selfsize_big;
SET enable_hashagg = off;
SELECT p.* FROM selfsize_same('SELECT g, bloom_agg(x) FROM selfsize_big GROUP BY g') p;
RESET enable_hashagg;
-- beyond: what a process has little of, it hands over digest by digest
SET work_mem = '64kB';
SELECT selfsize_plan('SELECT bloom_agg(x) FROM selfsize_big') AS parallel;
SELECT n, c.* FROM unnest('{2000,4000,8000,9300,20000,40000}'::int[]) n, LATERAL (SELECT bloom_agg(x) AS f FROM selfsize_big WHERE x <= n) s, selfsize_check(f, n) c ORDER BY n;
-- and otherwise a filter: larger than needed where shares differ, but never
-- at another rate
SELECT layout, c.* FROM unnest('{blocked,standard}'::text[]) layout, LATERAL (SELECT bloom_agg(x, bloomfilter(layout => layout)) AS f FROM selfsize_big) s, selfsize_check(f, 200000, 4.2) c ORDER BY layout;
SELECT c.* FROM (SELECT bloom_agg(d + 1) AS f FROM selfsize_big) s, selfsize_check(f, 20000, 6.4) c;
SET parallel_leader_participation = off;
SELECT layout, c.* FROM unnest('{blocked,standard}'::text[]) layout, LATERAL (SELECT bloom_agg(x, bloomfilter(layout => layout, fpr => 0.001)) AS f FROM selfsize_big) s, selfsize_check(f, 200000, 4.2) c ORDER BY layout;
RESET parallel_leader_participation;
ALTER TABLE selfsize_big SET (parallel_workers = 4);
SET max_parallel_workers_per_gather = 4;
SELECT c.* FROM (SELECT bloom_agg(x) AS f FROM selfsize_big) s, selfsize_check(f, 200000, 6.4) c;
SET max_parallel_workers_per_gather = 2;
SELECT g, count(*), bool_and(f @> x) AS found, bool_and((bloom_info(f)).expected_fpr <= 0.0103) AS expected
FROM selfsize_big JOIN (SELECT g, bloom_agg(x) AS f FROM selfsize_big GROUP BY g) a USING (g) GROUP BY g ORDER BY g;
SELECT bool_and(f @> ROW(g, s)) AS records, bool_and(m @> ARRAY[d, x]) AS arrays FROM selfsize_big, (SELECT bloom_agg(ROW(g, s)) AS f, bloom_agg(ARRAY[d, x]) AS m FROM selfsize_big OFFSET 0) a;
SELECT selfsize_no_files() AS "no files";
-- very different shares: whole partitions
CREATE TABLE selfsize_parts (k int, x int) PARTITION BY LIST (k);
CREATE TABLE selfsize_parts1 PARTITION OF selfsize_parts FOR VALUES IN (1) WITH (parallel_workers = 0);
CREATE TABLE selfsize_parts2 PARTITION OF selfsize_parts FOR VALUES IN (2) WITH (parallel_workers = 0);
CREATE TABLE selfsize_parts3 PARTITION OF selfsize_parts FOR VALUES IN (3) WITH (parallel_workers = 0);
INSERT INTO selfsize_parts SELECT CASE WHEN x <= 4000 THEN 1 WHEN x <= 30000 THEN 2 ELSE 3 END, x FROM generate_series(1, 200000) x;
ANALYZE selfsize_parts;
SELECT selfsize_plan('SELECT bloom_agg(x) FROM selfsize_parts') AS parallel;
SELECT layout, c.* FROM unnest('{blocked,standard}'::text[]) layout, LATERAL (SELECT bloom_agg(x, bloomfilter(layout => layout)) AS f FROM selfsize_parts) s, selfsize_check(f, 200000, 6.4) c ORDER BY layout;
-- duplicates in some
UPDATE selfsize_parts SET x = x % 5000 + 1 WHERE k = 3;
ANALYZE selfsize_parts;
SELECT bool_and(f @> x) AS found, max(bloom_expected_fpr(f)) <= 0.0103 AS expected FROM (SELECT bloom_agg(x) AS f FROM selfsize_parts) s, selfsize_parts;
SET enable_partitionwise_aggregate = on;
SELECT bool_and(f @> x) AS found, max(bloom_expected_fpr(f)) <= 0.0103 AS expected FROM (SELECT bloom_agg(x) AS f FROM selfsize_parts) s, selfsize_parts;
SELECT k, bool_and(f @> x) AS found, max(bloom_expected_fpr(f)) <= 0.0103 AS expected FROM (SELECT k, bloom_agg(x) AS f FROM selfsize_parts GROUP BY k) s JOIN selfsize_parts USING (k) GROUP BY k ORDER BY k;
SELECT g, bool_and(f @> x) AS found, max(bloom_expected_fpr(f)) <= 0.0103 AS expected FROM (SELECT x % 2 AS g, bloom_agg(x) AS f FROM selfsize_parts GROUP BY 1) s JOIN selfsize_parts ON x % 2 = g GROUP BY g ORDER BY g;
RESET enable_partitionwise_aggregate;
-- errors arrive from workers, and their files go
\set VERBOSITY sqlstate
SELECT bloom_agg(1 / (x - 199000) + x) FROM selfsize_big;
SELECT bloom_agg(x, NULL, 0.01 + g * 0.01) FROM selfsize_big;
SELECT bloom_agg(CASE g WHEN 0 THEN ROW(1) ELSE ROW('a') END) FROM selfsize_big;
\set VERBOSITY default
SELECT selfsize_no_files() AS "no files";

DROP TABLE selfsize_big, selfsize_small, selfsize_parts;
DROP TYPE selfsize_mood, selfsize_pair;
DROP FUNCTION selfsize_same, selfsize_plan, selfsize_check, selfsize_no_files, selfsize_bound;
