/*
 * model_timestamp.h - times as text and as milliseconds.
 *
 * Invariant: every function is total; a time that was written is read as the
 * same number.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_TIMESTAMP_H
#define AGENTWAL_FORMAT_MODEL_MODEL_TIMESTAMP_H

#include "format/json/json_text.h"

enum {
    WAL__MODEL_TIME_SIZE = 26 /* "2026-01-02T03:04:05.678Z", with quotes */
};

/*
 * Unix time in milliseconds of a JSON string in ISO 8601 (date and time, with
 * any fraction, Z or an offset) or of a JSON number of milliseconds. False
 * when it is none, or not of the years 0 to 9999.
 */
bool wal__model_time_read(struct wal__json_span time, int64_t *ms);

/* Writes it as a JSON string and answers it; years 0 to 9999. */
struct wal__json_span wal__model_time_write(int64_t ms,
                                            uint8_t text[WAL__MODEL_TIME_SIZE]);

#endif
