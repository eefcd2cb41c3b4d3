/*
 * index_file.c - mapping and writing the files of index/ (SPEC.md 3.6).
 *
 * Invariant: a file is renamed to its name when it is complete and synced, by one process at a
 * time.
 */
#include "engine/log/index_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/locks.h"
#include "format/bytes/assert.h"

enum wal_status wal__index_read_sealed(struct wal__segment *segment, struct wal__span *bytes,
                                       void **owned)
{
    const struct wal__env *env = segment->env;
    struct wal__cipher cipher = {0};
    enum wal_status status;

    uint64_t offset = segment->trailer.index_offset;
    uint64_t capacity = segment->header.capacity;
    struct wal__frame frame;
    const uint8_t *map;

    *owned = NULL;
    if (offset + WAL__FRAME_SIZE > capacity) {
        return WAL_ENOTFOUND;
    }
    map = wal__segment_map(segment, NULL);
    if (map == NULL) {
        return wal__segment_map_status(segment);
    }
    if (wal__frame_decode(map + offset, capacity - offset, segment->header.salt, offset, &frame) !=
            WAL__FMT_OK ||
        frame.type != WAL__FRAME_INDEX) {
        return WAL_ENOTFOUND;
    }
    bytes->data = map + offset + WAL__FRAME_SIZE;
    bytes->size = frame.stored_size;
    if (!wal__encrypt_covers(&segment->header, frame.type)) {
        return WAL_OK;
    }
    *owned = wal__heap_alloc(env->heap, frame.stored_size);
    if (*owned == NULL) {
        return WAL_ENOMEM;
    }
    status = wal__decrypt_frame(env->keyring, &cipher, &segment->header, offset, &frame,
                                bytes->data, *owned);
    wal__cipher_deinit(&cipher);
    if (status != WAL_OK) {
        wal__heap_free(env->heap, *owned);
        *owned = NULL;
        return status == WAL_ENOMEM ? status : WAL_ENOTFOUND;
    }
    *bytes = (struct wal__span){*owned, frame.stored_size};
    return WAL_OK;
}

enum wal_status wal__mapped_file_open(const struct wal__env *env, const char *path,
                                      struct wal__mapped_file *mapped, struct wal_error *error)
{
    const struct wal__io *io = env->io;
    struct wal__mapped_file opened = {0};
    struct wal__io_stat stat = {0};
    enum wal_status status;
    int err = 0;

    status = io->open(io->ctx, path, 0, &opened.file, &err);
    if (status == WAL_EIO && (err == ELOOP || err == EISDIR || err == ENXIO)) {
        status = WAL_ECORRUPT; /* not a file: replaced, as a damaged one is */
    }
    if (status != WAL_OK) {
        return wal__fail_open(error, status, err, path, "cannot open the file");
    }
    status = io->stat(io->ctx, opened.file, &stat, &err);
    if (status == WAL_OK && stat.size == 0) {
        status = WAL_ECORRUPT;
    }
    if (status == WAL_OK) {
        status = io->map(io->ctx, opened.file, stat.size, false, &opened.at, &err);
    }
    if (status != WAL_OK) {
        io->close(io->ctx, opened.file);
        return wal__fail_at(error, status, err, path, 0, "cannot map the file");
    }
    WAL__ASSERT(opened.at != NULL && stat.size > 0);
    opened.size = stat.size;
    *mapped = opened;
    return WAL_OK;
}

/* The name by which a file is encrypted. */
static const char *name_of(const char *path)
{
    return strrchr(path, '/') + 1;
}

/* Puts the decrypted bytes in place of the map. */
static enum wal_status decrypt(const struct wal__env *env, const char *path,
                               struct wal__mapped_file *mapped)
{
    const struct wal__span stored = {mapped->at, (size_t)mapped->size};
    struct wal__mapped_file plain = {.is_decrypted = true, .size = wal__decrypted_size(stored)};
    enum wal_status status = WAL_ECORRUPT;

    if (plain.size > 0) {
        plain.at = wal__heap_alloc(env->heap, (size_t)plain.size);
        status = plain.at == NULL
                     ? WAL_ENOMEM
                     : wal__decrypt_file(env->keyring, name_of(path), stored, plain.at);
    }
    wal__mapped_file_close(env, mapped);
    *mapped = plain;
    if (status != WAL_OK) {
        wal__mapped_file_close(env, mapped);
    }
    return status == WAL_EKEY ? WAL_ECORRUPT : status;
}

enum wal_status wal__index_file_open(const struct wal__env *env, const char *path,
                                     struct wal__mapped_file *mapped, struct wal_error *error)
{
    enum wal_status status = wal__mapped_file_open(env, path, mapped, error);

    if (status == WAL_OK && env->keyring != NULL) {
        status = decrypt(env, path, mapped);
        if (status != WAL_OK) {
            wal__fail_at(error, status, 0, path, 0, "cannot decrypt the file");
        }
    }
    return status;
}

void wal__mapped_file_close(const struct wal__env *env, struct wal__mapped_file *mapped)
{
    if (mapped->is_decrypted) {
        wal__heap_free(env->heap, mapped->at);
    } else if (mapped->at != NULL) {
        env->io->unmap(env->io->ctx, mapped->at, mapped->size);
    }
    if (mapped->file != NULL) {
        env->io->close(env->io->ctx, mapped->file);
    }
    memset(mapped, 0, sizeof(*mapped));
}

void wal__index_path(const struct wal__env *env, uint32_t log_id, uint64_t id,
                     char out[WAL__PATH_MAX])
{
    wal__env_path(env, out, "index/%s%016" PRIx64 ".idx", log_id == WAL__LOG_ID_PACK ? "pack-" : "",
                  id);
}

static void unlock(struct wal__index_writer *writer)
{
    int ignored = 0;

    if (writer->control != NULL) {
        /* A byte that the kernel keeps only delays derived files. */
        (void)!wal__control_set_lock(writer->control, writer->lock, WAL__IO_LOCK_NONE, &ignored);
    }
}

enum wal_status wal__index_writer_open(struct wal__index_writer *writer, const struct wal__env *env,
                                       struct wal__control *control, uint64_t lock,
                                       const char *path)
{
    const struct wal__io *io = env->io;
    enum wal_status status = WAL_OK;
    int size;

    memset(writer, 0, sizeof(*writer));
    writer->env = env;
    writer->control = control;
    writer->lock = lock;
    wal__buf_init(&writer->plain, env->heap);
    size = snprintf(writer->path, sizeof(writer->path), "%s", path);
    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
    size =
        snprintf(writer->temporary, sizeof(writer->temporary), "%.*s.new", WAL__PATH_MAX - 8, path);
    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
    if (control != NULL) {
        status = wal__control_set_lock(control, lock, WAL__IO_LOCK_EXCLUSIVE, &writer->sys_errno);
    }
    if (status != WAL_OK) {
        return status == WAL_ELOCKED ? WAL_EEXISTS : status;
    }
    /* A process that was killed may have left it. */
    (void)!io->unlink(io->ctx, writer->temporary, &writer->sys_errno);
    status =
        io->open(io->ctx, writer->temporary, WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_EXCLUSIVE,
                 &writer->file, &writer->sys_errno);
    if (status != WAL_OK) {
        unlock(writer);
    }
    return status;
}

static bool encrypts(const struct wal__index_writer *writer)
{
    return writer->env->keyring != NULL && writer->control != NULL;
}

/* Keeps bytes at the offset, up to which all is there, until the file is closed. */
static enum wal_status keep_plain(struct wal__index_writer *writer, const void *data, size_t size)
{
    struct wal__buf *plain = &writer->plain;
    uint8_t *ignored;

    WAL__ASSERT(writer->offset <= plain->size);
    if (writer->offset + size > plain->size) {
        if (wal__buf_reserve(plain, (size_t)writer->offset + size - plain->size, &ignored) !=
            WAL_OK) {
            return WAL_ENOMEM;
        }
        plain->size = (size_t)writer->offset + size;
    }
    memcpy(plain->data + writer->offset, data, size);
    return WAL_OK;
}

enum wal_status wal__index_writer_write(void *ctx, const void *data, size_t size)
{
    struct wal__index_writer *writer = ctx;
    struct iovec iov = {(void *)(uintptr_t)data, size};
    enum wal_status status;

    status = encrypts(writer) ? keep_plain(writer, data, size)
                              : wal__io_write_full(writer->env->io, writer->file, &iov, 1,
                                                   writer->offset, &writer->sys_errno);
    writer->offset += size;
    return status;
}

/* Encrypts what was written, and writes that. */
static enum wal_status write_encrypted(struct wal__index_writer *writer)
{
    const struct wal__span plain = {writer->plain.data, writer->plain.size};
    struct iovec iov = {.iov_len = (size_t)wal__encrypted_size(plain.size, writer->page_size)};
    uint8_t *out = wal__heap_alloc(writer->env->heap, iov.iov_len);
    enum wal_status status;

    if (out == NULL) {
        return WAL_ENOMEM;
    }
    iov.iov_base = out;
    status = wal__encrypt_pages(writer->env->keyring, name_of(writer->path), plain,
                                writer->page_size, out);
    if (status == WAL_OK) {
        status = wal__io_write_full(writer->env->io, writer->file, &iov, 1, 0, &writer->sys_errno);
    }
    wal__heap_free(writer->env->heap, out);
    return status;
}

enum wal_status wal__index_writer_close(struct wal__index_writer *writer, enum wal_status status)
{
    const struct wal__io *io = writer->env->io;
    char directory[WAL__PATH_MAX];
    int ignored = 0;

    if (status == WAL_OK && encrypts(writer)) {
        status = write_encrypted(writer);
    }
    wal__buf_deinit(&writer->plain);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, writer->file, &writer->sys_errno);
    }
    io->close(io->ctx, writer->file);
    if (status == WAL_OK) {
        status = io->rename(io->ctx, writer->temporary, writer->path, &writer->sys_errno);
    }
    if (status == WAL_OK) {
        memcpy(directory, writer->path, sizeof(directory));
        *strrchr(directory, '/') = '\0';
        status = wal__control_sync_directory(writer->control, io, directory, &writer->sys_errno);
    } else {
        (void)!io->unlink(io->ctx, writer->temporary, &ignored);
    }
    unlock(writer);
    return status;
}

/* --- the index of a segment --------------------------------------------- */

enum wal_status wal__index_file_write(const struct wal__log *log, uint64_t id,
                                      struct wal__span bytes, struct wal_error *error)
{
    struct wal__index_writer writer;
    char path[WAL__PATH_MAX];
    enum wal_status status;

    wal__index_path(log->env, log->log_id, id, path);
    if (log->env->read_only) {
        return WAL_EREADONLY;
    }
    status = wal__index_writer_open(&writer, log->env, log->control, WAL__LOCK_INDEX + log->log_id,
                                    path);
    if (status == WAL_OK) {
        status = wal__index_writer_write(&writer, bytes.data, bytes.size);
        status = wal__index_writer_close(&writer, status);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, writer.sys_errno, path, 0,
                            "cannot write the index file of the segment");
    }
    return WAL_OK;
}

enum wal_status wal__index_sync_directory(const struct wal__log *log)
{
    const struct wal__env *env = log->env;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__env_path(env, path, "index");
    status = wal__control_sync_directory(log->control, env->io, path, &err);
    /* A store may be without the directory: it has derived files only. */
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

enum wal_status wal__index_file_remove(const struct wal__log *log, uint64_t id)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    wal__index_path(log->env, log->log_id, id, path);
    status = io->unlink(io->ctx, path, &err);
    return status == WAL_OK || status == WAL_ENOTFOUND ? wal__index_sync_directory(log) : status;
}

enum wal_status wal__index_file_write_tail(struct wal__log *log, struct wal_error *error)
{
    struct wal__index_header header;
    struct wal__buf bytes;
    struct wal__span span;
    enum wal_status status;

    wal__buf_init(&bytes, log->env->heap);
    wal__log_index_header(log, log->tail_segment, &header);
    status = log->client.encode_index(log->client.ctx, &header, &bytes);
    if (status != WAL_OK) {
        wal__fail_at(error, status, 0, log->tail_segment->path, 0,
                     "cannot encode the index of the tail segment");
    } else {
        WAL__ASSERT(bytes.size >= WAL__FRAME_SIZE);
        span.data = bytes.data + WAL__FRAME_SIZE;
        span.size = bytes.size - WAL__FRAME_SIZE;
        status = wal__index_file_write(log, log->tail_segment->id, span, error);
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_OK) {
        atomic_store(&log->shared->indexed_tail_id, log->tail_segment->id);
    }
    return status;
}

bool wal__index_file_can_write_tail(const struct wal__log *log)
{
    return log->tail_segment != NULL && !log->needs_reload && !log->tail_segment->sealed &&
           !log->must_rotate && log->marked &&
           atomic_load(&log->end) == atomic_load(&log->shared->written) &&
           atomic_load(&log->end) <= atomic_load(&log->shared->durable) &&
           atomic_load(&log->shared->indexed_tail_id) != log->tail_segment->id;
}

bool wal__index_matches_tail(struct wal__log *log, const struct wal__index_header *header,
                             uint64_t *pack_durable)
{
    struct wal__segment *tail = log->tail_segment;
    struct wal__commit_record commit;
    struct wal__frame frame;
    uint64_t position;

    if (header->end > tail->header.capacity) {
        return false;
    }
    position = wal__position(tail->id, header->commit_offset);
    if (wal__log_read_commit(log, position, &frame, &commit) != WAL_OK ||
        wal__frame_chain_crc(commit.chain, &frame) != header->chain ||
        commit.epoch != header->epoch) {
        return false;
    }
    *pack_durable = commit.pack_durable;
    return true;
}
