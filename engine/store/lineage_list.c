/*
 * lineage_list.c - lists of ancestors that forks share (lineage_list.h), and the cache of those in
 * use, by the session that owns the fork point: each is read once, from the catalogue and, for ids,
 * from postings; no branch is loaded.
 *
 * Invariants: a list is appended to, never changed, but for `indexed`, which rises. `complete`
 * levels are indexed up to the fork point of the level after them. Slots of the table with a rank
 * beyond a view belong to longer views. A cached view ends with the session it is cached under.
 *
 * Lists need the caller's lock: one writer, or any readers. The cache needs the state lock for
 * writing; wal__core_cached_lineage for reading only.
 */
#include "engine/store/lineage_list.h"

#include <inttypes.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

/* Lists under one another; a look-up reads a table of each. */
enum { WAL__LINEAGE_LISTS = 8 };

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

/* Returns the view with one more reference. */
static struct wal__lineage_view lineage_retain(const struct wal__lineage_view *view)
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
static struct wal__lineage *list_of(const struct wal__lineage_view *view, uint32_t rank)
{
    struct wal__lineage *lineage = view->lineage;

    WAL__ASSERT(rank < view->count);
    while (rank < lineage->first) {
        lineage = lineage->base;
    }
    WAL__ASSERT(rank - lineage->first < lineage->count);
    return lineage;
}

struct wal__lineage_level wal__lineage_level(const struct wal__lineage_view *view, uint32_t rank)
{
    const struct wal__lineage *lineage = list_of(view, rank);

    return lineage->levels[rank - lineage->first];
}

bool wal__lineage_find_sequence(const struct wal__lineage_view *view, uint64_t sequence,
                                uint32_t *rank)
{
    const struct wal__lineage *lineage = view->lineage;
    uint32_t end = view->count;
    uint32_t low;

    if (end == 0 || sequence == 0) {
        return false;
    }
    while (lineage->base != NULL && lineage->levels[0].fork_sequence >= sequence) {
        end = lineage->first;
        lineage = lineage->base;
    }
    low = (uint32_t)wal__lower_bound(lineage->levels, end - lineage->first,
                                     sizeof(lineage->levels[0]),
                                     offsetof(struct wal__lineage_level, fork_sequence), sequence);
    if (low == 0) {
        return false; /* the root is a fork whose source was lost */
    }
    *rank = lineage->first + low - 1;
    return true;
}

static enum wal_status append_level(struct wal__lineage *lineage,
                                    const struct wal__lineage_level *level)
{
    if (!WAL__HEAP_GROW(lineage->heap, lineage->levels, lineage->count, lineage->capacity)) {
        return WAL_ENOMEM;
    }
    WAL__ASSERT(lineage->count == 0 ||
                lineage->levels[lineage->count - 1].fork_sequence < level->fork_sequence);
    lineage->levels[lineage->count] = *level;
    lineage->count++;
    return WAL_OK;
}

/* --- ids ---------------------------------------------------------------- */

enum wal_status wal__lineage_add_id(const struct wal__lineage_view *view, uint32_t rank,
                                    uint64_t id_hash, uint64_t position)
{
    struct wal__lineage *lineage = list_of(view, rank);
    enum wal_status status =
        wal__id_table_reserve(&lineage->ids, lineage->heap, (uint64_t)lineage->ids.count + 1);

    if (status == WAL_OK) {
        wal__id_table_add(&lineage->ids, id_hash, position, rank + 1);
    }
    return status;
}

bool wal__lineage_find_id(const struct wal__lineage_view *view, uint64_t id_hash, uint32_t *cursor,
                          struct wal__lineage_hit *hit)
{
    /* Equal hashes are rare, so each call probes again from the start. */
    uint32_t skip = *cursor;
    uint32_t end = view->count;

    for (const struct wal__lineage *lineage = view->lineage; lineage != NULL;
         lineage = lineage->base) {
        const struct wal__id_slot *id = wal__id_table_find(&lineage->ids, id_hash, end, &skip);

        if (id != NULL) {
            (*cursor)++;
            *hit = (struct wal__lineage_hit){id->position, id->number - 1};
            return true;
        }
        end = lineage->first;
    }
    return false;
}

/* wal__lineage_next_unindexed for one list, of which `count` levels are in view. */
static bool next_in_list(const struct wal__lineage *lineage, uint32_t count, uint64_t limit,
                         uint32_t *rank, uint64_t *up_to)
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

bool wal__lineage_next_unindexed(const struct wal__lineage_view *view, uint64_t limit,
                                 uint32_t *rank, uint64_t *up_to)
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

void wal__lineage_set_indexed(const struct wal__lineage_view *view, uint32_t rank, uint64_t up_to)
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
static enum wal_status flatten(const struct wal__heap *heap, const struct wal__lineage_view *view,
                               struct wal__lineage **out)
{
    struct wal__lineage_view flat = {create(heap), 0};
    enum wal_status status = flat.lineage == NULL ? WAL_ENOMEM : WAL_OK;
    uint32_t end = view->count;

    for (uint32_t i = 0; i < view->count && status == WAL_OK; i++) {
        struct wal__lineage_level level = wal__lineage_level(view, i);

        status = append_level(flat.lineage, &level);
    }
    for (const struct wal__lineage *lineage = view->lineage; lineage != NULL && status == WAL_OK;
         lineage = lineage->base) {
        status = wal__id_table_merge(&flat.lineage->ids, heap, &lineage->ids, end);
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
static enum wal_status stack(const struct wal__heap *heap, const struct wal__lineage_view *view,
                             struct wal__lineage **out)
{
    struct wal__lineage *lineage = create(heap);

    if (lineage == NULL) {
        return WAL_ENOMEM;
    }
    lineage->base = lineage_retain(view).lineage;
    lineage->first = view->count;
    lineage->depth = view->lineage->depth + 1;
    *out = lineage;
    return WAL_OK;
}

/* Sets *out to a list that can be appended to after the view's last level. */
static enum wal_status open_list(const struct wal__heap *heap, const struct wal__lineage_view *view,
                                 struct wal__lineage **out)
{
    struct wal__lineage *lineage = view->lineage;

    if (lineage == NULL) {
        *out = create(heap);
        return *out == NULL ? WAL_ENOMEM : WAL_OK;
    }
    if (view->count == lineage->first + lineage->count) {
        *out = lineage_retain(view).lineage;
        return WAL_OK;
    }
    return lineage->depth + 1 < WAL__LINEAGE_LISTS ? stack(heap, view, out)
                                                   : flatten(heap, view, out);
}

enum wal_status wal__lineage_extend(const struct wal__heap *heap,
                                    const struct wal__lineage_view *view, uint32_t session,
                                    uint64_t fork_sequence, struct wal__lineage_view *out)
{
    const struct wal__lineage_level level = {session, fork_sequence, 0};
    const struct wal__lineage *lineage = view->lineage;
    struct wal__lineage_view extended = {NULL, view->count + 1};
    enum wal_status status;

    if (lineage != NULL && view->count < lineage->first + lineage->count &&
        lineage->levels[view->count - lineage->first].session == session) {
        extended.lineage = lineage_retain(view).lineage;
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
        uint64_t size = sizeof(*lineage) + lineage->capacity * sizeof(*lineage->levels) +
                        lineage->ids.capacity * sizeof(*lineage->ids.slots);

        references *= lineage->references;
        share += size / references;
    }
    return share;
}

enum {
    ENTRIES_MAX = 64,
    /* Above it only the lineage in use is kept. */
    SIZE_MAX_ALL = 64 * 1024 * 1024
};

struct wal__lineage_entry {
    uint32_t owner;
    struct wal__lineage_view view;
    uint64_t last_used; /* value of branch_clock */
};

static struct wal__lineage_entry *find_entry(const struct wal__core *core, uint32_t owner)
{
    for (uint32_t i = 0; i < core->lineage_count; i++) {
        if (core->lineages[i].owner == owner) {
            return &core->lineages[i];
        }
    }
    return NULL;
}

static void drop_entry(struct wal__core *core, uint32_t rank)
{
    WAL__ASSERT(rank < core->lineage_count);
    wal__lineage_release(&core->lineages[rank].view);
    core->lineage_count--;
    core->lineages[rank] = core->lineages[core->lineage_count];
}

void wal__core_drop_lineages(struct wal__core *core)
{
    while (core->lineage_count > 0) {
        drop_entry(core, core->lineage_count - 1);
    }
    wal__heap_free(core->env.heap, core->lineages);
    core->lineages = NULL;
}

static uint32_t find_oldest(const struct wal__core *core)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < core->lineage_count; i++) {
        if (core->lineages[i].last_used < core->lineages[oldest].last_used) {
            oldest = i;
        }
    }
    return oldest;
}

static uint64_t total_size(const struct wal__core *core)
{
    uint64_t size = 0;

    for (uint32_t i = 0; i < core->lineage_count; i++) {
        size += wal__lineage_share(&core->lineages[i].view);
    }
    return size;
}

/* Adds the view to the cache, which takes over the reference. */
static enum wal_status put_entry(struct wal__core *core, uint32_t owner,
                                 struct wal__lineage_view *view)
{
    WAL__ASSERT(find_entry(core, owner) == NULL);
    if (core->lineages == NULL) {
        core->lineages = wal__heap_alloc(core->env.heap, ENTRIES_MAX * sizeof(*core->lineages));
        if (core->lineages == NULL) {
            return WAL_ENOMEM;
        }
    }
    while (core->lineage_count == ENTRIES_MAX ||
           (core->lineage_count > 0 && total_size(core) > SIZE_MAX_ALL)) {
        drop_entry(core, find_oldest(core));
    }
    core->lineages[core->lineage_count] =
        (struct wal__lineage_entry){owner, *view, core->branch_clock};
    core->lineage_count++;
    return WAL_OK;
}

/* --- levels ------------------------------------------------------------- */

struct level {
    uint32_t session;
    uint64_t fork_sequence;
};

/* Collects the sessions from `owner` up to the root, or up to one that is cached: *view is then
 * its. A session that was lost ends the list, and the ones before it with it. `below`: the fork
 * point that `owner` owns. */
static enum wal_status collect_levels(struct wal__core *core, uint32_t owner, uint64_t below,
                                      struct wal__buf *levels, struct wal__lineage_view *view)
{
    while (below != 0) {
        const struct wal__lineage_entry *entry = find_entry(core, owner);
        struct level level = {.session = owner};
        struct wal__summary summary;
        enum wal_status status;

        if (entry != NULL) {
            *view = lineage_retain(&entry->view);
            return wal__lineage_level(view, view->count - 1).fork_sequence < below ? WAL_OK
                                                                                   : WAL_ECORRUPT;
        }
        status = wal__catalogue_get(&core->catalogue, owner, &summary);
        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_OK : status;
        }
        level.fork_sequence = summary.fork_sequence;
        if (level.fork_sequence >= below ||
            (level.fork_sequence != 0 &&
             (summary.fork_owner == 0 || summary.fork_owner == owner))) {
            return WAL_ECORRUPT;
        }
        status = wal__buf_append(levels, &level, sizeof(level));
        if (status != WAL_OK) {
            return status;
        }
        below = level.fork_sequence;
        owner = summary.fork_owner;
    }
    return WAL_OK;
}

/* Sets *view to the ancestors of a fork at `fork`, which `owner` owns, and caches it. */
static enum wal_status load_levels(struct wal__core *core, uint32_t owner, uint64_t fork,
                                   struct wal__lineage_view *view)
{
    struct wal__lineage_view cached;
    struct wal__buf levels;
    enum wal_status status;
    bool levels_found;

    wal__buf_init(&levels, core->env.heap);
    status = collect_levels(core, owner, fork, &levels, view);
    for (size_t i = levels.size / sizeof(struct level); i > 0 && status == WAL_OK; i--) {
        const struct level *level = (struct level *)(void *)levels.data + i - 1;
        struct wal__lineage_view extended;

        status = wal__lineage_extend(core->env.large_heap, view, level->session,
                                     level->fork_sequence, &extended);
        if (status == WAL_OK) {
            wal__lineage_release(view);
            *view = extended;
        }
    }
    levels_found = levels.size > 0;
    wal__buf_deinit(&levels);
    if (status == WAL_OK && levels_found) {
        cached = lineage_retain(view);
        status = put_entry(core, owner, &cached);
        if (status != WAL_OK) {
            wal__lineage_release(&cached);
        }
    }
    return status;
}

/* --- ids ---------------------------------------------------------------- */

/* Adds the ids of a level's entries from its `indexed` on. */
static enum wal_status index_level(struct wal__core *core, const struct wal__lineage_view *view,
                                   uint32_t rank, uint64_t up_to)
{
    struct wal__lineage_level level = wal__lineage_level(view, rank);
    struct wal__posting_cursor cursor;
    struct wal__posting posting;
    struct wal__summary summary;
    uint64_t position;
    enum wal_status status = wal__catalogue_get(&core->catalogue, level.session, &summary);

    if (status != WAL_OK) {
        return status;
    }
    wal__posting_cursor_begin(&cursor, core, &summary, up_to);
    status = wal__posting_cursor_previous(&cursor, &posting, &position);
    while (status == WAL_OK && posting.sequence > level.indexed) {
        if (posting.type == WAL__FRAME_ENTRY) {
            status = wal__lineage_add_id(view, rank, posting.id_hash, position);
        }
        if (status == WAL_OK) {
            status = wal__posting_cursor_previous(&cursor, &posting, &position);
        }
    }
    if (status == WAL_OK || status == WAL_END) {
        wal__lineage_set_indexed(view, rank, up_to);
        return WAL_OK;
    }
    return status;
}

static enum wal_status index_ids(struct wal__core *core, const struct wal__lineage_view *view,
                                 uint64_t limit)
{
    enum wal_status status = WAL_OK;
    uint64_t up_to;
    uint32_t rank;

    while (status == WAL_OK && wal__lineage_next_unindexed(view, limit, &rank, &up_to)) {
        status = index_level(core, view, rank, up_to);
    }
    return status;
}

/* --- the view of a fork ------------------------------------------------- */

enum wal_status wal__core_get_lineage(struct wal__core *core, const struct wal__branch_slot *slot,
                                      bool with_ids, struct wal__lineage_view *view,
                                      struct wal_error *error)
{
    uint64_t fork = slot->branch.fork_sequence;
    uint32_t number = slot->branch.session;
    uint32_t owner = slot->fork_owner;
    struct wal__lineage_entry *entry;
    enum wal_status status = WAL_OK;

    *view = (struct wal__lineage_view){NULL, 0};
    if (fork == 0) {
        return WAL_OK;
    }
    entry = find_entry(core, owner);
    if (owner == 0 || owner == number) {
        status = WAL_ECORRUPT;
    } else if (entry != NULL) {
        entry->last_used = core->branch_clock;
        *view = lineage_retain(&entry->view);
    } else {
        status = load_levels(core, owner, fork, view);
    }
    if (status == WAL_OK && with_ids) {
        status = index_ids(core, view, fork);
    }
    if (status != WAL_OK) {
        wal__lineage_release(view);
        return wal__fail(error, status, "cannot load the lineage of session %" PRIu32 ": %s",
                         number, wal_status_text(status));
    }
    WAL__ASSERT(view->count == 0 || wal__lineage_level(view, view->count - 1).session == owner);
    return WAL_OK;
}

bool wal__core_cached_lineage(const struct wal__core *core, const struct wal__branch_slot *slot,
                              struct wal__lineage_view *view)
{
    uint64_t fork = slot->branch.fork_sequence;
    const struct wal__lineage_entry *entry = fork == 0 ? NULL : find_entry(core, slot->fork_owner);
    uint64_t up_to;
    uint32_t rank;

    if (entry == NULL || wal__lineage_next_unindexed(&entry->view, fork, &rank, &up_to)) {
        return false;
    }
    *view = entry->view;
    return true;
}
