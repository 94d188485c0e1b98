/*-------------------------------------------------------------------------
 *
 * scalable.c
 *	  Filters that grow by layers; core/layers.c explains them.
 *
 *-------------------------------------------------------------------------
 */
#include "type/type.h"

/*
 * An empty filter with h's parameters.
 */
void
bf_grow_init(BfGrowing *g, const BfHeader *h, MemoryContext context)
{
	memset(g, 0, sizeof(*g));
	g->context = context;
	g->h = *h;
	g->h.kind = BF_KIND_NONE;
	g->h.kind_name_len = 0;
	g->h.not_portable = false;
	g->h.nset = 0;
	g->h.checksum = 0;
	g->h.nlayers = 0;
}

static BfBuild *
append_layer(BfGrowing *g, const BfHeader *layer)
{
	BfBuild    *b;

	if (g->nlayers == BF_MAX_LAYERS)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("a filter cannot have more than %d layers",
						BF_MAX_LAYERS),
				 errhint("Build it anew with a larger capacity or a larger expansion.")));
	b = MemoryContextAlloc(g->context, sizeof(BfBuild));
	bf_build_init(b, layer, g->context, false);
	g->layers[g->nlayers++] = b;
	return b;
}

/*
 * Take over all layers of a filter behind those that are there, but keep the
 * order by capacity: probes start with the largest, and it is the one that
 * elements are added to.
 */
void
bf_grow_append(BfGrowing *g, const BfFilter *from)
{
	if (from->h.nlayers > 0)
		bf_copy_kind(&g->h, &from->h, g->context);
	for (unsigned i = 0; i < from->h.nlayers; i++)
	{
		BfFilter	layer;
		BfBuild    *b;
		unsigned	at;

		bf_open_layer(from, i, &layer);
		b = append_layer(g, &layer.h);
		bf_build_union(b, &layer);
		for (at = g->nlayers - 1;
			 at > 0 && g->layers[at - 1]->f.h.capacity > layer.h.capacity; at--)
			g->layers[at] = g->layers[at - 1];
		g->layers[at] = b;
	}
}

/*
 * Add an element.  False where a layer seems to have it already, and copies
 * do not count.
 */
bool
bf_grow_add(BfGrowing *g, const BfHeader *kind, BfDigest digest)
{
	BfBuild    *last = g->nlayers > 0 ? g->layers[g->nlayers - 1] : NULL;
	BfHeader	layer;
	BfError		err;

	if (!g->h.layout->multiset)
		for (unsigned i = g->nlayers; i-- > 0;)
			if (bf_test(&g->layers[i]->f, digest))
				return false;

	if (last != NULL && !bf_layer_is_full(&last->f.h, g->nlayers == 1))
	{
		if (bf_add(&last->f, digest, &err) == BF_OK)
			return true;

		/*
		 * No room, and yet half empty: many copies of one element.  Each
		 * eight of them would double the filter.
		 */
		if (last->f.h.nset < last->f.h.capacity / 2)
			bf_throw(&err, ERRCODE_INVALID_PARAMETER_VALUE);
	}

	bf_must(bf_plan_layer(&g->h, g->nlayers, last != NULL ? &last->f.h : NULL,
						  &layer, &err), &err);
	if (g->nlayers == 0)
		bf_copy_kind(&g->h, kind, g->context);
	last = append_layer(g, &layer);
	bf_build_start(last, &g->h);
	bf_must(bf_add(&last->f, digest, &err), &err);
	return true;
}

/*
 * Remove one copy, if it can only be in one layer: were it taken out of
 * another that just seems to have it, some other element would be lost.
 */
bool
bf_grow_remove(BfGrowing *g, BfDigest digest)
{
	BfBuild    *holder = NULL;

	for (unsigned i = 0; i < g->nlayers; i++)
	{
		if (!bf_test(&g->layers[i]->f, digest))
			continue;
		if (holder != NULL)
			return false;
		holder = g->layers[i];
	}
	return holder != NULL && bf_remove(&holder->f, digest);
}

BloomFilter *
bf_grow_result(BfGrowing *g)
{
	BfHeader   *h = &g->h;
	uint8		entries[BF_MAX_LAYERS * BF_LAYER_ENTRY];
	BloomFilter *result;
	BfFilter	f;
	Size		header;
	Size		size = 0;
	uint8	   *p;

	h->nlayers = 0;
	h->nset = 0;
	for (unsigned i = 0; i < g->nlayers; i++)
	{
		const BfFilter *layer = &g->layers[i]->f;

		/* what is empty, after removals, goes */
		if (layer->h.nset == 0)
			continue;
		bf_write_layer_entry(&layer->h, entries + h->nlayers * BF_LAYER_ENTRY);
		h->nlayers++;
		h->nset += layer->h.nset;
		size += layer->nbytes;
	}
	if (h->nlayers == 0)
		return bf_make_empty(h);
	if (size > BF_MAX_BITS / 8)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the layers take %zu MiB, more than the limit of %d MiB",
						size / 1048576, (int) (BF_MAX_BITS / 8 / 1048576)),
				 errhint("Split the set over several filters, or ask for a higher rate.")));

	h->layers = entries;
	header = VARHDRSZ + bf_header_size(h);
	result = palloc(header + size);
	SET_VARSIZE(result, header + size);
	p = (uint8 *) result + header;
	for (unsigned i = 0; i < g->nlayers; i++)
	{
		const BfFilter *layer = &g->layers[i]->f;

		if (layer->h.nset == 0)
			continue;
		memcpy(p, layer->bits, layer->nbytes);
		p += layer->nbytes;
	}
	f.h = *h;
	f.bits = (uint8 *) result + header;
	f.nbytes = size;
	bf_seal(&f);
	bf_write_header(&f.h, (uint8 *) VARDATA(result));
	return result;
}
