/*
 * model_check.c - reading everything that a store holds, and comparing it with
 * the ledger (model.h).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"
#include "tests/sim/model.h"

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           memcmp(slice.data, text, slice.size) == 0;
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
    struct wal_iter_options options = {
        .struct_size = sizeof(options), .mode = mode, .stream = stream};
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
    view->depths[number] = parent == LEDGER_NONE ? 0 : view->depths[parent] + 1;
    if (entry->depth != view->depths[number]) {
        ledger_fail("session %u: entry %u has depth %llu, not %u",
                    reading->session, number, (unsigned long long)entry->depth,
                    view->depths[number]);
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
    if (newest[batch->actor] != LEDGER_NONE && newest[batch->actor] >= number) {
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
        ledger_entry_id(head, id);
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
        ledger_entry_id(head, id);
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
    enum wal_status status = wal_list_open(reading->store, NULL, &list, &error);

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

static void check_promises(const struct reading *reading, enum ledger_loss loss)
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
