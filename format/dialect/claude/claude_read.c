/*
 * claude_read.c - converts transcripts of Claude Code to items.
 *
 * A row is one item, except that each tool result in a user's row is a separate
 * item. The row that marks a compaction and the following row with the summary
 * are one item. Rows that only the client understands (attachments, progress,
 * system rows, snapshots, ...) are items of kind LINE.
 *
 * Invariant: a row that has its ids in the log can be written unchanged.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "format/bytes/assert.h"
#include "format/dialect/claude/claude_answer.h"
#include "format/json/json_character.h"
#include "format/model/dialect.h"
#include "format/model/model_content.h"
#include "format/model/model_table.h"

struct claude {
    bool has_header;
    bool has_boundary; /* a compaction waits for its summary */
    struct wal__model_item boundary;
    struct wal__claude_answers answers;
    struct wal__model_table rows; /* ids of all rows so far, by hash */
};

struct row {
    struct wal__model_reader *reader;
    const struct wal__model_line *line;
    struct claude *claude;
    struct wal__model_item item;
};

enum {
    C_TYPE,
    C_SUBTYPE,
    C_UUID,
    C_PARENT,
    C_LOGICAL_PARENT,
    C_TIME,
    C_SESSION,
    C_CWD,
    C_SIDECHAIN,
    C_USER_TYPE,
    C_VERSION,
    C_META,
    C_COMPACT_SUMMARY,
    C_TRANSCRIPT_ONLY,
    C_MESSAGE,
    C_CONTENT,
    C_BLOCKS,
    C_SUMMARY,
    C_WALCONV,
    C_CUSTOM_TITLE,
    C_AI_TITLE,
    C_PRE_TOKENS,
    C_KEPT_HEAD,
    C_NAME,
    C_DATA,
    C_TARGET,
    C_DIALECT,
    C_COUNT
};

static const struct wal__json_member row_wanted[C_COUNT] = {
    [C_TYPE] = {.key = "type"},
    [C_SUBTYPE] = {.key = "subtype"},
    [C_UUID] = {.key = "uuid"},
    [C_PARENT] = {.key = "parentUuid"},
    [C_LOGICAL_PARENT] = {.key = "logicalParentUuid"},
    [C_TIME] = {.key = "timestamp"},
    [C_SESSION] = {.key = "sessionId"},
    [C_CWD] = {.key = "cwd"},
    [C_SIDECHAIN] = {.key = "isSidechain"},
    [C_USER_TYPE] = {.key = "userType"},
    [C_VERSION] = {.key = "version"},
    [C_META] = {.key = "isMeta"},
    [C_COMPACT_SUMMARY] = {.key = "isCompactSummary"},
    [C_TRANSCRIPT_ONLY] = {.key = "isVisibleInTranscriptOnly"},
    [C_MESSAGE] = {.key = "message"},
    [C_CONTENT] = {.key = "content"},
    [C_BLOCKS] = {.key = "contentBlocks"},
    [C_SUMMARY] = {.key = "summary"},
    [C_WALCONV] = {.key = "walconv"}, /* a row without content */
    [C_CUSTOM_TITLE] = {.key = "customTitle"},
    [C_AI_TITLE] = {.key = "aiTitle"},
    [C_PRE_TOKENS] = {.parent = "compactMetadata", .key = "preTokens"},
    [C_KEPT_HEAD] = {.parent = "compactMetadata", .key = "preservedSegment"},
    [C_NAME] = {.key = "name"},
    [C_DATA] = {.key = "data"},
    [C_TARGET] = {.key = "targetUuid"},
    [C_DIALECT] = {.key = "dialect"},
};

static void set_blocks(struct wal__model_item *item,
                       const struct wal__model_blocks *blocks)
{
    item->blocks = blocks->items;
    item->block_count = blocks->count;
}

/* ------------------------------------------------------------ answer --- */

static enum wal__stop_reason read_stop(struct wal__json_span reason)
{
    static const struct {
        const char *name;
        enum wal__stop_reason stop;
    } stops[] = {
        {"end_turn", WAL__STOP_END},    {"max_tokens", WAL__STOP_LENGTH},
        {"tool_use", WAL__STOP_TOOL},   {"stop_sequence", WAL__STOP_SEQUENCE},
        {"refusal", WAL__STOP_REFUSAL}, {"error", WAL__STOP_ERROR},
        {"aborted", WAL__STOP_ABORTED},
    };

    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        if (wal__model_text_is(reason, stops[i].name)) {
            return stops[i].stop;
        }
    }
    return reason.size > 0 ? WAL__STOP_OTHER : WAL__STOP_NONE;
}

static bool read_assistant(struct row *row, struct wal__json_span message)
{
    enum {
        ID,
        TYPE,
        ROLE,
        MODEL,
        CONTENT,
        STOP,
        SEQUENCE,
        INPUT,
        OUTPUT,
        CACHE_READ,
        CACHE_WRITE,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ID] = {.key = "id"},
        [TYPE] = {.key = "type"},
        [ROLE] = {.key = "role"},
        [MODEL] = {.key = "model"},
        [CONTENT] = {.key = "content"},
        [STOP] = {.key = "stop_reason"},
        [SEQUENCE] = {.key = "stop_sequence"},
        [INPUT] = {.parent = "usage", .key = "input_tokens"},
        [OUTPUT] = {.parent = "usage", .key = "output_tokens"},
        [CACHE_READ] = {.parent = "usage", .key = "cache_read_input_tokens"},
        [CACHE_WRITE] = {.parent = "usage",
                         .key = "cache_creation_input_tokens"},
    };
    struct wal__model_blocks blocks = {.arena = row->reader->scratch};
    struct wal__model_item *item = &row->item;

    if (wal__model_members(message, members, COUNT, &item->fields) !=
            WAL__JSON_OK ||
        !wal__content_read(members[CONTENT].value, &blocks, &item->fields)) {
        return false;
    }
    item->role = WAL__ROLE_ASSISTANT;
    item->answer_id = wal__member_string(&members[ID]);
    item->model = wal__member_string(&members[MODEL]);
    if (wal__model_text_is(item->model, "unknown")) {
        item->model.size = 0;
    }
    item->stop = read_stop(wal__member_string(&members[STOP]));
    item->usage.input = wal__member_number(&members[INPUT]);
    item->usage.output = wal__member_number(&members[OUTPUT]);
    item->usage.cache_read = wal__member_number(&members[CACHE_READ]);
    item->usage.cache_write = wal__member_number(&members[CACHE_WRITE]);
    set_blocks(item, &blocks);
    wal__claude_answer_add_row(&row->claude->answers, row->line->id,
                               row->line->parent, item->answer_id);
    for (size_t i = 0; i < blocks.count; i++) {
        if (blocks.items[i].kind == WAL__BLOCK_TOOL_CALL) {
            wal__claude_answer_add_call(&row->claude->answers, row->line->id,
                                        blocks.items[i].id);
        }
    }
    return true;
}

/* Emits the text and the tool results of a user's row. */
static bool emit_user(struct row *row, struct wal__json_span message)
{
    enum {
        ROLE,
        CONTENT,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ROLE] = {.key = "role"},
        [CONTENT] = {.key = "content"},
    };
    struct wal__content_pieces pieces = {.arena = row->reader->scratch};

    row->item.role = WAL__ROLE_USER;
    if (wal__model_members(message, members, COUNT, &row->item.fields) !=
            WAL__JSON_OK ||
        !wal__content_split(&pieces, &row->item, members[CONTENT].value)) {
        return false;
    }
    wal__claude_answer_add_result(&row->claude->answers, row->line->id,
                                  row->line->parent, pieces.first_call);
    return wal__content_emit(&pieces, row->item.parent, row->reader);
}

/* ------------------------------------------------------- compactions --- */

/* Emits a compaction without a summary. */
static bool emit_boundary(struct wal__model_reader *reader,
                          struct claude *claude)
{
    WAL__ASSERT(claude->has_boundary);
    claude->has_boundary = false;
    return wal__model_emit(reader, &claude->boundary);
}

/* Returns the id in the member if it is that of an earlier row, else an empty
 * span: an unchecked reference could form a cycle. */
static struct wal__json_span
find_earlier_row(const struct claude *claude,
                 const struct wal__json_member *member)
{
    struct wal__json_span id = wal__member_string(member);
    struct wal__json_span found;

    if (id.size > 0 &&
        !wal__model_table_get(&claude->rows, wal__model_string_hash(0, id),
                              &found)) {
        id.size = 0;
    }
    return id;
}

/* Saves the row that marks a compaction until the next row. */
static bool save_boundary(struct row *row,
                          const struct wal__json_member *members)
{
    struct wal__json_span parent =
        find_earlier_row(row->claude, &members[C_LOGICAL_PARENT]);
    struct wal__json_member head = {.key = "headUuid"};
    struct wal__arena *arena = row->reader->arena;
    struct wal__model_item *item = &row->claude->boundary;

    if (members[C_KEPT_HEAD].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[C_KEPT_HEAD].value.span, &head, 1, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    if (wal__member_string(&members[C_PARENT]).size > 0 || parent.size == 0) {
        parent = row->item.parent;
    }
    parent = wal__claude_answer_parent(&row->claude->answers, parent);
    *item = row->item;
    item->kind = WAL__ITEM_COMPACTION;
    item->id = wal__arena_copy(arena, row->item.id);
    item->parent = wal__arena_copy(arena, parent);
    item->time = wal__arena_copy(arena, row->item.time);
    item->raw = wal__arena_copy(arena, row->item.raw);
    item->tokens =
        wal__arena_copy(arena, wal__member_number(&members[C_PRE_TOKENS]));
    item->target = wal__arena_copy(arena, find_earlier_row(row->claude, &head));
    row->claude->has_boundary = true;
    return item->id.data != NULL && item->parent.data != NULL &&
           item->time.data != NULL && item->raw.data != NULL &&
           item->tokens.data != NULL && item->target.data != NULL;
}

/* Emits the compaction of a row with its summary. */
static bool emit_summary(struct row *row, struct wal__json_span message)
{
    struct wal__json_member content = {.key = "content"};
    struct wal__model_blocks blocks = {.arena = row->reader->scratch};
    struct wal__model_item *item = &row->item;
    struct claude *claude = row->claude;

    if (wal__model_members(message, &content, 1, NULL) != WAL__JSON_OK ||
        !wal__content_read(content.value, &blocks, &item->fields)) {
        return false;
    }
    item->kind = WAL__ITEM_COMPACTION;
    for (size_t i = 0; i < blocks.count && item->text.size == 0; i++) {
        item->text = blocks.items[i].text;
    }
    if (claude->has_boundary && row->line->parent.size > 0 &&
        wal__json_characters_equal(row->line->parent, claude->boundary.id)) {
        struct wal__model_item alias = {.kind = WAL__ITEM_HEAD,
                                        .id = claude->boundary.id,
                                        .parent = claude->boundary.parent,
                                        .is_sidechain = item->is_sidechain};
        claude->has_boundary = false;
        item->parent = claude->boundary.parent;
        item->tokens = claude->boundary.tokens;
        item->target = claude->boundary.target;
        item->raw_prefix = claude->boundary.raw;
        item->raw.size = item->raw_prefix.size > 0 ? item->raw.size : 0;
        item->fields += claude->boundary.fields;
        if (!wal__model_emit(row->reader, &alias)) {
            return false;
        }
    }
    return wal__model_emit(row->reader, item);
}

/* -------------------------------------------------------------- rows --- */

static bool emit_line(struct row *row)
{
    row->item.kind = WAL__ITEM_LINE;
    row->item.data = row->line->text;
    return wal__model_emit(row->reader, &row->item);
}

static bool emit_system(struct row *row, const struct wal__json_member *members)
{
    struct wal__json_span subtype = wal__member_string(&members[C_SUBTYPE]);
    struct wal__model_blocks blocks = {.arena = row->reader->scratch};

    if (wal__model_text_is(subtype, "compact_boundary")) {
        return save_boundary(row, members);
    }
    if (wal__model_text_is(subtype, "walconv_head")) {
        row->item.kind = WAL__ITEM_HEAD;
        return wal__model_emit(row->reader, &row->item);
    }
    if (!wal__model_text_is(subtype, "walconv_message")) {
        return emit_line(row);
    }
    row->item.kind = WAL__ITEM_MESSAGE;
    row->item.role = WAL__ROLE_SYSTEM;
    row->item.is_meta = false;
    if (!wal__content_read(members[C_BLOCKS].value, &blocks,
                           &row->item.fields)) {
        return false;
    }
    set_blocks(&row->item, &blocks);
    return wal__model_emit(row->reader, &row->item);
}

/* Emits a row of the conversation. */
static bool emit_conversation_row(struct row *row,
                                  const struct wal__json_member *members)
{
    struct wal__json_span type = wal__member_string(&members[C_TYPE]);
    struct wal__json_span message = wal__member_container(&members[C_MESSAGE]);
    bool is_message = message.size > 0 && message.data[0] == '{';

    row->item.kind = WAL__ITEM_MESSAGE;
    row->item.is_meta = wal__member_is_true(&members[C_META]);
    if (is_message && wal__model_text_is(type, "user")) {
        return wal__member_is_true(&members[C_COMPACT_SUMMARY])
                   ? emit_summary(row, message)
                   : emit_user(row, message);
    }
    if (is_message && wal__model_text_is(type, "assistant")) {
        row->item.is_meta = false;
        return read_assistant(row, message) &&
               wal__model_emit(row->reader, &row->item);
    }
    if (wal__model_text_is(type, "system")) {
        return emit_system(row, members);
    }
    return emit_line(row);
}

static bool emit_foreign_line(struct row *row,
                              const struct wal__json_member *members)
{
    const struct wal__dialect *dialect =
        wal__dialect_find_string(wal__member_string(&members[C_DIALECT]));

    if (dialect == NULL) {
        return emit_line(row);
    }
    row->item.kind = WAL__ITEM_LINE;
    row->item.dialect = dialect;
    row->item.data = wal__member_raw(&members[C_DATA]);
    row->item.raw.size = 0;
    return row->item.data.size == 0 || wal__model_emit(row->reader, &row->item);
}

/* Emits a row that is not part of the conversation. */
static bool emit_metadata_row(struct row *row,
                              const struct wal__json_member *members)
{
    struct wal__json_span type = wal__member_string(&members[C_TYPE]);
    struct wal__model_item *item = &row->item;

    item->is_off_branch = true;
    item->kind = WAL__ITEM_TITLE;
    if (wal__model_text_is(type, "walconv-begin") ||
        wal__member_is_true(&members[C_WALCONV])) {
        return true;
    }
    if (wal__model_text_is(type, "custom-title")) {
        item->text = wal__member_string(&members[C_CUSTOM_TITLE]);
    } else if (wal__model_text_is(type, "ai-title")) {
        item->text = wal__member_string(&members[C_AI_TITLE]);
    } else if (wal__model_text_is(type, "summary")) {
        item->text = wal__member_string(&members[C_SUMMARY]);
    } else if (wal__model_text_is(type, "walconv-custom")) {
        item->kind = WAL__ITEM_CUSTOM;
        item->name = wal__member_string(&members[C_NAME]);
        item->data = wal__member_non_null(&members[C_DATA]);
    } else if (wal__model_text_is(type, "walconv-label")) {
        item->kind = WAL__ITEM_LABEL;
        item->target = wal__member_string(&members[C_TARGET]);
        item->text = wal__member_string(&members[C_NAME]);
    } else if (wal__model_text_is(type, "walconv-line")) {
        return emit_foreign_line(row, members);
    } else {
        return emit_line(row);
    }
    return wal__model_emit(row->reader, item);
}

/* Emits the header from the first row that has a session and a directory. */
static bool emit_header(struct row *row, const struct wal__json_member *members)
{
    struct wal__model_session session = {
        .id = wal__member_string(&members[C_SESSION]),
        .cwd = wal__member_string(&members[C_CWD]),
        .time = wal__member_string(&members[C_TIME]),
        .raw = wal__member_string(&members[C_SESSION]),
        .dialect = row->reader->dialect,
    };
    struct wal__model_item item = {.kind = WAL__ITEM_HEADER,
                                   .session = &session};

    if (row->claude->has_header || session.id.size == 0 ||
        session.cwd.size == 0) {
        return true;
    }
    row->claude->has_header = true;
    return wal__model_emit(row->reader, &item);
}

static bool emit_row(struct row *row, const struct wal__json_member *members)
{
    struct claude *claude = row->claude;
    bool is_in_conversation =
        wal__member_string(&members[C_UUID]).size > 0 ||
        wal__member_container(&members[C_MESSAGE]).size > 0;

    if (!emit_header(row, members)) {
        return false;
    }
    if (claude->has_boundary && is_in_conversation &&
        !wal__member_is_true(&members[C_COMPACT_SUMMARY]) &&
        !emit_boundary(row->reader, claude)) {
        return false;
    }
    if (claude->has_boundary && !is_in_conversation) {
        row->item.parent = claude->boundary.parent; /* which is not emitted */
    }
    return is_in_conversation ? emit_conversation_row(row, members)
                              : emit_metadata_row(row, members);
}

static enum wal__json_status claude_line(struct wal__model_reader *reader,
                                         const struct wal__model_line *line)
{
    struct row row = {.reader = reader, .line = line, .claude = reader->state};
    struct wal__json_member members[C_COUNT];
    enum wal__json_status status;

    if (row.claude == NULL) {
        row.claude = wal__arena_calloc(reader->arena, sizeof(*row.claude));
        if (row.claude == NULL) {
            return WAL__JSON_NO_SPACE;
        }
        row.claude->rows.arena = reader->arena;
        reader->state = row.claude;
    }
    memcpy(members, row_wanted, sizeof(members));
    row.item.id = line->id;
    row.item.time = line->time;
    row.item.stream = line->stream;
    status = wal__model_members(line->text, members, C_COUNT, &row.item.fields);
    if (status != WAL__JSON_OK) {
        return status;
    }
    row.item.parent = wal__arena_copy(
        reader->scratch,
        wal__claude_answer_parent(&row.claude->answers, line->parent));
    if (row.item.parent.data == NULL) {
        return WAL__JSON_NO_SPACE;
    }
    row.item.is_sidechain = wal__member_is_true(&members[C_SIDECHAIN]);
    if (line->is_exact || wal__member_string(&members[C_UUID]).size == 0) {
        row.item.raw = line->text;
    }
    return emit_row(&row, members) &&
                   wal__model_table_put(&row.claude->rows,
                                        wal__model_string_hash(0, line->id),
                                        row.item.id)
               ? WAL__JSON_OK
               : WAL__JSON_NO_SPACE;
}

static enum wal__json_status claude_finish(struct wal__model_reader *reader)
{
    struct claude *claude = reader->state;

    if (claude != NULL && claude->has_boundary &&
        !emit_boundary(reader, claude)) {
        return WAL__JSON_NO_SPACE;
    }
    return WAL__JSON_OK;
}

const struct wal__dialect_read_ops wal__claude_read_ops = {
    .line = claude_line,
    .finish = claude_finish,
};
