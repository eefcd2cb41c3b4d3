/*
 * workload_parts.c - the steps of the script that hand in more than entries:
 * documents, heads, changes, deletions, and batches of all of them
 * (workload.h).
 */
#include <string.h>

#include "engine/base/assert.h"
#include "tests/sim/workload_notes.h"

enum {
    KEYS = 4,
    DOCUMENTS = 3 /* of a batch, at most */
};

/* How a batch is handed in, beside what the ledger says of it. */
struct way {
    uint32_t durability;
    bool by_ticket;
    bool conditional; /* the documents, where they are now */
    bool stale;       /* on what is not there */
    uint64_t versions[WORKLOAD_PARTS];
};

/* What is handed in; the texts are the workload's. */
struct handed {
    struct wal_entry entries[WORKLOAD_BATCH];
    struct wal_doc documents[WORKLOAD_PARTS];
    struct wal_head heads[WORKLOAD_PARTS];
    struct wal_session_change change;
    struct wal_batch batch;
};

/* --- handing in --------------------------------------------------------- */

static void fill_part(struct workload *workload, uint32_t number,
                      uint32_t place, const struct way *way,
                      struct handed *handed)
{
    const struct ledger *ledger = workload->ledger;
    struct ledger_text *text = &workload->part_texts[place];
    struct wal_batch *batch = &handed->batch;
    struct wal_doc *document = &handed->documents[batch->document_count];

    switch (ledger->parts[number].kind) {
    case LEDGER_PUT:
    case LEDGER_DELETE:
        ledger_fill_document(ledger, number, document, text);
        if (way->conditional) {
            document->flags |= WAL_DOC_EXPECT;
            document->version = way->versions[place];
        }
        batch->document_count++;
        break;
    case LEDGER_NAME:
    case LEDGER_UNNAME:
    case LEDGER_MAIN:
        ledger_fill_head(ledger, number, &handed->heads[batch->head_count],
                         text);
        batch->head_count++;
        break;
    case LEDGER_CHANGE:
        ledger_fill_change(number, &handed->change, text);
        batch->change = &handed->change;
        break;
    case LEDGER_DROP:
        break;
    }
}

static void fill(struct workload *workload, uint32_t number,
                 const struct way *way, struct handed *handed)
{
    const struct ledger_batch *told = &workload->ledger->batches[number];

    memset(handed, 0, sizeof(*handed));
    handed->batch.struct_size = sizeof(handed->batch);
    handed->batch.entry_count = told->count;
    handed->batch.entries = handed->entries;
    handed->batch.documents = handed->documents;
    handed->batch.heads = handed->heads;
    for (uint32_t i = 0; i < told->count; i++) {
        ledger_fill_entry(workload->ledger, told->first + i,
                          &handed->entries[i], &workload->texts[i]);
    }
    for (uint32_t i = 0; i < told->part_count; i++) {
        fill_part(workload, told->first_part + i, i, way, handed);
    }
    if (way->stale && handed->batch.document_count > 0) {
        handed->documents[0].flags |= WAL_DOC_EXPECT;
        handed->documents[0].version = UINT64_MAX;
    } else if (way->stale && handed->batch.head_count > 0) {
        handed->heads[0].flags |= WAL_HEAD_EXPECT;
        handed->heads[0].expected = ledger_slice("nobody");
    }
}

static int32_t change_to(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    *change = *(const struct wal_session_change *)ctx;
    return 0;
}

/* The call for a batch of one part. */
static enum wal_status hand_in_one(struct workload *workload, uint32_t number,
                                   struct wal_session *session,
                                   struct handed *handed,
                                   struct wal_error *error)
{
    const struct ledger_part *part =
        &workload->ledger->parts[workload->ledger->batches[number].first_part];
    struct wal_store *store = workload->actors[workload->actor].store;
    struct wal_session *of = part->session == LEDGER_NONE ? NULL : session;
    struct wal_doc *document = &handed->documents[0];

    if (part->kind == LEDGER_CHANGE) {
        return wal_session_update(session, change_to, &handed->change, error);
    }
    if (part->kind == LEDGER_NAME) {
        return wal_head_move(session, &handed->heads[0], NULL, error);
    }
    document->flags &= WAL_DOC_EXPECT;
    return part->kind == LEDGER_PUT
               ? wal_doc_put(store, of, document, NULL, error)
               : wal_doc_delete(store, of, document, NULL, error);
}

static enum wal_status hand_in(struct workload *workload, uint32_t number,
                               struct wal_session *session,
                               const struct way *way, struct wal_error *error)
{
    const struct ledger_batch *told = &workload->ledger->batches[number];
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = way->durability};
    struct wal_ticket *ticket = NULL;
    struct handed handed;
    enum wal_status status;

    fill(workload, number, way, &handed);
    if (told->count == 0 && told->part_count == 1 &&
        way->durability == WAL_DURABLE) {
        status = hand_in_one(workload, number, session, &handed, error);
    } else if (way->by_ticket && way->durability != WAL_QUEUED &&
               handed.batch.change == NULL) {
        status =
            wal_batch_submit(session, &handed.batch, &options, &ticket, error);
        if (status == WAL_OK) {
            status = wal_ticket_wait(ticket, -1, NULL, error);
            wal_ticket_destroy(ticket);
        }
    } else {
        status =
            wal_batch_commit(session, &handed.batch, &options, NULL, error);
    }
    workload_free_call(workload);
    return status;
}

/* --- making ------------------------------------------------------------- */

/* The part that put what is under a key now, as the store has it, and its
 * version; LEDGER_NONE when there is nothing, or it cannot be told. */
static bool find_document(struct workload *workload,
                          struct wal_session *session, uint32_t key,
                          uint32_t *part, uint64_t *version)
{
    struct wal_store *store = workload->actors[workload->actor].store;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_docs *docs = NULL;
    char text[LEDGER_TEXT];
    enum wal_status status;

    *part = LEDGER_NONE;
    *version = 0;
    ledger_key(key, text);
    status = wal_docs_open(store, session, NULL, &docs, &error);
    if (status == WAL_OK) {
        status = wal_docs_get(docs, ledger_slice(text), 0, &doc, &error);
    }
    if (status == WAL_OK) {
        *part = ledger_document_of(workload->ledger, &doc);
        *version = doc.version;
        if (*part == LEDGER_NONE) {
            ledger_fail("step %u: a document is not what was put",
                        workload->step);
        }
    }
    wal_docs_close(docs);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        return true;
    }
    workload__note_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: reading a document answers %d: %s",
                    workload->step, status, error.text);
    }
    return false;
}

static bool is_deleted_by(const struct ledger *ledger, uint32_t session,
                          uint32_t put)
{
    for (uint32_t i = 0; i < ledger->part_count; i++) {
        if (ledger->parts[i].kind == LEDGER_DELETE &&
            ledger->parts[i].target == put &&
            ledger->parts[i].session == session) {
            return true;
        }
    }
    return false;
}

/* Documents of a batch, each key once: puts, and deletions of what is there
 * and that nobody has tried to delete yet. False: nothing can be made. */
static bool add_documents(struct workload *workload, uint32_t batch,
                          struct wal_session *session, uint32_t count,
                          struct way *way, struct dice *dice)
{
    struct ledger *ledger = workload->ledger;
    uint32_t first = workload__roll(dice, KEYS);

    for (uint32_t i = 0; i < count; i++) {
        bool of_store = workload__roll(dice, 4) == 0;
        bool deletes =
            workload__roll(dice, 2) == 0 && way->durability != WAL_QUEUED;
        uint32_t place = ledger->batches[batch].part_count;
        struct ledger_part part = {
            .session = of_store ? LEDGER_NONE : ledger->batches[batch].session,
            .key = (first + i) % KEYS,
            .size = workload__size(workload, dice)};

        if ((deletes || way->conditional) &&
            !find_document(workload, of_store ? NULL : session, part.key,
                           &part.target, &way->versions[place])) {
            return false;
        }
        if (deletes && part.target != LEDGER_NONE &&
            !is_deleted_by(ledger, part.session, part.target)) {
            part.kind = LEDGER_DELETE;
        }
        ledger_add_part(ledger, batch, &part);
    }
    return true;
}

static bool has_put(const struct ledger *ledger, uint32_t batch)
{
    const struct ledger_batch *told = &ledger->batches[batch];

    for (uint32_t i = 0; i < told->part_count; i++) {
        if (ledger->parts[told->first_part + i].kind == LEDGER_PUT) {
            return true;
        }
    }
    return false;
}

/* Heads: of the store's own names any; `main` where a document tells when. */
static void add_heads(struct workload *workload, uint32_t batch, bool waits,
                      struct dice *dice)
{
    struct ledger *ledger = workload->ledger;
    uint32_t session = ledger->batches[batch].session;
    uint32_t stream = workload__roll(dice, 6) == 0;
    uint32_t target = workload__some_entry(workload, session, stream, dice);
    uint32_t at = ledger->sessions[session].at;
    bool told = has_put(ledger, batch);
    struct ledger_part part = {.session = session};

    if (target == LEDGER_NONE && at != LEDGER_NONE &&
        ledger->entries[at].stream == stream) {
        target = at;
    }
    if (told && workload__roll(dice, 2) == 0) {
        part.kind = LEDGER_MAIN;
        part.key = stream;
        part.target = workload__roll(dice, 8) == 0 ? LEDGER_NONE : target;
        ledger_add_part(ledger, batch, &part);
    }
    if (!waits || workload__roll(dice, 2) == 0) {
        return;
    }
    part.kind = LEDGER_NAME;
    part.key =
        stream != 0 ? LEDGER_NAMES - 1 : workload__roll(dice, LEDGER_NAMES - 1);
    part.target = target;
    if (told && workload__roll(dice, 3) == 0) {
        part.kind = LEDGER_UNNAME;
        part.target = LEDGER_NONE;
    }
    if (part.kind == LEDGER_UNNAME || target != LEDGER_NONE) {
        ledger_add_part(ledger, batch, &part);
    }
}

/* A batch of entries, documents, heads and a change; LEDGER_NONE when it came
 * to nothing. */
static uint32_t make(struct workload *workload, struct wal_session *session,
                     uint32_t number, struct way *way, struct dice *dice)
{
    struct ledger *ledger = workload->ledger;
    bool alone = workload__roll(dice, 3) == 0;
    uint32_t entries = alone ? 0 : workload__roll(dice, 3);
    uint32_t documents = alone ? 1 : workload__roll(dice, DOCUMENTS + 1);
    uint32_t only = workload__roll(dice, 4);
    struct ledger_part change = {.kind = LEDGER_CHANGE, .session = number};
    bool waits = way->durability != WAL_QUEUED;
    uint32_t batch = ledger_add_batch(ledger, number, workload->actor);

    ledger->batches[batch].durability = way->durability;
    workload__add_entries(workload, batch, entries, dice);
    if (alone && only < 2 && waits) {
        documents = 0;
    }
    if (!add_documents(workload, batch, session, documents, way, dice)) {
        ledger->batches[batch].state = LEDGER_REFUSED;
        return LEDGER_NONE;
    }
    if (!alone || only == 0) {
        add_heads(workload, batch, waits, dice);
    }
    if (waits && (alone ? only == 1 : only == 2)) {
        ledger_add_part(ledger, batch, &change);
    }
    if (ledger->batches[batch].count + ledger->batches[batch].part_count == 0) {
        way->conditional = false;
        ledger_add_part(
            ledger, batch,
            &(struct ledger_part){.session = number, .key = only, .size = 200});
    }
    return batch;
}

/* --- steps -------------------------------------------------------------- */

static bool may_be_sent_again(const struct ledger *ledger, uint32_t batch)
{
    const struct ledger_batch *told = &ledger->batches[batch];

    for (uint32_t i = 0; i < told->part_count; i++) {
        if (ledger->parts[told->first_part + i].kind == LEDGER_DELETE) {
            return false;
        }
    }
    return true;
}

void workload__step_parts(struct workload *workload,
                          struct wal_session *session, uint32_t number,
                          struct dice *dice)
{
    static const uint32_t durabilities[] = {
        WAL_DURABLE, WAL_DURABLE, WAL_WRITTEN, WAL_WRITTEN, WAL_QUEUED};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct way way = {.durability = durabilities[workload__roll(dice, 5)],
                      .by_ticket = workload__roll(dice, 3) == 0,
                      .conditional = workload__roll(dice, 3) == 0};
    bool twice = workload__roll(dice, 4) == 0;
    enum wal_status status;
    uint32_t batch;

    if (way.durability == WAL_QUEUED) {
        way.conditional = false; /* others may be first */
    }
    if (!workload__sync(workload)) {
        return; /* what is read would not be what stands before the batch */
    }
    batch = make(workload, session, number, &way, dice);
    if (batch == LEDGER_NONE) {
        return;
    }
    status = hand_in(workload, batch, session, &way, &error);
    workload__note_answer(workload, batch, way.durability, status, &error);
    if (twice && workload->ledger->batches[batch].state != LEDGER_OPEN &&
        may_be_sent_again(workload->ledger, batch)) {
        status = hand_in(workload, batch, session, &way, &error);
        workload__note_answer(workload, batch, way.durability, status, &error);
    }
}

void workload__step_stale(struct workload *workload,
                          struct wal_session *session, uint32_t number,
                          struct dice *dice)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct way way = {.durability = WAL_WRITTEN, .stale = true};
    const struct ledger_batch *told;
    bool by_document = false;
    bool by_head = false;
    enum wal_status status;
    uint32_t batch;

    if (!workload__sync(workload)) {
        return;
    }
    batch = make(workload, session, number, &way, dice);
    if (batch == LEDGER_NONE) {
        return;
    }
    told = &workload->ledger->batches[batch];
    for (uint32_t i = 0; i < told->part_count; i++) {
        enum ledger_part_kind kind =
            workload->ledger->parts[told->first_part + i].kind;

        by_document |= kind == LEDGER_PUT || kind == LEDGER_DELETE;
        by_head |= kind == LEDGER_NAME;
    }
    if (!by_document && !by_head) {
        way.stale = false;
        status = hand_in(workload, batch, session, &way, &error);
        workload__note_answer(workload, batch, way.durability, status, &error);
        return;
    }
    workload->ledger->batches[batch].state = LEDGER_REFUSED;
    status = hand_in(workload, batch, session, &way, &error);
    if (status == (by_document ? WAL_ESTALE : WAL_EHEAD)) {
        return;
    }
    workload__note_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: a batch on what is not there answers %d: %s",
                    workload->step, status, error.text);
    }
}

void workload__step_drop(struct workload *workload, uint32_t number)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger *ledger = workload->ledger;
    struct ledger_part part = {.kind = LEDGER_DROP};
    struct wal_session *session;
    enum wal_status status;
    uint32_t batch;

    /* Best one that others were forked from. */
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        uint32_t source = ledger->sessions[i].source;

        if (source != LEDGER_NONE && !ledger_may_be_gone(ledger, source)) {
            number = source;
        }
    }
    session = workload__session(workload, number);
    if (session == NULL || !workload__sync(workload)) {
        return;
    }
    part.session = number;
    batch = ledger_add_batch(ledger, number, workload->actor);
    ledger_add_part(ledger, batch, &part);
    status = wal_session_delete(session, &error);
    workload__note_answer(workload, batch, WAL_DURABLE, status, &error);
}
