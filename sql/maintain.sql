-- bloom_maintain: a trigger that keeps a stored filter up to date.
\set SHOW_CONTEXT never
CREATE TABLE maintain_filters (name text PRIMARY KEY, filter bloomfilter);
CREATE TABLE maintain_codes (id int, code text, tenant int);
INSERT INTO maintain_filters VALUES ('codes', bloomfilter(1000));
CREATE TRIGGER maintain_insert AFTER INSERT ON maintain_codes
	REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'codes', 'code');
CREATE TRIGGER maintain_update AFTER UPDATE ON maintain_codes
	REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'codes', 'code');
CREATE VIEW maintain_state AS
	SELECT count(*) AS rows, count(*) FILTER (WHERE NOT filter @> code) AS lost, round(bloom_cardinality(filter)) AS held
	FROM maintain_codes, maintain_filters WHERE name = 'codes' GROUP BY bloom_cardinality(filter);

INSERT INTO maintain_codes VALUES (1, 'one'), (2, 'two'), (3, NULL);
SELECT * FROM maintain_state;
INSERT INTO maintain_codes SELECT i, 'code-' || i FROM generate_series(4, 100) i;
SELECT * FROM maintain_state;
UPDATE maintain_codes SET code = 'zwei' WHERE code = 'two';
SELECT * FROM maintain_state;
COPY maintain_codes FROM stdin;
101	copied	\N
102	copied too	\N
\.
SELECT * FROM maintain_state;
-- in a transaction that comes to nothing
BEGIN;
INSERT INTO maintain_codes VALUES (0, 'never');
SELECT filter @> 'never' FROM maintain_filters;
ROLLBACK;
SELECT filter @> 'never' FROM maintain_filters;
-- what it writes is what the aggregate builds
SELECT filter = (SELECT bloom_agg(code, 1000) FROM (SELECT code FROM maintain_codes UNION ALL SELECT 'two') s) AS same FROM maintain_filters;

-- nothing new: the row is not written
CREATE TABLE maintain_before AS SELECT name, xmin::text AS x, ctid::text AS c FROM maintain_filters;
CREATE VIEW maintain_written AS
	SELECT name, (f.xmin::text, f.ctid::text) <> (x, c) AS written FROM maintain_filters f JOIN maintain_before USING (name) ORDER BY name;
INSERT INTO maintain_codes VALUES (103, 'one'), (104, NULL);
INSERT INTO maintain_codes SELECT * FROM maintain_codes;
INSERT INTO maintain_codes SELECT 1, 'none' WHERE false;
UPDATE maintain_codes SET code = 'two' WHERE code = 'one';
UPDATE maintain_codes SET id = id + 1;
UPDATE maintain_codes SET code = 'none' WHERE false;
DELETE FROM maintain_codes WHERE code = 'copied';
SELECT * FROM maintain_written;
INSERT INTO maintain_codes VALUES (105, 'one'), (106, 'brand new');
SELECT * FROM maintain_written;

-- ON CONFLICT and MERGE fire what they do
ALTER TABLE maintain_codes ADD key serial PRIMARY KEY;
INSERT INTO maintain_codes VALUES (1, 'conflict', 1, 1), (1, 'no conflict', 1, -1) ON CONFLICT (key) DO UPDATE SET code = 'resolved' RETURNING code;
MERGE INTO maintain_codes c USING (VALUES (2, 'merged'), (-2, 'merged in')) v(k, code) ON c.key = v.k
	WHEN MATCHED THEN UPDATE SET code = v.code WHEN NOT MATCHED THEN INSERT VALUES (1, v.code, 1, v.k);
SELECT filter @> 'no conflict' AS "no conflict", filter @> 'resolved' AS resolved, filter @> 'merged' AS merged, filter @> 'merged in' AS "merged in" FROM maintain_filters;
SELECT rows, lost FROM maintain_state;
-- a partitioned table, through the parent
CREATE TABLE maintain_parts (code text, k int) PARTITION BY LIST (k);
CREATE TABLE maintain_parts1 PARTITION OF maintain_parts FOR VALUES IN (1);
CREATE TABLE maintain_parts2 (more int, k int, code text);
ALTER TABLE maintain_parts2 DROP more;
ALTER TABLE maintain_parts ATTACH PARTITION maintain_parts2 DEFAULT;
CREATE TRIGGER insert AFTER INSERT ON maintain_parts
	REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'codes', 'code');
INSERT INTO maintain_parts VALUES ('part-1', 1), ('part-2', 2);
SELECT filter @> 'part-1' AS "1", filter @> 'part-2' AS "2" FROM maintain_filters;
DROP TABLE maintain_parts;

-- names of all sorts, and an extension that is nowhere on the search path
CREATE SCHEMA "Maintain it's";
CREATE TABLE "Maintain it's"."the ""Filters""" (name varchar(100) PRIMARY KEY, note text, filter bloomfilter);
INSERT INTO "Maintain it's"."the ""Filters""" VALUES ('it''s "a" $1 filter', 'x', bloomfilter(1000)), ('other', 'y', bloomfilter(1000));
CREATE TABLE "Maintain it's"."Table" ("the ""Code""" text, "new_rows" int, "select" bigint);
CREATE TRIGGER "it's" AFTER INSERT ON "Maintain it's"."Table" REFERENCING NEW TABLE AS "New ""Rows""; it's" FOR EACH STATEMENT
	EXECUTE FUNCTION bloom_maintain('"Maintain it''s"."the ""Filters"""', 'it''s "a" $1 filter', 'the "Code"');
INSERT INTO "Maintain it's"."Table" VALUES ('x', 1, 2), ('y', 3, 4);
SELECT name, filter @> 'x' AS x, filter @> 'z' AS z FROM "Maintain it's"."the ""Filters""" ORDER BY name;
BEGIN;
CREATE SCHEMA maintain_elsewhere;
ALTER EXTENSION bloomfilter SET SCHEMA maintain_elsewhere;
SET LOCAL search_path = pg_catalog;
INSERT INTO "Maintain it's"."Table" VALUES ('z', 5, 6);
SELECT filter OPERATOR(maintain_elsewhere.@>) 'z'::text AS z FROM "Maintain it's"."the ""Filters""" ORDER BY name;
ROLLBACK;
-- operators and tables of the same names do not come in between
BEGIN;
CREATE SCHEMA maintain_trap;
CREATE FUNCTION maintain_trap.bloom_agg(anyelement, bloomfilter) RETURNS bloomfilter LANGUAGE sql AS 'SELECT 1 / 0; SELECT NULL::bloomfilter';
CREATE FUNCTION maintain_trap.trap(bloomfilter, text) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 > 0';
CREATE OPERATOR maintain_trap.@> (LEFTARG = bloomfilter, RIGHTARG = text, FUNCTION = maintain_trap.trap);
CREATE TEMP TABLE "New ""Rows""; it's" ("the ""Code""" text);
SET LOCAL search_path = maintain_trap, public;
INSERT INTO "Maintain it's"."Table" VALUES ('trapped', 5, 6);
SELECT count(*) AS one FROM "Maintain it's"."the ""Filters""" WHERE bloom_contains(filter, 'trapped');
ROLLBACK;
-- a table on the search path of who inserts
BEGIN;
SET LOCAL search_path = "Maintain it's", public;
CREATE TRIGGER path AFTER INSERT ON "Table" REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('"the ""Filters"""', 'other', 'the "Code"');
INSERT INTO "Table" VALUES ('on the path');
SELECT name, filter @> 'on the path' AS found FROM "the ""Filters""" ORDER BY name;
ROLLBACK;

-- composite keys, and columns of other types
CREATE TABLE maintain_keys (tenant int, code text, at date, id uuid, tags text[], price numeric, "select" varchar(10));
INSERT INTO maintain_filters VALUES ('pair', bloomfilter(1000)), ('triple', bloomfilter(1000, layout => 'standard', hash => 'blake2b', key => 'secret')), ('uuid', bloomfilter(1000)),
	('array', bloomfilter(1000)), ('numeric', bloomfilter(100, expansion => 2)), ('varchar', bloomfilter(1000, layout => 'cuckoo'));
CREATE TRIGGER a_pair AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('public.maintain_filters', 'pair', 'tenant', 'code');
CREATE TRIGGER b_triple AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'triple', 'code', 'select', 'at');
CREATE TRIGGER c_uuid AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'uuid', 'id');
CREATE TRIGGER d_array AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'array', 'tags');
CREATE TRIGGER e_numeric AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'numeric', 'price');
CREATE TRIGGER f_varchar AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'varchar', 'select');
INSERT INTO maintain_keys VALUES (1, 'a', '2024-01-01', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11', '{x,y}', 1.50, 'v');
INSERT INTO maintain_keys VALUES (2, 'b', NULL, NULL, NULL, NULL, NULL), (NULL, NULL, '2024-01-02', 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12', '{}', 2, 'w');
SELECT name, (bloom_info(filter)).element, round(bloom_cardinality(filter)) AS held FROM maintain_filters WHERE name <> 'codes' ORDER BY name;
SELECT filter @> (1, 'a'::text) AS pair, filter @> (1, 'b'::text) AS other, filter @> (2, 'b'::text) AS pair FROM maintain_filters WHERE name = 'pair';
SELECT filter @> ('a'::text, 'v'::varchar, date '2024-01-01') AS triple, filter @> (NULL::text, 'w'::varchar, date '2024-01-02') AS "NULL", filter @> ('a'::text, 'w'::varchar, date '2024-01-01') AS other
FROM maintain_filters WHERE name = 'triple';
SELECT filter @> '{x,y}'::text[] AS "array", filter @> '{}'::text[] AS empty, filter @> '{x}'::text[] AS other FROM maintain_filters WHERE name = 'array';
SELECT filter @> 1.5 AS price, filter @> 2.000 AS price, filter @> 3::numeric AS other FROM maintain_filters WHERE name = 'numeric';
-- arrays, and domains over them, in filters that grow: each is one element
CREATE DOMAIN maintain_ints AS int[];
CREATE TABLE maintain_arrays (a int[], d maintain_ints);
INSERT INTO maintain_filters VALUES ('ints', bloomfilter(10, expansion => 2)), ('domain', bloomfilter(10, layout => 'cuckoo', expansion => 2)), ('both', bloomfilter(10, expansion => 4));
CREATE TRIGGER a AFTER INSERT ON maintain_arrays REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'ints', 'a');
CREATE TRIGGER b AFTER INSERT ON maintain_arrays REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'domain', 'd');
CREATE TRIGGER c AFTER INSERT ON maintain_arrays REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'both', 'a', 'd');
INSERT INTO maintain_arrays VALUES ('{1,2}', '{3}'), ('{}', '{4,5}'), ('{{6},{7}}', NULL), (NULL, '{8,NULL}');
INSERT INTO maintain_arrays SELECT ARRAY[i], ARRAY[i, i] FROM generate_series(100, 150) i;
SELECT name, element, layers > 1 AS layers,
	CASE name WHEN 'ints' THEN (SELECT count(*) FROM maintain_arrays WHERE NOT filter @> a)
		WHEN 'domain' THEN (SELECT count(*) FROM maintain_arrays WHERE NOT filter @> d)
		ELSE (SELECT count(*) FROM maintain_arrays WHERE NOT filter @> (a, d)) END AS lost
FROM maintain_filters, bloom_info(filter) WHERE name IN ('ints', 'domain', 'both') ORDER BY name;
-- a generated column, and a dropped one before it
ALTER TABLE maintain_keys DROP tenant CASCADE;
DROP TRIGGER a_pair ON maintain_keys;
ALTER TABLE maintain_keys ADD upper text GENERATED ALWAYS AS (upper(code)) STORED;
CREATE TRIGGER g_upper AFTER INSERT ON maintain_keys REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'varchar', 'upper');
INSERT INTO maintain_keys (code) VALUES ('generated');
SELECT filter @> 'GENERATED' AS generated FROM maintain_filters WHERE name = 'varchar';

-- each layout: filled by many statements and by one
CREATE TABLE maintain_layouts (x int);
INSERT INTO maintain_filters SELECT 'l' || i, t FROM unnest(ARRAY[bloomfilter(2000), bloomfilter(2000, layout => 'standard'), bloomfilter(2000, layout => 'counting'), bloomfilter(2000, layout => 'cuckoo'),
	bloomfilter(10, expansion => 2), bloomfilter(10, layout => 'standard', expansion => 4), bloomfilter(10, layout => 'cuckoo', expansion => 3)]) WITH ORDINALITY AS t(t, i);
DO $$
BEGIN
	FOR i IN 1..7 LOOP
		EXECUTE format('CREATE TRIGGER l%s AFTER INSERT ON maintain_layouts REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain(''maintain_filters'', %L, ''x'')', i, 'l' || i);
	END LOOP;
END $$;
INSERT INTO maintain_layouts SELECT generate_series(1, 1000);
DO $$
BEGIN
	FOR i IN 1001..1100 LOOP
		INSERT INTO maintain_layouts VALUES (i);
	END LOOP;
END $$;
INSERT INTO maintain_layouts SELECT generate_series(1101, 1500);
SELECT name, layout, layers > 1 AS layers, bloom_cardinality(filter) BETWEEN 1400 AND 1600 AS held, expected_fpr <= 1.1 * target_fpr AS rate,
	(SELECT count(*) FROM maintain_layouts WHERE NOT filter @> x) AS lost, (SELECT count(*) < 150 FROM generate_series(2001, 7000) x WHERE filter @> x) AS few
FROM maintain_filters, bloom_info(filter) WHERE name ~ '^l\d' ORDER BY name;
-- again: sets are not written, multisets count
TRUNCATE maintain_before;
INSERT INTO maintain_before SELECT name, xmin::text, ctid::text FROM maintain_filters WHERE name ~ '^l\d';
INSERT INTO maintain_layouts SELECT generate_series(1, 100);
SELECT name, layout, written FROM maintain_written JOIN maintain_filters USING (name), bloom_info(filter) ORDER BY name;
SELECT name, filter @> 7 AS before, bloom_remove(filter, 7) @> 7 AS "once", bloom_remove(bloom_remove(filter, 7), 7) @> 7 AS twice FROM maintain_filters WHERE name IN ('l3', 'l4') ORDER BY name;

-- two triggers at work in one statement, and a trigger that inserts
CREATE TABLE maintain_audit (code text);
CREATE FUNCTION maintain_copy() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO maintain_audit SELECT 'audit-' || code FROM n;
	RETURN NULL;
END $$;
CREATE TRIGGER a_copy AFTER INSERT ON maintain_codes REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION maintain_copy();
CREATE TRIGGER z_audit AFTER INSERT ON maintain_audit REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'codes', 'code');
INSERT INTO maintain_codes VALUES (1, 'audited');
SELECT filter @> 'audited' AS audited, filter @> 'audit-audited' AS audit FROM maintain_filters WHERE name = 'codes';
-- too full: a warning, or an error that refuses the rows, too
INSERT INTO maintain_filters VALUES ('tiny', bloomfilter(10)), ('tiny cuckoo', bloomfilter(10, layout => 'cuckoo'));
CREATE TABLE maintain_tiny (x int);
CREATE TRIGGER tiny AFTER INSERT ON maintain_tiny REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'tiny', 'x');
INSERT INTO maintain_tiny SELECT generate_series(1, 100);
SELECT count(*) FROM maintain_tiny, maintain_filters WHERE name = 'tiny' AND filter @> x;
CREATE TRIGGER tiny2 AFTER INSERT ON maintain_tiny REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'tiny cuckoo', 'x');
INSERT INTO maintain_tiny SELECT generate_series(1, 100);
SELECT count(*) FROM maintain_tiny;
-- rights are those of who inserts
CREATE ROLE regress_bloom_maintain;
CREATE TABLE maintain_rights (code text);
CREATE TRIGGER t AFTER INSERT ON maintain_rights REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'codes', 'code');
GRANT INSERT ON maintain_rights TO regress_bloom_maintain;
SET ROLE regress_bloom_maintain;
INSERT INTO maintain_rights VALUES ('not allowed');
RESET ROLE;
GRANT SELECT, UPDATE ON maintain_filters TO regress_bloom_maintain;
SET ROLE regress_bloom_maintain;
INSERT INTO maintain_rights VALUES ('allowed');
RESET ROLE;
SELECT filter @> 'allowed' AS allowed, filter @> 'not allowed' AS not FROM maintain_filters WHERE name = 'codes';
-- and so is what they may see
ALTER TABLE maintain_filters ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bloom_maintain;
INSERT INTO maintain_rights VALUES ('hidden');
RESET ROLE;
CREATE POLICY see ON maintain_filters FOR SELECT USING (true);
CREATE POLICY change ON maintain_filters FOR UPDATE USING (true) WITH CHECK (name <> 'codes');
SET ROLE regress_bloom_maintain;
INSERT INTO maintain_rights VALUES ('checked');
RESET ROLE;
ALTER POLICY change ON maintain_filters WITH CHECK (true);
SET ROLE regress_bloom_maintain;
INSERT INTO maintain_rights VALUES ('seen');
RESET ROLE;
SELECT filter @> 'seen' AS seen, filter @> 'hidden' AS hidden, filter @> 'checked' AS checked FROM maintain_filters WHERE name = 'codes';
DROP POLICY see ON maintain_filters;
DROP POLICY change ON maintain_filters;
ALTER TABLE maintain_filters DISABLE ROW LEVEL SECURITY;
DROP TABLE maintain_rights;
REVOKE ALL ON maintain_filters FROM regress_bloom_maintain;
DROP ROLE regress_bloom_maintain;

-- wrong use
CREATE TABLE maintain_wrong (code text, "Code" int, point point);
CREATE FUNCTION maintain_try(definition text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	message text;
	hint text;
BEGIN
	EXECUTE 'CREATE TRIGGER wrong ' || definition;
	INSERT INTO maintain_wrong VALUES ('x', 1, '(1,1)');
	DELETE FROM maintain_wrong;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS message = MESSAGE_TEXT, hint = PG_EXCEPTION_HINT;
	RETURN SQLSTATE || ': ' || message || coalesce(E'\n' || nullif(hint, ''), '');
END $$;
SELECT bloom_maintain();
\t on
SELECT maintain_try('AFTER INSERT ON maintain_wrong FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain(''maintain_filters'', ''codes'', ''code'')');
SELECT maintain_try('AFTER INSERT ON maintain_wrong FOR EACH ROW EXECUTE FUNCTION bloom_maintain(''maintain_filters'', ''codes'', ''code'')');
SELECT maintain_try('BEFORE INSERT ON maintain_wrong FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain(''maintain_filters'', ''codes'', ''code'')');
SELECT maintain_try('AFTER DELETE ON maintain_wrong REFERENCING OLD TABLE AS o FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain(''maintain_filters'', ''codes'', ''code'')');
SELECT maintain_try(format('AFTER INSERT ON maintain_wrong REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain(%s)', arguments)) FROM (VALUES
	(1, ''), (2, '''maintain_filters'', ''codes'''), (3, '''maintain_filters'', ''cods'', ''code'''), (4, '''maintain_filter'', ''codes'', ''code'''),
	(5, '''maintain_filters'', ''codes'', ''cod'''), (6, '''maintain_filters'', ''codes'', ''code'', ''nowhere'''), (7, '''maintain_filters'', ''codes'', ''ctid'''),
	(8, '''maintain_filters'', ''codes'', ''Code'''), (9, '''maintain_filters'', ''codes'', ''point'''), (10, '''maintain_filters'', ''empty'', ''code'''),
	(11, '''maintain_codes'', ''codes'', ''code'''), (12, '''Maintain it''''s.filters'', ''codes'', ''code'''), (13, '''maintain_filters'', ''codes'', ''code; DROP TABLE maintain_codes'''),
	(14, '''maintain_twice'', ''codes'', ''code'''), (15, '''nowhere.maintain_filters'', ''codes'', ''code'''), (16, '''maintain_texts'', ''codes'', ''code'''),
	(17, '''maintain_filters'', ''unsized'', ''code'''), (18, ''''', '''', ''''')) v(i, arguments)
ORDER BY i;
\t off
INSERT INTO maintain_filters VALUES ('empty', NULL), ('unsized', bloomfilter());
CREATE TABLE maintain_twice AS SELECT 'codes' AS name, bloomfilter(10) AS filter FROM generate_series(1, 2);
CREATE TABLE maintain_texts AS SELECT 'codes' AS name, 'x' AS filter;
CREATE TABLE maintain_bytes AS SELECT name, filter::bytea FROM maintain_filters;
CREATE DOMAIN maintain_domain AS bloomfilter;
CREATE TABLE maintain_domains AS SELECT name, filter::maintain_domain FROM maintain_filters;
\t on
SELECT maintain_try(format('AFTER INSERT ON maintain_wrong REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain(%s)', arguments)) FROM (VALUES
	(1, '''maintain_filters'', ''empty'', ''code'''), (2, '''maintain_filters'', ''unsized'', ''code'''), (3, '''maintain_twice'', ''codes'', ''code'''), (4, '''maintain_texts'', ''codes'', ''code'''), (5, '''maintain_bytes'', ''codes'', ''code'''), (6, '''maintain_domains'', ''codes'', ''code''')) v(i, arguments)
ORDER BY i;
\t off
SELECT filter @> 'x' AS "domain" FROM maintain_domains WHERE name = 'codes';

-- a filter that is kept from being written keeps the rows out, too
CREATE FUNCTION maintain_swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER swallow BEFORE UPDATE ON maintain_filters FOR EACH ROW EXECUTE FUNCTION maintain_swallow();
INSERT INTO maintain_codes (code) VALUES ('swallowed');
DROP TRIGGER swallow ON maintain_filters;
CREATE RULE swallow AS ON UPDATE TO maintain_filters DO INSTEAD NOTHING;
INSERT INTO maintain_codes (code) VALUES ('swallowed');
DROP RULE swallow ON maintain_filters;
CREATE TABLE maintain_log (name text);
CREATE RULE log AS ON UPDATE TO maintain_filters DO ALSO INSERT INTO maintain_log VALUES (old.name);
-- an error says which trigger it was, which the user did not call
CREATE TABLE maintain_last (code text);
CREATE TRIGGER last AFTER INSERT ON maintain_last REFERENCING NEW TABLE AS n FOR EACH STATEMENT EXECUTE FUNCTION bloom_maintain('maintain_filters', 'codes', 'code');
INSERT INTO maintain_last VALUES ('logged');
\set SHOW_CONTEXT errors
ALTER TABLE maintain_last RENAME code TO kode;
INSERT INTO maintain_last VALUES ('renamed');
ALTER TABLE maintain_last RENAME kode TO code;
ALTER TABLE maintain_last ALTER code TYPE bytea USING NULL;
INSERT INTO maintain_last VALUES ('\x00');
\set SHOW_CONTEXT never
SELECT * FROM maintain_log;

SET client_min_messages = warning;
DROP SCHEMA "Maintain it's" CASCADE;
DROP TABLE maintain_filters, maintain_codes, maintain_keys, maintain_layouts, maintain_audit, maintain_tiny, maintain_wrong, maintain_before, maintain_twice, maintain_texts, maintain_bytes, maintain_domains, maintain_arrays, maintain_log, maintain_last CASCADE;
DROP DOMAIN maintain_domain, maintain_ints;
DROP FUNCTION maintain_copy, maintain_swallow, maintain_try;
