/*
 * digest.c - reading digests (digest.h); value.h has make_digest.
 */
#include "bindings/node/native/content/digest.h"

#include "bindings/node/native/base/value.h"

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static bool decode(struct wal_slice text, uint8_t digest[WAL_DIGEST_SIZE])
{
    const char *digits = text.data;

    if (text.size != 2 * WAL_DIGEST_SIZE) {
        return false;
    }
    for (size_t i = 0; i < WAL_DIGEST_SIZE; i++) {
        int high = digit_value(digits[2 * i]);
        int low = digit_value(digits[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        digest[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

void digest_read(struct call *call, napi_value value,
                 uint8_t digest[WAL_DIGEST_SIZE])
{
    struct wal_slice text = value_text(call, value);

    if (!call->failed && !decode(text, digest)) {
        call_fail(call, WAL_EINVAL,
                  "a digest is expected: 64 hexadecimal digits");
    }
}
