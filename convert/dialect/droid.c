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

static const struct wal__field known_fields[] = {
    {"type", .at = WAL__LINE_AT(type)},         {"id", .at = WAL__LINE_AT(id)},
    {"sessionId", .at = WAL__LINE_AT(session)}, {"parentId", .at = WAL__LINE_AT(parent)},
    {"timestamp", .at = WAL__LINE_AT(time)},    {"cwd", .at = WAL__LINE_AT(cwd)},
    {"title", .at = WAL__LINE_AT(title)},       {.key = NULL},
};

static bool droid_recognise(const void *text, bool is_first)
{
    const struct wal__line_info *line = text;

    return is_first && wal__model_text_is(line->type, "session_start") &&
           line->id.size + line->session.size > 0;
}

static void droid_judge(void *text)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__line_info *line = text;

    line->is_header = wal__model_text_is(line->type, "session_start");
    if (line->is_header) {
        line->session = line->session.size > 0 ? line->session : line->id;
        line->id = none;
        line->parent = none;
        line->link = WAL__LINK_ROOT;
    } else {
        line->session = none;
        line->cwd = none;
        line->title = none;
        line->link = line->parent.size > 0 ? WAL__LINK_EXPLICIT : WAL__LINK_PREVIOUS;
    }
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
    struct wal__entry entry = wal__entry_begin(reader, line);
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
        is_done = wal__entry_emit_line(&entry);
    }
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops droid_read_ops = {.line = droid_line};

const struct wal__dialect wal__dialect_droid = {
    .name = "droid",
    .summary = "sessions of Factory's Droid",
    .headers = WAL__HEADERS_ONE,
    .line_fields = known_fields,
    .line_size = sizeof(struct wal__line_info),
    .recognise = droid_recognise,
    .judge = droid_judge,
    .read_ops = &droid_read_ops,
};
