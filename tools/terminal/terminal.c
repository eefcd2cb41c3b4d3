/*
 * terminal.c - width and colours of standard output.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/terminal/terminal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/terminal/utf8.h"

enum {
    COLUMNS_UNKNOWN = 80,
    COLUMNS_MAX = 100000
};

static size_t find_columns(bool is_terminal)
{
    const char *text = getenv("COLUMNS");
    long columns = text != NULL ? strtol(text, NULL, 10) : 0;
    struct winsize size;

    if (columns > 0 && columns <= COLUMNS_MAX) {
        return (size_t)columns;
    }
    if (!is_terminal) {
        return 0;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        return size.ws_col;
    }
    return COLUMNS_UNKNOWN;
}

static bool may_colour(void)
{
    const char *off = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return (off == NULL || off[0] == '\0') && term != NULL && term[0] != '\0' &&
           strcmp(term, "dumb") != 0;
}

void terminal_init(struct terminal *terminal, bool no_colour)
{
    utf8_init();
    terminal->is_terminal = isatty(STDOUT_FILENO) == 1;
    terminal->has_colour = terminal->is_terminal && !no_colour && may_colour();
    terminal->columns = find_columns(terminal->is_terminal);
    terminal->pager = 0;
}

const char *terminal_style_code(enum terminal_style style)
{
    static const char *const codes[] = {
        [TERMINAL_PLAIN] = "\033[0m", [TERMINAL_ID] = "\033[33m",
        [TERMINAL_DIM] = "\033[2m",   [TERMINAL_STRONG] = "\033[1m",
        [TERMINAL_HEAD] = "\033[32m", [TERMINAL_ALARM] = "\033[31m",
    };

    return codes[style];
}

void terminal_put_style(const struct terminal *terminal,
                        enum terminal_style style)
{
    if (terminal->has_colour) {
        fputs(terminal_style_code(style), stdout);
    }
}
