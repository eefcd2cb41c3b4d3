/*
 * input_text.h - generation of ids and timestamps, and validation of text that callers pass in. Any
 * thread.
 */
#ifndef AGENTWAL_ENGINE_STORE_INPUT_TEXT_H
#define AGENTWAL_ENGINE_STORE_INPUT_TEXT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/base/heap.h"
#include "engine/base/io.h"
#include "format/bytes/bytes.h"

enum { WAL__UUID_TEXT = 36, WAL__TIME_TEXT = 24 };

/* Writes a UUIDv7 as text, without a terminator. */
void wal__text_uuid(const struct wal__env *env, char out[WAL__UUID_TEXT]);
/* Writes the current UTC time as 2026-01-31T23:59:59.123Z, without a terminator. */
void wal__text_now(const struct wal__env *env, char out[WAL__TIME_TEXT]);
/* Converts a slice of the public API to a span; false when it is larger than max, or has a size but
 * NULL data. */
bool wal__text_span(struct wal_slice slice, uint64_t max, struct wal__span *span);

static inline struct wal_slice wal__text_slice(struct wal__span span)
{
    struct wal_slice slice = {span.data, span.size};

    return slice;
}

/* Checks one text argument: at most max bytes of UTF-8. `what` names it in the error. */
enum wal_status wal__text_check(struct wal_slice slice, uint64_t max, const char *what,
                                struct wal__span *span, struct wal_error *error) WAL_MUST_USE;
/* Unescapes the text of an object's member to out; false when there is no such text, or it is
 * larger than `capacity`. */
bool wal__text_member(struct wal__span object, const char *name, uint8_t *out, size_t capacity,
                      struct wal__span *text);
/* Appends UTF-8 as a JSON string; WAL_EINVAL when it is not UTF-8. */
enum wal_status wal__text_quote(struct wal__buf *out, struct wal__span text) WAL_MUST_USE;
/* Checks that the slice is a JSON value, or a JSON object; the offset of WAL_EBADJSON is that of
 * the byte at fault. */
enum wal_status wal__text_check_json(struct wal_slice slice, uint64_t max, bool object,
                                     const char *what, struct wal__span *span,
                                     struct wal_error *error) WAL_MUST_USE;

enum { WAL__TIME_CACHE_WORDS = WAL__TIME_TEXT / 8 };

/* Empty when all bytes are zero. */
struct wal__time_cache {
    atomic_uint_fast64_t version; /* odd: being replaced */
    atomic_uint_fast64_t ms;      /* since 1970 */
    atomic_uint_fast64_t words[WAL__TIME_CACHE_WORDS];
};

/* False if the text is not of this millisecond; `out` is undefined then. */
bool wal__time_cache_get(struct wal__time_cache *cache, uint64_t ms, char out[WAL__TIME_TEXT]);
/* Does nothing while another thread replaces the text. */
void wal__time_cache_put(struct wal__time_cache *cache, uint64_t ms,
                         const char text[WAL__TIME_TEXT]);

#endif
