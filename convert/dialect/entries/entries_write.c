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
#include "convert/dialect/entries/entries_vocabulary.h"
#include "convert/model/content_write.h"
#include "convert/model/model_member.h"
#include "convert/model/model_path.h"
#include "convert/model/model_write.h"
#include "format/payload/timestamp.h"

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
    const struct wal__word *type =
        wal__word_of(wal__entries_types, WAL__ITEM_HEADER);
    const struct wal__entry entry = {.session = *session};
    struct wal__json_span *header =
        wal__arena_calloc(writer->arena, sizeof(*header));

    if (header == NULL || path == NULL ||
        !wal__model_write_file(writer, path, WAL__OUTPUT_LINES)) {
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
    open_entry(out, type->name, &item);
    wal__json_out_member_int(out, "version", 1);
    wal__fields_write(out, type->fields, &entry);
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
    wal__fields_write(out, wal__entries_usage, usage);
    wal__json_out_close(out, '}');
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
    const struct wal__word *stop = wal__word_of(wal__entries_stops, item->stop);

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
            wal__json_out_member_str(out, "stopReason", stop->name);
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

/* Writes an entry whose members are fields of the item. */
static void write_fields(const struct wal__model_writer *writer,
                         struct wal__json_out *out, struct wal__model_item item)
{
    const struct wal__word *type = wal__word_of(wal__entries_types, item.kind);

    open_entry(out, type->name, &item);
    if (item.kind == WAL__ITEM_BRANCH_SUMMARY) {
        wal__json_out_member(out, "sourceSessionId", writer->session->id);
    }
    if (item.kind == WAL__ITEM_COMPACTION && item.target.size == 0) {
        item.target = item.id; /* nothing is kept */
    }
    wal__fields_write(out, type->fields, &item);
    close_entry(out, &item);
}

static bool entries_item(struct wal__model_writer *writer,
                         const struct wal__model_item *item)
{
    const struct wal__json_span *header = writer->state;
    struct wal__json_out *out = &writer->out;
    struct wal__model_item rooted = *item;

    if (item->parent.size == 0) {
        rooted.parent = *header;
    }
    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(out, &rooted);
    } else if (item->kind == WAL__ITEM_LINE) {
        write_line(out, writer, &rooted);
    } else {
        write_fields(writer, out, rooted);
    }
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
