/*
 * digest.c - SHA-256 (SPEC.md 5.12).
 */
#include "engine/blob/digest.h"

#include <openssl/evp.h>
#include <string.h>

void wal__digester_init(struct wal__digester *digester)
{
    atomic_init(&digester->algorithm, NULL);
}

void wal__digester_deinit(struct wal__digester *digester)
{
    EVP_MD_free(atomic_exchange(&digester->algorithm, NULL));
}

/* Null without memory. */
static const EVP_MD *fetch(struct wal__digester *digester)
{
    void *present = atomic_load(&digester->algorithm);
    EVP_MD *fetched;

    if (present != NULL) {
        return present;
    }
    fetched = EVP_MD_fetch(NULL, "SHA256", NULL);
    if (fetched == NULL) {
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&digester->algorithm, &present,
                                        fetched)) {
        EVP_MD_free(fetched); /* another thread was first */
        return present;
    }
    return fetched;
}

enum wal_status wal__digest_of(struct wal__digester *digester,
                               struct wal__span content,
                               struct wal__digest *digest)
{
    const EVP_MD *algorithm = fetch(digester);

    return algorithm != NULL &&
                   EVP_Digest(content.data, content.size, digest->bytes, NULL,
                              algorithm, NULL) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

enum wal_status wal__digesting_begin(struct wal__digester *digester,
                                     struct wal__digesting *digesting)
{
    const EVP_MD *algorithm = fetch(digester);

    if (digesting->context == NULL) {
        digesting->context = EVP_MD_CTX_new();
    }
    return algorithm != NULL && digesting->context != NULL &&
                   EVP_DigestInit_ex2(digesting->context, algorithm, NULL) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

enum wal_status wal__digesting_add(struct wal__digesting *digesting,
                                   struct wal__span piece)
{
    return EVP_DigestUpdate(digesting->context, piece.data, piece.size) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

enum wal_status wal__digesting_end(struct wal__digesting *digesting,
                                   struct wal__digest *digest)
{
    return EVP_DigestFinal_ex(digesting->context, digest->bytes, NULL) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

void wal__digesting_deinit(struct wal__digesting *digesting)
{
    EVP_MD_CTX_free(digesting->context);
    digesting->context = NULL;
}

bool wal__digest_equal(const struct wal__digest *a, const struct wal__digest *b)
{
    return memcmp(a->bytes, b->bytes, WAL__DIGEST_SIZE) == 0;
}

void wal__digest_text(const struct wal__digest *digest,
                      char out[WAL__DIGEST_TEXT])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < WAL__DIGEST_SIZE; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[2 * WAL__DIGEST_SIZE] = '\0';
}
