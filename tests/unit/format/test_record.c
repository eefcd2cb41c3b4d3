/*
 * test_record.c - the payloads of frames: round trips of random records, every field outside its
 * range, and that no other size is accepted. Payloads lie in blocks of exactly their size, so that
 * the address sanitizer sees a read beyond the end.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/bytes/bytes.h"
#include "format/segment/record.h"
#include "format/segment/segment_fmt.h"
#include "tests/lib/codec.h"

enum {
    ROUNDS = 1000
};

/* Of texts whose bytes do not matter. */
static uint8_t pool[WAL__METADATA_MAX + 1];

static struct wal__span text_of(const char *text)
{
    struct wal__span span = {(const uint8_t *)text, strlen(text)};

    return span;
}

#define DECODE(record)                                             \
    static enum wal__fmt decode_##record(struct wal__span payload) \
    {                                                              \
        struct wal__##record##_record out;                         \
                                                                   \
        return wal__##record##_record_decode(payload, &out);       \
    }                                                              \
    _Static_assert(1, "")

#define MAKE(record)                                                                 \
    static struct wal__span make_##record(const struct wal__##record##_record *from) \
    {                                                                                \
        size_t size = wal__##record##_record_size(from);                             \
        uint8_t *block = codec_block(size);                                          \
                                                                                     \
        wal__##record##_record_encode(from, block);                                  \
        return (struct wal__span){block, size};                                      \
    }                                                                                \
    _Static_assert(1, "")

DECODE(open);
DECODE(entry);
DECODE(fork);
DECODE(head);
DECODE(commit);
DECODE(seal);
DECODE(doc);
DECODE(redact);
MAKE(session);
MAKE(entry);
MAKE(fork);
MAKE(head);
MAKE(doc);
MAKE(redact);

static enum wal__fmt decode_session(struct wal__span payload)
{
    struct wal__session_record out;

    return wal__session_record_decode(payload, WAL__FORMAT_VERSION, &out);
}

static enum wal__fmt decode_session_0(struct wal__span payload)
{
    struct wal__session_record out;

    return wal__session_record_decode(payload, 0, &out);
}

/* OPEN */

static struct wal__span make_open(const struct wal__open_record *open,
                                  const struct wal__damage *damage)
{
    size_t size = wal__open_record_size(open->damage_count);
    uint8_t *block = codec_block(size);
    struct wal__span payload = {block, size};

    wal__open_record_encode(open, damage, block);
    return payload;
}

TEST(record__open_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__damage damage[WAL__DAMAGE_MAX];
        struct wal__open_record open = {
            .previous_id = test_random() | 1,
            .previous_end = 4096 + test_random() % (60u << 20),
            .last_sequence = test_random(),
            .chain = (uint32_t)test_random(),
            .damage_count = (uint32_t)(test_random() % (WAL__DAMAGE_MAX + 1)),
            .epoch = test_random() | 1,
        };
        struct wal__open_record read;
        struct wal__span payload;

        for (uint32_t k = 0; k < open.damage_count; k++) {
            damage[k].offset = (uint64_t)k * 8192 + test_random() % 8192;
            damage[k].size = test_random();
            damage[k].first_sequence = test_random();
            damage[k].last_sequence = test_random();
        }
        payload = make_open(&open, damage);
        assert_int_equal(wal__open_record_decode(payload, &read), WAL__FMT_OK);
        assert_true(read.previous_id == open.previous_id);
        assert_true(read.previous_end == open.previous_end);
        assert_true(read.last_sequence == open.last_sequence);
        assert_int_equal(read.chain, open.chain);
        assert_int_equal(read.damage_count, open.damage_count);
        assert_true(read.epoch == open.epoch);
        for (uint32_t k = 0; k < open.damage_count; k++) {
            struct wal__damage one = wal__open_record_damage(&read, k);

            assert_true(one.offset == damage[k].offset);
            assert_true(one.size == damage[k].size);
            assert_true(one.first_sequence == damage[k].first_sequence);
            assert_true(one.last_sequence == damage[k].last_sequence);
        }
        codec_free(payload);
    }
}

TEST(record__open_is_checked)
{
    static const struct codec_change changes[] = {
        {0, 8, 0, FIELD},     {8, 8, 4095, FIELD},
        {8, 8, 64 << 20, OK}, {8, 8, (64 << 20) + 1, FIELD},
        {28, 4, 1, FIELD},    {28, 4, UINT32_MAX, FIELD},
        {32, 8, 0, FIELD},    {72, 8, 8192, FIELD}};
    struct wal__damage damage[2] = {{8192, 100, 1, 2}, {16384, 8, 0, 0}};
    struct wal__open_record open = {
        .previous_id = 1,
        .previous_end = 4096,
        .damage_count = 2,
        .epoch = 1,
    };
    struct wal__span payload = make_open(&open, damage);

    codec_assert_size_is_exact(decode_open, payload, 40);
    CODEC_ASSERT_CHANGES(decode_open, payload, changes);
    codec_free(payload);
}

TEST(record__open_of_the_first_segment_has_no_previous)
{
    struct wal__open_record open = {.epoch = 1};
    struct wal__span payload = make_open(&open, NULL);

    assert_int_equal(decode_open(payload), WAL__FMT_OK);
    assert_int_equal(codec_decode_with(decode_open, payload, 8, 8, 4096), WAL__FMT_FIELD);
    codec_free(payload);
}

TEST(record__open_takes_256_ranges_at_most)
{
    static struct wal__damage damage[WAL__DAMAGE_MAX + 1];
    struct wal__open_record open = {.epoch = 1};

    for (uint32_t i = 0; i <= WAL__DAMAGE_MAX; i++) {
        damage[i].offset = i;
    }
    for (uint32_t count = 255; count <= WAL__DAMAGE_MAX + 1; count++) {
        struct wal__span payload;

        open.damage_count = count;
        payload = make_open(&open, damage);
        assert_int_equal(decode_open(payload), count <= 256 ? WAL__FMT_OK : WAL__FMT_FIELD);
        codec_free(payload);
    }
}

/* SESSION */

TEST(record__session_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__session_record session = {
            .created_ms = (int64_t)test_random(),
            .schema_version = (uint32_t)test_random() | 1,
            .flags = (uint32_t)(test_random() % 4),
            .id = codec_text(1, WAL__ID_MAX),
            .cwd = codec_text(0, WAL__TEXT_MAX),
            .project = codec_text(0, WAL__TEXT_MAX),
            .title = codec_text(0, WAL__TEXT_MAX),
            .parent_id = codec_text(0, WAL__ID_MAX),
            .source = codec_text(0, WAL__TEXT_MAX),
            .metadata = codec_text(0, test_random() % 64 == 0 ? WAL__METADATA_MAX : WAL__TEXT_MAX),
        };
        struct wal__session_record read;
        struct wal__span payload = make_session(&session);

        assert_int_equal(wal__session_record_decode(payload, WAL__FORMAT_VERSION, &read),
                         WAL__FMT_OK);
        assert_true(read.created_ms == session.created_ms);
        assert_int_equal(read.schema_version, session.schema_version);
        assert_int_equal(read.flags, session.flags);
        codec_assert_same_text(read.id, session.id);
        codec_assert_same_text(read.cwd, session.cwd);
        codec_assert_same_text(read.project, session.project);
        codec_assert_same_text(read.title, session.title);
        codec_assert_same_text(read.parent_id, session.parent_id);
        codec_assert_same_text(read.source, session.source);
        codec_assert_same_text(read.metadata, session.metadata);
        codec_free(payload);
    }
}

TEST(record__session_is_checked)
{
    static const struct codec_change changes[] = {{8, 4, 0, FIELD},
                                                  {12, 4, 1, OK},
                                                  {12, 4, 7, OK},
                                                  {12, 4, 8, FIELD},
                                                  {28, 4, UINT32_MAX, FIELD}};
    struct wal__session_record session = {
        .schema_version = 1,
        .id = {pool, 3},
        .title = {pool, 5},
        .metadata = {pool, 2},
    };
    struct wal__span payload = make_session(&session);

    codec_assert_size_is_exact(decode_session, payload, 32);
    CODEC_ASSERT_CHANGES(decode_session, payload, changes);
    for (size_t offset = 16; offset < 28; offset += 2) {
        assert_int_equal(codec_decode_with(decode_session, payload, offset, 2, 9), WAL__FMT_FIELD);
    }
    codec_free(payload);
}

TEST(record__session_texts_are_bounded)
{
    struct wal__session_record session = {.schema_version = 1, .id = {pool, 1}};
    const struct {
        struct wal__span *text;
        size_t max;
    } texts[] = {
        {&session.id, 255},           {&session.cwd, 4096},      {&session.project, 4096},
        {&session.title, 4096},       {&session.parent_id, 255}, {&session.source, 4096},
        {&session.metadata, 1 << 20},
    };

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct wal__span before = *texts[i].text;

        for (size_t over = 0; over <= 1; over++) {
            struct wal__span payload;

            texts[i].text->data = pool;
            texts[i].text->size = texts[i].max + over;
            payload = make_session(&session);
            assert_int_equal(decode_session(payload), over == 0 ? WAL__FMT_OK : WAL__FMT_FIELD);
            codec_free(payload);
        }
        *texts[i].text = before;
    }
}

TEST(record__session_without_id_is_rejected)
{
    struct wal__session_record session = {.schema_version = 1};
    struct wal__span payload = make_session(&session);

    assert_int_equal(decode_session(payload), WAL__FMT_FIELD);
    codec_free(payload);
}

/* SESSION of version 0; it is not written, so the tests do. */

enum {
    SESSION_0_FIXED = 28
};

static struct wal__span make_session_0(const struct wal__session_record *session, int64_t created_s)
{
    const struct wal__span texts[] = {session->id, session->cwd, session->project,
                                      session->parent_id, session->source};
    size_t size = SESSION_0_FIXED + session->metadata.size;
    uint8_t *block;
    uint8_t *at;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size += texts[i].size;
    }
    block = codec_block(size);
    memset(block, 0, SESSION_0_FIXED);
    wal__put64(block, (uint64_t)created_s);
    wal__put32(block + 8, session->flags);
    wal__put32(block + 24, (uint32_t)session->metadata.size);
    at = block + SESSION_0_FIXED;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        wal__put16(block + 12 + 2 * i, (uint16_t)texts[i].size);
        if (texts[i].size > 0) {
            memcpy(at, texts[i].data, texts[i].size);
        }
        at += texts[i].size;
    }
    if (session->metadata.size > 0) {
        memcpy(at, session->metadata.data, session->metadata.size);
    }
    return (struct wal__span){block, size};
}

TEST(record__session_of_version_0_is_read)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__session_record session = {
            .flags = (uint32_t)(test_random() % 2),
            .id = codec_text(1, WAL__ID_MAX),
            .cwd = codec_text(0, WAL__TEXT_MAX),
            .project = codec_text(0, WAL__TEXT_MAX),
            .parent_id = codec_text(0, WAL__ID_MAX),
            .source = codec_text(0, WAL__TEXT_MAX),
            .metadata = codec_text(0, WAL__TEXT_MAX),
        };
        int64_t created_s = (int64_t)(test_random() % (1u << 31)) - (1 << 30);
        struct wal__session_record read;
        struct wal__span payload = make_session_0(&session, created_s);

        assert_int_equal(wal__session_record_decode(payload, 0, &read), WAL__FMT_OK);
        assert_true(read.created_ms == created_s * 1000);
        assert_int_equal(read.schema_version, 0);
        assert_int_equal(read.flags, session.flags);
        codec_assert_same_text(read.id, session.id);
        codec_assert_same_text(read.cwd, session.cwd);
        codec_assert_same_text(read.project, session.project);
        assert_int_equal(read.title.size, 0);
        codec_assert_same_text(read.parent_id, session.parent_id);
        codec_assert_same_text(read.source, session.source);
        codec_assert_same_text(read.metadata, session.metadata);
        codec_free(payload);
    }
}

TEST(record__session_of_version_0_is_checked)
{
    static const struct codec_change changes[] = {{8, 4, 1, OK},
                                                  {8, 4, 2, FIELD},
                                                  {22, 1, 1, FIELD},
                                                  {23, 1, 1, FIELD},
                                                  {24, 4, UINT32_MAX, FIELD}};
    struct wal__session_record session = {
        .id = {pool, 3},
        .source = {pool, 5},
        .metadata = {pool, 2},
    };
    struct wal__span payload = make_session_0(&session, 1);

    codec_assert_size_is_exact(decode_session_0, payload, SESSION_0_FIXED);
    CODEC_ASSERT_CHANGES(decode_session_0, payload, changes);
    for (size_t offset = 12; offset < 22; offset += 2) {
        assert_int_equal(codec_decode_with(decode_session_0, payload, offset, 2, 9),
                         WAL__FMT_FIELD);
    }
    codec_free(payload);
}

TEST(record__session_of_version_0_fits_milliseconds)
{
    static const struct {
        int64_t created_s;
        enum wal__fmt expected;
    } cases[] = {
        {INT64_MAX / 1000, WAL__FMT_OK},
        {INT64_MAX / 1000 + 1, WAL__FMT_FIELD},
        {INT64_MIN / 1000, WAL__FMT_OK},
        {INT64_MIN / 1000 - 1, WAL__FMT_FIELD},
    };
    struct wal__session_record session = {.id = {pool, 1}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct wal__span payload = make_session_0(&session, cases[i].created_s);

        assert_int_equal(decode_session_0(payload), cases[i].expected);
        codec_free(payload);
    }
}

/* ENTRY */

TEST(record__entry_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__entry_record entry = {
            .form = (uint8_t)(test_random() % 2),
            .id = codec_text(1, 255),
            .type = codec_text(0, 255),
            .time = codec_text(0, WAL__TIME_MAX),
            .run = codec_text(0, 255),
            .meta = codec_text(0, 5000),
            .payload = codec_text(0, 70000),
        };
        struct wal__entry_record read;
        struct wal__span payload = make_entry(&entry);

        assert_int_equal(wal__entry_record_decode(payload, &read), WAL__FMT_OK);
        assert_int_equal(read.form, entry.form);
        codec_assert_same_text(read.id, entry.id);
        codec_assert_same_text(read.type, entry.type);
        codec_assert_same_text(read.time, entry.time);
        codec_assert_same_text(read.run, entry.run);
        codec_assert_same_text(read.meta, entry.meta);
        codec_assert_same_text(read.payload, entry.payload);
        codec_free(payload);
    }
}

TEST(record__entry_out_of_line_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__span digest = codec_text(32, 32);
        struct wal__entry_record entry = {
            .form = (uint8_t)(test_random() % 2),
            .id = codec_text(1, 255),
            .type = codec_text(0, 255),
            .time = codec_text(0, WAL__TIME_MAX),
            .run = codec_text(0, 255),
            .meta = codec_text(0, 5000),
            .payload = codec_text(0, WAL__EXCERPT_MAX),
            .digest = digest.data,
            .payload_size = WAL__PAYLOAD_INLINE_MAX + 1 + test_random() % (1 << 30),
        };
        struct wal__entry_record read;
        struct wal__span payload = make_entry(&entry);

        assert_int_equal(wal__entry_record_decode(payload, &read), WAL__FMT_OK);
        assert_int_equal(read.form, entry.form);
        codec_assert_same_text(read.id, entry.id);
        codec_assert_same_text(read.meta, entry.meta);
        codec_assert_same_text(read.payload, entry.payload);
        assert_non_null(read.digest);
        assert_memory_equal(read.digest, digest.data, 32);
        assert_int_equal(read.payload_size, entry.payload_size);
        codec_free(payload);
    }
}

TEST(record__entry_out_of_line_is_checked)
{
    static const struct {
        uint64_t size;
        uint32_t excerpt;
        enum wal__fmt expected;
    } cases[] = {
        {256 * 1024, 0, WAL__FMT_FIELD},          {256 * 1024 + 1, 0, WAL__FMT_OK},
        {UINT64_C(1) << 35, 0, WAL__FMT_OK},      {(UINT64_C(1) << 35) + 1, 0, WAL__FMT_FIELD},
        {1 << 20, WAL__EXCERPT_MAX, WAL__FMT_OK}, {1 << 20, WAL__EXCERPT_MAX + 1, WAL__FMT_FIELD},
    };
    struct wal__entry_record entry = {.id = {pool, 3}, .digest = pool};
    struct wal__span payload;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        entry.payload_size = cases[i].size;
        entry.payload = (struct wal__span){pool, cases[i].excerpt};
        payload = make_entry(&entry);
        assert_int_equal(decode_entry(payload), cases[i].expected);
        codec_free(payload);
    }
    /* The digest and the size are not whole. */
    entry.digest = NULL;
    for (size_t size = 0; size < 40; size++) {
        entry.payload.size = size;
        payload = make_entry(&entry);
        assert_int_equal(codec_decode_with(decode_entry, payload, 0, 1, 2), WAL__FMT_FIELD);
        codec_free(payload);
    }
}

/* What an erased entry may keep. */
TEST(record__erased_entry_is_checked)
{
    uint8_t bytes[WAL__ERASED_PAYLOAD_MAX + 1] = {0};
    struct wal__entry_record entry = {.id = {pool, 3}, .payload = {bytes, sizeof(bytes)}};
    struct wal__span payload = make_entry(&entry);

    assert_int_equal(codec_decode_with(decode_entry, payload, 0, 1, 4), WAL__FMT_FIELD);
    codec_free(payload);
    entry.payload.size--;
    payload = make_entry(&entry);
    assert_int_equal(codec_decode_with(decode_entry, payload, 0, 1, 5), WAL__FMT_OK);
    codec_free(payload);
    entry.payload.size = 0;
    entry.meta = (struct wal__span){pool, 1};
    payload = make_entry(&entry);
    assert_int_equal(codec_decode_with(decode_entry, payload, 0, 1, 4), WAL__FMT_FIELD);
    codec_free(payload);
}

TEST(record__entry_is_checked)
{
    static const struct codec_change changes[] = {
        {0, 1, 1, OK},
        {0, 1, 4, OK},
        {0, 1, 6, FIELD},
        {8, 4, UINT32_MAX, FIELD},
        {8, 8, (UINT64_C(31) << 32) | 0xffffffffu, FIELD}};
    struct wal__entry_record entry = {
        .id = {pool, 3},
        .time = {pool, 4},
        .run = {pool, 2},
        .payload = {pool, 30},
    };
    struct wal__span payload = make_entry(&entry);

    codec_assert_size_is_exact(decode_entry, payload, 16);
    CODEC_ASSERT_CHANGES(decode_entry, payload, changes);
    for (size_t offset = 5; offset < 8; offset++) {
        assert_int_equal(codec_decode_with(decode_entry, payload, offset, 1, 1), WAL__FMT_FIELD);
    }
    /* meta_size 2^32 - 1 and payload_size 31: right modulo 2^32. */
    codec_free(payload);
}

TEST(record__entry_without_id_is_rejected)
{
    struct wal__entry_record entry = {.payload = {pool, 30}};
    struct wal__span payload = make_entry(&entry);

    assert_int_equal(decode_entry(payload), WAL__FMT_FIELD);
    codec_free(payload);
}

TEST(record__entry_time_is_bounded)
{
    struct wal__entry_record entry = {.id = {pool, 1}, .time = {pool, 64}};
    struct wal__span payload = make_entry(&entry);

    assert_int_equal(decode_entry(payload), WAL__FMT_OK);
    codec_free(payload);
    entry.time.size = 65;
    payload = make_entry(&entry);
    assert_int_equal(decode_entry(payload), WAL__FMT_FIELD);
    codec_free(payload);
}

TEST(record__entry_payload_is_bounded)
{
    uint8_t *large = calloc(1, WAL__PAYLOAD_MAX + 1);
    struct wal__entry_record entry = {.id = {pool, 1}};

    assert_non_null(large);
    for (size_t over = 0; over <= 1; over++) {
        struct wal__span payload;

        entry.payload.data = large;
        entry.payload.size = (size_t)WAL__PAYLOAD_MAX + over;
        payload = make_entry(&entry);
        assert_int_equal(decode_entry(payload), over == 0 ? WAL__FMT_OK : WAL__FMT_FIELD);
        codec_free(payload);
    }
    free(large);
}

TEST(record__kinds_are_the_formats)
{
    static const char *const names[] = {
        "message",
        "session_header",
        "message_delta_batch",
        "model_change",
        "thinking_level_change",
        "runtime_init",
        "system_prompt_override",
        "compaction_summary",
        "branch_summary",
        "redaction",
        "custom",
        "compaction",
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint8_t kind = (uint8_t)(i + 1);

        assert_int_equal(wal__kind_from_name(text_of(names[i])), kind);
        codec_assert_same_text(wal__kind_name(kind), text_of(names[i]));
    }
    assert_int_equal(wal__kind_from_name(text_of("messages")), WAL__KIND_NAMED);
    assert_int_equal(wal__kind_from_name(text_of("messag")), WAL__KIND_NAMED);
    assert_int_equal(wal__kind_from_name(text_of("")), WAL__KIND_NAMED);
    assert_int_equal(wal__kind_name(WAL__KIND_NAMED).size, 0);
    assert_int_equal(wal__kind_name(13).size, 0);
    assert_int_equal(wal__kind_name(255).size, 0);
}

/* FORK */

TEST(record__fork_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__fork_record fork = {
            .inherited = test_random(),
            .depth = (uint32_t)(test_random() % (WAL__LINEAGE_MAX + 1)),
            .source = (uint32_t)test_random() | 1,
            .owner = (uint32_t)test_random() | 1,
            .stream = (uint8_t)test_random(),
            .source_id = codec_text(1, 255),
            .owner_id = codec_text(1, 255),
            .entry_id = codec_text(0, 255),
        };
        struct wal__fork_record read;
        struct wal__span payload = make_fork(&fork);

        assert_int_equal(wal__fork_record_decode(payload, &read), WAL__FMT_OK);
        assert_true(read.inherited == fork.inherited);
        assert_int_equal(read.depth, fork.depth);
        assert_int_equal(read.source, fork.source);
        assert_int_equal(read.owner, fork.owner);
        assert_int_equal(read.stream, fork.stream);
        codec_assert_same_text(read.source_id, fork.source_id);
        codec_assert_same_text(read.owner_id, fork.owner_id);
        codec_assert_same_text(read.entry_id, fork.entry_id);
        codec_free(payload);
    }
}

TEST(record__fork_is_checked)
{
    static const struct codec_change changes[] = {
        {8, 4, 65535, OK},      {8, 4, 65536, FIELD},   {12, 4, 0, FIELD},  {16, 4, 0, FIELD},
        {20, 2, 0x0200, FIELD}, {20, 2, 0x0002, FIELD}, {22, 1, 255, FIELD}};
    uint8_t block[] = {9, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0,   0,   2,  0,
                       0, 0, 3, 0, 0, 0, 1, 1, 1, 0, 'a', 'b', 'c'};
    struct wal__span payload = {block, sizeof(block)};

    codec_assert_size_is_exact(decode_fork, payload, 24);
    CODEC_ASSERT_CHANGES(decode_fork, payload, changes);
}

/* HEAD */

TEST(record__head_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__head_record head = {
            .name = codec_text(1, 255),
            .entry_id = codec_text(0, 255),
            .note = codec_text(0, WAL__TEXT_MAX),
        };
        struct wal__head_record read;
        struct wal__span payload = make_head(&head);

        assert_int_equal(wal__head_record_decode(payload, &read), WAL__FMT_OK);
        codec_assert_same_text(read.name, head.name);
        codec_assert_same_text(read.entry_id, head.entry_id);
        codec_assert_same_text(read.note, head.note);
        codec_free(payload);
    }
}

TEST(record__head_is_checked)
{
    uint8_t block[] = {1, 1, 1, 0, 0, 0, 0, 0, 'm', 'e', 'n'};
    struct wal__span payload = {block, sizeof(block)};

    codec_assert_size_is_exact(decode_head, payload, 8);
    assert_int_equal(codec_decode_with(decode_head, payload, 0, 2, 0x0200), WAL__FMT_FIELD);
    for (size_t offset = 4; offset < 8; offset++) {
        assert_int_equal(codec_decode_with(decode_head, payload, offset, 1, 1), WAL__FMT_FIELD);
    }
}

TEST(record__head_note_is_bounded)
{
    struct wal__head_record head = {.name = {pool, 1}};

    for (size_t size = WAL__TEXT_MAX; size <= WAL__TEXT_MAX + 1; size++) {
        uint8_t block[WAL__TEXT_MAX + 16];
        struct wal__span payload = {block, 0};

        head.note.data = pool;
        head.note.size = size;
        payload.size = wal__head_record_size(&head);
        wal__head_record_encode(&head, block);
        assert_int_equal(decode_head(payload),
                         size == WAL__TEXT_MAX ? WAL__FMT_OK : WAL__FMT_FIELD);
    }
}

/* COMMIT */

static struct wal__span make_commit(const struct wal__commit_record *commit,
                                    const uint32_t *sessions)
{
    size_t size = wal__commit_record_size(commit->session_count);
    uint8_t *block = codec_block(size);
    struct wal__span payload = {block, size};

    wal__commit_record_encode(commit, sessions, block);
    return payload;
}

TEST(record__commit_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        static uint32_t sessions[WAL__COMMIT_SESSIONS_MAX];
        struct wal__commit_record commit = {
            .first_sequence = test_random(),
            .frame_count = (uint32_t)test_random(),
            .group_size = (uint32_t)test_random(),
            .chain = (uint32_t)test_random(),
            .durable_off = 4096 + (uint32_t)(test_random() % (60u << 20)),
            .epoch = test_random() | 1,
            .clock_ms = (int64_t)test_random(),
            .pack_durable = test_random(),
            .flags = (uint32_t)(test_random() % 2),
            .session_count = (uint32_t)codec_text(0, WAL__COMMIT_SESSIONS_MAX).size,
        };
        struct wal__commit_record read;
        struct wal__span payload;

        for (uint32_t k = 0; k < commit.session_count; k++) {
            sessions[k] = k * 1000 + (uint32_t)(test_random() % 1000);
        }
        payload = make_commit(&commit, sessions);
        assert_int_equal(wal__commit_record_decode(payload, &read), WAL__FMT_OK);
        assert_true(read.first_sequence == commit.first_sequence);
        assert_int_equal(read.frame_count, commit.frame_count);
        assert_int_equal(read.group_size, commit.group_size);
        assert_int_equal(read.chain, commit.chain);
        assert_int_equal(read.durable_off, commit.durable_off);
        assert_true(read.epoch == commit.epoch);
        assert_true(read.clock_ms == commit.clock_ms);
        assert_true(read.pack_durable == commit.pack_durable);
        assert_int_equal(read.flags, commit.flags);
        assert_int_equal(read.session_count, commit.session_count);
        for (uint32_t k = 0; k < commit.session_count; k++) {
            assert_int_equal(wal__commit_record_session(&read, k), sessions[k]);
        }
        codec_free(payload);
    }
}

TEST(record__commit_is_checked)
{
    static const struct codec_change changes[] = {
        {20, 4, 4095, FIELD},       {24, 8, 0, FIELD}, {48, 4, 1, OK},   {48, 4, 2, FIELD},
        {52, 4, 0x40000003, FIELD}, {60, 4, 4, FIELD}, {64, 4, 3, FIELD}};
    static const uint32_t sessions[] = {4, 5, 900};
    struct wal__commit_record commit = {
        .durable_off = 4096,
        .epoch = 1,
        .session_count = 3,
    };
    struct wal__span payload = make_commit(&commit, sessions);

    codec_assert_size_is_exact(decode_commit, payload, 56);
    CODEC_ASSERT_CHANGES(decode_commit, payload, changes);
    codec_free(payload);
}

TEST(record__commit_takes_4096_sessions_at_most)
{
    static uint32_t sessions[WAL__COMMIT_SESSIONS_MAX + 1];
    struct wal__commit_record commit = {.durable_off = 4096, .epoch = 1};

    for (uint32_t i = 0; i <= WAL__COMMIT_SESSIONS_MAX; i++) {
        sessions[i] = i;
    }
    for (uint32_t count = 4096; count <= 4097; count++) {
        struct wal__span payload;

        commit.session_count = count;
        payload = make_commit(&commit, sessions);
        assert_int_equal(decode_commit(payload), count == 4096 ? WAL__FMT_OK : WAL__FMT_FIELD);
        codec_free(payload);
    }
}

/* SEAL */

TEST(record__seal_round_trip_and_checks)
{
    static const struct codec_change changes[] = {{0, 8, 8200, FIELD}, {20, 4, 1, FIELD}};
    struct wal__seal_record seal = {
        .end = 8192,
        .last_sequence = 99,
        .chain = 0xabcdef01,
        .index_offset = 8192,
    };
    struct wal__seal_record read;
    uint8_t block[WAL__SEAL_SIZE];
    struct wal__span payload = {block, sizeof(block)};

    wal__seal_record_encode(&seal, block);
    assert_int_equal(wal__seal_record_decode(payload, &read), WAL__FMT_OK);
    assert_true(read.end == 8192);
    assert_true(read.last_sequence == 99);
    assert_int_equal(read.chain, 0xabcdef01);
    assert_true(read.index_offset == 8192);
    codec_assert_size_is_exact(decode_seal, payload, WAL__SEAL_SIZE);
    CODEC_ASSERT_CHANGES(decode_seal, payload, changes);
}

TEST(record__failed_decode_leaves_the_output)
{
    static uint8_t zeros[64];
    struct wal__span payload = {zeros, sizeof(zeros)};
    struct wal__entry_record entry = {.form = 9};
    struct wal__session_record session = {.schema_version = 9};
    struct wal__fork_record fork = {.depth = 9};
    struct wal__commit_record commit = {.epoch = 9};

    assert_int_equal(wal__entry_record_decode(payload, &entry), WAL__FMT_FIELD);
    assert_int_equal(wal__session_record_decode(payload, 0, &session), WAL__FMT_FIELD);
    assert_int_equal(wal__session_record_decode(payload, 1, &session), WAL__FMT_FIELD);
    assert_int_equal(wal__fork_record_decode(payload, &fork), WAL__FMT_FIELD);
    assert_int_equal(wal__commit_record_decode(payload, &commit), WAL__FMT_FIELD);
    assert_int_equal(entry.form, 9);
    assert_int_equal(session.schema_version, 9);
    assert_int_equal(fork.depth, 9);
    assert_int_equal(commit.epoch, 9);
}

enum {
    VALUE_SIZE = 70000
};

/* DOC and DOC_DELETE */

TEST(record_doc__doc_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__doc_record doc = {
            .modified_ms = (int64_t)test_random(),
            .key = codec_text(1, WAL__KEY_MAX),
            .value = codec_text(0, VALUE_SIZE),
        };
        struct wal__doc_record read;
        struct wal__span payload = make_doc(&doc);

        assert_int_equal(wal__doc_record_decode(payload, &read), WAL__FMT_OK);
        assert_true(read.modified_ms == doc.modified_ms);
        codec_assert_same_text(read.key, doc.key);
        codec_assert_same_text(read.value, doc.value);
        codec_free(payload);
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
    codec_assert_same_text(read.key, doc.key);
    assert_int_equal(read.value.size, 0);
    codec_free(payload);
}

TEST(record_doc__doc_is_checked)
{
    static const struct codec_change changes[] = {{8, 2, 4, FIELD},
                                                  {10, 1, 1, FIELD},
                                                  {11, 1, 1, FIELD},
                                                  {12, 4, 4, FIELD},
                                                  {12, 4, UINT32_MAX, FIELD}};
    struct wal__doc_record doc = {.key = {pool, 3}, .value = {pool, 5}};
    struct wal__span payload = make_doc(&doc);

    codec_assert_size_is_exact(decode_doc, payload, 16);
    CODEC_ASSERT_CHANGES(decode_doc, payload, changes);
    codec_free(payload);
}

/* The value takes what the key leaves, so that only the key is wrong. */
TEST(record_doc__key_is_bounded)
{
    static const size_t sizes[] = {0, 1, 1024, 1025};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct wal__doc_record doc = {.key = {pool, sizes[i]}, .value = {pool, 9}};
        struct wal__span payload = make_doc(&doc);
        bool fits = sizes[i] >= 1 && sizes[i] <= 1024;

        assert_int_equal(decode_doc(payload), fits ? WAL__FMT_OK : WAL__FMT_FIELD);
        codec_free(payload);
    }
}

TEST(record_doc__value_is_bounded)
{
    uint8_t *large = calloc(1, (16u << 20) + 1);

    assert_non_null(large);
    for (size_t over = 0; over <= 1; over++) {
        struct wal__doc_record doc = {.key = {pool, 1}, .value = {large, (16u << 20) + over}};
        struct wal__span payload = make_doc(&doc);

        assert_int_equal(decode_doc(payload), over == 0 ? WAL__FMT_OK : WAL__FMT_FIELD);
        codec_free(payload);
    }
    free(large);
}

/* REDACT */

TEST(record_doc__redact_round_trip)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct wal__redact_record redact = {
            .session = (uint32_t)test_random() | 1,
            .entry_id = codec_text(1, WAL__ID_MAX),
            .target_id = codec_text(1, WAL__ID_MAX),
            .reason = codec_text(0, WAL__TEXT_MAX),
        };
        struct wal__redact_record read;
        struct wal__span payload = make_redact(&redact);

        assert_int_equal(wal__redact_record_decode(payload, &read), WAL__FMT_OK);
        assert_int_equal(read.session, redact.session);
        codec_assert_same_text(read.entry_id, redact.entry_id);
        codec_assert_same_text(read.target_id, redact.target_id);
        codec_assert_same_text(read.reason, redact.reason);
        codec_free(payload);
    }
}

TEST(record_doc__redact_is_checked)
{
    static const struct codec_change changes[] = {{0, 2, 0x0500, FIELD},
                                                  {0, 2, 0x0005, FIELD},
                                                  {0, 2, 0x0203, OK},
                                                  {2, 2, UINT16_MAX, FIELD},
                                                  {4, 4, 0, FIELD}};
    struct wal__redact_record redact = {
        .session = 1,
        .entry_id = {pool, 2},
        .target_id = {pool, 3},
        .reason = {pool, 4},
    };
    struct wal__span payload = make_redact(&redact);

    codec_assert_size_is_exact(decode_redact, payload, 8);
    /* The sizes still add up, but one is none. */
    CODEC_ASSERT_CHANGES(decode_redact, payload, changes);
    codec_free(payload);
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

        assert_int_equal(decode_redact(payload), size == 4096 ? WAL__FMT_OK : WAL__FMT_FIELD);
        codec_free(payload);
    }
}

TEST(record_doc__failed_decode_leaves_the_output)
{
    static uint8_t zeros[64];
    struct wal__span payload = {zeros, sizeof(zeros)};
    struct wal__doc_record doc = {.modified_ms = 9};
    struct wal__redact_record redact = {.session = 9};

    assert_int_equal(wal__doc_record_decode(payload, &doc), WAL__FMT_FIELD);
    assert_int_equal(wal__redact_record_decode(payload, &redact), WAL__FMT_FIELD);
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
    assert_memory_equal(payload.data, "\10\7\6\5\4\3\2\1\3\0\0\0\1\0\0\0keyv", 20);
    codec_free(payload);
    payload = make_redact(&redact);
    assert_int_equal(payload.size, 14);
    assert_memory_equal(payload.data, "\1\2\3\0\4\3\2\1ettwhy", 14);
    codec_free(payload);
}
