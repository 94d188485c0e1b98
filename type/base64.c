/*-------------------------------------------------------------------------
 *
 * base64.c
 *	  Base64 (RFC 4648, no line breaks), eight characters at a time.
 *
 * The text form of a filter travels: postgres_fdw sends it with every remote
 * scan, and COPY dumps it.  The server's own functions go byte by byte, which
 * makes them the larger part of what that costs.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "miscadmin.h"
#include "port/pg_bswap.h"

/* Bytes after which a query can be stopped. */
#define PIECE	((Size) 1024 * 1024)

static const char digits[] =
"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* the digits' values plus one, so that 0 is none */
static const uint8 values[256] = {
	['A'] = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
	20, 21, 22, 23, 24, 25, 26,
	['a'] = 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
	44, 45, 46, 47, 48, 49, 50, 51, 52,
	['0'] = 53, 54, 55, 56, 57, 58, 59, 60, 61, 62,
	['+'] = 63,
	['/'] = 64
};

/*
 * Write the (len + 2) / 3 * 4 characters that stand for len bytes.
 */
void
bf_base64_encode(const uint8 *src, Size len, char *dst)
{
	const uint8 *end = src + len;
	uint32		bits = 0;

	while (end - src >= 8)
	{
		const uint8 *stop = src + Min(end - src, (ptrdiff_t) PIECE);

		CHECK_FOR_INTERRUPTS();
		/* six bytes, and two that are read but not used */
		while (stop - src >= 8)
		{
			uint64		group;

			memcpy(&group, src, sizeof(group));
			group = pg_ntoh64(group);
			for (int i = 0; i < 8; i++)
				dst[i] = digits[(group >> (58 - 6 * i)) & 63];
			src += 6;
			dst += 8;
		}
	}
	while (end - src >= 3)
	{
		bits = (uint32) src[0] << 16 | (uint32) src[1] << 8 | src[2];
		for (int i = 0; i < 4; i++)
			dst[i] = digits[(bits >> (18 - 6 * i)) & 63];
		src += 3;
		dst += 4;
	}
	if (src == end)
		return;
	bits = (uint32) src[0] << 16;
	if (end - src == 2)
		bits |= (uint32) src[1] << 8;
	dst[0] = digits[bits >> 18];
	dst[1] = digits[(bits >> 12) & 63];
	dst[2] = end - src == 2 ? digits[(bits >> 6) & 63] : '=';
	dst[3] = '=';
}

static const char *
skip_space(const char *src, const char *end)
{
	while (src < end &&
		   (*src == ' ' || *src == '\t' || *src == '\r' || *src == '\n'))
		src++;
	return src;
}

/*
 * Decode len characters into at most len / 4 * 3 bytes; dst has room for 2
 * more.  White space is skipped, since most programs break base64 into lines.
 * Returns the number of bytes, or -1 if it is not base64.
 */
int64
bf_base64_decode(const char *src, Size len, uint8 *dst)
{
	const char *end = src + len;
	const uint8 *start = dst;

	for (;;)
	{
		const char *stop = src + Min(end - src, (ptrdiff_t) PIECE);
		uint32		bits = 0;
		int			n = 0;

		CHECK_FOR_INTERRUPTS();
		while (stop - src >= 8)
		{
			uint64		group = 0;
			uint32		worst = 0;

			for (int i = 0; i < 8; i++)
			{
				uint32		value = values[(uint8) src[i]];

				worst |= value - 1; /* of none: all bits */
				group = group << 6 | ((value - 1) & 63);
			}
			if (unlikely(worst > 63))
				break;
			group = pg_hton64(group << 16);
			memcpy(dst, &group, sizeof(group));
			src += 8;
			dst += 6;
		}

		/* four characters, with white space between them, or the end */
		for (; n < 4; n++, src++)
		{
			uint32		value;

			src = skip_space(src, end);
			if (src == end)
				return n == 0 ? dst - start : -1;
			if (*src == '=')
				break;
			value = values[(uint8) *src];
			if (value == 0)
				return -1;
			bits = bits << 6 | (value - 1);
		}
		if (n < 2)
			return -1;
		bits <<= 6 * (4 - n);
		*dst++ = (uint8) (bits >> 16);
		if (n > 2)
			*dst++ = (uint8) (bits >> 8);
		if (n > 3)
		{
			*dst++ = (uint8) bits;
			continue;
		}

		/* padding, and nothing behind it */
		for (; n < 4; n++, src++)
		{
			src = skip_space(src, end);
			if (src == end || *src != '=')
				return -1;
		}
		return skip_space(src, end) == end ? dst - start : -1;
	}
}
