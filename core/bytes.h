/*-------------------------------------------------------------------------
 *
 * bytes.h
 *	  Little-endian numbers in unaligned memory, on any platform.
 *
 *-------------------------------------------------------------------------
 */
#ifndef BF_BYTES_H
#define BF_BYTES_H

#include <stdint.h>
#include <string.h>

static inline uint64_t
bf_bswap64(uint64_t x)
{
	return __builtin_bswap64(x);
}

static inline uint64_t
bf_to_le64(uint64_t x)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	return bf_bswap64(x);
#else
	return x;
#endif
}

static inline uint64_t
bf_load64(const uint8_t *p)
{
	uint64_t	x;

	memcpy(&x, p, sizeof(x));
	return bf_to_le64(x);
}

static inline void
bf_store64(uint8_t *p, uint64_t x)
{
	x = bf_to_le64(x);
	memcpy(p, &x, sizeof(x));
}

static inline uint16_t
bf_load16(const uint8_t *p)
{
	return (uint16_t) (p[0] | (p[1] << 8));
}

static inline void
bf_store16(uint8_t *p, uint16_t x)
{
	p[0] = (uint8_t) x;
	p[1] = (uint8_t) (x >> 8);
}

static inline uint32_t
bf_load32(const uint8_t *p)
{
	return (uint32_t) bf_load16(p) | (uint32_t) bf_load16(p + 2) << 16;
}

static inline void
bf_store32(uint8_t *p, uint32_t x)
{
	bf_store16(p, (uint16_t) x);
	bf_store16(p + 2, (uint16_t) (x >> 16));
}

static inline double
bf_load_double(const uint8_t *p)
{
	uint64_t	x = bf_load64(p);
	double		d;

	memcpy(&d, &x, sizeof(d));
	return d;
}

static inline void
bf_store_double(uint8_t *p, double d)
{
	uint64_t	x;

	memcpy(&x, &d, sizeof(x));
	bf_store64(p, x);
}

#endif							/* BF_BYTES_H */
