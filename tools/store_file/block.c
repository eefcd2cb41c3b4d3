/*
 * block.c - see block.h.
 *
 * Invariant: block->records points into block->bytes.
 */
#include "tools/store_file/block.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"

enum wal__fmt cli_block_unpack(struct cli_block *block,
                               const struct wal__frame *frame,
                               const uint8_t *payload, uint64_t offset)
{
    struct wal__block decoded;
    enum wal__fmt fmt = wal__block_decode(frame, payload, &decoded);

    block->offset = 0;
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (block->capacity < decoded.raw_size) {
        block->bytes = cli_realloc(block->bytes, decoded.raw_size);
        block->capacity = decoded.raw_size;
    }
    if (decoded.is_compressed) {
        fmt = wal__block_decompress(&decoded, block->bytes);
    } else if (decoded.raw_size > 0) {
        memcpy(block->bytes, decoded.data.data, decoded.raw_size);
    }
    if (fmt == WAL__FMT_OK) {
        block->offset = offset;
        block->records = (struct wal__span){block->bytes, decoded.raw_size};
        block->count = decoded.count;
    }
    return fmt;
}

enum wal__fmt cli_block_read(struct cli_block *block, struct cli_file *file,
                             uint64_t salt, uint64_t offset)
{
    const uint8_t *at;
    struct wal__frame frame;
    enum wal__fmt fmt;

    if (block->offset == offset) {
        return WAL__FMT_OK;
    }
    at = cli_file_fetch(file, offset, WAL__FRAME_SIZE);
    fmt = at == NULL ? WAL__FMT_SHORT
                     : wal__frame_decode(at, file->size - offset, salt, offset,
                                         &frame);
    if (fmt != WAL__FMT_OK) {
        return fmt;
    }
    if (frame.type != WAL__FRAME_BLOCK) {
        return WAL__FMT_TYPE;
    }
    at = cli_file_fetch(file, offset, wal__frame_total_size(frame.stored_size));
    fmt = at == NULL ? WAL__FMT_SHORT
                     : wal__frame_check_data(&frame, at + WAL__FRAME_SIZE);
    return fmt == WAL__FMT_OK
               ? cli_block_unpack(block, &frame, at + WAL__FRAME_SIZE, offset)
               : fmt;
}

void cli_block_deinit(struct cli_block *block)
{
    free(block->bytes);
    *block = (struct cli_block){.offset = 0};
}
