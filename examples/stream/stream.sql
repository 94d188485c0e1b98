-- A stream that delivers some events twice, in batches: each is stored once,
-- and no index of ids is kept.
--
--	psql -f examples/stream/stream.sql
--	psql -v n=20000 -f ...			with fewer events
--
-- Everything is in the schema example_stream.  Stops with an error if a promise
-- is broken.

\set ON_ERROR_STOP on
\set QUIET on
\if :{?n} \else
\set n 400000
\endif
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomfilter;
DROP SCHEMA IF EXISTS example_stream CASCADE;
CREATE SCHEMA example_stream;
SET search_path = example_stream, public;
CREATE TEMP TABLE promises (promise text, kept boolean);
SELECT setseed(0.5) \g /dev/null

-- What the stream delivers: n events in 40 batches, ten batches an hour.  One in
-- ten comes again, in its own batch or up to an hour later.
CREATE TABLE delivered AS
WITH event AS (
	SELECT i, md5('event ' || i)::uuid AS id, 40 * (i - 1) / :n AS batch, random() AS again FROM generate_series(1, :n) i)
SELECT id, batch, 'payload ' || i AS payload FROM event
UNION ALL
SELECT id, least(batch + (again * 100)::int, 39), 'payload ' || i FROM event WHERE again < 0.1;
CREATE INDEX ON delivered (batch);
ANALYZE delivered;

-- A partition an hour, without an index; and its filter, in a row of a table.  All
-- have the same parameters, so that they unite.
CREATE TABLE event (hour int NOT NULL, id uuid NOT NULL, payload text) PARTITION BY LIST (hour);
CREATE TABLE hour_filter (hour int PRIMARY KEY, filter bloomfilter NOT NULL);
CREATE TABLE round (batch int, delivered bigint, new bigint, checked bigint, stored bigint);

CREATE PROCEDURE open_hour(h int, capacity int) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE format('CREATE TABLE event_%s PARTITION OF event FOR VALUES IN (%s)', h, h);
	INSERT INTO hour_filter VALUES (h, bloomfilter(capacity, 0.01));
	-- what comes again comes within an hour: older filters have done their work
	DELETE FROM hour_filter WHERE hour < h - 1;
END $$;

CREATE PROCEDURE take(b int) LANGUAGE plpgsql AS $$
DECLARE
	h int := b / 10;
	recent bloomfilter := (SELECT bloom_union_agg(filter) FROM hour_filter);
BEGIN
	-- twice in one batch: the batch is small, DISTINCT does it
	CREATE TEMP TABLE incoming AS
		SELECT DISTINCT ON (id) id, payload, recent @> id AS maybe FROM delivered WHERE batch = b;
	-- certainly new: stored without a look at what there is
	INSERT INTO event SELECT h, id, payload FROM incoming WHERE NOT maybe;
	-- maybe known: a tenth of the batch, joined with the last two hours
	INSERT INTO event SELECT h, id, payload FROM incoming i
		WHERE maybe AND NOT EXISTS (SELECT FROM event e WHERE e.id = i.id AND e.hour IN (h - 1, h));
	-- in the same transaction, so that the filter never lacks what is stored
	UPDATE hour_filter SET filter = filter | (SELECT bloom_agg(id, filter) FROM incoming) WHERE hour = h;
	INSERT INTO round SELECT b, (SELECT count(*) FROM delivered WHERE batch = b), count(*) FILTER (WHERE NOT maybe),
		count(*) FILTER (WHERE maybe), (SELECT count(*) FROM event) FROM incoming;
	DROP TABLE incoming;
END $$;

-- psql runs what this query returns, each CALL a transaction.  Filters are sized
-- for what two hours hold, since two are united.
SELECT CASE WHEN b % 10 = 0 THEN format('CALL open_hour(%s, %s)', b / 10, :n * 6 / 10) END, format('CALL take(%s)', b)
FROM generate_series(0, 39) b
\gexec

\pset title 'Some batches'
SELECT * FROM round WHERE batch % 13 = 0 ORDER BY batch;

INSERT INTO promises
SELECT count(*) || ' of ' || (SELECT count(*) FROM delivered) || ' deliveries are stored, each event once',
	count(*) = :n AND count(DISTINCT id) = :n
FROM event;

-- a "maybe" has been delivered before, or is a false positive
INSERT INTO promises
SELECT sum(new) || ' are stored unseen, ' || sum(checked) || ' are looked up, ' || sum(checked) + sum(new) - :n || ' of them duplicates',
	sum(checked) - (sum(checked) + sum(new) - :n) <= 0.01 * :n + 3 * sqrt(0.01 * :n)
FROM round;

INSERT INTO promises
SELECT 'two filters are kept, ' || pg_size_pretty(sum((bloom_info(filter)).bytes)), count(*) = 2 FROM hour_filter;

INSERT INTO promises
SELECT 'and hold what their partitions hold', bool_and(filter @> id)
FROM event JOIN (SELECT hour, filter FROM hour_filter OFFSET 0) f USING (hour);

\pset title 'Promises'
TABLE promises;
DO $$ BEGIN
	ASSERT (SELECT bool_and(kept) FROM pg_temp.promises), 'a promise is broken';
END $$;
