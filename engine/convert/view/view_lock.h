/*
 * view_lock.h - a view in the hands of one call: its lock, and what the last
 * one left.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_LOCK_H
#define AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_LOCK_H

#include "engine/convert/view/view.h"

/* Zeroed but for the view, which has a root, and lock, which is -1. */
struct wal__view_lock {
    struct wal_view *view;
    char state[WAL__VIEW_NAME_SIZE]; /* name of its file */
    int lock_fd;
};

/* Waits until nobody else holds the view, in any process, and takes its state
 * from disk unless it is the one that was left there. End it in any case. */
enum wal_status wal__view_lock_acquire(struct wal__view_lock *view_lock,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__view_lock_release(struct wal__view_lock *view_lock);

enum wal_status wal__view_lock_save_state(
    struct wal__view_lock *view_lock, const struct wal__view_position *position,
    bool is_durable, struct wal_error *error) WAL_MUST_USE;

/* Nothing is known of the files any more. */
void wal__view_invalidate(struct wal_view *view);

#endif
