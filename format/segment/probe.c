/*
 * probe.c - searches for valid frames word by word (SPEC.md 3.4). Threads: no
 * shared state.
 */
#include "format/segment/probe.h"

#include "format/bytes/bytes.h"

enum {
    PROBE_WINDOW = 256 * 1024,
    BLOCK = 4096
};

/* Returns the offset of the first non-zero 8-byte word from `from` on, or the
 * end of the last whole word. */
static uint64_t skip_zeros(const uint8_t *bytes, uint64_t from, uint64_t size)
{
    /* The rest is nearly always zeros; memcmp of overlapping ranges is the
     * fastest test for that. */
    while (from + BLOCK <= size && bytes[from] == 0 &&
           memcmp(bytes + from, bytes + from + 1, BLOCK - 1) == 0) {
        from += BLOCK;
    }
    while (from + 8 <= size && wal__get64(bytes + from) == 0) {
        from += 8;
    }
    return from;
}

static const uint8_t *fetch(struct wal__probe *probe, uint64_t offset,
                            uint64_t size)
{
    const uint8_t *bytes;

    WAL__ASSERT(offset <= probe->limit && size <= probe->limit - offset);
    bytes = probe->source->fetch(probe->source->ctx, offset, size);
    if (bytes == NULL) {
        probe->failed = true;
        probe->error_offset = offset;
    }
    return bytes;
}

/* Whether a frame at `offset` has a valid header, data and sequence range. */
static bool is_frame(struct wal__probe *probe, uint64_t offset,
                     uint64_t first_sequence, struct wal__probe_hit *hit)
{
    struct wal__frame *frame = &hit->frame;
    uint64_t highest = probe->sequence + probe->limit / WAL__FRAME_SIZE;
    const uint8_t *at = fetch(probe, offset, WAL__FRAME_SIZE);

    if (at == NULL || wal__frame_decode(at, probe->limit - offset, probe->salt,
                                        offset, frame) != WAL__FMT_OK) {
        return false;
    }
    if (wal__frame_is_sequenced(frame->type) &&
        (frame->sequence < first_sequence || frame->sequence > highest)) {
        return false;
    }
    at = fetch(probe, offset, wal__frame_total_size(frame->stored_size));
    if (at == NULL) {
        return false;
    }
    hit->offset = offset;
    hit->payload = at + WAL__FRAME_SIZE;
    return wal__frame_check_data(frame, hit->payload) == WAL__FMT_OK;
}

static void raise_dirty_end(uint64_t *dirty_end, uint64_t to)
{
    if (dirty_end != NULL && to > *dirty_end) {
        *dirty_end = to;
    }
}

/* Returns the first non-zero word from `from` on, which could begin a frame;
 * `limit` if there is none. Windows are aligned to their size, so a source with
 * a mapped window need not move it for every word. */
static uint64_t next_candidate(struct wal__probe *probe, uint64_t from,
                               uint64_t *dirty_end)
{
    while (from + WAL__FRAME_ALIGN <= probe->limit) {
        uint64_t end = (from / PROBE_WINDOW + 1) * PROBE_WINDOW;
        uint64_t size = (end < probe->limit ? end : probe->limit) - from;
        const uint8_t *bytes = fetch(probe, from, size);
        uint64_t at;

        if (bytes == NULL) {
            return probe->limit;
        }
        at = skip_zeros(bytes, 0, size);
        if (at + WAL__FRAME_ALIGN <= size) {
            raise_dirty_end(dirty_end, from + at + WAL__FRAME_ALIGN);
            return from + at;
        }
        from += size;
    }
    return probe->limit;
}

bool wal__probe_next(struct wal__probe *probe, uint64_t from,
                     uint64_t first_sequence, uint64_t *dirty_end,
                     struct wal__probe_hit *hit)
{
    for (;;) {
        from = next_candidate(probe, from, dirty_end);
        if (probe->failed || from >= probe->limit) {
            return false;
        }
        if (from + WAL__FRAME_SIZE <= probe->limit &&
            is_frame(probe, from, first_sequence, hit)) {
            return true;
        }
        if (probe->failed) {
            return false;
        }
        from += WAL__FRAME_ALIGN;
    }
}

/* Updates the summary with a valid frame. */
static void record_frame(struct wal__probe_result *beyond,
                         const struct wal__probe_hit *hit)
{
    const struct wal__frame *frame = &hit->frame;
    struct wal__span span = {hit->payload, frame->stored_size};
    struct wal__commit_record commit;
    struct wal__seal_record seal;

    WAL__ASSERT(hit->offset < beyond->dirty_end);
    if (frame->sequence > beyond->last_sequence) {
        beyond->last_sequence = frame->sequence;
    }
    if (frame->type == WAL__FRAME_BLOCK || frame->type == WAL__FRAME_COMMIT) {
        beyond->last_member = hit->offset;
    }
    if (frame->type == WAL__FRAME_COMMIT &&
        wal__commit_record_decode(span, &commit) == WAL__FMT_OK) {
        if (commit.durable_off > beyond->watermark &&
            commit.durable_off <= hit->offset) {
            beyond->watermark = commit.durable_off;
        }
        if (hit->offset > WAL__SEGMENT_HEADER_SIZE + commit.group_size) {
            beyond->has_later_group = true;
        }
        if ((commit.flags & WAL__COMMIT_DURABLE) != 0) {
            beyond->last_durable_commit = hit->offset;
        }
    }
    if (frame->type == WAL__FRAME_SEAL &&
        wal__seal_record_decode(span, &seal) == WAL__FMT_OK &&
        seal.end <= hit->offset) {
        beyond->sealed_end = seal.end;
    }
}

bool wal__probe_all(struct wal__probe *probe, uint64_t from,
                    struct wal__probe_result *beyond)
{
    struct wal__probe_hit hit;

    if (beyond->is_done) {
        return true;
    }
    beyond->dirty_end = from;
    while (wal__probe_next(probe, from, probe->sequence + 1, &beyond->dirty_end,
                           &hit)) {
        record_frame(beyond, &hit);
        from = hit.offset + wal__frame_total_size(hit.frame.stored_size);
        beyond->dirty_end = from;
    }
    beyond->is_done = !probe->failed;
    return beyond->is_done;
}
