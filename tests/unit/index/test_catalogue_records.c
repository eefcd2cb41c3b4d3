/*
 * test_catalogue_records.c - tests of what single records make of a session's summary: deletion,
 * the store's own documents, the first user message, lineage, format version 0; and when it was
 * created and last active: the times of its entries, and what replaces those that are not believed.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/catalogue_model.h"
#include "tests/lib/test.h"

static const char user[] = "{\"role\":\"user\",\"content\":\"hello there\"}";

/* A catalogue that is given records one by one, each the next in the log. */
static struct {
    struct wal__catalogue catalogue;
    struct wal__span snapshot;
    uint64_t sequence;
    int64_t clock_ms; /* of the next record */
    uint8_t payload[MODEL_PAYLOAD_SIZE];
} kit;

static void begin(void)
{
    memset(&kit, 0, sizeof(kit));
    kit.clock_ms = INT64_C(1700000000007);
    wal__catalogue_init(&kit.catalogue, &wal__heap_libc);
}

static void end(void)
{
    wal__catalogue_deinit(&kit.catalogue);
}

static void begin_again(void)
{
    end();
    begin();
}

static int set_up(void **state)
{
    (void)state;
    begin();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    end();
    return 0;
}

#define RECORDS_TEST(name) TEST_WITH(name, set_up, tear_down)

/* The overlay becomes a snapshot. */
static void roll(void)
{
    struct wal__span old = kit.snapshot;

    kit.snapshot = model_swap_snapshot(&kit.catalogue, NULL);
    free(test_forget(old.data));
}

static enum wal_status apply(struct wal__frame frame, size_t size, uint32_t version)
{
    struct wal__log_record applied = {
        .frame = &frame,
        .payload = {kit.payload, size},
        .clock_ms = kit.clock_ms,
        .version = version,
    };

    frame.sequence = ++kit.sequence;
    frame.stored_size = (uint32_t)size;
    applied.position = wal__position(1, 4096 + kit.sequence * 64);
    return wal__catalogue_apply(&kit.catalogue, &applied);
}

static enum wal_status try_plain(uint8_t type, uint32_t number, uint64_t parent)
{
    return apply((struct wal__frame){.type = type, .session = number, .parent = parent}, 0,
                 WAL__FORMAT_VERSION);
}

static void plain(uint8_t type, uint32_t number, uint64_t parent)
{
    assert_ok(try_plain(type, number, parent));
}

static enum wal_status try_create(uint32_t number, const char *id)
{
    struct wal__session_record session = {
        .schema_version = 3,
        .id = model_span(id),
        .cwd = model_span("/w"),
    };

    wal__session_record_encode(&session, kit.payload);
    return apply((struct wal__frame){.type = WAL__FRAME_SESSION, .session = number},
                 wal__session_record_size(&session), WAL__FORMAT_VERSION);
}

static void create(uint32_t number, const char *id)
{
    assert_ok(try_create(number, id));
}

/* Answers the entry's sequence. */
static uint64_t add(uint32_t number, uint8_t stream, const char *payload)
{
    struct wal__entry_record entry = {.id = model_span("e"), .payload = model_span(payload)};

    wal__entry_record_encode(&entry, kit.payload);
    assert_ok(apply((struct wal__frame){.type = WAL__FRAME_ENTRY,
                                        .session = number,
                                        .stream = stream,
                                        .kind = WAL__KIND_MESSAGE},
                    wal__entry_record_size(&entry), WAL__FORMAT_VERSION));
    return kit.sequence;
}

static void fork_at(uint32_t number, uint32_t source, uint32_t owner, uint64_t point,
                    uint8_t stream)
{
    struct wal__fork_record fork = {
        .source = source,
        .owner = owner,
        .stream = stream,
        .source_id = model_span("any"),
        .owner_id = model_span("any"),
        .entry_id = model_span("point"),
    };

    wal__fork_record_encode(&fork, kit.payload);
    assert_ok(
        apply((struct wal__frame){.type = WAL__FRAME_FORK, .session = number, .parent = point},
              wal__fork_record_size(&fork), WAL__FORMAT_VERSION));
}

static struct wal__summary get(uint32_t number)
{
    struct wal__summary summary;

    assert_ok(wal__catalogue_get(&kit.catalogue, number, &summary));
    return summary;
}

static bool has(uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&kit.catalogue, number, &summary);

    assert_true(status == WAL_OK || status == WAL_ENOTFOUND);
    return status == WAL_OK;
}

/* The number that is found by an id, 0: none. */
static uint32_t found(const char *id)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_find(&kit.catalogue, model_span(id), &summary);

    if (status == WAL_ENOTFOUND) {
        return 0;
    }
    assert_ok(status);
    return summary.number;
}

static uint32_t listed(void)
{
    struct wal__catalogue_filter filter = {.changed_after = 0};
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;
    uint32_t count = 0;

    assert_ok(wal__catalogue_iter_init(&cursor, &kit.catalogue, &filter));
    while (wal__catalogue_iter_next(&cursor, &kit.catalogue, &summary) == WAL_OK) {
        count++;
    }
    wal__catalogue_iter_deinit(&cursor);
    assert_int_equal(count, kit.catalogue.visible_count);
    return count;
}

/* ------------------------------------------------------------- deletion --- */

RECORDS_TEST(catalogue_records__deleted_session_is_not_restored)
{
    struct wal__summary summary;

    create(1, "a");
    create(3, "fork");
    fork_at(3, 1, 1, 1, 0); /* so that a snapshot keeps it */
    plain(WAL__FRAME_TOMBSTONE, 1, 0);
    create(2, "a");
    for (int i = 0; i < 2; i++) {
        summary = get(1);
        summary.flags = 0;
        assert_int_equal(wal__catalogue_put(&kit.catalogue, &summary), WAL_ECORRUPT);
        roll();
    }
    /* A redaction for a fork's sake is all that a deleted session gets. */
    plain(WAL__FRAME_REDACT, 1, 9);
    assert_int_equal(get(1).flags, WAL__SUMMARY_DELETED);
    assert_int_equal(found("a"), 2);
    assert_int_equal(listed(), 2);
}

/* ------------------------------------------------------------- omission --- */

/* The first message of a fork may be that of a session that is neither source nor owner of its fork
 * point. */
RECORDS_TEST(catalogue_records__owner_of_the_first_message_is_kept)
{
    uint64_t first;

    create(1, "root");
    first = add(1, 0, user);
    create(2, "middle");
    fork_at(2, 1, 1, first, 0);
    create(3, "leaf");
    fork_at(3, 2, 2, add(2, 0, "{}"), 0);
    assert_int_equal(get(3).first_owner, 1);
    plain(WAL__FRAME_TOMBSTONE, 1, 0);
    roll();
    assert_true(has(1));
    assert_true(model_span_is(get(1).first_text, "hello there"));
}

/* ------------------------------------------------------------ documents --- */

RECORDS_TEST(catalogue_records__store_has_only_documents)
{
    static const uint8_t types[] = {WAL__FRAME_SESSION, WAL__FRAME_ENTRY,  WAL__FRAME_FORK,
                                    WAL__FRAME_HEAD,    WAL__FRAME_REDACT, WAL__FRAME_TOMBSTONE};
    struct wal__summary summary = {.number = WAL__STORE_NUMBER,
                                   .id = model_span("lost-4294967295")};

    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof(types); k++) {
            assert_int_equal(try_plain(types[k], WAL__STORE_NUMBER, 0), WAL_ECORRUPT);
        }
        assert_int_equal(wal__catalogue_put(&kit.catalogue, &summary), WAL_ECORRUPT);
        assert_int_equal(kit.catalogue.visible_count, 0);
        assert_int_equal(has(WAL__STORE_NUMBER), i);
        plain(WAL__FRAME_DOC, WAL__STORE_NUMBER, 0);
    }
}

RECORDS_TEST(catalogue_records__lost_documents_of_the_store)
{
    assert_ok(wal__catalogue_mark_damaged(&kit.catalogue, WAL__STORE_NUMBER));
    assert_int_equal(get(WAL__STORE_NUMBER).flags, WAL__SUMMARY_DAMAGED);
    assert_int_equal(listed(), 0);
    plain(WAL__FRAME_ACCEPT, WAL__STORE_NUMBER, 0);
    assert_int_equal(get(WAL__STORE_NUMBER).flags, 0);
    assert_int_equal(wal__catalogue_mark_damaged(&kit.catalogue, 5), WAL_ENOTFOUND);
}

/* ------------------------------------------------------------ lineage --- */

/* By number: the id may be another session's by now. */
RECORDS_TEST(catalogue_records__fork_of_a_deleted_source)
{
    create(1, "any");
    plain(WAL__FRAME_TOMBSTONE, 1, 0);
    create(2, "any");
    create(3, "c");
    fork_at(3, 1, 1, 1, 0);
    assert_int_equal(get(3).fork_source, 1);
    assert_int_equal(get(3).fork_owner, 1);
    assert_true(model_span_is(get(3).head_id, "point"));
}

/* ----------------------------------------------------------- versions --- */

/* Seconds, no schema version, no title. */
RECORDS_TEST(catalogue_records__session_of_format_version_0)
{
    static const char texts[] = "old/wp{\"title\":\"t\"}";
    struct wal__frame frame = {.type = WAL__FRAME_SESSION, .session = 1};
    struct wal__summary summary;

    wal__put64(kit.payload, 1700000000);
    wal__put16(kit.payload + 12, 3);
    wal__put16(kit.payload + 14, 2);
    wal__put16(kit.payload + 16, 1);
    wal__put32(kit.payload + 24, 13);
    memcpy(kit.payload + 28, texts, sizeof(texts) - 1);
    assert_ok(apply(frame, 28 + sizeof(texts) - 1, 0));
    summary = get(1);
    assert_true(model_span_is(summary.id, "old"));
    assert_true(model_span_is(summary.cwd, "/w"));
    assert_true(model_span_is(summary.project, "p"));
    assert_true(model_span_is(summary.title, ""));
    assert_int_equal(summary.created_ms, 1700000000000);
    assert_int_equal(summary.schema_version, 0);
    frame.session = 2;
    assert_int_equal(apply(frame, 28 + sizeof(texts) - 1, 1), WAL_ECORRUPT);
    roll();
    assert_int_equal(get(1).schema_version, 0);
}

static void apply_to_first(struct wal__frame frame, size_t size)
{
    frame.session = 1;
    assert_ok(apply(frame, size, WAL__FORMAT_VERSION));
}

/* A SESSION record; the first one creates the session. */
static void put_session(int64_t created_ms)
{
    struct wal__session_record session = {
        .created_ms = created_ms, .schema_version = 1, .id = model_span("a")};

    wal__session_record_encode(&session, kit.payload);
    apply_to_first((struct wal__frame){.type = WAL__FRAME_SESSION},
                   wal__session_record_size(&session));
}

/* A message of a user; answers its sequence. */
static uint64_t add_at(uint8_t stream, const char *time)
{
    static const char payload[] = "{\"role\":\"user\",\"content\":\"hello\"}";
    struct wal__entry_record entry = {
        .id = model_span("e"), .time = model_span(time), .payload = model_span(payload)};

    wal__entry_record_encode(&entry, kit.payload);
    apply_to_first(
        (struct wal__frame){.type = WAL__FRAME_ENTRY, .stream = stream, .kind = WAL__KIND_MESSAGE},
        wal__entry_record_size(&entry));
    return kit.sequence;
}

enum { DAY_MS = 86400000 };

static void check_times(int64_t created_ms, int64_t updated_ms)
{
    struct wal__summary summary;

    assert_ok(wal__catalogue_get(&kit.catalogue, 1, &summary));
    assert_int_equal(summary.created_ms, created_ms);
    assert_int_equal(summary.updated_ms, updated_ms);
    assert_int_equal(summary.last_sequence, kit.sequence);
}

/* In the overlay, then in the snapshot. */
RECORDS_TEST(catalogue_times__are_those_of_entries)
{
    for (int rolls = 0; rolls < 2; rolls++) {
        begin_again();
        kit.clock_ms = INT64_C(1700000000000);
        put_session(1699999999000);
        check_times(1699999999000, 1699999999000);
        if (rolls > 0) {
            roll();
        }
        /* The first entry, of any stream, is older than the session. */
        add_at(1, "1970-01-01T00:00:05Z");
        check_times(5000, 5000);
        add_at(0, "1970-01-01T00:00:09.5Z");
        check_times(5000, 9500);
        if (rolls > 0) {
            roll();
        }
        add_at(0, "1970-01-01T01:00:07+01:00");
        check_times(5000, 9500);
        add_at(0, "1970-01-01T00:00:00Z");
        check_times(0, 9500);
    }
}

RECORDS_TEST(catalogue_times__one_that_is_not_believed_is_replaced)
{
    static const char *const times[] = {
        "",
        "noon",
        "1700000000000",
        "1969-12-31T23:59:59.999Z",
        "2023-11-15T22:13:20.001Z", /* a day and a millisecond ahead */
        "9999-12-31T23:59:59Z",
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        begin_again();
        kit.clock_ms = INT64_C(1700000000000);
        put_session(0);
        add_at(0, times[i]);
        check_times(0, kit.clock_ms);
    }
    begin_again();
    kit.clock_ms = INT64_C(1700000000000);
    put_session(0);
    add_at(0, "2023-11-15T22:13:20.000Z");
    check_times(0, kit.clock_ms + DAY_MS);
}

RECORDS_TEST(catalogue_times__creation_that_is_not_believed_is_replaced)
{
    const int64_t clock_ms = INT64_C(1700000000000);
    const int64_t given[] = {-1, INT64_MIN, INT64_MAX, clock_ms + DAY_MS + 1};

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        begin_again();
        kit.clock_ms = clock_ms;
        put_session(given[i]);
        check_times(clock_ms, clock_ms);
        /* A later record of the same session does not make it younger. */
        kit.clock_ms += 500;
        put_session(given[i]);
        check_times(clock_ms, clock_ms);
    }
}
