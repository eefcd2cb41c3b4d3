/*
 * lineage.c - lookups in a session and the sessions it descends from (SPEC.md
 * 5.3). A fork names the session that owns its fork point; records appended
 * there after the fork are not seen.
 *
 * Invariant: an entry's parent has a lower sequence number, so every walk ends.
 * State lock for writing unless core.h says otherwise.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"

/* One session on the path to the root of the lineage. */
struct step {
    const struct wal__branch_slot *slot;
    uint32_t number;
    uint64_t limit; /* sequences above it are not seen */
};

/* Starts at the session itself. */
static enum wal_status begin(struct wal__core *core, uint32_t number,
                             struct step *step, struct wal_error *error)
{
    struct wal__branch_slot *slot;
    enum wal_status status = wal__core_get_branch(core, number, &slot, error);

    if (status == WAL_OK) {
        *step = (struct step){slot, number, UINT64_MAX};
    }
    return status;
}

/* Steps to the owner of the fork point; WAL_END at a session that is not a
 * fork, or a fork of nothing. */
static enum wal_status ascend(struct wal__core *core, struct step *step,
                              struct wal_error *error)
{
    uint64_t fork = step->slot->branch.fork_sequence;
    struct wal__branch_slot *slot;
    struct wal__summary summary;
    enum wal_status status;

    if (fork == 0) {
        return WAL_END;
    }
    status = wal__catalogue_get(&core->catalogue, step->number, &summary);
    if (status != WAL_OK || summary.fork_owner == step->number ||
        summary.fork_owner == 0) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the lineage of session %" PRIu32 " is broken",
                         step->number);
    }
    if (fork < step->limit) {
        step->limit = fork;
    }
    status = wal__core_get_branch(core, summary.fork_owner, &slot, error);
    if (status != WAL_OK) {
        return status;
    }
    WAL__ASSERT(slot->loaded && slot->branch.session == summary.fork_owner);
    step->number = summary.fork_owner;
    step->slot = slot;
    return WAL_OK;
}

/* Sets *same when the entry has this id. Equal ids need no payload checksum; if
 * they differ, the record is verified, since its bytes may be damaged. */
static enum wal_status check_id(struct wal__core *core, uint64_t position,
                                struct wal__span id, bool *same,
                                struct wal_error *error)
{
    struct wal__span found = {NULL, 0};
    struct wal__span payload;
    struct wal__frame frame;
    struct wal__buf scratch;
    enum wal_status status;

    wal__buf_init(&scratch, core->env.heap);
    status = wal__log_peek(&core->log, position, WAL__ENTRY_ID_END, &scratch,
                           &frame, &payload, error);
    if (status == WAL_OK) {
        *same = wal__entry_record_id(payload, &found) &&
                found.size == id.size &&
                memcmp(found.data, id.data, id.size) == 0;
        if (!*same) {
            status = wal__log_read(&core->log, position, &scratch, &frame,
                                   &payload, error);
        }
    }
    wal__buf_deinit(&scratch);
    return status;
}

enum {
    /* Bytes to prefetch of a record that was found: most are not larger. */
    READ_AHEAD = 1024,
    /* Of its parent: header and id. */
    READ_PARENT = 128
};

static enum wal_status find_in_session(struct wal__core *core,
                                       const struct step *step,
                                       struct wal__span id, uint64_t hash,
                                       struct wal__entry_location *found,
                                       struct wal_error *error)
{
    const struct wal__branch *branch = &step->slot->branch;
    struct wal__branch_hit hit;
    uint32_t cursor = 0;

    while (wal__branch_find_id(branch, hash, &cursor, &hit)) {
        const struct wal__branch_entry *entry =
            &hit.stream->entries[hit.ordinal];
        enum wal_status status;
        bool same = false;

        WAL__ASSERT(hit.ordinal < hit.stream->entry_count);
        wal__log_prefetch(&core->log, hit.position, READ_AHEAD);
        if (entry->sequence > step->limit) {
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
            *found = (struct wal__entry_location){
                hit.position, entry->sequence, step->number, hit.stream->number,
                hit.ordinal};
            return WAL_OK;
        }
    }
    return WAL_ENOTFOUND;
}

enum wal_status wal__core_find_own_id(struct wal__core *core,
                                      const struct wal__branch_slot *slot,
                                      struct wal__span id,
                                      struct wal__entry_location *found,
                                      struct wal_error *error)
{
    const struct step step = {slot, slot->branch.session, UINT64_MAX};

    return find_in_session(core, &step, id, wal__id_hash(id.data, id.size),
                           found, error);
}

enum wal_status wal__core_read_id(struct wal__core *core, uint64_t position,
                                  uint64_t sequence, struct wal__buf *scratch,
                                  struct wal__span *id)
{
    struct wal__frame frame;
    struct wal__span payload;
    struct wal__span found;
    enum wal_status status =
        wal__log_peek(&core->log, position, WAL__ENTRY_ID_END, scratch, &frame,
                      &payload, NULL);

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

enum wal_status wal__core_find_id(struct wal__core *core, uint32_t number,
                                  struct wal__span id,
                                  struct wal__entry_location *found,
                                  struct wal_error *error)
{
    uint64_t hash = wal__id_hash(id.data, id.size);
    struct step step;
    enum wal_status status = begin(core, number, &step, error);

    while (status == WAL_OK) {
        status = find_in_session(core, &step, id, hash, found, error);
        if (status != WAL_ENOTFOUND) {
            return status;
        }
        status = ascend(core, &step, error);
    }
    if (status == WAL_END) {
        return wal__fail(
            error, WAL_ENOTFOUND, "the session has no entry \"%.*s\"",
            (int)(id.size < 255 ? id.size : 255), (const char *)id.data);
    }
    return status;
}

/* Steps to the session in the lineage that owns the sequence number. */
static enum wal_status find_owner(struct wal__core *core, struct step *step,
                                  uint32_t stream, uint64_t sequence,
                                  uint32_t *ordinal, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK) {
        const struct wal__stream *own_stream =
            wal__branch_stream(&step->slot->branch, stream);

        if (own_stream != NULL && sequence <= step->limit &&
            wal__branch_find_sequence(own_stream, sequence, ordinal)) {
            return WAL_OK;
        }
        status = ascend(core, step, error);
    }
    if (status == WAL_END) {
        return wal__fail(
            error, WAL_ENOTFOUND,
            "the entry with sequence number %" PRIu64 " is missing", sequence);
    }
    return status;
}

enum wal_status wal__core_find_sequence(struct wal__core *core, uint32_t number,
                                        uint32_t stream, uint64_t sequence,
                                        struct wal__entry_location *found,
                                        struct wal_error *error)
{
    const struct wal__stream *own_stream;
    struct step step;
    uint32_t ordinal = 0;
    enum wal_status status = begin(core, number, &step, error);

    if (status != WAL_OK) {
        return status;
    }
    status = find_owner(core, &step, stream, sequence, &ordinal, error);
    if (status != WAL_OK) {
        return status;
    }
    own_stream = wal__branch_stream(&step.slot->branch, stream);
    WAL__ASSERT(ordinal < own_stream->entry_count);
    WAL__ASSERT(own_stream->entries[ordinal].sequence == sequence);
    found->position = own_stream->entries[ordinal].position;
    found->sequence = sequence;
    found->session = step.number;
    found->stream = stream;
    found->ordinal = ordinal;
    return WAL_OK;
}

/* Appends the part of the path that this session owns; *rest is the sequence
 * where the path continues in another session, or 0. */
static enum wal_status add_ranges(struct wal__core *core,
                                  const struct step *step, uint32_t stream,
                                  uint32_t ordinal, struct wal__buf *out,
                                  uint64_t *rest)
{
    const struct wal__stream *own_stream =
        wal__branch_stream(&step->slot->branch, stream);
    struct wal__buf own_ranges;
    enum wal_status status;

    WAL__ASSERT(ordinal < own_stream->entry_count);
    wal__buf_init(&own_ranges, core->env.heap);
    status = wal__branch_path(&step->slot->branch, own_stream, ordinal,
                              &own_ranges, rest);
    for (size_t at = 0; at < own_ranges.size && status == WAL_OK;
         at += sizeof(struct wal__entry_range)) {
        struct wal__entry_range own_range;
        struct wal__path_range range;

        memcpy(&own_range, own_ranges.data + at, sizeof(own_range));
        range.session = step->number;
        range.first = own_range.first;
        range.count = own_range.count;
        status = wal__buf_append(out, &range, sizeof(range));
    }
    wal__buf_deinit(&own_ranges);
    return status;
}

enum wal_status wal__core_find_path(struct wal__core *core, uint32_t number,
                                    uint32_t stream, uint64_t sequence,
                                    struct wal__buf *out,
                                    struct wal_error *error)
{
    struct step step;
    uint32_t ordinal = 0;
    enum wal_status status = begin(core, number, &step, error);

    while (status == WAL_OK && sequence != 0) {
        uint64_t entry = sequence;

        status = find_owner(core, &step, stream, entry, &ordinal, error);
        if (status == WAL_ENOTFOUND && out->size > 0) {
            return WAL_OK; /* the parent was lost: the path starts here */
        }
        if (status == WAL_OK) {
            status = add_ranges(core, &step, stream, ordinal, out, &sequence);
            WAL__ASSERT(status != WAL_OK || sequence < entry);
        }
    }
    return status;
}

enum wal_status wal__core_is_on_path(struct wal__core *core, uint32_t number,
                                     uint32_t stream, uint64_t from,
                                     uint64_t target, bool *on_path,
                                     struct wal_error *error)
{
    struct wal__buf ranges;
    enum wal_status status;

    wal__buf_init(&ranges, core->env.heap);
    status = wal__core_find_path(core, number, stream, from, &ranges, error);
    WAL__ASSERT(ranges.size % sizeof(struct wal__path_range) == 0);
    *on_path = false;
    for (size_t at = 0; at < ranges.size && status == WAL_OK && !*on_path;
         at += sizeof(struct wal__path_range)) {
        const struct wal__stream *own_stream;
        struct wal__branch_slot *slot;
        struct wal__path_range range;
        uint32_t ordinal;

        memcpy(&range, ranges.data + at, sizeof(range));
        status = wal__core_get_branch(core, range.session, &slot, error);
        own_stream =
            status == WAL_OK ? wal__branch_stream(&slot->branch, stream) : NULL;
        *on_path = own_stream != NULL &&
                   wal__branch_find_sequence(own_stream, target, &ordinal) &&
                   ordinal >= range.first &&
                   ordinal - range.first < range.count;
    }
    wal__buf_deinit(&ranges);
    return status;
}

enum wal_status wal__core_entry_depth(struct wal__core *core, uint32_t number,
                                      uint32_t stream, uint64_t sequence,
                                      uint64_t *depth, struct wal_error *error)
{
    const struct wal__stream *own_stream;
    struct wal__branch_slot *slot;
    struct wal__buf ranges;
    uint32_t ordinal;
    enum wal_status status = wal__core_get_branch(core, number, &slot, error);

    if (status != WAL_OK) {
        return status;
    }
    own_stream = wal__branch_stream(&slot->branch, stream);
    if (own_stream != NULL &&
        wal__branch_find_sequence(own_stream, sequence, &ordinal) &&
        wal__branch_is_depth_exact(own_stream, ordinal)) {
        *depth = wal__branch_depth(own_stream, ordinal);
        return WAL_OK;
    }
    wal__buf_init(&ranges, core->env.heap);
    status =
        wal__core_find_path(core, number, stream, sequence, &ranges, error);
    if (status == WAL_OK) {
        uint64_t count = 0;

        for (size_t at = 0; at < ranges.size;
             at += sizeof(struct wal__path_range)) {
            struct wal__path_range range;

            memcpy(&range, ranges.data + at, sizeof(range));
            count += range.count;
        }
        *depth = count == 0 ? 0 : count - 1;
    }
    wal__buf_deinit(&ranges);
    return status;
}
