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

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#if PG_VERSION_NUM >= 160000
#include "nodes/miscnodes.h"
#endif
#include "parser/parse_coerce.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/inet.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/numeric.h"
#include "utils/regproc.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/typcache.h"
#include "utils/uuid.h"

#include "core/hash.h"

#include <math.h>
#include <sys/socket.h>

/* ------------------------------------------------------------------------
 * Simple kinds: a value as a few bytes
 *
 * Each type has one function, of which two are made: the digest of its bytes,
 * in which they stay in registers, and one that appends them to a buffer,
 * for arrays and records.
 * ------------------------------------------------------------------------
 */
#define SIMPLE_TYPE(name, size, value, bytes) \
	static inline void \
	bytes_of_##name(uint8 *bytes, Datum value); \
\
	static BfDigest \
	digest_of_##name(BfElement *el, const BfHeader *h, Datum datum) \
	{ \
		uint8		image[size]; \
\
		bytes_of_##name(image, datum); \
		return bf_digest_inline(h->hash, h->key, h->keylen, image, size); \
	} \
\
	static void \
	encode_##name(BfElement *el, StringInfo buf, Datum datum) \
	{ \
		uint8		image[size]; \
\
		bytes_of_##name(image, datum); \
		appendBinaryStringInfo(buf, (char *) image, size); \
	} \
\
	static inline void \
	bytes_of_##name(uint8 *bytes, Datum value)

SIMPLE_TYPE(int2, 8, value, bytes)
{
	bf_store64(bytes, (uint64) (int64) DatumGetInt16(value));
}

/* also date */
SIMPLE_TYPE(int4, 8, value, bytes)
{
	bf_store64(bytes, (uint64) (int64) DatumGetInt32(value));
}

/* also time, timestamp and timestamptz */
SIMPLE_TYPE(int8, 8, value, bytes)
{
	bf_store64(bytes, (uint64) DatumGetInt64(value));
}

/* also regclass and its kin */
SIMPLE_TYPE(oid, 8, value, bytes)
{
	bf_store64(bytes, (uint64) DatumGetObjectId(value));
}

static inline void
store_float8(uint8 *bytes, float8 x)
{
	if (x == 0)
		x = 0;					/* -0 */
	bf_store_double(bytes, x);
	if (isnan(x))
		bf_store64(bytes, UINT64CONST(0x7FF8000000000000));
}

SIMPLE_TYPE(float4, 8, value, bytes)
{
	store_float8(bytes, DatumGetFloat4(value));
}

SIMPLE_TYPE(float8, 8, value, bytes)
{
	store_float8(bytes, DatumGetFloat8(value));
}

SIMPLE_TYPE(bool, 1, value, bytes)
{
	bytes[0] = DatumGetBool(value) ? 1 : 0;
}

SIMPLE_TYPE(uuid, 16, value, bytes)
{
	memcpy(bytes, DatumGetUUIDP(value)->data, UUID_LEN);
}

/* two values are equal only if they have the same zone, too */
SIMPLE_TYPE(timetz, 16, value, bytes)
{
	TimeTzADT  *time = DatumGetTimeTzADTP(value);

	bf_store64(bytes, (uint64) time->time);
	bf_store64(bytes + 8, (uint64) (int64) time->zone);
}

SIMPLE_TYPE(macaddr, 6, value, bytes)
{
	macaddr    *mac = DatumGetMacaddrP(value);

	memcpy(bytes, mac, 6);
}

SIMPLE_TYPE(macaddr8, 8, value, bytes)
{
	macaddr8   *mac = DatumGetMacaddr8P(value);

	memcpy(bytes, mac, 8);
}

/* ------------------------------------------------------------------------
 * Strings
 * ------------------------------------------------------------------------
 */

/*
 * A string of the database in UTF-8.  Of SQL_ASCII nothing is known: its
 * bytes are taken as they are.
 */
static const char *
to_utf8(const char *s, int *len)
{
	const char *utf8;

	if (likely(GetDatabaseEncoding() == PG_UTF8) ||
		GetDatabaseEncoding() == PG_SQL_ASCII)
		return s;
	utf8 = pg_server_to_any(s, *len, PG_UTF8);
	if (utf8 != s)
		*len = strlen(utf8);
	return utf8;
}

/* The part of a string type's value that counts. */
static inline const char *
string_of(const BfElement *el, Datum value, int *len, struct varlena **copy)
{
	const char *s;

	*copy = NULL;
	switch (el->basetype)
	{
		case NAMEOID:
			s = NameStr(*DatumGetName(value));
			*len = strlen(s);
			break;
		case UNKNOWNOID:
			s = DatumGetCString(value);
			*len = strlen(s);
			break;
		default:
			{
				struct varlena *v = PG_DETOAST_DATUM_PACKED(value);

				if ((Pointer) v != DatumGetPointer(value))
					*copy = v;
				s = VARDATA_ANY(v);
				*len = VARSIZE_ANY_EXHDR(v);
				if (el->basetype == BPCHAROID)
					*len = bpchartruelen((char *) s, *len);
			}
	}
	return el->kind == BF_KIND_TEXT ? to_utf8(s, len) : s;
}

/* text, varchar, bpchar, name, literals inside a ROW, and bytea */
static BfDigest
digest_of_string(BfElement *el, const BfHeader *h, Datum value)
{
	struct varlena *copy;
	int			len;
	const char *s = string_of(el, value, &len, &copy);
	BfDigest	digest = bf_digest(h->hash, h->key, h->keylen, s, len);

	if (copy != NULL)
		pfree(copy);
	return digest;
}

static void
encode_string(BfElement *el, StringInfo buf, Datum value)
{
	struct varlena *copy;
	int			len;
	const char *s = string_of(el, value, &len, &copy);

	appendBinaryStringInfo(buf, s, len);
}

/*
 * "char" is the text that it is cast to: one character, none for \0.
 */
static void
encode_char(BfElement *el, StringInfo buf, Datum value)
{
	unsigned char c = (unsigned char) DatumGetChar(value);

	if (c >= 0x80)
		appendStringInfo(buf, "\\%03o", c);
	else if (c != '\0')
		appendStringInfoChar(buf, (char) c);
}

/*
 * The decimal digits, without trailing zeros behind the point: the server's
 * own canonical form.  NaN and infinities have their names.
 */
static void
encode_numeric(BfElement *el, StringInfo buf, Datum value)
{
	char	   *s = numeric_normalize(DatumGetNumeric(value));

	appendStringInfoString(buf, s);
	pfree(s);
}

/*
 * Family (4 or 6), bits of the netmask, address.
 */
static void
encode_inet(BfElement *el, StringInfo buf, Datum value)
{
	inet	   *ip = DatumGetInetPP(value);

	appendStringInfoChar(buf, ip_family(ip) == PGSQL_AF_INET ? 4 : 6);
	appendStringInfoChar(buf, (char) ip_bits(ip));
	appendBinaryStringInfo(buf, (char *) ip_addr(ip),
						   ip_family(ip) == PGSQL_AF_INET ? 4 : 16);
}

/* ------------------------------------------------------------------------
 * Enums, arrays, records, and types that are hashed by their own function
 * ------------------------------------------------------------------------
 */
static void
empty_buffer(BfElement *el)
{
	if (el->buf.data == NULL)
	{
		MemoryContext old = MemoryContextSwitchTo(el->parent);

		initStringInfo(&el->buf);
		MemoryContextSwitchTo(old);
	}
	resetStringInfo(&el->buf);
}

static BfDigest
digest_of_encoded(BfElement *el, const BfHeader *h, Datum value)
{
	empty_buffer(el);
	el->encode(el, &el->buf, value);
	return bf_digest(h->hash, h->key, h->keylen, el->buf.data, el->buf.len);
}

static void
encode_enum(BfElement *el, StringInfo buf, Datum value)
{
	HeapTuple	tuple = SearchSysCache1(ENUMOID, value);
	const char *label;
	int			len;

	if (!HeapTupleIsValid(tuple))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
				 errmsg("invalid internal value for enum: %u",
						DatumGetObjectId(value))));
	label = NameStr(((Form_pg_enum) GETSTRUCT(tuple))->enumlabel);
	len = strlen(label);
	label = to_utf8(label, &len);
	appendBinaryStringInfo(buf, label, len);
	ReleaseSysCache(tuple);
}

static void
encode_hashed(BfElement *el, StringInfo buf, Datum value)
{
	uint8		bytes[8];

	bf_store64(bytes, DatumGetUInt64(FunctionCall2Coll(el->hash,
													   el->hash_collation,
													   value,
													   Int64GetDatum(0))));
	appendBinaryStringInfo(buf, (char *) bytes, sizeof(bytes));
}

static inline void
store_int32(char *bytes, int32 x)
{
	bf_store32((uint8 *) bytes, (uint32) x);
}

static void
append_int32(StringInfo buf, int32 x)
{
	char		bytes[4];

	store_int32(bytes, x);
	appendBinaryStringInfo(buf, bytes, sizeof(bytes));
}

/*
 * 0, or 1, the length of the bytes, and the bytes.
 */
static void
encode_part(BfElement *el, StringInfo buf, Datum value, bool isnull)
{
	int			at;

	appendStringInfoChar(buf, isnull ? 0 : 1);
	if (isnull)
		return;
	at = buf->len;
	append_int32(buf, 0);
	el->encode(el, buf, value);
	store_int32(buf->data + at, buf->len - at - 4);
}

/*
 * The number of dimensions, length and lower bound of each, the elements.
 */
static void
encode_array(BfElement *el, StringInfo buf, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *values;
	bool	   *nulls;
	int			n;

	append_int32(buf, ARR_NDIM(array));
	for (int i = 0; i < ARR_NDIM(array); i++)
	{
		append_int32(buf, ARR_DIMS(array)[i]);
		append_int32(buf, ARR_LBOUND(array)[i]);
	}
	deconstruct_array(array, ARR_ELEMTYPE(array), el->element->typlen,
					  el->element->typbyval, el->element->typalign,
					  &values, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		CHECK_FOR_INTERRUPTS();
		encode_part(el->element, buf, values[i], nulls[i]);
	}
	pfree(values);
	pfree(nulls);
	if ((Pointer) array != DatumGetPointer(value))
		pfree(array);
}

static void
deform_record(const BfElement *el, Datum value, Datum *values, bool *nulls)
{
	HeapTupleHeader header = DatumGetHeapTupleHeader(value);
	HeapTupleData tuple;

	tuple.t_len = HeapTupleHeaderGetDatumLength(header);
	ItemPointerSetInvalid(&tuple.t_self);
	tuple.t_tableOid = InvalidOid;
	tuple.t_data = header;
	heap_deform_tuple(&tuple, el->tupdesc, values, nulls);
}

static void
encode_columns(BfElement *el, StringInfo buf, const Datum *values,
			   const bool *nulls)
{
	for (int i = 0; i < el->tupdesc->natts; i++)
		if (!TupleDescAttr(el->tupdesc, i)->attisdropped)
			encode_part(&el->columns[i], buf, values[i], nulls[i]);
}

/*
 * The columns in order.
 */
static void
encode_record(BfElement *el, StringInfo buf, Datum value)
{
	Datum	   *values;
	bool	   *nulls;

	check_stack_depth();
	bf_element_resolve(el, value);
	values = palloc(sizeof(Datum) * Max(el->tupdesc->natts, 1));
	nulls = palloc(sizeof(bool) * Max(el->tupdesc->natts, 1));
	deform_record(el, value, values, nulls);
	encode_columns(el, buf, values, nulls);
	pfree(values);
	pfree(nulls);
}

/*
 * The digest of columns that are at hand without a record around them.
 */
BfDigest
bf_element_digest_row(BfElement *el, const BfHeader *h, const Datum *values,
					  const bool *nulls)
{
	empty_buffer(el);
	encode_columns(el, &el->buf, values, nulls);
	return bf_digest(h->hash, h->key, h->keylen, el->buf.data, el->buf.len);
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
	BfEncodeFn	encode;
}			types[] =
{
	{INT2OID, BF_KIND_INTEGER, digest_of_int2, encode_int2},
	{INT4OID, BF_KIND_INTEGER, digest_of_int4, encode_int4},
	{INT8OID, BF_KIND_INTEGER, digest_of_int8, encode_int8},
	{OIDOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGPROCOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGPROCEDUREOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGOPEROID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGOPERATOROID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGCLASSOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGTYPEOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGROLEOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGNAMESPACEOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGCOLLATIONOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGCONFIGOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{REGDICTIONARYOID, BF_KIND_INTEGER, digest_of_oid, encode_oid},
	{TEXTOID, BF_KIND_TEXT, digest_of_string, encode_string},
	{VARCHAROID, BF_KIND_TEXT, digest_of_string, encode_string},
	{BPCHAROID, BF_KIND_TEXT, digest_of_string, encode_string},
	{NAMEOID, BF_KIND_TEXT, digest_of_string, encode_string},
	{UNKNOWNOID, BF_KIND_TEXT, digest_of_string, encode_string},
	{CHAROID, BF_KIND_TEXT, digest_of_encoded, encode_char},
	{FLOAT4OID, BF_KIND_FLOAT, digest_of_float4, encode_float4},
	{FLOAT8OID, BF_KIND_FLOAT, digest_of_float8, encode_float8},
	{BYTEAOID, BF_KIND_BYTEA, digest_of_string, encode_string},
	{UUIDOID, BF_KIND_UUID, digest_of_uuid, encode_uuid},
	{BOOLOID, BF_KIND_BOOL, digest_of_bool, encode_bool},
	{DATEOID, BF_KIND_DATE, digest_of_int4, encode_int4},
	{TIMEOID, BF_KIND_TIME, digest_of_int8, encode_int8},
	{TIMETZOID, BF_KIND_TIMETZ, digest_of_timetz, encode_timetz},
	{TIMESTAMPOID, BF_KIND_TIMESTAMP, digest_of_int8, encode_int8},
	{TIMESTAMPTZOID, BF_KIND_TIMESTAMPTZ, digest_of_int8, encode_int8},
	{MACADDROID, BF_KIND_MACADDR, digest_of_macaddr, encode_macaddr},
	{MACADDR8OID, BF_KIND_MACADDR8, digest_of_macaddr8, encode_macaddr8},
	{INETOID, BF_KIND_INET, digest_of_encoded, encode_inet},
	{CIDROID, BF_KIND_INET, digest_of_encoded, encode_inet},
	{NUMERICOID, BF_KIND_NUMERIC, digest_of_encoded, encode_numeric},
};

/*
 * A type's name as a part of a kind: schema-qualified outside pg_catalog, and
 * in UTF-8.
 */
static const char *
qualified_type_name(Oid type)
{
	HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
	Form_pg_type form;
	char	   *name;
	int			len;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", type);
	form = (Form_pg_type) GETSTRUCT(tuple);
	if (form->typnamespace == PG_CATALOG_NAMESPACE)
		name = pstrdup(quote_identifier(NameStr(form->typname)));
	else
		name = quote_qualified_identifier(get_namespace_name(form->typnamespace),
										  NameStr(form->typname));
	ReleaseSysCache(tuple);
	len = strlen(name);
	return to_utf8(name, &len);
}

/* What an element is called as a part of another's kind. */
static const char *
part_name(const BfElement *el)
{
	return el->kind_name ? el->kind_name : bf_kind_name(el->kind);
}

static void
set_kind_name(BfElement *el, const char *name)
{
	if (strlen(name) > BF_MAX_KIND_NAME)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the description of type %s takes %zu bytes, more than the limit of %d",
						format_type_be(el->typid), strlen(name),
						BF_MAX_KIND_NAME),
				 errhint("Use fewer columns.")));
	if (!bf_kind_is_valid(el->kind, name, strlen(name)))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_NAME),
				 errmsg("a filter cannot hold elements of type %s",
						format_type_be(el->typid)),
				 errdetail("Its description has control characters or is not valid UTF-8."),
				 errhint("Rename the type, or cast the value to text.")));
	el->kind_name = MemoryContextStrdup(el->context, name);
}

/*
 * The kind of a record follows from its columns' types, not from its name:
 * ROW(1, 'a') probes a filter of a named composite type.
 */
static void
name_record(BfElement *el)
{
	StringInfoData name;
	bool		first = true;

	initStringInfo(&name);
	appendStringInfoChar(&name, '(');
	el->not_portable = false;
	for (int i = 0; i < el->tupdesc->natts; i++)
	{
		if (TupleDescAttr(el->tupdesc, i)->attisdropped)
			continue;
		appendStringInfo(&name, "%s%s", first ? "" : ",",
						 part_name(&el->columns[i]));
		el->not_portable |= el->columns[i].not_portable;
		first = false;
	}
	appendStringInfoChar(&name, ')');
	if (el->kind_name == NULL || strcmp(el->kind_name, name.data) != 0)
		set_kind_name(el, name.data);
	pfree(name.data);
}

static void
init_record_columns(BfElement *el, TupleDesc tupdesc)
{
	MemoryContext old = MemoryContextSwitchTo(el->context);

	el->tupdesc = CreateTupleDescCopy(tupdesc);
	el->columns = palloc0(sizeof(BfElement) * Max(tupdesc->natts, 1));
	MemoryContextSwitchTo(old);
	if (el->tuptype != RECORDOID)
		el->tupdesc_id = lookup_type_cache(el->tuptype,
										   TYPECACHE_TUPDESC)->tupDesc_identifier;

	for (int i = 0; i < tupdesc->natts; i++)
	{
		Form_pg_attribute att = TupleDescAttr(tupdesc, i);

		if (att->attisdropped)
			continue;
		bf_element_init(&el->columns[i], att->atttypid, att->attcollation,
						el->context);
		el->dynamic |= el->columns[i].dynamic ||
			att->atttypid == UNKNOWNOID;
	}
	name_record(el);
}

static void
init_composed(BfElement *el)
{
	Oid			element_type = get_element_type(el->basetype);
	TypeCacheEntry *typcache;

	el->context = AllocSetContextCreate(el->parent, "bloomfilter element",
										ALLOCSET_SMALL_SIZES);
	el->digest = digest_of_encoded;

	if (OidIsValid(element_type))
	{
		el->kind = BF_KIND_ARRAY;
		el->encode = encode_array;
		if (element_type == RECORDOID)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("a filter cannot hold arrays of anonymous records"),
					 errhint("Cast the array's elements to a named composite type.")));
		el->element = MemoryContextAllocZero(el->context, sizeof(BfElement));
		bf_element_init(el->element, element_type, el->collation, el->context);
		el->not_portable = el->element->not_portable;
		set_kind_name(el, psprintf("%s[]", part_name(el->element)));
		return;
	}

	if (el->basetype == RECORDOID)
	{
		/* each value says what it is */
		el->kind = BF_KIND_RECORD;
		el->encode = encode_record;
		el->dynamic = true;
		set_kind_name(el, "()");
		return;
	}

	if (get_typtype(el->basetype) == TYPTYPE_COMPOSITE)
	{
		TupleDesc	tupdesc = lookup_rowtype_tupdesc(el->basetype, -1);

		el->kind = BF_KIND_RECORD;
		el->encode = encode_record;
		el->tuptype = el->basetype;
		el->tuptypmod = -1;
		init_record_columns(el, tupdesc);
		ReleaseTupleDesc(tupdesc);
		return;
	}

	if (get_typtype(el->basetype) == TYPTYPE_ENUM)
	{
		el->kind = BF_KIND_ENUM;
		el->encode = encode_enum;
		set_kind_name(el, psprintf("enum:%s",
								   qualified_type_name(el->basetype)));
		return;
	}

	typcache = lookup_type_cache(el->basetype,
								 TYPECACHE_HASH_EXTENDED_PROC_FINFO);
	if (!OidIsValid(typcache->hash_extended_proc))
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_FUNCTION),
				 errmsg("a filter cannot hold elements of type %s",
						format_type_be(el->typid)),
				 errdetail("The type has no extended hash function."),
				 errhint("Cast the value to a type that has one, for example to text.")));
	el->kind = BF_KIND_HASHED;
	el->encode = encode_hashed;
	el->not_portable = true;
	el->hash = MemoryContextAlloc(el->context, sizeof(FmgrInfo));
	fmgr_info_copy(el->hash, &typcache->hash_extended_proc_finfo, el->context);
	el->hash_collation = typcache->typcollation;
	set_kind_name(el, psprintf("hash:%s", qualified_type_name(el->basetype)));
}

/*
 * Look up how values of a type become bytes.  el is zero, or was initialised
 * before.
 */
static void
init_element(BfElement *el)
{
	if (el->context != NULL)
		MemoryContextDelete(el->context);
	el->context = NULL;
	el->kind = BF_KIND_NONE;
	el->kind_name = NULL;
	el->not_portable = false;
	el->dynamic = false;
	el->tupdesc = NULL;
	el->tuptype = InvalidOid;

	get_typlenbyvalalign(el->basetype, &el->typlen, &el->typbyval,
						 &el->typalign);
	for (int i = 0; i < (int) lengthof(types); i++)
	{
		if (types[i].type == el->basetype)
		{
			el->kind = types[i].kind;
			el->digest = types[i].digest;
			el->encode = types[i].encode;
		}
	}
	if (el->kind == BF_KIND_NONE)
		init_composed(el);

	/* equal strings that differ in their bytes would be answered "no" */
	if (el->kind == BF_KIND_TEXT && OidIsValid(el->collation) &&
		!get_collation_isdeterministic(el->collation))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("nondeterministic collation \"%s\" is not supported for filters",
						get_collation_name(el->collation)),
				 errhint("Fold the value yourself, for example with lower(), and add COLLATE \"C\".")));
}

/*
 * el need not be initialised.  What it needs in memory is a child of context.
 */
void
bf_element_init(BfElement *el, Oid typid, Oid collation, MemoryContext context)
{
	if (!OidIsValid(typid))
		ereport(ERROR,
				(errcode(ERRCODE_INDETERMINATE_DATATYPE),
				 errmsg("could not determine the type of the element")));

	memset(el, 0, sizeof(*el));
	el->parent = context;
	el->typid = typid;
	el->basetype = getBaseType(typid);
	el->collation = collation;
	init_element(el);
}

/*
 * The element that a ROW of columns is, for bf_element_digest_row.
 */
void
bf_element_init_row(BfElement *el, TupleDesc columns, MemoryContext context)
{
	memset(el, 0, sizeof(*el));
	el->parent = context;
	el->typid = RECORDOID;
	el->basetype = RECORDOID;
	el->kind = BF_KIND_RECORD;
	el->tuptype = RECORDOID;
	el->context = AllocSetContextCreate(context, "bloomfilter element",
										ALLOCSET_SMALL_SIZES);
	init_record_columns(el, columns);
}

/*
 * The element that an argument is, by its type in the query.
 */
void
bf_element_init_arg(BfElement *el, FunctionCallInfo fcinfo, int argno)
{
	bf_element_init(el, get_fn_expr_argtype(fcinfo->flinfo, argno),
					PG_GET_COLLATION(), fcinfo->flinfo->fn_mcxt);
}

/*
 * The same, kept by the call site.
 */
BfElement *
bf_element_of_site(FunctionCallInfo fcinfo, int argno)
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
 * Make el, zero at first, the element that an array is of.  The next array of
 * a call site may be of another type, as in pg_stats: true if it is.
 */
bool
bf_element_of_array(BfElement *el, const ArrayType *array,
					FunctionCallInfo fcinfo)
{
	if (el->typid == ARR_ELEMTYPE(array))
		return false;
	if (el->context != NULL)
		MemoryContextDelete(el->context);
	memset(el, 0, sizeof(*el));	/* in case of an error */
	bf_element_init(el, ARR_ELEMTYPE(array), PG_GET_COLLATION(),
					fcinfo->flinfo->fn_mcxt);
	return true;
}

/*
 * Has a composite type in it been altered?  A call site can outlive that.
 */
static bool
is_outdated(const BfElement *el)
{
	if (el->kind == BF_KIND_ARRAY)
		return is_outdated(el->element);
	if (el->kind != BF_KIND_RECORD || el->tupdesc == NULL)
		return false;
	if (el->tuptype != RECORDOID &&
		lookup_type_cache(el->tuptype,
						  TYPECACHE_TUPDESC)->tupDesc_identifier != el->tupdesc_id)
		return true;
	for (int i = 0; i < el->tupdesc->natts; i++)
		if (is_outdated(&el->columns[i]))
			return true;
	return false;
}

/*
 * Bring an element up to date with what a value says it is.  True if its kind
 * may have changed.
 */
bool
bf_element_resolve(BfElement *el, Datum value)
{
	HeapTupleHeader header;
	Oid			tuptype;
	int32		tuptypmod;
	bool		changed = false;
	bool		renamed = false;

	if (el->context == NULL)
		return false;			/* a simple kind */
	if (is_outdated(el))
	{
		init_element(el);
		changed = true;
	}
	if (el->kind != BF_KIND_RECORD)
		return changed;

	header = DatumGetHeapTupleHeader(value);
	tuptype = HeapTupleHeaderGetTypeId(header);
	tuptypmod = HeapTupleHeaderGetTypMod(header);
	if (el->tupdesc == NULL || tuptype != el->tuptype ||
		tuptypmod != el->tuptypmod)
	{
		TupleDesc	tupdesc = lookup_rowtype_tupdesc(tuptype, tuptypmod);

		if (el->context != NULL)
			MemoryContextReset(el->context);
		el->tuptype = tuptype;
		el->tuptypmod = tuptypmod;
		init_record_columns(el, tupdesc);
		el->dynamic |= el->basetype == RECORDOID;
		ReleaseTupleDesc(tupdesc);
		changed = true;
	}

	/* records inside it */
	for (int i = 0; i < el->tupdesc->natts; i++)
	{
		bool		isnull;
		Datum		datum;

		if (!el->columns[i].dynamic)
			continue;
		datum = GetAttributeByNum(header, i + 1, &isnull);
		if (isnull)
			continue;
		bf_element_resolve(&el->columns[i], datum);
		renamed = true;
	}
	if (renamed)
		name_record(el);
	return changed || renamed;
}

/*
 * The same for columns that are at hand without a record around them.
 */
bool
bf_element_resolve_row(BfElement *el, const Datum *values, const bool *nulls)
{
	bool		changed = false;

	for (int i = 0; i < el->tupdesc->natts; i++)
		if (!nulls[i] && bf_element_resolve(&el->columns[i], values[i]))
			changed = true;
	if (changed)
		name_record(el);
	return changed;
}

/* ------------------------------------------------------------------------
 * Kinds
 * ------------------------------------------------------------------------
 */

/*
 * Write the element's kind into a header.
 */
void
bf_kind_of_element(const BfElement *el, BfHeader *h)
{
	h->kind = el->kind;
	h->kind_name = el->kind_name;
	h->kind_name_len = el->kind_name ? strlen(el->kind_name) : 0;
	h->not_portable = el->not_portable;
}

/*
 * Values of a type that is hashed by its own function collide before a key
 * could keep them apart: a keyed filter would promise too much.
 */
void
bf_check_key(const BfHeader *h, const BfElement *el)
{
	if (h->keylen > 0 && el->not_portable)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("a keyed filter cannot hold elements of type %s",
						format_type_be(el->typid)),
				 errdetail("The type is hashed by its own function, which knows no key."),
				 errhint("Cast the value to a type that is hashed from its bytes, for example to text.")));
}

bool
bf_same_kind(const BfHeader *a, const BfHeader *b)
{
	return a->kind == b->kind && a->kind_name_len == b->kind_name_len &&
		memcmp(a->kind_name, b->kind_name, a->kind_name_len) == 0;
}

/*
 * A filter's element kind for people, in the database's encoding.
 */
const char *
bf_kind_display(const BfHeader *h)
{
	StringInfoData name;
	const char *p;
	bool		quoted = false;

	if (h->kind < BF_FIRST_NAMED_KIND)
		return bf_kind_name(h->kind);
	p = pnstrdup(h->kind_name, h->kind_name_len);
	if (GetDatabaseEncoding() != PG_UTF8)
		p = pg_any_to_server(p, strlen(p), PG_UTF8);

	/* without the marks, which are no part of a type's name */
	initStringInfo(&name);
	while (*p != '\0')
	{
		if (!quoted && (strncmp(p, "enum:", 5) == 0 ||
						strncmp(p, "hash:", 5) == 0))
			p += 5;
		else
		{
			quoted ^= *p == '"';
			appendStringInfoChar(&name, *p++);
		}
	}
	return name.data;
}

static void kind_error(const BfHeader *h, const BfElement *el)
			__attribute__((noreturn));

static void
kind_error(const BfHeader *h, const BfElement *el)
{
	const char *kind = bf_kind_display(h);
	BfHeader	mine;

	bf_kind_of_element(el, &mine);
	ereport(ERROR,
			(errcode(ERRCODE_DATATYPE_MISMATCH),
			 errmsg("filter holds %s elements, not %s", kind,
					el->kind == BF_KIND_RECORD ?
					psprintf("record %s", bf_kind_display(&mine)) :
					format_type_be(el->typid)),
			 el->kind == BF_KIND_ARRAY && h->kind != BF_KIND_ARRAY ?
			 errhint("To probe with each element of an array, use bloom_contains_any, bloom_contains_all or bloom_contains_each.") :
			 h->kind == BF_KIND_RECORD ?
			 errhint("Use a row whose columns have the types that the filter was built from, as in: ROW(1::bigint, 'a'::text).") :
			 h->kind == BF_KIND_ARRAY && kind[0] == '(' ?
			 errhint("Use an array of a composite type whose columns have the types that the filter was built from.") :
			 errhint("Cast the value, as in: filter @> %s::%s.",
					 el->kind == BF_KIND_TEXT ? "'...'" : "value",
					 h->kind == BF_KIND_FLOAT ? "float8" : kind)));
}

/*
 * Can text stand for values of the type that a filter was built from?  Of a
 * type that is text to the server (citext), literals and parameters arrive
 * relabelled.
 */
static Oid
type_behind_text(const BfHeader *h)
{
	const char *name;
	Oid			type;
	int32		typmod;

	if (h->kind != BF_KIND_HASHED)
		return InvalidOid;
	name = bf_kind_display(h);
#if PG_VERSION_NUM >= 160000
	{
		ErrorSaveContext not_found = {.type = T_ErrorSaveContext};

		if (!parseTypeString(name, &type, &typmod, (Node *) &not_found))
			return InvalidOid;
	}
#else
	parseTypeString(name, &type, &typmod, true);
#endif
	return OidIsValid(type) && IsBinaryCoercible(type, TEXTOID) ?
		type : InvalidOid;
}

/*
 * The next column of a record's kind: advances *kind behind it.
 */
static void
next_column(const char **kind, const char **column, int *len)
{
	int			depth = 0;
	bool		quoted = false;
	const char *p = *kind;

	for (*column = p; *p != '\0'; p++)
	{
		if (*p == '"')
			quoted = !quoted;
		else if (!quoted && *p == '(')
			depth++;
		else if (!quoted && ((*p == ',' && depth == 0) ||
							 (*p == ')' && depth-- == 0)))
			break;
	}
	*len = p - *column;
	*kind = *p == ',' ? p + 1 : p;
}

/*
 * Does a record fit a record's kind but for untyped NULLs, as in ROW(NULL, 2)?
 * A NULL has no bytes that could depend on its type.
 */
static bool
fits_but_for_nulls(const BfElement *el, const char *kind, Datum value)
{
	Datum	   *values;
	bool	   *nulls;

	if (*kind++ != '(')
		return false;

	values = palloc(sizeof(Datum) * Max(el->tupdesc->natts, 1));
	nulls = palloc(sizeof(bool) * Max(el->tupdesc->natts, 1));
	deform_record(el, value, values, nulls);
	for (int i = 0; i < el->tupdesc->natts; i++)
	{
		const BfElement *mine = &el->columns[i];
		Oid			type = TupleDescAttr(el->tupdesc, i)->atttypid;
		const char *theirs;
		int			len;

		if (TupleDescAttr(el->tupdesc, i)->attisdropped)
			continue;
		if (*kind == ')' || *kind == '\0')
			return false;		/* they have fewer */
		next_column(&kind, &theirs, &len);
		theirs = pnstrdup(theirs, len);
		if (strcmp(part_name(mine), theirs) == 0)
			continue;
		if (nulls[i] ? type != UNKNOWNOID && type != RECORDOID :
			mine->kind != BF_KIND_RECORD ||
			!fits_but_for_nulls(mine, theirs, values[i]))
			return false;
	}
	return strcmp(kind, ")") == 0;
}

/*
 * Make the element one of the filter's kind, so that it may be digested, or
 * fail: a "no" to a value of another kind would be wrong.  value, or 0, is
 * the value at hand.
 */
void
bf_element_become(BfElement *el, const BfHeader *h, Datum value)
{
	BfHeader	mine;
	Oid			declared;

	if (likely(h->kind == el->kind && el->kind < BF_FIRST_NAMED_KIND))
		return;
	if (el->dynamic && DatumGetPointer(value) == NULL)
		return;					/* only a value could tell */

	/* an earlier filter may have made it another type */
	declared = getBaseType(el->typid);
	if (el->basetype != declared && h->kind != BF_KIND_HASHED)
	{
		el->basetype = declared;
		init_element(el);
	}
	if (h->kind == BF_KIND_NONE)
		return;

	bf_kind_of_element(el, &mine);
	if (likely(bf_same_kind(h, &mine)))
		return;

	if (el->kind == BF_KIND_TEXT || el->basetype != declared)
	{
		Oid			type = type_behind_text(h);

		if (OidIsValid(type) &&
			(declared == TEXTOID || declared == VARCHAROID))
		{
			el->basetype = getBaseType(type);
			init_element(el);
			bf_kind_of_element(el, &mine);
			if (bf_same_kind(h, &mine))
				return;
		}
	}
	if (el->kind == BF_KIND_RECORD && h->kind == BF_KIND_RECORD &&
		DatumGetPointer(value) != NULL && el->tupdesc != NULL &&
		fits_but_for_nulls(el, pnstrdup(h->kind_name, h->kind_name_len),
						   value))
		return;
	kind_error(h, el);
}
