/*
 * view.h - a view: its parts, and how tests open one (SPEC.md 10).
 *
 * Invariant: the knowledge about the files is from the last flush, and is used
 * only while their stamps are unchanged.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_H
#define AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_H

#include "engine/convert/render/converter.h"
#include "engine/convert/render/verbatim.h"
#include "engine/convert/state/view_state.h"

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
    char *path;   /* the last result of wal_view_path */
    char *id;     /* of the session */
    char key[40]; /* prefix of the names of the view's state files */
    struct wal__view_identity identity;
    struct wal__view_files files;
    struct wal__view_position position;
    struct wal__file_stamp state; /* of the state file, as written */
    struct wal__converter convert;
    struct wal__view_issue *issues; /* of the last import */
    uint32_t issue_count;
    uint32_t issue_capacity;
    bool is_disabled; /* the store has no persistence; no file is written */
    bool is_never_verbatim; /* for tests: always convert */
};

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
