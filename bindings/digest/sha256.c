/*
 * sha256.c - SHA-256 by libcrypto without EVP, for modules that carry libcrypto
 * (engine/base/sha256.h; SPEC.md 5.12). EVP would link every algorithm, 722 objects with 3.3 MB;
 * this needs five. A context belongs to one thread.
 */
#define OPENSSL_SUPPRESS_DEPRECATED

#include <openssl/sha.h>
#include <stdlib.h>

#include "engine/base/sha256.h"
#include "format/bytes/assert.h"

void wal__sha256_alg_init(struct wal__sha256_alg *sha256_alg)
{
    atomic_init(&sha256_alg->algorithm, NULL);
}

void wal__sha256_alg_deinit(struct wal__sha256_alg *sha256_alg)
{
    (void)sha256_alg;
}

enum wal_status wal__sha256(struct wal__sha256_alg *sha256_alg, struct wal__span content,
                            struct wal__digest *digest)
{
    SHA256_CTX context;

    (void)sha256_alg;
    return SHA256_Init(&context) == 1 && SHA256_Update(&context, content.data, content.size) == 1 &&
                   SHA256_Final(digest->bytes, &context) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

enum wal_status wal__sha256_begin(struct wal__sha256_alg *sha256_alg, struct wal__sha256_ctx *ctx)
{
    (void)sha256_alg;
    if (ctx->context == NULL) {
        ctx->context = malloc(sizeof(SHA256_CTX));
    }
    return ctx->context != NULL && SHA256_Init(ctx->context) == 1 ? WAL_OK : WAL_ENOMEM;
}

enum wal_status wal__sha256_update(struct wal__sha256_ctx *ctx, struct wal__span piece)
{
    WAL__ASSERT(ctx->context != NULL);
    return SHA256_Update(ctx->context, piece.data, piece.size) == 1 ? WAL_OK : WAL_ENOMEM;
}

enum wal_status wal__sha256_final(struct wal__sha256_ctx *ctx, struct wal__digest *digest)
{
    WAL__ASSERT(ctx->context != NULL);
    return SHA256_Final(digest->bytes, ctx->context) == 1 ? WAL_OK : WAL_ENOMEM;
}

void wal__sha256_deinit(struct wal__sha256_ctx *ctx)
{
    free(ctx->context);
    ctx->context = NULL;
}
