/*
 * follow_views.h - the views of many sessions, a bounded number open at once.
 *
 * An open view continues from its memory; a closed one continues from the state
 * stored next to its files. The number of open views affects speed only.
 *
 * Invariant: a view that cannot be updated does not affect the others. Its
 * error is reported once, until it succeeds or fails differently.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_FOLLOW_VIEWS_H
#define AGENTWAL_TOOLS_CONVERT_FOLLOW_VIEWS_H

#include "tools/convert/view.h"

enum {
    CONVERT_OPEN_VIEWS_MAX = 64
};

struct convert_open_view;
struct convert_session_state;

struct convert_views {
    struct convert_view target;
    struct convert_open_view *open_views;
    uint64_t update_count;                  /* updates so far */
    struct convert_session_state *sessions; /* by session number */
    size_t session_count;
    /* Sessions whose update failed and may succeed without a new record. */
    size_t failing;
};

/* The caller sets views->target first, with the store. */
void convert_views_init(struct convert_views *views);

/* Closes the views; required before the store is closed. Session states are
 * kept. */
void convert_views_close(struct convert_views *views);
void convert_views_deinit(struct convert_views *views);

/* Closes the views that were not updated for a minute. */
void convert_views_close_idle(struct convert_views *views);

/*
 * Updates the view of a listed session and prints the result. Returns true if
 * the session has more redacted entries than at its last update; sessions that
 * share entries with it then need an update too. A session that was deleted
 * meanwhile is ignored.
 */
bool convert_views_update(struct convert_views *views,
                          const struct wal_session_info *info);

/* Returns true if the session counts in views->failing. */
bool convert_views_is_failing(const struct convert_views *views,
                              uint32_t number);

/* Clears the errors of failing sessions that were not updated after the given
 * update_count: they no longer exist. */
void convert_views_clear_failing(struct convert_views *views,
                                 uint64_t update_count);

#endif
