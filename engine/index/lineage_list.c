/*
 * lineage_list.c - lists of ancestors that forks share (lineage_list.h). No
 * section of SPEC.md.
 *
 * Invariants: a list is appended to, never changed, but for `indexed`, which
 * rises. `complete` levels are indexed up to the fork point of the level after
 * them. Slots of the table with a rank beyond a view belong to longer views.
 * The caller's lock: one writer, or any readers.
 */
#include "engine/index/lineage_list.h"

#include "engine/index/id_table.h"
#include "format/bytes/assert.h"

struct wal__lineage {
    const struct wal__heap *heap;
    uint32_t references;
    struct wal__lineage *base; /* list of the levels before `first`, or null */
    uint32_t first;            /* rank of levels[0] */
    uint32_t depth;            /* lists under this one */
    struct wal__lineage_level *levels;
    uint32_t count;
    uint32_t capacity;
    uint32_t complete;
    struct wal__id_table ids; /* numbers are ranks + 1 */
};

static struct wal__lineage *create(const struct wal__heap *heap)
{
    struct wal__lineage *lineage = wal__heap_zalloc(heap, sizeof(*lineage));

    if (lineage != NULL) {
        lineage->heap = heap;
        lineage->references = 1;
    }
    return lineage;
}

struct wal__lineage_view
wal__lineage_retain(const struct wal__lineage_view *view)
{
    if (view->lineage != NULL) {
        WAL__ASSERT(view->lineage->references > 0);
        view->lineage->references++;
    }
    return *view;
}

void wal__lineage_release(struct wal__lineage_view *view)
{
    struct wal__lineage *lineage = view->lineage;

    while (lineage != NULL) {
        struct wal__lineage *base = lineage->base;

        WAL__ASSERT(lineage->references > 0);
        lineage->references--;
        if (lineage->references > 0) {
            break;
        }
        wal__heap_free(lineage->heap, lineage->levels);
        wal__id_table_clear(&lineage->ids, lineage->heap);
        wal__heap_free(lineage->heap, lineage);
        lineage = base;
    }
    *view = (struct wal__lineage_view){NULL, 0};
}

/* --- levels ------------------------------------------------------------- */

/* The list that holds the rank. */
static struct wal__lineage *list_of(const struct wal__lineage_view *view,
                                    uint32_t rank)
{
    struct wal__lineage *lineage = view->lineage;

    WAL__ASSERT(rank < view->count);
    while (rank < lineage->first) {
        lineage = lineage->base;
    }
    WAL__ASSERT(rank - lineage->first < lineage->count);
    return lineage;
}

struct wal__lineage_level
wal__lineage_level(const struct wal__lineage_view *view, uint32_t rank)
{
    const struct wal__lineage *lineage = list_of(view, rank);

    return lineage->levels[rank - lineage->first];
}

bool wal__lineage_find_sequence(const struct wal__lineage_view *view,
                                uint64_t sequence, uint32_t *rank)
{
    const struct wal__lineage *lineage = view->lineage;
    uint32_t end = view->count;
    uint32_t low = 0;
    uint32_t high;

    if (end == 0 || sequence == 0) {
        return false;
    }
    while (lineage->base != NULL &&
           lineage->levels[0].fork_sequence >= sequence) {
        end = lineage->first;
        lineage = lineage->base;
    }
    high = end - lineage->first;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (lineage->levels[middle].fork_sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == 0) {
        return false; /* the root is a fork whose source was lost */
    }
    *rank = lineage->first + low - 1;
    return true;
}

static enum wal_status append_level(struct wal__lineage *lineage,
                                    const struct wal__lineage_level *level)
{
    struct wal__lineage_level *levels =
        wal__heap_grow_array(lineage->heap, lineage->levels, lineage->count,
                             &lineage->capacity, sizeof(*levels));

    if (levels == NULL) {
        return WAL_ENOMEM;
    }
    lineage->levels = levels;
    WAL__ASSERT(lineage->count == 0 ||
                levels[lineage->count - 1].fork_sequence <
                    level->fork_sequence);
    levels[lineage->count] = *level;
    lineage->count++;
    return WAL_OK;
}

/* --- ids ---------------------------------------------------------------- */

enum wal_status wal__lineage_add_id(const struct wal__lineage_view *view,
                                    uint32_t rank, uint64_t id_hash,
                                    uint64_t position)
{
    struct wal__lineage *lineage = list_of(view, rank);
    enum wal_status status = wal__id_table_reserve(
        &lineage->ids, lineage->heap, (uint64_t)lineage->ids.count + 1);

    if (status == WAL_OK) {
        wal__id_table_add(&lineage->ids, id_hash, position, rank + 1);
    }
    return status;
}

bool wal__lineage_find_id(const struct wal__lineage_view *view,
                          uint64_t id_hash, uint32_t *cursor,
                          struct wal__lineage_hit *hit)
{
    /* Equal hashes are rare, so each call probes again from the start. */
    uint32_t skip = *cursor;
    uint32_t end = view->count;

    for (const struct wal__lineage *lineage = view->lineage; lineage != NULL;
         lineage = lineage->base) {
        const struct wal__id_slot *id =
            wal__id_table_find(&lineage->ids, id_hash, end, &skip);

        if (id != NULL) {
            (*cursor)++;
            *hit = (struct wal__lineage_hit){id->position, id->number - 1};
            return true;
        }
        end = lineage->first;
    }
    return false;
}

/* wal__lineage_next_unindexed for one list, of which `count` levels are in
 * view. */
static bool next_in_list(const struct wal__lineage *lineage, uint32_t count,
                         uint64_t limit, uint32_t *rank, uint64_t *up_to)
{
    WAL__ASSERT(count > 0 && count <= lineage->count);
    if (lineage->complete + 1 < count) {
        *rank = lineage->first + lineage->complete;
        *up_to = lineage->levels[lineage->complete + 1].fork_sequence;
        return true;
    }
    if (lineage->levels[count - 1].indexed < limit) {
        *rank = lineage->first + count - 1;
        *up_to = limit;
        return true;
    }
    return false;
}

bool wal__lineage_next_unindexed(const struct wal__lineage_view *view,
                                 uint64_t limit, uint32_t *rank,
                                 uint64_t *up_to)
{
    uint32_t end = view->count;

    for (const struct wal__lineage *lineage = view->lineage; lineage != NULL;
         lineage = lineage->base) {
        if (next_in_list(lineage, end - lineage->first, limit, rank, up_to)) {
            return true;
        }
        limit = lineage->levels[0].fork_sequence;
        end = lineage->first;
    }
    return false;
}

void wal__lineage_set_indexed(const struct wal__lineage_view *view,
                              uint32_t rank, uint64_t up_to)
{
    struct wal__lineage *lineage = list_of(view, rank);
    struct wal__lineage_level *level = &lineage->levels[rank - lineage->first];

    if (level->indexed < up_to) {
        level->indexed = up_to;
    }
    while (lineage->complete + 1 < lineage->count &&
           lineage->levels[lineage->complete].indexed >=
               lineage->levels[lineage->complete + 1].fork_sequence) {
        lineage->complete++;
    }
}

/* --- extending ---------------------------------------------------------- */

/* Creates a list with the levels of the view and no base. */
static enum wal_status flatten(const struct wal__heap *heap,
                               const struct wal__lineage_view *view,
                               struct wal__lineage **out)
{
    struct wal__lineage_view flat = {create(heap), 0};
    enum wal_status status = flat.lineage == NULL ? WAL_ENOMEM : WAL_OK;
    uint32_t end = view->count;

    for (uint32_t i = 0; i < view->count && status == WAL_OK; i++) {
        struct wal__lineage_level level = wal__lineage_level(view, i);

        status = append_level(flat.lineage, &level);
    }
    for (const struct wal__lineage *lineage = view->lineage;
         lineage != NULL && status == WAL_OK; lineage = lineage->base) {
        status =
            wal__id_table_merge(&flat.lineage->ids, heap, &lineage->ids, end);
        end = lineage->first;
    }
    if (status != WAL_OK) {
        wal__lineage_release(&flat);
        return status;
    }
    *out = flat.lineage;
    return WAL_OK;
}

/* Creates an empty list on the view's. */
static enum wal_status stack(const struct wal__heap *heap,
                             const struct wal__lineage_view *view,
                             struct wal__lineage **out)
{
    struct wal__lineage *lineage = create(heap);

    if (lineage == NULL) {
        return WAL_ENOMEM;
    }
    lineage->base = wal__lineage_retain(view).lineage;
    lineage->first = view->count;
    lineage->depth = view->lineage->depth + 1;
    *out = lineage;
    return WAL_OK;
}

/* Sets *out to a list that can be appended to after the view's last level. */
static enum wal_status open_list(const struct wal__heap *heap,
                                 const struct wal__lineage_view *view,
                                 struct wal__lineage **out)
{
    struct wal__lineage *lineage = view->lineage;

    if (lineage == NULL) {
        *out = create(heap);
        return *out == NULL ? WAL_ENOMEM : WAL_OK;
    }
    if (view->count == lineage->first + lineage->count) {
        *out = wal__lineage_retain(view).lineage;
        return WAL_OK;
    }
    return lineage->depth + 1 < WAL__LINEAGE_LISTS ? stack(heap, view, out)
                                                   : flatten(heap, view, out);
}

enum wal_status wal__lineage_extend(const struct wal__heap *heap,
                                    const struct wal__lineage_view *view,
                                    uint32_t session, uint64_t fork_sequence,
                                    struct wal__lineage_view *out)
{
    const struct wal__lineage_level level = {session, fork_sequence, 0};
    const struct wal__lineage *lineage = view->lineage;
    struct wal__lineage_view extended = {NULL, view->count + 1};
    enum wal_status status;

    if (lineage != NULL && view->count < lineage->first + lineage->count &&
        lineage->levels[view->count - lineage->first].session == session) {
        extended.lineage = wal__lineage_retain(view).lineage;
        *out = extended;
        return WAL_OK;
    }
    status = open_list(heap, view, &extended.lineage);
    if (status != WAL_OK) {
        return status;
    }
    status = append_level(extended.lineage, &level);
    if (status != WAL_OK) {
        wal__lineage_release(&extended);
        return status;
    }
    *out = extended;
    return WAL_OK;
}

uint64_t wal__lineage_share(const struct wal__lineage_view *view)
{
    uint64_t share = 0;
    uint64_t references = 1;

    for (const struct wal__lineage *lineage = view->lineage; lineage != NULL;
         lineage = lineage->base) {
        uint64_t size = sizeof(*lineage) +
                        lineage->capacity * sizeof(*lineage->levels) +
                        lineage->ids.capacity * sizeof(*lineage->ids.slots);

        references *= lineage->references;
        share += size / references;
    }
    return share;
}
