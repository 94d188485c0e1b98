-- What the planner makes of filter @> column.  The tables are small enough for
-- ANALYZE to read all of them: nothing here is a matter of chance.
SET client_min_messages = warning;
SET max_parallel_workers_per_gather = 0;
CREATE DOMAIN planner_code AS varchar(20) CHECK (VALUE <> 'never');
CREATE TYPE planner_mood AS ENUM ('sad', 'ok', 'happy', 'none');
CREATE TABLE planner_t (
	id int,						-- 1 to 20000
	big int8,					-- 2000 values, each ten times
	skewed int,					-- 30% 1, 20% 2, 10% 3, the rest rare
	code text, name planner_code, padded char(12),
	sparse int,					-- 60% NULL
	day date, price numeric, mood planner_mood, id2 uuid, tags int[], doc jsonb,
	few smallint,				-- 5 values
	tens int8, small int2,		-- multiples of 10; -10000 to 9999
	random int8,
	empty int);
INSERT INTO planner_t SELECT i, i % 2000, CASE WHEN i % 10 < 3 THEN 1 WHEN i % 10 < 5 THEN 2 WHEN i % 10 < 6 THEN 3 ELSE i END,
	'code-' || i, 'code-' || i, 'code-' || i, CASE WHEN i % 10 < 4 THEN i END,
	date '2000-01-01' + i % 5000, i / 4.0, (ARRAY['sad', 'ok', 'happy'])[1 + i % 3]::planner_mood, md5(i::text)::uuid, ARRAY[i, 1], to_jsonb(i), i % 5, i * 10, i - 10001, ('x' || substr(md5(i::text), 1, 15))::bit(60)::int8, NULL
FROM generate_series(1, 20000) i;
ANALYZE planner_t;

-- rows that the planner expects, and rows that there are
CREATE FUNCTION planner_rows(query text, OUT expected float8, OUT actual float8) LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	expected := plan #>> '{0,Plan,Plan Rows}';
	EXECUTE format('SELECT count(*) FROM (%s) s', query) INTO actual;
END $$;
CREATE FUNCTION planner_verdict(expected float8, actual float8) RETURNS text LANGUAGE sql AS $$
	SELECT CASE WHEN expected BETWEEN actual / 2 AND actual * 2 OR greatest(expected, actual) <= 10 THEN 'within 2x' ELSE expected || ' instead of ' || actual END
$$;

-- Filters of members, of strangers, of both; of other sizes and rates
CREATE TABLE planner_cases (col text, what text, build text);
INSERT INTO planner_cases VALUES
	('id', '10 of 20000', 'bloom_agg(x, 10) FROM generate_series(1, 10) x'),
	('id', '100 of 20000', 'bloom_agg(x * 200, 100) FROM generate_series(1, 100) x'),
	('id', '1000 of 20000', 'bloom_agg(x * 20, 1000) FROM generate_series(1, 1000) x'),
	('id', 'half', 'bloom_agg(x * 2, 10000) FROM generate_series(1, 10000) x'),
	('id', 'all', 'bloom_agg(x, 20000) FROM generate_series(1, 20000) x'),
	('id', 'one end', 'bloom_agg(x, 5000) FROM generate_series(1, 5000) x'),
	('id', 'odd', 'bloom_agg(x * 2 - 1, 10000) FROM generate_series(1, 10000) x'),
	('id', 'multiples of 200', 'bloom_agg(x * 200, 100, 0.0001) FROM generate_series(1, 100) x'),
	('tens', 'odd', 'bloom_agg(x * 20 - 10, 10000) FROM generate_series(1, 10000) x'),
	('tens', 'one end', 'bloom_agg(x * 10, 2000) FROM generate_series(1, 2000) x'),
	('tens', 'strangers', 'bloom_agg(x * 10 + 5, 20000) FROM generate_series(1, 20000) x'),
	('small', 'odd', 'bloom_agg(x * 2 - 1, 10000) FROM generate_series(-5000, 5000) x'),
	('random', '2000 of 20000', 'bloom_agg(random, 2000) FROM (SELECT random FROM planner_t ORDER BY code LIMIT 2000) s'),
	('random', '5000 strangers', 'bloom_agg(x, 5000) FROM generate_series(1, 5000) x'),
	('id', '100 strangers', 'bloom_agg(-x, 100) FROM generate_series(1, 100) x'),
	('id', '10000 strangers', 'bloom_agg(-x, 10000) FROM generate_series(1, 10000) x'),
	('id', '100000 strangers', 'bloom_agg(-x, 100000) FROM generate_series(1, 100000) x'),
	('id', 'strangers, 10%', 'bloom_agg(-x, 10000, 0.1) FROM generate_series(1, 10000) x'),
	('id', 'strangers, 0.01%', 'bloom_agg(-x, 10000, 0.0001) FROM generate_series(1, 10000) x'),
	('id', 'members and strangers', 'bloom_agg(x, 10000) FROM generate_series(15001, 25000) x'),
	('id', 'superset', 'bloom_agg(x, 100000) FROM generate_series(-50000, 50000) x'),
	('id', 'overfilled', 'bloom_agg(-x, 100) FROM generate_series(1, 400) x'),
	('id', 'standard', 'bloom_agg(x * 20, bloomfilter(1000, layout => ''standard'')) FROM generate_series(1, 1000) x'),
	('id', 'counting', 'bloom_agg(x * 20, bloomfilter(1000, layout => ''counting'')) FROM generate_series(1, 1000) x'),
	('id', 'cuckoo', 'bloom_agg(x * 20, bloomfilter(1000, layout => ''cuckoo'')) FROM generate_series(1, 1000) x'),
	('id', 'layers', 'bloom_agg(x * 20, bloomfilter(10, expansion => 2)) FROM generate_series(1, 1000) x'),
	('id', 'keyed', 'bloom_agg(x * 20, bloomfilter(1000, hash => ''blake2b'', key => ''secret'')) FROM generate_series(1, 1000) x'),
	('id', 'bigint', 'bloom_agg(x::int8 * 20, 1000) FROM generate_series(1, 1000) x'),
	('big', '20 of 2000', 'bloom_agg(x * 100, 20) FROM generate_series(0, 19) x'),
	('big', 'half', 'bloom_agg(x, 1000) FROM generate_series(1, 1000) x'),
	('big', '1000 strangers', 'bloom_agg(x, 1000) FROM generate_series(3001, 4000) x'),
	('skewed', 'the commonest', 'bloom_add(bloomfilter(100), 1)'),
	('skewed', 'three common ones', 'bloom_agg(x, 100) FROM generate_series(1, 3) x'),
	('skewed', 'a rare one', 'bloom_add(bloomfilter(100), 9)'),
	('skewed', 'the rare ones', 'bloom_agg(x, 8000) FROM (SELECT DISTINCT skewed FROM planner_t WHERE skewed > 3) s(x)'),
	('skewed', 'half of the rare ones', 'bloom_agg(x, 4000) FROM (SELECT DISTINCT skewed FROM planner_t WHERE skewed > 10000) s(x)'),
	('skewed', 'strangers', 'bloom_agg(-x, 5000) FROM generate_series(1, 5000) x'),
	('few', 'one of 5', 'bloom_add(bloomfilter(10), 1)'),
	('few', 'a stranger', 'bloom_add(bloomfilter(10), 77)'),
	('code', '1000 of 20000', 'bloom_agg(''code-'' || x, 1000) FROM generate_series(1, 1000) x'),
	('code', '10000 strangers', 'bloom_agg(''kode-'' || x, 10000) FROM generate_series(1, 10000) x'),
	('name', '1000 of 20000', 'bloom_agg(''code-'' || x, 1000) FROM generate_series(1, 1000) x'),
	('name', '10000 strangers', 'bloom_agg(''kode-'' || x, 10000) FROM generate_series(1, 10000) x'),
	('padded', '1000 of 20000', 'bloom_agg((''code-'' || x)::char(30), 1000) FROM generate_series(1, 1000) x'),
	('padded', '10000 strangers', 'bloom_agg(''kode-'' || x, 10000) FROM generate_series(1, 10000) x'),
	('sparse', 'half, of 40%', 'bloom_agg(x, 10000) FROM generate_series(1, 10000) x'),
	('sparse', 'strangers', 'bloom_agg(-x, 10000) FROM generate_series(1, 10000) x'),
	('day', '500 of 5000', 'bloom_agg(date ''2000-01-01'' + x, 500) FROM generate_series(1, 500) x'),
	('day', '5000 strangers', 'bloom_agg(date ''1900-01-01'' + x, 5000) FROM generate_series(1, 5000) x'),
	('price', '1000 of 20000', 'bloom_agg(x / 4.0, 1000) FROM generate_series(1, 1000) x'),
	('price', '20000 strangers', 'bloom_agg(x / 7.0 + 0.01, 20000) FROM generate_series(1, 20000) x'),
	('mood', 'one of 3', 'bloom_add(bloomfilter(10), ''ok''::planner_mood)'),
	('mood', 'a stranger', 'bloom_add(bloomfilter(10), ''none''::planner_mood)'),
	('id2', '1000 of 20000', 'bloom_agg(md5(x::text)::uuid, 1000) FROM generate_series(1, 1000) x'),
	('id2', '10000 strangers', 'bloom_agg(md5(x::text || ''!'')::uuid, 10000) FROM generate_series(1, 10000) x'),
	('tags', '1000 of 20000', 'bloom_agg(ARRAY[x, 1], 1000) FROM generate_series(1, 1000) x'),
	('doc', '1000 of 20000', 'bloom_agg(to_jsonb(x), 1000) FROM generate_series(1, 1000) x'),
	('empty', 'of NULLs', 'bloom_agg(x, 1000) FROM generate_series(1, 1000) x');
CREATE TABLE planner_filters (col text, what text, filter bloomfilter) WITH (autovacuum_enabled = false);
DO $$
DECLARE
	c planner_cases;
BEGIN
	FOR c IN SELECT * FROM planner_cases LOOP
		EXECUTE format('INSERT INTO planner_filters SELECT %L, %L, %s', c.col, c.what, c.build);
	END LOOP;
END $$;
-- (rows that are NULL pass NOT, as the planner counts)
SELECT col, what, planner_verdict(r.expected, r.actual) AS "@>", planner_verdict(n.expected, n.actual + nulls) AS "NOT", planner_verdict(f.expected, f.actual) AS function,
	a.expected = r.expected AND b.expected = r.expected AS "<@"
FROM planner_filters c,
	planner_rows(format('SELECT * FROM planner_t WHERE %L::bloomfilter @> %I', filter, col)) r,
	planner_rows(format('SELECT * FROM planner_t WHERE NOT %L::bloomfilter @> %I', filter, col)) n,
	planner_rows(format('SELECT * FROM planner_t WHERE bloom_contains(%L, %I)', filter, col)) f,
	planner_rows(format('SELECT * FROM planner_t WHERE %I <@ %L::bloomfilter', col, filter)) a,
	LATERAL (SELECT count(*) AS nulls FROM planner_t, to_jsonb(planner_t) t WHERE col IN ('sparse', 'empty') AND t ->> col IS NULL) z,
	planner_rows(format('SELECT * FROM planner_t WHERE bloom_contained(%I, %L::bloomfilter)', col, filter)) b
ORDER BY c.ctid;
-- with another condition
SELECT planner_verdict(expected, actual) AS "AND" FROM planner_filters, planner_rows(format('SELECT * FROM planner_t WHERE %L::bloomfilter @> id AND big < 1000', filter)) WHERE what = '1000 of 20000' AND col = 'id';
SELECT planner_verdict(expected, actual) AS "OR" FROM planner_filters, planner_rows(format('SELECT * FROM planner_t WHERE %L::bloomfilter @> id OR big < 10', filter)) WHERE what = '1000 of 20000' AND col = 'id';

-- functions that are folded are constants, too
SELECT expected < 500 FROM planner_rows('SELECT * FROM planner_t WHERE bloom_add(bloomfilter(100), 5) @> id');
-- filters that contain nothing, and no filter
SELECT expected, actual FROM planner_rows('SELECT * FROM planner_t WHERE bloomfilter(1000) @> id');
SELECT expected, actual FROM planner_rows('SELECT * FROM planner_t WHERE bloomfilter() @> code');
SELECT expected, actual FROM planner_rows('SELECT * FROM planner_t WHERE NOT bloomfilter() @> code');
SELECT expected <= 1 AS none, actual FROM planner_rows('SELECT * FROM planner_t WHERE NULL::bloomfilter @> id');
SELECT expected <= 1 AS none, actual FROM planner_rows('SELECT * FROM planner_t WHERE id <@ NULL::bloomfilter');
SELECT expected <= 1 AS none, actual FROM planner_rows('SELECT * FROM planner_t WHERE bloom_contains(NULL, id)');

-- filters that it does not see: 1 row in 10
SELECT expected FROM planner_rows('SELECT * FROM planner_t WHERE (SELECT filter FROM planner_filters LIMIT 1) @> id');
SELECT expected FROM planner_rows('SELECT * FROM planner_t WHERE id <@ (SELECT filter FROM planner_filters LIMIT 1)');
SELECT expected FROM planner_rows('SELECT * FROM planner_t WHERE bloom_contains((SELECT filter FROM planner_filters LIMIT 1), id)');
SELECT expected FROM planner_rows('SELECT * FROM planner_t WHERE NOT (SELECT filter FROM planner_filters LIMIT 1) @> id');
SELECT expected FROM planner_rows('SELECT * FROM planner_t WHERE (SELECT bloom_agg(id) FROM planner_t WHERE id < 0) @> id');
SELECT expected FROM planner_rows('SELECT t.* FROM planner_t t, planner_filters f WHERE f.col = ''doc'' AND f.filter @> t.doc');
SELECT expected FROM planner_rows('SELECT * FROM planner_filters WHERE col = ''doc'' AND filter @> ''5''::jsonb');
PREPARE planner_unknown(bloomfilter) AS SELECT * FROM planner_t WHERE $1 @> id;
SET plan_cache_mode = force_generic_plan;
CREATE FUNCTION planner_generic() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) EXECUTE planner_unknown(bloomfilter(10))' INTO plan;
	RETURN plan #>> '{0,Plan,Plan Rows}';
END $$;
SELECT planner_generic();
RESET plan_cache_mode;
SELECT planner_generic();

-- expressions, and columns without statistics: something sane
CREATE TABLE planner_blank AS SELECT i AS id FROM generate_series(1, 1000) i;
ALTER TABLE planner_blank SET (autovacuum_enabled = off);
SELECT what, bool_and(expected BETWEEN 1 AND 20000) AS sane FROM planner_filters,
	LATERAL (SELECT * FROM planner_rows(format('SELECT * FROM planner_t WHERE %L::bloomfilter @> (id + 1)', filter))
		UNION ALL SELECT * FROM planner_rows(format('SELECT * FROM planner_blank WHERE %L::bloomfilter @> id', filter))
		UNION ALL SELECT * FROM planner_rows(format('SELECT * FROM generate_series(1, 1000) x WHERE %L::bloomfilter @> x', filter))
		UNION ALL SELECT * FROM planner_rows(format('SELECT * FROM (SELECT DISTINCT id FROM planner_t) s WHERE %L::bloomfilter @> id', filter))) r
WHERE what IN ('1000 of 20000', '10000 strangers', 'all') AND col = 'id' GROUP BY what ORDER BY what;
-- statistics of an expression
CREATE INDEX planner_expression ON planner_t ((id % 100));
ANALYZE planner_t;
SELECT planner_verdict(expected, actual) FROM planner_rows('SELECT * FROM planner_t WHERE bloom_add(bloomfilter(100), 7) @> (id % 100)');
-- of another kind: an error when it runs, and none when it is planned
SELECT count(*) FROM planner_t WHERE bloom_add(bloomfilter(10), 'x') @> id AND id < 0;
SELECT count(*) FROM planner_t WHERE bloom_add(bloomfilter(10), 'x') @> id;
-- statistics that who asks may not see are not used
CREATE ROLE regress_bloom_planner;
GRANT SELECT ON planner_cases, planner_filters TO regress_bloom_planner;
CREATE VIEW planner_view WITH (security_barrier) AS SELECT * FROM planner_t WHERE skewed > 3;
GRANT SELECT ON planner_view TO regress_bloom_planner;
SET ROLE regress_bloom_planner;
SELECT expected BETWEEN 1 AND 20000 AS sane, actual FROM planner_rows('SELECT * FROM planner_view WHERE bloom_add(bloomfilter(100), 1) @> skewed');
RESET ROLE;
DROP VIEW planner_view;
REVOKE ALL ON planner_cases, planner_filters FROM regress_bloom_planner;
DROP ROLE regress_bloom_planner;

-- cheaper conditions first, dearer ones last
CREATE FUNCTION planner_dear(int) RETURNS boolean LANGUAGE plpgsql COST 1000 AS 'BEGIN RETURN true; END';
CREATE FUNCTION planner_order(condition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
	filter text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) SELECT * FROM planner_t WHERE ' || condition INTO plan;
	filter := plan #>> '{0,Plan,Filter}';
	RETURN (SELECT string_agg(m[1], ' ') FROM regexp_matches(filter, '(@>|> 7|planner_dear|bloom_contains_any)', 'g') m);
END $$;
SELECT planner_order('(SELECT filter FROM planner_filters LIMIT 1) @> id AND id > 7');
SELECT planner_order('planner_dear(id) AND (SELECT filter FROM planner_filters LIMIT 1) @> id AND id > 7');
SELECT planner_order('bloom_contains_any((SELECT filter FROM planner_filters LIMIT 1), tags) AND planner_dear(id) AND (SELECT filter FROM planner_filters LIMIT 1) @> id AND id > 7');

DEALLOCATE planner_unknown;
DROP TABLE planner_t, planner_cases, planner_filters, planner_blank;
DROP FUNCTION planner_rows, planner_verdict, planner_generic, planner_order, planner_dear;
DROP TYPE planner_mood, planner_code;
RESET max_parallel_workers_per_gather;
RESET client_min_messages;
