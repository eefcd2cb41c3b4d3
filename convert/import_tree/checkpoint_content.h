/*
 * checkpoint_content.h - stores the contents that a manifest lists as blobs.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_TREE_CHECKPOINT_CONTENT_H
#define AGENTWAL_CONVERT_IMPORT_TREE_CHECKPOINT_CONTENT_H

#include "agentwal/blob.h"
#include "convert/source/checkpoint_manifest.h"

/* Decodes the hash of a listed file. */
void wal__checkpoint_parse_hash(const char *hash,
                                uint8_t digest[WAL_DIGEST_SIZE]);

/* Stores the content of an open file. WAL_ECORRUPT: its digest is not the hash
 * that the manifest lists. `buffer` has WAL__CHECKPOINT_BUFFER_SIZE bytes. Free
 * *writer with wal_blob_discard once the checkpoint names the content. */
enum wal_status wal__checkpoint_content_store(
    struct wal_store *store, const struct wal__checkpoint_manifest_file *listed,
    int fd, uint8_t *buffer, struct wal_blob_writer **writer,
    struct wal_error *error) WAL_MUST_USE;

/* Gets the size of a content that has no file. It may be in the store already:
 * stores that share one file between checkpoints keep it with the first of
 * them. WAL_ENOTFOUND: it is not. */
enum wal_status wal__checkpoint_content_find(
    struct wal_store *store, const struct wal__checkpoint_manifest_file *listed,
    uint64_t *size, struct wal_error *error) WAL_MUST_USE;

#endif
