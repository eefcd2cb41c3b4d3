/*
 * opencode_write.c - writes sessions as OpenCode's storage.
 *
 * An item is a message, its blocks are parts. A result is written into its
 * call's part, in whichever message that is, and names what it follows if that
 * is not its place. A result without a call is a part of a separate message,
 * marked so that it is not read as a call.
 *
 * Invariant: file names, ids and references agree; generated ids sort in the
 * order of the items.
 *
 * Threads: one thread at a time per writer.
 */
#include <string.h>

#include "convert/dialect/opencode/opencode_id.h"
#include "convert/dialect/opencode/opencode_part_write.h"
#include "convert/dialect/opencode/opencode_raw.h"
#include "convert/model/model_member.h"
#include "convert/model/model_path.h"
#include "convert/model/model_write.h"
#include "format/json/json_character.h"
#include "format/json/json_value.h"
#include "format/payload/timestamp.h"

/* --------------------------------------------------------------- ids --- */

static bool opencode_is_id(struct wal__json_span id)
{
    return wal__opencode_is_id(id, "msg_") || wal__opencode_is_id(id, "prt_");
}

static size_t opencode_make_id(const struct wal__model_writer *writer,
                               const struct wal__model_item *item,
                               const uint64_t hash[2],
                               char id[WAL__MODEL_ID_SIZE])
{
    struct wal__opencode_writer *state = writer->state;
    int64_t ms = 0;

    if (item == NULL || state == NULL) {
        wal__opencode_id_make(id, "msg_", 0, hash[0]);
        return WAL__OPENCODE_ID_SIZE;
    }
    (void)wal__model_time_read(item->time, &ms);
    wal__opencode_id_make(id, "msg_",
                          wal__opencode_next_number(&state->last_message, ms),
                          hash[0]);
    return WAL__OPENCODE_ID_SIZE;
}

/* Determines a session's id; ids of later sessions sort first. */
static void make_session_id(struct wal__json_span own,
                            struct wal__json_span time,
                            char id[WAL__OPENCODE_ID_SIZE])
{
    int64_t ms = 0;

    if (wal__opencode_is_id(own, "ses_")) {
        memcpy(id, own.data, WAL__OPENCODE_ID_SIZE);
        return;
    }
    (void)wal__model_time_read(time, &ms);
    wal__opencode_id_make(id, "ses_", ~((uint64_t)ms << 12) & 0xFFFFFFFFFFFF,
                          wal__model_string_hash(0, own));
}

static void session_id(const struct wal__model_session *session,
                       char id[WAL__OPENCODE_ID_SIZE])
{
    make_session_id(session->id, session->time, id);
}

/* ------------------------------------------------------------- files --- */

/* Returns the project if a folder can have its name; the path of a directory
 * cannot be one. */
static struct wal__json_span
project_of(const struct wal__model_session *session)
{
    static const char other[] = "/\\:";
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span project = session->project;

    for (size_t i = 0; i < sizeof(other) - 1; i++) {
        if (project.size > 0 &&
            memchr(project.data, other[i], project.size) != NULL) {
            project = none;
        }
    }
    return wal__model_or(project, "\"global\"");
}

static const char *opencode_path(const struct wal__model_session *session,
                                 uint32_t stream, struct wal__arena *arena)
{
    struct wal__model_path path;
    char id[WAL__OPENCODE_ID_SIZE];

    (void)stream;
    session_id(session, id);
    wal__model_path_init(&path, arena);
    wal__opencode_path_add(&path, "storage/session/", project_of(session));
    wal__opencode_path_add(&path, "/", wal__opencode_id_span(id));
    wal__model_path_add(&path, ".json");
    return path.text;
}

/* ---------------------------------------------------------- messages --- */

static void write_model(struct wal__json_out *out,
                        const struct wal__opencode_writer *state)
{
    wal__json_out_member(out, "providerID",
                         wal__model_or(state->provider, "\"unknown\""));
    wal__json_out_member(out, "modelID",
                         wal__model_or(state->model, "\"unknown\""));
}

static void write_user(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__json_out_member_str(out, "role", "user");
    wal__opencode_write_time(out, "created", state->time, NULL, 0);
    wal__json_out_member_str(out, "agent", "build");
    wal__json_out_member_open(out, "model", '{');
    write_model(out, state);
    wal__json_out_close(out, '}');
    if (item->role != WAL__ROLE_SYSTEM && !item->is_meta) {
        return;
    }
    wal__json_out_member_open(out, "walconv", '{');
    wal__json_out_member_str(
        out, "role", item->role == WAL__ROLE_SYSTEM ? "system" : "meta");
    wal__json_out_optional(out, "name", item->name);
    wal__json_out_close(out, '}');
}

static void write_tokens(struct wal__json_out *out,
                         const struct wal__model_usage *usage)
{
    wal__json_out_member(out, "cost", wal__model_or(usage->cost, "0"));
    wal__json_out_member_open(out, "tokens", '{');
    wal__json_out_member(out, "input", wal__model_or(usage->input, "0"));
    wal__json_out_member(out, "output", wal__model_or(usage->output, "0"));
    wal__json_out_member(out, "reasoning",
                         wal__model_or(usage->reasoning, "0"));
    wal__json_out_member_open(out, "cache", '{');
    wal__json_out_member(out, "read", wal__model_or(usage->cache_read, "0"));
    wal__json_out_member(out, "write", wal__model_or(usage->cache_write, "0"));
    wal__json_out_close(out, '}');
    wal__json_out_close(out, '}');
}

static void write_stop(struct wal__json_out *out, enum wal__stop_reason stop)
{
    const char *finish = "stop";

    if (stop == WAL__STOP_ABORTED) {
        wal__json_out_member_open(out, "error", '{');
        wal__json_out_member_str(out, "name", "MessageAbortedError");
        wal__json_out_member_open(out, "data", '{');
        wal__json_out_member_str(out, "message", "The operation was aborted.");
        wal__json_out_close(out, '}');
        wal__json_out_close(out, '}');
    } else if (stop == WAL__STOP_LENGTH) {
        finish = "length";
    } else if (stop == WAL__STOP_TOOL) {
        finish = "tool-calls";
    } else if (stop == WAL__STOP_REFUSAL) {
        finish = "content-filter";
    } else if (stop == WAL__STOP_ERROR) {
        finish = "error";
    }
    wal__json_out_member_str(out, "finish", finish);
}

static void write_assistant(struct wal__model_writer *writer,
                            const struct wal__model_item *item, bool is_summary)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    struct wal__json_span cwd = wal__model_or(writer->session->cwd, "\"/\"");

    wal__json_out_member_str(out, "role", "assistant");
    wal__opencode_write_time(out, "created", state->time, "completed",
                             state->time);
    wal__json_out_member(out, "parentID",
                         wal__opencode_id_span(state->user[0] != '\0'
                                                   ? state->user
                                                   : state->message));
    wal__json_out_member(out, "modelID",
                         wal__model_or(item->model, "\"unknown\""));
    wal__json_out_member(out, "providerID",
                         wal__model_or(item->provider, "\"unknown\""));
    wal__json_out_member_str(out, "mode", "build");
    wal__json_out_member_str(out, "agent", "build");
    wal__json_out_member_open(out, "path", '{');
    wal__json_out_member(out, "cwd", cwd);
    wal__json_out_member(out, "root", cwd);
    wal__json_out_close(out, '}');
    write_tokens(out, &item->usage);
    if (is_summary) {
        wal__json_out_member_bool(out, "summary", true);
    }
    write_stop(out, item->stop);
}

/* Opens a message and writes the members up to the role. */
static bool open_message(struct wal__model_writer *writer,
                         struct wal__json_span id, struct wal__json_span time)
{
    struct wal__opencode_writer *state = writer->state;

    if (!wal__opencode_begin_message(writer, id, state->is_copy, time)) {
        return false;
    }
    wal__json_out_open(&writer->out, '{');
    wal__json_out_member(&writer->out, "id",
                         wal__opencode_id_span(state->message));
    wal__json_out_member(&writer->out, "sessionID",
                         wal__opencode_id_span(state->session));
    return true;
}

static bool write_message(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    if (!open_message(writer, item->id, item->time)) {
        return false;
    }
    if (item->role == WAL__ROLE_ASSISTANT) {
        write_assistant(writer, item, false);
    } else {
        write_user(writer, item);
        wal__opencode_set_user(writer->state);
    }
    wal__json_out_close(&writer->out, '}');
    for (size_t i = 0; i < item->block_count; i++) {
        if (!wal__opencode_write_block(writer, item, &item->blocks[i])) {
            return false;
        }
    }
    return true;
}

static bool write_result(struct wal__model_writer *writer,
                         const struct wal__model_item *item)
{
    struct wal__model_item message = {.role = WAL__ROLE_ASSISTANT};

    if (!wal__opencode_has_call(writer->state, item)) {
        if (!open_message(writer, item->id, item->time)) {
            return false;
        }
        write_assistant(writer, &message, false);
        wal__json_out_close(&writer->out, '}');
    }
    return wal__opencode_write_result(writer, item);
}

/* Writes a compaction: a user's message as a mark, the summary as an answer. */
static bool write_compaction(struct wal__model_writer *writer,
                             const struct wal__model_item *item)
{
    struct wal__model_item user = {.time = item->time};
    struct wal__model_item answer = {.role = WAL__ROLE_ASSISTANT};
    struct wal__model_block text = {.kind = WAL__BLOCK_TEXT,
                                    .text = wal__model_or(item->text, "\"\"")};
    char mark[WAL__OPENCODE_ID_SIZE] = "";

    /* Both messages get generated ids: the mark must sort before the answer. */
    if (!open_message(writer, (struct wal__json_span){NULL, 0}, item->time)) {
        return false;
    }
    write_user(writer, &user);
    wal__json_out_close(&writer->out, '}');
    wal__opencode_set_user(writer->state);
    if (!wal__opencode_open_part(writer, mark, "compaction")) {
        return false;
    }
    wal__json_out_member_bool(&writer->out, "auto", true);
    wal__json_out_optional(&writer->out, "tail_start_id", item->target);
    if (!wal__opencode_close_part(writer) ||
        !open_message(writer, (struct wal__json_span){NULL, 0}, item->time)) {
        return false;
    }
    write_assistant(writer, &answer, true);
    wal__json_out_close(&writer->out, '}');
    return wal__opencode_write_block(writer, &answer, &text);
}

/* ----------------------------------------------------------- session --- */

/* Whether the session's own document is of another session. */
static bool is_copy(const struct wal__model_writer *writer,
                    const struct wal__opencode_writer *state)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_member id = {.key = "id"};

    return session->dialect == writer->dialect && session->raw.size > 0 &&
           wal__model_members(session->raw, &id, 1, NULL) == WAL__JSON_OK &&
           !wal__json_string_equals(wal__member_string(&id), state->session + 1,
                                    sizeof(state->session) - 2);
}

static bool opencode_begin(struct wal__model_writer *writer)
{
    struct wal__opencode_writer *state =
        wal__arena_calloc(writer->arena, sizeof(*state));

    if (state == NULL) {
        return false;
    }
    writer->state = state;
    state->messages.arena = writer->arena;
    session_id(writer->session, state->session);
    memcpy(state->message, state->session, WAL__OPENCODE_ID_SIZE);
    state->is_copy = is_copy(writer, state);
    state->is_own = !state->is_copy && writer->session->raw.size > 0 &&
                    writer->session->dialect == writer->dialect;
    (void)wal__model_time_read(writer->session->time, &state->time);
    state->provider = writer->session->provider;
    state->model = writer->session->model;
    return true;
}

static bool opencode_item(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    if (item->raw.size > 0) {
        return (item->raw_prefix.size == 0 ||
                wal__opencode_write_raw(writer, item->raw_prefix)) &&
               wal__opencode_write_raw(writer, item->raw);
    }
    if (item->kind == WAL__ITEM_COMPACTION) {
        return write_compaction(writer, item);
    }
    if (item->kind != WAL__ITEM_MESSAGE) {
        return true;
    }
    return item->role == WAL__ROLE_TOOL ? write_result(writer, item)
                                        : write_message(writer, item);
}

/* The lists of tasks and of changed files are named after the session. Where
 * there are some already, they are newer. */
static const char *const kept_documents[] = {"todo/", "session_diff/", NULL};

static bool opencode_document(struct wal__model_writer *writer, const char *key,
                              struct wal__json_span value)
{
    const struct wal__opencode_writer *state = writer->state;
    const char *name = strchr(key, '/');
    const size_t size = sizeof(state->session) - 2; /* without quotes */
    struct wal__model_path path;

    if (!state->is_own || name == NULL || strlen(++name) != size + 5 ||
        memcmp(name, state->session + 1, size) != 0 ||
        strcmp(name + size, ".json") != 0) {
        return true;
    }
    wal__model_path_init(&path, writer->scratch);
    wal__model_path_add(&path, "storage/");
    wal__model_path_add(&path, key);
    if (path.text == NULL ||
        !wal__model_write_file(writer, path.text,
                               WAL__OUTPUT_SHARED_DOCUMENT)) {
        return false;
    }
    wal__json_out_bytes(&writer->out, value.data, value.size);
    return !writer->out.has_failed;
}

/* Writes the session's project where there is none: the client finds sessions
 * by their projects, and a version that moves the storage to its database only
 * takes in sessions whose project is there. */
static bool write_project(struct wal__model_writer *writer, int64_t created)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_span project = project_of(session);
    bool is_global = wal__model_text_is(project, "global");
    struct wal__json_out *out = &writer->out;
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    wal__opencode_path_add(&path, "storage/project/", project);
    wal__model_path_add(&path, ".json");
    if (path.text == NULL ||
        !wal__model_write_file(writer, path.text,
                               WAL__OUTPUT_SHARED_DOCUMENT)) {
        return false;
    }
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", project);
    wal__json_out_member(out, "worktree",
                         wal__model_or(is_global
                                           ? (struct wal__json_span){NULL, 0}
                                           : session->cwd,
                                       "\"/\""));
    if (!is_global) {
        wal__json_out_member_str(out, "vcs", "git");
    }
    wal__opencode_write_time(out, "created", created, NULL, 0);
    wal__json_out_close(out, '}');
    return !out->has_failed;
}

/* Writes the session's own document; the log may have another title. */
static void write_own_session(struct wal__json_out *out,
                              const struct wal__model_session *session)
{
    const struct wal__json_override title = {"title", session->title};
    struct wal__json_member own = {.key = "title"};

    if (session->title.size > 0 &&
        wal__model_members(session->raw, &own, 1, NULL) == WAL__JSON_OK &&
        own.value.kind == WAL__JSON_STRING &&
        !wal__json_characters_equal(own.value.span, session->title)) {
        wal__json_out_overridden(out, session->raw, &title, 1);
        return;
    }
    wal__json_out_bytes(out, session->raw.data, session->raw.size);
}

static bool opencode_end(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const char *path = opencode_path(session, 0, writer->scratch);
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    char starter[WAL__OPENCODE_ID_SIZE];
    int64_t created = 0;
    int64_t updated;

    (void)wal__model_time_read(session->time, &created);
    if (path == NULL || !write_project(writer, created) ||
        !wal__model_write_file(writer, path, WAL__OUTPUT_DOCUMENT)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect &&
        wal__opencode_is_id(session->id, "ses_")) {
        write_own_session(out, session);
        return true;
    }
    updated = state->time > created ? state->time : created;
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", wal__opencode_id_span(state->session));
    wal__json_out_member_str(out, "slug", "session");
    wal__json_out_member_str(out, "version", "1.0.0");
    wal__json_out_member(out, "projectID", project_of(session));
    wal__json_out_member(out, "directory",
                         wal__model_or(session->cwd, "\"/\""));
    /* The client lists no session with a parent, so a fork has none. */
    if (session->starter.size > 0) {
        make_session_id(session->starter, session->starter_time, starter);
        wal__json_out_member(out, "parentID", wal__opencode_id_span(starter));
    }
    wal__json_out_member(out, "title",
                         wal__model_or(session->title, "\"New session\""));
    wal__opencode_write_time(out, "created", created, "updated", updated);
    wal__json_out_close(out, '}');
    return true;
}

static bool opencode_clone(struct wal__model_writer *writer)
{
    const struct wal__opencode_writer *from = writer->state;
    struct wal__json_span calls = {(const uint8_t *)from->calls,
                                   from->call_count * sizeof(from->calls[0])};
    struct wal__opencode_writer *own =
        wal__arena_alloc(writer->arena, sizeof(*own));

    if (own == NULL) {
        return false;
    }
    *own = *from;
    own->call_capacity = own->call_count;
    own->messages = (struct wal__model_table){.arena = writer->arena,
                                              .base = &from->messages};
    if (calls.size > 0) {
        own->calls =
            (void *)(uintptr_t)wal__arena_copy(writer->arena, calls).data;
    }
    writer->state = own;
    return calls.size == 0 || own->calls != NULL;
}

const struct wal__dialect_write_ops wal__opencode_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) |
               WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_NAMES) |
               WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) |
               WAL__CARRIES(PROVIDERS) | WAL__CARRIES(USAGE) |
               WAL__CARRIES(REASONING) | WAL__CARRIES(COSTS) |
               WAL__CARRIES(STOP_REASONS) | WAL__CARRIES(COMPACTIONS) |
               WAL__CARRIES(META) | WAL__CARRIES(META_NAMES),
    .merges_parts = true,
    .links_starter = true,
    .path = opencode_path,
    .is_id = opencode_is_id,
    .make_id = opencode_make_id,
    .ids_are_stored = true,
    .begin = opencode_begin,
    .item = opencode_item,
    .end = opencode_end,
    .document = opencode_document,
    .kept_documents = kept_documents,
    .clone = opencode_clone,
    .join = wal__opencode_join,
};
