/*
 * test_catalogue_times.c - tests of when a session was created and last active:
 * the times of its entries, and what replaces those that are not believed.
 */
#include <stddef.h>
#include <stdint.h>

#include <string.h>

#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/catalogue_model.h"
#include "tests/lib/test.h"

/* A catalogue that is given records of session 1, each the next in the log. */
struct kit {
    struct wal__catalogue catalogue;
    struct wal__span snapshot;
    uint64_t sequence;
    int64_t clock_ms; /* of the next record */
    uint8_t payload[MODEL_PAYLOAD_SIZE];
};

static void begin(struct kit *kit, int64_t clock_ms)
{
    memset(kit, 0, sizeof(*kit));
    kit->clock_ms = clock_ms;
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

static void apply(struct kit *kit, struct wal__frame frame, size_t size)
{
    struct wal__log_record applied = {
        .frame = &frame,
        .payload = {kit->payload, size},
        .clock_ms = kit->clock_ms,
        .version = WAL__FORMAT_VERSION,
    };

    frame.session = 1;
    frame.sequence = ++kit->sequence;
    frame.stored_size = (uint32_t)size;
    applied.position = wal__position(1, 4096 + kit->sequence * 64);
    assert_ok(wal__catalogue_apply(&kit->catalogue, &applied));
}

static void plain(struct kit *kit, uint8_t type, uint64_t parent)
{
    apply(kit, (struct wal__frame){.type = type, .parent = parent}, 0);
}

/* A SESSION record; the first one creates the session. */
static void put_session(struct kit *kit, int64_t created_ms)
{
    struct wal__session_record session = {
        .created_ms = created_ms, .schema_version = 1, .id = model_span("a")};

    wal__session_record_encode(&session, kit->payload);
    apply(kit, (struct wal__frame){.type = WAL__FRAME_SESSION},
          wal__session_record_size(&session));
}

/* A message of a user; answers its sequence. */
static uint64_t add(struct kit *kit, uint8_t stream, const char *time)
{
    static const char payload[] = "{\"role\":\"user\",\"content\":\"hello\"}";
    struct wal__entry_record entry = {.id = model_span("e"),
                                      .time = model_span(time),
                                      .payload = model_span(payload)};

    wal__entry_record_encode(&entry, kit->payload);
    apply(kit,
          (struct wal__frame){.type = WAL__FRAME_ENTRY,
                              .stream = stream,
                              .kind = WAL__KIND_MESSAGE},
          wal__entry_record_size(&entry));
    return kit->sequence;
}

enum {
    DAY_MS = 86400000
};

static void check_times(const struct kit *kit, int64_t created_ms,
                        int64_t updated_ms)
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
        begin(&kit, INT64_C(1700000000000));
        put_session(&kit, 1699999999000);
        check_times(&kit, 1699999999000, 1699999999000);
        if (rolls > 0) {
            roll(&kit);
        }
        /* The first entry, of any stream, is older than the session. */
        add(&kit, 1, "1970-01-01T00:00:05Z");
        check_times(&kit, 5000, 5000);
        add(&kit, 0, "1970-01-01T00:00:09.5Z");
        check_times(&kit, 5000, 9500);
        if (rolls > 0) {
            roll(&kit);
        }
        add(&kit, 0, "1970-01-01T01:00:07+01:00");
        check_times(&kit, 5000, 9500);
        add(&kit, 0, "1970-01-01T00:00:00Z");
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
        begin(&kit, INT64_C(1700000000000));
        put_session(&kit, 0);
        add(&kit, 0, times[i]);
        check_times(&kit, 0, kit.clock_ms);
        end(&kit);
    }
    begin(&kit, INT64_C(1700000000000));
    put_session(&kit, 0);
    add(&kit, 0, "2023-11-15T22:13:20.000Z");
    check_times(&kit, 0, kit.clock_ms + DAY_MS);
    end(&kit);
}

TEST(catalogue_times__creation_that_is_not_believed_is_replaced)
{
    const int64_t clock_ms = INT64_C(1700000000000);
    const int64_t given[] = {-1, INT64_MIN, INT64_MAX, clock_ms + DAY_MS + 1};
    struct kit kit;

    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        begin(&kit, clock_ms);
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
    static const struct wal__head_record head = {
        .name = {(const uint8_t *)"main", 4}};
    struct kit kit;
    uint64_t entry;

    begin(&kit, 7);
    put_session(&kit, 0);
    entry = add(&kit, 0, "1970-01-01T00:00:00.003Z");
    check_times(&kit, 0, 3);
    kit.clock_ms = 1000;
    for (int i = 0; i < 2; i++) {
        plain(&kit, WAL__FRAME_DOC, 0);
        plain(&kit, WAL__FRAME_REDACT, entry);
        plain(&kit, WAL__FRAME_ACCEPT, 0);
        put_session(&kit, 900);
        wal__head_record_encode(&head, kit.payload);
        apply(&kit, (struct wal__frame){.type = WAL__FRAME_HEAD},
              wal__head_record_size(&head));
        check_times(&kit, 0, 3);
        roll(&kit);
    }
    plain(&kit, WAL__FRAME_TOMBSTONE, 0);
    check_times(&kit, 0, 3);
    end(&kit);
}
