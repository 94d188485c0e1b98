/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  Filters from columns: bloom_agg, bloom_union_agg, bloom_intersect_agg.
 *
 * The state of all three is a filter that is being built, or, where the size
 * is to be found, a collection of digests (collect.c).  What a call site
 * needs for every row, whatever its group (how values become bytes, which
 * parameters the last row had, and what size they give), is kept once, in
 * fn_extra.
 *
 * In a filter larger than the caches, setting bits waits for memory at every
 * row.  Digests are therefore queued; when the queue is full their blocks are
 * prefetched together, so that the waits overlap, and the bits set.
 *
 *-------------------------------------------------------------------------
 */
#include "type/collect.h"
#include "type/expanded.h"

#include "lib/stringinfo.h"
#include "utils/memutils.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bf_sql_agg_trans);
PG_FUNCTION_INFO_V1(bf_sql_agg_sized_trans);
PG_FUNCTION_INFO_V1(bf_sql_agg_template_trans);
PG_FUNCTION_INFO_V1(bf_sql_union_agg_trans);
PG_FUNCTION_INFO_V1(bf_sql_intersect_agg_trans);
PG_FUNCTION_INFO_V1(bf_sql_agg_combine);
PG_FUNCTION_INFO_V1(bf_sql_intersect_agg_combine);
PG_FUNCTION_INFO_V1(bf_sql_agg_serial);
PG_FUNCTION_INFO_V1(bf_sql_agg_deserial);
PG_FUNCTION_INFO_V1(bf_sql_agg_final);
PG_FUNCTION_INFO_V1(bf_sql_union_agg_final);
PG_FUNCTION_INFO_V1(bf_sql_intersect_agg_final);

/* Filters up to this many bytes stay in the cache without a queue's help. */
#define QUEUE_FROM	(128 * 1024)

/* A header even where compression made it longer. */
#define TEMPLATE_BYTES	(2 * BF_MAX_HEADER)

/*
 * A state of known size is a build, one that sizes itself a collection of
 * digests.
 */
typedef struct BfAggState
{
	uint64		design;			/* the call site's design that it has */
	const BfHeader *header;		/* that design, with the elements' kind */

	/* one of these */
	BfBuild    *b;				/* of known size */
	BfCollection *collection;	/* to be sized, or layered, at the end */
	BfGrowing  *growing;		/* a union of scalable filters */

	int			nqueued;
	BfDigest   *queue;			/* of BF_BATCH; NULL while all is small */
} BfAggState;

/*
 * Per call site.
 */
typedef struct BfAggSite
{
	BfElement	el;
	uint64		design;			/* counts changes of the parameters; 0 = none */
	BfHeader	header;			/* the parameters of the last row */
	BfHeader	first_header;	/* those of the first, to which states point */
	float8		capacity;		/* 0 = to be found */
	float8		fpr;
	Size		template_nbytes;	/* the last row's template's signature ... */
	Size		template_ncompared; /* ... of which so many bytes count */
	uint8		template_bytes[TEMPLATE_BYTES];
} BfAggSite;

static MemoryContext
agg_context(FunctionCallInfo fcinfo)
{
	MemoryContext context;

	if (!AggCheckCallContext(fcinfo, &context))
		elog(ERROR, "aggregate function called in non-aggregate context");
	return context;
}

static pg_noinline BfAggSite *
make_site(FunctionCallInfo fcinfo)
{
	BfAggSite  *site = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
											  sizeof(BfAggSite));

	bf_element_init_arg(&site->el, fcinfo, 1);
	fcinfo->flinfo->fn_extra = site;
	return site;
}

static inline BfAggSite *
agg_site(FunctionCallInfo fcinfo)
{
	BfAggSite  *site = fcinfo->flinfo->fn_extra;

	return likely(site != NULL) ? site : make_site(fcinfo);
}

/*
 * A state for filters of known size.
 */
static BfAggState *
make_state(MemoryContext context, const BfHeader *h)
{
	BfAggState *state = MemoryContextAllocZero(context, sizeof(BfAggState));

	state->b = MemoryContextAlloc(context, sizeof(BfBuild));
	bf_build_init(state->b, h, context, true);
	state->header = &state->b->f.h;
	return state;
}

static BfAggState *
make_collecting_state(MemoryContext context, const BfHeader *header)
{
	BfAggState *state = MemoryContextAllocZero(context, sizeof(BfAggState));

	state->collection = bf_collect_create(header, context);
	state->header = header;
	return state;
}

/* A header of the state's own, with its names. */
static const BfHeader *
copy_header(MemoryContext context, const BfHeader *h)
{
	BfHeader   *copy = MemoryContextAlloc(context, sizeof(BfHeader));

	*copy = *h;
	bf_copy_kind(copy, h, context);
	return copy;
}

static void
flush_queue(BfAggState *state)
{
	int			n = state->nqueued;
	BfError		err;

	state->nqueued = 0;
	if (n == 0)
		return;
	if (state->collection != NULL)
		bf_collect_add(state->collection, state->header, state->queue, n);
	else
		bf_must(bf_add_many(&state->b->f, state->queue, n, &err), &err);
}

/*
 * Bring the build up to date.
 */
static void
finish_adding(BfAggState *state)
{
	flush_queue(state);
	if (state->b != NULL)
		bf_recount(&state->b->f);
}

/*
 * Parameters must be the same in all rows of a group.
 */
static void
check_design(const BfHeader *old, const BfHeader *h)
{
	BfError		err;

	if (old->capacity != h->capacity || old->fpr != h->fpr)
		bf_fail(&err, BF_INCOMPATIBLE,
				"capacity " UINT64_FORMAT " and fpr %g became capacity " UINT64_FORMAT " and fpr %g",
				old->capacity, old->fpr, h->capacity, h->fpr);
	else if (bf_same_parameters(old, h, &err) == BF_OK)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("parameters of bloom_agg changed within a group"),
			 errdetail("The %s.", err.message),
			 errhint("Use the same capacity, rate and template for all rows of a group, or add them to GROUP BY.")));
}

/*
 * The parameters of this row are new to the site: they are in site->header.
 */
static void
new_design(BfAggSite *site, Datum value, MemoryContext context)
{
	BfHeader   *h = &site->header;

	if (value != (Datum) 0)
		bf_element_resolve(&site->el, value);
	/* a template's elements are not taken over, but their kind must agree */
	bf_element_become(&site->el, h, value);
	bf_check_key(h, &site->el);
	h->kind = BF_KIND_NONE;
	h->nset = 0;
	h->checksum = 0;
	h->kind_name_len = 0;
	h->not_portable = false;
	if (!site->el.dynamic)
		bf_kind_of_element(&site->el, h);
	if (site->design++ == 0)
		site->first_header = *copy_header(context, h);
}

/* Nothing was added?  A queue there is only where something was. */
static bool
is_empty(const BfAggState *state)
{
	if (state->collection != NULL)
		return bf_collect_is_empty(state->collection);
	if (state->growing != NULL)
		return state->growing->nlayers == 0;
	return state->b->f.bits == NULL;
}

/*
 * The same, from a capacity, or without one, and a rate.
 */
static pg_noinline void
set_sized_design(BfAggSite *site, float8 capacity, bool unsized, float8 fpr,
				 Datum value, MemoryContext context)
{
	BfError		err;

	if (!unsized && capacity > 0 && capacity < 1)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("capacity must be a whole number of at least 1, not %g",
						capacity),
				 errhint("A false-positive rate is the third argument: bloom_agg(value, capacity, %g), or bloom_agg(value, NULL, %g) if the capacity is to be found.",
						 capacity, capacity)));
	if (bf_header_init(&site->header, &bf_layout_blocked, BF_HASH_XXH3,
					   NULL, 0, 0, fpr, 0, &err) != BF_OK ||
		(!unsized && bf_header_resize(&site->header, capacity, &err) != BF_OK))
		bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	site->capacity = unsized ? 0 : capacity;
	site->fpr = fpr;
	new_design(site, value, context);
}

/*
 * Records say row by row what they are.
 */
static void
follow_record(BfAggSite *site, BfAggState *state, Datum value)
{
	BfHeader	kind = *state->header;

	bf_element_resolve(&site->el, value);
	if (is_empty(state))
	{
		bf_check_key(&kind, &site->el);
		bf_kind_of_element(&site->el, &kind);
		if (state->collection != NULL)
			state->header = copy_header(GetMemoryChunkContext(state), &kind);
		else
			bf_build_start(state->b, &kind);
	}
	else
		bf_element_become(&site->el, &kind, value);
}

/*
 * The row's digest into its group's queue: all there is to do for most rows.
 * False where there is more to it.
 */
static pg_attribute_always_inline bool
agg_queue(FunctionCallInfo fcinfo, BfAggSite *site)
{
	BfAggState *state = (BfAggState *) PG_GETARG_POINTER(0);
	BfDigest	digest;

	if (unlikely(PG_ARGISNULL(0) || PG_ARGISNULL(1) ||
				 state->design != site->design || state->queue == NULL ||
				 state->nqueued == BF_BATCH - 1 || site->el.dynamic))
		return false;
	digest = bf_element_digest(&site->el, state->header, PG_GETARG_DATUM(1));

	/* by halves: gcc would copy the struct through the stack and stall */
	state->queue[state->nqueued].h1 = digest.h1;
	state->queue[state->nqueued].h2 = digest.h2;
	state->nqueued++;
	return true;
}

static pg_noinline Datum
agg_trans(FunctionCallInfo fcinfo, BfAggSite *site)
{
	BfAggState *state;
	BfDigest	digest;
	BfError		err;

	if (unlikely(PG_ARGISNULL(0)))
	{
		MemoryContext context = agg_context(fcinfo);

		if (bf_is_sized(&site->header) && site->header.expansion == 0)
			state = make_state(context, &site->header);
		else
			state = make_collecting_state(context, site->design == 1 ?
										  &site->first_header :
										  copy_header(context, &site->header));
		state->design = site->design;
	}
	else
		state = (BfAggState *) PG_GETARG_POINTER(0);

	if (unlikely(state->design != site->design))
	{
		check_design(state->header, &site->header);
		state->design = site->design;
	}
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);
	if (unlikely(site->el.dynamic))
		follow_record(site, state, PG_GETARG_DATUM(1));

	if (state->b != NULL && state->b->f.bits == NULL)
		bf_build_start(state->b, &site->header);
	if (state->queue == NULL &&
		(state->b != NULL ? state->b->f.nbytes >= QUEUE_FROM :
		 bf_collect_wants_batches(state->collection)))
		state->queue = MemoryContextAlloc(GetMemoryChunkContext(state),
										  BF_BATCH * sizeof(BfDigest));

	digest = bf_element_digest(&site->el, state->header, PG_GETARG_DATUM(1));
	if (state->queue != NULL)
	{
		state->queue[state->nqueued++] = digest;
		if (state->nqueued < BF_BATCH)
			PG_RETURN_POINTER(state);
		flush_queue(state);
	}
	else if (state->collection != NULL)
		bf_collect_add(state->collection, state->header, &digest, 1);
	else
		bf_must(bf_add_many(&state->b->f, &digest, 1, &err), &err);
	PG_RETURN_POINTER(state);
}

/*
 * bloom_agg(value)
 */
Datum
bf_sql_agg_trans(PG_FUNCTION_ARGS)
{
	BfAggSite  *site = agg_site(fcinfo);

	if (unlikely(site->design == 0))
		set_sized_design(site, 0, true, 0.01, (Datum) 0,
						 fcinfo->flinfo->fn_mcxt);
	else if (likely(agg_queue(fcinfo, site)))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return agg_trans(fcinfo, site);
}

/*
 * bloom_agg(value, capacity) and bloom_agg(value, capacity, fpr)
 */
Datum
bf_sql_agg_sized_trans(PG_FUNCTION_ARGS)
{
	BfAggSite  *site = agg_site(fcinfo);
	bool		has_fpr = PG_NARGS() > 3 && !PG_ARGISNULL(3);
	float8		fpr = has_fpr ? PG_GETARG_FLOAT8(3) : 0.01;
	float8		capacity = PG_ARGISNULL(2) ? 0 : PG_GETARG_FLOAT8(2);

	if (unlikely(site->design == 0 || capacity != site->capacity ||
				 fpr != site->fpr))
		set_sized_design(site, capacity, PG_ARGISNULL(2), fpr,
						 PG_ARGISNULL(1) ? (Datum) 0 : PG_GETARG_DATUM(1),
						 fcinfo->flinfo->fn_mcxt);
	else if (likely(agg_queue(fcinfo, site)))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return agg_trans(fcinfo, site);
}

/*
 * The bytes that tell a template apart, cheaply enough for every row: a
 * TOAST pointer, or the header of a value in memory.  0 where there are none,
 * since a pointer to memory says nothing about what is there.
 */
static Size
template_signature(const struct varlena *value)
{
	if (VARATT_IS_EXTERNAL_ONDISK(value))
		return VARSIZE_EXTERNAL(value);
	if (VARATT_IS_EXTERNAL(value))
		return 0;
	return Min(VARSIZE_ANY(value), TEMPLATE_BYTES);
}

/*
 * bloom_agg(value, template)
 */
Datum
bf_sql_agg_template_trans(PG_FUNCTION_ARGS)
{
	BfAggSite  *site = agg_site(fcinfo);
	Datum		value = PG_ARGISNULL(1) ? (Datum) 0 : PG_GETARG_DATUM(1);
	struct varlena *template;
	Size		nbytes;

	/* bloomfilter(NULL) is NULL to the parser: the defaults */
	if (PG_ARGISNULL(2))
	{
		if (site->design == 0 || site->template_nbytes != 0)
		{
			site->template_nbytes = 0;
			set_sized_design(site, 0, true, 0.01, value,
							 fcinfo->flinfo->fn_mcxt);
		}
		return agg_trans(fcinfo, site);
	}

	template = (struct varlena *) PG_GETARG_POINTER(2);
	nbytes = template_signature(template);
	if (unlikely(site->design == 0 || nbytes == 0 ||
				 nbytes != site->template_nbytes ||
				 memcmp(template, site->template_bytes,
						site->template_ncompared) != 0))
	{
		bf_fetch_header(PG_GETARG_DATUM(2), &site->header);
		site->template_nbytes = nbytes;

		/* of a flat value in memory the header is enough */
		if (VARATT_IS_4B_U(template) || VARATT_IS_SHORT(template))
			nbytes = Min(nbytes, VARHDRSZ + bf_header_size(&site->header));
		site->template_ncompared = nbytes;
		memcpy(site->template_bytes, template, nbytes);
		new_design(site, value, fcinfo->flinfo->fn_mcxt);
	}
	else if (likely(agg_queue(fcinfo, site)))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	return agg_trans(fcinfo, site);
}

/* ------------------------------------------------------------------------
 * bloom_union_agg, bloom_intersect_agg
 * ------------------------------------------------------------------------
 */
static BfAggState *
make_growing_state(MemoryContext context, const BfHeader *h)
{
	BfAggState *state = MemoryContextAllocZero(context, sizeof(BfAggState));

	state->growing = MemoryContextAlloc(context, sizeof(BfGrowing));
	bf_grow_init(state->growing, h, context);
	state->header = &state->growing->h;
	return state;
}

/*
 * Unite a state, or NULL, and a filter, or intersect them.
 */
static BfAggState *
merge_filter(BfAggState *state, const BfFilter *f, bool intersect,
			 MemoryContext context)
{
	if (intersect)
		bf_check_intersectable(&f->h);

	/* an unsized filter is the identity of union */
	if (state == NULL || (!intersect && !bf_is_sized(state->header)))
	{
		if (f->h.expansion != 0)
		{
			state = make_growing_state(context, &f->h);
			bf_grow_append(state->growing, f);
		}
		else
		{
			state = make_state(context, &f->h);
			bf_build_union(state->b, f);
		}
		return state;
	}

	bf_check_combinable(state->header, &f->h);
	if (intersect)
		bf_build_intersect(state->b, f);
	else if (!bf_is_sized(&f->h))
		return state;
	else if (state->growing != NULL)
	{
		bf_grow_append(state->growing, f);
		bf_merge_design(&state->growing->h, &f->h);
	}
	else
		bf_build_union(state->b, f);
	return state;
}

static Datum
merge_trans(FunctionCallInfo fcinfo, bool intersect)
{
	MemoryContext context = agg_context(fcinfo);
	BfAggState *state = PG_ARGISNULL(0) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(0);
	BfFilter	f;

	if (!PG_ARGISNULL(1))
	{
		bf_open_value(PG_GETARG_BLOOM(1), &f);
		state = merge_filter(state, &f, intersect, context);
	}
	if (state == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(state);
}

Datum
bf_sql_union_agg_trans(PG_FUNCTION_ARGS)
{
	return merge_trans(fcinfo, false);
}

Datum
bf_sql_intersect_agg_trans(PG_FUNCTION_ARGS)
{
	return merge_trans(fcinfo, true);
}

/* ------------------------------------------------------------------------
 * Parallel aggregation
 * ------------------------------------------------------------------------
 */

/*
 * Bring two collections of digests together.
 */
static BfAggState *
combine_collections(BfAggState *left, BfAggState *right,
					MemoryContext context)
{
	if (left == NULL)
		left = make_collecting_state(context,
									 copy_header(context, right->header));
	else
	{
		check_design(left->header, right->header);
		if (bf_collect_is_empty(left->collection))
			left->header = copy_header(context, right->header);
		else if (!bf_collect_is_empty(right->collection) &&
				 !bf_same_kind(left->header, right->header))
			ereport(ERROR,
					(errcode(ERRCODE_DATATYPE_MISMATCH),
					 errmsg("elements of one filter must be of one kind"),
					 errdetail("There are %s and %s.",
							   bf_kind_display(left->header),
							   bf_kind_display(right->header))));
	}
	bf_collect_merge(left->collection, right->collection, left->header);
	return left;
}

/* A state without a collection as a filter. */
static void
open_state(BfAggState *state, BfFilter *f)
{
	if (state->growing != NULL)
		bf_open_value(bf_grow_result(state->growing), f);
	else
		*f = state->b->f;
}

static Datum
agg_combine(FunctionCallInfo fcinfo, bool intersect)
{
	MemoryContext context = agg_context(fcinfo);
	BfAggState *left = PG_ARGISNULL(0) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(0);
	BfAggState *right = PG_ARGISNULL(1) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(1);

	if (left != NULL)
		finish_adding(left);
	if (right != NULL)
	{
		finish_adding(right);
		if (right->collection != NULL)
			left = combine_collections(left, right, context);
		else
		{
			BfFilter	f;

			open_state(right, &f);
			left = merge_filter(left, &f, intersect, context);
		}
	}
	if (left == NULL)
		PG_RETURN_NULL();
	PG_RETURN_POINTER(left);
}

Datum
bf_sql_agg_combine(PG_FUNCTION_ARGS)
{
	return agg_combine(fcinfo, false);
}

Datum
bf_sql_intersect_agg_combine(PG_FUNCTION_ARGS)
{
	return agg_combine(fcinfo, true);
}

/*
 * A state of known size travels as a value, which starts with a "B", a
 * collection as a "C", its design, the elements' kind, and its contents.
 */
Datum
bf_sql_agg_serial(PG_FUNCTION_ARGS)
{
	BfAggState *state = (BfAggState *) PG_GETARG_POINTER(0);
	const BfHeader *h = state->header;
	BfHeader	design = *h;
	StringInfoData buf;
	uint8		header[BF_MAX_HEADER];

	(void) agg_context(fcinfo);
	finish_adding(state);
	if (state->growing != NULL)
		PG_RETURN_BYTEA_P(bf_grow_result(state->growing));
	if (state->b != NULL)
		PG_RETURN_BYTEA_P(bf_build_copy(state->b));

	design.kind = BF_KIND_NONE;
	design.kind_name_len = 0;
	design.not_portable = false;
	bf_write_header(&design, header);

	initStringInfo(&buf);
	appendStringInfoSpaces(&buf, VARHDRSZ);
	appendStringInfoChar(&buf, 'C');
	appendBinaryStringInfo(&buf, (char *) header, bf_header_size(&design));
	appendStringInfoChar(&buf, (char) h->kind);
	appendStringInfoChar(&buf, h->not_portable);
	appendBinaryStringInfo(&buf, (const char *) &h->kind_name_len,
						   sizeof(h->kind_name_len));
	if (h->kind_name_len > 0)
		appendBinaryStringInfo(&buf, h->kind_name, h->kind_name_len);
	bf_collect_serialize(state->collection, h, &buf);
	SET_VARSIZE(buf.data, buf.len);
	PG_RETURN_BYTEA_P((bytea *) buf.data);
}

static BfAggState *
deserialize_collection(const uint8 *bytes, Size len)
{
	BfAggState *state;
	BfHeader	h;
	BfError		err;
	Size		header_size;
	Size		at;

	/* the header says how long it is */
	if (len < 1 + 8)
		goto corrupt;
	header_size = bytes[7] | bytes[8] << 8;
	if (len < 1 + header_size + 4)
		goto corrupt;
	if (bf_open_header(bytes + 1, header_size, header_size, &h, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_BINARY_REPRESENTATION);
	at = 1 + header_size;
	h.kind = bytes[at++];
	h.not_portable = bytes[at++] != 0;
	memcpy(&h.kind_name_len, bytes + at, sizeof(h.kind_name_len));
	at += sizeof(h.kind_name_len);
	h.kind_name = (const char *) bytes + at;
	if (h.kind_name_len > BF_MAX_KIND_NAME || len - at < h.kind_name_len ||
		!bf_kind_is_valid(h.kind, h.kind_name, h.kind_name_len))
		goto corrupt;
	at += h.kind_name_len;

	state = make_collecting_state(CurrentMemoryContext,
								  copy_header(CurrentMemoryContext, &h));
	state->collection = bf_collect_deserialize(bytes + at, len - at,
											   state->header,
											   CurrentMemoryContext);
	return state;

corrupt:
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
			 errmsg("invalid serialized state of bloom_agg")));
}

Datum
bf_sql_agg_deserial(PG_FUNCTION_ARGS)
{
	bytea	   *value = PG_GETARG_BYTEA_PP(0);
	const uint8 *bytes = (const uint8 *) VARDATA_ANY(value);
	Size		len = VARSIZE_ANY_EXHDR(value);
	BfFilter	f;
	BfError		err;

	(void) agg_context(fcinfo);
	if (len > 0 && bytes[0] == 'C')
		PG_RETURN_POINTER(deserialize_collection(bytes, len));

	if (bf_validate(bytes, len, &f, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_BINARY_REPRESENTATION);
	PG_RETURN_POINTER(merge_filter(NULL, &f, false, CurrentMemoryContext));
}

/* ------------------------------------------------------------------------
 * Results
 * ------------------------------------------------------------------------
 */

/*
 * The state is kept as it is: a window aggregate goes on with it.
 */
static Datum
agg_final(FunctionCallInfo fcinfo, BfAggState *state)
{
	BloomFilter *result;
	BfFilter	f;

	/* after the first time there is nothing to finish */
	if (state->b == NULL || state->b->handle == (Datum) 0)
		finish_adding(state);
	if (state->b != NULL && state->b->bits_context != NULL &&
		state->b->f.bits != NULL && bf_can_expand(&state->b->f) &&
		AggCheckCallContext(fcinfo, NULL) == AGG_CONTEXT_AGGREGATE)
	{
		bf_warn_overfilled(&state->b->f.h);
		return bf_expand_build(state->b);
	}
	result = state->growing != NULL ? bf_grow_result(state->growing) :
		bf_build_copy(state->b);
	bf_open_value(result, &f);
	bf_warn_overfilled(&f.h);
	PG_RETURN_POINTER(result);
}

/*
 * bloom_agg over no rows, or only NULLs: an unsized filter, and never NULL,
 * so that NOT (filter @> x) is true.
 */
Datum
bf_sql_agg_final(PG_FUNCTION_ARGS)
{
	BfAggState *state = PG_ARGISNULL(0) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(0);

	(void) agg_context(fcinfo);
	if (state != NULL && (state->b == NULL || state->b->handle == (Datum) 0))
		finish_adding(state);
	if (state == NULL || is_empty(state))
		PG_RETURN_POINTER(bf_make_unsized());
	if (state->collection != NULL)
	{
		BfSizeMemo *memo = fcinfo->flinfo->fn_extra;

		if (memo == NULL)
		{
			memo = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
										  sizeof(BfSizeMemo));
			fcinfo->flinfo->fn_extra = memo;
		}
		PG_RETURN_POINTER(bf_collect_result(state->collection, state->header,
											memo));
	}
	return agg_final(fcinfo, state);
}

/* Here empty filters have parameters, which count. */
Datum
bf_sql_union_agg_final(PG_FUNCTION_ARGS)
{
	(void) agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_POINTER(bf_make_unsized());
	return agg_final(fcinfo, (BfAggState *) PG_GETARG_POINTER(0));
}

Datum
bf_sql_intersect_agg_final(PG_FUNCTION_ARGS)
{
	(void) agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	return agg_final(fcinfo, (BfAggState *) PG_GETARG_POINTER(0));
}
