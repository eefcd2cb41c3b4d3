/*
 * digest.c - digests as text (sha256.h; SPEC.md 5.12). Any thread.
 */
#include "engine/base/sha256.h"

#include <string.h>

bool wal__digest_equal(const struct wal__digest *a, const struct wal__digest *b)
{
    return memcmp(a->bytes, b->bytes, WAL__DIGEST_SIZE) == 0;
}

static int hex_value(uint8_t digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

bool wal__digest_from_hex(struct wal__span text, struct wal__digest *digest)
{
    if (text.size != 2 * WAL__DIGEST_SIZE) {
        return false;
    }
    for (size_t i = 0; i < WAL__DIGEST_SIZE; i++) {
        int high = hex_value(text.data[2 * i]);
        int low = hex_value(text.data[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        digest->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void wal__digest_to_hex(const struct wal__digest *digest,
                        char out[WAL__DIGEST_HEX_SIZE])
{
    static const char digits[] = "0123456789abcdef";

    for (int i = 0; i < WAL__DIGEST_SIZE; i++) {
        out[2 * i] = digits[digest->bytes[i] >> 4];
        out[2 * i + 1] = digits[digest->bytes[i] & 15];
    }
    out[2 * WAL__DIGEST_SIZE] = '\0';
}
