/*
 * opencode.c - the storage of OpenCode, a tree of JSON files.
 *
 * Invariant: sessions have documents and no lines, so no line is recognised.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/model/dialect.h"

const struct wal__dialect wal__dialect_opencode = {
    .name = "opencode",
    .summary = "storage/ trees of OpenCode: session, message, part",
    .recognise = wal__line_recognise_none,
    .read = wal__line_read_generic,
    .read_ops = &wal__opencode_read_ops,
    .write_ops = &wal__opencode_write_ops,
};
