/*
 * batch_request.c - loads a batch whose structs may be of another version
 * (batch_request.h).
 */
#include "engine/api/batch_request.h"

#include "engine/base/struct_size.h"
#include "engine/write/write_batch.h"

void wal__batch_request_deinit(struct wal__batch_request *request)
{
    wal__buf_deinit(&request->entries);
    wal__buf_deinit(&request->documents);
    wal__buf_deinit(&request->heads);
}

static enum wal_status load_arrays(struct wal__batch_request *request,
                                   struct wal_error *error)
{
    struct wal_batch *batch = &request->batch;
    const void *loaded = NULL;
    enum wal_status status = wal__struct_load_array(
        WAL__STRUCT(wal_entry), batch->entries, batch->entry_count,
        &request->entries, &loaded, error);

    if (status != WAL_OK) {
        return status;
    }
    batch->entries = loaded;
    status = wal__struct_load_array(WAL__STRUCT(wal_doc), batch->documents,
                                    batch->document_count, &request->documents,
                                    &loaded, error);
    if (status != WAL_OK) {
        return status;
    }
    batch->documents = loaded;
    status = wal__struct_load_array(WAL__STRUCT(wal_head), batch->heads,
                                    batch->head_count, &request->heads, &loaded,
                                    error);
    if (status == WAL_OK) {
        batch->heads = loaded;
    }
    return status;
}

enum wal_status wal__batch_request_init(
    struct wal__batch_request *request, const struct wal__heap *heap,
    const struct wal_batch *batch, const struct wal_append_options *options,
    struct wal_error *error)
{
    enum wal_status status;

    wal__buf_init(&request->entries, heap);
    wal__buf_init(&request->documents, heap);
    wal__buf_init(&request->heads, heap);
    status =
        wal__struct_load(WAL__STRUCT(wal_batch), &request->batch, batch, error);
    if (status == WAL_OK) {
        status = wal__struct_load(WAL__STRUCT(wal_append_options),
                                  &request->options, options, error);
    }
    if (status == WAL_OK && request->batch.change != NULL) {
        status =
            wal__struct_load(WAL__STRUCT(wal_session_change), &request->change,
                             request->batch.change, error);
        request->batch.change = &request->change;
    }
    if (status == WAL_OK) {
        status = wal__batch_check_counts(&request->batch, error);
    }
    return status == WAL_OK ? load_arrays(request, error) : status;
}
