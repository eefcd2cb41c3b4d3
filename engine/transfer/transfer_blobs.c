/*
 * transfer_blobs.c - content in a transfer: the files of checkpoints, and
 * payloads that are blobs (SPEC.md 5.12, 5.13).
 *
 * Memory: a few MiB, and the longest list of files. Payloads of more than 4 MiB
 * are mapped files.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/checkpoint/checkpoint_document.h"
#include "engine/transfer/transfer.h"
#include "format/index/file_list.h"

enum wal_status wal__transfer_blob(struct wal__transfer *transfer,
                                   const struct wal__digest *digest,
                                   struct wal__blob_put_result *put)
{
    uint64_t end = 0;
    enum wal_status status = wal__blob_find_end(&transfer->to->blobs, digest,
                                                &end, &transfer->error);

    if (status != WAL_OK || end != 0) {
        put->end = end > put->end ? end : put->end;
        return status;
    }
    status = wal__blob_copy(&transfer->from->blobs, &transfer->to->blobs,
                            digest, put, &transfer->error);
    return status == WAL_ENOTFOUND
               ? wal__fail(&transfer->error, WAL_ECORRUPT,
                           "content that a checkpoint names is missing")
               : status;
}

/* Copies the list of files and every content in it. */
static enum wal_status copy_list(struct wal__transfer *transfer,
                                 const struct wal__digest *digest,
                                 struct wal__blob_put_result *put)
{
    struct wal__file_record file;
    struct wal__file_list list;
    struct wal__buf bytes;
    enum wal_status status;

    wal__buf_init(&bytes, transfer->heap);
    status = wal__blob_load(&transfer->from->blobs, digest, &bytes,
                            &transfer->error);
    if (status == WAL_OK &&
        wal__file_list_decode((struct wal__span){bytes.data, bytes.size},
                              &list) != WAL__FMT_OK) {
        status = WAL_ECORRUPT;
    }
    while (status == WAL_OK && list.remaining > 0) {
        if (wal__file_list_next(&list, &file) != WAL__FMT_OK) {
            status = WAL_ECORRUPT;
        } else if (file.kind != WAL__FILE_ABSENT) {
            status = wal__transfer_blob(transfer, &file.digest, put);
        }
    }
    wal__buf_deinit(&bytes);
    if (status == WAL_ECORRUPT || status == WAL_ENOTFOUND) {
        return wal__fail(&transfer->error, WAL_ECORRUPT,
                         "the files of a checkpoint cannot be read");
    }
    return status == WAL_OK ? wal__transfer_blob(transfer, digest, put)
                            : status;
}

enum wal_status wal__transfer_checkpoint(struct wal__transfer *transfer,
                                         struct wal__span id,
                                         struct wal__span value)
{
    struct wal__blob_put_result put = {0};
    struct wal__checkpoint checkpoint;
    enum wal_status status;

    wal__checkpoint_init(&checkpoint, transfer->heap);
    status =
        wal__checkpoint_decode(&checkpoint, id, value, 0, &transfer->error);
    if (status == WAL_OK) {
        status = copy_list(transfer, &checkpoint.list, &put);
    }
    if (status == WAL_OK && put.end != 0) {
        status = wal__blob_store_sync(&transfer->to->blobs, put.end,
                                      &transfer->error);
    }
    wal__checkpoint_deinit(&checkpoint);
    return status;
}

enum wal_status wal__transfer_payload(struct wal__transfer *transfer,
                                      const struct wal__entry_record *record,
                                      uint8_t **payload)
{
    struct wal__blob_reader *reader = NULL;
    struct wal__digest digest;
    uint64_t got = 0;
    enum wal_status status;
    uint8_t *bytes;

    memcpy(digest.bytes, record->digest, WAL__DIGEST_SIZE);
    status = wal__blob_reader_create(&transfer->from->blobs, &digest, &reader,
                                     &transfer->error);
    if (status == WAL_ENOTFOUND ||
        (status == WAL_OK &&
         wal__blob_reader_size(reader) != record->payload_size)) {
        wal__blob_reader_destroy(reader);
        return wal__fail(&transfer->error, WAL_ECORRUPT,
                         "the payload of the entry \"%.*s\" is missing",
                         (int)record->id.size, (const char *)record->id.data);
    }
    if (status != WAL_OK) {
        return status;
    }
    bytes = wal__heap_alloc(transfer->large_heap, record->payload_size);
    if (bytes == NULL) {
        wal__blob_reader_destroy(reader);
        return wal__no_memory(&transfer->error);
    }
    status = wal__blob_reader_read(reader, 0, bytes, record->payload_size, &got,
                                   &transfer->error);
    wal__blob_reader_destroy(reader);
    if (status != WAL_OK) {
        wal__heap_free(transfer->large_heap, bytes);
        return status;
    }
    *payload = bytes;
    return WAL_OK;
}
