-- Passwords that have leaked are refused, without a list of them at hand.
--
--	psql -f examples/passwords/passwords.sql
--	psql -v words=20000 -f ...		with fewer words
--
-- Needs a word list (Debian: wamerican-huge, or wamerican).  Everything is in
-- the schema example_passwords.  Stops with an error if a promise is broken.

\set ON_ERROR_STOP on
\set QUIET on
\if :{?words} \else
\set words 100000
\endif
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS bloomfilter;
DROP SCHEMA IF EXISTS example_passwords CASCADE;
CREATE SCHEMA example_passwords;
SET search_path = example_passwords, public;
CREATE TEMP TABLE promises (promise text, kept boolean);

-- The list.  Real ones are mostly words, with what people do to words.
CREATE TABLE word (word text);
\copy word FROM '/usr/share/dict/words'
CREATE TABLE breach AS
SELECT DISTINCT password
FROM (SELECT word FROM word WHERE length(word) BETWEEN 4 AND 12 ORDER BY hashtext(word) LIMIT :words) w,
	LATERAL (VALUES (lower(word)), (initcap(word) || '1'), (lower(word) || '123'), (initcap(word) || '2024!'),
		(translate(lower(word), 'aeios', '@310$'))) v(password);
ANALYZE breach;

-- The filter.  Its key is this installation's own (a real one is random, from
-- pgcrypto's gen_random_bytes or from /dev/urandom): whoever gets entries into a
-- public list cannot choose ones that fill bits of his choice.
CREATE TABLE leaked (filter bloomfilter NOT NULL, as_of date NOT NULL);
INSERT INTO leaked
SELECT bloom_agg(password, bloomfilter(count, 0.0001, hash => 'blake2b', key => '\x0c4f9a61d7')), '2024-01-01'
FROM breach, (SELECT count(*) FROM breach) c GROUP BY count;

CREATE FUNCTION password_allowed(password text) RETURNS boolean LANGUAGE sql STABLE AS $$
	SELECT length(password) >= 8 AND NOT filter @> password FROM leaked
$$;

\pset title 'A few passwords'
SELECT password, password_allowed(password), EXISTS (SELECT FROM breach b WHERE b.password = p.password) AS in_the_list
FROM (SELECT min(password) FROM breach WHERE password LIKE '%2024!'
	UNION ALL VALUES ('correct horse battery staple'), ('short')) p(password);

-- What it promises
CREATE TABLE good AS SELECT left(md5('good ' || i), 14) AS password FROM generate_series(1, 100000) i;

INSERT INTO promises
SELECT 'all ' || count(*) || ' leaked passwords are refused', bool_and(f @> password)
FROM breach, (SELECT filter AS f FROM leaked OFFSET 0) l;

-- one in 10,000 is refused for nothing; three standard deviations more are luck
INSERT INTO promises
SELECT 'of ' || count(*) || ' random passwords ' || count(*) FILTER (WHERE f @> password) || ' are refused for nothing',
	count(*) FILTER (WHERE f @> password) <= 0.0001 * count(*) + 3 * sqrt(0.0001 * count(*))
FROM good, (SELECT filter AS f FROM leaked OFFSET 0) l;

INSERT INTO promises
SELECT 'the filter takes ' || pg_size_pretty(bytes) || ', the list ' || pg_size_pretty(pg_table_size('breach')),
	bytes * 10 < pg_table_size('breach')
FROM leaked, bloom_info(filter);

-- A new breach.  The next one that does not fit gives a WARNING; build a larger
-- filter then, from the lists that you have kept somewhere.
CREATE TABLE new_breach AS SELECT 'Summer-' || i || '!' AS password FROM generate_series(1900, 2100) i;
UPDATE leaked SET filter = filter | (SELECT bloom_agg(password, filter) FROM new_breach), as_of = '2024-02-01';

INSERT INTO promises
SELECT 'a new breach is in it, and the old ones still are',
	(SELECT bool_and(NOT password_allowed(password)) FROM new_breach) AND
	(SELECT bool_and(f @> password) FROM breach, (SELECT filter AS f FROM leaked OFFSET 0) l);

-- The list is not needed to answer
DROP TABLE breach;
INSERT INTO promises
SELECT 'it answers without the list', password_allowed('Correct horse 7') AND NOT password_allowed('Summer-1999!');

\pset title 'Promises'
TABLE promises;
DO $$ BEGIN
	ASSERT (SELECT bool_and(kept) FROM pg_temp.promises), 'a promise is broken';
END $$;
