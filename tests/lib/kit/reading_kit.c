/*
 * reading_kit.c - see reading_kit.h.
 */
#include "tests/lib/kit/reading_kit.h"

struct reading reading_begin(void)
{
    struct reading reading = {.store = kit_store()};

    reading.session = kit_create(reading.store, "s");
    return reading;
}

void reading_deinit(struct reading *reading)
{
    wal_session_close(reading->session);
    kit_close(reading->store);
}

void reading_reopen(struct reading *reading, uint32_t flags)
{
    reading_deinit(reading);
    reading->store = kit_open("store", flags);
    reading->session = kit_session(reading->store, "s");
}

void reading_append(struct wal_session *session, const char *id, const char *parent,
                    const char *type, const char *payload)
{
    struct wal_entry entry = kit_entry(id, parent, payload);

    entry.type = kit_text(type);
    assert_done(kit_try_append(session, &entry, NULL, kit_error()));
}

void reading_deltas(struct wal_session *session, const char *ids)
{
    char copy[256];
    char *rest = NULL;

    (void)snprintf(copy, sizeof(copy), "%s", ids);
    for (char *id = strtok_r(copy, " ", &rest); id != NULL; id = strtok_r(NULL, " ", &rest)) {
        struct wal_entry entry = kit_entry(id, NULL, "{}");

        entry.type = kit_text("message_delta_batch");
        entry.flags = WAL_ENTRY_LINE;
        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
}

void reading_redact(struct wal_session *session, const char *target, const char *reason)
{
    char id[64];
    char payload[512];
    struct wal_entry entry;

    (void)snprintf(id, sizeof(id), "x%s", target);
    (void)snprintf(payload, sizeof(payload), "{\"targetEntryId\":\"%s\",\"reason\":\"%s\"}", target,
                   reason);
    entry = kit_entry(id, NULL, payload);
    entry.type = kit_text("redaction");
    entry.stream = 9;
    assert_done(kit_try_append(session, &entry, NULL, kit_error()));
}

const char *reading_ids(struct wal_session *session, uint32_t mode, uint32_t flags)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = mode, .flags = flags};

    return kit_list_ids(session, &options);
}

struct wal_entry_cursor *reading_open(struct wal_session *session, uint32_t mode, uint32_t flags)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = mode, .flags = flags};
    struct wal_entry_cursor *cursor = NULL;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    return cursor;
}

void reading_assert_next(struct wal_entry_cursor *cursor, const char *id, const char *parent,
                         uint64_t depth)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_slice(entry.id, id);
    assert_slice(entry.parent_id, parent);
    assert_int_equal(entry.depth, depth);
    assert_int_equal((entry.flags & WAL_ENTRY_ROOT) != 0, parent[0] == '\0');
}

void reading_assert_end(struct wal_entry_cursor *cursor)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    assert_int_equal(wal_entry_cursor_next(cursor, &entry, NULL), WAL_END);
    assert_int_equal(wal_entry_cursor_remaining(cursor), 0);
    wal_entry_cursor_close(cursor);
}
