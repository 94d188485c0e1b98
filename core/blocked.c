/*-------------------------------------------------------------------------
 *
 * blocked.c
 *	  The blocked Bloom filter: an element's k bits lie in one 64-byte block.
 *
 * Putze, Sanders and Singler, "Cache-, hash- and space-efficient Bloom
 * filters", WEA 2007 (JEA 14, 2009).  A probe costs one cache line, whatever
 * the filter's size, for about 3% more bits than the standard filter at 1%.
 *
 * The block is taken from the high 32 bits of h1, the positions inside it are
 * independent 9-bit pieces of the digest: seven from h2, three from the low
 * half of h1, and beyond ten from a mix of both.  (Double hashing inside a
 * block is up to ten times over the rate.)
 *
 * Rate.  A false positive needs its k throws to land on set bits of one of B
 * blocks.  Its throws hit i distinct bits with probability
 * S(k,i) 512!/(512-i)! / 512^k (S: Stirling numbers of the second kind), and
 * i given bits are all set, by inclusion and exclusion, with probability
 * sum_l (-1)^l C(i,l) P(l given bits unset).  One element leaves l given bits
 * of a block unset with probability 1 - (1 - (1 - l/512)^k) / B, and the n
 * elements are independent, so that the rate is exact for every n and B:
 *
 *	f(n) = sum_l c(k,l) (1 - (1 - (1 - l/512)^k) / B)^n
 *	c(k,l) = (-1)^l sum_i S(k,i) 512!/(512-i)! / 512^k C(i,l)
 *
 * No approximation by the mean load of a block is made, which would miss the
 * rate by 1% to 4%.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>

#include "bf.h"
#include "bytes.h"

#define MAX_HASHES	16

/* Coefficients for one k. */
typedef struct BlockedTerms
{
	bool		known;
	double		c[MAX_HASHES + 1];	/* c(k,l) */
	double		miss[MAX_HASHES + 1];	/* 1 - (1 - l/512)^k */
} BlockedTerms;

/* Filled in on first use: a function of k alone. */
static BlockedTerms all_terms[MAX_HASHES + 1];

static const BlockedTerms *
blocked_terms(uint32_t k)
{
	BlockedTerms *t = &all_terms[k];
	double		stirling[MAX_HASHES + 1] = {1};
	double		falling = 1;	/* 512!/(512-i)! / 512^i */

	if (t->known)
		return t;

	for (uint32_t a = 1; a <= k; a++)
	{
		for (uint32_t i = a; i > 0; i--)
			stirling[i] = i * stirling[i] + stirling[i - 1];
		stirling[0] = 0;
	}

	for (uint32_t l = 0; l <= k; l++)
	{
		t->c[l] = 0;
		t->miss[l] = -expm1(k * log1p(-(double) l / BF_BLOCK_BITS));
	}
	for (uint32_t i = 1; i <= k; i++)
	{
		double		hit;
		double		binomial = 1;	/* C(i,l) */

		falling *= (double) (BF_BLOCK_BITS - i + 1) / BF_BLOCK_BITS;
		hit = ldexp(stirling[i] * falling, -9 * (int) (k - i));
		for (uint32_t l = 0; l <= i; l++)
		{
			t->c[l] += (l % 2 ? -hit : hit) * binomial;
			binomial = binomial * (i - l) / (l + 1);
		}
	}
	t->known = true;
	return t;
}

static double
blocked_rate_of(double nblocks, uint32_t k, double n)
{
	const BlockedTerms *t = blocked_terms(k);
	double		f = 0;

	for (uint32_t l = 0; l <= k; l++)
		f += t->c[l] * exp(n * log1p(-t->miss[l] / nblocks));

	/*
	 * The sum is good to about 2e-12.  By Jensen's inequality the rate of the
	 * mean fill is a lower bound, which serves below that.
	 */
	f = fmax(f, pow(-expm1(n * log1p(-t->miss[1] / nblocks)), k));
	return fmin(1, f);
}

/*
 * The fewest blocks that meet p with k hashes.
 */
static double
blocked_fewest(double n, double p, uint32_t k)
{
	double		low = 1;
	double		high = ceil(n * -log(p) / (0.4804530139182014 * BF_BLOCK_BITS));

	if (high < 1)
		high = 1;
	while (blocked_rate_of(high, k, n) > p)
	{
		low = high + 1;
		high = high * 2;
	}
	while (low < high)
	{
		double		mid = floor((low + high) / 2);

		if (blocked_rate_of(mid, k, n) > p)
			low = mid + 1;
		else
			high = mid;
	}
	return high;
}

/*
 * The fewest blocks over all k.  The rate falls as blocks are added, so that
 * most k are ruled out by one look.
 *
 * Small filters often meet p with several k.  Of those the largest up to the
 * textbook's -log2 p is taken: it gives a lower rate for the same bytes.
 */
static void
blocked_size(double n, double p, BfShape *shape)
{
	uint32_t	ideal = (uint32_t) fmin(MAX_HASHES, fmax(1, rint(-log2(p))));
	double		best = blocked_fewest(n, p, ideal);

	for (uint32_t k = 1; k <= MAX_HASHES && best > 1; k++)
	{
		if (blocked_rate_of(best - 1, k, n) <= p)
			best = blocked_fewest(n, p, k);
	}
	shape->nbits = best < 1e15 ? (uint64_t) best * BF_BLOCK_BITS : UINT64_MAX;

	if (shape->nhashes == 0)
	{
		uint32_t	k = ideal;

		while (k > 0 && blocked_rate_of(best, k, n) > p)
			k--;
		if (k == 0)
			for (k = ideal + 1; blocked_rate_of(best, k, n) > p;)
				k++;
		shape->nhashes = k;
	}
}

static double
blocked_rate(const BfShape *shape, double n)
{
	if (n <= 0)
		return 0;
	if (isinf(n))
		return 1;
	return blocked_rate_of((double) (shape->nbits / BF_BLOCK_BITS),
						   shape->nhashes, n);
}

/*
 * Exact, from the chances that one bit, two bits of a block and two bits of
 * different blocks stay unset.
 */
static double
blocked_expected_set(const BfShape *shape, double n, double *variance)
{
	const BlockedTerms *t = blocked_terms(shape->nhashes);
	double		m = (double) shape->nbits;
	double		nblocks = m / BF_BLOCK_BITS;
	double		miss1 = t->miss[1];
	double		miss2 = shape->nhashes > 1 ? t->miss[2] :
		2.0 / BF_BLOCK_BITS;
	double		unset = exp(n * log1p(-miss1 / nblocks));
	double		same_block = exp(n * log1p(-miss2 / nblocks));
	double		var_within;
	double		var_between = 0;

	var_within = m * (unset - unset * unset) +
		m * (BF_BLOCK_BITS - 1) * (same_block - unset * unset);

	if (nblocks > 1)
	{
		/* (1 - 2a)^n - (1 - a)^2n, without cancellation */
		double		a = miss1 / nblocks;

		var_between = m * (m - BF_BLOCK_BITS) * unset * unset *
			expm1(n * log1p(-(a * a) / ((1 - a) * (1 - a))));
	}
	*variance = fmax(0, var_within + var_between);
	return m * (1 - unset);
}

/*
 * The standard filter's count (Swamidass and Baldi 2007), with the chance
 * that an element misses a given bit taken for throws into one block.
 */
static double
blocked_count(const BfShape *shape, uint64_t nset)
{
	double		m = (double) shape->nbits;

	if (nset >= shape->nbits)
		return INFINITY;
	return log1p(-(double) nset / m) /
		log1p(-blocked_terms(shape->nhashes)->miss[1] / (m / BF_BLOCK_BITS));
}

static inline uint64_t
blocked_offset(const BfShape *shape, BfDigest digest)
{
	uint64_t	nblocks = shape->nbits / BF_BLOCK_BITS;

	return ((digest.h1 >> 32) * nblocks >> 32) * (BF_BLOCK_BITS / 8);
}

/*
 * An element's positions are 9-bit pieces, from the lowest on, of three words:
 * seven from the first, three from the second, the rest from the third.  Only
 * what is beyond seven takes a second step: k is 6 or 7 at 1%.
 */
#define FIRST_WORD	7
#define SECOND_WORD	10

static inline uint64_t
third_word(BfDigest digest)
{
	uint64_t	word = (digest.h1 ^ (digest.h2 << 32 | digest.h2 >> 32)) *
		UINT64_C(0x9E3779B97F4A7C15);

	return word ^ word >> 32;
}

#define FOR_EACH_POSITION(digest, from, k, pos) \
	for (uint64_t i_ = (from), \
		 w_ = (from) == 0 ? (digest).h2 : (digest).h1, pos; \
		 i_ < (k) && \
		 (w_ = i_ == SECOND_WORD ? third_word(digest) : w_, \
		  pos = w_ & (BF_BLOCK_BITS - 1), true); \
		 i_++, w_ >>= 9)

static inline void
set_positions(uint8_t *block, BfDigest digest, uint32_t k)
{
	uint32_t	first = k < FIRST_WORD ? k : FIRST_WORD;

	FOR_EACH_POSITION(digest, 0, first, pos)
		block[pos >> 3] |= (uint8_t) (1U << (pos & 7));
	FOR_EACH_POSITION(digest, FIRST_WORD, k, pos)
		block[pos >> 3] |= (uint8_t) (1U << (pos & 7));
}

static int
blocked_add(uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	uint8_t    *block = bits + blocked_offset(shape, digest);
	uint64_t	before = bf_popcount(block, BF_BLOCK_BITS / 8);

	set_positions(block, digest, shape->nhashes);
	return (int) (bf_popcount(block, BF_BLOCK_BITS / 8) - before);
}

static void
blocked_prefetch(const uint8_t *bits, const BfShape *shape,
				 const BfDigest *digests, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(bits + blocked_offset(shape, digests[i]), 1);
}

static void
blocked_add_many(uint8_t *bits, const BfShape *shape,
				 const BfDigest *digests, uint32_t n)
{
	/* copies: the compiler must think that setting bits changes *shape */
	const BfShape s = *shape;

	blocked_prefetch(bits, &s, digests, n);
	for (uint32_t i = 0; i < n; i++)
	{
		const BfDigest digest = digests[i];

		set_positions(bits + blocked_offset(&s, digest), digest, s.nhashes);
	}
}

/*
 * All of the first word's bits are looked at, even behind a 0: where it falls
 * is chance, and a branch on it would be mispredicted at every other probe.
 */
static inline bool
test_block(const uint8_t *block, const BfShape *shape, BfDigest digest)
{
	uint32_t	k = shape->nhashes;
	uint32_t	first = k < FIRST_WORD ? k : FIRST_WORD;
	unsigned	hit = 1;

	FOR_EACH_POSITION(digest, 0, first, pos)
		hit &= (unsigned) block[pos >> 3] >> (pos & 7);
	if (!(hit & 1))
		return false;

	FOR_EACH_POSITION(digest, FIRST_WORD, k, pos)
	{
		if (!(block[pos >> 3] >> (pos & 7) & 1))
			return false;
	}
	return true;
}

static bool
blocked_test(const uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	return test_block(bits + blocked_offset(shape, digest), shape, digest);
}

static bool
blocked_test_ranges(const uint8_t *bytes, const BfRange *ranges,
					uint32_t nranges, const BfShape *shape, BfDigest digest)
{
	(void) ranges;
	(void) nranges;
	return test_block(bytes, shape, digest);
}

/*
 * The block's number is a product's high half: with half as many blocks it is
 * half the number.
 */
static void
blocked_fold(uint8_t *bits, const BfShape *shape)
{
	size_t		half = (size_t) (shape->nbits / BF_BLOCK_BITS / 2);

	for (size_t i = 0; i < half; i++)
	{
		uint8_t		block[BF_BLOCK_BITS / 8];

		for (int j = 0; j < BF_BLOCK_BITS / 8; j++)
			block[j] = bits[2 * i * sizeof(block) + j] |
				bits[(2 * i + 1) * sizeof(block) + j];
		memcpy(bits + i * sizeof(block), block, sizeof(block));
	}
}

/*
 * Its inverse, but for what is united already: both blocks of a pair become
 * what it was.
 */
static void
blocked_unfold(uint8_t *bits, const BfShape *shape)
{
	const size_t block = BF_BLOCK_BITS / 8;

	for (size_t i = (size_t) (shape->nbits / BF_BLOCK_BITS); i-- > 0;)
	{
		memcpy(bits + (2 * i + 1) * block, bits + i * block, block);
		if (i > 0)
			memcpy(bits + 2 * i * block, bits + i * block, block);
	}
}

static uint32_t
blocked_ranges(const BfShape *shape, BfDigest digest,
			   BfRange ranges[BF_MAX_RANGES])
{
	ranges[0].offset = blocked_offset(shape, digest);
	ranges[0].length = BF_BLOCK_BITS / 8;
	return 1;
}

const BfLayout bf_layout_blocked = {
	.id = BF_BLOCKED,
	.name = "blocked",
	.min_fpr = 1e-6,
	.max_hashes = MAX_HASHES,
	.takes_hashes = true,
	.unit = BF_BLOCK_BITS,
	.size = blocked_size,
	.rate = blocked_rate,
	.expected_set = blocked_expected_set,
	.fold = blocked_fold,
	.unfold = blocked_unfold,
	.count = blocked_count,
	.add = blocked_add,
	.prefetch = blocked_prefetch,
	.add_many = blocked_add_many,
	.test = blocked_test,
	.ranges = blocked_ranges,
	.test_ranges = blocked_test_ranges,
	.unite = bf_or_bits,
	.intersect = bf_and_bits,
	.recount = bf_count_bits,
};
