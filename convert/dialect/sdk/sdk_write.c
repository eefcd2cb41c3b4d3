/*
 * sdk_write.c - writes session directories of sdk and spec11.
 *
 * A message is a line of messages.jsonl: its texts as one string, its calls in
 * tool_calls. If a text follows a call, content is an array of blocks instead,
 * which keeps the order. metadata.json is written last because it has counts.
 *
 * Invariant: each line ends in a newline.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/model/content_write.h"
#include "convert/model/model_member.h"
#include "convert/model/model_path.h"
#include "convert/model/model_write.h"
#include "format/json/json_character.h"

struct counts {
    int64_t messages;
    int64_t turns; /* messages of users */
};

static const char *file_path(const struct wal__model_session *session,
                             const char *above, const char *name,
                             struct wal__arena *arena)
{
    struct wal__model_path path;

    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, above);
    wal__model_path_add_id(&path, session->id);
    wal__model_path_add(&path, "/");
    wal__model_path_add(&path, name);
    return path.text;
}

static const char *stream_name(uint32_t stream)
{
    return stream == 0 ? "messages.jsonl" : "transcript.jsonl";
}

static const char *sdk_path(const struct wal__model_session *session,
                            uint32_t stream, struct wal__arena *arena)
{
    return file_path(session, "", stream_name(stream), arena);
}

static const char *spec11_path(const struct wal__model_session *session,
                               uint32_t stream, struct wal__arena *arena)
{
    return file_path(session, "sessions/", stream_name(stream), arena);
}

static bool select_stream_file(struct wal__model_writer *writer,
                               uint32_t stream)
{
    const char *path = writer->dialect->write_ops->path(writer->session, stream,
                                                        writer->scratch);

    return path != NULL &&
           wal__model_write_file(writer, path, WAL__OUTPUT_LINES);
}

static bool sdk_begin(struct wal__model_writer *writer)
{
    writer->state = wal__arena_calloc(writer->arena, sizeof(struct counts));
    return writer->state != NULL && select_stream_file(writer, 0);
}

/* ---------------------------------------------------------- messages --- */

/* Whether no text follows a call: a string and tool_calls keep the order. */
static bool is_text_then_calls(const struct wal__model_item *item)
{
    bool has_call = false;

    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        if (block->kind == WAL__BLOCK_TOOL_CALL) {
            has_call = true;
        } else if (block->kind != WAL__BLOCK_TEXT || has_call) {
            return false;
        }
    }
    return true;
}

static void write_call(struct wal__json_out *out,
                       const struct wal__model_block *block)
{
    struct wal__json_span arguments = wal__model_or(block->arguments, "{}");

    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", wal__model_or(block->id, "\"\""));
    wal__json_out_member_str(out, "type", "function");
    wal__json_out_member_open(out, "function", '{');
    wal__json_out_member(out, "name", wal__model_or(block->name, "\"\""));
    wal__json_out_member_text(out, "arguments", arguments);
    wal__json_out_close(out, '}');
    wal__json_out_close(out, '}');
}

static void write_calls(struct wal__json_out *out,
                        const struct wal__model_item *item)
{
    bool is_open = false;

    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind != WAL__BLOCK_TOOL_CALL) {
            continue;
        }
        if (!is_open) {
            wal__json_out_member_open(out, "tool_calls", '[');
            is_open = true;
        }
        write_call(out, &item->blocks[i]);
    }
    if (is_open) {
        wal__json_out_close(out, ']');
    }
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
    static const struct wal__block_form form = {
        .text = "text", .call = "tool_use", .arguments = "input"};

    wal__json_out_open(out, '{');
    wal__json_out_member(out, "uuid", item->id);
    wal__model_write_time(out, "timestamp", item->time);
    wal__json_out_member_str(out, "role", roles[item->role]);
    if (item->role == WAL__ROLE_TOOL) {
        wal__json_out_member(out, "tool_call_id",
                             wal__model_or(item->call, "\"\""));
    }
    if (is_text_then_calls(item)) {
        wal__content_write_texts(out, "content", item->blocks,
                                 item->block_count, "\n", true);
        write_calls(out, item);
    } else {
        wal__content_write_blocks(out, "content", &form, item->blocks,
                                  item->block_count);
    }
    wal__json_out_close_line(out);
}

static bool sdk_item(struct wal__model_writer *writer,
                     const struct wal__model_item *item)
{
    const struct wal__json_override uuid = {"uuid", item->id};
    struct counts *counts = writer->state;
    struct wal__json_out *out = &writer->out;

    if (!select_stream_file(writer, item->stream)) {
        return false;
    }
    if (item->stream == 0) {
        counts->messages++;
        counts->turns +=
            item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_USER;
    }
    if (item->raw.size > 0) {
        wal__json_out_line(out, item->raw);
    } else if (item->kind == WAL__ITEM_LINE) {
        wal__json_out_overridden(out, item->data, &uuid, 1);
        wal__json_out_newline(out);
    } else {
        write_message(out, item);
    }
    return true;
}

/* ---------------------------------------------------------- metadata --- */

/* Writes the metadata that was read, with the present id; false: there is none
 * in this dialect. */
static bool write_raw(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    bool is_spec11 = wal__dialect_is(writer->dialect, "spec11");
    const char *key = is_spec11 ? "id" : "session_id";
    struct wal__json_member id = {.key = key};
    const struct wal__json_override override = {key, session->id};

    if (session->raw.size == 0 || session->dialect != writer->dialect ||
        wal__model_members(session->raw, &id, 1, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (wal__member_string(&id).size == 0 ||
        wal__json_characters_equal(id.value.span, session->id)) {
        wal__json_out_bytes(&writer->out, session->raw.data, session->raw.size);
    } else {
        wal__json_out_overridden(&writer->out, session->raw, &override, 1);
    }
    return true;
}

/* Writes the project: a hash of its directory, unless it is known. */
static void write_project(struct wal__json_out *out,
                          const struct wal__model_session *session)
{
    char text[18];
    uint64_t hash =
        wal__model_string_hash(0, wal__model_or(session->cwd, "\"/\""));

    if (session->project.size > 2) {
        wal__json_out_member(out, "project_hash", session->project);
        return;
    }
    for (size_t i = 0; i < 16; i++) {
        text[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 0xF];
    }
    wal__json_out_member_text(
        out, "project_hash",
        (struct wal__json_span){(const uint8_t *)text, 16});
}

static void write_sdk(struct wal__json_out *out,
                      const struct wal__model_session *session,
                      const struct counts *counts)
{
    wal__json_out_member(out, "session_id", session->id);
    wal__model_write_time(out, "created_at", session->time);
    wal__json_out_member(out, "model", wal__model_or(session->model, "\"\""));
    wal__json_out_member(out, "cwd", wal__model_or(session->cwd, "\"\""));
    wal__json_out_member_int(out, "turn_count", counts->turns);
    wal__json_out_member_int(out, "total_cost_usd", 0);
    wal__json_out_member(out, "exit_reason",
                         wal__model_or(session->exit_reason, "\"\""));
    wal__json_out_member(out, "agent_name",
                         wal__model_or(session->agent, "\"\""));
}

static void write_spec11(struct wal__json_out *out,
                         const struct wal__model_session *session,
                         const struct counts *counts)
{
    wal__json_out_member(out, "id", session->id);
    write_project(out, session);
    wal__json_out_member(out, "cwd", wal__model_or(session->cwd, "\"\""));
    wal__json_out_member(out, "model", wal__model_or(session->model, "\"\""));
    wal__model_write_time(out, "created_at", session->time);
    wal__model_write_time(out, "updated_at",
                          session->updated.size > 0 ? session->updated
                                                    : session->time);
    wal__json_out_member_int(out, "message_count", counts->messages);
    wal__json_out_member_int(out, "turn_count", counts->turns);
    wal__json_out_member_int(out, "total_tokens", 0);
    wal__json_out_optional(out, "exit_reason", session->exit_reason);
    wal__json_out_optional(out, "parent_id", session->parent);
    wal__json_out_optional(out, "agent_name", session->agent);
}

static bool sdk_end(struct wal__model_writer *writer)
{
    bool is_spec11 = wal__dialect_is(writer->dialect, "spec11");
    const char *path = file_path(writer->session, is_spec11 ? "sessions/" : "",
                                 "metadata.json", writer->scratch);
    struct wal__json_out *out = &writer->out;

    if (path == NULL ||
        !wal__model_write_file(writer, path, WAL__OUTPUT_DOCUMENT)) {
        return false;
    }
    if (write_raw(writer)) {
        return true;
    }
    wal__json_out_open(out, '{');
    if (is_spec11) {
        write_spec11(out, writer->session, writer->state);
    } else {
        write_sdk(out, writer->session, writer->state);
    }
    wal__json_out_close_line(out);
    return true;
}

static bool sdk_clone(struct wal__model_writer *writer)
{
    struct counts *clone = wal__arena_alloc(writer->arena, sizeof(*clone));

    if (clone != NULL) {
        *clone = *(const struct counts *)writer->state;
        writer->state = clone;
    }
    return clone != NULL;
}

#define SDK_CARRIES \
    (WAL__CARRIES(STREAMS) | WAL__CARRIES(TIMES) | WAL__CARRIES(EMPTY))

const struct wal__dialect_write_ops wal__sdk_write_ops = {
    .carries = SDK_CARRIES,
    .merges_parts = true,
    .path = sdk_path,
    .begin = sdk_begin,
    .item = sdk_item,
    .end = sdk_end,
    .clone = sdk_clone,
};

const struct wal__dialect_write_ops wal__spec11_write_ops = {
    .carries = SDK_CARRIES | WAL__CARRIES(PARENTS),
    .merges_parts = true,
    .path = spec11_path,
    .begin = sdk_begin,
    .item = sdk_item,
    .end = sdk_end,
    .clone = sdk_clone,
};
