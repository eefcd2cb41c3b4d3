/*
 * segment_run.h - replaces a run of neighbouring segments, of the log or of the
 * pack, by one rewritten segment (SPEC.md 2.22, 3.9): writes the new file,
 * reads it back, and gives it the name of the last of them. What it holds is
 * the client's.
 *
 * Invariant: until the rename nothing has changed but a file with a temporary
 * name; after it the new file is whole and synced. One thread, which holds the
 * compaction lock.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_SEGMENT_RUN_H
#define AGENTWAL_ENGINE_COMPACT_SEGMENT_RUN_H

#include "engine/compact/segment_writer.h"
#include "engine/log/log.h"

struct wal__segment_run_options {
    uint32_t block_size; /* bytes of records in a BLOCK */
    int level;           /* of compression; 0: none */
    uint32_t generation; /* of the new segment */
    bool drops_damaged;  /* for the client: records that go need not be
                          * readable, since they are to be erased */
    struct wal__throttle *throttle;
};

/* What decides about the records; ctx is the first argument of each. */
struct wal__segment_run_client {
    void *ctx;
    /* Adds the records that stay. */
    enum wal_status (*copy)(void *ctx, struct wal__segment_writer *writer,
                            struct wal_error *error);
    /* Encodes the index: counts and sizes in the header are the client's. The
     * bytes are valid until the client is. */
    enum wal_status (*encode_index)(void *ctx, struct wal__index_header *header,
                                    struct wal__span *index,
                                    struct wal_error *error);
    /* Reading back: the index as it is in the file, then each record in the
     * order of the file, then the end. False: it is not what was written. */
    bool (*check_index)(void *ctx, struct wal__span index);
    bool (*check_record)(void *ctx, const struct wal__frame *frame,
                         uint64_t offset, struct wal__span payload);
    bool (*check_end)(void *ctx);
};

/* The segments, ascending, all before the tail. */
struct wal__segment_run {
    struct wal__log *log;
    struct wal__segment *const *segments;
    uint32_t count;
    /* Of the last one. */
    const struct wal__index_header *last_index;
    const struct wal__segment_run_options *options;
};

struct wal__segment_run_result {
    bool is_replaced;       /* the new file has its name */
    uint64_t bytes_read;    /* of the segments that were replaced */
    uint64_t bytes_written; /* of the new one: its file's size */
};

/* WAL_ECORRUPT: what is needed of a segment, error->file, is damaged;
 * WAL_ETOOBIG, WAL_ENOSPACE, WAL_EIO, WAL_ENOMEM, and what the client returns.
 * On failure the segments are as they were, unless result->is_replaced. */
enum wal_status
wal__segment_run_rewrite(const struct wal__segment_run *run,
                         const struct wal__segment_run_client *client,
                         struct wal__segment_run_result *result,
                         struct wal_error *error) WAL_MUST_USE;
/* The lowest id that the first segment is, or has replaced. */
uint64_t wal__segment_run_first_id(const struct wal__segment_run *run);

/* verify.c: reads a file back that wal__segment_writer_finish wrote.
 * WAL_ECORRUPT: it is not what was written. */
enum wal_status
wal__segment_writer_verify(const struct wal__segment_writer *writer,
                           const struct wal__segment_run_client *client,
                           struct wal_error *error) WAL_MUST_USE;

/* Whether a power cut may take back the name of a segment that was rewritten in
 * this boot. With the compaction lock, as the next. */
bool wal__segment_run_may_lose_names(const struct wal__log *log);
/* Every rewritten segment was rewritten again since: no name may be lost. */
void wal__segment_run_names_renewed(struct wal__log *log);

#endif
