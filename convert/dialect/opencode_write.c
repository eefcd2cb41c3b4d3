/*
 * opencode_write.c - writes sessions as OpenCode's storage.
 *
 * An item is a message, its blocks are parts, each a file. A call is written without a result
 * first, and again with its result, whenever that comes, in whichever message the call is: the
 * client knows one part for both. A result names what it follows if that is not its place. A result
 * without a call is a part of a separate message, marked so that it is not read as a call. A
 * message {info, parts} and a session {info, messages} are the one-file form of the client's
 * exports.
 *
 * Invariant: file names, ids and references agree; generated ids sort in the order of the items.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/dialect/opencode.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- ids ----------------------------------------------------------------- */

/* Writes an id, with quotes. `prefix` has four characters. */
static void opencode_id_make(char id[WAL__OPENCODE_ID_SIZE], const char *prefix, uint64_t number,
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
    WAL__ASSERT(at == WAL__OPENCODE_ID_SIZE - 1);
}

bool wal__opencode_is_id(struct wal__json_span id, const char *prefix)
{
    if (id.size != WAL__OPENCODE_ID_SIZE || memcmp(id.data + 1, prefix, 4) != 0) {
        return false;
    }
    for (size_t i = 5; i < 31; i++) {
        uint8_t byte = id.data[i];
        bool is_letter = (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z');
        bool is_hex = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f');
        if (!is_hex && (i < 17 || !is_letter)) {
            return false;
        }
    }
    return true;
}

/* Returns the number of a valid id. */
static uint64_t opencode_id_number(struct wal__json_span id)
{
    uint64_t number = 0;

    WAL__ASSERT(id.size == WAL__OPENCODE_ID_SIZE);
    for (size_t i = 5; i < 17; i++) {
        uint8_t byte = id.data[i];
        number = number << 4 | (uint64_t)(byte <= '9' ? byte - '0' : byte - 'a' + 10);
    }
    return number;
}

/* Returns what distinguishes the id from others with its number, which depends on the messages
 * before. */
static struct wal__json_span id_tail(struct wal__json_span id)
{
    return wal__opencode_is_id(id, "msg_") ? (struct wal__json_span){id.data + 17, 14} : id;
}

/* Returns the id as a span, with quotes. */
static struct wal__json_span opencode_id_span(const char id[WAL__OPENCODE_ID_SIZE])
{
    return (struct wal__json_span){(const uint8_t *)id, WAL__OPENCODE_ID_SIZE};
}

bool wal__opencode_has_result(struct wal__json_span status)
{
    return wal__model_text_is(status, "completed") || wal__model_text_is(status, "success") ||
           wal__model_text_is(status, "error");
}

/* --- parts --------------------------------------------------------------- */

/* A call without a result. */
struct opencode_call {
    struct wal__json_span id;
    struct wal__json_span name;
    struct wal__json_span arguments;
    char message[WAL__OPENCODE_ID_SIZE]; /* that it belongs to */
    char part[WAL__OPENCODE_ID_SIZE];    /* empty: not written */
    int64_t time;                        /* of the message */
    /* The part as read, without its state; or empty. */
    struct wal__json_span raw;
};

struct opencode_writer {
    /* The documents are those of another session, as in a fork: no id of them is kept, because the
     * client keeps messages and parts of all sessions by their ids. */
    bool is_copy;
    /* They are this session's: its messages are as the client wrote them. */
    bool is_own;
    char session[WAL__OPENCODE_ID_SIZE];
    char message[WAL__OPENCODE_ID_SIZE]; /* the last one */
    char user[WAL__OPENCODE_ID_SIZE];    /* the last one of a user */
    /* The ids that messages were written under, by hash of the ids that they had: what answers
     * name. */
    struct wal__model_table messages;
    uint64_t last_message; /* numbers of the last ids */
    uint64_t last_part;
    struct opencode_call *calls; /* without a result, in order */
    size_t call_count;
    size_t call_capacity;
    /* The message or part that was written last: what a result that is read out of its place
     * follows. */
    char previous[WAL__OPENCODE_ID_SIZE];
    /* The last part of this message that got a result; or empty. */
    char last_result[WAL__OPENCODE_ID_SIZE];
    int64_t time; /* of the last message */
    struct wal__json_span provider;
    struct wal__json_span model;
};

/* Returns the number of the next id: from its time, and greater than *last, which it updates. */
static uint64_t opencode_next_number(uint64_t *last, int64_t ms)
{
    uint64_t number = ms > 0 ? (uint64_t)ms << 12 & 0xFFFFFFFFFFFF : 0;

    *last = number > *last ? number : *last + 1;
    return *last;
}

/* Appends `above` and an id to a path. */
static void opencode_path_add(struct wal__model_path *path, const char *above,
                              struct wal__json_span id)
{
    wal__model_path_add(path, above);
    wal__model_path_add_id(path, id);
}

/* Selects the file of an id for the following output. This and the functions below return false if
 * there is no memory or the output failed. */
static bool opencode_select_file(struct wal__model_writer *writer, const char *above,
                                 const char folder[WAL__OPENCODE_ID_SIZE], struct wal__json_span id)
{
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    opencode_path_add(&path, above, opencode_id_span(folder));
    opencode_path_add(&path, "/", id);
    wal__model_path_add(&path, ".json");
    return path.text != NULL && wal__model_write_file(writer, path.text, WAL__OUTPUT_DOCUMENT);
}

/* Returns a time in milliseconds; that of the last message if it is invalid. */
static int64_t opencode_time_ms(const struct opencode_writer *state, struct wal__json_span time)
{
    int64_t ms = state->time;

    (void)wal__model_time_read(time, &ms);
    return ms;
}

/* Writes the member "time" with one or two keys; `second` may be NULL. */
static void opencode_write_time(struct wal__json_out *out, const char *first, int64_t ms,
                                const char *second, int64_t end)
{
    wal__json_out_member_open(out, "time", '{');
    wal__json_out_member_int(out, first, ms);
    if (second != NULL) {
        wal__json_out_member_int(out, second, end);
    }
    wal__json_out_close(out, '}');
}

/* The hash of a message's id in the place of one that it cannot have. */
static uint64_t made_hash(struct wal__json_span id, const char session[WAL__OPENCODE_ID_SIZE])
{
    return wal__model_hash(wal__model_hash(0, id_tail(id)), opencode_id_span(session));
}

/* Whether the next message can have the id: the client sorts by ids. */
static bool sorts_after(const struct opencode_writer *state, struct wal__json_span id)
{
    bool is_first = state->message[1] == 's'; /* the session's id */

    return wal__opencode_is_id(id, "msg_") &&
           (is_first || memcmp(id.data, state->message, id.size) > 0);
}

/* Records under which id a message is written. */
static bool keep_message_id(struct wal__model_writer *writer, struct wal__json_span id)
{
    struct opencode_writer *state = writer->state;
    struct wal__json_span written =
        wal__arena_copy(writer->arena, opencode_id_span(state->message));

    return written.data != NULL &&
           wal__model_table_put(&state->messages,
                                wal__model_string_hash(0, id.size > 0 ? id : written), written);
}

/* Begins the next message: determines its id, and selects its file. The id is the given one unless
 * it is of another session (`is_copy`), or the client does not sort it after the last message's. */
static bool opencode_begin_message(struct wal__model_writer *writer, struct wal__json_span id,
                                   bool is_copy, struct wal__json_span time)
{
    struct opencode_writer *state = writer->state;

    state->time = opencode_time_ms(state, time);
    state->last_result[0] = '\0';
    if (!is_copy && sorts_after(state, id)) {
        memcpy(state->message, id.data, WAL__OPENCODE_ID_SIZE);
        state->last_message = opencode_id_number(id);
    } else {
        opencode_id_make(state->message, "msg_",
                         opencode_next_number(&state->last_message, state->time),
                         made_hash(id, state->session));
    }
    memcpy(state->previous, state->message, WAL__OPENCODE_ID_SIZE);
    if (!keep_message_id(writer, id)) {
        return false;
    }
    return opencode_select_file(writer, "storage/message/", state->session,
                                opencode_id_span(state->message));
}

/* Generates the id of a part of the last message. */
static void opencode_make_part_id(struct opencode_writer *state, char id[WAL__OPENCODE_ID_SIZE])
{
    uint64_t number = opencode_next_number(&state->last_part, state->time);

    opencode_id_make(id, "prt_", number, wal__model_hash(number, opencode_id_span(state->message)));
}

/* Opens a part of the message and writes its members up to the type, which may be NULL. An empty id
 * is generated. */
static bool open_part(struct wal__model_writer *writer, const char message[WAL__OPENCODE_ID_SIZE],
                      char id[WAL__OPENCODE_ID_SIZE], const char *type)
{
    struct opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;

    if (id[0] == '\0') {
        opencode_make_part_id(state, id);
    }
    if (!opencode_select_file(writer, "storage/part/", message, opencode_id_span(id))) {
        return false;
    }
    wal__model_print(out, "{'id':%,'sessionID':%,'messageID':%", opencode_id_span(id),
                     opencode_id_span(state->session), opencode_id_span(message));
    if (type != NULL) {
        wal__json_out_member_str(out, "type", type);
    }
    return true;
}

static bool opencode_close_part(struct wal__model_writer *writer)
{
    wal__json_out_close(&writer->out, '}');
    return !writer->out.has_failed;
}

/* Writes mime and url of an image. */
static void write_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    static const struct wal__json_span png = {(const uint8_t *)"image/png", 9};

    wal__json_out_member_text(out, "mime", block->media.size > 0 ? block->media : png);
    wal__content_write_url(out, "url", block);
}

static void write_signature(struct wal__json_out *out, const struct wal__model_block *block)
{
    if (block->signature.size == 0) {
        return;
    }
    wal__model_print(out,
                     block->is_redacted ? "'metadata':{'anthropic':{'redactedData':%}}"
                                        : "'metadata':{'anthropic':{'signature':%}}",
                     block->signature);
}

/* Whether the content is the client's form of a result: an optional text, then images. */
static bool is_simple(const struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        if (block->kind != WAL__BLOCK_IMAGE && (i > 0 || block->kind != WAL__BLOCK_TEXT)) {
            return false;
        }
    }
    return true;
}

/* An image in a result that is not in the client's form. */
static void write_result_image(struct wal__json_out *out, const struct wal__model_block *block)
{
    wal__model_print(out, "'type':'image','data':$,'mimeType':$,'url':?", block->data, block->media,
                     block->url);
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
    struct opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    bool is_open = false;

    for (size_t i = 0; i < item->block_count; i++) {
        char id[WAL__OPENCODE_ID_SIZE];
        if (item->blocks[i].kind != WAL__BLOCK_IMAGE) {
            continue;
        }
        wal__model_put(out, is_open ? "" : "'attachments':[");
        is_open = true;
        opencode_make_part_id(state, id);
        wal__model_print(out, "{'id':%,'sessionID':%,'messageID':%,'type':'file'",
                         opencode_id_span(id), opencode_id_span(state->session),
                         opencode_id_span(message));
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

static void write_metadata(struct wal__json_out *out, const struct wal__model_item *result,
                           const struct result_place *place, bool has_content)
{
    wal__model_put(out, place->is_orphan ? "'metadata':{'walconvAlone':true" : "'metadata':{");
    if (place->after != NULL) {
        wal__json_out_member(out, "walconvAfter", opencode_id_span(place->after));
    }
    if (has_content) {
        wal__content_write_blocks(out, "walconvContent", &result_form, result->blocks,
                                  result->block_count);
    }
    wal__json_out_close(out, '}');
}

static void write_state(struct wal__model_writer *writer, const struct opencode_call *call,
                        const struct wal__model_item *result, const struct result_place *place)
{
    struct wal__json_out *out = &writer->out;
    bool has_content = !is_simple(result) || (result->is_error && result->block_count > 1);
    int64_t end = opencode_time_ms(writer->state, result->time);

    wal__content_write_texts(out, result->is_error ? "error" : "output", result->blocks,
                             result->block_count, "\n", false);
    wal__json_out_member_str(out, "title", "");
    write_metadata(out, result, place, has_content);
    opencode_write_time(out, "start", call->time, "end", end);
    if (!has_content) {
        write_attachments(writer, call->message, result);
    }
}

/* Opens the part of a call and writes its members up to the state. */
static bool open_call(struct wal__model_writer *writer, struct opencode_call *call)
{
    struct wal__json_out *out = &writer->out;

    if (call->raw.size > 0) {
        if (!opencode_select_file(writer, "storage/part/", call->message,
                                  opencode_id_span(call->part))) {
            return false;
        }
        wal__json_out_open(out, '{');
        wal__json_out_members(out, call->raw);
        return true;
    }
    if (!open_part(writer, call->message, call->part, "tool")) {
        return false;
    }
    wal__model_print(out, "'callID':%,'tool':%", wal__model_or(call->id, "\"\""),
                     wal__model_or(call->name, "\"\""));
    return true;
}

/* Writes the part of a call, with its result unless that is NULL. */
static bool write_tool(struct wal__model_writer *writer, struct opencode_call *call,
                       const struct wal__model_item *result, const struct result_place *place)
{
    struct wal__json_out *out = &writer->out;

    if (!open_call(writer, call)) {
        return false;
    }
    wal__model_print(out, "'state':{'status':$",
                     wal__model_literal(result == NULL     ? "pending"
                                        : result->is_error ? "error"
                                                           : "completed"));
    wal__content_write_arguments(out, "input", call->arguments);
    if (result == NULL) {
        /* The client refuses a pending call without it. */
        wal__json_out_member_str(out, "raw", "");
    } else {
        write_state(writer, call, result, place);
    }
    wal__json_out_close(out, '}');
    return opencode_close_part(writer);
}

/* The call of a result: the first one of the newest message that has one. Returns call_count if
 * there is none. */
static size_t find_call(const struct opencode_writer *state, const struct wal__model_item *result)
{
    size_t found = state->call_count;

    for (size_t i = state->call_count; result->call.size > 2 && i > 0; i--) {
        const struct opencode_call *call = &state->calls[i - 1];
        if (found < state->call_count &&
            memcmp(call->message, state->calls[found].message, sizeof(call->message)) != 0) {
            break;
        }
        if (wal__json_span_equal(call->id, result->call) &&
            (result->name.size == 0 || wal__json_span_equal(call->name, result->name))) {
            found = i - 1;
        }
    }
    return found;
}

/* Writes a result into the part of its call, which may be in any message; or as a part of the last
 * message if no call waits for it. The order of results survives. */
static bool opencode_write_result(struct wal__model_writer *writer,
                                  const struct wal__model_item *result)
{
    struct opencode_writer *state = writer->state;
    struct opencode_call call = {.id = result->call, .name = result->name};
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
        /* Read in this order without a mark: a reader emits the results of a message after it, in
         * the order of their parts. */
        place.after = (memcmp(call.message, state->message, sizeof(call.message)) == 0 &&
                       memcmp(call.part, state->last_result, sizeof(call.part)) > 0)
                          ? NULL
                          : state->previous;
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

/* Records a call whose part was written; its spans are copied. */
static bool opencode_add_call(struct wal__model_writer *writer, const struct opencode_call *call)
{
    struct opencode_writer *state = writer->state;
    struct opencode_call *added;
    struct opencode_call *calls = wal__arena_grow(writer->arena, state->calls, state->call_count,
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

static bool write_call(struct wal__model_writer *writer, const struct wal__model_block *block)
{
    struct opencode_writer *state = writer->state;
    struct opencode_call call = {
        .id = block->id, .name = block->name, .arguments = block->arguments, .time = state->time};

    memcpy(call.message, state->message, sizeof(call.message));
    return opencode_add_call(writer, &call) &&
           write_tool(writer, &state->calls[state->call_count - 1], NULL, NULL);
}

/* Writes the part of a block, and records a call for its result. */
static bool opencode_write_block(struct wal__model_writer *writer,
                                 const struct wal__model_item *item,
                                 const struct wal__model_block *block)
{
    static const char *const types[] = {[WAL__BLOCK_TEXT] = "text",
                                        [WAL__BLOCK_THINKING] = "reasoning",
                                        [WAL__BLOCK_IMAGE] = "file",
                                        [WAL__BLOCK_RAW] = NULL};
    struct opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    char id[WAL__OPENCODE_ID_SIZE] = "";

    if (block->kind == WAL__BLOCK_TOOL_CALL) {
        return write_call(writer, block);
    }
    if (!open_part(writer, state->message, id, types[block->kind])) {
        return false;
    }
    switch (block->kind) {
    case WAL__BLOCK_TEXT:
        wal__json_out_member(out, "text", block->text);
        if (item->is_meta || item->role == WAL__ROLE_SYSTEM) {
            wal__json_out_member_bool(out, "synthetic", true);
        }
        break;
    case WAL__BLOCK_THINKING:
        wal__json_out_member(out, "text", wal__model_or(block->text, "\"\""));
        write_signature(out, block);
        opencode_write_time(out, "start", state->time, "end", state->time);
        break;
    case WAL__BLOCK_IMAGE:
        write_image(out, block);
        break;
    case WAL__BLOCK_RAW:
        wal__json_out_members(out, block->raw);
        break;
    case WAL__BLOCK_TOOL_CALL:
        break;
    }
    return opencode_close_part(writer);
}

/* --- messages in one piece ----------------------------------------------- */

/* Writes a document, with the members of `ids` where they differ. */
static bool write_document(struct wal__model_writer *writer, struct wal__json_span value,
                           const struct wal__json_override *ids, size_t count)
{
    bool is_changed = false;

    for (size_t i = 0; i < count; i++) {
        is_changed |= !wal__json_span_equal(wal__model_string(value, ids[i].key), ids[i].json);
    }
    if (is_changed) {
        wal__json_out_overridden(&writer->out, value, ids, count);
    } else {
        wal__json_out_bytes(&writer->out, value.data, value.size);
    }
    return !writer->out.has_failed;
}

/* Records the call of a part without a result, which may come later. `ids`: three members that the
 * part has. */
static bool keep_call(struct wal__model_writer *writer, struct wal__json_span part,
                      const struct wal__json_override ids[3])
{
    enum { TYPE, CALL, TOOL, STATUS, INPUT, COUNT };
    struct wal__json_member members[COUNT] = {[TYPE] = {.key = "type"},
                                              [CALL] = {.key = "callID"},
                                              [TOOL] = {.key = "tool"},
                                              [STATUS] = {.parent = "state", .key = "status"},
                                              [INPUT] = {.parent = "state", .key = "input"}};
    const struct wal__json_override other[4] = {ids[0], ids[1], ids[2], {.key = "state"}};
    struct opencode_writer *state = writer->state;
    struct wal__json_memory text = {.capacity = part.size + 3 * WAL__OPENCODE_ID_SIZE};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};
    struct opencode_call call = {.time = state->time};

    if (wal__model_members(part, members, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    if (!wal__line_string_is(&members[TYPE], "tool") ||
        wal__opencode_has_result(wal__member_string(&members[STATUS]))) {
        return true;
    }
    text.data = wal__arena_alloc(writer->scratch, text.capacity);
    if (text.data == NULL) {
        return false;
    }
    wal__json_out_overridden(&out, part, other, 4);
    call.id = wal__member_string(&members[CALL]);
    call.name = wal__member_string(&members[TOOL]);
    call.arguments = wal__content_unwrap_arguments(members[INPUT].value.span);
    call.raw = (struct wal__json_span){text.data, text.size};
    memcpy(call.message, state->message, sizeof(call.message));
    memcpy(call.part, ids[2].json.data, ids[2].json.size);
    return !out.has_failed && opencode_add_call(writer, &call);
}

/* Adds the white space around a value in a text. */
static struct wal__json_span with_space(struct wal__json_span value, struct wal__json_span text)
{
    const uint8_t *begin = value.data;
    const uint8_t *end = value.data + value.size;

    while (begin > text.data && memchr(" \t\r\n", begin[-1], 4) != NULL) {
        begin--;
    }
    while (end < text.data + text.size && memchr(" \t\r\n", *end, 4) != NULL) {
        end++;
    }
    return (struct wal__json_span){begin, (size_t)(end - begin)};
}

/* Writes a part of a message, `message`. */
static bool write_part(struct wal__model_writer *writer, bool is_copy, struct wal__json_span value,
                       struct wal__json_span message)
{
    struct opencode_writer *state = writer->state;
    struct wal__json_override ids[3] = {{"sessionID", opencode_id_span(state->session)},
                                        {"messageID", opencode_id_span(state->message)},
                                        {"id", wal__model_string(value, "id")}};
    char made[WAL__OPENCODE_ID_SIZE];

    if (is_copy || !wal__opencode_is_id(ids[2].json, "prt_")) {
        opencode_make_part_id(state, made);
        ids[2].json = opencode_id_span(made);
    }
    return opencode_select_file(writer, "storage/part/", state->message, ids[2].json) &&
           write_document(writer, with_space(value, message), ids, 3) &&
           keep_call(writer, value, ids);
}

/* The message that an answer names, under the id that it was written with. An answer of another
 * session, or one to a message that is not written, names the last one of a user. */
static struct wal__json_span parent_of(const struct opencode_writer *state,
                                       struct wal__json_span named, bool is_own)
{
    struct wal__json_span written;

    if (named.size > 0 &&
        wal__model_table_get(&state->messages, wal__model_string_hash(0, named), &written)) {
        return written;
    }
    return named.size == 0 || state->user[0] == '\0' || is_own ? named
                                                               : opencode_id_span(state->user);
}

/* Writes the info of a message, `message`. Sets *is_copy: the message is of another session. */
static bool write_info(struct wal__model_writer *writer, struct wal__json_span value,
                       struct wal__json_span message, bool *is_copy)
{
    enum { ID, SESSION, ROLE, PARENT, CREATED, COUNT };
    struct wal__json_member members[COUNT] = {[ID] = {.key = "id"},
                                              [SESSION] = {.key = "sessionID"},
                                              [ROLE] = {.key = "role"},
                                              [PARENT] = {.key = "parentID"},
                                              [CREATED] = {.parent = "time", .key = "created"}};
    struct opencode_writer *state = writer->state;
    struct wal__json_override ids[3] = {{.key = "id"}, {.key = "sessionID"}, {.key = "parentID"}};
    bool is_user;

    if (wal__model_members(value, members, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    ids[1].json = wal__member_string(&members[SESSION]);
    *is_copy = ids[1].json.size == 0 ? state->is_copy
                                     : !wal__json_string_equals(ids[1].json, state->session + 1,
                                                                sizeof(state->session) - 2);
    if (!opencode_begin_message(writer, wal__member_string(&members[ID]), *is_copy,
                                members[CREATED].value.span)) {
        return false;
    }
    is_user = wal__line_string_is(&members[ROLE], "user");
    ids[0].json = opencode_id_span(state->message);
    ids[1].json = opencode_id_span(state->session);
    ids[2].json =
        parent_of(state, wal__member_string(&members[PARENT]), !*is_copy && state->is_own);
    if (is_user) {
        memcpy(state->user, state->message, sizeof(state->user));
    }
    return write_document(writer, with_space(value, message), ids,
                          is_user || ids[2].json.size == 0 ? 2 : 3);
}

/* Writes a message, {info, parts}, into its files. The documents keep their bytes, except for ids
 * that the storage cannot have. False: no memory, or the output failed. */
static bool opencode_write_raw(struct wal__model_writer *writer, struct wal__json_span message)
{
    struct wal__json_member members[2] = {{.key = "info"}, {.key = "parts"}};
    struct wal__json_token part;
    struct wal__json_scan scan;
    bool is_copy;

    if (wal__model_members(message, members, 2, NULL) != WAL__JSON_OK ||
        !write_info(writer, members[0].value.span, message, &is_copy)) {
        return false;
    }
    wal__model_array_begin(&scan, members[1].value.span);
    while (wal__model_array_next(&scan, &part)) {
        if (!write_part(writer, is_copy, part.span, message)) {
            return false;
        }
    }
    return true;
}

/* --- exports ------------------------------------------------------------- */

/*
 * The client takes a file only with all members that its present version writes. Documents of older
 * ones lack some, for which there are the defaults below.
 */
struct export
{
    const struct wal__model_documents *documents;
    struct wal__json_out *out;
    uint8_t user[WAL__MODEL_ID_SIZE]; /* id of the last message of a user, with quotes */
    size_t user_size;
};

struct default_member {
    const char *key;
    const char *json; /* with ' instead of quotes */
};

static const struct default_member session_defaults[] = {
    {"slug", "'session'"}, {"version", "'1.0.0'"}, {"title", "''"}, {NULL, NULL}};
static const struct default_member user_defaults[] = {
    {"agent", "'build'"}, {"model", "{'providerID':'unknown','modelID':'unknown'}"}, {NULL, NULL}};
static const struct default_member assistant_defaults[] = {
    {"modelID", "'unknown'"},
    {"providerID", "'unknown'"},
    {"mode", "'build'"},
    {"agent", "'build'"},
    {"path", "{'cwd':'/','root':'/'}"},
    {"cost", "0"},
    {"tokens", "{'input':0,'output':0,'reasoning':0,'cache':{'read':0,'write':0}}"},
    {NULL, NULL}};
static const struct default_member step_defaults[] = {{"reason", "'stop'"}, {NULL, NULL}};

static bool lacks(struct wal__json_span object, const char *key)
{
    struct wal__json_member member = {.key = key};

    return wal__json_members(object.data, object.size, &member, 1, NULL) == WAL__JSON_OK &&
           member.value.kind == WAL__JSON_NONE;
}

/* Writes the members of an object, and those of the defaults that it lacks. */
static void write_completed(struct wal__json_out *out, struct wal__json_span object,
                            const struct default_member *defaults)
{
    wal__json_out_members(out, object);
    for (; defaults->key != NULL; defaults++) {
        if (lacks(object, defaults->key)) {
            wal__json_out_key(out, defaults->key);
            wal__model_put(out, defaults->json);
        }
    }
}

static bool join_info(void *ctx, const char *key, struct wal__json_span value)
{
    struct export *export = ctx;

    (void)key;
    wal__json_out_member_open(export->out, "info", '{');
    write_completed(export->out, value, session_defaults);
    wal__json_out_close(export->out, '}');
    return true;
}

static bool join_part(void *ctx, const char *key, struct wal__json_span value)
{
    struct wal__json_member type = {.key = "type"};
    struct export *export = ctx;
    bool is_step = wal__json_members(value.data, value.size, &type, 1, NULL) == WAL__JSON_OK &&
                   wal__line_string_is(&type, "step-finish");

    (void)key;
    wal__json_out_open(export->out, '{');
    write_completed(export->out, value, is_step ? step_defaults : step_defaults + 1 /* none */);
    wal__json_out_close(export->out, '}');
    return true;
}

static void join_message_info(struct export *export, struct wal__json_span value)
{
    struct wal__json_member members[] = {{.key = "id"}, {.key = "role"}};
    bool is_user = wal__json_members(value.data, value.size, members, 2, NULL) == WAL__JSON_OK &&
                   wal__line_string_is(&members[1], "user");

    wal__json_out_member_open(export->out, "info", '{');
    write_completed(export->out, value, is_user ? user_defaults : assistant_defaults);
    if (is_user && members[0].value.span.size <= sizeof(export->user)) {
        memcpy(export->user, members[0].value.span.data, members[0].value.span.size);
        export->user_size = members[0].value.span.size;
    } else if (!is_user && lacks(value, "parentID")) {
        wal__json_out_member(export->out, "parentID",
                             (struct wal__json_span){export->user, export->user_size});
    }
    wal__json_out_close(export->out, '}');
}

static bool join_message(void *ctx, const char *key, struct wal__json_span value)
{
    static const char above[] = "storage/part/";
    struct export *export = ctx;
    const char *id = strrchr(key, '/') + 1;
    /* Ids that the writer makes or accepts are all of one size. */
    const size_t id_size = WAL__OPENCODE_ID_SIZE - 2;
    char prefix[sizeof(above) + WAL__OPENCODE_ID_SIZE];
    bool is_read;

    memcpy(prefix, above, sizeof(above) - 1);
    memcpy(prefix + sizeof(above) - 1, id, id_size);
    memcpy(prefix + sizeof(above) - 1 + id_size, "/", 2);
    wal__json_out_open(export->out, '{');
    join_message_info(export, value);
    wal__json_out_member_open(export->out, "parts", '[');
    is_read = export->documents->scan(export->documents->ctx, prefix, join_part, export);
    wal__json_out_close(export->out, ']');
    wal__json_out_close(export->out, '}');
    return is_read;
}

/* wal__dialect_write_ops.join */
static bool opencode_join(const struct wal__model_documents *documents, struct wal__json_out *out)
{
    struct export export = {.documents = documents, .out = out, .user = "\"\"", .user_size = 2};
    bool is_read;

    wal__json_out_open(out, '{');
    is_read = documents->scan(documents->ctx, "storage/session/", join_info, &export);
    wal__json_out_member_open(out, "messages", '[');
    is_read = is_read && documents->scan(documents->ctx, "storage/message/", join_message, &export);
    wal__json_out_close(out, ']');
    wal__json_out_close(out, '}');
    return is_read && !out->has_failed;
}

/* --- ids ----------------------------------------------------------------- */

static bool opencode_is_id(struct wal__json_span id)
{
    return wal__opencode_is_id(id, "msg_") || wal__opencode_is_id(id, "prt_");
}

static size_t opencode_make_id(const struct wal__model_writer *writer,
                               const struct wal__model_item *item, const uint64_t hash[2],
                               char id[WAL__MODEL_ID_SIZE])
{
    struct opencode_writer *state = writer->state;
    int64_t ms = 0;

    if (item == NULL || state == NULL) {
        opencode_id_make(id, "msg_", 0, hash[0]);
        return WAL__OPENCODE_ID_SIZE;
    }
    (void)wal__model_time_read(item->time, &ms);
    opencode_id_make(id, "msg_", opencode_next_number(&state->last_message, ms), hash[0]);
    return WAL__OPENCODE_ID_SIZE;
}

/* Determines a session's id; ids of later sessions sort first. */
static void make_session_id(struct wal__json_span own, struct wal__json_span time,
                            char id[WAL__OPENCODE_ID_SIZE])
{
    int64_t ms = 0;

    if (wal__opencode_is_id(own, "ses_")) {
        memcpy(id, own.data, WAL__OPENCODE_ID_SIZE);
        return;
    }
    (void)wal__model_time_read(time, &ms);
    opencode_id_make(id, "ses_", ~((uint64_t)ms << 12) & 0xFFFFFFFFFFFF,
                     wal__model_string_hash(0, own));
}

static uint64_t opencode_message_key(struct wal__json_span id)
{
    if (id.size == WAL__OPENCODE_ID_SIZE - 2) {
        id = (struct wal__json_span){id.data + 16, 14};
    }
    return wal__model_hash(1, id);
}

static void opencode_item_keys(const struct wal__model_session *session, struct wal__json_span item,
                               uint64_t keys[2])
{
    char own[WAL__OPENCODE_ID_SIZE];
    char ids[2][WAL__OPENCODE_ID_SIZE];
    uint64_t hash[2];

    make_session_id(session->id, session->time, own);
    wal__model_hash_id(session, item, 0, hash);
    opencode_id_make(ids[0], "msg_", 0, hash[0]);
    if (opencode_is_id(item)) {
        memcpy(ids[0], item.data, sizeof(ids[0]));
    }
    opencode_id_make(ids[1], "msg_", 0,
                     made_hash(item.size > 0 ? opencode_id_span(ids[0]) : item, own));
    for (size_t i = 0; i < 2; i++) {
        keys[i] = opencode_message_key(wal__model_characters(opencode_id_span(ids[i])));
    }
}

/* --- files --------------------------------------------------------------- */

/* Returns the project if a folder can have its name; the path of a directory cannot be one. */
static struct wal__json_span project_of(const struct wal__model_session *session)
{
    static const char other[] = "/\\:";
    const struct wal__json_span none = {NULL, 0};
    struct wal__json_span project = session->project;

    for (size_t i = 0; i < sizeof(other) - 1; i++) {
        if (project.size > 0 && memchr(project.data, other[i], project.size) != NULL) {
            project = none;
        }
    }
    return wal__model_or(project, "\"global\"");
}

static const char *opencode_path(const struct wal__model_session *session, uint32_t stream,
                                 struct wal__arena *arena)
{
    struct wal__model_path path;
    char id[WAL__OPENCODE_ID_SIZE];

    (void)stream;
    make_session_id(session->id, session->time, id);
    wal__model_path_init(&path, arena);
    opencode_path_add(&path, "storage/session/", project_of(session));
    opencode_path_add(&path, "/", opencode_id_span(id));
    wal__model_path_add(&path, ".json");
    return path.text;
}

/* --- messages ------------------------------------------------------------ */

static void write_user(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;

    wal__model_put(out, "'role':'user'");
    opencode_write_time(out, "created", state->time, NULL, 0);
    wal__model_print(out, "'agent':'build','model':{'providerID':%,'modelID':%}",
                     wal__model_or(state->provider, "\"unknown\""),
                     wal__model_or(state->model, "\"unknown\""));
    if (item->role == WAL__ROLE_SYSTEM || item->is_meta) {
        wal__model_print(out, "'walconv':{'role':$,'name':?}",
                         wal__model_literal(item->role == WAL__ROLE_SYSTEM ? "system" : "meta"),
                         item->name);
    }
}

static void write_tokens(struct wal__model_writer *writer, struct wal__model_usage usage)
{
    struct wal__json_out *out = &writer->out;

    out->has_failed |= !wal__model_remove_reasoning(writer->scratch, &usage);
    wal__model_print(out,
                     "'cost':%,'tokens':{'input':%,'output':%,'reasoning':%,"
                     "'cache':{'read':%,'write':%}}",
                     wal__model_or(usage.cost, "0"), wal__model_or(usage.input, "0"),
                     wal__model_or(usage.output, "0"), wal__model_or(usage.reasoning, "0"),
                     wal__model_or(usage.cache_read, "0"), wal__model_or(usage.cache_write, "0"));
}

static void write_stop(struct wal__json_out *out, enum wal__stop_reason stop)
{
    static const char *const finishes[] = {[WAL__STOP_LENGTH] = "length",
                                           [WAL__STOP_TOOL] = "tool-calls",
                                           [WAL__STOP_REFUSAL] = "content-filter",
                                           [WAL__STOP_ERROR] = "error",
                                           [WAL__STOP_OTHER] = NULL};

    if (stop == WAL__STOP_ABORTED) {
        wal__model_put(out, "'error':{'name':'MessageAbortedError',"
                            "'data':{'message':'The operation was aborted.'}}");
    }
    wal__json_out_member_str(out, "finish", finishes[stop] != NULL ? finishes[stop] : "stop");
}

static void write_assistant(struct wal__model_writer *writer, const struct wal__model_item *item,
                            bool is_summary)
{
    struct opencode_writer *state = writer->state;
    struct wal__json_out *out = &writer->out;
    struct wal__json_span cwd = wal__model_or(writer->session->cwd, "\"/\"");

    wal__model_put(out, "'role':'assistant'");
    opencode_write_time(out, "created", state->time, "completed", state->time);
    wal__model_print(out,
                     "'parentID':%,'modelID':%,'providerID':%,'mode':'build','agent':'build',"
                     "'path':{'cwd':%,'root':%}",
                     opencode_id_span(state->user[0] != '\0' ? state->user : state->message),
                     wal__model_or(item->model, "\"unknown\""),
                     wal__model_or(item->provider, "\"unknown\""), cwd, cwd);
    write_tokens(writer, item->usage);
    wal__model_put(out, is_summary ? "'summary':true" : "");
    write_stop(out, item->stop);
}

/* Opens a message and writes the members up to the role. */
static bool open_message(struct wal__model_writer *writer, struct wal__json_span id,
                         struct wal__json_span time)
{
    struct opencode_writer *state = writer->state;

    if (!opencode_begin_message(writer, id, state->is_copy, time)) {
        return false;
    }
    wal__model_print(&writer->out, "{'id':%,'sessionID':%", opencode_id_span(state->message),
                     opencode_id_span(state->session));
    return true;
}

static bool write_message(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct opencode_writer *state = writer->state;

    if (!open_message(writer, item->id, item->time)) {
        return false;
    }
    if (item->role == WAL__ROLE_ASSISTANT) {
        write_assistant(writer, item, false);
    } else {
        write_user(writer, item);
        memcpy(state->user, state->message, sizeof(state->user));
    }
    wal__json_out_close(&writer->out, '}');
    for (size_t i = 0; i < item->block_count; i++) {
        if (!opencode_write_block(writer, item, &item->blocks[i])) {
            return false;
        }
    }
    return true;
}

static bool write_result(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct opencode_writer *state = writer->state;
    struct wal__model_item message = {.role = WAL__ROLE_ASSISTANT};

    if (find_call(state, item) >= state->call_count) {
        if (!open_message(writer, item->id, item->time)) {
            return false;
        }
        write_assistant(writer, &message, false);
        wal__json_out_close(&writer->out, '}');
    }
    return opencode_write_result(writer, item);
}

/* Writes a compaction: a user's message as a mark, the summary as an answer. */
static bool write_compaction(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct opencode_writer *state = writer->state;
    struct wal__model_item user = {.time = item->time};
    struct wal__model_item answer = {.role = WAL__ROLE_ASSISTANT};
    struct wal__model_block text = {.kind = WAL__BLOCK_TEXT,
                                    .text = wal__model_or(item->text, "\"\"")};
    char mark[WAL__OPENCODE_ID_SIZE] = "";

    /* The mark must sort before the answer, whose id is generated. In the storage of version 2 the
     * item is one message: the mark has its id, and is not another one when it is imported. */
    if (!open_message(writer, state->is_own ? item->id : (struct wal__json_span){NULL, 0},
                      item->time)) {
        return false;
    }
    write_user(writer, &user);
    wal__json_out_close(&writer->out, '}');
    memcpy(state->user, state->message, sizeof(state->user));
    if (!open_part(writer, state->message, mark, "compaction")) {
        return false;
    }
    wal__model_print(&writer->out, "'auto':true,'tail_start_id':?", item->target);
    if (!opencode_close_part(writer) ||
        !open_message(writer, (struct wal__json_span){NULL, 0}, item->time)) {
        return false;
    }
    write_assistant(writer, &answer, true);
    wal__json_out_close(&writer->out, '}');
    return opencode_write_block(writer, &answer, &text);
}

/* --- session ------------------------------------------------------------- */

/* Whether the session's own document is of another session. */
static bool is_copy(const struct wal__model_writer *writer, const struct opencode_writer *state)
{
    const struct wal__model_session *session = writer->session;

    return session->dialect == writer->dialect && session->raw.size > 0 &&
           !wal__json_string_equals(wal__model_string(session->raw, "id"), state->session + 1,
                                    sizeof(state->session) - 2);
}

static bool opencode_begin(struct wal__model_writer *writer)
{
    struct opencode_writer *state = writer->state;

    state->messages.arena = writer->arena;
    make_session_id(writer->session->id, writer->session->time, state->session);
    memcpy(state->message, state->session, WAL__OPENCODE_ID_SIZE);
    state->is_copy = is_copy(writer, state);
    state->is_own = !state->is_copy && writer->session->raw.size > 0 &&
                    writer->session->dialect == writer->dialect;
    (void)wal__model_time_read(writer->session->time, &state->time);
    state->provider = writer->session->provider;
    state->model = writer->session->model;
    return true;
}

static bool opencode_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    if (item->raw.size > 0) {
        return (item->raw_prefix.size == 0 || opencode_write_raw(writer, item->raw_prefix)) &&
               opencode_write_raw(writer, item->raw);
    }
    if (item->kind == WAL__ITEM_COMPACTION) {
        return write_compaction(writer, item);
    }
    if (item->kind != WAL__ITEM_MESSAGE) {
        return true;
    }
    return item->role == WAL__ROLE_TOOL ? write_result(writer, item) : write_message(writer, item);
}

/* The lists of tasks and of changed files are named after the session. Where there are some
 * already, they are newer. */
static const char *const kept_documents[] = {"todo/", "session_diff/", NULL};

static bool opencode_document(struct wal__model_writer *writer, const char *key,
                              struct wal__json_span value)
{
    const struct opencode_writer *state = writer->state;
    const char *name = strchr(key, '/');
    const size_t size = sizeof(state->session) - 2; /* without quotes */
    struct wal__model_path path;

    if (!state->is_own || name == NULL || strlen(++name) != size + 5 ||
        memcmp(name, state->session + 1, size) != 0 || strcmp(name + size, ".json") != 0) {
        return true;
    }
    wal__model_path_init(&path, writer->scratch);
    wal__model_path_add(&path, "storage/");
    wal__model_path_add(&path, key);
    if (path.text == NULL ||
        !wal__model_write_file(writer, path.text, WAL__OUTPUT_SHARED_DOCUMENT)) {
        return false;
    }
    wal__json_out_bytes(&writer->out, value.data, value.size);
    return !writer->out.has_failed;
}

/* Writes the session's project where there is none: the client finds sessions by their projects,
 * and a version that moves the storage to its database only takes in sessions whose project is
 * there. */
static bool write_project(struct wal__model_writer *writer, int64_t created)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_span project = project_of(session);
    bool is_global = wal__model_text_is(project, "global");
    struct wal__json_out *out = &writer->out;
    struct wal__model_path path;

    wal__model_path_init(&path, writer->scratch);
    opencode_path_add(&path, "storage/project/", project);
    wal__model_path_add(&path, ".json");
    if (path.text == NULL ||
        !wal__model_write_file(writer, path.text, WAL__OUTPUT_SHARED_DOCUMENT)) {
        return false;
    }
    wal__model_print(
        out, is_global ? "{'id':%,'worktree':%" : "{'id':%,'worktree':%,'vcs':'git'", project,
        is_global ? wal__model_literal("\"/\"") : wal__model_or(session->cwd, "\"/\""));
    opencode_write_time(out, "created", created, NULL, 0);
    wal__json_out_close(out, '}');
    return !out->has_failed;
}

/* Writes the session's own document; the log may have another title. */
static void write_own_session(struct wal__json_out *out, const struct wal__model_session *session)
{
    const struct wal__json_override title = {"title", session->title};
    struct wal__json_span own = wal__model_string(session->raw, "title");

    if (session->title.size > 0 && own.size > 0 &&
        !wal__json_characters_equal(own, session->title)) {
        wal__json_out_overridden(out, session->raw, &title, 1);
        return;
    }
    wal__json_out_bytes(out, session->raw.data, session->raw.size);
}

static bool opencode_end(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    const char *path = opencode_path(session, 0, writer->scratch);
    struct opencode_writer *state = writer->state;
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
    wal__model_print(out, "{'id':%,'slug':'session','version':'1.0.0','projectID':%,'directory':%",
                     opencode_id_span(state->session), project_of(session),
                     wal__model_or(session->cwd, "\"/\""));
    /* The client lists no session with a parent, so a fork has none. */
    if (session->starter.size > 0) {
        make_session_id(session->starter, session->starter_time, starter);
        wal__json_out_member(out, "parentID", opencode_id_span(starter));
    }
    wal__json_out_member(out, "title", wal__model_or(session->title, "\"New session\""));
    opencode_write_time(out, "created", created, "updated", updated);
    /* The client keeps it: what it goes on with is known by it. */
    if (session->id.size > 0) {
        wal__model_print(out, "'metadata':{'agentwal':%,'agentwalAs':%,'agentwalTitle':?}",
                         session->id, opencode_id_span(state->session), session->title);
    }
    wal__json_out_close(out, '}');
    return true;
}

static bool opencode_clone(struct wal__model_writer *writer, const void *original)
{
    const struct opencode_writer *from = original;
    struct opencode_writer *own = writer->state;
    struct wal__json_span calls = {(const uint8_t *)from->calls,
                                   from->call_count * sizeof(from->calls[0])};

    own->call_capacity = own->call_count;
    own->messages = (struct wal__model_table){.arena = writer->arena, .base = &from->messages};
    if (calls.size > 0) {
        own->calls = (void *)(uintptr_t)wal__arena_copy(writer->arena, calls).data;
    }
    return calls.size == 0 || own->calls != NULL;
}

const struct wal__dialect_write_ops wal__opencode_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) | WAL__CARRIES(SIGNATURES) |
               WAL__CARRIES(IMAGES) | WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
               WAL__CARRIES(EMPTY) | WAL__CARRIES(TOOL_NAMES) | WAL__CARRIES(TOOL_ERRORS) |
               WAL__CARRIES(MODELS) | WAL__CARRIES(PROVIDERS) | WAL__CARRIES(USAGE) |
               WAL__CARRIES(REASONING) | WAL__CARRIES(COSTS) | WAL__CARRIES(STOP_REASONS) |
               WAL__CARRIES(COMPACTIONS) | WAL__CARRIES(META) | WAL__CARRIES(META_NAMES),
    .merges_parts = true,
    .links_starter = true,
    .has_title = true,
    .path = opencode_path,
    .is_id = opencode_is_id,
    .make_id = opencode_make_id,
    .ids_are_stored = true,
    .begin = opencode_begin,
    .item = opencode_item,
    .end = opencode_end,
    .document = opencode_document,
    .kept_documents = kept_documents,
    .state_size = sizeof(struct opencode_writer),
    .clone = opencode_clone,
    .join = opencode_join,
    .item_keys = opencode_item_keys,
    .message_key = opencode_message_key,
};
