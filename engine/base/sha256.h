/*
 * sha256.h - SHA-256 by libcrypto. The algorithm is fetched once for a store,
 * by whoever digests first. Any thread; a struct wal__sha256_ctx belongs to
 * one.
 */
#ifndef AGENTWAL_ENGINE_BASE_SHA256_H
#define AGENTWAL_ENGINE_BASE_SHA256_H

#include <stdatomic.h>

#include "agentwal.h"
#include "format/segment/record_blob.h"

enum {
    WAL__DIGEST_HEX_SIZE = 2 * WAL__DIGEST_SIZE + 1
};

struct wal__sha256_alg {
    _Atomic(void *) algorithm; /* EVP_MD; null: not fetched yet */
};

void wal__sha256_alg_init(struct wal__sha256_alg *sha256_alg);
void wal__sha256_alg_deinit(struct wal__sha256_alg *sha256_alg);

/* WAL_ENOMEM, as the calls below. */
enum wal_status wal__sha256(struct wal__sha256_alg *sha256_alg,
                            struct wal__span content,
                            struct wal__digest *digest) WAL_MUST_USE;

/* A digest of content that comes in pieces; zeroed: none. */
struct wal__sha256_ctx {
    void *context; /* EVP_MD_CTX */
};

/* Begins, again where it is under way. */
enum wal_status wal__sha256_begin(struct wal__sha256_alg *sha256_alg,
                                  struct wal__sha256_ctx *ctx) WAL_MUST_USE;
enum wal_status wal__sha256_update(struct wal__sha256_ctx *ctx,
                                   struct wal__span piece) WAL_MUST_USE;
enum wal_status wal__sha256_final(struct wal__sha256_ctx *ctx,
                                  struct wal__digest *digest) WAL_MUST_USE;
void wal__sha256_deinit(struct wal__sha256_ctx *ctx);

bool wal__digest_equal(const struct wal__digest *a,
                       const struct wal__digest *b);
/* In hexadecimal. */
void wal__digest_to_hex(const struct wal__digest *digest,
                        char out[WAL__DIGEST_HEX_SIZE]);

#endif
