/*
 * codex_text.c - texts that persist between lines (codex_text.h).
 *
 * Threads: one thread at a time per reader.
 */
#include "convert/dialect/codex/codex_text.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_character.h"

bool wal__codex_text_add(struct wal__model_reader *reader,
                         struct wal__codex_text *text,
                         struct wal__json_span span)
{
    if (text->capacity - text->size < span.size) {
        size_t capacity = 2 * (text->size + span.size);
        uint8_t *data = wal__arena_alloc(reader->arena, capacity);
        if (data == NULL) {
            return false;
        }
        if (text->size > 0) {
            memcpy(data, text->data, text->size);
        }
        text->data = data;
        text->capacity = capacity;
    }
    if (span.size > 0) {
        WAL__ASSERT(span.size <= text->capacity - text->size);
        memcpy(text->data + text->size, span.data, span.size);
        text->size += span.size;
    }
    return true;
}

bool wal__codex_text_set(struct wal__model_reader *reader,
                         struct wal__codex_text *text,
                         struct wal__json_span span)
{
    text->size = 0;
    return wal__codex_text_add(reader, text, span);
}

bool wal__codex_text_copy(struct wal__model_reader *reader,
                          const struct wal__codex_text *text,
                          struct wal__json_span *span)
{
    const struct wal__json_span kept = {text->data, text->size};

    *span = (struct wal__json_span){NULL, 0};
    if (text->size > 0) {
        *span = wal__arena_copy(reader->scratch, kept);
    }
    return text->size == 0 || span->data != NULL;
}

bool wal__codex_text_equals(const struct wal__codex_text *text,
                            struct wal__json_span span)
{
    const struct wal__json_span kept = {text->data, text->size};

    return kept.size > 0 && span.size > 0
               ? wal__json_characters_equal(kept, span)
               : kept.size == span.size;
}
