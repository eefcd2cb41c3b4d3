/*
 * test_keys_fmt.c - the file KEYS as bytes (format/segment/keys_fmt.h; SPEC.md 8.1).
 */
#include "format/bytes/crc32.h"
#include "format/segment/keys_fmt.h"
#include "tests/lib/test.h"

enum { SLOT_KIND_AT = 80, CRC_AT = 64, CRC_END = CRC_AT + 4, SIZE = 80 + 2 * 144 + 80 };

static struct wal__keys_file a_file(void)
{
    struct wal__keys_file file = {
        .uuid = {1, 2, 3}, .generation = 7, .plain_ids = {4, 5}, .slot_count = 2, .key_count = 1};

    file.slots[0] = (struct wal__key_slot){
        .kind = WAL__KEY_SLOT_SECRET, .id = 1, .created_ms = -1, .label = "key file"};
    file.slots[1] = (struct wal__key_slot){
        .kind = WAL__KEY_SLOT_PASSPHRASE, .id = 3, .created_ms = 2, .log2_n = 17, .r = 8, .p = 1};
    memset(&file.slots[1].key, 0xa5, sizeof(file.slots[1].key));
    memset(file.slots[1].salt, 0x5a, sizeof(file.slots[1].salt));
    file.keys[0] = (struct wal__data_key){.id = 9, .suite = 2, .created_ms = 3};
    memset(&file.keys[0].key, 0x77, sizeof(file.keys[0].key));
    return file;
}

TEST(keys__are_read_as_they_were_written)
{
    const struct wal__keys_file file = a_file();
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    struct wal__keys_file read;
    size_t size;

    assert_int_equal(wal__keys_encode(&file, bytes), SIZE);
    assert_int_equal(wal__keys_decode(bytes, &read, &size), WAL__FMT_OK);
    assert_int_equal(size, SIZE);
    assert_memory_equal(read.uuid, file.uuid, sizeof(file.uuid));
    assert_true(read.generation == 7 && read.plain_ids[0] == 4 && read.plain_ids[1] == 5);
    assert_int_equal(read.slot_count, 2);
    assert_int_equal(read.key_count, 1);
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(read.slots[i].kind, file.slots[i].kind);
        assert_int_equal(read.slots[i].id, file.slots[i].id);
        assert_true(read.slots[i].created_ms == file.slots[i].created_ms);
        assert_int_equal(read.slots[i].log2_n, file.slots[i].log2_n);
        assert_string_equal(read.slots[i].label, file.slots[i].label);
        assert_memory_equal(read.slots[i].salt, file.slots[i].salt, 16);
        assert_memory_equal(&read.slots[i].key, &file.slots[i].key, sizeof(file.slots[i].key));
    }
    assert_int_equal(read.keys[0].id, 9);
    assert_int_equal(read.keys[0].suite, 2);
    assert_memory_equal(&read.keys[0].key, &file.keys[0].key, sizeof(file.keys[0].key));
}

TEST(keys__every_flipped_bit_is_rejected)
{
    const struct wal__keys_file file = a_file();
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    struct wal__keys_file read;
    size_t size;

    (void)wal__keys_encode(&file, bytes);
    for (size_t bit = 0; bit < SIZE * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(wal__keys_decode(bytes, &read, &size), WAL__FMT_OK);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    assert_int_equal(wal__keys_decode(bytes, &read, &size), WAL__FMT_OK);
}

/* Puts the checksum that the bytes have. */
static void put_crc(uint8_t *bytes)
{
    wal__put32(bytes + CRC_AT,
               wal__crc32(wal__crc32(0, bytes, CRC_AT), bytes + CRC_END, SIZE - CRC_END));
}

TEST(keys__fields_out_of_their_range)
{
    static const struct {
        size_t at;
        uint8_t value;
        enum wal__fmt fmt;
    } cases[] = {
        {0, 'X', WAL__FMT_MAGIC},
        {8, 2, WAL__FMT_VERSION},
        {12, 0, WAL__FMT_FIELD},                       /* no slot */
        {12, 33, WAL__FMT_FIELD},                      /* too many */
        {16, 0, WAL__FMT_FIELD},                       /* no data key */
        {16, 65, WAL__FMT_FIELD},                      /* too many */
        {20, 1, WAL__FMT_FIELD},                       /* zero */
        {40, 0, WAL__FMT_FIELD},                       /* generation */
        {68, 1, WAL__FMT_FIELD},                       /* zero */
        {SLOT_KIND_AT, 3, WAL__FMT_FIELD},             /* unknown kind */
        {SLOT_KIND_AT, 2, WAL__FMT_FIELD},             /* a passphrase without scrypt */
        {SLOT_KIND_AT + 4, 0, WAL__FMT_FIELD},         /* id */
        {SLOT_KIND_AT + 16, 17, WAL__FMT_FIELD},       /* a secret with scrypt */
        {SLOT_KIND_AT + 19, 33, WAL__FMT_FIELD},       /* label_size */
        {SLOT_KIND_AT + 20, 1, WAL__FMT_FIELD},        /* zero */
        {SLOT_KIND_AT + 55, 'x', WAL__FMT_FIELD},      /* after the label */
        {SLOT_KIND_AT + 143, 1, WAL__FMT_FIELD},       /* zero */
        {SLOT_KIND_AT + 144 + 16, 21, WAL__FMT_FIELD}, /* log2 N */
        {SLOT_KIND_AT + 144 + 17, 17, WAL__FMT_FIELD}, /* r */
        {SLOT_KIND_AT + 144 + 18, 0, WAL__FMT_FIELD},  /* p */
        {SLOT_KIND_AT + 288, 0, WAL__FMT_FIELD},       /* id of the data key */
        {SLOT_KIND_AT + 288 + 4, 3, WAL__FMT_FIELD},   /* suite */
        {SLOT_KIND_AT + 288 + 79, 1, WAL__FMT_FIELD},  /* zero */
    };
    const struct wal__keys_file file = a_file();
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    struct wal__keys_file read;
    size_t size;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        (void)wal__keys_encode(&file, bytes);
        bytes[cases[i].at] = cases[i].value;
        put_crc(bytes);
        assert_int_equal(wal__keys_decode(bytes, &read, &size), cases[i].fmt);
    }
}

TEST(keys__data_keys_ascend)
{
    struct wal__keys_file file = a_file();
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    struct wal__keys_file read;
    size_t size;

    file.keys[1] = file.keys[0];
    file.key_count = 2;
    (void)wal__keys_encode(&file, bytes);
    assert_int_equal(wal__keys_decode(bytes, &read, &size), WAL__FMT_FIELD);
    file.keys[1].id++;
    (void)wal__keys_encode(&file, bytes);
    assert_int_equal(wal__keys_decode(bytes, &read, &size), WAL__FMT_OK);
}

TEST(keys__most_of_all)
{
    struct wal__keys_file file = a_file();
    uint8_t bytes[WAL__KEYS_COPY_SIZE];
    struct wal__keys_file read;
    size_t size;

    for (uint32_t i = 0; i < WAL__KEY_SLOTS_MAX; i++) {
        file.slots[i] = file.slots[0];
    }
    for (uint32_t i = 0; i < WAL__DATA_KEYS_MAX; i++) {
        file.keys[i] = file.keys[0];
        file.keys[i].id = i + 1;
    }
    file.slot_count = WAL__KEY_SLOTS_MAX;
    file.key_count = WAL__DATA_KEYS_MAX;
    assert_true(wal__keys_encode(&file, bytes) + WAL__KEYS_MAC_SIZE <= WAL__KEYS_COPY_SIZE);
    assert_int_equal(wal__keys_decode(bytes, &read, &size), WAL__FMT_OK);
}
