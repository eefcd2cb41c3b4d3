/*
 * view_lock.h - the lock of a view, which one call at a time holds, and the
 * state that it guards (SPEC.md 10.4).
 *
 * Threads: one thread at a time per view; processes exclude each other.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_LOCK_H
#define AGENTWAL_CONVERT_VIEW_VIEW_LOCK_H

#include "convert/view/view.h"

/* The owner sets view, which has a root, and lock_fd = -1, and zeroes the
 * rest. */
struct wal__view_lock {
    struct wal_view *view;
    char state[WAL__VIEW_NAME_SIZE]; /* name of the state file */
    int lock_fd;
};

/* Waits until no call in any process holds the lock, and loads the state unless
 * it is unchanged since this view wrote it. Release it in any case. */
enum wal_status wal__view_lock_acquire(struct wal__view_lock *view_lock,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__view_lock_release(struct wal__view_lock *view_lock);

enum wal_status wal__view_lock_save_state(
    struct wal__view_lock *view_lock, const struct wal__view_position *position,
    bool is_durable, struct wal_error *error) WAL_MUST_USE;

/* Discards all knowledge about the files. */
void wal__view_invalidate(struct wal_view *view);

#endif
