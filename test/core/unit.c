/*-------------------------------------------------------------------------
 *
 * unit.c
 *	  Unit tests of the core alone, under cmocka.
 *
 * Built with every file of core/, -Icore, -lcmocka -lb2 -lm, and meant to run
 * under the address and undefined-behaviour sanitizers: images are given in
 * memory of exactly their length, so that a byte read outside is caught.
 * Everything is deterministic.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "bf.h"
#include "bytes.h"
#include "words.h"

typedef struct GoldenSize
{
	double		n;
	double		p;
	uint64_t	nbits;
	uint32_t	nhashes;
	double		rate;
} GoldenSize;

typedef struct GoldenDigest
{
	int			len;
	int			keylen;			/* -1: XXH3 */
	const char *hex;
} GoldenDigest;

typedef struct GoldenString
{
	const char *string;
	int			len;
	const char *xxh3;
	const char *blake2b;
} GoldenString;

#include "golden.h"

#define lengthof(a) (sizeof(a) / sizeof((a)[0]))
#define VALUE_HEADER 64			/* a PostgreSQL value's: length word included */

static const BfLayout *const both[] = {&bf_layout_standard, &bf_layout_blocked};

/* ------------------------------------------------------------------------
 * Tools
 * ------------------------------------------------------------------------
 */

/* splitmix64: Steele, Lea and Flood, OOPSLA 2014 */
static uint64_t
mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static uint64_t rng_state;

static uint64_t
rng(void)
{
	return mix(rng_state += UINT64_C(0x9E3779B97F4A7C15));
}

static BfDigest
random_digest(void)
{
	BfDigest	d;

	d.h1 = rng();
	d.h2 = rng();
	return d;
}

/* The digest of element i of set number seed. */
/* Returns by how much the number of bits set grew. */
static uint32_t
add_one(BfFilter *f, BfDigest digest)
{
	uint64_t	before = f->h.nset;
	BfError		err;

	assert_int_equal(bf_add(f, digest, &err), BF_OK);
	return (uint32_t) (f->h.nset - before);
}

static void
unite(BfFilter *into, const BfFilter *from)
{
	BfError		err;

	assert_int_equal(bf_unite(into, from, &err), BF_OK);
}

static BfDigest
element(uint64_t seed, uint64_t i)
{
	BfDigest	d;

	d.h1 = mix(mix(seed * 2 + 1) + i * UINT64_C(0x9E3779B97F4A7C15));
	d.h2 = mix(d.h1 ^ mix(seed * 2 + 2));
	return d;
}

static uint8_t *
exact_copy(const uint8_t *bytes, size_t len)
{
	uint8_t    *copy = malloc(len);

	assert_non_null(copy);
	if (len > 0)
		memcpy(copy, bytes, len);
	return copy;
}

static void
to_hex(const uint8_t *bytes, size_t len, char *hex)
{
	for (size_t i = 0; i < len; i++)
		sprintf(hex + 2 * i, "%02x", bytes[i]);
}

static void
pattern(uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t) (i * 31 + 7);
}

/* An empty filter with room for its bits. */
static void
make(BfFilter *f, const BfLayout *layout, double n, double p, int k)
{
	BfError		err;

	assert_int_equal(bf_header_init(&f->h, layout, BF_HASH_XXH3, NULL, 0,
									n, p, k, &err), BF_OK);
	f->nbytes = bf_payload_size(&f->h);
	f->bits = calloc(1, f->nbytes);
	assert_non_null(f->bits);
}

static void
fill(BfFilter *f, uint64_t seed, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		add_one(f, element(seed, i));
}

static void
wipe(BfFilter *f)
{
	memset(f->bits, 0, f->nbytes);
	f->h.nset = 0;
}

/* The filter's image, in memory of exactly its length. */
static uint8_t *
image_of(BfFilter *f, size_t *len)
{
	uint8_t    *image;
	BfFilter	out = *f;

	if (out.h.nset == 0)
		out.bits = NULL;
	out.h.kind = out.h.nset > 0 ? BF_KIND_TEXT : BF_KIND_NONE;
	bf_seal(&out);
	*len = bf_image_size(&out.h);
	image = malloc(*len);
	assert_non_null(image);
	bf_write_header(&out.h, image);
	if (out.bits != NULL)
		memcpy(image + bf_header_size(&out.h), out.bits, out.nbytes);
	return image;
}

/* Bytes that end where memory that must not be touched begins. */
typedef struct Guarded
{
	uint8_t    *map;
	size_t		mapped;
	size_t		page;
	uint8_t    *bytes;
} Guarded;

static void
guarded_map(Guarded *g, size_t len)
{
	g->page = (size_t) sysconf(_SC_PAGESIZE);
	g->mapped = (len + g->page - 1) / g->page * g->page + 2 * g->page;
	g->map = mmap(NULL, g->mapped, PROT_NONE,
				  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(g->map != MAP_FAILED);
	assert_int_equal(mprotect(g->map + g->page, g->mapped - 2 * g->page,
							  PROT_READ | PROT_WRITE), 0);
	g->bytes = g->map + g->mapped - g->page - len;
}

static void
guarded_unmap(Guarded *g)
{
	munmap(g->map, g->mapped);
}

/* Positions, written down once more from the format's specification. */
static void
reference_positions(const BfLayout *layout, const BfShape *shape, BfDigest d,
					uint64_t *pos)
{
	if (layout == &bf_layout_standard)
	{
		for (uint32_t i = 0; i < shape->nhashes; i++)
			pos[i] = (uint64_t) (((unsigned __int128) d.h1 +
								  (unsigned __int128) i * (d.h2 | 1)) %
								 shape->nbits);
	}
	else
	{
		uint64_t	nblocks = shape->nbits / 512;
		uint64_t	block = (uint64_t) ((unsigned __int128) (d.h1 >> 32) *
										nblocks >> 32);
		uint64_t	mixed = d.h1 ^ ((d.h2 << 32) | (d.h2 >> 32));

		mixed *= UINT64_C(0x9E3779B97F4A7C15);
		mixed ^= mixed >> 32;
		for (uint32_t i = 0; i < shape->nhashes; i++)
		{
			uint64_t	piece;

			if (i < 7)
				piece = d.h2 >> (9 * i);
			else if (i < 10)
				piece = d.h1 >> (9 * (i - 7));
			else
				piece = mixed >> (9 * (i - 10));
			pos[i] = block * 512 + piece % 512;
		}
	}
}

static bool
bit_is_set(const uint8_t *bits, uint64_t pos)
{
	return bits[pos / 8] & (1 << pos % 8);
}

/*
 * All that may be done with a filter from elsewhere: the sanitizers watch.
 */
static void
exercise(BfFilter *f)
{
	BfRange		ranges[BF_MAX_RANGES];
	volatile double sink = bf_cardinality(&f->h) + bf_expected_fpr(&f->h) +
		bf_design_fpr(&f->h);

	(void) sink;
	(void) bf_overfilled(&f->h);
	for (int i = 0; i < 20; i++)
	{
		BfDigest	d = random_digest();
		uint32_t	n;

		(void) bf_test(f, d);
		if (f->bits == NULL)
			continue;
		n = f->h.layout->ranges(&f->h.shape, d, ranges);
		assert_true(n >= 1 && n <= BF_MAX_RANGES);
		for (uint32_t r = 0; r < n; r++)
			assert_true(ranges[r].offset + ranges[r].length <= f->nbytes);
	}
}

/* ------------------------------------------------------------------------
 * Digests and names
 * ------------------------------------------------------------------------
 */
static void
check_digest(BfHash hash, const uint8_t *key, size_t keylen,
			 const void *data, size_t len, const char *expected)
{
	BfDigest	d = bf_digest(hash, key, keylen, data, len);
	uint8_t		bytes[BF_DIGEST_SIZE];
	char		hex[2 * BF_DIGEST_SIZE + 1];
	uint64_t	h1 = 0;
	uint64_t	h2 = 0;

	bf_digest_bytes(d, bytes);
	to_hex(bytes, sizeof(bytes), hex);
	assert_string_equal(hex, expected);
	for (int i = 7; i >= 0; i--)
	{
		h1 = h1 << 8 | bytes[i];
		h2 = h2 << 8 | bytes[8 + i];
	}
	assert_true(d.h1 == h1 && d.h2 == h2);
}

static void
test_digests(void **state)
{
	uint8_t		key[BF_MAX_KEY];

	(void) state;
	pattern(key, sizeof(key));
	for (size_t i = 0; i < lengthof(golden_digests); i++)
	{
		const GoldenDigest *g = &golden_digests[i];
		uint8_t    *data = malloc((size_t) g->len);
		uint8_t    *exact_key = exact_copy(key, (size_t) abs(g->keylen));

		pattern(data, (size_t) g->len);
		if (g->keylen < 0)
			check_digest(BF_HASH_XXH3, NULL, 0, data, (size_t) g->len, g->hex);
		else
			check_digest(BF_HASH_BLAKE2B, exact_key, (size_t) g->keylen,
						 data, (size_t) g->len, g->hex);
		free(exact_key);
		free(data);
	}
	for (size_t i = 0; i < lengthof(golden_strings); i++)
	{
		const GoldenString *g = &golden_strings[i];

		assert_int_equal(strlen(g->string), g->len);
		check_digest(BF_HASH_XXH3, NULL, 0, g->string, (size_t) g->len,
					 g->xxh3);
		check_digest(BF_HASH_BLAKE2B, NULL, 0, g->string, (size_t) g->len,
					 g->blake2b);
	}
	/* nothing, without memory */
	check_digest(BF_HASH_XXH3, NULL, 0, NULL, 0, golden_strings[0].xxh3);
	check_digest(BF_HASH_BLAKE2B, NULL, 0, NULL, 0, golden_strings[0].blake2b);
}

static void
test_names(void **state)
{
	unsigned	n = 0;
	BfHash		hash;

	(void) state;
	for (; bf_layout_at(n) != NULL; n++)
	{
		const BfLayout *layout = bf_layout_at(n);

		assert_ptr_equal(bf_layout_by_id(layout->id), layout);
		assert_ptr_equal(bf_layout_by_name(layout->name), layout);
		assert_true(layout->max_hashes <= BF_MAX_RANGES);
	}
	assert_true(n >= 2);
	assert_null(bf_layout_at(n + 1));
	assert_null(bf_layout_by_id(0));
	assert_null(bf_layout_by_id(255));
	assert_null(bf_layout_by_name("scalable"));
	assert_null(bf_layout_by_name(""));
	assert_ptr_equal(bf_layout_by_id(1), &bf_layout_standard);
	assert_ptr_equal(bf_layout_by_id(2), &bf_layout_blocked);

	assert_true(bf_hash_by_name("xxh3", &hash) && hash == 1);
	assert_true(bf_hash_by_name("blake2b", &hash) && hash == 2);
	assert_false(bf_hash_by_name("md5", &hash));
	assert_false(bf_hash_by_name("", &hash));
	assert_string_equal(bf_hash_name(BF_HASH_XXH3), "xxh3");
	assert_string_equal(bf_hash_name(BF_HASH_BLAKE2B), "blake2b");

	for (unsigned kind = 0; kind <= BF_KIND_TIMESTAMPTZ; kind++)
	{
		assert_non_null(bf_kind_name(kind));
		assert_true(bf_kind_is_valid(kind, "", 0));
		assert_false(bf_kind_is_valid(kind, "x", 1));
	}
	assert_null(bf_kind_name(255));
	assert_false(bf_kind_is_valid(255, "", 0));
}

/* ------------------------------------------------------------------------
 * Sizing
 * ------------------------------------------------------------------------
 */
static void
check_sizes(const BfLayout *layout, const GoldenSize *table, size_t len)
{
	for (size_t i = 0; i < len; i++)
	{
		const GoldenSize *g = &table[i];
		BfHeader	h;
		BfError		err;

		assert_int_equal(bf_header_init(&h, layout, BF_HASH_XXH3, NULL, 0,
										g->n, g->p, 0, &err), BF_OK);
		if (h.shape.nbits != g->nbits || h.shape.nhashes != g->nhashes)
			fail_msg("%s n = %g p = %g: m = %llu, k = %u, not %llu, %u",
					 layout->name, g->n, g->p,
					 (unsigned long long) h.shape.nbits, h.shape.nhashes,
					 (unsigned long long) g->nbits, g->nhashes);
		assert_true(h.capacity == (uint64_t) g->n && h.fpr == g->p);
		assert_false(h.hashes_given);

		/* k by hand does not change m */
		for (int k = 1; k <= (int) layout->max_hashes; k += 5)
		{
			assert_int_equal(bf_header_init(&h, layout, BF_HASH_XXH3, NULL, 0,
											g->n, g->p, k, &err), BF_OK);
			assert_true(h.shape.nbits == g->nbits);
			assert_int_equal(h.shape.nhashes, k);
			assert_true(h.hashes_given);
		}
	}
}

static void
test_sizes(void **state)
{
	/* what the formula's papers and other libraries give */
	static const GoldenSize known[] = {
		{5000, 0.01, 47928, 7, 0},
		{1e6, 0.01, 9585064, 7, 0},
		{1e6, 0.001, 14377592, 10, 0},
		{1000, 0.0001, 20232, 13, 0},
	};

	(void) state;
	check_sizes(&bf_layout_standard, known, lengthof(known));
	check_sizes(&bf_layout_standard, golden_standard,
				lengthof(golden_standard));
	check_sizes(&bf_layout_blocked, golden_blocked, lengthof(golden_blocked));
}

static void
test_size_resize(void **state)
{
	BfHeader	a;
	BfHeader	b;
	BfError		err;

	(void) state;
	for (size_t i = 0; i < 2; i++)
	{
		for (int k = 0; k <= 5; k += 5)
		{
			assert_int_equal(bf_header_init(&a, both[i], BF_HASH_XXH3, NULL, 0,
											0, 0.001, k, &err), BF_OK);
			assert_false(bf_is_sized(&a));
			assert_int_equal(a.shape.nhashes, k);
			assert_int_equal(bf_header_resize(&a, 10, &err), BF_OK);
			assert_int_equal(bf_header_resize(&a, 12345, &err), BF_OK);
			assert_int_equal(bf_header_init(&b, both[i], BF_HASH_XXH3, NULL, 0,
											12345, 0.001, k, &err), BF_OK);
			assert_true(a.shape.nbits == b.shape.nbits);
			assert_int_equal(a.shape.nhashes, b.shape.nhashes);
			assert_true(a.capacity == 12345);
			assert_true(bf_is_sized(&a));
		}
	}
}

/*
 * More elements or a lower rate never take fewer bits.  The standard filter's
 * raise for small n ends at n = 5000, where the size may step down a little.
 */
static void
test_size_monotone(void **state)
{
	static const double rates[] = {0.5, 0.2, 0.1, 0.03, 0.01, 0.001, 0.0001,
	1e-5, 1e-6};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(rates); i++)
		{
			uint64_t	last = 0;

			for (double n = 1; n < 1e9; n = n < 300 ? n + 1 : floor(n * 1.07))
			{
				BfShape		shape = {0, 0};

				both[l]->size(n, rates[i], &shape);
				assert_true(shape.nbits > 0);
				assert_true(shape.nbits % both[l]->unit == 0);
				assert_true(shape.nhashes >= 1 && shape.nhashes <= both[l]->max_hashes);
				if (l == 1)
				{
					assert_true(shape.nbits >= last);
					assert_true(both[l]->rate(&shape, n) <= rates[i]);
				}
				else if (n >= 5000 && n / 1.07 >= 5001)
					assert_true(shape.nbits >= last);
				last = shape.nbits;
			}
		}
		for (double n = 1; n < 1e9; n *= 10)
		{
			uint64_t	last = 0;

			for (size_t i = 0; i < lengthof(rates); i++)
			{
				BfShape		shape = {0, 0};

				both[l]->size(n, rates[i], &shape);
				assert_true(shape.nbits >= last);
				last = shape.nbits;
			}
		}
	}
}

static void
test_size_blocked_bits_per_key(void **state)
{
	(void) state;
	for (double n = 1e4; n <= 1e6; n *= 10)
	{
		BfShape		shape = {0, 0};

		bf_layout_blocked.size(n, 0.01, &shape);
		assert_true(fabs((double) shape.nbits / n / 9.896 - 1) < 0.03);
		shape.nhashes = 0;
		bf_layout_blocked.size(n, 0.001, &shape);
		assert_true(fabs((double) shape.nbits / n / 15.49 - 1) < 0.03);
	}
}

/* ------------------------------------------------------------------------
 * Rates
 * ------------------------------------------------------------------------
 */

/*
 * The blocked filter's rate in another way: follow the number of bits set in
 * a block throw by throw, mixed over the binomial number of elements in it.
 */
static double
rate_by_occupancy(uint64_t nblocks, uint32_t k, uint32_t n)
{
	static double chance[BF_BLOCK_BITS + 1];
	double		rate = 0;
	double		b = (double) nblocks;

	memset(chance, 0, sizeof(chance));
	chance[0] = 1;
	for (uint32_t j = 1; j <= n; j++)
	{
		double		load;
		double		hit = 0;

		for (uint32_t i = 0; i < k; i++)
		{
			for (int x = BF_BLOCK_BITS; x > 0; x--)
				chance[x] = chance[x] * x / BF_BLOCK_BITS +
					chance[x - 1] * (BF_BLOCK_BITS - x + 1) / BF_BLOCK_BITS;
			chance[0] = 0;
		}
		for (int x = 1; x <= BF_BLOCK_BITS; x++)
			hit += chance[x] * pow((double) x / BF_BLOCK_BITS, k);
		load = exp(lgamma(n + 1.0) - lgamma(j + 1.0) - lgamma(n - j + 1.0) -
				   j * log(b) + (n - j) * (nblocks > 1 ? log1p(-1 / b) : 0));
		if (nblocks == 1 && j < n)
			load = 0;
		rate += load * hit;
	}
	return rate;
}

static void
test_rates(void **state)
{
	(void) state;
	for (size_t i = 0; i < lengthof(golden_blocked); i++)
	{
		const GoldenSize *g = &golden_blocked[i];
		BfShape		shape = {g->nbits, g->nhashes};
		double		rate = bf_layout_blocked.rate(&shape, g->n);

		/* the sum's terms cancel, all but some 1e-12 */
		assert_true(fabs(rate - g->rate) < 3e-12 + 1e-9 * g->rate);
	}
	for (size_t i = 0; i < lengthof(golden_standard); i++)
	{
		const GoldenSize *g = &golden_standard[i];
		BfShape		shape = {g->nbits, g->nhashes};
		double		m = (double) g->nbits;
		double		rate = bf_layout_standard.rate(&shape, g->n);

		/* double hashing costs at most this */
		assert_true(rate >= g->rate * (1 - 1e-9));
		assert_true(rate <= g->rate * (1 + 1e-9) + 16 * g->n / (m * m));
	}
	for (uint64_t nblocks = 1; nblocks <= 64; nblocks *= 4)
	{
		for (uint32_t k = 1; k <= 16; k += 3)
		{
			for (uint32_t n = 1; n <= 300; n = n * 3 + 1)
			{
				BfShape		shape = {nblocks * 512, k};

				assert_true(fabs(bf_layout_blocked.rate(&shape, n) -
								 rate_by_occupancy(nblocks, k, n)) < 1e-10);
			}
		}
	}
	for (size_t l = 0; l < 2; l++)
	{
		for (uint32_t k = 1; k <= both[l]->max_hashes; k++)
		{
			BfShape		shape = {512 * 100, k};
			double		last = 0;

			assert_true(both[l]->rate(&shape, 0) == 0);
			assert_true(both[l]->rate(&shape, INFINITY) == 1);
			for (double n = 1; n < 1e12; n *= 3)
			{
				double		rate = both[l]->rate(&shape, n);

				/* rounding may undo the last digits only */
				assert_true(rate >= 0 && rate <= 1);
				assert_true(rate >= last - 1e-10);
				last = rate;
			}
			assert_true(last > 0.999999);
		}
	}
}

/* ------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------
 */
static void
refuse(const BfLayout *layout, BfHash hash, const uint8_t *key, size_t keylen,
	   double n, double p, int k, const char *argument, const char *value)
{
	BfHeader	h;
	BfError		err;
	char		what[64];

	snprintf(what, sizeof(what), "not %s", value);
	assert_int_equal(bf_header_init(&h, layout, hash, key, keylen, n, p, k,
									&err), BF_BAD_PARAMETER);
	assert_int_equal(err.status, BF_BAD_PARAMETER);
	if (strncmp(err.message, argument, strlen(argument)) != 0 ||
		strstr(err.message, what) == NULL)
		fail_msg("message \"%s\" lacks \"%s\" or \"%s\"", err.message, argument,
				 what);
}

static void
test_parameters(void **state)
{
	static const struct
	{
		double		value;
		const char *shown;
	}			capacities[] = {
		{-1, "-1"}, {-1e300, "-1"}, {0.5, "0.5"}, {1.5, "1.5"},
		{1000.25, "1000.25"}, {NAN, ""}, {INFINITY, "inf"},
		{-INFINITY, "-inf"}, {1e300, "1e+300"},
		{9007199254740994.0, "9.00719925474099e+15"}, {5e-324, "4.94"},
	};
	static const struct
	{
		double		value;
		const char *shown;
	}			fprs[] = {
		{0, "0"}, {-0.01, "-0.01"}, {1, "1"}, {5, "5"}, {9e-7, "9e-07"},
		{NAN, ""}, {INFINITY, "inf"}, {-INFINITY, "-inf"},
		{1e-300, "1e-300"},
	};
	uint8_t		key[40] = {0};
	BfHeader	h;
	BfError		err;

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		int			max = (int) both[l]->max_hashes;
		char		shown[16];

		for (size_t i = 0; i < lengthof(capacities); i++)
			refuse(both[l], BF_HASH_XXH3, NULL, 0, capacities[i].value, 0.01,
				   0, "capacity", capacities[i].shown);
		for (size_t i = 0; i < lengthof(fprs); i++)
		{
			refuse(both[l], BF_HASH_XXH3, NULL, 0, 100, fprs[i].value, 0,
				   "fpr", fprs[i].shown);
			refuse(both[l], BF_HASH_XXH3, NULL, 0, 0, fprs[i].value, 0,
				   "fpr", fprs[i].shown);
		}
		refuse(both[l], BF_HASH_XXH3, NULL, 0, 100, 0.01, -1, "hashes", "-1");
		snprintf(shown, sizeof(shown), "%d", max + 1);
		refuse(both[l], BF_HASH_XXH3, NULL, 0, 100, 0.01, max + 1, "hashes",
			   shown);
		refuse(both[l], BF_HASH_XXH3, NULL, 0, 0, 0.01, INT32_MAX, "hashes",
			   "2147483647");
		refuse(both[l], BF_HASH_BLAKE2B, key, 0, 100, 0.01, 0, "key", "0");
		refuse(both[l], BF_HASH_BLAKE2B, key, 33, 100, 0.01, 0, "key", "33");
		refuse(both[l], BF_HASH_BLAKE2B, key, SIZE_MAX, 100, 0.01, 0, "key",
			   "18446744073709551615");
		assert_int_equal(bf_header_init(&h, both[l], BF_HASH_XXH3, key, 16,
										100, 0.01, 0, &err), BF_BAD_PARAMETER);
		assert_string_equal(err.message, "hash xxh3 takes no key");
		assert_non_null(strstr(err.hint, "blake2b"));

		/* the last that are allowed */
		assert_int_equal(bf_header_init(&h, both[l], BF_HASH_BLAKE2B, key, 32,
										1, both[l]->min_fpr, max, &err),
						 BF_OK);
		assert_int_equal(bf_header_init(&h, both[l], BF_HASH_XXH3, NULL, 0, 1,
										nextafter(1, 0), 1, &err), BF_OK);

		/* 0 is "unsized" to init only */
		assert_int_equal(bf_header_resize(&h, 0, &err), BF_BAD_PARAMETER);
		assert_int_equal(bf_header_resize(&h, NAN, &err), BF_BAD_PARAMETER);
	}

	/* hints for the likely slips */
	assert_int_equal(bf_header_init(&h, both[1], BF_HASH_XXH3, NULL, 0, 0.01,
									0.01, 0, &err), BF_BAD_PARAMETER);
	assert_non_null(strstr(err.hint, "1000000, 0.01"));
	assert_int_equal(bf_header_init(&h, both[1], BF_HASH_XXH3, NULL, 0, 100,
									5, 0, &err), BF_BAD_PARAMETER);
	assert_non_null(strstr(err.hint, "0.05"));
}

static void
test_limit(void **state)
{
	static const double rates[] = {0.1, 0.01, 0.001, 1e-6};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(rates); i++)
		{
			double		most = bf_capacity_for(both[l], 1e18, rates[i]);
			BfHeader	h;
			BfError		err;
			char		figure[64];

			assert_int_equal(bf_header_init(&h, both[l], BF_HASH_XXH3, NULL, 0,
											most, rates[i], 0, &err), BF_OK);
			assert_true(h.shape.nbits <= BF_MAX_BITS);
			assert_true(h.shape.nbits >= BF_MAX_BITS - 1024);
			assert_int_equal(bf_header_init(&h, both[l], BF_HASH_XXH3, NULL, 0,
											most + 1, rates[i], 0, &err),
							 BF_TOO_LARGE);
			assert_non_null(strstr(err.message, "needs 513 MiB"));
			assert_non_null(strstr(err.message, "limit of 512 MiB"));
			snprintf(figure, sizeof(figure), "%.0f elements", most + 1);
			assert_non_null(strstr(err.message, figure));
			assert_non_null(strstr(err.message, both[l]->name));
			snprintf(figure, sizeof(figure), "%.0f elements fit", most);
			assert_non_null(strstr(err.hint, figure));

			/* far past it, the size is still the true one */
			for (double n = 1e10; n < 1e16; n *= 10)
			{
				double		asked = fmin(n, (double) BF_MAX_CAPACITY);
				double		mib;

				assert_int_equal(bf_header_init(&h, both[l], BF_HASH_XXH3,
												NULL, 0, asked, rates[i], 0,
												&err), BF_TOO_LARGE);
				mib = atof(strstr(err.message, "needs ") + 6);
				mib /= -asked * log(rates[i]) / 0.4804530139182014 / 8388608;
				assert_true(mib > 0.999 && mib < (l == 0 ? 1.001 : 1.5));
			}
			assert_int_equal(bf_header_init(&h, both[l], BF_HASH_XXH3, NULL, 0,
											(double) BF_MAX_CAPACITY, rates[i],
											0, &err), BF_TOO_LARGE);
		}
	}
}

static void
test_capacity_for(void **state)
{
	static const double rates[] = {0.5, 0.1, 0.01, 0.001, 0.0001, 1e-6};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(rates); i++)
		{
			for (double bytes = 1; bytes < 2e9; bytes = floor(bytes * 1.3) + 1)
			{
				double		n = bf_capacity_for(both[l], bytes, rates[i]);
				BfShape		fits = {0, 0};
				BfShape		more = {0, 0};
				double		limit = fmin(bytes - VALUE_HEADER,
										 BF_MAX_BITS / 8);

				assert_true(n >= 0 && n == floor(n));
				both[l]->size(n + 1, rates[i], &more);
				assert_true((double) more.nbits / 8 > limit);
				if (n == 0)
					continue;
				both[l]->size(n, rates[i], &fits);
				assert_true((double) fits.nbits / 8 <= limit);
			}
			assert_true(bf_capacity_for(both[l], 0, rates[i]) == 0);
			assert_true(bf_capacity_for(both[l], -1, rates[i]) == 0);
			assert_true(bf_capacity_for(both[l], VALUE_HEADER, rates[i]) == 0);
			assert_true(bf_capacity_for(both[l], INFINITY, rates[i]) ==
						bf_capacity_for(both[l], 1e18, rates[i]));
		}
		/* never more than a filter may be asked for */
		assert_true(bf_capacity_for(both[l], 1e18, 0.9999999) <=
					(double) BF_MAX_CAPACITY);
	}
}

/* ------------------------------------------------------------------------
 * Positions
 * ------------------------------------------------------------------------
 */
static int
compare_u64(const void *a, const void *b)
{
	uint64_t	x = *(const uint64_t *) a;
	uint64_t	y = *(const uint64_t *) b;

	return (x > y) - (x < y);
}

/*
 * Add to all-zero bits: just the reference's bits must be set.  Leaves zeros.
 */
static void
check_positions(const BfLayout *layout, const BfShape *shape, uint8_t *bits,
				BfDigest d)
{
	uint64_t	pos[64];
	BfRange		ranges[BF_MAX_RANGES];
	uint32_t	k = shape->nhashes;
	uint32_t	distinct = 0;
	uint32_t	fresh;
	uint32_t	n;
	uint64_t	popcount = 0;

	reference_positions(layout, shape, d, pos);
	n = layout->ranges(shape, d, ranges);
	assert_false(layout->test(bits, shape, d));
	fresh = layout->add(bits, shape, d);
	assert_true(layout->test(bits, shape, d));
	assert_int_equal(layout->add(bits, shape, d), 0);

	qsort(pos, k, sizeof(pos[0]), compare_u64);
	for (uint32_t i = 0; i < k; i++)
	{
		assert_true(pos[i] < shape->nbits);
		assert_true(bit_is_set(bits, pos[i]));
		distinct += i == 0 || pos[i] != pos[i - 1];
	}
	assert_int_equal(fresh, distinct);

	/* no bit more: count the bytes that could have been written */
	for (uint32_t r = 0; r < n; r++)
		popcount += bf_popcount(bits + ranges[r].offset, ranges[r].length);
	assert_int_equal(popcount, distinct);

	/* every bit is needed */
	for (uint32_t i = 0; i < k; i++)
	{
		if (i > 0 && pos[i] == pos[i - 1])
			continue;
		bits[pos[i] / 8] ^= (uint8_t) (1 << pos[i] % 8);
		assert_false(layout->test(bits, shape, d));
		bits[pos[i] / 8] ^= (uint8_t) (1 << pos[i] % 8);
	}
	for (uint32_t i = 0; i < k; i++)
		bits[pos[i] / 8] = 0;
	assert_false(layout->test(bits, shape, d));
}

static void
test_positions(void **state)
{
	static const uint64_t units[] = {1, 2, 3, 7, 8, 64, 1000, 5991, 99999};

	(void) state;
	rng_state = 1;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(units); i++)
		{
			BfShape		shape = {units[i] * both[l]->unit, 0};
			size_t		nbytes = shape.nbits / 8;
			uint8_t    *bits = calloc(1, nbytes);

			for (shape.nhashes = 1; shape.nhashes <= both[l]->max_hashes;
				 shape.nhashes++)
				for (int j = 0; j < 50; j++)
					check_positions(both[l], &shape, bits, random_digest());
			/* and nothing was set elsewhere */
			assert_int_equal(bf_popcount(bits, nbytes), 0);
			free(bits);
		}
	}
}

static void
test_positions_large(void **state)
{
	static const uint64_t ends[] = {0, 1, 2, 3, 100, 12345};
	static const uint64_t extremes[] = {0, 1, UINT32_MAX, UINT64_C(1) << 32,
		UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX,
	UINT64_C(0xFFFFFFFF00000000)};
	Guarded		g;

	(void) state;
	rng_state = 2;
	guarded_map(&g, BF_MAX_BITS / 8);
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(ends); i++)
		{
			BfShape		shape = {BF_MAX_BITS - ends[i] * both[l]->unit, 0};
			uint8_t    *bits = g.bytes + (BF_MAX_BITS - shape.nbits) / 8;
			uint32_t	max = both[l]->max_hashes;

			for (int j = 0; j < 300; j++)
			{
				shape.nhashes = 1 + (uint32_t) rng() % max;
				check_positions(both[l], &shape, bits, random_digest());
			}
			shape.nhashes = max;
			for (size_t a = 0; a < lengthof(extremes); a++)
				for (size_t b = 0; b < lengthof(extremes); b++)
					check_positions(both[l], &shape, bits,
									(BfDigest) {extremes[a], extremes[b]});
		}
	}
	guarded_unmap(&g);
}

/*
 * Bits outside the ranges must not matter, every range must.
 */
static void
test_ranges(void **state)
{
	static const double sizes[] = {1, 10, 300, 5000};

	(void) state;
	rng_state = 3;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(sizes); i++)
		{
			for (int k = 1; k <= (int) both[l]->max_hashes; k += 3)
			{
				BfFilter	f;
				uint8_t    *zeros;
				uint8_t    *ones;

				make(&f, both[l], sizes[i], 0.01, k);
				fill(&f, i, (uint64_t) sizes[i] / 3 + 1);
				zeros = malloc(f.nbytes);
				ones = malloc(f.nbytes);
				for (int j = 0; j < 60; j++)
				{
					BfDigest	d = j < 30 ? element(i, (uint64_t) j) :
						random_digest();
					BfRange		ranges[BF_MAX_RANGES];
					uint32_t	n = both[l]->ranges(&f.h.shape, d, ranges);
					uint64_t	pos[64];
					uint64_t	end = 0;

					memset(zeros, 0, f.nbytes);
					memset(ones, 0xFF, f.nbytes);
					reference_positions(both[l], &f.h.shape, d, pos);
					assert_true(n >= 1 && n <= BF_MAX_RANGES);
					for (uint32_t r = 0; r < n; r++)
					{
						uint64_t	from = ranges[r].offset;
						uint64_t	to = from + ranges[r].length;
						bool		needed = false;

						/* ascending and apart, inside the payload */
						assert_true(from >= end && to > from);
						assert_true(to <= f.nbytes);
						end = to;
						memcpy(zeros + from, f.bits + from, to - from);
						memcpy(ones + from, f.bits + from, to - from);
						for (int b = 0; b < k; b++)
							needed |= pos[b] / 8 >= from && pos[b] / 8 < to;
						assert_true(needed);
					}
					if (l == 1)
					{
						assert_int_equal(n, 1);
						assert_int_equal(ranges[0].length, 64);
						assert_int_equal(ranges[0].offset % 64, 0);
					}
					assert_int_equal(both[l]->test(zeros, &f.h.shape, d),
									 both[l]->test(f.bits, &f.h.shape, d));
					assert_int_equal(both[l]->test(ones, &f.h.shape, d),
									 both[l]->test(f.bits, &f.h.shape, d));
				}
				free(zeros);
				free(ones);
				free(f.bits);
			}
		}
	}
}

/* ------------------------------------------------------------------------
 * Sets
 * ------------------------------------------------------------------------
 */
static void
test_add(void **state)
{
	static const double sizes[] = {1, 2, 3, 10, 100, 1000, 20000};
	static const double rates[] = {0.1, 0.01, 0.0001};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(sizes); i++)
		{
			for (size_t p = 0; p < lengthof(rates); p++)
			{
				BfFilter	f;
				BfFilter	g;
				uint64_t	n = (uint64_t) sizes[i];

				make(&f, both[l], sizes[i], rates[p], 0);
				make(&g, both[l], sizes[i], rates[p], 0);
				assert_false(bf_test(&f, element(i, 0)));
				for (uint64_t j = 0; j < n; j++)
				{
					bool		known = bf_test(&f, element(i, j));
					uint32_t	fresh = add_one(&f, element(i, j));

					assert_true(known == (fresh == 0));
					assert_true(fresh <= f.h.shape.nhashes);
				}
				for (uint64_t j = 0; j < n; j++)
				{
					assert_true(bf_test(&f, element(i, j)));
					assert_int_equal(add_one(&f, element(i, j)), 0);
				}
				assert_true(f.h.nset == bf_popcount(f.bits, f.nbytes));

				/* a set: neither order nor repetition matters */
				for (uint64_t j = n; j-- > 0;)
				{
					add_one(&g, element(i, j));
					add_one(&g, element(i, j / 2));
				}
				assert_true(f.h.nset == g.h.nset);
				assert_memory_equal(f.bits, g.bits, f.nbytes);
				free(f.bits);
				free(g.bits);
			}
		}
	}
}

/*
 * Many at once are the same bits, in memory that ends at a barrier.
 */
static void
test_add_many(void **state)
{
	static const uint32_t counts[] = {0, 1, 2, 31, 64, 1000};
	static const double sizes[] = {1, 50, 1000, 20000};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(sizes); i++)
		{
			for (int k = 1; k <= (int) both[l]->max_hashes; k++)
			{
				BfFilter	one;
				BfFilter	many;
					BfError		err;
				Guarded		g;

				make(&one, both[l], sizes[i], 0.01, k);
				many = one;
				guarded_map(&g, many.nbytes);
				many.bits = g.bytes;
				for (size_t c = 0; c < lengthof(counts); c++)
				{
					size_t		size = counts[c] * sizeof(BfDigest);
					BfDigest   *digests = malloc(size);

					for (uint32_t j = 0; j < counts[c]; j++)
					{
						digests[j] = element(c, j);
						add_one(&one, digests[j]);
					}
					assert_int_equal(bf_add_many(&many, digests, counts[c], &err), BF_OK);
					bf_recount(&many);
					assert_true(one.h.nset == many.h.nset);
					assert_memory_equal(one.bits, many.bits, one.nbytes);
					free(digests);
				}
				guarded_unmap(&g);
				free(one.bits);
			}
		}
	}

	/* nothing to count */
	{
		BfFilter	f;
		BfError		err;

		assert_int_equal(bf_header_init(&f.h, both[0], BF_HASH_XXH3, NULL, 0,
										100, 0.01, 0, &err), BF_OK);
		f.bits = NULL;
		f.nbytes = 0;
		bf_recount(&f);
		assert_true(f.h.nset == 0);
	}
}

static void
test_or_and(void **state)
{
	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		/* lengths with every remainder modulo the word */
		for (double n = 1; n < 60; n++)
		{
			BfFilter	a;
			BfFilter	b;
			BfFilter	both_sets;
			BfFilter	c;

			make(&a, both[l], n, 0.01, 0);
			make(&b, both[l], n, 0.01, 0);
			make(&c, both[l], n, 0.01, 0);
			make(&both_sets, both[l], n, 0.01, 0);
			fill(&a, 1, 6);
			fill(&b, 2, 6);
			fill(&both_sets, 1, 6);
			fill(&both_sets, 2, 6);

			memcpy(c.bits, a.bits, a.nbytes);
			unite(&c, &b);
			assert_memory_equal(c.bits, both_sets.bits, c.nbytes);
			assert_true(c.h.nset == both_sets.h.nset);
			unite(&c, &b);
			assert_true(c.h.nset == both_sets.h.nset);

			bf_intersect(&c, &a);
			assert_memory_equal(c.bits, a.bits, a.nbytes);
			assert_true(c.h.nset == a.h.nset);
			bf_intersect(&c, &b);
			for (size_t i = 0; i < c.nbytes; i++)
				assert_int_equal(c.bits[i], a.bits[i] & b.bits[i]);
			assert_true(c.h.nset == bf_popcount(c.bits, c.nbytes));

			/* nothing in common: an intersection may be empty */
			wipe(&b);
			bf_intersect(&c, &b);
			assert_true(c.h.nset == 0);
			unite(&a, &b);
			assert_true(a.h.nset == bf_popcount(a.bits, a.nbytes));
			free(a.bits);
			free(b.bits);
			free(c.bits);
			free(both_sets.bits);
		}
	}
}

static void
test_popcount(void **state)
{
	uint8_t		bytes[80];

	(void) state;
	rng_state = 5;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t) rng();
	for (size_t from = 0; from < 9; from++)
	{
		for (size_t len = 0; from + len <= sizeof(bytes); len++)
		{
			uint8_t    *copy = exact_copy(bytes + from, len);
			uint64_t	count = 0;

			for (size_t i = 0; i < len * 8; i++)
				count += copy[i / 8] >> i % 8 & 1;
			assert_true(bf_popcount(copy, len) == count);
			assert_true(bf_popcount(bytes + from, len) == count);
			free(copy);
		}
	}
	memset(bytes, 0xFF, sizeof(bytes));
	assert_int_equal(bf_popcount(bytes, sizeof(bytes)), 8 * sizeof(bytes));
}

static void
test_combine_parameters(void **state)
{
	uint8_t		keys[2][4] = {{'a', 'b', 'c', 'd'}, {'a', 'b', 'c', 'e'}};
	BfHeader	a;
	BfHeader	b;
	BfError		err;

	(void) state;

	/* each row: what is different, and both values in the message */
	for (int i = 0; i < 8; i++)
	{
		static const char *const texts[][2] = {
			{"layouts", "standard and blocked"},
			{"hashes", "blake2b and xxh3"},
			{"keys", "keyed and not keyed"},
			{"keys", ""},
			{"keys", ""},
			{"sizes", "47928 bits (capacity 5000, fpr 0.01) and 71888 bits (capacity 5000, fpr 0.001)"},
			{"sizes", "47928 bits (capacity 5000, fpr 0.01) and 0 bits (capacity 0, fpr 0.01)"},
			{"numbers of hashes", "7 and 3"},
		};
		bool		keyed = i >= 2 && i <= 4;

		assert_int_equal(bf_header_init(&a, &bf_layout_standard,
										BF_HASH_BLAKE2B,
										keyed ? keys[0] : NULL, 4, 5000, 0.01,
										0, &err), BF_OK);
		b = a;
		assert_int_equal(bf_same_parameters(&a, &b, &err), BF_OK);
		assert_int_equal(
			bf_header_init(&b, i == 0 ? &bf_layout_blocked : a.layout,
						   i == 1 ? BF_HASH_XXH3 : BF_HASH_BLAKE2B,
						   i == 3 ? keys[1] : i == 4 ? keys[0] : NULL,
						   i == 4 ? 3 : 4,
						   i == 6 ? 0 : 5000, i == 5 ? 0.001 : 0.01,
						   i == 7 ? 3 : 0, &err), BF_OK);
		for (int swap = 0; swap < 2; swap++)
		{
			assert_int_equal(bf_same_parameters(swap ? &b : &a, swap ? &a : &b,
												&err), BF_INCOMPATIBLE);
			assert_ptr_equal(strstr(err.message, texts[i][0]), err.message);
			/* a key is a secret */
			assert_null(strstr(err.message, "abc"));
			if (!swap)
				assert_non_null(strstr(err.message, texts[i][1]));
		}
	}

	/* the same size by other words: combine, whatever the order */
	assert_int_equal(bf_header_init(&b, &bf_layout_blocked, BF_HASH_XXH3, NULL,
									0, 2, 0.01, 0, &err), BF_OK);
	assert_int_equal(bf_header_init(&a, &bf_layout_blocked, BF_HASH_XXH3, NULL,
									0, 1, 0.01, (int) b.shape.nhashes, &err),
					 BF_OK);
	assert_int_equal(bf_same_parameters(&a, &b, &err), BF_OK);
	for (int i = 0; i < 3; i++)
	{
		BfHeader	ab = a;
		BfHeader	ba = b;

		if (i > 0)
			ab.capacity = ba.capacity = 2;
		if (i > 1)
			ab.fpr = 0.05;
		bf_merge_design(&ab, &b);
		bf_merge_design(&ba, i > 1 ? &ab : &a);
		assert_true(ab.capacity == 2 && ba.capacity == 2);
		assert_true(ab.fpr == ba.fpr && ab.fpr == (i > 1 ? 0.05 : 0.01));
		assert_true(ab.hashes_given && ba.hashes_given);
	}
}

/* ------------------------------------------------------------------------
 * Estimates
 * ------------------------------------------------------------------------
 */
static void
test_cardinality(void **state)
{
	static const double sizes[] = {10000, 30000, 100000, 300000};
	static const double rates[] = {0.1, 0.01, 0.0001};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(sizes); i++)
		{
			for (size_t p = 0; p < lengthof(rates); p++)
			{
				/* half full, full, twice full */
				for (double fullness = 0.5; fullness <= 2; fullness *= 2)
				{
					BfFilter	f;
					double		n;

					make(&f, both[l], sizes[i] / fullness, rates[p], 0);
					fill(&f, p, (uint64_t) sizes[i]);
					n = bf_cardinality(&f.h);
					assert_true(fabs(n / sizes[i] - 1) < 0.02);
					assert_true(bf_expected_fpr(&f.h) ==
								both[l]->rate(&f.h.shape, n));
					free(f.bits);
				}
			}
		}
	}
}

static void
test_extremes(void **state)
{
	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (double n = 1; n < 1e5; n *= 7)
		{
			for (int k = 0; k <= (int) both[l]->max_hashes; k += 4)
			{
				BfFilter	f;
				double		last = 0;

				make(&f, both[l], n, 0.01, k);
				assert_true(bf_cardinality(&f.h) == 0);
				assert_true(bf_expected_fpr(&f.h) == 0);
				assert_false(bf_overfilled(&f.h));

				/* any number of bits set is counted, and more is more */
				for (uint64_t x = 1; x < f.h.shape.nbits;
					 x += 1 + f.h.shape.nbits / 50)
				{
					double		count;

					f.h.nset = x;
					count = bf_cardinality(&f.h);
					assert_true(count > last && isfinite(count));
					assert_true(bf_expected_fpr(&f.h) >= 0 &&
								bf_expected_fpr(&f.h) <= 1);
					last = count;
				}
				memset(f.bits, 0xFF, f.nbytes);
				f.h.nset = f.h.shape.nbits;
				assert_true(isinf(bf_cardinality(&f.h)) &&
							bf_cardinality(&f.h) > 0);
				assert_true(bf_expected_fpr(&f.h) == 1);
				/* with k by hand, this may be what was asked for */
				assert_true(bf_overfilled(&f.h) || k != 0);
				assert_true(bf_test(&f, element(9, 9)));
				free(f.bits);
			}
		}
	}

	/* unsized: empty for ever */
	for (size_t l = 0; l < 2; l++)
	{
		BfHeader	h;
		BfError		err;

		bf_header_init(&h, both[l], BF_HASH_XXH3, NULL, 0, 0, 0.05, 0, &err);
		assert_true(bf_cardinality(&h) == 0 && bf_expected_fpr(&h) == 0);
		assert_true(bf_design_fpr(&h) == 0.05);
		assert_false(bf_overfilled(&h));
	}
}

/*
 * Mean and variance of X against many filters.
 */
static void
test_expected_set(void **state)
{
	static const struct
	{
		double		capacity;
		double		p;
		int			k;
		int			n;
		int			filters;
	}			cases[] = {
		{1000, 0.01, 0, 1000, 3000}, {1000, 0.1, 0, 2000, 3000},
		{500, 0.0001, 0, 300, 3000}, {2000, 0.01, 1, 2000, 2000},
		{30, 0.01, 0, 30, 8000}, {5, 0.01, 0, 9, 8000},
		{3000, 0.001, 0, 3000, 2000},
	};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t i = 0; i < lengthof(cases); i++)
		{
			int			t = cases[i].filters;
			double		sum = 0;
			double		squares = 0;
			double		variance;
			double		mean;
			double		seen;
			BfFilter	f;

			/* overlapping progressions: small standard filters vary more */
			if (l == 0 && cases[i].n < 100)
				continue;
			make(&f, both[l], cases[i].capacity, cases[i].p, cases[i].k);
			mean = both[l]->expected_set(&f.h.shape, cases[i].n, &variance);
			for (int j = 0; j < t; j++)
			{
				double		x;

				wipe(&f);
				fill(&f, (uint64_t) j * 100 + i, (uint64_t) cases[i].n);
				x = (double) f.h.nset - mean;
				sum += x;
				squares += x * x;
			}
			seen = squares / t - (sum / t) * (sum / t);
			/* 4.5 standard errors */
			if (fabs(sum / t) > 4.5 * sqrt(variance / t) + 1e-4 * mean ||
				fabs(seen / variance - 1) > 4.5 * sqrt(2.0 / t))
				fail_msg("%s case %zu: mean %g + %g, variance %g, not %g",
						 both[l]->name, i, mean, sum / t, seen, variance);
			free(f.bits);
		}
		/* never negative, however lightly loaded */
		for (double load = 1e-12; load < 1e3; load *= 1.001)
		{
			BfShape		shape = {1 << 20, 1};
			double		variance;
			double		n = load * 1048576;

			assert_true(both[l]->expected_set(&shape, n, &variance) >= 0);
			assert_true(variance >= 0);
		}
	}
}

static void
test_overfilled(void **state)
{
	static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
	unsigned	false_alarms[2] = {0, 0};
	unsigned	filters[2] = {0, 0};

	(void) state;
	for (size_t l = 0; l < 2; l++)
	{
		for (size_t p = 0; p < lengthof(rates); p++)
		{
			for (int n = 1; n <= 20000; n = n < 100 ? n + 1 : n * 3)
			{
				BfFilter	f;
				int			repeat = n <= 300 ? 1500 : 450000 / n;

				make(&f, both[l], n, rates[p], 0);
				for (int j = 0; j < repeat; j++)
				{
					uint64_t	seed = (uint64_t) j * 1000003 + (uint64_t) n;

					wipe(&f);
					fill(&f, seed, (uint64_t) n);
					false_alarms[l] += bf_overfilled(&f.h);
					filters[l]++;
					if (n < 100 || j >= 20)
						continue;
					for (int i = n; i < 2 * n; i++)
						add_one(&f, element(seed, (uint64_t) i));
					assert_true(bf_overfilled(&f.h));
				}
				free(f.bits);
			}
		}
		if (false_alarms[l] > 0)
			print_message("%s: %u of %u exactly full filters warned\n",
						  both[l]->name, false_alarms[l], filters[l]);
	}
	assert_int_equal(false_alarms[0] + false_alarms[1], 0);
}

/* ------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------
 */
static void
assert_same_header(const BfHeader *a, const BfHeader *b)
{
	assert_ptr_equal(a->layout, b->layout);
	assert_int_equal(a->hash, b->hash);
	assert_true(a->shape.nbits == b->shape.nbits);
	assert_int_equal(a->shape.nhashes, b->shape.nhashes);
	assert_int_equal(a->hashes_given, b->hashes_given);
	assert_int_equal(a->keylen, b->keylen);
	assert_int_equal(a->kind_name_len, b->kind_name_len);
	assert_true(a->capacity == b->capacity);
	assert_true(a->fpr == b->fpr);
	assert_true(a->nset == b->nset);
	assert_memory_equal(a->key, b->key, a->keylen);
}

/* All the ways in agree that it is a filter, and it writes back the same. */
static void
check_round_trip(const uint8_t *bytes, size_t len, const BfHeader *expected)
{
	uint8_t    *image = exact_copy(bytes, len);
	uint8_t    *again = malloc(len);
	uint8_t    *head;
	size_t		header_size;
	BfFilter	f;
	BfFilter	g;
	BfHeader	h;
	BfError		err;

	if (bf_validate(image, len, &f, &err) != BF_OK)
		fail_msg("not valid: %s", err.message);
	assert_int_equal(bf_open(image, len, &g, &err), BF_OK);
	if (expected != NULL)
		assert_same_header(&f.h, expected);
	assert_same_header(&g.h, &f.h);
	assert_true(g.h.checksum == f.h.checksum && g.h.kind == f.h.kind);
	header_size = bf_header_size(&f.h);
	assert_int_equal((header_size + 4) % 64, 0);
	assert_true(header_size <= BF_MAX_HEADER);
	assert_int_equal(bf_image_size(&f.h), len);
	if (f.h.nset > 0)
	{
		assert_ptr_equal(f.bits, image + header_size);
		assert_ptr_equal(g.bits, image + header_size);
		assert_int_equal(f.nbytes, len - header_size);
	}
	else
	{
		assert_int_equal(len, header_size);
		assert_null(f.bits);
		assert_int_equal(f.nbytes, 0);
	}

	/* the header alone */
	head = exact_copy(bytes, header_size);
	assert_int_equal(bf_open_header(head, header_size, len, &h, &err), BF_OK);
	assert_same_header(&h, &f.h);
	if (header_size > BF_FIXED_HEADER)
	{
		uint8_t    *part = exact_copy(bytes, header_size - 1);

		assert_int_equal(bf_open_header(part, header_size - 1, len, &h, &err),
						 BF_CORRUPT);
		free(part);
	}
	free(head);

	memset(again, 0xA5, len);
	bf_write_header(&f.h, again);
	if (f.bits != NULL)
		memcpy(again + header_size, f.bits, f.nbytes);
	assert_memory_equal(again, bytes, len);
	exercise(&f);
	free(again);
	free(image);
}

static void
test_round_trip(void **state)
{
	static const double sizes[] = {0, 1, 3, 100, 5000, 1e8};
	static const uint64_t contents[] = {0, 1, 200};
	static const size_t keylens[] = {0, 1, 16, 28, 32};
	uint8_t		key[BF_MAX_KEY];

	(void) state;
	rng_state = 6;
	pattern(key, sizeof(key));
	for (size_t l = 0; l < 2; l++)
		for (int hash = 1; hash <= 2; hash++)
			for (size_t s = 0; s < lengthof(sizes); s++)
				for (size_t c = 0; c < lengthof(contents); c++)
					for (size_t y = 0; y < lengthof(keylens); y++)
						for (int k = 0; k <= 16; k += 8)
						{
							BfFilter	f;
							BfError		err;
							uint8_t    *image;
							size_t		len;
							bool		empty = contents[c] == 0;

							if (hash == BF_HASH_XXH3 && keylens[y] > 0)
								continue;
							if (!empty && (sizes[s] == 0 || sizes[s] > 1e6))
								continue;
							assert_int_equal(
								bf_header_init(&f.h, both[l], (BfHash) hash,
											   keylens[y] > 0 ? key : NULL,
											   keylens[y], sizes[s], 0.001, k,
											   &err), BF_OK);
							f.nbytes = empty ? 0 : bf_payload_size(&f.h);
							f.bits = empty ? NULL : calloc(1, f.nbytes);
							fill(&f, s, contents[c]);
							image = image_of(&f, &len);
							if (empty)
								assert_int_equal(len, keylens[y] > 0 ?
												 124 : 60);
							check_round_trip(image, len, &f.h);
							free(image);
							free(f.bits);
						}
}

static void
test_golden_images(void **state)
{
	static const struct
	{
		const uint8_t *image;
		size_t		len;
		const BfLayout *layout;
		int			hashes;
		bool		keyed;
		bool		empty;
	}			cases[] = {
		{golden_standard_image, sizeof(golden_standard_image),
		&bf_layout_standard, 0, true, false},
		{golden_blocked_image, sizeof(golden_blocked_image),
		&bf_layout_blocked, 16, false, false},
		{golden_empty_image, sizeof(golden_empty_image),
		&bf_layout_blocked, 0, false, true},
	};
	uint8_t		key[16];

	(void) state;
	pattern(key, sizeof(key));
	for (size_t i = 0; i < lengthof(cases); i++)
	{
		BfHash		hash = cases[i].keyed ? BF_HASH_BLAKE2B : BF_HASH_XXH3;
		BfFilter	f;
		BfError		err;
		uint8_t    *image;
		size_t		len;

		assert_int_equal(bf_header_init(&f.h, cases[i].layout, hash,
										cases[i].keyed ? key : NULL,
										sizeof(key),
										cases[i].empty ? 1e6 : 20, 0.01,
										cases[i].hashes, &err), BF_OK);
		f.nbytes = cases[i].empty ? 0 : bf_payload_size(&f.h);
		f.bits = cases[i].empty ? NULL : calloc(1, f.nbytes);
		for (int j = 0; j < 20 && !cases[i].empty; j++)
		{
			char		item[32];

			snprintf(item, sizeof(item), "item-%d", j);
			add_one(&f, bf_digest(hash, key, cases[i].keyed ? sizeof(key) : 0,
								 item, strlen(item)));
		}
		image = image_of(&f, &len);
		assert_int_equal(len, cases[i].len);
		assert_memory_equal(image, cases[i].image, len);
		check_round_trip(image, len, &f.h);
		free(image);
		free(f.bits);
	}
}

/*
 * Small images of all sorts, for the tests that damage them.
 */
#define CORPUS 9

static uint8_t *
corpus(int i, size_t *len)
{
	static const struct
	{
		int			layout;
		double		capacity;
		size_t		keylen;
		int			hashes;
		uint64_t	n;
	}			makes[CORPUS] = {
		{0, 0, 0, 0, 0}, {1, 0, 0, 5, 0}, {0, 100, 0, 0, 0},
		{1, 100, 16, 0, 0}, {0, 3, 0, 0, 3}, {1, 3, 0, 16, 3},
		{0, 40, 32, 64, 20}, {1, 100, 1, 0, 50}, {1, 1, 0, 1, 1},
	};
	uint8_t		key[BF_MAX_KEY];
	BfFilter	f;
	BfError		err;
	uint8_t    *image;

	pattern(key, sizeof(key));
	assert_int_equal(
		bf_header_init(&f.h, both[makes[i].layout],
					   makes[i].keylen > 0 ? BF_HASH_BLAKE2B : BF_HASH_XXH3,
					   makes[i].keylen > 0 ? key : NULL, makes[i].keylen,
					   makes[i].capacity, 0.01, makes[i].hashes, &err), BF_OK);
	f.nbytes = makes[i].n > 0 ? bf_payload_size(&f.h) : 0;
	f.bits = makes[i].n > 0 ? calloc(1, f.nbytes) : NULL;
	fill(&f, (uint64_t) i, makes[i].n);
	image = image_of(&f, len);
	free(f.bits);
	return image;
}

static void
reseal_header(uint8_t *image, size_t len)
{
	size_t		size = bf_load16(image + 6);

	if (size < 60 || size > len)
		return;
	bf_store32(image + 56, 0);
	bf_store32(image + 56, (uint32_t) bf_checksum(image, size));
}

static void
refuse_image(const uint8_t *image, size_t len)
{
	uint8_t    *copy = exact_copy(image, len);
	BfFilter	f;
	BfHeader	h;
	BfError		err;
	BfStatus	status = bf_validate(copy, len, &f, &err);

	assert_true(status == BF_CORRUPT || status == BF_UNKNOWN_VERSION);
	assert_int_equal(err.status, status);
	assert_true(strlen(err.message) > 0);

	/* what the constant-time checks let through must still be safe */
	if (bf_open(copy, len, &f, &err) == BF_OK)
		exercise(&f);
	(void) bf_open_header(copy, len, len, &h, &err);
	free(copy);
}

/*
 * One bit flipped, anywhere: the checksums notice.
 */
static void
test_bit_flips(void **state)
{
	(void) state;
	rng_state = 7;
	for (int c = 0; c < CORPUS; c++)
	{
		size_t		len;
		uint8_t    *image = corpus(c, &len);

		check_round_trip(image, len, NULL);
		for (size_t bit = 0; bit < len * 8; bit++)
		{
			image[bit / 8] ^= (uint8_t) (1 << bit % 8);
			refuse_image(image, len);
			image[bit / 8] ^= (uint8_t) (1 << bit % 8);
		}
		free(image);
	}
}

static void
test_lengths(void **state)
{
	(void) state;
	rng_state = 8;
	for (int c = 0; c < CORPUS; c++)
	{
		size_t		len;
		uint8_t    *image = corpus(c, &len);
		uint8_t    *longer = calloc(1, len + 700);

		memcpy(longer, image, len);
		for (size_t short_len = 0; short_len < len; short_len++)
		{
			BfHeader	h;
			BfError		err;
			uint8_t    *copy;

			refuse_image(image, short_len);
			/* fewer bytes at hand than the value is said to have */
			copy = exact_copy(image, short_len);
			if (bf_open_header(copy, short_len, len, &h, &err) == BF_OK)
				assert_true(short_len >= bf_header_size(&h));
			else
				assert_true(short_len < (size_t) bf_load16(image + 6));
			free(copy);
		}
		for (size_t more = 1; more <= 700; more++)
			refuse_image(longer, len + more);
		free(longer);
		free(image);
	}
}

/*
 * Fields that contradict each other, and claims far beyond the bytes.
 */
static void
test_contradictions(void **state)
{
	enum
	{
		PLAIN_EMPTY = 2, KEYED_EMPTY = 3, STANDARD = 4, BLOCKED = 5, UNSIZED = 0
	};
	static const struct
	{
		int			image;
		int			offset;
		int			width;
		uint64_t	value;
	}			changes[] = {
		/* bits set, kind, checksum: all or none */
		{STANDARD, 36, 8, 0}, {STANDARD, 36, 8, 1}, {STANDARD, 36, 8, 73},
		{STANDARD, 36, 8, UINT64_MAX}, {STANDARD, 9, 1, 0},
		{STANDARD, 48, 8, 0}, {STANDARD, 48, 8, 1},
		{PLAIN_EMPTY, 36, 8, 1}, {PLAIN_EMPTY, 9, 1, 2},
		{PLAIN_EMPTY, 48, 8, 1}, {PLAIN_EMPTY, 36, 8, UINT64_C(1) << 63},
		{UNSIZED, 9, 1, 1}, {UNSIZED, 36, 8, 1}, {UNSIZED, 48, 8, 9},
		/* m, capacity and k: all or none */
		{UNSIZED, 12, 8, 8}, {UNSIZED, 20, 8, 8}, {UNSIZED, 5, 1, 7},
		{UNSIZED, 44, 1, 1}, {PLAIN_EMPTY, 12, 8, 0}, {PLAIN_EMPTY, 20, 8, 0},
		{PLAIN_EMPTY, 5, 1, 0}, {STANDARD, 5, 1, 0}, {STANDARD, 20, 8, 0},
		/* out of range */
		{PLAIN_EMPTY, 5, 1, 65}, {PLAIN_EMPTY, 5, 1, 255}, {BLOCKED, 5, 1, 17},
		{PLAIN_EMPTY, 12, 8, 4}, {PLAIN_EMPTY, 12, 8, BF_MAX_BITS + 8},
		{PLAIN_EMPTY, 12, 8, UINT64_MAX}, {PLAIN_EMPTY, 12, 8, UINT64_MAX - 7},
		{PLAIN_EMPTY, 20, 8, BF_MAX_CAPACITY + 1},
		{PLAIN_EMPTY, 20, 8, UINT64_MAX},
		{KEYED_EMPTY, 12, 8, 520}, {KEYED_EMPTY, 12, 8, BF_MAX_BITS + 512},
		/* rates: 0, -0.01, 1, NaN, infinity, a denormal */
		{PLAIN_EMPTY, 28, 8, 0}, {PLAIN_EMPTY, 28, 8, 0xBF847AE147AE147B},
		{PLAIN_EMPTY, 28, 8, 0x3FF0000000000000},
		{PLAIN_EMPTY, 28, 8, 0x7FF8000000000000},
		{PLAIN_EMPTY, 28, 8, 0x7FF0000000000000}, {PLAIN_EMPTY, 28, 8, 1},
		/* claims beyond the bytes */
		{STANDARD, 12, 8, BF_MAX_BITS}, {BLOCKED, 12, 8, BF_MAX_BITS},
		{STANDARD, 12, 8, 64}, {BLOCKED, 12, 8, 1024}, {BLOCKED, 12, 8, 0},
		{STANDARD, 12, 8, UINT64_MAX - 7}, {BLOCKED, 12, 8, UINT64_C(1) << 63},
		{STANDARD, 6, 2, 0}, {STANDARD, 6, 2, 59}, {STANDARD, 6, 2, 61},
		{STANDARD, 6, 2, 124}, {STANDARD, 6, 2, 65535}, {STANDARD, 8, 1, 255},
		{STANDARD, 8, 1, 33}, {STANDARD, 8, 1, 1}, {STANDARD, 10, 2, 1},
		{STANDARD, 10, 2, 512}, {STANDARD, 10, 2, 513}, {STANDARD, 10, 2, 65535},
		{KEYED_EMPTY, 8, 1, 0}, {KEYED_EMPTY, 8, 1, 15},
		{KEYED_EMPTY, 8, 1, 255}, {KEYED_EMPTY, 10, 2, 1},
		{KEYED_EMPTY, 10, 2, 48},
		/* a key needs BLAKE2b; unknown ids; reserved bytes */
		{KEYED_EMPTY, 4, 1, 1}, {STANDARD, 4, 1, 0}, {STANDARD, 4, 1, 3},
		{STANDARD, 3, 1, 0}, {STANDARD, 3, 1, 3}, {STANDARD, 3, 1, 255},
		{STANDARD, 9, 1, 200}, {STANDARD, 9, 1, 255}, {STANDARD, 44, 1, 2},
		{STANDARD, 45, 1, 1}, {STANDARD, 46, 1, 1}, {STANDARD, 47, 1, 1},
		{STANDARD, 56, 1, 1}, {STANDARD, 57, 1, 1}, {STANDARD, 58, 1, 1},
		{STANDARD, 59, 1, 1}, {KEYED_EMPTY, 76, 1, 1}, {KEYED_EMPTY, 123, 1, 1},
		/* the layout's own unit */
		{STANDARD, 3, 1, 2}, {STANDARD, 2, 1, 0}, {STANDARD, 2, 1, 2},
		{STANDARD, 0, 2, 0}, {STANDARD, 0, 2, 0x4642 ^ 0x2020},
	};

	(void) state;
	rng_state = 9;
	for (size_t i = 0; i < lengthof(changes); i++)
	{
		size_t		len;
		uint8_t    *image = corpus(changes[i].image, &len);

		for (int b = 0; b < changes[i].width; b++)
			image[changes[i].offset + b] = (uint8_t) (changes[i].value >> 8 * b);
		/* the header's checksum is made right, or it would catch them all */
		if (changes[i].offset < 56 || changes[i].offset >= 60)
			reseal_header(image, len);
		refuse_image(image, len);
		free(image);
	}

	/* more bits set than there are: seen without counting */
	{
		size_t		len;
		uint8_t    *image = corpus(STANDARD, &len);
		BfFilter	f;
		BfError		err;

		bf_store64(image + 36, bf_load64(image + 12) + 1);
		assert_int_equal(bf_open(image, len, &f, &err), BF_CORRUPT);
		free(image);
	}

	/* the right number of bits, in other places */
	{
		size_t		len;
		uint8_t    *image = corpus(BLOCKED, &len);
		size_t		i = 60;

		while (image[i] == image[i + 1])
			i++;
		image[i] ^= image[i + 1];
		image[i + 1] ^= image[i];
		image[i] ^= image[i + 1];
		refuse_image(image, len);
		free(image);
	}

	/* a payload of zeros, though nothing is in the filter */
	{
		size_t		len;
		uint8_t    *image = corpus(PLAIN_EMPTY, &len);
		size_t		payload = bf_load64(image + 12) / 8;
		uint8_t    *zeros = calloc(1, len + payload);

		memcpy(zeros, image, len);
		refuse_image(zeros, len + payload);
		free(zeros);
		free(image);
	}

	/* a header that claims 512 MiB which are elsewhere */
	{
		size_t		len;
		uint8_t    *image = corpus(BLOCKED, &len);
		uint8_t    *head;
		BfHeader	h;
		BfError		err;

		bf_store64(image + 12, BF_MAX_BITS);
		head = exact_copy(image, 60);
		assert_int_equal(bf_open_header(head, 60, 60 + BF_MAX_BITS / 8, &h,
										&err), BF_OK);
		assert_int_equal(bf_open_header(head, 60, 59 + BF_MAX_BITS / 8, &h,
										&err), BF_CORRUPT);
		assert_int_equal(bf_open_header(head, 60, SIZE_MAX, &h, &err),
						 BF_CORRUPT);
		free(head);
		free(image);
	}
}

/*
 * Several bytes changed at once, mostly in the header, and lengths with them.
 */
static void
test_random_damage(void **state)
{
	(void) state;
	rng_state = 10;
	for (int round = 0; round < 100000; round++)
	{
		static const uint8_t likely[] = {0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF};
		size_t		len;
		uint8_t    *image = corpus((int) (rng() % CORPUS), &len);
		uint8_t    *copy;
		BfFilter	f;
		BfHeader	h;
		BfError		err;
		BfStatus	status;

		for (uint64_t changes = 1 + rng() % 4; changes > 0; changes--)
		{
			size_t		at = rng() % 4 ? rng() % 64 : rng() % len;

			if (at < len)
				image[at] = rng() % 2 ? likely[rng() % sizeof(likely)] :
					(uint8_t) rng();
		}
		if (rng() % 4 == 0)
			len -= rng() % (len + 1);
		copy = exact_copy(image, len);
		(void) bf_open_header(copy, len, len + rng() % 1000, &h, &err);
		status = bf_validate(copy, len, &f, &err);
		if (status == BF_OK)
			check_round_trip(copy, len, NULL);
		else
			assert_true(status == BF_CORRUPT || status == BF_UNKNOWN_VERSION);
		if (bf_open(copy, len, &f, &err) == BF_OK)
			exercise(&f);
		free(copy);
		free(image);
	}
}

/* ------------------------------------------------------------------------
 * The filter of a query
 * ------------------------------------------------------------------------
 */

/*
 * The rate at n elements in nwords words: as for blocked filters (blocked.c),
 * with blocks of 64 bits and k = 4.
 */
static double
words_rate(double nwords, double n)
{
	/* Stirling numbers of the second kind, S(4,i), and C(i,l) */
	static const double stirling[] = {0, 1, 7, 6, 1};
	static const double binomial[][5] = {{1}, {1, 1}, {1, 2, 1}, {1, 3, 3, 1}, {1, 4, 6, 4, 1}};
	double		rate = 0;

	for (int l = 0; l <= 4; l++)
	{
		double		unset = 1 - (1 - pow(1 - l / 64.0, 4)) / nwords;
		double		falling = 1;
		double		c = 0;

		for (int i = 1; i <= 4; i++)
		{
			falling *= 64 - i + 1;
			if (i >= l)
				c += stirling[i] * falling / pow(64, 4) * binomial[i][l];
		}
		rate += (l % 2 ? -c : c) * pow(unset, n);
	}
	return rate;
}

/*
 * No false negative, also when halved, and the rate of theory.
 */
static void
test_words(void **state)
{
	static const struct
	{
		int			bits_per_key;
		double		rate;
	}			cases[] = {{16, 0.0053}, {8, 0.0335}, {4, 0.1743}};
	const uint32_t nwords = 1 << 16;
	const uint32_t nkeys = nwords * 64 / 16;
	uint64_t   *words = calloc(nwords, sizeof(uint64_t));
	uint32_t	fresh = 0;

	(void) state;
	for (uint32_t i = 0; i < nkeys; i++)
	{
		fresh += bf_words_add(words, nwords - 1, bf_mix64(i));
		assert_false(bf_words_add(words, nwords - 1, bf_mix64(i)));
	}
	/* as many as were seen for the first time: nearly all */
	assert_in_range(fresh, nkeys * 0.99, nkeys);

	for (size_t c = 0; c < lengthof(cases); c++)
	{
		uint32_t	n = nwords >> c;
		const int	probes = 2000000;
		double		rate = words_rate(n, nkeys);
		double		passed = 0;

		assert_int_equal((uint64_t) n * 64 / nkeys, cases[c].bits_per_key);
		assert_true(fabs(rate - cases[c].rate) < 0.0001);
		for (uint32_t i = 0; i < nkeys; i++)
			assert_true(bf_words_test(words, n - 1, bf_mix64(i)));
		for (int i = 0; i < probes; i++)
			passed += bf_words_test(words, n - 1, bf_mix64(nkeys + (uint64_t) i));
		/* one filter varies by itself: 2% */
		assert_true(fabs(passed - probes * rate) <
					3 * sqrt(probes * rate) + 0.02 * probes * rate);
		bf_words_halve(words, n / 2);
	}
	free(words);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_digests),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_size_resize),
		cmocka_unit_test(test_size_monotone),
		cmocka_unit_test(test_size_blocked_bits_per_key),
		cmocka_unit_test(test_rates),
		cmocka_unit_test(test_parameters),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_capacity_for),
		cmocka_unit_test(test_positions),
		cmocka_unit_test(test_positions_large),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_add),
		cmocka_unit_test(test_add_many),
		cmocka_unit_test(test_or_and),
		cmocka_unit_test(test_popcount),
		cmocka_unit_test(test_combine_parameters),
		cmocka_unit_test(test_cardinality),
		cmocka_unit_test(test_extremes),
		cmocka_unit_test(test_expected_set),
		cmocka_unit_test(test_overfilled),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_golden_images),
		cmocka_unit_test(test_bit_flips),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_random_damage),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests_name("core", tests, NULL, NULL);
}
