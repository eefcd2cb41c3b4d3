/*
 * scan.c - one pass over a segment (SPEC.md 3.1 to 3.4).
 *
 * The pass walks valid frames from group to group until it meets the first
 * offset that holds none, X. Then it looks at everything behind X once, for
 * the highest watermark W that any valid COMMIT names, for a SEAL, and for
 * promises. X below W or S means damage: the pass steps over it to the next
 * valid frame and goes on; otherwise X is the end and the table decides.
 */
#include "format/scan.h"

#include <string.h>

#include "format/probe.h"

struct scan {
    const struct wal__scan_source *source;
    const struct wal__scan_sink *sink;
    const struct wal__scan_start *start;
    struct wal__scan_facts *facts;
    uint64_t limit;       /* end of the segment */
    uint64_t group;       /* offset of the present group's first frame */
    uint64_t at;          /* offset of the frame looked at */
    uint64_t sequence;    /* last one seen, also in the present group */
    uint64_t group_first; /* first sequence of the present group */
    uint64_t promise_end; /* S, from start and SEAL */
    uint32_t chain;       /* over all frames up to `at` */
    uint32_t group_frames;
    bool unnamed;    /* the present group lost a frame of an unknown session */
    bool chain_lost; /* the chain is unknown until the next COMMIT */
    struct wal__beyond beyond;
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

/* A look at what stands behind the walk; sequence numbers go on from it. */
static struct wal__probe probe_of(const struct scan *scan)
{
    return (struct wal__probe){
        .source = scan->source,
        .salt = scan->start->salt,
        .limit = scan->limit,
        .sequence = scan->sequence,
    };
}

static bool unreadable(struct scan *scan, uint64_t offset)
{
    scan->facts->verdict = WAL__VERDICT_READ_ERROR;
    scan->facts->error_offset = offset;
    return false;
}

static void add_damage(struct scan *scan, uint64_t offset, uint64_t size,
                       uint64_t first_sequence, uint64_t last_sequence)
{
    struct wal__scan_facts *facts = scan->facts;
    struct wal__damage *last;

    facts->verdict = WAL__VERDICT_DAMAGED;
    if (facts->damage_count < WAL__DAMAGE_MAX) {
        facts->damage[facts->damage_count] =
            (struct wal__damage){offset, size, first_sequence, last_sequence};
        facts->damage_count++;
        return;
    }
    /* The list is full: its last range grows to cover this one too. */
    last = &facts->damage[WAL__DAMAGE_MAX - 1];
    last->size = offset + size - last->offset;
    last->last_sequence = last_sequence;
    facts->damage_count++;
}

static bool report_lost(struct scan *scan, uint32_t session)
{
    if (scan->sink->lost == NULL) {
        return true;
    }
    return scan->sink->lost(scan->sink->ctx, session);
}

/* Hands over the frames [group, at) of the present group. */
static bool hand_over(struct scan *scan, const struct wal__commit *commit)
{
    struct wal__scan_piece piece = {NULL, scan->group, scan->at - scan->group,
                                    commit};
    bool taken;

    if (scan->sink->piece == NULL) {
        return true;
    }
    if (piece.size > 0) {
        piece.bytes =
            scan->source->fetch(scan->source->ctx, piece.offset, piece.size);
        if (piece.bytes == NULL) {
            return unreadable(scan, piece.offset);
        }
    }
    taken = scan->sink->piece(scan->sink->ctx, &piece);
    if (!taken) {
        scan->facts->verdict = WAL__VERDICT_STOPPED;
    }
    return taken;
}

static void begin_group(struct scan *scan, uint64_t offset)
{
    scan->group = offset;
    scan->at = offset;
    scan->group_first = scan->sequence + 1;
    scan->group_frames = 0;
    scan->unnamed = false;
}

/* Whether the frames seen are all that the COMMIT closes. */
static bool group_whole(const struct scan *scan,
                        const struct wal__commit *commit)
{
    return commit->frame_count == scan->group_frames &&
           commit->group_size == scan->at - scan->group;
}

static void keep_commit(struct scan *scan, const struct wal__commit *commit)
{
    struct wal__scan_facts *facts = scan->facts;

    if (commit->durable_off > facts->watermark) {
        facts->watermark = commit->durable_off;
    }
    facts->commit_offset = scan->at;
    facts->epoch = commit->epoch;
    facts->clock_ms = commit->clock_ms;
    if (commit->pack_durable > facts->pack_durable) {
        facts->pack_durable = commit->pack_durable;
    }
    facts->last_sequence = scan->sequence;
    facts->groups++;
}

/* A group that came through damage, or does not follow the one before it. */
static bool damaged_group(struct scan *scan, const struct wal__commit *commit,
                          bool whole)
{
    if (whole) {
        uint64_t last = commit->first_sequence - 1;

        add_damage(scan, scan->at, 0, scan->group_first,
                   last >= scan->group_first ? last : 0);
        return true;
    }
    for (uint32_t i = 0; scan->unnamed && i < commit->session_count; i++) {
        if (!report_lost(scan, wal__commit_session(commit, i))) {
            scan->facts->verdict = WAL__VERDICT_STOPPED;
            return false;
        }
    }
    return true;
}

/* The frame at `at` is a COMMIT: its group ends here. */
static bool take_commit(struct scan *scan, const struct wal__frame *frame,
                        const uint8_t *payload)
{
    struct wal__span span = {payload, frame->stored_size};
    struct wal__commit commit;
    bool whole;
    bool follows;

    if (wal__commit_decode(span, &commit) != WAL__FMT_OK) {
        return false;
    }
    whole = group_whole(scan, &commit);
    follows = whole && commit.first_sequence == scan->group_first &&
              (scan->chain_lost || commit.chain == scan->chain);
    if (!follows && !damaged_group(scan, &commit, whole)) {
        return false;
    }
    if (commit.first_sequence > scan->sequence + 1) {
        scan->sequence = commit.first_sequence - 1;
    }
    /* Below the watermark a frame stands alone; beyond it a group is there
     * whole or not at all. */
    if ((whole || scan->group < scan->facts->watermark) &&
        !hand_over(scan, &commit)) {
        return false;
    }
    keep_commit(scan, &commit);
    scan->chain = wal__frame_chain(commit.chain, frame);
    scan->chain_lost = false;
    scan->facts->chain = scan->chain;
    begin_group(scan,
                wal__align_up(scan->at + wal__frame_span(frame->stored_size),
                              scan->start->group_align));
    scan->facts->end = scan->at;
    return true;
}

/* INDEX and SEAL stand behind the last group of a complete segment. */
static bool take_end(struct scan *scan, const struct wal__frame *frame,
                     const uint8_t *payload)
{
    struct wal__span span = {payload, frame->stored_size};
    struct wal__seal seal;

    if (scan->group_frames > 0) {
        return false;
    }
    if (frame->type == WAL__FRAME_INDEX) {
        scan->facts->index_offset = scan->at;
        scan->facts->index_size = frame->stored_size;
        return true;
    }
    if (wal__seal_decode(span, &seal) != WAL__FMT_OK) {
        return false;
    }
    scan->facts->sealed_end = seal.end;
    if (seal.end > scan->promise_end) {
        scan->promise_end = seal.end;
    }
    return true;
}

/* Whether the sequence goes on as it must; a hole is damage. */
static bool check_sequence(struct scan *scan, const struct wal__frame *frame)
{
    if (!wal__frame_is_sequenced(frame->type)) {
        return true;
    }
    if (frame->sequence <= scan->sequence) {
        return false;
    }
    if (frame->sequence != scan->sequence + 1) {
        scan->chain_lost = true;
        scan->unnamed = true;
        add_damage(scan, scan->at, 0, scan->sequence + 1, frame->sequence - 1);
        if (scan->group_frames == 0) {
            scan->group_first = frame->sequence; /* the hole is before it */
        }
    }
    scan->sequence = frame->sequence;
    return true;
}

/* Whether a frame's parent was lost in a damaged range. */
static bool lost_parent(const struct scan *scan, const struct wal__frame *frame)
{
    const struct wal__scan_facts *facts = scan->facts;
    uint32_t count = facts->damage_count;

    if (frame->parent == 0) {
        return false;
    }
    if (count > WAL__DAMAGE_MAX) {
        count = WAL__DAMAGE_MAX;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (frame->parent >= facts->damage[i].first_sequence &&
            frame->parent <= facts->damage[i].last_sequence) {
            return true;
        }
    }
    return false;
}

/* Takes the valid frame at `at`; false: it does not belong here. */
static bool take_frame(struct scan *scan, const struct wal__frame *frame,
                       const uint8_t *payload)
{
    uint64_t span = wal__frame_span(frame->stored_size);

    if (frame->type == WAL__FRAME_COMMIT) {
        return take_commit(scan, frame, payload);
    }
    if (frame->type == WAL__FRAME_INDEX || frame->type == WAL__FRAME_SEAL) {
        if (!take_end(scan, frame, payload)) {
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
    if (scan->facts->sealed_end != 0 || scan->facts->index_offset != 0 ||
        !check_sequence(scan, frame)) {
        return false;
    }
    if (lost_parent(scan, frame) && !report_lost(scan, frame->session)) {
        scan->facts->verdict = WAL__VERDICT_STOPPED;
        return false;
    }
    scan->chain = wal__frame_chain(scan->chain, frame);
    scan->group_frames++;
    scan->at += span;
    return true;
}

static bool stopped(const struct scan *scan)
{
    return scan->facts->verdict == WAL__VERDICT_READ_ERROR ||
           scan->facts->verdict == WAL__VERDICT_NEWER ||
           scan->facts->verdict == WAL__VERDICT_STOPPED;
}

/* What stands at `at`: decodes the frame and checks its payload. *lost is the
 * session of a frame whose header holds and whose data does not, else 0. */
static bool read_frame(struct scan *scan, struct wal__frame *frame,
                       const uint8_t **payload, uint32_t *lost)
{
    uint64_t before = scan->at - scan->group;
    enum wal__fmt fmt;
    const uint8_t *at;

    at = scan->source->fetch(scan->source->ctx, scan->group,
                             before + WAL__FRAME_SIZE);
    if (at == NULL) {
        return unreadable(scan, scan->at);
    }
    fmt = wal__frame_decode(at + before, scan->limit - scan->at,
                            scan->start->salt, scan->at, frame);
    if (fmt == WAL__FMT_TYPE) {
        scan->facts->verdict = WAL__VERDICT_NEWER;
        scan->facts->error_offset = scan->at;
    }
    if (fmt != WAL__FMT_OK) {
        return false;
    }
    at = scan->source->fetch(scan->source->ctx, scan->group,
                             before + wal__frame_span(frame->stored_size));
    if (at == NULL) {
        return unreadable(scan, scan->at);
    }
    *payload = at + before + WAL__FRAME_SIZE;
    if (wal__frame_check_data(frame, *payload) != WAL__FMT_OK) {
        *lost = frame->session;
        return false;
    }
    return true;
}

/* Walks valid frames up to X. */
static void walk(struct scan *scan, uint32_t *lost)
{
    struct wal__frame frame;
    const uint8_t *payload = NULL;

    *lost = 0;
    while (scan->at + WAL__FRAME_SIZE <= scan->limit &&
           read_frame(scan, &frame, &payload, lost) &&
           take_frame(scan, &frame, payload)) {
    }
}

/* The last sequence number that a frame behind damage shows to be lost. */
static uint64_t sequence_before(const struct wal__probe_hit *hit)
{
    const struct wal__frame *frame = &hit->frame;
    struct wal__span span = {hit->payload, frame->stored_size};
    struct wal__commit commit;
    struct wal__seal seal;

    if (wal__frame_is_sequenced(frame->type)) {
        return frame->sequence - 1;
    }
    if (frame->type == WAL__FRAME_COMMIT &&
        wal__commit_decode(span, &commit) == WAL__FMT_OK) {
        /* OPEN counts as a frame of the first group, without a number. */
        bool has_open = hit->offset ==
                        WAL__SEGMENT_HEADER_SIZE + (uint64_t)commit.group_size;

        return commit.first_sequence + commit.frame_count - 1 - has_open;
    }
    if (frame->type == WAL__FRAME_SEAL &&
        wal__seal_decode(span, &seal) == WAL__FMT_OK) {
        return seal.last_sequence;
    }
    return 0;
}

/* Steps from X over damage to the next valid frame; false at the end. */
static bool step_over(struct scan *scan, uint32_t lost)
{
    struct wal__probe probe = probe_of(scan);
    struct wal__probe_hit hit;
    uint64_t from = scan->at;
    uint64_t to;
    uint64_t last = 0;
    bool found;

    if (scan->at > scan->group && !hand_over(scan, NULL)) {
        return false;
    }
    found = wal__probe_next(&probe, from + WAL__FRAME_ALIGN, scan->sequence + 1,
                            NULL, &hit);
    if (probe.failed) {
        return unreadable(scan, probe.error_offset);
    }
    if (found) {
        to = hit.offset;
        last = sequence_before(&hit);
    } else {
        to = scan->promise_end > from ? scan->promise_end : from;
    }
    add_damage(scan, from, to - from, scan->sequence + 1,
               last > scan->sequence ? last : 0);
    if (lost != 0 && !report_lost(scan, lost)) {
        scan->facts->verdict = WAL__VERDICT_STOPPED;
        return false;
    }
    if (last > scan->sequence) {
        scan->sequence = last;
    }
    begin_group(scan, to);
    scan->chain_lost = true;
    scan->unnamed = lost == 0;
    scan->facts->end = to;
    scan->facts->last_sequence = scan->sequence;
    return found;
}

/* The table of SPEC.md 3.4, from X on; true: go on behind damage. */
static bool decide(struct scan *scan, uint32_t lost)
{
    struct wal__scan_facts *facts = scan->facts;
    const struct wal__beyond *beyond = &scan->beyond;
    struct wal__probe probe = probe_of(scan);

    facts->invalid = scan->at;
    if (!wal__probe_beyond(&probe, scan->at, &scan->beyond)) {
        return unreadable(scan, probe.error_offset);
    }
    facts->dirty_end =
        beyond->dirty_end > scan->at ? beyond->dirty_end : scan->at;
    facts->torn_sequence = beyond->last_sequence > scan->sequence
                               ? beyond->last_sequence
                               : scan->sequence;
    if (beyond->watermark > facts->watermark) {
        facts->watermark = beyond->watermark;
    }
    if (beyond->sealed_end > scan->promise_end) {
        scan->promise_end = beyond->sealed_end;
    }
    if (scan->at < facts->watermark || scan->at < scan->promise_end) {
        return step_over(scan, lost);
    }
    if (facts->sealed_end == 0) {
        facts->sealed_end = beyond->sealed_end; /* the INDEX is damaged */
    }
    if (facts->verdict != WAL__VERDICT_CLEAN || facts->sealed_end != 0) {
        return false;
    }
    if (beyond->promise >= scan->at) {
        facts->verdict = WAL__VERDICT_AMBIGUOUS;
    } else if (facts->dirty_end > facts->end || scan->group_frames > 0) {
        facts->verdict = WAL__VERDICT_TORN;
    }
    return false;
}

void wal__scan(const struct wal__scan_source *source,
               const struct wal__scan_sink *sink,
               const struct wal__scan_start *start,
               struct wal__scan_facts *facts)
{
    struct scan scan = {0};
    uint32_t lost;

    memset(facts, 0, sizeof(*facts));
    scan.source = source;
    scan.sink = sink;
    scan.start = start;
    scan.facts = facts;
    scan.limit = start->capacity;
    scan.promise_end = start->known_end;
    scan.sequence = start->last_sequence;
    scan.chain = start->chain;
    facts->end = start->offset;
    facts->chain = start->chain;
    facts->last_sequence = start->last_sequence;
    facts->watermark = start->watermark > WAL__SEGMENT_HEADER_SIZE
                           ? start->watermark
                           : WAL__SEGMENT_HEADER_SIZE;
    begin_group(&scan, start->offset);
    do {
        walk(&scan, &lost);
    } while (!stopped(&scan) && decide(&scan, lost));
    if (facts->invalid == 0) {
        facts->invalid = scan.at;
    }
}
