/*
 * branch_cache.c - the sessions in use: a branch is loaded from the postings of
 * the segments that hold its session, oldest first, and kept while something
 * pins it; of the others the least recently used go first.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    UNPINNED_MAX = 64
};

struct wal__branch_slot *wal__core_cached_branch(struct wal__core *core,
                                                 uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t at;

    while (wal__hashmap_find(&core->branch_map, number, &cursor, &at)) {
        if (core->branches[at] != NULL &&
            core->branches[at]->branch.session == number) {
            return core->branches[at];
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
    wal__branch_init(&slot->branch, core->env.large_heap, number);
    wal__annotations_init(&slot->annotations, core->env.heap);
    wal__documents_init(&slot->documents, core->env.heap);
}

static void free_slot(struct wal__core *core, struct wal__branch_slot *slot)
{
    wal__branch_slot_deinit(slot);
    wal__heap_free(core->env.heap, slot);
}

/* Rebuilds the map after slots went: the map itself removes nothing. */
static void rebuild_map(struct wal__core *core)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i] != NULL) {
            core->branches[kept] = core->branches[i];
            kept++;
        }
    }
    core->branch_count = kept;
    if (core->branch_map.capacity > 0) {
        memset(core->branch_map.values, 0,
               core->branch_map.capacity * sizeof(uint32_t));
    }
    core->branch_map.count = 0;
    for (uint32_t i = 0; i < kept; i++) {
        enum wal_status status = wal__hashmap_add(
            &core->branch_map, core->branches[i]->branch.session, i);

        WAL__ASSERT(status == WAL_OK); /* there was room for more */
    }
}

/* Drops the older half of what nothing pins, when there is much of it. */
static void evict(struct wal__core *core)
{
    uint64_t oldest = UINT64_MAX;
    uint32_t unpinned = 0;
    uint64_t limit;

    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0) {
            unpinned++;
            if (core->branches[i]->last_used < oldest) {
                oldest = core->branches[i]->last_used;
            }
        }
    }
    if (unpinned <= UNPINNED_MAX) {
        return;
    }
    limit = oldest + (core->branch_clock - oldest) / 2;
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0 &&
            core->branches[i]->last_used <= limit) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
        }
    }
    rebuild_map(core);
}

void wal__core_evict_branches(struct wal__core *core)
{
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pin_count == 0) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
            continue;
        }
        /* Pinned: emptied here, loaded again when it is asked for. */
        wal__branch_slot_deinit(core->branches[i]);
    }
    rebuild_map(core);
}

/* The slot's next record, in log order. */
enum wal_status wal__branch_slot_apply(struct wal__branch_slot *slot,
                                       const struct wal__posting *posting,
                                       uint64_t position)
{
    enum wal_status status =
        wal__annotations_add(&slot->annotations, posting, position);

    if (status == WAL_OK) {
        status = wal__branch_add(&slot->branch, posting, position);
    }
    if (status == WAL_OK && slot->documents_loaded) {
        status = wal__documents_add(&slot->documents, posting, position);
    }
    return status;
}

/* What loading a branch carries along. */
struct branch_load {
    struct wal__branch_slot *slot;
    const struct wal__summary *summary;
};

static enum wal_status
add_posting(void *ctx, const struct wal__posting *posting, uint64_t position)
{
    const struct branch_load *branch_load = ctx;

    if (posting->type == WAL__FRAME_FORK) {
        wal__branch_set_fork(&branch_load->slot->branch, posting->parent,
                             posting->stream, branch_load->summary->inherited);
    }
    return wal__branch_slot_apply(branch_load->slot, posting, position);
}

/* A slot without content, in the table and the map. */
static struct wal__branch_slot *new_slot(struct wal__core *core,
                                         uint32_t number)
{
    struct wal__branch_slot *slot;

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
    struct wal__summary summary;
    enum wal_status status;

    core->branch_clock++;
    if (found != NULL && found->loaded) {
        found->last_used = core->branch_clock;
        *slot = found;
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_OK && found == NULL) {
        found = new_slot(core, number);
        status = found == NULL ? WAL_ENOMEM : WAL_OK;
    }
    if (status == WAL_OK) {
        struct branch_load branch_load = {found, &summary};

        status =
            wal__core_visit_postings(core, &summary, add_posting, &branch_load);
        if (status != WAL_OK) {
            wal__branch_slot_deinit(found);
        }
    }
    if (status != WAL_OK) {
        return wal__fail(error, status,
                         "the index of session %" PRIu32
                         " cannot be loaded: %s",
                         number, wal_status_text(status));
    }
    found->loaded = true;
    found->last_used = core->branch_clock;
    *slot = found;
    return WAL_OK;
}
