/*
 * test_key.c - tests of the keys of a terminal (tools/terminal/key.h).
 */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tests/lib/test.h"
#include "tools/terminal/key.h"

/* The kind of the first key of a text, all of which is that key. */
static enum key_kind kind_of(const char *text)
{
    struct key key;

    assert_int_equal(key_parse((const uint8_t *)text, strlen(text), true, &key),
                     strlen(text));
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
    static const char *const texts[] = {"\x1B[1;5B", "\x1BOA",
                                        "\xF0\x9F\x98\x80", "\xC3\x84"};
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
