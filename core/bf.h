/*-------------------------------------------------------------------------
 *
 * bf.h
 *	  The filter as plain C over the caller's memory.
 *
 * A filter answers "is x in the set?" with an exact "no" or a "maybe".  This
 * library knows how bytes become a digest (hash.c), how large a filter must
 * be (the layout files), how a value is laid out (format.c, specified byte by
 * byte in docs/format.md) and how elements are added, tested and counted.
 *
 * It allocates nothing, includes no PostgreSQL header, and reports errors as
 * return codes with a message in a caller-supplied BfError.  The SQL type is
 * built on it, and so are its unit tests and fuzz targets.
 *
 * Names: m (nbits) is the number of bits, k (nhashes) the number of bits an
 * element sets, n a number of distinct elements, p (fpr) the false-positive
 * rate, X (nset) the number of bits set.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_CORE_H
#define BF_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ------------------------------------------------------------------------
 * Errors
 * ------------------------------------------------------------------------
 */
typedef enum BfStatus
{
	BF_OK = 0,
	BF_BAD_PARAMETER,			/* an argument is out of its range */
	BF_TOO_LARGE,				/* the filter asked for exceeds BF_MAX_BITS */
	BF_CORRUPT,					/* bytes that are not a filter */
	BF_UNKNOWN_VERSION,			/* a filter of a later format */
	BF_INCOMPATIBLE,			/* two filters that cannot be combined */
	BF_FULL						/* no room for another element */
} BfStatus;

typedef struct BfError
{
	BfStatus	status;
	char		message[240];	/* one phrase, lower case, no full stop */
	char		hint[240];		/* what to do, or empty */
} BfError;

/* ------------------------------------------------------------------------
 * Limits
 * ------------------------------------------------------------------------
 */
#define BF_FORMAT_VERSION	1
#define BF_MAX_BITS			(UINT64_C(1) << 32) /* 512 MiB */
#define BF_MAX_CAPACITY		(UINT64_C(1) << 53) /* whole numbers in a double */
#define BF_MAX_KEY			32	/* bytes */
#define BF_MAX_KIND_NAME	512 /* bytes */
#define BF_DIGEST_SIZE		16	/* bytes */
#define BF_FIXED_HEADER		60	/* bytes before key and kind name */
#define BF_MAX_HEADER		1660	/* bytes; well inside one TOAST chunk */
#define BF_BLOCK_BITS		512 /* one cache line */
#define BF_MAX_LAYERS		32
#define BF_LAYER_ENTRY		32	/* bytes a layer takes in the header */
#define BF_MAX_EXPANSION	16
#define BF_MAX_RANGES		64	/* byte ranges that a probe may need */

/* ------------------------------------------------------------------------
 * Interrupts
 *
 * What goes through a large payload calls bf_poll, if it is set, every few
 * milliseconds.  It may leave by longjmp: nothing is left undone, but the
 * filter that was to be changed is then of no use.
 * ------------------------------------------------------------------------
 */
extern void (*bf_poll) (void);

#define BF_POLL_BYTES	(1024 * 1024)	/* of payload from one call to the next */

static inline void
bf_may_stop(void)
{
	if (bf_poll != NULL)
		bf_poll();
}

/* ------------------------------------------------------------------------
 * Hashing: bytes -> 128-bit digest
 * ------------------------------------------------------------------------
 */
typedef enum BfHash
{
	BF_HASH_XXH3 = 1,			/* XXH3-128 */
	BF_HASH_BLAKE2B = 2			/* BLAKE2b with a 16-byte digest */
} BfHash;

/*
 * The two halves of a digest, each read little-endian from its 16 bytes in
 * the order that the hash's own libraries print them.
 */
typedef struct BfDigest
{
	uint64_t	h1;
	uint64_t	h2;
} BfDigest;

extern BfDigest bf_digest(BfHash hash, const uint8_t *key, size_t keylen,
						  const void *data, size_t len);
extern uint64_t bf_checksum(const void *bytes, size_t len);
extern void bf_digest_bytes(BfDigest digest, uint8_t out[BF_DIGEST_SIZE]);
extern const char *bf_hash_name(BfHash hash);
extern bool bf_hash_by_name(const char *name, BfHash *hash);

/* ------------------------------------------------------------------------
 * Layouts
 * ------------------------------------------------------------------------
 */
typedef enum BfLayoutId
{
	BF_STANDARD = 1,
	BF_BLOCKED = 2,
	BF_COUNTING = 3,
	BF_CUCKOO = 4
} BfLayoutId;

/* A run of bytes of the payload. */
typedef struct BfRange
{
	uint64_t	offset;
	uint32_t	length;
} BfRange;

/* What positions depend on. */
typedef struct BfShape
{
	uint64_t	nbits;			/* of the payload (m for bits); 0 = unsized */
	uint32_t	nhashes;		/* k; bits of a fingerprint (cuckoo) */
} BfShape;

/*
 * One layout's operations.  Everything that is not in this table is written
 * once for all layouts.
 */
typedef struct BfLayout
{
	BfLayoutId	id;
	const char *name;
	double		min_fpr;		/* the smallest rate that it can be sized for */
	uint32_t	max_hashes;		/* the largest k */
	bool		takes_hashes;	/* k may be chosen by the caller */
	uint64_t	unit;			/* nbits is a multiple of this */
	bool		multiset;		/* every add counts and can be removed */
	bool		bounded;		/* holds its capacity and no more */

	/* m and k for n elements at rate p; k is kept where it is not 0 */
	void		(*size) (double n, double p, BfShape *shape);
	/* false-positive rate with n distinct elements */
	double		(*rate) (const BfShape *shape, double n);
	/* expected X with n distinct elements, and its variance */
	double		(*expected_set) (const BfShape *shape, double n,
								 double *variance);
	/* halve: what was contained stays so.  nbits / unit must be even */
	void		(*fold) (uint8_t *bits, const BfShape *shape);
	/* double, in place: an element is there if it was before */
	void		(*unfold) (uint8_t *bits, const BfShape *shape);
	/* n from X; infinite where every bit is set */
	double		(*count) (const BfShape *shape, uint64_t nset);

	/* returns by how much X grew, or -1 where there is no room */
	int			(*add) (uint8_t *bits, const BfShape *shape, BfDigest digest);
	/* ask for the memory that digests need */
	void		(*prefetch) (const uint8_t *bits, const BfShape *shape,
							 const BfDigest *digests, uint32_t n);
	/* prefetches, then adds without counting; NULL: one by one */
	void		(*add_many) (uint8_t *bits, const BfShape *shape,
							 const BfDigest *digests, uint32_t n);
	/* of an element that passes test; returns by how much X shrank */
	int			(*remove) (uint8_t *bits, const BfShape *shape,
						   BfDigest digest);
	bool		(*test) (const uint8_t *bits, const BfShape *shape,
						 BfDigest digest);
	/* the byte ranges that test reads, in ascending order; returns how many */
	uint32_t	(*ranges) (const BfShape *shape, BfDigest digest,
						   BfRange ranges[BF_MAX_RANGES]);
	/* test, of the ranges' bytes alone, put together without gaps */
	bool		(*test_ranges) (const uint8_t *bytes, const BfRange *ranges,
								uint32_t nranges, const BfShape *shape,
								BfDigest digest);
	/* into |= from, into &= from; false where there is no room */
	bool		(*unite) (uint8_t *into, const uint8_t *from,
						  const BfShape *shape);
	bool		(*intersect) (uint8_t *into, const uint8_t *from,
							  const BfShape *shape);
	uint64_t	(*recount) (const uint8_t *bits, const BfShape *shape);
	/* can there be such a shape?  NULL: any multiple of unit */
	bool		(*fits) (const BfShape *shape);
	/* NULL: any bits will do */
	bool		(*validate) (const uint8_t *bits, const BfShape *shape);
} BfLayout;

/* Plain bits */
extern bool bf_or_bits(uint8_t *into, const uint8_t *from,
					   const BfShape *shape);
extern bool bf_and_bits(uint8_t *into, const uint8_t *from,
						const BfShape *shape);
extern uint64_t bf_count_bits(const uint8_t *bits, const BfShape *shape);

extern const BfLayout bf_layout_standard;
extern const BfLayout bf_layout_blocked;
extern const BfLayout bf_layout_counting;
extern const BfLayout bf_layout_cuckoo;

extern const BfLayout *bf_layout_by_id(unsigned id);
extern const BfLayout *bf_layout_by_name(const char *name);
extern const BfLayout *bf_layout_at(unsigned i);	/* NULL past the last */

/* ------------------------------------------------------------------------
 * Element kinds
 *
 * What was hashed.  Filters of different kinds never combine, and a probe of
 * another kind is an error, never a "no".  docs/format.md gives the bytes.
 * ------------------------------------------------------------------------
 */
typedef enum BfKind
{
	BF_KIND_NONE = 0,			/* no element yet */
	BF_KIND_INTEGER = 1,
	BF_KIND_TEXT = 2,
	BF_KIND_FLOAT = 3,
	BF_KIND_BYTEA = 4,
	BF_KIND_UUID = 5,
	BF_KIND_BOOL = 6,
	BF_KIND_DATE = 7,
	BF_KIND_TIME = 8,
	BF_KIND_TIMESTAMP = 9,
	BF_KIND_TIMESTAMPTZ = 10,
	BF_KIND_TIMETZ = 11,
	BF_KIND_MACADDR = 12,
	BF_KIND_MACADDR8 = 13,
	BF_KIND_INET = 14,
	BF_KIND_NUMERIC = 15,

	/* these carry a name in the header, which is a part of the kind */
	BF_KIND_ENUM = 16,			/* enum:schema.type */
	BF_KIND_ARRAY = 17,			/* integer[] */
	BF_KIND_RECORD = 18,		/* (integer,text) */
	BF_KIND_HASHED = 19			/* hash:schema.type; not portable */
} BfKind;

#define BF_FIRST_NAMED_KIND	BF_KIND_ENUM

extern const char *bf_kind_name(unsigned kind); /* NULL where unknown */
extern bool bf_kind_is_valid(unsigned kind, const char *name, size_t len);

/* ------------------------------------------------------------------------
 * A filter's header and a filter
 * ------------------------------------------------------------------------
 */
typedef struct BfHeader
{
	const BfLayout *layout;
	BfHash		hash;
	BfShape		shape;
	bool		hashes_given;	/* k was chosen by the caller */
	uint8_t		keylen;
	uint8_t		kind;			/* element kind; 0 while the filter is empty */
	uint16_t	kind_name_len;	/* bytes; 0 for kinds that need no name */
	bool		not_portable;	/* elements are hashed by the server's own
								 * functions */
	uint64_t	capacity;		/* 0 = unsized */
	double		fpr;
	uint64_t	nset;			/* bits set; counters that are not 0;
								 * fingerprints held */
	uint8_t		expansion;		/* 0 = of fixed size; else the shape and
								 * capacity above are the first layer's */
	uint8_t		nlayers;		/* 0 = no layers (yet) */
	uint64_t	checksum;		/* XXH3-64 of the payload; 0 while empty */
	uint8_t		key[BF_MAX_KEY];
	const char *kind_name;		/* not terminated; points into the image or to
								 * memory of the caller */
	const uint8_t *layers;		/* nlayers entries of the image */
} BfHeader;

typedef struct BfFilter
{
	BfHeader	h;
	uint8_t    *bits;			/* NULL while the filter is empty */
	size_t		nbytes;			/* of bits */
} BfFilter;

/*
 * Sizing.  Fills in h->shape and h->capacity; capacity 0 leaves the header
 * unsized.  nhashes 0 means the best k.
 */
extern BfStatus bf_header_init(BfHeader *h, const BfLayout *layout,
							   BfHash hash, const uint8_t *key, size_t keylen,
							   double capacity, double fpr, int nhashes,
							   BfError *err);
extern BfStatus bf_header_expand(BfHeader *h, int expansion, BfError *err);
extern BfStatus bf_header_resize(BfHeader *h, double capacity, BfError *err);
extern double bf_capacity_for(const BfLayout *layout, double bytes, double fpr);

static inline bool
bf_is_sized(const BfHeader *h)
{
	return h->shape.nbits != 0;
}

/* Bytes of the header, of the bits, and of a whole image. */
extern size_t bf_header_size(const BfHeader *h);
static inline size_t
bf_payload_size(const BfHeader *h)
{
	return (size_t) (h->shape.nbits / 8);
}
extern size_t bf_image_size(const BfHeader *h);

/*
 * Images.  bf_open checks all that keeps later operations inside the image,
 * in constant time; bf_validate checks everything, the payload included.
 * bf_open_header is for an image of which only the first have bytes are at
 * hand (at least its header, or BF_MAX_HEADER): bits stays NULL.
 */
extern BfStatus bf_open(const uint8_t *image, size_t len, BfFilter *f,
						BfError *err);
extern BfStatus bf_open_header(const uint8_t *image, size_t have, size_t len,
							   BfHeader *h, BfError *err);
/* What the first have bytes say the header takes, within limits. */
extern size_t bf_image_header_size(const uint8_t *image, size_t have);
extern BfStatus bf_validate(const uint8_t *image, size_t len, BfFilter *f,
							BfError *err);
extern void bf_write_header(const BfHeader *h, uint8_t *image);

/*
 * Scalable filters.  A layer is a filter of fixed size; bf_layer_header tells
 * about the i'th, bf_open_layer opens it.  bf_plan_layer sizes the i'th that a
 * filter is to get, behind last.
 */
extern void bf_layer_header(const BfHeader *h, unsigned i, BfHeader *layer);
extern void bf_open_layer(const BfFilter *f, unsigned i, BfFilter *layer);
extern BfStatus bf_plan_layer(const BfHeader *h, unsigned i,
							  const BfHeader *last, BfHeader *layer,
							  BfError *err);
extern bool bf_layer_is_full(const BfHeader *layer, bool only);
extern void bf_write_layer_entry(const BfHeader *layer, uint8_t *entry);

/* Bring the payload's checksum up to date, before bf_write_header. */
extern void bf_seal(BfFilter *f);

/* ------------------------------------------------------------------------
 * Operations
 * ------------------------------------------------------------------------
 */
extern bool bf_test_layers(const BfFilter *f, BfDigest digest);

static inline bool
bf_test(const BfFilter *f, BfDigest digest)
{
	if (f->bits == NULL)
		return false;
	if (f->h.expansion != 0)
		return bf_test_layers(f, digest);
	return f->h.layout->test(f->bits, &f->h.shape, digest);
}

/* The following four are for filters of fixed size, and layers. */
extern BfStatus bf_add(BfFilter *f, BfDigest digest, BfError *err);
/* Add without counting: any number of these, then bf_recount. */
extern BfStatus bf_add_many(BfFilter *f, const BfDigest *digests, uint32_t n,
							BfError *err);
extern bool bf_remove(BfFilter *f, BfDigest digest);
extern void bf_recount(BfFilter *f);

/* Everything but kind and contents is the same?  err names what differs. */
extern BfStatus bf_same_parameters(const BfHeader *a, const BfHeader *b,
								   BfError *err);
/* into |= from, into &= from: same shape, both with bits; counts anew. */
extern BfStatus bf_unite(BfFilter *into, const BfFilter *from, BfError *err);
extern void bf_intersect(BfFilter *into, const BfFilter *from);
/* capacity and fpr of a combination of two filters */
extern void bf_merge_design(BfHeader *into, const BfHeader *from);

/* Halve a filter in place; the header's capacity is left to the caller. */
extern bool bf_can_fold(const BfHeader *h);
extern void bf_fold(BfFilter *f);
/* The largest n at which the rate is still met. */
extern double bf_max_elements(const BfHeader *h);

extern double bf_cardinality(const BfHeader *h);
extern double bf_expected_fpr(const BfHeader *h);
extern double bf_design_fpr(const BfHeader *h);

/*
 * Does the filter hold more than it was sized for, beyond chance?
 */
extern bool bf_overfilled(const BfHeader *h);

/* Fingerprints that fit. */
extern double bf_cuckoo_slots(const BfShape *shape);

extern void bf_counting_to_bits(const uint8_t *counters, const BfShape *shape,
								uint8_t *bits);

/* Set bits of len bytes. */
extern uint64_t bf_popcount(const uint8_t *bytes, size_t len);

extern BfStatus bf_fail(BfError *err, BfStatus status, const char *fmt,...)
			__attribute__((format(printf, 3, 4)));

#endif							/* BF_CORE_H */
