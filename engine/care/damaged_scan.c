/*
 * damaged_scan.c - reads the records of one segment of the damaged store, in log order (SPEC.md
 * 2.3, 3.1 to 3.4). A BLOCK of a rewritten segment has them session by session (2.22, 2.23).
 * Sessions that wrote at the same time are in different blocks, so that log order goes back and
 * forth between them: some are kept decompressed.
 *
 * Invariant: a block that cannot be read costs its own records alone.
 */
#include <string.h>

#include "engine/base/containers.h"
#include "engine/care/damaged_store.h"
#include "format/bytes/assert.h"
#include "format/segment/frame.h"

enum {
    WAL__DAMAGED_BLOCKS = 16 /* that are kept in memory */
};

/* A BLOCK whose records, or some of them, cannot be read; or a frame that is not authentic. */
struct wal__damaged_bad_block {
    uint64_t offset;
    uint64_t size;
    uint64_t sequence; /* of a record; or 0 */
    uint32_t session;  /* 0: not known */
    bool is_forged;
};

struct wal__damaged_blocks {
    const struct wal__heap *heap;
    struct wal__buf list; /* where each record is */
    struct wal__buf bad;  /* struct wal__damaged_bad_block */
    struct wal__damaged_block cache[WAL__DAMAGED_BLOCKS];
    uint32_t next; /* of the cache, to be replaced */
};

/* --- records of blocks ---------------------------------------------------- */

struct listed_record {
    uint64_t sequence;
    uint64_t offset; /* as in positions */
};

static void damaged_blocks_init(struct wal__damaged_blocks *blocks, const struct wal__heap *heap)
{
    memset(blocks, 0, sizeof(*blocks));
    blocks->heap = heap;
    wal__buf_init(&blocks->list, heap);
    wal__buf_init(&blocks->bad, heap);
    for (uint32_t i = 0; i < WAL__DAMAGED_BLOCKS; i++) {
        wal__buf_init(&blocks->cache[i].records, heap);
    }
}

static void damaged_blocks_deinit(struct wal__damaged_blocks *blocks)
{
    wal__buf_deinit(&blocks->list);
    wal__buf_deinit(&blocks->bad);
    for (uint32_t i = 0; i < WAL__DAMAGED_BLOCKS; i++) {
        wal__buf_deinit(&blocks->cache[i].records);
    }
}

enum wal_status wal__damaged_block_unpack(struct wal__damaged_block *block,
                                          const struct wal__frame *frame, const uint8_t *payload,
                                          uint64_t offset, enum wal__fmt *fmt)
{
    struct wal__block decoded;
    uint8_t *out;

    block->offset = 0;
    block->records.size = 0;
    *fmt = wal__block_decode(frame, payload, &decoded);
    if (*fmt != WAL__FMT_OK) {
        return WAL_OK;
    }
    if (wal__buf_reserve(&block->records, decoded.raw_size, &out) != WAL_OK) {
        return WAL_ENOMEM;
    }
    if (decoded.is_compressed) {
        *fmt = wal__block_decompress(&decoded, out);
    } else if (decoded.raw_size > 0) {
        memcpy(out, decoded.data.data, decoded.raw_size);
    }
    if (*fmt == WAL__FMT_OK) {
        block->records.size = decoded.raw_size;
        block->offset = offset;
        block->count = decoded.count;
    }
    return WAL_OK;
}

enum wal_status wal__damaged_block_read(struct wal__damaged_block *block,
                                        struct wal__damaged_file *file, uint64_t salt,
                                        uint64_t offset, bool *is_read)
{
    struct wal__frame frame;
    struct wal__span payload;
    enum wal_status status;
    enum wal__fmt fmt;

    *is_read = block->offset == offset;
    if (*is_read) {
        return WAL_OK;
    }
    payload = wal__damaged_file_read(file, salt, offset, WAL__FRAME_BLOCK, &frame);
    if (payload.data == NULL) {
        return WAL_OK;
    }
    status = wal__damaged_block_unpack(block, &frame, payload.data, offset, &fmt);
    *is_read = status == WAL_OK && fmt == WAL__FMT_OK;
    return status;
}

/* Adds the records of a BLOCK whose own checksums are valid. WAL_ENOMEM. */
static enum wal_status damaged_blocks_add(struct wal__damaged_blocks *blocks,
                                          const struct wal__damaged_segment *segment,
                                          const struct wal__frame *frame, uint64_t offset,
                                          const uint8_t *payload)
{
    const struct wal__damaged_bad_block bad = {
        .offset = offset,
        .size = wal__frame_total_size(frame->stored_size),
        .session = frame->session,
    };
    struct wal__damaged_block *kept = &blocks->cache[0];
    struct wal__block_cursor cursor;
    struct wal__span ignored;
    struct wal__frame record;
    enum wal__fmt fmt;
    enum wal_status status = wal__damaged_block_unpack(kept, frame, payload, offset, &fmt);

    if (status == WAL_OK && fmt == WAL__FMT_OK) {
        wal__block_cursor_begin(&cursor, wal__damaged_block_records(kept), kept->count,
                                segment->header.salt, offset);
    }
    while (status == WAL_OK && fmt == WAL__FMT_OK) {
        struct listed_record listed = {.offset = cursor.offset};

        fmt = wal__block_cursor_next(&cursor, &record, &ignored);
        if (fmt == WAL__FMT_OK) {
            listed.sequence = record.sequence;
            status = wal__buf_append(&blocks->list, &listed, sizeof(listed));
        }
    }
    return status == WAL_OK && fmt != WAL__FMT_ZERO
               ? wal__buf_append(&blocks->bad, &bad, sizeof(bad))
               : status;
}

/* Returns the block at an offset, which was read before; NULL: it cannot be read any more, or
 * *status is WAL_ENOMEM. */
static const struct wal__damaged_block *find_block(struct wal__damaged_blocks *blocks,
                                                   const struct wal__damaged_segment *segment,
                                                   struct wal__damaged_file *file, uint64_t offset,
                                                   enum wal_status *status)
{
    struct wal__damaged_block *kept;
    bool is_read;

    for (uint32_t i = 0; i < WAL__DAMAGED_BLOCKS; i++) {
        if (blocks->cache[i].offset == offset) {
            return &blocks->cache[i];
        }
    }
    kept = &blocks->cache[blocks->next];
    blocks->next = (blocks->next + 1) % WAL__DAMAGED_BLOCKS;
    *status = wal__damaged_block_read(kept, file, segment->header.salt, offset, &is_read);
    return is_read ? kept : NULL;
}

/* Passes the records that were added to the visitor, by ascending sequence number, each once.
 * `file` is the segment's. WAL_ENOMEM, or what the visitor returned. */
static enum wal_status damaged_blocks_visit(struct wal__damaged_blocks *blocks,
                                            const struct wal__damaged_segment *segment,
                                            struct wal__damaged_file *file,
                                            const struct wal__damaged_visitor *visitor)
{
    struct listed_record *list = (struct listed_record *)(void *)blocks->list.data;
    size_t count = blocks->list.size / sizeof(*list);
    enum wal_status status = WAL_OK;

    wal__buf_sort(&blocks->list, sizeof(*list), wal__compare_u64_pair);
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        uint64_t offset = wal__block_offset(list[i].offset);
        const struct wal__damaged_block *kept;
        struct wal__span payload;
        struct wal__frame frame;

        if (i > 0 && list[i].sequence == list[i - 1].sequence) {
            continue;
        }
        kept = find_block(blocks, segment, file, offset, &status);
        if (kept != NULL &&
            wal__block_record(wal__damaged_block_records(kept), segment->header.salt,
                              list[i].offset, &frame, &payload) == WAL__FMT_OK) {
            status = visitor->record(visitor->ctx, segment, &frame, offset, payload.data);
        }
    }
    return status;
}

/* --- the scan of a segment ------------------------------------------------ */

struct scan {
    struct wal__damaged_store *store;
    struct wal__damaged_segment *segment;
    const struct wal__damaged_visitor *visitor;
    struct wal__damaged_file *file;
    uint32_t first_damage; /* rank of the scan's first damaged range */
    uint64_t read_end;     /* offset up to which progress was reported */
    struct wal__damaged_blocks blocks;
    enum wal_status status;
};

static enum wal_status report_progress(struct scan *scan, uint64_t end)
{
    uint64_t from = scan->read_end;

    if (end <= from || scan->visitor->progress == NULL) {
        return WAL_OK;
    }
    scan->read_end = end;
    return scan->visitor->progress(scan->visitor->ctx, end - from);
}

/* Passes a frame of a group to the visitor, decrypted; or notes that it is not authentic. */
static enum wal_status scan_frame(struct scan *scan, struct wal__frame *frame, uint64_t offset,
                                  const uint8_t *payload)
{
    const struct wal__damaged_visitor *visitor = scan->visitor;
    const struct wal__damaged_bad_block bad = {
        .offset = offset,
        .size = wal__frame_total_size(frame->stored_size),
        .sequence = frame->sequence,
        .session = frame->session,
        .is_forged = true,
    };
    enum wal_status status = wal__damaged_file_decrypt(scan->file, offset, frame, &payload);

    if (status == WAL_EKEY && scan->store->env.keyring == NULL) {
        return WAL_OK;
    }
    if (status == WAL_EKEY || status == WAL_ECORRUPT) {
        return wal__buf_append(&scan->blocks.bad, &bad, sizeof(bad));
    }
    if (status != WAL_OK) {
        return status;
    }
    if (wal__frame_is_sequenced(frame->type)) {
        return visitor->record(visitor->ctx, scan->segment, frame, offset, payload);
    }
    if (frame->type != WAL__FRAME_BLOCK) {
        return WAL_OK;
    }
    return visitor->block != NULL
               ? visitor->block(visitor->ctx, scan->segment, frame, offset, payload)
               : damaged_blocks_add(&scan->blocks, scan->segment, frame, offset, payload);
}

static bool scan_range(void *ctx, const struct wal__scan_range *range)
{
    struct scan *scan = ctx;
    const struct wal__damaged_visitor *visitor = scan->visitor;
    uint64_t at = 0;

    if (visitor->range != NULL) {
        visitor->range(visitor->ctx, range);
    }
    while (at < range->size && scan->status == WAL_OK) {
        const uint8_t *payload = range->bytes + at + WAL__FRAME_SIZE;
        const uint64_t offset = range->offset + at;
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, scan->segment->header.salt,
                              offset, &frame) != WAL__FMT_OK) {
            return false; /* unreachable: the scan passes valid frames only */
        }
        at += wal__frame_total_size(frame.stored_size);
        scan->status = scan_frame(scan, &frame, offset, payload);
    }
    if (scan->status == WAL_OK) {
        scan->status = report_progress(scan, range->offset + range->size);
    }
    return scan->status == WAL_OK;
}

/* --- damage --------------------------------------------------------------- */

/* Adds a range of the segment. */
static void add_damage(struct scan *scan, uint64_t offset, uint64_t size, const char *reason)
{
    if (wal__damaged_add_range(scan->store, scan->segment->name, offset, size, reason) == NULL) {
        scan->status = WAL_ENOMEM;
    }
}

/* Adds the damage that the scan found since the last call. */
static void add_scan_damage(struct scan *scan)
{
    struct wal__damaged_store *store = scan->store;
    const struct wal__scan_result *facts = &store->facts;
    uint32_t count =
        facts->damage_count < WAL__DAMAGE_MAX ? facts->damage_count : (uint32_t)WAL__DAMAGE_MAX;

    for (uint32_t i = store->damage_count - scan->first_damage; i < count && scan->status == WAL_OK;
         i++) {
        const struct wal__damage *damage = &facts->damage[i];

        add_damage(scan, damage->offset, damage->size,
                   damage->size == 0 ? "records are missing here: their frames "
                                       "are not in the log"
                                     : "acknowledged bytes are damaged");
        if (scan->status == WAL_OK) {
            struct wal__damaged_range *added = &store->damages[store->damage_count - 1];

            added->first_sequence = damage->first_sequence;
            added->last_sequence = damage->last_sequence;
        }
    }
}

static bool scan_lost_session(void *ctx, uint32_t session)
{
    struct scan *scan = ctx;
    struct wal__damaged_store *store = scan->store;

    add_scan_damage(scan);
    if (scan->status == WAL_OK && store->damage_count > scan->first_damage) {
        scan->status =
            wal__damaged_add_session(store, &store->damages[store->damage_count - 1], session);
    }
    return scan->status == WAL_OK;
}

/* Frames in a damaged range whose header is valid name the session that lost a record, and the
 * record's parent. */
static void read_lost(struct scan *scan, struct wal__damaged_file *file,
                      struct wal__damaged_range *damage, uint64_t limit)
{
    const struct wal__damaged_visitor *visitor = scan->visitor;
    uint64_t at = damage->offset;
    uint64_t end = damage->offset + damage->size;

    while (at < end && at + WAL__FRAME_SIZE <= limit && scan->status == WAL_OK) {
        const uint8_t *bytes = wal__damaged_file_fetch(file, at, WAL__FRAME_SIZE);
        struct wal__frame frame;

        if (bytes == NULL) {
            return;
        }
        if (wal__frame_decode(bytes, limit - at, scan->segment->header.salt, at, &frame) !=
            WAL__FMT_OK) {
            at += WAL__FRAME_ALIGN;
            continue;
        }
        if (wal__frame_is_sequenced(frame.type)) {
            scan->status = visitor->lost(visitor->ctx, &frame, at);
        }
        if ((wal__frame_is_sequenced(frame.type) || frame.type == WAL__FRAME_BLOCK) &&
            scan->status == WAL_OK) {
            scan->status = wal__damaged_add_session(scan->store, damage, frame.session);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
}

/* Sets the lost sequences of damage at the segment's end, which the scan cannot bound. */
static void bound_final_damage(const struct scan *scan)
{
    const struct wal__damaged_segment *segment = scan->segment;
    const struct wal__damaged_store *store = scan->store;
    struct wal__damaged_range *damage = &store->damages[store->damage_count - 1];
    uint64_t last = 0;

    if (segment->next != NULL && segment->next->has_open) {
        last = segment->next->open.last_sequence;
    } else if (segment->has_trailer) {
        last = segment->trailer.last_sequence;
    }
    if (damage->last_sequence == 0 && last >= damage->first_sequence &&
        segment->last_sequence < damage->first_sequence) {
        damage->last_sequence = last;
    }
    for (uint32_t i = scan->first_damage; i < store->damage_count; i++) {
        if (store->damages[i].last_sequence == 0) {
            store->damages[i].first_sequence = 0;
        }
    }
}

/* Reports the records between a segment and its predecessor, if that is not the one that OPEN
 * names. */
static enum wal_status report_gap(struct wal__damaged_store *store,
                                  const struct wal__damaged_segment *above)
{
    const struct wal__damaged_stream *stream = above->is_pack ? &store->pack : &store->log;
    const struct wal__damaged_segment *below = above->previous;
    uint64_t id = above->open.previous_id;
    const char *reason = "the segment is missing";
    const struct wal__damaged_segment *bad;
    struct wal__damaged_range *damage;
    char name[WAL__DAMAGED_NAME_SIZE];

    if (!above->has_open || id == 0 || (below != NULL && below->id == id)) {
        return WAL_OK;
    }
    wal__damaged_segment_name(above->is_pack, id, name);
    bad = wal__damaged_find(stream, id);
    if (bad != NULL && bad->fault != NULL) {
        reason = bad->fault;
    }
    damage = wal__damaged_add_range(store, name, 0, above->open.previous_end, reason);
    if (damage == NULL) {
        return WAL_ENOMEM;
    }
    damage->first_sequence = below == NULL ? 1 : below->last_sequence + 1;
    damage->last_sequence = above->open.last_sequence;
    return WAL_OK;
}

/* Reports what ended the scan before the segment's end, which was known_end before it. */
static void report_verdict(struct scan *scan, const struct wal__damaged_file *file,
                           uint64_t known_end)
{
    const struct wal__damaged_segment *segment = scan->segment;
    const struct wal__scan_result *facts = &scan->store->facts;

    if (facts->verdict == WAL__VERDICT_NEWER) {
        add_damage(scan, facts->error_offset, WAL__FRAME_SIZE,
                   "a frame of a newer format: nothing after it can be read");
    } else if (facts->verdict == WAL__VERDICT_READ_ERROR) {
        add_damage(scan, facts->error_offset, 0, "cannot be read");
    }
    if (scan->status == WAL_OK && segment->size < known_end) {
        add_damage(scan, segment->size, known_end - segment->size, "the segment was truncated");
    }
    if (scan->status == WAL_OK && file->bad_end != 0) {
        add_damage(scan, file->bad_offset, file->bad_end - file->bad_offset, "cannot be read");
    }
}

/* --- the scan ------------------------------------------------------------- */

static const char *why_bad(const struct scan *scan, const struct wal__damaged_bad_block *bad)
{
    if (!bad->is_forged) {
        return "records of a BLOCK cannot be read";
    }
    return scan->segment->header.key_id == WAL__DAMAGED_KEY_LOST
               ? "cannot be decrypted: its key is lost with both copies of the header"
               : "was not encrypted by a key of this store, or changed since";
}

/* Adds the blocks that are whole, and whose records cannot be read, and what is not authentic. */
static void add_bad_blocks(struct scan *scan)
{
    struct wal__damaged_store *store = scan->store;
    const struct wal__damaged_bad_block *bad =
        (const struct wal__damaged_bad_block *)(const void *)scan->blocks.bad.data;
    size_t count = scan->blocks.bad.size / sizeof(*bad);

    for (size_t i = 0; i < count && scan->status == WAL_OK; i++) {
        add_damage(scan, bad[i].offset, bad[i].size, why_bad(scan, &bad[i]));
        if (scan->status == WAL_OK && bad[i].is_forged) {
            struct wal__damaged_range *damage = &store->damages[store->damage_count - 1];

            damage->first_sequence = bad[i].sequence;
            damage->last_sequence = bad[i].sequence;
            scan->status = wal__damaged_add_session(store, damage, bad[i].session);
        }
    }
}

/* Takes what a first scan found, which ended at `limit` at the latest. */
static void finish_first(struct scan *scan, struct wal__damaged_file *file, uint64_t limit)
{
    struct wal__damaged_store *store = scan->store;
    struct wal__damaged_segment *segment = scan->segment;
    const struct wal__scan_result *facts = &store->facts;

    segment->is_scanned = true;
    segment->is_ambiguous = facts->verdict == WAL__VERDICT_AMBIGUOUS;
    segment->dirty_end = facts->dirty_end;
    if (facts->verdict == WAL__VERDICT_CLEAN || facts->verdict == WAL__VERDICT_TORN ||
        facts->verdict == WAL__VERDICT_DAMAGED) {
        segment->settled_end = facts->end;
    }
    segment->last_sequence = facts->last_sequence;
    segment->chain = facts->chain;
    add_scan_damage(scan);
    if (scan->status == WAL_OK && store->damage_count > scan->first_damage) {
        bound_final_damage(scan);
    }
    add_bad_blocks(scan);
    for (uint32_t i = scan->first_damage; i < store->damage_count && scan->visitor->lost != NULL;
         i++) {
        read_lost(scan, file, &store->damages[i], limit);
    }
    if (scan->status == WAL_OK && limit == segment->known_end && facts->end != limit &&
        facts->verdict != WAL__VERDICT_NEWER && facts->verdict != WAL__VERDICT_READ_ERROR &&
        facts->verdict != WAL__VERDICT_DAMAGED) {
        add_damage(scan, facts->end, limit - facts->end,
                   "the log ends before the end that is recorded for it");
    }
    /* A tail that has INDEX or SEAL ends before them. */
    if (facts->sealed_end != 0) {
        segment->known_end = facts->sealed_end;
    } else if (facts->index_offset != 0) {
        segment->known_end = facts->index_offset;
    }
}

/* Scans the segment in its file. */
static void scan_file(struct scan *scan, struct wal__damaged_file *file, bool is_first)
{
    const struct wal__scan_sink sink = {scan, scan_range, is_first ? scan_lost_session : NULL};
    const struct wal__scan_source bytes = {file, wal__damaged_file_fetch};
    struct wal__scan_start start;

    scan->file = file;
    scan->first_damage = scan->store->damage_count;
    damaged_blocks_init(&scan->blocks, scan->store->env.heap);
    wal__damaged_init_start(scan->segment, &start);
    wal__scan(&bytes, &sink, &start, &scan->store->facts);
    if (scan->status == WAL_OK) {
        scan->status = damaged_blocks_visit(&scan->blocks, scan->segment, file, scan->visitor);
    }
    if (is_first && scan->status == WAL_OK) {
        finish_first(scan, file, start.capacity);
    }
    damaged_blocks_deinit(&scan->blocks);
}

enum wal_status wal__damaged_scan_file(struct wal__damaged_store *store,
                                       struct wal__damaged_segment *segment,
                                       struct wal__damaged_file *file,
                                       const struct wal__damaged_visitor *visitor)
{
    struct scan scan = {.store = store, .segment = segment, .visitor = visitor};

    scan_file(&scan, file, true);
    return scan.status;
}

enum wal_status wal__damaged_scan(struct wal__damaged_store *store,
                                  struct wal__damaged_segment *segment,
                                  const struct wal__damaged_visitor *visitor)
{
    struct scan scan = {.store = store, .segment = segment, .visitor = visitor};
    const uint64_t known_end = segment->known_end;
    bool is_first = !segment->is_scanned;
    struct wal__damaged_file file;

    scan.status = is_first ? report_gap(store, segment) : WAL_OK;
    if (scan.status != WAL_OK) {
        return scan.status;
    }
    scan.status = wal__damaged_segment_open(&file, store, segment);
    if (scan.status != WAL_OK && scan.status != WAL_ENOMEM) {
        scan.status = WAL_OK;
        segment->has_damage = true;
        add_damage(&scan, 0, segment->size, "the segment cannot be opened");
        return scan.status;
    }
    if (scan.status != WAL_OK) {
        return scan.status;
    }
    scan_file(&scan, &file, is_first);
    if (is_first && scan.status == WAL_OK) {
        report_verdict(&scan, &file, known_end);
        segment->has_damage = store->damage_count > scan.first_damage;
        if (!segment->is_pack && store->facts.pack_durable > store->pack_durable) {
            store->pack_durable = store->facts.pack_durable;
        }
    }
    if (scan.status == WAL_OK) {
        scan.status = file.out_of_memory ? WAL_ENOMEM : report_progress(&scan, segment->size);
    }
    wal__damaged_file_close(&file);
    return scan.status;
}
