/*
 * sdk.c - sdk and spec11: sessions that are directories with metadata.json, messages.jsonl and
 * transcript.jsonl.
 *
 * A line is {uuid, timestamp, ...}; its parent is the previous line. The directory identifies such
 * a session; a single line does not.
 *
 * metadata.json is the header; it is written last because it has counts. A line of messages.jsonl
 * is a message, with its fields at the top level or in `message`: its texts as one string, its
 * calls in tool_calls. If a text follows a call, content is an array of blocks instead, which keeps
 * the order. transcript.jsonl has the same conversation as events; its lines are items of kind LINE
 * on no branch.
 *
 * Invariant: every line moves the head of its stream. A message that has its id in the log can be
 * written unchanged. Each written line ends in a newline.
 *
 * Threads: one thread at a time per reader and per writer.
 */
#include "convert/model/dialect.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_write.h"
#include "format/json/json_text.h"

/* --- reading ------------------------------------------------------------- */

/* Returns the last component of a path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Files of a checkpoint may have any name, for example metadata.json. */
static bool is_checkpoint_file(const char *path)
{
    return strncmp(path, "checkpoints/", 12) == 0 || strstr(path, "/checkpoints/") != NULL;
}

static bool sdk_stream(const char *path, uint32_t *stream)
{
    const char *name = base_name(path);

    if (is_checkpoint_file(path)) {
        return false;
    }
    if (strcmp(name, "messages.jsonl") == 0) {
        *stream = 0;
        return true;
    }
    if (strcmp(name, "transcript.jsonl") == 0) {
        *stream = 1;
        return true;
    }
    return false;
}

/* --- metadata ------------------------------------------------------------ */

static const struct wal__field metadata_fields[] = {
    {"session_id", .at = WAL__SESSION_AT(id)},
    {"id", .at = WAL__SESSION_AT(id)},
    {"cwd", .at = WAL__SESSION_AT(cwd)},
    {"created_at", .at = WAL__SESSION_AT(time)},
    {"updated_at", .at = WAL__SESSION_AT(updated)},
    {"model", .at = WAL__SESSION_AT(model)},
    {"agent_name", .at = WAL__SESSION_AT(agent)},
    {"exit_reason", .at = WAL__SESSION_AT(exit_reason)},
    {"parent_id", .at = WAL__SESSION_AT(parent)},
    {"parent_session_id", .at = WAL__SESSION_AT(parent)},
    {"project_hash", .at = WAL__SESSION_AT(project)},
    {"title", .at = WAL__SESSION_AT(title)},
    {.key = NULL},
};

struct metadata_search {
    struct wal__model_reader *reader;
    bool is_found;
    bool has_stopped;
};

static bool emit_metadata(void *ctx, const char *key, struct wal__json_span value)
{
    struct metadata_search *search = ctx;
    struct wal__entry entry = {.item = {.kind = WAL__ITEM_HEADER},
                               .session = {.raw = value, .dialect = search->reader->dialect}};

    if (strcmp(base_name(key), "metadata.json") != 0 || is_checkpoint_file(key) ||
        wal__fields_read(value, metadata_fields, &entry, NULL) != WAL__JSON_OK) {
        return true;
    }
    entry.item.session = &entry.session;
    search->is_found = true;
    search->has_stopped = !wal__model_emit(search->reader, &entry.item);
    return false;
}

static enum wal__json_status sdk_tree(struct wal__model_reader *reader,
                                      const struct wal__model_documents *tree)
{
    struct metadata_search search = {.reader = reader};

    if (!tree->scan(tree->ctx, "", emit_metadata, &search) && !search.is_found) {
        return WAL__JSON_NO_SPACE;
    }
    return search.has_stopped ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

/* --- messages ------------------------------------------------------------ */

static const struct wal__field message_fields[] = {
    {"role", .at = WAL__ENTRY_AT(role)},
    {"content", .at = WAL__ENTRY_AT(content), .kind = WAL__FIELD_TOKEN},
    {"tool_calls", .at = WAL__ENTRY_AT(calls), .kind = WAL__FIELD_TOKEN},
    {"uuid", .kind = WAL__FIELD_KNOWN},
    {"id", .kind = WAL__FIELD_KNOWN},
    {"timestamp", .kind = WAL__FIELD_KNOWN},
    {.key = NULL},
};

static const struct wal__word roles[] = {
    {"user", .value = WAL__ROLE_USER},
    {"assistant", .value = WAL__ROLE_ASSISTANT},
    {"system", .value = WAL__ROLE_SYSTEM},
    {"developer", .value = WAL__ROLE_SYSTEM},
    {"tool",
     WAL__ROLE_TOOL,
     {{"tool_call_id", .at = WAL__ITEM_AT(call)}, {"name", .at = WAL__ITEM_AT(name)}}},
    {.name = NULL},
};

static bool emit_message(struct wal__model_reader *reader, struct wal__entry *entry,
                         struct wal__json_span message, struct wal__json_span line)
{
    struct wal__content_pieces pieces = {.arena = reader->scratch};
    struct wal__model_item *item = &entry->item;
    const struct wal__word *role;

    if (wal__word_read(message, message_fields, roles, &entry->role, entry, &item->fields, &role) !=
        WAL__JSON_OK) {
        return false;
    }
    if (role == NULL) {
        item->kind = WAL__ITEM_LINE;
        item->data = line;
        return wal__model_emit(reader, item);
    }
    item->kind = WAL__ITEM_MESSAGE;
    item->role = role->value;
    if (item->role == WAL__ROLE_USER) {
        return wal__content_split(&pieces, item, entry->content) &&
               wal__content_emit(&pieces, item->parent, reader);
    }
    return wal__content_read_item(entry->content, entry->calls, reader->scratch, item) &&
           wal__model_emit(reader, item);
}

static enum wal__json_status sdk_line(struct wal__model_reader *reader,
                                      const struct wal__model_line *line)
{
    struct wal__json_member nested = {.key = "message"};
    struct wal__entry entry = wal__entry_begin(reader, line);
    struct wal__model_item *item = &entry.item;
    enum wal__json_status status;
    bool is_done;

    status = wal__model_members(line->text, &nested, 1, NULL);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (line->is_exact) {
        item->raw = line->text;
    }
    if (line->stream != 0) {
        item->raw = line->text;
        item->is_off_branch = true;
        is_done = wal__entry_emit_line(&entry);
    } else {
        is_done = emit_message(
            reader, &entry, nested.value.kind == WAL__JSON_OBJECT ? nested.value.span : line->text,
            line->text);
    }
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

static const struct wal__dialect_read_ops sdk_read_ops = {
    .documents = sdk_tree, .line = sdk_line, .stream = sdk_stream};

/* --- writing ------------------------------------------------------------- */

struct counts {
    int64_t messages;
    int64_t turns; /* messages of users */
};

static const char *file_path(const struct wal__model_session *session, const char *above,
                             const char *name, struct wal__arena *arena)
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

static const char *sdk_path(const struct wal__model_session *session, uint32_t stream,
                            struct wal__arena *arena)
{
    return file_path(session, "", stream_name(stream), arena);
}

static const char *spec11_path(const struct wal__model_session *session, uint32_t stream,
                               struct wal__arena *arena)
{
    return file_path(session, "sessions/", stream_name(stream), arena);
}

static bool sdk_begin(struct wal__model_writer *writer)
{
    return wal__model_write_stream(writer, 0);
}

/* --- messages ------------------------------------------------------------ */

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

static void write_call(struct wal__json_out *out, const struct wal__model_block *block)
{
    wal__model_print(out, "{'id':%,'type':'function','function':{'name':%,'arguments':$}}",
                     wal__model_or(block->id, "\"\""), wal__model_or(block->name, "\"\""),
                     wal__model_or(block->arguments, "{}"));
}

static void write_calls(struct wal__json_out *out, const struct wal__model_item *item)
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

static void write_message(struct wal__json_out *out, const struct wal__model_item *item)
{
    static const struct wal__block_form form = {
        .text = "text", .call = "tool_use", .arguments = "input"};

    wal__model_print(out, "{'uuid':%,'timestamp':@,'role':$", item->id, item->time,
                     wal__model_literal(wal__role_names[item->role]));
    if (item->role == WAL__ROLE_TOOL) {
        wal__json_out_member(out, "tool_call_id", wal__model_or(item->call, "\"\""));
    }
    if (is_text_then_calls(item)) {
        wal__content_write_texts(out, "content", item->blocks, item->block_count, "\n", true);
        write_calls(out, item);
    } else {
        wal__content_write_blocks(out, "content", &form, item->blocks, item->block_count);
    }
    wal__json_out_close_line(out);
}

static bool sdk_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__json_override uuid = {"uuid", item->id};
    struct counts *counts = writer->state;
    struct wal__json_out *out = &writer->out;

    if (!wal__model_write_stream(writer, item->stream)) {
        return false;
    }
    if (item->stream == 0) {
        counts->messages++;
        counts->turns += item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_USER;
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

/* --- metadata ------------------------------------------------------------ */

/* Writes the metadata that was read, with the present id; false: there is none in this dialect. */
static bool write_raw(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    bool is_spec11 = wal__dialect_is(writer->dialect, "spec11");
    const char *key = is_spec11 ? "id" : "session_id";
    struct wal__json_span id = wal__model_string(session->raw, key);
    const struct wal__json_override override = {key, session->id};

    if (session->raw.size == 0 || session->dialect != writer->dialect) {
        return false;
    }
    if (id.size == 0 || wal__json_characters_equal(id, session->id)) {
        wal__json_out_bytes(&writer->out, session->raw.data, session->raw.size);
    } else {
        wal__json_out_overridden(&writer->out, session->raw, &override, 1);
    }
    return true;
}

/* Writes the project: a hash of its directory, unless it is known. */
static void write_project(struct wal__json_out *out, const struct wal__model_session *session)
{
    char text[18];
    uint64_t hash = wal__model_string_hash(0, wal__model_or(session->cwd, "\"/\""));

    if (session->project.size > 2) {
        wal__json_out_member(out, "project_hash", session->project);
        return;
    }
    for (size_t i = 0; i < 16; i++) {
        text[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 0xF];
    }
    wal__json_out_member_text(out, "project_hash",
                              (struct wal__json_span){(const uint8_t *)text, 16});
}

static void write_sdk(struct wal__json_out *out, const struct wal__model_session *session,
                      const struct counts *counts)
{
    wal__model_print(out, "'session_id':%,'created_at':@,'model':%,'cwd':%", session->id,
                     session->time, wal__model_or(session->model, "\"\""),
                     wal__model_or(session->cwd, "\"\""));
    wal__json_out_member_int(out, "turn_count", counts->turns);
    wal__model_print(out, "'total_cost_usd':0,'exit_reason':%,'agent_name':%",
                     wal__model_or(session->exit_reason, "\"\""),
                     wal__model_or(session->agent, "\"\""));
}

static void write_spec11(struct wal__json_out *out, const struct wal__model_session *session,
                         const struct counts *counts)
{
    wal__json_out_member(out, "id", session->id);
    write_project(out, session);
    wal__model_print(out, "'cwd':%,'model':%,'created_at':@,'updated_at':@",
                     wal__model_or(session->cwd, "\"\""), wal__model_or(session->model, "\"\""),
                     session->time, session->updated.size > 0 ? session->updated : session->time);
    wal__json_out_member_int(out, "message_count", counts->messages);
    wal__json_out_member_int(out, "turn_count", counts->turns);
    wal__model_print(out, "'total_tokens':0,'exit_reason':?,'parent_id':?,'agent_name':?",
                     session->exit_reason, session->parent, session->agent);
}

static bool sdk_end(struct wal__model_writer *writer)
{
    bool is_spec11 = wal__dialect_is(writer->dialect, "spec11");
    const char *path =
        file_path(writer->session, is_spec11 ? "sessions/" : "", "metadata.json", writer->scratch);
    struct wal__json_out *out = &writer->out;

    if (path == NULL || !wal__model_write_file(writer, path, WAL__OUTPUT_DOCUMENT)) {
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

#define SDK_CARRIES \
    (WAL__CARRIES(STREAMS) | WAL__CARRIES(TIMES) | WAL__CARRIES(EMPTY) | WAL__CARRIES(SURROGATES))

static const struct wal__dialect_write_ops sdk_write_ops = {
    .carries = SDK_CARRIES,
    .merges_parts = true,
    .path = sdk_path,
    .begin = sdk_begin,
    .item = sdk_item,
    .end = sdk_end,
    .state_size = sizeof(struct counts),
};

static const struct wal__dialect_write_ops spec11_write_ops = {
    .carries = SDK_CARRIES | WAL__CARRIES(PARENTS),
    .merges_parts = true,
    .path = spec11_path,
    .begin = sdk_begin,
    .item = sdk_item,
    .end = sdk_end,
    .state_size = sizeof(struct counts),
};

/* --- the dialects -------------------------------------------------------- */

static const struct wal__field line_fields[] = {
    {"uuid", .at = WAL__LINE_AT(id)},
    {"id", .at = WAL__LINE_AT(id)},
    {"type", .at = WAL__LINE_AT(type)},
    {"timestamp", .at = WAL__LINE_AT(time)},
    {"role", .at = WAL__LINE_AT(is_message), .kind = WAL__FIELD_IS_STRING},
    {"role", .parent = "message", .at = WAL__LINE_AT(is_message), .kind = WAL__FIELD_IS_STRING},
    {.key = NULL},
};

const struct wal__dialect wal__dialect_sdk = {
    .name = "sdk",
    .summary = "session directories: metadata.json, messages.jsonl",
    .line_fields = line_fields,
    .line_size = sizeof(struct wal__line_info),
    .read_ops = &sdk_read_ops,
    .write_ops = &sdk_write_ops,
};

const struct wal__dialect wal__dialect_spec11 = {
    .name = "spec11",
    .summary = "sessions/ID directories of a project, with its hash",
    .line_fields = line_fields,
    .line_size = sizeof(struct wal__line_info),
    .read_ops = &sdk_read_ops,
    .write_ops = &spec11_write_ops,
};
