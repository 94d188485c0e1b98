/*-------------------------------------------------------------------------
 *
 * aggregate.c
 *	  Filters from columns: bloom_agg, bloom_union_agg, bloom_intersect_agg.
 *
 * The state of all three is a filter that is being built.  What a call site
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
#include "type/type.h"

#include "utils/memutils.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bf_sql_agg_sized_trans);
PG_FUNCTION_INFO_V1(bf_sql_agg_template_trans);
PG_FUNCTION_INFO_V1(bf_sql_union_agg_trans);
PG_FUNCTION_INFO_V1(bf_sql_intersect_agg_trans);
PG_FUNCTION_INFO_V1(bf_sql_agg_combine);
PG_FUNCTION_INFO_V1(bf_sql_intersect_agg_combine);
PG_FUNCTION_INFO_V1(bf_sql_agg_serial);
PG_FUNCTION_INFO_V1(bf_sql_agg_deserial);
PG_FUNCTION_INFO_V1(bf_sql_agg_final);
PG_FUNCTION_INFO_V1(bf_sql_intersect_agg_final);

/* Filters up to this many bytes stay in the cache without a queue's help. */
#define QUEUE_FROM	(128 * 1024)
#define QUEUE_SIZE	64

/* A header even where compression made it longer. */
#define TEMPLATE_BYTES	(2 * BF_MAX_HEADER)

typedef struct BfAggState
{
	BfBuild		b;
	uint64		design;			/* the call site's design that it has */
	int			nqueued;
	BfDigest   *queue;			/* NULL for small filters */
} BfAggState;

/*
 * Per call site.
 */
typedef struct BfAggSite
{
	BfElement	el;
	BfHeader	kind;			/* the element's kind, as a header */
	uint64		design;			/* counts changes of the parameters; 0 = none */
	BfHeader	header;			/* the parameters of the last row */
	float8		capacity;
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

static BfAggSite *
agg_site(FunctionCallInfo fcinfo)
{
	BfAggSite  *site = fcinfo->flinfo->fn_extra;

	if (unlikely(site == NULL))
	{
		site = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt,
									  sizeof(BfAggSite));
		bf_element_init_arg(&site->el, fcinfo, 1);
		bf_kind_of_element(&site->el, &site->kind);
		fcinfo->flinfo->fn_extra = site;
	}
	return site;
}

static BfAggState *
make_state(MemoryContext context, const BfHeader *h)
{
	BfAggState *state = MemoryContextAllocZero(context, sizeof(BfAggState));

	bf_build_init(&state->b, h, context, true);
	return state;
}

/*
 * Bring the build up to date.
 */
static void
finish_adding(BfAggState *state)
{
	if (state->nqueued > 0)
		bf_add_many(&state->b.f, state->queue, state->nqueued);
	state->nqueued = 0;
	bf_recount(&state->b.f);
}

/*
 * Parameters must be the same in all rows of a group.
 */
static void
check_design(const BfAggState *state, const BfHeader *h)
{
	const BfHeader *old = &state->b.f.h;
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

static pg_attribute_always_inline Datum
agg_trans(FunctionCallInfo fcinfo, BfAggSite *site)
{
	BfAggState *state;
	BfDigest	digest;

	if (unlikely(PG_ARGISNULL(0)))
	{
		state = make_state(agg_context(fcinfo), &site->header);
		state->design = site->design;
	}
	else
		state = (BfAggState *) PG_GETARG_POINTER(0);

	if (unlikely(state->design != site->design))
	{
		check_design(state, &site->header);
		state->design = site->design;
	}
	if (PG_ARGISNULL(1))
		PG_RETURN_POINTER(state);

	if (unlikely(state->b.f.bits == NULL))
	{
		bf_build_start(&state->b, &site->kind);
		if (state->b.f.nbytes >= QUEUE_FROM && state->queue == NULL)
			state->queue = MemoryContextAlloc(state->b.context,
											  QUEUE_SIZE * sizeof(BfDigest));
	}

	digest = bf_element_digest(&site->el, &state->b.f.h, PG_GETARG_DATUM(1));
	if (state->queue == NULL)
		bf_add_many(&state->b.f, &digest, 1);
	else
	{
		/* by halves: gcc would copy the struct through the stack and stall */
		state->queue[state->nqueued].h1 = digest.h1;
		state->queue[state->nqueued].h2 = digest.h2;
		state->nqueued++;
		if (state->nqueued == QUEUE_SIZE)
		{
			bf_add_many(&state->b.f, state->queue, QUEUE_SIZE);
			state->nqueued = 0;
		}
	}
	PG_RETURN_POINTER(state);
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
	{
		BfError		err;

		if (PG_ARGISNULL(2))
			ereport(ERROR,
					(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
					 errmsg("capacity must not be null")));
		if (capacity > 0 && capacity < 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("capacity must be a whole number of at least 1, not %g",
							capacity),
					 errhint("A false-positive rate is the third argument: bloom_agg(value, capacity, %g).",
							 capacity)));
		if (bf_header_init(&site->header, &bf_layout_blocked, BF_HASH_XXH3,
						   NULL, 0, 0, fpr, 0, &err) != BF_OK ||
			bf_header_resize(&site->header, capacity, &err) != BF_OK)
			bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
		site->capacity = capacity;
		site->fpr = fpr;
		site->design++;
	}
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
	struct varlena *template;
	Size		nbytes;

	if (PG_ARGISNULL(2))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("template must not be null")));

	template = (struct varlena *) PG_GETARG_POINTER(2);
	nbytes = template_signature(template);
	if (unlikely(site->design == 0 || nbytes == 0 ||
				 nbytes != site->template_nbytes ||
				 memcmp(template, site->template_bytes,
						site->template_ncompared) != 0))
	{
		bf_fetch_header(PG_GETARG_DATUM(2), &site->header);
		if (!bf_is_sized(&site->header))
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("template must have a capacity")));
		site->template_nbytes = nbytes;

		/* of a flat value in memory the header is enough */
		if (VARATT_IS_4B_U(template) || VARATT_IS_SHORT(template))
			nbytes = Min(nbytes, VARHDRSZ + bf_header_size(&site->header));
		site->template_ncompared = nbytes;
		memcpy(site->template_bytes, template, nbytes);
		site->design++;
	}
	/* a template's elements are not taken over, but their kind must agree */
	bf_check_kind(&site->header, &site->el);
	return agg_trans(fcinfo, site);
}

/* ------------------------------------------------------------------------
 * bloom_union_agg, bloom_intersect_agg
 * ------------------------------------------------------------------------
 */
static Datum
merge_trans(FunctionCallInfo fcinfo,
			void (*merge) (BfBuild *b, const BfFilter *from))
{
	MemoryContext context = agg_context(fcinfo);
	BfAggState *state = PG_ARGISNULL(0) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(0);
	BfFilter	f;

	if (PG_ARGISNULL(1))
	{
		if (state == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(state);
	}

	bf_open_value(PG_GETARG_BLOOM(1), &f);
	if (state == NULL)
	{
		state = make_state(context, &f.h);
		bf_build_union(&state->b, &f);
	}
	else
		merge(&state->b, &f);
	PG_RETURN_POINTER(state);
}

Datum
bf_sql_union_agg_trans(PG_FUNCTION_ARGS)
{
	return merge_trans(fcinfo, bf_build_union);
}

Datum
bf_sql_intersect_agg_trans(PG_FUNCTION_ARGS)
{
	return merge_trans(fcinfo, bf_build_intersect);
}

/* ------------------------------------------------------------------------
 * Parallel aggregation
 * ------------------------------------------------------------------------
 */
static Datum
agg_combine(FunctionCallInfo fcinfo,
			void (*merge) (BfBuild *b, const BfFilter *from))
{
	MemoryContext context = agg_context(fcinfo);
	BfAggState *left = PG_ARGISNULL(0) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(0);
	BfAggState *right = PG_ARGISNULL(1) ? NULL :
		(BfAggState *) PG_GETARG_POINTER(1);

	if (right == NULL)
	{
		if (left == NULL)
			PG_RETURN_NULL();
		PG_RETURN_POINTER(left);
	}
	finish_adding(right);
	if (left == NULL)
	{
		left = make_state(context, &right->b.f.h);
		bf_build_union(&left->b, &right->b.f);
	}
	else
	{
		finish_adding(left);
		merge(&left->b, &right->b.f);
	}
	PG_RETURN_POINTER(left);
}

Datum
bf_sql_agg_combine(PG_FUNCTION_ARGS)
{
	return agg_combine(fcinfo, bf_build_union);
}

Datum
bf_sql_intersect_agg_combine(PG_FUNCTION_ARGS)
{
	return agg_combine(fcinfo, bf_build_intersect);
}

/*
 * A state on its way to the leader is a value.
 */
Datum
bf_sql_agg_serial(PG_FUNCTION_ARGS)
{
	BfAggState *state = (BfAggState *) PG_GETARG_POINTER(0);

	(void) agg_context(fcinfo);
	finish_adding(state);
	PG_RETURN_BYTEA_P(bf_build_copy(&state->b));
}

Datum
bf_sql_agg_deserial(PG_FUNCTION_ARGS)
{
	bytea	   *value = PG_GETARG_BYTEA_PP(0);
	BfAggState *state;
	BfFilter	f;
	BfError		err;

	(void) agg_context(fcinfo);
	if (bf_validate((const uint8 *) VARDATA_ANY(value),
					VARSIZE_ANY_EXHDR(value), &f, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_BINARY_REPRESENTATION);
	state = make_state(CurrentMemoryContext, &f.h);
	bf_build_union(&state->b, &f);
	PG_RETURN_POINTER(state);
}

/* ------------------------------------------------------------------------
 * Results
 * ------------------------------------------------------------------------
 */

/*
 * The state is kept as it is: a window aggregate goes on with it.
 */
static Datum
agg_final(FunctionCallInfo fcinfo)
{
	BfAggState *state = (BfAggState *) PG_GETARG_POINTER(0);

	finish_adding(state);
	bf_warn_overfilled(&state->b.f.h);
	PG_RETURN_POINTER(bf_build_copy(&state->b));
}

/*
 * No rows, or only NULLs: an unsized filter, and never NULL, so that
 * NOT (filter @> x) is true.
 */
Datum
bf_sql_agg_final(PG_FUNCTION_ARGS)
{
	(void) agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_POINTER(bf_make_unsized());
	return agg_final(fcinfo);
}

Datum
bf_sql_intersect_agg_final(PG_FUNCTION_ARGS)
{
	(void) agg_context(fcinfo);
	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	return agg_final(fcinfo);
}
