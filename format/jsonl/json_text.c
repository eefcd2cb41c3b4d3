/*
 * json_text: the strings and numbers of JSON text (json_text.h; RFC 8259
 * sections 6 to 8).
 *
 * Invariant: every position stays in [begin, end]. Threads: any.
 */
#include "format/jsonl/json_text.h"

#include <string.h>

#if defined(__SSE2__) && !defined(WAL__JSON_PORTABLE)
#define USE_SSE2 1
#include <emmintrin.h>
#else
#define USE_SSE2 0
#endif

const char *wal__json_status_text(enum wal__json_status status)
{
    switch (status) {
#define WAL__JSON_STATUS_TEXT(name, text) \
    case WAL__JSON_##name:                \
        return text;
        WAL__JSON_STATUS_LIST(WAL__JSON_STATUS_TEXT)
#undef WAL__JSON_STATUS_TEXT
    }
    return "unknown status";
}

/* Whether `byte` is ASCII that stands for itself inside a string. */
static bool is_plain(uint8_t byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

#if USE_SSE2
/* Skips plain bytes by sixteen; stops early only at a byte that is not. */
static const uint8_t *skip_plain_blocks(const uint8_t *at, const uint8_t *end)
{
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(' ');

    while (end - at >= 16) {
        __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)at);
        /* Signed, so that bytes from 0x80 up count as below space. */
        __m128i stops = _mm_cmplt_epi8(bytes, space);
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(bytes, quote));
        stops = _mm_or_si128(stops, _mm_cmpeq_epi8(bytes, backslash));
        unsigned mask = (unsigned)_mm_movemask_epi8(stops);
        if (mask != 0) {
            return at + __builtin_ctz(mask);
        }
        at += 16;
    }
    return at;
}
#else
/* Not zero exactly when one of the eight bytes of `word` is zero. */
static uint64_t zero_bytes(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    return (word - ones) & ~word & (ones << 7);
}

/* Skips plain bytes by eight; stops early only at a byte that is not. */
static const uint8_t *skip_plain_blocks(const uint8_t *at, const uint8_t *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof(word));
        uint64_t stops = word & (ones << 7);
        stops |= (word - ones * 0x20) & ~word & (ones << 7);
        stops |= zero_bytes(word ^ (ones * '"'));
        stops |= zero_bytes(word ^ (ones * '\\'));
        if (stops != 0) {
            break;
        }
        at += 8;
    }
    return at;
}
#endif

static const uint8_t *skip_plain(const uint8_t *at, const uint8_t *end)
{
    at = skip_plain_blocks(at, end);
    while (at < end && is_plain(*at)) {
        at++;
    }
    return at;
}

/*
 * Moves `*at` over one UTF-8 sequence whose lead byte is not ASCII: the
 * Unicode standard's table of well-formed sequences. Only the second byte's
 * range depends on the lead byte.
 */
static enum wal__json_status skip_utf8(const uint8_t **at, const uint8_t *end)
{
    const uint8_t *begin = *at;
    uint8_t lead = begin[0];
    uint8_t low = 0x80;
    uint8_t high = 0xbf;
    ptrdiff_t size = 2;

    if (lead < 0xc2 || lead > 0xf4) {
        return WAL__JSON_UTF8;
    }
    if (lead >= 0xf0) {
        size = 4;
        low = lead == 0xf0 ? 0x90 : 0x80;
        high = lead == 0xf4 ? 0x8f : 0xbf;
    } else if (lead >= 0xe0) {
        size = 3;
        low = lead == 0xe0 ? 0xa0 : 0x80;
        high = lead == 0xed ? 0x9f : 0xbf;
    }
    for (ptrdiff_t i = 1; i < size; i++) {
        if (end - begin == i) {
            *at = end;
            return WAL__JSON_TRUNCATED;
        }
        if (begin[i] < low || begin[i] > high) {
            return WAL__JSON_UTF8;
        }
        low = 0x80;
        high = 0xbf;
    }
    *at = begin + size;
    return WAL__JSON_OK;
}

/* Moves `*at` over the sequences up to the next ASCII byte, or to `end`. */
static enum wal__json_status skip_utf8_run(const uint8_t **at,
                                           const uint8_t *end)
{
    enum wal__json_status status = WAL__JSON_OK;

    while (status == WAL__JSON_OK && *at < end && **at >= 0x80) {
        status = skip_utf8(at, end);
    }
    return status;
}

enum wal__json_status wal__json_skip_unescaped(const uint8_t **at,
                                               const uint8_t *end)
{
    for (;;) {
        *at = skip_plain(*at, end);
        if (*at == end || **at < 0x80) {
            return WAL__JSON_OK;
        }
        enum wal__json_status status = skip_utf8_run(at, end);
        if (status != WAL__JSON_OK) {
            return status;
        }
    }
}

static int hex_value(uint8_t byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    if (byte >= 'a' && byte <= 'f') {
        return byte - 'a' + 10;
    }
    if (byte >= 'A' && byte <= 'F') {
        return byte - 'A' + 10;
    }
    return -1;
}

static enum wal__json_status read_hex4(const uint8_t **at, const uint8_t *end,
                                       uint32_t *unit)
{
    uint32_t value = 0;

    for (int i = 0; i < 4; i++) {
        if (*at == end) {
            return WAL__JSON_TRUNCATED;
        }
        int digit = hex_value(**at);
        if (digit < 0) {
            return wal__json_unexpected(**at);
        }
        value = value << 4 | (uint32_t)digit;
        (*at)++;
    }
    *unit = value;
    return WAL__JSON_OK;
}

/* Moves `*at` over the escape of a low half, if it is one; *low is 0 if not. */
static enum wal__json_status read_low_half(const uint8_t **at,
                                           const uint8_t *end, uint32_t *low)
{
    static const uint8_t prefix[2] = {'\\', 'u'};
    const uint8_t *next = *at;
    enum wal__json_status status;

    *low = 0;
    for (int i = 0; i < 2; i++) {
        if (next == end) {
            *at = end;
            return WAL__JSON_TRUNCATED;
        }
        if (*next++ != prefix[i]) {
            return WAL__JSON_OK;
        }
    }
    status = read_hex4(&next, end, low);
    if (status != WAL__JSON_OK) {
        *at = next;
        return status;
    }
    if (*low >= 0xdc00 && *low <= 0xdfff) {
        *at = next;
    } else {
        *low = 0;
    }
    return WAL__JSON_OK;
}

/* Reads an escape of the form \uXXXX, or the two of a pair. A half alone is
 * what programs write that cut a text by units of UTF-16. */
static enum wal__json_status read_unicode_escape(const uint8_t **at,
                                                 const uint8_t *end,
                                                 uint32_t *code_point)
{
    uint32_t unit;
    uint32_t low = 0;

    *at += 2;
    enum wal__json_status status = read_hex4(at, end, &unit);
    if (status == WAL__JSON_OK && unit >= 0xd800 && unit < 0xdc00) {
        status = read_low_half(at, end, &low);
    }
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (low != 0) {
        *code_point = 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
    } else if (unit >= 0xd800 && unit <= 0xdfff) {
        *code_point = WAL__JSON_REPLACEMENT;
    } else {
        *code_point = unit;
    }
    return WAL__JSON_OK;
}

/* The byte that a backslash and `letter` stand for; 0 when none. */
static uint8_t escaped_byte(uint8_t letter)
{
    switch (letter) {
    case '"':
    case '\\':
    case '/':
        return letter;
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return 0;
    }
}

enum wal__json_status wal__json_read_escape(const uint8_t **at,
                                            const uint8_t *end,
                                            uint32_t *code_point)
{
    if (end - *at < 2) {
        *at = end;
        return WAL__JSON_TRUNCATED;
    }
    uint8_t letter = (*at)[1];
    if (letter == 'u') {
        return read_unicode_escape(at, end, code_point);
    }
    uint8_t byte = escaped_byte(letter);
    if (byte == 0) {
        (*at)++;
        return wal__json_unexpected(letter);
    }
    *at += 2;
    *code_point = byte;
    return WAL__JSON_OK;
}

enum wal__json_status
wal__json_string_scan(const uint8_t **at, const uint8_t *end, bool *has_escapes)
{
    bool escapes = false;

    (*at)++;
    for (;;) {
        uint32_t code_point;
        enum wal__json_status status = wal__json_skip_unescaped(at, end);
        if (status != WAL__JSON_OK) {
            return status;
        }
        if (*at == end) {
            return WAL__JSON_TRUNCATED;
        }
        if (**at == '"') {
            (*at)++;
            *has_escapes = escapes;
            return WAL__JSON_OK;
        }
        if (**at != '\\') {
            return wal__json_unexpected_in_string(**at);
        }
        status = wal__json_read_escape(at, end, &code_point);
        if (status != WAL__JSON_OK) {
            return status;
        }
        escapes = true;
    }
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* Moves `*at` over one digit or more. */
static enum wal__json_status skip_digits(const uint8_t **at, const uint8_t *end)
{
    if (*at == end) {
        return WAL__JSON_TRUNCATED;
    }
    if (!is_digit(**at)) {
        return wal__json_unexpected(**at);
    }
    while (*at < end && is_digit(**at)) {
        (*at)++;
    }
    return WAL__JSON_OK;
}

enum wal__json_status wal__json_number_scan(const uint8_t **at,
                                            const uint8_t *end)
{
    enum wal__json_status status = WAL__JSON_OK;

    if (**at == '-') {
        (*at)++;
    }
    if (*at < end && **at == '0') {
        (*at)++;
    } else {
        status = skip_digits(at, end);
    }
    if (status == WAL__JSON_OK && *at < end && **at == '.') {
        (*at)++;
        status = skip_digits(at, end);
    }
    if (status == WAL__JSON_OK && *at < end && (**at | 0x20) == 'e') {
        (*at)++;
        if (*at < end && (**at == '+' || **at == '-')) {
            (*at)++;
        }
        status = skip_digits(at, end);
    }
    return status;
}
