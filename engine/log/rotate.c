/*
 * rotate.c - rotation: sealing the tail segment and opening the next one
 * (SPEC.md 3.5). With append lock and state lock; acquires the preallocation
 * lock, and the sync lock within it.
 *
 * Invariant: disk space and memory are reserved before the first byte is
 * written; a write that fails after that poisons the log. A segment is
 * published only when its OPEN is durable.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "engine/log/prealloc.h"
#include "engine/log/segment.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

enum {
    RESERVE_SIZE = 16 * 1024,   /* of each segment: wal__log_reserve */
    MARK_SIZE_MAX = 4096 + 256, /* a commit mark, aligned */
    SEAL_SIZE_MAX =
        WAL__FRAME_SIZE + WAL__FRAME_SIZE + WAL__SEAL_SIZE + WAL__TRAILER_SIZE
};

void wal__log_index_header(const struct wal__log *log,
                           const struct wal__segment *segment,
                           struct wal__index_header *header)
{
    memset(header, 0, sizeof(*header));
    header->id = segment->id;
    header->end = atomic_load(&segment->end);
    header->first_sequence = segment->open.last_sequence + 1;
    header->last_sequence = log->last_sequence;
    header->chain = log->chain;
    if (log->commit_offset < header->end) {
        header->commit_offset = (uint32_t)log->commit_offset;
    }
    header->epoch = log->last_epoch;
    memcpy(header->uuid, log->uuid, sizeof(header->uuid));
}

/* Encodes INDEX and SEAL, which follow the last group, and the trailer. *index
 * is 48 bytes for the frame header, then the payload; padding and SEAL are
 * appended to it. */
static enum wal_status encode_seal(const struct wal__log *log,
                                   struct wal__buf *index,
                                   uint8_t trailer_bytes[WAL__TRAILER_SIZE])
{
    const struct wal__segment_header *header = &log->tail_segment->header;
    uint64_t end = atomic_load(&log->tail_segment->end);
    uint64_t payload = index->size - WAL__FRAME_SIZE;
    struct wal__frame frame = {0};
    struct wal__trailer trailer = {0};
    struct wal__seal_record seal = {0};
    uint8_t *at;

    WAL__ASSERT(index->size >= WAL__FRAME_SIZE && end % 8 == 0);
    WAL__ASSERT(end + wal__align_up(index->size, 8) + SEAL_SIZE_MAX <=
                header->capacity);
    frame.type = WAL__FRAME_INDEX;
    frame.stored_size = (uint32_t)payload;
    frame.raw_size = frame.stored_size;
    frame.data_crc =
        wal__crc32(0, index->data + WAL__FRAME_SIZE, (size_t)payload);
    wal__frame_encode(&frame, header->salt, end, index->data);
    trailer.index_offset = end;
    trailer.seal_offset = end + wal__frame_total_size(frame.stored_size);
    if (wal__buf_reserve(index, 8 + WAL__FRAME_SIZE + WAL__SEAL_SIZE, &at) !=
        WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, 8 + WAL__FRAME_SIZE + WAL__SEAL_SIZE);
    at = index->data + wal__frame_total_size(frame.stored_size);
    seal.end = end;
    seal.last_sequence = log->last_sequence;
    seal.chain = log->chain;
    seal.index_offset = end;
    wal__seal_record_encode(&seal, at + WAL__FRAME_SIZE);
    memset(&frame, 0, sizeof(frame));
    frame.type = WAL__FRAME_SEAL;
    frame.stored_size = WAL__SEAL_SIZE;
    frame.raw_size = WAL__SEAL_SIZE;
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, WAL__SEAL_SIZE);
    wal__frame_encode(&frame, header->salt, trailer.seal_offset, at);
    index->size = (size_t)(at - index->data) + WAL__FRAME_SIZE + WAL__SEAL_SIZE;
    WAL__ASSERT(end + index->size <= header->capacity - WAL__TRAILER_SIZE);
    trailer.id = log->tail_segment->id;
    trailer.end = end;
    trailer.last_sequence = log->last_sequence;
    trailer.chain = log->chain;
    wal__trailer_encode(&trailer, header->salt,
                        header->capacity - WAL__TRAILER_SIZE, trailer_bytes);
    /* Valid once `sealed` is set. */
    log->tail_segment->trailer = trailer;
    return WAL_OK;
}

static enum wal_status write_seal(struct wal__log *log, struct wal__buf *index,
                                  struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    uint8_t trailer[WAL__TRAILER_SIZE];
    struct iovec iov;
    enum wal_status status;
    int err = 0;

    if (encode_seal(log, index, trailer) != WAL_OK) {
        return wal__no_memory(error);
    }
    /* The sync before this may have taken long: check LOCK again. */
    status = wal__control_check_ratelimited(log->control, error);
    if (status != WAL_OK) {
        return status;
    }
    iov.iov_base = index->data;
    iov.iov_len = index->size;
    status = wal__io_write_full(io, log->tail_segment->file, &iov, 1,
                                atomic_load(&log->tail_segment->end), &err);
    iov.iov_base = trailer;
    iov.iov_len = sizeof(trailer);
    if (status == WAL_OK) {
        status = wal__io_write_full(
            io, log->tail_segment->file, &iov, 1,
            log->tail_segment->header.capacity - WAL__TRAILER_SIZE, &err);
    }
    return status == WAL_OK
               ? WAL_OK
               : wal__log_write_failed(log, WAL__POISON_WRITE, err, error);
}

/* Ends the tail segment: encodes its index, appends index and SEAL when *seal,
 * and syncs. Clears *seal when they do not fit. */
static enum wal_status finish_tail(struct wal__log *log, bool *seal,
                                   struct wal__buf *index,
                                   struct wal_error *error)
{
    struct wal__index_header header;
    enum wal_status status;

    wal__log_index_header(log, log->tail_segment, &header);
    status = log->client.encode_index(log->client.ctx, &header, index);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, log->tail_segment->path, 0,
                            "cannot encode the index of the segment");
    }
    /* Texts may exceed the bound that was reserved: the index is then written
     * to an index file. */
    *seal =
        *seal && header.end + wal__align_up(index->size, 8) + SEAL_SIZE_MAX <=
                     log->tail_segment->header.capacity;
    if (*seal) {
        /* SEAL and trailer promise that everything before them is durable. */
        status = wal__log_sync(log, atomic_load(&log->end), error);
    }
    if (*seal && status == WAL_OK) {
        status = write_seal(log, index, error);
    }
    return status == WAL_OK ? wal__log_sync(log, UINT64_MAX, error) : status;
}

/* Gives the space between SEAL, which ends `written` bytes after the last
 * group, and the trailer back. */
static void punch_unused(const struct wal__log *log,
                         struct wal__segment *segment, uint64_t written)
{
    wal__prealloc_punch(log, segment, atomic_load(&segment->end) + written,
                        segment->header.capacity - WAL__TRAILER_SIZE);
}

/* Removes the newest segment from the chain, and leaves it open. */
static void unlink_newest(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    WAL__ASSERT(table->count > 0 &&
                table->segments[table->count - 1] == log->tail_segment);
    table->count--;
    log->tail_segment =
        table->count > 0 ? table->segments[table->count - 1] : NULL;
}

/* The end of the tail, as the OPEN after it has it. A rewritten tail, which
 * only a replica that became a store has, ends like the segment that it
 * replaced. */
static uint64_t end_tail(struct wal__log *log)
{
    const struct wal__segment *tail = log->tail_segment;
    const struct wal__rewrite *rewrite = &tail->header.rewrite;

    if (!wal__segment_is_rewritten(&tail->header)) {
        return atomic_load(&tail->end);
    }
    log->last_sequence = rewrite->last_sequence;
    log->chain = rewrite->original_chain;
    return rewrite->original_end;
}

/* Appends the segment to the chain, writes OPEN and its COMMIT, syncs, and
 * publishes: recovery relies on nothing else being in a segment before its OPEN
 * is durable. */
static enum wal_status initialise_segment(struct wal__log *log,
                                          struct wal__segment *segment,
                                          struct wal_error *error)
{
    const struct wal__scan_result *facts = &log->facts;
    uint32_t count = log->must_rotate && facts->verdict == WAL__VERDICT_DAMAGED
                         ? facts->damage_count
                         : 0;
    struct wal__open_record open = {0};
    struct wal__frame frame = {0};
    struct wal__group group;
    enum wal_status status;
    uint8_t *bytes;
    int err = 0;

    if (count > WAL__DAMAGE_MAX) {
        count = WAL__DAMAGE_MAX;
    }
    WAL__ASSERT(log->append_lock_held);
    if (log->tail_segment != NULL) {
        WAL__ASSERT(log->tail_segment->id < segment->id);
        open.previous_id = log->tail_segment->id;
        open.previous_end = end_tail(log);
    }
    open.last_sequence = log->last_sequence;
    open.chain = log->chain;
    open.damage_count = count;
    open.epoch = log->epoch;
    frame.type = WAL__FRAME_OPEN;
    frame.stored_size = (uint32_t)wal__open_record_size(count);
    frame.raw_size = frame.stored_size;
    bytes = wal__heap_zalloc(log->env->heap,
                             wal__frame_total_size(frame.stored_size));
    if (bytes == NULL) {
        return wal__no_memory(error);
    }
    wal__open_record_encode(&open, facts->damage, bytes + WAL__FRAME_SIZE);
    frame.data_crc = wal__crc32(0, bytes + WAL__FRAME_SIZE, frame.stored_size);
    status = wal__log_append_segment(log, segment);
    if (status != WAL_OK) {
        wal__heap_free(log->env->heap, bytes);
        return wal__fail(error, status, "no memory");
    }
    segment->has_open = true;
    segment->open = open;
    wal__group_init(&group, log);
    group.defer_publish = true;
    status = wal__group_add(&group, log, &frame, bytes) == WAL_OK
                 ? wal__group_write(&group, log, error)
                 : wal__no_memory(error);
    if (status == WAL_OK) {
        /* A process that dies here may have observed a failed sync. */
        atomic_store(&log->shared->open_syncing_pid, log->control->process_id);
        status = log->env->io->sync(log->env->io->ctx, segment->file, &err);
        atomic_fetch_add(&log->syncs, 1);
        if (status != WAL_OK) {
            status = wal__log_write_failed(log, WAL__POISON_SYNC, err, error);
        } else {
            wal__log_publish(log);
            wal__log_set_durable(log, atomic_load(&log->end));
        }
        atomic_store(&log->shared->open_syncing_pid, 0);
    }
    if (status != WAL_OK && status != WAL_EPOISONED) {
        unlink_newest(log); /* nothing was written to the segment */
    }
    wal__group_deinit(&group);
    wal__heap_free(log->env->heap, bytes);
    return status;
}

/* Ends the tail segment and begins one of at least `needed` bytes. */
static enum wal_status start_next_segment(struct wal__log *log, uint64_t needed,
                                          bool is_small,
                                          struct wal_error *error)
{
    struct wal__segment *ended = log->tail_segment;
    struct wal__segment *segment = NULL;
    struct wal__buf index;
    enum wal_status status;
    bool seal;
    uint64_t id = 0;

    WAL__ASSERT(log->append_lock_held && log->pending_group == NULL);
    seal = ended != NULL && !log->must_rotate &&
           atomic_load(&log->shared->closed_segment_id) != ended->id;
    wal__buf_init(&index, log->env->heap);
    status = wal__prealloc_obtain(log, needed, is_small, &id, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__segment_open(log->env, log->directory, id, log->uuid,
                               log->class, &segment, error);
    if (status == WAL_OK && ended != NULL && !ended->sealed) {
        status = finish_tail(log, &seal, &index, error);
    }
    if (status != WAL_OK) {
        wal__segment_close(segment);
        goto done;
    }
    if (ended != NULL) {
        /* A process that dies from here on may leave an OPEN that ends the
         * old segment at its present end. */
        atomic_store(&log->shared->closed_segment_id, ended->id);
    }
    segment->begun_ms = log->env->io->now_ms(log->env->io->ctx);
    status = initialise_segment(log, segment, error);
    if (log->tail_segment != segment) {
        wal__segment_close(segment);
        goto done;
    }
    if (status == WAL_OK && ended != NULL) {
        bool has_index_file = !seal && !ended->sealed;

        if (seal) {
            punch_unused(log, ended, index.size);
        }
        ended->sealed = ended->sealed || seal;
        status = log->client.on_segment_end(log->client.ctx, ended,
                                            has_index_file ? &index : NULL);
        wal__segment_release_file(ended);
    }
    if (status == WAL_OK && ended != NULL) {
        wal__prealloc_remove_leftovers(log, ended->id, id);
    }
    log->must_rotate = false;
    log->highest_id = id > log->highest_id ? id : log->highest_id;
    if (status != WAL_OK && status != WAL_EPOISONED) {
        log->needs_reload = true;
    }

done:
    wal__buf_deinit(&index);
    return status;
}

static enum wal_status rotate(struct wal__log *log, uint64_t needed,
                              bool is_small, struct wal_error *error)
{
    enum wal_status status = wal__prealloc_lock_for_rotation(log, error);

    if (status != WAL_OK) {
        return status;
    }
    status = wal__log_find_highest_id(log, error);
    if (status == WAL_OK) {
        status = start_next_segment(log, needed, is_small, error);
    }
    if (status != WAL_OK) {
        /* A SEAL may follow the end: the next leader must look for it as if
         * this writer had died. */
        atomic_store(&log->shared->last_appender_epoch, 0);
    }
    wal__prealloc_unlock(log);
    return status;
}

/* Returns the bytes for a group of `size` bytes, its COMMIT, a commit mark and
 * an index of at most index_size. */
static uint64_t space_needed(const struct wal__log *log, uint64_t size,
                             uint64_t index_size)
{
    return size + WAL__COMMIT_SPAN_MAX + log->group_align + MARK_SIZE_MAX +
           SEAL_SIZE_MAX + wal__align_up(index_size, 8);
}

/* Whether the tail takes groups, and has room for this one, with `rest`
 * bytes left. */
static bool fits_tail(const struct wal__log *log, uint64_t needed,
                      uint64_t rest)
{
    const struct wal__segment *tail = log->tail_segment;

    return tail != NULL && !log->must_rotate && !tail->sealed &&
           atomic_load(&log->shared->closed_segment_id) != tail->id &&
           atomic_load(&tail->end) + needed + rest <= tail->header.capacity;
}

enum wal_status wal__log_reserve(struct wal__log *log,
                                 const struct wal__log_reservation *reservation,
                                 struct wal_error *error)
{
    void *ctx = log->client.ctx;
    uint64_t bound = log->client.index_bound(
        ctx, reservation->frames, reservation->sessions, reservation->texts);
    uint64_t fresh = bound - log->client.index_bound(ctx, 0, 0, 0);
    uint64_t in_tail = space_needed(log, reservation->size, bound);
    enum wal_status status;
    uint64_t needed;

    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    WAL__ASSERT(bound >= fresh);
    if (fits_tail(log, in_tail, RESERVE_SIZE)) {
        return WAL_OK;
    }
    needed =
        WAL__SEGMENT_HEADER_SIZE + WAL__COMMIT_SPAN_MAX + log->group_align +
        wal__frame_total_size(
            (uint32_t)wal__open_record_size(WAL__DAMAGE_MAX)) +
        space_needed(log, reservation->size, fresh) + WAL__INDEX_HEADER_SIZE;
    if (needed > WAL__SEGMENT_MAX) {
        return wal__fail(error, WAL_ETOOBIG,
                         "the batch needs %" PRIu64
                         " bytes; a segment has at most %d",
                         needed, (int)WAL__SEGMENT_MAX);
    }
    needed += needed + RESERVE_SIZE <= WAL__SEGMENT_MAX ? RESERVE_SIZE : 0;
    status = rotate(log, needed, false, error);
    if (status == WAL_ENOSPACE && reservation->uses_reserve &&
        fits_tail(log, in_tail, 0)) {
        return WAL_OK;
    }
    return status;
}

enum wal_status wal__log_rotate(struct wal__log *log, struct wal_error *error)
{
    const uint64_t needed = WAL__SEGMENT_MIN;
    struct wal__segment *tail = log->tail_segment;

    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    if (tail == NULL ||
        (log->last_sequence == tail->open.last_sequence &&
         !wal__segment_has_rest(tail, atomic_load(&tail->end)))) {
        return WAL_OK;
    }
    return rotate(log, needed, true, error);
}

enum wal_status wal__log_install(struct wal__log *log,
                                 struct wal__segment_header *header,
                                 const struct wal__buf *body,
                                 struct wal_error *error)
{
    uint64_t bound = log->client.index_bound(log->client.ctx, 0, 0, 0);
    uint64_t needed = WAL__SEGMENT_HEADER_SIZE + RESERVE_SIZE +
                      space_needed(log, body->size, bound);
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held && header->id > log->highest_id);
    WAL__ASSERT(header->id > wal__log_newest_id(log));
    if (needed > WAL__SEGMENT_MAX) {
        /* Without room for more: the next append rotates, and the index is a
         * file in index/. */
        needed = WAL__SEGMENT_HEADER_SIZE + body->size + WAL__TRAILER_SIZE;
    }
    if (needed > WAL__SEGMENT_MAX) {
        return wal__fail(error, WAL_EPOISONED,
                         "the unsynced end of the log needs %" PRIu64
                         " bytes; a segment has at most %d: close the store in "
                         "every process and open it again",
                         needed, (int)WAL__SEGMENT_MAX);
    }
    header->capacity = wal__prealloc_healing_capacity(needed);
    for (;;) {
        status = wal__segment_install(log->env, log->directory, log->control,
                                      header, body->data, body->size, error);
        if (status != WAL_ENOSPACE ||
            header->capacity <= wal__prealloc_least_capacity(needed)) {
            break;
        }
        header->capacity =
            wal__prealloc_smaller_capacity(header->capacity, needed);
    }
    log->highest_id = header->id;
    return status;
}
