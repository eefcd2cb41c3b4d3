/*
 * opencode_raw.c - messages and sessions in one piece (opencode_raw.h).
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/dialect/opencode/opencode_raw.h"

#include <string.h>

#include "convert/dialect/opencode/opencode_part_read.h"
#include "convert/model/content_write.h"
#include "convert/model/model_content.h"
#include "convert/model/model_member.h"
#include "format/json/json_value.h"

/* ------------------------------------------------------------ message --- */

/* Writes a document, with the members of `ids` where they differ. */
static bool write_document(struct wal__model_writer *writer,
                           struct wal__json_span value,
                           const struct wal__json_override *ids, size_t count)
{
    bool is_changed = false;

    for (size_t i = 0; i < count; i++) {
        struct wal__json_member own = {.key = ids[i].key};
        struct wal__json_span id;
        if (wal__model_members(value, &own, 1, NULL) != WAL__JSON_OK) {
            return false;
        }
        id = wal__member_string(&own);
        is_changed |=
            id.size != ids[i].json.size ||
            (id.size > 0 && memcmp(id.data, ids[i].json.data, id.size) != 0);
    }
    if (is_changed) {
        wal__json_out_overridden(&writer->out, value, ids, count);
    } else {
        wal__json_out_bytes(&writer->out, value.data, value.size);
    }
    return !writer->out.has_failed;
}

/* Records the call of a part without a result, which may come later. `ids`:
 * three members that the part has. */
static bool keep_call(struct wal__model_writer *writer,
                      struct wal__json_span part,
                      const struct wal__json_override ids[3])
{
    enum {
        TYPE,
        CALL,
        TOOL,
        STATUS,
        INPUT,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [TYPE] = {.key = "type"},
        [CALL] = {.key = "callID"},
        [TOOL] = {.key = "tool"},
        [STATUS] = {.parent = "state", .key = "status"},
        [INPUT] = {.parent = "state", .key = "input"}};
    const struct wal__json_override other[4] = {
        ids[0], ids[1], ids[2], {.key = "state"}};
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_memory text = {.capacity =
                                        part.size + 3 * WAL__OPENCODE_ID_SIZE};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};
    struct wal__opencode_call call = {.time = state->time};

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
    return !out.has_failed && wal__opencode_add_call(writer, &call);
}

/* Adds the white space around a value in a text. */
static struct wal__json_span with_space(struct wal__json_span value,
                                        struct wal__json_span text)
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
static bool write_part(struct wal__model_writer *writer, bool is_copy,
                       struct wal__json_span value,
                       struct wal__json_span message)
{
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_override ids[3] = {
        {"sessionID", wal__opencode_id_span(state->session)},
        {"messageID", wal__opencode_id_span(state->message)},
        {.key = "id"}};
    struct wal__json_member id = {.key = "id"};
    char made[WAL__OPENCODE_ID_SIZE];

    if (wal__model_members(value, &id, 1, NULL) != WAL__JSON_OK) {
        return false;
    }
    ids[2].json = wal__member_string(&id);
    if (is_copy || !wal__opencode_is_id(ids[2].json, "prt_")) {
        wal__opencode_make_part_id(state, made);
        ids[2].json = wal__opencode_id_span(made);
    }
    return wal__opencode_select_file(writer, "storage/part/", state->message,
                                     ids[2].json) &&
           write_document(writer, with_space(value, message), ids, 3) &&
           keep_call(writer, value, ids);
}

/* The message that an answer names, under the id that it was written with. An
 * answer of another session, or one to a message that is not written, names the
 * last one of a user. */
static struct wal__json_span parent_of(const struct wal__opencode_writer *state,
                                       struct wal__json_span named, bool is_own)
{
    struct wal__json_span written;

    if (named.size > 0 &&
        wal__model_table_get(&state->messages, wal__model_string_hash(0, named),
                             &written)) {
        return written;
    }
    return named.size == 0 || state->user[0] == '\0' || is_own
               ? named
               : wal__opencode_id_span(state->user);
}

/* Writes the info of a message, `message`. Sets *is_copy: the message is of
 * another session. */
static bool write_info(struct wal__model_writer *writer,
                       struct wal__json_span value,
                       struct wal__json_span message, bool *is_copy)
{
    enum {
        ID,
        SESSION,
        ROLE,
        PARENT,
        CREATED,
        COUNT
    };
    struct wal__json_member members[COUNT] = {
        [ID] = {.key = "id"},
        [SESSION] = {.key = "sessionID"},
        [ROLE] = {.key = "role"},
        [PARENT] = {.key = "parentID"},
        [CREATED] = {.parent = "time", .key = "created"}};
    struct wal__opencode_writer *state = writer->state;
    struct wal__json_override ids[3] = {
        {.key = "id"}, {.key = "sessionID"}, {.key = "parentID"}};
    bool is_user;

    if (wal__model_members(value, members, COUNT, NULL) != WAL__JSON_OK) {
        return false;
    }
    ids[1].json = wal__member_string(&members[SESSION]);
    *is_copy = ids[1].json.size == 0
                   ? state->is_copy
                   : !wal__json_string_equals(ids[1].json, state->session + 1,
                                              sizeof(state->session) - 2);
    if (!wal__opencode_begin_message(writer, wal__member_string(&members[ID]),
                                     *is_copy, members[CREATED].value.span)) {
        return false;
    }
    is_user = wal__line_string_is(&members[ROLE], "user");
    ids[0].json = wal__opencode_id_span(state->message);
    ids[1].json = wal__opencode_id_span(state->session);
    ids[2].json = parent_of(state, wal__member_string(&members[PARENT]),
                            !*is_copy && state->is_own);
    if (is_user) {
        wal__opencode_set_user(state);
    }
    return write_document(writer, with_space(value, message), ids,
                          is_user || ids[2].json.size == 0 ? 2 : 3);
}

bool wal__opencode_write_raw(struct wal__model_writer *writer,
                             struct wal__json_span message)
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

/* ------------------------------------------------------------ session --- */

struct export
{
    const struct wal__model_documents *documents;
    struct wal__json_out *out;
};

static bool join_info(void *ctx, const char *key, struct wal__json_span value)
{
    struct export *export = ctx;

    (void)key;
    wal__json_out_member(export->out, "info", value);
    return true;
}

static bool join_part(void *ctx, const char *key, struct wal__json_span value)
{
    struct export *export = ctx;

    (void)key;
    wal__json_out_value(export->out, value);
    return true;
}

static bool join_message(void *ctx, const char *key,
                         struct wal__json_span value)
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
    wal__json_out_member(export->out, "info", value);
    wal__json_out_member_open(export->out, "parts", '[');
    is_read = export->documents->scan(export->documents->ctx, prefix, join_part,
                                      export);
    wal__json_out_close(export->out, ']');
    wal__json_out_close(export->out, '}');
    return is_read;
}

bool wal__opencode_join(const struct wal__model_documents *documents,
                        struct wal__json_out *out)
{
    struct export export = {documents, out};
    bool is_read;

    wal__json_out_open(out, '{');
    is_read =
        documents->scan(documents->ctx, "storage/session/", join_info, &export);
    wal__json_out_member_open(out, "messages", '[');
    is_read = is_read && documents->scan(documents->ctx, "storage/message/",
                                         join_message, &export);
    wal__json_out_close(out, ']');
    wal__json_out_close(out, '}');
    return is_read && !out->has_failed;
}
