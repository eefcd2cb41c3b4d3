/*
 * changes.h - the checkpoints of a session, and what changed between two of
 * them, as JSON (docs/seeing.md, Resources).
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_CHANGES_H
#define AGENTWAL_TOOLS_SHOWN_CHANGES_H

#include "tools/shown/shown.h"

enum {
    SHOWN_PATCH_MAX = 256 << 10, /* bytes of a patch */
    SHOWN_CONTENT_MAX = 2 << 20  /* bytes of a file that is compared */
};

/* The ids of a session's checkpoints, oldest first. Zeroed: none. */
struct shown_checkpoints {
    char **ids;
    size_t count;
    size_t capacity;
};

enum wal_status shown_checkpoints_read(struct shown_checkpoints *checkpoints,
                                       struct wal_session *session,
                                       struct wal_error *error);
void shown_checkpoints_deinit(struct shown_checkpoints *checkpoints);

/* Writes the member "checkpoints", newest first. */
enum wal_status shown_checkpoints_write(struct shown *shown,
                                        struct wal_session *session,
                                        struct wal_error *error);

/* Writes the member "files": the files that both checkpoints name and that
 * differ. Fails before it writes anything. */
enum wal_status shown_diff(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_slice before,
                           struct wal_slice after, struct wal_error *error);

#endif
