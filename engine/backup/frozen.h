/*
 * frozen.h - what of a log never changes any more: all below its durable end.
 * With the lock of the log's client, for reading. Any thread.
 */
#ifndef AGENTWAL_ENGINE_BACKUP_FROZEN_H
#define AGENTWAL_ENGINE_BACKUP_FROZEN_H

#include "engine/store/core.h"

/* The position up to which a log is durable, as far as that is known; 0: it has
 * none. */
uint64_t wal__frozen_end(const struct wal__log *log);

/* The end of a segment that has a successor: where its successor says. One
 * whose successor is damaged, or not the next, ends with its file. */
uint64_t wal__frozen_segment_end(const struct wal__segment *segment,
                                 const struct wal__segment *next);

#endif
