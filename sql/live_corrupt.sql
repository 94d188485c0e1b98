-- Damaged pages of a live filter: an error, by those who ask, those who add and
-- the check.  The file is changed under the server; an index that has moved to
-- another tablespace has no page in shared buffers.
SET allow_in_place_tablespaces = on;
SET ignore_checksum_failure = on;
SET client_min_messages = error;
CREATE TABLESPACE regress_bloom_damage LOCATION '';
CREATE TABLE t (i int) WITH (autovacuum_enabled = off);
INSERT INTO t SELECT generate_series(1, 5000);
CREATE INDEX t_i ON t USING bloomfilter (i) WITH (capacity = 5000);
INSERT INTO t SELECT generate_series(5001, 6500);
SELECT layers, bytes / 8192 AS pages FROM bloom_index_info('t_i');

-- put bytes at a place of a page, and see who complains of which
CREATE FUNCTION damage(what text, block int, place int, bytes bytea) RETURNS TABLE (test text, who text, says text) LANGUAGE plpgsql AS $$
DECLARE
	queries text[] := ARRAY['SELECT count(*) FROM generate_series(1, 1000) x WHERE bloom_index_contains(''t_i'', x)', 'INSERT INTO t SELECT generate_series(-1000, -1)',
		'SELECT bloom_index_info(''t_i'')', 'SELECT bloom_index_filter(''t_i'')', 'SELECT bloom_index_check(''t_i'')', 'SELECT bloom_index_check(''t_i'', true)'];
	names text[] := ARRAY['contains', 'insert', 'info', 'filter', 'check', 'check rows'];
	detail text;
	good oid;
	bad oid;
BEGIN
	test := what;
	good := lo_from_bytea(0, pg_read_binary_file(pg_relation_filepath('t_i')));
	bad := lo_from_bytea(0, pg_read_binary_file(pg_relation_filepath('t_i')));
	PERFORM lo_put(bad, block * 8192 + place, bytes);
	PERFORM lo_export(bad, pg_relation_filepath('t_i'));
	EXECUTE 'ALTER INDEX t_i SET TABLESPACE regress_bloom_damage';
	FOR n IN 1 .. array_length(queries, 1) LOOP
		who := names[n];
		BEGIN
			EXECUTE queries[n];
			says := 'nothing';
			RAISE EXCEPTION USING errcode = 'U0001';
		EXCEPTION WHEN SQLSTATE 'U0001' THEN
			NULL;
		WHEN OTHERS THEN
			GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
			-- what the server says itself differs from version to version
			says := SQLSTATE || CASE WHEN SQLSTATE = 'XX002' THEN ': ' || regexp_replace(SQLERRM, '".*"', '"..."') || ': ' || detail ELSE '' END;
		END;
		RETURN NEXT;
	END LOOP;
	PERFORM lo_export(good, pg_relation_filepath('t_i'));
	EXECUTE 'ALTER INDEX t_i SET TABLESPACE pg_default';
	PERFORM lo_unlink(good), lo_unlink(bad);
END $$;

CHECKPOINT;
SELECT * FROM damage('sound', 0, 0, '');
-- the metapage begins at 24: magic, hash, expansion, kind, flags, rate, capacity, number of layers
SELECT who, says FROM damage('zeroed metapage', 0, 0, decode(repeat('00', 8192), 'hex'));
SELECT who, says FROM damage('magic', 0, 24, '\x00');
SELECT who, says FROM damage('hash', 0, 28, '\x09');
SELECT who, says FROM damage('kind', 0, 30, '\xff');
SELECT who, says FROM damage('rate', 0, 32, '\xffffffffffffffff');
SELECT who, says FROM damage('layers', 0, 48, '\xff');
-- the first layer's entry: blocks, capacity, bits set, first page, step, hashes
SELECT who, says FROM damage('blocks', 0, 56, '\x0000000000000000');
SELECT who, says FROM damage('more blocks', 0, 56, '\xffff');
SELECT who, says FROM damage('first', 0, 80, '\x00000000');
SELECT who, says FROM damage('hashes', 0, 88, '\xff');
-- a page: magic, number, layer, bits set, then blocks
SELECT who, says FROM damage('zeroed page', 1, 0, decode(repeat('00', 8192), 'hex'));
SELECT who, says FROM damage('page number', 1, 28, '\x07');
SELECT who, says FROM damage('layer', 1, 32, '\x01');
SELECT who, says FROM damage('count', 1, 36, '\x00000000');
SELECT who, says FROM damage('bits', 1, 64, decode(repeat('00', 4096), 'hex'));

SELECT bloom_index_check('t_i', true);
DROP TABLE t;
DROP TABLESPACE regress_bloom_damage;
