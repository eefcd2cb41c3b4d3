/*
 * checkpoint_manifest.h - checkpoints as directories, in the layouts of two other session stores:
 *
 *     checkpoints/ID/manifest.json     files with the SHA-256 of their contents
 *     checkpoints/ID/blobs/SHA256      contents (layout sdk)
 *     checkpoints/ID/files/SHA256      contents (layout spec11)
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_CHECKPOINT_MANIFEST_H
#define AGENTWAL_CONVERT_SOURCE_CHECKPOINT_MANIFEST_H

#include <stdbool.h>

#include "agentwal.h"
#include "engine/base/heap.h"

enum {
    WAL__CHECKPOINT_HASH_SIZE = 2 * WAL_DIGEST_SIZE, /* hexadecimal digits */
    /* bytes; contents are copied in pieces of this size */
    WAL__CHECKPOINT_BUFFER_SIZE = 1024 * 1024
};

#define WAL__CHECKPOINT_DIR      "checkpoints"
#define WAL__CHECKPOINT_MANIFEST "manifest.json"

/* A layout and the JSON keys of its manifest. */
struct wal__checkpoint_layout {
    const char *name;
    const char *contents; /* directory of contents */
    const char *id;
    const char *created;
    const char *files;
    const char *path;
    const char *exists; /* NULL: an empty hash means that the file is absent */
    const char *hash;
    const char *size; /* NULL: sizes are not listed */
    /* Written for files that are not 0644; other readers ignore it. */
    const char *mode;
};

/* Returns NULL when no layout has this name. */
const struct wal__checkpoint_layout *wal__checkpoint_layout_find(const char *name);

/* A file that a manifest lists. */
struct wal__checkpoint_manifest_file {
    struct wal_slice path; /* may contain a zero byte */
    char hash[WAL__CHECKPOINT_HASH_SIZE + 1];
    bool is_absent;
    bool has_size;
    uint64_t size;
    uint32_t mode; /* 0: not listed */
};

/* Zeroed but for the arena, which holds the texts and the files: empty. */
struct wal__checkpoint_manifest {
    struct wal__heap_arena *arena;
    char *id; /* NULL: not listed */
    int64_t created_ms;
    struct wal__checkpoint_manifest_file *files;
    size_t count;
    size_t capacity;
};

/* Reads a manifest of either layout. Keys may be upper or lower case, with or without underscores.
 * Returns NULL, or a description of the fault that holds until the next call. Without memory
 * arena->has_failed is set. */
const char *wal__checkpoint_manifest_read(struct wal__checkpoint_manifest *manifest,
                                          const void *data, size_t size);

#endif
