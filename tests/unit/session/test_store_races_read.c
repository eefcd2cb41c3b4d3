/*
 * test_store_races_read.c - tests of readers while many threads write: forks and scans see the
 * documents of one moment, pages of a list return nothing twice, and handles are opened and closed.
 */
#include "tests/lib/stress/stress.h"

#include <inttypes.h>
#include <stdatomic.h>

#include "format/bytes/assert.h"

enum {
    PAIRS = 250,
    STILL = 17,
    MOVING = 17,
    PAGE = 4,
    MOVES = 300,
    KEYS = 12,
    VERSIONS = 100,
    VISITS = 12
};

struct scene {
    struct wal_store *store;
    struct wal_session *session;
    _Atomic uint64_t began; /* the newest whose append began */
    _Atomic uint64_t made;  /* the newest that was acknowledged */
    _Atomic uint64_t looks;
};

static void begin(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    scene->store = kit_store();
    scene->session = kit_create(scene->store, "s");
}

static void end(struct scene *scene)
{
    wal_session_close(scene->session);
    kit_close(scene->store);
}

/* ------------------------------------------------------------- forks --- */

static void put_pairs(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;

    for (uint64_t i = 0; i < PAIRS; i++) {
        atomic_store(&scene->began, i + 1);
        stress_write_pair(scene->session, i);
        atomic_store(&scene->made, i + 1);
    }
}

/* A fork keeps the pairs from before it for ever, and so does a fork of it. */
static void fork_between(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;
    struct wal_slice head = {NULL, 0};
    struct wal_error error = KIT_ERROR;
    struct wal_session *forks[2] = {NULL, NULL};
    uint64_t least = atomic_load(&scene->made);
    uint64_t most;
    uint64_t count;

    stress_check(wal_session_fork(scene->session, head, NULL, &forks[0], &error), &error,
                 "wal_session_fork");
    most = atomic_load(&scene->began);
    if (kit_random(&stress_thread->random) % 2 == 0) {
        usleep((useconds_t)(kit_random(&stress_thread->random) % 2000));
    }
    count = stress_check_pairs(forks[0]);
    WAL__ASSERT(count >= least && count <= most);
    stress_check(wal_session_fork(forks[0], head, NULL, &forks[1], &error), &error,
                 "wal_session_fork");
    stress_write_pair(forks[0], count);
    WAL__ASSERT(stress_check_pairs(forks[0]) == count + 1);
    WAL__ASSERT(stress_check_pairs(forks[1]) == count);
    WAL__ASSERT(stress_check_pairs(scene->session) >= count);
    wal_session_close(forks[0]);
    wal_session_close(forks[1]);
}

/* Reads every fork again at the end: it has all pairs, or one less. */
static void check_forks(struct wal_store *store, uint64_t forks)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    struct wal_session_cursor *list = NULL;
    uint64_t count = 0;

    stress_check(wal_session_cursor_open(store, &options, &list, &error), &error, "list");
    while (wal_session_cursor_next(list, &info, &error) == WAL_OK) {
        struct wal_session *session = NULL;

        stress_check(wal_session_open(store, info.id, &session, &error), &error,
                     "wal_session_open");
        assert_in_range(stress_check_pairs(session), info.documents / 3, PAIRS + 1);
        wal_session_close(session);
        count++;
    }
    wal_session_cursor_close(list);
    assert_int_equal(count, 1 + forks);
}

KIT_TEST(races__fork_inherits_a_snapshot_of_documents)
{
    struct scene scene;
    uint64_t rounds;

    begin(&scene);
    rounds = stress_run_threads(&scene, put_pairs, 1, fork_between, 3);
    assert_int_equal(stress_check_pairs(scene.session), PAIRS);
    check_forks(scene.store, 2 * rounds);
    end(&scene);
    scene.store = kit_open("store", 0);
    scene.session = kit_session(scene.store, "s");
    assert_int_equal(stress_check_pairs(scene.session), PAIRS);
    check_forks(scene.store, 2 * rounds);
}

/* ------------------------------------------------------------- pages --- */

static void append_randomly(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;

    for (int i = 0; i < MOVES; i++) {
        struct wal_session *session;
        struct wal_entry entry;
        struct wal_error error = KIT_ERROR;
        char id[32];

        (void)snprintf(id, sizeof(id), "moving-%02d",
                       (int)(kit_random(&stress_thread->random) % MOVING));
        session = stress_session(scene->store, id);
        (void)snprintf(id, sizeof(id), "%d-%d", stress_thread->number, i);
        entry = kit_entry(id, NULL, "{}");
        stress_check(kit_try_append(session, &entry, NULL, &error), &error, id);
        wal_session_close(session);
    }
}

/* Reads one page; returns whether there may be another. */
static bool read_page(struct wal_store *store, char cursor[WAL_CURSOR_TEXT_SIZE], uint64_t *before,
                      int *still, int *moving)
{
    struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                 .after = kit_text(cursor)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    struct wal_session_cursor *list = NULL;
    int *seen;
    int count = 0;

    stress_check(wal_session_cursor_open(store, &options, &list, &error), &error,
                 "wal_session_cursor_open");
    while (count < PAGE && wal_session_cursor_next(list, &info, &error) == WAL_OK) {
        char id[32] = "";
        char *rank = strchr(memcpy(id, info.id.data, info.id.size), '-');

        WAL__ASSERT(rank != NULL);
        if (id[0] == 's') {
            WAL__ASSERT(info.last_sequence < *before);
            *before = info.last_sequence;
        }
        seen = id[0] == 's' ? still : moving;
        WAL__ASSERT(++seen[strtol(rank + 1, NULL, 10)] == 1);
        count++;
    }
    if (count > 0) {
        stress_check(wal_session_cursor_encode(list, cursor, &error), &error, "cursor");
    }
    wal_session_cursor_close(list);
    return count == PAGE;
}

/* Unchanged sessions are all there; none is there twice. */
static void read_pages(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;
    char cursor[WAL_CURSOR_TEXT_SIZE] = "";
    uint64_t before = UINT64_MAX;
    int still[STILL] = {0};
    int moving[MOVING] = {0};

    while (read_page(scene->store, cursor, &before, still, moving)) {
        usleep((useconds_t)(kit_random(&stress_thread->random) % 200));
    }
    for (int i = 0; i < STILL; i++) {
        WAL__ASSERT(still[i] == 1);
    }
    for (int i = 0; i < MOVING; i++) {
        atomic_fetch_add(&scene->looks, moving[i] == 0 ? 1 : 0);
    }
}

KIT_TEST(races__pages_return_nothing_twice)
{
    struct scene scene = {.store = kit_store()};
    char id[32];

    for (int i = 0; i < STILL; i++) {
        (void)snprintf(id, sizeof(id), "still-%02d", i);
        wal_session_close(kit_create(scene.store, id));
        (void)snprintf(id, sizeof(id), "moving-%02d", i);
        wal_session_close(kit_create(scene.store, id));
    }
    (void)stress_run_threads(&scene, append_randomly, 2, read_pages, 2);
    print_message("%" PRIu64 " went past a page\n", atomic_load(&scene.looks));
}

/* ------------------------------------------------------------- scans --- */

/* All keys get the next number, or are deleted, in one batch. */
static void change_all(struct wal_session *session, uint64_t number)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_WRITTEN};
    struct wal_error error = KIT_ERROR;
    struct wal_doc docs[KEYS];
    struct wal_batch batch = {
        .struct_size = sizeof(batch), .document_count = KEYS, .documents = docs};
    char keys[KEYS][16];
    char value[32];

    (void)snprintf(value, sizeof(value), "{\"n\":%" PRIu64 "}", number);
    for (int i = 0; i < KEYS; i++) {
        (void)snprintf(keys[i], sizeof(keys[i]), "key-%02d", i);
        docs[i] = (struct wal_doc){.struct_size = sizeof(docs[i]), .key = kit_text(keys[i])};
        if (number % 4 == 0) {
            docs[i].flags = WAL_DOC_DELETE;
        } else {
            docs[i].value = kit_text(value);
        }
    }
    stress_check(wal_batch_commit(session, &batch, &options, NULL, &error), &error,
                 "wal_batch_commit");
}

static void change_documents(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;

    for (uint64_t i = 1; i <= VERSIONS; i++) {
        change_all(scene->session, i);
        atomic_store(&scene->made, i);
    }
}

/* The present version of the document is not older than that of the scan. */
static void compare_with_now(struct wal_doc_cursor *docs, const struct wal_doc *doc)
{
    struct wal_doc now = {.struct_size = sizeof(now)};
    struct wal_error error = KIT_ERROR;
    uint64_t version = doc->version;
    uint64_t number = stress_parse_number(doc->value);
    enum wal_status status;
    char key[16];

    memcpy(key, doc->key.data, 6);
    status = wal_doc_cursor_get(docs, (struct wal_slice){key, 6}, 0, &now, &error);
    if (status == WAL_OK) {
        WAL__ASSERT(now.version >= version);
        WAL__ASSERT(stress_parse_number(now.value) >= number);
    } else if (status != WAL_ENOTFOUND) {
        stress_check(status, &error, "wal_doc_cursor_get");
    }
    stress_check(wal_doc_cursor_get(docs, (struct wal_slice){key, 6}, version, &now, &error),
                 &error, "wal_doc_cursor_get");
    WAL__ASSERT(stress_parse_number(now.value) == number);
}

/* Either every key has the same number, or there is no key. */
static void scan_now(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    uint64_t least = atomic_load(&scene->made);
    uint64_t number = 0;
    enum wal_status status;
    int count = 0;

    stress_check(wal_doc_cursor_open(NULL, scene->session, NULL, &docs, &error), &error,
                 "wal_doc_cursor_open");
    while ((status = wal_doc_cursor_next(docs, &doc, &error)) == WAL_OK) {
        WAL__ASSERT(count == 0 || stress_parse_number(doc.value) == number);
        number = stress_parse_number(doc.value);
        WAL__ASSERT(number >= least);
        if (kit_random(&stress_thread->random) % 8 == 0) {
            compare_with_now(docs, &doc);
        }
        count++;
    }
    WAL__ASSERT(status == WAL_END && (count == 0 || count == KEYS));
    wal_doc_cursor_close(docs);
}

/* Every version of every key, newest first: the same number of each. */
static void scan_history(struct stress_thread *stress_thread)
{
    struct scene *scene = stress_thread->ctx;
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = WAL_DOC_CURSOR_HISTORY};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    uint64_t least = atomic_load(&scene->made);
    uint64_t numbers[KEYS * VERSIONS]; /* 0: a deletion */
    uint64_t count = 0;
    uint64_t newest;
    enum wal_status status;

    stress_check(wal_doc_cursor_open(NULL, scene->session, &options, &docs, &error), &error,
                 "wal_doc_cursor_open");
    while ((status = wal_doc_cursor_next(docs, &doc, &error)) == WAL_OK) {
        WAL__ASSERT(count < KEYS * VERSIONS);
        numbers[count++] = stress_parse_number(doc.value);
        WAL__ASSERT((numbers[count - 1] == 0) == ((doc.flags & WAL_DOC_DELETE) != 0));
    }
    newest = count / KEYS;
    WAL__ASSERT(status == WAL_END && count % KEYS == 0 && newest >= least);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t number = newest - i % newest;

        WAL__ASSERT(numbers[i] == (number % 4 == 0 ? 0 : number));
    }
    wal_doc_cursor_close(docs);
}

static void scan(struct stress_thread *stress_thread)
{
    (stress_thread->number == 0 ? scan_now : scan_history)(stress_thread);
}

KIT_TEST(races__scan_is_a_snapshot)
{
    struct scene scene;

    begin(&scene);
    (void)stress_run_threads(&scene, change_documents, 1, scan, 2);
}

/* ------------------------------------------------------------ visits --- */

/* Opens a separate handle, does a little of everything, and closes it. */
static void visit(struct stress_thread *stress_thread)
{
    for (int i = 0; i < VISITS; i++) {
        struct wal_store *store = stress_open(0);
        struct wal_session *session = stress_session(store, "s");

        stress_increment_metadata(session);
        (void)stress_increment_doc(store, session, "counter", stress_thread->number);
        (void)stress_increment_doc(store, NULL, "counter", stress_thread->number);
        (void)stress_write_turn(store, session, stress_thread->number);
        stress_close(store, session);
    }
}

KIT_TEST(races__short_lived_handles_lose_nothing)
{
    struct wal_store *store = kit_store();
    struct wal_session *session;

    stress_close(store, kit_create(store, "s"));
    (void)stress_run_threads(NULL, visit, 4, NULL, 0);
    store = kit_open("store", 0);
    session = kit_session(store, "s");
    assert_int_equal(stress_read_metadata(session), 4 * VISITS);
    assert_int_equal(stress_read_doc(store, session, "counter", NULL), 4 * VISITS);
    assert_int_equal(stress_read_doc(store, NULL, "counter", NULL), 4 * VISITS);
    assert_int_equal(stress_read_doc(store, session, "turn-b", NULL), 4 * VISITS);
    assert_int_equal(stress_read_doc(store, NULL, "turn", NULL), 4 * VISITS);
    assert_int_equal(kit_info(session).entries, 2 * 4 * VISITS);
    stress_close(store, session);
}
