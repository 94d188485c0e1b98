-- Unsafe URLs: clients hold a filter, and ask the server for what may be in it.
--
--	psql -f examples/urls/urls.sql
--	psql -v n=20000 -f ...			with fewer unsafe sites
--
-- Everything is in the schema example_urls.  Stops with an error if a promise is
-- broken.  check.py and check.mjs beside it are such clients.

\set ON_ERROR_STOP on
\set QUIET on
\if :{?n} \else
\set n 200000
\endif
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomfilter;
DROP SCHEMA IF EXISTS example_urls CASCADE;
CREATE SCHEMA example_urls;
SET search_path = example_urls, public;
CREATE TEMP TABLE promises (promise text, kept boolean);

-- What is unsafe: a host with all below it ("evil.example/"), or a path on one
-- ("files.example/a/").
CREATE TABLE unsafe (pattern text PRIMARY KEY, reason text NOT NULL);
INSERT INTO unsafe
SELECT left(md5('host ' || i), 7 + i % 9) || (ARRAY['.example', '.co.example', '.shop.example', '.test'])[1 + i % 4] ||
	CASE WHEN i % 3 = 0 THEN '/' ELSE '/' || left(md5('path ' || i), 2 + i % 7) || '/' END,
	(ARRAY['malware', 'phishing', 'scam'])[1 + i % 3]
FROM generate_series(1, :n) i
ON CONFLICT DO NOTHING;
ANALYZE unsafe;

-- The patterns that would catch a URL: its host and the hosts above it, each
-- with the path and the paths above it.  A client has the same few lines.
CREATE FUNCTION patterns_of(url text) RETURNS SETOF text LANGUAGE sql IMMUTABLE AS $$
	SELECT array_to_string(hosts[h:], '.') || '/' || array_to_string(paths[:p], '/') || CASE WHEN p > 0 THEN '/' ELSE '' END
	FROM regexp_matches(lower(url), '^[a-z]+://([^/?#:]+)(?::\d+)?/?([^?#]*)') m,
		string_to_array(m[1], '.') hosts, string_to_array(rtrim(m[2], '/'), '/') paths,
		generate_series(1, greatest(cardinality(hosts) - 1, 1)) h, generate_series(0, cardinality(paths)) p
$$;

-- Built in the database.  It is sent to clients as bytes, with its ETag.
CREATE TABLE shipped AS SELECT bloom_agg(pattern, (SELECT count(*) FROM unsafe), 0.001) AS filter FROM unsafe;

\pset title 'What a client fetches'
SELECT bloom_etag(filter) AS etag, pg_size_pretty(bytes) AS filter, pg_size_pretty(pg_total_relation_size('unsafe')) AS "the table"
FROM shipped, bloom_info(filter);

-- What people visit: one URL in 500 is unsafe, as deep as it may be
CREATE TABLE visit AS
SELECT i AS id, CASE WHEN i % 500 = 0
	THEN (SELECT 'https://www.' || pattern || 'index.html?id=' || i FROM unsafe OFFSET i % least(:n, 5000) LIMIT 1)
	ELSE 'https://' || (ARRAY['www.', '', 'news.', 'm.'])[1 + i % 4] || left(md5('site ' || i / 20), 3 + i % 8) || '.example/' ||
		left(md5('page ' || i), 4) || CASE WHEN i % 2 = 0 THEN '/' || i ELSE '' END || '?q=' || i END AS url
FROM generate_series(1, 20000) i;

-- On the client: no request for most.  What remains is asked for.
CREATE TABLE asked AS
SELECT id, url, array_agg(pattern) AS patterns
FROM visit, patterns_of(url) pattern, (SELECT filter AS f FROM shipped OFFSET 0) s
WHERE f @> pattern
GROUP BY id, url;

-- On the server: the table decides
CREATE TABLE blocked AS
SELECT id, url, u.reason
FROM asked JOIN LATERAL (SELECT reason FROM unsafe WHERE pattern = ANY (patterns) LIMIT 1) u ON true;

\pset title 'A day of visits'
SELECT (SELECT count(*) FROM visit) AS visits, (SELECT count(*) FROM asked) AS asked, (SELECT count(*) FROM blocked) AS blocked;

INSERT INTO promises
SELECT 'every unsafe visit is found, and no other',
	count(*) > 0 AND count(*) = (SELECT count(*) FROM blocked)
FROM visit WHERE EXISTS (SELECT FROM unsafe, patterns_of(url) p WHERE pattern = p);

INSERT INTO promises
SELECT asked - unsafe || ' of ' || probes || ' patterns asked for in vain',
	asked - unsafe <= 0.001 * probes + 3 * sqrt(0.001 * probes)
FROM (SELECT count(*) AS probes, count(*) FILTER (WHERE f @> pattern) AS asked,
		count(*) FILTER (WHERE EXISTS (SELECT FROM unsafe u WHERE u.pattern = p.pattern)) AS unsafe
	FROM visit, patterns_of(url) p(pattern), (SELECT filter AS f FROM shipped OFFSET 0) s) c;

-- A site that has been cleaned up: the table says so at once, clients ask in
-- vain until their next fetch.  A new one: clients do not know it before.
DELETE FROM unsafe WHERE pattern = (SELECT min(pattern) FROM unsafe);
INSERT INTO unsafe VALUES ('new.example/', 'scam');
CREATE TEMP TABLE old AS SELECT bloom_etag(filter) AS etag FROM shipped;
UPDATE shipped SET filter = (SELECT bloom_agg(pattern, count, 0.001) FROM unsafe, (SELECT count(*) FROM unsafe) c);

INSERT INTO promises
SELECT 'a rebuilt filter has another ETag, and the new site',
	etag <> bloom_etag(filter) AND EXISTS (SELECT FROM patterns_of('http://www.new.example/x') p WHERE filter @> p)
FROM old, shipped;

\pset title 'Promises'
TABLE promises;
DO $$ BEGIN
	ASSERT (SELECT bool_and(kept) FROM pg_temp.promises), 'a promise is broken';
END $$;
