/*
 * checkpoint_import.h - imports directories of files (layout: checkpoint_manifest.h) as checkpoints
 * of a session.
 *
 * Invariant: a checkpoint is imported only when every content that its manifest names is in the
 * store under the digest that the manifest lists; otherwise nothing of it is imported. No text of a
 * manifest makes the import open a file outside the checkpoint's directory.
 *
 * Threads: one thread at a time per session.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_CHECKPOINT_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_CHECKPOINT_IMPORT_H

#include <stdbool.h>

#include "agentwal/checkpoint.h"
#include "engine/base/heap.h"

/* A checkpoint that was imported, or was complete already. */
struct wal__checkpoint_imported {
    struct wal_checkpoint_info info;
    const char *layout;
    const char *path;
    uint64_t added; /* files that the checkpoint lacked */
    bool is_new;
};

/* A status other than WAL_OK that a callback returns ends the import with it; the callback fills
 * *error. */
struct wal__checkpoint_import {
    const struct wal__heap *heap; /* NULL: the C library's */
    struct wal_store *store;
    struct wal_session *session;
    /* Listed paths are below it; empty: the session's cwd. */
    struct wal_slice root;
    void (*imported)(void *ctx, const struct wal__checkpoint_imported *imported);
    /* A path of which nothing was imported, and why. */
    enum wal_status (*skipped)(void *ctx, const char *path, enum wal_status status,
                               struct wal_error *error);
    /* Contents of a checkpoint that were imported, their number and bytes. */
    enum wal_status (*progress)(void *ctx, const char *path, uint64_t files, uint64_t count,
                                uint64_t bytes, struct wal_error *error);
    void *ctx;
};

/* Whether a path was skipped because of its content, as opposed to a failure to read it or to write
 * to the store. */
bool wal__checkpoint_is_refused(enum wal_status status);

/* Imports the checkpoint `name` of a directory, or without a name all checkpoints in it, oldest
 * first. *is_empty: there was none. A failure that was passed to `skipped` is not returned. */
enum wal_status wal__checkpoint_import(const struct wal__checkpoint_import *in,
                                       const char *directory, const char *name, bool *is_empty,
                                       struct wal_error *error) WAL_MUST_USE;

#endif
