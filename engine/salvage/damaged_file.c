/*
 * damaged_file.c - see damaged_file.h.
 */
#include "engine/salvage/damaged_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/fmt.h"

enum {
    WINDOW_SIZE = 256 * 1024,
    BLOCK_SIZE = 512, /* the smallest unit that a disk fails to read */
    FILLER = 0xa5
};

enum wal_status wal__damaged_file_open(struct wal__damaged_file *file,
                                       const struct wal__env *env,
                                       const char *name)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    struct wal__io_stat stat;
    enum wal_status status;
    int err = 0;
    int size = snprintf(path, sizeof(path), "%s/%s", env->root, name);

    WAL__ASSERT(size > 0 && size < WAL__PATH_MAX);
    memset(file, 0, sizeof(*file));
    file->env = env;
    wal__buf_init(&file->window, env->heap);
    status = io->open(io->ctx, path, 0, &file->file, &err);
    if (status != WAL_OK) {
        file->file = NULL;
        return status;
    }
    status = io->stat(io->ctx, file->file, &stat, &err);
    if (status != WAL_OK) {
        wal__damaged_file_close(file);
        return status;
    }
    file->size = stat.size;
    return WAL_OK;
}

void wal__damaged_file_close(struct wal__damaged_file *file)
{
    if (file->file != NULL) {
        file->env->io->close(file->env->io->ctx, file->file);
        wal__buf_deinit(&file->window);
    }
    file->file = NULL;
}

/* Moves the window to `offset` and keeps the bytes that it has from there. */
static void slide_window(struct wal__damaged_file *file, uint64_t offset)
{
    struct wal__buf *window = &file->window;
    uint64_t end = file->offset + window->size;
    size_t kept = 0;

    if (offset >= file->offset && offset < end) {
        kept = (size_t)(end - offset);
        memmove(window->data, window->data + (window->size - kept), kept);
    }
    file->offset = offset;
    window->size = kept;
}

/* Replaces an unreadable block by filler bytes. */
static void skip_block(struct wal__damaged_file *file, size_t size)
{
    uint64_t at = file->offset + file->window.size;

    memset(file->window.data + file->window.size, FILLER, size);
    file->window.size += size;
    if (file->bad_end == 0 || at < file->bad_offset) {
        file->bad_offset = at;
    }
    if (at + size > file->bad_end) {
        file->bad_end = at + size;
    }
}

/* Reads until the window holds at least `min` bytes, and up to `max`. After an
 * error it reads block by block, to lose as little as possible. */
static bool fill_window(struct wal__damaged_file *file, size_t min, size_t max)
{
    const struct wal__io *io = file->env->io;
    struct wal__buf *window = &file->window;

    while (window->size < min) {
        uint64_t at = file->offset + window->size;
        size_t left = max - window->size;
        size_t block = BLOCK_SIZE - (size_t)(at % BLOCK_SIZE);
        size_t got = 0;
        int err = 0;

        block = block < left ? block : left;
        if (io->pread(io->ctx, file->file, window->data + window->size, left,
                      at, &got, &err) != WAL_OK &&
            io->pread(io->ctx, file->file, window->data + window->size, block,
                      at, &got, &err) != WAL_OK) {
            skip_block(file, block);
            continue;
        }
        if (got == 0) {
            return false; /* the file is shorter now */
        }
        window->size += got;
    }
    return true;
}

const uint8_t *wal__damaged_file_fetch(void *ctx, uint64_t offset,
                                       uint64_t size)
{
    struct wal__damaged_file *file = ctx;
    struct wal__buf *window = &file->window;
    uint64_t want = size < WINDOW_SIZE / 2 ? WINDOW_SIZE : size * 2;
    uint8_t *end;

    if (offset > file->size || size > file->size - offset) {
        return NULL;
    }
    if (offset >= file->offset &&
        offset + size <= file->offset + window->size) {
        return window->data + (offset - file->offset);
    }
    if (want > file->size - offset) {
        want = file->size - offset;
    }
    slide_window(file, offset);
    if (wal__buf_reserve(window, (size_t)want - window->size, &end) != WAL_OK) {
        file->out_of_memory = true;
        return NULL;
    }
    return fill_window(file, (size_t)size, (size_t)want) ? window->data : NULL;
}

struct wal__span wal__damaged_file_read(struct wal__damaged_file *file,
                                        uint64_t salt, uint64_t offset,
                                        uint8_t type, struct wal__frame *frame)
{
    const struct wal__span none = {NULL, 0};
    const uint8_t *bytes =
        wal__damaged_file_fetch(file, offset, WAL__FRAME_SIZE);

    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - offset, salt, offset, frame) !=
            WAL__FMT_OK ||
        frame->type != type) {
        return none;
    }
    bytes = wal__damaged_file_fetch(file, offset,
                                    wal__frame_total_size(frame->stored_size));
    if (bytes == NULL ||
        wal__frame_check_data(frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return none;
    }
    return (struct wal__span){bytes + WAL__FRAME_SIZE, frame->stored_size};
}

struct wal__span wal__damaged_file_frame(struct wal__damaged_file *file,
                                         uint64_t salt, uint64_t offset,
                                         uint8_t type)
{
    struct wal__frame frame;

    return wal__damaged_file_read(file, salt, offset, type, &frame);
}

struct wal__span wal__damaged_file_load(struct wal__damaged_file *file,
                                        const struct wal__env *env,
                                        const char *name)
{
    struct wal__span bytes = {NULL, 0};

    if (wal__damaged_file_open(file, env, name) == WAL_OK && file->size > 0) {
        bytes.data = wal__damaged_file_fetch(file, 0, file->size);
        bytes.size = bytes.data == NULL ? 0 : (size_t)file->size;
    }
    return bytes;
}
