/*
 * backup_kit.c - see backup_kit.h.
 */
#include "tests/lib/kit/backup_kit.h"

#include <sys/stat.h>

struct wal_store_backup_result kit_backup_result;
struct wal_error kit_backup_error;

enum wal_status kit_try_backup(struct wal_store *store, const char *path)
{
    kit_backup_result = (struct wal_store_backup_result){.struct_size = sizeof(kit_backup_result)};
    kit_backup_error = KIT_ERROR;
    return wal_store_backup(store, path, NULL, &kit_backup_result, &kit_backup_error);
}

void kit_back_up(const char *from, const char *to)
{
    struct wal_store *store = kit_open(from, WAL_OPEN_READ_ONLY);

    if (kit_try_backup(store, to) != WAL_OK) {
        fail_msg("%s: %s (%s)", to, kit_backup_error.text, kit_backup_error.file);
    }
    kit_close(store);
}

void kit_expect_refused(const char *from, const char *to, enum wal_status status, const char *text)
{
    struct wal_store *store = kit_open(from, WAL_OPEN_READ_ONLY);

    assert_int_equal(kit_try_backup(store, to), status);
    assert_error(&kit_backup_error, status, text);
    assert_int_equal(kit_backup_result.bytes, 0);
    kit_close(store);
}

void kit_append_to(const char *path, uint32_t first, uint32_t count, size_t size)
{
    struct wal_store *store = kit_open(path, WAL_OPEN_CREATE);
    struct wal_session *session = NULL;
    char *payload = malloc(size + 16);

    if (wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK) {
        session = kit_create(store, "s");
    }
    assert_non_null(payload);
    memset(payload, 'x', size + 2);
    payload[0] = '"';
    payload[size + 1] = '"';
    payload[size + 2] = '\0';
    for (uint32_t i = first; i < first + count; i++) {
        struct wal_entry entry;
        char id[16];

        (void)snprintf(id, sizeof(id), "e%u", i);
        entry = kit_entry(id, NULL, payload);
        assert_ok(kit_try_append(session, &entry, NULL, NULL));
    }
    free(payload);
    wal_session_close(session);
    kit_close(store);
}

void kit_compact_path(const char *path)
{
    struct wal_store *store = kit_open(path, 0);

    (void)kit_compact(store, 0);
    kit_close(store);
}

void assert_same_store(const char *path, const char *other)
{
    struct wal_store *store = kit_open(path, WAL_OPEN_READ_ONLY);
    struct wal_session *session = kit_session(store, "s");
    char *seen = kit_snapshot(store, session);

    wal_session_close(session);
    kit_close(store);
    store = kit_open(other, WAL_OPEN_READ_ONLY | WAL_OPEN_STRICT);
    session = kit_session(store, "s");
    assert_unchanged(store, session, seen);
    wal_session_close(session);
    kit_close(store);
}

void kit_run(const char *command)
{
    assert_int_equal(system(command), 0);
}
