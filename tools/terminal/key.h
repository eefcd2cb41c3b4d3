/*
 * key.h - keys of a terminal in raw mode, as fzf names them.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_KEY_H
#define AGENTWAL_TOOLS_TERMINAL_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum key_kind {
    KEY_NONE, /* no key, or one that has no meaning here */
    KEY_TEXT, /* a character */
    KEY_ENTER,
    KEY_ESCAPE,
    KEY_INTERRUPT, /* Ctrl-C */
    KEY_UP,        /* also Ctrl-K, Ctrl-P */
    KEY_DOWN,      /* also Ctrl-J, Ctrl-N */
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_BACKSPACE,
    KEY_ERASE_WORD, /* Ctrl-W */
    KEY_ERASE_LINE, /* Ctrl-U */
    KEY_RESIZE,     /* the size of the terminal changed */
    KEY_CLOSED      /* the terminal is gone */
};

enum {
    KEY_SIZE = 8 /* bytes of a character with its terminator */
};

struct key {
    enum key_kind kind;
    char text[KEY_SIZE]; /* of KEY_TEXT */
};

/* Reads the first key of what was typed. Returns its bytes, or 0 when more have
 * to come; with `is_all` none do, so that ESC is a key. */
size_t key_parse(const uint8_t *data, size_t size, bool is_all,
                 struct key *key);

#endif
