/*
 * queued.h - texts that a person put into the queue of a client, and that a later entry of the
 * session repeats (format/payload/message_text.h): those entries are shown, counted and found
 * instead.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_ENGINE_BASE_QUEUED_H
#define AGENTWAL_ENGINE_BASE_QUEUED_H

#include <stdbool.h>

#include "agentwal.h"

/* Whether the entry, which has its payload, is such a text. `session` has it, and what is after
 * it. */
bool wal__queued_is_repeated(struct wal_session *session, const struct wal_entry *entry);

#endif
