-- The live filter's false-positive rate, at one, two and ten times the capacity
-- of its first layer: of T probes with absent keys no more than
-- T p + 3 sqrt(T p (1 - p)) pass.  By inserts, in one go and row by row, and by
-- a build.
SET extra_float_digits = 0;

CREATE FUNCTION pg_temp.bound(t float8, p float8) RETURNS float8 IMMUTABLE LANGUAGE sql
RETURN t * p + 3 * sqrt(t * p * (1 - p));

CREATE TABLE keys (n int, i bigint) WITH (autovacuum_enabled = off);
CREATE INDEX keys_i ON keys USING bloomfilter (i) WITH (capacity = 20000);
CREATE INDEX keys_4 ON keys USING bloomfilter (i) WITH (capacity = 5000, fpr = 0.001, expansion = 4, hash = blake2b);
CREATE TABLE results (index regclass, n int, layers int, missed bigint, passed bigint, t bigint, p float8, keys float8, expected float8);
CREATE PROCEDURE measure(index regclass, n int) LANGUAGE sql AS $$
	INSERT INTO results
	SELECT index, n, b.layers, (SELECT count(*) FROM keys WHERE NOT bloom_index_contains(index, i)),
		(SELECT count(*) FROM generate_series(1, 100000) x WHERE bloom_index_contains(index, -x)), 100000, b.target_fpr, b.cardinality, b.expected_fpr
	FROM bloom_index_info(index) b;
$$;
INSERT INTO keys SELECT 1, i FROM generate_series(1, 20000) i;
CALL measure('keys_i', 20000);
CALL measure('keys_4', 20000);
INSERT INTO keys SELECT 2, i FROM generate_series(20001, 40000) i;
CALL measure('keys_i', 40000);
CALL measure('keys_4', 40000);
DO $$
BEGIN
	FOR n IN 40001 .. 50000 LOOP
		INSERT INTO keys VALUES (3, n);
	END LOOP;
END $$;
CALL measure('keys_4', 50000);
INSERT INTO keys SELECT 4, i FROM generate_series(50001, 200000) i;
CALL measure('keys_i', 200000);
CALL measure('keys_4', 200000);
SELECT index, n, layers, missed, passed <= pg_temp.bound(t, p) AS within, abs(keys / n - 1) < 0.02 AS counted, passed >= 2 * t * expected - pg_temp.bound(t, expected) AS "as expected",
	expected <= p AS expected
FROM results ORDER BY index::text, n;

-- built over rows that nobody has counted: layers in memory, and with less of
-- it files
TRUNCATE results;
CREATE INDEX keys_b ON keys USING bloomfilter (i) WITH (capacity = 20000);
CALL measure('keys_b', 200000);
CREATE INDEX keys_d ON keys USING bloomfilter (i);
CALL measure('keys_d', 200000);
INSERT INTO keys SELECT 5, i FROM generate_series(200001, 400000) i;
SET maintenance_work_mem = '1MB';
CREATE INDEX keys_f ON keys USING bloomfilter (i) WITH (capacity = 1000000);
CALL measure('keys_f', 400000);
CREATE INDEX keys_m ON keys USING bloomfilter (i) WITH (capacity = 20000);
CALL measure('keys_m', 400000);
CREATE INDEX keys_g ON keys USING bloomfilter ((i % 100));
SELECT layers, capacity < 100000 AS halved, round(cardinality) AS cardinality FROM bloom_index_info('keys_g');
ANALYZE keys;
CREATE INDEX keys_a ON keys USING bloomfilter (i) WITH (fpr = 0.0001);
CALL measure('keys_a', 400000);
RESET maintenance_work_mem;
-- ANALYZE was far off: two layers, not six
ALTER TABLE keys ALTER i SET (n_distinct = 12000);
ANALYZE keys;
CREATE INDEX keys_w ON keys USING bloomfilter (i);
CALL measure('keys_w', 400000);
SELECT index, n, layers, missed, passed <= pg_temp.bound(t, p) AS within, abs(keys / n - 1) < 0.02 AS counted, passed >= 2 * t * expected - pg_temp.bound(t, expected) AS "as expected",
	expected <= p AS expected
FROM results ORDER BY index::text, n;
SELECT bloom_index_check(i) FROM unnest('{keys_i,keys_4,keys_b,keys_d,keys_f,keys_m,keys_a,keys_w}'::regclass[]) i;

-- small first layers, of many indexes together: they vary
CREATE PROCEDURE small(capacity int, times int, OUT missed bigint, OUT passed bigint, OUT t bigint) LANGUAGE plpgsql AS $$
BEGIN
	missed := 0;
	passed := 0;
	t := 0;
	CREATE TABLE small_keys (i bigint);
	EXECUTE format('CREATE INDEX small_i ON small_keys USING bloomfilter (i) WITH (capacity = %s)', capacity);
	FOR round IN 1 .. 30 LOOP
		TRUNCATE small_keys;
		INSERT INTO small_keys SELECT round * 1000000 + x FROM generate_series(1, capacity * times) x;
		missed := missed + (SELECT count(*) FROM small_keys WHERE NOT bloom_index_contains('small_i', i));
		passed := passed + (SELECT count(*) FROM generate_series(1, 1000) x WHERE bloom_index_contains('small_i', -(round * 1000000 + x)));
		t := t + 1000;
	END LOOP;
	DROP TABLE small_keys;
END $$;
CREATE TABLE smalls (capacity int, times int, missed bigint, passed bigint, t bigint);
DO $$
DECLARE
	r record;
	missed bigint;
	passed bigint;
	t bigint;
BEGIN
	FOR r IN SELECT c, n FROM unnest('{1,10,100}'::int[]) c, unnest('{1,2,10}'::int[]) n LOOP
		CALL small(r.c, r.n, missed, passed, t);
		INSERT INTO smalls VALUES (r.c, r.n, missed, passed, t);
	END LOOP;
END $$;
SELECT capacity, times, missed, passed <= pg_temp.bound(t, 0.01) AS within FROM smalls ORDER BY capacity, times;

DROP TABLE keys, results, smalls;
DROP PROCEDURE measure, small;
