/*-------------------------------------------------------------------------
 *
 * counting.c
 *	  The counting Bloom filter: elements can be removed.
 *
 * Fan, Cao, Almeida and Broder, "Summary cache", IEEE/ACM Transactions on
 * Networking 8 (3), 2000: a 4-bit counter in the place of each bit of the
 * standard filter.  Adding increments an element's k counters, removing
 * decrements them, and an element may be there if none is 0.
 *
 * A counter at 15 sticks: from then on nobody knows how many elements it
 * stands for, so it is never decremented.  Otherwise a filter could lose an
 * element that nobody removed.
 *
 * Position i is counter i: the low half of byte i/2 for even i, the high half
 * for odd i.  The payload of m counters has 4 m bits.  X is the number of
 * counters that are not 0, so that n, p and all estimates are the standard
 * filter's.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bf.h"
#include "positions.h"

#define STUCK	15

/* Bytes from here on up to the next call of bf_poll. */
static inline uint64_t
stretch(uint64_t from, const BfShape *shape)
{
	uint64_t	nbytes = shape->nbits / 8;

	bf_may_stop();
	return nbytes - from > BF_POLL_BYTES ? from + BF_POLL_BYTES : nbytes;
}

#define FOR_EACH_BYTE(shape, i) \
	for (uint64_t i = 0, end_; i < (shape)->nbits / 8;) \
		for (end_ = stretch(i, (shape)); i < end_; i++)

/* The standard filter of as many positions. */
static inline BfShape
positions_of(const BfShape *shape)
{
	return (BfShape) {shape->nbits / 4, shape->nhashes};
}

static void
counting_size(double n, double p, BfShape *shape)
{
	bf_standard_size(n, p, shape);
	if (shape->nbits < UINT64_MAX / 4)
		shape->nbits *= 4;
}

static double
counting_rate(const BfShape *shape, double n)
{
	BfShape		s = positions_of(shape);

	return bf_standard_rate(&s, n);
}

static double
counting_expected_set(const BfShape *shape, double n, double *variance)
{
	BfShape		s = positions_of(shape);

	return bf_standard_expected_set(&s, n, variance);
}

static double
counting_count(const BfShape *shape, uint64_t nset)
{
	BfShape		s = positions_of(shape);

	return bf_standard_count(&s, nset);
}

static inline uint32_t
get_counter(const uint8_t *bits, uint64_t pos)
{
	return bits[pos >> 1] >> (pos & 1) * 4 & 15;
}

static void
counting_prefetch(const uint8_t *bits, const BfShape *shape,
				  const BfDigest *digests, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		FOR_EACH_POSITION(shape->nbits / 4, shape->nhashes, digests[i], pos)
			__builtin_prefetch(bits + (pos >> 1), 1);
}

static int
counting_add(uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	int			fresh = 0;

	FOR_EACH_POSITION(shape->nbits / 4, shape->nhashes, digest, pos)
	{
		uint32_t	counter = get_counter(bits, pos);

		fresh += counter == 0;
		if (counter < STUCK)
			bits[pos >> 1] = (uint8_t) (bits[pos >> 1] + (1U << (pos & 1) * 4));
	}
	return fresh;
}

static void
counting_add_many(uint8_t *bits, const BfShape *shape,
				  const BfDigest *digests, uint32_t n)
{
	const BfShape s = *shape;

	counting_prefetch(bits, &s, digests, n);
	for (uint32_t i = 0; i < n; i++)
		(void) counting_add(bits, &s, digests[i]);
}

static int
counting_remove(uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	int			gone = 0;

	FOR_EACH_POSITION(shape->nbits / 4, shape->nhashes, digest, pos)
	{
		uint32_t	counter = get_counter(bits, pos);

		/*
		 * 0 only if the element was never added, but passed the test, and its
		 * positions repeat.
		 */
		if (counter == 0 || counter == STUCK)
			continue;
		gone += counter == 1;
		bits[pos >> 1] = (uint8_t) (bits[pos >> 1] - (1U << (pos & 1) * 4));
	}
	return gone;
}

static bool
counting_test(const uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	FOR_EACH_POSITION(shape->nbits / 4, shape->nhashes, digest, pos)
	{
		if (get_counter(bits, pos) == 0)
			return false;
	}
	return true;
}

static uint32_t
counting_ranges(const BfShape *shape, BfDigest digest,
				BfRange ranges[BF_MAX_RANGES])
{
	return bf_position_ranges(shape->nbits / 4, shape->nhashes, digest, 2,
							  ranges);
}

static bool
counting_test_ranges(const uint8_t *bytes, const BfRange *ranges,
					 uint32_t nranges, const BfShape *shape, BfDigest digest)
{
	FOR_EACH_POSITION(shape->nbits / 4, shape->nhashes, digest, pos)
	{
		if ((bf_ranges_byte(bytes, ranges, nranges, pos >> 1) >>
			 (pos & 1) * 4 & 15) == 0)
			return false;
	}
	return true;
}

/*
 * The sum of two multisets.
 */
static bool
counting_unite(uint8_t *into, const uint8_t *from, const BfShape *shape)
{
	FOR_EACH_BYTE(shape, i)
	{
		uint32_t	low = (into[i] & 15U) + (from[i] & 15U);
		uint32_t	high = (into[i] >> 4) + (from[i] >> 4);

		into[i] = (uint8_t) ((low < STUCK ? low : STUCK) |
							 (high < STUCK ? high : STUCK) << 4);
	}
	return true;
}

/*
 * The smaller of two counters is at least what the common elements add up to.
 */
static bool
counting_intersect(uint8_t *into, const uint8_t *from, const BfShape *shape)
{
	FOR_EACH_BYTE(shape, i)
	{
		uint32_t	low = into[i] & 15U;
		uint32_t	high = into[i] >> 4;

		if ((from[i] & 15U) < low)
			low = from[i] & 15U;
		if ((uint32_t) from[i] >> 4 < high)
			high = from[i] >> 4;
		into[i] = (uint8_t) (low | high << 4);
	}
	return true;
}

static uint64_t
counting_recount(const uint8_t *bits, const BfShape *shape)
{
	uint64_t	nset = 0;

	FOR_EACH_BYTE(shape, i)
		nset += ((bits[i] & 15) != 0) + (bits[i] >> 4 != 0);
	return nset;
}

/*
 * The plain filter of the counters that are not 0: bits has room for a
 * quarter of the counters' bytes.
 */
void
bf_counting_to_bits(const uint8_t *counters, const BfShape *shape,
					uint8_t *bits)
{
	for (uint64_t pos = 0; pos < shape->nbits / 4; pos += 8)
	{
		uint32_t	byte = 0;

		if (pos % BF_POLL_BYTES == 0)
			bf_may_stop();
		for (uint32_t j = 0; j < 8; j++)
			byte |= (uint32_t) (get_counter(counters, pos + j) != 0) << j;
		bits[pos / 8] = (uint8_t) byte;
	}
}

const BfLayout bf_layout_counting = {
	.id = BF_COUNTING,
	.name = "counting",
	.min_fpr = 1e-6,
	.max_hashes = 64,
	.takes_hashes = true,
	.unit = 32,
	.multiset = true,
	.size = counting_size,
	.rate = counting_rate,
	.expected_set = counting_expected_set,
	.count = counting_count,
	.prefetch = counting_prefetch,
	.add = counting_add,
	.add_many = counting_add_many,
	.remove = counting_remove,
	.test = counting_test,
	.ranges = counting_ranges,
	.test_ranges = counting_test_ranges,
	.unite = counting_unite,
	.intersect = counting_intersect,
	.recount = counting_recount,
};
