/*
 * keys.h - the file KEYS of an encrypted store: making it, opening it with one of the keys of the
 * store, and changing which these are (SPEC.md 8.1).
 *
 * Invariant: KEYS is replaced by rename, complete and synced; each has one more than the generation
 * of the former. One thread, of a process that is alone in the store or holds the append lock of
 * the log.
 */
#ifndef AGENTWAL_ENGINE_STORE_KEYS_H
#define AGENTWAL_ENGINE_STORE_KEYS_H

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

/* Adds a key to those that open the store; *id is that of its slot. WAL_ELIMIT: there are 32. */
enum wal_status wal__keys_add(const struct wal__env *env, const struct wal__keyring *keyring,
                              const struct wal_key *key, uint32_t *id,
                              struct wal_error *error) WAL_MUST_USE;
/* Removes a slot. WAL_ENOTFOUND; WAL_EINVAL: it is the last one. */
enum wal_status wal__keys_remove(const struct wal__env *env, const struct wal__keyring *keyring,
                                 uint32_t id, struct wal_error *error) WAL_MUST_USE;
/* Makes a data key for what is written from now on. WAL_ELIMIT: there are 64. */
enum wal_status wal__keys_rotate(const struct wal__env *env, struct wal__keyring *keyring,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
