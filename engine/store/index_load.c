/*
 * index_load.c - the indexes of the log as a whole (SPEC.md 3.6): writing them, on a clean close
 * also the index file of the tail and the catalogue's snapshot (SPEC.md 2.12, 2.13); loading them:
 * the catalogue's snapshot, overlaid by the index of each later segment, then the tail segment. A
 * segment without an index is read once and given one.
 *
 * State lock for writing.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/store/copy_state.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

enum {
    SNAPSHOT_MIN = 1024 * 1024,
    /* Closing does not wait longer for the catalogue: without it, the next opening merges more
     * indexes. */
    CLOSE_NS = 500 * 1000 * 1000
};

static enum wal_status summary_source(void *ctx, uint32_t number, struct wal__summary *summary)
{
    struct wal__core *core = ctx;

    return wal__catalogue_get(&core->catalogue, number, summary);
}

enum wal_status wal__core_encode_tail_index(void *ctx, struct wal__index_header *header,
                                            struct wal__buf *out)
{
    struct wal__core *core = ctx;
    enum wal_status status;
    uint8_t *at;
    uint64_t bound = wal__tail_index_size_bound(&core->tail_index, 0, 0, core->tail_text_max);

    header->last_session = core->catalogue.last_session;
    /* Allocated once and moved in place: an index has megabytes, and memory that is freed may stay
     * with the process. */
    out->size = 0;
    status = wal__buf_reserve(out, bound + WAL__FRAME_SIZE, &at);
    if (status == WAL_OK) {
        status = wal__tail_index_encode(&core->tail_index, header, summary_source, core, out);
    }
    if (status == WAL_OK) {
        status = wal__buf_reserve(out, WAL__FRAME_SIZE, &at);
    }
    if (status != WAL_OK) {
        out->size = 0;
        return status;
    }
    memmove(out->data + WAL__FRAME_SIZE, out->data, out->size);
    memset(out->data, 0, WAL__FRAME_SIZE);
    out->size += WAL__FRAME_SIZE;
    WAL__ASSERT(out->size <= out->capacity);
    return WAL_OK;
}

/* Writes the catalogue up to the log's end when it has grown enough. */
static void write_catalogue(struct wal__core *core)
{
    const struct wal__io *io = core->env.io;
    const struct wal__log *log = &core->log;
    struct wal__catalogue_header header = {0};
    uint64_t growth = wal__core_log_growth(core);

    if (growth < SNAPSHOT_MIN || growth < 2 * wal__core_snapshot_size(core)) {
        return;
    }
    header.position = atomic_load(&log->end);
    header.last_sequence = log->last_sequence;
    header.chain = log->chain;
    header.generation = wal__log_generation(log);
    memcpy(header.uuid, log->uuid, sizeof(header.uuid));
    /* Derived: without it the next opening takes longer. */
    (void)!wal__core_write_catalogue(core, &core->catalogue, &header,
                                     io->monotonic_ns(io->ctx) + CLOSE_NS);
}

enum wal_status wal__core_write_indexes(struct wal__core *core, struct wal_error *error)
{
    if (!wal__index_file_can_write_tail(&core->log)) {
        return WAL_OK;
    }
    write_catalogue(core);
    return wal__index_file_write_tail(&core->log, error);
}

void wal__core_unload_indexes(struct wal__core *core)
{
    wal__core_evict_branches(core);
    wal__core_drop_fold(core);
    wal__catalogue_deinit(&core->catalogue);
    wal__index_set_deinit(&core->indexes);
    wal__tail_index_deinit(&core->tail_index);
    wal__index_slot_deinit(&core->env, &core->tail_base);
    core->tail_text_max = 0;
    core->snapshot_position = 0;
    core->snapshot_sequence = 0;
    core->known_position = 0;
}

static void init_indexes(struct wal__core *core)
{
    wal__catalogue_init(&core->catalogue, core->env.heap);
    wal__index_set_init(&core->indexes, &core->env, &core->log);
    wal__tail_index_init(&core->tail_index, core->env.heap);
}

/* Whether every unsealed segment before the tail has a file in index/: the snapshot alone does not
 * locate a session's records. And whether the segment `covered`, at whose records the snapshot
 * ends, has an index: one that is made by applying them again to the snapshot would be wrong. */
static bool indexes_complete(struct wal__core *core, uint32_t count, uint64_t covered)
{
    for (uint32_t i = 0; i < count; i++) {
        struct wal__segment *segment = wal__log_segment_at(&core->log, i);
        const struct wal__index *index;

        if ((!segment->sealed || segment->id == covered) &&
            wal__index_set_get(&core->indexes, segment->id, &index) != WAL_OK) {
            return false;
        }
    }
    return true;
}

/* Context of the scan of index/. */
struct index_names {
    struct wal__core *core;
    uint64_t newest;  /* id of the newest live segment */
    uint64_t missing; /* newer id that a valid file names; 0: none */
    bool has_partial; /* a catalogue that a killed process did not complete */
};

static enum wal_status check_index_name(void *arg, const char *name)
{
    struct index_names *index_names = arg;
    struct wal__core *core = index_names->core;
    struct wal__index_slot slot;
    char *end = NULL;
    uint64_t id;

    WAL__ASSERT(index_names->missing == 0 || index_names->missing > index_names->newest);
    if (strcmp(name, "catalogue.new") == 0) {
        index_names->has_partial = true;
    }
    if (strlen(name) != 20 || strcmp(name + 16, ".idx") != 0) {
        return WAL_OK;
    }
    id = strtoull(name, &end, 16);
    if (end != name + 16 || id <= index_names->newest) {
        return WAL_OK;
    }
    if (wal__index_slot_open(&core->env, id, core->log.uuid, &slot) == WAL_OK) {
        index_names->missing = id;
        wal__index_slot_deinit(&core->env, &slot);
    }
    return WAL_OK;
}

/* Whether the segment was created after the log was listed: possible only when LOCK could not be
 * opened. */
static bool created_since_list(const struct wal__core *core, uint64_t id)
{
    struct wal__segment *segment = NULL;
    bool created = core->control.file == NULL &&
                   wal__segment_open(&core->env, core->log.directory, id, core->log.uuid,
                                     core->log.class, &segment, NULL) == WAL_OK &&
                   segment->has_open;

    wal__segment_close(segment);
    return created;
}

/* Files in index/ cover durable records only: one that names a segment which does not exist proves
 * that acknowledged data was lost. */
static enum wal_status check_index_names(struct wal__core *core, uint64_t snapshot_position,
                                         struct wal_error *error)
{
    const struct wal__io *io = core->env.io;
    struct index_names index_names = {.core = core};
    char path[WAL__PATH_MAX];
    enum wal_status status;
    int err = 0;

    if (!core->control.is_first_opener) {
        return WAL_OK; /* other processes may have rotated since */
    }
    index_names.newest = core->log.tail_segment == NULL ? 0 : core->log.tail_segment->id;
    if (wal__position_segment(snapshot_position) > index_names.newest) {
        index_names.missing = wal__position_segment(snapshot_position);
    }
    wal__core_catalogue_path(core, path);
    *strrchr(path, '/') = '\0';
    status = io->list(io->ctx, path, check_index_name, &index_names, &err);
    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        return wal__fail_at(error, status, err, path, 0, "cannot list the directory");
    }
    if (index_names.has_partial && !core->env.read_only) {
        wal__core_remove_partial_catalogue(core);
    }
    if (index_names.missing != 0 && !created_since_list(core, index_names.missing)) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, path, 0,
                            "segment %016" PRIx64
                            ", which an index names, is missing or was zeroed",
                            index_names.missing);
    }
    return WAL_OK;
}

/* Whether another process has ended the tail since the chain was listed: a snapshot of its records
 * may be of all segments up to it. */
static bool tail_has_ended(const struct wal__core *core)
{
    return !core->control.is_first_opener &&
           wal__log_newest_id(&core->log) != core->log.tail_segment->id;
}

/* Whether the snapshot belongs to this segment chain. Its positions are stale when segments were
 * rewritten since. */
static bool is_of_chain(struct wal__core *core, const struct wal__snapshot *snapshot,
                        uint32_t count)
{
    uint64_t id = wal__position_segment(snapshot->header.position);

    return wal__log_segment(&core->log, id) != NULL &&
           snapshot->header.generation == wal__log_generation(&core->log) &&
           !(id == core->log.tail_segment->id && tail_has_ended(core)) &&
           indexes_complete(core, count, id);
}

/* Uses the catalogue's snapshot when it is valid and belongs to this segment chain. */
static enum wal_status load_snapshot(struct wal__core *core, uint32_t count,
                                     struct wal_error *error)
{
    struct wal__snapshot *snapshot = NULL;
    uint64_t old_position = 0;
    enum wal_status status = core->rebuild_from_log
                                 ? WAL_ENOTFOUND
                                 : wal__core_open_snapshot(core, &snapshot, &old_position);

    WAL__ASSERT(core->catalogue.snapshot == NULL && core->snapshot_position == 0);
    if (status == WAL_ENOMEM) {
        return status;
    }
    if (status != WAL_OK) {
        core->known_position = old_position;
        return check_index_names(core, old_position, error);
    }
    status = check_index_names(core, snapshot->header.position, error);
    if (status != WAL_OK || !is_of_chain(core, snapshot, count)) {
        wal__snapshot_release(snapshot);
        return status;
    }
    core->snapshot_position = snapshot->header.position;
    core->known_position = snapshot->header.position;
    core->snapshot_sequence = snapshot->header.last_sequence;
    wal__catalogue_attach(&core->catalogue, snapshot);
    return WAL_OK;
}

/* A SESSION record before this segment may be in one that was rewritten since, or that was when the
 * index was written and no longer is, after a power loss: only the catalogue has its position. */
static enum wal_status use_present_position(struct wal__core *core, uint64_t segment,
                                            struct wal__summary *summary)
{
    struct wal__summary present;
    enum wal_status status;

    if (wal__position_segment(summary->session_position) == segment) {
        return WAL_OK;
    }
    status = wal__catalogue_get(&core->catalogue, summary->number, &present);
    if (status == WAL_OK) {
        summary->session_position = present.session_position;
    } else if (wal__log_generation(&core->log) > 0) {
        summary->session_position = 0; /* it is deleted, and no one reads it */
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Merges a session of a segment index into the catalogue. `ended` is the segment's id, or 0 for the
 * tail. */
static enum wal_status merge_summary(struct wal__core *core, uint64_t ended,
                                     struct wal__summary *summary)
{
    struct wal__summary present;
    enum wal_status status =
        use_present_position(core, ended != 0 ? ended : core->log.tail_segment->id, summary);

    if (status != WAL_OK) {
        return status;
    }
    if (ended != 0) {
        summary->segment = ended;
    }
    if (summary->last_sequence > core->snapshot_sequence) {
        return wal__catalogue_put_indexed(&core->catalogue, summary);
    }
    if (ended != 0) {
        /* The segment ended after the snapshot was taken. */
        status = wal__catalogue_set_segment(&core->catalogue, summary->number, ended);
        /* Deleted, and omitted from the snapshot. */
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    status = wal__catalogue_get(&core->catalogue, summary->number, &present);
    /* The index of the tail will have it when the tail ends. */
    return status == WAL_ENOTFOUND ? wal__catalogue_put_indexed(&core->catalogue, summary) : status;
}

/* Whether the snapshot was taken when this segment had ended: its summaries name the segment
 * then. */
static bool is_covered(const struct wal__core *core, const struct wal__index *index, uint64_t ended)
{
    struct wal__summary summary;
    struct wal__summary present;

    if (ended == 0 ||
        core->snapshot_position !=
            wal__position(ended, wal__segment_original_end(wal__log_segment(&core->log, ended)))) {
        return false;
    }
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return false;
        }
        if (wal__catalogue_get(&core->catalogue, summary.number, &present) == WAL_OK) {
            return present.segment == ended;
        }
    }
    return true; /* all were deleted */
}

/* Merges the sessions of a segment index into the catalogue. `ended` as above. */
static enum wal_status merge_index(struct wal__core *core, const struct wal__index *index,
                                   uint64_t ended)
{
    uint32_t count = is_covered(core, index, ended) ? 0 : index->header.session_count;

    for (uint32_t i = 0; i < count; i++) {
        struct wal__summary summary;
        enum wal_status status;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        status = merge_summary(core, ended, &summary);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (index->header.last_session > core->catalogue.last_session) {
        core->catalogue.last_session = index->header.last_session;
    }
    return WAL_OK;
}

enum wal_status wal__core_restore_summary(struct wal__core *core, uint32_t number, uint64_t segment)
{
    for (uint32_t i = wal__log_segment_count(&core->log); i > 0; i--) {
        uint64_t id = wal__log_segment_at(&core->log, i - 1)->id;
        const struct wal__index *index;
        struct wal__summary summary;
        enum wal_status status;

        if (id >= segment) {
            continue;
        }
        status = wal__index_set_get(&core->indexes, id, &index);
        if (status == WAL_ENOMEM || status == WAL_EIO) {
            return status;
        }
        if (status != WAL_OK) {
            return WAL_ECORRUPT;
        }
        if (wal__index_find(index, number, &summary) == WAL__FMT_OK) {
            summary.segment = id;
            summary.flags |= WAL__SUMMARY_DELETED;
            return wal__catalogue_put(&core->catalogue, &summary);
        }
    }
    return WAL_ENOTFOUND;
}

static enum wal_status load_segment(struct wal__core *core, struct wal__segment *segment,
                                    struct wal_error *error)
{
    const struct wal__index *index;
    enum wal_status status;

    if (wal__position_segment(core->snapshot_position) > segment->id) {
        return WAL_OK;
    }
    status = wal__index_set_get(&core->indexes, segment->id, &index);
    if (status == WAL_ENOTFOUND) {
        /* Its records are applied as those of a tail segment are. */
        return wal__log_rebuild_index(&core->log, segment, error);
    }
    if (status == WAL_OK) {
        status = merge_index(core, index, segment->id);
    }
    if (status != WAL_OK) {
        return wal__fail_at(error, status, 0, segment->path, 0,
                            "cannot read the index of the segment");
    }
    return WAL_OK;
}

/* Loads the tail index from its file, which stays mapped until the segment ends. */
static enum wal_status use_tail_index(struct wal__core *core, const struct wal__index_slot *slot)
{
    const struct wal__index *index = &slot->index;

    WAL__ASSERT(core->tail_base.id == 0 && core->tail_text_max == 0);
    WAL__ASSERT(slot->id == core->log.tail_segment->id);
    core->tail_base = *slot;
    for (uint32_t i = 0; i < index->header.session_count; i++) {
        struct wal__summary summary;

        if (wal__index_summary(index, i, &summary) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        core->tail_text_max += wal__summary_text_size(&summary) + WAL__SUMMARY_GROWTH_MAX;
    }
    return merge_index(core, index, 0);
}

/* A sealed tail is not scanned: its last COMMIT names the durable end of the blob stream. */
static enum wal_status read_pack_end(struct wal__core *core)
{
    struct wal__segment *tail = core->log.tail_segment;
    const struct wal__index *index;
    struct wal__commit_record commit;
    struct wal__frame frame;
    enum wal_status status;

    if (tail == NULL || !tail->sealed) {
        return WAL_OK;
    }
    status = wal__index_set_get(&core->indexes, tail->id, &index);
    if (status == WAL_OK) {
        status = wal__log_read_commit(
            &core->log, wal__position(tail->id, index->header.commit_offset), &frame, &commit);
    }
    if (status == WAL_OK) {
        wal__log_raise_pack_durable(&core->log, commit.pack_durable);
    }
    /* Readers report damage there. */
    return status == WAL_ENOMEM ? status : WAL_OK;
}

/* Returns the sequence number up to which the store was copied from another, by a backup or by
 * parts: what is copied is durable there. 0: it is no copy. */
static uint64_t find_copied(const struct wal__core *core)
{
    struct wal__backup_state state;

    if (core->env.is_replica) {
        return UINT64_MAX;
    }
    if (!core->env.read_only || !core->control.is_first_opener) {
        return 0;
    }
    wal__backup_state_read(&core->env, core->manifest.uuid, &state);
    return state.streams[WAL__LOG_ID_LOG].after;
}

/* Loads the index file of the tail; the records that it covers need no scan. */
static enum wal_status load_tail(struct wal__core *core, struct wal__tail_state *state)
{
    struct wal__segment *tail = core->log.tail_segment;
    const struct wal__index_header *header;
    struct wal__index_slot slot;
    enum wal_status status;

    memset(state, 0, sizeof(*state));
    if (tail == NULL) {
        return WAL_OK;
    }
    state->copied = find_copied(core);
    if (wal__position_segment(core->known_position) == tail->id) {
        state->known_end = wal__position_offset(core->known_position);
    }
    if (tail->sealed || (!core->control.is_first_opener &&
                         atomic_load(&core->log.shared->indexed_tail_id) != tail->id)) {
        return WAL_OK;
    }
    status = wal__index_slot_open(&core->env, tail->id, core->log.uuid, &slot);
    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND ? WAL_OK : status;
    }
    header = &slot.index.header;
    if (!wal__index_matches_tail(&core->log, header, &state->pack_durable)) {
        wal__index_slot_deinit(&core->env, &slot);
        return WAL_OK;
    }
    if (!wal__index_slot_is_current(&slot)) {
        state->known_end = header->end;
        wal__index_slot_deinit(&core->env, &slot);
        return WAL_OK;
    }
    if (wal__tail_index_attach_base(&core->tail_index, &slot.index) != WAL_OK) {
        wal__index_slot_deinit(&core->env, &slot);
        return WAL_OK;
    }
    state->end = header->end;
    state->known_end = header->end;
    state->commit_offset = header->commit_offset;
    state->last_sequence = header->last_sequence;
    state->epoch = header->epoch;
    state->chain = header->chain;
    return use_tail_index(core, &slot);
}

/* Of the compacting process: writes the catalogue of the segments before the one with this rank
 * once they are all before the tail, and before that each time that the sessions in memory take
 * much of it. */
static void fold_loaded(struct wal__core *core, uint32_t rank, uint32_t before)
{
    const struct wal__segment *next =
        rank < wal__log_segment_count(&core->log) ? wal__log_segment_at(&core->log, rank) : NULL;

    if (core->writes_catalogue && next != NULL && next->has_open &&
        (rank == before || wal__catalogue_overlay_size(&core->catalogue) > core->fold.loaded_max)) {
        wal__core_fold_base(core, next);
    }
}

static enum wal_status load(struct wal__core *core, struct wal_error *error)
{
    struct wal__tail_state state;
    enum wal_status status;
    uint32_t count = wal__log_segment_count(&core->log);
    uint32_t before;

    wal__core_unload_indexes(core);
    WAL__ASSERT(core->catalogue.snapshot == NULL && core->tail_text_max == 0);
    init_indexes(core);
    core->generation++;
    atomic_fetch_add(&core->redaction_generation, 1);
    before = count > 0 && !core->log.tail_segment->sealed ? count - 1 : count;
    core->catalogue_inode = wal__core_catalogue_inode(core);
    status = load_snapshot(core, before, error);
    if (status != WAL_OK) {
        return status;
    }
    for (uint32_t i = 0; i < before; i++) {
        status = load_segment(core, wal__log_segment_at(&core->log, i), error);
        if (status != WAL_OK) {
            return status;
        }
        fold_loaded(core, i + 1, before);
    }
    status = read_pack_end(core);
    if (status != WAL_OK) {
        return status;
    }
    status = load_tail(core, &state);
    if (status != WAL_OK) {
        return status;
    }
    return wal__log_recover(&core->log, &state, core->strict, error);
}

static enum wal_status load_or_rebuild(struct wal__core *core, struct wal_error *error)
{
    enum wal_status status;

    core->is_incomplete = true;
    status = load(core, error);
    if (status == WAL_ECORRUPT && core->catalogue.snapshot != NULL) {
        /* Pages of the snapshot are verified on first use: retry without it. */
        core->rebuild_from_log = true;
        status = load(core, error);
    }
    core->is_incomplete = status != WAL_OK;
    return status;
}

/* Whether no other process has the store open: none compacts. */
static bool is_alone(const struct wal__core *core)
{
    return core->control.is_first_opener && !core->env.read_only;
}

/* Whether the load failed because a compaction replaced a segment meanwhile: counts, and has it
 * repeated. */
static bool is_overtaken(struct wal__core *core, enum wal_status status, uint32_t *retries)
{
    if (status == WAL_OK || is_alone(core) || !wal__log_find_replaced(&core->log) ||
        *retries == WAL__LOADS_MAX) {
        return false;
    }
    (*retries)++;
    return true;
}

uint64_t wal__core_catalogue_inode(const struct wal__core *core)
{
    const struct wal__io *io = core->env.io;
    struct wal__io_stat stat;
    char path[WAL__PATH_MAX];
    int ignored = 0;

    if (!core->env.read_only) {
        return 0;
    }
    wal__core_catalogue_path(core, path);
    return io->path_stat(io->ctx, path, &stat, &ignored) == WAL_OK ? stat.inode : 0;
}

enum wal_status wal__core_load_indexes(struct wal__core *core, struct wal_error *error)
{
    bool is_open = core->generation != 0;
    enum wal_status status = load_or_rebuild(core, error);
    uint32_t retries = 0;

    if (!is_open) {
        core->open_scan_facts = core->log.facts;
        core->open_scan_segment = core->log.facts_segment_id;
    }
    while ((status == WAL_OK && core->log.needs_reload) || is_overtaken(core, status, &retries)) {
        status = WAL_OK;
        /* Recovery, or another process, healed the log during the load, or a compaction replaced
         * segments. */
        core->log.needs_reload = false;
        if (!is_alone(core)) {
            status = wal__log_refresh_segments(&core->log, error);
        }
        if (status == WAL_OK) {
            status = load_or_rebuild(core, error);
        }
    }
    return status == WAL_ENOMEM ? wal__no_memory(error) : status;
}
