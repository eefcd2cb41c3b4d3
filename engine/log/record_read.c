/*
 * record_read.c - reading records by position (SPEC.md 2.3, 2.23): from a segment's map, by pread,
 * from the group that is being built, or from a block of a rewritten segment, which is decompressed
 * into the reader's buffer.
 *
 * Invariant: no payload is returned whose checksums were not verified.
 */
#include <string.h>

#include "engine/base/error.h"
#include "engine/log/group.h"
#include "engine/log/log.h"
#include "format/bytes/assert.h"
#include "format/segment/frame.h"

enum { CACHE_LINE_SIZE = 64 };

void wal__record_buf_init(struct wal__record_buf *buf, const struct wal__heap *heap)
{
    memset(buf, 0, sizeof(*buf));
    wal__buf_init(&buf->bytes, heap);
    wal__buf_init(&buf->stored, heap);
    wal__buf_init(&buf->block_bytes, heap);
    wal__buf_init(&buf->all_used, heap);
}

/* Forgets a block whose records are not in memory of the buffer. */
static void forget_mapped(struct wal__record_buf *buf)
{
    if (!buf->has_records) {
        buf->salt = 0;
    }
}

void wal__record_buf_release(struct wal__record_buf *buf)
{
    if (buf->used != NULL && buf->pinned == NULL) {
        wal__log_end_use(buf->used);
        buf->used = NULL;
        forget_mapped(buf);
    }
}

void wal__record_buf_deinit(struct wal__record_buf *buf)
{
    struct wal__segment *segment;

    for (size_t at = 0; at < buf->all_used.size; at += sizeof(segment)) {
        memcpy(&segment, buf->all_used.data + at, sizeof(segment));
        wal__log_end_use(segment);
    }
    wal__buf_deinit(&buf->all_used);
    buf->pinned = NULL;
    wal__record_buf_release(buf);
    wal__buf_deinit(&buf->bytes);
    wal__buf_deinit(&buf->stored);
    wal__buf_deinit(&buf->block_bytes);
    wal__cipher_deinit(&buf->cipher);
}

/* Ends the use of the last segment, or notes it while slices are pinned. */
static enum wal_status leave_used(struct wal__record_buf *buf)
{
    struct wal__segment *segment;

    if (buf->used == NULL || buf->pinned == NULL) {
        wal__record_buf_release(buf);
        return WAL_OK;
    }
    for (size_t at = 0; at < buf->all_used.size; at += sizeof(segment)) {
        memcpy(&segment, buf->all_used.data + at, sizeof(segment));
        if (segment == buf->used) {
            wal__log_end_use(segment); /* it is noted: once is enough */
            buf->used = NULL;
            return WAL_OK;
        }
    }
    if (wal__buf_append(&buf->all_used, &buf->used, sizeof(buf->used)) != WAL_OK) {
        return WAL_ENOMEM;
    }
    buf->used = NULL;
    return WAL_OK;
}

/* Finds the segment, which is used from now on in place of the last one. A sequential reader does
 * so once for each segment. */
static enum wal_status use_segment(struct wal__log *log, uint64_t id, struct wal__record_buf *buf,
                                   struct wal__segment **segment)
{
    struct wal__segment *used = buf->used;

    if (used == NULL || buf->log != log || used->id != id ||
        atomic_load_explicit(&used->is_retired, memory_order_acquire)) {
        used = wal__log_use_segment(log, id);
        if (leave_used(buf) != WAL_OK) {
            if (used != NULL) {
                wal__log_end_use(used);
            }
            return WAL_ENOMEM;
        }
        buf->log = log;
        buf->used = used;
        forget_mapped(buf);
    }
    *segment = used;
    return WAL_OK;
}

/* Reads bytes by pread into a buffer; *bytes points to them. */
static enum wal_status read_bytes(const struct wal__segment *segment, uint64_t offset,
                                  struct wal__buf *scratch, uint64_t size, const uint8_t **bytes,
                                  struct wal_error *error)
{
    const struct wal__io *io = segment->env->io;
    enum wal_status status;
    uint8_t *at = NULL;
    size_t got = 0;
    int err = 0;

    scratch->size = 0;
    if (wal__buf_reserve(scratch, size, &at) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__io_read_full(io, segment->file, at, size, offset, &got, &err);
    if (status != WAL_OK || got < size) {
        return wal__fail_at(error, WAL_EIO, err, segment->path, offset, "cannot read a record");
    }
    *bytes = at;
    return WAL_OK;
}

/* Returns the frame at a position in the pending group, or NULL. Only the thread that builds the
 * group knows positions at or beyond the end. */
static const uint8_t *locate_pending(const struct wal__log *log, uint64_t position)
{
    const struct iovec *iov;
    uint64_t at;

    if (position < atomic_load(&log->end) || log->pending_group == NULL ||
        wal__position_segment(position) != log->tail_segment->id) {
        return NULL;
    }
    WAL__ASSERT(log->append_lock_held);
    at = wal__position_offset(position) - atomic_load(&log->tail_segment->end);
    if (at >= log->pending_group->size) {
        return NULL;
    }
    iov = (const struct iovec *)(const void *)log->pending_group->iov.data;
    while (at >= iov->iov_len) {
        WAL__ASSERT((const uint8_t *)(iov + 1) <
                    log->pending_group->iov.data + log->pending_group->iov.size);
        at -= iov->iov_len;
        iov++;
    }
    return (const uint8_t *)iov->iov_base + at;
}

/* Where a record is, and its bytes. */
struct record_location {
    struct wal__segment *segment;
    uint64_t offset;
    const uint8_t *at;
    uint64_t size;  /* up to where the record may extend */
    bool is_whole;  /* `at` has the whole record, not only the bytes wanted */
    bool is_memory; /* decompressed from a BLOCK whose checksum is true */
};

static enum wal_status fail_damaged(const struct wal__segment *segment, uint64_t offset,
                                    enum wal__fmt fmt, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECORRUPT, 0, segment->path, offset, "the record is damaged: %s",
                        wal__fmt_text(fmt));
}

static enum wal_status fail_decrypt(const struct wal__segment *segment, uint64_t offset,
                                    enum wal_status status, struct wal_error *error)
{
    return status == WAL_ENOMEM
               ? wal__no_memory(error)
               : wal__fail_at(error, status, 0, segment->path, offset,
                              status == WAL_EKEY ? "the record is encrypted by a key that the "
                                                   "store does not have"
                                                 : "the record is damaged: it is not what was "
                                                   "encrypted");
}

/* --- from a block ------------------------------------------------------- */

/* Finds a BLOCK frame, whole: in the map, or by pread in buf->stored. */
static enum wal_status fetch_block(struct wal__segment *segment, uint64_t offset,
                                   struct wal__record_buf *buf, struct wal__frame *frame,
                                   const uint8_t **payload, struct wal_error *error)
{
    const uint64_t left = segment->header.capacity - offset;
    const bool use_pread = segment->env->use_pread;
    const uint8_t *at = NULL;
    enum wal_status status = WAL_OK;
    enum wal__fmt fmt;

    if (use_pread) {
        status = read_bytes(segment, offset, &buf->stored, WAL__FRAME_SIZE, &at, error);
    } else {
        at = wal__segment_map(segment, error);
        if (at == NULL) {
            status = wal__segment_map_status(segment);
        } else {
            at += offset;
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    fmt = wal__frame_decode(at, left, segment->header.salt, offset, frame);
    if (fmt == WAL__FMT_OK && frame->type != WAL__FRAME_BLOCK) {
        fmt = WAL__FMT_TYPE;
    }
    if (fmt == WAL__FMT_OK && use_pread) {
        status = read_bytes(segment, offset, &buf->stored,
                            wal__frame_total_size(frame->stored_size), &at, error);
    }
    /* What is encrypted is verified by its tag. */
    if (status == WAL_OK && fmt == WAL__FMT_OK &&
        !wal__encrypt_covers(&segment->header, frame->type)) {
        fmt = wal__frame_check_data(frame, at + WAL__FRAME_SIZE);
    }
    if (status == WAL_OK && fmt != WAL__FMT_OK) {
        status = fail_damaged(segment, offset, fmt, error);
    }
    *payload = at + WAL__FRAME_SIZE;
    return status;
}

/* Empties the buffer; its bytes may be pinned. */
static enum wal_status pin(struct wal__record_buf *buf)
{
    struct wal__buf old = buf->bytes;
    enum wal_status status = WAL_OK;

    if (buf->pinned != NULL && old.data != NULL) {
        status = wal__buf_append(buf->pinned, &old, sizeof(old));
        if (status == WAL_OK) {
            wal__buf_init(&buf->bytes, old.heap);
        }
    }
    buf->bytes.size = 0;
    return status;
}

/* Fills buf->records with those of the BLOCK at `offset`. */
static enum wal_status load_block(struct wal__segment *segment, uint64_t offset,
                                  struct wal__record_buf *buf, struct wal_error *error)
{
    const uint8_t *payload = NULL;
    struct wal__block block;
    struct wal__frame frame;
    enum wal__fmt fmt;
    uint8_t *out = NULL;
    enum wal_status status;

    buf->salt = 0;
    buf->has_records = false;
    status = fetch_block(segment, offset, buf, &frame, &payload, error);
    if (status != WAL_OK) {
        return status;
    }
    if (wal__encrypt_covers(&segment->header, frame.type)) {
        /* Records that are not compressed are read where they are decrypted. */
        struct wal__buf *to = (frame.flags & WAL__FRAME_LZ4) != 0 ? &buf->block_bytes : &buf->bytes;

        to->size = 0;
        if ((to == &buf->bytes && pin(buf) != WAL_OK) ||
            wal__buf_reserve(to, frame.stored_size, &out) != WAL_OK) {
            return wal__no_memory(error);
        }
        status = wal__decrypt_frame(segment->env->keyring, &buf->cipher, &segment->header, offset,
                                    &frame, payload, out);
        if (status != WAL_OK) {
            return fail_decrypt(segment, offset, status, error);
        }
        payload = out;
        buf->has_records = to == &buf->bytes;
    }
    fmt = wal__block_decode(&frame, payload, &block);
    buf->records = block.data;
    if (fmt == WAL__FMT_OK && block.is_compressed) {
        if (pin(buf) != WAL_OK) {
            return wal__no_memory(error);
        }
        if (wal__buf_reserve(&buf->bytes, block.raw_size, &out) != WAL_OK) {
            return wal__no_memory(error);
        }
        fmt = wal__block_decompress(&block, out);
        buf->records = (struct wal__span){out, block.raw_size};
        buf->has_records = true;
    }
    if (fmt != WAL__FMT_OK) {
        return fail_damaged(segment, offset, fmt, error);
    }
    buf->salt = segment->header.salt;
    buf->block = offset;
    return WAL_OK;
}

static enum wal_status locate_in_block(struct wal__record_buf *buf,
                                       struct record_location *location, struct wal_error *error)
{
    uint64_t offset = wal__block_offset(location->offset);
    struct wal__span found;
    enum wal_status status = WAL_OK;
    enum wal__fmt fmt;

    if (buf->salt == 0 || buf->salt != location->segment->header.salt || buf->block != offset) {
        status = load_block(location->segment, offset, buf, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    fmt = wal__block_find(buf->records, wal__block_rank(location->offset), &found);
    if (fmt != WAL__FMT_OK) {
        return fail_damaged(location->segment, location->offset, fmt, error);
    }
    location->at = found.data;
    location->size = found.size;
    location->is_whole = true;
    location->is_memory = buf->has_records;
    return WAL_OK;
}

/* --- from anywhere ------------------------------------------------------ */

/* Finds the record, and its first `size` bytes: at least its header. */
static enum wal_status locate(struct wal__log *log, uint64_t position, uint64_t size,
                              struct wal__record_buf *scratch, struct record_location *location,
                              struct wal_error *error)
{
    uint64_t offset = wal__position_offset(position);
    struct wal__segment *segment;
    const uint8_t *map;

    WAL__ASSERT(size >= WAL__FRAME_SIZE);
    if (use_segment(log, wal__position_segment(position), scratch, &segment) != WAL_OK) {
        return wal__no_memory(error);
    }
    if (segment == NULL || offset + WAL__FRAME_SIZE > segment->header.capacity) {
        return wal__fail_at(error, WAL_ECORRUPT, 0, NULL, offset,
                            "an index names a position that is not in the log");
    }
    location->segment = segment;
    location->offset = offset;
    location->is_memory = false;
    location->size = segment->header.capacity - offset;
    if (wal__segment_is_rewritten(&segment->header)) {
        return locate_in_block(scratch, location, error);
    }
    location->at = locate_pending(log, position);
    location->is_whole = location->at != NULL || !segment->env->use_pread;
    if (location->at != NULL) {
        return WAL_OK;
    }
    if (!location->is_whole) {
        if (size > segment->header.capacity - offset) {
            size = segment->header.capacity - offset;
        }
        scratch->salt = 0;
        return read_bytes(segment, offset,
                          wal__segment_is_encrypted(&segment->header) ? &scratch->stored
                                                                      : &scratch->bytes,
                          size, &location->at, error);
    }
    map = wal__segment_map(segment, error);
    if (map == NULL) {
        return wal__segment_map_status(segment);
    }
    location->at = map + offset;
    return WAL_OK;
}

static enum wal__fmt decode(const struct record_location *location, struct wal__frame *frame)
{
    return wal__frame_decode(location->at, location->size, location->segment->header.salt,
                             location->offset, frame);
}

/* Whether the record that was found is encrypted by itself: one of a block is not. */
static bool is_encrypted(const struct record_location *location, const struct wal__frame *frame)
{
    return wal__encrypt_covers(&location->segment->header, frame->type) &&
           !wal__segment_is_rewritten(&location->segment->header);
}

/* Decrypts the record to the buffer; *frame is then as without encryption. */
static enum wal_status decrypt(struct wal__record_buf *buf, struct record_location *location,
                               struct wal__frame *frame, struct wal__span *payload,
                               struct wal_error *error)
{
    struct wal__segment *segment = location->segment;
    enum wal_status status = WAL_OK;
    uint8_t *out;

    if (!location->is_whole) {
        status = read_bytes(segment, location->offset, &buf->stored,
                            wal__frame_total_size(frame->stored_size), &location->at, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    buf->salt = 0;
    if (pin(buf) != WAL_OK || wal__buf_reserve(&buf->bytes, frame->stored_size, &out) != WAL_OK) {
        return wal__no_memory(error);
    }
    status = wal__decrypt_frame(segment->env->keyring, &buf->cipher, &segment->header,
                                location->offset, frame, location->at + WAL__FRAME_SIZE, out);
    *payload = (struct wal__span){out, frame->stored_size};
    return status == WAL_OK ? WAL_OK : fail_decrypt(segment, location->offset, status, error);
}

enum wal_status wal__log_read(struct wal__log *log, uint64_t position,
                              struct wal__record_buf *scratch, struct wal__frame *frame,
                              struct wal__span *payload, struct wal_error *error)
{
    struct record_location location;
    enum wal__fmt fmt;
    enum wal_status status = locate(log, position, WAL__FRAME_SIZE, scratch, &location, error);

    if (status != WAL_OK) {
        return status;
    }
    fmt = decode(&location, frame);
    if (fmt == WAL__FMT_OK && is_encrypted(&location, frame)) {
        return decrypt(scratch, &location, frame, payload, error);
    }
    if (fmt == WAL__FMT_OK && !location.is_whole) {
        status = read_bytes(location.segment, location.offset, &scratch->bytes,
                            wal__frame_total_size(frame->stored_size), &location.at, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    /* Compaction verified the records of a block: its checksum covers them. */
    if (fmt == WAL__FMT_OK && !location.is_memory) {
        fmt = wal__frame_check_data(frame, location.at + WAL__FRAME_SIZE);
    }
    if (fmt != WAL__FMT_OK) {
        return fail_damaged(location.segment, location.offset, fmt, error);
    }
    payload->data = location.at + WAL__FRAME_SIZE;
    payload->size = frame->stored_size;
    return WAL_OK;
}

enum wal_status wal__log_peek(struct wal__log *log, uint64_t position, uint32_t size,
                              struct wal__record_buf *scratch, struct wal__frame *frame,
                              struct wal__span *first, struct wal_error *error)
{
    struct record_location location;
    enum wal__fmt fmt;
    enum wal_status status =
        locate(log, position, (uint64_t)WAL__FRAME_SIZE + size, scratch, &location, error);

    if (status != WAL_OK) {
        return status;
    }
    fmt = decode(&location, frame);
    if (fmt != WAL__FMT_OK) {
        return fail_damaged(location.segment, location.offset, fmt, error);
    }
    if (is_encrypted(&location, frame)) {
        status = decrypt(scratch, &location, frame, first, error);
        first->size = first->size < size ? first->size : size;
        return status;
    }
    first->data = location.at + WAL__FRAME_SIZE;
    first->size = frame->stored_size < size ? frame->stored_size : size;
    return WAL_OK;
}

bool wal__log_has_record(struct wal__log *log, uint64_t position, uint64_t sequence,
                         struct wal__record_buf *scratch)
{
    struct wal__frame frame;
    struct wal__span ignored;

    return wal__log_peek(log, position, 0, scratch, &frame, &ignored, NULL) == WAL_OK &&
           frame.sequence == sequence;
}

void wal__log_prefetch(const struct wal__log *log, uint64_t position, uint64_t size)
{
    const struct wal__segment *segment = wal__log_segment(log, wal__position_segment(position));
    uint64_t offset = wal__position_offset(position);
    const uint8_t *map;

    if (segment == NULL || offset + size > segment->header.capacity) {
        return;
    }
    map = atomic_load_explicit(&segment->map, memory_order_acquire);
    for (uint64_t at = 0; map != NULL && at < size; at += CACHE_LINE_SIZE) {
        __builtin_prefetch(map + offset + at);
    }
}

enum wal_status wal__log_read_commit(struct wal__log *log, uint64_t position,
                                     struct wal__frame *frame, struct wal__commit_record *commit)
{
    struct wal__record_buf scratch;
    struct wal__span payload;
    enum wal_status status;

    wal__record_buf_init(&scratch, log->env->heap);
    status = wal__log_read(log, position, &scratch, frame, &payload, NULL);
    if (status == WAL_OK && (frame->type != WAL__FRAME_COMMIT ||
                             wal__commit_record_decode(payload, commit) != WAL__FMT_OK)) {
        status = WAL_ECORRUPT;
    }
    wal__record_buf_deinit(&scratch);
    return status;
}
