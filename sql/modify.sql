-- Adding, clearing, combining.
SET extra_float_digits = 0;

-- bloom_add
SELECT f @> 'a' AS a, f @> 'b' AS b, f @> 'c' AS c FROM (SELECT bloom_add(bloom_add(bloomfilter(10), 'a'), 'b') AS f) s;
SELECT element, bits_set, round(cardinality::numeric, 2) AS cardinality FROM bloom_info(bloom_add(bloom_add(bloomfilter(10), 'a'), 'b'));
SELECT bloom_add(NULL, 1) IS NULL AS filter, bloom_add(bloomfilter(10), NULL) = bloomfilter(10) AS literal,
	bloom_add(bloomfilter(10), NULL::int) = bloomfilter(10) AS value, bloom_add(NULL, NULL::int) IS NULL AS both,
	bloom_add(bloomfilter(), NULL) = bloomfilter() AS unsized;
SELECT bloom_add(bloomfilter(), 1);
SELECT bloom_add_all(bloomfilter(), '{1}'::int[]);
SELECT bloom_add(filter => bloomfilter(10), value => 1) = bloom_add(bloomfilter(10), 1) AS named;
SELECT bloom_add(bloomfilter(10), 'a') = bloom_add(bloomfilter(10), 'a'::varchar) AS varchar, bloom_add(bloomfilter(10), 'a') = bloom_add(bloomfilter(10), 'a'::char(5)) AS bpchar,
	bloom_add(bloomfilter(10), 'a') = bloom_add(bloomfilter(10), 'a'::name) AS name;
-- the same element again changes nothing, nor does the order
SELECT bloom_add(f, 1) = f AS again, bloom_add_all(f, '{1,2,1}'::int[]) = f AS "all",
	bloom_add(bloom_add(bloomfilter(10), 2), 1) = f AS "order"
FROM (SELECT bloom_add(bloom_add(bloomfilter(10), 1), 2) AS f) s;
-- a filter from a table is not written to
CREATE TEMP TABLE kept AS SELECT bloom_agg(x, 10000) AS f FROM generate_series(1, 1000) x;
SELECT bloom_add(f, -1) <> f AS added, NOT f @> -1 AS kept, bloom_add(f, -1) @> -1 AS found FROM kept;
UPDATE kept SET f = bloom_add(f, -1);
SELECT f @> -1 AS added, f @> 1000 AS kept FROM kept;
UPDATE kept SET f = bloom_add(f, NULL::int);
SELECT f @> -1 AS kept FROM kept;
-- a loop
DO $$
DECLARE
	f bloomfilter := bloomfilter(1000);
BEGIN
	FOR i IN 1..1000 LOOP
		f := bloom_add(f, i);
		f := bloom_add(f, NULL::int);
	END LOOP;
	RAISE NOTICE 'same as the aggregate: %', f = (SELECT bloom_agg(x, 1000) FROM generate_series(1, 1000) x);
END $$;

-- bloom_add_all
SELECT bloom_add_all(bloomfilter(10), '{1,2,3}'::int[]) = (SELECT bloom_agg(x, 10) FROM generate_series(1, 3) x) AS same,
	bloom_add_all(bloomfilter(10), '{1,NULL,2,NULL,3}'::int8[]) = bloom_add_all(bloomfilter(10), '{{3},{2},{1}}'::int2[]) AS "skips NULL",
	bloom_add_all(bloomfilter(10), '{}'::int[]) = bloomfilter(10) AS nothing, bloom_add_all(bloomfilter(10), '{NULL}'::int[]) = bloomfilter(10) AS "only NULL",
	bloom_add_all(bloomfilter(10), NULL::int[]) = bloomfilter(10) AS "NULL", bloom_add_all(NULL, '{1}'::int[]) IS NULL AS filter;
SELECT bloom_add_all(bloomfilter(10), '{a,b}'::varchar[]) = bloom_add_all(bloomfilter(10), '{b,a}'::text[]) AS varchar;
SELECT bloom_add_all(bloomfilter(10), '{a}');
SELECT bool_and(f = bloom_add_all(bloomfilter(1000, layout => layout, hash => hash), (SELECT array_agg(x) FROM generate_series(1, 500) x)))
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash,
	LATERAL (SELECT bloom_agg(x, bloomfilter(1000, layout => layout, hash => hash)) AS f FROM generate_series(1, 500) x) s;

-- bloom_clear
SELECT bool_and(bloom_clear(bloom_add(f, 1)) = f) FROM unnest(ARRAY[bloomfilter(10), bloomfilter(10, 0.1, 'standard', 'blake2b', 'secret', 0, 3)]) f;
SELECT bloom_clear(bloomfilter()) = bloomfilter() AS unsized, bloom_clear(f) = bloomfilter(10000) AS stored FROM kept;

-- union: the same bytes as one filter of all elements
SELECT layout, hash, k, a | b = c AS union, b | a = c AS commutes, a | a = a AS idempotent, (a | b) | c = a | (b | c) AS associates,
	bloom_union(a, b) = c AS function, a | bloom_clear(a) = a AND bloom_clear(a) | a = a AS empty, a | bloomfilter() = a AND bloomfilter() | a = a AS unsized
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash, unnest('{NULL,4}'::int[]) k,
	LATERAL (SELECT bloomfilter(3000, layout => layout, hash => hash, hashes => k) AS t) t,
	LATERAL (SELECT bloom_agg(x, t) AS c, bloom_agg(x, t) FILTER (WHERE x < 2000) AS a, bloom_agg(x, t) FILTER (WHERE x > 1000) AS b FROM generate_series(1, 3000) x) s
ORDER BY layout, hash, k;
SELECT (NULL | bloomfilter(10)) IS NULL AS "|", (bloomfilter(10) & NULL) IS NULL AS "&", bloom_compatible(NULL, bloomfilter(10)) IS NULL AS compatible;
SELECT bloomfilter() | bloomfilter() = bloomfilter() AS unsized;
-- how to append a batch, empty or not
UPDATE kept SET f = f | (SELECT bloom_agg(x, f) FROM generate_series(5001, 6000) x);
UPDATE kept SET f = f | (SELECT bloom_agg(x, f) FROM generate_series(1, 0) x);
UPDATE kept SET f = f | (SELECT bloom_agg(nullif(x, x), f) FROM generate_series(1, 3) x);
SELECT bool_and(f @> x), count(*) FROM kept, generate_series(1, 6000) x WHERE x NOT BETWEEN 1001 AND 5000;

-- intersection never loses what both have
SELECT layout, hash, bool_and(a & b @> x) AS kept, count(*), (a & b) = (b & a) AS commutes, a & a = a AS idempotent,
	a & bloom_clear(a) = bloom_clear(a) AS empty, a & bloomfilter() = bloom_clear(a) AND bloomfilter() & a = bloom_clear(a) AS unsized,
	(SELECT count(*) FROM generate_series(10001, 20000) y WHERE a & b @> y) < 200 AS selective
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash,
	LATERAL (SELECT bloomfilter(3000, layout => layout, hash => hash) AS t) t,
	LATERAL (SELECT bloom_agg(x, t) FILTER (WHERE x < 2000) AS a, bloom_agg(x, t) FILTER (WHERE x > 1000) AS b FROM generate_series(1, 3000) x) s,
	generate_series(1001, 1999) x
GROUP BY layout, hash, a, b ORDER BY layout, hash;
-- nothing in common: an empty filter, which is its header alone
SELECT bloom_add(bloomfilter(1000), 1) & bloom_add(bloomfilter(1000), 2) = bloomfilter(1000) AS empty;
SELECT bloomfilter() & bloomfilter() = bloomfilter() AS unsized;

-- what does not go together: both values are named
SELECT bloomfilter(1000) | bloomfilter(1000, layout => 'standard');
SELECT bloomfilter(1000) | bloomfilter(1000, hash => 'blake2b');
SELECT bloomfilter(1000, hash => 'blake2b') | bloomfilter(1000, hash => 'blake2b', key => 'a');
-- but no key
SELECT bloomfilter(1000, hash => 'blake2b', key => 'a') | bloomfilter(1000, hash => 'blake2b', key => 'b');
SELECT bloomfilter(1000) | bloomfilter(2000);
SELECT bloomfilter(1000) | bloomfilter(1000, 0.02);
SELECT bloomfilter(1000) | bloomfilter(1000, hashes => 3);
SELECT bloom_add(bloomfilter(1000), 1) | bloom_add(bloomfilter(1000), 'a');
SELECT bloom_add(bloomfilter(1000), 1) & bloom_add(bloomfilter(1000), 'a');
SELECT bloomfilter(1000) & bloomfilter(2000);
SELECT bloom_intersect(bloomfilter(1000), bloomfilter(2000));
SELECT bloom_union(bloomfilter(1000), bloomfilter(2000));
-- bloom_compatible says so before
SELECT a, b, bloom_compatible(a.f, b.f)
FROM (VALUES ('1000', bloomfilter(1000)), ('1', bloom_add(bloomfilter(1000), 1)), ('a', bloom_add(bloomfilter(1000), 'a')), ('2000', bloomfilter(2000)), ('unsized', bloomfilter(layout => 'standard'))) a(a, f),
	(VALUES ('1000', bloomfilter(1000)), ('1', bloom_add(bloomfilter(1000), 1))) b(b, f)
ORDER BY a, b;
-- capacities that come to one size combine; the larger one stands
SELECT a.capacity, b.capacity, a.bits = b.bits AS bits, c.capacity, c.target_fpr, f1 | f2 = f2 | f1 AS commutes, bloom_compatible(f1, f2)
FROM (SELECT bloom_add(bloomfilter(1000), 1) AS f1, bloom_add(bloomfilter(1001), 2) AS f2) s,
	bloom_info(f1) a, bloom_info(f2) b, bloom_info(f1 | f2) c;
SELECT bloomfilter(1000) | bloomfilter(1001) = bloomfilter(1001) AS "union", bloomfilter(1000) & bloomfilter(1001) = bloomfilter(1001) AS "intersection";

-- overfilled: one WARNING a statement
SELECT bloom_cardinality(bloom_add_all(bloomfilter(100), (SELECT array_agg(x) FROM generate_series(1, 300) x))) > 250 AS more;
SELECT bloom_cardinality(f | g) > 1500 AS more
FROM (SELECT bloom_agg(x, 1000) FILTER (WHERE x <= 1000) AS f, bloom_agg(x, 1000) FILTER (WHERE x > 1000) AS g FROM generate_series(1, 2000) x) s;
DO $$
DECLARE
	f bloomfilter := bloomfilter(100);
BEGIN
	FOR i IN 1..500 LOOP
		f := bloom_add(f, i);
	END LOOP;
END $$;
SELECT count(bloom_add_all(bloomfilter(10), (SELECT array_agg(x) FROM generate_series(1, 100) x))) FROM generate_series(1, 10);
-- every statement again
SELECT count(bloom_add_all(bloomfilter(10), (SELECT array_agg(x) FROM generate_series(1, 100) x)));
-- exactly full is not overfilled
SELECT layout, n, count(bloom_add_all(bloomfilter(n, layout => layout), (SELECT array_agg(x + i * 1000000) FROM generate_series(1, n) x)))
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{1,2,10,100,1000}'::int[]) n, generate_series(1, 20) i
GROUP BY layout, n ORDER BY layout, n;
