/*-------------------------------------------------------------------------
 *
 * functions.c
 *	  bloom_index_contains and its like: asking an index.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/builtins.h"
#include "utils/relcache.h"

PG_FUNCTION_INFO_V1(bf_sql_index_contains);
PG_FUNCTION_INFO_V1(bf_sql_index_contains_each);
PG_FUNCTION_INFO_V1(bf_sql_index_partitions);

/*
 * May a leaf have the value?  The site's element is one of the index's kind.
 */
static bool
leaf_contains(BfIndexSite *site, const BfIndexLeaf *leaf, Datum value)
{
	BfHeader   *h = &site->h;
	Relation	index;
	bool		answer;

	if (leaf->unknown)
		return true;
	h->hash = leaf->hash;
	index = RelationIdGetRelation(leaf->index);
	if (unlikely(!RelationIsValid(index)))
		elog(ERROR, "could not open relation with OID %u", leaf->index);
	pgstat_count_index_scan(index);
	answer = bf_index_test(index, bf_element_digest(&site->el, h, value));
	RelationClose(index);
	return answer;
}

static bool
contains(BfIndexSite *site, Datum value)
{
	if (unlikely(site->el.context != NULL))
		bf_element_resolve(&site->el, value);
	bf_element_become(&site->el, &site->h, value);
	for (int i = 0; i < site->nleaves; i++)
	{
		if (i % 64 == 63)
			CHECK_FOR_INTERRUPTS();
		if (leaf_contains(site, &site->leaves[i], value))
			return true;
	}
	return false;
}

/*
 * bloom_index_contains(index, value): false if no row has the value.
 */
Datum
bf_sql_index_contains(PG_FUNCTION_ARGS)
{
	BfIndexSite *site = bf_index_site(fcinfo);

	if (unlikely(site->el.parent == NULL))
		bf_element_init_arg(&site->el, fcinfo, 1);
	bf_index_site_use(site, PG_GETARG_OID(0));
	PG_RETURN_BOOL(contains(site, PG_GETARG_DATUM(1)));
}

/*
 * bloom_index_contains_each(index, array): an array of answers of the same
 * shape.
 */
Datum
bf_sql_index_contains_each(PG_FUNCTION_ARGS)
{
	BfIndexSite *site = bf_index_site(fcinfo);
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(1);
	Datum	   *values;
	bool	   *nulls;
	int			n;

	bf_element_of_array(&site->el, array, fcinfo);
	bf_index_site_use(site, PG_GETARG_OID(0));
	/* of another kind is an error, even if no element is there to tell */
	bf_element_become(&site->el, &site->h, (Datum) 0);
	deconstruct_array(array, ARR_ELEMTYPE(array), site->el.typlen,
					  site->el.typbyval, site->el.typalign, &values, &nulls, &n);
	if (n == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(BOOLOID));
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!nulls[i])
			values[i] = BoolGetDatum(contains(site, values[i]));
	}
	PG_RETURN_ARRAYTYPE_P(construct_md_array(values, nulls, ARR_NDIM(array),
											 ARR_DIMS(array), ARR_LBOUND(array),
											 BOOLOID, sizeof(bool), true,
											 TYPALIGN_CHAR));
}

/*
 * bloom_index_partitions(index, value): the tables that may have the value.
 */
Datum
bf_sql_index_partitions(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	BfIndexSite *site = bf_index_site(fcinfo);
	Datum		value = PG_GETARG_DATUM(1);

	InitMaterializedSRF(fcinfo, MAT_SRF_USE_EXPECTED_DESC);
	if (site->el.parent == NULL)
		bf_element_init_arg(&site->el, fcinfo, 1);
	bf_index_site_use(site, PG_GETARG_OID(0));
	if (site->el.context != NULL)
		bf_element_resolve(&site->el, value);
	bf_element_become(&site->el, &site->h, value);
	for (int i = 0; i < site->nleaves; i++)
	{
		Datum		table = ObjectIdGetDatum(site->leaves[i].table);
		bool		isnull = false;

		CHECK_FOR_INTERRUPTS();
		if (leaf_contains(site, &site->leaves[i], value))
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, &table,
								 &isnull);
	}
	return (Datum) 0;
}
