/*
 * part.c - makes parts of a store and verifies them (part.h): the public functions on them too
 * (agentwal/replica.h).
 *
 * What is durable after a position is read content first, so that what the log refers to is there.
 * Whole segments that have ended are read where parts of what is before the newest segment cannot
 * be had, or are not wanted. A part is verified group by group, also without a store: that finds
 * what applying it would find, but for what comes before it.
 */
#include "engine/care/part.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/care/backup.h"
#include "engine/log/log.h"
#include "engine/log/segment.h"
#include "engine/session/session.h"
#include "engine/store/keys_file.h"
#include "format/segment/frame.h"

struct wal_part_reader {
    struct wal__core *core;
    struct wal__sha256_alg sha256_alg;
    /* The part read last; its head is written when all ranges are there. */
    struct wal__part_head head;
    struct wal__buf bytes;
    struct wal__part_commit commits[WAL__PART_STREAMS]; /* in it */
    struct wal__buf index;                              /* of wal_part_reader_get_index */
    /* Places that this reader returned, or has compared with the log. */
    struct wal__part_place known[WAL__PART_STREAMS];
    struct wal__scan_result facts;
};

/* The public place is the internal one, but for the name of the salt. */
static_assert(sizeof(struct wal_part_place) == sizeof(struct wal__part_place), "places differ");
static_assert((int)WAL_PART_STREAMS == (int)WAL__PART_STREAMS, "streams differ");

void wal__part_places(const struct wal__part_place *from, struct wal_part_place *to)
{
    for (size_t i = 0; i < WAL_PART_STREAMS; i++) {
        to[i] = (struct wal_part_place){.segment = from[i].segment,
                                        .identity = from[i].salt,
                                        .offset = from[i].offset,
                                        .sequence = from[i].sequence,
                                        .chain = from[i].chain};
    }
}

static void fill_info(const struct wal__part_head *head, struct wal_part_info *info)
{
    struct wal_part_info own = WAL_INIT(wal_part_info);

    own.flags = (head->flags & WAL__PART_SEGMENT) != 0 ? (uint32_t)WAL_PART_SEGMENT : 0;
    memcpy(own.uuid, head->manifest.uuid, sizeof(own.uuid));
    own.size = head->size;
    wal__part_places(head->before, own.before);
    wal__part_places(head->after, own.after);
    wal__struct_store(WAL__STRUCT(wal_part_info), info, &own);
}

/* --- bytes ---------------------------------------------------------------- */

/* Starts a part in reader->bytes, once it is known what it has; appends a range with its bytes read
 * from the segment's file; and ends the part. */
static enum wal_status part_begin(struct wal_part_reader *reader, struct wal_error *error)
{
    bool ignored = false;
    uint8_t *head = NULL;
    enum wal_status status;

    memset(&reader->head, 0, sizeof(reader->head));
    memset(reader->commits, 0, sizeof(reader->commits));
    /* Each time: a feature is in it before the first record that needs it. */
    status = wal__manifest_read(&reader->core->env, &reader->head.manifest, &ignored, error);
    if (status != WAL_OK) {
        return status;
    }
    reader->head.manifest.generation = 0;
    reader->bytes.size = 0;
    /* Room for a head with all ranges: the bytes are moved down at the end. */
    if (wal__buf_reserve(&reader->bytes, wal__part_head_size(WAL__PART_RANGES_MAX), &head) !=
        WAL_OK) {
        return wal__no_memory(error);
    }
    reader->bytes.size = wal__part_head_size(WAL__PART_RANGES_MAX);
    return WAL_OK;
}

enum wal_status wal__part_read_file(const struct wal__segment *segment, uint64_t from, uint64_t to,
                                    struct wal__buf *bytes, struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    size_t size = (size_t)(to - from);
    enum wal_status status;
    uint8_t *at = NULL;
    size_t got = 0;
    int err = 0;

    WAL__ASSERT(from <= to && to <= segment->header.capacity);
    if (wal__buf_reserve(bytes, size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__io_read_full(io, segment->file, at, size, from, &got, &err);
    if (status != WAL_OK || got < size) {
        return wal__fail_at(error, status == WAL_OK ? WAL_EIO : status, err, segment->path, from,
                            "cannot read the segment");
    }
    bytes->size += size;
    return WAL_OK;
}

static enum wal_status part_add(struct wal_part_reader *reader, const struct wal__segment *segment,
                                uint32_t stream, uint64_t from, uint64_t to,
                                struct wal_error *error)
{
    struct wal__part_head *head = &reader->head;
    enum wal_status status = wal__part_read_file(segment, from, to, &reader->bytes, error);

    WAL__ASSERT(from < to && head->range_count < WAL__PART_RANGES_MAX);
    if (status == WAL_OK) {
        head->ranges[head->range_count++] =
            (struct wal__part_range){stream, segment->id, from, to - from};
    }
    return status;
}

/* Appends KEYS of an encrypted store, as they are now: they have the keys of what was read. */
static enum wal_status add_keys(struct wal_part_reader *reader, struct wal_error *error)
{
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    size_t size = 0;
    enum wal_status status;

    if (reader->core->env.keyring == NULL) {
        return WAL_OK;
    }
    status = wal__keys_read_copy(&reader->core->env, bytes, &size, error);
    reader->head.keys_size = (uint32_t)size;
    return status == WAL_OK && wal__buf_append(&reader->bytes, bytes, size) != WAL_OK
               ? wal__no_memory(error)
               : status;
}

static enum wal_status part_end(struct wal_part_reader *reader, struct wal_error *error)
{
    struct wal__part_head *head = &reader->head;
    struct wal__buf *bytes = &reader->bytes;
    size_t room = wal__part_head_size(WAL__PART_RANGES_MAX);
    size_t size = wal__part_head_size(head->range_count);
    struct wal__digest digest;
    enum wal_status status = add_keys(reader, error);

    if (status != WAL_OK) {
        return status;
    }
    memmove(bytes->data + size, bytes->data + room, bytes->size - room);
    bytes->size -= room - size;
    head->size = wal__part_size(head);
    WAL__ASSERT(head->size == bytes->size + WAL__PART_DIGEST_SIZE);
    wal__part_head_encode(head, bytes->data);
    status =
        wal__sha256(&reader->sha256_alg, (struct wal__span){bytes->data, bytes->size}, &digest);
    if (status == WAL_OK) {
        status = wal__buf_append(bytes, digest.bytes, sizeof(digest.bytes));
    }
    return status == WAL_OK ? WAL_OK : wal__no_memory(error);
}

enum wal_status wal__part_get_head(struct wal__span bytes, struct wal__part_head *head,
                                   struct wal_error *error)
{
    enum wal__fmt fmt;

    if (bytes.data == NULL && bytes.size > 0) {
        return wal__invalid(error, "the bytes are null");
    }
    fmt = wal__part_head_decode(bytes.data, bytes.size, head);
    if (fmt == WAL__FMT_VERSION || fmt == WAL__FMT_FEATURES) {
        return wal__fail(error, WAL_EVERSION, "the part is of a newer library: use that");
    }
    return fmt == WAL__FMT_OK
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT, "the part is damaged: %s", wal__fmt_text(fmt));
}

enum wal_status wal__part_check(struct wal__sha256_alg *sha256_alg, struct wal__span part,
                                struct wal__part_head *head, struct wal_error *error)
{
    enum wal_status status = wal__part_get_head(part, head, error);
    struct wal__digest digest;
    size_t size;

    if (status != WAL_OK) {
        return status;
    }
    if (part.size != head->size) {
        return wal__fail(error, WAL_ECORRUPT, "the part has %zu bytes instead of %" PRIu64,
                         part.size, head->size);
    }
    size = part.size - WAL__PART_DIGEST_SIZE;
    if (wal__sha256(sha256_alg, (struct wal__span){part.data, size}, &digest) != WAL_OK) {
        return wal__no_memory(error);
    }
    return memcmp(digest.bytes, part.data + size, sizeof(digest.bytes)) == 0
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT, "the part is damaged: its digest does not match");
}

enum wal_status wal__part_check_keys(const struct wal__part_head *head, struct wal__span bytes,
                                     struct wal__keys_file *keys, struct wal_error *error)
{
    uint8_t copy[WAL__KEYS_COPY_SIZE] = {0};
    size_t size = 0;

    WAL__ASSERT(bytes.size <= sizeof(copy));
    memcpy(copy, bytes.data, bytes.size);
    return wal__keys_decode(copy, keys, &size) == WAL__FMT_OK &&
                   size + WAL__KEYS_MAC_SIZE == bytes.size &&
                   memcmp(keys->uuid, head->manifest.uuid, sizeof(keys->uuid)) == 0
               ? WAL_OK
               : wal__fail(error, WAL_ECORRUPT, "the part is damaged: its keys");
}

/* --- groups in memory ----------------------------------------------------- */

/* Bytes of a segment from an offset on. */
struct memory {
    const uint8_t *data;
    uint64_t offset;
    uint64_t size;
};

static const uint8_t *fetch(void *ctx, uint64_t offset, uint64_t size)
{
    const struct memory *memory = ctx;

    if (offset < memory->offset || size > memory->offset + memory->size - offset ||
        offset > memory->offset + memory->size) {
        return NULL;
    }
    return memory->data + (offset - memory->offset);
}

bool wal__part_read_open(const struct wal__segment_header *header, struct wal__span bytes,
                         struct wal__open_record *open)
{
    const uint64_t at = WAL__SEGMENT_HEADER_SIZE;
    struct wal__frame frame;
    struct wal__span payload;

    if (bytes.size < at + WAL__FRAME_SIZE ||
        wal__frame_decode(bytes.data + at, bytes.size - at, header->salt, at, &frame) !=
            WAL__FMT_OK ||
        frame.type != WAL__FRAME_OPEN ||
        wal__frame_check_data(&frame, bytes.data + at + WAL__FRAME_SIZE) != WAL__FMT_OK) {
        return false;
    }
    payload.data = bytes.data + at + WAL__FRAME_SIZE;
    payload.size = frame.stored_size;
    return wal__open_record_decode(payload, open) == WAL__FMT_OK && open->previous_id < header->id;
}

/* The start of the scan of a new segment, which must follow `before`; all zero: what comes before
 * it is not known. */
static enum wal_status start_segment(const struct wal__segment_header *header,
                                     const struct wal__part_place *before, struct wal__span bytes,
                                     struct wal__scan_start *start, struct wal_error *error)
{
    struct wal__open_record open;

    if (!wal__part_read_open(header, bytes, &open)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "the first record of segment %016" PRIx64 " is damaged", header->id);
    }
    if (before->segment != 0 &&
        (open.previous_id != before->segment || open.previous_end != before->offset ||
         open.last_sequence != before->sequence || open.chain != before->chain)) {
        return wal__fail(error, WAL_ECONFLICT, "segment %016" PRIx64 " follows another past",
                         header->id);
    }
    start->offset = WAL__SEGMENT_HEADER_SIZE;
    start->last_sequence = open.last_sequence;
    start->chain = open.chain;
    return WAL_OK;
}

enum wal_status wal__part_scan(const struct wal__segment_header *header,
                               const struct wal__part_place *before, uint64_t from,
                               struct wal__span bytes, bool is_whole, struct wal__part_place *after,
                               struct wal__scan_result *facts, struct wal_error *error)
{
    struct memory memory = {bytes.data, from, bytes.size};
    const struct wal__scan_source source = {&memory, fetch};
    const struct wal__scan_sink sink = {0};
    struct wal__scan_start start = {.salt = header->salt,
                                    .capacity = from + bytes.size,
                                    .group_align = header->group_align,
                                    .offset = from,
                                    .last_sequence = before->sequence,
                                    .chain = before->chain};
    enum wal_status status =
        from == 0 ? start_segment(header, before, bytes, &start, error) : WAL_OK;

    if (status != WAL_OK) {
        return status;
    }
    if (wal__segment_is_rewritten(header)) {
        start.is_rewritten = true;
        start.last_sequence = header->rewrite.last_sequence;
    }
    wal__scan(&source, &sink, &start, facts);
    if (facts->verdict == WAL__VERDICT_NEWER) {
        return wal__fail(error, WAL_EVERSION,
                         "segment %016" PRIx64
                         " has records of a newer format: use a newer library",
                         header->id);
    }
    if (facts->damage_count > 0 || facts->groups == 0 ||
        facts->verdict == WAL__VERDICT_READ_ERROR ||
        (is_whole && facts->end != from + bytes.size)) {
        return wal__fail(error, WAL_ECORRUPT,
                         "segment %016" PRIx64
                         " is damaged, or has another past, at offset %" PRIu64,
                         header->id, facts->end);
    }
    *after = (struct wal__part_place){header->id, header->salt, facts->end, facts->last_sequence,
                                      facts->chain};
    if (start.is_rewritten) {
        after->offset = header->rewrite.original_end;
        after->sequence = header->rewrite.last_sequence;
        after->chain = header->rewrite.original_chain;
    }
    return WAL_OK;
}

/* --- whole segments ------------------------------------------------------- */

/* A segment that has ended. */
struct ended {
    uint64_t id; /* 0: none */
    uint64_t salt;
    uint64_t end; /* of its last group */
};

/* Returns whether everything of the segment is before the place. */
static bool is_before(const struct wal__segment *segment, uint64_t end,
                      const struct wal__part_place *place)
{
    uint64_t last =
        wal__segment_is_rewritten(&segment->header) ? segment->header.rewrite.original_end : end;

    return segment->id < place->segment || (segment->id == place->segment && last <= place->offset);
}

/* Finds the oldest one that has ended after the place. With the log's lock. */
static void find_ended(const struct wal__log *log, const struct wal__part_place *place,
                       struct ended *ended)
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
        ended->end = wal__segment_is_rewritten(&segment->header) ? segment->trailer.end : end;
        return;
    }
}

static enum wal_status find_next(struct wal_part_reader *reader,
                                 const struct wal__part_place *places, uint32_t *stream,
                                 struct ended *ended, struct wal_error *error)
{
    struct wal__core *core = reader->core;
    enum wal_status status = WAL_OK;

    ended->id = 0;
    *stream = WAL__LOG_ID_PACK;
    if (core->blobs.is_open) {
        status = wal__blob_store_read_lock(&core->blobs, error);
        if (status == WAL_OK) {
            find_ended(&core->blobs.log, &places[*stream], ended);
            wal__blob_store_unlock(&core->blobs);
        }
    }
    if (status != WAL_OK || ended->id != 0) {
        return status;
    }
    *stream = WAL__LOG_ID_LOG;
    status = wal__core_read_lock(core, error);
    if (status == WAL_OK) {
        find_ended(&core->log, &places[*stream], ended);
        wal__core_unlock(core);
    }
    return status == WAL_OK && ended->id == 0 ? WAL_END : status;
}

/* The place where the segment ends. The records of a rewritten one are in blocks: its header says
 * what its original said. */
static enum wal_status find_place(struct wal_part_reader *reader, struct wal__segment *segment,
                                  uint64_t end, struct wal__part_place *place,
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
    if (facts->damage_count > 0 || facts->end != end || facts->verdict == WAL__VERDICT_READ_ERROR ||
        !segment->has_open) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, facts->end,
                            "the segment is damaged");
    }
    *place = (struct wal__part_place){segment->id, segment->header.salt, end, facts->last_sequence,
                                      facts->chain};
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
                        ? segment->trailer.seal_offset + wal__frame_total_size(WAL__SEAL_SIZE)
                        : 0;

    return seal > end && seal <= segment->header.capacity ? seal : end;
}

/* Returns whether the content that a segment of the log refers to is before the place, after the
 * scan of the segment. */
static bool has_content(const struct wal_part_reader *reader, uint32_t stream)
{
    const struct wal__part_place *content = &reader->head.before[WAL__LOG_ID_PACK];

    return stream == WAL__LOG_ID_PACK ||
           reader->facts.pack_durable <= wal__position(content->segment, content->offset);
}

static enum wal_status add(struct wal_part_reader *reader, uint32_t stream,
                           struct wal__segment *segment, uint64_t end, struct wal_error *error)
{
    uint64_t capacity = segment->header.capacity;
    uint64_t seal = end_of_seal(segment, end);
    enum wal_status status = find_place(reader, segment, end, &reader->head.after[stream], error);

    if (status == WAL_OK && !has_content(reader, stream)) {
        status = WAL_END;
    }
    if (status == WAL_OK) {
        status = part_add(reader, segment, stream, 0, seal, error);
    }
    if (status == WAL_OK && seal > end && seal <= capacity - WAL__TRAILER_SIZE) {
        status = part_add(reader, segment, stream, capacity - WAL__TRAILER_SIZE, capacity, error);
    }
    return status;
}

/* Reads the oldest segment that has ended after the places, content first. WAL_END: there is none,
 * or it refers to content after the places. */
static enum wal_status part_read_segment(struct wal_part_reader *reader,
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
    status = wal__log_open_with_salt(log, &core->env, ended.id, ended.salt, &segment, error);
    if (status != WAL_OK) {
        return status;
    }
    status = part_begin(reader, error);
    if (status == WAL_OK) {
        reader->head.flags = WAL__PART_SEGMENT;
        memcpy(reader->head.before, places, sizeof(reader->head.before));
        memcpy(reader->head.after, places, sizeof(reader->head.after));
        status = add(reader, stream, segment, ended.end, error);
    }
    wal__segment_close(segment);
    return status == WAL_OK ? part_end(reader, error) : status;
}

/* --- without a store ------------------------------------------------------ */

static enum wal_status fail(struct wal_error *error, const char *why)
{
    return wal__fail(error, WAL_ECORRUPT, "the part is damaged: %s", why);
}

/* The header of the segment in which a range is: the range has it where it begins the segment; else
 * what the scan needs is in the head. */
static enum wal_status get_header(const struct wal__part_head *head,
                                  const struct wal__part_range *range, struct wal__span bytes,
                                  struct wal__segment_header *header, struct wal_error *error)
{
    const struct wal__part_place *before = &head->before[range->stream];
    const struct wal__part_place *after = &head->after[range->stream];

    if (range->segment != after->segment) {
        return fail(error, "its range is not at its position");
    }
    if (range->offset != 0) {
        *header = (struct wal__segment_header){.id = range->segment,
                                               .salt = after->salt,
                                               .capacity = range->offset + range->size,
                                               .group_align = head->manifest.group_align};
        return range->segment == before->segment && range->offset == before->offset &&
                       after->salt == before->salt
                   ? WAL_OK
                   : fail(error, "its range is not at its position");
    }
    if (bytes.size < WAL__SEGMENT_HEADER_SIZE ||
        wal__segment_header_decode(bytes.data, header) != WAL__FMT_OK ||
        header->id != range->segment || header->salt != after->salt ||
        bytes.size > header->capacity ||
        memcmp(header->uuid, head->manifest.uuid, sizeof(header->uuid)) != 0) {
        return fail(error, "the header of a segment");
    }
    return WAL_OK;
}

static enum wal_status verify_range(const struct wal__part_head *head,
                                    const struct wal__part_range *range, struct wal__span bytes,
                                    struct wal__scan_result *facts, struct wal_error *error)
{
    const struct wal__part_place unknown = {0};
    const bool is_segment = (head->flags & WAL__PART_SEGMENT) != 0;
    struct wal__segment_header header;
    struct wal__part_place reached;
    enum wal_status status = get_header(head, range, bytes, &header, error);

    if (status == WAL_OK) {
        /* A whole segment may replace what is before it. */
        status = wal__part_scan(&header, is_segment ? &unknown : &head->before[range->stream],
                                range->offset, bytes, !is_segment, &reached, facts, error);
    }
    if (status == WAL_ECONFLICT) {
        return fail(error, "a segment follows another past");
    }
    if (status == WAL_OK && ((is_segment && facts->verdict != WAL__VERDICT_CLEAN) ||
                             !wal__part_place_equal(&reached, &head->after[range->stream]))) {
        status = fail(error, "it leads to another position than it says");
    }
    return status;
}

/* Also verifies the groups: they lead from the places before them to those after them. *facts is
 * only memory for it. */
static enum wal_status part_verify(struct wal__sha256_alg *sha256_alg, struct wal__span part,
                                   struct wal__part_head *head, struct wal__scan_result *facts,
                                   struct wal_error *error)
{
    enum wal_status status = wal__part_check(sha256_alg, part, head, error);
    const uint8_t *at;
    uint32_t count;

    if (status != WAL_OK) {
        return status;
    }
    at = part.data + wal__part_head_size(head->range_count);
    /* The second range of a whole segment is its trailer. */
    count = (head->flags & WAL__PART_SEGMENT) != 0 ? 1 : head->range_count;
    for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
        const struct wal__part_range *range = &head->ranges[i];

        status =
            verify_range(head, range, (struct wal__span){at, (size_t)range->size}, facts, error);
        at += range->size;
    }
    if (status == WAL_OK && head->keys_size > 0) {
        struct wal__keys_file keys;

        at = part.data + wal__part_keys_offset(head);
        status = wal__part_check_keys(head, (struct wal__span){at, head->keys_size}, &keys, error);
    }
    return status;
}

enum wal_status wal_part_check(struct wal_slice part, struct wal_part_info *info,
                               struct wal_error *error)
{
    struct wal__part_head head;
    struct wal__sha256_alg sha256_alg;
    enum wal_status status = wal__struct_check_optional(WAL__STRUCT(wal_part_info), info, error);

    if (status != WAL_OK) {
        return status;
    }
    wal__sha256_alg_init(&sha256_alg);
    status = wal__part_check(&sha256_alg, (struct wal__span){part.data, (size_t)part.size}, &head,
                             error);
    wal__sha256_alg_deinit(&sha256_alg);
    if (status == WAL_OK) {
        fill_info(&head, info);
    }
    return status;
}

enum wal_status wal_part_verify(struct wal_slice part, struct wal_part_info *info,
                                struct wal_error *error)
{
    struct wal__part_head head;
    struct wal__sha256_alg sha256_alg;
    struct wal__scan_result *facts;
    enum wal_status status = wal__struct_check_optional(WAL__STRUCT(wal_part_info), info, error);

    if (status != WAL_OK) {
        return status;
    }
    facts = wal__heap_zalloc(&wal__heap_libc, sizeof(*facts));
    if (facts == NULL) {
        return wal__no_memory(error);
    }
    wal__sha256_alg_init(&sha256_alg);
    status = part_verify(&sha256_alg, (struct wal__span){part.data, (size_t)part.size}, &head,
                         facts, error);
    wal__sha256_alg_deinit(&sha256_alg);
    wal__heap_free(&wal__heap_libc, facts);
    if (status == WAL_OK) {
        fill_info(&head, info);
    }
    return status;
}

enum wal_status wal_part_get_info(struct wal_slice bytes, struct wal_part_info *info,
                                  struct wal_error *error)
{
    struct wal__part_head head;
    enum wal_status status = wal__struct_check_optional(WAL__STRUCT(wal_part_info), info, error);

    if (status == WAL_OK) {
        status =
            wal__part_get_head((struct wal__span){bytes.data, (size_t)bytes.size}, &head, error);
    }
    if (status == WAL_OK) {
        fill_info(&head, info);
    }
    return status;
}

/* --- reading -------------------------------------------------------------- */

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

static const struct wal__log *log_of(const struct wal_part_reader *reader, uint32_t stream)
{
    return stream == WAL__LOG_ID_LOG ? &reader->core->log : &reader->core->blobs.log;
}

/* --- finding ------------------------------------------------------------ */

/* The rank of the segment in which the place is, or which ended there; count: the log has none. */
static uint32_t rank_of(const struct wal__log *log, const struct wal__part_place *place)
{
    uint32_t count = wal__log_segment_count(log);
    uint32_t rank = 0;

    while (rank < count && wal__log_segment_at(log, rank)->id < place->segment) {
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
                      : wal__frozen_segment_end(segment, wal__log_segment_at(log, rank + 1));
}

/* Finds what follows the place, up to the durable end. With the log's lock. */
static enum wal_status find(const struct wal__log *log, const struct wal__part_place *place,
                            uint64_t end, struct stretch *stretch, struct wal_error *error)
{
    const struct stretch nothing = {.is_last = true};
    uint32_t count = wal__log_segment_count(log);
    uint32_t rank = rank_of(log, place);
    struct wal__segment *segment;

    *stretch = nothing;
    if (end == 0 && place->segment == 0) {
        return WAL_OK;
    }
    if (end == 0 || rank == count || wal__position_segment(end) < place->segment) {
        return fail_past(place->segment, error);
    }
    segment = wal__log_segment_at(log, rank);
    if (place->segment == 0) {
        begin_at(log, rank, end, stretch);
        return WAL_OK;
    }
    if (wal__segment_is_rewritten(&segment->header)) {
        stretch->is_replaced =
            segment->id != place->segment || segment->header.rewrite.original_end != place->offset;
        if (stretch->is_replaced) {
            return WAL_OK;
        }
    } else {
        if (segment->id != place->segment || segment->header.salt != place->salt) {
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
static enum wal_status clamp(const struct wal__part_place *place, const struct wal__part_place *end,
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

static enum wal_status open_segment(const struct wal_part_reader *reader, uint32_t stream,
                                    const struct stretch *stretch, struct wal__segment **segment,
                                    struct wal_error *error)
{
    return wal__log_open_with_salt(log_of(reader, stream), &reader->core->env, stretch->segment,
                                   stretch->salt, segment, error);
}

/* Compares a place that the caller gave with the log: the chain leads there. */
static enum wal_status check_place(struct wal_part_reader *reader, struct wal__segment *segment,
                                   const struct wal__part_place *place, struct wal_error *error)
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
    status =
        wal__part_scan(&segment->header, &unknown, 0, (struct wal__span){bytes->data, bytes->size},
                       true, &reached, &reader->facts, NULL);
    return status == WAL_OK && wal__part_place_equal(&reached, place)
               ? WAL_OK
               : fail_past(place->segment, error);
}

/* Appends at most max_size bytes of whole groups of the stretch, at least one group. */
static enum wal_status add_groups(struct wal_part_reader *reader, struct wal__segment *segment,
                                  uint32_t stream, const struct stretch *stretch, uint64_t max_size,
                                  struct wal_error *error)
{
    struct wal__part_head *head = &reader->head;
    struct wal__part_place *after = &head->after[stream];
    uint64_t to = stretch->to - stretch->from > max_size ? stretch->from + max_size : stretch->to;
    size_t begin = reader->bytes.size;

    for (;;) {
        struct wal__span bytes;
        enum wal_status status = part_add(reader, segment, stream, stretch->from, to, error);

        if (status != WAL_OK) {
            return status;
        }
        bytes = (struct wal__span){reader->bytes.data + begin, (size_t)(to - stretch->from)};
        status = wal__part_scan(&segment->header, &head->before[stream], stretch->from, bytes,
                                to == stretch->to, after, &reader->facts, error);
        if (status == WAL_OK) {
            uint64_t size = after->offset - stretch->from;

            reader->bytes.size = begin + (size_t)size;
            head->ranges[head->range_count - 1].size = size;
            reader->commits[stream] =
                (struct wal__part_commit){reader->facts.commit_offset, reader->facts.epoch};
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

static enum wal_status add_stretch(struct wal_part_reader *reader, uint32_t stream,
                                   const struct stretch *stretch, uint64_t max_size,
                                   struct wal_error *error)
{
    const struct wal__part_place *before = &reader->head.before[stream];
    struct wal__segment *segment = NULL;
    enum wal_status status = open_segment(reader, stream, stretch, &segment, error);

    if (status == WAL_OK) {
        status = add_groups(reader, segment, stream, stretch, max_size, error);
        wal__segment_close(segment);
    }
    if (status == WAL_OK) {
        WAL__ASSERT(!wal__part_place_equal(before, &reader->head.after[stream]));
    }
    return status;
}

/* Verifies the place in a stream before anything is read after it, once. */
static enum wal_status know_place(struct wal_part_reader *reader, uint32_t stream,
                                  const struct wal__part_place *place, struct wal_error *error)
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

/* Finds what follows the places in both streams. The log first: what it refers to was durable
 * before. */
static enum wal_status find_all(struct wal_part_reader *reader,
                                const struct wal__part_place *places, struct stretch *stretches,
                                struct wal_error *error)
{
    const uint32_t log = WAL__LOG_ID_LOG;
    const uint32_t pack = WAL__LOG_ID_PACK;
    struct wal__core *core = reader->core;
    enum wal_status status = wal__core_read_lock(core, error);

    if (status != WAL_OK) {
        return status;
    }
    status = find(&core->log, &places[log], wal__frozen_end(&core->log), &stretches[log], error);
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
        status = find(&core->blobs.log, &places[pack], wal__frozen_end(&core->blobs.log),
                      &stretches[pack], error);
        wal__blob_store_unlock(&core->blobs);
    }
    return status;
}

static enum wal_status read_stretches(struct wal_part_reader *reader,
                                      const struct stretch *stretches, uint64_t max_size,
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
        is_complete = is_complete && head->after[WAL__LOG_ID_PACK].offset == pack->to;
        size = head->ranges[0].size;
    }
    if (status == WAL_OK && is_complete && log->segment != 0 && size < max_size) {
        status = add_stretch(reader, WAL__LOG_ID_LOG, log, max_size - size, error);
    }
    return status;
}

/* The part that reaches an end has the sequence number and the chain of it. */
static enum wal_status check_ends(const struct wal_part_reader *reader,
                                  const struct wal__part_place *ends, struct wal_error *error)
{
    const struct wal__part_place *after = reader->head.after;

    for (uint32_t i = 0; i < WAL__PART_STREAMS; i++) {
        if (after[i].segment == ends[i].segment && after[i].offset == ends[i].offset &&
            (after[i].sequence != ends[i].sequence || after[i].chain != ends[i].chain)) {
            return fail_past(ends[i].segment, error);
        }
    }
    return WAL_OK;
}

/* Reads the whole segment that follows the places, which must not go beyond the ends. */
static enum wal_status read_segment(struct wal_part_reader *reader,
                                    const struct wal__part_place *places,
                                    const struct wal__part_place *ends, struct wal_error *error)
{
    const struct wal__part_place *after = reader->head.after;
    enum wal_status status = part_read_segment(reader, places, error);

    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK; i++) {
        if (ends != NULL &&
            (after[i].segment > ends[i].segment ||
             (after[i].segment == ends[i].segment && after[i].offset > ends[i].offset))) {
            return wal__fail(error, WAL_EBUSY,
                             "compaction has replaced what is at the end of "
                             "the part, in segment %016" PRIx64,
                             ends[i].segment);
        }
    }
    return status == WAL_END ? WAL_ENOTFOUND : status;
}

/* Reads what follows the places; WAL_ENOTFOUND: the segment was replaced, or a whole one refers to
 * content that has come since, so that it must be looked again. */
static enum wal_status read_once(struct wal_part_reader *reader,
                                 const struct wal__part_place *places,
                                 const struct wal__part_place *ends, uint64_t max_size,
                                 struct wal_error *error)
{
    struct stretch stretches[WAL__PART_STREAMS];
    const struct stretch *log = &stretches[WAL__LOG_ID_LOG];
    const struct stretch *pack = &stretches[WAL__LOG_ID_PACK];
    enum wal_status status = find_all(reader, places, stretches, error);

    for (uint32_t i = 0; i < WAL__PART_STREAMS && status == WAL_OK && ends != NULL; i++) {
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
    status = part_begin(reader, error);
    if (status != WAL_OK) {
        return status;
    }
    memcpy(reader->head.before, places, sizeof(reader->head.before));
    memcpy(reader->head.after, places, sizeof(reader->head.after));
    status = read_stretches(reader, stretches, max_size == 0 ? SIZE_DEFAULT : max_size, error);
    if (status == WAL_OK && ends != NULL) {
        status = check_ends(reader, ends, error);
    }
    return status == WAL_OK ? part_end(reader, error) : status;
}

/* Reads what is durable after the places, and before the ends unless they are NULL, as
 * reader->bytes and reader->head. */
static enum wal_status part_read(struct wal_part_reader *reader,
                                 const struct wal__part_place *places,
                                 const struct wal__part_place *ends, uint64_t max_size,
                                 struct wal_error *error)
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
               ? wal__fail(error, WAL_EBUSY, "the store is being compacted: try again")
               : status;
}

enum wal_status wal_part_reader_open(struct wal_store *store, struct wal_part_reader **reader,
                                     struct wal_error *error)
{
    struct wal_part_reader *opened;
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && reader == NULL) {
        status = wal__invalid(error, "the place for the reader is null");
    }
    if (status == WAL_OK && store->core.env.io->in_memory) {
        status = wal__invalid(error, "the store has no files");
    }
    if (status != WAL_OK) {
        return status;
    }
    opened = wal__heap_zalloc(store->core.env.heap, sizeof(*opened));
    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = &store->core;
    wal__sha256_alg_init(&opened->sha256_alg);
    wal__buf_init(&opened->bytes, store->core.env.heap);
    wal__buf_init(&opened->index, store->core.env.heap);
    wal__core_retain(&store->core);
    *reader = opened;
    return WAL_OK;
}

static void from_public(const struct wal_part_place *from, struct wal__part_place *to)
{
    memset(to, 0, WAL_PART_STREAMS * sizeof(to[0]));
    for (size_t i = 0; from != NULL && i < WAL_PART_STREAMS; i++) {
        to[i] = (struct wal__part_place){from[i].segment, from[i].identity, from[i].offset,
                                         from[i].sequence, from[i].chain};
    }
}

enum wal_status wal_part_reader_next(struct wal_part_reader *reader,
                                     const struct wal_part_place *position, uint64_t max_size,
                                     struct wal_slice *part, struct wal_part_info *info,
                                     struct wal_error *error)
{
    return wal_part_reader_next_to(reader, position, NULL, max_size, part, info, error);
}

enum wal_status wal_part_reader_next_to(struct wal_part_reader *reader,
                                        const struct wal_part_place *position,
                                        const struct wal_part_place *end, uint64_t max_size,
                                        struct wal_slice *part, struct wal_part_info *info,
                                        struct wal_error *error)
{
    struct wal__part_place places[WAL_PART_STREAMS];
    struct wal__part_place ends[WAL_PART_STREAMS];
    enum wal_status status = wal__check_core(reader == NULL ? NULL : reader->core, error);

    if (status == WAL_OK) {
        status = wal__struct_check_optional(WAL__STRUCT(wal_part_info), info, error);
    }
    if (status == WAL_OK) {
        from_public(position, places);
        from_public(end, ends);
        status = part_read(reader, places, end == NULL ? NULL : ends, max_size, error);
    }
    if (status == WAL_OK) {
        if (part != NULL) {
            part->data = reader->bytes.data;
            part->size = reader->bytes.size;
        }
        fill_info(&reader->head, info);
    }
    return status;
}

enum wal_status wal_part_reader_get_index(struct wal_part_reader *reader, struct wal_slice *index,
                                          struct wal_error *error)
{
    enum wal_status status = wal__check_core(reader == NULL ? NULL : reader->core, error);

    if (status == WAL_OK && index == NULL) {
        status = wal__invalid(error, "the place for the index is null");
    }
    if (status != WAL_OK) {
        return status;
    }
    reader->index.size = 0;
    if (wal__part_append_index(reader->core, &reader->head, reader->commits, &reader->index) !=
        WAL_OK) {
        return wal__no_memory(error);
    }
    *index = (struct wal_slice){reader->index.data, reader->index.size};
    return WAL_OK;
}

void wal_part_reader_close(struct wal_part_reader *reader)
{
    if (reader != NULL) {
        struct wal__core *core = reader->core;

        wal__buf_deinit(&reader->bytes);
        wal__buf_deinit(&reader->index);
        wal__sha256_alg_deinit(&reader->sha256_alg);
        wal__heap_free(core->env.heap, reader);
        wal__core_release(core);
    }
}
