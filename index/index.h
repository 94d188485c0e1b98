/*-------------------------------------------------------------------------
 *
 * index.h
 *	  The live filter: an index access method that is a scalable blocked
 *	  filter in index pages.
 *
 * Block 0 is the metapage: the parameters, the element kind, and where each
 * layer's pages are.  A layer's pages follow each other; each has a header of
 * 64 bytes and 127 blocks of 64 bytes, so that no block crosses a page and a
 * probe reads one page a layer.  The concatenated blocks of a layer are the
 * payload that core/blocked.c knows, bit for bit.
 *
 * Bits are only ever set.  Layers are only ever added, behind the others.  A
 * new index and REINDEX are what makes a filter forget.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_INDEX_H
#define BF_INDEX_H

#include "type/type.h"

#include "access/amapi.h"
#include "nodes/execnodes.h"
#include "storage/shm_toc.h"
#include "storage/bufmgr.h"
#include "storage/bufpage.h"
#include "storage/dsm.h"
#include "utils/rel.h"

/* ------------------------------------------------------------------------
 * Pages (pages.c)
 * ------------------------------------------------------------------------
 */
#define BF_META_BLOCK		0
#define BF_META_MAGIC		0x42466D31	/* BFm1 */
#define BF_PAGE_MAGIC		0x42467031	/* BFp1 */

#define BF_BLOCK_BYTES		(BF_BLOCK_BITS / 8)
#define BF_PAGE_DATA		BF_BLOCK_BYTES	/* where a page's blocks start */
#define BF_PAGE_BLOCKS		((BLCKSZ - BF_PAGE_DATA) / BF_BLOCK_BYTES)

/*
 * Behind a page's standard header.  As long as no bit is set pd_lower ends
 * before the blocks, so that empty pages take no room in the WAL.
 */
typedef struct BfPageInfo
{
	uint32		magic;
	uint32		number;			/* of the page in its layer */
	uint32		layer;
	uint32		nset;			/* bits set in the page's blocks */
} BfPageInfo;

#define BfPageGetInfo(page)	((BfPageInfo *) PageGetContents(page))

/*
 * A layer in the metapage.  nset is about the number of bits set: a page
 * reports what it has got only every step bits.  For a layer as small as that
 * step is 1, and nset exact.
 */
typedef struct BfIndexLayer
{
	uint64		nblocks;		/* of 64 bytes */
	uint64		capacity;		/* elements */
	uint64		nset;
	BlockNumber first;			/* its first page */
	uint32		step;			/* bits */
	uint32		nhashes;
	uint32		unused;
} BfIndexLayer;

/* The metapage's contents. */
typedef struct BfIndexMeta
{
	uint32		magic;
	uint8		hash;			/* BfHash */
	uint8		expansion;
	uint8		kind;			/* BfKind of the keys */
	uint8		flags;
	float8		fpr;
	uint64		capacity;		/* of the first layer */
	uint16		nlayers;
	uint16		kind_name_len;
	uint32		unused;
	BfIndexLayer layers[BF_MAX_LAYERS];
	char		kind_name[BF_MAX_KIND_NAME];
	uint64		checksum;		/* of all above */
} BfIndexMeta;

#define BF_META_NOT_PORTABLE	0x01	/* of the kind */
#define BF_META_MIXED			0x02	/* keys of another kind were added */

#define BF_MIXED_DETAIL \
	"Rows were added after the type of its keys had changed."

static inline BlockNumber
bf_layer_npages(const BfIndexLayer *layer)
{
	return (BlockNumber) ((layer->nblocks + BF_PAGE_BLOCKS - 1) / BF_PAGE_BLOCKS);
}

extern void bf_index_read_meta(Relation index, BfIndexMeta *meta);
extern void bf_index_write_meta(Relation index, const BfIndexMeta *meta,
								ForkNumber fork);
extern void bf_index_mark_mixed(Relation index);
extern void bf_index_header(const BfIndexMeta *meta, BfHeader *h);
extern void bf_index_layer_header(const BfIndexMeta *meta, unsigned i,
								  BfHeader *layer);
extern BfStatus bf_index_plan_layer(const BfIndexMeta *meta, double least,
									BfHeader *layer, BfError *err);
extern void bf_index_append_layer(BfIndexMeta *meta, const BfHeader *layer);
extern void bf_index_init_page(Page page, unsigned layer, BlockNumber number,
							   bool empty);
extern void bf_index_check_page(Relation index, Page page, BlockNumber block,
								unsigned layer, BlockNumber number);
extern char *bf_index_name(Relation index);
extern void bf_index_corrupted(Relation index, BlockNumber block,
							   const char *detail)
			__attribute__((noreturn));

extern void bf_index_must_rebuild(Relation index, const char *detail)
			__attribute__((noreturn));

extern void bf_index_warn_full(Relation index, const BfError *err);

extern bool bf_index_test(Relation index, BfDigest digest);
extern void bf_index_add(Relation index, BfDigest digest);

/* ------------------------------------------------------------------------
 * Keys (key.c)
 * ------------------------------------------------------------------------
 */

/*
 * How an index tuple's columns become a digest: those of one column as its
 * value, those of several as a ROW of them.
 */
typedef struct BfIndexKey
{
	BfElement	el;
	BfHeader	h;				/* hash and kind */
	MemoryContext scratch;		/* reset after each key */
	bool		row;
} BfIndexKey;

extern void bf_index_key_init(BfIndexKey *key, Relation index, BfHash hash,
							  MemoryContext context);
extern bool bf_index_key_digest(BfIndexKey *key, const Datum *values,
								const bool *isnull, BfDigest *digest);

/* ------------------------------------------------------------------------
 * The access method (am.c), building (build.c)
 * ------------------------------------------------------------------------
 */
typedef struct BfIndexOptions
{
	int32		vl_len_;		/* varlena header (do not touch directly!) */
	double		capacity;		/* 0 = by the table */
	double		fpr;
	int			expansion;
	int			hash;			/* BfHash */
} BfIndexOptions;

extern void bf_index_options(Relation index, BfIndexOptions *options);
extern bool bf_is_bloomfilter_index(Relation index);
extern void bf_index_meta_init(Relation index, BfIndexMeta *meta,
							   const BfIndexKey *key, double capacity);

/* Of the first layer, where the table says nothing: three pages. */
#define BF_DEFAULT_CAPACITY	10000

#define BF_PHASE_SCAN	2		/* 1 is the server's "initializing" */
#define BF_PHASE_SET	3
#define BF_PHASE_WRITE	4

extern PGDLLEXPORT void bf_parallel_build_main(dsm_segment *seg, shm_toc *toc);
extern IndexBuildResult *bf_ambuild(Relation heap, Relation index,
									struct IndexInfo *indexInfo);

/* ------------------------------------------------------------------------
 * Opening an index for a user (open.c)
 * ------------------------------------------------------------------------
 */

/* A table that an index covers, and the index on it. */
typedef struct BfIndexLeaf
{
	Oid			table;
	Oid			index;			/* none: nothing is known of the table */
	BfHash		hash;
	bool		unknown;		/* the snapshot is too old for the index */
} BfIndexLeaf;

/*
 * What a call site knows of the index that it has asked last.
 */
typedef struct BfIndexSite
{
	BfElement	el;				/* of the values asked for */
	BfHeader	h;				/* the index's hash and kind */
	MemoryContext parent;
	MemoryContext context;		/* of what is known of this index */
	Oid			index;
	bool		partitioned;
	BfIndexLeaf *leaves;
	int			nleaves;

	/* as long as these are the same, all of the above is up to date */
	Oid			user;
	LocalTransactionId lxid;
	SubTransactionId subid;
	uint64		generation;
} BfIndexSite;

extern BfIndexSite *bf_index_site(FunctionCallInfo fcinfo);
extern void bf_index_site_use(BfIndexSite *site, Oid indexoid);
extern Relation bf_index_open(Oid indexoid, Relation *heap);
extern void bf_index_check_readable(Relation index, Relation heap);
extern bool bf_index_is_too_new(Relation index);

#endif							/* BF_INDEX_H */
