-- Text is hashed as UTF-8, whatever the database's encoding: a filter moves.
\set home :DBNAME
SELECT bloom_add(bloomfilter(10), 'é') AS utf8, bloom_hash('é') AS digest, bloom_hash('é', 'blake2b', 'k') AS keyed \gset
CREATE DATABASE bloomfilter_latin1 ENCODING 'LATIN1' TEMPLATE template0 LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C';
\c bloomfilter_latin1
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
SET client_encoding = 'UTF8';
SELECT octet_length('é') AS octets;
SELECT bloom_hash('é') = :'digest' AS xxh3, bloom_hash('é', 'blake2b', 'k') = :'keyed' AS blake2b;
SELECT f @> 'é' AS text, f @> 'é'::char(5) AS bpchar, f @> 'é'::name AS name, f @> 'e' AS other,
	f = bloom_add(bloomfilter(10), 'é') AS same
FROM (SELECT :'utf8'::bloomfilter AS f) s;
SELECT bool_and(bloom_hash(c) = bloom_hash(convert_to(c, 'UTF8'))) AS all
FROM (SELECT repeat(chr(i), 50) AS c FROM generate_series(1, 255) i) s;
\c :home
-- no encoding: what is not UTF-8 is an error
CREATE DATABASE bloomfilter_ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C';
\c bloomfilter_ascii
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
SELECT bloom_hash(convert_from('\xc3a9', 'SQL_ASCII')) = :'digest' AS xxh3;
SELECT bloom_hash(convert_from('\xe9', 'SQL_ASCII'));
\c :home
DROP DATABASE bloomfilter_latin1;
DROP DATABASE bloomfilter_ascii;
