/*-------------------------------------------------------------------------
 *
 * kind.c
 *	  Element kinds: what a filter's elements are.
 *
 *-------------------------------------------------------------------------
 */
#include "bf.h"

static const char *const kind_names[] = {
	[BF_KIND_NONE] = "none",
	[BF_KIND_INTEGER] = "integer",
	[BF_KIND_TEXT] = "text",
	[BF_KIND_FLOAT] = "float",
	[BF_KIND_BYTEA] = "bytea",
	[BF_KIND_UUID] = "uuid",
	[BF_KIND_BOOL] = "boolean",
	[BF_KIND_DATE] = "date",
	[BF_KIND_TIME] = "time",
	[BF_KIND_TIMESTAMP] = "timestamp",
	[BF_KIND_TIMESTAMPTZ] = "timestamptz",
	[BF_KIND_TIMETZ] = "timetz",
	[BF_KIND_MACADDR] = "macaddr",
	[BF_KIND_MACADDR8] = "macaddr8",
	[BF_KIND_INET] = "inet",
	[BF_KIND_NUMERIC] = "numeric",
	[BF_KIND_ENUM] = "enum",
	[BF_KIND_ARRAY] = "array",
	[BF_KIND_RECORD] = "record",
	[BF_KIND_HASHED] = "hash",
};

const char *
bf_kind_name(unsigned kind)
{
	return kind < sizeof(kind_names) / sizeof(kind_names[0]) ?
		kind_names[kind] : NULL;
}

/*
 * Well-formed UTF-8 without control characters: names are shown to people.
 */
static bool
is_clean_utf8(const uint8_t *s, size_t len)
{
	while (len > 0)
	{
		uint32_t	c = *s++;
		uint32_t	least;
		int			more;

		len--;
		if (c < 0x80)
		{
			if (c < 0x20 || c == 0x7F)
				return false;
			continue;
		}
		if (c >= 0xC2 && c < 0xE0)
			more = 1, least = 0x80, c &= 0x1F;
		else if (c >= 0xE0 && c < 0xF0)
			more = 2, least = 0x800, c &= 0x0F;
		else if (c >= 0xF0 && c < 0xF5)
			more = 3, least = 0x10000, c &= 0x07;
		else
			return false;
		if (len < (size_t) more)
			return false;
		for (int i = 0; i < more; i++)
		{
			if ((*s & 0xC0) != 0x80)
				return false;
			c = c << 6 | (*s++ & 0x3F);
		}
		len -= more;
		if (c < least || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
			return false;
	}
	return true;
}

/*
 * Simple kinds have no name, the others must have one.
 */
bool
bf_kind_is_valid(unsigned kind, const char *name, size_t len)
{
	if (bf_kind_name(kind) == NULL)
		return false;
	if (kind < BF_FIRST_NAMED_KIND)
		return len == 0;
	return len > 0 && is_clean_utf8((const uint8_t *) name, len);
}
