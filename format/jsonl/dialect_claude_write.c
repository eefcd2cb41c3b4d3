/*
 * dialect_claude_write: transcripts of Claude Code.
 *
 * An item is a row, but an answer is a row for each block, and a compaction
 * the row that marks it and the one with its summary. What the client has no
 * row for goes into rows whose types begin with "walconv", beside the
 * conversation, where it reads over them.
 *
 * Invariant: rows of the conversation have UUIDs that are unique; every row
 * names the session that the file is called by.
 *
 * Threads: one thread at a time per writer.
 */
#include <string.h>

#include "format/jsonl/claude_block.h"
#include "format/jsonl/claude_listing.h"
#include "format/jsonl/claude_path.h"
#include "format/jsonl/model_read.h"
#include "format/jsonl/model_time.h"
#include "format/jsonl/model_write.h"

struct claude {
    struct wal__json_span session; /* id that rows name */
    bool is_other;                 /* than the one that lines name */
    bool is_agent;                 /* all rows are of a side chain */
    bool has_rows;
    struct wal__claude_listing listing;
};

static size_t claude_make_id(const struct wal__model_writer *writer,
                             const struct wal__model_item *item,
                             const uint64_t hash[2],
                             char id[WAL__MODEL_ID_SIZE])
{
    (void)writer;
    (void)item;
    return wal__model_uuid(hash, id);
}

/* -------------------------------------------------------------- rows --- */

/* Opens a row of the conversation with the fields that come first. */
static void open_row(struct wal__model_writer *writer,
                     const struct wal__model_item *item,
                     struct wal__json_span parent)
{
    const struct claude *claude = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__json_out_open(out, '{');
    wal__json_out_member(out, "parentUuid", wal__model_or(parent, "null"));
    if (item->kind == WAL__MODEL_COMPACTION && parent.size == 0) {
        wal__json_out_member(out, "logicalParentUuid",
                             wal__model_or(item->parent, "null"));
    }
    wal__json_out_flag(out, "isSidechain",
                       item->is_sidechain || claude->is_agent);
    wal__json_out_name(out, "userType", "external");
    wal__json_out_member(out, "cwd",
                         wal__model_or(writer->session->cwd, "\"/\""));
    wal__json_out_member(out, "sessionId", claude->session);
    wal__json_out_name(out, "version", "2.0.0");
    wal__json_out_name(out, "gitBranch", "");
}

static void close_row(struct wal__json_out *out, struct wal__json_span id,
                      struct wal__json_span time)
{
    wal__json_out_member(out, "uuid", id);
    wal__model_out_time(out, "timestamp", time);
    wal__json_out_close(out, '}');
    wal__json_out_line(out);
}

/* ------------------------------------------------------------ answer --- */

static const char *stop_name(const struct wal__model_item *item)
{
    switch (item->stop) {
    case WAL__STOP_END:
        return "\"end_turn\"";
    case WAL__STOP_LENGTH:
        return "\"max_tokens\"";
    case WAL__STOP_TOOL:
        return "\"tool_use\"";
    case WAL__STOP_SEQUENCE:
        return "\"stop_sequence\"";
    case WAL__STOP_REFUSAL:
        return "\"refusal\"";
    case WAL__STOP_ERROR:
        return "\"error\"";
    case WAL__STOP_ABORTED:
        return "\"aborted\"";
    case WAL__STOP_NONE:
    case WAL__STOP_OTHER:
        break;
    }
    return "null";
}

static void write_usage(struct wal__json_out *out,
                        const struct wal__model_usage *usage)
{
    wal__json_out_key(out, "usage");
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "input_tokens", wal__model_or(usage->input, "0"));
    wal__json_out_optional(out, "cache_creation_input_tokens",
                           usage->cache_write);
    wal__json_out_optional(out, "cache_read_input_tokens", usage->cache_read);
    wal__json_out_member(out, "output_tokens",
                         wal__model_or(usage->output, "0"));
    wal__json_out_close(out, '}');
}

/* The id that the rows of an answer share. */
static void write_group(struct wal__json_out *out,
                        const struct wal__model_item *item)
{
    wal__json_out_key(out, "id");
    if (item->group.size > 0) {
        wal__json_out_value(out, item->group);
        return;
    }
    wal__json_out_quote(out);
    wal__json_out_bytes(out, "msg_", 4);
    wal__json_out_joined(out, item->id);
    wal__json_out_unquote(out);
}

static void write_answer(struct wal__model_writer *writer,
                         const struct wal__model_item *item, size_t first,
                         size_t count)
{
    struct wal__json_out *out = &writer->out;

    wal__json_out_key(out, "message");
    wal__json_out_open(out, '{');
    write_group(out, item);
    wal__json_out_name(out, "type", "message");
    wal__json_out_name(out, "role", "assistant");
    wal__json_out_member(out, "model",
                         wal__model_or(item->model, "\"unknown\""));
    wal__claude_write_blocks(
        out, "content", count > 0 ? &item->blocks[first] : item->blocks, count);
    wal__json_out_key(out, "stop_reason");
    wal__json_out_literal(out, stop_name(item));
    wal__json_out_key(out, "stop_sequence");
    wal__json_out_literal(out, "null");
    write_usage(out, &item->usage);
    wal__json_out_close(out, '}');
    wal__json_out_name(out, "type", "assistant");
}

/* A row for each block; the last one has the item's id. */
static bool write_assistant(struct wal__model_writer *writer,
                            const struct wal__model_item *item)
{
    struct wal__json_span parent = item->parent;
    size_t rows = item->block_count > 0 ? item->block_count : 1;

    for (size_t i = 0; i < rows; i++) {
        struct wal__json_span id = item->id;
        if (i + 1 < rows && !wal__model_piece_id(writer, item, i, &id)) {
            return false;
        }
        open_row(writer, item, parent);
        write_answer(writer, item, i, item->block_count > 0 ? 1 : 0);
        close_row(&writer->out, id, item->time);
        parent = id;
    }
    return true;
}

/* ---------------------------------------------------------- messages --- */

static void write_result(struct wal__json_out *out,
                         const struct wal__model_item *item)
{
    wal__json_out_key(out, "content");
    wal__json_out_open(out, '[');
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "tool_use_id", wal__model_or(item->call, "\"\""));
    wal__json_out_name(out, "type", "tool_result");
    wal__claude_write_content(out, item);
    if (item->is_error) {
        wal__json_out_flag(out, "is_error", true);
    }
    wal__json_out_close(out, '}');
    wal__json_out_close(out, ']');
}

static void write_user(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_row(writer, item, item->parent);
    wal__json_out_name(out, "type", "user");
    wal__json_out_key(out, "message");
    wal__json_out_open(out, '{');
    wal__json_out_name(out, "role", "user");
    if (item->role == WAL__ROLE_TOOL) {
        write_result(out, item);
    } else {
        wal__claude_write_content(out, item);
    }
    wal__json_out_close(out, '}');
    if (item->is_meta) {
        wal__json_out_flag(out, "isMeta", true);
    }
    close_row(out, item->id, item->time);
}

static void write_system(struct wal__model_writer *writer,
                         const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    open_row(writer, item, item->parent);
    wal__json_out_name(out, "type", "system");
    wal__json_out_name(out, "subtype", "walconv_message");
    wal__json_out_key(out, "content");
    wal__json_out_quote(out);
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TEXT) {
            wal__json_out_joined(out, item->blocks[i].text);
        }
    }
    wal__json_out_unquote(out);
    wal__claude_write_blocks(out, "contentBlocks", item->blocks,
                             item->block_count);
    wal__json_out_name(out, "level", "info");
    wal__json_out_flag(out, "isMeta", false);
    close_row(out, item->id, item->time);
}

static bool write_message(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    if (item->role == WAL__ROLE_ASSISTANT) {
        return write_assistant(writer, item);
    }
    if (item->role == WAL__ROLE_SYSTEM) {
        write_system(writer, item);
    } else {
        write_user(writer, item);
    }
    return true;
}

/* The entries that a compaction keeps: first one, last one, and what they
 * stand behind from now on. */
static void write_kept(struct wal__json_out *out,
                       const struct wal__model_item *item)
{
    wal__json_out_key(out, "preservedSegment");
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "headUuid", item->target);
    wal__json_out_member(out, "anchorUuid", item->id);
    wal__json_out_member(out, "tailUuid", wal__model_or(item->parent, "null"));
    wal__json_out_close(out, '}');
}

static bool write_compaction(struct wal__model_writer *writer,
                             const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span id = item->id;

    if (item->text.size > 0 && !wal__model_piece_id(writer, item, 0, &id)) {
        return false;
    }
    open_row(writer, item, none);
    wal__json_out_name(out, "type", "system");
    wal__json_out_name(out, "subtype", "compact_boundary");
    wal__json_out_name(out, "content", "Conversation compacted");
    wal__json_out_flag(out, "isMeta", false);
    wal__json_out_name(out, "level", "info");
    wal__json_out_key(out, "compactMetadata");
    wal__json_out_open(out, '{');
    wal__json_out_name(out, "trigger", "manual");
    wal__json_out_optional(out, "preTokens", item->tokens);
    if (item->target.size > 0) {
        write_kept(out, item);
    }
    wal__json_out_close(out, '}');
    close_row(out, id, item->time);
    if (item->text.size == 0) {
        return true;
    }
    open_row(writer, item, id);
    wal__json_out_name(out, "type", "user");
    wal__json_out_key(out, "message");
    wal__json_out_open(out, '{');
    wal__json_out_name(out, "role", "user");
    wal__json_out_member(out, "content", item->text);
    wal__json_out_close(out, '}');
    wal__json_out_flag(out, "isCompactSummary", true);
    wal__json_out_flag(out, "isVisibleInTranscriptOnly", true);
    close_row(out, item->id, item->time);
    return true;
}

/* ------------------------------------------------ beside the messages --- */

static void open_aside(struct wal__model_writer *writer, const char *type)
{
    const struct claude *claude = writer->state;

    wal__json_out_open(&writer->out, '{');
    wal__json_out_name(&writer->out, "type", type);
    wal__json_out_member(&writer->out, "sessionId", claude->session);
}

static void close_aside(struct wal__model_writer *writer,
                        const struct wal__model_item *item)
{
    if (item->kind != WAL__MODEL_TITLE) {
        wal__model_out_time(&writer->out, "timestamp", item->time);
    }
    wal__json_out_close(&writer->out, '}');
    wal__json_out_line(&writer->out);
}

static void write_title(struct wal__model_writer *writer,
                        const struct wal__model_item *item)
{
    const struct claude *claude = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__json_out_open(out, '{');
    wal__json_out_name(out, "type", "custom-title");
    wal__json_out_member(out, "customTitle", wal__model_or(item->text, "\"\""));
    wal__json_out_member(out, "sessionId", claude->session);
    close_aside(writer, item);
}

static void write_aside(struct wal__model_writer *writer,
                        const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    if (item->kind == WAL__MODEL_LABEL) {
        open_aside(writer, "walconv-label");
        wal__json_out_optional(out, "targetUuid", item->target);
        wal__json_out_optional(out, "name", item->text);
    } else if (item->kind == WAL__MODEL_CUSTOM) {
        open_aside(writer, "walconv-custom");
        wal__json_out_optional(out, "name", item->name);
        wal__json_out_optional(out, "data", item->data);
    } else {
        open_aside(writer, "walconv-line");
        wal__json_out_name(out, "dialect", item->dialect->name);
        wal__json_out_member(out, "data", item->data);
    }
    close_aside(writer, item);
}

/* A row that only this client knows, under ids as they are here. */
static void write_own_line(struct wal__model_writer *writer,
                           const struct wal__model_item *item)
{
    const struct claude *claude = writer->state;
    const struct wal__json_span none = {NULL, 0};
    const struct wal__json_swap swaps[] = {
        {"uuid", item->is_aside ? none : item->id},
        {"parentUuid", wal__model_or(item->parent, "null")},
        {"sessionId", claude->session},
    };

    wal__json_out_swapped(&writer->out, item->data, swaps, 3);
    wal__json_out_line(&writer->out);
}

static void write_raw(struct wal__model_writer *writer,
                      struct wal__json_span raw)
{
    const struct claude *claude = writer->state;
    const struct wal__json_swap swap = {"sessionId", claude->session};

    if (raw.size == 0) {
        return;
    }
    if (claude->is_other) {
        wal__json_out_swapped(&writer->out, raw, &swap, 1);
    } else {
        wal__json_out_value(&writer->out, raw);
    }
    wal__json_out_line(&writer->out);
}

/* ----------------------------------------------------------- dialect --- */

static bool claude_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct claude *claude = wal__arena_zero(writer->keep, sizeof(*claude));
    const char *path = wal__claude_path(session, 0, writer->scratch);
    struct wal__json_span agent;

    if (claude == NULL || path == NULL) {
        return false;
    }
    wal__claude_split(session->id, writer->scratch, &claude->session, &agent);
    claude->session = wal__claude_uuid(claude->session, writer->keep);
    claude->is_agent = agent.size > 0;
    claude->is_other = session->dialect == writer->dialect &&
                       (session->raw.size != claude->session.size ||
                        memcmp(session->raw.data, claude->session.data,
                               session->raw.size) != 0);
    writer->state = claude;
    wal__claude_listing_init(&claude->listing, &writer->out);
    return claude->session.data != NULL &&
           wal__model_write_file(writer, path, false);
}

/* The client does not list a file that begins with a side chain. */
static void begin_rows(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    struct claude *claude = writer->state;

    if (!claude->has_rows && item->is_sidechain && !claude->is_agent) {
        open_aside(writer, "walconv-begin");
        wal__json_out_close(&writer->out, '}');
        wal__json_out_line(&writer->out);
    }
    claude->has_rows = true;
}

static bool write_item(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    switch (item->kind) {
    case WAL__MODEL_MESSAGE:
        return write_message(writer, item);
    case WAL__MODEL_COMPACTION:
        return write_compaction(writer, item);
    case WAL__MODEL_TITLE:
        write_title(writer, item);
        break;
    case WAL__MODEL_LABEL:
    case WAL__MODEL_CUSTOM:
        write_aside(writer, item);
        break;
    case WAL__MODEL_LINE:
        if (item->dialect == writer->dialect) {
            write_own_line(writer, item);
        } else {
            write_aside(writer, item);
        }
        break;
    case WAL__MODEL_HEADER:
    case WAL__MODEL_CHANGE:
    case WAL__MODEL_THINKING_LEVEL:
    case WAL__MODEL_BRANCH_SUMMARY:
    case WAL__MODEL_HEAD:
        break;
    }
    return true;
}

/* The client's own rows are listed as it wrote them. */
static bool claude_item(struct wal__model_writer *writer,
                        const struct wal__model_item *item)
{
    struct claude *claude = writer->state;
    uint64_t begin;

    if (item->raw.size > 0) {
        write_raw(writer, item->raw_before);
        write_raw(writer, item->raw);
        claude->has_rows = true;
        claude->listing.is_in_front = true;
        return true;
    }
    begin_rows(writer, item);
    if (!wal__claude_listing_before(&claude->listing, item, claude->session,
                                    writer->scratch, &writer->out)) {
        return false;
    }
    begin = claude->listing.size;
    if (!write_item(writer, item)) {
        return false;
    }
    wal__claude_listing_after(&claude->listing, item, begin);
    return true;
}

static bool claude_end(struct wal__model_writer *writer)
{
    struct claude *claude = writer->state;

    if (!claude->is_agent) {
        wal__claude_listing_end(&claude->listing, claude->session,
                                &writer->out);
    }
    return true;
}

/* The tip is the last row that none goes on behind. */
static bool claude_head(struct wal__model_writer *writer,
                        struct wal__json_span id)
{
    struct wal__json_out *out = &writer->out;
    struct wal__model_item item = {.time = writer->session->time};

    item.id = wal__model_literal("\"walconv_head\"");
    if (!wal__model_piece_id(writer, &item, writer->items, &item.id)) {
        return false;
    }
    open_row(writer, &item, id);
    wal__json_out_name(out, "type", "system");
    wal__json_out_name(out, "subtype", "walconv_head");
    wal__json_out_name(out, "content", "");
    wal__json_out_flag(out, "isMeta", true);
    close_row(out, item.id, item.time);
    return true;
}

static bool claude_branch(struct wal__model_writer *writer)
{
    struct claude *own = wal__arena_take(writer->keep, sizeof(*own));

    if (own != NULL) {
        *own = *(const struct claude *)writer->state;
        writer->state = own;
        writer->out.ctx = &own->listing; /* which counts what goes out */
    }
    return own != NULL;
}

const struct wal__dialect_writing wal__writing_claude = {
    .carries = WAL__CARRIES(BRANCHES) | WAL__CARRIES(SIDECHAINS) |
               WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) |
               WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(BORDERS) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_ERRORS) |
               WAL__CARRIES(MODELS) | WAL__CARRIES(USAGE) |
               WAL__CARRIES(STOP_REASONS) | WAL__CARRIES(COMPACTIONS) |
               WAL__CARRIES(KEPT_RANGES) | WAL__CARRIES(TOKENS_BEFORE) |
               WAL__CARRIES(LABELS) | WAL__CARRIES(TITLES) |
               WAL__CARRIES(CUSTOM) | WAL__CARRIES(META) | WAL__CARRIES(LINES),
    .path = wal__claude_path,
    .is_id = wal__claude_is_id,
    .make_id = claude_make_id,
    .asides = 1U << WAL__MODEL_TITLE | 1U << WAL__MODEL_LABEL |
              1U << WAL__MODEL_CUSTOM | 1U << WAL__MODEL_LINE,
    .begin = claude_begin,
    .item = claude_item,
    .end = claude_end,
    .branch = claude_branch,
    .keeps_lines = wal__claude_keeps_lines,
    .head = claude_head,
};
