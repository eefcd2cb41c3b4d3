/*
 * opencode_raw.h - messages and sessions in the one-file form of OpenCode's
 * exports: a message is {info, parts}, a session {info, messages}.
 *
 * Threads: one thread at a time per writer.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_RAW_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_RAW_H

#include "convert/dialect/opencode/opencode_part_write.h"

/* Writes a message, {info, parts}, into its files. The documents keep their
 * bytes, except for ids that the storage cannot have. False: no memory, or the
 * output failed. */
bool wal__opencode_write_raw(struct wal__model_writer *writer,
                             struct wal__json_span message);

/* wal__dialect_write_ops.join */
bool wal__opencode_join(const struct wal__model_documents *documents,
                        struct wal__json_out *out);

#endif
