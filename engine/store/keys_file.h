/*
 * keys_file.h - the file KEYS of an encrypted store: making it, opening it with one of the keys of
 * the store, and changing which these are (SPEC.md 8.1).
 *
 * Invariant: KEYS is replaced by rename, complete and synced; each has one more than the generation
 * of the former. One thread, of a process that is alone in the store or holds the append lock of
 * the log.
 */
#ifndef AGENTWAL_ENGINE_STORE_KEYS_FILE_H
#define AGENTWAL_ENGINE_STORE_KEYS_FILE_H

#include "engine/base/io.h"
#include "engine/log/encrypt.h"

/* Checks kind and size of a caller's key. WAL_EINVAL. */
enum wal_status wal__key_check(const struct wal_key *key, struct wal_error *error) WAL_MUST_USE;

/* Writes KEYS of a new store, or of one whose segments up to plain_ids are not encrypted, with this
 * key as the only one, and makes its keyring. Durable. */
enum wal_status wal__keys_create(const struct wal__env *env, const uint8_t uuid[16],
                                 const uint64_t plain_ids[2], const struct wal_key *key,
                                 struct wal__keyring **keyring,
                                 struct wal_error *error) WAL_MUST_USE;

/* Reads KEYS, and opens it with the key. WAL_EKEY: key is null, or opens none of the slots; KEYS is
 * missing, or of another store. WAL_ECORRUPT: it is damaged. WAL_EVERSION, WAL_EIO. */
enum wal_status wal__keys_open(const struct wal__env *env, const uint8_t uuid[16],
                               const struct wal_key *key, struct wal__keyring **keyring,
                               struct wal_error *error) WAL_MUST_USE;

/* Reads KEYS without a key. */
enum wal_status wal__keys_read(const struct wal__env *env, struct wal__keys_file *file,
                               struct wal_error *error) WAL_MUST_USE;

/* Reads the bytes of a valid copy in KEYS, with its MAC; zeros follow. Errors: as of
 * wal__keys_open. */
enum wal_status wal__keys_read_copy(const struct wal__env *env, uint8_t out[WAL__KEYS_COPY_SIZE],
                                    size_t *size, struct wal_error *error) WAL_MUST_USE;
/* Makes KEYS of a copy of the store of these bytes, durably, unless it is. */
enum wal_status wal__keys_write_copy(const struct wal__env *env, struct wal__span copy,
                                     struct wal_error *error) WAL_MUST_USE;

/* A slot that is to be added; zeroed, or after wal__keys_add, it holds no secret. */
struct wal__new_slot {
    struct wal__key_slot slot;
    struct wal__key key; /* that encrypts the store key in it */
};

/* Makes a slot of a key, without a lock: it takes a third of a second for a passphrase. */
enum wal_status wal__keys_begin_add(const struct wal__env *env, const struct wal_key *key,
                                    struct wal__new_slot *slot,
                                    struct wal_error *error) WAL_MUST_USE;
/* Adds it to those that open the store; *id is that of the slot. Clears *slot. WAL_ELIMIT: there
 * are 32. */
enum wal_status wal__keys_add(struct wal__keyring *keyring, struct wal__new_slot *slot,
                              uint32_t *id, struct wal_error *error) WAL_MUST_USE;
/* Removes a slot. WAL_ENOTFOUND; WAL_EINVAL: it is the last one. */
enum wal_status wal__keys_remove(struct wal__keyring *keyring, uint32_t id,
                                 struct wal_error *error) WAL_MUST_USE;
/* Makes a data key for what is written from now on. WAL_ELIMIT: there are 64. */
enum wal_status wal__keys_rotate(struct wal__keyring *keyring,
                                 struct wal_error *error) WAL_MUST_USE;

/* What the segments of a store need of KEYS. */
struct wal__keys_in_use {
    uint32_t newest; /* data key when the segments were listed: later segments have no older one */
    uint32_t count;
    uint32_t ids[WAL__DATA_KEYS_MAX]; /* of data keys */
    bool has_plain[2];                /* log, pack: segments that are not encrypted */
};

/* Adds what a segment of the log, stream 0, or of the pack, 1, needs. */
void wal__keys_note_use(struct wal__keys_in_use *in_use, uint32_t stream,
                        const struct wal__segment_header *header);

/* Removes the permission for segments that are not encrypted where there are none and, when
 * `erases`, the data keys that no segment needs any more. Does nothing in a store that names a
 * remote, which keeps parts of older segments. */
enum wal_status wal__keys_retire(struct wal__keyring *keyring,
                                 const struct wal__keys_in_use *in_use, bool erases,
                                 struct wal_error *error) WAL_MUST_USE;
/* Whether the store names a remote: the tools keep its URL in remote.json. */
bool wal__keys_have_remote(const struct wal__env *env);

#endif
