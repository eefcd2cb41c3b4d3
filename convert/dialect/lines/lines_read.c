/*
 * lines_read.c - converts lines of unknown clients to items of kind LINE.
 *
 * Invariant: the item contains the whole line.
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/model/dialect.h"
#include "format/json/json_scan.h"

static enum wal__json_status lines_line(struct wal__model_reader *reader,
                                        const struct wal__model_line *line)
{
    struct wal__model_item item = {
        .kind = WAL__ITEM_LINE,
        .stream = line->stream,
        .id = line->id,
        .parent = line->parent,
        .time = line->time,
        .data = line->text,
    };
    enum wal__json_status status =
        wal__json_validate(line->text.data, line->text.size, NULL);

    if (status != WAL__JSON_OK) {
        return status;
    }
    return wal__model_emit(reader, &item) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__lines_read_ops = {.line = lines_line};
