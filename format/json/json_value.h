/*
 * json_value.h - the values of JSON strings and numbers.
 *
 * Implements RFC 8259 sections 6 and 7: decodes strings to UTF-8, encodes UTF-8
 * as strings, and decodes exact integers.
 *
 * Strings have their quotes, like the spans of tokens. A span need not come
 * from the scanner: one that is not a JSON string or number is reported as an
 * error.
 *
 * Invariant: every function is total over any bytes, makes at most two passes
 * over them, allocates nothing, and leaves its outputs untouched on failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_VALUE_H
#define AGENTWAL_FORMAT_JSON_JSON_VALUE_H

#include "format/json/json_text.h"

/* Computes the size of the decoded string: at most string.size - 2. */
enum wal__json_status wal__json_unescaped_size(struct wal__json_span string,
                                               size_t *size) WAL__JSON_CHECKED;

/*
 * Decodes `string` to UTF-8 without a terminating NUL, and sets *size. Sets
 * *has_nul, unless it is NULL, if the text contains U+0000: such a text must
 * not be used as a C string. NO_SPACE if the text exceeds `capacity`.
 */
enum wal__json_status wal__json_unescape(struct wal__json_span string,
                                         uint8_t *buffer, size_t capacity,
                                         size_t *size,
                                         bool *has_nul) WAL__JSON_CHECKED;

/* Whether `string` decodes to exactly the `size` bytes of `text`. */
bool wal__json_string_equals(struct wal__json_span string, const void *text,
                             size_t size);

/* Whether `string` decodes to the C string `text`. */
bool wal__json_string_is(struct wal__json_span string, const char *text);

/*
 * Computes the size of the JSON string, with quotes, of `text`: at most
 * 6 * text.size + 2. UTF8 if `text` is not well-formed.
 */
enum wal__json_status wal__json_escaped_size(struct wal__json_span text,
                                             size_t *size) WAL__JSON_CHECKED;

/*
 * Encodes `text` as that JSON string and sets *size. It escapes only what RFC
 * 8259 requires, in the shortest form, with lower-case hexadecimal digits: the
 * bytes are those of JSON.stringify.
 */
enum wal__json_status wal__json_escape(struct wal__json_span text,
                                       uint8_t *buffer, size_t capacity,
                                       size_t *size) WAL__JSON_CHECKED;

/*
 * Decodes an integer exactly. NOT_INTEGER if `number` has any other form (1.0
 * and 1e3 too), RANGE if the value does not fit in 64 bits.
 */
enum wal__json_status wal__json_integer(struct wal__json_span number,
                                        int64_t *value) WAL__JSON_CHECKED;

#endif
