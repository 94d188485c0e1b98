/*-------------------------------------------------------------------------
 *
 * rates.c
 *	  Hold the false-positive rates to what was asked for.
 *
 * For all layouts, both hashes, four patterns of keys, ten sizes and four
 * rates: no false negative, and of T probes of absent keys at most
 * T q + 3 sqrt(T q (1 - q)) pass, where q is the larger of the rate asked for
 * and the layout's theory.  One filter varies by more than that by itself, so
 * that below n = 10^6 many filters are averaged, of different keys, each
 * probed at most max(n, 100) times, until T q is 10^4 (10^3 at 0.0001, without
 * --full).
 *
 * Keys are hashed once, into a pool of digests a hash and pattern; filters
 * draw their elements and strangers from it at random.
 *
 *	rates [--full] [pattern ...]	the bound; exit status 1 where it fails
 *	rates --mutant short-probe		probes test one bit fewer than add sets:
 *	rates --mutant h2				h2 is forced to 1: both must fail
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bf.h"

#define POOL		(1u << 22)
#define MEMBERS_BIG 1000000

static const double sizes[] = {1, 2, 3, 5, 10, 30, 100, 1000, 1e5, 1e6};
static const double rates[] = {0.1, 0.01, 0.001, 0.0001};
static const char *const patterns[] = {
	"sequential", "shared-prefix", "random", "1000-byte"
};

enum
{
	NO_MUTANT, SHORT_PROBE, H2_IS_1
}			mutant = NO_MUTANT;

static bool full = false;
static BfDigest *pool;
static uint8_t *bits;

/* splitmix64: Steele, Lea and Flood, OOPSLA 2014 */
static uint64_t rng_state;

static uint64_t
rng(void)
{
	uint64_t	z = (rng_state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

/* A digest of the pool; the one that the stride comes to soon is fetched. */
static inline BfDigest
draw(uint32_t j, uint32_t stride)
{
	__builtin_prefetch(&pool[(j + 16 * stride) % POOL]);
	return pool[j % POOL];
}

static size_t
make_key(int pattern, uint64_t i, uint8_t *key)
{
	switch (pattern)
	{
		case 0:
			/* an integer, as the SQL type encodes it */
			for (int b = 0; b < 8; b++)
				key[b] = (uint8_t) (i >> (8 * b));
			return 8;
		case 1:
			return (size_t) sprintf((char *) key,
									"https://www.example.org/shop/item?id=%llu",
									(unsigned long long) i);
		case 2:
			{
				uint64_t	z = rng();

				memcpy(key, &z, 8);
				z = rng();
				memcpy(key + 8, &z, 8);
				return 16;
			}
		default:
			memset(key, 'x', 1000);
			sprintf((char *) key + 980, "%019llu", (unsigned long long) i);
			return 1000;
	}
}

static void
fill_pool(BfHash hash, int pattern)
{
	uint8_t		key[1024];

	rng_state = 2026;
	for (uint32_t i = 0; i < POOL; i++)
	{
		size_t		len = make_key(pattern, i, key);

		pool[i] = bf_digest(hash, NULL, 0, key, len);
		if (mutant == H2_IS_1)
			pool[i].h2 = 1;
	}
}

/*
 * One cell.  Returns false where it misses the bound.
 */
static bool
check_cell(const BfLayout *layout, BfHash hash, int pattern, double n,
		   double p)
{
	BfHeader	h;
	BfError		err;
	BfShape		probe;
	double		q;
	double		probes = 0;
	double		passed = 0;
	double		lost = 0;
	double		wanted;
	uint32_t	each;
	uint32_t	members = (uint32_t) n;
	bool		ok;

	if (bf_header_init(&h, layout, hash, NULL, 0, n, p, 0, &err) != BF_OK)
	{
		printf("%s\n", err.message);
		return false;
	}
	/* theory(m, k): the layout's rate without what is sized for on top */
	q = layout->id == BF_STANDARD || layout->id == BF_COUNTING ?
		pow(-expm1(-(double) h.shape.nhashes * n * (layout->multiset ? 4 : 1) /
				   h.shape.nbits), h.shape.nhashes) :
		layout->rate(&h.shape, n);
	q = fmax(p, q);

	probe = h.shape;
	if (mutant == SHORT_PROBE && probe.nhashes > 1 && layout->takes_hashes)
		probe.nhashes--;

	wanted = (full || p > 0.0001 ? 1e4 : 1000) / q;
	each = (uint32_t) fmax(n, 100);
	if (n == MEMBERS_BIG)
		wanted = each = POOL - MEMBERS_BIG;

	while (probes < wanted)
	{
		/*
		 * Elements are some steps of a random odd stride through the pool,
		 * strangers the steps behind them: distinct by construction, and no
		 * two filters alike.  (Runs of neighbours would be: they overlap.)
		 */
		uint32_t	stride = n < 10 ? 1 : (uint32_t) rng() | 1;
		uint32_t	j = (uint32_t) (rng() % POOL);
		uint32_t	at = j;

		memset(bits, 0, h.shape.nbits / 8);
		for (uint32_t i = 0; i < members; i++, j += stride)
			lost += layout->add(bits, &h.shape, draw(j, stride)) < 0;
		j = at;
		for (uint32_t i = 0; i < members; i++, j += stride)
			lost += !layout->test(bits, &probe, draw(j, stride));
		for (uint32_t i = 0; i < each; i++, j += stride)
			passed += layout->test(bits, &probe, draw(j, stride));
		probes += each;
	}

	ok = lost == 0 && passed <= probes * q + 3 * sqrt(probes * q * (1 - q));
	printf("%-8s %-7s %-13s n=%-7.0f p=%-6g m=%-9llu k=%-2u q=%.5g measured=%.5g (%+.2f sigma)%s%s\n",
		   layout->name, bf_hash_name(hash), patterns[pattern], n, p,
		   (unsigned long long) h.shape.nbits, h.shape.nhashes, q,
		   passed / probes,
		   (passed - probes * q) / sqrt(probes * q * (1 - q)),
		   lost > 0 ? " LOST" : "", ok ? "" : " FAILED");
	return ok;
}

int
main(int argc, char **argv)
{
	int			failed = 0;
	int			passed = 0;

	if (argc == 3 && strcmp(argv[1], "--mutant") == 0)
	{
		mutant = strcmp(argv[2], "h2") == 0 ? H2_IS_1 : SHORT_PROBE;
		argc = 1;
	}
	if (argc > 1 && strcmp(argv[1], "--full") == 0)
	{
		full = true;
		argc--;
		argv++;
	}
	pool = malloc(sizeof(BfDigest) * POOL);
	bits = malloc(BF_MAX_BITS / 8 / 32);
	if (pool == NULL || bits == NULL)
		return 2;

	for (int hash = BF_HASH_XXH3; hash <= BF_HASH_BLAKE2B; hash++)
		for (int pattern = 0; pattern < 4; pattern++)
		{
			bool		wanted = argc == 1;

			for (int i = 1; i < argc; i++)
				wanted |= strcmp(argv[i], patterns[pattern]) == 0;
			/* one hash and pattern shows a mutant; its size keeps it quick */
			if (mutant != NO_MUTANT)
				wanted = hash == BF_HASH_XXH3 && pattern == 0;
			if (!wanted)
				continue;
			fill_pool((BfHash) hash, pattern);
			for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
				for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
					for (unsigned r = 0; r < sizeof(rates) / sizeof(rates[0]); r++)
					{
						if (mutant != NO_MUTANT && rates[r] < 0.01)
							continue;
						/* a counting filter's rates are the standard one's */
						if (!full && bf_layout_at(l)->id == BF_COUNTING)
							continue;
						if (check_cell(bf_layout_at(l), (BfHash) hash, pattern,
									   sizes[s], rates[r]))
							passed++;
						else
							failed++;
						fflush(stdout);
					}
		}
	printf("rates: %d passed, %d failed\n", passed, failed);
	return failed > 0;
}
