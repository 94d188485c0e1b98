/*-------------------------------------------------------------------------
 *
 * fuzz.h
 *	  What the fuzz targets share: checks, digests, filters as images.
 *
 * A target is a libFuzzer function, built with the core's files and the
 * address and undefined-behaviour sanitizers.  Images are in memory of exactly
 * their length, so that a byte read or written outside is caught.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_FUZZ_H
#define BF_FUZZ_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bf.h"

#define REQUIRE(condition) \
	do { \
		if (!(condition)) \
		{ \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			abort(); \
		} \
	} while (0)

extern int	LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The rest of the input; zeros where it has ended. */
typedef struct Input
{
	const uint8_t *data;
	size_t		left;
} Input;

static inline void
take(Input *in, void *to, size_t n)
{
	size_t		have = n < in->left ? n : in->left;

	memset(to, 0, n);
	if (have > 0)
		memcpy(to, in->data, have);
	in->data += have;
	in->left -= have;
}

static inline uint8_t
take8(Input *in)
{
	uint8_t		x;

	take(in, &x, sizeof(x));
	return x;
}

static inline uint8_t *
exact(const void *bytes, size_t len)
{
	uint8_t    *copy = malloc(len);

	REQUIRE(copy != NULL || len == 0);
	if (len > 0)
		memcpy(copy, bytes, len);
	return copy;
}

/* A filter's image, sealed.  kind is that of its elements, if it has any. */
static inline uint8_t *
image_of(const BfFilter *f, size_t *len)
{
	BfFilter	out = *f;
	uint8_t    *image;

	if (out.h.nset == 0)
	{
		out.bits = NULL;
		out.nbytes = 0;
		out.h.kind = BF_KIND_NONE;
		out.h.kind_name_len = 0;
		out.h.not_portable = false;
		out.h.nlayers = 0;
	}
	bf_seal(&out);
	*len = bf_image_size(&out.h);
	image = malloc(*len);
	REQUIRE(image != NULL);
	bf_write_header(&out.h, image);
	if (out.bits != NULL)
		memcpy(image + bf_header_size(&out.h), out.bits, out.nbytes);
	return image;
}

/* The answer to a probe that reads nothing but the layout's ranges. */
static inline bool
test_by_ranges(const BfFilter *f, BfDigest digest)
{
	BfRange		ranges[BF_MAX_RANGES];
	uint32_t	n = f->h.layout->ranges(&f->h.shape, digest, ranges);
	size_t		size = 0;
	uint8_t    *bytes;
	bool		result;

	REQUIRE(n > 0 && n <= BF_MAX_RANGES);
	for (uint32_t i = 0; i < n; i++)
	{
		REQUIRE(ranges[i].length > 0 &&
				ranges[i].offset + ranges[i].length <= f->nbytes);
		REQUIRE(i == 0 || ranges[i].offset >= ranges[i - 1].offset);
		size += ranges[i].length;
	}
	bytes = malloc(size);
	REQUIRE(bytes != NULL);
	size = 0;
	for (uint32_t i = 0; i < n; i++)
	{
		memcpy(bytes + size, f->bits + ranges[i].offset, ranges[i].length);
		size += ranges[i].length;
	}
	result = f->h.layout->test_ranges(bytes, ranges, n, &f->h.shape, digest);
	free(bytes);
	return result;
}

/* Estimates are numbers, and rates are between 0 and 1. */
static inline void
check_estimates(const BfHeader *h)
{
	double		n = bf_cardinality(h);
	double		rate = bf_expected_fpr(h);

	REQUIRE(n >= 0);
	REQUIRE(rate >= 0 && rate <= 1);
	rate = bf_design_fpr(h);
	REQUIRE(rate > 0 && rate <= 1);
	(void) bf_overfilled(h);
}

#endif							/* BF_FUZZ_H */
