/*
 * cell.c - print texts in columns.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/terminal/cell.h"

#include "tools/terminal/utf8.h"

static const char ellipsis[] = "\xE2\x80\xA6"; /* one column */

static bool is_space(uint8_t byte)
{
    return byte == '\n' || byte == '\r' || byte == '\t';
}

/* The bytes of the character at data, and its columns when printed. */
static size_t measure(const uint8_t *data, size_t size, size_t *columns)
{
    size_t step = utf8_size(data, size);

    if (step > 0 && is_space(data[0])) {
        *columns = 1;
    } else if (step == 0 || utf8_is_control(data)) {
        step = step > 0 ? step : 1;
        *columns = 4 * step;
    } else {
        *columns = utf8_columns(data);
    }
    return step;
}

size_t cell_width(const void *data, size_t size)
{
    const uint8_t *bytes = data;
    size_t width = 0;
    size_t columns;

    for (size_t at = 0; at < size; width += columns) {
        at += measure(bytes + at, size - at, &columns);
    }
    return width;
}

size_t cell_print_char(FILE *file, const uint8_t *data, size_t size,
                       size_t columns, size_t *printed)
{
    size_t width;
    size_t step = measure(data, size, &width);

    if (width > columns) {
        return 0;
    }
    if (is_space(data[0])) {
        putc_unlocked(' ', file);
    } else if (width == 4 * step) {
        for (size_t i = 0; i < step; i++) {
            fprintf(file, "\\x%02x", data[i]);
        }
    } else {
        fwrite(data, 1, step, file);
    }
    *printed += width;
    return step;
}

/* The offset of the end of a text that fits in the columns. */
static size_t find_end(const uint8_t *data, size_t size, size_t width,
                       size_t columns)
{
    size_t at = 0;
    size_t step;

    while (at < size && width > columns) {
        at += measure(data + at, size - at, &step);
        width -= step;
    }
    return at;
}

size_t cell_print(FILE *file, const void *data, size_t size, size_t columns,
                  unsigned flags)
{
    const uint8_t *bytes = data;
    size_t width = columns > 0 ? cell_width(data, size) : 0;
    bool is_cut = width > columns;
    size_t room = columns > 0 ? columns : SIZE_MAX;
    size_t printed = 0;
    size_t at = 0;

    if (is_cut && (flags & CELL_KEEP_END) != 0) {
        fputs(ellipsis, file);
        printed = 1;
        at = find_end(bytes, size, width, columns - 1);
    } else if (is_cut) {
        room--;
    }
    while (at < size) {
        size_t step = cell_print_char(file, bytes + at, size - at,
                                      room - printed, &printed);
        if (step == 0) {
            break;
        }
        at += step;
    }
    if (is_cut && (flags & CELL_KEEP_END) == 0) {
        fputs(ellipsis, file);
        printed++;
    }
    if ((flags & CELL_PAD) != 0 && printed < columns) {
        fprintf(file, "%*s", (int)(columns - printed), "");
        printed = columns;
    }
    return printed;
}
