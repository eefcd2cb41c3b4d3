/*
 * model_merge: parts of one answer of a model become one item.
 *
 * Threads: one thread at a time per merge.
 */
#include "format/jsonl/model_merge.h"

#include <string.h>

#include "format/jsonl/json_character.h"

static bool is_part(const struct wal__model_item *item)
{
    return item->kind == WAL__MODEL_MESSAGE &&
           item->role == WAL__ROLE_ASSISTANT && item->group.size > 0;
}

static bool goes_on(const struct wal__model_merge *merge,
                    const struct wal__model_item *item)
{
    return merge->has_item && is_part(item) &&
           wal__json_characters_equal(merge->item.group, item->group) &&
           wal__json_characters_equal(merge->last_id, item->parent) &&
           merge->item.is_sidechain == item->is_sidechain &&
           merge->item.stream == item->stream;
}

static void keep_last(struct wal__json_span *field, struct wal__json_span other)
{
    if (other.size > 0) {
        *field = other;
    }
}

static void join_fields(struct wal__model_item *item,
                        const struct wal__model_item *other)
{
    item->raw.size = 0;
    item->rest = 0;
    item->fields += other->fields;
    keep_last(&item->model, other->model);
    keep_last(&item->provider, other->provider);
    keep_last(&item->usage.input, other->usage.input);
    keep_last(&item->usage.output, other->usage.output);
    keep_last(&item->usage.cache_read, other->usage.cache_read);
    keep_last(&item->usage.cache_write, other->usage.cache_write);
    keep_last(&item->usage.reasoning, other->usage.reasoning);
    keep_last(&item->usage.cost, other->usage.cost);
    if (other->stop != WAL__STOP_NONE) {
        item->stop = other->stop;
    }
}

static bool join_blocks(struct wal__model_merge *merge,
                        const struct wal__model_item *other)
{
    struct wal__model_item *item = &merge->item;
    size_t count = item->block_count + other->block_count;
    struct wal__model_block *blocks;

    if (count > merge->capacity) {
        merge->capacity = 2 * count;
        blocks = wal__arena_take(merge->scratch,
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
    item->block_count = count;
    return true;
}

bool wal__model_merge_put(struct wal__model_merge *merge,
                          struct wal__model_item *item)
{
    if (goes_on(merge, item)) {
        join_fields(&merge->item, item);
        merge->last_id = item->id;
        return join_blocks(merge, item) &&
               merge->joined(merge->ctx, item->id, merge->item.id);
    }
    if (!wal__model_merge_end(merge)) {
        return false;
    }
    if (!is_part(item)) {
        return merge->give(merge->ctx, item);
    }
    merge->has_item = true;
    merge->item = *item;
    merge->last_id = item->id;
    merge->capacity = 0;
    return true;
}

bool wal__model_merge_end(struct wal__model_merge *merge)
{
    bool has_item = merge->has_item;

    merge->has_item = false;
    return !has_item || merge->give(merge->ctx, &merge->item);
}
