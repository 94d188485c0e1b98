/*-------------------------------------------------------------------------
 *
 * collect.c
 *	  Filters that size themselves.
 *
 * Bits can only be set once the size is known, and the size only once the
 * distinct elements have been counted.  So digests are collected, 16 bytes
 * each, duplicates dropped as they come, and the filter is made at the end,
 * for just as many: the same bytes as a filter sized by the caller.
 *
 * Past work_mem * hash_mem_multiplier of digests, the collection turns into a
 * filter that is larger than needed.  Such a filter can be folded: halved, by
 * OR-ing block pairs (or halves), as long as the rate is still met, which
 * leaves it less than twice as large as it had to be.  It cannot be made
 * sparser, so that the digests also go to a temporary file; when the filter is
 * full, one four times as large is filled from the file.  The file has every
 * digest, also of elements that the filter seems to have already: the larger
 * filter may lack them.
 *
 * Filters whose elements are not a set (counting, cuckoo), and filters that
 * grow by layers, cannot be folded.  For them past memory all digests go to
 * the file, and the filter is made from it at the end.
 *
 * Why not always so?  Because a worker of a parallel plan must hand over
 * something small.  Few digests it hands over as they are; of many, the
 * filter, made large enough for the keys of all workers together if this one
 * has an average share.  Shares differ, and so do the filters' sizes; the
 * smaller is unfolded (its blocks, or the whole, repeated), which keeps its
 * rate and what it contains.  Each fills at most its share of the bits,
 * whatever the sizes: together they meet the rate.
 *
 *-------------------------------------------------------------------------
 */
#include "type/collect.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "storage/buffile.h"
#include "utils/memutils.h"

#include <math.h>

/* Up to here the digests are a list. */
#define LIST_SIZE	8

/* Tables from this size on are worth a prefetch. */
#define BATCHES_FROM	4096

/* The filter past memory is so many times this many units. */
#define LADDER_UNITS	1024

typedef struct BfLarge
{
	BfBuild		b;
	BufFile    *file;			/* NULL: what is in b is all there is */
	uint64		nwritten;		/* digests in the file */
	uint64		nelements;		/* that were new to the filter */
	uint64		capacity;		/* elements at which its rate is still met */
} BfLarge;

struct BfCollection
{
	MemoryContext context;
	bool		keeps_copies;	/* the slots are a list, however many */
	bool		has_zero;		/* the digest {0, 0} was added to a table */
	uint32		n;				/* digests in slots, less the zero digest */
	uint32		nslots;			/* a power of two; up to LIST_SIZE, a list */
	BfDigest   *slots;			/* of a table, {0, 0} is a free slot */

	/* past memory there are no slots, but one of these */
	BfLarge    *large;
	BufFile    *file;
	uint64		nfile;			/* digests in the file */
	MemoryContextCallback at_reset; /* closes the file */
};

static inline bool
is_list(const BfCollection *c)
{
	return c->keeps_copies || c->nslots <= LIST_SIZE;
}

static void start_large(BfCollection *c, const BfHeader *design);
static void start_file(BfCollection *c, const BfHeader *design);
static void add_to_file(BfCollection *c, const BfDigest *digests, uint32 n);

/*
 * Call add for all digests in a file, which can be written on afterwards.
 */
static void
for_each_in_file(BufFile *file,
				 void (*add) (void *arg, const BfDigest *digests, uint32 n),
				 void *arg)
{
	BfDigest	batch[BF_BATCH];
	Size		nread;
	int			fileno;
	off_t		offset;

	BufFileTell(file, &fileno, &offset);
	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of an aggregate")));
	while ((nread = BufFileRead(file, batch, sizeof(batch))) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		add(arg, batch, nread / sizeof(BfDigest));
	}
	if (BufFileSeek(file, fileno, offset, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not seek in temporary file of an aggregate")));
}

/*
 * Call add for all digests, some at a time.
 */
static void
for_each_batch(const BfCollection *c,
			   void (*add) (void *arg, const BfDigest *digests, uint32 n),
			   void *arg)
{
	BfDigest	batch[BF_BATCH];
	uint32		n = 0;
	uint32		end = is_list(c) ? c->n : c->nslots;

	if (c->file != NULL)
	{
		for_each_in_file(c->file, add, arg);
		return;
	}

	if (c->has_zero)
		batch[n++] = (BfDigest) {0, 0};
	for (uint32 i = 0; i < end; i++)
	{
		if (!c->keeps_copies && c->slots[i].h1 == 0 && c->slots[i].h2 == 0)
			continue;
		batch[n++] = c->slots[i];
		if (n == BF_BATCH)
		{
			CHECK_FOR_INTERRUPTS();
			add(arg, batch, n);
			n = 0;
		}
	}
	if (n > 0)
		add(arg, batch, n);
}

typedef struct BfTarget
{
	BfCollection *collection;
	const BfHeader *design;
} BfTarget;

static void
add_to_target(void *arg, const BfDigest *digests, uint32 n)
{
	BfTarget   *target = arg;

	bf_collect_add(target->collection, target->design, digests, n);
}

BfCollection *
bf_collect_create(const BfHeader *design, MemoryContext context)
{
	BfCollection *c = MemoryContextAllocZero(context, sizeof(BfCollection));

	c->context = context;
	c->keeps_copies = design->layout->multiset;
	return c;
}

bool
bf_collect_is_empty(const BfCollection *c)
{
	return c->n == 0 && !c->has_zero && c->large == NULL && c->file == NULL;
}

static void
close_file(BufFile **file)
{
	if (*file != NULL)
		BufFileClose(*file);
	*file = NULL;
}

/*
 * The file goes with the memory.  After an error the resource owner has closed
 * it, or is about to.
 */
static void
collection_at_reset(void *arg)
{
	BfCollection *c = arg;

	if (!IsTransactionState())
		return;
	close_file(&c->file);
	if (c->large != NULL)
		close_file(&c->large->file);
}

/* A temporary file that lives as long as the collection. */
static BufFile *
create_file(BfCollection *c)
{
	MemoryContext old = MemoryContextSwitchTo(c->context);
	BufFile    *file = BufFileCreateTemp(false);

	MemoryContextSwitchTo(old);
	c->at_reset.func = collection_at_reset;
	c->at_reset.arg = c;
	MemoryContextRegisterResetCallback(c->context, &c->at_reset);
	return file;
}

/* ------------------------------------------------------------------------
 * In memory
 * ------------------------------------------------------------------------
 */

/*
 * The digest's slot, or the free one where it belongs.
 */
static inline BfDigest *
find_slot(BfDigest *slots, uint32 nslots, BfDigest digest)
{
	for (uint32 i = (uint32) digest.h1;; i++)
	{
		BfDigest   *slot = &slots[i & (nslots - 1)];

		if ((slot->h1 == digest.h1 && slot->h2 == digest.h2) ||
			(slot->h1 == 0 && slot->h2 == 0))
			return slot;
	}
}

/*
 * Double the slots.  False where memory does not allow it.
 */
static bool
grow(BfCollection *c)
{
	uint32		nslots = c->nslots == 0 ? 4 : c->nslots * 2;
	BfDigest   *slots;

	if (c->nslots > LIST_SIZE &&
		(Size) nslots * sizeof(BfDigest) > get_hash_memory_limit())
		return false;

	if (c->keeps_copies || nslots <= LIST_SIZE)
	{
		slots = MemoryContextAllocHuge(c->context,
									   (Size) nslots * sizeof(BfDigest));
		if (c->n > 0)
			memcpy(slots, c->slots, (Size) c->n * sizeof(BfDigest));
	}
	else
	{
		slots = MemoryContextAllocExtended(c->context,
										   (Size) nslots * sizeof(BfDigest),
										   MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
		for (uint32 i = 0; i < c->nslots; i++)
		{
			const BfDigest d = c->slots[i];

			if (d.h1 != 0 || d.h2 != 0)
				*find_slot(slots, nslots, d) = d;
		}
	}
	if (c->slots != NULL)
		pfree(c->slots);
	c->slots = slots;
	c->nslots = nslots;
	return true;
}

static void
add_to_slots(BfCollection *c, const BfHeader *design, BfDigest digest)
{
	BfDigest   *slot;

	if (c->keeps_copies)
	{
		if (c->n < c->nslots || grow(c))
			c->slots[c->n++] = digest;
		else
		{
			start_file(c, design);
			add_to_file(c, &digest, 1);
		}
		return;
	}
	if (unlikely(digest.h1 == 0 && digest.h2 == 0))
	{
		c->has_zero = true;
		return;
	}
	if (c->nslots <= LIST_SIZE)
	{
		for (uint32 i = 0; i < c->n; i++)
			if (c->slots[i].h1 == digest.h1 && c->slots[i].h2 == digest.h2)
				return;
		if (c->n == c->nslots)
			grow(c);
		if (c->nslots <= LIST_SIZE)
		{
			c->slots[c->n++] = digest;
			return;
		}
	}

	slot = find_slot(c->slots, c->nslots, digest);
	if (slot->h1 != 0 || slot->h2 != 0)
		return;
	*slot = digest;
	c->n++;
	if (c->n > c->nslots / 4 * 3 && !grow(c))
	{
		if (design->expansion != 0)
			start_file(c, design);
		else
			start_large(c, design);
	}
}

/* ------------------------------------------------------------------------
 * Past memory
 * ------------------------------------------------------------------------
 */

/*
 * Add to the filter and to the file.
 */
static void
add_to_large(void *arg, const BfDigest *digests, uint32 n)
{
	BfLarge    *large = arg;
	BfFilter   *f = &large->b.f;

	Assert(n <= BF_BATCH);
	f->h.layout->prefetch(f->bits, &f->h.shape, digests, n);
	for (uint32 i = 0; i < n; i++)
	{
		if (f->h.layout->test(f->bits, &f->h.shape, digests[i]))
			continue;
		f->h.layout->add_many(f->bits, &f->h.shape, &digests[i], 1);
		large->nelements++;
	}
	if (large->file != NULL)
	{
		BufFileWrite(large->file, unconstify(BfDigest *, digests),
					 n * sizeof(BfDigest));
		large->nwritten += n;
	}
}

/*
 * Give the build so many units, and no elements.
 */
static void
make_large_filter(BfLarge *large, uint64 nunits, const BfHeader *design)
{
	BfHeader	h = large->b.f.h;
	MemoryContext context = large->b.context;

	if (large->b.memory != NULL)
		pfree(large->b.memory);
	h.shape.nbits = nunits * h.layout->unit;
	h.capacity = 1;				/* to be known at the end */
	bf_build_init(&large->b, &h, context, true);
	bf_build_start(&large->b, design);
	large->nelements = 0;
	large->capacity = (uint64) bf_max_elements(&h);
}

/*
 * Make the filter a power of two times as large, for as many elements as
 * wanted, or as the limit allows.
 */
static void
enlarge(BfLarge *large, const BfHeader *design, double wanted)
{
	const BfLayout *layout = large->b.f.h.layout;
	BufFile    *file = large->file;
	uint64		nunits = large->b.f.h.shape.nbits / layout->unit;
	uint64		limit = BF_MAX_BITS / layout->unit;
	BfHeader	h = large->b.f.h;

	do
	{
		if (nunits * 2 > limit)
			break;
		nunits *= 2;
		h.shape.nbits = nunits * layout->unit;
	} while (bf_max_elements(&h) < wanted);

	if (nunits == large->b.f.h.shape.nbits / layout->unit)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a %s filter for more than " UINT64_FORMAT " elements at fpr %g needs more than the limit of %d MiB",
						layout->name, large->capacity, h.fpr,
						(int) (BF_MAX_BITS / 8 / 1048576)),
				 errhint("Split the set over several filters, or ask for a higher rate.")));
	make_large_filter(large, nunits, design);
	large->file = NULL;			/* what is read is there already */
	for_each_in_file(file, add_to_large, large);
	large->file = file;
}

static void
add_batch(BfCollection *c, const BfHeader *design, const BfDigest *digests,
		  uint32 n)
{
	add_to_large(c->large, digests, n);
	if (c->large->nelements > c->large->capacity && c->large->file != NULL)
		enlarge(c->large, design, 3.0 * c->large->capacity);
}

/*
 * The digests that were in the slots go where others will go from now on.
 */
static void
readd_slots(BfCollection *c, const BfCollection *before,
			const BfHeader *design)
{
	BfTarget	target = {c, design};

	c->slots = NULL;
	c->n = c->nslots = 0;
	c->has_zero = false;
	for_each_batch(before, add_to_target, &target);
	pfree(before->slots);
}

/*
 * From slots to a filter and a file.  Its first size is that of the slots:
 * they hold a filter for several times as many elements.
 */
static void
start_large(BfCollection *c, const BfHeader *design)
{
	BfLarge    *large = MemoryContextAllocZero(c->context, sizeof(BfLarge));
	BfHeader	h = *design;
	BfCollection digests = *c;
	BfError		err;
	double		capacity;
	uint64		nunits;

	/* the same in all processes of a parallel query */
	capacity = fmax(bf_capacity_for(h.layout, get_hash_memory_limit(), h.fpr),
					2.0 * get_hash_memory_limit() / sizeof(BfDigest));
	if (bf_header_resize(&h, capacity, &err) != BF_OK)
		h.shape.nbits = BF_MAX_BITS / 4;
	nunits = h.shape.nbits / h.layout->unit;
	nunits = (nunits + LADDER_UNITS - 1) / LADDER_UNITS * LADDER_UNITS;

	bf_build_init(&large->b, &h, c->context, true);
	make_large_filter(large, nunits, design);

	large->file = create_file(c);
	c->large = large;
	readd_slots(c, &digests, design);
}

static void
add_to_file(BfCollection *c, const BfDigest *digests, uint32 n)
{
	BufFileWrite(c->file, (void *) digests, n * sizeof(BfDigest));
	c->nfile += n;
}

/*
 * From slots to a file.
 */
static void
start_file(BfCollection *c, const BfHeader *design)
{
	BfCollection digests = *c;

	c->file = create_file(c);
	readd_slots(c, &digests, design);
}

/*
 * How often can a filter with so many elements be halved?
 */
static int
count_folds(const BfHeader *h, double n)
{
	BfHeader	half = *h;
	int			folds = 0;

	while (bf_can_fold(&half))
	{
		half.shape.nbits /= 2;
		if (half.layout->rate(&half.shape, n) > half.fpr)
			break;
		folds++;
	}
	return folds;
}

/* ------------------------------------------------------------------------
 * Adding
 * ------------------------------------------------------------------------
 */

/*
 * Is it worth the caller's while to add many digests at once?
 */
bool
bf_collect_wants_batches(const BfCollection *c)
{
	return c->nslots >= BATCHES_FROM || c->large != NULL || c->file != NULL;
}

/*
 * Add up to BF_BATCH digests.
 */
void
bf_collect_add(BfCollection *c, const BfHeader *design,
			   const BfDigest *digests, uint32 n)
{
	uint32		i = 0;

	if (c->nslots >= BATCHES_FROM && !c->keeps_copies)
		for (uint32 j = 0; j < n; j++)
			__builtin_prefetch(&c->slots[(uint32) digests[j].h1 &
										 (c->nslots - 1)], 1);
	/* the memory may become too small on the way */
	for (; i < n && c->large == NULL && c->file == NULL; i++)
		add_to_slots(c, design, digests[i]);
	if (i == n)
		return;
	if (c->file != NULL)
		add_to_file(c, digests + i, n - i);
	else
		add_batch(c, design, digests + i, n - i);
}

/* ------------------------------------------------------------------------
 * What the processes of a parallel query collected
 * ------------------------------------------------------------------------
 */

/*
 * How many processes may hand over a part of the same group?  An estimate
 * that errs on the high side: too high costs memory, too low the rate.
 */
static double
count_participants(void)
{
	return (Max(max_parallel_workers_per_gather, 2) + 1) *
		(enable_partitionwise_aggregate ? 4 : 1);
}

/*
 * Unfold a filter to so many bits.
 */
static void
unfold(BfLarge *large, uint64 nbits)
{
	BfBuild		old = large->b;
	BfHeader	h = old.f.h;
	BfShape		shape = h.shape;

	if (nbits <= shape.nbits)
		return;
	h.shape.nbits = nbits;
	bf_build_init(&large->b, &h, old.context, true);
	bf_build_start(&large->b, &old.f.h);
	memcpy(large->b.f.bits, old.f.bits, old.f.nbytes);
	for (; shape.nbits < nbits; shape.nbits *= 2)
		h.layout->unfold(large->b.f.bits, &shape);
	bf_recount(&large->b.f);
	if (old.memory != NULL)
		pfree(old.memory);
	large->capacity = (uint64) bf_max_elements(&large->b.f.h);
}

/*
 * Make a filter past memory large enough for what all processes together may
 * have, if n elements are the average share of one.
 */
static void
provide_for_all(BfLarge *large, uint64 n, const BfHeader *design)
{
	double		wanted = n * count_participants();
	BfHeader	h = large->b.f.h;

	if (large->capacity >= wanted)
		return;
	while (bf_max_elements(&h) < wanted && h.shape.nbits * 2 <= BF_MAX_BITS)
		h.shape.nbits *= 2;
	if (large->file == NULL)
		unfold(large, h.shape.nbits);
	else if (h.shape.nbits > large->b.f.h.shape.nbits)
		enlarge(large, design, wanted);
}

/*
 * Unite two filters past memory.
 */
static void
merge_large(BfLarge *into, BfLarge *from, const BfHeader *design)
{
	BfError		err;

	/* the file does not have what comes from the other */
	provide_for_all(into, into->file != NULL ? into->nelements : 0, design);
	close_file(&into->file);
	unfold(into, from->b.f.h.shape.nbits);
	unfold(from, into->b.f.h.shape.nbits);
	bf_must(bf_unite(&into->b.f, &from->b.f, &err), &err);
	into->nelements = (uint64) fmin(bf_cardinality(&into->b.f.h), 1e15);
}

/*
 * Add all of from, which is not used afterwards.
 */
void
bf_collect_merge(BfCollection *into, BfCollection *from,
				 const BfHeader *design)
{
	BfTarget	target;

	if (from->large != NULL)
	{
		BfCollection digests;

		if (into->large != NULL)
		{
			merge_large(into->large, from->large, design);
			return;
		}

		/* digests go into a filter, but not the other way round */
		digests = *into;
		into->large = MemoryContextAllocZero(into->context, sizeof(BfLarge));
		bf_build_init(&into->large->b, &from->large->b.f.h, into->context,
					  true);
		bf_build_union(&into->large->b, &from->large->b.f);
		into->large->nelements = from->large->nelements;
		into->large->capacity = from->large->capacity;
		into->slots = NULL;
		into->n = into->nslots = 0;
		into->has_zero = false;
		bf_collect_merge(into, &digests, design);
		return;
	}

	if (into->large != NULL && into->large->file == NULL)
		provide_for_all(into->large, from->n, design);
	target.collection = into;
	target.design = design;
	for_each_batch(from, add_to_target, &target);
}

/*
 * Is what is in the file little enough to be handed over as it is?
 */
static bool
has_few_digests(const BfLarge *large)
{
	return large->file != NULL &&
		large->nwritten * sizeof(BfDigest) <= 4 * get_hash_memory_limit();
}

static void
append_digests(void *arg, const BfDigest *digests, uint32 n)
{
	appendBinaryStringInfo((StringInfo) arg, (const char *) digests,
						   n * sizeof(BfDigest));
}

/*
 * 0 and the digests, or 1 and the filter.  Read on the same machine.
 */
void
bf_collect_serialize(BfCollection *c, const BfHeader *design, StringInfo buf)
{
	BfFilter   *f;

	if (c->large == NULL || has_few_digests(c->large))
	{
		appendStringInfoChar(buf, 0);
		if (c->large == NULL)
			for_each_batch(c, append_digests, buf);
		else
			for_each_in_file(c->large->file, append_digests, buf);
		return;
	}
	appendStringInfoChar(buf, 1);
	provide_for_all(c->large, c->large->nelements, design);
	for (int folds = count_folds(&c->large->b.f.h,
								 c->large->nelements * count_participants());
		 folds > 0; folds--)
		bf_fold(&c->large->b.f);
	f = &c->large->b.f;
	bf_recount(f);
	bf_seal(f);
	enlargeStringInfo(buf, bf_image_size(&f->h));
	bf_write_header(&f->h, (uint8 *) buf->data + buf->len);
	buf->len += bf_header_size(&f->h);
	appendBinaryStringInfo(buf, (char *) f->bits, f->nbytes);
}

BfCollection *
bf_collect_deserialize(const uint8 *bytes, Size len, const BfHeader *design,
					   MemoryContext context)
{
	BfCollection *c = bf_collect_create(design, context);
	BfFilter	f;
	BfError		err;

	if (len < 1 || bytes[0] > 1 ||
		(bytes[0] == 0 && (len - 1) % sizeof(BfDigest) != 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid serialized state of bloom_agg")));
	if (bytes[0] == 0)
	{
		/* a list, however long, to be merged */
		c->n = (len - 1) / sizeof(BfDigest);
		c->slots = MemoryContextAllocHuge(context, Max(len - 1, 1));
		memcpy(c->slots, bytes + 1, len - 1);
		for (uint32 i = 0; i < c->n; i++)
			if (c->slots[i].h1 == 0 && c->slots[i].h2 == 0 &&
				!c->keeps_copies)
				c->has_zero = true;
		return c;
	}

	if (bf_validate(bytes + 1, len - 1, &f, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_BINARY_REPRESENTATION);
	c->large = MemoryContextAllocZero(context, sizeof(BfLarge));
	/* the bits stay where they are: they are only to be merged */
	bf_build_init(&c->large->b, &f.h, context, true);
	c->large->b.f = f;
	c->large->nelements = (uint64) fmin(bf_cardinality(&f.h), 1e15);
	c->large->capacity = (uint64) bf_max_elements(&f.h);
	return c;
}

/* ------------------------------------------------------------------------
 * The result
 * ------------------------------------------------------------------------
 */

/*
 * Size a filter for n elements.  Sizing takes microseconds, too long for each
 * of many small groups.
 */
static void
size_for(BfHeader *h, uint64 n, BfSizeMemo *memo)
{
	BfError		err;

	if (memo->design.layout != h->layout || memo->design.fpr != h->fpr ||
		memo->design.hashes_given != h->hashes_given ||
		memo->design.shape.nhashes != h->shape.nhashes)
	{
		memset(memo, 0, sizeof(*memo));
		memo->design = *h;
	}
	if (n < lengthof(memo->shapes) && memo->shapes[n].nbits != 0)
	{
		h->shape = memo->shapes[n];
		h->capacity = n;
		return;
	}
	if (bf_header_resize(h, n, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	if (n < lengthof(memo->shapes))
		memo->shapes[n] = h->shape;
}

static void
add_to_filter(void *arg, const BfDigest *digests, uint32 n)
{
	BfError		err;

	bf_must(bf_add_many((BfFilter *) arg, digests, n, &err), &err);
}

typedef struct BfGrowTarget
{
	BfGrowing	g;
	const BfHeader *kind;
} BfGrowTarget;

static void
add_to_growing(void *arg, const BfDigest *digests, uint32 n)
{
	BfGrowTarget *target = arg;

	for (uint32 i = 0; i < n; i++)
		(void) bf_grow_add(&target->g, target->kind, digests[i]);
}

/*
 * Fold a copy of a filter as often as the rate allows.
 */
static void
fold_result(BfBuild *b, const BfLarge *large)
{
	int			folds = 0;

	if (large->file != NULL)
	{
		/* whose elements have been counted */
		for (folds = count_folds(&b->f.h, (double) large->nelements);
			 folds > 0; folds--)
			bf_fold(&b->f);
		return;
	}

	/* bits that were unfolded say too much: only the fold itself can tell */
	while (bf_can_fold(&b->f.h))
	{
		bf_fold(&b->f);
		if (bf_expected_fpr(&b->f.h) <= b->f.h.fpr)
		{
			folds++;
			continue;
		}
		b->f.h.shape = large->b.f.h.shape;
		b->f.nbytes = large->b.f.nbytes;
		memcpy(b->f.bits, large->b.f.bits, b->f.nbytes);
		bf_recount(&b->f);
		for (; folds > 0; folds--)
			bf_fold(&b->f);
		break;
	}
}

/*
 * The filter of all that was collected.  The collection can go on.
 */
BloomFilter *
bf_collect_result(BfCollection *c, const BfHeader *design, BfSizeMemo *memo)
{
	BfHeader	h = *design;
	BfBuild		b;
	BfError		err;
	uint64		n;

	if (c->large != NULL)
	{
		bf_recount(&c->large->b.f);
		bf_build_from(&b, &c->large->b.f, CurrentMemoryContext);
		fold_result(&b, c->large);
		b.f.h.capacity = (uint64) bf_max_elements(&b.f.h);
		bf_warn_overfilled(&b.f.h);
		return bf_build_result(&b);
	}

	n = c->file != NULL ? c->nfile : (uint64) c->n + c->has_zero;
	if (h.expansion != 0)
	{
		BfGrowTarget target;

		if (!bf_is_sized(&h))
			bf_must(bf_header_resize(&h, n, &err), &err);
		bf_grow_init(&target.g, &h, CurrentMemoryContext);
		target.kind = design;
		for_each_batch(c, add_to_growing, &target);
		return bf_grow_result(&target.g);
	}

	size_for(&h, n, memo);
	bf_build_init(&b, &h, CurrentMemoryContext, false);
	bf_build_start(&b, design);
	for_each_batch(c, add_to_filter, &b.f);
	bf_recount(&b.f);
	return bf_build_result(&b);
}
