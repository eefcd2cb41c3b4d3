/*
 * index_set.h - the indexes of the segments before the tail: mapped from the
 * segment's INDEX frame, or from the file index/ID.idx of one that ended
 * without, or kept in memory when neither could be written (SPEC.md 3.6).
 * Caller's lock: changes need the state lock for writing.
 */
#ifndef AGENTWAL_ENGINE_STORE_INDEX_SET_H
#define AGENTWAL_ENGINE_STORE_INDEX_SET_H

#include "engine/log/index_file.h"
#include "format/index/index_fmt.h"

struct wal__index_slot {
    uint64_t id;
    struct wal__index index;
    struct wal__mapped_file mapped; /* of a file beside the log */
    uint8_t *owned;                 /* in memory */
};

struct wal__index_set {
    const struct wal__env *env;
    struct wal__log *log;
    struct wal__index_slot *slots; /* ascending by id */
    uint32_t count;
    uint32_t capacity;
};

void wal__index_set_init(struct wal__index_set *set, const struct wal__env *env,
                         struct wal__log *log);
void wal__index_set_deinit(struct wal__index_set *set);

/* The index of a segment; valid until the set changes. WAL_ENOTFOUND when it
 * has none that is valid. */
enum wal_status
wal__index_set_get(struct wal__index_set *set, uint64_t id,
                   const struct wal__index **index) WAL_MUST_USE;

/* Takes an encoded index (copied) for a segment that has none. */
enum wal_status wal__index_set_put(struct wal__index_set *set, uint64_t id,
                                   struct wal__span bytes) WAL_MUST_USE;

/* Reads and checks index/ID.idx into *slot, which is not in the set. */
enum wal_status wal__index_slot_open(const struct wal__env *env, uint64_t id,
                                     const uint8_t uuid[16],
                                     struct wal__index_slot *slot) WAL_MUST_USE;
void wal__index_slot_deinit(const struct wal__env *env,
                            struct wal__index_slot *slot);

#endif
