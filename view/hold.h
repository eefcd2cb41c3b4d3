/*
 * hold.h - a view in the hands of one call: its lock, and what the last one
 * left.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_VIEW_HOLD_H
#define AGENTWAL_VIEW_HOLD_H

#include "view/view.h"

/* Zeroed but for the view, which has a root, and lock, which is -1. */
struct wal__hold {
    struct wal_view *view;
    char state[WAL__VIEW_NAME_SIZE]; /* name of its file */
    int lock;
};

/* Waits until nobody else holds the view, in any process, and takes its state
 * from disk unless it is the one that was left there. End it in any case. */
enum wal_status wal__hold_take(struct wal__hold *hold,
                               struct wal_error *error) WAL_MUST_USE;
void wal__hold_end(struct wal__hold *hold);

enum wal_status wal__hold_save(struct wal__hold *hold,
                               const struct wal__position *position,
                               bool is_durable,
                               struct wal_error *error) WAL_MUST_USE;

/* Nothing is known of the files any more. */
void wal__view_forget(struct wal_view *view);

#endif
