/*
 * cell.h - print texts of other people in columns.
 *
 * Invariant: no text controls the terminal, and no cell is wider than its
 * columns.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_CELL_H
#define AGENTWAL_TOOLS_TERMINAL_CELL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum cell_flag {
    CELL_PAD = 1u << 0,     /* fill with blanks to the columns */
    CELL_KEEP_END = 1u << 1 /* a text that is too wide loses its beginning */
};

/* Columns that a text takes in one line. */
size_t cell_width(const void *data, size_t size);

/* Prints a text in one line, at most `columns` wide (0: no limit); "…" marks
 * where it was cut. White space becomes blanks, and other control characters
 * and invalid bytes become \xNN. Returns the columns printed. */
size_t cell_print(FILE *file, const void *data, size_t size, size_t columns,
                  unsigned flags);

/* Prints the character at data, or its escape, if it takes at most `columns`
 * (SIZE_MAX: no limit). Returns its bytes, 0 if it does not fit, and adds its
 * columns to *printed. */
size_t cell_print_char(FILE *file, const uint8_t *data, size_t size,
                       size_t columns, size_t *printed);

#endif
