/*-------------------------------------------------------------------------
 *
 * inout.c
 *	  Text, binary and bytea forms: one image, one validator.
 *
 * The text form is base64 (RFC 4648, without line breaks) of the image, the
 * binary form and the bytea are the image itself.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "libpq/pqformat.h"

#if PG_VERSION_NUM < 160000
#define errsave(context, ...) ereport(ERROR, __VA_ARGS__)
#endif

PG_FUNCTION_INFO_V1(bf_sql_in);
PG_FUNCTION_INFO_V1(bf_sql_out);
PG_FUNCTION_INFO_V1(bf_sql_recv);
PG_FUNCTION_INFO_V1(bf_sql_send);
PG_FUNCTION_INFO_V1(bf_sql_from_bytea);
PG_FUNCTION_INFO_V1(bf_sql_to_bytea);

static void
validate(const BloomFilter *value)
{
	BfFilter	f;
	BfError		err;

	if (bf_validate((const uint8 *) VARDATA_ANY(value),
					VARSIZE_ANY_EXHDR(value), &f, &err) != BF_OK)
		ereport(ERROR,
				(errcode(bf_sqlstate(&err, ERRCODE_INVALID_BINARY_REPRESENTATION)),
				 errmsg("invalid bloomfilter value"),
				 errdetail("%s", err.message)));
}

Datum
bf_sql_in(PG_FUNCTION_ARGS)
{
	const char *str = PG_GETARG_CSTRING(0);
	Size		len = strlen(str);
	BloomFilter *result = palloc(VARHDRSZ + len / 4 * 3 + 2);
	BfFilter	f;
	BfError		err;
	int64		n;

	n = bf_base64_decode(str, len, (uint8 *) VARDATA(result));
	if (n < 0)
	{
		errsave(fcinfo->context,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type bloomfilter: \"%.40s%s\"",
						str, len > 40 ? "..." : ""),
				 errdetail("The value is not base64."),
				 errhint("To build a filter, call bloomfilter(capacity) with a number, or aggregate with bloom_agg(value, capacity). To ask one, write filter @> value.")));
		return (Datum) 0;
	}
	SET_VARSIZE(result, VARHDRSZ + n);
	if (bf_validate((const uint8 *) VARDATA(result), n, &f, &err) != BF_OK)
	{
		errsave(fcinfo->context,
				(errcode(bf_sqlstate(&err, ERRCODE_INVALID_TEXT_REPRESENTATION)),
				 errmsg("invalid input syntax for type bloomfilter: \"%.40s%s\"",
						str, len > 40 ? "..." : ""),
				 errdetail("%s", err.message),
				 errhint("To build a filter, call bloomfilter(capacity) with a number, or aggregate with bloom_agg(value, capacity). To ask one, write filter @> value.")));
		return (Datum) 0;
	}
	PG_RETURN_POINTER(result);
}

Datum
bf_sql_out(PG_FUNCTION_ARGS)
{
	BloomFilter *value = PG_GETARG_BLOOM(0);
	Size		len = VARSIZE_ANY_EXHDR(value);
	Size		size = (len + 2) / 3 * 4;
	char	   *result = palloc(size + 1);

	bf_base64_encode((const uint8 *) VARDATA_ANY(value), len, result);
	result[size] = '\0';
	PG_RETURN_CSTRING(result);
}

Datum
bf_sql_recv(PG_FUNCTION_ARGS)
{
	StringInfo	buf = (StringInfo) PG_GETARG_POINTER(0);
	int			len = buf->len - buf->cursor;
	BloomFilter *result = palloc(VARHDRSZ + (Size) len);

	SET_VARSIZE(result, VARHDRSZ + (Size) len);
	pq_copymsgbytes(buf, VARDATA(result), len);
	validate(result);
	PG_RETURN_POINTER(result);
}

/*
 * The image as a bytea: also the send function.
 */
Datum
bf_sql_to_bytea(PG_FUNCTION_ARGS)
{
	PG_RETURN_BYTEA_P(PG_GETARG_BYTEA_P_COPY(0));
}

Datum
bf_sql_send(PG_FUNCTION_ARGS)
{
	return bf_sql_to_bytea(fcinfo);
}

Datum
bf_sql_from_bytea(PG_FUNCTION_ARGS)
{
	BloomFilter *value = (BloomFilter *) PG_GETARG_BYTEA_P_COPY(0);

	validate(value);
	PG_RETURN_POINTER(value);
}
