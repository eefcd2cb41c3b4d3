/*
 * blob_writer.c - blobs that are written in pieces.
 */
#include <agentwal/blob.h>

#include "bindings/node/native/base/value.h"
#include "bindings/node/native/modules.h"
#include "bindings/node/native/store/job.h"
#include "bindings/node/native/store/store.h"

static void discard_writer(void *object)
{
    wal_blob_discard(object);
}

static const struct handle_type writer_type = {"blob writer", discard_writer,
                                               false};

/* --- beginning ---------------------------------------------------------- */

struct create_job {
    struct job job;
    bool is_named;
    struct wal_blob_writer *writer;
};

static enum wal_status create_run(struct job *job, struct wal_error *error)
{
    struct create_job *self = (struct create_job *)job;
    struct wal_store *wal = job->store->wal;

    return self->is_named ? wal_blob_create_named(wal, &self->writer, error)
                          : wal_blob_create(wal, &self->writer, error);
}

static napi_value create_finish(struct call *call, struct job *job)
{
    struct create_job *self = (struct create_job *)job;
    struct wal_blob_writer *writer = self->writer;

    self->writer = NULL;
    return handle_make(call, &writer_type, job->store, writer);
}

static void create_discard(struct job *job)
{
    wal_blob_discard(((struct create_job *)job)->writer);
}

static const struct job_kind create_kind = {
    "createBlob", sizeof(struct create_job), create_run, create_finish,
    create_discard};

/* createBlob(store, named): a writer */
static napi_value create_blob(struct call *call)
{
    struct store *store = store_get(call, 0);
    struct create_job *self = job_create(call, &create_kind, store, NULL);

    if (self == NULL) {
        return NULL;
    }
    self->is_named = value_bool(call, call_arg(call, 1));
    return job_start(call, &self->job);
}

/* --- writing ------------------------------------------------------------ */

struct write_job {
    struct job job;
    struct wal_slice piece;
    uint8_t digest[WAL_DIGEST_SIZE];
    uint64_t size;
};

static enum wal_status write_run(struct job *job, struct wal_error *error)
{
    struct write_job *self = (struct write_job *)job;

    return wal_blob_write(job->handle->object, self->piece, error);
}

static const struct job_kind write_kind = {
    "writeBlob", sizeof(struct write_job), write_run, NULL, NULL};

/* writeBlob(writer, piece) */
static napi_value write_blob(struct call *call)
{
    struct handle *writer = handle_get(call, 0, &writer_type);
    struct write_job *self = job_create(call, &write_kind, NULL, writer);

    if (self == NULL) {
        return NULL;
    }
    self->piece = value_bytes(call, call_arg(call, 1));
    return job_start(call, &self->job);
}

static enum wal_status finish_run(struct job *job, struct wal_error *error)
{
    struct write_job *self = (struct write_job *)job;

    return wal_blob_finish(job->handle->object, self->digest, &self->size,
                           error);
}

static napi_value finish_finish(struct call *call, struct job *job)
{
    struct write_job *self = (struct write_job *)job;
    napi_value object = make_object(call);

    object_set(call, object, "digest", make_digest(call, self->digest));
    object_number(call, object, "size", self->size);
    return object;
}

static const struct job_kind finish_kind = {
    "finishBlob", sizeof(struct write_job), finish_run, finish_finish, NULL};

/* finishBlob(writer): {digest, size}. The writer remains to be discarded. */
static napi_value finish_blob(struct call *call)
{
    struct handle *writer = handle_get(call, 0, &writer_type);

    return job_start(call, job_create(call, &finish_kind, NULL, writer));
}

/* discardBlob(writer) */
static napi_value discard_blob(struct call *call)
{
    struct handle *handle = handle_find(call, 0, &writer_type);

    if (handle != NULL) {
        handle_close(handle);
    }
    return make_undefined(call);
}

const struct call_method blob_writer_methods[] = {
    {"createBlob", create_blob},
    {"writeBlob", write_blob},
    {"finishBlob", finish_blob},
    {"discardBlob", discard_blob},
    {NULL, NULL},
};
