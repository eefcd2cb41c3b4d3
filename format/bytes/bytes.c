/*
 * bytes.c - the phrase of each enum wal__fmt, and bytes in hexadecimal (bytes.h). Threads: any.
 */
#include "format/bytes/bytes.h"

const char *wal__fmt_text(enum wal__fmt fmt)
{
    switch (fmt) {
    case WAL__FMT_OK:
        return "valid";
    case WAL__FMT_ZERO:
        return "never written";
    case WAL__FMT_SHORT:
        return "cut short";
    case WAL__FMT_MAGIC:
        return "magic does not match";
    case WAL__FMT_HEADER_CRC:
        return "checksum of the header does not match";
    case WAL__FMT_DATA_CRC:
        return "checksum of the payload does not match";
    case WAL__FMT_VERSION:
        return "format version is not known";
    case WAL__FMT_FEATURES:
        return "incompatible feature is not known";
    case WAL__FMT_TYPE:
        return "frame type is not known";
    case WAL__FMT_FIELD:
        return "field is out of range";
    }
    return "unknown fault";
}

bool wal__is_zero(const uint8_t *at, size_t size)
{
    return size == 0 || (at[0] == 0 && memcmp(at, at + 1, size - 1) == 0);
}

static const char hex_digits[] = "0123456789abcdef";

void wal__hex_write(const void *bytes, size_t size, char *out)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++) {
        *out++ = hex_digits[at[i] >> 4];
        *out++ = hex_digits[at[i] & 15];
    }
    *out = '\0';
}

bool wal__hex_read(const void *digits, size_t size, void *bytes)
{
    const char *from = digits;
    uint8_t *out = bytes;

    for (size_t i = 0; i < 2 * size; i++) {
        const char *found = memchr(hex_digits, from[i], 16);

        if (found == NULL) {
            return false;
        }
        out[i / 2] = (uint8_t)(out[i / 2] << 4 | (found - hex_digits));
    }
    return true;
}
