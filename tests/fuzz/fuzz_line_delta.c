/*
 * fuzz_line_delta.c - a line encoded as a delta to another one, and chunks of
 * any bytes.
 *
 * An input is a line, a byte 0xff, and the base line. Checks that the delta
 * decodes to the line, also where the base is read through a window. Then
 * decodes the input as the steps of a chunk: every range that they read is
 * inside the chunk.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/copy/line_delta.h"

enum {
    LINE_MAX_SIZE = 1 << 16
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool condition)
{
    if (!condition) {
        abort();
    }
}

struct window {
    struct wal__delta_source source;
    const uint8_t *line;
};

static bool fill(struct wal__delta_source *source, uint64_t offset)
{
    struct window *window = (void *)source;
    uint64_t left = source->total - offset;

    source->data = window->line + offset;
    source->at = offset;
    source->size = (size_t)(left < 16384 ? left : 16384);
    return true;
}

/* Reads the only line of the chunk. */
static size_t read_back(const struct wal__delta_chunk *chunk,
                        const uint8_t *original, size_t original_size,
                        uint8_t *line, uint8_t *found)
{
    struct wal__delta_reader reader = {
        .ops = {chunk->ops, chunk->ops_size},
        .text = {chunk->text, chunk->text_size},
        .uuids = {chunk->uuids[0], chunk->uuid_count * WAL__DELTA_UUID_SIZE},
        .checks = {chunk->checks, chunk->line_count},
    };
    struct wal__delta_op piece;
    enum wal__delta_line_kind kind;
    size_t size = 0;
    uint64_t at = 0;

    check(wal__delta_decode_line(&reader, &kind) &&
          kind == WAL__DELTA_LINE_NEXT);
    do {
        check(wal__delta_decode_op(&reader, &piece));
        if (piece.opcode == WAL__DELTA_OP_COPY) {
            check(piece.size <= original_size - at);
            memcpy(line + size, original + at, (size_t)piece.size);
            size += (size_t)piece.size;
        }
        if (piece.opcode == WAL__DELTA_OP_COPY ||
            piece.opcode == WAL__DELTA_OP_SKIP) {
            at += piece.size;
        } else if (piece.opcode == WAL__DELTA_OP_INSERT) {
            memcpy(line + size, piece.text.data, piece.text.size);
            size += piece.text.size;
        } else if (piece.opcode == WAL__DELTA_OP_UUID_NEARBY) {
            uint64_t from = at + (uint64_t)piece.offset;

            check(from + WAL__UUID_TEXT_SIZE <= original_size);
            memcpy(line + size, original + from, WAL__UUID_TEXT_SIZE);
            size += WAL__UUID_TEXT_SIZE;
        }
    } while (piece.opcode != WAL__DELTA_OP_END);
    check(at == original_size && reader.ops.size == 0 &&
          reader.text.size == 0 && reader.uuids.size == 0);
    *found = reader.check;
    return size;
}

static void check_line(const uint8_t *line, size_t size,
                       const uint8_t *original, size_t original_size,
                       bool is_seen_through)
{
    static struct wal__delta_chunk chunk;
    static uint8_t back[LINE_MAX_SIZE + 1];
    struct window window = {
        .source = {.data = original,
                   .size = original_size,
                   .total = original_size},
        .line = original,
    };
    enum wal__delta_status status;
    uint8_t found;

    if (is_seen_through) {
        window.source.fill = fill;
        (void)fill(&window.source, 0);
    }
    memset(&chunk, 0, sizeof(chunk));
    status =
        wal__delta_encode_line(&chunk, line, size, &window.source, NULL, 0);
    if (status == WAL__DELTA_OK) {
        check(read_back(&chunk, original, original_size, back, &found) ==
                  size &&
              memcmp(back, line, size) == 0 &&
              found == (uint8_t)wal__delta_crc(0, line, size));
    } else {
        check(chunk.ops_size == 0 && chunk.text_size == 0 &&
              chunk.uuid_count == 0 && chunk.line_count == 0);
    }
}

static void check_any(const uint8_t *data, size_t size)
{
    static const uint8_t checks[64];
    struct wal__delta_reader reader = {
        .ops = {data, size},
        .text = {data, size},
        .uuids = {data, size},
        .checks = {checks, sizeof(checks)},
    };
    struct wal__delta_header header;
    struct wal__delta_op piece;
    enum wal__delta_line_kind kind;

    (void)wal__delta_header_decode(data, size, &header);
    while (reader.checks.size > 0 && wal__delta_decode_line(&reader, &kind)) {
        if (kind == WAL__DELTA_LINE_ADDED) {
            continue;
        }
        check(reader.id_size <= WAL__DELTA_ID_MAX);
        do {
            if (!wal__delta_decode_op(&reader, &piece)) {
                return;
            }
            check(piece.text.size <= size || piece.text.data == reader.uuid);
        } while (piece.opcode != WAL__DELTA_OP_END);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *split =
        size > 0 && size <= LINE_MAX_SIZE ? memchr(data, 0xff, size) : NULL;

    if (split != NULL) {
        size_t line_size = (size_t)(split - data);
        size_t other_size = size - line_size - 1;

        (void)wal__line_matches(data, line_size, split + 1, other_size);
        check_line(data, line_size, split + 1, other_size, false);
        check_line(data, line_size, split + 1, other_size, true);
        check_line(data, line_size, data, line_size, false);
    }
    check_any(data, size);
    return 0;
}
