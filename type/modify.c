/*-------------------------------------------------------------------------
 *
 * modify.c
 *	  Adding elements, combining and comparing filters.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "common/hashfn.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bf_sql_add);
PG_FUNCTION_INFO_V1(bf_sql_add_all);
PG_FUNCTION_INFO_V1(bf_sql_union);
PG_FUNCTION_INFO_V1(bf_sql_intersect);
PG_FUNCTION_INFO_V1(bf_sql_compatible);
PG_FUNCTION_INFO_V1(bf_sql_eq);
PG_FUNCTION_INFO_V1(bf_sql_ne);
PG_FUNCTION_INFO_V1(bf_sql_hash_value);
PG_FUNCTION_INFO_V1(bf_sql_hash_value_extended);

static void
check_can_add(const BfHeader *h)
{
	if (!bf_is_sized(h))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot add to a filter without a capacity"),
				 errhint("Start from a sized filter, as in: bloomfilter(1000000), or unite with one that an aggregate builds: filter | bloom_agg(value, capacity).")));
}

/*
 * What a call site keeps: how values become bytes.
 */
static BfElement *
element_of_site(FunctionCallInfo fcinfo)
{
	BfElement  *el = fcinfo->flinfo->fn_extra;

	if (unlikely(el == NULL))
	{
		el = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(BfElement));
		bf_element_init_arg(el, fcinfo, 1);
		fcinfo->flinfo->fn_extra = el;
	}
	return el;
}

/*
 * Add one element to the build, which starts out as the filter from.
 */
static void
add_element(BfBuild *b, BfElement *el, Datum value)
{
	bf_element_resolve(el, value);
	bf_element_become(el, &b->f.h, value);
	if (b->f.bits == NULL)
	{
		BfHeader	kind;

		bf_check_key(&b->f.h, el);
		bf_kind_of_element(el, &kind);
		bf_build_start(b, &kind);
	}
	bf_add(&b->f, bf_element_digest(el, &b->f.h, value));
}

/*
 * bloom_add(filter, value): NULL values add nothing, and an element that is
 * there already gives back the filter itself.
 */
Datum
bf_sql_add(PG_FUNCTION_ARGS)
{
	BfElement  *el;
	BfFilter	f;
	BfBuild		b;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	el = element_of_site(fcinfo);
	bf_open_value(PG_GETARG_BLOOM(0), &f);
	check_can_add(&f.h);
	bf_element_resolve(el, PG_GETARG_DATUM(1));
	bf_element_become(el, &f.h, PG_GETARG_DATUM(1));
	if (bf_test(&f, bf_element_digest(el, &f.h, PG_GETARG_DATUM(1))))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	bf_build_from(&b, &f, CurrentMemoryContext);
	add_element(&b, el, PG_GETARG_DATUM(1));
	bf_warn_overfilled(&b.f.h);
	PG_RETURN_POINTER(bf_build_result(&b));
}

/*
 * bloom_add_all(filter, array): NULL elements are skipped.
 */
Datum
bf_sql_add_all(PG_FUNCTION_ARGS)
{
	ArrayType  *array;
	BfElement  *el;
	BfFilter	f;
	BfBuild		b;
	Datum	   *values;
	bool	   *nulls;
	int			n;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	array = PG_GETARG_ARRAYTYPE_P(1);
	el = bf_element_of_array(fcinfo, array);
	bf_open_value(PG_GETARG_BLOOM(0), &f);
	check_can_add(&f.h);
	deconstruct_array(array, ARR_ELEMTYPE(array), el->typlen, el->typbyval,
					  el->typalign, &values, &nulls, &n);

	bf_build_from(&b, &f, CurrentMemoryContext);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!nulls[i])
			add_element(&b, el, values[i]);
	}
	if (b.f.h.nset == f.h.nset)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	bf_warn_overfilled(&b.f.h);
	PG_RETURN_POINTER(bf_build_result(&b));
}

/* filter | filter */
Datum
bf_sql_union(PG_FUNCTION_ARGS)
{
	BfFilter	left;
	BfFilter	right;
	BfBuild		b;

	bf_open_value(PG_GETARG_BLOOM(0), &left);
	bf_open_value(PG_GETARG_BLOOM(1), &right);
	bf_check_combinable(&left.h, &right.h);
	bf_build_from(&b, &left, CurrentMemoryContext);
	bf_build_union(&b, &right);
	bf_warn_overfilled(&b.f.h);
	PG_RETURN_POINTER(bf_build_result(&b));
}

/* filter & filter */
Datum
bf_sql_intersect(PG_FUNCTION_ARGS)
{
	BfFilter	left;
	BfFilter	right;
	BfBuild		b;

	bf_open_value(PG_GETARG_BLOOM(0), &left);
	bf_open_value(PG_GETARG_BLOOM(1), &right);
	bf_check_combinable(&left.h, &right.h);
	bf_build_from(&b, &left, CurrentMemoryContext);
	bf_build_intersect(&b, &right);
	PG_RETURN_POINTER(bf_build_result(&b));
}

/* bloom_compatible(filter, filter): could the two be combined? */
Datum
bf_sql_compatible(PG_FUNCTION_ARGS)
{
	BfHeader	left;
	BfHeader	right;

	bf_fetch_header(PG_GETARG_DATUM(0), &left);
	bf_fetch_header(PG_GETARG_DATUM(1), &right);
	PG_RETURN_BOOL(bf_combinable(&left, &right));
}

/*
 * Equal parameters and equal bits are equal bytes.
 */
static bool
same_filter(FunctionCallInfo fcinfo)
{
	BfHeader	left;
	BfHeader	right;
	BloomFilter *a;
	BloomFilter *b;

	/* the headers, checksums included, tell most filters apart */
	bf_fetch_header(PG_GETARG_DATUM(0), &left);
	bf_fetch_header(PG_GETARG_DATUM(1), &right);
	if (left.checksum != right.checksum ||
		bf_image_size(&left) != bf_image_size(&right))
		return false;

	a = PG_GETARG_BLOOM(0);
	b = PG_GETARG_BLOOM(1);
	return memcmp(VARDATA_ANY(a), VARDATA_ANY(b), VARSIZE_ANY_EXHDR(a)) == 0;
}

Datum
bf_sql_eq(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(same_filter(fcinfo));
}

Datum
bf_sql_ne(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(!same_filter(fcinfo));
}

/*
 * The header stands for the whole: it has the payload's checksum.
 */
static uint8 *
header_bytes(Datum value, int *len)
{
	BfHeader	h;
	uint8	   *bytes = palloc(BF_MAX_HEADER);

	bf_fetch_header(value, &h);
	bf_write_header(&h, bytes);
	*len = bf_header_size(&h);
	return bytes;
}

Datum
bf_sql_hash_value(PG_FUNCTION_ARGS)
{
	int			len;
	uint8	   *bytes = header_bytes(PG_GETARG_DATUM(0), &len);

	return hash_any(bytes, len);
}

Datum
bf_sql_hash_value_extended(PG_FUNCTION_ARGS)
{
	int			len;
	uint8	   *bytes = header_bytes(PG_GETARG_DATUM(0), &len);

	return hash_any_extended(bytes, len, PG_GETARG_INT64(1));
}
