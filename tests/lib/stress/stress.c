/*
 * stress.c - see stress.h.
 */
#include "tests/lib/stress/stress.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "format/bytes/assert.h"

enum { TEXT = 64, THREADS_MAX = 16 };

void stress_check(enum wal_status status, const struct wal_error *error, const char *what)
{
    if (status != WAL_OK) {
        (void)fprintf(stderr, "%s: %d: %s\n", what, (int)status, error->text);
    }
    WAL__ASSERT(status == WAL_OK);
}

struct wal_store *stress_open(uint32_t flags)
{
    struct wal_open_options options = {
        .struct_size = sizeof(options), .flags = flags, .lock_timeout_ms = 60000};
    struct wal_error error = KIT_ERROR;
    struct wal_store *store = NULL;

    stress_check(wal_open("store", &options, &store, &error), &error, "wal_open");
    return store;
}

struct wal_session *stress_session(struct wal_store *store, const char *id)
{
    struct wal_error error = KIT_ERROR;
    struct wal_session *session = NULL;

    stress_check(wal_session_open(store, kit_text(id), &session, &error), &error, id);
    return session;
}

void stress_close(struct wal_store *store, struct wal_session *session)
{
    struct wal_error error = KIT_ERROR;

    wal_session_close(session);
    stress_check(wal_close(store, &error), &error, "wal_close");
}

/* ----------------------------------------------------------- threads --- */

struct thread_group {
    _Atomic int awaited; /* threads, before any begins */
    _Atomic int working;
    _Atomic uint64_t reads;
};

struct thread_slot {
    struct stress_thread stress_thread;
    struct thread_group *thread_group;
    stress_thread_fn *work;
    bool reads;
    pthread_t thread;
};

static void *run_thread(void *arg)
{
    struct thread_slot *thread_slot = arg;
    struct thread_group *thread_group = thread_slot->thread_group;

    (void)atomic_fetch_sub(&thread_group->awaited, 1);
    while (atomic_load(&thread_group->awaited) > 0) {
        (void)sched_yield();
    }
    if (!thread_slot->reads) {
        thread_slot->work(&thread_slot->stress_thread);
        atomic_fetch_sub(&thread_group->working, 1);
        return NULL;
    }
    do {
        thread_slot->work(&thread_slot->stress_thread);
        atomic_fetch_add(&thread_group->reads, 1);
    } while (atomic_load(&thread_group->working) > 0);
    return NULL;
}

uint64_t stress_run_threads(void *ctx, stress_thread_fn *work, int workers, stress_thread_fn *read,
                            int readers)
{
    struct thread_group thread_group = {.working = workers};
    struct thread_slot seats[THREADS_MAX];
    uint64_t random = kit_seed();
    int count = workers + readers;

    WAL__ASSERT(count <= THREADS_MAX);
    atomic_store(&thread_group.awaited, count);
    for (int i = 0; i < count; i++) {
        bool reads = i >= workers;

        seats[i] = (struct thread_slot){.stress_thread = {.ctx = ctx,
                                                          .number = reads ? i - workers : i,
                                                          .random = kit_random(&random) | 1},
                                        .thread_group = &thread_group,
                                        .work = reads ? read : work,
                                        .reads = reads};
        WAL__ASSERT(pthread_create(&seats[i].thread, NULL, run_thread, &seats[i]) == 0);
    }
    for (int i = 0; i < count; i++) {
        WAL__ASSERT(pthread_join(seats[i].thread, NULL) == 0);
    }
    return atomic_load(&thread_group.reads);
}

/* ---------------------------------------------------------- counters --- */

uint64_t stress_parse_number(struct wal_slice json)
{
    char text[TEXT] = "";
    uint64_t number = 0;

    if (json.size == 0) {
        return 0;
    }
    WAL__ASSERT(json.size < sizeof(text));
    memcpy(text, json.data, json.size);
    WAL__ASSERT(sscanf(text, "{\"n\":%" SCNu64, &number) == 1);
    return number;
}

static int32_t increment(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    char *text = ctx;

    (void)snprintf(text, TEXT, "{\"n\":%" PRIu64 "}", stress_parse_number(now->metadata) + 1);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata = kit_text(text);
    return 0;
}

void stress_increment_metadata(struct wal_session *session)
{
    struct wal_error error = KIT_ERROR;
    char text[TEXT];

    stress_check(wal_session_update(session, increment, text, &error), &error,
                 "wal_session_update");
}

uint64_t stress_read_metadata(struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;

    stress_check(wal_session_get_info(session, &info, &error), &error, "wal_session_get_info");
    return stress_parse_number(info.metadata);
}

uint64_t stress_read_doc(struct wal_store *store, struct wal_session *session, const char *key,
                         uint64_t *version)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;
    uint64_t number = 0;

    stress_check(wal_doc_cursor_open(store, session, NULL, &docs, &error), &error,
                 "wal_doc_cursor_open");
    status = wal_doc_cursor_get(docs, kit_text(key), 0, &doc, &error);
    if (status != WAL_ENOTFOUND) {
        stress_check(status, &error, key);
        number = stress_parse_number(doc.value);
    }
    if (version != NULL) {
        *version = doc.version;
    }
    wal_doc_cursor_close(docs);
    return number;
}

/* A document that contains its number and its writer, so it is unique. */
static struct wal_doc make_doc(const char *key, uint64_t number, int by, char text[TEXT])
{
    struct wal_doc doc = {.struct_size = sizeof(doc), .key = kit_text(key)};

    (void)snprintf(text, TEXT, "{\"n\":%" PRIu64 ",\"by\":%d}", number, by);
    doc.value = kit_text(text);
    return doc;
}

void stress_write_doc(struct wal_store *store, struct wal_session *session, const char *key,
                      uint64_t number, int by)
{
    char text[TEXT];
    struct wal_doc doc = make_doc(key, number, by, text);
    struct wal_error error = KIT_ERROR;

    stress_check(wal_doc_put(store, session, &doc, NULL, &error), &error, key);
}

uint64_t stress_increment_doc(struct wal_store *store, struct wal_session *session, const char *key,
                              int by)
{
    struct wal_error error = KIT_ERROR;
    uint64_t refused = 0;

    for (;;) {
        char text[TEXT];
        uint64_t version;
        uint64_t made = 0;
        uint64_t number = stress_read_doc(store, session, key, &version);
        struct wal_doc doc = make_doc(key, number + 1, by, text);
        enum wal_status status;

        doc.flags = WAL_DOC_EXPECT;
        doc.version = version;
        status = wal_doc_put(store, session, &doc, &made, &error);
        if (status != WAL_ECONFLICT) {
            stress_check(status, &error, key);
            WAL__ASSERT(made > version);
            return refused;
        }
        WAL__ASSERT(strtoull(error.actual, NULL, 10) > version);
        refused++;
    }
}

/* -------------------------------------------------------------- lock --- */

static enum wal_status move_lock(struct wal_session *session, const char *from, const char *to,
                                 struct wal_error *error)
{
    struct wal_head head = {.struct_size = sizeof(head),
                            .flags = WAL_HEAD_EXPECT,
                            .name = kit_text("lock"),
                            .entry_id = kit_text(to),
                            .expected = kit_text(from)};
    char previous[256] = "";
    enum wal_status status = wal_head_move(session, &head, previous, error);

    WAL__ASSERT(status != WAL_OK || strcmp(previous, from) == 0);
    return status;
}

bool stress_try_lock(struct wal_session *session, int by)
{
    struct wal_error error = KIT_ERROR;
    enum wal_status status;
    char id[TEXT];

    (void)snprintf(id, sizeof(id), "w%d", by);
    status = move_lock(session, "", id, &error);
    if (status == WAL_ECONFLICT) {
        WAL__ASSERT(error.actual[0] == 'w' && strcmp(error.actual, id) != 0);
        return false;
    }
    stress_check(status, &error, id);
    return true;
}

void stress_unlock(struct wal_session *session, int by)
{
    struct wal_error error = KIT_ERROR;
    char id[TEXT];

    (void)snprintf(id, sizeof(id), "w%d", by);
    stress_check(move_lock(session, id, "", &error), &error, id);
}

/* ------------------------------------------------------------- turns --- */

/* One turn's parts; what they point to is in the same place. */
struct turn {
    struct wal_entry entries[2];
    struct wal_doc docs[3];
    struct wal_head heads[2];
    struct wal_session_change change;
    char ids[2][TEXT];
    char payload[TEXT];
    char values[3][TEXT];
};

static void make_turn(struct turn *turn, uint64_t number, uint64_t version, int by)
{
    static const char *const keys[3] = {"turn-a", "turn-b", "turn"};
    static const char *const names[2] = {"x", "y"};

    *turn =
        (struct turn){.change = {.struct_size = sizeof(turn->change), .fields = WAL_CHANGE_TITLE}};
    (void)snprintf(turn->payload, sizeof(turn->payload), "{\"by\":%d}", by);
    for (int i = 0; i < 2; i++) {
        (void)snprintf(turn->ids[i], TEXT, "t%" PRIu64 "%c", number, 'a' + i);
        turn->entries[i] = kit_entry(turn->ids[i], NULL, turn->payload);
    }
    for (int i = 0; i < 3; i++) {
        turn->docs[i] = make_doc(keys[i], number, by, turn->values[i]);
    }
    for (int i = 0; i < 2; i++) {
        turn->heads[i] = (struct wal_head){
            .struct_size = sizeof(turn->heads[i]),
            .name = kit_text(names[i]),
            .entry_id = kit_text(turn->ids[i]),
        };
    }
    turn->docs[0].flags = WAL_DOC_EXPECT;
    turn->docs[0].version = version;
    turn->docs[2].flags = WAL_DOC_STORE;
    turn->change.title = kit_text(turn->ids[1]);
}

uint64_t stress_write_turn(struct wal_store *store, struct wal_session *session, int by)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_WRITTEN};
    struct wal_error error = KIT_ERROR;

    for (;;) {
        struct turn turn;
        uint64_t version;
        uint64_t number = stress_read_doc(store, session, "turn-a", &version) + 1;
        struct wal_batch batch = {.struct_size = sizeof(batch),
                                  .entry_count = 2,
                                  .document_count = 3,
                                  .head_count = 2,
                                  .entries = turn.entries,
                                  .documents = turn.docs,
                                  .heads = turn.heads,
                                  .change = &turn.change};
        enum wal_status status;

        make_turn(&turn, number, version, by);
        status = wal_batch_commit(session, &batch, &options, NULL, &error);
        if (status != WAL_ECONFLICT && status != WAL_EEXISTS) {
            stress_check(status, &error, "wal_batch_commit");
            return number;
        }
    }
}

/* The turn in an id like "t7b", which must be the entry that `last` says. */
static uint64_t turn_of_id(const char *id, char last)
{
    uint64_t number = 0;
    char end = '\0';

    if (id[0] == '\0') {
        return 0;
    }
    WAL__ASSERT(sscanf(id, "t%" SCNu64 "%c", &number, &end) == 2);
    WAL__ASSERT(end == last && number > 0);
    return number;
}

static uint64_t turn_of_text(struct wal_slice id, char last)
{
    char text[TEXT] = "";

    WAL__ASSERT(id.size < sizeof(text));
    if (id.size > 0) {
        memcpy(text, id.data, id.size);
    }
    return turn_of_id(text, last);
}

static uint64_t check_documents(struct wal_store *store, struct wal_session *session)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .prefix = kit_text("turn-")};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    uint64_t numbers[2] = {0, 0};
    enum wal_status status;
    int count = 0;

    stress_check(wal_doc_cursor_open(store, session, &options, &docs, &error), &error,
                 "wal_doc_cursor_open");
    while ((status = wal_doc_cursor_next(docs, &doc, &error)) == WAL_OK) {
        WAL__ASSERT(count < 2);
        numbers[count++] = stress_parse_number(doc.value);
    }
    WAL__ASSERT(status == WAL_END && count != 1 && numbers[0] == numbers[1]);
    wal_doc_cursor_close(docs);
    return numbers[0];
}

static uint64_t check_heads(struct wal_session *session)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_error error = KIT_ERROR;
    struct wal_head_cursor *heads = NULL;
    enum wal_status status;
    uint64_t numbers[3] = {0, 0, 0};
    int count = 0;

    stress_check(wal_head_cursor_open(session, &heads, &error), &error, "wal_head_cursor_open");
    while ((status = wal_head_cursor_next(heads, &head, &error)) == WAL_OK) {
        WAL__ASSERT(count < 3);
        numbers[count] = turn_of_text(head.entry_id, count == 1 ? 'a' : 'b');
        count++;
    }
    WAL__ASSERT(status == WAL_END && (count == 0 || count == 3));
    WAL__ASSERT(numbers[0] == numbers[1] && numbers[1] == numbers[2]);
    wal_head_cursor_close(heads);
    return numbers[0];
}

/* Every turn from the first on, both its entries, in order. */
static uint64_t check_entries(struct wal_session *session)
{
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    struct wal_error error = KIT_ERROR;
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status;
    uint64_t count = 0;

    stress_check(wal_entry_cursor_open(session, NULL, &cursor, &error), &error,
                 "wal_entry_cursor_open");
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        char last = count % 2 == 0 ? 'a' : 'b';

        WAL__ASSERT(turn_of_text(entry.id, last) == count / 2 + 1);
        count++;
    }
    WAL__ASSERT(status == WAL_END && count % 2 == 0);
    wal_entry_cursor_close(cursor);
    return count / 2;
}

/* What one look at the session says of entries, documents, head and title. */
static uint64_t check_session(struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = KIT_ERROR;
    uint64_t number;

    stress_check(wal_session_get_info(session, &info, &error), &error, "wal_session_get_info");
    number = turn_of_text(info.title, 'b');
    WAL__ASSERT(turn_of_text(info.head, 'b') == number);
    WAL__ASSERT(info.entries == 2 * number && info.documents == 2 * number);
    return number;
}

uint64_t stress_check_turn(struct wal_store *store, struct wal_session *session, uint64_t least)
{
    for (int round = 0; round < 2; round++) {
        uint64_t seen[5] = {0};

        for (int i = 0; i < 5; i++) {
            int part = round == 0 ? i : 4 - i;

            seen[i] = part == 0   ? check_documents(store, session)
                      : part == 1 ? check_heads(session)
                      : part == 2 ? check_entries(session)
                      : part == 3 ? stress_read_doc(store, NULL, "turn", NULL)
                                  : check_session(session);
            if (seen[i] < least) {
                (void)fprintf(stderr, "part %d is at %" PRIu64 ", not %" PRIu64 "\n", part, seen[i],
                              least);
            }
            WAL__ASSERT(seen[i] >= least);
            least = seen[i];
        }
    }
    return least;
}

/* ------------------------------------------------------------ prefix --- */

void stress_write_pair(struct wal_session *session, uint64_t i)
{
    struct wal_append_options options = {.struct_size = sizeof(options), .durability = WAL_WRITTEN};
    struct wal_batch batch = {.struct_size = sizeof(batch), .document_count = 3};
    struct wal_error error = KIT_ERROR;
    struct wal_doc docs[3];
    char keys[2][TEXT];
    char values[3][TEXT];

    for (int k = 0; k < 2; k++) {
        (void)snprintf(keys[k], TEXT, "%c%06" PRIu64, 'a' + k, i);
        docs[k] = make_doc(keys[k], i, 0, values[k]);
    }
    docs[2] = make_doc("last", i, 0, values[2]);
    batch.documents = docs;
    stress_check(wal_batch_commit(session, &batch, &options, NULL, &error), &error, keys[0]);
}

uint64_t stress_check_pairs(struct wal_session *session)
{
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_error error = KIT_ERROR;
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status;
    uint64_t counts[2] = {0, 0};
    uint64_t last = UINT64_MAX;

    stress_check(wal_doc_cursor_open(NULL, session, NULL, &docs, &error), &error,
                 "wal_doc_cursor_open");
    while ((status = wal_doc_cursor_next(docs, &doc, &error)) == WAL_OK) {
        const char *key = doc.key.data;

        if (key[0] == 'l') {
            last = stress_parse_number(doc.value);
        } else {
            WAL__ASSERT(stress_parse_number(doc.value) == counts[key[0] - 'a']);
            counts[key[0] - 'a']++;
        }
    }
    WAL__ASSERT(status == WAL_END && counts[0] == counts[1]);
    WAL__ASSERT(last == counts[0] - 1); /* UINT64_MAX of none */
    wal_doc_cursor_close(docs);
    return counts[0];
}
