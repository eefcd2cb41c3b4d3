/*
 * script.c - splits text by script (script.h).
 */
#include "search/text/script.h"

struct range {
    uint32_t first;
    uint32_t last;
};

/* Ascending. */
static const struct range unspaced[] = {
    {0x0e01, 0x0eff},                     /* Thai, Lao */
    {0x1000, 0x109f},                     /* Burmese */
    {0x1100, 0x11ff},                     /* Hangul */
    {0x1780, 0x17ff},                     /* Khmer */
    {0x2600, 0x27bf},   {0x2b00, 0x2bff}, /* symbols */
    {0x2e80, 0x2fdf},                     /* radicals of Han */
    {0x3005, 0x3007},                     /* marks of Han */
    {0x3031, 0x3035},   {0x3041, 0x318f}, /* kana, Bopomofo, Hangul */
    {0x31a0, 0x31ff},   {0x3400, 0x4dbf}, /* Han */
    {0x4e00, 0x9fff},   {0xac00, 0xd7ff}, /* Hangul */
    {0xf900, 0xfaff},                     /* Han */
    {0xff66, 0xffdc},                     /* forms of half a width */
    {0x1b000, 0x1b16f},                   /* kana */
    {0x1f000, 0x1faff},                   /* symbols, emoji */
    {0x20000, 0x3ffff},                   /* Han */
};

enum {
    UNSPACED_MIN = 0x0e01
};

bool wal__is_unspaced(uint32_t code_point)
{
    size_t low = 0;
    size_t high = sizeof(unspaced) / sizeof(unspaced[0]);

    if (code_point < UNSPACED_MIN) {
        return false;
    }
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (unspaced[middle].last < code_point) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < sizeof(unspaced) / sizeof(unspaced[0]) &&
           unspaced[low].first <= code_point;
}

/* Bytes of a character that begins with this one; 0: none does. */
static size_t character_size(uint8_t first)
{
    if (first < 0x80) {
        return 1;
    }
    return first < 0xc2   ? 0
           : first < 0xe0 ? 2
           : first < 0xf0 ? 3
           : first < 0xf5 ? 4
                          : 0;
}

size_t wal__character(const uint8_t *text, size_t size, size_t at,
                      uint32_t *code_point)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t count;
    uint32_t value;

    if (at >= size) {
        return 0;
    }
    count = character_size(text[at]);
    if (count == 0 || count > size - at) {
        return 0;
    }
    value = count == 1 ? text[at] : text[at] & (0x7fU >> count);
    for (size_t i = 1; i < count; i++) {
        if ((text[at + i] & 0xc0) != 0x80) {
            return 0;
        }
        value = value << 6 | (text[at + i] & 0x3fU);
    }
    if (value < least[count] || value > 0x10ffff ||
        (value >= 0xd800 && value <= 0xdfff)) {
        return 0;
    }
    *code_point = value;
    return count;
}

static bool is_base64(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '+' || byte == '/' ||
           byte == '=';
}

/* The end of a run of characters of scripts without spaces. */
static size_t unspaced_end(const uint8_t *text, size_t size, size_t at)
{
    uint32_t code_point;
    size_t count = wal__character(text, size, at, &code_point);

    while (count > 0 && wal__is_unspaced(code_point)) {
        at += count;
        count = wal__character(text, size, at, &code_point);
    }
    return at;
}

static size_t base64_end(const uint8_t *text, size_t size, size_t at)
{
    while (at < size && is_base64(text[at])) {
        at++;
    }
    return at;
}

bool wal__piece_next(const uint8_t *text, size_t size, size_t at,
                     struct wal__script_piece *piece)
{
    size_t end = at;

    if (at >= size) {
        return false;
    }
    piece->begin = at;
    while (end < size) {
        enum wal__piece_kind kind;
        size_t run;

        if (is_base64(text[end])) {
            run = base64_end(text, size, end);
            kind = run - end >= WAL__NOISE_MIN ? WAL__PIECE_NOISE
                                               : WAL__PIECE_REST;
        } else if (text[end] >= 0xe0) {
            run = unspaced_end(text, size, end);
            kind = run > end ? WAL__PIECE_UNSPACED : WAL__PIECE_REST;
            run += run == end ? 1 : 0;
        } else {
            run = end + 1;
            kind = WAL__PIECE_REST;
        }
        if (kind != WAL__PIECE_REST) {
            piece->kind = end > at ? WAL__PIECE_REST : kind;
            piece->end = end > at ? end : run;
            return true;
        }
        end = run;
    }
    piece->kind = WAL__PIECE_REST;
    piece->end = size;
    return true;
}
