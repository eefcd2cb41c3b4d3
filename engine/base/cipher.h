/*
 * cipher.h - the ciphers of encrypted stores (SPEC.md 8), by libcrypto: authenticated encryption,
 * the derivation of keys, and memory for keys.
 *
 * Invariant: bytes that are not authentic are never returned. A cipher belongs to one thread at a
 * time; the functions on keys, any.
 */
#ifndef AGENTWAL_ENGINE_BASE_CIPHER_H
#define AGENTWAL_ENGINE_BASE_CIPHER_H

#include "agentwal.h"
#include "engine/base/io.h"
#include "format/bytes/bytes.h"

enum { WAL__KEY_SIZE = 32, WAL__NONCE_SIZE = 12, WAL__TAG_SIZE = 16 };

enum wal__suite { WAL__SUITE_AES_256_GCM = 1, WAL__SUITE_CHACHA20_POLY1305 = 2 };

struct wal__key {
    uint8_t bytes[WAL__KEY_SIZE];
};

/* AES, unless the other suite is far faster on this processor, which then has no instructions for
 * AES. By the clock of `io`. */
enum wal__suite wal__suite_choose(const struct wal__io *io);

/* --- authenticated encryption ------------------------------------------- */

/* A zeroed one has no key yet. */
struct wal__cipher {
    void *context; /* of libcrypto */
    uint32_t suite;
    bool decrypts;   /* how the context was begun */
    uint64_t key_id; /* the caller's, of the key that is set; 0: none */
};

/* Sets the key; both calls below fail before. WAL_ENOMEM. */
enum wal_status wal__cipher_set_key(struct wal__cipher *cipher, enum wal__suite suite,
                                    const struct wal__key *key) WAL_MUST_USE;

/* Writes in.size bytes to out, which may be in.data, and the tag. A nonce is used once with a key.
 * WAL_ENOMEM. */
enum wal_status wal__cipher_encrypt(struct wal__cipher *cipher,
                                    const uint8_t nonce[WAL__NONCE_SIZE],
                                    struct wal__span associated, struct wal__span in, uint8_t *out,
                                    uint8_t tag[WAL__TAG_SIZE]) WAL_MUST_USE;
/* The reverse. WAL_ECORRUPT: the bytes, the associated data or the nonce are not those that were
 * encrypted with the key; out is zeros then. */
enum wal_status wal__cipher_decrypt(struct wal__cipher *cipher,
                                    const uint8_t nonce[WAL__NONCE_SIZE],
                                    struct wal__span associated, struct wal__span in, uint8_t *out,
                                    const uint8_t tag[WAL__TAG_SIZE]) WAL_MUST_USE;

/* Clears the key and frees what libcrypto has. */
void wal__cipher_deinit(struct wal__cipher *cipher);

/* --- keys --------------------------------------------------------------- */

/* HKDF-Expand (RFC 5869) with SHA-256, one block: `from` is a random key. WAL_ENOMEM. */
enum wal_status wal__key_derive(const struct wal__key *from, struct wal__span info,
                                struct wal__key *key) WAL_MUST_USE;
/* HKDF-Extract and Expand of any secret that is hard to guess. */
enum wal_status wal__key_from_secret(struct wal__span secret, struct wal__span salt,
                                     struct wal__span info, struct wal__key *key) WAL_MUST_USE;
/* scrypt (RFC 7914) of a passphrase, with N = 2^log2_n. WAL_ENOMEM also where the parameters need
 * more than 1 GiB. */
enum wal_status wal__key_from_passphrase(struct wal__span passphrase, struct wal__span salt,
                                         uint32_t log2_n, uint32_t r, uint32_t p,
                                         struct wal__key *key) WAL_MUST_USE;
/* HMAC-SHA-256. */
enum wal_status wal__key_mac(const struct wal__key *key, struct wal__span bytes,
                             uint8_t mac[WAL__KEY_SIZE]) WAL_MUST_USE;
/* Compares in constant time. */
bool wal__secret_equal(const void *a, const void *b, size_t size);
/* Overwrites with zeros what holds a secret. */
void wal__secret_clear(void *secret, size_t size);

#endif
