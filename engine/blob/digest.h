/*
 * digest.h - SHA-256 by libcrypto. The algorithm is fetched once for a store,
 * by whoever digests first. Any thread; a struct wal__digesting belongs to one.
 */
#ifndef WAL_BLOB_DIGEST_H
#define WAL_BLOB_DIGEST_H

#include <stdatomic.h>

#include "agentwal.h"
#include "format/record_blob.h"

enum {
    WAL__DIGEST_TEXT = 2 * WAL__DIGEST_SIZE + 1
};

struct wal__digester {
    _Atomic(void *) algorithm; /* EVP_MD; null: not fetched yet */
};

void wal__digester_init(struct wal__digester *digester);
void wal__digester_deinit(struct wal__digester *digester);

/* WAL_ENOMEM, as the calls below. */
enum wal_status wal__digest_of(struct wal__digester *digester,
                               struct wal__span content,
                               struct wal__digest *digest) WAL_MUST_USE;

/* A digest of content that comes in pieces; zeroed: none. */
struct wal__digesting {
    void *context; /* EVP_MD_CTX */
};

/* Begins, again where it is under way. */
enum wal_status
wal__digesting_begin(struct wal__digester *digester,
                     struct wal__digesting *digesting) WAL_MUST_USE;
enum wal_status wal__digesting_add(struct wal__digesting *digesting,
                                   struct wal__span piece) WAL_MUST_USE;
enum wal_status wal__digesting_end(struct wal__digesting *digesting,
                                   struct wal__digest *digest) WAL_MUST_USE;
void wal__digesting_deinit(struct wal__digesting *digesting);

bool wal__digest_equal(const struct wal__digest *a,
                       const struct wal__digest *b);
/* In hexadecimal. */
void wal__digest_text(const struct wal__digest *digest,
                      char out[WAL__DIGEST_TEXT]);

#endif
