/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  filter @> value, and the same for arrays.
 *
 * A filter in memory is probed where it lies.  Of one that is stored out of
 * line only the header and the ranges are read that the layout names for the
 * value; but a filter that is probed over and over is loaded as soon as its
 * slices have cost as much as loading it, if hash_mem allows.
 *
 *-------------------------------------------------------------------------
 */
#include "type/expanded.h"
#include "type/slices.h"

#include "access/detoast.h"
#include "access/heaptoast.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

PG_FUNCTION_INFO_V1(bf_sql_contains);
PG_FUNCTION_INFO_V1(bf_sql_contained);
PG_FUNCTION_INFO_V1(bf_sql_contains_any);
PG_FUNCTION_INFO_V1(bf_sql_contains_all);
PG_FUNCTION_INFO_V1(bf_sql_contains_each);

/* What opening the TOAST relation costs, in chunks read in a row. */
#define OPENING_COST	16

/*
 * What a call site keeps from one probe to the next: how values become bytes,
 * and the last filter's header, parsed.  In memory a filter is known again by
 * its header's bytes, since a pointer says nothing about what is there; out of
 * line by its TOAST pointer, whose value never changes.
 */
struct BfProbeSite
{
	BfElement	el;
	Size		len;			/* of the last filter's image; 0 = none yet */
	Size		header_size;
	BfHeader	h;
	uint8		header_bytes[BF_MAX_HEADER];

	/* the last filter that was out of line; va_valueid 0 = none yet */
	struct varatt_external stored;
	double		spent;			/* on it, in chunks */
	MemoryContext parent;
	MemoryContext context;		/* of loaded, or NULL */
	uint8	   *loaded;			/* its image, or NULL */
};

static BfProbeSite *
make_site(MemoryContext context)
{
	BfProbeSite *site = MemoryContextAllocZero(context, sizeof(BfProbeSite));

	site->parent = context;
	return site;
}

/*
 * Another filter: of its image of len bytes the header is at hand.
 */
static void
remember_header(BfProbeSite *site, const uint8 *image, Size have, Size len,
				Datum value)
{
	BfHeader	h;
	BfError		err;

	site->len = 0;
	if (bf_open_header(image, have, len, &h, &err) != BF_OK)
		bf_throw(&err, ERRCODE_DATA_CORRUPTED);
	bf_element_become(&site->el, &h, value);
	site->header_size = bf_header_size(&h);
	memmove(site->header_bytes, image, site->header_size);
	/* the copy is where its names stay valid */
	h.kind_name = (char *) site->header_bytes + ((uint8 *) h.kind_name - image);
	h.layers = site->header_bytes + (h.layers - image);
	site->h = h;
	site->len = len;
}

/* ------------------------------------------------------------------------
 * Filters out of line
 * ------------------------------------------------------------------------
 */

/*
 * Forget what is known of the last one.
 */
static void
forget_stored(BfProbeSite *site)
{
	site->stored.va_valueid = InvalidOid;
	site->spent = 0;
	if (site->context != NULL)
		MemoryContextReset(site->context);
	site->loaded = NULL;
}

/*
 * Load the filter and keep it, its blocks aligned with the cache's lines.
 */
static void
load_stored(BfProbeSite *site, struct varlena *attr)
{
	Size		len = toast_raw_datum_size(PointerGetDatum(attr)) - VARHDRSZ;
	char	   *memory;
	uint8	   *image;

	if (site->context == NULL)
		site->context = AllocSetContextCreate(site->parent,
											  "bloomfilter probe",
											  ALLOCSET_START_SMALL_SIZES);
	memory = MemoryContextAllocExtended(site->context,
										len + VARHDRSZ + PG_CACHE_LINE_SIZE,
										MCXT_ALLOC_HUGE);
	image = (uint8 *) TYPEALIGN(BF_BLOCK_BITS / 8, memory) +
		BF_BLOCK_BITS / 8 - (BF_FIXED_HEADER % (BF_BLOCK_BITS / 8));
	if (bf_can_slice(&site->stored))
	{
		BfSlices	s;

		bf_slices_open(&s, &site->stored, true);
		bf_slices_read(&s, 0, len, image);
		bf_slices_close(&s);
	}
	else
	{
		struct varlena *flat = detoast_attr(attr);

		memcpy(image, VARDATA(flat), len);
		pfree(flat);
	}
	site->loaded = image;		/* complete */
}

/*
 * Of a filter that has layers the i'th, counted from the largest; of another
 * itself.  Where it starts in the image.
 */
static uint64
open_part(const BfProbeSite *site, unsigned i, BfHeader *part)
{
	uint64		offset = site->header_size;

	*part = site->h;
	if (site->h.nlayers == 0)
		return offset;
	for (unsigned j = 0; j < site->h.nlayers - i - 1; j++)
	{
		bf_layer_header(&site->h, j, part);
		offset += bf_payload_size(part);
	}
	bf_layer_header(&site->h, site->h.nlayers - i - 1, part);
	return offset;
}

typedef struct BfWanted
{
	uint64		offset;
	uint32		length;
	uint8	   *to;
} BfWanted;

static int
by_offset(const void *a, const void *b)
{
	uint64		x = ((const BfWanted *) a)->offset;
	uint64		y = ((const BfWanted *) b)->offset;

	return x < y ? -1 : x > y;
}

/*
 * Read what n digests need of one part, each chunk once, and test.  Elements
 * that were answered "maybe" already are left out.
 */
static void
test_slices(BfProbeSite *site, BfSlices *s, const BfDigest *digests,
			uint32 n, const bool *skip, bool *answers, unsigned i)
{
	BfHeader	part;
	uint64		start = open_part(site, i, &part);
	BfRange		ranges_of_one[BF_MAX_RANGES];
	BfWanted	wanted_by_one[BF_MAX_RANGES];
	uint8		bytes_for_one[BF_MAX_RANGES * 2];
	uint32		nranges_of_one;
	BfRange    *ranges = ranges_of_one;
	BfWanted   *wanted = wanted_by_one;
	uint8	   *bytes = bytes_for_one;
	uint32	   *nranges = &nranges_of_one;
	uint8	   *end;
	uint32		nwanted = 0;
	Size		size = 0;
	int32		chunk = -1;

	if (n > 1)
	{
		ranges = palloc_extended((Size) n * BF_MAX_RANGES * sizeof(BfRange),
								 MCXT_ALLOC_HUGE);
		nranges = palloc_extended((Size) n * sizeof(uint32), MCXT_ALLOC_HUGE);
	}
	for (uint32 j = 0; j < n; j++)
	{
		nranges[j] = 0;
		if (skip[j] || answers[j])
			continue;
		nranges[j] = part.layout->ranges(&part.shape, digests[j],
										 ranges + (Size) j * BF_MAX_RANGES);
		nwanted += nranges[j];
		for (uint32 k = 0; k < nranges[j]; k++)
			size += ranges[(Size) j * BF_MAX_RANGES + k].length;
	}
	if (n > 1)
		wanted = palloc_extended((Size) Max(nwanted, 1) * sizeof(BfWanted),
								 MCXT_ALLOC_HUGE);
	if (size > sizeof(bytes_for_one))
		bytes = palloc_extended(size, MCXT_ALLOC_HUGE);
	end = bytes;
	nwanted = 0;
	for (uint32 j = 0; j < n; j++)
		for (uint32 k = 0; k < nranges[j]; k++)
		{
			const BfRange *range = &ranges[(Size) j * BF_MAX_RANGES + k];

			wanted[nwanted].offset = start + range->offset;
			wanted[nwanted].length = range->length;
			wanted[nwanted++].to = end;
			end += range->length;
		}
	if (n > 1)
		qsort(wanted, nwanted, sizeof(BfWanted), by_offset);
	for (uint32 k = 0; k < nwanted; k++)
	{
		bf_slices_read(s, wanted[k].offset, wanted[k].length, wanted[k].to);
		if (s->chunk != chunk)
			site->spent += 2;
		chunk = s->chunk;
	}

	end = bytes;
	for (uint32 j = 0; j < n; j++)
	{
		if (nranges[j] == 0)
			continue;
		answers[j] = part.layout->test_ranges(end,
											  ranges + (Size) j * BF_MAX_RANGES,
											  nranges[j], &part.shape,
											  digests[j]);
		for (uint32 k = 0; k < nranges[j]; k++)
			end += ranges[(Size) j * BF_MAX_RANGES + k].length;
	}
	if (bytes != bytes_for_one)
		pfree(bytes);
	if (n <= 1)
		return;
	pfree(ranges);
	pfree(nranges);
	pfree(wanted);
}

/* ------------------------------------------------------------------------
 * Any filter
 * ------------------------------------------------------------------------
 */

/*
 * Get ready to probe a filter with n values, of which value is one, or 0.
 * Returns the image, or NULL for one of which slices are to be read: *s is
 * open then.  In either case site->h is its header.
 */
static const uint8 *
open_filter(BfProbeSite *site, Datum filter, Datum value, double n,
			BfSlices *s)
{
	struct varlena *attr = (struct varlena *) DatumGetPointer(filter);
	const uint8 *image;
	Size		len;

	if (likely(!VARATT_IS_EXTERNAL_ONDISK(attr)))
	{
		attr = PG_DETOAST_DATUM_PACKED(filter);
		image = (const uint8 *) VARDATA_ANY(attr);
		len = VARSIZE_ANY_EXHDR(attr);
	}
	else
	{
		struct varatt_external pointer;
		double		cost;

		VARATT_EXTERNAL_GET_POINTER(pointer, attr);
		if (memcmp(&pointer, &site->stored, sizeof(pointer)) != 0)
		{
			forget_stored(site);
			site->stored = pointer;
			site->len = 0;
		}
		len = pointer.va_rawsize - VARHDRSZ;
		cost = (double) len / TOAST_MAX_CHUNK_SIZE;
		if (site->loaded == NULL && len <= get_hash_memory_limit() &&
			(site->spent >= cost || (bf_can_slice(&pointer) && n * 2 >= cost)))
			load_stored(site, attr);
		image = site->loaded;

		if (image == NULL && bf_can_slice(&pointer))
		{
			bf_slices_open(s, &pointer, false);
			site->spent += OPENING_COST;
			if (site->len == 0)
			{
				Size		have = Min(len, BF_FIXED_HEADER);

				/* most often that is all of it */
				bf_slices_read(s, 0, have, site->header_bytes);
				have = Min(len, bf_image_header_size(site->header_bytes, have));
				if (have > BF_FIXED_HEADER)
					bf_slices_read(s, 0, have, site->header_bytes);
				remember_header(site, site->header_bytes, have, len, value);
			}
			return NULL;
		}
		if (image == NULL)
		{
			attr = detoast_attr(attr);
			image = (const uint8 *) VARDATA(attr);
			site->spent += cost;
		}
	}

	if (unlikely(len != site->len ||
				 memcmp(image, site->header_bytes, site->header_size) != 0))
		remember_header(site, image, len, len, value);
	return image;
}

static inline bool
test_image(const BfProbeSite *site, const uint8 *image, BfDigest digest)
{
	if (unlikely(site->h.nset == 0))
		return false;
	if (unlikely(site->h.expansion != 0))
	{
		BfFilter	f;

		f.h = site->h;
		f.bits = unconstify(uint8 *, image) + site->header_size;
		f.nbytes = site->len - site->header_size;
		return bf_test_layers(&f, digest);
	}
	return site->h.layout->test(image + site->header_size, &site->h.shape,
								digest);
}

/*
 * An expanded filter lies open.
 */
static bool
contains_expanded(BfProbeSite *site, const BfFilter *f, Datum value)
{
	/* nothing is known of the last filter in memory from now on */
	site->len = 0;
	bf_element_become(&site->el, &f->h, value);
	return f->h.nset > 0 &&
		bf_test(f, bf_element_digest(&site->el, &f->h, value));
}

static pg_noinline bool
contains_extended(BfProbeSite *site, Datum filter, Datum value)
{
	BfHandle   *handle = bf_get_handle(filter);
	BfSlices	s;
	const uint8 *image;
	bool		answer = false;
	const bool	skip = false;
	BfDigest	digest;

	if (handle != NULL && bf_handle_filter(handle) != NULL)
		return contains_expanded(site, bf_handle_filter(handle), value);

	image = open_filter(site, filter, value, 1, &s);
	digest = bf_element_digest(&site->el, &site->h, value);
	if (image != NULL)
		return test_image(site, image, digest);
	for (unsigned i = 0; i == 0 || i < site->h.nlayers; i++)
		if (site->h.nset > 0 && !answer)
			test_slices(site, &s, &digest, 1, &skip, &answer, i);
	bf_slices_close(&s);
	return answer;
}

static inline bool
probe(BfProbeSite *site, Datum filter, Datum value)
{
	const uint8 *image;
	Size		len;

	if (unlikely(site->el.context != NULL) &&
		(bf_element_resolve(&site->el, value) || site->el.dynamic))
		site->len = 0;			/* its kind may have changed */

	if (unlikely(VARATT_IS_EXTENDED(DatumGetPointer(filter))))
		return contains_extended(site, filter, value);

	image = (const uint8 *) VARDATA(DatumGetPointer(filter));
	len = VARSIZE(DatumGetPointer(filter)) - VARHDRSZ;
	if (unlikely(len != site->len ||
				 memcmp(image, site->header_bytes, site->header_size) != 0))
		remember_header(site, image, len, len, value);
	return site->h.nset > 0 &&
		test_image(site, image, bf_element_digest(&site->el, &site->h, value));
}

/*
 * What the call site keeps.
 */
static inline BfProbeSite *
site_of(FunctionCallInfo fcinfo, int value_arg)
{
	BfProbeSite *site = fcinfo->flinfo->fn_extra;

	if (unlikely(site == NULL))
	{
		site = make_site(fcinfo->flinfo->fn_mcxt);
		bf_element_init_arg(&site->el, fcinfo, value_arg);
		fcinfo->flinfo->fn_extra = site;
	}
	return site;
}

static inline bool
contains(FunctionCallInfo fcinfo, int filter_arg, int value_arg)
{
	return probe(site_of(fcinfo, value_arg), PG_GETARG_DATUM(filter_arg),
				 PG_GETARG_DATUM(value_arg));
}

/*
 * The state for probing from C, with values of a type.  All that it needs is
 * in context, or in children of it.
 */
BfProbeSite *
bf_probe_create(Oid typid, Oid collation, MemoryContext context)
{
	BfProbeSite *site = make_site(context);

	bf_element_init(&site->el, typid, collation, context);
	return site;
}

/*
 * May the filter, stored or not, contain the value?  Errors as of @>.
 */
bool
bf_probe(BfProbeSite *site, Datum filter, Datum value)
{
	return probe(site, filter, value);
}

/* filter @> value, bloom_contains(filter, value) */
Datum
bf_sql_contains(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains(fcinfo, 0, 1));
}

/* value <@ filter */
Datum
bf_sql_contained(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(contains(fcinfo, 1, 0));
}

/*
 * For bloom_add(filter, value): the element, of a call site that can probe.
 */
BfElement *
bf_element_of_probe(FunctionCallInfo fcinfo)
{
	return &site_of(fcinfo, 1)->el;
}

/*
 * Is the filter stored, and does adding the value change nothing?  Slices of it
 * tell.
 */
bool
bf_stored_has(FunctionCallInfo fcinfo)
{
	BfProbeSite *site;

	if (!VARATT_IS_EXTERNAL_ONDISK(DatumGetPointer(PG_GETARG_DATUM(0))))
		return false;
	site = site_of(fcinfo, 1);
	if (contains(fcinfo, 0, 1) && bf_is_sized(&site->h) && !site->h.layout->multiset)
		return true;
	/* the caller uses the element for what it likes */
	site->len = 0;
	return false;
}

/* ------------------------------------------------------------------------
 * Arrays
 * ------------------------------------------------------------------------
 */

/*
 * Probe with every element of the array: an answer each, and which elements
 * are NULL.  Returns how many there are.
 */
static int
contains_each(FunctionCallInfo fcinfo, ArrayType *array, bool **answers,
			  bool **nulls)
{
	BfProbeSite *site = fcinfo->flinfo->fn_extra;
	BfElement  *el;
	BfDigest   *digests;
	BfSlices	s;
	const uint8 *image;
	Datum	   *values;
	int			first = 0;		/* that is not NULL */
	int			n;

	if (site == NULL)
	{
		site = make_site(fcinfo->flinfo->fn_mcxt);
		fcinfo->flinfo->fn_extra = site;
	}
	el = &site->el;
	if (bf_element_of_array(el, array, fcinfo))
		site->len = 0;
	deconstruct_array(array, ARR_ELEMTYPE(array), el->typlen, el->typbyval,
					  el->typalign, &values, nulls, &n);
	*answers = palloc0((Size) Max(n, 1) * sizeof(bool));
	while (first < n && (*nulls)[first])
		first++;
	if (el->context != NULL)
	{
		site->len = 0;			/* each element is looked at below */
		if (first < n)
			bf_element_resolve(el, values[first]);
		else if (el->typid == RECORDOID)
			return n;			/* no value says of what kind it is */
	}

	image = open_filter(site, PG_GETARG_DATUM(0),
						first < n ? values[first] : (Datum) 0, n, &s);
	digests = palloc((Size) Max(n, 1) * sizeof(BfDigest));
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if ((*nulls)[i])
			continue;
		if (el->context != NULL)
		{
			bf_element_resolve(el, values[i]);
			bf_element_become(el, &site->h, values[i]);
		}
		digests[i] = bf_element_digest(el, &site->h, values[i]);
		if (image != NULL)
			(*answers)[i] = test_image(site, image, digests[i]);
	}
	if (image == NULL)
	{
		for (unsigned i = 0; i == 0 || i < site->h.nlayers; i++)
			if (site->h.nset > 0)
				test_slices(site, &s, digests, n, *nulls, *answers, i);
		bf_slices_close(&s);
	}
	return n;
}

/*
 * Is any of the elements (all of them) contained?  NULL elements count as
 * they do in = ANY and = ALL: unknown, unless another element decides.
 */
static Datum
contains_quantified(FunctionCallInfo fcinfo, bool deciding)
{
	bool	   *answers;
	bool	   *nulls;
	bool		unknown = false;
	int			n;

	n = contains_each(fcinfo, PG_GETARG_ARRAYTYPE_P(1), &answers, &nulls);
	for (int i = 0; i < n; i++)
	{
		if (nulls[i])
			unknown = true;
		else if (answers[i] == deciding)
			PG_RETURN_BOOL(deciding);
	}
	if (unknown)
		PG_RETURN_NULL();
	PG_RETURN_BOOL(!deciding);
}

Datum
bf_sql_contains_any(PG_FUNCTION_ARGS)
{
	return contains_quantified(fcinfo, true);
}

Datum
bf_sql_contains_all(PG_FUNCTION_ARGS)
{
	return contains_quantified(fcinfo, false);
}

/*
 * bloom_contains_each(filter, array): an array of answers of the same shape.
 */
Datum
bf_sql_contains_each(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(1);
	bool	   *answers;
	bool	   *nulls;
	Datum	   *results;
	int			n;

	n = contains_each(fcinfo, array, &answers, &nulls);
	if (n == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(BOOLOID));
	results = palloc((Size) n * sizeof(Datum));
	for (int i = 0; i < n; i++)
		results[i] = BoolGetDatum(answers[i]);
	PG_RETURN_ARRAYTYPE_P(construct_md_array(results, nulls, ARR_NDIM(array),
											 ARR_DIMS(array), ARR_LBOUND(array),
											 BOOLOID, sizeof(bool), true,
											 TYPALIGN_CHAR));
}
