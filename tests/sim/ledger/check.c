/*
 * check.c - reading the entries of a session, and comparing them with the ledger (ledger.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/ledger/internal.h"

static bool is_text(struct wal_slice slice, const char *text)
{
    return slice.size == strlen(text) && memcmp(slice.data, text, slice.size) == 0;
}

enum { EVERYTHING = WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED, TAIL = 3 };

/* The last entries of a branch, read before anything else of the session. */
struct tail {
    uint32_t numbers[TAIL];
    uint64_t depths[TAIL];
    uint32_t parents[TAIL];
    uint32_t count;
};

void ledger_mix(struct ledger_checker *checker, uint64_t value)
{
    uint64_t x = (checker->view->digest ^ value) * 0x9e3779b97f4a7c15u;

    checker->view->digest = x ^ (x >> 29);
}

static void ledger_mix_text(struct ledger_checker *checker, struct wal_slice text)
{
    const uint8_t *bytes = text.data;

    for (uint64_t i = 0; i < text.size; i++) {
        ledger_mix(checker, bytes[i] + 1u);
    }
}

/* A call failed: ends the look, or fails. */
static void ledger_refuse(struct ledger_checker *checker, enum wal_status status,
                          const struct wal_error *error, const char *what)
{
    const struct ledger_look *look = checker->look;

    if (look != NULL && look->accepts(look->ctx, status, error, what)) {
        checker->refused = true;
        return;
    }
    ledger_fail("session %d: %s answers %d: %s (%s at %llu)", (int)checker->session, what, status,
                error->text, error->file, (unsigned long long)error->offset);
}

/* The way from the root to an entry, as the view has it. */
static void find_path(struct ledger_checker *checker, uint32_t entry)
{
    uint32_t size = 0;

    for (uint32_t at = entry; at != LEDGER_NONE; at = checker->view->parents[at]) {
        checker->path[size] = at;
        size++;
    }
    for (uint32_t i = 0; i < size / 2; i++) {
        uint32_t swapped = checker->path[i];

        checker->path[i] = checker->path[size - 1 - i];
        checker->path[size - 1 - i] = swapped;
    }
    checker->path_size = size;
}

static struct wal_entry_cursor *begin(struct ledger_checker *checker, uint32_t mode, uint32_t flags,
                                      uint32_t stream, uint64_t last)
{
    struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                               .mode = mode,
                                               .flags = flags,
                                               .stream = stream,
                                               .last = last};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry_cursor *cursor = NULL;
    enum wal_status status = wal_entry_cursor_open(checker->handle, &options, &cursor, &error);

    if (status != WAL_OK) {
        ledger_refuse(checker, status, &error, "opening an entry cursor");
    }
    return cursor;
}

/* The next entry, or LEDGER_NONE at the end. */
static uint32_t next(struct ledger_checker *checker, struct wal_entry_cursor *cursor,
                     struct wal_entry *entry)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;
    uint32_t number;

    entry->struct_size = sizeof(*entry);
    status = wal_entry_cursor_next(cursor, entry, &error);
    if (status == WAL_END) {
        return LEDGER_NONE;
    }
    if (status != WAL_OK) {
        ledger_refuse(checker, status, &error, "reading an entry");
        return LEDGER_NONE;
    }
    number = ledger_identify(checker->ledger, entry, true);
    if (number == LEDGER_NONE) {
        ledger_fail("session %u: \"%.*s\" (type %.*s, run %.*s, %llu bytes, "
                    "stream %u, flags %u) is not what was submitted",
                    checker->session, (int)entry->id.size, (const char *)entry->id.data,
                    (int)entry->type.size, (const char *)entry->type.data, (int)entry->run_id.size,
                    (const char *)entry->run_id.data, (unsigned long long)entry->payload.size,
                    entry->stream, entry->flags);
    }
    return number;
}

static bool reads_durable(const struct ledger_checker *checker)
{
    return checker->look != NULL && checker->look->durable;
}

static bool is_hidden(const struct ledger_checker *checker, uint32_t entry)
{
    return checker->ledger->entries[entry].kind == LEDGER_DELTA ||
           checker->view->redactions[entry] != LEDGER_NONE;
}

/* Expects the path that was found last, from a place of it on; with or without what is hidden. */
static void expect_path(struct ledger_checker *checker, struct wal_entry_cursor *cursor,
                        uint32_t from, bool hides)
{
    uint32_t above = LEDGER_NONE;
    struct wal_entry entry;

    for (uint32_t i = 0; i < checker->path_size; i++) {
        uint32_t number;

        if (hides && is_hidden(checker, checker->path[i])) {
            continue;
        }
        if (i < from) {
            above = checker->path[i];
            continue;
        }
        number = next(checker, cursor, &entry);
        if (number != checker->path[i] || entry.depth != i ||
            ledger_find_entry(checker->ledger, entry.parent_id) != above) {
            ledger_fail("session %u: entry %u of a branch is %u (depth %llu, "
                        "under \"%.*s\"), not %u under %d",
                        checker->session, i, number, (unsigned long long)entry.depth,
                        (int)entry.parent_id.size, (const char *)entry.parent_id.data,
                        checker->path[i], (int)above);
        }
        above = number;
    }
}

/* The parent that the entry must have, given the entries before it. */
static uint32_t expected_parent(const struct ledger_checker *checker, uint32_t number,
                                uint32_t head)
{
    const struct ledger_entry *recorded = &checker->ledger->entries[number];

    switch (recorded->parent_kind) {
    case LEDGER_PARENT_HEAD:
        return head;
    case LEDGER_PARENT_ENTRY:
        return recorded->parent;
    case LEDGER_PARENT_NONE:
        break;
    }
    return LEDGER_NONE;
}

static void check_entry(struct ledger_checker *checker, uint32_t number,
                        const struct wal_entry *entry)
{
    struct ledger_view *view = checker->view;

    view->entries[number] = true;
    view->sequences[number] = entry->sequence;
    view->redactions[number] = LEDGER_NONE;
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        view->redactions[number] = ledger_find_redaction(checker->ledger, entry);
    }
    ledger_mix(checker, view->redactions[number]);
}

/* The way to the fork point of a session whose source was deleted or is not read: it is seen here
 * alone. Up to the durable end, a beginning of it. */
static void check_shared(struct ledger_checker *checker, struct wal_entry_cursor *cursor,
                         uint32_t at)
{
    struct ledger_view *view = checker->view;
    uint32_t above = LEDGER_NONE;
    struct wal_entry entry;

    for (;;) {
        uint32_t number = next(checker, cursor, &entry);

        if (checker->refused || (number == LEDGER_NONE && reads_durable(checker))) {
            return;
        }
        if (number == LEDGER_NONE || ledger_find_entry(checker->ledger, entry.parent_id) != above ||
            (view->entries[number] && view->parents[number] != above)) {
            ledger_fail("session %u: entry %d is not before its fork "
                        "point %u",
                        checker->session, (int)number, at);
        }
        if (!view->entries[number]) {
            check_entry(checker, number, &entry);
            view->parents[number] = above;
            view->depths[number] = above == LEDGER_NONE ? 0 : view->depths[above] + 1;
        }
        if (number == at) {
            return;
        }
        above = number;
    }
}

static bool ledger_is_moved(const struct ledger_checker *checker, uint32_t stream);

/* One of the session's own entries, the newest so far. */
static void check_own(struct ledger_checker *checker, uint32_t number,
                      const struct wal_entry *entry, uint32_t *head)
{
    const struct ledger_entry *recorded = &checker->ledger->entries[number];
    struct ledger_view *view = checker->view;
    const struct ledger_batch *batch = &checker->ledger->batches[recorded->batch];
    uint32_t parent = ledger_find_entry(checker->ledger, entry->parent_id);
    bool follows = recorded->parent_kind == LEDGER_PARENT_HEAD;
    bool moved = follows && ledger_is_moved(checker, recorded->stream);

    if (recorded->session != checker->session || view->entries[number]) {
        ledger_fail("session %u: entry %u does not belong here, or twice", checker->session,
                    number);
    }
    if (follows && batch->expects && number == batch->first && parent != batch->expected) {
        ledger_fail("session %u: entry %u is under %d, and expected the tail "
                    "%d",
                    checker->session, number, (int)parent, (int)batch->expected);
    }
    if (parent != expected_parent(checker, number, *head) && !moved) {
        ledger_fail("session %u: the parent of entry %u is %d, not %d", checker->session, number,
                    (int)parent, (int)expected_parent(checker, number, *head));
    }
    if (parent != LEDGER_NONE && !view->entries[parent]) {
        ledger_fail("session %u: the parent %u of entry %u is not there", checker->session, parent,
                    number);
    }
    check_entry(checker, number, entry);
    view->parents[number] = parent;
    view->depths[number] = parent == LEDGER_NONE ? 0 : view->depths[parent] + 1;
    if (entry->depth != view->depths[number]) {
        ledger_fail("session %u: entry %u has depth %llu, not %u", checker->session, number,
                    (unsigned long long)entry->depth, view->depths[number]);
    }
    if ((parent == *head || moved || (recorded->flags & WAL_ENTRY_HEAD_MOVE) != 0) &&
        (recorded->flags & WAL_ENTRY_HEAD_KEEP) == 0) {
        *head = number;
    }
    ledger_mix(checker, number);
    ledger_mix(checker, parent);
    ledger_mix(checker, entry->sequence);
}

/* Entries of one actor are in the order in which it submitted them. */
static void check_order(const struct ledger_checker *checker, uint32_t number,
                        uint32_t newest[LEDGER_ACTORS])
{
    const struct ledger_batch *batch =
        &checker->ledger->batches[checker->ledger->entries[number].batch];

    if (batch->again) {
        return;
    }
    if (newest[batch->actor] != LEDGER_NONE && newest[batch->actor] >= number) {
        ledger_fail("session %u: entry %u is after entry %u", checker->session, number,
                    newest[batch->actor]);
    }
    newest[batch->actor] = number;
}

/* Where `main` is, as the store says. */
static uint32_t shown_head(struct ledger_checker *checker, uint32_t stream)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    char id[WAL_ID_SIZE] = "";
    enum wal_status status =
        wal_head_get(checker->handle, stream, ledger_slice("main"), id, &error);

    if (status != WAL_OK && status != WAL_ENOTFOUND) {
        ledger_refuse(checker, status, &error, "asking for a head");
    }
    return ledger_find_entry(checker->ledger, ledger_slice(id));
}

static void ledger_apply_main(struct ledger_checker *checker, uint32_t stream, uint64_t sequence,
                              uint64_t *after, uint32_t *head);

void ledger_read_stream(struct ledger_checker *checker, uint32_t stream)
{
    uint32_t at = checker->ledger->sessions[checker->session].at;
    uint32_t newest[LEDGER_ACTORS] = {LEDGER_NONE, LEDGER_NONE, LEDGER_NONE};
    uint32_t head = LEDGER_NONE;
    uint64_t sequence = 0;
    uint64_t moved = 0;
    struct wal_entry entry;
    struct wal_entry_cursor *cursor =
        begin(checker, WAL_ENTRY_CURSOR_ALL,
              EVERYTHING | (reads_durable(checker) ? WAL_ENTRY_CURSOR_DURABLE : 0u), stream, 0);
    uint32_t number;

    if (cursor == NULL) {
        return;
    }
    if (at != LEDGER_NONE && checker->ledger->entries[at].stream == stream) {
        head = at;
        if (checker->view->entries[at]) {
            find_path(checker, at);
            expect_path(checker, cursor, 0, false);
        } else {
            check_shared(checker, cursor, at);
        }
    }
    checker->own = 0;
    while (!checker->refused && (number = next(checker, cursor, &entry)) != LEDGER_NONE) {
        if (entry.sequence <= sequence) {
            ledger_fail("session %u: sequence %llu does not ascend", checker->session,
                        (unsigned long long)entry.sequence);
        }
        sequence = entry.sequence;
        ledger_apply_main(checker, stream, sequence, &moved, &head);
        check_own(checker, number, &entry, &head);
        check_order(checker, number, newest);
        checker->own++;
    }
    wal_entry_cursor_close(cursor);
    ledger_apply_main(checker, stream, UINT64_MAX, &moved, &head);
    if (checker->look == NULL && ledger_is_moved(checker, stream)) {
        head = shown_head(checker, stream);
    }
    checker->view->heads[checker->session][stream] = head;
}

/* Where checker since the last compaction begins. */
static uint32_t first_kept(const struct ledger_checker *checker)
{
    for (uint32_t i = checker->path_size; i > 0; i--) {
        const struct ledger_entry *recorded = &checker->ledger->entries[checker->path[i - 1]];

        for (uint32_t at = 0; at < i && recorded->kind == LEDGER_COMPACTION; at++) {
            if (checker->path[at] == recorded->target_entry) {
                return at;
            }
        }
    }
    return 0;
}

/* The branch of the head, which was found already. */
static void read_flagged(struct ledger_checker *checker, uint32_t stream, uint32_t flags)
{
    uint32_t head = checker->view->heads[checker->session][stream];
    struct wal_entry_cursor *cursor = begin(checker, WAL_ENTRY_CURSOR_BRANCH, flags, stream, 0);
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_entry entry = {.struct_size = sizeof(entry)};
    bool compact = (flags & WAL_ENTRY_CURSOR_SINCE_COMPACTION) != 0;
    enum wal_status status;
    char id[LEDGER_TEXT];

    expect_path(checker, cursor, compact ? first_kept(checker) : 0, (flags & EVERYTHING) == 0);
    if (next(checker, cursor, &entry) != LEDGER_NONE) {
        ledger_fail("session %u: the branch continues after its head", checker->session);
    }
    if (head != LEDGER_NONE) {
        ledger_entry_id(head, id);
        status = wal_entry_cursor_get(cursor, ledger_slice(id), &entry, &error);
        if ((flags & WAL_ENTRY_CURSOR_REDACTED) == 0 &&
            checker->view->redactions[head] != LEDGER_NONE) {
            if (status != WAL_EREDACTED) {
                ledger_fail("session %u: the head is redacted and answers %d", checker->session,
                            status);
            }
        } else if (status != WAL_OK || ledger_identify(checker->ledger, &entry, true) != head) {
            ledger_fail("session %u: the head cannot be read by its id: %s", checker->session,
                        error.text);
        }
    }
    wal_entry_cursor_close(cursor);
}

static void read_tail(struct ledger_checker *checker, uint32_t stream, uint32_t flags,
                      struct tail *tail)
{
    struct wal_entry_cursor *cursor = begin(checker, WAL_ENTRY_CURSOR_BRANCH, flags, stream, TAIL);
    struct wal_entry entry;
    uint32_t number;

    tail->count = 0;
    while ((number = next(checker, cursor, &entry)) != LEDGER_NONE) {
        WAL__ASSERT(tail->count < TAIL);
        tail->numbers[tail->count] = number;
        tail->depths[tail->count] = entry.depth;
        tail->parents[tail->count] = ledger_find_entry(checker->ledger, entry.parent_id);
        tail->count++;
    }
    wal_entry_cursor_close(cursor);
}

/* Whether an entry of the path before `end` is in view. */
static bool has_visible(const struct ledger_checker *checker, uint32_t end, bool hides)
{
    while (end > 0 && hides && is_hidden(checker, checker->path[end - 1])) {
        end--;
    }
    return end > 0;
}

/* The tail is the end of the path that was found last. */
static void expect_tail(const struct ledger_checker *checker, bool hides, const struct tail *tail)
{
    uint32_t at = checker->path_size;

    for (uint32_t left = tail->count; left > 0; left--) {
        uint32_t above;

        do {
            at -= at > 0;
        } while (at > 0 && hides && is_hidden(checker, checker->path[at]));
        above = at;
        do {
            above = above == 0 ? LEDGER_NONE : above - 1;
        } while (above != LEDGER_NONE && hides && is_hidden(checker, checker->path[above]));
        above = above == LEDGER_NONE ? LEDGER_NONE : checker->path[above];
        if (checker->path_size == 0 || tail->numbers[left - 1] != checker->path[at] ||
            tail->depths[left - 1] != at || tail->parents[left - 1] != above) {
            ledger_fail("session %u: of the last entries of a branch one is "
                        "%u (depth %llu, under %d), not %u under %d",
                        checker->session, tail->numbers[left - 1],
                        (unsigned long long)tail->depths[left - 1], (int)tail->parents[left - 1],
                        checker->path[at], (int)above);
        }
    }
    if (tail->count < TAIL && has_visible(checker, at, hides)) {
        ledger_fail("session %u: of the last entries of a branch only %u are "
                    "there",
                    checker->session, tail->count);
    }
}

static void read_branch(struct ledger_checker *checker, uint32_t stream, const struct tail tails[2])
{
    find_path(checker, checker->view->heads[checker->session][stream]);
    expect_tail(checker, false, &tails[0]);
    expect_tail(checker, true, &tails[1]);
    read_flagged(checker, stream, EVERYTHING);
    read_flagged(checker, stream, 0);
    read_flagged(checker, stream, WAL_ENTRY_CURSOR_SINCE_COMPACTION);
}

static void ledger_check_update(struct ledger_checker *checker,
                                const struct wal_session_info *info);

static void check_info(struct ledger_checker *checker, uint32_t own)
{
    const struct ledger *ledger = checker->ledger;
    uint32_t at = ledger->sessions[checker->session].at;
    uint32_t head = checker->view->heads[checker->session][0];
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t inherited = 0;
    char id[LEDGER_TEXT] = "";

    if (wal_session_get_info(checker->handle, &info, &error) != WAL_OK) {
        ledger_fail("session %u has no status: %s", checker->session, error.text);
    }
    if (head != LEDGER_NONE) {
        ledger_entry_id(head, id);
    }
    if (at != LEDGER_NONE && ledger->entries[at].stream == 0) {
        inherited = checker->view->depths[at] + 1;
    }
    if (!is_text(info.head, id) || info.inherited != inherited ||
        info.entries != (uint64_t)inherited + own || (info.flags & WAL_SESSION_DAMAGED) != 0) {
        ledger_fail("session %u: status says head \"%.*s\", %llu entries of "
                    "which %llu inherited, flags %u; not \"%s\", %u, %u",
                    checker->session, (int)info.head.size, (const char *)info.head.data,
                    (unsigned long long)info.entries, (unsigned long long)info.inherited,
                    info.flags, id, inherited + own, inherited);
    }
    ledger_mix(checker, info.bytes);
    ledger_check_update(checker, &info);
}

void ledger_read_session(struct ledger_checker *checker)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct tail tails[LEDGER_STREAMS][2];
    char id[LEDGER_TEXT];
    enum wal_status status;
    uint32_t at = checker->ledger->sessions[checker->session].at;
    uint32_t own = 0;

    checker->handle = NULL;
    ledger_session_id(checker->session, id);
    status = wal_session_open(checker->store, ledger_slice(id), &checker->handle, &error);
    if (status == WAL_ENOTFOUND) {
        return;
    }
    if (status != WAL_OK) {
        ledger_fail("session %u cannot be opened: %d %s", checker->session, status, error.text);
    }
    if (at != LEDGER_NONE && !checker->view->entries[at] &&
        !ledger_may_be_deleted(checker->ledger, checker->ledger->entries[at].session)) {
        ledger_fail("session %u was forked at entry %u, which is not there", checker->session, at);
    }
    checker->view->sessions[checker->session] = true;
    ledger_mix(checker, checker->session);
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_tail(checker, stream, EVERYTHING, &tails[stream][0]);
        read_tail(checker, stream, 0, &tails[stream][1]);
    }
    ledger_check_documents(checker);
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        ledger_read_stream(checker, stream);
        own = stream == 0 ? checker->own : own;
    }
    for (uint32_t stream = 0; stream < LEDGER_STREAMS; stream++) {
        read_branch(checker, stream, tails[stream]);
    }
    ledger_check_heads(checker);
    check_info(checker, own);
    wal_session_close(checker->handle);
}

/* --- comparing documents, heads and metadata with the ledger -------------- */

/* Of a session, or of the store. */
static struct ledger_check_documents *list_of(struct ledger_checker *checker, uint32_t session)
{
    return &checker->documents[session == LEDGER_NONE ? LEDGER_SESSIONS : session];
}

/* --- documents ---------------------------------------------------------- */

static struct wal_doc_cursor *documents_begin(struct ledger_checker *checker, uint32_t flags)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options), .flags = flags};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status =
        wal_doc_cursor_open(checker->store, checker->handle, &options, &docs, &error);

    if (status != WAL_OK) {
        ledger_refuse(checker, status, &error, "opening documents");
    }
    return docs;
}

static bool documents_next(struct ledger_checker *checker, struct wal_doc_cursor *docs,
                           struct wal_doc *doc)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    *doc = (struct wal_doc){.struct_size = sizeof(*doc)};
    status = wal_doc_cursor_next(docs, doc, &error);
    if (status != WAL_OK && status != WAL_END) {
        ledger_refuse(checker, status, &error, "reading documents");
    }
    return status == WAL_OK;
}

/* The deletion of what this part put, by the session or one above it. */
static uint32_t deletion_of(const struct ledger_checker *checker, uint32_t put)
{
    const struct ledger *ledger = checker->ledger;
    uint32_t session = checker->session;

    for (;;) {
        for (uint32_t i = 0; i < ledger->part_count; i++) {
            if (ledger->parts[i].kind == LEDGER_DELETE_DOC && ledger->parts[i].target == put &&
                ledger->parts[i].session == session) {
                return i;
            }
        }
        if (session == LEDGER_NONE) {
            return LEDGER_NONE;
        }
        session = ledger->sessions[session].source;
        if (session == LEDGER_NONE) {
            return LEDGER_NONE;
        }
    }
}

static bool may_have(const struct ledger_checker *checker, uint32_t part)
{
    uint32_t of = checker->ledger->parts[part].session;

    return of == LEDGER_NONE ? checker->session == LEDGER_NONE
                             : ledger_descends(checker->ledger, checker->session, of);
}

static int by_version(const void *left, const void *right)
{
    const struct ledger_version *a = left;
    const struct ledger_version *b = right;

    return a->version < b->version ? -1 : a->version > b->version;
}

/* Versions come newest first: the version after a deletion identifies it. */
static void check_history(struct ledger_checker *checker, struct ledger_check_documents *list)
{
    struct wal_doc_cursor *docs = documents_begin(checker, WAL_DOC_CURSOR_HISTORY);
    uint64_t deleted = 0;
    struct wal_doc doc;

    while (docs != NULL && documents_next(checker, docs, &doc)) {
        uint32_t part;

        if ((doc.flags & WAL_DOC_DELETE) != 0) {
            if (deleted != 0) {
                ledger_fail("session %d: \"%.*s\" is deleted twice", (int)checker->session,
                            (int)doc.key.size, (const char *)doc.key.data);
            }
            deleted = doc.version;
            continue;
        }
        part = ledger_find_document(checker->ledger, &doc);
        if (part == LEDGER_NONE || !may_have(checker, part) || list->count + 2 > LEDGER_PARTS) {
            ledger_fail("session %d: version %llu of document \"%.*s\" was not "
                        "put here",
                        (int)checker->session, (unsigned long long)doc.version, (int)doc.key.size,
                        (const char *)doc.key.data);
        }
        list->at[list->count] = (struct ledger_version){doc.version, part};
        list->count++;
        if (deleted != 0) {
            part = deletion_of(checker, part);
            if (part == LEDGER_NONE || deleted <= doc.version) {
                ledger_fail("session %d: a document was lost, not deleted", (int)checker->session);
            }
            list->at[list->count] = (struct ledger_version){deleted, part};
            list->count++;
            deleted = 0;
        }
    }
    wal_doc_cursor_close(docs);
    if (deleted != 0 && !checker->refused) {
        ledger_fail("session %d: what was deleted was never there", (int)checker->session);
    }
    qsort(list->at, list->count, sizeof(list->at[0]), by_version);
}

/* Inherited versions are a prefix of the source's versions. */
static void check_inherited(struct ledger_checker *checker,
                            const struct ledger_check_documents *list, uint32_t inherited)
{
    uint32_t source = checker->session == LEDGER_NONE
                          ? LEDGER_NONE
                          : checker->ledger->sessions[checker->session].source;
    const struct ledger_check_documents *other;

    if (source == LEDGER_NONE) {
        if (inherited != 0) {
            ledger_fail("session %d has documents of another", (int)checker->session);
        }
        return;
    }
    if (!checker->view->sessions[source]) {
        return;
    }
    other = list_of(checker, source);
    for (uint32_t i = 0; i < inherited; i++) {
        if (i < other->count && list->at[i].part == other->at[i].part &&
            list->at[i].version == other->at[i].version) {
            continue;
        }
        ledger_fail("session %u does not have the documents that session %u "
                    "had",
                    checker->session, source);
    }
}

/* A version that was put on the condition that another is the newest one follows that. */
static void check_expected(const struct ledger_checker *checker,
                           const struct ledger_check_documents *list, uint32_t place)
{
    const struct ledger *ledger = checker->ledger;
    const struct ledger_part *part = &ledger->parts[list->at[place].part];
    uint64_t before = 0;

    for (uint32_t i = 0; i < place; i++) {
        const struct ledger_part *other = &ledger->parts[list->at[i].part];

        if (other->key == part->key) {
            before = other->kind == LEDGER_PUT_DOC ? list->at[i].version : 0;
        }
    }
    if (part->expects && part->version != before) {
        ledger_fail("session %d: part %u follows version %llu, and expected "
                    "%llu",
                    (int)checker->session, list->at[place].part, (unsigned long long)before,
                    (unsigned long long)part->version);
    }
}

/* Own versions are in the order of each actor, and adjacent within a batch. */
static void check_versions(struct ledger_checker *checker,
                           const struct ledger_check_documents *list)
{
    const struct ledger *ledger = checker->ledger;
    uint32_t newest[LEDGER_ACTORS] = {LEDGER_NONE, LEDGER_NONE, LEDGER_NONE};
    uint32_t inherited = 0;
    bool own = false;

    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t part = list->at[i].part;
        const struct ledger_batch *batch = &ledger->batches[ledger->parts[part].batch];

        if (i > 0 && list->at[i].version == list->at[i - 1].version) {
            ledger_fail("session %d: a version is given twice", (int)checker->session);
        }
        ledger_mix(checker, part);
        ledger_mix(checker, list->at[i].version);
        if (ledger->parts[part].session != checker->session) {
            inherited++;
            if (own) {
                ledger_fail("session %d inherited part %u after its own", (int)checker->session,
                            part);
            }
            continue;
        }
        own = true;
        if (checker->view->parts[part] == LEDGER_VISIBLE) {
            ledger_fail("session %d: part %u is there twice", (int)checker->session, part);
        }
        checker->view->parts[part] = LEDGER_VISIBLE;
        checker->view->versions[part] = list->at[i].version;
        if (!batch->again && newest[batch->actor] != LEDGER_NONE && newest[batch->actor] >= part) {
            ledger_fail("session %d: part %u is after part %u", (int)checker->session, part,
                        newest[batch->actor]);
        }
        newest[batch->actor] = part;
        check_expected(checker, list, i);
        if (i > 0 && ledger->parts[list->at[i - 1].part].batch == ledger->parts[part].batch &&
            list->at[i].version - list->at[i - 1].version != part - list->at[i - 1].part) {
            ledger_fail("session %d: part %u is separated from its batch", (int)checker->session,
                        part);
        }
    }
    check_inherited(checker, list, inherited);
}

/* The current documents are the newest version of each key. */
static void check_present(struct ledger_checker *checker, const struct ledger_check_documents *list)
{
    const struct ledger *ledger = checker->ledger;
    struct wal_doc_cursor *docs = documents_begin(checker, 0);
    uint32_t there = 0;
    struct wal_doc doc;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct ledger_part *part = &ledger->parts[list->at[i].part];
        bool newest = part->kind == LEDGER_PUT_DOC;

        for (uint32_t j = i + 1; j < list->count && newest; j++) {
            newest = ledger->parts[list->at[j].part].key != part->key;
        }
        there += newest;
    }
    while (documents_next(checker, docs, &doc)) {
        uint32_t part = ledger_find_document(ledger, &doc);
        bool newest = part != LEDGER_NONE;

        for (uint32_t i = 0; i < list->count && newest; i++) {
            newest = ledger->parts[list->at[i].part].key != ledger->parts[part].key ||
                     list->at[i].version <= doc.version;
        }
        if (!newest || there == 0) {
            ledger_fail("session %d: \"%.*s\" is not as it was put last", (int)checker->session,
                        (int)doc.key.size, (const char *)doc.key.data);
        }
        there--;
    }
    wal_doc_cursor_close(docs);
    if (there != 0) {
        ledger_fail("session %d: %u documents are not listed", (int)checker->session, there);
    }
}

void ledger_check_documents(struct ledger_checker *checker)
{
    struct ledger_check_documents *list = list_of(checker, checker->session);
    const struct ledger *ledger = checker->ledger;

    for (uint32_t i = 0; i < ledger->part_count; i++) {
        enum ledger_part_kind kind = ledger->parts[i].kind;

        if (ledger->parts[i].session == checker->session &&
            (kind == LEDGER_PUT_DOC || kind == LEDGER_DELETE_DOC)) {
            checker->view->parts[i] = LEDGER_ABSENT;
        }
    }
    list->count = 0;
    check_history(checker, list);
    if (checker->refused) {
        return;
    }
    check_versions(checker, list);
    if (checker->look == NULL) {
        check_present(checker, list);
    }
}

/* --- heads -------------------------------------------------------------- */

/* The version of a document of the part's batch; 0: it is not there. */
static uint64_t position_of(const struct ledger_checker *checker, uint32_t part)
{
    const struct ledger *ledger = checker->ledger;
    const struct ledger_batch *batch = &ledger->batches[ledger->parts[part].batch];

    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (ledger->parts[batch->first_part + i].kind == LEDGER_PUT_DOC) {
            return checker->view->versions[batch->first_part + i];
        }
    }
    return 0;
}

/* Moves `main` to where the parts seen before this sequence number moved it;
 * *after becomes the position of the newest of them. */
static void ledger_apply_main(struct ledger_checker *checker, uint32_t stream, uint64_t sequence,
                              uint64_t *after, uint32_t *head)
{
    const struct ledger *ledger = checker->ledger;
    uint64_t newest = *after;

    for (uint32_t i = 0; i < ledger->part_count; i++) {
        const struct ledger_part *part = &ledger->parts[i];
        uint64_t place;

        if (part->kind != LEDGER_MOVE_MAIN || part->session != checker->session ||
            part->key != stream) {
            continue;
        }
        place = position_of(checker, i);
        if (place > newest && place < sequence) {
            newest = place;
            *head = part->target;
        }
    }
    *after = newest;
}

/* Whether `main` of the stream was, or may have been, moved by a part whose position is not known:
 * nothing follows then from the entries before. */
static bool ledger_is_moved(const struct ledger_checker *checker, uint32_t stream)
{
    const struct ledger *ledger = checker->ledger;

    for (uint32_t i = 0; i < ledger->part_count; i++) {
        const struct ledger_part *part = &ledger->parts[i];
        const struct ledger_batch *batch = &ledger->batches[part->batch];

        if (part->kind == LEDGER_MOVE_MAIN && part->key == stream &&
            part->session == checker->session && batch->part_count == 1 &&
            batch->state != LEDGER_REFUSED) {
            return true;
        }
    }
    return false;
}

/* Whether the part was handed in after the other one had been answered. */
static bool is_after(const struct ledger *ledger, uint32_t part, uint32_t other)
{
    return ledger->batches[ledger->parts[part].batch].begin >
           ledger->batches[ledger->parts[other].batch].end;
}

/* The part that the name shows is there, and nothing newer. */
static void check_head(struct ledger_checker *checker, uint32_t key, uint32_t shown)
{
    const struct ledger *ledger = checker->ledger;
    uint32_t last = shown;

    for (uint32_t i = 0; i < ledger->part_count && shown == LEDGER_NONE; i++) {
        const struct ledger_part *part = &ledger->parts[i];

        if (part->kind == LEDGER_REMOVE_HEAD && part->key == key &&
            part->session == checker->session && position_of(checker, i) != 0) {
            last = i;
        }
    }
    for (uint32_t i = 0; i < ledger->part_count; i++) {
        const struct ledger_part *part = &ledger->parts[i];

        if ((part->kind != LEDGER_MOVE_HEAD && part->kind != LEDGER_REMOVE_HEAD) ||
            part->key != key || part->session != checker->session) {
            continue;
        }
        if (i == last) {
            checker->view->parts[i] = LEDGER_VISIBLE;
        } else if (last == LEDGER_NONE || is_after(ledger, i, last)) {
            checker->view->parts[i] = LEDGER_ABSENT;
        }
    }
}

void ledger_check_heads(struct ledger_checker *checker)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t shown[LEDGER_HEADS_MAX] = {LEDGER_NONE, LEDGER_NONE, LEDGER_NONE};
    uint32_t mains = 0;
    struct wal_head_cursor *heads = NULL;
    enum wal_status status = wal_head_cursor_open(checker->handle, &heads, &error);

    while (status == WAL_OK && (status = wal_head_cursor_next(heads, &head, &error)) == WAL_OK) {
        uint32_t entry = ledger_find_entry(checker->ledger, head.entry_id);
        uint32_t part = ledger_find_head(checker->ledger, &head);

        ledger_mix(checker, head.version);
        ledger_mix(checker, entry);
        ledger_mix_text(checker, head.name);
        if (head.stream < LEDGER_STREAMS && head.name.size == 4 &&
            memcmp(head.name.data, "main", 4) == 0) {
            mains++;
            if (checker->look == NULL &&
                (entry == LEDGER_NONE ||
                 entry != checker->view->heads[checker->session][head.stream])) {
                ledger_fail("session %u: main of stream %u is at %d, not %d", checker->session,
                            head.stream, (int)entry,
                            (int)checker->view->heads[checker->session][head.stream]);
            }
            continue;
        }
        if (part == LEDGER_NONE || checker->ledger->parts[part].session != checker->session ||
            (checker->look == NULL && !checker->view->entries[entry])) {
            ledger_fail("session %u: head \"%.*s\" (%.*s) was never put there", checker->session,
                        (int)head.name.size, (const char *)head.name.data, (int)head.note.size,
                        (const char *)head.note.data);
        }
        shown[checker->ledger->parts[part].key] = part;
    }
    wal_head_cursor_close(heads);
    if (status != WAL_END) {
        ledger_refuse(checker, status, &error, "reading heads");
        return;
    }
    for (uint32_t i = 0; i < LEDGER_STREAMS && checker->look == NULL; i++) {
        mains -= checker->view->heads[checker->session][i] != LEDGER_NONE;
    }
    if (checker->look == NULL && mains != 0) {
        ledger_fail("session %u: its heads are not all listed", checker->session);
    }
    for (uint32_t i = 0; i < LEDGER_HEADS_MAX; i++) {
        check_head(checker, i, shown[i]);
    }
}

/* --- metadata ----------------------------------------------------------- */

/* The session's fields. */
static void ledger_check_update(struct ledger_checker *checker, const struct wal_session_info *info)
{
    static const char made[] = "{\"made\":\"by hand\"}";
    const struct ledger *ledger = checker->ledger;
    uint32_t shown = ledger_find_update(ledger, info);
    bool original = info->metadata.size == sizeof(made) - 1 &&
                    memcmp(info->metadata.data, made, sizeof(made) - 1) == 0 &&
                    info->title.size == 7;

    ledger_mix_text(checker, info->metadata);
    ledger_mix_text(checker, info->title);
    ledger_mix_text(checker, info->cwd);
    ledger_mix_text(checker, info->first_text);
    ledger_mix(checker, info->metadata_version);
    ledger_mix(checker, info->documents);
    ledger_mix(checker, info->schema_version);
    ledger_mix(checker, info->last_sequence);
    ledger_mix(checker, (uint64_t)info->created_ms);
    ledger_mix(checker, (uint64_t)info->updated_ms);
    if (ledger->counts) {
        return;
    }
    if (shown == LEDGER_NONE
            ? !original
            : !ledger_descends(ledger, checker->session, ledger->parts[shown].session)) {
        ledger_fail("session %u: metadata \"%.*s\" and title \"%.*s\" were "
                    "never put there together",
                    checker->session, (int)info->metadata.size, (const char *)info->metadata.data,
                    (int)info->title.size, (const char *)info->title.data);
    }
    if (shown != LEDGER_NONE && ledger->parts[shown].session != checker->session) {
        shown = LEDGER_NONE; /* it came with the fork */
    }
    for (uint32_t i = 0; i < ledger->part_count; i++) {
        if (ledger->parts[i].kind != LEDGER_UPDATE ||
            ledger->parts[i].session != checker->session) {
            continue;
        }
        if (i == shown) {
            checker->view->parts[i] = LEDGER_VISIBLE;
        } else if (shown == LEDGER_NONE || i > shown) {
            checker->view->parts[i] = LEDGER_ABSENT;
        }
    }
}
