/*
 * block.h - the records of a BLOCK of a rewritten segment (SPEC.md 2.23).
 *
 * Threads: a struct cli_block belongs to one thread.
 */
#ifndef AGENTWAL_TOOLS_STORE_FILE_BLOCK_H
#define AGENTWAL_TOOLS_STORE_FILE_BLOCK_H

#include "format/segment/block.h"
#include "tools/store_file/file.h"

/* The records of one BLOCK, in memory. Zeroed it is empty. */
struct cli_block {
    uint64_t offset; /* of the BLOCK in its segment; 0: none */
    struct wal__span records;
    uint32_t count;
    uint8_t *bytes;
    size_t capacity;
};

/* Decodes and decompresses the payload of the BLOCK at `offset`, whose
 * checksums were verified. The records are copied. */
enum wal__fmt cli_block_unpack(struct cli_block *block,
                               const struct wal__frame *frame,
                               const uint8_t *payload, uint64_t offset);

/* Reads the BLOCK at `offset` of a segment file, unless *block has it.
 * WAL__FMT_SHORT also when it cannot be read. */
enum wal__fmt cli_block_read(struct cli_block *block, struct cli_file *file,
                             uint64_t salt, uint64_t offset);
void cli_block_deinit(struct cli_block *block);

#endif
