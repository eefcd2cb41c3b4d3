/*
 * pack_job.h - a compaction of the pack at work (SPEC.md 3.9). Of
 * pack_compact.c, pack_choose.c and pack_rewrite.c; one thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_PACK_PACK_JOB_H
#define AGENTWAL_ENGINE_COMPACT_PACK_PACK_JOB_H

#include "engine/blob/pack_list.h"
#include "engine/compact/compact.h"
#include "engine/compact/pack/pack_live.h"

/* A segment that was below the tail when the compaction began. */
struct pack_segment {
    struct wal__segment *segment;
    struct wal__index_header header; /* of its index */
    uint64_t live_bytes;             /* of records */
    bool is_suitable;                /* not damaged, of this version */
    bool is_refused;
    bool is_chosen;
};

struct pack_job {
    struct wal__core *core;
    struct wal__blob_store *blobs;
    const struct wal__compact_options *options;
    struct wal__compact_result *result;
    struct wal__throttle *throttle;
    struct pack_segment *segments; /* ascending by id */
    uint32_t count;
    struct wal__pack_live live;
    uint32_t generation; /* of the last new segment */
    uint64_t done;       /* bytes of segments that were replaced */
    uint64_t total;      /* of those that are chosen */
};

/* Returns the segment of the job that holds a position, or NULL. */
struct pack_segment *wal__pack_job_find(const struct pack_job *job,
                                        uint64_t position);
/* Leaves a segment as it is, and reports it once. What is in it keeps what it
 * is based on. */
void wal__pack_job_refuse(struct pack_job *job, struct pack_segment *segment,
                          const struct wal_error *error);

/* Chooses segments: by what would come back, and for erasing by what is dead at
 * all. Keeps the bases of what is not encoded anew. pack_choose.c */
void wal__pack_choose(struct pack_job *job);

/* Replaces `count` chosen neighbours from the rank `from` on by one segment.
 * WAL_ECORRUPT: a record that stays is damaged, error->file names the segment;
 * nothing was replaced unless *is_replaced. pack_rewrite.c */
enum wal_status wal__pack_rewrite(struct pack_job *job, uint32_t from,
                                  uint32_t count, bool *is_replaced,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
