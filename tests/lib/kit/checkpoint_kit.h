/*
 * checkpoint_kit.h - what the tests of checkpoints share: a work tree "work" next to the store, and
 * calls that must succeed. Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_CHECKPOINT_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_CHECKPOINT_KIT_H

#include "agentwal/checkpoint.h"
#include "tests/lib/kit/store_kit.h"

/* A store with a session "s" whose working directory is the work tree. */
struct kit_work {
    struct wal_store *store;
    struct wal_session *session;
    char root[4096]; /* of the work tree */
};

/* Makes all of it; `flags` of opening. */
struct kit_work kit_work_begin(uint32_t flags);
void kit_work_end(struct kit_work *work);
void kit_work_reopen(struct kit_work *work, uint32_t flags);

/* A file of the work tree, made anew with directories above it as needed. */
void kit_write(const struct kit_work *work, const char *path, const char *content);
void kit_write_bytes(const struct kit_work *work, const char *path, const void *data, size_t size);
/* Waits until the times of what was written tell every later change. */
void kit_wait_past_mtime(void);
/* The path as the system takes it; until the next call. */
const char *kit_path(const struct kit_work *work, const char *path);

/* A checkpoint of these paths, separated by blanks; what it is, whose slices are gone. id null: a
 * made one. */
struct wal_checkpoint_info kit_checkpoint(struct kit_work *work, const char *id, const char *paths);
/* What wal_checkpoint_create answers of these paths. */
enum wal_status kit_try_checkpoint(struct kit_work *work, const char *id, const char *paths,
                                   struct wal_error *error);

/* The files of a checkpoint, separated by a blank: "path=content" of a small text,
 * "path(mode)=content" where it is not 0644, "path->target", "path-" of an absent one. Until the
 * next call. */
const char *kit_files(struct kit_work *work, struct wal_session *session, const char *id);
/* The ids of all checkpoints, separated by a blank. */
const char *kit_checkpoints(struct wal_session *session);
/* Differences, each "path +insertions -deletions", separated by a comma and a blank; with "
 * binary", " mode". Frees the reader. */
const char *kit_changes(struct wal_file_change_cursor *changes);
const char *kit_diff(struct wal_session *session, const char *before, const char *after);

#endif
