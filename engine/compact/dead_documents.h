/*
 * dead_documents.h - which versions of the engine's documents (SPEC.md 5.13) no
 * session sees any more: of checkpoints that were deleted, and of rewinds that
 * ended. What they name is dead with them. One thread.
 */
#ifndef AGENTWAL_ENGINE_COMPACT_DEAD_DOCUMENTS_H
#define AGENTWAL_ENGINE_COMPACT_DEAD_DOCUMENTS_H

#include "engine/compact/compact_job.h"

/* Reads the keys of all documents, and appends the sequences of the dead ones,
 * ascending. The set of the compaction is complete. Memory while it runs: 32
 * bytes for each version of a document of the engine. WAL_ENOMEM. */
enum wal_status wal__dead_documents_find(const struct compaction *compaction,
                                         struct wal__buf *out) WAL_MUST_USE;

#endif
