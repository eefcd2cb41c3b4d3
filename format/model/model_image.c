/*
 * model_image.c - images as URLs, as in OpenAI's APIs.
 *
 * Threads: no shared state; any thread may call any function.
 */
#include "format/model/model_image.h"

static void put_text(struct wal__json_out *out, const char *text, size_t size)
{
    const struct wal__json_span span = {(const uint8_t *)text, size};

    wal__json_out_string_text(out, span);
}

void wal__model_write_image(struct wal__json_out *out, const char *key,
                            const struct wal__model_block *block)
{
    if (block->url.size > 0) {
        wal__json_out_member(out, key, block->url);
        return;
    }
    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    put_text(out, "data:", 5);
    wal__json_out_string_text(out, block->media);
    put_text(out, ";base64,", 8);
    wal__json_out_string_text(out, block->data);
    wal__json_out_string_end(out);
}
