/*
 * opencode_read.c - converts sessions of OpenCode's storage to items.
 *
 * A message with its parts is an item, and one more for each tool result, which
 * is in the part of its call. Messages and parts are in the order of their
 * files. A summary is a compaction.
 *
 * Invariant: the items of a message are in the order of its parts.
 *
 * Threads: one thread at a time per reader.
 */
#include <string.h>

#include "format/dialect/opencode/opencode_part_read.h"
#include "format/dialect/opencode/opencode_storage.h"
#include "format/json/json_value.h"
#include "format/model/dialect.h"

/* ----------------------------------------------------------- session --- */

static bool emit_session(struct wal__opencode_storage *storage)
{
    enum {
        ID,
        DIRECTORY,
        TITLE,
        PROJECT,
        PARENT,
        CREATED,
        UPDATED,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ID] = {.key = "id"},
        [DIRECTORY] = {.key = "directory"},
        [TITLE] = {.key = "title"},
        [PROJECT] = {.key = "projectID"},
        [PARENT] = {.key = "parentID"},
        [CREATED] = {.parent = "time", .key = "created"},
        [UPDATED] = {.parent = "time", .key = "updated"},
    };
    struct wal__model_session session = {.raw = storage->info,
                                         .dialect = storage->reader->dialect};
    struct wal__model_item item = {.kind = WAL__ITEM_HEADER,
                                   .session = &session};

    if (storage->info.size == 0 ||
        wal__model_members(storage->info, members, COUNT, NULL) !=
            WAL__JSON_OK) {
        return true;
    }
    session.id = wal__member_string(&members[ID]);
    session.cwd = wal__member_string(&members[DIRECTORY]);
    session.title = wal__member_string(&members[TITLE]);
    session.project = wal__member_string(&members[PROJECT]);
    session.parent = wal__member_string(&members[PARENT]);
    session.time = wal__member_number(&members[CREATED]);
    session.updated = wal__member_number(&members[UPDATED]);
    /* The header may become an entry, so no item may have its id. */
    return (session.id.size == 0 ||
            wal__model_table_put(&storage->emitted_ids,
                                 wal__model_string_hash(0, session.id),
                                 session.id)) &&
           wal__model_emit(storage->reader, &item);
}

/* ---------------------------------------------------------- messages --- */

enum {
    M_ID,
    M_ROLE,
    M_SUMMARY,
    M_PROVIDER,
    M_MODEL,
    M_COST,
    M_FINISH,
    M_TIME,
    M_INPUT,
    M_OUTPUT,
    M_REASONING,
    M_TOKENS,
    M_ERROR,
    M_MODEL_PROVIDER,
    M_MODEL_ID,
    M_WALCONV_ROLE,
    M_WALCONV_NAME,
    M_COUNT
};

static const struct wal__json_member message_wanted[M_COUNT] = {
    [M_ID] = {.key = "id"},
    [M_ROLE] = {.key = "role"},
    [M_SUMMARY] = {.key = "summary"},
    [M_PROVIDER] = {.key = "providerID"},
    [M_MODEL] = {.key = "modelID"},
    [M_COST] = {.key = "cost"},
    [M_FINISH] = {.key = "finish"},
    [M_TIME] = {.parent = "time", .key = "created"},
    [M_INPUT] = {.parent = "tokens", .key = "input"},
    [M_OUTPUT] = {.parent = "tokens", .key = "output"},
    [M_REASONING] = {.parent = "tokens", .key = "reasoning"},
    [M_TOKENS] = {.parent = "tokens", .key = "cache"},
    [M_ERROR] = {.parent = "error", .key = "name"},
    [M_MODEL_PROVIDER] = {.parent = "model", .key = "providerID"},
    [M_MODEL_ID] = {.parent = "model", .key = "modelID"},
    [M_WALCONV_ROLE] = {.parent = "walconv", .key = "role"},
    [M_WALCONV_NAME] = {.parent = "walconv", .key = "name"},
};

/* Returns the first of two members that is a name. */
static struct wal__json_span first_name(const struct wal__json_member *members,
                                        size_t key, size_t other)
{
    struct wal__json_span name = wal__member_string(&members[key]);

    if (name.size <= 2) {
        name = wal__member_string(&members[other]);
    }
    if (wal__model_text_is(name, "unknown")) {
        name.size = 0;
    }
    return name;
}

static enum wal__stop_reason read_stop(const struct wal__json_member *members)
{
    static const struct {
        const char *name;
        enum wal__stop_reason stop;
    } stops[] = {
        {"stop", WAL__STOP_END},
        {"end_turn", WAL__STOP_END},
        {"length", WAL__STOP_LENGTH},
        {"tool-calls", WAL__STOP_TOOL},
        {"content-filter", WAL__STOP_REFUSAL},
        {"error", WAL__STOP_ERROR},
    };
    struct wal__json_span finish = wal__member_string(&members[M_FINISH]);
    struct wal__json_span error = wal__member_string(&members[M_ERROR]);

    if (wal__model_text_is(error, "MessageAbortedError")) {
        return WAL__STOP_ABORTED;
    }
    if (error.size > 0) {
        return WAL__STOP_ERROR;
    }
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        if (wal__model_text_is(finish, stops[i].name)) {
            return stops[i].stop;
        }
    }
    return finish.size > 0 ? WAL__STOP_OTHER : WAL__STOP_NONE;
}

static bool read_usage(struct wal__model_usage *usage,
                       const struct wal__json_member *members)
{
    struct wal__json_member cache[2] = {{.key = "read"}, {.key = "write"}};

    if (members[M_TOKENS].value.kind == WAL__JSON_OBJECT &&
        wal__model_members(members[M_TOKENS].value.span, cache, 2, NULL) !=
            WAL__JSON_OK) {
        return false;
    }
    usage->input = wal__member_number(&members[M_INPUT]);
    usage->output = wal__member_number(&members[M_OUTPUT]);
    usage->reasoning = wal__member_number(&members[M_REASONING]);
    usage->cache_read = wal__member_number(&cache[0]);
    usage->cache_write = wal__member_number(&cache[1]);
    usage->cost = wal__member_number(&members[M_COST]);
    return true;
}

static void set_role(struct wal__opencode_message *message,
                     const struct wal__json_member *members)
{
    struct wal__model_item *item = &message->item;

    if (wal__line_string_is(&members[M_ROLE], "assistant")) {
        item->role = WAL__ROLE_ASSISTANT;
        item->provider = first_name(members, M_PROVIDER, M_MODEL_PROVIDER);
        item->model = first_name(members, M_MODEL, M_MODEL_ID);
        item->stop = read_stop(members);
        message->storage->has_failed |= !read_usage(&item->usage, members);
    } else if (wal__line_string_is(&members[M_WALCONV_ROLE], "system")) {
        item->role = WAL__ROLE_SYSTEM;
    } else if (wal__line_string_is(&members[M_WALCONV_ROLE], "meta")) {
        item->is_meta = true;
        item->name = wal__member_string(&members[M_WALCONV_NAME]);
    }
}

static void read_message(struct wal__opencode_storage *storage,
                         const struct wal__opencode_document *document)
{
    struct wal__opencode_message message = {
        .storage = storage, .blocks = {.arena = storage->reader->scratch}};
    struct wal__model_item *item = &message.item;
    struct wal__json_member members[M_COUNT];
    size_t part;

    memcpy(members, message_wanted, sizeof(members));
    item->kind = WAL__ITEM_MESSAGE;
    if (wal__model_members(document->value, members, M_COUNT, &item->fields) !=
        WAL__JSON_OK) {
        return;
    }
    item->id = wal__opencode_storage_id(storage, document, &members[M_ID]);
    item->time = wal__member_number(&members[M_TIME]);
    set_role(&message, members);
    part = wal__opencode_storage_first_part(storage, document, item->id);
    while (part != WAL__OPENCODE_NO_PART && !storage->has_failed) {
        wal__opencode_part_read(&message, &storage->parts.items[part]);
        part = storage->parts.items[part].next;
    }
    if (members[M_SUMMARY].value.kind == WAL__JSON_TRUE) {
        wal__opencode_emit_summary(&message);
    } else {
        wal__opencode_flush(&message, true);
    }
}

static enum wal__json_status
opencode_tree(struct wal__model_reader *reader,
              const struct wal__model_documents *tree)
{
    struct wal__opencode_storage storage;

    if (!wal__opencode_storage_read(&storage, reader, tree) ||
        !emit_session(&storage)) {
        return WAL__JSON_NO_SPACE;
    }
    for (size_t i = 0; i < storage.messages.count && !storage.has_failed; i++) {
        read_message(&storage, &storage.messages.items[i]);
    }
    return storage.has_failed ? WAL__JSON_NO_SPACE : WAL__JSON_OK;
}

const struct wal__dialect_read_ops wal__opencode_read_ops = {.documents =
                                                                 opencode_tree};
