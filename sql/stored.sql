-- Filters in tables: a stored filter answers as the same filter in memory does,
-- and reads no more than it must.
SET client_min_messages = warning;
CREATE SCHEMA stored_schema_with_a_name_nearly_as_long_as_a_name_can_be;
CREATE TYPE stored_schema_with_a_name_nearly_as_long_as_a_name_can_be.stored_enum_with_a_name_nearly_as_long_as_a_name_can_be
	AS ENUM ('0', '1', '2', '3', '4', '5', '6', '7', '8', '9');

-- a template, what makes an element of a number x, and how many there are
CREATE TABLE stored_specs (id int PRIMARY KEY, name text, template text, element text, n int);
INSERT INTO stored_specs VALUES
	(1, 'blocked, inline', 'bloomfilter(100)', 'x', 100),
	(2, 'blocked, 8 kB', 'bloomfilter(6600)', 'x', 6000),
	(3, 'blocked, 2 MB', 'bloomfilter(1600000)', 'x', 50000),
	(4, 'blocked, 500 kB, sparse', 'bloomfilter(400000)', 'x', 10),
	(5, 'blocked, k = 1', 'bloomfilter(6600, hashes => 1)', 'x', 6000),
	(6, 'blocked, k = 16', 'bloomfilter(6600, hashes => 16)', 'x', 3000),
	(7, 'standard, 8 kB', 'bloomfilter(6600, layout => ''standard'')', 'x', 6000),
	(8, 'standard, 500 kB', 'bloomfilter(425000, layout => ''standard'')', 'x', 50000),
	(9, 'standard, k = 64', 'bloomfilter(6600, layout => ''standard'', hashes => 64)', 'x', 700),
	(10, 'standard, k = 64, 500 kB', 'bloomfilter(425000, layout => ''standard'', hashes => 64)', 'x', 5000),
	(11, 'counting, 8 kB', 'bloomfilter(1650, layout => ''counting'')', 'x', 1500),
	(12, 'counting, 500 kB', 'bloomfilter(107000, layout => ''counting'')', 'x', 20000),
	(13, 'cuckoo, 8 kB', 'bloomfilter(6600, layout => ''cuckoo'')', 'x', 6600),
	(14, 'cuckoo, 500 kB', 'bloomfilter(425000, layout => ''cuckoo'')', 'x', 50000),
	(15, 'cuckoo, wide', 'bloomfilter(5000, 0.0000001, layout => ''cuckoo'')', 'x', 5000),
	(16, 'blake2b', 'bloomfilter(6600, layout => ''standard'', hash => ''blake2b'')', 'x', 3000),
	(17, 'keyed', 'bloomfilter(6600, hash => ''blake2b'', key => decode(repeat(''5ec7e7ff'', 8), ''hex''))', 'x', 3000),
	(18, 'keyed, 500 kB', 'bloomfilter(425000, layout => ''standard'', hash => ''blake2b'', key => ''secret'')', 'x', 5000),
	(19, 'layers', 'bloomfilter(100, expansion => 2)', 'x', 6000),
	(20, 'many layers', 'bloomfilter(500, expansion => 1)', 'x', 14000),
	(21, 'standard, layers', 'bloomfilter(100, layout => ''standard'', expansion => 3)', 'x', 6000),
	(22, 'cuckoo, layers', 'bloomfilter(100, layout => ''cuckoo'', expansion => 4)', 'x', 6000),
	(23, 'keyed, layers', 'bloomfilter(1000, hash => ''blake2b'', key => ''secret'', expansion => 16)', 'x', 30000),
	(24, 'text', 'bloomfilter(6600)', '''key-'' || x', 3000),
	(25, 'enum', 'bloomfilter(6600)',
		'(x % 10)::text::stored_schema_with_a_name_nearly_as_long_as_a_name_can_be.stored_enum_with_a_name_nearly_as_long_as_a_name_can_be', 7),
	(26, 'enum, keyed, layers', 'bloomfilter(1, 0.0001, hash => ''blake2b'', key => ''secret'', expansion => 1)',
		'(x % 10)::text::stored_schema_with_a_name_nearly_as_long_as_a_name_can_be.stored_enum_with_a_name_nearly_as_long_as_a_name_can_be', 7),
	(27, 'composite', 'bloomfilter(6600)', '(x % 7, ''key-'' || x)', 3000),
	(28, 'array', 'bloomfilter(6600, layout => ''cuckoo'')', 'ARRAY[x, 0]', 3000),
	(29, 'jsonb', 'bloomfilter(6600)', 'to_jsonb(x)', 3000),
	(30, 'numeric, 500 kB', 'bloomfilter(400000)', 'x / 8.0', 5000),
	(31, 'empty', 'bloomfilter(6600)', 'x', 0),
	(32, 'unsized', 'bloomfilter()', 'x', 0);

CREATE TABLE stored_external (id int PRIMARY KEY, filter bloomfilter);
DO $$
DECLARE
	s stored_specs;
BEGIN
	FOR s IN SELECT * FROM stored_specs LOOP
		EXECUTE format('INSERT INTO stored_external SELECT %s, %s', s.id,
			CASE WHEN s.n = 0 THEN s.template ELSE format('bloom_agg(%s, %s) FROM generate_series(1, %s) x', s.element, s.template, s.n) END);
	END LOOP;
END $$;
INSERT INTO stored_external VALUES (33, NULL);

-- compressed where that pays, or inline as long as possible (of the large ones,
-- some)
CREATE TABLE stored_pglz (LIKE stored_external INCLUDING ALL);
CREATE TABLE stored_lz4 (LIKE stored_external INCLUDING ALL);
CREATE TABLE stored_main (LIKE stored_external INCLUDING ALL);
ALTER TABLE stored_pglz ALTER filter SET STORAGE EXTENDED;
ALTER TABLE stored_lz4 ALTER filter SET STORAGE EXTENDED;
ALTER TABLE stored_main ALTER filter SET STORAGE MAIN;
DO $$
BEGIN
	ALTER TABLE stored_pglz ALTER filter SET COMPRESSION pglz;
	ALTER TABLE stored_lz4 ALTER filter SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;						-- built without lz4
END $$;
INSERT INTO stored_pglz SELECT * FROM stored_external;
INSERT INTO stored_lz4 SELECT * FROM stored_external WHERE id NOT IN (8, 10, 12, 14, 18, 30);
INSERT INTO stored_main SELECT * FROM stored_external WHERE id NOT IN (8, 10, 12, 14, 18, 30);

-- in other values
CREATE DOMAIN stored_domain AS bloomfilter CHECK (bloom_cardinality(VALUE) >= 0);
CREATE TYPE stored_composite AS (x "char", f bloomfilter);
CREATE TABLE stored_wrapped (id int PRIMARY KEY, d stored_domain, c stored_composite, a bloomfilter[]);
INSERT INTO stored_wrapped SELECT id, filter, ROW('x', filter)::stored_composite, ARRAY[NULL, filter] FROM stored_external WHERE id NOT IN (8, 10, 12, 14, 18, 30);
VACUUM ANALYZE stored_external, stored_pglz, stored_lz4, stored_main, stored_wrapped;

-- are they stored as they should be?
SELECT count(*) FILTER (WHERE pg_column_size(filter) > 8000) AS "out of line", count(*) FILTER (WHERE pg_column_size(filter) > 400000) AS large,
	count(*) FILTER (WHERE pg_column_size(filter) < 2000) AS inline, count(pg_column_compression(filter)) AS compressed FROM stored_external;
SELECT max(layers) > 20 AS layers, count(*) FILTER (WHERE keyed) AS keyed, count(*) FILTER (WHERE bytes - bits / 8 > 128 AND layers = 1) AS "long headers"
FROM stored_external, bloom_info(filter);
SELECT count(*) FILTER (WHERE pg_column_compression(filter) = 'pglz' AND id = 4) AS sparse, count(*) FILTER (WHERE pg_column_compression(filter) IS NULL AND id = 2) AS dense FROM stored_pglz;
SELECT count(*) FILTER (WHERE pg_column_compression(filter) IS NOT NULL AND id = 4) AS sparse FROM stored_lz4;
SELECT count(*) FILTER (WHERE pg_column_compression(filter) IS NOT NULL AND id = 4) AS sparse FROM stored_main;

-- Ask a filter in all ways, by members and by strangers.  place is a query that
-- returns it.
CREATE FUNCTION stored_ask(spec int, place text, OUT how text, OUT answers text) RETURNS SETOF record LANGUAGE plpgsql AS $$
DECLARE
	s stored_specs := (SELECT s FROM stored_specs s WHERE id = spec);
	keys text := replace('(SELECT i, CASE WHEN i % 2 = 1 AND n > 0 THEN 1 + i * n / 301 ELSE n + i * 7919 END AS x FROM generate_series(1, 300) i, (SELECT N AS n) n) k', 'N AS', s.n || ' AS');
	answer boolean;
	m int;
BEGIN
	place := format(place, spec);
	-- over and over in one execution
	how := '@>';
	EXECUTE format('WITH f AS MATERIALIZED (%s) SELECT string_agg((filter @> (%s))::int::text, '''' ORDER BY i) FROM f, %s', place, s.element, keys) INTO answers;
	RETURN NEXT;
	-- each time anew
	how := 'anew';
	answers := '';
	FOR j IN 1..10 LOOP
		EXECUTE format('SELECT (%s) <@ filter FROM (%s) f, %s WHERE i = %s', s.element, place, keys, j) INTO answer;
		answers := answers || coalesce(answer::int::text, '');
	END LOOP;
	RETURN NEXT;
	-- arrays, with a NULL and without
	FOREACH m IN ARRAY '{1,4,50,300}'::int[] LOOP
		CONTINUE WHEN s.name = 'array';
		how := m || ' keys';
		EXECUTE format('SELECT concat_ws('' '', bloom_contains_each(filter, a), bloom_contains_any(filter, a), bloom_contains_all(filter, a), bloom_contains_any(filter, b), bloom_contains_all(filter, c), bloom_contains_each(filter, c))
			FROM (%s) f, (SELECT array_agg(CASE WHEN i <> 3 THEN (%2$s) END ORDER BY i DESC) AS a, array_agg((%2$s) ORDER BY i) FILTER (WHERE i %% 2 = 0) AS b,
				array_agg((%2$s) ORDER BY i) FILTER (WHERE i %% 2 = 1) AS c FROM %3$s WHERE i <= %4$s) s', place, s.element, keys, m) INTO answers;
		RETURN NEXT;
	END LOOP;
END $$;
CREATE TEMP TABLE stored_answers AS
SELECT spec, way, a.* FROM generate_series(1, 33) spec, (VALUES
	('memory', 'SELECT filter::bytea::bloomfilter AS filter FROM stored_external WHERE id = %s'),
	('external', 'SELECT filter FROM stored_external WHERE id = %s'),
	('pglz', 'SELECT filter FROM stored_pglz WHERE id = %s'),
	('lz4', 'SELECT filter FROM stored_lz4 WHERE id = %s'),
	('main', 'SELECT filter FROM stored_main WHERE id = %s'),
	('domain', 'SELECT d AS filter FROM stored_wrapped WHERE id = %s'),
	('composite', 'SELECT (c).f AS filter FROM stored_wrapped WHERE id = %s'),
	('array', 'SELECT a[2] AS filter FROM stored_wrapped WHERE id = %s')) w(way, place), stored_ask(spec, place) a
WHERE spec < 33 AND (way IN ('memory', 'external', 'pglz') OR spec NOT IN (8, 10, 12, 14, 18, 30));
-- all ways give the same answers
SELECT count(DISTINCT (spec, how)) AS questions, count(DISTINCT (spec, how, answers)) AS answers, count(*) AS asked FROM stored_answers;
-- which are right
SELECT count(*),
	bool_and(translate(answers, '01', '') = '' AND length(answers) = 300) AS complete,
	bool_and(n = 0 OR answers ~ '^(1[01])*$') AS "no member lost",
	count(*) FILTER (WHERE length(replace(answers, '0', '')) > 170) AS weak
FROM stored_answers JOIN stored_specs ON spec = id WHERE way = 'memory' AND how = '@>';
SELECT name, length(replace(answers, '0', '')) AS found FROM stored_answers JOIN stored_specs ON spec = id
WHERE way = 'memory' AND how = '@>' AND length(replace(answers, '0', '')) NOT BETWEEN 150 AND 170 ORDER BY id;
SELECT answers FROM stored_answers WHERE way = 'external' AND spec = 3 AND how = '4 keys';
SELECT answers FROM stored_answers WHERE way = 'external' AND spec = 31 AND how = '4 keys';
-- anonymous records: each says what it is
SELECT bloom_contains_each(filter, ARRAY[(1, 'key-1'), NULL, (1, 'key-0'), (1, NULL)]) AS each, bloom_contains_each(filter, ARRAY[NULL::record, (1, 'key-1'::text)]) AS "NULL first",
	bloom_contains_any(filter, ARRAY[NULL::record]) AS "NULL", bloom_contains_any(filter, '{}'::record[]) AS none FROM stored_external WHERE id = 27;
SELECT bloom_contains_each(filter, ARRAY[(1, 'key-1'::text), (1, 1)]) FROM stored_external WHERE id = 27;
-- many filters take turns at one call
SELECT count(*), count(*) FILTER (WHERE answer) AS found, count(*) FILTER (WHERE answer <> memory) AS different
FROM (SELECT f.filter @> x AS answer, m.filter @> x AS memory
	FROM generate_series(1, 20) x,
		LATERAL (SELECT id, filter FROM stored_external UNION ALL SELECT id, filter FROM stored_pglz UNION ALL SELECT id, filter FROM stored_main
			UNION ALL SELECT id, (c).f FROM stored_wrapped WHERE id < 3 ORDER BY id) f
		JOIN (SELECT id, filter::bytea::bloomfilter FROM stored_external WHERE id IN (1, 2, 4, 7, 13, 17, 20, 31, 32, 33)) m USING (id)) s;
-- NULL filters
SELECT filter @> 1 AS "@>", 1 <@ filter AS "<@", bloom_contains_any(filter, '{1}'::int[]), bloom_contains_all(filter, '{1}'::int[]), bloom_contains_each(filter, '{1}'::int[]),
	bloom_cardinality(filter), (bloom_info(filter)).layout FROM stored_external WHERE id = 33;
-- values of other kinds, out of line as in memory
SELECT filter @> 'a' FROM stored_external WHERE id = 3;
SELECT filter @> 1 FROM stored_external WHERE id = 24;
SELECT filter @> 'a' FROM stored_external WHERE id = 25;
SELECT bloom_contains_each(filter, ARRAY['a', 'b']) FROM stored_external WHERE id = 3;
-- Arrays without elements
SELECT count(*), bool_or(bloom_contains_any(filter, '{}'::int[])) AS any, bool_and(bloom_contains_all(filter, '{}'::int[])) AS all, max(bloom_contains_each(filter, '{}'::int[])) AS each
FROM stored_external WHERE id < 24;
SELECT filter @> '1'::numeric, filter @> '0.125' FROM stored_external WHERE id = 30;
SELECT filter @> '1'::numeric AS member, filter @> '0.0625'::numeric AS stranger FROM stored_external WHERE id = 30;

-- ------------------------------------------------------------------------
-- Over and over: the filter is loaded, and is the right one all the same
-- ------------------------------------------------------------------------
CREATE FUNCTION stored_counts(n int, OUT initplan int, OUT "join" int, OUT correlated int, OUT memory int) LANGUAGE plpgsql AS $$
BEGIN
	SELECT count(*) INTO initplan FROM generate_series(1, n) x WHERE (SELECT filter FROM stored_external WHERE id = 3) @> x;
	SELECT count(*) INTO "join" FROM generate_series(1, n) x, stored_external WHERE id = 3 AND filter @> x;
	SELECT count(*) INTO correlated FROM generate_series(1, n) x WHERE (SELECT filter @> x FROM stored_external WHERE id = 3 + x * 0);
	SELECT count(*) INTO memory FROM (SELECT filter::bytea::bloomfilter FROM stored_external WHERE id = 3 OFFSET 0) f, LATERAL (SELECT x FROM generate_series(1, n) x WHERE filter @> x) s;
END $$;
SELECT initplan = memory AS initplan, "join" = memory AS "join", correlated = memory AS correlated, memory - 50000 BETWEEN 0 AND 100 AS plausible FROM stored_counts(55000);
SET work_mem = '64kB';			-- never loaded
SELECT initplan = memory AS initplan, "join" = memory AS "join", correlated = memory AS correlated FROM stored_counts(3000);
RESET work_mem;

-- a row that is updated in the same transaction; PL/pgSQL keeps what an
-- expression has found out until the transaction ends
CREATE TABLE stored_one (name text PRIMARY KEY, filter bloomfilter);
INSERT INTO stored_one SELECT 'f', bloom_agg(x, 50000) FROM generate_series(1, 10000) x;
CREATE FUNCTION stored_found(VARIADIC keys int[]) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
	found text := '';
BEGIN
	SELECT filter INTO f FROM stored_one WHERE name = 'f';
	FOR i IN 1..40 LOOP
		IF NOT f @> (i * 200) THEN
			RETURN 'lost';
		END IF;
	END LOOP;
	FOR i IN 1..array_length(keys, 1) LOOP
		found := found || (f @> keys[i])::int;
	END LOOP;
	RETURN found;
END $$;
BEGIN;
SELECT stored_found(-1, -2, -3);
UPDATE stored_one SET filter = bloom_add(filter, -1);
SELECT stored_found(-1, -2, -3);
SAVEPOINT s;
UPDATE stored_one SET filter = bloom_add(filter, -2);
SELECT stored_found(-1, -2, -3);
ROLLBACK TO s;
SELECT stored_found(-1, -2, -3);
UPDATE stored_one SET filter = bloom_add(filter, -3);
SELECT stored_found(-1, -2, -3);
COMMIT;
SELECT stored_found(-1, -2, -3);
-- and an error in between
CREATE FUNCTION stored_trying() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
	found text := '';
	hit boolean;
BEGIN
	FOR i IN 1..30 LOOP
		BEGIN
			UPDATE stored_one SET filter = bloom_add(filter, -10 - i);
			SELECT filter INTO f FROM stored_one;
			hit := true;
			FOR j IN 1..30 LOOP
				hit := hit AND f @> (j * 300) AND f @> (-10 - i);
			END LOOP;
			found := found || hit::int;
			IF i % 3 = 0 THEN
				hit := f @> 'no integer'::text;		-- an error in the middle of it
			ELSIF i % 3 = 1 THEN
				RAISE division_by_zero;
			END IF;
		EXCEPTION WHEN division_by_zero OR datatype_mismatch THEN
			SELECT filter INTO f FROM stored_one;
			found := found || (f @> (i * 300))::int || (f @> (-10 - i))::int;
		END;
	END LOOP;
	RETURN found;
END $$;
SELECT stored_trying();
DO $$
DECLARE
	f bloomfilter;
	found int := 0;
BEGIN
	FOR i IN 1..20 LOOP
		SELECT filter INTO f FROM stored_one;
		FOR j IN 1..20 LOOP
			found := found + (f @> j)::int;
		END LOOP;
		IF i % 2 = 0 THEN
			UPDATE stored_one SET filter = bloom_add(filter, -100 - i);
			COMMIT;
		ELSE
			UPDATE stored_one SET filter = bloom_agg FROM (SELECT bloom_agg(x, 50000) FROM generate_series(-i, 10) x) s;
			ROLLBACK;
		END IF;
	END LOOP;
	RAISE WARNING '% found', found;
END $$;

-- cursors, held and not, while the row changes and goes
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT count(*) FROM (SELECT x FROM generate_series(1, 20000) x WHERE (SELECT filter FROM stored_one) @> x) s;
DECLARE answers SCROLL CURSOR FOR SELECT x, filter @> x AS found FROM stored_one, generate_series(9999, 10004, 2) x;
DECLARE filters CURSOR WITH HOLD FOR SELECT filter FROM stored_one;
FETCH answers;
UPDATE stored_one SET filter = bloom_agg FROM (SELECT bloom_agg(x, 50000) FROM generate_series(10001, 20000) x) s;
FETCH ALL answers;
MOVE BACKWARD ALL answers;
DELETE FROM stored_one;
FETCH answers;
ROLLBACK;
BEGIN;
DECLARE held CURSOR WITH HOLD FOR SELECT x, (SELECT filter FROM stored_one) @> x AS found FROM generate_series(9999, 10004, 2) x;
DECLARE filters CURSOR WITH HOLD FOR SELECT filter FROM stored_one;
COMMIT;
UPDATE stored_one SET filter = bloomfilter(10);
VACUUM stored_one;
FETCH ALL held;
CREATE FUNCTION stored_fetch() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	c refcursor := 'filters';
	f bloomfilter;
BEGIN
	FETCH c INTO f;
	RETURN (f @> 9999)::text || (f @> 0)::text;
END $$;
SELECT stored_fetch();
CLOSE ALL;

-- dead rows in the TOAST table, and a table that is rewritten
TRUNCATE stored_one;
INSERT INTO stored_one SELECT 'g' || g, bloom_agg(x, 4000) FROM generate_series(1, 20) g, generate_series(g * 1000, g * 1000 + 999) x GROUP BY g;
UPDATE stored_one SET filter = bloom_add(filter, -1) WHERE substr(name, 2)::int % 2 = 0;
UPDATE stored_one SET filter = bloom_add(filter, -2) WHERE substr(name, 2)::int % 4 = 0;
DELETE FROM stored_one WHERE substr(name, 2)::int % 5 = 0;
CREATE VIEW stored_state AS
	SELECT count(*) FILTER (WHERE filter @> x) AS found, bool_and(filter @> x OR x / 1000 <> substr(name, 2)::int) AS members,
		(SELECT count(*) FILTER (WHERE filter @> -1) * 100 + count(*) FILTER (WHERE filter @> -2) FROM stored_one) AS added
	FROM stored_one, generate_series(1000, 20999, 7) x;
SELECT * FROM stored_state;
BEGIN;
UPDATE stored_one SET filter = bloom_clear(filter);
SELECT * FROM stored_state;
ROLLBACK;
SELECT * FROM stored_state;
VACUUM stored_one;
SELECT * FROM stored_state;
VACUUM FULL stored_one;
SELECT * FROM stored_state;
-- within one transaction, between probes
BEGIN;
CREATE FUNCTION pg_temp.ask(wanted text, x int) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter := (SELECT filter FROM stored_one WHERE name = wanted);
	found boolean := true;
BEGIN
	FOR i IN 1..20 LOOP
		found := found AND f @> x;
	END LOOP;
	RETURN found;
END $$;
SELECT pg_temp.ask('g1', 1000), pg_temp.ask('g1', -1), pg_temp.ask('g2', 2000), pg_temp.ask('g2', -1);
CLUSTER stored_one USING stored_one_pkey;
SELECT pg_temp.ask('g1', 1000), pg_temp.ask('g1', -1), pg_temp.ask('g2', 2000), pg_temp.ask('g2', -1);
ALTER TABLE stored_one ADD more int DEFAULT 1 + (random() * 0)::int;
SELECT pg_temp.ask('g1', 1000), pg_temp.ask('g1', -1), pg_temp.ask('g2', 2000), pg_temp.ask('g2', -1);
ROLLBACK;
SELECT * FROM stored_state;

-- parallel workers
CREATE TABLE stored_keys AS SELECT x FROM generate_series(1, 30000) x;
ALTER TABLE stored_keys SET (parallel_workers = 2);
ANALYZE stored_keys;
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE FUNCTION stored_parallel(query text) RETURNS TABLE (parallel boolean, result bigint) LANGUAGE plpgsql AS $$
DECLARE
	plan text;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	parallel := plan ~ '"Workers Planned": [1-9]';
	EXECUTE query INTO result;
	RETURN NEXT;
END $$;
CREATE TEMP TABLE stored_results AS
SELECT leader, id, p.* FROM unnest('{on,off}'::text[]) leader, unnest('{3,4,14,17,20}'::int[]) id, set_config('parallel_leader_participation', leader, false),
	LATERAL stored_parallel(format('SELECT count(*) FROM stored_keys WHERE (SELECT filter FROM stored_external WHERE id = %s) @> x', id)) p;
RESET parallel_leader_participation;
INSERT INTO stored_results
SELECT 'join', id, p.* FROM unnest('{3,4,14,17,20}'::int[]) id, stored_parallel(format('SELECT count(*) FROM stored_keys, stored_external WHERE id = %s AND filter @> x', id)) p;
SET max_parallel_workers_per_gather = 0;
SELECT id, count(*), count(DISTINCT result) AS results, bool_and(parallel) AS parallel,
	bool_and(result = (SELECT count(*) FROM stored_keys, (SELECT filter::bytea::bloomfilter FROM stored_external e WHERE e.id = r.id OFFSET 0) f WHERE filter @> x)) AS right
FROM stored_results r GROUP BY id ORDER BY id;
RESET max_parallel_workers_per_gather;

-- ------------------------------------------------------------------------
-- What is read
-- ------------------------------------------------------------------------
SET max_parallel_workers_per_gather = 0;
SET enable_seqscan = off;
CREATE FUNCTION stored_buffers(query text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	FOR i IN 1..2 LOOP			-- the first may look into the catalogs
		EXECUTE 'EXPLAIN (ANALYZE, BUFFERS, TIMING off, FORMAT JSON) ' || query INTO plan;
	END LOOP;
	RETURN (plan #>> '{0,Plan,Shared Hit Blocks}')::int + (plan #>> '{0,Plan,Shared Read Blocks}')::int;
END $$;
-- what it reads beyond the row
CREATE FUNCTION stored_beyond(id int, expression text) RETURNS int LANGUAGE sql AS $$
	SELECT stored_buffers(format('SELECT %s FROM stored_external WHERE id = %s', expression, id)) - stored_buffers(format('SELECT filter IS NULL FROM stored_external WHERE id = %s', id))
$$;
INSERT INTO stored_external SELECT 100, bloom_agg(x, 13000000) FROM generate_series(1, 2000) x;		-- 16 MB
VACUUM stored_external;
SELECT bytes > 16000000 AS large FROM stored_external, bloom_info(filter) WHERE id = 100;
-- one probe, absent or present
SELECT id, max(stored_beyond(id, format('filter @> %s', x))) <= 8 AS few
FROM unnest('{2,3,17,100}'::int[]) id, unnest('{1,777,-1,-777}'::int[]) x GROUP BY id ORDER BY id;
SELECT id, max(stored_beyond(id, format('filter @> %s', x))) <= 4 * (chunks + 1) AS few
FROM (VALUES (8, 7), (12, 7), (14, 3), (13, 3), (10, 64)) v(id, chunks), unnest('{1,777,-1,-777}'::int[]) x GROUP BY id, chunks ORDER BY id;
-- to add what is there already; what is new, and what counts copies, changes as in memory
SELECT id, max(stored_beyond(id, format('bloom_add(filter, %s) IS NULL', x))) <= 8 AS few
FROM unnest('{2,3,17,100}'::int[]) id, unnest('{1,777}'::int[]) x GROUP BY id ORDER BY id;
SELECT count(*) AS pairs, count(*) FILTER (WHERE bloom_add(filter, x) IS DISTINCT FROM bloom_add(filter::bytea::bloomfilter, x)) AS differ
FROM stored_external, unnest('{1,-1,777,-777,NULL}'::int[]) x WHERE id IN (1, 2, 3, 8, 11, 12, 14, 17, 18, 19, 20);
-- inline, empty, unsized
SELECT id, stored_beyond(id, 'filter @> 1') AS none FROM unnest('{1,31,32,33}'::int[]) id;
-- the header alone
SELECT max(stored_beyond(id, expression)) <= 5 AS few
FROM unnest('{2,3,8,12,14,17,20,25,100}'::int[]) id, unnest('{bloom_info(filter),bloom_cardinality(filter),bloom_expected_fpr(filter)}'::text[]) expression;
-- 1,000 keys: each chunk once, in order
SELECT stored_beyond(100, 'bloom_contains_each(filter, (SELECT array_agg(x * 1000) FROM generate_series(1, 1000) x))') <= 4 * chunks + 8 AS few, chunks BETWEEN 900 AND 1000 AS plausible
FROM (SELECT count(DISTINCT (60 + 64 * ((h * blocks) >> 32)) / 1996) AS chunks
	FROM generate_series(1, 1000) x, bloom_hash(x * 1000) d,
		LATERAL (SELECT get_byte(d, 7) * 16777216::bigint + get_byte(d, 6) * 65536 + get_byte(d, 5) * 256 + get_byte(d, 4) AS h) h,
		(SELECT bits / 512 AS blocks FROM stored_external, bloom_info(filter) WHERE id = 100) b) s;
-- a small one is loaded, once
SELECT id, stored_beyond(id, 'bloom_contains_each(filter, (SELECT array_agg(x * 1000) FROM generate_series(1, 1000) x))') <= 8 AS few
FROM unnest('{2,13,17}'::int[]) id ORDER BY id;
-- probed over and over, it is loaded; if memory allows
CREATE FUNCTION pg_temp.over_and_over(n int) RETURNS int LANGUAGE sql AS $$
	SELECT stored_buffers(format('SELECT count(*) FROM generate_series(1, %s) x WHERE (SELECT filter FROM stored_external WHERE id = 3) @> x', n))
$$;
SELECT pg_temp.over_and_over(20000) BETWEEN 300 AND 2000 AS loaded, pg_temp.over_and_over(20000) = pg_temp.over_and_over(10000) AS once, pg_temp.over_and_over(10) < 60 AS slices;
SET work_mem = '64kB';
SELECT pg_temp.over_and_over(20000) > 40000 AS slices;
RESET work_mem;
-- many filters and one key: never a whole filter
CREATE TABLE stored_many (id int, filter bloomfilter);
INSERT INTO stored_many SELECT i, bloom_agg(x, 6600) FROM generate_series(1, 200) i, generate_series(i * 10, i * 10 + 9) x GROUP BY i;
VACUUM ANALYZE stored_many;
SELECT stored_buffers('SELECT count(*) FROM stored_many WHERE filter @> 77') <= 1.5 * stored_buffers('SELECT count(*) FROM stored_many WHERE bloom_cardinality(filter) > 0') AS few;
RESET enable_seqscan;
RESET max_parallel_workers_per_gather;

DROP TABLE stored_external, stored_pglz, stored_lz4, stored_main, stored_wrapped, stored_one, stored_keys, stored_many CASCADE;
DROP FUNCTION stored_ask, stored_counts, stored_found, stored_trying, stored_fetch, stored_parallel, stored_buffers, stored_beyond;
DROP TABLE stored_specs;
DROP TYPE stored_domain, stored_composite;
DROP SCHEMA stored_schema_with_a_name_nearly_as_long_as_a_name_can_be CASCADE;
RESET client_min_messages;
