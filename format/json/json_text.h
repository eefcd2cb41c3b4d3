/*
 * json_text.h - the strings and numbers of JSON text, byte by byte.
 *
 * Implements RFC 8259 sections 6 to 8, strictly: UTF-8 is well-formed (no
 * overlong form, no surrogate, nothing above U+10FFFF), and no control byte
 * stands raw in a string. The escape of half a surrogate pair is what that
 * grammar allows and has no character of its own: it is read as U+FFFD. The
 * grammar above them is json_scan's.
 *
 * Invariant: every function is total. Whatever the bytes are, it reads only
 * what lies before `end`, and reads it once.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_TEXT_H
#define AGENTWAL_FORMAT_JSON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WAL__JSON_STATUS_LIST(X)                \
    X(OK, "no error")                           \
    X(SYNTAX, "unexpected byte")                \
    X(UTF8, "ill-formed UTF-8")                 \
    X(DEPTH, "nested too deeply")               \
    X(NUL_BYTE, "raw NUL byte")                 \
    X(CONTROL, "raw control byte in a string")  \
    X(TRUNCATED, "text ends inside a value")    \
    X(TRAILING, "bytes after the value")        \
    X(NOT_OBJECT, "value is not an object")     \
    X(NOT_FOUND, "no such key")                 \
    X(NOT_INTEGER, "not an integer")            \
    X(RANGE, "integer does not fit in 64 bits") \
    X(NO_SPACE, "buffer or table too small")

enum wal__json_status {
#define WAL__JSON_STATUS_NAME(name, text) WAL__JSON_##name,
    WAL__JSON_STATUS_LIST(WAL__JSON_STATUS_NAME)
#undef WAL__JSON_STATUS_NAME
};

enum {
    WAL__JSON_REPLACEMENT = 0xfffd /* for what is no character */
};

#define WAL__JSON_CHECKED __attribute__((warn_unused_result))

/* Borrowed bytes: valid as long as the text that they lie in. */
struct wal__json_span {
    const uint8_t *data;
    size_t size;
};

/* A constant English phrase for any value of `status`. */
const char *wal__json_status_text(enum wal__json_status status);

/*
 * The status of a byte that the grammar does not allow: NUL has its own, for
 * blocks of zeros are what a torn file leaves; so have controls in a string.
 */
static inline enum wal__json_status wal__json_unexpected(uint8_t byte)
{
    return byte == 0 ? WAL__JSON_NUL_BYTE : WAL__JSON_SYNTAX;
}

static inline enum wal__json_status wal__json_unexpected_in_string(uint8_t byte)
{
    if (byte > 0 && byte < 0x20) {
        return WAL__JSON_CONTROL;
    }
    return wal__json_unexpected(byte);
}

/*
 * The scanning functions move `*at`, which is before or at `end`. On failure
 * they leave it at the first error: the unexpected byte, the first byte of the
 * ill-formed UTF-8 sequence, or `end` when TRUNCATED.
 */

/* From anywhere in a string to its next quote, backslash or control byte. */
enum wal__json_status
wal__json_skip_unescaped(const uint8_t **at,
                         const uint8_t *end) WAL__JSON_CHECKED;

/* From a backslash over its escape, or over both of a surrogate pair; half of
 * one is WAL__JSON_REPLACEMENT. */
enum wal__json_status
wal__json_read_escape(const uint8_t **at, const uint8_t *end,
                      uint32_t *code_point) WAL__JSON_CHECKED;

/* From the opening quote of a string behind its closing quote. */
enum wal__json_status
wal__json_string_scan(const uint8_t **at, const uint8_t *end,
                      bool *has_escapes) WAL__JSON_CHECKED;

/* From the '-' or the first digit of a number behind its last digit. */
enum wal__json_status
wal__json_number_scan(const uint8_t **at, const uint8_t *end) WAL__JSON_CHECKED;

#endif
