/*
 * rewind_kit.h - a store next to a work tree, for tests of rewinds on the real disk: files made,
 * named in checkpoints, rewound and looked at, all below the directory "tree" of the test's own.
 * Failures are cmocka's.
 */
#ifndef AGENTWAL_TESTS_LIB_KIT_REWIND_KIT_H
#define AGENTWAL_TESTS_LIB_KIT_REWIND_KIT_H

#include "agentwal/checkpoint.h"
#include "engine/base/worktree.h"
#include "tests/lib/kit/store_kit.h"

/* Makes "tree", and a session "s" whose cwd it is. */
struct wal_session *tree_session(struct wal_store *store);
/* An absolute path below "tree"; until the call after the next. */
const char *tree_path(const char *path);

void tree_put(const char *path, const char *content);
void tree_put_bytes(const char *path, const void *data, size_t size);
void tree_link(const char *path, const char *target);
void tree_chmod(const char *path, unsigned mode);
void tree_directory(const char *path);
void tree_remove(const char *path);

/* The file holds just this; null: nothing is there. */
void tree_assert_content(const char *path, const char *content);
void tree_assert_link(const char *path, const char *target);
void tree_assert_mode(const char *path, unsigned mode);
uint64_t tree_inode(const char *path);
/* The names below "tree", sorted, directories with a trailing slash,
 * separated by a blank; until the next call. */
const char *tree_names(void);

/* Checkpoints these paths, separated by a blank. */
void tree_checkpoint(struct wal_session *session, const char *id, const char *paths);

/* What a rewind answered, and the changes as " PATH+INSERTIONS-DELETIONS", followed by "*" if
 * binary, by "!" if changed elsewhere. */
struct kit_rewind_result {
    struct wal_rewind_result info;
    char error[WAL_REWIND_TEXT_SIZE];
    char undo[WAL_ID_SIZE];
    char list[4096];
};

struct kit_rewind_result kit_rewind(struct wal_session *session, const char *id);
/* options may be null. */
struct kit_rewind_result kit_rewind_with(struct wal_session *session, const char *id,
                                         const struct wal_rewind_options *options);
/* It was done, and changed this. */
void assert_rewound(const struct kit_rewind_result *answer, const char *list);
/* It was refused with this status, the sentence has the text, and there is no undo. */
void assert_rewind_refused(const struct kit_rewind_result *answer, enum wal_status status,
                           const char *text);

/*
 * The whole life of a process that opens the store, rewinds session "s" to a checkpoint and dies
 * right before the Nth (from 0) call of this kind on its work tree; answers whether it got so far.
 */
enum tree_crash_point { TREE_WRITE, TREE_SYNC_ALL, TREE_RENAME, TREE_UNLINK, TREE_SYNC_DIRECTORY };
bool tree_crash_rewind(const char *id, enum tree_crash_point call, uint32_t nth);
/* The same with flags: enum wal_rewind_flag. */
bool tree_crash_rewind_flags(const char *id, uint32_t flags, enum tree_crash_point call,
                             uint32_t nth);

/* Flips bits of stored content wherever the pack holds these bytes as they are; the store is
 * closed. How often. */
uint32_t tree_flip_content(const void *data, size_t size);
/* SHA-256 in hexadecimal; until the next call. */
const char *tree_digest(const void *data, size_t size);

#endif
