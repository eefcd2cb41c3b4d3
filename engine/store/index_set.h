/*
 * index_set.h - the indexes of the segments before the tail (SPEC.md 3.6): mapped from the INDEX
 * frame of a sealed segment, mapped from the file index/ID.idx of an unsealed one, or kept in
 * memory when neither could be written. State lock for writing to change the set, which
 * wal__index_set_get may do.
 */
#ifndef AGENTWAL_ENGINE_STORE_INDEX_SET_H
#define AGENTWAL_ENGINE_STORE_INDEX_SET_H

#include "engine/log/index_file.h"
#include "format/index/index_fmt.h"

struct wal__index_slot {
    uint64_t id;
    struct wal__index index;
    struct wal__mapped_file mapped; /* of index/ID.idx, if used */
    void *owned;                    /* bytes on the heap, or NULL */
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

/* The index of a segment; *index is valid until the set changes. WAL_ENOTFOUND when the segment has
 * no valid index. */
enum wal_status wal__index_set_get(struct wal__index_set *set, uint64_t id,
                                   const struct wal__index **index) WAL_MUST_USE;

/* Adds an encoded index (copied) for a segment that has none. */
enum wal_status wal__index_set_put(struct wal__index_set *set, uint64_t id,
                                   struct wal__span bytes) WAL_MUST_USE;

/* Maps and validates index/ID.idx, of any version that is read; *slot is not added to the set.
 * WAL_ENOTFOUND when there is no valid file. */
enum wal_status wal__index_slot_open(const struct wal__env *env, uint64_t id,
                                     const uint8_t uuid[16],
                                     struct wal__index_slot *slot) WAL_MUST_USE;
/* Whether it is of a version that is used: an older one only proves what the log had. */
static inline bool wal__index_slot_is_current(const struct wal__index_slot *slot)
{
    return slot->index.header.version >= WAL__INDEX_VERSION_USED;
}
void wal__index_slot_deinit(const struct wal__env *env, struct wal__index_slot *slot);

#endif
