/*-------------------------------------------------------------------------
 *
 * core.c
 *	  What the core costs: nanoseconds per add and per probe, for each layout.
 *
 *	core [millions ...]		1 and 10 if none is given; prints Markdown
 *
 * Digests are made beforehand, so that hashing is a table of its own.  Each
 * figure is the median of RUNS runs over all keys, in one thread, one call
 * after the other: where a filter is larger than the caches, calls overlap as
 * much as the processor makes them.  "Batches" is bf_add_many, which aggregates
 * use.  Bits a key include the header; the rate is that of STRANGERS absent
 * keys, asked for is 1%.
 *
 * Wants a quiet machine.
 *
 *-------------------------------------------------------------------------
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bf.h"

#define RUNS		5
#define STRANGERS	2000000
#define BATCH		64
#define FPR			0.01

static BfDigest *keys;
static BfDigest *strangers;

/* where results go, or the compiler would leave the work undone */
static volatile uint64_t sink;

/* splitmix64: Steele, Lea and Flood, OOPSLA 2014 */
static uint64_t rng_state = 2026;

static uint64_t
rng(void)
{
	uint64_t	z = (rng_state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double) t.tv_sec * 1e9 + (double) t.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
median(double times[RUNS])
{
	qsort(times, RUNS, sizeof(double), compare);
	return times[RUNS / 2];
}

static void
check(BfStatus status, const BfError *err)
{
	if (status == BF_OK)
		return;
	fprintf(stderr, "core: %s\n", err->message);
	exit(1);
}

/* ------------------------------------------------------------------------
 * Hashing
 * ------------------------------------------------------------------------
 */
static double
time_hash(BfHash hash, size_t keylen, size_t len)
{
	static const uint8_t key[BF_MAX_KEY] = "a key of 32 bytes or fewer";
	double		times[RUNS];
	uint64_t	n = hash == BF_HASH_XXH3 ? 20000000 : 1000000;

	for (int run = 0; run < RUNS; run++)
	{
		uint8_t		bytes[32] = {0};
		uint64_t	sum = 0;
		double		start = now();

		for (uint64_t i = 0; i < n; i++)
		{
			memcpy(bytes, &i, sizeof(i));
			sum += bf_digest(hash, keylen > 0 ? key : NULL, keylen, bytes,
							 len).h1;
		}
		times[run] = (now() - start) / (double) n;
		sink += sum;
	}
	return median(times);
}

static void
bench_hashes(void)
{
	printf("| hash | 8-byte key, ns | 13-byte key, ns |\n|---|---|---|\n");
	printf("| xxh3 | %.1f | %.1f |\n", time_hash(BF_HASH_XXH3, 0, 8),
		   time_hash(BF_HASH_XXH3, 0, 13));
	printf("| blake2b | %.0f | %.0f |\n", time_hash(BF_HASH_BLAKE2B, 0, 8),
		   time_hash(BF_HASH_BLAKE2B, 0, 13));
	printf("| blake2b, keyed | %.0f | %.0f |\n",
		   time_hash(BF_HASH_BLAKE2B, BF_MAX_KEY, 8),
		   time_hash(BF_HASH_BLAKE2B, BF_MAX_KEY, 13));
}

/* ------------------------------------------------------------------------
 * Filters
 * ------------------------------------------------------------------------
 */

/*
 * Of fixed size (one layer), or grown as type/scalable.c does it.
 */
typedef struct Subject
{
	BfHeader	h;
	unsigned	n;
	BfFilter	layers[BF_MAX_LAYERS];
} Subject;

static void
empty(Subject *s)
{
	for (unsigned i = 0; i < s->n; i++)
		free(s->layers[i].bits);
	s->n = 0;
}

static void
append_layer(Subject *s)
{
	BfFilter   *f = &s->layers[s->n];
	BfError		err;

	if (s->h.expansion == 0)
		f->h = s->h;
	else
		check(bf_plan_layer(&s->h, s->n, s->n > 0 ? &f[-1].h : NULL, &f->h,
							&err), &err);
	f->nbytes = bf_payload_size(&f->h);
	f->bits = aligned_alloc(64, (f->nbytes + 63) / 64 * 64);
	if (f->bits == NULL)
		exit(1);
	/* touched here: page faults are not the filter's */
	memset(f->bits, 0, f->nbytes);
	s->n++;
}

static inline bool
contains(const Subject *s, BfDigest digest)
{
	for (unsigned i = s->n; i-- > 0;)
		if (s->h.layout->test(s->layers[i].bits, &s->layers[i].h.shape, digest))
			return true;
	return false;
}

static void
grow(Subject *s, BfDigest digest)
{
	BfError		err;

	if (!s->h.layout->multiset && contains(s, digest))
		return;
	if (s->n == 0 || bf_layer_is_full(&s->layers[s->n - 1].h, s->n == 1) ||
		bf_add(&s->layers[s->n - 1], digest, &err) != BF_OK)
	{
		append_layer(s);
		check(bf_add(&s->layers[s->n - 1], digest, &err), &err);
	}
}

static double
time_probes(const Subject *s, const BfDigest *digests, uint64_t n,
			uint64_t *passed)
{
	double		times[RUNS];

	for (int run = 0; run < RUNS; run++)
	{
		double		start = now();

		*passed = 0;
		for (uint64_t i = 0; i < n; i++)
			*passed += contains(s, digests[i]);
		times[run] = (now() - start) / (double) n;
	}
	return median(times);
}

static void
bench_layout(const BfLayout *layout, int expansion, uint64_t n)
{
	Subject		s = {.n = 0};
	double		adds[RUNS];
	double		batches[RUNS];
	double		absent;
	double		present;
	double		bits;
	uint64_t	passed;
	uint64_t	found;
	BfError		err;

	check(bf_header_init(&s.h, layout, BF_HASH_XXH3, NULL, 0, 0, FPR, 0, &err),
		  &err);
	check(bf_header_expand(&s.h, expansion, &err), &err);
	check(bf_header_resize(&s.h, (double) (expansion > 0 ? n / 100 : n), &err),
		  &err);

	for (int run = 0; run < RUNS; run++)
	{
		double		start;

		if (expansion == 0)
		{
			empty(&s);
			append_layer(&s);
			start = now();
			for (uint64_t i = 0; i < n; i += BATCH)
				check(bf_add_many(&s.layers[0], keys + i,
								  (uint32_t) (n - i < BATCH ? n - i : BATCH),
								  &err), &err);
			batches[run] = (now() - start) / (double) n;
		}
		empty(&s);
		if (expansion == 0)
			append_layer(&s);
		start = now();
		if (expansion == 0)
			for (uint64_t i = 0; i < n; i++)
				check(bf_add(&s.layers[0], keys[i], &err), &err);
		else
			for (uint64_t i = 0; i < n; i++)
				grow(&s, keys[i]);
		adds[run] = (now() - start) / (double) n;
	}
	absent = time_probes(&s, strangers, STRANGERS, &passed);
	present = time_probes(&s, keys, n, &found);
	if (found != n)
	{
		fprintf(stderr, "core: %s lost elements\n", layout->name);
		exit(1);
	}

	bits = (double) (bf_header_size(&s.h) + 4) * 8;
	for (unsigned i = 0; i < s.n; i++)
		bits += (double) s.layers[i].h.shape.nbits;
	printf("| %s%s | %llu | %.1f | ", layout->name,
		   expansion > 0 ? ", grown from n/100 by 2" : "",
		   (unsigned long long) n, median(adds));
	if (expansion > 0)
		printf("| ");
	else
		printf("%.1f | ", median(batches));
	printf("%.1f | %.1f | %.2f | %.3f%% |\n", absent, present,
		   bits / (double) n, 100.0 * (double) passed / STRANGERS);
	fflush(stdout);
	empty(&s);
}

int
main(int argc, char **argv)
{
	static const double usual[] = {1, 10};
	int			nsizes = argc > 1 ? argc - 1 : 2;

	bench_hashes();
	printf("\n| layout | keys | add, ns | in batches, ns | probe absent, ns | probe present, ns | bits a key | rate |\n"
		   "|---|---|---|---|---|---|---|---|\n");
	strangers = malloc(STRANGERS * sizeof(BfDigest));
	if (strangers == NULL)
		return 1;
	for (uint64_t i = 0; i < STRANGERS; i++)
		strangers[i] = (BfDigest) {rng(), rng()};
	for (int size = 0; size < nsizes; size++)
	{
		double		millions = argc > 1 ? atof(argv[size + 1]) : usual[size];
		uint64_t	n = (uint64_t) (millions * 1e6);

		if (n < 1000)
		{
			fprintf(stderr, "usage: core [millions ...]\n");
			return 1;
		}
		keys = malloc(n * sizeof(BfDigest));
		if (keys == NULL)
			return 1;
		for (uint64_t i = 0; i < n; i++)
			keys[i] = (BfDigest) {rng(), rng()};
		for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
			bench_layout(bf_layout_at(l), 0, n);
		for (unsigned l = 0; bf_layout_at(l) != NULL; l++)
			if (bf_layout_at(l)->id != BF_COUNTING)
				bench_layout(bf_layout_at(l), 2, n);
		free(keys);
	}
	return 0;
}
