/*
 * leader.c - the right to write to a log: acquiring it, and what its holder does apart from groups
 * (SPEC.md 4.1 to 4.3).
 *
 * Begin acquires the append lock, or takes over the one that the previous leader of this process
 * retained, then the state lock, and brings this process to the published end, in this order:
 *
 *  1. Poisons the log when a process died while it synced.
 *  2. Applies what other processes published (replay.c).
 *  3. Heals a poisoned log, and applies what that published.
 *  4. Looks after the published end, unless this process was the last to hold
 *     the lock: a writer that died may have left a group there, which counts
 *     when it is whole.
 *
 * Every caller that waits for a sync, and finds the log poisoned, begins in the same way, and so
 * heals it. It tries WAL__HEAL_ATTEMPTS times: processes may die one after the other while they
 * heal.
 *
 * Invariants: begin either holds append lock and state lock, with everything applied that is
 * published, or holds neither. append_lock_held is true exactly while this process holds the lock
 * byte, also while it is retained; append_lock_retained implies it.
 *
 * Healing continues after a failed write or sync, while processes have the store open. What was
 * published beyond the durable end may be in the page cache only, and the kernel treats it as clean
 * there. So it is copied, never written again in place:
 *
 *  1. Group by group, with their sequence numbers, to a new segment, whose OPEN
 *     ends the old one at the durable end and lists the damage before it. A
 *     group whose write failed was not published: it is not copied, and its
 *     writer writes it anew.
 *  2. The segment is synced, and named last. A rename is atomic, so no third
 *     kind of unfinished segment is needed.
 *  3. The space after the published end of the old segment is given back, and
 *     segments between the two are removed.
 *  4. The new segment is published, then the poison is cleared. Every process
 *     rebuilds its indexes from there.
 *
 * Until the new segment is named the log is poisoned as before, and healing can start again; a
 * process that is killed between two steps leaves nothing that the next one does not give back.
 * Healing omits nothing that was published: where a group is no longer readable, the log remains
 * poisoned. Healing acquires the preallocation lock, then the sync lock.
 */
#include "engine/log/leader.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "engine/log/index_file.h"
#include "engine/log/locks.h"
#include "engine/log/log.h"
#include "engine/log/rotate.h"
#include "format/bytes/assert.h"

struct healing {
    struct wal__log *log;
    struct wal__regroup copy; /* the new segment */
    uint64_t cut;             /* where the old segment ends: an offset in it */
    enum wal_status status;
};

/* What the COMMIT of OPEN has. */
static struct wal__commit_record commit_fields(const struct wal__log *log)
{
    const struct wal__io *io = log->env->io;

    return (struct wal__commit_record){.epoch = log->epoch,
                                       .clock_ms = io->now_ms(io->ctx),
                                       .pack_durable = wal__log_pack_durable(log)};
}

static bool copy_range(void *ctx, const struct wal__scan_range *range)
{
    struct healing *healing = ctx;

    healing->status =
        wal__regroup_add_group(&healing->copy, range, &healing->log->tail_segment->header);
    return healing->status == WAL_OK;
}

/* Scans the tail segment from `offset` to `end`, and copies its groups when
 * `copies`: fails then unless whole groups fill that range. */
static enum wal_status read_tail(struct healing *healing, uint64_t offset, uint64_t end,
                                 bool copies, struct wal__scan_result *facts,
                                 uint64_t last_sequence, uint32_t chain)
{
    struct wal__log *log = healing->log;
    struct wal__scan_sink sink = {healing, copies ? copy_range : NULL, NULL};
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    struct wal__scan_start start;
    enum wal_status status;

    wal__replay_init_start(log->tail_segment, &start);
    start.offset = offset;
    start.last_sequence = last_sequence;
    start.chain = chain;
    start.capacity = end;
    start.known_end = end;
    wal__segment_reader_init(&reader, log->tail_segment);
    wal__scan(&source, &sink, &start, facts);
    status = reader.status;
    wal__segment_reader_deinit(&reader);
    if (healing->status != WAL_OK) {
        return healing->status;
    }
    /* Damage is before the cut only: from there on whole groups are copied. */
    if (status == WAL_OK &&
        (facts->end != end || (facts->verdict != WAL__VERDICT_CLEAN &&
                               (copies || facts->verdict != WAL__VERDICT_DAMAGED)))) {
        status = WAL_ECORRUPT;
    }
    return status;
}

/*
 * The tail is not published, or recovery found only an OPEN there. It holds nothing else, so that
 * the new segment takes its place, with the same record.
 */
static enum wal_status replace_tail(struct healing *healing, uint64_t durable)
{
    struct wal__log *log = healing->log;
    const struct wal__commit_record commit = commit_fields(log);
    struct wal__segment *tail = log->tail_segment;
    struct wal__open_record open = tail->open;
    uint8_t record[sizeof(open) + 8];
    struct wal__record_buf scratch;
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status = WAL_OK;

    healing->copy.chain = open.chain;
    healing->cut = open.previous_end;
    if (wal__position(open.previous_id, healing->cut) != durable &&
        (open.previous_id != 0 || durable != 0)) {
        return WAL_ECORRUPT;
    }
    if (open.damage_count == 0) {
        /* The write of the record may be what failed. */
        wal__open_record_encode(&open, NULL, record);
        return wal__regroup_add_open_record(&healing->copy, record,
                                            (uint32_t)wal__open_record_size(0), open.last_sequence,
                                            &commit);
    }
    wal__record_buf_init(&scratch, log->env->heap);
    status = wal__log_read(log, wal__position(tail->id, WAL__SEGMENT_HEADER_SIZE), &scratch, &frame,
                           &payload, NULL);
    if (status == WAL_OK) {
        status =
            frame.type == WAL__FRAME_OPEN
                ? wal__regroup_add_open_record(&healing->copy, payload.data, (uint32_t)payload.size,
                                               open.last_sequence, &commit)
                : WAL_ECORRUPT;
    }
    wal__record_buf_deinit(&scratch);
    return status;
}

/* Builds the body of the new segment from what follows the durable end. */
static enum wal_status copy_tail(struct healing *healing, uint64_t durable, uint64_t written)
{
    struct wal__log *log = healing->log;
    struct wal__segment *tail = log->tail_segment;
    uint64_t end = wal__position_offset(written);
    const struct wal__commit_record commit = commit_fields(log);
    struct wal__scan_result *facts;
    enum wal_status status;

    if (tail == NULL) {
        return wal__regroup_add_open(&healing->copy, 0, 0, NULL, &commit);
    }
    if (wal__position_segment(written) != tail->id) {
        return replace_tail(healing, durable);
    }
    if (wal__position_segment(durable) > tail->id) {
        return WAL_ECORRUPT;
    }
    facts = wal__heap_alloc(log->env->heap, sizeof(*facts));
    if (facts == NULL) {
        return WAL_ENOMEM;
    }
    /* At least OPEN is durable, which is synced before it is published. The process that published
     * it may have died before it raised the durable end. */
    healing->cut = wal__position_segment(durable) == tail->id ? wal__position_offset(durable)
                                                              : wal__segment_open_end(tail);
    status = read_tail(healing, WAL__SEGMENT_HEADER_SIZE, healing->cut, false, facts,
                       tail->open.last_sequence, tail->open.chain);
    if (status == WAL_OK) {
        healing->copy.chain = facts->chain;
        status = wal__regroup_add_open(&healing->copy, tail->id, healing->cut, facts, &commit);
    }
    if (status == WAL_OK && healing->cut < end) {
        status =
            read_tail(healing, healing->cut, end, true, facts, facts->last_sequence, facts->chain);
    }
    wal__heap_free(log->env->heap, facts);
    return status;
}

/* Gives the space after the published end of the old segment back: nothing is written there any
 * more. What follows may be a group that was never published: healing has decided that it does not
 * count. Where the file system has no holes, the space is lost. */
static void punch_rest(const struct wal__log *log, struct wal__segment *old, uint64_t written,
                       uint64_t cut)
{
    uint64_t from = wal__segment_open_end(old);
    uint64_t to = old->header.capacity;

    if (wal__segment_refresh(old) != WAL_OK) {
        return;
    }
    if (wal__position_segment(written) == old->id && wal__position_offset(written) > from) {
        from = wal__position_offset(written);
    }
    if (old->sealed && old->trailer.end != cut) {
        old->sealed = false; /* the trailer is given back */
    }
    if (old->sealed) {
        /* A SEAL ends the segment at the cut. Processes that opened the segment with it read by the
         * index in its map, so that both are kept, also where the sync of them failed. */
        from = old->trailer.seal_offset + wal__frame_total_size(WAL__SEAL_SIZE);
        to -= WAL__TRAILER_SIZE;
    }
    wal__prealloc_punch(log, old, from, to);
}

/*
 * Publishes the new segment, which is complete and durable. Once `written` is stored, every process
 * uses it. When this process dies before the poison is cleared, the log is healed again.
 */
static void publish_healed(struct wal__log *log, uint64_t id, uint64_t end)
{
    struct wal__control_log *shared = log->shared;

    WAL__ASSERT(id == log->highest_id && end % 8 == 0);
    WAL__ASSERT(end < WAL__SEGMENT_MAX);
    atomic_store(&shared->closed_segment_id, 0);
    atomic_store(&shared->indexed_tail_id, 0);
    atomic_store(&shared->written, wal__position(id, end));
    wal__log_set_durable(log, wal__position(id, end));
    atomic_store(&shared->poison, 0);
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_WRITTEN);
}

static enum wal_status heal(struct wal__log *log, struct wal_error *error)
{
    struct healing healing = {.log = log};
    struct wal__segment *old = log->tail_segment;
    uint64_t durable = atomic_load(&log->shared->durable);
    uint64_t written = atomic_load(&log->shared->written);
    enum wal_status status;

    wal__regroup_init(&healing.copy, log->env);
    status = wal__log_find_highest_id(log, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = wal__prealloc_next_header(log, &healing.copy.header, error);
    if (status != WAL_OK) {
        goto done;
    }
    status = copy_tail(&healing, durable, written);
    if (status != WAL_OK) {
        /* The next first opener recovers the log by the decision table. */
        status = wal__fail_at(error, status == WAL_ENOMEM ? status : WAL_EPOISONED, 0,
                              old == NULL ? NULL : old->path, healing.cut,
                              "the groups written since the last sync are not all readable: "
                              "close the store in every process and open it again");
        goto done;
    }
    status = wal__log_install(log, &healing.copy.header, &healing.copy.body, error);
    if (status == WAL_OK) {
        /* Before publishing: a process that dies after it leaves nothing to give back. The poison
         * lasts until then, so that nobody appends to the old segment. */
        if (old != NULL) {
            punch_rest(log, old, written, healing.cut);
        }
        wal__prealloc_remove_leftovers(log, wal__position_segment(written), healing.copy.header.id);
        publish_healed(log, healing.copy.header.id, wal__regroup_end(&healing.copy));
    }

done:
    wal__regroup_deinit(&healing.copy);
    return status;
}

enum wal_status wal__log_heal(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status = wal__prealloc_lock_for_rotation(log, error);

    WAL__ASSERT(log->append_lock_held && log->pending_group == NULL);
    if (status != WAL_OK) {
        return status;
    }
    pthread_mutex_lock(&log->sync_mutex);
    status = wal__log_lock_sync(log, UINT64_MAX, error);
    if (status == WAL_OK) {
        /* It is that of a process that died, or that lost the lock. */
        atomic_store(&log->shared->syncing_pid, 0);
        status = heal(log, error);
        wal__control_unlock(log->control, WAL__LOCK_SYNC + log->log_id, log->log_id);
    }
    pthread_mutex_unlock(&log->sync_mutex);
    wal__prealloc_unlock(log);
    return status;
}

/* --- the leader ----------------------------------------------------------- */

/* --- the append lock ---------------------------------------------------- */

enum wal_status wal__log_lock_append(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held == log->append_lock_retained);
    if (log->append_lock_retained) {
        /* The file LOCK is compared before a group is written. */
        log->append_lock_retained = false;
        return WAL_OK;
    }
    status = wal__control_lock(log->control, WAL__LOCK_APPEND + log->log_id, log->log_id, error);
    log->append_lock_held = status == WAL_OK;
    if (status == WAL_OK) {
        status = wal__control_check_ratelimited(log->control, error);
        if (status != WAL_OK) {
            wal__log_unlock_append(log);
        }
    }
    return status;
}

void wal__log_unlock_append(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    log->append_lock_held = false;
    wal__control_unlock(log->control, WAL__LOCK_APPEND + log->log_id, log->log_id);
}

void wal__log_retain_append_lock(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    log->append_lock_retained =
        !wal__control_has_waiters(log->control, WAL__LOCK_APPEND + log->log_id, log->log_id);
    if (!log->append_lock_retained) {
        wal__log_unlock_append(log);
    }
}

void wal__log_release_retained_lock(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held || !log->append_lock_retained);
    if (log->append_lock_retained) {
        log->append_lock_retained = false;
        wal__log_unlock_append(log);
    }
}

/* --- begin and end ------------------------------------------------------ */

enum wal_status wal__leader_apply_published(struct wal__log *log,
                                            const struct wal__leader_client *client,
                                            struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (wal__log_is_outdated(log)) {
        log->needs_reload = true; /* segments were replaced */
    }
    if (!log->needs_reload) {
        status = wal__log_catch_up(log, error);
    }
    if (status == WAL_ECORRUPT || status == WAL_ENOTFOUND ||
        (status != WAL_OK && wal__log_find_replaced(log))) {
        /* Perhaps of files that compaction has replaced: what the present ones say is true. */
        log->needs_reload = true;
    }
    return log->needs_reload ? client->reload(client->ctx, error) : status;
}

/* Brings this process to the published end, under both locks. */
static enum wal_status catch_up(struct wal__log *log, const struct wal__leader_client *client,
                                bool allow_heal, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    WAL__ASSERT(log->append_lock_held);
    if (allow_heal) {
        wal__log_check_dead_syncer(log);
    } else {
        status = wal__log_check_poison(log, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__leader_apply_published(log, client, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__log_check_poison(log, NULL) != WAL_OK) {
        status = wal__log_heal(log, error);
        if (status == WAL_OK) {
            status = wal__leader_apply_published(log, client, error);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    return wal__log_take_over_dead_writer(log, error);
}

enum wal_status wal__leader_begin(struct wal__log *log, const struct wal__leader_client *client,
                                  bool allow_heal, struct wal_error *error)
{
    enum wal_status status = wal__log_lock_append(log, error);

    if (status != WAL_OK) {
        return status;
    }
    client->lock(client->ctx);
    status = catch_up(log, client, allow_heal, error);
    if (status != WAL_OK) {
        wal__leader_end(log, client);
    }
    return status;
}

void wal__leader_end(struct wal__log *log, const struct wal__leader_client *client)
{
    WAL__ASSERT(log->append_lock_held && log->pending_group == NULL);
    client->unlock(client->ctx);
    wal__log_unlock_append(log);
}

void wal__leader_end_retaining_lock(struct wal__log *log, const struct wal__leader_client *client)
{
    WAL__ASSERT(log->append_lock_held && !log->append_lock_retained);
    WAL__ASSERT(log->pending_group == NULL);
    client->unlock(client->ctx);
    wal__log_retain_append_lock(log);
}

enum wal_status wal__leader_fail_unknown(const struct wal_error *cause,
                                         const struct wal_error *healing, struct wal_error *error)
{
    return wal__fail_at(error, WAL_EPOISONED,
                        cause->sys_errno != 0 ? cause->sys_errno : healing->sys_errno, NULL, 0,
                        "%.160s, and the log could not be healed: %.200s; whether what was "
                        "written is kept is unknown: send it again with the same ids",
                        cause->text, healing->text);
}

/* --- what a leader does ------------------------------------------------- */

enum wal_status wal__leader_sync(struct wal__log *log, const struct wal__leader_client *client,
                                 uint64_t position, struct wal_error *error)
{
    struct wal_error cause = {.struct_size = sizeof(cause)};
    struct wal_error healing = {.struct_size = sizeof(healing)};
    enum wal_status status = wal__log_sync(log, position, &cause);

    for (int i = 0; status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
        if (wal__leader_begin(log, client, true, &healing) != WAL_OK) {
            break;
        }
        wal__leader_end(log, client);
        status = wal__log_sync(log, position, &cause);
    }
    if (status == WAL_OK || wal__log_is_durable(log, position)) {
        return WAL_OK;
    }
    if (status == WAL_EPOISONED) {
        return wal__leader_fail_unknown(&cause, &healing, error);
    }
    return wal__fail_at(error, WAL_EPOISONED, cause.sys_errno, NULL, 0,
                        "%.200s; whether what was written is kept is unknown: "
                        "send it again with the same ids",
                        cause.text);
}

/* Removes the index file of the tail segment, which an append makes stale. */
static enum wal_status remove_tail_index(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;
    uint64_t indexed = atomic_load(&log->shared->indexed_tail_id);

    if (indexed == 0) {
        return WAL_OK;
    }
    status = wal__index_file_remove(log, indexed);
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, log->env->root, 0,
                            "cannot remove the index file of the tail segment "
                            "%016" PRIx64,
                            indexed);
    }
    atomic_store(&log->shared->indexed_tail_id, 0);
    return WAL_OK;
}

enum wal_status wal__leader_reserve(struct wal__log *log,
                                    const struct wal__log_reservation *reservation,
                                    struct wal_error *error)
{
    /* Before a rotation, which writes to the tail segment, and may put another index file in the
     * place of this one. */
    enum wal_status status = remove_tail_index(log, error);

    WAL__ASSERT(log->append_lock_held);
    return status == WAL_OK ? wal__log_reserve(log, reservation, error) : status;
}

static enum wal_status rotate(struct wal__log *log, const struct wal__leader_client *client,
                              struct wal_error *error)
{
    enum wal_status status = wal__leader_begin(log, client, true, error);

    if (status == WAL_OK) {
        status = remove_tail_index(log, error);
        if (status == WAL_OK) {
            status = wal__log_rotate(log, error);
        }
        wal__leader_end(log, client);
    }
    return status;
}

enum wal_status wal__leader_rotate(struct wal__log *log, const struct wal__leader_client *client,
                                   struct wal_error *error)
{
    enum wal_status status = rotate(log, client, error);

    for (int i = 0; status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
        status = rotate(log, client, error);
    }
    return status;
}

/* Returns whether the tail can take a commit mark, and needs it. */
static bool needs_mark(const struct wal__log *log)
{
    return log->tail_segment != NULL && !log->marked && !log->tail_segment->sealed &&
           !log->must_rotate &&
           atomic_load(&log->shared->closed_segment_id) != log->tail_segment->id;
}

static enum wal_status write_mark(struct wal__log *log, const struct wal__leader_client *client,
                                  bool allow_heal, struct wal_error *error)
{
    enum wal_status status = wal__leader_begin(log, client, allow_heal, error);
    struct wal__group group;

    if (status != WAL_OK) {
        return status;
    }
    if (!needs_mark(log)) {
        goto done;
    }
    status = wal__log_sync(log, atomic_load(&log->end), error);
    if (status != WAL_OK) {
        goto done;
    }
    wal__group_init(&group, log);
    group.is_synced = true;
    status = wal__group_write(&group, log, error);
    wal__group_deinit(&group);
    if (status == WAL_OK) {
        status = wal__log_sync(log, atomic_load(&log->end), error);
    }

done:
    wal__leader_end(log, client);
    return status;
}

enum wal_status wal__leader_write_mark(struct wal__log *log,
                                       const struct wal__leader_client *client, bool allow_heal,
                                       struct wal_error *error)
{
    enum wal_status status = write_mark(log, client, allow_heal, error);

    for (int i = 0; allow_heal && status == WAL_EPOISONED && i < WAL__HEAL_ATTEMPTS; i++) {
        status = write_mark(log, client, true, error);
    }
    return status;
}
