/*
 * backup_dest.h - the directory of a copy: what may be there, and its lock.
 * Internal to engine/backup. One thread.
 */
#ifndef AGENTWAL_ENGINE_BACKUP_BACKUP_DEST_H
#define AGENTWAL_ENGINE_BACKUP_BACKUP_DEST_H

#include "engine/backup/backup_job.h"

/* Opens the copy for writing, or creates its directories. Sets `manifest`,
 * `is_store` and `state`. WAL_EEXISTS: another store or other files;
 * WAL_EINVAL: it is inside the store; WAL_ELOCKED. */
enum wal_status wal__backup_open_dest(struct backup *backup,
                                      struct wal_error *error) WAL_MUST_USE;
/* Makes the directory of the blob stream, durably. */
enum wal_status wal__backup_make_pack(const struct backup *backup,
                                      struct wal_error *error) WAL_MUST_USE;
/* Removes the files in index/ that name the end of the copy. */
enum wal_status
wal__backup_remove_derived(const struct backup *backup,
                           struct wal_error *error) WAL_MUST_USE;
/* Frees its lock. */
void wal__backup_close_dest(struct backup *backup);

#endif
