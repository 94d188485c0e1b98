-- False-positive rates as SQL sees them, against the bound: of T probes with
-- absent keys no more than T q + 3 sqrt(T q (1 - q)) pass, where q is the rate
-- asked for, or the formula's for m and k.  test/core/rates.c goes over many
-- more sizes, rates and key patterns.
SET extra_float_digits = 0;

CREATE FUNCTION pg_temp.bound(t float8, q float8) RETURNS float8 IMMUTABLE LANGUAGE sql
RETURN t * q + 3 * sqrt(t * q * (1 - q));
-- the textbook's rate, without what double hashing costs
CREATE FUNCTION pg_temp.q(layout text, n float8, p float8, bits float8, k float8) RETURNS float8 IMMUTABLE LANGUAGE sql
RETURN CASE layout WHEN 'standard' THEN greatest(p, (1 - exp(-k * n / bits)) ^ k) ELSE p END;

-- large filters, one at a time
CREATE TEMP TABLE large AS
SELECT i.*, p, n, missed, passed
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash, unnest('{0.1,0.01,0.001}'::float8[]) p, (SELECT 100000 AS n) n,
	LATERAL (SELECT bloomfilter(n, p, layout => layout, hash => hash) AS t OFFSET 0) t,
	LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, n) x) f, LATERAL bloom_info(f) i,
	LATERAL (SELECT count(*) FILTER (WHERE NOT f @> x) AS missed FROM generate_series(1, n) x) m,
	LATERAL (SELECT count(*) FILTER (WHERE f @> x) AS passed FROM generate_series(n + 1, 2 * n) x) a;
SELECT layout, hash, p, missed, passed <= pg_temp.bound(n, pg_temp.q(layout, n, p, bits, hashes)) AS within,
	-- far below would mean that n is not what it seems
	passed >= 2 * n * expected_fpr - pg_temp.bound(n, expected_fpr) AS "as expected",
	abs(cardinality / n - 1) < 0.02 AS cardinality, abs(expected_fpr / pg_temp.q(layout, n, p, bits, hashes) - 1) < 0.05 AS expected
FROM large ORDER BY layout, hash, p DESC;
SELECT layout, n, abs(bloom_cardinality(f) / n - 1) < 0.02 AS cardinality
FROM unnest('{10000,20000,50000}'::int[]) n, unnest('{blocked,standard}'::text[]) layout, LATERAL (SELECT bloomfilter(n, layout => layout) AS t OFFSET 0) t,
	LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, n) x) f
ORDER BY layout, n;

-- small filters vary: many together, of different keys.  Exactly full, one in
-- some thousands is 3 sigma over, and warns
SET client_min_messages = error;
CREATE TEMP TABLE small AS
SELECT layout, hash, n, filters * n AS t, sum(missed) AS missed, sum(passed) AS passed, avg(bloom_cardinality(f)) / n AS cardinality,
	avg(bloom_expected_fpr(f)) AS expected, min((bloom_info(f)).bits) AS bits, min((bloom_info(f)).hashes) AS hashes
FROM unnest('{blocked,standard}'::text[]) layout, unnest('{xxh3,blake2b}'::text[]) hash, (VALUES (100, 1000), (1000, 100)) v(n, filters),
	LATERAL (SELECT bloomfilter(n, layout => layout, hash => hash) AS t OFFSET 0) t, generate_series(1, filters) i,
	LATERAL (SELECT bloom_agg(i * 1000000 + x, t) AS f FROM generate_series(1, n) x) f,
	LATERAL (SELECT count(*) FILTER (WHERE x <= n AND NOT f @> i * 1000000 + x) AS missed, count(*) FILTER (WHERE x > n AND f @> i * 1000000 + x) AS passed
		FROM generate_series(1, 2 * n) x) c
GROUP BY layout, hash, n, filters;
RESET client_min_messages;
SELECT layout, hash, n, t, missed, passed <= pg_temp.bound(t, pg_temp.q(layout, n, 0.01, bits, hashes)) AS within, abs(cardinality - 1) < 0.01 AS cardinality
FROM small ORDER BY layout, hash, n;

-- more hashes or fewer than the best: what the formula says
SELECT k, round(100 * formula::numeric, 2) AS formula, round(100 * expected_fpr::numeric, 1) AS expected, missed,
	passed BETWEEN 2 * 100000 * formula - pg_temp.bound(100000, formula) AND pg_temp.bound(100000, formula) AS within
FROM unnest('{3,14}'::int[]) k, LATERAL (SELECT bloomfilter(100000, layout => 'standard', hashes => k) AS t OFFSET 0) t,
	LATERAL (SELECT bloom_agg(x, t) AS f FROM generate_series(1, 100000) x) f, LATERAL bloom_info(f) i,
	LATERAL (SELECT (1 - exp(-k * 100000.0::float8 / bits)) ^ k AS formula) o,
	LATERAL (SELECT count(*) FILTER (WHERE x <= 100000 AND NOT f @> x) AS missed, count(*) FILTER (WHERE x > 100000 AND f @> x) AS passed FROM generate_series(1, 200000) x) c
ORDER BY k;

-- overfilled: twice the elements, as the WARNING says
SET client_min_messages = error;
SELECT layout, round(100 * expected_fpr::numeric, 1) AS expected, round(cardinality::numeric, -4) AS cardinality,
	passed BETWEEN 2 * 100000 * expected_fpr - pg_temp.bound(100000, expected_fpr) AND pg_temp.bound(100000, expected_fpr) AS measured
FROM (SELECT bloom_agg(x, bloomfilter(100000)) AS b, bloom_agg(x, bloomfilter(100000, layout => 'standard')) AS s FROM generate_series(1, 200000) x) a,
	LATERAL unnest(ARRAY[b, s]) f, LATERAL bloom_info(f) i, LATERAL (SELECT count(*) FILTER (WHERE f @> -x) AS passed FROM generate_series(1, 100000) x) c
ORDER BY layout;
RESET client_min_messages;

-- saturated: everything passes, and it says so; empty: nothing does
SELECT layout, fill, bloom_cardinality(f), bloom_expected_fpr(f), (SELECT bool_and(f @> -x) FROM generate_series(1, 1000) x) AS passes
FROM (SELECT bloom_agg(x, bloomfilter(10)) AS b, bloom_agg(x, bloomfilter(10, layout => 'standard')) AS s FROM generate_series(1, 5000) x) a,
	LATERAL unnest(ARRAY[b, s]) f, LATERAL bloom_info(f) i
ORDER BY layout;
SELECT bloom_cardinality(f), bloom_expected_fpr(f) FROM unnest(ARRAY[bloomfilter(), bloomfilter(10), bloomfilter(10, layout => 'standard')]) f;
