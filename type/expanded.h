/*-------------------------------------------------------------------------
 *
 * expanded.h
 *	  Filters in memory that can be added to without a copy of the bits.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_EXPANDED_H
#define BF_EXPANDED_H

#include "type/type.h"

typedef struct BfHandle BfHandle;

extern BfHandle *bf_get_handle(Datum value);
extern const BfHeader *bf_handle_header(const BfHandle *handle);
extern const BfFilter *bf_handle_filter(const BfHandle *handle);
extern bool bf_can_expand(const BfFilter *f);
extern Datum bf_expand(const BfFilter *f, const BfHeader *kind);
extern Datum bf_expand_build(BfBuild *b);
extern Datum bf_handle_again(Datum value);
extern Datum bf_handle_add(Datum value, BfDigest digest);

#endif							/* BF_EXPANDED_H */
