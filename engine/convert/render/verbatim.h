/*
 * verbatim.h - a session as the lines that came in, byte for byte.
 *
 * It is for sessions that were read from the view's own dialect, all of whose
 * entries are lines that say the ids that the log has. Nothing of them is
 * parsed.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_RENDER_VERBATIM_H
#define AGENTWAL_ENGINE_CONVERT_RENDER_VERBATIM_H

#include "engine/convert/render/session_items.h"
#include "engine/convert/render/session_snapshot.h"
#include "engine/convert/render/view_files.h"

struct wal__verbatim {
    const struct wal__view_env *env;
    struct wal_store *store;
    struct wal_session *session;
    const struct wal__dialect *dialect;
    struct wal__view_files *files;
    const struct wal__session_snapshot *snapshot;
    uint64_t from; /* entries that are written */
};

/* Whether the session as a whole can be; its lines are another question. */
bool wal__verbatim_is_possible(const struct wal__verbatim *verbatim);

/* Writes the lines behind `from`. *is_exact is false where one of them cannot
 * go out as it stands; then all is to be converted. */
enum wal_status wal__verbatim_write(struct wal__verbatim *verbatim,
                                    const struct wal__entry_limits *limits,
                                    bool *is_exact,
                                    struct wal_error *error) WAL_MUST_USE;

#endif
