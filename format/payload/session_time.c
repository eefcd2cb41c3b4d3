/*
 * session_time.c - the times of a session (session_time.h).
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/payload/session_time.h"

#include "format/payload/timestamp.h"

#define DAY_MS INT64_C(86400000)

int64_t wal__session_time_believed(int64_t time_ms, int64_t stored_ms)
{
    return time_ms < 0 || time_ms - DAY_MS > stored_ms ? stored_ms : time_ms;
}

int64_t wal__session_time_of_entry(struct wal__span text, int64_t stored_ms)
{
    const struct wal__json_span time = {text.data, text.size};
    int64_t time_ms = 0;

    return wal__model_time_read_text(time, &time_ms)
               ? wal__session_time_believed(time_ms, stored_ms)
               : stored_ms;
}
