/*
 * segment_reader.c - the bytes of a segment for scans (SPEC.md 3.4).
 */
#include "engine/log/segment_reader.h"

#include <string.h>

#include "format/bytes/assert.h"

enum {
    READAHEAD_SIZE = 1024 * 1024,
    WINDOW_SIZE = 64 * 1024, /* stays in the processor's caches */
    PAGE_SIZE = 4096
};

void wal__segment_reader_init(struct wal__segment_reader *reader,
                              struct wal__segment *segment)
{
    memset(reader, 0, sizeof(*reader));
    reader->segment = segment;
    reader->readahead_size = READAHEAD_SIZE;
    reader->use_pread = segment->env->use_pread;
}

void wal__segment_reader_deinit(struct wal__segment_reader *reader)
{
    if (reader->bytes != NULL) {
        wal__heap_free(reader->segment->env->heap, reader->bytes);
    }
    reader->bytes = NULL;
}

/* --- from the map ------------------------------------------------------- */

/* Populates the map from `from` to `end`, and readahead_size bytes more. */
static enum wal_status populate(struct wal__segment_reader *reader,
                                uint64_t from, uint64_t end)
{
    const struct wal__io *io = reader->segment->env->io;
    uint64_t capacity = reader->segment->header.capacity;
    uint64_t ahead = end + reader->readahead_size < capacity
                         ? end + reader->readahead_size
                         : capacity;
    enum wal_status status;

    from = from / PAGE_SIZE * PAGE_SIZE;
    ahead = (ahead + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    end = (end + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
    WAL__ASSERT(from <= end && end <= ahead);
    status = io->populate(io->ctx, reader->map + from, ahead - from,
                          &reader->sys_errno);
    if (status == WAL_OK) {
        reader->populated = ahead;
    } else if (status == WAL_EIO) {
        /* A bad sector after `end` is not an error of this fetch. */
        status = io->populate(io->ctx, reader->map + from, end - from,
                              &reader->sys_errno);
    }
    return status;
}

static const uint8_t *fetch_mapped(struct wal__segment_reader *reader,
                                   uint64_t offset, uint64_t size)
{
    uint64_t from = reader->populated > offset ? reader->populated : offset;

    if (reader->map == NULL) {
        reader->map = wal__segment_map(reader->segment, NULL);
        if (reader->map == NULL) {
            reader->use_pread = true;
            return NULL;
        }
    }
    if (offset + size > reader->populated) {
        reader->status = populate(reader, from, offset + size);
        if (reader->status == WAL_EINVAL) {
            reader->use_pread = true;
        }
        if (reader->status != WAL_OK) {
            return NULL;
        }
    }
    return reader->map + offset;
}

/* --- by pread ----------------------------------------------------------- */

static bool grow(struct wal__segment_reader *reader, uint64_t size)
{
    uint64_t capacity = WINDOW_SIZE;
    uint8_t *bytes;

    while (capacity < size) {
        capacity *= 2;
    }
    if (capacity <= reader->capacity) {
        return true;
    }
    bytes = wal__heap_resize(reader->segment->env->heap, reader->bytes,
                             (size_t)capacity, 1);
    if (bytes == NULL) {
        reader->status = WAL_ENOMEM;
        return false;
    }
    reader->bytes = bytes;
    reader->capacity = capacity;
    return true;
}

/* Moves the window to `offset`: keeps what it has from there on and reads the
 * rest. */
static const uint8_t *fetch_read(struct wal__segment_reader *reader,
                                 uint64_t offset, uint64_t size)
{
    struct wal__segment *segment = reader->segment;
    const struct wal__io *io = segment->env->io;
    uint64_t want = segment->header.capacity - offset;
    uint64_t kept_size = 0;
    size_t got = 0;

    reader->status = wal__segment_reopen_file(segment, NULL);
    if (reader->status != WAL_OK || !grow(reader, size)) {
        return NULL;
    }
    if (offset >= reader->offset && offset < reader->offset + reader->size) {
        kept_size = reader->offset + reader->size - offset;
        memmove(reader->bytes, reader->bytes + (offset - reader->offset),
                (size_t)kept_size);
    }
    WAL__ASSERT(kept_size < size && size <= reader->capacity);
    reader->offset = offset;
    reader->size = kept_size;
    want = (want < reader->capacity ? want : reader->capacity) - kept_size;
    reader->status = wal__io_read_full(
        io, segment->file, reader->bytes + kept_size, (size_t)want,
        offset + kept_size, &got, &reader->sys_errno);
    if (reader->status == WAL_EIO && want > size - kept_size) {
        /* A bad sector after the fetched bytes is not an error. */
        reader->status =
            wal__io_read_full(io, segment->file, reader->bytes + kept_size,
                              (size_t)(size - kept_size), offset + kept_size,
                              &got, &reader->sys_errno);
    }
    if (reader->status != WAL_OK) {
        return NULL;
    }
    reader->size = kept_size + got;
    WAL__ASSERT(reader->size <= reader->capacity);
    return reader->size >= size ? reader->bytes : NULL;
}

const uint8_t *wal__segment_reader_fetch(void *ctx, uint64_t offset,
                                         uint64_t size)
{
    struct wal__segment_reader *reader = ctx;
    const uint8_t *bytes = NULL;

    if (offset + size > reader->segment->header.capacity) {
        return NULL;
    }
    if (!reader->use_pread) {
        bytes = fetch_mapped(reader, offset, size);
    }
    if (!reader->use_pread) {
        return bytes;
    }
    if (offset >= reader->offset &&
        offset + size <= reader->offset + reader->size) {
        return reader->bytes + (offset - reader->offset);
    }
    return fetch_read(reader, offset, size);
}

bool wal__segment_has_rest(struct wal__segment *segment, uint64_t offset)
{
    struct wal__segment_reader reader;
    bool found = false;

    wal__segment_reader_init(&reader, segment);
    while (offset < segment->header.capacity && !found) {
        uint64_t left = segment->header.capacity - offset;
        uint64_t size = left < WAL__SEGMENT_MIN ? left : WAL__SEGMENT_MIN;
        const uint8_t *bytes = wal__segment_reader_fetch(&reader, offset, size);

        found = bytes == NULL || bytes[0] != 0 ||
                memcmp(bytes, bytes + 1, size - 1) != 0;
        offset += size;
    }
    wal__segment_reader_deinit(&reader);
    return found;
}
