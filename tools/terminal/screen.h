/*
 * screen.h - a terminal that a program draws on and reads keys from, in raw mode.
 *
 * Invariant: the terminal's mode and screen are restored by screen_close, when the process exits,
 * and when a signal ends it.
 *
 * Threads: the tools are single-threaded; one screen is open at a time.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_SCREEN_H
#define AGENTWAL_TOOLS_TERMINAL_SCREEN_H

#include "tools/terminal/terminal.h"

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

/* Reads the first key of what was typed. Returns its bytes, or 0 when more have to come; with
 * `is_all` none do, so that ESC is a key. */
size_t key_parse(const uint8_t *data, size_t size, bool is_all, struct key *key);

struct screen {
    FILE *file; /* what is drawn */
    size_t rows;
    size_t columns;
    bool has_colour;
    /* private */
    int fd;
    size_t line; /* of the frame, that is drawn next */
    uint8_t typed[256];
    size_t typed_count;
};

/* Opens the terminal of the process, /dev/tty, whatever the standard streams are. Returns false
 * when it has none. */
bool screen_open(struct screen *screen, bool no_colour);

/* Restores the terminal. A closed screen may be closed. */
void screen_close(struct screen *screen);

/* Waits for a key; KEY_NONE when the time is over. Negative: no limit. */
void screen_read_key(struct screen *screen, int timeout_ms, struct key *key);

/* Whether a key was typed and not read. */
bool screen_has_key(const struct screen *screen);

/* Draws a frame: screen_begin, for each line its text and screen_end_line, and screen_end. */
void screen_begin(struct screen *screen);
void screen_end_line(struct screen *screen);
void screen_end(struct screen *screen);

/* Whether the frame has room for another line. */
bool screen_has_room(const struct screen *screen);

/* Starts a style, or ends it with TERMINAL_PLAIN; inverse marks a line. */
void screen_put_style(const struct screen *screen, enum terminal_style style);
void screen_put_inverse(const struct screen *screen, bool is_on);

#endif
