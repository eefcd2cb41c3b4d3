/*
 * source_file.c - see source_file.h.
 */
#include "engine/salvage/source_file.h"

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

enum wal_status wal__source_file_open(struct wal__source_file *source_file,
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
    memset(source_file, 0, sizeof(*source_file));
    source_file->env = env;
    wal__buf_init(&source_file->window, env->heap);
    status = io->open(io->ctx, path, 0, &source_file->file, &err);
    if (status != WAL_OK) {
        source_file->file = NULL;
        return status;
    }
    status = io->stat(io->ctx, source_file->file, &stat, &err);
    if (status != WAL_OK) {
        wal__source_file_close(source_file);
        return status;
    }
    source_file->size = stat.size;
    return WAL_OK;
}

void wal__source_file_close(struct wal__source_file *source_file)
{
    if (source_file->file != NULL) {
        source_file->env->io->close(source_file->env->io->ctx,
                                    source_file->file);
        wal__buf_deinit(&source_file->window);
    }
    source_file->file = NULL;
}

/* Moves the window to `offset` and keeps the bytes that it has from there. */
static void slide_window(struct wal__source_file *source_file, uint64_t offset)
{
    struct wal__buf *window = &source_file->window;
    uint64_t end = source_file->offset + window->size;
    size_t kept = 0;

    if (offset >= source_file->offset && offset < end) {
        kept = (size_t)(end - offset);
        memmove(window->data, window->data + (window->size - kept), kept);
    }
    source_file->offset = offset;
    window->size = kept;
}

/* Replaces an unreadable block by filler bytes. */
static void skip_block(struct wal__source_file *source_file, size_t size)
{
    uint64_t at = source_file->offset + source_file->window.size;

    memset(source_file->window.data + source_file->window.size, FILLER, size);
    source_file->window.size += size;
    if (source_file->bad_end == 0 || at < source_file->bad_offset) {
        source_file->bad_offset = at;
    }
    if (at + size > source_file->bad_end) {
        source_file->bad_end = at + size;
    }
}

/* Reads until the window holds at least `min` bytes, and up to `max`. After an
 * error it reads block by block, to lose as little as possible. */
static bool fill_window(struct wal__source_file *source_file, size_t min,
                        size_t max)
{
    const struct wal__io *io = source_file->env->io;
    struct wal__buf *window = &source_file->window;

    while (window->size < min) {
        uint64_t at = source_file->offset + window->size;
        size_t left = max - window->size;
        size_t block = BLOCK_SIZE - (size_t)(at % BLOCK_SIZE);
        size_t got = 0;
        int err = 0;

        block = block < left ? block : left;
        if (io->pread(io->ctx, source_file->file, window->data + window->size,
                      left, at, &got, &err) != WAL_OK &&
            io->pread(io->ctx, source_file->file, window->data + window->size,
                      block, at, &got, &err) != WAL_OK) {
            skip_block(source_file, block);
            continue;
        }
        if (got == 0) {
            return false; /* the file is shorter now */
        }
        window->size += got;
    }
    return true;
}

const uint8_t *wal__source_file_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    struct wal__source_file *source_file = ctx;
    struct wal__buf *window = &source_file->window;
    uint64_t want = size < WINDOW_SIZE / 2 ? WINDOW_SIZE : size * 2;
    uint8_t *end;

    if (offset > source_file->size || size > source_file->size - offset) {
        return NULL;
    }
    if (offset >= source_file->offset &&
        offset + size <= source_file->offset + window->size) {
        return window->data + (offset - source_file->offset);
    }
    if (want > source_file->size - offset) {
        want = source_file->size - offset;
    }
    slide_window(source_file, offset);
    if (wal__buf_reserve(window, (size_t)want - window->size, &end) != WAL_OK) {
        source_file->out_of_memory = true;
        return NULL;
    }
    return fill_window(source_file, (size_t)size, (size_t)want) ? window->data
                                                                : NULL;
}

struct wal__span wal__source_file_load(struct wal__source_file *source_file,
                                       const struct wal__env *env,
                                       const char *name)
{
    struct wal__span bytes = {NULL, 0};

    if (wal__source_file_open(source_file, env, name) == WAL_OK &&
        source_file->size > 0) {
        bytes.data = wal__source_file_fetch(source_file, 0, source_file->size);
        bytes.size = bytes.data == NULL ? 0 : (size_t)source_file->size;
    }
    return bytes;
}
