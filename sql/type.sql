-- The type: input and output, casts, equality, storage.
\getenv builddir PG_ABS_BUILDDIR
SET extra_float_digits = 0;

CREATE TEMP TABLE filters (id int PRIMARY KEY, f bloomfilter);
INSERT INTO filters VALUES
	(1, NULL),
	(2, bloomfilter()),
	(3, bloomfilter(fpr => 0.001, layout => 'standard')),
	(4, bloomfilter(100)),
	(5, bloom_add(bloomfilter(100), 1)),
	(6, bloom_add(bloomfilter(100, layout => 'standard', hash => 'blake2b'), 'one'::text)),
	(7, bloom_add(bloomfilter(100, hash => 'blake2b', key => 'secret', hashes => 3), date '2026-01-01')),
	(8, (SELECT bloom_agg(x, 50000) FROM generate_series(1, 50000) x));

-- the text form is base64, frozen
SELECT id, f FROM filters WHERE id < 7 ORDER BY id;

-- an empty filter of any size is its header alone: 64 bytes
SELECT c AS capacity, pg_column_size(bloomfilter(c)), octet_length(bloomfilter(c)::bytea),
	(bloom_info(bloomfilter(c))).bytes, (bloom_info(bloomfilter(c))).bits
FROM unnest('{NULL,1,1000,1e6,4e8}'::float8[]) c;
SELECT pg_column_size(bloomfilter(1000, layout => 'standard')),
	pg_column_size(bloom_clear(bloom_add(bloomfilter(1000000), 1))),
	-- a key may need room
	pg_column_size(bloomfilter(1000, hash => 'blake2b', key => 'k'));
-- blocks stay aligned with the value
SELECT id, layout, bits, bytes, bytes % 64 AS rest
FROM filters, bloom_info(f) WHERE id > 3 ORDER BY id;

-- storage: out of line, uncompressed
SELECT attstorage FROM pg_attribute WHERE attrelid = 'filters'::regclass AND attname = 'f';
SELECT typlen, typalign, typstorage, typbyval FROM pg_type WHERE typname = 'bloomfilter';

-- all forms give the same bytes back
SELECT id, f::text::bloomfilter = f AS text, f::bytea::bloomfilter = f AS bytea,
	bloomfilter_send(f) = f::bytea AS send, decode(f::text, 'base64') = f::bytea AS base64,
	-- with line breaks, as most programs write base64
	encode(f::bytea, 'base64')::bloomfilter = f AS lines
FROM filters ORDER BY id;
SELECT 'QkYBAgEAPAAAAAAAAAAAAAAAAAAAAAAAAAAAAHsUrkfheoQ/AAAAAAAAAAAAAAAAAAAAAAAAAACWS7EC'::bloomfilter = bloomfilter();

-- COPY, text and binary
CREATE TEMP TABLE copied (LIKE filters);
\cd :builddir
\copy filters TO 'results/type.data'
\copy copied FROM 'results/type.data'
\copy filters TO 'results/type.data' (FORMAT binary)
\copy copied FROM 'results/type.data' (FORMAT binary)
SELECT id, count(*), bool_and(copied.f IS NOT DISTINCT FROM filters.f) AS same
FROM filters JOIN copied USING (id) GROUP BY id ORDER BY id;

-- casts are explicit only
CREATE TEMP TABLE bytes (b bytea);
INSERT INTO bytes SELECT f FROM filters;
INSERT INTO copied (f) SELECT '\x'::bytea;
SELECT bloomfilter() = '\x'::bytea;

-- equality: same parameters and same bits
SELECT a.id, b.id FROM filters a, filters b WHERE a.f = b.f ORDER BY 1, 2;
SELECT bool_and((a.f <> b.f) = NOT (a.f = b.f)) FROM filters a, filters b;
SELECT bloomfilter(100) = bloomfilter(1000) AS capacity,
	bloomfilter(100) = bloomfilter(100, 0.011) AS fpr,
	bloomfilter(100) = bloomfilter(100, layout => 'standard') AS layout,
	bloomfilter(100) = bloomfilter(100, hash => 'blake2b') AS hash,
	bloomfilter(100, hash => 'blake2b') = bloomfilter(100, hash => 'blake2b', key => 'k') AS keyed,
	bloomfilter(100, hash => 'blake2b', key => 'j') = bloomfilter(100, hash => 'blake2b', key => 'k') AS key,
	bloomfilter(100) = bloomfilter(100, hashes => 5) AS hashes,
	bloom_add(bloomfilter(100), 1) = bloom_add(bloomfilter(100), 2) AS element,
	-- 0 and 00000000 have the same bytes, but are of other kinds
	bloom_add(bloomfilter(100), 0) = bloom_add(bloomfilter(100), '\x0000000000000000'::bytea) AS kind,
	bloom_add(bloomfilter(100), 1) = bloom_add(bloomfilter(100), 1::bigint) AS same;
SELECT bloomfilter(100) = NULL AS eq, bloomfilter(100) <> NULL AS ne, bloomfilter(100) IS DISTINCT FROM NULL AS dist;

-- the hash operator class
SELECT count(*) FROM (SELECT DISTINCT f FROM copied) s;
SELECT n, count(*) FROM (SELECT count(*) AS n FROM copied GROUP BY f) s GROUP BY n;
SELECT count(*) FROM (SELECT f FROM filters UNION SELECT f FROM copied) s;
SELECT count(*) FROM (SELECT f FROM copied EXCEPT SELECT f FROM filters WHERE id <> 5) s;
SET enable_mergejoin = off;
SET enable_nestloop = off;
SELECT count(*) FROM filters JOIN copied ON filters.f = copied.f;
CREATE FUNCTION pg_temp.plan(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	plan json;
BEGIN
	EXECUTE 'EXPLAIN (FORMAT JSON) ' || query INTO plan;
	RETURN plan;
END $$;
SELECT pg_temp.plan('SELECT count(*) FROM filters JOIN copied ON filters.f = copied.f') ~ 'Hash Join';
RESET enable_mergejoin;
RESET enable_nestloop;
SELECT bool_and(bloomfilter_hash(a.f) = bloomfilter_hash(b.f)) AS equal_hash,
	bool_and(bloomfilter_hash_extended(a.f, 7) = bloomfilter_hash_extended(b.f, 7)) AS equal_hash_extended,
	-- by convention, seed 0 gives the 32-bit hash in the low half
	bool_and(bloomfilter_hash(a.f) = bloomfilter_hash_extended(a.f, 0)::bit(32)::int) AS agree
FROM filters a JOIN copied b USING (f);
SELECT count(DISTINCT bloomfilter_hash(f)) = count(f) AS spread FROM filters;
CREATE TABLE type_parts (f bloomfilter) PARTITION BY HASH (f);
CREATE TABLE type_parts0 PARTITION OF type_parts FOR VALUES WITH (MODULUS 2, REMAINDER 0);
CREATE TABLE type_parts1 PARTITION OF type_parts FOR VALUES WITH (MODULUS 2, REMAINDER 1);
INSERT INTO type_parts SELECT f FROM filters;
SELECT count(*) FROM type_parts JOIN filters USING (f);
DROP TABLE type_parts;
CREATE INDEX ON copied USING hash (f);
SET enable_seqscan = off;
SELECT count(*) FROM copied WHERE f = (SELECT f FROM filters WHERE id = 5);
RESET enable_seqscan;

-- the order is that of bytes
SELECT bool_and(o = p) FROM (SELECT row_number() OVER (ORDER BY f) AS o, row_number() OVER (ORDER BY f::bytea) AS p FROM (SELECT DISTINCT f FROM filters) d) s;
SELECT count(DISTINCT f) FROM filters;

-- NULL
SELECT bloomfilter(NULL) IS NULL AS cast, bloomfilter(NULL::float8) IS NULL AS call;
SELECT bloom_info(NULL) IS NULL AS info, bloom_clear(NULL) IS NULL AS clear,
	bloom_cardinality(NULL) IS NULL AS cardinality, bloom_expected_fpr(NULL) IS NULL AS fpr;

-- what a filter says about itself
SELECT * FROM bloom_info(bloomfilter());
SELECT * FROM bloom_info(bloomfilter(100));
-- saturated
SELECT bits_set, fill, cardinality, expected_fpr
FROM bloom_info((SELECT bloom_agg(x, bloomfilter(1, 0.5, hashes => 16)) FROM generate_series(1, 2000) x));
SELECT layout, hash, keyed, element, capacity, target_fpr, bits, hashes, layers, bits_set,
	round(fill::numeric, 4) AS fill, round(cardinality::numeric, 4) AS cardinality, bytes
FROM filters, bloom_info(f) ORDER BY id;
SELECT bool_and(bloom_cardinality(f) = cardinality AND bloom_expected_fpr(f) = expected_fpr
	AND octet_length(f::bytea) + 4 = bytes) FROM filters, bloom_info(f);

-- every object has a comment and is parallel safe and immutable
SELECT classid::regclass, count(*) AS uncommented
FROM pg_depend d
WHERE refclassid = 'pg_extension'::regclass
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
	AND deptype = 'e'
	AND obj_description(objid, classid::regclass::name) IS NULL
	-- implicit: types of arrays and of a view's rows
	AND NOT (classid = 'pg_type'::regclass AND objid <> 'bloomfilter'::regtype)
GROUP BY 1;
SELECT p.oid::regprocedure
FROM pg_depend d JOIN pg_proc p ON p.oid = objid
WHERE classid = 'pg_proc'::regclass AND refclassid = 'pg_extension'::regclass
	AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'bloomfilter')
	AND (provolatile <> 'i' OR proparallel <> 's') AND proname NOT IN ('bloom_contsel', 'bloom_maintain', 'bloomfilter_handler')
	-- these read tables
	AND proname !~ '^bloom_(index|sample)_';
SELECT bool_and(amvalidate(oid)) FROM pg_opclass WHERE opcname = 'bloomfilter_ops';
