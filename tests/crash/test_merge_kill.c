/*
 * test_merge_kill.c - a process that merges a store is killed again and again: what it leaves is a
 * store that opens, and the next merge goes on. In the end both stores answer the same.
 */
#include "tests/lib/kit/describe_kit.h"

#include <signal.h>
#include <sys/wait.h>

#include "agentwal/transfer.h"
#include "format/bytes/assert.h"

enum {
    SESSIONS = 30,
    ENTRIES = 40,
    KILLS = 25,
    DELAY_MAX_US = 12000
};

static void put(struct wal_session *session, const char *text)
{
    char value[32];
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = WAL_STR("notes"), .value = {value, strlen(text) + 2}};

    (void)snprintf(value, sizeof(value), "\"%s\"", text);
    assert_ok(wal_doc_put(NULL, session, &doc, NULL, NULL));
}

static void make_from(void)
{
    struct wal_store *store = kit_open("from", WAL_OPEN_CREATE);
    struct wal_session *source = NULL;

    for (uint32_t i = 0; i < SESSIONS; i++) {
        struct wal_session *session;
        char id[16];

        (void)snprintf(id, sizeof(id), "s%02u", i);
        session = source != NULL && i % 3 == 0 ? kit_fork(source, NULL, id) : kit_create(store, id);
        for (uint32_t k = 0; k < ENTRIES; k++) {
            char entry[16];

            (void)snprintf(entry, sizeof(entry), "e%u.%u", i, k);
            kit_append(session, entry, NULL);
            if (k == ENTRIES / 2) {
                put(session, entry);
            }
        }
        if (source != NULL && i % 6 == 3) {
            assert_ok(wal_session_delete(source, NULL));
        }
        wal_session_close(source);
        source = session;
    }
    wal_session_close(source);
    kit_close(store);
}

static enum wal_status merge(void)
{
    struct wal_open_options options = WAL_INIT(wal_open_options);
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_store *from = NULL;
    struct wal_store *to = NULL;
    enum wal_status status;

    options.flags = WAL_OPEN_READ_ONLY;
    WAL__ASSERT(wal_open("from", &options, &from, NULL) == WAL_OK);
    options.flags = WAL_OPEN_CREATE;
    WAL__ASSERT(wal_open("to", &options, &to, NULL) == WAL_OK);
    status = wal_store_merge(from, to, NULL, &result, NULL);
    WAL__ASSERT(status != WAL_OK || result.refused == 0);
    (void)wal_close(from, NULL);
    (void)wal_close(to, NULL);
    return status;
}

/* Returns whether the process was killed before it was done. */
static bool merge_and_kill(uint64_t delay_us)
{
    pid_t child = kit_start_process();
    int how;

    if (child == 0) {
        _exit(merge() == WAL_OK ? 0 : 1);
    }
    (void)usleep((useconds_t)delay_us);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how) || WEXITSTATUS(how) == 0);
    return WIFSIGNALED(how);
}

KIT_TEST(merge_kill__next_merge_goes_on)
{
    uint64_t seed = kit_seed();
    uint32_t killed = 0;
    struct wal_store *from;
    struct wal_store *to;

    make_from();
    for (uint32_t i = 0; i < KILLS; i++) {
        killed += merge_and_kill(kit_random(&seed) % DELAY_MAX_US);
    }
    assert_ok(merge());
    print_message("%u of %u processes were killed\n", killed, KILLS);
    assert_true(killed > 0);
    from = kit_open("from", 0);
    to = kit_open("to", 0);
    assert_same_stores(from, to);
    kit_close(from);
    kit_close(to);
}
