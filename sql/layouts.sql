-- Every layout, of fixed size and growing, behind the same functions.
SET extra_float_digits = 0;
\getenv builddir PG_ABS_BUILDDIR

-- one row a variant, with a filter for 1,000 and a template
CREATE TABLE layouts_v (name text COLLATE "C" PRIMARY KEY, layout text, expansion int, multiset boolean, sized bloomfilter, unsized bloomfilter);
INSERT INTO layouts_v
SELECT layout || coalesce(' by ' || nullif(e, 0), ''), layout, e, layout IN ('counting', 'cuckoo'),
	bloomfilter(1000, layout => layout, expansion => e), bloomfilter(layout => layout, expansion => e)
FROM unnest('{blocked,standard,counting,cuckoo}'::text[]) layout, unnest('{0,2}'::int[]) e WHERE layout <> 'counting' OR e = 0;
SELECT name, (bloom_info(sized)).*, octet_length(sized::bytea), sized::bytea::bloomfilter = sized AS "bytea", sized::text::bloomfilter = sized AS "text"
FROM layouts_v ORDER BY name;
SELECT name, (bloom_info(unsized)).*, unsized::bytea::bloomfilter = unsized AS "bytea" FROM layouts_v ORDER BY name;
-- what becomes of a query: its SQLSTATE, message and hint
CREATE FUNCTION layouts_error(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	result text;
	message text;
	hint text;
BEGIN
	EXECUTE query INTO result;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	RETURN SQLSTATE || ' ' || message || coalesce(' / ' || nullif(hint, ''), '');
END $$;

-- ------------------------------------------------------------------ filling
-- no rows, one, NULLs, half full, full, and more where it grows
CREATE TABLE layouts_f AS
SELECT v.*, n, f FROM layouts_v v, unnest('{0,1,500,1000,5000}'::int[]) n, LATERAL (SELECT bloom_agg(x, sized) AS f FROM generate_series(1, n) x) s
WHERE n <= 1000 OR expansion > 0;
SELECT name, n, element, i.capacity, layers, round(cardinality) BETWEEN n * 0.95 AND n * 1.05 AS cardinality, expected_fpr < 0.0115 AS fpr,
	CASE WHEN i.layout = 'cuckoo' THEN bits_set = n ELSE bits_set >= n END AS set, fill BETWEEN 0 AND 0.96 AS fill,
	bytes = octet_length(f::bytea) + 4 AS bytes,
	(SELECT count(*) FROM generate_series(1, n) x WHERE NOT f @> x) AS lost, (SELECT count(*) FROM generate_series(1, 10000) x WHERE f @> -x) <= 130 AS strangers
FROM layouts_f, LATERAL bloom_info(f) i ORDER BY name, n;
-- the same by every operator and function that asks
SELECT name, bool_and(f @> 1 AND 1 <@ f AND bloom_contains(f, 1) AND bloom_contains_any(f, '{-1,1}'::int[]) AND bloom_contains_all(f, ARRAY[1, n]) AND bloom_contains_each(f, ARRAY[NULL, n]) = '{NULL,t}') AS contains,
	bool_and((f @> NULL::int) IS NULL AND NOT f @> -123456 AND f @> 1::int8 AND f @> 1::int2) AS "NULL"
FROM layouts_f WHERE n > 0 GROUP BY name ORDER BY name;
SELECT name, bool_and(bloom_clear(f) = sized) AS clear, bool_and(f = f) AS eq, bool_and(f::text::bloomfilter = f AND f::bytea::bloomfilter::bytea = f::bytea) AS io,
	count(DISTINCT f) AS "distinct", count(DISTINCT bloomfilter_hash(f)) AS hashes, bool_and(bloomfilter_hash_extended(f, 1) = bloomfilter_hash_extended(f::bytea::bloomfilter, 1)) AS extended
FROM (SELECT name, sized, f FROM layouts_f UNION ALL SELECT name, sized, f FROM layouts_f) s WHERE f <> bloomfilter() GROUP BY name ORDER BY name;
-- added one by one, in an array, and by aggregate: the same contents
SELECT name, bloom_add_all(sized, (SELECT array_agg(x) FROM generate_series(1, 1000) x)) = f AS "add_all" FROM layouts_f WHERE n = 1000 ORDER BY name;
DO $$
DECLARE
	v record;
	f bloomfilter;
BEGIN
	FOR v IN SELECT * FROM layouts_f WHERE n = 500 ORDER BY name LOOP
		f := v.sized;
		FOR x IN 1..500 LOOP
			f := bloom_add(f, x);
			f := bloom_add(f, NULL::int);
		END LOOP;
		RAISE NOTICE '%: add is bloom_agg: %', v.name, f = v.f;
	END LOOP;
END $$;
-- NULLs are nothing
SELECT name, bloom_agg(nullif(x % 2, 0) * x, sized) = bloom_agg(x, sized) FILTER (WHERE x % 2 = 1) AS skipped, bloom_agg(nullif(x, x), sized) = bloomfilter() AS "only NULL",
	bloom_add(sized, NULL) = sized AND bloom_add_all(sized, '{NULL}'::int[]) = sized AS add
FROM layouts_v, generate_series(1, 600) x GROUP BY name, sized ORDER BY name;
-- a set, or as often as it comes: DISTINCT makes a set of it
SELECT name, bloom_agg(x % 300, sized) = bloom_agg(DISTINCT x % 300, sized) AS set, bloom_add(bloom_add(sized, 1), 1) = bloom_add(sized, 1) AS again,
	bloom_add_all(sized, '{1,1}'::int[]) = bloom_add(bloom_add(sized, 1), 1) AS "add_all",
	round(bloom_cardinality(bloom_agg(x % 300, sized))) AS copies, round(bloom_cardinality(bloom_agg(DISTINCT x % 300, sized))) AS "distinct"
FROM layouts_v, generate_series(1, 600) x GROUP BY name, sized ORDER BY name;
-- DISTINCT wants an order: that of bytes
SELECT bool_and(f = f AND f <= f AND f >= f AND NOT f < f AND NOT f > f AND bloomfilter_cmp(f, f) = 0) AS same, bool_and(f = g OR (f < g) <> (f > g)) AS total, bool_and((f < g) = (g > f) AND (f <= g) = (g >= f) AND (f < g) = (NOT f >= g) AND bloomfilter_cmp(f, g) = -bloomfilter_cmp(g, f)) AS mirrored,
	bool_and((f < g) = (f::bytea < g::bytea)) AS bytes, count(*)
FROM (SELECT f FROM layouts_f WHERE n < 1000) a, (SELECT f AS g FROM layouts_f WHERE n < 1000) b;
SELECT count(*), count(DISTINCT f), count(DISTINCT f::bytea) FROM layouts_f;
-- every kind of element
CREATE TYPE layouts_color AS ENUM ('red', 'green', 'blue');
CREATE TYPE layouts_pair AS (a int, b text);
CREATE FUNCTION layouts_kinds(t bloomfilter) RETURNS TABLE (kind text, found boolean, other boolean, text boolean) LANGUAGE sql AS $$
	SELECT (bloom_info(f)).element, found, other, f::text::bloomfilter = f FROM (
	SELECT bloom_add(t, 7::int2), bloom_add(t, 7) @> 7::int8, bloom_add(t, 7) @> 8 UNION ALL
	SELECT bloom_add(t, 'a'), bloom_add(t, 'a') @> 'a'::varchar, bloom_add(t, 'a') @> 'b' UNION ALL
	SELECT bloom_add(t, 1.5::float8), bloom_add(t, 1.5::float8) @> 1.5::float4, bloom_add(t, 1.5::float8) @> 2::float8 UNION ALL
	SELECT bloom_add(t, 1.50::numeric), bloom_add(t, 1.50) @> 1.5, bloom_add(t, 1.50) @> 2.0 UNION ALL
	SELECT bloom_add(t, '\x01'::bytea), bloom_add(t, '\x01'::bytea) @> '\x01'::bytea, bloom_add(t, '\x01'::bytea) @> '\x02'::bytea UNION ALL
	SELECT bloom_add(t, md5('a')::uuid), bloom_add(t, md5('a')::uuid) @> md5('a')::uuid, bloom_add(t, md5('a')::uuid) @> md5('b')::uuid UNION ALL
	SELECT bloom_add(t, true), bloom_add(t, true) @> true, bloom_add(t, true) @> false UNION ALL
	SELECT bloom_add(t, date '2026-01-01'), bloom_add(t, date '2026-01-01') @> date '2026-01-01', bloom_add(t, date '2026-01-01') @> date '2026-01-02' UNION ALL
	SELECT bloom_add(t, time '10:00'), bloom_add(t, time '10:00') @> time '10:00', bloom_add(t, time '10:00') @> time '11:00' UNION ALL
	SELECT bloom_add(t, timetz '10:00+01'), bloom_add(t, timetz '10:00+01') @> timetz '10:00+01', bloom_add(t, timetz '10:00+01') @> timetz '11:00+01' UNION ALL
	SELECT bloom_add(t, timestamp '2026-01-01'), bloom_add(t, timestamp '2026-01-01') @> timestamp '2026-01-01', bloom_add(t, timestamp '2026-01-01') @> timestamp '2026-01-02' UNION ALL
	SELECT bloom_add(t, timestamptz '2026-01-01Z'), bloom_add(t, timestamptz '2026-01-01Z') @> timestamptz '2026-01-01Z', bloom_add(t, timestamptz '2026-01-01Z') @> timestamptz '2026-01-02Z' UNION ALL
	SELECT bloom_add(t, macaddr '08:00:2b:01:02:03'), bloom_add(t, macaddr '08:00:2b:01:02:03') @> macaddr '08:00:2b:01:02:03', bloom_add(t, macaddr '08:00:2b:01:02:03') @> macaddr '08:00:2b:01:02:04' UNION ALL
	SELECT bloom_add(t, macaddr8 '08:00:2b:01:02:03:04:05'), bloom_add(t, macaddr8 '08:00:2b:01:02:03:04:05') @> macaddr8 '08:00:2b:01:02:03:04:05', bloom_add(t, macaddr8 '08:00:2b:01:02:03:04:05') @> macaddr8 '08:00:2b:01:02:03:04:06' UNION ALL
	SELECT bloom_add(t, inet '10.0.0.1'), bloom_add(t, inet '10.0.0.1') @> inet '10.0.0.1', bloom_add(t, inet '10.0.0.1') @> inet '10.0.0.2' UNION ALL
	SELECT bloom_add(t, 'red'::layouts_color), bloom_add(t, 'red'::layouts_color) @> 'red'::layouts_color, bloom_add(t, 'red'::layouts_color) @> 'blue'::layouts_color UNION ALL
	SELECT bloom_add(t, '{1,NULL}'::int[]), bloom_add(t, '{1,NULL}'::int[]) @> '{1,NULL}'::int[], bloom_add(t, '{1,NULL}'::int[]) @> '{1,2}'::int[] UNION ALL
	SELECT bloom_add(t, ROW(1, 'a')::layouts_pair), bloom_add(t, ROW(1, 'a')::layouts_pair) @> ROW(1, 'a'::text), bloom_add(t, ROW(1, 'a')::layouts_pair) @> ROW(1, 'b'::text) UNION ALL
	SELECT bloom_add(t, '{"a":1}'::jsonb), bloom_add(t, '{"a":1}'::jsonb) @> '{"a":1}'::jsonb, bloom_add(t, '{"a":1}'::jsonb) @> '{"a":2}'::jsonb UNION ALL
	SELECT bloom_add(t, int4range(1, 5)), bloom_add(t, int4range(1, 5)) @> int4range(1, 5), bloom_add(t, int4range(1, 5)) @> int4range(1, 6)
	) s(f, found, other)
$$;
SELECT kind, bool_and(k.found) AS found, bool_or(k.other) AS other, bool_and(k.text) AS "text", count(*) FROM layouts_v, layouts_kinds(sized) k GROUP BY kind ORDER BY kind COLLATE "C";
-- removed, where elements can be
SELECT name, bool_and(NOT g @> x AND g = sized) AS removed
FROM layouts_v, LATERAL (VALUES ('a'), ('b')) x(x), LATERAL (SELECT bloom_remove(bloom_add(sized, x), x) AS g) s WHERE multiset GROUP BY name ORDER BY name;
-- of another kind: an error each time
SELECT name, layouts_error(format('SELECT f @> ''x''::text FROM layouts_f WHERE name = %L AND n = 1', name)) FROM layouts_v ORDER BY name;
SELECT name, layouts_error(format('SELECT bloom_remove(f, ''x''::text) FROM layouts_f WHERE name = %L AND n = 1', name)) FROM layouts_v WHERE multiset ORDER BY name;
SELECT name, layouts_error(format('SELECT f | bloom_add(sized, ''x''::text) FROM layouts_f WHERE name = %L AND n = 1', name)) FROM layouts_v ORDER BY name;
-- keyed, and with the other hash
SELECT v.layout, e, k IS NOT NULL AS keyed, bool_and(f @> x) AS found, count(*) FILTER (WHERE f @> -x) < 20 AS strangers, i.keyed = (k IS NOT NULL) AND hash = 'blake2b' AS info
FROM unnest('{blocked,standard,counting,cuckoo}'::text[]) v(layout), unnest('{0,3}'::int[]) e, unnest('{NULL,secret}'::bytea[]) k,
	LATERAL (SELECT bloomfilter(300, layout => v.layout, expansion => CASE v.layout WHEN 'counting' THEN 0 ELSE e END, hash => 'blake2b', key => k) AS t OFFSET 0) t,
	LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, 300) x) s, LATERAL bloom_info(f) i, generate_series(1, 300) x
GROUP BY v.layout, e, k, i.keyed, hash ORDER BY v.layout, e, k NULLS FIRST;

-- ----------------------------------------------------------------- removing
-- all that was added goes, and an empty filter is an empty filter
CREATE FUNCTION layouts_remove(f bloomfilter, lo int, hi int) RETURNS bloomfilter LANGUAGE plpgsql AS $$
BEGIN
	FOR x IN lo..hi LOOP
		f := bloom_remove(f, x);
	END LOOP;
	RETURN f;
END $$;
SELECT name, bool_and(g @> x) FILTER (WHERE x > 250) AS kept, count(*) FILTER (WHERE x <= 250 AND g @> x) < 20 AS gone, round(bloom_cardinality(g)) BETWEEN 240 AND 260 AS cardinality,
	layouts_remove(g, 251, 500) = sized AS empty
FROM layouts_f, LATERAL (SELECT layouts_remove(f, 1, 250) AS g OFFSET 0) s, generate_series(1, 500) x WHERE multiset AND n = 500 GROUP BY name, g, sized ORDER BY name;
-- what is certainly not there changes nothing, nor does NULL
SELECT name, n, bloom_remove(f, -123456) = f AS absent, bloom_remove(f, NULL::int) = f AND bloom_remove(f, NULL) = f AS "NULL", bloom_remove(NULL, 1) IS NULL AS filter
FROM layouts_f WHERE multiset ORDER BY name, n;
-- as often as it was added
SELECT name, f @> 1 AS "3", bloom_remove(f, 1) @> 1 AS "2", bloom_remove(bloom_remove(f, 1), 1) @> 1 AS "1", bloom_remove(bloom_remove(bloom_remove(f, 1), 1), 1) = sized AS "0"
FROM layouts_v, LATERAL (SELECT bloom_add_all(sized, '{1,1,1}'::int[]) AS f) s WHERE multiset ORDER BY name;
-- those that cannot, empty or not
SELECT name, layouts_error(format('SELECT bloom_remove(f, 1) FROM layouts_f WHERE name = %L AND n = 1', name)) FROM layouts_v WHERE NOT multiset ORDER BY name;
SELECT bloom_remove(bloomfilter(10), 1);
-- unsized: nothing is in it
SELECT bloom_remove(bloomfilter(), 1) = bloomfilter() AS unsized, bloom_remove(bloomfilter(layout => 'cuckoo'), 'x') = bloomfilter(layout => 'cuckoo') AS cuckoo;
-- one key 40 times in and out of a counting filter: nobody else is lost
DO $$
DECLARE
	f bloomfilter := (SELECT f FROM layouts_f WHERE name = 'counting' AND n = 500);
BEGIN
	FOR i IN 1..40 LOOP f := bloom_add(f, -1); END LOOP;
	FOR i IN 1..40 LOOP f := bloom_remove(f, -1); END LOOP;
	RAISE NOTICE 'all of 500 are there: %', (SELECT bool_and(f @> x) FROM generate_series(1, 500) x);
	-- its counters stuck, and so it stays
	RAISE NOTICE 'it is still there: %, and its removal changes nothing: %', f @> -1, bloom_remove(f, -1) = f;
	FOR i IN 1..500 LOOP f := bloom_remove(f, i); END LOOP;
	RAISE NOTICE 'nothing but its counters is left: %', (bloom_info(f)).bits_set BETWEEN 1 AND (bloom_info(f)).hashes;
END $$;
-- a growing filter removes from the one layer that can have it
DO $$
DECLARE
	f bloomfilter := (SELECT f FROM layouts_f WHERE name = 'cuckoo by 2' AND n = 5000);
	g bloomfilter;
	removed int := 0;
	kept int := 0;
BEGIN
	FOR i IN 1..1000 LOOP
		g := bloom_remove(f, i);
		IF (bloom_info(g)).bits_set < (bloom_info(f)).bits_set THEN
			removed := removed + 1;
			ASSERT (bloom_info(g)).bits_set = (bloom_info(f)).bits_set - 1;
		ELSE
			-- several layers seem to have it
			kept := kept + 1;
			ASSERT g = f AND f @> i;
		END IF;
		f := g;
	END LOOP;
	RAISE NOTICE 'most were removed: %, in two layers there are few: %', removed > 980, kept < 20;
	RAISE NOTICE 'nobody else was: %', (SELECT bool_and(f @> x) FROM generate_series(1001, 5000) x);
	RAISE NOTICE 'layers: %', (bloom_info(f)).layers;
	-- present in two: nothing happens
	f := bloom_add_all(bloomfilter(8, layout => 'cuckoo', expansion => 2), ARRAY[1,2,3,4,5,6,7,8,1]);
	RAISE NOTICE 'in two layers (%): unchanged %', (bloom_info(f)).layers, bloom_remove(f, 1) = f;
	-- a layer that becomes empty goes, whichever it is
	f := bloom_add_all(bloomfilter(8, layout => 'cuckoo', expansion => 2), ARRAY[1,2,3,4,5,6,7,8,9]);
	RAISE NOTICE 'layers: %, then %', (bloom_info(f)).layers, (bloom_info(bloom_remove(f, 9))).layers;
	FOR i IN 1..8 LOOP f := bloom_remove(f, i); END LOOP;
	RAISE NOTICE 'layers: %, held: %, still there: %, then nothing: %', (bloom_info(f)).layers, (bloom_info(f)).bits_set, f @> 9,
		bloom_remove(f, 9) = bloomfilter(8, layout => 'cuckoo', expansion => 2);
	-- and it grows again
	f := bloom_add_all(f, (SELECT array_agg(x) FROM generate_series(10, 100) x));
	RAISE NOTICE 'layers: %, found: %', (bloom_info(f)).layers, (SELECT bool_and(f @> x) FROM generate_series(9, 100) x);
END $$;

-- ----------------------------------------------------- from counting to bits
SELECT layout, hash, n, k, bloom_to_standard(bloom_agg(x % 700, c)) = bloom_agg(x % 700, s) AS same, bloom_to_standard(bloom_agg(x % 700, c))::bytea = bloom_agg(x % 700, s)::bytea AS bytes
FROM unnest('{counting}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash, unnest('{700,3000}'::int[]) n, unnest('{NULL,3}'::int[]) k,
	LATERAL (SELECT bloomfilter(n, 0.001, layout, hash, hashes => k) AS c, bloomfilter(n, 0.001, 'standard', hash, hashes => k) AS s OFFSET 0) t, generate_series(1, 2000) x
GROUP BY layout, hash, n, k, c, s ORDER BY hash, n, k;
SELECT bloom_to_standard(bloom_add(bloomfilter(10, 0.01, 'counting', 'blake2b', 'secret'), 'x')) = bloom_add(bloomfilter(10, 0.01, 'standard', 'blake2b', 'secret'), 'x') AS keyed,
	bloom_to_standard(bloom_add(bloomfilter(10, layout => 'counting'), 'red'::layouts_color)) = bloom_add(bloomfilter(10, layout => 'standard'), 'red'::layouts_color) AS named,
	bloom_to_standard(bloomfilter(10, layout => 'counting')) = bloomfilter(10, layout => 'standard') AS empty,
	bloom_to_standard(bloomfilter(layout => 'counting', fpr => 0.1)) = bloomfilter(layout => 'standard', fpr => 0.1) AS unsized,
	bloom_to_standard(bloom_remove(bloom_add_all(bloomfilter(10, layout => 'counting'), '{1,2}'::int[]), 1)) = bloom_add(bloomfilter(10, layout => 'standard'), 2) AS removed,
	bloom_to_standard(NULL) IS NULL AS "NULL";
SELECT name, layouts_error(format('SELECT bloom_to_standard(f) FROM layouts_f WHERE name = %L AND n = 1', name)) FROM layouts_v WHERE layout <> 'counting' ORDER BY name;

-- -------------------------------------------------------------------- union
-- halves of 1,000: all of both, whichever comes first
CREATE TABLE layouts_halves AS
SELECT v.*, bloom_agg(x, sized) FILTER (WHERE x <= 600) AS a, bloom_agg(x, sized) FILTER (WHERE x > 600) AS b FROM layouts_v v, generate_series(1, 1000) x GROUP BY v.name;
SELECT name, bool_and(a | b @> x AND b | a @> x AND bloom_union(a, b) @> x) AS found, round(bloom_cardinality(a | b)) BETWEEN 970 AND 1030 AS cardinality, (bloom_info(a | b)).layers,
	CASE WHEN layout <> 'cuckoo' AND expansion = 0 THEN (a | b) = (b | a) AND (a | b) = bloom_agg(x, sized) END AS same, CASE WHEN NOT multiset THEN a | a = a END AS idempotent, (a | bloom_clear(a)) = a AND (bloom_clear(a) | a) = a AS empty, (a | bloomfilter()) = a AND (bloomfilter() | a) = a AS unsized,
	count(*) FILTER (WHERE a | b @> -x) < 25 AS strangers, bloom_expected_fpr(a | b) < 0.0115 AS expected
FROM layouts_halves, generate_series(1, 1000) x GROUP BY name, layout, expansion, multiset, a, b, sized ORDER BY name;
-- multisets: every copy of both
SELECT name, round(bloom_cardinality(f)) AS cardinality, f @> 1 AS "2", bloom_remove(f, 1) @> 1 AS "1", bloom_remove(bloom_remove(f, 1), 1) @> 1 AS "0"
FROM layouts_v, LATERAL (SELECT bloom_add(sized, 1) | bloom_add_all(sized, '{1,2}'::int[]) AS f) s WHERE multiset AND expansion = 0 ORDER BY name;
-- counters add up, and stick at 15
SELECT a | a = bloom_add_all(sized, array_fill(1, ARRAY[16])) AS saturated, bloom_remove(a | a, 1) = (a | a) AS stuck,
	bloom_add_all(sized, array_fill(1, ARRAY[7])) | bloom_add_all(sized, array_fill(1, ARRAY[7])) = bloom_add_all(sized, array_fill(1, ARRAY[14])) AS "7 + 7"
FROM layouts_v, LATERAL (SELECT bloom_add_all(sized, array_fill(1, ARRAY[8])) AS a) s WHERE name = 'counting';
-- layers are appended, in the order of their sizes; equal ones of a set count once
SELECT name, (bloom_info(f)).layers, (bloom_info(g)).layers, (bloom_info(f | g)).layers, (bloom_info(f | f)).layers, bloom_cardinality(f | g) > 5900 AS cardinality,
	(SELECT bool_and(f | g @> x) FROM generate_series(1, 6000) x) AS found
FROM layouts_f, LATERAL (SELECT bloom_agg(x, sized) AS g FROM generate_series(5001, 6000) x) s WHERE expansion > 0 AND n = 5000 ORDER BY name;
-- and elements go on being added to the largest, of which there is no huge one after many unions
DO $$
DECLARE
	v record;
	f bloomfilter;
	n int;
BEGIN
	FOR v IN SELECT * FROM layouts_v WHERE expansion > 0 ORDER BY name LOOP
		f := v.unsized;
		FOR i IN 1..20 LOOP
			f := f | (SELECT bloom_agg(x + i * 1000, v.sized) FROM generate_series(1, 1000) x);
		END LOOP;
		n := (bloom_info(f)).layers;
		f := bloom_add_all(f, (SELECT array_agg(-x) FROM generate_series(1, 3000) x));
		RAISE NOTICE '%: % layers, then % for % in all; found: %', v.name, n, (bloom_info(f)).layers, (bloom_info(f)).capacity,
			(SELECT bool_and(f @> x + 1000) FROM generate_series(1, 20000) x) AND (SELECT bool_and(f @> -x) FROM generate_series(1, 3000) x);
	END LOOP;
END $$;
-- what does not fit is an error, and changes nothing
CREATE TABLE layouts_full AS SELECT bloom_agg(x, bloomfilter(1000, layout => 'cuckoo')) AS f FROM generate_series(1, 600) x;
UPDATE layouts_full SET f = f | f;
UPDATE layouts_full SET f = f | (SELECT bloom_agg(x + 10000, bloomfilter(1000, layout => 'cuckoo')) FROM generate_series(1, 401) x);
SELECT bloom_cardinality(f) FROM layouts_full;
UPDATE layouts_full SET f = f | (SELECT bloom_agg(x + 10000, bloomfilter(1000, layout => 'cuckoo')) FROM generate_series(1, 400) x);
SELECT bloom_cardinality(f), bool_and(f @> x) AS found FROM layouts_full, generate_series(1, 600) x GROUP BY f;
-- 32 layers, and no more
DO $$
DECLARE
	f bloomfilter := bloomfilter(10, 0.1, expansion => 2);
BEGIN
	FOR i IN 1..40 LOOP
		f := f | bloom_add(bloomfilter(10, 0.1, expansion => 2), i);
	END LOOP;
EXCEPTION WHEN program_limit_exceeded THEN
	RAISE NOTICE '% layers: %', (bloom_info(f)).layers, SQLERRM;
	RAISE NOTICE 'found: %, read back: %', (SELECT bool_and(f @> x) FROM generate_series(1, 32) x), f::text::bloomfilter = f;
END $$;
SELECT bloom_union_agg(bloom_add(bloomfilter(10, expansion => 1), x)) FROM generate_series(1, 33) x;

-- ------------------------------------------------------------- intersection
SELECT name, bool_and(f @> x AND bloom_intersect(b, a) @> x) AS kept, (SELECT count(*) FROM generate_series(1, 300) y WHERE f @> y) < 25 AS "not a", (SELECT count(*) FROM generate_series(701, 1000) y WHERE f @> y) < 25 AS "not b",
	a & a = a AS idempotent, a & bloom_clear(a) = bloom_clear(a) AND bloom_clear(a) & a = bloom_clear(a) AS empty, a & bloomfilter() = bloom_clear(a) AND bloomfilter() & a = bloom_clear(a) AS unsized
FROM layouts_v, LATERAL (SELECT bloom_agg(x, sized) FILTER (WHERE x <= 700) AS a, bloom_agg(x, sized) FILTER (WHERE x > 300) AS b FROM generate_series(1, 1000) x) s,
	LATERAL (SELECT a & b AS f OFFSET 0) f, generate_series(301, 700) x WHERE expansion = 0 GROUP BY name, a, b, f ORDER BY name;
SELECT name, bloom_add(sized, 1) & bloom_add(sized, 2) = sized AS nothing, bloom_add_all(sized, '{1,1,1,2}'::int[]) & bloom_add_all(sized, '{1,3}'::int[]) @> 1 AS common FROM layouts_v WHERE expansion = 0 ORDER BY name;
SELECT name, layouts_error(format('SELECT sized & sized FROM layouts_v WHERE name = %L', name)) AS "&", layouts_error(format('SELECT bloom_intersect_agg(f) FROM layouts_f WHERE name = %L', name)) AS agg
FROM layouts_v WHERE expansion > 0 ORDER BY name;
SELECT bloomfilter(10) & bloomfilter(10, expansion => 2);

-- ------------------------------------------------------------- what combines
SELECT a.name, string_agg(b.name, ', ' ORDER BY b.name) FILTER (WHERE bloom_compatible(a.sized, b.sized)) AS sized, string_agg(b.name, ', ' ORDER BY b.name) FILTER (WHERE bloom_compatible(a.sized, b.unsized)) AS unsized
FROM layouts_v a, layouts_v b GROUP BY a.name ORDER BY a.name;
SELECT bloom_compatible(f, bloomfilter(1000, layout => layout, expansion => 3)) AS "3", bloom_compatible(f, bloomfilter(2000, layout => layout, expansion => 2)) AS "2000",
	bloom_compatible(f, bloomfilter(1000, 0.1, layout, expansion => 2)) AS "0.1", bloom_compatible(f, bloomfilter(1000, layout => layout, expansion => 2, hash => 'blake2b')) AS "blake2b",
	bloom_compatible(f, bloom_add(sized, 'x')) AS "text", bloom_compatible(f, bloom_add(sized, 1)) AS "integer"
FROM layouts_f WHERE n = 5000 ORDER BY name;
SELECT bloomfilter(1000, expansion => 2) | bloomfilter(1000, expansion => 3);
SELECT bloomfilter(1000, expansion => 2) | bloomfilter(1000);
SELECT bloomfilter(1000, layout => 'cuckoo') | bloomfilter(1000, layout => 'counting');
SELECT bloomfilter(1000, layout => 'cuckoo') | bloomfilter(1000, 0.001, 'cuckoo');
SELECT bloomfilter(1000, layout => 'cuckoo') | bloomfilter(2000, layout => 'cuckoo');
-- capacities that come to one size combine; the larger one stands
SELECT name, (bloom_info(f | g)).capacity, f | g = g | f AS commutes FROM layouts_v, LATERAL (SELECT bloomfilter(1001, layout => layout, expansion => expansion)) v(g), LATERAL (SELECT sized AS f) w
WHERE bloom_compatible(f, g) ORDER BY name;

-- --------------------------------------------------- filters that size themselves
CREATE TABLE layouts_t AS SELECT x, x % 3 AS g, x % 1000 AS m, 'code-' || x AS s, CASE WHEN x % 4 > 0 THEN x END AS n FROM generate_series(1, 30000) x;
ALTER TABLE layouts_t SET (parallel_workers = 2);
ANALYZE layouts_t;
CREATE FUNCTION layouts_self(work_mem text) RETURNS TABLE (name text, capacity bigint, cardinality boolean, layers int, found boolean, strangers boolean, expected boolean, grouped boolean, repeats text) LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('work_mem', work_mem, true);
	RETURN QUERY SELECT v.name, i.capacity, abs(i.cardinality / 30000 - 1) < 0.02, i.layers, (SELECT bool_and(f @> x) FROM layouts_t), (SELECT count(*) FROM layouts_t WHERE f @> -x) < 360, i.expected_fpr < 0.0102,
		(SELECT bool_and(h @> t.x AND abs(bloom_cardinality(h) / 10000 - 1) < 0.02) FROM (SELECT g, bloom_agg(x, unsized) AS h FROM layouts_t GROUP BY g) a JOIN layouts_t t USING (g)),
		(SELECT CASE WHEN v.multiset AND v.layout = 'cuckoo' THEN substr(layouts_error(format('SELECT bloom_agg(m, unsized) FROM layouts_t, layouts_v WHERE name = %L', v.name)), 1, 29)
			ELSE (SELECT (bloom_info(bloom_agg(m, unsized))).capacity FROM layouts_t)::text END)
	FROM layouts_v v, LATERAL (SELECT bloom_agg(x, unsized) AS f FROM layouts_t) s, LATERAL bloom_info(f) i ORDER BY v.name;
END $$;
SELECT * FROM layouts_self('64MB');
-- past memory: what can be folded is a little larger
SET hash_mem_multiplier = 1;
SELECT name, capacity >= 30000 AND capacity < 60000 AS capacity, cardinality, layers, found, strangers, expected, grouped, repeats FROM layouts_self('64kB');
RESET hash_mem_multiplier;
-- by the number of distinct values, or of rows where every copy counts
SELECT name, (bloom_info(f)).capacity, round(bloom_cardinality(f)) AS cardinality, f = bloom_agg(x % 500, bloomfilter(c, layout => layout, expansion => expansion)) AS "as sized"
FROM layouts_v, LATERAL (SELECT CASE WHEN multiset THEN 1500 ELSE 500 END AS c, bloom_agg(x % 500, unsized) AS f FROM generate_series(1, 1500) x) s, generate_series(1, 1500) x
WHERE layout <> 'cuckoo' GROUP BY name, layout, expansion, f, c ORDER BY name;
SELECT name, n, (bloom_info(f)).capacity, (bloom_info(f)).layers, (SELECT count(*) FROM generate_series(1, n) x WHERE NOT f @> x) AS lost
FROM layouts_v, unnest('{0,1,2,3,10,100}'::int[]) n, LATERAL (SELECT bloom_agg(x, unsized) AS f FROM generate_series(1, n) x) s ORDER BY name, n;
-- NULL capacity is not a layout's affair
SELECT name, bloom_agg(x, unsized) = bloom_agg(x, bloomfilter(NULL, layout => layout, expansion => expansion)) AS "NULL", bloom_agg(x, bloom_add(sized, -1)) = bloom_agg(x, sized) AS "template's elements"
FROM layouts_v, generate_series(1, 100) x GROUP BY name, layout, expansion, unsized, sized ORDER BY name;

-- -------------------------------------------------------------- out of room
SELECT layouts_error('SELECT bloom_agg(x, bloomfilter(1000, layout => ''cuckoo'')) FROM generate_series(1, 1001) x');
SELECT layouts_error('SELECT bloom_add(f, -1) FROM layouts_f WHERE name = ''cuckoo'' AND n = 1000');
SELECT layouts_error('SELECT bloom_add_all(f, ARRAY[-1]) FROM layouts_f WHERE name = ''cuckoo'' AND n = 1000');
-- the same element nine times
SELECT bloom_add_all(bloomfilter(1000, layout => 'cuckoo'), array_fill(1, ARRAY[9]));
SELECT bloom_agg(1, bloomfilter(1000, layout => 'cuckoo')) FROM generate_series(1, 9);
SELECT bloom_agg(1, bloomfilter(layout => 'cuckoo')) FROM generate_series(1, 20);
SELECT bloom_agg(DISTINCT x % 5, bloomfilter(layout => 'cuckoo')) @> 4 AS "DISTINCT" FROM generate_series(1, 20) x;
SELECT bloom_agg(1, bloomfilter(1000, layout => 'cuckoo', expansion => 2)) FROM generate_series(1, 9);
SELECT bloom_cardinality(bloom_add_all(bloomfilter(1000, layout => 'cuckoo'), array_fill(1, ARRAY[8])));
-- the value that was there stays
CREATE TABLE layouts_kept AS SELECT bloom_add_all(bloomfilter(1000, layout => 'cuckoo'), array_fill(1, ARRAY[8])) AS f;
SELECT md5(f::bytea) AS before FROM layouts_kept \gset
UPDATE layouts_kept SET f = bloom_add(f, 1);
DO $$
DECLARE
	f bloomfilter := (SELECT f FROM layouts_kept);
BEGIN
	BEGIN
		f := bloom_add(f, 1);
	EXCEPTION WHEN program_limit_exceeded THEN
		RAISE NOTICE 'unchanged: %', f = (SELECT k.f FROM layouts_kept k);
	END;
END $$;
SELECT md5(f::bytea) = :'before' AS unchanged, bloom_remove(f, 1) @> 1 AS "7" FROM layouts_kept;
-- exactly full is not out of room
SELECT n, count(*), bool_and(bloom_cardinality(f) = n) FROM unnest('{1,2,3,5,7,8,9,10,15,16,100,1000}'::int[]) n, generate_series(1, 20) i,
	LATERAL (SELECT bloom_agg(x + i * 100000, bloomfilter(n, layout => 'cuckoo')) AS f FROM generate_series(1, n) x) s GROUP BY n ORDER BY n;
SELECT p, bloom_cardinality(f) FROM unnest('{0.9,0.3,0.1,0.01,0.0001,1e-8}'::float8[]) p, LATERAL (SELECT bloomfilter(20000, p, 'cuckoo') AS t OFFSET 0) t, LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, 20000) x) s ORDER BY p;

-- -------------------------------------------------------------- parameters
SELECT bloomfilter(10, layout => 'scalable');
SELECT bloomfilter(10, layout => 'Scalable', expansion => 2);
SELECT bloomfilter(10, layout => 'cukoo');
SELECT bloomfilter(10, layout => 'counting', expansion => 2);
SELECT bloomfilter(layout => 'counting', expansion => 1);
SELECT bloomfilter(10, expansion => -1);
SELECT bloomfilter(10, expansion => 17);
SELECT bloomfilter(10, layout => 'cuckoo', expansion => 1000000000);
SELECT bloomfilter(10, layout => 'cuckoo', hashes => 3);
SELECT bloomfilter(10, layout => 'counting', hashes => 65);
SELECT bloomfilter(10, 1e-9, 'cuckoo');
SELECT bloomfilter(10, 1e-7, 'counting');
SELECT bloomfilter(1e9, layout => 'counting');
SELECT bloomfilter(1e9, layout => 'cuckoo');
SELECT bloomfilter(1e9, expansion => 2);
SELECT bloomfilter(10, 1e-6, expansion => 2);
SELECT bloomfilter(10, expansion => NULL) = bloomfilter(10) AS "NULL", bloomfilter(10, expansion => 16) <> bloomfilter(10, expansion => 15) AS other, bloomfilter(10, layout => 'counting', hashes => 64) IS NOT NULL AS hashes;
SELECT bloom_add(bloomfilter(layout => 'cuckoo', expansion => 2), 1);
SELECT bloom_agg(x, bloomfilter(1000, expansion => 2 + x % 2)) FROM generate_series(1, 3) x;
SELECT bloom_agg(x, CASE WHEN x > 1 THEN bloomfilter(1000, expansion => 2) ELSE bloomfilter(1000) END) FROM generate_series(1, 3) x;

-- ---------------------------------------------------------- what it costs
SELECT layout, n, p, bits_per_key <= 9.58 AS "9.58", bits_per_key <= 12.9 AS "12.9", bytes * 8 / n <= CASE p WHEN 0.01 THEN 9.58 ELSE 12.9 END AS "with header", expected_fpr <= p AS fpr, hashes IS NULL AS hashes
FROM unnest('{10000,100000,1e6,1e7}'::float8[]) n, unnest('{0.01,0.001}'::float8[]) p, bloom_sizing(n, p) WHERE layout = 'cuckoo' ORDER BY p DESC, n;
SELECT layout, bits, hashes, bytes, round(bits_per_key::numeric, 3) AS bits_per_key, round(expected_fpr::numeric, 5) AS expected_fpr FROM bloom_sizing(1000000, 0.01) ORDER BY layout;
-- is what one gets
SELECT s.layout, n, p, s.bits = i.bits AND s.hashes IS NOT DISTINCT FROM i.hashes AND s.bytes = j.bytes AS same, abs(s.expected_fpr / j.expected_fpr - 1) < 0.1 AS expected, j.cardinality / n BETWEEN 0.95 AND 1.05 AS cardinality
FROM unnest('{100,2000}'::int[]) n, unnest('{0.1,0.01,0.001}'::float8[]) p, bloom_sizing(n, p) s, LATERAL (SELECT bloomfilter(n, p, s.layout) AS t OFFSET 0) t, LATERAL bloom_info(t) i,
	LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, n) x) f, LATERAL bloom_info(f) j ORDER BY s.layout, n, p;
SELECT c.bits = 4 * s.bits AS "4 x", c.hashes = s.hashes AS hashes, c.expected_fpr = s.expected_fpr AS fpr FROM unnest('{1,50,5000,1e6}'::float8[]) n, unnest('{0.1,0.01,0.0001}'::float8[]) p, bloom_sizing(n, p) c, bloom_sizing(n, p) s
WHERE c.layout = 'counting' AND s.layout = 'standard';
SELECT layout FROM bloom_sizing(1000, 1e-7);
SELECT layout, bloom_capacity(1048576, 0.01, layout), (bloom_info(bloomfilter(bloom_capacity(1048576, 0.01, layout), layout => layout))).bits / 8 + 64 <= 1048576 AS fits,
	(bloom_info(bloomfilter(bloom_capacity(1048576, 0.01, layout) + 100, layout => layout))).bits / 8 + 64 > 1048576 AS "no more", bloom_capacity(100, 0.01, layout) AS "100 bytes", bloom_capacity(64, 0.01, layout) AS "64 bytes"
FROM unnest('{blocked,standard,counting,cuckoo}'::text[]) layout;

-- ------------------------------------------------------- more than it is for
-- one WARNING each: fixed sizes by what is in them, and a cuckoo filter never
SELECT bloom_cardinality(bloom_agg(x, bloomfilter(1000, layout => 'blocked'))) > 2500 AS more FROM generate_series(1, 3000) x;
SELECT bloom_cardinality(bloom_agg(x, bloomfilter(1000, layout => 'standard'))) > 2500 AS more FROM generate_series(1, 3000) x;
SELECT bloom_cardinality(bloom_agg(x, bloomfilter(1000, layout => 'counting'))) > 2500 AS more FROM generate_series(1, 3000) x;
SELECT bloom_cardinality(bloom_add_all(bloomfilter(100, layout => 'counting'), (SELECT array_agg(x) FROM generate_series(1, 300) x))) > 250 AS more;
SELECT bloom_cardinality(a | b) > 1900 AS more FROM (SELECT bloom_agg(x, sized) FILTER (WHERE x <= 1000) AS a, bloom_agg(x, sized) FILTER (WHERE x > 1000) AS b FROM layouts_v, generate_series(1, 2000) x WHERE name = 'counting') s;
-- copies are not elements
SELECT round(bloom_cardinality(bloom_agg(x % 500, sized))::numeric, -1) AS copies FROM layouts_v, generate_series(1, 3000) x WHERE name = 'counting';
-- exactly full does not warn, nor does a filter that grows
SELECT name, n, count(*) FROM layouts_v, unnest('{1,3,10,100,1000}'::int[]) n, generate_series(1, 10) i,
	LATERAL (SELECT bloomfilter(n, layout => layout, expansion => expansion) AS t OFFSET 0) t, LATERAL (SELECT bloom_agg(x + i * 1000000, t) FROM generate_series(1, n) x) s GROUP BY name, n ORDER BY name, n;
SELECT name, n, (bloom_info(f)).layers, (bloom_info(f)).expected_fpr <= 0.01 AS fpr FROM layouts_v, unnest('{10,100}'::int[]) n, LATERAL (SELECT bloomfilter(n, layout => layout, expansion => expansion) AS t OFFSET 0) t,
	LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, 20000) x) s WHERE expansion > 0 ORDER BY name, n;
-- the rates of united layers add up: past the target it says so
SELECT (bloom_info(f)).layers, round(bloom_expected_fpr(f)::numeric, 3) AS expected FROM (SELECT bloom_union_agg(f) AS f FROM (SELECT bloom_agg(x + i * 10000, bloomfilter(1000, expansion => 2)) AS f FROM generate_series(1, 10) i, generate_series(1, 1000) x GROUP BY i) p) s;
SELECT (bloom_info(f)).layers, bloom_expected_fpr(f) > 0.011 AS expected FROM (SELECT bloom_union_agg(f) AS f FROM (SELECT bloom_agg(x + i * 10000, bloomfilter(1000, layout => 'cuckoo', expansion => 2)) AS f FROM generate_series(1, 20) i, generate_series(1, 1000) x GROUP BY i) p) s;
-- saturated
SELECT f @> -1 AS passes, bloom_cardinality(f), bloom_expected_fpr(f), bloom_add(f, 1) = f AS add, bloom_remove(f, 1) = f AS remove, f | f = f AS "|", f & f = f AS "&", f::text::bloomfilter = f AS io
FROM (SELECT bloom_agg(x % 500, bloomfilter(10, layout => 'counting')) AS f FROM generate_series(1, 30000) x) s;

-- ------------------------------------------------------- union of aggregates
SELECT name, bloom_union_agg(f) = bloom_agg AS same, (bloom_info(bloom_union_agg(f))).layers, round(bloom_cardinality(bloom_union_agg(f))) BETWEEN 970 AND 1030 AS cardinality, bloom_union_agg(f) @> 1 AND bloom_union_agg(f) @> 2 AND bloom_union_agg(f) @> 3 AS found
FROM (SELECT name, g, bloom_agg(x, sized) AS f FROM layouts_v, layouts_t WHERE x <= 1000 GROUP BY name, g, sized UNION ALL SELECT name, 4, NULL FROM layouts_v UNION ALL SELECT name, 5, bloomfilter() FROM layouts_v UNION ALL SELECT name, 6, unsized FROM layouts_v UNION ALL SELECT name, 7, sized FROM layouts_v) p
JOIN (SELECT name, bloom_agg(x, sized) FROM layouts_v, layouts_t WHERE x <= 1000 GROUP BY name, sized) a USING (name) GROUP BY name, bloom_agg ORDER BY name;
SELECT name, bloom_union_agg(f) = sized AS empty FROM layouts_v, LATERAL unnest(ARRAY[sized, NULL, sized, unsized]) f GROUP BY name, sized ORDER BY name;
SELECT name, bloom_union_agg(f) = unsized AS unsized FROM layouts_v, LATERAL unnest(ARRAY[unsized, NULL]) f GROUP BY name, unsized ORDER BY name;
SELECT name, bool_and(i @> x) AS kept, (SELECT count(*) FROM generate_series(1001, 2000) y WHERE i @> y) < 25 AS others
FROM layouts_v, LATERAL (SELECT bloom_intersect_agg(f) AS i FROM (SELECT bloom_agg(x + o, sized) AS f FROM generate_series(1, 1000) x, unnest('{0,100,200}'::int[]) o GROUP BY o) p) s, generate_series(201, 1000) x
WHERE expansion = 0 GROUP BY name, i ORDER BY name;
SELECT bloom_union_agg(f) FROM layouts_f WHERE n = 1000 AND name IN ('cuckoo', 'counting');
SELECT layouts_error('SELECT bloom_union_agg(f) FROM layouts_f, generate_series(1, 2) WHERE n = 1000 AND name = ''cuckoo''');
-- windows go on with what they have
SELECT name, bool_and(f @> x AND f @> greatest(1, x - 9)) AS found, bool_and(round(bloom_cardinality(f)) BETWEEN least(x, 10) - 1 AND least(x, 10) + 1) AS cardinality
FROM (SELECT name, x, bloom_agg(x, sized) OVER (PARTITION BY name ORDER BY x ROWS 9 PRECEDING) AS f FROM layouts_v, generate_series(1, 60) x) w GROUP BY name ORDER BY name;
SELECT name, bool_and(f @> x AND f @> 1 AND u @> x AND u @> 1) AS found, max((bloom_info(f)).layers) AS layers, max((bloom_info(u)).layers) AS united
FROM (SELECT name, x, bloom_agg(x, bloomfilter(10, layout => layout, expansion => expansion)) OVER w AS f, bloom_union_agg(bloom_add(sized, x)) OVER w AS u FROM layouts_v, generate_series(1, 30) x
	WHERE expansion > 0 WINDOW w AS (PARTITION BY name ORDER BY x)) w GROUP BY name ORDER BY name;

-- ------------------------------------------------------------------ parallel
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 2;
CREATE TABLE layouts_p AS SELECT name, g, bloom_agg(x, sized) AS f FROM layouts_v, layouts_t WHERE x <= 900 GROUP BY name, g, sized;
-- so many rows that workers pay
INSERT INTO layouts_p SELECT name, 0, NULL FROM layouts_v, generate_series(1, 3000);
ALTER TABLE layouts_p SET (parallel_workers = 2);
ANALYZE layouts_p;
CREATE FUNCTION layouts_plan(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan::text ~ '"Partial Mode": "Partial"' AND plan::text ~ '"Partial Mode": "Finalize"' AND plan::text ~ '"Workers Planned": [1-9]';
END $$;
-- in parallel, with and without the leader: is everything there, is it as large
-- as it should be, is it the same as from one process?
CREATE FUNCTION layouts_parallel(query text, lo int, hi int, copies int, OUT parallel boolean, OUT lost bigint, OUT strangers boolean, OUT cardinality boolean, OUT same boolean) LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
	g bloomfilter;
	serial bloomfilter;
BEGIN
	SET LOCAL max_parallel_workers_per_gather = 2;
	SET LOCAL parallel_leader_participation = on;
	parallel := layouts_plan(query);
	EXECUTE query INTO f;
	SET LOCAL parallel_leader_participation = off;
	EXECUTE query INTO g;
	SET LOCAL max_parallel_workers_per_gather = 0;
	parallel := parallel AND NOT layouts_plan(query);
	EXECUTE query INTO serial;
	SELECT count(*) FILTER (WHERE NOT f @> x OR NOT g @> x OR NOT serial @> x), count(*) FILTER (WHERE f @> -x) <= (hi - lo + 1) * 0.01 + 3 * sqrt((hi - lo + 1) * 0.01) INTO lost, strangers FROM generate_series(lo, hi) x;
	cardinality := bloom_cardinality(f) BETWEEN 0.97 * copies AND 1.03 * copies AND bloom_cardinality(g) BETWEEN 0.97 * copies AND 1.03 * copies;
	same := f = serial AND g = serial;
END $$;
SELECT name, what, parallel, lost, strangers, cardinality, CASE WHEN layout <> 'cuckoo' AND expansion = 0 THEN same END AS same
FROM layouts_v, (VALUES (1, 'sized', 'SELECT bloom_agg(x, bloomfilter(30000, layout => %2$L, expansion => %3$s)) FROM layouts_t'),
	(2, 'grows', 'SELECT bloom_agg(x, bloomfilter(%4$s, layout => %2$L, expansion => %3$s)) FROM layouts_t'),
	(3, 'sizes itself', 'SELECT bloom_agg(x, bloomfilter(layout => %2$L, expansion => %3$s)) FROM layouts_t'),
	(4, 'one worker''s', 'SELECT bloom_agg(x, bloomfilter(layout => %2$L, expansion => %3$s)) FILTER (WHERE g >= 0) FROM layouts_t')) q(o, what, query),
	layouts_parallel(format(query, name, layout, expansion, CASE expansion WHEN 0 THEN 30000 ELSE 1000 END), 1, 30000, 30000) p
ORDER BY name, o;
SELECT name, p.* FROM layouts_v, layouts_parallel(format('SELECT bloom_agg(x %% 10 + 1, bloomfilter(1000, layout => %L, expansion => %s)) FROM layouts_t', layout, expansion), 1, 10, 10) p WHERE layout <> 'cuckoo' AND expansion = 0 ORDER BY name;
SELECT name, p.parallel, p.lost, p.strangers, p.cardinality FROM layouts_v, layouts_parallel(format('SELECT bloom_union_agg(f) FROM layouts_p WHERE name = %L', name), 1, 900, 900) p ORDER BY name;
SELECT name, layouts_plan(q) AS parallel, layouts_error(q) FROM layouts_v, LATERAL (SELECT format('SELECT bloom_intersect_agg(f) FROM layouts_p WHERE name = %L', name) AS q) q ORDER BY name;
-- past memory, in every process.  How well folded filters meet the rate depends
-- on how even the workers' shares are: here it is about the others
SET client_min_messages = error;
SET work_mem = '64kB';
SET hash_mem_multiplier = 1;
SELECT name, p.parallel, p.lost, CASE WHEN multiset OR expansion > 0 THEN p.strangers END AS strangers, p.cardinality FROM layouts_v, layouts_parallel(format('SELECT bloom_agg(x, bloomfilter(layout => %L, expansion => %s)) FROM layouts_t', layout, expansion), 1, 30000, 30000) p ORDER BY name;
RESET work_mem;
RESET hash_mem_multiplier;
RESET client_min_messages;
-- groups, copies, nothing, NULLs
SELECT name, bool_and(layouts_plan(format(query, layout, expansion))) AS parallel, string_agg(what, ', ' ORDER BY what) AS queries
FROM layouts_v, (VALUES ('groups', 'SELECT g, bloom_agg(x, bloomfilter(layout => %L, expansion => %s)) FROM layouts_t GROUP BY g'), ('NULLs', 'SELECT bloom_agg(n, bloomfilter(layout => %L, expansion => %s)) FROM layouts_t')) v(what, query) GROUP BY name ORDER BY name;
CREATE FUNCTION layouts_groups(layout text, expansion int, OUT groups boolean, OUT copies text, OUT nulls boolean, OUT nothing boolean, OUT text boolean) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('SELECT bool_and(f @> t.x) FROM (SELECT g, bloom_agg(x, bloomfilter(layout => %L, expansion => %s)) AS f FROM layouts_t GROUP BY g) a JOIN layouts_t t USING (g)', layout, expansion) INTO groups;
	EXECUTE format('SELECT round(bloom_cardinality(bloom_agg(x / 2, bloomfilter(40000, layout => %L, expansion => %s)))::numeric, -3) FROM layouts_t', layout, expansion) INTO copies;
	EXECUTE format('SELECT bloom_cardinality(bloom_agg(n, bloomfilter(layout => %L, expansion => %s))) BETWEEN 21500 AND 23000 FROM layouts_t', layout, expansion) INTO nulls;
	EXECUTE format('SELECT bloom_agg(x, bloomfilter(layout => %L, expansion => %s)) = bloomfilter() FROM layouts_t WHERE x < 0', layout, expansion) INTO nothing;
	EXECUTE format('SELECT bool_and(f @> s) FROM (SELECT bloom_agg(s, bloomfilter(layout => %L, expansion => %s)) AS f FROM layouts_t) a, layouts_t', layout, expansion) INTO text;
END $$;
SELECT name, g.* FROM layouts_v, layouts_groups(layout, expansion) g ORDER BY name;
-- out of room in the leader, and in a worker
SELECT layouts_plan('SELECT bloom_agg(x, bloomfilter(29999, layout => ''cuckoo'')) FROM layouts_t') AS parallel, layouts_error('SELECT bloom_agg(x, bloomfilter(29999, layout => ''cuckoo'')) FROM layouts_t') LIKE '54000 %' AS leader,
	layouts_error('SELECT bloom_agg(x, bloomfilter(100, layout => ''cuckoo'')) FROM layouts_t') LIKE '54000 filter is full: it holds 100 %' AS worker;
RESET parallel_setup_cost;
RESET parallel_tuple_cost;
RESET min_parallel_table_scan_size;
RESET max_parallel_workers_per_gather;

-- ---------------------------------------------------------- dump and restore
CREATE TABLE layouts_dump AS SELECT name, n::text AS what, f FROM layouts_f UNION ALL SELECT name, 'unsized', unsized FROM layouts_v UNION ALL SELECT name, 'sized', sized FROM layouts_v
UNION ALL SELECT name, 'enum', bloom_add(sized, 'red'::layouts_color) FROM layouts_v UNION ALL SELECT name, 'large', bloom_agg(x, unsized) FROM layouts_v, layouts_t GROUP BY name, unsized UNION ALL SELECT 'NULL', 'NULL', NULL;
CREATE TABLE layouts_text (LIKE layouts_dump);
CREATE TABLE layouts_binary (LIKE layouts_dump);
\cd :builddir
\copy layouts_dump TO 'results/layouts.data'
\copy layouts_text FROM 'results/layouts.data'
\copy layouts_dump TO 'results/layouts.data' (FORMAT binary)
\copy layouts_binary FROM 'results/layouts.data' (FORMAT binary)
SELECT d.name, count(*), bool_and(d.f::bytea IS NOT DISTINCT FROM t.f::bytea) AS "text", bool_and(d.f::bytea IS NOT DISTINCT FROM b.f::bytea) AS "binary"
FROM layouts_dump d JOIN layouts_text t USING (name, what) JOIN layouts_binary b USING (name, what) GROUP BY d.name ORDER BY d.name;
-- and they go on
SELECT name, bool_and(bloom_add(f, 4711) @> 4711) AS added, bool_and(f | sized = f) AS united FROM layouts_text JOIN layouts_v USING (name) WHERE what IN ('0', '1', '500', 'sized') AND f <> bloomfilter() GROUP BY name ORDER BY name;

-- -------------------------------------------------------- bytes that are none
CREATE FUNCTION layouts_state(image bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
BEGIN
	f := image::bloomfilter;
	RETURN CASE WHEN f::bytea = image THEN 'same' ELSE 'changed' END;
EXCEPTION WHEN OTHERS THEN
	BEGIN
		f := replace(encode(image, 'base64'), E'\n', '')::bloomfilter;
		RETURN 'as text it goes in';
	EXCEPTION WHEN OTHERS THEN
		RETURN 'refused';
	END;
END $$;
CREATE TABLE layouts_images AS
SELECT name, bloom_add_all(bloomfilter(3, 0.1, layout, expansion => expansion), ARRAY[1,2,3] || CASE WHEN expansion > 0 THEN ARRAY[4,5,6,7,8] END)::bytea AS image FROM layouts_v UNION ALL
SELECT name || ', empty', sized::bytea FROM layouts_v UNION ALL SELECT name || ', unsized', unsized::bytea FROM layouts_v;
SELECT layouts_state(image), count(*) FROM layouts_images GROUP BY 1;
SELECT layouts_state(substr(image, 1, n)), count(*) FROM layouts_images, generate_series(0, octet_length(image) - 1) n GROUP BY 1;
SELECT layouts_state(set_bit(image, n, 1 - get_bit(image, n))), count(*) FROM layouts_images, generate_series(0, octet_length(image) * 8 - 1) n WHERE name NOT LIKE '%unsized' GROUP BY 1;
SELECT layouts_state(image || more), count(*) FROM layouts_images, unnest('{"\\x00","\\xff00"}'::bytea[] || decode(repeat('00', 64), 'hex')) more GROUP BY 1;
-- one layout's bytes under another's number
SELECT layouts_state(set_byte(a.image, 3, id)), count(*) FROM layouts_images a, generate_series(0, 255) id WHERE get_byte(a.image, 3) <> id GROUP BY 1;

DROP FUNCTION layouts_error, layouts_kinds, layouts_remove, layouts_self, layouts_plan, layouts_parallel, layouts_groups, layouts_state;
DROP TABLE layouts_v, layouts_f, layouts_halves, layouts_full, layouts_t, layouts_kept, layouts_p, layouts_dump, layouts_text, layouts_binary, layouts_images;
DROP TYPE layouts_color, layouts_pair;
