/*
 * segment.c - segment files: their names, making, opening, mapping and reading them (SPEC.md 2.2,
 * 3.5).
 *
 * A segment has its full size from the start, is written once, and is never shortened or reused. A
 * new one is made under a temporary name: reserved, zeroed, and its header is written last; it is
 * synced, renamed, and its directory synced. Zeros are written ahead so that an append writes into
 * allocated blocks, and a sync has no metadata to write; they are a hint, not format. Zeroing goes
 * in steps at the pace of a pacer, so that the disk can serve the syncs of writers meanwhile.
 *
 * A segment that no longer is the tail keeps its map and gives up its file: a store may have more
 * segments than a process may open files. Compaction puts another file in its place, so opening a
 * file again compares the salt.
 *
 * Scans read through a reader: from the map, populated piece by piece so that a bad sector is an
 * error and not a signal; or by pread where the system cannot populate, or env->use_pread.
 *
 * Invariants: a file gets a segment's name only after its content and size are synced. [offset,
 * offset + size) of the segment is in a reader's `bytes`, and [0, populated) of the map is in
 * memory.
 */
#include "engine/log/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/control.h"
#include "engine/log/encrypt.h"
#include "format/bytes/assert.h"
#include "format/segment/frame.h"

enum {
    FILL_STEP = 256 * 1024, /* of zeros, one write */
    ZEROS_SIZE = 32 * 1024,
    HEAD_SIZE = 16384, /* header and, nearly always, all of OPEN */
    READAHEAD_SIZE = 1024 * 1024,
    WINDOW_SIZE = 64 * 1024 /* stays in the processor's caches */
};

static const uint8_t zeros[ZEROS_SIZE];

/* --- opening ------------------------------------------------------------ */

void wal__segment_path(const struct wal__env *env, const char *directory, uint64_t id,
                       char out[WAL__PATH_MAX])
{
    wal__env_path(env, out, "%s/%016" PRIx64 ".seg", directory, id);
}

void wal__segment_shadow_path(const struct wal__env *env, const char *directory, uint64_t id,
                              char out[WAL__PATH_MAX])
{
    wal__env_path(env, out, "%s/%016" PRIx64 ".next", directory, id);
}

static enum wal_status fail_segment(const struct wal__segment *segment, enum wal_status status,
                                    uint64_t offset, const char *why, struct wal_error *error)
{
    return wal__fail_at(error, status, 0, segment->path, offset, "segment %016" PRIx64 ": %s",
                        segment->id, why);
}

/* Decodes the header and checks it against store, class, id and file size. */
static enum wal_status check_header(struct wal__segment *segment, const uint8_t *bytes,
                                    const uint8_t uuid[16], uint32_t class, uint64_t file_size,
                                    struct wal_error *error)
{
    struct wal__segment_header *header = &segment->header;
    enum wal__fmt fmt = wal__segment_header_decode(bytes, header);

    if (fmt == WAL__FMT_ZERO) {
        return WAL_END;
    }
    if (fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES) {
        return wal__fail_at(error, WAL_EVERSION, 0, segment->path, 8,
                            "the segment has format version %" PRIu32 ", features %#" PRIx32
                            "; this library reads %d and %#x: use a newer one",
                            header->version, header->features.incompat, (int)WAL__FORMAT_VERSION,
                            WAL__KNOWN_INCOMPAT);
    }
    if (fmt != WAL__FMT_OK) {
        return fail_segment(segment, WAL_ECORRUPT, 0, wal__fmt_text(fmt), error);
    }
    if (memcmp(header->uuid, uuid, sizeof(header->uuid)) != 0) {
        return fail_segment(segment, WAL_ECORRUPT, 24, "its header names another store", error);
    }
    if (header->id != segment->id) {
        return fail_segment(segment, WAL_ECORRUPT, 40, "its header has the id of another segment",
                            error);
    }
    if (header->class != class) {
        return fail_segment(segment, WAL_ECORRUPT, 68, "its header has another class", error);
    }
    if (!segment->env->is_locked &&
        wal__segment_is_encrypted(header) != (segment->env->keyring != NULL) &&
        !wal__encrypt_may_be_plain(segment->env->keyring, header)) {
        return fail_segment(segment, WAL_ECORRUPT, 20,
                            wal__segment_is_encrypted(header)
                                ? "it is encrypted, and the store is not"
                                : "it is not encrypted, and the store is",
                            error);
    }
    if (file_size != header->capacity) {
        return fail_segment(segment, WAL_ECORRUPT, file_size,
                            file_size < header->capacity ? "the file was truncated"
                                                         : "the file was extended",
                            error);
    }
    return WAL_OK;
}

/* Reads OPEN, if the first frame is a valid one. */
static void read_open(struct wal__segment *segment, const uint8_t *bytes, size_t size)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__frame frame;
    struct wal__span payload;

    if (size < at + WAL__FRAME_SIZE ||
        wal__frame_decode(bytes + at, segment->header.capacity - at, segment->header.salt, at,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_OPEN || at + wal__frame_total_size(frame.stored_size) > size ||
        wal__frame_check_data(&frame, bytes + at + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return;
    }
    payload.data = bytes + at + WAL__FRAME_SIZE;
    payload.size = frame.stored_size;
    if (wal__open_record_decode(payload, &segment->open) == WAL__FMT_OK &&
        segment->open.previous_id < segment->id) {
        segment->open.damage = NULL;
        segment->has_open = true;
    }
}

uint64_t wal__segment_open_end(const struct wal__segment *segment)
{
    uint64_t end = WAL__SEGMENT_HEADER_SIZE;

    end += wal__frame_total_size((uint32_t)wal__open_record_size(segment->open.damage_count));
    end += wal__frame_total_size((uint32_t)wal__commit_record_size(0));
    return wal__align_up(end, segment->header.group_align);
}

static enum wal_status read_trailer(struct wal__segment *segment, int *err)
{
    uint64_t offset = segment->header.capacity - WAL__TRAILER_SIZE;
    uint8_t bytes[WAL__TRAILER_SIZE];
    enum wal_status status;
    size_t got;

    status =
        wal__io_read_full(segment->env->io, segment->file, bytes, sizeof(bytes), offset, &got, err);
    if (status != WAL_OK) {
        return status;
    }
    if (got == sizeof(bytes) &&
        wal__trailer_decode(bytes, segment->header.salt, offset, &segment->trailer) ==
            WAL__FMT_OK &&
        segment->trailer.id == segment->id) {
        segment->sealed = true;
    }
    return WAL_OK;
}

enum wal_status wal__segment_refresh(struct wal__segment *segment)
{
    int err = 0;

    if (segment->sealed || segment->file == NULL) {
        return WAL_OK; /* a released segment has ended */
    }
    return read_trailer(segment, &err);
}

static enum wal_status read_head(struct wal__segment *segment, const uint8_t uuid[16],
                                 uint32_t class, struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    struct wal__io_stat stat;
    uint8_t bytes[HEAD_SIZE];
    enum wal_status status;
    size_t got = 0;
    int err = 0;

    status = io->stat(io->ctx, segment->file, &stat, &err);
    if (status == WAL_OK) {
        status = wal__io_read_full(io, segment->file, bytes, sizeof(bytes), 0, &got, &err);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, segment->path, 0,
                            "cannot read the segment's header");
    }
    WAL__ASSERT(got <= sizeof(bytes));
    if (got < WAL__SEGMENT_HEADER_SIZE) {
        memset(bytes + got, 0, sizeof(bytes) - got);
    }
    status = check_header(segment, bytes, uuid, class, stat.size, error);
    if (status != WAL_OK) {
        return status;
    }
    read_open(segment, bytes, got);
    status = read_trailer(segment, &err);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, err, segment->path, stat.size,
                            "cannot read the segment's trailer");
    }
    return WAL_OK;
}

/* Opens the file that counts. */
static enum wal_status open_file(struct wal__segment *segment, const char *directory, int *err)
{
    const struct wal__env *env = segment->env;
    const struct wal__io *io = env->io;
    int flags = env->read_only ? 0 : WAL__IO_WRITE;

    if (env->has_shadows) {
        enum wal_status status;

        wal__segment_shadow_path(env, directory, segment->id, segment->path);
        status = io->open(io->ctx, segment->path, flags, &segment->file, err);
        if (status != WAL_ENOTFOUND) {
            return status;
        }
    }
    wal__segment_path(env, directory, segment->id, segment->path);
    return io->open(io->ctx, segment->path, flags, &segment->file, err);
}

enum wal_status wal__segment_open(const struct wal__env *env, const char *directory, uint64_t id,
                                  const uint8_t uuid[16], uint32_t class,
                                  struct wal__segment **segment, struct wal_error *error)
{
    struct wal__segment *opened;
    enum wal_status status;
    int err = 0;

    opened = wal__heap_zalloc(env->heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->env = env;
    opened->id = id;
    status = open_file(opened, directory, &err);
    if (status != WAL_OK) {
        wal__fail_open(error, status, err, opened->path,
                       status == WAL_ENOTFOUND ? "the segment is missing"
                                               : "cannot open the segment");
        goto failed;
    }
    status = read_head(opened, uuid, class, error);
    if (status != WAL_OK) {
        goto failed;
    }
    atomic_store(&opened->end, opened->sealed ? opened->trailer.end : WAL__SEGMENT_HEADER_SIZE);
    *segment = opened;
    return WAL_OK;

failed:
    wal__segment_close(opened);
    return status;
}

/* --- closing, and opening again ----------------------------------------- */

void wal__segment_unmap(struct wal__segment *segment)
{
    uint8_t *map = atomic_exchange(&segment->map, NULL);

    WAL__ASSERT(atomic_load(&segment->users) == 0);
    if (map != NULL) {
        segment->env->io->unmap(segment->env->io->ctx, map, segment->header.capacity);
    }
}

void wal__segment_close(struct wal__segment *segment)
{
    if (segment == NULL) {
        return;
    }
    wal__segment_unmap(segment);
    wal__segment_close_file(segment);
    wal__heap_free(segment->env->heap, segment);
}

void wal__segment_close_file(struct wal__segment *segment)
{
    if (segment->file != NULL) {
        segment->env->io->close(segment->env->io->ctx, segment->file);
        segment->file = NULL;
    }
}

/* Opens the file again. Compaction may have put another one in its place. */
static enum wal_status open_again(struct wal__segment *segment, int flags, struct wal__file **file,
                                  int *err)
{
    const struct wal__io *io = segment->env->io;
    uint8_t head[WAL__SEGMENT_HEADER_SIZE];
    struct wal__segment_header header;
    enum wal_status status;
    size_t got = 0;

    status = io->open(io->ctx, segment->path, flags, file, err);
    if (status == WAL_ENOTFOUND) {
        atomic_store(&segment->replaced, true);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__io_read_full(io, *file, head, sizeof(head), 0, &got, err);
    if (status == WAL_OK && got == sizeof(head) &&
        wal__segment_header_decode(head, &header) == WAL__FMT_OK &&
        header.salt != segment->header.salt) {
        atomic_store(&segment->replaced, true);
        status = WAL_ECORRUPT;
    }
    if (status != WAL_OK) {
        io->close(io->ctx, *file);
        *file = NULL;
    }
    return status;
}

bool wal__segment_find_replaced(struct wal__segment *segment)
{
    const struct wal__io *io = segment->env->io;
    struct wal__file *file = NULL;
    int err = 0;

    if (!atomic_load(&segment->replaced) && open_again(segment, 0, &file, &err) == WAL_OK) {
        io->close(io->ctx, file);
    }
    return atomic_load(&segment->replaced);
}

enum wal_status wal__segment_map_status(const struct wal__segment *segment)
{
    return atomic_load(&segment->replaced) ? WAL_ECORRUPT : WAL_EIO;
}

enum wal_status wal__segment_reopen_file(struct wal__segment *segment, struct wal_error *error)
{
    enum wal_status status;
    int err = 0;

    if (segment->file != NULL) {
        return WAL_OK;
    }
    status = open_again(segment, segment->env->read_only ? 0 : WAL__IO_WRITE, &segment->file, &err);
    if (status != WAL_OK) {
        return wal__fail_open(error, status, err, segment->path, "cannot open the segment");
    }
    return WAL_OK;
}

void wal__segment_release_file(struct wal__segment *segment)
{
    if (!segment->env->use_pread) {
        wal__segment_close_file(segment);
    }
}

const uint8_t *wal__segment_map(struct wal__segment *segment, struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    uint8_t *map = atomic_load_explicit(&segment->map, memory_order_acquire);
    uint8_t *expected = NULL;
    struct wal__file *file = NULL;
    enum wal_status status;
    void *at = NULL;
    int err = 0;

    if (map != NULL) {
        return map;
    }
    /* Opens a second file: the segment's may be released at any moment. */
    status = open_again(segment, 0, &file, &err);
    if (status == WAL_OK) {
        status = io->map(io->ctx, file, segment->header.capacity, false, &at, &err);
        io->close(io->ctx, file);
    }
    if (status != WAL_OK) {
        wal__fail_at(error, status, err, segment->path, 0, "cannot map the segment");
        return NULL;
    }
    if (!atomic_compare_exchange_strong(&segment->map, &expected, at)) {
        WAL__ASSERT(expected != NULL && expected != at);
        io->unmap(io->ctx, at, segment->header.capacity);
        return expected; /* another thread was first */
    }
    return at;
}

/* --- making ------------------------------------------------------------- */

/* Writes zeros by one call: they become one folio of the page cache where the file system can,
 * which makes what follows cheaper. */
static enum wal_status write_zeros(const struct wal__env *env, struct wal__file *file,
                                   uint64_t offset, uint64_t end, int *err)
{
    struct iovec iov[FILL_STEP / ZEROS_SIZE];
    uint64_t left = end - offset;
    int count = 0;

    WAL__ASSERT(left > 0 && left <= FILL_STEP);
    while (left > 0) {
        size_t size = left < ZEROS_SIZE ? (size_t)left : ZEROS_SIZE;

        iov[count].iov_base = (void *)(uintptr_t)zeros;
        iov[count].iov_len = size;
        left -= size;
        count++;
    }
    return wal__io_write_full(env->io, file, iov, count, offset, err);
}

/* Starts writeback of the zeros just written: one sync of all of them would delay the syncs of
 * writers for long. */
static enum wal_status start_writeback(const struct wal__env *env, struct wal__file *file,
                                       uint64_t offset, uint64_t end, int *err)
{
    if (env->io->write_back == NULL) {
        return env->io->sync(env->io->ctx, file, err);
    }
    env->io->write_back(env->io->ctx, file, offset, end - offset);
    return WAL_OK;
}

/* Writes zeros after the header in steps, at the pacer's pace, so that the disk can serve the syncs
 * of writers meanwhile. */
static enum wal_status write_all_zeros(const struct wal__env *env, struct wal__file *file,
                                       uint64_t size, const struct wal__pacer *pacer, int *err)
{
    static const uint32_t never;
    uint64_t offset = WAL__SEGMENT_HEADER_SIZE;
    enum wal_status status = WAL_OK;

    while (offset < size && status == WAL_OK) {
        enum wal__pace pace = WAL__PACE_CONTINUE;
        uint64_t begin = offset;
        uint64_t end = offset + FILL_STEP - offset % FILL_STEP;

        if (pacer != NULL) {
            pace = pacer->next(pacer->ctx, offset);
        }
        if (pace == WAL__PACE_STOP) {
            break;
        }
        end = end < size ? end : size;
        status = write_zeros(env, file, offset, end, err);
        offset = end;
        if (status == WAL_OK && pacer != NULL) {
            status = start_writeback(env, file, begin, offset, err);
        }
        if (pace == WAL__PACE_PAUSE) {
            env->io->futex_wait(env->io->ctx, &never, 0, (uint64_t)pacer->pause_us * 1000);
        }
    }
    return status;
}

/* The bytes after the header of a new segment. */
struct body {
    const uint8_t *data; /* NULL: zeros up to offset `size` */
    uint64_t size;
    const struct wal__pacer *pacer;
};

static enum wal_status write_body(const struct wal__env *env, struct wal__file *file,
                                  const struct body *body, int *err)
{
    struct iovec iov = {(void *)(uintptr_t)body->data, (size_t)body->size};

    if (body->data == NULL && env->io->in_memory) {
        return WAL_OK;
    }
    if (body->data == NULL) {
        return write_all_zeros(env, file, body->size, body->pacer, err);
    }
    return wal__io_write_full(env->io, file, &iov, 1, WAL__SEGMENT_HEADER_SIZE, err);
}

/* Creates the complete file and syncs it. */
static enum wal_status make_file(const struct wal__env *env, const char *path,
                                 const struct wal__segment_header *header, const struct body *body,
                                 int *err)
{
    const struct wal__io *io = env->io;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE];
    struct iovec iov = {bytes, sizeof(bytes)};
    struct wal__file *file = NULL;
    enum wal_status status;

    WAL__ASSERT(header->capacity <= WAL__SEGMENT_MAX);
    WAL__ASSERT(body->size + (body->data == NULL ? 0 : sizeof(bytes)) <= header->capacity);
    status = io->open(io->ctx, path, WAL__IO_WRITE | WAL__IO_CREATE | WAL__IO_TRUNCATE, &file, err);
    if (status != WAL_OK) {
        return status;
    }
    status = io->allocate(io->ctx, file, header->capacity, err);
    if (status != WAL_OK) {
        goto done;
    }
    status = write_body(env, file, body, err);
    if (status != WAL_OK) {
        goto done;
    }
    wal__segment_header_encode(header, bytes);
    status = wal__io_write_full(io, file, &iov, 1, 0, err);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, file, err);
    }

done:
    io->close(io->ctx, file);
    return status;
}

static enum wal_status fail_create(const struct wal__env *env, enum wal_status status, int err,
                                   const char *path, uint64_t capacity, struct wal_error *error)
{
    uint64_t free_size;

    if (status != WAL_ENOSPACE) {
        return wal__fail_at(error, status, err, path, 0,
                            "cannot create a segment of %" PRIu64 " bytes", capacity);
    }
    free_size = env->io->free_space(env->io->ctx, env->root);
    if (free_size == UINT64_MAX) {
        return wal__fail_at(error, status, err, path, 0,
                            "no space for a new segment of %" PRIu64 " bytes: free disk space",
                            capacity);
    }
    return wal__fail_at(error, status, err, path, 0,
                        "no space for a new segment: it needs %" PRIu64 " bytes, and %" PRIu64
                        " are free: free disk space, or raise the quota",
                        capacity, free_size);
}

/* Creates the file under a temporary name and renames it when it is complete.
 * *named: it has the segment's name, also on failure. */
static enum wal_status create_and_rename(const struct wal__env *env, const char *directory,
                                         const struct wal__control *control,
                                         const struct wal__segment_header *header,
                                         const struct body *body, bool *named,
                                         struct wal_error *error)
{
    const struct wal__io *io = env->io;
    char path[WAL__PATH_MAX];
    char temporary[WAL__PATH_MAX + 8];
    enum wal_status status;
    int ignored;
    int err = 0;

    wal__segment_path(env, directory, header->id, path);
    (void)snprintf(temporary, sizeof(temporary), "%s.new", path);
    status = make_file(env, temporary, header, body, &err);
    if (status == WAL_OK) {
        status = io->rename(io->ctx, temporary, path, &err);
        *named = status == WAL_OK;
    }
    if (status == WAL_OK) {
        char parent[WAL__PATH_MAX];

        memcpy(parent, path, sizeof(parent));
        *strrchr(parent, '/') = '\0';
        status = wal__control_sync_directory(control, io, parent, &err);
    } else {
        /* Best effort: the next attempt truncates the file. */
        (void)!io->unlink(io->ctx, temporary, &ignored);
    }
    return status == WAL_OK ? WAL_OK : fail_create(env, status, err, path, header->capacity, error);
}

enum wal_status wal__segment_preallocate(const struct wal__env *env, const char *directory,
                                         const struct wal__control *control,
                                         const struct wal__segment_header *header, uint64_t zeroed,
                                         const struct wal__pacer *pacer, struct wal_error *error)
{
    const struct body zeros_only = {NULL, zeroed, pacer};
    char path[WAL__PATH_MAX];
    bool named = false;
    int ignored;
    enum wal_status status =
        create_and_rename(env, directory, control, header, &zeros_only, &named, error);

    WAL__ASSERT(named || status != WAL_OK);
    if (status != WAL_OK && named) {
        /* A preallocated segment whose name may not be durable is useless. */
        wal__segment_path(env, directory, header->id, path);
        (void)!env->io->unlink(env->io->ctx, path, &ignored);
    }
    return status;
}

enum wal_status wal__segment_install(const struct wal__env *env, const char *directory,
                                     const struct wal__control *control,
                                     const struct wal__segment_header *header, const uint8_t *data,
                                     uint64_t size, struct wal_error *error)
{
    const struct body body = {data, size, NULL};
    bool named = false;

    /* A file that has its name is not removed: another process may already use it. */
    return create_and_rename(env, directory, control, header, &body, &named, error);
}

/* --- reading ------------------------------------------------------------ */

void wal__segment_reader_init(struct wal__segment_reader *reader, struct wal__segment *segment)
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

/* Populates the map from `from` to `end`, and readahead_size bytes more. */
static enum wal_status populate(struct wal__segment_reader *reader, uint64_t from, uint64_t end)
{
    const struct wal__io *io = reader->segment->env->io;
    uint64_t capacity = reader->segment->header.capacity;
    uint64_t ahead =
        end + reader->readahead_size < capacity ? end + reader->readahead_size : capacity;
    enum wal_status status;

    WAL__ASSERT(from <= end && end <= ahead);
    status = io->populate(io->ctx, reader->map + from, ahead - from, &reader->sys_errno);
    if (status == WAL_OK) {
        reader->populated = ahead;
    } else if (status == WAL_EIO) {
        /* A bad sector after `end` is not an error of this fetch. */
        status = io->populate(io->ctx, reader->map + from, end - from, &reader->sys_errno);
    }
    return status;
}

static const uint8_t *fetch_mapped(struct wal__segment_reader *reader, uint64_t offset,
                                   uint64_t size)
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
    bytes = wal__heap_resize(reader->segment->env->heap, reader->bytes, (size_t)capacity, 1);
    if (bytes == NULL) {
        reader->status = WAL_ENOMEM;
        return false;
    }
    reader->bytes = bytes;
    reader->capacity = capacity;
    return true;
}

/* Moves the window to `offset`: keeps what it has from there on and reads the rest. */
static const uint8_t *fetch_read(struct wal__segment_reader *reader, uint64_t offset, uint64_t size)
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
        memmove(reader->bytes, reader->bytes + (offset - reader->offset), (size_t)kept_size);
    }
    WAL__ASSERT(kept_size < size && size <= reader->capacity);
    reader->offset = offset;
    reader->size = kept_size;
    want = (want < reader->capacity ? want : reader->capacity) - kept_size;
    reader->status = wal__io_read_full(io, segment->file, reader->bytes + kept_size, (size_t)want,
                                       offset + kept_size, &got, &reader->sys_errno);
    if (reader->status == WAL_EIO && want > size - kept_size) {
        /* A bad sector after the fetched bytes is not an error. */
        reader->status = wal__io_read_full(io, segment->file, reader->bytes + kept_size,
                                           (size_t)(size - kept_size), offset + kept_size, &got,
                                           &reader->sys_errno);
    }
    if (reader->status != WAL_OK) {
        return NULL;
    }
    reader->size = kept_size + got;
    WAL__ASSERT(reader->size <= reader->capacity);
    return reader->size >= size ? reader->bytes : NULL;
}

const uint8_t *wal__segment_reader_fetch(void *ctx, uint64_t offset, uint64_t size)
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
    if (offset >= reader->offset && offset + size <= reader->offset + reader->size) {
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

        found = bytes == NULL || bytes[0] != 0 || memcmp(bytes, bytes + 1, size - 1) != 0;
        offset += size;
    }
    wal__segment_reader_deinit(&reader);
    return found;
}
