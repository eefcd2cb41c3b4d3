/*
 * blob.c - the public functions on blobs (agentwal.h): arguments are
 * checked here, everything else is below.
 */
#include "agentwal/blob.h"
#include "engine/base/error.h"
#include "engine/session/session.h"

struct wal_blob_writer {
    struct wal__core *core;
    struct wal__blob_writer *writer; /* null: finished */
    enum wal__blob_owner owner;
    struct wal__content_guard guard; /* of chunks that nothing names yet */
    bool finished;
};

struct wal_blob {
    struct wal__core *core;
    struct wal__blob_reader *reader;
};

static struct wal__core *store_core(struct wal_store *store)
{
    return store == NULL ? NULL : &store->core;
}

static struct wal__span span_of(struct wal_slice slice)
{
    return (struct wal__span){slice.data, (size_t)slice.size};
}

static enum wal_status check_output(const void *place, struct wal_error *error)
{
    return place != NULL ? WAL_OK : wal__invalid(error, "a place for the result is null");
}

static enum wal_status check_content(struct wal_slice content, struct wal_error *error)
{
    return content.data != NULL || content.size == 0
               ? WAL_OK
               : wal__invalid(error, "the content is null, and has a size");
}

/* --- putting ------------------------------------------------------------ */

static enum wal_status put_blob(struct wal__core *core, struct wal__span content,
                                struct wal__digest *digest, struct wal_error *error)
{
    struct wal__content_guard guard = {NULL, 0};
    struct wal__blob_put_result result = {0};
    enum wal_status status = wal__content_guard_enter(&guard, &core->control, error);

    if (status == WAL_OK) {
        status =
            wal__blob_put(&core->blobs, content, NULL, WAL__BLOB_OF_CALLER, digest, &result, error);
    }
    wal__content_guard_leave(&guard);
    return status == WAL_OK ? wal__blob_store_sync(&core->blobs, result.end, error) : status;
}

enum wal_status wal_blob_put(struct wal_store *store, struct wal_slice content,
                             uint8_t digest[WAL_DIGEST_SIZE], struct wal_error *error)
{
    struct wal__core *core = store_core(store);
    struct wal__digest whole;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = check_output(digest, error);
    }
    if (status == WAL_OK) {
        status = check_content(content, error);
    }
    if (status == WAL_OK) {
        status = put_blob(core, span_of(content), &whole, error);
    }
    if (status == WAL_OK) {
        memcpy(digest, whole.bytes, WAL_DIGEST_SIZE);
    }
    return status;
}

static enum wal_status create_writer(struct wal_store *store, enum wal__blob_owner owner,
                                     struct wal_blob_writer **writer, struct wal_error *error)
{
    struct wal__core *core = store_core(store);
    struct wal_blob_writer *made;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = check_output(writer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    made = wal__heap_zalloc(core->env.heap, sizeof(*made));
    if (made == NULL) {
        return wal__no_memory(error);
    }
    made->core = core;
    made->owner = owner;
    wal__core_retain(core);
    status = wal__content_guard_enter(&made->guard, &core->control, error);
    if (status == WAL_OK) {
        status = wal__blob_writer_create(&core->blobs, NULL, owner, &made->writer, error);
    }
    if (status != WAL_OK) {
        wal_blob_discard(made);
        return status;
    }
    *writer = made;
    return WAL_OK;
}

enum wal_status wal_blob_create(struct wal_store *store, struct wal_blob_writer **writer,
                                struct wal_error *error)
{
    return create_writer(store, WAL__BLOB_OF_CALLER, writer, error);
}

enum wal_status wal_blob_create_named(struct wal_store *store, struct wal_blob_writer **writer,
                                      struct wal_error *error)
{
    return create_writer(store, WAL__BLOB_OF_RECORDS, writer, error);
}

static enum wal_status check_writer(const struct wal_blob_writer *writer, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(writer == NULL ? NULL : writer->core, error);

    if (status == WAL_OK && writer->finished) {
        status = wal__invalid(error, "the writer was finished");
    }
    return status;
}

enum wal_status wal_blob_write(struct wal_blob_writer *writer, struct wal_slice piece,
                               struct wal_error *error)
{
    enum wal_status status = check_writer(writer, error);

    if (status == WAL_OK) {
        status = check_content(piece, error);
    }
    return status == WAL_OK ? wal__blob_writer_append(writer->writer, span_of(piece), error)
                            : status;
}

/* Durable on success. */
static enum wal_status finish_writer(struct wal_blob_writer *writer, struct wal__digest *digest,
                                     uint64_t *size, struct wal_error *error)
{
    struct wal__blob_put_result result = {0};
    enum wal_status status = wal__blob_writer_finish(writer->writer, digest, size, &result, error);

    wal__blob_writer_destroy(writer->writer);
    writer->writer = NULL;
    if (writer->owner == WAL__BLOB_OF_CALLER) {
        wal__content_guard_leave(&writer->guard);
    }
    return status == WAL_OK ? wal__blob_store_sync(&writer->core->blobs, result.end, error)
                            : status;
}

enum wal_status wal_blob_finish(struct wal_blob_writer *writer, uint8_t digest[WAL_DIGEST_SIZE],
                                uint64_t *size, struct wal_error *error)
{
    struct wal__digest whole;
    uint64_t whole_size = 0;
    enum wal_status status = check_writer(writer, error);

    if (status != WAL_OK) {
        return status;
    }
    writer->finished = true;
    status = finish_writer(writer, &whole, &whole_size, error);
    if (status == WAL_OK && digest != NULL) {
        memcpy(digest, whole.bytes, WAL_DIGEST_SIZE);
    }
    if (status == WAL_OK && size != NULL) {
        *size = whole_size;
    }
    return status;
}

void wal_blob_discard(struct wal_blob_writer *writer)
{
    struct wal__core *core;

    if (writer == NULL) {
        return;
    }
    core = writer->core;
    wal__blob_writer_destroy(writer->writer);
    wal__content_guard_leave(&writer->guard);
    wal__heap_free(core->env.heap, writer);
    wal__core_release(core);
}

/* --- reading ------------------------------------------------------------ */

enum wal_status wal_blob_open(struct wal_store *store, const uint8_t digest[WAL_DIGEST_SIZE],
                              struct wal_blob **blob, struct wal_error *error)
{
    struct wal__core *core = store_core(store);
    struct wal__digest wanted;
    struct wal_blob *opened;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK) {
        status = check_output(blob, error);
    }
    if (status == WAL_OK && digest == NULL) {
        status = wal__invalid(error, "the digest is null");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = core;
    memcpy(wanted.bytes, digest, WAL_DIGEST_SIZE);
    status = wal__blob_reader_create(&core->blobs, &wanted, &opened->reader, error);
    if (status != WAL_OK) {
        wal__heap_free(core->env.heap, opened);
        return status;
    }
    wal__core_retain(core);
    *blob = opened;
    return WAL_OK;
}

uint64_t wal_blob_size(const struct wal_blob *blob)
{
    return blob == NULL ? 0 : wal__blob_reader_size(blob->reader);
}

enum wal_status wal_blob_read(struct wal_blob *blob, uint64_t offset, void *data, uint64_t size,
                              uint64_t *got, struct wal_error *error)
{
    enum wal_status status = wal__check_core(blob == NULL ? NULL : blob->core, error);

    if (status == WAL_OK) {
        status = check_output(got, error);
    }
    if (status == WAL_OK && data == NULL && size > 0) {
        status = check_output(data, error);
    }
    return status == WAL_OK ? wal__blob_reader_read(blob->reader, offset, data, size, got, error)
                            : status;
}

void wal_blob_close(struct wal_blob *blob)
{
    struct wal__core *core;

    if (blob == NULL) {
        return;
    }
    core = blob->core;
    wal__blob_reader_destroy(blob->reader);
    wal__heap_free(core->env.heap, blob);
    wal__core_release(core);
}
