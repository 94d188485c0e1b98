-- Join filters that the planner adds: where they go, and where they must not.
-- What they return is compared with what is returned without them; many more
-- queries are in test/py/test_joinfilter.py.
LOAD 'bloomfilter';
SHOW bloomfilter.join_filter;
SET bloomfilter.join_filter_force = on;
SET max_parallel_workers_per_gather = 0;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SET enable_memoize = off;
CREATE TABLE jf_fact (id int, a int, b bigint, t text, u uuid, n numeric, d date);
CREATE TABLE jf_dim (a int, b bigint, t text, u uuid, n numeric, d date, keep bool);
INSERT INTO jf_fact SELECT i, i % 500, i % 300, 't' || i % 400, md5((i % 400)::text)::uuid, (i % 200) / 2.0, date '2020-01-01' + i % 1000 FROM generate_series(1, 6000) i;
INSERT INTO jf_fact VALUES (0, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO jf_dim SELECT i, i, 't' || i, md5(i::text)::uuid, (i / 2.0)::numeric(10, 4), date '2020-01-01' + i, i % 10 = 0 FROM generate_series(1, 300) i;
INSERT INTO jf_dim VALUES (NULL, NULL, NULL, NULL, NULL, NULL, true);
ANALYZE jf_fact, jf_dim;

-- The filters of a plan, each with the node below it; of what is counted only
-- whether it is anything.
CREATE FUNCTION jf_plan(query text, options text DEFAULT 'COSTS OFF') RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	line text;
	wanted bool := false;
BEGIN
	FOR line IN EXECUTE format('EXPLAIN (%s) %s', options, query) LOOP
		line := regexp_replace(regexp_replace(line, '^[ >-]+', ''), ' \(actual.*', '');
		line := regexp_replace(line, '(Probed|Dropped|Keys|Memory|Switched Off): [1-9]\d*', '\1: some', 'g');
		IF line ~ 'Bloom' OR line ~ 'Filter State' THEN
			RETURN NEXT line;
			wanted := line ~ 'Bloom Filter:';
		ELSIF wanted THEN
			RETURN NEXT '    above ' || line;
			wanted := false;
		END IF;
	END LOOP;
END $$;
-- The same, and whether the result is the same without filters.
CREATE FUNCTION jf_check(query text) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
	digest text := format('SELECT count(*), md5(string_agg(q::text, '' '' ORDER BY q::text)) FROM (%s) q', query);
	r record;
	s record;
BEGIN
	RETURN NEXT query;
	RETURN QUERY SELECT '    ' || jf_plan FROM jf_plan(query) WHERE jf_plan !~ 'Custom Scan';
	SET LOCAL bloomfilter.join_filter = off;
	EXECUTE digest INTO r;
	SET LOCAL bloomfilter.join_filter = on;
	EXECUTE digest INTO s;
	RETURN NEXT format('    %s rows, %s', s.count, CASE WHEN r = s THEN 'the same' ELSE 'OTHER THAN BEFORE' END);
END $$;
-- Without headers and alignment there is less to read
\t on
\a

SET bloomfilter.join_filter = on;
-- the plain case
SELECT jf_plan('SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep');
SELECT jf_plan('SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');
SELECT jf_check('SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep');
-- not while it is off
SET bloomfilter.join_filter = off;
SELECT jf_plan('SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep');
SET bloomfilter.join_filter = on;

-- other formats
DO $$
DECLARE
	plan json;
	build json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON, ANALYZE, TIMING OFF) SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep' INTO plan;
	build := plan #> '{0,Plan,Plans,1,Plans,0}';
	RAISE NOTICE '%', plan #>> '{0,Plan,Plans,0,Bloom Filters}';
	RAISE NOTICE '% % % % % %', build -> 'Bloom Filter', build -> 'Filter Keys', build -> 'Filter Shared', build -> 'Filter State', build -> 'Keys in Filter', build -> 'Filter Memory';
END $$;
-- EXPLAIN VERBOSE names the columns
SELECT jf_plan('SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep', 'VERBOSE, COSTS OFF');

-- types; keys of two types; several keys; a computed key on the inner side
SELECT jf_check(format('SELECT f.id FROM jf_fact f JOIN jf_dim d ON %s WHERE d.keep', c))
FROM (VALUES ('f.b = d.b'), ('f.t = d.t'), ('f.u = d.u'), ('f.n = d.n'), ('f.d = d.d'), ('f.a = d.b'), ('f.b = d.a'),
	('f.a = d.a AND f.t = d.t'), ('f.a = d.a + 7'), ('f.a + 7 = d.a'), ('f.t = d.t COLLATE "C"'), ('f.n = d.a')) v(c);

-- kinds of joins: semi joins and inner joins, also from the right, drop outer
-- rows; the others do not
SELECT jf_check(c)
FROM (VALUES
	('SELECT f.id FROM jf_fact f WHERE a IN (SELECT a FROM jf_dim WHERE keep)'),
	('SELECT f.id FROM jf_fact f WHERE NOT EXISTS (SELECT FROM jf_dim d WHERE d.a = f.a AND d.keep)'),
	('SELECT f.id, d.t FROM jf_fact f LEFT JOIN jf_dim d ON f.a = d.a AND d.keep'),
	('SELECT f.id, d.t FROM jf_dim d LEFT JOIN jf_fact f ON f.a = d.a AND d.keep'),
	('SELECT f.id, d.t FROM jf_fact f FULL JOIN jf_dim d ON f.a = d.a')) v(c);

-- down through other nodes
SELECT jf_check(c)
FROM (VALUES
	-- grouping by the key
	('SELECT * FROM (SELECT a, count(*) FROM jf_fact GROUP BY a) f JOIN jf_dim d USING (a) WHERE d.keep'),
	('SELECT * FROM (SELECT DISTINCT a FROM jf_fact OFFSET 0) f JOIN jf_dim d USING (a) WHERE d.keep'),
	('SELECT * FROM (SELECT a, id, row_number() OVER (PARTITION BY a ORDER BY id) FROM jf_fact) f JOIN jf_dim d USING (a) WHERE d.keep'),
	-- not by another column, nor by sets
	('SELECT * FROM (SELECT DISTINCT ON (b) a, b FROM jf_fact ORDER BY b, a) f JOIN jf_dim d USING (a) WHERE d.keep'),
	('SELECT * FROM (SELECT a, count(*) FROM jf_fact GROUP BY ROLLUP (a)) f JOIN jf_dim d USING (a) WHERE d.keep'),
	('SELECT * FROM (SELECT a, id, row_number() OVER (ORDER BY id) FROM jf_fact) f JOIN jf_dim d USING (a) WHERE d.keep'),
	-- not below a LIMIT
	('SELECT * FROM (SELECT a, id FROM jf_fact ORDER BY id LIMIT 100) f JOIN jf_dim d USING (a) WHERE d.keep'),
	-- to both sides of a UNION ALL
	('SELECT * FROM (SELECT a FROM jf_fact GROUP BY a UNION ALL SELECT a FROM jf_fact) f JOIN jf_dim d USING (a) WHERE d.keep'),
	-- not into a CTE, but to its reader
	('WITH f AS MATERIALIZED (SELECT * FROM jf_fact) SELECT count(*) FROM f JOIN jf_dim d USING (a) WHERE d.keep'),
	-- not into the nullable side of an outer join
	('SELECT f.id, g.id AS gid FROM (jf_fact f LEFT JOIN jf_fact g ON f.id = g.id + 1) JOIN jf_dim d ON coalesce(g.a, 10) = d.a WHERE d.keep')) v(c);
-- through a join to the table that has the key; two filters in one place
SELECT jf_check('SELECT f.id FROM jf_fact f JOIN jf_dim d ON f.a = d.a JOIN jf_dim e ON f.b = e.b WHERE d.keep AND e.keep');

-- Groups of another equality than the join's: one spelling stands for all of
-- them, and the others may not be dropped
CREATE EXTENSION citext;
CREATE TABLE jf_words (w citext, n int);
INSERT INTO jf_words SELECT CASE i % 2 WHEN 0 THEN 'Word' ELSE 'word' END || i / 2, i FROM generate_series(0, 1999) i;
CREATE TABLE jf_chosen (w text);
INSERT INTO jf_chosen SELECT w FROM jf_words WHERE n % 20 < 2;
ANALYZE jf_words, jf_chosen;
SELECT jf_check('SELECT lower(g.w), sum FROM (SELECT w, sum(n) FROM jf_words GROUP BY w) g JOIN jf_chosen c ON g.w::text = c.w');
SELECT jf_check('SELECT g.w, sum FROM (SELECT w, sum(n) FROM jf_words GROUP BY w) g JOIN (SELECT DISTINCT w::citext FROM jf_chosen) c ON g.w = c.w');

-- The inner side changes from one scan to the next: no filter
SELECT jf_check(c)
FROM (VALUES
	('SELECT * FROM generate_series(1, 5) x, LATERAL (SELECT f.id FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.b = x OFFSET 0) s'),
	('SELECT * FROM generate_series(1, 5) x, LATERAL (SELECT count(*) FROM (SELECT a, count(*) FROM jf_fact GROUP BY a) f JOIN jf_dim d ON f.a = d.a WHERE d.b % 5 = x OFFSET 0) s'),
	('SELECT x, (SELECT count(*) FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.b = x) FROM generate_series(1, 5) x'),
	('SELECT x, (SELECT count(*) FROM jf_fact f JOIN jf_dim d ON f.a = d.a + x) FROM generate_series(1, 500, 100) x'),
	('WITH RECURSIVE r AS (SELECT 1 AS a, 1 AS depth UNION SELECT f.b::int, depth + 1 FROM r JOIN jf_fact f ON f.a = r.a WHERE depth < 5) SELECT * FROM r')) v(c);
-- the outer side does: the filter stays as it is
SELECT jf_check(c)
FROM (VALUES
	('SELECT * FROM generate_series(1, 5) x, LATERAL (SELECT f.id FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep AND f.b = x OFFSET 0) s'),
	('SELECT x, (SELECT count(*) FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep AND f.b = x) FROM generate_series(1, 5) x')) v(c);
-- a parameter that is computed once
SELECT jf_check('SELECT * FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.b < (SELECT avg(b) FROM jf_dim)');

-- Volatile functions run as often as ever
CREATE SEQUENCE jf_calls;
SELECT jf_plan('SELECT * FROM (SELECT a, nextval(''jf_calls'') FROM jf_fact OFFSET 0) f JOIN jf_dim d USING (a) WHERE d.keep');
SELECT count(*) FROM (SELECT a, nextval('jf_calls') FROM jf_fact OFFSET 0) f JOIN jf_dim d USING (a) WHERE d.keep;
SELECT last_value FROM jf_calls;
SELECT jf_plan('SELECT * FROM jf_fact f JOIN jf_dim d USING (a) WHERE d.keep AND nextval(''jf_calls'') > 0');

-- Barriers: a scan that has a condition of the user is one
CREATE FUNCTION jf_leak(bigint) RETURNS bool LANGUAGE plpgsql COST 0.001 AS 'BEGIN RETURN true; END';
CREATE VIEW jf_view WITH (security_barrier) AS SELECT a, count(*) AS n FROM jf_fact WHERE id < 5000 GROUP BY a HAVING count(*) > 1;
SELECT jf_check('SELECT * FROM (SELECT * FROM jf_view WHERE jf_leak(n)) f JOIN jf_dim d USING (a) WHERE d.keep');
ALTER FUNCTION jf_leak(bigint) STABLE;
SELECT jf_check('SELECT * FROM (SELECT * FROM jf_view WHERE jf_leak(n)) f JOIN jf_dim d USING (a) WHERE d.keep');

-- A sample that depends on the time is another one when it is read again
CREATE EXTENSION tsm_system_time;
SELECT jf_plan('SELECT * FROM generate_series(1, 5) x, LATERAL (SELECT f.id FROM jf_fact f JOIN jf_dim d TABLESAMPLE system_time(1000) ON f.a = d.a WHERE f.b = x OFFSET 0) s');
SELECT jf_plan('SELECT * FROM generate_series(1, 5) x, LATERAL (SELECT f.id FROM jf_fact f JOIN jf_dim d TABLESAMPLE system(50) ON f.a = d.a WHERE f.b = x OFFSET 0) s');
SELECT jf_plan('SELECT f.id FROM jf_fact f JOIN jf_dim d TABLESAMPLE system_time(1000) ON f.a = d.a');
DROP EXTENSION tsm_system_time;

-- UPDATE and DELETE
BEGIN;
SELECT jf_plan('UPDATE jf_fact f SET b = 0 FROM jf_dim d WHERE f.a = d.a AND d.keep');
UPDATE jf_fact f SET b = 0 FROM jf_dim d WHERE f.a = d.a AND d.keep;
SELECT count(*) FROM jf_fact WHERE b = 0;
DELETE FROM jf_fact f USING jf_dim d WHERE f.a = d.a AND d.keep;
SELECT count(*) FROM jf_fact;
ROLLBACK;

-- Partitions, with a join of each
CREATE TABLE jf_parts (a int, b int) PARTITION BY HASH (a);
CREATE TABLE jf_parts_0 PARTITION OF jf_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE jf_parts_1 PARTITION OF jf_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
CREATE TABLE jf_few (a int, b int) PARTITION BY HASH (a);
CREATE TABLE jf_few_0 PARTITION OF jf_few FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE jf_few_1 PARTITION OF jf_few FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO jf_parts SELECT i % 1000, i FROM generate_series(1, 5000) i;
INSERT INTO jf_few SELECT i, i FROM generate_series(1, 50) i;
ANALYZE jf_parts, jf_few;
SELECT jf_check('SELECT * FROM jf_parts p JOIN jf_few f USING (a)');
SET enable_partitionwise_join = on;
SELECT jf_check('SELECT * FROM jf_parts p JOIN jf_few f USING (a)');
RESET enable_partitionwise_join;

-- Cursors, and prepared statements: a new setting makes new plans
BEGIN;
DECLARE c SCROLL CURSOR FOR SELECT f.id FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep ORDER BY f.id;
FETCH 2 FROM c;
MOVE LAST IN c;
FETCH BACKWARD 1 FROM c;
FETCH ABSOLUTE 1 FROM c;
CLOSE c;
COMMIT;
PREPARE p(bigint) AS SELECT count(*) FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.b < $1;
SET plan_cache_mode = force_generic_plan;
SELECT jf_plan('EXECUTE p(100)');
EXECUTE p(100);
EXECUTE p(10);
SET bloomfilter.join_filter = off;
SELECT jf_plan('EXECUTE p(100)');
EXECUTE p(100);
EXECUTE p(10);
SET bloomfilter.join_filter = on;
DEALLOCATE p;
RESET plan_cache_mode;

-- Parallel plans
SET max_parallel_workers_per_gather = 2;
SET min_parallel_table_scan_size = 0;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SELECT jf_plan('SELECT count(*) FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');
SELECT jf_check('SELECT f.id, d.t FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep');
SET enable_parallel_hash = off;
SELECT jf_plan('SELECT count(*) FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');
SELECT jf_check('SELECT f.id, d.t FROM jf_fact f JOIN jf_dim d ON f.a = d.a WHERE d.keep');
RESET enable_parallel_hash;
SET max_parallel_workers_per_gather = 0;

-- Without force, the planner decides: not for few rows, nor where all match
SET bloomfilter.join_filter_force = off;
CREATE TABLE jf_big AS SELECT i AS id, i % 20000 AS a, repeat('x', 20) AS pad FROM generate_series(0, 199999) i;
CREATE TABLE jf_keys AS SELECT i AS a, i % 100 AS c FROM generate_series(0, 19999) i;
ANALYZE jf_big, jf_keys;
SELECT jf_plan('SELECT * FROM jf_dim f JOIN jf_dim d ON f.a = d.a WHERE d.keep');
SELECT jf_plan('SELECT * FROM jf_big JOIN jf_keys USING (a)');
SELECT jf_plan('SELECT * FROM jf_big JOIN jf_keys USING (a) WHERE c = 1');
-- A probe that drops nothing switches itself off
UPDATE jf_keys SET c = 1;
SELECT jf_plan('SELECT count(*) FROM jf_big JOIN jf_keys USING (a) WHERE c = 1', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');
-- Nothing that may fail is computed of a part of a group, whether because the
-- probe would pause, or because the first rows come before the filter is there
UPDATE jf_keys SET c = 0 WHERE a % 20 = 0;
SELECT jf_check('SELECT g.* FROM (SELECT a, count(*) AS n FROM jf_big GROUP BY a) g JOIN jf_keys USING (a) WHERE c = 1');
SELECT jf_check('SELECT g.* FROM (SELECT a, 1 / (count(*) / 10) AS n FROM jf_big GROUP BY a) g JOIN jf_keys USING (a) WHERE c = 1');
SELECT jf_plan('SELECT g.* FROM (SELECT a, count(*) AS n FROM jf_big GROUP BY a) g JOIN jf_keys USING (a) WHERE c = 1', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');
SELECT jf_plan('SELECT g.* FROM (SELECT a, 1 / (count(*) / 10) AS n FROM jf_big GROUP BY a) g JOIN jf_keys USING (a) WHERE c = 1', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');
CREATE INDEX ON jf_big (a);
SET enable_hashagg = off;
SET enable_sort = off;
SELECT jf_check('SELECT g.* FROM (SELECT a, count(*) AS n FROM jf_big GROUP BY a) g JOIN jf_keys USING (a) WHERE c = 1');
SELECT jf_check('SELECT g.* FROM (SELECT a, 1 / (count(*) / 10) AS n FROM jf_big GROUP BY a) g JOIN jf_keys USING (a) WHERE c = 1');
SELECT jf_check('SELECT g.* FROM (SELECT a, 1 / (n / 10) AS n FROM (SELECT a, count(*) AS n FROM jf_big GROUP BY a OFFSET 0) b) g JOIN jf_keys USING (a) WHERE c = 1');
RESET enable_hashagg;
RESET enable_sort;
-- A builder that has too little memory gives up
CREATE TABLE jf_many AS SELECT i AS id, (i < 100)::int AS c FROM generate_series(0, 199999) i;
ANALYZE jf_many;
UPDATE jf_many SET c = 1;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT jf_plan('SELECT count(*) FROM jf_big b JOIN jf_many m ON b.a = m.id WHERE c = 1', 'ANALYZE, BUFFERS OFF, TIMING OFF, SUMMARY OFF, COSTS OFF');

DROP VIEW jf_view;
DROP TABLE jf_fact, jf_dim, jf_words, jf_chosen, jf_parts, jf_few, jf_big, jf_keys, jf_many;
DROP SEQUENCE jf_calls;
DROP FUNCTION jf_plan, jf_check, jf_leak;
DROP EXTENSION citext;
