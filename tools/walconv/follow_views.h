/*
 * follow_views.h - the views of many sessions, a few of them open.
 *
 * A view that is open goes on with what is new; one that was closed goes on by
 * the state beside its files. So how many are open is a matter of speed alone.
 *
 * Invariant: a session that cannot be brought up harms no other one, and is
 * told of once, until it succeeds or fails otherwise.
 *
 * Threads: a tool is one thread.
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
    struct walconv_view of;
    struct walconv_open_view *open_views;
    uint64_t update_count;                  /* so many were brought up */
    struct walconv_session_state *sessions; /* by the session's number */
    size_t session_count;
    size_t failing; /* of them, those that can succeed without a new record */
};

/* Set views->of first, with the store. */
void walconv_views_init(struct walconv_views *views);

/* Closes the views, as before the store is closed. What is noted of sessions
 * stays. */
void walconv_views_close(struct walconv_views *views);
void walconv_views_deinit(struct walconv_views *views);

/* Closes those that had nothing new for a minute. */
void walconv_views_close_idle(struct walconv_views *views);

/*
 * Brings the view of a listed session up and prints what was done. True: the
 * session has redactions that it had not when it was brought up last, and so
 * may those that share entries with it. A session that was deleted meanwhile
 * is none.
 */
bool walconv_views_update(struct walconv_views *views,
                          const struct wal_session_info *info);

/* Whether the session is one of views->failing. */
bool walconv_views_is_failing(const struct walconv_views *views,
                              uint32_t number);

/* Those of views->failing that were not brought up since there were so many
 * update_count are no sessions any more. */
void walconv_views_clear_failing(struct walconv_views *views,
                                 uint64_t update_count);

#endif
