/* Tests of the beginning of a user's message. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/payload/first_text.h"
#include "tests/lib/test.h"

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
    assert_text(
        "{\"type\":\"message\",\"id\":\"30c6a75f\",\"message\":{\"role\""
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
    assert_text("{\"role\":\"user\",\"content\":\"<b>mend</b> it\"}",
                "<b>mend</b> it");
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
        {"x", 159}, {"\xc3\xa9", 79},       {"\xe2\x82\xac", 53},
        {" y", 79}, {"\\ud83d\\ude00", 39},
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
    char *payload = malloc(size);
    size_t head_size = strlen(head);
    size_t tail_size = strlen(tail);

    assert_non_null(payload);
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
        {"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi",
         "\"}]}", true},
        {"{\"message\":{\"role\":\"user\",\"content\":[\"hi", "\"]}}", true},
        {"{\"role\":\"user\",\"content\":\"hi\",\"", "\":1}", true},
        {"{\"content\":\"hi", "\",\"role\":\"user\"}", false},
        {"{\"content\":\"hi\",\"role\":\"user", "\"}", false},
        {"{\"role\":\"user\",\"content\":[{\"text\":\"hi",
         "\",\"type\":\"text\"}]}", false},
    };
    char text[WAL__FIRST_TEXT_MAX + 1];

    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t size = WAL__FIRST_TEXT_SCAN_MAX + 4096;
        char *payload = long_payload(cases[i].head, cases[i].tail, size);
        assert_int_equal(first_text_of(payload, size, text), cases[i].is_user);
        if (cases[i].is_user) {
            assert_memory_equal(text, "hi", 2);
        }
        free(payload);
    }
    /* Just short enough, it is looked at whole. */
    char *payload =
        long_payload(cases[5].head, cases[5].tail, WAL__FIRST_TEXT_SCAN_MAX);
    assert_true(first_text_of(payload, WAL__FIRST_TEXT_SCAN_MAX, text));
    payload[WAL__FIRST_TEXT_SCAN_MAX - 1] = ' ';
    assert_false(first_text_of(payload, WAL__FIRST_TEXT_SCAN_MAX, text));
    free(payload);
}

/* Wherever the cut is, even in a character or an escape, the text is valid. */
TEST(first_text__cut_anywhere_gives_whole_characters)
{
    static const char payload[] =
        "{\"a\": [1, true, \"\\ud83d\\ude00\"], \"message\": {\"role\": "
        "\"user\", \"content\": [{\"type\": \"text\", \"text\": \"\\u20ac"
        "\xe2\x82\xac\\ud83d\\ude00\xf0\x9f\x98\x80!\"}, {\"b\": {}}], \"c\": "
        "-1.5e3}}          ";
    static const char whole[] =
        "\xe2\x82\xac\xe2\x82\xac\xf0\x9f\x98\x80\xf0\x9f\x98\x80!";
    size_t size = WAL__FIRST_TEXT_SCAN_MAX + sizeof(payload) - 1;
    char text[WAL__FIRST_TEXT_MAX + 1];
    char *padded = malloc(size);
    size_t longest = 0;

    assert_non_null(padded);
    for (size_t kept = 1; kept < sizeof(payload); kept++) {
        memset(padded, ' ', WAL__FIRST_TEXT_SCAN_MAX);
        memcpy(padded + WAL__FIRST_TEXT_SCAN_MAX - kept, payload,
               sizeof(payload) - 1);
        if (!first_text_of(
                padded, WAL__FIRST_TEXT_SCAN_MAX - kept + sizeof(payload) - 1,
                text)) {
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
    free(padded);
}
