/*
 * recover.c - from bytes to state: the tail's recovery by the decision table
 * (SPEC.md 3.4), catching up with other processes, and taking over from a
 * builder that died.
 *
 * Invariant: the client is given each kept record once, in log order; what is
 * kept beyond the watermark is synced before this returns.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/error.h"
#include "engine/log/log.h"

enum { QUICK_PROBE = 64 * 1024 };

/* What a scan's sink needs. */
struct applier {
    struct wal__log *log;
    struct wal__segment *segment;
    int64_t clock_ms;
    enum wal_status status;
};

static bool take_piece(void *ctx, const struct wal__scan_piece *piece)
{
    struct applier *applier = ctx;

    if (piece->commit != NULL) {
        applier->clock_ms = piece->commit->clock_ms;
    }
    applier->status = wal__log_apply_piece(applier->log, applier->segment,
                                           piece, applier->clock_ms);
    return applier->status == WAL_OK;
}

static bool take_lost(void *ctx, uint32_t session)
{
    struct applier *applier = ctx;

    applier->status =
        applier->log->client.lost(applier->log->client.ctx, session);
    return applier->status == WAL_OK;
}

/* A map as a source: catching up reads what was just written. */
static const uint8_t *map_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const uint8_t *map = ctx;

    (void)size; /* the scan stays inside the segment */
    return map + offset;
}

static void start_of(const struct wal__segment *segment,
                     struct wal__scan_start *start)
{
    memset(start, 0, sizeof(*start));
    start->salt = segment->header.salt;
    start->capacity = segment->header.capacity;
    start->group_align = segment->header.group_align;
    start->offset = WAL__SEGMENT_HEADER_SIZE;
    start->last_sequence = segment->open.last_sequence;
    start->chain = segment->open.chain;
}

/* What a scan that did not reach an end means. */
static enum wal_status scan_failed(const struct wal__segment *segment,
                                   const struct wal__scan_facts *facts,
                                   const struct applier *applier,
                                   struct wal_error *error)
{
    switch (facts->verdict) {
    case WAL__VERDICT_READ_ERROR:
        return wal__fail(error, WAL_EIO, 0, segment->path,
                         facts->error_offset, "the segment cannot be read");
    case WAL__VERDICT_NEWER:
        return wal__fail(error, WAL_EVERSION, 0, segment->path,
                         facts->error_offset,
                         "a record of a newer format; this library knows "
                         "format version %d",
                         (int)WAL__FORMAT_VERSION);
    case WAL__VERDICT_STOPPED:
        return wal__fail(error, applier->status, 0, segment->path,
                         facts->error_offset,
                         "a record cannot be taken into the indexes");
    case WAL__VERDICT_CLEAN:
    case WAL__VERDICT_TORN:
    case WAL__VERDICT_AMBIGUOUS:
    case WAL__VERDICT_DAMAGED:
        break;
    }
    return WAL_OK;
}

/* Scans by pread from `start`, applying what is kept. */
static enum wal_status scan_segment(struct wal__log *log,
                                    struct wal__segment *segment,
                                    const struct wal__scan_start *start,
                                    struct wal__scan_facts *facts,
                                    struct wal_error *error)
{
    struct applier applier = {log, segment, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, take_piece, take_lost};
    struct wal__window window;
    struct wal__scan_source source = {&window, wal__window_fetch};
    enum wal_status status;

    wal__window_init(&window, segment);
    wal__scan(&source, &sink, start, facts);
    status = window.status == WAL_ENOMEM
                 ? wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory")
                 : scan_failed(segment, facts, &applier, error);
    wal__window_deinit(&window);
    return status;
}

enum wal_status wal__log_replay(struct wal__log *log,
                                struct wal__segment *segment,
                                struct wal__scan_facts *facts,
                                struct wal_error *error)
{
    struct wal__scan_facts *own = NULL;
    struct wal__scan_start start;
    enum wal_status status;

    if (facts == NULL) {
        own = wal__heap_alloc(log->env->heap, sizeof(*own));
        if (own == NULL) {
            return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
        }
        facts = own;
    }
    start_of(segment, &start);
    start.known_end = atomic_load(&segment->end);
    status = scan_segment(log, segment, &start, facts, error);
    wal__heap_free(log->env->heap, own);
    return status;
}

/* Takes the scan's result as the stream's end. */
static void adopt_facts(struct wal__log *log,
                        const struct wal__scan_facts *facts)
{
    atomic_store(&log->tail->end, facts->end);
    atomic_store(&log->end, wal__position(log->tail->id, facts->end));
    log->last_sequence = facts->last_sequence;
    log->chain = facts->chain;
    if (facts->commit_offset != 0) {
        log->commit_offset = facts->commit_offset;
        log->last_epoch = facts->epoch;
        log->clock_ms = facts->clock_ms;
    }
    log->marked = facts->watermark == log->commit_offset;
}

/* Nothing behind a tail whose index stands beside it: it was removed before
 * anything was appended (SPEC.md 3.6). */
static enum wal_status probe_end(struct wal__log *log, uint64_t offset,
                                 bool *zero, struct wal_error *error)
{
    struct wal__segment *tail = log->tail;
    uint64_t size = tail->header.capacity - offset;
    struct wal__window window;
    const uint8_t *bytes;
    enum wal_status status = WAL_OK;

    if (size > QUICK_PROBE) {
        size = QUICK_PROBE;
    }
    wal__window_init(&window, tail);
    window.bytes = wal__heap_alloc(log->env->heap, QUICK_PROBE);
    window.capacity = QUICK_PROBE;
    if (window.bytes == NULL) {
        return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
    }
    bytes = wal__window_fetch(&window, offset, size);
    if (bytes == NULL) {
        status = wal__fail(error, window.status, window.sys_errno, tail->path,
                           offset, "the segment cannot be read");
    } else {
        *zero = size == 0 || (bytes[0] == 0 &&
                              memcmp(bytes, bytes + 1, size - 1) == 0);
    }
    wal__window_deinit(&window);
    return status;
}

/* A tail that is complete: the next append goes on in a new segment. */
static void adopt_sealed(struct wal__log *log)
{
    const struct wal__trailer *trailer = &log->tail->trailer;
    struct wal__scan_facts *facts = &log->facts;

    memset(facts, 0, sizeof(*facts));
    facts->end = trailer->end;
    facts->sealed_end = trailer->end;
    facts->watermark = trailer->end;
    facts->last_sequence = trailer->last_sequence;
    facts->chain = trailer->chain;
    adopt_facts(log, facts);
    log->marked = true;
    log->must_rotate = true;
}

/* Takes a tail out of the chain whose OPEN is not valid and that holds
 * nothing else: a crash while it was begun. Its predecessor is the tail. */
static void drop_tail(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);
    struct wal__segment *dropped = log->tail;

    table->count--;
    log->tail = table->count > 0 ? table->segments[table->count - 1] : NULL;
    wal__segment_close(dropped);
}

/* What an OPEN that is lost would have said, as far as it can be told. */
static void guess_start(struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    const struct wal__segment *previous;

    if (log->tail->linked || table->count < 2) {
        return;
    }
    previous = table->segments[table->count - 2];
    if (previous->sealed) {
        log->tail->open.last_sequence = previous->trailer.last_sequence;
        log->tail->open.chain = previous->trailer.chain;
    }
}

static enum wal_status scan_tail(struct wal__log *log,
                                 const struct wal__tail_state *state,
                                 struct wal_error *error)
{
    struct wal__scan_start start;
    bool zero = false;
    enum wal_status status;

    start_of(log->tail, &start);
    start.known_end = state->known_end;
    if (state->end != 0) {
        start.offset = state->end;
        start.last_sequence = state->last_sequence;
        start.chain = state->chain;
        log->commit_offset = state->commit_offset;
        log->last_epoch = state->epoch;
        status = probe_end(log, state->end, &zero, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (zero) {
        log->facts.end = state->end;
        log->facts.watermark = state->commit_offset;
        log->facts.last_sequence = state->last_sequence;
        log->facts.chain = state->chain;
        atomic_store(&log->shared->indexed, log->tail->id);
        return WAL_OK;
    }
    return scan_segment(log, log->tail, &start, &log->facts, error);
}

/* Writes what lies beyond the watermark again, unchanged, and syncs it: a
 * sync that failed in an earlier process may have left it in memory only. */
static enum wal_status rewrite_tail(struct wal__log *log,
                                    struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    struct wal__segment *tail = log->tail;
    uint64_t from = log->facts.watermark;
    uint64_t end = log->facts.end;
    enum wal_status status = WAL_OK;
    struct wal__window window;
    int err = 0;

    wal__window_init(&window, tail);
    while (from < end && status == WAL_OK) {
        uint64_t size = end - from < QUICK_PROBE ? end - from : QUICK_PROBE;
        const uint8_t *bytes = wal__window_fetch(&window, from, size);
        struct iovec iov = {(void *)(uintptr_t)bytes, (size_t)size};

        if (bytes == NULL) {
            status = window.status;
            err = window.sys_errno;
            break;
        }
        status = wal__io_write_full(io, tail->file, &iov, 1, from, &err);
        from += size;
    }
    wal__window_deinit(&window);
    if (status == WAL_OK) {
        status = io->sync(io->ctx, tail->file, &err);
        atomic_fetch_add(&log->syncs, 1);
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, err, tail->path, from,
                         "cannot make the end of the log durable");
    }
    return WAL_OK;
}

static enum wal_status judge(const struct wal__log *log, bool strict,
                             struct wal_error *error)
{
    const struct wal__scan_facts *facts = &log->facts;

    if (!strict) {
        return WAL_OK;
    }
    if (facts->verdict == WAL__VERDICT_AMBIGUOUS) {
        return wal__fail(error, WAL_ETORN, 0, log->tail->path,
                         facts->invalid,
                         "the tail is ambiguous: a group that may have been "
                         "acknowledged is unreadable; open without strict to "
                         "go on without it");
    }
    if (facts->verdict == WAL__VERDICT_DAMAGED) {
        return wal__fail(error, WAL_ECORRUPT, 0, log->tail->path,
                         facts->damage[0].offset,
                         "acknowledged data is damaged, sequence %" PRIu64
                         " to %" PRIu64,
                         facts->damage[0].first_sequence,
                         facts->damage[0].last_sequence);
    }
    return WAL_OK;
}

/* The shared page of a store that this process alone has open. */
static void publish(struct wal__log *log)
{
    uint64_t end = atomic_load(&log->end);

    atomic_store(&log->shared->written, end);
    atomic_store(&log->shared->durable, end);
    atomic_store(&log->shared->segments,
                 log->tail == NULL ? 0 : log->tail->id);
    atomic_store(&log->shared->rotate,
                 log->must_rotate && log->tail != NULL ? log->tail->id : 0);
    atomic_store(&log->shared->epoch, log->last_epoch);
}

/* Scans the tail, or its predecessor when the tail was never begun. */
static enum wal_status find_end(struct wal__log *log,
                                const struct wal__tail_state *state,
                                struct wal_error *error)
{
    while (log->tail != NULL) {
        enum wal_status status;

        if (log->tail->sealed) {
            adopt_sealed(log);
            return WAL_OK;
        }
        guess_start(log);
        status = scan_tail(log, state, error);
        if (status != WAL_OK) {
            return status;
        }
        if (log->tail->linked || log->facts.commit_offset != 0 ||
            log->facts.verdict == WAL__VERDICT_DAMAGED) {
            adopt_facts(log, &log->facts);
            log->must_rotate = log->facts.verdict != WAL__VERDICT_CLEAN ||
                               log->facts.sealed_end != 0 ||
                               log->facts.index_offset != 0;
            return WAL_OK;
        }
        drop_tail(log);
    }
    memset(&log->facts, 0, sizeof(log->facts));
    return WAL_OK;
}

static enum wal_status recover_alone(struct wal__log *log,
                                     const struct wal__tail_state *state,
                                     bool strict, struct wal_error *error)
{
    enum wal_status status = find_end(log, state, error);

    if (status == WAL_OK) {
        status = judge(log, strict, error);
    }
    if (status == WAL_OK && log->tail != NULL && !log->tail->sealed &&
        !log->env->read_only && log->facts.watermark < log->facts.end &&
        atomic_load(&log->shared->indexed) != log->tail->id) {
        status = rewrite_tail(log, error);
    }
    publish(log);
    return status;
}

/* Where a process that joins others begins to catch up. */
static void adopt_start(struct wal__log *log,
                        const struct wal__tail_state *state)
{
    struct wal__scan_facts *facts = &log->facts;

    facts->end = WAL__SEGMENT_HEADER_SIZE;
    facts->last_sequence = log->tail->open.last_sequence;
    facts->chain = log->tail->open.chain;
    if (state->end != 0) {
        facts->end = state->end;
        facts->last_sequence = state->last_sequence;
        facts->chain = state->chain;
        log->commit_offset = state->commit_offset;
        log->last_epoch = state->epoch;
    }
    adopt_facts(log, facts);
    log->marked = state->end != 0;
}

enum wal_status wal__log_recover(struct wal__log *log,
                                 const struct wal__tail_state *state,
                                 bool strict, struct wal_error *error)
{
    enum wal_status status;

    if (log->control->alone) {
        status = recover_alone(log, state, strict, error);
    } else {
        if (log->tail != NULL && log->tail->sealed) {
            adopt_sealed(log);
        } else if (log->tail != NULL) {
            adopt_start(log, state);
        }
        status = wal__log_catch_up(log, error);
    }
    if (status == WAL_OK) {
        log->epoch = atomic_fetch_add(&log->shared->epoch, 1) + 1;
    }
    return status;
}

/* Applies the groups of the tail from the applied end up to `to`. */
static enum wal_status apply_to(struct wal__log *log, uint64_t to,
                                struct wal_error *error)
{
    struct applier applier = {log, log->tail, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, take_piece, take_lost};
    struct wal__scan_source source = {NULL, map_fetch};
    struct wal__scan_facts *facts = &log->facts;
    struct wal__window window;
    struct wal__scan_start start;
    enum wal_status status;

    start_of(log->tail, &start);
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
    status = scan_failed(log->tail, facts, &applier, error);
    if (status == WAL_OK && facts->end != to) {
        return wal__fail(error, WAL_ECORRUPT, 0, log->tail->path,
                         facts->invalid,
                         "what another process published is damaged");
    }
    if (status == WAL_OK) {
        adopt_facts(log, facts);
    } else {
        log->stale = true;
    }
    return status;
}

/* The segment whose OPEN names the tail: found from the newest down. */
static enum wal_status open_successor(struct wal__log *log,
                                      struct wal__segment **next,
                                      struct wal_error *error)
{
    uint64_t id = atomic_load(&log->shared->segments);
    uint64_t tail = log->tail == NULL ? 0 : log->tail->id;

    for (;;) {
        struct wal__segment *segment = NULL;
        enum wal_status status =
            wal__segment_open(log->env, log->directory, id, log->uuid,
                              log->class, &segment, error);

        if (status != WAL_OK || !segment->linked) {
            wal__segment_close(segment);
            return wal__fail(error, status == WAL_OK ? WAL_ECORRUPT : status,
                             0, NULL, 0,
                             "segment %016" PRIx64
                             " of another process cannot be followed",
                             id);
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

/* Goes on in the segment after the tail. */
static enum wal_status follow(struct wal__log *log, struct wal_error *error)
{
    struct wal__segment *ended = log->tail;
    struct wal__segment *next = NULL;
    enum wal_status status = open_successor(log, &next, error);

    if (status == WAL_OK && ended != NULL) {
        status = apply_to(log, next->open.previous_end, error);
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
    atomic_store(&log->end,
                 wal__position(next->id, WAL__SEGMENT_HEADER_SIZE));
    return ended == NULL ? WAL_OK
                         : log->client.ended(log->client.ctx, ended, NULL);
}

enum wal_status wal__log_catch_up(struct wal__log *log,
                                  struct wal_error *error)
{
    uint64_t written = atomic_load(&log->shared->written);
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && atomic_load(&log->end) < written) {
        if (log->tail != NULL &&
            wal__position_segment(written) == log->tail->id) {
            status = apply_to(log, wal__position_offset(written), error);
        } else {
            status = follow(log, error);
        }
    }
    return status;
}

/* Whether anything stands behind the published end. */
static bool end_is_zero(struct wal__log *log, struct wal_error *error)
{
    static const uint8_t zero[WAL__FRAME_SIZE];
    uint64_t end = atomic_load(&log->tail->end);
    uint8_t bytes[WAL__FRAME_SIZE];
    const uint8_t *map;
    size_t got = 0;
    int err = 0;

    if (end + sizeof(zero) > log->tail->header.capacity) {
        return true;
    }
    if (!log->env->no_maps) {
        map = wal__segment_map(log->tail, error);
        return map == NULL || memcmp(map + end, zero, sizeof(zero)) == 0;
    }
    return wal__io_read_full(log->env->io, log->tail->file, bytes,
                             sizeof(bytes), end, &got, &err) != WAL_OK ||
           memcmp(bytes, zero, sizeof(zero)) == 0;
}

enum wal_status wal__log_inherit(struct wal__log *log,
                                 struct wal_error *error)
{
    struct wal__scan_start start;
    enum wal_status status;

    if (log->tail == NULL || log->must_rotate ||
        atomic_load(&log->shared->rotate) == log->tail->id ||
        end_is_zero(log, error)) {
        return WAL_OK;
    }
    start_of(log->tail, &start);
    start.offset = atomic_load(&log->tail->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    status = scan_segment(log, log->tail, &start, &log->facts, error);
    if (status != WAL_OK) {
        log->stale = true;
        return status;
    }
    adopt_facts(log, &log->facts);
    if (log->facts.verdict != WAL__VERDICT_CLEAN ||
        log->facts.sealed_end != 0 || log->facts.index_offset != 0) {
        log->must_rotate = true;
        atomic_store(&log->shared->rotate, log->tail->id);
    }
    atomic_store(&log->shared->written, atomic_load(&log->end));
    return WAL_OK;
}
