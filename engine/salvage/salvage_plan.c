/*
 * salvage_plan.c - the first pass over the log: the newest texts of every
 * session, which sessions are deleted, and which records are lost.
 *
 * Indexes add what the log lost: sessions whose SESSION record or tombstone is
 * lost, and the parents of lost records.
 */
#include <stdlib.h>
#include <string.h>

#include "engine/salvage/salvage.h"
#include "format/bytes/crc32.h"
#include "format/segment/block.h"

static const char rewind_key[] = "\0rewind";

/* --- sessions ------------------------------------------------------------- */

struct wal__salvage_session *
wal__salvage_find_session(const struct wal__salvage *salvage, uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&salvage->session_map, wal__salvage_hash(number),
                             &cursor, &rank)) {
        if (salvage->sessions[rank]->number == number) {
            return salvage->sessions[rank];
        }
    }
    return NULL;
}

struct wal__salvage_session *
wal__salvage_get_session(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session =
        wal__salvage_find_session(salvage, number);

    if (session != NULL ||
        !wal__salvage_grow(salvage, (void **)&salvage->sessions,
                           salvage->session_count, &salvage->session_capacity,
                           sizeof(struct wal__salvage_session *))) {
        return session;
    }
    session = wal__heap_zalloc(salvage->heap, sizeof(*session));
    if (session == NULL ||
        wal__hashmap_add(&salvage->session_map, wal__salvage_hash(number),
                         salvage->session_count) != WAL_OK) {
        wal__heap_free(salvage->heap, session);
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return NULL;
    }
    session->number = number;
    salvage->sessions[salvage->session_count++] = session;
    return session;
}

/* Decodes a SESSION payload in the layout of the segment's format version. */
static bool decode_session(const struct wal__damaged_segment *segment,
                           struct wal__span payload,
                           struct wal__session_record *record)
{
    uint32_t version = segment->header.version;

    /* The version is lost with the header; a payload decodes in one layout
     * only. */
    return wal__session_record_decode(payload, version, record) ==
               WAL__FMT_OK ||
           (segment->salt_found &&
            wal__session_record_decode(payload, version == 0 ? 1 : 0, record) ==
                WAL__FMT_OK);
}

/* Keeps a SESSION record, and its payload, which is of the heap. */
static void keep_record(const struct wal__salvage *salvage,
                        struct wal__salvage_session *session, uint8_t *payload,
                        const struct wal__session_record *record)
{
    wal__heap_free(salvage->heap, session->payload);
    session->payload = payload;
    session->record = *record;
    session->has_record = true;
}

bool wal__salvage_keep_session(struct wal__salvage *salvage,
                               const struct wal__damaged_segment *segment,
                               struct wal__salvage_session *session,
                               struct wal__span payload)
{
    uint8_t *copy = wal__heap_alloc(salvage->heap, payload.size);
    struct wal__session_record record;

    if (copy == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return false;
    }
    memcpy(copy, payload.data, payload.size);
    payload.data = copy;
    if (!decode_session(segment, payload, &record) ||
        (session->has_record &&
         !wal__span_equal(session->record.id, record.id))) {
        wal__heap_free(salvage->heap, copy);
        return false;
    }
    keep_record(salvage, session, copy, &record);
    session->from_index = false;
    return true;
}

/* Whether the record is a version of a session's rewind journal. */
static bool is_rewind(const struct wal__frame *frame)
{
    return (frame->type == WAL__FRAME_DOC ||
            frame->type == WAL__FRAME_DOC_DELETE) &&
           frame->id_hash == wal__id_hash(rewind_key, sizeof(rewind_key) - 1);
}

static enum wal_status plan_record(void *ctx,
                                   const struct wal__damaged_segment *segment,
                                   const struct wal__frame *frame,
                                   uint64_t offset, const uint8_t *bytes)
{
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__salvage *salvage = ctx;
    struct wal__salvage_session *session;
    struct wal__fork_record fork;

    (void)offset;
    if (wal__buf_append(&salvage->scanned, &frame->sequence,
                        sizeof(frame->sequence)) != WAL_OK) {
        return WAL_ENOMEM;
    }
    if (frame->session == 0) {
        return WAL_OK;
    }
    session = wal__salvage_get_session(salvage, frame->session);
    if (session == NULL || (frame->flags & WAL__FRAME_LZ4) != 0) {
        return salvage->failed;
    }
    if (frame->type == WAL__FRAME_SESSION) {
        (void)wal__salvage_keep_session(salvage, segment, session, payload);
    } else if (frame->type == WAL__FRAME_FORK &&
               wal__fork_record_decode(payload, &fork) == WAL__FMT_OK) {
        session->fork_source = fork.source;
    } else if (frame->type == WAL__FRAME_TOMBSTONE) {
        session->is_deleted = true;
    } else if (is_rewind(frame)) {
        session->rewind_sequence =
            frame->type == WAL__FRAME_DOC ? frame->sequence : 0;
    }
    return salvage->failed;
}

/* --- lost records --------------------------------------------------------- */

static enum wal_status plan_lost(void *ctx, const struct wal__frame *frame)
{
    struct wal__salvage *salvage = ctx;

    if (frame->session != 0) {
        (void)wal__salvage_get_session(salvage, frame->session);
    }
    wal__salvage_add_lost(salvage, frame->sequence, frame->parent, frame->type);
    return salvage->failed;
}

/* --- indexes -------------------------------------------------------------- */

/* Adds a session whose SESSION record is lost from its summary in an index. */
static void add_record(struct wal__salvage *salvage,
                       struct wal__salvage_session *session,
                       const struct wal__summary *summary)
{
    struct wal__session_record record = {
        .created_ms = summary->created_ms,
        .schema_version =
            summary->schema_version == 0 ? 1 : summary->schema_version,
        .flags = ((summary->flags & WAL__SUMMARY_FORK) != 0
                      ? (uint32_t)WAL__SESSION_RECORD_FORK
                      : 0) |
                 ((summary->flags & WAL__SUMMARY_TRASHED) != 0
                      ? (uint32_t)WAL__SESSION_RECORD_TRASHED
                      : 0) |
                 ((summary->flags & WAL__SUMMARY_MOVED) != 0
                      ? (uint32_t)WAL__SESSION_RECORD_MOVED
                      : 0),
        .id = summary->id,
        .cwd = summary->cwd,
        .project = summary->project,
        .title = summary->title,
        .parent_id = summary->parent_id,
        .source = summary->source,
    };
    size_t size = wal__session_record_size(&record);
    uint8_t *bytes = wal__heap_alloc(salvage->heap, size);

    if (bytes == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    wal__session_record_encode(&record, bytes);
    if (wal__session_record_decode((struct wal__span){bytes, size},
                                   WAL__FORMAT_VERSION,
                                   &record) != WAL__FMT_OK) {
        wal__heap_free(salvage->heap, bytes);
        return;
    }
    keep_record(salvage, session, bytes, &record);
    session->from_index = true;
}

static int compare_sequences(const void *a, const void *b)
{
    uint64_t x;
    uint64_t y;

    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return x < y ? -1 : x > y;
}

/* Whether the segment that was read last has a record. */
static bool was_scanned(const struct wal__salvage *salvage, uint64_t sequence)
{
    return salvage->scanned.size > 0 &&
           bsearch(&sequence, salvage->scanned.data,
                   salvage->scanned.size / sizeof(sequence), sizeof(sequence),
                   compare_sequences) != NULL;
}

/* Adds a lost record of a rewritten segment to the damage of its BLOCK. */
static void add_to_block(struct wal__salvage *salvage, uint64_t id,
                         const struct wal__posting *posting, uint32_t session)
{
    struct wal__damaged_store *damaged = &salvage->damaged;
    const struct wal__damaged_segment *segment =
        wal__damaged_find(&damaged->log, id);
    uint64_t at = wal__block_offset(posting->offset);

    if (segment == NULL || !wal__segment_is_rewritten(&segment->header)) {
        return;
    }
    for (uint32_t i = 0; i < damaged->damage_count; i++) {
        struct wal__damaged_range *range = &damaged->damages[i];

        if (strcmp(range->file, segment->name) != 0 || at < range->offset ||
            at - range->offset >= range->size) {
            continue;
        }
        if (range->first_sequence == 0 ||
            posting->sequence < range->first_sequence) {
            range->first_sequence = posting->sequence;
        }
        if (posting->sequence > range->last_sequence) {
            range->last_sequence = posting->sequence;
        }
        if (wal__damaged_add_session(damaged, range, session) != WAL_OK) {
            wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        }
    }
}

/* Adds the records of a summary that are lost. */
static void add_postings(struct wal__salvage *salvage,
                         const struct wal__index *index,
                         const struct wal__summary *summary)
{
    for (uint32_t i = 0; i < summary->posting_count; i++) {
        struct wal__posting posting;

        wal__index_posting(index, summary->first_posting + i, &posting);
        if (!was_scanned(salvage, posting.sequence)) {
            wal__salvage_add_lost(salvage, posting.sequence, posting.parent,
                                  posting.type);
            add_to_block(salvage, index->header.id, &posting, summary->number);
        }
    }
}

/* Adds the sessions of an index whose record or tombstone is lost, and if
 * `is_damaged`, records of the segment are lost, its records. */
static void add_from_index(struct wal__salvage *salvage,
                           const struct wal__index *index, bool is_damaged)
{
    struct wal__summary summary;

    for (uint32_t i = 0;
         i < index->header.session_count && salvage->failed == WAL_OK &&
         wal__index_summary(index, i, &summary) == WAL__FMT_OK;
         i++) {
        struct wal__salvage_session *session =
            wal__salvage_get_session(salvage, summary.number);

        if (session == NULL) {
            return;
        }
        session->is_deleted |= (summary.flags & WAL__SUMMARY_DELETED) != 0;
        if (!session->has_record) {
            add_record(salvage, session, &summary);
        }
        if (is_damaged) {
            add_postings(salvage, index, &summary);
        }
    }
}

static void plan_segment_indexes(struct wal__salvage *salvage,
                                 const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_file file;
    struct wal__index index;

    if (damaged->damage_count == 0) {
        return; /* the log has everything */
    }
    for (int i = 0; i < 2; i++) {
        struct wal__span bytes =
            i == 0
                ? wal__damaged_index_frame(damaged, segment, &file)
                : wal__damaged_index_file(damaged, false, segment->id, &file);

        /* That of a segment before it was rewritten has what was left out. */
        if (wal__damaged_decode_index(damaged, segment->id, bytes, &index) &&
            (!wal__segment_is_rewritten(&segment->header) ||
             index.header.end == segment->known_end)) {
            add_from_index(salvage, &index, segment->has_damage);
        }
        wal__damaged_file_close(&file);
    }
}

/* Adds the damage of a segment that only its index proves to have existed. */
static enum wal_status add_orphan(struct wal__salvage *salvage,
                                  const struct wal__index *index)
{
    struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_range *range;
    struct wal__summary summary;
    char name[WAL__DAMAGED_NAME_SIZE];

    wal__damaged_segment_name(false, index->header.id, name);
    range = wal__damaged_add_range(damaged, name, 0, index->header.end,
                                   "the segment is missing");
    if (range == NULL) {
        return WAL_ENOMEM;
    }
    range->first_sequence = index->header.first_sequence;
    range->last_sequence = index->header.last_sequence;
    for (uint32_t i = 0; i < index->header.session_count &&
                         wal__index_summary(index, i, &summary) == WAL__FMT_OK;
         i++) {
        enum wal_status status =
            wal__damaged_add_session(damaged, range, summary.number);

        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

/* An index above the tail whose segment is missing proves that records are
 * lost. */
static enum wal_status plan_orphan(void *ctx, uint64_t id)
{
    struct wal__salvage *salvage = ctx;
    struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_file file;
    struct wal__index index;
    enum wal_status status = WAL_OK;

    if (wal__damaged_find(&damaged->log, id) != NULL ||
        (damaged->log.tail != NULL && id < damaged->log.tail->id)) {
        return WAL_OK;
    }
    if (wal__damaged_decode_index(
            damaged, id, wal__damaged_index_file(damaged, false, id, &file),
            &index)) {
        status = add_orphan(salvage, &index);
        add_from_index(salvage, &index, true);
    }
    wal__damaged_file_close(&file);
    return status == WAL_OK ? salvage->failed : status;
}

/* --- the pass ------------------------------------------------------------- */

/* Sessions that are not deleted are needed, and all that they are forks of. */
static void mark_needed(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->session_count; i++) {
        struct wal__salvage_session *session = salvage->sessions[i];

        if (session->is_deleted) {
            continue;
        }
        while (session != NULL && !session->is_needed) {
            session->is_needed = true;
            session = wal__salvage_find_session(salvage, session->fork_source);
        }
    }
    for (uint32_t i = 0; i < salvage->session_count; i++) {
        salvage->result.deleted_sessions += !salvage->sessions[i]->is_needed;
    }
}

/* A range is reported for each session that lost records in it. */
static void report_range(struct wal__salvage *salvage,
                         const struct wal__damaged_range *range)
{
    struct wal_salvage_report report = {
        .struct_size = sizeof(report),
        .kind = WAL_SALVAGE_RANGE,
        .first_sequence = range->first_sequence,
        .last_sequence = range->last_sequence,
        .file = wal__salvage_text(range->file),
        .offset = range->offset,
        .size = range->size,
        .reason = wal__salvage_text(range->reason),
    };
    uint32_t i = 0;

    do {
        const struct wal__salvage_session *session =
            i < range->session_count
                ? wal__salvage_find_session(salvage, range->sessions[i])
                : NULL;

        report.session_id = (struct wal_slice){NULL, 0};
        if (session != NULL && session->has_record) {
            report.session_id = (struct wal_slice){session->record.id.data,
                                                   session->record.id.size};
        }
        wal__salvage_send_report(salvage, &report);
    } while (++i < range->session_count);
}

void wal__salvage_report_damage(struct wal__salvage *salvage, uint32_t from)
{
    for (uint32_t i = from; i < salvage->damaged.damage_count; i++) {
        report_range(salvage, &salvage->damaged.damages[i]);
    }
}

void wal__salvage_plan(struct wal__salvage *salvage)
{
    const struct wal__damaged_visitor visitor = {
        salvage, plan_record, plan_lost, wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;
    enum wal_status status = WAL_OK;

    for (struct wal__damaged_segment *segment =
             wal__damaged_first(&damaged->log);
         segment != NULL && status == WAL_OK; segment = segment->next) {
        salvage->scanned.size = 0;
        status = wal__damaged_scan(damaged, segment, &visitor);
        if (status == WAL_OK) {
            plan_segment_indexes(salvage, segment);
            status = salvage->failed;
        }
    }
    salvage->scanned.size = 0;
    if (status == WAL_OK) {
        (void)!wal__damaged_list(damaged, "index", ".idx", plan_orphan,
                                 salvage);
        status = salvage->failed;
    }
    if (status == WAL_OK) {
        status = wal__damaged_end_pack(damaged);
    }
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, NULL);
        return;
    }
    mark_needed(salvage);
    wal__salvage_report_damage(salvage, 0);
}

void wal__salvage_plan_deinit(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->session_count; i++) {
        wal__heap_free(salvage->heap, salvage->sessions[i]->payload);
        wal__heap_free(salvage->heap, salvage->sessions[i]);
    }
    wal__heap_free(salvage->heap, salvage->sessions);
    wal__hashmap_deinit(&salvage->session_map);
    wal__buf_deinit(&salvage->scanned);
}
