/*
 * json_character.c - the characters of a JSON string (json_character.h; RFC
 * 8259 section 7).
 *
 * Invariant: `*at` stays at or before `end`. Threads: any.
 */
#include "format/json/json_character.h"

#include <string.h>

#include "format/bytes/assert.h"

bool wal__json_character_read(const uint8_t **at, const uint8_t *end,
                              uint32_t *code_point)
{
    uint8_t lead = **at;
    ptrdiff_t size = 1;

    WAL__ASSERT(*at < end);
    if (lead == '\\') {
        return wal__json_read_escape(at, end, code_point) == WAL__JSON_OK;
    }
    uint32_t value = lead;
    if (lead >= 0xc0) {
        size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
        value = lead & (0x7fU >> size);
    }
    if (end - *at < size) {
        return false;
    }
    for (ptrdiff_t i = 1; i < size; i++) {
        value = value << 6 | ((*at)[i] & 0x3fU);
    }
    *at += size;
    *code_point = value;
    return true;
}

size_t wal__json_character_write(uint32_t code_point, uint8_t out[4])
{
    WAL__ASSERT(code_point <= 0x10ffff);
    if (code_point < 0x80) {
        out[0] = (uint8_t)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (uint8_t)(0x80 | (code_point & 0x3f));
        code_point >>= 6;
    }
    out[0] = (uint8_t)((0xf00U >> size) | code_point);
    return size;
}

bool wal__json_characters_equal(struct wal__json_span a,
                                struct wal__json_span b)
{
    if (a.size == b.size && memcmp(a.data, b.data, a.size) == 0) {
        return true;
    }
    if (memchr(a.data, '\\', a.size) == NULL &&
        memchr(b.data, '\\', b.size) == NULL) {
        return false;
    }
    const uint8_t *a_at = a.data + 1;
    const uint8_t *b_at = b.data + 1;
    const uint8_t *a_end = a.data + a.size - 1;
    const uint8_t *b_end = b.data + b.size - 1;
    while (a_at < a_end && b_at < b_end) {
        uint32_t a_point;
        uint32_t b_point;
        if (!wal__json_character_read(&a_at, a_end, &a_point) ||
            !wal__json_character_read(&b_at, b_end, &b_point) ||
            a_point != b_point) {
            return false;
        }
    }
    return a_at == a_end && b_at == b_end;
}
