/*
 * agentwal/keys.h - the keys of an encrypted store: which open it, adding and removing them, and a
 * new key for its content. The conventions of agentwal.h apply. SPEC.md 8.1.
 *
 * A store is encrypted when it is created with wal_open_options.key, or by wal_store_encrypt. Its
 * content is encrypted by data keys, these by the key of the store, and that one by each of the
 * keys that open it: adding and removing these rewrites no content. Without any of them the
 * store cannot be read by anybody: add a second one.
 */
#ifndef AGENTWAL_KEYS_H
#define AGENTWAL_KEYS_H

#include "../agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A key that opens a store, without anything secret. The slice holds until the callback returns. */
struct wal_store_key {
    uint32_t struct_size;
    uint32_t id;   /* of the key in this store; never given again while later ones exist */
    uint32_t kind; /* enum wal_key_kind */
    uint32_t reserved;
    int64_t created_ms;     /* Unix time in milliseconds */
    struct wal_slice label; /* what wal_key had; may be empty */
};

/* Called for each key that opens a store, by ascending id. A result other than 0 stops the listing
 * with WAL_ECALLBACK and that number in error->sys_errno. */
typedef int32_t wal_store_key_fn(void *ctx, const struct wal_store_key *key);

/*
 * Calls `each`, unless it is null, for every key that opens the store at path. It needs none of
 * them, takes no lock, and changes nothing; the list is as the file has it, which only opening the
 * store authenticates.
 *
 * Threads: any. Errors: WAL_ENOTFOUND when the store is not encrypted; WAL_EKEY when its file of
 * keys is gone or of another store; WAL_ECORRUPT when it is damaged; WAL_ECALLBACK; WAL_ENOTSTORE,
 * WAL_EVERSION, WAL_EACCESS, WAL_EIO.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_list_keys(const char *path, wal_store_key_fn *each,
                                                         void *ctx, struct wal_error *error);

/*
 * Adds a key to those that open the store, durably. *id, if id is not null, is what it is removed
 * by. A passphrase takes as long as opening the store with one.
 *
 * Threads: any; other processes may use the store. Errors: WAL_EINVAL when the store is not
 * encrypted, or the key is not valid; WAL_EKEY when its size is not; WAL_ELIMIT when there are 32;
 * those of wal_append.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_add_key(struct wal_store *store,
                                                       const struct wal_key *key, uint32_t *id,
                                                       struct wal_error *error);

/*
 * Removes a key, durably: it opens the store no more. Handles that are open stay open. A copy of
 * the store that is older is still opened by it, and who had the key of the store keeps it: after a
 * theft wal_store_rotate_key protects what is written from then on, of which such a copy has
 * nothing.
 *
 * Threads: any; other processes may use the store. Errors: WAL_ENOTFOUND; WAL_EINVAL when it is the
 * last one, or the store is not encrypted; those of wal_append.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_remove_key(struct wal_store *store, uint32_t id,
                                                          struct wal_error *error);

/*
 * Makes a new data key, and begins new segments, so that everything written from now on is
 * encrypted by it, in every process. wal_store_compact rewrites what the older ones encrypt, and
 * with WAL_STORE_COMPACT_ERASE removes them then, unless the store names a remote, whose parts need
 * them.
 *
 * Threads: any; other processes may use the store. Errors: WAL_EINVAL when the store is not
 * encrypted; WAL_ELIMIT when there are 64 data keys, which an erasing compaction makes fewer;
 * those of wal_append.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_rotate_key(struct wal_store *store,
                                                          struct wal_error *error);

/*
 * Encrypts a store that has content: options->key opens it from then on, and everything that is
 * written is encrypted. What was there stays readable to everybody who has the files until
 * wal_store_compact has rewritten it, which it does with all of it; nothing but overwriting the
 * disk removes what a file system or a device keeps of deleted files.
 *
 * No other process, and no handle of this one, may have the store open. options are those of
 * wal_open, of which flags may be WAL_OPEN_NETWORK_FS and WAL_OPEN_STRICT. The change is atomic:
 * when the call fails, or the process dies, the store is encrypted or it is as before. Durable.
 *
 * Threads: any. Errors: WAL_ELOCKED when the store is in use; WAL_EEXISTS when it is encrypted, or
 * WAL_EKEY when the key is none of it; WAL_EINVAL and WAL_EKEY when the key is not valid;
 * WAL_EINVAL when the store names a remote, which has its content; those of wal_open.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_encrypt(const char *path,
                                                       const struct wal_open_options *options,
                                                       struct wal_error *error);

#ifdef __cplusplus
}
#endif

#endif
