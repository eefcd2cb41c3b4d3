/*
 * part_segment.c - reads whole segments that have ended (part.h): where parts
 * of what is before the newest segment cannot be had, or are not wanted.
 */
#include <string.h>

#include "engine/backup/frozen.h"
#include "engine/base/error.h"
#include "engine/log/replay.h"
#include "engine/log/segment_reader.h"
#include "engine/part/part.h"
#include "format/segment/frame.h"

/* A segment that has ended. */
struct ended {
    uint64_t id; /* 0: none */
    uint64_t salt;
    uint64_t end; /* of its last group */
};

/* Whether everything of the segment is before the place. */
static bool is_before(const struct wal__segment *segment, uint64_t end,
                      const struct wal__part_place *place)
{
    uint64_t last = wal__segment_is_rewritten(&segment->header)
                        ? segment->header.rewrite.original_end
                        : end;

    return segment->id < place->segment ||
           (segment->id == place->segment && last <= place->offset);
}

/* Finds the oldest one that has ended after the place. With the log's lock. */
static void find(const struct wal__log *log,
                 const struct wal__part_place *place, struct ended *ended)
{
    uint32_t count = wal__log_segment_count(log);
    uint64_t last = wal__position_segment(wal__frozen_end(log));

    ended->id = 0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        struct wal__segment *segment = wal__log_segment_at(log, i);
        struct wal__segment *next = wal__log_segment_at(log, i + 1);
        uint64_t end = wal__frozen_segment_end(segment, next);

        if (segment->id >= last) {
            return;
        }
        if (is_before(segment, end, place)) {
            continue;
        }
        ended->id = segment->id;
        ended->salt = segment->header.salt;
        ended->end = wal__segment_is_rewritten(&segment->header)
                         ? segment->trailer.end
                         : end;
        return;
    }
}

static enum wal_status find_next(struct wal__part_reader *reader,
                                 const struct wal__part_place *places,
                                 uint32_t *stream, struct ended *ended,
                                 struct wal_error *error)
{
    struct wal__core *core = reader->core;
    enum wal_status status = WAL_OK;

    ended->id = 0;
    *stream = WAL__LOG_ID_PACK;
    if (core->blobs.is_open) {
        status = wal__blob_store_read_lock(&core->blobs, error);
        if (status == WAL_OK) {
            find(&core->blobs.log, &places[*stream], ended);
            wal__blob_store_unlock(&core->blobs);
        }
    }
    if (status != WAL_OK || ended->id != 0) {
        return status;
    }
    *stream = WAL__LOG_ID_LOG;
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        find(&core->log, &places[*stream], ended);
        wal__core_unlock(core);
    }
    return status == WAL_OK && ended->id == 0 ? WAL_END : status;
}

/* The place where the segment ends. The records of a rewritten one are in
 * blocks: its header says what its original said. */
static enum wal_status find_place(struct wal__part_reader *reader,
                                  struct wal__segment *segment, uint64_t end,
                                  struct wal__part_place *place,
                                  struct wal_error *error)
{
    const struct wal__rewrite *rewrite = &segment->header.rewrite;
    const struct wal__scan_sink sink = {0};
    struct wal__scan_result *facts = &reader->facts;
    struct wal__segment_reader bytes;
    struct wal__scan_source source = {&bytes, wal__segment_reader_fetch};
    struct wal__scan_start start;

    wal__replay_init_start(segment, &start);
    start.capacity = end;
    start.known_end = end;
    wal__segment_reader_init(&bytes, segment);
    wal__scan(&source, &sink, &start, facts);
    wal__segment_reader_deinit(&bytes);
    if (facts->damage_count > 0 || facts->end != end ||
        facts->verdict == WAL__VERDICT_READ_ERROR || !segment->has_open) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, facts->end,
                            "the segment is damaged");
    }
    *place = (struct wal__part_place){segment->id, segment->header.salt, end,
                                      facts->last_sequence, facts->chain};
    if (wal__segment_is_rewritten(&segment->header)) {
        place->offset = rewrite->original_end;
        place->sequence = rewrite->last_sequence;
        place->chain = rewrite->original_chain;
    }
    return WAL_OK;
}

/* The end of INDEX and SEAL, which follow the last group. */
static uint64_t end_of_seal(const struct wal__segment *segment, uint64_t end)
{
    uint64_t seal = segment->sealed && segment->trailer.end == end
                        ? segment->trailer.seal_offset +
                              wal__frame_total_size(WAL__SEAL_SIZE)
                        : 0;

    return seal > end && seal <= segment->header.capacity ? seal : end;
}

/* Whether the content that a segment of the log refers to is before the place,
 * after the scan of the segment. */
static bool has_content(const struct wal__part_reader *reader, uint32_t stream)
{
    const struct wal__part_place *content =
        &reader->head.before[WAL__LOG_ID_PACK];

    return stream == WAL__LOG_ID_PACK ||
           reader->facts.pack_durable <=
               wal__position(content->segment, content->offset);
}

static enum wal_status add(struct wal__part_reader *reader, uint32_t stream,
                           struct wal__segment *segment, uint64_t end,
                           struct wal_error *error)
{
    uint64_t capacity = segment->header.capacity;
    uint64_t seal = end_of_seal(segment, end);
    enum wal_status status =
        find_place(reader, segment, end, &reader->head.after[stream], error);

    if (status == WAL_OK && !has_content(reader, stream)) {
        status = WAL_END;
    }
    if (status == WAL_OK) {
        status = wal__part_add(reader, segment, stream, 0, seal, error);
    }
    if (status == WAL_OK && seal > end &&
        seal <= capacity - WAL__TRAILER_SIZE) {
        status = wal__part_add(reader, segment, stream,
                               capacity - WAL__TRAILER_SIZE, capacity, error);
    }
    return status;
}

enum wal_status wal__part_read_segment(struct wal__part_reader *reader,
                                       const struct wal__part_place *places,
                                       struct wal_error *error)
{
    struct wal__core *core = reader->core;
    struct wal__segment *segment = NULL;
    struct ended ended;
    uint32_t stream = 0;
    const struct wal__log *log;
    enum wal_status status = find_next(reader, places, &stream, &ended, error);

    if (status != WAL_OK) {
        return status;
    }
    log = stream == WAL__LOG_ID_LOG ? &core->log : &core->blobs.log;
    status = wal__segment_open(&core->env, log->directory, ended.id, log->uuid,
                               log->class, &segment, error);
    if (status != WAL_OK) {
        return status;
    }
    if (segment->header.salt != ended.salt) {
        wal__segment_close(segment);
        return WAL_ENOTFOUND;
    }
    status = wal__part_begin(reader, error);
    if (status == WAL_OK) {
        reader->head.flags = WAL__PART_SEGMENT;
        memcpy(reader->head.before, places, sizeof(reader->head.before));
        memcpy(reader->head.after, places, sizeof(reader->head.after));
        status = add(reader, stream, segment, ended.end, error);
    }
    wal__segment_close(segment);
    return status == WAL_OK ? wal__part_end(reader, error) : status;
}
