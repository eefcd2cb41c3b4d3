/*
 * utf8.c - checks of text (utf8.h).
 */
#include "bindings/node/native/utf8.h"

#include <string.h>

bool utf8_is_ascii(struct wal_slice text)
{
    const uint8_t *at = text.data;
    const uint8_t *end = at + text.size;
    uint64_t seen = 0;

    for (; end - at >= 8; at += 8) {
        uint64_t word;

        memcpy(&word, at, sizeof(word));
        seen |= word;
    }
    for (; at < end; at++) {
        seen |= *at;
    }
    return (seen & UINT64_C(0x8080808080808080)) == 0;
}

static bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The size of the valid sequence at `at` with `left` bytes, or 0. */
static size_t sequence_size(const uint8_t *at, size_t left)
{
    if (at[0] < 0x80) {
        return 1;
    }
    if (at[0] >= 0xc2 && at[0] <= 0xdf) {
        return left >= 2 && is_tail(at[1]) ? 2 : 0;
    }
    if ((at[0] & 0xf0) == 0xe0) {
        return left >= 3 && is_tail(at[1]) && is_tail(at[2]) &&
                       (at[0] != 0xe0 || at[1] >= 0xa0) &&
                       (at[0] != 0xed || at[1] < 0xa0)
                   ? 3
                   : 0;
    }
    if (at[0] >= 0xf0 && at[0] <= 0xf4) {
        return left >= 4 && is_tail(at[1]) && is_tail(at[2]) &&
                       is_tail(at[3]) && (at[0] != 0xf0 || at[1] >= 0x90) &&
                       (at[0] != 0xf4 || at[1] < 0x90)
                   ? 4
                   : 0;
    }
    return 0;
}

bool utf8_is_valid(struct wal_slice text)
{
    const uint8_t *at = text.data;
    size_t left = text.size;

    while (left > 0) {
        size_t size = sequence_size(at, left);

        if (size == 0) {
            return false;
        }
        at += size;
        left -= size;
    }
    return true;
}

bool utf8_has_replacement(struct wal_slice text)
{
    return text.size != 0 && memmem(text.data, text.size, "\xef\xbf\xbd", 3);
}

bool utf16_has_half(const char16_t *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if ((units[i] & 0xfc00) == 0xd800 && i + 1 < count &&
            (units[i + 1] & 0xfc00) == 0xdc00) {
            i++;
        } else if ((units[i] & 0xf800) == 0xd800) {
            return true;
        }
    }
    return false;
}
