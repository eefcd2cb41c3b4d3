/*
 * check.c - reading a session and comparing it with the ledger: batches
 * are whole, each is there once, in one piece and under the parent that follows
 * from the entries before it; what must be there is (sched.h).
 */
#include "tests/sim/sched/internal.h"

#include <stdio.h>
#include <string.h>

/* ----------------------------------------------------------- reading --- */

void sched__mix(uint64_t *digest, uint64_t value)
{
    uint64_t x = (*digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);

    *digest = x ^ (x >> 29);
}

/* What was read is the entry that was submitted, and new in this view. */
static uint32_t identify(struct sched_process *process, uint32_t session,
                         const struct wal_entry *entry)
{
    struct sched *sched = process->sched;
    uint32_t number = sched__parse_number(entry->id, 'e');
    uint8_t *expected = process->expectation;

    if (number >= sched->ledger.entry_count) {
        sched__fail(sched, "session %u: \"%.*s\" was never submitted", session,
                    (int)entry->id.size, (const char *)entry->id.data);
        return 0;
    }
    sched__fill_payload(sched, number, expected);
    if (entry->payload.size != sched->ledger.entries[number].size ||
        memcmp(entry->payload.data, expected, entry->payload.size) != 0) {
        sched__fail(sched, "session %u: entry %u has another payload", session,
                    number);
    }
    if (entry->payload.size > SCHED_INLINE) {
        sched->counts->outcomes[SCHED_BLOBS_READ]++;
    }
    for (uint32_t i = 0; i < process->view.count; i++) {
        if (process->view.entries[i] == number) {
            sched__fail(sched, "session %u: entry %u is there twice", session,
                        number);
        }
    }
    return number;
}

/* Takes everything into the view; false: it failed as it may. */
static bool fill_view(struct sched_process *process,
                      struct wal_entry_cursor *cursor, uint32_t session)
{
    struct sched_view *view = &process->view;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    enum wal_status status;

    memset(view, 0, sizeof(*view));
    while ((status = wal_entry_cursor_next(cursor, &entry, &error)) == WAL_OK) {
        uint32_t number = identify(process, session, &entry);

        if (process->sched->failed) {
            return false;
        }
        view->entries[view->count] = number;
        view->sequences[view->count] = entry.sequence;
        view->parents[view->count] =
            entry.parent_id.size == 0
                ? SCHED_NONE
                : sched__parse_number(entry.parent_id, 'e');
        sched__mix(&view->digest, number);
        sched__mix(&view->digest, entry.sequence);
        sched__mix(&view->digest, view->parents[view->count]);
        view->count++;
    }
    return status == WAL_END ||
           sched__check_status(process, status, &error, "reading an entry");
}

/* ---------------------------------------------------------- the tree --- */

static bool is_before(const struct sched_view *view, uint32_t place,
                      uint32_t entry)
{
    for (uint32_t i = 0; i < place; i++) {
        if (view->entries[i] == entry) {
            return true;
        }
    }
    return false;
}

/* The shared part is the way to the fork point; up to the durable end, a
 * beginning of it. */
static void check_shared(struct sched_process *process, uint32_t session,
                         bool durable)
{
    struct sched *sched = process->sched;
    struct sched_view *view = &process->view;
    uint32_t at = sched->ledger.sessions[session].at;

    view->shared = 0;
    view->head = SCHED_NONE;
    while (at != SCHED_NONE && view->head != at) {
        uint32_t place = view->shared;

        if (place == view->count && durable) {
            return;
        }
        if (place == view->count || view->parents[place] != view->head ||
            sched->ledger.entries[view->entries[place]].session == session) {
            sched__fail(sched,
                        "session %u: the way to its fork point %u is "
                        "not there",
                        session, at);
            return;
        }
        view->head = view->entries[place];
        view->shared++;
    }
}

/* An entry of this session: under the parent that it named, or the head. */
static void check_own(struct sched_process *process, uint32_t session,
                      uint32_t place)
{
    struct sched *sched = process->sched;
    struct sched_view *view = &process->view;
    const struct sched_entry *recorded =
        &sched->ledger.entries[view->entries[place]];
    const struct sched_op *op = &sched->ledger.ops[recorded->op];
    uint32_t parent = view->parents[place];
    uint32_t expected =
        recorded->parent != SCHED_NONE ? recorded->parent : view->head;
    bool moved = sched->moves_main && recorded->parent == SCHED_NONE;

    if (recorded->session != session) {
        sched__fail(sched, "session %u: entry %u belongs to another", session,
                    view->entries[place]);
    }
    if (parent != SCHED_NONE && !is_before(view, place, parent)) {
        sched__fail(sched, "session %u: entry %u is before its parent %u",
                    session, view->entries[place], parent);
    }
    if (parent != expected && !moved) {
        sched__fail(sched, "session %u: entry %u is under %d, not %d", session,
                    view->entries[place], (int)parent, (int)expected);
    }
    if (op->expects && view->entries[place] == op->first &&
        recorded->parent == SCHED_NONE && parent != op->expected) {
        sched__fail(sched,
                    "session %u: entry %u is under %d, and expected the tail "
                    "%d",
                    session, view->entries[place], (int)parent,
                    (int)op->expected);
    }
    if (parent == view->head || moved) {
        view->head = view->entries[place];
    }
}

/* A batch is there in one piece, in its order. */
static void check_batch(struct sched_process *process, uint32_t session,
                        uint32_t place)
{
    struct sched *sched = process->sched;
    const struct sched_view *view = &process->view;
    uint32_t entry = view->entries[place];
    const struct sched_op *op =
        &sched->ledger.ops[sched->ledger.entries[entry].op];
    uint32_t rank = entry - op->first;

    if (rank > 0 &&
        (place == view->shared || view->entries[place - 1] != entry - 1 ||
         view->sequences[place - 1] + 1 != view->sequences[place])) {
        sched__fail(sched,
                    "session %u: entry %u does not follow the "
                    "entry before it in its batch",
                    session, entry);
    }
    if (rank + 1 < op->count &&
        (place + 1 == view->count || view->entries[place + 1] != entry + 1)) {
        sched__fail(sched, "session %u: the batch of entry %u is not whole",
                    session, entry);
    }
}

/* -------------------------------------------------------- the ledger --- */

static void check_promises(struct sched_process *process, uint32_t session,
                           bool durable, uint64_t since)
{
    struct sched *sched = process->sched;

    for (uint32_t i = 0; i < sched->ledger.op_count; i++) {
        const struct sched_op *op = &sched->ledger.ops[i];

        if (op->kind != SCHED_APPEND || op->session != session) {
            continue;
        }
        if (is_before(&process->view, process->view.count, op->first)) {
            sched__mark_visible(sched, i, durable);
        } else if ((durable ? op->durable_since : op->known) <= since) {
            sched__fail(sched,
                        "session %u: batch %u (entries %u to %u) is known to "
                        "be there (state %d, since step %llu) and is not%s",
                        session, i, op->first, op->first + op->count - 1,
                        op->state, (unsigned long long)op->known,
                        durable ? ", durably" : "");
        }
        if (sched->failed) {
            return;
        }
    }
}

bool sched__read(struct sched_process *process, struct wal_session *handle,
                 uint32_t session, bool durable, uint64_t since)
{
    struct sched *sched = process->sched;
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .flags = durable ? WAL_ENTRY_CURSOR_DURABLE : 0};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status =
        wal_entry_cursor_open(handle, &options, &cursor, &error);
    bool whole;

    if (!sched__check_status(process, status, &error, "opening an iterator")) {
        return false;
    }
    whole = fill_view(process, cursor, session);
    wal_entry_cursor_close(cursor);
    sched->counts->outcomes[SCHED_READS]++;
    if (!whole || sched->failed) {
        return false;
    }
    check_shared(process, session, durable);
    for (uint32_t i = process->view.shared;
         i < process->view.count && !sched->failed; i++) {
        check_own(process, session, i);
        if (!sched->failed) {
            check_batch(process, session, i);
        }
    }
    if (!sched->failed && !process->read_only) {
        check_promises(process, session, durable, since);
    }
    return !sched->failed;
}

/* -------------------------------------------------------- everything --- */

static void check_session(struct sched_process *process, uint32_t session,
                          uint64_t *digest)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = NULL;
    enum wal_status status;
    char id[SCHED_TEXT];

    sched__session_id(session, id);
    status =
        wal_session_open(process->store, sched__slice(id), &handle, &error);
    if (status == WAL_ENOTFOUND &&
        !sched__must_exist(sched, session, sched->steps)) {
        return;
    }
    if (status != WAL_OK || !sched__may_exist(sched, session)) {
        sched__fail(sched, "session %u: opening it answers %d: %s", session,
                    status, error.text);
        return;
    }
    process->sessions[session] = handle;
    sched__mix(digest, session);
    (void)(sched__read(process, handle, session, false, sched->steps) &&
           sched__read_documents(process, session, digest, sched->steps) &&
           sched__read_heads(process, session, digest, sched->steps) &&
           sched__read_counter(process, session, digest, sched->steps));
    sched__mix(digest, process->view.digest);
    wal_session_close(handle);
    process->sessions[session] = NULL;
}

void sched__check_all(struct sched_process *process, uint64_t *digest)
{
    struct sched *sched = process->sched;

    *digest = 0;
    for (uint32_t i = 0; i < sched->ledger.session_count && !sched->failed;
         i++) {
        check_session(process, i, digest);
    }
    if (!sched->failed) {
        (void)sched__read_documents(process, SCHED_NONE, digest, sched->steps);
    }
}
