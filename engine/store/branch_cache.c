/*
 * branch_cache.c - the cache of sessions in use (SPEC.md 3.6). A branch is
 * loaded from the postings of the segments that hold its session, oldest first.
 * Pinned branches are kept; of the others the least recently used are evicted
 * first.
 *
 * Invariant: branch_map maps the number of each slot to its rank in `branches`.
 * State lock for writing; wal__core_cached_branch needs it for reading only.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    /* Unpinned slots that are kept whatever their size; more while all slots
     * are smaller than SIZE_MAX together. */
    UNPINNED_MAX = 64,
    SLOTS_SIZE_MAX = 512 * 1024
};

struct wal__branch_slot *wal__core_cached_branch(struct wal__core *core,
                                                 uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&core->branch_map, number, &cursor, &rank)) {
        WAL__ASSERT(rank < core->branch_count);
        if (core->branches[rank] != NULL &&
            core->branches[rank]->branch.session == number) {
            return core->branches[rank];
        }
    }
    return NULL;
}

void wal__branch_slot_deinit(struct wal__branch_slot *slot)
{
    wal__branch_deinit(&slot->branch);
    wal__annotations_deinit(&slot->annotations);
    wal__documents_deinit(&slot->documents);
    slot->documents_loaded = false;
    slot->loaded = false;
}

static void init_slot(struct wal__core *core, struct wal__branch_slot *slot,
                      uint32_t number)
{
    WAL__ASSERT(slot->pin_count == 0 && !slot->loaded);
    wal__branch_init(&slot->branch, core->env.large_heap, number);
    wal__annotations_init(&slot->annotations, core->env.heap);
    wal__documents_init(&slot->documents, core->env.heap);
}

static void free_slot(struct wal__core *core, struct wal__branch_slot *slot)
{
    WAL__ASSERT(slot->pin_count == 0);
    wal__branch_slot_deinit(slot);
    wal__heap_free(core->env.heap, slot);
}

/* Rebuilds the map after slots were set to NULL: a hash map cannot remove
 * items. */
static void rebuild_map(struct wal__core *core)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i] != NULL) {
            core->branches[kept] = core->branches[i];
            kept++;
        }
    }
    WAL__ASSERT(kept <= core->branch_count);
    core->branch_count = kept;
    if (core->branch_map.capacity > 0) {
        memset(core->branch_map.values, 0,
               core->branch_map.capacity * sizeof(uint32_t));
    }
    core->branch_map.count = 0;
    for (uint32_t i = 0; i < kept; i++) {
        enum wal_status status = wal__hashmap_add(
            &core->branch_map, core->branches[i]->branch.session, i);

        WAL__ASSERT(status == WAL_OK); /* the map had room for more */
    }
}

static uint64_t slot_size(const struct wal__branch_slot *slot)
{
    return sizeof(*slot) + wal__branch_size(&slot->branch);
}

/* Frees the unpinned slots that were last used at or before `limit`. */
static void free_unused(struct wal__core *core, uint64_t limit)
{
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0 &&
            core->branches[i]->last_used <= limit) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
        }
    }
    rebuild_map(core);
}

/* Frees the older half of the unpinned slots when there are too many. Looks
 * again when there are half as many more, so that a slot costs the same however
 * many there are. */
static void evict(struct wal__core *core)
{
    uint64_t oldest = UINT64_MAX;
    uint32_t unpinned = 0;
    uint64_t size = 0;

    if (core->branch_count < core->branch_evict_at) {
        return;
    }
    for (uint32_t i = 0; i < core->branch_count; i++) {
        const struct wal__branch_slot *slot = core->branches[i];

        size += slot_size(slot);
        if (slot->pin_count == 0) {
            unpinned++;
            oldest = slot->last_used < oldest ? slot->last_used : oldest;
        }
    }
    if (unpinned > UNPINNED_MAX && size > SLOTS_SIZE_MAX) {
        WAL__ASSERT(oldest <= core->branch_clock);
        free_unused(core, oldest + (core->branch_clock - oldest) / 2);
        core->branch_evict_at = core->branch_count;
    } else {
        core->branch_evict_at = core->branch_count + core->branch_count / 2;
    }
}

void wal__core_evict_branches(struct wal__core *core)
{
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
            continue;
        }
        /* Reloaded by the next wal__core_get_branch. */
        wal__branch_slot_deinit(core->branches[i]);
    }
    rebuild_map(core);
    wal__core_drop_lineages(core);
}

/* Most entries annotate nothing. */
static bool annotates(const struct wal__posting *posting)
{
    return posting->type != WAL__FRAME_ENTRY ||
           posting->kind == WAL__KIND_MESSAGE_DELTA_BATCH;
}

enum wal_status wal__branch_slot_apply(struct wal__branch_slot *slot,
                                       const struct wal__posting *posting,
                                       uint64_t position)
{
    enum wal_status status =
        annotates(posting)
            ? wal__annotations_add(&slot->annotations, posting, position)
            : WAL_OK;

    if (status != WAL_OK) {
        return status;
    }
    status = wal__branch_add(&slot->branch, posting, position);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(slot->branch.last_sequence == posting->sequence);
    return slot->documents_loaded
               ? wal__documents_add(&slot->documents, posting, position)
               : WAL_OK;
}

static enum wal_status add_id(void *ctx, const struct wal__posting *posting,
                              uint64_t position)
{
    struct wal__branch *branch = ctx;

    return posting->type == WAL__FRAME_ENTRY
               ? wal__branch_add_id(branch, posting, position)
               : WAL_OK;
}

enum wal_status wal__core_load_ids(struct wal__core *core,
                                   struct wal__branch_slot *slot,
                                   struct wal_error *error)
{
    struct wal__branch *branch = &slot->branch;
    struct wal__summary summary;
    enum wal_status status;

    WAL__ASSERT(slot->loaded);
    if (!branch->ids_deferred) {
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, branch->session, &summary);
    if (status == WAL_OK) {
        status = wal__core_visit_postings(core, &summary, add_id, branch);
    }
    if (status == WAL_OK) {
        status = wal__branch_end_ids(branch);
    }
    if (status != WAL_OK) {
        wal__branch_drop_ids(branch);
        return wal__fail(error, status,
                         "cannot load the ids of session %" PRIu32 ": %s",
                         branch->session, wal_status_text(status));
    }
    return WAL_OK;
}

/* Context of loading a branch. */
struct branch_load {
    struct wal__branch_slot *slot;
    const struct wal__summary *summary;
};

static enum wal_status
add_posting(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    const struct branch_load *branch_load = ctx;

    WAL__ASSERT(!branch_load->slot->loaded);
    if (posting->type == WAL__FRAME_FORK) {
        wal__branch_set_fork(&branch_load->slot->branch, posting->parent,
                             posting->stream, branch_load->summary->inherited);
    }
    return wal__branch_slot_apply(branch_load->slot, posting, position);
}

/* Adds an empty slot to the table and the map; NULL when out of memory. */
static struct wal__branch_slot *new_slot(struct wal__core *core,
                                         uint32_t number)
{
    struct wal__branch_slot *slot;

    WAL__ASSERT(wal__core_cached_branch(core, number) == NULL);
    evict(core);
    if (core->branch_count == core->branch_capacity) {
        uint32_t capacity =
            core->branch_capacity == 0 ? 64 : core->branch_capacity * 2;
        struct wal__branch_slot **slots = wal__heap_resize(
            core->env.heap, core->branches, capacity, sizeof(*slots));

        if (slots == NULL) {
            return NULL;
        }
        core->branches = slots;
        core->branch_capacity = capacity;
    }
    WAL__ASSERT(core->branch_count < core->branch_capacity);
    slot = wal__heap_zalloc(core->env.heap, sizeof(*slot));
    if (slot == NULL) {
        return NULL;
    }
    if (wal__hashmap_add(&core->branch_map, number, core->branch_count) !=
        WAL_OK) {
        wal__heap_free(core->env.heap, slot);
        return NULL;
    }
    init_slot(core, slot, number);
    core->branches[core->branch_count] = slot;
    core->branch_count++;
    return slot;
}

enum wal_status wal__core_get_branch(struct wal__core *core, uint32_t number,
                                     struct wal__branch_slot **slot,
                                     struct wal_error *error)
{
    struct wal__branch_slot *found = wal__core_cached_branch(core, number);
    struct branch_load branch_load;
    struct wal__summary summary;
    enum wal_status status;

    core->branch_clock++;
    if (found != NULL && found->loaded) {
        WAL__ASSERT(found->last_used <= core->branch_clock);
        found->last_used = core->branch_clock;
        *slot = found;
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status != WAL_OK) {
        goto failed;
    }
    if (found == NULL) {
        found = new_slot(core, number);
        if (found == NULL) {
            status = WAL_ENOMEM;
            goto failed;
        }
    }
    WAL__ASSERT(found->branch.session == number && !found->loaded);
    found->fork_owner = summary.fork_owner;
    wal__branch_expect(&found->branch, summary.entries);
    wal__branch_defer_ids(&found->branch);
    branch_load = (struct branch_load){found, &summary};
    status =
        wal__core_visit_postings(core, &summary, add_posting, &branch_load);
    if (status != WAL_OK) {
        wal__branch_slot_deinit(found);
        goto failed;
    }
    found->loaded = true;
    found->last_used = core->branch_clock;
    *slot = found;
    return WAL_OK;
failed:
    return wal__fail(error, status,
                     "cannot load the index of session %" PRIu32 ": %s", number,
                     wal_status_text(status));
}
