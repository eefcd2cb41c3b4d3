/*
 * table.h - the tables that verbs print for people: as wide as their rows need and the terminal
 * has.
 *
 * Rows are kept until a page of them is complete, so that the first row is printed soon. The
 * columns of a page are as wide as its widest cells. Where the terminal has fewer columns, those
 * with a `max` are cut to it, optional ones are left out, and those with a `min` are narrowed:
 * always the one that is farthest above its `min`. Without a terminal no text is cut.
 *
 * Invariant: no row is wider than the terminal unless the columns that are never narrowed are. No
 * row ends with blanks. A text controls no terminal.
 */
#ifndef AGENTWAL_TOOLS_CLI_TABLE_H
#define AGENTWAL_TOOLS_CLI_TABLE_H

#include "tools/cli/cli.h"

enum {
    TABLE_COLUMNS_MAX = 12,
    TABLE_PAGE = 100, /* rows */
    TABLE_ID_MAX = 12 /* `max` of a column of ids */
};

enum table_flag {
    TABLE_RIGHT = 1u << 0,    /* of numbers */
    TABLE_KEEP_END = 1u << 1, /* a text that is cut loses its beginning */
    TABLE_FILLED = 1u << 2,   /* left out when no row of the first page has a text in it */
    TABLE_VARIED = 1u << 3,  /* left out when the rows of the first page have the same text in it */
    TABLE_OPTIONAL = 1u << 4 /* left out when the terminal is too narrow, the last one first */
};

struct table_column {
    const char *head; /* NULL ends the columns */
    size_t max;       /* 0: no limit */
    size_t min;       /* 0: never narrowed */
    unsigned flags;
    enum terminal_style style;
};

/* Columns for table_init in the block of the table: any, ids, times, numbers, texts and paths. */
#define TABLE_COLUMNS(...) ((const struct table_column[]){__VA_ARGS__, {.head = NULL}})
#define TABLE_ANY(head, max, min, flags) \
    ((struct table_column){head, max, min, flags, TERMINAL_PLAIN})
#define TABLE_ID(head) \
    ((struct table_column){head, TABLE_ID_MAX, 0, TABLE_KEEP_END | TABLE_FILLED, TERMINAL_ID})
#define TABLE_TIME(head)      ((struct table_column){head, 0, 0, 0, TERMINAL_DIM})
#define TABLE_NUMBER(head)    TABLE_ANY(head, 0, 0, TABLE_RIGHT | TABLE_FILLED)
#define TABLE_TEXT(head, min) TABLE_ANY(head, 0, min, 0)
#define TABLE_PATH(head, min) TABLE_ANY(head, 28, min, TABLE_KEEP_END)

struct table {
    FILE *file;
    const struct terminal *terminal;
    const struct table_column *columns;
    struct cli_texts cells; /* row 0: the heads; a table that is not finished is freed with them */
    /* private */
    size_t column_count;
    size_t widths[TABLE_COLUMNS_MAX];
    bool is_hidden[TABLE_COLUMNS_MAX];
    bool has_pages;
};

/* Begins a table; the terminal and the columns must outlive it. */
void table_init(struct table *table, FILE *file, const struct terminal *terminal,
                const struct table_column *columns);

/* Puts the next cell of a row, which has all columns; of numbers, 0 is empty. A directory has ~ for
 * the user's home. */
void table_put(struct table *table, struct wal_slice text);
void table_put_count(struct table *table, uint64_t count);
void table_put_size(struct table *table, uint64_t size);
void table_put_age(struct table *table, int64_t unix_ms, int64_t now_ms);
void table_put_directory(struct table *table, struct wal_slice directory);

/* The number of rows that are kept, without the heads. */
size_t table_rows(const struct table *table);

/* Sets the widths for the rows that are kept. table_print_row then prints one without its newline,
 * 0: the heads, and returns its columns. */
void table_fit(struct table *table);
size_t table_print_row(const struct table *table, size_t row);

/* Prints the rows that are kept, if there are any, and frees the memory. */
void table_finish(struct table *table);

#endif
