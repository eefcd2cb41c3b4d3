/*
 * json_value.c - the values of JSON strings and numbers (json_value.h; RFC 8259
 * sections 6 and 7).
 *
 * Validation, decoding, comparison and encoding all use the string functions of
 * json_text.h, so they agree on what a string is.
 *
 * Invariant: the size is computed before a byte is written. Threads: any.
 */
#include "format/json/json_value.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_character.h"

/* Decoded text: unescaped bytes of the string, or one decoded escape. */
struct piece {
    const uint8_t *data;
    size_t size;
    uint8_t encoded[4];
};

/* Finds the bytes between the quotes of `string`. */
static enum wal__json_status find_content(struct wal__json_span string,
                                          const uint8_t **begin,
                                          const uint8_t **end)
{
    if (string.size == 0) {
        return WAL__JSON_TRUNCATED;
    }
    if (string.data[0] != '"') {
        return wal__json_unexpected(string.data[0]);
    }
    if (string.size < 2 || string.data[string.size - 1] != '"') {
        return WAL__JSON_TRUNCATED;
    }
    *begin = string.data + 1;
    *end = string.data + string.size - 1;
    return WAL__JSON_OK;
}

/* Decodes the piece at `*at`, which is before `end`. */
static enum wal__json_status read_piece(const uint8_t **at, const uint8_t *end,
                                        struct piece *piece)
{
    const uint8_t *begin = *at;
    uint32_t code_point;

    enum wal__json_status status = wal__json_skip_unescaped(at, end);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (*at > begin) {
        piece->data = begin;
        piece->size = (size_t)(*at - begin);
        return WAL__JSON_OK;
    }
    if (**at != '\\') {
        return wal__json_unexpected_in_string(**at);
    }
    status = wal__json_read_escape(at, end, &code_point);
    if (status == WAL__JSON_TRUNCATED && end - begin == 6) {
        /* The high half of a surrogate pair at the end of the string. */
        code_point = WAL__JSON_REPLACEMENT;
        status = WAL__JSON_OK;
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    piece->data = piece->encoded;
    piece->size = wal__json_character_write(code_point, piece->encoded);
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_unescaped_size(struct wal__json_span string,
                                               size_t *size)
{
    const uint8_t *at;
    const uint8_t *end;
    struct piece piece;
    size_t total = 0;

    enum wal__json_status status = find_content(string, &at, &end);
    if (status != WAL__JSON_OK) {
        return status;
    }
    while (at < end) {
        status = read_piece(&at, end, &piece);
        if (status != WAL__JSON_OK) {
            return status;
        }
        total += piece.size;
    }
    *size = total;
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_unescape(struct wal__json_span string,
                                         uint8_t *buffer, size_t capacity,
                                         size_t *size, bool *has_nul)
{
    const uint8_t *at;
    const uint8_t *end;
    struct piece piece;
    size_t total;
    bool nul = false;
    size_t written = 0;

    /* The size first, so that a failure leaves the buffer untouched. */
    enum wal__json_status status = wal__json_unescaped_size(string, &total);
    if (status == WAL__JSON_OK && total > capacity) {
        status = WAL__JSON_NO_SPACE;
    }
    if (status == WAL__JSON_OK) {
        status = find_content(string, &at, &end);
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    while (at < end && read_piece(&at, end, &piece) == WAL__JSON_OK) {
        WAL__ASSERT(piece.size <= total - written);
        memcpy(buffer + written, piece.data, piece.size);
        written += piece.size;
        nul = nul || piece.data[0] == 0;
    }
    WAL__ASSERT(written == total);
    *size = total;
    if (has_nul != NULL) {
        *has_nul = nul;
    }
    return WAL__JSON_OK;
}

bool wal__json_string_equals(struct wal__json_span string, const void *text,
                             size_t size)
{
    const uint8_t *at;
    const uint8_t *end;
    const uint8_t *expected = text;
    struct piece piece;

    if (find_content(string, &at, &end) != WAL__JSON_OK) {
        return false;
    }
    while (at < end) {
        if (read_piece(&at, end, &piece) != WAL__JSON_OK || piece.size > size ||
            memcmp(piece.data, expected, piece.size) != 0) {
            return false;
        }
        expected += piece.size;
        size -= piece.size;
    }
    return size == 0;
}

bool wal__json_string_is(struct wal__json_span string, const char *text)
{
    return wal__json_string_equals(string, text, strlen(text));
}

/* Returns the letter of the short escape of `byte`; 'u' if it has none. */
static uint8_t escape_letter(uint8_t byte)
{
    switch (byte) {
    case '"':
    case '\\':
        return byte;
    case '\b':
        return 'b';
    case '\f':
        return 'f';
    case '\n':
        return 'n';
    case '\r':
        return 'r';
    case '\t':
        return 't';
    default:
        return 'u';
    }
}

enum wal__json_status wal__json_escaped_size(struct wal__json_span text,
                                             size_t *size)
{
    const uint8_t *at = text.data;
    size_t total = 2;

    if (text.size > (SIZE_MAX - 2) / 6) {
        return WAL__JSON_NO_SPACE;
    }
    const uint8_t *end = text.size == 0 ? at : at + text.size;
    while (at < end) {
        const uint8_t *begin = at;
        if (wal__json_skip_unescaped(&at, end) != WAL__JSON_OK) {
            return WAL__JSON_UTF8;
        }
        total += (size_t)(at - begin);
        if (at < end) {
            total += escape_letter(*at) == 'u' ? 6 : 2;
            at++;
        }
    }
    *size = total;
    return WAL__JSON_OK;
}

static uint8_t *write_escape(uint8_t *out, uint8_t byte)
{
    static const char digits[] = "0123456789abcdef";
    uint8_t letter = escape_letter(byte);

    *out++ = '\\';
    *out++ = letter;
    if (letter == 'u') {
        *out++ = '0';
        *out++ = '0';
        *out++ = (uint8_t)digits[byte >> 4];
        *out++ = (uint8_t)digits[byte & 0xf];
    }
    return out;
}

enum wal__json_status wal__json_escape(struct wal__json_span text,
                                       uint8_t *buffer, size_t capacity,
                                       size_t *size)
{
    const uint8_t *at = text.data;
    uint8_t *out = buffer;
    size_t total;

    enum wal__json_status status = wal__json_escaped_size(text, &total);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (total > capacity) {
        return WAL__JSON_NO_SPACE;
    }
    const uint8_t *end = text.size == 0 ? at : at + text.size;
    *out++ = '"';
    while (at < end) {
        const uint8_t *begin = at;
        if (wal__json_skip_unescaped(&at, end) != WAL__JSON_OK) {
            return WAL__JSON_UTF8;
        }
        memcpy(out, begin, (size_t)(at - begin));
        out += at - begin;
        if (at < end) {
            out = write_escape(out, *at);
            at++;
        }
    }
    *out++ = '"';
    WAL__ASSERT(out == buffer + total);
    *size = total;
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_integer(struct wal__json_span number,
                                        int64_t *value)
{
    bool negative = number.size > 0 && number.data[0] == '-';
    size_t first = negative ? 1 : 0;
    int64_t result = 0;
    bool overflow = false;

    if (number.size == first ||
        (number.data[first] == '0' && number.size > first + 1)) {
        return WAL__JSON_NOT_INTEGER;
    }
    for (size_t i = first; i < number.size; i++) {
        if (number.data[i] < '0' || number.data[i] > '9') {
            return WAL__JSON_NOT_INTEGER;
        }
        /* Add digits with their sign: -INT64_MIN is not representable. */
        int digit = number.data[i] - '0';
        overflow |= __builtin_mul_overflow(result, 10, &result);
        overflow |=
            __builtin_add_overflow(result, negative ? -digit : digit, &result);
    }
    if (overflow) {
        return WAL__JSON_RANGE;
    }
    *value = result;
    return WAL__JSON_OK;
}
