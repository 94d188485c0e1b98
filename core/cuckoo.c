/*-------------------------------------------------------------------------
 *
 * cuckoo.c
 *	  The cuckoo filter: short fingerprints in buckets of four.
 *
 * Fan, Andersen, Kaminsky and Mitzenmacher, "Cuckoo filter: practically better
 * than Bloom", CoNEXT 2014.  An element's fingerprint of f bits lies in one of
 * two buckets, and what is in the way moves to its own other bucket.  Elements
 * can be removed, and below a rate of 3% the filter is smaller than a Bloom
 * filter.
 *
 * Buckets.  There are B of them, B even, sized for 95% load.  An element's
 * first bucket is i = (h1 >> 32) B >> 32.  The other is (g - i) mod B, where
 * g = 2 ((x B/2) >> 32) + 1 and x is the high half of fingerprint *
 * 0x9E3779B97F4A7C15.  The rule is its own inverse for every even B, and since
 * g is odd one bucket is even and the other odd: they always differ.  (The
 * paper's XOR works for powers of two only.)
 *
 * Fingerprints are 1 + ((h2 >> 32) (2^f - 1) >> 32); 0 is a free slot.  They
 * are sized from 8 bits on, although the format has them from 4 on: of shorter
 * ones too many elements look alike, and have nowhere else to go.  With 4 bits
 * every filter of a million elements, with 7 bits one of a hundred million is
 * full before its capacity; with 8 bits the stash stays empty.
 *
 * Semi-sorting, as in the paper.  A bucket is kept sorted by its
 * fingerprints' low four bits, then by the rest.  Four sorted nibbles
 * a <= b <= c <= d are one of 3876 combinations and take 12 bits instead of
 * 16: their number is a + C(b+1,2) + C(c+2,3) + C(d+3,4).  It is followed by
 * the four fingerprints' other f - 4 bits, in the same order; all in all
 * 4 f - 4 bits, from the lowest on.
 *
 * Stash.  Behind the buckets are eight entries of 8 bytes for fingerprints
 * that found no bucket: the even bucket, and the fingerprint, each 32 bits; 0
 * is a free entry, and free entries come last.  With it, a filter takes its
 * whole capacity.
 *
 * Rate: 1 - (1 - 1/(2^f - 1))^(2 n/B), since each of the n fingerprints is
 * compared with a chance of 2/B.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <string.h>

#include "bf.h"
#include "bytes.h"

#define SLOTS			4
#define LOAD			0.95
#define MIN_BITS		4
#define MIN_SIZED_BITS	8
#define MAX_BITS		32
#define STASH_ENTRIES	8
#define STASH_BYTES		(STASH_ENTRIES * 8)
#define COMBINATIONS	3876
#define MAX_COPIES		8		/* of one fingerprint in its buckets */
#define MAX_NODES		1000	/* buckets looked at for a free slot */
#define POLL_BUCKETS	65536	/* from one call of bf_poll to the next */

typedef unsigned __int128 uint128;

typedef struct Table
{
	uint8_t    *bits;
	uint8_t    *stash;
	uint64_t	nbuckets;
	uint32_t	f;				/* bits of a fingerprint */
	uint32_t	bucket_bits;
} Table;

/* ------------------------------------------------------------------------
 * Sizes and estimates
 * ------------------------------------------------------------------------
 */
static uint64_t
buckets_of(const BfShape *shape)
{
	return (shape->nbits - STASH_BYTES * 8) / (4 * shape->nhashes - 4);
}

static bool
cuckoo_fits(const BfShape *shape)
{
	uint64_t	nbuckets;

	if (shape->nhashes < MIN_BITS || shape->nbits < STASH_BYTES * 8)
		return false;
	nbuckets = buckets_of(shape);
	return nbuckets >= 2 && nbuckets % 2 == 0 &&
		(nbuckets * (4 * shape->nhashes - 4) + 7) / 8 ==
		shape->nbits / 8 - STASH_BYTES;
}

static double
rate_of(double nbuckets, uint32_t f, double n)
{
	return -expm1(2 * n / nbuckets * log1p(-1 / (ldexp(1, (int) f) - 1)));
}

static void
cuckoo_size(double n, double p, BfShape *shape)
{
	double		nbuckets = 2 * ceil(n / (2 * SLOTS * LOAD));
	uint32_t	f = MIN_SIZED_BITS;
	double		bytes;

	while (f < MAX_BITS && rate_of(nbuckets, f, n) > p)
		f++;
	bytes = ceil(nbuckets * (4 * f - 4) / 8) + STASH_BYTES;
	shape->nbits = bytes < 1e15 ? (uint64_t) bytes * 8 : UINT64_MAX;
	shape->nhashes = f;
}

static double
cuckoo_rate(const BfShape *shape, double n)
{
	return n <= 0 ? 0 :
		rate_of((double) buckets_of(shape), shape->nhashes, n);
}

static double
cuckoo_expected_set(const BfShape *shape, double n, double *variance)
{
	(void) shape;
	*variance = 0;
	return n;
}

static double
cuckoo_count(const BfShape *shape, uint64_t nset)
{
	(void) shape;
	return (double) nset;
}

double
bf_cuckoo_slots(const BfShape *shape)
{
	return (double) buckets_of(shape) * SLOTS;
}

/* ------------------------------------------------------------------------
 * Buckets
 * ------------------------------------------------------------------------
 */
static inline uint32_t
combination(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
	return a + b * (b + 1) / 2 + c * (c + 1) * (c + 2) / 6 +
		d * (d + 1) * (d + 2) * (d + 3) / 24;
}

/* The nibbles of each combination, a lowest.  Filled in on first use. */
static const uint16_t *
nibbles(void)
{
	static uint16_t table[COMBINATIONS];

	if (table[COMBINATIONS - 1] == 0)
	{
		for (uint32_t d = 0; d < 16; d++)
			for (uint32_t c = 0; c <= d; c++)
				for (uint32_t b = 0; b <= c; b++)
					for (uint32_t a = 0; a <= b; a++)
						table[combination(a, b, c, d)] =
							(uint16_t) (a | b << 4 | c << 8 | d << 12);
	}
	return table;
}

/* What there is to know without the bits. */
static inline Table
table_of(const BfShape *shape)
{
	Table		t;

	t.bits = NULL;
	t.stash = NULL;
	t.nbuckets = buckets_of(shape);
	t.f = shape->nhashes;
	t.bucket_bits = 4 * t.f - 4;
	return t;
}

static inline Table
open_table(const uint8_t *bits, const BfShape *shape)
{
	Table		t = table_of(shape);

	t.bits = (uint8_t *) bits;
	t.stash = t.bits + shape->nbits / 8 - STASH_BYTES;
	return t;
}

/*
 * 16 bytes from the one where a bucket starts hold all of it; the stash sees
 * to it that there are as many.
 */
static inline uint128
load_bucket(const uint8_t *p, uint64_t at)
{
	return ((uint128) bf_load64(p + 8) << 64 | bf_load64(p)) >> at % 8;
}

/* False where the bytes are no bucket. */
static inline bool
decode_bucket(const Table *t, uint128 bucket, uint32_t fp[SLOTS])
{
	uint32_t	number = (uint32_t) bucket & 4095;
	uint32_t	low;
	uint32_t	high_bits = t->f - 4;
	uint32_t	mask = (uint32_t) ((UINT64_C(1) << high_bits) - 1);

	if (number >= COMBINATIONS)
	{
		memset(fp, 0, sizeof(uint32_t) * SLOTS);
		return false;
	}
	low = nibbles()[number];
	bucket >>= 12;
	for (int s = 0; s < SLOTS; s++)
	{
		fp[s] = ((uint32_t) bucket & mask) << 4 | (low & 15);
		low >>= 4;
		bucket >>= high_bits;
	}
	return true;
}

static inline bool
read_bucket(const Table *t, uint64_t i, uint32_t fp[SLOTS])
{
	uint64_t	at = i * t->bucket_bits;

	return decode_bucket(t, load_bucket(t->bits + at / 8, at), fp);
}

/* In the order of a bucket? */
static inline bool
in_order(uint32_t x, uint32_t y)
{
	return (x & 15) < (y & 15) || ((x & 15) == (y & 15) && x <= y);
}

static void
write_bucket(const Table *t, uint64_t i, uint32_t fp[SLOTS])
{
	uint64_t	at = i * t->bucket_bits;
	uint8_t    *p = t->bits + at / 8;
	uint128		mask;
	uint128		bucket = 0;
	uint128		old;

	for (int s = 1; s < SLOTS; s++)
		for (int j = s; j > 0 && !in_order(fp[j - 1], fp[j]); j--)
		{
			uint32_t	swap = fp[j];

			fp[j] = fp[j - 1];
			fp[j - 1] = swap;
		}
	for (int s = SLOTS; s-- > 0;)
		bucket = bucket << (t->f - 4) | fp[s] >> 4;
	bucket = bucket << 12 | combination(fp[0] & 15, fp[1] & 15, fp[2] & 15,
										fp[3] & 15);

	mask = (((uint128) 1 << t->bucket_bits) - 1) << at % 8;
	old = (uint128) bf_load64(p + 8) << 64 | bf_load64(p);
	old = (old & ~mask) | bucket << at % 8;
	bf_store64(p, (uint64_t) old);
	bf_store64(p + 8, (uint64_t) (old >> 64));
}

static inline int
find_in_bucket(const uint32_t fp[SLOTS], uint32_t x)
{
	for (int s = 0; s < SLOTS; s++)
		if (fp[s] == x)
			return s;
	return -1;
}

static inline uint64_t
other_bucket(const Table *t, uint64_t i, uint32_t fp)
{
	uint64_t	x = fp * UINT64_C(0x9E3779B97F4A7C15) >> 32;
	uint64_t	g = (x * (t->nbuckets / 2) >> 32) * 2 + 1;

	return g >= i ? g - i : g + t->nbuckets - i;
}

static inline uint64_t
first_bucket(const Table *t, BfDigest digest)
{
	return (digest.h1 >> 32) * t->nbuckets >> 32;
}

static inline uint32_t
fingerprint(const Table *t, BfDigest digest)
{
	uint64_t	values = (UINT64_C(1) << t->f) - 1;

	return (uint32_t) ((digest.h2 >> 32) * values >> 32) + 1;
}

/* ------------------------------------------------------------------------
 * The stash
 * ------------------------------------------------------------------------
 */
static inline uint64_t
stash_entry(uint64_t i, uint64_t other, uint32_t fp)
{
	return (i % 2 == 0 ? i : other) | (uint64_t) fp << 32;
}

/*
 * False of an entry that no filter has: bf_open does not look at the bits, and
 * a bucket that is not there must not be written to.
 */
static inline bool
is_sound(const Table *t, uint64_t entry)
{
	return (uint32_t) entry < t->nbuckets && entry >> 32 != 0 &&
		entry >> 32 >> t->f == 0;
}

static int
count_in_stash(const Table *t, uint64_t entry)
{
	int			n = 0;

	for (int s = 0; s < STASH_ENTRIES; s++)
		n += bf_load64(t->stash + s * 8) == entry;
	return n;
}

static bool
add_to_stash(const Table *t, uint64_t entry)
{
	for (int s = 0; s < STASH_ENTRIES; s++)
		if (bf_load64(t->stash + s * 8) == 0)
		{
			bf_store64(t->stash + s * 8, entry);
			return true;
		}
	return false;
}

/* The last entry fills the gap. */
static void
drop_from_stash(const Table *t, int s)
{
	int			last = STASH_ENTRIES - 1;

	while (last > s && bf_load64(t->stash + last * 8) == 0)
		last--;
	memcpy(t->stash + s * 8, t->stash + last * 8, 8);
	bf_store64(t->stash + last * 8, 0);
}

/* ------------------------------------------------------------------------
 * Adding
 * ------------------------------------------------------------------------
 */
static bool
put_if_free(const Table *t, uint64_t i, uint32_t fp)
{
	uint32_t	bucket[SLOTS];
	int			s;

	read_bucket(t, i, bucket);
	s = find_in_bucket(bucket, 0);
	if (s < 0)
		return false;
	bucket[s] = fp;
	write_bucket(t, i, bucket);
	return true;
}

/*
 * Look, breadth first, for the shortest chain of fingerprints that can each
 * move to its other bucket, the last into a free slot, and move them.  If
 * there is none nothing is changed.
 */
static bool
make_room(const Table *t, uint64_t i, uint64_t other, uint32_t fp)
{
	struct
	{
		uint64_t	bucket;
		int			parent;
		uint32_t	fp;			/* would come here from the parent */
	}			nodes[MAX_NODES];
	int			n = 2;

	nodes[0].bucket = i;
	nodes[1].bucket = other;
	nodes[0].parent = nodes[1].parent = -1;
	nodes[0].fp = nodes[1].fp = fp;

	for (int node = 0; node < n; node++)
	{
		uint32_t	bucket[SLOTS];

		read_bucket(t, nodes[node].bucket, bucket);
		for (int s = 0; s < SLOTS; s++)
		{
			uint32_t	x = bucket[s];
			uint64_t	to;
			bool		seen = false;

			if (s > 0 && x == bucket[s - 1])
				continue;
			to = other_bucket(t, nodes[node].bucket, x);
			/* a chain that comes back to a bucket could move a thing twice */
			for (int up = node; up >= 0 && !seen; up = nodes[up].parent)
				seen = nodes[up].bucket == to;
			if (seen)
				continue;
			if (put_if_free(t, to, x))
			{
				/* back along the chain, each into the slot just freed */
				for (int at = node; at >= 0; at = nodes[at].parent)
				{
					uint32_t	from[SLOTS];

					read_bucket(t, nodes[at].bucket, from);
					from[find_in_bucket(from, x)] = nodes[at].fp;
					write_bucket(t, nodes[at].bucket, from);
					x = nodes[at].fp;
				}
				return true;
			}
			if (n < MAX_NODES)
			{
				nodes[n].bucket = to;
				nodes[n].parent = node;
				nodes[n].fp = x;
				n++;
			}
		}
	}
	return false;
}

static bool
add_fingerprint(const Table *t, uint64_t i, uint32_t fp)
{
	uint64_t	other = other_bucket(t, i, fp);
	uint64_t	entry = stash_entry(i, other, fp);
	uint32_t	a[SLOTS];
	uint32_t	b[SLOTS];
	int			copies = 0;

	if (put_if_free(t, i, fp) || put_if_free(t, other, fp))
		return true;

	/* eight of the same fill both buckets: nothing could ever make room */
	read_bucket(t, i, a);
	read_bucket(t, other, b);
	for (int s = 0; s < SLOTS; s++)
		copies += (a[s] == fp) + (b[s] == fp);
	if (copies + count_in_stash(t, entry) >= MAX_COPIES)
		return false;

	return make_room(t, i, other, fp) || add_to_stash(t, entry);
}

static int
cuckoo_add(uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	Table		t = open_table(bits, shape);

	return add_fingerprint(&t, first_bucket(&t, digest),
						   fingerprint(&t, digest)) ? 1 : -1;
}

static void
cuckoo_prefetch(const uint8_t *bits, const BfShape *shape,
				const BfDigest *digests, uint32_t n)
{
	Table		t = open_table(bits, shape);

	for (uint32_t j = 0; j < n; j++)
	{
		uint64_t	i = first_bucket(&t, digests[j]);

		__builtin_prefetch(bits + i * t.bucket_bits / 8, 1);
		i = other_bucket(&t, i, fingerprint(&t, digests[j]));
		__builtin_prefetch(bits + i * t.bucket_bits / 8, 1);
	}
}

/* ------------------------------------------------------------------------
 * Testing and removing
 * ------------------------------------------------------------------------
 */
static bool
cuckoo_test(const uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	Table		t = open_table(bits, shape);
	uint32_t	fp = fingerprint(&t, digest);
	uint64_t	i = first_bucket(&t, digest);
	uint64_t	other = other_bucket(&t, i, fp);
	uint32_t	bucket[SLOTS];

	read_bucket(&t, i, bucket);
	if (find_in_bucket(bucket, fp) >= 0)
		return true;
	read_bucket(&t, other, bucket);
	if (find_in_bucket(bucket, fp) >= 0)
		return true;
	return bf_load64(t.stash) != 0 &&
		count_in_stash(&t, stash_entry(i, other, fp)) > 0;
}

static bool
drop_from_bucket(const Table *t, uint64_t i, uint32_t fp)
{
	uint32_t	bucket[SLOTS];
	int			s;

	read_bucket(t, i, bucket);
	s = find_in_bucket(bucket, fp);
	if (s < 0)
		return false;
	bucket[s] = 0;
	write_bucket(t, i, bucket);
	return true;
}

/*
 * One copy.  Which of two equal fingerprints in the same pair of buckets goes
 * does not matter: nothing tells them apart.
 */
static int
cuckoo_remove(uint8_t *bits, const BfShape *shape, BfDigest digest)
{
	Table		t = open_table(bits, shape);
	uint32_t	fp = fingerprint(&t, digest);
	uint64_t	i = first_bucket(&t, digest);
	uint64_t	other = other_bucket(&t, i, fp);
	uint64_t	entry = stash_entry(i, other, fp);

	for (int s = 0; s < STASH_ENTRIES; s++)
		if (bf_load64(t.stash + s * 8) == entry)
		{
			drop_from_stash(&t, s);
			return 1;
		}
	if (!drop_from_bucket(&t, i, fp))
		(void) drop_from_bucket(&t, other, fp);

	/* the free slot may be what an entry of the stash was waiting for */
	for (int s = 0; s < STASH_ENTRIES && bf_load64(t.stash + s * 8) != 0; s++)
	{
		uint64_t	waiting = bf_load64(t.stash + s * 8);
		uint32_t	x = (uint32_t) (waiting >> 32);
		uint64_t	even = (uint32_t) waiting;

		if (!is_sound(&t, waiting))
			continue;
		if (put_if_free(&t, even, x) ||
			put_if_free(&t, other_bucket(&t, even, x), x))
		{
			drop_from_stash(&t, s);
			break;
		}
	}
	return 1;
}

static uint32_t
cuckoo_ranges(const BfShape *shape, BfDigest digest,
			  BfRange ranges[BF_MAX_RANGES])
{
	Table		t = table_of(shape);
	uint64_t	i = first_bucket(&t, digest);
	uint64_t	other = other_bucket(&t, i, fingerprint(&t, digest));

	/* the first and the second of the two, then the stash */
	ranges[0].offset = (i < other ? i : other) * t.bucket_bits / 8;
	ranges[1].offset = (i < other ? other : i) * t.bucket_bits / 8;
	ranges[0].length = ranges[1].length = 16;
	ranges[2].offset = shape->nbits / 8 - STASH_BYTES;
	ranges[2].length = STASH_BYTES;
	return 3;
}

static bool
cuckoo_test_ranges(const uint8_t *bytes, const BfRange *ranges,
				   uint32_t nranges, const BfShape *shape, BfDigest digest)
{
	Table		t = table_of(shape);
	uint32_t	fp = fingerprint(&t, digest);
	uint64_t	i = first_bucket(&t, digest);
	uint64_t	other = other_bucket(&t, i, fp);
	uint32_t	bucket[SLOTS];

	(void) ranges;
	(void) nranges;
	decode_bucket(&t, load_bucket(bytes, (i < other ? i : other) * t.bucket_bits),
				  bucket);
	if (find_in_bucket(bucket, fp) >= 0)
		return true;
	decode_bucket(&t, load_bucket(bytes + 16,
								  (i < other ? other : i) * t.bucket_bits),
				  bucket);
	if (find_in_bucket(bucket, fp) >= 0)
		return true;
	t.stash = (uint8_t *) bytes + 32;
	return count_in_stash(&t, stash_entry(i, other, fp)) > 0;
}

/* ------------------------------------------------------------------------
 * Whole tables
 * ------------------------------------------------------------------------
 */

/*
 * The sum of two multisets: every fingerprint is added again.  On failure
 * into has some of them.
 */
static bool
cuckoo_unite(uint8_t *into, const uint8_t *from, const BfShape *shape)
{
	Table		t = open_table(into, shape);
	Table		f = open_table(from, shape);

	for (uint64_t i = 0; i < f.nbuckets; i++)
	{
		uint32_t	bucket[SLOTS];

		if (i % POLL_BUCKETS == 0)
			bf_may_stop();
		read_bucket(&f, i, bucket);
		for (int s = 0; s < SLOTS; s++)
			if (bucket[s] != 0 && !add_fingerprint(&t, i, bucket[s]))
				return false;
	}
	for (int s = 0; s < STASH_ENTRIES; s++)
	{
		uint64_t	entry = bf_load64(f.stash + s * 8);

		if (entry != 0 &&
			!(is_sound(&f, entry) &&
			  add_fingerprint(&t, (uint32_t) entry, (uint32_t) (entry >> 32))))
			return false;
	}
	return true;
}

/*
 * Is there a copy of the fingerprint of bucket i, wherever it may lie?
 */
static bool
holds(const Table *t, uint64_t i, uint32_t fp)
{
	uint64_t	other = other_bucket(t, i, fp);
	uint32_t	bucket[SLOTS];

	read_bucket(t, i, bucket);
	if (find_in_bucket(bucket, fp) >= 0)
		return true;
	read_bucket(t, other, bucket);
	return find_in_bucket(bucket, fp) >= 0 ||
		count_in_stash(t, stash_entry(i, other, fp)) > 0;
}

/*
 * What is also in the other: copies beyond those there stay.
 */
static bool
cuckoo_intersect(uint8_t *into, const uint8_t *from, const BfShape *shape)
{
	Table		t = open_table(into, shape);
	Table		f = open_table(from, shape);

	for (uint64_t i = 0; i < t.nbuckets; i++)
	{
		uint32_t	bucket[SLOTS];

		if (i % POLL_BUCKETS == 0)
			bf_may_stop();
		read_bucket(&t, i, bucket);
		for (int s = 0; s < SLOTS; s++)
			if (bucket[s] != 0 && !holds(&f, i, bucket[s]))
				bucket[s] = 0;
		write_bucket(&t, i, bucket);
	}
	for (int s = STASH_ENTRIES; s-- > 0;)
	{
		uint64_t	entry = bf_load64(t.stash + s * 8);

		if (entry != 0 && is_sound(&t, entry) &&
			!holds(&f, (uint32_t) entry, (uint32_t) (entry >> 32)))
			drop_from_stash(&t, s);
	}
	return true;
}

static uint64_t
cuckoo_recount(const uint8_t *bits, const BfShape *shape)
{
	Table		t = open_table(bits, shape);
	uint64_t	n = 0;

	for (uint64_t i = 0; i < t.nbuckets; i++)
	{
		uint32_t	bucket[SLOTS];

		if (i % POLL_BUCKETS == 0)
			bf_may_stop();
		read_bucket(&t, i, bucket);
		for (int s = 0; s < SLOTS; s++)
			n += bucket[s] != 0;
	}
	for (int s = 0; s < STASH_ENTRIES; s++)
		n += bf_load64(t.stash + s * 8) != 0;
	return n;
}

/*
 * Every bucket is a combination in its order, the bits behind the last are 0,
 * and so are the stash's entries behind the last, each of which is one that
 * could be there.
 */
static bool
cuckoo_validate(const uint8_t *bits, const BfShape *shape)
{
	Table		t = open_table(bits, shape);
	uint64_t	used = t.nbuckets * t.bucket_bits;
	bool		free_seen = false;

	for (uint64_t i = 0; i < t.nbuckets; i++)
	{
		uint32_t	bucket[SLOTS];

		if (i % POLL_BUCKETS == 0)
			bf_may_stop();
		if (!read_bucket(&t, i, bucket))
			return false;
		for (int s = 1; s < SLOTS; s++)
			if (!in_order(bucket[s - 1], bucket[s]))
				return false;
	}
	if (used % 8 != 0 && bits[used / 8] >> used % 8 != 0)
		return false;
	for (int s = 0; s < STASH_ENTRIES; s++)
	{
		uint64_t	entry = bf_load64(t.stash + s * 8);

		if (entry == 0)
			free_seen = true;
		else if (free_seen || !is_sound(&t, entry) || entry % 2 != 0)
			return false;
	}
	return true;
}

const BfLayout bf_layout_cuckoo = {
	.id = BF_CUCKOO,
	.name = "cuckoo",
	.min_fpr = 1e-8,
	.max_hashes = MAX_BITS,
	.unit = 8,
	.multiset = true,
	.bounded = true,
	.size = cuckoo_size,
	.rate = cuckoo_rate,
	.expected_set = cuckoo_expected_set,
	.count = cuckoo_count,
	.prefetch = cuckoo_prefetch,
	.add = cuckoo_add,
	.remove = cuckoo_remove,
	.test = cuckoo_test,
	.ranges = cuckoo_ranges,
	.test_ranges = cuckoo_test_ranges,
	.unite = cuckoo_unite,
	.intersect = cuckoo_intersect,
	.recount = cuckoo_recount,
	.fits = cuckoo_fits,
	.validate = cuckoo_validate,
};
