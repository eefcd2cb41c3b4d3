/*
 * terminal.h - the terminal on standard output: its width, colours, a pager.
 *
 * Invariant: without a terminal nothing is coloured and no pager runs.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_TERMINAL_H
#define AGENTWAL_TOOLS_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum terminal_style {
    TERMINAL_PLAIN,
    TERMINAL_ID,
    TERMINAL_DIM,
    TERMINAL_STRONG,
    TERMINAL_HEAD,
    TERMINAL_ALARM
};

/* Zeroed: no terminal. */
struct terminal {
    bool is_terminal;
    bool has_colour;
    size_t columns; /* 0: no limit */
    pid_t pager;    /* 0: none */
};

/*
 * Examines standard output. Columns are those of COLUMNS; else of the terminal,
 * 80 when it does not know; else there is no limit. Colours are off with
 * `no_colour`, NO_COLOR in the environment, and TERM=dumb or no TERM.
 */
void terminal_init(struct terminal *terminal, bool no_colour);

/* Starts a style, or ends it with TERMINAL_PLAIN. */
void terminal_put_style(const struct terminal *terminal,
                        enum terminal_style style);

/* The escape sequence of a style. */
const char *terminal_style_code(enum terminal_style style);

/*
 * On a terminal: starts the pager and makes it read standard output. It is
 * PAGER, else less -FRX if that exists. An empty PAGER and `cat` mean none. A
 * pager that does not exist is not started.
 */
void terminal_start_pager(struct terminal *terminal);

/* Ends the output and waits until the user ends the pager. */
void terminal_wait_pager(struct terminal *terminal);

#endif
