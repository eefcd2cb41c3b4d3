/*
 * pi_write.c - writes session files of pi, version 3.
 *
 * An item is a line. Items for which pi has no entry become entries of type
 * `custom` and `custom_message` whose custom types begin with "walconv.";
 * pi_read.c restores them.
 *
 * Invariant: the first line is the header; each line ends in a newline; ids
 * are unique in the file.
 *
 * Threads: one thread at a time per writer.
 */
#include <string.h>

#include "convert/dialect/pi/pi_vocabulary.h"
#include "convert/model/content_write.h"
#include "convert/model/model_member.h"
#include "convert/model/model_path.h"
#include "convert/model/model_write.h"
#include "format/json/json_value.h"
#include "format/payload/timestamp.h"

struct pi_writer {
    struct wal__json_span provider; /* of the last answer that has a model */
    struct wal__json_span model;
    bool is_claude; /* that answer is Claude Code's */
};

static bool is_same(struct wal__json_span a, struct wal__json_span b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool is_plain(uint8_t byte)
{
    return byte != '/' && byte != '\\' && byte != ':' && byte != '\0';
}

static const char *pi_path(const struct wal__model_session *session,
                           uint32_t stream, struct wal__arena *arena)
{
    const char *given = wal__model_client_path(session, stream, "pi");

    return given != NULL
               ? given
               : wal__model_dashed_path(session, is_plain, true, arena);
}

/* An id has eight hexadecimal digits. */
static bool pi_is_id(struct wal__json_span id)
{
    if (id.size != 10) {
        return false;
    }
    for (size_t i = 1; i < 9; i++) {
        bool is_digit = id.data[i] >= '0' && id.data[i] <= '9';
        if (!is_digit && (id.data[i] < 'a' || id.data[i] > 'f')) {
            return false;
        }
    }
    return true;
}

static size_t pi_make_id(const struct wal__model_writer *writer,
                         const struct wal__model_item *item,
                         const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE])
{
    (void)writer;
    (void)item;
    id[0] = '"';
    for (size_t i = 0; i < 8; i++) {
        id[1 + i] = "0123456789abcdef"[hash[0] >> (60 - 4 * i) & 0xF];
    }
    id[9] = '"';
    return 10;
}

static void write_ms(struct wal__json_out *out, struct wal__json_span time)
{
    int64_t ms = 0;

    (void)wal__model_time_read(time, &ms);
    wal__json_out_member_int(out, "timestamp", ms);
}

/* The path of the file of the session that started this one: the client shows
 * a session below the one whose file it names. Data is NULL if there is no
 * memory. */
static struct wal__json_span path_of_starter(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const struct wal__model_session starter = {.id = session->starter,
                                               .time = session->starter_time,
                                               .cwd = session->starter_cwd};
    const char *below = pi_path(&starter, 0, writer->scratch);
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    if (session->root != NULL) {
        wal__model_path_add(&path, session->root);
        wal__model_path_add(&path, "/");
    }
    if (below != NULL) {
        wal__model_path_add(&path, below);
    }
    return below == NULL || path.text == NULL
               ? (struct wal__json_span){NULL, 0}
               : wal__arena_escape(writer->scratch,
                                   (struct wal__json_span){
                                       (const uint8_t *)path.text, path.size});
}

static bool pi_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    const char *path = pi_path(session, 0, writer->scratch);
    struct wal__json_span parent = session->parent;

    writer->state = wal__arena_calloc(writer->arena, sizeof(struct pi_writer));
    if (path == NULL || writer->state == NULL ||
        !wal__model_write_file(writer, path, WAL__OUTPUT_LINES)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        const struct wal__json_override id = {"id", session->id};
        wal__json_out_overridden(out, session->raw, &id, 1);
        wal__json_out_newline(out);
        return true;
    }
    if (session->starter.size > 0) {
        parent = path_of_starter(writer);
        if (parent.data == NULL) {
            return false;
        }
    }
    wal__json_out_open(out, '{');
    wal__json_out_member_str(out, "type", "session");
    wal__json_out_member_int(out, "version", 3);
    wal__json_out_member(out, "id", session->id);
    wal__model_write_time(out, "timestamp", session->time);
    wal__json_out_member(out, "cwd", wal__model_or(session->cwd, "\"/\""));
    wal__json_out_optional(out, "parentSession", parent);
    wal__json_out_close_line(out);
    return true;
}

/* Opens an entry and writes the members that all entries have. */
static void open_entry(struct wal__json_out *out, const char *type,
                       const struct wal__model_item *item)
{
    wal__json_out_open(out, '{');
    wal__json_out_member_str(out, "type", type);
    wal__json_out_member(out, "id", item->id);
    wal__json_out_member(out, "parentId", wal__model_or(item->parent, "null"));
    wal__model_write_time(out, "timestamp", item->time);
}

/* The client sends an image's bytes to its model, so an image without data is
 * written as a text with its URL. */
static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    static const struct wal__json_span image = {(const uint8_t *)"image: ", 7};

    if (block->data.size == 0) {
        wal__json_out_member_str(out, "type", "text");
        wal__json_out_key(out, "text");
        wal__json_out_string_begin(out);
        wal__json_out_string_text(out, image);
        wal__json_out_string_json(out, wal__model_or(block->url, "\"\""));
        wal__json_out_string_end(out);
        wal__json_out_member(out, "walconvUrl",
                             wal__model_or(block->url, "\"\""));
        return;
    }
    wal__json_out_member_str(out, "type", "image");
    wal__json_out_member_text(out, "data", block->data);
    wal__json_out_member_text(out, "mimeType", block->media);
    wal__json_out_optional(out, "url", block->url);
}

static void write_content(struct wal__json_out *out,
                          const struct wal__model_item *item)
{
    static const struct wal__block_form form = {
        .text = "text",
        .signature = "thinkingSignature",
        .call = "toolCall",
        .arguments = "arguments",
        .image = write_image,
    };

    wal__content_write_blocks(out, "content", &form, item->blocks,
                              item->block_count);
}

/* Returns a count of tokens; 0 if it is missing or out of range. */
static int64_t token_count(struct wal__json_span number)
{
    int64_t count = 0;

    return number.size > 0 &&
                   wal__json_integer(number, &count) == WAL__JSON_OK &&
                   count > 0 && count < INT64_MAX / 4
               ? count
               : 0;
}

static void write_usage(struct wal__json_out *out,
                        const struct wal__model_usage *usage)
{
    int64_t total = token_count(usage->input) + token_count(usage->output) +
                    token_count(usage->cache_read) +
                    token_count(usage->cache_write);

    wal__json_out_member_open(out, "usage", '{');
    wal__fields_write(out, wal__pi_usage, usage);
    wal__json_out_member_int(out, "totalTokens", total);
    wal__json_out_member_open(out, "cost", '{');
    wal__json_out_member_int(out, "input", 0);
    wal__json_out_member_int(out, "output", 0);
    wal__json_out_member_int(out, "cacheRead", 0);
    wal__json_out_member_int(out, "cacheWrite", 0);
    wal__json_out_member(out, "total", wal__model_or(usage->cost, "0"));
    wal__json_out_close(out, '}');
    wal__json_out_close(out, '}');
}

/* Returns the name of the provider's API. */
static const char *api_name(struct wal__json_span provider)
{
    if (wal__model_text_is(provider, "anthropic")) {
        return "anthropic-messages";
    }
    if (wal__model_text_is(provider, "openai")) {
        return "openai-responses";
    }
    if (wal__model_text_is(provider, "google")) {
        return "google-generative-ai";
    }
    return "openai-completions";
}

/* The client goes on with the model of the last answer. So an answer without
 * one gets the model before, and one of Claude Code its provider; a mark says
 * that they are not the answer's. */
static void write_model(struct wal__json_out *out,
                        const struct wal__model_item *item,
                        const struct pi_writer *pi)
{
    bool has_model = item->model.size > 0;
    bool is_claude =
        has_model ? wal__dialect_is(item->dialect, "claude") : pi->is_claude;
    struct wal__json_span model = has_model ? item->model : pi->model;
    struct wal__json_span provider = has_model ? item->provider : pi->provider;

    if (provider.size == 0 && is_claude && model.size > 0) {
        provider = wal__model_literal("\"anthropic\"");
    }
    if (item->provider.size > 0) {
        provider = item->provider;
    }
    wal__json_out_member_str(out, "api", api_name(provider));
    wal__json_out_member(out, "provider",
                         wal__model_or(provider, "\"unknown\""));
    wal__json_out_member(out, "model", wal__model_or(model, "\"unknown\""));
    if (item->provider.size == 0 && provider.size > 0) {
        wal__json_out_member_bool(out, "walconvNoProvider", true);
    }
    if (!has_model && model.size > 0) {
        wal__json_out_member_bool(out, "walconvNoModel", true);
    }
}

/* Keeps the model of an answer for those that come after it. */
static bool keep_model(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    struct pi_writer *pi = writer->state;

    if (item->model.size == 0 ||
        (item->kind != WAL__ITEM_MODEL_CHANGE &&
         (item->kind != WAL__ITEM_MESSAGE ||
          item->role != WAL__ROLE_ASSISTANT)) ||
        wal__model_text_is(item->model, "<synthetic>")) {
        return true;
    }
    pi->is_claude = wal__dialect_is(item->dialect, "claude");
    if (!is_same(pi->model, item->model)) {
        pi->model = wal__arena_copy(writer->arena, item->model);
    }
    if (!is_same(pi->provider, item->provider)) {
        pi->provider = item->provider.size > 0
                           ? wal__arena_copy(writer->arena, item->provider)
                           : item->provider;
    }
    return pi->model.data != NULL &&
           (item->provider.size == 0 || pi->provider.data != NULL);
}

static void write_assistant(struct wal__json_out *out,
                            const struct wal__model_item *item,
                            const struct pi_writer *pi)
{
    wal__json_out_member_str(out, "role", "assistant");
    write_content(out, item);
    write_model(out, item, pi);
    write_usage(out, &item->usage);
    wal__json_out_member_str(out, "stopReason",
                             wal__word_of(wal__pi_stops, item->stop)->name);
}

static void write_result(struct wal__json_out *out,
                         const struct wal__model_item *item)
{
    wal__json_out_member_str(out, "role", "toolResult");
    wal__json_out_member(out, "toolCallId", wal__model_or(item->call, "\"\""));
    wal__json_out_member(out, "toolName",
                         wal__model_or(item->name, "\"unknown\""));
    write_content(out, item);
    wal__json_out_member_bool(out, "isError", item->is_error);
}

static bool is_bash(const struct wal__model_item *item)
{
    return item->is_meta && wal__model_text_is(item->name, "bashExecution") &&
           item->block_count == 2 && item->blocks[0].kind == WAL__BLOCK_TEXT &&
           item->blocks[1].kind == WAL__BLOCK_TEXT;
}

static void write_bash(struct wal__json_out *out,
                       const struct wal__model_item *item)
{
    wal__json_out_member_str(out, "role", "bashExecution");
    wal__json_out_member(out, "command", item->blocks[0].text);
    wal__json_out_member(out, "output", item->blocks[1].text);
    wal__json_out_member_bool(out, "cancelled", false);
    wal__json_out_member_bool(out, "truncated", false);
}

/* Writes a message for which pi has no role. */
static void write_custom_message(struct wal__json_out *out,
                                 const struct wal__model_item *item)
{
    bool is_system = item->role == WAL__ROLE_SYSTEM;

    open_entry(out, "custom_message", item);
    wal__json_out_member(out, "customType",
                         is_system
                             ? wal__model_literal("\"walconv.system\"")
                             : wal__model_or(item->name, "\"walconv.meta\""));
    write_content(out, item);
    wal__json_out_member_bool(out, "display", false);
    wal__json_out_close_line(out);
}

static void write_message(struct wal__json_out *out,
                          const struct wal__model_item *item,
                          const struct pi_writer *pi)
{
    if (item->role == WAL__ROLE_SYSTEM || (item->is_meta && !is_bash(item))) {
        write_custom_message(out, item);
        return;
    }
    open_entry(out, "message", item);
    wal__json_out_member_open(out, "message", '{');
    if (item->role == WAL__ROLE_ASSISTANT) {
        write_assistant(out, item, pi);
    } else if (item->role == WAL__ROLE_TOOL) {
        write_result(out, item);
    } else if (item->is_meta) {
        write_bash(out, item);
    } else {
        wal__json_out_member_str(out, "role", "user");
        write_content(out, item);
    }
    write_ms(out, item->time);
    wal__json_out_close(out, '}');
    wal__json_out_close_line(out);
}

static void write_foreign(struct wal__json_out *out,
                          const struct wal__model_item *item)
{
    open_entry(out, "custom", item);
    wal__json_out_member_str(out, "customType", "walconv.line");
    wal__json_out_member_open(out, "data", '{');
    wal__json_out_member_str(out, "dialect", item->dialect->name);
    if (item->is_off_branch) {
        wal__json_out_member_bool(out, "aside", true);
    }
    wal__json_out_member(out, "line", item->data);
    wal__json_out_close(out, '}');
    wal__json_out_close_line(out);
}

static void write_line(struct wal__json_out *out,
                       const struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    const struct wal__json_override ids[] = {
        {"id", item->id},
        {"parentId", wal__model_or(item->parent, "null")},
    };

    if (item->dialect != writer->dialect ||
        !wal__model_has_entry_ids(item->data)) {
        write_foreign(out, item);
        return;
    }
    wal__json_out_overridden(out, item->data, ids, 2);
    wal__json_out_newline(out);
}

/* Writes an entry whose members are fields of the item. */
static void write_fields(struct wal__json_out *out,
                         const struct wal__model_item *item)
{
    const struct wal__word *type = wal__word_of(wal__pi_entries, item->kind);
    struct wal__model_item named = *item;

    if (item->kind == WAL__ITEM_COMPACTION && item->target.size == 0) {
        named.target = item->id; /* nothing is kept */
    }
    open_entry(out, type->name, item);
    wal__fields_write(out, type->fields, &named);
    wal__json_out_close_line(out);
}

static bool pi_item(struct wal__model_writer *writer,
                    const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(out, item, writer->state);
    } else if (item->kind == WAL__ITEM_LINE) {
        write_line(out, writer, item);
    } else {
        write_fields(out, item);
    }
    return keep_model(writer, item);
}

/* Writes an entry under the head: the leaf is the last line. */
static bool pi_head(struct wal__model_writer *writer, struct wal__json_span id)
{
    struct wal__model_item item = {.parent = id, .time = writer->session->time};

    item.id = wal__model_literal("\"walconv.head\"");
    if (!wal__model_derive_id(writer, &item, writer->items, &item.id)) {
        return false;
    }
    open_entry(&writer->out, "custom", &item);
    wal__json_out_member_str(&writer->out, "customType", "walconv.head");
    wal__json_out_close_line(&writer->out);
    return true;
}

static bool pi_clone(struct wal__model_writer *writer)
{
    struct pi_writer *own = wal__arena_alloc(writer->arena, sizeof(*own));

    if (own != NULL) {
        *own = *(const struct pi_writer *)writer->state;
        writer->state = own;
    }
    return own != NULL;
}

const struct wal__dialect_write_ops wal__pi_write_ops = {
    .carries =
        WAL__CARRIES(BRANCHES) | WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) |
        WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) |
        WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
        WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_NAMES) |
        WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) |
        WAL__CARRIES(PROVIDERS) | WAL__CARRIES(USAGE) | WAL__CARRIES(COSTS) |
        WAL__CARRIES(STOP_REASONS) | WAL__CARRIES(MODEL_CHANGES) |
        WAL__CARRIES(THINKING_LEVELS) | WAL__CARRIES(COMPACTIONS) |
        WAL__CARRIES(KEPT_RANGES) | WAL__CARRIES(TOKENS_BEFORE) |
        WAL__CARRIES(SUMMARIES) | WAL__CARRIES(SUMMARY_SOURCES) |
        WAL__CARRIES(LABELS) | WAL__CARRIES(TITLES) | WAL__CARRIES(CUSTOM) |
        WAL__CARRIES(META) | WAL__CARRIES(META_NAMES) | WAL__CARRIES(LINES) |
        WAL__CARRIES(PARENTS),
    .merges_parts = true,
    .links_starter = true,
    .path = pi_path,
    .is_id = pi_is_id,
    .make_id = pi_make_id,
    .ids_may_collide = true,
    .begin = pi_begin,
    .clone = pi_clone,
    .item = pi_item,
    .head = pi_head,
};
