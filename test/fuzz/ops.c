/*-------------------------------------------------------------------------
 *
 * ops.c
 *	  Fuzz target: a program of operations on filters, against a model.
 *
 * The input is the parameters of a filter, thirty-two digests (those that it
 * does not give are made up), and operations on two filters of these
 * parameters.  The model counts what was added and is not removed.  After each
 * operation nothing that the model has may be missing, the number of bits set
 * must be true, and the filter must be one that bf_validate takes.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "fuzz.h"

#define ELEMENTS	32
#define MAX_BYTES	4096 		/* of a filter's bits */
#define MAX_STEPS	100

typedef struct Side
{
	BfFilter	f;				/* of fixed size, or what the layers share */
	uint32_t	count[ELEMENTS];	/* at least so many copies are there */
	unsigned	nlayers;
	BfFilter	layers[BF_MAX_LAYERS];
} Side;

static BfDigest digests[ELEMENTS];

/* splitmix64: Steele, Lea and Flood, OOPSLA 2014 */
static uint64_t
mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* ------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------
 */
static double
any_double(Input *in)
{
	static const double odd[] = {
		0, -1, 0.5, 1.5, NAN, INFINITY, -INFINITY, 1e300, 5e-324,
		9007199254740992.0, 9007199254740994.0, 4294967296.0
	};
	uint8_t		choice = take8(in);
	double		d;

	if (choice < sizeof(odd) / sizeof(odd[0]))
		return odd[choice];
	take(in, &d, sizeof(d));
	return d;
}

/*
 * A header with bits to try, or false.
 */
static bool
parameters(Input *in, BfHeader *h)
{
	uint8_t		choice = take8(in);
	uint8_t		more = take8(in);
	const BfLayout *layout = bf_layout_at(choice & 3);
	BfHash		hash = choice & 4 ? BF_HASH_BLAKE2B : BF_HASH_XXH3;
	uint8_t		key[BF_MAX_KEY + 8];
	size_t		keylen = 0;
	double		capacity;
	double		fpr;
	int			nhashes = 0;
	int			expansion = 0;
	BfError		err;

	if (choice & 8)
	{
		keylen = take8(in) % sizeof(key);
		take(in, key, keylen);
	}
	if (choice & 16)
		nhashes = (int8_t) take8(in);
	if (choice & 32)
		expansion = more % 20 - 1;
	if (choice & 64)
	{
		capacity = any_double(in);
		fpr = any_double(in);
	}
	else
	{
		uint8_t		c[2];
		uint8_t		p = take8(in);

		take(in, c, sizeof(c));
		capacity = 1 + (c[0] | c[1] << 8) % 600;
		fpr = fmin(0.999, pow(10, -(double) (p % 64) / 8) + 1e-8);
	}

	memset(&err, 0, sizeof(err));
	if (bf_header_init(h, layout, hash, keylen > 0 || choice & 128 ? key : NULL,
					   keylen, expansion != 0 ? 0 : capacity, fpr, nhashes,
					   &err) != BF_OK ||
		(expansion != 0 &&
		 (bf_header_expand(h, expansion, &err) != BF_OK ||
		  bf_header_resize(h, capacity, &err) != BF_OK)))
	{
		REQUIRE(err.status == BF_BAD_PARAMETER || err.status == BF_TOO_LARGE);
		REQUIRE(err.message[0] != '\0');
		return false;
	}
	if (!bf_is_sized(h))
		return false;

	/* the size is what was asked for */
	REQUIRE(h->shape.nbits <= BF_MAX_BITS);
	REQUIRE(h->shape.nbits % layout->unit == 0);
	REQUIRE(h->shape.nhashes >= 1 && h->shape.nhashes <= layout->max_hashes);
	if (nhashes == 0 && expansion == 0)
		REQUIRE(layout->rate(&h->shape, capacity) <= 1.01 * fpr ||
				layout->id == BF_STANDARD || layout->id == BF_COUNTING ||
				h->shape.nhashes == layout->max_hashes);
	REQUIRE(bf_design_fpr(h) >= fpr && bf_design_fpr(h) <= 1);
	return h->shape.nbits / 8 <= MAX_BYTES;
}

/* ------------------------------------------------------------------------
 * One side
 * ------------------------------------------------------------------------
 */
static void
make_bits(BfFilter *f)
{
	f->nbytes = bf_payload_size(&f->h);
	f->bits = calloc(1, f->nbytes);
	REQUIRE(f->bits != NULL);
	f->h.nset = 0;
	f->h.kind = BF_KIND_INTEGER;
}

static void
wipe(Side *s, const BfHeader *h)
{
	free(s->f.bits);
	for (unsigned i = 0; i < s->nlayers; i++)
		free(s->layers[i].bits);
	memset(s, 0, sizeof(*s));
	s->f.h = *h;
	s->f.h.kind = BF_KIND_INTEGER;
	if (h->expansion == 0)
		make_bits(&s->f);
}

static bool
side_test(const Side *s, BfDigest digest)
{
	if (s->f.h.expansion == 0)
		return bf_test(&s->f, digest);
	for (unsigned i = s->nlayers; i-- > 0;)
		if (bf_test(&s->layers[i], digest))
			return true;
	return false;
}

/* The image of all layers. */
static uint8_t *
layers_image(const Side *s, size_t *len)
{
	uint8_t		entries[BF_MAX_LAYERS * BF_LAYER_ENTRY];
	BfFilter	f = s->f;
	uint8_t    *bits;
	uint8_t    *image;
	size_t		at = 0;

	f.nbytes = 0;
	f.h.nset = 0;
	f.h.nlayers = 0;
	for (unsigned i = 0; i < s->nlayers; i++)
		f.nbytes += s->layers[i].nbytes;
	bits = malloc(f.nbytes > 0 ? f.nbytes : 1);
	REQUIRE(bits != NULL);
	for (unsigned i = 0; i < s->nlayers; i++)
	{
		const BfFilter *layer = &s->layers[i];

		if (layer->h.nset == 0)
		{
			f.nbytes -= layer->nbytes;
			continue;
		}
		bf_write_layer_entry(&layer->h, entries + f.h.nlayers * BF_LAYER_ENTRY);
		f.h.nlayers++;
		f.h.nset += layer->h.nset;
		memcpy(bits + at, layer->bits, layer->nbytes);
		at += layer->nbytes;
	}
	f.h.layers = entries;
	f.bits = bits;
	image = image_of(&f, len);
	free(bits);
	return image;
}

static void
check_fixed(const BfFilter *f)
{
	BfFilter	counted = *f;

	bf_recount(&counted);
	REQUIRE(counted.h.nset == f->h.nset);
	check_estimates(&f->h);
}

static void
check(const Side *s)
{
	size_t		len;
	uint8_t    *image;
	BfFilter	opened;
	BfError		err;

	if (s->f.h.expansion == 0)
		check_fixed(&s->f);
	for (unsigned i = 0; i < s->nlayers; i++)
		check_fixed(&s->layers[i]);

	image = s->f.h.expansion == 0 ? image_of(&s->f, &len) : layers_image(s, &len);
	if (bf_validate(image, len, &opened, &err) != BF_OK)
	{
		fprintf(stderr, "no longer valid: %s\n", err.message);
		abort();
	}
	check_estimates(&opened.h);
	for (int i = 0; i < ELEMENTS; i++)
	{
		bool		there = bf_test(&opened, digests[i]);

		REQUIRE(there || s->count[i] == 0);
		REQUIRE(there == side_test(s, digests[i]));
		if (opened.bits != NULL && opened.h.expansion == 0)
			REQUIRE(there == test_by_ranges(&opened, digests[i]));
	}
	free(image);
}

/* ------------------------------------------------------------------------
 * Operations
 * ------------------------------------------------------------------------
 */

/* False where there is no room. */
static bool
grow(Side *s, BfDigest digest)
{
	BfFilter   *last = s->nlayers > 0 ? &s->layers[s->nlayers - 1] : NULL;
	BfHeader	h;
	BfError		err;

	if (!s->f.h.layout->multiset && side_test(s, digest))
		return true;
	if (last != NULL && !bf_layer_is_full(&last->h, s->nlayers == 1))
	{
		if (bf_add(last, digest, &err) == BF_OK)
			return true;
		REQUIRE(err.status == BF_FULL);
		if (last->h.nset < last->h.capacity / 2)
			return false;
	}
	if (bf_plan_layer(&s->f.h, s->nlayers, last != NULL ? &last->h : NULL, &h,
					  &err) != BF_OK)
	{
		REQUIRE(err.status == BF_FULL || err.status == BF_TOO_LARGE ||
				err.status == BF_BAD_PARAMETER);
		return false;
	}
	if (h.shape.nbits / 8 > MAX_BYTES)
		return false;
	last = &s->layers[s->nlayers++];
	last->h = h;
	make_bits(last);
	REQUIRE(bf_add(last, digest, &err) == BF_OK);
	return true;
}

static void
add(Side *s, int i)
{
	BfError		err;

	if (s->f.h.expansion != 0)
		s->count[i] += grow(s, digests[i]);
	else if (bf_add(&s->f, digests[i], &err) == BF_OK)
		s->count[i]++;
	else
		REQUIRE(err.status == BF_FULL && s->f.h.layout->bounded);
}

static void
add_many(Side *s, int first, int n)
{
	BfDigest	batch[ELEMENTS];
	BfError		err;
	uint64_t	before = s->f.h.nset;

	for (int i = 0; i < n; i++)
		batch[i] = digests[(first + i) % ELEMENTS];
	if (bf_add_many(&s->f, batch, (uint32_t) n, &err) != BF_OK)
	{
		/* the first so many are there */
		REQUIRE(err.status == BF_FULL && s->f.h.layout->bounded);
		n = (int) (s->f.h.nset - before);
	}
	bf_recount(&s->f);
	for (int i = 0; i < n; i++)
		s->count[(first + i) % ELEMENTS]++;
}

/*
 * Only what is there, as the manual says, or what certainly is not.
 */
static void
take_out(Side *s, int i)
{
	bool		there = side_test(s, digests[i]);
	BfFilter   *holder = &s->f;

	if (s->f.h.layout->remove == NULL)
		return;
	if (there && s->count[i] == 0)
		return;
	if (s->f.h.expansion != 0)
	{
		int			n = 0;

		for (unsigned j = 0; j < s->nlayers; j++)
			if (bf_test(&s->layers[j], digests[i]))
			{
				holder = &s->layers[j];
				n++;
			}
		if (n != 1)
			return;
	}
	REQUIRE(bf_remove(holder, digests[i]) == there);
	if (there)
		s->count[i]--;
}

static void
combine(Side *into, const Side *from, bool unite)
{
	BfError		err;

	REQUIRE(bf_same_parameters(&into->f.h, &from->f.h, &err) == BF_OK);
	if (!unite)
	{
		bf_intersect(&into->f, &from->f);
		for (int i = 0; i < ELEMENTS; i++)
			if (from->count[i] < into->count[i])
				into->count[i] = from->count[i];
		return;
	}
	if (bf_unite(&into->f, &from->f, &err) != BF_OK)
	{
		BfHeader	h = into->f.h;

		REQUIRE(err.status == BF_FULL && h.layout->bounded);
		/* what is left is thrown away, but is a filter */
		bf_recount(&into->f);
		check(into);
		h.nset = 0;
		wipe(into, &h);
		return;
	}
	for (int i = 0; i < ELEMENTS; i++)
		into->count[i] += from->count[i];
}

static void
halve_or_double(Side *sides, bool halve)
{
	for (int i = 0; i < 2; i++)
	{
		BfFilter   *f = &sides[i].f;

		if (halve)
		{
			bf_fold(f);
			f->h.capacity = (f->h.capacity + 1) / 2;
		}
		else
		{
			f->bits = realloc(f->bits, f->nbytes * 2);
			REQUIRE(f->bits != NULL);
			f->h.layout->unfold(f->bits, &f->h.shape);
			f->h.shape.nbits *= 2;
			f->nbytes *= 2;
			bf_recount(f);
		}
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		in = {data, size};
	BfHeader	h;
	Side		sides[2];
	uint8_t		given;
	int			steps = 0;

	if (!parameters(&in, &h))
		return 0;

	given = take8(&in) % ELEMENTS;
	for (int i = 0; i < ELEMENTS; i++)
	{
		digests[i].h1 = mix((uint64_t) i + 1);
		digests[i].h2 = mix(digests[i].h1);
	}
	/* a few digests that are chosen: the same blocks, buckets, fingerprints */
	for (int i = 0; i < given / 8; i++)
	{
		take(&in, &digests[i].h1, 8);
		take(&in, &digests[i].h2, 8);
	}

	memset(sides, 0, sizeof(sides));
	wipe(&sides[0], &h);
	wipe(&sides[1], &h);
	while (in.left > 0 && steps++ < MAX_STEPS)
	{
		uint8_t		op = take8(&in);
		Side	   *s = &sides[op & 1];
		int			i = op >> 2 & (ELEMENTS - 1);

		switch (op & 2 ? take8(&in) % 8 : 0)
		{
			case 0:
				add(s, i);
				break;
			case 1:
				take_out(s, i);
				break;
			case 2:
				if (h.expansion == 0)
					add_many(s, i, 1 + take8(&in) % ELEMENTS);
				break;
			case 3:
				if (h.expansion == 0)
					combine(s, &sides[!(op & 1)], true);
				break;
			case 4:
				if (h.expansion == 0)
					combine(s, &sides[!(op & 1)], false);
				break;
			case 5:
				if (h.expansion == 0 && bf_can_fold(&s->f.h))
					halve_or_double(sides, true);
				break;
			case 6:
				if (h.expansion == 0 && h.layout->unfold != NULL &&
					s->f.nbytes * 2 <= MAX_BYTES)
					halve_or_double(sides, false);
				break;
			case 7:
				/* one, many times */
				for (int n = take8(&in) % 24; n > 0; n--)
					add(s, i);
				break;
		}
		if (in.left % 16 == 0)
			check(s);
	}
	check(&sides[0]);
	check(&sides[1]);
	for (int i = 0; i < 2; i++)
	{
		free(sides[i].f.bits);
		for (unsigned j = 0; j < sides[i].nlayers; j++)
			free(sides[i].layers[j].bits);
	}
	return 0;
}
