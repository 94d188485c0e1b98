/*-------------------------------------------------------------------------
 *
 * words.h
 *	  A filter for one query: four bits of an element in one 64-bit word.
 *
 * A filter that is thrown away with the query needs no format and no exact
 * rate: a row that passes by mistake is dropped by the join.  It must be as
 * cheap as can be instead.  This one reads a single word and compares it with
 * a mask: the register-blocked filter of Lang, Neumann, Kemper and Boncz,
 * "Performance-Optimal Filtering" (PVLDB 12(5), 2019).  At 16 bits an element
 * 0.5% of strangers pass, at 8 bits 3.4%.
 *
 * The number of words is a power of two, so that a filter that turns out too
 * large can be halved.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_WORDS_H
#define BF_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The finalizer of MurmurHash3 (Appleby, public domain): every bit of the
 * result depends on every bit of x.  A bijection.
 */
static inline uint64_t
bf_mix64(uint64_t x)
{
	x ^= x >> 33;
	x *= UINT64_C(0xff51afd7ed558ccd);
	x ^= x >> 33;
	x *= UINT64_C(0xc4ceb9fe1a85ec53);
	x ^= x >> 33;
	return x;
}

/* Words that are read ahead. */
#define BF_WORDS_AHEAD	16

/* The word of an element that was mixed to h, of mask + 1 words. */
static inline uint32_t
bf_word_of(uint64_t h, uint32_t mask)
{
	return (uint32_t) (h >> 32) & mask;
}

/* Its bits in there. */
static inline uint64_t
bf_word_bits(uint64_t h)
{
	return UINT64_C(1) << (h & 63) |
		UINT64_C(1) << (h >> 6 & 63) |
		UINT64_C(1) << (h >> 12 & 63) |
		UINT64_C(1) << (h >> 18 & 63);
}

static inline bool
bf_words_test(const uint64_t *words, uint32_t mask, uint64_t h)
{
	uint64_t	bits = bf_word_bits(h);

	return (words[bf_word_of(h, mask)] & bits) == bits;
}

/* True if it was not there. */
static inline bool
bf_words_add(uint64_t *words, uint32_t mask, uint64_t h)
{
	uint64_t   *word = &words[bf_word_of(h, mask)];
	uint64_t	bits = bf_word_bits(h);

	if ((*word & bits) == bits)
		return false;
	*word |= bits;
	return true;
}

/*
 * Of n elements that are added one after the other, the i'th is next: fetch the
 * word of a later one, since a large filter is not in the cache.
 */
static inline void
bf_words_fetch_ahead(uint64_t *words, uint32_t mask, const uint64_t *h, size_t i, size_t n)
{
	if (i + BF_WORDS_AHEAD < n)
		__builtin_prefetch(&words[bf_word_of(h[i + BF_WORDS_AHEAD], mask)], 1);
}

/* Add n elements; how many were not there. */
static inline uint64_t
bf_words_add_many(uint64_t *words, uint32_t mask, const uint64_t *h, size_t n)
{
	uint64_t	nadded = 0;

	for (size_t i = 0; i < n; i++)
	{
		bf_words_fetch_ahead(words, mask, h, i, n);
		nadded += bf_words_add(words, mask, h[i]);
	}
	return nadded;
}

/* 2n words become n: what was contained stays so. */
static inline void
bf_words_halve(uint64_t *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		words[i] |= words[n + i];
}

#endif							/* BF_WORDS_H */
