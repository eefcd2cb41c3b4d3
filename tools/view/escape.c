/*
 * escape.c - escapes of JSON, URLs and terminals in a text (escape.h).
 */
#include "tools/view/escape.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

enum {
    COLOUR_MAX = 16 /* bytes of a colour of a terminal */
};

static bool is_hex(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (isxdigit((unsigned char)text[i]) == 0) {
            return false;
        }
    }
    return true;
}

/* Whether "ESC [ PARAMETERS LETTER", as the byte or escaped, ends at `at`. */
static bool is_after_colour(const char *data, size_t at)
{
    static const char *const forms[] = {"\x1b", "\\u001b", "\\x1b", "\\033",
                                        "\\e"};
    size_t from = at - 1;

    while (from > 0 && at - from < COLOUR_MAX &&
           (isdigit((unsigned char)data[from - 1]) != 0 ||
            data[from - 1] == ';')) {
        from--;
    }
    if (from == 0 || data[from - 1] != '[') {
        return false;
    }
    from--;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        size_t size = strlen(forms[i]);

        if (from >= size &&
            strncasecmp(data + from - size, forms[i], size) == 0) {
            return true;
        }
    }
    return false;
}

bool view_is_after_escape(const char *data, size_t at)
{
    if (at < 2 || isalnum((unsigned char)data[at - 1]) == 0) {
        return false;
    }
    return (data[at - 2] == '\\' && strchr("bfnrt", data[at - 1]) != NULL) ||
           (at >= 3 && data[at - 3] == '%' && is_hex(data + at - 2, 2)) ||
           (at >= 6 && data[at - 6] == '\\' && data[at - 5] == 'u' &&
            is_hex(data + at - 4, 4)) ||
           is_after_colour(data, at);
}

size_t view_colour_size(const char *data, size_t size, size_t at)
{
    size_t end = at + 2;

    if (size - at < 3 || memcmp(data + at, "\x1b[", 2) != 0) {
        return 0;
    }
    while (end < size && end - at < COLOUR_MAX &&
           (isdigit((unsigned char)data[end]) != 0 || data[end] == ';')) {
        end++;
    }
    return end < size && isalpha((unsigned char)data[end]) != 0 ? end + 1 - at
                                                                : 0;
}
