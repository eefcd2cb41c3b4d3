/*
 * model_documents.c - comparing documents, heads and metadata with the ledger
 * (model.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/base/assert.h"
#include "tests/sim/model_reading.h"

/* Of a session, or of the store. */
static struct reading_documents *list_of(struct reading *reading,
                                         uint32_t session)
{
    return &reading
                ->documents[session == LEDGER_NONE ? LEDGER_SESSIONS : session];
}

/* --- documents ---------------------------------------------------------- */

static struct wal_docs *begin(struct reading *reading, uint32_t flags)
{
    struct wal_docs_options options = {.struct_size = sizeof(options),
                                       .flags = flags};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_docs *docs = NULL;
    enum wal_status status =
        wal_docs_open(reading->store, reading->handle, &options, &docs, &error);

    if (status != WAL_OK) {
        ledger_fail("session %d: documents cannot be read: %d %s (%s)",
                    (int)reading->session, status, error.text, error.file);
    }
    return docs;
}

static bool next(struct reading *reading, struct wal_docs *docs,
                 struct wal_doc *doc)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status;

    *doc = (struct wal_doc){.struct_size = sizeof(*doc)};
    status = wal_docs_next(docs, doc, &error);
    if (status != WAL_OK && status != WAL_END) {
        ledger_fail("session %d: a document cannot be read: %d %s (%s)",
                    (int)reading->session, status, error.text, error.file);
    }
    return status == WAL_OK;
}

/* The deletion of what this part put, by the session or one above it. */
static uint32_t deletion_of(const struct reading *reading, uint32_t put)
{
    const struct ledger *ledger = reading->ledger;
    uint32_t session = reading->session;

    for (;;) {
        for (uint32_t i = 0; i < ledger->part_count; i++) {
            if (ledger->parts[i].kind == LEDGER_DELETE &&
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

static bool may_have(const struct reading *reading, uint32_t part)
{
    uint32_t of = reading->ledger->parts[part].session;

    return of == LEDGER_NONE
               ? reading->session == LEDGER_NONE
               : ledger_descends(reading->ledger, reading->session, of);
}

static int by_version(const void *left, const void *right)
{
    const struct reading_version *a = left;
    const struct reading_version *b = right;

    return a->version < b->version ? -1 : a->version > b->version;
}

/* Versions come newest first: deletions are told by what is behind them. */
static void take_versions(struct reading *reading,
                          struct reading_documents *list)
{
    struct wal_docs *docs = begin(reading, WAL_DOCS_HISTORY);
    uint64_t deleted = 0;
    struct wal_doc doc;

    while (next(reading, docs, &doc)) {
        uint32_t part;

        if ((doc.flags & WAL_DOC_DELETE) != 0) {
            if (deleted != 0) {
                ledger_fail("session %d: \"%.*s\" is deleted twice",
                            (int)reading->session, (int)doc.key.size,
                            (const char *)doc.key.data);
            }
            deleted = doc.version;
            continue;
        }
        part = ledger_document_of(reading->ledger, &doc);
        if (part == LEDGER_NONE || !may_have(reading, part) ||
            list->count + 2 > LEDGER_PARTS) {
            ledger_fail("session %d: version %llu of document \"%.*s\" was not "
                        "put here",
                        (int)reading->session, (unsigned long long)doc.version,
                        (int)doc.key.size, (const char *)doc.key.data);
        }
        list->at[list->count] = (struct reading_version){doc.version, part};
        list->count++;
        if (deleted != 0) {
            part = deletion_of(reading, part);
            if (part == LEDGER_NONE || deleted <= doc.version) {
                ledger_fail("session %d: a document was deleted by nobody",
                            (int)reading->session);
            }
            list->at[list->count] = (struct reading_version){deleted, part};
            list->count++;
            deleted = 0;
        }
    }
    if (deleted != 0) {
        ledger_fail("session %d: what was deleted was never there",
                    (int)reading->session);
    }
    wal_docs_close(docs);
    qsort(list->at, list->count, sizeof(list->at[0]), by_version);
}

/* What came from the source is the beginning of what the source has. */
static void check_inherited(struct reading *reading,
                            const struct reading_documents *list,
                            uint32_t inherited)
{
    uint32_t source = reading->session == LEDGER_NONE
                          ? LEDGER_NONE
                          : reading->ledger->sessions[reading->session].source;
    const struct reading_documents *other;

    if (source == LEDGER_NONE) {
        if (inherited != 0) {
            ledger_fail("session %d has documents of another",
                        (int)reading->session);
        }
        return;
    }
    if (!reading->view->sessions[source]) {
        return;
    }
    other = list_of(reading, source);
    for (uint32_t i = 0; i < inherited; i++) {
        if (i < other->count && list->at[i].part == other->at[i].part &&
            list->at[i].version == other->at[i].version) {
            continue;
        }
        ledger_fail("session %u does not have the documents that session %u "
                    "had",
                    reading->session, source);
    }
}

/* Own versions stand in the order of each actor; those of a batch together. */
static void check_versions(struct reading *reading,
                           const struct reading_documents *list)
{
    const struct ledger *ledger = reading->ledger;
    uint32_t newest[LEDGER_ACTORS] = {LEDGER_NONE, LEDGER_NONE};
    uint32_t inherited = 0;
    bool own = false;

    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t part = list->at[i].part;
        const struct ledger_batch *batch =
            &ledger->batches[ledger->parts[part].batch];

        if (i > 0 && list->at[i].version == list->at[i - 1].version) {
            ledger_fail("session %d: a version is given twice",
                        (int)reading->session);
        }
        reading_mix(reading, part);
        reading_mix(reading, list->at[i].version);
        if (ledger->parts[part].session != reading->session) {
            inherited++;
            if (own) {
                ledger_fail("session %d took over part %u behind its own",
                            (int)reading->session, part);
            }
            continue;
        }
        own = true;
        if (reading->view->parts[part] == LEDGER_THERE) {
            ledger_fail("session %d: part %u is there twice",
                        (int)reading->session, part);
        }
        reading->view->parts[part] = LEDGER_THERE;
        reading->view->versions[part] = list->at[i].version;
        if (!batch->again && newest[batch->actor] != LEDGER_NONE &&
            newest[batch->actor] >= part) {
            ledger_fail("session %d: part %u stands behind part %u",
                        (int)reading->session, part, newest[batch->actor]);
        }
        newest[batch->actor] = part;
        if (i > 0 &&
            ledger->parts[list->at[i - 1].part].batch ==
                ledger->parts[part].batch &&
            list->at[i].version - list->at[i - 1].version !=
                part - list->at[i - 1].part) {
            ledger_fail("session %d: part %u stands apart from its batch",
                        (int)reading->session, part);
        }
    }
    check_inherited(reading, list, inherited);
}

/* What is there now is the newest version of each key. */
static void check_present(struct reading *reading,
                          const struct reading_documents *list)
{
    const struct ledger *ledger = reading->ledger;
    struct wal_docs *docs = begin(reading, 0);
    uint32_t there = 0;
    struct wal_doc doc;

    for (uint32_t i = 0; i < list->count; i++) {
        const struct ledger_part *part = &ledger->parts[list->at[i].part];
        bool newest = part->kind == LEDGER_PUT;

        for (uint32_t j = i + 1; j < list->count && newest; j++) {
            newest = ledger->parts[list->at[j].part].key != part->key;
        }
        there += newest;
    }
    while (next(reading, docs, &doc)) {
        uint32_t part = ledger_document_of(ledger, &doc);
        bool newest = part != LEDGER_NONE;

        for (uint32_t i = 0; i < list->count && newest; i++) {
            newest = ledger->parts[list->at[i].part].key !=
                         ledger->parts[part].key ||
                     list->at[i].version <= doc.version;
        }
        if (!newest || there == 0) {
            ledger_fail("session %d: \"%.*s\" is not as it was put last",
                        (int)reading->session, (int)doc.key.size,
                        (const char *)doc.key.data);
        }
        there--;
    }
    wal_docs_close(docs);
    if (there != 0) {
        ledger_fail("session %d: %u documents are not listed",
                    (int)reading->session, there);
    }
}

void reading_documents(struct reading *reading)
{
    struct reading_documents *list = list_of(reading, reading->session);
    const struct ledger *ledger = reading->ledger;

    for (uint32_t i = 0; i < ledger->part_count; i++) {
        enum ledger_part_kind kind = ledger->parts[i].kind;

        if (ledger->parts[i].session == reading->session &&
            (kind == LEDGER_PUT || kind == LEDGER_DELETE)) {
            reading->view->parts[i] = LEDGER_ABSENT;
        }
    }
    list->count = 0;
    take_versions(reading, list);
    check_versions(reading, list);
    check_present(reading, list);
}

/* --- heads -------------------------------------------------------------- */

/* The version of a document of the part's batch; 0: it is not there. */
static uint64_t place_of(const struct reading *reading, uint32_t part)
{
    const struct ledger *ledger = reading->ledger;
    const struct ledger_batch *batch =
        &ledger->batches[ledger->parts[part].batch];

    for (uint32_t i = 0; i < batch->part_count; i++) {
        if (ledger->parts[batch->first_part + i].kind == LEDGER_PUT) {
            return reading->view->versions[batch->first_part + i];
        }
    }
    return 0;
}

void reading_move_main(struct reading *reading, uint32_t stream,
                       uint64_t sequence, uint64_t *after, uint32_t *head)
{
    const struct ledger *ledger = reading->ledger;
    uint64_t newest = *after;

    for (uint32_t i = 0; i < ledger->part_count; i++) {
        const struct ledger_part *part = &ledger->parts[i];
        uint64_t place;

        if (part->kind != LEDGER_MAIN || part->session != reading->session ||
            part->key != stream) {
            continue;
        }
        place = place_of(reading, i);
        if (place > newest && place < sequence) {
            newest = place;
            *head = part->target;
        }
    }
    *after = newest;
}

/* The part that the name shows is there, and nothing newer. */
static void judge_name(struct reading *reading, uint32_t key, uint32_t shown)
{
    const struct ledger *ledger = reading->ledger;
    uint32_t last = shown;

    for (uint32_t i = 0; i < ledger->part_count && shown == LEDGER_NONE; i++) {
        const struct ledger_part *part = &ledger->parts[i];

        if (part->kind == LEDGER_UNNAME && part->key == key &&
            part->session == reading->session && place_of(reading, i) != 0) {
            last = i;
        }
    }
    for (uint32_t i = 0; i < ledger->part_count; i++) {
        const struct ledger_part *part = &ledger->parts[i];

        if ((part->kind != LEDGER_NAME && part->kind != LEDGER_UNNAME) ||
            part->key != key || part->session != reading->session) {
            continue;
        }
        if (i == last) {
            reading->view->parts[i] = LEDGER_THERE;
        } else if (last == LEDGER_NONE || i > last) {
            reading->view->parts[i] = LEDGER_ABSENT;
        }
    }
}

void reading_heads(struct reading *reading)
{
    struct wal_head head = {.struct_size = sizeof(head)};
    struct wal_error error = {.struct_size = sizeof(error)};
    uint32_t shown[LEDGER_NAMES] = {LEDGER_NONE, LEDGER_NONE, LEDGER_NONE};
    uint32_t mains = 0;
    struct wal_heads *heads = NULL;
    enum wal_status status = wal_heads_open(reading->handle, &heads, &error);

    while (status == WAL_OK &&
           (status = wal_heads_next(heads, &head, &error)) == WAL_OK) {
        uint32_t entry = ledger_entry_of(reading->ledger, head.entry_id);
        uint32_t part = ledger_head_of(reading->ledger, &head);

        reading_mix(reading, head.version);
        reading_mix(reading, entry);
        reading_mix_text(reading, head.name);
        if (head.stream < LEDGER_STREAMS && head.name.size == 4 &&
            memcmp(head.name.data, "main", 4) == 0) {
            mains++;
            if (entry == LEDGER_NONE ||
                entry != reading->view->heads[reading->session][head.stream]) {
                ledger_fail(
                    "session %u: main of stream %u is at %d, not %d",
                    reading->session, head.stream, (int)entry,
                    (int)reading->view->heads[reading->session][head.stream]);
            }
            continue;
        }
        if (part == LEDGER_NONE ||
            reading->ledger->parts[part].session != reading->session ||
            !reading->view->entries[entry]) {
            ledger_fail("session %u: head \"%.*s\" (%.*s) was never put there",
                        reading->session, (int)head.name.size,
                        (const char *)head.name.data, (int)head.note.size,
                        (const char *)head.note.data);
        }
        shown[reading->ledger->parts[part].key] = part;
    }
    wal_heads_close(heads);
    for (uint32_t i = 0; i < LEDGER_STREAMS; i++) {
        mains -= reading->view->heads[reading->session][i] != LEDGER_NONE;
    }
    if (status != WAL_END || mains != 0) {
        ledger_fail("session %u: its heads are not all listed: %d %s",
                    reading->session, status, error.text);
    }
    for (uint32_t i = 0; i < LEDGER_NAMES; i++) {
        judge_name(reading, i, shown[i]);
    }
}

/* --- metadata ----------------------------------------------------------- */

void reading_change(struct reading *reading,
                    const struct wal_session_info *info)
{
    static const char made[] = "{\"made\":\"by hand\"}";
    const struct ledger *ledger = reading->ledger;
    uint32_t shown = ledger_change_of(ledger, info);
    bool original = info->metadata.size == sizeof(made) - 1 &&
                    memcmp(info->metadata.data, made, sizeof(made) - 1) == 0 &&
                    info->title.size == 7;

    reading_mix_text(reading, info->metadata);
    reading_mix_text(reading, info->title);
    reading_mix_text(reading, info->cwd);
    reading_mix_text(reading, info->first_text);
    reading_mix(reading, info->metadata_version);
    reading_mix(reading, info->documents);
    reading_mix(reading, info->schema_version);
    reading_mix(reading, info->last_sequence);
    if (shown == LEDGER_NONE ? !original
                             : !ledger_descends(ledger, reading->session,
                                                ledger->parts[shown].session)) {
        ledger_fail("session %u: metadata \"%.*s\" and title \"%.*s\" were "
                    "never put there together",
                    reading->session, (int)info->metadata.size,
                    (const char *)info->metadata.data, (int)info->title.size,
                    (const char *)info->title.data);
    }
    if (shown != LEDGER_NONE &&
        ledger->parts[shown].session != reading->session) {
        shown = LEDGER_NONE; /* it came with the fork */
    }
    for (uint32_t i = 0; i < ledger->part_count; i++) {
        if (ledger->parts[i].kind != LEDGER_CHANGE ||
            ledger->parts[i].session != reading->session) {
            continue;
        }
        if (i == shown) {
            reading->view->parts[i] = LEDGER_THERE;
        } else if (shown == LEDGER_NONE || i > shown) {
            reading->view->parts[i] = LEDGER_ABSENT;
        }
    }
}
