-- Text is hashed as UTF-8, whatever the database's encoding: a filter moves.
\set home :DBNAME
CREATE TYPE encoding_mood AS ENUM ('heiß', 'kühl');
CREATE TYPE "encoding Straße" AS ENUM ('Ärger');
SELECT bloom_add(bloomfilter(10), 'é') AS utf8, bloom_hash('é') AS digest, bloom_hash('é', 'blake2b', 'k') AS keyed \gset
SELECT bloom_agg(ARRAY['é', NULL, 'x']) AS arrays, bloom_agg(ROW(1, 'é'::char(5), ROW(NULL, 'ü'))) AS records, bloom_agg('heiß'::encoding_mood) AS enums, bloom_agg(ARRAY['Ärger'::"encoding Straße"]) AS names,
	bloom_agg(ROW(1, 'Ärger'::"encoding Straße")) AS named_records, bloom_agg('ÿ' || x) AS many FROM generate_series(1, 1000) x \gset
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
-- inside arrays and records, labels, and names of types
CREATE TYPE encoding_mood AS ENUM ('heiß', 'kühl');
CREATE TYPE "encoding Straße" AS ENUM ('Ärger', 'Ruhe');
SELECT :'arrays'::bloomfilter @> ARRAY['é', NULL, 'x'] AS array, :'arrays'::bloomfilter @> ARRAY['e', NULL, 'x'] AS other, :'arrays' = bloom_agg(ARRAY['é', NULL, 'x']) AS same,
	:'records'::bloomfilter @> ROW(1, 'é', ROW(NULL, 'ü'::char(3))) AS record, :'records' = bloom_agg(ROW(1, 'é', ROW(NULL, 'ü'))) AS same
FROM generate_series(1, 2);
SELECT :'enums'::bloomfilter @> 'heiß'::encoding_mood AS enum, :'enums'::bloomfilter @> 'kühl'::encoding_mood AS other, :'enums' = bloom_agg('heiß'::encoding_mood) AS same,
	:'names'::bloomfilter @> ARRAY['Ärger'::"encoding Straße"] AS name, :'names'::bloomfilter @> ARRAY['Ruhe'::"encoding Straße"] AS other, :'names' = bloom_agg(ARRAY['Ärger'::"encoding Straße"]) AS same,
	:'named_records'::bloomfilter @> ROW(1, 'Ärger'::"encoding Straße") AS record;
SELECT (bloom_info(:'names')).element AS array, (bloom_info(:'named_records')).element AS record;
SELECT :'names'::bloomfilter @> 'Ärger';
SELECT :'many' = bloom_agg('ÿ' || x) AS many FROM generate_series(1, 1000) x;
SELECT bloom_hash('é'::"char") = bloom_hash('\351'::text) AS "char";
SELECT bloom_agg('kühl'::encoding_mood) AS latin1 \gset
\c :home
SELECT :'latin1'::bloomfilter @> 'kühl'::encoding_mood AS "and back", :'latin1' = bloom_agg('kühl'::encoding_mood) AS same;
-- a name that the database cannot spell
CREATE TYPE "encoding Ω" AS ENUM ('ω');
SELECT bloom_add(bloomfilter(10), 'ω'::"encoding Ω") AS greek, bloom_add(bloomfilter(10), 'ω') AS omega \gset
\c bloomfilter_latin1
SELECT :'omega'::bloomfilter @> 'o' AS text, (bloom_info(:'omega')).element;
SELECT (bloom_info(:'greek')).element;
SELECT :'greek'::bloomfilter @> 'o';
SELECT bloom_cardinality(:'greek') > 0 AS fine, (:'greek'::bloomfilter | :'greek') = :'greek' AS same;
\c :home
-- no encoding: bytes are taken as they are
CREATE DATABASE bloomfilter_ascii ENCODING 'SQL_ASCII' TEMPLATE template0 LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C';
\c bloomfilter_ascii
SET client_min_messages = warning;
CREATE EXTENSION bloomfilter;
SELECT bloom_hash(convert_from('\xc3a9', 'SQL_ASCII')) = :'digest' AS xxh3;
SELECT bloom_hash(convert_from('\xe9', 'SQL_ASCII'));
CREATE TYPE encoding_mood AS ENUM ('heiß', 'kühl');
CREATE TYPE "encoding Straße" AS ENUM ('Ärger', 'Ruhe');
SELECT :'utf8'::bloomfilter @> 'é' AS text, :'arrays'::bloomfilter @> ARRAY['é', NULL, 'x'] AS array, :'records'::bloomfilter @> ROW(1, 'é', ROW(NULL, 'ü')) AS record,
	:'enums'::bloomfilter @> 'heiß'::encoding_mood AS enum, :'names'::bloomfilter @> ARRAY['Ärger'::"encoding Straße"] AS name, :'many' = (SELECT bloom_agg('ÿ' || x) FROM generate_series(1, 1000) x) AS many;
-- but what is written into a filter must be readable elsewhere
DO $$ BEGIN EXECUTE 'CREATE TYPE "odd ' || convert_from('\xe9', 'SQL_ASCII') || '" AS ENUM (''a'')'; END $$;
SELECT oid::regtype AS odd FROM pg_type WHERE typname LIKE 'odd %' \gset
\set VERBOSITY sqlstate
SELECT bloom_add(bloomfilter(10), 'a'::public.:odd);
SELECT bloom_agg(ROW(1, 'a'::public.:odd));
\set VERBOSITY default
\c :home
DO $$ BEGIN EXECUTE format('CREATE TYPE %I AS ENUM (''a'')', E'encoding\nline'); END $$;
SELECT bloom_agg(e) FROM unnest(enum_range(NULL::U&"encoding\000Aline")) e;
DROP TYPE U&"encoding\000Aline";
DROP DATABASE bloomfilter_latin1;
DROP DATABASE bloomfilter_ascii;
DROP TYPE encoding_mood, "encoding Straße", "encoding Ω";
