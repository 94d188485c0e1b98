/*-------------------------------------------------------------------------
 *
 * construct.c
 *	  The constructor, and the arithmetic of sizes.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "funcapi.h"
#include "utils/builtins.h"

#include <math.h>

PG_FUNCTION_INFO_V1(bf_sql_construct);
PG_FUNCTION_INFO_V1(bf_sql_clear);
PG_FUNCTION_INFO_V1(bf_sql_sizing);
PG_FUNCTION_INFO_V1(bf_sql_capacity);
PG_FUNCTION_INFO_V1(bf_sql_hash);

/* The cuckoo layout's */
#define LOWEST_FPR	1e-8

const BfLayout *
bf_layout_arg(const char *name)
{
	const BfLayout *layout = bf_layout_by_name(name);
	StringInfoData known;

	if (layout != NULL)
		return layout;

	initStringInfo(&known);
	for (unsigned i = 0; (layout = bf_layout_at(i)) != NULL; i++)
		appendStringInfo(&known, "%s%s", i > 0 ? ", " : "", layout->name);
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unknown layout \"%s\"", name),
			 pg_strcasecmp(name, "scalable") == 0 ?
			 errhint("A filter that grows is a layout with expansion, as in: bloomfilter(1000, expansion => 2).") :
			 errhint("Layouts are %s.", known.data)));
}

BfHash
bf_hash_arg(const char *name)
{
	BfHash		hash;

	if (!bf_hash_by_name(name, &hash))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unknown hash \"%s\"", name),
				 errhint("Hashes are xxh3 and blake2b.")));
	return hash;
}

/*
 * bloomfilter(capacity, fpr, layout, hash, key, expansion, hashes): an empty
 * filter.  NULL stands for an argument's default.
 */
Datum
bf_sql_construct(PG_FUNCTION_ARGS)
{
	float8		capacity = 0;
	float8		fpr = PG_ARGISNULL(1) ? 0.01 : PG_GETARG_FLOAT8(1);
	const BfLayout *layout = &bf_layout_blocked;
	BfHash		hash = BF_HASH_XXH3;
	bytea	   *key = PG_ARGISNULL(4) ? NULL : PG_GETARG_BYTEA_PP(4);
	int			expansion = PG_ARGISNULL(5) ? 0 : PG_GETARG_INT32(5);
	int			hashes = PG_ARGISNULL(6) ? 0 : PG_GETARG_INT32(6);
	BfHeader	h;
	BfError		err;

	if (!PG_ARGISNULL(2))
		layout = bf_layout_arg(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	if (!PG_ARGISNULL(3))
		hash = bf_hash_arg(text_to_cstring(PG_GETARG_TEXT_PP(3)));
	if (!PG_ARGISNULL(6) && hashes == 0)	/* to the core, the default */
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("hashes must be from 1 to %u for layout %s, not 0",
						layout->max_hashes, layout->name)));

	if (bf_header_init(&h, layout, hash,
					   key ? (const uint8 *) VARDATA_ANY(key) : NULL,
					   key ? VARSIZE_ANY_EXHDR(key) : 0,
					   0, fpr, hashes, &err) != BF_OK ||
		bf_header_expand(&h, expansion, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	if (!PG_ARGISNULL(0))
	{
		capacity = PG_GETARG_FLOAT8(0);
		if (bf_header_resize(&h, capacity, &err) != BF_OK)
			bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	}
	PG_RETURN_POINTER(bf_make_empty(&h));
}

/*
 * bloom_clear(filter): the same parameters, no elements.
 */
Datum
bf_sql_clear(PG_FUNCTION_ARGS)
{
	BfHeader	h;

	bf_fetch_header(PG_GETARG_DATUM(0), &h);
	PG_RETURN_POINTER(bf_make_empty(&h));
}

/*
 * bloom_sizing(capacity, fpr): what each layout would take.
 */
Datum
bf_sql_sizing(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	float8		capacity = PG_GETARG_FLOAT8(0);
	float8		fpr = PG_GETARG_FLOAT8(1);
	const BfLayout *layout;

	InitMaterializedSRF(fcinfo, 0);
	for (unsigned i = 0; (layout = bf_layout_at(i)) != NULL; i++)
	{
		BfHeader	h;
		BfError		err;
		Datum		values[6];
		bool		nulls[6] = {0};

		/* only some layouts go as low; an error if none does */
		if (fpr > 0 && fpr < layout->min_fpr && fpr >= LOWEST_FPR)
			continue;
		bf_must(bf_header_init(&h, layout, BF_HASH_XXH3, NULL, 0, 0, fpr, 0,
							   &err), &err);
		/* what is too large to be built has a size all the same */
		if (bf_header_resize(&h, capacity, &err) == BF_TOO_LARGE)
			layout->size(capacity, fpr, &h.shape);
		if (h.shape.nbits == 0 || h.shape.nbits > PG_INT64_MAX)
			bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
		values[0] = CStringGetTextDatum(layout->name);
		values[1] = Int64GetDatum((int64) h.shape.nbits);
		nulls[2] = !layout->takes_hashes;
		values[2] = Int32GetDatum((int32) h.shape.nhashes);
		values[3] = Int64GetDatum((int64) (VARHDRSZ + bf_header_size(&h) +
										   bf_payload_size(&h)));
		values[4] = Float8GetDatum((double) h.shape.nbits / capacity);
		values[5] = Float8GetDatum(layout->rate(&h.shape, capacity));
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
	}
	return (Datum) 0;
}

/*
 * bloom_capacity(bytes, fpr, layout): how many elements fit.
 */
Datum
bf_sql_capacity(PG_FUNCTION_ARGS)
{
	float8		bytes = PG_GETARG_FLOAT8(0);
	const BfLayout *layout =
		bf_layout_arg(text_to_cstring(PG_GETARG_TEXT_PP(2)));
	BfHeader	h;
	BfError		err;

	if (bf_header_init(&h, layout, BF_HASH_XXH3, NULL, 0, 0,
					   PG_GETARG_FLOAT8(1), 0, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	if (!(bytes >= 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("bytes must not be negative, not %g", bytes)));
	PG_RETURN_INT64((int64) bf_capacity_for(layout, bytes, h.fpr));
}

/*
 * bloom_hash(value, hash, key): the 16-byte digest, for authors of clients.
 */
Datum
bf_sql_hash(PG_FUNCTION_ARGS)
{
	BfElement  *el;
	BfHeader	h;
	BfError		err;
	BfHash		hash = BF_HASH_XXH3;
	bytea	   *key = PG_ARGISNULL(2) ? NULL : PG_GETARG_BYTEA_PP(2);
	bytea	   *result;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	el = bf_element_of_site(fcinfo, 0);
	if (el->dynamic)
		bf_element_resolve(el, PG_GETARG_DATUM(0));
	if (!PG_ARGISNULL(1))
		hash = bf_hash_arg(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	if (bf_header_init(&h, &bf_layout_blocked, hash,
					   key ? (const uint8 *) VARDATA_ANY(key) : NULL,
					   key ? VARSIZE_ANY_EXHDR(key) : 0,
					   0, 0.01, 0, &err) != BF_OK)
		bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	bf_check_key(&h, el);

	result = palloc(VARHDRSZ + BF_DIGEST_SIZE);
	SET_VARSIZE(result, VARHDRSZ + BF_DIGEST_SIZE);
	bf_digest_bytes(bf_element_digest(el, &h, PG_GETARG_DATUM(0)),
					(uint8 *) VARDATA(result));
	PG_RETURN_BYTEA_P(result);
}
