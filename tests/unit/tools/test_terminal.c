/*
 * test_terminal.c - texts, times, sizes and names for people (tools/terminal, tools/cli/cli.h,
 * tools/cli/session.h), and the keys of a terminal (tools/terminal/screen.h).
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/lib/test.h"
#include "tools/cli/session.h"
#include "tools/terminal/screen.h"

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS
};

/* What cell_print prints; *columns gets its result. The caller frees it. */
static char *print(const char *text, size_t columns, unsigned flags, size_t *printed)
{
    char *output = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&output, &size);

    assert_non_null(file);
    *printed = cell_print(file, text, strlen(text), columns, flags);
    fclose(file);
    return output;
}

static void check_cell(const char *text, size_t columns, unsigned flags, const char *expected,
                       size_t width)
{
    size_t printed;
    char *output = print(text, columns, flags, &printed);

    assert_string_equal(output, expected);
    assert_int_equal(printed, width);
    free(output);
}

TEST(cell__text_that_fits_is_whole)
{
    check_cell("abc", 3, 0, "abc", 3);
    check_cell("abc", 0, 0, "abc", 3);
    check_cell("", 4, CELL_PAD, "    ", 4);
    check_cell("ab", 4, CELL_PAD, "ab  ", 4);
    check_cell("a\tb\nc", 0, 0, "a b c", 5);
}

TEST(cell__text_that_is_wider_is_cut_at_an_end)
{
    check_cell("abcdef", 4, 0, "abc…", 4);
    check_cell("abcdef", 4, CELL_KEEP_END, "…def", 4);
    check_cell("abcdef", 1, 0, "…", 1);
    check_cell("abcdef", 1, CELL_KEEP_END, "…", 1);
}

TEST(cell__wide_and_combining_characters_count_columns)
{
    utf8_init();
    check_cell("日本語", 0, 0, "日本語", 6);
    check_cell("日本語", 6, 0, "日本語", 6);
    /* Half of a wide character is not printed. */
    check_cell("日本語", 4, CELL_PAD, "日… ", 4);
    check_cell("日本語", 4, CELL_KEEP_END | CELL_PAD, "…語 ", 4);
    check_cell("e\xCC\x81t\xC3\xA9", 3, 0, "e\xCC\x81t\xC3\xA9", 3);
}

TEST(cell__controls_and_invalid_bytes_are_escaped)
{
    check_cell("\x1b[0m", 0, 0, "\\x1b[0m", 7);
    check_cell("\xC2\x9B", 0, 0, "\\xc2\\x9b", 8);
    check_cell("\xE2\x80\xAE", 0, 0, "\\xe2\\x80\\xae", 12);
    check_cell("\xE2\x81\xA6", 0, 0, "\\xe2\\x81\\xa6", 12);
    check_cell("a\xFF", 0, 0, "a\\xff", 5);
    check_cell("\x7F", 0, 0, "\\x7f", 4);
    /* An escape is not cut in its middle. */
    check_cell("a\x1b"
               "b",
               4, 0, "a…", 2);
}

static void check_age(int64_t age_ms, const char *expected)
{
    const int64_t now_ms = INT64_C(1790000000000);
    char text[WHEN_SIZE];

    when_age(now_ms - age_ms, now_ms, text);
    assert_string_equal(text, expected);
    assert_true(strlen(text) <= WHEN_AGE_COLUMNS);
}

TEST(when__age_has_the_largest_unit)
{
    (void)setenv("TZ", "UTC0", 1);
    tzset();
    check_age(0, "now");
    check_age(MINUTE_MS - 1, "now");
    check_age(MINUTE_MS, "1 min ago");
    check_age(HOUR_MS - 1, "59 min ago");
    check_age(HOUR_MS, "1 h ago");
    check_age(DAY_MS - 1, "23 h ago");
    check_age(DAY_MS, "1 d ago");
    check_age(7 * (int64_t)DAY_MS - 1, "6 d ago");
    check_age(7 * (int64_t)DAY_MS, "2026-09-14");
    check_age(-MINUTE_MS, "now");
    check_age(-MINUTE_MS - 1, "2026-09-21");
}

TEST(when__time_is_local)
{
    char text[WHEN_SIZE];

    (void)setenv("TZ", "UTC-2", 1);
    tzset();
    when_text(INT64_C(1790000000000), text);
    assert_string_equal(text, "2026-09-21 16:13");
    when_text(-1, text);
    assert_string_equal(text, "1970-01-01 01:59");
    when_text(INT64_MAX, text);
    assert_true(strlen(text) < WHEN_SIZE);
}

static void check_size(uint64_t size, const char *expected)
{
    char text[SIZE_TEXT];

    size_text(size, text);
    assert_string_equal(text, expected);
}

TEST(size__units_are_powers_of_1000)
{
    check_size(0, "0 bytes");
    check_size(1, "1 byte");
    check_size(999, "999 bytes");
    check_size(1000, "1.0 kB");
    check_size(99999, "99.9 kB");
    check_size(100000, "100 kB");
    check_size(999999, "999 kB");
    check_size(1000000, "1.0 MB");
    check_size(36900000, "36.9 MB");
    check_size(UINT64_MAX, "18.4 EB");
}

TEST(suggest__nearest_name_within_a_third)
{
    static const char *const names[] = {"list", "latest", "tree", "checkpoint", "checkpoints"};
    static const char *const typed[][2] = {
        {"lsit", "list"}, {"lits", "list"}, {"tre", "tree"}, {"checkpont", "checkpoint"},
        {"xyz", NULL},    {"", NULL},       {"l", NULL},     {"chec", "checkpoint"},
    };

    for (size_t i = 0; i < sizeof(typed) / sizeof(typed[0]); i++) {
        struct cli_suggestion suggestion = {.typed = typed[i][0]};
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            cli_suggest(&suggestion, names[j]);
        }
        if (typed[i][1] == NULL) {
            assert_null(suggestion.nearest);
        } else {
            assert_string_equal(suggestion.nearest, typed[i][1]);
        }
    }
    assert_int_equal(cli_edit_distance("kitten", "sitting"), 3);
    assert_int_equal(cli_edit_distance("ab", "ba"), 1);
    assert_int_equal(cli_edit_distance("", "abc"), 3);
}

/* Many random ids: each short form is the ending of one, and begins none. */
TEST(short_id__every_short_form_names_one_id)
{
    enum { COUNT = 3000, SIZE = 21 };
    static char texts[COUNT][SIZE + 1];
    struct cli_short_ids ids = {.items = NULL};
    uint32_t random = 1;

    for (size_t i = 0; i < COUNT; i++) {
        /* Few different digits, so that endings are often equal. */
        for (size_t j = 0; j < SIZE; j++) {
            random = random * 1664525 + 1013904223;
            texts[i][j] = "012"[(random >> 16) % 3];
        }
        cli_short_ids_add(&ids, cli_slice(texts[i]));
    }
    ids.is_complete = true;
    for (size_t i = 0; i < COUNT; i++) {
        struct wal_slice id = cli_short_id(&ids, cli_slice(texts[i]));
        struct cli_match match = {.name = id.data};

        assert_true(id.size >= CLI_SHORT_SIZE);
        for (size_t j = 0; j < COUNT; j++) {
            cli_match_add(&match, cli_slice(texts[j]));
        }
        assert_int_equal(match.prefix_count + match.ending_count, 1);
        cli_match_deinit(&match);
    }
    cli_short_ids_deinit(&ids);
}

/* A list may go on after its first ids were printed: with those of the trash. */
TEST(short_id__ids_added_later_count)
{
    static const char *const texts[] = {"01a22a6e-bdf8-7e47-96c5-3a00c0ffee1",
                                        "c0ffee1-bdf8-7e47-96c5-3a0000000001",
                                        "01a22a6e-bdf8-7e47-96c5-3a0000000002"};
    struct cli_short_ids ids = {.is_complete = true};
    struct wal_slice first = cli_slice(texts[0]);

    cli_short_ids_add(&ids, first);
    assert_int_equal(cli_short_id(&ids, first).size, CLI_SHORT_SIZE);
    cli_short_ids_add(&ids, cli_slice(texts[1]));
    cli_short_ids_add(&ids, cli_slice(texts[2]));
    assert_int_equal(cli_short_id(&ids, first).size, first.size);
    assert_int_equal(cli_short_id(&ids, cli_slice(texts[1])).size, CLI_SHORT_SIZE);
    cli_short_ids_deinit(&ids);
}

/* The kind of the first key of a text, all of which is that key. */
static enum key_kind kind_of(const char *text)
{
    struct key key;

    assert_int_equal(key_parse((const uint8_t *)text, strlen(text), true, &key), strlen(text));
    return key.kind;
}

TEST(key__names)
{
    static const struct {
        const char *text;
        enum key_kind kind;
    } cases[] = {
        {"a", KEY_TEXT},
        {"\xC3\x84", KEY_TEXT},
        {"\xF0\x9F\x98\x80", KEY_TEXT},
        {"\r", KEY_ENTER},
        {"\x1B", KEY_ESCAPE},
        {"\x03", KEY_INTERRUPT},
        {"\x1B[A", KEY_UP},
        {"\x1BOA", KEY_UP},
        {"\x0B", KEY_UP},
        {"\x10", KEY_UP},
        {"\x1B[1;5B", KEY_DOWN},
        {"\n", KEY_DOWN},
        {"\x0E", KEY_DOWN},
        {"\x1B[5~", KEY_PAGE_UP},
        {"\x1B[6~", KEY_PAGE_DOWN},
        {"\x1B[H", KEY_HOME},
        {"\x1B[4~", KEY_END},
        {"\x7F", KEY_BACKSPACE},
        {"\x08", KEY_BACKSPACE},
        {"\x17", KEY_ERASE_WORD},
        {"\x15", KEY_ERASE_LINE},
        {"\x01", KEY_NONE},
        {"\x1B[200~", KEY_NONE},
        {"\x1Bx", KEY_NONE},
        {"\xE2\x80\xAE", KEY_NONE}, /* right to left */
        {"\xC2\x9B", KEY_NONE},     /* CSI */
        {"\xFF", KEY_NONE},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(kind_of(cases[i].text), cases[i].kind);
    }
}

TEST(key__waits_for_the_rest)
{
    static const char *const texts[] = {"\x1B[1;5B", "\x1BOA", "\xF0\x9F\x98\x80", "\xC3\x84"};
    struct key key;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        const uint8_t *data = (const uint8_t *)texts[i];
        size_t size = strlen(texts[i]);

        for (size_t part = 0; part < size; part++) {
            assert_int_equal(key_parse(data, part, false, &key), 0);
        }
        assert_int_equal(key_parse(data, size, false, &key), size);
    }
}

TEST(key__progress_on_any_bytes)
{
    uint8_t data[6];
    struct key key;

    for (uint32_t seed = 0; seed < 200000; seed++) {
        uint32_t mix = seed * 2654435761U;
        size_t size = 1 + seed % sizeof(data);
        size_t used;

        for (size_t i = 0; i < size; i++) {
            mix = mix * 1664525U + 1013904223U;
            data[i] = mix >> 31 != 0 ? 0x1B : (uint8_t)(mix >> 16);
        }
        used = key_parse(data, size, true, &key);
        assert_true(used > 0 && used <= size);
        assert_true(key.kind != KEY_TEXT || key.text[0] != '\0');
    }
}
