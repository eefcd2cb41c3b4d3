/*
 * utf8.c - checks of text (utf8.h).
 */
#include "bindings/node/native/base/utf8.h"

#include <string.h>

static const uint64_t high_bits = UINT64_C(0x8080808080808080);

static uint64_t load(const uint8_t *at)
{
    uint64_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* The number of bytes below 128 at the start, or less by up to 31. */
static size_t ascii_prefix(const uint8_t *at, size_t size)
{
    size_t count = 0;

    while (size - count >= 32 &&
           ((load(at + count) | load(at + count + 8) | load(at + count + 16) |
             load(at + count + 24)) &
            high_bits) == 0) {
        count += 32;
    }
    return count;
}

bool utf8_is_ascii(struct wal_slice text)
{
    const uint8_t *bytes = text.data;
    size_t at = ascii_prefix(bytes, text.size);

    while (at < text.size && bytes[at] < 0x80) {
        at++;
    }
    return at == text.size;
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
        size_t size = ascii_prefix(at, left);

        if (size == 0) {
            size = sequence_size(at, left);
        }
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
