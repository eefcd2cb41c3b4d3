/*
 * head_list.h - reading the named heads of a session (SPEC.md 5.5). A cursor is
 * a copy of the list: it is used by one thread at a time and does not follow
 * later changes. The other functions name the lock that they need.
 */
#ifndef AGENTWAL_ENGINE_READ_HEAD_LIST_H
#define AGENTWAL_ENGINE_READ_HEAD_LIST_H

#include "engine/store/session.h"

/* Whether the name is `main`, the head that appends move; an empty name is
 * `main`. */
bool wal__head_is_main(struct wal__span name);

/* The sequence of the entry that a head points to, or 0. State lock for
 * reading. */
uint64_t wal__head_target(const struct wal__branch_slot *slot, uint32_t stream,
                          struct wal__span name);

/* Writes the entry's id, terminated by NUL. WAL_ENOTFOUND when there is no such
 * head, or it points to no entry. Takes the state lock. */
enum wal_status wal__head_get(struct wal_session *session, uint32_t stream,
                              struct wal__span name, char entry_id[256],
                              struct wal_error *error) WAL_MUST_USE;

/* Opens a cursor over the heads: `main` of each stream, then the others by
 * stream and name. Heads whose entry was lost to damage are skipped. Takes the
 * state lock; the list is fixed here. */
enum wal_status wal__head_cursor_open(struct wal_session *session,
                                      struct wal_head_cursor **heads,
                                      struct wal_error *error) WAL_MUST_USE;
/* The next head, or WAL_END. Texts are valid until the close. */
enum wal_status wal__head_cursor_next(struct wal_head_cursor *heads,
                                      struct wal_head *head) WAL_MUST_USE;
const struct wal__core *
wal__head_cursor_core(const struct wal_head_cursor *heads);
void wal__head_cursor_close(struct wal_head_cursor *heads);

#endif
