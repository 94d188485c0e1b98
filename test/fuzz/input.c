/*-------------------------------------------------------------------------
 *
 * input.c
 *	  Fuzz target: the type's ways in, as SQL calls them.
 *
 * type/inout.c and type/base64.c themselves, with the server's headers, and with
 * memory and errors of our own in the server's place.  The first byte chooses
 * text input, receive, or the cast from bytea, and with option 8 the image's
 * counts and checksums are made right first; text is what follows, or, with
 * option 4, its base64, into which the input may put spaces.
 *
 * What is let in is a filter, in memory of exactly its size; text output,
 * send and the cast to bytea give it back, and what they give is let in again
 * as the same.  The server's own base64 says the same of every text.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include <setjmp.h>
#include <signal.h>

#include "common/base64.h"
#include "core/bytes.h"
#include "libpq/pqformat.h"

#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

#define TEXT		0
#define RECEIVE		1
#define FROM_BYTEA	2
#define ENCODE		4
#define REPAIR		8
#define SPACES		16

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

extern Datum bf_sql_in(PG_FUNCTION_ARGS);
extern Datum bf_sql_out(PG_FUNCTION_ARGS);
extern Datum bf_sql_recv(PG_FUNCTION_ARGS);
extern Datum bf_sql_send(PG_FUNCTION_ARGS);
extern Datum bf_sql_from_bytea(PG_FUNCTION_ARGS);

/* ------------------------------------------------------------------------
 * In the server's place
 * ------------------------------------------------------------------------
 */
#define MAX_CHUNKS	64

static void *chunks[MAX_CHUNKS];
static int	nchunks;
static size_t allocated;
static jmp_buf on_error;
static int	sqlstate;

void *
palloc(Size size)
{
	void	   *chunk = malloc(size);

	REQUIRE(chunk != NULL && nchunks < MAX_CHUNKS);
	chunks[nchunks++] = chunk;
	allocated += size;
	return chunk;
}

volatile sig_atomic_t InterruptPending;

void
ProcessInterrupts(void)
{
}

static void
free_all(void)
{
	while (nchunks > 0)
		free(chunks[--nchunks]);
	allocated = 0;
}

struct varlena *
pg_detoast_datum_packed(struct varlena *datum)
{
	return datum;
}

struct varlena *
pg_detoast_datum_copy(struct varlena *datum)
{
	struct varlena *copy = palloc(VARSIZE(datum));

	memcpy(copy, datum, VARSIZE(datum));
	return copy;
}

void
pq_copymsgbytes(StringInfo msg, char *buf, int datalen)
{
	REQUIRE(datalen >= 0 && datalen <= msg->len - msg->cursor);
	memcpy(buf, msg->data + msg->cursor, datalen);
	msg->cursor += datalen;
}

int
bf_sqlstate(const BfError *err, int corrupt_sqlstate)
{
	REQUIRE(err->status == BF_CORRUPT || err->status == BF_UNKNOWN_VERSION);
	return err->status == BF_CORRUPT ? corrupt_sqlstate :
		ERRCODE_FEATURE_NOT_SUPPORTED;
}

bool
errstart(int elevel, const char *domain)
{
	REQUIRE(elevel == ERROR);
	sqlstate = 0;
	return true;
}

bool
errstart_cold(int elevel, const char *domain)
{
	return errstart(elevel, domain);
}

int
errcode(int code)
{
	sqlstate = code;
	return 0;
}

/* Messages are put together as the server would. */
static int
message(const char *fmt, va_list args)
{
	char		text[1024];

	REQUIRE(vsnprintf(text, sizeof(text), fmt, args) > 0);
	return 0;
}

#define MESSAGE(function) \
int \
function(const char *fmt,...) \
{ \
	va_list		args; \
\
	va_start(args, fmt); \
	message(fmt, args); \
	va_end(args); \
	return 0; \
}

MESSAGE(errmsg)
MESSAGE(errmsg_internal)
MESSAGE(errdetail)
MESSAGE(errhint)

void
errfinish(const char *filename, int lineno, const char *funcname)
{
	/* an internal error has no SQLSTATE of its own */
	REQUIRE(sqlstate != 0);
	longjmp(on_error, 1);
}

#if PG_VERSION_NUM >= 160000
bool
errsave_start(struct Node *context, const char *domain)
{
	return errstart(ERROR, domain);
}

void
errsave_finish(struct Node *context, const char *filename, int lineno,
			   const char *funcname)
{
	errfinish(filename, lineno, funcname);
}
#endif

/* ------------------------------------------------------------------------
 * The target
 * ------------------------------------------------------------------------
 */
static Datum
call(PGFunction function, Datum arg)
{
	LOCAL_FCINFO(fcinfo, 1);

	memset(fcinfo, 0, SizeForFunctionCallInfo(1));
	fcinfo->nargs = 1;
	fcinfo->args[0].value = arg;
	return function(fcinfo);
}

static void
repair(uint8_t *image, size_t len)
{
	BfFilter	f;
	BfError		err;

	if (bf_open(image, len, &f, &err) != BF_OK)
		return;
	if (f.h.nlayers == 0)
	{
		bf_recount(&f);
		bf_store64(image + 36, f.h.nset);
	}
	bf_seal(&f);
	bf_store64(image + 48, f.h.checksum);
	bf_store32(image + 56, 0);
	bf_store32(image + 56, (uint32_t) bf_checksum(image, bf_header_size(&f.h)));
}

static char *
base64(const uint8_t *bytes, size_t len, bool spaces, size_t *size)
{
	static const char space[] = " \t\r\n";
	int			max = pg_b64_enc_len((int) len);
	char	   *plain = malloc(max + 1);
	char	   *result = malloc(max * 2 + 1);
	int			n;

	REQUIRE(plain != NULL && result != NULL);
#if PG_VERSION_NUM >= 180000
	n = pg_b64_encode(bytes, (int) len, plain, max);
#else
	n = pg_b64_encode((const char *) bytes, (int) len, plain, max);
#endif
	REQUIRE(n >= 0);
	*size = 0;
	for (int i = 0; i < n; i++)
	{
		result[(*size)++] = plain[i];
		if (spaces && bytes[i % len] % 7 == 0)
			result[(*size)++] = space[bytes[i % len] % 4];
	}
	result[*size] = '\0';
	free(plain);
	return result;
}

/*
 * The server's decoder knows no white space, and does not mind what comes behind
 * the padding; but for that, the two agree.
 */
static void
compare_base64(const char *text, size_t len)
{
	uint8_t    *ours = malloc(len / 4 * 3 + 2);
	uint8_t    *servers = malloc(len / 4 * 3 + 3);
	const char *padding = memchr(text, '=', len);
	int64		n;
	int			m;

	REQUIRE(ours != NULL && servers != NULL);
	n = bf_base64_decode(text, len, ours);
#if PG_VERSION_NUM >= 180000
	m = pg_b64_decode(text, (int) len, servers, (int) len / 4 * 3 + 3);
#else
	m = pg_b64_decode(text, (int) len, (char *) servers, (int) len / 4 * 3 + 3);
#endif
	if (n >= 0 && strcspn(text, " \t\r\n") == strlen(text))
		REQUIRE(m == n && memcmp(ours, servers, (size_t) n) == 0);
	if (m >= 0 && (padding == NULL || strcmp(padding, "=") == 0 || strcmp(padding, "==") == 0))
		REQUIRE(n == m);
	free(ours);
	free(servers);
}

/* The value, by the way in that options name. */
static BloomFilter *
let_in(int options, const char *bytes, size_t len)
{
	char	   *copy = palloc(len + 1);
	StringInfoData buf;
	bytea	   *value;

	switch (options & 3)
	{
		case RECEIVE:
			memcpy(copy, bytes, len);
			buf.data = copy;
			buf.len = (int) len;
			buf.maxlen = (int) len + 1;
			buf.cursor = 0;
			value = (bytea *) DatumGetPointer(call(bf_sql_recv, PointerGetDatum(&buf)));
			REQUIRE(buf.cursor == buf.len);
			return value;
		case FROM_BYTEA:
			value = palloc(VARHDRSZ + len);
			SET_VARSIZE(value, VARHDRSZ + len);
			memcpy(VARDATA(value), bytes, len);
			return (BloomFilter *) DatumGetPointer(call(bf_sql_from_bytea,
														PointerGetDatum(value)));
		default:
			memcpy(copy, bytes, len);
			copy[len] = '\0';
			compare_base64(copy, strlen(copy));
			return (BloomFilter *) DatumGetPointer(call(bf_sql_in,
														CStringGetDatum(copy)));
	}
}

static void
check(const BloomFilter *value)
{
	BfFilter	f;
	BfError		err;
	char	   *text;
	char	   *servers;
	size_t		len;
	bytea	   *sent;
	BloomFilter *again;
	BfDigest	digest = {UINT64_C(0x0123456789ABCDEF), UINT64_C(0xFEDCBA9876543210)};

	REQUIRE(bf_validate((const uint8_t *) VARDATA(value),
						VARSIZE(value) - VARHDRSZ, &f, &err) == BF_OK);
	(void) bf_test(&f, digest);

	sent = (bytea *) DatumGetPointer(call(bf_sql_send, PointerGetDatum(value)));
	REQUIRE(VARSIZE(sent) == VARSIZE(value) &&
			memcmp(sent, value, VARSIZE(value)) == 0);
	text = DatumGetCString(call(bf_sql_out, PointerGetDatum(value)));
	servers = base64((const uint8_t *) VARDATA(sent), VARSIZE(sent) - VARHDRSZ, false, &len);
	REQUIRE(strcmp(text, servers) == 0);
	free(servers);
	again = let_in(TEXT, text, strlen(text));
	REQUIRE(VARSIZE(again) == VARSIZE(value) &&
			memcmp(again, value, VARSIZE(value)) == 0);
	again = let_in(RECEIVE, VARDATA(sent), VARSIZE(sent) - VARHDRSZ);
	REQUIRE(VARSIZE(again) == VARSIZE(value) &&
			memcmp(again, value, VARSIZE(value)) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int			options;
	uint8_t    *image;
	char	   *input;
	size_t		len;

	if (size == 0)
		return 0;
	options = data[0];
	len = size - 1;
	image = malloc(len > 0 ? len : 1);
	REQUIRE(image != NULL);
	memcpy(image, data + 1, len);
	if (options & REPAIR)
		repair(image, len);
	if ((options & 3) == TEXT && options & ENCODE && len > 0)
		input = base64(image, len, (options & SPACES) != 0, &len);
	else
	{
		input = malloc(len > 0 ? len : 1);
		REQUIRE(input != NULL);
		memcpy(input, image, len);
	}

	if (setjmp(on_error) == 0)
	{
		BloomFilter *value = let_in(options, input, len);

		/* nothing is allocated that the input does not justify */
		REQUIRE(allocated <= 5 * len + 256);
		check(value);
	}
	else
		REQUIRE(allocated <= 5 * len + 256);
	free_all();
	free(input);
	free(image);
	return 0;
}
