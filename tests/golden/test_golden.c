/*
 * test_golden.c - damaged stores, one kind of damage each: what opening one answers, what is still
 * readable, who can still append, that a second recovery changes nothing, what walcheck says, and
 * that a salvage loses the damaged records and nothing else.
 *
 * The stores are tests/golden/NAME.golden; golden_content.h lists what
 * they held before they were damaged.
 */
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/heap.h"
#include "engine/session/store.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "tests/golden/golden_content.h"
#include "tests/lib/golden.h"
#include "tests/lib/test.h"

#define ROOT  "/store"
#define FIRST "a1 a2 a3 a4 a5 b1 b2 b3 b4 b5 g1 g2"
/* Entries; versions of documents; and what else holds (read_facts). */
#define ZETA  "z1 zr zd notes1 notes2 gone1 gone- kept hidden first"
#define MORE  ZETA " d1 e1 deleted config1"
#define SMALL FIRST " " MORE
#define LONG  SMALL " L1 L2 L3 L4 L5 a6"
#define OUT   "out"
#define REAL  "store" /* in the file system */

extern char **environ;

struct expected {
    const char *name;
    const char *content;
    enum wal_status open; /* what wal_open answers; if WAL_OK: */
    enum wal_tail tail;
    const char *lost;    /* of the content; cannot be read */
    const char *refused; /* sessions that take no append */
    /* What walcheck says. */
    int exit;
    const char *reason;     /* of its first damage, or note; null: none */
    const char *sessions;   /* that the damage names */
    const char *unsalvaged; /* content; null: nothing is made */
};

static const struct expected cases[] = {
    {"intact", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"intact_long", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"index_version_2", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"intact_unmarked", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"healed", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"trashed", SMALL " t1 h1 trashed", WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"torn_frame_in_tail", SMALL, WAL_OK, WAL_TAIL_TORN, "", "", 0, NULL, "", ""},
    {"torn_open", SMALL " L1", WAL_OK, WAL_TAIL_CLEAN, "", "", 0, NULL, "", ""},
    {"flipped_entry_below_watermark", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "a3", "alpha gamma", 1,
     "acknowledged bytes are damaged", "alpha gamma", "a3"},
    {"flipped_header_below_watermark", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "b2", "beta", 1,
     "acknowledged bytes are damaged", "beta", "b2"},
    {"flipped_session_record", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "acknowledged bytes are damaged", "alpha", ""},
    {"flipped_document", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "notes2", "zeta", 1,
     "acknowledged bytes are damaged", "zeta", "notes2"},
    {"flipped_store_document", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "config1", "", 1,
     "acknowledged bytes are damaged", "#store", "config1"},
    {"flipped_redact", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "hidden", "zeta", 1,
     "acknowledged bytes are damaged", "zeta", ""},
    {"flipped_tombstone", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "deleted", "delta", 1,
     "acknowledged bytes are damaged", "delta", "deleted"},
    {"flipped_tombstone_with_index", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "acknowledged bytes are damaged", "delta", ""},
    {"flipped_entry_in_unmarked_group", SMALL, WAL_OK, WAL_TAIL_AMBIGUOUS, "g2", "", 0, NULL, "",
     "g2"},
    {"flipped_entry_in_unpromised_group", SMALL, WAL_OK, WAL_TAIL_TORN, "", "", 0, NULL, "", ""},
    {"flipped_entry_in_sealed_segment", LONG, WAL_OK, WAL_TAIL_CLEAN, "a3", "", 1,
     "acknowledged bytes are damaged", "alpha gamma", "a3"},
    {"ambiguous_tail", SMALL, WAL_OK, WAL_TAIL_AMBIGUOUS, "g2", "", 0, NULL, "", "g2"},
    {"lost_commit", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "", "", 1, "acknowledged bytes are damaged",
     "", ""},
    {"zeroed_sector", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "b2 a3 b3", "alpha beta gamma", 1,
     "acknowledged bytes are damaged", "alpha beta gamma", "b2 a3 b3"},
    {"hole_in_sequence", SMALL, WAL_OK, WAL_TAIL_DAMAGED, "", "", 1, "records are missing here", "",
     ""},
    {"unknown_frame_type", SMALL, WAL_EVERSION, 0, "", "", 3, "a frame of a newer format", "",
     "b4 a5 b5 g1 g2 " ZETA " d1 e1 config1"},
    {"zeroed_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was zeroed", "", "L2 L3 L4"},
    {"zeroed_last_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was zeroed", "", "L5 a6"},
    {"missing_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "the segment is missing", "", "L2 L3 L4"},
    {"missing_last_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "the segment is missing",
     "alpha beta", "L5 a6"},
    {"swapped_segments", LONG, WAL_ECORRUPT, 0, "", "", 1, "under another name", "", ""},
    {"segment_of_another_store", LONG, WAL_ECORRUPT, 0, "", "", 1, "belongs to another store", "",
     "L2 L3 L4"},
    {"doubled_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "under another name", "", ""},
    {"cut_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was truncated", "", "L3 L4"},
    {"extended_segment", LONG, WAL_ECORRUPT, 0, "", "", 1, "was extended", "", ""},
    {"damaged_header_copy", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "one copy of the header is damaged", "", ""},
    {"both_headers", LONG, WAL_ECORRUPT, 0, "", "", 1, "both copies of the header are damaged", "",
     ""},
    {"damaged_open", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 1, "acknowledged bytes are damaged", "",
     ""},
    {"damaged_trailer", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, "the trailer is damaged", "", ""},
    {"damaged_seal", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, "the SEAL frame is damaged", "", ""},
    {"damaged_index_frame", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, "the INDEX frame is damaged",
     "", ""},
    {"catalogue_flipped", LONG, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, "a page is damaged", "", ""},
    {"tail_index_flipped", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 0, "checksum", "", ""},
    {"tail_index_stale", SMALL " a6", WAL_OK, WAL_TAIL_CLEAN, "", "", 0,
     "the index ends before the log", "", ""},
    {"damaged_manifest_slot", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1, "slot 0 is not valid", "",
     ""},
    {"both_manifest_slots", SMALL, WAL_ECORRUPT, 0, "", "", 1, "neither slot is valid", "", ""},
    {"newer_version", SMALL, WAL_EVERSION, 0, "", "", 3, NULL, "", NULL},
    {"unknown_incompat_bit", SMALL, WAL_EVERSION, 0, "", "", 3, NULL, "", NULL},
};

/* Well-formed records with invalid contents: no writer makes them, and this test does not prescribe
 * how the engine shows them. */
static const struct expected broken[] = {
    {"wrong_document_version", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "does not name its previous version", "zeta", ""},
    {"wrong_redact_target", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "names a target that does not exist", "zeta", ""},
    {"wrong_fork_source", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "names a source that does not exist", "gamma", ""},
    {"taken_session_id", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "names a session that has another number or id", "#6", "g1 g2"},
    {"entry_of_deleted_session", SMALL, WAL_OK, WAL_TAIL_CLEAN, "", "", 1,
     "belongs to a session that is deleted", "delta", "e1"},
};

static const struct expected version_0 = {
    .name = "version_0",
    .content = FIRST,
    .refused = "",
};

/* --- lists of words ------------------------------------------------------- */

static bool has_word(const char *words, const char *word)
{
    size_t size = strlen(word);
    const char *at = words;

    while ((at = strstr(at, word)) != NULL) {
        if ((at == words || at[-1] == ' ') && (at[size] == '\0' || at[size] == ' ')) {
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

static const char *const session_ids[] = {"alpha",   "beta",  "gamma", "zeta",
                                          "epsilon", "delta", "eta",   "theta"};

enum { SESSIONS = sizeof(session_ids) / sizeof(session_ids[0]) };

static struct wal_slice slice_of(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static void expect_text(struct wal_slice slice, const char *text)
{
    assert_int_equal(slice.size, strlen(text));
    assert_memory_equal(slice.data, text, slice.size);
}

static void add_word(char *found, const char *word)
{
    assert_false(has_word(found, word));
    strcat(found, found[0] == '\0' ? "" : " ");
    strcat(found, word);
}

/* Checks an entry byte for byte, and adds its id to the list. */
static void take_entry(const struct wal_entry *entry, char *found, const char *session)
{
    char id[16] = "";
    char *payload;

    assert_true(entry->id.size < sizeof(id));
    memcpy(id, entry->id.data, (size_t)entry->id.size);
    if ((strcmp(session, "gamma") == 0 && id[0] == 'a') || id[0] == 'n' ||
        strcmp(session, "delta") == 0 || strcmp(id, "z2") == 0) {
        return; /* shared, new, or to be hidden */
    }
    payload = golden_payload(id);
    expect_text(entry->payload, payload);
    expect_text(entry->type, golden_type(id));
    expect_text(entry->timestamp, GOLDEN_TIME);
    add_word(found, id);
    free(payload);
}

static void read_entries(struct wal_session *session, const char *id, char *found)
{
    const struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = WAL_ENTRY_CURSOR_DELTAS,
    };
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;

    assert_ok(wal_entry_cursor_open(session, &options, &cursor, NULL));
    for (;;) {
        struct wal_entry entry = {.struct_size = sizeof(entry)};

        status = wal_entry_cursor_next(cursor, &entry, NULL);
        if (status == WAL_END) {
            break;
        }
        assert_true(status == WAL_OK || status == WAL_ECORRUPT);
        if (status == WAL_OK) {
            take_entry(&entry, found, id);
        }
    }
    wal_entry_cursor_close(cursor);
}

/* The versions of the session's documents, or with null of the store's. */
static void read_documents(struct wal_store *store, struct wal_session *session, char *found)
{
    const struct wal_doc_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_DOC_CURSOR_HISTORY,
    };
    struct wal_doc_cursor *docs = NULL;
    char word[32];

    assert_ok(wal_doc_cursor_open(store, session, &options, &docs, NULL));
    for (;;) {
        struct wal_doc doc = {.struct_size = sizeof(doc)};
        enum wal_status status = wal_doc_cursor_next(docs, &doc, NULL);

        if (status == WAL_END) {
            break;
        }
        assert_true(status == WAL_OK || status == WAL_ECORRUPT);
        if (status == WAL_OK) {
            const char *value = doc.value.data;
            char mark = (doc.flags & WAL_DOC_DELETE) != 0 ? '-' : value[5];

            snprintf(word, sizeof(word), "%.*s%c", (int)doc.key.size, (const char *)doc.key.data,
                     mark);
            add_word(found, word);
        }
    }
    wal_doc_cursor_close(docs);
}

/* The facts about zeta that are neither entries nor documents. */
static void read_facts(struct wal_session *zeta, char *found)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    char head[256] = "";

    if (wal_head_get(zeta, 0, slice_of("kept"), head, NULL) == WAL_OK && strcmp(head, "z1") == 0) {
        add_word(found, "kept");
    }
    assert_ok(wal_entry_cursor_open(zeta, NULL, &cursor, NULL));
    if (wal_entry_cursor_get(cursor, slice_of("z2"), &entry, NULL) == WAL_EREDACTED) {
        add_word(found, "hidden");
    }
    wal_entry_cursor_close(cursor);
    assert_ok(wal_session_get_info(zeta, &info, NULL));
    if (info.first_text.size == strlen(GOLDEN_FIRST)) {
        expect_text(info.first_text, GOLDEN_FIRST);
        add_word(found, "first");
    }
}

static void read_session(struct wal_store *store, const char *id, char *found)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(store, slice_of(id), &session, NULL);

    if (status != WAL_OK) {
        if (strcmp(id, "delta") == 0) {
            add_word(found, "deleted");
        }
        if (status == WAL_ETRASHED) {
            add_word(found, "trashed");
        }
        return;
    }
    read_entries(session, id, found);
    read_documents(store, session, found);
    if (strcmp(id, "zeta") == 0) {
        read_facts(session, found);
    }
    wal_session_close(session);
}

/* The store has the content except the lost parts. */
static void expect_content(struct wal_store *store, const struct expected *expected,
                           const char *lost)
{
    const char *at = expected->content;
    char found[512] = "";
    char word[16];

    for (size_t i = 0; i < SESSIONS; i++) {
        read_session(store, session_ids[i], found);
    }
    read_documents(store, NULL, found);
    while (*at != '\0') {
        at = next_word(at, word, sizeof(word));
        if (has_word(found, word) == has_word(lost, word)) {
            fail_msg("%s: %s is %s; found are: %s", expected->name, word,
                     has_word(lost, word) ? "there" : "not there", found);
        }
    }
}

/* --- recovery ------------------------------------------------------------- */

static enum wal_status open_sim(struct sim_process *process, struct wal_store **store,
                                struct wal_error *error)
{
    *error = (struct wal_error){.struct_size = sizeof(*error)};
    return wal__store_open(ROOT, NULL, &wal__heap_libc, sim_process_io(process), store, error);
}

/* What opening a session answers that is deleted, in the trash, or was never there; else WAL_OK. */
static enum wal_status missing_status(const struct expected *expected, const char *id)
{
    if (strcmp(id, "eta") == 0 && has_word(expected->content, "trashed")) {
        return WAL_ETRASHED;
    }
    return strcmp(id, "delta") == 0 || strcmp(id, "eta") == 0 ||
                   (strcmp(id, "theta") == 0 && !has_word(expected->content, "h1")) ||
                   expected == &version_0
               ? WAL_ENOTFOUND
               : WAL_OK;
}

static void expect_appends(struct wal_store *store, const struct expected *expected, const char *id)
{
    for (size_t i = 0; i < SESSIONS; i++) {
        const struct wal_entry entry = {
            .struct_size = sizeof(entry),
            .id = slice_of(id),
            .type = slice_of("message"),
            .payload = slice_of("{}"),
        };
        bool refused = has_word(expected->refused, session_ids[i]);
        struct wal_session *session = NULL;
        enum wal_status status;

        status = wal_session_open(store, slice_of(session_ids[i]), &session, NULL);
        if (!refused && status != WAL_OK && status == missing_status(expected, session_ids[i])) {
            continue;
        }
        assert_ok(status);
        status = wal_append(session, &entry, 1, NULL, NULL, NULL);
        if (status != (refused ? WAL_EDAMAGED : WAL_OK)) {
            fail_msg("%s: an append to %s answers %d", expected->name, session_ids[i], status);
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

/* A golden store has no control page, so recovery heals what it keeps of a torn or damaged tail:
 * the next one finds none. */
static void expect_tail(struct wal_store *store, const struct expected *expected)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    if ((expected->tail == WAL_TAIL_TORN || expected->tail == WAL_TAIL_DAMAGED) &&
        info.tail == WAL_TAIL_CLEAN) {
        assert_int_equal(info.segments, 2);
        return;
    }
    if (info.tail != (uint32_t)expected->tail) {
        fail_msg("%s: the tail is %u and not %d", expected->name, info.tail, expected->tail);
    }
}

/* Opens, reads, appends an entry with id `append` to each session unless it is NULL, and closes;
 * returns the log's state after that. */
static uint64_t recover_once(struct sim_disk *disk, const struct expected *expected,
                             const char *append)
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_store *store = NULL;
    struct wal_error error;
    enum wal_status status = open_sim(process, &store, &error);

    if (status != expected->open) {
        fail_msg("%s: opening answers %d: %s", expected->name, status, error.text);
    }
    if (status == WAL_OK) {
        expect_content(store, expected, expected->lost);
        if (append != NULL) {
            expect_appends(store, expected, append);
        } else {
            expect_tail(store, expected);
        }
        assert_ok(wal_close(store, NULL));
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

    snprintf(path, sizeof(path), "%s/tests/golden/%s.golden", AGENTWAL_SOURCE_DIR, expected->name);
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
        /* The lost content remains lost, and nothing else is lost. */
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
    assert_int_equal(posix_spawn(&child, path, &actions, NULL, argv, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void expect_sessions(const struct expected *expected, const json_t *damage)
{
    const json_t *named = json_object_get(damage, "sessions");
    const char *at = expected->sessions;
    size_t count = 0;
    char word[16];

    while (*at != '\0') {
        bool found = false;

        at = next_word(at, word, sizeof(word));
        for (size_t i = 0; i < json_array_size(named); i++) {
            found = found || strcmp(json_string_value(json_array_get(named, i)), word) == 0;
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
    assert_int_equal(json_is_true(json_object_get(report, "sound")), damage == NULL);
    if (damage == NULL) {
        damage = json_array_get(json_object_get(report, "notes"), 0);
        assert_int_equal(damage == NULL, expected->reason == NULL);
    }
    assert_int_equal(json_is_true(json_object_get(report, "tailAmbiguous")),
                     expected->open == WAL_OK && expected->tail == WAL_TAIL_AMBIGUOUS);
    if (expected->reason != NULL) {
        reason = json_string_value(json_object_get(damage, "reason"));
        if (reason == NULL || strstr(reason, expected->reason) == NULL) {
            fail_msg("%s: the damage is: %s", expected->name, reason == NULL ? "none" : reason);
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
    assert_ok(wal_open(OUT, NULL, &store, NULL));
    expect_content(store, expected, expected->unsalvaged);
    assert_ok(wal_close(store, NULL));
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
    bool ambiguous = expected->open == WAL_OK && expected->tail == WAL_TAIL_AMBIGUOUS;
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

static void dump(const char *name)
{
    const struct expected expected = {.name = name};
    struct sim_disk *disk = load(&expected);

    remove_files();
    assert_true(sim_disk_dump(disk, ROOT, REAL));
    sim_disk_destroy(disk);
}

/* --- the trash ------------------------------------------------------------ */

/* The session comes back as it was, from the store and from a salvage. */
TEST(golden__trashed_session_is_undeleted)
{
    const char *const arguments[] = {"--salvage", OUT, REAL, NULL};
    const char *const paths[] = {REAL, OUT};

    dump("trashed");
    assert_int_equal(run(arguments), 0);
    for (size_t i = 0; i < 2; i++) {
        struct wal_session *session = NULL;
        struct wal_store *store = NULL;
        char found[64] = "";

        assert_ok(wal_open(paths[i], NULL, &store, NULL));
        assert_ok(wal_session_undelete(store, slice_of("eta"), NULL));
        assert_ok(wal_session_open(store, slice_of("eta"), &session, NULL));
        read_entries(session, "eta", found);
        assert_string_equal(found, "t1 t2");
        wal_session_close(session);
        assert_ok(wal_close(store, NULL));
    }
}

/* --- format version 0 ----------------------------------------------------- */

static uint32_t version_of(struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_store_get_info(store, &info, NULL));
    return info.format_version;
}

TEST(golden__version_0_is_read_and_refuses_appends)
{
    const struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .id = slice_of("n1"),
        .type = slice_of("message"),
        .payload = slice_of("{}"),
    };
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    const char *const arguments[] = {"--json", REAL, NULL};
    json_t *report;

    dump("version_0");
    assert_ok(wal_open(REAL, NULL, &store, NULL));
    assert_int_equal(version_of(store), 0);
    expect_content(store, &version_0, "");
    assert_ok(wal_session_open(store, slice_of("alpha"), &session, NULL));
    assert_int_equal(wal_append(session, &entry, 1, NULL, NULL, NULL), WAL_EVERSION);
    wal_session_close(session);
    assert_ok(wal_close(store, NULL));
    assert_int_equal(run(arguments), 0);
    report = json_load_file("output", 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(report, "formatVersion")), 0);
    json_decref(report);
}

/* Contents, titles and times are those that version 0 had. */
static void expect_migrated(const char *path)
{
    struct wal_store *store = NULL;
    struct wal_session *session = NULL;
    struct wal_session_info info = {.struct_size = sizeof(info)};

    assert_ok(wal_open(path, NULL, &store, NULL));
    assert_int_equal(version_of(store), 1);
    expect_content(store, &version_0, "");
    assert_ok(wal_session_open(store, slice_of("alpha"), &session, NULL));
    assert_ok(wal_session_get_info(session, &info, NULL));
    expect_text(info.title, "alpha");
    assert_true(info.created_ms % 1000 == 0 && info.created_ms > 0);
    wal_session_close(session);
    expect_appends(store, &version_0, "n1");
    assert_ok(wal_close(store, NULL));
}

TEST(golden__version_0_is_migrated)
{
    struct wal_migrate_result result = {.struct_size = sizeof(result)};
    const char *const arguments[] = {REAL, NULL};

    dump("version_0");
    assert_ok(wal_store_migrate(REAL, NULL, &result, NULL));
    assert_int_equal(result.from, 0);
    assert_int_equal(result.to, 1);
    assert_int_equal(result.sessions, 3);
    expect_migrated(REAL);
    assert_int_equal(run(arguments), 0);
    assert_ok(wal_store_migrate(REAL, NULL, &result, NULL));
    assert_int_equal(result.from, 1);
}

/* Whether a file of the store has the text as it is. */
static bool is_in_log(const char *text)
{
    char command[128];

    (void)snprintf(command, sizeof(command), "grep -rqaF '%s' " REAL, text);
    return system(command) == 0;
}

/* Its first segment has records of version 0. */
TEST(golden__version_0_is_erased_once_migrated)
{
    static const char *const canaries[] = {"{\"id\":\"a5\",", "{\"id\":\"b1\",", "{\"id\":\"b5\","};
    const struct wal_store_compact_options options = {
        .struct_size = sizeof(options), .flags = WAL_STORE_COMPACT_ERASE, .rate = UINT64_MAX};
    struct wal_store_compact_result result = {.struct_size = sizeof(result)};
    const char *const arguments[] = {REAL, NULL};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *alpha = NULL;
    struct wal_session *beta = NULL;
    struct wal_store *store = NULL;

    dump("version_0");
    assert_ok(wal_store_migrate(REAL, NULL, NULL, NULL));
    for (size_t i = 0; i < sizeof(canaries) / sizeof(canaries[0]); i++) {
        assert_true(is_in_log(canaries[i]));
    }
    assert_ok(wal_open(REAL, NULL, &store, NULL));
    assert_ok(wal_session_open(store, slice_of("alpha"), &alpha, NULL));
    assert_ok(wal_session_open(store, slice_of("beta"), &beta, NULL));
    assert_ok(wal_session_redact(alpha, slice_of("a5"), slice_of(""), NULL, NULL));
    assert_ok(wal_session_delete(beta, NULL));
    assert_ok(wal_store_compact(store, &options, &result, NULL));
    assert_int_equal(result.refused, 0);
    assert_int_equal(result.rewritten, result.segments);
    assert_ok(wal_session_get_info(alpha, &info, NULL));
    expect_text(info.title, "alpha");
    assert_true(info.created_ms % 1000 == 0 && info.created_ms > 0);
    wal_session_close(alpha);
    wal_session_close(beta);
    assert_ok(wal_close(store, NULL));
    for (size_t i = 0; i < sizeof(canaries) / sizeof(canaries[0]); i++) {
        assert_false(is_in_log(canaries[i]));
    }
    assert_int_equal(run(arguments), 0);
}

TEST(golden__version_0_is_salvaged)
{
    const char *const arguments[] = {"--salvage", OUT, REAL, NULL};

    dump("version_0");
    assert_int_equal(run(arguments), 0);
    expect_migrated(OUT);
}

/* --- index version 2 ------------------------------------------------------ */

enum { SESSIONS_MAX = 8 };

/* A session in a list. */
struct listed {
    uint32_t number;
    int64_t created_ms;
    int64_t updated_ms;
};

static size_t list(struct sim_disk *disk, struct listed out[SESSIONS_MAX])
{
    struct sim_process *process = sim_process_create(disk);
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *cursor = NULL;
    struct wal_store *store = NULL;
    struct wal_error error;
    size_t count = 0;

    assert_ok(open_sim(process, &store, &error));
    assert_ok(wal_session_cursor_open(store, NULL, &cursor, NULL));
    while (wal_session_cursor_next(cursor, &info, NULL) == WAL_OK) {
        assert_true(count < SESSIONS_MAX);
        out[count++] = (struct listed){info.number, info.created_ms, info.updated_ms};
    }
    wal_session_cursor_close(cursor);
    assert_ok(wal_close(store, NULL));
    sim_process_destroy(process);
    return count;
}

static uint32_t version_of_index(struct sim_disk *disk, const char *name)
{
    char path[64];
    uint8_t *bytes;
    uint32_t version;
    size_t size;

    snprintf(path, sizeof(path), ROOT "/index/%s", name);
    sim_disk_read_file(disk, path, &bytes, &size);
    version = wal__get32(bytes + 8);
    free(bytes);
    return version;
}

/* The catalogue of version 2, raised without new times: its version and the checksum of its
 * header. */
static void forge_catalogue(struct sim_disk *disk)
{
    uint8_t *bytes;
    size_t size;

    sim_disk_read_file(disk, ROOT "/index/catalogue", &bytes, &size);
    assert_int_equal(wal__get32(bytes + 8), 2);
    wal__put32(bytes + 8, WAL__CATALOGUE_VERSION);
    wal__put32(bytes + 124, wal__crc32(0, bytes, 124));
    sim_disk_write_file(disk, ROOT "/index/catalogue", bytes, size);
    free(bytes);
}

/* Times and order come from the log, where version 2 has others; the indexes are of the present
 * version then. */
TEST(golden__index_version_2_is_rebuilt)
{
    const struct expected expected = {.name = "index_version_2"};
    const struct expected current = {.name = "intact_long"};
    struct sim_disk *disk = load(&expected);
    struct sim_disk *other = load(&current);
    struct sim_disk *forged = load(&expected);
    struct listed found[SESSIONS_MAX] = {{0}};
    struct listed wanted[SESSIONS_MAX] = {{0}};
    size_t count = list(other, wanted);

    assert_int_equal(version_of_index(disk, "0000000000000003.idx"), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(list(disk, found), count);
        assert_memory_equal(found, wanted, sizeof(found));
    }
    /* The first process to close it ends the tail, which is mostly unused. */
    assert_int_equal(version_of_index(disk, "0000000000000004.idx"), 4);
    assert_int_equal(version_of_index(disk, "0000000000000001.idx"), 4);
    assert_int_equal(version_of_index(disk, "catalogue"), 4);
    forge_catalogue(forged);
    assert_int_equal(list(forged, found), count);
    assert_int_equal(found[0].updated_ms, GOLDEN_INDEX_2_TIME);
    sim_disk_destroy(forged);
    sim_disk_destroy(other);
    sim_disk_destroy(disk);
}

/* walcheck knows the times of the log, too. */
TEST(golden__times_that_the_log_lacks_are_damage)
{
    const struct expected expected = {
        .name = "index_version_2",
        .reason = "the update time of session 1 differs from the log",
        .sessions = "",
    };
    const char *const arguments[] = {"--json", REAL, NULL};
    struct sim_disk *disk = load(&expected);

    forge_catalogue(disk);
    remove_files();
    assert_true(sim_disk_dump(disk, ROOT, REAL));
    sim_disk_destroy(disk);
    assert_int_equal(run(arguments), 1);
    expect_report(&expected);
}

static void remove_file(struct sim_disk *disk, const char *path)
{
    struct sim_process *process = sim_process_create(disk);
    const struct wal__io *io = sim_process_io(process);
    int err = 0;

    assert_ok(io->unlink(io->ctx, path, &err));
    assert_ok(io->sync_directory(io->ctx, ROOT "/log", &err));
    assert_ok(io->sync_directory(io->ctx, ROOT "/index", &err));
    sim_process_destroy(process);
}

/* The index of the tail segment, and then the catalogue alone, name it. */
TEST(golden__index_version_2_proves_a_missing_segment)
{
    const struct expected expected = {.name = "index_version_2"};
    struct sim_disk *disk = load(&expected);
    struct wal_store *store = NULL;
    struct wal_error error;

    remove_file(disk, ROOT "/log/0000000000000003.seg");
    for (int i = 0; i < 2; i++) {
        struct sim_process *process = sim_process_create(disk);

        assert_int_equal(open_sim(process, &store, &error), WAL_ECORRUPT);
        assert_non_null(strstr(error.text, "0000000000000003"));
        sim_process_destroy(process);
        if (i == 0) {
            remove_file(disk, ROOT "/index/0000000000000003.idx");
        }
    }
    sim_disk_destroy(disk);
}

enum {
    CASES = sizeof(cases) / sizeof(cases[0]),
    BROKEN = sizeof(broken) / sizeof(broken[0]),
    TESTS = 2 * CASES + BROKEN,
    NAME_SIZE = 128
};

static struct CMUnitTest test_of(const struct expected *expected, const char *what,
                                 CMUnitTestFunction function, char name[NAME_SIZE])
{
    snprintf(name, NAME_SIZE, "test_golden__%s_is_%s", expected->name, what);
    return (struct CMUnitTest){
        .name = name,
        .test_func = function,
        .initial_state = (void *)(uintptr_t)expected,
    };
}

/* Each store, as the tests of a separate group. */
static int run_stores(void)
{
    static char names[TESTS][NAME_SIZE];
    struct CMUnitTest tests[TESTS];
    size_t count = 0;

    for (size_t i = 0; i < CASES; i++) {
        tests[count] = test_of(&cases[i], "recovered", test_golden__recovery, names[count]);
        count++;
        tests[count] = test_of(&cases[i], "checked", test_golden__walcheck, names[count]);
        count++;
    }
    for (size_t i = 0; i < BROKEN; i++) {
        tests[count] = test_of(&broken[i], "checked", test_golden__walcheck, names[count]);
        count++;
    }
    return cmocka_run_group_tests_name("stores", tests, NULL, NULL);
}

TEST_FILE(NULL, NULL, run_stores);
