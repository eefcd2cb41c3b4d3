/*
 * manifest.c - creating, reading and upgrading MANIFEST (SPEC.md 2.1, 3.7).
 *
 * Invariant: MANIFEST is replaced by rename, after everything that it refers to is durable. One
 * thread.
 */
#include "engine/store/manifest.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/keys_file.h"
#include "format/bytes/assert.h"

enum wal_status wal__manifest_probe(const struct wal__env *env, bool *exists,
                                    struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    struct wal__io_stat stat;
    struct wal__file *file = NULL;
    enum wal_status status;
    int err = 0;

    *exists = false;
    status = io->path_stat(io->ctx, env->root, &stat, &err);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status == WAL_OK && !stat.is_directory) {
        return wal__fail_at(error, WAL_ENOTSTORE, 0, env->root, 0,
                            "the path of the store is a file, not a directory");
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, env->root, 0, "cannot examine the directory");
    }
    /* By opening it: a link that leads nowhere is no missing file. */
    wal__env_path(env, path, "MANIFEST");
    status = io->open(io->ctx, path, 0, &file, &err);
    if (status == WAL_OK) {
        io->close(io->ctx, file);
    }
    if (err == EISDIR || err == ELOOP || err == ENXIO) {
        return wal__fail_open(error, WAL_ENOTSTORE, err, path, "cannot open the manifest");
    }
    *exists = status == WAL_OK || status == WAL_EREADONLY;
    return *exists || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot examine the manifest");
}

enum wal_status wal__manifest_check_directories(const struct wal__env *env, struct wal_error *error)
{
    static const char *const names[] = {"log", "pack", "index"};
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct wal__file *file = NULL;
        int err = 0;

        /* A directory is EISDIR. */
        wal__env_path(env, path, "%s", names[i]);
        if (io->open(io->ctx, path, 0, &file, &err) == WAL_OK) {
            io->close(io->ctx, file);
            return wal__fail_at(error, WAL_EIO, 0, path, 0, "a file is in place of the directory");
        }
        if (err == ELOOP || err == ENXIO) {
            return wal__fail_at(error, WAL_EIO, 0, path, 0,
                                err == ELOOP ? "a symbolic link is in place of the "
                                               "directory"
                                             : "a FIFO, a socket or a device is in "
                                               "place of the directory");
        }
    }
    return WAL_OK;
}

static bool is_newer(enum wal__fmt fmt)
{
    return fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES;
}

/* Chooses the valid slot with the higher generation; returns the fault of the first slot when none
 * is valid. A slot of a newer library wins over any other. */
static enum wal__fmt choose_slot(const uint8_t *bytes, struct wal__manifest *manifest)
{
    struct wal__manifest second = {0};
    enum wal__fmt first = wal__manifest_decode(bytes, manifest);
    enum wal__fmt other = wal__manifest_decode(bytes + WAL__MANIFEST_SLOT_SIZE, &second);

    if (is_newer(first)) {
        return first;
    }
    if (is_newer(other)) {
        *manifest = second;
        return other;
    }
    if (other == WAL__FMT_OK &&
        (first != WAL__FMT_OK || second.generation > manifest->generation)) {
        *manifest = second;
        return WAL__FMT_OK;
    }
    return first;
}

enum wal_status wal__manifest_read(const struct wal__env *env, struct wal__manifest *manifest,
                                   bool *read_only, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;
    enum wal__fmt fmt;
    size_t got = 0;
    int err = 0;

    wal__env_path(env, path, "MANIFEST");
    memset(manifest, 0, sizeof(*manifest));
    status = io->open(io->ctx, path, 0, &file, &err);
    if (status == WAL_OK) {
        status = wal__io_read_full(io, file, bytes, sizeof(bytes), 0, &got, &err);
        io->close(io->ctx, file);
    }
    if (status != WAL_OK) {
        return wal__fail_open(error, status, err, path, "cannot read the manifest");
    }
    fmt = choose_slot(bytes, manifest);
    if (is_newer(fmt)) {
        return wal__fail_at(error, WAL_EVERSION, 0, path, 8,
                            "the store has format version %" PRIu32 " and features %#" PRIx32
                            "; this library supports "
                            "version %d and features %#x",
                            manifest->version, manifest->features.incompat,
                            (int)WAL__FORMAT_VERSION, WAL__KNOWN_INCOMPAT | WAL__INCOMPAT_SHADOW);
    }
    if (fmt != WAL__FMT_OK) {
        return wal__fail_at(error, fmt == WAL__FMT_MAGIC ? WAL_ENOTSTORE : WAL_ECORRUPT, 0, path, 0,
                            "neither slot of the manifest is valid: %s", wal__fmt_text(fmt));
    }
    *read_only = (manifest->features.ro_compat & ~WAL__KNOWN_RO_COMPAT) != 0;
    return WAL_OK;
}

/* Accepts the names that an interrupted creation may have left, or that another process created
 * since the store was probed. */
static enum wal_status check_name(void *arg, const char *name)
{
    static const char *const known[] = {"LOCK",         "log",      "pack", "index",
                                        "MANIFEST.new", "MANIFEST", "KEYS", "KEYS.new"};

    (void)arg;
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strcmp(name, known[i]) == 0) {
            return WAL_OK;
        }
    }
    return WAL_ENOTSTORE;
}

/* A name in log/: segments come after MANIFEST. */
static enum wal_status refuse_name(void *arg, const char *name)
{
    (void)arg;
    (void)name;
    return WAL_ENOTSTORE;
}

enum wal_status wal__manifest_check_segments(const struct wal__env *env, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    bool exists = false;
    enum wal_status status;
    int err = 0;

    wal__env_path(env, path, "log");
    status = io->list(io->ctx, path, refuse_name, NULL, &err);
    if (status != WAL_ENOTSTORE) {
        return WAL_OK;
    }
    status = wal__manifest_probe(env, &exists, error);
    if (status != WAL_OK || exists) {
        return status;
    }
    return wal__fail_at(error, WAL_ECORRUPT, 0, env->root, 0,
                        "the directory has segments of a store, but no "
                        "MANIFEST; agentwal salvage copies what they have");
}

enum wal_status wal__manifest_make_directories(const struct wal__env *env, struct wal_error *error)
{
    static const char *const parts[] = {"log", "index"};
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    status = io->make_directory(io->ctx, env->root, &err);
    if (status == WAL_EEXISTS) {
        status = io->list(io->ctx, env->root, check_name, NULL, &err);
        if (status == WAL_ENOTSTORE) {
            return wal__fail_at(error, status, 0, env->root, 0,
                                "the directory contains other files; create the store in "
                                "an empty directory");
        }
    }
    for (size_t i = 0; i < 2 && status == WAL_OK; i++) {
        wal__env_path(env, path, "%s", parts[i]);
        status = io->make_directory(io->ctx, path, &err);
        status = status == WAL_EEXISTS ? WAL_OK : status;
    }
    if (status == WAL_ENOTFOUND) {
        return wal__fail_at(error, WAL_ENOTSTORE, err, env->root, 0,
                            "the parent directory of the store does not exist");
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, env->root, 0,
                            "cannot create the directories of the store");
    }
    return WAL_OK;
}

void wal__manifest_parent_path(const struct wal__env *env, char out[WAL__PATH_MAX])
{
    char *slash;

    WAL__ASSERT(strlen(env->root) < WAL__PATH_MAX);
    memcpy(out, env->root, WAL__PATH_MAX);
    slash = strrchr(out, '/');
    if (slash == NULL) {
        memcpy(out, ".", 2);
    } else if (slash == out) {
        out[1] = '\0';
    } else {
        *slash = '\0';
    }
}

static enum wal_status sync_directories(const struct wal__env *env, int *err)
{
    const struct wal__io *io = env->io;
    char parent[WAL__PATH_MAX];
    enum wal_status status = io->sync_directory(io->ctx, env->root, err);

    if (status != WAL_OK) {
        return status;
    }
    wal__manifest_parent_path(env, parent);
    return io->sync_directory(io->ctx, parent, err);
}

enum wal_status wal__manifest_sync_directories(const struct wal__env *env, struct wal_error *error)
{
    int err = 0;
    enum wal_status status = sync_directories(env, &err);

    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, env->root, 0,
                            "cannot sync the directories of the store");
    }
    return WAL_OK;
}

static enum wal_status write_manifest(const struct wal__env *env, const uint8_t *bytes, int *err)
{
    enum wal_status status = wal__env_replace_file(env, "MANIFEST", bytes, WAL__MANIFEST_SIZE, err);

    return status == WAL_OK ? sync_directories(env, err) : status;
}

enum wal_status wal__manifest_create(struct wal__env *env, uint32_t group_align,
                                     const struct wal_key *key, struct wal__manifest *manifest,
                                     struct wal_error *error)
{
    static const uint64_t plain_ids[2];
    const struct wal__io *io = env->io;
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    enum wal_status status;
    int err = 0;

    memset(manifest, 0, sizeof(*manifest));
    manifest->version = WAL__FORMAT_VERSION;
    manifest->generation = 1;
    manifest->group_align = group_align == 0 ? 8 : group_align;
    manifest->created_ms = io->now_ms(io->ctx);
    io->random(io->ctx, manifest->uuid, sizeof(manifest->uuid));
    manifest->uuid[6] = (uint8_t)((manifest->uuid[6] & 0x0f) | 0x40);
    manifest->uuid[8] = (uint8_t)((manifest->uuid[8] & 0x3f) | 0x80);
    manifest->features.incompat = key != NULL ? WAL__INCOMPAT_ENCRYPTED : 0;
    wal__manifest_encode(manifest, bytes);
    wal__manifest_encode(manifest, bytes + WAL__MANIFEST_SLOT_SIZE);
    if (key != NULL) {
        status = wal__keys_create(env, manifest->uuid, plain_ids, key, &env->keyring, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    /* Directories first: a manifest on disk implies that they exist. */
    status = sync_directories(env, &err);
    if (status == WAL_OK) {
        status = write_manifest(env, bytes, &err);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, env->root, 0, "cannot write the manifest");
    }
    return WAL_OK;
}

/* Writes both slots anew, with the next generation. */
enum wal_status wal__manifest_replace(const struct wal__env *env, struct wal__manifest *manifest,
                                      const struct wal__manifest *next, struct wal_error *error)
{
    uint8_t bytes[WAL__MANIFEST_SIZE] = {0};
    struct wal__manifest written = *next;
    enum wal_status status;
    int err = 0;

    written.generation = manifest->generation + 1;
    wal__manifest_encode(&written, bytes);
    wal__manifest_encode(&written, bytes + WAL__MANIFEST_SLOT_SIZE);
    status = write_manifest(env, bytes, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, env->root, 0, "cannot write the manifest");
    }
    *manifest = written;
    return WAL_OK;
}

enum wal_status wal__manifest_upgrade(const struct wal__env *env, struct wal__manifest *manifest,
                                      struct wal_error *error)
{
    struct wal__manifest next = *manifest;

    WAL__ASSERT(manifest->version < WAL__FORMAT_VERSION);
    next.version = WAL__FORMAT_VERSION;
    return wal__manifest_replace(env, manifest, &next, error);
}

enum wal_status wal__manifest_require(const struct wal__env *env, struct wal__manifest *manifest,
                                      uint64_t features, struct wal_error *error)
{
    struct wal__manifest next;
    bool read_only;
    enum wal_status status = wal__manifest_read(env, manifest, &read_only, error);

    if (status != WAL_OK || wal__manifest_has(manifest, features)) {
        return status;
    }
    next = *manifest;
    next.features.incompat |= (uint32_t)features;
    next.features.ro_compat |= (uint32_t)(features >> 32);
    return wal__manifest_replace(env, manifest, &next, error);
}

bool wal__manifest_has(const struct wal__manifest *manifest, uint64_t features)
{
    uint64_t has = manifest->features.incompat | WAL__RO_COMPAT(manifest->features.ro_compat);

    return (has & features) == features;
}
