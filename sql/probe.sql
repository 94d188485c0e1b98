-- filter @> value, and all other ways to ask.
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan;
END $$;

CREATE TEMP TABLE f AS SELECT
	(SELECT bloom_agg(x, 100, 0.0001) FROM generate_series(1, 100) x) AS ints,
	(SELECT bloom_agg('code-' || x, 100, 0.0001) FROM generate_series(1, 100) x) AS codes,
	(SELECT bloom_agg(x, bloomfilter(100, 0.0001, 'standard', 'blake2b', 'secret')) FROM generate_series(1, 100) x) AS keyed;

-- all ways to spell it
SELECT ints @> 1 AS "@>", 1 <@ ints AS "<@", bloom_contains(ints, 1) AS contains,
	ints @> 101 AS "@>", 101 <@ ints AS "<@", bloom_contains(ints, 101) AS contains FROM f;
SELECT codes @> 'code-1' AS literal, 'code-1' <@ codes AS literal, bloom_contains(codes, 'code-1') AS literal,
	codes @> 'code-1'::text AS text, 'code-1'::text <@ codes AS text, bloom_contains(codes, 'code-1'::text) AS text,
	codes @> 'code-1'::varchar AS varchar, 'code-1'::varchar <@ codes AS varchar,
	codes @> 'code-1'::char(20) AS bpchar, 'code-1'::char(20) <@ codes AS bpchar,
	codes @> 'code-1'::name AS name, 'code-1'::name <@ codes AS name, bloom_contains(codes, 'code-1'::name) AS name FROM f;
SELECT codes @> 'code-101' AS literal, codes @> 'code-101'::varchar AS varchar, codes @> 'code-101'::char(20) AS bpchar, codes @> 'code-101'::name AS name FROM f;
SELECT ints @> 1::int2 AS int2, ints @> 1::int8 AS int8, ints @> 1::oid AS oid, bloom_contains(ints, 1::int8) AS int8 FROM f;
SELECT bloom_contains(filter => ints, value => 1) FROM f;
SELECT count(*) FILTER (WHERE ints @> x), count(*) FILTER (WHERE keyed @> x),
	count(*) FILTER (WHERE NOT ints @> x AND x <= 100), count(*) FILTER (WHERE NOT keyed @> x AND x <= 100)
FROM f, generate_series(1, 1000) x;
-- another key, other bits
SELECT substr(keyed::bytea, 125) <> substr(g::bytea, 125) AS other
FROM f, (SELECT bloom_agg(x, bloomfilter(100, 0.0001, 'standard', 'blake2b', 'Secret')) AS g FROM generate_series(1, 100) x) s;

-- columns of all string types
CREATE DOMAIN probe_code AS varchar(20);
CREATE TEMP TABLE strings (t text, v varchar(20), c char(20), n name, d probe_code);
INSERT INTO strings SELECT s, s, s, s, s FROM (SELECT 'code-' || x AS s FROM generate_series(51, 150) x) s;
SELECT count(*) FILTER (WHERE codes @> t) AS t, count(*) FILTER (WHERE codes @> v) AS v, count(*) FILTER (WHERE codes @> c) AS c,
	count(*) FILTER (WHERE codes @> n) AS n, count(*) FILTER (WHERE codes @> d) AS d FROM strings, f;
SELECT count(*) FILTER (WHERE t <@ codes) AS t, count(*) FILTER (WHERE v <@ codes) AS v, count(*) FILTER (WHERE c <@ codes) AS c,
	count(*) FILTER (WHERE n <@ codes) AS n, count(*) FILTER (WHERE d <@ codes) AS d FROM strings, f;
SELECT count(*) FROM strings, f WHERE bloom_contains(codes, d) AND bloom_contains(codes, c) AND bloom_contains(codes, n);
DROP TABLE strings;
DROP DOMAIN probe_code;

-- prepared statements: what the driver sends
PREPARE ask AS SELECT codes @> $1 FROM f;
EXECUTE ask('code-1');
EXECUTE ask('code-101');
EXECUTE ask(NULL);
PREPARE ask_int(int) AS SELECT ints @> $1 FROM f;
EXECUTE ask_int(1);
EXECUTE ask_int('1');
PREPARE ask_varchar(varchar) AS SELECT codes @> $1, $1 <@ codes, bloom_contains(codes, $1) FROM f;
EXECUTE ask_varchar('code-1');
PREPARE ask_filter(bloomfilter, int8) AS SELECT $1 @> $2;
EXECUTE ask_filter(bloom_add(bloomfilter(10), 7), 7);
EXECUTE ask_filter(bloomfilter(10), 7);
EXECUTE ask_filter(NULL, 7);
PREPARE ask_untyped_filter AS SELECT bloom_contains($1, 7);
EXECUTE ask_untyped_filter(bloom_add(bloomfilter(10), 7));
PREPARE ask_each AS SELECT bloom_contains_each(codes, $1::text[]) FROM f;
EXECUTE ask_each('{code-1,code-101,NULL}');
-- a generic plan
SET plan_cache_mode = force_generic_plan;
EXECUTE ask('code-1');
EXECUTE ask('code-101');
EXECUTE ask_int(1);
EXECUTE ask_filter(bloom_add(bloomfilter(10), 7), 7);
EXECUTE ask_filter(bloom_add(bloomfilter(1000, layout => 'standard'), 7), 7);
RESET plan_cache_mode;

-- NULL
SELECT ints @> NULL::int AS value, ints @> NULL AS literal, NULL::int <@ ints AS value, NULL::bloomfilter @> 1 AS filter,
	bloom_contains(ints, NULL) AS literal, bloom_contains(NULL, 1) AS filter FROM f;
SELECT count(*) FILTER (WHERE (ints @> x) IS NULL) AS unknown, count(*) FILTER (WHERE NOT (ints @> x)) AS no FROM f, unnest('{1,101,NULL}'::int[]) x;

-- arrays
SELECT bloom_contains_any(ints, '{1,101}'::int[]) AS one, bloom_contains_any(ints, '{101,102}'::int[]) AS none,
	bloom_contains_all(ints, '{1,2}'::int[]) AS "all", bloom_contains_all(ints, '{1,101}'::int[]) AS one,
	bloom_contains_each(ints, '{1,101,2}'::int[]) AS each FROM f;
SELECT bloom_contains_any(ints, '{}'::int[]) AS "any", bloom_contains_all(ints, '{}'::int[]) AS "all", bloom_contains_each(ints, '{}'::int[]) AS each FROM f;
-- NULL elements are unknown, as in = ANY and = ALL
SELECT bloom_contains_any(ints, a) AS "any", bloom_contains_all(ints, a) AS "all", bloom_contains_each(ints, a) AS each,
	bloom_contains_any(ints, a) IS NOT DISTINCT FROM bool_or AS same, bloom_contains_all(ints, a) IS NOT DISTINCT FROM bool_and AS same
FROM f, (VALUES (ARRAY[1,NULL]), (ARRAY[NULL,1]), (ARRAY[101,NULL]), (ARRAY[1,101,NULL]), (ARRAY[NULL::int])) v(a),
	LATERAL (SELECT true = ANY (array_agg(ints @> x)) AS bool_or, true = ALL (array_agg(ints @> x)) AS bool_and FROM unnest(a) x) s;
SELECT bloom_contains_any(ints, NULL::int[]) IS NULL AS "any", bloom_contains_all(ints, NULL::int[]) IS NULL AS "all",
	bloom_contains_each(ints, NULL::int[]) IS NULL AS each, bloom_contains_any(NULL, '{1}'::int[]) IS NULL AS filter FROM f;
-- of any shape
SELECT bloom_contains_each(ints, '{{1,101},{NULL,2}}'::int[]) AS two, bloom_contains_each(ints, '[0:1][5:5]={{1},{101}}'::int[]) AS bounds,
	bloom_contains_any(ints, '{{101},{1}}'::int[]) AS "any", bloom_contains_all(ints, '{{1,2},{3,4}}'::int[]) AS "all" FROM f;
SELECT bloom_contains_each(ints, '{1,101}'::int2[]) AS int2, bloom_contains_each(ints, '{1,101}'::int8[]) AS int8, bloom_contains_each(ints, '1 101'::oidvector) AS oidvector,
	bloom_contains_each(codes, '{code-1,code-101}'::text[]) AS text, bloom_contains_each(codes, '{code-1,code-101}'::varchar[]) AS varchar,
	bloom_contains_each(codes, '{code-1,code-101}'::name[]) AS name, bloom_contains_each(codes, '{code-1,code-101}'::char(9)[]) AS bpchar FROM f;
SELECT bloom_contains_all(ints, array_agg(x)) AND NOT bloom_contains_any(ints, array_agg(x + 1000)) FROM f, generate_series(1, 100) x GROUP BY ints::text, ints;
SELECT bloom_contains_all(ints, (SELECT array_agg(x) FROM generate_series(1, 100) x)) FROM f;
SELECT ints @> ARRAY[1] FROM f;
SELECT codes @> '{code-1}'::text[] FROM f;
SELECT bloom_contains_any(codes, 'code-1') FROM f;

-- empty and unsized filters contain nothing, for certain
SELECT g @> 1 AS "@>", NOT (g @> 1) AS "not", 'x' <@ g AS "<@", bloom_contains(g, true) AS contains, bloom_contains_any(g, '{1}'::int[]) AS "any",
	bloom_contains_all(g, '{1}'::int[]) AS "all", bloom_contains_each(g, '{1,NULL}'::int[]) AS each
FROM unnest(ARRAY[bloomfilter(), bloomfilter(10), bloomfilter(fpr => 0.1, layout => 'standard'), bloom_clear(bloom_add(bloomfilter(10), 1))]) g;
SELECT count(*) FROM generate_series(1, 3) x WHERE NOT (bloomfilter() @> x);

-- where the filter comes from: a column, in every storage
CREATE TABLE probe_stored (id int, f bloomfilter);
INSERT INTO probe_stored SELECT 1, bloom_agg(x, 10) FROM generate_series(1, 5) x;
INSERT INTO probe_stored SELECT 2, bloom_agg(x, 100) FROM generate_series(1, 50) x;
INSERT INTO probe_stored SELECT 3, bloom_agg(x, 100000) FROM generate_series(1, 50000) x;
INSERT INTO probe_stored SELECT 4, bloom_agg(x, bloomfilter(100000, layout => 'standard', hash => 'blake2b')) FROM generate_series(1, 50000) x;
-- nearly empty: compresses well
INSERT INTO probe_stored SELECT 5, bloom_agg(x, 100000) FROM generate_series(1, 5) x;
INSERT INTO probe_stored VALUES (6, bloomfilter(100000)), (7, bloomfilter()), (8, NULL);
CREATE FUNCTION pg_temp.check_stored() RETURNS TABLE (id int, compressed boolean, found bigint, missed bigint, contained bigint, elements text) LANGUAGE sql AS $$
	SELECT id, min(pg_column_size(f)) < min(octet_length(f::bytea)), count(*) FILTER (WHERE f @> x AND x <= n), count(*) FILTER (WHERE NOT f @> x AND x <= n),
		count(*) FILTER (WHERE x <@ f AND x <= n), min((bloom_info(f)).element)
	FROM probe_stored, (VALUES (1, 5), (2, 50), (3, 50000), (4, 50000), (5, 5), (6, 0), (7, 0), (8, 0)) v(i, n), generate_series(1, 50000, 1000) x
	WHERE id = i GROUP BY id ORDER BY id
$$;
SELECT * FROM pg_temp.check_stored();
ALTER TABLE probe_stored ALTER f SET STORAGE extended;
UPDATE probe_stored SET f = f::bytea::bloomfilter;
SELECT * FROM pg_temp.check_stored();
ALTER TABLE probe_stored ALTER f SET STORAGE main;
UPDATE probe_stored SET f = f::bytea::bloomfilter;
SELECT * FROM pg_temp.check_stored();
-- one row's filter against many keys, and many rows' filters against one
SELECT id, (SELECT count(*) FROM generate_series(1, 100) x WHERE f @> x) > 4 AS found FROM probe_stored ORDER BY id;
SELECT id FROM probe_stored WHERE f @> 5 ORDER BY id;
SELECT id FROM probe_stored WHERE NOT (f @> 49999) ORDER BY id;
SELECT id, CASE WHEN f @> 1 THEN 'maybe' WHEN NOT (f @> 1) THEN 'no' ELSE 'unknown' END FROM probe_stored ORDER BY id;
DROP TABLE probe_stored;

-- an InitPlan, a join, a subquery
SELECT count(*) FROM generate_series(1, 1000) x WHERE (SELECT ints FROM f) @> x;
SELECT pg_temp.plan('SELECT count(*) FROM generate_series(1, 1000) x WHERE (SELECT ints FROM f) @> x') ~ 'InitPlan' AS initplan;
SELECT count(*) FROM generate_series(1, 1000) x JOIN f ON ints @> x;
SELECT count(*) FROM generate_series(1, 1000) x WHERE x <@ ANY (SELECT unnest(ARRAY[ints, keyed]) FROM f);
SELECT count(*) FROM generate_series(1, 10) x WHERE (SELECT bloom_agg(y, 10, 0.0001) FROM generate_series(x, 10) y) @> 5;

-- filters that change from row to row, alike in size but not in parameters:
-- one call site, which must not go on with the last filter's header
CREATE TEMP TABLE mixed AS
SELECT row_number() OVER () AS id, n, bloom_add_all(bloomfilter(10, layout => layout, hash => hash, key => key, hashes => k), ARRAY[n, -n]) AS f
FROM unnest('{blocked,standard}'::text[]) layout, (VALUES ('xxh3', NULL), ('blake2b', NULL), ('blake2b', 'a'::bytea), ('blake2b', 'b')) h(hash, key),
	unnest('{4,7}'::int[]) k, generate_series(1, 5) n;
SELECT count(*), count(DISTINCT octet_length(f::bytea)) AS sizes, bool_and(f @> n AND -n <@ f) AS found,
	count(*) FILTER (WHERE f @> n + 100) < 10 AS few FROM mixed;
-- in several orders
SELECT bool_and(f @> n) FROM (SELECT * FROM mixed ORDER BY n, id OFFSET 0) s;
SELECT bool_and(f @> n) FROM (SELECT * FROM mixed ORDER BY md5(id::text) OFFSET 0) s;
SELECT bool_and(coalesce(f @> n, id % 3 = 0)) FROM (SELECT id, n, CASE WHEN id % 3 > 0 THEN f END AS f FROM mixed ORDER BY n, id OFFSET 0) s;
SELECT bool_and((f @> n) = (id % 2 = 0)) FROM (SELECT id, n, CASE WHEN id % 2 = 0 THEN f ELSE bloom_clear(f) END AS f FROM mixed ORDER BY n, id OFFSET 0) s;
-- another kind must not slip through behind a good one of the same size
SELECT g @> x FROM (VALUES (1, bloom_add(bloomfilter(10), 1)), (2, bloom_add(bloomfilter(10), 'x'))) v(x, g) ORDER BY x;
-- and an error in between leaves nothing behind
CREATE FUNCTION pg_temp.try(f bloomfilter, x int) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	RETURN f @> x;
EXCEPTION WHEN datatype_mismatch THEN
	RETURN 'error';
END $$;
SELECT pg_temp.try(g, 1) FROM unnest(ARRAY[bloom_add(bloomfilter(10), 1), bloom_add(bloomfilter(10), 'x'), bloom_add(bloomfilter(10), 1), bloomfilter(10),
	bloom_add(bloomfilter(10), 2), bloom_add(bloomfilter(10), '1'), NULL, bloom_add(bloomfilter(10), 1::int8)]) g;

-- types of other modules keep their operators
SELECT ARRAY[1,2] @> ARRAY[1] AS "array", ARRAY[1,2] @> '{1}' AS "array", '{1}' <@ ARRAY[1,2] AS "array", int4range(1, 5) @> 3 AS range, 3 <@ int4range(1, 5) AS range,
	'{"a": 1}'::jsonb @> '{"a": 1}' AS jsonb, box '(0,0),(1,1)' @> point '(0,0)' AS box, 5 | 2 AS "or", 5 & 4 AS "and";
