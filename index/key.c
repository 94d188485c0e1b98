/*-------------------------------------------------------------------------
 *
 * key.c
 *	  From an index tuple's columns to a digest.
 *
 * The elements are those of the SQL type: the exported filter of an index
 * answers as one that bloom_agg has built from the column does, or from
 * ROW(a, b) for an index on two columns.
 *
 *-------------------------------------------------------------------------
 */
#include "index/index.h"

#include "utils/memutils.h"

/*
 * By the index's own columns, as the catalog has them now.  An error if a type
 * cannot be hashed.
 */
void
bf_index_key_init(BfIndexKey *key, Relation index, BfHash hash,
				  MemoryContext context)
{
	TupleDesc	columns = RelationGetDescr(index);
	MemoryContext old = MemoryContextSwitchTo(context);

	memset(key, 0, sizeof(*key));
	key->scratch = AllocSetContextCreate(context, "bloomfilter index key",
										 ALLOCSET_SMALL_SIZES);
	key->row = columns->natts > 1;
	if (key->row)
		bf_element_init_row(&key->el, columns, context);
	else
		bf_element_init(&key->el, TupleDescAttr(columns, 0)->atttypid,
						index->rd_indcollation[0], context);
	key->h.hash = hash;
	bf_kind_of_element(&key->el, &key->h);
	MemoryContextSwitchTo(old);
}

/*
 * The key's digest; false if it is NULL, which is no key.  A ROW is one, even
 * of NULLs.
 */
bool
bf_index_key_digest(BfIndexKey *key, const Datum *values, const bool *isnull,
					BfDigest *digest)
{
	MemoryContext old;

	if (!key->row && isnull[0])
		return false;

	/* values may have to be detoasted */
	old = MemoryContextSwitchTo(key->scratch);
	if (key->el.context != NULL &&
		(key->row ? bf_element_resolve_row(&key->el, values, isnull) :
		 bf_element_resolve(&key->el, values[0])))
		bf_kind_of_element(&key->el, &key->h);
	*digest = key->row ?
		bf_element_digest_row(&key->el, &key->h, values, isnull) :
		bf_element_digest(&key->el, &key->h, values[0]);
	MemoryContextSwitchTo(old);
	MemoryContextReset(key->scratch);
	return true;
}
