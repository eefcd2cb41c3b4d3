/*
 * view.h - a view, inside: its parts, and how it is opened by tests.
 *
 * Invariant: what is known of the files is as of the last flush, and is
 * trusted no longer than they are as they were left.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_H
#define AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_H

#include "engine/convert/render/converter.h"
#include "engine/convert/render/verbatim.h"
#include "engine/convert/view/view_state.h"

/* What an import of the view found odd about a line. */
struct wal__view_issue {
    uint64_t offset; /* of the line in the file */
    const char *reason;
};

struct wal_view {
    struct wal__view_env env;
    struct wal_store *store;
    struct wal_session *session; /* a handle of its own */
    const struct wal__dialect *dialect;
    char *root;
    char *path;   /* the one that was answered last */
    char *id;     /* of the session */
    char key[40]; /* begins the names of the view's own files */
    struct wal__view_identity identity;
    struct wal__view_files files;
    struct wal__view_position position;
    struct wal__file_stamp state; /* of the state's file, as it was left */
    struct wal__converter convert;
    struct wal__view_issue *issues; /* of the last import */
    uint32_t issue_count;
    uint32_t issue_capacity;
    bool is_disabled;       /* persistence is: no file is touched */
    bool is_never_verbatim; /* for tests: never verbatim */
};

/* Opens a view with an environment of its own. */
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
