-- The constructor, the arithmetic of sizes, and digests.
SET extra_float_digits = 0;

CREATE FUNCTION pg_temp.info(f bloomfilter) RETURNS text LANGUAGE sql AS $$
	SELECT format('%s %s%s n=%s p=%s m=%s k=%s', layout, hash, CASE WHEN keyed THEN ' keyed' END, capacity, target_fpr, bits, hashes)
	FROM bloom_info(f)
$$;

SELECT pg_temp.info(bloomfilter());
SELECT pg_temp.info(bloomfilter(1000000));
SELECT pg_temp.info(bloomfilter(1e6, 0.001));
SELECT pg_temp.info(bloomfilter(1000, 0.001, 'standard', 'blake2b', 'secret'));
SELECT pg_temp.info(bloomfilter(capacity => 1000, fpr => 0.001, layout => 'standard', hash => 'blake2b', key => 'secret', expansion => 0, hashes => 5));
SELECT pg_temp.info(bloomfilter(fpr => 0.001));
SELECT pg_temp.info(bloomfilter(layout => 'standard', hashes => 5));
SELECT pg_temp.info(bloomfilter(1));
-- NULL is an argument's default
SELECT bloomfilter(NULL::float8, NULL, NULL, NULL, NULL, NULL, NULL) = bloomfilter();
SELECT bloomfilter(100, NULL, NULL, NULL, NULL, NULL, NULL) = bloomfilter(100);
SELECT bloomfilter(NULL, 0.01) = bloomfilter();
SELECT bloomfilter(NULL);
-- a variable
PREPARE sized AS SELECT pg_temp.info(bloomfilter($1));
EXECUTE sized(1000);
EXECUTE sized('1000');
PREPARE sized_int(int) AS SELECT pg_temp.info(bloomfilter($1));
EXECUTE sized_int(1000);
SELECT pg_temp.info(bloomfilter(count(*))) FROM generate_series(1, 1000);

-- parameters out of range
SELECT bloomfilter(0);
SELECT bloomfilter(-1);
SELECT bloomfilter(1.5);
SELECT bloomfilter(0.01);
SELECT bloomfilter('NaN'::float8);
SELECT bloomfilter('Infinity'::float8);
SELECT bloomfilter('-Infinity'::float8);
SELECT bloomfilter(1e16);
SELECT bloomfilter(1000, 0);
SELECT bloomfilter(1000, -0.01);
SELECT bloomfilter(1000, 1);
SELECT bloomfilter(1000, 2);
SELECT bloomfilter(1000, 5);
SELECT bloomfilter(1000, 101);
SELECT bloomfilter(1000, 'NaN');
SELECT bloomfilter(1000, 'Infinity');
SELECT bloomfilter(1000, 1e-9);
SELECT bloomfilter(1000, 1e-9, 'standard');
SELECT bloomfilter(fpr => 1e-9);
SELECT bloomfilter(1000, layout => 'bitmap');
SELECT bloomfilter(1000, layout => '');
SELECT bloomfilter(1000, layout => 'scalable');
SELECT bloomfilter(1000, hash => 'md5');
SELECT bloomfilter(1000, key => 'secret');
SELECT bloomfilter(1000, hash => 'blake2b', key => '');
SELECT bloomfilter(1000, hash => 'blake2b', key => decode(repeat('aa', 33), 'hex'));
SELECT (bloom_info(bloomfilter(1000, hash => 'blake2b', key => decode(repeat('aa', 32), 'hex')))).keyed;
SELECT bloomfilter(1000, hashes => 0);
SELECT bloomfilter(1000, hashes => -1);
SELECT bloomfilter(1000, hashes => 17);
SELECT bloomfilter(1000, layout => 'standard', hashes => 65);
SELECT (bloom_info(bloomfilter(1000, layout => 'standard', hashes => 64))).hashes;
SELECT (bloom_info(bloomfilter(1000, hashes => 16))).hashes;
SELECT bloomfilter(1000, expansion => 2);
SELECT bloomfilter(1000, expansion => -1);
SELECT bloomfilter('1000', 0.01) IS NOT NULL;
SELECT bloomfilter('abc');

-- too large: the size needed and the limit, never a worse filter
SELECT bloomfilter(1e9);
SELECT bloomfilter(1e9, layout => 'standard');
SELECT bloomfilter(9007199254740992);
SELECT bloomfilter(9007199254740992, 1e-6, 'standard');
-- the hint's number fits, the next does not
SELECT pg_temp.info(bloomfilter(433048240));
SELECT bloomfilter(433048241);
SELECT pg_temp.info(bloomfilter(bloom_capacity(512 * 1024 * 1024 + 64, 0.01, 'standard'), layout => 'standard'));
SELECT bloomfilter(bloom_capacity(512 * 1024 * 1024 + 64, 0.01, 'standard') + 1, layout => 'standard');

-- sizes: standard is the textbook's from n = 5000 on
SELECT n, p, s.*
FROM (VALUES (5000, 0.01), (1e6, 0.01), (1e6, 0.001), (1e7, 0.01), (1000, 0.0001)) v(n, p),
	LATERAL (SELECT layout, bits, hashes, bytes, round(bits_per_key::numeric, 3) AS bits_per_key,
		round(expected_fpr::numeric, 6) AS expected_fpr FROM bloom_sizing(n::float8, p::float8)) s
ORDER BY layout DESC, n, p;
SELECT count(*), bool_and(bits = 8 * ceil(ceil(-n * ln(p) / (ln(2::float8) ^ 2)) / 8)
	AND hashes = greatest(1, round(bits / n * ln(2::float8)))) AS textbook
FROM unnest('{5000,5001,12345,1e5,1e6,3e6,1e7,1e8}'::float8[]) n,
	unnest('{0.5,0.1,0.05,0.01,0.005,0.001}'::float8[]) p, bloom_sizing(n, p)
WHERE layout = 'standard';
-- small n
SELECT n, string_agg(format('%s/%s', bits, hashes), ' ' ORDER BY p DESC) FILTER (WHERE layout = 'standard') AS standard,
	string_agg(format('%s/%s', bits, hashes), ' ' ORDER BY p DESC) FILTER (WHERE layout = 'blocked') AS blocked
FROM unnest('{1,2,3,5,10,30,100,1000,4999}'::float8[]) n, unnest('{0.1,0.01,0.001,0.0001}'::float8[]) p, bloom_sizing(n, p)
GROUP BY n ORDER BY n;
-- every size is large enough: standard as far as the formula's k allows,
-- and but for what double hashing costs right where the formula takes over
SELECT layout, count(*), bool_and(expected_fpr <= CASE layout WHEN 'blocked' THEN p
	ELSE 1.016 * greatest(p, (1 - exp(-hashes * n / (8 * ceil(ceil(-n * ln(p) / (ln(2::float8) ^ 2)) / 8)))) ^ hashes) END) AS met
FROM unnest('{1,2,3,5,7,10,30,100,1000,5000,1e5,1e6,1e7}'::float8[]) n,
	unnest('{0.9,0.5,0.3,0.1,0.01,0.001,0.0001,1e-5,1e-6}'::float8[]) p, bloom_sizing(n, p)
GROUP BY layout ORDER BY layout;
-- blocked: within 3% of 9.896 and 15.49 bits a key
SELECT n, p, bits, hashes, round(bits_per_key::numeric, 3) AS bits_per_key,
	bits_per_key BETWEEN 0.97 * target AND 1.03 * target AS near
FROM unnest('{1e4,1e5,1e6,1e7}'::float8[]) n, (VALUES (0.01, 9.896), (0.001, 15.49)) v(p, target), bloom_sizing(n, p)
WHERE layout = 'blocked' ORDER BY p DESC, n;
-- the constructor agrees
SELECT bool_and(i.bits = s.bits AND i.hashes = s.hashes AND i.capacity = n)
FROM unnest('{1,3,10,1000,1e6}'::float8[]) n, unnest('{0.1,0.001}'::float8[]) p,
	bloom_sizing(n, p) s, bloom_info(bloomfilter(n, p, s.layout)) i;
-- bytes is what a filled filter takes
SELECT layout, bytes = pg_column_size(bloom_add(bloomfilter(1000, layout => layout), 1)) FROM bloom_sizing(1000);
SELECT * FROM bloom_sizing(0);
SELECT * FROM bloom_sizing(1.5);
SELECT * FROM bloom_sizing(0.01);
SELECT * FROM bloom_sizing(1000, 1);
SELECT * FROM bloom_sizing(1000, 1e-9);
SELECT * FROM bloom_sizing(1e10);
SELECT * FROM bloom_sizing(NULL);

-- more hashes or fewer, at the same size
SELECT k, bits, hashes, target_fpr, round((1 - exp(-k * 1e6 / bits)) ^ k * 100, 2) AS formula
FROM unnest('{3,7,14}'::int[]) k, bloom_info(bloomfilter(1e6, layout => 'standard', hashes => k));

-- bloom_capacity turns it round: so many fit, and not one more
SELECT bloom_capacity(1024 * 1024), bloom_capacity(1024 * 1024, 0.001), bloom_capacity(1024 * 1024, 0.01, 'standard');
SELECT layout, count(*),
	bool_and((SELECT s.bytes <= b FROM bloom_sizing(c, p) s WHERE s.layout = l.layout)) AS fits,
	bool_and((SELECT s.bytes > b FROM bloom_sizing(c + 1, p) s WHERE s.layout = l.layout)) AS full
FROM unnest('{blocked,standard}'::text[]) l(layout), unnest('{256,1000,8192,1e6,123456789}'::float8[]) b,
	unnest('{0.1,0.01,0.001}'::float8[]) p, bloom_capacity(b, p, layout) c
GROUP BY layout ORDER BY layout;
SELECT bloom_capacity(0), bloom_capacity(64), bloom_capacity(127), bloom_capacity(128);
SELECT bloom_capacity(1e18) = bloom_capacity(512 * 1024 * 1024 + 64) AS "limit", bloom_capacity('Infinity') = bloom_capacity(1e18);
SELECT bloom_capacity(-1);
SELECT bloom_capacity('NaN');
SELECT bloom_capacity(1000, 0);
SELECT bloom_capacity(1000, 0.01, 'bitmap');
SELECT bloom_capacity(NULL) IS NULL;

-- digests
SELECT bloom_hash('abc');
SELECT bloom_hash('abc', 'blake2b');
SELECT bloom_hash('abc', 'blake2b', 'secret');
SELECT bloom_hash(value => 'abc'::varchar, hash => 'blake2b', key => 'secret');
SELECT bloom_hash(42), bloom_hash(42, 'blake2b');
SELECT bloom_hash(NULL) IS NULL AS null, bloom_hash(NULL::int, 'md5') IS NULL;
SELECT bloom_hash('abc', NULL, NULL) = bloom_hash('abc') AS defaults;
SELECT bloom_hash('abc', 'md5');
SELECT bloom_hash('abc', 'xxh3', 'secret');
SELECT bloom_hash('abc', 'blake2b', '');
SELECT bloom_hash('abc', key => 'secret');
-- standard + blake2b is what any textbook does
SELECT bool_and(get_bit(substr(f::bytea, 61), ((h1 + i * h2) % (bloom_info(f)).bits)::int) = 1) AS same,
	count(DISTINCT (h1 + i * h2) % (bloom_info(f)).bits) AS positions, max((bloom_info(f)).bits_set) AS bits_set
FROM (SELECT bloom_add(bloomfilter(10, layout => 'standard', hash => 'blake2b'), 'abc') AS f) s, generate_series(0, 6) i,
	LATERAL (SELECT sum(get_byte(d, j) * 256::numeric ^ j) AS h1,
		sum((get_byte(d, 8 + j) | (j = 0)::int) * 256::numeric ^ j) AS h2
	FROM bloom_hash('abc', 'blake2b') d, generate_series(0, 7) j) h;
