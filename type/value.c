/*-------------------------------------------------------------------------
 *
 * value.c
 *	  Values of the type: opening, building, combining.
 *
 *-------------------------------------------------------------------------
 */
#include "type/expanded.h"

#include "access/detoast.h"
#include "access/xact.h"
#include "miscadmin.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

#include <math.h>
#include <sys/mman.h>

/* Bytes of bits from which on a build can be given away as it is. */
#define LARGE_BUILD		(1024 * 1024)

/*
 * The SQLSTATE for an error of the core.  Bytes that are no filter depend on
 * where they came from.
 */
int
bf_sqlstate(const BfError *err, int corrupt_sqlstate)
{
	switch (err->status)
	{
		case BF_BAD_PARAMETER:
			return ERRCODE_INVALID_PARAMETER_VALUE;
		case BF_TOO_LARGE:
			return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
		case BF_UNKNOWN_VERSION:
			return ERRCODE_FEATURE_NOT_SUPPORTED;
		case BF_INCOMPATIBLE:
			return ERRCODE_DATATYPE_MISMATCH;
		case BF_FULL:
			return ERRCODE_PROGRAM_LIMIT_EXCEEDED;
		default:
			return corrupt_sqlstate;
	}
}

void
bf_must(BfStatus status, const BfError *err)
{
	if (unlikely(status != BF_OK))
		bf_throw(err, ERRCODE_INVALID_PARAMETER_VALUE);
}

void
bf_throw(const BfError *err, int corrupt_sqlstate)
{
	ereport(ERROR,
			(errcode(bf_sqlstate(err, corrupt_sqlstate)),
			 errmsg("%s", err->message),
			 err->hint[0] != '\0' ? errhint("%s", err->hint) : 0));
	pg_unreachable();
}

/*
 * Open a value that is in memory whole.
 */
void
bf_open_value(const BloomFilter *value, BfFilter *f)
{
	BfError		err;

	if (unlikely(bf_open((const uint8 *) VARDATA_ANY(value),
						 VARSIZE_ANY_EXHDR(value), f, &err) != BF_OK))
		bf_throw(&err, ERRCODE_DATA_CORRUPTED);
}

/*
 * Read a value's header, and only that where the value is out of line.  Names
 * in it point into memory of the current context.
 */
void
bf_fetch_header(Datum value, BfHeader *h)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(value);
	BfError		err;
	Size		len;

	/* VARATT_IS_SHORT would be true of a TOAST pointer as well */
	if (VARATT_IS_EXTERNAL(attr) || VARATT_IS_COMPRESSED(attr))
	{
		len = toast_raw_datum_size(value) - VARHDRSZ;
		attr = PG_DETOAST_DATUM_SLICE(value, 0, BF_MAX_HEADER);
	}
	else
		len = VARSIZE_ANY_EXHDR(attr);

	if (bf_open_header((const uint8 *) VARDATA_ANY(attr),
					   VARSIZE_ANY_EXHDR(attr), len, h, &err) != BF_OK)
		bf_throw(&err, ERRCODE_DATA_CORRUPTED);
}

/*
 * The same for those who do not look at the checksum, which an expanded filter
 * has none of.
 */
void
bf_peek_header(Datum value, BfHeader *h)
{
	BfHandle   *handle = bf_get_handle(value);

	if (handle != NULL && bf_handle_filter(handle) != NULL)
		*h = bf_handle_filter(handle)->h;
	else
		bf_fetch_header(value, h);
}

/*
 * A filter with h's parameters and no elements: its header alone.
 */
BloomFilter *
bf_make_empty(const BfHeader *h)
{
	BfHeader	empty = *h;
	BloomFilter *result;
	Size		size;

	empty.kind = BF_KIND_NONE;
	empty.kind_name_len = 0;
	empty.not_portable = false;
	empty.nlayers = 0;
	empty.nset = 0;
	empty.checksum = 0;
	size = VARHDRSZ + bf_image_size(&empty);
	result = palloc(size);
	SET_VARSIZE(result, size);
	bf_write_header(&empty, (uint8 *) VARDATA(result));
	return result;
}

/*
 * What an aggregate over nothing returns: contains nothing, and is the
 * identity of union with any filter.
 */
BloomFilter *
bf_make_unsized(void)
{
	BfHeader	h;
	BfError		err;

	if (bf_header_init(&h, &bf_layout_blocked, BF_HASH_XXH3, NULL, 0, 0, 0.01,
					   0, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INTERNAL_ERROR);
	return bf_make_empty(&h);
}

/*
 * Overfill is never silent, but one WARNING a statement is enough.
 */
void
bf_warn_overfilled(const BfHeader *h)
{
	static TimestampTz warned_at = 0;
	double		n;

	/* the first costs less to find out */
	if (warned_at == GetCurrentStatementStartTimestamp() || !bf_overfilled(h))
		return;
	warned_at = GetCurrentStatementStartTimestamp();

	n = bf_cardinality(h);
	if (isinf(n))
		ereport(WARNING,
				(errmsg("filter sized for " UINT64_FORMAT " elements is saturated; expect 100%% false positives, not %.3g%%",
						h->capacity, 100 * bf_design_fpr(h)),
				 errhint("Build the filter anew with a larger capacity.")));
	else
	{
		/* three significant digits: it is an estimate */
		double		unit = pow(10, fmax(0, floor(log10(n)) - 2));

		ereport(WARNING,
				(errmsg("filter sized for " UINT64_FORMAT " elements holds about %.0f; expect %.3g%% false positives, not %.3g%%",
						h->capacity, rint(n / unit) * unit,
						100 * bf_expected_fpr(h), 100 * bf_design_fpr(h)),
				 errhint("Build the filter anew with a larger capacity.")));
	}
}

/* ------------------------------------------------------------------------
 * Combining
 * ------------------------------------------------------------------------
 */

/*
 * Can two filters be united or intersected?  An unsized filter goes with any
 * other, an empty one with any element kind.
 */
static bool
combinable(const BfHeader *a, const BfHeader *b, BfError *err)
{
	if (!bf_is_sized(a) || !bf_is_sized(b))
		return true;
	if (bf_same_parameters(a, b, err) != BF_OK)
		return false;
	if (a->nset > 0 && b->nset > 0 && !bf_same_kind(a, b))
	{
		bf_fail(err, BF_INCOMPATIBLE, "element kinds differ: %s and %s",
				bf_kind_display(a), bf_kind_display(b));
		return false;
	}
	return true;
}

bool
bf_combinable(const BfHeader *a, const BfHeader *b)
{
	BfError		err;

	return combinable(a, b, &err);
}

void
bf_check_combinable(const BfHeader *a, const BfHeader *b)
{
	BfError		err;

	if (combinable(a, b, &err))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("filters cannot be combined"),
			 errdetail("Their %s.", err.message),
			 bf_same_parameters(a, b, &err) == BF_OK ?
			 errhint("Cast the values to one type when the filters are built.") :
			 errhint("Build all filters that are to be combined with one template: bloom_agg(value, template).")));
}

/*
 * What two scalable filters have in common is not in layers that correspond.
 */
void
bf_check_intersectable(const BfHeader *h)
{
	if (h->expansion != 0)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("filters with expansion cannot be intersected"),
				 errhint("Probe both, as in: a @> value AND b @> value.")));
}

/* ------------------------------------------------------------------------
 * Building
 * ------------------------------------------------------------------------
 */

/*
 * A build without elements.  Memory for the bits will come from context.
 *
 * With aligned, blocks of the bits become cache lines; such a build is an
 * aggregate's state and can be copied, but not given away.
 */
void
bf_build_init(BfBuild *b, const BfHeader *h, MemoryContext context,
			  bool aligned)
{
	b->context = context;
	b->aligned = aligned;
	b->f.h = *h;
	b->f.h.kind = BF_KIND_NONE;
	b->f.h.kind_name_len = 0;
	b->f.h.not_portable = false;
	b->f.h.nlayers = 0;
	b->f.h.nset = 0;
	b->f.h.checksum = 0;
	b->f.bits = NULL;
	b->f.nbytes = 0;
	b->memory = NULL;
	b->value = NULL;
	b->bits_context = NULL;
	b->handle = (Datum) 0;
}

/*
 * Make h's elements of the kind that the header kind has.
 */
void
bf_copy_kind(BfHeader *h, const BfHeader *kind, MemoryContext context)
{
	h->kind = kind->kind;
	h->kind_name_len = kind->kind_name_len;
	h->not_portable = kind->not_portable;
	if (kind->kind_name_len > 0)
	{
		char	   *name = MemoryContextAlloc(context, kind->kind_name_len);

		memcpy(name, kind->kind_name, kind->kind_name_len);
		h->kind_name = name;
	}
}

/*
 * Bits are set all over a large filter: with pages of 4 kB most of them would
 * miss the TLB.  To be called before the memory is touched.
 */
static void
advise_huge_pages(char *memory, Size size)
{
#ifdef MADV_HUGEPAGE
	const Size	page = 2 * 1024 * 1024;
	char	   *first = (char *) TYPEALIGN(page, memory);
	char	   *last = (char *) TYPEALIGN_DOWN(page, memory + size);

	/* a hint: it does not matter if it fails */
	if (first < last)
		(void) madvise(first, last - first, MADV_HUGEPAGE);
#endif
}

/*
 * Allocate the bits for elements of the kind that the header kind has.
 */
static void
build_allocate(BfBuild *b, const BfHeader *kind, bool zero)
{
	BfHeader   *h = &b->f.h;
	Size		header;
	char	   *raw;
	Size		size;
	MemoryContext context = b->context;

	bf_copy_kind(h, kind, b->context);
	header = VARHDRSZ + bf_header_size(h);
	b->f.nbytes = bf_payload_size(h);
	/* what is large enough to be given away without a copy lives by itself */
	if (b->aligned && b->f.nbytes >= LARGE_BUILD)
		context = b->bits_context = AllocSetContextCreate(b->context,
														  "bloomfilter bits",
														  ALLOCSET_SMALL_SIZES);
	size = header + b->f.nbytes + (b->aligned ? BF_BLOCK_BITS / 8 : 0);
	raw = MemoryContextAllocExtended(context, size, MCXT_ALLOC_HUGE);
	if (b->bits_context != NULL)
		advise_huge_pages(raw, size);
	if (zero)
		memset(raw, 0, size);
	b->memory = raw;
	if (b->aligned)
		raw = (char *) TYPEALIGN(BF_BLOCK_BITS / 8, raw);
	b->value = (BloomFilter *) raw;
	b->f.bits = (uint8 *) raw + header;
}

/*
 * The first element is at hand.
 */
void
bf_build_start(BfBuild *b, const BfHeader *kind)
{
	build_allocate(b, kind, true);
}

/*
 * Take over a filter's elements.  The build is empty, of the same shape.
 */
static void
build_load(BfBuild *b, const BfFilter *from)
{
	build_allocate(b, &from->h, false);
	memcpy(b->f.bits, from->bits, from->nbytes);
	b->f.h.nset = from->h.nset;
}

void
bf_build_from(BfBuild *b, const BfFilter *from, MemoryContext context)
{
	bf_build_init(b, &from->h, context, false);
	if (from->bits != NULL)
		build_load(b, from);
}

void
bf_build_union(BfBuild *b, const BfFilter *from)
{
	bf_check_combinable(&b->f.h, &from->h);
	if (!bf_is_sized(&from->h))
		return;
	if (!bf_is_sized(&b->f.h))
		bf_build_init(b, &from->h, b->context, b->aligned);
	bf_merge_design(&b->f.h, &from->h);
	if (from->bits == NULL)
		return;
	if (b->f.bits == NULL)
		build_load(b, from);
	else
	{
		BfError		err;

		bf_must(bf_unite(&b->f, from, &err), &err);
	}
}

void
bf_build_intersect(BfBuild *b, const BfFilter *from)
{
	bf_check_combinable(&b->f.h, &from->h);
	if (!bf_is_sized(&b->f.h))
	{
		if (bf_is_sized(&from->h))
			bf_build_init(b, &from->h, b->context, b->aligned);
		return;
	}
	if (bf_is_sized(&from->h))
		bf_merge_design(&b->f.h, &from->h);
	if (b->f.bits == NULL)
		return;
	if (from->bits != NULL)
		bf_intersect(&b->f, from);
	else
		b->f.h.nset = 0;
	bf_build_trim(b);
}

/*
 * An empty filter is its header alone.
 */
void
bf_build_trim(BfBuild *b)
{
	if (b->f.h.nset > 0)
		return;
	b->f.bits = NULL;
	b->f.nbytes = 0;
}

/*
 * The finished value, in the build's own memory.
 */
BloomFilter *
bf_build_result(BfBuild *b)
{
	Assert(!b->aligned);
	if (b->f.bits == NULL)
		return bf_make_empty(&b->f.h);
	bf_seal(&b->f);
	SET_VARSIZE(b->value, VARHDRSZ + bf_image_size(&b->f.h));
	bf_write_header(&b->f.h, (uint8 *) VARDATA(b->value));
	return b->value;
}

/*
 * The value as it stands, in the current context; the build can go on.
 */
BloomFilter *
bf_build_copy(BfBuild *b)
{
	BloomFilter *result;
	Size		header;

	if (b->f.bits == NULL)
		return bf_make_empty(&b->f.h);
	bf_seal(&b->f);
	header = VARHDRSZ + bf_header_size(&b->f.h);
	result = palloc(header + b->f.nbytes);
	SET_VARSIZE(result, header + b->f.nbytes);
	bf_write_header(&b->f.h, (uint8 *) VARDATA(result));
	memcpy((char *) result + header, b->f.bits, b->f.nbytes);
	return result;
}
