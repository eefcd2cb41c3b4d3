/*
 * test_golden - damaged stores, one kind of damage each: what opening one
 * answers, what is still readable, who can still append, that a second
 * recovery changes nothing, what walcheck says, and that a salvage loses the
 * damaged records and nothing else.
 *
 * The stores are tests/golden/NAME.golden; golden_content.h tells what they
 * held before they were damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "engine/base/assert.h"
#include "engine/base/heap.h"
#include "engine/store.h"
#include "tests/golden/golden_content.h"
#include "tests/lib/golden.h"

#define ROOT  "/store"
#define SMALL "a1 a2 a3 a4 a5 b1 b2 b3 b4 b5 g1 g2"
#define LONG  SMALL " L1 L2 L3 L4 L5 a6"
#define OUT   "out"
#define REAL  "store" /* in the file system */

extern char **environ;

struct expected {
    const char *name;
    const char *content;
    enum wal_status open; /* what wal_open answers; if WAL_OK: */
    enum wal_tail tail;
    const char *lost;    /* entries that cannot be read */
    const char *refused; /* sessions that take no append */
    /* What walcheck says. */
    int exit;
    const char *reason;     /* of its first damage; null: there is none */
    const char *sessions;   /* that the damage names */
    const char *unsalvaged; /* entries; null: nothing is made */
};

static const struct expected cases[] = {
    {"intact", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"intact_long", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"intact_unmarked", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"torn_frame_in_tail", SMALL, WAL_OK, WAL_TAIL_TORN, "", "", 0, NULL, "",
     ""},
    {"torn_open", SMALL " L1", WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"flipped_entry_below_watermark", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "a3",
     "alpha gamma", 1, "acknowledged bytes are damaged", "alpha gamma", "a3"},
    {"flipped_header_below_watermark", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "b2",
     "beta", 1, "acknowledged bytes are damaged", "beta", "b2"},
    {"flipped_session_record", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "acknowledged bytes are damaged", "alpha", ""},
    {"flipped_entry_in_unmarked_group", SMALL, WAL_OK, WAL_TAIL_AMBIGUOUS, "g2",
     "", 0, NULL, "", "g2"},
    {"flipped_entry_in_unpromised_group", SMALL, WAL_OK, WAL_TAIL_TORN, "", "",
     0, NULL, "", ""},
    {"flipped_entry_in_sealed_segment", LONG, WAL_OK, WAL_TAIL_CLEAN, "a3", "",
     1, "acknowledged bytes are damaged", "alpha gamma", "a3"},
    {"ambiguous_tail", SMALL, WAL_OK, WAL_TAIL_AMBIGUOUS, "g2", "", 0, NULL, "",
     "g2"},
    {"lost_commit", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "", "", 1,
     "acknowledged bytes are damaged", "", ""},
    {"zeroed_sector", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "b2 a3 b3",
     "alpha beta gamma", 1, "acknowledged bytes are damaged",
     "alpha beta gamma", "b2 a3 b3"},
    {"hole_in_sequence", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "", "", 1,
     "records are missing here", "", ""},
    {"unknown_frame_type", SMALL, WAL_EVERSION, 0, "", "", 3,
     "a frame of a newer format", "", "b4 a5 b5 g1 g2"},
    {"zeroed_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was zeroed", "",
     "L2 L3 L4"},
    {"zeroed_last_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was zeroed", "",
     "L5 a6"},
    {"missing_segment", LONG, WAL_ECORRUPT, 0, "", "", 1,
     "the segment is missing", "", "L2 L3 L4"},
    {"missing_last_segment", LONG, WAL_ECORRUPT, 0, "", "", 1,
     "the segment is missing", "alpha beta", "L5 a6"},
    {"swapped_segments", LONG, WAL_ECORRUPT, 0, "", "", 1, "under another name",
     "", ""},
    {"segment_of_another_store", LONG, WAL_ECORRUPT, 0, "", "", 1,
     "belongs to another store", "", "L2 L3 L4"},
    {"doubled_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "under another name",
     "", ""},
    {"cut_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was cut", "", "L3 L4"},
    {"extended_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was extended", "",
     ""},
    {"damaged_header_copy", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "one copy of the header is damaged", "", ""},
    {"both_headers", LONG, WAL_ECORRUPT, 0, "", "", 1,
     "both copies of the header are damaged", "", ""},
    {"damaged_open", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "acknowledged bytes are damaged", "", ""},
    {"damaged_trailer", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "the trailer is damaged", "", ""},
    {"damaged_seal", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "the SEAL frame is damaged", "", ""},
    {"damaged_index_frame", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "the INDEX frame is damaged", "", ""},
    {"catalogue_flipped", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "a page is damaged", "", ""},
    {"tail_index_flipped", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1, "checksum",
     "", ""},
    {"tail_index_stale", SMALL " a6", WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "from before the log's end", "", ""},
    {"damaged_manifest_slot", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "slot 0 is not valid", "", ""},
    {"both_manifest_slots", SMALL, WAL_ECORRUPT, 0, "", "", 1,
     "neither slot is valid", "", ""},
    {"newer_version", SMALL, WAL_EVERSION, 0, "", "", 3, NULL, "", NULL},
    {"unknown_incompat_bit", SMALL, WAL_EVERSION, 0, "", "", 3, NULL, "", NULL},
};

/* --- lists of words ------------------------------------------------------- */

static bool has_word(const char *words, const char *word)
{
    size_t size = strlen(word);
    const char *at = words;

    while ((at = strstr(at, word)) != NULL) {
        if ((at == words || at[-1] == ' ') &&
            (at[size] == '\0' || at[size] == ' ')) {
            return true;
        }
        at += size;
    }
    return false;
}

static const char *next_word(const char *at, char *word, size_t size)
{
    size_t length = strcspn(at, " ");

    assert_true(length < size);
    memcpy(word, at, length);
    word[length] = '\0';
    return at + length + strspn(at + length, " ");
}

/* --- reading -------------------------------------------------------------- */

static const char *const session_ids[] = {"alpha", "beta", "gamma"};

static struct wal_slice slice_of(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static void expect_text(struct wal_slice slice, const char *text)
{
    assert_int_equal(slice.size, strlen(text));
    assert_memory_equal(slice.data, text, slice.size);
}

/* Checks an entry byte for byte, and adds its id to the list. */
static void take_entry(const struct wal_entry *entry, char *found,
                       const char *session)
{
    char id[16] = "";
    char *payload;

    assert_true(entry->id.size < sizeof(id));
    memcpy(id, entry->id.data, (size_t)entry->id.size);
    if ((strcmp(session, "gamma") == 0 && id[0] == 'a') || id[0] == 'n') {
        return; /* shared, or new */
    }
    payload = golden_payload(id);
    expect_text(entry->payload, payload);
    expect_text(entry->type, "message");
    expect_text(entry->timestamp, GOLDEN_TIME);
    assert_false(has_word(found, id));
    strcat(found, found[0] == '\0' ? "" : " ");
    strcat(found, id);
    free(payload);
}

static void read_session(struct wal_store *store, const char *id, char *found)
{
    const struct wal_iter_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ITER_ALL,
    };
    struct wal_session *session = NULL;
    struct wal_iter *iter = NULL;
    enum wal_status status =
        wal_session_open(store, slice_of(id), &session, NULL);

    if (status != WAL_OK) {
        return;
    }
    assert_int_equal(wal_iter_open(session, &options, &iter, NULL), WAL_OK);
    for (;;) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};

        status = wal_iter_next(iter, &entry, NULL);
        if (status == WAL_END) {
            break;
        }
        assert_true(status == WAL_OK || status == WAL_ECORRUPT);
        if (status == WAL_OK) {
            take_entry(&entry, found, id);
        }
    }
    wal_iter_close(iter);
    wal_session_close(session);
}

/* The entries of the store are those of the content but the lost ones. */
static void expect_content(struct wal_store *store,
                           const struct expected *expected, const char *lost)
{
    const char *at = expected->content;
    char found[512] = "";
    char word[16];

    for (size_t i = 0; i < 3; i++) {
        read_session(store, session_ids[i], found);
    }
    while (*at != '\0') {
        at = next_word(at, word, sizeof(word));
        if (has_word(found, word) == has_word(lost, word)) {
            fail_msg("%s: %s is %s; found are: %s", expected->name, word,
                     has_word(lost, word) ? "there" : "not there", found);
        }
    }
}

/* --- recovery ------------------------------------------------------------- */

static enum wal_status open_sim(struct sim_process *process,
                                struct wal_store **store,
                                struct wal_error *error)
{
    *error = (struct wal_error){.struct_size = sizeof(*error)};
    return wal__store_open(ROOT, NULL, &wal__heap_libc, sim_process_io(process),
                           store, error);
}

static void expect_appends(struct wal_store *store,
                           const struct expected *expected, const char *id)
{
    for (size_t i = 0; i < 3; i++) {
        const struct wal_entry entry = {
            .struct_size = sizeof(entry),
            .id = slice_of(id),
            .type = slice_of("message"),
            .payload = slice_of("{}"),
        };
        bool refused = has_word(expected->refused, session_ids[i]);
        struct wal_session *session = NULL;
        enum wal_status status;

        assert_int_equal(
            wal_session_open(store, slice_of(session_ids[i]), &session, NULL),
            WAL_OK);
        status = wal_append(session, &entry, 1, NULL, NULL, NULL);
        if (status != (refused ? WAL_EDAMAGED : WAL_OK)) {
            fail_msg("%s: an append to %s answers %d", expected->name,
                     session_ids[i], status);
        }
        wal_session_close(session);
    }
}

/* The log of a disk, as one number. */
static uint64_t log_hash(struct sim_disk *disk)
{
    uint64_t hash = 14695981039346656037u;

    for (int id = 1; id <= 4; id++) {
        char path[64];
        uint8_t *bytes;
        size_t size;

        snprintf(path, sizeof(path), ROOT "/log/%016x.seg", (unsigned)id);
        if (!sim_file_exists(disk, path)) {
            continue;
        }
        sim_disk_read_file(disk, path, &bytes, &size);
        for (size_t i = 0; i < size; i++) {
            hash = (hash ^ bytes[i]) * 1099511628211u;
        }
        free(bytes);
    }
    return hash;
}

static void expect_tail(struct wal_store *store,
                        const struct expected *expected)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_int_equal(wal_store_status(store, &info, NULL), WAL_OK);
    if (info.tail != (uint32_t)expected->tail) {
        fail_msg("%s: the tail is %u and not %d", expected->name, info.tail,
                 expected->tail);
    }
}

/* Opens, reads, appends an entry of that id to each session unless it is null,
 * and closes; answers the log's state behind that. */
static uint64_t recover_once(struct sim_disk *disk,
                             const struct expected *expected,
                             const char *append)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = NULL;
    struct wal_error error;
    enum wal_status status = open_sim(process, &store, &error);

    if (status != expected->open) {
        fail_msg("%s: opening answers %d: %s", expected->name, status,
                 error.text);
    }
    if (status == WAL_OK) {
        expect_content(store, expected, expected->lost);
        if (append != NULL) {
            expect_appends(store, expected, append);
        } else {
            expect_tail(store, expected);
        }
        assert_int_equal(wal_close(store, NULL), WAL_OK);
    } else {
        assert_true(error.text[0] != '\0');
    }
    sim_process_destroy(process);
    return log_hash(disk);
}

static struct sim_disk *load(const struct expected *expected)
{
    struct sim_disk *disk = sim_disk_create(7);
    char path[512];

    snprintf(path, sizeof(path), "%s/tests/golden/%s.golden",
             AGENTWAL_SOURCE_DIR, expected->name);
    golden_load(disk, ROOT, path);
    return disk;
}

static void test_golden__recovery(void **state)
{
    const struct expected *expected = *state;
    struct sim_disk *disk = load(expected);
    uint64_t first = recover_once(disk, expected, NULL);

    assert_int_equal(recover_once(disk, expected, NULL), first);
    if (expected->open == WAL_OK) {
        recover_once(disk, expected, "n1");
        /* What was lost stays lost, and nothing else is. */
        recover_once(disk, expected, "n2");
    } else {
        assert_int_equal(recover_once(disk, expected, NULL), first);
    }
    sim_disk_destroy(disk);
}

/* --- walcheck ------------------------------------------------------------- */

/* Runs walcheck; its exit code, its standard output being in `output`. */
static int run(const char *const *arguments)
{
    posix_spawn_file_actions_t actions;
    const char *folder = getenv("WALBIN");
    char *argv[8];
    char path[512];
    int status = -1;
    pid_t child;
    size_t count = 0;

    assert_non_null(folder);
    snprintf(path, sizeof(path), "%s/walcheck", folder);
    argv[count++] = path;
    for (; *arguments != NULL; arguments++) {
        argv[count++] = (char *)(uintptr_t)*arguments;
    }
    argv[count] = NULL;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "output",
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "errors",
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(posix_spawn(&child, path, &actions, NULL, argv, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_sessions(const struct expected *expected,
                            const json_t *damage)
{
    const json_t *named = json_object_get(damage, "sessions");
    const char *at = expected->sessions;
    size_t count = 0;
    char word[16];

    while (*at != '\0') {
        bool found = false;

        at = next_word(at, word, sizeof(word));
        for (size_t i = 0; i < json_array_size(named); i++) {
            found = found || strcmp(json_string_value(json_array_get(named, i)),
                                    word) == 0;
        }
        if (!found) {
            fail_msg("%s: the damage does not name %s", expected->name, word);
        }
        count++;
    }
    assert_int_equal(json_array_size(named), count);
}

static void expect_report(const struct expected *expected)
{
    json_error_t error;
    json_t *report = json_load_file("output", 0, &error);
    const json_t *damage;
    const char *reason;

    assert_non_null(report);
    damage = json_array_get(json_object_get(report, "damage"), 0);
    assert_int_equal(json_is_true(json_object_get(report, "sound")),
                     damage == NULL);
    assert_int_equal(json_is_true(json_object_get(report, "tailAmbiguous")),
                     expected->open == WAL_OK &&
                         expected->tail == WAL_TAIL_AMBIGUOUS);
    if (expected->reason != NULL) {
        reason = json_string_value(json_object_get(damage, "reason"));
        if (reason == NULL || strstr(reason, expected->reason) == NULL) {
            fail_msg("%s: the damage is: %s", expected->name,
                     reason == NULL ? "none" : reason);
        }
        expect_sessions(expected, damage);
    }
    json_decref(report);
}

static void expect_salvaged(const struct expected *expected)
{
    const char *const arguments[] = {"--salvage", OUT, REAL, NULL};
    const char *const again[] = {"--json", OUT, NULL};
    struct wal_store *store = NULL;
    int code = run(arguments);

    if (expected->unsalvaged == NULL) {
        assert_int_equal(code, 3);
        assert_int_not_equal(access(OUT, F_OK), 0);
        return;
    }
    assert_in_range(code, 0, 1);
    assert_int_equal(wal_open(OUT, NULL, &store, NULL), WAL_OK);
    expect_content(store, expected, expected->unsalvaged);
    assert_int_equal(wal_close(store, NULL), WAL_OK);
    assert_int_equal(run(again), 0);
}

static void remove_files(void)
{
    assert_int_equal(system("rm -rf " REAL " " OUT), 0);
}

static void test_golden__walcheck(void **state)
{
    const struct expected *expected = *state;
    const char *const arguments[] = {"--json", REAL, NULL};
    const char *const strict[] = {"--strict", REAL, NULL};
    struct sim_disk *disk = load(expected);
    bool ambiguous =
        expected->open == WAL_OK && expected->tail == WAL_TAIL_AMBIGUOUS;
    int code;

    remove_files();
    assert_true(sim_disk_dump(disk, ROOT, REAL));
    sim_disk_destroy(disk);
    code = run(arguments);
    if (code != expected->exit) {
        fail_msg("%s: walcheck ends with %d", expected->name, code);
    }
    if (expected->exit != 3 || expected->reason != NULL) {
        expect_report(expected);
    }
    assert_int_equal(run(strict), ambiguous ? 1 : expected->exit);
    expect_salvaged(expected);
}

enum {
    CASES = sizeof(cases) / sizeof(cases[0]),
    NAME_SIZE = 128
};

int main(void)
{
    static char names[2 * CASES][NAME_SIZE];
    struct CMUnitTest tests[2 * CASES];

    for (size_t i = 0; i < CASES; i++) {
        snprintf(names[2 * i], NAME_SIZE, "test_golden__%s_is_recovered",
                 cases[i].name);
        snprintf(names[2 * i + 1], NAME_SIZE, "test_golden__%s_is_checked",
                 cases[i].name);
        tests[2 * i] = (struct CMUnitTest){
            .name = names[2 * i],
            .test_func = test_golden__recovery,
            .initial_state = (void *)(uintptr_t)&cases[i],
        };
        tests[2 * i + 1] = (struct CMUnitTest){
            .name = names[2 * i + 1],
            .test_func = test_golden__walcheck,
            .initial_state = (void *)(uintptr_t)&cases[i],
        };
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
