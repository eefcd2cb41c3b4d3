/*
 * segment_writer.h - writes a rewritten segment (SPEC.md 2.22, 2.23): records
 * in blocks, an index, SEAL and trailer, as a file with a temporary name.
 *
 * Invariant: memory is bounded by a block and the buffer of one write. The
 * file has its header last, so that one that was cut short is no
 * segment. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_SEGMENT_WRITER_H
#define AGENTWAL_ENGINE_COMPACT_SEGMENT_WRITER_H

#include "engine/base/buf.h"
#include "engine/base/env.h"
#include "engine/compact/throttle.h"
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
/* Ends the records. Fills what the header of the index says about the segment;
 * counts, sizes and last_session are the caller's. */
enum wal_status
wal__segment_writer_end_records(struct wal__segment_writer *writer,
                                struct wal__index_header *header,
                                struct wal_error *error) WAL_MUST_USE;
/* Writes the index, which is encoded, and the rest; syncs the file.
 * WAL_ETOOBIG: a segment cannot hold it. */
enum wal_status
wal__segment_writer_finish(struct wal__segment_writer *writer,
                           struct wal__span index,
                           struct wal_error *error) WAL_MUST_USE;

/* Closes the file and frees the buffers; unless `keep`, removes the file. */
void wal__segment_writer_close(struct wal__segment_writer *writer, bool keep);

#endif
