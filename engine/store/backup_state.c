/*
 * backup_state.c - the file index/backup of a copy (backup_state.h).
 */
#include "engine/store/backup_state.h"

#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/index_file.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

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

static void state_path(const struct wal__env *env, char out[WAL__PATH_MAX])
{
    int size = snprintf(out, WAL__PATH_MAX, "%s/index/backup", env->root);

    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
}

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
    state_path(env, path);
    if (io->open(io->ctx, path, 0, &file, &err) != WAL_OK) {
        return;
    }
    if (wal__io_read_full(io, file, at, sizeof(at), 0, &got, &err) == WAL_OK &&
        got == sizeof(at) && memcmp(at, magic, sizeof(magic)) == 0 &&
        wal__get32(at + AT_CRC) == wal__crc32(0, at, AT_CRC) &&
        wal__get32(at + AT_VERSION) == VERSION &&
        memcmp(at + AT_UUID, uuid, 16) == 0) {
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

enum wal_status wal__backup_state_write(const struct wal__env *env,
                                        const uint8_t uuid[16],
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
    state_path(env, path);
    status = wal__index_writer_open(&writer, env, NULL, 0, path);
    if (status == WAL_OK) {
        status = wal__index_writer_write(&writer, at, sizeof(at));
        status = wal__index_writer_close(&writer, status);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, writer.sys_errno, path, 0,
                              "cannot write the state of the backup");
}

enum wal_status wal__backup_state_doubt(const struct wal__env *env,
                                        uint32_t log_id, uint64_t id,
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
    state_path(env, path);
    status = io->open(io->ctx, path, WAL__IO_WRITE, &file, &err);
    if (status == WAL_OK) {
        status = wal__io_write_full(io, file, &iov, 1,
                                    AT_DOUBTS + log_id * UINT64_C(8), &err);
        io->close(io->ctx, file);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__fail_at(error, status, err, path, 0,
                              "cannot write the state of the backup");
}
