/*
 * entries_write.c - writes session entries, a session_header first.
 *
 * An item is an entry. Its payload has the keys of pi. Items without a type of
 * entry become entries of type `custom`; their customType begins with
 * "walconv.".
 *
 * Invariant: the first line is the header; it is the parent of roots.
 *
 * Threads: one thread at a time per writer.
 */
#include "format/model/content_write.h"
#include "format/model/model_member.h"
#include "format/model/model_path.h"
#include "format/model/model_timestamp.h"
#include "format/model/model_write.h"

static const char *entries_path(const struct wal__model_session *session,
                                uint32_t stream, struct wal__arena *arena)
{
    struct wal__model_path path;

    (void)stream;
    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "sessions/");
    wal__model_path_add_id(&path, session->id);
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

/* Opens an entry and its payload. */
static void open_entry(struct wal__json_out *out, const char *type,
                       const struct wal__model_item *item)
{
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", item->id);
    wal__json_out_optional(out, "parentId", item->parent);
    wal__json_out_member_str(out, "type", type);
    wal__model_write_time(out, "timestamp", item->time);
    wal__json_out_member_open(out, "payload", '{');
}

static void close_entry(struct wal__json_out *out,
                        const struct wal__model_item *item)
{
    wal__json_out_close(out, '}');
    if (item->is_sidechain) {
        wal__json_out_member_open(out, "meta", '{');
        wal__json_out_member_bool(out, "isSidechain", true);
        wal__json_out_close(out, '}');
    }
    wal__json_out_close_line(out);
}

static bool entries_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    struct wal__model_item item = {.id = session->id, .time = session->time};
    const char *path = entries_path(session, 0, writer->scratch);

    struct wal__json_span *header =
        wal__arena_calloc(writer->arena, sizeof(*header));

    if (header == NULL || path == NULL ||
        !wal__model_write_file(writer, path, false)) {
        return false;
    }
    *header = session->id;
    writer->state = header;
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        struct wal__json_member id = {.key = "id"};
        if (wal__model_members(session->raw, &id, 1, NULL) != WAL__JSON_OK) {
            return false;
        }
        *header = wal__member_string(&id);
        wal__json_out_line(out, session->raw);
        return true;
    }
    open_entry(out, "session_header", &item);
    wal__json_out_member_int(out, "version", 1);
    wal__json_out_member(out, "sessionId", session->id);
    wal__json_out_optional(out, "cwd", session->cwd);
    wal__json_out_optional(out, "parentSession", session->parent);
    wal__json_out_optional(out, "title", session->title);
    wal__json_out_optional(out, "provider", session->provider);
    wal__json_out_optional(out, "model", session->model);
    wal__json_out_optional(out, "thinkingLevel", session->thinking_level);
    close_entry(out, &item);
    return true;
}

static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    if (block->data.size > 0) {
        wal__json_out_member_text(out, "data", block->data);
    }
    if (block->media.size > 0) {
        wal__json_out_member_text(out, "mimeType", block->media);
    }
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
        .omits_empty = true,
        .image = write_image,
    };
    bool has_raw = false;

    wal__content_write_blocks(out, "content", &form, item->blocks,
                              item->block_count);
    for (size_t i = 0; i < item->block_count; i++) {
        has_raw |= item->blocks[i].kind == WAL__BLOCK_RAW;
    }
    if (has_raw) {
        wal__json_out_member_str(out, "blocksOf", item->dialect->name);
    }
}

static void write_usage(struct wal__json_out *out,
                        const struct wal__model_usage *usage)
{
    if (usage->input.size + usage->output.size + usage->cache_read.size +
            usage->cache_write.size + usage->reasoning.size +
            usage->cost.size ==
        0) {
        return;
    }
    wal__json_out_member_open(out, "usage", '{');
    wal__json_out_optional(out, "input", usage->input);
    wal__json_out_optional(out, "output", usage->output);
    wal__json_out_optional(out, "cacheRead", usage->cache_read);
    wal__json_out_optional(out, "cacheWrite", usage->cache_write);
    wal__json_out_optional(out, "reasoning", usage->reasoning);
    wal__json_out_optional(out, "cost", usage->cost);
    wal__json_out_close(out, '}');
}

static const char *stop_name(enum wal__stop_reason stop)
{
    switch (stop) {
    case WAL__STOP_NONE:
    case WAL__STOP_OTHER:
        break;
    case WAL__STOP_END:
        return "end";
    case WAL__STOP_LENGTH:
        return "length";
    case WAL__STOP_TOOL:
        return "toolUse";
    case WAL__STOP_SEQUENCE:
        return "stop_sequence";
    case WAL__STOP_REFUSAL:
        return "refusal";
    case WAL__STOP_ERROR:
        return "error";
    case WAL__STOP_ABORTED:
        return "aborted";
    }
    return NULL;
}

static void write_message(struct wal__json_out *out,
                          const struct wal__model_item *item)
{
    static const char *const roles[] = {
        [WAL__ROLE_USER] = "user",
        [WAL__ROLE_ASSISTANT] = "assistant",
        [WAL__ROLE_SYSTEM] = "system",
        [WAL__ROLE_TOOL] = "tool",
    };
    const char *stop = stop_name(item->stop);

    open_entry(out, "message", item);
    wal__json_out_member_str(out, "role", roles[item->role]);
    if (item->role == WAL__ROLE_TOOL) {
        wal__json_out_optional(out, "toolCallId", item->call);
        wal__json_out_optional(out, "toolName", item->name);
        wal__json_out_member_bool(out, "isError", item->is_error);
    } else if (item->is_meta) {
        wal__json_out_member_bool(out, "isMeta", true);
        wal__json_out_optional(out, "name", item->name);
    }
    write_content(out, item);
    if (item->role == WAL__ROLE_ASSISTANT) {
        wal__json_out_optional(out, "id", item->answer_id);
        wal__json_out_optional(out, "provider", item->provider);
        wal__json_out_optional(out, "model", item->model);
        write_usage(out, &item->usage);
        if (stop != NULL) {
            wal__json_out_member_str(out, "stopReason", stop);
        }
    }
    close_entry(out, item);
}

static void write_foreign(struct wal__json_out *out,
                          const struct wal__model_item *item)
{
    open_entry(out, "custom", item);
    wal__json_out_member_str(out, "customType", "walconv.line");
    wal__json_out_member_str(out, "dialect", item->dialect->name);
    if (item->is_off_branch) {
        wal__json_out_member_bool(out, "aside", true);
    }
    wal__json_out_member(out, "line", item->data);
    close_entry(out, item);
}

static void write_line(struct wal__json_out *out,
                       const struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    const struct wal__json_override ids[] = {
        {"id", item->id},
        {"parentId", item->parent},
    };

    if (item->dialect != writer->dialect ||
        !wal__model_has_entry_ids(item->data)) {
        write_foreign(out, item);
        return;
    }
    wal__json_out_overridden(out, item->data, ids, 2);
    wal__json_out_newline(out);
}

static void write_compaction(struct wal__json_out *out,
                             const struct wal__model_item *item)
{
    open_entry(out, "compaction_summary", item);
    wal__json_out_member(out, "summary", wal__model_or(item->text, "\"\""));
    wal__json_out_member(out, "firstKeptEntryId",
                         item->target.size > 0 ? item->target : item->id);
    wal__json_out_optional(out, "tokensBefore", item->tokens);
    close_entry(out, item);
}

/* Writes an entry of a type with one or two specific members. */
static void write_simple_entry(struct wal__json_out *out, const char *type,
                               const struct wal__model_item *item,
                               const char *key, struct wal__json_span value,
                               const char *other_key,
                               struct wal__json_span other)
{
    open_entry(out, type, item);
    wal__json_out_optional(out, key, value);
    wal__json_out_optional(out, other_key, other);
    close_entry(out, item);
}

static void write_item(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    struct wal__json_out *out = &writer->out;

    switch (item->kind) {
    case WAL__ITEM_HEADER:
    case WAL__ITEM_HEAD:
        break;
    case WAL__ITEM_MESSAGE:
        write_message(out, item);
        break;
    case WAL__ITEM_MODEL_CHANGE:
        write_simple_entry(out, "model_change", item, "provider",
                           item->provider, "modelId", item->model);
        break;
    case WAL__ITEM_THINKING_LEVEL:
        write_simple_entry(out, "thinking_level_change", item, "thinkingLevel",
                           item->text, "", item->target);
        break;
    case WAL__ITEM_COMPACTION:
        write_compaction(out, item);
        break;
    case WAL__ITEM_BRANCH_SUMMARY:
        open_entry(out, "branch_summary", item);
        wal__json_out_member(out, "sourceSessionId", writer->session->id);
        wal__json_out_optional(out, "sourceEntryId", item->target);
        wal__json_out_optional(out, "summary", item->text);
        close_entry(out, item);
        break;
    case WAL__ITEM_LABEL:
        write_simple_entry(out, "label", item, "targetEntryId", item->target,
                           "label", item->text);
        break;
    case WAL__ITEM_TITLE:
        write_simple_entry(out, "session_info", item, "name", item->text, "",
                           item->target);
        break;
    case WAL__ITEM_CUSTOM:
        write_simple_entry(out, "custom", item, "customType", item->name,
                           "data", item->data);
        break;
    case WAL__ITEM_LINE:
        write_line(out, writer, item);
        break;
    }
}

static bool entries_item(struct wal__model_writer *writer,
                         const struct wal__model_item *item)
{
    const struct wal__json_span *header = writer->state;
    struct wal__model_item rooted = *item;

    if (item->raw.size > 0) {
        wal__json_out_line(&writer->out, item->raw);
        return true;
    }
    if (item->parent.size == 0) {
        rooted.parent = *header;
    }
    write_item(writer, &rooted);
    return true;
}

/* Writes an entry under the head: readers take the last entry for the head. */
static bool entries_head(struct wal__model_writer *writer,
                         struct wal__json_span id)
{
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2] = {wal__model_string_hash(3, id), writer->items};
    struct wal__model_item item = {.parent = id, .time = writer->session->time};

    item.id = (struct wal__json_span){(const uint8_t *)text,
                                      wal__model_uuid(hash, text)};
    open_entry(&writer->out, "custom", &item);
    wal__json_out_member_str(&writer->out, "customType", "walconv.head");
    close_entry(&writer->out, &item);
    return true;
}

const struct wal__dialect_write_ops wal__entries_write_ops = {
    .carries = ~(WAL__CARRIES(STREAMS) | WAL__CARRIES(FIELDS) |
                 WAL__CARRIES(DAMAGED) | WAL__CARRIES(REDACTED)),
    .header_is_entry = true,
    .tip_advances_to_child = true,
    .path = entries_path,
    .begin = entries_begin,
    .item = entries_item,
    .head = entries_head,
};
