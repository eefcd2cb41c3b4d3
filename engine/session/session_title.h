/*
 * session_title.h - takes titles that a redacted entry gave (SPEC.md 5.7). Any
 * thread, without a lock.
 */
#ifndef AGENTWAL_ENGINE_SESSION_SESSION_TITLE_H
#define AGENTWAL_ENGINE_SESSION_SESSION_TITLE_H

#include "engine/store/session.h"

/* Whether a text of the JSON begins with the title, which may end in "..." or
 * an ellipsis where it was cut. */
bool wal__title_is_given(struct wal__span json, struct wal__span title);

/* Whether the entry at a position gives the title; not when it is lost or
 * erased. WAL_ENOMEM. */
enum wal_status wal__session_gives_title(struct wal__core *core,
                                         uint64_t position,
                                         struct wal__span title, bool *gives,
                                         struct wal_error *error) WAL_MUST_USE;

/* Empties the title of the session that owns the entry, and of each fork of it,
 * if a text of the entry gives it. An entry that is lost or erased gives
 * none. */
enum wal_status
wal__session_forget_titles(struct wal__core *core, uint32_t owner,
                           uint32_t stream, uint64_t sequence,
                           struct wal_error *error) WAL_MUST_USE;

#endif
