/*
 * entry_payload.c - reads payloads in pieces or whole (entry_payload.h).
 *
 * Threads: any.
 */
#include "convert/source/entry_payload.h"

#include "agentwal/blob.h"
#include "engine/base/error.h"

#define PIECE_SIZE ((size_t)1 << 20)

static const struct wal__heap *heap_or_libc(const struct wal__heap *heap)
{
    return heap != NULL ? heap : &wal__heap_libc;
}

static bool is_out_of_line(const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0;
}

/* A missing blob is damage, since an entry refers to it. */
static enum wal_status open_blob(struct wal_store *store,
                                 const struct wal_entry *entry,
                                 struct wal_blob **blob,
                                 struct wal_error *error)
{
    enum wal_status status =
        wal_blob_open(store, entry->payload_digest, blob, error);

    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}

enum wal_status wal__entry_payload_visit(const struct wal__heap *heap,
                                         struct wal_store *store,
                                         const struct wal_entry *entry,
                                         wal__entry_payload_fn *visit,
                                         void *ctx, struct wal_error *error)
{
    struct wal_blob *blob = NULL;
    enum wal_status status;
    uint64_t got = 1;
    char *piece;

    if (!is_out_of_line(entry)) {
        (void)visit(ctx, entry->payload.data, (size_t)entry->payload.size);
        return WAL_OK;
    }
    status = open_blob(store, entry, &blob, error);
    if (status != WAL_OK) {
        return status;
    }
    heap = heap_or_libc(heap);
    piece = wal__heap_alloc(heap, PIECE_SIZE);
    if (piece == NULL) {
        wal_blob_close(blob);
        return wal__no_memory(error);
    }
    for (uint64_t at = 0; got > 0; at += got) {
        status = wal_blob_read(blob, at, piece, PIECE_SIZE, &got, error);
        if (status != WAL_OK || got == 0 || !visit(ctx, piece, (size_t)got)) {
            break;
        }
    }
    wal__heap_free(heap, piece);
    wal_blob_close(blob);
    return status;
}

static bool discard_piece(void *ctx, const void *data, size_t size)
{
    (void)ctx;
    (void)data;
    (void)size;
    return true;
}

enum wal_status wal__entry_payload_verify(const struct wal__heap *heap,
                                          struct wal_store *store,
                                          const struct wal_entry *entry,
                                          struct wal_error *error)
{
    return is_out_of_line(entry)
               ? wal__entry_payload_visit(heap, store, entry, discard_piece,
                                          NULL, error)
               : WAL_OK;
}

enum wal_status wal__entry_payload_load(const struct wal__heap *heap,
                                        struct wal_store *store,
                                        struct wal_entry *entry, char **memory,
                                        struct wal_error *error)
{
    struct wal_blob *blob = NULL;
    enum wal_status status;
    uint64_t got = 0;
    char *bytes;

    *memory = NULL;
    if (!is_out_of_line(entry)) {
        return WAL_OK;
    }
    status = open_blob(store, entry, &blob, error);
    if (status != WAL_OK) {
        return status;
    }
    heap = heap_or_libc(heap);
    bytes = wal__heap_alloc(heap, (size_t)entry->payload_size + 1);
    status = bytes == NULL ? wal__no_memory(error)
                           : wal_blob_read(blob, 0, bytes, entry->payload_size,
                                           &got, error);
    wal_blob_close(blob);
    if (status != WAL_OK) {
        wal__heap_free(heap, bytes);
        return status;
    }
    entry->payload = (struct wal_slice){bytes, got};
    entry->flags &= ~(uint32_t)WAL_ENTRY_OUT_OF_LINE;
    *memory = bytes;
    return WAL_OK;
}
