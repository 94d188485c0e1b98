/*-------------------------------------------------------------------------
 *
 * layers.c
 *	  Scalable filters: when a layer is full, a larger one is added.
 *
 * Almeida, Baquero, Preguica and Hutchison, "Scalable Bloom filters",
 * Information Processing Letters 101 (6), 2007.  Layer i = 0, 1, 2, ... is
 * sized for capacity * expansion^i elements at the rate p (1 - r) r^i, so that
 * the rates of any number of layers add up to less than p.  The tightening
 * ratio r is 0.85: with 0.5, as some have it, later layers take twice the bits
 * that they should.
 *
 * A layer is a filter of fixed size.  An element goes into the last layer,
 * and only if no layer seems to have it (but for cuckoo filters, which hold
 * every copy); a probe asks all layers, the last and largest first.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bf.h"
#include "bytes.h"

#define TIGHTENING	0.85

void
bf_layer_header(const BfHeader *h, unsigned i, BfHeader *layer)
{
	const uint8_t *entry = h->layers + i * BF_LAYER_ENTRY;

	*layer = *h;
	layer->expansion = 0;
	layer->nlayers = 0;
	layer->shape.nbits = bf_load64(entry);
	layer->shape.nhashes = entry[24];
	layer->capacity = bf_load64(entry + 8);
	layer->nset = bf_load64(entry + 16);
}

void
bf_write_layer_entry(const BfHeader *layer, uint8_t *entry)
{
	memset(entry, 0, BF_LAYER_ENTRY);
	bf_store64(entry, layer->shape.nbits);
	bf_store64(entry + 8, layer->capacity);
	bf_store64(entry + 16, layer->nset);
	entry[24] = (uint8_t) layer->shape.nhashes;
}

void
bf_open_layer(const BfFilter *f, unsigned i, BfFilter *layer)
{
	size_t		offset = 0;

	for (unsigned j = 0; j < i; j++)
		offset += (size_t) (bf_load64(f->h.layers + j * BF_LAYER_ENTRY) / 8);
	bf_layer_header(&f->h, i, &layer->h);
	layer->nbytes = bf_payload_size(&layer->h);
	layer->bits = f->bits + offset;
}

/*
 * The i'th layer, behind last (NULL for the first).  Its capacity follows from
 * last's and not from i: a union has several layers of one capacity, and next
 * to twenty of a thousand elements none for a billion is wanted.
 */
BfStatus
bf_plan_layer(const BfHeader *h, unsigned i, const BfHeader *last,
			  BfHeader *layer, BfError *err)
{
	double		capacity = last == NULL ? (double) h->capacity :
		(double) last->capacity * h->expansion;
	double		fpr = h->fpr * (1 - TIGHTENING) * pow(TIGHTENING, (double) i);

	*layer = *h;
	layer->expansion = 0;
	layer->nlayers = 0;
	layer->nset = 0;
	layer->fpr = fpr;
	if (i == 0 && fpr < h->layout->min_fpr)
		return bf_fail(err, BF_BAD_PARAMETER,
					   "fpr must be at least %.3g for layout %s with expansion, not %g",
					   h->layout->min_fpr / (1 - TIGHTENING), h->layout->name,
					   h->fpr);
	if (i >= BF_MAX_LAYERS || fpr < h->layout->min_fpr)
	{
		bf_fail(err, BF_FULL,
				"filter cannot grow beyond %u layers at fpr %g", i, h->fpr);
		snprintf(err->hint, sizeof(err->hint),
				 "Build it anew with a larger capacity, a larger expansion, or a higher rate.");
		return err->status;
	}
	if (bf_header_resize(layer, fmin(capacity, (double) BF_MAX_CAPACITY),
						 err) != BF_OK)
		return err->status;
	layer->fpr = h->fpr;
	return BF_OK;
}

/*
 * More bits set than its capacity of elements would ever set?  If it is the
 * only layer, three standard deviations more: a filter that was sized for just
 * its elements shall not get a second one by chance, and a single layer has
 * but a seventh of the rate.  Many layers use up nearly all of it; many small
 * ones, each overfilled like that, came to 1.6 times the rate.  A cuckoo
 * filter knows how many it holds.
 */
bool
bf_layer_is_full(const BfHeader *layer, bool only)
{
	double		variance;
	double		expected;

	if (layer->layout->bounded)
		return layer->nset >= layer->capacity;
	expected = layer->layout->expected_set(&layer->shape,
										   (double) layer->capacity,
										   &variance);
	if (only)
		expected += 3 * sqrt(variance);
	return (double) layer->nset >= fmin(expected,
										(double) layer->shape.nbits);
}

bool
bf_test_layers(const BfFilter *f, BfDigest digest)
{
	for (unsigned i = f->h.nlayers; i-- > 0;)
	{
		BfFilter	layer;

		bf_open_layer(f, i, &layer);
		if (f->h.layout->test(layer.bits, &layer.h.shape, digest))
			return true;
	}
	return false;
}
