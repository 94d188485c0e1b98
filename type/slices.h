/*-------------------------------------------------------------------------
 *
 * slices.h
 *	  Parts of a value that is stored out of line.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_SLICES_H
#define BF_SLICES_H

#include "type/type.h"

#include "access/genam.h"
#include "access/skey.h"
#include "executor/tuptable.h"
#include "utils/rel.h"
#include "utils/snapshot.h"

typedef struct BfSlices
{
	struct varatt_external pointer;
	Relation	toastrel;
	Relation   *indexes;
	int			nindexes;
	IndexScanDesc scan;
	TupleTableSlot *slot;
	SnapshotData snapshot;
	ScanKeyData keys[3];
	bool		small;			/* few chunks: the scan goes over all of them */
	int32		range;			/* chunks that a scan prepares */
	int32		end;			/* of the scan's range */
	int32		passed;			/* the scan is behind this chunk */
	int32		chunk;			/* that bytes are of; -1 = none */
	Size		nbytes;
	const char *bytes;
} BfSlices;

extern bool bf_can_slice(const struct varatt_external *pointer);
extern void bf_slices_open(BfSlices *s, const struct varatt_external *pointer,
						   bool everything);
extern void bf_slices_read(BfSlices *s, uint64 offset, Size length, void *to);
extern void bf_slices_close(BfSlices *s);

#endif							/* BF_SLICES_H */
