/*-------------------------------------------------------------------------
 *
 * slices.c
 *	  Parts of a value that is stored out of line.
 *
 * The server's own slices (detoast_attr_slice) open the TOAST relation and its
 * index anew for each range.  A probe needs the header and a block, a batch
 * many blocks: here one index scan serves all of them.
 *
 * An index scan prepares all entries of a leaf page that are in its range, so
 * the range is kept as small as can be: one chunk, which costs a descent each;
 * for a reader of everything, many; and of a small value all of it, of which
 * those not wanted are passed over in the index, without a look at the heap.
 *
 * Nothing is kept open from one call to the next.
 *
 *-------------------------------------------------------------------------
 */
#include "type/slices.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/itup.h"
#include "access/relscan.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/toast_internals.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/fmgroids.h"
#include "utils/snapmgr.h"

/* A descent costs about as much as passing over so many chunks. */
#define NEAR	16

/* What a reader of everything prepares at a time. */
#define AHEAD	256

/*
 * Is the value stored byte for byte, by the heap's TOAST?
 */
bool
bf_can_slice(const struct varatt_external *pointer)
{
	/* VARATT_EXTERNAL_IS_COMPRESSED, which mixes signs */
	return VARATT_EXTERNAL_GET_EXTSIZE(*pointer) ==
		(uint32) pointer->va_rawsize - VARHDRSZ;
}

void
bf_slices_open(BfSlices *s, const struct varatt_external *pointer,
			   bool everything)
{
	int			valid;
	int32		nchunks = VARATT_EXTERNAL_GET_EXTSIZE(*pointer) /
		TOAST_MAX_CHUNK_SIZE + 1;

	s->small = nchunks <= NEAR;
	s->range = s->small ? nchunks : everything ? AHEAD : 1;

	s->pointer = *pointer;
	s->toastrel = table_open(pointer->va_toastrelid, AccessShareLock);
	valid = toast_open_indexes(s->toastrel, AccessShareLock, &s->indexes,
							   &s->nindexes);
	s->slot = table_slot_create(s->toastrel, NULL);

	ScanKeyInit(&s->keys[0], 1, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(pointer->va_valueid));
	ScanKeyInit(&s->keys[1], 2, BTGreaterEqualStrategyNumber, F_INT4GE,
				Int32GetDatum(0));
	ScanKeyInit(&s->keys[2], 2, BTLessEqualStrategyNumber, F_INT4LE,
				Int32GetDatum(0));
#if PG_VERSION_NUM >= 180000
	s->scan = index_beginscan(s->toastrel, s->indexes[valid],
							  get_toast_snapshot(), NULL, 3, 0);
#else
	init_toast_snapshot(&s->snapshot);
	s->scan = index_beginscan(s->toastrel, s->indexes[valid], &s->snapshot,
							  3, 0);
#endif
	s->scan->xs_want_itup = s->small;	/* the chunk's number is in the index */
	s->passed = s->end = PG_INT32_MIN;
	s->chunk = -1;
}

void
bf_slices_close(BfSlices *s)
{
	ExecDropSingleTupleTableSlot(s->slot);
	index_endscan(s->scan);
	toast_close_indexes(s->indexes, s->nindexes, AccessShareLock);
	table_close(s->toastrel, AccessShareLock);
}

static void
chunk_error(const BfSlices *s, int32 chunk)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("missing or damaged chunk %d of toast value %u in %s",
					chunk, s->pointer.va_valueid,
					RelationGetRelationName(s->toastrel))));
}

/*
 * Make s->bytes those of a chunk, until the next is fetched.
 */
static void
fetch_chunk(BfSlices *s, int32 chunk)
{
	Size		size = VARATT_EXTERNAL_GET_EXTSIZE(s->pointer);
	Datum		datum;
	bool		isnull;
	struct varlena *data;

	if (s->chunk == chunk)
		return;
	s->chunk = -1;
	if (chunk <= s->passed || chunk >= s->end)
	{
		s->end = chunk + s->range;
		s->keys[1].sk_argument = Int32GetDatum(chunk);
		s->keys[2].sk_argument = Int32GetDatum(s->end - 1);
		index_rescan(s->scan, s->keys, 3, NULL, 0);
	}
	for (;;)
	{
		int32		at = chunk;

		if (index_getnext_tid(s->scan, ForwardScanDirection) == NULL)
			chunk_error(s, chunk);
		if (s->small)
			at = DatumGetInt32(index_getattr(s->scan->xs_itup, 2,
											 s->scan->xs_itupdesc, &isnull));
		s->passed = at;
		/* a dead row may have the same number */
		if (at < chunk || !index_fetch_heap(s->scan, s->slot))
			continue;
		if (!s->small)
			at = DatumGetInt32(slot_getattr(s->slot, 2, &isnull));
		if (at == chunk)
			break;
		if (at > chunk)
			chunk_error(s, chunk);
	}
	s->passed = chunk;

	datum = slot_getattr(s->slot, 3, &isnull);
	data = (struct varlena *) DatumGetPointer(datum);
	s->nbytes = Min(TOAST_MAX_CHUNK_SIZE,
					size - (Size) chunk * TOAST_MAX_CHUNK_SIZE);
	if (isnull || VARATT_IS_EXTERNAL(data) || VARATT_IS_COMPRESSED(data) ||
		VARSIZE_ANY_EXHDR(data) != s->nbytes)
		chunk_error(s, chunk);
	s->bytes = VARDATA_ANY(data);	/* the slot keeps the page pinned */
	s->chunk = chunk;
}

/*
 * Copy length bytes of the image from offset on.  Reading forward is cheap.
 */
void
bf_slices_read(BfSlices *s, uint64 offset, Size length, void *to)
{
	char	   *end = to;

	if (offset + length > VARATT_EXTERNAL_GET_EXTSIZE(s->pointer))
		elog(ERROR, "slice of a filter beyond its end");
	while (length > 0)
	{
		int32		chunk = offset / TOAST_MAX_CHUNK_SIZE;
		Size		skip = offset % TOAST_MAX_CHUNK_SIZE;
		Size		n;

		CHECK_FOR_INTERRUPTS();
		fetch_chunk(s, chunk);
		n = Min(length, s->nbytes - skip);
		memcpy(end, s->bytes + skip, n);
		end += n;
		offset += n;
		length -= n;
	}
}
