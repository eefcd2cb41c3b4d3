/*
 * block.c - the blocks of rewritten segments (SPEC.md 2.22, 2.23): their
 * records, and what a damaged one lost.
 *
 * Invariant: the records of a segment ascend by sequence, each once, wherever
 * its blocks have them.
 *
 * Threads: the functions of a scan any thread, one per segment; all other
 * functions the main thread.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "tools/walcheck/pack.h"

/* --- the scan ------------------------------------------------------------- */

static void report_block(struct check_segment *segment, uint64_t offset,
                         const struct wal__frame *frame, uint32_t rank,
                         enum wal__fmt fmt)
{
    uint64_t size = wal__frame_total_size(frame->stored_size);
    struct check_damage *damage =
        rank == 0
            ? check_damage_add(&segment->damages, segment->head->name, offset,
                               size,
                               "the records of a BLOCK cannot be read: %s",
                               wal__fmt_text(fmt))
            : check_damage_add(&segment->damages, segment->head->name, offset,
                               size,
                               "record %" PRIu32
                               " of a BLOCK, and those after it, cannot be "
                               "read: %s",
                               rank, wal__fmt_text(fmt));

    check_damage_session(damage, frame->session);
    segment->has_lost_records = true;
}

void check_block_scan(struct check_segment *segment, struct cli_block *block,
                      const struct wal__frame *frame, uint64_t offset,
                      const uint8_t *payload, int64_t clock_ms)
{
    enum wal__fmt fmt = cli_block_unpack(block, frame, payload, offset);
    struct wal__block_cursor cursor;
    struct wal__span bytes;
    struct wal__frame record;
    uint32_t rank = 0;

    if (fmt == WAL__FMT_OK) {
        wal__block_cursor_begin(&cursor, block->records, block->count,
                                segment->head->header.salt, offset);
    }
    while (fmt == WAL__FMT_OK) {
        uint64_t at = cursor.offset;

        fmt = wal__block_cursor_next(&cursor, &record, &bytes);
        if (fmt == WAL__FMT_OK && segment->head->is_pack) {
            check_pack_add_record(segment, &record, at, bytes.data);
        } else if (fmt == WAL__FMT_OK) {
            check_segment_add_record(segment, &record, at, bytes.data,
                                     clock_ms);
        }
        rank += fmt == WAL__FMT_OK;
    }
    if (fmt != WAL__FMT_ZERO) {
        report_block(segment, offset, frame, rank, fmt);
    }
}

static int by_sequence(const void *a, const void *b)
{
    const struct check_record *x = a;
    const struct check_record *y = b;

    if (x->posting.sequence != y->posting.sequence) {
        return x->posting.sequence < y->posting.sequence ? -1 : 1;
    }
    return x->posting.offset < y->posting.offset
               ? -1
               : x->posting.offset > y->posting.offset;
}

/* Whether the record may be in the segment, after `last`. Reports it if not. */
static bool is_in_range(struct check_segment *segment,
                        const struct check_record *record, uint64_t last)
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
        struct check_damage *damage =
            check_damage_add(&segment->damages, segment->head->name,
                             wal__block_offset(record->posting.offset), 0,
                             "sequence %" PRIu64 " %s", sequence, why);

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
    if (!segment->has_lost_records && !segment->head->salt_found &&
        size != rewrite->raw_size) {
        check_damage_add(&segment->damages, segment->head->name, 116, 8,
                         "has %" PRIu64 " bytes of records, and its header "
                         "says %" PRIu64,
                         size, rewrite->raw_size);
    }
}

void check_block_finish(struct check_segment *segment)
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

bool check_block_lost(struct check_segment *segment,
                      const struct wal__posting *posting, uint32_t session)
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

static bool open_segment(struct check_payloads *payloads,
                         const struct check_segment *segment)
{
    if (payloads->segment != segment) {
        check_payload_close(payloads);
        if (cli_file_open(&payloads->file, segment->path) != 0) {
            return false;
        }
        payloads->segment = segment;
    }
    return true;
}

static bool read_in_block(struct check_payloads *payloads, uint64_t offset,
                          struct wal__frame *frame, struct wal__span *payload)
{
    const uint64_t salt = payloads->segment->head->header.salt;

    return cli_block_read(&payloads->block, &payloads->file, salt,
                          wal__block_offset(offset)) == WAL__FMT_OK &&
           wal__block_record(payloads->block.records, salt, offset, frame,
                             payload) == WAL__FMT_OK;
}

const uint8_t *check_payload_read(struct check_payloads *payloads,
                                  const struct check_segment *segment,
                                  uint64_t offset, uint32_t stored_size)
{
    struct wal__frame frame;
    struct wal__span payload;

    if (!open_segment(payloads, segment)) {
        return NULL;
    }
    if (!wal__segment_is_rewritten(&segment->head->header)) {
        return cli_file_fetch(&payloads->file, offset + WAL__FRAME_SIZE,
                              stored_size);
    }
    return read_in_block(payloads, offset, &frame, &payload) &&
                   payload.size == stored_size
               ? payload.data
               : NULL;
}

bool check_record_read(struct check_payloads *payloads,
                       const struct check_segment *segment, uint64_t offset,
                       uint32_t span, struct wal__frame *frame,
                       struct wal__span *payload)
{
    const uint8_t *bytes;

    if (!open_segment(payloads, segment)) {
        return false;
    }
    if (wal__segment_is_rewritten(&segment->head->header)) {
        return read_in_block(payloads, offset, frame, payload);
    }
    bytes = cli_file_fetch(&payloads->file, offset, span);
    if (bytes == NULL ||
        wal__frame_decode(bytes, span, segment->head->header.salt, offset,
                          frame) != WAL__FMT_OK ||
        wal__frame_check_data(frame, bytes + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return false;
    }
    *payload = (struct wal__span){bytes + WAL__FRAME_SIZE, frame->stored_size};
    return true;
}

void check_payload_close(struct check_payloads *payloads)
{
    if (payloads->segment != NULL) {
        cli_file_close(&payloads->file);
    }
    cli_block_deinit(&payloads->block);
    payloads->segment = NULL;
}
