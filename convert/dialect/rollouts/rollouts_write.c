/*
 * rollouts_write.c - writes session files of rollouts.
 *
 * A header with all six fields, then one message per line. There are no ids and
 * no branches: the order of lines is the conversation.
 *
 * Invariant: blocks have the four types that the client's reader knows. It
 * rejects a file with any other type, a blank line or an invalid line.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/model/content_write.h"
#include "convert/model/model_member.h"
#include "convert/model/model_path.h"
#include "convert/model/model_write.h"
#include "format/json/json_character.h"

static bool is_plain(uint8_t byte)
{
    return byte != '/' && byte != '\0';
}

static const char *rollouts_path(const struct wal__model_session *session,
                                 uint32_t stream, struct wal__arena *arena)
{
    (void)stream;
    return wal__model_dashed_path(session, is_plain, false, arena);
}

/* Writes the header that was read, with the session's present id. */
static void write_native_header(struct wal__json_out *out,
                                const struct wal__model_session *session)
{
    const struct wal__json_override override = {"id", session->id};
    struct wal__json_member id = {.key = "id"};

    if (wal__model_members(session->raw, &id, 1, NULL) == WAL__JSON_OK &&
        id.value.kind == WAL__JSON_STRING &&
        wal__json_characters_equal(id.value.span, session->id)) {
        wal__json_out_value(out, session->raw);
    } else {
        wal__json_out_overridden(out, session->raw, &override, 1);
    }
    wal__json_out_newline(out);
}

static bool rollouts_begin(struct wal__model_writer *writer)
{
    const struct wal__model_session *session = writer->session;
    struct wal__json_out *out = &writer->out;
    const char *path = rollouts_path(session, 0, writer->scratch);

    if (path == NULL ||
        !wal__model_write_file(writer, path, WAL__OUTPUT_LINES)) {
        return false;
    }
    if (session->raw.size > 0 && session->dialect == writer->dialect) {
        write_native_header(out, session);
        return true;
    }
    wal__json_out_open(out, '{');
    wal__json_out_member_str(out, "type", "session");
    wal__json_out_member(out, "id", session->id);
    wal__model_write_time(out, "timestamp", session->time);
    wal__json_out_member(out, "cwd", wal__model_or(session->cwd, "\"/\""));
    wal__json_out_member(out, "provider",
                         wal__model_or(session->provider, "\"unknown\""));
    wal__json_out_member(out, "model",
                         wal__model_or(session->model, "\"unknown\""));
    wal__json_out_close_line(out);
    return true;
}

static void write_image(struct wal__json_out *out,
                        const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", "image");
    wal__content_write_url(out, "image_url", block);
}

static void write_content(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    static const struct wal__block_form form = {
        .text = "text",
        .signature = "thinking_signature",
        .call = "toolCall",
        .arguments = "arguments",
        .image = write_image,
    };
    struct wal__json_out *out = &writer->out;

    if (item->block_count == 0) {
        wal__json_out_member(out, "content", wal__model_literal("null"));
        return;
    }
    if (item->block_count == 1 && item->blocks[0].kind == WAL__BLOCK_TEXT) {
        wal__json_out_member(out, "content",
                             wal__model_or(item->blocks[0].text, "\"\""));
        return;
    }
    wal__json_out_member_open(out, "content", '[');
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_RAW) {
            writer->losses[WAL__FEATURE_BLOCKS]++;
        } else {
            wal__content_write_block(out, &form, &item->blocks[i]);
        }
    }
    wal__json_out_close(out, ']');
}

static void write_message(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    static const char *const roles[] = {
        [WAL__ROLE_USER] = "user",
        [WAL__ROLE_ASSISTANT] = "assistant",
        [WAL__ROLE_SYSTEM] = "system",
        [WAL__ROLE_TOOL] = "tool",
    };
    struct wal__json_out *out = &writer->out;

    wal__json_out_open(out, '{');
    wal__json_out_member_str(out, "type", "message");
    wal__model_write_time(out, "timestamp", item->time);
    wal__json_out_member_open(out, "message", '{');
    wal__json_out_member_str(out, "role", roles[item->role]);
    write_content(writer, item);
    if (item->role == WAL__ROLE_TOOL) {
        wal__json_out_member(out, "tool_call_id",
                             wal__model_or(item->call, "\"\""));
    }
    wal__json_out_close(out, '}');
    wal__json_out_close_line(out);
}

static bool rollouts_item(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    const bool is_native_line =
        item->kind == WAL__ITEM_LINE && item->dialect == writer->dialect;

    if (item->raw.size > 0 || is_native_line) {
        wal__json_out_line(&writer->out,
                           item->raw.size > 0 ? item->raw : item->data);
    } else if (item->kind == WAL__ITEM_MESSAGE) {
        write_message(writer, item);
    }
    return true;
}

const struct wal__dialect_write_ops wal__rollouts_write_ops = {
    .carries = WAL__CARRIES(TIMES) | WAL__CARRIES(THINKING) |
               WAL__CARRIES(SIGNATURES) | WAL__CARRIES(IMAGES) |
               WAL__CARRIES(RESULT_IMAGES) | WAL__CARRIES(TEXT_BOUNDARIES) |
               WAL__CARRIES(EMPTY),
    .merges_parts = true,
    .path = rollouts_path,
    .begin = rollouts_begin,
    .item = rollouts_item,
};
