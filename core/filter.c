/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  What is the same for all layouts: combining, counting, estimates.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bf.h"
#include "bytes.h"

void		(*bf_poll) (void) = NULL;

/*
 * Word by word, in plain arithmetic that every compiler turns into vector
 * code: no -march is needed.
 */
static inline uint64_t
popcount64(uint64_t x)
{
	x -= x >> 1 & UINT64_C(0x5555555555555555);
	x = (x & UINT64_C(0x3333333333333333)) +
		(x >> 2 & UINT64_C(0x3333333333333333));
	x = (x + (x >> 4)) & UINT64_C(0x0F0F0F0F0F0F0F0F);
	return x * UINT64_C(0x0101010101010101) >> 56;
}

uint64_t
bf_popcount(const uint8_t *bytes, size_t len)
{
	uint64_t	count = 0;
	uint64_t	word;

	for (; len >= sizeof(word); bytes += sizeof(word), len -= sizeof(word))
	{
		memcpy(&word, bytes, sizeof(word));
		count += popcount64(word);
	}
	if (len > 0)
	{
		word = 0;
		memcpy(&word, bytes, len);
		count += popcount64(word);
	}
	return count;
}

void
bf_recount(BfFilter *f)
{
	bf_may_stop();
	f->h.nset = f->bits != NULL ?
		f->h.layout->recount(f->bits, &f->h.shape) : 0;
}

/* ------------------------------------------------------------------------
 * For layouts whose payload is plain bits
 * ------------------------------------------------------------------------
 */

/*
 * Combine word by word.
 */
#define COMBINE(into, from, shape, op) \
	do { \
		size_t		len_ = (size_t) (shape)->nbits / 8; \
		size_t		i_ = 0; \
\
		for (; i_ + 8 <= len_; i_ += 8) \
		{ \
			uint64_t	x_, y_; \
\
			memcpy(&x_, (into) + i_, 8); \
			memcpy(&y_, (from) + i_, 8); \
			x_ op y_; \
			memcpy((into) + i_, &x_, 8); \
		} \
		for (; i_ < len_; i_++) \
			(into)[i_] op (from)[i_]; \
	} while (0)

bool
bf_or_bits(uint8_t *into, const uint8_t *from, const BfShape *shape)
{
	COMBINE(into, from, shape, |=);
	return true;
}

bool
bf_and_bits(uint8_t *into, const uint8_t *from, const BfShape *shape)
{
	COMBINE(into, from, shape, &=);
	return true;
}

uint64_t
bf_count_bits(const uint8_t *bits, const BfShape *shape)
{
	return bf_popcount(bits, (size_t) shape->nbits / 8);
}

/* ------------------------------------------------------------------------
 * Adding, removing, combining
 * ------------------------------------------------------------------------
 */
static BfStatus
fail_full(const BfHeader *h, BfError *err)
{
	if (h->nset >= h->capacity)
		bf_fail(err, BF_FULL, "filter is full: it holds %llu elements, its capacity",
				(unsigned long long) h->nset);
	else
		bf_fail(err, BF_FULL,
				"no room for the element: the filter holds %llu elements, its capacity is %llu",
				(unsigned long long) h->nset, (unsigned long long) h->capacity);
	snprintf(err->hint, sizeof(err->hint),
			 "A %s filter holds every copy of an element, of one at most 8: add DISTINCT values, or build the filter with a larger capacity.",
			 h->layout->name);
	return err->status;
}

BfStatus
bf_add(BfFilter *f, BfDigest digest, BfError *err)
{
	int			fresh;

	if (f->h.layout->bounded && f->h.nset >= f->h.capacity)
		return fail_full(&f->h, err);
	fresh = f->h.layout->add(f->bits, &f->h.shape, digest);
	if (fresh < 0)
		return fail_full(&f->h, err);
	f->h.nset += (uint64_t) fresh;
	return BF_OK;
}

BfStatus
bf_add_many(BfFilter *f, const BfDigest *digests, uint32_t n, BfError *err)
{
	const BfLayout *layout = f->h.layout;

	if (layout->add_many != NULL)
	{
		layout->add_many(f->bits, &f->h.shape, digests, n);
		return BF_OK;
	}
	layout->prefetch(f->bits, &f->h.shape, digests, n);
	for (uint32_t i = 0; i < n; i++)
		if (bf_add(f, digests[i], err) != BF_OK)
			return err->status;
	return BF_OK;
}

/*
 * False where the element was certainly not there.
 */
bool
bf_remove(BfFilter *f, BfDigest digest)
{
	int			gone;

	if (f->bits == NULL ||
		!f->h.layout->test(f->bits, &f->h.shape, digest))
		return false;
	gone = f->h.layout->remove(f->bits, &f->h.shape, digest);
	f->h.nset -= (uint64_t) gone;
	return true;
}

BfStatus
bf_unite(BfFilter *into, const BfFilter *from, BfError *err)
{
	bool		fits = !into->h.layout->bounded ||
		into->h.nset + from->h.nset <= into->h.capacity;

	bf_may_stop();
	if (fits)
		fits = into->h.layout->unite(into->bits, from->bits, &into->h.shape);
	if (!fits)
	{
		bf_fail(err, BF_FULL,
				"the union of %llu and %llu elements does not fit into a filter of capacity %llu",
				(unsigned long long) into->h.nset,
				(unsigned long long) from->h.nset,
				(unsigned long long) into->h.capacity);
		snprintf(err->hint, sizeof(err->hint),
				 "Build both filters with a capacity for all elements of both%s.",
				 into->h.nset + from->h.nset <= into->h.capacity ?
				 ", and some more: those that are in both count twice, and need room in the same places" : "");
		return err->status;
	}
	bf_recount(into);
	return BF_OK;
}

void
bf_intersect(BfFilter *into, const BfFilter *from)
{
	bf_may_stop();
	(void) into->h.layout->intersect(into->bits, from->bits, &into->h.shape);
	bf_recount(into);
}

bool
bf_can_fold(const BfHeader *h)
{
	return h->layout->fold != NULL && h->shape.nbits > 0 &&
		h->shape.nbits / h->layout->unit % 2 == 0;
}

void
bf_fold(BfFilter *f)
{
	if (f->bits != NULL)
		f->h.layout->fold(f->bits, &f->h.shape);
	f->h.shape.nbits /= 2;
	f->nbytes /= 2;
	bf_recount(f);
}

double
bf_max_elements(const BfHeader *h)
{
	double		low = 1;
	double		high = 2;

	while (h->layout->rate(&h->shape, high) <= h->fpr &&
		   high < (double) BF_MAX_CAPACITY)
	{
		low = high;
		high *= 2;
	}
	while (high - low > 1)
	{
		double		mid = floor((low + high) / 2);

		if (h->layout->rate(&h->shape, mid) <= h->fpr)
			low = mid;
		else
			high = mid;
	}
	return low;
}

BfStatus
bf_same_parameters(const BfHeader *a, const BfHeader *b, BfError *err)
{
	if (a->layout != b->layout)
		return bf_fail(err, BF_INCOMPATIBLE, "layouts differ: %s and %s",
					   a->layout->name, b->layout->name);
	if (a->hash != b->hash)
		return bf_fail(err, BF_INCOMPATIBLE, "hashes differ: %s and %s",
					   bf_hash_name(a->hash), bf_hash_name(b->hash));
	if ((a->keylen > 0) != (b->keylen > 0))
		return bf_fail(err, BF_INCOMPATIBLE, "keys differ: %s and %s",
					   a->keylen > 0 ? "keyed" : "not keyed",
					   b->keylen > 0 ? "keyed" : "not keyed");
	/* never print a key */
	if (a->keylen != b->keylen || memcmp(a->key, b->key, a->keylen) != 0)
		return bf_fail(err, BF_INCOMPATIBLE, "keys differ");
	if (a->expansion != b->expansion)
		return bf_fail(err, BF_INCOMPATIBLE, "expansions differ: %d and %d",
					   a->expansion, b->expansion);
	if (a->shape.nbits != b->shape.nbits)
		return bf_fail(err, BF_INCOMPATIBLE,
					   "sizes differ: %llu bits (capacity %llu, fpr %g) and %llu bits (capacity %llu, fpr %g)",
					   (unsigned long long) a->shape.nbits,
					   (unsigned long long) a->capacity, a->fpr,
					   (unsigned long long) b->shape.nbits,
					   (unsigned long long) b->capacity, b->fpr);
	if (a->shape.nhashes != b->shape.nhashes)
		return bf_fail(err, BF_INCOMPATIBLE,
					   "numbers of hashes differ: %u and %u",
					   a->shape.nhashes, b->shape.nhashes);
	return BF_OK;
}

/*
 * Two filters of one size may have been asked for with different words.  The
 * larger wish wins, so that the order does not matter.
 */
void
bf_merge_design(BfHeader *into, const BfHeader *from)
{
	if (from->capacity > into->capacity ||
		(from->capacity == into->capacity && from->fpr > into->fpr))
	{
		into->capacity = from->capacity;
		into->fpr = from->fpr;
	}
	into->hashes_given |= from->hashes_given;
}

/*
 * Of layers: an element that an earlier layer lets pass is not added to a
 * later one, unless copies count.
 */
double
bf_cardinality(const BfHeader *h)
{
	double		n = 0;
	double		stopped = 1;

	if (h->expansion == 0)
		return h->nset == 0 ? 0 : h->layout->count(&h->shape, h->nset);
	for (unsigned i = 0; i < h->nlayers; i++)
	{
		BfHeader	layer;

		bf_layer_header(h, i, &layer);
		n += bf_cardinality(&layer) / stopped;
		if (!h->layout->multiset)
			stopped *= 1 - bf_expected_fpr(&layer);
	}
	return n;
}

/*
 * Of layers: the chance that any of them lets a stranger pass.
 */
double
bf_expected_fpr(const BfHeader *h)
{
	double		stopped = 1;

	if (h->expansion == 0)
		return h->nset == 0 ? 0 :
			h->layout->rate(&h->shape, bf_cardinality(h));
	for (unsigned i = 0; i < h->nlayers; i++)
	{
		BfHeader	layer;

		bf_layer_header(h, i, &layer);
		stopped *= 1 - bf_expected_fpr(&layer);
	}
	return 1 - stopped;
}

/*
 * The rate that the filter has when it holds just its capacity, or the rate
 * asked for, whichever is higher.
 */
double
bf_design_fpr(const BfHeader *h)
{
	if (!bf_is_sized(h) || h->expansion != 0)
		return h->fpr;
	return fmax(h->fpr, h->layout->rate(&h->shape, (double) h->capacity));
}

bool
bf_overfilled(const BfHeader *h)
{
	double		expected;
	double		variance;
	double		set;
	double		at_capacity;
	double		high;

	if (h->nset == 0 || h->layout->bounded)
		return h->expansion != 0 &&
			bf_expected_fpr(h) > 1.1 * bf_design_fpr(h);
	expected = bf_expected_fpr(h);
	if (expected <= 1.1 * bf_design_fpr(h))
		return false;			/* most often the end of it */
	if (h->expansion != 0)
		return true;

	/*
	 * Five standard deviations: with three, one in thousands of exactly full
	 * small filters would be called overfilled.
	 */
	at_capacity = h->layout->rate(&h->shape, (double) h->capacity);
	set = h->layout->expected_set(&h->shape, (double) h->capacity, &variance);
	set = ceil(set + 5 * sqrt(variance));
	high = set >= (double) h->shape.nbits ? 1 :
		h->layout->rate(&h->shape,
						h->layout->count(&h->shape, (uint64_t) set));
	return expected > 1.1 * bf_design_fpr(h) + (high - at_capacity);
}
