/*-------------------------------------------------------------------------
 *
 * am.c
 *	  The access method bloomfilter.
 *
 * It cannot be scanned: it holds no row's place, and the planner never takes
 * it.  bloom_index_contains and its like ask it.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/genam.h"
#include "access/reloptions.h"
#include "access/relscan.h"
#include "commands/vacuum.h"
#include "nodes/pathnodes.h"
#include "utils/memutils.h"
#include "utils/selfuncs.h"

#include <float.h>

PG_FUNCTION_INFO_V1(bf_sql_index_handler);

/* ------------------------------------------------------------------------
 * Options
 * ------------------------------------------------------------------------
 */
#define DEFAULT_FPR			0.01
#define DEFAULT_EXPANSION	2

static relopt_enum_elt_def hash_values[] =
{
	{"xxh3", BF_HASH_XXH3},
	{"blake2b", BF_HASH_BLAKE2B},
	{NULL, 0}
};

static relopt_kind
option_kind(void)
{
	static relopt_kind kind = 0;

	if (kind != 0)
		return kind;
	kind = add_reloption_kind();
	add_real_reloption(kind, "capacity",
					   "Number of distinct keys that the first layer is sized for",
					   0, 1, (double) BF_MAX_CAPACITY, AccessExclusiveLock);
	add_real_reloption(kind, "fpr",
					   "False-positive rate of all layers together",
					   DEFAULT_FPR, DBL_MIN, 1, AccessExclusiveLock);
	add_int_reloption(kind, "expansion",
					  "How many times larger than the last the next layer is",
					  DEFAULT_EXPANSION, 2, BF_MAX_EXPANSION,
					  AccessExclusiveLock);
	add_enum_reloption(kind, "hash", "Hash function of the keys",
					   hash_values, BF_HASH_XXH3,
					   "Valid values are \"xxh3\" and \"blake2b\".",
					   AccessExclusiveLock);
	return kind;
}

/* later servers have more fields in it */
#define OPTION(name, type, field) \
	{.optname = (name), .opttype = (type), \
	 .offset = offsetof(BfIndexOptions, field)}

static bytea *
bf_amoptions(Datum reloptions, bool validate)
{
	static const relopt_parse_elt fields[] = {
		OPTION("capacity", RELOPT_TYPE_REAL, capacity),
		OPTION("fpr", RELOPT_TYPE_REAL, fpr),
		OPTION("expansion", RELOPT_TYPE_INT, expansion),
		OPTION("hash", RELOPT_TYPE_ENUM, hash)
	};
	BfIndexOptions *options = (BfIndexOptions *)
		build_reloptions(reloptions, validate, option_kind(),
						 sizeof(BfIndexOptions), fields, lengthof(fields));

	/* the core knows which go together */
	if (validate && options != NULL)
	{
		BfHeader	h;
		BfError		err;
		BfStatus	status;

		bf_must(bf_header_init(&h, &bf_layout_blocked, (BfHash) options->hash,
							   NULL, 0, 0, options->fpr, 0, &err), &err);
		bf_must(bf_header_expand(&h, options->expansion, &err), &err);
		status = bf_header_resize(&h, options->capacity != 0 ?
								  options->capacity : 1, &err);
		if (status != BF_TOO_LARGE)
			bf_must(status, &err);
	}
	return (bytea *) options;
}

/*
 * An index's options, or the defaults.
 */
void
bf_index_options(Relation index, BfIndexOptions *options)
{
	if (index->rd_options != NULL)
	{
		*options = *(BfIndexOptions *) index->rd_options;
		return;
	}
	memset(options, 0, sizeof(*options));
	options->fpr = DEFAULT_FPR;
	options->expansion = DEFAULT_EXPANSION;
	options->hash = BF_HASH_XXH3;
}

/*
 * A metapage without layers.
 */
void
bf_index_meta_init(Relation index, BfIndexMeta *meta, const BfIndexKey *key,
				   double capacity)
{
	BfIndexOptions options;

	bf_index_options(index, &options);
	memset(meta, 0, sizeof(*meta));
	meta->magic = BF_META_MAGIC;
	meta->hash = options.hash;
	meta->expansion = options.expansion;
	meta->fpr = options.fpr;
	meta->capacity = (uint64) capacity;
	meta->kind = key->h.kind;
	meta->flags = key->h.not_portable ? BF_META_NOT_PORTABLE : 0;
	meta->kind_name_len = key->h.kind_name_len;
	if (key->h.kind_name_len > 0)
		memcpy(meta->kind_name, key->h.kind_name, key->h.kind_name_len);
}

/* ------------------------------------------------------------------------
 * Inserting
 * ------------------------------------------------------------------------
 */

/* What a statement keeps from one insertion to the next. */
typedef struct InsertState
{
	BfIndexKey	key;
	BfIndexMeta meta;			/* for its kind */
} InsertState;

/*
 * Keys of another kind than those that are in the index?  Their bytes may
 * differ.  The rows are welcome all the same; probes will ask for REINDEX.
 */
static void
check_kind(Relation index, InsertState *state)
{
	BfHeader	stored;

	bf_index_header(&state->meta, &stored);
	if (bf_same_kind(&stored, &state->key.h) ||
		(state->meta.flags & BF_META_MIXED) != 0)
		return;
	bf_index_mark_mixed(index);
	state->meta.flags |= BF_META_MIXED;
}

static InsertState *
insert_state(Relation index, struct IndexInfo *info)
{
	InsertState *state = info->ii_AmCache;

	if (state != NULL)
		return state;
	state = MemoryContextAlloc(info->ii_Context, sizeof(InsertState));
	bf_index_read_meta(index, &state->meta);
	bf_index_key_init(&state->key, index, (BfHash) state->meta.hash,
					  info->ii_Context);
	check_kind(index, state);
	info->ii_AmCache = state;
	return state;
}

static bool
bf_aminsert(Relation index, Datum *values, bool *isnull, ItemPointer tid,
			Relation heap, IndexUniqueCheck unique, bool unchanged,
			struct IndexInfo *info)
{
	InsertState *state = insert_state(index, info);
	BfDigest	digest;

	if (!bf_index_key_digest(&state->key, values, isnull, &digest))
		return false;
	if (state->key.el.context != NULL)
		check_kind(index, state);
	bf_index_add(index, digest);
	return false;
}

/*
 * The init fork of an unlogged index.  Its first layer is made when the first
 * key comes.
 */
static void
bf_ambuildempty(Relation index)
{
	BfIndexMeta meta;
	BfIndexKey	key;
	BfIndexOptions options;

	bf_index_options(index, &options);
	bf_index_key_init(&key, index, (BfHash) options.hash, CurrentMemoryContext);
	bf_index_meta_init(index, &meta, &key,
					   options.capacity > 0 ? options.capacity :
					   BF_DEFAULT_CAPACITY);
	bf_index_write_meta(index, &meta, INIT_FORKNUM);
}

/* ------------------------------------------------------------------------
 * Vacuum
 *
 * Keys of dead rows stay in the filter until REINDEX.
 * ------------------------------------------------------------------------
 */
static IndexBulkDeleteResult *
vacuum_stats(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (stats == NULL)
		stats = palloc0(sizeof(IndexBulkDeleteResult));
	stats->num_pages = RelationGetNumberOfBlocks(info->index);
	return stats;
}

static IndexBulkDeleteResult *
bf_ambulkdelete(IndexVacuumInfo *info, IndexBulkDeleteResult *stats,
				IndexBulkDeleteCallback callback, void *callback_state)
{
	return vacuum_stats(info, stats);
}

static IndexBulkDeleteResult *
bf_amvacuumcleanup(IndexVacuumInfo *info, IndexBulkDeleteResult *stats)
{
	if (info->analyze_only)
		return stats;
	stats = vacuum_stats(info, stats);

	/* what a partial index's rows are nobody has counted */
	stats->num_index_tuples = Max(info->num_heap_tuples, 0);
	stats->estimated_count = info->estimated_count ||
		RelationGetIndexPredicate(info->index) != NIL;
	return stats;
}

/* ------------------------------------------------------------------------
 * The rest
 * ------------------------------------------------------------------------
 */

/*
 * Without a way to scan it the planner does not get as far as to ask.
 */
static void
bf_amcostestimate(PlannerInfo *root, IndexPath *path, double loop_count,
				  Cost *startup, Cost *total, Selectivity *selectivity,
				  double *correlation, double *pages)
{
	*startup = *total = 1.0e10;
	*selectivity = 1;
	*correlation = 0;
	*pages = path->indexinfo->pages;
}

static void refuse_scan(Relation index) __attribute__((noreturn));

static void
refuse_scan(Relation index)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("a bloomfilter index cannot be scanned"),
			 errhint("Ask it with bloom_index_contains.")));
}

static IndexScanDesc
bf_ambeginscan(Relation index, int nkeys, int norderbys)
{
	refuse_scan(index);
}

static void
bf_amrescan(IndexScanDesc scan, ScanKey keys, int nkeys, ScanKey orderbys,
			int norderbys)
{
	refuse_scan(scan->indexRelation);
}

static void
bf_amendscan(IndexScanDesc scan)
{
}

static char *
bf_ambuildphasename(int64 phase)
{
	switch (phase)
	{
		case BF_PHASE_SCAN:
			return "scanning table";
		case BF_PHASE_SET:
			return "setting bits";
		case BF_PHASE_WRITE:
			return "writing pages to WAL";
		default:
			return phase == 1 ? "initializing" : NULL;
	}
}

/*
 * An operator class has no operators and no support functions.
 */
static bool
bf_amvalidate(Oid opclass)
{
	return true;
}

bool
bf_is_bloomfilter_index(Relation index)
{
	return (index->rd_rel->relkind == RELKIND_INDEX ||
			index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX) &&
		index->rd_indam->aminsert == bf_aminsert;
}

/*
 * amsummarizing (16 and later) would let updates be HOT that change a key.
 * But REINDEX skips all versions of a row but the last in such a chain, and
 * does not tell older snapshots, which may see them still.
 */
Datum
bf_sql_index_handler(PG_FUNCTION_ARGS)
{
	IndexAmRoutine *am = makeNode(IndexAmRoutine);

	am->amcanmulticol = true;
	am->amoptionalkey = true;
	am->ampredlocks = true;
	am->amparallelvacuumoptions = VACUUM_OPTION_NO_PARALLEL;
	am->amkeytype = InvalidOid;

	am->ambuild = bf_ambuild;
	am->ambuildempty = bf_ambuildempty;
	am->aminsert = bf_aminsert;
	am->ambulkdelete = bf_ambulkdelete;
	am->amvacuumcleanup = bf_amvacuumcleanup;
	am->amcostestimate = bf_amcostestimate;
	am->amoptions = bf_amoptions;
	am->ambuildphasename = bf_ambuildphasename;
	am->amvalidate = bf_amvalidate;
	am->ambeginscan = bf_ambeginscan;
	am->amrescan = bf_amrescan;
	am->amendscan = bf_amendscan;

	PG_RETURN_POINTER(am);
}
