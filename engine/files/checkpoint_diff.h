/*
 * checkpoint_diff.h - the changes between two checkpoints, between a checkpoint
 * and the disk, and over a whole session (SPEC.md 5.13). Any thread.
 */
#ifndef AGENTWAL_ENGINE_FILES_CHECKPOINT_DIFF_H
#define AGENTWAL_ENGINE_FILES_CHECKPOINT_DIFF_H

#include "engine/files/checkpoint.h"
#include "engine/files/file_changes.h"

/* As wal_checkpoint_diff; *changes is initialised and empty on entry. */
enum wal_status wal__checkpoint_diff(struct wal_session *session,
                                     struct wal__span before,
                                     struct wal__span after,
                                     struct wal__changes *changes,
                                     struct wal_error *error) WAL_MUST_USE;
/* As wal_session_diff; *changes is initialised and empty on entry. */
enum wal_status wal__session_changes(struct wal_session *session,
                                     struct wal__changes *changes,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
