/*
 * droid.c - reads the sessions of Factory's Droid.
 *
 * The first line is a header, {type: "session_start", sessionId or id, cwd, title}; the others are
 * messages of Anthropic's API, {type: "message", id, parentId, timestamp, message}, or events of
 * the client. A message without a parent follows the line before. Token counts are in settings of
 * the session, as one sum.
 *
 * Invariant: every line moves the head.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/dialect.h"

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"

enum {
    LINE_TYPE,
    LINE_ID,
    LINE_SESSION,
    LINE_PARENT,
    LINE_TIME,
    LINE_CWD,
    LINE_TITLE,
    LINE_COUNT
};

static const struct wal__json_member line_wanted[LINE_COUNT] = {
    [LINE_TYPE] = {.key = "type"},         [LINE_ID] = {.key = "id"},
    [LINE_SESSION] = {.key = "sessionId"}, [LINE_PARENT] = {.key = "parentId"},
    [LINE_TIME] = {.key = "timestamp"},    [LINE_CWD] = {.key = "cwd"},
    [LINE_TITLE] = {.key = "title"},
};

static bool droid_recognise(const void *data, size_t size, bool is_first)
{
    struct wal__json_member members[LINE_COUNT];

    return is_first &&
           wal__line_read(data, size, line_wanted, members, LINE_COUNT, NULL, NULL) ==
               WAL__JSON_OK &&
           wal__line_string_is(&members[LINE_TYPE], "session_start") &&
           (members[LINE_ID].value.kind == WAL__JSON_STRING ||
            members[LINE_SESSION].value.kind == WAL__JSON_STRING);
}

static enum wal__json_status droid_read(const void *data, size_t size, struct wal__line_info *line,
                                        size_t *error_offset)
{
    struct wal__json_member members[LINE_COUNT];
    enum wal__json_status status =
        wal__line_read(data, size, line_wanted, members, LINE_COUNT, line, error_offset);

    if (status != WAL__JSON_OK) {
        return status;
    }
    line->type = wal__member_string(&members[LINE_TYPE]);
    line->time = wal__member_string(&members[LINE_TIME]);
    line->is_header = wal__line_string_is(&members[LINE_TYPE], "session_start");
    if (line->is_header) {
        line->session = wal__member_string(&members[LINE_SESSION]);
        if (line->session.size == 0) {
            line->session = wal__member_string(&members[LINE_ID]);
        }
        line->cwd = wal__member_string(&members[LINE_CWD]);
        line->title = wal__member_string(&members[LINE_TITLE]);
        line->link = WAL__LINK_ROOT;
        return WAL__JSON_OK;
    }
    line->id = wal__member_string(&members[LINE_ID]);
    line->parent = wal__member_string(&members[LINE_PARENT]);
    line->link = line->parent.size > 0 ? WAL__LINK_EXPLICIT : WAL__LINK_PREVIOUS;
    return WAL__JSON_OK;
}

static const struct wal__field line_fields[] = {
    {"type", .at = WAL__ENTRY_AT(type)},
    {"id", .kind = WAL__FIELD_KNOWN},
    {"parentId", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {"role", .parent = "message", .at = WAL__ENTRY_AT(role)},
    {"content", .parent = "message", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"sessionId", .at = WAL__SESSION_AT(id)},
    {"cwd", .at = WAL__SESSION_AT(cwd)},
    {"title", .at = WAL__SESSION_AT(title)},
    {.key = NULL},
};

static enum wal__json_status droid_line(struct wal__model_reader *reader,
                                        const struct wal__model_line *line)
{
    struct wal__content_pieces pieces = {.arena = reader->scratch};
    struct wal__entry entry = {.item = {.kind = WAL__ITEM_MESSAGE,
                                        .stream = line->stream,
                                        .id = line->id,
                                        .parent = line->parent,
                                        .time = line->time}};
    struct wal__model_item *item = &entry.item;
    enum wal__json_status status = wal__fields_read(line->text, line_fields, &entry, &item->fields);
    bool is_message = wal__model_text_is(entry.type, "message");
    bool is_done;

    if (status != WAL__JSON_OK) {
        return status;
    }
    if (wal__model_text_is(entry.type, "session_start")) {
        entry.session.time = line->time;
        item->kind = WAL__ITEM_HEADER;
        item->session = &entry.session;
        is_done = wal__model_emit(reader, item);
    } else if (is_message && wal__model_text_is(entry.role, "user")) {
        item->role = WAL__ROLE_USER;
        is_done = wal__content_split(&pieces, item, entry.content) &&
                  wal__content_emit(&pieces, item->parent, reader);
    } else if (is_message && wal__model_text_is(entry.role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        is_done = wal__content_read_item(entry.content, entry.calls, reader->scratch, item) &&
                  wal__model_emit(reader, item);
    } else {
        item->kind = WAL__ITEM_LINE;
        item->data = line->text;
        is_done = wal__model_emit(reader, item);
    }
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops droid_read_ops = {.line = droid_line};

const struct wal__dialect wal__dialect_droid = {
    .name = "droid",
    .summary = "sessions of Factory's Droid",
    .headers = WAL__HEADERS_ONE,
    .recognise = droid_recognise,
    .read = droid_read,
    .read_ops = &droid_read_ops,
};
