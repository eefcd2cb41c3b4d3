/*
 * group.c - a group of the log (SPEC.md 3.1, 3.3).
 *
 * Invariant: disk space and memory are reserved before the first byte is
 * written; a write that fails after that poisons the log. log->end moves only
 * after the whole group is written, and is published after that.
 */
#include "engine/log/group.h"

#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"

enum {
    WRITE_BACK_SIZE = 1024 * 1024 /* groups from here on start writeback */
};

static const uint8_t padding[4096];

void wal__group_init(struct wal__group *group, const struct wal__log *log)
{
    memset(group, 0, sizeof(*group));
    wal__buf_init(&group->iov, log->env->heap);
    group->chain = log->chain;
    group->first_sequence = log->last_sequence + 1;
    group->next_sequence = group->first_sequence;
    group->clock_ms = log->env->io->now_ms(log->env->io->ctx);
}

void wal__group_deinit(struct wal__group *group)
{
    wal__buf_deinit(&group->iov);
}

uint64_t wal__group_offset(const struct wal__group *group,
                           const struct wal__log *log)
{
    return atomic_load(&log->tail_segment->end) + group->size;
}

/* Adds bytes to the vector; extends the last element when they follow it in
 * memory. */
static enum wal_status add_bytes(struct wal__group *group, const void *bytes,
                                 uint64_t size)
{
    struct iovec iov = {(void *)(uintptr_t)bytes, (size_t)size};
    struct iovec *last;

    WAL__ASSERT(size <= WAL__SEGMENT_MAX - group->size);
    if (group->iov.size > 0) {
        last = (struct iovec *)(void *)(group->iov.data + group->iov.size) - 1;
        if ((const uint8_t *)last->iov_base + last->iov_len == bytes) {
            last->iov_len += (size_t)size;
            group->size += size;
            return WAL_OK;
        }
    }
    if (wal__buf_append(&group->iov, &iov, sizeof(iov)) != WAL_OK) {
        return WAL_ENOMEM;
    }
    group->size += size;
    return WAL_OK;
}

enum wal_status wal__group_add(struct wal__group *group,
                               const struct wal__log *log,
                               struct wal__frame *frame, uint8_t *bytes)
{
    WAL__ASSERT(group->size % 8 == 0);
    WAL__ASSERT(group->next_sequence > log->last_sequence);
    if (wal__frame_is_sequenced(frame->type)) {
        frame->sequence = group->next_sequence;
    }
    wal__frame_encode(frame, log->tail_segment->header.salt,
                      wal__group_offset(group, log), bytes);
    if (add_bytes(group, bytes, wal__frame_total_size(frame->stored_size)) !=
        WAL_OK) {
        return WAL_ENOMEM;
    }
    group->chain = wal__frame_chain_crc(group->chain, frame);
    group->frames++;
    if (wal__frame_is_sequenced(frame->type)) {
        group->next_sequence++;
    }
    return WAL_OK;
}

/* Returns the durable end that a COMMIT written now names (SPEC.md 3.3). */
static uint64_t durable_offset(const struct wal__log *log)
{
    uint64_t durable = atomic_load(&log->shared->durable);

    if (wal__position_segment(durable) == log->tail_segment->id) {
        return wal__position_offset(durable);
    }
    return WAL__SEGMENT_HEADER_SIZE;
}

/* Encodes the COMMIT frame to out[WAL__COMMIT_SPAN_MAX]; returns its size. */
static uint64_t encode_commit(const struct wal__log *log,
                              const struct wal__group *group,
                              struct wal__commit_record *commit,
                              struct wal__frame *frame, uint8_t *out)
{
    uint64_t offset = wal__group_offset(group, log);

    WAL__ASSERT(group->session_count <= WAL__COMMIT_SESSIONS_MAX);
    WAL__ASSERT(group->next_sequence - group->first_sequence <= group->frames);
    memset(commit, 0, sizeof(*commit));
    commit->first_sequence = group->first_sequence;
    commit->frame_count = group->frames;
    commit->group_size = (uint32_t)group->size;
    commit->chain = group->chain;
    commit->durable_off = (uint32_t)durable_offset(log);
    commit->epoch = log->epoch;
    commit->clock_ms = group->clock_ms;
    commit->pack_durable = wal__log_pack_durable(log);
    commit->flags = group->durable ? WAL__COMMIT_DURABLE : 0;
    commit->session_count = group->session_count;
    memset(frame, 0, sizeof(*frame));
    frame->type = WAL__FRAME_COMMIT;
    frame->stored_size =
        (uint32_t)wal__commit_record_size(group->session_count);
    frame->raw_size = frame->stored_size;
    WAL__ASSERT(wal__frame_total_size(frame->stored_size) <=
                WAL__COMMIT_SPAN_MAX);
    memset(out, 0, wal__frame_total_size(frame->stored_size));
    wal__commit_record_encode(commit, group->sessions, out + WAL__FRAME_SIZE);
    frame->data_crc = wal__crc32(0, out + WAL__FRAME_SIZE, frame->stored_size);
    wal__frame_encode(frame, log->tail_segment->header.salt, offset, out);
    return wal__frame_total_size(frame->stored_size);
}

enum wal_status wal__log_write_failed(struct wal__log *log,
                                      enum wal__poison_kind kind, int err,
                                      struct wal_error *error)
{
    wal__control_poison(log->shared, kind, (uint32_t)err);
    log->needs_reload = true;
    return wal__fail_at(error, WAL_EPOISONED, err, log->tail_segment->path,
                        wal__position_offset(atomic_load(&log->end)),
                        "a %s the log failed",
                        kind == WAL__POISON_SYNC ? "sync of" : "write to");
}

void wal__log_publish(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held);
    WAL__ASSERT(atomic_load(&log->end) ==
                wal__position(log->tail_segment->id,
                              atomic_load(&log->tail_segment->end)));
    atomic_store(&log->shared->written, atomic_load(&log->end));
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_WRITTEN);
}

/* Writes the bytes of the group at its offset: through the map, unless a sync
 * follows at once, which takes longer after that. */
static enum wal_status write_bytes(const struct wal__group *group,
                                   struct wal__log *log, uint64_t offset,
                                   int *err)
{
    const struct wal__io *io = log->env->io;
    const struct wal__write_target target = {
        log->tail_segment->file, log->tail_segment->id,
        log->tail_segment->header.capacity};
    const struct iovec *iov = (const struct iovec *)(void *)group->iov.data;
    int count = (int)(group->iov.size / sizeof(struct iovec));

    if (!group->is_synced && !group->defer_publish &&
        wal__write_map_write(&log->write_map, io, &target, iov, count,
                             offset)) {
        return WAL_OK;
    }
    return wal__io_write_full(io, log->tail_segment->file, iov, count, offset,
                              err);
}

enum wal_status wal__group_write(struct wal__group *group, struct wal__log *log,
                                 struct wal_error *error)
{
    const struct wal__io *io = log->env->io;
    uint64_t offset = atomic_load(&log->tail_segment->end);
    uint8_t bytes[WAL__COMMIT_SPAN_MAX];
    struct wal__commit_record commit;
    struct wal__frame frame;
    enum wal_status status;
    uint64_t commit_offset;
    uint64_t size;
    uint64_t end;
    int err = 0;

    WAL__ASSERT(log->append_lock_held);
    WAL__ASSERT(group->first_sequence == log->last_sequence + 1);
    size = encode_commit(log, group, &commit, &frame, bytes);
    commit_offset = offset + group->size;
    end = wal__align_up(commit_offset + size, log->group_align);
    status = add_bytes(group, bytes, size);
    if (status == WAL_OK && end > commit_offset + size) {
        status = add_bytes(group, padding, end - commit_offset - size);
    }
    if (status != WAL_OK) {
        log->needs_reload = true;
        return wal__fail(error, status, "no memory");
    }
    WAL__ASSERT(end % log->group_align == 0);
    WAL__ASSERT(group->size == end - offset);
    WAL__ASSERT(end <= log->tail_segment->header.capacity - WAL__TRAILER_SIZE);
    /* Resolving may have taken long, or the process was stopped meanwhile. */
    status = wal__control_check_ratelimited(log->control, error);
    if (status != WAL_OK) {
        log->needs_reload = true;
        return status;
    }
    status = write_bytes(group, log, offset, &err);
    if (status != WAL_OK) {
        return wal__log_write_failed(log, WAL__POISON_WRITE, err, error);
    }
    WAL__ASSERT(wal__position(log->tail_segment->id, end) >
                atomic_load(&log->end));
    if (group->size >= WRITE_BACK_SIZE && io->write_back != NULL) {
        io->write_back(io->ctx, log->tail_segment->file, offset, end - offset);
    }
    log->last_sequence = group->next_sequence - 1;
    log->chain = wal__frame_chain_crc(group->chain, &frame);
    log->commit_offset = commit_offset;
    log->last_epoch = log->epoch;
    log->clock_ms = commit.clock_ms;
    log->marked = commit.durable_off == commit_offset;
    wal__log_raise_pack_durable(log, commit.pack_durable);
    atomic_store(&log->tail_segment->end, end);
    atomic_store(&log->end, wal__position(log->tail_segment->id, end));
    atomic_fetch_add(&log->groups, 1);
    if (!group->defer_publish) {
        wal__log_publish(log);
    }
    return WAL_OK;
}
