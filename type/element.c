/*-------------------------------------------------------------------------
 *
 * element.c
 *	  Values of SQL types as bytes to be hashed.
 *
 * Two values that are equal in PostgreSQL give the same bytes, and the bytes
 * depend on nothing else: not on the platform, the server's build or the
 * database's encoding.  docs/format.md lists them kind by kind.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#include "core/hash.h"

#include <math.h>

/* ------------------------------------------------------------------------
 * Digests, a function for each way to encode
 * ------------------------------------------------------------------------
 */
static inline BfDigest
digest_int64(const BfHeader *h, int64 x)
{
	uint8		bytes[8];

	bf_store64(bytes, (uint64) x);
	return bf_digest_inline(h->hash, h->key, h->keylen, bytes, sizeof(bytes));
}

static BfDigest
digest_of_int2(const BfElement *el, const BfHeader *h, Datum value)
{
	return digest_int64(h, DatumGetInt16(value));
}

/* also date */
static BfDigest
digest_of_int4(const BfElement *el, const BfHeader *h, Datum value)
{
	return digest_int64(h, DatumGetInt32(value));
}

/* also time, timestamp and timestamptz */
static BfDigest
digest_of_int8(const BfElement *el, const BfHeader *h, Datum value)
{
	return digest_int64(h, DatumGetInt64(value));
}

static BfDigest
digest_of_oid(const BfElement *el, const BfHeader *h, Datum value)
{
	return digest_int64(h, (int64) DatumGetObjectId(value));
}

static BfDigest
digest_float8(const BfHeader *h, float8 x)
{
	uint8		bytes[8];

	if (x == 0)
		x = 0;					/* -0 */
	bf_store_double(bytes, x);
	if (isnan(x))
		bf_store64(bytes, UINT64CONST(0x7FF8000000000000));
	return bf_digest_inline(h->hash, h->key, h->keylen, bytes, sizeof(bytes));
}

static BfDigest
digest_of_float4(const BfElement *el, const BfHeader *h, Datum value)
{
	return digest_float8(h, DatumGetFloat4(value));
}

static BfDigest
digest_of_float8(const BfElement *el, const BfHeader *h, Datum value)
{
	return digest_float8(h, DatumGetFloat8(value));
}

static BfDigest
digest_of_bool(const BfElement *el, const BfHeader *h, Datum value)
{
	uint8		byte = DatumGetBool(value) ? 1 : 0;

	return bf_digest(h->hash, h->key, h->keylen, &byte, 1);
}

static BfDigest
digest_of_uuid(const BfElement *el, const BfHeader *h, Datum value)
{
	return bf_digest(h->hash, h->key, h->keylen, DatumGetUUIDP(value)->data,
					 UUID_LEN);
}

static BfDigest
digest_text(const BfHeader *h, const char *s, int len)
{
	BfDigest	digest;
	char	   *utf8;

	if (likely(GetDatabaseEncoding() == PG_UTF8))
		return bf_digest(h->hash, h->key, h->keylen, s, len);

	utf8 = pg_server_to_any(s, len, PG_UTF8);
	digest = bf_digest(h->hash, h->key, h->keylen, utf8,
					   utf8 == s ? (Size) len : strlen(utf8));
	if (utf8 != s)
		pfree(utf8);
	return digest;
}

/* text, varchar, bpchar and bytea */
static BfDigest
digest_of_varlena(const BfElement *el, const BfHeader *h, Datum value)
{
	struct varlena *v = PG_DETOAST_DATUM_PACKED(value);
	const char *s = VARDATA_ANY(v);
	int			len = VARSIZE_ANY_EXHDR(v);
	BfDigest	digest;

	if (el->basetype == BPCHAROID)
		len = bpchartruelen((char *) s, len);
	if (el->kind == BF_KIND_TEXT)
		digest = digest_text(h, s, len);
	else
		digest = bf_digest(h->hash, h->key, h->keylen, s, len);
	if ((Pointer) v != DatumGetPointer(value))
		pfree(v);
	return digest;
}

static BfDigest
digest_of_name(const BfElement *el, const BfHeader *h, Datum value)
{
	const char *s = NameStr(*DatumGetName(value));

	return digest_text(h, s, strlen(s));
}

/* ------------------------------------------------------------------------
 * Types
 * ------------------------------------------------------------------------
 */
static const struct
{
	Oid			type;
	BfKind		kind;
	BfDigestFn	digest;
}			types[] =
{
	{INT2OID, BF_KIND_INTEGER, digest_of_int2},
	{INT4OID, BF_KIND_INTEGER, digest_of_int4},
	{INT8OID, BF_KIND_INTEGER, digest_of_int8},
	{OIDOID, BF_KIND_INTEGER, digest_of_oid},
	{TEXTOID, BF_KIND_TEXT, digest_of_varlena},
	{VARCHAROID, BF_KIND_TEXT, digest_of_varlena},
	{BPCHAROID, BF_KIND_TEXT, digest_of_varlena},
	{NAMEOID, BF_KIND_TEXT, digest_of_name},
	{FLOAT4OID, BF_KIND_FLOAT, digest_of_float4},
	{FLOAT8OID, BF_KIND_FLOAT, digest_of_float8},
	{BYTEAOID, BF_KIND_BYTEA, digest_of_varlena},
	{UUIDOID, BF_KIND_UUID, digest_of_uuid},
	{BOOLOID, BF_KIND_BOOL, digest_of_bool},
	{DATEOID, BF_KIND_DATE, digest_of_int4},
	{TIMEOID, BF_KIND_TIME, digest_of_int8},
	{TIMESTAMPOID, BF_KIND_TIMESTAMP, digest_of_int8},
	{TIMESTAMPTZOID, BF_KIND_TIMESTAMPTZ, digest_of_int8},
};

void
bf_element_init(BfElement *el, Oid typid, Oid collation)
{
	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type of the element")));

	el->typid = typid;
	el->basetype = getBaseType(typid);
	el->kind = BF_KIND_NONE;
	for (int i = 0; i < (int) lengthof(types); i++)
	{
		if (types[i].type == el->basetype)
		{
			el->kind = types[i].kind;
			el->digest = types[i].digest;
		}
	}
	if (el->kind == BF_KIND_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a filter cannot hold elements of type %s",
						format_type_be(typid)),
				 errhint("Cast the value to a supported type, for example to text.")));

	/* equal strings that differ in their bytes would be answered "no" */
	if (el->kind == BF_KIND_TEXT && OidIsValid(collation) &&
		!get_collation_isdeterministic(collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("nondeterministic collation \"%s\" is not supported for filters",
						get_collation_name(collation)),
				 errhint("Fold the value yourself, for example with lower(), and add COLLATE \"C\".")));

	get_typlenbyvalalign(el->basetype, &el->typlen, &el->typbyval,
						 &el->typalign);
}

/*
 * The element that an argument is, by its type in the query.
 */
void
bf_element_init_arg(BfElement *el, FunctionCallInfo fcinfo, int argno)
{
	bf_element_init(el, get_fn_expr_argtype(fcinfo->flinfo, argno),
					PG_GET_COLLATION());
}

/*
 * The same, kept in fn_extra.
 */
BfElement *
bf_element_of_arg(FunctionCallInfo fcinfo, int argno)
{
	BfElement  *el = fcinfo->flinfo->fn_extra;

	if (unlikely(el == NULL))
	{
		el = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(BfElement));
		bf_element_init_arg(el, fcinfo, argno);
		fcinfo->flinfo->fn_extra = el;
	}
	return el;
}

/*
 * The element that an argument is an array of.
 */
BfElement *
bf_element_of_array_arg(FunctionCallInfo fcinfo, int argno)
{
	BfElement  *el = fcinfo->flinfo->fn_extra;

	if (unlikely(el == NULL))
	{
		ArrayType  *array = PG_GETARG_ARRAYTYPE_P(argno);

		el = MemoryContextAlloc(fcinfo->flinfo->fn_mcxt, sizeof(BfElement));
		bf_element_init(el, ARR_ELEMTYPE(array), PG_GET_COLLATION());
		fcinfo->flinfo->fn_extra = el;
	}
	return el;
}

/*
 * Write the element's kind into a header.
 */
void
bf_kind_of_element(const BfElement *el, BfHeader *h)
{
	h->kind = el->kind;
	h->kind_name_len = 0;
	h->kind_name = NULL;
}

static void kind_error(const BfHeader *h, const BfElement *el) pg_attribute_noreturn();

/*
 * A probe of another kind is an error: a "no" would be wrong.
 */
void
bf_check_kind(const BfHeader *h, const BfElement *el)
{
	if (likely(h->kind == el->kind) || h->kind == BF_KIND_NONE)
		return;
	kind_error(h, el);
}

static void
kind_error(const BfHeader *h, const BfElement *el)
{
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("filter holds %s elements, not %s",
					bf_kind_name(h->kind), format_type_be(el->typid)),
			 errhint("Cast the value, as in: filter @> %s::%s.",
					 el->kind == BF_KIND_TEXT ? "'...'" : "value",
					 h->kind == BF_KIND_FLOAT ? "float8" : bf_kind_name(h->kind))));
}
