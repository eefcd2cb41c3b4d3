/*
 * recover.c - recovery: finding the end of the log by the decision table (SPEC.md 3.4). One thread,
 * which opens the store.
 *
 * Invariant: the client receives each kept record once, in log order, unless log->needs_reload is
 * set: it then loads again. What is kept beyond the watermark is synced before recovery returns.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/leader.h"
#include "engine/log/log.h"
#include "format/bytes/assert.h"

enum { PROBE_SIZE = 64 * 1024 };

/* Returns whether the bytes after the end that an index file names are zero:
 * then no group follows, since the file is removed before an append (SPEC.md
 * 3.6). */
static enum wal_status probe_end(struct wal__log *log, uint64_t offset, bool *zero,
                                 struct wal_error *error)
{
    struct wal__segment *tail = log->tail_segment;
    uint64_t size = tail->header.capacity - offset;
    struct wal__segment_reader reader;
    const uint8_t *bytes;
    enum wal_status status = WAL_OK;

    WAL__ASSERT(offset <= tail->header.capacity);
    if (size > PROBE_SIZE) {
        size = PROBE_SIZE;
    }
    wal__segment_reader_init(&reader, tail);
    reader.readahead_size = 0;
    bytes = wal__segment_reader_fetch(&reader, offset, size);
    if (bytes == NULL) {
        status = wal__fail_at(error, reader.status, reader.sys_errno, tail->path, offset,
                              "cannot read the segment");
    } else {
        *zero = size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
    }
    wal__segment_reader_deinit(&reader);
    return status;
}

/* Takes the end of a sealed tail: the next append rotates. */
static void use_sealed_end(struct wal__log *log)
{
    const struct wal__trailer *trailer = &log->tail_segment->trailer;
    struct wal__scan_result *facts = &log->facts;

    WAL__ASSERT(log->tail_segment->sealed);
    memset(facts, 0, sizeof(*facts));
    log->commit_offset = 0;
    facts->end = trailer->end;
    facts->sealed_end = trailer->end;
    facts->watermark = trailer->end;
    facts->last_sequence = trailer->last_sequence;
    facts->chain = trailer->chain;
    wal__replay_set_end(log, facts);
    log->marked = true;
    log->must_rotate = true;
}

/* Removes an uninitialised tail from the chain: its predecessor is the tail. */
static void discard_tail(struct wal__log *log)
{
    struct wal__segment_table *table = atomic_load(&log->table);
    struct wal__segment *dropped = log->tail_segment;

    WAL__ASSERT(log->control->is_first_opener && !dropped->has_open);
    WAL__ASSERT(table->segments[table->count - 1] == dropped);
    table->count--;
    log->tail_segment = table->count > 0 ? table->segments[table->count - 1] : NULL;
    wal__segment_close(dropped);
}

/* Infers the fields of a lost OPEN from the trailer of its predecessor. */
static void infer_start(struct wal__log *log)
{
    const struct wal__segment_table *table = atomic_load(&log->table);
    const struct wal__segment *previous;

    if (log->tail_segment->has_open || table->count < 2) {
        return;
    }
    previous = table->segments[table->count - 2];
    if (previous->sealed) {
        log->tail_segment->open.last_sequence = previous->trailer.last_sequence;
        log->tail_segment->open.chain = previous->trailer.chain;
    }
}

/* Finds the end of the tail segment: from its index file on where it has one, otherwise by a whole
 * scan. */
static enum wal_status scan_tail(struct wal__log *log, const struct wal__tail_state *state,
                                 struct wal_error *error)
{
    struct wal__scan_start start;
    bool zero = false;
    enum wal_status status;

    wal__replay_init_start(log->tail_segment, &start);
    start.known_end = state->known_end;
    start.is_replica = log->env->is_replica;
    start.watermark = log->log_id == WAL__LOG_ID_PACK ? state->known_end : 0;
    if (state->end != 0) {
        wal__log_raise_pack_durable(log, state->pack_durable);
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
    if (zero && state->known_end <= state->end) {
        log->facts.end = state->end;
        log->facts.watermark = state->commit_offset;
        log->facts.last_sequence = state->last_sequence;
        log->facts.chain = state->chain;
        atomic_store(&log->shared->indexed_tail_id, log->tail_segment->id);
        return WAL_OK;
    }
    return wal__replay_scan(log, log->tail_segment, &start, &log->facts, error);
}

/* Starts the epoch of the groups that this process writes. */
static void start_epoch(struct wal__log *log)
{
    log->epoch = atomic_fetch_add(&log->shared->epoch, 1) + 1;
}

/* Publishes, for healing, what the tail holds from `from` on; or the end of its predecessor when it
 * holds only OPEN, whose segment is then replaced. */
static void publish_for_healing(struct wal__log *log, uint64_t from)
{
    struct wal__control_log *shared = log->shared;
    const struct wal__segment *tail = log->tail_segment;
    uint64_t open_end = wal__segment_open_end(tail);
    uint64_t durable = wal__position(tail->id, from > open_end ? from : open_end);
    uint64_t written = wal__position(tail->id, log->facts.end);

    if (log->facts.end <= open_end) {
        durable = tail->open.previous_id == 0
                      ? 0
                      : wal__position(tail->open.previous_id, tail->open.previous_end);
        written = durable;
    }
    atomic_store(&shared->durable, durable);
    atomic_store(&shared->closed_segment_id, log->must_rotate ? tail->id : 0);
    atomic_store(&shared->epoch, log->last_epoch);
    atomic_store(&shared->written, written);
}

/*
 * Heals the log that an earlier process left poisoned: copies what it keeps from `from` on to a new
 * segment, which the caller loads afterwards (log->needs_reload). Where that fails the log remains
 * poisoned, and can be read; the next append heals it.
 */
static enum wal_status heal_tail(struct wal__log *log, uint64_t from, struct wal_error *error)
{
    enum wal_status status = wal__log_lock_append(log, error);

    if (status != WAL_OK) {
        return status;
    }
    publish_for_healing(log, from);
    start_epoch(log);
    status = wal__log_heal(log, error);
    wal__log_unlock_append(log);
    if (status == WAL_OK) {
        status = wal__log_catch_up(log, error);
        WAL__ASSERT(status != WAL_OK || log->needs_reload);
    } else if (status == WAL_ENOSPACE || status == WAL_EPOISONED) {
        status = WAL_OK;
    }
    return status;
}

static enum wal_status sync_tail(struct wal__log *log, uint64_t from, struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    struct wal__segment *tail = log->tail_segment;
    enum wal_status status;
    int err = 0;

    atomic_store(&log->shared->syncing_pid, log->control->process_id);
    status = io->sync(io->ctx, tail->file, &err);
    atomic_fetch_add(&log->syncs, 1);
    if (status != WAL_OK) {
        /* The control page keeps the poison for the next opener. */
        wal__control_poison(log->shared, WAL__POISON_SYNC, (uint32_t)err);
        return wal__fail_at(error, status, err, tail->path, from,
                            "cannot make the end of the log durable");
    }
    atomic_store(&log->shared->syncing_pid, 0);
    return WAL_OK;
}

/* Returns the offset in the tail segment up to which it is known to be durable, by its COMMITs, the
 * control page and derived files. */
static uint64_t find_durable_offset(const struct wal__log *log, uint64_t known_end)
{
    uint64_t durable = atomic_load(&log->shared->durable);
    uint64_t from = log->facts.watermark;

    if (wal__position_segment(durable) == log->tail_segment->id &&
        wal__position_offset(durable) > from) {
        from = wal__position_offset(durable);
    }
    return known_end > from ? known_end : from;
}

/*
 * Makes the kept end of the log durable. Where a sync failed in an earlier process, what is beyond
 * the durable end may be in the page cache only, and the kernel treats it as clean. It is copied to
 * a new segment, never written again in place, because it may be durable nevertheless: the control
 * page does not survive a power loss, so the durable end may be an older one, and a power loss may
 * destroy bytes that are being written. Derived files stop at the durable end: known_end is one.
 * *published: healing has published the end.
 */
static enum wal_status make_tail_durable(struct wal__log *log, uint64_t known_end, bool *published,
                                         struct wal_error *error)
{
    uint64_t from = find_durable_offset(log, known_end);

    if (from >= log->facts.end) {
        return WAL_OK;
    }
    *published = atomic_load(&log->shared->poison) != 0;
    return *published ? heal_tail(log, from, error) : sync_tail(log, from, error);
}

static enum wal_status apply_strict_mode(const struct wal__log *log, bool strict,
                                         struct wal_error *error)
{
    const struct wal__scan_result *facts = &log->facts;

    if (!strict) {
        return WAL_OK;
    }
    if (facts->verdict == WAL__VERDICT_AMBIGUOUS) {
        return wal__fail_at(error, WAL_ETORN, 0, log->tail_segment->path, facts->invalid,
                            "the tail is ambiguous: a group that may have been "
                            "acknowledged is unreadable; open without strict to "
                            "continue without it");
    }
    if (facts->verdict == WAL__VERDICT_DAMAGED) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, log->tail_segment->path,
                            facts->damage[0].offset,
                            "acknowledged data is damaged, sequence %" PRIu64 " to %" PRIu64,
                            facts->damage[0].first_sequence, facts->damage[0].last_sequence);
    }
    return WAL_OK;
}

/* Returns the durable end of a log that this process recovered: a handle that only reads has synced
 * nothing. What it finds in a copy was durable before it was copied. */
static uint64_t recovered_durable(const struct wal__log *log, const struct wal__tail_state *state)
{
    const struct wal__segment *tail = log->tail_segment;
    uint64_t end = atomic_load(&log->end);
    uint64_t offset;
    uint64_t durable;

    if (!log->env->read_only || tail == NULL || log->last_sequence <= state->copied ||
        atomic_load(&log->shared->durable) >= end) {
        return end;
    }
    offset = find_durable_offset(log, state->known_end);
    if (tail->has_open && offset < wal__segment_open_end(tail)) {
        offset = wal__segment_open_end(tail);
    }
    durable = wal__position(tail->id, offset);
    return durable < end ? durable : end;
}

/* Publishes the recovered end. Of the first opener: no other process writes the page. */
static void publish_recovered(struct wal__log *log, const struct wal__tail_state *state)
{
    uint64_t end = atomic_load(&log->end);

    WAL__ASSERT(log->control->is_first_opener);
    WAL__ASSERT(log->tail_segment == NULL ||
                end == wal__position(log->tail_segment->id, atomic_load(&log->tail_segment->end)));
    atomic_store(&log->shared->durable, recovered_durable(log, state));
    atomic_store(&log->shared->poison, 0);
    atomic_store(&log->shared->closed_segment_id,
                 log->must_rotate && log->tail_segment != NULL ? log->tail_segment->id : 0);
    atomic_store(&log->shared->epoch, log->last_epoch);
    /* Last: a reader that still maps the page then finds the segment. */
    atomic_store(&log->shared->written, end);
}

/* Returns whether the tail, which has no valid OPEN, holds anything: OPEN is durable before
 * anything else is written, so a tail without groups is uninitialised, and not damaged. */
static enum wal_status is_initialised(struct wal__log *log, bool *initialised,
                                      struct wal_error *error)
{
    const struct wal__scan_sink sink = {0};
    struct wal__scan_result *facts = &log->facts;
    struct wal__scan_start start;
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    enum wal_status status = WAL_OK;

    infer_start(log);
    wal__replay_init_start(log->tail_segment, &start);
    start.is_replica = log->env->is_replica;
    wal__segment_reader_init(&reader, log->tail_segment);
    wal__scan(&source, &sink, &start, facts);
    if (facts->verdict == WAL__VERDICT_READ_ERROR) {
        status =
            wal__fail_at(error, reader.status != WAL_OK ? reader.status : WAL_EIO, reader.sys_errno,
                         log->tail_segment->path, facts->error_offset, "cannot read the segment");
    }
    wal__segment_reader_deinit(&reader);
    *initialised = facts->commit_offset != 0 ||
                   (facts->verdict != WAL__VERDICT_CLEAN && facts->verdict != WAL__VERDICT_TORN);
    memset(facts, 0, sizeof(*facts));
    return status;
}

enum wal_status wal__log_discard_uninitialised_tail(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    bool initialised = false;

    while (status == WAL_OK && !initialised && log->control->is_first_opener &&
           log->tail_segment != NULL && !log->tail_segment->has_open &&
           !log->tail_segment->sealed) {
        status = is_initialised(log, &initialised, error);
        if (status == WAL_OK && !initialised) {
            discard_tail(log);
            if (log->tail_segment != NULL) {
                status = wal__segment_reopen_file(log->tail_segment, error);
            }
        }
    }
    return status;
}

/* Finds the end of the log, and decides whether the tail takes more groups. */
static enum wal_status find_end(struct wal__log *log, const struct wal__tail_state *state,
                                struct wal_error *error)
{
    enum wal_status status;

    memset(&log->facts, 0, sizeof(log->facts));
    log->facts_segment_id = 0;
    if (log->tail_segment == NULL) {
        return WAL_OK;
    }
    log->facts_segment_id = log->tail_segment->id;
    if (log->tail_segment->sealed) {
        use_sealed_end(log);
        return WAL_OK;
    }
    infer_start(log);
    status = scan_tail(log, state, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__replay_set_end(log, &log->facts);
    log->must_rotate = log->facts.verdict != WAL__VERDICT_CLEAN || log->facts.sealed_end != 0 ||
                       log->facts.index_offset != 0 ||
                       wal__segment_is_rewritten(&log->tail_segment->header);
    return WAL_OK;
}

/* Returns whether a power cut may take back the name of a rewritten segment. */
static bool may_lose_name(const struct wal__log *log)
{
    uint32_t count = wal__log_segment_count(log);
    bool found = false;

    for (uint32_t i = 0; i < count && !found; i++) {
        found = wal__segment_is_rewritten(&wal__log_segment_at(log, i)->header);
    }
    return found && atomic_load(&log->shared->unsynced_renames) != 0;
}

/* Recovers the tail, makes it durable and publishes it. Of the first opener. */
static enum wal_status recover_exclusive(struct wal__log *log, const struct wal__tail_state *state,
                                         bool strict, struct wal_error *error)
{
    enum wal_status status = find_end(log, state, error);
    bool makes_durable = false;
    bool published = false;

    if (status != WAL_OK) {
        return status;
    }
    status = apply_strict_mode(log, strict, error);
    if (status != WAL_OK) {
        return status;
    }
    if (log->tail_segment != NULL && !log->env->read_only) {
        makes_durable = !log->tail_segment->sealed &&
                        atomic_load(&log->shared->indexed_tail_id) != log->tail_segment->id;
        /* What a compaction that was cut short has renamed stays so. */
        if (makes_durable || may_lose_name(log)) {
            status = wal__log_sync_directory(log, error);
        }
    }
    if (status == WAL_OK && makes_durable) {
        status = make_tail_durable(log, state->known_end, &published, error);
    }
    if (status == WAL_OK && !published) {
        publish_recovered(log, state);
    }
    return status;
}

/* Sets the end from which a process that joins others catches up. */
static void use_start_of_joiner(struct wal__log *log, const struct wal__tail_state *state)
{
    struct wal__scan_result *facts = &log->facts;

    WAL__ASSERT(!log->control->is_first_opener);
    memset(facts, 0, sizeof(*facts));
    log->commit_offset = 0;
    facts->end = WAL__SEGMENT_HEADER_SIZE;
    facts->last_sequence = log->tail_segment->open.last_sequence;
    facts->chain = log->tail_segment->open.chain;
    if (state->end != 0) {
        facts->end = state->end;
        facts->last_sequence = state->last_sequence;
        facts->chain = state->chain;
        log->commit_offset = state->commit_offset;
        log->last_epoch = state->epoch;
        wal__log_raise_pack_durable(log, state->pack_durable);
    }
    wal__replay_set_end(log, facts);
    log->marked = state->end != 0;
}

enum wal_status wal__log_recover(struct wal__log *log, const struct wal__tail_state *state,
                                 bool strict, struct wal_error *error)
{
    enum wal_status status;

    if (log->control->is_first_opener) {
        status = recover_exclusive(log, state, strict, error);
        if (status == WAL_OK && !log->needs_reload) {
            wal__log_remove_leftovers(log);
        }
    } else {
        if (log->tail_segment != NULL && log->tail_segment->sealed) {
            use_sealed_end(log);
        } else if (log->tail_segment != NULL) {
            use_start_of_joiner(log, state);
        }
        status = wal__log_catch_up(log, error);
    }
    if (status == WAL_OK && !log->env->read_only) {
        start_epoch(log);
    }
    return status;
}
