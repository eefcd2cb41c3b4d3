/*
 * sha256.h - SHA-256 by libcrypto (SPEC.md 5.12). A store fetches the algorithm once, with its
 * first digest. Any thread; a struct wal__sha256_ctx belongs to one thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_SHA256_H
#define AGENTWAL_ENGINE_BASE_SHA256_H

#include <stdatomic.h>
#include <string.h>

#include "agentwal.h"
#include "format/segment/record_blob.h"

struct wal__sha256_alg {
    _Atomic(void *) algorithm; /* of sha256.c: EVP_MD; null: not fetched yet */
};

void wal__sha256_alg_init(struct wal__sha256_alg *sha256_alg);
void wal__sha256_alg_deinit(struct wal__sha256_alg *sha256_alg);

/* The digest of content in memory. This and the calls below fail with WAL_ENOMEM only, and do not
 * set a struct wal_error. */
enum wal_status wal__sha256(struct wal__sha256_alg *sha256_alg, struct wal__span content,
                            struct wal__digest *digest) WAL_MUST_USE;

/* The running digest of content in pieces; a zeroed one may be deinited. */
struct wal__sha256_ctx {
    void *context; /* of libcrypto */
};

/* Starts a digest, and restarts one that is in progress. */
enum wal_status wal__sha256_begin(struct wal__sha256_alg *sha256_alg,
                                  struct wal__sha256_ctx *ctx) WAL_MUST_USE;
enum wal_status wal__sha256_update(struct wal__sha256_ctx *ctx,
                                   struct wal__span piece) WAL_MUST_USE;
enum wal_status wal__sha256_final(struct wal__sha256_ctx *ctx,
                                  struct wal__digest *digest) WAL_MUST_USE;
void wal__sha256_deinit(struct wal__sha256_ctx *ctx);

enum {
    WAL__DIGEST_HEX_SIZE = 2 * WAL__DIGEST_SIZE + 1 /* as text, with a NUL */
};

static inline bool wal__digest_equal(const struct wal__digest *a, const struct wal__digest *b)
{
    return memcmp(a->bytes, b->bytes, WAL__DIGEST_SIZE) == 0;
}

#endif
