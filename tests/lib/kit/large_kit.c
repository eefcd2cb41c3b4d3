/*
 * large_kit.c - payloads out of line, for tests (large_kit.h).
 */
#include "tests/lib/kit/large_kit.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "tests/lib/kit/reading_kit.h"

char *large_json(uint64_t seed, size_t size)
{
    static const char begin[] = "{\"text\":\"";
    uint64_t state = seed * 0x9E3779B97F4A7C15u + 1;
    char *text = test_memory(size + 1);

    assert_true(size > sizeof(begin) + 2);
    for (size_t i = 0; i < size; i++) {
        text[i] = (char)('a' + (i % 8 == 0 ? kit_random(&state) >> 32 : i) % 26);
    }
    memcpy(text, begin, sizeof(begin) - 1);
    memcpy(text + size - 2, "\"}", 3);
    return text;
}

void large_append(struct wal_session *session, const char *id, const char *payload, uint32_t flags)
{
    struct wal_entry entry = kit_entry(id, NULL, payload);

    entry.flags = flags;
    assert_done(kit_try_append(session, &entry, NULL, kit_error()));
}

static void check_entry(const struct wal_entry *entry, const char *payload, uint32_t flags)
{
    size_t size = strlen(payload);

    assert_int_equal(entry->payload.size, size);
    assert_memory_equal(entry->payload.data, payload, size);
    assert_int_equal(entry->payload_size, size);
    assert_int_equal(entry->flags & (WAL_ENTRY_OUT_OF_LINE | WAL_ENTRY_LINE), flags);
}

void large_check(struct wal_session *session, const char *id, const char *payload, uint32_t flags)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = reading_open(session, WAL_ENTRY_CURSOR_ALL, 0);
    bool met = false;

    assert_done(wal_entry_cursor_get(cursor, kit_text(id), &entry, kit_error()));
    check_entry(&entry, payload, flags);
    while (wal_entry_cursor_next(cursor, &entry, NULL) == WAL_OK) {
        if (kit_slice_is(entry.id, id)) {
            check_entry(&entry, payload, flags);
            met = true;
        }
    }
    assert_true(met);
    wal_entry_cursor_close(cursor);
}

void large_check_location(struct wal_store *store, struct wal_session *session, const char *id,
                          const char *payload, bool out_of_line)
{
    static const uint8_t none[WAL_DIGEST_SIZE] = {0};
    const struct kit_content content = {(uint8_t *)(uintptr_t)payload, strlen(payload)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor =
        reading_open(session, WAL_ENTRY_CURSOR_ALL, WAL_ENTRY_CURSOR_OUT_OF_LINE);

    assert_ok(wal_entry_cursor_get(cursor, kit_text(id), &entry, NULL));
    assert_int_equal((entry.flags & WAL_ENTRY_OUT_OF_LINE) != 0, out_of_line);
    assert_int_equal(entry.payload_size, content.size);
    if (out_of_line) {
        assert_int_equal(entry.payload.size, 0);
        kit_check_blob(store, entry.payload_digest, &content);
    } else {
        assert_slice(entry.payload, payload);
        assert_memory_equal(entry.payload_digest, none, sizeof(none));
    }
    wal_entry_cursor_close(cursor);
}

void large_flip_chunk(void)
{
    /* Within the first chunk. */
    kit_flip("store/pack/0000000000000001.seg", 4096 + 100000);
}
