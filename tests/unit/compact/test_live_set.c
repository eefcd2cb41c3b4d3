/*
 * test_live_set.c - what of a log is live (SPEC.md 3.9): the fate of each kind of record, of
 * sessions that were deleted, and of what forks share with them.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "engine/care/compact.h"
#include "format/segment/frame.h"
#include "tests/lib/test.h"

enum { SESSIONS = 8, RECORDS = 16 };

/* A session in a segment: its postings. */
struct part {
    struct wal__summary summary;
    struct wal__posting postings[RECORDS];
};

struct segment {
    struct part parts[SESSIONS]; /* by number */
    uint8_t *bytes;
};

static struct wal__posting record(uint8_t type, uint64_t sequence, uint64_t parent,
                                  uint64_t id_hash)
{
    struct wal__posting posting = {
        .type = type, .sequence = sequence, .parent = parent, .id_hash = id_hash};

    return posting;
}

static void add(struct segment *segment, uint32_t number, uint8_t type, uint64_t sequence,
                uint64_t parent)
{
    struct part *part = &segment->parts[number];

    assert_true(part->summary.posting_count < RECORDS);
    part->summary.number = number;
    part->summary.id = (struct wal__span){(const uint8_t *)"s", 1};
    part->postings[part->summary.posting_count++] = record(type, sequence, parent, 0);
}

static void fork_at(struct segment *segment, uint32_t number, uint64_t sequence, uint32_t owner,
                    uint64_t point, uint32_t source)
{
    add(segment, number, WAL__FRAME_SESSION, sequence, 0);
    add(segment, number, WAL__FRAME_FORK, sequence + 1, 0);
    segment->parts[number].summary.fork_owner = owner;
    segment->parts[number].summary.fork_sequence = point;
    segment->parts[number].summary.fork_source = source;
    segment->parts[number].summary.fork_record = sequence + 1;
}

/* Encodes the segment's index and adds it. */
static void add_segment(struct wal__live_set *set, struct segment *segment)
{
    struct wal__index_header header = {.end = 4096};
    struct wal__index index;
    uint32_t first = 0;
    uint64_t size;
    uint8_t *row;
    uint8_t *posting;
    uint8_t *text;

    for (uint32_t i = 0; i < SESSIONS; i++) {
        header.session_count += segment->parts[i].summary.number != 0;
        header.posting_count += segment->parts[i].summary.posting_count;
    }
    header.text_size = header.session_count;
    size = wal__index_size(header.session_count, header.posting_count, header.text_size);
    segment->bytes = calloc(1, size);
    assert_non_null(segment->bytes);
    row = segment->bytes + WAL__INDEX_HEADER_SIZE;
    posting = row + (size_t)header.session_count * WAL__SUMMARY_SIZE;
    text = posting + (size_t)header.posting_count * WAL__POSTING_SIZE;
    for (uint32_t i = 0, at = 0; i < SESSIONS; i++) {
        struct part *part = &segment->parts[i];

        if (part->summary.number == 0) {
            continue;
        }
        part->summary.first_posting = first;
        first += part->summary.posting_count;
        wal__summary_encode(&part->summary, at, row, text + at);
        at++;
        row += WAL__SUMMARY_SIZE;
        for (uint32_t k = 0; k < part->summary.posting_count; k++) {
            wal__posting_encode(&part->postings[k], posting);
            posting += WAL__POSTING_SIZE;
        }
    }
    wal__index_finish(&header, segment->bytes);
    assert_int_equal(wal__index_decode((struct wal__span){segment->bytes, size}, &index),
                     WAL__FMT_OK);
    assert_ok(wal__live_set_add(set, &index));
}

static void begin(struct wal__live_set *set, struct segment *segment)
{
    wal__live_set_init(set, &wal__heap_libc);
    memset(segment, 0, sizeof(*segment));
}

/* Completes and settles. */
static void finish(struct wal__live_set *set, struct segment *segment)
{
    add_segment(set, segment);
    wal__live_set_complete(set);
    assert_ok(wal__live_set_settle(set));
}

static void end(struct wal__live_set *set, struct segment *segment)
{
    wal__live_set_deinit(set);
    free(segment->bytes);
}

static enum wal__fate fate(const struct wal__live_set *set, uint32_t number, uint8_t type,
                           uint64_t sequence)
{
    struct wal__posting posting = record(type, sequence, 0, 0);

    return wal__live_set_fate(set, number, &posting, false);
}

/* An ENTRY of session 1 under `parent`, with these flags. */
static void add_entry(struct segment *segment, uint64_t sequence, uint64_t parent, uint8_t flags)
{
    struct part *part = &segment->parts[1];

    add(segment, 1, WAL__FRAME_ENTRY, sequence, parent);
    part->postings[part->summary.posting_count - 1].flags = flags;
}

static enum wal__fate entry_fate(const struct wal__live_set *set, uint32_t number,
                                 uint64_t sequence, uint64_t parent)
{
    struct wal__posting posting = record(WAL__FRAME_ENTRY, sequence, parent, 0);

    posting.flags = WAL__FRAME_PROVISIONAL;
    return wal__live_set_fate(set, number, &posting, false);
}

TEST(live_set__delta_goes_when_an_entry_moved_the_head)
{
    struct wal__live_set set;
    struct segment segment;

    for (int keeps = 0; keeps < 2; keeps++) {
        begin(&set, &segment);
        set.keeps_deltas = keeps == 1;
        add_entry(&segment, 1, 0, WAL__FRAME_PROVISIONAL);
        add_entry(&segment, 2, 0, WAL__FRAME_MOVES_HEAD);
        add_entry(&segment, 3, 2, WAL__FRAME_PROVISIONAL);
        add_entry(&segment, 4, 2, 0);
        add_entry(&segment, 5, 2, WAL__FRAME_PROVISIONAL);
        add_entry(&segment, 6, 2, WAL__FRAME_MOVES_HEAD);
        add_entry(&segment, 7, 2, WAL__FRAME_PROVISIONAL);
        add_entry(&segment, 8, 6, WAL__FRAME_PROVISIONAL);
        add_entry(&segment, 9, 6, 0);
        finish(&set, &segment);
        for (uint64_t i = 1; i < 10; i++) {
            uint64_t parent = i < 3 ? 0 : i < 8 ? 2 : 6;
            bool goes = keeps == 0 && (i == 1 || i == 3 || i == 5);

            if (i != 2 && i != 4 && i != 6 && i != 9) {
                assert_int_equal(entry_fate(&set, 1, i, parent),
                                 goes ? WAL__FATE_DROP : WAL__FATE_KEEP);
            }
            assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, i), WAL__FATE_KEEP);
        }
        /* Of another session, which has the same parent. */
        assert_int_equal(entry_fate(&set, 2, 3, 2), WAL__FATE_KEEP);
        end(&set, &segment);
    }
}

TEST(live_set__first_and_newest_session_record_stay)
{
    struct wal__posting first = record(WAL__FRAME_SESSION, 1, 0, 0);
    struct wal__live_set set;
    struct segment segment;

    for (int erases = 0; erases < 2; erases++) {
        begin(&set, &segment);
        set.erases = erases == 1;
        for (uint64_t i = 1; i <= 4; i++) {
            add(&segment, 1, WAL__FRAME_SESSION, i, 0);
        }
        add(&segment, 2, WAL__FRAME_SESSION, 1, 0); /* never replaced */
        finish(&set, &segment);
        assert_int_equal(wal__live_set_fate(&set, 1, &first, true),
                         erases == 1 ? WAL__FATE_ERASE : WAL__FATE_KEEP);
        assert_int_equal(fate(&set, 1, WAL__FRAME_SESSION, 2), WAL__FATE_DROP);
        assert_int_equal(fate(&set, 1, WAL__FRAME_SESSION, 3), WAL__FATE_DROP);
        assert_int_equal(fate(&set, 1, WAL__FRAME_SESSION, 4), WAL__FATE_KEEP);
        assert_int_equal(wal__live_set_fate(&set, 2, &first, true), WAL__FATE_KEEP);
        end(&set, &segment);
    }
}

/* A summary is of the end of its segment: a later record may replace its texts. */
TEST(live_set__texts_that_were_replaced_are_stripped)
{
    const struct wal__span text = {(const uint8_t *)"text", 4};
    struct wal__live_set set;
    struct segment segment;

    for (int erases = 0; erases < 2; erases++) {
        for (uint64_t last = 3; last <= 4; last++) {
            struct wal__summary summary = {
                .number = 1, .last_sequence = last, .title = text, .cwd = text};
            bool is_stripped = erases == 1 && last == 3;

            begin(&set, &segment);
            set.erases = erases == 1;
            add(&segment, 1, WAL__FRAME_SESSION, 1, 0);
            add(&segment, 1, WAL__FRAME_SESSION, 4, 0);
            finish(&set, &segment);
            wal__live_set_strip(&set, &summary);
            assert_int_equal(summary.title.size, is_stripped ? 0 : text.size);
            assert_int_equal(summary.cwd.size, is_stripped ? 0 : text.size);
            end(&set, &segment);
        }
    }
}

TEST(live_set__newest_head_of_each_name_and_stream_stays)
{
    static const struct {
        uint64_t sequence;
        uint64_t name;
        uint8_t stream;
        enum wal__fate fate;
    } heads[] = {
        {2, 5, 0, WAL__FATE_DROP}, {3, 5, 1, WAL__FATE_KEEP}, {4, 6, 0, WAL__FATE_KEEP},
        {5, 5, 0, WAL__FATE_DROP}, {6, 5, 0, WAL__FATE_KEEP},
    };
    struct wal__live_set set;
    struct segment segment;

    begin(&set, &segment);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        add(&segment, 1, WAL__FRAME_HEAD, heads[i].sequence, 0);
        segment.parts[1].postings[i].id_hash = heads[i].name;
        segment.parts[1].postings[i].stream = heads[i].stream;
    }
    add(&segment, 2, WAL__FRAME_HEAD, 9, 0);
    segment.parts[2].postings[0].id_hash = 6; /* of another session */
    finish(&set, &segment);
    for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
        assert_int_equal(wal__live_set_fate(&set, 1, &segment.parts[1].postings[i], false),
                         heads[i].fate);
    }
    end(&set, &segment);
}

TEST(live_set__redacted_entry_is_erased)
{
    struct wal__live_set set;
    struct segment segment;

    for (int erases = 0; erases < 2; erases++) {
        enum wal__fate redacted = erases == 1 ? WAL__FATE_ERASE : WAL__FATE_KEEP;

        begin(&set, &segment);
        set.erases = erases == 1;
        add(&segment, 1, WAL__FRAME_ENTRY, 2, 0);
        add(&segment, 1, WAL__FRAME_ENTRY, 3, 2);
        add(&segment, 1, WAL__FRAME_REDACT, 9, 3);
        add(&segment, 1, WAL__FRAME_REDACT, 10, 2);
        finish(&set, &segment);
        assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 2), redacted);
        assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 3), redacted);
        assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 4), WAL__FATE_KEEP);
        assert_int_equal(fate(&set, 1, WAL__FRAME_REDACT, 9), WAL__FATE_KEEP);
        end(&set, &segment);
    }
}

/* Of the records of an entry the newest decides, in whatever segment it is. */
TEST(live_set__restored_entry_is_kept)
{
    struct wal__live_set set;
    struct segment segment;

    begin(&set, &segment);
    set.erases = true;
    add(&segment, 1, WAL__FRAME_ENTRY, 2, 0);
    add(&segment, 1, WAL__FRAME_ENTRY, 3, 2);
    add(&segment, 1, WAL__FRAME_ENTRY, 4, 3);
    add(&segment, 1, WAL__FRAME_REDACT, 9, 3);
    add(&segment, 1, WAL__FRAME_REDACT, 10, 2);
    add(&segment, 1, WAL__FRAME_REDACT, 11, 3);
    add(&segment, 1, WAL__FRAME_REDACT, 12, 4);
    add(&segment, 1, WAL__FRAME_RESTORE, 13, 3);
    add(&segment, 1, WAL__FRAME_RESTORE, 14, 2);
    add(&segment, 1, WAL__FRAME_REDACT, 15, 2);
    finish(&set, &segment);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 2), WAL__FATE_ERASE);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 3), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 4), WAL__FATE_ERASE);
    assert_int_equal(fate(&set, 1, WAL__FRAME_RESTORE, 13), WAL__FATE_KEEP);
    end(&set, &segment);
}

TEST(live_set__what_forks_share_stays)
{
    struct wal__live_set set;
    struct segment segment;

    /* 2 is a fork of 1 at 5, 3 a fork of 2 at 5 too: 1 owns the point. */
    begin(&set, &segment);
    add(&segment, 1, WAL__FRAME_SESSION, 1, 0);
    add(&segment, 1, WAL__FRAME_ENTRY, 5, 0);
    fork_at(&segment, 2, 10, 1, 5, 1);
    fork_at(&segment, 3, 20, 1, 5, 2);
    add(&segment, 1, WAL__FRAME_TOMBSTONE, 30, 0);
    add(&segment, 2, WAL__FRAME_TOMBSTONE, 31, 0);
    finish(&set, &segment);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 5), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 6), WAL__FATE_DROP);
    /* A fork sees no delta of its source. */
    assert_int_equal(entry_fate(&set, 1, 4, 0), WAL__FATE_DROP);
    /* Documents are seen through the source, up to its FORK. */
    assert_int_equal(fate(&set, 2, WAL__FRAME_DOC, 20), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 2, WAL__FRAME_DOC, 22), WAL__FATE_DROP);
    assert_int_equal(fate(&set, 1, WAL__FRAME_DOC, 10), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 1, WAL__FRAME_DOC, 12), WAL__FATE_DROP);
    assert_int_equal(fate(&set, 2, WAL__FRAME_ENTRY, 15), WAL__FATE_DROP);
    assert_false(wal__live_set_is_purged(&set, 1));
    assert_false(wal__live_set_is_purged(&set, 2));
    assert_int_equal(fate(&set, 2, WAL__FRAME_FORK, 11), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 2, WAL__FRAME_TOMBSTONE, 31), WAL__FATE_KEEP);
    end(&set, &segment);
}

/* A fork of a session that had no entry there sees nothing of it, nor of what that one was forked
 * from. */
TEST(live_set__fork_of_nothing_shares_no_entry)
{
    struct wal__live_set set;
    struct segment segment;

    begin(&set, &segment);
    add(&segment, 1, WAL__FRAME_ENTRY, 5, 0);
    fork_at(&segment, 2, 10, 1, 5, 1);
    fork_at(&segment, 3, 20, 2, 0, 2);
    add(&segment, 1, WAL__FRAME_TOMBSTONE, 30, 0);
    add(&segment, 2, WAL__FRAME_TOMBSTONE, 31, 0);
    finish(&set, &segment);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 5), WAL__FATE_DROP);
    /* Its documents it has. */
    assert_int_equal(fate(&set, 1, WAL__FRAME_DOC, 6), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 2, WAL__FRAME_DOC, 15), WAL__FATE_KEEP);
    end(&set, &segment);
}

TEST(live_set__all_of_a_lineage_deleted)
{
    struct wal__live_set set;
    struct segment segment;

    begin(&set, &segment);
    add(&segment, 1, WAL__FRAME_ENTRY, 5, 0);
    fork_at(&segment, 2, 10, 1, 5, 1);
    add(&segment, 1, WAL__FRAME_TOMBSTONE, 30, 0);
    add(&segment, 2, WAL__FRAME_TOMBSTONE, 31, 0);
    finish(&set, &segment);
    assert_true(wal__live_set_is_purged(&set, 1));
    assert_true(wal__live_set_is_purged(&set, 2));
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 5), WAL__FATE_DROP);
    /* A segment that stays has something of the fork: the FORK there names session 1. */
    wal__live_set_retain(&set, 2);
    assert_ok(wal__live_set_settle(&set));
    assert_false(wal__live_set_is_purged(&set, 2));
    assert_false(wal__live_set_is_purged(&set, 1));
    assert_int_equal(fate(&set, 2, WAL__FRAME_TOMBSTONE, 31), WAL__FATE_KEEP);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 5), WAL__FATE_DROP);
    end(&set, &segment);
}

TEST(live_set__unknown_segment_retains_all)
{
    struct wal__live_set set;
    struct segment segment;

    begin(&set, &segment);
    add(&segment, 1, WAL__FRAME_ENTRY, 5, 0);
    add(&segment, 1, WAL__FRAME_TOMBSTONE, 6, 0);
    add_segment(&set, &segment);
    wal__live_set_complete(&set);
    wal__live_set_retain_all(&set);
    assert_ok(wal__live_set_settle(&set));
    assert_false(wal__live_set_is_purged(&set, 1));
    assert_int_equal(fate(&set, 1, WAL__FRAME_TOMBSTONE, 6), WAL__FATE_KEEP);
    /* A fork may be there that shares it. */
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 5), WAL__FATE_KEEP);
    end(&set, &segment);
}

/* What a redaction of a shared entry says stays; of another it goes. */
TEST(live_set__redactions_in_a_deleted_session)
{
    struct wal__posting shared = record(WAL__FRAME_REDACT, 8, 5, 0);
    struct wal__posting own = record(WAL__FRAME_REDACT, 9, 6, 0);
    struct wal__posting shared_end = record(WAL__FRAME_RESTORE, 20, 5, 0);
    struct wal__posting own_end = record(WAL__FRAME_RESTORE, 21, 6, 0);
    struct wal__live_set set;
    struct segment segment;

    begin(&set, &segment);
    set.erases = true;
    add(&segment, 1, WAL__FRAME_ENTRY, 5, 0);
    add(&segment, 1, WAL__FRAME_ENTRY, 6, 5);
    add(&segment, 1, WAL__FRAME_REDACT, 8, 5);
    add(&segment, 1, WAL__FRAME_REDACT, 9, 6);
    fork_at(&segment, 2, 10, 1, 5, 1);
    add(&segment, 1, WAL__FRAME_TOMBSTONE, 30, 0);
    finish(&set, &segment);
    assert_int_equal(wal__live_set_fate(&set, 1, &shared, false), WAL__FATE_KEEP);
    assert_int_equal(wal__live_set_fate(&set, 1, &own, false), WAL__FATE_DROP);
    assert_int_equal(wal__live_set_fate(&set, 1, &shared_end, false), WAL__FATE_KEEP);
    assert_int_equal(wal__live_set_fate(&set, 1, &own_end, false), WAL__FATE_DROP);
    assert_int_equal(fate(&set, 1, WAL__FRAME_ENTRY, 5), WAL__FATE_ERASE);
    end(&set, &segment);
}
