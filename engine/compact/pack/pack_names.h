/*
 * pack_names.h - which content the log names (SPEC.md 3.9): payloads that are
 * blobs, and the lists of files in the engine's own documents. Each record that
 * segments have counts, dead or live. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_PACK_PACK_NAMES_H
#define AGENTWAL_ENGINE_COMPACT_PACK_PACK_NAMES_H

#include "engine/compact/pack/pack_live.h"
#include "engine/compact/throttle.h"
#include "engine/store/core.h"

/* Adds what the log names at present. WAL_EDAMAGED: a record is damaged or
 * lost, so that what it names is not known; error->file names its segment.
 * WAL_ENOMEM, WAL_EIO. */
enum wal_status wal__pack_names_read(struct wal__core *core,
                                     struct wal__throttle *throttle,
                                     struct wal__pack_live *live,
                                     struct wal_error *error) WAL_MUST_USE;

#endif
