-- A crawler's "seen?": a live index that grows, instead of a btree on URLs.
--
--	psql -f examples/crawler/crawler.sql
--	psql -v n=20000 -f ...			on a smaller web
--
-- Everything is in the schema example_crawler.  Stops with an error if a promise
-- is broken.

\set ON_ERROR_STOP on
\set QUIET on
\if :{?n} \else
\set n 100000
\endif
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomfilter;
DROP SCHEMA IF EXISTS example_crawler CASCADE;
CREATE SCHEMA example_crawler;
SET search_path = example_crawler, public;
CREATE TEMP TABLE promises (promise text, kept boolean);
SELECT setseed(0.5) \g /dev/null

-- The web, which the crawler does not know: n pages, eight links on each, most
-- of them to few pages, as links are.
CREATE FUNCTION url_of(page int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
	SELECT 'https://' || left(md5('site ' || page % 977), 6) || '.example/' || md5(page::text) || '/' || page
$$;
CREATE TABLE web AS
SELECT url_of(i) AS url, array(SELECT url_of((:n * random() ^ 2)::int) FROM generate_series(1, 8) WHERE i > 0) AS links
FROM generate_series(0, :n) i;
CREATE INDEX ON web USING hash (url);
ANALYZE web;

-- What the crawler has seen.  Nobody knows how much that will be: the index
-- starts at 10,000 and adds layers.
CREATE TABLE seen (url text NOT NULL, round int NOT NULL);
CREATE INDEX seen_url ON seen USING bloomfilter (url) WITH (capacity = 10000, fpr = 0.001);

CREATE TABLE frontier (url text NOT NULL);
INSERT INTO frontier SELECT url_of(i * 97 % :n) FROM generate_series(1, 20) i;
INSERT INTO seen SELECT DISTINCT url, 0 FROM frontier;

-- A round fetches the frontier, and keeps of the links what is certainly new.
-- "Maybe seen" is taken for "seen": no page is fetched twice, and one in a
-- thousand is missed, unless a later round looks again.
CREATE TABLE round (round int, fetched bigint, links bigint, new bigint, layers int);
CREATE PROCEDURE crawl() LANGUAGE plpgsql AS $$
DECLARE
	r int := 0;
	link_count bigint;
BEGIN
	LOOP
		r := r + 1;
		CREATE TEMP TABLE found AS
			SELECT DISTINCT link AS url FROM frontier JOIN web USING (url), unnest(links) link;
		INSERT INTO round SELECT r, (SELECT count(*) FROM frontier), (SELECT count(*) FROM found);
		TRUNCATE frontier;
		INSERT INTO frontier SELECT url FROM found WHERE NOT bloom_index_contains('seen_url', url);
		INSERT INTO seen SELECT url, r FROM frontier;
		GET DIAGNOSTICS link_count = ROW_COUNT;
		DROP TABLE found;
		UPDATE round SET new = link_count, layers = (SELECT i.layers FROM bloom_index_info('seen_url') i) WHERE round.round = r;
		COMMIT;
		EXIT WHEN link_count = 0;
	END LOOP;
END $$;
CALL crawl();

\pset title 'Rounds'
TABLE round;

-- How many would a perfect memory have found?
CREATE TABLE reachable AS
WITH RECURSIVE r AS (
	SELECT url FROM seen WHERE round = 0
	UNION
	SELECT link FROM r JOIN web USING (url), unnest(links) link)
TABLE r;

INSERT INTO promises
SELECT 'no page is fetched twice: ' || count(*), count(*) = count(DISTINCT url) FROM seen;

INSERT INTO promises
SELECT missed || ' of ' || all_of || ' pages are missed',
	missed <= 2 * (0.001 * all_of + 3 * sqrt(0.001 * all_of))	-- and those behind them
FROM (SELECT (SELECT count(*) FROM reachable) AS all_of, (SELECT count(*) FROM reachable LEFT JOIN seen USING (url) WHERE round IS NULL) AS missed) c;

INSERT INTO promises
SELECT 'the index grew to ' || layers || ' layers, and its rate is still below 0.001', layers > 1 AND expected_fpr <= 0.001
FROM bloom_index_info('seen_url');

SELECT bloom_index_check('seen_url', true) \g /dev/null
INSERT INTO promises VALUES ('every page is in it', true);

CREATE INDEX seen_btree ON seen (url);
INSERT INTO promises
SELECT 'it takes ' || pg_size_pretty(pg_relation_size('seen_url')) || ', a btree ' || pg_size_pretty(pg_relation_size('seen_btree')),
	pg_relation_size('seen_url') * 5 < pg_relation_size('seen_btree');

-- With another pass the missed ones come in as well: a seq scan or so a day, not
-- an index.
INSERT INTO seen
SELECT DISTINCT link, (SELECT max(round) + 1 FROM round)
FROM seen JOIN web USING (url), unnest(links) link
WHERE NOT EXISTS (SELECT FROM seen s WHERE s.url = link);
INSERT INTO promises
SELECT 'another pass leaves ' || count(*), count(*) * 5000 <= :n FROM reachable LEFT JOIN seen USING (url) WHERE round IS NULL;

\pset title 'Promises'
TABLE promises;
DO $$ BEGIN
	ASSERT (SELECT bool_and(kept) FROM pg_temp.promises), 'a promise is broken';
END $$;
