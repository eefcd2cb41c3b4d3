/*
 * session_time.h - when a session was created and last active, from the times
 * of its entries (SPEC.md 5.4).
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_PAYLOAD_SESSION_TIME_H
#define AGENTWAL_FORMAT_PAYLOAD_SESSION_TIME_H

#include <stdint.h>

#include "format/bytes/fmt.h"

/* The time of something stored at stored_ms that claims time_ms: time_ms,
 * unless it is before 1970 or more than a day after stored_ms; then stored_ms.
 * All are Unix times in milliseconds. */
int64_t wal__session_time_believed(int64_t time_ms, int64_t stored_ms);

/* The time of an entry stored at stored_ms, whose timestamp is `text`: as
 * above, and stored_ms if the text is not a time in ISO 8601. */
int64_t wal__session_time_of_entry(struct wal__span text, int64_t stored_ms);

#endif
