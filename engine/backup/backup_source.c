/*
 * backup_source.c - what a backup copies: the segments of both streams up to
 * their durable ends. What is below them never changes, and compaction is kept
 * out, so that the files are copied without a lock.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/backup/backup_job.h"
#include "engine/backup/frozen.h"
#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "format/bytes/assert.h"

enum {
    BUSY_POLL_NS = 10 * 1000 * 1000
};

struct backup_source *
wal__backup_find_source(const struct backup_stream *stream, uint64_t id)
{
    size_t low = 0;
    size_t high = backup_source_count(stream);

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        struct backup_source *source = backup_source_at(stream, middle);

        if (source->id == id) {
            return source;
        }
        if (source->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

enum wal_status wal__backup_open_source(const struct backup *backup,
                                        const struct backup_stream *stream,
                                        const struct backup_source *source,
                                        struct wal__segment **segment,
                                        struct wal_error *error)
{
    const struct wal__log *log = stream->log;
    enum wal_status status =
        wal__segment_open(&backup->source, log->directory, source->id,
                          log->uuid, log->class, segment, error);

    if (status == WAL_OK && (*segment)->header.salt != source->salt) {
        wal__segment_close(*segment);
        *segment = NULL;
        status = WAL_ENOTFOUND;
    }
    return status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ECORRUPT,
                           "segment %016" PRIx64
                           ", which is to be copied, is missing",
                           source->id)
               : status;
}

static enum wal_status describe(const struct backup *backup,
                                const struct backup_stream *stream,
                                struct wal__segment *segment, uint64_t end,
                                bool is_newest, struct backup_source *source,
                                struct wal_error *error)
{
    struct wal__segment *opened = NULL;
    enum wal_status status;

    memset(source, 0, sizeof(*source));
    source->id = segment->id;
    source->salt = segment->header.salt;
    source->capacity = segment->header.capacity;
    source->is_newest = is_newest;
    source->is_rewritten = wal__segment_is_rewritten(&segment->header);
    source->first_id =
        source->is_rewritten ? segment->header.rewrite.first_id : segment->id;
    source->last_sequence = segment->header.rewrite.last_sequence;
    source->end = end;
    source->is_sealed = segment->sealed && segment->trailer.end == end;
    if (source->is_rewritten) {
        source->end = segment->sealed ? segment->trailer.end : source->capacity;
        source->is_sealed = segment->sealed;
    }
    if (is_newest || source->is_sealed || source->is_rewritten) {
        source->is_sealed = source->is_sealed && !is_newest;
        return WAL_OK;
    }
    /* Another process may have sealed it since it was opened. */
    status = wal__backup_open_source(backup, stream, source, &opened, error);
    if (status == WAL_OK) {
        source->is_sealed = opened->sealed && opened->trailer.end == end;
        wal__segment_close(opened);
    }
    return status;
}

/* Lists the segments up to a position. */
static enum wal_status list(struct backup *backup, struct backup_stream *stream,
                            uint64_t position, struct wal_error *error)
{
    const struct wal__log *log = stream->log;
    uint32_t count = wal__log_segment_count(log);
    uint64_t last = wal__position_segment(position);

    if (position == 0 && count > 0) {
        return wal__fail(error, WAL_EBUSY,
                         "another process is opening the store: try again");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct wal__segment *segment = wal__log_segment_at(log, i);
        bool is_newest = segment->id == last;
        struct backup_source source;
        enum wal_status status;

        if (segment->id > last) {
            break;
        }
        if (!is_newest && i + 1 == count) {
            return wal__fail(error, WAL_EBUSY,
                             "the log goes on meanwhile: try again");
        }
        status =
            describe(backup, stream, segment,
                     is_newest ? wal__position_offset(position)
                               : wal__frozen_segment_end(
                                     segment, wal__log_segment_at(log, i + 1)),
                     is_newest, &source, error);
        if (status != WAL_OK) {
            return status;
        }
        if (wal__buf_append(&stream->sources, &source, sizeof(source)) !=
            WAL_OK) {
            return wal__no_memory(error);
        }
    }
    return WAL_OK;
}

/* Finds the last sequence number below the end that is copied, which is not
 * the end of the log. */
static enum wal_status find_sequence(const struct backup *backup,
                                     struct backup_stream *stream,
                                     struct wal_error *error)
{
    const struct backup_source *newest = backup_newest_source(stream);
    const struct wal__scan_sink sink = {0};
    struct wal__segment_reader reader;
    struct wal__scan_source source = {&reader, wal__segment_reader_fetch};
    struct wal__scan_start start;
    struct wal__segment *opened = NULL;
    enum wal_status status;

    if (newest == NULL) {
        stream->last_sequence = 0;
        return WAL_OK;
    }
    status = wal__backup_open_source(backup, stream, newest, &opened, error);
    if (status != WAL_OK) {
        return status;
    }
    wal__replay_init_start(opened, &start);
    start.capacity = newest->end;
    start.known_end = newest->end;
    wal__segment_reader_init(&reader, opened);
    wal__scan(&source, &sink, &start, &stream->facts);
    if (stream->facts.verdict == WAL__VERDICT_READ_ERROR) {
        status =
            wal__fail_at(error, WAL_EIO, reader.sys_errno, opened->path,
                         stream->facts.error_offset, "cannot read the segment");
    }
    stream->last_sequence = stream->facts.last_sequence;
    memset(&stream->facts, 0, sizeof(stream->facts));
    wal__segment_reader_deinit(&reader);
    wal__segment_close(opened);
    return status;
}

/* The position up to which a log is copied. A handle that only reads, and found
 * no live process, copies what it sees: a copy is to leave nothing out. */
static uint64_t find_end(const struct wal__core *core,
                         const struct wal__log *log)
{
    return core->control.page == &core->control.private_page &&
                   log->tail_segment != NULL
               ? atomic_load(&log->end)
               : wal__frozen_end(log);
}

/* WAL_EBUSY: another process is opening the store, or the end is not among the
 * segments any more. */
static enum wal_status freeze(struct backup *backup, struct wal_error *error)
{
    struct wal__core *core = backup->core;
    struct backup_stream *log = &backup->streams[WAL__LOG_ID_LOG];
    struct backup_stream *pack = &backup->streams[WAL__LOG_ID_PACK];
    enum wal_status status = wal__core_read_lock(core, error);
    bool is_end;
    uint64_t end;

    if (status != WAL_OK) {
        return status;
    }
    log->sources.size = 0;
    pack->sources.size = 0;
    log->log = &core->log;
    log->last_sequence = core->log.last_sequence;
    end = find_end(core, &core->log);
    is_end = end == atomic_load(&core->log.end);
    status = list(backup, log, end, error);
    wal__core_unlock(core);
    if (status == WAL_OK && !is_end) {
        status = find_sequence(backup, log, error);
    }
    if (status != WAL_OK || !core->blobs.is_open) {
        return status;
    }
    /* After the log: what it refers to was durable before. */
    status = wal__blob_store_read_lock(&core->blobs, error);
    if (status == WAL_OK) {
        pack->log = &core->blobs.log;
        pack->last_sequence = core->blobs.log.last_sequence;
        end = find_end(core, &core->blobs.log);
        status = list(backup, pack, end, error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

enum wal_status wal__backup_freeze(struct backup *backup,
                                   struct wal_error *error)
{
    const struct wal__env *env = &backup->core->env;
    const uint64_t begin = env->io->monotonic_ns(env->io->ctx);
    const uint64_t limit = (uint64_t)env->lock_timeout_ms * 1000000;
    const uint32_t never = 0;
    enum wal_status status;

    /* Compaction is kept out now: what it replaced is found, and no more. */
    wal__core_adopt_files(backup->core);
    for (;;) {
        status = freeze(backup, error);
        if (status != WAL_EBUSY ||
            env->io->monotonic_ns(env->io->ctx) - begin >= limit) {
            return status;
        }
        env->io->futex_wait(env->io->ctx, &never, 0, BUSY_POLL_NS);
    }
}
