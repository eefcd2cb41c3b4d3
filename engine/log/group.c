/*
 * group.c - a group of the log: gathering its frames, writing and publishing it; and groups of one
 * segment in another (SPEC.md 3.1, 3.3, 4.2).
 *
 * One vectored write gathers the frames of a group from the memory of the operations; there is no
 * second copy into a staging buffer. A group that no sync follows is copied into a map of the tail
 * segment instead, where that can be done (engine/base/map.h): the bytes are in the system's cache
 * either way.
 *
 * Invariants: disk space and memory are reserved before the first byte is written; a write that
 * fails after that poisons the log. log->end moves only after the whole group is written, and is
 * published after that. A copy's body.size is a multiple of group_align between two calls, and its
 * chain is that of the frames so far.
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

void wal__group_init(struct wal__group *group, struct wal__log *log)
{
    wal__heap_arena_reset(&log->encrypted);
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

uint64_t wal__group_offset(const struct wal__group *group, const struct wal__log *log)
{
    return atomic_load(&log->tail_segment->end) + group->size;
}

/* Adds bytes to the vector; extends the last element when they follow it in memory. */
static enum wal_status add_bytes(struct wal__group *group, const void *bytes, uint64_t size)
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

enum wal_status wal__group_add(struct wal__group *group, struct wal__log *log,
                               struct wal__frame *frame, uint8_t *bytes)
{
    const struct wal__segment_header *header = &log->tail_segment->header;
    const uint64_t offset = wal__group_offset(group, log);
    enum wal_status status = WAL_OK;
    struct wal__frame stored;

    WAL__ASSERT(group->size % 8 == 0);
    WAL__ASSERT(group->next_sequence > log->last_sequence);
    if (wal__frame_is_sequenced(frame->type)) {
        frame->sequence = group->next_sequence;
    }
    stored = *frame;
    if (wal__encrypt_covers(header, frame->type)) {
        const uint64_t size = wal__frame_total_size(frame->stored_size + WAL__FRAME_CIPHER_SIZE);
        const uint8_t *payload = bytes + WAL__FRAME_SIZE;

        bytes = wal__arena_alloc(&log->encrypted.arena, size);
        status = bytes == NULL ? WAL_ENOMEM
                               : wal__encrypt_frame(log->env->keyring, &log->cipher, header, offset,
                                                    &stored, payload, bytes);
    } else {
        wal__frame_encode(&stored, header->salt, offset, bytes);
        *frame = stored;
    }
    if (status == WAL_OK) {
        status = add_bytes(group, bytes, wal__frame_total_size(stored.stored_size));
    }
    if (status != WAL_OK) {
        return status;
    }
    group->chain = wal__frame_chain_crc(group->chain, &stored);
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
static uint64_t encode_commit(const struct wal__log *log, const struct wal__group *group,
                              struct wal__commit_record *commit, struct wal__frame *frame,
                              uint8_t *out)
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
    frame->stored_size = (uint32_t)wal__commit_record_size(group->session_count);
    frame->raw_size = frame->stored_size;
    WAL__ASSERT(wal__frame_total_size(frame->stored_size) <= WAL__COMMIT_SPAN_MAX);
    memset(out, 0, wal__frame_total_size(frame->stored_size));
    wal__commit_record_encode(commit, group->sessions, out + WAL__FRAME_SIZE);
    frame->data_crc = wal__crc32(0, out + WAL__FRAME_SIZE, frame->stored_size);
    wal__frame_encode(frame, log->tail_segment->header.salt, offset, out);
    return wal__frame_total_size(frame->stored_size);
}

enum wal_status wal__log_write_failed(struct wal__log *log, enum wal__poison_kind kind, int err,
                                      struct wal_error *error)
{
    wal__control_poison(log->shared, kind, (uint32_t)err);
    log->needs_reload = true;
    return wal__fail_at(error, WAL_EPOISONED, err, log->tail_segment->path,
                        wal__position_offset(atomic_load(&log->end)), "a %s the log failed",
                        kind == WAL__POISON_SYNC ? "sync of" : "write to");
}

void wal__log_publish(struct wal__log *log)
{
    WAL__ASSERT(log->append_lock_held);
    WAL__ASSERT(atomic_load(&log->end) ==
                wal__position(log->tail_segment->id, atomic_load(&log->tail_segment->end)));
    atomic_store(&log->shared->written, atomic_load(&log->end));
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_WRITTEN);
}

/* Writes the bytes of the group at its offset: through the map, unless a sync follows at once,
 * which takes longer after that. */
static enum wal_status write_bytes(const struct wal__group *group, struct wal__log *log,
                                   uint64_t offset, int *err)
{
    const struct wal__io *io = log->env->io;
    const struct wal__write_target target = {log->tail_segment->file, log->tail_segment->id,
                                             log->tail_segment->header.capacity};
    const struct iovec *iov = (const struct iovec *)(void *)group->iov.data;
    int count = (int)(group->iov.size / sizeof(struct iovec));

    if (!group->is_synced && !group->defer_publish &&
        wal__write_map_write(&log->write_map, io, &target, iov, count, offset)) {
        return WAL_OK;
    }
    return wal__io_write_full(io, log->tail_segment->file, iov, count, offset, err);
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
    WAL__ASSERT(wal__position(log->tail_segment->id, end) > atomic_load(&log->end));
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

/* --- groups in another segment ------------------------------------------ */

void wal__regroup_init(struct wal__regroup *copy, const struct wal__env *env)
{
    memset(copy, 0, sizeof(*copy));
    wal__buf_init(&copy->body, env->heap);
    copy->keyring = env->keyring;
}

void wal__regroup_deinit(struct wal__regroup *copy)
{
    wal__buf_deinit(&copy->body);
    wal__cipher_deinit(&copy->from);
    wal__cipher_deinit(&copy->to);
}

uint64_t wal__regroup_end(const struct wal__regroup *copy)
{
    return WAL__SEGMENT_HEADER_SIZE + copy->body.size;
}

/* Encodes a frame's header at the end of the body, where its payload already follows, and extends
 * the body by the frame, which is not encrypted. */
static void finish_frame(struct wal__regroup *copy, struct wal__frame *frame)
{
    uint8_t *at = copy->body.data + copy->body.size;

    WAL__ASSERT(copy->body.size % 8 == 0);
    WAL__ASSERT(wal__frame_total_size(frame->stored_size) <= copy->body.capacity - copy->body.size);
    wal__frame_encode(frame, copy->header.salt, wal__regroup_end(copy), at);
    copy->chain = wal__frame_chain_crc(copy->chain, frame);
    copy->body.size += wal__frame_total_size(frame->stored_size);
}

static enum wal_status pad_group(struct wal__regroup *copy)
{
    uint64_t size = wal__align_up(copy->body.size, copy->header.group_align) - copy->body.size;
    uint8_t *at;
    enum wal_status status = wal__buf_reserve(&copy->body, size, &at);

    if (status == WAL_OK) {
        memset(at, 0, size);
        copy->body.size += size;
    }
    return status;
}

/* Closes a group of the body with its former COMMIT, adapted to the new offsets. */
static enum wal_status add_commit(struct wal__regroup *copy, struct wal__commit_record *commit,
                                  const uint32_t *sessions)
{
    uint32_t size = (uint32_t)wal__commit_record_size(commit->session_count);
    struct wal__frame frame = {.type = WAL__FRAME_COMMIT, .stored_size = size, .raw_size = size};
    uint8_t *at;

    WAL__ASSERT(commit->session_count <= WAL__COMMIT_SESSIONS_MAX);
    commit->chain = copy->chain;
    commit->durable_off = WAL__SEGMENT_HEADER_SIZE;
    if (wal__buf_reserve(&copy->body, wal__frame_total_size(size), &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, wal__frame_total_size(size));
    wal__commit_record_encode(commit, sessions, at + WAL__FRAME_SIZE);
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, size);
    finish_frame(copy, &frame);
    return pad_group(copy);
}

enum wal_status wal__regroup_add_open_record(struct wal__regroup *copy, const uint8_t *record,
                                             uint32_t size, uint64_t last_sequence,
                                             const struct wal__commit_record *commit)
{
    struct wal__commit_record open = {.first_sequence = last_sequence + 1,
                                      .frame_count = 1,
                                      .epoch = commit->epoch,
                                      .clock_ms = commit->clock_ms,
                                      .pack_durable = commit->pack_durable};
    struct wal__frame frame = {.type = WAL__FRAME_OPEN, .stored_size = size, .raw_size = size};
    uint8_t *at;

    WAL__ASSERT(copy->body.size == 0);
    if (wal__buf_reserve(&copy->body, wal__frame_total_size(size), &at) != WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, wal__frame_total_size(size));
    memcpy(at + WAL__FRAME_SIZE, record, size);
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, size);
    finish_frame(copy, &frame);
    open.group_size = (uint32_t)copy->body.size;
    return add_commit(copy, &open, NULL);
}

enum wal_status wal__regroup_add_open(struct wal__regroup *copy, uint64_t previous_id, uint64_t cut,
                                      const struct wal__scan_result *facts,
                                      const struct wal__commit_record *commit)
{
    uint32_t count = facts == NULL ? 0 : facts->damage_count;
    struct wal__open_record open = {.previous_id = previous_id,
                                    .previous_end = cut,
                                    .chain = copy->chain,
                                    .epoch = commit->epoch};
    const struct wal__heap *heap = copy->body.heap;
    enum wal_status status;
    uint8_t *record;

    WAL__ASSERT(previous_id < copy->header.id);
    WAL__ASSERT((previous_id == 0) == (facts == NULL));
    open.damage_count = count < WAL__DAMAGE_MAX ? count : WAL__DAMAGE_MAX;
    open.last_sequence = facts == NULL ? 0 : facts->last_sequence;
    record = wal__heap_zalloc(heap, wal__open_record_size(open.damage_count));
    if (record == NULL) {
        return WAL_ENOMEM;
    }
    wal__open_record_encode(&open, facts == NULL ? NULL : facts->damage, record);
    status = wal__regroup_add_open_record(copy, record,
                                          (uint32_t)wal__open_record_size(open.damage_count),
                                          open.last_sequence, commit);
    wal__heap_free(heap, record);
    return status;
}

/* Adds a frame of another segment, in the form of the new one. */
static enum wal_status add_frame(struct wal__regroup *copy, const struct wal__segment_header *from,
                                 uint64_t offset, struct wal__frame *frame, const uint8_t *at)
{
    const uint8_t *stored = at + WAL__FRAME_SIZE;
    enum wal_status status = WAL_OK;
    uint8_t *out;

    if (wal__buf_reserve(&copy->body,
                         wal__frame_total_size(frame->stored_size) + WAL__FRAME_CIPHER_SIZE +
                             WAL__FRAME_ALIGN,
                         &out) != WAL_OK) {
        return WAL_ENOMEM;
    }
    if (wal__encrypt_covers(from, frame->type)) {
        status = wal__decrypt_frame(copy->keyring, &copy->from, from, offset, frame, stored,
                                    out + WAL__FRAME_SIZE);
        memset(out + WAL__FRAME_SIZE + frame->stored_size, 0, WAL__FRAME_ALIGN);
    } else {
        memcpy(out, at, wal__frame_total_size(frame->stored_size));
    }
    if (status == WAL_OK && wal__encrypt_covers(&copy->header, frame->type)) {
        status = wal__encrypt_frame(copy->keyring, &copy->to, &copy->header, wal__regroup_end(copy),
                                    frame, out + WAL__FRAME_SIZE, out);
        copy->chain = wal__frame_chain_crc(copy->chain, frame);
        copy->body.size += wal__frame_total_size(frame->stored_size);
    } else if (status == WAL_OK) {
        finish_frame(copy, frame);
    }
    return status;
}

enum wal_status wal__regroup_add_group(struct wal__regroup *copy,
                                       const struct wal__scan_range *range,
                                       const struct wal__segment_header *from)
{
    uint32_t sessions[WAL__COMMIT_SESSIONS_MAX];
    const size_t begin = copy->body.size;
    struct wal__commit_record commit;
    enum wal_status status = WAL_OK;
    uint64_t at = 0;

    if (range->commit == NULL) {
        return WAL_ECORRUPT;
    }
    if (range->size == 0) {
        return WAL_OK; /* a commit mark: meaningless in the new segment */
    }
    commit = *range->commit;
    while (at < range->size && status == WAL_OK) {
        struct wal__frame frame;
        uint64_t size;

        if (wal__frame_decode(range->bytes + at, range->size - at, from->salt, range->offset + at,
                              &frame) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        size = wal__frame_total_size(frame.stored_size);
        status = add_frame(copy, from, range->offset + at, &frame, range->bytes + at);
        at += size;
    }
    if (status != WAL_OK) {
        return status;
    }
    commit.group_size = (uint32_t)(copy->body.size - begin);
    for (uint32_t i = 0; i < commit.session_count; i++) {
        sessions[i] = wal__commit_record_session(&commit, i);
    }
    return add_commit(copy, &commit, sessions);
}
