/*
 * model_check.c - reading everything that a store holds, and comparing it with
 * the ledger (model.h).
 */
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"
#include "tests/sim/model_reading.h"

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) &&
           memcmp(slice.data, text, slice.size) == 0;
}

enum {
    EVERYTHING = WAL_ITER_DELTAS | WAL_ITER_REDACTED
};

void reading_mix(struct reading *reading, uint64_t value)
{
    uint64_t x = (reading->view->digest ^ value) * 0x9e3779b97f4a7c15u;

    reading->view->digest = x ^ (x >> 29);
}

void reading_mix_text(struct reading *reading, struct wal_slice text)
{
    const uint8_t *bytes = text.data;

    for (uint64_t i = 0; i < text.size; i++) {
        reading_mix(reading, bytes[i] + 1u);
    }
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
                              uint32_t flags, uint32_t stream)
{
    struct wal_iter_options options = {.struct_size = sizeof(options),
                                       .mode = mode,
                                       .flags = flags,
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

static bool is_hidden(const struct reading *reading, uint32_t entry)
{
    return reading->ledger->entries[entry].kind == LEDGER_DELTA ||
           reading->view->redactions[entry] != LEDGER_NONE;
}

/* Expects the path that was found last, from a place of it on; with or without
 * what is hidden. */
static void expect_path(struct reading *reading, struct wal_iter *iter,
                        uint32_t from, bool hides)
{
    uint32_t above = LEDGER_NONE;
    struct wal_entry entry;

    for (uint32_t i = 0; i < reading->path_size; i++) {
        uint32_t number;

        if (hides && is_hidden(reading, reading->path[i])) {
            continue;
        }
        if (i < from) {
            above = reading->path[i];
            continue;
        }
        number = next(reading, iter, &entry);
        if (number != reading->path[i] || entry.depth != i ||
            ledger_entry_of(reading->ledger, entry.parent_id) != above) {
            ledger_fail(
                "session %u: entry %u of a branch is %u (depth %llu, "
                "under \"%.*s\"), not %u under %d",
                reading->session, i, number, (unsigned long long)entry.depth,
                (int)entry.parent_id.size, (const char *)entry.parent_id.data,
                reading->path[i], (int)above);
        }
        above = number;
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

static void take_entry(struct reading *reading, uint32_t number,
                       const struct wal_entry *entry)
{
    struct ledger_view *view = reading->view;

    view->entries[number] = true;
    view->sequences[number] = entry->sequence;
    view->redactions[number] = LEDGER_NONE;
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        view->redactions[number] = ledger_redaction_of(reading->ledger, entry);
    }
    reading_mix(reading, view->redactions[number]);
}

/* The way to the fork point of a session whose source was deleted: it is seen
 * here alone. */
static void take_shared(struct reading *reading, struct wal_iter *iter,
                        uint32_t at)
{
    struct ledger_view *view = reading->view;
    uint32_t above = LEDGER_NONE;
    struct wal_entry entry;

    for (;;) {
        uint32_t number = next(reading, iter, &entry);

        if (number == LEDGER_NONE ||
            ledger_entry_of(reading->ledger, entry.parent_id) != above ||
            (view->entries[number] && view->parents[number] != above)) {
            ledger_fail("session %u: entry %d does not stand before its fork "
                        "point %u",
                        reading->session, (int)number, at);
        }
        if (!view->entries[number]) {
            take_entry(reading, number, &entry);
            view->parents[number] = above;
            view->depths[number] =
                above == LEDGER_NONE ? 0 : view->depths[above] + 1;
        }
        if (number == at) {
            return;
        }
        above = number;
    }
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
    take_entry(reading, number, entry);
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
    reading_mix(reading, number);
    reading_mix(reading, parent);
    reading_mix(reading, entry->sequence);
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
    uint64_t moved = 0;
    struct wal_entry entry;
    struct wal_iter *iter = begin(reading, WAL_ITER_ALL, EVERYTHING, stream);
    uint32_t number;

    if (at != LEDGER_NONE && reading->ledger->entries[at].stream == stream) {
        head = at;
        if (reading->view->entries[at]) {
            find_path(reading, at);
            expect_path(reading, iter, 0, false);
        } else {
            take_shared(reading, iter, at);
        }
    }
    reading->own = 0;
    while ((number = next(reading, iter, &entry)) != LEDGER_NONE) {
        if (entry.sequence <= sequence) {
            ledger_fail("session %u: sequence %llu does not ascend",
                        reading->session, (unsigned long long)entry.sequence);
        }
        sequence = entry.sequence;
        reading_move_main(reading, stream, sequence, &moved, &head);
        take_own(reading, number, &entry, &head);
        check_order(reading, number, newest);
        reading->own++;
    }
    wal_iter_close(iter);
    reading_move_main(reading, stream, UINT64_MAX, &moved, &head);
    reading->view->heads[reading->session][stream] = head;
}

/* Where reading since the last compaction begins. */
static uint32_t first_kept(const struct reading *reading)
{
    for (uint32_t i = reading->path_size; i > 0; i--) {
        const struct ledger_entry *told =
            &reading->ledger->entries[reading->path[i - 1]];

        for (uint32_t at = 0; at < i && told->kind == LEDGER_COMPACTION; at++) {
            if (reading->path[at] == told->refers) {
                return at;
            }
        }
    }
    return 0;
}

/* The branch of the head, which was found already. */
static void read_flagged(struct reading *reading, uint32_t stream,
                         uint32_t flags)
{
    uint32_t head = reading->view->heads[reading->session][stream];
    struct wal_iter *iter = begin(reading, WAL_ITER_BRANCH, flags, stream);
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    bool compact = (flags & WAL_ITER_SINCE_COMPACTION) != 0;
    enum wal_status status;
    char id[LEDGER_TEXT];

    expect_path(reading, iter, compact ? first_kept(reading) : 0,
                (flags & EVERYTHING) == 0);
    if (next(reading, iter, &entry) != LEDGER_NONE) {
        ledger_fail("session %u: the branch goes on behind its head",
                    reading->session);
    }
    if (head != LEDGER_NONE) {
        ledger_entry_id(head, id);
        status = wal_iter_get(iter, ledger_slice(id), &entry, &error);
        if ((flags & WAL_ITER_REDACTED) == 0 &&
            reading->view->redactions[head] != LEDGER_NONE) {
            if (status != WAL_EREDACTED) {
                ledger_fail("session %u: the head is redacted and answers %d",
                            reading->session, status);
            }
        } else if (status != WAL_OK ||
                   ledger_identify(reading->ledger, &entry, true) != head) {
            ledger_fail("session %u: the head cannot be read by its id: %s",
                        reading->session, error.text);
        }
    }
    wal_iter_close(iter);
}

static void read_branch(struct reading *reading, uint32_t stream)
{
    find_path(reading, reading->view->heads[reading->session][stream]);
    read_flagged(reading, stream, EVERYTHING);
    read_flagged(reading, stream, 0);
    read_flagged(reading, stream, WAL_ITER_SINCE_COMPACTION);
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
    reading_mix(reading, info.bytes);
    reading_change(reading, &info);
}

static void read_session(struct reading *reading)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    char id[LEDGER_TEXT];
    enum wal_status status;
    uint32_t at = reading->ledger->sessions[reading->session].at;
    uint32_t own = 0;

    reading->handle = NULL;
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
    if (at != LEDGER_NONE && !reading->view->entries[at] &&
        !ledger_may_be_gone(reading->ledger,
                            reading->ledger->entries[at].session)) {
        ledger_fail("session %u was forked at entry %u, which is not there",
                    reading->session, at);
    }
    reading->view->sessions[reading->session] = true;
    reading_mix(reading, reading->session);
    reading_documents(reading);
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_stream(reading, stream);
        own = stream == 0 ? reading->own : own;
    }
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_branch(reading, stream);
    }
    reading_heads(reading);
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

void ledger_check(const struct ledger *ledger, struct wal_store *store,
                  enum ledger_loss loss, struct ledger_view *view)
{
    struct reading *reading = calloc(1, sizeof(*reading));
    struct ledger_view *own = calloc(1, sizeof(*own));

    WAL__ASSERT(reading != NULL && own != NULL);
    reading->ledger = ledger;
    reading->store = store;
    reading->view = own;
    reading->session = LEDGER_NONE;
    reading_documents(reading);
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        reading->session = i;
        read_session(reading);
    }
    check_list(reading);
    reading_blobs(reading, loss);
    reading_judge_redactions(reading);
    reading_judge_batches(reading, loss);
    if (view != NULL) {
        *view = *own;
    }
    free(own);
    free(reading);
}
