/*-------------------------------------------------------------------------
 *
 * collect.h
 *	  A collection of digests from which a filter of the right size is made.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_COLLECT_H
#define BF_COLLECT_H

#include "type/type.h"

/* Elements are added to large tables by so many at a time. */
#define BF_BATCH	64

typedef struct BfCollection BfCollection;

/* Sizes already computed, for results of many small groups. */
typedef struct BfSizeMemo
{
	BfHeader	design;			/* for which they hold; layout NULL = none */
	BfShape		shapes[257];	/* by n; nbits 0 = not yet known */
} BfSizeMemo;

extern BfCollection *bf_collect_create(const BfHeader *design,
									   MemoryContext context);
extern void bf_collect_add(BfCollection *c, const BfHeader *design,
						   const BfDigest *digests, uint32 n);
extern bool bf_collect_wants_batches(const BfCollection *c);
extern void bf_collect_merge(BfCollection *into, BfCollection *from,
							 const BfHeader *design);
extern bool bf_collect_is_empty(const BfCollection *c);
extern void bf_collect_serialize(BfCollection *c, const BfHeader *design,
								 StringInfo buf);
extern BfCollection *bf_collect_deserialize(const uint8 *bytes, Size len,
											const BfHeader *design,
											MemoryContext context);
extern BloomFilter *bf_collect_result(BfCollection *c, const BfHeader *design,
									  BfSizeMemo *memo);

#endif							/* BF_COLLECT_H */
