/*
 * index.c - compares INDEX, SEAL and trailer of a segment, and its file in
 * index/, with the log (SPEC.md 2.10, 2.12).
 *
 * All of these are derived: their damage loses no record and is a note. One
 * that differs from the log with valid checksums is damage: readers use it.
 * Where the log lost records, a valid index names the lost ones. An index of
 * another index version counts as missing, as in the engine.
 *
 * Invariant: check_indexes is called once for a segment, when the log is
 * replayed exactly to the segment's end.
 *
 * Threads: the main thread.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/walcheck/pack.h"

static const char rebuilt[] = "; it is derived, and is built again when needed";

struct index_check {
    struct check_store *store;
    struct check_segment *segment;
    struct wal__index index;
    const char *file;
    uint64_t offset;
    uint64_t size;
};

static void report_damage(const struct index_check *index_check,
                          const char *what)
{
    check_damage_add_note(&index_check->store->damages, index_check->file,
                          index_check->offset, index_check->size, "%s%s", what,
                          rebuilt);
}

/* The checksums are valid: readers use it. */
static void report_difference(const struct index_check *index_check,
                              const char *what)
{
    check_damage_add_redundant(&index_check->store->damages, index_check->file,
                               index_check->offset, index_check->size,
                               "%s; it is derived: no record is lost", what);
}

/* --- postings ------------------------------------------------------------- */

static const struct check_record *
find_record(const struct check_segment *segment, uint64_t sequence)
{
    size_t low = 0;
    size_t high = segment->record_count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (segment->records[middle].posting.sequence < sequence) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < segment->record_count &&
                   segment->records[low].posting.sequence == sequence
               ? &segment->records[low]
               : NULL;
}

/* A posting has no record: the record is lost. */
static void report_lost_record(const struct index_check *index_check,
                               const struct wal__posting *posting,
                               uint32_t session)
{
    const struct check_segment *segment = index_check->segment;

    for (size_t i = 0; i < segment->damages.count; i++) {
        struct check_damage *damage = &segment->damages.items[i];

        if (posting->sequence >= damage->first_sequence &&
            posting->sequence <= damage->last_sequence) {
            check_damage_session(damage, session);
            break;
        }
    }
}

static bool posting_matches(const struct check_record *record,
                            const struct wal__posting *posting,
                            uint32_t session)
{
    const struct wal__posting *own = &record->posting;

    return record->session == session && own->offset == posting->offset &&
           own->type == posting->type && own->flags == posting->flags &&
           own->stream == posting->stream && own->kind == posting->kind &&
           own->parent == posting->parent && own->id_hash == posting->id_hash;
}

static bool check_postings(const struct index_check *index_check,
                           const struct wal__summary *summary)
{
    const struct check_segment *segment = index_check->segment;

    for (uint32_t i = 0; i < summary->posting_count; i++) {
        const struct check_record *record;
        struct wal__posting posting;

        wal__posting_decode(index_check->index.postings +
                                ((size_t)summary->first_posting + i) *
                                    WAL__POSTING_SIZE,
                            &posting);
        record = find_record(segment, posting.sequence);
        if (record == NULL &&
            wal__segment_is_rewritten(&segment->head->header)) {
            if (!check_block_lost(index_check->segment, &posting,
                                  summary->number)) {
                report_difference(index_check,
                                  "a posting names a record that is not there");
                return false;
            }
        } else if (record == NULL && segment->has_lost_records) {
            report_lost_record(index_check, &posting, summary->number);
        } else if (record == NULL ||
                   !posting_matches(record, &posting, summary->number)) {
            report_difference(index_check, "a posting differs from its frame");
            return false;
        }
    }
    return true;
}

/* A session that is deleted later may have lost records to compaction. */
static void report_summary(const struct index_check *index_check,
                           const struct wal__summary *summary,
                           const char *field)
{
    struct check_store *store = index_check->store;
    struct check_damage *damage = check_damage_add(
        &store->damages, index_check->file, index_check->offset,
        index_check->size,
        "the %s of session %" PRIu32
        " differs from the log; it is derived: no record is lost",
        field, summary->number);

    damage->kind = CHECK_REDUNDANT;
    damage->if_live = store->has_rewritten ? summary->number : 0;
}

/* Compares a summary with its session. Returns the name of the first field that
 * differs, or null. */
static const char *check_session_summary(const struct index_check *index_check,
                                         const struct wal__summary *summary)
{
    struct check_store *store = index_check->store;
    struct check_segment *segment = index_check->segment;
    struct check_session *session =
        check_model_find(&store->model, summary->number);
    bool is_loose = wal__segment_is_rewritten(&segment->head->header) ||
                    store->is_approximate;
    const char *field;

    if (session == NULL) {
        /* Its records were left out, or are in a later segment. */
        return store->has_rewritten && summary->posting_count == 0 ? NULL
                                                                   : "number";
    }
    field = check_summary(store, session, summary, segment, is_loose);
    if (is_loose) {
        check_summary_adopt(store, session, summary, segment);
    }
    return field;
}

static void check_summaries(struct index_check *index_check)
{
    const struct wal__index_header *header = &index_check->index.header;
    uint64_t postings = 0;

    for (uint32_t i = 0; i < header->session_count; i++) {
        const struct check_session *session;
        struct wal__summary summary;
        const char *field = NULL;

        if (wal__index_summary(&index_check->index, i, &summary) !=
            WAL__FMT_OK) {
            report_difference(index_check, "a summary is not valid");
            return;
        }
        if (!check_postings(index_check, &summary)) {
            return;
        }
        postings += summary.posting_count;
        session = check_model_find(&index_check->store->model, summary.number);
        if (index_check->store->records_lost ||
            (session != NULL && session->damaged)) {
            if (session == NULL || !session->has_record ||
                ((summary.flags & WAL__SUMMARY_DELETED) != 0 &&
                 !check_session_is_deleted(session))) {
                check_model_add_from_index(&index_check->store->model,
                                           &summary);
            }
            continue;
        }
        field = check_session_summary(index_check, &summary);
        if (field != NULL) {
            report_summary(index_check, &summary, field);
        }
        if (field != NULL && !index_check->store->has_rewritten) {
            return;
        }
    }
    index_check->segment->has_summaries = true;
    if (postings < index_check->segment->record_count) {
        report_difference(index_check, "records of the log have no posting");
    }
}

/* Whether the index belongs to this segment and to its present end. */
static bool index_is_of_segment(const struct index_check *index_check,
                                const struct wal__index_header *header)
{
    const struct check_segment *segment = index_check->segment;
    const struct wal__scan_result *facts = segment->facts;

    if (memcmp(header->uuid, index_check->store->reader.uuid,
               sizeof(header->uuid)) != 0 ||
        header->id != segment->head->id) {
        report_damage(index_check,
                      "the index belongs to another segment or store");
        return false;
    }
    if (!segment->has_lost_records &&
        (header->end != facts->end ||
         header->last_sequence != facts->last_sequence ||
         /* Rebuilt indexes of older segments record no COMMIT. */
         (header->commit_offset != 0 &&
          (header->chain != facts->chain ||
           header->commit_offset != facts->commit_offset ||
           header->epoch != facts->epoch)))) {
        if (header->end < facts->end) {
            report_damage(index_check, "the index ends before the log");
        } else if (!check_segment_has_grown(segment)) {
            report_damage(index_check, "the index ends where the log does not");
        }
        return false;
    }
    return true;
}

/* Decodes an index and compares it if it is valid. */
static enum wal__fmt check_bytes(struct index_check *index_check,
                                 struct wal__span bytes)
{
    struct wal__pack_index pack;
    const char *fault;
    enum wal__fmt fmt;

    if (!index_check->segment->head->is_pack) {
        fmt = wal__index_decode(bytes, &index_check->index);
        if (fmt == WAL__FMT_OK &&
            index_is_of_segment(index_check, &index_check->index.header)) {
            check_summaries(index_check);
        }
        return fmt;
    }
    fmt = wal__pack_index_decode(bytes, &pack);
    if (fmt == WAL__FMT_OK && index_is_of_segment(index_check, &pack.header)) {
        fault = check_pack_index(index_check->segment, &pack);
        if (fault != NULL) {
            report_difference(index_check, fault);
        }
    }
    return fmt;
}

/* --- INDEX, SEAL, trailer ------------------------------------------------- */

/* Reads the frame at an offset. False unless it is whole and has that type. The
 * payload is valid until the next fetch. */
static bool read_frame(struct index_check *index_check, struct cli_file *file,
                       uint64_t at, uint8_t type, struct wal__span *payload)
{
    const struct check_segment *segment = index_check->segment;
    struct wal__frame frame;
    const uint8_t *bytes = cli_file_fetch(file, at, WAL__FRAME_SIZE);

    index_check->offset = at;
    index_check->size = WAL__FRAME_SIZE;
    if (bytes == NULL ||
        wal__frame_decode(bytes, file->size - at, segment->head->header.salt,
                          at, &frame) != WAL__FMT_OK ||
        frame.type != type) {
        return false;
    }
    index_check->size = wal__frame_total_size(frame.stored_size);
    bytes = cli_file_fetch(file, at, index_check->size);
    if (bytes == NULL ||
        wal__frame_check_data(&frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return false;
    }
    *payload = (struct wal__span){bytes + WAL__FRAME_SIZE, frame.stored_size};
    return true;
}

static void report_index_frame(const struct index_check *index_check)
{
    const struct check_segment *segment = index_check->segment;

    if (check_index_end(index_check->store, segment->head->id,
                        segment->head->is_pack) == segment->head->known_end) {
        check_damage_add_note(&index_check->store->damages, index_check->file,
                              index_check->offset, index_check->size,
                              "the INDEX frame is damaged; the segment's file "
                              "in index/ replaces it");
    } else {
        report_damage(index_check, "the INDEX frame is damaged");
    }
}

/* Returns the expected offset of SEAL, or 0 if it is unknown. */
static uint64_t check_index_frame(struct index_check *index_check,
                                  struct cli_file *file)
{
    uint64_t at = index_check->segment->head->known_end;
    struct wal__span payload;
    enum wal__fmt fmt;

    if (!read_frame(index_check, file, at, WAL__FRAME_INDEX, &payload)) {
        report_index_frame(index_check);
        return index_check->segment->head->has_trailer
                   ? index_check->segment->head->trailer.seal_offset
                   : 0;
    }
    fmt = check_bytes(index_check, payload);
    if (fmt != WAL__FMT_OK && fmt != WAL__FMT_VERSION) {
        report_damage(index_check, "the INDEX frame's payload is not valid");
    }
    return index_check->offset + index_check->size;
}

static void check_seal_frame(struct index_check *index_check,
                             struct cli_file *file, uint64_t at)
{
    const struct check_segment *segment = index_check->segment;
    struct wal__span payload;
    struct wal__seal_record seal;

    if (at == 0 || at + WAL__FRAME_SIZE > file->size) {
        return;
    }
    if (!read_frame(index_check, file, at, WAL__FRAME_SEAL, &payload) ||
        wal__seal_record_decode(payload, &seal) != WAL__FMT_OK) {
        report_damage(index_check, "the SEAL frame is damaged");
        return;
    }
    if (seal.end != segment->head->known_end || seal.index_offset != seal.end ||
        (!segment->has_lost_records &&
         (seal.last_sequence != segment->facts->last_sequence ||
          seal.chain != segment->facts->chain))) {
        report_difference(index_check, "the SEAL frame differs from the log");
    }
}

static void check_trailer(struct index_check *index_check,
                          struct cli_file *file)
{
    const struct check_segment *segment = index_check->segment;
    const struct wal__trailer *trailer = &segment->head->trailer;

    if (segment->head->size < segment->head->header.capacity) {
        return; /* truncated: already reported */
    }
    index_check->offset = segment->head->header.capacity - WAL__TRAILER_SIZE;
    index_check->size = WAL__TRAILER_SIZE;
    if (!segment->head->has_trailer) {
        static const uint8_t zeros[WAL__TRAILER_SIZE];
        const uint8_t *bytes =
            cli_file_fetch(file, index_check->offset, index_check->size);

        /* A crash between SEAL and trailer leaves a tail without trailer. */
        if (segment->next != NULL || bytes == NULL ||
            memcmp(bytes, zeros, sizeof(zeros)) != 0) {
            report_damage(index_check, "the trailer is damaged");
        }
        return;
    }
    if (trailer->end != segment->head->known_end ||
        (!segment->has_lost_records &&
         (trailer->last_sequence != segment->facts->last_sequence ||
          trailer->chain != segment->facts->chain))) {
        report_difference(index_check, "the trailer differs from the log");
    }
}

/* The bytes between SEAL and trailer are never written. */
static void check_gap(struct index_check *index_check, struct cli_file *file)
{
    const struct check_segment *segment = index_check->segment;
    uint64_t at =
        segment->head->trailer.seal_offset + WAL__FRAME_SIZE + WAL__SEAL_SIZE;
    uint64_t end = segment->head->header.capacity - WAL__TRAILER_SIZE;

    if (!segment->head->has_trailer || end > file->size) {
        return;
    }
    for (; at + 8 <= end; at += 8) {
        static const uint8_t zeros[8];
        const uint8_t *bytes = cli_file_fetch(file, at, sizeof(zeros));

        if (bytes == NULL || memcmp(bytes, zeros, sizeof(zeros)) != 0) {
            check_damage_add_note(
                &index_check->store->damages, index_check->file, at, 8,
                bytes == NULL
                    ? "cannot be read; no record is there"
                    : "bytes that are never written are not zero; no record "
                      "is there");
            return;
        }
    }
}

static bool is_sealed(struct check_segment *segment, struct cli_file *file)
{
    uint64_t at = segment->facts->end;
    const uint8_t *bytes;
    struct wal__frame frame;

    if (segment->head->has_trailer || segment->index != NULL ||
        segment->facts->sealed_end != 0 || segment->facts->index_offset != 0) {
        return true;
    }
    if (segment->head->known_end == 0 || at + WAL__FRAME_SIZE > file->size) {
        return false;
    }
    bytes = cli_file_fetch(file, at, WAL__FRAME_SIZE);
    return bytes != NULL &&
           wal__frame_decode(bytes, file->size - at, segment->head->header.salt,
                             at, &frame) == WAL__FMT_OK &&
           frame.type == WAL__FRAME_INDEX;
}

static void check_sealed(struct index_check *index_check)
{
    struct check_segment *segment = index_check->segment;
    struct cli_file file;
    uint64_t seal;

    index_check->file = segment->head->name;
    if (cli_file_open(&file, segment->path) != 0) {
        return; /* the scan reported it */
    }
    if (segment->head->known_end != 0 && is_sealed(segment, &file) &&
        segment->head->known_end + WAL__FRAME_SIZE <= file.size) {
        /* A crash while sealing leaves INDEX without SEAL and trailer. */
        if (segment->next == NULL && !segment->head->has_trailer &&
            segment->facts->sealed_end == 0) {
            cli_file_close(&file);
            return;
        }
        seal = check_index_frame(index_check, &file);
        check_seal_frame(index_check, &file, seal);
        check_trailer(index_check, &file);
        check_gap(index_check, &file);
    }
    cli_file_close(&file);
}

/* --- index/ID.idx --------------------------------------------------------- */

static void check_index_file(struct index_check *index_check)
{
    uint64_t size = 0;
    char name[CHECK_INDEX_NAME];
    uint8_t *bytes;
    enum wal__fmt fmt;
    int error;

    check_index_name(index_check->segment->head->id,
                     index_check->segment->head->is_pack, name);
    index_check->file = name;
    index_check->offset = 0;
    bytes = check_index_read(index_check->store, name, &size, &error);
    index_check->size = size;
    if (bytes == NULL && error != ENOENT) {
        check_damage_add_note(&index_check->store->damages, name, 0, size,
                              "cannot be read: %s%s", cli_file_error(error),
                              rebuilt);
    } else if (bytes != NULL) {
        fmt = check_bytes(index_check, (struct wal__span){bytes, (size_t)size});
        if (fmt != WAL__FMT_OK && fmt != WAL__FMT_VERSION) {
            report_damage(index_check, wal__fmt_text(fmt));
        }
    }
    free(bytes);
}

void check_indexes(struct check_store *store, struct check_segment *segment)
{
    struct index_check index_check = {.store = store, .segment = segment};

    check_sealed(&index_check);
    check_index_file(&index_check);
    if (wal__segment_is_rewritten(&segment->head->header) &&
        !segment->has_summaries) {
        store->is_approximate = true;
    }
    for (size_t i = 0; i < segment->damages.count; i++) {
        check_damage_sort_sequences(&segment->damages.items[i]);
    }
}
