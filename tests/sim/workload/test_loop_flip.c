/*
 * test_loop_flip.c - a bit of a store at rest is flipped, for a sample of all bits of all files, or
 * for every bit that was written. A process that opens the store and reads everything gets a report
 * of it, or reads what was there before; what can be read is what was submitted; sessions that lost
 * nothing take appends.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "tests/lib/test.h"
#include "tests/sim/workload/workload.h"

enum {
    PATHS_MAX = 32,
    PATH_SIZE = 64,
    EVERY_BIT_MAX = 256 * 1024 /* bytes; of longer files a sample */
};

/* The store as it was left, and what it held. */
struct rest {
    struct workload *workload;
    struct ledger_view view;
    uint64_t parts[LEDGER_SESSIONS + 1]; /* the store's own last */
    bool closed;                         /* cleanly */
    char paths[PATHS_MAX][PATH_SIZE];
    uint32_t path_count;
};

/* The content that the store returned after the flip. */
struct sight {
    const struct rest *rest;
    struct wal_store *store;
    struct wal_store_info info;
    bool entries[LEDGER_ENTRIES];
    bool damaged[LEDGER_SESSIONS];
    bool there[LEDGER_SESSIONS];
    uint32_t errors[LEDGER_SESSIONS + 1];
    uint32_t shown[LEDGER_SESSIONS]; /* entries, though redacted */
    uint64_t parts[LEDGER_SESSIONS + 1];
    uint32_t all_errors;
};

static uint64_t opened;
static uint64_t refused;
static uint64_t unchanged;

/* --- the store ---------------------------------------------------------- */

static void on_call(void *arg, const struct sim_event *event)
{
    struct rest *rest = arg;

    if (event->path == NULL || !sim_file_exists(rest->workload->disk, event->path)) {
        return;
    }
    for (uint32_t i = 0; i < rest->path_count; i++) {
        if (strcmp(rest->paths[i], event->path) == 0) {
            return;
        }
    }
    /* Directories are opened too, to see that they are some. */
    if (event->call == SIM_OPEN && event->sys_errno == 0) {
        assert_true(rest->path_count < PATHS_MAX && strlen(event->path) < PATH_SIZE);
        (void)snprintf(rest->paths[rest->path_count], PATH_SIZE, "%s", event->path);
        rest->path_count++;
    }
}

/* Records what each session has in addition to entries. */
static void note_parts(struct rest *rest)
{
    struct wal_store *store = rest->workload->actors[0].store;
    uint32_t errors = 0;

    for (uint32_t i = 0; i < rest->workload->ledger->session_count; i++) {
        struct wal_error error = {.struct_size = sizeof(error)};
        struct wal_session *handle = NULL;
        char id[LEDGER_TEXT];

        ledger_session_id(i, id);
        if (wal_session_open(store, ledger_slice(id), &handle, &error) == WAL_OK) {
            rest->parts[i] = ledger_digest_parts(store, handle, &errors);
            wal_session_close(handle);
        }
    }
    rest->parts[LEDGER_SESSIONS] = ledger_digest_parts(store, NULL, &errors);
    assert_int_equal(errors, 0);
}

/* A life of some steps; then closed, or killed where it is. */
static void leave(struct rest *rest, uint64_t seed, uint32_t large_every, bool closed)
{
    memset(rest, 0, sizeof(*rest));
    rest->closed = closed;
    rest->workload = workload_create(
        &(struct workload_options){.seed = seed, .actors = 1, .large_every = large_every});
    sim_disk_on_call(rest->workload->disk, on_call, rest);
    workload_run(rest->workload, 70);
    if (workload_open(rest->workload, 0) != WAL_OK) {
        ledger_fail("the store cannot be opened");
    }
    ledger_check(rest->workload->ledger, rest->workload->actors[0].store, LEDGER_NO_LOSS,
                 &rest->view);
    note_parts(rest);
    if (closed) {
        if (workload_close(rest->workload, 0) != WAL_OK) {
            ledger_fail("the store cannot be closed");
        }
        ledger_resolve(rest->workload->ledger, &rest->view);
    }
    sim_disk_on_call(rest->workload->disk, NULL, NULL);
    workload_crash(rest->workload, NULL, 0);
}

/* --- reading ------------------------------------------------------------ */

static void read_stream(struct sight *sight, uint32_t session, struct wal_session *handle,
                        uint32_t stream)
{
    const struct ledger *ledger = sight->rest->workload->ledger;
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = WAL_ENTRY_CURSOR_ALL,
                                               .flags = WAL_ENTRY_CURSOR_DELTAS |
                                                        WAL_ENTRY_CURSOR_REDACTED,
                                               .stream = stream};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(handle, &options, &cursor, &error);

    if (status != WAL_OK) {
        sight->errors[session] += 1000; /* the whole stream */
        return;
    }
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) != WAL_END) {
        uint32_t number;
        uint32_t parent;

        entry.struct_size = sizeof(entry);
        if (status != WAL_OK) {
            if (status != WAL_ECORRUPT || error.file[0] == '\0') {
                ledger_fail("session %u: an entry answers %d: %s (%s)", session, status, error.text,
                            error.file);
            }
            sight->errors[session]++;
            continue;
        }
        number = ledger_identify(ledger, &entry, true);
        if (number != LEDGER_NONE && !sight->rest->view.sessions[ledger->entries[number].session]) {
            continue; /* of a session that was deleted, which may be back */
        }
        if (number == LEDGER_NONE || !sight->rest->view.entries[number]) {
            ledger_fail("session %u: \"%.*s\" was never there", session, (int)entry.id.size,
                        (const char *)entry.id.data);
        }
        parent = ledger_find_entry(ledger, entry.parent_id);
        if (parent != sight->rest->view.parents[number] && parent != LEDGER_NONE) {
            ledger_fail("session %u: entry %u hangs under %u now", session, number, parent);
        }
        sight->shown[session] += sight->rest->view.redactions[number] != LEDGER_NONE &&
                                 (entry.flags & WAL_ENTRY_REDACTED) == 0;
        sight->entries[number] |= ledger->entries[number].session == session;
    }
    wal_entry_cursor_close(cursor);
}

static void read_session(struct sight *sight, uint32_t session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = NULL;
    char id[LEDGER_TEXT];
    enum wal_status status;

    ledger_session_id(session, id);
    status = wal_session_open(sight->store, ledger_slice(id), &handle, &error);
    if (status != WAL_OK) {
        return;
    }
    sight->there[session] = true;
    status = wal_session_get_info(handle, &info, &error);
    if (status == WAL_ECORRUPT && error.file[0] != '\0') {
        sight->errors[session]++; /* its own record, which has the metadata */
    } else if (status != WAL_OK) {
        ledger_fail("session %u has no status: %d %s", session, status, error.text);
    }
    sight->damaged[session] = (info.flags & WAL_SESSION_DAMAGED) != 0;
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_stream(sight, session, handle, stream);
    }
    sight->parts[session] = ledger_digest_parts(sight->store, handle, &sight->errors[session]);
    sight->all_errors += sight->errors[session];
    wal_session_close(handle);
}

/* --- judging ------------------------------------------------------------ */

/* Whether recovery said that something that may have been promised is gone. */
static bool is_reported(const struct sight *sight)
{
    return sight->info.tail == WAL_TAIL_DAMAGED || sight->info.tail == WAL_TAIL_AMBIGUOUS;
}

/*
 * A store that was killed may lose its last group to what looks like a tear: when the COMMIT itself
 * is hit, which alone shows that the group was promised, or when it was written without a promise
 * and made durable by wal_sync (SPEC.md 3.4, rows 8 and 9). One promised batch at most can go like
 * this.
 */
static void check_torn(const struct sight *sight)
{
    const struct ledger *ledger = sight->rest->workload->ledger;
    uint32_t lost = 0;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];

        lost += batch->count > 0 && batch->state == LEDGER_DURABLE &&
                sight->rest->view.sessions[batch->session] && batch->durability == WAL_DURABLE &&
                sight->rest->view.entries[batch->first] && !sight->entries[batch->first];
    }
    if (lost > 1) {
        ledger_fail("%u promised batches are taken for a tear at %llu", lost,
                    (unsigned long long)sight->info.tail_offset);
    }
}

/* Whether a loss is reported for the session, or for one it was forked from. */
static bool is_loss_reported(const struct sight *sight, uint32_t session)
{
    const struct ledger *ledger = sight->rest->workload->ledger;

    for (uint32_t at = session; at != LEDGER_NONE; at = ledger->sessions[at].source) {
        if (sight->damaged[at] || sight->errors[at] > 0 ||
            (!sight->there[at] && is_reported(sight))) {
            return true;
        }
    }
    return false;
}

/* The same of what is no entry, and of sessions that were deleted. */
static void check_parts(const struct sight *sight)
{
    const struct rest *rest = sight->rest;
    const struct ledger *ledger = rest->workload->ledger;

    if (sight->info.tail == WAL_TAIL_AMBIGUOUS) {
        return;
    }
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        if (!sight->there[i] || is_loss_reported(sight, i)) {
            continue;
        }
        if (!rest->view.sessions[i]) {
            ledger_fail("session %u reappeared without a report", i);
        }
        if (sight->shown[i] != 0) {
            ledger_fail("session %u: a redacted entry reappeared without a "
                        "report",
                        i);
        }
        if (sight->parts[i] != rest->parts[i]) {
            ledger_fail("session %u: documents, heads or metadata changed "
                        "without a report",
                        i);
        }
    }
}

/* Documents of the store: when some were lost, it refuses others until that is accepted. */
static void check_store(const struct sight *sight)
{
    const struct wal_doc doc = {
        .struct_size = sizeof(doc), .key = ledger_slice("after"), .value = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_doc_put(sight->store, NULL, &doc, NULL, &error);

    if (status == WAL_EDAMAGED) {
        status = wal_store_accept_damage(sight->store, &error);
        if (status == WAL_OK) {
            status = wal_doc_put(sight->store, NULL, &doc, NULL, &error);
        }
    } else if (sight->errors[LEDGER_SESSIONS] == 0 &&
               sight->parts[LEDGER_SESSIONS] != sight->rest->parts[LEDGER_SESSIONS] &&
               sight->info.tail != WAL_TAIL_AMBIGUOUS &&
               (sight->info.tail != WAL_TAIL_TORN || sight->rest->closed)) {
        ledger_fail("documents of the store changed without a report");
    }
    if (status != WAL_OK) {
        ledger_fail("a document of the store is refused: %d %s", status, error.text);
    }
}

/* Missing content must have been reported. */
static void check_sight(const struct sight *sight)
{
    const struct ledger *ledger = sight->rest->workload->ledger;
    uint32_t missing[LEDGER_SESSIONS] = {0};

    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        missing[ledger->entries[i].session] += sight->rest->view.entries[i] && !sight->entries[i];
    }
    if (sight->info.tail == WAL_TAIL_TORN && !sight->rest->closed) {
        check_torn(sight);
        return;
    }
    check_parts(sight);
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        bool was = sight->rest->view.sessions[i] &&
                   ledger->batches[ledger->sessions[i].batch].state == LEDGER_DURABLE;

        if (was && !sight->there[i] && !is_reported(sight)) {
            ledger_fail("session %u is missing without a report", i);
        }
        if (sight->there[i] && missing[i] > sight->errors[i] && !sight->damaged[i] &&
            sight->info.tail != WAL_TAIL_AMBIGUOUS) {
            ledger_fail("session %u lost %u entries, of which %u are "
                        "reported; the tail is %u at %llu, %llu bytes",
                        i, missing[i], sight->errors[i], sight->info.tail,
                        (unsigned long long)sight->info.tail_offset,
                        (unsigned long long)sight->info.tail_size);
        }
    }
}

/* Appends to every session; one that lost something refuses until that is accepted. */
static void append(const struct sight *sight)
{
    struct wal_entry entry = {.struct_size = sizeof(entry),
                              .type = ledger_slice("message"),
                              .payload = ledger_slice("{}")};
    struct wal_error error = {.struct_size = sizeof(error)};

    for (uint32_t i = 0; i < LEDGER_SESSIONS; i++) {
        struct wal_session *handle = NULL;
        char id[LEDGER_TEXT];
        enum wal_status status;

        if (!sight->there[i]) {
            continue;
        }
        ledger_session_id(i, id);
        status = wal_session_open(sight->store, ledger_slice(id), &handle, &error);
        if (status == WAL_OK) {
            status = wal_append(handle, &entry, 1, NULL, NULL, &error);
        }
        if (sight->damaged[i] && status == WAL_EDAMAGED) {
            status = wal_session_accept_damage(handle, &error);
            if (status == WAL_OK) {
                status = wal_append(handle, &entry, 1, NULL, NULL, &error);
            }
        } else if (sight->damaged[i]) {
            ledger_fail("session %u is damaged and answers %d", i, status);
        }
        wal_session_close(handle);
        if (status != WAL_OK && sight->errors[i] < 1000) {
            ledger_fail("session %u takes no append: %d %s", i, status, error.text);
        }
    }
}

static bool ends_in(const char *text, const char *end)
{
    size_t size = strlen(text);

    return size >= strlen(end) && strcmp(text + size - strlen(end), end) == 0;
}

/* Opens, reads and appends; true when nothing was lost or reported. */
static void look(struct rest *rest, const char *path, uint64_t offset, unsigned bit)
{
    struct workload *copy = workload_clone(rest->workload);
    struct sight *sight = calloc(1, sizeof(*sight));
    struct wal_error error = {.struct_size = sizeof(error)};
    bool derived = !ends_in(path, ".seg");
    enum wal_status status;

    assert_non_null(sight);
    ledger_set_context("seed %llu, %s, byte %llu, bit %u",
                       (unsigned long long)rest->workload->options.seed, path,
                       (unsigned long long)offset, bit);
    sim_file_flip_bit(copy->disk, path, offset, bit);
    sight->rest = rest;
    status = workload_open_raw(copy, 0, 0, &error);
    if (status != WAL_OK) {
        if ((status != WAL_ECORRUPT && status != WAL_EVERSION) || error.file[0] == '\0' ||
            derived) {
            ledger_fail("opening answers %d: %s (%s)", status, error.text, error.file);
        }
        refused++;
        free(sight);
        workload_destroy(copy);
        return;
    }
    opened++;
    sight->store = copy->actors[0].store;
    sight->info.struct_size = sizeof(sight->info);
    if (wal_store_get_info(sight->store, &sight->info, &error) != WAL_OK) {
        ledger_fail("the store has no status");
    }
    for (uint32_t i = 0; i < rest->workload->ledger->session_count; i++) {
        read_session(sight, i);
    }
    sight->parts[LEDGER_SESSIONS] =
        ledger_digest_parts(sight->store, NULL, &sight->errors[LEDGER_SESSIONS]);
    sight->all_errors += sight->errors[LEDGER_SESSIONS];
    check_sight(sight);
    if (sight->all_errors == 0 && !is_reported(sight)) {
        if (sight->info.tail == WAL_TAIL_CLEAN || rest->closed) {
            ledger_check(rest->workload->ledger, sight->store, LEDGER_NO_LOSS, NULL);
        }
        unchanged++;
    } else if (derived) {
        ledger_fail("what is derived is damaged, and something is lost");
    }
    append(sight);
    check_store(sight);
    (void)workload_close(copy, 0);
    free(sight);
    workload_destroy(copy);
}

/* --- the loop ----------------------------------------------------------- */

/* The offset after the last byte that is not zero. */
static uint64_t used_size(struct sim_disk *disk, const char *path, uint64_t *size)
{
    uint8_t *bytes;
    size_t all;
    uint64_t used;

    sim_disk_read_file(disk, path, &bytes, &all);
    used = all;
    /* A segment ends in a trailer; the bytes before it may be zeros. */
    while (used > 0 && bytes[used - 1] == 0) {
        used--;
    }
    free(bytes);
    *size = all;
    return used;
}

static void flip_file(struct rest *rest, const char *path, uint32_t samples)
{
    uint64_t size;
    uint64_t used = used_size(rest->workload->disk, path, &size);
    uint64_t state = rest->workload->options.seed + used;

    if (workload_is_long() && used <= EVERY_BIT_MAX) {
        for (uint64_t at = 0; at < used * 8; at++) {
            look(rest, path, at / 8, (unsigned)(at % 8));
        }
    }
    for (uint32_t i = 0; i < samples && size > 0; i++) {
        uint64_t range = i % 8 == 0 || used == 0 ? size : used;

        state = state * 6364136223846793005u + 1442695040888963407u;
        look(rest, path, (state >> 20) % range, (unsigned)(state >> 61));
    }
}

static void run(uint64_t seed, uint32_t large_every, bool closed, uint32_t samples)
{
    struct rest *rest = calloc(1, sizeof(*rest));

    assert_non_null(rest);
    ledger_set_context("seed %llu", (unsigned long long)seed);
    leave(rest, seed, large_every, closed);
    for (uint32_t i = 0; i < rest->path_count; i++) {
        if (sim_file_exists(rest->workload->disk, rest->paths[i])) {
            flip_file(rest, rest->paths[i],
                      ends_in(rest->paths[i], ".seg") ? samples : samples / 4);
        }
    }
    print_message("%llu opened, %llu of them unchanged; %llu refused\n", (unsigned long long)opened,
                  (unsigned long long)unchanged, (unsigned long long)refused);
    opened = 0;
    unchanged = 0;
    refused = 0;
    workload_destroy(rest->workload);
    free(rest);
}

TEST(loop_flip__closed_store)
{
    run(51, 0, true, workload_count(1600, 1600));
}

TEST(loop_flip__killed_store)
{
    run(52, 0, false, workload_count(1600, 1600));
}

TEST(loop_flip__closed_store_of_several_segments)
{
    run(53, 3, true, workload_count(20000, 200));
}

TEST(loop_flip__killed_store_of_several_segments)
{
    run(54, 3, false, workload_count(20000, 200));
}
