/*
 * test_record.c - the payloads of frames, each a table: its fields with their bounds, a record, and
 * what is said of its bytes with others in their place. Payloads lie in blocks of exactly their
 * size, so that the address sanitizer sees a read beyond the end.
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
    ROUNDS = 1000,
    FIELDS = 10,
    CHANGES = 12,
    TEXT_OF_ROUND = 70000 /* bytes of a random text at most */
};

/* Of texts whose bytes do not matter. */
static uint8_t pool[WAL__PAYLOAD_MAX + 1];

static struct wal__span text_of(const char *text)
{
    struct wal__span span = {(const uint8_t *)text, strlen(text)};

    return span;
}

union any_record {
    struct wal__open_record open;
    struct wal__session_record session;
    struct wal__entry_record entry;
    struct wal__fork_record fork;
    struct wal__head_record head;
    struct wal__commit_record commit;
    struct wal__seal_record seal;
    struct wal__doc_record doc;
    struct wal__redact_record redact;
};

struct field {
    size_t at;
    size_t width; /* of a number; 0: a text */
    uint64_t min; /* of the number, or of the size of the text */
    uint64_t max;
    bool is_checked; /* less and more is refused */
};

#define NUMBER(member) offsetof(union any_record, member), sizeof(((union any_record *)0)->member)
#define TEXT(member)   offsetof(union any_record, member), 0

struct record {
    const char *name;
    size_t (*size)(const union any_record *record);
    void (*encode)(const union any_record *record, uint8_t *out);
    enum wal__fmt (*decode)(struct wal__span payload, union any_record *record);
    codec_decode_fn *verdict;
    void (*check)(const union any_record *record); /* what is no field; or null */
    union any_record sample;
    size_t fixed_size; /* bytes before its texts */
    struct field fields[FIELDS];
    struct codec_change changes[CHANGES]; /* of the sample; to the first one of no byte */
};

#define CALLS(name) #name, size_##name, encode_##name, decode_##name, verdict_##name

#define ENCODE(name)                                                      \
    static size_t size_##name(const union any_record *from)               \
    {                                                                     \
        return wal__##name##_record_size(&from->name);                    \
    }                                                                     \
    static void encode_##name(const union any_record *from, uint8_t *out) \
    {                                                                     \
        wal__##name##_record_encode(&from->name, out);                    \
    }                                                                     \
    _Static_assert(1, "")

#define VERDICT(name)                                             \
    static enum wal__fmt verdict_##name(struct wal__span payload) \
    {                                                             \
        union any_record out;                                     \
                                                                  \
        return decode_##name(payload, &out);                      \
    }                                                             \
    _Static_assert(1, "")

#define DECODE(name)                                                                   \
    static enum wal__fmt decode_##name(struct wal__span payload, union any_record *to) \
    {                                                                                  \
        return wal__##name##_record_decode(payload, &to->name);                        \
    }                                                                                  \
    VERDICT(name)

ENCODE(session);
ENCODE(entry);
ENCODE(fork);
ENCODE(head);
ENCODE(doc);
ENCODE(redact);
DECODE(open);
DECODE(entry);
DECODE(fork);
DECODE(head);
DECODE(commit);
DECODE(seal);
DECODE(doc);
DECODE(redact);

/* OPEN, with as many of these ranges as it says. */

static struct wal__damage damage[WAL__DAMAGE_MAX + 1];

static size_t size_open(const union any_record *from)
{
    return wal__open_record_size(from->open.damage_count);
}

static void encode_open(const union any_record *from, uint8_t *out)
{
    for (uint64_t i = 0; i <= WAL__DAMAGE_MAX; i++) {
        damage[i] = (struct wal__damage){(i + 1) * 8192 + test_random() % 8192, test_random(),
                                         test_random(), test_random()};
    }
    wal__open_record_encode(&from->open, damage, out);
}

static void check_open(const union any_record *read)
{
    for (uint32_t i = 0; i < read->open.damage_count; i++) {
        struct wal__damage one = wal__open_record_damage(&read->open, i);

        assert_memory_equal(&one, &damage[i], sizeof(one));
    }
}

static enum wal__fmt decode_session(struct wal__span payload, union any_record *to)
{
    return wal__session_record_decode(payload, WAL__FORMAT_VERSION, &to->session);
}

VERDICT(session);

/* SESSION of version 0, its time in seconds; it is not written, so the tests do. */

enum { SESSION_0_FIXED = 28, SESSION_0_TEXTS = 5 };

static size_t size_session_0(const union any_record *from)
{
    const struct wal__session_record *session = &from->session;

    return SESSION_0_FIXED + session->id.size + session->cwd.size + session->project.size +
           session->parent_id.size + session->source.size + session->metadata.size;
}

static void encode_session_0(const union any_record *from, uint8_t *out)
{
    const struct wal__session_record *session = &from->session;
    const struct wal__span texts[] = {session->id,        session->cwd,    session->project,
                                      session->parent_id, session->source, session->metadata};
    uint8_t *at = out + SESSION_0_FIXED;

    memset(out, 0, SESSION_0_FIXED);
    wal__put64(out, (uint64_t)session->created_ms);
    wal__put32(out + 8, session->flags);
    wal__put32(out + 24, (uint32_t)session->metadata.size);
    for (size_t i = 0; i <= SESSION_0_TEXTS; i++) {
        if (i < SESSION_0_TEXTS) {
            wal__put16(out + 12 + 2 * i, (uint16_t)texts[i].size);
        }
        if (texts[i].size > 0) {
            memcpy(at, texts[i].data, texts[i].size);
        }
        at += texts[i].size;
    }
}

static enum wal__fmt decode_session_0(struct wal__span payload, union any_record *to)
{
    enum wal__fmt fmt = wal__session_record_decode(payload, 0, &to->session);

    if (fmt == WAL__FMT_OK) {
        assert_int_equal(to->session.created_ms % 1000, 0);
        to->session.created_ms /= 1000;
    }
    return fmt;
}

VERDICT(session_0);

static void check_session_0(const union any_record *read)
{
    assert_int_equal(read->session.schema_version, 0);
    assert_int_equal(read->session.title.size, 0);
}

static void check_inlined(const union any_record *read)
{
    assert_null(read->entry.digest);
}

static void check_outlined(const union any_record *read)
{
    assert_non_null(read->entry.digest);
    assert_memory_equal(read->entry.digest, pool, 32);
}

/* COMMIT, with as many of these sessions as it says. */

static uint32_t sessions[WAL__COMMIT_SESSIONS_MAX + 1];

static size_t size_commit(const union any_record *from)
{
    return wal__commit_record_size(from->commit.session_count);
}

static void encode_commit(const union any_record *from, uint8_t *out)
{
    for (uint32_t i = 0; i <= WAL__COMMIT_SESSIONS_MAX; i++) {
        sessions[i] = 4 + i * 1000 + (uint32_t)(test_random() % 1000);
    }
    wal__commit_record_encode(&from->commit, sessions, out);
}

static void check_commit(const union any_record *read)
{
    for (uint32_t i = 0; i < read->commit.session_count; i++) {
        assert_int_equal(wal__commit_record_session(&read->commit, i), sessions[i]);
    }
}

static size_t size_seal(const union any_record *from)
{
    (void)from;
    return WAL__SEAL_SIZE;
}

static void encode_seal(const union any_record *from, uint8_t *out)
{
    wal__seal_record_encode(&from->seal, out);
}

static const struct record records[] = {
    {CALLS(open), .check = check_open,
     .sample.open = {.previous_id = 1, .previous_end = 4096, .damage_count = 2, .epoch = 1},
     .fixed_size = 40,
     .fields = {{NUMBER(open.previous_id), 1, UINT64_MAX, true},
                {NUMBER(open.previous_end), 4096, 64 << 20, true},
                {NUMBER(open.last_sequence), 0, UINT64_MAX, false},
                {NUMBER(open.chain), 0, UINT32_MAX, false},
                {NUMBER(open.damage_count), 0, 256, true},
                {NUMBER(open.epoch), 1, UINT64_MAX, true}},
     .changes = {{28, 4, 1, FIELD}, {28, 4, UINT32_MAX, FIELD}, {72, 8, 8192, FIELD}}},
    {CALLS(session),
     .sample.session =
         {.schema_version = 1, .id = {pool, 3}, .title = {pool, 5}, .metadata = {pool, 2}},
     .fixed_size = 32,
     .fields = {{NUMBER(session.created_ms), 0, UINT64_MAX, false},
                {NUMBER(session.schema_version), 1, UINT32_MAX, true},
                {NUMBER(session.flags), 0, 7, true},
                {TEXT(session.id), 1, 255, true},
                {TEXT(session.cwd), 0, 4096, true},
                {TEXT(session.project), 0, 4096, true},
                {TEXT(session.title), 0, 4096, true},
                {TEXT(session.parent_id), 0, 255, true},
                {TEXT(session.source), 0, 4096, true},
                {TEXT(session.metadata), 0, 1 << 20, true}},
     .changes = {{16, 2, 9, FIELD},
                 {18, 2, 9, FIELD},
                 {20, 2, 9, FIELD},
                 {22, 2, 9, FIELD},
                 {24, 2, 9, FIELD},
                 {26, 2, 9, FIELD},
                 {28, 4, UINT32_MAX, FIELD}}},
    {CALLS(session_0), .check = check_session_0,
     .sample
         .session = {.created_ms = 1, .id = {pool, 3}, .source = {pool, 5}, .metadata = {pool, 2}},
     .fixed_size = SESSION_0_FIXED,
     .fields = {{NUMBER(session.created_ms), (uint64_t)(INT64_MIN / 1000), INT64_MAX / 1000, true},
                {NUMBER(session.flags), 0, 1, true},
                {TEXT(session.id), 1, 255, true},
                {TEXT(session.cwd), 0, 4096, true},
                {TEXT(session.project), 0, 4096, true},
                {TEXT(session.parent_id), 0, 255, true},
                {TEXT(session.source), 0, 4096, true},
                {TEXT(session.metadata), 0, 1 << 20, true}},
     .changes = {{12, 2, 9, FIELD},
                 {14, 2, 9, FIELD},
                 {16, 2, 9, FIELD},
                 {18, 2, 9, FIELD},
                 {20, 2, 9, FIELD},
                 {22, 1, 1, FIELD},
                 {23, 1, 1, FIELD},
                 {24, 4, UINT32_MAX, FIELD}}},
    /* Of the changes, 0x02040300 makes the id the type, and the last has sizes of meta and payload
     * that are right modulo 2^32. */
    {CALLS(entry), .check = check_inlined,
     .sample.entry = {.id = {pool, 3}, .time = {pool, 4}, .run = {pool, 2}, .payload = {pool, 30}},
     .fixed_size = 16,
     .fields = {{NUMBER(entry.form), 0, 1, false},
                {TEXT(entry.id), 1, 255, false},
                {TEXT(entry.type), 0, 255, false},
                {TEXT(entry.time), 0, 64, true},
                {TEXT(entry.run), 0, 255, false},
                {TEXT(entry.meta), 0, TEXT_OF_ROUND, false},
                {TEXT(entry.payload), 0, 16 << 20, true}},
     .changes = {{0, 1, 1, OK},
                 {0, 1, 4, OK},
                 {0, 1, 6, FIELD},
                 {1, 4, 0x02040300, FIELD},
                 {5, 1, 1, FIELD},
                 {6, 1, 1, FIELD},
                 {7, 1, 1, FIELD},
                 {8, 4, UINT32_MAX, FIELD},
                 {8, 8, (UINT64_C(31) << 32) | 0xffffffffu, FIELD}}},
    {CALLS(entry), .check = check_outlined,
     .sample.entry = {.id = {pool, 3}, .digest = pool, .payload_size = 1 << 20}, .fixed_size = 16,
     .fields = {{NUMBER(entry.form), 0, 1, false},
                {NUMBER(entry.payload_size), 256 * 1024 + 1, UINT64_C(1) << 35, true},
                {TEXT(entry.id), 1, 255, false},
                {TEXT(entry.meta), 0, TEXT_OF_ROUND, false},
                {TEXT(entry.payload), 0, WAL__EXCERPT_MAX, true}}},
    {CALLS(fork),
     .sample.fork = {.inherited = 9,
                     .depth = 1,
                     .source = 2,
                     .owner = 3,
                     .source_id = {pool, 1},
                     .owner_id = {pool, 1},
                     .entry_id = {pool, 1}},
     .fixed_size = 24,
     .fields = {{NUMBER(fork.inherited), 0, UINT64_MAX, false},
                {NUMBER(fork.depth), 0, 65535, true},
                {NUMBER(fork.source), 1, UINT32_MAX, true},
                {NUMBER(fork.owner), 1, UINT32_MAX, true},
                {NUMBER(fork.stream), 0, UINT8_MAX, false},
                {TEXT(fork.source_id), 1, 255, false},
                {TEXT(fork.owner_id), 1, 255, false},
                {TEXT(fork.entry_id), 0, 255, false}},
     .changes = {{20, 2, 0x0200, FIELD}, {20, 2, 0x0002, FIELD}, {22, 1, 255, FIELD}}},
    {CALLS(head), .sample.head = {.name = {pool, 1}, .entry_id = {pool, 1}, .note = {pool, 1}},
     .fixed_size = 8,
     .fields = {{TEXT(head.name), 1, 255, false},
                {TEXT(head.entry_id), 0, 255, false},
                {TEXT(head.note), 0, 4096, true}},
     .changes = {{0, 2, 0x0200, FIELD},
                 {4, 1, 1, FIELD},
                 {5, 1, 1, FIELD},
                 {6, 1, 1, FIELD},
                 {7, 1, 1, FIELD}}},
    {CALLS(commit), .check = check_commit,
     .sample.commit = {.durable_off = 4096, .epoch = 1, .session_count = 3}, .fixed_size = 56,
     .fields = {{NUMBER(commit.first_sequence), 0, UINT64_MAX, false},
                {NUMBER(commit.frame_count), 0, UINT32_MAX, false},
                {NUMBER(commit.group_size), 0, UINT32_MAX, false},
                {NUMBER(commit.chain), 0, UINT32_MAX, false},
                {NUMBER(commit.durable_off), 4096, UINT32_MAX, true},
                {NUMBER(commit.epoch), 1, UINT64_MAX, true},
                {NUMBER(commit.clock_ms), 0, UINT64_MAX, false},
                {NUMBER(commit.pack_durable), 0, UINT64_MAX, false},
                {NUMBER(commit.flags), 0, 1, true},
                {NUMBER(commit.session_count), 0, 4096, true}},
     .changes = {{52, 4, 0x40000003, FIELD}, {60, 4, 4, FIELD}, {64, 4, 3, FIELD}}},
    {CALLS(seal), .sample.seal = {.end = 8192, .index_offset = 8192}, .fixed_size = WAL__SEAL_SIZE,
     .fields = {{NUMBER(seal.end), 8192, 8192, true},
                {NUMBER(seal.last_sequence), 0, UINT64_MAX, false},
                {NUMBER(seal.chain), 0, UINT32_MAX, false},
                {NUMBER(seal.index_offset), 8192, 8192, true}},
     .changes = {{20, 4, 1, FIELD}}},
    {CALLS(doc), .sample.doc = {.key = {pool, 3}, .value = {pool, 5}}, .fixed_size = 16,
     .fields = {{NUMBER(doc.modified_ms), 0, UINT64_MAX, false},
                {TEXT(doc.key), 1, 1024, true},
                {TEXT(doc.value), 0, 16 << 20, true}},
     .changes = {{8, 2, 4, FIELD},
                 {10, 1, 1, FIELD},
                 {11, 1, 1, FIELD},
                 {12, 4, 4, FIELD},
                 {12, 4, UINT32_MAX, FIELD}}},
    /* Of the changes, 0x0500 and 0x0005 leave one text empty, the sizes in all the same. */
    {CALLS(redact),
     .sample.redact =
         {.session = 1, .entry_id = {pool, 2}, .target_id = {pool, 3}, .reason = {pool, 4}},
     .fixed_size = 8,
     .fields = {{NUMBER(redact.session), 1, UINT32_MAX, true},
                {TEXT(redact.entry_id), 1, 255, false},
                {TEXT(redact.target_id), 1, 255, false},
                {TEXT(redact.reason), 0, 4096, true}},
     .changes = {{0, 2, 0x0500, FIELD},
                 {0, 2, 0x0005, FIELD},
                 {0, 2, 0x0203, OK},
                 {2, 2, UINT16_MAX, FIELD}}},
};

enum { RECORDS = sizeof(records) / sizeof(records[0]) };

static struct wal__span make(const struct record *record, const union any_record *from)
{
    size_t size = record->size(from);
    uint8_t *block = codec_block(size);

    record->encode(from, block);
    return (struct wal__span){block, size};
}

static struct wal__span make_entry(const struct wal__entry_record *from)
{
    size_t size = wal__entry_record_size(from);
    uint8_t *block = codec_block(size);

    wal__entry_record_encode(from, block);
    return (struct wal__span){block, size};
}

static void set_text(const struct field *field, struct wal__span text, union any_record *to)
{
    memcpy((uint8_t *)to + field->at, &text, sizeof(text));
}

static void set_number(const struct field *field, uint64_t number, union any_record *to)
{
    memcpy((uint8_t *)to + field->at, &number, field->width);
}

static void set_random(const struct field *field, union any_record *to)
{
    uint64_t count = field->max - field->min + 1;

    if (field->width == 0) {
        uint64_t max = field->max < TEXT_OF_ROUND ? field->max : TEXT_OF_ROUND;

        set_text(field, codec_text(field->min, max), to);
    } else {
        set_number(field, field->min + (count == 0 ? test_random() : test_random() % count), to);
    }
}

static void assert_same_field(const struct field *field, const union any_record *a,
                              const union any_record *b)
{
    struct wal__span texts[2];

    if (field->width > 0) {
        assert_memory_equal((const uint8_t *)a + field->at, (const uint8_t *)b + field->at,
                            field->width);
        return;
    }
    memcpy(&texts[0], (const uint8_t *)a + field->at, sizeof(texts[0]));
    memcpy(&texts[1], (const uint8_t *)b + field->at, sizeof(texts[1]));
    codec_assert_same_text(texts[0], texts[1]);
}

TEST(record__round_trip)
{
    for (size_t i = 0; i < (size_t)RECORDS * ROUNDS; i++) {
        const struct record *record = &records[i / ROUNDS];
        union any_record given = record->sample;
        union any_record read;
        struct wal__span payload;

        memset(&read, 0x5a, sizeof(read));
        for (size_t k = 0; k < FIELDS && record->fields[k].max > 0; k++) {
            set_random(&record->fields[k], &given);
        }
        payload = make(record, &given);
        assert_int_equal(record->decode(payload, &read), WAL__FMT_OK);
        for (size_t k = 0; k < FIELDS && record->fields[k].max > 0; k++) {
            assert_same_field(&record->fields[k], &given, &read);
        }
        if (record->check != NULL) {
            record->check(&read);
        }
    }
}

/* What is said of the sample with this in the field. */
static void assert_field(const struct record *record, const struct field *field, uint64_t value,
                         enum wal__fmt expected)
{
    union any_record given = record->sample;
    struct wal__span payload;
    enum wal__fmt fmt;

    if (field->width == 0) {
        set_text(field, (struct wal__span){pool, value}, &given);
    } else {
        set_number(field, value, &given);
    }
    payload = make(record, &given);
    fmt = record->verdict(payload);
    if (fmt != expected) {
        fail_msg("%s, %llu at %zu: %s", record->name, (unsigned long long)value, field->at,
                 wal__fmt_text(fmt));
    }
}

TEST(record__fields_are_bounded)
{
    for (size_t i = 0; i < (size_t)RECORDS * FIELDS; i++) {
        const struct record *record = &records[i / FIELDS];
        const struct field *field = &record->fields[i % FIELDS];
        uint64_t most = field->width > 0 ? UINT64_MAX >> (64 - 8 * field->width) : UINT64_MAX;

        if (!field->is_checked) {
            continue;
        }
        assert_field(record, field, field->min, WAL__FMT_OK);
        assert_field(record, field, field->max, WAL__FMT_OK);
        if (field->min > 0) {
            assert_field(record, field, field->min - 1, WAL__FMT_FIELD);
        }
        if (field->max < most) {
            assert_field(record, field, field->max + 1, WAL__FMT_FIELD);
        }
    }
}

TEST(record__payload_is_checked)
{
    for (size_t i = 0; i < RECORDS; i++) {
        const struct record *record = &records[i];
        struct wal__span payload = make(record, &record->sample);
        size_t count = 0;

        while (record->changes[count].width > 0) {
            count++;
        }
        codec_assert_size_is_exact(record->verdict, payload, record->fixed_size);
        codec_assert_changes(record->verdict, payload, record->changes, count);
    }
}

TEST(record__failed_decode_leaves_the_output)
{
    static const uint8_t zeros[64];

    for (size_t i = 0; i < RECORDS; i++) {
        union any_record out;
        union any_record before;

        memset(&before, 0x5a, sizeof(before));
        out = before;
        assert_int_equal(records[i].decode((struct wal__span){zeros, sizeof(zeros)}, &out),
                         WAL__FMT_FIELD);
        assert_memory_equal(&out, &before, sizeof(out));
    }
}

TEST(record__open_of_the_first_segment_has_no_previous)
{
    union any_record open = {.open = {.epoch = 1}};
    struct wal__span payload = make(&records[0], &open);

    assert_int_equal(verdict_open(payload), WAL__FMT_OK);
}

/* Neither the digest nor the size is whole. */
TEST(record__cut_entry_out_of_line_is_rejected)
{
    struct wal__entry_record entry = {.id = {pool, 3}, .payload = {pool, 0}};

    for (; entry.payload.size < 40; entry.payload.size++) {
        struct wal__span payload = make_entry(&entry);

        assert_int_equal(codec_decode_with(verdict_entry, payload, 0, 1, 2), WAL__FMT_FIELD);
    }
}

/* What an erased entry may keep. */
TEST(record__erased_entry_is_checked)
{
    uint8_t bytes[WAL__ERASED_PAYLOAD_MAX + 1] = {0};
    struct wal__entry_record entry = {.id = {pool, 3}, .payload = {bytes, sizeof(bytes)}};
    struct wal__span payload = make_entry(&entry);

    assert_int_equal(codec_decode_with(verdict_entry, payload, 0, 1, 4), WAL__FMT_FIELD);
    entry.payload.size--;
    payload = make_entry(&entry);
    assert_int_equal(codec_decode_with(verdict_entry, payload, 0, 1, 5), WAL__FMT_OK);
    entry.payload.size = 0;
    entry.meta = (struct wal__span){pool, 1};
    payload = make_entry(&entry);
    assert_int_equal(codec_decode_with(verdict_entry, payload, 0, 1, 4), WAL__FMT_FIELD);
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
