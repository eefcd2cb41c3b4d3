/*
 * segment_run.h - replaces a run of neighbouring segments, of the log or of the pack, by one
 * rewritten segment (SPEC.md 2.22, 2.23, 3.9): writes the new file with records in blocks, an
 * index, SEAL and trailer, reads it back, and gives it the name of the last of them. What it holds
 * is the client's.
 *
 * Invariant: until the rename nothing has changed but a file with a temporary name, which has its
 * header last, so that one that was cut short is no segment; after it the new file is whole and
 * synced. Memory is bounded by a block and the buffer of one write. One thread, which holds the
 * compaction lock.
 */
#ifndef AGENTWAL_ENGINE_CARE_SEGMENT_RUN_H
#define AGENTWAL_ENGINE_CARE_SEGMENT_RUN_H

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "engine/log/log.h"
#include "format/index/index_fmt.h"
#include "format/segment/frame.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"

/* --- how fast ------------------------------------------------------------- */

/*
 * Limits how fast a compaction reads and writes, so that appends of other threads and processes
 * wait no longer for the device and for a processor than without it; and reports its progress, also
 * while it reads, writes and sleeps, so that the caller can stop it.
 *
 * Three measures: bytes per second; a pause after each of its syncs that took longer than usual,
 * because then others' syncs do too; and work in slices that are shorter than those of the
 * scheduler, with a pause as long after each. One thread.
 */

/* As wal__compact_options.progress: false stops the compaction. */
typedef bool wal__throttle_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct wal__throttle {
    const struct wal__io *io;
    uint64_t rate;                       /* bytes per second; UINT64_MAX: no limit, no pauses */
    uint64_t unpaid;                     /* bytes that have not been waited for */
    uint64_t free_ns;                    /* until then the bytes before take their time */
    uint64_t usual_ns;                   /* average duration of a sync; 0: none yet */
    uint64_t begun_ns;                   /* when the last pause ended; 0: there was none */
    wal__throttle_progress_fn *progress; /* or null */
    void *ctx;                           /* of progress */
    uint64_t done;                       /* that was reported last, bytes */
    uint64_t total;
    uint64_t reported_ns; /* when; 0: never */
};

void wal__throttle_init(struct wal__throttle *throttle, const struct wal__io *io, uint64_t rate);
/* Returns whether there is a limit. */
bool wal__throttle_is_limited(const struct wal__throttle *throttle);
/* Sets what is called with the progress. */
void wal__throttle_set_progress(struct wal__throttle *throttle, wal__throttle_progress_fn *progress,
                                void *ctx);
/* Sets what is reported until the next wal__throttle_report. */
void wal__throttle_expect(struct wal__throttle *throttle, uint64_t done, uint64_t total);
/* Reports progress. WAL_ECALLBACK: the caller stops the compaction. */
enum wal_status wal__throttle_report(struct wal__throttle *throttle, uint64_t done, uint64_t total,
                                     struct wal_error *error) WAL_MUST_USE;
/* Counts bytes that were read or written; sleeps when they came too fast. Time that was not used is
 * not made up for. Repeats the last report after a quarter of a second. WAL_ECALLBACK: the caller
 * stops the compaction. */
enum wal_status wal__throttle_spend(struct wal__throttle *throttle, uint64_t bytes,
                                    struct wal_error *error) WAL_MUST_USE;
/* Counts a sync; sleeps as long as it took, at most 100 ms, when it took longer than twice the
 * average. */
void wal__throttle_count_sync(struct wal__throttle *throttle, uint64_t duration_ns);
/* Between two small pieces of work: sleeps a quarter of a millisecond when at least as much has
 * passed since it slept. */
void wal__throttle_yield(struct wal__throttle *throttle);

/* --- a segment that is written -------------------------------------------- */

/* What the file takes over from the segments that it replaces. */
struct wal__rewrite_source {
    /* capacity and salt are set by the writer. */
    struct wal__segment_header header;
    struct wal__span open;          /* payload of the first one's OPEN */
    struct wal__commit_record last; /* COMMIT of the last one: epoch, clock_ms,
                                     * pack_durable */
};

struct wal__segment_writer {
    const struct wal__env *env;
    struct wal__throttle *throttle;
    struct wal__segment_header header;
    struct wal__commit_record commit; /* of the present group */
    char path[WAL__PATH_MAX];         /* ID.rewrite */
    struct wal__file *file;
    uint64_t written; /* offset up to which the file is written */
    struct wal__buf pending;
    uint64_t group_begin;
    uint32_t chain;
    uint32_t first_chain;    /* before its first frame */
    uint64_t first_sequence; /* that the file covers */
    /* The records of the next BLOCK. */
    struct wal__buf records;
    uint32_t record_count;
    uint32_t session; /* of all of them; 0: of several */
    uint32_t block_size;
    int level;              /* of compression; 0: none */
    uint64_t end;           /* of the last group, once it is written */
    uint64_t commit_offset; /* of its COMMIT */
    struct wal__cipher cipher;
};

/* Creates the file; replaces one of its name. `directory` is "log" or "pack". block_size: bytes of
 * records after which a BLOCK ends. With a limited rate the file is synced as it grows: one long
 * sync at the end would delay those of others. WAL_ENOSPACE, WAL_EIO, WAL_ENOMEM. */
enum wal_status wal__segment_writer_open(struct wal__segment_writer *writer,
                                         const struct wal__env *env, struct wal__throttle *throttle,
                                         const char *directory,
                                         const struct wal__rewrite_source *source,
                                         uint32_t block_size, int level,
                                         struct wal_error *error) WAL_MUST_USE;

/* Adds a record: *frame as it was read, except for what the caller changed; data_crc must be that
 * of the payload. *offset is the record's in the file. */
enum wal_status wal__segment_writer_add(struct wal__segment_writer *writer,
                                        const struct wal__frame *frame, struct wal__span payload,
                                        uint32_t *offset, struct wal_error *error) WAL_MUST_USE;
/* Ends the records. Fills what the header of the index says about the segment; counts, sizes and
 * last_session are the caller's. */
enum wal_status wal__segment_writer_end_records(struct wal__segment_writer *writer,
                                                struct wal__index_header *header,
                                                struct wal_error *error) WAL_MUST_USE;
/* Writes the index, which is encoded, and the rest; syncs the file. WAL_ETOOBIG: a segment cannot
 * hold it. */
enum wal_status wal__segment_writer_finish(struct wal__segment_writer *writer,
                                           struct wal__span index,
                                           struct wal_error *error) WAL_MUST_USE;

/* Closes the file and frees the buffers; unless `keep`, removes the file. */
void wal__segment_writer_close(struct wal__segment_writer *writer, bool keep);

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
    enum wal_status (*copy)(void *ctx, struct wal__segment_writer *writer, struct wal_error *error);
    /* Encodes the index: counts and sizes in the header are the client's. The bytes are valid until
     * the client is. */
    enum wal_status (*encode_index)(void *ctx, struct wal__index_header *header,
                                    struct wal__span *index, struct wal_error *error);
    /* Reading back: the index as it is in the file, then each record in the order of the file, then
     * the end. False: it is not what was written. */
    bool (*check_index)(void *ctx, struct wal__span index);
    bool (*check_record)(void *ctx, const struct wal__frame *frame, uint64_t offset,
                         struct wal__span payload);
    bool (*check_end)(void *ctx);
};

/* The segments, ascending, all before the tail. */
struct wal__segment_run {
    struct wal__log *log;
    struct wal__segment *const *segments;
    uint32_t count;
    const struct wal__index_header *last_index; /* of the last segment */
    const struct wal__segment_run_options *options;
};

struct wal__segment_run_result {
    bool is_replaced;       /* the new file has its name */
    uint64_t bytes_read;    /* of the segments that were replaced */
    uint64_t bytes_written; /* of the new one: its file's size */
};

/* WAL_ECORRUPT: what is needed of a segment, error->file, is damaged; WAL_ETOOBIG, WAL_ENOSPACE,
 * WAL_EIO, WAL_ENOMEM, and what the client returns. On failure the segments are as they were,
 * unless result->is_replaced. */
enum wal_status wal__segment_run_rewrite(const struct wal__segment_run *run,
                                         const struct wal__segment_run_client *client,
                                         struct wal__segment_run_result *result,
                                         struct wal_error *error) WAL_MUST_USE;
/* The lowest id that the first segment is, or has replaced. */
uint64_t wal__segment_run_first_id(const struct wal__segment_run *run);

/* Reads a file back that wal__segment_writer_finish wrote. WAL_ECORRUPT: it is not what was
 * written. */
enum wal_status wal__segment_writer_verify(const struct wal__segment_writer *writer,
                                           const struct wal__segment_run_client *client,
                                           struct wal_error *error) WAL_MUST_USE;

/* Returns whether a power cut may take back the name of a segment that was rewritten in this boot.
 * With the compaction lock, as the next. */
bool wal__segment_run_may_lose_names(const struct wal__log *log);
/* Every rewritten segment was rewritten again since: no name may be lost. */
void wal__segment_run_names_renewed(struct wal__log *log);

#endif
