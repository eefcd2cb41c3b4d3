/*
 * sha256.c - SHA-256 by libcrypto (sha256.h; SPEC.md 5.12). Invariant: an algorithm that is
 * published stays valid until deinit. Any thread; a context belongs to one.
 */
#include "engine/base/sha256.h"

#include <openssl/evp.h>

#include "format/bytes/assert.h"

void wal__sha256_alg_init(struct wal__sha256_alg *sha256_alg)
{
    atomic_init(&sha256_alg->algorithm, NULL);
}

void wal__sha256_alg_deinit(struct wal__sha256_alg *sha256_alg)
{
    EVP_MD_free(atomic_exchange(&sha256_alg->algorithm, NULL));
}

/* NULL when memory is exhausted. */
static const EVP_MD *fetch_algorithm(struct wal__sha256_alg *sha256_alg)
{
    void *current = atomic_load(&sha256_alg->algorithm);
    EVP_MD *fetched;

    if (current != NULL) {
        return current;
    }
    fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (fetched == NULL) {
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&sha256_alg->algorithm, &current, fetched)) {
        EVP_MD_free(fetched); /* another thread published one first */
        return current;
    }
    return fetched;
}

enum wal_status wal__sha256(struct wal__sha256_alg *sha256_alg, struct wal__span content,
                            struct wal__digest *digest)
{
    const EVP_MD *algorithm = fetch_algorithm(sha256_alg);

    return algorithm != NULL &&
                   EVP_Digest(content.data, content.size, digest->bytes, NULL, algorithm, NULL) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

enum wal_status wal__sha256_begin(struct wal__sha256_alg *sha256_alg, struct wal__sha256_ctx *ctx)
{
    const EVP_MD *algorithm = fetch_algorithm(sha256_alg);

    if (ctx->context == NULL) {
        ctx->context = EVP_MD_CTX_new();
    }
    return algorithm != NULL && ctx->context != NULL &&
                   EVP_DigestInit_ex2(ctx->context, algorithm, NULL) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

enum wal_status wal__sha256_update(struct wal__sha256_ctx *ctx, struct wal__span piece)
{
    WAL__ASSERT(ctx->context != NULL);
    return EVP_DigestUpdate(ctx->context, piece.data, piece.size) == 1 ? WAL_OK : WAL_ENOMEM;
}

enum wal_status wal__sha256_final(struct wal__sha256_ctx *ctx, struct wal__digest *digest)
{
    WAL__ASSERT(ctx->context != NULL);
    return EVP_DigestFinal_ex(ctx->context, digest->bytes, NULL) == 1 ? WAL_OK : WAL_ENOMEM;
}

void wal__sha256_deinit(struct wal__sha256_ctx *ctx)
{
    EVP_MD_CTX_free(ctx->context);
    ctx->context = NULL;
}
