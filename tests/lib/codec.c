/*
 * codec.c - see codec.h.
 */
#include "tests/lib/codec.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct wal__span codec_text(size_t min, size_t max)
{
    static uint8_t pool[1024 * 1024 + 1];
    static bool is_filled;
    struct wal__span text = {pool, min};
    uint64_t choice = test_random() % 4;

    for (size_t i = 0; !is_filled && i < sizeof(pool); i++) {
        pool[i] = (uint8_t)test_random();
    }
    is_filled = true;
    if (choice == 1) {
        text.size = max;
    } else if (choice > 1) {
        text.size = min + test_random() % (max - min + 1);
    }
    text.data += test_random() % (sizeof(pool) - text.size + 1);
    return text;
}

void codec_assert_same_text(struct wal__span a, struct wal__span b)
{
    assert_int_equal(a.size, b.size);
    if (a.size > 0) {
        assert_memory_equal(a.data, b.data, a.size);
    }
}

uint8_t *codec_block(size_t size)
{
    uint8_t *block = malloc(size + (size == 0));

    assert_non_null(block);
    test_at_end(free, block);
    memset(block, 0x5a, size);
    return block;
}

enum wal__fmt codec_decode_with(codec_decode_fn *decode, struct wal__span payload, size_t offset,
                                size_t width, uint64_t value)
{
    uint8_t *block = codec_block(payload.size);

    memcpy(block, payload.data, payload.size);
    for (size_t i = 0; i < width; i++) {
        block[offset + i] = (uint8_t)(value >> (8 * i));
    }
    return decode((struct wal__span){block, payload.size});
}

void codec_assert_changes(codec_decode_fn *decode, struct wal__span payload,
                          const struct codec_change *changes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct codec_change *change = &changes[i];
        enum wal__fmt fmt =
            codec_decode_with(decode, payload, change->offset, change->width, change->value);

        if ((int)fmt != change->expected) {
            fail_msg("%llu in %zu bytes at %zu: %s", (unsigned long long)change->value,
                     change->width, change->offset, wal__fmt_text(fmt));
        }
    }
}

void codec_assert_size_is_exact(codec_decode_fn *decode, struct wal__span payload,
                                size_t fixed_size)
{
    assert_int_equal(decode(payload), WAL__FMT_OK);
    for (size_t size = 0; size <= payload.size + 9; size++) {
        uint8_t *block = codec_block(size);
        size_t kept = size < payload.size ? size : payload.size;

        memset(block, 0, size);
        memcpy(block, payload.data, kept);
        if (size != payload.size) {
            assert_int_equal(decode((struct wal__span){block, size}),
                             size < fixed_size ? WAL__FMT_SHORT : WAL__FMT_FIELD);
        }
    }
}
