/*
 * view.h - the sessions at work, as the verb watch draws them.
 *
 * Invariant: rows are in order of the last change, the newest first.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_WATCH_VIEW_H
#define AGENTWAL_TOOLS_WATCH_VIEW_H

#include "tools/cli/session.h"
#include "tools/terminal/screen.h"
#include "tools/walcat/live.h"

enum {
    VIEW_SECONDS = 60,   /* of the rate */
    VIEW_LAST_SIZE = 400 /* bytes of a last message with its terminator */
};

/* A session. */
struct view_row {
    char *id;
    char last[VIEW_LAST_SIZE]; /* "role: text" */
    int64_t changed_ms;
    int64_t second;                /* of the newest count */
    uint32_t counts[VIEW_SECONDS]; /* of entries, by second */
    int32_t process;               /* that claims it; 0: unknown */
    bool is_claimed;
};

/* Zeroed but for `live`: no rows. */
struct view {
    struct live *live;
    struct view_row *rows;
    size_t count;
    size_t capacity;
    size_t at;  /* the row of the cursor */
    size_t top; /* the first row that is drawn */
    struct cli_short_ids ids;
};

/* Adds the newest sessions that were changed since a time. */
enum wal_status view_load(struct view *view, int64_t since_ms,
                          struct wal_error *error);

/* Counts an item for its session. */
void view_add(struct view *view, const struct live_item *item);

/* Reads which processes claim sessions. */
void view_read_claims(struct view *view);

void view_draw(struct view *view, struct screen *screen);

void view_deinit(struct view *view);

#endif
