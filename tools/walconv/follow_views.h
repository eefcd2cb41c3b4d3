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
#ifndef AGENTWAL_TOOLS_WALCONV_FOLLOW_VIEWS_H
#define AGENTWAL_TOOLS_WALCONV_FOLLOW_VIEWS_H

#include "tools/walconv/view.h"

enum {
    WALCONV_OPEN_VIEWS_MAX = 64
};

struct walconv_open_view;
struct walconv_session_state;

struct walconv_views {
    struct walconv_view target;
    struct walconv_open_view *open_views;
    uint64_t update_count;                  /* updates so far */
    struct walconv_session_state *sessions; /* by session number */
    size_t session_count;
    /* Sessions whose update failed and may succeed without a new record. */
    size_t failing;
};

/* The caller sets views->target first, with the store. */
void walconv_views_init(struct walconv_views *views);

/* Closes the views; required before the store is closed. Session states are
 * kept. */
void walconv_views_close(struct walconv_views *views);
void walconv_views_deinit(struct walconv_views *views);

/* Closes the views that were not updated for a minute. */
void walconv_views_close_idle(struct walconv_views *views);

/*
 * Updates the view of a listed session and prints the result. Returns true if
 * the session has more redacted entries than at its last update; sessions that
 * share entries with it then need an update too. A session that was deleted
 * meanwhile is ignored.
 */
bool walconv_views_update(struct walconv_views *views,
                          const struct wal_session_info *info);

/* Returns true if the session counts in views->failing. */
bool walconv_views_is_failing(const struct walconv_views *views,
                              uint32_t number);

/* Clears the errors of failing sessions that were not updated after the given
 * update_count: they no longer exist. */
void walconv_views_clear_failing(struct walconv_views *views,
                                 uint64_t update_count);

#endif
