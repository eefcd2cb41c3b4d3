/*
 * test_record_doc.c - the payloads of DOC, DOC_DELETE and REDACT: round trips
 * of random records, every field outside its range, and that no other size is
 * accepted. Payloads lie in blocks of exactly their size, so that the address
 * sanitizer sees a read beyond the end.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/segment/record.h"
#include "tests/lib/rng.h"
#include "tests/lib/test.h"

enum {
    ROUNDS = 1000,
    VALUE_SIZE = 70000
};

/* The source of random texts. */
static uint8_t pool[VALUE_SIZE + 1];

static uint64_t random_state;

static uint64_t random_u64(void)
{
    return rng_next(&random_state);
}

static int set_up(void **state)
{
    (void)state;
    random_state = rng_seed(1);
    for (size_t i = 0; i < sizeof(pool); i++) {
        pool[i] = (uint8_t)random_u64();
    }
    return 0;
}

/* `min` to `max` bytes, often one of the two. */
static struct wal__span random_text(size_t min, size_t max)
{
    struct wal__span text = {pool, min};
    uint64_t choice = random_u64() % 4;

    if (choice == 1) {
        text.size = max;
    } else if (choice > 1) {
        text.size = min + random_u64() % (max - min + 1);
    }
    text.data += random_u64() % (sizeof(pool) - text.size + 1);
    return text;
}

static void assert_same_text(struct wal__span a, struct wal__span b)
{
    assert_int_equal(a.size, b.size);
    if (a.size > 0) {
        assert_memory_equal(a.data, b.data, a.size);
    }
}

static uint8_t *new_block(size_t size)
{
    uint8_t *block = malloc(size + (size == 0));

    assert_non_null(block);
    return block;
}

/* The block under a span from new_block. */
static void free_block(struct wal__span span)
{
    free((void *)(uintptr_t)span.data);
}

typedef enum wal__fmt decode_fn(struct wal__span payload);

static enum wal__fmt decode_doc(struct wal__span payload)
{
    struct wal__doc_record out;

    return wal__doc_record_decode(payload, &out);
}

static enum wal__fmt decode_redact(struct wal__span payload)
{
    struct wal__redact_record out;

    return wal__redact_record_decode(payload, &out);
}

/* Cut, it is SHORT inside its fixed part and FIELD in its texts; longer, it is
 * FIELD. */
static void assert_size_is_exact(decode_fn *decode, struct wal__span payload,
                                 size_t fixed_size)
{
    assert_int_equal(decode(payload), WAL__FMT_OK);
    for (size_t size = 0; size <= payload.size + 9; size++) {
        uint8_t *block = new_block(size);
        size_t kept = size < payload.size ? size : payload.size;
        enum wal__fmt expected =
            size < fixed_size ? WAL__FMT_SHORT : WAL__FMT_FIELD;

        memset(block, 0, size);
        memcpy(block, payload.data, kept);
        if (size != payload.size) {
            assert_int_equal(decode((struct wal__span){block, size}), expected);
        }
        free(block);
    }
}

/* The payload with another number of `width` bytes at `offset`. */
static enum wal__fmt decode_with(decode_fn *decode, struct wal__span payload,
                                 size_t offset, size_t width, uint64_t value)
{
    uint8_t *block = new_block(payload.size);
    enum wal__fmt fmt;

    memcpy(block, payload.data, payload.size);
    for (size_t i = 0; i < width; i++) {
        block[offset + i] = (uint8_t)(value >> (8 * i));
    }
    fmt = decode((struct wal__span){block, payload.size});
    free(block);
    return fmt;
}

/* DOC and DOC_DELETE */

static struct wal__span make_doc(const struct wal__doc_record *doc)
{
    size_t size = wal__doc_record_size(doc);
    uint8_t *block = new_block(size);

    wal__doc_record_encode(doc, block);
    return (struct wal__span){block, size};
}

static void doc_round_trip(void)
{
    struct wal__doc_record doc = {
        .modified_ms = (int64_t)random_u64(),
        .key = random_text(1, WAL__KEY_MAX),
        .value = random_text(0, VALUE_SIZE),
    };
    struct wal__doc_record read;
    struct wal__span payload = make_doc(&doc);

    assert_int_equal(wal__doc_record_decode(payload, &read), WAL__FMT_OK);
    assert_true(read.modified_ms == doc.modified_ms);
    assert_same_text(read.key, doc.key);
    assert_same_text(read.value, doc.value);
    free_block(payload);
}

TEST(record_doc__doc_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        doc_round_trip();
    }
}

TEST(record_doc__deletion_has_no_value)
{
    struct wal__doc_record doc = {.modified_ms = -1, .key = {pool, 3}};
    struct wal__doc_record read;
    struct wal__span payload = make_doc(&doc);

    assert_int_equal(payload.size, 16 + 3);
    assert_int_equal(wal__doc_record_decode(payload, &read), WAL__FMT_OK);
    assert_true(read.modified_ms == -1);
    assert_same_text(read.key, doc.key);
    assert_int_equal(read.value.size, 0);
    free_block(payload);
}

TEST(record_doc__doc_is_checked)
{
    struct wal__doc_record doc = {.key = {pool, 3}, .value = {pool, 5}};
    struct wal__span payload = make_doc(&doc);

    assert_size_is_exact(decode_doc, payload, 16);
    assert_int_equal(decode_with(decode_doc, payload, 8, 2, 4), WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_doc, payload, 10, 1, 1),
                     WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_doc, payload, 11, 1, 1),
                     WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_doc, payload, 12, 4, 4),
                     WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_doc, payload, 12, 4, UINT32_MAX),
                     WAL__FMT_FIELD);
    free_block(payload);
}

/* The value takes what the key leaves, so that only the key is wrong. */
TEST(record_doc__key_is_bounded)
{
    static const size_t sizes[] = {0, 1, 1024, 1025};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct wal__doc_record doc = {.key = {pool, sizes[i]},
                                      .value = {pool, 9}};
        struct wal__span payload = make_doc(&doc);
        bool fits = sizes[i] >= 1 && sizes[i] <= 1024;

        assert_int_equal(decode_doc(payload),
                         fits ? WAL__FMT_OK : WAL__FMT_FIELD);
        free_block(payload);
    }
}

TEST(record_doc__value_is_bounded)
{
    uint8_t *large = calloc(1, (16u << 20) + 1);

    assert_non_null(large);
    for (size_t over = 0; over <= 1; over++) {
        struct wal__doc_record doc = {.key = {pool, 1},
                                      .value = {large, (16u << 20) + over}};
        struct wal__span payload = make_doc(&doc);

        assert_int_equal(decode_doc(payload),
                         over == 0 ? WAL__FMT_OK : WAL__FMT_FIELD);
        free_block(payload);
    }
    free(large);
}

/* REDACT */

static struct wal__span make_redact(const struct wal__redact_record *redact)
{
    size_t size = wal__redact_record_size(redact);
    uint8_t *block = new_block(size);

    wal__redact_record_encode(redact, block);
    return (struct wal__span){block, size};
}

static void redact_round_trip(void)
{
    struct wal__redact_record redact = {
        .session = (uint32_t)random_u64() | 1,
        .entry_id = random_text(1, WAL__ID_MAX),
        .target_id = random_text(1, WAL__ID_MAX),
        .reason = random_text(0, WAL__TEXT_MAX),
    };
    struct wal__redact_record read;
    struct wal__span payload = make_redact(&redact);

    assert_int_equal(wal__redact_record_decode(payload, &read), WAL__FMT_OK);
    assert_int_equal(read.session, redact.session);
    assert_same_text(read.entry_id, redact.entry_id);
    assert_same_text(read.target_id, redact.target_id);
    assert_same_text(read.reason, redact.reason);
    free_block(payload);
}

TEST(record_doc__redact_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        redact_round_trip();
    }
}

TEST(record_doc__redact_is_checked)
{
    struct wal__redact_record redact = {
        .session = 1,
        .entry_id = {pool, 2},
        .target_id = {pool, 3},
        .reason = {pool, 4},
    };
    struct wal__span payload = make_redact(&redact);

    assert_size_is_exact(decode_redact, payload, 8);
    /* The sizes still add up, but one is none. */
    assert_int_equal(decode_with(decode_redact, payload, 0, 2, 0x0500),
                     WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_redact, payload, 0, 2, 0x0005),
                     WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_redact, payload, 0, 2, 0x0203),
                     WAL__FMT_OK);
    assert_int_equal(decode_with(decode_redact, payload, 2, 2, UINT16_MAX),
                     WAL__FMT_FIELD);
    assert_int_equal(decode_with(decode_redact, payload, 4, 4, 0),
                     WAL__FMT_FIELD);
    free_block(payload);
}

TEST(record_doc__reason_is_bounded)
{
    for (size_t size = 4096; size <= 4097; size++) {
        struct wal__redact_record redact = {
            .session = 1,
            .entry_id = {pool, 1},
            .target_id = {pool, 1},
            .reason = {pool, size},
        };
        struct wal__span payload = make_redact(&redact);

        assert_int_equal(decode_redact(payload),
                         size == 4096 ? WAL__FMT_OK : WAL__FMT_FIELD);
        free_block(payload);
    }
}

TEST(record_doc__failed_decode_leaves_the_output)
{
    static uint8_t zeros[64];
    struct wal__span payload = {zeros, sizeof(zeros)};
    struct wal__doc_record doc = {.modified_ms = 9};
    struct wal__redact_record redact = {.session = 9};

    assert_int_equal(wal__doc_record_decode(payload, &doc), WAL__FMT_FIELD);
    assert_int_equal(wal__redact_record_decode(payload, &redact),
                     WAL__FMT_FIELD);
    assert_int_equal(doc.modified_ms, 9);
    assert_int_equal(redact.session, 9);
}

/* SPEC.md 2.14 and 2.15, by their own offsets. */
TEST(record_doc__field_offsets_are_as_specified)
{
    struct wal__doc_record doc = {
        .modified_ms = 0x0102030405060708,
        .key = {(const uint8_t *)"key", 3},
        .value = {(const uint8_t *)"v", 1},
    };
    struct wal__redact_record redact = {
        .session = 0x01020304,
        .entry_id = {(const uint8_t *)"e", 1},
        .target_id = {(const uint8_t *)"tt", 2},
        .reason = {(const uint8_t *)"why", 3},
    };
    struct wal__span payload = make_doc(&doc);

    assert_int_equal(payload.size, 20);
    assert_memory_equal(payload.data, "\10\7\6\5\4\3\2\1\3\0\0\0\1\0\0\0keyv",
                        20);
    free_block(payload);
    payload = make_redact(&redact);
    assert_int_equal(payload.size, 14);
    assert_memory_equal(payload.data, "\1\2\3\0\4\3\2\1ettwhy", 14);
    free_block(payload);
}

TEST_FILE(set_up, NULL, NULL);
