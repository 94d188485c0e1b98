/*-------------------------------------------------------------------------
 *
 * maintain.c
 *	  bloom_maintain(): a trigger that keeps a stored filter up to date.
 *
 *	CREATE TRIGGER codes_filter AFTER INSERT ON codes
 *		REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT
 *		EXECUTE FUNCTION bloom_maintain('filters', 'codes', 'code');
 *
 * The arguments are the table that holds the filter, in columns "name" and
 * "filter", the filter's name, and the column, or columns, whose values go
 * into it.  The filter's row is locked before it is read: of two transactions
 * that add to one filter the second waits for the first, and no addition is
 * lost.  What the filter has already is not written again.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

PG_FUNCTION_INFO_V1(bf_sql_maintain);

/*
 * The trigger, if it is one that this function can serve.
 */
static Trigger *
check_trigger(FunctionCallInfo fcinfo)
{
	TriggerData *trigdata = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("bloom_maintain can only be called as a trigger")));
	if (!TRIGGER_FIRED_AFTER(trigdata->tg_event) ||
		!TRIGGER_FIRED_FOR_STATEMENT(trigdata->tg_event) ||
		trigdata->tg_newtable == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must see the new rows of a whole statement",
						trigdata->tg_trigger->tgname),
				 errhint("Create it with AFTER INSERT ... REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT, and one of its own for UPDATE.")));
	if (trigdata->tg_trigger->tgnargs < 3)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" has %d arguments, but bloom_maintain needs at least 3",
						trigdata->tg_trigger->tgname,
						trigdata->tg_trigger->tgnargs),
				 errhint("They are the table of filters, the filter's name, and the column, or columns, that the filter is of.")));
	return trigdata->tg_trigger;
}

/*
 * The table of filters, as it is written anywhere.  It is locked as the query
 * will lock it, or it could be gone before its name is read.
 */
static char *
quoted_table(const char *name)
{
	Oid			relid = RangeVarGetRelid(makeRangeVarFromNameList(
										 textToQualifiedNameList(cstring_to_text(name))),
										 RowShareLock, false);

	return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									  get_rel_name(relid));
}

/*
 * The value that an element is, from columns of the transition table.
 */
static char *
element_expression(const Trigger *trigger, Relation rel)
{
	StringInfoData expr;

	initStringInfo(&expr);
	if (trigger->tgnargs > 3)
		appendStringInfoString(&expr, "ROW(");
	for (int i = 2; i < trigger->tgnargs; i++)
	{
		if (SPI_fnumber(RelationGetDescr(rel), trigger->tgargs[i]) <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							trigger->tgargs[i], RelationGetRelationName(rel)),
					 errcontext("arguments of trigger \"%s\"", trigger->tgname)));
		appendStringInfo(&expr, "%sn.%s", i > 2 ? ", " : "",
						 quote_identifier(trigger->tgargs[i]));
	}
	if (trigger->tgnargs > 3)
		appendStringInfoChar(&expr, ')');
	return expr.data;
}

/*
 * A generic plan, since the planner would copy a filter that it is given as a
 * constant, read it whole where it is a stored one, and could not be stopped
 * meanwhile.
 */
static void
execute(const char *query, int nargs, Oid *types, Datum *values, int expected)
{
	SPIPlanPtr	plan = SPI_prepare_cursor(query, nargs, types,
										  CURSOR_OPT_GENERIC_PLAN);
	int			result = plan ? SPI_execute_plan(plan, values, NULL, false, 0) : SPI_result;

	if (result != expected)
		elog(ERROR, "query of bloom_maintain failed: %s",
			 SPI_result_code_string(result));
}

Datum
bf_sql_maintain(PG_FUNCTION_ARGS)
{
	Trigger    *trigger = check_trigger(fcinfo);
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	const char *schema;
	const char *table;
	const char *element;
	const char *rows;
	Oid			types[2] = {TEXTOID, InvalidOid};
	Datum		values[2];
	Datum		added[2];
	BfHeader	h;
	bool		isnull;

	if (SPI_connect() != SPI_OK_CONNECT ||
		SPI_register_trigger_data(trigdata) != SPI_OK_TD_REGISTER)
		elog(ERROR, "SPI_connect failed");

	/*
	 * The functions and operators are where this function is, or the
	 * server's, whatever is first in the search path.
	 */
	schema = quote_identifier(get_namespace_name(get_func_namespace(fcinfo->flinfo->fn_oid)));
	table = quoted_table(trigger->tgargs[0]);
	element = element_expression(trigger, trigdata->tg_relation);
	rows = quote_identifier(trigger->tgnewtable);
	values[0] = CStringGetTextDatum(trigger->tgargs[1]);

	execute(psprintf("SELECT filter FROM %s WHERE name OPERATOR(pg_catalog.=) $1 FOR UPDATE", table),
			1, types, values, SPI_OK_SELECT);
	if (SPI_processed != 1)
		ereport(ERROR,
				(errcode(ERRCODE_NO_DATA_FOUND),
				 errmsg("table %s has %d filters named \"%s\", not one",
						table, (int) SPI_processed, trigger->tgargs[1]),
				 errhint("Insert the filter before rows that it is to hold.")));
	types[1] = SPI_gettypeid(SPI_tuptable->tupdesc, 1);
	if (getBaseType(types[1]) !=
		GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
						CStringGetDatum("bloomfilter"),
						ObjectIdGetDatum(get_func_namespace(fcinfo->flinfo->fn_oid))))
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"filter\" of table %s is of type %s, not bloomfilter",
						table, format_type_be(types[1]))));
	values[1] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
							  &isnull);
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("filter \"%s\" in table %s is null",
						trigger->tgargs[1], table)));
	bf_fetch_header(values[1], &h);
	if (!bf_is_sized(&h))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("filter \"%s\" in table %s has no capacity",
						trigger->tgargs[1], table),
				 errhint("Put a sized filter there, as in: bloomfilter(1000000).")));

	/*
	 * The new elements as a filter to be united, or, where unions do not
	 * merge, as an array.  Of a set only what is missing counts.
	 */
	execute(psprintf("SELECT %s FROM %s n %s",
					 h.expansion != 0 ? psprintf("pg_catalog.array_agg(%s)", element)
					 : psprintf("%s.bloom_agg(%s, $2)", schema, element),
					 rows,
					 h.layout->multiset ? "" :
					 psprintf("WHERE NOT ($2 OPERATOR(%s.@>) %s)", schema, element)),
			2, types, values, SPI_OK_SELECT);
	added[0] = values[0];
	added[1] = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
							 &isnull);
	types[1] = SPI_gettypeid(SPI_tuptable->tupdesc, 1);
	if (!isnull && h.expansion == 0)
	{
		BfHeader	news;

		bf_fetch_header(added[1], &news);
		isnull = news.kind == BF_KIND_NONE;
	}
	if (!isnull)
		execute(psprintf("UPDATE %s SET filter = %s WHERE name OPERATOR(pg_catalog.=) $1",
						 table,
						 psprintf(h.expansion != 0
								  ? "%s.bloom_add_all(filter, $2)"
								  : "filter OPERATOR(%s.|) $2", schema)),
				2, types, added, SPI_OK_UPDATE);

	SPI_finish();
	PG_RETURN_POINTER(NULL);
}
