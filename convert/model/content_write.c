/*
 * content_write.c - writes the content of messages.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "convert/model/content_write.h"

#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "format/bytes/assert.h"

void wal__content_write_arguments(struct wal__json_out *out, const char *key,
                                  struct wal__json_span arguments)
{
    size_t at = 0;

    while (at < arguments.size && arguments.data[at] <= ' ') {
        at++;
    }
    wal__json_out_key(out, key);
    if (at < arguments.size && arguments.data[at] == '{') {
        wal__json_out_compact(out, arguments);
        return;
    }
    wal__json_out_open(out, '{');
    if (at < arguments.size) {
        wal__json_out_member(out, WAL__WRAPPED_ARGUMENTS, arguments);
    }
    wal__json_out_close(out, '}');
}

static void write_text(struct wal__json_out *out,
                       const struct wal__block_form *form,
                       const struct wal__model_block *block)
{
    wal__json_out_member_str(out, "type", form->text);
    wal__json_out_member(out, "text", wal__model_or(block->text, "\"\""));
}

static void write_thinking(struct wal__json_out *out,
                           const struct wal__block_form *form,
                           const struct wal__model_block *block)
{
    if (block->is_redacted && form->redacted != NULL) {
        wal__json_out_member_str(out, "type", form->redacted);
        wal__json_out_member(out, "data",
                             wal__model_or(block->signature, "\"\""));
        return;
    }
    wal__json_out_member_str(out, "type", "thinking");
    wal__json_out_member(out, "thinking", wal__model_or(block->text, "\"\""));
    wal__json_out_optional(out, form->signature, block->signature);
    if (block->is_redacted) {
        wal__json_out_member_bool(out, "redacted", true);
    }
}

static void write_call(struct wal__json_out *out,
                       const struct wal__block_form *form,
                       const struct wal__model_block *block)
{
    const char *missing = form->omits_empty ? "" : "\"\"";

    wal__json_out_member_str(out, "type", form->call);
    wal__json_out_optional(out, "id", wal__model_or(block->id, missing));
    wal__json_out_optional(out, "name", wal__model_or(block->name, missing));
    if (form->omits_empty) {
        wal__json_out_optional(out, form->arguments, block->arguments);
    } else {
        wal__content_write_arguments(out, form->arguments, block->arguments);
    }
}

void wal__content_write_block(struct wal__json_out *out,
                              const struct wal__block_form *form,
                              const struct wal__model_block *block)
{
    if (block->kind == WAL__BLOCK_RAW) {
        wal__json_out_compact(out, block->raw);
        return;
    }
    wal__json_out_open(out, '{');
    switch (block->kind) {
    case WAL__BLOCK_TEXT:
        write_text(out, form, block);
        break;
    case WAL__BLOCK_THINKING:
        if (form->signature != NULL) {
            write_thinking(out, form, block);
        } else {
            write_text(out, form, block);
        }
        break;
    case WAL__BLOCK_TOOL_CALL:
        write_call(out, form, block);
        break;
    case WAL__BLOCK_IMAGE:
        WAL__ASSERT(form->image != NULL);
        form->image(out, block);
        break;
    case WAL__BLOCK_RAW:
        break;
    }
    wal__json_out_close(out, '}');
}

void wal__content_write_blocks(struct wal__json_out *out, const char *key,
                               const struct wal__block_form *form,
                               const struct wal__model_block *blocks,
                               size_t count)
{
    wal__json_out_member_open(out, key, '[');
    for (size_t i = 0; i < count; i++) {
        wal__content_write_block(out, form, &blocks[i]);
    }
    wal__json_out_close(out, ']');
}

static void put_text(struct wal__json_out *out, const char *text)
{
    wal__json_out_string_text(out, wal__model_literal(text));
}

void wal__content_write_texts(struct wal__json_out *out, const char *key,
                              const struct wal__model_block *blocks,
                              size_t count, const char *separator,
                              bool omits_empty)
{
    bool is_first = true;

    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind != WAL__BLOCK_TEXT ||
            (omits_empty && blocks[i].text.size <= 2)) {
            continue;
        }
        if (!is_first) {
            put_text(out, separator);
        }
        wal__json_out_string_json(out, blocks[i].text);
        is_first = false;
    }
    wal__json_out_string_end(out);
}

void wal__content_write_url(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block)
{
    if (block->url.size > 0) {
        wal__json_out_member(out, key, block->url);
        return;
    }
    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    put_text(out, "data:");
    wal__json_out_string_text(out, block->media);
    put_text(out, ";base64,");
    wal__json_out_string_text(out, block->data);
    wal__json_out_string_end(out);
}
