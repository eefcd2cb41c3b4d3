/*
 * view.h - a view: its parts, and how tests open one (SPEC.md 10).
 *
 * Invariant: the knowledge about the files is from the last flush, and is used
 * only while their stamps are unchanged.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_H
#define AGENTWAL_CONVERT_VIEW_VIEW_H

#include "convert/render/converter.h"
#include "convert/render/verbatim.h"
#include "convert/state/view_state.h"

#define WAL__VIEW_KEY_SIZE 40

/* A line that the import could not place as expected. */
struct wal__view_issue {
    uint64_t offset; /* of the line in the file */
    const char *reason;
};

struct wal_view {
    struct wal__view_env env;
    struct wal_store *store;
    struct wal_session *session; /* a separate handle */
    const struct wal__dialect *dialect;
    char *root;
    char *path;                   /* the last result of wal_view_path */
    char *id;                     /* of the session */
    char key[WAL__VIEW_KEY_SIZE]; /* prefix of the names of state files */
    struct wal__view_identity identity;
    struct wal__view_files files;
    struct wal__view_position position;
    struct wal__file_stamp state; /* of the state file, as written */
    struct wal__converter convert;
    struct wal__view_issue *issues; /* of the last import */
    uint32_t issue_count;
    uint32_t issue_capacity;
    bool is_disabled;   /* the store has no persistence; no file is written */
    bool is_root_known; /* the store's list has the root */
    bool is_never_verbatim; /* for tests: always convert */
};

/* Writes the prefix of the names of a view's state files: the dialect, and a
 * hash of the session's id. */
void wal__view_key(char key[WAL__VIEW_KEY_SIZE], const char *dialect,
                   const char *session);

/* Sets the id of the session, the prefix of the names of state files, and the
 * identity; store, dialect and env are set. Sets is_disabled. */
enum wal_status wal__view_set_identity(struct wal_view *view,
                                       struct wal_slice id,
                                       struct wal_error *error) WAL_MUST_USE;

/* Returns the dialect that views can be written in, or NULL. */
const struct wal__dialect *wal__view_find_dialect(struct wal_slice name);

/* Opens a view with a given environment. */
enum wal_status wal__view_open(struct wal_store *store,
                               struct wal_session *session,
                               const struct wal_view_options *options,
                               const struct wal__view_env *env,
                               struct wal_view **view,
                               struct wal_error *error) WAL_MUST_USE;

enum wal_status wal__view_flush(struct wal_view *view,
                                struct wal_view_flush_result *report,
                                struct wal_error *error) WAL_MUST_USE;

/* --- the lock ------------------------------------------------------------ */

/* The owner sets view, which has a root, and lock_fd = -1, and zeroes the
 * rest. */
struct wal__view_lock {
    struct wal_view *view;
    char state[WAL__VIEW_NAME_SIZE]; /* name of the state file */
    int lock_fd;
};

/* Waits until no call in any process holds the lock, and loads the state unless
 * it is unchanged since this view wrote it. Release it in any case. */
enum wal_status wal__view_lock_acquire(struct wal__view_lock *view_lock,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__view_lock_release(struct wal__view_lock *view_lock);

enum wal_status wal__view_lock_save_state(
    struct wal__view_lock *view_lock, const struct wal__view_position *position,
    bool is_durable, struct wal_error *error) WAL_MUST_USE;

/* Discards all knowledge about the files. */
void wal__view_invalidate(struct wal_view *view);

/* --- known roots --------------------------------------------------------- */

/* Adds a root, which exists, to the list of the store, durably; flags are of
 * enum wal_store_view_root_flag. When it is new there, those that do not exist
 * any more are removed. */
enum wal_status wal__view_root_add(struct wal_store *store,
                                   const struct wal__dialect *dialect,
                                   const char *root, uint32_t flags,
                                   struct wal_error *error) WAL_MUST_USE;

#endif
