/*
 * test_erased_cursor.c - cursors that were opened before what they reach was
 * erased, in the process that erases and in another one: they answer as for
 * an entry that is redacted, or a session that is deleted
 * (SPEC.md 5.7).
 */
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "tests/lib/kit/store_kit.h"

enum {
    LARGE = 300 * 1024, /* a blob */
    ANSWER_SIZE = 256
};

/* How the cursor reads, and what it answers once `mid` and `large` are redacted
 * and erased. What another process redacts takes effect with the next block, or
 * where the cursor misses what was erased. */
struct reading {
    uint32_t open_flags;
    uint32_t flags;
    uint64_t last;
    const char *here;
    const char *elsewhere;
};

static const struct reading readings[] = {
    {0, 0, 0, "last end.", "mid last end."},
    {0, WAL_ENTRY_CURSOR_REDACTED, 0, "mid! large! last end.",
     "mid large! last end."},
    {0, WAL_ENTRY_CURSOR_PINNED, 0, "last end.", "mid last end."},
    {0, 0, 4, "last end.", "mid last end."},
    {0, WAL_ENTRY_CURSOR_REDACTED, 4, "mid! large! last end.",
     "mid large! last end."},
    {WAL_OPEN_PREAD, 0, 0, "last end.", "mid last end."},
};

enum {
    READINGS = sizeof(readings) / sizeof(readings[0])
};

/* --- the store ---------------------------------------------------------- */

static void append_large(struct wal_session *session, const char *id)
{
    char *payload = malloc(LARGE + 3);
    struct wal_entry entry;
    uint64_t state = 7;

    assert_non_null(payload);
    payload[0] = '"';
    for (size_t i = 1; i <= LARGE; i++) {
        payload[i] = (char)('a' + kit_random(&state) % 26);
    }
    memcpy(payload + LARGE + 1, "\"", 2);
    entry = kit_entry(id, NULL, payload);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

static void fill(struct wal_session *session)
{
    kit_append_all(session, "begin mid");
    append_large(session, "large");
    kit_append(session, "last", NULL);
}

static void compact(struct wal_store *store,
                    wal_store_compact_progress_fn *progress)
{
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_STORE_COMPACT_ERASE,
        .rate = UINT64_MAX,
        .progress = progress};
    struct wal_error error = KIT_ERROR;

    if (wal_store_compact(store, &options, NULL, &error) != WAL_OK) {
        fail_msg("%s", error.text);
    }
}

static void hide(struct wal_session *session, bool is_deletion)
{
    if (is_deletion) {
        assert_ok(wal_session_delete(session, NULL));
        return;
    }
    assert_ok(
        wal_session_redact(session, kit_text("mid"), kit_text(""), NULL, NULL));
    assert_ok(wal_session_redact(session, kit_text("large"), kit_text(""), NULL,
                                 NULL));
}

/* --- reading ------------------------------------------------------------ */

/* Opens a cursor and reads the first entry; false: that failed. */
static bool begin(struct wal_session *session, const struct reading *reading,
                  struct wal_entry_cursor **cursor)
{
    const struct wal_entry_cursor_options options = {.struct_size =
                                                         sizeof(options),
                                                     .flags = reading->flags,
                                                     .last = reading->last};
    struct wal_entry entry = {.struct_size = sizeof(entry)};

    return wal_entry_cursor_open(session, &options, cursor, NULL) == WAL_OK &&
           wal_entry_cursor_next(*cursor, &entry, NULL) == WAL_OK &&
           kit_slice_is(entry.id, "begin");
}

/* Appends to the answer: ids, "!" with those that are shown as redacted. */
static void add(char *answer, const struct wal_entry *entry)
{
    const size_t size = strlen(answer);

    (void)snprintf(answer + size, ANSWER_SIZE - size, "%.*s%s ",
                   (int)entry->id.size, (const char *)entry->id.data,
                   (entry->flags & WAL_ENTRY_REDACTED) != 0 ? "!" : "");
}

/* What the cursor answers from here on. */
static void read_on(struct wal_entry_cursor *cursor, char *answer)
{
    enum wal_status status = WAL_OK;

    answer[0] = '\0';
    while (status == WAL_OK) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};
        struct wal_error error = KIT_ERROR;

        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK) {
            add(answer, &entry);
        } else if (status == WAL_END) {
            (void)strcat(answer, "end.");
        } else if (status == WAL_ENOTFOUND) {
            (void)strcat(answer, "gone.");
        } else {
            (void)snprintf(answer + strlen(answer),
                           ANSWER_SIZE - strlen(answer), "%.120s", error.text);
        }
    }
}

/* --- in the same process ------------------------------------------------ */

static void read_here(const struct reading *reading, bool is_deletion)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_entry_cursor *cursor = NULL;
    char answer[ANSWER_SIZE];

    fill(session);
    assert_true(begin(session, reading, &cursor));
    hide(session, is_deletion);
    compact(store, NULL);
    read_on(cursor, answer);
    assert_string_equal(answer, is_deletion ? "gone." : reading->here);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(erased_cursor__of_this_process)
{
    for (int i = 0; i < READINGS; i++) {
        if (readings[i].open_flags == 0) {
            read_here(&readings[i], false);
            read_here(&readings[i], true);
        }
    }
}

/* Until a compaction the cursor reads on; then each entry that it has left is
 * not found, and it ends. */
KIT_TEST(erased_cursor__of_a_deleted_session)
{
    for (int i = 0; i < 2 * READINGS; i++) {
        const struct reading *reading = &readings[i / 2];
        const bool is_compacted = i % 2 != 0;
        struct wal_store *store =
            kit_open("store", WAL_OPEN_CREATE | reading->open_flags);
        struct wal_session *session = kit_create(store, "s");
        struct wal_entry_cursor *cursor = NULL;
        enum wal_status status = WAL_OK;
        int counts[2] = {0, 0}; /* read, not found */

        fill(session);
        assert_true(begin(session, reading, &cursor));
        hide(session, true);
        if (is_compacted) {
            compact(store, NULL);
        }
        while (status != WAL_END) {
            struct wal_entry entry = {.struct_size = sizeof(entry)};

            status = wal_entry_cursor_next(cursor, &entry, NULL);
            assert_true(status == WAL_END ||
                        status == (is_compacted ? WAL_ENOTFOUND : WAL_OK));
            counts[is_compacted] += status != WAL_END;
        }
        assert_int_equal(counts[is_compacted], 3);
        wal_entry_cursor_close(cursor);
        wal_session_close(session);
        kit_close(store);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

/* --- in another process ------------------------------------------------- */

/* The reader: returns its exit code. */
static int read_there(const struct reading *reading, bool is_deletion,
                      int ready, int go)
{
    struct wal_session *session = NULL;
    struct wal_entry_cursor *cursor = NULL;
    char answer[ANSWER_SIZE];
    char byte = 'r';
    struct wal_store *store = kit_open("store", reading->open_flags);

    if (wal_session_open(store, kit_text("s"), &session, NULL) != WAL_OK ||
        !begin(session, reading, &cursor) || write(ready, &byte, 1) != 1 ||
        read(go, &byte, 1) != 1) {
        return 2;
    }
    read_on(cursor, answer);
    wal_entry_cursor_close(cursor);
    wal_session_close(session);
    kit_close(store);
    if (strcmp(answer, is_deletion ? "mid gone." : reading->elsewhere) != 0) {
        (void)fprintf(stderr, "open %u, cursor %u, last %u: \"%s\"\n",
                      reading->open_flags, reading->flags,
                      (unsigned)reading->last, answer);
        return 1;
    }
    return 0;
}

static int32_t exit_now(void *ctx, uint64_t done, uint64_t total)
{
    (void)ctx;
    (void)done;
    (void)total;
    _exit(0);
}

/* Hides and erases in this process; first in one that ends when the log is
 * replaced, before it says so, and before the pack is. */
static void erase(bool is_deletion, bool is_cut_short)
{
    struct wal_store *store;
    struct wal_session *session;
    int code = -1;
    pid_t child = is_cut_short ? fork() : 1;

    assert_true(child >= 0);
    if (child == 0 || !is_cut_short) {
        store = kit_store();
        session = kit_session(store, "s");
        hide(session, is_deletion);
        wal_session_close(session);
        compact(store, child == 0 ? exit_now : NULL);
    } else {
        assert_int_equal(waitpid(child, &code, 0), child);
        assert_int_equal(code, 0);
        store = kit_store();
        compact(store, NULL);
    }
    kit_close(store);
}

static void read_elsewhere(const struct reading *reading, bool is_deletion,
                           bool is_cut_short)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    int ready[2];
    int go[2];
    int code = -1;
    char byte;
    pid_t child;

    fill(session);
    wal_session_close(session);
    kit_close(store);
    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(go), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(go[1]);
        _exit(read_there(reading, is_deletion, ready[1], go[0]));
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    erase(is_deletion, is_cut_short);
    assert_int_equal(write(go[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    (void)close(ready[0]);
    (void)close(go[0]);
    (void)close(go[1]);
    assert_int_equal(system("rm -rf store"), 0);
}

KIT_TEST(erased_cursor__of_another_process)
{
    for (int i = 0; i < READINGS; i++) {
        read_elsewhere(&readings[i], false, false);
    }
}

KIT_TEST(erased_cursor__of_a_session_deleted_elsewhere)
{
    for (int i = 0; i < READINGS; i++) {
        read_elsewhere(&readings[i], true, false);
    }
}

KIT_TEST(erased_cursor__after_a_compaction_that_was_cut_short)
{
    for (int i = 0; i < READINGS; i++) {
        read_elsewhere(&readings[i], false, true);
        read_elsewhere(&readings[i], true, true);
    }
}
