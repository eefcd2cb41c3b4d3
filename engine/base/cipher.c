/*
 * cipher.c - authenticated encryption and keys by libcrypto (cipher.h; SPEC.md 8).
 *
 * Invariant: a context has the schedule of the key that was set last; a nonce is set with each
 * message.
 */
#include "engine/base/cipher.h"

#include <limits.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "format/bytes/assert.h"

enum { SCRYPT_MEMORY_MAX = 1 << 30, SAMPLE_SIZE = 16 * 1024, FAR_FASTER = 2 };

static const EVP_CIPHER *algorithm_of(enum wal__suite suite)
{
    return suite == WAL__SUITE_AES_256_GCM ? EVP_aes_256_gcm() : EVP_chacha20_poly1305();
}

enum wal_status wal__cipher_set_key(struct wal__cipher *cipher, enum wal__suite suite,
                                    const struct wal__key *key)
{
    const EVP_CIPHER *algorithm = cipher->suite == suite ? NULL : algorithm_of(suite);

    if (cipher->context == NULL) {
        cipher->context = EVP_CIPHER_CTX_new();
    }
    cipher->key_id = 0;
    if (cipher->context == NULL ||
        EVP_CipherInit_ex(cipher->context, algorithm, NULL, key->bytes, NULL, 1) != 1) {
        return WAL_ENOMEM;
    }
    cipher->suite = suite;
    return WAL_OK;
}

/* Encrypts or decrypts one message; false: libcrypto has no memory, or the tag is wrong. */
static bool run(struct wal__cipher *cipher, bool encrypts, const uint8_t *nonce,
                struct wal__span associated, struct wal__span in, uint8_t *out, uint8_t *tag)
{
    EVP_CIPHER_CTX *context = cipher->context;
    int size = 0;

    WAL__ASSERT(context != NULL);
    WAL__ASSERT(in.size <= INT_MAX && associated.size <= INT_MAX);
    return EVP_CipherInit_ex(context, NULL, NULL, NULL, nonce, encrypts) == 1 &&
           (encrypts ||
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, WAL__TAG_SIZE, tag) == 1) &&
           EVP_CipherUpdate(context, NULL, &size, associated.data, (int)associated.size) == 1 &&
           (in.size == 0 || EVP_CipherUpdate(context, out, &size, in.data, (int)in.size) == 1) &&
           EVP_CipherFinal_ex(context, out + in.size, &size) == 1 &&
           (!encrypts ||
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, WAL__TAG_SIZE, tag) == 1);
}

enum wal_status wal__cipher_encrypt(struct wal__cipher *cipher,
                                    const uint8_t nonce[WAL__NONCE_SIZE],
                                    struct wal__span associated, struct wal__span in, uint8_t *out,
                                    uint8_t tag[WAL__TAG_SIZE])
{
    return run(cipher, true, nonce, associated, in, out, tag) ? WAL_OK : WAL_ENOMEM;
}

enum wal_status wal__cipher_decrypt(struct wal__cipher *cipher,
                                    const uint8_t nonce[WAL__NONCE_SIZE],
                                    struct wal__span associated, struct wal__span in, uint8_t *out,
                                    const uint8_t tag[WAL__TAG_SIZE])
{
    uint8_t expected[WAL__TAG_SIZE];

    memcpy(expected, tag, sizeof(expected));
    if (run(cipher, false, nonce, associated, in, out, expected)) {
        return WAL_OK;
    }
    memset(out, 0, in.size);
    return WAL_ECORRUPT;
}

void wal__cipher_deinit(struct wal__cipher *cipher)
{
    EVP_CIPHER_CTX_free(cipher->context);
    memset(cipher, 0, sizeof(*cipher));
}

/* Nanoseconds to encrypt a sample twice, the second time with what the first one loaded. */
static uint64_t time_sample(const struct wal__io *io, enum wal__suite suite)
{
    static const struct wal__key key;
    static const uint8_t nonce[WAL__NONCE_SIZE];
    uint8_t sample[SAMPLE_SIZE] = {0};
    const struct wal__span none = {sample, 0};
    const struct wal__span bytes = {sample, sizeof(sample)};
    struct wal__cipher cipher = {0};
    uint8_t tag[WAL__TAG_SIZE];
    uint64_t begin = 0;
    enum wal_status status = wal__cipher_set_key(&cipher, suite, &key);

    for (int i = 0; i < 2 && status == WAL_OK; i++) {
        begin = io->monotonic_ns(io->ctx);
        status = wal__cipher_encrypt(&cipher, nonce, none, bytes, sample, tag);
    }
    wal__cipher_deinit(&cipher);
    return status == WAL_OK ? io->monotonic_ns(io->ctx) - begin : UINT64_MAX / FAR_FASTER;
}

enum wal__suite wal__suite_choose(const struct wal__io *io)
{
    return time_sample(io, WAL__SUITE_AES_256_GCM) / FAR_FASTER >
                   time_sample(io, WAL__SUITE_CHACHA20_POLY1305)
               ? WAL__SUITE_CHACHA20_POLY1305
               : WAL__SUITE_AES_256_GCM;
}

/* --- keys --------------------------------------------------------------- */

static bool hmac(struct wal__span key, struct wal__span bytes, uint8_t out[WAL__KEY_SIZE])
{
    return HMAC(EVP_sha256(), key.data, (int)key.size, bytes.data, bytes.size, out, NULL) != NULL;
}

enum wal_status wal__key_mac(const struct wal__key *key, struct wal__span bytes,
                             uint8_t mac[WAL__KEY_SIZE])
{
    return hmac((struct wal__span){key->bytes, WAL__KEY_SIZE}, bytes, mac) ? WAL_OK : WAL_ENOMEM;
}

enum wal_status wal__key_derive(const struct wal__key *from, struct wal__span info,
                                struct wal__key *key)
{
    uint8_t block[128];

    WAL__ASSERT(info.size < sizeof(block));
    memcpy(block, info.data, info.size);
    block[info.size] = 1;
    return wal__key_mac(from, (struct wal__span){block, info.size + 1}, key->bytes);
}

enum wal_status wal__key_from_secret(struct wal__span secret, struct wal__span salt,
                                     struct wal__span info, struct wal__key *key)
{
    struct wal__key extracted;
    enum wal_status status =
        hmac(salt, secret, extracted.bytes) ? wal__key_derive(&extracted, info, key) : WAL_ENOMEM;

    wal__secret_clear(&extracted, sizeof(extracted));
    return status;
}

enum wal_status wal__key_from_passphrase(struct wal__span passphrase, struct wal__span salt,
                                         uint32_t log2_n, uint32_t r, uint32_t p,
                                         struct wal__key *key)
{
    return log2_n < 32 && EVP_PBE_scrypt((const char *)passphrase.data, passphrase.size, salt.data,
                                         salt.size, UINT64_C(1) << log2_n, r, p, SCRYPT_MEMORY_MAX,
                                         key->bytes, WAL__KEY_SIZE) == 1
               ? WAL_OK
               : WAL_ENOMEM;
}

bool wal__secret_equal(const void *a, const void *b, size_t size)
{
    return CRYPTO_memcmp(a, b, size) == 0;
}

void wal__secret_clear(void *secret, size_t size)
{
    OPENSSL_cleanse(secret, size);
}
