/*
 * opencode_id.c - ids of OpenCode's storage.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/dialect/opencode/opencode_id.h"

#include <string.h>

#include "format/bytes/assert.h"

void wal__opencode_id_make(char id[WAL__OPENCODE_ID_SIZE], const char *prefix,
                           uint64_t number, uint64_t hash)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz";
    size_t at = 0;

    id[at++] = '"';
    memcpy(id + at, prefix, 4);
    at += 4;
    for (unsigned i = 0; i < 12; i++) {
        id[at++] = "0123456789abcdef"[number >> (44 - 4 * i) & 0xF];
    }
    for (unsigned i = 0; i < 14; i++) {
        if (i == 10) {
            hash = hash * UINT64_C(0x9E3779B97F4A7C15) + 1;
        }
        id[at++] = digits[hash % 62];
        hash /= 62;
    }
    id[at] = '"';
    WAL__ASSERT(at == WAL__OPENCODE_ID_SIZE - 1);
}

static bool is_hex(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
}

bool wal__opencode_is_id(struct wal__json_span id, const char *prefix)
{
    if (id.size != WAL__OPENCODE_ID_SIZE ||
        memcmp(id.data + 1, prefix, 4) != 0) {
        return false;
    }
    for (size_t i = 5; i < 31; i++) {
        uint8_t byte = id.data[i];
        bool is_letter =
            (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        if (!is_hex(byte) && (i < 17 || !is_letter)) {
            return false;
        }
    }
    return true;
}

uint64_t wal__opencode_id_number(struct wal__json_span id)
{
    uint64_t number = 0;

    WAL__ASSERT(id.size == WAL__OPENCODE_ID_SIZE);
    for (size_t i = 5; i < 17; i++) {
        uint8_t byte = id.data[i];
        number = number << 4 |
                 (uint64_t)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
    }
    return number;
}

struct wal__json_span
wal__opencode_id_span(const char id[WAL__OPENCODE_ID_SIZE])
{
    return (struct wal__json_span){(const uint8_t *)id, WAL__OPENCODE_ID_SIZE};
}
