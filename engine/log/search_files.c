/*
 * search_files.c - removing the index files of search that belong to no segment
 * (search_files.h).
 *
 * Invariant: a file that stays belongs to the segment that has its id in log/.
 */
#include "engine/log/search_files.h"

#include <stdio.h>

#include "engine/base/buf.h"
#include "engine/base/error.h"
#include "engine/log/segment.h"
#include "format/bytes/assert.h"
#include "format/index/search_file.h"

struct sweep {
    const struct wal__env *env;
    struct wal__buf names; /* of WAL__SEARCH_FILE_NAME bytes each */
    bool has_removed;
    bool was_named; /* a file that was being made, since it was listed */
};

static enum wal_status add_name(void *ctx, const char *name)
{
    struct sweep *sweep = ctx;
    char copy[WAL__SEARCH_FILE_NAME] = {0};
    enum wal__search_kind kind;
    bool is_temporary;
    uint64_t id;

    if (!wal__search_file_is_name(name, &id, &kind, &is_temporary)) {
        return WAL_OK;
    }
    WAL__ASSERT(strlen(name) < sizeof(copy));
    memcpy(copy, name, strlen(name));
    return wal__buf_append(&sweep->names, copy, sizeof(copy));
}

static void make_path(const struct wal__env *env, const char *directory,
                      const char *name, char out[WAL__PATH_MAX])
{
    int size =
        snprintf(out, WAL__PATH_MAX, "%s/%s/%s", env->root, directory, name);

    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
}

/* Reads the first `size` bytes of a file. */
static enum wal_status read_start(const struct wal__env *env, const char *path,
                                  uint8_t *bytes, size_t size)
{
    const struct wal__io *io = env->io;
    struct wal__file *file;
    size_t bytes_read = 0;
    int err = 0;
    enum wal_status status = io->open(io->ctx, path, 0, &file, &err);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__io_read_full(io, file, bytes, size, 0, &bytes_read, &err);
    io->close(io->ctx, file);
    return status == WAL_OK && bytes_read < size ? WAL_ENOTFOUND : status;
}

/* The salt of the segment that has the id; false when none is there. */
static bool read_salt(const struct wal__env *env, uint64_t id, uint64_t *salt)
{
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header header;
    char path[WAL__PATH_MAX];

    wal__segment_path(env, "log", id, path);
    if (read_start(env, path, bytes, sizeof(bytes)) != WAL_OK ||
        wal__segment_header_decode(bytes, &header) != WAL__FMT_OK) {
        return false;
    }
    *salt = header.salt;
    return true;
}

static bool belongs(const struct wal__env *env, const char *path, uint64_t id)
{
    uint8_t bytes[WAL__SEARCH_FILE_HEADER];
    const struct wal__span span = {bytes, sizeof(bytes)};
    struct wal__search_file file;
    uint64_t salt;

    return read_start(env, path, bytes, sizeof(bytes)) == WAL_OK &&
           wal__search_file_decode(span, &file) == WAL__FMT_OK &&
           file.id == id && read_salt(env, id, &salt) && salt == file.identity;
}

static enum wal_status consider(struct sweep *sweep, const char *name,
                                struct wal_error *error)
{
    const struct wal__env *env = sweep->env;
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal__search_kind kind;
    bool is_temporary = false;
    enum wal_status status;
    uint64_t id = 0;
    int err = 0;

    if (!wal__search_file_is_name(name, &id, &kind, &is_temporary)) {
        return WAL_OK;
    }
    make_path(env, "index", name, path);
    if (!is_temporary && belongs(env, path, id)) {
        return WAL_OK;
    }
    status = io->unlink(io->ctx, path, &err);
    sweep->has_removed |= status == WAL_OK;
    sweep->was_named |= is_temporary && status == WAL_ENOTFOUND;
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot remove an index of what was replaced");
}

/* A power cut must not bring back what was erased. */
static enum wal_status sync_index(const struct wal__env *env,
                                  const struct wal__control *control,
                                  const char *path, struct wal_error *error)
{
    int err = 0;
    enum wal_status status =
        wal__control_sync_directory(control, env->io, path, &err);

    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, err, path, 0,
                                           "cannot sync the directory");
}

enum wal_status wal__search_files_sweep(const struct wal__env *env,
                                        const struct wal__control *control,
                                        struct wal_error *error)
{
    struct sweep sweep = {.env = env};
    char path[WAL__PATH_MAX];
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/index", env->root);
    enum wal_status status;

    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    wal__buf_init(&sweep.names, env->heap);
    do {
        sweep.was_named = false;
        sweep.names.size = 0;
        status = env->io->list(env->io->ctx, path, add_name, &sweep, &err);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK; /* the directory is derived and may be missing */
        } else if (status != WAL_OK) {
            status = wal__fail_at(error, status, err, path, 0,
                                  "cannot list the indexes of search");
        }
        for (size_t at = 0; at < sweep.names.size && status == WAL_OK;
             at += WAL__SEARCH_FILE_NAME) {
            status =
                consider(&sweep, (const char *)sweep.names.data + at, error);
        }
    } while (status == WAL_OK && sweep.was_named);
    if (status == WAL_OK && sweep.has_removed) {
        status = sync_index(env, control, path, error);
    }
    wal__buf_deinit(&sweep.names);
    return status;
}
