/*-------------------------------------------------------------------------
 *
 * modify.c
 *	  Adding elements, combining and comparing filters.
 *
 *-------------------------------------------------------------------------
 */
#include "type/expanded.h"

#include "common/hashfn.h"
#include "miscadmin.h"

PG_FUNCTION_INFO_V1(bf_sql_add);
PG_FUNCTION_INFO_V1(bf_sql_add_all);
PG_FUNCTION_INFO_V1(bf_sql_remove);
PG_FUNCTION_INFO_V1(bf_sql_to_standard);
PG_FUNCTION_INFO_V1(bf_sql_union);
PG_FUNCTION_INFO_V1(bf_sql_intersect);
PG_FUNCTION_INFO_V1(bf_sql_compatible);
PG_FUNCTION_INFO_V1(bf_sql_eq);
PG_FUNCTION_INFO_V1(bf_sql_ne);
PG_FUNCTION_INFO_V1(bf_sql_lt);
PG_FUNCTION_INFO_V1(bf_sql_le);
PG_FUNCTION_INFO_V1(bf_sql_gt);
PG_FUNCTION_INFO_V1(bf_sql_ge);
PG_FUNCTION_INFO_V1(bf_sql_cmp);
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
 * Begin to change a copy of a filter that has a capacity.  Memory will come
 * from the current context.
 */
void
bf_change_start(BfChange *c, const BfFilter *f)
{
	c->growing = f->h.expansion != 0;
	if (c->growing)
	{
		bf_grow_init(&c->g, &f->h, CurrentMemoryContext);
		bf_grow_append(&c->g, f);
	}
	else
		bf_build_from(&c->b, f, CurrentMemoryContext);
}

static BfHeader *
header_of(BfChange *c)
{
	return c->growing ? &c->g.h : &c->b.f.h;
}

/*
 * The changed filter, in the current context; there may be a WARNING that it
 * is overfilled.
 */
Datum
bf_change_result(BfChange *c)
{
	BloomFilter *result;
	BfFilter	f;

	if (c->growing)
		result = bf_grow_result(&c->g);
	else
	{
		bf_build_trim(&c->b);
		result = bf_build_result(&c->b);
	}
	bf_open_value(result, &f);
	bf_warn_overfilled(&f.h);
	return PointerGetDatum(result);
}

/*
 * Add one element.  False where that changes nothing.
 */
bool
bf_change_add(BfChange *c, BfElement *el, Datum value)
{
	BfHeader   *h = header_of(c);
	BfHeader	kind;
	BfDigest	digest;
	BfError		err;
	uint64		before;

	bf_element_resolve(el, value);
	bf_element_become(el, h, value);
	bf_check_key(h, el);
	bf_kind_of_element(el, &kind);
	digest = bf_element_digest(el, h, value);
	if (c->growing)
		return bf_grow_add(&c->g, &kind, digest);

	if (c->b.f.bits == NULL)
		bf_build_start(&c->b, &kind);
	before = h->nset;
	bf_must(bf_add(&c->b.f, digest, &err), &err);
	return h->layout->multiset || h->nset != before;
}

/*
 * bloom_add(filter, value): NULL values add nothing, and an element that is
 * there already gives back the filter itself, unless copies count.
 */
Datum
bf_sql_add(PG_FUNCTION_ARGS)
{
	BfElement  *el;
	BfHandle   *handle;
	BfFilter	f;
	BfChange	c;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(bf_handle_again(PG_GETARG_DATUM(0)));

	if (bf_stored_has(fcinfo))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	el = bf_element_of_probe(fcinfo);
	handle = bf_get_handle(PG_GETARG_DATUM(0));
	if (handle != NULL)
	{
		const BfHeader *h = bf_handle_header(handle);

		bf_element_resolve(el, PG_GETARG_DATUM(1));
		bf_element_become(el, h, PG_GETARG_DATUM(1));
		PG_RETURN_DATUM(bf_handle_add(PG_GETARG_DATUM(0),
									  bf_element_digest(el, h, PG_GETARG_DATUM(1))));
	}

	bf_open_value(PG_GETARG_BLOOM(0), &f);
	check_can_add(&f.h);
	if (!f.h.layout->multiset)
	{
		/* most often this spares a copy */
		bf_element_resolve(el, PG_GETARG_DATUM(1));
		bf_element_become(el, &f.h, PG_GETARG_DATUM(1));
		if (bf_test(&f, bf_element_digest(el, &f.h, PG_GETARG_DATUM(1))))
			PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	}
	if (bf_can_expand(&f))
	{
		BfHeader	kind;

		bf_element_resolve(el, PG_GETARG_DATUM(1));
		bf_element_become(el, &f.h, PG_GETARG_DATUM(1));
		bf_check_key(&f.h, el);
		bf_kind_of_element(el, &kind);
		PG_RETURN_DATUM(bf_handle_add(bf_expand(&f, &kind),
									  bf_element_digest(el, &f.h,
														PG_GETARG_DATUM(1))));
	}

	bf_change_start(&c, &f);
	(void) bf_change_add(&c, el, PG_GETARG_DATUM(1));
	PG_RETURN_DATUM(bf_change_result(&c));
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
	BfChange	c;
	Datum	   *values;
	bool	   *nulls;
	bool		changed = false;
	int			n;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	array = PG_GETARG_ARRAYTYPE_P(1);
	el = fcinfo->flinfo->fn_extra;
	if (el == NULL)
	{
		el = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(BfElement));
		fcinfo->flinfo->fn_extra = el;
	}
	(void) bf_element_of_array(el, array, fcinfo);
	bf_open_value(PG_GETARG_BLOOM(0), &f);
	deconstruct_array(array, ARR_ELEMTYPE(array), el->typlen, el->typbyval,
					  el->typalign, &values, &nulls, &n);
	if (n == 0)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	check_can_add(&f.h);
	bf_change_start(&c, &f);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!nulls[i])
			changed |= bf_change_add(&c, el, values[i]);
	}
	if (!changed)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_DATUM(bf_change_result(&c));
}

/*
 * bloom_remove(filter, value): one copy less.  What is certainly not there,
 * and what a scalable filter seems to have in several layers, changes
 * nothing.
 */
Datum
bf_sql_remove(PG_FUNCTION_ARGS)
{
	BfElement  *el;
	BfFilter	f;
	BfChange	c;
	BfDigest	digest;
	bool		removed;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	if (PG_ARGISNULL(1))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	el = bf_element_of_site(fcinfo, 1);
	bf_open_value(PG_GETARG_BLOOM(0), &f);
	if (f.h.layout->remove == NULL && bf_is_sized(&f.h))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("layout %s cannot remove elements", f.h.layout->name),
				 errhint("Build the filter with layout => 'cuckoo' or layout => 'counting', or anew without the element.")));
	bf_element_resolve(el, PG_GETARG_DATUM(1));
	bf_element_become(el, &f.h, PG_GETARG_DATUM(1));
	digest = bf_element_digest(el, &f.h, PG_GETARG_DATUM(1));
	if (!bf_test(&f, digest))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));

	bf_change_start(&c, &f);
	removed = c.growing ? bf_grow_remove(&c.g, digest) :
		bf_remove(&c.b.f, digest);
	if (!removed)
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	PG_RETURN_DATUM(bf_change_result(&c));
}

/* filter | filter */
Datum
bf_sql_union(PG_FUNCTION_ARGS)
{
	BloomFilter *a = PG_GETARG_BLOOM(0);
	BloomFilter *b = PG_GETARG_BLOOM(1);
	BfFilter	left;
	BfFilter	right;
	BfChange	c;

	bf_open_value(a, &left);
	bf_open_value(b, &right);
	bf_check_combinable(&left.h, &right.h);
	if (!bf_is_sized(&right.h))
		PG_RETURN_DATUM(PG_GETARG_DATUM(0));
	if (!bf_is_sized(&left.h))
		PG_RETURN_DATUM(PG_GETARG_DATUM(1));

	bf_change_start(&c, &left);
	if (!c.growing)
		bf_build_union(&c.b, &right);
	else
	{
		/* the layers of one filter twice would only add to the rate */
		if (left.h.layout->multiset || left.h.checksum != right.h.checksum)
			bf_grow_append(&c.g, &right);
		bf_merge_design(&c.g.h, &right.h);
	}
	PG_RETURN_DATUM(bf_change_result(&c));
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
	bf_check_intersectable(&left.h);
	bf_check_intersectable(&right.h);
	bf_build_from(&b, &left, CurrentMemoryContext);
	bf_build_intersect(&b, &right);
	PG_RETURN_POINTER(bf_build_result(&b));
}

/*
 * bloom_to_standard(filter): the plain filter of a counting filter's counters
 * that are not 0.
 */
Datum
bf_sql_to_standard(PG_FUNCTION_ARGS)
{
	BfFilter	f;
	BfHeader	h;
	BfBuild		b;

	bf_open_value(PG_GETARG_BLOOM(0), &f);
	if (f.h.layout->id != BF_COUNTING)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("layout %s cannot be turned into a standard filter",
						f.h.layout->name),
				 errhint("Only a counting filter has a standard filter's positions.")));
	h = f.h;
	h.layout = &bf_layout_standard;
	h.shape.nbits /= 4;
	bf_build_init(&b, &h, CurrentMemoryContext, false);
	if (f.bits != NULL)
	{
		bf_build_start(&b, &f.h);
		bf_counting_to_bits(f.bits, &f.h.shape, b.f.bits);
		bf_recount(&b.f);
	}
	PG_RETURN_POINTER(bf_build_result(&b));
}

/* bloom_compatible(filter, filter): could the two be combined? */
Datum
bf_sql_compatible(PG_FUNCTION_ARGS)
{
	BfHeader	left;
	BfHeader	right;

	bf_peek_header(PG_GETARG_DATUM(0), &left);
	bf_peek_header(PG_GETARG_DATUM(1), &right);
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
 * The order of the images' bytes.  It means nothing, but without one there is
 * no bloom_agg(DISTINCT value, template): the server sorts by all arguments.
 */
static int
compare(FunctionCallInfo fcinfo)
{
	BloomFilter *a = PG_GETARG_BLOOM(0);
	BloomFilter *b = PG_GETARG_BLOOM(1);
	Size		alen = VARSIZE_ANY_EXHDR(a);
	Size		blen = VARSIZE_ANY_EXHDR(b);
	int			cmp = memcmp(VARDATA_ANY(a), VARDATA_ANY(b), Min(alen, blen));

	if (cmp == 0 && alen != blen)
		cmp = alen < blen ? -1 : 1;
	/* a sort of stored filters would keep all of them */
	PG_FREE_IF_COPY(a, 0);
	PG_FREE_IF_COPY(b, 1);
	return cmp;
}

Datum
bf_sql_lt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) < 0);
}

Datum
bf_sql_le(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) <= 0);
}

Datum
bf_sql_gt(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) > 0);
}

Datum
bf_sql_ge(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(compare(fcinfo) >= 0);
}

Datum
bf_sql_cmp(PG_FUNCTION_ARGS)
{
	PG_RETURN_INT32(compare(fcinfo));
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
