/*-------------------------------------------------------------------------
 *
 * layouts.c
 *	  Unit tests of the counting, cuckoo and scalable filters, under cmocka.
 *
 * Built as unit.c is: every file of core/, -Icore, -lcmocka -lb2 -lm, and the
 * sanitizers.  Built with -O2 and without them, it goes to a million elements
 * in all that is measured.  Everything is deterministic.
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
#include <cmocka.h>

#include "bf.h"
#include "bytes.h"

typedef struct GoldenSize
{
	double		n;
	double		p;
	uint64_t	nbits;
	uint32_t	nhashes;
	double		rate;
} GoldenSize;

#include "golden_layouts.h"

#define lengthof(a) (sizeof(a) / sizeof((a)[0]))
#define VALUE_HEADER 64			/* a PostgreSQL value's: length word included */
#define STASH		64			/* bytes at the end of a cuckoo filter */
#define STRANGERS	(UINT64_C(1) << 40) /* elements from here on are absent */

#ifdef __SANITIZE_ADDRESS__
#define THOROUGH	false
#else
#define THOROUGH	true
#endif

static const BfLayout *const growing_layouts[] = {
	&bf_layout_standard, &bf_layout_blocked, &bf_layout_cuckoo
};

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
static BfDigest
element(uint64_t seed, uint64_t i)
{
	BfDigest	d;

	d.h1 = mix(mix(seed * 2 + 1) + i * UINT64_C(0x9E3779B97F4A7C15));
	d.h2 = mix(d.h1 ^ mix(seed * 2 + 2));
	return d;
}

static BfDigest
item(BfHash hash, const uint8_t *key, size_t keylen, int i)
{
	char		text[32];

	snprintf(text, sizeof(text), "item-%d", i);
	return bf_digest(hash, key, keylen, text, strlen(text));
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
pattern(uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t) (i * 31 + 7);
}

/* An empty filter of fixed size with room for its bits. */
static void
make_with(BfFilter *f, const BfLayout *layout, BfHash hash,
		  const uint8_t *key, size_t keylen, double n, double p)
{
	BfError		err;

	if (bf_header_init(&f->h, layout, hash, key, keylen, n, p, 0,
					   &err) != BF_OK)
		fail_msg("%s", err.message);
	f->nbytes = bf_payload_size(&f->h);
	f->bits = calloc(1, f->nbytes);
	assert_non_null(f->bits);
}

static void
make(BfFilter *f, const BfLayout *layout, double n, double p)
{
	make_with(f, layout, BF_HASH_XXH3, NULL, 0, n, p);
}

static void
wipe(BfFilter *f)
{
	memset(f->bits, 0, f->nbytes);
	f->h.nset = 0;
}

static BfFilter
copy_of(const BfFilter *f)
{
	BfFilter	copy = *f;

	copy.bits = exact_copy(f->bits, f->nbytes);
	return copy;
}

static void
must_add(BfFilter *f, BfDigest digest)
{
	BfError		err;

	if (bf_add(f, digest, &err) != BF_OK)
		fail_msg("%s capacity %llu fpr %g: %s", f->h.layout->name,
				 (unsigned long long) f->h.capacity, f->h.fpr, err.message);
}

/* Adding fails, says why, and changes nothing. */
static void
must_refuse(BfFilter *f, BfDigest digest, const char *message)
{
	BfFilter	before = copy_of(f);
	BfError		err;

	assert_int_equal(bf_add(f, digest, &err), BF_FULL);
	assert_int_equal(err.status, BF_FULL);
	if (strstr(err.message, message) == NULL ||
		strstr(err.hint, "DISTINCT") == NULL)
		fail_msg("%s (%s)", err.message, err.hint);
	assert_true(f->h.nset == before.h.nset);
	assert_memory_equal(f->bits, before.bits, f->nbytes);
	free(before.bits);
}

/* T q + 3 sqrt(T q (1 - q)) */
static double
bound(double t, double q)
{
	return t * q + 3 * sqrt(t * q * (1 - q));
}

/* ------------------------------------------------------------------------
 * Filters that grow, by the rules of type/scalable.c
 * ------------------------------------------------------------------------
 */
typedef struct Growing
{
	BfHeader	h;
	unsigned	n;
	BfFilter	layers[BF_MAX_LAYERS];
	uint8_t		entries[BF_MAX_LAYERS * BF_LAYER_ENTRY];
} Growing;

static void
grow_init_with(Growing *g, const BfLayout *layout, BfHash hash,
			   const uint8_t *key, size_t keylen, double capacity, double p,
			   int expansion)
{
	BfError		err;

	memset(g, 0, sizeof(*g));
	if (bf_header_init(&g->h, layout, hash, key, keylen, 0, p, 0,
					   &err) != BF_OK ||
		bf_header_expand(&g->h, expansion, &err) != BF_OK ||
		bf_header_resize(&g->h, capacity, &err) != BF_OK)
		fail_msg("%s", err.message);
}

static void
grow_init(Growing *g, const BfLayout *layout, double capacity, double p,
		  int expansion)
{
	grow_init_with(g, layout, BF_HASH_XXH3, NULL, 0, capacity, p, expansion);
}

static bool
grow_test(const Growing *g, BfDigest digest)
{
	for (unsigned i = g->n; i-- > 0;)
		if (bf_test(&g->layers[i], digest))
			return true;
	return false;
}

static BfStatus
grow_add(Growing *g, BfDigest digest, BfError *err)
{
	BfFilter   *last = g->n > 0 ? &g->layers[g->n - 1] : NULL;
	BfHeader	layer;

	if (!g->h.layout->multiset && grow_test(g, digest))
		return BF_OK;
	if (last != NULL && !bf_layer_is_full(&last->h, g->n == 1))
	{
		if (bf_add(last, digest, err) == BF_OK)
			return BF_OK;
		if (last->h.nset < last->h.capacity / 2)
			return err->status;
	}
	if (bf_plan_layer(&g->h, g->n, last != NULL ? &last->h : NULL, &layer,
					  err) != BF_OK)
		return err->status;
	last = &g->layers[g->n++];
	last->h = layer;
	last->nbytes = bf_payload_size(&layer);
	last->bits = calloc(1, last->nbytes);
	assert_non_null(last->bits);
	return bf_add(last, digest, err);
}

static void
must_grow(Growing *g, BfDigest digest)
{
	BfError		err;

	if (grow_add(g, digest, &err) != BF_OK)
		fail_msg("%s: %s", g->h.layout->name, err.message);
}

static bool
grow_remove(Growing *g, BfDigest digest)
{
	BfFilter   *holder = NULL;

	for (unsigned i = 0; i < g->n; i++)
	{
		if (!bf_test(&g->layers[i], digest))
			continue;
		if (holder != NULL)
			return false;
		holder = &g->layers[i];
	}
	return holder != NULL && bf_remove(holder, digest);
}

/* Bring the header up to date. */
static void
grow_header(Growing *g)
{
	g->h.nlayers = (uint8_t) g->n;
	g->h.nset = 0;
	g->h.layers = g->entries;
	for (unsigned i = 0; i < g->n; i++)
	{
		bf_write_layer_entry(&g->layers[i].h, g->entries + i * BF_LAYER_ENTRY);
		g->h.nset += g->layers[i].h.nset;
	}
}

static double
grow_bits(const Growing *g)
{
	double		nbits = 0;

	for (unsigned i = 0; i < g->n; i++)
		nbits += (double) g->layers[i].h.shape.nbits;
	return nbits;
}

static void
grow_free(Growing *g)
{
	for (unsigned i = 0; i < g->n; i++)
		free(g->layers[i].bits);
}

/* ------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------
 */
static uint8_t *
write_image(BfFilter *f, size_t *len)
{
	uint8_t    *image;

	if (f->h.nset == 0)
		f->bits = NULL;
	if (f->h.kind == BF_KIND_NONE)
		f->h.kind = f->h.nset > 0 ? BF_KIND_TEXT : BF_KIND_NONE;
	bf_seal(f);
	*len = bf_image_size(&f->h);
	image = malloc(*len);
	assert_non_null(image);
	bf_write_header(&f->h, image);
	if (f->bits != NULL)
		memcpy(image + bf_header_size(&f->h), f->bits, f->nbytes);
	return image;
}

/* In memory of exactly its length. */
static uint8_t *
image_of(const BfFilter *f, size_t *len)
{
	BfFilter	out = *f;

	return write_image(&out, len);
}

static uint8_t *
grow_image(Growing *g, size_t *len)
{
	BfFilter	out;
	uint8_t    *image;

	grow_header(g);
	out.h = g->h;
	out.nbytes = (size_t) grow_bits(g) / 8;
	out.bits = malloc(out.nbytes + 1);
	out.nbytes = 0;
	for (unsigned i = 0; i < g->n; i++)
	{
		memcpy(out.bits + out.nbytes, g->layers[i].bits, g->layers[i].nbytes);
		out.nbytes += g->layers[i].nbytes;
	}
	{
		uint8_t    *bits = out.bits;

		image = write_image(&out, len);
		free(bits);
	}
	return image;
}

static void
reseal_header(uint8_t *image, size_t len)
{
	size_t		size;

	if (len < 60 || (size = bf_load16(image + 6)) < 60 || size > len)
		return;
	bf_store32(image + 56, 0);
	bf_store32(image + 56, (uint32_t) bf_checksum(image, size));
}

/* Both checksums, so that they do not stand before what is to be tested. */
static void
reseal(uint8_t *image, size_t len)
{
	size_t		size;
	uint64_t	sum;

	if (len < 60 || (size = bf_load16(image + 6)) < 60 || size >= len)
		return;
	sum = bf_checksum(image + size, len - size);
	bf_store64(image + 48, sum == 0 ? 1 : sum);
	reseal_header(image, len);
}

/*
 * What is only read: also of an image that just bf_open looked at.
 */
static void
look_at(const BfFilter *f)
{
	volatile double sink = bf_cardinality(&f->h) + bf_expected_fpr(&f->h) +
		bf_design_fpr(&f->h);

	(void) sink;
	(void) bf_overfilled(&f->h);
	for (int i = 0; i < 20; i++)
		(void) bf_test(f, random_digest());
}

/*
 * All that may be done with a validated filter of fixed size: the sanitizers
 * watch.
 */
static void
operate_on(const BfFilter *given)
{
	BfFilter	f = *given;
	BfFilter	other = *given;
	BfRange		ranges[BF_MAX_RANGES];
	BfError		err;

	look_at(given);
	if (f.bits == NULL)
		return;
	f.bits = exact_copy(given->bits, given->nbytes);
	other.bits = exact_copy(given->bits, given->nbytes);
	for (int i = 0; i < 20; i++)
	{
		BfDigest	d = random_digest();
		uint32_t	n = f.h.layout->ranges(&f.h.shape, d, ranges);

		assert_in_range(n, 1, BF_MAX_RANGES);
		for (uint32_t r = 0; r < n; r++)
			assert_true(ranges[r].offset + ranges[r].length <= f.nbytes);
		if (bf_add(&f, d, &err) == BF_OK)
			assert_true(bf_test(&f, d));
	}
	if (f.h.layout->remove != NULL)
		for (int i = 0; i < 200; i++)
			(void) bf_remove(&f, random_digest());
	bf_recount(&f);
	if (bf_unite(&f, &other, &err) != BF_OK)
		assert_int_equal(err.status, BF_FULL);
	if (bf_unite(&other, given, &err) != BF_OK)
		assert_int_equal(err.status, BF_FULL);
	bf_intersect(&f, given);
	bf_intersect(&other, &f);
	look_at(&f);
	if (f.h.layout == &bf_layout_counting)
	{
		uint8_t    *plain = malloc(f.nbytes / 4);

		bf_counting_to_bits(f.bits, &f.h.shape, plain);
		free(plain);
	}
	while (bf_can_fold(&f.h))
		bf_fold(&f);
	free(f.bits);
	free(other.bits);
}

static void
operate_on_all(const BfFilter *f)
{
	if (f->h.expansion == 0)
		operate_on(f);
	else
		look_at(f);
	for (unsigned i = 0; i < f->h.nlayers; i++)
	{
		BfFilter	layer;
		uint8_t    *bits;

		bf_open_layer(f, i, &layer);
		(void) bf_layer_is_full(&layer.h, false);
		/* a layer alone, so that a byte of the next one would be noticed */
		layer.bits = bits = exact_copy(layer.bits, layer.nbytes);
		operate_on(&layer);
		free(bits);
	}
}

static void
check_valid(const uint8_t *bytes, size_t len)
{
	uint8_t    *image = exact_copy(bytes, len);
	uint8_t    *again = malloc(len);
	BfFilter	f;
	BfFilter	g;
	BfHeader	h;
	BfError		err;
	size_t		header_size;
	uint8_t    *head;

	if (bf_validate(image, len, &f, &err) != BF_OK)
		fail_msg("not valid: %s", err.message);
	assert_int_equal(bf_open(image, len, &g, &err), BF_OK);
	header_size = bf_header_size(&f.h);
	assert_int_equal((header_size + 4) % 64, 0);
	assert_true(header_size <= BF_MAX_HEADER);
	assert_int_equal(bf_image_size(&f.h), len);
	assert_true(g.bits == f.bits && g.nbytes == f.nbytes);

	/* the header alone is enough to know all about it */
	head = exact_copy(bytes, header_size);
	assert_int_equal(bf_open_header(head, header_size, len, &h, &err), BF_OK);
	assert_true(bf_cardinality(&h) == bf_cardinality(&f.h) ||
				isinf(bf_cardinality(&h)));
	assert_true(bf_expected_fpr(&h) == bf_expected_fpr(&f.h));
	assert_true(bf_image_size(&h) == len);
	free(head);

	memset(again, 0xA5, len);
	bf_write_header(&f.h, again);
	if (f.bits != NULL)
		memcpy(again + header_size, f.bits, f.nbytes);
	assert_memory_equal(again, bytes, len);
	operate_on_all(&f);
	/* all of that was done to copies */
	assert_memory_equal(image, bytes, len);
	free(again);
	free(image);
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
	if (bf_open(copy, len, &f, &err) == BF_OK)
		look_at(&f);
	(void) bf_open_header(copy, len, len, &h, &err);
	free(copy);
}

/* ------------------------------------------------------------------------
 * Sizes
 * ------------------------------------------------------------------------
 */
static void
test_sizes(void **state)
{
	(void) state;
	for (size_t i = 0; i < lengthof(golden_cuckoo); i++)
	{
		const GoldenSize *g = &golden_cuckoo[i];
		BfHeader	h;
		BfError		err;

		assert_int_equal(bf_header_init(&h, &bf_layout_cuckoo, BF_HASH_XXH3,
										NULL, 0, g->n, g->p, 0, &err), BF_OK);
		if (h.shape.nbits != g->nbits || h.shape.nhashes != g->nhashes)
			fail_msg("n = %g p = %g: %llu bits, %u, not %llu, %u", g->n, g->p,
					 (unsigned long long) h.shape.nbits, h.shape.nhashes,
					 (unsigned long long) g->nbits, g->nhashes);
		assert_true(fabs(bf_layout_cuckoo.rate(&h.shape, g->n) / g->rate - 1) <
					1e-9);
		assert_true(h.capacity == (uint64_t) g->n);
		assert_true(bf_cuckoo_slots(&h.shape) >= g->n);
	}

	/* header and stash included */
	for (double n = 1e4; n <= 1e8; n = floor(n * 1.37))
	{
		static const double most[][2] = {{0.01, 9.58}, {0.001, 12.9}};

		for (size_t i = 0; i < lengthof(most); i++)
		{
			BfShape		cuckoo = {0, 0};
			BfShape		standard = {0, 0};

			bf_layout_cuckoo.size(n, most[i][0], &cuckoo);
			bf_layout_standard.size(n, most[i][0], &standard);
			assert_true(((double) cuckoo.nbits + 8 * VALUE_HEADER) / n <=
						most[i][1]);
			assert_true(cuckoo.nbits < standard.nbits + 8 * VALUE_HEADER);
		}
	}
}

static void
test_counting_size(void **state)
{
	static const double rates[] = {0.9, 0.3, 0.1, 0.01, 0.001, 1e-4, 1e-6};

	(void) state;
	for (double n = 1; n < 1e8; n = n < 200 ? n + 1 : floor(n * 1.3))
		for (size_t i = 0; i < lengthof(rates); i++)
			for (int k = 0; k <= 5; k += 5)
			{
				BfHeader	c;
				BfHeader	s;
				BfError		err;

				if (bf_header_init(&c, &bf_layout_counting, BF_HASH_XXH3, NULL,
								   0, n, rates[i], k, &err) != BF_OK)
				{
					assert_int_equal(err.status, BF_TOO_LARGE);
					continue;
				}
				assert_int_equal(bf_header_init(&s, &bf_layout_standard,
												BF_HASH_XXH3, NULL, 0, n,
												rates[i], k, &err), BF_OK);
				assert_true(c.shape.nbits == 4 * s.shape.nbits);
				assert_int_equal(c.shape.nhashes, s.shape.nhashes);
				assert_true(bf_layout_counting.rate(&c.shape, n) ==
							bf_layout_standard.rate(&s.shape, n));
				assert_true(bf_layout_counting.count(&c.shape, 1) ==
							bf_layout_standard.count(&s.shape, 1));
				assert_true(bf_max_elements(&c) == bf_max_elements(&s));
			}
}

/*
 * Every layer is sized for its capacity at its rate, and the rates of all
 * layers that there can be stay below the target.
 */
static void
test_plan(void **state)
{
	static const double rates[] = {0.5, 0.1, 0.01, 0.001};

	(void) state;
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
		for (size_t r = 0; r < lengthof(rates); r++)
			for (int expansion = 1; expansion <= 16; expansion *= 2)
			{
				Growing		g;
				double		sum = 0;
				double		rate = rates[r] * 0.15;
				double		capacity = 10;
				BfHeader	last;

				grow_init(&g, growing_layouts[l], 10, rates[r], expansion);
				for (unsigned i = 0; i < BF_MAX_LAYERS; i++)
				{
					BfHeader	layer;
					BfHeader	alone;
					BfError		err;
					BfStatus	status = bf_plan_layer(&g.h, i,
													   i > 0 ? &last : NULL,
													   &layer, &err);

					if (status == BF_TOO_LARGE)
						break;
					if (rate < growing_layouts[l]->min_fpr)
					{
						assert_int_equal(status, BF_FULL);
						assert_true(strlen(err.hint) > 0);
						break;
					}
					assert_int_equal(status, BF_OK);
					assert_int_equal(bf_header_init(&alone, growing_layouts[l],
													BF_HASH_XXH3, NULL, 0,
													capacity, rate, 0, &err),
									 BF_OK);
					assert_true(layer.capacity == alone.capacity);
					assert_true(layer.shape.nbits == alone.shape.nbits);
					assert_true(layer.shape.nhashes == alone.shape.nhashes);
					assert_true(layer.fpr == rates[r]);
					assert_true(layer.expansion == 0 && layer.nlayers == 0);
					if (i == 0)
						assert_true(layer.shape.nbits == g.h.shape.nbits);
					sum += layer.layout->rate(&layer.shape, capacity);
					assert_true(sum <= rates[r] * 1.004);
					rate *= 0.85;
					capacity *= expansion;
					last = layer;
				}
				{
					BfHeader	layer;
					BfError		err;

					assert_int_not_equal(bf_plan_layer(&g.h, BF_MAX_LAYERS,
													   &last, &layer, &err),
										 BF_OK);
				}
			}
}

static void
test_expansion_parameters(void **state)
{
	BfHeader	h;
	BfError		err;

	(void) state;
	for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
	{
		static const int bad[] = {-1, 17, 1000, INT32_MIN, INT32_MAX};

		for (size_t i = 0; i < lengthof(bad); i++)
		{
			assert_int_equal(bf_header_init(&h, bf_layout_at(l), BF_HASH_XXH3,
											NULL, 0, 0, 0.01, 0, &err), BF_OK);
			assert_int_equal(bf_header_expand(&h, bad[i], &err),
							 BF_BAD_PARAMETER);
			assert_int_equal(h.expansion, 0);
		}
		for (int good = 0; good <= 16; good++)
		{
			BfStatus	status = bf_header_expand(&h, good, &err);

			if (bf_layout_at(l) == &bf_layout_counting && good > 0)
			{
				assert_int_equal(status, BF_BAD_PARAMETER);
				assert_non_null(strstr(err.message, "counting"));
				assert_non_null(strstr(err.hint, "cuckoo"));
			}
			else
			{
				assert_int_equal(status, BF_OK);
				assert_int_equal(h.expansion, good);
			}
		}
	}
}

/* ------------------------------------------------------------------------
 * Against an oracle
 * ------------------------------------------------------------------------
 */
#define ORACLE_OPS		1000000
#define ORACLE_CAPACITY 100000

/*
 * Either kind of filter.
 */
typedef struct Subject
{
	bool		growing;
	BfFilter	f;
	Growing		g;
} Subject;

static bool
subject_test(const Subject *s, BfDigest digest)
{
	return s->growing ? grow_test(&s->g, digest) : bf_test(&s->f, digest);
}

static BfStatus
subject_add(Subject *s, BfDigest digest)
{
	BfError		err;

	return s->growing ? grow_add(&s->g, digest, &err) :
		bf_add(&s->f, digest, &err);
}

static bool
subject_remove(Subject *s, BfDigest digest)
{
	return s->growing ? grow_remove(&s->g, digest) :
		bf_remove(&s->f, digest);
}

static BfHeader *
subject_header(Subject *s)
{
	if (!s->growing)
		return &s->f.h;
	grow_header(&s->g);
	return &s->g.h;
}

/*
 * Everything that was put in is found, strangers pass no more often than
 * they may, and the filter knows how many it holds.
 */
static void
check_against(Subject *s, uint64_t seed, const uint8_t *copies,
			  uint64_t universe, double held, double distinct, bool near_bound)
{
	const BfHeader *h = subject_header(s);
	double		expected = bf_expected_fpr(h);
	double		target = bf_design_fpr(h);
	double		t = 200000;
	double		passed = 0;
	double		n = distinct;
	double		is = h->layout == &bf_layout_cuckoo ? held : distinct;

	for (uint64_t i = 0; i < universe; i++)
		if (copies[i] > 0 && !subject_test(s, element(seed, i)))
			fail_msg("%s: element %llu was lost", h->layout->name,
					 (unsigned long long) i);
	for (uint64_t i = 0; i < (uint64_t) t; i++)
		passed += subject_test(s, element(seed, STRANGERS + i));
	if (passed > bound(t, target))
		fail_msg("%s of %g elements: %g of %g strangers passed, more than %g",
				 h->layout->name, distinct, passed, t, bound(t, target));
	/* and no fewer than it says, or it would not be what it seems */
	if ((is == distinct || s->growing) &&
		fabs(passed - t * expected) > 4 * sqrt(t * expected) + 0.02 * t * expected)
		fail_msg("%s of %g elements: %g of %g strangers passed, it says %g",
				 h->layout->name, distinct, passed, t, t * expected);
	if (is >= 10000 && fabs(bf_cardinality(h) / is - 1) > 0.02)
		fail_msg("%s: cardinality %g, not %g", h->layout->name,
				 bf_cardinality(h), is);
	/* of what differs: copies are compared again, but not passed again */
	if (!s->growing && is == distinct &&
		fabs(expected - h->layout->rate(&h->shape, n)) > 0.02 * expected)
		fail_msg("%s of %g elements: it expects %g, not %g", h->layout->name,
				 distinct, expected, h->layout->rate(&h->shape, n));
	if (near_bound)
		assert_false(bf_overfilled(h));
}

static void
against_oracle(const BfLayout *layout, int expansion, uint64_t seed,
			   int most_copies, int ops)
{
	static const double loads[] = {0.2, 0.7, 0.4, 1.0, 0.9, 1.0};
	uint64_t	universe = 2 * ORACLE_CAPACITY;
	uint8_t    *copies = calloc(1, universe);
	Subject		s;
	uint64_t	held = 0;		/* copies */
	uint64_t	distinct = 0;
	int			done = 0;
	bool		counts_distinct = layout != &bf_layout_cuckoo;

	rng_state = seed * 77;
	s.growing = expansion != 0;
	if (s.growing)
		grow_init(&s.g, layout, 500, 0.01, expansion);
	else
		make(&s.f, layout, ORACLE_CAPACITY, 0.01);

	for (size_t phase = 0; phase < lengthof(loads); phase++)
	{
		uint64_t	most = (uint64_t) (loads[phase] * ORACLE_CAPACITY);
		int			end = (int) ((double) ops * (phase + 1) / lengthof(loads));

		for (; done < end; done++)
		{
			uint64_t	i = rng() % universe;
			BfDigest	d = element(seed, i);
			uint64_t	load = counts_distinct ? distinct : held;
			/* mostly towards the load, all the way on the phase's last tenth */
			bool		up = load < most &&
				(rng() % 8 != 0 || end - done < ops / 60);

			if (rng() % 4 == 0)
			{
				bool		found = subject_test(&s, d);

				if (copies[i] > 0)
					assert_true(found);
			}
			else if (up)
			{
				if (copies[i] == most_copies)
					continue;
				if (subject_add(&s, d) != BF_OK)
				{
					/* only where repeats have filled a pair of buckets */
					assert_true(most_copies > 1 && s.f.h.layout->bounded);
					continue;
				}
				distinct += copies[i] == 0;
				copies[i]++;
				held++;
			}
			else if (layout->remove != NULL)
			{
				/* a present one, near where chance pointed */
				for (uint64_t tries = 0; tries < 100 && copies[i] == 0; tries++)
					i = (i + 1) % universe;
				if (copies[i] == 0)
					continue;
				if (!subject_remove(&s, element(seed, i)))
				{
					assert_true(s.growing);
					continue;
				}
				copies[i]--;
				held--;
				distinct -= copies[i] == 0;
			}
		}
		check_against(&s, seed, copies, universe, (double) held,
					  (double) distinct, true);
	}
	/* the load was what it should be */
	assert_true((double) (counts_distinct ? distinct : held) >=
				0.99 * ORACLE_CAPACITY);
	if (!s.growing && layout == &bf_layout_cuckoo)
	{
		assert_true(s.f.h.nset == held);
		bf_recount(&s.f);
		assert_true(s.f.h.nset == held);
	}

	/* and down to nothing */
	if (layout->remove != NULL && !s.growing)
	{
		for (uint64_t i = 0; i < universe; i++)
			for (; copies[i] > 0; copies[i]--)
				assert_true(bf_remove(&s.f, element(seed, i)));
		if (layout == &bf_layout_cuckoo)
			assert_true(s.f.h.nset == 0);
		bf_recount(&s.f);
		/* counters that stuck are left */
		assert_true((double) s.f.h.nset < 1e-4 * (double) s.f.h.shape.nbits);
		if (layout == &bf_layout_cuckoo)
			for (size_t i = 0; i < s.f.nbytes; i++)
				assert_int_equal(s.f.bits[i], 0);
	}
	if (s.growing)
		grow_free(&s.g);
	else
		free(s.f.bits);
	free(copies);
}

static void
test_oracle_counting(void **state)
{
	(void) state;
	for (uint64_t seed = 1; seed <= 3; seed++)
		against_oracle(&bf_layout_counting, 0, seed, seed == 3 ? 3 : 1,
					   ORACLE_OPS);
}

static void
test_oracle_cuckoo(void **state)
{
	(void) state;
	for (uint64_t seed = 11; seed <= 13; seed++)
		against_oracle(&bf_layout_cuckoo, 0, seed, 1, ORACLE_OPS);
}

static void
test_oracle_cuckoo_repeats(void **state)
{
	(void) state;
	for (uint64_t seed = 21; seed <= 23; seed++)
		against_oracle(&bf_layout_cuckoo, 0, seed, seed == 23 ? 8 : 3,
					   ORACLE_OPS);
}

static void
test_oracle_scalable(void **state)
{
	(void) state;
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
		for (uint64_t seed = 31; seed <= (THOROUGH ? 33 : 31); seed++)
			against_oracle(growing_layouts[l], seed == 33 ? 4 : 2, seed, 2,
						   THOROUGH ? ORACLE_OPS : ORACLE_OPS / 2);
}

/* ------------------------------------------------------------------------
 * Counting
 * ------------------------------------------------------------------------
 */

/*
 * Counters as plain numbers, with what sticks.
 */
static void
test_counting_reference(void **state)
{
	(void) state;
	rng_state = 40;
	for (int round = 0; round < 30; round++)
	{
		BfFilter	f;
		uint64_t	m;
		uint8_t    *counters;

		make(&f, &bf_layout_counting, 1 + round * 3, round % 2 ? 0.01 : 0.2);
		m = f.h.shape.nbits / 4;
		counters = calloc(1, m);
		for (int op = 0; op < 3000; op++)
		{
			BfDigest	d = element((uint64_t) round, rng() % 40);
			bool		add = rng() % 100 < (op < 1500 ? 60 : 40);
			bool		there = true;
			uint64_t	pos[64];
			uint64_t	nset = 0;

			for (uint32_t i = 0; i < f.h.shape.nhashes; i++)
			{
				pos[i] = (uint64_t) (((unsigned __int128) d.h1 +
									  (unsigned __int128) i * (d.h2 | 1)) % m);
				there &= counters[pos[i]] > 0;
			}
			assert_true(bf_test(&f, d) == there);
			if (add)
				must_add(&f, d);
			else
				assert_true(bf_remove(&f, d) == there);
			for (uint32_t i = 0; (add || there) && i < f.h.shape.nhashes; i++)
			{
				uint8_t    *c = &counters[pos[i]];

				if (*c == 15)
					continue;
				if (add)
					(*c)++;
				else if (*c > 0)
					(*c)--;
			}
			for (uint64_t i = 0; i < m; i++)
			{
				nset += counters[i] > 0;
				assert_int_equal(f.bits[i / 2] >> i % 2 * 4 & 15, counters[i]);
			}
			assert_true(f.h.nset == nset);
		}
		free(counters);
		free(f.bits);
	}
}

/*
 * One key added 40 times and removed 40 times: its counters stuck on the way,
 * and no other key is lost.
 */
static void
test_counting_sticks(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 20; seed++)
	{
		BfFilter	f;
		BfDigest	d = element(seed, STRANGERS);

		make(&f, &bf_layout_counting, 1000, 0.01);
		for (uint64_t i = 0; i < 500; i++)
			must_add(&f, element(seed, i));
		for (int i = 0; i < 40; i++)
			must_add(&f, d);
		for (uint64_t i = 500; i < 999; i++)
			must_add(&f, element(seed, i));
		for (int i = 0; i < 40; i++)
			assert_true(bf_remove(&f, d));
		assert_true(bf_test(&f, d));
		for (uint64_t i = 0; i < 999; i++)
			assert_true(bf_test(&f, element(seed, i)));
		/* what is removed goes, but for the counters that stuck */
		for (uint64_t i = 0; i < 999; i++)
			assert_true(bf_remove(&f, element(seed, i)));
		assert_in_range(f.h.nset, 1, f.h.shape.nhashes);
		free(f.bits);
	}

	/* fourteen times is not too often */
	for (uint64_t seed = 0; seed < 20; seed++)
	{
		BfFilter	f;
		BfFilter	before;
		BfDigest	d = element(seed, 0);

		make(&f, &bf_layout_counting, 1000, 0.01);
		before = copy_of(&f);
		for (int i = 0; i < 14; i++)
			must_add(&f, d);
		for (int i = 0; i < 14; i++)
			assert_true(bf_remove(&f, d));
		assert_false(bf_remove(&f, d));
		assert_memory_equal(f.bits, before.bits, f.nbytes);
		free(before.bits);
		free(f.bits);
	}
}

static void
test_counting_combine(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 10; seed++)
	{
		BfFilter	a;
		BfFilter	b;
		BfFilter	sum;
		BfFilter	all;
		BfFilter	plain;
		BfError		err;

		make(&a, &bf_layout_counting, 300, 0.01);
		make(&b, &bf_layout_counting, 300, 0.01);
		make(&all, &bf_layout_counting, 300, 0.01);
		make(&plain, &bf_layout_standard, 300, 0.01);
		for (uint64_t i = 0; i < 200; i++)
			for (uint64_t copy = 0; copy <= (i < 3 ? 9 : i % 3); copy++)
			{
				must_add(i % 2 && i >= 3 ? &b : &a, element(seed, i));
				if (i < 3)
					must_add(&b, element(seed, i));
				must_add(&all, element(seed, i));
				if (i < 3)
					must_add(&all, element(seed, i));
				must_add(&plain, element(seed, i));
			}

		/* the counters of all elements; 10 and 10 of one key stick */
		sum = copy_of(&a);
		assert_int_equal(bf_unite(&sum, &b, &err), BF_OK);
		assert_memory_equal(sum.bits, all.bits, all.nbytes);
		assert_true(sum.h.nset == all.h.nset);

		/* the smaller counters: what is in both stays, as often */
		bf_intersect(&sum, &a);
		assert_memory_equal(sum.bits, a.bits, a.nbytes);
		bf_intersect(&sum, &b);
		for (uint64_t i = 0; i < a.h.shape.nbits / 4; i++)
		{
			int			x = a.bits[i / 2] >> i % 2 * 4 & 15;
			int			y = b.bits[i / 2] >> i % 2 * 4 & 15;

			assert_int_equal(sum.bits[i / 2] >> i % 2 * 4 & 15, x < y ? x : y);
		}
		for (uint64_t i = 0; i < 3; i++)
			for (int copy = 0; copy < 10; copy++)
				assert_true(bf_remove(&sum, element(seed, i)));

		/* the plain filter of all, bit for bit */
		{
			uint8_t    *bits = malloc(plain.nbytes);

			assert_int_equal(all.nbytes, 4 * plain.nbytes);
			bf_counting_to_bits(all.bits, &all.h.shape, bits);
			assert_memory_equal(bits, plain.bits, plain.nbytes);
			assert_true(all.h.nset == plain.h.nset);
			assert_true(bf_cardinality(&all.h) == bf_cardinality(&plain.h));
			assert_true(bf_expected_fpr(&all.h) == bf_expected_fpr(&plain.h));
			free(bits);
		}
		free(a.bits);
		free(b.bits);
		free(all.bits);
		free(plain.bits);
		free(sum.bits);
	}
}

/*
 * Every counter at 15: all passes, and nothing changes any more.
 */
static void
test_counting_saturated(void **state)
{
	BfFilter	f;
	BfFilter	full;
	BfError		err;

	(void) state;
	rng_state = 41;
	make(&f, &bf_layout_counting, 10, 0.01);
	memset(f.bits, 0xFF, f.nbytes);
	bf_recount(&f);
	full = copy_of(&f);
	assert_true(f.h.nset == f.h.shape.nbits / 4);
	assert_true(isinf(bf_cardinality(&f.h)));
	assert_true(bf_expected_fpr(&f.h) == 1);
	assert_true(bf_overfilled(&f.h));
	for (int i = 0; i < 100; i++)
	{
		assert_true(bf_test(&f, random_digest()));
		must_add(&f, random_digest());
		assert_true(bf_remove(&f, random_digest()));
		assert_int_equal(bf_unite(&f, &full, &err), BF_OK);
		bf_intersect(&f, &full);
		assert_memory_equal(f.bits, full.bits, f.nbytes);
	}
	free(full.bits);
	free(f.bits);
}

/* ------------------------------------------------------------------------
 * Cuckoo
 * ------------------------------------------------------------------------
 */

/* Places, written down once more from the comment that heads cuckoo.c. */
static uint64_t
other_of(uint64_t nbuckets, uint64_t i, uint32_t fp)
{
	uint64_t	x = fp * UINT64_C(0x9E3779B97F4A7C15) >> 32;
	uint64_t	g = 2 * (x * (nbuckets / 2) >> 32) + 1;

	return (g + nbuckets - i) % nbuckets;
}

static uint64_t
buckets_of(const BfShape *shape)
{
	return (shape->nbits / 8 - STASH) * 8 / (4 * shape->nhashes - 4);
}

/* A digest with that first bucket and fingerprint. */
static BfDigest
aim(const BfShape *shape, uint64_t bucket, uint32_t fp)
{
	uint64_t	values = (UINT64_C(1) << shape->nhashes) - 1;
	uint64_t	nbuckets = buckets_of(shape);
	BfDigest	d;

	/* the least whose product reaches it */
	d.h1 = ((bucket << 32) + nbuckets - 1) / nbuckets << 32 | (rng() >> 32);
	d.h2 = (((uint64_t) (fp - 1) << 32) + values - 1) / values << 32 |
		(rng() >> 32);
	assert_true((d.h1 >> 32) * nbuckets >> 32 == bucket);
	assert_true(((d.h2 >> 32) * values >> 32) + 1 == fp);
	return d;
}

static void
test_cuckoo_buckets(void **state)
{
	(void) state;
	rng_state = 50;

	/* for every even number of buckets it is its own inverse */
	for (uint64_t nbuckets = 2; nbuckets < (UINT64_C(1) << 29);
		 nbuckets += nbuckets < 3000 ? 2 : 2 * (1 + rng() % (nbuckets / 20)))
		for (int round = 0; round < 50; round++)
		{
			uint32_t	fp = 1 + (uint32_t) (rng() >> (32 + rng() % 28)) / 2;
			uint64_t	i = rng() % nbuckets;
			uint64_t	other = other_of(nbuckets, i, fp);

			assert_true(other < nbuckets);
			assert_true(other != i && (other ^ i) % 2 == 1);
			assert_true(other_of(nbuckets, other, fp) == i);
		}

	/* and that is where the core looks */
	for (double n = 1; n < 1e8; n = n < 500 ? n + 1 : floor(n * 1.09))
		for (int round = 0; round < 30; round++)
		{
			static const double rates[] = {0.5, 0.1, 0.01, 1e-3, 1e-6, 1e-8};
			BfShape		shape = {0, 0};
			uint64_t	nbuckets;
			uint64_t	i;
			uint64_t	other;
			uint32_t	fp;
			BfRange		ranges[BF_MAX_RANGES];

			bf_layout_cuckoo.size(n, rates[round % 6], &shape);
			assert_true(bf_layout_cuckoo.fits(&shape));
			nbuckets = buckets_of(&shape);
			assert_int_equal(nbuckets % 2, 0);
			i = rng() % nbuckets;
			fp = 1 + (uint32_t) (rng() % ((UINT64_C(1) << shape.nhashes) - 1));
			other = other_of(nbuckets, i, fp);
			assert_int_equal(bf_layout_cuckoo.ranges(&shape,
													 aim(&shape, i, fp),
													 ranges), 3);
			assert_true(ranges[0].offset == (i < other ? i : other) *
						(4 * shape.nhashes - 4) / 8);
			assert_true(ranges[1].offset == (i < other ? other : i) *
						(4 * shape.nhashes - 4) / 8);
			assert_true(ranges[2].offset + STASH == shape.nbits / 8);
			for (int r = 0; r < 3; r++)
				assert_true(ranges[r].offset + ranges[r].length <=
							shape.nbits / 8);
		}
}

/*
 * Semi-sorting: four nibbles are one number, and back.
 */
static void
test_cuckoo_semisort(void **state)
{
	/* two buckets of 4-bit fingerprints: numbers alone, then the stash */
	BfShape		shape = {(3 + STASH) * 8, 4};
	uint8_t		bits[3 + STASH];

	(void) state;
	rng_state = 51;
	assert_true(bf_layout_cuckoo.fits(&shape));
	assert_int_equal(lengthof(golden_nibbles), 3876);
	for (uint32_t number = 0; number < 4096; number++)
	{
		uint32_t	nibbles[4];
		uint32_t	held = 0;

		memset(bits, 0, sizeof(bits));
		bf_store16(bits, (uint16_t) number);
		assert_true(bf_layout_cuckoo.validate(bits, &shape) ==
					(number < 3876));
		if (number >= 3876)
		{
			assert_int_equal(bf_layout_cuckoo.recount(bits, &shape), 0);
			continue;
		}

		/* from a number to fingerprints ... */
		for (int s = 0; s < 4; s++)
		{
			nibbles[s] = golden_nibbles[number] >> 4 * s & 15;
			held += nibbles[s] != 0;
		}
		assert_int_equal(bf_layout_cuckoo.recount(bits, &shape), held);
		for (uint32_t fp = 1; fp < 16; fp++)
		{
			bool		there = false;

			for (int s = 0; s < 4; s++)
				there |= nibbles[s] == fp;
			assert_true(bf_layout_cuckoo.test(bits, &shape,
											  aim(&shape, 0, fp)) == there);
		}

		/* ... and from fingerprints, in any order, to the number */
		for (int round = 0; round < 6; round++)
		{
			memset(bits, 0, sizeof(bits));
			for (int s = 3; s > 0; s--)
			{
				int			j = (int) (rng() % (uint64_t) (s + 1));
				uint32_t	swap = nibbles[s];

				nibbles[s] = nibbles[j];
				nibbles[j] = swap;
			}
			for (int s = 0; s < 4; s++)
				if (nibbles[s] != 0)
					assert_int_equal(bf_layout_cuckoo.add(bits, &shape,
														  aim(&shape, 0,
															  nibbles[s])), 1);
			assert_int_equal(bf_load16(bits), number);
			for (size_t i = 2; i < sizeof(bits); i++)
				assert_int_equal(bits[i], 0);
		}
	}
}

/*
 * Buckets of every width, at every offset: what is written is read, and the
 * neighbours stay.
 */
static void
test_cuckoo_widths(void **state)
{
	(void) state;
	rng_state = 52;
	for (uint32_t f = 4; f <= 32; f++)
	{
		uint64_t	nbuckets = 10;
		BfShape		shape = {((nbuckets * (4 * f - 4) + 7) / 8 + STASH) * 8, f};
		uint32_t	fps[10][4];
		uint8_t    *bits = calloc(1, shape.nbits / 8);

		assert_true(bf_layout_cuckoo.fits(&shape));
		for (uint64_t i = 0; i < nbuckets; i++)
			for (int s = 0; s < 4; s++)
			{
				BfDigest	d;

				fps[i][s] = 1 + (uint32_t) (rng() % ((UINT64_C(1) << f) - 1));
				/* the extremes */
				if (rng() % 8 == 0)
					fps[i][s] = (uint32_t) ((UINT64_C(1) << f) - 1);
				if (rng() % 8 == 0)
					fps[i][s] = 1;
				d = aim(&shape, i, fps[i][s]);
				assert_int_equal(bf_layout_cuckoo.add(bits, &shape, d), 1);
				assert_true(bf_layout_cuckoo.validate(bits, &shape));
				assert_int_equal(bf_layout_cuckoo.recount(bits, &shape),
								 i * 4 + (uint64_t) s + 1);
			}
		/* in any order */
		for (int left = 40; left > 0;)
		{
			uint64_t	i = rng() % nbuckets;
			uint64_t	s = rng() % 4;

			for (uint64_t j = 0; j < nbuckets; j++)
				for (int k = 0; k < 4; k++)
					if (fps[j][k] != 0)
						assert_true(bf_layout_cuckoo.test(
							bits, &shape, aim(&shape, j, fps[j][k])));
			if (fps[i][s] == 0)
				continue;
			assert_int_equal(bf_layout_cuckoo.remove(bits, &shape,
													 aim(&shape, i, fps[i][s])),
							 1);
			fps[i][s] = 0;
			left--;
			assert_true(bf_layout_cuckoo.validate(bits, &shape));
			assert_int_equal(bf_layout_cuckoo.recount(bits, &shape), left);
		}
		for (uint64_t i = 0; i < shape.nbits / 8; i++)
			assert_int_equal(bits[i], 0);
		free(bits);
	}
}

/*
 * Eight times into a fresh filter, and the ninth is an error.
 */
static void
test_cuckoo_copies(void **state)
{
	static const double sizes[] = {10, 50, 1000, 100000};

	(void) state;
	for (size_t n = 0; n < lengthof(sizes); n++)
		for (uint64_t seed = 0; seed < 50; seed++)
		{
			BfFilter	f;
			BfDigest	d = element(seed, 0);

			make(&f, &bf_layout_cuckoo, sizes[n], 0.01);
			for (int round = 0; round < 3; round++)
			{
				for (uint64_t copy = 1; copy <= 8; copy++)
				{
					must_add(&f, d);
					assert_true(f.h.nset == copy);
				}
				must_refuse(&f, d, "holds 8 elements, its capacity is");
				assert_true(bf_cardinality(&f.h) == 8);
				for (uint64_t copy = 8; copy > 0; copy--)
				{
					assert_true(bf_test(&f, d));
					assert_true(bf_remove(&f, d));
					assert_true(f.h.nset == copy - 1);
				}
				assert_false(bf_test(&f, d));
				assert_false(bf_remove(&f, d));
				for (size_t i = 0; i < f.nbytes; i++)
					assert_int_equal(f.bits[i], 0);
			}
			/* among others it finds its place too, or says that it does not */
			if (sizes[n] >= 50)
			{
				BfError		err;
				int			copies = 0;

				for (uint64_t i = 1; i < (uint64_t) sizes[n] * 9 / 10; i++)
					must_add(&f, element(seed, i));
				while (f.h.nset < f.h.capacity &&
					   bf_add(&f, d, &err) == BF_OK)
					copies++;
				assert_in_range(copies, 1, 8);
				for (int i = 0; i < copies; i++)
					assert_true(bf_remove(&f, d));
				for (uint64_t i = 1; i < (uint64_t) sizes[n] * 9 / 10; i++)
					assert_true(bf_test(&f, element(seed, i)));
			}
			free(f.bits);
		}
}

/*
 * A filter takes its whole capacity, and no more.
 */
static void
fill_up(const BfLayout *layout, double n, double p, uint64_t seed,
		double *strangers, double *passed)
{
	BfFilter	f;
	uint64_t	lost = 0;
	char		message[64];

	make(&f, layout, n, p);
	for (uint64_t i = 0; i < (uint64_t) n; i++)
		must_add(&f, element(seed, i));
	for (uint64_t i = 0; i < (uint64_t) n; i++)
		lost += !bf_test(&f, element(seed, i));
	assert_int_equal(lost, 0);
	assert_false(bf_overfilled(&f.h));
	if (layout->bounded)
	{
		assert_true(f.h.nset == (uint64_t) n);
		snprintf(message, sizeof(message), "it holds %.0f elements, its capacity",
				 n);
		must_refuse(&f, element(seed, STRANGERS), message);
		must_refuse(&f, element(seed, 0), message);
		assert_true(layout->validate(f.bits, &f.h.shape));
		/* the stash is for emergencies: every probe would have to look there */
		if (n >= 1000)
			assert_true(bf_load64(f.bits + f.nbytes - STASH) == 0);
	}
	for (uint64_t i = 0; strangers != NULL && i < 200; i++)
	{
		++*strangers;
		*passed += bf_test(&f, element(seed, STRANGERS + i));
	}
	free(f.bits);
}

static void
test_cuckoo_capacity(void **state)
{
	static const double sizes[] = {10, 100, 1e4};
	static const double rates[] = {0.9, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01, 1e-3,
	1e-6, 1e-8};

	(void) state;
	for (size_t r = 0; r < lengthof(rates); r++)
		for (size_t n = 0; n < lengthof(sizes); n++)
			for (uint64_t seed = 0; seed < 20; seed++)
				fill_up(&bf_layout_cuckoo, sizes[n], rates[r], 600 + seed,
						NULL, NULL);
	for (size_t r = 0; r < lengthof(rates); r++)
	{
		/* the sanitizers have no more to see in the twentieth */
		uint64_t	seeds = rates[r] == 0.01 ? THOROUGH ? 20 : 2 :
			THOROUGH ? 2 : 0;

		for (uint64_t seed = 0; seed < seeds; seed++)
			fill_up(&bf_layout_cuckoo, 1e6, rates[r], 700 + seed, NULL, NULL);
	}
}

/*
 * Every n from 1 to 200.
 */
static void
test_small(void **state)
{
	static const double rates[] = {0.9, 0.5, 0.3, 0.1, 0.03, 0.01, 0.001, 1e-4,
	1e-6, 1e-8};

	(void) state;
	for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
		for (size_t r = 0; r < lengthof(rates); r++)
		{
			const BfLayout *layout = bf_layout_at(l);
			double		q = 0;
			double		t = 0;
			double		passed = 0;

			if (rates[r] < layout->min_fpr)
				continue;
			for (uint64_t n = 1; n <= 200; n++)
				for (uint64_t seed = 0; seed < (layout->bounded ? 10 : 3); seed++)
				{
					BfShape		shape = {0, 0};

					layout->size((double) n, rates[r], &shape);
					/* the formula's rate may be higher, where k is rounded */
					q += 200 * fmax(rates[r],
									layout->rate(&shape, (double) n));
					fill_up(layout, (double) n, rates[r], 1000 * n + seed, &t,
							&passed);
				}
			if (passed > bound(t, q / t))
				fail_msg("%s at %g: %g of %g strangers passed, more than %g",
						 layout->name, rates[r], passed, t, bound(t, q / t));
		}
}

/*
 * More of one pair of buckets than it can hold: the stash has them, and gives
 * them back to their buckets when there is room.
 */
static void
test_cuckoo_stash(void **state)
{
	(void) state;
	rng_state = 53;
	for (int round = 0; round < 200; round++)
	{
		BfFilter	f;
		uint64_t	nbuckets;
		uint32_t	fps[16];
		BfDigest	digests[16];
		bool		there[16] = {false};
		uint64_t	i;
		uint64_t	other = 0;
		int			n = 0;

		make(&f, &bf_layout_cuckoo, 100, 0.001);
		nbuckets = buckets_of(&f.h.shape);
		i = rng() % nbuckets;

		/* sixteen fingerprints of one pair */
		while (n < 16)
		{
			uint32_t	fp = 1 + (uint32_t) (rng() % 8191);
			bool		known = false;

			if (n == 0)
				other = other_of(nbuckets, i, fp);
			for (int j = 0; j < n; j++)
				known |= fps[j] == fp;
			if (other_of(nbuckets, i, fp) != other || known)
				continue;
			fps[n] = fp;
			digests[n] = aim(&f.h.shape, n % 2 ? i : other, fp);
			must_add(&f, digests[n]);
			there[n] = true;
			n++;
			assert_int_equal(bf_load64(f.bits + f.nbytes - STASH) != 0, n > 8);
		}
		assert_true(bf_load64(f.bits + f.nbytes - 8) != 0);
		{
			uint32_t	fp = fps[0];

			while (fp == fps[0] || other_of(nbuckets, i, fp) != other)
				fp = 1 + (uint32_t) (rng() % 8191);
			must_refuse(&f, aim(&f.h.shape, i, fp),
						"no room for the element: the filter holds 16 elements, its capacity is 100");
		}

		/* out and in again, at random */
		for (int op = 0; op < 300; op++)
		{
			int			j = (int) (rng() % 16);
			int			held = 0;
			int			stashed = 0;

			if (there[j])
				assert_true(bf_remove(&f, digests[j]));
			else
				must_add(&f, digests[j]);
			there[j] = !there[j];
			for (j = 0; j < 16; j++)
			{
				held += there[j];
				assert_true(bf_test(&f, digests[j]) == there[j]);
			}
			for (j = 0; j < 8; j++)
				stashed += bf_load64(f.bits + f.nbytes - STASH + j * 8) != 0;
			assert_true(f.h.nset == (uint64_t) held);
			assert_int_equal(stashed, held > 8 ? held - 8 : 0);
			assert_true(bf_layout_cuckoo.validate(f.bits, &f.h.shape));
			assert_int_equal(bf_layout_cuckoo.recount(f.bits, &f.h.shape),
							 held);
		}
		free(f.bits);
	}
}

static void
test_cuckoo_combine(void **state)
{
	(void) state;
	for (uint64_t seed = 0; seed < 30; seed++)
	{
		uint64_t	n = seed < 20 ? 40 + 17 * seed : 20000;
		BfFilter	a;
		BfFilter	b;
		BfFilter	c;
		BfError		err;
		uint64_t	stays = 0;

		/* to the very capacity */
		make(&a, &bf_layout_cuckoo, (double) n, 0.001);
		make(&b, &bf_layout_cuckoo, (double) n, 0.001);
		for (uint64_t i = 0; i < n; i++)
			must_add(i % 3 ? &a : &b, element(seed, i));
		c = copy_of(&b);
		if (bf_unite(&c, &a, &err) != BF_OK || bf_unite(&a, &b, &err) != BF_OK)
			fail_msg("%s", err.message);
		assert_true(a.h.nset == n && c.h.nset == n);
		for (uint64_t i = 0; i < n; i++)
			assert_true(bf_test(&a, element(seed, i)) &&
						bf_test(&c, element(seed, i)));
		free(a.bits);
		free(b.bits);
		free(c.bits);

		/* and every copy counts */
		make(&a, &bf_layout_cuckoo, ceil((double) n * 1.2), 0.001);
		make(&b, &bf_layout_cuckoo, ceil((double) n * 1.2), 0.001);
		for (uint64_t i = 0; i < n / 2; i++)
			must_add(&a, element(seed, i));
		for (uint64_t i = 0; i < n - n / 2; i++)
			must_add(&b, element(seed, n / 4 + i));
		c = copy_of(&a);
		if (bf_unite(&c, &b, &err) != BF_OK)
			fail_msg("%s", err.message);
		assert_true(c.h.nset == n);
		assert_true(bf_layout_cuckoo.validate(c.bits, &c.h.shape));
		for (uint64_t i = 0; i < n / 4 + n - n / 2; i++)
			assert_true(bf_test(&c, element(seed, i)));
		for (uint64_t i = n / 4; i < n / 2; i++)
		{
			assert_true(bf_remove(&c, element(seed, i)));
			assert_true(bf_test(&c, element(seed, i)));
		}
		for (uint64_t i = 0; i < n / 4 + n - n / 2; i++)
			assert_true(bf_remove(&c, element(seed, i)));
		assert_int_equal(c.h.nset, 0);
		free(c.bits);

		/* one more is too many, and is known before anything is changed */
		while (a.h.nset + b.h.nset <= a.h.capacity)
			must_add(&b, element(seed, STRANGERS + b.h.nset));
		c = copy_of(&a);
		assert_int_equal(bf_unite(&c, &b, &err), BF_FULL);
		assert_memory_equal(c.bits, a.bits, a.nbytes);
		assert_non_null(strstr(err.message, "does not fit"));
		assert_non_null(strstr(err.hint, "capacity for all"));
		while (b.h.nset > n - n / 2)
			assert_true(bf_remove(&b, element(seed, STRANGERS + b.h.nset - 1)));

		bf_intersect(&c, &b);
		assert_true(bf_layout_cuckoo.validate(c.bits, &c.h.shape));
		for (uint64_t i = n / 4; i < n / 2; i++)
			assert_true(bf_test(&c, element(seed, i)));
		for (uint64_t i = 0; i < n / 4; i++)
			stays += bf_test(&c, element(seed, i));
		assert_true((double) stays <= bound((double) n / 4, 0.002) + 3);
		assert_true(c.h.nset >= n / 2 - n / 4 && c.h.nset <= n / 2);

		/* with itself, and with nothing */
		bf_intersect(&a, &a);
		assert_int_equal(a.h.nset, n / 2);
		wipe(&b);
		bf_intersect(&a, &b);
		assert_int_equal(a.h.nset, 0);
		free(a.bits);
		free(b.bits);
		free(c.bits);
	}
}

/* ------------------------------------------------------------------------
 * Scalable
 * ------------------------------------------------------------------------
 */

/*
 * From start to goal: at every doubling all is found, and the strangers that
 * pass stay under the bound.
 */
static void
grow_far(const BfLayout *layout, double start, uint64_t goal, double p,
		 int expansion, uint64_t seed)
{
	Growing		g;
	uint64_t	n = 0;
	uint64_t	next = (uint64_t) start;
	double		right;
	double		most = 0;
	BfShape		shape = {0, 0};

	grow_init(&g, layout, start, p, expansion);
	for (;;)
	{
		double		t = 100000;
		double		passed = 0;

		for (; n < next; n++)
			must_grow(&g, element(seed, n));
		for (uint64_t i = 0; i < n; i++)
			if (!grow_test(&g, element(seed, i)))
				fail_msg("%s: element %llu was lost", layout->name,
						 (unsigned long long) i);
		for (uint64_t i = 0; i < (uint64_t) t; i++)
			passed += grow_test(&g, element(seed, STRANGERS + i));
		grow_header(&g);
		if (passed > bound(t, p))
			fail_msg("%s from %g by %d to %llu: %g of %g strangers passed, more than %g",
					 layout->name, start, expansion, (unsigned long long) n,
					 passed, t, bound(t, p));
		most = fmax(most, passed / t);
		assert_true(bf_expected_fpr(&g.h) <= 1.03 * p);
		assert_false(bf_overfilled(&g.h));
		if (n >= 10000)
			assert_true(fabs(bf_cardinality(&g.h) / (double) n - 1) < 0.02);
		if (n == goal)
			break;
		next = next * 2 < goal ? next * 2 : goal;
	}
	layout->size((double) n, p, &shape);
	right = (double) shape.nbits;
	print_message("%-8s from %6.0f by %2d to %llu: %2u layers, %5.2f bits a key, %.2f x one sized right, at most %.5f of %g passed\n",
				  layout->name, start, expansion, (unsigned long long) n, g.n,
				  grow_bits(&g) / (double) n, grow_bits(&g) / right, most, p);
	if (n == 1000000 && p == 0.01 && expansion == 2 && start >= 1000 &&
		layout != &bf_layout_cuckoo)
		assert_true(grow_bits(&g) <= 2.2 * right);
	grow_free(&g);
}

static void
test_scalable_growth(void **state)
{
	static const double starts[] = {100, 1000, 10000};
	uint64_t	goal = THOROUGH ? 1000000 : 30000;

	(void) state;
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
	{
		for (size_t s = 0; s < lengthof(starts); s++)
			grow_far(growing_layouts[l], starts[s], goal, 0.01, 2, 100 + s);
		grow_far(growing_layouts[l], 1000, goal, 0.01, 4, 110);
		grow_far(growing_layouts[l], 1000, goal, 0.001, 2, 111);
		grow_far(growing_layouts[l], floor((double) goal / 30), goal, 0.01, 1, 112);
		grow_far(growing_layouts[l], 10, goal, 0.1, 16, 113);
	}
}

/*
 * Small ones, many of each: every n on the way up to 200, from any capacity.
 */
static void
test_scalable_small(void **state)
{
	static const double starts[] = {1, 2, 3, 5, 10, 30, 100};
	static const double rates[] = {0.3, 0.1, 0.01};

	(void) state;
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
		for (size_t s = 0; s < lengthof(starts); s++)
			for (size_t r = 0; r < lengthof(rates); r++)
				for (int expansion = 1; expansion <= 16; expansion *= 4)
				{
					double		t = 0;
					double		passed = 0;
					double		full_t = 0;
					double		full_passed = 0;
					double		p = rates[r];

					for (uint64_t seed = 0; seed < (THOROUGH ? 100 : 4); seed++)
					{
						Growing		g;
						uint64_t	goal = expansion == 1 &&
							starts[s] * 20 < 200 ?
							(uint64_t) starts[s] * 20 : 200;

						grow_init(&g, growing_layouts[l], starts[s], p,
								  expansion);
						for (uint64_t n = 0; n < goal; n++)
						{
							must_grow(&g, element(seed, n));
							for (uint64_t i = 0; i < 5; i++)
							{
								t++;
								passed += grow_test(&g,
													element(seed, STRANGERS +
															n * 5 + i));
							}
							if (n % 16 == 0 || n == goal - 1)
								for (uint64_t i = 0; i <= n; i++)
									assert_true(grow_test(&g, element(seed, i)));
						}
						for (uint64_t i = 0; i < 400; i++)
						{
							full_t++;
							full_passed += grow_test(&g, element(seed,
																 2 * STRANGERS +
																 i));
						}
						grow_header(&g);
						/* many layers of a few elements are an eighth off */
						if (starts[s] * expansion > 10 ? bf_overfilled(&g.h) :
							bf_expected_fpr(&g.h) > 1.25 * p)
							fail_msg("%s from %g by %d at %g: it expects %g",
									 growing_layouts[l]->name, starts[s],
									 expansion, p, bf_expected_fpr(&g.h));
						grow_free(&g);
					}
					if (passed > bound(t, p) ||
						full_passed > bound(full_t, p))
						fail_msg("%s from %g by %d at %g: %g of %g strangers passed, at the end %g of %g",
								 growing_layouts[l]->name, starts[s], expansion,
								 p, passed, t, full_passed, full_t);
				}
}

/*
 * A filter with layers as one value: opened, it is what it was.
 */
static void
test_scalable_image(void **state)
{
	(void) state;
	rng_state = 60;
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
		for (uint64_t n = 1; n <= 2000; n = n * 3 + 1)
		{
			Growing		g;
			BfFilter	f;
			BfError		err;
			uint8_t    *image;
			size_t		len;
			double		stopped = 1;
			double		cardinality = 0;

			grow_init(&g, growing_layouts[l], 10, 0.05, 2);
			for (uint64_t i = 0; i < n; i++)
				must_grow(&g, element(1, i));
			image = grow_image(&g, &len);
			assert_int_equal(bf_validate(image, len, &f, &err), BF_OK);
			assert_int_equal(f.h.nlayers, g.n);
			assert_int_equal(f.h.expansion, 2);
			assert_int_equal(f.h.capacity, 10);
			for (unsigned i = 0; i < g.n; i++)
			{
				BfFilter	layer;

				bf_open_layer(&f, i, &layer);
				assert_int_equal(layer.nbytes, g.layers[i].nbytes);
				assert_memory_equal(layer.bits, g.layers[i].bits,
									layer.nbytes);
				assert_true(layer.h.nset == g.layers[i].h.nset);
				assert_true(layer.h.capacity == g.layers[i].h.capacity);
				assert_true(layer.h.capacity == 10u << i);
				cardinality += bf_cardinality(&layer.h) /
					(layer.h.layout->multiset ? 1 : stopped);
				stopped *= 1 - bf_expected_fpr(&layer.h);
				if (i + 1 < g.n)
					assert_true(bf_layer_is_full(&layer.h, false));
			}
			assert_true(fabs(bf_expected_fpr(&f.h) - (1 - stopped)) < 1e-12);
			assert_true(fabs(bf_cardinality(&f.h) - cardinality) < 1e-6);
			for (uint64_t i = 0; i < n; i++)
				assert_true(bf_test(&f, element(1, i)));
			for (uint64_t i = 0; i < 2000; i++)
				assert_true(bf_test(&f, element(1, STRANGERS + i)) ==
							grow_test(&g, element(1, STRANGERS + i)));
			check_valid(image, len);
			free(image);
			grow_free(&g);
		}
}

/*
 * As many layers as there can be, behind the longest key and name.
 */
static void
test_scalable_limit(void **state)
{
	static char name[BF_MAX_KIND_NAME];
	uint8_t		key[BF_MAX_KEY];

	(void) state;
	rng_state = 61;
	pattern(key, sizeof(key));
	memset(name, 'x', sizeof(name));
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
	{
		Growing		g;
		BfError		err;
		BfFilter	f;
		BfHeader	h;
		uint8_t    *image;
		uint8_t    *more;
		size_t		len;
		uint64_t	n = 0;
		BfStatus	status;

		grow_init_with(&g, growing_layouts[l], BF_HASH_BLAKE2B, key,
					   sizeof(key), 1, 0.5, 1);
		while ((status = grow_add(&g, element(2, n), &err)) == BF_OK)
			n++;
		assert_int_equal(status, BF_FULL);
		assert_int_equal(g.n, BF_MAX_LAYERS);
		assert_non_null(strstr(err.message, "cannot grow beyond 32 layers"));
		assert_non_null(strstr(err.hint, "larger expansion"));
		for (uint64_t i = 0; i < n; i++)
			assert_true(grow_test(&g, element(2, i)));

		g.h.kind = BF_KIND_ENUM;
		g.h.kind_name = name;
		g.h.kind_name_len = sizeof(name);
		image = grow_image(&g, &len);
		assert_int_equal(bf_header_size(&g.h), BF_MAX_HEADER);
		check_valid(image, len);
		assert_int_equal(bf_validate(image, len, &f, &err), BF_OK);
		for (uint64_t i = 0; i < n; i++)
			assert_true(bf_test(&f, element(2, i)));
		/* what the type fetches first is enough */
		assert_int_equal(bf_open_header(image, BF_MAX_HEADER, len, &h, &err),
						 BF_OK);
		assert_true(bf_expected_fpr(&h) > 0);

		/* one more, which is a copy of the last and as sound */
		{
			BfFilter   *last = &g.layers[BF_MAX_LAYERS - 1];
			size_t		table = BF_FIXED_HEADER + sizeof(key) + sizeof(name);

			/* the header has just room for its entry */
			assert_int_equal(table + (BF_MAX_LAYERS + 1) * BF_LAYER_ENTRY,
							 BF_MAX_HEADER);
			more = calloc(1, len + last->nbytes);
			memcpy(more, image, len);
			memcpy(more + len, last->bits, last->nbytes);
			memcpy(more + table + BF_MAX_LAYERS * BF_LAYER_ENTRY,
				   more + table + (BF_MAX_LAYERS - 1) * BF_LAYER_ENTRY,
				   BF_LAYER_ENTRY);
			more[46] = BF_MAX_LAYERS + 1;
			bf_store64(more + 36, g.h.nset + last->h.nset);
			reseal(more, len + last->nbytes);
			refuse_image(more, len + last->nbytes);
		}
		free(more);
		free(image);
		grow_free(&g);
	}

	/* rates that layers cannot tighten */
	{
		BfHeader	h;
		BfError		err;

		assert_int_equal(bf_header_init(&h, &bf_layout_standard, BF_HASH_XXH3,
										NULL, 0, 0, 5e-6, 0, &err), BF_OK);
		assert_int_equal(bf_header_expand(&h, 2, &err), BF_OK);
		assert_int_equal(bf_header_resize(&h, 10, &err), BF_BAD_PARAMETER);
		assert_non_null(strstr(err.message, "at least 6.67e-06"));
	}
	{
		Growing		g;
		BfError		err;
		uint64_t	n = 0;

		grow_init(&g, &bf_layout_standard, 1, 1e-5, 1);
		while (grow_add(&g, element(3, n), &err) == BF_OK)
			n++;
		assert_int_equal(err.status, BF_FULL);
		assert_int_equal(g.n, 3);
		assert_non_null(strstr(err.message, "beyond 3 layers at fpr 1e-05"));
		assert_non_null(strstr(err.hint, "higher rate"));
		grow_free(&g);
	}
}

/* ------------------------------------------------------------------------
 * Folding, ranges
 * ------------------------------------------------------------------------
 */

/*
 * Half a filter is the filter of half the size.
 */
static void
test_fold(void **state)
{
	static const BfLayout *const folding[] = {
		&bf_layout_standard, &bf_layout_blocked
	};

	(void) state;
	for (size_t l = 0; l < lengthof(folding); l++)
		for (uint64_t units = 1; units <= 96; units++)
			for (uint32_t k = 1; k <= 9; k += 4)
			{
				BfFilter	f;
				BfFilter	half;

				memset(&f, 0, sizeof(f));
				f.h.layout = folding[l];
				f.h.shape.nbits = units * 16 * folding[l]->unit;
				f.h.shape.nhashes = k;
				f.h.capacity = 10;
				f.h.fpr = 0.01;
				f.nbytes = bf_payload_size(&f.h);
				f.bits = calloc(1, f.nbytes);
				for (uint64_t i = 0; i < 40; i++)
					must_add(&f, element(units, i));
				while (bf_can_fold(&f.h))
				{
					uint64_t	was = f.h.shape.nbits;

					bf_fold(&f);
					assert_true(f.h.shape.nbits == was / 2);
					half = f;
					half.h.nset = 0;
					half.bits = calloc(1, half.nbytes);
					for (uint64_t i = 0; i < 40; i++)
						must_add(&half, element(units, i));
					assert_int_equal(f.nbytes, half.nbytes);
					assert_memory_equal(f.bits, half.bits, f.nbytes);
					assert_true(f.h.nset == half.h.nset);
					free(half.bits);
				}
				assert_int_equal(f.h.shape.nbits / folding[l]->unit % 2, 1);
				free(f.bits);
			}

	for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
	{
		BfHeader	h;
		BfError		err;

		assert_int_equal(bf_header_init(&h, bf_layout_at(l), BF_HASH_XXH3, NULL,
										0, 0, 0.01, 0, &err), BF_OK);
		assert_false(bf_can_fold(&h));
		if (bf_layout_at(l)->multiset)
			for (double n = 1; n < 200; n++)
			{
				assert_int_equal(bf_header_resize(&h, n, &err), BF_OK);
				assert_false(bf_can_fold(&h));
			}
	}
}

/*
 * What test reads is in the ranges: all else can be anything.
 */
static void
test_ranges(void **state)
{
	static const double sizes[] = {1, 7, 30, 1000, 20000};
	static const double rates[] = {0.3, 0.01, 0.001};

	(void) state;
	rng_state = 70;
	for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
		for (size_t n = 0; n < lengthof(sizes); n++)
			for (size_t r = 0; r < lengthof(rates); r++)
			{
				BfFilter	f;
				BfFilter	part;
				uint64_t	passed[2] = {0, 0};

				make(&f, bf_layout_at(l), sizes[n], rates[r]);
				for (uint64_t i = 0; i < (uint64_t) sizes[n]; i++)
					must_add(&f, element(4, i));
				part = copy_of(&f);
				for (uint64_t i = 0; i < 200; i++)
				{
					BfDigest	d = element(4, i % 2 ? STRANGERS + i :
											i % (uint64_t) sizes[n]);
					BfRange		ranges[BF_MAX_RANGES];
					uint32_t	nranges = f.h.layout->ranges(&f.h.shape, d,
															 ranges);

					for (uint64_t byte = 0; byte < f.nbytes; byte++)
						part.bits[byte] = (uint8_t) rng();
					assert_in_range(nranges, 1, BF_MAX_RANGES);
					for (uint32_t j = 0; j < nranges; j++)
					{
						assert_true(ranges[j].length > 0);
						assert_true(ranges[j].offset + ranges[j].length <=
									f.nbytes);
						if (j > 0)
							assert_true(ranges[j].offset >=
										ranges[j - 1].offset);
						memcpy(part.bits + ranges[j].offset,
							   f.bits + ranges[j].offset, ranges[j].length);
					}
					assert_true(bf_test(&part, d) == bf_test(&f, d));
					passed[i % 2] += bf_test(&part, d);
				}
				assert_int_equal(passed[0], 100);
				assert_true((double) passed[1] <= bound(100, rates[r]) + 3);
				free(part.bits);
				free(f.bits);
			}
}

/* ------------------------------------------------------------------------
 * Golden images
 * ------------------------------------------------------------------------
 */
static void
check_golden(const BfFilter *f, const uint8_t *golden, size_t golden_len,
			 const char *name)
{
	size_t		len;
	uint8_t    *image = image_of(f, &len);

	if (len != golden_len || memcmp(image, golden, len) != 0)
	{
		for (size_t i = 0; i < len && i < golden_len; i++)
			if (image[i] != golden[i])
				fail_msg("%s: byte %zu is %02x, not %02x", name, i, image[i],
						 golden[i]);
		fail_msg("%s has %zu bytes, not %zu", name, len, golden_len);
	}
	check_valid(image, len);
	free(image);
}

static void
test_golden(void **state)
{
	static const struct
	{
		const uint8_t *image;
		size_t		len;
		double		p;
	}			cuckoos[] = {
#define GOLDEN_CUCKOO(f, p) {golden_cuckoo_##f##_image, sizeof(golden_cuckoo_##f##_image), p}
		GOLDEN_CUCKOO_LIST
	};
	static const struct
	{
		const uint8_t *image;
		size_t		len;
		const BfLayout *layout;
	}			scalables[] = {
		{golden_scalable_standard_image, sizeof(golden_scalable_standard_image),
		&bf_layout_standard},
		{golden_scalable_blocked_image, sizeof(golden_scalable_blocked_image),
		&bf_layout_blocked},
		{golden_scalable_cuckoo_image, sizeof(golden_scalable_cuckoo_image),
		&bf_layout_cuckoo},
	};
	uint8_t		key[16];
	BfFilter	f;

	(void) state;
	rng_state = 80;
	pattern(key, sizeof(key));

	make_with(&f, &bf_layout_counting, BF_HASH_BLAKE2B, key, sizeof(key), 20,
			  0.01);
	for (int i = 0; i < 20; i++)
		must_add(&f, item(BF_HASH_BLAKE2B, key, sizeof(key), i));
	check_golden(&f, golden_counting_image, sizeof(golden_counting_image),
				 "counting");
	free(f.bits);
	make(&f, &bf_layout_counting, 20, 0.01);
	for (int i = 0; i < 160; i++)
		must_add(&f, item(BF_HASH_XXH3, NULL, 0, i % 20));
	check_golden(&f, golden_counted_image, sizeof(golden_counted_image),
				 "counted");
	free(f.bits);

	for (size_t c = 0; c < lengthof(cuckoos); c++)
	{
		make(&f, &bf_layout_cuckoo, 100, cuckoos[c].p);
		for (int i = 0; i < 20; i++)
			must_add(&f, item(BF_HASH_XXH3, NULL, 0, i));
		check_golden(&f, cuckoos[c].image, cuckoos[c].len, "cuckoo");
		free(f.bits);
	}
	make(&f, &bf_layout_cuckoo, 100, 0.01);
	for (size_t i = 0; i < lengthof(golden_crowd); i++)
		must_add(&f, item(BF_HASH_XXH3, NULL, 0, golden_crowd[i]));
	check_golden(&f, golden_stash_image, sizeof(golden_stash_image), "stash");
	free(f.bits);

	for (size_t s = 0; s < lengthof(scalables); s++)
	{
		Growing		g;
		BfError		err;
		BfHeader	layer;

		check_valid(scalables[s].image, scalables[s].len);
		assert_int_equal(bf_validate(scalables[s].image, scalables[s].len, &f,
									 &err), BF_OK);
		assert_ptr_equal(f.h.layout, scalables[s].layout);
		assert_int_equal(f.h.nlayers, 2);
		for (int i = 0; i < 20; i++)
			assert_true(bf_test(&f, item(BF_HASH_XXH3, NULL, 0, i)));

		/* what the core plans is what was written */
		grow_init(&g, scalables[s].layout, 10, 0.1, 3);
		assert_true(g.h.shape.nbits == f.h.shape.nbits);
		assert_true(g.h.shape.nhashes == f.h.shape.nhashes);
		for (unsigned i = 0; i < 2; i++)
		{
			BfFilter	written;

			bf_open_layer(&f, i, &written);
			assert_int_equal(bf_plan_layer(&g.h, i, i > 0 ? &layer : NULL,
										   &layer, &err), BF_OK);
			assert_true(written.h.capacity == layer.capacity);
			assert_true(written.h.shape.nbits == layer.shape.nbits);
			assert_true(written.h.shape.nhashes == layer.shape.nhashes);
			for (int j = 0; j < 10; j++)
				assert_true(bf_test(&written, item(BF_HASH_XXH3, NULL, 0,
												   (int) i * 10 + j)));
		}
	}
}

/* ------------------------------------------------------------------------
 * The validator
 * ------------------------------------------------------------------------
 */
enum
{
	COUNTING_EMPTY, COUNTING_UNSIZED, COUNTING_KEYED, COUNTING_FULL,
	CUCKOO_EMPTY, CUCKOO_UNSIZED, CUCKOO_ONE, CUCKOO_KEYED, CUCKOO_NARROW,
	CUCKOO_WIDE, CUCKOO_STASH,
	SCALABLE_EMPTY, SCALABLE_UNSIZED, SCALABLE_STANDARD, SCALABLE_BLOCKED,
	SCALABLE_CUCKOO, SCALABLE_KEYED,
	CORPUS
};

static uint8_t *
corpus(int which, size_t *len)
{
	static const struct
	{
		const BfLayout *layout;
		double		capacity;
		double		p;
		size_t		keylen;
		int			expansion;
		uint64_t	n;
	}			makes[CORPUS] = {
		[COUNTING_EMPTY] = {&bf_layout_counting, 10, 0.01, 0, 0, 0},
		[COUNTING_UNSIZED] = {&bf_layout_counting, 0, 0.01, 0, 0, 0},
		[COUNTING_KEYED] = {&bf_layout_counting, 3, 0.1, 16, 0, 2},
		[COUNTING_FULL] = {&bf_layout_counting, 4, 0.1, 0, 0, 90},
		[CUCKOO_EMPTY] = {&bf_layout_cuckoo, 10, 0.01, 0, 0, 0},
		[CUCKOO_UNSIZED] = {&bf_layout_cuckoo, 0, 0.001, 0, 0, 0},
		[CUCKOO_ONE] = {&bf_layout_cuckoo, 1, 0.01, 0, 0, 1},
		[CUCKOO_KEYED] = {&bf_layout_cuckoo, 15, 0.001, 32, 0, 15},
		[CUCKOO_NARROW] = {&bf_layout_cuckoo, 30, 0.5, 0, 0, 30},
		[CUCKOO_WIDE] = {&bf_layout_cuckoo, 7, 1e-8, 0, 0, 5},
		[CUCKOO_STASH] = {&bf_layout_cuckoo, 40, 0.01, 0, 0, 0},
		[SCALABLE_EMPTY] = {&bf_layout_blocked, 10, 0.01, 0, 2, 0},
		[SCALABLE_UNSIZED] = {&bf_layout_cuckoo, 0, 0.01, 0, 16, 0},
		[SCALABLE_STANDARD] = {&bf_layout_standard, 2, 0.1, 0, 2, 8},
		[SCALABLE_BLOCKED] = {&bf_layout_blocked, 1, 0.3, 0, 1, 20},
		[SCALABLE_CUCKOO] = {&bf_layout_cuckoo, 2, 0.1, 0, 2, 8},
		[SCALABLE_KEYED] = {&bf_layout_standard, 1, 0.3, 20, 1, 5},
	};
	uint8_t		key[BF_MAX_KEY];
	BfHash		hash = makes[which].keylen > 0 ? BF_HASH_BLAKE2B : BF_HASH_XXH3;
	const uint8_t *k = makes[which].keylen > 0 ? key : NULL;
	uint8_t    *image;
	BfFilter	f;

	pattern(key, sizeof(key));
	if (makes[which].expansion != 0)
	{
		Growing		g;

		if (makes[which].capacity == 0)
		{
			BfError		err;

			memset(&g, 0, sizeof(g));
			assert_int_equal(bf_header_init(&g.h, makes[which].layout, hash, k,
											0, 0, makes[which].p, 0, &err),
							 BF_OK);
			assert_int_equal(bf_header_expand(&g.h, makes[which].expansion,
											  &err), BF_OK);
		}
		else
			grow_init_with(&g, makes[which].layout, hash, k,
						   makes[which].keylen, makes[which].capacity,
						   makes[which].p, makes[which].expansion);
		for (uint64_t i = 0; i < makes[which].n; i++)
			must_grow(&g, element((uint64_t) which, i));
		image = grow_image(&g, len);
		grow_free(&g);
		return image;
	}
	make_with(&f, makes[which].layout, hash, k, makes[which].keylen,
			  makes[which].capacity, makes[which].p);
	for (uint64_t i = 0; i < makes[which].n; i++)
		must_add(&f, element((uint64_t) which,
							 which == COUNTING_FULL ? i % 4 : i));
	if (which == CUCKOO_STASH)
	{
		/* eleven of one pair of buckets */
		uint64_t	nbuckets = buckets_of(&f.h.shape);

		for (uint32_t fp = 1; f.h.nset < 11; fp++)
			if (other_of(nbuckets, 2, fp) == 3)
				must_add(&f, aim(&f.h.shape, 2, fp));
	}
	image = image_of(&f, len);
	free(f.bits);
	return image;
}

/*
 * One bit flipped, anywhere: the checksums notice.
 */
static void
test_bit_flips(void **state)
{
	(void) state;
	rng_state = 90;
	for (int c = 0; c < CORPUS; c++)
	{
		size_t		len;
		uint8_t    *image = corpus(c, &len);

		check_valid(image, len);
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
	rng_state = 91;
	for (int c = 0; c < CORPUS; c++)
	{
		size_t		len;
		uint8_t    *image = corpus(c, &len);
		uint8_t    *longer = calloc(1, len + 200);

		memcpy(longer, image, len);
		for (size_t short_len = 0; short_len < len; short_len++)
		{
			BfHeader	h;
			BfError		err;
			uint8_t    *copy;

			refuse_image(image, short_len);
			copy = exact_copy(image, short_len);
			if (bf_open_header(copy, short_len, len, &h, &err) == BF_OK)
				assert_true(short_len >= bf_header_size(&h));
			free(copy);
			/* with a checksum that is right for what is left */
			copy = exact_copy(image, short_len);
			reseal(copy, short_len);
			refuse_image(copy, short_len);
			free(copy);
		}
		for (size_t more = 1; more <= 200; more++)
			refuse_image(longer, len + more);
		free(longer);
		free(image);
	}
}

/*
 * Fields that contradict each other, with checksums that are right.
 */
static void
test_contradictions(void **state)
{
	static const struct
	{
		int			image;
		int			offset;		/* from here, in the layer's table (LAYER), or
								 * back from the end (TAIL) */
		int			width;
		uint64_t	value;
	}			changes[] = {
#define LAYER	1000
#define TAIL	10000
		/* counting */
		{COUNTING_KEYED, 12, 8, 96}, {COUNTING_KEYED, 12, 8, 98},
		{COUNTING_KEYED, 5, 1, 0}, {COUNTING_KEYED, 5, 1, 65},
		{COUNTING_KEYED, 36, 8, 1}, {COUNTING_KEYED, 36, 8, 0},
		{COUNTING_FULL, 36, 8, 33}, {COUNTING_FULL, 36, 8, UINT64_MAX},
		{COUNTING_FULL, 45, 1, 1}, {COUNTING_EMPTY, 45, 1, 2},
		{COUNTING_UNSIZED, 45, 1, 2}, {COUNTING_EMPTY, 46, 1, 1},
		{COUNTING_FULL, 45, 2, 0x0102}, {COUNTING_EMPTY, 12, 8, 40},
		{COUNTING_EMPTY, 12, 8, BF_MAX_BITS + 32},
		{COUNTING_FULL, TAIL + 1, 1, 0x77}, {COUNTING_FULL, 28, 8, 0},
		{COUNTING_FULL, 3, 1, BF_STANDARD}, {COUNTING_FULL, 3, 1, BF_CUCKOO},
		/* cuckoo: shapes that cannot be */
		{CUCKOO_EMPTY, 5, 1, 3}, {CUCKOO_EMPTY, 5, 1, 0},
		{CUCKOO_EMPTY, 5, 1, 33}, {CUCKOO_EMPTY, 5, 1, 255},
		{CUCKOO_EMPTY, 12, 8, 0}, {CUCKOO_EMPTY, 12, 8, 8},
		{CUCKOO_EMPTY, 12, 8, 504}, {CUCKOO_EMPTY, 12, 8, 512},
		{CUCKOO_EMPTY, 12, 8, 520}, {CUCKOO_EMPTY, 12, 8, 12},
		{CUCKOO_EMPTY, 12, 8, BF_MAX_BITS + 8},
		{CUCKOO_EMPTY, 12, 8, UINT64_MAX}, {CUCKOO_EMPTY, 12, 8, UINT64_MAX - 7},
		{CUCKOO_EMPTY, 44, 1, 1}, {CUCKOO_UNSIZED, 5, 1, 13},
		{CUCKOO_UNSIZED, 44, 1, 1}, {CUCKOO_ONE, 5, 1, 11},
		{CUCKOO_ONE, 5, 1, 9}, {CUCKOO_ONE, 36, 8, 2}, {CUCKOO_ONE, 36, 8, 0},
		{CUCKOO_ONE, 9, 1, 0}, {CUCKOO_ONE, 28, 8, 0}, {CUCKOO_ONE, 20, 8, 0},
		{CUCKOO_ONE, 3, 1, BF_COUNTING}, {CUCKOO_ONE, 3, 1, BF_STANDARD},
		/* entries of the stash: of an odd bucket, past the last, without a
		 * fingerprint, of one too wide, behind a gap */
		{CUCKOO_STASH, TAIL + 64, 4, 3}, {CUCKOO_STASH, TAIL + 64, 4, 12},
		{CUCKOO_STASH, TAIL + 64, 4, UINT32_MAX - 1},
		{CUCKOO_STASH, TAIL + 60, 4, 0}, {CUCKOO_STASH, TAIL + 60, 4, 1024},
		{CUCKOO_STASH, TAIL + 60, 4, UINT32_MAX}, {CUCKOO_STASH, TAIL + 56, 8, 0},
		{CUCKOO_STASH, TAIL + 40, 8, 2}, {CUCKOO_STASH, TAIL + 8, 8, UINT64_C(5) << 32},
		{CUCKOO_STASH, TAIL + 40, 8, UINT64_C(5) << 32},	/* one too many */
		/* layers that cannot be */
		{SCALABLE_STANDARD, LAYER, 8, 0}, {SCALABLE_STANDARD, LAYER, 8, 4},
		{SCALABLE_STANDARD, LAYER, 8, 8}, {SCALABLE_STANDARD, LAYER, 8, UINT64_MAX},
		{SCALABLE_STANDARD, LAYER, 8, UINT64_C(1) << 63},
		{SCALABLE_STANDARD, LAYER, 8, BF_MAX_BITS + 8},
		{SCALABLE_STANDARD, LAYER, 8, BF_MAX_BITS},
		{SCALABLE_STANDARD, LAYER + 8, 8, 0},
		{SCALABLE_STANDARD, LAYER + 8, 8, BF_MAX_CAPACITY + 1},
		{SCALABLE_STANDARD, LAYER + 16, 8, 0}, {SCALABLE_STANDARD, LAYER + 16, 8, 1},
		{SCALABLE_STANDARD, LAYER + 16, 8, UINT64_MAX},
		{SCALABLE_STANDARD, LAYER + 24, 1, 0}, {SCALABLE_STANDARD, LAYER + 24, 1, 65},
		{SCALABLE_STANDARD, LAYER + 25, 1, 1}, {SCALABLE_STANDARD, LAYER + 31, 1, 1},
		{SCALABLE_STANDARD, LAYER + 32 + 24, 1, 0},
		{SCALABLE_STANDARD, LAYER + 32 + 31, 1, 1},
		{SCALABLE_STANDARD, LAYER + 32, 8, 0},
		{SCALABLE_STANDARD, LAYER + 32 + 16, 8, UINT64_MAX - 3},
		{SCALABLE_STANDARD, 36, 8, 1}, {SCALABLE_STANDARD, 36, 8, 0},
		{SCALABLE_STANDARD, 36, 8, UINT64_MAX},
		{SCALABLE_STANDARD, 46, 1, 0}, {SCALABLE_STANDARD, 46, 1, 1},
		{SCALABLE_STANDARD, 46, 1, 33}, {SCALABLE_STANDARD, 46, 1, 255},
		{SCALABLE_STANDARD, 45, 1, 0}, {SCALABLE_STANDARD, 45, 1, 17},
		{SCALABLE_STANDARD, 45, 1, 255}, {SCALABLE_STANDARD, 47, 1, 1},
		{SCALABLE_STANDARD, 12, 8, 0}, {SCALABLE_STANDARD, 20, 8, 0},
		{SCALABLE_STANDARD, 5, 1, 0}, {SCALABLE_STANDARD, 12, 8, 4},
		{SCALABLE_STANDARD, 3, 1, BF_COUNTING}, {SCALABLE_STANDARD, 3, 1, BF_BLOCKED},
		{SCALABLE_STANDARD, 3, 1, BF_CUCKOO}, {SCALABLE_STANDARD, 9, 1, 0},
		{SCALABLE_STANDARD, 48, 8, 0},
		{SCALABLE_BLOCKED, LAYER, 8, 504}, {SCALABLE_BLOCKED, LAYER, 8, 1024},
		{SCALABLE_BLOCKED, LAYER + 24, 1, 17},
		{SCALABLE_BLOCKED, LAYER + 16, 8, 513},
		{SCALABLE_CUCKOO, LAYER, 8, 512}, {SCALABLE_CUCKOO, LAYER + 24, 1, 3},
		{SCALABLE_CUCKOO, LAYER + 24, 1, 4}, {SCALABLE_CUCKOO, LAYER + 24, 1, 33},
		{SCALABLE_CUCKOO, LAYER + 16, 8, 9}, {SCALABLE_CUCKOO, TAIL + 8, 8, 7},
		{SCALABLE_EMPTY, 46, 1, 1}, {SCALABLE_EMPTY, 36, 8, 1},
		{SCALABLE_EMPTY, 45, 1, 17}, {SCALABLE_EMPTY, 9, 1, 1},
		{SCALABLE_EMPTY, 48, 8, 1}, {SCALABLE_EMPTY, 20, 8, 0},
		{SCALABLE_UNSIZED, 46, 1, 1}, {SCALABLE_UNSIZED, 45, 1, 17},
		{SCALABLE_UNSIZED, 36, 8, 1}, {SCALABLE_UNSIZED, 20, 8, 5},
		{SCALABLE_KEYED, 8, 1, 19}, {SCALABLE_KEYED, 8, 1, 0},
		{SCALABLE_KEYED, 8, 1, 33}, {SCALABLE_KEYED, 10, 2, 1},
		{SCALABLE_KEYED, 10, 2, 513}, {SCALABLE_KEYED, 6, 2, 60},
		{SCALABLE_KEYED, 4, 1, 1},
	};

	(void) state;
	rng_state = 92;
	for (size_t i = 0; i < lengthof(changes); i++)
	{
		size_t		len;
		uint8_t    *image = corpus(changes[i].image, &len);
		uint8_t    *was;
		size_t		at = (size_t) changes[i].offset;

		if (at >= TAIL)
			at = len - (at - TAIL);
		else if (at >= LAYER)
			at += (size_t) 60 + image[8] + bf_load16(image + 10) - LAYER;
		was = exact_copy(image, len);
		for (int b = 0; b < changes[i].width; b++)
			image[at + (size_t) b] = (uint8_t) (changes[i].value >> 8 * b);
		if (memcmp(image, was, len) == 0)
			fail_msg("change %zu changes nothing", i);
		if (at == 48)
			reseal_header(image, len);
		else
			reseal(image, len);
		{
			BfFilter	f;
			BfError		err;

			if (bf_validate(image, len, &f, &err) == BF_OK)
				fail_msg("change %zu (image %d, offset %d) goes through", i,
						 changes[i].image, changes[i].offset);
		}
		refuse_image(image, len);
		free(was);
		free(image);
	}
}

/*
 * A layer without elements, all else being as it should.
 */
static void
test_empty_layer(void **state)
{
	(void) state;
	rng_state = 95;
	for (size_t l = 0; l < lengthof(growing_layouts); l++)
		for (unsigned emptied = 0; emptied < 2; emptied++)
		{
			Growing		g;
			uint8_t    *image;
			size_t		len;

			grow_init(&g, growing_layouts[l], 2, 0.1, 2);
			for (uint64_t i = 0; g.n < 2; i++)
				must_grow(&g, element(5, i));
			image = grow_image(&g, &len);
			check_valid(image, len);
			free(image);
			wipe(&g.layers[emptied]);
			image = grow_image(&g, &len);
			refuse_image(image, len);
			free(image);
			grow_free(&g);
		}
}

/*
 * Buckets that are not in their order, or no combination, and bits behind the
 * last one.
 */
static void
test_cuckoo_payload(void **state)
{
	(void) state;
	rng_state = 93;
	for (int round = 0; round < 2000; round++)
	{
		uint32_t	f = 4 + (uint32_t) (rng() % 29);
		uint64_t	nbuckets = 2 + 2 * (rng() % 5);
		uint64_t	used = nbuckets * (4 * f - 4);
		BfShape		shape = {((used + 7) / 8 + STASH) * 8, f};
		uint8_t    *bits = calloc(1, shape.nbits / 8);
		bool		sound = true;

		for (uint64_t at = 0; at < used; at += rng() % 3 == 0 ? 1 : 7)
			if (rng() % (f < 8 ? 4 : 12) == 0)
				bits[at / 8] |= (uint8_t) (1 << at % 8);
		if (rng() % 4 == 0 && used % 8 != 0)
			bits[used / 8] |= (uint8_t) (1 << (used % 8 + rng() % (8 - used % 8)));
		if (used % 8 != 0)
			sound = bits[used / 8] >> used % 8 == 0;

		for (uint64_t i = 0; i < nbuckets && sound; i++)
		{
			uint64_t	at = i * (4 * f - 4);
			uint32_t	number = 0;
			uint32_t	last = 0;

			for (uint64_t b = 0; b < 12; b++)
				number |= (uint32_t) (bits[(at + b) / 8] >> (at + b) % 8 & 1) << b;
			if (number >= 3876)
				sound = false;
			for (uint64_t s = 0; s < 4 && sound; s++)
			{
				uint32_t	low = golden_nibbles[number] >> 4 * s & 15;
				uint32_t	high = 0;

				for (uint64_t b = 0; b < f - 4; b++)
				{
					uint64_t	x = at + 12 + s * (f - 4) + b;

					high |= (uint32_t) (bits[x / 8] >> x % 8 & 1) << b;
				}
				/* sorted by the low bits, then by the others */
				if (s > 0)
				{
					uint32_t	before = golden_nibbles[number] >> 4 * (s - 1) & 15;

					sound = before < low || (before == low && last <= high);
				}
				last = high;
			}
		}
		assert_true(bf_layout_cuckoo.validate(bits, &shape) == sound);
		free(bits);
	}
}

/*
 * Several bytes changed at once, and checksums that are right: what is let in
 * survives everything that is done with filters.
 */
static void
test_random_damage(void **state)
{
	int			valid = 0;

	(void) state;
	rng_state = 94;
	for (int round = 0; round < 60000; round++)
	{
		static const uint8_t likely[] = {0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF};
		size_t		len;
		uint8_t    *image = corpus((int) (rng() % CORPUS), &len);
		uint8_t    *copy;
		BfFilter	f;
		BfHeader	h;
		BfError		err;
		BfStatus	status;
		bool		payload = rng() % 2;
		size_t		header = bf_load16(image + 6);

		for (uint64_t changes = 1 + rng() % 4; changes > 0; changes--)
		{
			size_t		at = payload && len > header ?
				header + rng() % (len - header) : rng() % header;

			image[at] = rng() % 2 ? likely[rng() % sizeof(likely)] :
				(uint8_t) rng();
		}
		if (rng() % 8 == 0)
			len -= rng() % (len + 1);
		/* make the number right, so that more is let in */
		if (payload && bf_open(image, len, &f, &err) == BF_OK &&
			f.bits != NULL && f.h.expansion == 0)
		{
			bf_recount(&f);
			bf_store64(image + 36, f.h.nset);
		}
		if (rng() % 8 != 0)
			reseal(image, len);
		copy = exact_copy(image, len);
		(void) bf_open_header(copy, len, len + rng() % 1000, &h, &err);
		status = bf_validate(copy, len, &f, &err);
		if (status == BF_OK)
		{
			valid++;
			check_valid(copy, len);
		}
		else
			assert_true(status == BF_CORRUPT || status == BF_UNKNOWN_VERSION);
		if (bf_open(copy, len, &f, &err) == BF_OK)
			look_at(&f);
		free(copy);
		free(image);
	}
	/* the test would be none if nothing came through */
	assert_true(valid > 1000);
}

/*
 * bf_open does not look at the bits: a damaged stash, in a value that was
 * valid when it was stored, must not lead outside of them.
 */
static void
test_cuckoo_damaged_stash(void **state)
{
	const uint64_t bad[] = {
		UINT64_C(1) << 32 | 0x7FFFFFFE, UINT64_C(1) << 32 | 0xFFFFFFFE,
		UINT64_MAX, 2, UINT64_C(0xFFFFFFFF) << 32
	};

	(void) state;
	for (size_t i = 0; i < lengthof(bad); i++)
	{
		BfFilter	f;
		BfFilter	other;
		BfFilter	copy;
		BfError		err;

		make(&f, &bf_layout_cuckoo, 40, 0.01);
		for (int j = 0; j < 10; j++)
			must_add(&f, element(1, (uint64_t) j));
		other = copy_of(&f);
		bf_store64(f.bits + f.nbytes - STASH, bad[i]);

		copy = copy_of(&f);
		for (int j = 0; j < 10; j++)
			assert_true(bf_remove(&copy, element(1, (uint64_t) j)));
		free(copy.bits);

		/* what cannot be taken over is not passed over in silence */
		copy = copy_of(&other);
		assert_int_equal(bf_unite(&copy, &f, &err), BF_FULL);
		free(copy.bits);

		copy = copy_of(&f);
		bf_intersect(&copy, &other);
		for (int j = 0; j < 10; j++)
			assert_true(bf_test(&copy, element(1, (uint64_t) j)));
		free(copy.bits);
		free(f.bits);
		free(other.bits);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_counting_size),
		cmocka_unit_test(test_plan),
		cmocka_unit_test(test_expansion_parameters),
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_counting_reference),
		cmocka_unit_test(test_counting_sticks),
		cmocka_unit_test(test_counting_combine),
		cmocka_unit_test(test_counting_saturated),
		cmocka_unit_test(test_cuckoo_buckets),
		cmocka_unit_test(test_cuckoo_semisort),
		cmocka_unit_test(test_cuckoo_widths),
		cmocka_unit_test(test_cuckoo_copies),
		cmocka_unit_test(test_cuckoo_stash),
		cmocka_unit_test(test_cuckoo_damaged_stash),
		cmocka_unit_test(test_cuckoo_combine),
		cmocka_unit_test(test_cuckoo_capacity),
		cmocka_unit_test(test_small),
		cmocka_unit_test(test_scalable_image),
		cmocka_unit_test(test_scalable_limit),
		cmocka_unit_test(test_scalable_small),
		cmocka_unit_test(test_scalable_growth),
		cmocka_unit_test(test_oracle_counting),
		cmocka_unit_test(test_oracle_cuckoo),
		cmocka_unit_test(test_oracle_cuckoo_repeats),
		cmocka_unit_test(test_oracle_scalable),
		cmocka_unit_test(test_fold),
		cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_bit_flips),
		cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_empty_layer),
		cmocka_unit_test(test_cuckoo_payload),
		cmocka_unit_test(test_random_damage),
	};

	return cmocka_run_group_tests_name("layouts", tests, NULL, NULL);
}
