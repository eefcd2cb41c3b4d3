/*
 * manifest.h - creating and reading a store's MANIFEST (SPEC.md 2.1, 3.7). Called while the store
 * is opened or migrated, or gets a feature, by one thread.
 */
#ifndef AGENTWAL_ENGINE_STORE_MANIFEST_H
#define AGENTWAL_ENGINE_STORE_MANIFEST_H

#include "engine/base/io.h"
#include "format/segment/segment_fmt.h"

/* Sets *exists when env->root holds a store; WAL_ENOTSTORE when a file of another type is in its
 * place. */
enum wal_status wal__manifest_probe(const struct wal__env *env, bool *exists,
                                    struct wal_error *error) WAL_MUST_USE;

/* Refuses a file, a symbolic link or a device in place of a directory of the store; one that is
 * missing is not its business. */
enum wal_status wal__manifest_check_directories(const struct wal__env *env,
                                                struct wal_error *error) WAL_MUST_USE;

/* Reads the valid slot with the highest generation. WAL_EVERSION reports the version and features
 * of the store and of the library. *read_only is set when the store has features that this library
 * cannot write. */
enum wal_status wal__manifest_read(const struct wal__env *env, struct wal__manifest *manifest,
                                   bool *read_only, struct wal_error *error) WAL_MUST_USE;

/* Writes the path of the parent directory of env->root. */
void wal__manifest_parent_path(const struct wal__env *env, char out[WAL__PATH_MAX]);

/* Refuses to create a store where segments are whose MANIFEST is gone; another process may have
 * created both since the store was probed. A first backup that was cut short leaves them too, and
 * goes on. */
enum wal_status wal__manifest_check_segments(const struct wal__env *env,
                                             struct wal_error *error) WAL_MUST_USE;

/* Creates the directories of a store in env->root, which may exist and be empty. Can be repeated
 * until the manifest exists. */
enum wal_status wal__manifest_make_directories(const struct wal__env *env,
                                               struct wal_error *error) WAL_MUST_USE;

/* Writes the first manifest: the directory is a store from then on. With a key the store is
 * encrypted: KEYS is written before, and env->keyring set. Durable. */
enum wal_status wal__manifest_create(struct wal__env *env, uint32_t group_align,
                                     const struct wal_key *key, struct wal__manifest *manifest,
                                     struct wal_error *error) WAL_MUST_USE;

/* Sets the store's format version to this library's, atomically: on failure the old manifest is
 * kept. *manifest is the one that was read and is replaced by the one that was written. Durable. */
enum wal_status wal__manifest_upgrade(const struct wal__env *env, struct wal__manifest *manifest,
                                      struct wal_error *error) WAL_MUST_USE;

/* Sets feature bits (WAL__INCOMPAT_..., or those of WAL__RO_COMPAT), atomically; does nothing when
 * they are set. *manifest is read again: another process may have set others. Durable. Under the
 * append lock of the log, or alone in the store. */
enum wal_status wal__manifest_require(const struct wal__env *env, struct wal__manifest *manifest,
                                      uint64_t features, struct wal_error *error) WAL_MUST_USE;
bool wal__manifest_has(const struct wal__manifest *manifest, uint64_t features);

/* Makes *next the manifest of the store at env->root, whose present one is
 * *manifest; its generation follows. Durable. */
enum wal_status wal__manifest_replace(const struct wal__env *env, struct wal__manifest *manifest,
                                      const struct wal__manifest *next,
                                      struct wal_error *error) WAL_MUST_USE;

/* Makes the directory entries of the store durable: its creator may have died before they were.
 * Needed while nothing was written to the log. */
enum wal_status wal__manifest_sync_directories(const struct wal__env *env,
                                               struct wal_error *error) WAL_MUST_USE;

#endif
