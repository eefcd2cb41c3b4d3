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
    bool is_root_known; /* the store's list has the root (known_root.h) */
    bool is_never_verbatim; /* for tests: always convert */
};

/* Sets the id of the session, the prefix of the names of state files, and the
 * identity; store, dialect and env are set. Sets is_disabled. */
enum wal_status wal__view_set_identity(struct wal_view *view,
                                       struct wal_slice id,
                                       struct wal_error *error) WAL_MUST_USE;

/* Writes the prefix of the names of a view's state files: the dialect, and a
 * hash of the session's id. */
void wal__view_key(char key[WAL__VIEW_KEY_SIZE], const char *dialect,
                   const char *session);

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

#endif
