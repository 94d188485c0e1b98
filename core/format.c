/*-------------------------------------------------------------------------
 *
 * format.c
 *	  A filter as bytes: header, validation, sizing of whole images.
 *
 * docs/format.md specifies the image byte by byte.  All numbers are
 * little-endian.
 *
 *	 0	2	"BF"
 *	 2	1	version, 1
 *	 3	1	layout
 *	 4	1	hash
 *	 5	1	k
 *	 6	2	header size in bytes; 60 modulo 64
 *	 8	1	length of the key
 *	 9	1	element kind; 0 = empty
 *	10	2	length of the element kind's name
 *	12	8	m in bits; 0 = unsized
 *	20	8	capacity; 0 = unsized
 *	28	8	target false-positive rate, IEEE double
 *	36	8	bits set
 *	44	1	flags: 1 = k was chosen by the caller, 2 = elements are not portable
 *	45	1	expansion; 0 = of fixed size
 *	46	1	number of layers
 *	47	1	reserved, zero
 *	48	8	XXH3-64 of the payload (1 if that is 0); 0 = empty
 *	56	4	low half of XXH3-64 of the header, with these four bytes zero
 *	60		key, element kind's name, layers, zeros up to the header's size
 *			payload: m / 8 bytes, or none while the filter is empty
 *
 * A layer's entry: m (8), capacity (8), bits set (8), k (1), zeros (7).  With
 * layers the payload is theirs, one behind the other.
 *
 * The 4-byte length word of a PostgreSQL value brings the header to a
 * multiple of 64, so that blocks are aligned with the value.
 *
 * A filter without elements is its header alone: bits set, checksum and
 * element kind are 0 if and only if there is no payload.
 *
 *-------------------------------------------------------------------------
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "bf.h"
#include "bytes.h"

#define FLAG_HASHES_GIVEN	1
#define FLAG_NOT_PORTABLE	2

BfStatus
bf_fail(BfError *err, BfStatus status, const char *fmt,...)
{
	va_list		args;

	err->status = status;
	err->hint[0] = '\0';
	va_start(args, fmt);
	vsnprintf(err->message, sizeof(err->message), fmt, args);
	va_end(args);
	return status;
}

/* ------------------------------------------------------------------------
 * Parameters
 * ------------------------------------------------------------------------
 */
static const BfLayout *const layouts[] = {
	&bf_layout_blocked,
	&bf_layout_standard,
	&bf_layout_counting,
	&bf_layout_cuckoo,
};

const BfLayout *
bf_layout_at(unsigned i)
{
	return i < sizeof(layouts) / sizeof(layouts[0]) ? layouts[i] : NULL;
}

const BfLayout *
bf_layout_by_id(unsigned id)
{
	const BfLayout *layout;

	for (unsigned i = 0; (layout = bf_layout_at(i)) != NULL; i++)
		if (layout->id == id)
			return layout;
	return NULL;
}

const BfLayout *
bf_layout_by_name(const char *name)
{
	const BfLayout *layout;

	for (unsigned i = 0; (layout = bf_layout_at(i)) != NULL; i++)
		if (strcmp(layout->name, name) == 0)
			return layout;
	return NULL;
}

static BfStatus
check_fpr(const BfLayout *layout, double fpr, BfError *err)
{
	if (!(fpr >= layout->min_fpr && fpr < 1))
	{
		bf_fail(err, BF_BAD_PARAMETER,
				"fpr must be at least %g and less than 1 for layout %s, not %g",
				layout->min_fpr, layout->name, fpr);
		if (fpr >= 1 && fpr <= 100)
			snprintf(err->hint, sizeof(err->hint),
					 "A rate of %g%% is written %g.", fpr, fpr / 100);
		return err->status;
	}
	return BF_OK;
}

static BfStatus
check_capacity(double capacity, BfError *err)
{
	if (!(capacity >= 1 && capacity <= (double) BF_MAX_CAPACITY) ||
		capacity != floor(capacity))
	{
		bf_fail(err, BF_BAD_PARAMETER,
				"capacity must be a whole number from 1 to %llu, not %.15g",
				(unsigned long long) BF_MAX_CAPACITY, capacity);
		if (capacity > 0 && capacity < 1)
			snprintf(err->hint, sizeof(err->hint),
					 "The false-positive rate comes after the capacity, as in: bloomfilter(1000000, %g).",
					 capacity);
		return err->status;
	}
	return BF_OK;
}

BfStatus
bf_header_init(BfHeader *h, const BfLayout *layout, BfHash hash,
			   const uint8_t *key, size_t keylen, double capacity, double fpr,
			   int nhashes, BfError *err)
{
	memset(h, 0, sizeof(*h));
	h->layout = layout;
	h->hash = hash;
	h->fpr = fpr;

	if (check_fpr(layout, fpr, err) != BF_OK)
		return err->status;
	if (key != NULL)
	{
		if (keylen < 1 || keylen > BF_MAX_KEY)
			return bf_fail(err, BF_BAD_PARAMETER,
						   "key must have 1 to %d bytes, not %zu",
						   BF_MAX_KEY, keylen);
		if (hash != BF_HASH_BLAKE2B)
		{
			bf_fail(err, BF_BAD_PARAMETER, "hash %s takes no key",
					bf_hash_name(hash));
			snprintf(err->hint, sizeof(err->hint),
					 "Use hash => 'blake2b' with a key.");
			return err->status;
		}
		h->keylen = (uint8_t) keylen;
		memcpy(h->key, key, keylen);
	}
	if (nhashes != 0 && !layout->takes_hashes)
		return bf_fail(err, BF_BAD_PARAMETER,
					   "layout %s takes no number of hashes", layout->name);
	if (nhashes < 0 || nhashes > (int) layout->max_hashes)
		return bf_fail(err, BF_BAD_PARAMETER,
					   "hashes must be from 1 to %u for layout %s, not %d",
					   layout->max_hashes, layout->name, nhashes);
	h->shape.nhashes = (uint32_t) nhashes;
	h->hashes_given = nhashes != 0;

	if (capacity == 0)
		return BF_OK;
	return bf_header_resize(h, capacity, err);
}

/*
 * Make an unsized header one of a scalable filter.
 */
BfStatus
bf_header_expand(BfHeader *h, int expansion, BfError *err)
{
	if (expansion != 0 && h->layout->id == BF_COUNTING)
	{
		bf_fail(err, BF_BAD_PARAMETER, "layout %s takes no expansion",
				h->layout->name);
		snprintf(err->hint, sizeof(err->hint),
				 "A filter that grows and forgets is layout => 'cuckoo' with expansion.");
		return err->status;
	}
	if (expansion < 0 || expansion > BF_MAX_EXPANSION)
		return bf_fail(err, BF_BAD_PARAMETER,
					   "expansion must be from 1 to %d, or 0 for a filter of fixed size, not %d",
					   BF_MAX_EXPANSION, expansion);
	h->expansion = (uint8_t) expansion;
	return BF_OK;
}

/*
 * Size an empty header for another capacity, all else kept.
 */
BfStatus
bf_header_resize(BfHeader *h, double capacity, BfError *err)
{
	BfShape		shape = {0, h->hashes_given ? h->shape.nhashes : 0};

	if (check_capacity(capacity, err) != BF_OK)
		return err->status;
	if (h->expansion != 0)
	{
		BfHeader	layer;

		h->capacity = (uint64_t) capacity;
		if (bf_plan_layer(h, 0, NULL, &layer, err) != BF_OK)
			return err->status;
		h->shape = layer.shape;
		return BF_OK;
	}
	h->layout->size(capacity, h->fpr, &shape);
	if (shape.nbits > BF_MAX_BITS)
	{
		double		bytes = shape.nbits == UINT64_MAX ?
			-capacity * log(h->fpr) / 0.4804530139182014 / 8 :
			(double) shape.nbits / 8;

		bf_fail(err, BF_TOO_LARGE,
				"a %s filter for %.0f elements at fpr %g needs %.0f MiB, more than the limit of %d MiB",
				h->layout->name, capacity, h->fpr, ceil(bytes / 1048576),
				(int) (BF_MAX_BITS / 8 / 1048576));
		snprintf(err->hint, sizeof(err->hint),
				 "At this rate %.0f elements fit; split the set over several filters, or ask for a higher rate.",
				 bf_capacity_for(h->layout, BF_MAX_BITS / 8 + 64, h->fpr));
		return err->status;
	}
	h->shape = shape;
	h->capacity = (uint64_t) capacity;
	return BF_OK;
}

/*
 * The largest capacity whose image, header included (without key and kind
 * name), takes no more than so many bytes, as a PostgreSQL value.  0 where
 * not even one element fits.
 */
double
bf_capacity_for(const BfLayout *layout, double bytes, double fpr)
{
	double		low = 0;		/* fits */
	double		high = 1;		/* is to be tried */
	double		limit = fmin(bytes - (BF_FIXED_HEADER + 4), BF_MAX_BITS / 8);

	if (!(limit > 0))
		return 0;

	for (;;)
	{
		BfShape		shape = {0, 0};

		layout->size(high, fpr, &shape);
		if ((double) shape.nbits / 8 > limit || high > BF_MAX_CAPACITY)
			break;
		low = high;
		high *= 2;
	}
	while (high - low > 1)
	{
		double		mid = floor((low + high) / 2);
		BfShape		shape = {0, 0};

		layout->size(mid, fpr, &shape);
		if ((double) shape.nbits / 8 > limit)
			high = mid;
		else
			low = mid;
	}
	return fmin(low, (double) BF_MAX_CAPACITY);
}

/* ------------------------------------------------------------------------
 * Images
 * ------------------------------------------------------------------------
 */
size_t
bf_header_size(const BfHeader *h)
{
	size_t		used = BF_FIXED_HEADER + (size_t) h->keylen +
		h->kind_name_len + (size_t) h->nlayers * BF_LAYER_ENTRY;

	return (used + 4 + 63) / 64 * 64 - 4;
}

/*
 * Bytes of the payload that the filter has, not of that which it may get.
 */
static size_t
present_payload(const BfHeader *h)
{
	size_t		size = 0;

	if (h->expansion == 0)
		return h->nset > 0 ? bf_payload_size(h) : 0;
	for (unsigned i = 0; i < h->nlayers; i++)
		size += (size_t) (bf_load64(h->layers + i * BF_LAYER_ENTRY) / 8);
	return size;
}

size_t
bf_image_size(const BfHeader *h)
{
	return bf_header_size(h) + present_payload(h);
}

void
bf_write_header(const BfHeader *h, uint8_t *image)
{
	size_t		size = bf_header_size(h);

	memset(image, 0, size);
	image[0] = 'B';
	image[1] = 'F';
	image[2] = BF_FORMAT_VERSION;
	image[3] = (uint8_t) h->layout->id;
	image[4] = (uint8_t) h->hash;
	image[5] = (uint8_t) h->shape.nhashes;
	bf_store16(image + 6, (uint16_t) size);
	image[8] = h->keylen;
	image[9] = h->kind;
	bf_store16(image + 10, h->kind_name_len);
	bf_store64(image + 12, h->shape.nbits);
	bf_store64(image + 20, h->capacity);
	bf_store_double(image + 28, h->fpr);
	bf_store64(image + 36, h->nset);
	image[44] = (uint8_t) ((h->hashes_given ? FLAG_HASHES_GIVEN : 0) |
						   (h->not_portable ? FLAG_NOT_PORTABLE : 0));
	image[45] = h->expansion;
	image[46] = h->nlayers;
	bf_store64(image + 48, h->checksum);
	memcpy(image + BF_FIXED_HEADER, h->key, h->keylen);
	if (h->kind_name_len > 0)
		memcpy(image + BF_FIXED_HEADER + h->keylen, h->kind_name,
			   h->kind_name_len);
	if (h->nlayers > 0)
		memcpy(image + BF_FIXED_HEADER + h->keylen + h->kind_name_len,
			   h->layers, (size_t) h->nlayers * BF_LAYER_ENTRY);
	bf_store32(image + 56, (uint32_t) bf_checksum(image, size));
}

size_t
bf_image_header_size(const uint8_t *image, size_t have)
{
	size_t		size = have < BF_FIXED_HEADER ? 0 : bf_load16(image + 6);

	return size < BF_FIXED_HEADER ? BF_FIXED_HEADER :
		size > BF_MAX_HEADER ? BF_MAX_HEADER : size;
}

static bool
shape_is_sound(const BfLayout *layout, const BfShape *shape)
{
	return shape->nbits > 0 && shape->nbits <= BF_MAX_BITS &&
		shape->nbits % layout->unit == 0 &&
		shape->nhashes > 0 && shape->nhashes <= layout->max_hashes &&
		(layout->fits == NULL || layout->fits(shape));
}

static bool
layers_are_sound(const BfHeader *h)
{
	uint64_t	nbits = 0;
	uint64_t	nset = 0;

	for (unsigned i = 0; i < h->nlayers; i++)
	{
		BfHeader	layer;

		bf_layer_header(h, i, &layer);
		if (!shape_is_sound(h->layout, &layer.shape) ||
			layer.nset == 0 || layer.nset > layer.shape.nbits ||
			layer.capacity == 0 || layer.capacity > BF_MAX_CAPACITY)
			return false;
		nbits += layer.shape.nbits;
		nset += layer.nset;
	}
	return h->nlayers == 0 || (nbits <= BF_MAX_BITS && nset == h->nset);
}

/*
 * Parse the header, of which at least have bytes are there, of an image of
 * len bytes.  Constant time.
 */
BfStatus
bf_open_header(const uint8_t *image, size_t have, size_t len, BfHeader *h,
			   BfError *err)
{
	size_t		header_size;
	size_t		payload;

	if (have > len)
		have = len;
	if (have < BF_FIXED_HEADER)
		return bf_fail(err, BF_CORRUPT,
					   "a filter has at least %d bytes, not %zu",
					   BF_FIXED_HEADER, have);
	if (image[0] != 'B' || image[1] != 'F')
		return bf_fail(err, BF_CORRUPT,
					   "a filter starts with the bytes 4246, not %02x%02x",
					   image[0], image[1]);
	if (image[2] != BF_FORMAT_VERSION)
	{
		bf_fail(err, BF_UNKNOWN_VERSION,
				"filter has format version %d, this library reads version %d",
				image[2], BF_FORMAT_VERSION);
		return err->status;
	}

	h->layout = bf_layout_by_id(image[3]);
	if (h->layout == NULL)
		return bf_fail(err, BF_CORRUPT, "unknown layout %d", image[3]);
	if (image[4] != BF_HASH_XXH3 && image[4] != BF_HASH_BLAKE2B)
		return bf_fail(err, BF_CORRUPT, "unknown hash %d", image[4]);
	h->hash = (BfHash) image[4];
	h->shape.nhashes = image[5];
	header_size = bf_load16(image + 6);
	h->keylen = image[8];
	h->kind = image[9];
	h->kind_name_len = bf_load16(image + 10);
	h->shape.nbits = bf_load64(image + 12);
	h->capacity = bf_load64(image + 20);
	h->fpr = bf_load_double(image + 28);
	h->nset = bf_load64(image + 36);
	h->hashes_given = (image[44] & FLAG_HASHES_GIVEN) != 0;
	h->not_portable = (image[44] & FLAG_NOT_PORTABLE) != 0;
	h->expansion = image[45];
	h->nlayers = image[46];
	h->checksum = bf_load64(image + 48);

	if (h->expansion > BF_MAX_EXPANSION || h->nlayers > BF_MAX_LAYERS ||
		(h->expansion != 0 && h->layout->id == BF_COUNTING) ||
		(h->nlayers > 0) != (h->expansion != 0 && h->nset > 0))
		return bf_fail(err, BF_CORRUPT,
					   "%d layers with expansion %d in a %s filter",
					   h->nlayers, h->expansion, h->layout->name);
	if (h->keylen > BF_MAX_KEY)
		return bf_fail(err, BF_CORRUPT, "key of %d bytes, the limit is %d",
					   h->keylen, BF_MAX_KEY);
	if (h->kind_name_len > BF_MAX_KIND_NAME)
		return bf_fail(err, BF_CORRUPT,
					   "element kind name of %d bytes, the limit is %d",
					   h->kind_name_len, BF_MAX_KIND_NAME);
	if (header_size != bf_header_size(h))
		return bf_fail(err, BF_CORRUPT,
					   "header of %zu bytes, its contents need %zu",
					   header_size, bf_header_size(h));
	if ((h->shape.nbits == 0) != (h->capacity == 0) ||
		h->capacity > BF_MAX_CAPACITY)
		return bf_fail(err, BF_CORRUPT,
					   "capacity %llu contradicts %llu bits",
					   (unsigned long long) h->capacity,
					   (unsigned long long) h->shape.nbits);
	if (h->shape.nbits > BF_MAX_BITS || h->shape.nbits % h->layout->unit != 0)
		return bf_fail(err, BF_CORRUPT,
					   "%llu bits, not a multiple of %llu up to %llu",
					   (unsigned long long) h->shape.nbits,
					   (unsigned long long) h->layout->unit,
					   (unsigned long long) BF_MAX_BITS);
	if (h->nset > 0 && h->nlayers == 0 && h->nset > h->shape.nbits)
		return bf_fail(err, BF_CORRUPT, "%llu bits set, of %llu",
					   (unsigned long long) h->nset,
					   (unsigned long long) h->shape.nbits);
	if (h->shape.nbits == 0 ?
		(h->shape.nhashes != 0) != h->hashes_given ||
		h->shape.nhashes > h->layout->max_hashes :
		!shape_is_sound(h->layout, &h->shape))
		return bf_fail(err, BF_CORRUPT, "%u hashes in a %s filter of %llu bits",
					   h->shape.nhashes, h->layout->name,
					   (unsigned long long) h->shape.nbits);
	if (have < header_size)
		return bf_fail(err, BF_CORRUPT, "header of %zu bytes, %zu are there",
					   header_size, have);
	h->layers = image + BF_FIXED_HEADER + h->keylen + h->kind_name_len;
	if (!layers_are_sound(h))
		return bf_fail(err, BF_CORRUPT,
					   "the %d layers contradict each other or %llu bits set",
					   h->nlayers, (unsigned long long) h->nset);

	payload = present_payload(h);
	if (len != header_size + payload)
		return bf_fail(err, BF_CORRUPT, "filter has %zu bytes, its header says %zu",
					   len, header_size + payload);
	if (h->keylen > 0)
		memcpy(h->key, image + BF_FIXED_HEADER, h->keylen);
	h->kind_name = (const char *) image + BF_FIXED_HEADER + h->keylen;
	return BF_OK;
}

BfStatus
bf_open(const uint8_t *image, size_t len, BfFilter *f, BfError *err)
{
	if (bf_open_header(image, len, len, &f->h, err) != BF_OK)
		return err->status;
	f->nbytes = len - bf_header_size(&f->h);
	f->bits = f->nbytes > 0 ?
		(uint8_t *) image + bf_header_size(&f->h) : NULL;
	return BF_OK;
}

/*
 * Every field and every bit: the one guard of all ways into the type.
 */
BfStatus
bf_validate(const uint8_t *image, size_t len, BfFilter *f, BfError *err)
{
	BfHeader   *h = &f->h;
	uint8_t		header[BF_MAX_HEADER];
	size_t		used;
	uint64_t	nset;
	uint64_t	checksum;

	if (bf_open(image, len, f, err) != BF_OK)
		return err->status;

	if (image[44] & ~(FLAG_HASHES_GIVEN | FLAG_NOT_PORTABLE))
		return bf_fail(err, BF_CORRUPT, "unknown flags %02x", image[44]);
	if (image[47] != 0)
		return bf_fail(err, BF_CORRUPT, "reserved byte 47 is %02x, not 00",
					   image[47]);
	for (size_t i = 0; i < (size_t) h->nlayers * BF_LAYER_ENTRY; i++)
		if (i % BF_LAYER_ENTRY > 24 && h->layers[i] != 0)
			return bf_fail(err, BF_CORRUPT,
						   "reserved byte %zu of a layer is %02x, not 00",
						   i % BF_LAYER_ENTRY, h->layers[i]);
	used = BF_FIXED_HEADER + (size_t) h->keylen + h->kind_name_len +
		(size_t) h->nlayers * BF_LAYER_ENTRY;
	for (size_t i = used; i < bf_header_size(h); i++)
		if (image[i] != 0)
			return bf_fail(err, BF_CORRUPT,
						   "reserved byte %zu is %02x, not 00", i, image[i]);
	if (check_fpr(h->layout, h->fpr, err) != BF_OK)
		return err->status = BF_CORRUPT;
	if (h->keylen > 0 && h->hash != BF_HASH_BLAKE2B)
		return bf_fail(err, BF_CORRUPT, "hash %s takes no key",
					   bf_hash_name(h->hash));
	if (!bf_kind_is_valid(h->kind, h->kind_name, h->kind_name_len))
		return bf_fail(err, BF_CORRUPT,
					   "element kind %d with a name of %d bytes",
					   h->kind, h->kind_name_len);
	if ((h->kind == 0) != (h->nset == 0))
		return bf_fail(err, BF_CORRUPT,
					   "element kind %d contradicts %llu bits set",
					   h->kind, (unsigned long long) h->nset);

	/* a flipped bit in k or in the key would make a "no" of everything */
	memcpy(header, image, bf_header_size(h));
	bf_store32(header + 56, 0);
	checksum = (uint32_t) bf_checksum(header, bf_header_size(h));
	if (checksum != bf_load32(image + 56))
		return bf_fail(err, BF_CORRUPT,
					   "checksum of the header is %08llx, it says %08llx",
					   (unsigned long long) checksum,
					   (unsigned long long) bf_load32(image + 56));

	if (h->not_portable &&
		(h->kind < BF_FIRST_NAMED_KIND || h->keylen > 0))
		return bf_fail(err, BF_CORRUPT,
					   "elements of kind %d are marked as not portable",
					   h->kind);

	for (unsigned i = 0; f->bits != NULL && i < (h->nlayers > 0 ? h->nlayers : 1); i++)
	{
		BfFilter	layer = *f;

		if (h->nlayers > 0)
			bf_open_layer(f, i, &layer);
		if (h->layout->validate != NULL &&
			!h->layout->validate(layer.bits, &layer.h.shape))
			return bf_fail(err, BF_CORRUPT,
						   "payload is not one of a %s filter",
						   h->layout->name);
		nset = h->layout->recount(layer.bits, &layer.h.shape);
		if (nset != layer.h.nset)
			return bf_fail(err, BF_CORRUPT,
						   "%llu bits are set, the header says %llu",
						   (unsigned long long) nset,
						   (unsigned long long) layer.h.nset);
	}
	checksum = h->checksum;
	bf_seal(f);
	if (h->checksum != checksum)
		return bf_fail(err, BF_CORRUPT,
					   "checksum is %016llx, the header says %016llx",
					   (unsigned long long) h->checksum,
					   (unsigned long long) checksum);
	return BF_OK;
}
