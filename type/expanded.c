/*-------------------------------------------------------------------------
 *
 * expanded.c
 *	  Filters in memory that can be added to without a copy of the bits.
 *
 * f := bloom_add(f, x) in a PL/pgSQL loop must not copy a megabyte to set
 * seven bits.  Up to version 17 PL/pgSQL hands a variable's expanded object to
 * a function read-only (unless it is an array): what the variable holds must
 * not be seen to change.  So an expanded filter here is a small handle to bits
 * that several handles share.  Adding makes a new handle, sets the bits where
 * they are, and logs the bytes that were there, so that older handles can
 * still be read as they were: a copy is made, and the log undone, if one of
 * them ever is.  In a loop it never is, since the assignment drops the old
 * handle, and the log with it.
 *
 * A handle is a PostgreSQL expanded object (utils/expandeddatum.h) in a memory
 * context of its own; the bits live in another, which the last handle takes
 * with it.
 *
 *-------------------------------------------------------------------------
 */
#include "type/expanded.h"

#include "lib/ilist.h"
#include "utils/expandeddatum.h"
#include "utils/memutils.h"

/* Smaller filters are as well copied. */
#define MIN_PAYLOAD		1024

#define HANDLE_MAGIC	0x42466831	/* "BFh1" */

typedef struct LogEntry
{
	uint64		version;		/* that the change made */
	uint64		offset;
	uint32		length;
	uint32		at;				/* of the old bytes, in log_bytes */
} LogEntry;

/*
 * Bits that handles share, in their latest version.
 */
typedef struct BfShared
{
	MemoryContext context;
	BfFilter	f;
	uint64		version;
	uint64		quiet_until;	/* up to so many bits set there is no overfill */
	dlist_head	handles;
	LogEntry   *log;			/* what older handles need undone */
	uint32		nlog;
	uint32		maxlog;
	uint8	   *log_bytes;
	uint32		nlog_bytes;
	uint32		maxlog_bytes;
} BfShared;

struct BfHandle
{
	ExpandedObjectHeader hdr;
	int			magic;
	BfShared   *shared;
	uint64		version;
	uint64		nset;			/* in that version */
	dlist_node	node;
	MemoryContextCallback at_reset;
};

static Size get_flat_size(ExpandedObjectHeader *eohptr);
static void flatten_into(ExpandedObjectHeader *eohptr, void *result,
						 Size allocated_size);

static const ExpandedObjectMethods methods = {get_flat_size, flatten_into};

/* ------------------------------------------------------------------------
 * Handles
 * ------------------------------------------------------------------------
 */

/*
 * The handle behind a value, or NULL: it may be any varlena.
 */
BfHandle *
bf_get_handle(Datum value)
{
	ExpandedObjectHeader *eoh;

	if (!VARATT_IS_EXTERNAL_EXPANDED(DatumGetPointer(value)))
		return NULL;
	eoh = DatumGetEOHP(value);
	return eoh->eoh_methods == &methods ? (BfHandle *) eoh : NULL;
}

/*
 * The header of the latest version, which differs from that of others in the
 * number of bits set alone.
 */
const BfHeader *
bf_handle_header(const BfHandle *handle)
{
	return &handle->shared->f.h;
}

/*
 * The filter, if the handle is of the latest version, or NULL.
 */
const BfFilter *
bf_handle_filter(const BfHandle *handle)
{
	Assert(handle->magic == HANDLE_MAGIC);
	return handle->version == handle->shared->version ?
		&handle->shared->f : NULL;
}

/*
 * The handle goes, with its context.  The last takes the bits with it, and
 * the last old one the log.
 */
static void
drop_handle(void *arg)
{
	BfHandle   *handle = arg;
	BfShared   *shared = handle->shared;
	dlist_iter	iter;

	dlist_delete(&handle->node);
	if (dlist_is_empty(&shared->handles))
	{
		MemoryContextDelete(shared->context);
		return;
	}
	dlist_foreach(iter, &shared->handles)
	{
		if (dlist_container(BfHandle, node, iter.cur)->version != shared->version)
			return;
	}
	shared->nlog = 0;
	shared->nlog_bytes = 0;
}

/*
 * A handle of the latest version, as a read-write datum.
 */
static Datum
make_handle(BfShared *shared)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext,
												  "bloomfilter handle",
												  ALLOCSET_SMALL_SIZES);
	BfHandle   *handle = MemoryContextAlloc(context, sizeof(BfHandle));

	EOH_init_header(&handle->hdr, &methods, context);
	handle->magic = HANDLE_MAGIC;
	handle->shared = shared;
	handle->version = shared->version;
	handle->nset = shared->f.h.nset;
	dlist_push_head(&shared->handles, &handle->node);
	handle->at_reset.func = drop_handle;
	handle->at_reset.arg = handle;
	MemoryContextRegisterResetCallback(context, &handle->at_reset);
	return EOHPGetRWDatum(&handle->hdr);
}

/* ------------------------------------------------------------------------
 * Shared bits
 * ------------------------------------------------------------------------
 */

/*
 * Is the filter one whose elements change just the bytes that a probe reads,
 * and large enough?
 */
bool
bf_can_expand(const BfFilter *f)
{
	return f->h.expansion == 0 && !f->h.layout->bounded &&
		bf_payload_size(&f->h) >= MIN_PAYLOAD;
}

/*
 * A copy of the filter to add to, as a read-write datum.  An empty one gets
 * elements of the kind that the header kind has.
 */
Datum
bf_expand(const BfFilter *f, const BfHeader *kind)
{
	MemoryContext context;
	BfShared   *shared;
	char	   *memory;
	double		variance;
	Size		nbytes = bf_payload_size(&f->h);

	/* not the transaction's: a variable of a procedure may outlive it */
	context = AllocSetContextCreate(TopMemoryContext, "bloomfilter bits",
									ALLOCSET_SMALL_SIZES);
	PG_TRY();
	{
		shared = MemoryContextAllocZero(context, sizeof(BfShared));
		shared->context = context;
		shared->f.h = f->h;
		bf_copy_kind(&shared->f.h, f->bits != NULL ? &f->h : kind, context);
		memory = MemoryContextAllocExtended(context,
											nbytes + BF_BLOCK_BITS / 8,
											MCXT_ALLOC_HUGE |
											(f->bits == NULL ? MCXT_ALLOC_ZERO : 0));
		shared->f.bits = (uint8 *) TYPEALIGN(BF_BLOCK_BITS / 8, memory);
		shared->f.nbytes = nbytes;
		if (f->bits != NULL)
			memcpy(shared->f.bits, f->bits, nbytes);
		shared->quiet_until = (uint64)
			f->h.layout->expected_set(&f->h.shape, (double) f->h.capacity,
									  &variance);
		dlist_init(&shared->handles);
	}
	PG_CATCH();
	{
		MemoryContextDelete(context);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return make_handle(shared);
}

/*
 * A large build as a datum, without a copy of the bits.  They stay what they
 * are as long as the handle that the build's context gets lives, so that an
 * aggregate's state can be finished more than once.  The datum is read-only,
 * in the current context.
 */
Datum
bf_expand_build(BfBuild *b)
{
	MemoryContext context = b->bits_context;
	BfHandle   *handle;
	char	   *result;

	Assert(context != NULL && b->f.bits != NULL);
	if (b->handle == 0)
	{
		BfShared   *shared = MemoryContextAllocZero(context, sizeof(BfShared));
		MemoryContext old = MemoryContextSwitchTo(b->context);
		double		variance;

		shared->context = context;
		shared->f = b->f;
		bf_copy_kind(&shared->f.h, &b->f.h, context);
		shared->quiet_until = (uint64)
			b->f.h.layout->expected_set(&b->f.h.shape, (double) b->f.h.capacity,
										&variance);
		dlist_init(&shared->handles);
		b->handle = make_handle(shared);
		MemoryContextSetParent(context, TopMemoryContext);
		MemoryContextSwitchTo(old);
	}
	handle = bf_get_handle(make_handle(bf_get_handle(b->handle)->shared));
	result = palloc(EXPANDED_POINTER_SIZE);
	memcpy(result, DatumGetPointer(EOHPGetRODatum(&handle->hdr)),
		   EXPANDED_POINTER_SIZE);
	return PointerGetDatum(result);
}

/*
 * Log what the ranges hold, before a change to the next version.
 */
static void
log_ranges(BfShared *shared, const BfRange *ranges, uint32 nranges)
{
	uint32		nbytes = 0;

	for (uint32 i = 0; i < nranges; i++)
		nbytes += ranges[i].length;
	if (shared->nlog + nranges > shared->maxlog)
	{
		uint32		max = Max(shared->maxlog * 2, BF_MAX_RANGES);

		shared->log = shared->log == NULL ?
			MemoryContextAlloc(shared->context, max * sizeof(LogEntry)) :
			repalloc(shared->log, max * sizeof(LogEntry));
		shared->maxlog = max;
	}
	if (shared->nlog_bytes + nbytes > shared->maxlog_bytes)
	{
		uint32		max = Max(shared->maxlog_bytes * 2, BF_MAX_RANGES * 2);

		shared->log_bytes = shared->log_bytes == NULL ?
			MemoryContextAlloc(shared->context, max) :
			repalloc(shared->log_bytes, max);
		shared->maxlog_bytes = max;
	}
	for (uint32 i = 0; i < nranges; i++)
	{
		LogEntry   *entry = &shared->log[shared->nlog++];

		entry->version = shared->version + 1;
		entry->offset = ranges[i].offset;
		entry->length = ranges[i].length;
		entry->at = shared->nlog_bytes;
		memcpy(shared->log_bytes + entry->at, shared->f.bits + entry->offset,
			   entry->length);
		shared->nlog_bytes += entry->length;
	}
}

/*
 * The bits of a version, in a copy's memory.
 */
static void
copy_bits(const BfHandle *handle, uint8 *to)
{
	const BfShared *shared = handle->shared;

	memcpy(to, shared->f.bits, shared->f.nbytes);
	for (uint32 i = shared->nlog; i-- > 0;)
	{
		const LogEntry *entry = &shared->log[i];

		if (entry->version <= handle->version)
			break;
		memcpy(to + entry->offset, shared->log_bytes + entry->at, entry->length);
	}
}

static Size
get_flat_size(ExpandedObjectHeader *eohptr)
{
	BfHandle   *handle = (BfHandle *) eohptr;
	BfHeader	h = handle->shared->f.h;

	if (handle->nset == 0)
	{
		h.kind = BF_KIND_NONE;
		h.kind_name_len = 0;
	}
	h.nset = handle->nset;
	return VARHDRSZ + bf_image_size(&h);
}

static void
flatten_into(ExpandedObjectHeader *eohptr, void *result, Size allocated_size)
{
	BfHandle   *handle = (BfHandle *) eohptr;
	BfFilter	f = handle->shared->f;

	f.h.nset = handle->nset;
	if (handle->nset == 0)
	{
		BloomFilter *empty = bf_make_empty(&f.h);

		Assert(VARSIZE(empty) == allocated_size);
		memcpy(result, empty, allocated_size);
		pfree(empty);
		return;
	}
	Assert(allocated_size == VARHDRSZ + bf_image_size(&f.h));
	f.bits = (uint8 *) result + VARHDRSZ + bf_header_size(&f.h);
	copy_bits(handle, f.bits);
	bf_seal(&f);
	SET_VARSIZE(result, allocated_size);
	bf_write_header(&f.h, (uint8 *) VARDATA(result));
}

/* ------------------------------------------------------------------------
 * Adding
 * ------------------------------------------------------------------------
 */

/*
 * Does more than one handle look at the bits?
 */
static bool
are_shared(const BfShared *shared)
{
	return shared->handles.head.next != shared->handles.head.prev;
}

/*
 * The value that was passed, in a form that an assignment need not copy.
 */
Datum
bf_handle_again(Datum value)
{
	BfHandle   *handle = bf_get_handle(value);

	if (handle == NULL || handle->version != handle->shared->version ||
		VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(value)))
		return value;
	return make_handle(handle->shared);
}

/*
 * Add an element to the handle's filter.  The value that is returned is
 * read-write; the one that was passed, unless it is read-write itself, stays
 * what it was.
 */
Datum
bf_handle_add(Datum value, BfDigest digest)
{
	BfHandle   *handle = bf_get_handle(value);
	BfShared   *shared = handle->shared;
	BfRange		ranges[BF_MAX_RANGES];
	bool		in_place;
	BfError		err;

	/*
	 * Bits that have moved on, or that drag a long log behind them, are left
	 * to the others.
	 */
	if (handle->version != shared->version ||
		shared->nlog_bytes > shared->f.nbytes / 4)
	{
		BfFilter	f = shared->f;

		f.h.nset = handle->nset;
		f.bits = palloc_extended(f.nbytes, MCXT_ALLOC_HUGE);
		copy_bits(handle, f.bits);
		value = bf_expand(&f, &f.h);
		pfree(f.bits);
		handle = bf_get_handle(value);
		shared = handle->shared;
	}

	in_place = VARATT_IS_EXTERNAL_EXPANDED_RW(DatumGetPointer(value));
	if (shared->f.h.layout->multiset ||
		!shared->f.h.layout->test(shared->f.bits, &shared->f.h.shape, digest))
	{
		if (!in_place || are_shared(shared))
			log_ranges(shared, ranges,
					   shared->f.h.layout->ranges(&shared->f.h.shape, digest,
												  ranges));
		bf_must(bf_add(&shared->f, digest, &err), &err);
		shared->version++;
		if (in_place)
		{
			handle->version = shared->version;
			handle->nset = shared->f.h.nset;
		}
		if (shared->f.h.nset > shared->quiet_until)
		{
			/* look again when there is 1% more */
			bf_warn_overfilled(&shared->f.h);
			shared->quiet_until = shared->f.h.nset + shared->f.h.nset / 100;
		}
	}
	return in_place ? value : make_handle(shared);
}
