/*
 * copy_state.c - what a copy of a store keeps of its backup (copy_state.h): the names of its
 * segments, and the file index/backup.
 *
 * Invariant: MANIFEST has `shadow` durably before the first name changes, and until the last change
 * of a name is durable. While it has that, a segment may have either name, and guards do not count.
 */
#include "engine/store/copy_state.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/log/index_file.h"
#include "engine/log/log.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

static enum wal_status rename_file(const struct wal__log *log, uint64_t id, bool to_shadow,
                                   struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    char shadow[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__segment_path(log->env, log->directory, id, path);
    wal__segment_shadow_path(log->env, log->directory, id, shadow);
    status = io->rename(io->ctx, to_shadow ? path : shadow, to_shadow ? shadow : path, &err);
    return status == WAL_OK || status == WAL_ENOTFOUND
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot rename the segment of the copy");
}

/* What the name of a segment depends on. One that has no valid header is neither a guard nor
 * written by compaction. */
struct look {
    bool is_guard;
    bool is_rewritten;
    bool is_shadow;
};

static enum wal_status look_at(const struct wal__log *log, uint64_t id, struct look *look,
                               struct wal_error *error)
{
    struct wal__segment *segment = NULL;
    char path[WAL__PATH_MAX];
    enum wal_status status =
        wal__segment_open(log->env, log->directory, id, log->uuid, log->class, &segment, error);

    *look = (struct look){0};
    if (status == WAL_OK) {
        look->is_guard = wal__segment_is_guard(&segment->header);
        look->is_rewritten = wal__segment_is_rewritten(&segment->header);
        wal__segment_shadow_path(log->env, log->directory, id, path);
        look->is_shadow = strcmp(segment->path, path) == 0;
        wal__segment_close(segment);
    }
    return status == WAL_END || status == WAL_ECORRUPT ? WAL_OK : status;
}

/* Gives all files the names that they had when the backup committed: what an earlier process
 * renamed may not be durable, and a sync proves nothing once one has failed. */
static enum wal_status undo(const struct wal__log *log, const struct wal__buf *ids,
                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (size_t at = 0; at < ids->size && status == WAL_OK; at += sizeof(uint64_t)) {
        struct look look;
        uint64_t id;

        memcpy(&id, ids->data + at, sizeof(id));
        status = look_at(log, id, &look, error);
        if (status == WAL_OK && (look.is_shadow ? look.is_guard : look.is_rewritten)) {
            status = rename_file(log, id, !look.is_shadow, error);
        }
    }
    return status;
}

/* Gives the shadow segments their names, and removes the guard, which is the newest segment if
 * there is one. */
static enum wal_status move(const struct wal__log *log, const struct wal__buf *ids,
                            struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    enum wal_status status = WAL_OK;
    struct look look = {0};
    char path[WAL__PATH_MAX];
    uint64_t id = 0;
    int err = 0;

    for (size_t at = 0; at < ids->size && status == WAL_OK; at += sizeof(id)) {
        memcpy(&id, ids->data + at, sizeof(id));
        if (at + sizeof(id) == ids->size) {
            status = look_at(log, id, &look, error);
        }
        if (status == WAL_OK) {
            status = rename_file(log, id, look.is_guard, error);
        }
    }
    if (status != WAL_OK || ids->size == 0) {
        return status; /* a store without content has no directory "pack" */
    }
    wal__env_path(log->env, path, "%s", log->directory);
    status = io->sync_directory(io->ctx, path, &err);
    if (status == WAL_OK && look.is_guard) {
        /* Best effort: a name that does not count. */
        wal__segment_shadow_path(log->env, log->directory, id, path);
        (void)!io->unlink(io->ctx, path, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot sync the directory");
}

static enum wal_status move_streams(const struct wal__env *env, const uint8_t uuid[16], bool again,
                                    struct wal_error *error)
{
    static const char *const directories[] = {"log", "pack"};
    static const uint32_t classes[] = {WAL__CLASS_LOG, WAL__CLASS_PACK};
    struct wal__env look = *env;
    enum wal_status status = WAL_OK;

    look.read_only = true;
    look.has_shadows = true;
    for (size_t i = 0; i < WAL__LOG_COUNT && status == WAL_OK; i++) {
        struct wal__log log = {.env = &look, .directory = directories[i], .class = classes[i]};
        struct wal__buf ids;

        memcpy(log.uuid, uuid, sizeof(log.uuid));
        status = wal__log_list_ids(&log, &ids, error);
        if (status == WAL_OK && again) {
            status = undo(&log, &ids, error);
        }
        if (status == WAL_OK) {
            status = move(&log, &ids, error);
        }
        wal__buf_deinit(&ids);
    }
    return status;
}

enum wal_status wal__shadow_move(const struct wal__env *env, const uint8_t uuid[16],
                                 struct wal_error *error)
{
    return move_streams(env, uuid, false, error);
}

enum wal_status wal__shadow_finish(const struct wal__env *env, struct wal__manifest *manifest,
                                   struct wal_error *error)
{
    struct wal__manifest next = *manifest;
    /* Again, for the same reason as the names. */
    enum wal_status status = wal__manifest_replace(env, manifest, &next, error);

    WAL__ASSERT(next.has_shadows);
    if (status == WAL_OK) {
        status = move_streams(env, manifest->uuid, true, error);
    }
    next.has_shadows = false;
    return status == WAL_OK ? wal__manifest_replace(env, manifest, &next, error) : status;
}

enum {
    AT_MAGIC = 0,
    AT_VERSION = 8,
    AT_UUID = 16,
    AT_STREAMS = 32,
    STREAM_SIZE = 24,
    AT_CRC = AT_STREAMS + WAL__LOG_COUNT * STREAM_SIZE, /* of all before */
    AT_DOUBTS = AT_CRC + 8, /* in a sector with the rest, and in no CRC */
    STATE_SIZE = AT_DOUBTS + WAL__LOG_COUNT * 8,
    VERSION = 1
};

static const uint8_t magic[8] = {'A', 'G', 'W', 'A', 'L', 'B', 'A', 'K'};

#define STATE_NAME "index/backup"

void wal__backup_state_read(const struct wal__env *env, const uint8_t uuid[16],
                            struct wal__backup_state *state)
{
    const struct wal__io *io = env->io;
    uint8_t at[STATE_SIZE];
    struct wal__file *file = NULL;
    char path[WAL__PATH_MAX];
    size_t got = 0;
    int err = 0;

    memset(state, 0, sizeof(*state));
    wal__env_path(env, path, STATE_NAME);
    if (io->open(io->ctx, path, 0, &file, &err) != WAL_OK) {
        return;
    }
    if (wal__io_read_full(io, file, at, sizeof(at), 0, &got, &err) == WAL_OK && got == sizeof(at) &&
        memcmp(at, magic, sizeof(magic)) == 0 &&
        wal__get32(at + AT_CRC) == wal__crc32(0, at, AT_CRC) &&
        wal__get32(at + AT_VERSION) == VERSION && memcmp(at + AT_UUID, uuid, 16) == 0) {
        state->is_valid = true;
        for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
            const uint8_t *from = at + AT_STREAMS + i * STREAM_SIZE;

            state->streams[i].before = wal__get64(from);
            state->streams[i].after = wal__get64(from + 8);
            state->streams[i].guard_id = wal__get64(from + 16);
            state->streams[i].doubt = wal__get64(at + AT_DOUBTS + i * 8);
        }
    }
    io->close(io->ctx, file);
}

enum wal_status wal__backup_state_write(const struct wal__env *env, const uint8_t uuid[16],
                                        const struct wal__backup_state *state,
                                        struct wal_error *error)
{
    struct wal__index_writer writer;
    uint8_t at[STATE_SIZE] = {0};
    char path[WAL__PATH_MAX];
    enum wal_status status;

    memcpy(at + AT_MAGIC, magic, sizeof(magic));
    wal__put32(at + AT_VERSION, VERSION);
    memcpy(at + AT_UUID, uuid, 16);
    for (size_t i = 0; i < WAL__LOG_COUNT; i++) {
        uint8_t *to = at + AT_STREAMS + i * STREAM_SIZE;

        wal__put64(to, state->streams[i].before);
        wal__put64(to + 8, state->streams[i].after);
        wal__put64(to + 16, state->streams[i].guard_id);
        wal__put64(at + AT_DOUBTS + i * 8, state->streams[i].doubt);
    }
    wal__put32(at + AT_CRC, wal__crc32(0, at, AT_CRC));
    wal__env_path(env, path, STATE_NAME);
    status = wal__index_writer_open(&writer, env, NULL, 0, path);
    if (status == WAL_OK) {
        status = wal__index_writer_write(&writer, at, sizeof(at));
        status = wal__index_writer_close(&writer, status);
    }
    return status == WAL_OK ? WAL_OK
                            : wal__fail_at(error, status, writer.sys_errno, path, 0,
                                           "cannot write the state of the backup");
}

enum wal_status wal__backup_state_doubt(const struct wal__env *env, uint32_t log_id, uint64_t id,
                                        struct wal_error *error)
{
    const struct wal__io *io = env->io;
    uint8_t bytes[8];
    struct iovec iov = {bytes, sizeof(bytes)};
    struct wal__file *file = NULL;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    WAL__ASSERT(log_id < WAL__LOG_COUNT);
    wal__put64(bytes, id);
    wal__env_path(env, path, STATE_NAME);
    status = io->open(io->ctx, path, WAL__IO_WRITE, &file, &err);
    if (status == WAL_OK) {
        status = wal__io_write_full(io, file, &iov, 1, AT_DOUBTS + log_id * UINT64_C(8), &err);
        io->close(io->ctx, file);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot write the state of the backup");
}

enum wal_status wal__copy_make_pack(const struct wal__env *env, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(env, path, "pack");
    status = io->make_directory(io->ctx, path, &err);
    if (status == WAL_OK || status == WAL_EEXISTS) {
        status = io->sync_directory(io->ctx, env->root, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0, "cannot create the directory");
}
