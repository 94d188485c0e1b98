/*-------------------------------------------------------------------------
 *
 * hash.c
 *	  Bytes to a 128-bit digest.
 *
 * XXH3-128 (seed 0) is the default: about 6 ns for a short key.  BLAKE2b with
 * a 16-byte digest (RFC 7693) is there for readers that have nothing but a
 * standard library and, keyed, for keys that an adversary chooses.
 *
 * For both, the digest is the 16 bytes that the hash's libraries print
 * (XXH3's canonical form, big-endian), and h1 and h2 are its halves, read
 * little-endian.  A reader needs one line for either hash.
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "hash.h"

BfDigest
bf_digest(BfHash hash, const uint8_t *key, size_t keylen,
		  const void *data, size_t len)
{
	return bf_digest_inline(hash, key, keylen, data, len);
}

void
bf_digest_bytes(BfDigest digest, uint8_t out[BF_DIGEST_SIZE])
{
	bf_store64(out, digest.h1);
	bf_store64(out + 8, digest.h2);
}

const char *
bf_hash_name(BfHash hash)
{
	return hash == BF_HASH_XXH3 ? "xxh3" : "blake2b";
}

bool
bf_hash_by_name(const char *name, BfHash *hash)
{
	if (strcmp(name, "xxh3") == 0)
		*hash = BF_HASH_XXH3;
	else if (strcmp(name, "blake2b") == 0)
		*hash = BF_HASH_BLAKE2B;
	else
		return false;
	return true;
}

uint64_t
bf_checksum(const void *bytes, size_t len)
{
	return XXH3_64bits(bytes, len);
}

/*
 * XXH3-64 of the payload: an image's checksum.  0 means "no payload", so a
 * hash of 0 is stored as 1.
 */
void
bf_seal(BfFilter *f)
{
	uint64_t	sum = 0;

	if (f->bits != NULL)
	{
		sum = bf_checksum(f->bits, f->nbytes);
		if (sum == 0)
			sum = 1;
	}
	f->h.checksum = sum;
}
