/*-------------------------------------------------------------------------
 *
 * vectors.c
 *	  The golden vectors of test/vectors.txt against the core.
 *
 * Run as: vectors FILE.  The file's header tells what its lines mean.  Images
 * are opened in memory of exactly their length, for the sanitizers to see what
 * is read outside.
 *
 *-------------------------------------------------------------------------
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bf.h"

#define MAX_FIELDS 7

static FILE *file;

typedef struct Line
{
	char	   *buffer;
	size_t		size;
	int			nfields;
	char	   *field[MAX_FIELDS];	/* the last one holds the rest */
	unsigned long number;
} Line;

/* The next line that is no comment, cut into at most so many fields. */
static bool
read_line(Line *line, int nfields)
{
	char	   *rest;

	for (;;)
	{
		if (getline(&line->buffer, &line->size, file) < 0)
			return false;
		line->number++;
		if (line->buffer[0] != '#')
			break;
	}
	rest = line->buffer;
	rest[strcspn(rest, "\n")] = '\0';
	for (line->nfields = 0; rest != NULL && line->nfields < nfields;)
	{
		line->field[line->nfields++] = rest;
		if (line->nfields < nfields && (rest = strchr(rest, ' ')) != NULL)
			*rest++ = '\0';
	}
	return true;
}

/* Hex, or "-", into memory of exactly its length. */
static uint8_t *
bytes_of(const char *hex, size_t *len)
{
	uint8_t    *out;

	*len = strcmp(hex, "-") == 0 ? 0 : strlen(hex) / 2;
	out = malloc(*len > 0 ? *len : 1);
	assert_non_null(out);
	for (size_t i = 0; i < *len; i++)
	{
		unsigned	byte;

		assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
		out[i] = (uint8_t) byte;
	}
	return out;
}

static BfDigest
digest_of(BfHash hash, const uint8_t *key, size_t keylen, const char *hex)
{
	size_t		len;
	uint8_t    *bytes = bytes_of(hex, &len);
	BfDigest	digest = bf_digest(hash, key, keylen, bytes, len);

	free(bytes);
	return digest;
}

static void
digests(void **state)
{
	Line		line = {0};
	int			n = 0;

	(void) state;
	rewind(file);
	while (read_line(&line, 7))
	{
		BfHash		hash;
		size_t		keylen,
					len;
		uint8_t    *key,
				   *expected;
		uint8_t		got[BF_DIGEST_SIZE];

		if (strcmp(line.field[0], "digest") != 0)
			continue;
		assert_int_equal(line.nfields, 7);
		assert_true(bf_hash_by_name(line.field[1], &hash));
		key = bytes_of(line.field[2], &keylen);
		expected = bytes_of(line.field[3], &len);
		assert_int_equal(len, sizeof(got));
		bf_digest_bytes(digest_of(hash, key, keylen, line.field[4]), got);
		if (memcmp(got, expected, len) != 0)
			fail_msg("line %lu: another digest", line.number);
		free(key);
		free(expected);
		n++;
	}
	free(line.buffer);
	assert_true(n > 0);
}

static void
images(void **state)
{
	Line		line = {0};
	int			nimages = 0,
				nyes = 0,
				nno = 0;
	uint8_t    *image = NULL;
	BfFilter	f;

	(void) state;
	rewind(file);
	while (read_line(&line, 3))
	{
		const char *word = line.field[0];

		if (strcmp(word, "image") == 0)
		{
			BfError		err;
			size_t		len;

			free(image);
			image = bytes_of(strchr(line.field[2], ' ') + 1, &len);
			if (bf_validate(image, len, &f, &err) != BF_OK)
				fail_msg("line %lu: %s", line.number, err.message);
			nimages++;
		}
		else if (strcmp(word, "yes") == 0 || strcmp(word, "no") == 0)
		{
			bool		yes = strcmp(word, "yes") == 0;

			assert_non_null(image);
			if (bf_test(&f, digest_of(f.h.hash, f.h.key, f.h.keylen,
									  line.field[1])) != yes)
				fail_msg("line %lu: the answer is not %s", line.number, word);
			*(yes ? &nyes : &nno) += 1;
		}
	}
	free(image);
	free(line.buffer);
	assert_true(nimages > 0 && nyes > 0 && nno > 0);
}

static void
bad_images(void **state)
{
	Line		line = {0};
	int			n = 0;

	(void) state;
	rewind(file);
	while (read_line(&line, 3))
	{
		BfFilter	f;
		BfError		err;
		size_t		len;
		uint8_t    *image;

		if (strcmp(line.field[0], "bad") != 0)
			continue;
		image = bytes_of(line.field[2], &len);
		if (bf_validate(image, len, &f, &err) == BF_OK)
			fail_msg("line %lu: %s passes", line.number, line.field[1]);
		free(image);
		n++;
	}
	free(line.buffer);
	assert_true(n > 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(digests),
		cmocka_unit_test(images),
		cmocka_unit_test(bad_images),
	};
	int			failed;

	if (argc != 2 || (file = fopen(argv[1], "r")) == NULL)
	{
		fprintf(stderr, "usage: %s FILE\n", argv[0]);
		return 2;
	}
	failed = cmocka_run_group_tests_name("vectors", tests, NULL, NULL);
	fclose(file);
	return failed;
}
