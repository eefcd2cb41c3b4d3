/*
 * follow.c - what other processes wrote: catching up with those that live, and
 * taking over from a builder that died (SPEC.md 4.3).
 *
 * Invariant: the client is given each published record once, in log order.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/replay.h"

/* A map as a source: catching up reads what was just written. */
static const uint8_t *map_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const uint8_t *map = ctx;

    (void)size; /* the scan stays inside the segment */
    return map + offset;
}

/* Applies the groups of the tail from the applied end up to `to`. */
static enum wal_status apply_to(struct wal__log *log, uint64_t to,
                                struct wal_error *error)
{
    struct wal__applier applier = {log, log->tail, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, wal__replay_piece,
                                  wal__replay_lost};
    struct wal__scan_source source = {NULL, map_fetch};
    struct wal__scan_facts *facts = &log->facts;
    struct wal__window window;
    struct wal__scan_start start;
    enum wal_status status;

    wal__replay_start(log->tail, &start);
    start.offset = atomic_load(&log->tail->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    start.capacity = to;
    start.known_end = to;
    if (start.offset >= to) {
        return WAL_OK;
    }
    wal__window_init(&window, log->tail);
    if (log->env->no_maps) {
        source.ctx = &window;
        source.fetch = wal__window_fetch;
    } else {
        source.ctx = (void *)(uintptr_t)wal__segment_map(log->tail, error);
        if (source.ctx == NULL) {
            return WAL_EIO;
        }
    }
    wal__scan(&source, &sink, &start, facts);
    wal__window_deinit(&window);
    status = wal__replay_failed(log->tail, facts, &applier, error);
    if (status == WAL_OK && facts->end != to) {
        return wal__fail(error, WAL_ECORRUPT, 0, log->tail->path,
                         facts->invalid,
                         "what another process published is damaged");
    }
    if (status == WAL_OK) {
        wal__replay_adopt(log, facts);
    } else {
        log->stale = true;
    }
    return status;
}

/* Takes segments out of the chain that are newer than this one: healing went
 * on without them. They stay open, for readers that are at them. */
static void drop_newer(struct wal__log *log, uint64_t id)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    while (log->tail != NULL && log->tail->id > id) {
        struct wal__segment *dropped = log->tail;

        table->count--;
        log->tail = table->count > 0 ? table->segments[table->count - 1] : NULL;
        dropped->dropped = log->dropped;
        log->dropped = dropped;
        log->stale = true;
    }
}

/* The segment whose OPEN names the tail: found from the newest down. */
static enum wal_status open_successor(struct wal__log *log,
                                      struct wal__segment **next,
                                      struct wal_error *error)
{
    uint64_t id = wal__log_newest(log);

    for (;;) {
        uint64_t tail = log->tail == NULL ? 0 : log->tail->id;
        struct wal__segment *segment = NULL;
        enum wal_status status =
            wal__segment_open(log->env, log->directory, id, log->uuid,
                              log->class, &segment, error);

        if (status != WAL_OK || !segment->linked) {
            wal__segment_close(segment);
            return wal__fail(
                error, status == WAL_OK ? WAL_ECORRUPT : status, 0, NULL, 0,
                "segment %016" PRIx64 " of another process cannot be followed",
                id);
        }
        if (segment->open.previous_id < tail) {
            drop_newer(log, segment->open.previous_id);
            tail = log->tail == NULL ? 0 : log->tail->id;
        }
        if (segment->open.previous_id == tail) {
            *next = segment;
            return WAL_OK;
        }
        id = segment->open.previous_id;
        wal__segment_close(segment);
        if (id <= tail) {
            return wal__fail(error, WAL_ECORRUPT, 0, NULL, 0,
                             "the chain of segments left this process behind");
        }
    }
}

/* The segment ends here. Where more of it was applied, healing has cut it, and
 * the indexes are built again. */
static enum wal_status leave(struct wal__log *log, struct wal__segment *ended,
                             uint64_t end, struct wal_error *error)
{
    if (!log->stale && atomic_load(&ended->end) <= end) {
        return apply_to(log, end, error);
    }
    atomic_store(&ended->end, end);
    log->stale = true;
    return WAL_OK;
}

/* Goes on in the segment after the tail. */
static enum wal_status follow(struct wal__log *log, struct wal_error *error)
{
    struct wal__segment *ended;
    struct wal__segment *next = NULL;
    enum wal_status status = open_successor(log, &next, error);

    ended = log->tail;
    if (status == WAL_OK && ended != NULL) {
        status = leave(log, ended, next->open.previous_end, error);
    }
    if (status == WAL_OK) {
        status = wal__log_link(log, next);
    }
    if (status != WAL_OK) {
        wal__segment_close(next);
        return status;
    }
    atomic_store(&next->end, WAL__SEGMENT_HEADER_SIZE);
    log->last_sequence = next->open.last_sequence;
    log->chain = next->open.chain;
    log->must_rotate = false;
    atomic_store(&log->end, wal__position(next->id, WAL__SEGMENT_HEADER_SIZE));
    if (ended == NULL || log->stale) {
        return WAL_OK;
    }
    status = wal__segment_refresh(ended);
    if (status == WAL_OK) {
        status = log->client.ended(log->client.ctx, ended, NULL);
    }
    if (status != WAL_OK) {
        log->stale = true; /* the indexes do not know that it has ended */
    }
    wal__segment_park(ended);
    return status;
}

enum wal_status wal__log_catch_up(struct wal__log *log, struct wal_error *error)
{
    uint64_t written = atomic_load(&log->shared->written);
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !log->stale &&
           atomic_load(&log->end) < written) {
        if (log->tail != NULL &&
            wal__position_segment(written) == log->tail->id) {
            status = apply_to(log, wal__position_offset(written), error);
        } else {
            status = follow(log, error);
        }
    }
    return status;
}

/* Whether nothing stands behind the published end. */
static enum wal_status end_is_zero(struct wal__log *log, bool *zero,
                                   struct wal_error *error)
{
    static const uint8_t zeros[WAL__FRAME_SIZE];
    uint64_t end = atomic_load(&log->tail->end);
    uint8_t bytes[WAL__FRAME_SIZE] = {0};
    const uint8_t *at = bytes;
    enum wal_status status;
    size_t got = 0;
    int err = 0;

    *zero = true;
    if (end + sizeof(zeros) > log->tail->header.capacity) {
        return WAL_OK;
    }
    if (!log->env->no_maps) {
        at = wal__segment_map(log->tail, error);
        if (at == NULL) {
            return WAL_EIO;
        }
        at += end;
    } else {
        status = wal__io_read_full(log->env->io, log->tail->file, bytes,
                                   sizeof(bytes), end, &got, &err);
        if (status != WAL_OK) {
            return wal__fail(error, status, err, log->tail->path, end,
                             "the end of the log cannot be read");
        }
    }
    *zero = memcmp(at, zeros, sizeof(zeros)) == 0;
    return WAL_OK;
}

static enum wal_status look_behind(struct wal__log *log,
                                   struct wal_error *error)
{
    struct wal__scan_start start;
    enum wal_status status;
    bool zero;

    if (log->tail == NULL || log->must_rotate ||
        atomic_load(&log->shared->rotate) == log->tail->id) {
        return WAL_OK;
    }
    status = end_is_zero(log, &zero, error);
    if (status != WAL_OK || zero) {
        return status;
    }
    wal__replay_start(log->tail, &start);
    start.offset = atomic_load(&log->tail->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    status = wal__replay_scan(log, log->tail, &start, &log->facts, error);
    if (status != WAL_OK) {
        log->stale = true;
        return status;
    }
    wal__replay_adopt(log, &log->facts);
    if (log->facts.verdict != WAL__VERDICT_CLEAN ||
        log->facts.sealed_end != 0 || log->facts.index_offset != 0) {
        log->must_rotate = true;
        atomic_store(&log->shared->rotate, log->tail->id);
    }
    atomic_store(&log->shared->written, atomic_load(&log->end));
    wal__control_tell(log->control, log->stream, WAL__FOLLOW_WRITTEN);
    return WAL_OK;
}

enum wal_status wal__log_inherit(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;

    if (atomic_load(&log->shared->builder) == log->epoch) {
        return WAL_OK; /* nobody has built since this process did */
    }
    status = look_behind(log, error);
    if (status == WAL_OK) {
        atomic_store(&log->shared->builder, log->epoch);
    }
    return status;
}
