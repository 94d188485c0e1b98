/*-------------------------------------------------------------------------
 *
 * open.c
 *	  Opening an index for somebody who asks it.
 *
 * What a query would check and lock when it reads the column is checked and
 * locked here, and remembered by the call site for as long as it holds: locks
 * until the end of the (sub)transaction, all else until the catalog changes.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/sysattr.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/index.h"
#include "catalog/pg_inherits.h"
#include "miscadmin.h"
#include "nodes/bitmapset.h"
#include "optimizer/optimizer.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rls.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#if PG_VERSION_NUM >= 170000
#define MY_LXID		(MyProc->vxid.lxid)
#else
#define MY_LXID		(MyProc->lxid)
#endif

/* Counts changes of the catalog that may concern what sites know. */
static uint64 generation = 0;

static void
catalog_changed(Datum arg, Oid relid)
{
	generation++;
}

/* ------------------------------------------------------------------------
 * Checks
 * ------------------------------------------------------------------------
 */

/*
 * Is it an index of ours that can be read here and now?
 */
static void
check_usable(Relation index)
{
	if (!bf_is_bloomfilter_index(index))
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not a bloomfilter index",
						RelationGetRelationName(index)),
				 errhint("Create one: CREATE INDEX ... USING bloomfilter (...).")));
	if (RELATION_IS_OTHER_TEMP(index))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary indexes of other sessions")));
	if (index->rd_rel->relpersistence == RELPERSISTENCE_UNLOGGED &&
		RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot access temporary or unlogged relations during recovery")));
	if (!index->rd_index->indisvalid || !index->rd_index->indislive)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is not valid",
						RelationGetRelationName(index)),
				 index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX ?
				 errdetail("Not every partition has an index that is attached to it.") :
				 errdetail("It is still being built, or building it has failed."),
				 index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX ?
				 errhint("Attach the missing ones: ALTER INDEX ... ATTACH PARTITION ....") :
				 errhint("If nobody is building it, REINDEX or drop it.")));
	if (ReindexIsProcessingIndex(RelationGetRelid(index)))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("cannot access index \"%s\" while it is being reindexed",
						RelationGetRelationName(index))));
}

/*
 * Rows of before the index may be missing in it for the transaction's oldest
 * snapshot, as the planner has it too (see indcheckxmin).
 */
bool
bf_index_is_too_new(Relation index)
{
	return index->rd_index->indcheckxmin &&
		!TransactionIdPrecedes(HeapTupleHeaderGetXmin(index->rd_indextuple->t_data),
							   TransactionXmin);
}

/*
 * May the user read all columns that the index is made from?  And all rows: an
 * answer would tell of those that a policy hides.
 */
void
bf_index_check_readable(Relation index, Relation heap)
{
	Oid			table = RelationGetRelid(heap);
	Oid			user = GetUserId();

	if (pg_class_aclcheck(table, user, ACL_SELECT) != ACLCHECK_OK)
	{
		Bitmapset  *columns = NULL;
		int			column = -1;

		for (int i = 0; i < index->rd_index->indnatts; i++)
			if (index->rd_index->indkey.values[i] != 0)
				columns = bms_add_member(columns,
										 index->rd_index->indkey.values[i] -
										 FirstLowInvalidHeapAttributeNumber);
		pull_varattnos((Node *) RelationGetIndexExpressions(index), 1, &columns);
		pull_varattnos((Node *) RelationGetIndexPredicate(index), 1, &columns);
		while ((column = bms_next_member(columns, column)) >= 0)
		{
			AttrNumber	attnum = column + FirstLowInvalidHeapAttributeNumber;

			/* 0 is the whole row */
			if (attnum == InvalidAttrNumber ?
				pg_attribute_aclcheck_all(table, user, ACL_SELECT,
										  ACLMASK_ALL) != ACLCHECK_OK :
				pg_attribute_aclcheck(table, attnum, user,
									  ACL_SELECT) != ACLCHECK_OK)
				aclcheck_error(ACLCHECK_NO_PRIV,
							   get_relkind_objtype(heap->rd_rel->relkind),
							   RelationGetRelationName(heap));
		}
		/* of no column at all: as count(*) */
		if (bms_is_empty(columns) &&
			pg_attribute_aclcheck_all(table, user, ACL_SELECT,
									  ACLMASK_ANY) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV,
						   get_relkind_objtype(heap->rd_rel->relkind),
						   RelationGetRelationName(heap));
	}
	if (check_enable_rls(table, InvalidOid, true) == RLS_ENABLED)
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("row-level security of table \"%s\" keeps you from asking index \"%s\"",
						RelationGetRelationName(heap),
						RelationGetRelationName(index)),
				 errdetail("An answer would tell of rows that are hidden from you."),
				 errhint("Ask the table.")));
}

/*
 * Lock and open an index, its table first, and check that it can be used.
 * Both are to be closed; the locks are kept.
 */
Relation
bf_index_open(Oid indexoid, Relation *heap)
{
	Oid			table = IndexGetRelation(indexoid, true);
	Relation	index;

	if (!OidIsValid(table))
	{
		char	   *name = get_rel_name(indexoid);

		if (name == NULL)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_OBJECT),
					 errmsg("index with OID %u does not exist", indexoid)));
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("\"%s\" is not an index", name)));
	}
	LockRelationOid(table, AccessShareLock);
	LockRelationOid(indexoid, AccessShareLock);

	/* it may have been dropped meanwhile */
	if (IndexGetRelation(indexoid, true) != table)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("index with OID %u does not exist", indexoid)));
	*heap = table_open(table, NoLock);
	index = RelationIdGetRelation(indexoid);
	if (!RelationIsValid(index))
		elog(ERROR, "could not open relation with OID %u", indexoid);
	check_usable(index);
	return index;
}

/* ------------------------------------------------------------------------
 * Call sites
 * ------------------------------------------------------------------------
 */
BfIndexSite *
bf_index_site(FunctionCallInfo fcinfo)
{
	static bool registered = false;
	BfIndexSite *site = fcinfo->flinfo->fn_extra;

	if (likely(site != NULL))
		return site;
	if (!registered)
	{
		CacheRegisterRelcacheCallback(catalog_changed, (Datum) 0);
		registered = true;
	}
	site = MemoryContextAllocZero(fcinfo->flinfo->fn_mcxt, sizeof(BfIndexSite));
	site->parent = fcinfo->flinfo->fn_mcxt;
	fcinfo->flinfo->fn_extra = site;
	return site;
}

static void
add_leaf(BfIndexSite *site, Oid table, Relation index)
{
	BfIndexLeaf *leaf = &site->leaves[site->nleaves++];
	BfIndexMeta meta;
	BfHeader	stored;

	leaf->table = table;
	leaf->index = InvalidOid;
	leaf->unknown = true;
	if (index == NULL)
		return;

	bf_index_read_meta(index, &meta);
	bf_index_header(&meta, &stored);
	if (!bf_same_kind(&stored, &site->h))
		bf_index_must_rebuild(index,
							  psprintf("It holds %s keys, its columns give %s.",
									   bf_kind_display(&stored),
									   bf_kind_display(&site->h)));
	leaf->index = RelationGetRelid(index);
	leaf->hash = stored.hash;
	leaf->unknown = bf_index_is_too_new(index);
}

/*
 * The partitions' tables, with the index that each has.  A partition that is
 * a foreign table has none.
 */
static void
add_partitions(BfIndexSite *site, Relation parent, Oid table)
{
	List	   *tables = find_all_inheritors(table, AccessShareLock, NULL);
	List	   *indexes = find_all_inheritors(RelationGetRelid(parent), NoLock,
											  NULL);
	int			nindexes = list_length(indexes);
	Oid		   *covered = palloc(nindexes * sizeof(Oid));
	ListCell   *cell;

	for (int i = 0; i < nindexes; i++)
		covered[i] = IndexGetRelation(list_nth_oid(indexes, i), true);
	site->leaves = MemoryContextAllocZero(site->context,
										  list_length(tables) * sizeof(BfIndexLeaf));
	foreach(cell, tables)
	{
		Oid			leaf = lfirst_oid(cell);
		int			i = 0;

		CHECK_FOR_INTERRUPTS();
		if (get_rel_relkind(leaf) == RELKIND_PARTITIONED_TABLE)
			continue;
		while (i < nindexes && covered[i] != leaf)
			i++;
		if (i < nindexes)
		{
			Relation	heap;
			Relation	index = bf_index_open(list_nth_oid(indexes, i), &heap);

			add_leaf(site, leaf, index);
			RelationClose(index);
			table_close(heap, NoLock);
		}
		else
			add_leaf(site, leaf, NULL);
	}
	pfree(covered);
}

static pg_noinline void
look_up(BfIndexSite *site, Oid indexoid)
{
	Relation	heap;
	Relation	index;
	BfIndexKey	key;

	site->index = InvalidOid;
	if (site->context == NULL)
		site->context = AllocSetContextCreate(site->parent,
											  "bloomfilter index site",
											  ALLOCSET_SMALL_SIZES);
	MemoryContextReset(site->context);
	site->nleaves = 0;

	index = bf_index_open(indexoid, &heap);
	bf_index_check_readable(index, heap);
	/* the locks have brought us up to date */
	site->generation = generation;

	bf_index_key_init(&key, index, BF_HASH_XXH3, site->context);
	site->h = key.h;
	site->partitioned = index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX;
	if (site->partitioned)
		add_partitions(site, index, RelationGetRelid(heap));
	else
	{
		site->leaves = MemoryContextAllocZero(site->context,
											  sizeof(BfIndexLeaf));
		add_leaf(site, RelationGetRelid(heap), index);
	}
	RelationClose(index);
	table_close(heap, NoLock);

	site->user = GetUserId();
	site->lxid = MY_LXID;
	site->subid = GetCurrentSubTransactionId();
	site->index = indexoid;
}

/*
 * Make the site know the index, or raise an error if the user may not ask it.
 */
void
bf_index_site_use(BfIndexSite *site, Oid indexoid)
{
	AcceptInvalidationMessages();
	if (unlikely(site->index != indexoid ||
				 site->generation != generation ||
				 site->lxid != MY_LXID ||
				 site->subid != GetCurrentSubTransactionId() ||
				 site->user != GetUserId()))
		look_up(site, indexoid);
}
