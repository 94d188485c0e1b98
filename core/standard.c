/*-------------------------------------------------------------------------
 *
 * standard.c
 *	  The Bloom filter of the textbooks.
 *
 * Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM
 * 13 (7), 1970, with the double hashing of Kirsch and Mitzenmacher, "Less
 * hashing, same performance", Random Structures & Algorithms 33 (2), 2008:
 * position i of an element is (h1 + i * h2) mod m, i = 0 .. k - 1, with h2
 * made odd.
 *
 * Size: m = ceil(-n ln p / (ln 2)^2) in whole bytes, k = round(m/n ln 2).
 * Rate: (1 - e^(-kn/m))^k plus what double hashing costs, since two elements
 * whose progressions overlap share several bits at once.  Simulation puts
 * that excess at no more than 16 n / m^2; it matters for small n and for
 * small p, where m is raised until the rate asked for is met.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bf.h"
#include "positions.h"

/* Below this n, or below this p, the excess of double hashing is sized for. */
#define SMALL_N		5000
#define SMALL_P		0.001

#define LN2			0.69314718055994530942

static double
standard_theory(double m, double k, double n)
{
	return pow(-expm1(-k * n / m), k);
}

static double
standard_excess(double m, double n)
{
	return 16.0 * n / (m * m);
}

void
bf_standard_size(double n, double p, BfShape *shape)
{
	double		bytes = ceil(ceil(-n * log(p) / (LN2 * LN2)) / 8);
	double		k;

	if (bytes < 1)
		bytes = 1;
	k = fmax(1, rint(bytes * 8 / n * LN2));
	k = fmin(k, bf_layout_standard.max_hashes);

	/*
	 * A k that the caller gives does not change m: one bit count, several k,
	 * is what it is for.
	 */
	if (n < SMALL_N || p < SMALL_P)
	{
		double		bound = 1.003 * fmax(p, standard_theory(bytes * 8, k, n));
		double		low = bytes;	/* the fewest bytes is >= low */
		double		high = bytes;

		while (standard_theory(high * 8, k, n) +
			   standard_excess(high * 8, n) > bound)
		{
			low = high + 1;
			high *= 2;
		}
		while (low < high)
		{
			double		mid = floor((low + high) / 2);

			if (standard_theory(mid * 8, k, n) +
				standard_excess(mid * 8, n) > bound)
				low = mid + 1;
			else
				high = mid;
		}
		bytes = high;
	}

	/* past any limit: the caller refuses it by its true size */
	shape->nbits = bytes < 1e15 ? (uint64_t) bytes * 8 : UINT64_MAX;
	if (shape->nhashes == 0)
		shape->nhashes = (uint32_t) k;
}

double
bf_standard_rate(const BfShape *shape, double n)
{
	double		m = (double) shape->nbits;

	if (n <= 0)
		return 0;
	if (isinf(n))
		return 1;
	return fmin(1, standard_theory(m, shape->nhashes, n) +
				(shape->nhashes > 1 ? standard_excess(m, n) : 0));
}

/*
 * Bins occupied by kn balls thrown into m bins.
 */
double
bf_standard_expected_set(const BfShape *shape, double n, double *variance)
{
	double		m = (double) shape->nbits;
	double		load = shape->nhashes * n / m;
	double		empty = exp(-load);

	*variance = fmax(0, m * empty * (1 - (1 + load) * empty));
	return m * -expm1(-load);
}

/*
 * n = -(m/k) ln(1 - X/m): Swamidass and Baldi, "Mathematical correction for
 * fingerprint similarity measures to improve chemical retrieval", J. Chem.
 * Inf. Model. 47 (3), 2007.
 */
double
bf_standard_count(const BfShape *shape, uint64_t nset)
{
	double		m = (double) shape->nbits;

	if (nset >= shape->nbits)
		return INFINITY;
	return -m / shape->nhashes * log1p(-(double) nset / m);
}

static int
standard_add(uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	int			fresh = 0;

	FOR_EACH_POSITION(shape->nbits, shape->nhashes, digest, pos)
	{
		uint8_t		old = bits[pos >> 3];

		fresh += (old >> (pos & 7) & 1) ^ 1;
		bits[pos >> 3] = (uint8_t) (old | 1U << (pos & 7));
	}
	return fresh;
}

static void
standard_prefetch(const uint8_t *bits, const BfShape *shape,
				  const BfDigest *digests, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		FOR_EACH_POSITION(shape->nbits, shape->nhashes, digests[i], pos)
			__builtin_prefetch(bits + (pos >> 3), 1);
}

static void
standard_add_many(uint8_t *bits, const BfShape *shape,
				  const BfDigest *digests, uint32_t n)
{
	/* a copy: the compiler must think that setting bits changes *shape */
	const BfShape s = *shape;

	standard_prefetch(bits, &s, digests, n);
	for (uint32_t i = 0; i < n; i++)
		FOR_EACH_POSITION(s.nbits, s.nhashes, digests[i], pos)
			bits[pos >> 3] |= (uint8_t) (1U << (pos & 7));
}

static bool
standard_test(const uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	FOR_EACH_POSITION(shape->nbits, shape->nhashes, digest, pos)
	{
		if (!(bits[pos >> 3] >> (pos & 7) & 1))
			return false;
	}
	return true;
}

/*
 * A position modulo m becomes one modulo m/2.
 */
static void
standard_fold(uint8_t *bits, const BfShape *shape)
{
	size_t		half = (size_t) (shape->nbits / 16);

	for (size_t i = 0; i < half; i++)
		bits[i] |= bits[half + i];
}

static void
standard_unfold(uint8_t *bits, const BfShape *shape)
{
	memcpy(bits + shape->nbits / 8, bits, (size_t) (shape->nbits / 8));
}

uint32_t
bf_position_ranges(uint64_t m, uint32_t k, BfDigest digest,
				   uint32_t per_byte, BfRange ranges[BF_MAX_RANGES])
{
	uint32_t	n = 0;

	/* insertion sort: k is small */
	FOR_EACH_POSITION(m, k, digest, pos)
	{
		uint64_t	byte = pos / per_byte;
		uint32_t	i = n;

		while (i > 0 && ranges[i - 1].offset > byte)
			i--;
		if (i > 0 && ranges[i - 1].offset == byte)
			continue;
		for (uint32_t j = n; j > i; j--)
			ranges[j] = ranges[j - 1];
		ranges[i].offset = byte;
		ranges[i].length = 1;
		n++;
	}
	return n;
}

static uint32_t
standard_ranges(const BfShape *shape, BfDigest digest,
				BfRange ranges[BF_MAX_RANGES])
{
	return bf_position_ranges(shape->nbits, shape->nhashes, digest, 8, ranges);
}

static bool
standard_test_ranges(const uint8_t *bytes, const BfRange *ranges,
					 uint32_t nranges, const BfShape *shape, BfDigest digest)
{
	FOR_EACH_POSITION(shape->nbits, shape->nhashes, digest, pos)
	{
		if (!(bf_ranges_byte(bytes, ranges, nranges, pos >> 3) >> (pos & 7) & 1))
			return false;
	}
	return true;
}

const BfLayout bf_layout_standard = {
	.id = BF_STANDARD,
	.name = "standard",
	.min_fpr = 1e-6,
	.max_hashes = 64,
	.takes_hashes = true,
	.unit = 8,
	.size = bf_standard_size,
	.rate = bf_standard_rate,
	.expected_set = bf_standard_expected_set,
	.fold = standard_fold,
	.unfold = standard_unfold,
	.count = bf_standard_count,
	.add = standard_add,
	.prefetch = standard_prefetch,
	.add_many = standard_add_many,
	.test = standard_test,
	.ranges = standard_ranges,
	.test_ranges = standard_test_ranges,
	.unite = bf_or_bits,
	.intersect = bf_and_bits,
	.recount = bf_count_bits,
};
