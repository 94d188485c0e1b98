-- The live filter is the same whether workers have built it or not.
SET client_min_messages = warning;
SET min_parallel_table_scan_size = 0;
SET maintenance_work_mem = '128MB';
CREATE TABLE t (i int, s text) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO t SELECT i, 's' || i % 20000 FROM generate_series(1, 40000) i;
INSERT INTO t VALUES (NULL, NULL);
CREATE FUNCTION built(definition text) RETURNS TABLE (layers int, tuples float4, filter bloomfilter) LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE 'CREATE INDEX built_i ON t USING bloomfilter ' || definition;
	PERFORM bloom_index_check('built_i', true);
	SELECT i.layers, reltuples, bloom_index_filter('built_i') INTO layers, tuples, filter FROM bloom_index_info('built_i') i, pg_class WHERE oid = 'built_i'::regclass;
	DROP INDEX built_i;
	RETURN NEXT;
END $$;
CREATE FUNCTION same(definition text) RETURNS TABLE (layers int, tuples float4, same boolean) LANGUAGE plpgsql AS $$
DECLARE
	serial record;
	parallel record;
BEGIN
	SET LOCAL max_parallel_maintenance_workers = 0;
	SELECT * INTO serial FROM built(definition);
	SET LOCAL max_parallel_maintenance_workers = 2;
	SELECT * INTO parallel FROM built(definition);
	RETURN QUERY SELECT parallel.layers, parallel.tuples, parallel = serial;
END $$;
SELECT * FROM same('(i) WITH (capacity = 50000)');
SELECT * FROM same('(s) WITH (capacity = 50000, hash = blake2b)');
SELECT * FROM same('(i, s) WITH (capacity = 50000)');
-- the first layer turns out to be too small: workers are sent home
SELECT * FROM same('(i) WITH (capacity = 1000)');
SELECT * FROM same('(i) WITH (capacity = 30000)');
-- much too large: halved
SELECT * FROM same('((i % 100))');
SELECT * FROM same('(s) WHERE i % 10 = 0');
-- not enough memory for workers, or at all
SET maintenance_work_mem = '1MB';
SELECT * FROM same('(i) WITH (capacity = 50000)');
SET maintenance_work_mem = '128MB';

-- there are workers: the leader is slow, and a function that runs in one says so
CREATE TABLE few (i int, filler text) WITH (autovacuum_enabled = off, parallel_workers = 2);
INSERT INTO few SELECT i, repeat('x', 1500) FROM generate_series(1, 1000) i;
CREATE FUNCTION where_am_i(i int) RETURNS text IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	IF (SELECT leader_pid IS NULL FROM pg_stat_activity WHERE pid = pg_backend_pid()) THEN
		PERFORM pg_sleep(0.01);
		RETURN 'leader';
	END IF;
	RETURN 'worker';
END $$;
CREATE INDEX few_where ON few USING bloomfilter (where_am_i(i)) WITH (capacity = 100);
SELECT bloom_index_contains('few_where', 'worker') AS worker;
DROP TABLE few;
CREATE INDEX CONCURRENTLY t_i ON t USING bloomfilter (i) WITH (capacity = 100000);
SELECT bloom_index_check('t_i', true);
REINDEX INDEX CONCURRENTLY t_i;
SELECT bloom_index_check('t_i', true);
-- an error in a worker
CREATE FUNCTION fails(i int) RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$
BEGIN
	IF i = 39999 THEN
		RAISE 'no %', i;
	END IF;
	RETURN i;
END $$;
\set VERBOSITY terse
CREATE INDEX ON t USING bloomfilter (fails(i));
\set VERBOSITY default
DROP FUNCTION same, built, where_am_i, fails;
DROP TABLE t;
