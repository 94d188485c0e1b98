/*-------------------------------------------------------------------------
 *
 * pages.c
 *	  The filter in index pages: probing, adding, growing.
 *
 * Locks.  A page is read under a share lock and changed under an exclusive
 * one; nobody holds two content locks at a time.  Who adds a layer holds a
 * heavyweight lock on the metapage's number, so that one backend does it while
 * others still probe and add.
 *
 * No key is ever missed:
 *
 * - Every probe and every addition reads the metapage.  A key's bits are set
 *	 before its transaction can commit, and the layer that they are in was in
 *	 the metapage before they were set.  So whoever knows of the commit finds
 *	 the layer and the bits.
 * - A key whose bits are all set already is not written.  Who set them has
 *	 inserted the WAL record under the same exclusive lock, before we saw them;
 *	 our commit record comes later and flushes both.
 * - A layer's pages are in the WAL before the metapage tells of them.  After a
 *	 crash in between, the next to grow takes the same pages.
 *
 * The layer is full when so many bits are set as its capacity of elements sets.
 * To count them in the metapage at every insert would be a bottleneck.
 * So each page counts its own, in the record that sets the bits, and passes on
 * what has come together in multiples of step.  Pages fill evenly: were they
 * all to start at 0, they would all pass on at the same time, and lag behind
 * by half a step on average.  Each starts at another phase of the step, which
 * makes the sum right on average at any time.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "access/generic_xlog.h"
#include "access/xact.h"
#include "access/xloginsert.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "port/pg_bitutils.h"
#include "storage/lmgr.h"
#include "storage/predicate.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

#include "core/bytes.h"

#include <math.h>

/* Bits after which a page of a large layer passes on its count. */
#define MAX_STEP		2048

/* Positions inside a block do not depend on how many blocks there are. */
#define ONE_BLOCK(layer)	{BF_BLOCK_BITS, (layer)->nhashes}

/*
 * The index as any statement can name it, for hints: with its schema, since the
 * search path may be another one here.
 */
char *
bf_index_name(Relation index)
{
	return quote_qualified_identifier(get_namespace_name(RelationGetNamespace(index)),
									  RelationGetRelationName(index));
}

void
bf_index_corrupted(Relation index, BlockNumber block, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_INDEX_CORRUPTED),
			 errmsg("index \"%s\" is corrupted at block %u",
					RelationGetRelationName(index), block),
			 errdetail("%s", detail),
			 errhint("Rebuild it: REINDEX INDEX %s.", bf_index_name(index))));
	pg_unreachable();
}

void
bf_index_must_rebuild(Relation index, const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("index \"%s\" must be rebuilt",
					RelationGetRelationName(index)),
			 errdetail("%s", detail),
			 errhint("REINDEX INDEX %s.", bf_index_name(index))));
	pg_unreachable();
}

/*
 * In which buffer each block was the last time, in rd_amcache.  It is most
 * often there still, and the buffer itself says so.
 */
typedef struct RecentBuffers
{
	BlockNumber nblocks;
	uint32		uses;			/* since the last whole look-up */
	Buffer		buffers[FLEXIBLE_ARRAY_MEMBER];
} RecentBuffers;

/*
 * A page that is found by its buffer does not count as used, neither for the
 * buffer manager, which would evict it, nor in pg_statio.  So every now and
 * then it is looked up.  The number is odd: metapage and pages take turns.
 */
#define RECENT_USES			31

#define RECENT_SIZE(n)		(offsetof(RecentBuffers, buffers) + (n) * sizeof(Buffer))
#define FEWEST_RECENT		64
#define MOST_RECENT			65536	/* 512 MB of index in 256 kB */

static pg_noinline void
extend_recent(Relation index, BlockNumber block)
{
	RecentBuffers *recent = index->rd_amcache;
	BlockNumber have = recent != NULL ? recent->nblocks : 0;
	BlockNumber want = Min(Max(FEWEST_RECENT, Max(2 * have, block + 1)),
						   MOST_RECENT);

	if (recent == NULL)
		recent = MemoryContextAlloc(index->rd_indexcxt, RECENT_SIZE(want));
	else
		recent = repalloc(recent, RECENT_SIZE(want));
	if (have == 0)
		recent->uses = 0;
	memset(recent->buffers + have, 0, (want - have) * sizeof(Buffer));
	recent->nblocks = want;
	index->rd_amcache = recent;
}

/*
 * Pin a page, of which the place at offset is wanted.
 */
static inline Buffer
pin_page(Relation index, BlockNumber block, uint32 offset)
{
	RecentBuffers *recent = index->rd_amcache;
	Buffer	   *buffer;

	if (unlikely(block >= MOST_RECENT || RelationUsesLocalBuffers(index)))
		return ReadBuffer(index, block);
	if (unlikely(recent == NULL || block >= recent->nblocks))
	{
		extend_recent(index, block);
		recent = index->rd_amcache;
	}
	buffer = &recent->buffers[block];
	if (likely(*buffer != InvalidBuffer && ++recent->uses < RECENT_USES))
	{
		/* fetched while the buffer's header is */
		__builtin_prefetch((char *) BufferGetPage(*buffer) + offset);
		__builtin_prefetch(BufferGetPage(*buffer));
#if PG_VERSION_NUM >= 160000
		if (likely(ReadRecentBuffer(index->rd_locator, MAIN_FORKNUM, block,
									*buffer)))
#else
		if (likely(ReadRecentBuffer(index->rd_node, MAIN_FORKNUM, block,
									*buffer)))
#endif
		{
			pgstat_count_buffer_read(index);
			pgstat_count_buffer_hit(index);
			return *buffer;
		}
	}
	recent->uses = 0;
	*buffer = ReadBuffer(index, block);
	return *buffer;
}

/* ------------------------------------------------------------------------
 * The metapage
 * ------------------------------------------------------------------------
 */
static bool
layer_is_sound(const BfIndexLayer *layer)
{
	return layer->nblocks > 0 &&
		layer->nblocks <= BF_MAX_BITS / BF_BLOCK_BITS &&
		layer->nhashes > 0 &&
		layer->nhashes <= bf_layout_blocked.max_hashes &&
		layer->step > 0 && layer->first > BF_META_BLOCK &&
		layer->first <= MaxBlockNumber - bf_layer_npages(layer);
}

/*
 * The metapage's contents, after a look at what later operations rely on.
 */
static const BfIndexMeta *
meta_of_page(Relation index, Page page)
{
	const BfIndexMeta *meta = (const BfIndexMeta *) PageGetContents(page);

	if (unlikely(meta->magic != BF_META_MAGIC ||
				 meta->nlayers > BF_MAX_LAYERS))
		bf_index_corrupted(index, BF_META_BLOCK,
						   "It is not the metapage of a bloomfilter index.");
	for (unsigned i = 0; i < meta->nlayers; i++)
		if (unlikely(!layer_is_sound(&meta->layers[i])))
			bf_index_corrupted(index, BF_META_BLOCK,
							   psprintf("Layer %u is not one of a bloomfilter index.",
										i + 1));
	return meta;
}

static uint64
checksum_of_meta(const BfIndexMeta *meta)
{
	return bf_checksum(meta, offsetof(BfIndexMeta, checksum));
}

/*
 * The whole metapage, and a look at all of it: a flipped bit in a size would
 * make a "no" of everything.  Probes do this once a transaction.
 */
void
bf_index_read_meta(Relation index, BfIndexMeta *meta)
{
	Buffer		buffer = ReadBuffer(index, BF_META_BLOCK);
	BfError		err;
	BfHeader	h;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	*meta = *meta_of_page(index, BufferGetPage(buffer));
	UnlockReleaseBuffer(buffer);

	if (meta->checksum != checksum_of_meta(meta))
		bf_index_corrupted(index, BF_META_BLOCK,
						   "The metapage's checksum is wrong.");
	if (meta->kind_name_len > BF_MAX_KIND_NAME ||
		!bf_kind_is_valid(meta->kind, meta->kind_name, meta->kind_name_len) ||
		(meta->hash != BF_HASH_XXH3 && meta->hash != BF_HASH_BLAKE2B) ||
		meta->expansion < 1 ||
		bf_header_init(&h, &bf_layout_blocked, (BfHash) meta->hash, NULL, 0, 0,
					   meta->fpr, 0, &err) != BF_OK ||
		bf_header_expand(&h, meta->expansion, &err) != BF_OK ||
		meta->capacity < 1 || meta->capacity > BF_MAX_CAPACITY)
		bf_index_corrupted(index, BF_META_BLOCK,
						   "Its parameters are not those of a bloomfilter index.");
}

static void
fill_meta_page(Page page, const BfIndexMeta *meta)
{
	BfIndexMeta *contents = (BfIndexMeta *) PageGetContents(page);

	StaticAssertStmt(MAXALIGN(SizeOfPageHeaderData) + sizeof(BfIndexMeta) <= BLCKSZ,
					 "the metapage is one page");
	PageInit(page, BLCKSZ, 0);
	*contents = *meta;
	contents->checksum = checksum_of_meta(contents);
	((PageHeader) page)->pd_lower =
		PageGetContents(page) + sizeof(BfIndexMeta) - (char *) page;
}

/*
 * Make the metapage of a fork that has none yet.  Of the main fork it is the
 * caller who logs it, with all other pages.
 */
void
bf_index_write_meta(Relation index, const BfIndexMeta *meta, ForkNumber fork)
{
	Buffer		buffer;

	if (fork == MAIN_FORKNUM && RelationGetNumberOfBlocks(index) > 0)
		buffer = ReadBuffer(index, BF_META_BLOCK);
	else
		buffer = ReadBufferExtended(index, fork, P_NEW, RBM_NORMAL, NULL);
	Assert(BufferGetBlockNumber(buffer) == BF_META_BLOCK);
	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);

	START_CRIT_SECTION();
	fill_meta_page(BufferGetPage(buffer), meta);
	MarkBufferDirty(buffer);
	if (fork == INIT_FORKNUM)
		log_newpage_buffer(buffer, true);
	END_CRIT_SECTION();

	UnlockReleaseBuffer(buffer);
}

/*
 * Changes to the metapage are rare enough for generic WAL.
 */
static BfIndexMeta *
begin_meta_update(Relation index, Buffer *buffer, GenericXLogState **xlog)
{
	*buffer = ReadBuffer(index, BF_META_BLOCK);
	LockBuffer(*buffer, BUFFER_LOCK_EXCLUSIVE);
	(void) meta_of_page(index, BufferGetPage(*buffer));
	*xlog = GenericXLogStart(index);
	return (BfIndexMeta *) PageGetContents(GenericXLogRegisterBuffer(*xlog, *buffer, 0));
}

static void
end_meta_update(BfIndexMeta *meta, Buffer buffer, GenericXLogState *xlog)
{
	meta->checksum = checksum_of_meta(meta);
	GenericXLogFinish(xlog);
	UnlockReleaseBuffer(buffer);
}

/*
 * Remember that keys of another kind than the index's are in it.
 */
void
bf_index_mark_mixed(Relation index)
{
	Buffer		buffer;
	GenericXLogState *xlog;
	BfIndexMeta *meta = begin_meta_update(index, &buffer, &xlog);

	meta->flags |= BF_META_MIXED;
	end_meta_update(meta, buffer, xlog);
}

/*
 * The filter's parameters as the core has them.  Its kind's name is meta's.
 */
void
bf_index_header(const BfIndexMeta *meta, BfHeader *h)
{
	memset(h, 0, sizeof(*h));
	h->layout = &bf_layout_blocked;
	h->hash = (BfHash) meta->hash;
	h->capacity = meta->capacity;
	h->fpr = meta->fpr;
	h->expansion = meta->expansion;
	h->kind = meta->kind;
	h->kind_name = meta->kind_name;
	h->kind_name_len = meta->kind_name_len;
	h->not_portable = (meta->flags & BF_META_NOT_PORTABLE) != 0;
}

void
bf_index_layer_header(const BfIndexMeta *meta, unsigned i, BfHeader *layer)
{
	const BfIndexLayer *l = &meta->layers[i];

	bf_index_header(meta, layer);
	layer->expansion = 0;
	layer->shape.nbits = l->nblocks * BF_BLOCK_BITS;
	layer->shape.nhashes = l->nhashes;
	layer->capacity = l->capacity;
	layer->nset = Min(l->nset, layer->shape.nbits);
}

/*
 * Size the next layer, for at least so many elements, or as many as a layer
 * can hold.
 */
BfStatus
bf_index_plan_layer(const BfIndexMeta *meta, double least, BfHeader *layer,
					BfError *err)
{
	BfHeader	h;
	double		capacity = (double) meta->capacity;
	BfStatus	status;

	bf_index_header(meta, &h);
	if (meta->nlayers > 0)
		capacity = (double) meta->layers[meta->nlayers - 1].capacity *
			meta->expansion;
	capacity = fmax(capacity, ceil(least));
	do
	{
		h.capacity = (uint64) fmin(capacity, (double) BF_MAX_CAPACITY);
		status = bf_plan_layer(&h, meta->nlayers, NULL, layer, err);
		capacity *= 0.9;
	} while (status == BF_TOO_LARGE && capacity >= 1);
	return status;
}

/*
 * Put a planned layer behind the others.
 */
void
bf_index_append_layer(BfIndexMeta *meta, const BfHeader *layer)
{
	BfIndexLayer *l = &meta->layers[meta->nlayers];
	const BfIndexLayer *last = l - 1;
	double		variance;
	double		full = layer->layout->expected_set(&layer->shape,
												   (double) layer->capacity,
												   &variance);

	memset(l, 0, sizeof(*l));
	l->nblocks = layer->shape.nbits / BF_BLOCK_BITS;
	l->nhashes = layer->shape.nhashes;
	l->capacity = layer->capacity;
	l->first = meta->nlayers == 0 ? BF_META_BLOCK + 1 :
		last->first + bf_layer_npages(last);
	l->step = (uint32) fmax(1, fmin(MAX_STEP, full / 256));
	meta->nlayers++;
}

/* ------------------------------------------------------------------------
 * A layer's pages
 * ------------------------------------------------------------------------
 */
void
bf_index_init_page(Page page, unsigned layer, BlockNumber number, bool empty)
{
	BfPageInfo *info;

	PageInit(page, BLCKSZ, 0);
	info = BfPageGetInfo(page);
	info->magic = BF_PAGE_MAGIC;
	info->layer = layer;
	info->number = number;
	info->nset = 0;
	((PageHeader) page)->pd_lower = empty ? BF_PAGE_DATA : BLCKSZ;
}

void
bf_index_check_page(Relation index, Page page, BlockNumber block,
					unsigned layer, BlockNumber number)
{
	const BfPageInfo *info = BfPageGetInfo(page);

	if (unlikely(info->magic != BF_PAGE_MAGIC || info->layer != layer ||
				 info->number != number))
		bf_index_corrupted(index, block,
						   psprintf("It is not page %u of layer %u.",
									number + 1, layer + 1));
}

/* Where a layer has a digest's block. */
typedef struct BlockPlace
{
	BlockNumber block;
	BlockNumber number;			/* of the page in the layer */
	uint32		offset;			/* in the page */
} BlockPlace;

static inline BlockPlace
find_block(const BfIndexLayer *layer, BfDigest digest)
{
	const BfShape shape = {layer->nblocks * BF_BLOCK_BITS, layer->nhashes};
	BfRange		range;
	uint64		block;
	BlockPlace	place;

	(void) bf_layout_blocked.ranges(&shape, digest, &range);
	block = range.offset / BF_BLOCK_BYTES;
	place.number = (BlockNumber) (block / BF_PAGE_BLOCKS);
	place.block = layer->first + place.number;
	place.offset = BF_PAGE_DATA +
		(uint32) (block % BF_PAGE_BLOCKS) * BF_BLOCK_BYTES;
	return place;
}

/*
 * Does a layer have all bits of a digest?  The page is pinned, not locked.
 */
static inline bool
test_buffer(Relation index, Buffer buffer, const BfIndexLayer *layer,
			unsigned i, BlockPlace place, BfDigest digest)
{
	const BfShape shape = ONE_BLOCK(layer);
	Page		page = BufferGetPage(buffer);
	bool		answer;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	bf_index_check_page(index, page, place.block, i, place.number);
	answer = bf_layout_blocked.test((uint8 *) page + place.offset, &shape,
									digest);
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return answer;
}

static inline bool
test_layer(Relation index, const BfIndexLayer *layer, unsigned i,
		   BfDigest digest)
{
	BlockPlace	place = find_block(layer, digest);
	Buffer		buffer = pin_page(index, place.block, place.offset);
	bool		answer = test_buffer(index, buffer, layer, i, place, digest);

	ReleaseBuffer(buffer);
	return answer;
}

/*
 * The layers as they are now.  Returns how many there are.
 */
static inline unsigned
read_layers(Relation index, BfIndexLayer layers[BF_MAX_LAYERS], bool probe)
{
	Buffer		buffer = pin_page(index, BF_META_BLOCK, BF_PAGE_DATA);
	const BfIndexMeta *meta;
	unsigned	nlayers;
	bool		mixed;

	LockBuffer(buffer, BUFFER_LOCK_SHARE);
	meta = meta_of_page(index, BufferGetPage(buffer));
	nlayers = meta->nlayers;
	mixed = (meta->flags & BF_META_MIXED) != 0;
	memcpy(layers, meta->layers, nlayers * sizeof(BfIndexLayer));
	UnlockReleaseBuffer(buffer);

	/* keys of the first kind would be missed */
	if (unlikely(mixed && probe))
		bf_index_must_rebuild(index, BF_MIXED_DETAIL);
	return nlayers;
}

/*
 * May the index have a key?
 *
 * Under SERIALIZABLE a "no" is a read of the key's absence.  Who inserts the
 * key later must notice: both use the page in the first layer that the key's
 * digest leads to, whatever layer it ends up in.  We lock it before we look,
 * they check it after they have written.
 */
bool
bf_index_test(Relation index, BfDigest digest)
{
	BfIndexLayer layers[BF_MAX_LAYERS];
	unsigned	nlayers = read_layers(index, layers, true);

	if (unlikely(IsolationIsSerializable()))
	{
		if (nlayers == 0)
			PredicateLockRelation(index, GetActiveSnapshot());
		else
			PredicateLockPage(index, find_block(&layers[0], digest).block,
							  GetActiveSnapshot());
		nlayers = read_layers(index, layers, true);
	}

	for (unsigned i = nlayers; i-- > 0;)
		if (test_layer(index, &layers[i], i, digest))
			return true;
	return false;
}

/* ------------------------------------------------------------------------
 * Growing
 * ------------------------------------------------------------------------
 */

/*
 * Make a layer's empty pages, in the WAL as well.  Blocks that are there were
 * left by one who did not come to the end.
 */
static void
make_pages(Relation index, const BfIndexLayer *layer, unsigned i)
{
	BlockNumber npages = bf_layer_npages(layer);
	BlockNumber have = RelationGetNumberOfBlocks(index);

	for (BlockNumber number = 0; number < npages; number++)
	{
		BlockNumber block = layer->first + number;
		Buffer		buffer;

		CHECK_FOR_INTERRUPTS();
		if (block < have)
			buffer = ReadBufferExtended(index, MAIN_FORKNUM, block,
										RBM_ZERO_AND_LOCK, NULL);
		else
		{
			bool		need_lock = !RELATION_IS_LOCAL(index);

			if (need_lock)
				LockRelationForExtension(index, ExclusiveLock);
			buffer = ReadBufferExtended(index, MAIN_FORKNUM, P_NEW,
										RBM_ZERO_AND_LOCK, NULL);
			if (need_lock)
				UnlockRelationForExtension(index, ExclusiveLock);
			if (BufferGetBlockNumber(buffer) != block)
				bf_index_corrupted(index, BufferGetBlockNumber(buffer),
								   psprintf("Block %u was to be the next.",
											block));
		}

		START_CRIT_SECTION();
		bf_index_init_page(BufferGetPage(buffer), i, number, true);
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(index))
			log_newpage_buffer(buffer, true);
		END_CRIT_SECTION();
		UnlockReleaseBuffer(buffer);
	}
}

/*
 * It cannot grow any more: it overfills, and says so, once a statement.
 */
void
bf_index_warn_full(Relation index, const BfError *err)
{
	static TimestampTz warned_at = 0;

	if (warned_at == GetCurrentStatementStartTimestamp())
		return;
	warned_at = GetCurrentStatementStartTimestamp();
	ereport(WARNING,
			(errmsg("index \"%s\" has more keys than it can hold at its false-positive rate",
					RelationGetRelationName(index)),
			 errdetail("The %s.", err->message),
			 errhint("Set a larger capacity with ALTER INDEX ... SET (capacity = ...) and REINDEX.")));
}

/*
 * Add a layer behind the nlayers that there are.  If another backend is at it
 * already we wait for it, so that a full layer is not filled any more.
 */
static void
grow(Relation index, unsigned nlayers)
{
	BfIndexMeta meta;

	LockPage(index, BF_META_BLOCK, ExclusiveLock);
	bf_index_read_meta(index, &meta);
	if (meta.nlayers == nlayers)
	{
		BfHeader	layer;
		BfError		err;

		if (bf_index_plan_layer(&meta, 0, &layer, &err) == BF_OK)
		{
			Buffer		buffer;
			GenericXLogState *xlog;
			BfIndexMeta *now;

			bf_index_append_layer(&meta, &layer);
			make_pages(index, &meta.layers[nlayers], nlayers);

			/* counts of other layers may have changed meanwhile */
			now = begin_meta_update(index, &buffer, &xlog);
			now->layers[nlayers] = meta.layers[nlayers];
			now->nlayers = nlayers + 1;
			end_meta_update(now, buffer, xlog);
		}
		else if (nlayers == 0)
			bf_throw(&err, ERRCODE_INDEX_CORRUPTED);
		else
			bf_index_warn_full(index, &err);
	}
	UnlockPage(index, BF_META_BLOCK, ExclusiveLock);
}

/*
 * A page passes on what it has counted.
 */
static void
count_bits(Relation index, unsigned i, uint64 nset)
{
	Buffer		buffer;
	GenericXLogState *xlog;
	BfIndexMeta *meta = begin_meta_update(index, &buffer, &xlog);
	unsigned	nlayers = meta->nlayers;
	bool		full = false;

	meta->layers[i].nset += nset;
	if (i == nlayers - 1)
	{
		BfHeader	layer;

		bf_index_layer_header(meta, i, &layer);
		full = bf_layer_is_full(&layer, nlayers == 1);
	}
	end_meta_update(meta, buffer, xlog);
	if (full)
		grow(index, nlayers);
}

/* ------------------------------------------------------------------------
 * Adding
 * ------------------------------------------------------------------------
 */

/* Where in a step a page starts to count: see above.  Golden-ratio spacing. */
static inline uint32
phase_of(BlockNumber number, uint32 step)
{
	return (uint32) ((uint64) (number * UINT32_C(0x9E3779B9)) * step >> 32);
}

/*
 * Append a run of bytes at an offset to a delta of generic WAL: offset, length,
 * bytes.
 */
#define RUN_HEAD	(2 * sizeof(OffsetNumber))

static inline char *
append_run(char *delta, OffsetNumber offset, const void *bytes, OffsetNumber len)
{
	memcpy(delta, &offset, sizeof(offset));
	memcpy(delta + sizeof(offset), &len, sizeof(len));
	memcpy(delta + RUN_HEAD, bytes, len);
	return delta + RUN_HEAD + len;
}

/*
 * Append what has changed of a block.  Runs that are no further apart than
 * such a head is long are one.
 */
static char *
append_block(char *delta, const uint8 *old, const uint8 *new,
			 OffsetNumber offset)
{
	const uint64 low7 = UINT64CONST(0x7F7F7F7F7F7F7F7F);
	uint64		changed = 0;	/* a bit for each byte */
	uint64		runs;

	StaticAssertStmt(BF_BLOCK_BYTES == 64, "a block has as many bytes as a word has bits");
	for (int i = 0; i < 8; i++)
	{
		uint64		x = bf_load64(old + i * 8) ^ bf_load64(new + i * 8);

		/* the high bit of each byte that is not 0, then those together */
		x = (((x & low7) + low7) | x) & ~low7;
		changed |= (x >> 7) * UINT64CONST(0x0102040810204080) >> 56 << i * 8;
	}

	/* close the gaps: widen each by a head's length, then take it back */
	runs = changed | changed << 1;
	runs |= runs << 2;
	runs |= changed << 4;
	for (unsigned i = 0; i < RUN_HEAD; i++)
		runs &= runs >> 1 | changed;
	runs |= changed;

	while (runs != 0)
	{
		int			start = pg_rightmost_one_pos64(runs);
		uint64		rest = ~(runs >> start);
		int			len = rest == 0 ? 64 : pg_rightmost_one_pos64(rest);

		len = Min(len, 64 - start);
		delta = append_run(delta, offset + start, new + start, len);
		runs = start + len == 64 ? 0 : runs >> (start + len) << (start + len);
	}
	return delta;
}

/*
 * Set a digest's bits in the page.  Returns how many pages' steps of bits the
 * metapage is to be told of.
 *
 * GenericXLogFinish would copy and compare the whole page: five times the cost
 * of a btree's insert.  We know what changes, and write the record that it
 * would write ourselves.  The format is the same in PostgreSQL 9.6 to 18; the
 * tests replay it.
 */
static uint64
set_bits(Relation index, Buffer buffer, const BfIndexLayer *layer, unsigned i,
		 BlockPlace place, BfDigest digest)
{
	const BfShape shape = ONE_BLOCK(layer);
	Page		page = BufferGetPage(buffer);
	BfPageInfo *info = BfPageGetInfo(page);
	uint8	   *block = (uint8 *) page + place.offset;
	uint8		changed[BF_BLOCK_BYTES];
	uint32		phase = phase_of(place.number, layer->step);
	uint32		before;
	int			fresh;

	LockBuffer(buffer, BUFFER_LOCK_EXCLUSIVE);
	bf_index_check_page(index, page, place.block, i, place.number);
	before = info->nset;
	memcpy(changed, block, BF_BLOCK_BYTES);
	fresh = bf_layout_blocked.add(changed, &shape, digest);
	if (fresh > 0)
	{
		char		delta[2 * BF_BLOCK_BYTES + 4 * RUN_HEAD];
		char	   *end = delta;
		uint32		nset = before + (uint32) fresh;
		LocationIndex lower = BLCKSZ;

		if (((PageHeader) page)->pd_lower != lower)
			end = append_run(end, offsetof(PageHeaderData, pd_lower), &lower,
							 sizeof(lower));
		end = append_run(end, (char *) &info->nset - (char *) page, &nset,
						 sizeof(nset));
		end = append_block(end, block, changed, place.offset);
		Assert(end <= delta + sizeof(delta));

		START_CRIT_SECTION();
		((PageHeader) page)->pd_lower = lower;
		info->nset = nset;
		memcpy(block, changed, BF_BLOCK_BYTES);
		MarkBufferDirty(buffer);
		if (RelationNeedsWAL(index))
		{
			XLogRecPtr	lsn;

			XLogBeginInsert();
			XLogRegisterBuffer(0, buffer, REGBUF_STANDARD);
			XLogRegisterBufData(0, delta, end - delta);
			lsn = XLogInsert(RM_GENERIC_ID, 0);
			PageSetLSN(page, lsn);
		}
		END_CRIT_SECTION();
	}
	LockBuffer(buffer, BUFFER_LOCK_UNLOCK);
	return ((before + (uint32) fresh + phase) / layer->step -
			(before + phase) / layer->step) * (uint64) layer->step;
}

/*
 * Add a key, unless a layer seems to have it.
 */
void
bf_index_add(Relation index, BfDigest digest)
{
	BfIndexLayer layers[BF_MAX_LAYERS];
	unsigned	nlayers = read_layers(index, layers, false);
	unsigned	last;
	BlockPlace	place;
	Buffer		buffer;
	BfShape		shape = {BF_BLOCK_BITS, 0};
	bool		present;
	uint64		counted = 0;

	while (nlayers == 0)
	{
		grow(index, 0);
		nlayers = read_layers(index, layers, false);
	}
	last = nlayers - 1;

	shape.nhashes = layers[last].nhashes;
	place = find_block(&layers[last], digest);
	buffer = pin_page(index, place.block, place.offset);

	/*
	 * Most keys are new, and a look without a lock shows it.  If all bits
	 * seem to be set the lock makes sure that they are in the WAL.
	 */
	present = bf_layout_blocked.test((uint8 *) BufferGetPage(buffer) +
									 place.offset, &shape, digest) &&
		test_buffer(index, buffer, &layers[last], last, place, digest);
	for (unsigned i = last; !present && i-- > 0;)
		present = test_layer(index, &layers[i], i, digest);
	if (!present)
		counted = set_bits(index, buffer, &layers[last], last, place, digest);
	ReleaseBuffer(buffer);

	/* what may raise an error comes last, or the count would be lost */
	if (counted > 0)
		count_bits(index, last, counted);
	CheckForSerializableConflictIn(index, NULL,
								   find_block(&layers[0], digest).block);
}
