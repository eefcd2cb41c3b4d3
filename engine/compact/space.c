/*
 * space.c - bytes by session (space.h).
 *
 * A fork sees the entries of the owner of its fork point up to that point, and
 * what the owner inherits. So one number for each fork suffices: the bytes of
 * the owner's entries up to the fork point. A record counts for the first fork
 * point after it, and sums over the fork points of an owner give the rest.
 *
 * Invariant: the owner of a fork point has a lower number than the fork.
 */
#include "engine/compact/space.h"

#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"

/* A fork, at the owner's records. */
struct fork_mark {
    uint32_t owner;
    uint32_t fork;
    uint64_t cut;   /* sequence of the fork point */
    uint64_t bytes; /* of the owner's entries up to it */
};

enum {
    SLOTS_MIN = 256
};

void wal__space_init(struct wal__space *space, const struct wal__heap *heap)
{
    memset(space, 0, sizeof(*space));
    space->heap = heap;
    wal__buf_init(&space->forks, heap);
}

void wal__space_deinit(struct wal__space *space)
{
    wal__heap_free(space->heap, space->slots);
    space->slots = NULL;
    wal__buf_deinit(&space->forks);
}

static struct fork_mark *marks(const struct wal__space *space)
{
    return (struct fork_mark *)(void *)space->forks.data;
}

static size_t mark_count(const struct wal__space *space)
{
    return space->forks.size / sizeof(struct fork_mark);
}

uint32_t wal__space_slot(uint32_t number)
{
    return number == WAL__STORE_NUMBER ? 0 : number;
}

static enum wal_status reserve(struct wal__space *space, uint32_t number)
{
    uint32_t limit = space->limit < SLOTS_MIN ? SLOTS_MIN : space->limit;
    struct wal__session_space *grown;

    while (limit <= number) {
        limit = limit > UINT32_MAX / 2 ? UINT32_MAX : limit * 2;
    }
    if (limit == space->limit) {
        return WAL_OK;
    }
    grown = wal__heap_resize(space->heap, space->slots, limit, sizeof(*grown));
    if (grown == NULL) {
        return WAL_ENOMEM;
    }
    memset(grown + space->limit, 0, (limit - space->limit) * sizeof(*grown));
    space->slots = grown;
    space->limit = limit;
    return WAL_OK;
}

static enum wal_status add_summary(struct wal__space *space,
                                   const struct wal__summary *summary)
{
    struct wal__session_space *slot =
        &space->slots[wal__space_slot(summary->number)];
    struct fork_mark mark = {.owner = summary->fork_owner,
                             .fork = summary->number,
                             .cut = summary->fork_sequence};

    if (summary->fork_owner == 0 || slot->is_fork) {
        return WAL_OK;
    }
    if (summary->fork_owner >= summary->number) {
        return WAL_ECORRUPT;
    }
    slot->is_fork = true;
    return wal__buf_append(&space->forks, &mark, sizeof(mark));
}

enum wal_status wal__space_add_index(struct wal__space *space,
                                     const struct wal__index *index,
                                     uint32_t rank)
{
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;
        enum wal_status status;
        uint32_t number;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        number = wal__space_slot(summary.number);
        status = reserve(space, number);
        if (status == WAL_OK) {
            space->slots[number].index = rank + 1;
            space->slots[number].rank = i;
            status = add_summary(space, &summary);
        }
        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

static int compare_by_owner(const void *a, const void *b)
{
    const struct fork_mark *x = a;
    const struct fork_mark *y = b;

    if (x->owner != y->owner) {
        return x->owner < y->owner ? -1 : 1;
    }
    return x->cut < y->cut ? -1 : x->cut > y->cut;
}

static int compare_by_fork(const void *a, const void *b)
{
    const struct fork_mark *x = a;
    const struct fork_mark *y = b;

    return x->fork < y->fork ? -1 : x->fork > y->fork;
}

void wal__space_begin_records(struct wal__space *space)
{
    if (mark_count(space) > 0) {
        qsort(marks(space), mark_count(space), sizeof(struct fork_mark),
              compare_by_owner);
    }
}

/* Returns the first fork point of an owner that is not before the sequence, or
 * NULL. */
static struct fork_mark *find_mark(const struct wal__space *space,
                                   uint32_t owner, uint64_t sequence)
{
    struct fork_mark key = {.owner = owner, .cut = sequence};
    size_t low = 0;
    size_t high = mark_count(space);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (compare_by_owner(&marks(space)[middle], &key) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < mark_count(space) && marks(space)[low].owner == owner
               ? &marks(space)[low]
               : NULL;
}

void wal__space_add_record(struct wal__space *space, uint32_t number,
                           const struct wal__posting *posting, uint64_t kept,
                           uint64_t dead)
{
    struct wal__session_space *slot = &space->slots[wal__space_slot(number)];
    struct fork_mark *mark = NULL;

    WAL__ASSERT(wal__space_slot(number) < space->limit);
    slot->own += kept;
    slot->reclaimable += dead;
    if (posting->type == WAL__FRAME_ENTRY && kept > 0) {
        mark = find_mark(space, number, posting->sequence);
    }
    if (mark != NULL) {
        mark->bytes += kept;
    }
}

void wal__space_finish(struct wal__space *space,
                       const struct wal__live_set *set)
{
    struct fork_mark *all = marks(space);
    size_t count = mark_count(space);

    for (uint32_t i = 0; i < space->limit; i++) {
        space->slots[i].is_deleted = wal__live_set_is_deleted(set, i);
        space->slots[i].is_viewed = !space->slots[i].is_deleted;
    }
    for (size_t i = 1; i < count; i++) {
        if (all[i].owner == all[i - 1].owner) {
            all[i].bytes += all[i - 1].bytes;
        }
    }
    if (count > 0) {
        qsort(all, count, sizeof(*all), compare_by_fork);
    }
    for (size_t i = count; i > 0; i--) {
        const struct fork_mark *mark = &all[i - 1];
        struct wal__session_space *owner = NULL;

        if (mark->owner < space->limit && space->slots[mark->fork].is_viewed) {
            owner = &space->slots[mark->owner];
            owner->is_viewed = true;
            owner->seen = owner->seen < mark->bytes ? mark->bytes : owner->seen;
        }
    }
    for (size_t i = 0; i < count; i++) {
        struct wal__session_space *fork = &space->slots[all[i].fork];

        fork->inherited = all[i].bytes;
        if (all[i].owner < space->limit) {
            fork->inherited += space->slots[all[i].owner].inherited;
        }
    }
    for (uint32_t i = 0; i < space->limit; i++) {
        space->slots[i].own -= space->slots[i].seen;
    }
}
