/*-------------------------------------------------------------------------
 *
 * selectivity.c
 *	  How many rows pass filter @> column?
 *
 * Of a constant filter the header tells how many elements it holds and how
 * many strangers it lets pass.  Common values of the column are probed one by
 * one.  Of the others at most elements / distinct values are contained, if
 * all elements are values of the column; none, if none is; and the
 * false-positive rate's share of the rest passes.  Which it is, of these two
 * or what lies between, is weighed by the bounds of the column's histogram: a
 * sample of its values, of about a hundred, so it cannot tell small shares
 * apart.  Where all integers between the bounds occur, any of them will do.
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
#include "catalog/pg_type.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/selfuncs.h"
#include "utils/syscache.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bf_sql_contsel);
PG_FUNCTION_INFO_V1(bf_sql_contains_support);

#define BF_UNKNOWN_SELECTIVITY	0.1

/* So many values tell more than a rule. */
#define ENOUGH_VALUES	20

/* How many integers are tried of a column that has them all. */
#define TRIED_INTEGERS	1000

/* The share of a column's values without gaps that counts as all of them. */
#define WITHOUT_GAPS	0.9

/*
 * What is known of the values that are not common: so many were probed, so
 * many were contained.
 */
typedef struct BfSample
{
	double		n;
	double		hits;
} BfSample;

static bool
probe(const BfFilter *f, BfElement *el, Datum value)
{
	return bf_test(f, bf_element_digest(el, &f->h, value));
}

/*
 * Can values of the column be probed without an error?
 */
static bool
is_comparable(const VariableStatData *vardata, BfElement *el, const BfFilter *f)
{
	BfHeader	mine;

	if (!HeapTupleIsValid(vardata->statsTuple) || !vardata->acl_ok)
		return false;
	bf_element_init(el, vardata->atttype, InvalidOid, CurrentMemoryContext);
	bf_kind_of_element(el, &mine);
	return !el->dynamic && bf_same_kind(&mine, &f->h);
}

static int64
integer_of(Oid type, Datum value)
{
	return type == INT2OID ? DatumGetInt16(value) :
		type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

static Datum
datum_of(Oid type, int64 value)
{
	return type == INT2OID ? Int16GetDatum((int16) value) :
		type == INT4OID ? Int32GetDatum((int32) value) : Int64GetDatum(value);
}

/*
 * A histogram's bounds are evenly spaced, and so may a filter's elements be:
 * of the even numbers either all bounds are elements or none.  If the column
 * has about all numbers between its bounds, or all multiples of something,
 * try numbers at random.  False if it has not.
 */
static bool
try_integers(const AttStatsSlot *slot, Oid type, double ndistinct,
			 BfElement *el, const BfFilter *f, BfSample *sample)
{
	int64		first;
	uint64		step = 0;
	double		cells;

	if ((type != INT2OID && type != INT4OID && type != INT8OID) ||
		slot->nvalues < 2)
		return false;
	first = integer_of(type, slot->values[0]);
	for (int i = 1; i < slot->nvalues; i++)
	{
		uint64		rest = (uint64) integer_of(type, slot->values[i]) - (uint64) first;

		while (rest != 0)		/* the greatest common divisor */
		{
			uint64		remainder = step % rest;

			step = rest;
			rest = remainder;
		}
	}
	if (step == 0)
		return false;
	cells = ((double) integer_of(type, slot->values[slot->nvalues - 1]) -
			 (double) first) / step + 1;
	if (ndistinct < cells * WITHOUT_GAPS)
		return false;

	sample->n = TRIED_INTEGERS;
	sample->hits = 0;
	for (int i = 0; i < TRIED_INTEGERS; i++)
	{
		int			bucket = i % (slot->nvalues - 1);
		uint64		low = (uint64) integer_of(type, slot->values[bucket]);
		uint64		high = (uint64) integer_of(type, slot->values[bucket + 1]);
		uint64		random = (uint64) (i + 1) * UINT64CONST(0x9E3779B97F4A7C15);

		random = (random ^ (random >> 29)) * UINT64CONST(0xBF58476D1CE4E5B9);
		random ^= random >> 32;
		if (probe(f, el, datum_of(type, (int64) (low + random % ((high - low) / step + 1) * step))))
			sample->hits++;
	}
	return true;
}

/*
 * The share of the values of which sample is one: rule, if the filter's
 * elements are among them, fpr, if none is, or something between.  Each is
 * weighed by how likely it makes the sample.
 */
static double
weigh(const BfSample *sample, double fpr, double rule)
{
	double		share[3];
	double		likely[3];
	double		most;
	double		sum = 0;
	double		mean = 0;

	if (sample->n < ENOUGH_VALUES || rule <= fpr)
		return rule;
	share[0] = rule;
	share[1] = fpr;
	share[2] = Min(Max(sample->hits / sample->n, fpr), rule);
	for (int i = 0; i < 3; i++)
	{
		share[i] = Min(Max(share[i], 1e-9), 1 - 1e-9);
		likely[i] = sample->hits * log(share[i]) +
			(sample->n - sample->hits) * log(1 - share[i]);
	}
	/* most filters are built from values that the column has */
	likely[0] += log(10);
	/* the third is the best of many: as likely as these are on average */
	likely[2] += Min(0, log(sqrt(2 * M_PI * share[2] * (1 - share[2]) / sample->n) /
							(rule - fpr)));

	most = Max(likely[0], Max(likely[1], likely[2]));
	for (int i = 0; i < 3; i++)
	{
		double		weight = exp(likely[i] - most);

		sum += weight;
		mean += weight * log(share[i]);
	}
	return exp(mean / sum);
}

/*
 * The selectivity of a constant filter on a variable.
 */
static double
constant_selectivity(VariableStatData *vardata, Datum filter)
{
	BloomFilter *value = (BloomFilter *) PG_DETOAST_DATUM_PACKED(filter);
	BfFilter	f;
	BfElement	el;
	AttStatsSlot slot;
	BfSample	sample = {0, 0};
	double		fpr;
	double		elements;
	double		ndistinct;
	double		common = 0;		/* how many rows the common values are */
	double		common_hit = 0; /* and those of them that pass */
	double		nulls = 0;
	double		members;
	double		selectivity;
	bool		isdefault;

	bf_open_value(value, &f);
	if (f.h.nset == 0)
		return 0;
	fpr = bf_expected_fpr(&f.h);
	elements = bf_cardinality(&f.h);
	ndistinct = get_variable_numdistinct(vardata, &isdefault);

	if (HeapTupleIsValid(vardata->statsTuple))
		nulls = ((Form_pg_statistic) GETSTRUCT(vardata->statsTuple))->stanullfrac;
	if (is_comparable(vardata, &el, &f))
	{
		if (get_attstatsslot(&slot, vardata->statsTuple, STATISTIC_KIND_MCV,
							 InvalidOid,
							 ATTSTATSSLOT_VALUES | ATTSTATSSLOT_NUMBERS))
		{
			for (int i = 0; i < slot.nvalues && i < slot.nnumbers; i++)
			{
				common += slot.numbers[i];
				ndistinct--;
				if (!probe(&f, &el, slot.values[i]))
					continue;
				common_hit += slot.numbers[i];
				elements--;
			}
			free_attstatsslot(&slot);
		}
		if (get_attstatsslot(&slot, vardata->statsTuple,
							 STATISTIC_KIND_HISTOGRAM, InvalidOid,
							 ATTSTATSSLOT_VALUES))
		{
			if (!try_integers(&slot, getBaseType(vardata->atttype), ndistinct,
							  &el, &f, &sample))
			{
				sample.n = slot.nvalues;
				for (int i = 0; i < slot.nvalues; i++)
					if (probe(&f, &el, slot.values[i]))
						sample.hits++;
			}
			free_attstatsslot(&slot);
		}
	}

	members = Min(1, Max(elements, 0) / Max(ndistinct, 1));
	if (isdefault)
		members = Min(members, BF_UNKNOWN_SELECTIVITY);
	selectivity = common_hit + Max(1 - common - nulls, 0) *
		weigh(&sample, fpr, members + (1 - members) * fpr);
	CLAMP_PROBABILITY(selectivity);
	return selectivity;
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
