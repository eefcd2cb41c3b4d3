/*
 * session_append.c - batches of a session.
 */
#include "bindings/node/native/base/uuid.h"
#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/session/session.h"
#include "bindings/node/native/store/batch.h"
#include "bindings/node/native/store/store.h"

/* submit(session, slot, BATCH_ARGS): the made id of the last entry or
 * undefined. numbers[0] is 1 when the batch is accepted and nothing will be
 * reported. */
static napi_value submit_batch(struct call *call)
{
    struct handle *session = handle_get(call, 0, &session_type);
    uint32_t slot = value_u32(call, call_arg(call, 1));
    struct batch_input *input = batch_read(call, 2);
    napi_value id;
    bool is_done;

    if (call->failed) {
        return NULL;
    }
    id = batch_made_id(call, input);
    is_done = input->options.durability == WAL_QUEUED;
    is_done &= submissions_add(call, session, slot, input) == WAL_OK;
    call->addon->numbers[0] = is_done;
    return id;
}

/* commit(session, BATCH_ARGS): as submit, and waits. numbers: appended,
 * duplicates, sequence. */
static napi_value commit_batch(struct call *call)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct handle *session = handle_get(call, 0, &session_type);
    struct batch_input *input;

    if (session == NULL) {
        return NULL;
    }
    /* It may run JavaScript, which may close the session and use the memory
     * that batches are read to. */
    submissions_flush_backlog(session->store);
    session = handle_get(call, 0, &session_type);
    input = batch_read(call, 1);
    if (call->failed) {
        return NULL;
    }
    if (!call_check(call, wal_batch_commit(session->object, &input->batch,
                                           &input->options, &result,
                                           call_error(call)))) {
        return NULL;
    }
    call->addon->numbers[0] = result.appended;
    call->addon->numbers[1] = result.duplicates;
    call->addon->numbers[2] = (double)result.sequence;
    return batch_made_id(call, input);
}

/* makeId(): an id for an entry */
static napi_value make_id(struct call *call)
{
    char id[UUID_TEXT_SIZE];

    uuid_make(call->addon, id);
    return make_string(call, id);
}

const struct call_method session_append_methods[] = {
    {"submit", submit_batch},
    {"commit", commit_batch},
    {"makeId", make_id},
    {NULL, NULL},
};
