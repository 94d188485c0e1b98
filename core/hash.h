/*-------------------------------------------------------------------------
 *
 * hash.h
 *	  bf_digest for callers in whose loops a call is worth saving: where the
 *	  length is known, XXH3 comes down to a few instructions.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_HASH_H
#define BF_HASH_H

#include <blake2.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "bf.h"
#include "bytes.h"

static inline BfDigest
bf_digest_inline(BfHash hash, const uint8_t *key, size_t keylen,
				 const void *data, size_t len)
{
	BfDigest	digest;

	if (hash == BF_HASH_XXH3)
	{
		XXH128_hash_t x = XXH3_128bits(data, len);

		digest.h1 = bf_bswap64(x.high64);
		digest.h2 = bf_bswap64(x.low64);
	}
	else
	{
		uint8_t		out[BF_DIGEST_SIZE];

		/* libb2 refuses a null pointer even for no bytes */
		blake2b(out, len > 0 ? data : "", keylen > 0 ? key : NULL,
				sizeof(out), len, keylen);
		digest.h1 = bf_load64(out);
		digest.h2 = bf_load64(out + 8);
	}
	return digest;
}

#endif							/* BF_HASH_H */
