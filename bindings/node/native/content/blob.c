/*
 * blob.c - putting and reading blobs; blob_writer.c writes them in pieces.
 */
#include <agentwal/blob.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/content/digest.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static void close_blob(void *object)
{
    wal_blob_close(object);
}

static const struct handle_type blob_type = {"blob", close_blob, false};

/* --- putting ------------------------------------------------------------ */

struct put_job {
    struct job job;
    struct wal_slice content;
    uint8_t digest[WAL_DIGEST_SIZE];
};

static enum wal_status put_run(struct job *job, struct wal_error *error)
{
    struct put_job *self = (struct put_job *)job;

    return wal_blob_put(job->store->wal, self->content, self->digest, error);
}

static napi_value put_finish(struct call *call, struct job *job)
{
    return make_digest(call, ((struct put_job *)job)->digest);
}

static const struct job_kind put_kind = {"putBlob", sizeof(struct put_job),
                                         put_run, put_finish, NULL};

/* putBlob(store, content): its digest */
static napi_value put_blob(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct put_job *self = job_create(call, &put_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->content = value_bytes(call, call_arg(call, 1));
    return job_start(call, &self->job);
}

/* --- reading ------------------------------------------------------------ */

/* openBlob(store, digest): a blob */
static napi_value open_blob(struct call *call)
{
    struct store *store = store_get(call, 0);
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;

    digest_read(call, call_arg(call, 1), digest);
    if (call->failed ||
        !call_check(
            call, wal_blob_open(store->wal, digest, &blob, call_error(call)))) {
        return NULL;
    }
    return handle_make(call, &blob_type, store, blob);
}

/* blobSize(blob) */
static napi_value blob_size(struct call *call)
{
    struct handle *blob = handle_get(call, 0, &blob_type);

    return blob == NULL ? NULL : make_number(call, wal_blob_size(blob->object));
}

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

    return wal_blob_read(job->handle->object, self->offset, self->data,
                         self->size, &self->got, error);
}

static napi_value read_finish(struct call *call, struct job *job)
{
    return make_number(call, ((struct read_job *)job)->got);
}

static void read_discard(struct job *job)
{
    struct read_job *self = (struct read_job *)job;

    if (self->array != NULL) {
        (void)napi_delete_reference(job->addon->env, self->array);
    }
}

static const struct job_kind read_kind = {"readBlob", sizeof(struct read_job),
                                          read_run, read_finish, read_discard};

/* readBlob(blob, offset, array): the number of bytes read. The array is filled
 * in the thread; JavaScript leaves it alone until the promise is settled. */
static napi_value read_blob(struct call *call)
{
    struct handle *blob = handle_get(call, 0, &blob_type);
    struct read_job *self = job_create(call, &read_kind, NULL, blob);
    napi_typedarray_type kind = napi_int8_array;

    if (self == NULL) {
        return NULL;
    }
    self->offset = value_u64(call, call_arg(call, 1));
    if (call_ok(call, napi_get_typedarray_info(call->env, call_arg(call, 2),
                                               &kind, &self->size, &self->data,
                                               NULL, NULL)) &&
        kind != napi_uint8_array) {
        call_fail(call, WAL_EINVAL, "a Uint8Array is expected");
    }
    if (!call->failed) {
        call_ok(call, napi_create_reference(call->env, call_arg(call, 2), 1,
                                            &self->array));
    }
    return job_start(call, &self->job);
}

/* closeBlob(blob) */
static napi_value close_handle(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &blob_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

const struct call_method blob_methods[] = {
    {"putBlob", put_blob},       {"openBlob", open_blob},
    {"blobSize", blob_size},     {"readBlob", read_blob},
    {"closeBlob", close_handle}, {NULL, NULL},
};
