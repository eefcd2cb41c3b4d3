/*
 * payload_build.h - the payloads of entries that the library writes itself
 * (SPEC.md 5.6, 5.7). Any thread.
 */
#ifndef AGENTWAL_ENGINE_WRITE_PAYLOAD_BUILD_H
#define AGENTWAL_ENGINE_WRITE_PAYLOAD_BUILD_H

#include "engine/base/buf.h"
#include "format/bytes/fmt.h"

/* Appends the payload of a compaction_summary entry. *first_kept borrows from
 * the options. */
enum wal_status wal__payload_build_compaction(
    const struct wal_compact_options *options, struct wal__span *first_kept,
    struct wal__buf *payload, struct wal_error *error) WAL_MUST_USE;

/* Appends the payload of a redaction entry. */
enum wal_status
wal__payload_build_redaction(struct wal_slice target, struct wal_slice reason,
                             struct wal__buf *payload,
                             struct wal_error *error) WAL_MUST_USE;

#endif
