/*
 * blob_kit.h - what the tests of blobs share: content made from a number, put and read back.
 * Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_BLOB_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_BLOB_KIT_H

#include "tests/lib/kit/store_kit.h"

enum { KIT_MIB = 1024 * 1024 };

struct kit_content {
    uint8_t *data;
    uint64_t size;
};

/* The same bytes for the same arguments; text that LZ4 makes shorter, or noise. They are freed when
 * the test ends, or before. */
struct kit_content kit_content(uint64_t seed, uint64_t size, bool compressible);
void kit_content_free(struct kit_content *content);
struct wal_slice kit_slice(const struct kit_content *content);

void kit_put_blob(struct wal_store *store, const struct kit_content *content,
                  uint8_t digest[WAL_DIGEST_SIZE]);
/* The store gives just this content: whole, and from the middle. */
void kit_check_blob(struct wal_store *store, const uint8_t digest[WAL_DIGEST_SIZE],
                    const struct kit_content *content);

#endif
