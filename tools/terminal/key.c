/*
 * key.c - parse keys (key.h).
 */
#include "tools/terminal/key.h"

#include <string.h>

#include "tools/terminal/utf8.h"

enum {
    ESC = 0x1B,
    SEQUENCE_MAX = 32 /* bytes of an escape sequence */
};

static enum key_kind control(uint8_t byte)
{
    switch (byte) {
    case 0x03:
        return KEY_INTERRUPT;
    case 0x08:
    case 0x7F:
        return KEY_BACKSPACE;
    case '\n': /* Ctrl-J */
    case 0x0E:
        return KEY_DOWN;
    case 0x0B:
    case 0x10:
        return KEY_UP;
    case '\r':
        return KEY_ENTER;
    case 0x15:
        return KEY_ERASE_LINE;
    case 0x17:
        return KEY_ERASE_WORD;
    default:
        return KEY_NONE;
    }
}

/* The key of CSI PARAMETERS FINAL, or SS3 FINAL. */
static enum key_kind sequence(const uint8_t *parameters, uint8_t final)
{
    switch (final) {
    case 'A':
        return KEY_UP;
    case 'B':
        return KEY_DOWN;
    case 'H':
        return KEY_HOME;
    case 'F':
        return KEY_END;
    case '~':
        return parameters[0] == '5'   ? KEY_PAGE_UP
               : parameters[0] == '6' ? KEY_PAGE_DOWN
               : parameters[0] == '1' ? KEY_HOME
               : parameters[0] == '4' ? KEY_END
                                      : KEY_NONE;
    default:
        return KEY_NONE;
    }
}

static size_t parse_escape(const uint8_t *data, size_t size, bool is_all,
                           struct key *key)
{
    size_t at = 2;

    if (size == 1 || data[1] == ESC) {
        key->kind = KEY_ESCAPE;
        return size > 1 || is_all ? 1 : 0;
    }
    if (data[1] != '[' && data[1] != 'O') {
        return 2; /* Alt and a key */
    }
    while (at < size && at < SEQUENCE_MAX &&
           (data[at] < 0x40 || data[at] > 0x7E)) {
        at++;
    }
    if (at == size && at < SEQUENCE_MAX) {
        return is_all ? size : 0;
    }
    key->kind = sequence(data + 2, data[at < size ? at : size - 1]);
    return at < size ? at + 1 : size;
}

size_t key_parse(const uint8_t *data, size_t size, bool is_all, struct key *key)
{
    size_t count;

    memset(key, 0, sizeof(*key));
    if (size == 0) {
        return 0;
    }
    if (data[0] == ESC) {
        return parse_escape(data, size, is_all, key);
    }
    count = utf8_size(data, size);
    if (count == 0) {
        /* The rest of a character, or no UTF-8. */
        return data[0] >= 0xC2 && size < 4 && !is_all ? 0 : 1;
    }
    if (data[0] < 0x20 || data[0] == 0x7F) {
        key->kind = control(data[0]);
    } else if (!utf8_is_control(data)) {
        key->kind = KEY_TEXT;
        memcpy(key->text, data, count);
    }
    return count;
}
