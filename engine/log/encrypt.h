/*
 * encrypt.h - the keys of an encrypted store in memory, and what they encrypt: frames of segments,
 * and derived files whole (SPEC.md 8.2, 8.3). A store that is not encrypted has no keyring.
 *
 * Invariants: nothing is returned that is not authentic; a nonce is random, and used once.
 * A keyring: any thread. A cipher belongs to one.
 */
#ifndef AGENTWAL_ENGINE_LOG_ENCRYPT_H
#define AGENTWAL_ENGINE_LOG_ENCRYPT_H

#include <pthread.h>

#include "engine/base/cipher.h"
#include "format/segment/frame.h"
#include "format/segment/keys_fmt.h"
#include "format/segment/segment_fmt.h"

/* Keys of segments that were derived before. */
enum { WAL__SEGMENT_KEYS = 64 };

struct wal__keyring_key {
    uint32_t id;
    enum wal__suite suite;
    struct wal__key key;
};

struct wal__keyring {
    const struct wal__io *io;
    uint8_t uuid[16];
    struct wal__key store_key;
    /* Reads KEYS of the store of `env`, which outlives the keyring, and sets what it has
     * (wal__keyring_set). */
    enum wal_status (*reload)(struct wal__keyring *keyring, struct wal_error *error);
    const struct wal__env *env;
    pthread_mutex_t mutex; /* of what follows */
    uint64_t plain_ids[2]; /* as in KEYS */
    uint32_t count;
    struct wal__keyring_key keys[WAL__DATA_KEYS_MAX]; /* the last one is for what is new */
    struct {
        uint64_t salt;
        uint64_t id;
        struct wal__key key;
    } segments[WAL__SEGMENT_KEYS];
    /* Of tests: receives each nonce with the salt of its segment. May be null. */
    void (*on_nonce)(void *ctx, uint64_t salt, const uint8_t nonce[WAL__NONCE_SIZE]);
    void *on_nonce_ctx;
};

/* Marks a new segment, or one that replaces others, as encrypted by the newest key. keyring may be
 * null: the header is then of a segment that is not encrypted. */
void wal__encrypt_header(struct wal__keyring *keyring, struct wal__segment_header *header);

/* The id of the data key for what is new. */
uint32_t wal__encrypt_newest_id(struct wal__keyring *keyring);
/* Whether a new segment would be encrypted by the same key, or both are not. */
bool wal__encrypt_is_current(struct wal__keyring *keyring,
                             const struct wal__segment_header *header);

/* Whether a segment which is not encrypted may be of the time before the store was. */
bool wal__encrypt_may_be_plain(struct wal__keyring *keyring,
                               const struct wal__segment_header *header);

/* Bytes that encryption adds to each frame of the segment. */
static inline uint32_t wal__encrypt_overhead(const struct wal__segment_header *header)
{
    return wal__segment_is_encrypted(header) ? WAL__FRAME_CIPHER_SIZE : 0;
}

/* Whether a frame of the segment is encrypted. */
static inline bool wal__encrypt_covers(const struct wal__segment_header *header, uint8_t type)
{
    return wal__segment_is_encrypted(header) && wal__frame_is_secret(type);
}

/*
 * Encrypts a frame of the segment. *frame and `payload` are as without encryption; on return *frame
 * is as stored, and its header, payload and padding are in out, which has room for
 * wal__frame_total_size(frame->stored_size + WAL__FRAME_CIPHER_SIZE). WAL_ENOMEM; WAL_EKEY: the
 * store has no such key, not even in KEYS as it is now.
 */
enum wal_status wal__encrypt_frame(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                   const struct wal__segment_header *header, uint64_t offset,
                                   struct wal__frame *frame, const uint8_t *payload,
                                   uint8_t *out) WAL_MUST_USE;

/*
 * The reverse: *frame is as decoded, `stored` its payload. out has room for frame->stored_size; on
 * success it begins with the payload, and *frame is as without encryption. WAL_ECORRUPT: it is not
 * authentic. WAL_EKEY, WAL_ENOMEM.
 */
enum wal_status wal__decrypt_frame(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                   const struct wal__segment_header *header, uint64_t offset,
                                   struct wal__frame *frame, const uint8_t *stored,
                                   uint8_t *out) WAL_MUST_USE;

/* The same for any frame of any segment: where it is encrypted, *payload is decrypted to `plain`,
 * and points there. */
enum wal_status wal__decrypt_payload(struct wal__keyring *keyring, struct wal__cipher *cipher,
                                     const struct wal__segment_header *header, uint64_t offset,
                                     struct wal__frame *frame, struct wal__buf *plain,
                                     const uint8_t **payload) WAL_MUST_USE;

/* --- files -------------------------------------------------------------- */

enum {
    WAL__FILE_PAGE = 4096, /* of a file whose pages are read by themselves */
    WAL__FILE_NAME_MAX = 64,
    /* Bytes that encryption adds to a file that is one page. */
    WAL__FILE_CIPHER_SIZE = 64
};

/* Bytes of an encrypted file with `size` bytes of content in pages of page_size: a header, and a
 * tag for each page. 0: all of it is one page. */
uint64_t wal__encrypted_size(uint64_t size, uint64_t page_size);
/* Encrypts a file of this name to out, which has room for that: by pages, or whole. */
enum wal_status wal__encrypt_pages(struct wal__keyring *keyring, const char *name,
                                   struct wal__span in, uint64_t page_size,
                                   uint8_t *out) WAL_MUST_USE;
static inline enum wal_status wal__encrypt_file(struct wal__keyring *keyring, const char *name,
                                                struct wal__span in, uint8_t *out)
{
    return wal__encrypt_pages(keyring, name, in, 0, out);
}

/* Whether the bytes begin as an encrypted file. */
bool wal__file_is_encrypted(struct wal__span stored);
/* Bytes of content of the encrypted file; 0: it is none, or cut. */
uint64_t wal__decrypted_size(struct wal__span stored);
/* Decrypts a file of this name to out, which has room for its content. WAL_ECORRUPT: it is not
 * authentic, of another name or store, by a data key that was removed, or not encrypted;
 * WAL_ENOMEM. */
enum wal_status wal__decrypt_file(struct wal__keyring *keyring, const char *name,
                                  struct wal__span stored, uint8_t *out) WAL_MUST_USE;

/* An encrypted file that is read by pages. One thread at a time. */
struct wal__encrypted_file {
    struct wal__span stored; /* borrowed */
    uint64_t size;           /* of its content */
    uint64_t page_size;
    struct wal__cipher cipher;
    struct wal__key bound; /* what its tags authenticate with each page */
};

/* Begins to read a file of this name. WAL_ECORRUPT: it is not an encrypted file, is cut, or
 * by a data key that was removed; WAL_ENOMEM. deinit also after a failure. */
enum wal_status wal__encrypted_file_init(struct wal__encrypted_file *file,
                                         struct wal__keyring *keyring, const char *name,
                                         struct wal__span stored) WAL_MUST_USE;
void wal__encrypted_file_deinit(struct wal__encrypted_file *file);
/* Decrypts pages to the same offset of the content, at `content`. WAL_ECORRUPT: a page is not
 * authentic, or the file is of another name or store. */
enum wal_status wal__encrypted_file_read(struct wal__encrypted_file *file, uint64_t first_page,
                                         uint64_t count, uint8_t *content) WAL_MUST_USE;

/* The keyring's memory, which is neither swapped nor in core files; cleared when it is freed. NULL
 * without memory. */
struct wal__keyring *wal__keyring_create(const struct wal__io *io, const uint8_t uuid[16]);
/* Sets the data keys, ascending by id, and what of the store may be not encrypted. */
void wal__keyring_set(struct wal__keyring *keyring, const struct wal__keyring_key *keys,
                      uint32_t count, const uint64_t plain_ids[2]);
/* Reads KEYS again, which another process may have changed; keyring may be null. */
enum wal_status wal__keyring_reload(struct wal__keyring *keyring,
                                    struct wal_error *error) WAL_MUST_USE;
/* keyring may be null. */
void wal__keyring_destroy(struct wal__keyring *keyring);

#endif
