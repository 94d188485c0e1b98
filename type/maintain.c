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
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
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
 * Errors of the queries below are of a statement that the user did not write.
 */
static void
error_context(void *arg)
{
	TriggerData *trigdata = arg;

	errcontext("bloom_maintain of filter \"%s\", by trigger \"%s\" of table \"%s\"",
			   trigdata->tg_trigger->tgargs[1], trigdata->tg_trigger->tgname,
			   RelationGetRelationName(trigdata->tg_relation));
}

/*
 * The table of filters, locked as its rows will be.
 */
static Oid
filter_table(const char *name)
{
	static const char *const needed[] = {"name", "filter"};
	Oid			relid = RangeVarGetRelid(makeRangeVarFromNameList(
										 textToQualifiedNameList(cstring_to_text(name))),
										 RowShareLock, false);

	for (int i = 0; i < (int) lengthof(needed); i++)
	{
		if (get_attnum(relid, needed[i]) == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							needed[i], get_rel_name(relid)),
					 errhint("bloom_maintain finds filters in a table with columns \"name\" and \"filter\".")));
	}
	return relid;
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
		int			attnum = SPI_fnumber(RelationGetDescr(rel), trigger->tgargs[i]);

		if (attnum <= 0)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							trigger->tgargs[i], RelationGetRelationName(rel))));
#ifdef ATTRIBUTE_GENERATED_VIRTUAL
		/* a transition table has NULLs there, which are no keys */
		if (TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attgenerated == ATTRIBUTE_GENERATED_VIRTUAL)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("bloom_maintain cannot read virtual generated column \"%s\" of relation \"%s\"",
							trigger->tgargs[i], RelationGetRelationName(rel)),
					 errhint("Make it a stored generated column.")));
#endif
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
 * meanwhile.  The result goes to dest, or to SPI_tuptable.
 */
static int
execute(const char *query, const Oid *types, const Datum *values, int nargs,
		DestReceiver *dest)
{
	SPIExecuteOptions options = {.params = makeParamList(nargs),.dest = dest};
	SPIPlanPtr	plan = SPI_prepare_cursor(query, nargs, (Oid *) types,
										  CURSOR_OPT_GENERIC_PLAN);
	int			result;

	for (int i = 0; i < nargs; i++)
	{
		ParamExternData *param = &options.params->params[i];

		param->ptype = types[i];
		param->value = values[i];
		param->isnull = false;
		param->pflags = PARAM_FLAG_CONST;
	}
	result = plan ? SPI_execute_plan_extended(plan, &options) : SPI_result;
	if (result < 0)
		elog(ERROR, "query of bloom_maintain failed: %s",
			 SPI_result_code_string(result));
	return result;
}

/*
 * What adds the rows of a query to a filter.  Of a set only what is missing
 * counts: as long as nothing is, rows probe the filter where it is stored, and
 * it is not read whole.
 */
typedef struct AddReceiver
{
	DestReceiver pub;
	Datum		filter;
	bool		multiset;
	MemoryContext context;		/* of the changed filter */
	MemoryContext probe_context;	/* of site, or NULL */
	BfProbeSite *site;
	MemoryContext row_context;	/* of what a row needs */
	BfElement	el;
	BfChange	change;
	bool		started;
	bool		changed;
} AddReceiver;

/*
 * The first element that the filter lacks is at hand.
 */
static void
start_adding(AddReceiver *r, const FormData_pg_attribute *att)
{
	BfFilter	f;

	if (r->probe_context != NULL)
		MemoryContextDelete(r->probe_context);
	r->probe_context = NULL;
	bf_element_init(&r->el, att->atttypid, att->attcollation, r->context);
	bf_open_value((BloomFilter *) PG_DETOAST_DATUM_PACKED(r->filter), &f);
	bf_change_start(&r->change, &f);
	r->started = true;
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	AddReceiver *r = (AddReceiver *) self;
	Form_pg_attribute att = TupleDescAttr(slot->tts_tupleDescriptor, 0);
	MemoryContext old;
	bool		isnull;
	Datum		value = slot_getattr(slot, 1, &isnull);

	CHECK_FOR_INTERRUPTS();
	if (isnull)
		return true;

	old = MemoryContextSwitchTo(r->row_context);
	if (!r->started && !r->multiset)
	{
		if (r->site == NULL)
		{
			r->probe_context = AllocSetContextCreate(r->context,
													 "bloom_maintain probe",
													 ALLOCSET_SMALL_SIZES);
			r->site = bf_probe_create(att->atttypid, att->attcollation,
									  r->probe_context);
		}
		if (bf_probe(r->site, r->filter, value))
			goto done;
	}
	if (!r->started)
	{
		MemoryContextSwitchTo(r->context);
		start_adding(r, att);
		MemoryContextSwitchTo(r->row_context);
	}
	r->changed |= bf_change_add(&r->change, &r->el, value);
done:
	MemoryContextSwitchTo(old);
	MemoryContextReset(r->row_context);
	return true;
}

static void
receive_startup(DestReceiver *self, int operation, TupleDesc typeinfo)
{
}

static void
receive_nothing(DestReceiver *self)
{
}

/*
 * Lock the filter's row.  The filter, and its type: domains are possible.
 */
static Datum
lock_filter(Oid relid, const char *table, const char *name, Oid bloomfilter,
			Oid *type)
{
	Oid			text = TEXTOID;
	Datum		name_text = CStringGetTextDatum(name);
	Datum		filter;
	bool		isnull;

	execute(psprintf("SELECT filter FROM %s WHERE name OPERATOR(pg_catalog.=) $1 FOR UPDATE", table),
			&text, &name_text, 1, NULL);
	if (SPI_processed == 0)
		ereport(ERROR,
				(errcode(ERRCODE_NO_DATA_FOUND),
				 errmsg("table %s has no filter named \"%s\"", table, name),
				 check_enable_rls(relid, InvalidOid, true) == RLS_ENABLED ?
				 errhint("Insert the filter before rows that it is to hold. If there is one, a row-level security policy must let user \"%s\" see and update it.",
						 GetUserNameFromId(GetUserId(), false)) :
				 errhint("Insert the filter before rows that it is to hold.")));
	if (SPI_processed > 1)
		ereport(ERROR,
				(errcode(ERRCODE_TOO_MANY_ROWS),
				 errmsg("table %s has " UINT64_FORMAT " filters named \"%s\", not one",
						table, SPI_processed, name),
				 errhint("Delete all but one, and add a unique constraint on column \"name\".")));
	*type = SPI_gettypeid(SPI_tuptable->tupdesc, 1);
	if (getBaseType(*type) != bloomfilter)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"filter\" of table %s is of type %s, not bloomfilter",
						table, format_type_be(*type))));
	filter = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1,
						   &isnull);
	if (isnull)
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("filter \"%s\" in table %s is null", name, table),
				 errhint("Put a filter there, as in: bloomfilter(1000000).")));
	return filter;
}

Datum
bf_sql_maintain(PG_FUNCTION_ARGS)
{
	Trigger    *trigger = check_trigger(fcinfo);
	TriggerData *trigdata = (TriggerData *) fcinfo->context;
	Oid			bloomfilter = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
											  CStringGetDatum("bloomfilter"),
											  ObjectIdGetDatum(get_func_namespace(fcinfo->flinfo->fn_oid)));
	ErrorContextCallback callback;
	Oid			relid;
	const char *table;
	const char *element;
	Oid			types[2];
	Datum		values[2];
	BfHeader	h;
	AddReceiver *r;

	callback.callback = error_context;
	callback.arg = trigdata;
	callback.previous = error_context_stack;
	error_context_stack = &callback;

	if (SPI_connect() != SPI_OK_CONNECT ||
		SPI_register_trigger_data(trigdata) != SPI_OK_TD_REGISTER)
		elog(ERROR, "SPI_connect failed");

	relid = filter_table(trigger->tgargs[0]);
	table = quote_qualified_identifier(get_namespace_name(get_rel_namespace(relid)),
									   get_rel_name(relid));
	element = element_expression(trigger, trigdata->tg_relation);
	values[0] = lock_filter(relid, table, trigger->tgargs[1], bloomfilter,
							&types[0]);
	bf_fetch_header(values[0], &h);
	if (!bf_is_sized(&h))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("filter \"%s\" in table %s has no capacity",
						trigger->tgargs[1], table),
				 errhint("Put a sized filter there, as in: bloomfilter(1000000).")));

	r = palloc0(sizeof(AddReceiver));
	r->pub.receiveSlot = receive_row;
	r->pub.rStartup = receive_startup;
	r->pub.rShutdown = receive_nothing;
	r->pub.rDestroy = receive_nothing;
	r->pub.mydest = DestNone;
	r->filter = values[0];
	r->multiset = h.layout->multiset;
	r->context = CurrentMemoryContext;
	r->row_context = AllocSetContextCreate(CurrentMemoryContext,
										   "bloom_maintain row",
										   ALLOCSET_DEFAULT_SIZES);
	execute(psprintf("SELECT %s FROM %s n", element,
					 quote_identifier(trigger->tgnewtable)),
			NULL, NULL, 0, &r->pub);

	if (r->changed)
	{
		types[0] = TEXTOID;
		types[1] = bloomfilter;
		values[0] = CStringGetTextDatum(trigger->tgargs[1]);
		values[1] = bf_change_result(&r->change);
		if (execute(psprintf("UPDATE %s SET filter = $2 WHERE name OPERATOR(pg_catalog.=) $1",
							 table),
					types, values, 2, NULL) != SPI_OK_UPDATE ||
			SPI_processed != 1)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("filter \"%s\" in table %s could not be updated",
							trigger->tgargs[1], table),
					 errhint("A trigger or a rule of the table keeps it from being updated.")));
	}

	SPI_finish();
	error_context_stack = callback.previous;
	PG_RETURN_POINTER(NULL);
}
