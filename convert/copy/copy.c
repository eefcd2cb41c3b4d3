/*
 * copy.c - decodes the chunks of a copy, and reads its lines (copy.h, SPEC.md
 * 5.17).
 *
 * Each line is made from the shared line that its chunk names, and verified by a checksum. When
 * that fails, one line is lost: the shared line is kept for the next, since the line that was meant
 * is probably missing.
 */
#include "convert/copy/copy.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

#include "agentwal/blob.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/bytes/assert.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/json/json_scan.h"

/* --- chunks --------------------------------------------------------------- */

enum {
    VERSION = 1,
    FLAG_LAST = 1 << 0,
    HEADER_SIZE = 32,
    OFFSET_FLAGS = 1,
    OFFSET_NUMBER = 4,
    OFFSET_LINES = 8,
    OFFSET_UUIDS = 12,
    OFFSET_STEPS = 16, /* uncompressed, then stored size */
    OFFSET_TEXT = 24,
    LINES_MAX = 4096,
    UUIDS_MAX = 4096
};

static void *zlib_alloc(void *heap, uInt count, uInt size)
{
    return wal__heap_resize(heap, NULL, count, size);
}

static void zlib_free(void *heap, void *at)
{
    wal__heap_free(heap, at);
}

/* Takes the bytes from the front of *from. */
static bool read_bytes(struct wal_slice *from, uint64_t size, struct wal_slice *bytes)
{
    if (size > from->size) {
        return false;
    }
    *bytes = (struct wal_slice){from->data, size};
    from->data = (const uint8_t *)from->data + size;
    from->size -= size;
    return true;
}

/* Inflates the next part of the payload. *sizes are those of the header. */
static enum wal_status inflate_part(const struct wal__heap *heap, struct wal_slice *payload,
                                    const uint8_t *sizes, uint8_t *raw, struct wal_slice *part)
{
    uint32_t raw_size = wal__get32(sizes);
    struct wal_slice stored;
    z_stream stream = {
        .next_out = raw,
        .avail_out = raw_size,
        .zalloc = zlib_alloc,
        .zfree = zlib_free,
        .opaque = (void *)(uintptr_t)heap,
    };
    int result;

    if (raw_size > WAL__COPY_PART_MAX || !read_bytes(payload, wal__get32(sizes + 4), &stored)) {
        return WAL_ECORRUPT;
    }
    *part = (struct wal_slice){raw, raw_size};
    if (raw_size == 0) {
        return stored.size == 0 ? WAL_OK : WAL_ECORRUPT;
    }
    stream.next_in = (uint8_t *)(uintptr_t)stored.data;
    stream.avail_in = (uInt)stored.size;
    if (inflateInit(&stream) != Z_OK) {
        return WAL_ENOMEM;
    }
    result = inflate(&stream, Z_FINISH);
    inflateEnd(&stream);
    if (result == Z_MEM_ERROR) {
        return WAL_ENOMEM;
    }
    return result == Z_STREAM_END && stream.avail_out == 0 ? WAL_OK : WAL_ECORRUPT;
}

/* Decodes a payload, which must outlive the chunk. WAL_ECORRUPT, WAL_ENOMEM. */
static enum wal_status copy_chunk_decode(struct wal__copy_chunk *chunk, struct wal_slice payload)
{
    struct wal__copy_reader *reader = &chunk->reader;
    const struct wal__heap *heap = chunk->heap;
    const uint8_t *header = payload.data;
    struct wal_slice skipped;
    enum wal_status status;
    uint32_t lines;
    uint32_t uuids;

    memset(reader, 0, sizeof(*reader));
    if (!read_bytes(&payload, HEADER_SIZE, &skipped) || header[0] != VERSION ||
        (header[OFFSET_FLAGS] & ~FLAG_LAST) != 0 || header[2] != 0 || header[3] != 0) {
        return WAL_ECORRUPT;
    }
    lines = wal__get32(header + OFFSET_LINES);
    uuids = wal__get32(header + OFFSET_UUIDS);
    if (lines > LINES_MAX || uuids > UUIDS_MAX) {
        return WAL_ECORRUPT;
    }
    if (chunk->memory == NULL) {
        chunk->memory = wal__heap_alloc(heap, 2 * (size_t)WAL__COPY_PART_MAX);
    }
    if (chunk->memory == NULL) {
        return WAL_ENOMEM;
    }
    status = inflate_part(heap, &payload, header + OFFSET_STEPS, chunk->memory, &reader->steps);
    if (status == WAL_OK) {
        status = inflate_part(heap, &payload, header + OFFSET_TEXT,
                              chunk->memory + WAL__COPY_PART_MAX, &reader->text);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (!read_bytes(&payload, (uint64_t)uuids * WAL__COPY_UUID_SIZE, &reader->uuids) ||
        payload.size != lines) {
        return WAL_ECORRUPT;
    }
    reader->checks = payload;
    chunk->number = wal__get32(header + OFFSET_NUMBER);
    chunk->is_last = (header[OFFSET_FLAGS] & FLAG_LAST) != 0;
    return WAL_OK;
}

static void copy_chunk_deinit(struct wal__copy_chunk *chunk)
{
    wal__heap_free(chunk->heap, chunk->memory);
    chunk->memory = NULL;
}

static bool read_byte(struct wal_slice *from, uint8_t *byte)
{
    struct wal_slice bytes;

    if (!read_bytes(from, 1, &bytes)) {
        return false;
    }
    *byte = *(const uint8_t *)bytes.data;
    return true;
}

static bool read_number(struct wal_slice *from, uint64_t *number)
{
    uint64_t value = 0;
    uint8_t byte;

    for (unsigned shift = 0; shift < 63; shift += 7) {
        if (!read_byte(from, &byte)) {
            return false;
        }
        value |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = value;
            return true;
        }
    }
    return false;
}

/* Moves the UUID at index `from` to the front; from == count: adds it. */
static void touch_recent(struct wal__copy_reader *reader, const uint8_t *uuid, size_t from)
{
    WAL__ASSERT(from <= reader->recent_count);
    if (from == reader->recent_count && from < WAL__COPY_RECENT_MAX) {
        reader->recent_count++;
    } else if (from == reader->recent_count) {
        from--;
    }
    memmove(reader->recent[1], reader->recent[0], from * WAL__COPY_UUID_SIZE);
    memcpy(reader->recent[0], uuid, WAL__COPY_UUID_SIZE);
}

static bool read_uuid(struct wal__copy_reader *reader, bool is_new, struct wal_slice *text)
{
    uint8_t uuid[WAL__COPY_UUID_SIZE];
    struct wal_slice bytes;
    uint64_t from = reader->recent_count;

    if (is_new) {
        if (!read_bytes(&reader->uuids, WAL__COPY_UUID_SIZE, &bytes)) {
            return false;
        }
        memcpy(uuid, bytes.data, WAL__COPY_UUID_SIZE);
    } else {
        if (!read_number(&reader->steps, &from) || from >= reader->recent_count) {
            return false;
        }
        memcpy(uuid, reader->recent[from], WAL__COPY_UUID_SIZE);
    }
    touch_recent(reader, uuid, (size_t)from);
    for (size_t i = 0, at = 0; i < WAL__COPY_UUID_SIZE; i++) {
        at += (size_t)sprintf(reader->uuid + at, "%s%02x",
                              i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
    }
    *text = (struct wal_slice){reader->uuid, WAL__COPY_UUID_TEXT_SIZE};
    return true;
}

bool wal__copy_read_step(struct wal__copy_reader *reader, struct wal__copy_step *step)
{
    uint64_t number = 0;
    uint8_t opcode;

    if (!read_byte(&reader->steps, &opcode)) {
        return false;
    }
    *step = (struct wal__copy_step){.opcode = (enum wal__copy_opcode)opcode};
    switch (opcode) {
    case WAL__COPY_END:
        return true;
    case WAL__COPY_BYTES:
    case WAL__COPY_SKIP:
        return read_number(&reader->steps, &step->size);
    case WAL__COPY_TEXT:
        return read_number(&reader->steps, &number) &&
               read_bytes(&reader->text, number, &step->text);
    case WAL__COPY_UUID_NEW:
    case WAL__COPY_UUID_RECENT:
        step->opcode = WAL__COPY_TEXT;
        return read_uuid(reader, opcode == WAL__COPY_UUID_NEW, &step->text);
    case WAL__COPY_UUID_NEARBY:
        if (!read_number(&reader->steps, &number)) {
            return false;
        }
        step->offset = (int64_t)(number >> 1) ^ -(int64_t)(number & 1);
        return true;
    default:
        return false;
    }
}

/* Decodes the id of an entry, which consists of text and UUIDs. */
static bool read_id(struct wal__copy_reader *reader)
{
    struct wal__copy_step step;

    reader->id_size = 0;
    for (;;) {
        if (!wal__copy_read_step(reader, &step)) {
            return false;
        }
        if (step.opcode == WAL__COPY_END) {
            return reader->id_size > 0;
        }
        if (step.opcode != WAL__COPY_TEXT || step.text.size > WAL__COPY_ID_MAX - reader->id_size) {
            return false;
        }
        if (step.text.size > 0) {
            memcpy(reader->id + reader->id_size, step.text.data, (size_t)step.text.size);
        }
        reader->id_size += (size_t)step.text.size;
    }
}

bool wal__copy_read_line(struct wal__copy_reader *reader, enum wal__copy_line_kind *kind)
{
    uint8_t byte;

    if (!read_byte(&reader->checks, &reader->check) || !read_byte(&reader->steps, &byte) ||
        byte > WAL__COPY_LINE_OWN) {
        return false;
    }
    *kind = (enum wal__copy_line_kind)byte;
    return byte != WAL__COPY_LINE_NAMED || read_id(reader);
}

bool wal__copy_chunk_is_valid(struct wal_slice payload)
{
    struct wal__copy_chunk chunk = {.heap = &wal__heap_libc};
    bool is_valid = copy_chunk_decode(&chunk, payload) == WAL_OK;

    while (is_valid && chunk.reader.checks.size > 0) {
        struct wal__copy_step step = {.opcode = WAL__COPY_TEXT};
        enum wal__copy_line_kind kind = WAL__COPY_LINE_OWN;

        is_valid = wal__copy_read_line(&chunk.reader, &kind);
        while (is_valid && kind != WAL__COPY_LINE_OWN && step.opcode != WAL__COPY_END) {
            is_valid = wal__copy_read_step(&chunk.reader, &step);
        }
    }
    copy_chunk_deinit(&chunk);
    return is_valid;
}

/* --- lines ---------------------------------------------------------------- */

#define PIECE_SIZE ((size_t)1 << 20)

/* Flags of a cursor over everything that has a line in the file. */
#define ALL_FLAGS \
    (WAL_ENTRY_CURSOR_DELTAS | WAL_ENTRY_CURSOR_REDACTED | WAL_ENTRY_CURSOR_OUT_OF_LINE)

/* Opens a cursor over all entries of the stream, in the order of the log. */
static enum wal_status open_cursor(struct wal_session *session, uint32_t stream, uint32_t flags,
                                   uint64_t skip, struct wal_entry_cursor **cursor,
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

static enum wal_status next_entry(struct wal_entry_cursor *cursor, struct wal_entry *entry,
                                  struct wal_error *error)
{
    *entry = (struct wal_entry){.struct_size = sizeof(*entry)};
    return wal_entry_cursor_next(cursor, entry, error);
}

static bool is_chunk(const struct wal_entry *entry)
{
    return (entry->flags & WAL_ENTRY_LINE) != 0 &&
           wal__slice_equal(entry->type, wal__slice_from_text(WAL__COPY_TYPE));
}

/* Reads the next chunk; WAL_END after the last. */
static enum wal_status next_chunk(struct wal__copy *copy, struct wal_error *error)
{
    struct wal_entry entry;
    uint32_t expected;
    enum wal_status status;

    do {
        status = next_entry(copy->chunks, &entry, error);
    } while (status == WAL_OK && !is_chunk(&entry));
    if (status != WAL_OK) {
        copy->chunk_count += status != WAL_END ? 1 : 0;
        return status;
    }
    if (copy->first_sequence == 0) {
        copy->first_sequence = entry.sequence;
    }
    expected = copy->chunk_count++;
    memset(&copy->chunk.reader, 0, sizeof(copy->chunk.reader));
    if ((entry.flags & (WAL_ENTRY_REDACTED | WAL_ENTRY_OUT_OF_LINE)) != 0) {
        return WAL_ECORRUPT;
    }
    status = copy_chunk_decode(&copy->chunk, entry.payload);
    if (status == WAL_OK) {
        copy->is_complete |= copy->chunk.is_last;
        copy->chunk_count = copy->chunk.number + 1;
        /* A gap in the numbers: the chunks between are lost. */
        status = copy->chunk.number == expected ? WAL_OK : WAL_ECORRUPT;
    }
    return status;
}

/* Opens the cursor over own entries after the shared ones. Damage may hide some of these: then it
 * begins with them. */
static enum wal_status open_own(struct wal__copy *copy, struct wal_session *session, uint32_t flags,
                                struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_entry last;
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK) {
        return status;
    }
    if (info.inherited > 0) {
        status = open_cursor(session, 0, flags, info.inherited - 1, &copy->own, error);
        if (status != WAL_OK || (next_entry(copy->own, &last, NULL) == WAL_OK &&
                                 last.sequence < copy->first_sequence)) {
            return status;
        }
        wal_entry_cursor_close(copy->own);
        copy->own = NULL;
    }
    return open_cursor(session, 0, flags, 0, &copy->own, error);
}

enum wal_status wal__copy_open(struct wal__copy *copy, struct wal_session *session,
                               const struct wal__heap *heap, uint32_t flags, bool *is_copy,
                               struct wal_error *error)
{
    uint32_t all = ALL_FLAGS | (flags & WAL_ENTRY_CURSOR_DURABLE);
    enum wal_status status;

    heap = heap != NULL ? heap : &wal__heap_libc;
    *copy = (struct wal__copy){.heap = heap, .chunk.heap = heap};
    *is_copy = false;
    status = open_cursor(session, WAL__COPY_STREAM, all, 0, &copy->chunks, error);
    if (status == WAL_OK && wal_entry_cursor_remaining(copy->chunks) > 0) {
        status = next_chunk(copy, error);
        *is_copy = status != WAL_END;
        if (status == WAL_END || status == WAL_ECORRUPT || status == WAL_EIO) {
            status = WAL_OK; /* a copy whose chunk is lost */
        }
    }
    if (status == WAL_OK && *is_copy) {
        status = open_cursor(session, 0, all, 0, &copy->branch, error);
    }
    if (status == WAL_OK && *is_copy) {
        status = open_cursor(session, 0, all, 0, &copy->named, error);
    }
    if (status == WAL_OK && *is_copy) {
        status = open_own(copy, session, flags, error);
    }
    if (status != WAL_OK || !*is_copy) {
        *is_copy = false;
        wal__copy_close(copy);
    }
    return status;
}

void wal__copy_close(struct wal__copy *copy)
{
    if (copy->heap == NULL) {
        return;
    }
    wal_entry_cursor_close(copy->chunks);
    wal_entry_cursor_close(copy->branch);
    wal_entry_cursor_close(copy->named);
    wal_entry_cursor_close(copy->own);
    copy_chunk_deinit(&copy->chunk);
    wal__heap_free(copy->heap, copy->text);
    *copy = (struct wal__copy){.heap = NULL};
}

/* Makes the next readable shared line the base. */
static enum wal_status next_shared_line(struct wal__copy *copy, struct wal_error *error)
{
    enum wal_status status;

    while (!copy->has_base) {
        status = next_entry(copy->branch, &copy->base, error);
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

/* Finds the line that the chunk names, and advances the branch past it. */
static enum wal_status find_named(struct wal__copy *copy, struct wal_entry *found,
                                  struct wal_error *error)
{
    const struct wal__copy_reader *reader = &copy->chunk.reader;
    struct wal_slice id = {reader->id, reader->id_size};
    enum wal_status status = wal_entry_cursor_get(copy->named, id, found, error);

    if (status != WAL_OK) {
        return status;
    }
    if ((found->flags & WAL_ENTRY_LINE) == 0 || found->sequence >= copy->first_sequence) {
        return WAL_ENOTFOUND;
    }
    do {
        status = next_shared_line(copy, error);
        if (status == WAL_OK && copy->base.sequence > found->sequence) {
            break;
        }
        copy->has_base = false;
    } while (status == WAL_OK);
    return status == WAL_END ? WAL_OK : status;
}

/* --- making a line ------------------------------------------------------- */

/* A line of the original, and what takes the line that is made from it. */
struct making {
    const uint8_t *bytes;  /* of the original, or NULL: */
    struct wal_blob *blob; /* has them; NULL too: the steps are only decoded */
    uint8_t *buffer;       /* of PIECE_SIZE, for the blob */
    uint64_t total;        /* bytes of the original */
    bool (*sink)(void *ctx, const void *data, size_t size);
    void *ctx;
    uint32_t crc;
    bool has_stopped;
};

static void emit(struct making *making, const void *data, uint64_t size)
{
    making->crc = wal__crc32(making->crc, data, (size_t)size);
    making->has_stopped |= !making->sink(making->ctx, data, (size_t)size);
}

static enum wal_status emit_original(struct making *making, uint64_t offset, uint64_t size,
                                     struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    if (making->bytes != NULL) {
        emit(making, making->bytes + offset, size);
        size = 0;
    }
    while (making->blob != NULL && status == WAL_OK && size > 0 && !making->has_stopped) {
        uint64_t got = 0;

        status = wal_blob_read(making->blob, offset, making->buffer,
                               size < PIECE_SIZE ? size : PIECE_SIZE, &got, error);
        if (status == WAL_OK && got == 0) {
            status = WAL_ECORRUPT;
        }
        if (status == WAL_OK) {
            WAL__ASSERT(got <= size);
            emit(making, making->buffer, got);
            offset += got;
            size -= got;
        }
    }
    return status;
}

/* Makes a line by the steps at the reader, which is after them then unless the chunk is invalid.
 * *fits: the steps use the original, and the checksum is right. */
static enum wal_status make_line(struct wal__copy_reader *reader, struct making *making, bool *fits,
                                 struct wal_error *error)
{
    bool has_source = making->bytes != NULL || making->blob != NULL;
    enum wal_status status = WAL_OK;
    struct wal__copy_step step = {.opcode = WAL__COPY_TEXT};
    uint64_t at = 0;

    *fits = true;
    while (step.opcode != WAL__COPY_END) {
        uint64_t from = at;
        uint64_t size = 0;

        if (!wal__copy_read_step(reader, &step)) {
            return WAL_ECORRUPT;
        }
        if (step.opcode == WAL__COPY_BYTES || step.opcode == WAL__COPY_SKIP) {
            *fits = *fits && step.size <= making->total - at;
            at += *fits ? step.size : 0;
            size = step.opcode == WAL__COPY_BYTES ? step.size : 0;
        } else if (step.opcode == WAL__COPY_UUID_NEARBY) {
            size = WAL__COPY_UUID_TEXT_SIZE;
            from = at + (uint64_t)step.offset;
            *fits = *fits && making->total >= size && from <= making->total - size;
        }
        if (!*fits || !has_source || status != WAL_OK || making->has_stopped) {
            continue;
        }
        if (step.text.size > 0) {
            emit(making, step.text.data, step.text.size);
        }
        status = emit_original(making, from, size, error);
    }
    *fits = *fits && at == making->total &&
            (!has_source || making->has_stopped || (uint8_t)making->crc == reader->check);
    return status;
}

static bool append_text(void *ctx, const void *data, size_t size)
{
    struct wal__copy *copy = ctx;

    if (size > copy->capacity - copy->size) {
        size_t capacity = 2 * (copy->size + size) + 65536;
        uint8_t *text = wal__heap_resize(copy->heap, copy->text, capacity, 1);

        if (text == NULL) {
            return false;
        }
        copy->text = text;
        copy->capacity = capacity;
    }
    if (size > 0) {
        memcpy(copy->text + copy->size, data, size);
    }
    copy->size += size;
    return true;
}

/* The meta of the copied line: only the "odd" member of the original's. */
static struct wal_slice copied_meta(const struct wal_entry *entry)
{
    static const char odd[] = "{\"odd\":true}";
    struct wal__json_token value;

    return entry->meta.size > 0 && wal__json_find(entry->meta.data, (size_t)entry->meta.size, "odd",
                                                  &value) == WAL__JSON_OK
               ? (struct wal_slice){odd, sizeof(odd) - 1}
               : (struct wal_slice){NULL, 0};
}

/* Turns the original's entry into the copy's. The reader is after the steps of the line, also on
 * failure. WAL_ENOTFOUND: it was made from another line. */
static enum wal_status make_entry(struct wal__copy *copy, struct wal_entry *entry,
                                  struct wal_error *error)
{
    bool is_redacted = (entry->flags & WAL_ENTRY_REDACTED) != 0;
    bool is_long = (entry->flags & WAL_ENTRY_OUT_OF_LINE) != 0;
    struct making making = {
        .bytes =
            is_redacted || is_long ? NULL : (entry->payload.size > 0 ? entry->payload.data : ""),
        .total = is_long ? entry->payload_size : entry->payload.size,
        .sink = append_text,
        .ctx = copy,
    };
    bool fits;
    enum wal_status status;

    copy->line = copy->chunk.reader;
    copy->size = 0;
    status = make_line(&copy->chunk.reader, &making, &fits, error);
    if (status != WAL_OK || is_redacted) {
        return status;
    }
    if (making.has_stopped) {
        return WAL_ENOMEM;
    }
    if (!fits) {
        return WAL_ENOTFOUND;
    }
    entry->meta = copied_meta(entry);
    if (!is_long) {
        entry->payload = (struct wal_slice){copy->text, copy->size};
        entry->payload_size = copy->size;
    }
    return WAL_OK;
}

/* Returns a line that is made from a shared one. WAL_ENOTFOUND: that is lost. */
static enum wal_status next_made(struct wal__copy *copy, enum wal__copy_line_kind kind,
                                 struct wal_entry *entry, struct wal_error *error)
{
    struct wal_entry base = {.struct_size = sizeof(base)};
    enum wal_status status;

    if (kind == WAL__COPY_LINE_NAMED) {
        status = find_named(copy, &base, error);
    } else {
        status = next_shared_line(copy, error);
        base = copy->base;
    }
    if (status == WAL_ENOTFOUND || status == WAL_END || status == WAL_ECORRUPT ||
        status == WAL_EIO) {
        struct making nothing = {.bytes = NULL};
        bool fits;

        status = make_line(&copy->chunk.reader, &nothing, &fits, error);
        return status == WAL_OK ? WAL_ENOTFOUND : status;
    }
    if (status == WAL_OK) {
        status = make_entry(copy, &base, error);
    }
    if (status == WAL_OK) {
        *entry = base;
        copy->is_shared = true;
        copy->has_base = copy->has_base && kind == WAL__COPY_LINE_NAMED;
    }
    return status;
}

/* --- reading ------------------------------------------------------------- */

/* Returns the next line that a chunk describes, unless it is an own one: WAL_OK and
 * copy->is_own_due. */
static enum wal_status next_described(struct wal__copy *copy, struct wal_entry *entry,
                                      struct wal_error *error)
{
    struct wal__copy_reader *reader = &copy->chunk.reader;
    enum wal__copy_line_kind kind;
    enum wal_status status = WAL_OK;

    while (status == WAL_OK && reader->checks.size == 0) {
        status = next_chunk(copy, error);
        copy->has_ended |= status == WAL_END;
    }
    if (status == WAL_OK) {
        status = WAL_ECORRUPT;
        if (wal__copy_read_line(reader, &kind)) {
            copy->is_own_due = kind == WAL__COPY_LINE_OWN;
            status = copy->is_own_due ? WAL_OK : next_made(copy, kind, entry, error);
        }
        if (status == WAL_ECORRUPT) {
            reader->checks.size = 0; /* the rest of the chunk is unreadable */
        }
    }
    return status == WAL_ECORRUPT || status == WAL_ENOTFOUND
               ? wal__fail(error, WAL_ECORRUPT,
                           "cannot read a line of the copy, or the shared line "
                           "that it refers to")
               : status;
}

enum wal_status wal__copy_next(struct wal__copy *copy, struct wal_entry *entry,
                               struct wal_error *error)
{
    bool was_due;
    enum wal_status status;

    copy->is_shared = false;
    if (!copy->is_own_due && !copy->has_ended) {
        status = next_described(copy, entry, error);
        if (!copy->is_own_due && status != WAL_END) {
            return status;
        }
    }
    was_due = copy->is_own_due;
    do {
        status = next_entry(copy->own, entry, error);
    } while (status == WAL_OK && entry->sequence < copy->first_sequence);
    copy->is_own_due = was_due && status == WAL_OK && (entry->flags & WAL_ENTRY_LINE) == 0;
    /* A missing own line is lost alone. */
    return was_due && status == WAL_END ? WAL_ECORRUPT : status;
}

enum wal_status wal__copy_read_payload(struct wal__copy *copy, struct wal_store *store,
                                       const struct wal_entry *entry,
                                       bool (*sink)(void *ctx, const void *data, size_t size),
                                       void *ctx, struct wal_error *error)
{
    struct making making = {.sink = sink, .ctx = ctx, .total = entry->payload_size};
    struct wal__copy_reader reader = copy->line;
    bool fits = true;
    enum wal_status status = wal_blob_open(store, entry->payload_digest, &making.blob, error);

    if (status == WAL_OK) {
        making.buffer = wal__heap_alloc(copy->heap, PIECE_SIZE);
        status = making.buffer == NULL ? WAL_ENOMEM : make_line(&reader, &making, &fits, error);
    }
    wal__heap_free(copy->heap, making.buffer);
    wal_blob_close(making.blob);
    return status == WAL_ENOTFOUND || (status == WAL_OK && !fits) ? WAL_ECORRUPT : status;
}
