/*
 * replay.c - applying the log to the indexes of its client: the records of a segment, and what
 * other processes wrote since (SPEC.md 3.4, 3.6, 4.3). With the state lock for writing; takeover
 * with the append lock too.
 *
 * Replay scans a segment (format/segment/scan.h has the decision table), and applies the groups
 * that are kept. Those of a rewritten segment's blocks are stored session by session (SPEC.md
 * 2.23), and are put back into the order of the log.
 *
 * Catching up goes from the applied end to the published one. In the tail it scans on; where the
 * published end is in a later segment, it finishes the tail at the end that its successor's OPEN
 * names, and goes on there. Where that end is less than was applied, healing has cut the segment;
 * where a segment was replaced meanwhile, the chain must be found anew: both set needs_reload, and
 * the client rebuilds its indexes from the log.
 *
 * Takeover: a writer that is killed between write and publish leaves a group after the written end.
 * The next holder of the append lock looks there, unless it was itself the last one: a whole group
 * is accepted, a torn one or a seal ends the segment.
 *
 * Invariant: the client receives each published record once, in log order, unless needs_reload is
 * set; a scan stops at the first record that it refuses.
 */
#include "engine/base/containers.h"
#include "engine/log/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/error.h"
#include "format/bytes/assert.h"
#include "format/segment/frame.h"

/* --- records and blocks ------------------------------------------------- */

/* Applies one record; one that refers to what was lost is an orphan. */
static enum wal_status apply_record(struct wal__log *log, const struct wal__segment *segment,
                                    const struct wal__frame *frame, const uint8_t *payload,
                                    uint64_t offset, int64_t clock_ms)
{
    struct wal__log_record record = {
        .frame = frame,
        .payload = {payload, frame->stored_size},
        .position = wal__position(segment->id, offset),
        .clock_ms = clock_ms,
        .version = segment->header.version,
    };
    enum wal_status status = log->client.apply(log->client.ctx, &record);

    return status == WAL_ECORRUPT ? log->client.on_orphan(log->client.ctx, &record) : status;
}

/* A record of the range. */
struct block_record {
    uint64_t sequence;
    uint64_t offset; /* as in positions */
};

struct block_replay {
    struct wal__log *log;
    const struct wal__segment *segment;
    const struct wal__scan_range *range;
    struct wal__buf list;    /* struct block_record */
    struct wal__buf records; /* of the block at `block`, when compressed */
    struct wal__buf plain;   /* that block, when encrypted */
    struct wal__cipher cipher;
    uint64_t block;         /* 0: none */
    struct wal__span found; /* its records */
    uint32_t count;
};

/* Loads the BLOCK at an offset of the segment. */
static enum wal_status load_block(struct block_replay *replay, uint64_t offset)
{
    const struct wal__scan_range *range = replay->range;
    const uint8_t *at = range->bytes + (offset - range->offset);
    uint64_t left = range->size - (offset - range->offset);
    const uint8_t *payload = at + WAL__FRAME_SIZE;
    enum wal_status status;
    struct wal__frame frame;
    struct wal__block block;
    uint8_t *out;

    if (replay->block == offset) {
        return WAL_OK;
    }
    replay->block = 0;
    if (wal__frame_decode(at, left, replay->segment->header.salt, offset, &frame) != WAL__FMT_OK ||
        frame.type != WAL__FRAME_BLOCK) {
        return WAL_ECORRUPT;
    }
    status =
        wal__decrypt_payload(replay->segment->env->keyring, &replay->cipher,
                             &replay->segment->header, offset, &frame, &replay->plain, &payload);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__block_decode(&frame, payload, &block) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    replay->found = block.data;
    replay->count = block.count;
    if (block.is_compressed) {
        replay->records.size = 0;
        if (wal__buf_reserve(&replay->records, block.raw_size, &out) != WAL_OK) {
            return WAL_ENOMEM;
        }
        if (wal__block_decompress(&block, out) != WAL__FMT_OK) {
            return WAL_ECORRUPT;
        }
        replay->found = (struct wal__span){out, block.raw_size};
    }
    replay->block = offset;
    return WAL_OK;
}

/* Lists the records of the BLOCK at an offset. */
static enum wal_status list_block(struct block_replay *replay, uint64_t offset)
{
    enum wal_status status = load_block(replay, offset);
    struct wal__block_cursor cursor;
    struct wal__span payload;
    struct wal__frame frame;
    enum wal__fmt fmt = WAL__FMT_OK;

    if (status == WAL_OK) {
        wal__block_cursor_begin(&cursor, replay->found, replay->count, replay->segment->header.salt,
                                offset);
    }
    while (status == WAL_OK && fmt == WAL__FMT_OK) {
        struct block_record record = {.offset = cursor.offset};

        fmt = wal__block_cursor_next(&cursor, &frame, &payload);
        if (fmt == WAL__FMT_OK) {
            record.sequence = frame.sequence;
            status = wal__buf_append(&replay->list, &record, sizeof(record));
        }
    }
    return status == WAL_OK && fmt != WAL__FMT_ZERO ? WAL_ECORRUPT : status;
}

static enum wal_status apply_listed(struct block_replay *replay, const struct block_record *record,
                                    int64_t clock_ms)
{
    struct wal__span payload;
    struct wal__frame frame;
    enum wal_status status = load_block(replay, wal__block_offset(record->offset));

    if (status != WAL_OK) {
        return status;
    }
    if (wal__block_record(replay->found, replay->segment->header.salt, record->offset, &frame,
                          &payload) != WAL__FMT_OK) {
        return WAL_ECORRUPT;
    }
    return apply_record(replay->log, replay->segment, &frame, payload.data, record->offset,
                        clock_ms);
}

static enum wal_status apply_blocks(struct wal__log *log, const struct wal__segment *segment,
                                    const struct wal__scan_range *range, int64_t clock_ms)
{
    struct block_replay replay = {.log = log, .segment = segment, .range = range};
    enum wal_status status = WAL_OK;
    size_t count;

    wal__buf_init(&replay.list, log->env->heap);
    wal__buf_init(&replay.records, log->env->heap);
    wal__buf_init(&replay.plain, log->env->heap);
    for (uint64_t at = 0; at < range->size && status == WAL_OK;) {
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, segment->header.salt,
                              range->offset + at, &frame) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
            break;
        }
        if (frame.type == WAL__FRAME_BLOCK) {
            status = list_block(&replay, range->offset + at);
        }
        at += wal__frame_total_size(frame.stored_size);
    }
    count = replay.list.size / sizeof(struct block_record);
    wal__buf_sort(&replay.list, sizeof(struct block_record), wal__compare_u64);
    for (size_t i = 0; i < count && status == WAL_OK; i++) {
        status =
            apply_listed(&replay, (struct block_record *)(void *)replay.list.data + i, clock_ms);
    }
    wal__buf_deinit(&replay.list);
    wal__buf_deinit(&replay.records);
    wal__buf_deinit(&replay.plain);
    wal__cipher_deinit(&replay.cipher);
    return status;
}

/* Applies the records of a range that a scan found, those of blocks too, by ascending sequence
 * number. */
static enum wal_status apply_range(struct wal__log *log, const struct wal__segment *segment,
                                   const struct wal__scan_range *range, int64_t clock_ms)
{
    enum wal_status status = WAL_OK;
    struct wal__cipher cipher = {0};
    struct wal__buf plain;
    uint64_t at = 0;

    WAL__ASSERT(range->size <= segment->header.capacity - range->offset);
    if (wal__segment_is_rewritten(&segment->header)) {
        return apply_blocks(log, segment, range, clock_ms);
    }
    wal__buf_init(&plain, log->env->heap);
    while (at < range->size && status == WAL_OK) {
        const uint8_t *payload = range->bytes + at + WAL__FRAME_SIZE;
        const uint64_t offset = range->offset + at;
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, segment->header.salt, offset,
                              &frame) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
            break;
        }
        at += wal__frame_total_size(frame.stored_size);
        if (wal__frame_is_sequenced(frame.type)) {
            status = wal__decrypt_payload(segment->env->keyring, &cipher, &segment->header, offset,
                                          &frame, &plain, &payload);
            if (status == WAL_OK) {
                status = apply_record(log, segment, &frame, payload, offset, clock_ms);
            }
        }
    }
    WAL__ASSERT(at == range->size || status != WAL_OK);
    wal__buf_deinit(&plain);
    wal__cipher_deinit(&cipher);
    return status;
}

/* --- scans -------------------------------------------------------------- */

/* The context of a scan's sink. */
struct applier {
    struct wal__log *log;
    struct wal__segment *segment;
    int64_t clock_ms;
    enum wal_status status; /* of the client's last call */
};

/* Applies the groups of a range; false stops the scan. */
static bool apply_scanned(void *ctx, const struct wal__scan_range *range)
{
    struct applier *applier = ctx;

    WAL__ASSERT(applier->status == WAL_OK);
    if (range->commit != NULL) {
        applier->clock_ms = range->commit->clock_ms;
    }
    applier->status = apply_range(applier->log, applier->segment, range, applier->clock_ms);
    return applier->status == WAL_OK;
}

/* Notes that a session lost a record; false stops the scan. */
static bool note_lost(void *ctx, uint32_t session)
{
    struct applier *applier = ctx;

    WAL__ASSERT(applier->status == WAL_OK);
    applier->status = applier->log->client.on_record_lost(applier->log->client.ctx, session);
    return applier->status == WAL_OK;
}

void wal__replay_init_start(const struct wal__segment *segment, struct wal__scan_start *start)
{
    memset(start, 0, sizeof(*start));
    start->salt = segment->header.salt;
    start->capacity = segment->header.capacity;
    start->group_align = segment->header.group_align;
    start->offset = WAL__SEGMENT_HEADER_SIZE;
    /* The records of a rewritten segment are inside its blocks. */
    start->last_sequence = wal__segment_is_rewritten(&segment->header)
                               ? segment->header.rewrite.last_sequence
                               : segment->open.last_sequence;
    start->chain = segment->open.chain;
    start->is_rewritten = wal__segment_is_rewritten(&segment->header);
}

/* Returns the failure of a scan that was stopped; WAL_OK when it found an end, whatever the
 * verdict. */
static enum wal_status scan_status(const struct wal__segment *segment,
                                   const struct wal__scan_result *facts,
                                   const struct applier *applier, struct wal_error *error)
{
    switch (facts->verdict) {
    case WAL__VERDICT_READ_ERROR:
        return wal__fail_at(error, WAL_EIO, 0, segment->path, facts->error_offset,
                            "cannot read the segment");
    case WAL__VERDICT_NEWER:
        return wal__fail_at(error, WAL_EVERSION, 0, segment->path, facts->error_offset,
                            "the record has a newer format; this library reads "
                            "format version %d: use a newer library",
                            (int)WAL__FORMAT_VERSION);
    case WAL__VERDICT_STOPPED:
        return wal__fail_at(error, applier->status, 0, segment->path, facts->error_offset,
                            "cannot apply a record to the indexes");
    case WAL__VERDICT_CLEAN:
    case WAL__VERDICT_TORN:
    case WAL__VERDICT_AMBIGUOUS:
    case WAL__VERDICT_DAMAGED:
        break;
    }
    return WAL_OK;
}

enum wal_status wal__replay_scan(struct wal__log *log, struct wal__segment *segment,
                                 const struct wal__scan_start *start,
                                 struct wal__scan_result *facts, struct wal_error *error)
{
    struct applier applier = {log, segment, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, apply_scanned, note_lost};
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    enum wal_status status;

    wal__segment_reader_init(&reader, segment);
    wal__scan(&source, &sink, start, facts);
    status = reader.status == WAL_ENOMEM ? wal__no_memory(error)
                                         : scan_status(segment, facts, &applier, error);
    wal__segment_reader_deinit(&reader);
    return status;
}

void wal__replay_set_end(struct wal__log *log, const struct wal__scan_result *facts)
{
    WAL__ASSERT(facts->end <= log->tail_segment->header.capacity);
    atomic_store(&log->tail_segment->end, facts->end);
    atomic_store(&log->end, wal__position(log->tail_segment->id, facts->end));
    log->last_sequence = facts->last_sequence;
    log->chain = facts->chain;
    if (facts->commit_offset != 0) {
        log->commit_offset = facts->commit_offset;
        log->last_epoch = facts->epoch;
        log->clock_ms = facts->clock_ms;
    }
    log->marked = facts->watermark == log->commit_offset;
    wal__log_raise_pack_durable(log, facts->pack_durable);
}

/* --- the index of one segment ------------------------------------------- */

/* Replays a segment before the tail, up to where its successor ends it. */
static enum wal_status replay(struct wal__log *log, struct wal__segment *segment,
                              struct wal__scan_result *facts, struct wal_error *error)
{
    uint64_t end = atomic_load(&segment->end);
    struct wal__scan_start start;

    wal__replay_init_start(segment, &start);
    if (end > WAL__SEGMENT_HEADER_SIZE) {
        /* The chain continues there; nothing after it is kept. */
        start.known_end = end;
        start.capacity = end;
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        start.watermark = start.capacity; /* it was synced before its rename */
    }
    return wal__replay_scan(log, segment, &start, facts, error);
}

/* Fills the index header of a segment that was replayed, except the counts. */
static void fill_index_header(const struct wal__log *log, const struct wal__segment *segment,
                              const struct wal__scan_result *facts,
                              struct wal__index_header *header)
{
    memset(header, 0, sizeof(*header));
    header->id = segment->id;
    header->end = atomic_load(&segment->end);
    header->first_sequence = segment->open.last_sequence + 1;
    header->last_sequence = facts->last_sequence;
    header->chain = facts->chain;
    header->commit_offset = (uint32_t)facts->commit_offset;
    header->epoch = facts->epoch;
    memcpy(header->uuid, log->uuid, sizeof(header->uuid));
}

enum wal_status wal__log_rebuild_index(struct wal__log *log, struct wal__segment *segment,
                                       struct wal_error *error)
{
    const struct wal__log_client *client = &log->client;
    struct wal__index_header header;
    struct wal__scan_result *facts;
    struct wal__buf bytes;
    enum wal_status status;

    facts = wal__heap_alloc(log->env->heap, sizeof(*facts));
    if (facts == NULL) {
        return wal__no_memory(error);
    }
    wal__buf_init(&bytes, log->env->heap);
    status = replay(log, segment, facts, error);
    if (status != WAL_OK) {
        goto done;
    }
    if (atomic_load(&segment->end) <= WAL__SEGMENT_HEADER_SIZE) {
        /* The successor's OPEN, which names the end, was lost. */
        atomic_store(&segment->end, facts->end);
    }
    fill_index_header(log, segment, facts, &header);
    wal__log_raise_pack_durable(log, facts->pack_durable);
    status = client->encode_index(client->ctx, &header, &bytes);
    if (status == WAL_OK) {
        status = client->on_segment_end(client->ctx, segment, &bytes);
    }

done:
    wal__buf_deinit(&bytes);
    wal__heap_free(log->env->heap, facts);
    return status;
}

/* --- following other processes ------------------------------------------ */

/* Returns whether the page may be reset while this handle uses it. */
static bool is_follower(const struct wal__log *log)
{
    return log->env->read_only && log->shared != &log->control->private_page.logs[log->log_id];
}

static void raise_followed(struct wal__log *log, uint32_t log_id, uint64_t end)
{
    _Atomic uint64_t *followed = &log->control->followed[log_id];
    uint64_t before = atomic_load(followed);

    while (before < end && !atomic_compare_exchange_weak(followed, &before, end)) {
    }
}

uint64_t wal__log_follow(struct wal__log *log)
{
    const struct wal__control_log *first = log->shared - log->log_id;
    uint64_t followed = atomic_load(&log->control->followed[log->log_id]);
    uint64_t written;
    uint64_t pack;

    if (!is_follower(log)) {
        return atomic_load(&log->shared->written);
    }
    do {
        /* Ends that were read before a reset are valid, those from a reset to the end of the
         * recovery are not; is_recovered is 0 then. */
        written = atomic_load(&log->shared->written);
        pack = atomic_load(&first[WAL__LOG_ID_PACK].written);
        if (atomic_load(&first->is_recovered) == 0) {
            return followed;
        }
        /* An end that fell may have been read during a whole recovery. */
    } while (written < followed && written != atomic_load(&log->shared->written));
    raise_followed(log, WAL__LOG_ID_PACK, pack);
    raise_followed(log, log->log_id, written);
    return written;
}

bool wal__log_needs_catch_up(const struct wal__log *log)
{
    uint64_t end = atomic_load(&log->end);

    return log->needs_reload || wal__log_is_outdated(log) ||
           end < atomic_load(&log->shared->written) ||
           (is_follower(log) && end < atomic_load(&log->control->followed[log->log_id]));
}

/* Reads a scan's source from a map without populating it: the bytes were just written, so they are
 * in memory. */
static const uint8_t *map_fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const uint8_t *map = ctx;

    (void)size; /* the scan stays inside the segment */
    return map + offset;
}

/* Applies the groups of the tail segment from the applied end up to offset `to`. */
static enum wal_status apply_to(struct wal__log *log, uint64_t to, struct wal_error *error)
{
    struct applier applier = {log, log->tail_segment, log->clock_ms, WAL_OK};
    struct wal__scan_sink sink = {&applier, apply_scanned, note_lost};
    struct wal__scan_source source = {NULL, map_fetch};
    struct wal__scan_result *facts = &log->facts;
    struct wal__segment_reader reader;
    struct wal__scan_start start;
    enum wal_status status;

    wal__replay_init_start(log->tail_segment, &start);
    start.offset = atomic_load(&log->tail_segment->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    start.capacity = to;
    start.known_end = to;
    if (start.offset >= to) {
        return WAL_OK;
    }
    wal__segment_reader_init(&reader, log->tail_segment);
    if (log->env->use_pread) {
        source.ctx = &reader;
        source.fetch = wal__segment_reader_fetch;
    } else {
        source.ctx = (void *)(uintptr_t)wal__segment_map(log->tail_segment, error);
        if (source.ctx == NULL) {
            return WAL_EIO;
        }
    }
    wal__scan(&source, &sink, &start, facts);
    wal__segment_reader_deinit(&reader);
    status = scan_status(log->tail_segment, facts, &applier, error);
    if (status == WAL_OK && facts->end != to) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, log->tail_segment->path, facts->invalid,
                            "a group that another process published is damaged");
    }
    if (status == WAL_OK) {
        wal__replay_set_end(log, facts);
    } else {
        log->needs_reload = true;
    }
    return status;
}

/* Removes segments newer than `id` from the chain: healing continued without them. They remain open
 * for readers that use them. */
static void retire_newer_segments(struct wal__log *log, uint64_t id)
{
    struct wal__segment_table *table = atomic_load(&log->table);

    while (log->tail_segment != NULL && log->tail_segment->id > id) {
        struct wal__segment *dropped = log->tail_segment;

        WAL__ASSERT(table->count > 0 && table->segments[table->count - 1] == dropped);
        table->count--;
        log->tail_segment = table->count > 0 ? table->segments[table->count - 1] : NULL;
        wal__log_retire(log, dropped);
        log->needs_reload = true;
    }
}

/* Returns whether compaction has replaced the segments after the tail, the tail perhaps among them:
 * one of them is gone, or was rewritten. */
static bool is_overtaken(const struct wal__log *log, enum wal_status status,
                         const struct wal__segment *segment, uint64_t id)
{
    return log->log_id == WAL__LOG_ID_LOG &&
           (status == WAL_OK ? wal__segment_is_rewritten(&segment->header)
                             : status == WAL_ENOTFOUND && id != wal__log_newest_id(log));
}

/* Opens the segment whose OPEN names the tail as its predecessor: searched from the newest one
 * downwards. *next is NULL when the chain was replaced: it must be found anew. */
static enum wal_status open_successor(struct wal__log *log, struct wal__segment **next,
                                      struct wal_error *error)
{
    uint64_t id = wal__position_segment(wal__log_follow(log));

    for (;;) {
        uint64_t tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;
        struct wal__segment *segment = NULL;
        enum wal_status status =
            wal__segment_open(log->env, log->directory, id, log->uuid, log->class, &segment, error);

        if (is_overtaken(log, status, segment, id)) {
            wal__segment_close(segment);
            log->needs_reload = true;
            return WAL_OK;
        }
        if (status != WAL_OK || !segment->has_open) {
            wal__segment_close(segment);
            return wal__fail(
                error, status == WAL_OK ? WAL_ECORRUPT : status,
                "segment %016" PRIx64 ", which another process began, has no valid OPEN", id);
        }
        if (segment->open.previous_id < tail) {
            retire_newer_segments(log, segment->open.previous_id);
            tail = log->tail_segment == NULL ? 0 : log->tail_segment->id;
        }
        if (segment->open.previous_id == tail) {
            *next = segment;
            return WAL_OK;
        }
        id = segment->open.previous_id;
        wal__segment_close(segment);
        if (id <= tail) {
            return wal__fail(error, WAL_ECORRUPT,
                             "the segment chain of the live processes does not "
                             "contain this process's tail segment");
        }
    }
}

/* Applies the rest of a segment that its successor ends at `end`. Where more of it was applied,
 * healing has cut it: the indexes must be rebuilt. */
static enum wal_status finish_segment(struct wal__log *log, struct wal__segment *ended,
                                      uint64_t end, struct wal_error *error)
{
    if (wal__segment_is_rewritten(&ended->header)) {
        /* Healing replaced an empty segment after it. It is whole: `end` is that of the segment
         * that it replaced. */
        log->needs_reload = true;
        return WAL_OK;
    }
    if (!log->needs_reload && atomic_load(&ended->end) <= end) {
        return apply_to(log, end, error);
    }
    atomic_store(&ended->end, end);
    log->needs_reload = true;
    return WAL_OK;
}

/* Makes the segment after the tail the tail. */
static enum wal_status advance_segment(struct wal__log *log, struct wal_error *error)
{
    struct wal__segment *ended;
    struct wal__segment *next = NULL;
    enum wal_status status = open_successor(log, &next, error);

    if (status == WAL_OK && next == NULL) {
        return WAL_OK;
    }
    ended = log->tail_segment;
    if (status == WAL_OK && ended != NULL) {
        status = finish_segment(log, ended, next->open.previous_end, error);
    }
    if (status == WAL_OK) {
        status = wal__log_append_segment(log, next);
    }
    if (status != WAL_OK) {
        wal__segment_close(next);
        return status;
    }
    WAL__ASSERT(ended == NULL || ended->id < next->id);
    atomic_store(&next->end, WAL__SEGMENT_HEADER_SIZE);
    log->last_sequence = next->open.last_sequence;
    log->chain = next->open.chain;
    log->must_rotate = false;
    atomic_store(&log->end, wal__position(next->id, WAL__SEGMENT_HEADER_SIZE));
    if (ended == NULL || log->needs_reload) {
        log->commit_offset = 0;
        return WAL_OK;
    }
    status = wal__segment_refresh(ended);
    if (status == WAL_OK) {
        status = log->client.on_segment_end(log->client.ctx, ended, NULL);
    }
    if (status != WAL_OK) {
        /* The indexes have not recorded that the segment ended. */
        log->needs_reload = true;
    }
    log->commit_offset = 0; /* the next one's OPEN may have no COMMIT */
    wal__segment_release_file(ended);
    return status;
}

enum wal_status wal__log_catch_up(struct wal__log *log, struct wal_error *error)
{
    uint64_t written = wal__log_follow(log);
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && !log->needs_reload && atomic_load(&log->end) < written) {
        if (log->tail_segment != NULL && wal__position_segment(written) == log->tail_segment->id) {
            status = apply_to(log, wal__position_offset(written), error);
        } else {
            status = advance_segment(log, error);
        }
    }
    return status;
}

/* --- dead-writer takeover ----------------------------------------------- */

/* Returns whether the bytes after the published end are zero: no group follows.
 * */
static enum wal_status end_is_zero(struct wal__log *log, bool *zero, struct wal_error *error)
{
    static const uint8_t zeros[WAL__FRAME_SIZE];
    uint64_t end = atomic_load(&log->tail_segment->end);
    uint8_t bytes[WAL__FRAME_SIZE] = {0};
    const uint8_t *at = bytes;
    enum wal_status status;
    size_t got = 0;
    int err = 0;

    *zero = true;
    if (end + sizeof(zeros) > log->tail_segment->header.capacity) {
        return WAL_OK;
    }
    if (!log->env->use_pread) {
        at = wal__segment_map(log->tail_segment, error);
        if (at == NULL) {
            return WAL_EIO;
        }
        at += end;
    } else {
        status = wal__io_read_full(log->env->io, log->tail_segment->file, bytes, sizeof(bytes), end,
                                   &got, &err);
        if (status != WAL_OK) {
            return wal__fail_at(error, status, err, log->tail_segment->path, end,
                                "cannot read the end of the log");
        }
    }
    *zero = memcmp(at, zeros, sizeof(zeros)) == 0;
    return WAL_OK;
}

/* Decides about what follows the published end, by the decision table; then publishes what it
 * keeps. */
static enum wal_status scan_unpublished(struct wal__log *log, struct wal_error *error)
{
    struct wal__scan_start start;
    enum wal_status status;
    bool zero;

    if (log->tail_segment == NULL || log->must_rotate ||
        atomic_load(&log->shared->closed_segment_id) == log->tail_segment->id) {
        return WAL_OK;
    }
    status = end_is_zero(log, &zero, error);
    if (status != WAL_OK || zero) {
        return status;
    }
    wal__replay_init_start(log->tail_segment, &start);
    start.offset = atomic_load(&log->tail_segment->end);
    start.last_sequence = log->last_sequence;
    start.chain = log->chain;
    status = wal__replay_scan(log, log->tail_segment, &start, &log->facts, error);
    if (status != WAL_OK) {
        log->needs_reload = true;
        return status;
    }
    wal__replay_set_end(log, &log->facts);
    if (log->facts.verdict != WAL__VERDICT_CLEAN || log->facts.sealed_end != 0 ||
        log->facts.index_offset != 0) {
        log->must_rotate = true;
        atomic_store(&log->shared->closed_segment_id, log->tail_segment->id);
    }
    WAL__ASSERT(log->append_lock_held);
    WAL__ASSERT(atomic_load(&log->tail_segment->end) >= start.offset);
    atomic_store(&log->shared->written, atomic_load(&log->end));
    wal__control_notify(log->control, log->log_id, WAL__LOG_EVENT_WRITTEN);
    return WAL_OK;
}

enum wal_status wal__log_take_over_dead_writer(struct wal__log *log, struct wal_error *error)
{
    enum wal_status status;

    WAL__ASSERT(log->append_lock_held);
    if (atomic_load(&log->shared->last_appender_epoch) == log->epoch) {
        return WAL_OK; /* no other process has written since */
    }
    status = scan_unpublished(log, error);
    if (status == WAL_OK) {
        atomic_store(&log->shared->last_appender_epoch, log->epoch);
    }
    return status;
}
