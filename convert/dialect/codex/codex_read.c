/*
 * codex_read.c - converts rollout files of Codex to items.
 *
 * response_item lines, and the bare lines of an untagged file, are messages,
 * thinking, calls and results. A turn_context is an item of kind LINE, preceded
 * by items for a change of the model and of the effort. A `compacted` line is a
 * compaction; its summary is its replacement_history if it has one, which is
 * kept as an item of kind LINE.
 *
 * Invariant: a tagged line does not refer to others, so it can be written
 * unchanged. thread_rolled_back yields no content; the turns rolled back become
 * a branch.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "convert/dialect/codex/codex_item.h"
#include "convert/dialect/codex/codex_state.h"
#include "convert/model/model_member.h"
#include "format/json/json_value.h"

struct line {
    struct wal__model_reader *reader;
    const struct wal__model_line *text;
    struct wal__codex *codex;
    struct wal__model_item item;
    struct wal__json_span payload;
};

static bool emit_line(struct line *line)
{
    line->item.kind = WAL__ITEM_LINE;
    line->item.data = line->text->text;
    line->item.fields = 0;
    wal__codex_end_answer(line->codex);
    return wal__codex_emit(line->reader, &line->item);
}

/* ------------------------------------------------------------ header --- */

enum {
    H_ID,
    H_TIME,
    H_CWD,
    H_FORKED,
    H_PROVIDER,
    H_COUNT
};

static bool emit_header(struct line *line, struct wal__json_span header)
{
    struct wal__json_member members[H_COUNT] = {
        [H_ID] = {.key = "id"},
        [H_TIME] = {.key = "timestamp"},
        [H_CWD] = {.key = "cwd"},
        [H_FORKED] = {.key = "forked_from_id"},
        [H_PROVIDER] = {.key = "model_provider"},
    };
    struct wal__model_session session = {.raw = line->item.raw};

    if (wal__model_members(header, members, H_COUNT, &line->item.fields) !=
        WAL__JSON_OK) {
        return false;
    }
    session.id = wal__member_string(&members[H_ID]);
    session.time = wal__member_string(&members[H_TIME]);
    session.cwd = wal__member_string(&members[H_CWD]);
    session.parent = wal__member_string(&members[H_FORKED]);
    session.provider = wal__member_string(&members[H_PROVIDER]);
    if (session.raw.size > 0) {
        session.dialect = line->reader->dialect;
    }
    line->codex->has_header = true;
    line->item.kind = WAL__ITEM_HEADER;
    line->item.session = &session;
    return wal__codex_text_set(line->reader, &line->codex->provider,
                               session.provider) &&
           wal__codex_emit(line->reader, &line->item);
}

/* ------------------------------------------------------ turn context --- */

/* Derives the id of an item that is not the last of its line. */
static bool derive_id(struct line *line, const char *mark,
                      struct wal__json_span *id)
{
    size_t size = strlen(mark);
    struct wal__json_span own = line->text->id;
    uint8_t *text =
        wal__arena_alloc(line->reader->scratch, own.size + size + 1);

    if (text == NULL || own.size < 2) {
        return false;
    }
    memcpy(text, own.data, own.size - 1);
    memcpy(text + own.size - 1, mark, size);
    text[own.size - 1 + size] = '"';
    *id = (struct wal__json_span){text, own.size + size};
    return true;
}

/* Emits an item before the last one of its line; `rest` items follow it. */
static bool emit_extra_item(struct line *line, struct wal__model_item *item,
                            const char *mark, uint32_t rest)
{
    struct wal__json_span last = line->item.raw;

    item->time = line->item.time;
    item->raw = last;
    item->raw_items_left = rest;
    line->item.raw.size = 0;
    return derive_id(line, mark, &item->id) &&
           wal__codex_emit(line->reader, item);
}

static bool emit_context(struct line *line)
{
    enum {
        MODEL,
        EFFORT,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [MODEL] = {.key = "model"},
        [EFFORT] = {.key = "effort"},
    };
    struct wal__codex *codex = line->codex;
    struct wal__model_item change = {.kind = WAL__ITEM_MODEL_CHANGE};
    struct wal__model_item level = {.kind = WAL__ITEM_THINKING_LEVEL};
    bool is_change;
    bool is_level;

    if (wal__model_members(line->payload, members, COUNT, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    change.model = wal__member_string(&members[MODEL]);
    level.text = wal__member_string(&members[EFFORT]);
    is_change = change.model.size > 0 &&
                !wal__codex_text_equals(&codex->model, change.model);
    is_level = level.text.size > 0 &&
               !wal__codex_text_equals(&codex->effort, level.text);
    if (is_change &&
        (!wal__codex_text_copy(line->reader, &codex->provider,
                               &change.provider) ||
         !wal__codex_text_set(line->reader, &codex->model, change.model) ||
         !emit_extra_item(line, &change, "~model", is_level ? 2 : 1))) {
        return false;
    }
    if (is_level &&
        (!wal__codex_text_set(line->reader, &codex->effort, level.text) ||
         !emit_extra_item(line, &level, "~effort", 1))) {
        return false;
    }
    return emit_line(line);
}

/* -------------------------------------------------------- compaction --- */

static bool emit_compacted(struct line *line)
{
    enum {
        MESSAGE,
        HISTORY,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [MESSAGE] = {.key = "message"},
        [HISTORY] = {.key = "replacement_history"},
    };
    struct wal__model_item native_line = {.kind = WAL__ITEM_LINE,
                                          .data = line->text->text};
    struct wal__model_item *item = &line->item;

    if (wal__model_members(line->payload, members, COUNT, &item->fields) !=
            WAL__JSON_OK ||
        !wal__codex_flush(line->reader)) {
        return false;
    }
    wal__codex_end_answer(line->codex);
    item->kind = WAL__ITEM_COMPACTION;
    item->text = wal__member_string(&members[MESSAGE]);
    if (members[HISTORY].value.kind == WAL__JSON_ARRAY) {
        struct wal__json_span text = {NULL, 0};
        item->fields = 0;
        if (!emit_extra_item(line, &native_line, "~line", 1) ||
            !wal__codex_history_text(line->reader->scratch,
                                     members[HISTORY].value.span, &text)) {
            return false;
        }
        /* The history replaces all earlier items and includes the message. */
        item->text = text.size > 2 ? text : item->text;
    }
    return wal__codex_emit(line->reader, item);
}

/* ------------------------------------------------------------ events --- */

enum {
    E_TYPE,
    E_MESSAGE,
    E_TURNS,
    E_NAME,
    E_INFO,
    E_LIMITS,
    E_COUNT
};

/* Whether a token_count has no counts: it only marks the end of an answer. */
static bool is_empty_token_count(const struct wal__json_member *members)
{
    return members[E_INFO].value.kind == WAL__JSON_NULL &&
           members[E_LIMITS].value.kind == WAL__JSON_NULL;
}

static bool emit_title(struct line *line, struct wal__json_span name)
{
    wal__codex_end_answer(line->codex);
    line->item.kind = WAL__ITEM_TITLE;
    line->item.text = name;
    return wal__codex_emit(line->reader, &line->item);
}

static bool emit_event(struct line *line)
{
    struct wal__json_member members[E_COUNT] = {
        [E_TYPE] = {.key = "type"},       [E_MESSAGE] = {.key = "message"},
        [E_TURNS] = {.key = "num_turns"}, [E_NAME] = {.key = "thread_name"},
        [E_INFO] = {.key = "info"},       [E_LIMITS] = {.key = "rate_limits"},
    };
    struct wal__codex *codex = line->codex;
    struct wal__json_span none = {NULL, 0};
    struct wal__json_span type;
    struct wal__json_span message;
    int64_t turns = 0;

    if (wal__model_members(line->payload, members, E_COUNT, NULL) !=
        WAL__JSON_OK) {
        return false;
    }
    type = wal__member_string(&members[E_TYPE]);
    message = wal__member_string(&members[E_MESSAGE]);
    if (wal__model_text_is(type, "user_message") && message.size > 0) {
        return wal__codex_emit_event(line->reader, &codex->user, line->text,
                                     message);
    }
    if (wal__model_text_is(type, "agent_message") && message.size > 0) {
        return wal__codex_emit_event(line->reader, &codex->agent, line->text,
                                     message);
    }
    if (wal__model_text_is(type, "agent_reasoning") ||
        wal__model_text_is(type, "agent_reasoning_raw_content")) {
        return wal__codex_emit_event(line->reader, NULL, line->text, none);
    }
    if (wal__model_text_is(type, "token_count") &&
        is_empty_token_count(members)) {
        wal__codex_end_answer(codex);
        return wal__codex_emit_event(line->reader, NULL, line->text, none);
    }
    if (wal__model_text_is(type, "thread_rolled_back") &&
        wal__json_integer(wal__member_number(&members[E_TURNS]), &turns) ==
            WAL__JSON_OK &&
        turns >= 0) {
        return wal__codex_roll_back(line->reader, &line->item, (uint64_t)turns);
    }
    if (wal__model_text_is(type, "thread_name_updated") &&
        members[E_NAME].value.kind == WAL__JSON_STRING) {
        return emit_title(line, members[E_NAME].value.span);
    }
    return emit_line(line);
}

/* ------------------------------------------------------------- lines --- */

static bool emit_item(struct line *line, struct wal__json_span json)
{
    bool is_item = false;

    if (!wal__codex_item_read(line->reader->scratch, json, &line->item,
                              &is_item)) {
        return false;
    }
    return is_item ? wal__codex_emit_message(line->reader, &line->item)
                   : emit_line(line);
}

static bool emit_tagged(struct line *line, struct wal__json_span type)
{
    if (wal__model_text_is(type, "session_meta") && !line->codex->has_header) {
        return emit_header(line, line->payload);
    }
    if (wal__model_text_is(type, "response_item")) {
        return emit_item(line, line->payload);
    }
    if (wal__model_text_is(type, "event_msg")) {
        return emit_event(line);
    }
    if (wal__model_text_is(type, "turn_context")) {
        return emit_context(line);
    }
    if (wal__model_text_is(type, "compacted")) {
        return emit_compacted(line);
    }
    return emit_line(line);
}

static bool is_untagged_header(const struct line *line,
                               const struct wal__json_member *type,
                               const struct wal__json_member *id)
{
    return !line->codex->has_header && line->text->parent.size == 0 &&
           type->value.kind == WAL__JSON_NONE &&
           id->value.kind == WAL__JSON_STRING;
}

static enum wal__json_status read_line(struct wal__model_reader *reader,
                                       const struct wal__model_line *text,
                                       const struct wal__model_usage *usage)
{
    enum {
        TYPE,
        ID,
        PAYLOAD,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
        [ID] = {.key = "id"},
        [PAYLOAD] = {.key = "payload"},
    };
    struct line line = {.reader = reader, .text = text};
    enum wal__json_status status;
    bool is_done;

    line.codex = wal__codex_state(reader);
    status = wal__model_members(text->text, members, COUNT, NULL);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (line.codex == NULL || !wal__codex_line_begin(reader, text)) {
        return WAL__JSON_NO_SPACE;
    }
    line.item = (struct wal__model_item){.id = text->id, .time = text->time};
    if (usage != NULL) {
        line.item.usage = *usage;
    }
    if (members[PAYLOAD].value.kind == WAL__JSON_OBJECT) {
        line.payload = members[PAYLOAD].value.span;
        line.item.raw = text->text;
        is_done = emit_tagged(&line, wal__member_string(&members[TYPE]));
    } else if (is_untagged_header(&line, &members[TYPE], &members[ID])) {
        is_done = emit_header(&line, text->text);
    } else {
        is_done = emit_item(&line, text->text);
    }
    return is_done && wal__codex_line_end(reader, text) ? WAL__JSON_OK
                                                        : WAL__JSON_NO_SPACE;
}

static enum wal__json_status codex_line(struct wal__model_reader *reader,
                                        const struct wal__model_line *line)
{
    struct wal__codex *codex = wal__codex_state(reader);

    if (codex == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    return wal__codex_hold(reader, &codex->held, line, read_line);
}

static enum wal__json_status codex_release(struct wal__model_reader *reader)
{
    struct wal__codex *codex = wal__codex_state(reader);

    return codex != NULL
               ? wal__codex_release(reader, &codex->held, NULL, read_line)
               : WAL__JSON_NO_SPACE;
}

/* Emits events without items, and lines after the last item. */
static enum wal__json_status codex_finish(struct wal__model_reader *reader)
{
    struct wal__codex *codex = wal__codex_state(reader);

    return codex != NULL && codex_release(reader) == WAL__JSON_OK &&
                   wal__codex_flush(reader) &&
                   wal__codex_flush_lines(reader, true)
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__codex_read_ops = {
    .line = codex_line,
    .finish = codex_finish,
    .release = codex_release,
};
