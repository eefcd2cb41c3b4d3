/*
 * test_model_text.c - tests of the clock as a text (engine/session/text), of the beginning of a
 * user's message, and of times as text and as milliseconds: their form, and which times count.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/store/input_text.h"
#include "format/payload/first_text.h"
#include "format/payload/timestamp.h"
#include "tests/lib/test.h"

static int64_t clock_ms;

static int64_t now_ms(void *ctx)
{
    (void)ctx;
    return clock_ms;
}

static void format_time(int64_t ms, char out[WAL__TIME_TEXT + 1])
{
    static const struct wal__io io = {.now_ms = now_ms};
    static struct wal__env env = {.io = &io};

    clock_ms = ms;
    wal__text_now(&env, out);
    out[WAL__TIME_TEXT] = '\0';
}

TEST(text__now_has_milliseconds)
{
    char text[WAL__TIME_TEXT + 1];

    format_time(0, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    format_time(INT64_C(951827696789), text);
    assert_string_equal(text, "2000-02-29T12:34:56.789Z");
    format_time(INT64_C(253402300799999), text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
    format_time(-1, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
}

TEST(text__now_formats_every_date)
{
    char text[WAL__TIME_TEXT + 1];
    char expected[64];

    for (int64_t day = 0; day < 2932896; day++) {
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        struct tm tm;

        assert_non_null(gmtime_r(&seconds, &tm));
        assert_int_equal(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S", &tm), 19);
        format_time((int64_t)seconds * 1000 + day % 1000, text);
        if (memcmp(text, expected, 19) != 0) {
            fail_msg("day %lld: %s, not %s", (long long)day, text, expected);
        }
    }
}

TEST(text__cached_time_is_of_its_millisecond)
{
    struct wal__time_cache cache = {0};
    char out[WAL__TIME_TEXT];
    char text[WAL__TIME_TEXT + 1];

    assert_false(wal__time_cache_get(&cache, 0, out));
    format_time(5, text);
    wal__time_cache_put(&cache, 5, text);
    assert_true(wal__time_cache_get(&cache, 5, out));
    assert_memory_equal(out, text, WAL__TIME_TEXT);
    assert_false(wal__time_cache_get(&cache, 4, out));
    /* While another thread replaces the text, nothing is read or replaced. */
    atomic_fetch_add(&cache.version, 1);
    assert_false(wal__time_cache_get(&cache, 5, out));
    wal__time_cache_put(&cache, 6, text);
    assert_int_equal(atomic_load(&cache.ms), 5);
    assert_int_equal(atomic_load(&cache.version), 3);
}

/* Two times that differ in each group of digits. */
static const int64_t times_ms[] = {INT64_C(951827696789), INT64_C(1798761599012)};

enum { TIMES = sizeof(times_ms) / sizeof(times_ms[0]), THREADS = 4, ROUNDS = 20000 };

static int64_t alternate_ms(void *ctx)
{
    return times_ms[atomic_fetch_add((atomic_uint *)ctx, 1) % TIMES];
}

struct shared {
    struct wal__env env;
    char texts[TIMES][WAL__TIME_TEXT + 1];
    atomic_int wrong;
};

static void *format_times(void *arg)
{
    struct shared *shared = arg;
    char out[WAL__TIME_TEXT];

    for (int i = 0; i < ROUNDS; i++) {
        wal__text_now(&shared->env, out);
        if (memcmp(out, shared->texts[0], sizeof(out)) != 0 &&
            memcmp(out, shared->texts[1], sizeof(out)) != 0) {
            atomic_fetch_add(&shared->wrong, 1);
        }
    }
    return NULL;
}

TEST(text__threads_never_mix_cached_times)
{
    atomic_uint next = 0;
    struct wal__time_cache cache = {0};
    const struct wal__io io = {.ctx = &next, .now_ms = alternate_ms};
    struct shared shared = {.env = {.io = &io, .times = &cache}};
    pthread_t threads[THREADS];

    for (int i = 0; i < TIMES; i++) {
        format_time(times_ms[i], shared.texts[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, format_times, &shared), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(atomic_load(&shared.wrong), 0);
    assert_true(atomic_load(&cache.version) > 0);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool first_text_of(const char *payload, size_t payload_size,
                          char text[WAL__FIRST_TEXT_MAX + 1])
{
    /* A copy of exactly that size: the sanitizer sees reads beyond it. */
    uint8_t *copy = malloc(payload_size + 1);
    assert_non_null(copy);
    memcpy(copy, payload, payload_size);
    copy = realloc(copy, payload_size == 0 ? 1 : payload_size);
    assert_non_null(copy);
    struct wal__span span = {copy, payload_size};
    uint8_t out[WAL__FIRST_TEXT_MAX];
    size_t size = SIZE_MAX;

    memset(out, 0xee, sizeof(out));
    bool is_user = wal__first_text(span, out, &size);
    free(copy);
    if (!is_user) {
        assert_int_equal(size, SIZE_MAX);
        for (size_t i = 0; i < sizeof(out); i++) {
            assert_int_equal(out[i], 0xee);
        }
        return false;
    }
    assert_in_range(size, 1, WAL__FIRST_TEXT_MAX);
    memcpy(text, out, size);
    text[size] = '\0';
    return true;
}

static void assert_text(const char *payload, const char *expected)
{
    char text[WAL__FIRST_TEXT_MAX + 1];

    if (!first_text_of(payload, strlen(payload), text)) {
        fail_msg("no text in %s", payload);
    }
    assert_string_equal(text, expected);
}

static void assert_none(const char *payload)
{
    char text[WAL__FIRST_TEXT_MAX + 1];

    if (first_text_of(payload, strlen(payload), text)) {
        fail_msg("\"%s\" in %s", text, payload);
    }
}

TEST(first_text__message_is_found_in_three_places)
{
    assert_text("{\"role\":\"user\",\"content\":\"hi\"}", "hi");
    assert_text("{\"message\":{\"role\":\"user\",\"content\":\"hi\"}}", "hi");
    assert_text("{\"payload\":{\"content\":\"hi\",\"role\":\"user\"}}", "hi");
    assert_text("\xef\xbb\xbf{\"role\":\"user\",\"content\":\"hi\"}", "hi");
    /* The first of them with a role counts. */
    assert_none("{\"message\":{\"role\":\"user\",\"content\":\"hi\"},"
                "\"role\":\"assistant\",\"content\":\"no\"}");
    assert_text("{\"payload\":{\"role\":\"assistant\",\"content\":\"no\"},"
                "\"message\":{\"role\":\"user\",\"content\":\"hi\"}}",
                "hi");
    assert_text("{\"role\":7,\"message\":{\"role\":null},"
                "\"payload\":{\"role\":\"user\",\"content\":\"hi\"}}",
                "hi");
}

TEST(first_text__shapes_of_agents)
{
    assert_text("{\"type\":\"message\",\"id\":\"30c6a75f\",\"message\":{\"role\""
                ":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Read "
                "it.\"}],\"timestamp\":1778547747671}}",
                "Read it.");
    assert_text("{\"parentUuid\":null,\"isSidechain\":false,\"type\":\"user\","
                "\"message\":{\"role\":\"user\",\"content\":\"mend "
                "it\"},\"isMeta\":false,\"uuid\":\"u\"}",
                "mend it");
    assert_text("{\"type\":\"response_item\",\"payload\":{\"type\":\"message\","
                "\"role\":\"user\",\"content\":[{\"type\":\"input_text\","
                "\"text\":\"Start\"}]}}",
                "Start");
    assert_text("{\"message\":{\"role\":\"user\",\"parts\":[{\"inlineData\":{}},{\"text\":"
                "\"no\",\"thought\":true},{\"text\":\"go\"}]}}",
                "go");
    assert_text("{\"role\":\"user\",\"message\":{\"content\":\"hi\"}}", "hi");
    assert_text(
        "{\"source\":\"USER_EXPLICIT\",\"type\":\"USER_INPUT\",\"content\":"
        "\"<USER_REQUEST>\\nhi<ADDITIONAL_METADATA>{}</ADDITIONAL_METADATA></USER_REQUEST>\"}",
        "hi");
    assert_none("{\"source\":\"USER_EXPLICIT\",\"type\":\"CHECKPOINT\",\"content\":\"no\"}");
    assert_none("{\"source\":\"MODEL\",\"content\":\"no\"}");
    assert_text("{\"$set\":{\"x\":[[1]],\"messages\":[7,{\"type\":\"gemini\",\"content\":\"no\"},"
                "{\"type\":\"user\",\"content\":[{\"text\":\"hi\"}]},{\"type\":\"user\","
                "\"content\":\"no\"}]}}",
                "hi");
    assert_text("{\"messages\":[{\"type\":\"info\"},{\"content\":\"hi\",\"type\":\"user\"}]}",
                "hi");
    assert_none("{\"$set\":{\"messages\":{\"type\":\"user\",\"content\":\"no\"}}}");
    assert_none("{\"$set\":[],\"messages\":[{\"role\":\"user\",\"content\":\"no\"}]}");
    assert_none("{\"role\":\"user\",\"parts\":\"no\"}");
    assert_none("{\"role\":\"user\",\"content\":[{\"text\":\"no\"}]}");
}

TEST(first_text__agents_internal_messages_are_skipped)
{
    assert_none("{\"isMeta\":true,\"message\":{\"role\":\"user\","
                "\"content\":\"hi\"}}");
    assert_none("{\"message\":{\"role\":\"user\",\"content\":\"hi\"},"
                "\"isSidechain\":true}");
    /* Further in they mean nothing, and the last one counts. */
    assert_text("{\"isMeta\":true,\"message\":{\"role\":\"user\","
                "\"content\":\"hi\",\"isMeta\":true},\"isMeta\":false}",
                "hi");
}

TEST(first_text__injected_context_is_skipped)
{
    assert_none("{\"message\":{\"role\":\"user\",\"content\":"
                "\"<command-name>/clear</command-name>\"}}");
    assert_none("{\"message\":{\"role\":\"user\",\"content\":"
                "\" \\n\\u003clocal-command-stdout>x\"}}");
    assert_none("{\"role\":\"user\",\"content\":[{\"type\":\"input_text\","
                "\"text\":\"<environment_context>\\n<cwd>/srv\"}]}");
    assert_none("{\"role\":\"user\",\"content\":"
                "\"# AGENTS.md instructions for /srv\"}");
    /* The first other block counts; and so does any other tag. */
    assert_text("{\"role\":\"user\",\"content\":[{\"type\":\"text\","
                "\"text\":\"<ide_opened_file>a.c</ide_opened_file>\"},"
                "{\"type\":\"text\",\"text\":\"mend it\"}]}",
                "mend it");
    assert_text("{\"role\":\"user\",\"content\":\"<b>mend</b> it\"}", "<b>mend</b> it");
    /* Words in a tag for them, and those after notes, are a person's. */
    assert_text("{\"role\":\"user\",\"content\":[{\"text\":\"<timestamp>t</timestamp>\\n"
                "<user_query>\\nmend it\\n</user_query>\",\"type\":\"text\"}]}",
                "mend it");
    assert_text("{\"role\":\"user\",\"content\":\"<system-reminder>s</system-reminder>"
                "\\nmend it\",\"x\":\"</system-reminder>\"}",
                "mend it");
    assert_none("{\"role\":\"user\",\"content\":\"<user_query> </user_query>\"}");
    assert_none("{\"role\":\"user\",\"content\":\"<system-reminder>\",\"x\":"
                "\"</system-reminder>mend it\"}");
}

/* A text that begins with a path is none. */
TEST(first_text__commands_to_the_client_are_skipped)
{
    assert_none("{\"role\":\"user\",\"content\":\"/mode\"}");
    assert_none(
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\" /my-mode\\nfast\"}]}");
    assert_text("{\"role\":\"user\",\"content\":\"/\"}", "/");
    assert_text("{\"role\":\"user\",\"content\":\"/ mode\"}", "/ mode");
    assert_text("{\"role\":\"user\",\"content\":\"/srv/app is broken\"}", "/srv/app is broken");
    assert_text("{\"role\":\"user\",\"content\":\"use /mode\"}", "use /mode");
}

TEST(first_text__prompt_of_a_turn)
{
    assert_text("{\"type\":\"turn.prompt\",\"input\":[{\"type\":\"text\",\"text\":\"hi\"}]}", "hi");
    assert_text("{\"input\":\"hi\",\"type\":\"turn.prompt\"}", "hi");
    assert_text("{\"timestamp\":1,\"message\":{\"type\":\"TurnBegin\",\"payload\":{\"a\":[1],"
                "\"user_input\":\"hi\"}}}",
                "hi");
    assert_text(
        "{\"message\":{\"payload\":{\"user_input\":[{\"text\":\"hi\",\"type\":\"text\"}]}}}", "hi");
    assert_none("{\"type\":\"other\",\"input\":\"hi\"}");
    assert_none("{\"message\":{\"payload\":{\"payload\":{\"user_input\":\"hi\"}}}}");
    assert_none("{\"type\":\"turn.prompt\",\"input\":7}");
}

TEST(first_text__first_text_of_an_array_counts)
{
    assert_text("{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"text\":"
                "\"no\"},[\"no\"],4,{\"type\":\"text\",\"text\":5},{\"text\":"
                "\"hi\",\"type\":\"text\"},{\"type\":\"text\",\"text\":"
                "\"later\"}]}",
                "hi");
    assert_text("{\"role\":\"user\",\"content\":[{},\"plain\",{\"type\":"
                "\"text\",\"text\":\"later\"}]}",
                "plain");
    assert_none("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                "\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}]}");
    assert_none("{\"role\":\"user\",\"content\":[]}");
}

TEST(first_text__last_of_equal_members_counts)
{
    assert_text("{\"role\":\"system\",\"content\":[\"no\"],\"role\":\"user\","
                "\"content\":\"hi\"}",
                "hi");
    assert_none("{\"role\":\"user\",\"content\":\"no\",\"content\":{}}");
    assert_none("{\"message\":{\"role\":\"user\",\"content\":\"no\"},"
                "\"message\":{\"content\":\"no\"}}");
    assert_none("{\"message\":{\"role\":\"user\",\"content\":\"no\"},"
                "\"message\":1}");
}

TEST(first_text__gaps_become_one_space)
{
    assert_text("{\"role\":\"user\",\"content\":\" \\n\\t a \\u0000\\r\\n"
                "\\u001b\xc2\x85\xe3\x80\x80z\xc2\xa0 \"}",
                "a z");
    assert_text("{\"r\\u006fle\":\"us\\u0065r\",\"content\":\"\\\"\\\\\\/"
                "\\u00e9\xc3\xa9\\u20ac\\ud83d\\ude00\"}",
                "\"\\/\xc3\xa9\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_none("{\"role\":\"user\",\"content\":\" \\n \\u0007\"}");
    assert_none("{\"role\":\"user\",\"content\":\"\"}");
}

TEST(first_text__cut_is_between_characters)
{
    static const struct {
        const char *character;
        size_t fits; /* after one letter */
    } cases[] = {
        {"x", 159}, {"\xc3\xa9", 79}, {"\xe2\x82\xac", 53}, {" y", 79}, {"\\ud83d\\ude00", 39},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char payload[4096] = "{\"role\":\"user\",\"content\":\"a";
        char text[WAL__FIRST_TEXT_MAX + 1];
        for (size_t n = 0; n < 200; n++) {
            strcat(payload, cases[i].character);
        }
        strcat(payload, "\"}");
        assert_true(first_text_of(payload, strlen(payload), text));
        size_t width = i == 4 ? 4 : strlen(cases[i].character);
        assert_int_equal(strlen(text), 1 + cases[i].fits * width);
    }
}

TEST(first_text__other_payloads_have_none)
{
    static const char *const payloads[] = {
        "",
        " ",
        "null",
        "\"user\"",
        "[{\"role\":\"user\",\"content\":\"hi\"}]",
        "{}",
        "{\"role\":\"user\"}",
        "{\"content\":\"hi\"}",
        "{\"role\":\"User\",\"content\":\"hi\"}",
        "{\"role\":[\"user\"],\"content\":\"hi\"}",
        "{\"role\":\"user\",\"content\":\"hi\"",
        "{\"role\":\"user\",\"content\":\"hi\"}}",
        "{\"role\":\"user\",\"content\":\"hi\",}",
        "{\"role\":\"user\",\"content\":\"hi\xff\"}",
        "{\"role\":\"user\",\"content\":\"hi",
        "{\"data\":{\"message\":{\"role\":\"user\",\"content\":\"hi\"}}}",
    };

    for (size_t i = 0; i < COUNT(payloads); i++) {
        assert_none(payloads[i]);
    }
}

/* Puts `head`, then letters, then `tail`, so that all of it is `size` bytes. */
static char *long_payload(const char *head, const char *tail, size_t size)
{
    char *payload = test_memory(size);
    size_t head_size = strlen(head);
    size_t tail_size = strlen(tail);

    memset(payload, 'x', size);
    memcpy(payload, head, head_size);
    memcpy(payload + size - tail_size, tail, tail_size);
    return payload;
}

TEST(first_text__long_payload_counts_up_to_the_cut)
{
    static const struct {
        const char *head;
        const char *tail;
        bool is_user;
    } cases[] = {
        {"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"},"
         "{\"type\":\"image\",\"data\":\"",
         "\"}]}", true},
        {"{\"role\":\"user\",\"content\":\"hi", "\"}", true},
        {"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi", "\"}]}", true},
        {"{\"message\":{\"role\":\"user\",\"content\":[\"hi", "\"]}}", true},
        {"{\"role\":\"user\",\"content\":\"hi\",\"", "\":1}", true},
        {"{\"content\":\"hi", "\",\"role\":\"user\"}", false},
        {"{\"content\":\"hi\",\"role\":\"user", "\"}", false},
        {"{\"role\":\"user\",\"content\":[{\"text\":\"hi", "\",\"type\":\"text\"}]}", false},
    };
    char text[WAL__FIRST_TEXT_MAX + 1];

    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t size = WAL__FIRST_TEXT_SCAN_MAX + 4096;
        char *payload = long_payload(cases[i].head, cases[i].tail, size);
        assert_int_equal(first_text_of(payload, size, text), cases[i].is_user);
        if (cases[i].is_user) {
            assert_memory_equal(text, "hi", 2);
        }
    }
    /* Just short enough, it is looked at whole. */
    char *payload = long_payload(cases[5].head, cases[5].tail, WAL__FIRST_TEXT_SCAN_MAX);
    assert_true(first_text_of(payload, WAL__FIRST_TEXT_SCAN_MAX, text));
    payload[WAL__FIRST_TEXT_SCAN_MAX - 1] = ' ';
    assert_false(first_text_of(payload, WAL__FIRST_TEXT_SCAN_MAX, text));
}

/* Wherever the cut is, even in a character or an escape, the text is valid. */
TEST(first_text__cut_anywhere_gives_whole_characters)
{
    static const char payload[] =
        "{\"a\": [1, true, \"\\ud83d\\ude00\"], \"message\": {\"role\": "
        "\"user\", \"content\": [{\"type\": \"text\", \"text\": \"\\u20ac"
        "\xe2\x82\xac\\ud83d\\ude00\xf0\x9f\x98\x80!\"}, {\"b\": {}}], \"c\": "
        "-1.5e3}}          ";
    static const char whole[] = "\xe2\x82\xac\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80!";
    size_t size = WAL__FIRST_TEXT_SCAN_MAX + sizeof(payload) - 1;
    char text[WAL__FIRST_TEXT_MAX + 1];
    char *padded = test_memory(size);
    size_t longest = 0;

    for (size_t kept = 1; kept < sizeof(payload); kept++) {
        memset(padded, ' ', WAL__FIRST_TEXT_SCAN_MAX);
        memcpy(padded + WAL__FIRST_TEXT_SCAN_MAX - kept, payload, sizeof(payload) - 1);
        if (!first_text_of(padded, WAL__FIRST_TEXT_SCAN_MAX - kept + sizeof(payload) - 1, text)) {
            assert_int_equal(longest, 0);
            continue;
        }
        size_t text_size = strlen(text);
        assert_true(text_size >= longest);
        assert_memory_equal(text, whole, text_size);
        assert_true(((uint8_t)whole[text_size] & 0xc0) != 0x80);
        longest = text_size;
    }
    assert_int_equal(longest, sizeof(whole) - 1);
}

static struct wal__json_span span(const char *text)
{
    return (struct wal__json_span){(const uint8_t *)text, strlen(text)};
}

static void assert_ms(const char *text, int64_t expected)
{
    int64_t ms = -1;

    assert_true(wal__model_time_read(span(text), &ms));
    assert_true(ms == expected);
}

static void assert_no_time(const char *text)
{
    int64_t ms = 42;

    assert_false(wal__model_time_read(span(text), &ms));
    assert_true(ms == 42);
}

TEST(model_time__forms_of_iso_8601)
{
    assert_ms("\"1970-01-01T00:00:00Z\"", 0);
    assert_ms("\"1970-01-01T00:00:00.1Z\"", 100);
    assert_ms("\"1970-01-01T00:00:00.123456789Z\"", 123);
    assert_ms("\"1970-01-01T01:00:00+01:00\"", 0);
    assert_ms("\"1969-12-31T22:30:00-0130\"", 0);
    assert_ms("\"2026-01-02T03:04:05.678Z\"", INT64_C(1767323045678));
    assert_ms("\"2000-02-29 12:00:00\"", INT64_C(951825600000));
    assert_ms("1767323045678", INT64_C(1767323045678));
}

TEST(model_time__invalid_times)
{
    static const char *const texts[] = {"",
                                        "\"\"",
                                        "\"2026-01-02\"",
                                        "\"2026-13-02T03:04:05Z\"",
                                        "null",
                                        "1.5",
                                        "\"2026-01-02T03:04:05.Z\"",
                                        "\"x\"",
                                        "99999999999999999",
                                        "\"2026-01-02T03:04:05Zx\""};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_no_time(texts[i]);
    }
}

TEST(model_time__round_trip)
{
    static const int64_t times[] = {0,
                                    -1,
                                    INT64_C(951825600123),
                                    INT64_C(-62167219200000),
                                    INT64_C(253402300799999),
                                    INT64_C(4107542400000)};
    uint8_t text[WAL__MODEL_TIME_SIZE];

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        int64_t ms = 1;
        assert_true(wal__model_time_read(wal__model_time_write(times[i], text), &ms));
        assert_true(ms == times[i]);
    }
    for (int64_t day = -719528; day < 2932896; day += 97) {
        int64_t ms = 1;
        assert_true(wal__model_time_read(wal__model_time_write(day * 86400000 + 1, text), &ms));
        assert_true(ms == day * 86400000 + 1);
    }
    wal__model_time_write(INT64_C(1767323045678), text);
    assert_memory_equal(text, "\"2026-01-02T03:04:05.678Z\"", sizeof(text));
}

#define NOW INT64_C(1700000000000)
#define DAY INT64_C(86400000)

static int64_t time_of(const char *text)
{
    return wal__session_time_of_entry((struct wal__span){(const uint8_t *)text, strlen(text)}, NOW);
}

TEST(session_time__range_that_is_believed)
{
    assert_int_equal(wal__session_time_believed(0, NOW), 0);
    assert_int_equal(wal__session_time_believed(-1, NOW), NOW);
    assert_int_equal(wal__session_time_believed(INT64_MIN, NOW), NOW);
    assert_int_equal(wal__session_time_believed(NOW + DAY, NOW), NOW + DAY);
    assert_int_equal(wal__session_time_believed(NOW + DAY + 1, NOW), NOW);
    assert_int_equal(wal__session_time_believed(INT64_MAX, NOW), NOW);
}

/* The clock of the store may be wrong itself. */
TEST(session_time__at_the_ends_of_the_clock)
{
    assert_int_equal(wal__session_time_believed(0, INT64_MIN), INT64_MIN);
    assert_int_equal(wal__session_time_believed(INT64_MAX, INT64_MAX), INT64_MAX);
    assert_int_equal(wal__session_time_believed(5, -DAY), -DAY);
    assert_int_equal(wal__session_time_believed(5, 5 - DAY), 5);
}

TEST(session_time__texts)
{
    assert_int_equal(time_of("1970-01-01T00:00:01Z"), 1000);
    assert_int_equal(time_of("1970-01-01T00:00:01.2345Z"), 1234);
    assert_int_equal(time_of("1970-01-01 01:00:01+01:00"), 1000);
    assert_int_equal(time_of("1970-01-01T00:00:00+00:01"), NOW);
    assert_int_equal(time_of(""), NOW);
    assert_int_equal(time_of("\"1970-01-01T00:00:01Z\""), NOW);
    assert_int_equal(time_of("1000"), NOW);
    assert_int_equal(time_of("1970-01-01"), NOW);
    assert_int_equal(time_of("1970-01-01T00:00:01Z "), NOW);
}
