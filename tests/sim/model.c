/*
 * model.c - see model.h.
 */
#include "tests/sim/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/base/assert.h"

enum {
    PATTERN_SHIFT = 65521,
    PATTERN_SIZE = LEDGER_PAYLOAD_MAX + PATTERN_SHIFT,
    SAID_SIZE = 512
};

static char said[SAID_SIZE];

void ledger_say(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(said, sizeof(said), format, args);
    va_end(args);
}

void ledger_fail(const char *format, ...)
{
    char text[SAID_SIZE];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    print_error("[%s]\n  %s\n", said, text);
    if (getenv("AGENTWAL_ABORT") != NULL) {
        abort(); /* for a debugger */
    }
    fail();
    abort();
}

/* ----------------------------------------------------------- content --- */

/* Letters that do not repeat for as long as a payload is. */
static const char *pattern(void)
{
    static char *bytes;
    uint64_t state = 1;

    if (bytes != NULL) {
        return bytes;
    }
    bytes = malloc(PATTERN_SIZE);
    WAL__ASSERT(bytes != NULL);
    for (size_t i = 0; i < PATTERN_SIZE; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = "abcdefghijklmnopqrstuvwxyz012345"[state >> 59];
    }
    return bytes;
}

/* A payload is a JSON string, or for a line anything. */
static uint8_t *make_payload(const struct ledger_entry *entry)
{
    uint8_t *bytes = malloc(entry->size);
    bool line = (entry->flags & WAL_ENTRY_LINE) != 0;

    WAL__ASSERT(bytes != NULL && entry->size >= 2);
    memcpy(bytes, pattern() + entry->seed % PATTERN_SHIFT, entry->size);
    bytes[0] = line ? 0xff : '"';
    bytes[entry->size - 1] = line ? '\n' : '"';
    return bytes;
}

static bool is_payload(const struct ledger_entry *entry, struct wal_slice got)
{
    const uint8_t *bytes = got.data;
    bool line = (entry->flags & WAL_ENTRY_LINE) != 0;

    return got.size == entry->size && bytes[0] == (line ? 0xff : '"') &&
           bytes[got.size - 1] == (line ? '\n' : '"') &&
           memcmp(bytes + 1, pattern() + entry->seed % PATTERN_SHIFT + 1,
                  entry->size - 2) == 0;
}

struct wal_slice ledger_slice(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           memcmp(slice.data, text, slice.size) == 0;
}

static void entry_id(uint32_t entry, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "e%05u", entry);
}

void ledger_session_id(uint32_t session, char out[LEDGER_TEXT])
{
    (void)snprintf(out, LEDGER_TEXT, "s%02u", session);
}

static const char *type_of(uint32_t seed)
{
    return seed % 3 == 0 ? "note.of.a.kind" : "message";
}

static void fill_texts(const struct ledger_entry *entry, uint32_t number,
                       struct ledger_text *text)
{
    memset(text, 0, sizeof(*text));
    entry_id(number, text->id);
    if (entry->parent_kind == LEDGER_NAMED) {
        entry_id(entry->parent, text->parent);
    }
    if (entry->seed % 2 == 0) {
        (void)snprintf(text->run, sizeof(text->run), "run-%u",
                       entry->seed % 7);
    }
    if (entry->seed % 5 == 0) {
        (void)snprintf(text->meta, sizeof(text->meta), "{\"n\":%u}",
                       entry->seed % 1000);
    }
}

void ledger_fill_entry(const struct ledger *ledger, uint32_t entry,
                       struct wal_entry *out, struct ledger_text *text)
{
    const struct ledger_entry *told = &ledger->entries[entry];

    fill_texts(told, entry, text);
    text->payload = make_payload(told);
    *out = (struct wal_entry){
        .struct_size = sizeof(*out),
        .flags = told->flags |
                 (told->parent_kind == LEDGER_ROOT ? WAL_ENTRY_ROOT : 0u),
        .stream = told->stream,
        .id = ledger_slice(text->id),
        .parent_id = ledger_slice(text->parent),
        .type = ledger_slice(type_of(told->seed)),
        .timestamp = ledger_slice("2026-01-01T00:00:00Z"),
        .run_id = ledger_slice(text->run),
        .payload = {text->payload, told->size},
        .meta = ledger_slice(text->meta),
    };
}

void ledger_free_text(struct ledger_text *text)
{
    free(text->payload);
    text->payload = NULL;
}

/* ------------------------------------------------------------ adding --- */

uint32_t ledger_add_batch(struct ledger *ledger, uint32_t session,
                          uint32_t actor)
{
    uint32_t batch = ledger->batch_count;

    WAL__ASSERT(batch < LEDGER_BATCHES && actor < LEDGER_ACTORS);
    ledger->batch_count++;
    ledger->batches[batch] = (struct ledger_batch){
        .session = session, .first = ledger->entry_count, .actor = actor};
    return batch;
}

uint32_t ledger_add_session(struct ledger *ledger, uint32_t actor, uint32_t at)
{
    uint32_t session = ledger->session_count;

    WAL__ASSERT(session < LEDGER_SESSIONS);
    ledger->session_count++;
    ledger->sessions[session].at = at;
    ledger->sessions[session].batch = ledger_add_batch(ledger, session, actor);
    return session;
}

uint32_t ledger_add_entry(struct ledger *ledger, uint32_t batch,
                          const struct ledger_entry *entry)
{
    uint32_t number = ledger->entry_count;

    WAL__ASSERT(number < LEDGER_ENTRIES && batch + 1 == ledger->batch_count);
    ledger->entry_count++;
    ledger->entries[number] = *entry;
    ledger->entries[number].batch = batch;
    ledger->entries[number].session = ledger->batches[batch].session;
    ledger->batches[batch].count++;
    return number;
}

/* --------------------------------------------------------- comparing --- */

uint32_t ledger_entry_of(const struct ledger *ledger, struct wal_slice id)
{
    char text[LEDGER_TEXT] = {0};
    char again[LEDGER_TEXT];
    unsigned long number;

    if (id.size == 0 || id.size >= sizeof(text)) {
        return LEDGER_NONE;
    }
    memcpy(text, id.data, id.size);
    number = strtoul(text + 1, NULL, 10);
    if (number >= ledger->entry_count) {
        return LEDGER_NONE;
    }
    entry_id((uint32_t)number, again);
    return strcmp(text, again) == 0 ? (uint32_t)number : LEDGER_NONE;
}

uint32_t ledger_identify(const struct ledger *ledger,
                         const struct wal_entry *entry, bool whole)
{
    uint32_t number = ledger_entry_of(ledger, entry->id);
    const struct ledger_entry *told = &ledger->entries[number];
    struct ledger_text text;

    if (number == LEDGER_NONE || !whole) {
        return number;
    }
    fill_texts(told, number, &text);
    if (entry->stream != told->stream ||
        ((entry->flags ^ told->flags) & WAL_ENTRY_LINE) != 0 ||
        !is_text(entry->type, type_of(told->seed)) ||
        !is_text(entry->timestamp, "2026-01-01T00:00:00Z") ||
        !is_text(entry->run_id, text.run) ||
        !is_text(entry->meta, text.meta) ||
        !is_payload(told, entry->payload)) {
        return LEDGER_NONE;
    }
    return number;
}

/* A comparison under way. */
struct reading {
    const struct ledger *ledger;
    struct wal_store *store;
    struct ledger_view *view;
    uint32_t session;
    struct wal_session *handle;
    uint32_t path[LEDGER_ENTRIES]; /* root first */
    uint32_t path_size;
    uint32_t own; /* entries of the session's stream */
};

static void mix(struct reading *reading, uint64_t value)
{
    uint64_t x = (reading->view->digest ^ value) * 0x9e3779b97f4a7c15u;

    reading->view->digest = x ^ (x >> 29);
}

/* The way from the root to an entry, as the view has it. */
static void find_path(struct reading *reading, uint32_t entry)
{
    uint32_t size = 0;

    for (uint32_t at = entry; at != LEDGER_NONE;
         at = reading->view->parents[at]) {
        reading->path[size] = at;
        size++;
    }
    for (uint32_t i = 0; i < size / 2; i++) {
        uint32_t swapped = reading->path[i];

        reading->path[i] = reading->path[size - 1 - i];
        reading->path[size - 1 - i] = swapped;
    }
    reading->path_size = size;
}

static struct wal_iter *begin(struct reading *reading, uint32_t mode,
                              uint32_t stream)
{
    struct wal_iter_options options = {.struct_size = sizeof(options),
                                       .mode = mode,
                                       .stream = stream};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_iter *iter = NULL;
    enum wal_status status =
        wal_iter_open(reading->handle, &options, &iter, &error);

    if (status != WAL_OK) {
        ledger_fail("session %u, stream %u: cannot be read: %d %s (%s)",
                    reading->session, stream, status, error.text, error.file);
    }
    return iter;
}

/* The next entry, or LEDGER_NONE at the end. */
static uint32_t next(struct reading *reading, struct wal_iter *iter,
                     struct wal_entry *entry)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;
    uint32_t number;

    entry->struct_size = sizeof(*entry);
    status = wal_iter_next(iter, entry, &error);
    if (status == WAL_END) {
        return LEDGER_NONE;
    }
    if (status != WAL_OK) {
        ledger_fail("session %u: an entry cannot be read: %d %s (%s at %llu)",
                    reading->session, status, error.text, error.file,
                    (unsigned long long)error.offset);
    }
    number = ledger_identify(reading->ledger, entry, true);
    if (number == LEDGER_NONE) {
        ledger_fail("session %u: \"%.*s\" (type %.*s, run %.*s, %llu bytes, "
                    "stream %u, flags %u) is not what was submitted",
                    reading->session, (int)entry->id.size,
                    (const char *)entry->id.data, (int)entry->type.size,
                    (const char *)entry->type.data, (int)entry->run_id.size,
                    (const char *)entry->run_id.data,
                    (unsigned long long)entry->payload.size, entry->stream,
                    entry->flags);
    }
    return number;
}

/* Expects the path that was found last. */
static void expect_path(struct reading *reading, struct wal_iter *iter)
{
    struct wal_entry entry;

    for (uint32_t i = 0; i < reading->path_size; i++) {
        uint32_t number = next(reading, iter, &entry);

        if (number != reading->path[i] || entry.depth != i) {
            ledger_fail("session %u: entry %u of a branch is %u (depth %llu), "
                        "not %u",
                        reading->session, i, number,
                        (unsigned long long)entry.depth, reading->path[i]);
        }
    }
}

/* Where the entry must hang, by what stands before it. */
static uint32_t expected_parent(const struct reading *reading, uint32_t number,
                                uint32_t head)
{
    const struct ledger_entry *told = &reading->ledger->entries[number];

    switch (told->parent_kind) {
    case LEDGER_HEAD:
        return head;
    case LEDGER_NAMED:
        return told->parent;
    case LEDGER_ROOT:
        break;
    }
    return LEDGER_NONE;
}

/* One of the session's own entries, the newest so far. */
static void take_own(struct reading *reading, uint32_t number,
                     const struct wal_entry *entry, uint32_t *head)
{
    const struct ledger_entry *told = &reading->ledger->entries[number];
    struct ledger_view *view = reading->view;
    uint32_t parent = ledger_entry_of(reading->ledger, entry->parent_id);

    if (told->session != reading->session || view->entries[number]) {
        ledger_fail("session %u: entry %u does not belong here, or twice",
                    reading->session, number);
    }
    if (parent != expected_parent(reading, number, *head)) {
        ledger_fail("session %u: the parent of entry %u is %d, not %d",
                    reading->session, number, (int)parent,
                    (int)expected_parent(reading, number, *head));
    }
    if (parent != LEDGER_NONE && !view->entries[parent]) {
        ledger_fail("session %u: the parent %u of entry %u is not there",
                    reading->session, parent, number);
    }
    view->entries[number] = true;
    view->parents[number] = parent;
    view->depths[number] =
        parent == LEDGER_NONE ? 0 : view->depths[parent] + 1;
    if (entry->depth != view->depths[number]) {
        ledger_fail("session %u: entry %u has depth %llu, not %u",
                    reading->session, number,
                    (unsigned long long)entry->depth, view->depths[number]);
    }
    if ((parent == *head || (told->flags & WAL_ENTRY_HEAD_MOVE) != 0) &&
        (told->flags & WAL_ENTRY_HEAD_KEEP) == 0) {
        *head = number;
    }
    mix(reading, number);
    mix(reading, parent);
    mix(reading, entry->sequence);
}

/* Entries of one actor stand in the order in which it submitted them. */
static void check_order(const struct reading *reading, uint32_t number,
                        uint32_t newest[LEDGER_ACTORS])
{
    const struct ledger_batch *batch =
        &reading->ledger->batches[reading->ledger->entries[number].batch];

    if (batch->again) {
        return;
    }
    if (newest[batch->actor] != LEDGER_NONE &&
        newest[batch->actor] >= number) {
        ledger_fail("session %u: entry %u stands behind entry %u",
                    reading->session, number, newest[batch->actor]);
    }
    newest[batch->actor] = number;
}

static void read_stream(struct reading *reading, uint32_t stream)
{
    uint32_t at = reading->ledger->sessions[reading->session].at;
    uint32_t newest[LEDGER_ACTORS] = {LEDGER_NONE, LEDGER_NONE};
    uint32_t head = LEDGER_NONE;
    uint64_t sequence = 0;
    struct wal_entry entry;
    struct wal_iter *iter = begin(reading, WAL_ITER_ALL, stream);
    uint32_t number;

    if (at != LEDGER_NONE && reading->ledger->entries[at].stream == stream) {
        head = at;
        find_path(reading, at);
        expect_path(reading, iter);
    }
    reading->own = 0;
    while ((number = next(reading, iter, &entry)) != LEDGER_NONE) {
        if (entry.sequence <= sequence) {
            ledger_fail("session %u: sequence %llu does not ascend",
                        reading->session, (unsigned long long)entry.sequence);
        }
        sequence = entry.sequence;
        take_own(reading, number, &entry, &head);
        check_order(reading, number, newest);
        reading->own++;
    }
    wal_iter_close(iter);
    reading->view->heads[reading->session][stream] = head;
}

static void read_branch(struct reading *reading, uint32_t stream)
{
    uint32_t head = reading->view->heads[reading->session][stream];
    struct wal_iter *iter = begin(reading, WAL_ITER_BRANCH, stream);
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    char id[LEDGER_TEXT];

    find_path(reading, head);
    expect_path(reading, iter);
    if (next(reading, iter, &entry) != LEDGER_NONE) {
        ledger_fail("session %u: the branch goes on behind its head",
                    reading->session);
    }
    if (head != LEDGER_NONE) {
        entry_id(head, id);
        if (wal_iter_get(iter, ledger_slice(id), &entry, &error) != WAL_OK ||
            ledger_identify(reading->ledger, &entry, true) != head) {
            ledger_fail("session %u: the head cannot be read by its id: %s",
                        reading->session, error.text);
        }
    }
    wal_iter_close(iter);
}

static void check_info(struct reading *reading, uint32_t own)
{
    const struct ledger *ledger = reading->ledger;
    uint32_t at = ledger->sessions[reading->session].at;
    uint32_t head = reading->view->heads[reading->session][0];
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t inherited = 0;
    char id[LEDGER_TEXT] = "";

    if (wal_session_status(reading->handle, &info, &error) != WAL_OK) {
        ledger_fail("session %u has no status: %s", reading->session,
                    error.text);
    }
    if (head != LEDGER_NONE) {
        entry_id(head, id);
    }
    if (at != LEDGER_NONE && ledger->entries[at].stream == 0) {
        inherited = reading->view->depths[at] + 1;
    }
    if (!is_text(info.head, id) || info.inherited != inherited ||
        info.entries != (uint64_t)inherited + own ||
        (info.flags & WAL_SESSION_DAMAGED) != 0) {
        ledger_fail("session %u: status says head \"%.*s\", %llu entries of "
                    "which %llu inherited, flags %u; not \"%s\", %u, %u",
                    reading->session, (int)info.head.size,
                    (const char *)info.head.data,
                    (unsigned long long)info.entries,
                    (unsigned long long)info.inherited, info.flags, id,
                    inherited + own, inherited);
    }
}

static void read_session(struct reading *reading)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    char id[LEDGER_TEXT];
    enum wal_status status;
    uint32_t at = reading->ledger->sessions[reading->session].at;
    uint32_t own = 0;

    ledger_session_id(reading->session, id);
    status = wal_session_open(reading->store, ledger_slice(id),
                              &reading->handle, &error);
    if (status == WAL_ENOTFOUND) {
        return;
    }
    if (status != WAL_OK) {
        ledger_fail("session %u cannot be opened: %d %s", reading->session,
                    status, error.text);
    }
    if (at != LEDGER_NONE && !reading->view->entries[at]) {
        ledger_fail("session %u was forked at entry %u, which is not there",
                    reading->session, at);
    }
    reading->view->sessions[reading->session] = true;
    mix(reading, reading->session);
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_stream(reading, stream);
        own = stream == 0 ? reading->own : own;
    }
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_branch(reading, stream);
    }
    check_info(reading, own);
    wal_session_close(reading->handle);
}

/* The list names the sessions that were found, and no others. */
static void check_list(const struct reading *reading)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_list *list = NULL;
    uint64_t sequence = UINT64_MAX;
    uint32_t listed = 0;
    uint32_t there = 0;
    enum wal_status status =
        wal_list_open(reading->store, NULL, &list, &error);

    for (uint32_t i = 0; i < reading->ledger->session_count; i++) {
        there += reading->view->sessions[i];
    }
    while (status == WAL_OK) {
        info.struct_size = sizeof(info);
        status = wal_list_next(list, &info, &error);
        if (status == WAL_OK) {
            listed++;
            if (info.last_sequence >= sequence) {
                ledger_fail("the list is not in order");
            }
            sequence = info.last_sequence;
        }
    }
    wal_list_close(list);
    if (status != WAL_END || listed != there) {
        ledger_fail("the list names %u sessions of %u: %d", listed, there,
                    status);
    }
}

static void check_promises(const struct reading *reading,
                           enum ledger_loss loss)
{
    const struct ledger *ledger = reading->ledger;
    enum ledger_state needed =
        loss == LEDGER_POWER ? LEDGER_DURABLE : LEDGER_WRITTEN;

    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];
        uint32_t there = 0;
        uint32_t all = batch->count == 0 ? 1 : batch->count;

        for (uint32_t e = 0; e < batch->count; e++) {
            there += reading->view->entries[batch->first + e];
        }
        if (batch->count == 0) {
            there = reading->view->sessions[batch->session];
        }
        if (there != 0 && there != all) {
            ledger_fail("batch %u (entries %u on): %u of %u are there", i,
                        batch->first, there, all);
        }
        if (there == 0 && batch->state >= needed) {
            ledger_fail("batch %u (session %u, %u entries from %u on) was "
                        "promised (state %d, durability %u) and is lost",
                        i, batch->session, batch->count, batch->first,
                        batch->state, batch->durability);
        }
        if (there != 0 && batch->state == LEDGER_REFUSED) {
            ledger_fail("batch %u (session %u, %u entries from %u on) was "
                        "refused or dropped, and is there",
                        i, batch->session, batch->count, batch->first);
        }
    }
}

void ledger_check(const struct ledger *ledger, struct wal_store *store,
                  enum ledger_loss loss, struct ledger_view *view)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    struct ledger_view *own = calloc(1, sizeof(*own));

    WAL__ASSERT(reading != NULL && own != NULL);
    reading->ledger = ledger;
    reading->store = store;
    reading->view = own;
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        reading->session = i;
        read_session(reading);
    }
    check_list(reading);
    check_promises(reading, loss);
    if (view != NULL) {
        *view = *own;
    }
    free(own);
    free(reading);
}

void ledger_settle(struct ledger *ledger, const struct ledger_view *view)
{
    for (uint32_t i = 0; i < ledger->batch_count; i++) {
        struct ledger_batch *batch = &ledger->batches[i];
        bool there = batch->count == 0 ? view->sessions[batch->session]
                                       : view->entries[batch->first];

        batch->state = there ? LEDGER_DURABLE : LEDGER_REFUSED;
    }
}
