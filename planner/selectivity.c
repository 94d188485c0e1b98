/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *	  How many rows pass filter @> column?
 *
 * Of a constant filter the header tells how many elements it holds and how
 * many strangers it lets pass: min(1, elements / distinct values), plus the
 * false-positive rate of the rest.  That takes the filter's elements for
 * values of the column.  Where the column's statistics have values enough to
 * say otherwise (a filter of something else, or of the common ones) they are
 * probed.
 *
 * Of a filter that the planner does not see, a subquery's or a parameter,
 * BF_UNKNOWN_SELECTIVITY is assumed: who writes such a condition expects it
 * to drop most rows.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_statistic.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bf_sql_contsel);
PG_FUNCTION_INFO_V1(bf_sql_contains_support);

#define BF_UNKNOWN_SELECTIVITY	0.1

/* So many values tell more than a rule. */
#define ENOUGH_VALUES	20

/*
 * The share of a statistics slot's values that the filter contains, weighted
 * by their frequencies if they have any.  *weight is what all of them weigh.
 */
static double
probe_slot(const AttStatsSlot *slot, BfElement *el, const BfFilter *f,
		   double *weight)
{
	double		hit = 0;

	*weight = 0;
	for (int i = 0; i < slot->nvalues; i++)
	{
		double		w = slot->nnumbers > i ? slot->numbers[i] : 1;

		*weight += w;
		if (bf_test(f, bf_element_digest(el, &f->h, slot->values[i])))
			hit += w;
	}
	return hit;
}

/*
 * What the column's statistics say, or -1: the common values one by one, and
 * for the rest the bounds of the histogram as a sample.
 */
static double
probe_statistics(VariableStatData *vardata, const BfFilter *f)
{
	AttStatsSlot slot;
	BfElement	el;
	double		common = 0;
	double		common_hit = 0;
	double		share = -1;

	if (!HeapTupleIsValid(vardata->statsTuple) || !vardata->acl_ok)
		return -1;
	bf_element_init(&el, vardata->atttype, InvalidOid, CurrentMemoryContext);
	if (el.context != NULL || el.kind != f->h.kind)
		return -1;

	if (get_attstatsslot(&slot, vardata->statsTuple, STATISTIC_KIND_MCV,
						 InvalidOid, ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
	{
		common_hit = probe_slot(&slot, &el, f, &common);
		free_attstatsslot(&slot);
	}
	if (get_attstatsslot(&slot, vardata->statsTuple, STATISTIC_KIND_HISTOGRAM,
						 InvalidOid, ATTSTATSSLOT_VALUES))
	{
		double		n;
		double		hit = probe_slot(&slot, &el, f, &n);

		if (n >= ENOUGH_VALUES)
			share = hit / n;
		free_attstatsslot(&slot);
	}
	if (share < 0)
		return common > 0.95 ? common_hit : -1;
	return common_hit + (1 - common) * share;
}

/*
 * The selectivity of a constant filter on a variable.
 */
static double
constant_selectivity(VariableStatData *vardata, Datum filter)
{
	BloomFilter *value = (BloomFilter *) PG_DETOAST_DATUM_PACKED(filter);
	BfFilter	f;
	double		fpr;
	double		nulls = 0;
	double		members;
	double		by_rule;
	double		by_values;
	bool		isdefault;

	bf_open_value(value, &f);
	if (f.h.nset == 0)
		return 0;
	fpr = bf_expected_fpr(&f.h);
	members = Min(1, bf_cardinality(&f.h) /
				  get_variable_numdistinct(vardata, &isdefault));
	by_rule = members + (1 - members) * fpr;
	by_values = probe_statistics(vardata, &f);

	if (HeapTupleIsValid(vardata->statsTuple))
		nulls = ((Form_pg_statistic) GETSTRUCT(vardata->statsTuple))->stanullfrac;
	/* a sample cannot tell shares apart that are smaller than its own */
	if (by_values >= 0 && (by_values > 2 * by_rule || by_values < by_rule / 2))
		by_rule = Max(by_values, fpr);
	CLAMP_PROBABILITY(by_rule);
	return by_rule * (1 - nulls);
}

static double
contains_selectivity(PlannerInfo *root, List *args, int varRelid,
					 int filter_arg)
{
	VariableStatData vardata;
	Node	   *other;
	bool		varonleft;
	double		selectivity = BF_UNKNOWN_SELECTIVITY;

	if (list_length(args) != 2 ||
		!get_restriction_variable(root, args, varRelid, &vardata, &other,
								  &varonleft))
		return selectivity;

	if (IsA(other, Const))
	{
		Const	   *constant = (Const *) other;

		if (constant->constisnull)
			selectivity = 0;
		else if (varonleft == (filter_arg == 1))
			selectivity = constant_selectivity(&vardata, constant->constvalue);
	}
	ReleaseVariableStats(vardata);
	return selectivity;
}

/* Which argument of the function is the filter? */
static int
filter_argument(Oid funcid)
{
	char	   *name = get_func_name(funcid);

	return name != NULL && strcmp(name, "bloom_contained") == 0 ? 1 : 0;
}

/*
 * Restriction estimator of @> and <@.
 */
Datum
bf_sql_contsel(PG_FUNCTION_ARGS)
{
	PlannerInfo *root = (PlannerInfo *) PG_GETARG_POINTER(0);
	Oid			operator = PG_GETARG_OID(1);
	List	   *args = (List *) PG_GETARG_POINTER(2);
	int			varRelid = PG_GETARG_INT32(3);

	PG_RETURN_FLOAT8(contains_selectivity(root, args, varRelid,
										  filter_argument(get_opcode(operator))));
}

/*
 * The same for bloom_contains written as a function.
 */
Datum
bf_sql_contains_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);

	if (IsA(request, SupportRequestSelectivity))
	{
		SupportRequestSelectivity *req = (SupportRequestSelectivity *) request;

		req->selectivity = req->is_join ? BF_UNKNOWN_SELECTIVITY :
			contains_selectivity(req->root, req->args, req->varRelid,
								 filter_argument(req->funcid));
		PG_RETURN_POINTER(req);
	}
	PG_RETURN_POINTER(NULL);
}
