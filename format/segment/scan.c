/*
 * scan.c - one pass over a segment (SPEC.md 3.1 to 3.4).
 *
 * The pass walks valid frames from group to group up to X, the first offset
 * without one. Then it probes everything after X once, for the highest
 * watermark W of any valid COMMIT, for a SEAL, and for durable COMMITs. X below
 * W or S is damage: the pass skips to the next valid frame and continues.
 * Otherwise X is the end, and the decision table classifies it.
 *
 * Invariant: group <= at <= limit; sequences rise. Threads: no shared state.
 */
#include "format/segment/scan.h"

#include <string.h>

#include "format/segment/probe.h"

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

static void add_damage(struct scan *scan, uint64_t offset, uint64_t size,
                       uint64_t first_sequence, uint64_t last_sequence)
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
static bool deliver_range(struct scan *scan,
                          const struct wal__commit_record *commit)
{
    struct wal__scan_range range = {NULL, scan->group, scan->at - scan->group,
                                    commit};
    bool accepted;

    if (scan->sink->range == NULL) {
        return true;
    }
    if (range.size > 0) {
        range.bytes =
            scan->source->fetch(scan->source->ctx, range.offset, range.size);
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

/* Whether the walk read all frames of the COMMIT's group. */
static bool group_is_complete(const struct scan *scan,
                              const struct wal__commit_record *commit)
{
    return commit->frame_count == scan->group_frames &&
           commit->group_size == scan->at - scan->group;
}

static void record_commit(struct scan *scan,
                          const struct wal__commit_record *commit)
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

/* Records a group that lost frames, or that does not follow the previous one.
 * False: the sink stopped the scan. */
static bool report_damaged_group(struct scan *scan,
                                 const struct wal__commit_record *commit,
                                 bool whole)
{
    if (whole) {
        uint64_t last = commit->first_sequence - 1;

        add_damage(scan, scan->at, 0, scan->group_first,
                   last >= scan->group_first ? last : 0);
        return true;
    }
    for (uint32_t i = 0; scan->has_unknown_session && i < commit->session_count;
         i++) {
        if (!report_lost(scan, wal__commit_record_session(commit, i))) {
            scan->result->verdict = WAL__VERDICT_STOPPED;
            return false;
        }
    }
    return true;
}

/* Ends the group at the COMMIT at `at`. False: it is not valid here, or the
 * scan is stopped. */
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
    whole = group_is_complete(scan, &commit);
    follows = whole && commit.first_sequence == scan->group_first &&
              (scan->chain_unknown || commit.chain == scan->chain);
    if (!follows && !report_damaged_group(scan, &commit, whole)) {
        return false;
    }
    if (commit.first_sequence > scan->sequence + 1) {
        scan->sequence = commit.first_sequence - 1;
    }
    /* Below the watermark each valid frame counts; after it only whole
     * groups do. */
    if ((whole || scan->start->is_rewritten ||
         scan->group < scan->result->watermark) &&
        !deliver_range(scan, &commit)) {
        return false;
    }
    record_commit(scan, &commit);
    scan->chain = wal__frame_chain_crc(commit.chain, frame);
    scan->chain_unknown = false;
    scan->result->chain = scan->chain;
    begin_group(scan, wal__align_up(
                          scan->at + wal__frame_total_size(frame->stored_size),
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
static bool parent_is_lost(const struct scan *scan,
                           const struct wal__frame *frame)
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

/* Processes the valid frame at `at`; false: it is not allowed here, or the scan
 * is stopped. */
static bool process_frame(struct scan *scan, const struct wal__frame *frame,
                          const uint8_t *payload)
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
    if (frame->type == WAL__FRAME_OPEN &&
        scan->at != WAL__SEGMENT_HEADER_SIZE) {
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

/* Decodes the frame at `at` and checks its payload. Sets *lost to the session
 * of a frame with a valid header and invalid data. */
static bool read_frame(struct scan *scan, struct wal__frame *frame,
                       const uint8_t **payload, uint32_t *lost)
{
    uint64_t before = scan->at - scan->group;
    enum wal__fmt fmt;
    const uint8_t *at;

    WAL__ASSERT(scan->at >= scan->group && scan->at < scan->limit);
    at = scan->source->fetch(scan->source->ctx, scan->group,
                             before + WAL__FRAME_SIZE);
    if (at == NULL) {
        return set_read_error(scan, scan->at);
    }
    fmt = wal__frame_decode(at + before, scan->limit - scan->at,
                            scan->start->salt, scan->at, frame);
    if (fmt == WAL__FMT_TYPE) {
        scan->result->verdict = WAL__VERDICT_NEWER;
        scan->result->error_offset = scan->at;
    }
    if (fmt != WAL__FMT_OK) {
        return false;
    }
    at =
        scan->source->fetch(scan->source->ctx, scan->group,
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
    while (scan->at + WAL__FRAME_SIZE <= scan->limit &&
           read_frame(scan, &frame, &payload, lost) &&
           process_frame(scan, &frame, payload)) {
    }
}

/* Returns the last sequence number before the frame of `hit`, which follows
 * damage; 0: unknown. */
static uint64_t last_lost_sequence(const struct scan *scan,
                                   const struct wal__probe_hit *hit)
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
        bool has_open = hit->offset ==
                        WAL__SEGMENT_HEADER_SIZE + (uint64_t)commit.group_size;

        return commit.first_sequence + commit.frame_count - 1 - has_open;
    }
    if (frame->type == WAL__FRAME_SEAL &&
        wal__seal_record_decode(span, &seal) == WAL__FMT_OK) {
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
    found = wal__probe_next(&probe, from + WAL__FRAME_ALIGN, scan->sequence + 1,
                            NULL, &hit);
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
    add_damage(scan, from, to - from, scan->sequence + 1,
               last > scan->sequence ? last : 0);
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

/* Whether OPEN is not valid, and a group follows: OPEN is durable before
 * anything else is written, so that it was damaged afterwards. */
static bool has_lost_open(const struct scan *scan)
{
    return scan->at == WAL__SEGMENT_HEADER_SIZE && scan->beyond.has_later_group;
}

/* Whether a member of a group follows X in a rewritten segment. */
static bool has_lost_block(const struct scan *scan)
{
    return scan->start->is_rewritten && scan->at < scan->beyond.last_member;
}

/* Applies the table of SPEC.md 3.4 at X; true: continue after damage. */
static bool classify_end(struct scan *scan, uint32_t lost)
{
    struct wal__scan_result *result = scan->result;
    const struct wal__probe_result *beyond = &scan->beyond;
    struct wal__probe probe = make_probe(scan);

    result->invalid = scan->at;
    if (!wal__probe_all(&probe, scan->at, &scan->beyond)) {
        return set_read_error(scan, probe.error_offset);
    }
    result->dirty_end =
        beyond->dirty_end > scan->at ? beyond->dirty_end : scan->at;
    result->torn_sequence = beyond->last_sequence > scan->sequence
                                ? beyond->last_sequence
                                : scan->sequence;
    if (scan->start->is_replica) {
        bool is_torn =
            result->dirty_end > result->end || scan->group_frames > 0;

        result->verdict = is_torn && result->sealed_end == 0
                              ? WAL__VERDICT_TORN
                              : WAL__VERDICT_CLEAN;
        return false;
    }
    if (beyond->watermark > result->watermark) {
        result->watermark = beyond->watermark;
    }
    if (beyond->sealed_end > scan->expected_end) {
        scan->expected_end = beyond->sealed_end;
    }
    if (scan->at < result->watermark || scan->at < scan->expected_end ||
        has_lost_open(scan) || has_lost_block(scan)) {
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

void wal__scan(const struct wal__scan_source *source,
               const struct wal__scan_sink *sink,
               const struct wal__scan_start *start,
               struct wal__scan_result *result)
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
    result->watermark = start->watermark > WAL__SEGMENT_HEADER_SIZE
                            ? start->watermark
                            : WAL__SEGMENT_HEADER_SIZE;
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
