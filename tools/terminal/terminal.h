/*
 * terminal.h - the terminal on standard output: its width, colours, a pager, a line of progress;
 * and texts of other people, sizes and times, as people read them.
 *
 * Invariant: no text controls the terminal, and no cell is wider than its columns. Without a
 * terminal nothing is coloured and no pager runs.
 *
 * Threads: the tools are single-threaded; characters, sizes and times: any, after utf8_init.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_TERMINAL_H
#define AGENTWAL_TOOLS_TERMINAL_TERMINAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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
void terminal_put_style(const struct terminal *terminal, enum terminal_style style);

/* The escape sequence of a style. */
const char *terminal_style_code(enum terminal_style style);

/*
 * On a terminal: starts the pager and makes it read standard output. It is PAGER, else less -FRX if
 * that exists. An empty PAGER and `cat` mean none. A pager that does not exist is not started.
 */
void terminal_start_pager(struct terminal *terminal);

/* Ends the output and waits until the user ends the pager. */
void terminal_wait_pager(struct terminal *terminal);

/* --- the characters of a text ------------------------------------------- */

/* Makes utf8_columns know characters that are not ASCII. Call it once. */
void utf8_init(void);

/* Bytes of the UTF-8 sequence at data, or 0 when it is ill-formed. */
size_t utf8_size(const uint8_t *data, size_t size);

/* The code point of the well-formed sequence at data. */
uint32_t utf8_decode(const uint8_t *data);

/* Returns true for a well-formed sequence that a terminal may obey: C0, DEL, C1, line separators
 * and the controls of bidirectional text. */
bool utf8_is_control(const uint8_t *data);

/* Columns that a well-formed sequence takes: 0 to 2. */
size_t utf8_columns(const uint8_t *data);

/* --- texts in columns --------------------------------------------------- */

enum cell_flag {
    CELL_PAD = 1u << 0,     /* fill with blanks to the columns */
    CELL_KEEP_END = 1u << 1 /* a text that is too wide loses its beginning */
};

/* Columns that a text takes in one line. */
size_t cell_width(const void *data, size_t size);

/* Prints a text in one line, at most `columns` wide (0: no limit); "…" marks where it was cut.
 * White space becomes blanks, and other control characters and invalid bytes become \xNN. Returns
 * the columns printed. */
size_t cell_print(FILE *file, const void *data, size_t size, size_t columns, unsigned flags);

/* Prints the character at data, or its escape, if it takes at most `columns` (SIZE_MAX: no limit).
 * Returns its bytes, 0 if it does not fit, and adds its columns to *printed. */
size_t cell_print_char(FILE *file, const uint8_t *data, size_t size, size_t columns,
                       size_t *printed);

/* --- sizes and times ---------------------------------------------------- */

enum {
    SIZE_TEXT = 24 /* bytes of a text with its terminator */
};

/* "17 bytes", "1.2 kB", "36.9 MB": powers of 1000, three digits. */
void size_text(uint64_t size, char text[SIZE_TEXT]);

/* "17", "1.2k", "36.9M". */
void count_text(uint64_t count, char text[SIZE_TEXT]);

enum {
    WHEN_SIZE = 32,       /* bytes of a text with its terminator */
    WHEN_AGE_COLUMNS = 10 /* the longest age of the years 0 to 9999 */
};

/* "2026-11-20 14:03"; "-" for a time that the C library cannot convert. */
void when_text(int64_t unix_ms, char text[WHEN_SIZE]);

/* "14:03:59". */
void when_clock(int64_t unix_ms, char text[WHEN_SIZE]);

/* The age at a time: "now" below a minute, "5 min ago", "2 h ago", "6 d ago"; from 7 days on, and
 * for the future, the date. */
void when_age(int64_t unix_ms, int64_t now_ms, char text[WHEN_SIZE]);

/* The present time, and that of a clock which nothing sets. */
int64_t when_now_ms(void);
int64_t when_steady_ms(void);

/* --- progress ----------------------------------------------------------- */

struct progress {
    bool is_on;
    bool is_shown;
    int64_t next_ms; /* CLOCK_MONOTONIC time of the next update */
};

void progress_init(struct progress *progress, bool is_wanted);

/* Shows `what: done of total unit`; total 0: unknown. */
void progress_update(struct progress *progress, const char *what, uint64_t done, uint64_t total,
                     const char *unit);

/* The same of numbers of bytes. */
void progress_update_sizes(struct progress *progress, const char *what, uint64_t done,
                           uint64_t total);

/* Returns true if the line should be shown again now. */
bool progress_is_due(struct progress *progress);

/* Shows `what: text`, after progress_is_due. */
void progress_show(struct progress *progress, const char *what, const char *text);

/* Clears the line. Call it before printing anything else. */
void progress_clear(struct progress *progress);

#endif
