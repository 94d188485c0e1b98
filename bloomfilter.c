/*-------------------------------------------------------------------------
 *
 * bloomfilter.c
 *	  The module's front door.
 *
 * core/ is the filter in plain C, type/ the SQL type above it, planner/ what
 * the planner is told, and the join filters that it is given.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/plancache.h"

#include "core/bf.h"
#include "planner/joinfilter.h"

PG_MODULE_MAGIC;

extern PGDLLEXPORT void _PG_init(void);

/*
 * Prepared statements and functions get new plans, with or without filters.
 */
static void
assign_join_filter(bool newval, void *extra)
{
	if (newval != bf_join_filter)
		ResetPlanCache();
}

static void
assign_join_filter_force(bool newval, void *extra)
{
	if (newval != bf_join_filter_force)
		ResetPlanCache();
}

static void
check_for_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

void
_PG_init(void)
{
	bf_poll = check_for_interrupts;

	DefineCustomBoolVariable("bloomfilter.join_filter",
							 "Lets hash joins filter their outer side by the keys of the inner side.",
							 "Rows that cannot match are dropped where they are read.",
							 &bf_join_filter, false,
							 PGC_USERSET, GUC_EXPLAIN,
							 NULL, assign_join_filter, NULL);
	DefineCustomBoolVariable("bloomfilter.join_filter_force",
							 "Adds join filters wherever they are possible, whatever they cost.",
							 "For tests.",
							 &bf_join_filter_force, false,
							 PGC_USERSET, GUC_NOT_IN_SAMPLE | GUC_NO_SHOW_ALL,
							 NULL, assign_join_filter_force, NULL);
	MarkGUCPrefixReserved("bloomfilter");

	bf_init_joinplan();
	bf_init_joinexec();
}
