/*
 * claim_list.h - the claims of a store's sessions as a list (SPEC.md 4.1). A
 * cursor is a copy: it is used by one thread at a time and does not follow
 * later changes.
 */
#ifndef AGENTWAL_ENGINE_READ_CLAIM_LIST_H
#define AGENTWAL_ENGINE_READ_CLAIM_LIST_H

#include "engine/store/session.h"

/* Opens a cursor over the claims at this moment, by session number; an empty
 * one with persistence off. Takes the state lock. */
enum wal_status wal__claim_cursor_open(struct wal__core *core,
                                       struct wal_claim_cursor **cursor,
                                       struct wal_error *error) WAL_MUST_USE;
/* The next claim, or WAL_END. Texts are valid until the close. */
enum wal_status wal__claim_cursor_next(struct wal_claim_cursor *cursor,
                                       struct wal_claim *claim) WAL_MUST_USE;
const struct wal__core *
wal__claim_cursor_core(const struct wal_claim_cursor *cursor);
void wal__claim_cursor_close(struct wal_claim_cursor *cursor);

#endif
