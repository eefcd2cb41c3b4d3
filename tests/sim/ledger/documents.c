/*
 * documents.c - comparing documents, heads and metadata with the ledger
 * (ledger.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/ledger/internal.h"

/* Of a session, or of the store. */
static struct ledger_check_documents *list_of(struct ledger_checker *checker,
                                              uint32_t session)
{
    return &checker
                ->documents[session == LEDGER_NONE ? LEDGER_SESSIONS : session];
}

/* --- documents ---------------------------------------------------------- */

static struct wal_doc_cursor *begin(struct ledger_checker *checker,
                                    uint32_t flags)
{
    struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                             .flags = flags};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc_cursor *docs = NULL;
    enum wal_status status = wal_doc_cursor_open(
        checker->store, checker->handle, &options, &docs, &error);

    if (status != WAL_OK) {
        ledger_refuse(checker, status, &error, "opening documents");
    }
    return docs;
}

static bool next(struct ledger_checker *checker, struct wal_doc_cursor *docs,
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
            if (ledger->parts[i].kind == LEDGER_DELETE_DOC &&
                ledger->parts[i].target == put &&
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

    return of == LEDGER_NONE
               ? checker->session == LEDGER_NONE
               : ledger_descends(checker->ledger, checker->session, of);
}

static int by_version(const void *left, const void *right)
{
    const struct ledger_version *a = left;
    const struct ledger_version *b = right;

    return a->version < b->version ? -1 : a->version > b->version;
}

/* Versions come newest first: the version after a deletion identifies it. */
static void check_history(struct ledger_checker *checker,
                          struct ledger_check_documents *list)
{
    struct wal_doc_cursor *docs = begin(checker, WAL_DOC_CURSOR_HISTORY);
    uint64_t deleted = 0;
    struct wal_doc doc;

    while (docs != NULL && next(checker, docs, &doc)) {
        uint32_t part;

        if ((doc.flags & WAL_DOC_DELETE) != 0) {
            if (deleted != 0) {
                ledger_fail("session %d: \"%.*s\" is deleted twice",
                            (int)checker->session, (int)doc.key.size,
                            (const char *)doc.key.data);
            }
            deleted = doc.version;
            continue;
        }
        part = ledger_find_document(checker->ledger, &doc);
        if (part == LEDGER_NONE || !may_have(checker, part) ||
            list->count + 2 > LEDGER_PARTS) {
            ledger_fail("session %d: version %llu of document \"%.*s\" was not "
                        "put here",
                        (int)checker->session, (unsigned long long)doc.version,
                        (int)doc.key.size, (const char *)doc.key.data);
        }
        list->at[list->count] = (struct ledger_version){doc.version, part};
        list->count++;
        if (deleted != 0) {
            part = deletion_of(checker, part);
            if (part == LEDGER_NONE || deleted <= doc.version) {
                ledger_fail("session %d: a document was lost, not deleted",
                            (int)checker->session);
            }
            list->at[list->count] = (struct ledger_version){deleted, part};
            list->count++;
            deleted = 0;
        }
    }
    wal_doc_cursor_close(docs);
    if (deleted != 0 && !checker->refused) {
        ledger_fail("session %d: what was deleted was never there",
                    (int)checker->session);
    }
    qsort(list->at, list->count, sizeof(list->at[0]), by_version);
}

/* Inherited versions are a prefix of the source's versions. */
static void check_inherited(struct ledger_checker *checker,
                            const struct ledger_check_documents *list,
                            uint32_t inherited)
{
    uint32_t source = checker->session == LEDGER_NONE
                          ? LEDGER_NONE
                          : checker->ledger->sessions[checker->session].source;
    const struct ledger_check_documents *other;

    if (source == LEDGER_NONE) {
        if (inherited != 0) {
            ledger_fail("session %d has documents of another",
                        (int)checker->session);
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

/* A version that was put on the condition that another is the newest one
 * follows that. */
static void check_expected(const struct ledger_checker *checker,
                           const struct ledger_check_documents *list,
                           uint32_t place)
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
                    (int)checker->session, list->at[place].part,
                    (unsigned long long)before,
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
        const struct ledger_batch *batch =
            &ledger->batches[ledger->parts[part].batch];

        if (i > 0 && list->at[i].version == list->at[i - 1].version) {
            ledger_fail("session %d: a version is given twice",
                        (int)checker->session);
        }
        ledger_mix(checker, part);
        ledger_mix(checker, list->at[i].version);
        if (ledger->parts[part].session != checker->session) {
            inherited++;
            if (own) {
                ledger_fail("session %d inherited part %u after its own",
                            (int)checker->session, part);
            }
            continue;
        }
        own = true;
        if (checker->view->parts[part] == LEDGER_VISIBLE) {
            ledger_fail("session %d: part %u is there twice",
                        (int)checker->session, part);
        }
        checker->view->parts[part] = LEDGER_VISIBLE;
        checker->view->versions[part] = list->at[i].version;
        if (!batch->again && newest[batch->actor] != LEDGER_NONE &&
            newest[batch->actor] >= part) {
            ledger_fail("session %d: part %u is after part %u",
                        (int)checker->session, part, newest[batch->actor]);
        }
        newest[batch->actor] = part;
        check_expected(checker, list, i);
        if (i > 0 &&
            ledger->parts[list->at[i - 1].part].batch ==
                ledger->parts[part].batch &&
            list->at[i].version - list->at[i - 1].version !=
                part - list->at[i - 1].part) {
            ledger_fail("session %d: part %u is separated from its batch",
                        (int)checker->session, part);
        }
    }
    check_inherited(checker, list, inherited);
}

/* The current documents are the newest version of each key. */
static void check_present(struct ledger_checker *checker,
                          const struct ledger_check_documents *list)
{
    const struct ledger *ledger = checker->ledger;
    struct wal_doc_cursor *docs = begin(checker, 0);
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
    while (next(checker, docs, &doc)) {
        uint32_t part = ledger_find_document(ledger, &doc);
        bool newest = part != LEDGER_NONE;

        for (uint32_t i = 0; i < list->count && newest; i++) {
            newest = ledger->parts[list->at[i].part].key !=
                         ledger->parts[part].key ||
                     list->at[i].version <= doc.version;
        }
        if (!newest || there == 0) {
            ledger_fail("session %d: \"%.*s\" is not as it was put last",
                        (int)checker->session, (int)doc.key.size,
                        (const char *)doc.key.data);
        }
        there--;
    }
    wal_doc_cursor_close(docs);
    if (there != 0) {
        ledger_fail("session %d: %u documents are not listed",
                    (int)checker->session, there);
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
    const struct ledger_batch *batch =
        &ledger->batches[ledger->parts[part].batch];

    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (ledger->parts[batch->first_part + i].kind == LEDGER_PUT_DOC) {
            return checker->view->versions[batch->first_part + i];
        }
    }
    return 0;
}

void ledger_apply_main(struct ledger_checker *checker, uint32_t stream,
                       uint64_t sequence, uint64_t *after, uint32_t *head)
{
    const struct ledger *ledger = checker->ledger;
    uint64_t newest = *after;

    for (uint32_t i = 0; i < ledger->part_count; i++) {
        const struct ledger_part *part = &ledger->parts[i];
        uint64_t place;

        if (part->kind != LEDGER_MOVE_MAIN ||
            part->session != checker->session || part->key != stream) {
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

bool ledger_is_moved(const struct ledger_checker *checker, uint32_t stream)
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
static void check_head(struct ledger_checker *checker, uint32_t key,
                       uint32_t shown)
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

        if ((part->kind != LEDGER_MOVE_HEAD &&
             part->kind != LEDGER_REMOVE_HEAD) ||
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
    enum wal_status status =
        wal_head_cursor_open(checker->handle, &heads, &error);

    while (status == WAL_OK &&
           (status = wal_head_cursor_next(heads, &head, &error)) == WAL_OK) {
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
                 entry !=
                     checker->view->heads[checker->session][head.stream])) {
                ledger_fail(
                    "session %u: main of stream %u is at %d, not %d",
                    checker->session, head.stream, (int)entry,
                    (int)checker->view->heads[checker->session][head.stream]);
            }
            continue;
        }
        if (part == LEDGER_NONE ||
            checker->ledger->parts[part].session != checker->session ||
            (checker->look == NULL && !checker->view->entries[entry])) {
            ledger_fail("session %u: head \"%.*s\" (%.*s) was never put there",
                        checker->session, (int)head.name.size,
                        (const char *)head.name.data, (int)head.note.size,
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
        ledger_fail("session %u: its heads are not all listed",
                    checker->session);
    }
    for (uint32_t i = 0; i < LEDGER_HEADS_MAX; i++) {
        check_head(checker, i, shown[i]);
    }
}

/* --- metadata ----------------------------------------------------------- */

void ledger_check_update(struct ledger_checker *checker,
                         const struct wal_session_info *info)
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
    if (shown == LEDGER_NONE ? !original
                             : !ledger_descends(ledger, checker->session,
                                                ledger->parts[shown].session)) {
        ledger_fail("session %u: metadata \"%.*s\" and title \"%.*s\" were "
                    "never put there together",
                    checker->session, (int)info->metadata.size,
                    (const char *)info->metadata.data, (int)info->title.size,
                    (const char *)info->title.data);
    }
    if (shown != LEDGER_NONE &&
        ledger->parts[shown].session != checker->session) {
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
