/*-------------------------------------------------------------------------
 *
 * positions.h
 *	  The textbook positions, shared by the standard and counting layouts.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_POSITIONS_H
#define BF_POSITIONS_H

#include "bf.h"

/*
 * Walk the k positions (h1 + i * h2) mod m.  h1 and h2 are reduced first, so
 * that no sum can wrap around.
 */
#define FOR_EACH_POSITION(m, k, digest, pos) \
	for (uint64_t m_ = (m), pos = (digest).h1 % m_, \
		 step_ = ((digest).h2 | 1) % m_, left_ = (k); \
		 left_ > 0; \
		 left_--, pos += step_, pos -= pos >= m_ ? m_ : 0)

/* The standard layout's sizes and estimates, for m positions. */
extern void bf_standard_size(double n, double p, BfShape *shape);
extern double bf_standard_rate(const BfShape *shape, double n);
extern double bf_standard_expected_set(const BfShape *shape, double n,
									   double *variance);
extern double bf_standard_count(const BfShape *shape, uint64_t nset);

/* Byte ranges that hold the positions; per_byte positions share a byte. */
extern uint32_t bf_position_ranges(uint64_t m, uint32_t k, BfDigest digest,
								   uint32_t per_byte,
								   BfRange ranges[BF_MAX_RANGES]);

/* The byte at an offset, out of the ranges' bytes. */
static inline uint8_t
bf_ranges_byte(const uint8_t *bytes, const BfRange *ranges, uint32_t nranges,
			   uint64_t offset)
{
	for (uint32_t i = 0; i < nranges; i++)
	{
		if (offset - ranges[i].offset < ranges[i].length)
			return bytes[offset - ranges[i].offset];
		bytes += ranges[i].length;
	}
	return 0;
}

#endif							/* BF_POSITIONS_H */
