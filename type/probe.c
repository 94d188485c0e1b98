/*-------------------------------------------------------------------------
 *
 * probe.c
 *	  filter @> value, and the same for arrays.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(bf_sql_contains);
PG_FUNCTION_INFO_V1(bf_sql_contained);
PG_FUNCTION_INFO_V1(bf_sql_contains_any);
PG_FUNCTION_INFO_V1(bf_sql_contains_all);
PG_FUNCTION_INFO_V1(bf_sql_contains_each);

/*
 * What a call site keeps from one probe to the next: how values become bytes,
 * and the header of the last filter, parsed.  A filter is known again by its
 * header's bytes, since a pointer says nothing about what is there.
 */
typedef struct BfProbeSite
{
	BfElement	el;
	Size		len;			/* of the last filter's image; 0 = none yet */
	Size		header_size;
	BfHeader	h;
	uint8		header_bytes[BF_MAX_HEADER];
} BfProbeSite;

static void
remember_header(BfProbeSite *site, const uint8 *image, Size len, Datum value)
{
	BfFilter	f;
	BfError		err;

	site->len = 0;
	if (bf_open(image, len, &f, &err) != BF_OK)
		bf_throw(&err, ERRCODE_DATA_CORRUPTED);
	bf_element_become(&site->el, &f.h, value);
	site->header_size = bf_header_size(&f.h);
	memcpy(site->header_bytes, image, site->header_size);
	/* parsed from the copy, where its names stay valid */
	if (bf_open_header(site->header_bytes, site->header_size, len, &site->h,
					   &err) != BF_OK)
		bf_throw(&err, ERRCODE_DATA_CORRUPTED);
	site->len = len;
}

static bool
contains(FunctionCallInfo fcinfo, int filter_arg, int value_arg)
{
	BfProbeSite *site = fcinfo->flinfo->fn_extra;
	Datum		value = PG_GETARG_DATUM(value_arg);
	BloomFilter *filter;
	const uint8 *image;
	Size		len;
	BfDigest	digest;

	if (unlikely(site == NULL))
	{
		site = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(BfProbeSite));
		site->len = 0;
		bf_element_init_arg(&site->el, fcinfo, value_arg);
		fcinfo->flinfo->fn_extra = site;
	}
	if (unlikely(site->el.context != NULL) &&
		(bf_element_resolve(&site->el, value) || site->el.dynamic))
		site->len = 0;			/* its kind may have changed */

	filter = PG_GETARG_BLOOM(filter_arg);
	image = (const uint8 *) VARDATA_ANY(filter);
	len = VARSIZE_ANY_EXHDR(filter);
	if (unlikely(len != site->len ||
				 memcmp(image, site->header_bytes, site->header_size) != 0))
		remember_header(site, image, len, value);

	if (unlikely(site->h.nset == 0))
		return false;
	digest = bf_element_digest(&site->el, &site->h, value);
	if (unlikely(site->h.expansion != 0))
	{
		BfFilter	f;

		f.h = site->h;
		f.bits = (uint8 *) image + site->header_size;
		f.nbytes = len - site->header_size;
		return bf_test_layers(&f, digest);
	}
	return site->h.layout->test(image + site->header_size, &site->h.shape,
								digest);
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
 * Probe with every element of the array in turn: an answer each, and which
 * elements are NULL.  Returns how many there are.
 */
static int
contains_each(FunctionCallInfo fcinfo, ArrayType *array, bool **answers,
			  bool **nulls)
{
	BfElement  *el = bf_element_of_array(fcinfo, array);
	BfFilter	f;
	Datum	   *values;
	int			n;

	bf_open_value(PG_GETARG_BLOOM(0), &f);
	if (el->context == NULL)
		bf_element_become(el, &f.h, (Datum) 0);
	deconstruct_array(array, ARR_ELEMTYPE(array), el->typlen, el->typbyval,
					  el->typalign, &values, nulls, &n);
	*answers = palloc((Size) Max(n, 1) * sizeof(bool));
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		(*answers)[i] = false;
		if ((*nulls)[i])
			continue;
		if (el->context != NULL)
		{
			bf_element_resolve(el, values[i]);
			bf_element_become(el, &f.h, values[i]);
		}
		(*answers)[i] = bf_test(&f, bf_element_digest(el, &f.h, values[i]));
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
