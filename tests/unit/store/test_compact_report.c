/*
 * test_compact_report.c - tests of what a compaction reports: bytes of each session, refused
 * segments, who else compacts; and of how often it rewrites (agentwal/admin.h, SPEC.md 3.9).
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "agentwal/admin.h"
#include "engine/base/io.h"
#include "tests/lib/kit/parts_kit.h"

enum { SESSIONS_MAX = 8 };

/* What the callbacks were given, and what they do. */
struct seen {
    struct wal_session_space sessions[SESSIONS_MAX];
    char ids[SESSIONS_MAX][32];
    uint32_t count;
    uint32_t refusals;
    char refused_file[512];
    int32_t stop_with;
    uint32_t readers;
    int32_t reader; /* the last one */
    uint64_t reader_bytes;
};

static int32_t see_session(void *ctx, const struct wal_session_space *session)
{
    struct seen *seen = ctx;

    assert_int_equal(session->struct_size, sizeof(*session));
    assert_true(seen->count < SESSIONS_MAX);
    seen->sessions[seen->count] = *session;
    (void)snprintf(seen->ids[seen->count], sizeof(seen->ids[0]), "%.*s",
                   (int)session->session_id.size, (const char *)session->session_id.data);
    seen->count++;
    return seen->stop_with;
}

static void see_refusal(void *ctx, const struct wal_error *refusal)
{
    struct seen *seen = ctx;

    seen->refusals++;
    (void)snprintf(seen->refused_file, sizeof(seen->refused_file), "%s", refusal->file);
}

static void see_reader(void *ctx, int32_t process, uint64_t bytes)
{
    struct seen *seen = ctx;

    seen->readers++;
    seen->reader = process;
    seen->reader_bytes = bytes;
}

static struct wal_store_compact_options options_with(struct seen *seen, uint32_t flags)
{
    struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .flags = flags,
        .rate = UINT64_MAX,
        .refused = see_refusal,
        .session = see_session,
        .reader = see_reader,
        .ctx = seen,
    };

    memset(seen, 0, sizeof(*seen));
    return options;
}

static struct wal_store_compact_result compact(struct wal_store *store, uint32_t flags)
{
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct wal_store_compact_options options;
    struct seen seen;

    options = options_with(&seen, flags);
    assert_ok(wal_store_compact(store, &options, &result, NULL));
    assert_int_equal(seen.refusals, 0);
    return result;
}

/* What a dry run lists. */
static struct seen space(struct wal_store *store)
{
    struct wal_store_compact_options options;
    struct seen seen;

    options = options_with(&seen, WAL_STORE_COMPACT_DRY_RUN);
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    return seen;
}

static struct wal_session_space space_of(struct wal_store *store, const char *id)
{
    struct seen seen = space(store);

    for (uint32_t i = 0; i < seen.count; i++) {
        if (strcmp(seen.ids[i], id) == 0) {
            return seen.sessions[i];
        }
    }
    fail_msg("no session %s", id);
    return seen.sessions[0];
}

static void delete (struct wal_session *session)
{
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
}

/* --- a dry run ---------------------------------------------------------- */

KIT_TEST(dry_run__counts_what_compacting_would_rewrite)
{
    struct wal_store *store = kit_store();
    struct wal_store_compact_result planned;
    struct wal_store_compact_result done;

    (void)kit_create_filled(store, "s", "a b c d");
    planned = compact(store, WAL_STORE_COMPACT_DRY_RUN);
    assert_int_equal(planned.segments, 1);
    assert_int_equal(planned.rewritten, 1);
    assert_true(planned.bytes_after > 0);
    /* Again: nothing has changed. */
    assert_int_equal(compact(store, WAL_STORE_COMPACT_DRY_RUN).rewritten, 1);
    done = compact(store, 0);
    assert_int_equal(done.segments, planned.segments);
    assert_int_equal(done.rewritten, planned.rewritten);
    assert_int_equal(done.bytes_before, planned.bytes_before);
    assert_int_equal(done.kept_records, 5);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_DRY_RUN).rewritten, 0);
}

KIT_TEST(dry_run__of_a_reader)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");

    wal_session_close(session);
    kit_close(store);
    store = kit_open("store", WAL_OPEN_READ_ONLY);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_DRY_RUN).rewritten, 1);
    assert_fails(wal_store_compact(store, NULL, NULL, kit_error()), WAL_EREADONLY,
                 "for reading only");
}

KIT_TEST(dry_run__of_an_empty_store)
{
    struct wal_store *store = kit_store();

    assert_int_equal(compact(store, WAL_STORE_COMPACT_DRY_RUN).segments, 0);
    assert_int_equal(compact(store, 0).rewritten, 0);
    assert_int_equal(space(store).count, 0);
}

KIT_TEST(dry_run__stopped_by_the_callback)
{
    struct wal_store *store = kit_store();
    struct wal_store_compact_options options;
    struct wal_error error = KIT_ERROR;
    struct seen seen;

    wal_session_close(kit_create(store, "a"));
    wal_session_close(kit_create(store, "b"));
    options = options_with(&seen, WAL_STORE_COMPACT_DRY_RUN);
    seen.stop_with = 7;
    assert_int_equal(wal_store_compact(store, &options, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, 7);
    assert_int_equal(seen.count, 1);
}

/* --- bytes of a session ------------------------------------------------- */

KIT_TEST(space__of_forks)
{
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create_filled(store, "s", "a b");
    struct wal_session *f;
    uint64_t all;
    uint64_t to_b;
    uint64_t f_own;

    to_b = space_of(store, "s").own_bytes;
    kit_append_all(s, "c d");
    all = space_of(store, "s").own_bytes;
    assert_int_equal(space_of(store, "s").shared_bytes, 0);
    assert_int_equal(space_of(store, "s").reclaimable_bytes, 0);
    /* f sees a and b, g too, through f. */
    f = kit_fork(s, "b", "f");
    to_b = space_of(store, "f").shared_bytes;
    assert_true(to_b > 0 && to_b < all);
    assert_int_equal(space_of(store, "s").shared_bytes, to_b);
    assert_int_equal(space_of(store, "s").own_bytes, all - to_b);
    kit_append_all(f, "e");
    f_own = space_of(store, "f").own_bytes;
    (void)kit_fork(f, NULL, "g");
    assert_true(space_of(store, "f").own_bytes < f_own);
    assert_int_equal(space_of(store, "f").own_bytes + space_of(store, "f").shared_bytes,
                     f_own + to_b);
    assert_int_equal(space_of(store, "g").shared_bytes, space_of(store, "f").shared_bytes);
    /* Compacted, everything has the same size. */
    (void)compact(store, 0);
    assert_int_equal(space_of(store, "s").shared_bytes, to_b);
    assert_int_equal(space_of(store, "s").own_bytes, all - to_b);
}

KIT_TEST(space__of_deleted_sessions)
{
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create_filled(store, "s", "a b c d");
    struct wal_session *f;
    struct wal_session *g;
    uint64_t all;
    uint64_t to_b;

    all = space_of(store, "s").own_bytes;
    f = kit_fork(s, "b", "f");
    to_b = space_of(store, "f").shared_bytes;
    g = kit_fork(f, NULL, "g");
    /* g sees a and b through the deleted f. */
    delete (f);
    assert_int_equal(space_of(store, "s").shared_bytes, to_b);
    assert_int_equal(space_of(store, "g").shared_bytes, to_b);
    delete (s);
    assert_true((space_of(store, "s").flags & WAL_SESSION_SPACE_DELETED) != 0);
    assert_int_equal(space_of(store, "s").shared_bytes, to_b);
    assert_true(space_of(store, "s").reclaimable_bytes > 0);
    assert_true(space_of(store, "s").reclaimable_bytes < all - to_b);
    /* Now nobody sees them. */
    delete (g);
    assert_int_equal(space_of(store, "s").shared_bytes, 0);
    assert_true(space_of(store, "s").reclaimable_bytes >= to_b);
    (void)compact(store, WAL_STORE_COMPACT_ERASE);
    assert_int_equal(space(store).count, 0);
}

KIT_TEST(space__seen_through_an_entry_of_a_deleted_fork)
{
    struct wal_store *store = kit_store();
    struct wal_session *s = kit_create_filled(store, "s", "a b c");
    struct wal_session *f;
    struct wal_session *g;
    uint64_t to_b;

    f = kit_fork(s, "b", "f");
    to_b = space_of(store, "f").shared_bytes;
    kit_append(f, "e", NULL);
    g = kit_fork(f, "e", "g");
    assert_true(space_of(store, "g").shared_bytes > to_b);
    delete (f);
    assert_int_equal(space_of(store, "s").shared_bytes, to_b);
    assert_true(space_of(store, "g").shared_bytes > to_b);
    delete (g);
    assert_int_equal(space_of(store, "s").shared_bytes, 0);
}

KIT_TEST(space__of_a_redacted_entry)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    const char *payload = "{\"role\":\"user\",\"content\":\"secret\"}";
    struct wal_entry entry = kit_entry("a", NULL, payload);

    assert_ok(kit_try_append(session, &entry, NULL, NULL));
    assert_int_equal(space_of(store, "s").reclaimable_bytes, 0);
    kit_redact(session, "a");
    /* Compaction that does not erase keeps it. */
    assert_int_equal(space_of(store, "s").reclaimable_bytes, 0);
    assert_int_equal(compact(store, 0).erased_records, 0);
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).erased_records, 1);
    assert_int_equal(space_of(store, "s").reclaimable_bytes, 0);
    /* It is erased: there is nothing to do again. */
    assert_int_equal(compact(store, WAL_STORE_COMPACT_ERASE).rewritten, 0);
}

KIT_TEST(space__of_documents_of_the_store)
{
    struct wal_store *store = kit_store();
    struct seen seen;

    (void)kit_put(store, NULL, "key", "[1,2,3]");
    seen = space(store);
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.sessions[0].session_number, 0);
    assert_string_equal(seen.ids[0], "");
    assert_true(seen.sessions[0].own_bytes > 0);
}

/* --- what is rewritten again -------------------------------------------- */

static uint32_t count_segments(void)
{
    DIR *log = opendir("store/log");
    const struct dirent *entry;
    uint32_t count = 0;

    assert_non_null(log);
    while ((entry = readdir(log)) != NULL) {
        count += strstr(entry->d_name, ".seg") != NULL;
    }
    closedir(log);
    return count;
}

KIT_TEST(compact__again_without_changes)
{
    struct wal_store *store = kit_store();
    uint32_t segments;

    (void)kit_create_filled(store, "s", "a b c");
    assert_int_equal(compact(store, 0).rewritten, 1);
    segments = count_segments();
    for (int i = 0; i < 5; i++) {
        assert_int_equal(compact(store, 0).rewritten, 0);
    }
    assert_int_equal(count_segments(), segments);
}

KIT_TEST(compact__many_small_segments_become_few)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    char expected[256] = "";
    uint32_t most = 0;

    for (int i = 0; i < 32; i++) {
        char id[8];

        (void)snprintf(id, sizeof(id), "e%02d", i);
        (void)snprintf(expected + strlen(expected), 8, i > 0 ? " %s" : "%s", id);
        kit_append(session, id, NULL);
        (void)compact(store, 0);
        most = count_segments() > most ? count_segments() : most;
    }
    /* The tail, a preallocated one, and the logarithm of 32. */
    assert_in_range(most, 2, 8);
    assert_branch(session, expected);
    wal_session_close(session);
    kit_close(store);
    store = kit_store();
    session = kit_session(store, "s");
    assert_branch(session, expected);
}

KIT_TEST(compact__neighbours_and_max_bytes)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store_compact_options options;
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct seen seen;

    kit_append(session, "a", NULL);
    (void)compact(store, 0);
    kit_append(session, "b", NULL);
    options = options_with(&seen, WAL_STORE_COMPACT_DRY_RUN);
    assert_ok(wal_store_compact(store, &options, &result, NULL));
    assert_int_equal(result.rewritten, 2);
    /* Room for the first one only, which alone is not worth it. */
    options.max_bytes = 16384;
    assert_ok(wal_store_compact(store, &options, &result, NULL));
    assert_int_equal(result.rewritten, 0);
}

/* --- readers of the old files ------------------------------------------- */

/* Reads the entry, says so, and keeps its slices until then. */
static void read_and_wait(int ends, int says)
{
    struct wal_store *store = kit_open("store", WAL_OPEN_READ_ONLY);
    struct wal_session *session = kit_session(store, "s");
    struct wal_entry_cursor *cursor = NULL;
    struct wal_entry entry = WAL_INIT(wal_entry);
    char byte = 0;

    assert_ok(wal_entry_cursor_open(session, NULL, &cursor, NULL));
    assert_ok(wal_entry_cursor_next(cursor, &entry, NULL));
    assert_int_equal(write(says, "r", 1), 1);
    assert_int_equal(read(ends, &byte, 1), 1);
    _exit(0);
}

KIT_TEST(compact__names_who_has_old_files_mapped)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_store_compact_options options;
    struct seen seen;
    int ends[2];
    int says[2];
    char byte;
    pid_t child;
    int how;

    kit_append(session, "a", NULL);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(says), 0);
    child = kit_start_process();
    if (child == 0) {
        read_and_wait(ends[0], says[1]);
    }
    assert_int_equal(read(says[0], &byte, 1), 1);
    options = options_with(&seen, 0);
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    assert_int_equal(seen.readers, 1);
    assert_int_equal(seen.reader, child);
    assert_true(seen.reader_bytes > 0);
    assert_int_equal(write(ends[1], "t", 1), 1);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    kit_append(session, "b", NULL);
    options = options_with(&seen, 0);
    assert_ok(wal_store_compact(store, &options, NULL, NULL));
    assert_int_equal(seen.readers, 0);
    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < 2; i++) {
        (void)close(ends[i]);
        (void)close(says[i]);
    }
}

/* --- refused segments --------------------------------------------------- */

/* Changes a byte of the first BLOCK of a segment. */
static void damage(const char *path)
{
    int file = open(path, O_RDWR | O_CLOEXEC);
    uint8_t byte;

    assert_true(file >= 0);
    assert_int_equal(pread(file, &byte, 1, 4096 + 512 + 100), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, 4096 + 512 + 100), 1);
    close(file);
}

KIT_TEST(refused__damaged_segment_is_named)
{
    const char *path = "store/log/0000000000000001.seg";
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create(store, "s");
    struct wal_session *other = kit_create(store, "t");
    struct wal_store_compact_options options;
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    struct stat before;
    struct stat after;
    struct seen seen;

    kit_append_all(session, "a b c d e f g h");
    kit_append_all(other, "x y");
    (void)compact(store, 0);
    delete (session);
    kit_append_all(other, "z");
    wal_session_close(other);
    kit_close(store);
    damage(path);
    assert_int_equal(stat(path, &before), 0);
    store = kit_store();
    options = options_with(&seen, WAL_STORE_COMPACT_ERASE);
    assert_ok(wal_store_compact(store, &options, &result, NULL));
    assert_int_equal(seen.refusals, 1);
    assert_non_null(strstr(seen.refused_file, path));
    assert_int_equal(result.refused, 1);
    assert_string_equal(result.refusal.file, seen.refused_file);
    /* It is left as it is, and the other one is rewritten. */
    assert_int_equal(result.rewritten, 1);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
}

/* --- two compactions ---------------------------------------------------- */

static void *compact_in_thread(void *ctx)
{
    static struct wal_error error;

    error = KIT_ERROR;
    (void)!wal_store_compact(ctx, NULL, NULL, &error);
    return &error;
}

static int32_t compact_meanwhile(void *ctx, uint64_t done, uint64_t total)
{
    const struct wal_error *error;
    pthread_t thread;
    void *returned;

    (void)done;
    (void)total;
    assert_int_equal(pthread_create(&thread, NULL, compact_in_thread, ctx), 0);
    assert_int_equal(pthread_join(thread, &returned), 0);
    error = returned;
    return error->status == WAL_ELOCKED ? error->holder : -1;
}

KIT_TEST(locked__by_a_thread_of_this_process)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .progress = compact_meanwhile,
        .ctx = store,
    };
    struct wal_error error = KIT_ERROR;

    assert_int_equal(wal_store_compact(store, &options, NULL, &error), WAL_ECALLBACK);
    assert_int_equal(error.sys_errno, getpid());
    /* The lock is free again, also after being stopped. */
    kit_append(session, "c", NULL);
    assert_int_equal(compact(store, 0).refused, 0);
    assert_branch(session, "a b c");
}

struct pipes {
    int begun[2];
    int ended[2];
    bool has_waited;
};

static int32_t wait_for_parent(void *ctx, uint64_t done, uint64_t total)
{
    struct pipes *pipes = ctx;
    char byte = 1;

    (void)done;
    (void)total;
    if (pipes->has_waited) {
        return 0;
    }
    pipes->has_waited = true;
    if (write(pipes->begun[1], &byte, 1) != 1 || read(pipes->ended[0], &byte, 1) != 1) {
        return 1;
    }
    return 0;
}

static int compact_in_child(struct pipes *pipes)
{
    struct wal_open_options open = {.struct_size = sizeof(open)};
    struct wal_store_compact_options options = {
        .struct_size = sizeof(options),
        .progress = wait_for_parent,
        .ctx = pipes,
    };
    struct wal_store *store = NULL;

    if (wal_open("store", &open, &store, NULL) != WAL_OK ||
        wal_store_compact(store, &options, NULL, NULL) != WAL_OK ||
        wal_close(store, NULL) != WAL_OK) {
        return 1;
    }
    return 0;
}

KIT_TEST(locked__by_another_process)
{
    struct wal_store *store = kit_store();
    struct wal_session *session = kit_create_filled(store, "s", "a b");
    struct wal_error error = KIT_ERROR;
    struct pipes pipes = {.has_waited = false};
    char byte = 1;
    pid_t child;
    int code;

    assert_int_equal(pipe(pipes.begun), 0);
    assert_int_equal(pipe(pipes.ended), 0);
    child = kit_start_process();
    if (child == 0) {
        _exit(compact_in_child(&pipes));
    }
    assert_int_equal(read(pipes.begun[0], &byte, 1), 1);
    assert_int_equal(wal_store_compact(store, NULL, NULL, &error), WAL_ELOCKED);
    assert_int_equal(error.holder, child);
    assert_error(&error, WAL_ELOCKED, "compacts the store");
    /* A dry run needs no lock, and an append does not wait. */
    (void)space(store);
    kit_append(session, "c", NULL);
    assert_int_equal(write(pipes.ended[1], &byte, 1), 1);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_int_equal(code, 0);
    assert_branch(session, "a b c");
    assert_int_equal(compact(store, 0).refused, 0);
    wal_session_close(session);
    kit_close(store);
    for (int i = 0; i < 2; i++) {
        close(pipes.begun[i]);
        close(pipes.ended[i]);
    }
}
