/*
 * replay.h - replay: scanning a segment and applying its records to the log's
 * client (SPEC.md 3.4, 3.6). The common part of recovery, catching up and
 * rebuilding indexes. Internal to engine/log; with the client's state lock for
 * writing.
 */
#ifndef AGENTWAL_ENGINE_LOG_REPLAY_H
#define AGENTWAL_ENGINE_LOG_REPLAY_H

#include "engine/log/log.h"

/* The context of a scan's sink. */
struct wal__applier {
    struct wal__log *log;
    struct wal__segment *segment;
    int64_t clock_ms;
    enum wal_status status; /* of the client's last call */
};

/* The functions of a scan's sink; ctx is a struct wal__applier. False stops
 * the scan. */
bool wal__replay_apply_range(void *ctx, const struct wal__scan_range *range);
bool wal__replay_record_lost(void *ctx, uint32_t session);

/* Fills the start of a scan of the whole segment, from its OPEN. */
void wal__replay_init_start(const struct wal__segment *segment,
                            struct wal__scan_start *start);

/* Returns the failure of a scan that was stopped; WAL_OK when it found an end,
 * whatever the verdict. */
enum wal_status wal__replay_status(const struct wal__segment *segment,
                                   const struct wal__scan_result *facts,
                                   const struct wal__applier *applier,
                                   struct wal_error *error) WAL_MUST_USE;

/* Scans from `start` and applies the groups that are kept. */
enum wal_status wal__replay_scan(struct wal__log *log,
                                 struct wal__segment *segment,
                                 const struct wal__scan_start *start,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error) WAL_MUST_USE;

/* Makes the end that a scan of the tail segment found the end of the log. */
void wal__replay_set_end(struct wal__log *log,
                         const struct wal__scan_result *facts);

#endif
