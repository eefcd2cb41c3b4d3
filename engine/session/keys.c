/*
 * keys.c - the public functions on the keys of a store (agentwal/keys.h): each changes KEYS under
 * the append lock of the log; and the encryption of a store that has content, which no other
 * process may use meanwhile.
 */
#include "agentwal/keys.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "engine/session/session.h"
#include "engine/session/store.h"
#include "engine/session/write_batch.h"
#include "engine/store/keys_file.h"
#include "format/bytes/assert.h"

/* --- listing -------------------------------------------------------------- */

static enum wal_status read_keys(const struct wal__env *env, struct wal__keys_file *file,
                                 struct wal_error *error)
{
    struct wal__manifest manifest;
    bool exists = false;
    bool ignored = false;
    enum wal_status status = wal__manifest_probe(env, &exists, error);

    if (status == WAL_OK && !exists) {
        status = wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0, "there is no store here");
    }
    if (status == WAL_OK) {
        status = wal__manifest_read(env, &manifest, &ignored, error);
    }
    if (status == WAL_OK && !wal__manifest_has(&manifest, WAL__INCOMPAT_ENCRYPTED)) {
        status = wal__fail_at(error, WAL_ENOTFOUND, 0, env->root, 0,
                              "the store is not encrypted: it has no keys");
    }
    if (status == WAL_OK) {
        status = wal__keys_read(env, file, error);
    }
    if (status == WAL_OK && memcmp(file->uuid, manifest.uuid, sizeof(file->uuid)) != 0) {
        status =
            wal__fail_at(error, WAL_EKEY, 0, env->root, 0, "the file of keys is of another store");
    }
    return status;
}

enum wal_status wal_store_list_keys(const char *path, wal_store_key_fn *each, void *ctx,
                                    struct wal_error *error)
{
    struct wal__env env = {.heap = &wal__heap_libc, .io = &wal__io_posix, .read_only = true};
    struct wal__keys_file file;
    enum wal_status status;

    if (path == NULL || strlen(path) >= sizeof(env.root)) {
        return wal__invalid(error, "the path is null or too long");
    }
    memcpy(env.root, path, strlen(path) + 1);
    status = read_keys(&env, &file, error);
    for (uint32_t i = 0; i < file.slot_count && status == WAL_OK; i++) {
        const struct wal__key_slot *slot = &file.slots[i];
        const struct wal_store_key key = {.struct_size = sizeof(key),
                                          .id = slot->id,
                                          .kind = slot->kind,
                                          .created_ms = slot->created_ms,
                                          .label = {slot->label, strlen(slot->label)}};
        const int32_t stopped = each == NULL ? 0 : each(ctx, &key);

        if (stopped != 0) {
            status = wal__fail_at(error, WAL_ECALLBACK, stopped, NULL, 0,
                                  "the callback stopped the list");
        }
    }
    return status;
}

/* --- changing ------------------------------------------------------------- */

static enum wal_status check_encrypted(struct wal_store *store, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && store->core.env.keyring == NULL) {
        status = wal__invalid(error, "the store is not encrypted: it has no keys");
    }
    return status;
}

/* A change of KEYS, as the leader. */
struct change {
    struct wal__keyring *keyring;
    struct wal__new_slot *slot;
    uint32_t id;
};

static enum wal_status add(void *ctx, struct wal_error *error)
{
    struct change *change = ctx;

    return wal__keys_add(change->keyring, change->slot, &change->id, error);
}

static enum wal_status discard(void *ctx, struct wal_error *error)
{
    const struct change *change = ctx;

    return wal__keys_remove(change->keyring, change->id, error);
}

static enum wal_status make_data_key(void *ctx, struct wal_error *error)
{
    const struct change *change = ctx;

    return wal__keys_rotate(change->keyring, error);
}

static enum wal_status load_key(const struct wal_key *given, struct wal_key *key,
                                struct wal_error *error)
{
    enum wal_status status = given == NULL
                                 ? wal__invalid(error, "the key is null")
                                 : wal__struct_load(WAL__STRUCT(wal_key), key, given, error);

    return status == WAL_OK ? wal__key_check(key, error) : status;
}

enum wal_status wal_store_add_key(struct wal_store *store, const struct wal_key *key, uint32_t *id,
                                  struct wal_error *error)
{
    struct wal__new_slot slot = {.slot = {.kind = 0}};
    struct change change = {.slot = &slot};
    enum wal_status status = check_encrypted(store, error);
    struct wal_key given;

    if (status == WAL_OK) {
        status = load_key(key, &given, error);
    }
    if (status == WAL_OK) {
        status = wal__keys_begin_add(&store->core.env, &given, &slot, error);
    }
    if (status == WAL_OK) {
        change.keyring = store->core.env.keyring;
        status = wal__committer_call(&store->core.committer, add, &change, error);
    }
    wal__secret_clear(&slot, sizeof(slot));
    if (status == WAL_OK && id != NULL) {
        *id = change.id;
    }
    return status;
}

enum wal_status wal_store_remove_key(struct wal_store *store, uint32_t id, struct wal_error *error)
{
    struct change change = {.id = id};
    enum wal_status status = check_encrypted(store, error);

    if (status == WAL_OK) {
        change.keyring = store->core.env.keyring;
        status = wal__committer_call(&store->core.committer, discard, &change, error);
    }
    return status;
}

/* Ends the tail of the pack, if there is one, so that the next content is encrypted by the newest
 * key. */
static enum wal_status rotate_pack(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = wal__blob_store_read_lock(&core->blobs, error);
    bool is_empty;

    if (status != WAL_OK) {
        return status;
    }
    is_empty = core->blobs.log.tail_segment == NULL;
    wal__blob_store_unlock(&core->blobs);
    return is_empty ? WAL_OK : wal__blob_store_rotate(&core->blobs, error);
}

enum wal_status wal_store_rotate_key(struct wal_store *store, struct wal_error *error)
{
    struct change change = {.id = 0};
    enum wal_status status = check_encrypted(store, error);

    if (status != WAL_OK) {
        return status;
    }
    change.keyring = store->core.env.keyring;
    status = wal__committer_call(&store->core.committer, make_data_key, &change, error);
    if (status == WAL_OK) {
        status = wal__committer_rotate(&store->core.committer, error);
    }
    return status == WAL_OK ? rotate_pack(&store->core, error) : status;
}

/* --- encrypting a store that has content ------------------------------------ */

/* Finds the newest ids of both streams, of segments that were preallocated too. */
static enum wal_status find_newest(struct wal__core *core, uint64_t ids[2], struct wal_error *error)
{
    struct wal__log *logs[2] = {&core->log, &core->blobs.log};
    enum wal_status status = WAL_OK;

    for (int i = 0; i < 2 && status == WAL_OK; i++) {
        status = wal__log_find_highest_id(logs[i], error);
        ids[i] = wal__log_newest_id(logs[i]);
        ids[i] = logs[i]->highest_id > ids[i] ? logs[i]->highest_id : ids[i];
    }
    return status;
}

/* Makes the store an encrypted one. What was derived from the log has texts: it is removed, and
 * made anew, encrypted, when it is needed. */
static enum wal_status encrypt(struct wal__core *core, const struct wal_key *key,
                               struct wal_error *error)
{
    struct wal__keyring *keyring = NULL;
    uint64_t plain_ids[2] = {0};
    enum wal_status status = find_newest(core, plain_ids, error);

    if (status == WAL_OK) {
        status = wal__keys_create(&core->env, core->manifest.uuid, plain_ids, key, &keyring, error);
    }
    wal__keyring_destroy(keyring);
    if (status == WAL_OK) {
        status = wal__clear_index(&core->env, error);
    }
    return status == WAL_OK
               ? wal__manifest_require(&core->env, &core->manifest, WAL__INCOMPAT_ENCRYPTED, error)
               : status;
}

/* Encrypts the store that the core has opened without a key. */
static enum wal_status encrypt_alone(struct wal__core *core, const struct wal_key *key,
                                     struct wal_error *error)
{
    enum wal_status status = wal__check_writable(core, error);
    enum wal_status stopped;

    if (status == WAL_OK && core->env.keyring != NULL) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, core->env.root, 0,
                              "the store is encrypted already");
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__keys_have_remote(&core->env)) {
        return wal__invalid(error, "the remote of the store has it in clear text: remove the "
                                   "remote, encrypt the store, then add another one");
    }
    stopped = wal__core_shutdown(core, false, error);
    if (stopped != WAL_OK) {
        return stopped;
    }
    if (!wal__control_try_exclusive(&core->control)) {
        return wal__fail_at(error, WAL_ELOCKED, 0, core->env.root, 0,
                            "other processes have the store open: end them, then encrypt it");
    }
    return encrypt(core, key, error);
}

enum wal_status wal__store_encrypt(const char *path, const struct wal_open_options *options,
                                   const struct wal__heap *heap, const struct wal__io *io,
                                   struct wal_error *error)
{
    struct wal__core_options core_options = {
        .heap = heap, .io = io, .request_size = sizeof(struct wal__batch)};
    struct wal_open_options *open = &core_options.open;
    struct wal__core *core;
    struct wal_key key;
    enum wal_status status = wal__struct_load(WAL__STRUCT(wal_open_options), open, options, error);

    if (status == WAL_OK) {
        status = load_key(open->key, &key, error);
    }
    if (status == WAL_OK &&
        (path == NULL || (open->flags & ~(uint32_t)(WAL_OPEN_NETWORK_FS | WAL_OPEN_STRICT)) != 0)) {
        status = wal__invalid(error, "the path or the options for encrypting are not valid");
    }
    if (status != WAL_OK) {
        return status;
    }
    core = wal__heap_zalloc(heap, sizeof(*core));
    if (core == NULL) {
        return wal__no_memory(error);
    }
    /* Only one that is encrypted needs it, and is refused then. */
    open->flags |= WAL_OPEN_KEY_IF_NEEDED;
    open->key = &key;
    status = wal__core_init(core, path, &core_options, error);
    if (status == WAL_OK) {
        status = encrypt_alone(core, &key, error);
    }
    wal__core_detach(core);
    wal__core_deinit(core);
    wal__heap_free(heap, core);
    return status;
}

enum wal_status wal_store_encrypt(const char *path, const struct wal_open_options *options,
                                  struct wal_error *error)
{
    return wal__store_encrypt(path, options, &wal__heap_libc, &wal__io_posix, error);
}
