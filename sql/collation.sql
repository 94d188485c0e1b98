-- Nondeterministic collations call equal what has different bytes: refused,
-- since the answer could be a wrong "no".
SELECT NOT EXISTS (SELECT FROM pg_collation WHERE collprovider = 'i') AS skip \gset
\if :skip
\quit
\endif
CREATE COLLATION collation_ci (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
CREATE COLLATION collation_icu (provider = icu, locale = 'und');
SELECT 'A' COLLATE collation_ci = 'a' AS equal;
CREATE TEMP TABLE words (w text COLLATE collation_ci, c char(5) COLLATE collation_ci, d text COLLATE collation_icu);
INSERT INTO words VALUES ('A', 'A', 'A');

SELECT bloom_agg(w, 10) FROM words;
SELECT bloom_agg(w, bloomfilter(10)) FROM words;
SELECT bloom_add(bloomfilter(10), w) FROM words;
SELECT bloom_add_all(bloomfilter(10), ARRAY[w]) FROM words;
SELECT bloom_add(bloomfilter(10), 'a') @> w FROM words;
SELECT w <@ bloom_add(bloomfilter(10), 'a') FROM words;
SELECT bloom_contains(bloom_add(bloomfilter(10), 'a'), c) FROM words;
SELECT bloom_contains_any(bloom_add(bloomfilter(10), 'a'), ARRAY[w]) FROM words;
SELECT bloom_contains_all(bloom_add(bloomfilter(10), 'a'), ARRAY[w]) FROM words;
SELECT bloom_contains_each(bloom_add(bloomfilter(10), 'a'), ARRAY[w]) FROM words;
SELECT bloom_hash(w) FROM words;
SELECT bloom_add(bloomfilter(10), 'a') @> 'a' COLLATE collation_ci;
-- the way out
SELECT bloom_agg(lower(w) COLLATE "C", 10) @> lower('A') FROM words;
-- deterministic collations are no matter
SELECT bloom_hash(d) = bloom_hash('A' COLLATE "C") AS same, bloom_add(bloomfilter(10), 'A' COLLATE "C") @> d AS found FROM words;

DROP TABLE words;
DROP COLLATION collation_ci, collation_icu;
