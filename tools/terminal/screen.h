/*
 * screen.h - a terminal that a program draws on and reads keys from.
 *
 * Invariant: the terminal's mode and screen are restored by screen_close, when
 * the process exits, and when a signal ends it.
 *
 * Threads: the tools are single-threaded; one screen is open at a time.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_SCREEN_H
#define AGENTWAL_TOOLS_TERMINAL_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/terminal/key.h"
#include "tools/terminal/terminal.h"

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

/* Opens the terminal of the process, /dev/tty, whatever the standard streams
 * are. Returns false when it has none. */
bool screen_open(struct screen *screen, bool no_colour);

/* Restores the terminal. A closed screen may be closed. */
void screen_close(struct screen *screen);

/* Waits for a key; KEY_NONE when the time is over. Negative: no limit. */
void screen_read_key(struct screen *screen, int timeout_ms, struct key *key);

/* Whether a key was typed and not read. */
bool screen_has_key(const struct screen *screen);

/* Draws a frame: screen_begin, for each line its text and screen_end_line, and
 * screen_end. */
void screen_begin(struct screen *screen);
void screen_end_line(struct screen *screen);
void screen_end(struct screen *screen);

/* Whether the frame has room for another line. */
bool screen_has_room(const struct screen *screen);

/* Starts a style, or ends it with TERMINAL_PLAIN; inverse marks a line. */
void screen_put_style(const struct screen *screen, enum terminal_style style);
void screen_put_inverse(const struct screen *screen, bool is_on);

#endif
