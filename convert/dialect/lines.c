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
    struct wal__entry entry = wal__entry_begin(reader, line);
    enum wal__json_status status = wal__json_validate(line->text.data, line->text.size, NULL);

    if (status != WAL__JSON_OK) {
        return status;
    }
    return wal__entry_emit_line(&entry) ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops lines_read_ops = {.line = lines_line};

/* --- the dialect --------------------------------------------------------- */

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},
    {"id", .at = WAL__LINE_AT(id)},
    {"uuid", .at = WAL__LINE_AT(id)},
    {"parentId", .at = WAL__LINE_AT(parent)},
    {"parentUuid", .at = WAL__LINE_AT(parent)},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"sessionId", .at = WAL__LINE_AT(session)},
    {"cwd", .at = WAL__LINE_AT(cwd)},
    {"role", .at = WAL__LINE_AT(is_message), .kind = WAL__FIELD_IS_STRING},
    {.key = NULL},
};

static void lines_judge(void *text)
{
    struct wal__line_info *line = text;

    line->link = line->parent.size > 0 ? WAL__LINK_EXPLICIT : WAL__LINK_PREVIOUS;
}

const struct wal__dialect wal__dialect_lines = {
    .name = "lines",
    .summary = "any file of one record a line",
    .line_fields = line_fields,
    .line_size = sizeof(struct wal__line_info),
    .judge = lines_judge,
    .read_ops = &lines_read_ops,
};
