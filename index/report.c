/*-------------------------------------------------------------------------
 *
 * report.c
 *	  What an index says about itself, the filter that it is, and whether it
 *	  is sound.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/index.h"
#if PG_VERSION_NUM >= 160000
#include "catalog/pg_class.h"
#endif
#include "funcapi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "storage/predicate.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/snapmgr.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bf_sql_index_info);
PG_FUNCTION_INFO_V1(bf_sql_index_filter);
PG_FUNCTION_INFO_V1(bf_sql_index_check);

/* ------------------------------------------------------------------------
 * Reading all pages
 * ------------------------------------------------------------------------
 */

/*
 * Open the index, which must not be partitioned.
 */
static Relation
open_single(Oid indexoid, Relation *heap)
{
	Relation	index = bf_index_open(indexoid, heap);

	if (index->rd_rel->relkind == RELKIND_PARTITIONED_INDEX)
		ereport(ERROR,
				(errcode(ERRCODE_WRONG_OBJECT_TYPE),
				 errmsg("index \"%s\" is partitioned",
						RelationGetRelationName(index)),
				 errhint("Ask the indexes of its partitions: SELECT relid FROM pg_partition_tree(%s) WHERE isleaf.",
						 quote_literal_cstr(bf_index_name(index)))));
	return index;
}

/*
 * Everything on a page that the filter's bits have to agree with.
 */
static void
check_page(Relation index, Page page, BlockNumber block,
		   const BfIndexLayer *layer, BlockNumber number)
{
	const PageHeader header = (PageHeader) page;
	uint64		nset = bf_popcount((uint8 *) page + BF_PAGE_DATA,
								   BLCKSZ - BF_PAGE_DATA);
	uint64		nblocks = Min(layer->nblocks - (uint64) number * BF_PAGE_BLOCKS,
							  BF_PAGE_BLOCKS);
	Size		used = BF_PAGE_DATA + nblocks * BF_BLOCK_BYTES;

	if (header->pd_upper != BLCKSZ || header->pd_special != BLCKSZ ||
		(header->pd_lower != BLCKSZ &&
		 (header->pd_lower != BF_PAGE_DATA || nset > 0)))
		bf_index_corrupted(index, block, "Its page header is wrong.");
	if (nset != BfPageGetInfo(page)->nset)
		bf_index_corrupted(index, block,
						   psprintf("It has " UINT64_FORMAT " bits set and says %u.",
									nset, BfPageGetInfo(page)->nset));
	if (bf_popcount((uint8 *) page + used, BLCKSZ - used) > 0)
		bf_index_corrupted(index, block,
						   "It has bits set behind the layer's end.");
}

/*
 * Read a layer: how many bits are set, and where wanted the bits, which
 * include those of all keys that were there before.
 */
static uint64
read_layer(Relation index, const BfIndexLayer *layer, unsigned i, uint8 *bits,
		   bool check)
{
	BufferAccessStrategy strategy = GetAccessStrategy(BAS_BULKREAD);
	BlockNumber npages = bf_layer_npages(layer);
	uint64		nset = 0;

	for (BlockNumber number = 0; number < npages; number++)
	{
		BlockNumber block = layer->first + number;
		Buffer		buffer;
		Page		page;

		CHECK_FOR_INTERRUPTS();
		buffer = ReadBufferExtended(index, MAIN_FORKNUM, block, RBM_NORMAL,
									strategy);
		LockBuffer(buffer, BUFFER_LOCK_SHARE);
		page = BufferGetPage(buffer);
		bf_index_check_page(index, page, block, i, number);
		if (check)
			check_page(index, page, block, layer, number);
		nset += BfPageGetInfo(page)->nset;
		if (bits != NULL)
		{
			uint64		done = (uint64) number * BF_PAGE_BLOCKS;

			memcpy(bits + done * BF_BLOCK_BYTES, (uint8 *) page + BF_PAGE_DATA,
				   Min(layer->nblocks - done, BF_PAGE_BLOCKS) * BF_BLOCK_BYTES);
		}
		UnlockReleaseBuffer(buffer);
	}
	FreeAccessStrategy(strategy);
	return nset;
}

/*
 * The filter's header, its layers' entries in the caller's memory.  Layers
 * that hold nothing are no part of it, as in a value.
 */
static void
filter_header(const BfIndexMeta *meta, BfHeader *h, uint8 *entries)
{
	bf_index_header(meta, h);
	h->layers = entries;
	for (unsigned i = 0; i < meta->nlayers; i++)
	{
		BfHeader	layer;

		if (meta->layers[i].nset == 0)
			continue;
		bf_index_layer_header(meta, i, &layer);
		if (h->nlayers == 0)
		{
			h->shape = layer.shape;
			h->capacity = layer.capacity;
		}
		bf_write_layer_entry(&layer, entries + h->nlayers * BF_LAYER_ENTRY);
		h->nlayers++;
		h->nset += layer.nset;
	}
}

/* ------------------------------------------------------------------------
 * bloom_index_info(index)
 * ------------------------------------------------------------------------
 */

/*
 * How many rows the table has at most: as VACUUM or ANALYZE has counted them, or
 * as statistics have them with what has come since.  -1 if nobody knows, as of
 * a partial index's rows.
 */
static double
count_rows(Relation index, Relation heap)
{
	PgStat_StatTabEntry *stats = pgstat_fetch_stat_tabentry(RelationGetRelid(heap));
	double		rows = heap->rd_rel->reltuples;

	if (rows < 0 || RelationGetIndexPredicate(index) != NIL)
		return -1;
	if (stats == NULL)
		return rows;
#if PG_VERSION_NUM >= 160000
	return Max(rows, (double) stats->live_tuples);
#else
	return Max(rows, (double) stats->n_live_tuples);
#endif
}

Datum
bf_sql_index_info(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	index = open_single(PG_GETARG_OID(0), &heap);
	BfIndexMeta meta;
	TupleDesc	tupdesc;
	BfHeader	h;
	uint8		entries[BF_MAX_LAYERS * BF_LAYER_ENTRY];
	uint64		capacity = 0;
	uint64		nbits = 0;
	double		rows;
	double		keys;
	Datum		values[13];
	bool		nulls[13] = {0};
	int			n = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");
	bf_index_check_readable(index, heap);
	bf_index_read_meta(index, &meta);
	for (unsigned i = 0; i < meta.nlayers; i++)
	{
		BfIndexLayer *layer = &meta.layers[i];

		layer->nset = read_layer(index, layer, i, NULL, false);
		capacity += layer->capacity;
		nbits += layer->nblocks * BF_BLOCK_BITS;
	}
	filter_header(&meta, &h, entries);
	keys = bf_cardinality(&h);

	rows = count_rows(index, heap);

	values[n++] = CStringGetTextDatum(bf_hash_name(h.hash));
	values[n++] = CStringGetTextDatum(h.not_portable ?
									  psprintf("%s (not portable)", bf_kind_display(&h)) :
									  bf_kind_display(&h));
	values[n++] = Int64GetDatum((int64) (meta.nlayers > 0 ? capacity :
										 meta.capacity));
	values[n++] = Float8GetDatum(meta.fpr);
	values[n++] = Int32GetDatum(meta.expansion);
	values[n++] = Int32GetDatum(meta.nlayers);
	values[n++] = Int64GetDatum((int64) nbits);
	values[n++] = Int64GetDatum((int64) h.nset);
	values[n++] = Float8GetDatum(nbits > 0 ? (double) h.nset / (double) nbits : 0);
	values[n++] = Float8GetDatum(keys);
	values[n++] = Float8GetDatum(bf_expected_fpr(&h));
	nulls[n] = rows < 0;
	values[n++] = Float8GetDatum(keys > rows ? 1 - rows / keys : 0);
	values[n++] = Int64GetDatum((int64) RelationGetNumberOfBlocks(index) * BLCKSZ);
	Assert(n == lengthof(values));

	RelationClose(index);
	table_close(heap, NoLock);
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/* ------------------------------------------------------------------------
 * bloom_index_filter(index)
 * ------------------------------------------------------------------------
 */

/*
 * The index as a value: the same layers, the same bits.
 */
Datum
bf_sql_index_filter(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	index = open_single(PG_GETARG_OID(0), &heap);
	BfIndexMeta meta;
	BfHeader	h;
	BfFilter	f;
	uint8		entries[BF_MAX_LAYERS * BF_LAYER_ENTRY];
	BloomFilter *result;
	uint64		size = 0;
	Size		header;

	bf_index_check_readable(index, heap);
	if (bf_index_is_too_new(index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is newer than what this transaction may see",
						RelationGetRelationName(index)),
				 errdetail("Rows that the transaction can see may be missing in it."),
				 errhint("Ask again in a new transaction.")));
	if (IsolationIsSerializable())
		PredicateLockRelation(index, GetActiveSnapshot());
	pgstat_count_index_scan(index);
	bf_index_read_meta(index, &meta);
	if ((meta.flags & BF_META_MIXED) != 0)
		bf_index_must_rebuild(index, BF_MIXED_DETAIL);
	for (unsigned i = 0; i < meta.nlayers; i++)
	{
		meta.layers[i].nset = read_layer(index, &meta.layers[i], i, NULL, false);
		if (meta.layers[i].nset > 0)
			size += meta.layers[i].nblocks * BF_BLOCK_BYTES;
	}
	if (size > BF_MAX_BITS / 8)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the filter of index \"%s\" takes " UINT64_FORMAT " MiB, more than the limit of %d MiB for a value",
						RelationGetRelationName(index), size / 1048576,
						(int) (BF_MAX_BITS / 8 / 1048576))));

	filter_header(&meta, &h, entries);
	if (h.nlayers == 0)
	{
		BfError		err;

		bf_must(bf_header_resize(&h, (double) meta.capacity, &err), &err);
		result = bf_make_empty(&h);
	}
	else
	{
		uint8	   *bits;

		header = VARHDRSZ + bf_header_size(&h);
		result = palloc(header + size);
		SET_VARSIZE(result, header + size);
		bits = (uint8 *) result + header;
		for (unsigned i = 0; i < meta.nlayers; i++)
		{
			BfIndexLayer *layer = &meta.layers[i];

			if (layer->nset == 0)
				continue;
			layer->nset = read_layer(index, layer, i, bits, true);
			bits += layer->nblocks * BF_BLOCK_BYTES;
		}
		/* rows may have come while it was read */
		filter_header(&meta, &h, entries);
		f.h = h;
		f.bits = (uint8 *) result + header;
		f.nbytes = size;
		bf_seal(&f);
		bf_write_header(&f.h, (uint8 *) VARDATA(result));
	}
	RelationClose(index);
	table_close(heap, NoLock);
	PG_RETURN_POINTER(result);
}

/* ------------------------------------------------------------------------
 * bloom_index_check(index, table)
 * ------------------------------------------------------------------------
 */
static void
check_structure(Relation index, const BfIndexMeta *meta)
{
	BlockNumber have = RelationGetNumberOfBlocks(index);
	BlockNumber next = BF_META_BLOCK + 1;
	BfIndexKey	key;
	BfHeader	stored;

	bf_index_key_init(&key, index, (BfHash) meta->hash, CurrentMemoryContext);
	bf_index_header(meta, &stored);
	if ((meta->flags & BF_META_MIXED) != 0)
		bf_index_must_rebuild(index, BF_MIXED_DETAIL);
	if (!bf_same_kind(&stored, &key.h))
		bf_index_must_rebuild(index,
							  psprintf("It holds %s keys, its columns give %s.",
									   bf_kind_display(&stored),
									   bf_kind_display(&key.h)));

	for (unsigned i = 0; i < meta->nlayers; i++)
	{
		const BfIndexLayer *layer = &meta->layers[i];

		if (layer->first != next || layer->capacity == 0)
			bf_index_corrupted(index, BF_META_BLOCK,
							   psprintf("Layer %u starts at block %u, not %u.",
										i + 1, layer->first, next));
		next += bf_layer_npages(layer);
		if (next > have)
			bf_index_corrupted(index, BF_META_BLOCK,
							   psprintf("Layer %u ends at block %u of %u.",
										i + 1, next, have));
		(void) read_layer(index, layer, i, NULL, true);
	}
}

typedef struct CheckState
{
	BfIndexKey	key;
	Relation	heap;
} CheckState;

static void
check_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			   bool alive, void *arg)
{
	CheckState *state = arg;
	BfDigest	digest;

	if (!bf_index_key_digest(&state->key, values, isnull, &digest) ||
		bf_index_test(index, digest))
		return;
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("the key of row (%u,%u) of table \"%s\" is missing in index \"%s\"",
					ItemPointerGetBlockNumber(tid),
					ItemPointerGetOffsetNumber(tid),
					RelationGetRelationName(state->heap),
					RelationGetRelationName(index)),
			 errhint("Rebuild it: REINDEX INDEX %s.", bf_index_name(index))));
}

/*
 * Is every row that a new transaction sees in the index?
 */
static void
check_rows(Relation index, Relation heap, const BfIndexMeta *meta)
{
	CheckState	state;
	struct IndexInfo *info = BuildIndexInfo(index);
	Snapshot	snapshot = RegisterSnapshot(GetTransactionSnapshot());
	TableScanDesc scan;

	if (IsolationUsesXactSnapshot() && bf_index_is_too_new(index))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("index \"%s\" is newer than what this transaction may see",
						RelationGetRelationName(index)),
				 errhint("Check it in a new transaction.")));
	state.heap = heap;
	bf_index_key_init(&state.key, index, (BfHash) meta->hash,
					  CurrentMemoryContext);
	/* as CREATE INDEX CONCURRENTLY scans: rows by the snapshot */
	info->ii_Concurrent = true;
	scan = table_beginscan_strat(heap, snapshot, 0, NULL, true, true);
	table_index_build_scan(heap, index, info, true, false, check_callback,
						   &state, scan);
	UnregisterSnapshot(snapshot);
}

Datum
bf_sql_index_check(PG_FUNCTION_ARGS)
{
	Relation	heap;
	Relation	index = open_single(PG_GETARG_OID(0), &heap);
	BfIndexMeta meta;
	Oid			user;
	int			security;
	int			nestlevel;

#if PG_VERSION_NUM >= 160000
	if (!object_ownercheck(RelationRelationId, RelationGetRelid(index),
						   GetUserId()))
#else
	if (!pg_class_ownercheck(RelationGetRelid(index), GetUserId()))
#endif
		aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_INDEX,
					   RelationGetRelationName(index));

	/* functions in the index run as the table's owner, with nothing to gain */
	GetUserIdAndSecContext(&user, &security);
	SetUserIdAndSecContext(heap->rd_rel->relowner,
						   security | SECURITY_RESTRICTED_OPERATION);
	nestlevel = NewGUCNestLevel();
#if PG_VERSION_NUM >= 170000
	RestrictSearchPath();
#endif

	bf_index_read_meta(index, &meta);
	check_structure(index, &meta);
	if (PG_GETARG_BOOL(1))
		check_rows(index, heap, &meta);

	AtEOXact_GUC(false, nestlevel);
	SetUserIdAndSecContext(user, security);
	RelationClose(index);
	table_close(heap, NoLock);
	PG_RETURN_VOID();
}
