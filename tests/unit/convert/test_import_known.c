/*
 * test_import_known.c - files that an import knows without reading them (SPEC.md 5.19): which ones,
 * with the same answer as if they were read, and what makes it read them again.
 *
 * This program defines flock, which an import calls for a file before it reads it, and
 * clock_gettime, so that files are as old as a test needs.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <zstd.h>

#include "agentwal/admin.h"
#include "agentwal/import.h"
#include "convert/import/import_tree.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/parts_kit.h"

#define ID      "11111111-2222-4333-8444-555555555551"
#define FOLDER  "home/.claude/projects/-srv-app"
#define FILE_OF FOLDER "/" ID ".jsonl"
#define AGENT   FOLDER "/" ID "/subagents/agent-a1"
#define SECOND  INT64_C(1000000000)

enum { LINES = 3, TEXT_SIZE = 4096 };

static struct {
    int64_t now_ns; /* of the clock; 0: as it is */
    unsigned reads; /* files that were locked */
} fake;

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int flock(int fd, int operation)
{
    fake.reads++;
    return (int)syscall(SYS_flock, fd, operation);
}

/* NOLINTNEXTLINE(readability-inconsistent-declaration-parameter-name) */
int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock == CLOCK_REALTIME && fake.now_ns != 0) {
        *time = (struct timespec){.tv_sec = fake.now_ns / SECOND,
                                  .tv_nsec = (long)(fake.now_ns % SECOND)};
        return 0;
    }
    return (int)syscall(SYS_clock_gettime, clock, time);
}

/* Sets the clock to the time after which a file's stamp is kept. */
static void settle(const char *path)
{
    struct stat stat;

    assert_int_equal(lstat(path, &stat), 0);
    fake.now_ns = (stat.st_ctim.tv_sec + 2) * SECOND + stat.st_ctim.tv_nsec;
}

static int set_up(void **state)
{
    fake.now_ns = 0;
    return kit_set_up(state);
}

static int tear_down(void **state)
{
    fake.now_ns = 0;
    return kit_tear_down(state);
}

#define KNOWN_TEST(name) TEST_WITH(name, set_up, tear_down)

/* --- files ---------------------------------------------------------------- */

static void write_text(const char *path, const char *text, const char *mode)
{
    char folder[256];
    FILE *file;

    for (const char *at = path; (at = strchr(at, '/')) != NULL; at++) {
        snprintf(folder, sizeof(folder), "%.*s", (int)(at - path), path);
        assert_true(mkdir(folder, 0700) == 0 || errno == EEXIST);
    }
    file = fopen(path, mode);
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* Lines of Claude Code with a word in each. */
static const char *rows(const char *word, unsigned first, unsigned last)
{
    static char text[TEXT_SIZE];
    size_t used = 0;

    for (unsigned i = first; i <= last; i++) {
        used += (size_t)snprintf(
            text + used, sizeof(text) - used,
            "{\"parentUuid\":null,\"isSidechain\":%s,\"type\":\"user\",\"cwd\":\"/srv/app\","
            "\"sessionId\":\"" ID "\",\"message\":{\"role\":\"user\",\"content\":\"%s %u\"},"
            "\"uuid\":\"%u\",\"timestamp\":\"2026-02-03T09:00:0%u.000Z\"}\n",
            strcmp(word, "agent") == 0 ? "true" : "false", word, i, i, i % 10);
    }
    return text;
}

/* --- imports -------------------------------------------------------------- */

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    char *text = ctx;
    size_t used = strlen(text);

    snprintf(text + used, TEXT_SIZE - used,
             "%d %s %.*s lines %" PRIu64 " new %" PRIu64 " known %" PRIu64 " bytes %" PRIu64
             " issues %u flags %u status %d\n",
             report->kind, (const char *)report->path.data, (int)report->dialect.size,
             report->dialect.size > 0 ? (const char *)report->dialect.data : "", report->lines,
             report->appended, report->duplicates, report->bytes, (unsigned)report->issue_count,
             (unsigned)report->flags, report->status);
    return 0;
}

/* Imports a path; what was reported, until the next call but one. fake.reads: files it read. */
static const char *answer(struct wal_store *store, const char *path, const char *dialect)
{
    static char texts[2][TEXT_SIZE];
    static unsigned turn;
    char *text = texts[turn++ % 2];
    const struct wal_slice paths[] = {kit_text(path)};
    const struct wal_import_options options = {.struct_size = sizeof(options),
                                               .dialect = kit_text(dialect),
                                               .report = on_report,
                                               .ctx = text};
    struct wal_import_result result = {.struct_size = sizeof(result)};
    struct wal_error error = KIT_ERROR;
    size_t used;

    text[0] = '\0';
    fake.reads = 0;
    if (wal_import_tree(store, paths, 1, &options, &result, &error) != WAL_OK) {
        fail_msg("%s: %s", path, error.text);
    }
    used = strlen(text);
    snprintf(text + used, TEXT_SIZE - used,
             "sources %" PRIu64 " sessions %" PRIu64 " new %" PRIu64 " known %" PRIu64
             " bytes %" PRIu64 " failed %" PRIu64 " left %" PRIu64 "\n",
             result.sources, result.sessions, result.appended, result.duplicates, result.bytes,
             result.failed, result.left_out[WAL_IMPORT_OTHERS]);
    return text;
}

static void assert_reads(struct wal_store *store, const char *path, unsigned reads)
{
    (void)answer(store, path, NULL);
    assert_int_equal(fake.reads, reads);
}

/* The answer is the one that a read of all files gives. */
static void assert_true_answer(struct wal_store *store, const char *path, const char *file)
{
    struct stat stat;
    const char *one = answer(store, path, NULL);
    const char *other;

    assert_int_equal(lstat(file, &stat), 0);
    assert_int_equal(chmod(file, stat.st_mode ^ S_IRGRP), 0); /* another ctime */
    other = answer(store, path, NULL);
    assert_true(fake.reads > 0);
    assert_string_equal(one, other);
}

/* A store with the session of FILE_OF, which is known. */
static struct wal_store *known_store(void)
{
    struct wal_store *store = kit_store();

    write_text(FILE_OF, rows("word", 1, LINES), "we");
    settle(FILE_OF);
    assert_reads(store, "home", 1);
    assert_reads(store, "home", 0);
    return store;
}

/* --- what is known -------------------------------------------------------- */

KNOWN_TEST(known__files_of_each_kind)
{
    static const char *const files[] = {FILE_OF, AGENT ".jsonl", "plain/a.jsonl"};
    struct wal_store *store = kit_store();
    char packed[TEXT_SIZE];
    size_t size;
    FILE *file;

    write_text(FILE_OF, rows("word", 1, LINES), "we");
    write_text(AGENT ".jsonl", rows("agent", 1, 2), "we");
    write_text(AGENT ".meta.json", "{\"agentType\":\"x\",\"toolUseId\":\"t\"}", "we");
    write_text("plain/a.jsonl", rows("plain", 1, 2), "we");
    write_text("home/.claude/projects/-p/b.jsonl.zst", "", "we");
    size = ZSTD_compress(packed, sizeof(packed), rows("packed", 1, 2), strlen(rows("packed", 1, 2)),
                         1);
    assert_false(ZSTD_isError(size));
    file = fopen("home/.claude/projects/-p/b.jsonl.zst", "we");
    assert_non_null(file);
    assert_int_equal(fwrite(packed, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
    settle("home/.claude/projects/-p/b.jsonl.zst");
    assert_reads(store, ".", 5); /* the compressed one, and its content */
    for (unsigned i = 0; i < 3; i++) {
        /* A file in no client's folder is locked for its first lines, which say what it is. */
        assert_reads(store, ".", 1);
        assert_true_answer(store, ".", files[i]);
        settle(files[i]);
        (void)answer(store, ".", NULL);
    }
    assert_reads(store, "home", 0);
    assert_true_answer(store, "home", "home/.claude/projects/-p/b.jsonl.zst");
    kit_close(store);
}

KNOWN_TEST(known__not_before_its_times_are_two_seconds_ago)
{
    struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 0}};
    struct wal_store *store = kit_store();

    write_text(FILE_OF, rows("word", 1, LINES), "we");
    settle(FILE_OF);
    fake.now_ns--;
    assert_reads(store, "home", 1);
    assert_reads(store, "home", 1);
    fake.now_ns++;
    assert_reads(store, "home", 1);
    assert_reads(store, "home", 0);
    /* A time to come is one that a later change can have. */
    times[1].tv_sec = fake.now_ns / SECOND + 3600;
    assert_int_equal(utimensat(AT_FDCWD, FILE_OF, times, 0), 0);
    settle(FILE_OF);
    assert_reads(store, "home", 1);
    assert_reads(store, "home", 1);
    kit_close(store);
}

/* Files with something to report, and those whose end is not there yet. */
KNOWN_TEST(known__not_with_anything_to_report)
{
    static const char *const ends[] = {"{\"type\":\"user\"", "no JSON\n", "{\"type\":\"user\"}x\n"};

    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        struct wal_store *store = kit_store();

        write_text(FILE_OF, rows("word", 1, LINES), "we");
        write_text(FILE_OF, ends[i], "ae");
        settle(FILE_OF);
        assert_reads(store, "home", 1);
        assert_reads(store, "home", 1);
        assert_true_answer(store, "home", FILE_OF);
        kit_close(store);
        assert_int_equal(system("rm -rf store home"), 0);
    }
}

/* Of two files with the same content the one that changed last is known; neither import writes. */
KNOWN_TEST(known__the_newer_of_two_files)
{
    struct wal_store *store = kit_store();
    uint64_t end;

    write_text(FILE_OF, rows("word", 1, LINES), "we");
    settle(FILE_OF);
    assert_reads(store, "home", 1);
    assert_int_equal(system("sleep 0.02; cp -a home copy"), 0);
    settle("copy/.claude/projects/-srv-app/" ID ".jsonl");
    assert_reads(store, "copy", 1);
    end = kit_store_info(store).last_sequence;
    assert_reads(store, "home", 1);
    assert_reads(store, "copy", 0);
    assert_int_equal(kit_store_info(store).last_sequence, end);
    kit_close(store);
}

/* A session of another dialect than the file is detected to have is not taken for it. */
KNOWN_TEST(known__in_its_dialect)
{
    struct wal_store *store = kit_store();

    write_text("plain/a.jsonl", rows("plain", 1, 2), "we");
    settle("plain/a.jsonl");
    (void)answer(store, "plain", "lines");
    (void)answer(store, "plain", "lines");
    assert_int_equal(fake.reads, 0);
    assert_true_answer(store, "plain", "plain/a.jsonl");
    kit_close(store);
}

/* --- what changes the session --------------------------------------------- */

static void append_entry(struct wal_store *store, struct wal_session *session)
{
    (void)store;
    kit_append(session, "native", NULL);
}

static void redact(struct wal_store *store, struct wal_session *session)
{
    (void)store;
    kit_redact(session, "2");
}

static void redact_and_erase(struct wal_store *store, struct wal_session *session)
{
    kit_redact(session, "2");
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
}

static void put_document(struct wal_store *store, struct wal_session *session)
{
    (void)kit_put(store, session, "key", "1");
}

static void move_head(struct wal_store *store, struct wal_session *session)
{
    (void)store;
    kit_move_head(session, "main", "1");
}

static void change(struct wal_session *session, uint32_t fields, const char *title,
                   const char *metadata)
{
    const struct wal_session_change change = {.struct_size = sizeof(change),
                                              .fields = fields,
                                              .title = kit_text(title),
                                              .metadata = kit_text(metadata)};
    const struct wal_batch batch = {.struct_size = sizeof(batch), .change = &change};

    assert_ok(wal_batch_commit(session, &batch, NULL, NULL, NULL));
}

static void set_metadata(struct wal_store *store, struct wal_session *session)
{
    (void)store;
    change(session, WAL_CHANGE_METADATA, NULL, "{\"pinned\":true}");
}

/* As where a merge or a salvage has not found all entries: the stamp is the newest record. */
static void lose_an_entry(struct wal_store *store, struct wal_session *session)
{
    struct wal_slice metadata = kit_info(session).metadata;
    char text[TEXT_SIZE];
    char *at;

    (void)store;
    snprintf(text, sizeof(text), "%.*s", (int)metadata.size, (const char *)metadata.data);
    at = strstr(text, " 3\"");
    assert_non_null(at);
    at[1] = '4';
    change(session, WAL_CHANGE_METADATA, NULL, text);
}

static void put_in_trash(struct wal_store *store, struct wal_session *session)
{
    (void)store;
    assert_ok(wal_session_trash(session, NULL));
}

static const struct {
    void (*make)(struct wal_store *store, struct wal_session *session);
    unsigned reads_after; /* by the import after the one that reads the file again */
} changes[] = {
    {append_entry, 0}, {redact, 0},       {redact_and_erase, 0}, {put_document, 1},
    {move_head, 1},    {set_metadata, 1}, {lose_an_entry, 0},    {put_in_trash, 1},
};

KNOWN_TEST(known__not_after_a_change_of_the_session)
{
    for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        struct wal_store *store = known_store();
        struct wal_session *session = kit_session(store, ID);

        changes[i].make(store, session);
        wal_session_close(session);
        assert_reads(store, "home", 1);
        assert_reads(store, "home", changes[i].reads_after);
        assert_true_answer(store, "home", FILE_OF);
        kit_close(store);
        assert_int_equal(system("rm -rf store home"), 0);
    }
}

/* A deleted session comes back whole, as it does without a stamp; a fork changes nothing. */
KNOWN_TEST(known__not_after_a_deletion)
{
    struct wal_store *store = known_store();
    struct wal_session *session = kit_session(store, ID);

    wal_session_close(kit_fork(session, "2", "fork"));
    assert_reads(store, "home", 0);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
    (void)kit_compact(store, WAL_STORE_COMPACT_ERASE);
    assert_non_null(strstr(answer(store, "home", NULL), "sessions 1 new 3 known 0"));
    kit_close(store);
}

/* --- what changes the file ------------------------------------------------ */

static void grow(void)
{
    write_text(FILE_OF, rows("word", LINES + 1, LINES + 1), "ae");
}

static void shorten(void)
{
    write_text(FILE_OF, rows("word", 1, 2), "we");
}

/* Sets a file's time of change, which a client may, to that of FILE_OF. */
static void copy_time(const struct stat *old, const char *path)
{
    const struct timespec times[] = {old->st_atim, old->st_mtim};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void rewrite_in_place(void)
{
    struct stat old;

    assert_int_equal(lstat(FILE_OF, &old), 0);
    write_text(FILE_OF, rows("WORD", 1, LINES), "re+");
    copy_time(&old, FILE_OF);
}

static void replace(void)
{
    struct stat old;

    assert_int_equal(lstat(FILE_OF, &old), 0);
    write_text("other", rows("WORD", 1, LINES), "we");
    copy_time(&old, "other");
    assert_int_equal(rename("other", FILE_OF), 0);
}

KNOWN_TEST(known__not_after_a_change_of_the_file)
{
    static const struct {
        void (*make)(void);
        const char *answer;
    } edits[] = {
        {grow, "sessions 1 new 1 known 3"},
        {shorten, "sessions 1 new 0 known 2"},
        {rewrite_in_place, "sessions 1 new 3 known 0"},
        {replace, "sessions 1 new 3 known 0"},
    };

    for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
        struct wal_store *store = known_store();

        kit_pause_ms(20); /* by which the clock of the file system has gone on */
        edits[i].make();
        assert_non_null(strstr(answer(store, "home", NULL), edits[i].answer));
        assert_true_answer(store, "home", FILE_OF);
        kit_close(store);
        assert_int_equal(system("rm -rf store home"), 0);
    }
}

/* The file next to a transcript is read: what it says now is what the session has. */
KNOWN_TEST(known__not_with_another_sidecar)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    write_text(AGENT ".jsonl", rows("agent", 1, 2), "we");
    write_text(AGENT ".meta.json", "{\"agentType\":\"x\",\"toolUseId\":\"t\"}", "we");
    settle(AGENT ".jsonl");
    assert_reads(store, "home", 1);
    assert_reads(store, "home", 0);
    write_text(AGENT ".meta.json", "{\"agentType\":\"y\",\"toolUseId\":\"t\"}", "we");
    assert_reads(store, "home", 1);
    assert_reads(store, "home", 0);
    session = kit_session(store, ID "~agent-a1");
    assert_non_null(memmem(kit_info(session).metadata.data, (size_t)kit_info(session).metadata.size,
                           "\"y\"", 3));
    wal_session_close(session);
    write_text(AGENT ".meta.json", "[]", "we"); /* which is left out, and counted */
    assert_true_answer(store, "home", AGENT ".jsonl");
    assert_int_equal(unlink(AGENT ".meta.json"), 0);
    settle(AGENT ".jsonl");
    assert_true_answer(store, "home", AGENT ".jsonl");
    kit_close(store);
}

/* The pieces of a file that is no JSON stay redacted, each alone and all of them. */
KNOWN_TEST(known__redacted_pieces)
{
    static char text[5 << 20];
    struct wal_store *store = kit_store();
    struct wal_session *session;

    for (size_t i = 0; i + 1 < sizeof(text); i++) {
        text[i] = i % 64 == 63 ? '\n' : 'x';
    }
    write_text("notes.txt", text, "we");
    (void)answer(store, "notes.txt", "lines");
    session = kit_session(store, "notes");
    for (unsigned i = 2; i > 0; i--) {
        kit_redact(session, i == 2 ? "piece-2" : "piece-1");
        assert_non_null(strstr(answer(store, "notes.txt", "lines"), "sessions 1 new 0 "));
    }
    wal_session_close(session);
    kit_close(store);
}

/* --- faults --------------------------------------------------------------- */

/* Whatever of the log is there after a loss of its end: an import completes the session, or fails
 * where what was durable is lost. */
KNOWN_TEST(known__not_after_a_loss_of_the_end_of_the_log)
{
    static const char segment[] = "store/log/0000000000000001.seg";
    struct wal_store *store = known_store();
    size_t size = 0;
    size_t end;
    unsigned whole = 0;
    bool is_whole;
    char *bytes;

    kit_close(store);
    bytes = test_file(segment, &size);
    end = size;
    while (end > 0 && bytes[end - 1] == '\0') {
        end--;
    }
    for (size_t cut = end - end % 8; cut > 4096; cut -= 8) {
        memset(bytes + cut, 0, size - cut);
        kit_write_file(segment, bytes, size);
        kit_remove_indexes();
        store = kit_store();
        (void)answer(store, "home", NULL);
        is_whole = strstr(answer(store, "home", NULL), "sessions 1 new 0 known 3") != NULL;
        assert_true(is_whole || strstr(answer(store, "home", NULL), "failed 1") != NULL);
        assert_true_answer(store, "home", FILE_OF);
        whole += is_whole ? 1 : 0;
        kit_close(store);
    }
    assert_true(whole > 10);
}

KNOWN_TEST(known__every_allocation)
{
    const struct wal_slice paths[] = {kit_text("home")};
    struct wal_store *store = known_store();
    enum wal_status status = WAL_ENOMEM;
    struct faulty_heap heap;

    for (uint64_t nth = 1; status != WAL_OK; nth++) {
        struct wal_import_result result = {.struct_size = sizeof(result)};
        struct wal_error error = KIT_ERROR;

        faulty_heap_init(&heap, &wal__heap_libc);
        faulty_heap_fail(&heap, nth, false);
        status =
            wal__tree_run(store, paths, 1, WAL__TREE_IMPORT, NULL, &heap.heap, &result, &error);
        assert_int_equal(heap.live, 0);
        assert_true(status == WAL_OK || status == WAL_ENOMEM);
        assert_int_equal(status == WAL_OK, heap.failures == 0);
    }
    kit_close(store);
}
