/*-------------------------------------------------------------------------
 *
 * joinplan.c
 *	  Which hash joins get a filter, and where it is probed.
 *
 * A hash join that drops unmatched outer rows drops them late: they have been
 * sorted, grouped, joined with other tables, hashed and perhaps written to a
 * file.  A filter of the inner side's keys drops most of them where they are
 * read.  This file takes a finished plan and adds such filters.
 *
 * Dropping a row early is safe if nobody can tell.  That is so as long as
 *
 *	- the row could not have matched: the filter has all keys of the inner
 *	  side.  Nothing is dropped before the inner side has been read to its
 *	  end.
 *
 *	- the inner side is the same whenever it is read again.  Nodes of the
 *	  outer side (Sort, Material, Hash, ...) keep what they have read over a
 *	  rescan if their own parameters have not changed, and do not know of
 *	  ours.  So a filter is built once, and only of an inner side that no
 *	  parameter can change, that has no volatile function, and that is not
 *	  rescanned if it depends on the order in which workers run.
 *
 *	- no node between the scan and the join lets an unmatched row influence
 *	  matched ones: step_down() knows the nodes that do not.
 *
 *	- nothing that may fail is computed of a group that has lost some of its
 *	  rows only: see group_matters().
 *
 *	- nothing on the outer side has side effects: with fewer rows parts of it
 *	  may run less often, or not at all, and the search for a first row that
 *	  passes may go further.
 *
 *-------------------------------------------------------------------------
 */
#include "planner/joinfilter.h"

#include "access/stratnum.h"
#include "access/table.h"
#include "access/tsmapi.h"
#include "catalog/pg_am.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/optimizer.h"
#include "optimizer/planner.h"
#include "parser/parsetree.h"
#include "port/atomics.h"
#include "utils/catcache.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

#include <math.h>

#if PG_VERSION_NUM < 160000
#define JOIN_RIGHT_ANTI	JOIN_UNIQUE_OUTER	/* never in a plan */
#endif
#if PG_VERSION_NUM < 180000
#define JOIN_RIGHT_SEMI	JOIN_UNIQUE_INNER	/* never in a plan */
#endif

/*
 * Costs in nanoseconds a row, as bench/joinfilter.py sees them.  They decide
 * which joins are tried; what a probe really drops decides whether it stays.
 */
#define COST_BUILD			12.0
#define COST_BUILD_SLOW		40.0	/* by a hash function of the type's own */
#define COST_PROBE			6.0
#define COST_PROBE_SLOW		30.0
#define SAVED_JOIN			40.0	/* a look into the hash table */
#define SAVED_SPILL			250.0	/* write a row to a file and read it */
#define SAVED_SORT			250.0
#define SAVED_AGG			80.0
#define SAVED_OTHER			15.0

/* Below so many rows to probe it is not worth the planner's time. */
#define MIN_PROBED_ROWS		5000.0

/* If more rows than this are expected to pass, there is no filter. */
#define MAX_EXPECTED_PASS	0.8

bool		bf_join_filter = false;
bool		bf_join_filter_force = false;

static planner_hook_type previous_planner = NULL;

/* The plan at work. */
typedef struct PlanContext
{
	PlannedStmt *stmt;
	int			next_node_id;
	int			nfilters;
	List	   *probes;			/* of CustomScan */

	/*
	 * Parameters that cannot change the result of a node while the plan runs:
	 * those of InitPlans that depend on nothing else, and the executor's own
	 * signals for a rescan of a Gather and for EvalPlanQual.
	 */
	Bitmapset  *fixed_params;

	/* Of InitPlans with side effects, which run when they are first used. */
	Bitmapset  *volatile_params;
} PlanContext;

/* Where in the plan we are. */
typedef struct Position
{
	PlanContext *cx;
	bool		rescanned;		/* perhaps */
	bool		in_gather;
} Position;

/* A filter that is being placed. */
typedef struct Placement
{
	BfJoinSpec *spec;			/* with keys of the outer side */
	Oid		   *operators;		/* the join's, one a key */
	double		pass;			/* the part of the rows expected to pass */
	bool		late;			/* the outer side's first row is read before the
								 * filter is there, */
	bool		parallel;		/* but with a Parallel Hash only if the plan runs
								 * without parallelism */
} Placement;

/* ------------------------------------------------------------------------
 * Specifications as lists of a plan
 * ------------------------------------------------------------------------
 */
BfJoinSpec *
bf_make_join_spec(int nkeys)
{
	BfJoinSpec *spec = palloc0(offsetof(BfJoinSpec, keys) + nkeys * sizeof(BfJoinKey));

	spec->nkeys = nkeys;
	return spec;
}

List *
bf_write_join_spec(const BfJoinSpec *spec)
{
	List	   *numbers = list_make5_int(spec->param, spec->number, spec->log2_words,
										 spec->shared, spec->min_drop);
	List	   *oids = NIL;

	for (int i = 0; i < spec->nkeys; i++)
	{
		numbers = lappend_int(numbers, spec->keys[i].attno);
		numbers = lappend_int(numbers, spec->keys[i].hash);
		oids = lappend_oid(oids, spec->keys[i].function);
		oids = lappend_oid(oids, spec->keys[i].collation);
	}
	return list_make2(numbers, oids);
}

BfJoinSpec *
bf_read_join_spec(const List *list)
{
	List	   *numbers = linitial(list);
	List	   *oids = lsecond(list);
	BfJoinSpec *spec = bf_make_join_spec(list_length(oids) / 2);

	spec->param = list_nth_int(numbers, 0);
	spec->number = list_nth_int(numbers, 1);
	spec->log2_words = list_nth_int(numbers, 2);
	spec->shared = list_nth_int(numbers, 3);
	spec->min_drop = list_nth_int(numbers, 4);
	for (int i = 0; i < spec->nkeys; i++)
	{
		spec->keys[i].attno = list_nth_int(numbers, 5 + 2 * i);
		spec->keys[i].hash = list_nth_int(numbers, 6 + 2 * i);
		spec->keys[i].function = list_nth_oid(oids, 2 * i);
		spec->keys[i].collation = list_nth_oid(oids, 2 * i + 1);
	}
	return spec;
}

/* ------------------------------------------------------------------------
 * Walking a plan
 * ------------------------------------------------------------------------
 */
typedef bool (*child_walker) (Plan **child, void *context);

static bool
walk_list(List *plans, child_walker walker, void *context)
{
	ListCell   *lc;

	foreach(lc, plans)
	{
		if (walker((Plan **) &lfirst(lc), context))
			return true;
	}
	return false;
}

/*
 * Call walker on every child of the node, except on the plans of SubPlans,
 * until it returns true.
 */
static bool
walk_children(Plan *plan, child_walker walker, void *context)
{
	if (plan->lefttree != NULL && walker(&plan->lefttree, context))
		return true;
	if (plan->righttree != NULL && walker(&plan->righttree, context))
		return true;

	switch (nodeTag(plan))
	{
		case T_Append:
			return walk_list(((Append *) plan)->appendplans, walker, context);
		case T_MergeAppend:
			return walk_list(((MergeAppend *) plan)->mergeplans, walker, context);
		case T_BitmapAnd:
			return walk_list(((BitmapAnd *) plan)->bitmapplans, walker, context);
		case T_BitmapOr:
			return walk_list(((BitmapOr *) plan)->bitmapplans, walker, context);
		case T_SubqueryScan:
			return walker(&((SubqueryScan *) plan)->subplan, context);
		case T_CustomScan:
			return walk_list(((CustomScan *) plan)->custom_plans, walker, context);
		default:
			return false;
	}
}

static Plan *
plan_of_subplan(PlanContext *cx, const SubPlan *subplan)
{
	return list_nth(cx->stmt->subplans, subplan->plan_id - 1);
}

/* ------------------------------------------------------------------------
 * Volatile functions
 * ------------------------------------------------------------------------
 */
static bool plan_is_volatile(Plan **plan, void *context);

static bool
subplan_is_volatile(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, SubPlan))
	{
		Plan	   *plan = plan_of_subplan(context, (SubPlan *) node);

		if (plan == NULL || plan_is_volatile(&plan, context))
			return true;
	}
	return expression_tree_walker(node, subplan_is_volatile, context);
}

static bool
expr_is_volatile(PlanContext *cx, void *expr)
{
	return contain_volatile_functions(expr) || subplan_is_volatile(expr, cx);
}

/*
 * Does the node itself, without its children, do what must be done as often
 * as ever?  True for nodes that we do not know.
 */
static bool
node_is_volatile(PlanContext *cx, Plan *plan)
{
	if (expr_is_volatile(cx, plan->targetlist) ||
		expr_is_volatile(cx, plan->qual) ||
		expr_is_volatile(cx, plan->initPlan))
		return true;

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_BitmapAnd:
		case T_BitmapOr:
		case T_NamedTuplestoreScan:
		case T_WorkTableScan:
		case T_Material:
		case T_Sort:
		case T_IncrementalSort:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_Gather:
		case T_GatherMerge:
		case T_SetOp:
		case T_Append:
		case T_MergeAppend:
		case T_RecursiveUnion:
		case T_SubqueryScan:
		case T_ProjectSet:
			return false;

		case T_CteScan:
			{
				/* It runs as its readers ask for rows. */
				Plan	   *cte = list_nth(cx->stmt->subplans,
										   ((CteScan *) plan)->ctePlanId - 1);

				return cte == NULL || plan_is_volatile(&cte, cx);
			}
		case T_SampleScan:
			return expr_is_volatile(cx, ((SampleScan *) plan)->tablesample);
		case T_IndexScan:
			return expr_is_volatile(cx, ((IndexScan *) plan)->indexqual) ||
				expr_is_volatile(cx, ((IndexScan *) plan)->indexorderby);
		case T_IndexOnlyScan:
			return expr_is_volatile(cx, ((IndexOnlyScan *) plan)->indexqual) ||
				expr_is_volatile(cx, ((IndexOnlyScan *) plan)->indexorderby);
		case T_BitmapIndexScan:
			return expr_is_volatile(cx, ((BitmapIndexScan *) plan)->indexqual);
		case T_BitmapHeapScan:
			return expr_is_volatile(cx, ((BitmapHeapScan *) plan)->bitmapqualorig);
		case T_TidScan:
			return expr_is_volatile(cx, ((TidScan *) plan)->tidquals);
		case T_TidRangeScan:
			return expr_is_volatile(cx, ((TidRangeScan *) plan)->tidrangequals);
		case T_FunctionScan:
			return expr_is_volatile(cx, ((FunctionScan *) plan)->functions);
		case T_TableFuncScan:
			return expr_is_volatile(cx, ((TableFuncScan *) plan)->tablefunc);
		case T_ValuesScan:
			return expr_is_volatile(cx, ((ValuesScan *) plan)->values_lists);
		case T_ForeignScan:
			return ((ForeignScan *) plan)->operation != CMD_SELECT ||
				expr_is_volatile(cx, ((ForeignScan *) plan)->fdw_exprs) ||
				expr_is_volatile(cx, ((ForeignScan *) plan)->fdw_recheck_quals);
		case T_NestLoop:
			return expr_is_volatile(cx, ((Join *) plan)->joinqual);
		case T_MergeJoin:
			return expr_is_volatile(cx, ((Join *) plan)->joinqual) ||
				expr_is_volatile(cx, ((MergeJoin *) plan)->mergeclauses);
		case T_HashJoin:
			return expr_is_volatile(cx, ((Join *) plan)->joinqual) ||
				expr_is_volatile(cx, ((HashJoin *) plan)->hashclauses) ||
				expr_is_volatile(cx, ((HashJoin *) plan)->hashkeys);
		case T_Hash:
			return expr_is_volatile(cx, ((Hash *) plan)->hashkeys);
		case T_Memoize:
			return expr_is_volatile(cx, ((Memoize *) plan)->param_exprs);
		case T_WindowAgg:
			return expr_is_volatile(cx, ((WindowAgg *) plan)->startOffset) ||
				expr_is_volatile(cx, ((WindowAgg *) plan)->endOffset) ||
				expr_is_volatile(cx, ((WindowAgg *) plan)->runCondition);
		case T_Limit:
			return expr_is_volatile(cx, ((Limit *) plan)->limitOffset) ||
				expr_is_volatile(cx, ((Limit *) plan)->limitCount);
		case T_Result:
			return expr_is_volatile(cx, ((Result *) plan)->resconstantqual);
		case T_CustomScan:
			return ((CustomScan *) plan)->methods != &bf_join_build_methods &&
				((CustomScan *) plan)->methods != &bf_join_probe_methods;
		default:
			return true;
	}
}

static bool
plan_is_volatile(Plan **plan, void *context)
{
	PlanContext *cx = context;

	if (BF_JOIN_FILTER_MUTANT == 3)
		return false;
	check_stack_depth();
	return bms_overlap((*plan)->allParam, cx->volatile_params) ||
		node_is_volatile(cx, *plan) ||
		walk_children(*plan, plan_is_volatile, cx);
}

/* ------------------------------------------------------------------------
 * Is a subtree the same whenever it is read?
 * ------------------------------------------------------------------------
 */

/*
 * Nodes whose result another reading can change although no parameter has
 * changed: a foreign server or another extension may do as it likes,
 * Gather's rows come in any order, and some samples depend on the time.
 */
static bool
has_own_will(Plan **plan, void *context)
{
	switch (nodeTag(*plan))
	{
		case T_ForeignScan:
		case T_Gather:
		case T_GatherMerge:
			return true;
		case T_SampleScan:
			return !GetTsmRoutine(((SampleScan *) *plan)->tablesample->tsmhandler)->repeatable_across_scans;
		case T_CustomScan:
			if (((CustomScan *) *plan)->methods != &bf_join_build_methods &&
				((CustomScan *) *plan)->methods != &bf_join_probe_methods)
				return true;
			break;
		default:
			break;
	}
	return walk_children(*plan, has_own_will, context);
}

/*
 * May a filter be built of the node's rows (and a Hash's keys)?  It is, once,
 * and stays.
 */
static bool
is_repeatable(Position *at, Plan *plan)
{
	if (BF_JOIN_FILTER_MUTANT == 1 || BF_JOIN_FILTER_MUTANT == 2)
		return true;
	return bms_is_subset(plan->allParam, at->cx->fixed_params) &&
		!plan_is_volatile(&plan, at->cx) &&
		!(at->rescanned && has_own_will(&plan, NULL));
}

/*
 * Collect the parameters of which it is known that they stay as they are, and
 * those whose computing has side effects.
 */
static bool
collect_params(Plan **plan, void *context)
{
	PlanContext *cx = context;
	ListCell   *lc;

	foreach(lc, (*plan)->initPlan)
	{
		SubPlan    *subplan = lfirst_node(SubPlan, lc);
		Plan	   *body = plan_of_subplan(cx, subplan);
		bool		fixed = body != NULL && bms_is_subset(body->allParam, cx->fixed_params);
		bool		is_volatile = body == NULL || plan_is_volatile(&body, cx);
		ListCell   *param;

		foreach(param, subplan->setParam)
		{
			if (fixed)
				cx->fixed_params = bms_add_member(cx->fixed_params, lfirst_int(param));
			if (is_volatile)
				cx->volatile_params = bms_add_member(cx->volatile_params, lfirst_int(param));
		}
	}

	switch (nodeTag(*plan))
	{
		case T_Gather:
			if (((Gather *) *plan)->rescan_param >= 0)
				cx->fixed_params = bms_add_member(cx->fixed_params,
												  ((Gather *) *plan)->rescan_param);
			break;
		case T_GatherMerge:
			if (((GatherMerge *) *plan)->rescan_param >= 0)
				cx->fixed_params = bms_add_member(cx->fixed_params,
												  ((GatherMerge *) *plan)->rescan_param);
			break;
		case T_LockRows:
			cx->fixed_params = bms_add_member(cx->fixed_params,
											  ((LockRows *) *plan)->epqParam);
			break;
		case T_ModifyTable:
			cx->fixed_params = bms_add_member(cx->fixed_params,
											  ((ModifyTable *) *plan)->epqParam);
			break;
		default:
			break;
	}
	return walk_children(*plan, collect_params, context);
}

/* ------------------------------------------------------------------------
 * Keys
 * ------------------------------------------------------------------------
 */
static void *
strip_relabel(void *node)
{
	while (node != NULL && IsA(node, RelabelType))
		node = ((RelabelType *) node)->arg;
	return node;
}

/*
 * The column that the node's attno'th output is, or NULL if it is computed.
 */
static Var *
output_var(Plan *plan, AttrNumber attno)
{
	TargetEntry *te = list_nth(plan->targetlist, attno - 1);
	void	   *expr = strip_relabel(te->expr);

	Assert(te->resno == attno);
	return IsA(expr, Var) && ((Var *) expr)->varattno > 0 ? expr : NULL;
}

/*
 * Integers, and what is kept as one, are hashed without a call.
 */
static BfJoinHash
quick_hash(Oid function)
{
	switch (function)
	{
		case F_HASHINT2:
			return BF_JOIN_INT2;
		case F_HASHINT4:
			return BF_JOIN_INT4;
		case F_HASHINT8:
		case F_TIME_HASH:
		case F_TIMESTAMP_HASH:
			return BF_JOIN_INT8;
		case F_UUID_HASH:
			return BF_JOIN_UUID;
		default:
			return BF_JOIN_FUNCTION;
	}
}

/*
 * Is one operator's equality the other's?  True if a hash operator family has
 * both.
 */
static bool
same_equality(Oid a, Oid b)
{
	CatCList   *list;
	bool		same = false;

	if (a == b)
		return true;
	list = SearchSysCacheList1(AMOPOPID, ObjectIdGetDatum(a));
	for (int i = 0; i < list->n_members && !same; i++)
	{
		Form_pg_amop amop = (Form_pg_amop) GETSTRUCT(&list->members[i]->tuple);

		same = amop->amopmethod == HASH_AM_OID &&
			amop->amopstrategy == HTEqualStrategyNumber &&
			op_in_opfamily(b, amop->amopfamily);
	}
	ReleaseSysCacheList(list);
	return same;
}

/* ------------------------------------------------------------------------
 * Down the outer side
 * ------------------------------------------------------------------------
 */

/* What is known of the nodes above, up to the join. */
typedef struct Way
{
	double		work;			/* what a dropped row saves there, in nanoseconds */
	bool		fallible;		/* they compute what may fail */
	bool		whole;			/* a group is to be dropped whole or not at all */
} Way;

static bool
is_fallible_function(Oid function, void *context)
{
	return !get_func_leakproof(function);
}

/*
 * Can an expression fail?  An aggregate cannot; *inside tells whether to look
 * at what it is of.
 */
static bool
is_fallible(Node *node, void *inside)
{
	if (node == NULL)
		return false;
	switch (nodeTag(node))
	{
		case T_Aggref:
		case T_WindowFunc:
			if (!*(bool *) inside)
				return false;
			break;
		case T_List:
		case T_TargetEntry:
		case T_Var:
		case T_Const:
		case T_Param:
		case T_RelabelType:
		case T_BoolExpr:
		case T_NullTest:
		case T_BooleanTest:
		case T_CaseExpr:
		case T_CaseWhen:
		case T_CaseTestExpr:
		case T_CoalesceExpr:
			break;
		case T_OpExpr:
		case T_DistinctExpr:
		case T_ScalarArrayOpExpr:
		case T_FuncExpr:
			if (check_functions_in_node(node, is_fallible_function, NULL))
				return true;
			break;
		default:
			return true;
	}
	return expression_tree_walker(node, is_fallible, inside);
}

/*
 * Does the node compute what may fail?  Of a group's rows only what becomes of
 * them counts, unless inside: then its rows are groups, too.
 */
static bool
node_is_fallible(Plan *plan, bool inside)
{
	switch (nodeTag(plan))
	{
		case T_Material:
		case T_Sort:
		case T_IncrementalSort:
		case T_SubqueryScan:
		case T_Group:
		case T_Agg:
		case T_Unique:
		case T_CustomScan:
			break;
		case T_WindowAgg:
			if (is_fallible((Node *) ((WindowAgg *) plan)->runCondition, &inside))
				return true;
			break;
		default:
			return true;
	}
	return is_fallible((Node *) plan->targetlist, &inside) ||
		is_fallible((Node *) plan->qual, &inside);
}

static bool
makes_groups(Plan *plan)
{
	return IsA(plan, Group) || IsA(plan, Agg) || IsA(plan, Unique) || IsA(plan, WindowAgg);
}

/*
 * Must the node's groups be dropped whole, or not at all?
 *
 * A probe passes all rows before the filter is there, and while it pauses, so
 * of a group that matches nothing some rows may come and others not.  The join
 * drops what becomes of it; but 1 / (count(*) - 1) has failed by then.
 */
static bool
group_matters(Plan *plan, const Way *way)
{
	return makes_groups(plan) && (way->fallible || node_is_fallible(plan, false));
}

/*
 * Are all keys among the columns by which the node groups its input, and with
 * the join's equality?  Then a group is dropped whole or not at all.
 */
static bool
keys_are_grouped(const Placement *p, const AttrNumber *attnos, int ncols,
				 const AttrNumber *cols, const Oid *operators, const Oid *collations)
{
	for (int i = 0; i < p->spec->nkeys; i++)
	{
		bool		found = false;

		for (int j = 0; j < ncols && !found; j++)
			found = cols[j] == attnos[i] &&
				collations[j] == p->spec->keys[i].collation &&
				same_equality(operators[j], p->operators[i]);
		if (!found)
			return false;
	}
	return true;
}

/*
 * One step down.  The node *at outputs the keys as columns attnos; if they
 * are the columns next of a child, and its rows may be dropped instead of the
 * node's, return where the child is.  NULL if not.
 */
static Plan **
step_down(PlanContext *cx, const Placement *p, Plan **at, const AttrNumber *attnos,
		  const Way *way, AttrNumber *next)
{
	Plan	   *plan = *at;
	Plan	  **child = &plan->lefttree;
	bool		blocking = false;
	int			varno = 0;

	/* Our own nodes hand on their child's rows as they are. */
	if (IsA(plan, CustomScan))
	{
		if (((CustomScan *) plan)->methods != &bf_join_build_methods &&
			((CustomScan *) plan)->methods != &bf_join_probe_methods)
			return NULL;
		memcpy(next, attnos, p->spec->nkeys * sizeof(AttrNumber));
		return child;
	}

	for (int i = 0; i < p->spec->nkeys; i++)
	{
		Var		   *var = output_var(plan, attnos[i]);

		if (var == NULL || (i > 0 && var->varno != varno))
			return NULL;
		varno = var->varno;
		next[i] = var->varattno;
	}

	switch (nodeTag(plan))
	{
		case T_Material:
			break;

		case T_Sort:
		case T_IncrementalSort:
			blocking = true;
			break;

		case T_Result:
			if (plan->lefttree == NULL)
				return NULL;
			break;

		case T_SubqueryScan:
			{
				SubqueryScan *scan = (SubqueryScan *) plan;

				/* What a barrier hides, no function of ours may see. */
				if (varno != (int) scan->scan.scanrelid ||
					rt_fetch(scan->scan.scanrelid, cx->stmt->rtable)->security_barrier)
					return NULL;
				child = &scan->subplan;
				varno = OUTER_VAR;
				break;
			}

		case T_Group:
			{
				Group	   *group = (Group *) plan;

				if (!keys_are_grouped(p, next, group->numCols, group->grpColIdx,
									  group->grpOperators, group->grpCollations))
					return NULL;
				break;
			}

		case T_Agg:
			{
				Agg		   *agg = (Agg *) plan;

				if (agg->groupingSets != NIL || agg->chain != NIL ||
					!keys_are_grouped(p, next, agg->numCols, agg->grpColIdx,
									  agg->grpOperators, agg->grpCollations))
					return NULL;
				blocking = agg->aggstrategy == AGG_HASHED;
				break;
			}

		case T_Unique:
			{
				Unique	   *unique = (Unique *) plan;

				if (!keys_are_grouped(p, next, unique->numCols, unique->uniqColIdx,
									  unique->uniqOperators, unique->uniqCollations))
					return NULL;
				break;
			}

		case T_WindowAgg:
			{
				WindowAgg  *window = (WindowAgg *) plan;

				if (!keys_are_grouped(p, next, window->partNumCols, window->partColIdx,
									  window->partOperators, window->partCollations))
					return NULL;
				break;
			}

		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			{
				JoinType	type = ((Join *) plan)->jointype;

				if (varno == OUTER_VAR)
				{
					if (type != JOIN_INNER && type != JOIN_LEFT &&
						type != JOIN_SEMI && type != JOIN_ANTI)
						return NULL;
				}
				else if (varno == INNER_VAR)
				{
					/*
					 * The inner side of a nested loop is read once an outer
					 * row, mostly for a row or two.
					 */
					if (IsA(plan, NestLoop) ||
						(type != JOIN_INNER && type != JOIN_RIGHT && type != JOIN_RIGHT_ANTI))
						return NULL;
					child = &plan->righttree;
					varno = OUTER_VAR;
					if (IsA(plan, HashJoin))
					{
						/* The Hash node only hands its child's columns on. */
						for (int i = 0; i < p->spec->nkeys; i++)
						{
							Var		   *var = output_var(*child, next[i]);

							if (var == NULL)
								return NULL;
							next[i] = var->varattno;
						}
						child = &(*child)->lefttree;
						blocking = true;
					}
				}
				break;
			}

		default:
			return NULL;
	}

	if (p->late && ((blocking && !p->parallel) || group_matters(plan, way)))
		return NULL;
	return varno == OUTER_VAR ? child : NULL;
}

/* The children of an Append, or NIL. */
static List *
append_children(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Append:
			return ((Append *) plan)->appendplans;
		case T_MergeAppend:
			return ((MergeAppend *) plan)->mergeplans;
		default:
			return NIL;
	}
}

/*
 * Go down as far as the keys go, and call found at the end: once, or once a
 * child of an Append that is worth it.
 */
static void
descend(PlanContext *cx, const Placement *p, Plan **at, const AttrNumber *attnos,
		Way way,
		void (*found) (Plan **at, const AttrNumber *attnos, const Way *way, void *context),
		void *context)
{
	AttrNumber *next = palloc(p->spec->nkeys * sizeof(AttrNumber));
	List	   *children = append_children(*at);
	Plan	  **child;

	if (children != NIL)
	{
		bool		deeper = true;
		bool		useful = false;
		ListCell   *lc;

		/*
		 * The columns of an Append are those of its children.  To probe above
		 * it is as good as to probe above each of them, and there it must be
		 * if one is read asynchronously: Append talks with such a node.
		 */
		foreach(lc, children)
		{
			deeper = deeper && !((Plan *) lfirst(lc))->async_capable;
			useful = useful || append_children(lfirst(lc)) != NIL ||
				step_down(cx, p, (Plan **) &lfirst(lc), attnos, &way, next) != NULL;
		}
		if (deeper && useful)
		{
			foreach(lc, children)
				descend(cx, p, (Plan **) &lfirst(lc), attnos, way, found, context);
			return;
		}
	}
	else if ((child = step_down(cx, p, at, attnos, &way, next)) != NULL)
	{
		way.whole = way.whole || group_matters(*at, &way);
		way.fallible = way.fallible || node_is_fallible(*at, true);
		switch (nodeTag(*at))
		{
			case T_Sort:
			case T_IncrementalSort:
				way.work += SAVED_SORT;
				break;
			case T_Agg:
			case T_Group:
			case T_Unique:
			case T_WindowAgg:
				way.work += SAVED_AGG;
				break;
			case T_NestLoop:
			case T_MergeJoin:
			case T_HashJoin:
				way.work += SAVED_JOIN;
				break;
			case T_CustomScan:
				break;
			default:
				way.work += SAVED_OTHER;
				break;
		}

		/* At a probe that is there already, and that is the end, join it. */
		if (IsA(*at, CustomScan) &&
			((CustomScan *) *at)->methods == &bf_join_probe_methods)
		{
			AttrNumber *beyond = palloc(p->spec->nkeys * sizeof(AttrNumber));

			if (append_children(*child) == NIL &&
				step_down(cx, p, child, next, &way, beyond) == NULL)
			{
				found(at, attnos, &way, context);
				return;
			}
		}
		descend(cx, p, child, next, way, found, context);
		return;
	}
	found(at, attnos, &way, context);
}

/* ------------------------------------------------------------------------
 * Nodes
 * ------------------------------------------------------------------------
 */

/*
 * A node that hands on its child's rows, above *at.
 */
static CustomScan *
insert_node(PlanContext *cx, Plan **at, const CustomScanMethods *methods)
{
	CustomScan *node = makeNode(CustomScan);
	Plan	   *plan = &node->scan.plan;
	Plan	   *child = *at;
	ListCell   *lc;

	plan->startup_cost = child->startup_cost;
	plan->total_cost = child->total_cost;
	plan->plan_rows = child->plan_rows;
	plan->plan_width = child->plan_width;
#if PG_VERSION_NUM >= 180000
	plan->disabled_nodes = child->disabled_nodes;
#endif
	plan->parallel_safe = child->parallel_safe;
	plan->plan_node_id = cx->next_node_id++;
	plan->extParam = bms_copy(child->extParam);
	plan->allParam = bms_copy(child->allParam);
	plan->lefttree = child;
	foreach(lc, child->targetlist)
	{
		TargetEntry *te = lfirst(lc);
		TargetEntry *ours = flatCopyTargetEntry(te);
		TargetEntry *input = flatCopyTargetEntry(te);
		Oid			type = exprType((Node *) te->expr);
		int32		typmod = exprTypmod((Node *) te->expr);
		Oid			collation = exprCollation((Node *) te->expr);

		ours->expr = (Expr *) makeVar(INDEX_VAR, te->resno, type, typmod, collation, 0);
		input->expr = (Expr *) makeVar(OUTER_VAR, te->resno, type, typmod, collation, 0);
		plan->targetlist = lappend(plan->targetlist, ours);
		node->custom_scan_tlist = lappend(node->custom_scan_tlist, input);
	}
	node->flags = CUSTOMPATH_SUPPORT_BACKWARD_SCAN | CUSTOMPATH_SUPPORT_MARK_RESTORE;
	node->methods = methods;
	*at = plan;
	return node;
}

typedef struct ProbeContext
{
	Position   *at;
	const Placement *placement;
	double		gain;			/* of all places found, in nanoseconds */
	double		rows;
} ProbeContext;

/*
 * descend() came to the end of a way: what would a probe there gain?
 */
static void
weigh_probe(Plan **at, const AttrNumber *attnos, const Way *way, void *context)
{
	ProbeContext *pc = context;

	pc->rows += (*at)->plan_rows;
	pc->gain += (*at)->plan_rows * (1 - pc->placement->pass) * way->work;
}

/* Put a probe there. */
static void
place_probe(Plan **at, const AttrNumber *attnos, const Way *way, void *context)
{
	ProbeContext *pc = context;
	const Placement *p = pc->placement;
	BfJoinSpec *spec = p->spec;
	int			min_drop = spec->min_drop;
	CustomScan *probe = (CustomScan *) *at;

	if (!IsA(probe, CustomScan) || probe->methods != &bf_join_probe_methods)
	{
		probe = insert_node(pc->at->cx, at, &bf_join_probe_methods);
		/* so that the counters of all participants are put together */
		probe->scan.plan.parallel_aware = pc->at->in_gather;
		pc->at->cx->probes = lappend(pc->at->cx->probes, probe);
	}
	for (int i = 0; i < spec->nkeys; i++)
	{
		TargetEntry *te = list_nth(probe->custom_scan_tlist, attnos[i] - 1);

		spec->keys[i].attno = attnos[i];
		probe->custom_exprs = lappend(probe->custom_exprs, copyObject(te->expr));
	}
	if (way->whole)
		spec->min_drop = 0;
	probe->custom_private = lappend(probe->custom_private, bf_write_join_spec(spec));
	spec->min_drop = min_drop;
	probe->scan.plan.plan_rows = clamp_row_est(probe->scan.plan.plan_rows * p->pass);
}

/*
 * The relation of a scan that returns the table's rows where they lie, if its
 * target list is all of their columns; 0 of another node.
 */
static Index
scanned_table(PlanContext *cx, Plan *plan)
{
	Index		relid;

	switch (nodeTag(plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
			relid = ((Scan *) plan)->scanrelid;
			return rt_fetch(relid, cx->stmt->rtable)->rtekind == RTE_RELATION ? relid : 0;
		default:
			return 0;
	}
}

/* The table's column as a node's output, of a Var of varno. */
static TargetEntry *
column_entry(int varno, Form_pg_attribute att)
{
	return makeTargetEntry((Expr *) makeVar(varno, att->attnum, att->atttypid,
											att->atttypmod, att->attcollation, 0),
						   att->attnum, pstrdup(NameStr(att->attname)), false);
}

/*
 * A scan copies the columns that are needed out of every row.  Let the probe
 * do that instead, of the rows that pass.  Only columns: what is computed of
 * them may fail.
 */
static void
project_above(PlanContext *cx, CustomScan *probe)
{
	Plan	   *scan = probe->scan.plan.lefttree;
	Index		relid = scanned_table(cx, scan);
	List	   *columns = NIL;	/* the scan's new target list, */
	List	   *input = NIL;	/* and how the probe sees it */
	List	   *output = NIL;
	List	   *private = NIL;
	bool		all_in_order = true;
	Relation	rel;
	TupleDesc	desc;
	ListCell   *lc;

	if (relid == 0 || scan->targetlist == NIL)
		return;

	/* system columns are no part of a row's columns */
	foreach(lc, scan->targetlist)
	{
		TargetEntry *te = lfirst(lc);

		if (!IsA(te->expr, Var) || ((Var *) te->expr)->varattno <= 0 ||
			((Var *) te->expr)->varno != (int) relid)
			return;
		all_in_order = all_in_order && ((Var *) te->expr)->varattno == te->resno;
	}

	/* as tlist_matches_tupdesc() wants it */
	rel = table_open(rt_fetch(relid, cx->stmt->rtable)->relid, NoLock);
	desc = RelationGetDescr(rel);
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(desc, i);

		if (att->attisdropped || att->atthasmissing)
		{
			columns = NIL;
			break;
		}
		columns = lappend(columns, column_entry((int) relid, att));
		input = lappend(input, column_entry(OUTER_VAR, att));
	}
	table_close(rel, NoLock);
	if (columns == NIL ||
		(all_in_order && list_length(columns) == list_length(scan->targetlist)))
		return;

	foreach(lc, scan->targetlist)
	{
		TargetEntry *te = flatCopyTargetEntry(lfirst(lc));
		Var		   *var = (Var *) te->expr;

		te->expr = (Expr *) makeVar(INDEX_VAR, var->varattno, var->vartype,
									var->vartypmod, var->varcollid, 0);
		output = lappend(output, te);
	}

	/* the keys */
	foreach(lc, probe->custom_private)
	{
		BfJoinSpec *spec = bf_read_join_spec(lfirst(lc));

		for (int i = 0; i < spec->nkeys; i++)
			spec->keys[i].attno = output_var(scan, spec->keys[i].attno)->varattno;
		private = lappend(private, bf_write_join_spec(spec));
	}
	foreach(lc, probe->custom_exprs)
	{
		Var		   *var = lfirst(lc);

		var->varattno = output_var(scan, var->varattno)->varattno;
	}

	probe->custom_private = private;
	probe->custom_scan_tlist = input;
	probe->scan.plan.targetlist = output;
	scan->targetlist = columns;
}

/* ------------------------------------------------------------------------
 * Hash joins
 * ------------------------------------------------------------------------
 */

/*
 * May the join drop outer rows that match nothing, and knows nothing else of
 * them?
 */
static bool
drops_unmatched_outer(JoinType type)
{
	return type == JOIN_INNER || type == JOIN_SEMI || type == JOIN_RIGHT ||
		type == JOIN_RIGHT_ANTI || type == JOIN_RIGHT_SEMI;
}

/*
 * Fill in the keys that are columns on the outer side, of which there may be
 * none.  which is set to the clauses that they are of.
 */
static void
find_keys(HashJoin *join, Placement *p, AttrNumber *attnos, List **which)
{
	Hash	   *hash = (Hash *) join->join.plan.righttree;
	int			n = 0;

	*which = NIL;
	for (int i = 0; i < list_length(join->hashkeys); i++)
	{
		Oid			operator = list_nth_oid(join->hashoperators, i);
		Node	   *outer = strip_relabel(list_nth(join->hashkeys, i));
		BfJoinKey  *key = &p->spec->keys[n];
		RegProcedure outer_function;
		RegProcedure inner_function;

		/* A NULL is dropped by the filter, so it must be by the operator. */
		if (!IsA(outer, Var) || ((Var *) outer)->varno != OUTER_VAR ||
			((Var *) outer)->varattno <= 0 ||
			i >= list_length(hash->hashkeys) ||
			!op_strict(operator) ||
			!get_op_hash_functions(operator, &outer_function, &inner_function))
			continue;
		key->hash = quick_hash(outer_function);
		if ((key->hash == BF_JOIN_FUNCTION) != (quick_hash(inner_function) == BF_JOIN_FUNCTION) ||
			(key->hash == BF_JOIN_UUID) != (quick_hash(inner_function) == BF_JOIN_UUID))
			key->hash = BF_JOIN_FUNCTION;
		key->function = outer_function;
		key->collation = list_nth_oid(join->hashcollations, i);
		p->operators[n] = operator;
		attnos[n] = ((Var *) outer)->varattno;
		*which = lappend_int(*which, i);
		n++;
	}
	p->spec->nkeys = n;
}

/* The same keys on the inner side, as the builder needs them. */
static BfJoinSpec *
inner_spec(HashJoin *join, const BfJoinSpec *outer, List *which, List **exprs)
{
	Hash	   *hash = (Hash *) join->join.plan.righttree;
	BfJoinSpec *spec = bf_make_join_spec(outer->nkeys);

	*spec = *outer;
	*exprs = NIL;
	for (int i = 0; i < spec->nkeys; i++)
	{
		int			clause = list_nth_int(which, i);
		Node	   *expr = list_nth(hash->hashkeys, clause);
		Node	   *stripped = strip_relabel(expr);
		RegProcedure outer_function;
		RegProcedure inner_function;

		get_op_hash_functions(list_nth_oid(join->hashoperators, clause),
							  &outer_function, &inner_function);
		spec->keys[i] = outer->keys[i];
		spec->keys[i].function = inner_function;
		if (outer->keys[i].hash != BF_JOIN_FUNCTION)
			spec->keys[i].hash = quick_hash(inner_function);
		spec->keys[i].attno = IsA(stripped, Var) && ((Var *) stripped)->varattno > 0 ?
			((Var *) stripped)->varattno : 0;
		*exprs = lappend(*exprs, copyObject(expr));
	}
	return spec;
}

/*
 * How many words, as a power of two, so many keys need.  Perhaps more than
 * there may be.
 */
int
bf_join_log2_words(double keys)
{
	return Max(BF_JOIN_MIN_LOG2_WORDS,
			   (int) ceil(log2(Max(keys, 1.0) * BF_JOIN_BITS_PER_KEY / 64)));
}

/*
 * May a filter be so large?
 */
static bool
fits_memory(int log2_words)
{
	return log2_words <= BF_JOIN_MAX_LOG2_WORDS &&
		((Size) sizeof(uint64) << log2_words) <= get_hash_memory_limit();
}

/*
 * Keep one key alone.
 */
static void
keep_key(Placement *p, AttrNumber *attnos, List **which, int i)
{
	p->spec->keys[0] = p->spec->keys[i];
	p->spec->nkeys = 1;
	p->operators[0] = p->operators[i];
	attnos[0] = attnos[i];
	*which = list_make1_int(list_nth_int(*which, i));
}

/*
 * Add a filter to the hash join if it is safe and should pay.
 */
static void
consider_join(Position *at, HashJoin *join)
{
	PlanContext *cx = at->cx;
	Plan	   *outer = join->join.plan.lefttree;
	Hash	   *hash = (Hash *) join->join.plan.righttree;
	int			nclauses = list_length(join->hashkeys);
	bool		parallel = hash->plan.parallel_aware;
	double		build_rows = hash->plan.lefttree->plan_rows;
	double		total_rows = parallel ? hash->rows_total : build_rows;
	Placement	p;
	ProbeContext pc;
	AttrNumber *attnos;
	List	   *which;
	List	   *exprs;
	BfJoinSpec *spec;
	CustomScan *build;
	bool		slow = false;
	bool		spills;
	Way			way = {0};
	double		cost;

	if (!drops_unmatched_outer(join->join.jointype) || !IsA(hash, Hash))
		return;

#ifdef PG_HAVE_ATOMIC_U64_SIMULATION
	/* An atomic word is longer than a word there. */
	if (parallel)
		return;
#endif

	/*
	 * The part of the outer rows that matches, at most: a row with several
	 * matches counts several times.  Of a join whose result is inner rows we
	 * only know which side is larger.
	 */
	if (join->join.jointype == JOIN_RIGHT_ANTI || join->join.jointype == JOIN_RIGHT_SEMI)
		p.pass = 3 * build_rows / Max(outer->plan_rows, 1.0);
	else
		p.pass = join->join.plan.plan_rows / Max(outer->plan_rows, 1.0);
	p.pass = Min(p.pass, 1.0);
	if (!bf_join_filter_force && p.pass > MAX_EXPECTED_PASS)
		return;

	p.spec = bf_make_join_spec(nclauses);
	p.operators = palloc(nclauses * sizeof(Oid));
	attnos = palloc(nclauses * sizeof(AttrNumber));
	find_keys(join, &p, attnos, &which);
	p.spec->log2_words = bf_join_log2_words(total_rows);
	if (p.spec->nkeys == 0 || !fits_memory(p.spec->log2_words) ||
		!is_repeatable(at, &hash->plan) ||
		plan_is_volatile(&outer, cx))
		return;

	/*
	 * The executor looks for a first outer row before it builds the hash
	 * table, if it expects that to be cheaper (ExecHashJoin).  What reads all
	 * of its input for its first row is then past filtering.
	 */
	p.parallel = parallel;
	p.late = join->join.jointype != JOIN_RIGHT && join->join.jointype != JOIN_RIGHT_ANTI &&
		outer->startup_cost < hash->plan.total_cost;

	/* A dropped row needs not be hashed by the join, nor looked up. */
	for (int i = 0; i < p.spec->nkeys; i++)
		slow = slow || p.spec->keys[i].hash == BF_JOIN_FUNCTION;
	way.work = SAVED_JOIN + (slow ? COST_PROBE_SLOW : COST_PROBE);

	/*
	 * Several keys may come from several tables below: then the one that
	 * gains most is better than all at the top.
	 */
	pc.at = at;
	pc.placement = &p;
	pc.gain = pc.rows = 0;
	descend(cx, &p, &join->join.plan.lefttree, attnos, way, weigh_probe, &pc);
	if (p.spec->nkeys > 1)
	{
		BfJoinSpec *all = p.spec;
		Oid		   *all_operators = p.operators;
		int			best = -1;

		for (int i = 0; i < all->nkeys; i++)
		{
			ProbeContext one = pc;

			p.spec = bf_make_join_spec(1);
			p.spec->keys[0] = all->keys[i];
			p.operators = &all_operators[i];
			one.gain = one.rows = 0;
			descend(cx, &p, &join->join.plan.lefttree, &attnos[i], way,
					weigh_probe, &one);
			if (one.gain > pc.gain * 1.5)
			{
				pc.gain = one.gain;
				pc.rows = one.rows;
				best = i;
			}
		}
		p.spec = all;
		p.operators = all_operators;
		if (best >= 0)
			keep_key(&p, attnos, &which, best);
	}

	/* as ExecChooseHashTableSize does it, roughly */
	spills = total_rows * (hash->plan.plan_width + 40.0) >
		get_hash_memory_limit() * (parallel ? 2.0 : 1.0);
	if (spills)
		pc.gain += outer->plan_rows * (1 - p.pass) * SAVED_SPILL;
	cost = build_rows * (slow ? COST_BUILD_SLOW : COST_BUILD) +
		pc.rows * (slow ? COST_PROBE_SLOW : COST_PROBE);
	if (!bf_join_filter_force && (pc.rows < MIN_PROBED_ROWS || pc.gain < 1.2 * cost))
		return;

	/* What must be dropped for a probe to cost less than it saves */
	spec = p.spec;
	spec->min_drop = slow ? (spills ? 10 : 40) : (spills ? 5 : 15);
	spec->param = list_length(cx->stmt->paramExecTypes);
	cx->stmt->paramExecTypes = lappend_oid(cx->stmt->paramExecTypes, INTERNALOID);
	spec->number = ++cx->nfilters;
	spec->shared = parallel;
	if (parallel && fits_memory(Max(spec->log2_words + 1, BF_JOIN_MIN_LOG2_SHARED)))
		spec->log2_words = Max(spec->log2_words + 1, BF_JOIN_MIN_LOG2_SHARED);

	build = insert_node(cx, &hash->plan.lefttree, &bf_join_build_methods);
	build->scan.plan.parallel_aware = parallel;
	spec = inner_spec(join, spec, which, &exprs);
	build->custom_exprs = exprs;
	build->custom_private = bf_write_join_spec(spec);

	descend(cx, &p, &join->join.plan.lefttree, attnos, way, place_probe, &pc);
}

static bool
visit(Plan **plan, void *context)
{
	Position   *at = context;
	Position	below = *at;

	check_stack_depth();
	switch (nodeTag(*plan))
	{
		case T_Gather:
		case T_GatherMerge:
			below.in_gather = true;
			break;
		case T_RecursiveUnion:
			below.rescanned = true;
			break;
		case T_NestLoop:
			if (visit(&(*plan)->lefttree, at))
				return true;
			below.rescanned = true;
			return visit(&(*plan)->righttree, &below);
		default:
			break;
	}
	if (walk_children(*plan, visit, &below))
		return true;
	if (IsA(*plan, HashJoin))
		consider_join(at, (HashJoin *) *plan);
	return false;
}

static bool
find_last_node_id(Plan **plan, void *context)
{
	int		   *last = context;

	check_stack_depth();
	*last = Max(*last, (*plan)->plan_node_id);
	return walk_children(*plan, find_last_node_id, context);
}

static bool
find_hash_join(Plan **plan, void *context)
{
	check_stack_depth();
	return IsA(*plan, HashJoin) || walk_children(*plan, find_hash_join, context);
}

/*
 * Add filters to the statement's plan.
 */
static void
add_join_filters(PlannedStmt *stmt)
{
	PlanContext cx = {.stmt = stmt};
	bool		any = stmt->planTree != NULL && find_hash_join(&stmt->planTree, NULL);
	int			last = 0;
	int			known;
	Position	at = {.cx = &cx};
	ListCell   *lc;

	foreach(lc, stmt->subplans)
		any = any || (lfirst(lc) != NULL && find_hash_join((Plan **) &lfirst(lc), NULL));
	if (!any)
		return;

	find_last_node_id(&stmt->planTree, &last);
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL)
			find_last_node_id((Plan **) &lfirst(lc), &last);
	}
	cx.next_node_id = last + 1;

	/* InitPlans may depend on one another. */
	do
	{
		known = bms_num_members(cx.fixed_params) + bms_num_members(cx.volatile_params);
		collect_params(&stmt->planTree, &cx);
		foreach(lc, stmt->subplans)
		{
			if (lfirst(lc) != NULL)
				collect_params((Plan **) &lfirst(lc), &cx);
		}
	} while (bms_num_members(cx.fixed_params) + bms_num_members(cx.volatile_params) > known);

	visit(&stmt->planTree, &at);
	at.rescanned = true;
	foreach(lc, stmt->subplans)
	{
		if (lfirst(lc) != NULL)
			visit((Plan **) &lfirst(lc), &at);
	}
	foreach(lc, cx.probes)
		project_above(&cx, lfirst(lc));
}

static PlannedStmt *
plan_with_filters(Query *parse, const char *query_string, int cursor_options,
				  ParamListInfo bound_params)
{
	PlannedStmt *stmt;

	if (previous_planner)
		stmt = previous_planner(parse, query_string, cursor_options, bound_params);
	else
		stmt = standard_planner(parse, query_string, cursor_options, bound_params);
	if (bf_join_filter)
		add_join_filters(stmt);
	return stmt;
}

void
bf_init_joinplan(void)
{
	previous_planner = planner_hook;
	planner_hook = plan_with_filters;
}
