-- bloom_agg, bloom_union_agg, bloom_intersect_agg; parallel.sql has them in
-- parallel plans.
SET extra_float_digits = 0;
CREATE TEMP TABLE t AS SELECT x, x % 3 AS g, CASE WHEN x % 5 > 0 THEN x END AS n, 'code-' || x AS s FROM generate_series(1, 3000) x;

-- the ways to size it
SELECT pg_typeof(f), bool_and(f @> x) AS found, (bloom_info(f)).bits, (bloom_info(f)).bits_set, round((bloom_info(f)).cardinality) AS cardinality
FROM (SELECT bloom_agg(x, 3000) AS f FROM t) a, t GROUP BY f;
SELECT bloom_agg(x, 3000, 0.01) = bloom_agg(x, 3000) AS "0.01", bloom_agg(x, 3000, NULL) = bloom_agg(x, 3000) AS "NULL",
	bloom_agg(x, 3000::float8) = bloom_agg(x, 3000) AS float8, bloom_agg(x, 3e3) = bloom_agg(x, 3000) AS "numeric", bloom_agg(x, 3000::bigint) = bloom_agg(x, 3000) AS "bigint",
	bloom_agg(x, bloomfilter(3000)) = bloom_agg(x, 3000) AS template, bloom_agg(x, bloomfilter(3000, 0.001)) = bloom_agg(x, 3000, 0.001) AS template
FROM t;
SELECT layout, hash, keyed, element, capacity, target_fpr, hashes FROM bloom_info((SELECT bloom_agg(s, bloomfilter(3000, 0.1, 'standard', 'blake2b', 'secret', 0, 2)) FROM t));
-- from a table whose size is known
SELECT bool_and(f @> x) FROM (SELECT bloom_agg(x, (SELECT count(*) FROM t)) AS f FROM t) a, t;
-- the same set, the same bytes: whatever the order, the repeats and the type
SELECT bloom_agg(x, 3000) = bloom_agg(x, 3000 ORDER BY x DESC) AS "order", bloom_agg(x, 3000) = bloom_agg(DISTINCT x, 3000) AS "distinct",
	bloom_agg(x, 3000) = bloom_agg(x::int8, 3000) AS int8, bloom_agg(x / 2, 3000) = bloom_agg(DISTINCT x / 2, 3000) AS repeats,
	bloom_agg(s, 3000) = bloom_agg(s::varchar, 3000) AS "varchar", bloom_agg(s, 3000) = bloom_agg(s::char(20), 3000) AS "bpchar"
FROM t;
-- a template's elements are not taken over, but its kind counts
SELECT bloom_agg(x, bloom_add(bloomfilter(3000), -1)) = bloom_agg(x, 3000) AS elements FROM t;
SELECT bloom_agg(s, bloom_add(bloomfilter(3000), -1)) FROM t;

-- NULLs are skipped
SELECT bloom_agg(n, 3000) = bloom_agg(x, 3000) FILTER (WHERE x % 5 > 0) AS skipped FROM t;
-- no rows, or only NULLs: unsized, never NULL, and contains nothing for sure
SELECT what, f IS NULL AS "null", f = bloomfilter() AS unsized, (bloom_info(f)).bits, NOT (f @> 1) AS "not", bloom_compatible(f, bloom_add(bloomfilter(10), 'x')) AS "goes with any"
FROM (SELECT 'no rows, capacity' AS what, bloom_agg(x, 3000) AS f FROM t WHERE false
	UNION ALL SELECT 'no rows, fpr', bloom_agg(x, 3000, 0.1) FROM t WHERE false
	UNION ALL SELECT 'no rows, template', bloom_agg(x, bloomfilter(10, layout => 'standard')) FROM t WHERE false
	UNION ALL SELECT 'only NULLs, capacity', bloom_agg(n, 3000) FROM t WHERE n IS NULL
	UNION ALL SELECT 'only NULLs, fpr', bloom_agg(n, 3000, 0.1) FROM t WHERE n IS NULL
	UNION ALL SELECT 'only NULLs, template', bloom_agg(n, bloomfilter(10, layout => 'standard')) FROM t WHERE n IS NULL
	UNION ALL SELECT 'FILTER', bloom_agg(x, 3000) FILTER (WHERE false) FROM t
	UNION ALL SELECT 'union, only NULLs', bloom_union_agg(NULL) FROM t
	UNION ALL SELECT 'union, no rows', bloom_union_agg(bloomfilter(10)) FROM t WHERE false) v;
SELECT count(*) FROM t WHERE NOT ((SELECT bloom_agg(x, 10) FROM t WHERE false) @> x);

-- GROUP BY, FILTER, HAVING
SELECT g, bool_and(f @> x) AS found, bool_and(f = h) AS same FROM t
JOIN (SELECT g, bloom_agg(x, 1000) AS f, bloom_agg(x, 1000) FILTER (WHERE x % 3 = g) AS h FROM t GROUP BY g) a USING (g)
GROUP BY g ORDER BY g;
SELECT g, bloom_agg(x, 1000) = (SELECT bloom_agg(x, 1000) FROM t u WHERE u.g = t.g) AS same FROM t GROUP BY g HAVING bloom_agg(x, 1000) @> 1 ORDER BY g;
SELECT x % 3 AS a, x % 2 AS b, count(*), bloom_cardinality(bloom_agg(x, 1000)) BETWEEN count(*) * 0.95 AND count(*) * 1.05 AS near
FROM t WHERE x <= 600 GROUP BY GROUPING SETS ((1), (2), (1, 2), ()) ORDER BY 1, 2;
-- sorted groups
SET enable_hashagg = off;
SELECT bool_and(f @> x), count(DISTINCT h) FROM t JOIN (SELECT x % 100 AS h, bloom_agg(x, 30) AS f FROM t GROUP BY 1) a ON x % 100 = h;
RESET enable_hashagg;
SELECT bool_and(f @> x), count(DISTINCT h) FROM t JOIN (SELECT x % 100 AS h, bloom_agg(x, 30) AS f FROM t GROUP BY 1) a ON x % 100 = h;
-- parameters may differ between groups, and come from the row
SELECT c, (bloom_info(f)).capacity, (bloom_info(f)).target_fpr FROM (SELECT g * 100 + 1000 AS c, bloom_agg(x, g * 100 + 1000, 0.1 / (g + 1)) AS f FROM t GROUP BY g) a ORDER BY c;
SELECT c, (bloom_info(f)).capacity, (bloom_info(f)).layout
FROM (SELECT g AS c, bloom_agg(x, bloomfilter(1000 + g, layout => CASE g WHEN 1 THEN 'standard' ELSE 'blocked' END)) AS f FROM t GROUP BY g) a ORDER BY c;

-- but not within one
SELECT bloom_agg(x, 3000 + g) FROM t;
SELECT bloom_agg(x, 3000, 0.01 + g * 0.01) FROM t;
SELECT bloom_agg(x, bloomfilter(3000 + g)) FROM t;
SELECT bloom_agg(x, bloomfilter(3000, 0.01 + g * 0.01)) FROM t;
SELECT bloom_agg(x, bloomfilter(3000, layout => CASE g WHEN 0 THEN 'standard' ELSE 'blocked' END)) FROM t;
SELECT bloom_agg(x, bloomfilter(3000, hash => CASE g WHEN 0 THEN 'blake2b' ELSE 'xxh3' END)) FROM t;
SELECT bloom_agg(x, bloomfilter(3000, hash => 'blake2b', key => CASE g WHEN 0 THEN 'k'::bytea END)) FROM t;
SELECT bloom_agg(x, bloomfilter(3000, hash => 'blake2b', key => CASE g WHEN 0 THEN 'k' ELSE 'j' END::bytea)) FROM t;
SELECT bloom_agg(x, bloomfilter(3000, hashes => 3 + g)) FROM t;
-- a template whose elements change is the same template
SELECT bloom_agg(x, bloom_add(bloomfilter(3000), x % 7)) = bloom_agg(x, 3000) FROM t;
-- templates from a table, in line and out
CREATE TEMP TABLE templates AS SELECT 1 AS id, bloomfilter(3000) AS f UNION ALL SELECT 2, bloom_agg(x, 100000) FROM t;
SELECT id, bloom_agg(x, f) = bloom_agg(x, bloom_clear(f)) FROM t, templates GROUP BY id ORDER BY id;
ALTER TABLE templates ALTER f SET STORAGE extended;
UPDATE templates SET f = f::bytea::bloomfilter;
SELECT id, bloom_agg(x, f) = bloom_agg(x, bloom_clear(f)) FROM t, templates GROUP BY id ORDER BY id;
SELECT bloom_agg(x, f) FROM t, templates;

-- parameters out of range
SELECT bloom_agg(x, 0.01) FROM t;
SELECT bloom_agg(x, 0.01, 3000) FROM t;
SELECT bloom_agg(x, 0) FROM t;
SELECT bloom_agg(x, -1) FROM t;
SELECT bloom_agg(x, 10.5) FROM t;
SELECT bloom_agg(x, 'NaN') FROM t;
SELECT bloom_agg(x, 1e10) FROM t;
SELECT bloom_agg(x, 3000, 0) FROM t;
SELECT bloom_agg(x, 3000, 1) FROM t;
SELECT bloom_agg(x, 3000, 5) FROM t;
SELECT bloom_agg(x, n) FROM t;
-- without a capacity it sizes itself, in whatever words
SELECT bloom_agg(x) = bloom_agg(x, NULL) AS "NULL", bloom_agg(x) = bloom_agg(x, NULL, 0.01) AS "NULL, rate",
	bloom_agg(x) = bloom_agg(x, NULL::bloomfilter) AS "NULL template", bloom_agg(x) = bloom_agg(x, bloomfilter(NULL)) AS "bloomfilter(NULL)",
	bloom_agg(x) = bloom_agg(x, bloomfilter()) AS "bloomfilter()", bloom_agg(x) = bloom_agg(x, n.count) AS "sized"
FROM t, LATERAL (SELECT count(DISTINCT x) FROM t) n(count) GROUP BY n.count;
SELECT bloom_agg(*) FROM t;
-- and are looked at even where there is no value
SELECT bloom_agg(NULL::int, 0.01) FROM t;

-- windows: a growing frame, a moving one, partitions
SELECT bool_and(f @> x), bool_and(f @> 1), count(*) FILTER (WHERE f @> x + 1) < 20 AS "not yet"
FROM (SELECT x, bloom_agg(x, 200) OVER (ORDER BY x) AS f FROM t WHERE x <= 200) w;
SELECT bool_and(f = (SELECT bloom_agg(y, 200) FROM generate_series(1, x) y)) FROM (SELECT x, bloom_agg(x, 200) OVER (ORDER BY x) AS f FROM t WHERE x <= 200) w;
SELECT bool_and(f = (SELECT bloom_agg(y, 10) FROM generate_series(greatest(1, x - 4), x) y))
FROM (SELECT x, bloom_agg(x, 10) OVER (ORDER BY x ROWS 4 PRECEDING) AS f FROM t WHERE x <= 200) w;
SELECT bool_and(f = (SELECT bloom_agg(u.x, 100) FROM t u WHERE u.g = w.g AND u.x <= 200))
FROM (SELECT g, bloom_agg(x, 100) OVER (PARTITION BY g) AS f FROM t WHERE x <= 200) w;
SELECT x, f @> 1 AS "1", f = bloomfilter() AS unsized FROM (SELECT x, bloom_agg(x, 10) OVER (ORDER BY x ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING) AS f FROM t WHERE x <= 4) w;
SELECT bool_and(u @> x AND u @> 1) AS "union", bool_and(i @> 1) AS "intersection"
FROM (SELECT x, bloom_union_agg(f) OVER (ORDER BY x) AS u, bloom_intersect_agg(f) OVER (ORDER BY x) AS i
	FROM (SELECT x, bloom_add_all(bloomfilter(200), ARRAY[1, x]) AS f FROM t WHERE x <= 100) s) w;
-- a queued large filter, in the middle of its queue
SELECT bool_and(f @> x) FROM (SELECT x, bloom_agg(x, 200000) OVER (ORDER BY x) AS f FROM t WHERE x <= 100) w;

-- twice in one query, over one input
SELECT bloom_agg(x, 3000) = bloom_agg(x, 3000) AS same, bloom_agg(x, 3000) <> bloom_agg(x, 6000) AS other,
	(bloom_info(bloom_agg(x, 3000))).bits < (bloom_info(bloom_agg(x, 3000, 0.001))).bits AS fpr, bloom_agg(x, 3000) @> 1 AND bloom_agg(s, 3000) @> 'code-1' AS columns,
	bloom_agg(x, bloomfilter(3000)) <> bloom_agg(x, bloomfilter(3000, layout => 'standard')) AS layouts
FROM t;

-- rescans, functions, prepared statements, subqueries
SELECT count(*), bool_and(f @> i AND NOT f @> -i) FROM generate_series(1, 20) i, LATERAL (SELECT bloom_agg(x, 1000, 0.0001) AS f FROM t WHERE x BETWEEN i AND i + 50) s;
SELECT bool_and((bloom_info(f)).capacity = 1000 * i AND f @> 7) FROM generate_series(1, 5) i, LATERAL (SELECT bloom_agg(x, 1000 * i) AS f FROM t WHERE x < 100) s;
CREATE FUNCTION pg_temp.build(capacity float8, upto int) RETURNS bloomfilter LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
BEGIN
	SELECT bloom_agg(x, capacity) INTO f FROM t WHERE x <= upto;
	RETURN f;
END $$;
SELECT i, f @> i AS found, f @> 5000 AS other, (bloom_info(f)).capacity FROM generate_series(1000, 3000, 1000) i, pg_temp.build(i, i) f;
CREATE FUNCTION pg_temp.poly(value anyelement) RETURNS boolean LANGUAGE sql AS $$ SELECT bloom_agg(v, 10) @> value FROM (SELECT value AS v) s $$;
SELECT pg_temp.poly(1), pg_temp.poly('a'::text), pg_temp.poly(date '2026-01-01');
PREPARE build(float8) AS SELECT bloom_agg(x, $1) @> 7, (bloom_info(bloom_agg(x, $1))).capacity FROM t WHERE x < 100;
EXECUTE build(1000);
EXECUTE build('2000');
SET plan_cache_mode = force_generic_plan;
EXECUTE build(3000);
RESET plan_cache_mode;
PREPARE build_template(bloomfilter) AS SELECT bloom_agg(x, $1) = bloom_agg(x, 3000) FROM t;
EXECUTE build_template(bloomfilter(3000));
-- partition by partition
CREATE TABLE aggregate_parts (k int, x int) PARTITION BY LIST (k);
CREATE TABLE aggregate_parts1 PARTITION OF aggregate_parts FOR VALUES IN (1);
CREATE TABLE aggregate_parts2 PARTITION OF aggregate_parts FOR VALUES IN (2);
INSERT INTO aggregate_parts SELECT 1 + x % 2, x FROM generate_series(1, 2000) x;
ANALYZE aggregate_parts;
SET enable_partitionwise_aggregate = on;
SELECT k, f = (SELECT bloom_agg(x, 1000) FROM generate_series(k, 2000, 2) x) AS same FROM (SELECT 3 - k AS k, bloom_agg(x, 1000) AS f FROM aggregate_parts GROUP BY aggregate_parts.k) s ORDER BY k;
SELECT bloom_agg(x, 2000) = (SELECT bloom_agg(x, 2000) FROM generate_series(1, 2000) x) AS same FROM aggregate_parts;
RESET enable_partitionwise_aggregate;
DROP TABLE aggregate_parts;

-- union and intersection
CREATE TEMP TABLE parts AS SELECT g, bloom_agg(x, 3000) AS f FROM t GROUP BY g;
SELECT bloom_union_agg(f) = (SELECT bloom_agg(x, 3000) FROM t) AS same FROM parts;
INSERT INTO parts VALUES (3, NULL), (4, bloomfilter()), (5, bloomfilter(3000)), (6, bloomfilter(layout => 'standard', fpr => 0.1));
SELECT bloom_union_agg(f) = (SELECT bloom_agg(x, 3000) FROM t) AS same, bloom_union_agg(f ORDER BY g DESC) = bloom_union_agg(f) AS "order" FROM parts;
SELECT bloom_union_agg(f) = bloomfilter() AS unsized, bloom_union_agg(f ORDER BY g DESC) = bloomfilter() AS unsized FROM parts WHERE g IN (3, 4);
SELECT bloom_union_agg(f) = bloomfilter(3000) AS empty FROM parts WHERE g IN (3, 4, 5);
SELECT bool_and(i @> x), count(*), i = a & b & c AS same
FROM (SELECT bloom_agg(x, 3000) FILTER (WHERE x < 2000) AS a, bloom_agg(x, 3000) FILTER (WHERE x > 1000) AS b, bloom_agg(x, 3000) FILTER (WHERE x % 2 = 0) AS c FROM t) s,
	LATERAL (SELECT bloom_intersect_agg(f) AS i FROM unnest(ARRAY[a, b, c, NULL]) f) u, t
WHERE x > 1000 AND x < 2000 AND x % 2 = 0 GROUP BY i, a, b, c;
SELECT bloom_intersect_agg(f) IS NULL AS "no rows" FROM parts WHERE false;
SELECT bloom_intersect_agg(f) IS NULL AS "only NULLs" FROM parts WHERE f IS NULL;
SELECT bloom_intersect_agg(f) = f AS one FROM parts WHERE g = 0 GROUP BY f;
-- with the contents of nothing, nothing is in common
SELECT NOT bloom_intersect_agg(f) @> 3 AS unsized FROM parts WHERE g IN (0, 4);
SELECT bloom_intersect_agg(f) = bloomfilter(3000) AS empty, bloom_intersect_agg(f ORDER BY g DESC) = bloomfilter(3000) AS empty FROM parts WHERE g IN (0, 3, 4, 5);
SELECT bloom_union_agg(f) FROM (SELECT bloomfilter(10) UNION ALL SELECT bloomfilter(1000)) v(f);
SELECT bloom_union_agg(f) FROM (SELECT bloom_add(bloomfilter(10), 1) UNION ALL SELECT bloom_add(bloomfilter(10), 'x')) v(f);
SELECT bloom_intersect_agg(f) FROM (SELECT bloomfilter(10) UNION ALL SELECT bloomfilter(10, layout => 'standard')) v(f);
SELECT g, bloom_union_agg(f) = f AS one FROM parts WHERE g < 3 GROUP BY g, f ORDER BY g;

-- overfilled: one WARNING a statement, however many groups
SELECT (bloom_info(bloom_agg(x, 1500))).capacity FROM t;
SELECT count(f) FROM (SELECT bloom_agg(x, 300) AS f FROM t GROUP BY g) s;
SELECT count(f) FROM (SELECT bloom_agg(x, 100) OVER (ORDER BY x) AS f FROM t WHERE x < 300) s;
SELECT (bloom_info(bloom_union_agg(f))).capacity FROM (SELECT bloom_agg(x, 1000) AS f FROM t GROUP BY g) s;
-- exactly full does not warn
SELECT layout, n, count(*)
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{1,3,10,100,1000,20000}'::int[]) n, generate_series(1, 10) i,
	LATERAL (SELECT bloomfilter(n, layout => layout) AS t OFFSET 0) t, LATERAL (SELECT bloom_agg(x + i * 1000000, t) FROM generate_series(1, n) x) s
GROUP BY layout, n ORDER BY layout, n;
