/*
 * test_loop_compact.c - a compaction that is cut short at its Nth call to the system, for every N:
 * the process dies, the call fails once or from then on, the disk is full; then the power goes, or
 * not. What is live is the same, the next compaction goes on, and nothing is left of the one that
 * was cut short.
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "agentwal/blob.h"
#include "engine/session/session.h"
#include "engine/store/blob_store.h"
#include "tests/lib/put_unsynced.h"
#include "tests/lib/rng.h"
#include "tests/lib/store_bytes.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

static const struct sim_fault ways[] = {
    {.call = SIM_ANY, .effect = SIM_KILL_BEFORE},
    {.call = SIM_ANY, .effect = SIM_KILL_AFTER},
    {.call = SIM_PWRITEV, .effect = SIM_KILL_BEFORE, .put = 5000},
    {.call = SIM_ANY, .sys_errno = EIO},
    {.call = SIM_ANY, .sys_errno = EIO, .sticky = true},
    {.call = SIM_ANY, .sys_errno = ENOSPC, .sticky = true},
    {.call = SIM_PWRITEV, .sys_errno = 0, .put = 100},
    {.call = SIM_SYNC, .sys_errno = EIO, .partial = true},
    {.call = SIM_SYNC_DIRECTORY, .sys_errno = EIO},
    {.call = SIM_MAP, .sys_errno = EIO},
};

enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

enum { CONTENT_SIZE = 40000, ROUNDS = 2 };

/* Content that a caller put as a version of content that nothing names. */
struct version {
    uint8_t content[CONTENT_SIZE];
    struct wal__digest digest;
};

static struct version versions[ROUNDS];

/* What a process sees of log and pack. */
struct names {
    uint32_t segments;
    uint32_t unfinished;
};

static enum wal_status count_name(void *arg, const char *name)
{
    struct names *names = arg;

    names->segments += strstr(name, ".seg") != NULL;
    names->unfinished += strstr(name, ".rewrite") != NULL;
    return WAL_OK;
}

static struct names list_segments(struct workload *workload, const char *directory)
{
    struct workload_actor *actor = workload_start(workload, 0);
    const struct wal__io *io = sim_process_io(actor->process);
    struct names names = {0};
    int err = 0;

    assert_ok(io->list(io->ctx, directory, count_name, &names, &err));
    return names;
}

/* Puts content that nothing names, of one chunk and of several, and a version of the former, by
 * it. */
static void put_contents(struct workload *workload, uint32_t round)
{
    struct wal_store *store = workload->actors[0].store;
    struct version *version = &versions[round];
    struct wal__blob_put_result result = {0};
    uint64_t state = workload->options.seed * 100 + round;
    struct wal__span content = {version->content, CONTENT_SIZE};
    struct wal__digest base;
    uint8_t *large = calloc(1, 3 * CONTENT_SIZE * 10);

    assert_non_null(large);
    for (size_t i = 0; i < CONTENT_SIZE; i++) {
        version->content[i] = (uint8_t)rng_next(&state);
    }
    assert_ok(put_unsynced(store, content, NULL, WAL__BLOB_OF_RECORDS, &base, &result, NULL));
    version->content[CONTENT_SIZE / 2] ^= 1;
    assert_ok(
        put_unsynced(store, content, &base, WAL__BLOB_OF_CALLER, &version->digest, &result, NULL));
    memcpy(large, version->content, CONTENT_SIZE);
    content = (struct wal__span){large, 3 * CONTENT_SIZE * 10};
    assert_ok(put_unsynced(store, content, NULL, WAL__BLOB_OF_RECORDS, &base, &result, NULL));
    free(large);
    assert_ok(wal_sync(store, NULL));
    assert_ok(wal__blob_store_sync(&store->core.blobs, result.end, NULL));
}

/* The versions are there, in a store that is open. */
static void check_contents(struct workload *workload)
{
    struct wal_store *store = workload->actors[0].store;

    for (uint32_t i = 0; i < ROUNDS; i++) {
        struct wal_error error = {.struct_size = sizeof(error)};
        uint8_t content[CONTENT_SIZE];
        struct wal_blob *blob = NULL;
        uint64_t got = 0;
        enum wal_status status = wal_blob_open(store, versions[i].digest.bytes, &blob, &error);

        if (status == WAL_OK) {
            status = wal_blob_read(blob, 0, content, sizeof(content), &got, &error);
        }
        if (status != WAL_OK || got != sizeof(content) ||
            memcmp(content, versions[i].content, sizeof(content)) != 0) {
            ledger_fail("content %u answers %d: %s", i, status, error.text);
        }
        wal_blob_close(blob);
    }
}

/* --- deltas ------------------------------------------------------------- */

/* Sessions that the ledger does not know: an answer that is there, and one that is still written; a
 * fork, whose answer is there. */
static const char *const answers[] = {"answers", "answers-fork"};

static struct wal_session *open_answers(struct workload *workload, uint32_t i)
{
    struct wal_session *session = NULL;
    struct wal_error error = {.struct_size = sizeof(error)};

    if (wal_session_open(workload->actors[0].store, ledger_slice(answers[i]), &session, &error) !=
        WAL_OK) {
        ledger_fail("the session %s: %s", answers[i], error.text);
    }
    return session;
}

/* Appends entries under the head; those that begin with d are deltas. */
static void append_answers(struct wal_session *session, const char *const *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct wal_entry entry = {
            .struct_size = sizeof(entry),
            .id = ledger_slice(ids[i]),
            .type =
                ledger_slice(ids[i][0] == 'd' ? WAL_TYPE_MESSAGE_DELTA_BATCH : WAL_TYPE_MESSAGE),
            .timestamp = ledger_slice("2001-01-01T00:00:00Z"),
            .payload = ledger_slice("{\"text\":\"part of an answer\"}")};

        assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    }
}

static void put_answers(struct workload *workload, uint32_t round)
{
    static const char *const first[] = {"q", "d1", "d2", "a", "d3"};
    static const char *const second[] = {"d4"};
    static const char *const of_fork[] = {"d5", "b"};
    struct wal_session_options options = {.struct_size = sizeof(options)};
    struct wal_session *session = NULL;
    struct wal_session *fork = NULL;

    if (round == 0) {
        options.id = ledger_slice(answers[0]);
        assert_ok(wal_session_create(workload->actors[0].store, &options, &session, NULL));
        append_answers(session, first, 5);
        options.id = ledger_slice(answers[1]);
        assert_ok(wal_session_fork(session, ledger_slice("q"), &options, &fork, NULL));
        append_answers(fork, of_fork, 1);
    } else {
        session = open_answers(workload, 0);
        fork = open_answers(workload, 1);
        append_answers(session, second, 1);
        append_answers(fork, of_fork + 1, 1);
    }
    wal_session_close(fork);
    wal_session_close(session);
}

static void expect_answers(struct wal_session *session, uint32_t mode, const char *expected)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options), .mode = mode, .flags = WAL_ENTRY_CURSOR_DELTAS};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry_cursor *cursor = NULL;
    char found[64] = "";
    size_t size = 0;
    enum wal_status status = wal_entry_cursor_open(session, &options, &cursor, &error);

    while (status == WAL_OK) {
        status = wal_entry_cursor_next(cursor, &entry, &error);
        if (status == WAL_OK) {
            size +=
                (size_t)snprintf(found + size, sizeof(found) - size, "%s%.*s", size > 0 ? " " : "",
                                 (int)entry.id.size, (const char *)entry.id.data);
        }
    }
    wal_entry_cursor_close(cursor);
    if (status != WAL_END || strcmp(found, expected) != 0) {
        ledger_fail("answers \"%s\" instead of \"%s\": %d %s", found, expected, status, error.text);
    }
}

/* The same whether a compaction was cut short or not; after one that was not, no delta of an answer
 * that is there is left. */
static void check_answers(struct workload *workload, bool is_compacted)
{
    struct wal_session *session = open_answers(workload, 0);
    struct wal_session *fork = open_answers(workload, 1);

    expect_answers(session, WAL_ENTRY_CURSOR_BRANCH, "q a d3 d4");
    expect_answers(fork, WAL_ENTRY_CURSOR_BRANCH, "q b");
    if (is_compacted) {
        expect_answers(session, WAL_ENTRY_CURSOR_ALL, "q a d3 d4");
        expect_answers(fork, WAL_ENTRY_CURSOR_ALL, "q b");
    }
    wal_session_close(fork);
    wal_session_close(session);
}

/* --- what is erased ------------------------------------------------------- */

/* Of sessions that the ledger does not know: an entry that is redacted after the first compaction;
 * title and payloads of one that is deleted. */
static const char *const canaries[] = {"CANARY-of-an-entry-91c03be2", "CANARY-of-a-title-44aa5d1f",
                                       "CANARY-of-a-payload-9b3e71c0",
                                       "CANARY-of-a-large-one-8c2d13b7"};

enum { CANARIES = sizeof(canaries) / sizeof(canaries[0]), LARGE = 300 * 1024 };

static void append_canary(struct wal_session *session, const char *id, const char *canary,
                          size_t size)
{
    char *payload = malloc(size + 128);
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .id = ledger_slice(id),
                              .type = ledger_slice(WAL_TYPE_MESSAGE)};
    uint64_t state = 1;
    size_t length;

    assert_non_null(payload);
    length = (size_t)snprintf(payload, 128, "{\"text\":\"%s", canary);
    while (length < size) {
        payload[length++] = (char)('a' + rng_next(&state) % 26);
    }
    memcpy(payload + length, "\"}", 3);
    entry.payload = ledger_slice(payload);
    assert_ok(wal_append(session, &entry, 1, NULL, NULL, NULL));
    free(payload);
}

static void put_canaries(struct workload *workload, uint32_t round)
{
    struct wal_store *store = workload->actors[0].store;
    struct wal_session_options options = {.struct_size = sizeof(options),
                                          .id = ledger_slice("redacted")};
    struct wal_session *session = NULL;

    if (round == 0) {
        assert_ok(wal_session_create(store, &options, &session, NULL));
        append_canary(session, "c", canaries[0], 0);
        wal_session_close(session);
        return;
    }
    assert_ok(wal_session_open(store, options.id, &session, NULL));
    assert_ok(wal_session_redact(session, ledger_slice("c"), ledger_slice(""), NULL, NULL));
    wal_session_close(session);
    options.id = ledger_slice("deleted");
    options.title = ledger_slice(canaries[1]);
    assert_ok(wal_session_create(store, &options, &session, NULL));
    append_canary(session, "p", canaries[2], 0);
    append_canary(session, "l", canaries[3], LARGE);
    assert_ok(wal_session_delete(session, NULL));
    wal_session_close(session);
}

/* What processes leave that are killed while they write derived files. */
static void leave_files(struct sim_disk *disk)
{
    static const char *const files[] = {"log/00000000000000ff.seg.new",
                                        "log/0000000000000001.rewrite",
                                        "pack/00000000000000ff.seg.new",
                                        "pack/0000000000000001.rewrite",
                                        "index/0000000000000001.idx.new",
                                        "index/pack-0000000000000001.idx.new",
                                        "index/catalogue.new",
                                        "index/0000000000000001.fts.new-0123456789abcdef"};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[256];

        (void)snprintf(path, sizeof(path), WORKLOAD_ROOT "/%s", files[i]);
        sim_disk_write_file(disk, path, canaries[0], strlen(canaries[0]));
    }
}

/* A directory whose files are searched. */
struct search {
    const struct wal__io *io;
    const char *directory;
    uint32_t found; /* of the canaries */
};

static void search_bytes(void *ctx, const char *file, const uint8_t *bytes, size_t size)
{
    struct search *search = ctx;

    (void)file;
    for (uint32_t i = 0; i < CANARIES; i++) {
        search->found += memmem(bytes, size, canaries[i], strlen(canaries[i])) != NULL;
    }
}

static enum wal_status search_file(void *arg, const char *name)
{
    struct search *search = arg;
    const struct wal__io *io = search->io;
    struct wal__file *file = NULL;
    struct wal__io_stat stat;
    char path[256];
    size_t got = 0;
    uint8_t *bytes;
    int err = 0;

    (void)snprintf(path, sizeof(path), "%s/%s", search->directory, name);
    assert_ok(io->path_stat(io->ctx, path, &stat, &err));
    assert_ok(io->open(io->ctx, path, O_RDONLY, &file, &err));
    bytes = malloc(stat.size + 1);
    assert_non_null(bytes);
    assert_ok(io->pread(io->ctx, file, bytes, stat.size, 0, &got, &err));
    store_bytes_visit(path, bytes, got, search_bytes, search);
    free(bytes);
    io->close(io->ctx, file);
    return WAL_OK;
}

/* How often a file of the store has a canary. */
static uint32_t count_canaries(struct workload *workload)
{
    static const char *const directories[] = {WORKLOAD_ROOT "/log", WORKLOAD_ROOT "/pack",
                                              WORKLOAD_ROOT "/index"};
    struct workload_actor *actor = workload_start(workload, 0);
    struct search search = {.io = sim_process_io(actor->process)};
    int err = 0;

    for (size_t i = 0; i < 3; i++) {
        search.directory = directories[i];
        assert_ok(search.io->list(search.io->ctx, directories[i], search_file, &search, &err));
    }
    return search.found;
}

/* Erases. When a sync lost names, it says that something may be left; also when one failed without
 * a change that it could lose. */
static enum wal_status compact(struct workload *workload, bool is_faulty)
{
    struct wal_store_compact_options options = {.struct_size = sizeof(options),
                                                .flags = WAL_STORE_COMPACT_ERASE};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    bool has_lost = sim_disk_has_lost_names(workload->disk);
    enum wal_status status = wal_store_compact(workload->actors[0].store, &options, &result, NULL);

    if (!is_faulty && (result.refused > 1 ||
                       (result.refused == 1 && strstr(result.refusal.text, "restart") == NULL))) {
        ledger_fail("a segment was refused: %s", result.refusal.text);
    }
    if (!is_faulty && result.refused == 0 && has_lost) {
        ledger_fail("what may come back is not named");
    }
    return status;
}

/* True: the fault struck. */
static bool cut_short(struct workload *copy, const struct sim_fault *fault)
{
    struct workload_actor *actor = &copy->actors[0];
    bool struck;

    assert_ok(workload_open(copy, 0));
    memset(sim_process_counts(actor->process), 0, sizeof(struct sim_counts));
    sim_process_add_fault(actor->process, fault);
    sim_process_on_death(actor->process, sim_jump, &copy->death);
    if (setjmp(copy->death) != 0) {
        workload_kill(copy, 0);
        return true;
    }
    (void)!compact(copy, true);
    sim_process_on_death(actor->process, NULL, NULL);
    struck = sim_process_counts(actor->process)->faults > 0;
    sim_process_clear_faults(actor->process);
    return struck;
}

/* The power goes after a compaction that succeeded. What was erased stays so; where that was in
 * doubt, it does after the next one. */
static void check_stays_erased(const struct workload *compacted)
{
    static const enum sim_persistence landings[] = {SIM_PERSIST_NONE, SIM_PERSIST_BY_CHANGE};
    bool has_lost = sim_disk_has_lost_names(compacted->disk);

    for (size_t i = 0; i < sizeof(landings) / sizeof(landings[0]); i++) {
        struct workload *copy = workload_clone(compacted);
        struct sim_power_loss loss = {.landing = landings[i]};

        workload_crash(copy, &loss, i);
        if (has_lost) {
            assert_ok(workload_open(copy, 0));
            assert_ok(compact(copy, false));
            workload_crash(copy, &loss, i);
        }
        assert_false(sim_disk_has_lost_names(copy->disk));
        if (count_canaries(copy) != 0) {
            ledger_fail("what was erased is back after a loss of power");
        }
        workload_destroy(copy);
    }
}

/* The next compaction goes on; afterwards nothing is left. */
static void finish(struct workload *copy, bool with_loss)
{
    uint64_t bytes;

    assert_ok(workload_open(copy, 0));
    if (compact(copy, false) != WAL_OK) {
        ledger_fail("the next compaction fails");
    }
    if (count_canaries(copy) != 0) {
        ledger_fail("a file has what was erased");
    }
    (void)workload_check(copy, 0);
    check_contents(copy);
    check_answers(copy, true);
    workload_crash(copy, NULL, 0);
    check_stays_erased(copy);
    (void)workload_recover(copy, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    if (list_segments(copy, WORKLOAD_ROOT "/log").unfinished +
            list_segments(copy, WORKLOAD_ROOT "/pack").unfinished !=
        0) {
        ledger_fail("an unfinished file is left");
    }
    /* After a power loss the names are durable; then leftovers can go. */
    if (with_loss) {
        workload_crash(copy, &(struct sim_power_loss){.landing = SIM_PERSIST_ALL}, 1);
        (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KEEP_OPEN);
        bytes = list_segments(copy, WORKLOAD_ROOT "/log").segments;
        {
            struct wal_store_info info = {.struct_size = sizeof(info)};

            assert_ok(wal_store_get_info(copy->actors[0].store, &info, NULL));
            if (bytes > info.segments + 1) {
                ledger_fail("%llu files of segments, and %llu segments", (unsigned long long)bytes,
                            (unsigned long long)info.segments);
            }
        }
        assert_ok(workload_close(copy, 0));
    }
}

static bool fail_nth(const struct workload *base, uint32_t way, uint64_t nth)
{
    struct workload *copy = workload_clone(base);
    struct sim_power_loss loss = {.landing =
                                      (enum sim_persistence)(nth % (uint64_t)SIM_PERSISTENCES),
                                  .garbage = nth % 2 == 0};
    struct sim_fault fault = ways[way];
    bool struck;

    ledger_set_context("seed %llu, way %u, call %llu", (unsigned long long)base->options.seed, way,
                       (unsigned long long)nth);
    /* Each sync of a directory fails with and without a loss of power. */
    fault.after = fault.call == SIM_SYNC_DIRECTORY ? nth / 3 : nth;
    leave_files(copy->disk);
    struck = cut_short(copy, &fault);
    if (struck) {
        if (workload_check(copy, 0)) {
            check_answers(copy, false);
        }
        if (nth % 3 != 0) {
            workload_crash(copy, &loss, nth);
            (void)workload_recover(copy, LEDGER_POWER_LOSS, WORKLOAD_KILL);
        } else {
            workload_crash(copy, NULL, 0);
            (void)workload_recover(copy, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
        }
        finish(copy, nth % 2 == 0);
    }
    workload_destroy(copy);
    return struck;
}

static void run(const struct workload_options *options, uint32_t every)
{
    struct workload *base = workload_create(options);
    uint64_t runs = 0;

    workload_run(base, 40);
    assert_ok(workload_open(base, 0));
    put_contents(base, 0);
    put_answers(base, 0);
    put_canaries(base, 0);
    assert_ok(compact(base, false));
    workload_run(base, 70);
    assert_ok(workload_open(base, 0));
    put_contents(base, 1);
    check_contents(base);
    put_answers(base, 1);
    put_canaries(base, 1);
    check_answers(base, false);
    assert_true(count_canaries(base) >= CANARIES);
    /* All that is there is durable: what a loss takes is known. */
    workload_crash(base, NULL, 0);
    (void)workload_recover(base, LEDGER_NO_LOSS, WORKLOAD_CLOSE);
    for (uint32_t way = 0; way < WAYS; way++) {
        uint32_t stride = workload_stride(ways[way].call, every);
        uint64_t nth = way % stride;

        while (fail_nth(base, way, nth)) {
            nth += stride;
            runs++;
        }
    }
    assert_true(runs > 0);
    print_message("%llu compactions cut short\n", (unsigned long long)runs);
    workload_destroy(base);
}

TEST(loop_compact__at_every_call)
{
    for (uint32_t seed = 91; seed < 91 + workload_count(12, 6); seed++) {
        run(&(struct workload_options){.seed = seed,
                                       .actors = 1,
                                       .large_every = 4,
                                       .huge_every = seed % 2 == 0 ? 10 : 0,
                                       .blobs_every = seed % 2 == 0 ? 4 : 0},
            workload_sample(5));
    }
}

TEST(loop_compact__at_every_call_reading_by_pread)
{
    run(
        &(struct workload_options){
            .seed = 95, .actors = 1, .large_every = 4, .open_flags = WAL_OPEN_PREAD},
        workload_sample(5));
}
