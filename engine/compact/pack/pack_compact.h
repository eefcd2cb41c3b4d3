/*
 * pack_compact.h - gives back the space of content in the pack that nothing
 * names (SPEC.md 3.9).
 */
#ifndef AGENTWAL_ENGINE_COMPACT_PACK_PACK_COMPACT_H
#define AGENTWAL_ENGINE_COMPACT_PACK_PACK_COMPACT_H

#include "engine/compact/compact.h"

/* Compacts the pack after the log, and adds to *result; a dry run only counts.
 * With the compaction lock, but for a dry run. WAL_ELOCKED: a thread or process
 * stores content all the time, and nothing was dropped. Else as wal__compact.
 */
enum wal_status wal__pack_compact(struct wal__core *core,
                                  const struct wal__compact_options *options,
                                  struct wal__throttle *throttle,
                                  struct wal__compact_result *result,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
