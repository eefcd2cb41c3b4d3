/*
 * regroup.c - groups of a segment in another one (regroup.h).
 */
#include "engine/log/regroup.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

uint64_t wal__regroup_end(const struct wal__regroup *copy)
{
    return WAL__SEGMENT_HEADER_SIZE + copy->body.size;
}

/* Encodes a frame's header at the end of the body, where its payload already
 * follows, and extends the body by the frame. */
static void finish_frame(struct wal__regroup *copy, struct wal__frame *frame)
{
    uint8_t *at = copy->body.data + copy->body.size;

    WAL__ASSERT(copy->body.size % 8 == 0);
    WAL__ASSERT(wal__frame_total_size(frame->stored_size) <=
                copy->body.capacity - copy->body.size);
    wal__frame_encode(frame, copy->header.salt, wal__regroup_end(copy), at);
    copy->chain = wal__frame_chain_crc(copy->chain, frame);
    copy->body.size += wal__frame_total_size(frame->stored_size);
}

static enum wal_status pad_group(struct wal__regroup *copy)
{
    uint64_t size = wal__align_up(copy->body.size, copy->header.group_align) -
                    copy->body.size;
    uint8_t *at;
    enum wal_status status = wal__buf_reserve(&copy->body, size, &at);

    if (status == WAL_OK) {
        memset(at, 0, size);
        copy->body.size += size;
    }
    return status;
}

/* Closes a group of the body with its former COMMIT, adapted to the new
 * offsets. */
static enum wal_status add_commit(struct wal__regroup *copy,
                                  struct wal__commit_record *commit,
                                  const uint32_t *sessions)
{
    uint32_t size = (uint32_t)wal__commit_record_size(commit->session_count);
    struct wal__frame frame = {
        .type = WAL__FRAME_COMMIT, .stored_size = size, .raw_size = size};
    uint8_t *at;

    WAL__ASSERT(commit->session_count <= WAL__COMMIT_SESSIONS_MAX);
    commit->chain = copy->chain;
    commit->durable_off = WAL__SEGMENT_HEADER_SIZE;
    if (wal__buf_reserve(&copy->body, wal__frame_total_size(size), &at) !=
        WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, wal__frame_total_size(size));
    wal__commit_record_encode(commit, sessions, at + WAL__FRAME_SIZE);
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, size);
    finish_frame(copy, &frame);
    return pad_group(copy);
}

enum wal_status
wal__regroup_add_open_record(struct wal__regroup *copy, const uint8_t *record,
                             uint32_t size, uint64_t last_sequence,
                             const struct wal__commit_record *commit)
{
    struct wal__commit_record open = {.first_sequence = last_sequence + 1,
                                      .frame_count = 1,
                                      .epoch = commit->epoch,
                                      .clock_ms = commit->clock_ms,
                                      .pack_durable = commit->pack_durable};
    struct wal__frame frame = {
        .type = WAL__FRAME_OPEN, .stored_size = size, .raw_size = size};
    uint8_t *at;

    WAL__ASSERT(copy->body.size == 0);
    if (wal__buf_reserve(&copy->body, wal__frame_total_size(size), &at) !=
        WAL_OK) {
        return WAL_ENOMEM;
    }
    memset(at, 0, wal__frame_total_size(size));
    memcpy(at + WAL__FRAME_SIZE, record, size);
    frame.data_crc = wal__crc32(0, at + WAL__FRAME_SIZE, size);
    finish_frame(copy, &frame);
    open.group_size = (uint32_t)copy->body.size;
    return add_commit(copy, &open, NULL);
}

enum wal_status wal__regroup_add_open(struct wal__regroup *copy,
                                      uint64_t previous_id, uint64_t cut,
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
    wal__open_record_encode(&open, facts == NULL ? NULL : facts->damage,
                            record);
    status = wal__regroup_add_open_record(
        copy, record, (uint32_t)wal__open_record_size(open.damage_count),
        open.last_sequence, commit);
    wal__heap_free(heap, record);
    return status;
}

enum wal_status wal__regroup_add_group(struct wal__regroup *copy,
                                       const struct wal__scan_range *range,
                                       uint64_t salt)
{
    uint32_t sessions[WAL__COMMIT_SESSIONS_MAX];
    struct wal__commit_record commit;
    uint64_t at = 0;
    uint8_t *out;

    if (range->commit == NULL) {
        return WAL_ECORRUPT;
    }
    if (range->size == 0) {
        return WAL_OK; /* a commit mark: meaningless in the new segment */
    }
    if (wal__buf_reserve(&copy->body, range->size, &out) != WAL_OK) {
        return WAL_ENOMEM;
    }
    commit = *range->commit;
    memcpy(out, range->bytes, range->size);
    while (at < range->size) {
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, salt,
                              range->offset + at, &frame) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        finish_frame(copy, &frame);
        at += wal__frame_total_size(frame.stored_size);
    }
    for (uint32_t i = 0; i < commit.session_count; i++) {
        sessions[i] = wal__commit_record_session(&commit, i);
    }
    return add_commit(copy, &commit, sessions);
}
