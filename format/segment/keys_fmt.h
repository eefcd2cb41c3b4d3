/*
 * keys_fmt.h - the file KEYS of an encrypted store: who may open it, and its data keys (SPEC.md
 * 8.1). Everything secret in it is encrypted. Threads: any.
 */
#ifndef AGENTWAL_FORMAT_SEGMENT_KEYS_FMT_H
#define AGENTWAL_FORMAT_SEGMENT_KEYS_FMT_H

#include "format/bytes/bytes.h"

enum {
    WAL__KEYS_VERSION = 1,
    WAL__KEYS_HEADER_SIZE = 80,
    WAL__KEY_SLOT_SIZE = 144,
    WAL__DATA_KEY_SIZE = 80,
    WAL__KEYS_MAC_SIZE = 32,
    WAL__KEY_SLOTS_MAX = 32,
    WAL__DATA_KEYS_MAX = 64,
    WAL__KEY_LABEL_MAX = 32,
    WAL__KEYS_COPY_SIZE = 12288, /* of each of two copies; zeros follow the MAC */
    WAL__KEYS_SIZE = 2 * WAL__KEYS_COPY_SIZE,
    /* Bytes of a slot and of a data key that its tag authenticates. */
    WAL__KEY_SLOT_CLEAR = 72,
    WAL__DATA_KEY_CLEAR = 16
};

/* A key as it is in the file. */
struct wal__wrapped_key {
    uint8_t nonce[12];
    uint8_t bytes[32]; /* encrypted */
    uint8_t tag[16];
};

enum wal__key_slot_kind { WAL__KEY_SLOT_SECRET = 1, WAL__KEY_SLOT_PASSPHRASE = 2 };

/* One way to open the store: the store key, encrypted by a key that the user has. */
struct wal__key_slot {
    uint32_t kind; /* enum wal__key_slot_kind */
    uint32_t id;   /* never used again */
    int64_t created_ms;
    uint8_t log2_n; /* of scrypt, with r and p */
    uint8_t r;
    uint8_t p;
    char label[WAL__KEY_LABEL_MAX + 1]; /* for people */
    uint8_t salt[16];
    struct wal__wrapped_key key;
};

/* A key of segments and files, encrypted by the store key. */
struct wal__data_key {
    uint32_t id; /* > 0, ascending */
    uint32_t suite;
    int64_t created_ms;
    struct wal__wrapped_key key;
};

struct wal__keys_file {
    uint8_t uuid[16]; /* of the store */
    uint64_t generation;
    /* Segments of the log and of the pack up to these ids may be not encrypted. */
    uint64_t plain_ids[2];
    uint32_t slot_count;
    uint32_t key_count;
    struct wal__key_slot slots[WAL__KEY_SLOTS_MAX];
    struct wal__data_key keys[WAL__DATA_KEYS_MAX];
};

/* Writes a copy without its MAC, which follows; returns its size without that. */
size_t wal__keys_encode(const struct wal__keys_file *file, uint8_t out[WAL__KEYS_COPY_SIZE]);

/* Decodes a copy; *size is what its MAC covers, which follows. */
enum wal__fmt wal__keys_decode(const uint8_t at[WAL__KEYS_COPY_SIZE], struct wal__keys_file *file,
                               size_t *size);

/* Writes what the tag of a slot, or of a data key, authenticates: the uuid, then the clear bytes of
 * the structure. Returns its size. */
enum { WAL__KEY_BOUND_MAX = 16 + WAL__KEY_SLOT_CLEAR };
size_t wal__key_slot_bound(const uint8_t uuid[16], const struct wal__key_slot *slot,
                           uint8_t out[WAL__KEY_BOUND_MAX]);
size_t wal__data_key_bound(const uint8_t uuid[16], const struct wal__data_key *key,
                           uint8_t out[WAL__KEY_BOUND_MAX]);

#endif
