/*
 * salvage_plan.c - what a salvage learns before it writes records, and the content, which it copies
 * before them.
 *
 * The first pass over the log finds the newest texts of every session, which sessions are deleted,
 * and which records are lost. Indexes add what the log lost: sessions whose SESSION record or
 * tombstone is lost, and the parents of lost records, so that an entry whose parent is lost gets
 * its nearest surviving ancestor.
 *
 * Then the blob stream is copied (SPEC.md 5.12, 5.13), in its order, in which a chunk follows its
 * base, and a list its chunks: what a record builds on is read from OUT. A record that was written
 * again after damage comes later than what builds on it; so those that failed are tried again until
 * none succeeds.
 *
 * Invariant: OUT has content under its own digest only. Memory for content is bounded by a few MiB.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/containers.h"
#include "engine/base/error.h"
#include "engine/care/record_copy.h"
#include "engine/care/salvage.h"
#include "engine/session/session.h"
#include "format/bytes/assert.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"

/* The hash of a number or a sequence, for maps. */
static uint64_t hash_of(uint64_t number)
{
    return number * UINT64_C(0x9e3779b97f4a7c15);
}

/* --- failures and reports ------------------------------------------------- */

enum {
    REASON_SIZE = 700,
    PROGRESS_STEP = 1024 * 1024 /* bytes read from call to call */
};

/* --- failures ------------------------------------------------------------- */

void wal__salvage_fail(struct wal__salvage *salvage, enum wal_status status,
                       const struct wal_error *error)
{
    WAL__ASSERT(status != WAL_OK);
    if (salvage->failed != WAL_OK) {
        return;
    }
    salvage->failed = status;
    if (error != NULL) {
        salvage->why = *error;
    } else {
        wal__fail(&salvage->why, status, "%s", wal_status_text(status));
    }
}

bool wal__salvage_try(struct wal__salvage *salvage, enum wal_status status)
{
    if (wal__copy_is_fatal(status)) {
        wal__salvage_fail(salvage, status, &salvage->error);
    }
    return status == WAL_OK;
}

/* As wal__heap_grow_array; fails the salvage when memory is exhausted, and returns false then. */
static bool salvage_grow(struct wal__salvage *salvage, void *array, uint32_t count,
                         uint32_t *capacity, size_t size)
{
    if (!wal__heap_grow_array(salvage->heap, array, count, capacity, size)) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return false;
    }
    return true;
}

static void check_answer(struct wal__salvage *salvage, int32_t answer, const char *function)
{
    if (answer != 0 && salvage->failed == WAL_OK) {
        salvage->failed = wal__fail_at(&salvage->why, WAL_ECALLBACK, answer, NULL, 0,
                                       "the %s function returned %" PRId32, function, answer);
    }
}

/* --- reports -------------------------------------------------------------- */

void wal__salvage_send_report(struct wal__salvage *salvage, const struct wal_salvage_report *report)
{
    const struct wal_salvage_options *options = salvage->options;

    if (salvage->failed != WAL_OK) {
        return;
    }
    salvage->result.losses++;
    if (options->report != NULL) {
        check_answer(salvage, options->report(options->ctx, report), "report");
    }
}

static void send_text(struct wal__salvage *salvage, enum wal_salvage_kind kind, const char *session,
                      const char *entry, const char *text)
{
    const struct wal_salvage_report report = {
        .struct_size = sizeof(report),
        .kind = kind,
        .session_id = wal__slice_from_text(session),
        .entry_id = wal__slice_from_text(entry),
        .reason = wal__slice_from_text(text),
    };

    wal__salvage_send_report(salvage, &report);
}

void wal__salvage_report(struct wal__salvage *salvage, enum wal_salvage_kind kind,
                         const char *session, const char *entry, const char *reason, ...)
{
    char text[REASON_SIZE];
    va_list arguments;

    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    send_text(salvage, kind, session, entry, text);
}

bool wal__salvage_check(struct wal__salvage *salvage, enum wal_status status,
                        enum wal_salvage_kind kind, const char *session, const char *entry,
                        const char *reason, ...)
{
    const char *why = salvage->error.text;
    char text[REASON_SIZE];
    va_list arguments;
    size_t size;

    if (wal__salvage_try(salvage, status)) {
        return true;
    }
    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    size = strlen(text);
    snprintf(text + size, sizeof(text) - size, ": %s",
             why[0] != '\0' ? why : wal_status_text(status));
    send_text(salvage, kind, session, entry, text);
    return false;
}

void wal__salvage_report_reparented(struct wal__salvage *salvage, const char *session,
                                    const char *entry, uint64_t lost_parent, const char *parent)
{
    bool is_root = parent[0] == '\0';

    wal__salvage_report(salvage, entry[0] == '\0' ? WAL_SALVAGE_SESSION : WAL_SALVAGE_ENTRY,
                        session, entry, "its parent, sequence %" PRIu64 ", is lost; %s%s%s",
                        lost_parent, is_root ? "it is a root" : "its parent is ", parent, " now");
}

/* --- progress ------------------------------------------------------------- */

enum wal_status wal__salvage_progress(void *ctx, uint64_t size)
{
    struct wal__salvage *salvage = ctx;
    const struct wal_salvage_options *options = salvage->options;

    salvage->done += size;
    if (options->progress != NULL &&
        (salvage->done >= salvage->reported + PROGRESS_STEP || salvage->done >= salvage->total)) {
        salvage->reported = salvage->done;
        check_answer(salvage, options->progress(options->ctx, salvage->done, salvage->total),
                     "progress");
    }
    return salvage->failed;
}

/* --- lost records --------------------------------------------------------- */

static const struct wal__salvage_lost *find_lost(const struct wal__salvage *salvage,
                                                 uint64_t sequence)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&salvage->lost_map, hash_of(sequence), &cursor, &rank)) {
        if (salvage->lost[rank].sequence == sequence) {
            return &salvage->lost[rank];
        }
    }
    return NULL;
}

/* Adds a record that may not be in OUT. */
static void salvage_add_lost(struct wal__salvage *salvage, uint64_t sequence, uint64_t parent,
                             uint8_t type)
{
    if (find_lost(salvage, sequence) != NULL ||
        !salvage_grow(salvage, &salvage->lost, salvage->lost_count, &salvage->lost_capacity,
                      sizeof(*salvage->lost))) {
        return;
    }
    if (wal__hashmap_add(&salvage->lost_map, hash_of(sequence), salvage->lost_count) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    salvage->lost[salvage->lost_count++] = (struct wal__salvage_lost){sequence, parent, type};
}

/* --- entries in OUT ------------------------------------------------------- */

static struct wal__salvage_written *find_written(const struct wal__salvage *salvage,
                                                 uint64_t sequence)
{
    size_t rank =
        wal__lower_bound(salvage->written, salvage->written_count, sizeof(salvage->written[0]),
                         offsetof(struct wal__salvage_written, sequence), sequence);

    return rank < salvage->written_count && salvage->written[rank].sequence == sequence &&
                   salvage->written[rank].id != SIZE_MAX
               ? &salvage->written[rank]
               : NULL;
}

void wal__salvage_add_written(struct wal__salvage *salvage, uint64_t sequence, struct wal__span id)
{
    size_t at = salvage->written_ids.size;

    if (!salvage_grow(salvage, &salvage->written, salvage->written_count,
                      &salvage->written_capacity, sizeof(*salvage->written))) {
        return;
    }
    if (wal__buf_append(&salvage->written_ids, id.data, id.size) != WAL_OK ||
        wal__buf_append(&salvage->written_ids, "", 1) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return;
    }
    salvage->written[salvage->written_count++] = (struct wal__salvage_written){sequence, at};
}

void wal__salvage_remove_written(struct wal__salvage *salvage, uint64_t sequence, uint64_t parent)
{
    struct wal__salvage_written *written = find_written(salvage, sequence);

    if (written != NULL) {
        written->id = SIZE_MAX;
    }
    salvage_add_lost(salvage, sequence, parent, WAL__FRAME_ENTRY);
}

const char *wal__salvage_find_ancestor(const struct wal__salvage *salvage, uint64_t *sequence)
{
    uint64_t at = *sequence;

    while (at != 0) {
        const struct wal__salvage_written *written = find_written(salvage, at);
        const struct wal__salvage_lost *lost = NULL;

        if (written != NULL) {
            *sequence = at;
            return (const char *)salvage->written_ids.data + written->id;
        }
        lost = find_lost(salvage, at);
        if (lost == NULL || lost->parent >= at) {
            return "";
        }
        at = lost->parent;
    }
    return "";
}

void wal__salvage_count_lost(struct wal__salvage *salvage)
{
    for (uint32_t i = 0; i < salvage->lost_count; i++) {
        const struct wal__salvage_lost *lost = &salvage->lost[i];

        salvage->result.lost_entries +=
            lost->type == WAL__FRAME_ENTRY && find_written(salvage, lost->sequence) == NULL;
    }
}

void wal__salvage_ancestors_deinit(struct wal__salvage *salvage)
{
    wal__heap_free(salvage->heap, salvage->lost);
    wal__hashmap_deinit(&salvage->lost_map);
    wal__heap_free(salvage->heap, salvage->written);
    wal__buf_deinit(&salvage->written_ids);
}

/* --- the first pass ------------------------------------------------------- */

static const char rewind_key[] = "\0rewind";

/* --- sessions ------------------------------------------------------------- */

struct wal__salvage_session *wal__salvage_find_session(const struct wal__salvage *salvage,
                                                       uint32_t number)
{
    uint32_t cursor = 0;
    uint32_t rank;

    while (wal__hashmap_find(&salvage->session_map, hash_of(number), &cursor, &rank)) {
        if (salvage->sessions[rank]->number == number) {
            return salvage->sessions[rank];
        }
    }
    return NULL;
}

struct wal__salvage_session *wal__salvage_get_session(struct wal__salvage *salvage, uint32_t number)
{
    struct wal__salvage_session *session = wal__salvage_find_session(salvage, number);

    if (session != NULL ||
        !salvage_grow(salvage, &salvage->sessions, salvage->session_count,
                      &salvage->session_capacity, sizeof(struct wal__salvage_session *))) {
        return session;
    }
    session = wal__heap_zalloc(salvage->heap, sizeof(*session));
    if (session == NULL || wal__hashmap_add(&salvage->session_map, hash_of(number),
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
static bool decode_session(const struct wal__damaged_segment *segment, struct wal__span payload,
                           struct wal__session_record *record)
{
    uint32_t version = segment->header.version;

    /* The version is lost with the header; a payload decodes in one layout only. */
    return wal__session_record_decode(payload, version, record) == WAL__FMT_OK ||
           (segment->salt_found &&
            wal__session_record_decode(payload, version == 0 ? 1 : 0, record) == WAL__FMT_OK);
}

/* Keeps a SESSION record, and its payload, which is of the heap. */
static void keep_record(const struct wal__salvage *salvage, struct wal__salvage_session *session,
                        uint8_t *payload, const struct wal__session_record *record)
{
    wal__heap_free(salvage->heap, session->payload);
    session->payload = payload;
    session->record = *record;
    session->has_record = true;
}

bool wal__salvage_keep_session(struct wal__salvage *salvage,
                               const struct wal__damaged_segment *segment,
                               struct wal__salvage_session *session, struct wal__span payload)
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
        (session->has_record && !wal__span_equal(session->record.id, record.id))) {
        wal__heap_free(salvage->heap, copy);
        return false;
    }
    keep_record(salvage, session, copy, &record);
    session->from_index = false;
    return true;
}

/* Returns whether the record is a version of a session's rewind journal. */
static bool is_rewind(const struct wal__frame *frame)
{
    return (frame->type == WAL__FRAME_DOC || frame->type == WAL__FRAME_DOC_DELETE) &&
           frame->id_hash == wal__id_hash(rewind_key, sizeof(rewind_key) - 1);
}

static enum wal_status plan_record(void *ctx, const struct wal__damaged_segment *segment,
                                   const struct wal__frame *frame, uint64_t offset,
                                   const uint8_t *bytes)
{
    const struct wal__span payload = {bytes, frame->stored_size};
    struct wal__salvage *salvage = ctx;
    struct wal__salvage_session *session;
    struct wal__fork_record fork;

    (void)offset;
    if (wal__buf_append(&salvage->scanned, &frame->sequence, sizeof(frame->sequence)) != WAL_OK) {
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
        session->rewind_sequence = frame->type == WAL__FRAME_DOC ? frame->sequence : 0;
    }
    return salvage->failed;
}

/* --- lost records --------------------------------------------------------- */

static enum wal_status plan_lost(void *ctx, const struct wal__frame *frame, uint64_t offset)
{
    struct wal__salvage *salvage = ctx;

    (void)offset;
    if (frame->session != 0) {
        (void)wal__salvage_get_session(salvage, frame->session);
    }
    salvage_add_lost(salvage, frame->sequence, frame->parent, frame->type);
    return salvage->failed;
}

/* --- indexes -------------------------------------------------------------- */

/* Adds a session whose SESSION record is lost from its summary in an index. */
static void add_record(struct wal__salvage *salvage, struct wal__salvage_session *session,
                       const struct wal__summary *summary)
{
    struct wal__session_record record = {
        .created_ms = summary->created_ms,
        .schema_version = summary->schema_version == 0 ? 1 : summary->schema_version,
        .flags =
            ((summary->flags & WAL__SUMMARY_FORK) != 0 ? (uint32_t)WAL__SESSION_RECORD_FORK : 0) |
            ((summary->flags & WAL__SUMMARY_TRASHED) != 0 ? (uint32_t)WAL__SESSION_RECORD_TRASHED
                                                          : 0) |
            ((summary->flags & WAL__SUMMARY_MOVED) != 0 ? (uint32_t)WAL__SESSION_RECORD_MOVED : 0),
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
    if (wal__session_record_decode((struct wal__span){bytes, size}, WAL__FORMAT_VERSION, &record) !=
        WAL__FMT_OK) {
        wal__heap_free(salvage->heap, bytes);
        return;
    }
    keep_record(salvage, session, bytes, &record);
    session->from_index = true;
}

/* Returns whether the segment that was read last has a record. */
static bool was_scanned(const struct wal__salvage *salvage, uint64_t sequence)
{
    return salvage->scanned.size > 0 &&
           bsearch(&sequence, salvage->scanned.data, salvage->scanned.size / sizeof(sequence),
                   sizeof(sequence), wal__compare_u64) != NULL;
}

/* Adds a lost record of a rewritten segment to the damage of its BLOCK. */
static void add_to_block(struct wal__salvage *salvage, uint64_t id,
                         const struct wal__posting *posting, uint32_t session)
{
    struct wal__damaged_store *damaged = &salvage->damaged;
    const struct wal__damaged_segment *segment = wal__damaged_find(&damaged->log, id);
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
        if (range->first_sequence == 0 || posting->sequence < range->first_sequence) {
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
static void add_postings(struct wal__salvage *salvage, const struct wal__index *index,
                         const struct wal__summary *summary)
{
    for (uint32_t i = 0; i < summary->posting_count; i++) {
        struct wal__posting posting;

        wal__index_posting(index, summary->first_posting + i, &posting);
        if (!was_scanned(salvage, posting.sequence)) {
            salvage_add_lost(salvage, posting.sequence, posting.parent, posting.type);
            add_to_block(salvage, index->header.id, &posting, summary->number);
        }
    }
}

/* Adds the sessions of an index whose record or tombstone is lost, and if
 * `is_damaged`, records of the segment are lost, its records. */
static void add_from_index(struct wal__salvage *salvage, const struct wal__index *index,
                           bool is_damaged)
{
    struct wal__summary summary;

    for (uint32_t i = 0; i < index->header.session_count && salvage->failed == WAL_OK &&
                         wal__index_summary(index, i, &summary) == WAL__FMT_OK;
         i++) {
        struct wal__salvage_session *session = wal__salvage_get_session(salvage, summary.number);

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
        struct wal__span bytes = i == 0
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
static enum wal_status add_orphan(struct wal__salvage *salvage, const struct wal__index *index)
{
    struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_range *range;
    struct wal__summary summary;
    char name[WAL__DAMAGED_NAME_SIZE];

    wal__damaged_segment_name(false, index->header.id, name);
    range = wal__damaged_add_range(damaged, name, 0, index->header.end, "the segment is missing");
    if (range == NULL) {
        return WAL_ENOMEM;
    }
    range->first_sequence = index->header.first_sequence;
    range->last_sequence = index->header.last_sequence;
    for (uint32_t i = 0;
         i < index->header.session_count && wal__index_summary(index, i, &summary) == WAL__FMT_OK;
         i++) {
        enum wal_status status = wal__damaged_add_session(damaged, range, summary.number);

        if (status != WAL_OK) {
            return status;
        }
    }
    return WAL_OK;
}

static enum wal_status find_newer(void *ctx, uint64_t id)
{
    const uint64_t *lowest = ctx;

    return id >= *lowest ? WAL_EEXISTS : WAL_OK;
}

/* An index above the tail whose segment is missing proves that records are lost, unless a segment
 * has been made since they were listed: that one, or one after it was compacted. */
static enum wal_status plan_orphan(void *ctx, uint64_t id)
{
    struct wal__salvage *salvage = ctx;
    struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_file file;
    struct wal__index index;
    enum wal_status status = WAL_OK;

    if (wal__damaged_find(&damaged->log, id) != NULL ||
        (damaged->log.tail != NULL && id < damaged->log.tail->id) ||
        wal__damaged_list(damaged, "log", ".seg", find_newer, &id) == WAL_EEXISTS) {
        return WAL_OK;
    }
    if (wal__damaged_decode_index(damaged, id, wal__damaged_index_file(damaged, false, id, &file),
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
static void report_range(struct wal__salvage *salvage, const struct wal__damaged_range *range)
{
    struct wal_salvage_report report = {
        .struct_size = sizeof(report),
        .kind = WAL_SALVAGE_RANGE,
        .first_sequence = range->first_sequence,
        .last_sequence = range->last_sequence,
        .file = wal__slice_from_text(range->file),
        .offset = range->offset,
        .size = range->size,
        .reason = wal__slice_from_text(range->reason),
    };
    uint32_t i = 0;

    do {
        const struct wal__salvage_session *session =
            i < range->session_count ? wal__salvage_find_session(salvage, range->sessions[i])
                                     : NULL;

        report.session_id = (struct wal_slice){NULL, 0};
        if (session != NULL && session->has_record) {
            report.session_id =
                (struct wal_slice){session->record.id.data, session->record.id.size};
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
    const struct wal__damaged_visitor visitor = {.ctx = salvage,
                                                 .record = plan_record,
                                                 .lost = plan_lost,
                                                 .progress = wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;
    enum wal_status status = WAL_OK;

    for (struct wal__damaged_segment *segment = wal__damaged_first(&damaged->log);
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
        (void)!wal__damaged_list(damaged, "index", ".idx", plan_orphan, salvage);
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

/* --- why content is not in OUT -------------------------------------------- */

/* Returns whether the record of the content is known to be lost, or failed. */
static const char *find_fault(const struct wal__salvage *salvage, const struct wal__digest *digest)
{
    uint32_t cursor = 0;
    uint32_t none;

    if (wal__hashmap_find(&salvage->lost_blobs, wal__digest_hash(digest), &cursor, &none)) {
        return "its record is damaged";
    }
    for (uint32_t i = 0; i < salvage->bad_blob_count; i++) {
        if (wal__digest_equal(&salvage->bad_blobs[i].digest, digest)) {
            return salvage->bad_blobs[i].reason;
        }
    }
    return NULL;
}

const char *wal__salvage_blob_fault(const struct wal__salvage *salvage,
                                    const struct wal__digest *digest)
{
    const char *fault = find_fault(salvage, digest);

    return fault == NULL ? "it is missing" : fault;
}

const char *wal__salvage_check_content(struct wal__salvage *salvage,
                                       const struct wal__digest *digest, uint64_t size)
{
    uint64_t found = 0;
    uint64_t end;

    if (wal__salvage_try(
            salvage, wal__blob_stat(salvage->out_blobs, digest, &found, &end, &salvage->error))) {
        return found == size ? NULL : "its size differs from the reference";
    }
    return wal__salvage_blob_fault(salvage, digest);
}

/* --- copying -------------------------------------------------------------- */

/* Reads a chunk from OUT. NULL, or why it is not there. */
static const char *load_chunk(struct wal__salvage *salvage, const struct wal__digest *digest,
                              struct wal__buf *out, const char *missing, const char *damaged)
{
    out->size = 0;
    if (wal__salvage_try(salvage,
                         wal__blob_load(salvage->out_blobs, digest, out, &salvage->error))) {
        return NULL;
    }
    return find_fault(salvage, digest) == NULL ? missing : damaged;
}

/* Returns a fault unless the content was put under its digest. */
static const char *check_put(struct wal__salvage *salvage, enum wal_status status,
                             const struct wal__digest *put, const struct wal__digest *expected)
{
    if (!wal__salvage_try(salvage, status)) {
        return "the new store refuses it";
    }
    return wal__digest_equal(put, expected) ? NULL : "its SHA-256 does not match";
}

/* Copies a CHUNK. NULL, or why its content cannot be read. */
static const char *copy_chunk(struct wal__salvage *salvage, enum wal__blob_owner owner,
                              struct wal__span payload)
{
    struct wal__chunk_record chunk;
    struct wal__digest digest;
    const char *fault = NULL;
    enum wal_status status;
    uint8_t *bytes;

    if (wal__chunk_record_decode(payload, &chunk) != WAL__FMT_OK) {
        return "its record is not well-formed";
    }
    salvage->base.size = 0;
    if (chunk.encoding == WAL__CHUNK_DELTA) {
        fault = load_chunk(salvage, &chunk.base, &salvage->base, "its base chunk is missing",
                           "its base chunk is damaged");
    }
    if (fault != NULL) {
        return fault;
    }
    salvage->content.size = 0;
    if (wal__buf_reserve(&salvage->content, (size_t)chunk.size + 1, &bytes) != WAL_OK) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return NULL;
    }
    if (!wal__chunk_decode_content(
            &chunk, (struct wal__span){salvage->base.data, salvage->base.size}, bytes)) {
        return "its compression is not valid";
    }
    status = wal__blob_put(salvage->out_blobs, (struct wal__span){bytes, chunk.size}, NULL, owner,
                           &digest, &salvage->put, &salvage->error);
    return check_put(salvage, status, &digest, &chunk.digest);
}

/* Appends the chunks of a list to the writer. NULL, or why one of them cannot be read. */
static const char *append_chunks(struct wal__salvage *salvage, const struct wal__blob_record *list,
                                 struct wal__blob_writer *writer)
{
    uint64_t left = list->size;

    for (uint32_t i = 0; i < list->chunk_count; i++) {
        uint64_t size = left < WAL__CHUNK_MAX ? left : WAL__CHUNK_MAX;
        struct wal__digest digest;
        const char *fault;

        memcpy(digest.bytes, list->chunks + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        fault = load_chunk(salvage, &digest, &salvage->content, "a chunk of it is missing",
                           "a chunk of it is damaged");
        if (fault != NULL) {
            return fault;
        }
        if (salvage->content.size != size) {
            return "a chunk of it is damaged";
        }
        if (!wal__salvage_try(salvage,
                              wal__blob_writer_append(
                                  writer,
                                  (struct wal__span){salvage->content.data, salvage->content.size},
                                  &salvage->error))) {
            return "the new store refuses it";
        }
        left -= size;
    }
    return NULL;
}

/* Copies a BLOB, a list of chunks. NULL, or why its content cannot be read. */
static const char *copy_list(struct wal__salvage *salvage, enum wal__blob_owner owner,
                             struct wal__span payload)
{
    struct wal__blob_writer *writer = NULL;
    struct wal__blob_record list;
    struct wal__digest digest = {{0}};
    const char *fault;
    enum wal_status status;
    uint64_t size;

    if (wal__blob_record_decode(payload, &list) != WAL__FMT_OK) {
        return "its record is not well-formed";
    }
    status = wal__blob_writer_create(salvage->out_blobs, NULL, owner, &writer, &salvage->error);
    if (!wal__salvage_try(salvage, status)) {
        return "the new store refuses it";
    }
    fault = append_chunks(salvage, &list, writer);
    if (fault == NULL) {
        status = wal__blob_writer_finish(writer, &digest, &size, &salvage->put, &salvage->error);
        fault = check_put(salvage, status, &digest, &list.digest);
    }
    wal__blob_writer_destroy(writer);
    return fault;
}

/* Copies a record unless OUT has its content, as that of the same owner. NULL, or why it cannot be
 * read; meaningless if the salvage failed. */
static const char *copy_content(struct wal__salvage *salvage, const struct wal__frame *frame,
                                const struct wal__digest *digest, struct wal__span payload)
{
    enum wal__blob_owner owner = wal__blob_frame_owner(frame);
    const char *fault;
    uint64_t end = 0;

    if (!wal__salvage_try(salvage,
                          wal__blob_find_end(salvage->out_blobs, digest, &end, &salvage->error)) ||
        (end != 0 && owner == WAL__BLOB_OF_RECORDS)) {
        return NULL;
    }
    fault = frame->type == WAL__FRAME_CHUNK ? copy_chunk(salvage, owner, payload)
                                            : copy_list(salvage, owner, payload);
    salvage->result.blobs += fault == NULL;
    return fault;
}

static enum wal_status copy_blob(void *ctx, const struct wal__damaged_segment *segment,
                                 const struct wal__frame *frame, uint64_t offset,
                                 const uint8_t *bytes)
{
    struct wal__salvage *salvage = ctx;
    struct wal__salvage_bad_blob bad = {.segment = segment, .offset = offset, .frame = *frame};

    if ((frame->type != WAL__FRAME_CHUNK && frame->type != WAL__FRAME_BLOB) ||
        frame->stored_size < WAL__DIGEST_SIZE) {
        return salvage->failed;
    }
    memcpy(bad.digest.bytes, bytes, WAL__DIGEST_SIZE); /* both begin with it */
    bad.reason =
        copy_content(salvage, frame, &bad.digest, (struct wal__span){bytes, frame->stored_size});
    if (bad.reason != NULL && salvage_grow(salvage, &salvage->bad_blobs, salvage->bad_blob_count,
                                           &salvage->bad_blob_capacity, sizeof(bad))) {
        salvage->bad_blobs[salvage->bad_blob_count++] = bad;
    }
    return salvage->failed;
}

/* Copies again what failed. Returns whether something was copied. */
static bool retry_bad_blobs(struct wal__salvage *salvage)
{
    uint32_t count = salvage->bad_blob_count;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < count && salvage->failed == WAL_OK; i++) {
        struct wal__salvage_bad_blob bad = salvage->bad_blobs[i];
        struct wal__span payload = {NULL, 0};
        struct wal__damaged_file file;
        struct wal__frame frame;

        if (wal__damaged_segment_open(&file, &salvage->damaged, bad.segment) == WAL_OK) {
            payload = wal__damaged_file_read(&file, bad.segment->header.salt, bad.offset,
                                             bad.frame.type, &frame);
        }
        if (payload.data != NULL) {
            bad.reason = copy_content(salvage, &bad.frame, &bad.digest, payload);
        }
        wal__damaged_file_close(&file);
        if (bad.reason != NULL) {
            salvage->bad_blobs[kept++] = bad;
        }
    }
    salvage->bad_blob_count = kept;
    return kept < count && salvage->failed == WAL_OK;
}

/* --- lost records --------------------------------------------------------- */

static enum wal_status lose_content(struct wal__salvage *salvage, uint64_t digest_hash)
{
    salvage->result.lost_blobs++;
    return wal__hashmap_add(&salvage->lost_blobs, digest_hash, 0);
}

static enum wal_status lose_record(void *ctx, const struct wal__frame *frame, uint64_t offset)
{
    (void)offset;
    return lose_content(ctx, frame->id_hash);
}

/* The index of a damaged segment names the content that it had. */
static void add_lost_of_index(struct wal__salvage *salvage, const struct wal__pack_index *index)
{
    for (uint32_t i = 0; i < index->header.posting_count && salvage->failed == WAL_OK; i++) {
        struct wal__digest digest;
        uint64_t end = 0;

        memcpy(digest.bytes, index->digests + (size_t)i * WAL__DIGEST_SIZE, WAL__DIGEST_SIZE);
        if (wal__salvage_try(
                salvage, wal__blob_find_end(salvage->out_blobs, &digest, &end, &salvage->error)) &&
            end == 0 && find_fault(salvage, &digest) == NULL &&
            lose_content(salvage, wal__digest_hash(&digest)) != WAL_OK) {
            wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        }
    }
}

static void read_pack_indexes(struct wal__salvage *salvage,
                              const struct wal__damaged_segment *segment)
{
    const struct wal__damaged_store *damaged = &salvage->damaged;
    struct wal__damaged_file file;
    struct wal__pack_index index;

    for (int i = 0; i < 2 && segment->has_damage; i++) {
        struct wal__span bytes = i == 0
                                     ? wal__damaged_index_frame(damaged, segment, &file)
                                     : wal__damaged_index_file(damaged, true, segment->id, &file);

        if (wal__damaged_decode_pack_index(damaged, segment->id, bytes, &index)) {
            add_lost_of_index(salvage, &index);
        }
        wal__damaged_file_close(&file);
    }
}

static void report_bad_blob(struct wal__salvage *salvage, const struct wal__salvage_bad_blob *bad)
{
    char digest[WAL__DIGEST_HEX_SIZE];
    char reason[256];

    wal__hex_write(bad->digest.bytes, WAL__DIGEST_SIZE, digest);
    snprintf(reason, sizeof(reason), "the content with the SHA-256 %s cannot be read: %s", digest,
             bad->reason);
    salvage->result.lost_blobs++;
    wal__salvage_send_report(salvage, &(struct wal_salvage_report){
                                          .struct_size = sizeof(struct wal_salvage_report),
                                          .kind = WAL_SALVAGE_BLOB,
                                          .file = wal__slice_from_text(bad->segment->name),
                                          .offset = bad->offset,
                                          .size = wal__frame_total_size(bad->frame.stored_size),
                                          .reason = wal__slice_from_text(reason),
                                      });
}

void wal__salvage_blobs(struct wal__salvage *salvage)
{
    const struct wal__damaged_visitor visitor = {.ctx = salvage,
                                                 .record = copy_blob,
                                                 .lost = lose_record,
                                                 .progress = wal__salvage_progress};
    struct wal__damaged_store *damaged = &salvage->damaged;
    uint32_t found = damaged->damage_count;
    enum wal_status status = WAL_OK;

    for (struct wal__damaged_segment *segment = wal__damaged_first(&damaged->pack);
         segment != NULL && status == WAL_OK; segment = segment->next) {
        status = wal__damaged_scan(damaged, segment, &visitor);
    }
    if (status != WAL_OK) {
        wal__salvage_fail(salvage, status, NULL);
        return;
    }
    wal__salvage_report_damage(salvage, found);
    while (retry_bad_blobs(salvage)) {
    }
    for (uint32_t i = 0; i < salvage->bad_blob_count; i++) {
        report_bad_blob(salvage, &salvage->bad_blobs[i]);
    }
    for (const struct wal__damaged_segment *segment = damaged->pack.tail; segment != NULL;
         segment = segment->previous) {
        read_pack_indexes(salvage, segment);
    }
    if (salvage->failed == WAL_OK && salvage->put.end != 0) {
        status = wal__blob_store_sync(salvage->out_blobs, salvage->put.end, &salvage->error);
        if (status != WAL_OK) {
            wal__salvage_fail(salvage, status, &salvage->error);
        }
    }
}

void wal__salvage_blobs_deinit(struct wal__salvage *salvage)
{
    wal__buf_deinit(&salvage->content);
    wal__buf_deinit(&salvage->base);
    wal__hashmap_deinit(&salvage->lost_blobs);
    wal__heap_free(salvage->heap, salvage->bad_blobs);
}
