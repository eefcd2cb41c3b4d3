/*
 * test_index_fmt.c - summaries, postings, the segment index and the catalogue's header: round trips
 * of random ones, every field outside its range, every truncation and every flipped bit. Bytes lie
 * in blocks of exactly their size, so that the address sanitizer sees a read beyond the end.
 */
#include <stddef.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "format/index/index_fmt.h"
#include "format/segment/record.h"
#include "tests/lib/codec.h"

enum { ROUNDS = 1000 };

static struct wal__summary random_summary(size_t text_max)
{
    struct wal__summary summary = {
        .number = (uint32_t)test_random() | 1,
        .flags = (uint32_t)test_random() % 8,
        .session_position = test_random(),
        .fork_sequence = test_random(),
        .fork_owner = (uint32_t)test_random(),
        .depth = (uint32_t)test_random(),
        .created_ms = (int64_t)test_random(),
        .updated_ms = (int64_t)test_random(),
        .last_sequence = test_random(),
        .entries = test_random(),
        .inherited = test_random(),
        .bytes = test_random(),
        .head_sequence = test_random(),
        .segment = test_random(),
        .first_sequence = test_random(),
        .fork_record = test_random(),
        .first_owner = (uint32_t)test_random(),
        .fork_source = (uint32_t)test_random(),
        .documents = (uint32_t)test_random(),
        .schema_version = (uint32_t)test_random(),
        .id = codec_text(1, WAL__ID_MAX),
        .head_id = codec_text(0, WAL__ID_MAX),
        .parent_id = codec_text(0, WAL__ID_MAX),
        .cwd = codec_text(0, text_max),
        .project = codec_text(0, text_max),
        .title = codec_text(0, text_max),
        .source = codec_text(0, text_max),
        .first_text = codec_text(0, WAL__SUMMARY_FIRST_MAX),
    };

    summary.id_hash = wal__id_hash(summary.id.data, summary.id.size);
    return summary;
}

static void assert_summary_equal(const struct wal__summary *a, const struct wal__summary *b)
{
    /* All before the spans are numbers, without holes. */
    assert_memory_equal(a, b, offsetof(struct wal__summary, id));
    codec_assert_same_text(a->id, b->id);
    codec_assert_same_text(a->head_id, b->head_id);
    codec_assert_same_text(a->parent_id, b->parent_id);
    codec_assert_same_text(a->cwd, b->cwd);
    codec_assert_same_text(a->project, b->project);
    codec_assert_same_text(a->title, b->title);
    codec_assert_same_text(a->source, b->source);
    codec_assert_same_text(a->first_text, b->first_text);
}

/* ------------------------------------------------------------ summaries --- */

TEST(index_fmt__summary_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__summary summary = random_summary(WAL__TEXT_MAX);
        struct wal__summary read;
        uint32_t offset = (uint32_t)test_random() % 100;
        size_t size = offset + wal__summary_text_size(&summary);
        uint8_t at[WAL__SUMMARY_SIZE];
        uint8_t *texts = codec_block(size);

        assert_true(wal__summary_is_valid(&summary));
        assert_true(wal__summary_text_size(&summary) <= WAL__SUMMARY_TEXT_MAX);
        wal__summary_encode(&summary, offset, at, texts + offset);
        assert_int_equal(wal__summary_decode(at, (struct wal__span){texts, size}, &read),
                         WAL__FMT_OK);
        assert_summary_equal(&read, &summary);
        assert_int_equal(wal__summary_number(at), summary.number);
        assert_int_equal(wal__summary_id_hash(at), summary.id_hash);
        assert_int_equal(wal__summary_decode(at, (struct wal__span){texts, size - 1}, &read),
                         WAL__FMT_FIELD);
    }
}

/* The offsets of SPEC.md 2.12, as numbers. */
TEST(index_fmt__summary_layout_is_as_specified)
{
    struct wal__summary summary = {
        .number = 0x01020304,
        .flags = WAL__SUMMARY_DAMAGED,
        .head_sequence = 7,
        .segment = 9,
        .first_sequence = 10,
        .fork_record = 11,
        .first_owner = 12,
        .fork_source = 13,
        .documents = 14,
        .schema_version = 15,
        .id = {(const uint8_t *)"i", 1},
        .head_id = {(const uint8_t *)"hh", 2},
        .parent_id = {(const uint8_t *)"ppp", 3},
        .cwd = {(const uint8_t *)"cccc", 4},
        .project = {(const uint8_t *)"rrrrr", 5},
        .title = {(const uint8_t *)"tttttt", 6},
        .source = {(const uint8_t *)"sssssss", 7},
        .first_text = {(const uint8_t *)"ffffffff", 8},
    };
    uint8_t at[160];
    uint8_t texts[36];

    wal__summary_encode(&summary, 0x55, at, texts);
    assert_memory_equal(at, "\4\3\2\1\2\0\0\0", 8);
    assert_memory_equal(at + 88, "\7\0\0\0\0\0\0\0\11\0\0\0\0\0\0\0", 16);
    assert_memory_equal(at + 112, "\x55\0\0\0\1\2\3\10\4\0\5\0\6\0\7\0", 16);
    assert_memory_equal(at + 128, "\12\0\0\0\0\0\0\0\13\0\0\0\0\0\0\0", 16);
    assert_memory_equal(at + 144, "\14\0\0\0\15\0\0\0\16\0\0\0\17\0\0\0", 16);
    assert_memory_equal(texts, "ihhpppccccrrrrrttttttsssssssffffffff", 36);
}

static enum wal__fmt decode_summary(struct wal__span bytes)
{
    static const uint8_t texts[64] = "id";
    struct wal__summary read;

    return wal__summary_decode(bytes.data, (struct wal__span){texts, sizeof(texts)}, &read);
}

TEST(index_fmt__summary_field_out_of_range_is_rejected)
{
    struct wal__summary summary = {.number = 1, .id = {(const uint8_t *)"id", 2}};
    uint8_t at[WAL__SUMMARY_SIZE];
    uint8_t text[2];
    const struct wal__span payload = {at, sizeof(at)};
    static const struct codec_change changes[] = {
        {0, 4, 1, OK},        {0, 4, 0, FIELD},    {0, 4, UINT32_MAX, OK},
        {4, 4, 127, OK},      {4, 4, 128, FIELD},  {112, 4, 62, OK},
        {112, 4, 63, FIELD},  {112, 4, 64, FIELD}, {112, 4, UINT32_MAX, FIELD},
        {116, 1, 0, FIELD},   {117, 1, 62, OK},    {117, 1, 63, FIELD},
        {118, 1, 255, FIELD}, {119, 1, 62, OK},    {119, 1, 63, FIELD}};

    wal__summary_encode(&summary, 0, at, text);
    CODEC_ASSERT_CHANGES(decode_summary, payload, changes);
    for (size_t offset = 120; offset < 128; offset += 2) {
        assert_int_equal(codec_decode_with(decode_summary, payload, offset, 2, 62), WAL__FMT_OK);
        assert_int_equal(codec_decode_with(decode_summary, payload, offset, 2, 63), WAL__FMT_FIELD);
        assert_int_equal(codec_decode_with(decode_summary, payload, offset, 2, UINT16_MAX),
                         WAL__FMT_FIELD);
    }
}

/* Within the bytes, but over the limit of its kind. */
TEST(index_fmt__summary_text_over_its_limit_is_rejected)
{
    static const uint8_t texts[2 * WAL__TEXT_MAX];
    struct wal__summary summary = {.number = 1, .id = {texts, 1}};
    struct wal__summary read;
    uint8_t at[WAL__SUMMARY_SIZE];
    uint8_t text[1];

    for (size_t offset = 120; offset < 128; offset += 2) {
        wal__summary_encode(&summary, 0, at, text);
        wal__put16(at + offset, WAL__TEXT_MAX);
        assert_int_equal(wal__summary_decode(at, (struct wal__span){texts, sizeof(texts)}, &read),
                         WAL__FMT_OK);
        wal__put16(at + offset, WAL__TEXT_MAX + 1);
        assert_int_equal(wal__summary_decode(at, (struct wal__span){texts, sizeof(texts)}, &read),
                         WAL__FMT_FIELD);
    }
    for (size_t size = 160; size <= 161; size++) {
        wal__summary_encode(&summary, 0, at, text);
        at[119] = (uint8_t)size;
        assert_int_equal(wal__summary_decode(at, (struct wal__span){texts, sizeof(texts)}, &read),
                         size == 160 ? WAL__FMT_OK : WAL__FMT_FIELD);
    }
}

TEST(index_fmt__posting_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__posting posting = {
            .offset = (uint32_t)test_random(),
            .type = (uint8_t)test_random(),
            .flags = (uint8_t)test_random(),
            .stream = (uint8_t)test_random(),
            .kind = (uint8_t)test_random(),
            .sequence = test_random(),
            .parent = test_random(),
            .id_hash = test_random(),
        };
        struct wal__posting read;
        uint8_t at[WAL__POSTING_SIZE];

        wal__posting_encode(&posting, at);
        wal__posting_decode(at, &read);
        assert_memory_equal(&read, &posting, sizeof(read));
        assert_int_equal(wal__get32(at), posting.offset);
        assert_int_equal(at[7], posting.kind);
        assert_int_equal(wal__get64(at + 24), posting.id_hash);
    }
}

/* ---------------------------------------------------------------- index --- */

enum { SESSIONS = 5, POSTINGS = 12 };

struct sample {
    struct wal__summary summaries[SESSIONS];
    struct wal__index_header header;
    uint8_t *bytes;
    size_t size;
};

static struct sample make_sample(void)
{
    struct sample sample = {
        .header =
            {
                .session_count = SESSIONS,
                .posting_count = POSTINGS,
                .id = test_random(),
                .end = 8192,
                .first_sequence = test_random(),
                .last_sequence = test_random(),
                .chain = (uint32_t)test_random(),
                .commit_offset = 8191,
                .epoch = test_random(),
                .last_session = (uint32_t)test_random(),
                .uuid = "0123456789abcde",
            },
    };
    uint32_t offset = 0;

    for (uint32_t i = 0; i < SESSIONS; i++) {
        sample.summaries[i] = random_summary(20);
        sample.summaries[i].number = 10 + 3 * i;
        sample.summaries[i].first_posting = 2 * i;
        sample.summaries[i].posting_count = POSTINGS - 2 * i;
        sample.header.text_size += (uint32_t)wal__summary_text_size(&sample.summaries[i]);
    }
    sample.size = wal__index_size(SESSIONS, POSTINGS, sample.header.text_size);
    sample.bytes = codec_block(sample.size);
    memset(sample.bytes, 0x5a, sample.size);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        wal__summary_encode(&sample.summaries[i], offset,
                            sample.bytes + WAL__INDEX_HEADER_SIZE + i * WAL__SUMMARY_SIZE,
                            sample.bytes + wal__index_size(SESSIONS, POSTINGS, offset));
        offset += (uint32_t)wal__summary_text_size(&sample.summaries[i]);
    }
    wal__index_finish(&sample.header, sample.bytes);
    return sample;
}

static enum wal__fmt decode(const struct sample *sample, struct wal__index *index)
{
    return wal__index_decode((struct wal__span){sample->bytes, sample->size}, index);
}

TEST(index_fmt__index_round_trip)
{
    struct sample sample = make_sample();
    struct wal__index index;
    struct wal__summary read;

    assert_int_equal(sample.size, 112 + SESSIONS * 160 + POSTINGS * 32 + sample.header.text_size);
    assert_int_equal(decode(&sample, &index), WAL__FMT_OK);
    assert_int_equal(index.header.id, sample.header.id);
    assert_int_equal(index.header.end, sample.header.end);
    assert_int_equal(index.header.first_sequence, sample.header.first_sequence);
    assert_int_equal(index.header.last_sequence, sample.header.last_sequence);
    assert_int_equal(index.header.chain, sample.header.chain);
    assert_int_equal(index.header.commit_offset, sample.header.commit_offset);
    assert_int_equal(index.header.epoch, sample.header.epoch);
    assert_int_equal(index.header.last_session, sample.header.last_session);
    assert_memory_equal(index.header.uuid, sample.header.uuid, 16);
    assert_ptr_equal(index.summaries, sample.bytes + 112);
    assert_ptr_equal(index.postings, index.summaries + SESSIONS * 160);
    assert_ptr_equal(index.texts.data, index.postings + POSTINGS * 32);
    assert_int_equal(index.texts.size, sample.header.text_size);
    for (uint32_t i = 0; i < SESSIONS; i++) {
        assert_int_equal(wal__index_summary(&index, i, &read), WAL__FMT_OK);
        assert_summary_equal(&read, &sample.summaries[i]);
    }
    assert_int_equal(wal__index_summary(&index, SESSIONS, &read), WAL__FMT_FIELD);
}

TEST(index_fmt__find_is_by_number)
{
    struct sample sample = make_sample();
    struct wal__index index;

    assert_int_equal(decode(&sample, &index), WAL__FMT_OK);
    for (uint32_t number = 0; number < 40; number++) {
        uint32_t rank = (number - 10) / 3;
        bool is_there = number >= 10 && number % 3 == 1 && rank < SESSIONS;
        struct wal__summary read = {.number = 0};

        assert_int_equal(wal__index_find(&index, number, &read),
                         is_there ? WAL__FMT_OK : WAL__FMT_ZERO);
        assert_int_equal(read.number, is_there ? number : 0);
    }
}

TEST(index_fmt__empty_index_is_valid)
{
    struct wal__index_header header = {.end = 1};
    struct wal__index index;
    struct wal__summary read;
    uint8_t bytes[WAL__INDEX_HEADER_SIZE];

    wal__index_finish(&header, bytes);
    assert_int_equal(wal__index_decode((struct wal__span){bytes, sizeof(bytes)}, &index),
                     WAL__FMT_OK);
    assert_int_equal(wal__index_find(&index, 1, &read), WAL__FMT_ZERO);
}

TEST(index_fmt__truncated_index_is_rejected)
{
    struct sample sample = make_sample();
    struct wal__index index;

    for (size_t size = 0; size < sample.size; size++) {
        uint8_t *cut = codec_block(size + 1);

        memcpy(cut, sample.bytes, size);
        assert_int_equal(wal__index_decode((struct wal__span){cut, size}, &index), WAL__FMT_SHORT);
    }
}

TEST(index_fmt__flipped_bit_is_rejected)
{
    struct sample sample = make_sample();
    struct wal__index index;

    for (size_t bit = 0; bit < 8 * sample.size; bit++) {
        uint8_t mask = (uint8_t)(1u << bit % 8);
        enum wal__fmt wanted = WAL__FMT_DATA_CRC;

        if (bit < 64) {
            wanted = WAL__FMT_MAGIC;
        } else if (bit < 112 * 8) {
            wanted = WAL__FMT_HEADER_CRC;
        }
        sample.bytes[bit / 8] ^= mask;
        assert_int_equal(decode(&sample, &index), wanted);
        sample.bytes[bit / 8] ^= mask;
    }
}

/* Version 2 is read for what it proves, and no other than these. A catalogue of version 3 is used
 * as the present one. */
TEST(index_fmt__older_version_is_decoded_on_request)
{
    static const uint32_t versions[] = {0, 1, 2, 3, 4, 5, UINT32_MAX};
    struct wal__catalogue_header header = {.session_count = 3, .position = 9};
    struct wal__catalogue_header read;
    uint8_t at[WAL__CATALOGUE_HEADER_SIZE];
    struct sample sample = make_sample();
    struct wal__index index;

    for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
        const struct wal__span bytes = {at, sizeof(at)};
        uint32_t version = versions[i];
        bool known = version >= 2 && version <= 4;

        wal__put32(sample.bytes + 8, version);
        wal__put32(sample.bytes + 108, wal__crc32(0, sample.bytes, 108));
        assert_int_equal(
            wal__index_decode_any((struct wal__span){sample.bytes, sample.size}, &index),
            known ? WAL__FMT_OK : WAL__FMT_VERSION);
        assert_true(!known || index.header.version == version);
        wal__catalogue_header_encode(&header, at);
        wal__put32(at + 8, version);
        wal__put32(at + 124, wal__crc32(0, at, 124));
        known = known || version == 4;
        assert_int_equal(wal__catalogue_header_decode_any(bytes, &read),
                         known ? WAL__FMT_OK : WAL__FMT_VERSION);
        assert_true(!known || (read.version == version && read.position == 9));
        known = known && version != 2;
        assert_int_equal(wal__catalogue_header_decode(bytes, &read),
                         known ? WAL__FMT_OK : WAL__FMT_VERSION);
    }
}

/* Of a header that was changed, with its checksum right. */
static enum wal__fmt decode_index(struct wal__span bytes)
{
    struct wal__index index;

    wal__put32((uint8_t *)(uintptr_t)bytes.data + 108, wal__crc32(0, bytes.data, 108));
    return wal__index_decode(bytes, &index);
}

TEST(index_fmt__header_field_out_of_range_is_rejected)
{
    struct sample sample = make_sample();
    const struct wal__span payload = {sample.bytes, sample.size};
    static const struct codec_change changes[] = {{8, 4, 2, VERSION},
                                                  {8, 4, 3, OK},
                                                  {8, 4, 4, OK},
                                                  {8, 4, 5, VERSION},
                                                  {12, 4, POSTINGS + 1, SHORT},
                                                  {12, 4, SESSIONS - 1, FIELD},
                                                  {12, 4, SESSIONS + 1, SHORT},
                                                  {16, 4, UINT32_MAX, FIELD},
                                                  {20, 4, UINT32_MAX, SHORT},
                                                  {20, 4, 0, FIELD},
                                                  {60, 4, 0, OK},
                                                  {60, 4, 8192, FIELD},
                                                  {76, 4, 1, FIELD},
                                                  {96, 4, 1, FIELD},
                                                  {100, 4, 1, FIELD},
                                                  {104, 4, 1, DATA_CRC}};

    CODEC_ASSERT_CHANGES(decode_index, payload, changes);
}

/* A checksum holds over bytes that a broken writer made. */
TEST(index_fmt__postings_beyond_the_index_are_rejected)
{
    struct sample sample = make_sample();
    uint8_t *summary = sample.bytes + WAL__INDEX_HEADER_SIZE;
    struct wal__index index;
    struct wal__summary read;

    wal__put32(summary + 104, UINT32_MAX);
    wal__put32(summary + 108, 2);
    wal__index_finish(&sample.header, sample.bytes);
    assert_int_equal(decode(&sample, &index), WAL__FMT_OK);
    assert_int_equal(wal__index_summary(&index, 0, &read), WAL__FMT_FIELD);
    wal__put32(summary + 104, POSTINGS - 1);
    wal__index_finish(&sample.header, sample.bytes);
    assert_int_equal(decode(&sample, &index), WAL__FMT_OK);
    assert_int_equal(wal__index_summary(&index, 0, &read), WAL__FMT_FIELD);
}

/* ------------------------------------------------------------ catalogue --- */

TEST(index_fmt__catalogue_header_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__catalogue_header header = {
            .session_count = (uint32_t)test_random(),
            .text_size = test_random(),
            .position = test_random(),
            .last_sequence = test_random(),
            .chain = (uint32_t)test_random(),
            .last_session = (uint32_t)test_random(),
            .uuid = "fedcba987654321",
            .table_crc = (uint32_t)test_random(),
        };

        header.hidden_count = (uint32_t)(test_random() % ((uint64_t)header.session_count + 1));

        struct wal__catalogue_header read;
        uint8_t at[WAL__CATALOGUE_HEADER_SIZE];

        memset(&read, 0, sizeof(read));
        wal__catalogue_header_encode(&header, at);
        assert_int_equal(wal__catalogue_header_decode((struct wal__span){at, sizeof(at)}, &read),
                         WAL__FMT_OK);
        assert_int_equal(read.session_count, header.session_count);
        assert_int_equal(read.text_size, header.text_size);
        assert_int_equal(read.position, header.position);
        assert_int_equal(read.last_sequence, header.last_sequence);
        assert_int_equal(read.chain, header.chain);
        assert_int_equal(read.last_session, header.last_session);
        assert_memory_equal(read.uuid, header.uuid, 16);
        assert_int_equal(read.table_crc, header.table_crc);
        assert_int_equal(read.hidden_count, header.hidden_count);
        assert_int_equal(wal__get32(at + 68), header.hidden_count);
    }
}

TEST(index_fmt__catalogue_header_faults_are_rejected)
{
    struct wal__catalogue_header header = {.session_count = 3};
    uint8_t at[WAL__CATALOGUE_HEADER_SIZE];
    struct wal__span bytes = {at, sizeof(at)};

    wal__catalogue_header_encode(&header, at);
    for (size_t bit = 0; bit < 8 * sizeof(at); bit++) {
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(wal__catalogue_header_decode(bytes, &header),
                         bit < 64 ? WAL__FMT_MAGIC : WAL__FMT_HEADER_CRC);
        at[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t size = 0; size < sizeof(at); size++) {
        assert_int_equal(wal__catalogue_header_decode((struct wal__span){at, size}, &header),
                         WAL__FMT_SHORT);
    }
}

static enum wal__fmt decode_catalogue(struct wal__span bytes)
{
    struct wal__catalogue_header header;

    wal__put32((uint8_t *)(uintptr_t)bytes.data + 124, wal__crc32(0, bytes.data, 124));
    return wal__catalogue_header_decode(bytes, &header);
}

TEST(index_fmt__catalogue_field_out_of_range_is_rejected)
{
    struct wal__catalogue_header header = {.session_count = 3};
    uint8_t at[WAL__CATALOGUE_HEADER_SIZE];
    const struct wal__span payload = {at, sizeof(at)};
    static const struct codec_change changes[] = {
        {8, 1, 2, VERSION}, {8, 1, 3, OK},  {8, 1, 4, OK},     {8, 1, 5, VERSION}, {68, 1, 3, OK},
        {68, 1, 4, FIELD},  {72, 1, 1, OK}, {76, 1, 1, FIELD}, {123, 1, 1, FIELD}};

    wal__catalogue_header_encode(&header, at);
    CODEC_ASSERT_CHANGES(decode_catalogue, payload, changes);
}

TEST(index_fmt__catalogue_sections_begin_on_pages)
{
    struct wal__catalogue_header header = {
        .session_count = 1025,
        .text_size = 4097,
    };
    struct wal__catalogue_layout layout;

    assert_int_equal(wal__catalogue_layout(&header, &layout), WAL__FMT_OK);
    assert_int_equal(layout.summaries, 4096);
    /* 1,025 summaries of 160 bytes end 160 bytes into the 41st page. */
    assert_int_equal(layout.by_id, 4096 * 42);
    assert_int_equal(layout.by_recent, 4096 * 44);
    assert_int_equal(layout.by_cwd, 4096 * 46);
    assert_int_equal(layout.texts, 4096 * 48);
    assert_int_equal(layout.table, 4096 * 50);
    assert_int_equal(layout.size, 4096 * 50 + 50 * 4);
}

TEST(index_fmt__catalogue_layout_bounds_texts)
{
    struct wal__catalogue_header header = {
        .session_count = UINT32_MAX,
        .text_size = UINT32_MAX,
    };
    struct wal__catalogue_layout layout;

    assert_int_equal(wal__catalogue_layout(&header, &layout), WAL__FMT_OK);
    assert_true(layout.size > (uint64_t)UINT32_MAX * 173);
    header.text_size++;
    assert_int_equal(wal__catalogue_layout(&header, &layout), WAL__FMT_FIELD);
    header.text_size = UINT64_MAX;
    assert_int_equal(wal__catalogue_layout(&header, &layout), WAL__FMT_FIELD);
}
