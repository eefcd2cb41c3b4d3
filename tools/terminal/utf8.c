/*
 * utf8.c - decode UTF-8 and classify its characters.
 *
 * Threads: any, after utf8_init.
 */
#include "tools/terminal/utf8.h"

#include <locale.h>
#include <wchar.h>

void utf8_init(void)
{
    /* wcwidth knows the characters of the locale only, whatever the user's. */
    (void)setlocale(LC_CTYPE, "C.UTF-8");
}

size_t utf8_size(const uint8_t *data, size_t size)
{
    uint8_t lead = data[0];
    uint8_t low = 0x80;
    uint8_t high = 0xBF;
    size_t count;

    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    count = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    if (lead == 0xE0) {
        low = 0xA0;
    } else if (lead == 0xED) {
        high = 0x9F;
    } else if (lead == 0xF0) {
        low = 0x90;
    } else if (lead == 0xF4) {
        high = 0x8F;
    }
    if (size < count || data[1] < low || data[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < count; i++) {
        if ((data[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    return count;
}

uint32_t utf8_decode(const uint8_t *data)
{
    uint32_t lead = data[0];

    if (lead < 0x80) {
        return lead;
    }
    if (lead < 0xE0) {
        return (lead & 0x1F) << 6 | (data[1] & 0x3Fu);
    }
    if (lead < 0xF0) {
        return (lead & 0x0F) << 12 | (data[1] & 0x3Fu) << 6 | (data[2] & 0x3Fu);
    }
    return (lead & 0x07) << 18 | (data[1] & 0x3Fu) << 12 |
           (data[2] & 0x3Fu) << 6 | (data[3] & 0x3Fu);
}

bool utf8_is_control(const uint8_t *data)
{
    uint32_t code;

    if (data[0] < 0x7F) {
        return data[0] < 0x20;
    }
    code = utf8_decode(data);
    return code < 0xA0 || code == 0x061C || code == 0x200E || code == 0x200F ||
           (code >= 0x2028 && code <= 0x202E) ||
           (code >= 0x2066 && code <= 0x2069);
}

size_t utf8_columns(const uint8_t *data)
{
    int columns = data[0] < 0x80 ? 1 : wcwidth((wchar_t)utf8_decode(data));

    return columns < 0 ? 1 : (size_t)columns;
}
