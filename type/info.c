/*-------------------------------------------------------------------------
 *
 * info.c
 *	  What a filter says about itself; all of it from the header.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

#include "access/htup_details.h"
#include "funcapi.h"
#include "utils/builtins.h"

PG_FUNCTION_INFO_V1(bf_sql_info);
PG_FUNCTION_INFO_V1(bf_sql_cardinality);
PG_FUNCTION_INFO_V1(bf_sql_expected_fpr);
PG_FUNCTION_INFO_V1(bf_sql_etag);

/*
 * Bits of the payload, all layers together; capacity as well, if wanted.
 */
static uint64
total_bits(const BfHeader *h, uint64 *capacity)
{
	uint64		nbits = 0;
	uint64		n = 0;

	for (unsigned i = 0; i < h->nlayers; i++)
	{
		BfHeader	layer;

		bf_layer_header(h, i, &layer);
		n += layer.capacity;
		nbits += layer.shape.nbits;
	}
	if (h->nlayers == 0)
	{
		n = h->capacity;
		nbits = h->shape.nbits;
	}
	if (capacity != NULL)
		*capacity = n;
	return nbits;
}

/*
 * What "bits set" is out of: bits, counters, or the slots for fingerprints.
 */
static double
units(const BfHeader *h)
{
	switch (h->layout->id)
	{
		case BF_COUNTING:
			return (double) total_bits(h, NULL) / 4;
		case BF_CUCKOO:
			if (h->expansion == 0)
				return bf_cuckoo_slots(&h->shape);
			else
			{
				double		slots = 0;

				for (unsigned i = 0; i < h->nlayers; i++)
				{
					BfHeader	layer;

					bf_layer_header(h, i, &layer);
					slots += bf_cuckoo_slots(&layer.shape);
				}
				return slots;
			}
		default:
			return (double) total_bits(h, NULL);
	}
}

/*
 * The share of them that is set.
 */
double
bf_fill(const BfHeader *h)
{
	return h->nset > 0 ? (double) h->nset / units(h) : 0;
}

Datum
bf_sql_info(PG_FUNCTION_ARGS)
{
	TupleDesc	tupdesc;
	BfHeader	h;
	uint64		capacity;
	uint64		nbits;
	Datum		values[14];
	bool		nulls[14] = {0};
	int			i = 0;

	if (get_call_result_type(fcinfo, NULL, &tupdesc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	bf_peek_header(PG_GETARG_DATUM(0), &h);
	values[i++] = CStringGetTextDatum(h.layout->name);
	values[i++] = CStringGetTextDatum(bf_hash_name(h.hash));
	values[i++] = BoolGetDatum(h.keylen > 0);
	nulls[i] = h.kind == BF_KIND_NONE;
	values[i++] = CStringGetTextDatum(h.not_portable ?
									  psprintf("%s (not portable)", bf_kind_display(&h)) :
									  bf_kind_display(&h));
	nbits = total_bits(&h, &capacity);
	nulls[i] = !bf_is_sized(&h);
	values[i++] = Int64GetDatum((int64) capacity);
	values[i++] = Float8GetDatum(h.fpr);
	values[i++] = Int64GetDatum((int64) nbits);
	/* layers may have different ones */
	nulls[i] = h.shape.nhashes == 0 || !h.layout->takes_hashes ||
		h.expansion != 0;
	values[i++] = Int32GetDatum((int32) h.shape.nhashes);
	values[i++] = Int32GetDatum(h.expansion != 0 ? h.nlayers :
								bf_is_sized(&h));
	values[i++] = Int64GetDatum((int64) h.nset);
	values[i++] = Float8GetDatum(bf_fill(&h));
	values[i++] = Float8GetDatum(bf_cardinality(&h));
	values[i++] = Float8GetDatum(bf_expected_fpr(&h));
	values[i++] = Int64GetDatum((int64) (VARHDRSZ + bf_image_size(&h)));
	Assert(i == lengthof(values));

	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(tupdesc, values, nulls)));
}

/* bloom_cardinality(filter): about how many distinct elements it holds */
Datum
bf_sql_cardinality(PG_FUNCTION_ARGS)
{
	BfHeader	h;

	bf_peek_header(PG_GETARG_DATUM(0), &h);
	PG_RETURN_FLOAT8(bf_cardinality(&h));
}

/*
 * bloom_etag(filter): 16 hexadecimal digits that differ for filters that
 * differ, from the header alone: it has the payload's checksum.
 */
Datum
bf_sql_etag(PG_FUNCTION_ARGS)
{
	BfHeader	h;
	uint8		bytes[BF_MAX_HEADER];

	bf_fetch_header(PG_GETARG_DATUM(0), &h);
	bf_write_header(&h, bytes);
	PG_RETURN_TEXT_P(cstring_to_text(psprintf("%016llx",
											  (unsigned long long) bf_checksum(bytes, bf_header_size(&h)))));
}

/* bloom_expected_fpr(filter): the false-positive rate as it is filled now */
Datum
bf_sql_expected_fpr(PG_FUNCTION_ARGS)
{
	BfHeader	h;

	bf_peek_header(PG_GETARG_DATUM(0), &h);
	PG_RETURN_FLOAT8(bf_expected_fpr(&h));
}
