-- The live filter among everything else that happens to an index and a table.
SET extra_float_digits = 0;
SET client_min_messages = warning;
CREATE TABLE t (i int, s text, o int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT i, 's' || i, i FROM generate_series(1, 2000) i;
CREATE INDEX t_i ON t USING bloomfilter (i) WITH (capacity = 1000);
CREATE INDEX t_s ON t USING bloomfilter (s);
-- by name each time: a view would keep the OID, which REINDEX CONCURRENTLY changes
CREATE VIEW missing AS SELECT count(*) FILTER (WHERE NOT bloom_index_contains('t_i'::text::regclass, i)) AS i, count(*) FILTER (WHERE NOT bloom_index_contains('t_s'::text::regclass, s)) AS s FROM t;

-- built and rebuilt while others write; all kinds of rewrites
CREATE INDEX CONCURRENTLY t_o ON t USING bloomfilter (o) WITH (capacity = 3000);
SELECT layers, round(cardinality::numeric, -2) AS cardinality, bloom_index_check('t_o', true) FROM bloom_index_info('t_o');
DROP INDEX t_o;
REINDEX INDEX CONCURRENTLY t_i;
REINDEX TABLE CONCURRENTLY t;
REINDEX TABLE t;
SELECT * FROM missing;
VACUUM FULL t;
SELECT * FROM missing;
CREATE INDEX t_btree ON t (i);
CLUSTER t USING t_btree;
DROP INDEX t_btree;
SELECT * FROM missing;
DELETE FROM t WHERE i <= 1000;
SELECT pg_stat_force_next_flush();
VACUUM t;
VACUUM (PARALLEL 2, INDEX_CLEANUP on) t;
ANALYZE t;
SELECT relname, reltuples, relpages * 8192 = pg_relation_size(oid) AS pages FROM pg_class WHERE relname IN ('t', 't_i', 't_s') ORDER BY relname;
SELECT round(stale_share::numeric, 1) AS stale FROM bloom_index_info('t_i');

-- a rolled-back row's key stays, a rolled-back index does not
BEGIN;
INSERT INTO t VALUES (-1, 'gone', 0);
CREATE INDEX t_gone ON t USING bloomfilter (i, s);
SELECT bloom_index_contains('t_gone', ROW(-1, 'gone'));
ROLLBACK;
SELECT bloom_index_contains('t_i', -1), to_regclass('t_gone') IS NULL AS gone;
-- in the transaction and the subtransaction that made them
BEGIN;
CREATE TABLE fresh (i int);
CREATE INDEX fresh_i ON fresh USING bloomfilter (i);
INSERT INTO fresh VALUES (1);
SAVEPOINT one;
TRUNCATE fresh;
INSERT INTO fresh VALUES (2);
SELECT bloom_index_contains_each('fresh_i', '{1,2}'::int[]);
ROLLBACK TO one;
SELECT bloom_index_contains_each('fresh_i', '{1,2}'::int[]);
COMMIT;
SELECT bloom_index_contains_each('fresh_i', '{1,2}'::int[]);
DROP TABLE fresh;

-- a loop asks the same call site while the index grows and is rebuilt
CREATE FUNCTION follow() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	missed int := 0;
	absent int := 0;
BEGIN
	FOR n IN 1 .. 3000 LOOP
		INSERT INTO t VALUES (-n, 'f' || n);
		IF n % 1000 = 0 THEN
			DELETE FROM t WHERE i < -n + 10;
			REINDEX INDEX t_i;
		ELSIF n % 1000 = 500 THEN
			DROP INDEX t_i;
			CREATE INDEX t_i ON t USING bloomfilter (i) WITH (capacity = 50);
		END IF;
		missed := missed + (NOT bloom_index_contains('t_i', -n))::int;
		absent := absent + (NOT bloom_index_contains('t_i', -n - 1))::int;
	END LOOP;
	RETURN format('%s missed, some absent: %s', missed, absent > 2800);
END $$;
SELECT follow();
DROP FUNCTION follow;
SELECT * FROM missing;

-- ALTER TYPE of a column, and of what is in it
DROP VIEW missing;
ALTER TABLE t ALTER i TYPE bigint;
ALTER TABLE t ALTER s TYPE varchar(100);
SELECT element FROM bloom_index_info('t_i');
SELECT count(*) FROM t WHERE NOT bloom_index_contains('t_i', i) OR NOT bloom_index_contains('t_s', s);
ALTER TABLE t ALTER i TYPE text USING 'n' || i;
SELECT element, bloom_index_contains('t_i', 'n1500') FROM bloom_index_info('t_i');
CREATE TYPE inner_pair AS (a int);
CREATE TYPE pair AS (a int, b inner_pair);
CREATE TABLE pairs (p pair, q pair[], n int);
CREATE INDEX pairs_p ON pairs USING bloomfilter (p);
CREATE INDEX pairs_q ON pairs USING bloomfilter (q);
CREATE INDEX pairs_pn ON pairs USING bloomfilter (p, n);
INSERT INTO pairs VALUES (ROW(1, ROW(2)), ARRAY[ROW(1, ROW(2))]::pair[], 3);
SELECT bloom_index_contains('pairs_p', ROW(1, ROW(2))), bloom_index_contains('pairs_q', ARRAY[ROW(1, ROW(2))]::pair[]), bloom_index_contains('pairs_pn', ROW(ROW(1, ROW(2)), 3));
ALTER TYPE inner_pair ADD ATTRIBUTE c int;
SELECT bloom_index_contains('pairs_p', ROW(1, ROW(2, NULL)));
INSERT INTO pairs VALUES (ROW(1, ROW(2, 3)), NULL, 3);
ALTER TYPE inner_pair DROP ATTRIBUTE c;
SELECT bloom_index_contains('pairs_p', ROW(1, ROW(2)));
SELECT bloom_index_filter('pairs_pn');
SELECT bloom_index_check('pairs_p');
REINDEX TABLE pairs;
SELECT bloom_index_contains('pairs_p', ROW(1, ROW(2))), bloom_index_contains('pairs_q', ARRAY[ROW(1, ROW(2))]::pair[]), bloom_index_contains('pairs_pn', ROW(ROW(1, ROW(2)), 3));
-- the statement keeps what it knows of types, an ALTER TYPE between two does not escape it
PREPARE add AS INSERT INTO pairs VALUES (ROW(7, ROW(8)), NULL, 9);
EXECUTE add;
DROP TABLE pairs;
DROP TYPE pair, inner_pair;

-- unlogged, temporary, in another tablespace, of a materialized view
CREATE UNLOGGED TABLE u (i int);
CREATE INDEX u_i ON u USING bloomfilter (i) WITH (capacity = 10);
INSERT INTO u SELECT generate_series(1, 100);
SELECT count(*) FILTER (WHERE NOT bloom_index_contains('u_i', i)) AS missed, bloom_index_check('u_i', true) FROM u;
SELECT pg_relation_size('u_i', 'init') > 0 AS init;
ALTER TABLE u SET LOGGED;
SELECT count(*) FILTER (WHERE NOT bloom_index_contains('u_i', i)) AS missed FROM u;
ALTER TABLE u SET UNLOGGED;
SELECT count(*) FILTER (WHERE NOT bloom_index_contains('u_i', i)) AS missed FROM u;
DROP TABLE u;
CREATE TEMP TABLE tmp (i int);
CREATE INDEX tmp_i ON tmp USING bloomfilter (i) WITH (capacity = 10);
INSERT INTO tmp SELECT generate_series(1, 1000);
SELECT layers, (SELECT count(*) FROM tmp WHERE NOT bloom_index_contains('tmp_i', i)) AS missed, bloom_index_check('tmp_i', true) FROM bloom_index_info('tmp_i');
SET allow_in_place_tablespaces = on;
CREATE TABLESPACE regress_bloom LOCATION '';
ALTER INDEX t_s SET TABLESPACE regress_bloom;
CREATE INDEX t_space ON t USING bloomfilter (s) TABLESPACE regress_bloom;
SELECT count(*) FILTER (WHERE NOT bloom_index_contains('t_s', s)) AS missed, count(*) FILTER (WHERE NOT bloom_index_contains('t_space', s)) AS missed FROM t;
DROP INDEX t_space;
ALTER INDEX t_s SET TABLESPACE pg_default;
CREATE MATERIALIZED VIEW m AS SELECT s FROM t;
CREATE INDEX m_s ON m USING bloomfilter (s);
INSERT INTO t VALUES ('0', 'refreshed');
SELECT bloom_index_contains('m_s', 's1500'), bloom_index_contains('m_s', 'refreshed');
REFRESH MATERIALIZED VIEW m;
SELECT bloom_index_contains('m_s', 'refreshed');
DROP MATERIALIZED VIEW m;

-- not valid: still being built, or failed
CREATE FUNCTION may_fail(s text) RETURNS text IMMUTABLE LANGUAGE plpgsql AS $$
BEGIN
	IF s = 'refreshed' THEN
		RAISE 'no';
	END IF;
	RETURN s;
END $$;
\set SHOW_CONTEXT never
CREATE INDEX CONCURRENTLY t_fail ON t USING bloomfilter (may_fail(s));
\set SHOW_CONTEXT errors
SELECT bloom_index_contains('t_fail', 's1500');
SELECT bloom_index_info('t_fail');
CREATE OR REPLACE FUNCTION may_fail(s text) RETURNS text IMMUTABLE LANGUAGE sql RETURN s;
REINDEX INDEX t_fail;
SELECT bloom_index_contains('t_fail', 's1500');
DROP INDEX t_fail;
DROP FUNCTION may_fail;

-- privileges: as for reading the columns
CREATE ROLE regress_bloom_reader;
CREATE TABLE secrets (id int, code text, other int);
INSERT INTO secrets SELECT i, 'c' || i, i FROM generate_series(1, 10) i;
CREATE INDEX secrets_code ON secrets USING bloomfilter (code);
CREATE INDEX secrets_both ON secrets USING bloomfilter (id, code);
CREATE INDEX secrets_expr ON secrets USING bloomfilter (upper(code)) WHERE other > 0;
CREATE INDEX secrets_row ON secrets USING bloomfilter ((secrets IS NULL));
CREATE INDEX secrets_const ON secrets USING bloomfilter ((42));
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_code', 'c1');
SELECT bloom_index_contains_each('secrets_code', '{c1}'::text[]);
SELECT bloom_index_partitions('secrets_code', 'c1');
SELECT bloom_index_filter('secrets_code');
SELECT bloom_index_info('secrets_code');
SELECT bloom_index_check('secrets_code');
SELECT bloom_index_contains('secrets_const', 42);
RESET ROLE;
GRANT SELECT (code) ON secrets TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_code', 'c1'), bloom_cardinality(bloom_index_filter('secrets_code')) > 0 AS filter;
SELECT bloom_index_contains('secrets_both', ROW(1, 'c1'));
SELECT bloom_index_contains('secrets_expr', 'C1');
SELECT bloom_index_contains('secrets_row', false);
SELECT bloom_index_contains('secrets_const', 42);
RESET ROLE;
GRANT SELECT (id, other) ON secrets TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_both', ROW(1, 'c1')), bloom_index_contains('secrets_expr', 'C1'), bloom_index_contains('secrets_row', false), bloom_index_contains('secrets_const', 42);
SELECT bloom_index_contains('secrets_row', false);
-- what is taken away in the transaction is away
RESET ROLE;
CREATE FUNCTION taken() RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
	answers boolean[];
BEGIN
	FOR n IN 1 .. 2 LOOP
		SET LOCAL ROLE regress_bloom_reader;
		answers := answers || bloom_index_contains('secrets_code', 'c1');
		RESET ROLE;
		REVOKE SELECT (code) ON secrets FROM regress_bloom_reader;
	END LOOP;
	RETURN answers;
END $$;
SELECT taken();
DROP FUNCTION taken;
-- row-level security
GRANT SELECT ON secrets TO regress_bloom_reader;
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY few ON secrets USING (id < 5);
SELECT bloom_index_contains('secrets_code', 'c7');
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_code', 'c7');
SELECT bloom_index_contains_each('secrets_code', '{c1,c7}'::text[]);
SELECT bloom_index_partitions('secrets_code', 'c7');
SELECT bloom_index_filter('secrets_code');
SELECT bloom_index_info('secrets_code');
SET row_security = off;
SELECT bloom_index_contains('secrets_code', 'c1');
RESET row_security;
RESET ROLE;
ALTER ROLE regress_bloom_reader BYPASSRLS;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_code', 'c7');
RESET ROLE;
ALTER ROLE regress_bloom_reader NOBYPASSRLS;
ALTER TABLE secrets OWNER TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('secrets_code', 'c7'), bloom_index_check('secrets_code', true);
ALTER TABLE secrets FORCE ROW LEVEL SECURITY;
SELECT bloom_index_contains('secrets_code', 'c7');
RESET ROLE;
DROP TABLE secrets;
DROP ROLE regress_bloom_reader;

-- partitions
CREATE TABLE events (day date, code text) PARTITION BY RANGE (day);
CREATE TABLE events_1 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2024-02-01');
CREATE TABLE events_2 PARTITION OF events FOR VALUES FROM ('2024-02-01') TO ('2024-03-01') PARTITION BY LIST (code);
CREATE TABLE events_2a PARTITION OF events_2 FOR VALUES IN ('a');
CREATE TABLE events_2b PARTITION OF events_2 DEFAULT;
CREATE INDEX events_code ON events USING bloomfilter (code) WITH (capacity = 1000, hash = blake2b);
INSERT INTO events VALUES ('2024-01-05', 'a'), ('2024-01-06', 'b'), ('2024-02-01', 'a'), ('2024-02-02', 'c');
SELECT code, bloom_index_contains('events_code', code), ARRAY(SELECT bloom_index_partitions('events_code', code)) AS partitions FROM unnest('{a,b,c,d}'::text[]) code;
SELECT bloom_index_contains_each('events_code', '{a,b,c,d}'::text[]);
CREATE TABLE events_3 (LIKE events);
INSERT INTO events_3 VALUES ('2024-03-01', 'd');
ALTER TABLE events ATTACH PARTITION events_3 FOR VALUES FROM ('2024-03-01') TO ('2024-04-01');
SELECT bloom_index_contains('events_code', 'd'), ARRAY(SELECT bloom_index_partitions('events_code', 'd')) AS partitions;
-- an index with another hash, attached
CREATE TABLE events_4 (LIKE events);
CREATE INDEX events_4_code ON events_4 USING bloomfilter (code);
INSERT INTO events_4 VALUES ('2024-04-01', 'e');
ALTER TABLE events ATTACH PARTITION events_4 FOR VALUES FROM ('2024-04-01') TO ('2024-05-01');
SELECT bloom_index_contains_each('events_code', '{a,b,c,d,e,f}'::text[]);
-- while it changes, from one call site
CREATE FUNCTION follow() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	answers text := '';
BEGIN
	FOR n IN 1 .. 3 LOOP
		IF n = 2 THEN
			CREATE TABLE events_5 (LIKE events);
			INSERT INTO events_5 VALUES ('2024-05-01', 'f');
			ALTER TABLE events ATTACH PARTITION events_5 FOR VALUES FROM ('2024-05-01') TO ('2024-06-01');
		ELSIF n = 3 THEN
			ALTER TABLE events DETACH PARTITION events_5;
		END IF;
		answers := answers || bloom_index_contains('events_code', 'f') || ' ';
	END LOOP;
	RETURN answers;
END $$;
SELECT follow();
DROP FUNCTION follow;
DROP TABLE events_5;
-- a foreign table has no index: it may have any key
CREATE FOREIGN DATA WRAPPER regress_bloom;
CREATE SERVER regress_bloom FOREIGN DATA WRAPPER regress_bloom;
CREATE FOREIGN TABLE events_f PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2025-02-01') SERVER regress_bloom;
SELECT bloom_index_contains('events_code', 'f'), ARRAY(SELECT bloom_index_partitions('events_code', 'f')) AS partitions;
DROP FOREIGN DATA WRAPPER regress_bloom CASCADE;
-- the parent's privileges count
CREATE ROLE regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('events_code', 'a');
RESET ROLE;
GRANT SELECT ON events TO regress_bloom_reader;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('events_code', 'a');
SELECT bloom_index_contains('events_1_code_idx', 'a');
RESET ROLE;
ALTER TABLE events_1 ENABLE ROW LEVEL SECURITY;
SET ROLE regress_bloom_reader;
SELECT bloom_index_contains('events_code', 'a');
RESET ROLE;
DROP OWNED BY regress_bloom_reader;
DROP ROLE regress_bloom_reader;
-- one at a time, please
SELECT bloom_index_info('events_code');
SELECT bloom_index_filter('events_code');
SELECT bloom_index_check('events_code');
SELECT relid, round(cardinality) FROM pg_partition_tree('events_code'), bloom_index_info(relid) WHERE isleaf ORDER BY relid::text;
CREATE INDEX events_day ON ONLY events USING bloomfilter (day);
SELECT bloom_index_contains('events_day', date '2024-01-05');
DROP TABLE events;
-- hints name it as a statement takes it
CREATE SCHEMA "Else where";
CREATE TYPE "Else where".pair AS (a int, b int);
CREATE TABLE "Else where".parts (a int, b "Else where".pair) PARTITION BY LIST (a);
CREATE TABLE "Else where".part PARTITION OF "Else where".parts DEFAULT;
CREATE INDEX "it's" ON "Else where".parts USING bloomfilter (a);
CREATE INDEX "a part" ON "Else where".part USING bloomfilter (b);
SELECT bloom_index_filter('"Else where"."it''s"');
ALTER TYPE "Else where".pair ADD ATTRIBUTE c int;
SELECT bloom_index_contains('"Else where"."a part"', ROW(1, 2, 3)::"Else where".pair);
DROP TABLE "Else where".parts;
DROP TYPE "Else where".pair;
DROP SCHEMA "Else where";

-- probes count
SELECT bloom_index_contains('t_s', 's1500'), bloom_index_contains_each('t_s', '{a,b,NULL}'::text[]);
SELECT pg_stat_force_next_flush();
SELECT idx_scan > 2 AS counted, idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 't_s';

-- every object is in the extension and described
SELECT count(*) FILTER (WHERE obj_description(objid, classid::regclass::name) IS NULL) AS undescribed
FROM pg_depend WHERE refclassid = 'pg_extension'::regclass AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter') AND deptype = 'e'
	-- 18 counts types of rows and arrays
	AND NOT (classid = 'pg_type'::regclass AND objid <> 'bloomfilter'::regtype);
DROP TABLE t;
DROP TABLESPACE regress_bloom;
