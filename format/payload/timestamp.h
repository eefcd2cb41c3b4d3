/*
 * timestamp.h - converts times between JSON and Unix milliseconds; and when a
 * session was created and last active, from the times of its entries (SPEC.md
 * 5.4).
 *
 * Invariant: reading is total; a written time is read as the same number.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_PAYLOAD_TIMESTAMP_H
#define AGENTWAL_FORMAT_PAYLOAD_TIMESTAMP_H

#include <stdint.h>

#include "format/bytes/bytes.h"
#include "format/json/json_text.h"

enum {
    WAL__MODEL_TIME_SIZE = 26 /* "2026-01-02T03:04:05.678Z", with quotes */
};

/*
 * Reads a JSON string in ISO 8601 (date and time, any fraction, Z or an offset) or a JSON number of
 * milliseconds as Unix time in milliseconds. False if it is neither, or outside the years 0 to
 * 9999.
 */
bool wal__model_time_read(struct wal__json_span time, int64_t *ms);

/* Reads a text in ISO 8601, without quotes. False as above. */
bool wal__model_time_read_text(struct wal__json_span text, int64_t *ms);

/* Writes a time of the years 0 to 9999 as a JSON string; returns its span. */
struct wal__json_span wal__model_time_write(int64_t ms, uint8_t text[WAL__MODEL_TIME_SIZE]);

/* The time of something stored at stored_ms that claims time_ms: time_ms, unless it is before 1970
 * or more than a day after stored_ms; then stored_ms. All are Unix times in milliseconds. */
int64_t wal__session_time_believed(int64_t time_ms, int64_t stored_ms);

/* The time of an entry stored at stored_ms, whose timestamp is `text`: as above, and stored_ms if
 * the text is not a time in ISO 8601. */
int64_t wal__session_time_of_entry(struct wal__span text, int64_t stored_ms);

#endif
