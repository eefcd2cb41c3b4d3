/*
 * backup.h - copies a store while it is written to (docs/backup.md). The copy
 * is a store, as of the durable end when the call began; another call brings it
 * up to date and copies what is new.
 *
 * Invariant: at every moment the copy is as the last complete backup left it,
 * or newer: segments are completed in the order of the log, the blob stream
 * before it, and a new copy gets its MANIFEST last.
 */
#ifndef AGENTWAL_ENGINE_BACKUP_BACKUP_H
#define AGENTWAL_ENGINE_BACKUP_BACKUP_H

#include "engine/store/core.h"

struct wal__backup_result {
    uint64_t segments; /* of both streams, in the copy */
    uint64_t copied;   /* of them: anew or in part */
    uint64_t bytes;    /* that were written */
    uint64_t last_sequence;
};

/* Copies the store to the directory `path`, which is created, or is a backup of
 * this store. WAL_EEXISTS: another store or other files are there, or records
 * were appended to the copy; WAL_ELOCKED: it is in use, or the store is being
 * compacted; WAL_ENOSPACE, WAL_EIO, WAL_ENOMEM: the copy is as it was, or
 * partly newer, and the next call goes on. Any thread. */
enum wal_status wal__backup(struct wal__core *core, const char *path,
                            struct wal__backup_result *result,
                            struct wal_error *error) WAL_MUST_USE;

#endif
