/*
 * log.c - the segment chain of a log, and reading records (SPEC.md 3.5).
 *
 * Invariant: ids of the table rise. A table is replaced by a larger copy, and
 * old tables and retired segments stay valid until close, so that any thread
 * may read without a lock.
 */
#include "engine/log/log.h"

#include <string.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "format/bytes/assert.h"

enum {
    CACHE_LINE_SIZE = 64
};

void wal__log_init(struct wal__log *log, const struct wal__env *env,
                   struct wal__control *control, uint32_t log_id,
                   const uint8_t uuid[16], uint32_t group_align,
                   const struct wal__log_client *client)
{
    WAL__ASSERT(log_id < WAL__LOG_COUNT && group_align % 8 == 0);
    memset(log, 0, sizeof(*log));
    log->env = env;
    log->control = control;
    log->shared = &control->page->logs[log_id];
    log->log_id = log_id;
    log->class = log_id == WAL__LOG_ID_LOG ? WAL__CLASS_LOG : WAL__CLASS_PACK;
    log->directory = log_id == WAL__LOG_ID_LOG ? "log" : "pack";
    log->group_align = group_align;
    log->client = *client;
    memcpy(log->uuid, uuid, sizeof(log->uuid));
    pthread_mutex_init(&log->sync_mutex, NULL);
    pthread_mutex_init(&log->prealloc_mutex, NULL);
}

uint64_t wal__log_newest_id(const struct wal__log *log)
{
    return wal__position_segment(atomic_load(&log->shared->written));
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

    /* Ids have gaps only where preallocated segments were not used. */
    if (high > 0 && id - table->segments[0]->id < high) {
        struct wal__segment *guess =
            table->segments[id - table->segments[0]->id];

        if (guess->id == id) {
            return guess;
        }
    }
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

struct wal__segment_table *wal__log_grow_table(const struct wal__log *log,
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

enum wal_status wal__log_append_segment(struct wal__log *log,
                                        struct wal__segment *segment)
{
    struct wal__segment_table *table = wal__log_grow_table(log, 1);

    if (table == NULL) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(table->count == 0 ||
                table->segments[table->count - 1]->id < segment->id);
    table->segments[table->count] = segment;
    table->count++;
    atomic_store(&log->table, table);
    log->tail_segment = segment;
    return WAL_OK;
}

void wal__log_close_files(struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    struct wal__segment *segment;

    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        wal__segment_close_file(table->segments[i]);
    }
    for (segment = log->retired; segment != NULL; segment = segment->retired) {
        wal__segment_close_file(segment);
    }
}

void wal__log_close(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    for (uint32_t i = 0; table != NULL && i < table->count; i++) {
        wal__segment_close(table->segments[i]);
    }
    while (log->retired != NULL) {
        struct wal__segment *next = log->retired->retired;

        wal__segment_close(log->retired);
        log->retired = next;
    }
    while (table != NULL) {
        struct wal__segment_table *retired = table->retired;

        wal__heap_free(log->env->heap, table);
        table = retired;
    }
    atomic_store(&log->table, NULL);
    pthread_mutex_destroy(&log->sync_mutex);
    pthread_mutex_destroy(&log->prealloc_mutex);
}

void wal__log_raise_pack_durable(struct wal__log *log, uint64_t position)
{
    if (position > log->pack_durable) {
        log->pack_durable = position;
    }
}

uint64_t wal__log_pack_durable(const struct wal__log *log)
{
    const struct wal__control_page *page = log->control->page;
    uint64_t durable;

    if (log->log_id != WAL__LOG_ID_LOG) {
        return 0;
    }
    durable = atomic_load(&page->logs[WAL__LOG_ID_PACK].durable);
    return durable > log->pack_durable ? durable : log->pack_durable;
}

/* Reads bytes by pread into scratch; *bytes points to them. */
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
        return wal__no_memory(error);
    }
    status = wal__io_read_full(io, segment->file, at, size, offset, &got, &err);
    if (status != WAL_OK || got < size) {
        return wal__fail_at(error, WAL_EIO, err, segment->path, offset,
                            "cannot read a record");
    }
    *bytes = at;
    return WAL_OK;
}

/* Returns the frame at a position in the pending group, or NULL. Only the
 * thread that builds the group knows positions at or beyond the end. */
static const uint8_t *locate_pending(const struct wal__log *log,
                                     uint64_t position)
{
    const struct iovec *iov;
    uint64_t at;

    if (position < atomic_load(&log->end) || log->pending_group == NULL ||
        wal__position_segment(position) != log->tail_segment->id) {
        return NULL;
    }
    WAL__ASSERT(log->append_lock_held);
    at = wal__position_offset(position) - atomic_load(&log->tail_segment->end);
    if (at >= log->pending_group->size) {
        return NULL;
    }
    iov = (const struct iovec *)(const void *)log->pending_group->iov.data;
    while (at >= iov->iov_len) {
        WAL__ASSERT((const uint8_t *)(iov + 1) <
                    log->pending_group->iov.data +
                        log->pending_group->iov.size);
        at -= iov->iov_len;
        iov++;
    }
    return (const uint8_t *)iov->iov_base + at;
}

/* Where a record is, and its bytes. */
struct record_location {
    struct wal__segment *segment;
    uint64_t offset;
    const uint8_t *at;
    bool is_whole; /* `at` has the whole record, not only the bytes wanted */
};

/* Finds the record, and its first `size` bytes: at least its header. */
static enum wal_status locate(struct wal__log *log, uint64_t position,
                              uint64_t size, struct wal__buf *scratch,
                              struct record_location *location,
                              struct wal_error *error)
{
    uint64_t offset = wal__position_offset(position);
    struct wal__segment *segment =
        wal__log_segment(log, wal__position_segment(position));
    const uint8_t *map;

    WAL__ASSERT(size >= WAL__FRAME_SIZE);
    if (segment == NULL ||
        offset + WAL__FRAME_SIZE > segment->header.capacity) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, offset,
                            "an index names a position that is not in the log");
    }
    location->segment = segment;
    location->offset = offset;
    location->at = locate_pending(log, position);
    location->is_whole = location->at != NULL || !segment->env->use_pread;
    if (location->at != NULL) {
        return WAL_OK;
    }
    if (!location->is_whole) {
        if (size > segment->header.capacity - offset) {
            size = segment->header.capacity - offset;
        }
        return read_bytes(segment, offset, scratch, size, &location->at, error);
    }
    map = wal__segment_map(segment, error);
    if (map == NULL) {
        return WAL_EIO;
    }
    location->at = map + offset;
    return WAL_OK;
}

static enum wal_status fail_damaged(const struct record_location *location,
                                    enum wal__fmt fmt, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, location->segment->path,
                        location->offset, "the record is damaged: %s",
                        wal__fmt_text(fmt));
}

static enum wal__fmt decode(const struct record_location *location,
                            struct wal__frame *frame)
{
    const struct wal__segment_header *header = &location->segment->header;

    return wal__frame_decode(location->at, header->capacity - location->offset,
                             header->salt, location->offset, frame);
}

enum wal_status wal__log_read(struct wal__log *log, uint64_t position,
                              struct wal__buf *scratch,
                              struct wal__frame *frame,
                              struct wal__span *payload,
                              struct wal_error *error)
{
    struct record_location location;
    enum wal__fmt fmt;
    enum wal_status status =
        locate(log, position, WAL__FRAME_SIZE, scratch, &location, error);

    if (status != WAL_OK) {
        return status;
    }
    fmt = decode(&location, frame);
    if (fmt == WAL__FMT_OK && !location.is_whole) {
        status = read_bytes(location.segment, location.offset, scratch,
                            wal__frame_total_size(frame->stored_size),
                            &location.at, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (fmt == WAL__FMT_OK) {
        fmt = wal__frame_check_data(frame, location.at + WAL__FRAME_SIZE);
    }
    if (fmt != WAL__FMT_OK) {
        return fail_damaged(&location, fmt, error);
    }
    payload->data = location.at + WAL__FRAME_SIZE;
    payload->size = frame->stored_size;
    return WAL_OK;
}

enum wal_status wal__log_peek(struct wal__log *log, uint64_t position,
                              uint32_t size, struct wal__buf *scratch,
                              struct wal__frame *frame, struct wal__span *first,
                              struct wal_error *error)
{
    struct record_location location;
    enum wal__fmt fmt;
    enum wal_status status =
        locate(log, position, (uint64_t)WAL__FRAME_SIZE + size, scratch,
               &location, error);

    if (status != WAL_OK) {
        return status;
    }
    fmt = decode(&location, frame);
    if (fmt != WAL__FMT_OK) {
        return fail_damaged(&location, fmt, error);
    }
    first->data = location.at + WAL__FRAME_SIZE;
    first->size = frame->stored_size < size ? frame->stored_size : size;
    return WAL_OK;
}

void wal__log_prefetch(const struct wal__log *log, uint64_t position,
                       uint64_t size)
{
    const struct wal__segment *segment =
        wal__log_segment(log, wal__position_segment(position));
    uint64_t offset = wal__position_offset(position);
    const uint8_t *map;

    if (segment == NULL || offset + size > segment->header.capacity) {
        return;
    }
    map = atomic_load_explicit(&segment->map, memory_order_acquire);
    for (uint64_t at = 0; map != NULL && at < size; at += CACHE_LINE_SIZE) {
        __builtin_prefetch(map + offset + at);
    }
}

enum wal_status wal__log_read_commit(struct wal__log *log, uint64_t position,
                                     struct wal__frame *frame,
                                     struct wal__commit_record *commit)
{
    struct wal__buf scratch;
    struct wal__span payload;
    enum wal_status status;

    wal__buf_init(&scratch, log->env->heap);
    status = wal__log_read(log, position, &scratch, frame, &payload, NULL);
    if (status == WAL_OK &&
        (frame->type != WAL__FRAME_COMMIT ||
         wal__commit_record_decode(payload, commit) != WAL__FMT_OK)) {
        status = WAL_ECORRUPT;
    }
    wal__buf_deinit(&scratch);
    return status;
}

enum wal_status wal__log_apply_range(struct wal__log *log,
                                     const struct wal__segment *segment,
                                     const struct wal__scan_range *range,
                                     int64_t clock_ms)
{
    uint64_t at = 0;

    WAL__ASSERT(range->size <= segment->header.capacity - range->offset);

    while (at < range->size) {
        struct wal__frame frame;
        struct wal__log_record record = {.frame = &frame,
                                         .clock_ms = clock_ms,
                                         .version = segment->header.version};
        enum wal__fmt fmt;

        fmt =
            wal__frame_decode(range->bytes + at, range->size - at,
                              segment->header.salt, range->offset + at, &frame);
        if (fmt != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        record.payload.data = range->bytes + at + WAL__FRAME_SIZE;
        record.payload.size = frame.stored_size;
        record.position = wal__position(segment->id, range->offset + at);
        if (wal__frame_is_sequenced(frame.type)) {
            enum wal_status status =
                log->client.apply(log->client.ctx, &record);

            if (status == WAL_ECORRUPT) {
                status = log->client.on_orphan(log->client.ctx, &record);
            }
            if (status != WAL_OK) {
                return status;
            }
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    WAL__ASSERT(at == range->size);
    return WAL_OK;
}
