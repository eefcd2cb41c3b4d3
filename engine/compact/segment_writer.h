/*
 * segment_writer.h - writes a rewritten segment (SPEC.md 2.22, 2.23): records
 * in blocks, the index of what it was given, SEAL and trailer, as a file with a
 * temporary name.
 *
 * Invariant: memory is bounded by a block, the buffer of one write, and the
 * index. The file has its header last, so that one that was cut short is no
 * segment. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_SEGMENT_WRITER_H
#define AGENTWAL_ENGINE_COMPACT_SEGMENT_WRITER_H

#include "engine/base/buf.h"
#include "engine/compact/throttle.h"
#include "engine/os/env.h"
#include "format/index/index_fmt.h"
#include "format/segment/block.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"

/* What the file takes over from the segments that it replaces. */
struct wal__rewrite_source {
    /* capacity and salt are set by the writer. */
    struct wal__segment_header header;
    struct wal__span open;          /* payload of the first one's OPEN */
    struct wal__commit_record last; /* COMMIT of the last one: epoch, clock_ms,
                                     * pack_durable */
    uint32_t last_session;          /* in its index */
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
    uint32_t last_session;
    /* The records of the next BLOCK. */
    struct wal__buf records;
    uint32_t record_count;
    uint32_t session; /* of all of them; 0: of several */
    uint32_t block_size;
    int level; /* of compression; 0: none */
    /* The sections of the index. */
    struct wal__buf summaries;
    struct wal__buf postings;
    struct wal__buf texts;
    uint32_t session_count;
    uint32_t posting_count;
    uint32_t first_posting; /* of the next summary */
    uint64_t end;           /* of the last group, once it is written */
    uint64_t commit_offset; /* of its COMMIT */
};

/* Creates the file; replaces one of its name. `directory` is "log" or "pack".
 * block_size: bytes of records after which a BLOCK ends. With a limited rate
 * the file is synced as it grows: one long sync at the end would delay those of
 * others. WAL_ENOSPACE, WAL_EIO, WAL_ENOMEM. */
enum wal_status wal__segment_writer_open(
    struct wal__segment_writer *writer, const struct wal__env *env,
    struct wal__throttle *throttle, const char *directory,
    const struct wal__rewrite_source *source, uint32_t block_size, int level,
    struct wal_error *error) WAL_MUST_USE;

/* Adds a record: *frame as it was read, except for what the caller changed;
 * data_crc must be that of the payload. *offset is the record's in the file. */
enum wal_status wal__segment_writer_add(struct wal__segment_writer *writer,
                                        const struct wal__frame *frame,
                                        struct wal__span payload,
                                        uint32_t *offset,
                                        struct wal_error *error) WAL_MUST_USE;
/* Adds the posting of a record to the index; those of a session one after
 * another, by sequence. */
enum wal_status
wal__segment_writer_add_posting(struct wal__segment_writer *writer,
                                const struct wal__posting *posting,
                                struct wal_error *error) WAL_MUST_USE;
/* Adds the summary of the session whose postings were added since the last
 * summary; sessions ascend. */
enum wal_status
wal__segment_writer_add_summary(struct wal__segment_writer *writer,
                                const struct wal__summary *summary,
                                struct wal_error *error) WAL_MUST_USE;

/* Writes the rest, and syncs the file. WAL_ETOOBIG: a segment cannot hold it.
 */
enum wal_status
wal__segment_writer_finish(struct wal__segment_writer *writer,
                           struct wal_error *error) WAL_MUST_USE;

/* Closes the file and frees the buffers; unless `keep`, removes the file. */
void wal__segment_writer_close(struct wal__segment_writer *writer, bool keep);

#endif
