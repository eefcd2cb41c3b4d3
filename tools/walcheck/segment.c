/*
 * segment.c - the segments of a store: scanning one for its records and its damage (SPEC.md 2.3,
 * 3.1 to 3.4), the blocks of rewritten ones (2.22, 2.23), and their chain.
 *
 * The segments of a folder and their chain (3.5) are those of the reader of damaged stores; what is
 * damaged in their heads (2.2, 2.4) and segments that are not in the chain are reported here.
 *
 * Invariant: a scan accesses only its own segment, so that scans of several segments may run
 * concurrently. The records of a segment ascend by sequence, each once, wherever its blocks have
 * them.
 *
 * Threads: check_segment_scan and what it calls any thread, one per segment; all other functions
 * the main thread.
 */
#include "tools/walcheck/walcheck.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/copy/copy.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/payload/timestamp.h"

/* --- records ------------------------------------------------------------ */

struct scan {
    struct check_segment *segment;
    struct wal__damaged_store found; /* the scan's facts, and its damage */
    struct wal__damaged_block block;
    int64_t clock_ms; /* of the group that is read */
};

/* Sets the record's time. */
static bool is_valid_entry(struct wal__span payload, const struct wal__frame *frame,
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

/* Whether an entry that records lines of a copied file is readable; true for any other entry. */
static bool is_sound_copy(struct wal__span payload, const struct wal__frame *frame)
{
    struct wal__entry_record entry;

    return frame->stream != WAL__COPY_STREAM ||
           wal__entry_record_decode(payload, &entry) != WAL__FMT_OK || entry.is_erased ||
           entry.type.size != strlen(WAL__COPY_TYPE) ||
           memcmp(entry.type.data, WAL__COPY_TYPE, entry.type.size) != 0 ||
           wal__copy_chunk_is_valid((struct wal_slice){entry.payload.data, entry.payload.size});
}

static bool is_valid_document(struct wal__span payload, const struct wal__frame *frame)
{
    struct wal__doc_record doc;

    return wal__doc_record_decode(payload, &doc) == WAL__FMT_OK &&
           wal__id_hash(doc.key.data, doc.key.size) == frame->id_hash &&
           (doc.value.size > 0) == (frame->type == WAL__FRAME_DOC);
}

static void add_reference(struct check_segment *segment, const struct wal__frame *frame,
                          uint64_t offset, struct wal__span payload)
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
    *CLI_PUSH(segment->references, segment->reference_count, segment->reference_capacity) =
        reference;
}

/* Checks entries and documents here, because their payloads are large; keeps all other payloads for
 * the replay. */
static void copy_payload(struct check_segment *segment, const struct wal__frame *frame,
                         uint64_t offset, const uint8_t *bytes, struct check_record *record)
{
    const struct wal__span payload = {bytes, frame->stored_size};
    bool entry = frame->type == WAL__FRAME_ENTRY;

    if (!entry && frame->type != WAL__FRAME_DOC && frame->type != WAL__FRAME_DOC_DELETE) {
        if (payload.size > 0) {
            record->payload = cli_alloc(payload.size);
            memcpy(record->payload, payload.data, payload.size);
        }
        return;
    }
    if ((frame->flags & WAL__FRAME_LZ4) == 0 &&
        !(entry ? is_valid_entry(payload, frame, record) : is_valid_document(payload, frame))) {
        struct check_damage *damage =
            check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, offset,
                             wal__frame_total_size(frame->stored_size),
                             "the %s of sequence %" PRIu64 " is not well-formed",
                             entry ? "entry" : "document", frame->sequence);

        check_damage_session(damage, frame->session);
    } else if ((frame->flags & WAL__FRAME_LZ4) == 0) {
        add_reference(segment, frame, offset, payload);
        if (entry && !is_sound_copy(payload, frame)) {
            struct check_damage *damage = check_damage_add(
                &segment->damages, CHECK_LOSS, segment->head->name, offset,
                wal__frame_total_size(frame->stored_size),
                "the lines of a copy in sequence %" PRIu64 " cannot be read", frame->sequence);

            check_damage_session(damage, frame->session);
        }
    }
}

/* Adds a record that a scan found. */
static void segment_add_record(struct check_segment *segment, const struct wal__frame *frame,
                               uint64_t offset, const uint8_t *payload, int64_t clock_ms)
{
    struct check_record *record;

    record = CLI_PUSH(segment->records, segment->record_count, segment->record_capacity);
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

/* --- blocks ------------------------------------------------------------- */

static void report_block(struct check_segment *segment, uint64_t offset,
                         const struct wal__frame *frame, uint32_t rank, enum wal__fmt fmt)
{
    uint64_t size = wal__frame_total_size(frame->stored_size);
    struct check_damage *damage =
        rank == 0
            ? check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, offset, size,
                               "the records of a BLOCK cannot be read: %s", wal__fmt_text(fmt))
            : check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, offset, size,
                               "record %" PRIu32 " of a BLOCK, and those after it, cannot be "
                               "read: %s",
                               rank, wal__fmt_text(fmt));

    check_damage_session(damage, frame->session);
    segment->has_lost_records = true;
}

/* Functions of a visitor: take a record, and the records of a BLOCK. */
static enum wal_status add_record(void *ctx, const struct wal__damaged_segment *head,
                                  const struct wal__frame *frame, uint64_t offset,
                                  const uint8_t *payload)
{
    struct scan *scan = ctx;

    if (head->is_pack) {
        check_pack_add_record(scan->segment, frame, offset, payload);
    } else {
        segment_add_record(scan->segment, frame, offset, payload, scan->clock_ms);
    }
    return WAL_OK;
}

static enum wal_status add_block(void *ctx, const struct wal__damaged_segment *head,
                                 const struct wal__frame *frame, uint64_t offset,
                                 const uint8_t *payload)
{
    struct scan *scan = ctx;
    struct wal__damaged_block *block = &scan->block;
    struct wal__block_cursor cursor;
    struct wal__span bytes;
    struct wal__frame record;
    enum wal__fmt fmt;
    uint32_t rank = 0;

    (void)!wal__damaged_block_unpack(block, frame, payload, offset, &fmt);
    if (fmt == WAL__FMT_OK) {
        wal__block_cursor_begin(&cursor, wal__damaged_block_records(block), block->count,
                                head->header.salt, offset);
    }
    while (fmt == WAL__FMT_OK) {
        uint64_t at = cursor.offset;

        fmt = wal__block_cursor_next(&cursor, &record, &bytes);
        if (fmt == WAL__FMT_OK) {
            (void)!add_record(scan, head, &record, at, bytes.data);
            rank++;
        }
    }
    if (fmt != WAL__FMT_ZERO) {
        report_block(scan->segment, offset, frame, rank, fmt);
    }
    return WAL_OK;
}

static int by_sequence(const void *a, const void *b)
{
    const struct check_record *x = a;
    const struct check_record *y = b;

    if (x->posting.sequence != y->posting.sequence) {
        return x->posting.sequence < y->posting.sequence ? -1 : 1;
    }
    return x->posting.offset < y->posting.offset ? -1 : x->posting.offset > y->posting.offset;
}

/* Whether the record may be in the segment, after `last`. Reports it if not. */
static bool is_in_range(struct check_segment *segment, const struct check_record *record,
                        uint64_t last)
{
    const uint64_t sequence = record->posting.sequence;
    const char *why = NULL;

    if (sequence == last) {
        why = "is a repeat";
    } else if (sequence <= segment->head->open.last_sequence ||
               sequence > segment->head->header.rewrite.last_sequence) {
        why = "is not in the range of the segment";
    }
    if (why != NULL) {
        struct check_damage *damage = check_damage_add(
            &segment->damages, CHECK_LOSS, segment->head->name,
            wal__block_offset(record->posting.offset), 0, "sequence %" PRIu64 " %s", sequence, why);

        check_damage_session(damage, record->session);
    }
    return why == NULL;
}

/* Whether the records are as many bytes as the header says. */
static void check_size(struct check_segment *segment)
{
    const struct wal__rewrite *rewrite = &segment->head->header.rewrite;
    uint64_t size = 0;

    for (size_t i = 0; i < segment->record_count; i++) {
        size += wal__frame_total_size(segment->records[i].stored_size);
    }
    for (size_t i = 0; i < segment->blob_count; i++) {
        size += segment->blobs[i].span;
    }
    if (!segment->has_lost_records && !segment->head->salt_found && size != rewrite->raw_size) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 116, 8,
                         "has %" PRIu64 " bytes of records, and its header "
                         "says %" PRIu64,
                         size, rewrite->raw_size);
    }
}

static void block_finish(struct check_segment *segment)
{
    struct check_record *records = segment->records;
    uint64_t last = 0;
    size_t kept = 0;

    if (segment->record_count > 0) {
        qsort(records, segment->record_count, sizeof(*records), by_sequence);
    }
    for (size_t i = 0; i < segment->record_count; i++) {
        if (is_in_range(segment, &records[i], last)) {
            last = records[i].posting.sequence;
            records[kept++] = records[i];
        } else {
            free(records[i].payload);
        }
    }
    segment->record_count = kept;
    check_size(segment);
}

/* --- what a damaged block lost -------------------------------------------- */

bool check_block_lost(struct check_segment *segment, const struct wal__posting *posting,
                      uint32_t session)
{
    uint64_t at = wal__block_offset(posting->offset);

    for (size_t i = 0; i < segment->damages.count; i++) {
        struct check_damage *damage = &segment->damages.items[i];

        if (damage->kind == CHECK_LOSS && at >= damage->offset &&
            at - damage->offset < damage->length) {
            check_damage_session(damage, session);
            check_damage_sequence(damage, posting->sequence);
            return true;
        }
    }
    return false;
}

/* --- payloads ------------------------------------------------------------- */

static bool open_segment(struct check_payloads *payloads, const struct check_segment *segment)
{
    if (payloads->segment != segment) {
        check_payload_close(payloads);
        if (check_segment_open(segment, &payloads->file) != 0) {
            return false;
        }
        payloads->segment = segment;
        payloads->block.records.heap = &cli_heap;
    }
    return true;
}

static bool read_in_block(struct check_payloads *payloads, uint64_t offset,
                          struct wal__frame *frame, struct wal__span *payload)
{
    const uint64_t salt = payloads->segment->head->header.salt;
    bool is_read;

    (void)!wal__damaged_block_read(&payloads->block, &payloads->file, salt,
                                   wal__block_offset(offset), &is_read);
    return is_read && wal__block_record(wal__damaged_block_records(&payloads->block), salt, offset,
                                        frame, payload) == WAL__FMT_OK;
}

const uint8_t *check_payload_read(struct check_payloads *payloads,
                                  const struct check_segment *segment, uint64_t offset,
                                  uint32_t stored_size)
{
    struct wal__frame frame;
    struct wal__span payload;

    if (!open_segment(payloads, segment)) {
        return NULL;
    }
    if (wal__segment_is_rewritten(&segment->head->header)) {
        return read_in_block(payloads, offset, &frame, &payload) && payload.size == stored_size
                   ? payload.data
                   : NULL;
    }
    if (!wal__segment_is_encrypted(&segment->head->header)) {
        return wal__damaged_file_fetch(&payloads->file, offset + WAL__FRAME_SIZE, stored_size);
    }
    payload =
        wal__damaged_file_read(&payloads->file, segment->head->header.salt, offset, 0, &frame);
    return payload.size == stored_size ? payload.data : NULL;
}

bool check_record_read(struct check_payloads *payloads, const struct check_segment *segment,
                       uint64_t offset, uint32_t span, struct wal__frame *frame,
                       struct wal__span *payload)
{
    if (!open_segment(payloads, segment)) {
        return false;
    }
    if (wal__segment_is_rewritten(&segment->head->header)) {
        return read_in_block(payloads, offset, frame, payload);
    }
    *payload =
        wal__damaged_file_read(&payloads->file, segment->head->header.salt, offset, 0, frame);
    return payload->data != NULL && wal__frame_total_size(frame->stored_size) <= span;
}

void check_payload_close(struct check_payloads *payloads)
{
    wal__damaged_file_close(&payloads->file);
    wal__buf_deinit(&payloads->block.records);
    *payloads = (struct check_payloads){.segment = NULL};
}

/* --- a segment ---------------------------------------------------------- */

/* Other functions of a visitor. */
static void begin_range(void *ctx, const struct wal__scan_range *range)
{
    struct scan *scan = ctx;

    scan->clock_ms = range->commit != NULL ? range->commit->clock_ms : scan->found.facts.clock_ms;
}

static enum wal_status lose_record(void *ctx, const struct wal__frame *frame, uint64_t offset)
{
    const struct scan *scan = ctx;

    if (scan->segment->head->is_pack) {
        check_pack_add_lost(scan->segment, frame->id_hash, offset);
    }
    return WAL_OK;
}

/* Takes the damage that the scan found. */
static void take_damage(const struct scan *scan)
{
    struct check_segment *segment = scan->segment;

    for (uint32_t i = 0; i < scan->found.damage_count; i++) {
        const struct wal__damaged_range *range = &scan->found.damages[i];
        struct check_damage *damage =
            check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, range->offset,
                             range->size, "%s", range->reason);

        damage->first_sequence = range->first_sequence;
        damage->last_sequence = range->last_sequence;
        for (uint32_t k = 0; k < range->session_count; k++) {
            check_damage_session(damage, range->sessions[k]);
        }
        segment->has_lost_records = true;
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

static void report_verdict(struct check_segment *segment, const struct wal__damaged_file *file)
{
    const struct wal__scan_result *facts = segment->facts;

    if (facts->verdict == WAL__VERDICT_NEWER) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, facts->error_offset,
                         WAL__FRAME_SIZE,
                         "a frame of a newer format: nothing after it was checked");
        segment->has_lost_records = true;
    } else if (facts->verdict == WAL__VERDICT_READ_ERROR) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, file->error_offset, 0,
                         "cannot be read: %s", cli_file_error(file->error));
        segment->has_lost_records = true;
    }
}

static void read_index_header(struct check_segment *segment, struct wal__damaged_file *file)
{
    uint64_t at = segment->head->known_end;
    struct wal__frame frame;
    struct wal__index index;
    struct wal__span payload;

    if (at == 0 || at + WAL__FRAME_SIZE > segment->head->size) {
        return;
    }
    payload =
        wal__damaged_file_read(file, segment->head->header.salt, at, WAL__FRAME_INDEX, &frame);
    if (payload.data != NULL && wal__index_decode(payload, &index) == WAL__FMT_OK) {
        segment->index = cli_alloc(sizeof(*segment->index));
        *segment->index = index.header;
    }
}

/* Whether the segment is encrypted, and the keys are not known. */
static bool is_locked(const struct check_segment *segment)
{
    return wal__segment_is_encrypted(&segment->head->header) &&
           segment->reader->env.keyring == NULL;
}

void check_segment_scan(struct check_segment *segment)
{
    struct scan scan = {
        .segment = segment, .found.env = segment->reader->env, .block.records.heap = &cli_heap};
    const struct wal__damaged_visitor visitor = {.ctx = &scan,
                                                 .range = begin_range,
                                                 .record = add_record,
                                                 .block = add_block,
                                                 .lost = lose_record};
    struct wal__damaged_file file;
    int error = check_segment_open(segment, &file);

    segment->facts = cli_alloc(sizeof(*segment->facts));
    if (error != 0) {
        *segment->facts = (struct wal__scan_result){0};
        segment->facts->verdict = WAL__VERDICT_READ_ERROR;
        segment->has_lost_records = true;
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0, 0,
                         "cannot be opened: %s", cli_file_error(error));
        return;
    }
    (void)!wal__damaged_scan_file(&scan.found, segment->head, &file, &visitor);
    wal__buf_deinit(&scan.block.records);
    *segment->facts = scan.found.facts;
    take_damage(&scan);
    wal__damaged_close(&scan.found);
    report_verdict(segment, &file);
    read_index_header(segment, &file);
    if (file.bad_end != 0) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, file.bad_offset,
                         file.bad_end - file.bad_offset, "cannot be read: %s",
                         cli_file_error(file.error));
        segment->has_lost_records = true;
    }
    wal__damaged_file_close(&file);
    if (wal__segment_is_rewritten(&segment->head->header) && !is_locked(segment)) {
        block_finish(segment);
    }
}

enum wal__fmt check_session_decode(const struct check_segment *segment, struct wal__span payload,
                                   struct wal__session_record *record)
{
    uint32_t version = segment->head->header.version;
    enum wal__fmt fmt = wal__session_record_decode(payload, version, record);

    /* The version is lost with the header; a payload decodes in one layout only. */
    if (fmt != WAL__FMT_OK && segment->head->salt_found) {
        fmt = wal__session_record_decode(payload, version == 0 ? 1 : 0, record);
    }
    return fmt;
}

bool check_segment_has_grown(const struct check_segment *segment)
{
    const uint8_t *bytes = NULL;
    struct wal__frame frame;
    struct wal__damaged_file file;
    bool has_frame;

    if (check_segment_open(segment, &file) != 0) {
        return false;
    }
    bytes = wal__damaged_file_fetch(&file, segment->facts->end, WAL__FRAME_SIZE);
    has_frame = bytes != NULL && wal__frame_decode(bytes, file.size - segment->facts->end,
                                                   segment->head->header.salt, segment->facts->end,
                                                   &frame) == WAL__FMT_OK;
    wal__damaged_file_close(&file);
    return has_frame;
}

uint32_t check_session_flags(uint32_t record_flags)
{
    return ((record_flags & WAL__SESSION_RECORD_FORK) != 0 ? (uint32_t)WAL__SUMMARY_FORK : 0) |
           ((record_flags & WAL__SESSION_RECORD_TRASHED) != 0 ? (uint32_t)WAL__SUMMARY_TRASHED
                                                              : 0) |
           ((record_flags & WAL__SESSION_RECORD_MOVED) != 0 ? (uint32_t)WAL__SUMMARY_MOVED : 0);
}

/* --- the chain ---------------------------------------------------------- */

enum {
    HEADER_USED = 84,     /* bytes of each copy */
    REWRITTEN_USED = 128, /* of a rewritten segment's */
    ENCRYPTED_USED = 136  /* of an encrypted one's */
};

/* --- heads ---------------------------------------------------------------- */

static void check_header(struct check_segment *segment, const uint8_t *bytes)
{
    int copies = wal__segment_header_copies(bytes);
    const uint64_t copy = WAL__SEGMENT_HEADER_COPY;
    const uint64_t used = wal__segment_is_encrypted(&segment->head->header)   ? ENCRYPTED_USED
                          : wal__segment_is_rewritten(&segment->head->header) ? REWRITTEN_USED
                                                                              : HEADER_USED;

    if (copies < 2) {
        struct wal__segment_header header;
        uint8_t first[WAL__SEGMENT_HEADER_SIZE] = {0};

        memcpy(first, bytes, (size_t)copy);
        check_damage_add(&segment->damages, CHECK_REDUNDANT, segment->head->name,
                         wal__segment_header_decode(first, &header) == WAL__FMT_OK ? copy : 0, used,
                         "one copy of the header is damaged; the other is used, and "
                         "nothing is lost");
    }
    if (!wal__is_zero(bytes + used, copy - used) ||
        !wal__is_zero(bytes + copy + used, copy - used)) {
        check_damage_add(&segment->damages, CHECK_REDUNDANT, segment->head->name, used,
                         WAL__SEGMENT_HEADER_SIZE - used,
                         "the padding of the header is not zero; nothing reads it");
    }
}

/* Compares a valid header with the store, the file name and the file size. */
static void check_identity(const struct check_store *store, struct check_segment *segment)
{
    uint32_t class = segment->head->is_pack ? WAL__CLASS_PACK : WAL__CLASS_LOG;
    const struct wal__segment_header *header = &segment->head->header;
    struct check_damages *damages = &segment->damages;

    if (store->reader.uuid_known &&
        memcmp(header->uuid, store->reader.uuid, sizeof(header->uuid)) != 0) {
        check_damage_add(damages, CHECK_LOSS, segment->head->name, 24, sizeof(header->uuid),
                         "belongs to another store");
        return;
    }
    if (segment->head->fault != NULL && !wal__segment_is_encrypted(header) &&
        store->reader.env.keyring != NULL) {
        check_damage_add(damages, CHECK_LOSS, segment->head->name, 20, 4, "%s",
                         segment->head->fault);
        return;
    }
    if (segment->head->is_misnamed || header->id != segment->head->id) {
        check_damage_add(damages, CHECK_REDUNDANT, segment->head->name, 40, 8,
                         "is segment %016" PRIx64 " under another name", header->id);
    }
    if (header->class != class) {
        check_damage_add(damages, CHECK_LOSS, segment->head->name, 64, 4,
                         "is a segment of class %" PRIu32, header->class);
        return;
    }
    if (segment->head->size < header->capacity) {
        check_damage_add(damages, CHECK_LOSS, segment->head->name, segment->head->size,
                         header->capacity - segment->head->size,
                         "was truncated: the file has %" PRIu64 " bytes and the segment %" PRIu64,
                         segment->head->size, header->capacity);
    } else if (segment->head->size > header->capacity) {
        check_damage_add(damages, CHECK_LOSS, segment->head->name, header->capacity,
                         segment->head->size - header->capacity,
                         "was extended: bytes after the segment's end are not part of the log");
    }
}

/* Compares the rewrite block with the segment's own OPEN. */
static void check_rewrite(struct check_segment *segment)
{
    const struct wal__rewrite *rewrite = &segment->head->header.rewrite;
    const struct wal__open_record *open = &segment->head->open;

    if (!wal__segment_is_rewritten(&segment->head->header) || segment->head->salt_found ||
        !segment->head->has_open) {
        return;
    }
    if (rewrite->first_id <= open->previous_id) {
        check_damage_add(&segment->damages, CHECK_REDUNDANT, segment->head->name, 88, 8,
                         "replaces segment %016" PRIx64 ", which OPEN names as the one "
                         "before it",
                         rewrite->first_id);
    }
    if (rewrite->last_sequence < open->last_sequence) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 104, 8,
                         "ends with sequence %" PRIu64 " and begins after %" PRIu64,
                         rewrite->last_sequence, open->last_sequence);
    }
}

/* Reports what is damaged in the head of a segment. */
static void check_head(struct check_store *store, struct check_segment *segment,
                       struct wal__damaged_file *file)
{
    const struct wal__damaged_segment *head = segment->head;
    uint64_t size =
        file->size < WAL__SEGMENT_HEADER_SIZE ? file->size : (uint64_t)WAL__SEGMENT_HEADER_SIZE;
    uint8_t bytes[WAL__SEGMENT_HEADER_SIZE] = {0};
    const uint8_t *at = wal__damaged_file_fetch(file, 0, size);

    if (at == NULL) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0, size,
                         "the header cannot be read: %s", cli_file_error(file->error));
        return;
    }
    if (size > 0) {
        memcpy(bytes, at, (size_t)size);
    }
    if (head->header_fmt == WAL__FMT_VERSION || head->header_fmt == WAL__FMT_FEATURES) {
        store->newer = true;
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0,
                         WAL__SEGMENT_HEADER_SIZE,
                         "has a newer format: version %" PRIu32 ", features %#" PRIx32,
                         head->header.version, head->header.features.incompat);
    } else if (head->header_fmt == WAL__FMT_OK) {
        check_header(segment, bytes);
        check_identity(store, segment);
    } else if (head->salt_found) {
        check_damage_add(&segment->damages, CHECK_REDUNDANT, segment->head->name, 0,
                         WAL__SEGMENT_HEADER_SIZE,
                         "both copies of the header are damaged, so that no reader opens "
                         "the segment; its frames are whole and can be salvaged");
    }
    check_rewrite(segment);
}

static void read_head(struct check_store *store, struct check_segment *segment)
{
    struct wal__damaged_file file;
    int error = check_segment_open(segment, &file);

    if (error != 0) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0, 0,
                         "cannot be opened: %s", cli_file_error(error));
        return;
    }
    check_head(store, segment, &file);
    wal__damaged_file_close(&file);
}

/* --- the chain ------------------------------------------------------------ */

static struct check_segment *find(const struct check_store *store,
                                  const struct check_segments *segments, uint64_t id)
{
    const struct wal__damaged_segment *head =
        wal__damaged_find(segments == &store->log ? &store->reader.log : &store->reader.pack, id);

    for (size_t i = 0; i < segments->count && head != NULL; i++) {
        if (segments->items[i]->head == head) {
            return segments->items[i];
        }
    }
    return NULL;
}

static void check_directory(struct check_store *store, const char *folder)
{
    char *path = check_path(store, folder);
    int error = 0;
    DIR *directory = cli_directory_open(path, &error);

    if (directory != NULL) {
        closedir(directory);
    } else if (error != ENOENT || strcmp(folder, "log") == 0) {
        check_damage_add(&store->damages, CHECK_LOSS, folder, 0, 0,
                         "the directory cannot be read: %s", cli_file_error(error));
    }
    free(path);
}

/* Adds the segments of a stream, in its order, and those of the chain to theirs. */
static void take_segments(struct check_store *store, const struct wal__damaged_stream *stream,
                          struct check_segments *segments)
{
    struct check_segment *above = NULL;

    segments->count = stream->count;
    segments->items = cli_alloc((stream->count + 1) * sizeof(*segments->items));
    for (size_t i = 0; i < segments->count; i++) {
        segments->items[i] = cli_alloc(sizeof(*segments->items[i]));
        *segments->items[i] =
            (struct check_segment){.head = stream->items[i], .reader = &store->reader};
    }
    for (size_t i = segments->count; i > 0; i--) {
        struct check_segment *segment = segments->items[i - 1];

        if (segment->head->role != WAL__DAMAGED_LINKED) {
            continue;
        }
        segment->next = above;
        if (above == NULL) {
            segments->tail = segment;
        } else {
            above->previous = segment;
        }
        above = segment;
    }
}

const struct check_segment *check_chain_find_rewritten(const struct check_segments *segments,
                                                       uint64_t id)
{
    for (const struct check_segment *segment = segments->tail; segment != NULL;
         segment = segment->previous) {
        if (wal__segment_is_rewritten(&segment->head->header) &&
            id >= segment->head->header.rewrite.first_id && id <= segment->head->id) {
            return segment;
        }
    }
    return NULL;
}

/* Reports a segment whose header is lost, and its salt too, unless that is reported. */
static void report_headerless(struct check_store *store, struct check_segment *segment)
{
    if (segment->damages.count > 0) {
        return;
    }
    if (segment->head->is_empty && segment->head->header_fmt == WAL__FMT_ZERO) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0, segment->head->size,
                         "was zeroed");
    } else {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0, segment->head->size,
                         "both copies of the header are damaged: %s; without them no frame "
                         "can be validated",
                         wal__fmt_text(segment->head->header_fmt));
    }
    segment->has_lost_records = true;
    store->records_lost = store->records_lost || !segment->head->is_pack;
}

/* Reports the segment that an OPEN names and that is not before it. */
static void report_unusable(struct check_store *store, const struct check_segments *segments,
                            const struct check_segment *above)
{
    struct check_segment *named =
        above->head->has_open ? find(store, segments, above->head->open.previous_id) : NULL;

    if (named != NULL && named != above->previous && named->head->role != WAL__DAMAGED_REPLACED) {
        report_headerless(store, named);
        named->head->role = WAL__DAMAGED_UNREADABLE;
    }
}

/* Reports a segment that is not in the chain. */
static void report_unlinked(struct check_store *store, struct check_segment *segment)
{
    struct check_damages *damages = &segment->damages;

    switch (segment->head->role) {
    case WAL__DAMAGED_UNUSED:
    case WAL__DAMAGED_LINKED:
        break;
    case WAL__DAMAGED_UNLINKED:
        check_damage_add(damages, CHECK_LOSS, segment->head->name, 0, segment->head->size,
                         "has records, but no later segment names it as its predecessor");
        break;
    case WAL__DAMAGED_LEFTOVER:
        check_damage_add(damages, CHECK_NOTE, segment->head->name, 0, segment->head->size,
                         "an attempt that failed left it; nothing is in it alone, and "
                         "it is removed when one process opens the store alone");
        break;
    case WAL__DAMAGED_GUARDED:
        check_damage_add(damages, CHECK_NOTE, segment->head->name, 0, segment->head->size,
                         "a backup that was cut short left it; the next one goes on");
        break;
    case WAL__DAMAGED_REPLACED:
        check_damage_add(damages, CHECK_NOTE, segment->head->name, 0, segment->head->size,
                         "was replaced by compaction, and is removed when one process "
                         "opens the store alone");
        break;
    case WAL__DAMAGED_UNREADABLE:
        report_headerless(store, segment);
        break;
    }
}

void check_chain_report_gap(struct check_store *store, struct check_segments *segments,
                            const struct check_segment *above)
{
    uint64_t id = above->head->open.previous_id;
    const struct check_segment *below = above->previous;
    struct check_segment *bad = find(store, segments, id);
    struct check_damage *damage = NULL;
    char name[40];

    if (!above->head->has_open || id == 0 || (below != NULL && below->head->id == id)) {
        return;
    }
    if (bad == NULL) {
        const char *slash = strchr(above->head->name, '/');

        snprintf(name, sizeof(name), "%.*s/%016" PRIx64 ".seg", (int)(slash - above->head->name),
                 above->head->name, id);
        damage = check_damage_add(&store->damages, CHECK_LOSS, name, 0,
                                  above->head->open.previous_end, "the segment is missing");
    } else if (bad->damages.count > 0) {
        damage = &bad->damages.items[bad->damages.count - 1];
    }
    if (damage != NULL && damage->last_sequence == 0) {
        damage->first_sequence = below == NULL ? 1 : below->facts->last_sequence + 1;
        damage->last_sequence = above->head->open.last_sequence;
    }
    store->records_lost = store->records_lost || !above->head->is_pack;
}

/* Takes what the rewritten segments of the log say of the store. */
static void note_rewritten(struct check_store *store)
{
    uint32_t generation = 0;

    for (struct check_segment *segment = store->log.tail; segment != NULL;
         segment = segment->previous) {
        if (!wal__segment_is_rewritten(&segment->head->header)) {
            continue;
        }
        store->has_rewritten = true;
        if (segment->head->header.rewrite.generation > generation) {
            generation = segment->head->header.rewrite.generation;
        }
        if (store->format_known && (store->incompat & WAL__INCOMPAT_REWRITTEN) == 0) {
            check_damage_add(&segment->damages, CHECK_REDUNDANT, segment->head->name, 20, 4,
                             "is a rewritten segment, and MANIFEST lacks this feature");
        }
    }
    store->catalogue.outdated =
        store->catalogue.bytes != NULL && store->catalogue.header.generation != generation;
}

void check_chain(struct check_store *store, struct check_segments *segments, const char *folder)
{
    struct wal__damaged_store *reader = &store->reader;
    struct wal__damaged_stream *stream = segments == &store->log ? &reader->log : &reader->pack;

    check_directory(store, folder);
    (void)!wal__damaged_link(reader, stream); /* check_directory has reported it */
    take_segments(store, stream, segments);
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->items[i]->head->role != WAL__DAMAGED_REPLACED) {
            read_head(store, segments->items[i]);
        }
    }
    for (struct check_segment *segment = segments->tail; segment != NULL;
         segment = segment->previous) {
        report_unusable(store, segments, segment);
    }
    for (size_t i = 0; i < segments->count; i++) {
        report_unlinked(store, segments->items[i]);
    }
    if (segments == &store->log) {
        note_rewritten(store);
    }
}

void check_chain_continuity(struct check_segment *segment)
{
    const struct check_segment *previous = segment->previous;
    const struct wal__open_record *open = &segment->head->open;

    if (!segment->head->has_open) {
        return;
    }
    if (open->previous_id == 0) {
        if (open->last_sequence != 0 || open->chain != 0) {
            check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name,
                             WAL__SEGMENT_HEADER_SIZE, 0,
                             "the first segment continues after sequence "
                             "%" PRIu64,
                             open->last_sequence);
        }
        return;
    }
    if (previous == NULL || previous->head->id != open->previous_id ||
        (wal__segment_is_rewritten(&previous->head->header) ? previous->head->salt_found
                                                            : previous->has_lost_records)) {
        return;
    }
    if (open->last_sequence != check_segment_last_sequence(previous) ||
        open->chain != check_segment_chain(previous) ||
        (wal__segment_is_rewritten(&previous->head->header) &&
         open->previous_end != check_segment_original_end(previous))) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name,
                         WAL__SEGMENT_HEADER_SIZE, 0,
                         "does not continue its predecessor, which ends "
                         "with sequence %" PRIu64 " and not %" PRIu64 ", or with another chain",
                         check_segment_last_sequence(previous), open->last_sequence);
    }
}

static bool is_named_as_previous(const struct check_segments *segments, uint64_t id)
{
    for (size_t i = 0; i < segments->count; i++) {
        if (segments->items[i]->head->has_open &&
            segments->items[i]->head->open.previous_id == id) {
            return true;
        }
    }
    return false;
}

void check_chain_pack_end(struct check_store *store)
{
    uint64_t id = wal__position_segment(store->pack_durable);
    uint64_t end = wal__position_offset(store->pack_durable);
    struct check_segment *segment = find(store, &store->pack, id);
    const struct check_segment *rewritten = check_chain_find_rewritten(&store->pack, id);
    char name[40];

    /* The position in a segment that was replaced is one of the original. */
    if (store->pack_durable == 0 ||
        (rewritten != NULL &&
         (rewritten->head->id != id || end <= check_segment_original_end(rewritten)))) {
        return;
    }
    if (segment == NULL) {
        if (!is_named_as_previous(&store->pack, id)) {
            snprintf(name, sizeof(name), "pack/%016" PRIx64 ".seg", id);
            check_damage_add(&store->damages, CHECK_LOSS, name, 0, end,
                             "the segment is missing, and the log depends on its content");
        }
    } else if (segment->head->role == WAL__DAMAGED_UNUSED) {
        check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name, 0, end,
                         "is empty, and the log depends on its content");
    } else if (segment->head->role == WAL__DAMAGED_LINKED && end > segment->head->known_end) {
        if (segment->next != NULL || segment->head->has_trailer) {
            check_damage_add(&segment->damages, CHECK_LOSS, segment->head->name,
                             segment->head->known_end, end - segment->head->known_end,
                             "ends before the position that the log depends on");
        } else if (end <= segment->head->header.capacity) {
            segment->head->known_end = end;
        }
    }
}
