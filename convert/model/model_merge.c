/*
 * model_merge.c - merges the parts of one answer of a model into one item.
 *
 * Threads: one thread at a time per merge.
 */
#include "convert/model/model_merge.h"

#include <string.h>

#include "format/bytes/assert.h"
#include "format/json/json_character.h"

static bool is_answer_part(const struct wal__model_item *item)
{
    return item->kind == WAL__ITEM_MESSAGE &&
           item->role == WAL__ROLE_ASSISTANT && item->answer_id.size > 0;
}

static bool continues_answer(const struct wal__model_merge *merge,
                             const struct wal__model_item *item)
{
    return merge->has_item && is_answer_part(item) &&
           wal__json_characters_equal(merge->item.answer_id, item->answer_id) &&
           wal__json_characters_equal(merge->last_id, item->parent) &&
           merge->item.is_sidechain == item->is_sidechain &&
           merge->item.stream == item->stream;
}

static void overwrite_if_set(struct wal__json_span *field,
                             struct wal__json_span other)
{
    if (other.size > 0) {
        *field = other;
    }
}

static void merge_fields(struct wal__model_item *item,
                         const struct wal__model_item *other)
{
    item->raw.size = 0;
    item->raw_items_left = 0;
    item->fields += other->fields;
    overwrite_if_set(&item->model, other->model);
    overwrite_if_set(&item->provider, other->provider);
    overwrite_if_set(&item->usage.input, other->usage.input);
    overwrite_if_set(&item->usage.output, other->usage.output);
    overwrite_if_set(&item->usage.cache_read, other->usage.cache_read);
    overwrite_if_set(&item->usage.cache_write, other->usage.cache_write);
    overwrite_if_set(&item->usage.reasoning, other->usage.reasoning);
    overwrite_if_set(&item->usage.cost, other->usage.cost);
    if (other->stop != WAL__STOP_NONE) {
        item->stop = other->stop;
    }
}

static bool append_blocks(struct wal__model_merge *merge,
                          const struct wal__model_item *other)
{
    struct wal__model_item *item = &merge->item;
    size_t count = item->block_count + other->block_count;
    struct wal__model_block *blocks;

    if (count > merge->capacity) {
        merge->capacity = 2 * count;
        blocks = wal__arena_alloc(merge->scratch,
                                  merge->capacity * sizeof(blocks[0]));
        if (blocks == NULL) {
            return false;
        }
        if (item->block_count > 0) {
            memcpy(blocks, item->blocks, item->block_count * sizeof(blocks[0]));
        }
        item->blocks = blocks;
    }
    if (other->block_count > 0) {
        memcpy(item->blocks + item->block_count, other->blocks,
               other->block_count * sizeof(item->blocks[0]));
    }
    WAL__ASSERT(merge->capacity == 0 || count <= merge->capacity);
    item->block_count = count;
    return true;
}

bool wal__model_merge_add(struct wal__model_merge *merge,
                          struct wal__model_item *item)
{
    if (continues_answer(merge, item)) {
        merge_fields(&merge->item, item);
        merge->last_id = item->id;
        return append_blocks(merge, item) &&
               merge->on_merged(merge->ctx, item->id, merge->item.id);
    }
    if (!wal__model_merge_flush(merge)) {
        return false;
    }
    if (!is_answer_part(item)) {
        return merge->emit(merge->ctx, item);
    }
    merge->has_item = true;
    merge->item = *item;
    merge->last_id = item->id;
    merge->capacity = 0;
    return true;
}

bool wal__model_merge_flush(struct wal__model_merge *merge)
{
    bool has_item = merge->has_item;

    merge->has_item = false;
    return !has_item || merge->emit(merge->ctx, &merge->item);
}
