/*
 * scan.c - one pass over a segment (SPEC.md 3.1 to 3.4), its salt when both copies of its header
 * are lost (2.2, 2.3, 2.22), and the comparison of the records of two segments (3.5).
 *
 * The pass walks valid frames from group to group up to X, the first offset without one. Then it
 * probes everything after X once, for the highest watermark W of any valid COMMIT, for a SEAL, and
 * for durable COMMITs. X below W or S is damage: the pass skips to the next valid frame and
 * continues. Otherwise X is the end, and the decision table classifies it.
 *
 * The salt: a frame's seed is fold(salt ^ offset * PHI) = fold(salt) ^ fold(offset * PHI), so
 * frames depend on fold(salt) alone. A CRC can be computed backwards: the OPEN frame at 4,096
 * yields its seed, and the next frame confirms it.
 *
 * Invariant: group <= at <= limit; sequences rise. A salt is accepted only if a second frame is
 * valid under it.
 */
#include "format/segment/scan.h"

#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/segment/frame.h"

/* A summary of the valid frames after an offset. */
struct wal__probe_result {
    uint64_t watermark;  /* highest of the valid COMMITs */
    uint64_t sealed_end; /* of a SEAL; 0: none */
    uint64_t dirty_end;  /* end of the last non-zero byte */
    uint64_t last_sequence;
    /* offset of the last COMMIT with WAL__COMMIT_DURABLE; 0: none */
    uint64_t last_durable_commit;
    uint64_t last_member; /* offset of the last BLOCK or COMMIT; 0: none */
    /* a COMMIT ends a group after that of OPEN */
    bool has_later_group;
    bool is_done;
};

/* --- the probe ------------------------------------------------------------ */

enum { PROBE_WINDOW = 256 * 1024, BLOCK = 4096 };

/* Returns the offset of the first non-zero 8-byte word from `from` on, or the end of the last whole
 * word. */
static uint64_t skip_zeros(const uint8_t *bytes, uint64_t from, uint64_t size)
{
    /* The rest is nearly always zeros; memcmp of overlapping ranges is the fastest test for
     * that. */
    while (from + BLOCK <= size && bytes[from] == 0 &&
           memcmp(bytes + from, bytes + from + 1, BLOCK - 1) == 0) {
        from += BLOCK;
    }
    while (from + 8 <= size && wal__get64(bytes + from) == 0) {
        from += 8;
    }
    return from;
}

static const uint8_t *fetch(struct wal__probe *probe, uint64_t offset, uint64_t size)
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
static bool is_frame(struct wal__probe *probe, uint64_t offset, uint64_t first_sequence,
                     struct wal__probe_hit *hit)
{
    struct wal__frame *frame = &hit->frame;
    uint64_t highest = probe->sequence + probe->limit / WAL__FRAME_SIZE;
    const uint8_t *at = fetch(probe, offset, WAL__FRAME_SIZE);

    if (at == NULL ||
        wal__frame_decode(at, probe->limit - offset, probe->salt, offset, frame) != WAL__FMT_OK) {
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
static uint64_t next_candidate(struct wal__probe *probe, uint64_t from, uint64_t *dirty_end)
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

bool wal__probe_next(struct wal__probe *probe, uint64_t from, uint64_t first_sequence,
                     uint64_t *dirty_end, struct wal__probe_hit *hit)
{
    for (;;) {
        from = next_candidate(probe, from, dirty_end);
        if (probe->failed || from >= probe->limit) {
            return false;
        }
        if (from + WAL__FRAME_SIZE <= probe->limit && is_frame(probe, from, first_sequence, hit)) {
            return true;
        }
        if (probe->failed) {
            return false;
        }
        from += WAL__FRAME_ALIGN;
    }
}

/* Updates the summary with a valid frame. */
static void record_frame(struct wal__probe_result *beyond, const struct wal__probe_hit *hit)
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
        if (commit.durable_off > beyond->watermark && commit.durable_off <= hit->offset) {
            beyond->watermark = commit.durable_off;
        }
        if (hit->offset > WAL__SEGMENT_HEADER_SIZE + commit.group_size) {
            beyond->has_later_group = true;
        }
        if ((commit.flags & WAL__COMMIT_DURABLE) != 0) {
            beyond->last_durable_commit = hit->offset;
        }
    }
    if (frame->type == WAL__FRAME_SEAL && wal__seal_record_decode(span, &seal) == WAL__FMT_OK &&
        seal.end <= hit->offset) {
        beyond->sealed_end = seal.end;
    }
}

/* Probes everything from `from` on, unless beyond->is_done. False: a read failed. */
static bool probe_all(struct wal__probe *probe, uint64_t from, struct wal__probe_result *beyond)
{
    struct wal__probe_hit hit;

    if (beyond->is_done) {
        return true;
    }
    beyond->dirty_end = from;
    while (wal__probe_next(probe, from, probe->sequence + 1, &beyond->dirty_end, &hit)) {
        record_frame(beyond, &hit);
        from = hit.offset + wal__frame_total_size(hit.frame.stored_size);
        beyond->dirty_end = from;
    }
    beyond->is_done = !probe->failed;
    return beyond->is_done;
}

/* --- the pass ------------------------------------------------------------- */

struct scan {
    const struct wal__scan_source *source;
    const struct wal__scan_sink *sink;
    const struct wal__scan_start *start;
    struct wal__scan_result *result;
    uint64_t limit;        /* end of the segment */
    uint64_t group;        /* offset of the present group's first frame */
    uint64_t at;           /* offset of the current frame */
    uint64_t sequence;     /* last one read, also in the present group */
    uint64_t group_first;  /* first sequence of the present group */
    uint64_t expected_end; /* S, from start and SEAL */
    uint32_t chain;        /* over all frames up to `at` */
    uint32_t group_frames;
    /* the present group lost frames of sessions that are not known */
    bool has_unknown_session;
    bool chain_unknown; /* the chain is unknown until the next COMMIT */
    struct wal__probe_result beyond;
};

const char *wal__verdict_text(enum wal__verdict verdict)
{
    switch (verdict) {
    case WAL__VERDICT_CLEAN:
        return "clean end";
    case WAL__VERDICT_TORN:
        return "torn: an unfinished group was dropped";
    case WAL__VERDICT_AMBIGUOUS:
        return "ambiguous: a group that may have been acknowledged is "
               "unreadable";
    case WAL__VERDICT_DAMAGED:
        return "damage to acknowledged data";
    case WAL__VERDICT_READ_ERROR:
        return "the bytes cannot be read";
    case WAL__VERDICT_NEWER:
        return "a frame of a newer format";
    case WAL__VERDICT_STOPPED:
        return "stopped";
    }
    return "unknown";
}

/* A probe for frames after those walked: with higher sequence numbers. */
static struct wal__probe make_probe(const struct scan *scan)
{
    return (struct wal__probe){
        .source = scan->source,
        .salt = scan->start->salt,
        .limit = scan->limit,
        .sequence = scan->sequence,
    };
}

/* Returns false, for the caller to return. */
static bool set_read_error(struct scan *scan, uint64_t offset)
{
    scan->result->verdict = WAL__VERDICT_READ_ERROR;
    scan->result->error_offset = offset;
    return false;
}

static void add_damage(struct scan *scan, uint64_t offset, uint64_t size, uint64_t first_sequence,
                       uint64_t last_sequence)
{
    struct wal__scan_result *result = scan->result;
    struct wal__damage *last;

    WAL__ASSERT(offset >= scan->group);
    result->verdict = WAL__VERDICT_DAMAGED;
    if (result->damage_count < WAL__DAMAGE_MAX) {
        result->damage[result->damage_count] =
            (struct wal__damage){offset, size, first_sequence, last_sequence};
        result->damage_count++;
        return;
    }
    /* The list is full: extend its last range over this one. */
    last = &result->damage[WAL__DAMAGE_MAX - 1];
    last->size = offset + size - last->offset;
    last->last_sequence = last_sequence;
    result->damage_count++;
}

static bool report_lost(struct scan *scan, uint32_t session)
{
    if (scan->sink->lost == NULL) {
        return true;
    }
    return scan->sink->lost(scan->sink->ctx, session);
}

/* Passes the frames [group, at) of the present group to the sink. */
static bool deliver_range(struct scan *scan, const struct wal__commit_record *commit)
{
    struct wal__scan_range range = {NULL, scan->group, scan->at - scan->group, commit};
    bool accepted;

    if (scan->sink->range == NULL) {
        return true;
    }
    if (range.size > 0) {
        range.bytes = scan->source->fetch(scan->source->ctx, range.offset, range.size);
        if (range.bytes == NULL) {
            return set_read_error(scan, range.offset);
        }
    }
    accepted = scan->sink->range(scan->sink->ctx, &range);
    if (!accepted) {
        scan->result->verdict = WAL__VERDICT_STOPPED;
    }
    return accepted;
}

static void begin_group(struct scan *scan, uint64_t offset)
{
    WAL__ASSERT(offset >= scan->at);
    scan->group = offset;
    scan->at = offset;
    scan->group_first = scan->sequence + 1;
    scan->group_frames = 0;
    scan->has_unknown_session = false;
}

static void record_commit(struct scan *scan, const struct wal__commit_record *commit)
{
    struct wal__scan_result *result = scan->result;

    WAL__ASSERT(scan->at > result->commit_offset);
    WAL__ASSERT(scan->sequence >= result->last_sequence);
    if (commit->durable_off > result->watermark) {
        result->watermark = commit->durable_off;
    }
    result->commit_offset = scan->at;
    result->epoch = commit->epoch;
    result->clock_ms = commit->clock_ms;
    if (commit->pack_durable > result->pack_durable) {
        result->pack_durable = commit->pack_durable;
    }
    result->last_sequence = scan->sequence;
    result->groups++;
}

/* Records a group that lost frames, or that does not follow the previous one. False: the sink
 * stopped the scan. */
static bool report_damaged_group(struct scan *scan, const struct wal__commit_record *commit,
                                 bool whole)
{
    if (whole) {
        uint64_t last = commit->first_sequence - 1;

        add_damage(scan, scan->at, 0, scan->group_first, last >= scan->group_first ? last : 0);
        return true;
    }
    for (uint32_t i = 0; scan->has_unknown_session && i < commit->session_count; i++) {
        if (!report_lost(scan, wal__commit_record_session(commit, i))) {
            scan->result->verdict = WAL__VERDICT_STOPPED;
            return false;
        }
    }
    return true;
}

/* Ends the group at the COMMIT at `at`. False: it is not valid here, or the scan is stopped. */
static bool process_commit(struct scan *scan, const struct wal__frame *frame,
                           const uint8_t *payload)
{
    struct wal__span span = {payload, frame->stored_size};
    struct wal__commit_record commit;
    bool whole;
    bool follows;

    if (wal__commit_record_decode(span, &commit) != WAL__FMT_OK) {
        return false;
    }
    whole = commit.frame_count == scan->group_frames && commit.group_size == scan->at - scan->group;
    follows = whole && commit.first_sequence == scan->group_first &&
              (scan->chain_unknown || commit.chain == scan->chain);
    if (!follows && !report_damaged_group(scan, &commit, whole)) {
        return false;
    }
    if (commit.first_sequence > scan->sequence + 1) {
        scan->sequence = commit.first_sequence - 1;
    }
    /* Below the watermark each valid frame counts; after it only whole groups do. */
    if ((whole || scan->start->is_rewritten || scan->group < scan->result->watermark) &&
        !deliver_range(scan, &commit)) {
        return false;
    }
    record_commit(scan, &commit);
    scan->chain = wal__frame_chain_crc(commit.chain, frame);
    scan->chain_unknown = false;
    scan->result->chain = scan->chain;
    begin_group(scan, wal__align_up(scan->at + wal__frame_total_size(frame->stored_size),
                                    scan->start->group_align));
    scan->result->end = scan->at;
    return true;
}

/* Records INDEX or SEAL, which follow the last group of a sealed segment. */
static bool process_footer(struct scan *scan, const struct wal__frame *frame,
                           const uint8_t *payload)
{
    struct wal__span span = {payload, frame->stored_size};
    struct wal__seal_record seal;

    if (scan->group_frames > 0) {
        return false;
    }
    if (frame->type == WAL__FRAME_INDEX) {
        scan->result->index_offset = scan->at;
        scan->result->index_size = frame->stored_size;
        return true;
    }
    if (wal__seal_record_decode(span, &seal) != WAL__FMT_OK) {
        return false;
    }
    scan->result->sealed_end = seal.end;
    if (seal.end > scan->expected_end) {
        scan->expected_end = seal.end;
    }
    return true;
}

/* Checks that the sequence rises; records a gap as damage. */
static bool check_sequence(struct scan *scan, const struct wal__frame *frame)
{
    if (!wal__frame_is_sequenced(frame->type)) {
        return true;
    }
    if (frame->sequence <= scan->sequence) {
        return false;
    }
    if (frame->sequence != scan->sequence + 1) {
        scan->chain_unknown = true;
        scan->has_unknown_session = true;
        add_damage(scan, scan->at, 0, scan->sequence + 1, frame->sequence - 1);
        if (scan->group_frames == 0) {
            scan->group_first = frame->sequence; /* the gap precedes it */
        }
    }
    scan->sequence = frame->sequence;
    return true;
}

/* Whether a frame's parent was lost in a damaged range. */
static bool parent_is_lost(const struct scan *scan, const struct wal__frame *frame)
{
    const struct wal__scan_result *result = scan->result;
    uint32_t count = result->damage_count;

    if (frame->parent == 0) {
        return false;
    }
    if (count > WAL__DAMAGE_MAX) {
        count = WAL__DAMAGE_MAX;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (frame->parent >= result->damage[i].first_sequence &&
            frame->parent <= result->damage[i].last_sequence) {
            return true;
        }
    }
    return false;
}

/* Processes the valid frame at `at`; false: it is not allowed here, or the scan is stopped. */
static bool process_frame(struct scan *scan, const struct wal__frame *frame, const uint8_t *payload)
{
    uint64_t span = wal__frame_total_size(frame->stored_size);

    WAL__ASSERT(span <= scan->limit - scan->at);
    if (frame->type == WAL__FRAME_COMMIT) {
        return process_commit(scan, frame, payload);
    }
    if (frame->type == WAL__FRAME_INDEX || frame->type == WAL__FRAME_SEAL) {
        if (!process_footer(scan, frame, payload)) {
            return false;
        }
        scan->at += span;
        scan->group = scan->at;
        return true;
    }
    if (frame->type == WAL__FRAME_OPEN && scan->at != WAL__SEGMENT_HEADER_SIZE) {
        return false;
    }
    if (scan->result->sealed_end != 0 || scan->result->index_offset != 0 ||
        !check_sequence(scan, frame)) {
        return false;
    }
    if (parent_is_lost(scan, frame) && !report_lost(scan, frame->session)) {
        scan->result->verdict = WAL__VERDICT_STOPPED;
        return false;
    }
    scan->chain = wal__frame_chain_crc(scan->chain, frame);
    scan->group_frames++;
    scan->at += span;
    return true;
}

static bool is_stopped(const struct scan *scan)
{
    return scan->result->verdict == WAL__VERDICT_READ_ERROR ||
           scan->result->verdict == WAL__VERDICT_NEWER ||
           scan->result->verdict == WAL__VERDICT_STOPPED;
}

/* Decodes the frame at `at` and checks its payload. Sets *lost to the session of a frame with a
 * valid header and invalid data. */
static bool read_frame(struct scan *scan, struct wal__frame *frame, const uint8_t **payload,
                       uint32_t *lost)
{
    uint64_t before = scan->at - scan->group;
    enum wal__fmt fmt;
    const uint8_t *at;

    WAL__ASSERT(scan->at >= scan->group && scan->at < scan->limit);
    at = scan->source->fetch(scan->source->ctx, scan->group, before + WAL__FRAME_SIZE);
    if (at == NULL) {
        return set_read_error(scan, scan->at);
    }
    fmt =
        wal__frame_decode(at + before, scan->limit - scan->at, scan->start->salt, scan->at, frame);
    if (fmt == WAL__FMT_TYPE) {
        scan->result->verdict = WAL__VERDICT_NEWER;
        scan->result->error_offset = scan->at;
    }
    if (fmt != WAL__FMT_OK) {
        return false;
    }
    at = scan->source->fetch(scan->source->ctx, scan->group,
                             before + wal__frame_total_size(frame->stored_size));
    if (at == NULL) {
        return set_read_error(scan, scan->at);
    }
    *payload = at + before + WAL__FRAME_SIZE;
    if (wal__frame_check_data(frame, *payload) != WAL__FMT_OK) {
        *lost = frame->session;
        return false;
    }
    return true;
}

/* Walks valid frames up to X; sets *lost as read_frame does, else to 0. */
static void walk_frames(struct scan *scan, uint32_t *lost)
{
    struct wal__frame frame;
    const uint8_t *payload = NULL;

    *lost = 0;
    while (scan->at + WAL__FRAME_SIZE <= scan->limit && read_frame(scan, &frame, &payload, lost) &&
           process_frame(scan, &frame, payload)) {
    }
}

/* Returns the last sequence number before the frame of `hit`, which follows damage; 0: unknown. */
static uint64_t last_lost_sequence(const struct scan *scan, const struct wal__probe_hit *hit)
{
    const struct wal__frame *frame = &hit->frame;
    struct wal__span span = {hit->payload, frame->stored_size};
    struct wal__commit_record commit;
    struct wal__seal_record seal;

    if (scan->start->is_rewritten) {
        return 0;
    }
    if (wal__frame_is_sequenced(frame->type)) {
        return frame->sequence - 1;
    }
    if (frame->type == WAL__FRAME_COMMIT &&
        wal__commit_record_decode(span, &commit) == WAL__FMT_OK) {
        /* OPEN is a frame of the first group but has no sequence number. */
        bool has_open = hit->offset == WAL__SEGMENT_HEADER_SIZE + (uint64_t)commit.group_size;

        return commit.first_sequence + commit.frame_count - 1 - has_open;
    }
    if (frame->type == WAL__FRAME_SEAL && wal__seal_record_decode(span, &seal) == WAL__FMT_OK) {
        return seal.last_sequence;
    }
    return 0;
}

/* Skips from X over damage to the next valid frame; false: there is none. */
static bool skip_damage(struct scan *scan, uint32_t lost)
{
    struct wal__probe probe = make_probe(scan);
    struct wal__probe_hit hit;
    uint64_t from = scan->at;
    uint64_t to;
    uint64_t last = 0;
    bool found;

    if (scan->at > scan->group && !deliver_range(scan, NULL)) {
        return false;
    }
    found = wal__probe_next(&probe, from + WAL__FRAME_ALIGN, scan->sequence + 1, NULL, &hit);
    if (probe.failed) {
        return set_read_error(scan, probe.error_offset);
    }
    if (found) {
        to = hit.offset;
        last = last_lost_sequence(scan, &hit);
    } else {
        to = scan->expected_end > from ? scan->expected_end : from;
    }
    WAL__ASSERT(to >= from);
    add_damage(scan, from, to - from, scan->sequence + 1, last > scan->sequence ? last : 0);
    if (lost != 0 && !report_lost(scan, lost)) {
        scan->result->verdict = WAL__VERDICT_STOPPED;
        return false;
    }
    if (last > scan->sequence) {
        scan->sequence = last;
    }
    begin_group(scan, to);
    scan->chain_unknown = true;
    scan->has_unknown_session = lost == 0;
    scan->result->end = to;
    scan->result->last_sequence = scan->sequence;
    return found;
}

/* Applies the table of SPEC.md 3.4 at X; true: continue after damage. */
static bool classify_end(struct scan *scan, uint32_t lost)
{
    struct wal__scan_result *result = scan->result;
    const struct wal__probe_result *beyond = &scan->beyond;
    struct wal__probe probe = make_probe(scan);

    result->invalid = scan->at;
    if (!probe_all(&probe, scan->at, &scan->beyond)) {
        return set_read_error(scan, probe.error_offset);
    }
    result->dirty_end = beyond->dirty_end > scan->at ? beyond->dirty_end : scan->at;
    result->torn_sequence =
        beyond->last_sequence > scan->sequence ? beyond->last_sequence : scan->sequence;
    if (scan->start->is_replica) {
        bool is_torn = result->dirty_end > result->end || scan->group_frames > 0;

        result->verdict =
            is_torn && result->sealed_end == 0 ? WAL__VERDICT_TORN : WAL__VERDICT_CLEAN;
        return false;
    }
    if (beyond->watermark > result->watermark) {
        result->watermark = beyond->watermark;
    }
    if (beyond->sealed_end > scan->expected_end) {
        scan->expected_end = beyond->sealed_end;
    }
    /* OPEN is durable before anything else is written: where a group follows, it was damaged
     * afterwards. In a rewritten segment each member of a group after X shows damage. */
    if (scan->at < result->watermark || scan->at < scan->expected_end ||
        (scan->at == WAL__SEGMENT_HEADER_SIZE && scan->beyond.has_later_group) ||
        (scan->start->is_rewritten && scan->at < scan->beyond.last_member)) {
        return skip_damage(scan, lost);
    }
    if (result->sealed_end == 0) {
        result->sealed_end = beyond->sealed_end; /* the INDEX is damaged */
    }
    if (result->verdict != WAL__VERDICT_CLEAN || result->sealed_end != 0) {
        return false;
    }
    if (beyond->last_durable_commit >= scan->at) {
        result->verdict = WAL__VERDICT_AMBIGUOUS;
    } else if (result->dirty_end > result->end || scan->group_frames > 0) {
        result->verdict = WAL__VERDICT_TORN;
    }
    return false;
}

void wal__scan(const struct wal__scan_source *source, const struct wal__scan_sink *sink,
               const struct wal__scan_start *start, struct wal__scan_result *result)
{
    struct scan scan = {0};
    uint32_t lost;

    WAL__ASSERT(start->group_align % WAL__FRAME_ALIGN == 0);
    memset(result, 0, sizeof(*result));
    scan.source = source;
    scan.sink = sink;
    scan.start = start;
    scan.result = result;
    scan.limit = start->capacity;
    scan.expected_end = start->known_end;
    scan.sequence = start->last_sequence;
    scan.chain = start->chain;
    result->end = start->offset;
    result->chain = start->chain;
    result->last_sequence = start->last_sequence;
    result->watermark =
        start->watermark > WAL__SEGMENT_HEADER_SIZE ? start->watermark : WAL__SEGMENT_HEADER_SIZE;
    begin_group(&scan, start->offset);
    do {
        walk_frames(&scan, &lost);
    } while (!is_stopped(&scan) && classify_end(&scan, lost));
    if (result->invalid == 0) {
        result->invalid = scan.at;
    }
    WAL__ASSERT(result->last_sequence >= start->last_sequence);
    WAL__ASSERT(result->end >= start->offset);
}

/* --- without a header ----------------------------------------------------- */

#define POLYNOMIAL 0xEDB88320u
#define TOP_BIT    0x80000000u

/* The start value that yields `crc` after the bytes. */
static uint32_t crc_unwind(uint32_t crc, const uint8_t *bytes, size_t size)
{
    crc = ~crc;
    while (size > 0) {
        size--;
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc & TOP_BIT) != 0 ? (crc ^ POLYNOMIAL) << 1 | 1 : crc << 1;
        }
        crc ^= bytes[size];
    }
    return ~crc;
}

/* Whether a valid frame is at `offset`; *next is the offset after it. */
static bool is_valid_frame(const struct wal__scan_source *source, uint64_t size, uint64_t salt,
                           uint64_t offset, uint64_t *next)
{
    const uint8_t *bytes = source->fetch(source->ctx, offset, WAL__FRAME_SIZE);
    struct wal__frame frame;

    if (bytes == NULL ||
        wal__frame_decode(bytes, size - offset, salt, offset, &frame) != WAL__FMT_OK) {
        return false;
    }
    *next = offset + wal__frame_total_size(frame.stored_size);
    return true;
}

bool wal__salt_find(const struct wal__scan_source *source, uint64_t size, uint64_t *salt)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    const uint8_t *bytes;
    uint32_t seed;
    uint64_t next;

    if (size < WAL__SEGMENT_MIN || size > WAL__SEGMENT_MAX ||
        size % WAL__SEGMENT_HEADER_SIZE != 0) {
        return false;
    }
    bytes = source->fetch(source->ctx, at, WAL__FRAME_SIZE);
    if (bytes == NULL) {
        return false;
    }
    seed = crc_unwind(wal__get32(bytes), bytes + 4, WAL__FRAME_SIZE - 4);
    *salt = seed ^ wal__crc32_seed(0, at);
    return is_valid_frame(source, size, *salt, at, &next) &&
           is_valid_frame(source, size, *salt, next, &next);
}

/* Decodes the header of the frame at `offset`; false if it is not valid. */
static bool read_header(const struct wal__scan_source *source, uint64_t size, uint64_t salt,
                        uint64_t offset, struct wal__frame *frame)
{
    const uint8_t *bytes;

    if (offset > size || size - offset < WAL__FRAME_SIZE) {
        return false;
    }
    bytes = source->fetch(source->ctx, offset, WAL__FRAME_SIZE);
    return bytes != NULL &&
           wal__frame_decode(bytes, size - offset, salt, offset, frame) == WAL__FMT_OK;
}

/* The payload of a frame whose header is valid; empty if it is damaged. */
static struct wal__span read_payload(const struct wal__scan_source *source, uint64_t offset,
                                     const struct wal__frame *frame)
{
    struct wal__span payload = {NULL, 0};
    const uint8_t *bytes =
        source->fetch(source->ctx, offset, wal__frame_total_size(frame->stored_size));

    if (bytes != NULL && wal__frame_check_data(frame, bytes + WAL__FRAME_SIZE) == WAL__FMT_OK) {
        payload.data = bytes + WAL__FRAME_SIZE;
        payload.size = frame->stored_size;
    }
    return payload;
}

bool wal__rewrite_find(const struct wal__scan_source *source, uint64_t size, uint64_t salt,
                       struct wal__rewrite *rewrite)
{
    uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__open_record open = {.epoch = 0};
    struct wal__commit_record commit;
    struct wal__frame frame;
    bool continues = false; /* the first group is followed by the next number */

    *rewrite = (struct wal__rewrite){.generation = 1};
    if (!read_header(source, size, salt, at, &frame) || frame.type != WAL__FRAME_OPEN ||
        wal__open_record_decode(read_payload(source, at, &frame), &open) != WAL__FMT_OK) {
        return false;
    }
    rewrite->first_id = open.previous_id + 1;
    rewrite->last_sequence = open.last_sequence;
    at += wal__frame_total_size(frame.stored_size);
    if (read_header(source, size, salt, at, &frame) && frame.type == WAL__FRAME_COMMIT &&
        wal__commit_record_decode(read_payload(source, at, &frame), &commit) == WAL__FMT_OK &&
        commit.first_sequence > open.last_sequence) {
        continues = commit.first_sequence == open.last_sequence + 1;
        rewrite->last_sequence = commit.first_sequence - 1;
    }
    at = wal__align_up(at + wal__frame_total_size((uint32_t)wal__commit_record_size(0)),
                       WAL__BLOCK_ALIGN);
    return read_header(source, size, salt, at, &frame)
               ? frame.type == WAL__FRAME_BLOCK || (frame.type == WAL__FRAME_COMMIT && !continues)
               : false;
}

/* --- repeated records ----------------------------------------------------- */

/* What the records of a segment are, up to a sequence number. */
struct summary {
    const struct wal__repeat_segment *segment;
    uint64_t limit; /* highest sequence number that counts */
    uint64_t last_sequence;
    uint64_t count;
    uint32_t crc;
};

static bool add_range(void *ctx, const struct wal__scan_range *range)
{
    struct summary *summary = ctx;
    const struct wal__repeat_segment *segment = summary->segment;
    uint64_t at = 0;

    while (at < range->size) {
        const uint8_t *stored = range->bytes + at + WAL__FRAME_SIZE;
        const uint64_t offset = range->offset + at;
        uint8_t header[WAL__FRAME_SIZE];
        struct wal__frame frame;

        if (wal__frame_decode(range->bytes + at, range->size - at, segment->start.salt, offset,
                              &frame) != WAL__FMT_OK) {
            return false;
        }
        at += wal__frame_total_size(frame.stored_size);
        if (!wal__frame_is_sequenced(frame.type)) {
            continue;
        }
        if (frame.sequence > summary->limit ||
            (segment->decrypt != NULL &&
             !segment->decrypt(segment->decrypt_ctx, &frame, offset, stored))) {
            return false; /* the rest is not compared */
        }
        wal__frame_encode(&frame, 0, 0, header); /* as at no place */
        summary->crc = wal__crc32(summary->crc, header, sizeof(header));
        summary->last_sequence = frame.sequence;
        summary->count++;
    }
    return true;
}

/* Sums up the records up to `limit`, and returns how the scan ended. */
static enum wal__verdict sum_up(const struct wal__repeat_segment *segment, uint64_t limit,
                                struct summary *summary, struct wal__scan_result *scratch)
{
    const struct wal__scan_sink sink = {summary, add_range, NULL};

    *summary = (struct summary){.segment = segment, .limit = limit};
    wal__scan(&segment->source, &sink, &segment->start, scratch);
    return scratch->verdict;
}

enum wal__repeat wal__segment_repeats(const struct wal__repeat_segment *segment,
                                      const struct wal__repeat_segment *other,
                                      struct wal__scan_result *scratch)
{
    struct summary own;
    struct summary theirs;
    enum wal__verdict verdict = sum_up(segment, UINT64_MAX, &own, scratch);

    if (verdict != WAL__VERDICT_CLEAN && verdict != WAL__VERDICT_TORN) {
        return WAL__REPEAT_NO;
    }
    if (own.count == 0) {
        return WAL__REPEAT_EMPTY;
    }
    if (other == NULL) {
        return WAL__REPEAT_NO;
    }
    verdict = sum_up(other, own.last_sequence, &theirs, scratch);
    return verdict != WAL__VERDICT_READ_ERROR && theirs.count == own.count &&
                   theirs.last_sequence == own.last_sequence && theirs.crc == own.crc
               ? WAL__REPEAT_RECORDS
               : WAL__REPEAT_NO;
}
