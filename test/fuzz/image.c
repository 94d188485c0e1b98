/*-------------------------------------------------------------------------
 *
 * image.c
 *	  Fuzz target: bytes as a filter's image.
 *
 * The input is a byte of options, sixteen bytes of a digest, and the image.
 * Checksums keep random bytes out, so that with option 1 the checksums and the
 * numbers of bits set are made right before they are looked at.
 *
 * Whatever bf_open takes, no operation reads or writes outside of it.  What
 * bf_validate takes is a filter, comes out as it went in, and is a filter
 * after every operation.
 *
 *-------------------------------------------------------------------------
 */
#include "fuzz.h"
#include "bytes.h"

#define REPAIR		1
#define MAX_BYTES	65536		/* of an empty filter that is to be filled */

/* Make counts and checksums true, where the image can be opened. */
static void
repair(uint8_t *image, size_t len)
{
	BfFilter	f;
	BfError		err;
	size_t		entries;

	if (bf_open(image, len, &f, &err) != BF_OK)
		return;
	entries = BF_FIXED_HEADER + (size_t) f.h.keylen + f.h.kind_name_len;
	if (f.h.nlayers > 0)
	{
		f.h.nset = 0;
		for (unsigned i = 0; i < f.h.nlayers; i++)
		{
			BfFilter	layer;

			bf_open_layer(&f, i, &layer);
			bf_recount(&layer);
			bf_store64(image + entries + i * BF_LAYER_ENTRY + 16, layer.h.nset);
			f.h.nset += layer.h.nset;
		}
	}
	else
		bf_recount(&f);
	bf_store64(image + 36, f.h.nset);
	bf_seal(&f);
	bf_store64(image + 48, f.h.checksum);
	bf_store32(image + 56, 0);
	bf_store32(image + 56, (uint32_t) bf_checksum(image, bf_header_size(&f.h)));
}

/* f is a filter that bf_validate takes. */
static void
must_be_valid(const BfFilter *f)
{
	size_t		len;
	uint8_t    *image = image_of(f, &len);
	BfFilter	again;
	BfError		err;

	if (bf_validate(image, len, &again, &err) != BF_OK)
	{
		fprintf(stderr, "no longer valid: %s\n", err.message);
		abort();
	}
	free(image);
}

static bool
is_there(const BfFilter *f, BfDigest digest, bool valid)
{
	bool		result = bf_test(f, digest);

	if (f->bits != NULL && f->h.expansion == 0)
	{
		bool		by_ranges = test_by_ranges(f, digest);

		REQUIRE(!valid || by_ranges == result);
	}
	return result;
}

/*
 * All that changes a filter of fixed size, each on a copy of the bits.
 */
static void
change(const BfFilter *original, BfDigest digest, bool valid)
{
	const BfLayout *layout = original->h.layout;
	BfFilter	f = *original;
	BfFilter	other;
	BfDigest	digests[3] = {digest, {digest.h2, digest.h1}, {~digest.h1, digest.h2}};
	BfError		err;
	uint8_t    *before;
	bool		was_there;

	f.nbytes = bf_payload_size(&f.h);
	f.bits = calloc(1, f.nbytes);
	REQUIRE(f.bits != NULL);
	if (original->bits != NULL)
		memcpy(f.bits, original->bits, f.nbytes);
	else
		f.h.kind = BF_KIND_TEXT;
	before = exact(f.bits, f.nbytes);
	other = f;
	other.bits = exact(f.bits, f.nbytes);
	was_there = is_there(original, digest, valid);

	/* one more, one less */
	if (bf_add(&f, digest, &err) == BF_OK)
	{
		uint64_t	nset = f.h.nset;

		if (valid)
		{
			REQUIRE(is_there(&f, digest, true));
			bf_recount(&f);
			REQUIRE(f.h.nset == nset);
			must_be_valid(&f);
		}
		if (layout->remove != NULL)
		{
			bool		removed = bf_remove(&f, digest);

			if (valid)
			{
				REQUIRE(removed);
				nset = f.h.nset;
				bf_recount(&f);
				REQUIRE(f.h.nset == nset);
				must_be_valid(&f);
			}
		}
	}
	else
	{
		REQUIRE(err.status == BF_FULL && err.message[0] != '\0');
		REQUIRE(layout->bounded);
	}
	if (layout->remove != NULL)
	{
		memcpy(f.bits, before, f.nbytes);
		f.h.nset = original->h.nset;
		REQUIRE(bf_remove(&f, digest) == bf_test(original, digest));
		if (valid)
		{
			bf_recount(&f);
			must_be_valid(&f);
		}
	}

	/* several */
	memcpy(f.bits, before, f.nbytes);
	f.h.nset = original->h.nset;
	if (bf_add_many(&f, digests, 3, &err) == BF_OK && valid)
	{
		bf_recount(&f);
		for (int i = 0; i < 3; i++)
			REQUIRE(bf_test(&f, digests[i]));
		must_be_valid(&f);
	}

	/* with itself: nothing new in a set */
	memcpy(f.bits, before, f.nbytes);
	f.h.nset = original->h.nset;
	if (bf_unite(&f, &other, &err) == BF_OK)
	{
		if (valid)
		{
			REQUIRE(layout->multiset || memcmp(f.bits, before, f.nbytes) == 0);
			REQUIRE(!was_there || bf_test(&f, digest));
			must_be_valid(&f);
		}
	}
	else
		REQUIRE(err.status == BF_FULL && layout->bounded);
	memcpy(f.bits, before, f.nbytes);
	f.h.nset = original->h.nset;
	bf_intersect(&f, &other);
	if (valid)
	{
		REQUIRE(memcmp(f.bits, before, f.nbytes) == 0);
		REQUIRE(f.h.nset == original->h.nset);
	}

	if (layout->id == BF_COUNTING)
	{
		BfFilter	plain = f;

		plain.h.layout = &bf_layout_standard;
		plain.h.shape.nbits /= 4;
		plain.nbytes /= 4;
		plain.bits = malloc(plain.nbytes);
		REQUIRE(plain.bits != NULL);
		bf_counting_to_bits(f.bits, &f.h.shape, plain.bits);
		bf_recount(&plain);
		if (valid)
		{
			REQUIRE(bf_test(&plain, digest) == was_there);
			must_be_valid(&plain);
		}
		free(plain.bits);
	}
	if (bf_can_fold(&f.h))
	{
		bf_fold(&f);
		f.h.capacity = (f.h.capacity + 1) / 2;
		if (valid)
		{
			REQUIRE(!was_there || bf_test(&f, digest));
			must_be_valid(&f);
		}
		layout->unfold(f.bits, &f.h.shape);
		f.h.shape.nbits *= 2;
		f.nbytes *= 2;
		bf_recount(&f);
		if (valid)
		{
			REQUIRE(!was_there || bf_test(&f, digest));
			must_be_valid(&f);
		}
	}
	free(before);
	free(other.bits);
	free(f.bits);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Input		in = {data, size};
	uint8_t		options = take8(&in);
	BfDigest	digest;
	uint8_t    *image;
	size_t		len;
	BfFilter	f;
	BfFilter	again;
	BfHeader	h;
	BfError		err;
	bool		valid;

	take(&in, &digest.h1, 8);
	take(&in, &digest.h2, 8);
	len = in.left;
	image = exact(in.data, len);
	if (options & REPAIR)
		repair(image, len);

	memset(&err, 0, sizeof(err));
	if (bf_open(image, len, &f, &err) != BF_OK)
	{
		REQUIRE(err.status == BF_CORRUPT || err.status == BF_UNKNOWN_VERSION);
		REQUIRE(err.message[0] != '\0');
		REQUIRE(bf_validate(image, len, &again, &err) == err.status);
		free(image);
		return 0;
	}

	/* a header by itself is as good */
	{
		size_t		have = bf_image_header_size(image, len);
		uint8_t    *start = exact(image, have < len ? have : len);

		REQUIRE(have <= BF_MAX_HEADER && bf_header_size(&f.h) <= have);
		REQUIRE(bf_open_header(start, have, len, &h, &err) == BF_OK);
		REQUIRE(h.nset == f.h.nset && h.layout == f.h.layout);
		free(start);
	}

	valid = bf_validate(image, len, &again, &err) == BF_OK;
	if (!valid)
		REQUIRE(err.status == BF_CORRUPT && err.message[0] != '\0');
	else
	{
		size_t		relen;
		uint8_t    *rewritten;

		check_estimates(&f.h);
		rewritten = image_of(&f, &relen);
		REQUIRE(relen == len && memcmp(rewritten, image, len) == 0);
		free(rewritten);
		REQUIRE(bf_same_parameters(&f.h, &again.h, &err) == BF_OK);
		h = f.h;
		bf_merge_design(&h, &again.h);
		REQUIRE(h.capacity == f.h.capacity);
		if (f.h.expansion == 0 && bf_is_sized(&f.h))
			REQUIRE(bf_max_elements(&f.h) >= 1);
		h = f.h;
		if (bf_is_sized(&h))
			(void) bf_header_resize(&h, (double) f.h.capacity, &err);
	}

	(void) is_there(&f, digest, valid);
	if (f.h.expansion == 0)
	{
		if (bf_is_sized(&f.h) && bf_payload_size(&f.h) <= MAX_BYTES)
			change(&f, digest, valid);
	}
	else
	{
		bool		there = false;

		for (unsigned i = 0; i < f.h.nlayers; i++)
		{
			BfFilter	layer;

			bf_open_layer(&f, i, &layer);
			there |= bf_test(&layer, digest);
			if (valid)
			{
				check_estimates(&layer.h);
				(void) bf_layer_is_full(&layer.h, f.h.nlayers == 1);
			}
			if (layer.nbytes <= MAX_BYTES)
				change(&layer, digest, valid);
		}
		REQUIRE(there == bf_test(&f, digest));
		if (valid)
		{
			BfHeader	last;

			if (f.h.nlayers > 0)
				bf_layer_header(&f.h, f.h.nlayers - 1, &last);
			if (bf_plan_layer(&f.h, f.h.nlayers,
							  f.h.nlayers > 0 ? &last : NULL, &h, &err) == BF_OK)
				REQUIRE(bf_is_sized(&h) && h.capacity > 0);
		}
	}
	free(image);
	return 0;
}
