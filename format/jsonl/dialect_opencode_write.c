/*
 * dialect_opencode_write: sessions as OpenCode's storage has them.
 *
 * An item is a message, its blocks are parts. The result of a call goes into
 * the call's part where it follows the message in the order of the calls, else
 * into a part of a message of its own, marked so that it is read as no call.
 *
 * Invariant: file names, ids and references agree; the order of made ids is
 * the order of the items.
 *
 * Threads: one thread at a time per writer.
 */
#include <string.h>

#include "format/jsonl/model_path.h"
#include "format/jsonl/model_read.h"
#include "format/jsonl/model_time.h"
#include "format/jsonl/model_write.h"

#define ID_SIZE 32 /* with quotes */

struct call {
    struct wal__json_span id;
    struct wal__json_span name;
    struct wal__json_span arguments;
    char part[ID_SIZE];
};

struct opencode {
    char session[ID_SIZE];
    char message[ID_SIZE]; /* the last one */
    char user[ID_SIZE];    /* the last one of a user */
    uint64_t last;         /* number of the last id */
    struct call *calls;    /* of the last message, without results so far */
    size_t call_count;
    size_t call_capacity;
    size_t next_call;
    int64_t time; /* of the last message */
    struct wal__json_span provider;
    struct wal__json_span model;
};

/* --------------------------------------------------------------- ids --- */

static void make_id(char id[ID_SIZE], const char *prefix, uint64_t number,
                    uint64_t hash)
{
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                 "abcdefghijklmnopqrstuvwxyz";
    size_t at = 0;

    id[at++] = '"';
    memcpy(id + at, prefix, 4);
    at += 4;
    for (unsigned i = 0; i < 12; i++) {
        id[at++] = "0123456789abcdef"[number >> (44 - 4 * i) & 0xF];
    }
    for (unsigned i = 0; i < 14; i++) {
        if (i == 10) {
            hash = hash * UINT64_C(0x9E3779B97F4A7C15) + 1;
        }
        id[at++] = digits[hash % 62];
        hash /= 62;
    }
    id[at] = '"';
}

static bool is_id(struct wal__json_span id, const char *prefix)
{
    if (id.size != ID_SIZE || memcmp(id.data + 1, prefix, 4) != 0) {
        return false;
    }
    for (size_t i = 5; i < 31; i++) {
        uint8_t byte = id.data[i];
        if (!(byte >= '0' && byte <= '9') && !(byte >= 'A' && byte <= 'Z') &&
            !(byte >= 'a' && byte <= 'z')) {
            return false;
        }
    }
    return true;
}

static bool opencode_is_id(struct wal__json_span id)
{
    return is_id(id, "msg_") || is_id(id, "prt_");
}

static struct wal__json_span span_of(const char id[ID_SIZE])
{
    return (struct wal__json_span){(const uint8_t *)id, ID_SIZE};
}

/* The number of the next id: of its time, and behind the one before. */
static uint64_t next_number(struct opencode *state, int64_t ms)
{
    uint64_t number = ms > 0 ? (uint64_t)ms << 12 & 0xFFFFFFFFFFFF : 0;

    state->last = number > state->last ? number : state->last + 1;
    return state->last;
}

static size_t opencode_make_id(const struct wal__model_writer *writer,
                               const struct wal__model_item *item,
                               const uint64_t hash[2],
                               char id[WAL__MODEL_ID_SIZE])
{
    struct opencode *state = writer->state;
    int64_t ms = 0;

    if (item == NULL || state == NULL) {
        make_id(id, "msg_", 0, hash[0]);
        return ID_SIZE;
    }
    (void)wal__model_time_read(item->time, &ms);
    make_id(id, "msg_", next_number(state, ms), hash[0]);
    return ID_SIZE;
}

/* Sessions that began later come first. */
static void session_id(const struct wal__model_session *session,
                       char id[ID_SIZE])
{
    int64_t ms = 0;

    if (is_id(session->id, "ses_")) {
        memcpy(id, session->id.data, ID_SIZE);
        return;
    }
    (void)wal__model_time_read(session->time, &ms);
    make_id(id, "ses_", ~((uint64_t)ms << 12) & 0xFFFFFFFFFFFF,
            wal__model_string_hash(0, session->id));
}

/* ------------------------------------------------------------- files --- */

static void add_name(struct wal__model_path *path, const char *above,
                     struct wal__json_span id)
{
    wal__model_path_add(path, above);
    wal__model_path_add_id(path, id);
}

static struct wal__json_span
project_of(const struct wal__model_session *session)
{
    return wal__model_or(session->project, "\"global\"");
}

static const char *opencode_path(const struct wal__model_session *session,
                                 uint32_t stream, struct wal__arena *arena)
{
    struct wal__model_path path;
    char id[ID_SIZE];

    (void)stream;
    session_id(session, id);
    wal__model_path_init(&path, arena);
    add_name(&path, "storage/session/", project_of(session));
    add_name(&path, "/", span_of(id));
    wal__model_path_add(&path, ".json");
    return path.text;
}

static bool choose(struct wal__model_writer *writer, const char *above,
                   const char folder[ID_SIZE], struct wal__json_span id)
{
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    add_name(&path, above, span_of(folder));
    add_name(&path, "/", id);
    wal__model_path_add(&path, ".json");
    return path.text != NULL && wal__model_write_file(writer, path.text, true);
}

static int64_t ms_of(const struct opencode *state, struct wal__json_span time)
{
    int64_t ms = state->time;

    (void)wal__model_time_read(time, &ms);
    return ms;
}

static void write_time(struct wal__json_out *out, const char *first, int64_t ms,
                       const char *second, int64_t end)
{
    wal__json_out_key(out, "time");
    wal__json_out_open(out, '{');
    wal__json_out_count(out, first, ms);
    if (second != NULL) {
        wal__json_out_count(out, second, end);
    }
    wal__json_out_close(out, '}');
}

/* Opens a part; *id is made. */
static bool open_part(struct wal__model_writer *writer, char id[ID_SIZE],
                      const char *type)
{
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;

    if (id[0] == '\0') {
        make_id(id, "prt_", next_number(state, state->time),
                wal__model_hash(state->last, span_of(state->message)));
    }
    if (!choose(writer, "storage/part/", state->message, span_of(id))) {
        return false;
    }
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", span_of(id));
    wal__json_out_member(out, "sessionID", span_of(state->session));
    wal__json_out_member(out, "messageID", span_of(state->message));
    if (type != NULL) {
        wal__json_out_name(out, "type", type);
    }
    return true;
}

static bool close_part(struct wal__model_writer *writer)
{
    wal__json_out_close(&writer->out, '}');
    return !writer->out.has_failed;
}

/* ------------------------------------------------------------- parts --- */

/* mime and url of an image. */
static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    static const struct wal__json_span data = {(const uint8_t *)"data:", 5};
    static const struct wal__json_span base64 = {(const uint8_t *)";base64,",
                                                 8};
    static const struct wal__json_span png = {(const uint8_t *)"image/png", 9};

    wal__json_out_plain(out, "mime",
                        block->media.size > 0 ? block->media : png);
    if (block->url.size > 0) {
        wal__json_out_member(out, "url", block->url);
        return;
    }
    wal__json_out_key(out, "url");
    wal__json_out_quote(out);
    wal__json_out_quoted(out, data);
    wal__json_out_quoted(out, block->media);
    wal__json_out_quoted(out, base64);
    wal__json_out_quoted(out, block->data);
    wal__json_out_unquote(out);
}

static void write_signature(struct wal__json_out *out,
                            const struct wal__model_block *block)
{
    if (block->signature.size == 0) {
        return;
    }
    wal__json_out_key(out, "metadata");
    wal__json_out_open(out, '{');
    wal__json_out_key(out, "anthropic");
    wal__json_out_open(out, '{');
    wal__json_out_member(out, block->is_redacted ? "redactedData" : "signature",
                         block->signature);
    wal__json_out_close(out, '}');
    wal__json_out_close(out, '}');
}

static bool is_text(const struct wal__model_block *block)
{
    return block->kind == WAL__BLOCK_TEXT;
}

/* One text and images behind it: as the client has results. */
static bool is_simple(const struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        if (block->kind != WAL__BLOCK_IMAGE && (i > 0 || !is_text(block))) {
            return false;
        }
    }
    return true;
}

static void write_content(struct wal__json_out *out,
                          const struct wal__model_item *item)
{
    wal__json_out_key(out, "walconvContent");
    wal__json_out_open(out, '[');
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        if (block->kind == WAL__BLOCK_RAW) {
            wal__json_out_value(out, block->raw);
            continue;
        }
        wal__json_out_open(out, '{');
        if (is_text(block)) {
            wal__json_out_name(out, "type", "text");
            wal__json_out_member(out, "text", block->text);
        } else if (block->kind == WAL__BLOCK_IMAGE) {
            wal__json_out_name(out, "type", "image");
            wal__json_out_plain(out, "data", block->data);
            wal__json_out_plain(out, "mimeType", block->media);
            wal__json_out_optional(out, "url", block->url);
        } else if (block->kind == WAL__BLOCK_THINKING) {
            wal__json_out_name(out, "type", "thinking");
            wal__json_out_member(out, "thinking",
                                 wal__model_or(block->text, "\"\""));
            wal__json_out_optional(out, "signature", block->signature);
        } else {
            wal__json_out_name(out, "type", "tool_use");
            wal__json_out_optional(out, "id", block->id);
            wal__json_out_optional(out, "name", block->name);
            wal__json_out_optional(out, "input", block->arguments);
        }
        wal__json_out_close(out, '}');
    }
    wal__json_out_close(out, ']');
}

static void write_attachments(struct wal__model_writer *writer,
                              const struct wal__model_item *item)
{
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;
    bool is_open = false;

    for (size_t i = 0; i < item->block_count; i++) {
        char id[ID_SIZE];
        if (item->blocks[i].kind != WAL__BLOCK_IMAGE) {
            continue;
        }
        if (!is_open) {
            wal__json_out_key(out, "attachments");
            wal__json_out_open(out, '[');
            is_open = true;
        }
        make_id(id, "prt_", next_number(state, state->time),
                wal__model_hash(i, span_of(state->message)));
        wal__json_out_open(out, '{');
        wal__json_out_member(out, "id", span_of(id));
        wal__json_out_member(out, "sessionID", span_of(state->session));
        wal__json_out_member(out, "messageID", span_of(state->message));
        wal__json_out_name(out, "type", "file");
        write_image(out, &item->blocks[i]);
        wal__json_out_close(out, '}');
    }
    if (is_open) {
        wal__json_out_close(out, ']');
    }
}

/* The text of a result: all of its texts. */
static void write_output(struct wal__json_out *out,
                         const struct wal__model_item *item)
{
    static const struct wal__json_span newline = {(const uint8_t *)"\n", 1};
    bool is_first = true;

    wal__json_out_key(out, item->is_error ? "error" : "output");
    wal__json_out_quote(out);
    for (size_t i = 0; i < item->block_count; i++) {
        if (!is_text(&item->blocks[i])) {
            continue;
        }
        if (!is_first) {
            wal__json_out_quoted(out, newline);
        }
        wal__json_out_joined(out, item->blocks[i].text);
        is_first = false;
    }
    wal__json_out_unquote(out);
}

static bool write_tool(struct wal__model_writer *writer, struct call *call,
                       const struct wal__model_item *result, bool is_alone)
{
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;
    bool has_content =
        result != NULL &&
        (!is_simple(result) || (result->is_error && result->block_count > 1));

    if (!open_part(writer, call->part, "tool")) {
        return false;
    }
    wal__json_out_member(out, "callID", wal__model_or(call->id, "\"\""));
    wal__json_out_member(out, "tool", wal__model_or(call->name, "\"\""));
    wal__json_out_key(out, "state");
    wal__json_out_open(out, '{');
    wal__json_out_name(out, "status",
                       result == NULL
                           ? "pending"
                           : (result->is_error ? "error" : "completed"));
    wal__json_out_member(out, "input", wal__model_or(call->arguments, "{}"));
    if (result != NULL) {
        int64_t end = ms_of(state, result->time);
        write_output(out, result);
        wal__json_out_name(out, "title", "");
        wal__json_out_key(out, "metadata");
        wal__json_out_open(out, '{');
        if (is_alone) {
            wal__json_out_flag(out, "walconvAlone", true);
        }
        if (has_content) {
            write_content(out, result);
        }
        wal__json_out_close(out, '}');
        write_time(out, "start", state->time, "end", end);
        if (!has_content) {
            write_attachments(writer, result);
        }
    }
    wal__json_out_close(out, '}');
    return close_part(writer);
}

static bool add_call(struct wal__model_writer *writer,
                     const struct wal__model_block *block)
{
    struct opencode *state = writer->state;
    struct call *call;

    if (state->call_count == state->call_capacity) {
        size_t capacity =
            state->call_capacity > 0 ? 2 * state->call_capacity : 8;
        struct call *calls =
            wal__arena_take(writer->keep, capacity * sizeof(calls[0]));
        if (calls == NULL) {
            return false;
        }
        if (state->call_count > 0) {
            memcpy(calls, state->calls, state->call_count * sizeof(calls[0]));
        }
        state->calls = calls;
        state->call_capacity = capacity;
    }
    call = &state->calls[state->call_count++];
    *call = (struct call){
        .id = wal__arena_copy(writer->keep, block->id),
        .name = wal__arena_copy(writer->keep, block->name),
        .arguments = wal__arena_copy(writer->keep, block->arguments),
    };
    return write_tool(writer, call, NULL, false);
}

static bool write_block(struct wal__model_writer *writer,
                        const struct wal__model_item *item,
                        const struct wal__model_block *block)
{
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;
    char id[ID_SIZE] = "";

    switch (block->kind) {
    case WAL__BLOCK_TOOL_CALL:
        return add_call(writer, block);
    case WAL__BLOCK_TEXT:
        if (!open_part(writer, id, "text")) {
            return false;
        }
        wal__json_out_member(out, "text", block->text);
        if (item->is_meta || item->role == WAL__ROLE_SYSTEM) {
            wal__json_out_flag(out, "synthetic", true);
        }
        break;
    case WAL__BLOCK_THINKING:
        if (!open_part(writer, id, "reasoning")) {
            return false;
        }
        wal__json_out_member(out, "text", wal__model_or(block->text, "\"\""));
        write_signature(out, block);
        write_time(out, "start", state->time, "end", state->time);
        break;
    case WAL__BLOCK_IMAGE:
        if (!open_part(writer, id, "file")) {
            return false;
        }
        write_image(out, block);
        break;
    case WAL__BLOCK_RAW:
        if (!open_part(writer, id, NULL)) {
            return false;
        }
        wal__json_out_members(out, block->raw);
        break;
    }
    return close_part(writer);
}

/* ---------------------------------------------------------- messages --- */

static void write_model(struct wal__json_out *out, const struct opencode *state)
{
    wal__json_out_member(out, "providerID",
                         wal__model_or(state->provider, "\"unknown\""));
    wal__json_out_member(out, "modelID",
                         wal__model_or(state->model, "\"unknown\""));
}

static void write_user(struct wal__model_writer *writer,
                       const struct wal__model_item *item)
{
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__json_out_name(out, "role", "user");
    write_time(out, "created", state->time, NULL, 0);
    wal__json_out_name(out, "agent", "build");
    wal__json_out_key(out, "model");
    wal__json_out_open(out, '{');
    write_model(out, state);
    wal__json_out_close(out, '}');
    if (item->role != WAL__ROLE_SYSTEM && !item->is_meta) {
        return;
    }
    wal__json_out_key(out, "walconv");
    wal__json_out_open(out, '{');
    wal__json_out_name(out, "role",
                       item->role == WAL__ROLE_SYSTEM ? "system" : "meta");
    wal__json_out_optional(out, "name", item->name);
    wal__json_out_close(out, '}');
}

static void write_tokens(struct wal__json_out *out,
                         const struct wal__model_usage *usage)
{
    wal__json_out_member(out, "cost", wal__model_or(usage->cost, "0"));
    wal__json_out_key(out, "tokens");
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "input", wal__model_or(usage->input, "0"));
    wal__json_out_member(out, "output", wal__model_or(usage->output, "0"));
    wal__json_out_member(out, "reasoning",
                         wal__model_or(usage->reasoning, "0"));
    wal__json_out_key(out, "cache");
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "read", wal__model_or(usage->cache_read, "0"));
    wal__json_out_member(out, "write", wal__model_or(usage->cache_write, "0"));
    wal__json_out_close(out, '}');
    wal__json_out_close(out, '}');
}

static void write_stop(struct wal__json_out *out, enum wal__model_stop stop)
{
    const char *finish = "stop";

    if (stop == WAL__STOP_ABORTED) {
        wal__json_out_key(out, "error");
        wal__json_out_open(out, '{');
        wal__json_out_name(out, "name", "MessageAbortedError");
        wal__json_out_key(out, "data");
        wal__json_out_open(out, '{');
        wal__json_out_name(out, "message", "The operation was aborted.");
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
    wal__json_out_name(out, "finish", finish);
}

static void write_assistant(struct wal__model_writer *writer,
                            const struct wal__model_item *item, bool is_summary)
{
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;
    struct wal__json_span cwd = wal__model_or(writer->session->cwd, "\"/\"");

    wal__json_out_name(out, "role", "assistant");
    write_time(out, "created", state->time, "completed", state->time);
    wal__json_out_member(
        out, "parentID",
        span_of(state->user[0] != '\0' ? state->user : state->message));
    wal__json_out_member(out, "modelID",
                         wal__model_or(item->model, "\"unknown\""));
    wal__json_out_member(out, "providerID",
                         wal__model_or(item->provider, "\"unknown\""));
    wal__json_out_name(out, "mode", "build");
    wal__json_out_name(out, "agent", "build");
    wal__json_out_key(out, "path");
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "cwd", cwd);
    wal__json_out_member(out, "root", cwd);
    wal__json_out_close(out, '}');
    write_tokens(out, &item->usage);
    if (is_summary) {
        wal__json_out_flag(out, "summary", true);
    }
    write_stop(out, item->stop);
}

/* Begins a message: its id, and its file up to the role. */
static bool open_message(struct wal__model_writer *writer,
                         struct wal__json_span id, struct wal__json_span time)
{
    struct opencode *state = writer->state;

    state->time = ms_of(state, time);
    state->call_count = 0;
    state->next_call = 0;
    if (is_id(id, "msg_")) {
        memcpy(state->message, id.data, ID_SIZE);
    } else {
        make_id(state->message, "msg_", next_number(state, state->time),
                wal__model_string_hash(0, id));
    }
    if (!choose(writer, "storage/message/", state->session,
                span_of(state->message))) {
        return false;
    }
    wal__json_out_open(&writer->out, '{');
    wal__json_out_member(&writer->out, "id", span_of(state->message));
    wal__json_out_member(&writer->out, "sessionID", span_of(state->session));
    return true;
}

static bool write_message(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    struct opencode *state = writer->state;

    if (!open_message(writer, item->id, item->time)) {
        return false;
    }
    if (item->role == WAL__ROLE_ASSISTANT) {
        write_assistant(writer, item, false);
    } else {
        write_user(writer, item);
        memcpy(state->user, state->message, ID_SIZE);
    }
    wal__json_out_close(&writer->out, '}');
    for (size_t i = 0; i < item->block_count; i++) {
        if (!write_block(writer, item, &item->blocks[i])) {
            return false;
        }
    }
    return true;
}

/* A result that no call of the message before waits for in this order. */
static bool write_alone(struct wal__model_writer *writer,
                        const struct wal__model_item *item)
{
    struct wal__model_item message = {.role = WAL__ROLE_ASSISTANT};
    struct call call = {.id = item->call, .name = item->name};

    if (!open_message(writer, item->id, item->time)) {
        return false;
    }
    write_assistant(writer, &message, false);
    wal__json_out_close(&writer->out, '}');
    return write_tool(writer, &call, item, true);
}

static bool is_same(struct wal__json_span a, struct wal__json_span b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static bool write_result(struct wal__model_writer *writer,
                         const struct wal__model_item *item)
{
    struct opencode *state = writer->state;

    for (size_t i = state->next_call;
         item->call.size > 2 && i < state->call_count; i++) {
        struct call *call = &state->calls[i];
        if (is_same(call->id, item->call) &&
            (item->name.size == 0 || is_same(call->name, item->name))) {
            state->next_call = i + 1;
            return write_tool(writer, call, item, false);
        }
    }
    return write_alone(writer, item);
}

/* A mark of the user, and the summary as an answer. */
static bool write_compaction(struct wal__model_writer *writer,
                             const struct wal__model_item *item)
{
    struct wal__model_item user = {.time = item->time};
    struct wal__model_item answer = {.role = WAL__ROLE_ASSISTANT};
    struct wal__model_block text = {.kind = WAL__BLOCK_TEXT,
                                    .text = wal__model_or(item->text, "\"\"")};
    struct opencode *state = writer->state;
    char mark[ID_SIZE] = "";

    /* The mark comes before: its id is made of what is before, too. */
    if (!open_message(writer, (struct wal__json_span){NULL, 0}, item->time)) {
        return false;
    }
    write_user(writer, &user);
    memcpy(state->user, state->message, ID_SIZE);
    wal__json_out_close(&writer->out, '}');
    if (!open_part(writer, mark, "compaction")) {
        return false;
    }
    wal__json_out_flag(&writer->out, "auto", true);
    wal__json_out_optional(&writer->out, "tail_start_id", item->target);
    if (!close_part(writer) ||
        !open_message(writer, (struct wal__json_span){NULL, 0}, item->time)) {
        return false;
    }
    write_assistant(writer, &answer, true);
    wal__json_out_close(&writer->out, '}');
    return write_block(writer, &answer, &text);
}

/* ----------------------------------------------------------- session --- */

static bool opencode_begin(struct wal__model_writer *writer)
{
    struct opencode *state = wal__arena_zero(writer->keep, sizeof(*state));

    if (state == NULL) {
        return false;
    }
    writer->state = state;
    session_id(writer->session, state->session);
    memcpy(state->message, state->session, ID_SIZE);
    (void)wal__model_time_read(writer->session->time, &state->time);
    state->provider = writer->session->provider;
    state->model = writer->session->model;
    return true;
}

static bool opencode_item(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    if (item->kind == WAL__MODEL_COMPACTION) {
        return write_compaction(writer, item);
    }
    if (item->kind != WAL__MODEL_MESSAGE) {
        return true;
    }
    return item->role == WAL__ROLE_TOOL ? write_result(writer, item)
                                        : write_message(writer, item);
}

static bool opencode_end(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const char *path = opencode_path(session, 0, writer->scratch);
    struct opencode *state = writer->state;
    struct wal__json_out *out = &writer->out;
    int64_t created = 0;
    int64_t updated;

    if (path == NULL || !wal__model_write_file(writer, path, true)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect &&
        is_id(session->id, "ses_")) {
        wal__json_out_bytes(out, session->raw.data, session->raw.size);
        return true;
    }
    (void)wal__model_time_read(session->time, &created);
    updated = state->time > created ? state->time : created;
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", span_of(state->session));
    wal__json_out_name(out, "slug", "session");
    wal__json_out_name(out, "version", "1.0.0");
    wal__json_out_member(out, "projectID", project_of(session));
    wal__json_out_member(out, "directory",
                         wal__model_or(session->cwd, "\"/\""));
    if (is_id(session->parent, "ses_")) {
        wal__json_out_member(out, "parentID", session->parent);
    }
    wal__json_out_member(out, "title",
                         wal__model_or(session->title, "\"New session\""));
    write_time(out, "created", created, "updated", updated);
    wal__json_out_close(out, '}');
    return true;
}

const struct wal__dialect_writing wal__writing_opencode = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) |
               WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(BORDERS) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_NAMES) |
               WAL__CARRIES(TOOL_ERRORS) | WAL__CARRIES(MODELS) |
               WAL__CARRIES(PROVIDERS) | WAL__CARRIES(USAGE) |
               WAL__CARRIES(REASONING) | WAL__CARRIES(COSTS) |
               WAL__CARRIES(STOP_REASONS) | WAL__CARRIES(COMPACTIONS) |
               WAL__CARRIES(META) | WAL__CARRIES(META_NAMES),
    .merges = true,
    .path = opencode_path,
    .is_id = opencode_is_id,
    .make_id = opencode_make_id,
    .ids_are_kept = true,
    .begin = opencode_begin,
    .item = opencode_item,
    .end = opencode_end,
};
