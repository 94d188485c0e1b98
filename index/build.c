/*-------------------------------------------------------------------------
 *
 * build.c
 *	  CREATE INDEX and REINDEX.
 *
 * The filter is built in memory, and grows there by layers as it does later,
 * as long as it fits maintenance_work_mem.  What goes beyond that is put into
 * temporary files, as digests: a file for each range of a layer's blocks, so
 * that the blocks of one range after the other are made in memory and written
 * in order.  (A full sort would only add to the cost.)  A sketch counts the
 * distinct ones among them, and one layer for all is made at the end.
 *
 * Where the server would let workers build a btree, they take a share of the
 * table here, too.  Each sets bits in a filter of its own, which are united
 * then: it is reading the table that takes the time.
 *
 * How large the first layer is to be: as the option capacity says, but not
 * below what ANALYZE has found in the columns; without either, as many keys as
 * the table has rows.  That can be far too many: it is halved then for as long
 * as what is in it fits.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/parallel.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "catalog/index.h"
#include "catalog/pg_statistic.h"
#include "commands/progress.h"
#include "commands/tablespace.h"
#include "executor/instrument.h"
#include "lib/hyperloglog.h"
#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "optimizer/plancat.h"
#include "pgstat.h"
#include "storage/buffile.h"
#include "storage/spin.h"
#include "tcop/tcopprot.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

#include <math.h>

/* Digests that are added together, so that their blocks are prefetched. */
#define QUEUE_LENGTH	256

/* Halvings that an oversized first layer can take. */
#define MAX_FOLDS		8

/* What a sketch of this size misses is below 0.5%. */
#define SKETCH_BITS		16
#define SKETCH_MARGIN	1.01

/* What workers and leader share. */
typedef struct SharedBuild
{
	Oid			heap;
	Oid			index;
	bool		concurrent;
	BfHash		hash;
	BfShape		shape;			/* of the only layer */
	uint64		capacity;
	Size		slot;			/* bytes of a worker's bits */
	pg_atomic_uint32 full;		/* is one layer too little? */

	slock_t		mutex;
	double		rows;
	double		nkeys;
	bool		broken_hot_chain;
} SharedBuild;

#define KEY_SHARED		UINT64CONST(0xBF00000000000001)
#define KEY_SCAN		UINT64CONST(0xBF00000000000002)
#define KEY_BITS		UINT64CONST(0xBF00000000000003)
#define KEY_QUERY		UINT64CONST(0xBF00000000000004)
#define KEY_BUFFERS		UINT64CONST(0xBF00000000000005)
#define KEY_WAL			UINT64CONST(0xBF00000000000006)

typedef struct BuildState
{
	Relation	index;
	BfIndexKey	key;
	BfIndexMeta meta;			/* its layers are those below */
	MemoryContext context;
	double		nkeys;			/* read so far */
	double		rows;			/* of the table, about */

	BfFilter	layers[BF_MAX_LAYERS];	/* in memory */
	bool		may_fold;
	Size		used;			/* bytes of the layers */
	Size		budget;
	SharedBuild *shared;		/* NULL: no workers */
	double		patience;		/* additions until the last layer may be full */

	BfDigest	queue[QUEUE_LENGTH];
	uint32		queued;

	BufFile   **files;			/* NULL: all is in memory */
	int			file_bits;		/* log2 of their number */
	hyperLogLogState sketch;	/* of what is in them */
} BuildState;

/* ------------------------------------------------------------------------
 * Sizes
 * ------------------------------------------------------------------------
 */

/*
 * How many distinct values ANALYZE has found in a column, or 0.
 */
static double
distinct_of_column(Relation heap, AttrNumber attnum, double rows)
{
	HeapTuple	tuple;
	double		n;

	if (attnum == InvalidAttrNumber)
		return 0;				/* an expression */
	tuple = SearchSysCache3(STATRELATTINH,
							ObjectIdGetDatum(RelationGetRelid(heap)),
							Int16GetDatum(attnum), BoolGetDatum(false));
	if (!HeapTupleIsValid(tuple))
		return 0;
	n = ((Form_pg_statistic) GETSTRUCT(tuple))->stadistinct;
	ReleaseSysCache(tuple);
	return n >= 0 ? n : -n * rows;
}

/*
 * How many keys are there to be, and rows?  *known is set if it is more than a
 * guess.
 */
static double
estimate_keys(Relation heap, struct IndexInfo *info, double *nrows, bool *known)
{
	BlockNumber pages;
	double		rows;
	double		allvisible;
	double		n = 1;

	/* what is empty now is no guess at ten pages, as it is to the planner */
	estimate_rel_size(heap, NULL, &pages, &rows, &allvisible);
	if (RelationGetNumberOfBlocks(heap) == 0)
		rows = 0;
	*nrows = rows;
	*known = info->ii_Predicate == NIL;
	for (int i = 0; *known && i < info->ii_NumIndexKeyAttrs; i++)
	{
		double		distinct = distinct_of_column(heap,
												  info->ii_IndexAttrNumbers[i],
												  rows);

		*known = distinct > 0;
		n *= distinct;
	}
	return ceil(*known ? fmin(n, fmax(rows, 1)) : rows);
}

/*
 * How many keys fit into all layers that there can be?  At the lowest rates
 * they are few.
 */
static double
most_keys(const BfIndexMeta *meta)
{
	double		sum = 0;
	double		capacity = (double) meta->capacity;
	BfHeader	h;
	BfHeader	layer;
	BfError		err;

	bf_index_header(meta, &h);
	h.capacity = 1;
	for (unsigned i = 0; bf_plan_layer(&h, i, NULL, &layer, &err) == BF_OK; i++)
	{
		sum += capacity;
		capacity *= meta->expansion;
	}
	return sum;
}

/* ------------------------------------------------------------------------
 * In memory
 * ------------------------------------------------------------------------
 */

/*
 * Additions after which it is worth while to look whether the last layer is
 * full.
 */
static void
be_patient(BuildState *state)
{
	const BfHeader *last = &state->layers[state->meta.nlayers - 1].h;

	state->patience = fmax((double) last->capacity - bf_cardinality(last),
						   fmax((double) last->capacity / 256, 1));
}

static void
allocate_layer(BuildState *state, const BfHeader *layer)
{
	BfFilter   *f = &state->layers[state->meta.nlayers];
	Size		size = bf_payload_size(layer);
	char	   *memory;

	memory = MemoryContextAllocExtended(state->context,
										size + BF_BLOCK_BYTES,
										MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);
	f->h = *layer;
	f->bits = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, memory);
	f->nbytes = size;
	state->used += size;
	bf_index_append_layer(&state->meta, layer);
	be_patient(state);
}

/*
 * From here on digests go into files.  There are enough of them that ranges
 * of blocks fit even if there are more keys than one would think.
 */
static void
start_files(BuildState *state, Size expected)
{
	Size		most = Max(state->budget / (2 * BLCKSZ), 2);
	Size		wanted = Max(8 * (expected / state->budget + 1), 16);
	MemoryContext old = MemoryContextSwitchTo(state->context);

	state->file_bits = 1;
	while (state->file_bits < 12 &&
		   (Size) 2 << state->file_bits <= Min(most, wanted))
		state->file_bits++;
	PrepareTempTablespaces();
	state->files = palloc(sizeof(BufFile *) << state->file_bits);
	for (int i = 0; i < 1 << state->file_bits; i++)
		state->files[i] = BufFileCreateTemp(false);
	initHyperLogLog(&state->sketch, SKETCH_BITS);
	MemoryContextSwitchTo(old);
}

/*
 * Another layer in memory, or files.  If there cannot be one the last overfills:
 * to restore a dump must not fail for that.
 */
static void
start_layer(BuildState *state)
{
	double		least = 0;
	BfHeader	layer;
	BfError		err;

	/* ANALYZE was wrong: go by the share of the rows that have been read */
	if (state->may_fold && state->rows > state->nkeys)
	{
		for (unsigned i = 0; i < state->meta.nlayers; i++)
			least += (double) state->meta.layers[i].capacity;
		least *= 1.1 * (state->rows / state->nkeys - 1);
	}
	if (bf_index_plan_layer(&state->meta, least, &layer, &err) != BF_OK)
	{
		bf_index_warn_full(state->index, &err);
		state->patience = INFINITY;
		return;
	}
	if (state->used + bf_payload_size(&layer) > state->budget)
		start_files(state, bf_payload_size(&layer));
	else
		allocate_layer(state, &layer);
}

static bool
in_layers(const BuildState *state, BfDigest digest)
{
	for (unsigned i = state->meta.nlayers; i-- > 0;)
		if (bf_test(&state->layers[i], digest))
			return true;
	return false;
}

static void
add_to_file(BuildState *state, BfDigest digest)
{
	addHyperLogLog(&state->sketch, (uint32) (digest.h1 >> 32));
	BufFileWrite(state->files[digest.h1 >> (64 - state->file_bits)], &digest,
				 sizeof(digest));
}

/*
 * Is the last layer full?  Then there will be another place for keys.
 */
static void
look_at_last_layer(BuildState *state)
{
	BfFilter   *last = &state->layers[state->meta.nlayers - 1];

	if (state->meta.nlayers == 1)
		bf_recount(last);
	if (!bf_layer_is_full(&last->h, state->meta.nlayers == 1))
		be_patient(state);
	else if (state->shared != NULL)
		pg_atomic_write_u32(&state->shared->full, 1);
	else
		start_layer(state);
}

static void
empty_queue(BuildState *state)
{
	BfError		err;

	if (state->files == NULL && state->meta.nlayers == 1 &&
		state->patience > state->queued)
	{
		bf_must(bf_add_many(&state->layers[0], state->queue, state->queued,
							&err), &err);
		state->patience -= state->queued;
		state->queued = 0;
		return;
	}

	for (uint32 i = 0; i < state->queued; i++)
	{
		BfDigest	digest = state->queue[i];

		/* it will be done again without workers */
		if (state->shared != NULL &&
			pg_atomic_read_u32(&state->shared->full) != 0)
			break;

		if (in_layers(state, digest))
			continue;
		if (state->files != NULL)
		{
			add_to_file(state, digest);
			continue;
		}
		bf_must(bf_add(&state->layers[state->meta.nlayers - 1], digest, &err),
				&err);
		if (--state->patience <= 0)
			look_at_last_layer(state);
	}
	state->queued = 0;
}

static void
build_callback(Relation index, ItemPointer tid, Datum *values, bool *isnull,
			   bool alive, void *arg)
{
	BuildState *state = arg;

	if (!bf_index_key_digest(&state->key, values, isnull,
							 &state->queue[state->queued]))
		return;
	state->nkeys++;
	if (++state->queued == QUEUE_LENGTH)
		empty_queue(state);
}

/* ------------------------------------------------------------------------
 * With workers
 * ------------------------------------------------------------------------
 */

/*
 * A worker's share, or the leader's.
 */
static void
scan_share(BuildState *state, Relation heap, struct IndexInfo *info,
		   ParallelTableScanDesc scan, bool progress)
{
	SharedBuild *shared = state->shared;
	double		rows;

	rows = table_index_build_scan(heap, state->index, info, true, progress,
								  build_callback, state,
								  table_beginscan_parallel(heap, scan));
	empty_queue(state);
	SpinLockAcquire(&shared->mutex);
	shared->rows += rows;
	shared->nkeys += state->nkeys;
	shared->broken_hot_chain |= info->ii_BrokenHotChain;
	SpinLockRelease(&shared->mutex);
}

/*
 * The filter of a worker, whose bits are in shared memory.
 */
static void
open_slot(SharedBuild *shared, uint8 *slots, int worker, BfFilter *f)
{
	BfError		err;

	bf_must(bf_header_init(&f->h, &bf_layout_blocked, shared->hash, NULL, 0, 0,
						   0.5, 0, &err), &err);
	f->h.shape = shared->shape;
	f->h.capacity = shared->capacity;
	f->nbytes = bf_payload_size(&f->h);
	f->bits = (uint8 *) TYPEALIGN(BF_BLOCK_BYTES, slots) + worker * shared->slot;
}

void
bf_parallel_build_main(dsm_segment *seg, shm_toc *toc)
{
	SharedBuild *shared = shm_toc_lookup(toc, KEY_SHARED, false);
	BuildState *state = palloc0(sizeof(BuildState));
	Relation	heap;
	struct IndexInfo *info;
	BufferUsage *buffers = shm_toc_lookup(toc, KEY_BUFFERS, false);
	WalUsage   *wal = shm_toc_lookup(toc, KEY_WAL, false);

	debug_query_string = shm_toc_lookup(toc, KEY_QUERY, true);
	pgstat_report_activity(STATE_RUNNING, debug_query_string);

	/* the leader's locks */
	heap = table_open(shared->heap, shared->concurrent ?
					  ShareUpdateExclusiveLock : ShareLock);
	state->index = index_open(shared->index, shared->concurrent ?
							  RowExclusiveLock : AccessExclusiveLock);
	state->context = CurrentMemoryContext;
	state->shared = shared;
	bf_index_key_init(&state->key, state->index, shared->hash, state->context);
	state->meta.nlayers = 1;
	open_slot(shared, shm_toc_lookup(toc, KEY_BITS, false),
			  ParallelWorkerNumber, &state->layers[0]);
	memset(state->layers[0].bits, 0, state->layers[0].nbytes);
	be_patient(state);

	InstrStartParallelQuery();
	info = BuildIndexInfo(state->index);
	info->ii_Concurrent = shared->concurrent;
	scan_share(state, heap, info, shm_toc_lookup(toc, KEY_SCAN, false), false);
	InstrEndParallelQuery(&buffers[ParallelWorkerNumber],
						  &wal[ParallelWorkerNumber]);

	index_close(state->index, NoLock);
	table_close(heap, NoLock);
}

static void *
share(ParallelContext *pcxt, uint64 key, Size size)
{
	void	   *memory = shm_toc_allocate(pcxt->toc, size);

	shm_toc_insert(pcxt->toc, key, memory);
	return memory;
}

/*
 * Start as many workers as there are.  False if it turned out that one layer
 * is too little: nothing is in it then.
 */
static bool
scan_with_workers(BuildState *state, Relation heap, struct IndexInfo *info,
				  int nworkers, double *rows)
{
	BfFilter   *f = &state->layers[0];
	bool		concurrent = info->ii_Concurrent;
	Snapshot	snapshot = SnapshotAny;
	Size		scan_size;
	Size		bits_size = nworkers * f->nbytes + BF_BLOCK_BYTES;
	Size		query_size = debug_query_string ? strlen(debug_query_string) + 1 : 0;
	ParallelContext *pcxt;
	SharedBuild *shared;
	ParallelTableScanDesc scan;
	uint8	   *slots;
	BufferUsage *buffers;
	WalUsage   *wal;
	bool		full;

	EnterParallelMode();
	pcxt = CreateParallelContext("$libdir/bloomfilter",
								 "bf_parallel_build_main", nworkers);
	if (concurrent)
		snapshot = RegisterSnapshot(GetTransactionSnapshot());
	scan_size = table_parallelscan_estimate(heap, snapshot);
	shm_toc_estimate_chunk(&pcxt->estimator, sizeof(SharedBuild));
	shm_toc_estimate_chunk(&pcxt->estimator, scan_size);
	shm_toc_estimate_chunk(&pcxt->estimator, bits_size);
	shm_toc_estimate_chunk(&pcxt->estimator, nworkers * sizeof(BufferUsage));
	shm_toc_estimate_chunk(&pcxt->estimator, nworkers * sizeof(WalUsage));
	shm_toc_estimate_chunk(&pcxt->estimator, query_size);
	shm_toc_estimate_keys(&pcxt->estimator, 6);
	InitializeParallelDSM(pcxt);
	if (pcxt->seg == NULL)
	{
		/* no shared memory to be had */
		if (concurrent)
			UnregisterSnapshot(snapshot);
		DestroyParallelContext(pcxt);
		ExitParallelMode();
		return false;
	}

	shared = share(pcxt, KEY_SHARED, sizeof(SharedBuild));
	memset(shared, 0, sizeof(SharedBuild));
	shared->heap = RelationGetRelid(heap);
	shared->index = RelationGetRelid(state->index);
	shared->concurrent = concurrent;
	shared->hash = state->key.h.hash;
	shared->shape = f->h.shape;
	shared->capacity = f->h.capacity;
	shared->slot = f->nbytes;
	pg_atomic_init_u32(&shared->full, 0);
	SpinLockInit(&shared->mutex);
	scan = share(pcxt, KEY_SCAN, scan_size);
	table_parallelscan_initialize(heap, scan, snapshot);
	slots = share(pcxt, KEY_BITS, bits_size);
	buffers = share(pcxt, KEY_BUFFERS, nworkers * sizeof(BufferUsage));
	wal = share(pcxt, KEY_WAL, nworkers * sizeof(WalUsage));
	if (query_size > 0)
		memcpy(share(pcxt, KEY_QUERY, query_size), debug_query_string,
			   query_size);

	LaunchParallelWorkers(pcxt);
	state->shared = shared;
	scan_share(state, heap, info, scan, true);
	WaitForParallelWorkersToFinish(pcxt);

	bf_recount(f);
	for (int i = 0; i < pcxt->nworkers_launched; i++)
	{
		BfFilter	theirs;
		BfError		err;

		InstrAccumParallelQuery(&buffers[i], &wal[i]);
		open_slot(shared, slots, i, &theirs);
		bf_must(bf_unite(f, &theirs, &err), &err);
	}
	full = pg_atomic_read_u32(&shared->full) != 0 ||
		bf_layer_is_full(&f->h, true);
	*rows = shared->rows;
	state->nkeys = shared->nkeys;
	info->ii_BrokenHotChain |= shared->broken_hot_chain;
	state->shared = NULL;

	if (concurrent)
		UnregisterSnapshot(snapshot);
	DestroyParallelContext(pcxt);
	ExitParallelMode();
	if (!full)
		return true;

	memset(f->bits, 0, f->nbytes);
	f->h.nset = 0;
	state->nkeys = 0;
	state->queued = 0;
	be_patient(state);
	return false;
}

/* ------------------------------------------------------------------------
 * Writing pages
 * ------------------------------------------------------------------------
 */

/* Of one layer, from its first block on. */
typedef struct PageWriter
{
	Relation	index;
	unsigned	layer;
	BfIndexLayer *meta;
	BlockNumber number;			/* of the page that is being filled */
	uint32		nblocks;		/* in it */
	PGAlignedBlock page;
} PageWriter;

static void
start_pages(PageWriter *w, BuildState *state, unsigned layer)
{
	w->index = state->index;
	w->layer = layer;
	w->meta = &state->meta.layers[layer];
	w->meta->nset = 0;
	w->number = 0;
	w->nblocks = 0;
}

static void
finish_page(PageWriter *w)
{
	Buffer		buffer;
	BfPageInfo *info = BfPageGetInfo(w->page.data);

	CHECK_FOR_INTERRUPTS();
	info->nset = (uint32) bf_popcount((uint8 *) w->page.data + BF_PAGE_DATA,
									  BLCKSZ - BF_PAGE_DATA);
	w->meta->nset += info->nset;
	buffer = ReadBufferExtended(w->index, MAIN_FORKNUM, P_NEW,
								RBM_ZERO_AND_LOCK, NULL);
	if (BufferGetBlockNumber(buffer) != w->meta->first + w->number)
		elog(ERROR, "block %u of index \"%s\" was to be the next, not %u",
			 w->meta->first + w->number, RelationGetRelationName(w->index),
			 BufferGetBlockNumber(buffer));
	memcpy(BufferGetPage(buffer), w->page.data, BLCKSZ);
	MarkBufferDirty(buffer);
	UnlockReleaseBuffer(buffer);
	w->number++;
	w->nblocks = 0;
}

static void
write_blocks(PageWriter *w, const uint8 *blocks, uint64 n)
{
	while (n > 0)
	{
		uint32		fit = (uint32) Min(n, BF_PAGE_BLOCKS - w->nblocks);

		if (w->nblocks == 0)
		{
			memset(w->page.data, 0, BLCKSZ);
			bf_index_init_page((Page) w->page.data, w->layer, w->number, false);
		}
		memcpy(w->page.data + BF_PAGE_DATA + w->nblocks * BF_BLOCK_BYTES,
			   blocks, fit * BF_BLOCK_BYTES);
		w->nblocks += fit;
		blocks += fit * BF_BLOCK_BYTES;
		n -= fit;
		if (w->nblocks == BF_PAGE_BLOCKS)
			finish_page(w);
	}
}

static void
end_pages(PageWriter *w)
{
	if (w->nblocks > 0)
		finish_page(w);
}

/* ------------------------------------------------------------------------
 * From files
 * ------------------------------------------------------------------------
 */

/*
 * Keys go to one of several layers by bits of the digest that positions do not
 * depend on (nor do files): see core/blocked.c.
 */
static inline unsigned
share_of(BfDigest digest, unsigned nshares)
{
	return (unsigned) ((digest.h1 >> 27 & 31) * nshares >> 5);
}

static void
set_file_bits(BuildState *state, BufFile *file, const BfShape *shape,
			  unsigned share, unsigned nshares, uint8 *region, uint64 first)
{
	const BfShape one_block = {BF_BLOCK_BITS, shape->nhashes};
	BfDigest	digests[QUEUE_LENGTH];
	uint8	   *blocks[QUEUE_LENGTH];
	size_t		n;

	if (BufFileSeek(file, 0, 0, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file of an index build")));
	while ((n = BufFileRead(file, digests, sizeof(digests)) / sizeof(BfDigest)) > 0)
	{
		CHECK_FOR_INTERRUPTS();
		for (size_t i = 0; i < n; i++)
		{
			BfRange		range;

			(void) bf_layout_blocked.ranges(shape, digests[i], &range);
			blocks[i] = region + (range.offset - first * BF_BLOCK_BYTES);
			__builtin_prefetch(blocks[i], 1);
		}
		for (size_t i = 0; i < n; i++)
			if (nshares == 1 || share_of(digests[i], nshares) == share)
				bf_layout_blocked.add_many(blocks[i], &one_block, &digests[i],
										   1);
	}
}

/*
 * Make a layer, range by range.  Where one range ends and the next begins
 * they share a block.
 */
static void
write_layer_from_files(BuildState *state, unsigned layer, unsigned share,
					   unsigned nshares)
{
	const BfIndexLayer *l = &state->meta.layers[layer];
	const BfShape shape = {l->nblocks * BF_BLOCK_BITS, l->nhashes};
	const int	shift = 32 - state->file_bits;
	uint64		largest = (l->nblocks >> state->file_bits) + 2;
	uint64		kept = 0;		/* the number of the shared block */
	uint8		shared[BF_BLOCK_BYTES] = {0};
	uint8	   *region;
	PageWriter	writer;

	region = MemoryContextAllocExtended(state->context,
										largest * BF_BLOCK_BYTES,
										MCXT_ALLOC_HUGE);
	start_pages(&writer, state, layer);
	for (uint64 i = 0; i < UINT64CONST(1) << state->file_bits; i++)
	{
		uint64		first = (i << shift) * l->nblocks >> 32;
		uint64		last = (((i + 1) << shift) - 1) * l->nblocks >> 32;

		memset(region, 0, (last - first + 1) * BF_BLOCK_BYTES);
		if (first == kept)
			memcpy(region, shared, BF_BLOCK_BYTES);
		else
			write_blocks(&writer, shared, 1);
		set_file_bits(state, state->files[i], &shape, share, nshares, region,
					  first);
		write_blocks(&writer, region, last - first);
		memcpy(shared, region + (last - first) * BF_BLOCK_BYTES,
			   BF_BLOCK_BYTES);
		kept = last;
	}
	write_blocks(&writer, shared, 1);
	end_pages(&writer);
	pfree(region);
}

/*
 * One layer for all keys in the files, or as few as can hold them.
 */
static void
write_files(BuildState *state)
{
	double		n = ceil(estimateHyperLogLog(&state->sketch) * SKETCH_MARGIN);
	unsigned	first = state->meta.nlayers;
	unsigned	nshares = 0;
	BfHeader	layer;
	BfError		err;

	/* the last may be the smallest: its rate is the lowest */
	do
	{
		if (bf_index_plan_layer(&state->meta, n, &layer, &err) != BF_OK)
		{
			if (nshares == 0)
				bf_throw(&err, ERRCODE_INTERNAL_ERROR);
			bf_index_warn_full(state->index, &err);
			break;
		}
		bf_index_append_layer(&state->meta, &layer);
		nshares++;
	} while ((double) layer.capacity * nshares < n);
	for (unsigned i = 0; i < nshares; i++)
		write_layer_from_files(state, first + i, i, nshares);
	for (int i = 0; i < 1 << state->file_bits; i++)
		BufFileClose(state->files[i]);
}

/* ------------------------------------------------------------------------
 * The build
 * ------------------------------------------------------------------------
 */

/*
 * Room for the first layer, or files if there is none.
 */
static void
prepare(BuildState *state, Relation heap, struct IndexInfo *info)
{
	BfIndexOptions options;
	bool		known;
	double		n = estimate_keys(heap, info, &state->rows, &known);
	BfHeader	layer;
	BfError		err;

	bf_index_options(state->index, &options);
	state->may_fold = options.capacity == 0;
	bf_index_meta_init(state->index, &state->meta, &state->key,
					   options.capacity != 0 ? options.capacity :
					   BF_DEFAULT_CAPACITY);
	if (options.capacity != 0 && !known && n <= most_keys(&state->meta))
		n = 0;
	bf_must(bf_index_plan_layer(&state->meta, n, &layer, &err), &err);
	if ((double) layer.capacity < options.capacity)
		ereport(WARNING,
				(errmsg("the first layer of index \"%s\" has room for " UINT64_FORMAT " keys, not %.0f",
						RelationGetRelationName(state->index), layer.capacity,
						options.capacity),
				 errdetail("A layer takes at most %d MiB.",
						   (int) (BF_MAX_BITS / 8 / 1048576)),
				 errhint("Further layers are added as it fills; every layer costs a probe one more page.")));
	while (bf_payload_size(&layer) > state->budget)
	{
		if (!state->may_fold || known)
		{
			start_files(state, bf_payload_size(&layer));
			return;
		}
		/* it was a guess: begin with what fits */
		n = (double) layer.capacity * 0.95 *
			fmin(1, (double) state->budget / (double) bf_payload_size(&layer));
		bf_must(bf_index_plan_layer(&state->meta, n, &layer, &err), &err);
	}
	if (state->may_fold)
		layer.shape.nbits = TYPEALIGN64((uint64) BF_BLOCK_BITS << MAX_FOLDS,
										layer.shape.nbits);
	allocate_layer(state, &layer);
}

/*
 * Halve the only layer for as long as the keys fit.
 */
static void
fold(BuildState *state)
{
	BfFilter   *f = &state->layers[0];
	double		n;

	bf_recount(f);
	n = bf_cardinality(&f->h);
	for (int i = 0; i < MAX_FOLDS && bf_can_fold(&f->h) &&
		 n <= (double) (f->h.capacity / 2) &&
		 f->h.capacity / 2 >= BF_DEFAULT_CAPACITY; i++)
	{
		bf_fold(f);
		f->h.capacity /= 2;
	}
	state->meta.nlayers = 0;
	bf_index_append_layer(&state->meta, &f->h);
}

IndexBuildResult *
bf_ambuild(Relation heap, Relation index, struct IndexInfo *info)
{
	IndexBuildResult *result;
	BuildState *state;
	BfIndexOptions options;
	unsigned	nlayers;
	int			nworkers = 0;
	double		rows = 0;

	if (RelationGetNumberOfBlocks(index) != 0)
		elog(ERROR, "index \"%s\" already contains data",
			 RelationGetRelationName(index));

	state = palloc0(sizeof(BuildState));
	state->index = index;
	state->context = AllocSetContextCreate(CurrentMemoryContext,
										   "bloomfilter index build",
										   ALLOCSET_DEFAULT_SIZES);
	state->budget = (Size) maintenance_work_mem * 1024;
	bf_index_options(index, &options);
	bf_index_key_init(&state->key, index, (BfHash) options.hash,
					  state->context);
	prepare(state, heap, info);
	bf_index_write_meta(index, &state->meta, MAIN_FORKNUM);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, BF_PHASE_SCAN);
	if (state->files == NULL)
		nworkers = Min(plan_create_index_workers(RelationGetRelid(heap),
												 RelationGetRelid(index)),
					   (int) (state->budget / state->used) - 1);
	if (nworkers <= 0 ||
		!scan_with_workers(state, heap, info, nworkers, &rows))
	{
		rows = table_index_build_scan(heap, index, info, true, true,
									  build_callback, state, NULL);
		empty_queue(state);
	}

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, BF_PHASE_SET);
	nlayers = state->meta.nlayers;
	if (state->may_fold && nlayers == 1 && state->files == NULL)
		fold(state);
	for (unsigned i = 0; i < nlayers; i++)
	{
		PageWriter	writer;

		start_pages(&writer, state, i);
		write_blocks(&writer, state->layers[i].bits,
					 state->layers[i].nbytes / BF_BLOCK_BYTES);
		end_pages(&writer);
	}
	if (state->files != NULL)
		write_files(state);
	state->meta.capacity = state->meta.layers[0].capacity;
	bf_index_write_meta(index, &state->meta, MAIN_FORKNUM);

	pgstat_progress_update_param(PROGRESS_CREATEIDX_SUBPHASE, BF_PHASE_WRITE);
	if (RelationNeedsWAL(index))
		log_newpage_range(index, MAIN_FORKNUM, 0,
						  RelationGetNumberOfBlocks(index), true);

	result = palloc(sizeof(IndexBuildResult));
	result->heap_tuples = rows;
	result->index_tuples = state->nkeys;
	MemoryContextDelete(state->context);
	pfree(state);
	return result;
}
