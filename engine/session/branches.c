/*
 * branches.c - the sessions in use: a branch is loaded from the postings of
 * the segments that hold its session, oldest first, and kept while something
 * pins it; of the others the least recently used go first.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/assert.h"
#include "engine/base/error.h"
#include "engine/session/core.h"

enum {
    UNPINNED_MAX = 64
};

/* Postings of one session in one segment. */
struct source {
    uint64_t segment;
    uint32_t first;
    uint32_t count;
};

struct wal__branch_slot *wal__core_loaded(struct wal__core *core,
                                          uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t at;

    while (wal__map_find(&core->branch_map, number, &cursor, &at)) {
        if (core->branches[at] != NULL &&
            core->branches[at]->branch.session == number) {
            return core->branches[at];
        }
    }
    return NULL;
}

static void free_slot(struct wal__core *core, struct wal__branch_slot *slot)
{
    wal__branch_deinit(&slot->branch);
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
        enum wal_status status = wal__map_add(
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
        if (core->branches[i]->pins == 0) {
            unpinned++;
            if (core->branches[i]->used < oldest) {
                oldest = core->branches[i]->used;
            }
        }
    }
    if (unpinned <= UNPINNED_MAX) {
        return;
    }
    limit = oldest + (core->branch_clock - oldest) / 2;
    for (uint32_t i = 0; i < core->branch_count; i++) {
        if (core->branches[i]->pins == 0 && core->branches[i]->used <= limit) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
        }
    }
    rebuild_map(core);
}

void wal__core_drop_branches(struct wal__core *core)
{
    for (uint32_t i = 0; i < core->branch_count; i++) {
        struct wal__branch *branch = &core->branches[i]->branch;
        uint32_t session = branch->session;

        if (core->branches[i]->pins == 0) {
            free_slot(core, core->branches[i]);
            core->branches[i] = NULL;
            continue;
        }
        /* Pinned: emptied here, loaded again when it is asked for. */
        wal__branch_deinit(branch);
        wal__branch_init(branch, core->env.heap, session);
        core->branches[i]->loaded = false;
    }
    rebuild_map(core);
}

/* Where the session's postings lie, newest segment first. */
static enum wal_status find_sources(struct wal__core *core,
                                    const struct wal__summary *summary,
                                    struct wal__buf *sources)
{
    uint64_t segment = summary->segment;
    enum wal_status status = WAL_OK;

    while (segment != 0 && status == WAL_OK) {
        const struct wal__index *index;
        struct wal__summary part;
        struct source source;

        status = wal__index_set_get(&core->indexes, segment, &index);
        if (status != WAL_OK) {
            return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
        }
        if (wal__index_find(index, summary->number, &part) != WAL__FMT_OK ||
            part.segment >= segment) {
            return WAL_ECORRUPT;
        }
        source.segment = segment;
        source.first = part.first_posting;
        source.count = part.posting_count;
        status = wal__buf_append(sources, &source, sizeof(source));
        segment = part.segment;
    }
    return status;
}

static enum wal_status add_posting(struct wal__branch *branch,
                                   const struct wal__summary *summary,
                                   const struct wal__posting *posting,
                                   uint64_t segment)
{
    if (posting->type == WAL__FRAME_FORK) {
        wal__branch_set_fork(branch, posting->parent, posting->stream,
                             summary->inherited);
    }
    return wal__branch_add(branch, posting,
                           wal__position(segment, posting->offset));
}

static enum wal_status add_source(struct wal__core *core,
                                  struct wal__branch *branch,
                                  const struct wal__summary *summary,
                                  const struct source *source)
{
    const struct wal__index *index;
    enum wal_status status =
        wal__index_set_get(&core->indexes, source->segment, &index);

    for (uint32_t i = 0; i < source->count && status == WAL_OK; i++) {
        struct wal__posting posting;

        wal__posting_decode(index->postings +
                                (size_t)(source->first + i) * WAL__POSTING_SIZE,
                            &posting);
        status = add_posting(branch, summary, &posting, source->segment);
    }
    return status;
}

static enum wal_status fill(struct wal__core *core, struct wal__branch *branch,
                            const struct wal__summary *summary)
{
    struct wal__buf sources;
    struct wal__buf postings;
    enum wal_status status;
    size_t at;

    wal__buf_init(&sources, core->env.heap);
    wal__buf_init(&postings, core->env.heap);
    status = find_sources(core, summary, &sources);
    for (at = sources.size; at > 0 && status == WAL_OK;
         at -= sizeof(struct source)) {
        struct source source;

        memcpy(&source, sources.data + at - sizeof(source), sizeof(source));
        status = add_source(core, branch, summary, &source);
    }
    if (status == WAL_OK) {
        status =
            wal__tail_index_collect(&core->tail, summary->number, &postings);
    }
    for (at = 0; at < postings.size && status == WAL_OK;
         at += sizeof(struct wal__posting)) {
        struct wal__posting posting;

        memcpy(&posting, postings.data + at, sizeof(posting));
        status = add_posting(branch, summary, &posting, core->log.tail->id);
    }
    wal__buf_deinit(&sources);
    wal__buf_deinit(&postings);
    return status;
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
    if (wal__map_add(&core->branch_map, number, core->branch_count) != WAL_OK) {
        wal__heap_free(core->env.heap, slot);
        return NULL;
    }
    wal__branch_init(&slot->branch, core->env.heap, number);
    core->branches[core->branch_count] = slot;
    core->branch_count++;
    return slot;
}

enum wal_status wal__core_branch(struct wal__core *core, uint32_t number,
                                 struct wal__branch_slot **slot,
                                 struct wal_error *error)
{
    struct wal__branch_slot *found = wal__core_loaded(core, number);
    struct wal__summary summary;
    enum wal_status status;

    core->branch_clock++;
    if (found != NULL && found->loaded) {
        found->used = core->branch_clock;
        *slot = found;
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, number, &summary);
    if (status == WAL_OK && found == NULL) {
        found = new_slot(core, number);
        status = found == NULL ? WAL_ENOMEM : WAL_OK;
    }
    if (status == WAL_OK) {
        status = fill(core, &found->branch, &summary);
        if (status != WAL_OK) {
            wal__branch_deinit(&found->branch);
            wal__branch_init(&found->branch, core->env.heap, number);
        }
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, 0, NULL, 0,
                         "the index of session %" PRIu32
                         " cannot be loaded: %s",
                         number, wal_status_text(status));
    }
    found->loaded = true;
    found->used = core->branch_clock;
    *slot = found;
    return WAL_OK;
}
