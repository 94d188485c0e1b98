-- What psql shows of the extension, and the view bloom_filters.
\set SHOW_CONTEXT never
SELECT current_database() AS db \gset
CREATE DATABASE regress_bloom_catalog TEMPLATE template0;
\c regress_bloom_catalog

-- created in a schema of its own, without a word
SET client_min_messages = notice;
CREATE SCHEMA "Bloom's";
CREATE EXTENSION bloomfilter SCHEMA "Bloom's";
SET search_path = public, "Bloom's";

-- every object has a comment
CREATE TEMP VIEW members AS
	SELECT d.classid, d.objid, pg_describe_object(d.classid, d.objid, 0) AS object
	FROM pg_depend d JOIN pg_extension e ON e.oid = d.refobjid AND e.extname = 'bloomfilter'
	WHERE d.refclassid = 'pg_extension'::regclass AND d.deptype = 'e';
SELECT count(*) > 80 AS "members are there" FROM members;
SELECT object FROM members
WHERE obj_description(objid, classid::regclass::name) IS NULL
	-- of the type and the view, made with them
	AND NOT (classid = 'pg_type'::regclass AND objid IN
		(SELECT oid FROM pg_type WHERE typcategory = 'A' OR typrelid <> 0))
ORDER BY object;
SELECT a.attname FROM pg_attribute a
WHERE a.attrelid = 'bloom_filters'::regclass AND col_description(a.attrelid, a.attnum) IS NULL
	AND a.attname NOT IN ('schemaname', 'tablename');
-- and all arguments have names, in the functions that users call
SELECT p.oid::regprocedure FROM members m JOIN pg_proc p ON m.classid = 'pg_proc'::regclass AND p.oid = m.objid
WHERE p.proname LIKE 'bloom\_%' AND pronargs > 0 AND proargnames IS NULL
	AND NOT proargtypes::oid[] && ARRAY['internal'::regtype::oid] AND prokind <> 'p'
ORDER BY 1;
\d bloom_filters
\dT bloomfilter
\do "Bloom's".*

SELECT to_jsonb(bloom_info(bloom_agg(i, 1000))) - '{fill,cardinality,expected_fpr}'::text[] AS info FROM generate_series(1, 10) i;
SELECT jsonb_object_keys(to_jsonb(bloom_info(bloomfilter()))) AS keys;

-- ---------------------------------------------------------------------------
-- bloom_filters
-- ---------------------------------------------------------------------------
SELECT count(*) FROM bloom_filters;

CREATE TABLE f (id int, note text, filter bloomfilter);
INSERT INTO f SELECT g, 'half full', bloom_agg(i, 1000) FROM generate_series(1, 3) g, generate_series(1, 1000) i GROUP BY g;
SET client_min_messages = error;
INSERT INTO f SELECT 4, 'too full', bloom_agg(i, 1000) FROM generate_series(1, 2000) i;
RESET client_min_messages;
INSERT INTO f VALUES (5, 'empty', bloomfilter(1e8)), (6, 'unsized', bloomfilter()), (7, 'none', NULL);
CREATE VIEW shown AS
	SELECT tablename, columnname, indexname, rows, bytes, sampled, round(fill::numeric, 3) AS fill, round(expected_fpr::numeric, 4) AS fpr, overfilled
	FROM bloom_filters ORDER BY tablename, columnname, indexname;
SELECT * FROM shown;
-- what it adds up to
SELECT count(*) AS rows, sum(pg_column_size(filter)) AS bytes, count(filter) AS sampled,
	round(avg((bloom_info(filter)).fill)::numeric, 3) AS fill, round(avg(bloom_expected_fpr(filter))::numeric, 4) AS fpr
FROM f;
-- filters of all layouts, out of line
CREATE TABLE layouts AS SELECT layout, bloom_agg(i, bloomfilter(1000, layout => layout, expansion => expansion)) AS filter
	FROM (VALUES ('blocked', 0), ('blocked', 2), ('standard', 0), ('counting', 0), ('cuckoo', 0), ('cuckoo', 2)) v(layout, expansion), generate_series(1, 4000) i
	WHERE i <= CASE WHEN expansion > 0 THEN 4000 ELSE 1000 END GROUP BY layout, expansion;
SELECT s.rows, s.bytes = sum(pg_column_size(filter)) AS bytes, s.sampled, s.overfilled,
	abs(s.fill - avg((bloom_info(filter)).fill)) < 1e-9 AS fill, abs(s.expected_fpr - avg(bloom_expected_fpr(filter))) < 1e-9 AS fpr
FROM layouts, (SELECT * FROM bloom_filters WHERE tablename = 'layouts') s GROUP BY s.rows, s.bytes, s.sampled, s.overfilled, s.fill, s.expected_fpr;
DROP TABLE layouts;

-- domains, arrays, and what was dropped; nothing else
CREATE DOMAIN small AS bloomfilter CHECK (bloom_cardinality(VALUE) < 2000);
CREATE DOMAIN smaller AS small;
CREATE DOMAIN several AS smaller[];
CREATE TYPE pair AS (a bloomfilter, b bloomfilter);
CREATE TABLE odd (d smaller, a bloomfilter[], da several, gone bloomfilter, p pair, b bytea);
-- compressed, two equal filters take a few bytes more or less: the type's OID is in the array
ALTER TABLE odd ALTER a SET STORAGE EXTERNAL;
INSERT INTO odd SELECT filter, ARRAY[filter, filter], ARRAY[filter], NULL, ROW(filter, NULL)::pair, filter::bytea FROM f WHERE id < 4;
ALTER TABLE odd DROP gone;
SELECT * FROM shown WHERE tablename = 'odd';

-- relations of all kinds: those that store filters
CREATE VIEW v AS SELECT * FROM f;
CREATE MATERIALIZED VIEW mv AS SELECT filter FROM f;
CREATE MATERIALIZED VIEW mv_empty AS SELECT filter FROM f WITH NO DATA;
CREATE UNLOGGED TABLE u AS SELECT filter FROM f;
CREATE TEMP TABLE t AS SELECT filter FROM f;
CREATE TABLE parent (k int, filter bloomfilter) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF parent FOR VALUES FROM (0) TO (5);
CREATE TABLE part2 PARTITION OF parent FOR VALUES FROM (5) TO (10);
INSERT INTO parent SELECT id, filter FROM f;
CREATE TABLE heir () INHERITS (f);
INSERT INTO heir SELECT * FROM ONLY f WHERE id = 1;
CREATE FOREIGN DATA WRAPPER nowhere;
CREATE SERVER nowhere FOREIGN DATA WRAPPER nowhere;
CREATE FOREIGN TABLE ft (filter bloomfilter) SERVER nowhere;
CREATE INDEX ON f (filter);
SELECT * FROM shown WHERE tablename NOT IN ('odd');
DROP VIEW v;
DROP MATERIALIZED VIEW mv, mv_empty;
DROP TABLE u, t, parent, heir, odd;
DROP FOREIGN TABLE ft;

-- of a large table some pages are read, whether it has been analyzed or not
CREATE TABLE large AS SELECT i AS id, f.filter FROM generate_series(1, 4000) i JOIN f ON f.id = i % 3 + 1;
CREATE VIEW large_shown AS
	SELECT rows BETWEEN 2000 AND 6000 AS rows, bytes BETWEEN 2000 * 1344 AND 6000 * 1344 AS bytes, sampled BETWEEN 20 AND 400 AS sampled, round(fill::numeric, 3) AS fill, overfilled
	FROM bloom_filters WHERE tablename = 'large';
SELECT * FROM large_shown;
ANALYZE large;
SELECT * FROM large_shown;
SELECT s = (SELECT s FROM bloom_filters s WHERE tablename = 'large') AS "the same again" FROM bloom_filters s WHERE tablename = 'large';
DROP TABLE large CASCADE;

-- what one may not read is not there, and nothing of others' making is run
CREATE ROLE regress_bloom_reader;
CREATE SCHEMA closed;
CREATE TABLE closed.f AS SELECT * FROM f;
CREATE TABLE one_column AS SELECT filter, filter AS secret FROM f;
CREATE TABLE guarded AS SELECT filter FROM f;
CREATE FUNCTION trojan() RETURNS boolean LANGUAGE plpgsql AS $$BEGIN RAISE NOTICE 'run as %', current_user; RETURN true; END$$;
CREATE POLICY p ON guarded USING (trojan());
ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON closed.f, guarded TO regress_bloom_reader;
GRANT SELECT (filter) ON one_column TO regress_bloom_reader;
SET SESSION AUTHORIZATION regress_bloom_reader;
SELECT current_schemas(false);
SELECT * FROM "Bloom's".bloom_filters;
RESET SESSION AUTHORIZATION;
GRANT USAGE ON SCHEMA "Bloom's" TO regress_bloom_reader;
SET SESSION AUTHORIZATION regress_bloom_reader;
SET search_path = '';
SELECT schemaname, tablename, columnname, rows, bytes, sampled, overfilled FROM "Bloom's".bloom_filters ORDER BY 1, 2, 3;
-- by hand
SET search_path = "Bloom's";
SELECT * FROM bloom_sample_column('public.one_column', 1::smallint);
SELECT * FROM bloom_sample_column('public.one_column', 2::smallint);
SELECT * FROM bloom_sample_column('closed.f'::regclass, 3::smallint);
RESET SESSION AUTHORIZATION;
SET search_path = public, "Bloom's";
SELECT * FROM bloom_sample_column('f', 1::smallint);
SELECT * FROM bloom_sample_column('f', 0::smallint);
SELECT * FROM bloom_sample_column('f', -1::smallint);
SELECT * FROM bloom_sample_column('f', 4::smallint);
SELECT * FROM bloom_sample_column('shown', 1::smallint);
SELECT * FROM bloom_sample_column(0::regclass, 1::smallint);
SELECT * FROM bloom_sample_index('f');
SELECT * FROM bloom_sample_index('f_filter_idx');
SELECT * FROM bloom_sample_index(0::regclass);
DROP SCHEMA closed CASCADE;
DROP TABLE one_column, guarded;
DROP FUNCTION trojan();

-- an error of one is a warning, and the others are told
CREATE TABLE broken AS SELECT filter FROM f WHERE id = 1;
ALTER TABLE broken ALTER filter TYPE bytea USING '\x00'::bytea;
UPDATE pg_attribute SET atttypid = 'bloomfilter'::regtype WHERE attrelid = 'broken'::regclass AND attname = 'filter';
SELECT tablename, sampled FROM shown;
DROP TABLE broken;

-- a query that is cancelled is over: 1,600 columns take longer than 20 ms
SELECT format('CREATE TABLE many (%s)', string_agg('c' || i || ' bloomfilter', ', ')) AS make FROM generate_series(1, 1600) i \gset
:make;
SET statement_timeout = '20ms';
\set VERBOSITY terse
SELECT count(*) FROM bloom_filters;
\set VERBOSITY default
RESET statement_timeout;
SELECT count(*) FROM bloom_filters WHERE tablename = 'many' AND columnname = 'c7';
DROP TABLE many;

-- in a transaction, and in a function
BEGIN;
SAVEPOINT s;
SELECT count(*) FROM bloom_filters;
SELECT count(*) FROM pg_locks WHERE relation = 'f'::regclass;
ROLLBACK;
DO $$BEGIN PERFORM * FROM "Bloom's".bloom_filters; END$$;

-- it moves with the extension
CREATE SCHEMA other;
ALTER EXTENSION bloomfilter SET SCHEMA other;
SELECT tablename, columnname, sampled FROM other.bloom_filters;
ALTER EXTENSION bloomfilter SET SCHEMA "Bloom's";

-- ---------------------------------------------------------------------------
-- Indexes
-- ---------------------------------------------------------------------------
CREATE TABLE codes AS SELECT i AS id, 'SP-' || i AS code FROM generate_series(1, 1000) i;
CREATE INDEX codes_code ON codes USING bloomfilter (code) WITH (capacity = 1000);
CREATE INDEX codes_both ON codes USING bloomfilter (id, code) WITH (capacity = 1000);
CREATE INDEX codes_upper ON codes USING bloomfilter (upper(code)) WITH (capacity = 1000) WHERE id > 0;
ANALYZE codes;
SELECT tablename, columnname, indexname, rows, bytes = pg_relation_size(indexname::regclass) AS bytes, sampled,
	fill = (bloom_index_info(indexname::regclass)).fill AS fill, expected_fpr = (bloom_index_info(indexname::regclass)).expected_fpr AS fpr, overfilled
FROM bloom_filters WHERE indexname IS NOT NULL ORDER BY indexname;
-- partitions' indexes; invalid ones
CREATE TABLE parent (k int) PARTITION BY RANGE (k);
CREATE TABLE part1 PARTITION OF parent FOR VALUES FROM (0) TO (5);
CREATE INDEX ON parent USING bloomfilter (k);
UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'codes_both'::regclass;
SELECT tablename, indexname, sampled FROM shown WHERE indexname IS NOT NULL;
-- privileges
GRANT SELECT (code) ON codes TO regress_bloom_reader;
SET SESSION AUTHORIZATION regress_bloom_reader;
SELECT tablename, columnname, indexname, sampled FROM bloom_filters;
SELECT sampled FROM bloom_sample_index('codes_upper');
RESET SESSION AUTHORIZATION;
CREATE POLICY p ON codes USING (id > 10);
ALTER TABLE codes ENABLE ROW LEVEL SECURITY;
SET SESSION AUTHORIZATION regress_bloom_reader;
SELECT tablename, columnname, indexname, rows, sampled FROM bloom_filters;
RESET SESSION AUTHORIZATION;

\c :db
DROP DATABASE regress_bloom_catalog;
DROP ROLE regress_bloom_reader;
