/*
 * copy.c - reads the lines of a copy (copy.h, SPEC.md 5.17).
 *
 * Each line is rebuilt from the shared line that its chunk names, and verified
 * by a checksum. When that fails, one line is lost: the shared line is kept for
 * the next, since the line that was meant is probably missing.
 *
 * Threads: one at a time per copy.
 */
#include "convert/copy/copy.h"

#include <string.h>

#include "agentwal/blob.h"
#include "convert/copy/copy_internal.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/json/json_scan.h"

#define PIECE_SIZE ((size_t)1 << 20)

/* Flags of a cursor over everything that has a line in the file. */
#define ALL_FLAGS                                          \
    (WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | \
     WAL_ENTRY_CURSOR_OUT_OF_LINE)

static const struct wal__heap *copy_heap(const struct wal__copy *copy)
{
    return copy->heap != NULL ? copy->heap : &wal__heap_libc;
}

enum wal_status wal__copy_open_cursor(struct wal_session *session,
                                      uint32_t stream, uint32_t flags,
                                      uint64_t skip,
                                      struct wal_entry_cursor **cursor,
                                      struct wal_error *error)
{
    struct wal_entry_cursor_options options = {
        .struct_size = sizeof(options),
        .mode = WAL_ENTRY_CURSOR_ALL,
        .stream = stream,
        .skip = skip,
        .flags = flags,
    };

    return wal_entry_cursor_open(session, &options, cursor, error);
}

enum wal_status wal__copy_next_entry(struct wal_entry_cursor *cursor,
                                     struct wal_entry *entry,
                                     struct wal_error *error)
{
    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    return wal_entry_cursor_next(cursor, entry, error);
}

static bool is_chunk(const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_LINE) != 0 &&
           entry->type.size == strlen(WAL__COPY_TYPE) &&
           memcmp(entry->type.data, WAL__COPY_TYPE, (size_t)entry->type.size) ==
               0;
}

/* Decodes a chunk's entry. */
static enum wal_status read_chunk(struct wal__copy *copy,
                                  const struct wal_entry *entry)
{
    uint32_t expected = copy->chunk_count++;
    enum wal_status status;

    memset(&copy->chunk.reader, 0, sizeof(copy->chunk.reader));
    if ((entry->flags & (WAL_ENTRY_REDACTED | WAL_ENTRY_OUT_OF_LINE)) != 0) {
        return WAL_ECORRUPT;
    }
    status = wal__copy_chunk_decode(&copy->chunk, entry->payload);
    if (status == WAL_OK) {
        copy->is_complete |= copy->chunk.is_last;
        copy->chunk_count = copy->chunk.number + 1;
        /* A gap in the numbers: the chunks between are lost. */
        status = copy->chunk.number == expected ? WAL_OK : WAL_ECORRUPT;
    }
    return status;
}

/* Reads the next chunk; WAL_END after the last. */
static enum wal_status next_chunk(struct wal__copy *copy,
                                  struct wal_error *error)
{
    struct wal_entry entry;
    enum wal_status status;

    do {
        status = wal__copy_next_entry(copy->chunks, &entry, error);
    } while (status == WAL_OK && !is_chunk(&entry));
    if (status == WAL_ECORRUPT || status == WAL_EIO) {
        copy->chunk_count++;
    }
    if (status != WAL_OK) {
        return status;
    }
    if (copy->first_sequence == 0) {
        copy->first_sequence = entry.sequence;
    }
    return read_chunk(copy, &entry);
}

enum wal_status wal__copy_open(struct wal__copy *copy,
                               struct wal_session *session,
                               const struct wal__heap *heap, uint32_t flags,
                               bool *is_copy, struct wal_error *error)
{
    enum wal_status status;

    *copy = (struct wal__copy){
        .session = session, .heap = heap, .chunk.heap = heap};
    *is_copy = false;
    status = wal__copy_open_cursor(session, WAL__COPY_STREAM, ALL_FLAGS | flags,
                                   0, &copy->chunks, error);
    if (status == WAL_OK && wal_entry_cursor_remaining(copy->chunks) > 0) {
        status = next_chunk(copy, error);
        *is_copy = status != WAL_END;
        if (status == WAL_END || status == WAL_ECORRUPT || status == WAL_EIO) {
            status = WAL_OK; /* a copy whose chunk is lost */
        }
    }
    if (status == WAL_OK && *is_copy) {
        status = wal__copy_open_cursor(session, 0, ALL_FLAGS | flags, 0,
                                       &copy->branch, error);
    }
    if (status == WAL_OK && *is_copy) {
        status = wal__copy_open_cursor(session, 0, ALL_FLAGS | flags, 0,
                                       &copy->named, error);
    }
    if (status != WAL_OK || !*is_copy) {
        *is_copy = false;
        wal__copy_close(copy);
    }
    return status;
}

enum wal_status wal__copy_inspect(struct wal_session *session, bool *is_copy,
                                  bool *is_complete, struct wal_error *error)
{
    struct wal__copy copy;
    struct wal_entry entry;
    enum wal_status status =
        wal__copy_open(&copy, session, NULL, 0, is_copy, error);

    *is_complete = false;
    if (status != WAL_OK || !*is_copy) {
        return status;
    }
    *is_complete = copy.is_complete;
    while (!*is_complete && (status = wal__copy_next_entry(copy.chunks, &entry,
                                                           error)) != WAL_END) {
        if (status == WAL_OK && is_chunk(&entry)) {
            (void)read_chunk(&copy, &entry);
            *is_complete = copy.is_complete;
        } else if (status != WAL_OK && status != WAL_ECORRUPT &&
                   status != WAL_EIO) {
            break;
        }
    }
    wal__copy_close(&copy);
    return status == WAL_END || *is_complete ? WAL_OK : status;
}

void wal__copy_close(struct wal__copy *copy)
{
    wal_entry_cursor_close(copy->chunks);
    wal_entry_cursor_close(copy->branch);
    wal_entry_cursor_close(copy->named);
    wal__copy_chunk_deinit(&copy->chunk);
    wal__heap_free(copy_heap(copy), copy->text);
    *copy = (struct wal__copy){.session = NULL};
}

/* Makes the next readable shared line the base. */
static enum wal_status next_shared_line(struct wal__copy *copy,
                                        struct wal_error *error)
{
    enum wal_status status;

    while (!copy->has_base) {
        status = wal__copy_next_entry(copy->branch, &copy->base, error);
        if (status == WAL_ECORRUPT || status == WAL_EIO) {
            continue;
        }
        if (status != WAL_OK) {
            return status;
        }
        if (copy->base.sequence >= copy->first_sequence) {
            return WAL_END;
        }
        copy->has_base = (copy->base.flags & WAL_ENTRY_LINE) != 0;
    }
    WAL__ASSERT(copy->base.sequence < copy->first_sequence);
    return WAL_OK;
}

/* Advances the branch past the line that the chunk names. */
static enum wal_status find_named_base(struct wal__copy *copy,
                                       struct wal_error *error)
{
    const struct wal__delta_reader *reader = &copy->chunk.reader;
    struct wal_slice id = {reader->id, reader->id_size};
    struct wal_entry found = {.struct_size = sizeof(found)};
    enum wal_status status =
        wal_entry_cursor_get(copy->named, id, &found, error);

    if (status != WAL_OK) {
        return status;
    }
    if ((found.flags & WAL_ENTRY_LINE) == 0 ||
        found.sequence >= copy->first_sequence) {
        return WAL_ENOTFOUND;
    }
    do {
        status = next_shared_line(copy, error);
        if (status == WAL_OK && copy->base.sequence > found.sequence) {
            break;
        }
        copy->has_base = false;
    } while (status == WAL_OK);
    return status == WAL_END ? WAL_OK : status;
}

static bool reserve(struct wal__copy *copy, size_t used, uint64_t more)
{
    size_t capacity = copy->capacity > 0 ? copy->capacity : 65536;
    uint8_t *text;

    WAL__ASSERT(used <= copy->capacity);
    if (more > SIZE_MAX / 4 || used > SIZE_MAX / 4) {
        return false;
    }
    while (capacity - used < more) {
        capacity *= 2;
    }
    if (capacity == copy->capacity) {
        return true;
    }
    text = wal__heap_resize(copy_heap(copy), copy->text, capacity, 1);
    if (text != NULL) {
        copy->text = text;
        copy->capacity = capacity;
    }
    return text != NULL;
}

/* Decodes the next operation and makes its offset relative to the original.
 * False: the chunk is invalid. *fits is cleared when the operation exceeds the
 * original; the remaining operations are still decoded. */
static bool next_step(struct wal__delta_reader *reader, uint64_t total,
                      uint64_t *at, struct wal__delta_op *op, bool *fits)
{
    if (!wal__delta_decode_op(reader, op)) {
        return false;
    }
    if (op->opcode == WAL__DELTA_OP_COPY || op->opcode == WAL__DELTA_OP_SKIP) {
        *fits = *fits && op->size <= total - *at;
        *at += *fits ? op->size : 0;
    } else if (op->opcode == WAL__DELTA_OP_UUID_NEARBY) {
        uint64_t from = *at + (uint64_t)op->offset;

        *fits = *fits && total >= WAL__UUID_TEXT_SIZE &&
                from <= total - WAL__UUID_TEXT_SIZE;
        op->offset = (int64_t)from;
    }
    return true;
}

/* Rebuilds the line from the original. *fits: the operations match the original
 * and the checksum is right. */
static enum wal_status apply_delta(struct wal__copy *copy,
                                   struct wal_slice original, bool *fits,
                                   size_t *size)
{
    struct wal__delta_reader *reader = &copy->chunk.reader;
    const uint8_t *bytes = original.data;
    struct wal__delta_op op;
    uint64_t at = 0;

    *size = 0;
    *fits = true;
    do {
        struct wal__delta_span from = {NULL, 0};
        uint64_t before = at;

        if (!next_step(reader, original.size, &at, &op, fits)) {
            return WAL_ECORRUPT;
        }
        if (op.opcode == WAL__DELTA_OP_INSERT) {
            from = op.text;
        } else if (*fits && op.opcode == WAL__DELTA_OP_COPY) {
            from = (struct wal__delta_span){bytes + before, (size_t)op.size};
        } else if (*fits && op.opcode == WAL__DELTA_OP_UUID_NEARBY) {
            from = (struct wal__delta_span){bytes + op.offset,
                                            WAL__UUID_TEXT_SIZE};
        }
        if (!reserve(copy, *size, from.size)) {
            return WAL_ENOMEM;
        }
        WAL__ASSERT(*size + from.size <= copy->capacity);
        if (from.size > 0) {
            memcpy(copy->text + *size, from.data, from.size);
            *size += from.size;
        }
    } while (op.opcode != WAL__DELTA_OP_END);
    *fits = *fits && at == original.size &&
            (uint8_t)wal__delta_crc(0, copy->text, *size) == reader->check;
    return WAL_OK;
}

/* Decodes the operations of a line that is not rebuilt. */
static enum wal_status skip_steps(struct wal__copy *copy, uint64_t total,
                                  bool *fits)
{
    struct wal__delta_op op;
    uint64_t at = 0;

    *fits = true;
    do {
        if (!next_step(&copy->chunk.reader, total, &at, &op, fits)) {
            return WAL_ECORRUPT;
        }
    } while (op.opcode != WAL__DELTA_OP_END);
    *fits = *fits && at == total;
    return WAL_OK;
}

/* The meta of the copied line: only the "odd" member of the original's. */
static struct wal_slice copied_meta(const struct wal_entry *entry)
{
    static const char odd[] = "{\"odd\":true}";
    struct wal__json_token value;

    return entry->meta.size > 0 &&
                   wal__json_find(entry->meta.data, (size_t)entry->meta.size,
                                  "odd", &value) == WAL__JSON_OK
               ? (struct wal_slice){odd, sizeof(odd) - 1}
               : (struct wal_slice){NULL, 0};
}

/* Turns the original's entry into the copy's. The reader is after the
 * operations of the line, also on failure. */
static enum wal_status rebuild_from(struct wal__copy *copy,
                                    struct wal_entry *entry)
{
    enum wal_status status;
    size_t size = 0;
    bool fits = true;

    copy->line = copy->chunk.reader;
    if ((entry->flags & WAL_ENTRY_REDACTED) != 0) {
        return skip_steps(copy, 0, &fits);
    }
    if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0) {
        status = skip_steps(copy, entry->payload_size, &fits);
    } else {
        status = apply_delta(copy, entry->payload, &fits, &size);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!fits) {
        return WAL_ENOTFOUND;
    }
    if (!copy->return_originals) {
        entry->meta = copied_meta(entry);
        if ((entry->flags & WAL_ENTRY_OUT_OF_LINE) == 0) {
            entry->payload = (struct wal_slice){copy->text, size};
            entry->payload_size = size;
        }
    }
    return WAL_OK;
}

/* Rebuilds a line that refers to a shared line. WAL_ENOTFOUND: the shared line
 * is lost. */
static enum wal_status rebuild_line(struct wal__copy *copy,
                                    enum wal__delta_line_kind kind,
                                    struct wal_entry *entry,
                                    struct wal_error *error)
{
    struct wal_entry base = {.struct_size = sizeof(base)};
    enum wal_status status;
    bool fits;

    if (kind == WAL__DELTA_LINE_BY_ID) {
        const struct wal__delta_reader *reader = &copy->chunk.reader;
        struct wal_slice id = {reader->id, reader->id_size};

        status = find_named_base(copy, error);
        if (status == WAL_OK) {
            status = wal_entry_cursor_get(copy->named, id, &base, error);
        }
    } else {
        status = next_shared_line(copy, error);
        base = copy->base;
    }
    if (status == WAL_ENOTFOUND || status == WAL_END ||
        status == WAL_ECORRUPT || status == WAL_EIO) {
        return skip_steps(copy, 0, &fits) == WAL_OK ? WAL_ENOTFOUND
                                                    : WAL_ECORRUPT;
    }
    if (status != WAL_OK) {
        return status;
    }
    status = rebuild_from(copy, &base);
    if (status == WAL_OK) {
        *entry = base;
        copy->has_base = copy->has_base && kind == WAL__DELTA_LINE_BY_ID;
    }
    return status;
}

static enum wal_status report_lost_line(struct wal_error *error,
                                        enum wal_status status)
{
    return wal__fail(
        error, status,
        "cannot read a line of the copy, or the shared line that it refers to");
}

enum wal_status wal__copy_next(struct wal__copy *copy, struct wal_entry *entry,
                               bool *is_own, struct wal_error *error)
{
    enum wal__delta_line_kind kind;
    enum wal_status status;

    *is_own = false;
    while (copy->chunk.reader.checks.size == 0) {
        status = copy->has_ended ? WAL_END : next_chunk(copy, error);
        copy->has_ended |= status == WAL_END;
        if (status != WAL_OK) {
            return status == WAL_ECORRUPT ? report_lost_line(error, status)
                                          : status;
        }
    }
    status = WAL_ECORRUPT;
    if (wal__delta_decode_line(&copy->chunk.reader, &kind)) {
        *is_own = kind == WAL__DELTA_LINE_ADDED;
        status = *is_own ? WAL_OK : rebuild_line(copy, kind, entry, error);
    }
    if (status == WAL_ECORRUPT) {
        copy->chunk.reader.checks.size =
            0; /* the rest of the chunk is unreadable too */
    }
    return status == WAL_ECORRUPT || status == WAL_ENOTFOUND
               ? report_lost_line(error, WAL_ECORRUPT)
               : status;
}

/* --- out of line --------------------------------------------------------- */

struct payload_stream {
    struct wal_blob *blob;
    uint8_t *buffer;
    bool (*sink)(void *ctx, const void *data, size_t size);
    void *ctx;
    uint32_t crc;
    bool has_stopped;
};

static void emit_bytes(struct payload_stream *stream, const void *data,
                       size_t size)
{
    stream->crc = wal__delta_crc(stream->crc, data, size);
    stream->has_stopped |= !stream->sink(stream->ctx, data, size);
}

static enum wal_status emit_original(struct payload_stream *stream,
                                     uint64_t offset, uint64_t size,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && size > 0 && !stream->has_stopped) {
        uint64_t got = 0;

        status =
            wal_blob_read(stream->blob, offset, stream->buffer,
                          size < PIECE_SIZE ? size : PIECE_SIZE, &got, error);
        if (status == WAL_OK && got == 0) {
            status = WAL_ECORRUPT;
        }
        if (status == WAL_OK) {
            emit_bytes(stream, stream->buffer, (size_t)got);
            WAL__ASSERT(got <= size);
            offset += got;
            size -= got;
        }
    }
    return status;
}

static enum wal_status emit_line(struct payload_stream *stream,
                                 struct wal__delta_reader *reader,
                                 uint64_t total, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    struct wal__delta_op op;
    uint64_t at = 0;
    bool fits = true;

    do {
        uint64_t before = at;

        if (!next_step(reader, total, &at, &op, &fits) || !fits) {
            return WAL_ECORRUPT;
        }
        if (op.opcode == WAL__DELTA_OP_INSERT) {
            emit_bytes(stream, op.text.data, op.text.size);
        } else if (op.opcode == WAL__DELTA_OP_COPY) {
            status = emit_original(stream, before, op.size, error);
        } else if (op.opcode == WAL__DELTA_OP_UUID_NEARBY) {
            status = emit_original(stream, (uint64_t)op.offset,
                                   WAL__UUID_TEXT_SIZE, error);
        }
    } while (status == WAL_OK && !stream->has_stopped &&
             op.opcode != WAL__DELTA_OP_END);
    if (status == WAL_OK && !stream->has_stopped &&
        (at != total || (uint8_t)stream->crc != reader->check)) {
        status = WAL_ECORRUPT;
    }
    return status;
}

enum wal_status
wal__copy_read_payload(struct wal__copy *copy, struct wal_store *store,
                       const struct wal_entry *entry,
                       bool (*sink)(void *ctx, const void *data, size_t size),
                       void *ctx, struct wal_error *error)
{
    struct payload_stream stream = {.sink = sink, .ctx = ctx};
    struct wal__delta_reader reader = copy->line;
    enum wal_status status =
        wal_blob_open(store, entry->payload_digest, &stream.blob, error);

    if (status == WAL_OK) {
        stream.buffer = wal__heap_alloc(copy_heap(copy), PIECE_SIZE);
        status = stream.buffer == NULL
                     ? WAL_ENOMEM
                     : emit_line(&stream, &reader, entry->payload_size, error);
    }
    wal__heap_free(copy_heap(copy), stream.buffer);
    wal_blob_close(stream.blob);
    return status == WAL_ENOTFOUND ? WAL_ECORRUPT : status;
}
