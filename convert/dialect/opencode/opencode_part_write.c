/*
 * opencode_part_write.c - writes the parts of a message for OpenCode.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/dialect/opencode/opencode_part_write.h"

#include <string.h>

#include "convert/model/content_write.h"
#include "convert/model/model_member.h"
#include "format/payload/timestamp.h"

uint64_t wal__opencode_next_number(uint64_t *last, int64_t ms)
{
    uint64_t number = ms > 0 ? (uint64_t)ms << 12 & 0xFFFFFFFFFFFF : 0;

    *last = number > *last ? number : *last + 1;
    return *last;
}

void wal__opencode_path_add(struct wal__model_path *path, const char *above,
                            struct wal__json_span id)
{
    wal__model_path_add(path, above);
    wal__model_path_add_id(path, id);
}

bool wal__opencode_select_file(struct wal__model_writer *writer,
                               const char *above,
                               const char folder[WAL__OPENCODE_ID_SIZE],
                               struct wal__json_span id)
{
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    wal__opencode_path_add(&path, above, wal__opencode_id_span(folder));
    wal__opencode_path_add(&path, "/", id);
    wal__model_path_add(&path, ".json");
    return path.text != NULL &&
           wal__model_write_file(writer, path.text, WAL__OUTPUT_DOCUMENT);
}

int64_t wal__opencode_time_ms(const struct wal__opencode_writer *state,
                              struct wal__json_span time)
{
    int64_t ms = state->time;

    (void)wal__model_time_read(time, &ms);
    return ms;
}

void wal__opencode_write_time(struct wal__json_out *out, const char *first,
                              int64_t ms, const char *second, int64_t end)
{
    wal__json_out_member_open(out, "time", '{');
    wal__json_out_member_int(out, first, ms);
    if (second != NULL) {
        wal__json_out_member_int(out, second, end);
    }
    wal__json_out_close(out, '}');
}

/* Whether the next message can have the id: the client sorts by ids. */
static bool sorts_after(const struct wal__opencode_writer *state,
                        struct wal__json_span id)
{
    bool is_first = state->message[1] == 's'; /* the session's id */

    return wal__opencode_is_id(id, "msg_") &&
           (is_first || memcmp(id.data, state->message, id.size) > 0);
}

/* A hash of an id, and of the session that is written. */
static uint64_t hash_in_session(const struct wal__opencode_writer *state,
                                struct wal__json_span id)
{
    return wal__model_hash(wal__model_string_hash(0, id),
                           wal__opencode_id_span(state->session));
}

/* Records under which id a message is written. */
static bool keep_message_id(struct wal__model_writer *writer,
                            struct wal__json_span id)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_span written =
        wal__arena_copy(writer->arena, wal__opencode_id_span(state->message));

    return written.data != NULL &&
           wal__model_table_put(
               &state->messages,
               wal__model_string_hash(0, id.size > 0 ? id : written), written);
}

bool wal__opencode_begin_message(struct wal__model_writer *writer,
                                 struct wal__json_span id, bool is_copy,
                                 struct wal__json_span time)
{
    struct wal__opencode_writer *state = writer->state;

    state->time = wal__opencode_time_ms(state, time);
    state->last_result[0] = '\0';
    if (!is_copy && sorts_after(state, id)) {
        memcpy(state->message, id.data, WAL__OPENCODE_ID_SIZE);
        state->last_message = wal__opencode_id_number(id);
    } else {
        wal__opencode_id_make(
            state->message, "msg_",
            wal__opencode_next_number(&state->last_message, state->time),
            hash_in_session(state, id));
    }
    memcpy(state->previous, state->message, WAL__OPENCODE_ID_SIZE);
    if (!keep_message_id(writer, id)) {
        return false;
    }
    return wal__opencode_select_file(writer, "storage/message/", state->session,
                                     wal__opencode_id_span(state->message));
}

void wal__opencode_set_user(struct wal__opencode_writer *state)
{
    memcpy(state->user, state->message, sizeof(state->user));
}

void wal__opencode_make_part_id(struct wal__opencode_writer *state,
                                char id[WAL__OPENCODE_ID_SIZE])
{
    uint64_t number = wal__opencode_next_number(&state->last_part, state->time);

    wal__opencode_id_make(
        id, "prt_", number,
        wal__model_hash(number, wal__opencode_id_span(state->message)));
}

/* Opens a part of the message. */
static bool open_part(struct wal__model_writer *writer,
                      const char message[WAL__OPENCODE_ID_SIZE],
                      char id[WAL__OPENCODE_ID_SIZE], const char *type)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;

    if (id[0] == '\0') {
        wal__opencode_make_part_id(state, id);
    }
    if (!wal__opencode_select_file(writer, "storage/part/", message,
                                   wal__opencode_id_span(id))) {
        return false;
    }
    wal__json_out_open(out, '{');
    wal__json_out_member(out, "id", wal__opencode_id_span(id));
    wal__json_out_member(out, "sessionID",
                         wal__opencode_id_span(state->session));
    wal__json_out_member(out, "messageID", wal__opencode_id_span(message));
    if (type != NULL) {
        wal__json_out_member_str(out, "type", type);
    }
    return true;
}

bool wal__opencode_open_part(struct wal__model_writer *writer,
                             char id[WAL__OPENCODE_ID_SIZE], const char *type)
{
    struct wal__opencode_writer *state = writer->state;

    return open_part(writer, state->message, id, type);
}

bool wal__opencode_close_part(struct wal__model_writer *writer)
{
    wal__json_out_close(&writer->out, '}');
    return !writer->out.has_failed;
}

/* Writes mime and url of an image. */
static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    static const struct wal__json_span png = {(const uint8_t *)"image/png", 9};

    wal__json_out_member_text(out, "mime",
                              block->media.size > 0 ? block->media : png);
    wal__content_write_url(out, "url", block);
}

static void write_signature(struct wal__json_out *out,
                            const struct wal__model_block *block)
{
    if (block->signature.size == 0) {
        return;
    }
    wal__json_out_member_open(out, "metadata", '{');
    wal__json_out_member_open(out, "anthropic", '{');
    wal__json_out_member(out, block->is_redacted ? "redactedData" : "signature",
                         block->signature);
    wal__json_out_close(out, '}');
    wal__json_out_close(out, '}');
}

static bool is_text(const struct wal__model_block *block)
{
    return block->kind == WAL__BLOCK_TEXT;
}

/* Whether the content is the client's form of a result: an optional text, then
 * images. */
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

/* An image in a result that is not in the client's form. */
static void write_result_image(struct wal__json_out *out,
                               const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    wal__json_out_member_text(out, "data", block->data);
    wal__json_out_member_text(out, "mimeType", block->media);
    wal__json_out_optional(out, "url", block->url);
}

static const struct wal__block_form result_form = {
    .text = "text",
    .signature = "signature",
    .call = "tool_use",
    .arguments = "input",
    .image = write_result_image,
};

static void write_attachments(struct wal__model_writer *writer,
                              const char message[WAL__OPENCODE_ID_SIZE],
                              const struct wal__model_item *item)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    bool is_open = false;

    for (size_t i = 0; i < item->block_count; i++) {
        char id[WAL__OPENCODE_ID_SIZE];
        if (item->blocks[i].kind != WAL__BLOCK_IMAGE) {
            continue;
        }
        if (!is_open) {
            wal__json_out_member_open(out, "attachments", '[');
            is_open = true;
        }
        wal__opencode_make_part_id(state, id);
        wal__json_out_open(out, '{');
        wal__json_out_member(out, "id", wal__opencode_id_span(id));
        wal__json_out_member(out, "sessionID",
                             wal__opencode_id_span(state->session));
        wal__json_out_member(out, "messageID", wal__opencode_id_span(message));
        wal__json_out_member_str(out, "type", "file");
        write_image(out, &item->blocks[i]);
        wal__json_out_close(out, '}');
    }
    if (is_open) {
        wal__json_out_close(out, ']');
    }
}

/* What a result says about itself. */
struct result_place {
    bool is_orphan;    /* it has no call */
    const char *after; /* id of what it follows, if not its place; or NULL */
};

static void write_metadata(struct wal__json_out *out,
                           const struct wal__model_item *result,
                           const struct result_place *place, bool has_content)
{
    wal__json_out_member_open(out, "metadata", '{');
    if (place->is_orphan) {
        wal__json_out_member_bool(out, "walconvAlone", true);
    }
    if (place->after != NULL) {
        wal__json_out_member(out, "walconvAfter",
                             wal__opencode_id_span(place->after));
    }
    if (has_content) {
        wal__content_write_blocks(out, "walconvContent", &result_form,
                                  result->blocks, result->block_count);
    }
    wal__json_out_close(out, '}');
}

static void write_state(struct wal__model_writer *writer,
                        const struct wal__opencode_call *call,
                        const struct wal__model_item *result,
                        const struct result_place *place)
{
    struct wal__json_out *out = &writer->out;
    bool has_content =
        !is_simple(result) || (result->is_error && result->block_count > 1);
    int64_t end = wal__opencode_time_ms(writer->state, result->time);

    wal__content_write_texts(out, result->is_error ? "error" : "output",
                             result->blocks, result->block_count, "\n", false);
    wal__json_out_member_str(out, "title", "");
    write_metadata(out, result, place, has_content);
    wal__opencode_write_time(out, "start", call->time, "end", end);
    if (!has_content) {
        write_attachments(writer, call->message, result);
    }
}

/* Opens the part of a call and writes its members up to the state. */
static bool open_call(struct wal__model_writer *writer,
                      struct wal__opencode_call *call)
{
    struct wal__json_out *out = &writer->out;

    if (call->raw.size > 0) {
        if (!wal__opencode_select_file(writer, "storage/part/", call->message,
                                       wal__opencode_id_span(call->part))) {
            return false;
        }
        wal__json_out_open(out, '{');
        wal__json_out_members(out, call->raw);
        return true;
    }
    if (!open_part(writer, call->message, call->part, "tool")) {
        return false;
    }
    wal__json_out_member(out, "callID", wal__model_or(call->id, "\"\""));
    wal__json_out_member(out, "tool", wal__model_or(call->name, "\"\""));
    return true;
}

/* Writes the part of a call, with its result unless that is NULL. */
static bool write_tool(struct wal__model_writer *writer,
                       struct wal__opencode_call *call,
                       const struct wal__model_item *result,
                       const struct result_place *place)
{
    struct wal__json_out *out = &writer->out;

    if (!open_call(writer, call)) {
        return false;
    }
    wal__json_out_member_open(out, "state", '{');
    wal__json_out_member_str(out, "status",
                             result == NULL
                                 ? "pending"
                                 : (result->is_error ? "error" : "completed"));
    wal__content_write_arguments(out, "input", call->arguments);
    if (result == NULL) {
        /* The client refuses a pending call without it. */
        wal__json_out_member_str(out, "raw", "");
    } else {
        write_state(writer, call, result, place);
    }
    wal__json_out_close(out, '}');
    return wal__opencode_close_part(writer);
}

static bool is_same(struct wal__json_span a, struct wal__json_span b)
{
    return a.size == b.size &&
           (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* The call of a result: the first one of the newest message that has one.
 * Returns call_count if there is none. */
static size_t find_call(const struct wal__opencode_writer *state,
                        const struct wal__model_item *result)
{
    size_t found = state->call_count;

    for (size_t i = state->call_count; result->call.size > 2 && i > 0; i--) {
        const struct wal__opencode_call *call = &state->calls[i - 1];
        if (found < state->call_count &&
            memcmp(call->message, state->calls[found].message,
                   sizeof(call->message)) != 0) {
            break;
        }
        if (is_same(call->id, result->call) &&
            (result->name.size == 0 || is_same(call->name, result->name))) {
            found = i - 1;
        }
    }
    return found;
}

bool wal__opencode_has_call(const struct wal__opencode_writer *state,
                            const struct wal__model_item *result)
{
    return find_call(state, result) < state->call_count;
}

/* Whether results are read in this order without a mark: a reader emits those
 * of a message after it, in the order of their parts. */
static bool is_in_place(const struct wal__opencode_writer *state,
                        const struct wal__opencode_call *call)
{
    return memcmp(call->message, state->message, sizeof(call->message)) == 0 &&
           memcmp(call->part, state->last_result, sizeof(call->part)) > 0;
}

bool wal__opencode_write_result(struct wal__model_writer *writer,
                                const struct wal__model_item *result)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__opencode_call call = {.id = result->call, .name = result->name};
    size_t at = find_call(state, result);
    struct result_place place = {.is_orphan = at == state->call_count};

    if (place.is_orphan) {
        memcpy(call.message, state->message, sizeof(call.message));
        call.time = state->time;
    } else {
        call = state->calls[at];
        memmove(&state->calls[at], &state->calls[at + 1],
                (state->call_count - at - 1) * sizeof(call));
        state->call_count--;
        place.after = is_in_place(state, &call) ? NULL : state->previous;
    }
    if (!write_tool(writer, &call, result, &place)) {
        return false;
    }
    if (place.after == NULL) {
        memcpy(state->last_result, call.part, sizeof(call.part));
    }
    memcpy(state->previous, call.part, sizeof(call.part));
    return true;
}

bool wal__opencode_add_call(struct wal__model_writer *writer,
                            const struct wal__opencode_call *call)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__opencode_call *added;
    struct wal__opencode_call *calls =
        wal__arena_grow(writer->arena, state->calls, state->call_count,
                        &state->call_capacity, sizeof(calls[0]));

    if (calls == NULL) {
        return false;
    }
    state->calls = calls;
    added = &state->calls[state->call_count++];
    *added = *call;
    added->id = wal__arena_copy(writer->arena, call->id);
    added->name = wal__arena_copy(writer->arena, call->name);
    added->arguments = wal__arena_copy(writer->arena, call->arguments);
    if (call->raw.size > 0) {
        added->raw = wal__arena_copy(writer->arena, call->raw);
    }
    return true;
}

static bool write_call(struct wal__model_writer *writer,
                       const struct wal__model_block *block)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__opencode_call call = {.id = block->id,
                                      .name = block->name,
                                      .arguments = block->arguments,
                                      .time = state->time};

    memcpy(call.message, state->message, sizeof(call.message));
    return wal__opencode_add_call(writer, &call) &&
           write_tool(writer, &state->calls[state->call_count - 1], NULL, NULL);
}

bool wal__opencode_write_block(struct wal__model_writer *writer,
                               const struct wal__model_item *item,
                               const struct wal__model_block *block)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    char id[WAL__OPENCODE_ID_SIZE] = "";

    switch (block->kind) {
    case WAL__BLOCK_TOOL_CALL:
        return write_call(writer, block);
    case WAL__BLOCK_TEXT:
        if (!wal__opencode_open_part(writer, id, "text")) {
            return false;
        }
        wal__json_out_member(out, "text", block->text);
        if (item->is_meta || item->role == WAL__ROLE_SYSTEM) {
            wal__json_out_member_bool(out, "synthetic", true);
        }
        break;
    case WAL__BLOCK_THINKING:
        if (!wal__opencode_open_part(writer, id, "reasoning")) {
            return false;
        }
        wal__json_out_member(out, "text", wal__model_or(block->text, "\"\""));
        write_signature(out, block);
        wal__opencode_write_time(out, "start", state->time, "end", state->time);
        break;
    case WAL__BLOCK_IMAGE:
        if (!wal__opencode_open_part(writer, id, "file")) {
            return false;
        }
        write_image(out, block);
        break;
    case WAL__BLOCK_RAW:
        if (!wal__opencode_open_part(writer, id, NULL)) {
            return false;
        }
        wal__json_out_members(out, block->raw);
        break;
    }
    return wal__opencode_close_part(writer);
}
