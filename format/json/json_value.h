/*
 * json_value.h - what JSON strings and numbers stand for.
 *
 * Implements RFC 8259 sections 6 and 7 in both directions: strings to UTF-8
 * and back, and exact integers.
 *
 * Strings are taken with their quotes, as tokens give them. Spans need not
 * come from the scanner: one that is no JSON string or number gets the error
 * that is wrong with it.
 *
 * Invariant: every function is total over any bytes, ends after at most two
 * passes over them, allocates nothing, and leaves its outputs untouched on
 * failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_VALUE_H
#define AGENTWAL_FORMAT_JSON_JSON_VALUE_H

#include "format/json/json_text.h"

/* Bytes of UTF-8 that `string` stands for: at most string.size - 2. */
enum wal__json_status wal__json_unescaped_size(struct wal__json_span string,
                                               size_t *size) WAL__JSON_CHECKED;

/*
 * Writes the UTF-8 that `string` stands for, without a closing NUL, and its
 * size. `has_nul` (may be NULL) tells that \u0000 was in it: such a text must
 * not be used as a C string. NO_SPACE when it exceeds `capacity`.
 */
enum wal__json_status wal__json_unescape(struct wal__json_span string,
                                         uint8_t *buffer, size_t capacity,
                                         size_t *size,
                                         bool *has_nul) WAL__JSON_CHECKED;

/* Whether `string` stands for exactly the `size` bytes of `text`. */
bool wal__json_string_equals(struct wal__json_span string, const void *text,
                             size_t size);

/* Whether `string` stands for the C string `text`. */
bool wal__json_string_is(struct wal__json_span string, const char *text);

/*
 * Size of the JSON string, with quotes, for `text`: at most 6 * text.size + 2.
 * UTF8 when `text` is not well-formed.
 */
enum wal__json_status wal__json_escaped_size(struct wal__json_span text,
                                             size_t *size) WAL__JSON_CHECKED;

/*
 * Writes that JSON string and its size. It escapes what RFC 8259 demands and
 * nothing else, in the shortest form, hexadecimal digits in lower case: the
 * bytes are those that JSON.stringify writes.
 */
enum wal__json_status wal__json_escape(struct wal__json_span text,
                                       uint8_t *buffer, size_t capacity,
                                       size_t *size) WAL__JSON_CHECKED;

/*
 * The exact value of `number`. NOT_INTEGER when it is anything but JSON's
 * integer form (1.0 and 1e3 too), RANGE when it does not fit.
 */
enum wal__json_status wal__json_integer(struct wal__json_span number,
                                        int64_t *value) WAL__JSON_CHECKED;

#endif
