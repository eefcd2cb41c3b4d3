/*
 * verbatim.h - writes a session as the imported lines, byte for byte (SPEC.md
 * 10.2).
 *
 * It applies to sessions that were imported from the view's own dialect and
 * whose entries are all lines with the ids of the log. The lines are not
 * parsed.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_RENDER_VERBATIM_H
#define AGENTWAL_CONVERT_RENDER_VERBATIM_H

#include "convert/files/view_files.h"
#include "convert/render/session_items.h"
#include "convert/render/session_snapshot.h"

struct wal__verbatim {
    const struct wal__view_env *env;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;
    struct wal__view_files *files;
    const struct wal__session_snapshot *snapshot;
    uint64_t from; /* entries written so far */
};

/* Whether the session as a whole can be written verbatim; wal__verbatim_write
 * checks its lines. */
bool wal__verbatim_is_possible(const struct wal__verbatim *verbatim);

/* Writes the lines from entry `from` on, and advances it. *is_exact is false
 * when a line cannot be written verbatim; then the session must be
 * converted. */
enum wal_status wal__verbatim_write(struct wal__verbatim *verbatim,
                                    const struct wal__entry_limits *limits,
                                    bool *is_exact,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
