/*
 * model.c - names of features, and passing items to the sink.
 */
#include "convert/model/model.h"

const char *wal__feature_text(enum wal__feature feature)
{
    static const char *const texts[] = {
#define WAL__FEATURE_TEXT(name, text) [WAL__FEATURE_##name] = (text),
        WAL__FEATURE_LIST(WAL__FEATURE_TEXT)
#undef WAL__FEATURE_TEXT
    };

    return feature < WAL__FEATURE_COUNT ? texts[feature] : "";
}

bool wal__model_has_block(const struct wal__model_block *blocks, size_t count,
                          enum wal__model_block_kind kind)
{
    for (size_t i = 0; i < count; i++) {
        if (blocks[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* Only a model calls tools and thinks. So a message with a call is the model's, whatever its role
 * field, and thinking in other messages becomes a raw block. A string in a list of blocks is a
 * text. */
static void normalise_item(struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        if (item->blocks[i].kind == WAL__BLOCK_TOOL_CALL && item->role != WAL__ROLE_TOOL) {
            item->role = WAL__ROLE_ASSISTANT;
            item->is_meta = false;
        }
    }
    for (size_t i = 0; i < item->block_count; i++) {
        struct wal__model_block *block = &item->blocks[i];
        if (block->kind == WAL__BLOCK_RAW && block->raw.size > 0 && block->raw.data[0] == '"') {
            block->kind = WAL__BLOCK_TEXT;
            block->text = block->raw;
        }
        if (item->role != WAL__ROLE_ASSISTANT && block->raw.size > 0 &&
            (block->kind == WAL__BLOCK_TOOL_CALL || block->kind == WAL__BLOCK_THINKING)) {
            block->kind = WAL__BLOCK_RAW;
        }
    }
}

bool wal__model_emit(struct wal__model_reader *reader, struct wal__model_item *item)
{
    if (item->dialect == NULL) {
        item->dialect = reader->dialect;
    }
    if (item->dialect != reader->dialect) {
        item->raw.size = 0; /* a line in the reader's dialect */
    }
    normalise_item(item);
    return reader->sink(reader->ctx, item);
}
