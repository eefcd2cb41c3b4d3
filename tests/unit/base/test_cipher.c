/*
 * test_cipher.c - ciphers and keys against published vectors, and what is not authentic
 * (engine/base/cipher.h; SPEC.md 8).
 */
#include "engine/base/cipher.h"
#include "tests/lib/test.h"

static struct wal__span text(const char *bytes)
{
    return (struct wal__span){(const uint8_t *)bytes, strlen(bytes)};
}

/* RFC 8439, 2.8.2. */
TEST(cipher__chacha20_poly1305_of_its_rfc)
{
    static const char *const plain =
        "Ladies and Gentlemen of the class of '99: If I could offer you only one tip for the "
        "future, sunscreen would be it.";
    static const uint8_t associated[] = {0x50, 0x51, 0x52, 0x53, 0xc0, 0xc1,
                                         0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7};
    static const uint8_t nonce[WAL__NONCE_SIZE] = {0x07, 0,    0,    0,    0x40, 0x41,
                                                   0x42, 0x43, 0x44, 0x45, 0x46, 0x47};
    static const uint8_t tag_of_rfc[] = {0x1a, 0xe1, 0x0b, 0x59, 0x4f, 0x09, 0xe2, 0x6a,
                                         0x7e, 0x90, 0x2e, 0xcb, 0xd0, 0x60, 0x06, 0x91};
    static const uint8_t first[] = {0xd3, 0x1a, 0x8d, 0x34, 0x64, 0x8e, 0x60, 0xdb};
    struct wal__cipher cipher = {0};
    uint8_t tag[WAL__TAG_SIZE];
    struct wal__key key;
    uint8_t out[256];

    for (size_t i = 0; i < sizeof(key.bytes); i++) {
        key.bytes[i] = (uint8_t)(0x80 + i);
    }
    assert_int_equal(wal__cipher_set_key(&cipher, WAL__SUITE_CHACHA20_POLY1305, &key), WAL_OK);
    assert_int_equal(wal__cipher_encrypt(&cipher, nonce,
                                         (struct wal__span){associated, sizeof(associated)},
                                         text(plain), out, tag),
                     WAL_OK);
    assert_memory_equal(tag, tag_of_rfc, sizeof(tag));
    assert_memory_equal(out, first, sizeof(first));
    wal__cipher_deinit(&cipher);
}

/* NIST, GCM test case 14: a key, a nonce and 16 bytes of zeros. */
TEST(cipher__aes_256_gcm_of_its_specification)
{
    static const uint8_t expected[] = {0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60, 0x6b, 0x6e,
                                       0x07, 0x4e, 0xc5, 0xd3, 0xba, 0xf3, 0x9d, 0x18};
    static const uint8_t expected_tag[] = {0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99, 0x6b, 0xf0,
                                           0x26, 0x5b, 0x98, 0xb5, 0xd4, 0x8a, 0xb9, 0x19};
    static const struct wal__key key;
    static const uint8_t nonce[WAL__NONCE_SIZE];
    const uint8_t zeros[16] = {0};
    struct wal__cipher cipher = {0};
    uint8_t tag[WAL__TAG_SIZE];
    uint8_t out[16];

    assert_int_equal(wal__cipher_set_key(&cipher, WAL__SUITE_AES_256_GCM, &key), WAL_OK);
    assert_int_equal(wal__cipher_encrypt(&cipher, nonce, (struct wal__span){zeros, 0},
                                         (struct wal__span){zeros, sizeof(zeros)}, out, tag),
                     WAL_OK);
    assert_memory_equal(out, expected, sizeof(out));
    assert_memory_equal(tag, expected_tag, sizeof(tag));
    wal__cipher_deinit(&cipher);
}

/* Encrypts and decrypts in place, and flips each bit of all that is authenticated. */
static void check_authenticity(enum wal__suite suite)
{
    static const struct wal__key key = {{1, 2, 3}};
    uint8_t nonce[WAL__NONCE_SIZE] = {9};
    uint8_t associated[8] = {1};
    uint8_t bytes[40] = "what nobody else may read";
    const struct wal__span bound = {associated, sizeof(associated)};
    const struct wal__span in = {bytes, sizeof(bytes)};
    struct wal__cipher cipher = {0};
    uint8_t tag[WAL__TAG_SIZE];
    uint8_t out[40];
    const struct {
        uint8_t *at;
        size_t size;
    } parts[] = {{nonce, sizeof(nonce)}, {associated, sizeof(associated)}, {bytes, 40}, {tag, 16}};

    assert_int_equal(wal__cipher_set_key(&cipher, suite, &key), WAL_OK);
    assert_int_equal(wal__cipher_encrypt(&cipher, nonce, bound, in, bytes, tag), WAL_OK);
    for (size_t part = 0; part < sizeof(parts) / sizeof(parts[0]); part++) {
        for (size_t bit = 0; bit < parts[part].size * 8; bit++) {
            static const uint8_t zeros[sizeof(out)];

            parts[part].at[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(wal__cipher_decrypt(&cipher, nonce, bound, in, out, tag),
                             WAL_ECORRUPT);
            assert_memory_equal(out, zeros, sizeof(out));
            parts[part].at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
    assert_int_equal(wal__cipher_decrypt(&cipher, nonce, bound, in, bytes, tag), WAL_OK);
    assert_string_equal((const char *)bytes, "what nobody else may read");
    /* Of nothing there is a tag too. */
    assert_int_equal(
        wal__cipher_encrypt(&cipher, nonce, bound, (struct wal__span){bytes, 0}, out, tag), WAL_OK);
    assert_int_equal(
        wal__cipher_decrypt(&cipher, nonce, bound, (struct wal__span){bytes, 0}, out, tag), WAL_OK);
    tag[0] ^= 1;
    assert_int_equal(
        wal__cipher_decrypt(&cipher, nonce, bound, (struct wal__span){bytes, 0}, out, tag),
        WAL_ECORRUPT);
    wal__cipher_deinit(&cipher);
}

TEST(cipher__what_was_changed_is_not_authentic)
{
    check_authenticity(WAL__SUITE_AES_256_GCM);
    check_authenticity(WAL__SUITE_CHACHA20_POLY1305);
}

TEST(cipher__another_key_of_another_suite)
{
    static const struct wal__key keys[] = {{{1}}, {{2}}};
    static const uint8_t nonce[WAL__NONCE_SIZE];
    const uint8_t in[8] = "content";
    const struct wal__span none = {in, 0};
    struct wal__cipher cipher = {0};
    uint8_t tag[WAL__TAG_SIZE];
    uint8_t stored[8];
    uint8_t out[8];

    assert_int_equal(wal__cipher_set_key(&cipher, WAL__SUITE_AES_256_GCM, &keys[0]), WAL_OK);
    assert_int_equal(
        wal__cipher_encrypt(&cipher, nonce, none, (struct wal__span){in, sizeof(in)}, stored, tag),
        WAL_OK);
    for (int suite = WAL__SUITE_AES_256_GCM; suite <= WAL__SUITE_CHACHA20_POLY1305; suite++) {
        for (size_t i = 0; i < 2; i++) {
            const bool is_it = suite == WAL__SUITE_AES_256_GCM && i == 0;

            assert_int_equal(wal__cipher_set_key(&cipher, (enum wal__suite)suite, &keys[i]),
                             WAL_OK);
            assert_int_equal(wal__cipher_decrypt(&cipher, nonce, none,
                                                 (struct wal__span){stored, sizeof(stored)}, out,
                                                 tag),
                             is_it ? WAL_OK : WAL_ECORRUPT);
        }
    }
    wal__cipher_deinit(&cipher);
}

/* RFC 5869, A.1: the first 32 bytes of its output. */
TEST(key__of_a_secret_is_hkdf)
{
    static const uint8_t expected[] = {0x3c, 0xb2, 0x5f, 0x25, 0xfa, 0xac, 0xd5, 0x7a,
                                       0x90, 0x43, 0x4f, 0x64, 0xd0, 0x36, 0x2f, 0x2a,
                                       0x2d, 0x2d, 0x0a, 0x90, 0xcf, 0x1a, 0x5a, 0x4c,
                                       0x5d, 0xb0, 0x2d, 0x56, 0xec, 0xc4, 0xc5, 0xbf};
    uint8_t secret[22];
    uint8_t salt[13];
    uint8_t info[10];
    struct wal__key key;

    memset(secret, 0x0b, sizeof(secret));
    for (size_t i = 0; i < sizeof(salt); i++) {
        salt[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof(info); i++) {
        info[i] = (uint8_t)(0xf0 + i);
    }
    assert_int_equal(wal__key_from_secret((struct wal__span){secret, sizeof(secret)},
                                          (struct wal__span){salt, sizeof(salt)},
                                          (struct wal__span){info, sizeof(info)}, &key),
                     WAL_OK);
    assert_memory_equal(key.bytes, expected, sizeof(expected));
}

/* RFC 7914, 12: the first 32 bytes of its output for N 1024, r 8, p 16. */
TEST(key__of_a_passphrase_is_scrypt)
{
    static const uint8_t expected[] = {0xfd, 0xba, 0xbe, 0x1c, 0x9d, 0x34, 0x72, 0x00,
                                       0x78, 0x56, 0xe7, 0x19, 0x0d, 0x01, 0xe9, 0xfe,
                                       0x7c, 0x6a, 0xd7, 0xcb, 0xc8, 0x23, 0x78, 0x30,
                                       0xe7, 0x73, 0x76, 0x63, 0x4b, 0x37, 0x31, 0x62};
    struct wal__key key;

    assert_int_equal(wal__key_from_passphrase(text("password"), text("NaCl"), 10, 8, 16, &key),
                     WAL_OK);
    assert_memory_equal(key.bytes, expected, sizeof(expected));
    /* Parameters that need too much. */
    assert_int_equal(wal__key_from_passphrase(text("password"), text("NaCl"), 20, 16, 1, &key),
                     WAL_ENOMEM);
    assert_int_equal(wal__key_from_passphrase(text("password"), text("NaCl"), 32, 8, 1, &key),
                     WAL_ENOMEM);
}

TEST(suite__a_processor_has_one)
{
    const enum wal__suite suite = wal__suite_choose(&wal__io_posix);

    assert_true(suite == WAL__SUITE_AES_256_GCM || suite == WAL__SUITE_CHACHA20_POLY1305);
}
