/*-------------------------------------------------------------------------
 *
 * filter.c
 *	  What is the same for all layouts: combining, counting, estimates.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bf.h"
#include "bytes.h"

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
	f->h.nset = f->bits != NULL ? bf_popcount(f->bits, f->nbytes) : 0;
}

/*
 * Combine word by word, and count in the same pass.
 */
#define COMBINE(into, from, op) \
	do { \
		uint8_t    *a_ = (into)->bits; \
		const uint8_t *b_ = (from)->bits; \
		size_t		left_ = (into)->nbytes; \
		uint64_t	count_ = 0; \
\
		for (; left_ >= 8; a_ += 8, b_ += 8, left_ -= 8) \
		{ \
			uint64_t	x_, y_; \
\
			memcpy(&x_, a_, 8); \
			memcpy(&y_, b_, 8); \
			x_ op y_; \
			memcpy(a_, &x_, 8); \
			count_ += popcount64(x_); \
		} \
		for (size_t i_ = 0; i_ < left_; i_++) \
		{ \
			a_[i_] op b_[i_]; \
			count_ += popcount64(a_[i_]); \
		} \
		(into)->h.nset = count_; \
	} while (0)

void
bf_or(BfFilter *into, const BfFilter *from)
{
	COMBINE(into, from, |=);
}

void
bf_and(BfFilter *into, const BfFilter *from)
{
	COMBINE(into, from, &=);
}

bool
bf_can_fold(const BfHeader *h)
{
	return h->shape.nbits / h->layout->unit % 2 == 0 && h->shape.nbits > 0;
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

double
bf_cardinality(const BfHeader *h)
{
	return h->nset == 0 ? 0 : h->layout->count(&h->shape, h->nset);
}

double
bf_expected_fpr(const BfHeader *h)
{
	return h->layout->rate(&h->shape, bf_cardinality(h));
}

/*
 * The rate that the filter has when it holds just its capacity, or the rate
 * asked for, whichever is higher.
 */
double
bf_design_fpr(const BfHeader *h)
{
	if (!bf_is_sized(h))
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

	if (h->nset == 0)
		return false;
	expected = bf_expected_fpr(h);
	if (expected <= 1.1 * bf_design_fpr(h))
		return false;			/* most often the end of it */

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
