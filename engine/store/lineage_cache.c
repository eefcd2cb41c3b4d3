/*
 * lineage_cache.c - the ancestors of forks in use, by the session that owns the
 * fork point: all its forks share them (engine/index/lineage_list.h). They are
 * read once, from the catalogue and, for ids, from postings; no branch is
 * loaded.
 *
 * Invariant: a cached view ends with the session it is cached under. State lock
 * for writing; wal__core_cached_lineage needs it for reading only.
 */
#include <inttypes.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

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

static struct wal__lineage_entry *find_entry(const struct wal__core *core,
                                             uint32_t owner)
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
        core->lineages = wal__heap_alloc(core->env.heap,
                                         ENTRIES_MAX * sizeof(*core->lineages));
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

/* Collects the sessions from `owner` up to the root, or up to one that is
 * cached: *view is then its. A session that was lost ends the list, and the
 * ones before it with it. `below`: the fork point that `owner` owns. */
static enum wal_status collect_levels(struct wal__core *core, uint32_t owner,
                                      uint64_t below, struct wal__buf *levels,
                                      struct wal__lineage_view *view)
{
    while (below != 0) {
        const struct wal__lineage_entry *entry = find_entry(core, owner);
        struct level level = {.session = owner};
        struct wal__summary summary;
        enum wal_status status;

        if (entry != NULL) {
            *view = wal__lineage_retain(&entry->view);
            return wal__lineage_level(view, view->count - 1).fork_sequence <
                           below
                       ? WAL_OK
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

/* Sets *view to the ancestors of a fork at `fork`, which `owner` owns, and
 * caches it. */
static enum wal_status load_levels(struct wal__core *core, uint32_t owner,
                                   uint64_t fork,
                                   struct wal__lineage_view *view)
{
    struct wal__lineage_view cached;
    struct wal__buf levels;
    enum wal_status status;
    bool levels_found;

    wal__buf_init(&levels, core->env.heap);
    status = collect_levels(core, owner, fork, &levels, view);
    for (size_t i = levels.size / sizeof(struct level);
         i > 0 && status == WAL_OK; i--) {
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
        cached = wal__lineage_retain(view);
        status = put_entry(core, owner, &cached);
        if (status != WAL_OK) {
            wal__lineage_release(&cached);
        }
    }
    return status;
}

/* --- ids ---------------------------------------------------------------- */

/* Adds the ids of a level's entries from its `indexed` on. */
static enum wal_status index_level(struct wal__core *core,
                                   const struct wal__lineage_view *view,
                                   uint32_t rank, uint64_t up_to)
{
    struct wal__lineage_level level = wal__lineage_level(view, rank);
    struct wal__posting_cursor cursor;
    struct wal__posting posting;
    struct wal__summary summary;
    uint64_t position;
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, level.session, &summary);

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

static enum wal_status index_ids(struct wal__core *core,
                                 const struct wal__lineage_view *view,
                                 uint64_t limit)
{
    enum wal_status status = WAL_OK;
    uint64_t up_to;
    uint32_t rank;

    while (status == WAL_OK &&
           wal__lineage_next_unindexed(view, limit, &rank, &up_to)) {
        status = index_level(core, view, rank, up_to);
    }
    return status;
}

/* --- the view of a fork ------------------------------------------------- */

enum wal_status wal__core_get_lineage(struct wal__core *core,
                                      const struct wal__branch_slot *slot,
                                      bool with_ids,
                                      struct wal__lineage_view *view,
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
        *view = wal__lineage_retain(&entry->view);
    } else {
        status = load_levels(core, owner, fork, view);
    }
    if (status == WAL_OK && with_ids) {
        status = index_ids(core, view, fork);
    }
    if (status != WAL_OK) {
        wal__lineage_release(view);
        return wal__fail(error, status,
                         "cannot load the lineage of session %" PRIu32 ": %s",
                         number, wal_status_text(status));
    }
    WAL__ASSERT(view->count == 0 ||
                wal__lineage_level(view, view->count - 1).session == owner);
    return WAL_OK;
}

bool wal__core_cached_lineage(const struct wal__core *core,
                              const struct wal__branch_slot *slot,
                              struct wal__lineage_view *view)
{
    uint64_t fork = slot->branch.fork_sequence;
    const struct wal__lineage_entry *entry =
        fork == 0 ? NULL : find_entry(core, slot->fork_owner);
    uint64_t up_to;
    uint32_t rank;

    if (entry == NULL ||
        wal__lineage_next_unindexed(&entry->view, fork, &rank, &up_to)) {
        return false;
    }
    *view = entry->view;
    return true;
}
