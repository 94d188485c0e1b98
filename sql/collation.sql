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
-- filters that size themselves, and values inside others
SELECT bloom_agg(w) FROM words;
SELECT bloom_agg(w, NULL, 0.001) FROM words;
SELECT bloom_agg(ARRAY[w]) FROM words;
SELECT bloom_agg(ROW(1, w)) FROM words;
SELECT bloom_agg(ROW(1, ROW(2, ARRAY[w]))) FROM words;
SELECT bloom_add(bloomfilter(10), ARRAY['a']) @> ARRAY[w] FROM words;
SELECT bloom_add(bloomfilter(10), ROW(1, 'a')) @> ROW(1, w) FROM words;
SELECT bloom_contains_any(bloom_add(bloomfilter(10), ROW(1, 'a')), ARRAY[ROW(1, w)]) FROM words;
SELECT bloom_hash(ROW(w)) FROM words;
SELECT bloom_agg(t) FROM words t;
SELECT bloom_add(bloomfilter(10), 'a') @> NULL::text COLLATE collation_ci AS "null";
CREATE DOMAIN collation_word AS text COLLATE collation_ci;
CREATE TYPE collation_pair AS (a int, w collation_word);
SELECT bloom_hash('a'::collation_word);
SELECT bloom_agg('{a}'::collation_word[]);
SELECT bloom_agg((1, 'a')::collation_pair);
SELECT bloom_agg(ARRAY[(1, 'a')::collation_pair]);
SELECT bloom_add(bloomfilter(10), 'a') @> 'a'::collation_word;
SELECT bloom_add(bloomfilter(10), ROW(1, 'a')) @> (1, 'a')::collation_pair;
PREPARE collation_probe(text) AS SELECT bloom_add(bloomfilter(10), 'a') @> $1 COLLATE collation_ci;
EXECUTE collation_probe('a');
DEALLOCATE collation_probe;
-- a range's own function knows what its collation calls equal
CREATE TYPE collation_range AS RANGE (SUBTYPE = text, COLLATION = collation_ci);
SELECT bloom_agg(r) @> collation_range('A', 'B') AS found, bloom_agg(r) @> collation_range('a', 'c') AS absent, (bloom_info(bloom_agg(r))).element FROM (VALUES (collation_range('a', 'b'))) v(r);
DROP TYPE collation_range, collation_pair;
DROP DOMAIN collation_word;
-- the way out
SELECT bloom_agg(ROW(1, lower(w) COLLATE "C")) @> ROW(1, 'a') AS record, bloom_agg(ARRAY[lower(w) COLLATE "C"]) @> ARRAY['a'] AS array FROM words;
SELECT bloom_agg(lower(w) COLLATE "C", 10) @> lower('A') FROM words;
-- deterministic collations are no matter
SELECT bloom_hash(d) = bloom_hash('A' COLLATE "C") AS same, bloom_add(bloomfilter(10), 'A' COLLATE "C") @> d AS found FROM words;

DROP TABLE words;
DROP COLLATION collation_ci, collation_icu;
