/*
 * content.c - reading a blob.
 */
#include <agentwal/blob.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/interface.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

struct read_job {
    struct job job;
    uint64_t offset;
    void *data; /* of an array that `array` keeps */
    size_t size;
    napi_ref array;
    uint64_t got;
};

static enum wal_status read_run(struct job *job, struct wal_error *error)
{
    struct read_job *self = (struct read_job *)job;

    return wal_blob_read(job->handle->object, self->offset, self->data, self->size, &self->got,
                         error);
}

static napi_value read_finish(struct call *call, struct job *job)
{
    return make_number(call, ((struct read_job *)job)->got);
}

static void read_discard(struct job *job)
{
    struct read_job *self = (struct read_job *)job;

    if (self->array != NULL && !job->addon->is_ended) {
        (void)napi_delete_reference(job->addon->env, self->array);
    }
}

static const struct job_kind read_kind = {"readBlob", sizeof(struct read_job), read_run,
                                          read_finish, read_discard};

/* readBlob(blob, offset, array): the number of bytes read. The array is filled in the thread;
 * JavaScript leaves it alone until the promise is settled. */
static napi_value read_blob(struct call *call)
{
    struct handle *blob = handle_get(call, 0, &blob_type);
    struct read_job *self = job_create(call, &read_kind, NULL, blob);
    napi_typedarray_type kind = napi_int8_array;

    if (self == NULL) {
        return NULL;
    }
    self->offset = value_u64(call, call_arg(call, 1));
    if (call_ok(call, napi_get_typedarray_info(call->env, call_arg(call, 2), &kind, &self->size,
                                               &self->data, NULL, NULL)) &&
        kind != napi_uint8_array) {
        call_fail(call, WAL_EINVAL, "a Uint8Array is expected");
    }
    if (!call->failed) {
        call_ok(call, napi_create_reference(call->env, call_arg(call, 2), 1, &self->array));
    }
    return job_start(call, &self->job);
}

const struct call_method content_methods[] = {
    {"readBlob", read_blob},
    {NULL, NULL},
};
