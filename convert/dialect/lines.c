/*
 * lines.c - any file with one JSON value per line, as of unknown clients.
 *
 * The parent of a line is the previous line, unless it has a parentId or parentUuid. Members id,
 * uuid, type, timestamp, sessionId and cwd are used if they are strings. The item of a line is of
 * kind LINE and contains all of it.
 *
 * Invariant: every line moves the head.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

#include "convert/model/model_member.h"

/* --- reading ------------------------------------------------------------- */

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
    enum wal__json_status status = wal__json_validate(line->text.data, line->text.size, NULL);

    if (status != WAL__JSON_OK) {
        return status;
    }
    return wal__model_emit(reader, &item) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops lines_read_ops = {.line = lines_line};

/* --- the dialect --------------------------------------------------------- */

enum {
    LINE_TYPE,
    LINE_ID,
    LINE_UUID,
    LINE_PARENT_ID,
    LINE_PARENT_UUID,
    LINE_TIME,
    LINE_SESSION,
    LINE_CWD,
    LINE_ROLE,
    LINE_COUNT
};

static const struct wal__json_member line_wanted[LINE_COUNT] = {
    [LINE_TYPE] = {.key = "type"},
    [LINE_ID] = {.key = "id"},
    [LINE_UUID] = {.key = "uuid"},
    [LINE_PARENT_ID] = {.key = "parentId"},
    [LINE_PARENT_UUID] = {.key = "parentUuid"},
    [LINE_TIME] = {.key = "timestamp"},
    [LINE_SESSION] = {.key = "sessionId"},
    [LINE_CWD] = {.key = "cwd"},
    [LINE_ROLE] = {.key = "role"},
};

static struct wal__json_span first_string(const struct wal__json_member *members, size_t key,
                                          size_t other)
{
    struct wal__json_span span = wal__member_string(&members[key]);

    return span.size > 0 ? span : wal__member_string(&members[other]);
}

static enum wal__json_status lines_read(const void *data, size_t size, struct wal__line_info *line,
                                        size_t *error_offset)
{
    struct wal__json_member members[LINE_COUNT];
    enum wal__json_status status =
        wal__line_read(data, size, line_wanted, members, LINE_COUNT, line, error_offset);

    if (status != WAL__JSON_OK) {
        return status;
    }
    line->id = first_string(members, LINE_ID, LINE_UUID);
    line->parent = first_string(members, LINE_PARENT_ID, LINE_PARENT_UUID);
    line->type = wal__member_string(&members[LINE_TYPE]);
    line->time = wal__member_string(&members[LINE_TIME]);
    line->session = wal__member_string(&members[LINE_SESSION]);
    line->cwd = wal__member_string(&members[LINE_CWD]);
    line->is_message = members[LINE_ROLE].value.kind == WAL__JSON_STRING;
    if (line->parent.size > 0) {
        line->link = WAL__LINK_EXPLICIT;
    }
    return WAL__JSON_OK;
}

const struct wal__dialect wal__dialect_lines = {
    .name = "lines",
    .summary = "any file of one record a line",
    .recognise = wal__line_recognise_none,
    .read = lines_read,
    .read_ops = &lines_read_ops,
};
