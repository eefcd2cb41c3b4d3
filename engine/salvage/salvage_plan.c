/*
 * salvage_plan.c - the first pass over the log: the newest texts of every
 * session, which sessions are deleted, and which records are lost.
 *
 * Indexes add what the log lost: sessions whose SESSION record or tombstone is
 * lost, and the parents of lost records.
 */
#include <string.h>

#include "engine/salvage/salvage.h"
#include "format/bytes/crc32.h"

static const char rewind_key[] = "\0rewind";

/* --- sessions ------------------------------------------------------------- */

/* The rank of the first session whose number is at least `number`. */
static uint32_t session_rank(const struct wal__salvage *salvage,
                             uint32_t number)
{
    uint32_t low = 0;
    uint32_t high = salvage->session_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (salvage->sessions[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct wal__salvage_session *
wal__salvage_find_session(const struct wal__salvage *salvage, uint32_t number)
{
    uint32_t rank = session_rank(salvage, number);

    return rank < salvage->session_count &&
                   salvage->sessions[rank]->number == number
               ? salvage->sessions[rank]
               : NULL;
}

struct wal__salvage_session *
wal__salvage_get_session(struct wal__salvage *salvage, uint32_t number)
{
    uint32_t rank = session_rank(salvage, number);
    struct wal__salvage_session *session =
        wal__salvage_find_session(salvage, number);

    if (session != NULL ||
        !wal__salvage_grow(salvage, (void **)&salvage->sessions,
                           salvage->session_count, &salvage->session_capacity,
                           sizeof(struct wal__salvage_session *))) {
        return session;
    }
    session = wal__heap_zalloc(salvage->heap, sizeof(*session));
    if (session == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return NULL;
    }
    session->number = number;
    memmove(salvage->sessions + rank + 1, salvage->sessions + rank,
            (salvage->session_count - rank) *
                sizeof(struct wal__salvage_session *));
    salvage->sessions[rank] = session;
    salvage->session_count++;
    return session;
}

bool wal__salvage_decode_session(const struct wal__damaged_segment *segment,
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

/* Keeps a SESSION payload, which decodes, as the session's newest. */
static void keep_record(struct wal__salvage *salvage,
                        const struct wal__damaged_segment *segment,
                        struct wal__salvage_session *session,
                        struct wal__span payload)
{
    uint8_t *copy = wal__heap_alloc(salvage->heap, payload.size);

    if (copy == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    memcpy(copy, payload.data, payload.size);
    payload.data = copy;
    wal__heap_free(salvage->heap, session->payload);
    session->payload = copy;
    session->has_record =
        segment == NULL
            ? wal__session_record_decode(payload, WAL__FORMAT_VERSION,
                                         &session->record) == WAL__FMT_OK
            : wal__salvage_decode_session(segment, payload, &session->record);
    session->from_index = segment == NULL;
}

static void plan_session(struct wal__salvage *salvage,
                         const struct wal__damaged_segment *segment,
                         struct wal__salvage_session *session,
                         struct wal__span payload)
{
    struct wal__session_record record;

    if (!wal__salvage_decode_session(segment, payload, &record) ||
        (session->has_record && (session->record.id.size != record.id.size ||
                                 memcmp(session->record.id.data, record.id.data,
                                        record.id.size) != 0))) {
        return; /* not well-formed, or of another session */
    }
    keep_record(salvage, segment, session, payload);
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
        plan_session(salvage, segment, session, payload);
    } else if (frame->type == WAL__FRAME_FORK &&
               wal__fork_record_decode(payload, &fork) == WAL__FMT_OK) {
        session->fork_source = fork.source;
    } else if (frame->type == WAL__FRAME_TOMBSTONE) {
        session->is_deleted = true;
    } else if (frame->type == WAL__FRAME_DOC &&
               frame->id_hash ==
                   wal__id_hash(rewind_key, sizeof(rewind_key) - 1)) {
        session->rewind_sequence = frame->sequence;
    } else if (frame->type == WAL__FRAME_DOC_DELETE &&
               frame->id_hash ==
                   wal__id_hash(rewind_key, sizeof(rewind_key) - 1)) {
        session->rewind_sequence = 0;
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
    wal__salvage_add_lost(salvage, &(struct wal__salvage_lost){frame->sequence,
                                                               frame->parent,
                                                               frame->type});
    return salvage->failed;
}

/* --- indexes -------------------------------------------------------------- */

/* Adds a session whose SESSION record or tombstone is lost from its summary in
 * an index. */
static void add_from_summary(struct wal__salvage *salvage,
                             const struct wal__summary *summary)
{
    struct wal__salvage_session *session =
        wal__salvage_get_session(salvage, summary->number);
    const struct wal__session_record record = {
        .created_ms = summary->created_ms,
        .schema_version =
            summary->schema_version == 0 ? 1 : summary->schema_version,
        .flags = (summary->flags & WAL__SUMMARY_FORK) != 0
                     ? (uint32_t)WAL__SESSION_RECORD_FORK
                     : 0,
        .id = summary->id,
        .cwd = summary->cwd,
        .project = summary->project,
        .title = summary->title,
        .parent_id = summary->parent_id,
        .source = summary->source,
    };
    struct wal__span payload = {NULL, wal__session_record_size(&record)};
    uint8_t *bytes;

    if (session == NULL) {
        return;
    }
    session->is_deleted =
        session->is_deleted || (summary->flags & WAL__SUMMARY_DELETED) != 0;
    if (session->has_record) {
        return;
    }
    bytes = wal__heap_alloc(salvage->heap, payload.size);
    if (bytes == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    wal__session_record_encode(&record, bytes);
    payload.data = bytes;
    keep_record(salvage, NULL, session, payload);
    wal__heap_free(salvage->heap, bytes);
}

/* Whether the segment that was read last has a record. */
static bool was_scanned(const struct wal__salvage *salvage, uint64_t sequence)
{
    size_t low = 0;
    size_t high = salvage->scanned.size / sizeof(sequence);
    uint64_t at = 0;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        memcpy(&at, salvage->scanned.data + middle * sizeof(at), sizeof(at));
        if (at == sequence) {
            return true;
        }
        if (at < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return false;
}

/* Adds the records of a summary that are lost. */
static void add_postings(struct wal__salvage *salvage,
                         const struct wal__index *index,
                         const struct wal__summary *summary)
{
    for (uint32_t i = 0; i < summary->posting_count; i++) {
        struct wal__posting posting;

        wal__posting_decode(index->postings +
                                ((size_t)summary->first_posting + i) *
                                    WAL__POSTING_SIZE,
                            &posting);
        if (!was_scanned(salvage, posting.sequence)) {
            wal__salvage_add_lost(
                salvage, &(struct wal__salvage_lost){
                             posting.sequence, posting.parent, posting.type});
        }
    }
}

/* Adds the sessions of an index, and if `is_damaged`, records of the segment
 * are lost, its records. */
static void add_from_index(struct wal__salvage *salvage,
                           const struct wal__index *index, bool is_damaged,
                           struct wal__damaged_range *damage)
{
    struct wal__summary summary;

    for (uint32_t i = 0;
         i < index->header.session_count && salvage->failed == WAL_OK &&
         wal__index_summary(index, i, &summary) == WAL__FMT_OK;
         i++) {
        add_from_summary(salvage, &summary);
        if (is_damaged) {
            add_postings(salvage, index, &summary);
        }
        if (damage != NULL &&
            wal__damaged_add_session(&salvage->damaged, damage,
                                     summary.number) != WAL_OK) {
            wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
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
    if (wal__damaged_decode_index(
            damaged, segment->id,
            wal__damaged_index_frame(damaged, segment, &file), &index)) {
        add_from_index(salvage, &index, segment->has_damage, NULL);
    }
    wal__damaged_file_close(&file);
    if (wal__damaged_decode_index(
            damaged, segment->id,
            wal__damaged_index_file(damaged, false, segment->id, &file),
            &index)) {
        add_from_index(salvage, &index, segment->has_damage, NULL);
    }
    wal__damaged_file_close(&file);
}

/* An index above the tail whose segment is missing proves that records are
 * lost. */
static enum wal_status plan_orphan(void *ctx, uint64_t id)
{
    struct wal__salvage *salvage = ctx;
    struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_range *damage;
    struct wal__damaged_file file;
    struct wal__index index;
    char name[WAL__DAMAGED_NAME_SIZE];

    if (wal__damaged_find(&damaged->log, id) != NULL ||
        (damaged->log.tail != NULL && id < damaged->log.tail->id)) {
        return WAL_OK;
    }
    if (wal__damaged_decode_index(
            damaged, id, wal__damaged_index_file(damaged, false, id, &file),
            &index)) {
        wal__damaged_segment_name(false, id, name);
        damage = wal__damaged_add_range(damaged, name, 0, index.header.end,
                                        "the segment is missing");
        if (damage == NULL) {
            wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        } else {
            damage->first_sequence = index.header.first_sequence;
            damage->last_sequence = index.header.last_sequence;
            add_from_index(salvage, &index, true, damage);
        }
    }
    wal__damaged_file_close(&file);
    return salvage->failed;
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

/* Reports the damaged ranges that were found since rank `from`. */
void wal__salvage_report_damage(struct wal__salvage *salvage, uint32_t from)
{
    for (uint32_t i = from; i < salvage->damaged.damage_count; i++) {
        const struct wal__damaged_range *damage = &salvage->damaged.damages[i];
        struct wal_salvage_report report = {
            .struct_size = sizeof(report),
            .kind = WAL_SALVAGE_RANGE,
            .first_sequence = damage->first_sequence,
            .last_sequence = damage->last_sequence,
            .file = wal__salvage_text(damage->file),
            .offset = damage->offset,
            .size = damage->size,
            .reason = wal__salvage_text(damage->reason),
        };
        uint32_t k = 0;

        do {
            const struct wal__salvage_session *session =
                k < damage->session_count
                    ? wal__salvage_find_session(salvage, damage->sessions[k])
                    : NULL;

            report.session_id = (struct wal_slice){NULL, 0};
            if (session != NULL && session->has_record) {
                report.session_id = (struct wal_slice){session->record.id.data,
                                                       session->record.id.size};
            }
            wal__salvage_send_report(salvage, &report);
        } while (++k < damage->session_count);
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
    wal__heap_free(salvage->heap, salvage->lost);
    wal__hashmap_deinit(&salvage->lost_map);
    wal__buf_deinit(&salvage->scanned);
}
