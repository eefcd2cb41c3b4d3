/*
 * test_copy.c - lines of copies (convert/copy/copy.h): from valid
 * chunks, from damaged ones, and from ones made by an attacker.
 */
#include <zlib.h>

#include "convert/copy/copy.h"
#include "format/bytes/bytes.h"
#include "format/bytes/crc32.h"
#include "tests/lib/faulty_heap.h"
#include "tests/lib/kit/backup_kit.h"
#include "tests/lib/kit/view_kit.h"

#define FIRST  "{\"n\":1,\"uuid\":\"11111111-2222-4333-8444-555555555555\"}"
#define SECOND "{\"n\":2,\"uuid\":\"22222222-2222-4333-8444-555555555555\"}"
#define THIRD  "{\"n\":3,\"uuid\":\"33333333-2222-4333-8444-555555555555\"}"

static void append_line(struct wal_session *session, const char *id, uint32_t stream,
                        const void *data, size_t size)
{
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE,
        .stream = stream,
        .id = kit_text(id),
        .type = kit_text(stream == 0 ? "line" : WAL__COPY_TYPE),
        .payload = {data, size},
    };

    if (stream != 0) {
        entry.flags |= WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP;
    }
    assert_done(wal_append(session, &entry, 1, NULL, NULL, kit_error()));
}

enum { HEADER_SIZE = 32, PART_SIZE = 1024 };

/* A chunk that is being made. */
struct chunk {
    uint8_t steps[PART_SIZE];
    uint8_t text[PART_SIZE];
    uint8_t checks[16];
    size_t steps_size;
    size_t text_size;
    size_t lines;
};

/* A store, and in it a fork of a session with three lines. */
struct given {
    struct wal_store *store;
    struct wal_session *original;
    struct wal_session *fork;
    struct chunk chunk;
    bool is_invalid; /* the steps of the chunk */
    uint32_t number;
};

static void open_copy(struct given *given)
{
    memset(given, 0, sizeof(*given));
    given->store = kit_store();
    given->original = kit_create(given->store, "original");
    append_line(given->original, "a", 0, FIRST, strlen(FIRST));
    append_line(given->original, "b", 0, SECOND, strlen(SECOND));
    append_line(given->original, "c", 0, THIRD, strlen(THIRD));
    given->fork = kit_fork(given->original, NULL, "copy");
}

static void close_copy(struct given *given)
{
    wal_session_close(given->fork);
    wal_session_close(given->original);
    kit_close(given->store);
}

static void put_step(struct chunk *chunk, uint8_t opcode, size_t size)
{
    uint8_t *at = chunk->steps + chunk->steps_size;

    assert_true(size < 1 << 21 && chunk->steps_size + 4 <= PART_SIZE);
    *at++ = opcode;
    if (opcode != WAL__COPY_END) {
        *at++ = (uint8_t)(size | 0x80);
        *at++ = (uint8_t)(size >> 7 | 0x80);
        *at++ = (uint8_t)(size >> 14);
    }
    chunk->steps_size = (size_t)(at - chunk->steps);
}

static void put_text(struct chunk *chunk, const char *text)
{
    size_t size = strlen(text);

    assert_true(chunk->text_size + size <= PART_SIZE);
    put_step(chunk, WAL__COPY_TEXT, size);
    memcpy(chunk->text + chunk->text_size, text, size);
    chunk->text_size += size;
}

/* A line that is made from the next one, or that of the entry `id`. */
static void encode(struct given *given, const char *line, const char *original, const char *id)
{
    struct chunk *chunk = &given->chunk;

    chunk->steps[chunk->steps_size++] = id == NULL ? WAL__COPY_LINE_NEXT : WAL__COPY_LINE_NAMED;
    if (id != NULL) {
        put_text(chunk, id);
        put_step(chunk, WAL__COPY_END, 0);
    }
    if (strcmp(line, original) == 0) {
        put_step(chunk, WAL__COPY_BYTES, strlen(line));
    } else {
        put_step(chunk, WAL__COPY_SKIP, strlen(original));
        put_text(chunk, line);
    }
    put_step(chunk, WAL__COPY_END, 0);
    chunk->checks[chunk->lines++] = (uint8_t)wal__crc32(0, line, strlen(line));
}

static void encode_own(struct given *given)
{
    struct chunk *chunk = &given->chunk;

    chunk->steps[chunk->steps_size++] = WAL__COPY_LINE_OWN;
    chunk->checks[chunk->lines++] = 0;
}

/* Appends a compressed part, and writes its sizes at `sizes`. */
static void put_part(uint8_t *bytes, size_t *size, uint8_t *sizes, const uint8_t *part,
                     size_t part_size)
{
    uLongf stored = 2 * PART_SIZE;

    if (part_size > 0) {
        assert_int_equal(compress(bytes + *size, &stored, part, (uLong)part_size), Z_OK);
        wal__put32(sizes, (uint32_t)part_size);
        wal__put32(sizes + 4, (uint32_t)stored);
        *size += stored;
    }
}

/* Appends the chunk, its bytes at `at` overwritten with `harm`. */
static void send_damaged(struct given *given, bool is_last, size_t at, const char *harm,
                         size_t harm_size)
{
    struct chunk *chunk = &given->chunk;
    uint8_t bytes[HEADER_SIZE + 4 * PART_SIZE + sizeof(chunk->checks)] = {1};
    size_t size = HEADER_SIZE;
    char id[32];

    bytes[1] = is_last ? 1 : 0;
    wal__put32(bytes + 4, given->number);
    wal__put32(bytes + 8, (uint32_t)chunk->lines);
    put_part(bytes, &size, bytes + 16, chunk->steps, chunk->steps_size);
    put_part(bytes, &size, bytes + 24, chunk->text, chunk->text_size);
    memcpy(bytes + size, chunk->checks, chunk->lines);
    size += chunk->lines;
    assert_true(harm_size > 0 ||
                wal__copy_chunk_is_valid((struct wal_slice){bytes, size}) != given->is_invalid);
    if (harm_size > 0) {
        assert_true(at + harm_size <= size);
        memcpy(bytes + at, harm, harm_size);
        assert_int_equal(wal__copy_chunk_is_valid((struct wal_slice){bytes, size}), at == 4);
    }
    snprintf(id, sizeof(id), "copy-%u", given->number++);
    append_line(given->fork, id, WAL__COPY_STREAM, bytes, size);
    memset(&given->chunk, 0, sizeof(given->chunk));
}

static void send_chunk(struct given *given, bool is_last)
{
    send_damaged(given, is_last, 0, NULL, 0);
}

/* The copy's entries, a line each: the text, GONE or LOST. */
static void expect_lines(struct given *given, bool is_complete, const char *expected)
{
    char got[4096] = "";
    struct wal__copy copy;
    struct wal_entry entry;
    enum wal_status status;
    bool is_copy = false;

    assert_ok(wal__copy_open(&copy, given->fork, NULL, WAL_ENTRY_CURSOR_OUT_OF_LINE, &is_copy,
                             kit_error()));
    while (is_copy && (status = wal__copy_next(&copy, &entry, kit_error())) != WAL_END) {
        size_t size = strlen(got);

        if (status == WAL_OK && (entry.flags & WAL_ENTRY_REDACTED) != 0) {
            strcat(got, "GONE\n");
        } else if (status == WAL_OK) {
            assert_int_equal(copy.is_shared, entry.sequence < copy.first_sequence);
            snprintf(got + size, sizeof(got) - size, "%.*s\n", (int)entry.payload.size,
                     (const char *)entry.payload.data);
        } else {
            assert_int_equal(status, WAL_ECORRUPT);
            strcat(got, "LOST\n");
        }
    }
    assert_int_equal(copy.is_complete, is_complete);
    wal__copy_close(&copy);
    assert_string_equal(got, expected);
}

KIT_TEST(copy__lines_are_returned_as_encoded)
{
    struct given given;

    open_copy(&given);
    expect_lines(&given, false, ""); /* it is no copy */
    send_chunk(&given, false);
    expect_lines(&given, false, "");
    encode(&given, "{\"n\":1,\"uuid\":\"x\"}", FIRST, "a");
    encode_own(&given);
    encode(&given, SECOND, SECOND, NULL);
    append_line(given.fork, "own", 0, "own", 3);
    send_chunk(&given, false);
    encode(&given, "{\"n\":3,\"more\":[\"" FIRST "\"]}", THIRD, "c");
    send_chunk(&given, true);
    expect_lines(&given, true,
                 "{\"n\":1,\"uuid\":\"x\"}\nown\n" SECOND "\n{\"n\":3,\"more\":[\"" FIRST "\"]}\n");
}

KIT_TEST(copy__missing_own_line_is_lost_alone)
{
    struct given given;

    open_copy(&given);
    encode(&given, FIRST, FIRST, "a");
    encode_own(&given);
    encode(&given, SECOND, SECOND, NULL);
    send_chunk(&given, true);
    expect_lines(&given, true, FIRST "\nLOST\n" SECOND "\n");
}

KIT_TEST(copy__appended_entries_follow_shared_ones)
{
    struct given given;

    open_copy(&given);
    encode(&given, FIRST, FIRST, "a");
    send_chunk(&given, true);
    append_line(given.fork, "d", 0, "{\"d\":1}", 7);
    append_line(given.original, "e", 0, "{\"e\":1}", 7);
    expect_lines(&given, true, FIRST "\n{\"d\":1}\n");
}

KIT_TEST(copy__redacted_line_loses_only_itself)
{
    struct given given;

    open_copy(&given);
    encode(&given, FIRST, FIRST, "a");
    encode(&given, "{\"n\":2,\"uuid\":\"y\"}", SECOND, NULL);
    encode(&given, THIRD, THIRD, NULL);
    send_chunk(&given, true);
    assert_ok(
        wal_session_redact(given.original, kit_text("b"), kit_text("why"), NULL, kit_error()));
    expect_lines(&given, true, FIRST "\nGONE\n" THIRD "\n");
}

KIT_TEST(copy__mismatched_line_loses_only_itself)
{
    struct given given;

    open_copy(&given);
    encode(&given, FIRST, FIRST, "a");
    encode(&given, THIRD "x", THIRD "x", NULL); /* of one that is not there */
    encode(&given, SECOND, SECOND, NULL);
    encode(&given, THIRD, THIRD, NULL);
    encode(&given, THIRD, THIRD, NULL); /* of none */
    encode(&given, FIRST, FIRST, "nobody");
    encode(&given, SECOND, SECOND, "b");
    send_chunk(&given, true);
    expect_lines(&given, true, FIRST "\nLOST\n" SECOND "\n" THIRD "\nLOST\nLOST\n" SECOND "\n");
}

/* Each line is in another block of the log, which replaces the one before in the memory of a
 * cursor. */
KIT_TEST(copy__named_lines_of_a_compacted_store)
{
    static char lines[4][200000];
    static const char *const ids[] = {"a", "b", "c", "d"};
    struct given given = {.store = kit_store()};
    struct wal__copy copy;
    struct wal_entry entry;
    bool is_copy;

    given.original = kit_create(given.store, "original");
    for (int i = 0; i < 4; i++) {
        memset(lines[i], 'a' + i, sizeof(lines[i]) - 1);
        append_line(given.original, ids[i], 0, lines[i], sizeof(lines[i]) - 1);
    }
    given.fork = kit_fork(given.original, NULL, "copy");
    for (int i = 0; i < 4; i++) {
        encode(&given, lines[i], lines[i], i != 2 ? ids[i] : NULL);
    }
    send_chunk(&given, true);
    close_copy(&given);
    kit_compact_path("store");
    given.store = kit_store();
    given.fork = kit_session(given.store, "copy");
    assert_ok(wal__copy_open(&copy, given.fork, NULL, WAL_ENTRY_CURSOR_OUT_OF_LINE, &is_copy,
                             kit_error()));
    for (int i = 0; i < 4; i++) {
        assert_ok(wal__copy_next(&copy, &entry, kit_error()));
        assert_slice(entry.payload, lines[i]);
    }
    wal__copy_close(&copy);
}

KIT_TEST(copy__damaged_chunk_loses_only_its_lines)
{
    static const struct {
        size_t at;
        const char *harm;
        size_t size;
    } harms[] = {
        {0, "\2", 1},                /* version */
        {1, "\4", 1},                /* flags */
        {2, "\1", 1},                /* of no use yet */
        {4, "\7", 1},                /* number */
        {8, "\377\377\377\377", 4},  /* lines */
        {12, "\377\377\377\377", 4}, /* UUIDs */
        {16, "\377\377\377\377", 4}, /* ops */
        {16, "\0\0\1\0", 4},         /* more than there are */
        {20, "\377\377\377\377", 4}, /* stored */
        {24, "\2", 1},               /* text */
        {28, "\377\377\377\377", 4}, /* stored */
        {HEADER_SIZE, "garbage", 7}  /* what is compressed */
    };

    for (size_t i = 0; i < sizeof(harms) / sizeof(harms[0]); i++) {
        struct given given;

        open_copy(&given);
        send_chunk(&given, false);
        encode(&given, FIRST, FIRST, "a");
        send_damaged(&given, false, harms[i].at, harms[i].harm, harms[i].size);
        encode(&given, THIRD, THIRD, "c");
        send_chunk(&given, true);
        expect_lines(&given, true,
                     harms[i].at == 4 ? "LOST\n" FIRST "\nLOST\n" THIRD "\n" : "LOST\n" THIRD "\n");
        close_copy(&given);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

/* Steps that were written by hand. */
static void put_steps(struct given *given, const char *ops, size_t size, size_t lines)
{
    memcpy(given->chunk.steps, ops, size);
    given->chunk.steps_size = size;
    given->chunk.lines = lines;
}

KIT_TEST(copy__steps_beyond_the_line_are_refused)
{
    static const struct {
        const char *ops;
        size_t size;
        const char *lines;
    } given_steps[] = {
        {"\0\1\377\377\377\377\17\0", 8, "LOST\n"}, /* copy */
        {"\0\2\377\377\377\377\17\0", 8, "LOST\n"}, /* skip */
        {"\0\1\3\0", 4, "LOST\n"},                  /* not all of it */
        {"\0\6\1\0", 4, "LOST\n"},                  /* before it */
        {"\0\6\377\377\377\177\0", 7, "LOST\n"},    /* after it */
        {"\0\3\1\0", 4, "LOST\n"},                  /* text: none */
        {"\0\4\0", 3, "LOST\n"},                    /* UUID: none */
        {"\0\5\0\0", 4, "LOST\n"},                  /* none before */
        {"\0\7\0", 3, "LOST\n"},                    /* no such step */
        {"\3\0", 2, "LOST\n"},                      /* no such kind */
        {"\0\1", 2, "LOST\n"},                      /* cut */
        {"\0\1\377\377\377\377\377\377\377\377\377\377\1\0", 14, "LOST\n"},
        {"\1\0\0", 3, "LOST\n"},                 /* no name */
        {"\1\1\1\0\0", 5, "LOST\n"},             /* a name of nothing */
        {"\0\2\1\0\0\2\1\0", 8, "LOST\nLOST\n"}, /* both are gone through */
        {"", 0, "LOST\n"},
    };

    for (size_t i = 0; i < sizeof(given_steps) / sizeof(given_steps[0]); i++) {
        const char *lines = given_steps[i].lines;
        struct given given;

        open_copy(&given);
        put_steps(&given, given_steps[i].ops, given_steps[i].size, strlen(lines) / 5);
        given.is_invalid = i >= 5 && i != 14;
        send_chunk(&given, false);
        given.is_invalid = false;
        encode(&given, THIRD, THIRD, "c");
        send_chunk(&given, true);
        char expected[256];
        snprintf(expected, sizeof(expected), "%s" THIRD "\n", lines);
        expect_lines(&given, true, expected);
        close_copy(&given);
        assert_int_equal(system("rm -rf store"), 0);
    }
}

/* Each allocation of a flush fails: it says so, and leaves nothing. */
KIT_TEST(copy__view_without_memory_fails_whole)
{
    const struct wal_view_options options = {
        .struct_size = sizeof(options), .dialect = kit_text("entries"), .root = kit_text("root")};
    struct given given;
    bool is_done = false;

    open_copy(&given);
    send_chunk(&given, false);
    encode(&given, "{\"n\":1,\"uuid\":\"own\"}", FIRST, "a");
    encode_own(&given);
    encode(&given, SECOND, SECOND, NULL);
    send_chunk(&given, true);
    append_line(given.fork, "d", 0, "{\"n\":4}", 7);
    for (uint64_t n = 1; !is_done; n++) {
        struct faulty_heap faulty;
        struct wal__view_env env = {.heap = &faulty.heap};
        struct wal_view *view = NULL;
        enum wal_status status;

        faulty_heap_init(&faulty, &wal__heap_libc);
        faulty_heap_fail(&faulty, n, n % 2 == 0);
        status = wal__view_open(given.store, given.fork, &options, &env, &view, NULL);
        if (status == WAL_OK) {
            status = wal_view_flush(view, NULL, NULL);
        }
        assert_int_equal(status, faulty.failures > 0 ? WAL_ENOMEM : WAL_OK);
        wal_view_close(view);
        assert_int_equal(faulty.live, 0);
        is_done = faulty.failures == 0;
    }
    assert_true(view_kit_contains("root", "\"uuid\":\"own\""));
    assert_true(view_kit_contains("root", "\"n\":4"));
    assert_true(view_kit_contains("root", "22222222-2222-4333-8444-555555555555"));
    assert_false(view_kit_contains("root", "11111111-2222-4333-8444-5555555555"));
    assert_false(view_kit_contains("root", "33333333-2222-4333-8444-5555555555"));
}
