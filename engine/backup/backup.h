/*
 * backup.h - copies a store while it is written to (docs/backup.md). The copy
 * is a store, and another call brings it up to date by what is new.
 *
 * Invariant: the copy is at every moment as the last complete backup left it,
 * or as the present one does; a new copy gets its MANIFEST last. While segments
 * that the chain of a stream needs are changed, a guard is its newest segment:
 * its OPEN ends the chain where the last backup did. Removing the guard of the
 * log makes everything valid; what was added to the blob stream before does not
 * matter. Segments that compaction wrote lack what the streams had before, and
 * are shadow segments (SPEC.md 3.11): then MANIFEST with `shadow` is the one
 * step that makes everything valid.
 */
#ifndef AGENTWAL_ENGINE_BACKUP_BACKUP_H
#define AGENTWAL_ENGINE_BACKUP_BACKUP_H

#include "engine/store/core.h"

struct wal__backup_options {
    /* Called after each MiB; false stops with WAL_ECALLBACK. NULL: none. */
    bool (*progress)(void *ctx, uint64_t done, uint64_t total);
    void *ctx;
};

struct wal__backup_result {
    uint64_t segments; /* of both streams, in the copy */
    uint64_t copied;   /* of them: anew or in part */
    uint64_t removed;  /* files of the copy that the store has no more */
    uint64_t bytes;    /* that were written */
    uint64_t shared;   /* of files whose blocks are shared with the store's */
    uint64_t last_sequence;
};

/* Copies the store to the directory `path`: wal_store_backup. Any thread. */
enum wal_status wal__backup(struct wal__core *core, const char *path,
                            const struct wal__backup_options *options,
                            struct wal__backup_result *result,
                            struct wal_error *error) WAL_MUST_USE;

#endif
