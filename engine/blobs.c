/*
 * blobs.c - the public functions on blobs (agentwal.h): arguments are checked
 * here, everything else is below. With persistence off content is digested,
 * and not kept (SPEC.md 5.11).
 */
#include "engine/base/error.h"
#include "engine/check.h"
#include "engine/noop.h"

struct wal_blob_writer {
    struct wal__core *core;
    struct wal__blob_writer *writer; /* null: persistence is off */
    struct wal__digester digester;   /* then */
    struct wal__digesting digesting;
    uint64_t size;
    bool finished;
};

struct wal_blob {
    struct wal__core *core;
    struct wal__blob_reader *reader;
};

static struct wal__core *core_of(struct wal_store *store)
{
    return store == NULL ? NULL : &store->core;
}

static struct wal__span span_of(struct wal_slice slice)
{
    return (struct wal__span){slice.data, (size_t)slice.size};
}

static enum wal_status check_place(const void *place, struct wal_error *error)
{
    return place != NULL ? WAL_OK
                         : wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                                     "a place for the result is null");
}

static enum wal_status check_content(struct wal_slice content,
                                     struct wal_error *error)
{
    return content.data != NULL || content.size == 0
               ? WAL_OK
               : wal__fail(error, WAL_EINVAL, 0, NULL, 0,
                           "the content is null, and has a size");
}

static enum wal_status no_memory(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
}

/* --- putting ------------------------------------------------------------ */

static enum wal_status noop_put(struct wal__span content,
                                struct wal__digest *digest,
                                struct wal_error *error)
{
    struct wal__digester digester;
    enum wal_status status;

    wal__digester_init(&digester);
    status = wal__digest_of(&digester, content, digest);
    wal__digester_deinit(&digester);
    return status == WAL_OK ? WAL_OK : no_memory(error);
}

static enum wal_status put(struct wal__core *core, struct wal__span content,
                           struct wal__digest *digest, struct wal_error *error)
{
    struct wal__blob_cost cost = {0};
    enum wal_status status =
        wal__blobs_put(&core->blobs, content, NULL, digest, &cost, error);

    return status == WAL_OK ? wal__blobs_sync(&core->blobs, cost.end, error)
                            : status;
}

enum wal_status wal_blob_put(struct wal_store *store, struct wal_slice content,
                             uint8_t digest[WAL_DIGEST_SIZE],
                             struct wal_error *error)
{
    struct wal__core *core = core_of(store);
    struct wal__digest whole;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = check_place(digest, error);
    }
    if (status == WAL_OK) {
        status = check_content(content, error);
    }
    if (status == WAL_OK) {
        status = core->noop ? noop_put(span_of(content), &whole, error)
                            : put(core, span_of(content), &whole, error);
    }
    if (status == WAL_OK) {
        memcpy(digest, whole.bytes, WAL_DIGEST_SIZE);
    }
    return status;
}

static enum wal_status begin(struct wal_blob_writer *writer,
                             struct wal_error *error)
{
    if (!writer->core->noop) {
        return wal__blob_writer_create(&writer->core->blobs, NULL,
                                       &writer->writer, error);
    }
    wal__digester_init(&writer->digester);
    return wal__digesting_begin(&writer->digester, &writer->digesting) == WAL_OK
               ? WAL_OK
               : no_memory(error);
}

enum wal_status wal_blob_create(struct wal_store *store,
                                struct wal_blob_writer **writer,
                                struct wal_error *error)
{
    struct wal__core *core = core_of(store);
    struct wal_blob_writer *made;
    enum wal_status status = wal__check_writable(core, error);

    if (status == WAL_OK) {
        status = check_place(writer, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    made = wal__heap_zalloc(core->env.heap, sizeof(*made));
    if (made == NULL) {
        return no_memory(error);
    }
    made->core = core;
    status = begin(made, error);
    if (status != WAL_OK) {
        wal_blob_discard(made);
        return status;
    }
    *writer = made;
    return WAL_OK;
}

static enum wal_status check_writer(const struct wal_blob_writer *writer,
                                    struct wal_error *error)
{
    enum wal_status status =
        wal__check_writable(writer == NULL ? NULL : writer->core, error);

    if (status == WAL_OK && writer->finished) {
        status =
            wal__fail(error, WAL_EINVAL, 0, NULL, 0, "the writer was finished");
    }
    return status;
}

enum wal_status wal_blob_write(struct wal_blob_writer *writer,
                               struct wal_slice piece, struct wal_error *error)
{
    enum wal_status status = check_writer(writer, error);

    if (status == WAL_OK) {
        status = check_content(piece, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!writer->core->noop) {
        return wal__blob_writer_add(writer->writer, span_of(piece), error);
    }
    if (wal__digesting_add(&writer->digesting, span_of(piece)) != WAL_OK) {
        return no_memory(error);
    }
    writer->size += piece.size;
    return WAL_OK;
}

/* Durable on success. */
static enum wal_status finish(struct wal_blob_writer *writer,
                              struct wal__digest *digest, uint64_t *size,
                              struct wal_error *error)
{
    struct wal__blob_cost cost = {0};
    enum wal_status status;

    if (writer->core->noop) {
        *size = writer->size;
        return wal__digesting_end(&writer->digesting, digest) == WAL_OK
                   ? WAL_OK
                   : no_memory(error);
    }
    status =
        wal__blob_writer_finish(writer->writer, digest, size, &cost, error);
    return status == WAL_OK
               ? wal__blobs_sync(&writer->core->blobs, cost.end, error)
               : status;
}

enum wal_status wal_blob_finish(struct wal_blob_writer *writer,
                                uint8_t digest[WAL_DIGEST_SIZE], uint64_t *size,
                                struct wal_error *error)
{
    struct wal__digest whole;
    uint64_t whole_size = 0;
    enum wal_status status = check_writer(writer, error);

    if (status != WAL_OK) {
        return status;
    }
    writer->finished = true;
    status = finish(writer, &whole, &whole_size, error);
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
    if (writer == NULL) {
        return;
    }
    wal__blob_writer_destroy(writer->writer);
    wal__digesting_deinit(&writer->digesting);
    wal__digester_deinit(&writer->digester);
    wal__heap_free(writer->core->env.heap, writer);
}

/* --- reading ------------------------------------------------------------ */

enum wal_status wal_blob_open(struct wal_store *store,
                              const uint8_t digest[WAL_DIGEST_SIZE],
                              struct wal_blob **blob, struct wal_error *error)
{
    struct wal__core *core = core_of(store);
    struct wal__digest wanted;
    struct wal_blob *opened;
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK) {
        status = check_place(blob, error);
    }
    if (status == WAL_OK && digest == NULL) {
        status = wal__fail(error, WAL_EINVAL, 0, NULL, 0, "the digest is null");
    }
    if (status == WAL_OK && core->noop) {
        status = wal__noop_not_found(error);
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    if (opened == NULL) {
        return no_memory(error);
    }
    opened->core = core;
    memcpy(wanted.bytes, digest, WAL_DIGEST_SIZE);
    status =
        wal__blob_reader_create(&core->blobs, &wanted, &opened->reader, error);
    if (status != WAL_OK) {
        wal__heap_free(core->env.heap, opened);
        return status;
    }
    *blob = opened;
    return WAL_OK;
}

uint64_t wal_blob_size(const struct wal_blob *blob)
{
    return blob == NULL ? 0 : wal__blob_reader_size(blob->reader);
}

enum wal_status wal_blob_read(struct wal_blob *blob, uint64_t offset,
                              void *data, uint64_t size, uint64_t *got,
                              struct wal_error *error)
{
    enum wal_status status =
        wal__check_core(blob == NULL ? NULL : blob->core, error);

    if (status == WAL_OK) {
        status = check_place(got, error);
    }
    if (status == WAL_OK && data == NULL && size > 0) {
        status = check_place(data, error);
    }
    return status == WAL_OK
               ? wal__blob_read(blob->reader, offset, data, size, got, error)
               : status;
}

void wal_blob_close(struct wal_blob *blob)
{
    if (blob == NULL) {
        return;
    }
    wal__blob_reader_destroy(blob->reader);
    wal__heap_free(blob->core->env.heap, blob);
}
