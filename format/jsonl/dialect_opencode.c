/*
 * dialect_opencode: the storage of OpenCode, a tree of JSON files.
 *
 * Invariant: its sessions have no lines; a line is never of it.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/jsonl/dialect.h"

const struct wal__dialect wal__dialect_opencode = {
    .name = "opencode",
    .summary = "storage/ trees of OpenCode: session, message, part",
    .recognise = wal__line_of_none,
    .read = wal__line_of_tree,
    .reading = &wal__reading_opencode,
    .writing = &wal__writing_opencode,
};
