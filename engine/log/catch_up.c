/*
 * catch_up.c - applying what other processes wrote: catching up with live ones,
 * and dead-writer takeover (SPEC.md 4.3). With the state lock for writing;
 * takeover with the append lock too.
 *
 * Invariant: the client receives each published record once, in log order,
 * unless needs_reload is set.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "format/bytes/assert.h"

/* Whether the page may be reset while this handle uses it. */
static bool is_follower(const struct wal__log *log)
{
    return log->env->read_only &&
           log->shared != &log->control->private_page.logs[log->log_id];
}

static void raise_followed(struct wal__log *log, uint32_t log_id, uint64_t end)
{
    _Atomic uint64_t *followed = &log->control->followed[log_id];
    uint64_t before = atomic_load(followed);

    while (before < end &&
           !atomic_compare_exchange_weak(followed, &before, end)) {
    }
}

uint64_t wal__log_follow(struct wal__log *log)
{
    const struct wal__control_log *first = log->shared - log->log_id;
    uint64_t followed = atomic_load(&log->control->followed[log->log_id]);
    uint64_t written;
    uint64_t pack;

    if (!is_follower(log)) {
        return atomic_load(&log->shared->written);
    }
    do {
        /* Ends that were read before a reset are valid, those from a reset to
         * the end of the recovery are not; is_recovered is 0 then. */
        written = atomic_load(&log->shared->written);
        pack = atomic_load(&first[WAL__LOG_ID_PACK].written);
        if (atomic_load(&first->is_recovered) == 0) {
            return followed;
        }
        /* An end that fell may have been read during a whole recovery. */
    } while (written < followed &&
             written != atomic_load(&log->shared->written));
    raise_followed(log, WAL__LOG_ID_PACK, pack);
    raise_followed(log, log->log_id, written);
    return written;
}

bool wal__log_needs_catch_up(const struct wal__log *log)
{
    uint64_t end = atomic_load(&log->end);

    return log->needs_reload || wal__log_is_outdated(log) ||
           end < atomic_load(&log->shared->written) ||
           (is_follower(log) &&
            end < atomic_load(&log->control->followed[log->log_id]));
}

/* Reads a scan's source from a map without populating it: the bytes were just
 * written, so they are in memory. */
static const uint8_t *map_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const uint8_t *map = ctx;

    (void)size; /* the scan stays inside the segment */
    return map + offset;
}

/* Applies the groups of the tail segment from the applied end up to offset
 * `to`. */
static enum wal_status apply_to(struct wal__log *log, uint64_t to,
                                struct wal_error *error)
{
    struct wal__applier applier = {log, log->tail_segment, log->clock_ms,
                                   WAL_OK};
    struct wal__scan_sink sink = {&applier, wal__replay_apply_range,
                                  wal__replay_record_lost};
    struct wal__scan_source source = {NULL, map_fetch};
    struct wal__scan_result *facts = &log->facts;
    struct wal__segment_reader reader;
    struct wal__scan_start start;
    enum wal_status status;

    wal__replay_init_start(log->tail_segment, &start);
    start.offset = atomic_load(&log->tail_segment->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    start.capacity = to;
    start.known_end = to;
    if (start.offset >= to) {
        return WAL_OK;
    }
    wal__segment_reader_init(&reader, log->tail_segment);
    if (log->env->use_pread) {
        source.ctx = &reader;
        source.fetch = wal__segment_reader_fetch;
    } else {
        source.ctx =
            (void *)(uintptr_t)wal__segment_map(log->tail_segment, error);
        if (source.ctx == NULL) {
            return WAL_EIO;
        }
    }
    wal__scan(&source, &sink, &start, facts);
    wal__segment_reader_deinit(&reader);
    status = wal__replay_status(log->tail_segment, facts, &applier, error);
    if (status == WAL_OK && facts->end != to) {
        return wal__fail_at(
            error, WAL_ECORRUPT, 0, log->tail_segment->path, facts->invalid,
            "a group that another process published is damaged");
    }
    if (status == WAL_OK) {
        wal__replay_set_end(log, facts);
    } else {
        log->needs_reload = true;
    }
    return status;
}

/* Removes segments newer than `id` from the chain: healing continued without
 * them. They remain open for readers that use them. */
static void retire_newer_segments(struct wal__log *log, uint64_t id)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    while (log->tail_segment != NULL && log->tail_segment->id > id) {
        struct wal__segment *dropped = log->tail_segment;

        WAL__ASSERT(table->count > 0 &&
                    table->segments[table->count - 1] == dropped);
        table->count--;
        log->tail_segment =
            table->count > 0 ? table->segments[table->count - 1] : NULL;
        wal__log_retire(log, dropped);
        log->needs_reload = true;
    }
}

/* Whether compaction has replaced the segments after the tail, the tail perhaps
 * among them: one of them is gone, or was rewritten. */
static bool is_overtaken(const struct wal__log *log, enum wal_status status,
                         const struct wal__segment *segment, uint64_t id)
{
    return log->log_id == WAL__LOG_ID_LOG &&
           (status == WAL_OK
                ? wal__segment_is_rewritten(&segment->header)
                : status == WAL_ENOTFOUND && id != wal__log_newest_id(log));
}

/* Opens the segment whose OPEN names the tail as its predecessor: searched from
 * the newest one downwards. *next is NULL when the chain was replaced: it must
 * be found anew. */
static enum wal_status open_successor(struct wal__log *log,
                                      struct wal__segment **next,
                                      struct wal_error *error)
{
    uint64_t id = wal__position_segment(wal__log_follow(log));

    for (;;) {
        uint64_t tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;
        struct wal__segment *segment = NULL;
        enum wal_status status =
            wal__segment_open(log->env, log->directory, id, log->uuid,
                              log->class, &segment, error);

        if (is_overtaken(log, status, segment, id)) {
            wal__segment_close(segment);
            log->needs_reload = true;
            return WAL_OK;
        }
        if (status != WAL_OK || !segment->has_open) {
            wal__segment_close(segment);
            return wal__fail(error, status == WAL_OK ? WAL_ECORRUPT : status,
                             "segment %016" PRIx64
                             ", which another process began, has no valid OPEN",
                             id);
        }
        if (segment->open.previous_id < tail) {
            retire_newer_segments(log, segment->open.previous_id);
            tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;
        }
        if (segment->open.previous_id == tail) {
            *next = segment;
            return WAL_OK;
        }
        id = segment->open.previous_id;
        wal__segment_close(segment);
        if (id <= tail) {
            return wal__fail(error, WAL_ECORRUPT,
                             "the segment chain of the live processes does not "
                             "contain this process's tail segment");
        }
    }
}

/* Applies the rest of a segment that its successor ends at `end`. Where more of
 * it was applied, healing has cut it: the indexes must be rebuilt. */
static enum wal_status finish_segment(struct wal__log *log,
                                      struct wal__segment *ended, uint64_t end,
                                      struct wal_error *error)
{
    if (wal__segment_is_rewritten(&ended->header)) {
        /* Healing replaced an empty segment after it. It is whole: `end` is
         * that of the segment that it replaced. */
        log->needs_reload = true;
        return WAL_OK;
    }
    if (!log->needs_reload && atomic_load(&ended->end) <= end) {
        return apply_to(log, end, error);
    }
    atomic_store(&ended->end, end);
    log->needs_reload = true;
    return WAL_OK;
}

/* Makes the segment after the tail the tail. */
static enum wal_status advance_segment(struct wal__log *log,
                                       struct wal_error *error)
{
    struct wal__segment *ended;
    struct wal__segment *next = NULL;
    enum wal_status status = open_successor(log, &next, error);

    if (status == WAL_OK && next == NULL) {
        return WAL_OK;
    }
    ended = log->tail_segment;
    if (status == WAL_OK && ended != NULL) {
        status = finish_segment(log, ended, next->open.previous_end, error);
    }
    if (status == WAL_OK) {
        status = wal__log_append_segment(log, next);
    }
    if (status != WAL_OK) {
        wal__segment_close(next);
        return status;
    }
    WAL__ASSERT(ended == NULL || ended->id < next->id);
    atomic_store(&next->end, WAL__SEGMENT_HEADER_SIZE);
    log->last_sequence = next->open.last_sequence;
    log->chain = next->open.chain;
    log->must_rotate = false;
    atomic_store(&log->end, wal__position(next->id, WAL__SEGMENT_HEADER_SIZE));
    if (ended == NULL || log->needs_reload) {
        log->commit_offset = 0;
        return WAL_OK;
    }
    status = wal__segment_refresh(ended);
    if (status == WAL_OK) {
        status = log->client.on_segment_end(log->client.ctx, ended, NULL);
    }
    if (status != WAL_OK) {
        /* The indexes have not recorded that the segment ended. */
        log->needs_reload = true;
    }
    log->commit_offset = 0; /* the next one's OPEN may have no COMMIT */
    wal__segment_release_file(ended);
    return status;
}

enum wal_status wal__log_catch_up(struct wal__log *log, struct wal_error *error)
{
    uint64_t written = wal__log_follow(log);
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !log->needs_reload &&
           atomic_load(&log->end) < written) {
        if (log->tail_segment != NULL &&
            wal__position_segment(written) == log->tail_segment->id) {
            status = apply_to(log, wal__position_offset(written), error);
        } else {
            status = advance_segment(log, error);
        }
    }
    return status;
}

/* Whether the bytes after the published end are zero: no group follows. */
static enum wal_status end_is_zero(struct wal__log *log, bool *zero,
                                   struct wal_error *error)
{
    static const uint8_t zeros[WAL__FRAME_SIZE];
    uint64_t end = atomic_load(&log->tail_segment->end);
    uint8_t bytes[WAL__FRAME_SIZE] = {0};
    const uint8_t *at = bytes;
    enum wal_status status;
    size_t got = 0;
    int err = 0;

    *zero = true;
    if (end + sizeof(zeros) > log->tail_segment->header.capacity) {
        return WAL_OK;
    }
    if (!log->env->use_pread) {
        at = wal__segment_map(log->tail_segment, error);
        if (at == NULL) {
            return WAL_EIO;
        }
        at += end;
    } else {
        status = wal__io_read_full(log->env->io, log->tail_segment->file, bytes,
                                   sizeof(bytes), end, &got, &err);
        if (status != WAL_OK) {
            return wal__fail_at(error, status, err, log->tail_segment->path,
                                end, "cannot read the end of the log");
        }
    }
    *zero = memcmp(at, zeros, sizeof(zeros)) == 0;
    return WAL_OK;
}

/* Decides about what follows the published end, by the decision table; then
 * publishes what it keeps. */
static enum wal_status scan_unpublished(struct wal__log *log,
                                        struct wal_error *error)
{
    struct wal__scan_start start;
    enum wal_status status;
    bool zero;

    if (log->tail_segment == NULL || log->must_rotate ||
        atomic_load(&log->shared->closed_segment_id) == log->tail_segment->id) {
        return WAL_OK;
    }
    status = end_is_zero(log, &zero, error);
    if (status != WAL_OK || zero) {
        return status;
    }
    wal__replay_init_start(log->tail_segment, &start);
    start.offset = atomic_load(&log->tail_segment->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    status =
        wal__replay_scan(log, log->tail_segment, &start, &log->facts, error);
    if (status != WAL_OK) {
        log->needs_reload = true;
        return status;
    }
    wal__replay_set_end(log, &log->facts);
    if (log->facts.verdict != WAL__VERDICT_CLEAN ||
        log->facts.sealed_end != 0 || log->facts.index_offset != 0) {
        log->must_rotate = true;
        atomic_store(&log->shared->closed_segment_id, log->tail_segment->id);
    }
    WAL__ASSERT(log->append_lock_held);
    WAL__ASSERT(atomic_load(&log->tail_segment->end) >= start.offset);
    atomic_store(&log->shared->written, atomic_load(&log->end));
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_WRITTEN);
    return WAL_OK;
}

enum wal_status wal__log_take_over_dead_writer(struct wal__log *log,
                                               struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held);
    if (atomic_load(&log->shared->last_appender_epoch) == log->epoch) {
        return WAL_OK; /* no other process has written since */
    }
    status = scan_unpublished(log, error);
    if (status == WAL_OK) {
        atomic_store(&log->shared->last_appender_epoch, log->epoch);
    }
    return status;
}
