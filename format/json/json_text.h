/*
 * json_text.h - strings and numbers of JSON: their lexical level, the characters of a string, one
 * at a time, and values.
 *
 * Implements RFC 8259 sections 6 to 8, strictly: UTF-8 is well-formed (no overlong form, no
 * surrogate, nothing above U+10FFFF), and strings contain no raw control byte. The grammar allows
 * the escape of an unpaired surrogate, which is not a character: it is decoded as U+FFFD.
 * json_scan.h implements the grammar above this level.
 *
 * Strings have their quotes, like the spans of tokens. A span need not come from the scanner: one
 * that is not a JSON string or number is reported as an error.
 *
 * Invariant: every function is total. Whatever the bytes are, it reads only those before `end`,
 * allocates nothing, and leaves its outputs untouched on failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_JSON_JSON_TEXT_H
#define AGENTWAL_FORMAT_JSON_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

#define WAL__JSON_CHECKED __attribute__((warn_unused_result))

/* Borrowed bytes: valid as long as the text that contains them. */
struct wal__json_span {
    const uint8_t *data;
    size_t size;
};

/* Whether two spans have the same bytes. */
static inline bool wal__json_span_equal(struct wal__json_span a, struct wal__json_span b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Returns a constant phrase for any value of `status`. */
const char *wal__json_status_text(enum wal__json_status status);

/*
 * Returns the status of a byte that the grammar does not allow. NUL has its own status because torn
 * files contain blocks of zeros.
 */
static inline enum wal__json_status wal__json_unexpected(uint8_t byte)
{
    return byte == 0 ? WAL__JSON_NUL_BYTE : WAL__JSON_SYNTAX;
}

/*
 * The functions below advance `*at`, which is before or at `end`. On failure they leave it at the
 * first error: the unexpected byte, the first byte of the ill-formed UTF-8 sequence, or `end` if
 * TRUNCATED.
 */

/* Advances inside a string to its next quote, backslash or control byte. */
enum wal__json_status wal__json_skip_unescaped(const uint8_t **at,
                                               const uint8_t *end) WAL__JSON_CHECKED;

/* Advances from the opening quote of a string past its closing quote. */
enum wal__json_status wal__json_string_scan(const uint8_t **at, const uint8_t *end,
                                            bool *has_escapes) WAL__JSON_CHECKED;

/* Advances from the '-' or the first digit of a number past its last digit. */
enum wal__json_status wal__json_number_scan(const uint8_t **at,
                                            const uint8_t *end) WAL__JSON_CHECKED;

/* Decodes the character at `*at`, which is before `end`, escaped or not, and
 * advances past it. If `end` truncates the character, returns false and leaves
 * *code_point untouched. */
bool wal__json_character_read(const uint8_t **at, const uint8_t *end, uint32_t *code_point);

/* Encodes a character as UTF-8 and returns its size, 1 to 4. */
size_t wal__json_character_write(uint32_t code_point, uint8_t out[4]);

/* Whether two JSON strings, with their quotes, decode to the same text. */
bool wal__json_characters_equal(struct wal__json_span a, struct wal__json_span b);

/* Computes the size of the decoded string: at most string.size - 2. */
enum wal__json_status wal__json_unescaped_size(struct wal__json_span string,
                                               size_t *size) WAL__JSON_CHECKED;

/*
 * Decodes `string` to UTF-8 without a terminating NUL, and sets *size. Sets
 * *has_nul, unless it is NULL, if the text contains U+0000: such a text must
 * not be used as a C string. NO_SPACE if the text exceeds `capacity`.
 */
enum wal__json_status wal__json_unescape(struct wal__json_span string, uint8_t *buffer,
                                         size_t capacity, size_t *size,
                                         bool *has_nul) WAL__JSON_CHECKED;

/* Whether `string` decodes to exactly the `size` bytes of `text`. */
bool wal__json_string_equals(struct wal__json_span string, const void *text, size_t size);

/* Whether `string` decodes to the C string `text`. */
bool wal__json_string_is(struct wal__json_span string, const char *text);

/*
 * Computes the size of the JSON string, with quotes, of `text`: at most
 * 6 * text.size + 2. UTF8 if `text` is not well-formed.
 */
enum wal__json_status wal__json_escaped_size(struct wal__json_span text,
                                             size_t *size) WAL__JSON_CHECKED;

/*
 * Encodes `text` as that JSON string and sets *size. It escapes only what RFC 8259 requires, in the
 * shortest form, with lower-case hexadecimal digits: the bytes are those of JSON.stringify.
 */
enum wal__json_status wal__json_escape(struct wal__json_span text, uint8_t *buffer, size_t capacity,
                                       size_t *size) WAL__JSON_CHECKED;

/*
 * Decodes an integer exactly. NOT_INTEGER if `number` has any other form (1.0 and 1e3 too), RANGE
 * if the value does not fit in 64 bits.
 */
enum wal__json_status wal__json_integer(struct wal__json_span number,
                                        int64_t *value) WAL__JSON_CHECKED;

#endif
