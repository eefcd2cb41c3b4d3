/*
 * workload_notes.h - what workload.c and workload_step.c share: taking note in
 * the ledger of what calls answered.
 */
#ifndef WAL_TESTS_SIM_WORKLOAD_NOTES_H
#define WAL_TESTS_SIM_WORKLOAD_NOTES_H

#include "tests/sim/workload.h"

/* Whether any call may answer this when something was made to fail. */
bool workload__is_documented(enum wal_status status);
/* Whether the store could be opened to read only. */
bool workload__is_read_only(struct wal_store *store);

/* What a call of the present step answered. */
void workload__note_status(struct workload *workload, enum wal_status status);
/* A failure was reported, or the process died: which queued batches it
 * concerns is not known. */
void workload__note_doubt(struct ledger *ledger, uint32_t actor);
/* Everything this actor was ever told yes about, is durable. */
void workload__note_synced(struct workload *workload, uint32_t actor);

#endif
