/*
 * payload.c - read payloads in pieces or whole.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/cli/payload.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "tools/cli/cli.h"

#define PIECE_SIZE ((size_t)1 << 20)

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

enum wal_status cli_payload_visit(struct wal_store *store,
                                  const struct wal_entry *entry,
                                  cli_payload_fn *visit, void *ctx,
                                  struct wal_error *error)
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
    piece = cli_alloc(PIECE_SIZE);
    for (uint64_t at = 0; got > 0; at += got) {
        status = wal_blob_read(blob, at, piece, PIECE_SIZE, &got, error);
        if (status != WAL_OK || got == 0 || !visit(ctx, piece, (size_t)got)) {
            break;
        }
    }
    free(piece);
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

enum wal_status cli_payload_verify(struct wal_store *store,
                                   const struct wal_entry *entry,
                                   struct wal_error *error)
{
    return is_out_of_line(entry)
               ? cli_payload_visit(store, entry, discard_piece, NULL, error)
               : WAL_OK;
}

enum wal_status cli_payload_load(struct wal_store *store,
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
    bytes = cli_alloc((size_t)entry->payload_size);
    status = wal_blob_read(blob, 0, bytes, entry->payload_size, &got, error);
    wal_blob_close(blob);
    if (status != WAL_OK) {
        free(bytes);
        return status;
    }
    entry->payload = (struct wal_slice){bytes, got};
    entry->flags &= ~(uint32_t)WAL_ENTRY_OUT_OF_LINE;
    *memory = bytes;
    return WAL_OK;
}
