/*
 * lineage.c - lookups in a session and the sessions it descends from (SPEC.md
 * 5.3). A fork names the session that owns its fork point; records appended
 * there after the fork are not seen.
 *
 * The ancestors come from the cache of lineages, so that a lookup costs the same at any depth.
 *
 * Invariant: an entry's parent has a lower sequence number, so every walk ends. State lock for
 * writing unless core.h says otherwise.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* Sets *same when the entry has this id. Equal ids need no payload checksum; if they differ, the
 * record is verified, since its bytes may be damaged. */
static enum wal_status check_id(struct wal__core *core, uint64_t position, struct wal__span id,
                                bool *same, struct wal_error *error)
{
    struct wal__span found = {NULL, 0};
    struct wal__span payload;
    struct wal__frame frame;
    struct wal__record_buf scratch;
    enum wal_status status;

    wal__record_buf_init(&scratch, core->env.heap);
    status =
        wal__log_peek(&core->log, position, WAL__ENTRY_ID_END, &scratch, &frame, &payload, error);
    if (status == WAL_OK) {
        *same = wal__entry_record_id(payload, &found) && found.size == id.size &&
                memcmp(found.data, id.data, id.size) == 0;
        if (!*same) {
            status = wal__log_read(&core->log, position, &scratch, &frame, &payload, error);
        }
    }
    wal__record_buf_deinit(&scratch);
    return status;
}

enum {
    /* Bytes to prefetch of a record that was found: most are not larger. */
    READ_AHEAD = 1024,
    /* Of its parent: header and id. */
    READ_PARENT = 128
};

/* Searches the own entries of a session up to the sequence `limit`. */
static enum wal_status find_in_session(struct wal__core *core, const struct wal__branch *branch,
                                       uint64_t limit, struct wal__span id, uint64_t hash,
                                       struct wal__entry_location *found, struct wal_error *error)
{
    struct wal__branch_hit hit;
    uint32_t cursor = 0;

    while (wal__branch_find_id(branch, hash, &cursor, &hit)) {
        const struct wal__branch_entry *entry = &hit.stream->entries[hit.ordinal];
        enum wal_status status;
        bool same = false;

        WAL__ASSERT(hit.ordinal < hit.stream->entry_count);
        wal__log_prefetch(&core->log, hit.position, READ_AHEAD);
        if (entry->sequence > limit) {
            continue;
        }
        if (hit.ordinal > 0) {
            /* Most often the parent; the reader returns its id too. */
            wal__log_prefetch(&core->log, entry[-1].position, READ_PARENT);
        }
        status = check_id(core, hit.position, id, &same, error);
        if (status != WAL_OK) {
            return status;
        }
        if (same) {
            *found = (struct wal__entry_location){hit.position, entry->sequence, branch->session,
                                                  hit.stream->number, hit.ordinal};
            return WAL_OK;
        }
    }
    return WAL_ENOTFOUND;
}

/* The highest sequence that the fork sees of a level. */
static uint64_t level_limit(const struct wal__lineage_view *view, uint64_t fork, uint32_t rank)
{
    return rank + 1 < view->count ? wal__lineage_level(view, rank + 1).fork_sequence : fork;
}

/* Finds the own entry at this position that forks see; false when its sequence is above the limit,
 * or it is a delta: the fork was made without it. */
static bool find_position(const struct wal__branch *branch, uint64_t position, uint64_t limit,
                          struct wal__entry_location *found)
{
    for (uint32_t i = 0; i < branch->stream_count; i++) {
        const struct wal__stream *stream = &branch->streams[i];
        uint32_t ordinal;

        if (wal__branch_find_position(stream, position, &ordinal)) {
            *found = (struct wal__entry_location){position, stream->entries[ordinal].sequence,
                                                  branch->session, stream->number, ordinal};
            return found->sequence <= limit && found->stream < WAL__STREAM_COUNT;
        }
    }
    return false;
}

/* Searches the ancestors. With `loading`, branches of ancestors are loaded; without, one that is
 * not loaded has nothing. */
static enum wal_status find_inherited_id(struct wal__core *core,
                                         const struct wal__lineage_view *view, uint64_t fork,
                                         struct wal__span id, bool loading,
                                         struct wal__entry_location *found, struct wal_error *error)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    struct wal__lineage_hit hit;
    uint32_t cursor = 0;

    while (wal__lineage_find_id(view, hash, &cursor, &hit)) {
        uint32_t owner = wal__lineage_level(view, hit.rank).session;
        struct wal__branch_slot *slot = wal__core_cached_branch(core, owner);
        enum wal_status status;
        bool same = false;

        wal__log_prefetch(&core->log, hit.position, READ_AHEAD);
        status = check_id(core, hit.position, id, &same, error);
        if (status != WAL_OK) {
            return status;
        }
        if (!same) {
            continue;
        }
        if (loading) {
            status = wal__core_get_branch(core, owner, &slot, error);
            if (status != WAL_OK) {
                return status;
            }
        }
        if (slot != NULL && slot->loaded &&
            find_position(&slot->branch, hit.position, level_limit(view, fork, hit.rank), found)) {
            return WAL_OK;
        }
    }
    return WAL_ENOTFOUND;
}

enum wal_status wal__core_find_cached_id(struct wal__core *core, uint32_t number,
                                         struct wal__span id, struct wal__entry_location *found,
                                         struct wal_error *error)
{
    const struct wal__branch_slot *slot = wal__core_cached_branch(core, number);
    struct wal__lineage_view view;
    enum wal_status status;

    if (slot == NULL || !slot->loaded || slot->branch.ids_deferred) {
        return WAL_ENOTFOUND;
    }
    status = find_in_session(core, &slot->branch, UINT64_MAX, id, wal__id_hash(id.data, id.size),
                             found, error);
    if (status != WAL_ENOTFOUND || !wal__core_cached_lineage(core, slot, &view)) {
        return status;
    }
    return find_inherited_id(core, &view, slot->branch.fork_sequence, id, false, found, error);
}

enum wal_status wal__core_read_id(struct wal__core *core, uint64_t position, uint64_t sequence,
                                  struct wal__record_buf *scratch, struct wal__span *id)
{
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__span found;
    enum wal_status status =
        wal__log_peek(&core->log, position, WAL__ENTRY_ID_END, scratch, &frame, &payload, NULL);

    if (status != WAL_OK) {
        return status;
    }
    if (frame.type != WAL__FRAME_ENTRY || frame.sequence != sequence ||
        !wal__entry_record_id(payload, &found) ||
        wal__id_hash(found.data, found.size) != frame.id_hash) {
        return WAL_ECORRUPT;
    }
    *id = found;
    return WAL_OK;
}

enum wal_status wal__core_find_id(struct wal__core *core, uint32_t number, struct wal__span id,
                                  struct wal__entry_location *found, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    struct wal__lineage_view view;
    enum wal_status status = wal__core_get_branch(core, number, &slot, error);

    if (status == WAL_OK) {
        status = wal__core_load_ids(core, slot, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = find_in_session(core, &slot->branch, UINT64_MAX, id, wal__id_hash(id.data, id.size),
                             found, error);
    if (status == WAL_ENOTFOUND && slot->branch.fork_sequence != 0) {
        uint64_t fork = slot->branch.fork_sequence;

        status = wal__core_get_lineage(core, slot, true, &view, error);
        if (status == WAL_OK) {
            status = find_inherited_id(core, &view, fork, id, true, found, error);
            wal__lineage_release(&view);
        }
    }
    return status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ENOTFOUND, "the session has no entry \"%.*s\"",
                           (int)(id.size < 255 ? id.size : 255), (const char *)id.data)
               : status;
}

enum wal_status wal__core_fail_delta(enum wal_status status, struct wal__span id,
                                     struct wal_error *error)
{
    return wal__fail(error, status,
                     "the entry \"%.*s\" is a delta: name the entry that it is "
                     "under",
                     (int)id.size, (const char *)id.data);
}

/* --- by sequence -------------------------------------------------------- */

/* A session and its ancestors. */
struct lineage {
    struct wal__core *core;
    uint32_t number;
    uint64_t fork;
    struct wal__lineage_view view;
};

/* End with wal__lineage_release of the view. */
static enum wal_status begin(struct wal__core *core, uint32_t number, struct lineage *lineage,
                             struct wal_error *error)
{
    struct wal__branch_slot *slot;
    enum wal_status status = wal__core_get_branch(core, number, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    lineage->core = core;
    lineage->number = number;
    lineage->fork = slot->branch.fork_sequence;
    return wal__core_get_lineage(core, slot, false, &lineage->view, error);
}

/* An entry in the branch of its owner; valid until another one is loaded. */
struct place {
    const struct wal__branch *branch;
    const struct wal__stream *stream;
    uint32_t ordinal;
};

static enum wal_status find_place(const struct lineage *lineage, uint32_t stream, uint64_t sequence,
                                  struct place *place, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    uint32_t owner = lineage->number;
    bool found = sequence > lineage->fork;
    enum wal_status status;
    uint32_t rank;

    if (!found && wal__lineage_find_sequence(&lineage->view, sequence, &rank)) {
        owner = wal__lineage_level(&lineage->view, rank).session;
        found = true;
    }
    if (found) {
        status = wal__core_get_branch(lineage->core, owner, &slot, error);
        if (status != WAL_OK) {
            return status;
        }
        place->branch = &slot->branch;
        place->stream = wal__branch_stream(&slot->branch, stream);
        found = place->stream != NULL &&
                wal__branch_find_sequence(place->stream, sequence, &place->ordinal);
    }
    return found ? WAL_OK
                 : wal__fail(error, WAL_ENOTFOUND,
                             "the entry with sequence number %" PRIu64 " is missing", sequence);
}

enum wal_status wal__core_find_sequence(struct wal__core *core, uint32_t number, uint32_t stream,
                                        uint64_t sequence, struct wal__entry_location *found,
                                        struct wal_error *error)
{
    struct lineage lineage;
    struct place place;
    enum wal_status status = begin(core, number, &lineage, error);

    if (status != WAL_OK) {
        return status;
    }
    status = find_place(&lineage, stream, sequence, &place, error);
    if (status == WAL_OK) {
        const struct wal__branch_entry *entry = &place.stream->entries[place.ordinal];

        WAL__ASSERT(entry->sequence == sequence);
        *found = (struct wal__entry_location){entry->position, sequence, place.branch->session,
                                              stream, place.ordinal};
    }
    wal__lineage_release(&lineage.view);
    return status;
}

bool wal__core_find_cached_sequence(struct wal__core *core, const struct wal__branch_slot *slot,
                                    uint32_t stream, uint64_t sequence,
                                    struct wal__entry_location *found)
{
    struct wal__lineage_view view;
    const struct wal__stream *own_stream;
    uint32_t ordinal;
    uint32_t rank;

    if (sequence <= slot->branch.fork_sequence) {
        if (!wal__core_cached_lineage(core, slot, &view) ||
            !wal__lineage_find_sequence(&view, sequence, &rank)) {
            return false;
        }
        slot = wal__core_cached_branch(core, wal__lineage_level(&view, rank).session);
    }
    if (slot == NULL || !slot->loaded) {
        return false;
    }
    own_stream = wal__branch_stream(&slot->branch, stream);
    if (own_stream == NULL || !wal__branch_find_sequence(own_stream, sequence, &ordinal)) {
        return false;
    }
    *found = (struct wal__entry_location){own_stream->entries[ordinal].position, sequence,
                                          slot->branch.session, stream, ordinal};
    return true;
}

/* Appends the part of the path that the place's owner has; *rest is the sequence where the path
 * continues in another session, or 0. */
static enum wal_status add_ranges(struct wal__core *core, const struct place *place,
                                  struct wal__buf *out, uint64_t *rest)
{
    struct wal__buf own_ranges;
    enum wal_status status;

    wal__buf_init(&own_ranges, core->env.heap);
    status = wal__branch_path(place->branch, place->stream, place->ordinal, &own_ranges, rest);
    for (size_t at = 0; at < own_ranges.size && status == WAL_OK;
         at += sizeof(struct wal__entry_range)) {
        struct wal__entry_range own_range;
        struct wal__path_range range;

        memcpy(&own_range, own_ranges.data + at, sizeof(own_range));
        range.session = place->branch->session;
        range.first = own_range.first;
        range.count = own_range.count;
        status = wal__buf_append(out, &range, sizeof(range));
    }
    wal__buf_deinit(&own_ranges);
    return status;
}

enum wal_status wal__core_find_path(struct wal__core *core, uint32_t number, uint32_t stream,
                                    uint64_t sequence, struct wal__buf *out,
                                    struct wal_error *error)
{
    struct lineage lineage;
    enum wal_status status = begin(core, number, &lineage, error);

    if (status != WAL_OK) {
        return status;
    }
    while (status == WAL_OK && sequence != 0) {
        uint64_t entry = sequence;
        struct place place;

        status = find_place(&lineage, stream, entry, &place, error);
        if (status == WAL_ENOTFOUND && out->size > 0) {
            status = WAL_OK; /* the parent was lost: the path starts here */
            break;
        }
        if (status == WAL_OK) {
            status = add_ranges(core, &place, out, &sequence);
            WAL__ASSERT(status != WAL_OK || sequence < entry);
        }
    }
    wal__lineage_release(&lineage.view);
    return status;
}

/* The parent of the place's run; adds the entries up to there to *count. */
static uint64_t step_over_run(const struct place *place, uint64_t *count)
{
    const struct wal__run *run = &place->stream->runs[place->stream->entries[place->ordinal].run];

    WAL__ASSERT(place->ordinal >= run->first);
    *count += place->ordinal - run->first + 1;
    return run->parent;
}

/* Whether the run of the place has the sequence, at or before the place. */
static bool run_has(const struct place *place, uint64_t sequence)
{
    const struct wal__run *run = &place->stream->runs[place->stream->entries[place->ordinal].run];
    uint32_t ordinal;

    return wal__branch_find_sequence(place->stream, sequence, &ordinal) && ordinal >= run->first &&
           ordinal <= place->ordinal;
}

enum wal_status wal__core_is_on_path(struct wal__core *core, uint32_t number, uint32_t stream,
                                     uint64_t from, uint64_t target, bool *on_path,
                                     struct wal_error *error)
{
    struct lineage lineage;
    uint64_t passed = 0;
    enum wal_status status = begin(core, number, &lineage, error);

    *on_path = false;
    if (status != WAL_OK) {
        return status;
    }
    /* Parents have lower sequences: below the target it is not found. */
    while (from >= target && from != 0 && !*on_path) {
        struct place place;

        status = find_place(&lineage, stream, from, &place, error);
        if (status != WAL_OK) {
            break;
        }
        *on_path = run_has(&place, target);
        from = step_over_run(&place, &passed);
    }
    wal__lineage_release(&lineage.view);
    /* Where a parent was lost, the path ends. */
    return status == WAL_ENOTFOUND && passed > 0 ? WAL_OK : status;
}

enum wal_status wal__core_entry_depth(struct wal__core *core, uint32_t number, uint32_t stream,
                                      uint64_t sequence, uint64_t *depth, struct wal_error *error)
{
    struct lineage lineage;
    uint64_t count = 0;
    enum wal_status status = begin(core, number, &lineage, error);

    if (status != WAL_OK) {
        return status;
    }
    while (sequence != 0) {
        struct place place;

        status = find_place(&lineage, stream, sequence, &place, error);
        if (status == WAL_OK && wal__branch_is_depth_exact(place.stream, place.ordinal)) {
            count += wal__branch_depth(place.stream, place.ordinal) + 1;
            break;
        }
        if (status != WAL_OK) {
            break;
        }
        sequence = step_over_run(&place, &count);
        stream = WAL__STREAM_BASE(stream);
    }
    wal__lineage_release(&lineage.view);
    if (status == WAL_ENOTFOUND && count > 0) {
        status = WAL_OK; /* a parent was lost: the path starts there */
    }
    if (status == WAL_OK) {
        *depth = count == 0 ? 0 : count - 1;
    }
    return status;
}
