/*
 * segment.c - scans one segment: its records and its damage (SPEC.md 2.3, 3.1
 * to 3.4).
 *
 * Invariant: a scan accesses only its own segment, so that scans of several
 * segments may run concurrently.
 *
 * Threads: check_segment_scan any thread, one per segment; all other functions
 * the main thread.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "convert/copy/copy.h"
#include "format/bytes/crc32.h"
#include "format/payload/timestamp.h"
#include "tools/walcheck/pack.h"

struct scan {
    struct check_segment *segment;
    struct check_damages found; /* in the order of facts->damage */
    struct cli_block block;
};

/* Sets the record's time. */
static bool is_valid_entry(struct wal__span payload,
                           const struct wal__frame *frame,
                           struct check_record *record)
{
    struct wal__entry_record entry;

    if (wal__entry_record_decode(payload, &entry) != WAL__FMT_OK ||
        wal__id_hash(entry.id.data, entry.id.size) != frame->id_hash) {
        return false;
    }
    record->time_ms = wal__session_time_of_entry(entry.time, record->clock_ms);
    record->is_erased = entry.is_erased;
    return true;
}

/* Whether an entry that records lines of a copied file is readable; true for
 * any other entry. */
static bool is_sound_copy(struct wal__span payload,
                          const struct wal__frame *frame)
{
    struct wal__entry_record entry;

    return frame->stream != WAL__COPY_STREAM ||
           wal__entry_record_decode(payload, &entry) != WAL__FMT_OK ||
           entry.is_erased || entry.type.size != strlen(WAL__COPY_TYPE) ||
           memcmp(entry.type.data, WAL__COPY_TYPE, entry.type.size) != 0 ||
           wal__copy_chunk_is_valid(
               (struct wal_slice){entry.payload.data, entry.payload.size});
}

static bool is_valid_document(struct wal__span payload,
                              const struct wal__frame *frame)
{
    struct wal__doc_record doc;

    return wal__doc_record_decode(payload, &doc) == WAL__FMT_OK &&
           wal__id_hash(doc.key.data, doc.key.size) == frame->id_hash &&
           (doc.value.size > 0) == (frame->type == WAL__FRAME_DOC);
}

static void add_reference(struct check_segment *segment,
                          const struct wal__frame *frame, uint64_t offset,
                          struct wal__span payload)
{
    struct check_reference reference = {
        .sequence = frame->sequence,
        .segment = segment,
        .offset = (uint32_t)offset,
        .stored_size = frame->stored_size,
        .session = frame->session,
        .type = frame->type,
    };

    if (!check_reference_decode(payload, &reference)) {
        return;
    }
    segment->references =
        cli_reserve(segment->references, segment->reference_count,
                    &segment->reference_capacity, sizeof(*segment->references));
    segment->references[segment->reference_count++] = reference;
}

/* Checks entries and documents here, because their payloads are large; keeps
 * all other payloads for the replay. */
static void copy_payload(struct check_segment *segment,
                         const struct wal__frame *frame, uint64_t offset,
                         const uint8_t *bytes, struct check_record *record)
{
    const struct wal__span payload = {bytes, frame->stored_size};
    bool entry = frame->type == WAL__FRAME_ENTRY;

    if (!entry && frame->type != WAL__FRAME_DOC &&
        frame->type != WAL__FRAME_DOC_DELETE) {
        if (payload.size > 0) {
            record->payload = cli_alloc(payload.size);
            memcpy(record->payload, payload.data, payload.size);
        }
        return;
    }
    if ((frame->flags & WAL__FRAME_LZ4) == 0 &&
        !(entry ? is_valid_entry(payload, frame, record)
                : is_valid_document(payload, frame))) {
        struct check_damage *damage = check_damage_add(
            &segment->damages, segment->head->name, offset,
            wal__frame_total_size(frame->stored_size),
            "the %s of sequence %" PRIu64 " is not well-formed",
            entry ? "entry" : "document", frame->sequence);

        check_damage_session(damage, frame->session);
    } else if ((frame->flags & WAL__FRAME_LZ4) == 0) {
        add_reference(segment, frame, offset, payload);
        if (entry && !is_sound_copy(payload, frame)) {
            struct check_damage *damage = check_damage_add(
                &segment->damages, segment->head->name, offset,
                wal__frame_total_size(frame->stored_size),
                "the lines of a copy in sequence %" PRIu64 " cannot be read",
                frame->sequence);

            check_damage_session(damage, frame->session);
        }
    }
}

void check_segment_add_record(struct check_segment *segment,
                              const struct wal__frame *frame, uint64_t offset,
                              const uint8_t *payload, int64_t clock_ms)
{
    struct check_record *record;

    segment->records =
        cli_reserve(segment->records, segment->record_count,
                    &segment->record_capacity, sizeof(*segment->records));
    record = &segment->records[segment->record_count++];
    *record = (struct check_record){
        .posting = {.offset = (uint32_t)offset,
                    .type = frame->type,
                    .flags = frame->flags,
                    .stream = frame->stream,
                    .kind = frame->kind,
                    .sequence = frame->sequence,
                    .parent = frame->parent,
                    .id_hash = frame->id_hash},
        .session = frame->session,
        .stored_size = frame->stored_size,
        .clock_ms = clock_ms,
    };
    copy_payload(segment, frame, offset, payload, record);
}

static bool scan_piece(void *ctx, const struct wal__scan_range *piece)
{
    struct scan *scan = ctx;
    struct check_segment *segment = scan->segment;
    int64_t clock_ms = piece->commit != NULL ? piece->commit->clock_ms
                                             : segment->facts->clock_ms;
    uint64_t at = 0;

    while (at < piece->size) {
        struct wal__frame frame;

        if (wal__frame_decode(piece->bytes + at, piece->size - at,
                              segment->head->header.salt, piece->offset + at,
                              &frame) != WAL__FMT_OK) {
            return false; /* unreachable: the scan passes valid frames only */
        }
        if (segment->head->is_pack && wal__frame_is_sequenced(frame.type)) {
            check_pack_add_record(segment, &frame, piece->offset + at,
                                  piece->bytes + at + WAL__FRAME_SIZE);
        } else if (wal__frame_is_sequenced(frame.type)) {
            check_segment_add_record(segment, &frame, piece->offset + at,
                                     piece->bytes + at + WAL__FRAME_SIZE,
                                     clock_ms);
        } else if (frame.type == WAL__FRAME_BLOCK) {
            check_block_scan(segment, &scan->block, &frame, piece->offset + at,
                             piece->bytes + at + WAL__FRAME_SIZE, clock_ms);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    return true;
}

/* Adds the damage that the scan found since the last call. */
static void add_scan_damage(struct scan *scan)
{
    const struct wal__scan_result *facts = scan->segment->facts;
    uint32_t count = facts->damage_count < WAL__DAMAGE_MAX
                         ? facts->damage_count
                         : (uint32_t)WAL__DAMAGE_MAX;

    for (size_t i = scan->found.count; i < count; i++) {
        const struct wal__damage *damage = &facts->damage[i];
        struct check_damage *added = check_damage_add(
            &scan->found, scan->segment->head->name, damage->offset,
            damage->size,
            damage->size == 0
                ? "records are missing here: their frames are not in the log"
                : "acknowledged bytes are damaged");

        added->first_sequence = damage->first_sequence;
        added->last_sequence = damage->last_sequence;
    }
}

static bool scan_lost_session(void *ctx, uint32_t session)
{
    struct scan *scan = ctx;

    add_scan_damage(scan);
    if (scan->found.count > 0) {
        check_damage_session(&scan->found.items[scan->found.count - 1],
                             session);
    }
    return true;
}

/* Frames in a damaged range whose header is valid name the session that lost a
 * record. */
static void read_lost(struct check_segment *segment, struct cli_file *file,
                      struct check_damage *damage, uint64_t limit)
{
    uint64_t at = damage->offset;
    uint64_t end = damage->offset + damage->length;

    while (at < end && at + WAL__FRAME_SIZE <= limit) {
        const uint8_t *bytes = cli_file_fetch(file, at, WAL__FRAME_SIZE);
        struct wal__frame frame;

        if (bytes == NULL) {
            return;
        }
        if (wal__frame_decode(bytes, limit - at, segment->head->header.salt, at,
                              &frame) != WAL__FMT_OK) {
            at += WAL__FRAME_ALIGN;
            continue;
        }
        if (segment->head->is_pack && wal__frame_is_sequenced(frame.type)) {
            check_pack_add_lost(segment, frame.id_hash, at);
        } else if (wal__frame_is_sequenced(frame.type) ||
                   frame.type == WAL__FRAME_BLOCK) {
            check_damage_session(damage, frame.session);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
}

uint64_t check_segment_last_sequence(const struct check_segment *segment)
{
    return wal__segment_is_rewritten(&segment->head->header)
               ? segment->head->header.rewrite.last_sequence
               : segment->facts->last_sequence;
}

uint32_t check_segment_chain(const struct check_segment *segment)
{
    return wal__segment_is_rewritten(&segment->head->header)
               ? segment->head->header.rewrite.original_chain
               : segment->facts->chain;
}

uint64_t check_segment_original_end(const struct check_segment *segment)
{
    return wal__segment_is_rewritten(&segment->head->header)
               ? segment->head->header.rewrite.original_end
               : segment->facts->end;
}

/* Sets the lost sequences of damage at the segment's end, which the scan cannot
 * bound. */
static void bound_final_damage(const struct check_segment *segment,
                               struct check_damages *found)
{
    const struct check_segment *next = segment->next;
    uint64_t last = 0;

    if (next != NULL && next->head->has_open) {
        last = next->head->open.last_sequence;
    } else if (segment->head->has_trailer) {
        last = segment->head->trailer.last_sequence;
    }
    if (found->count > 0) {
        struct check_damage *damage = &found->items[found->count - 1];

        if (damage->last_sequence == 0 && last >= damage->first_sequence &&
            segment->facts->last_sequence < damage->first_sequence) {
            damage->last_sequence = last;
        }
    }
    for (size_t i = 0; i < found->count; i++) {
        if (found->items[i].last_sequence == 0) {
            found->items[i].first_sequence = 0;
        }
    }
}

static void report_verdict(struct check_segment *segment, struct cli_file *file,
                           const struct wal__scan_start *start)
{
    const struct wal__scan_result *facts = segment->facts;

    if (facts->verdict == WAL__VERDICT_NEWER) {
        check_damage_add(
            &segment->damages, segment->head->name, facts->error_offset,
            WAL__FRAME_SIZE,
            "a frame of a newer format: nothing after it was checked");
        segment->has_lost_records = true;
    } else if (facts->verdict == WAL__VERDICT_READ_ERROR) {
        check_damage_add(&segment->damages, segment->head->name,
                         file->error_offset, 0, "cannot be read: %s",
                         cli_file_error(file->error));
        segment->has_lost_records = true;
    } else if (start->capacity == segment->head->known_end &&
               facts->end != segment->head->known_end &&
               facts->verdict != WAL__VERDICT_DAMAGED) {
        check_damage_add(&segment->damages, segment->head->name, facts->end,
                         segment->head->known_end - facts->end,
                         "the log ends before the end that is recorded for it");
        segment->has_lost_records = true;
    }
}

static void read_index_header(struct check_segment *segment,
                              struct cli_file *file)
{
    uint64_t at = segment->head->known_end;
    struct wal__frame frame;
    struct wal__index index;
    const uint8_t *bytes;

    if (at == 0 || at + WAL__FRAME_SIZE > segment->head->size) {
        return;
    }
    bytes = cli_file_fetch(file, at, WAL__FRAME_SIZE);
    if (bytes == NULL ||
        wal__frame_decode(bytes, segment->head->size - at,
                          segment->head->header.salt, at,
                          &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_INDEX) {
        return;
    }
    bytes = cli_file_fetch(file, at, wal__frame_total_size(frame.stored_size));
    if (bytes != NULL &&
        wal__frame_check_data(&frame, bytes + WAL__FRAME_SIZE) == WAL__FMT_OK &&
        wal__index_decode(
            (struct wal__span){bytes + WAL__FRAME_SIZE, frame.stored_size},
            &index) == WAL__FMT_OK) {
        segment->index = cli_alloc(sizeof(*segment->index));
        *segment->index = index.header;
    }
}

/* A tail that has INDEX or SEAL ends before them. */
static void apply_seal(struct check_segment *segment)
{
    const struct wal__scan_result *facts = segment->facts;

    if (facts->sealed_end != 0) {
        segment->head->known_end = facts->sealed_end;
    } else if (facts->index_offset != 0) {
        segment->head->known_end = facts->index_offset;
    }
}

void check_segment_scan(const struct check_store *store,
                        struct check_segment *segment)
{
    struct scan scan = {.segment = segment};
    const struct wal__scan_sink sink = {&scan, scan_piece, scan_lost_session};
    struct wal__scan_start start;
    struct cli_file file;
    int error = cli_file_open(&file, segment->path);

    (void)store;
    segment->facts = cli_alloc(sizeof(*segment->facts));
    if (error != 0) {
        *segment->facts = (struct wal__scan_result){0};
        segment->facts->verdict = WAL__VERDICT_READ_ERROR;
        segment->has_lost_records = true;
        check_damage_add(&segment->damages, segment->head->name, 0, 0,
                         "cannot be opened: %s", cli_file_error(error));
        return;
    }
    const struct wal__scan_source source = {&file, cli_file_fetch};

    wal__damaged_init_start(segment->head, &start);
    wal__scan(&source, &sink, &start, segment->facts);
    segment->head->is_scanned = true;
    segment->head->last_sequence = segment->facts->last_sequence;
    segment->head->chain = segment->facts->chain;
    cli_block_deinit(&scan.block);
    add_scan_damage(&scan);
    bound_final_damage(segment, &scan.found);
    for (size_t i = 0; i < scan.found.count; i++) {
        read_lost(segment, &file, &scan.found.items[i], start.capacity);
    }
    segment->has_lost_records |= scan.found.count > 0;
    check_damages_move(&segment->damages, &scan.found);
    report_verdict(segment, &file, &start);
    apply_seal(segment);
    read_index_header(segment, &file);
    if (file.bad_end != 0) {
        check_damage_add(&segment->damages, segment->head->name,
                         file.bad_offset, file.bad_end - file.bad_offset,
                         "cannot be read: %s", cli_file_error(file.error));
        segment->has_lost_records = true;
    }
    cli_file_close(&file);
    if (wal__segment_is_rewritten(&segment->head->header)) {
        check_block_finish(segment);
    }
}

enum wal__fmt check_session_decode(const struct check_segment *segment,
                                   struct wal__span payload,
                                   struct wal__session_record *record)
{
    uint32_t version = segment->head->header.version;
    enum wal__fmt fmt = wal__session_record_decode(payload, version, record);

    /* The version is lost with the header; a payload decodes in one layout
     * only. */
    if (fmt != WAL__FMT_OK && segment->head->salt_found) {
        fmt = wal__session_record_decode(payload, version == 0 ? 1 : 0, record);
    }
    return fmt;
}

void check_segment_deinit(struct check_segment *segment)
{
    for (size_t i = 0; i < segment->record_count; i++) {
        free(segment->records[i].payload);
    }
    free(segment->records);
    free(segment->facts);
    free(segment->index);
    free(segment->references);
    free(segment->blobs);
    free(segment->lost_blobs);
    free(segment->path);
    check_damages_deinit(&segment->damages);
    free(segment);
}

bool check_segment_has_grown(const struct check_segment *segment)
{
    const uint8_t *bytes = NULL;
    struct wal__frame frame;
    struct cli_file file;
    bool has_frame;

    if (cli_file_open(&file, segment->path) != 0) {
        return false;
    }
    bytes = cli_file_fetch(&file, segment->facts->end, WAL__FRAME_SIZE);
    has_frame = bytes != NULL &&
                wal__frame_decode(bytes, file.size - segment->facts->end,
                                  segment->head->header.salt,
                                  segment->facts->end, &frame) == WAL__FMT_OK;
    cli_file_close(&file);
    return has_frame;
}

uint32_t check_session_flags(uint32_t record_flags)
{
    return ((record_flags & WAL__SESSION_RECORD_FORK) != 0
                ? (uint32_t)WAL__SUMMARY_FORK
                : 0) |
           ((record_flags & WAL__SESSION_RECORD_TRASHED) != 0
                ? (uint32_t)WAL__SUMMARY_TRASHED
                : 0) |
           ((record_flags & WAL__SESSION_RECORD_MOVED) != 0
                ? (uint32_t)WAL__SUMMARY_MOVED
                : 0);
}
