-- The live filter: CREATE INDEX ... USING bloomfilter, and asking it.
SET extra_float_digits = 0;

-- without a row, of an index that was there before the rows, of rows that were there before
CREATE TABLE codes (id bigint, code text) WITH (autovacuum_enabled = off);
CREATE INDEX codes_id ON codes USING bloomfilter (id);
CREATE INDEX codes_code ON codes USING bloomfilter (code) WITH (capacity = 2000, fpr = 0.001, expansion = 4, hash = blake2b);
SELECT bloom_index_contains('codes_id', 1), bloom_index_contains('codes_code', 'SP-1');
INSERT INTO codes SELECT i, 'SP-' || i FROM generate_series(1, 1000) i;
CREATE INDEX codes_both ON codes USING bloomfilter (id, code) WITH (capacity = 1000);
SELECT count(*) FROM codes WHERE NOT bloom_index_contains('codes_id', id) OR NOT bloom_index_contains('codes_code', code)
	OR NOT bloom_index_contains('codes_both', ROW(id, code));
SELECT bloom_index_contains('codes_id', -1), bloom_index_contains('codes_code', 'SP-0'), bloom_index_contains('codes_both', ROW(1::bigint, 'SP-2')),
	bloom_index_contains('codes_both', ROW(2, 'SP-2'));
-- whatever way the key comes in
SELECT bloom_index_contains('codes_id', 7::smallint), bloom_index_contains('codes_code', 'SP-7'::varchar), bloom_index_contains('codes_code', 'SP-7'::name),
	bloom_index_contains('codes_code', NULL), bloom_index_contains(NULL, 'SP-7');
PREPARE ask AS SELECT bloom_index_contains('codes_code', $1);
EXECUTE ask('SP-999');
EXECUTE ask('SP-0999');

-- arrays of keys
SELECT bloom_index_contains_each('codes_code', '{SP-1,SP-1001,NULL,SP-2}'::text[]), bloom_index_contains_each('codes_id', '{{1,-1},{-2,2}}'::int[]),
	bloom_index_contains_each('codes_id', '{}'::int[]), bloom_index_contains_each('codes_id', '{NULL}'::int[]);
CREATE TYPE pair AS (id bigint, code text);
SELECT bloom_index_contains_each('codes_both', ARRAY[(1, 'SP-1'), (1, 'SP-2'), NULL]::pair[]);

-- what it says of itself; 18 leaves it to ANALYZE to count the rows
ANALYZE codes;
SELECT hash, element, capacity, target_fpr, expansion, layers, bits, round(cardinality::numeric, -2) AS cardinality, fill < 0.5 AS fill,
	expected_fpr <= target_fpr AS rate, round(stale_share::numeric, 1) AS stale, bytes = pg_relation_size(i) AS bytes
FROM unnest('{codes_id,codes_code,codes_both}'::regclass[]) i, bloom_index_info(i);
SELECT round(stale_share::numeric, 1) FROM bloom_index_info('codes_id');
DELETE FROM codes WHERE id > 500;
-- an autovacuum of some other table may still see them
DO $$
BEGIN
	WHILE EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL) LOOP
		PERFORM pg_sleep(0.01), pg_stat_clear_snapshot();
	END LOOP;
END $$;
SELECT pg_stat_force_next_flush();
VACUUM ANALYZE codes;
SELECT round(stale_share::numeric, 1) FROM bloom_index_info('codes_id');
SELECT count(*) FROM generate_series(501, 1000) i WHERE NOT bloom_index_contains('codes_id', i);
REINDEX INDEX codes_id;
SELECT round(stale_share::numeric, 1) FROM bloom_index_info('codes_id');
SELECT count(*) < 20 AS forgotten FROM generate_series(501, 1000) i WHERE bloom_index_contains('codes_id', i);

-- as a value: the same answers
SELECT layout, hash, element, capacity, target_fpr, layers, round(cardinality::numeric, -2) AS cardinality FROM unnest('{codes_code,codes_both}'::regclass[]) i, bloom_info(bloom_index_filter(i));
SELECT count(*) FILTER (WHERE (f @> ('SP-' || i)) <> bloom_index_contains('codes_code', 'SP-' || i)) AS differ, count(*) FILTER (WHERE NOT f @> ('SP-' || i)) > 900 AS no
FROM generate_series(1, 2000) i, (SELECT bloom_index_filter('codes_code') AS f OFFSET 0) f;
SELECT bloom_index_filter('codes_code') = bloom_agg('SP-' || i, bloomfilter(2000, 0.001, hash => 'blake2b', expansion => 4)) AS same FROM generate_series(1, 1000) i;
SELECT bloom_index_filter('codes_both') = bloom_agg((i::bigint, 'SP-' || i), bloomfilter(1000, expansion => 2)) AS same FROM generate_series(1, 1000) i;
SELECT bloom_index_filter('codes_both')::bytea::bloomfilter = bloom_index_filter('codes_both') AS valid;
TRUNCATE codes;
SELECT bloom_cardinality(bloom_index_filter('codes_code')), bloom_index_filter('codes_code') @> 'SP-1', bloom_index_contains('codes_code', 'SP-1');
DROP TABLE codes;

-- the planner has no use for it, nor has anybody else
CREATE TABLE t (i int, s text) WITH (autovacuum_enabled = off);
CREATE INDEX t_i ON t USING bloomfilter (i) WITH (capacity = 100);
INSERT INTO t SELECT i, 'x' FROM generate_series(1, 1000) i;
SET enable_seqscan = off;
CREATE FUNCTION pg_temp.reads_index(query text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
	line text;
BEGIN
	FOR line IN EXECUTE 'EXPLAIN (COSTS OFF) ' || query LOOP
		IF line ~ 'Index' THEN
			RETURN true;
		END IF;
	END LOOP;
	RETURN false;
END $$;
SELECT pg_temp.reads_index('SELECT * FROM t WHERE i = 1'), pg_temp.reads_index('SELECT i FROM t ORDER BY i');
RESET enable_seqscan;
SELECT amname, pg_indexam_has_property(oid, 'can_order') AS "order", pg_indexam_has_property(oid, 'can_unique') AS "unique", pg_indexam_has_property(oid, 'can_multi_col') AS multi,
	pg_indexam_has_property(oid, 'can_exclude') AS exclude, pg_indexam_has_property(oid, 'can_include') AS include, amvalidate(c.opc)
FROM pg_am, (SELECT oid AS opc FROM pg_opclass WHERE opcname = 'bloomfilter_any_ops') c WHERE amname = 'bloomfilter';
SELECT pg_index_has_property('t_i', 'index_scan') AS index_scan, pg_index_has_property('t_i', 'bitmap_scan') AS bitmap_scan;
CREATE UNIQUE INDEX ON t USING bloomfilter (i);
CREATE INDEX ON t USING bloomfilter (i) INCLUDE (s);
ALTER TABLE t ADD EXCLUDE USING bloomfilter (i WITH =);
CLUSTER t USING t_i;

-- NULL is no key; a row of them is
INSERT INTO t VALUES (NULL, NULL), (NULL, 'n');
CREATE INDEX t_is ON t USING bloomfilter (i, s);
CREATE INDEX t_s ON t USING bloomfilter (s);
SELECT round(cardinality) FROM bloom_index_info('t_s');
SELECT bloom_index_contains('t_is', ROW(NULL::int, NULL::text)), bloom_index_contains('t_is', ROW(NULL, NULL)), bloom_index_contains('t_is', ROW(NULL, 'n')),
	bloom_index_contains('t_is', ROW(1, NULL)), bloom_index_contains('t_is', ROW(1, 'x'));

-- expressions, and rows of a predicate only
CREATE INDEX t_upper ON t USING bloomfilter (upper(s || i));
CREATE INDEX t_even ON t USING bloomfilter (i) WHERE i % 2 = 0;
CREATE INDEX t_mod ON t USING bloomfilter ((i % 100), s);
SELECT bloom_index_contains('t_upper', 'X17'), bloom_index_contains('t_upper', 'x17'), bloom_index_contains('t_even', 18), bloom_index_contains('t_even', 17), bloom_index_contains('t_mod', ROW(99, 'x')),
	bloom_index_contains('t_mod', ROW(100, 'x'));
INSERT INTO t VALUES (10001, 'y'), (10002, 'y');
SELECT bloom_index_contains('t_upper', 'Y10001'), bloom_index_contains('t_even', 10002), bloom_index_contains('t_even', 10001), bloom_index_contains('t_mod', ROW(2, 'y'));
SELECT bloom_index_check(i, true) FROM unnest('{t_i,t_is,t_s,t_upper,t_even,t_mod}'::regclass[]) i;

-- growth, by inserts, by COPY and by a build; the value grows with it
SELECT layers, capacity, round(cardinality::numeric, -2) AS cardinality FROM bloom_index_info('t_i');
SELECT count(*) FROM t WHERE NOT bloom_index_contains('t_i', i);
INSERT INTO t SELECT i, 'x' FROM generate_series(1, 1000) i;
UPDATE t SET i = i WHERE i < 500;
SELECT layers, round(cardinality::numeric, -2) AS cardinality FROM bloom_index_info('t_i');
SELECT count(*) FILTER (WHERE (f @> i) <> bloom_index_contains('t_i', i)) AS differ, count(*) FILTER (WHERE NOT f @> i) > 1900 AS no
FROM generate_series(-2000, 1000) i, (SELECT bloom_index_filter('t_i') AS f OFFSET 0) f;
CREATE INDEX t_i2 ON t USING bloomfilter (i) WITH (capacity = 100);
SELECT layers, capacity, round(cardinality::numeric, -2) AS cardinality FROM bloom_index_info('t_i2');
SELECT count(*) FROM t WHERE NOT bloom_index_contains('t_i2', i);
-- as many as ANALYZE has found, if that is more
ANALYZE t;
REINDEX INDEX t_i2;
SELECT layers, capacity > 950 AS capacity FROM bloom_index_info('t_i2');
CREATE TABLE copied (s text);
CREATE INDEX copied_s ON copied USING bloomfilter (s) WITH (capacity = 2);
COPY copied FROM STDIN;
alpha
beta
gamma
\N
delta
epsilon
zeta
eta
theta
\.
SELECT layers, bloom_index_contains_each('copied_s', '{alpha,beta,gamma,delta,epsilon,zeta,eta,theta,iota}'::text[]) FROM bloom_index_info('copied_s');
UPDATE copied SET s = 'iota' WHERE s = 'eta';
SELECT bloom_index_contains_each('copied_s', '{eta,iota}'::text[]), bloom_index_check('copied_s', true);
DROP TABLE copied;

-- at the lowest rates there cannot be many layers
CREATE TABLE low (i int) WITH (autovacuum_enabled = off);
CREATE INDEX low_i ON low USING bloomfilter (i) WITH (capacity = 100, fpr = 0.000007);
INSERT INTO low SELECT generate_series(1, 1000);
SELECT layers, expected_fpr > 0.1 AS overfilled, (SELECT count(*) FROM low WHERE NOT bloom_index_contains('low_i', i)) AS missed FROM bloom_index_info('low_i');
REINDEX INDEX low_i;
SELECT layers, expected_fpr <= target_fpr AS rate, (SELECT count(*) FROM low WHERE NOT bloom_index_contains('low_i', i)) AS missed FROM bloom_index_info('low_i');
DROP TABLE low;

-- options
CREATE INDEX ON t USING bloomfilter (i) WITH (capacity = 0);
CREATE INDEX ON t USING bloomfilter (i) WITH (capacity = 1.5);
CREATE INDEX ON t USING bloomfilter (i) WITH (capacity = 1e300);
CREATE INDEX ON t USING bloomfilter (i) WITH (fpr = 0);
CREATE INDEX ON t USING bloomfilter (i) WITH (fpr = 1);
CREATE INDEX ON t USING bloomfilter (i) WITH (fpr = 0.000001);
CREATE INDEX ON t USING bloomfilter (i) WITH (expansion = 1);
CREATE INDEX ON t USING bloomfilter (i) WITH (expansion = 17);
CREATE INDEX ON t USING bloomfilter (i) WITH (hash = 'md5');
CREATE INDEX ON t USING bloomfilter (i) WITH (key = 'secret');
ALTER INDEX t_i2 SET (fpr = 2);
ALTER INDEX t_i2 SET (fpr = 0.1, capacity = 1e4);
SELECT target_fpr, capacity FROM bloom_index_info('t_i2');
REINDEX INDEX t_i2;
SELECT target_fpr, capacity FROM bloom_index_info('t_i2');
ALTER INDEX t_i2 RESET (fpr);
REINDEX INDEX t_i2;
SELECT target_fpr, pg_get_indexdef('t_i2'::regclass) FROM bloom_index_info('t_i2');

-- types: all that a filter can hold
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN posint AS int CHECK (VALUE > 0);
CREATE TABLE kinds (i2 int2, f float4, n numeric, u uuid, b bytea, bo bool, d date, tz timestamptz, ip inet, m mood, po posint, c char(5), v varchar(10), a int[], p pair, j jsonb, r int4range, iv interval);
INSERT INTO kinds VALUES (1, 1.5, 5.00, '00000000-0000-0000-0000-000000000001', '\x01', true, '2000-01-01', '2000-01-01 UTC', '10.0.0.1', 'ok', 7, 'ab', 'ab', '{1,2}', (1, 'a'), '{"a": 1}', '[1,5)', '1 day');
SELECT format('CREATE INDEX kinds_%1$s ON kinds USING bloomfilter (%1$s)', attname) FROM pg_attribute WHERE attrelid = 'kinds'::regclass AND attnum > 0 ORDER BY attnum \gexec
INSERT INTO kinds VALUES (2, -0.0, 6.10, '00000000-0000-0000-0000-000000000002', '\x02', false, '2000-01-02', '2000-01-02 UTC', '10.0.0.2/8', 'sad', 8, 'cd', 'cd', '{3}', (2, 'b'), '{"b": 1}', '[1,6)', '24:00');
SELECT element, count(*) FROM pg_indexes, bloom_index_info(indexname::regclass) WHERE tablename = 'kinds' GROUP BY element ORDER BY element COLLATE "C";
SELECT bloom_index_contains('kinds_i2', 2), bloom_index_contains('kinds_f', 0::float8), bloom_index_contains('kinds_n', 6.1), bloom_index_contains('kinds_n', 5.000),
	bloom_index_contains('kinds_u', '00000000-0000-0000-0000-000000000002'::uuid), bloom_index_contains('kinds_b', '\x02'::bytea), bloom_index_contains('kinds_bo', false),
	bloom_index_contains('kinds_d', date '2000-01-02'), bloom_index_contains('kinds_tz', timestamptz '2000-01-02 UTC'), bloom_index_contains('kinds_ip', inet '10.0.0.2/8'),
	bloom_index_contains('kinds_m', 'sad'::mood), bloom_index_contains('kinds_po', 8), bloom_index_contains('kinds_c', 'cd  '::char(9)), bloom_index_contains('kinds_v', 'cd'),
	bloom_index_contains('kinds_a', '{3}'::int[]), bloom_index_contains('kinds_p', ROW(2::bigint, 'b')), bloom_index_contains('kinds_j', '{"b":1}'::jsonb),
	bloom_index_contains('kinds_r', int4range(1, 6)), bloom_index_contains('kinds_iv', interval '1 day');
SELECT bloom_index_contains('kinds_n', 7.1), bloom_index_contains('kinds_m', 'ok'::mood), bloom_index_contains('kinds_a', '{2,1}'::int[]), bloom_index_contains('kinds_p', ROW(2::bigint, 'c'));
SELECT bloom_index_check(indexname::regclass, true) FROM pg_indexes WHERE tablename = 'kinds';
CREATE TABLE refused (x xml, p point, s text COLLATE "C");
CREATE INDEX ON refused USING bloomfilter (x);
CREATE INDEX ON refused USING bloomfilter (s, p);
CREATE INDEX ON refused USING bloomfilter (((s, s)));

-- keys of another kind, other things than indexes
SELECT bloom_index_contains('t_i', 'x');
SELECT bloom_index_contains('t_i', 1.0);
SELECT bloom_index_contains('t_is', 1);
SELECT bloom_index_contains('t_is', ROW(1, 2));
SELECT bloom_index_contains_each('t_i', '{x}'::text[]);
SELECT bloom_index_contains_each('t_i', '{}'::text[]);
SELECT bloom_index_contains('t_i', ARRAY[1]);
CREATE INDEX t_btree ON t (i);
CREATE VIEW v AS SELECT 1;
SELECT bloom_index_contains('t_btree', 1);
SELECT bloom_index_contains('t', 1);
SELECT bloom_index_contains('v', 1);
SELECT bloom_index_contains(1::oid, 1);
SELECT bloom_index_contains('nowhere', 1);
SELECT bloom_index_info('t_btree');
SELECT bloom_index_filter('t');
SELECT bloom_index_check('t_btree');
SELECT bloom_index_partitions('t_btree', 1);
SELECT bloom_index_partitions('t_i', 1), bloom_index_partitions('t_s', 'x'), (SELECT count(*) FROM bloom_index_partitions('t_i', -1));

DROP VIEW v;
DROP TABLE t, kinds, refused;
DROP TYPE pair, mood;
DROP DOMAIN posint;
