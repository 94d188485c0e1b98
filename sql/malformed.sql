-- Bytes that are no filter, by every way in: an error, never a crash or a
-- wrong answer.
\getenv builddir PG_ABS_BUILDDIR

-- what becomes of an image: by cast and by text input, as SQLSTATEs
CREATE FUNCTION pg_temp.cast_state(image bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
BEGIN
	f := image::bloomfilter;
	-- what is let in must be harmless, and come out as it went in
	PERFORM bloom_info(f), bloom_cardinality(f), bloom_expected_fpr(f), f | f, f & f, bloomfilter_hash(f);
	RETURN CASE WHEN f::bytea = image THEN 'same' ELSE 'changed' END;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;

CREATE FUNCTION pg_temp.text_state(image bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
BEGIN
	f := replace(encode(image, 'base64'), E'\n', '')::bloomfilter;
	RETURN CASE WHEN f::bytea = image THEN 'same' ELSE 'changed' END;
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE;
END $$;

CREATE FUNCTION pg_temp.message(image bytea) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
	detail text;
BEGIN
	f := image::bloomfilter;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || detail;
END $$;

-- overwrite bytes from an offset on
CREATE FUNCTION pg_temp.put(image bytea, at int, patch bytea) RETURNS bytea IMMUTABLE LANGUAGE sql
RETURN overlay(image PLACING patch FROM at + 1);

CREATE TEMP TABLE images AS
SELECT name, f::bytea AS image FROM (VALUES
	('blocked', bloom_add(bloomfilter(10), 1)),
	('standard', bloom_add(bloomfilter(10, layout => 'standard'), 'one'::text)),
	('keyed', bloom_add(bloomfilter(3, hash => 'blake2b', key => 'secret', layout => 'standard'), 1.5::float8)),
	('empty', bloomfilter(10)),
	('unsized', bloomfilter())) v(name, f);
SELECT name, octet_length(image) FROM images ORDER BY name;
SELECT name, pg_temp.cast_state(image), pg_temp.text_state(image) FROM images ORDER BY name;

-- truncated at every length
SELECT name, pg_temp.cast_state(substr(image, 1, n)), pg_temp.text_state(substr(image, 1, n)), count(*)
FROM images, generate_series(0, octet_length(image) - 1) n
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- with more behind it
SELECT name, pg_temp.cast_state(image || more), pg_temp.text_state(image || more), count(*)
FROM images, unnest('{"\\x00", "\\xff"}'::bytea[] || decode(repeat('00', 64), 'hex') || decode(repeat('00', 4096), 'hex')) more
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- two images in one
SELECT pg_temp.cast_state(image || image), count(*) FROM images GROUP BY 1;

-- without its start
SELECT pg_temp.cast_state(substr(image, n)), count(*) FROM images, generate_series(2, octet_length(image)) n GROUP BY 1;

-- every bit flipped in turn
CREATE TEMP TABLE flipped AS
SELECT name, n / 8 AS at, set_bit(image, n, 1 - get_bit(image, n)) AS image
FROM images, generate_series(0, octet_length(image) * 8 - 1) n;
CREATE FUNCTION pg_temp.field(at int) RETURNS text IMMUTABLE LANGUAGE sql
RETURN CASE
	WHEN at < 2 THEN '00 magic' WHEN at = 2 THEN '02 version' WHEN at = 3 THEN '03 layout'
	WHEN at = 4 THEN '04 hash' WHEN at = 5 THEN '05 hashes' WHEN at < 8 THEN '06 header size'
	WHEN at = 8 THEN '08 key length' WHEN at = 9 THEN '09 element kind' WHEN at < 12 THEN '10 kind name length'
	WHEN at < 20 THEN '12 bits' WHEN at < 28 THEN '20 capacity' WHEN at < 36 THEN '28 fpr'
	WHEN at < 44 THEN '36 bits set' WHEN at = 44 THEN '44 flags' WHEN at < 48 THEN '45 reserved'
	WHEN at < 56 THEN '48 checksum' WHEN at < 60 THEN '56 header''s checksum' ELSE '60 key, payload' END;
SELECT pg_temp.field(at), pg_temp.cast_state(image), pg_temp.text_state(image), count(*)
FROM flipped WHERE name = 'blocked'
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;
SELECT name, pg_temp.cast_state(image), pg_temp.text_state(image), count(*)
FROM flipped
GROUP BY 1, 2, 3 ORDER BY 1, 2, 3;

-- every byte of a small image set to every value
SELECT pg_temp.field(at), pg_temp.cast_state(set_byte(image, at, v)), count(*)
FROM images, generate_series(0, 59) at, generate_series(0, 255) v
WHERE name = 'unsized' AND get_byte(image, at) <> v
GROUP BY 1, 2 ORDER BY 1, 2;

-- contradictory
SELECT what, pg_temp.message(CASE what
	WHEN 'magic' THEN pg_temp.put(image, 0, 'PF')
	WHEN 'later version' THEN pg_temp.put(image, 2, '\x02')
	WHEN 'layout unknown' THEN pg_temp.put(image, 3, '\x09')
	WHEN 'hash unknown' THEN pg_temp.put(image, 4, '\x03')
	WHEN 'no hashes' THEN pg_temp.put(image, 5, '\x00')
	WHEN 'too many hashes' THEN pg_temp.put(image, 5, '\x11')
	WHEN 'header size' THEN pg_temp.put(image, 6, '\x7c00')
	WHEN 'key too long' THEN pg_temp.put(image, 8, '\x21')
	WHEN 'key with xxh3' THEN pg_temp.put(pg_temp.put(keyed, 4, '\x01'), 3, '\x01')
	WHEN 'no element kind' THEN pg_temp.put(image, 9, '\x00')
	WHEN 'element kind unknown' THEN pg_temp.put(image, 9, '\xff')
	WHEN 'element kind named' THEN pg_temp.put(pg_temp.put(image, 10, '\x4000'), 6, '\x7c00')
	WHEN 'kind name too long' THEN pg_temp.put(image, 10, '\xffff')
	WHEN 'more bits' THEN pg_temp.put(image, 12, '\x0004000000000000')
	WHEN 'bits past the limit' THEN pg_temp.put(image, 12, '\x0002000001000000')
	WHEN 'bits no multiple' THEN pg_temp.put(image, 12, '\x0102000000000000')
	WHEN 'no bits' THEN pg_temp.put(image, 12, '\x0000000000000000')
	WHEN 'no capacity' THEN pg_temp.put(image, 20, '\x0000000000000000')
	WHEN 'capacity too large' THEN pg_temp.put(image, 20, '\x0000000000000080')
	WHEN 'fpr 0' THEN pg_temp.put(image, 28, '\x0000000000000000')
	WHEN 'fpr 1' THEN pg_temp.put(image, 28, '\x000000000000f03f')
	WHEN 'fpr NaN' THEN pg_temp.put(image, 28, '\x000000000000f87f')
	WHEN 'fpr negative' THEN pg_temp.put(image, 28, '\x7b14ae47e17a84bf')
	WHEN 'bits set less' THEN pg_temp.put(image, 36, '\x0600000000000000')
	WHEN 'bits set too many' THEN pg_temp.put(image, 36, '\x0102000000000000')
	WHEN 'bits set 0' THEN pg_temp.put(image, 36, '\x0000000000000000')
	WHEN 'flags unknown' THEN pg_temp.put(image, 44, '\x80')
	WHEN 'reserved' THEN pg_temp.put(image, 45, '\x01')
	WHEN 'header''s checksum' THEN pg_temp.put(image, 56, '\x00000000')
	WHEN 'other k' THEN pg_temp.put(image, 5, '\x06')
	WHEN 'other kind' THEN pg_temp.put(image, 9, '\x02')
	WHEN 'other key' THEN pg_temp.put(keyed, 60, 'Secret')
	WHEN 'other capacity' THEN pg_temp.put(image, 20, '\x0b')
	WHEN 'other fpr' THEN pg_temp.put(image, 28, '\x7c')
	WHEN 'checksum' THEN pg_temp.put(image, 48, '\x0000000000000000')
	WHEN 'bit more' THEN pg_temp.put(image, 123, '\xff')
	-- the number of bits set stays right
	WHEN 'another bit' THEN pg_temp.put(image, 60, substr(image, 61 + 32, 32) || substr(image, 61, 32))
	WHEN 'payload of zeros' THEN pg_temp.put(pg_temp.put(image, 60, decode(repeat('00', 64), 'hex')), 36, '\x0000000000000000')
	-- 64 bytes that claim 512 MiB: nothing is allocated for them
	WHEN 'empty with 2^32 bits' THEN pg_temp.put(empty, 12, '\x0000000001000000')
	WHEN 'claims 2^32 bits' THEN pg_temp.put(pg_temp.put(pg_temp.put(empty, 12, '\x0000000001000000'), 36, '\x0700000000000000'), 9, '\x01')
	WHEN 'empty of a kind' THEN pg_temp.put(empty, 9, '\x01')
	WHEN 'empty with checksum' THEN pg_temp.put(empty, 48, '\x01')
	WHEN 'empty with bits set' THEN pg_temp.put(empty, 36, '\x01')
	WHEN 'unsized with hashes' THEN pg_temp.put(unsized, 5, '\x07')
	WHEN 'unsized with capacity' THEN pg_temp.put(unsized, 20, '\x0a')
	WHEN 'unsized with bits set' THEN pg_temp.put(unsized, 36, '\x01')
	END)
FROM (SELECT (SELECT i.image FROM images i WHERE name = 'blocked') AS image,
		(SELECT i.image FROM images i WHERE name = 'keyed') AS keyed,
		(SELECT i.image FROM images i WHERE name = 'empty') AS empty,
		(SELECT i.image FROM images i WHERE name = 'unsized') AS unsized) s,
	unnest('{magic,later version,layout unknown,hash unknown,no hashes,too many hashes,header size,key too long,
		key with xxh3,no element kind,element kind unknown,element kind named,kind name too long,more bits,
		bits past the limit,bits no multiple,no bits,no capacity,capacity too large,fpr 0,fpr 1,fpr NaN,fpr negative,
		bits set less,bits set too many,bits set 0,flags unknown,reserved,header''s checksum,other k,other kind,other key,other capacity,other fpr,checksum,bit more,another bit,payload of zeros,
		empty with 2^32 bits,claims 2^32 bits,empty of a kind,empty with checksum,empty with bits set,
		unsized with hashes,unsized with capacity,unsized with bits set}'::text[]) WITH ORDINALITY w(what, o)
ORDER BY o;

-- noise
SELECT pg_temp.cast_state(noise), count(*)
FROM (SELECT substr(string_agg(decode(md5(n::text || i), 'hex'), ''), 1, n) AS noise
	FROM generate_series(0, 300) n, generate_series(0, 20) i GROUP BY n) s
GROUP BY 1;
-- behind a good header
SELECT pg_temp.cast_state(substr(image, 1, 60) || decode(md5(n::text) || md5(n || 'x') || md5(n || 'y') || md5(n || 'z'), 'hex')), count(*)
FROM images, generate_series(1, 200) n WHERE name = 'blocked'
GROUP BY 1;

-- line breaks and blanks may be anywhere
SELECT E' QkYBAgEAPAAAAAAAAAAAAAAAAAAAAAAA\nAAAAAHsUrkfheoQ/AAAAAAAA\r\nAAAAAAAAAAAAAAAAAACW\tS7EC\n'::bloomfilter = bloomfilter();
SELECT E' \n'::bloomfilter;
-- of all lengths modulo 3 and 8, both ways as the server's own functions
CREATE TEMP TABLE texts AS
SELECT n, f, replace(encode(f::bytea, 'base64'), E'\n', '') AS text
FROM (SELECT n, bloom_agg(i, n * 50.0) AS f FROM generate_series(1, 8) n, generate_series(1, 400) i WHERE i <= n * 50 GROUP BY n) s;
SELECT count(*), count(DISTINCT octet_length(f::bytea) % 3), count(DISTINCT length(text) / 4 % 2),
	bool_and(f::text = text), bool_and(text::bloomfilter = f) FROM texts;
-- with a blank or a line break at any place, or behind every character
SELECT bool_and(overlay(text PLACING blank FROM i FOR 0)::bloomfilter = f), count(*)
FROM texts, unnest(ARRAY[' ', E'\t\n', E'\r\n']) blank, generate_series(1, length(text) + 1) i WHERE n IN (1, 2, 3);
SELECT bool_and(regexp_replace(text, '(.)', E'\\1\n', 'g')::bloomfilter = f) FROM texts;
-- with a character at any place that is none of base64's; too few, too many
CREATE FUNCTION pg_temp.base64_state(text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
	f bloomfilter;
	detail text;
BEGIN
	f := $1::bloomfilter;
	RETURN 'no error';
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
	RETURN SQLSTATE || ' ' || detail;
END $$;
SELECT pg_temp.base64_state(overlay(text PLACING c FROM i FOR 1)), count(*)
FROM texts, unnest(ARRAY['=', '*', '-', '_', '.', '@', '[', '`', '{', E'\x01', E'\x7f', chr(233)]) c, generate_series(1, length(text)) i
WHERE n IN (1, 2, 3) AND NOT (c = '=' AND substr(text, i) ~ '^[^=]?=*$') GROUP BY 1;
SELECT n, tail, pg_temp.base64_state(rtrim(text, '=') || tail)
FROM texts, unnest(ARRAY['', '=', '==', '===', '====', 'A', 'AA', '=A', '= =', E'=\n', '==A', '== QUJD']) tail
WHERE n IN (1, 2, 3) ORDER BY octet_length(f::bytea) % 3, tail COLLATE "C";
-- what one reads
SELECT ''::bloomfilter;
SELECT (encode(image, 'base64') || 'AAAA')::bloomfilter IS NULL FROM images WHERE name = 'standard';	-- behind the padding
SELECT 'hello'::bloomfilter;
SELECT '1000'::bloomfilter;
SELECT bloomfilter('1000');
SELECT 'QkYB'::bloomfilter;
SELECT 'QkYBAgEAPAAAAAAAAAAAAAAAAAAAAAAAAAAAAHsUrkfheoQ/AAAAAAAAAAAAAAAAAAAAAAAAAACWS7E*'::bloomfilter;
SELECT '\x4246'::bytea::bloomfilter;
SELECT pg_temp.put(bloomfilter()::bytea, 2, '\x02')::bloomfilter;

-- COPY
CREATE TEMP TABLE filters (f bloomfilter);
\set VERBOSITY sqlstate
COPY filters FROM stdin;
QkYBAgEAPAAA
\.
COPY filters FROM stdin;

\.
COPY filters FROM stdin;
QkYBAgEAPAAAAAAAAAAAAAAAAAAAAAAAAAAAAHsUrkfheoQ/AAAAAAAAAAAAAAAAAAAAAAAAAACWS7ECAAAA
\.
COPY filters FROM stdin;
QkYCAgEAPAAAAAAAAAAAAAAAAAAAAAAAAAAAAHsUrkfheoQ/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA
\.
-- a bytea in binary form is its bytes: that is how they get to receive
\cd :builddir
\copy (SELECT image FROM images ORDER BY name) TO 'results/malformed.data' (FORMAT binary)
\copy filters FROM 'results/malformed.data' (FORMAT binary)
\copy (SELECT substr(image, 1, 123) FROM images WHERE name = 'blocked') TO 'results/malformed.data' (FORMAT binary)
\copy filters FROM 'results/malformed.data' (FORMAT binary)
\copy (SELECT ''::bytea) TO 'results/malformed.data' (FORMAT binary)
\copy filters FROM 'results/malformed.data' (FORMAT binary)
\copy (SELECT image || '\x00' FROM images WHERE name = 'blocked') TO 'results/malformed.data' (FORMAT binary)
\copy filters FROM 'results/malformed.data' (FORMAT binary)
\copy (SELECT pg_temp.put(image, 100, '\xff') FROM images WHERE name = 'blocked') TO 'results/malformed.data' (FORMAT binary)
\copy filters FROM 'results/malformed.data' (FORMAT binary)
\copy (SELECT pg_temp.put(image, 2, '\xff') FROM images WHERE name = 'blocked') TO 'results/malformed.data' (FORMAT binary)
\copy filters FROM 'results/malformed.data' (FORMAT binary)
\set VERBOSITY default
SELECT name, count(*) FROM filters JOIN images ON f::bytea = image GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM filters;
