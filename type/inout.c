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

#include "common/base64.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"

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

/* Characters that are coded at a time: a query can be stopped in between. */
#define PIECE	(4 * 2048)

static inline bool
is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/*
 * Base64 as bytes, no more than size; their number, or -1.  Most programs
 * break base64 into lines, of which the server's decoder knows nothing.
 */
static Size
decode(const char *str, char *bytes, Size size)
{
	char		piece[PIECE];
	Size		done = 0;
	bool		ended = false;

	for (;;)
	{
		int			have = 0;
		int			n;

		for (; have < PIECE && *str != '\0'; str++)
			if (!is_space(*str))
				piece[have++] = *str;
		if (have == 0)
			break;
		if (ended)
			return (Size) -1;
#if PG_VERSION_NUM >= 180000
		n = pg_b64_decode(piece, have, (uint8 *) bytes + done, size - done);
#else
		n = pg_b64_decode(piece, have, bytes + done, size - done);
#endif
		if (n < 0)
			return (Size) -1;
		ended = n < PIECE / 4 * 3;
		done += n;
		CHECK_FOR_INTERRUPTS();
	}
	return done;
}

Datum
bf_sql_in(PG_FUNCTION_ARGS)
{
	const char *str = PG_GETARG_CSTRING(0);
	Size		size;
	BloomFilter *result;
	BfFilter	f;
	BfError		err;
	Size		len;

	/* the server's own function for this computes in int, and overflows */
	size = strlen(str) / 4 * 3 + 3;
	result = palloc(VARHDRSZ + size);
	len = decode(str, VARDATA(result), size);
	if (len == (Size) -1)
	{
		errsave(fcinfo->context,
				(errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
				 errmsg("invalid input syntax for type bloomfilter: \"%.40s%s\"",
						str, strlen(str) > 40 ? "..." : ""),
				 errdetail("The value is not base64."),
				 errhint("To build a filter, call bloomfilter(capacity) with a number, or aggregate with bloom_agg(value, capacity).")));
		return (Datum) 0;
	}
	SET_VARSIZE(result, VARHDRSZ + len);
	if (bf_validate((const uint8 *) VARDATA(result), len, &f, &err) != BF_OK)
	{
		errsave(fcinfo->context,
				(errcode(bf_sqlstate(&err, ERRCODE_INVALID_TEXT_REPRESENTATION)),
				 errmsg("invalid input syntax for type bloomfilter: \"%.40s%s\"",
						str, strlen(str) > 40 ? "..." : ""),
				 errdetail("%s", err.message),
				 errhint("To build a filter, call bloomfilter(capacity) with a number, or aggregate with bloom_agg(value, capacity).")));
		return (Datum) 0;
	}
	PG_RETURN_POINTER(result);
}

Datum
bf_sql_out(PG_FUNCTION_ARGS)
{
	BloomFilter *value = PG_GETARG_BLOOM(0);
	const char *bytes = VARDATA_ANY(value);
	Size		left = VARSIZE_ANY_EXHDR(value);
	Size		size = (left + 2) / 3 * 4;
	char	   *result = palloc(size + 1);
	char	   *end = result;

	while (left > 0)
	{
		int			len = Min(left, PIECE / 4 * 3);
		int			n;

#if PG_VERSION_NUM >= 180000
		n = pg_b64_encode((const uint8 *) bytes, len, end, result + size - end);
#else
		n = pg_b64_encode(bytes, len, end, result + size - end);
#endif
		if (n < 0)
			elog(ERROR, "could not encode bloomfilter value");
		bytes += len;
		left -= len;
		end += n;
		CHECK_FOR_INTERRUPTS();
	}
	*end = '\0';
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
