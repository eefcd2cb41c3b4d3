/*
 * log.c - the chain of segments: finding it, adding to it, reading from it
 * (SPEC.md 3.5).
 */
#include "engine/log/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/error.h"

enum {
    SPARE_PROBE = 64 * 1024
};

void wal__log_init(struct wal__log *log, const struct wal__env *env,
                   struct wal__control *control, uint32_t stream,
                   const uint8_t uuid[16], uint32_t group_align,
                   const struct wal__log_client *client)
{
    memset(log, 0, sizeof(*log));
    log->env = env;
    log->control = control;
    log->shared = &control->page->streams[stream];
    log->stream = stream;
    log->class = stream == 0 ? WAL__CLASS_LOG : WAL__CLASS_PACK;
    log->directory = stream == 0 ? "log" : "pack";
    log->group_align = group_align;
    log->client = *client;
    memcpy(log->uuid, uuid, sizeof(log->uuid));
    pthread_mutex_init(&log->sync_mutex, NULL);
    pthread_mutex_init(&log->spare_mutex, NULL);
}

/* The ids that file names in the directory carry. */
struct listing {
    struct wal__buf ids;
    enum wal_status status;
};

static enum wal_status take_name(void *arg, const char *name)
{
    struct listing *listing = arg;
    char *end = NULL;
    uint64_t id;

    if (strlen(name) != 20 || strcmp(name + 16, ".seg") != 0) {
        return WAL_OK;
    }
    id = strtoull(name, &end, 16);
    if (end != name + 16 || id == 0) {
        return WAL_OK;
    }
    return wal__buf_append(&listing->ids, &id, sizeof(id));
}

static int compare_ids(const void *a, const void *b)
{
    uint64_t x;
    uint64_t y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

static enum wal_status list_ids(const struct wal__log *log,
                                struct listing *listing,
                                struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;
    int size;

    size =
        snprintf(path, sizeof(path), "%s/%s", log->env->root, log->directory);
    WAL__ASSERT(size > 0 && size < (int)sizeof(path));
    wal__buf_init(&listing->ids, log->env->heap);
    status = io->list(io->ctx, path, take_name, listing, &err);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK;
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, err, path, 0,
                         "cannot list the directory");
    }
    if (listing->ids.size > 0) {
        qsort(listing->ids.data, listing->ids.size / sizeof(uint64_t),
              sizeof(uint64_t), compare_ids);
    }
    return WAL_OK;
}

static uint64_t id_at(const struct listing *listing, size_t rank)
{
    uint64_t id;

    memcpy(&id, listing->ids.data + rank * sizeof(id), sizeof(id));
    return id;
}

enum wal_status wal__log_find_highest(struct wal__log *log,
                                      struct wal_error *error)
{
    struct listing listing = {0};
    enum wal_status status = list_ids(log, &listing, error);
    size_t count = listing.ids.size / sizeof(uint64_t);

    if (status == WAL_OK && count > 0 &&
        id_at(&listing, count - 1) > log->highest_id) {
        log->highest_id = id_at(&listing, count - 1);
    }
    wal__buf_deinit(&listing.ids);
    return status;
}

/* Whether nothing stands behind the header, as far as a group's first bytes
 * reach: OPEN is durable before anything else is written (SPEC.md 3.5). */
static enum wal_status probe_spare(const struct wal__log *log, uint64_t id,
                                   bool *empty, struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    char path[WAL__PATH_MAX];
    struct wal__file *file = NULL;
    enum wal_status status;
    uint8_t *bytes;
    size_t got = 0;
    int err = 0;

    wal__segment_path(log->env, log->directory, id, path);
    bytes = wal__heap_alloc(log->env->heap, SPARE_PROBE);
    if (bytes == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    status = io->open(io->ctx, path, 0, &file, &err);
    if (status == WAL_OK) {
        status = wal__io_read_full(io, file, bytes, SPARE_PROBE,
                                   WAL__SEGMENT_HEADER_SIZE, &got, &err);
        io->close(io->ctx, file);
    }
    if (status == WAL_OK) {
        *empty = got == 0 ||
                 (bytes[0] == 0 && memcmp(bytes, bytes + 1, got - 1) == 0);
    } else {
        wal__fail(error, status, err, path, 0, "cannot read the segment");
    }
    wal__heap_free(log->env->heap, bytes);
    return status;
}

/* Opens a segment that may be a spare, or the rest of one: *segment is null
 * then. What is not empty and cannot be opened is damage. */
static enum wal_status open_candidate(struct wal__log *log, uint64_t id,
                                      struct wal__segment **segment,
                                      struct wal_error *error)
{
    struct wal__segment *opened = NULL;
    enum wal_status status;
    bool empty = false;

    *segment = NULL;
    status = wal__segment_open(log->env, log->directory, id, log->uuid,
                               log->class, &opened, error);
    if (status == WAL_OK && opened->linked) {
        *segment = opened;
        return WAL_OK;
    }
    if (status != WAL_OK && status != WAL_END && status != WAL_ECORRUPT) {
        return status;
    }
    if (probe_spare(log, id, &empty, NULL) == WAL_OK && empty) {
        wal__segment_close(opened);
        return WAL_OK;
    }
    if (status == WAL_END) {
        return wal__fail(error, WAL_ECORRUPT, 0, NULL, 0,
                         "segment %016" PRIx64 " has no header, yet holds data",
                         id);
    }
    *segment = opened; /* its scan will tell a torn OPEN from damage */
    return status;
}

uint32_t wal__log_segment_count(const struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    return table == NULL ? 0 : table->count;
}

struct wal__segment *wal__log_segment_at(const struct wal__log *log,
                                         uint32_t rank)
{
    const struct wal__segment_table *table = atomic_load(&log->table);

    WAL__ASSERT(table != NULL && rank < table->count);
    return table->segments[rank];
}

struct wal__segment *wal__log_segment(const struct wal__log *log, uint64_t id)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    uint32_t low = 0;
    uint32_t high = table == NULL ? 0 : table->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (table->segments[middle]->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (table != NULL && low < table->count && table->segments[low]->id == id) {
        return table->segments[low];
    }
    return NULL;
}

/* A copy of the table with room for `more`; the old one stays for readers. */
static struct wal__segment_table *grow_table(struct wal__log *log,
                                             uint32_t more)
{
    struct wal__segment_table *old = atomic_load(&log->table);
    uint32_t count = old == NULL ? 0 : old->count;
    struct wal__segment_table *table;

    table = wal__heap_zalloc(log->env->heap,
                             sizeof(*table) + ((size_t)count + more) *
                                                  sizeof(table->segments[0]));
    if (table == NULL) {
        return NULL;
    }
    table->retired = old;
    table->count = count;
    if (count > 0) {
        memcpy(table->segments, old->segments,
               count * sizeof(table->segments[0]));
    }
    return table;
}

enum wal_status wal__log_link(struct wal__log *log,
                              struct wal__segment *segment)
{
    struct wal__segment_table *table = grow_table(log, 1);

    if (table == NULL) {
        return WAL_ENOMEM;
    }
    table->segments[table->count] = segment;
    table->count++;
    atomic_store(&log->table, table);
    log->tail = segment;
    return WAL_OK;
}

/* A segment that lost its OPEN to damage is taken to follow the next one
 * below it. */
static void assume_link(struct wal__segment *segment,
                        const struct listing *listing)
{
    size_t rank = listing->ids.size / sizeof(uint64_t);

    segment->open.previous_id = 0;
    while (rank > 0) {
        rank--;
        if (id_at(listing, rank) < segment->id) {
            segment->open.previous_id = id_at(listing, rank);
            return;
        }
    }
}

/* Walks from the newest segment to the first. */
static enum wal_status build_chain(struct wal__log *log,
                                   const struct listing *listing,
                                   struct wal__segment *newest,
                                   struct wal__buf *chain,
                                   struct wal_error *error)
{
    struct wal__segment *segment = newest;
    enum wal_status status;

    status = wal__buf_append(chain, &segment, sizeof(segment));
    while (status == WAL_OK && segment->open.previous_id != 0) {
        struct wal__segment *previous = NULL;

        status = wal__segment_open(log->env, log->directory,
                                   segment->open.previous_id, log->uuid,
                                   log->class, &previous, error);
        if (status == WAL_END) {
            return wal__fail(error, WAL_ECORRUPT, 0, segment->path, 0,
                             "segment %016" PRIx64 " was zeroed",
                             segment->open.previous_id);
        }
        if (status == WAL_ENOTFOUND) {
            return wal__fail(error, WAL_ECORRUPT, 0, segment->path, 0,
                             "segment %016" PRIx64 " is missing",
                             segment->open.previous_id);
        }
        if (status != WAL_OK) {
            return status;
        }
        if (segment->linked) {
            atomic_store(&previous->end, segment->open.previous_end);
        }
        wal__segment_park(previous);
        if (!previous->linked) {
            assume_link(previous, listing);
        }
        status = wal__buf_append(chain, &previous, sizeof(previous));
        if (status != WAL_OK) {
            wal__segment_close(previous);
        }
        segment = previous;
    }
    return status;
}

/* Takes the collected chain, newest first, into the table. */
static enum wal_status store_chain(struct wal__log *log, struct wal__buf *chain)
{
    uint32_t count = (uint32_t)(chain->size / sizeof(struct wal__segment *));
    struct wal__segment_table *table = grow_table(log, count);

    if (table == NULL) {
        return WAL_ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        memcpy(&table->segments[count - 1 - i],
               chain->data + i * sizeof(table->segments[0]),
               sizeof(table->segments[0]));
    }
    table->count = count;
    atomic_store(&log->table, table);
    log->tail = table->segments[count - 1];
    chain->size = 0; /* the segments are the table's now */
    return WAL_OK;
}

static void close_chain(struct wal__buf *chain)
{
    for (size_t at = 0; at < chain->size; at += sizeof(struct wal__segment *)) {
        struct wal__segment *segment;

        memcpy(&segment, chain->data + at, sizeof(segment));
        wal__segment_close(segment);
    }
    wal__buf_deinit(chain);
}

/* The newest segment: the one the live processes name, else the highest id
 * that is not a spare. */
static enum wal_status find_newest(struct wal__log *log,
                                   const struct listing *listing,
                                   struct wal__segment **newest,
                                   struct wal_error *error)
{
    size_t rank = listing->ids.size / sizeof(uint64_t);
    uint64_t live = atomic_load(&log->shared->segments);
    enum wal_status status = WAL_OK;

    if (!log->control->alone) {
        return live == 0 ? WAL_OK : open_candidate(log, live, newest, error);
    }
    while (rank > 0 && *newest == NULL && status == WAL_OK) {
        rank--;
        status = open_candidate(log, id_at(listing, rank), newest, error);
    }
    if (status != WAL_OK || *newest == NULL || (*newest)->linked) {
        return status;
    }
    assume_link(*newest, listing); /* a torn OPEN, or damage */
    return WAL_OK;
}

enum wal_status wal__log_attach(struct wal__log *log, struct wal_error *error)
{
    struct wal__segment *newest = NULL;
    struct listing listing = {0};
    struct wal__buf chain;
    enum wal_status status;

    wal__buf_init(&chain, log->env->heap);
    status = list_ids(log, &listing, error);
    if (status == WAL_OK && listing.ids.size > 0) {
        log->highest_id =
            id_at(&listing, listing.ids.size / sizeof(uint64_t) - 1);
        status = find_newest(log, &listing, &newest, error);
    }
    if (status == WAL_OK && newest != NULL) {
        status = build_chain(log, &listing, newest, &chain, error);
        if (status == WAL_OK) {
            status = store_chain(log, &chain);
        } else if (chain.size == 0) {
            wal__segment_close(newest);
        }
    }
    close_chain(&chain);
    wal__buf_deinit(&listing.ids);
    return status;
}

void wal__log_close(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        wal__segment_close(table->segments[i]);
    }
    while (log->dropped != NULL) {
        struct wal__segment *next = log->dropped->dropped;

        wal__segment_close(log->dropped);
        log->dropped = next;
    }
    while (table != NULL) {
        struct wal__segment_table *retired = table->retired;

        wal__heap_free(log->env->heap, table);
        table = retired;
    }
    atomic_store(&log->table, NULL);
    pthread_mutex_destroy(&log->sync_mutex);
    pthread_mutex_destroy(&log->spare_mutex);
}

/* A frame's bytes by pread, into scratch. */
static enum wal_status read_bytes(const struct wal__segment *segment,
                                  uint64_t offset, struct wal__buf *scratch,
                                  uint64_t size, const uint8_t **bytes,
                                  struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    enum wal_status status;
    uint8_t *at = NULL;
    size_t got = 0;
    int err = 0;

    scratch->size = 0;
    if (wal__buf_reserve(scratch, size, &at) != WAL_OK) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    status = wal__io_read_full(io, segment->file, at, size, offset, &got, &err);
    if (status != WAL_OK || got < size) {
        return wal__fail(error, WAL_EIO, err, segment->path, offset,
                         "cannot read a record");
    }
    *bytes = at;
    return WAL_OK;
}

static enum wal_status locate(struct wal__segment *segment, uint64_t offset,
                              struct wal__buf *scratch, const uint8_t **bytes,
                              struct wal_error *error)
{
    const uint8_t *map;

    if (segment->env->no_maps) {
        return read_bytes(segment, offset, scratch, WAL__FRAME_SIZE, bytes,
                          error);
    }
    map = wal__segment_map(segment, error);
    if (map == NULL) {
        return WAL_EIO;
    }
    *bytes = map + offset;
    return WAL_OK;
}

/* A frame of the group being built, or null. Only its builder knows positions
 * at or beyond the end. */
static const uint8_t *locate_pending(const struct wal__log *log,
                                     uint64_t position)
{
    const struct iovec *iov;
    uint64_t at;

    if (position < atomic_load(&log->end) || log->pending == NULL ||
        wal__position_segment(position) != log->tail->id) {
        return NULL;
    }
    at = wal__position_offset(position) - atomic_load(&log->tail->end);
    if (at >= log->pending->size) {
        return NULL;
    }
    iov = (const struct iovec *)(const void *)log->pending->iov.data;
    while (at >= iov->iov_len) {
        at -= iov->iov_len;
        iov++;
    }
    return (const uint8_t *)iov->iov_base + at;
}

enum wal_status wal__log_read(struct wal__log *log, uint64_t position,
                              struct wal__buf *scratch,
                              struct wal__frame *frame,
                              struct wal__span *payload,
                              struct wal_error *error)
{
    uint64_t offset = wal__position_offset(position);
    struct wal__segment *segment =
        wal__log_segment(log, wal__position_segment(position));
    const uint8_t *pending = locate_pending(log, position);
    const uint8_t *at = pending;
    enum wal_status status = WAL_OK;
    enum wal__fmt fmt;

    if (segment == NULL ||
        offset + WAL__FRAME_SIZE > segment->header.capacity) {
        return wal__fail(error, WAL_ECORRUPT, 0, NULL, offset,
                         "an index names a place that is not in the log");
    }
    if (pending == NULL) {
        status = locate(segment, offset, scratch, &at, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    fmt = wal__frame_decode(at, segment->header.capacity - offset,
                            segment->header.salt, offset, frame);
    if (fmt == WAL__FMT_OK) {
        if (pending == NULL && segment->env->no_maps) {
            status =
                read_bytes(segment, offset, scratch,
                           wal__frame_span(frame->stored_size), &at, error);
        }
        if (status != WAL_OK) {
            return status;
        }
        at += WAL__FRAME_SIZE;
        fmt = wal__frame_check_data(frame, at);
    }
    if (fmt != WAL__FMT_OK) {
        return wal__fail(error, WAL_ECORRUPT, 0, segment->path, offset,
                         "a record is damaged: %s", wal__fmt_text(fmt));
    }
    payload->data = at;
    payload->size = frame->stored_size;
    return WAL_OK;
}

enum wal_status wal__log_apply_piece(struct wal__log *log,
                                     const struct wal__segment *segment,
                                     const struct wal__scan_piece *piece,
                                     int64_t clock_ms)
{
    uint64_t at = 0;

    while (at < piece->size) {
        struct wal__frame frame;
        struct wal__applied record = {.frame = &frame,
                                      .clock_ms = clock_ms,
                                      .version = segment->header.version};
        enum wal__fmt fmt;

        fmt =
            wal__frame_decode(piece->bytes + at, piece->size - at,
                              segment->header.salt, piece->offset + at, &frame);
        if (fmt != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        record.payload.data = piece->bytes + at + WAL__FRAME_SIZE;
        record.payload.size = frame.stored_size;
        record.position = wal__position(segment->id, piece->offset + at);
        if (wal__frame_is_sequenced(frame.type)) {
            enum wal_status status =
                log->client.apply(log->client.ctx, &record);

            if (status == WAL_ECORRUPT) {
                status = log->client.orphan(log->client.ctx, &record);
            }
            if (status != WAL_OK) {
                return status;
            }
        }
        at += wal__frame_span(frame.stored_size);
    }
    return WAL_OK;
}
