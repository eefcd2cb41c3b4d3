/*
 * uuid.c - UUIDv7 of random bytes that are fetched by the kilobyte (uuid.h).
 */
#include "bindings/node/native/base/uuid.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum {
    RANDOM_BYTES = 10
};

static void random_bytes(struct addon *addon, uint8_t out[RANDOM_BYTES])
{
    if (addon->random_left < RANDOM_BYTES) {
        size_t filled = 0;

        while (filled < sizeof(addon->random)) {
            ssize_t got = getrandom(addon->random + filled,
                                    sizeof(addon->random) - filled, 0);

            filled += got > 0 ? (size_t)got : 0;
        }
        addon->random_left = sizeof(addon->random);
    }
    addon->random_left -= RANDOM_BYTES;
    memcpy(out, addon->random + addon->random_left, RANDOM_BYTES);
}

void uuid_make(struct addon *addon, char out[UUID_TEXT_SIZE])
{
    uint8_t bytes[16];
    struct timespec now;
    uint64_t ms;
    char *at = out;

    clock_gettime(CLOCK_REALTIME, &now);
    ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    for (int i = 0; i < 6; i++) {
        bytes[i] = (uint8_t)(ms >> (8 * (5 - i)));
    }
    random_bytes(addon, bytes + 6);
    bytes[6] = (uint8_t)((bytes[6] & 0x0f) | 0x70);
    bytes[8] = (uint8_t)((bytes[8] & 0x3f) | 0x80);
    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = "0123456789abcdef"[bytes[i] >> 4];
        *at++ = "0123456789abcdef"[bytes[i] & 15];
    }
    *at = '\0';
}
