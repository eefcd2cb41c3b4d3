/*
 * parts.c - the steps of the script that hand in more than entries:
 * documents, heads, changes, deletions, and batches of all of them
 * (workload.h).
 */
#include <string.h>

#include "format/bytes/assert.h"
#include "tests/sim/workload/internal.h"

enum {
    KEYS = 4,
    DOCUMENTS = 3 /* of a batch, at most */
};

/* How a batch is submitted, in addition to what the ledger records. */
struct submit_mode {
    uint32_t durability;
    bool by_ticket;
    bool conditional; /* the documents, where they are now */
    bool stale;       /* on what is not there */
    uint64_t versions[WORKLOAD_PARTS];
};

/* What is submission in; the texts are the workload's. */
struct submission {
    struct wal_entry entries[WORKLOAD_BATCH];
    struct wal_doc documents[WORKLOAD_PARTS];
    struct wal_head heads[WORKLOAD_PARTS];
    struct wal_session_change change;
    struct wal_batch batch;
};

/* --- handing in --------------------------------------------------------- */

static void fill_part(struct workload *workload, uint32_t number, uint32_t place,
                      const struct submit_mode *submit_mode, struct submission *submission)
{
    const struct ledger *ledger = workload->ledger;
    struct ledger_text *text = &workload->part_texts[place];
    struct wal_batch *batch = &submission->batch;
    struct wal_doc *document = &submission->documents[batch->document_count];

    switch (ledger->parts[number].kind) {
    case LEDGER_PUT_DOC:
    case LEDGER_DELETE_DOC:
        ledger_fill_document(ledger, number, document, text);
        if (submit_mode->conditional) {
            document->flags |= WAL_DOC_EXPECT;
            document->version = submit_mode->versions[place];
        }
        batch->document_count++;
        break;
    case LEDGER_MOVE_HEAD:
    case LEDGER_REMOVE_HEAD:
    case LEDGER_MOVE_MAIN:
        ledger_fill_head(ledger, number, &submission->heads[batch->head_count], text);
        batch->head_count++;
        break;
    case LEDGER_UPDATE:
        ledger_fill_change(number, &submission->change, text);
        batch->change = &submission->change;
        break;
    case LEDGER_DELETE_SESSION:
        break;
    }
}

static void fill(struct workload *workload, uint32_t number, const struct submit_mode *submit_mode,
                 struct submission *submission)
{
    const struct ledger_batch *recorded = &workload->ledger->batches[number];

    memset(submission, 0, sizeof(*submission));
    submission->batch.struct_size = sizeof(submission->batch);
    submission->batch.entry_count = recorded->count;
    submission->batch.entries = submission->entries;
    submission->batch.documents = submission->documents;
    submission->batch.heads = submission->heads;
    for (uint32_t i = 0; i < recorded->count; i++) {
        ledger_fill_entry(workload->ledger, recorded->first + i, &submission->entries[i],
                          &workload->texts[i]);
    }
    for (uint32_t i = 0; i < recorded->part_count; i++) {
        fill_part(workload, recorded->first_part + i, i, submit_mode, submission);
    }
    if (submit_mode->stale && submission->batch.document_count > 0) {
        submission->documents[0].flags |= WAL_DOC_EXPECT;
        submission->documents[0].version = UINT64_MAX;
    } else if (submit_mode->stale && submission->batch.head_count > 0) {
        submission->heads[0].flags |= WAL_HEAD_EXPECT;
        submission->heads[0].expected = ledger_slice("nobody");
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
static enum wal_status submit_single(struct workload *workload, uint32_t number,
                                     struct wal_session *session, struct submission *submission,
                                     struct wal_error *error)
{
    const struct ledger_part *part =
        &workload->ledger->parts[workload->ledger->batches[number].first_part];
    struct wal_store *store = workload->actors[workload->actor].store;
    struct wal_session *of = part->session == LEDGER_NONE ? NULL : session;
    struct wal_doc *document = &submission->documents[0];

    if (part->kind == LEDGER_UPDATE) {
        return wal_session_update(session, change_to, &submission->change, error);
    }
    if (part->kind == LEDGER_MOVE_HEAD) {
        return wal_head_move(session, &submission->heads[0], NULL, error);
    }
    document->flags &= WAL_DOC_EXPECT;
    return part->kind == LEDGER_PUT_DOC ? wal_doc_put(store, of, document, NULL, error)
                                        : wal_doc_delete(store, of, document, NULL, error);
}

static enum wal_status submit(struct workload *workload, uint32_t number,
                              struct wal_session *session, const struct submit_mode *submit_mode,
                              struct wal_error *error)
{
    const struct ledger_batch *recorded = &workload->ledger->batches[number];
    struct wal_append_options options = {.struct_size = sizeof(options),
                                         .durability = submit_mode->durability};
    struct wal_ticket *ticket = NULL;
    struct submission submission;
    enum wal_status status;

    fill(workload, number, submit_mode, &submission);
    if (recorded->count == 0 && recorded->part_count == 1 &&
        submit_mode->durability == WAL_DURABLE) {
        status = submit_single(workload, number, session, &submission, error);
    } else if (submit_mode->by_ticket && submit_mode->durability != WAL_QUEUED &&
               submission.batch.change == NULL) {
        status = wal_batch_submit(session, &submission.batch, &options, &ticket, error);
        if (status == WAL_OK) {
            status = wal_ticket_wait(ticket, -1, NULL, error);
            wal_ticket_destroy(ticket);
        }
    } else {
        status = wal_batch_commit(session, &submission.batch, &options, NULL, error);
    }
    workload_free_call(workload);
    return status;
}

/* --- making ------------------------------------------------------------- */

/* The part that put what is under a key now, as the store has it, and its version; LEDGER_NONE when
 * there is nothing, or it is not identified. */
static bool find_document(struct workload *workload, struct wal_session *session, uint32_t key,
                          uint32_t *part, uint64_t *version)
{
    struct wal_store *store = workload->actors[workload->actor].store;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_doc doc = {.struct_size = sizeof(doc)};
    struct wal_doc_cursor *docs = NULL;
    char text[LEDGER_TEXT];
    enum wal_status status;

    *part = LEDGER_NONE;
    *version = 0;
    ledger_key(key, text);
    status = wal_doc_cursor_open(store, session, NULL, &docs, &error);
    if (status == WAL_OK) {
        status = wal_doc_cursor_get(docs, ledger_slice(text), 0, &doc, &error);
    }
    if (status == WAL_OK) {
        *part = ledger_find_document(workload->ledger, &doc);
        *version = doc.version;
        if (*part == LEDGER_NONE) {
            ledger_fail("step %u: a document is not what was put", workload->step);
        }
    }
    wal_doc_cursor_close(docs);
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        return true;
    }
    workload__record_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: reading a document answers %d: %s", workload->step, status,
                    error.text);
    }
    return false;
}

static bool is_deleted_by(const struct ledger *ledger, uint32_t session, uint32_t put)
{
    for (uint32_t i = 0; i < ledger->part_count; i++) {
        if (ledger->parts[i].kind == LEDGER_DELETE_DOC && ledger->parts[i].target == put &&
            ledger->parts[i].session == session) {
            return true;
        }
    }
    return false;
}

/* Documents of a batch, each key once: puts, and deletions of documents that no process has tried
 * to delete. False: the batch gets none. */
static bool add_documents(struct workload *workload, uint32_t batch, struct wal_session *session,
                          uint32_t count, struct submit_mode *submit_mode, struct rng *rng)
{
    struct ledger *ledger = workload->ledger;
    uint32_t first = workload__random(rng, KEYS);

    for (uint32_t i = 0; i < count; i++) {
        bool of_store = workload__random(rng, 4) == 0;
        bool deletes = workload__random(rng, 2) == 0 && submit_mode->durability != WAL_QUEUED;
        uint32_t place = ledger->batches[batch].part_count;
        struct ledger_part part = {.session =
                                       of_store ? LEDGER_NONE : ledger->batches[batch].session,
                                   .key = (first + i) % KEYS,
                                   .size = workload__size(workload, rng)};

        if ((deletes || submit_mode->conditional) &&
            !find_document(workload, of_store ? NULL : session, part.key, &part.target,
                           &submit_mode->versions[place])) {
            return false;
        }
        if (deletes && part.target != LEDGER_NONE &&
            !is_deleted_by(ledger, part.session, part.target)) {
            part.kind = LEDGER_DELETE_DOC;
        }
        ledger_add_part(ledger, batch, &part);
    }
    return true;
}

static bool has_put(const struct ledger *ledger, uint32_t batch)
{
    const struct ledger_batch *recorded = &ledger->batches[batch];

    for (uint32_t i = 0; i < recorded->part_count; i++) {
        if (ledger->parts[recorded->first_part + i].kind == LEDGER_PUT_DOC) {
            return true;
        }
    }
    return false;
}

/* Heads: any of the store's names; `main` if a document gives its position. */
static void add_heads(struct workload *workload, uint32_t batch, bool waits, struct rng *rng)
{
    struct ledger *ledger = workload->ledger;
    uint32_t session = ledger->batches[batch].session;
    uint32_t stream = workload__random(rng, 6) == 0;
    uint32_t target = workload__random_entry(workload, session, stream, rng);
    uint32_t at = ledger->sessions[session].at;
    bool has_document = has_put(ledger, batch);
    struct ledger_part part = {.session = session};

    if (target == LEDGER_NONE && at != LEDGER_NONE && ledger->entries[at].stream == stream) {
        target = at;
    }
    if (has_document && workload__random(rng, 2) == 0) {
        part.kind = LEDGER_MOVE_MAIN;
        part.key = stream;
        part.target = workload__random(rng, 8) == 0 ? LEDGER_NONE : target;
        ledger_add_part(ledger, batch, &part);
    }
    if (!waits || workload__random(rng, 2) == 0) {
        return;
    }
    part.kind = LEDGER_MOVE_HEAD;
    part.key = stream != 0 ? LEDGER_HEADS_MAX - 1 : workload__random(rng, LEDGER_HEADS_MAX - 1);
    part.target = target;
    if (has_document && workload__random(rng, 3) == 0) {
        part.kind = LEDGER_REMOVE_HEAD;
        part.target = LEDGER_NONE;
    }
    if (part.kind == LEDGER_REMOVE_HEAD || target != LEDGER_NONE) {
        ledger_add_part(ledger, batch, &part);
    }
}

/* A batch of entries, documents, heads and a change; LEDGER_NONE when it came to nothing. */
static uint32_t make_batch(struct workload *workload, struct wal_session *session, uint32_t number,
                           struct submit_mode *submit_mode, struct rng *rng)
{
    struct ledger *ledger = workload->ledger;
    bool alone = workload__random(rng, 3) == 0;
    uint32_t entries = alone ? 0 : workload__random(rng, 3);
    uint32_t documents = alone ? 1 : workload__random(rng, DOCUMENTS + 1);
    uint32_t only = workload__random(rng, 4);
    struct ledger_part change = {.kind = LEDGER_UPDATE, .session = number};
    bool waits = submit_mode->durability != WAL_QUEUED;
    uint32_t batch = ledger_add_batch(ledger, number, workload->actor);

    ledger->batches[batch].durability = submit_mode->durability;
    workload__add_entries(workload, batch, entries, rng);
    if (alone && only < 2 && waits) {
        documents = 0;
    }
    if (!add_documents(workload, batch, session, documents, submit_mode, rng)) {
        ledger->batches[batch].state = LEDGER_REFUSED;
        return LEDGER_NONE;
    }
    if (!alone || only == 0) {
        add_heads(workload, batch, waits, rng);
    }
    if (waits && (alone ? only == 1 : only == 2)) {
        ledger_add_part(ledger, batch, &change);
    }
    if (ledger->batches[batch].count + ledger->batches[batch].part_count == 0) {
        submit_mode->conditional = false;
        ledger_add_part(ledger, batch,
                        &(struct ledger_part){.session = number, .key = only, .size = 200});
    }
    return batch;
}

/* --- steps -------------------------------------------------------------- */

static bool is_resendable(const struct ledger *ledger, uint32_t batch)
{
    const struct ledger_batch *recorded = &ledger->batches[batch];

    for (uint32_t i = 0; i < recorded->part_count; i++) {
        if (ledger->parts[recorded->first_part + i].kind == LEDGER_DELETE_DOC) {
            return false;
        }
    }
    return true;
}

void workload__step_parts(struct workload *workload, struct wal_session *session, uint32_t number,
                          struct rng *rng)
{
    static const uint32_t durabilities[] = {WAL_DURABLE, WAL_DURABLE, WAL_WRITTEN, WAL_WRITTEN,
                                            WAL_QUEUED};
    struct wal_error error = {.struct_size = sizeof(error)};
    struct submit_mode submit_mode = {.durability = durabilities[workload__random(rng, 5)],
                                      .by_ticket = workload__random(rng, 3) == 0,
                                      .conditional = workload__random(rng, 3) == 0};
    bool twice = workload__random(rng, 4) == 0;
    enum wal_status status;
    uint32_t batch;

    if (submit_mode.durability == WAL_QUEUED) {
        submit_mode.conditional = false; /* others may be first */
    }
    if (!workload__sync(workload)) {
        return; /* the state read would not be the one before the batch */
    }
    batch = make_batch(workload, session, number, &submit_mode, rng);
    if (batch == LEDGER_NONE) {
        return;
    }
    status = submit(workload, batch, session, &submit_mode, &error);
    workload__record_answer(workload, batch, submit_mode.durability, status, &error);
    if (twice && workload->ledger->batches[batch].state != LEDGER_OPEN &&
        is_resendable(workload->ledger, batch)) {
        status = submit(workload, batch, session, &submit_mode, &error);
        workload__record_answer(workload, batch, submit_mode.durability, status, &error);
    }
}

void workload__step_stale(struct workload *workload, struct wal_session *session, uint32_t number,
                          struct rng *rng)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct submit_mode submit_mode = {.durability = WAL_WRITTEN, .stale = true};
    const struct ledger_batch *recorded;
    bool by_document = false;
    bool by_head = false;
    enum wal_status status;
    uint32_t batch;

    if (!workload__sync(workload)) {
        return;
    }
    batch = make_batch(workload, session, number, &submit_mode, rng);
    if (batch == LEDGER_NONE) {
        return;
    }
    recorded = &workload->ledger->batches[batch];
    for (uint32_t i = 0; i < recorded->part_count; i++) {
        enum ledger_part_kind kind = workload->ledger->parts[recorded->first_part + i].kind;

        by_document |= kind == LEDGER_PUT_DOC || kind == LEDGER_DELETE_DOC;
        by_head |= kind == LEDGER_MOVE_HEAD;
    }
    if (!by_document && !by_head) {
        submit_mode.stale = false;
        status = submit(workload, batch, session, &submit_mode, &error);
        workload__record_answer(workload, batch, submit_mode.durability, status, &error);
        return;
    }
    workload->ledger->batches[batch].state = LEDGER_REFUSED;
    status = submit(workload, batch, session, &submit_mode, &error);
    if (status == WAL_ECONFLICT &&
        error.expectation == (by_document ? WAL_EXPECTATION_DOCUMENT : WAL_EXPECTATION_HEAD)) {
        return;
    }
    workload__record_status(workload, status);
    if (!workload__is_documented(status)) {
        ledger_fail("step %u: a batch on what is not there answers %d: %s", workload->step, status,
                    error.text);
    }
}

/* Has every process write what it has queued: what names a session that is deleted meanwhile is
 * refused, and some later call says so. False: one has failed. */
static bool sync_all(struct workload *workload)
{
    const uint32_t own = workload->actor;
    bool synced = true;

    for (uint32_t i = 0; i < workload->options.actors; i++) {
        workload->actor = i; /* it is the one that may die here */
        if (workload->actors[i].store != NULL) {
            bool done = workload__sync(workload);

            synced = synced && done;
        }
    }
    workload->actor = own;
    return synced;
}

void workload__step_delete(struct workload *workload, uint32_t number)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct ledger *ledger = workload->ledger;
    struct ledger_part part = {.kind = LEDGER_DELETE_SESSION};
    struct wal_session *session;
    enum wal_status status;
    uint32_t batch;

    /* Best one that others were forked from. */
    for (uint32_t i = 0; i < ledger->session_count; i++) {
        uint32_t source = ledger->sessions[i].source;

        if (source != LEDGER_NONE && !ledger_may_be_deleted(ledger, source)) {
            number = source;
        }
    }
    session = workload__session(workload, number);
    if (session == NULL || !sync_all(workload)) {
        return;
    }
    part.session = number;
    batch = ledger_add_batch(ledger, number, workload->actor);
    ledger_add_part(ledger, batch, &part);
    status = wal_session_delete(session, &error);
    workload__record_answer(workload, batch, WAL_DURABLE, status, &error);
}
