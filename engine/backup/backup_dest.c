/*
 * backup_dest.c - the directory of a copy (backup_dest.h).
 */
#include "engine/backup/backup_dest.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/index_file.h"
#include "engine/store/shadow.h"
#include "format/bytes/assert.h"

enum {
    LEVELS = 512 /* of directories above the copy */
};

static void dest_path(const struct backup *backup, const char *name,
                      char out[WAL__PATH_MAX])
{
    int size = snprintf(out, WAL__PATH_MAX, "%s/%s", backup->dest.root, name);

    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
}

/* The nearest directory that exists: that of the copy or the one it is in. */
static enum wal_status start_of_walk(const struct backup *backup,
                                     char path[WAL__PATH_MAX],
                                     struct wal__io_stat *stat)
{
    const struct wal__io *io = backup->dest.io;
    enum wal_status status;
    char *slash;
    int err = 0;

    memcpy(path, backup->dest.root, WAL__PATH_MAX);
    status = io->path_stat(io->ctx, path, stat, &err);
    if (status != WAL_ENOTFOUND) {
        return status;
    }
    slash = strrchr(path, '/');
    if (slash == NULL) {
        memcpy(path, ".", 2);
    } else {
        slash[slash == path] = '\0';
    }
    return io->path_stat(io->ctx, path, stat, &err);
}

/* Refuses a copy inside the store, or the store itself. */
static enum wal_status check_outside(const struct backup *backup,
                                     struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    struct wal__io_stat store;
    struct wal__io_stat at;
    struct wal__io_stat last = {0};
    int err = 0;

    if (io->path_stat(io->ctx, backup->source.root, &store, &err) != WAL_OK ||
        start_of_walk(backup, path, &at) != WAL_OK) {
        return WAL_OK; /* the calls after it report why */
    }
    for (int level = 0; level < LEVELS; level++) {
        size_t size = strlen(path);

        if (at.device == store.device && at.inode == store.inode) {
            return wal__invalid(error, "the copy is inside the store: choose a "
                                       "directory outside of it");
        }
        if ((at.device == last.device && at.inode == last.inode) ||
            size + 4 > WAL__PATH_MAX) {
            break;
        }
        memcpy(path + size, "/..", 4);
        last = at;
        if (io->path_stat(io->ctx, path, &at, &err) != WAL_OK) {
            break;
        }
    }
    return WAL_OK;
}

/* Reads the manifest when there is one, of this store. */
static enum wal_status read_manifest(struct backup *backup,
                                     struct wal_error *error)
{
    bool read_only = false;
    enum wal_status status =
        wal__manifest_probe(&backup->dest, &backup->is_store, error);

    if (status != WAL_OK || !backup->is_store) {
        return status;
    }
    status =
        wal__manifest_read(&backup->dest, &backup->manifest, &read_only, error);
    if (status == WAL_OK &&
        memcmp(backup->manifest.uuid, backup->source_manifest.uuid, 16) != 0) {
        status = wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                              "another store is there; back up to another "
                              "directory");
    }
    if (status == WAL_OK && read_only) {
        status = wal__fail_at(error, WAL_EVERSION, 0, backup->dest.root, 0,
                              "the copy has features that this library cannot "
                              "write");
    }
    return status;
}

static enum wal_status make_directories(const struct backup *backup,
                                        struct wal_error *error)
{
    enum wal_status status =
        wal__manifest_make_directories(&backup->dest, error);

    return status == WAL_ENOTSTORE
               ? wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                              "other files are there, or its parent directory "
                              "does not exist: back up to a directory that is "
                              "empty, or can be created")
               : status;
}

/* No process may have the copy open to write, or be backing up to it. */
static enum wal_status lock_dest(struct backup *backup, struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    dest_path(backup, "LOCK", path);
    status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE,
                      &backup->dest_lock, &err);
    if (status == WAL_OK) {
        status = io->lock(io->ctx, backup->dest_lock, WAL__LOCK_PARTICIPANT,
                          WAL__IO_LOCK_EXCLUSIVE, &err);
    }
    if (status == WAL_ELOCKED) {
        return wal__fail_at(error, status, 0, path, 0,
                            "another process has the copy open");
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_open(error, status, err, path,
                                             "cannot lock the copy");
}

/* A directory without a manifest may hold a backup that was interrupted, and
 * no other segments. */
static enum wal_status check_unfinished(struct backup *backup,
                                        struct wal_error *error)
{
    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        struct wal__buf ids = {0};
        enum wal_status status =
            wal__log_list_ids(&backup->streams[i].dest, &ids, error);
        bool is_empty = ids.size == 0;

        wal__buf_deinit(&ids);
        if (status != WAL_OK) {
            return status;
        }
        if (!is_empty) {
            return wal__fail_at(error, WAL_EEXISTS, 0, backup->dest.root, 0,
                                "segments of a store without a manifest are "
                                "there; back up to another directory");
        }
    }
    return WAL_OK;
}

enum wal_status wal__backup_open_dest(struct backup *backup,
                                      struct wal_error *error)
{
    enum wal_status status = check_outside(backup, error);

    if (status == WAL_OK) {
        status = read_manifest(backup, error);
    }
    if (status == WAL_OK && !backup->is_store) {
        status = make_directories(backup, error);
    }
    if (status == WAL_OK) {
        status = lock_dest(backup, error);
    }
    /* Another process may have completed it meanwhile. */
    if (status == WAL_OK) {
        status = read_manifest(backup, error);
    }
    if (status == WAL_OK && backup->is_store && backup->manifest.has_shadows) {
        status = wal__shadow_finish(&backup->dest, &backup->manifest, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__backup_state_read(&backup->dest, backup->source_manifest.uuid,
                           &backup->state);
    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        backup->streams[i].state = backup->state.streams[i];
        backup->streams[i].has_state = backup->state.is_valid;
    }
    return backup->is_store || backup->state.is_valid
               ? WAL_OK
               : check_unfinished(backup, error);
}

enum wal_status wal__backup_make_pack(const struct backup *backup,
                                      struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    dest_path(backup, "pack", path);
    status = io->make_directory(io->ctx, path, &err);
    if (status == WAL_EEXISTS) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = io->sync_directory(io->ctx, backup->dest.root, &err);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, path, 0,
                                           "cannot create the directory");
}

enum wal_status wal__backup_remove_derived(const struct backup *backup,
                                           struct wal_error *error)
{
    const struct wal__io *io = backup->dest.io;
    char paths[1 + WAL__LOG_COUNT][WAL__PATH_MAX];
    bool removed = false;

    dest_path(backup, "index/catalogue", paths[0]);
    for (uint32_t i = 0; i < WAL__LOG_COUNT; i++) {
        const struct wal__segment *newest = backup->streams[i].newest;

        wal__index_path(&backup->dest, i, newest == NULL ? 0 : newest->id,
                        paths[1 + i]);
    }
    for (size_t i = 0; i < 1 + WAL__LOG_COUNT; i++) {
        int err = 0;
        enum wal_status status = io->unlink(io->ctx, paths[i], &err);

        if (status != WAL_OK && status != WAL_ENOTFOUND) {
            return wal__fail_at(error, status, err, paths[i], 0,
                                "cannot remove an index of the copy");
        }
        removed |= status == WAL_OK;
    }
    return removed ? wal__backup_sync_directory(backup, "index", error)
                   : WAL_OK;
}

void wal__backup_close_dest(struct backup *backup)
{
    const struct wal__io *io = backup->dest.io;

    if (backup->dest_lock != NULL) {
        io->close(io->ctx, backup->dest_lock);
        backup->dest_lock = NULL;
    }
}
