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

static const char agent[] = "{\"role\":\"assistant\",\"content\":\"yes\"}";

/* A catalogue that is given records one by one, each the next in the log. */
struct kit {
    struct wal__catalogue catalogue;
    struct wal__span snapshot;
    uint64_t sequence;
    int64_t clock_ms; /* of the next record */
    uint8_t payload[MODEL_PAYLOAD_SIZE];
};

static void begin(struct kit *kit)
{
    memset(kit, 0, sizeof(*kit));
    kit->clock_ms = INT64_C(1700000000007);
    wal__catalogue_init(&kit->catalogue, &wal__heap_libc);
}

static void end(struct kit *kit)
{
    wal__catalogue_deinit(&kit->catalogue);
    model_free(kit->snapshot);
}

/* The overlay becomes a snapshot. */
static void roll(struct kit *kit)
{
    struct wal__span old = kit->snapshot;

    kit->snapshot = model_swap_snapshot(&kit->catalogue, NULL);
    model_free(old);
}

static enum wal_status apply(struct kit *kit, struct wal__frame frame, size_t size,
                             uint32_t version)
{
    struct wal__log_record applied = {
        .frame = &frame,
        .payload = {kit->payload, size},
        .clock_ms = kit->clock_ms,
        .version = version,
    };

    frame.sequence = ++kit->sequence;
    frame.stored_size = (uint32_t)size;
    applied.position = wal__position(1, 4096 + kit->sequence * 64);
    return wal__catalogue_apply(&kit->catalogue, &applied);
}

static enum wal_status try_plain(struct kit *kit, uint8_t type, uint32_t number, uint64_t parent)
{
    return apply(kit, (struct wal__frame){.type = type, .session = number, .parent = parent}, 0,
                 WAL__FORMAT_VERSION);
}

static void plain(struct kit *kit, uint8_t type, uint32_t number, uint64_t parent)
{
    assert_ok(try_plain(kit, type, number, parent));
}

static enum wal_status try_create(struct kit *kit, uint32_t number, const char *id)
{
    struct wal__session_record session = {
        .schema_version = 3,
        .id = model_span(id),
        .cwd = model_span("/w"),
    };

    wal__session_record_encode(&session, kit->payload);
    return apply(kit, (struct wal__frame){.type = WAL__FRAME_SESSION, .session = number},
                 wal__session_record_size(&session), WAL__FORMAT_VERSION);
}

static void create(struct kit *kit, uint32_t number, const char *id)
{
    assert_ok(try_create(kit, number, id));
}

/* Answers the entry's sequence. */
static uint64_t add(struct kit *kit, uint32_t number, uint8_t stream, const char *payload)
{
    struct wal__entry_record entry = {.id = model_span("e"), .payload = model_span(payload)};

    wal__entry_record_encode(&entry, kit->payload);
    assert_ok(apply(kit,
                    (struct wal__frame){.type = WAL__FRAME_ENTRY,
                                        .session = number,
                                        .stream = stream,
                                        .kind = WAL__KIND_MESSAGE},
                    wal__entry_record_size(&entry), WAL__FORMAT_VERSION));
    return kit->sequence;
}

static void fork_at(struct kit *kit, uint32_t number, uint32_t source, uint32_t owner,
                    uint64_t point, uint8_t stream)
{
    struct wal__fork_record fork = {
        .source = source,
        .owner = owner,
        .stream = stream,
        .source_id = model_span("any"),
        .owner_id = model_span("any"),
        .entry_id = model_span("point"),
    };

    wal__fork_record_encode(&fork, kit->payload);
    assert_ok(
        apply(kit, (struct wal__frame){.type = WAL__FRAME_FORK, .session = number, .parent = point},
              wal__fork_record_size(&fork), WAL__FORMAT_VERSION));
}

static struct wal__summary get(const struct kit *kit, uint32_t number)
{
    struct wal__summary summary;

    assert_ok(wal__catalogue_get(&kit->catalogue, number, &summary));
    return summary;
}

static bool has(const struct kit *kit, uint32_t number)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_get(&kit->catalogue, number, &summary);

    assert_true(status == WAL_OK || status == WAL_ENOTFOUND);
    return status == WAL_OK;
}

/* The number that is found by an id, 0: none. */
static uint32_t found(const struct kit *kit, const char *id)
{
    struct wal__summary summary;
    enum wal_status status = wal__catalogue_find(&kit->catalogue, model_span(id), &summary);

    if (status == WAL_ENOTFOUND) {
        return 0;
    }
    assert_ok(status);
    return summary.number;
}

static uint32_t listed(const struct kit *kit)
{
    struct wal__catalogue_filter filter = {.changed_after = 0};
    struct wal__catalogue_iter cursor;
    struct wal__summary summary;
    uint32_t count = 0;

    assert_ok(wal__catalogue_iter_init(&cursor, &kit->catalogue, &filter));
    while (wal__catalogue_iter_next(&cursor, &kit->catalogue, &summary) == WAL_OK) {
        count++;
    }
    wal__catalogue_iter_deinit(&cursor);
    assert_int_equal(count, kit->catalogue.visible_count);
    return count;
}

/* ------------------------------------------------------------- deletion --- */

/* In the overlay, then in the snapshot, then in one and the other. */
TEST(catalogue_records__deleted_session_is_found_by_number)
{
    struct kit kit;

    for (int rolls = 0; rolls < 4; rolls++) {
        begin(&kit);
        create(&kit, 1, "a");
        create(&kit, 2, "b");
        if ((rolls & 1) != 0) {
            roll(&kit);
        }
        plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
        if ((rolls & 2) != 0) {
            roll(&kit);
        }
        assert_int_equal(found(&kit, "a"), 0);
        assert_int_equal(found(&kit, "b"), 2);
        if ((rolls & 2) == 0) {
            assert_int_equal(get(&kit, 1).flags, WAL__SUMMARY_DELETED);
            assert_int_equal(get(&kit, 1).last_sequence, 3);
        } else {
            assert_false(has(&kit, 1)); /* a snapshot omits it */
        }
        assert_int_equal(listed(&kit), 1);
        end(&kit);
    }
}

TEST(catalogue_records__id_of_a_deleted_session_is_free)
{
    struct kit kit;

    for (int rolls = 0; rolls < 8; rolls++) {
        begin(&kit);
        create(&kit, 1, "a");
        if ((rolls & 1) != 0) {
            roll(&kit);
        }
        assert_int_equal(try_create(&kit, 2, "a"), WAL_ECORRUPT);
        plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
        if ((rolls & 2) != 0) {
            roll(&kit);
        }
        create(&kit, 2, "a");
        assert_int_equal(found(&kit, "a"), 2);
        assert_int_equal(try_create(&kit, 3, "a"), WAL_ECORRUPT);
        plain(&kit, WAL__FRAME_TOMBSTONE, 2, 0);
        assert_int_equal(found(&kit, "a"), 0);
        create(&kit, 3, "a");
        if ((rolls & 4) != 0) {
            roll(&kit);
        }
        assert_int_equal(found(&kit, "a"), 3);
        assert_int_equal(listed(&kit), 1);
        end(&kit);
    }
}

TEST(catalogue_records__deleted_session_is_not_restored)
{
    struct wal__summary summary;
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    create(&kit, 3, "fork");
    fork_at(&kit, 3, 1, 1, 1, 0); /* so that a snapshot keeps it */
    plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
    create(&kit, 2, "a");
    for (int i = 0; i < 2; i++) {
        summary = get(&kit, 1);
        summary.flags = 0;
        assert_int_equal(wal__catalogue_put(&kit.catalogue, &summary), WAL_ECORRUPT);
        roll(&kit);
    }
    /* A redaction for a fork's sake is all that a deleted session gets. */
    plain(&kit, WAL__FRAME_REDACT, 1, 9);
    assert_int_equal(get(&kit, 1).flags, WAL__SUMMARY_DELETED);
    assert_int_equal(found(&kit, "a"), 2);
    assert_int_equal(listed(&kit), 2);
    end(&kit);
}

/* ------------------------------------------------------------- omission --- */

/* A chain of forks keeps what it came from, for as long as one of it is left: each level is deleted
 * but the last, then that too. */
TEST(catalogue_records__deleted_session_stays_while_a_fork_exists)
{
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "root");
    create(&kit, 2, "stranger");
    create(&kit, 3, "middle");
    fork_at(&kit, 3, 1, 1, add(&kit, 1, 0, "{}"), 0);
    create(&kit, 4, "leaf");
    fork_at(&kit, 4, 3, 1, add(&kit, 3, 0, "{}"), 0);
    for (uint32_t number = 1; number < 4; number++) {
        plain(&kit, WAL__FRAME_TOMBSTONE, number, 0);
    }
    roll(&kit);
    assert_true(has(&kit, 1) && has(&kit, 3) && has(&kit, 4));
    assert_false(has(&kit, 2));
    assert_int_equal(kit.catalogue.snapshot->header.hidden_count, 2);
    plain(&kit, WAL__FRAME_TOMBSTONE, 4, 0);
    assert_true(has(&kit, 1) && has(&kit, 3) && has(&kit, 4));
    roll(&kit);
    assert_false(has(&kit, 1) || has(&kit, 3) || has(&kit, 4));
    assert_int_equal(kit.catalogue.snapshot->header.session_count, 0);
    assert_int_equal(kit.catalogue.last_session, 4); /* no number twice */
    end(&kit);
}

/* The first message of a fork may be that of a session that is neither source nor owner of its fork
 * point. */
TEST(catalogue_records__owner_of_the_first_message_is_kept)
{
    uint64_t first;
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "root");
    first = add(&kit, 1, 0, user);
    create(&kit, 2, "middle");
    fork_at(&kit, 2, 1, 1, first, 0);
    create(&kit, 3, "leaf");
    fork_at(&kit, 3, 2, 2, add(&kit, 2, 0, "{}"), 0);
    assert_int_equal(get(&kit, 3).first_owner, 1);
    plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
    roll(&kit);
    assert_true(has(&kit, 1));
    assert_true(model_span_is(get(&kit, 1).first_text, "hello there"));
    end(&kit);
}

/* The records of an omitted session are applied again, while another session has its id. */
TEST(catalogue_records__omitted_session_is_applied_hidden)
{
    struct wal__session_record session = {.schema_version = 3, .id = model_span("a")};
    struct wal__frame frame = {.type = WAL__FRAME_SESSION, .session = 1};
    struct wal__log_record record = {.frame = &frame, .version = WAL__FORMAT_VERSION};
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
    create(&kit, 2, "a");
    roll(&kit);
    assert_false(has(&kit, 1));
    wal__session_record_encode(&session, kit.payload);
    record.payload = (struct wal__span){kit.payload, wal__session_record_size(&session)};
    assert_int_equal(wal__catalogue_apply(&kit.catalogue, &record), WAL_ECORRUPT);
    assert_ok(wal__catalogue_apply_deleted(&kit.catalogue, &record));
    assert_int_equal(get(&kit, 1).flags, WAL__SUMMARY_DELETED);
    assert_int_equal(found(&kit, "a"), 2);
    assert_int_equal(listed(&kit), 1);
    end(&kit);
}

/* ------------------------------------------------------------ documents --- */

TEST(catalogue_records__documents_are_counted)
{
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    plain(&kit, WAL__FRAME_DOC, 1, 0);
    plain(&kit, WAL__FRAME_DOC, 1, 2);
    plain(&kit, WAL__FRAME_DOC_DELETE, 1, 3);
    assert_int_equal(get(&kit, 1).documents, 3);
    assert_int_equal(get(&kit, 1).entries, 0);
    assert_int_equal(get(&kit, 1).last_sequence, 4);
    end(&kit);
}

TEST(catalogue_records__store_is_not_listed)
{
    struct wal__summary summary;
    struct kit kit;

    begin(&kit);
    plain(&kit, WAL__FRAME_DOC, WAL__STORE_NUMBER, 0);
    assert_int_equal(kit.catalogue.last_session, 0);
    create(&kit, 1, "store");
    create(&kit, 2, "a");
    plain(&kit, WAL__FRAME_DOC_DELETE, WAL__STORE_NUMBER, 1);
    for (int i = 0; i < 2; i++) {
        summary = get(&kit, WAL__STORE_NUMBER);
        assert_true(model_span_is(summary.id, "store"));
        assert_int_equal(summary.documents, 2);
        assert_int_equal(summary.last_sequence, 4);
        assert_int_equal(summary.created_ms, 1700000000007);
        assert_int_equal(found(&kit, "store"), 1);
        assert_int_equal(listed(&kit), 2);
        assert_int_equal(kit.catalogue.last_session, 2);
        roll(&kit);
    }
    plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
    assert_int_equal(found(&kit, "store"), 0);
    end(&kit);
}

TEST(catalogue_records__store_has_only_documents)
{
    static const uint8_t types[] = {WAL__FRAME_SESSION, WAL__FRAME_ENTRY,  WAL__FRAME_FORK,
                                    WAL__FRAME_HEAD,    WAL__FRAME_REDACT, WAL__FRAME_TOMBSTONE};
    struct wal__summary summary = {.number = WAL__STORE_NUMBER,
                                   .id = model_span("lost-4294967295")};
    struct kit kit;

    begin(&kit);
    for (int i = 0; i < 2; i++) {
        for (size_t k = 0; k < sizeof(types); k++) {
            assert_int_equal(try_plain(&kit, types[k], WAL__STORE_NUMBER, 0), WAL_ECORRUPT);
        }
        assert_int_equal(wal__catalogue_put(&kit.catalogue, &summary), WAL_ECORRUPT);
        assert_int_equal(kit.catalogue.visible_count, 0);
        assert_int_equal(has(&kit, WAL__STORE_NUMBER), i);
        plain(&kit, WAL__FRAME_DOC, WAL__STORE_NUMBER, 0);
    }
    end(&kit);
}

TEST(catalogue_records__lost_documents_of_the_store)
{
    struct kit kit;

    begin(&kit);
    assert_ok(wal__catalogue_mark_damaged(&kit.catalogue, WAL__STORE_NUMBER));
    assert_int_equal(get(&kit, WAL__STORE_NUMBER).flags, WAL__SUMMARY_DAMAGED);
    assert_int_equal(listed(&kit), 0);
    plain(&kit, WAL__FRAME_ACCEPT, WAL__STORE_NUMBER, 0);
    assert_int_equal(get(&kit, WAL__STORE_NUMBER).flags, 0);
    assert_int_equal(wal__catalogue_mark_damaged(&kit.catalogue, 5), WAL_ENOTFOUND);
    end(&kit);
}

/* --------------------------------------------------- first user message --- */

static void expect_first(const struct kit *kit, uint32_t number, uint64_t sequence, uint32_t owner,
                         const char *text)
{
    struct wal__summary summary = get(kit, number);

    assert_int_equal(summary.first_sequence, sequence);
    assert_int_equal(summary.first_owner, owner);
    assert_true(model_span_is(summary.first_text, text));
}

TEST(catalogue_records__first_user_message_is_kept)
{
    uint64_t first;
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    add(&kit, 1, 1, user); /* a transcript's */
    add(&kit, 1, 0, agent);
    add(&kit, 1, 0, "not JSON");
    expect_first(&kit, 1, 0, 0, "");
    first = add(&kit, 1, 0, user);
    add(&kit, 1, 0, "{\"role\":\"user\",\"content\":\"another\"}");
    expect_first(&kit, 1, first, 1, "hello there");
    roll(&kit);
    add(&kit, 1, 0, user);
    expect_first(&kit, 1, first, 1, "hello there");
    end(&kit);
}

TEST(catalogue_records__first_message_is_among_64_entries)
{
    uint64_t first;
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    create(&kit, 2, "b");
    for (int i = 0; i < 63; i++) {
        add(&kit, 1, 0, agent);
        add(&kit, 2, 0, agent);
    }
    first = add(&kit, 1, 0, user);
    expect_first(&kit, 1, first, 1, "hello there");
    add(&kit, 2, 0, agent);
    add(&kit, 2, 0, user);
    expect_first(&kit, 2, 0, 0, "");
    end(&kit);
}

TEST(catalogue_records__redacted_first_message_is_empty)
{
    uint64_t first;
    uint64_t second;
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    first = add(&kit, 1, 0, user);
    second = add(&kit, 1, 0, user);
    plain(&kit, WAL__FRAME_REDACT, 1, second);
    expect_first(&kit, 1, first, 1, "hello there");
    plain(&kit, WAL__FRAME_REDACT, 1, first);
    expect_first(&kit, 1, first, 1, "");
    add(&kit, 1, 0, user);
    expect_first(&kit, 1, first, 1, "");
    roll(&kit);
    expect_first(&kit, 1, first, 1, "");
    end(&kit);
}

TEST(catalogue_records__fork_inherits_the_first_message)
{
    uint64_t first;
    uint64_t own;
    uint64_t point;
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    point = add(&kit, 1, 0, agent);
    first = add(&kit, 1, 0, user);
    create(&kit, 2, "b");
    fork_at(&kit, 2, 1, 1, first, 0);
    expect_first(&kit, 2, first, 1, "");
    assert_int_equal(get(&kit, 2).fork_record, kit.sequence);
    assert_int_equal(get(&kit, 2).fork_source, 1);
    add(&kit, 2, 0, user);
    expect_first(&kit, 2, first, 1, "");
    /* A fork of the fork: the text stays with whom it is. */
    create(&kit, 3, "c");
    fork_at(&kit, 3, 2, 1, first, 0);
    expect_first(&kit, 3, first, 1, "");
    assert_int_equal(get(&kit, 3).fork_source, 2);
    assert_int_equal(get(&kit, 3).fork_owner, 1);
    /* Before it, or of another stream: its own. */
    create(&kit, 4, "d");
    fork_at(&kit, 4, 1, 1, point, 0);
    expect_first(&kit, 4, 0, 0, "");
    own = add(&kit, 4, 0, user);
    expect_first(&kit, 4, own, 4, "hello there");
    create(&kit, 5, "e");
    fork_at(&kit, 5, 1, 1, first, 1);
    expect_first(&kit, 5, 0, 0, "");
    /* Redacting it is the owner's business. */
    plain(&kit, WAL__FRAME_REDACT, 2, first);
    expect_first(&kit, 1, first, 1, "hello there");
    end(&kit);
}

/* ------------------------------------------------------------ lineage --- */

/* By number: the id may be another session's by now. */
TEST(catalogue_records__fork_of_a_deleted_source)
{
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "any");
    plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
    create(&kit, 2, "any");
    create(&kit, 3, "c");
    fork_at(&kit, 3, 1, 1, 1, 0);
    assert_int_equal(get(&kit, 3).fork_source, 1);
    assert_int_equal(get(&kit, 3).fork_owner, 1);
    assert_true(model_span_is(get(&kit, 3).head_id, "point"));
    end(&kit);
}

TEST(catalogue_records__removed_head_is_absent)
{
    struct wal__head_record head = {.name = model_span("main"), .entry_id = model_span("e")};
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    for (int i = 0; i < 2; i++) {
        wal__head_record_encode(&head, kit.payload);
        assert_ok(apply(&kit,
                        (struct wal__frame){.type = WAL__FRAME_HEAD, .session = 1, .parent = 1},
                        wal__head_record_size(&head), WAL__FORMAT_VERSION));
        assert_int_equal(get(&kit, 1).head_sequence, i == 0 ? 1 : 0);
        assert_true(model_span_is(get(&kit, 1).head_id, i == 0 ? "e" : ""));
        head.entry_id.size = 0;
    }
    end(&kit);
}

/* ----------------------------------------------------------- versions --- */

TEST(catalogue_records__schema_version_is_kept)
{
    struct kit kit;

    begin(&kit);
    create(&kit, 1, "a");
    assert_int_equal(get(&kit, 1).schema_version, 3);
    roll(&kit);
    assert_int_equal(get(&kit, 1).schema_version, 3);
    end(&kit);
}

/* Seconds, no schema version, no title. */
TEST(catalogue_records__session_of_format_version_0)
{
    static const char texts[] = "old/wp{\"title\":\"t\"}";
    struct wal__frame frame = {.type = WAL__FRAME_SESSION, .session = 1};
    struct wal__summary summary;
    struct kit kit;

    begin(&kit);
    wal__put64(kit.payload, 1700000000);
    wal__put16(kit.payload + 12, 3);
    wal__put16(kit.payload + 14, 2);
    wal__put16(kit.payload + 16, 1);
    wal__put32(kit.payload + 24, 13);
    memcpy(kit.payload + 28, texts, sizeof(texts) - 1);
    assert_ok(apply(&kit, frame, 28 + sizeof(texts) - 1, 0));
    summary = get(&kit, 1);
    assert_true(model_span_is(summary.id, "old"));
    assert_true(model_span_is(summary.cwd, "/w"));
    assert_true(model_span_is(summary.project, "p"));
    assert_true(model_span_is(summary.title, ""));
    assert_int_equal(summary.created_ms, 1700000000000);
    assert_int_equal(summary.schema_version, 0);
    frame.session = 2;
    assert_int_equal(apply(&kit, frame, 28 + sizeof(texts) - 1, 1), WAL_ECORRUPT);
    roll(&kit);
    assert_int_equal(get(&kit, 1).schema_version, 0);
    end(&kit);
}

static void apply_to_first(struct kit *kit, struct wal__frame frame, size_t size)
{
    frame.session = 1;
    assert_ok(apply(kit, frame, size, WAL__FORMAT_VERSION));
}

/* A SESSION record; the first one creates the session. */
static void put_session(struct kit *kit, int64_t created_ms)
{
    struct wal__session_record session = {
        .created_ms = created_ms, .schema_version = 1, .id = model_span("a")};

    wal__session_record_encode(&session, kit->payload);
    apply_to_first(kit, (struct wal__frame){.type = WAL__FRAME_SESSION},
                   wal__session_record_size(&session));
}

/* A message of a user; answers its sequence. */
static uint64_t add_at(struct kit *kit, uint8_t stream, const char *time)
{
    static const char payload[] = "{\"role\":\"user\",\"content\":\"hello\"}";
    struct wal__entry_record entry = {
        .id = model_span("e"), .time = model_span(time), .payload = model_span(payload)};

    wal__entry_record_encode(&entry, kit->payload);
    apply_to_first(
        kit,
        (struct wal__frame){.type = WAL__FRAME_ENTRY, .stream = stream, .kind = WAL__KIND_MESSAGE},
        wal__entry_record_size(&entry));
    return kit->sequence;
}

enum {
    DAY_MS = 86400000
};

static void check_times(const struct kit *kit, int64_t created_ms, int64_t updated_ms)
{
    struct wal__summary summary;

    assert_ok(wal__catalogue_get(&kit->catalogue, 1, &summary));
    assert_int_equal(summary.created_ms, created_ms);
    assert_int_equal(summary.updated_ms, updated_ms);
    assert_int_equal(summary.last_sequence, kit->sequence);
}

/* In the overlay, then in the snapshot. */
TEST(catalogue_times__are_those_of_entries)
{
    struct kit kit;

    for (int rolls = 0; rolls < 2; rolls++) {
        begin(&kit);
        kit.clock_ms = INT64_C(1700000000000);
        put_session(&kit, 1699999999000);
        check_times(&kit, 1699999999000, 1699999999000);
        if (rolls > 0) {
            roll(&kit);
        }
        /* The first entry, of any stream, is older than the session. */
        add_at(&kit, 1, "1970-01-01T00:00:05Z");
        check_times(&kit, 5000, 5000);
        add_at(&kit, 0, "1970-01-01T00:00:09.5Z");
        check_times(&kit, 5000, 9500);
        if (rolls > 0) {
            roll(&kit);
        }
        add_at(&kit, 0, "1970-01-01T01:00:07+01:00");
        check_times(&kit, 5000, 9500);
        add_at(&kit, 0, "1970-01-01T00:00:00Z");
        check_times(&kit, 0, 9500);
        end(&kit);
    }
}

TEST(catalogue_times__one_that_is_not_believed_is_replaced)
{
    static const char *const times[] = {
        "",
        "noon",
        "1700000000000",
        "1969-12-31T23:59:59.999Z",
        "2023-11-15T22:13:20.001Z", /* a day and a millisecond ahead */
        "9999-12-31T23:59:59Z",
    };
    struct kit kit;

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        begin(&kit);
        kit.clock_ms = INT64_C(1700000000000);
        put_session(&kit, 0);
        add_at(&kit, 0, times[i]);
        check_times(&kit, 0, kit.clock_ms);
        end(&kit);
    }
    begin(&kit);
    kit.clock_ms = INT64_C(1700000000000);
    put_session(&kit, 0);
    add_at(&kit, 0, "2023-11-15T22:13:20.000Z");
    check_times(&kit, 0, kit.clock_ms + DAY_MS);
    end(&kit);
}

TEST(catalogue_times__creation_that_is_not_believed_is_replaced)
{
    const int64_t clock_ms = INT64_C(1700000000000);
    const int64_t given[] = {-1, INT64_MIN, INT64_MAX, clock_ms + DAY_MS + 1};
    struct kit kit;

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        begin(&kit);
        kit.clock_ms = clock_ms;
        put_session(&kit, given[i]);
        check_times(&kit, clock_ms, clock_ms);
        /* A later record of the same session does not make it younger. */
        kit.clock_ms += 500;
        put_session(&kit, given[i]);
        check_times(&kit, clock_ms, clock_ms);
        end(&kit);
    }
}

TEST(catalogue_times__change_by_entries_only)
{
    static const struct wal__head_record head = {.name = {(const uint8_t *)"main", 4}};
    struct kit kit;
    uint64_t entry;

    begin(&kit);
    kit.clock_ms = 7;
    put_session(&kit, 0);
    entry = add_at(&kit, 0, "1970-01-01T00:00:00.003Z");
    check_times(&kit, 0, 3);
    kit.clock_ms = 1000;
    for (int i = 0; i < 2; i++) {
        plain(&kit, WAL__FRAME_DOC, 1, 0);
        plain(&kit, WAL__FRAME_REDACT, 1, entry);
        plain(&kit, WAL__FRAME_ACCEPT, 1, 0);
        put_session(&kit, 900);
        wal__head_record_encode(&head, kit.payload);
        apply_to_first(&kit, (struct wal__frame){.type = WAL__FRAME_HEAD},
                       wal__head_record_size(&head));
        check_times(&kit, 0, 3);
        roll(&kit);
    }
    plain(&kit, WAL__FRAME_TOMBSTONE, 1, 0);
    check_times(&kit, 0, 3);
    end(&kit);
}
