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
};

const char *
bf_kind_name(unsigned kind)
{
	return kind < sizeof(kind_names) / sizeof(kind_names[0]) ?
		kind_names[kind] : NULL;
}

/*
 * Kinds of this version carry no name of their own.
 */
bool
bf_kind_is_valid(unsigned kind, const char *name, size_t len)
{
	(void) name;
	return bf_kind_name(kind) != NULL && len == 0;
}
