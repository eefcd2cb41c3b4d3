/*
 * record_group.c - encodes and decodes the payloads of OPEN, COMMIT and SEAL,
 * which delimit the groups of a segment (SPEC.md 2.4, 2.9, 2.10).
 *
 * Invariant: a decoder accepts a payload only if its counts add up to the
 * payload's size, so every element below a count is readable. Threads: any.
 */
#include "format/segment/record.h"

#include <stdbool.h>

#include "format/bytes/bytes.h"
#include "format/segment/segment_fmt.h"

/* OPEN (2.4) */

enum {
    OPEN_PREVIOUS_ID = 0,
    OPEN_PREVIOUS_END = 8,
    OPEN_LAST_SEQUENCE = 16,
    OPEN_CHAIN = 24,
    OPEN_DAMAGE_COUNT = 28,
    OPEN_EPOCH = 32,
    OPEN_DAMAGE = 40
};

enum {
    DAMAGE_OFFSET = 0,
    DAMAGE_RANGE_SIZE = 8,
    DAMAGE_FIRST_SEQUENCE = 16,
    DAMAGE_LAST_SEQUENCE = 24,
    DAMAGE_SIZE = 32
};

WAL__FOLLOWS(OPEN_PREVIOUS_END, OPEN_PREVIOUS_ID, 8);
WAL__FOLLOWS(OPEN_LAST_SEQUENCE, OPEN_PREVIOUS_END, 8);
WAL__FOLLOWS(OPEN_CHAIN, OPEN_LAST_SEQUENCE, 8);
WAL__FOLLOWS(OPEN_DAMAGE_COUNT, OPEN_CHAIN, 4);
WAL__FOLLOWS(OPEN_EPOCH, OPEN_DAMAGE_COUNT, 4);
WAL__FOLLOWS(OPEN_DAMAGE, OPEN_EPOCH, 8);
WAL__FOLLOWS(DAMAGE_RANGE_SIZE, DAMAGE_OFFSET, 8);
WAL__FOLLOWS(DAMAGE_FIRST_SEQUENCE, DAMAGE_RANGE_SIZE, 8);
WAL__FOLLOWS(DAMAGE_LAST_SEQUENCE, DAMAGE_FIRST_SEQUENCE, 8);
WAL__FOLLOWS(DAMAGE_SIZE, DAMAGE_LAST_SEQUENCE, 8);

size_t wal__open_record_size(uint32_t damage_count)
{
    return OPEN_DAMAGE + (size_t)damage_count * DAMAGE_SIZE;
}

void wal__open_record_encode(const struct wal__open_record *open,
                             const struct wal__damage *damage, uint8_t *out)
{
    uint8_t *at = out + OPEN_DAMAGE;

    wal__put64(out + OPEN_PREVIOUS_ID, open->previous_id);
    wal__put64(out + OPEN_PREVIOUS_END, open->previous_end);
    wal__put64(out + OPEN_LAST_SEQUENCE, open->last_sequence);
    wal__put32(out + OPEN_CHAIN, open->chain);
    wal__put32(out + OPEN_DAMAGE_COUNT, open->damage_count);
    wal__put64(out + OPEN_EPOCH, open->epoch);
    for (uint32_t i = 0; i < open->damage_count; i++) {
        wal__put64(at + DAMAGE_OFFSET, damage[i].offset);
        wal__put64(at + DAMAGE_RANGE_SIZE, damage[i].size);
        wal__put64(at + DAMAGE_FIRST_SEQUENCE, damage[i].first_sequence);
        wal__put64(at + DAMAGE_LAST_SEQUENCE, damage[i].last_sequence);
        at += DAMAGE_SIZE;
    }
    WAL__ASSERT(at == out + wal__open_record_size(open->damage_count));
}

struct wal__damage wal__open_record_damage(const struct wal__open_record *open,
                                           uint32_t index)
{
    const uint8_t *at = open->damage + (size_t)index * DAMAGE_SIZE;
    struct wal__damage damage = {
        .offset = wal__get64(at + DAMAGE_OFFSET),
        .size = wal__get64(at + DAMAGE_RANGE_SIZE),
        .first_sequence = wal__get64(at + DAMAGE_FIRST_SEQUENCE),
        .last_sequence = wal__get64(at + DAMAGE_LAST_SEQUENCE),
    };

    WAL__ASSERT(index < open->damage_count);
    return damage;
}

static bool previous_is_valid(const struct wal__open_record *open)
{
    if (open->previous_id == 0) {
        return open->previous_end == 0;
    }
    return open->previous_end >= WAL__SEGMENT_HEADER_SIZE &&
           open->previous_end <= WAL__SEGMENT_MAX;
}

static bool damage_ascends(const struct wal__open_record *open)
{
    for (uint32_t i = 1; i < open->damage_count; i++) {
        if (wal__open_record_damage(open, i - 1).offset >=
            wal__open_record_damage(open, i).offset) {
            return false;
        }
    }
    return true;
}

enum wal__fmt wal__open_record_decode(struct wal__span payload,
                                      struct wal__open_record *open)
{
    const uint8_t *at = payload.data;
    struct wal__open_record read;

    if (payload.size < OPEN_DAMAGE) {
        return WAL__FMT_SHORT;
    }
    read.previous_id = wal__get64(at + OPEN_PREVIOUS_ID);
    read.previous_end = wal__get64(at + OPEN_PREVIOUS_END);
    read.last_sequence = wal__get64(at + OPEN_LAST_SEQUENCE);
    read.chain = wal__get32(at + OPEN_CHAIN);
    read.damage_count = wal__get32(at + OPEN_DAMAGE_COUNT);
    read.epoch = wal__get64(at + OPEN_EPOCH);
    read.damage = at + OPEN_DAMAGE;
    if (read.damage_count > WAL__DAMAGE_MAX ||
        wal__open_record_size(read.damage_count) != payload.size) {
        return WAL__FMT_FIELD;
    }
    if (!previous_is_valid(&read) || read.epoch == 0 ||
        !damage_ascends(&read)) {
        return WAL__FMT_FIELD;
    }
    *open = read;
    return WAL__FMT_OK;
}

/* COMMIT (2.9) */

enum {
    COMMIT_FIRST_SEQUENCE = 0,
    COMMIT_FRAME_COUNT = 8,
    COMMIT_GROUP_SIZE = 12,
    COMMIT_CHAIN = 16,
    COMMIT_DURABLE_OFF = 20,
    COMMIT_EPOCH = 24,
    COMMIT_CLOCK = 32,
    COMMIT_PACK_DURABLE = 40,
    COMMIT_FLAGS = 48,
    COMMIT_SESSION_COUNT = 52,
    COMMIT_SESSIONS = 56,
    COMMIT_SESSION_SIZE = 4
};

WAL__FOLLOWS(COMMIT_FRAME_COUNT, COMMIT_FIRST_SEQUENCE, 8);
WAL__FOLLOWS(COMMIT_GROUP_SIZE, COMMIT_FRAME_COUNT, 4);
WAL__FOLLOWS(COMMIT_CHAIN, COMMIT_GROUP_SIZE, 4);
WAL__FOLLOWS(COMMIT_DURABLE_OFF, COMMIT_CHAIN, 4);
WAL__FOLLOWS(COMMIT_EPOCH, COMMIT_DURABLE_OFF, 4);
WAL__FOLLOWS(COMMIT_CLOCK, COMMIT_EPOCH, 8);
WAL__FOLLOWS(COMMIT_PACK_DURABLE, COMMIT_CLOCK, 8);
WAL__FOLLOWS(COMMIT_FLAGS, COMMIT_PACK_DURABLE, 8);
WAL__FOLLOWS(COMMIT_SESSION_COUNT, COMMIT_FLAGS, 4);
WAL__FOLLOWS(COMMIT_SESSIONS, COMMIT_SESSION_COUNT, 4);

size_t wal__commit_record_size(uint32_t session_count)
{
    return COMMIT_SESSIONS + (size_t)session_count * COMMIT_SESSION_SIZE;
}

void wal__commit_record_encode(const struct wal__commit_record *commit,
                               const uint32_t *sessions, uint8_t *out)
{
    wal__put64(out + COMMIT_FIRST_SEQUENCE, commit->first_sequence);
    wal__put32(out + COMMIT_FRAME_COUNT, commit->frame_count);
    wal__put32(out + COMMIT_GROUP_SIZE, commit->group_size);
    wal__put32(out + COMMIT_CHAIN, commit->chain);
    wal__put32(out + COMMIT_DURABLE_OFF, commit->durable_off);
    wal__put64(out + COMMIT_EPOCH, commit->epoch);
    wal__put64(out + COMMIT_CLOCK, (uint64_t)commit->clock_ms);
    wal__put64(out + COMMIT_PACK_DURABLE, commit->pack_durable);
    wal__put32(out + COMMIT_FLAGS, commit->flags);
    wal__put32(out + COMMIT_SESSION_COUNT, commit->session_count);
    for (uint32_t i = 0; i < commit->session_count; i++) {
        wal__put32(out + wal__commit_record_size(i), sessions[i]);
    }
}

uint32_t wal__commit_record_session(const struct wal__commit_record *commit,
                                    uint32_t index)
{
    WAL__ASSERT(index < commit->session_count);
    return wal__get32(commit->sessions + (size_t)index * COMMIT_SESSION_SIZE);
}

static bool sessions_ascend(const struct wal__commit_record *commit)
{
    for (uint32_t i = 1; i < commit->session_count; i++) {
        if (wal__commit_record_session(commit, i - 1) >=
            wal__commit_record_session(commit, i)) {
            return false;
        }
    }
    return true;
}

enum wal__fmt wal__commit_record_decode(struct wal__span payload,
                                        struct wal__commit_record *commit)
{
    const uint8_t *at = payload.data;
    struct wal__commit_record read;

    if (payload.size < COMMIT_SESSIONS) {
        return WAL__FMT_SHORT;
    }
    read.first_sequence = wal__get64(at + COMMIT_FIRST_SEQUENCE);
    read.frame_count = wal__get32(at + COMMIT_FRAME_COUNT);
    read.group_size = wal__get32(at + COMMIT_GROUP_SIZE);
    read.chain = wal__get32(at + COMMIT_CHAIN);
    read.durable_off = wal__get32(at + COMMIT_DURABLE_OFF);
    read.epoch = wal__get64(at + COMMIT_EPOCH);
    read.clock_ms = (int64_t)wal__get64(at + COMMIT_CLOCK);
    read.pack_durable = wal__get64(at + COMMIT_PACK_DURABLE);
    read.flags = wal__get32(at + COMMIT_FLAGS);
    read.session_count = wal__get32(at + COMMIT_SESSION_COUNT);
    read.sessions = at + COMMIT_SESSIONS;
    if (read.session_count > WAL__COMMIT_SESSIONS_MAX ||
        wal__commit_record_size(read.session_count) != payload.size) {
        return WAL__FMT_FIELD;
    }
    if (read.durable_off < WAL__SEGMENT_HEADER_SIZE || read.epoch == 0 ||
        (read.flags & ~(uint32_t)WAL__COMMIT_DURABLE) != 0 ||
        !sessions_ascend(&read)) {
        return WAL__FMT_FIELD;
    }
    *commit = read;
    return WAL__FMT_OK;
}

/* SEAL (2.10) */

enum {
    SEAL_END = 0,
    SEAL_LAST_SEQUENCE = 8,
    SEAL_CHAIN = 16,
    SEAL_ZERO = 20,
    SEAL_INDEX_OFFSET = 24
};

WAL__FOLLOWS(SEAL_LAST_SEQUENCE, SEAL_END, 8);
WAL__FOLLOWS(SEAL_CHAIN, SEAL_LAST_SEQUENCE, 8);
WAL__FOLLOWS(SEAL_ZERO, SEAL_CHAIN, 4);
WAL__FOLLOWS(SEAL_INDEX_OFFSET, SEAL_ZERO, 4);
WAL__FOLLOWS((int)WAL__SEAL_SIZE, (int)SEAL_INDEX_OFFSET, 8);

void wal__seal_record_encode(const struct wal__seal_record *seal, uint8_t *out)
{
    wal__put64(out + SEAL_END, seal->end);
    wal__put64(out + SEAL_LAST_SEQUENCE, seal->last_sequence);
    wal__put32(out + SEAL_CHAIN, seal->chain);
    wal__put32(out + SEAL_ZERO, 0);
    wal__put64(out + SEAL_INDEX_OFFSET, seal->index_offset);
}

enum wal__fmt wal__seal_record_decode(struct wal__span payload,
                                      struct wal__seal_record *seal)
{
    const uint8_t *at = payload.data;
    struct wal__seal_record read;

    if (payload.size < WAL__SEAL_SIZE) {
        return WAL__FMT_SHORT;
    }
    read.end = wal__get64(at + SEAL_END);
    read.last_sequence = wal__get64(at + SEAL_LAST_SEQUENCE);
    read.chain = wal__get32(at + SEAL_CHAIN);
    read.index_offset = wal__get64(at + SEAL_INDEX_OFFSET);
    if (payload.size != WAL__SEAL_SIZE || wal__get32(at + SEAL_ZERO) != 0 ||
        read.index_offset != read.end) {
        return WAL__FMT_FIELD;
    }
    *seal = read;
    return WAL__FMT_OK;
}
