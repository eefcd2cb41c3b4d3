/*
 * copied_store.c - a store on a simulated disk whose copies are counted (copied_store.h).
 */
#include "tests/sim/workload/copied_store.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "engine/session/store.h"
#include "tests/lib/test.h"
#include "tests/sim/ledger/ledger.h"

enum { LARGE = 200 * 1024, BLOB = 300 * 1024 };

const struct sim_fault copied_faults[COPIED_FAULTS] = {
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 5000},
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = ENOSPC, .put = 3000},
    {.call = SIM_SYNC, .sys_errno = EIO, .partial = true},
    {.call = SIM_SYNC_DIRECTORY, .sys_errno = EIO},
};

void copied_note_sync(void *arg, const struct sim_event *event)
{
    struct copied_sync *sync = arg;

    sync->has_failed |= event->call == SIM_SYNC_DIRECTORY && event->sys_errno != 0 &&
                        (strcmp(event->path, sync->path) == 0 || strcmp(event->path, "/") == 0);
}

struct wal_store *copied_open(struct old_process *machine, const char *path, uint32_t flags)
{
    const struct wal_open_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_store *store = NULL;

    old_error = (struct wal_error){.struct_size = sizeof(old_error)};
    if (wal__store_open(path, &options, &machine->heap.heap, sim_process_io(machine->process),
                        &store, &old_error) != WAL_OK) {
        ledger_fail("%s: %s (%s)", path, old_error.text, old_error.file);
    }
    return store;
}

/* The payload of entry i follows from i. */
static struct wal_slice payload_of(int i)
{
    static char patterns[26][BLOB]; /* made once: each run reads all again */
    static char text[BLOB + 64];
    size_t size = i % 11 == 5 ? BLOB : i % 7 == 3 ? LARGE : 20;
    int begin = snprintf(text, sizeof(text), "{\"i\":%d,\"x\":\"", i);
    char *pattern = patterns[i % 26];

    for (size_t at = 0; pattern[BLOB - 1] == 0 && at < BLOB; at++) {
        pattern[at] = (char)('a' + (at * at + at / 7 + (size_t)i) % 26);
    }
    memcpy(text + begin, pattern, size);
    memcpy(text + begin + size, "\"}", 3);
    return old_slice(text);
}

enum wal_status copied_append(struct wal_session *session, int i, uint32_t durability)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = durability};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    char id[16];

    (void)snprintf(id, sizeof(id), "e%d", i);
    entry.id = old_slice(id);
    entry.type = old_slice("message");
    entry.payload = payload_of(i);
    return wal_append(session, &entry, 1, &options, NULL, NULL);
}

struct wal_session *copied_session(struct wal_store *store)
{
    return copied_other_session(store, "s");
}

struct wal_session *copied_other_session(struct wal_store *store, const char *id)
{
    const struct wal_session_options options = {.struct_size = sizeof(options),
                                                .id = old_slice(id)};
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(store, old_slice(id), &session, NULL);

    if (status == WAL_ENOTFOUND) {
        status = wal_session_create(store, &options, &session, NULL);
    }
    assert_ok(status);
    return session;
}

void copied_add(struct sim_disk *disk, int *entries, int count)
{
    struct old_process machine;
    struct wal_session *session;

    old_process_start(&machine, disk);
    machine.store = copied_open(&machine, OLD_ROOT, WAL_OPEN_CREATE);
    session = copied_session(machine.store);
    for (int i = 0; i < count; i++) {
        assert_ok(copied_append(session, *entries, WAL_DURABLE));
        (*entries)++;
    }
    wal_session_close(session);
    old_close(&machine);
    old_process_stop(&machine);
}

static void compact(struct sim_disk *disk, uint32_t flags)
{
    struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = flags, .rate = UINT64_MAX};
    struct old_process machine;

    old_process_start(&machine, disk);
    machine.store = copied_open(&machine, OLD_ROOT, 0);
    assert_ok(wal_store_compact(machine.store, &options, NULL, NULL));
    old_close(&machine);
    old_process_stop(&machine);
}

void copied_compact(struct sim_disk *disk)
{
    compact(disk, 0);
}

void copied_erase(struct sim_disk *disk)
{
    compact(disk, WAL_STORE_COMPACT_ERASE);
}

int copied_count(struct sim_disk *disk, const char *path)
{
    int count = copied_count_other(disk, path, "s");

    return count < 0 ? 0 : count;
}

int copied_count_other(struct sim_disk *disk, const char *path, const char *id)
{
    struct old_process machine;
    int count;

    old_process_start(&machine, disk);
    machine.store = copied_open(&machine, path, WAL_OPEN_STRICT | WAL_OPEN_READ_ONLY);
    count = copied_count_in(machine.store, id);
    old_close(&machine);
    old_process_stop(&machine);
    return count;
}

int copied_count_in(struct wal_store *store, const char *id)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    struct wal_session *session = NULL;
    enum wal_status status;
    int count = -1;

    status = wal_session_open(store, old_slice(id), &session, NULL);
    if (status != WAL_ENOTFOUND) {
        assert_ok(status);
        count = 0;
        status = wal_entry_cursor_open(session, &options, &cursor, NULL);
        while (status == WAL_OK) {
            status = wal_entry_cursor_next(cursor, &entry, &old_error);
            if (status == WAL_OK) {
                struct wal_slice payload = payload_of(count);

                if (entry.payload.size == 0) {
                    /* Out of line. */
                    assert_int_equal(count % 11, 5);
                } else {
                    assert_int_equal(entry.payload.size, payload.size);
                    assert_int_equal(memcmp(entry.payload.data, payload.data, payload.size), 0);
                }
                count++;
            }
        }
        if (status != WAL_END) {
            ledger_fail("entry %d of %s: %s (%s)", count, id, old_error.text, old_error.file);
        }
        wal_entry_cursor_close(cursor);
        wal_session_close(session);
    }
    return count;
}
