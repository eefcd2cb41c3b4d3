/*
 * takeover.h - the epochs of a store in a remote: making one, and fencing those
 * before it.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_SHIP_TAKEOVER_H
#define AGENTWAL_REMOTE_SHIP_TAKEOVER_H

#include "remote/history/history.h"

/*
 * Makes the epoch after history->last_epoch for this writer, fences those
 * before it and reads the history again: nothing that is in it can change any
 * more but by this writer. WAL_EFENCED when another writer made the epoch, or
 * one after it.
 */
enum wal_status wal__takeover(struct wal_remote *remote,
                              wal__part_info_fn *info, const uint8_t uuid[16],
                              const uint8_t writer[16],
                              struct wal__history *history,
                              struct wal_error *error) WAL_MUST_USE;

/* Fences the epochs before history->last_epoch, of which none has a part after
 * it, and reads the history again. */
enum wal_status wal__takeover_fence(struct wal_remote *remote,
                                    wal__part_info_fn *info,
                                    const uint8_t uuid[16],
                                    struct wal__history *history,
                                    struct wal_error *error) WAL_MUST_USE;

/* WAL_EFENCED: a sentence with who took over. */
enum wal_status wal__takeover_report(const struct wal__history *history,
                                     struct wal_error *error);

#endif
