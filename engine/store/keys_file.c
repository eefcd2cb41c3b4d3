/*
 * keys_file.c - KEYS: creating, opening and changing it (keys_file.h; SPEC.md 8.1).
 *
 * The store key is random, and in each slot encrypted by a key that is made of what a user has. It
 * encrypts the data keys, and authenticates the file.
 */
#include "engine/store/keys_file.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"

enum {
    SECRET_MIN = 16,
    SECRET_MAX = 4096,
    /* Of new passphrases: 128 MiB. */
    SCRYPT_LOG2_N = 17,
    SCRYPT_R = 8,
    SCRYPT_P = 1
};

static const char wrap_info[] = "agentwal wrap";
static const char mac_info[] = "agentwal keys";

static struct wal__span span_of(const void *data, size_t size)
{
    return (struct wal__span){data, size};
}

enum wal_status wal__key_check(const struct wal_key *key, struct wal_error *error)
{
    if (key->kind != WAL_KEY_SECRET && key->kind != WAL_KEY_PASSPHRASE) {
        return wal__invalid(error, "the kind of a key is a secret or a passphrase");
    }
    if (key->bytes.data == NULL || key->bytes.size == 0 || key->bytes.size > SECRET_MAX ||
        (key->kind == WAL_KEY_SECRET && key->bytes.size < SECRET_MIN)) {
        return wal__fail(error, WAL_EKEY,
                         "the key has %" PRIu64 " bytes: a secret has %d to %d, a passphrase "
                         "1 to %d",
                         key->bytes.data == NULL ? 0 : key->bytes.size, (int)SECRET_MIN,
                         (int)SECRET_MAX, (int)SECRET_MAX);
    }
    if (key->label.size > WAL__KEY_LABEL_MAX) {
        return wal__invalid(error, "the label of a key has at most %d bytes",
                            (int)WAL__KEY_LABEL_MAX);
    }
    return WAL_OK;
}

/* --- wrapping ----------------------------------------------------------- */

/* Makes the key that encrypts the store key in the slot of what the user has. */
static enum wal_status slot_key(const struct wal__key_slot *slot, const struct wal_key *given,
                                struct wal__key *key)
{
    const struct wal__span bytes = span_of(given->bytes.data, given->bytes.size);
    const struct wal__span salt = span_of(slot->salt, sizeof(slot->salt));

    return slot->kind == WAL__KEY_SLOT_PASSPHRASE
               ? wal__key_from_passphrase(bytes, salt, slot->log2_n, slot->r, slot->p, key)
               : wal__key_from_secret(bytes, salt, span_of(wrap_info, sizeof(wrap_info) - 1), key);
}

static enum wal_status wrap(const struct wal__io *io, const struct wal__key *by,
                            struct wal__span bound, const struct wal__key *key,
                            struct wal__wrapped_key *out)
{
    struct wal__cipher cipher = {0};
    enum wal_status status = wal__cipher_set_key(&cipher, WAL__SUITE_AES_256_GCM, by);

    io->random(io->ctx, out->nonce, sizeof(out->nonce));
    if (status == WAL_OK) {
        status = wal__cipher_encrypt(&cipher, out->nonce, bound,
                                     span_of(key->bytes, sizeof(key->bytes)), out->bytes, out->tag);
    }
    wal__cipher_deinit(&cipher);
    return status;
}

/* WAL_ECORRUPT: not by this key. */
static enum wal_status unwrap(const struct wal__key *by, struct wal__span bound,
                              const struct wal__wrapped_key *wrapped, struct wal__key *key)
{
    struct wal__cipher cipher = {0};
    enum wal_status status = wal__cipher_set_key(&cipher, WAL__SUITE_AES_256_GCM, by);

    if (status == WAL_OK) {
        status = wal__cipher_decrypt(&cipher, wrapped->nonce, bound,
                                     span_of(wrapped->bytes, sizeof(wrapped->bytes)), key->bytes,
                                     wrapped->tag);
    }
    wal__cipher_deinit(&cipher);
    return status;
}

/* --- the file ----------------------------------------------------------- */

static enum wal_status mac_of(const struct wal__key *store_key, struct wal__span bytes,
                              uint8_t mac[WAL__KEYS_MAC_SIZE])
{
    struct wal__key key;
    enum wal_status status =
        wal__key_derive(store_key, span_of(mac_info, sizeof(mac_info) - 1), &key);

    if (status == WAL_OK) {
        status = wal__key_mac(&key, bytes, mac);
    }
    wal__secret_clear(&key, sizeof(key));
    return status;
}

/* Reads the bytes of KEYS; what is missing of it is zeros. */
static enum wal_status read_bytes(const struct wal__env *env, uint8_t bytes[WAL__KEYS_SIZE],
                                  struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;
    size_t size = 0;
    int err = 0;

    memset(bytes, 0, WAL__KEYS_SIZE);
    wal__env_path(env, path, "KEYS");
    status = io->open(io->ctx, path, 0, &file, &err);
    if (status == WAL_OK) {
        status = wal__io_read_full(io, file, bytes, WAL__KEYS_SIZE, 0, &size, &err);
        io->close(io->ctx, file);
    }
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, WAL_EKEY, 0, path, 0,
                            "the store is encrypted, and its file of keys is gone: bring it back "
                            "from a copy of the store");
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_open(error, status, err, path, "cannot read the keys");
}

/* Decodes the copy that is valid: *copy is its bytes, *size what its MAC covers. */
static enum wal_status decode(const struct wal__env *env, const uint8_t bytes[WAL__KEYS_SIZE],
                              struct wal__keys_file *file, const uint8_t **copy, size_t *size,
                              struct wal_error *error)
{
    enum wal__fmt fmt = wal__keys_decode(bytes, file, size);
    char path[WAL__PATH_MAX];

    *copy = bytes;
    if (fmt != WAL__FMT_OK && fmt != WAL__FMT_VERSION &&
        wal__keys_decode(bytes + WAL__KEYS_COPY_SIZE, file, size) == WAL__FMT_OK) {
        *copy = bytes + WAL__KEYS_COPY_SIZE;
        fmt = WAL__FMT_OK;
    }
    if (fmt == WAL__FMT_OK) {
        return WAL_OK;
    }
    wal__env_path(env, path, "KEYS");
    return wal__fail_at(error, fmt == WAL__FMT_VERSION ? WAL_EVERSION : WAL_ECORRUPT, 0, path, 0,
                        "the file of keys is not valid: %s; bring it back from a copy of the "
                        "store",
                        wal__fmt_text(fmt));
}

enum wal_status wal__keys_read(const struct wal__env *env, struct wal__keys_file *file,
                               struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_SIZE];
    const uint8_t *copy;
    size_t size;
    enum wal_status status = read_bytes(env, bytes, error);

    return status == WAL_OK ? decode(env, bytes, file, &copy, &size, error) : status;
}

enum wal_status wal__keys_read_copy(const struct wal__env *env, uint8_t out[WAL__KEYS_COPY_SIZE],
                                    size_t *size, struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_SIZE];
    struct wal__keys_file file;
    const uint8_t *copy;
    enum wal_status status = read_bytes(env, bytes, error);

    if (status == WAL_OK) {
        status = decode(env, bytes, &file, &copy, size, error);
    }
    if (status == WAL_OK) {
        *size += WAL__KEYS_MAC_SIZE;
        memset(out, 0, WAL__KEYS_COPY_SIZE);
        memcpy(out, copy, *size);
    }
    return status;
}

/* Checks what the store key authenticates, which its MAC follows. */
static enum wal_status check_mac(const struct wal__env *env, const struct wal__key *store_key,
                                 struct wal__span bytes, struct wal_error *error)
{
    uint8_t expected[WAL__KEYS_MAC_SIZE];
    char path[WAL__PATH_MAX];

    if (mac_of(store_key, bytes, expected) != WAL_OK) {
        return wal__no_memory(error);
    }
    if (wal__secret_equal(expected, bytes.data + bytes.size, sizeof(expected))) {
        return WAL_OK;
    }
    wal__env_path(env, path, "KEYS");
    return wal__fail_at(error, WAL_ECORRUPT, 0, path, 0,
                        "the file of keys was changed by something else than this library");
}

/* Reads KEYS of the store of the keyring. */
static enum wal_status read_own(const struct wal__env *env, const struct wal__keyring *keyring,
                                struct wal__keys_file *file, struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_SIZE];
    const uint8_t *copy;
    size_t size;
    enum wal_status status = read_bytes(env, bytes, error);

    if (status == WAL_OK) {
        status = decode(env, bytes, file, &copy, &size, error);
    }
    return status == WAL_OK ? check_mac(env, &keyring->store_key, span_of(copy, size), error)
                            : status;
}

static enum wal_status write_file(const struct wal__env *env, const uint8_t bytes[WAL__KEYS_SIZE],
                                  int *err)
{
    enum wal_status status = wal__env_replace_file(env, "KEYS", bytes, WAL__KEYS_SIZE, err);

    return status == WAL_OK ? env->io->sync_directory(env->io->ctx, env->root, err) : status;
}

enum wal_status wal__keys_write_copy(const struct wal__env *env, struct wal__span copy,
                                     struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_SIZE] = {0};
    uint8_t present[WAL__KEYS_SIZE];
    enum wal_status status;
    int err = 0;

    WAL__ASSERT(copy.size <= WAL__KEYS_COPY_SIZE);
    memcpy(bytes, copy.data, copy.size);
    memcpy(bytes + WAL__KEYS_COPY_SIZE, copy.data, copy.size);
    if (read_bytes(env, present, NULL) == WAL_OK && memcmp(present, bytes, sizeof(bytes)) == 0) {
        return WAL_OK;
    }
    status = write_file(env, bytes, &err);
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, env->root, 0,
                                           "cannot write the keys of the store");
}

/* Writes the file with the next generation. */
static enum wal_status replace(const struct wal__env *env, struct wal__keys_file *file,
                               const struct wal__key *store_key, struct wal_error *error)
{
    uint8_t copy[WAL__KEYS_COPY_SIZE];
    size_t size;

    file->generation++;
    size = wal__keys_encode(file, copy);
    return mac_of(store_key, span_of(copy, size), copy + size) == WAL_OK
               ? wal__keys_write_copy(env, span_of(copy, size + WAL__KEYS_MAC_SIZE), error)
               : wal__no_memory(error);
}

/* --- slots and data keys -------------------------------------------------- */

/* Makes the key of a new slot, which takes long for a passphrase. */
static enum wal_status begin_slot(const struct wal__io *io, const struct wal_key *given,
                                  struct wal__new_slot *made)
{
    struct wal__key_slot *slot = &made->slot;

    memset(slot, 0, sizeof(*slot));
    slot->kind = given->kind;
    slot->created_ms = io->now_ms(io->ctx);
    if (slot->kind == WAL__KEY_SLOT_PASSPHRASE) {
        slot->log2_n = SCRYPT_LOG2_N;
        slot->r = SCRYPT_R;
        slot->p = SCRYPT_P;
    }
    if (given->label.size > 0) {
        memcpy(slot->label, given->label.data, given->label.size);
    }
    io->random(io->ctx, slot->salt, sizeof(slot->salt));
    return slot_key(slot, given, &made->key);
}

/* Appends the slot to the file, with the store key in it. Clears the key. */
static enum wal_status add_slot(const struct wal__io *io, const struct wal__key *store_key,
                                struct wal__new_slot *made, struct wal__keys_file *file)
{
    struct wal__key_slot *slot = &file->slots[file->slot_count];
    uint8_t bound[WAL__KEY_BOUND_MAX];
    enum wal_status status;
    size_t size;

    WAL__ASSERT(file->slot_count < WAL__KEY_SLOTS_MAX);
    made->slot.id = 1;
    for (uint32_t i = 0; i < file->slot_count; i++) {
        if (file->slots[i].id >= made->slot.id) {
            made->slot.id = file->slots[i].id + 1;
        }
    }
    *slot = made->slot;
    size = wal__key_slot_bound(file->uuid, slot, bound);
    status = wrap(io, &made->key, span_of(bound, size), store_key, &slot->key);
    wal__secret_clear(made, sizeof(*made));
    file->slot_count += status == WAL_OK;
    return status;
}

/* Appends a data key to the file. */
static enum wal_status add_data_key(const struct wal__env *env, const struct wal__key *store_key,
                                    struct wal__keys_file *file)
{
    const struct wal__io *io = env->io;
    struct wal__data_key *added = &file->keys[file->key_count];
    uint8_t bound[WAL__KEY_BOUND_MAX];
    enum wal_status status;
    struct wal__key key;
    size_t size;

    WAL__ASSERT(file->key_count < WAL__DATA_KEYS_MAX);
    memset(added, 0, sizeof(*added));
    added->id = file->key_count == 0 ? 1 : file->keys[file->key_count - 1].id + 1;
    added->suite = wal__suite_choose(io);
    added->created_ms = io->now_ms(io->ctx);
    io->random(io->ctx, key.bytes, sizeof(key.bytes));
    size = wal__data_key_bound(file->uuid, added, bound);
    status = wrap(io, store_key, span_of(bound, size), &key, &added->key);
    wal__secret_clear(&key, sizeof(key));
    file->key_count += status == WAL_OK;
    return status;
}

/* Opens the data keys of the file for the keyring, whose store key is set. */
static enum wal_status open_data_keys(const struct wal__keys_file *file,
                                      struct wal__keyring *keyring)
{
    struct wal__keyring_key keys[WAL__DATA_KEYS_MAX];
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < file->key_count && status == WAL_OK; i++) {
        uint8_t bound[WAL__KEY_BOUND_MAX];
        const size_t size = wal__data_key_bound(file->uuid, &file->keys[i], bound);

        keys[i].id = file->keys[i].id;
        keys[i].suite = file->keys[i].suite;
        status =
            unwrap(&keyring->store_key, span_of(bound, size), &file->keys[i].key, &keys[i].key);
    }
    if (status == WAL_OK) {
        wal__keyring_set(keyring, keys, file->key_count, file->plain_ids);
    }
    wal__secret_clear(keys, sizeof(keys));
    return status;
}

static enum wal_status reload(struct wal__keyring *keyring, struct wal_error *error)
{
    struct wal__keys_file file;
    enum wal_status status = read_own(keyring->env, keyring, &file, error);

    if (status == WAL_OK) {
        status = open_data_keys(&file, keyring);
        return status == WAL_OK
                   ? status
                   : wal__fail(error, status, "cannot open the data keys of the store");
    }
    return status;
}

enum wal_status wal__keys_create(const struct wal__env *env, const uint8_t uuid[16],
                                 const uint64_t plain_ids[2], const struct wal_key *key,
                                 struct wal__keyring **keyring, struct wal_error *error)
{
    struct wal__keyring *made = wal__keyring_create(env->io, uuid);
    struct wal__keys_file file = {.slot_count = 0};
    enum wal_status status = WAL_OK;
    struct wal__new_slot slot;

    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->env = env;
    made->reload = reload;
    memcpy(file.uuid, uuid, sizeof(file.uuid));
    memcpy(file.plain_ids, plain_ids, sizeof(file.plain_ids));
    env->io->random(env->io->ctx, made->store_key.bytes, sizeof(made->store_key.bytes));
    if (begin_slot(env->io, key, &slot) != WAL_OK ||
        add_slot(env->io, &made->store_key, &slot, &file) != WAL_OK ||
        add_data_key(env, &made->store_key, &file) != WAL_OK ||
        open_data_keys(&file, made) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status == WAL_OK) {
        status = replace(env, &file, &made->store_key, error);
    }
    if (status != WAL_OK) {
        wal__keyring_destroy(made);
        return status;
    }
    *keyring = made;
    return WAL_OK;
}

/* --- opening -------------------------------------------------------------- */

/* Finds the store key by the slots of the key's kind. WAL_ECORRUPT: none is of the key. */
static enum wal_status open_slots(const struct wal__keys_file *file, const struct wal_key *given,
                                  struct wal__key *store_key)
{
    enum wal_status status = WAL_ECORRUPT;

    for (uint32_t i = 0; i < file->slot_count && status == WAL_ECORRUPT; i++) {
        const struct wal__key_slot *slot = &file->slots[i];
        uint8_t bound[WAL__KEY_BOUND_MAX];
        struct wal__key key;

        if (slot->kind != given->kind) {
            continue;
        }
        status = slot_key(slot, given, &key);
        if (status == WAL_OK) {
            const size_t size = wal__key_slot_bound(file->uuid, slot, bound);

            status = unwrap(&key, span_of(bound, size), &slot->key, store_key);
        }
        wal__secret_clear(&key, sizeof(key));
    }
    return status;
}

/* Opens what was decoded from the bytes, which their MAC follows. */
static enum wal_status open_file(const struct wal__keys_file *file, const struct wal_key *key,
                                 struct wal__span authenticated, struct wal__keyring *keyring,
                                 const char *path, struct wal_error *error)
{
    enum wal_status status = open_slots(file, key, &keyring->store_key);

    if (status == WAL_ECORRUPT) {
        return wal__fail_at(error, WAL_EKEY, 0, path, 0,
                            "this %s is none of those that open the store",
                            key->kind == WAL_KEY_PASSPHRASE ? "passphrase" : "key");
    }
    if (status != WAL_OK) {
        return wal__no_memory(error);
    }
    status = check_mac(keyring->env, &keyring->store_key, authenticated, error);
    if (status == WAL_OK && open_data_keys(file, keyring) != WAL_OK) {
        status = wal__no_memory(error); /* the MAC covers them */
    }
    return status;
}

enum wal_status wal__keys_open(const struct wal__env *env, const uint8_t uuid[16],
                               const struct wal_key *key, struct wal__keyring **keyring,
                               struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_SIZE];
    struct wal__keyring *opened;
    struct wal__keys_file file;
    char path[WAL__PATH_MAX];
    const uint8_t *copy = NULL;
    size_t size = 0;
    enum wal_status status = read_bytes(env, bytes, error);

    wal__env_path(env, path, "KEYS");
    if (status == WAL_OK) {
        status = decode(env, bytes, &file, &copy, &size, error);
    }
    if (status == WAL_OK && memcmp(file.uuid, uuid, sizeof(file.uuid)) != 0) {
        status = wal__fail_at(error, WAL_EKEY, 0, path, 0, "the file of keys is of another store");
    }
    if (status == WAL_OK && key == NULL) {
        status =
            wal__fail_at(error, WAL_EKEY, 0, path, 0, "the store is encrypted: a key opens it");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__keyring_create(env->io, uuid);
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->env = env;
    opened->reload = reload;
    status = open_file(&file, key, span_of(copy, size), opened, path, error);
    if (status != WAL_OK) {
        wal__keyring_destroy(opened);
        return status;
    }
    *keyring = opened;
    return WAL_OK;
}

/* --- changing ------------------------------------------------------------- */

enum wal_status wal__keys_begin_add(const struct wal__env *env, const struct wal_key *key,
                                    struct wal__new_slot *slot, struct wal_error *error)
{
    return begin_slot(env->io, key, slot) == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__keys_add(struct wal__keyring *keyring, struct wal__new_slot *slot,
                              uint32_t *id, struct wal_error *error)
{
    struct wal__keys_file file;
    enum wal_status status = read_own(keyring->env, keyring, &file, error);

    if (status == WAL_OK && file.slot_count == WAL__KEY_SLOTS_MAX) {
        status = wal__fail(error, WAL_ELIMIT, "the store has %d keys: remove one first",
                           (int)WAL__KEY_SLOTS_MAX);
    }
    if (status == WAL_OK && add_slot(keyring->io, &keyring->store_key, slot, &file) != WAL_OK) {
        status = wal__no_memory(error);
    }
    wal__secret_clear(slot, sizeof(*slot));
    if (status == WAL_OK) {
        *id = file.slots[file.slot_count - 1].id;
        status = replace(keyring->env, &file, &keyring->store_key, error);
    }
    return status;
}

enum wal_status wal__keys_remove(struct wal__keyring *keyring, uint32_t id, struct wal_error *error)
{
    struct wal__keys_file file;
    enum wal_status status = read_own(keyring->env, keyring, &file, error);
    uint32_t rank = 0;

    if (status != WAL_OK) {
        return status;
    }
    while (rank < file.slot_count && file.slots[rank].id != id) {
        rank++;
    }
    if (rank == file.slot_count) {
        return wal__fail(error, WAL_ENOTFOUND, "the store has no key %" PRIu32, id);
    }
    if (file.slot_count == 1) {
        return wal__invalid(error, "it is the last key of the store: add another one first");
    }
    file.slot_count--;
    memmove(&file.slots[rank], &file.slots[rank + 1],
            (file.slot_count - rank) * sizeof(file.slots[0]));
    return replace(keyring->env, &file, &keyring->store_key, error);
}

enum wal_status wal__keys_rotate(struct wal__keyring *keyring, struct wal_error *error)
{
    struct wal__keys_file file;
    enum wal_status status = read_own(keyring->env, keyring, &file, error);

    if (status == WAL_OK && file.key_count == WAL__DATA_KEYS_MAX) {
        status =
            wal__fail(error, WAL_ELIMIT,
                      "the store has %d data keys: agentwal gc --erase ends those that nothing is "
                      "encrypted by any more",
                      (int)WAL__DATA_KEYS_MAX);
    }
    if (status == WAL_OK && add_data_key(keyring->env, &keyring->store_key, &file) != WAL_OK) {
        status = wal__no_memory(error);
    }
    if (status == WAL_OK) {
        status = replace(keyring->env, &file, &keyring->store_key, error);
    }
    /* Once it is durable: nothing is encrypted by a key that may be lost. */
    if (status == WAL_OK && open_data_keys(&file, keyring) != WAL_OK) {
        status = wal__no_memory(error);
    }
    return status;
}

void wal__keys_note_use(struct wal__keys_in_use *in_use, uint32_t stream,
                        const struct wal__segment_header *header)
{
    if (!wal__segment_is_encrypted(header)) {
        in_use->has_plain[stream] = true;
        return;
    }
    for (uint32_t i = 0; i < in_use->count; i++) {
        if (in_use->ids[i] == header->key_id) {
            return;
        }
    }
    if (in_use->count == WAL__DATA_KEYS_MAX) {
        in_use->newest = 0; /* headers are damaged: keep all */
    } else {
        in_use->ids[in_use->count++] = header->key_id;
    }
}

/* Whether a segment may need the data key. */
static bool is_in_use(const struct wal__keys_in_use *in_use, uint32_t id)
{
    bool is_used = id >= in_use->newest;

    for (uint32_t i = 0; i < in_use->count; i++) {
        is_used |= in_use->ids[i] == id;
    }
    return is_used;
}

bool wal__keys_have_remote(const struct wal__env *env)
{
    struct wal__io_stat stat;
    char path[WAL__PATH_MAX];
    int ignored = 0;

    wal__env_path(env, path, "remote.json");
    return env->io->path_stat(env->io->ctx, path, &stat, &ignored) != WAL_ENOTFOUND;
}

enum wal_status wal__keys_retire(struct wal__keyring *keyring,
                                 const struct wal__keys_in_use *in_use, bool erases,
                                 struct wal_error *error)
{
    struct wal__keys_file file;
    enum wal_status status = read_own(keyring->env, keyring, &file, error);
    uint32_t kept = 0;
    bool changes = false;

    if (status != WAL_OK || wal__keys_have_remote(keyring->env)) {
        return status;
    }
    for (uint32_t i = 0; i < file.key_count; i++) {
        if (!erases || is_in_use(in_use, file.keys[i].id)) {
            file.keys[kept++] = file.keys[i];
        }
    }
    changes = kept != file.key_count;
    file.key_count = kept;
    for (int i = 0; i < 2; i++) {
        changes |= file.plain_ids[i] != 0 && !in_use->has_plain[i];
        file.plain_ids[i] = in_use->has_plain[i] ? file.plain_ids[i] : 0;
    }
    if (changes) {
        status = replace(keyring->env, &file, &keyring->store_key, error);
    }
    return status;
}
