/*-------------------------------------------------------------------------
 *
 * catalog.c
 *	  What the view bloom_filters tells about each column and each index.
 *
 * The view finds them in the catalog; these functions look inside.  A look at
 * everything in a database must not fail because of one table, wait for one,
 * take long over one, or run what its owner wrote with the rights of whoever
 * looks.  So a table that is locked is passed over, a few pages stand for all
 * of a large one, no view, foreign table or row-level policy is evaluated, and
 * an error becomes a warning.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "optimizer/plancat.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/rls.h"
#include "utils/syscache.h"

PG_FUNCTION_INFO_V1(bf_sql_sample_column);
PG_FUNCTION_INFO_V1(bf_sql_sample_index);

/* Pages of a table that are read, about. */
#define SAMPLE_PAGES	20

/* Of larger indexes nobody counts the bits in passing: it reads all pages. */
#define MAX_INDEX_BYTES	(INT64CONST(64) * 1024 * 1024)

/*
 * A row of the answer.
 */
typedef struct Sample
{
	int64		rows;			/* of the table; -1: unknown */
	int64		bytes;			/* -1: unknown */
	int64		filters;		/* looked at; -1: none could be */
	double		fill;			/* sums over these */
	double		fpr;
	int64		overfilled;		/* of these; -1: does not apply */
} Sample;

typedef void (*SampleFn) (FunctionCallInfo fcinfo, Sample *s);

/* ------------------------------------------------------------------------
 * Columns
 * ------------------------------------------------------------------------
 */

static Oid
my_namespace(FunctionCallInfo fcinfo)
{
	return get_func_namespace(fcinfo->flinfo->fn_oid);
}

/*
 * Does the column hold filters, or arrays of filters?
 */
static void
check_type(FunctionCallInfo fcinfo, Relation rel, AttrNumber attnum,
		   bool *is_array)
{
	Oid			wanted = GetSysCacheOid2(TYPENAMENSP, Anum_pg_type_oid,
										 CStringGetDatum("bloomfilter"),
										 ObjectIdGetDatum(my_namespace(fcinfo)));
	Oid			type = InvalidOid;
	Oid			element;

	if (attnum > 0 && attnum <= RelationGetNumberOfAttributes(rel) &&
		!TupleDescAttr(RelationGetDescr(rel), attnum - 1)->attisdropped)
		type = getBaseType(TupleDescAttr(RelationGetDescr(rel), attnum - 1)->atttypid);
	element = get_element_type(type);
	*is_array = OidIsValid(element);
	if (OidIsValid(element))
		type = getBaseType(element);
	if (!OidIsValid(wanted) || type != wanted)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("column %d of relation \"%s\" holds no filters",
						attnum, RelationGetRelationName(rel))));
}

static void
add_filter(Sample *s, Datum value)
{
	BfHeader	h;

	bf_fetch_header(value, &h);
	s->filters++;
	s->fill += bf_fill(&h);
	s->fpr += bf_expected_fpr(&h);
	s->overfilled += bf_overfilled(&h);
}

/*
 * Read some pages, or all of a small table.  Filters are only asked for their
 * headers; arrays would have to be read whole, and are weighed alone.
 */
static void
sample_pages(Relation rel, AttrNumber attnum, bool is_array, Sample *s)
{
	BlockNumber npages = RelationGetNumberOfBlocks(rel);
	bool		whole = npages <= SAMPLE_PAGES;
	StringInfoData sql;
	int64		bytes = 0;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s FROM ONLY %s",
					 quote_identifier(NameStr(TupleDescAttr(RelationGetDescr(rel),
															attnum - 1)->attname)),
					 quote_qualified_identifier(get_namespace_name(RelationGetNamespace(rel)),
												RelationGetRelationName(rel)));
	if (!whole)					/* the same pages every time */
		appendStringInfo(&sql, " TABLESAMPLE pg_catalog.system (%.10f) REPEATABLE (0)",
						 100.0 * SAMPLE_PAGES / npages);

	if (SPI_connect() != SPI_OK_CONNECT)
		elog(ERROR, "SPI_connect failed");
	if (SPI_execute(sql.data, true, 0) != SPI_OK_SELECT)
		elog(ERROR, "SPI_execute failed: %s", sql.data);
	if (!is_array)
		s->filters = s->overfilled = 0;
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[i],
										  SPI_tuptable->tupdesc, 1, &isnull);

		CHECK_FOR_INTERRUPTS();
		if (isnull)
			continue;
		bytes += toast_datum_size(value);
		if (!is_array)
			add_filter(s, value);
	}
	if (whole)
	{
		s->rows = (int64) SPI_processed;
		s->bytes = bytes;
	}
	else if (SPI_processed > 0)
	{
		if (s->rows < 0)		/* never analyzed */
			s->rows = (int64) ((double) SPI_processed * npages / SAMPLE_PAGES);
		s->bytes = (int64) ((double) bytes * s->rows / SPI_processed);
	}
	SPI_finish();
}

/*
 * What the planner takes the number of rows for; -1 if it only guesses.
 */
static int64
estimated_rows(Relation rel)
{
	BlockNumber pages;
	double		tuples = rel->rd_rel->reltuples;
	double		allvisfrac;

	if (tuples >= 0 && RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind))
		estimate_rel_size(rel, NULL, &pages, &tuples, &allvisfrac);
	return (int64) tuples;
}

/*
 * Can its pages be read, here and now, and by this user?  Temporary tables of
 * other sessions are in their memory; policies are somebody else's code.
 */
static bool
is_readable(Relation rel)
{
	return RELKIND_HAS_TABLE_AM(rel->rd_rel->relkind) &&
		RelationIsPopulated(rel) &&
		!RELATION_IS_OTHER_TEMP(rel) &&
		!(rel->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED &&
		  RecoveryInProgress()) &&
		check_enable_rls(RelationGetRelid(rel), InvalidOid, true) != RLS_ENABLED;
}

static void
sample_column(FunctionCallInfo fcinfo, Sample *s)
{
	Oid			relid = PG_GETARG_OID(0);
	AttrNumber	attnum = PG_GETARG_INT16(1);
	Relation	rel;
	bool		is_array;

	if (!ConditionalLockRelationOid(relid, AccessShareLock))
		return;
	rel = try_relation_open(relid, NoLock);
	if (rel == NULL)
		return;
	check_type(fcinfo, rel, attnum, &is_array);
	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) != ACLCHECK_OK &&
		pg_attribute_aclcheck(relid, attnum, GetUserId(), ACL_SELECT) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV,
					   get_relkind_objtype(rel->rd_rel->relkind),
					   RelationGetRelationName(rel));
	if (rel->rd_rel->relkind == RELKIND_FOREIGN_TABLE)
		s->rows = estimated_rows(rel);
	else if (is_readable(rel))
	{
		s->rows = estimated_rows(rel);
		sample_pages(rel, attnum, is_array, s);
	}
	relation_close(rel, NoLock);
}

/* ------------------------------------------------------------------------
 * Indexes
 * ------------------------------------------------------------------------
 */

/*
 * bloom_index_info of this extension, by its name: the type knows nothing of
 * the index.
 */
static Oid
index_info_function(FunctionCallInfo fcinfo)
{
	Oid			argtypes[1] = {REGCLASSOID};
	Oid			function;

	function = GetSysCacheOid3(PROCNAMEARGSNSP, Anum_pg_proc_oid,
							   CStringGetDatum("bloom_index_info"),
							   PointerGetDatum(buildoidvector(argtypes, 1)),
							   ObjectIdGetDatum(my_namespace(fcinfo)));
	/* not one that somebody else has put there */
	if (OidIsValid(function) &&
		getExtensionOfObject(ProcedureRelationId, function) !=
		getExtensionOfObject(ProcedureRelationId, fcinfo->flinfo->fn_oid))
		function = InvalidOid;
	return function;
}

static double
float8_column(HeapTupleHeader tuple, const char *name)
{
	bool		isnull;
	Datum		value = GetAttributeByName(tuple, name, &isnull);

	return isnull ? 0 : DatumGetFloat8(value);
}

static void
sample_index(FunctionCallInfo fcinfo, Sample *s)
{
	Oid			indexoid = PG_GETARG_OID(0);
	Oid			table = IndexGetRelation(indexoid, true);
	Oid			function = index_info_function(fcinfo);
	Relation	rel;
	Relation	index;
	char	   *am;

	if (!OidIsValid(table) ||
		!ConditionalLockRelationOid(table, AccessShareLock) ||
		!ConditionalLockRelationOid(indexoid, AccessShareLock))
		return;
	rel = try_relation_open(table, NoLock);
	index = rel == NULL ? NULL : try_relation_open(indexoid, NoLock);
	if (index == NULL)
		return;
	am = get_am_name(index->rd_rel->relam);
	if (am == NULL || strcmp(am, "bloomfilter") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a bloomfilter index",
						RelationGetRelationName(index))));
	if (is_readable(rel))
	{
		s->rows = estimated_rows(rel);
		s->bytes = (int64) RelationGetNumberOfBlocks(index) * BLCKSZ;
		if (OidIsValid(function) && s->bytes <= MAX_INDEX_BYTES &&
			index->rd_index->indisvalid && index->rd_index->indislive)
		{
			HeapTupleHeader info = DatumGetHeapTupleHeader(OidFunctionCall1(function,
																		   ObjectIdGetDatum(indexoid)));

			s->filters = 1;
			s->fill = float8_column(info, "fill");
			s->fpr = float8_column(info, "expected_fpr");
		}
	}
	relation_close(index, NoLock);
	relation_close(rel, NoLock);
}

/* ------------------------------------------------------------------------
 * Both
 * ------------------------------------------------------------------------
 */

/*
 * Take a sample in a subtransaction, which is rolled back in any case: nothing
 * was written, and so the locks are given back.
 */
static void
take_sample(FunctionCallInfo fcinfo, SampleFn sample, Sample *s)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	Sample		taken = *s;
	ErrorData  *volatile err = NULL;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		sample(fcinfo, &taken);
		*s = taken;
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(context);
		err = CopyErrorData();
		FlushErrorState();
	}
	PG_END_TRY();
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;

	if (err != NULL && err->sqlerrcode == ERRCODE_QUERY_CANCELED)
		ReThrowError(err);
	if (err != NULL)
	{
		char	   *name = get_rel_name(PG_GETARG_OID(0));

		ereport(WARNING,
				(errcode(err->sqlerrcode),
				 errmsg("could not look into relation \"%s\": %s",
						name != NULL ? name : "?", err->message)));
	}
}

static Datum
sample_row(FunctionCallInfo fcinfo, SampleFn sample)
{
	Sample		s = {-1, -1, -1, 0, 0, -1};
	TupleDesc	tupdesc;
	Datum		values[6];
	bool		nulls[6];
	int			n = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	take_sample(fcinfo, sample, &s);

	nulls[n] = s.rows < 0;
	values[n++] = Int64GetDatum(s.rows);
	nulls[n] = s.bytes < 0;
	values[n++] = Int64GetDatum(s.bytes);
	nulls[n] = s.filters < 0;
	values[n++] = Int64GetDatum(s.filters);
	nulls[n] = s.filters <= 0;
	values[n++] = Float8GetDatum(s.fill / (double) s.filters);
	nulls[n] = s.filters <= 0;
	values[n++] = Float8GetDatum(s.fpr / (double) s.filters);
	nulls[n] = s.overfilled < 0;
	values[n++] = Int64GetDatum(s.overfilled);
	Assert(n == lengthof(values));
	return HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls));
}

/*
 * bloom_sample_column(relation, column): rows, bytes, and what some of the
 * filters say.  NULLs where nobody can tell.
 */
Datum
bf_sql_sample_column(PG_FUNCTION_ARGS)
{
	return sample_row(fcinfo, sample_column);
}

/*
 * bloom_sample_index(index): the same of an index.
 */
Datum
bf_sql_sample_index(PG_FUNCTION_ARGS)
{
	return sample_row(fcinfo, sample_index);
}
