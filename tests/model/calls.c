/*
 * calls.c - calls whose requests are in common memory: one that its process may not survive, and
 * those of several processes at once (model.h).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

/* --------------------------------------------------------------- making --- */

/* A session that is there, of a share of all; 0: none. */
static uint32_t choose_session(struct differential *run, uint32_t share, uint32_t of)
{
    uint32_t count = reference_session_count(run->ref);
    uint32_t start = differential_random(run, count + 1);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t number = (start + i) % count + 1;

        if (number % of == share && !reference_is_deleted(run->ref, number) &&
            !reference_is_trashed(run->ref, number)) {
            return number;
        }
    }
    return 0;
}

static enum model_kind choose_kind(struct differential *run, bool is_concurrent)
{
    static const enum model_kind alone[] = {MODEL_BATCH, MODEL_BATCH,  MODEL_BATCH, MODEL_CREATE,
                                            MODEL_FORK,  MODEL_DELETE, MODEL_TRASH, MODEL_UNDELETE,
                                            MODEL_HEAD,  MODEL_PUT};

    if (is_concurrent) {
        return differential_one_in(run, 5) ? MODEL_FORK : MODEL_BATCH;
    }
    return alone[differential_random(run, sizeof(alone) / sizeof(alone[0]))];
}

static bool choose_trashed(struct differential *run, struct model_call *call)
{
    uint32_t count = reference_session_count(run->ref);
    struct reference_info info;

    for (uint32_t number = 1; number <= count; number++) {
        if (reference_is_trashed(run->ref, number) &&
            reference_session_status(run->ref, number, &info) == WAL_OK) {
            call->number = number;
            call->id = info.info.id;
            return true;
        }
    }
    return false;
}

static void make_batch(struct differential *run, struct model_call *call, bool is_concurrent)
{
    struct differential_request *given = &call->given;

    differential_fill_entries(run, given);
    if (differential_one_in(run, 4)) {
        differential_fill_parts(run, given);
        /* Whether others were first decides. */
        for (uint64_t i = 0; is_concurrent && i < given->batch.document_count; i++) {
            given->docs[i].flags &= ~(uint32_t)(WAL_DOC_EXPECT | WAL_DOC_STORE);
        }
    }
    if (!is_concurrent && differential_one_in(run, 4)) {
        given->options.durability = WAL_QUEUED;
    }
}

bool model_make_call(struct differential *run, struct model_call *call, uint32_t share, uint32_t of,
                     bool is_concurrent)
{
    memset(call, 0, sizeof(*call));
    call->kind = choose_kind(run, is_concurrent);
    call->schema_version = run->schema_version;
    call->number = choose_session(run, share, of);
    if (call->kind == MODEL_CREATE) {
        differential_session_options(run, &call->options);
        return true;
    }
    if (call->kind == MODEL_UNDELETE) {
        return choose_trashed(run, call);
    }
    if (call->number == 0 || !differential_request_begin(run, call->number, &call->given)) {
        return false;
    }
    switch (call->kind) {
    case MODEL_BATCH:
        make_batch(run, call, is_concurrent);
        break;
    case MODEL_FORK:
        differential_session_options(run, &call->options);
        if (differential_one_in(run, 2)) {
            call->id = differential_entry_id(run, call->number);
        }
        break;
    case MODEL_HEAD:
        differential_head(run, call->number, &call->head);
        break;
    case MODEL_PUT:
        differential_doc(run, call->number, false, &call->doc);
        break;
    case MODEL_CREATE:
    case MODEL_DELETE:
    case MODEL_TRASH:
    case MODEL_UNDELETE:
    case MODEL_KINDS:
        break;
    }
    return true;
}

void model_make_mark(struct differential *run, struct model_call *call)
{
    memset(call, 0, sizeof(*call));
    call->kind = MODEL_CREATE;
    call->schema_version = run->schema_version;
    differential_session_options(run, &call->options);
}

/* -------------------------------------------------------------- calling --- */

/* The number of the newest record of a session that was just made. */
static uint64_t last_of(struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};

    return wal_session_get_info(session, &info, NULL) == WAL_OK ? info.last_sequence : 0;
}

static enum wal_status submit(struct differential *run, struct model_call *call)
{
    enum wal_status status = differential_submit(run, &call->given, &call->result);

    call->sequence = call->result.sequence;
    if (status == WAL_OK && call->given.options.durability == (uint32_t)WAL_QUEUED) {
        status = wal_sync(run->store, &run->error);
    }
    return status;
}

static enum wal_status ask(struct differential *run, struct model_call *call)
{
    struct wal_session *session = call->given.session;
    struct wal_session *made = NULL;
    enum wal_status status = WAL_OK;

    switch (call->kind) {
    case MODEL_BATCH:
        return submit(run, call);
    case MODEL_CREATE:
        status = wal_session_create(run->store, &call->options, &made, &run->error);
        break;
    case MODEL_FORK:
        status = wal_session_fork(session, call->id, &call->options, &made, &run->error);
        break;
    case MODEL_DELETE:
        return wal_session_delete(session, &run->error);
    case MODEL_TRASH:
        return wal_session_trash(session, &run->error);
    case MODEL_UNDELETE:
        return wal_session_undelete(run->store, call->id, &run->error);
    case MODEL_HEAD:
        return wal_head_move(session, &call->head, NULL, &run->error);
    case MODEL_PUT:
        return wal_doc_put(run->store, session, &call->doc, NULL, &run->error);
    case MODEL_KINDS:
        break;
    }
    if (status == WAL_OK) {
        call->sequence = last_of(made);
        wal_session_close(made);
    }
    return status;
}

void model_call_engine(struct differential *run, struct model_call *call)
{
    call->result.struct_size = sizeof(call->result);
    call->earliest_ms = run->io->now_ms(run->io->ctx);
    atomic_store(&call->is_begun, true);
    do {
        call->status = ask(run, call);
        /* A process that has the lock did not run for seconds. */
    } while (call->status == WAL_ELOCKED);
    call->latest_ms = run->io->now_ms(run->io->ctx);
    (void)snprintf(call->error, sizeof(call->error), "%.190s", run->error.text);
    atomic_store(&call->is_answered, true);
}

/* ------------------------------------------------------------ repeating --- */

enum wal_status model_call_reference(struct model *model, struct model_call *call,
                                     struct wal_append_result *result)
{
    struct wal_error error = {.struct_size = sizeof(error)};
    struct reference *ref = model->ref;
    struct reference_info info;
    enum wal_status status = WAL_EINVAL;
    uint32_t made = 0;

    result->struct_size = sizeof(*result);
    reference_set_schema(ref, call->schema_version);
    reference_set_clock(ref, call->earliest_ms, call->latest_ms);
    switch (call->kind) {
    case MODEL_BATCH:
        return reference_batch(ref, call->number, &call->given.batch, &call->given.options, result,
                               &error);
    case MODEL_CREATE:
        status = reference_session_create(ref, &call->options, &made, &error);
        break;
    case MODEL_FORK:
        status = reference_session_fork(ref, call->number, call->id, &call->options, &made, &error);
        break;
    case MODEL_DELETE:
        return reference_session_delete(ref, call->number, &error);
    case MODEL_TRASH:
        return reference_session_trash(ref, call->number, &error);
    case MODEL_UNDELETE:
        return reference_session_undelete(ref, call->id, &error);
    case MODEL_HEAD:
        return reference_head_move(ref, call->number, &call->head, (char[256]){""}, &error);
    case MODEL_PUT:
        return reference_doc_put(ref, call->number, &call->doc, &(uint64_t){0}, &error);
    case MODEL_KINDS:
        break;
    }
    if (status == WAL_OK && reference_session_status(ref, made, &info) == WAL_OK) {
        result->sequence = info.info.last_sequence;
    }
    return status;
}

static int by_sequence(const void *a, const void *b)
{
    const struct model_call *const *left = a;
    const struct model_call *const *right = b;

    if ((*left)->order != (*right)->order) {
        return (*left)->order < (*right)->order ? -1 : 1;
    }
    return *left < *right ? -1 : *left > *right; /* of one process */
}

/* Whether the answer is the reference's. A batch in the queue has no number. */
static bool repeats(struct model *model, struct model_call *call)
{
    struct wal_append_result wanted = {.struct_size = sizeof(wanted)};
    enum wal_status status = model_call_reference(model, call, &wanted);

    return status == call->status &&
           (status != WAL_OK || call->sequence == 0 || wanted.sequence == call->sequence);
}

static void report(struct model *model, const struct model_call *call)
{
    model_fail(model,
               "a call (%d) of session %u that was made at once with others, or "
               "that its process may not survive, answers %d (%s), record "
               "%" PRIu64 ": the reference differs, which has %" PRIu64
               " records; the engine said last: %s",
               (int)call->kind, call->number, call->status, wal_status_text(call->status),
               call->sequence, reference_last_sequence(model->ref), call->error);
}

/* The calls in the order of their records. One was under way when its process was killed: it has
 * happened where a number is missing, or at the end, or not. */
static void repeat_in_order(struct model *model, struct model_call **calls, size_t count,
                            struct model_call *killed)
{
    uint64_t before = reference_last_sequence(model->ref);
    struct wal_append_result result;

    qsort(calls, count, sizeof(calls[0]), by_sequence);
    for (size_t i = 0; i < count; i++) {
        before = reference_last_sequence(model->ref);
        model->tally.calls[calls[i]->kind]++;
        if (repeats(model, calls[i])) {
            continue;
        }
        if (killed == NULL || calls[i]->status != WAL_OK ||
            !reference_truncate(model->ref, before)) {
            report(model, calls[i]);
            return;
        }
        (void)model_call_reference(model, killed, &result);
        model->tally.happened++;
        killed = NULL;
        if (!repeats(model, calls[i])) {
            report(model, calls[i]);
            return;
        }
    }
    if (killed != NULL) {
        (void)model_call_reference(model, killed, &result);
    }
}

void model_repeat(struct model *model)
{
    struct model_call *calls[MODEL_WORKERS * MODEL_CALLS];
    struct model_call *killed = NULL;
    size_t count = 0;

    reference_set_doubt(model->ref, true);
    for (uint32_t worker = 0; worker < MODEL_WRITERS; worker++) {
        struct model_worker *one = &model->workers[worker];

        uint64_t order = 0;

        for (uint32_t i = 0; i < one->count; i++) {
            struct model_call *call = &one->calls[i];

            order = call->sequence != 0 ? call->sequence : order;
            one->run.written = order != 0 ? order : one->run.written;
            call->order = order;
            if (atomic_load(&call->is_answered)) {
                calls[count++] = call;
            } else if (atomic_load(&call->is_begun)) {
                call->latest_ms = call->earliest_ms + 600000;
                killed = call;
            }
        }
        one->count = 0;
    }
    repeat_in_order(model, calls, count, killed);
    reference_set_doubt(model->ref, false);
}
