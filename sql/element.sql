-- From values to bytes: what is equal gives one digest, on any platform.
CREATE FUNCTION pg_temp.digests(value anyelement) RETURNS text LANGUAGE sql AS $$
	SELECT concat_ws(' ', encode(bloom_hash(value), 'hex'), encode(bloom_hash(value, 'blake2b'), 'hex'))
$$;

-- golden digests, made with other libraries: XXH3-128 and BLAKE2b
SELECT pg_temp.digests(42);						-- int64, little-endian
SELECT pg_temp.digests(-1);
SELECT pg_temp.digests((-9223372036854775808)::int8);
SELECT pg_temp.digests(4294967295::oid);
SELECT pg_temp.digests('abc'::text);			-- UTF-8
SELECT pg_temp.digests(''::text);
SELECT pg_temp.digests('é'::text);
SELECT pg_temp.digests(repeat('a', 1000));
SELECT pg_temp.digests(1.5::float8);			-- IEEE double, little-endian
SELECT pg_temp.digests(0::float8);
SELECT pg_temp.digests('NaN'::float8);			-- 000000000000f87f
SELECT pg_temp.digests('Infinity'::float8);
SELECT pg_temp.digests('-Infinity'::float8);
SELECT pg_temp.digests('\x00ff'::bytea);
SELECT pg_temp.digests('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid);
SELECT pg_temp.digests(true);
SELECT pg_temp.digests(false);
SELECT pg_temp.digests(date '2000-01-02');		-- int64 days since 2000
SELECT pg_temp.digests(date '1999-12-31');
SELECT pg_temp.digests(date 'infinity');
SELECT pg_temp.digests(time '00:00:01');		-- int64 microseconds
SELECT pg_temp.digests(time '24:00:00');
SELECT pg_temp.digests(timestamp '2000-01-01 00:00:01');
SELECT pg_temp.digests(timestamptz '2000-01-01 00:00:01+00');
SELECT pg_temp.digests(timestamp 'infinity');

-- integer: one digest for all widths
SELECT bloom_hash(7::int2) = bloom_hash(7) AS int2, bloom_hash(7::int8) = bloom_hash(7) AS int8,
	bloom_hash(7::oid) = bloom_hash(7) AS oid,
	bloom_hash((-7)::int2) = bloom_hash(-7) AND bloom_hash((-7)::int8) = bloom_hash(-7) AS negative,
	bloom_hash(4294967295::oid) = bloom_hash(4294967295::int8) AS "unsigned",
	bloom_hash(4294967295::oid) <> bloom_hash(-1) AS "not signed";
-- text: no padding, no length limit, no type of string
SELECT bloom_hash('abc'::varchar) = bloom_hash('abc'::text) AS varchar, bloom_hash('abc'::varchar(10)) = bloom_hash('abc'::text) AS "varchar(10)",
	bloom_hash('abc'::char(10)) = bloom_hash('abc'::text) AS "char(10)", bloom_hash('abc'::name) = bloom_hash('abc'::text) AS name,
	bloom_hash('abc') = bloom_hash('abc'::text) AS literal,
	bloom_hash('  '::char(5)) = bloom_hash('') AS blanks,
	bloom_hash('abc  '::text) <> bloom_hash('abc') AS "text keeps blanks", bloom_hash('abc  '::varchar) = bloom_hash('abc  ') AS "varchar keeps blanks",
	bloom_hash('é '::char(7)) = bloom_hash('é') AS "2 bytes";
-- float
SELECT bloom_hash(1.5::float4) = bloom_hash(1.5::float8) AS widths,
	bloom_hash('-0'::float8) = bloom_hash(0::float8) AND bloom_hash('-0'::float4) = bloom_hash(0::float4) AS "-0",
	bloom_hash('NaN'::float4) = bloom_hash('NaN'::float8) AS nan,
	bloom_hash('inf'::float4) = bloom_hash('inf'::float8) AS inf,
	-- as in PostgreSQL, where 0.1::float4 is not 0.1::float8
	bloom_hash(0.1::float4) = bloom_hash(0.1::float8) AS "0.1", bloom_hash(0.1::float4) = bloom_hash(0.1::float4::float8) AS "0.1 widened";
-- what other ways of reckoning make of a NaN
SELECT bloom_hash('inf'::float8 - 'inf'::float8) = bloom_hash('NaN'::float8) AS inf_inf, bloom_hash(-'NaN'::float8) = bloom_hash('NaN'::float8) AS minus_nan;
-- one instant, whatever the zone that it is written or read in
SET timezone = 'Asia/Kolkata';
SELECT bloom_hash(timestamptz '2026-01-01 05:30+05:30') AS kolkata, bloom_hash('2026-01-01 05:30'::timestamptz) AS local \gset
SET timezone = 'America/New_York';
SELECT bloom_hash(timestamptz '2026-01-01 00:00Z') = :'kolkata' AS same, :'kolkata' = :'local' AS same;
SELECT bloom_hash(timestamp '2026-01-01 00:00') = bloom_hash(timestamptz '2026-01-01 00:00Z') AS "timestamp is UTC";
SET datestyle = 'German';
SELECT bloom_hash(date '1.2.2026') = bloom_hash(date '2026-02-01') AS style;
RESET datestyle;
RESET timezone;

-- long values, in place, compressed and out of line
CREATE TEMP TABLE long (id int, t text, b bytea);
ALTER TABLE long ALTER t SET STORAGE extended;
INSERT INTO long SELECT n, repeat('é', n), convert_to(repeat('é', n), 'UTF8') FROM unnest('{1,60,63,64,126,127,1000,5000,500000}'::int[]) n;
INSERT INTO long SELECT 20000, t, convert_to(t, 'UTF8') FROM (SELECT string_agg(md5(i::text), '') AS t FROM generate_series(1, 20000) i) s;
SELECT id, pg_column_size(t) < octet_length(t) AS compressed, bloom_hash(t) = bloom_hash(repeat('é', id)) AS text, bloom_hash(b) = bloom_hash(t) AS bytea,
	bloom_hash(t, 'blake2b', 'k') = bloom_hash(convert_to(t, 'UTF8'), 'blake2b', 'k') AS keyed
FROM long WHERE id <> 20000 ORDER BY id;
SELECT bloom_hash(t) = bloom_hash(b) FROM long WHERE id = 20000;
SELECT bool_and(bloom_agg @> t) AS found, count(*) FROM long, (SELECT bloom_agg(t, 100) FROM long) f;
-- parts of rows: values at any alignment
SELECT bool_and(f @> t AND g @> b) FROM (SELECT bloom_agg(t, 100) AS f, bloom_agg(b, 100) AS g FROM long) s, (SELECT false AS pad, substr(t, 1) AS t, b FROM long OFFSET 0) l;

-- domains count as their base type
CREATE DOMAIN element_code AS varchar(20) CHECK (value <> 'x');
CREATE DOMAIN element_padded AS char(10);
CREATE DOMAIN element_id AS int8;
CREATE DOMAIN element_deep AS element_id;
SELECT bloom_hash('abc'::element_code) = bloom_hash('abc') AS code, bloom_hash('abc'::element_padded) = bloom_hash('abc') AS padded,
	bloom_hash(7::element_id) = bloom_hash(7) AS id, bloom_hash(7::element_deep) = bloom_hash(7) AS deep;
SELECT element FROM bloom_info(bloom_add(bloomfilter(10), 7::element_deep));
SELECT bloom_add(bloomfilter(10), 7) @> 7::element_deep AS "@>", 7::element_id <@ bloom_add(bloomfilter(10), 7) AS "<@",
	bloom_contains_all(bloom_add(bloomfilter(10), 'abc'), '{abc}'::element_code[]) AS array;

-- a filter knows what it holds
CREATE TEMP TABLE kinds AS SELECT * FROM (VALUES
	('integer', bloom_add(bloomfilter(10), 1)),
	('text', bloom_add(bloomfilter(10), '1')),
	('float', bloom_add(bloomfilter(10), 1::float8)),
	('bytea', bloom_add(bloomfilter(10), '\x31'::bytea)),
	('uuid', bloom_add(bloomfilter(10), 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid)),
	('boolean', bloom_add(bloomfilter(10), true)),
	('date', bloom_add(bloomfilter(10), date '2000-01-02')),
	('time', bloom_add(bloomfilter(10), time '00:00:01')),
	('timestamp', bloom_add(bloomfilter(10), timestamp '2000-01-01')),
	('timestamptz', bloom_add(bloomfilter(10), timestamptz '2000-01-01'))) v(kind, f);
SELECT bool_and((bloom_info(f)).element = kind) AS info FROM kinds;
-- of every pair, only the same kind is answered
CREATE FUNCTION pg_temp.state(query text, f bloomfilter) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE query USING f;
	RETURN 'ok';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;
SELECT kind, value, state, count(*) AS calls
FROM kinds, unnest('{1,1::int2,1::int8,1::oid,''1'',''1''::text,''1''::varchar,''1''::bpchar,''1''::name,1::float4,1::float8,
		''\\x31''::bytea,''a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11''::uuid,true,''2000-01-02''::date,''00:00:01''::time,
		''2000-01-01''::timestamp,''2000-01-01''::timestamptz}'::text[]) value,
	unnest('{$1 @> %s,%s <@ $1,"bloom_contains($1, %s)","bloom_add($1, %s)","bloom_add_all($1, ARRAY[%s])",
		"bloom_contains_any($1, ARRAY[%s])","bloom_contains_all($1, ARRAY[%s])","bloom_contains_each($1, ARRAY[%s])",
		"bloom_agg(x, $1) FROM (SELECT %s) v(x)"}'::text[]) call,
	pg_temp.state('SELECT ' || format(call, value), f)
WHERE state = 'ok'
GROUP BY kind, value, state ORDER BY kind COLLATE "C", value COLLATE "C";
SELECT state, count(*)
FROM kinds, unnest('{1,''1''::text,1::float8,''\\x31''::bytea,true,''2000-01-02''::date,''2000-01-01''::timestamp}'::text[]) value,
	pg_temp.state('SELECT $1 @> ' || value, f)
GROUP BY state ORDER BY state COLLATE "C";
SELECT state, count(*)
FROM kinds a, kinds b, pg_temp.state(format('SELECT %L::bloomfilter | $1', a.f), b.f)
GROUP BY state, a.kind = b.kind ORDER BY state;

-- errors say which cast helps
SELECT f @> 'x' FROM kinds WHERE kind = 'uuid';
SELECT f @> 'x'::text FROM kinds WHERE kind = 'uuid';
SELECT f @> '1' FROM kinds WHERE kind = 'integer';
SELECT f @> 1.0::float8 FROM kinds WHERE kind = 'integer';
SELECT f @> 1 FROM kinds WHERE kind = 'text';
SELECT 1 <@ f FROM kinds WHERE kind = 'text';
SELECT f @> 1 FROM kinds WHERE kind = 'float';
SELECT f @> '2026-01-01' FROM kinds WHERE kind = 'date';
SELECT f @> now()::timestamp FROM kinds WHERE kind = 'timestamptz';
SELECT f @> current_date FROM kinds WHERE kind = 'timestamp';
SELECT f @> 'a'::element_code FROM kinds WHERE kind = 'bytea';
SELECT bloom_contains(f, 'true') FROM kinds WHERE kind = 'boolean';
SELECT bloom_contains_any(f, '{1}'::text[]) FROM kinds WHERE kind = 'integer';
SELECT bloom_contains_all(f, '{1}'::text[]) FROM kinds WHERE kind = 'integer';
SELECT bloom_contains_each(f, '{1}'::text[]) FROM kinds WHERE kind = 'integer';
SELECT bloom_add(f, '1') FROM kinds WHERE kind = 'integer';
SELECT bloom_add_all(f, '{1}'::text[]) FROM kinds WHERE kind = 'integer';
SELECT bloom_agg(x, f) FROM kinds, (VALUES ('1')) v(x) WHERE kind = 'integer' GROUP BY kind;
-- an empty filter is of no kind yet
SELECT bloomfilter(10) @> 1 AS "1", bloomfilter(10) @> 'x' AS "x", bloomfilter(10) @> true AS "true";
SELECT (bloom_info(bloom_add(bloom_clear(f), 'x'))).element FROM kinds WHERE kind = 'uuid';

-- a type without a hash function
SELECT bloom_hash('(0,0)'::point);
SELECT bloom_agg(x, 10) FROM (VALUES ('(0,0)'::point)) v(x);
SELECT bloomfilter(10) @> '(1,2)'::point;

DROP DOMAIN element_code, element_padded, element_deep, element_id;
