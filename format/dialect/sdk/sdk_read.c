/*
 * sdk_read.c - converts session directories of sdk and spec11 to items.
 *
 * metadata.json is the header. A line of messages.jsonl is a message, with its
 * fields at the top level or in `message`. transcript.jsonl has the same
 * conversation as events; its lines are items of kind LINE on no branch.
 *
 * Invariant: a message that has its id in the log can be written unchanged.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "format/model/dialect.h"
#include "format/model/model_content.h"

/* Returns the last component of a path. */
static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? slash + 1 : path;
}

/* Files of a checkpoint may have any name, for example metadata.json. */
static bool is_checkpoint_file(const char *path)
{
    return strncmp(path, "checkpoints/", 12) == 0 ||
           strstr(path, "/checkpoints/") != NULL;
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

/* ---------------------------------------------------------- metadata --- */

enum {
    D_ID,
    D_SESSION_ID,
    D_CWD,
    D_CREATED,
    D_UPDATED,
    D_MODEL,
    D_AGENT,
    D_EXIT,
    D_PARENT,
    D_PARENT_SESSION,
    D_PROJECT,
    D_TITLE,
    D_COUNT
};

static const struct wal__json_member metadata_wanted[D_COUNT] = {
    [D_ID] = {.key = "id"},
    [D_SESSION_ID] = {.key = "session_id"},
    [D_CWD] = {.key = "cwd"},
    [D_CREATED] = {.key = "created_at"},
    [D_UPDATED] = {.key = "updated_at"},
    [D_MODEL] = {.key = "model"},
    [D_AGENT] = {.key = "agent_name"},
    [D_EXIT] = {.key = "exit_reason"},
    [D_PARENT] = {.key = "parent_id"},
    [D_PARENT_SESSION] = {.key = "parent_session_id"},
    [D_PROJECT] = {.key = "project_hash"},
    [D_TITLE] = {.key = "title"},
};

static struct wal__json_span
first_string(const struct wal__json_member *members, size_t key, size_t other)
{
    struct wal__json_span span = wal__member_string(&members[key]);

    return span.size > 0 ? span : wal__member_string(&members[other]);
}

struct metadata_search {
    struct wal__model_reader *reader;
    bool is_found;
    bool has_stopped;
};

static bool emit_metadata(void *ctx, const char *key,
                          struct wal__json_span value)
{
    struct metadata_search *search = ctx;
    struct wal__json_member members[D_COUNT];
    struct wal__model_session session = {.raw = value};
    struct wal__model_item item = {.kind = WAL__ITEM_HEADER,
                                   .session = &session};

    if (strcmp(base_name(key), "metadata.json") != 0 ||
        is_checkpoint_file(key)) {
        return true;
    }
    memcpy(members, metadata_wanted, sizeof(members));
    if (wal__model_members(value, members, D_COUNT, NULL) != WAL__JSON_OK) {
        return true;
    }
    session.id = first_string(members, D_SESSION_ID, D_ID);
    session.cwd = wal__member_string(&members[D_CWD]);
    session.time = wal__member_string(&members[D_CREATED]);
    session.updated = wal__member_string(&members[D_UPDATED]);
    session.model = wal__member_string(&members[D_MODEL]);
    session.agent = wal__member_string(&members[D_AGENT]);
    session.exit_reason = wal__member_string(&members[D_EXIT]);
    session.parent = first_string(members, D_PARENT, D_PARENT_SESSION);
    session.project = wal__member_string(&members[D_PROJECT]);
    session.title = wal__member_string(&members[D_TITLE]);
    session.dialect = search->reader->dialect;
    search->is_found = true;
    search->has_stopped = !wal__model_emit(search->reader, &item);
    return false;
}

static enum wal__json_status sdk_tree(struct wal__model_reader *reader,
                                      const struct wal__model_documents *tree)
{
    struct metadata_search search = {.reader = reader};

    if (!tree->scan(tree->ctx, "", emit_metadata, &search) &&
        !search.is_found) {
        return WAL__JSON_NO_SPACE;
    }
    return search.has_stopped ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

/* ---------------------------------------------------------- messages --- */

enum {
    M_ROLE,
    M_CONTENT,
    M_CALLS,
    M_CALL,
    M_NAME,
    M_UUID,
    M_ID,
    M_TIME,
    M_COUNT
};

static const struct wal__json_member message_wanted[M_COUNT] = {
    [M_ROLE] = {.key = "role"},
    [M_CONTENT] = {.key = "content"},
    [M_CALLS] = {.key = "tool_calls"},
    [M_CALL] = {.key = "tool_call_id"},
    [M_NAME] = {.key = "name"},
    [M_UUID] = {.key = "uuid"},
    [M_ID] = {.key = "id"},
    [M_TIME] = {.key = "timestamp"},
};

static bool emit_plain(struct wal__model_reader *reader,
                       struct wal__model_item *item,
                       const struct wal__json_member *members)
{
    struct wal__model_blocks blocks = {.arena = reader->scratch};

    if (!wal__content_read(members[M_CONTENT].value, &blocks, &item->fields) ||
        !wal__content_read_calls(members[M_CALLS].value, &blocks)) {
        return false;
    }
    item->blocks = blocks.items;
    item->block_count = blocks.count;
    return wal__model_emit(reader, item);
}

static bool emit_message(struct wal__model_reader *reader,
                         struct wal__model_item *item,
                         struct wal__json_span message,
                         struct wal__json_span line)
{
    struct wal__content_pieces pieces = {.arena = reader->scratch};
    struct wal__json_member members[M_COUNT];
    struct wal__json_span role;

    memcpy(members, message_wanted, sizeof(members));
    if (wal__model_members(message, members, M_COUNT, &item->fields) !=
        WAL__JSON_OK) {
        return false;
    }
    role = wal__member_string(&members[M_ROLE]);
    item->kind = WAL__ITEM_MESSAGE;
    if (wal__model_text_is(role, "user")) {
        return wal__content_split(&pieces, item, members[M_CONTENT].value) &&
               wal__content_emit(&pieces, item->parent, reader);
    }
    if (wal__model_text_is(role, "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
    } else if (wal__model_text_is(role, "system") ||
               wal__model_text_is(role, "developer")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__model_text_is(role, "tool")) {
        item->role = WAL__ROLE_TOOL;
        item->call = wal__member_string(&members[M_CALL]);
        item->name = wal__member_string(&members[M_NAME]);
    } else {
        item->kind = WAL__ITEM_LINE;
        item->data = line;
        return wal__model_emit(reader, item);
    }
    return emit_plain(reader, item, members);
}

static enum wal__json_status sdk_line(struct wal__model_reader *reader,
                                      const struct wal__model_line *line)
{
    struct wal__json_member nested = {.key = "message"};
    struct wal__model_item item = {.stream = line->stream,
                                   .id = line->id,
                                   .parent = line->parent,
                                   .time = line->time};
    enum wal__json_status status;
    bool is_done;

    status = wal__model_members(line->text, &nested, 1, NULL);
    if (status != WAL__JSON_OK) {
        return status;
    }
    if (line->is_exact) {
        item.raw = line->text;
    }
    if (line->stream != 0) {
        item.kind = WAL__ITEM_LINE;
        item.raw = line->text;
        item.is_off_branch = true;
        item.data = line->text;
        is_done = wal__model_emit(reader, &item);
    } else {
        is_done = emit_message(reader, &item,
                               nested.value.kind == WAL__JSON_OBJECT
                                   ? nested.value.span
                                   : line->text,
                               line->text);
    }
    return is_done ? WAL__JSON_OK : WAL__JSON_NO_SPACE;
}

const struct wal__dialect_read_ops wal__sdk_read_ops = {
    .documents = sdk_tree, .line = sdk_line, .stream = sdk_stream};

const struct wal__dialect_read_ops wal__spec11_read_ops = {
    .documents = sdk_tree, .line = sdk_line, .stream = sdk_stream};
