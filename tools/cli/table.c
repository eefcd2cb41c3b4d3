/*
 * table.c - fits tables to the terminal and prints them (table.h).
 */
#include "tools/cli/table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
    GAP = 2,      /* columns between two cells */
    WIDTH_MIN = 4 /* columns that every column keeps */
};

static void put_heads(struct table *table)
{
    for (size_t i = 0; i < table->column_count; i++) {
        cli_texts_add(&table->cells, cli_slice(table->columns[i].head));
    }
}

void table_init(struct table *table, FILE *file, const struct terminal *terminal,
                const struct table_column *columns)
{
    *table = (struct table){.file = file, .terminal = terminal, .columns = columns};
    while (columns[table->column_count].head != NULL) {
        table->column_count++;
    }
    put_heads(table);
}

size_t table_rows(const struct table *table)
{
    return table->cells.count / table->column_count - 1;
}

static const char *cell_at(const struct table *table, size_t row, size_t column)
{
    return table->cells.items[row * table->column_count + column];
}

/* --- widths ------------------------------------------------------------- */

static bool is_wanted(const struct table *table, size_t column)
{
    unsigned lacks = TABLE_FILLED | TABLE_VARIED;

    for (size_t row = 1; row <= table_rows(table); row++) {
        const char *cell = cell_at(table, row, column);

        lacks &= cell[0] != '\0' ? ~(unsigned)TABLE_FILLED : ~0U;
        lacks &= strcmp(cell, cell_at(table, 1, column)) != 0 ? ~(unsigned)TABLE_VARIED : ~0U;
    }
    return (table->columns[column].flags & lacks) == 0;
}

/* The width of a row; with is_least, when all columns are as narrow as their `min`. */
static size_t total_width(const struct table *table, bool is_least)
{
    size_t sum = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        size_t min = table->columns[i].min;
        size_t width = table->widths[i];

        width = is_least && min > 0 && min < width ? min : width;
        sum += table->is_hidden[i] ? 0 : width + (sum > 0 ? GAP : 0);
    }
    return sum;
}

/* Narrows the column that is farthest above its `min`, or with is_last above WIDTH_MIN. Returns
 * false when there is none. */
static bool narrow(struct table *table, bool is_last)
{
    size_t most = 0;
    size_t at = 0;

    for (size_t i = 0; i < table->column_count; i++) {
        size_t min = table->columns[i].min;
        size_t least = is_last ? WIDTH_MIN : min;

        if (min > 0 && !table->is_hidden[i] && table->widths[i] > least + most) {
            most = table->widths[i] - least;
            at = i;
        }
    }
    table->widths[at] -= most > 0;
    return most > 0;
}

void table_fit(struct table *table)
{
    size_t columns = table->terminal->columns;

    for (size_t i = 0; i < table->column_count; i++) {
        /* Without a terminal no page of a table is narrower than those before. */
        size_t width = columns == 0 ? table->widths[i] : 0;

        for (size_t row = 0; row <= table_rows(table); row++) {
            const char *cell = cell_at(table, row, i);
            size_t own = cell_width(cell, strlen(cell));

            width = own > width ? own : width;
        }
        table->widths[i] = width;
        table->is_hidden[i] = table->has_pages ? table->is_hidden[i] : !is_wanted(table, i);
    }
    if (columns == 0 || total_width(table, false) <= columns) {
        return;
    }
    for (size_t i = 0; i < table->column_count; i++) {
        size_t max = table->columns[i].max;

        table->widths[i] = max > 0 && table->widths[i] > max ? max : table->widths[i];
    }
    for (size_t i = table->column_count; i-- > 0 && !table->has_pages;) {
        bool is_optional = (table->columns[i].flags & TABLE_OPTIONAL) != 0;

        table->is_hidden[i] |= is_optional && total_width(table, true) > columns;
    }
    while (total_width(table, false) > columns && (narrow(table, false) || narrow(table, true))) {
    }
}

/* --- printing ----------------------------------------------------------- */

size_t table_print_row(const struct table *table, size_t row)
{
    size_t printed = 0;
    size_t end = 0; /* of the cells so far, with their blanks */

    for (size_t i = 0; i < table->column_count; i++) {
        const struct table_column *column = &table->columns[i];
        enum terminal_style style = row == 0 ? TERMINAL_STRONG : column->style;
        bool has_style = table->terminal->has_colour && style != TERMINAL_PLAIN;
        const char *text = cell_at(table, row, i);
        size_t own = cell_width(text, strlen(text));
        size_t width = table->widths[i];

        if (table->is_hidden[i]) {
            continue;
        }
        end += end > 0 ? GAP : 0;
        if (own > 0) {
            size_t at = end + ((column->flags & TABLE_RIGHT) != 0 && own < width ? width - own : 0);

            fprintf(table->file, "%*s%s", (int)(at - printed), "",
                    has_style ? terminal_style_code(style) : "");
            printed = at + cell_print(table->file, text, strlen(text), width,
                                      (column->flags & TABLE_KEEP_END) != 0 ? CELL_KEEP_END : 0U);
            fputs(has_style ? terminal_style_code(TERMINAL_PLAIN) : "", table->file);
        }
        end += width;
    }
    return printed;
}

static void print_page(struct table *table)
{
    table_fit(table);
    for (size_t row = table->has_pages; row <= table_rows(table) && !cli_output_failed(); row++) {
        (void)table_print_row(table, row);
        putc('\n', table->file);
    }
    table->has_pages = true;
    cli_texts_deinit(&table->cells);
    put_heads(table);
}

void table_finish(struct table *table)
{
    if (table_rows(table) > 0) {
        print_page(table);
    }
    cli_texts_deinit(&table->cells);
}

/* --- cells -------------------------------------------------------------- */

void table_put(struct table *table, struct wal_slice text)
{
    if (table_rows(table) >= TABLE_PAGE && table->cells.count % table->column_count == 0) {
        print_page(table);
    }
    cli_texts_add(&table->cells, text);
}

void table_put_count(struct table *table, uint64_t count)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, count);
    table_put(table, cli_slice(count > 0 ? text : ""));
}

void table_put_size(struct table *table, uint64_t size)
{
    char text[SIZE_TEXT];

    size_text(size, text);
    table_put(table, cli_slice(size > 0 ? text : ""));
}

void table_put_age(struct table *table, int64_t unix_ms, int64_t now_ms)
{
    char text[WHEN_SIZE];

    when_age(unix_ms, now_ms, text);
    table_put(table, cli_slice(unix_ms != 0 ? text : ""));
}

void table_put_directory(struct table *table, struct wal_slice directory)
{
    const char *home = getenv("HOME");
    size_t size = home != NULL ? strlen(home) : 0;
    char *path = cli_copy_slice(directory);

    if (size > 1 && strncmp(path, home, size) == 0 && (path[size] == '/' || path[size] == '\0')) {
        path[size - 1] = '~';
        table_put(table, cli_slice(path + size - 1));
    } else {
        table_put(table, directory);
    }
    free(path);
}
