/*
 * json_text.h - the lexical level of JSON: strings and numbers.
 *
 * Implements RFC 8259 sections 6 to 8, strictly: UTF-8 is well-formed (no
 * overlong form, no surrogate, nothing above U+10FFFF), and strings contain no
 * raw control byte. The grammar allows the escape of an unpaired surrogate,
 * which is not a character: it is decoded as U+FFFD. json_scan.h implements the
 * grammar above this level.
 *
 * Invariant: every function is total. Whatever the bytes are, it reads only
 * those before `end`, and reads them once.
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
    WAL__JSON_REPLACEMENT = 0xfffd /* replaces an unpaired surrogate */
};

#define WAL__JSON_CHECKED __attribute__((warn_unused_result))

/* Borrowed bytes: valid as long as the text that contains them. */
struct wal__json_span {
    const uint8_t *data;
    size_t size;
};

/* Returns a constant phrase for any value of `status`. */
const char *wal__json_status_text(enum wal__json_status status);

/*
 * Returns the status of a byte that the grammar does not allow. NUL has its own
 * status because torn files contain blocks of zeros.
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
 * The functions below advance `*at`, which is before or at `end`. On failure
 * they leave it at the first error: the unexpected byte, the first byte of the
 * ill-formed UTF-8 sequence, or `end` if TRUNCATED.
 */

/* Advances inside a string to its next quote, backslash or control byte. */
enum wal__json_status
wal__json_skip_unescaped(const uint8_t **at,
                         const uint8_t *end) WAL__JSON_CHECKED;

/* Decodes the escape, or the two escapes of a surrogate pair, at a backslash.
 * An unpaired surrogate is WAL__JSON_REPLACEMENT. */
enum wal__json_status
wal__json_read_escape(const uint8_t **at, const uint8_t *end,
                      uint32_t *code_point) WAL__JSON_CHECKED;

/* Advances from the opening quote of a string past its closing quote. */
enum wal__json_status
wal__json_string_scan(const uint8_t **at, const uint8_t *end,
                      bool *has_escapes) WAL__JSON_CHECKED;

/* Advances from the '-' or the first digit of a number past its last digit. */
enum wal__json_status
wal__json_number_scan(const uint8_t **at, const uint8_t *end) WAL__JSON_CHECKED;

#endif
