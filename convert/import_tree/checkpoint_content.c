/*
 * checkpoint_content.c - stores contents of checkpoints (checkpoint_content.h).
 *
 * Threads: any.
 */
#include "convert/import_tree/checkpoint_content.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "convert/source/file_read.h"
#include "engine/base/error.h"

void wal__checkpoint_parse_hash(const char *hash,
                                uint8_t digest[WAL_DIGEST_SIZE])
{
    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        const char digits[] = {hash[2 * i], hash[2 * i + 1], '\0'};

        digest[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

/* Stores the file's bytes as a blob. */
static enum wal_status store_stream(struct wal_blob_writer *writer,
                                    uint8_t *buffer, const char *hash, int fd,
                                    uint8_t digest[WAL_DIGEST_SIZE],
                                    struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    uint64_t size = 0;
    ssize_t got = 1;

    while (status == WAL_OK && got > 0) {
        struct wal_slice piece = {buffer, 0};

        got = wal__file_read_full(fd, buffer, WAL__CHECKPOINT_BUFFER_SIZE);
        if (got < 0) {
            status = wal__fail_at(error, WAL_EIO, errno, NULL, 0, "%s: %s",
                                  hash, strerror(errno));
        } else if (got > 0) {
            piece.size = (uint64_t)got;
            status = wal_blob_write(writer, piece, error);
        }
    }
    return status == WAL_OK ? wal_blob_finish(writer, digest, &size, error)
                            : status;
}

enum wal_status wal__checkpoint_content_store(
    struct wal_store *store, const struct wal__checkpoint_manifest_file *listed,
    int fd, uint8_t *buffer, struct wal_blob_writer **writer,
    struct wal_error *error)
{
    uint8_t expected[WAL_DIGEST_SIZE];
    uint8_t digest[WAL_DIGEST_SIZE];
    char hash[WAL__CHECKPOINT_HASH_SIZE + 1];
    enum wal_status status = wal_blob_create_named(store, writer, error);

    if (status == WAL_OK) {
        status = store_stream(*writer, buffer, listed->hash, fd, digest, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    wal__checkpoint_parse_hash(listed->hash, expected);
    if (memcmp(digest, expected, sizeof(digest)) == 0) {
        return WAL_OK;
    }
    wal__checkpoint_hash_text(digest, hash);
    return wal__fail(error, WAL_ECORRUPT,
                     "the content %s of \"%s\" is damaged: its SHA-256 is %s; "
                     "skipped",
                     listed->hash, (const char *)listed->path.data, hash);
}

enum wal_status
wal__checkpoint_content_find(struct wal_store *store,
                             const struct wal__checkpoint_manifest_file *listed,
                             uint64_t *size, struct wal_error *error)
{
    uint8_t digest[WAL_DIGEST_SIZE];
    struct wal_blob *blob = NULL;
    enum wal_status status;

    wal__checkpoint_parse_hash(listed->hash, digest);
    status = wal_blob_open(store, digest, &blob, error);
    if (status == WAL_OK) {
        *size = wal_blob_size(blob);
        wal_blob_close(blob);
        return WAL_OK;
    }
    return status != WAL_ENOTFOUND
               ? status
               : wal__fail(error, WAL_ENOTFOUND,
                           "the content %s of \"%s\" is missing; skipped",
                           listed->hash, (const char *)listed->path.data);
}
