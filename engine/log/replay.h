/*
 * replay.h - scans whose pieces go to the log's client (SPEC.md 3.4, 3.6): the
 * common part of recovering, joining and rebuilding indexes. For engine/log
 * alone; under the client's state lock.
 */
#ifndef AGENTWAL_ENGINE_LOG_REPLAY_H
#define AGENTWAL_ENGINE_LOG_REPLAY_H

#include "engine/log/log.h"

/* What a scan's sink needs. */
struct wal__applier {
    struct wal__log *log;
    struct wal__segment *segment;
    int64_t clock_ms;
    enum wal_status status;
};

/* The calls of a scan's sink; ctx is an applier. */
bool wal__replay_piece(void *ctx, const struct wal__scan_range *piece);
bool wal__replay_record_lost(void *ctx, uint32_t session);

/* A scan of the whole segment, by what its OPEN says. */
void wal__replay_init_start(const struct wal__segment *segment,
                            struct wal__scan_start *start);

/* What a scan that did not reach an end means; WAL_OK when it did. */
enum wal_status wal__replay_status(const struct wal__segment *segment,
                                   const struct wal__scan_result *facts,
                                   const struct wal__applier *applier,
                                   struct wal_error *error) WAL_MUST_USE;

/* Scans by pread from `start`, applying what is kept. */
enum wal_status wal__replay_scan(struct wal__log *log,
                                 struct wal__segment *segment,
                                 const struct wal__scan_start *start,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error) WAL_MUST_USE;

/* Takes a scan's result as the end of the log. */
void wal__replay_set_end(struct wal__log *log,
                         const struct wal__scan_result *facts);

#endif
