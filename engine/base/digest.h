/*
 * digest.h - digests as text. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_DIGEST_H
#define AGENTWAL_ENGINE_BASE_DIGEST_H

#include "agentwal.h"
#include "format/segment/record_blob.h"

enum {
    WAL__DIGEST_HEX_SIZE = 2 * WAL__DIGEST_SIZE + 1
};

bool wal__digest_equal(const struct wal__digest *a,
                       const struct wal__digest *b);
/* Reads what wal__digest_to_hex writes, without the NUL. False: the text is not
 * that of a digest. */
bool wal__digest_from_hex(struct wal__span text, struct wal__digest *digest);
/* Writes lower-case hexadecimal digits and a NUL. */
void wal__digest_to_hex(const struct wal__digest *digest,
                        char out[WAL__DIGEST_HEX_SIZE]);

#endif
