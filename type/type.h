/*-------------------------------------------------------------------------
 *
 * type.h
 *	  The SQL type bloomfilter, above the core's plain C filter.
 *
 * A value is a varlena: the length word, then an image as core/format.c has
 * it.  C functions that SQL calls are named bf_sql_*.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_TYPE_H
#define BF_TYPE_H

#include "postgres.h"

#include "access/tupdesc.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "utils/array.h"

#include "core/bf.h"

/* ------------------------------------------------------------------------
 * Values (value.c)
 * ------------------------------------------------------------------------
 */
typedef struct varlena BloomFilter;

#define PG_GETARG_BLOOM(n)	((BloomFilter *) PG_GETARG_VARLENA_PP(n))

extern void bf_open_value(const BloomFilter *value, BfFilter *f);
extern void bf_fetch_header(Datum value, BfHeader *h);
extern void bf_peek_header(Datum value, BfHeader *h);
extern BloomFilter *bf_make_empty(const BfHeader *h);
extern BloomFilter *bf_make_unsized(void);

/* Raise err unless status is BF_OK. */
extern void bf_must(BfStatus status, const BfError *err);
extern void bf_throw(const BfError *err, int corrupt_sqlstate)
			__attribute__((noreturn));
extern int	bf_sqlstate(const BfError *err, int corrupt_sqlstate);
extern void bf_warn_overfilled(const BfHeader *h);

/*
 * A filter that is being built.  The bits appear with the first element, at
 * a place where result can put the header in front of them.
 */
typedef struct BfBuild
{
	MemoryContext context;
	BfFilter	f;
	void	   *memory;			/* of value, or NULL */
	BloomFilter *value;			/* room for the header, then f.bits */
	bool		aligned;
	MemoryContext bits_context; /* of the memory, if it is large, or NULL */
	Datum		handle;			/* 0, or what expanded.c made of it */
} BfBuild;

extern void bf_build_init(BfBuild *b, const BfHeader *h,
						  MemoryContext context, bool aligned);
extern void bf_build_start(BfBuild *b, const BfHeader *kind);
extern void bf_build_trim(BfBuild *b);
extern void bf_copy_kind(BfHeader *h, const BfHeader *kind,
						 MemoryContext context);
extern void bf_build_from(BfBuild *b, const BfFilter *from,
						  MemoryContext context);
extern void bf_build_union(BfBuild *b, const BfFilter *from);
extern void bf_build_intersect(BfBuild *b, const BfFilter *from);
extern BloomFilter *bf_build_result(BfBuild *b);
extern BloomFilter *bf_build_copy(BfBuild *b);

/* ------------------------------------------------------------------------
 * Base64 (base64.c)
 * ------------------------------------------------------------------------
 */
extern void bf_base64_encode(const uint8 *src, Size len, char *dst);
extern int64 bf_base64_decode(const char *src, Size len, uint8 *dst);

/* ------------------------------------------------------------------------
 * Scalable filters (scalable.c)
 * ------------------------------------------------------------------------
 */

/*
 * A scalable filter that is being built: a build a layer.
 */
typedef struct BfGrowing
{
	MemoryContext context;
	BfHeader	h;				/* its kind is set with the first element */
	unsigned	nlayers;
	BfBuild    *layers[BF_MAX_LAYERS];
} BfGrowing;

extern void bf_grow_init(BfGrowing *g, const BfHeader *h,
						 MemoryContext context);
extern void bf_grow_append(BfGrowing *g, const BfFilter *from);
extern bool bf_grow_add(BfGrowing *g, const BfHeader *kind, BfDigest digest);
extern bool bf_grow_remove(BfGrowing *g, BfDigest digest);
extern BloomFilter *bf_grow_result(BfGrowing *g);

extern void bf_check_combinable(const BfHeader *a, const BfHeader *b);
extern void bf_check_intersectable(const BfHeader *h);
extern bool bf_combinable(const BfHeader *a, const BfHeader *b);

/* ------------------------------------------------------------------------
 * Elements (element.c)
 * ------------------------------------------------------------------------
 */

typedef struct BfElement BfElement;

/* The digest of a value under a filter's hash and key. */
typedef BfDigest (*BfDigestFn) (BfElement *el, const BfHeader *h,
								Datum value);

/* Append a value's bytes to buf. */
typedef void (*BfEncodeFn) (BfElement *el, StringInfo buf, Datum value);

/*
 * How values of one type become bytes.  Looked up once a call site.
 */
struct BfElement
{
	BfDigestFn	digest;
	BfEncodeFn	encode;
	BfKind		kind;
	bool		not_portable;
	bool		dynamic;		/* anonymous records: ask each value */
	Oid			typid;			/* as declared */
	Oid			basetype;		/* domains looked through */
	Oid			collation;
	int16		typlen;
	bool		typbyval;
	char		typalign;
	MemoryContext parent;		/* outlives the element */
	MemoryContext context;		/* of what a composed kind needs */
	const char *kind_name;		/* UTF-8; NULL for simple kinds */
	StringInfoData buf;			/* for digests of composed values */

	FmgrInfo   *hash;			/* BF_KIND_HASHED */
	Oid			hash_collation;

	BfElement  *element;		/* BF_KIND_ARRAY */

	Oid			tuptype;		/* BF_KIND_RECORD */
	int32		tuptypmod;
	TupleDesc	tupdesc;
	uint64		tupdesc_id;		/* of a named type: changes when it is altered */
	BfElement  *columns;
};

extern void bf_element_init(BfElement *el, Oid typid, Oid collation,
							MemoryContext context);
extern void bf_element_init_row(BfElement *el, TupleDesc columns,
								MemoryContext context);
extern void bf_element_init_arg(BfElement *el, FunctionCallInfo fcinfo,
								int argno);
extern BfElement *bf_element_of_site(FunctionCallInfo fcinfo, int argno);
extern bool bf_element_of_array(BfElement *el, const ArrayType *array,
								FunctionCallInfo fcinfo);
extern bool bf_element_resolve_row(BfElement *el, const Datum *values,
								   const bool *nulls);
extern BfDigest bf_element_digest_row(BfElement *el, const BfHeader *h,
									  const Datum *values, const bool *nulls);
extern bool bf_element_resolve(BfElement *el, Datum value);
extern void bf_element_become(BfElement *el, const BfHeader *h, Datum value);
extern void bf_check_key(const BfHeader *h, const BfElement *el);
extern void bf_kind_of_element(const BfElement *el, BfHeader *h);
extern bool bf_same_kind(const BfHeader *a, const BfHeader *b);
extern const char *bf_kind_display(const BfHeader *h);

static inline BfDigest
bf_element_digest(BfElement *el, const BfHeader *h, Datum value)
{
	return el->digest(el, h, value);
}

/* ------------------------------------------------------------------------
 * Probing (probe.c)
 * ------------------------------------------------------------------------
 */
typedef struct BfProbeSite BfProbeSite;

extern BfProbeSite *bf_probe_create(Oid typid, Oid collation,
									MemoryContext context);
extern bool bf_probe(BfProbeSite *site, Datum filter, Datum value);
extern BfElement *bf_element_of_probe(FunctionCallInfo fcinfo);
extern bool bf_stored_has(FunctionCallInfo fcinfo);

/* ------------------------------------------------------------------------
 * Changing (modify.c)
 * ------------------------------------------------------------------------
 */

/*
 * A filter that is being changed: of fixed size, or growing.
 */
typedef struct BfChange
{
	bool		growing;
	BfBuild		b;
	BfGrowing	g;
} BfChange;

extern void bf_change_start(BfChange *c, const BfFilter *f);
extern bool bf_change_add(BfChange *c, BfElement *el, Datum value);
extern Datum bf_change_result(BfChange *c);

/* ------------------------------------------------------------------------
 * What a filter says about itself (info.c)
 * ------------------------------------------------------------------------
 */
extern double bf_fill(const BfHeader *h);

/* ------------------------------------------------------------------------
 * Parameters (construct.c)
 * ------------------------------------------------------------------------
 */
extern const BfLayout *bf_layout_arg(const char *name);
extern BfHash bf_hash_arg(const char *name);

#endif							/* BF_TYPE_H */
