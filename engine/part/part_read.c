/*
 * part_read.c - reads what is durable after a position (part.h): the content
 * first, so that what the log refers to is there.
 */
#include <inttypes.h>
#include <string.h>

#include "engine/backup/frozen.h"
#include "engine/base/error.h"
#include "engine/part/part.h"

enum {
    SIZE_DEFAULT = 8 * 1024 * 1024,
    ATTEMPTS = 16 /* while segments end and are replaced */
};

/* The next bytes of a stream: [from, to) of a segment. */
struct stretch {
    uint64_t segment; /* 0: there is nothing more */
    uint64_t salt;
    uint64_t from;
    uint64_t to;
    bool is_last; /* it reaches the durable end */
    /* Compaction has replaced what follows: only a whole segment can be had. */
    bool is_replaced;
};

static const struct wal__log *log_of(const struct wal__part_reader *reader,
                                     uint32_t stream)
{
    return stream == WAL__LOG_ID_LOG ? &reader->core->log
                                     : &reader->core->blobs.log;
}

/* --- finding ------------------------------------------------------------ */

/* The rank of the segment in which the place is, or which ended there; count:
 * the log has none. */
static uint32_t rank_of(const struct wal__log *log,
                        const struct wal__part_place *place)
{
    uint32_t count = wal__log_segment_count(log);
    uint32_t rank = 0;

    while (rank < count &&
           wal__log_segment_at(log, rank)->id < place->segment) {
        rank++;
    }
    return rank;
}

static enum wal_status fail_past(uint64_t segment, struct wal_error *error)
{
    return wal__fail(error, WAL_ECONFLICT,
                     "the store has another past than the position in segment "
                     "%016" PRIx64 ": it is older, or was restored",
                     segment);
}

/* The segment at this rank from its beginning on. */
static void begin_at(const struct wal__log *log, uint32_t rank, uint64_t end,
                     struct stretch *stretch)
{
    struct wal__segment *segment = wal__log_segment_at(log, rank);
    uint64_t last = wal__position_segment(end);

    if (segment->id > last) {
        return;
    }
    stretch->is_replaced = wal__segment_is_rewritten(&segment->header);
    if (stretch->is_replaced) {
        return;
    }
    stretch->segment = segment->id;
    stretch->salt = segment->header.salt;
    stretch->is_last = segment->id == last;
    stretch->to = stretch->is_last
                      ? wal__position_offset(end)
                      : wal__frozen_segment_end(
                            segment, wal__log_segment_at(log, rank + 1));
}

/* Finds what follows the place, up to the durable end. With the log's lock. */
static enum wal_status find(const struct wal__log *log,
                            const struct wal__part_place *place, uint64_t end,
                            struct stretch *stretch, struct wal_error *error)
{
    const struct stretch nothing = {.is_last = true};
    uint32_t count = wal__log_segment_count(log);
    uint32_t rank = rank_of(log, place);
    struct wal__segment *segment;

    *stretch = nothing;
    if (end == 0 && place->segment == 0) {
        return WAL_OK;
    }
    if (end == 0 || rank == count ||
        wal__position_segment(end) < place->segment) {
        return fail_past(place->segment, error);
    }
    segment = wal__log_segment_at(log, rank);
    if (place->segment == 0) {
        begin_at(log, rank, end, stretch);
        return WAL_OK;
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        stretch->is_replaced =
            segment->id != place->segment ||
            segment->header.rewrite.original_end != place->offset;
        if (stretch->is_replaced) {
            return WAL_OK;
        }
    } else {
        if (segment->id != place->segment ||
            segment->header.salt != place->salt) {
            return fail_past(place->segment, error);
        }
        begin_at(log, rank, end, stretch);
        if (place->offset > stretch->to) {
            return fail_past(place->segment, error);
        }
        stretch->from = place->offset;
        if (stretch->from < stretch->to) {
            return WAL_OK;
        }
    }
    /* It ended at the place. */
    *stretch = nothing;
    if (rank + 1 < count) {
        begin_at(log, rank + 1, end, stretch);
    }
    return WAL_OK;
}

/* Ends the stretch at the place `end`, to which the log has come. */
static enum wal_status clamp(const struct wal__part_place *place,
                             const struct wal__part_place *end,
                             struct stretch *stretch, struct wal_error *error)
{
    const struct stretch nothing = {.is_last = true};

    if (wal__part_place_equal(place, end)) {
        *stretch = nothing;
        return WAL_OK;
    }
    if (stretch->segment == 0) {
        return WAL_OK;
    }
    if (stretch->segment > end->segment) {
        *stretch = nothing;
        return WAL_OK;
    }
    if (stretch->segment == end->segment) {
        if (stretch->salt != end->salt || stretch->to < end->offset ||
            stretch->from > end->offset) {
            return fail_past(end->segment, error);
        }
        stretch->to = end->offset;
        stretch->is_last = true;
    }
    return WAL_OK;
}

/* --- reading ------------------------------------------------------------ */

static enum wal_status open_segment(const struct wal__part_reader *reader,
                                    uint32_t stream,
                                    const struct stretch *stretch,
                                    struct wal__segment **segment,
                                    struct wal_error *error)
{
    const struct wal__log *log = log_of(reader, stream);
    enum wal_status status =
        wal__segment_open(&reader->core->env, log->directory, stretch->segment,
                          log->uuid, log->class, segment, error);

    if (status == WAL_OK && (*segment)->header.salt != stretch->salt) {
        wal__segment_close(*segment);
        *segment = NULL;
        status = WAL_ENOTFOUND;
    }
    return status;
}

/* Compares a place that the caller gave with the log: the chain leads there. */
static enum wal_status check_place(struct wal__part_reader *reader,
                                   struct wal__segment *segment,
                                   const struct wal__part_place *place,
                                   struct wal_error *error)
{
    const struct wal__part_place unknown = {0};
    struct wal__part_place reached;
    struct wal__buf *bytes = &reader->bytes;
    enum wal_status status;

    if (place->offset > segment->header.capacity) {
        return fail_past(place->segment, error);
    }
    bytes->size = 0;
    status = wal__part_read_file(segment, 0, place->offset, bytes, error);
    if (status != WAL_OK) {
        return status;
    }
    status = wal__part_scan(&segment->header, &unknown, 0,
                            (struct wal__span){bytes->data, bytes->size}, true,
                            &reached, &reader->facts, NULL);
    return status == WAL_OK && wal__part_place_equal(&reached, place)
               ? WAL_OK
               : fail_past(place->segment, error);
}

/* Appends at most max_size bytes of whole groups of the stretch, at least one
 * group. */
static enum wal_status add_groups(struct wal__part_reader *reader,
                                  struct wal__segment *segment, uint32_t stream,
                                  const struct stretch *stretch,
                                  uint64_t max_size, struct wal_error *error)
{
    struct wal__part_head *head = &reader->head;
    struct wal__part_place *after = &head->after[stream];
    uint64_t to = stretch->to - stretch->from > max_size
                      ? stretch->from + max_size
                      : stretch->to;
    size_t begin = reader->bytes.size;

    for (;;) {
        struct wal__span bytes;
        enum wal_status status =
            wal__part_add(reader, segment, stream, stretch->from, to, error);

        if (status != WAL_OK) {
            return status;
        }
        bytes = (struct wal__span){reader->bytes.data + begin,
                                   (size_t)(to - stretch->from)};
        status = wal__part_scan(&segment->header, &head->before[stream],
                                stretch->from, bytes, to == stretch->to, after,
                                &reader->facts, error);
        if (status == WAL_OK) {
            uint64_t size = after->offset - stretch->from;

            reader->bytes.size = begin + (size_t)size;
            head->ranges[head->range_count - 1].size = size;
            return WAL_OK;
        }
        if (to == stretch->to || status != WAL_ECORRUPT) {
            return status;
        }
        /* One group is larger. */
        reader->bytes.size = begin;
        head->range_count--;
        to += to - stretch->from;
        to = to < stretch->to ? to : stretch->to;
    }
}

static enum wal_status add_stretch(struct wal__part_reader *reader,
                                   uint32_t stream,
                                   const struct stretch *stretch,
                                   uint64_t max_size, struct wal_error *error)
{
    const struct wal__part_place *before = &reader->head.before[stream];
    struct wal__segment *segment = NULL;
    enum wal_status status =
        open_segment(reader, stream, stretch, &segment, error);

    if (status == WAL_OK) {
        status = add_groups(reader, segment, stream, stretch, max_size, error);
        wal__segment_close(segment);
    }
    if (status == WAL_OK) {
        WAL__ASSERT(
            !wal__part_place_equal(before, &reader->head.after[stream]));
    }
    return status;
}

/* Verifies the place in a stream before anything is read after it, once. */
static enum wal_status know_place(struct wal__part_reader *reader,
                                  uint32_t stream,
                                  const struct wal__part_place *place,
                                  struct wal_error *error)
{
    const struct stretch at = {.segment = place->segment, .salt = place->salt};
    struct wal__segment *segment = NULL;
    enum wal_status status;

    if (place->segment == 0 || place->offset == 0 ||
        wal__part_place_equal(&reader->known[stream], place)) {
        return WAL_OK;
    }
    status = open_segment(reader, stream, &at, &segment, NULL);
    if (status == WAL_ENOTFOUND) {
        return WAL_OK; /* compacted: its successor names its end and chain */
    }
    if (status == WAL_OK && !wal__segment_is_rewritten(&segment->header)) {
        status = check_place(reader, segment, place, error);
    }
    wal__segment_close(segment);
    if (status == WAL_OK) {
        reader->known[stream] = *place;
    }
    return status;
}

/* Finds what follows the places in both streams. The log first: what it refers
 * to was durable before. */
static enum wal_status find_all(struct wal__part_reader *reader,
                                const struct wal__part_place *places,
                                struct stretch *stretches,
                                struct wal_error *error)
{
    const uint32_t log = WAL__LOG_ID_LOG;
    const uint32_t pack = WAL__LOG_ID_PACK;
    struct wal__core *core = reader->core;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = find(&core->log, &places[log], wal__frozen_end(&core->log),
                  &stretches[log], error);
    wal__core_unlock(core);
    memset(&stretches[pack], 0, sizeof(stretches[pack]));
    stretches[pack].is_last = true;
    if (status != WAL_OK || !core->blobs.is_open) {
        return status == WAL_OK && places[pack].segment != 0
                   ? fail_past(places[pack].segment, error)
                   : status;
    }
    status = wal__blob_store_read_lock(&core->blobs, error);
    if (status == WAL_OK) {
        status =
            find(&core->blobs.log, &places[pack],
                 wal__frozen_end(&core->blobs.log), &stretches[pack], error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

static enum wal_status read_stretches(struct wal__part_reader *reader,
                                      const struct stretch *stretches,
                                      uint64_t max_size,
                                      struct wal_error *error)
{
    const struct stretch *pack = &stretches[WAL__LOG_ID_PACK];
    const struct stretch *log = &stretches[WAL__LOG_ID_LOG];
    struct wal__part_head *head = &reader->head;
    bool is_complete = pack->is_last;
    uint64_t size = 0;
    enum wal_status status = WAL_OK;

    if (pack->segment != 0) {
        status = add_stretch(reader, WAL__LOG_ID_PACK, pack, max_size, error);
        is_complete =
            is_complete && head->after[WAL__LOG_ID_PACK].offset == pack->to;
        size = head->ranges[0].size;
    }
    if (status == WAL_OK && is_complete && log->segment != 0 &&
        size < max_size) {
        status =
            add_stretch(reader, WAL__LOG_ID_LOG, log, max_size - size, error);
    }
    return status;
}

/* The part that reaches an end has the sequence number and the chain of it. */
static enum wal_status check_ends(const struct wal__part_reader *reader,
                                  const struct wal__part_place *ends,
                                  struct wal_error *error)
{
    const struct wal__part_place *after = reader->head.after;

    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        if (after[i].segment == ends[i].segment &&
            after[i].offset == ends[i].offset &&
            (after[i].sequence != ends[i].sequence ||
             after[i].chain != ends[i].chain)) {
            return fail_past(ends[i].segment, error);
        }
    }
    return WAL_OK;
}

/* Reads the whole segment that follows the places, which must not go beyond the
 * ends. */
static enum wal_status read_segment(struct wal__part_reader *reader,
                                    const struct wal__part_place *places,
                                    const struct wal__part_place *ends,
                                    struct wal_error *error)
{
    const struct wal__part_place *after = reader->head.after;
    enum wal_status status = wal__part_read_segment(reader, places, error);

    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        if (ends != NULL && (after[i].segment > ends[i].segment ||
                             (after[i].segment == ends[i].segment &&
                              after[i].offset > ends[i].offset))) {
            return wal__fail(error, WAL_EBUSY,
                             "compaction has replaced what is at the end of "
                             "the part, in segment %016" PRIx64,
                             ends[i].segment);
        }
    }
    return status == WAL_END ? WAL_ENOTFOUND : status;
}

/* Reads what follows the places; WAL_ENOTFOUND: the segment was replaced, or a
 * whole one refers to content that has come since, so that it must be looked
 * again. */
static enum wal_status read_once(struct wal__part_reader *reader,
                                 const struct wal__part_place *places,
                                 const struct wal__part_place *ends,
                                 uint64_t max_size, struct wal_error *error)
{
    struct stretch stretches[WAL__PART_STREAMS];
    const struct stretch *log = &stretches[WAL__LOG_ID_LOG];
    const struct stretch *pack = &stretches[WAL__LOG_ID_PACK];
    enum wal_status status = find_all(reader, places, stretches, error);

    for (uint32_t i = 0;
         i < WAL__PART_STREAMS && status == WAL_OK && ends != NULL; i++) {
        status = clamp(&places[i], &ends[i], &stretches[i], error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (pack->is_replaced || (log->is_replaced && pack->segment == 0)) {
        return read_segment(reader, places, ends, error);
    }
    if (log->segment == 0 && pack->segment == 0) {
        return WAL_END;
    }
    status = wal__part_begin(reader, error);
    if (status != WAL_OK) {
        return status;
    }
    memcpy(reader->head.before, places, sizeof(reader->head.before));
    memcpy(reader->head.after, places, sizeof(reader->head.after));
    status = read_stretches(reader, stretches,
                            max_size == 0 ? SIZE_DEFAULT : max_size, error);
    if (status == WAL_OK && ends != NULL) {
        status = check_ends(reader, ends, error);
    }
    return status == WAL_OK ? wal__part_end(reader, error) : status;
}

enum wal_status wal__part_read(struct wal__part_reader *reader,
                               const struct wal__part_place *places,
                               const struct wal__part_place *ends,
                               uint64_t max_size, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        status = know_place(reader, i, &places[i], error);
    }
    if (status != WAL_OK) {
        return status;
    }
    for (int i = 0; i < ATTEMPTS; i++) {
        status = read_once(reader, places, ends, max_size, error);
        if (status != WAL_ENOTFOUND) {
            break;
        }
        wal__core_adopt_files(reader->core);
    }
    if (status == WAL_OK) {
        memcpy(reader->known, reader->head.after, sizeof(reader->known));
    }
    return status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_EBUSY,
                           "the store is being compacted: try again")
               : status;
}

void wal__part_reader_init(struct wal__part_reader *reader,
                           struct wal__core *core)
{
    memset(reader, 0, sizeof(*reader));
    reader->core = core;
    wal__sha256_alg_init(&reader->sha256_alg);
    wal__buf_init(&reader->bytes, core->env.heap);
}

void wal__part_reader_deinit(struct wal__part_reader *reader)
{
    wal__buf_deinit(&reader->bytes);
    wal__sha256_alg_deinit(&reader->sha256_alg);
}
