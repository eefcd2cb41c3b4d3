/*
 * opencode_emit.c - emits the items of messages (opencode_emit.h).
 *
 * Threads: one thread at a time per storage.
 */
#include "convert/dialect/opencode/opencode_emit.h"

#include <string.h>

#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "format/json/json_character.h"
#include "format/json/json_out.h"

bool wal__opencode_defer(struct wal__opencode_storage *storage,
                         struct wal__json_span after,
                         const struct wal__model_item *result)
{
    struct wal__opencode_deferred *node;
    uint64_t key = wal__model_string_hash(0, after);
    struct wal__json_span found;

    if (wal__model_table_get(&storage->deferred, key, &found)) {
        return false;
    }
    node = wal__arena_alloc(storage->reader->scratch, sizeof(*node));
    if (node == NULL ||
        !wal__model_table_put(
            &storage->deferred, key,
            (struct wal__json_span){(const uint8_t *)node, sizeof(*node)})) {
        storage->has_failed = true;
        return true;
    }
    *node = (struct wal__opencode_deferred){.result = *result,
                                            .next = storage->deferred_list};
    storage->deferred_list = node;
    return true;
}

/* Returns the id with a number appended; data is NULL if there is no memory. */
static struct wal__json_span append_number(struct wal__arena *arena,
                                           struct wal__json_span id, size_t n)
{
    uint8_t *text = wal__arena_alloc(arena, id.size + 21);
    size_t size = id.size - 1;
    size_t unit = 1;

    if (text == NULL) {
        return (struct wal__json_span){NULL, 0};
    }
    memcpy(text, id.data, size);
    text[size++] = '~';
    while (n / unit >= 10) {
        unit *= 10;
    }
    for (; unit > 0; unit /= 10) {
        text[size++] = (uint8_t)('0' + n / unit % 10);
    }
    text[size++] = '"';
    return (struct wal__json_span){text, size};
}

/* Changes the item's id if an earlier item has it. */
static bool assign_unique_id(struct wal__opencode_storage *storage,
                             struct wal__model_item *item)
{
    struct wal__json_span own =
        item->id.size > 2 ? item->id : wal__model_literal("\"item\"");
    struct wal__json_span found;
    size_t n = storage->emitted_ids.count;

    item->id = own;
    while (item->id.data != NULL &&
           wal__model_table_get(&storage->emitted_ids,
                                wal__model_string_hash(0, item->id), &found)) {
        item->id = append_number(storage->reader->scratch, own, ++n);
    }
    return item->id.data != NULL &&
           wal__model_table_put(&storage->emitted_ids,
                                wal__model_string_hash(0, item->id), item->id);
}

/* Emits an item as a child of the previous one. */
static void emit_one(struct wal__opencode_storage *storage,
                     struct wal__model_item *item)
{
    item->parent = storage->tip;
    if (!assign_unique_id(storage, item) ||
        !wal__model_emit(storage->reader, item)) {
        storage->has_failed = true;
    }
    storage->tip = item->id;
}

/* Emits an item, and the results that follow it. */
static void emit(struct wal__opencode_storage *storage,
                 struct wal__model_item *item)
{
    struct wal__json_span id = item->id;
    struct wal__json_span found;

    emit_one(storage, item);
    while (!storage->has_failed && id.size > 0 &&
           wal__model_table_get(&storage->deferred,
                                wal__model_string_hash(0, id), &found)) {
        struct wal__opencode_deferred *node =
            (struct wal__opencode_deferred *)(uintptr_t)found.data;
        if (node->is_emitted) {
            return;
        }
        node->is_emitted = true;
        id = node->result.id;
        emit_one(storage, &node->result);
    }
}

void wal__opencode_emit_deferred(struct wal__opencode_storage *storage)
{
    struct wal__opencode_deferred *node = storage->deferred_list;

    for (; node != NULL && !storage->has_failed; node = node->next) {
        if (!node->is_emitted) {
            node->is_emitted = true;
            emit_one(storage, &node->result);
        }
    }
}

void wal__opencode_emit(struct wal__opencode_storage *storage,
                        const struct wal__model_item *item)
{
    struct wal__model_item *items = wal__arena_grow(
        storage->reader->scratch, storage->batch, storage->batch_count,
        &storage->batch_capacity, sizeof(items[0]));

    if (items == NULL) {
        storage->has_failed = true;
        return;
    }
    storage->batch = items;
    storage->batch[storage->batch_count++] = *item;
}

/* Whether a result of another message follows one of the items. */
static bool has_follower(const struct wal__opencode_storage *storage)
{
    struct wal__json_span found;

    for (size_t i = 0; i < storage->batch_count; i++) {
        struct wal__json_span id = storage->batch[i].id;
        if (id.size > 0 &&
            wal__model_table_get(&storage->deferred,
                                 wal__model_string_hash(0, id), &found)) {
            return true;
        }
    }
    return false;
}

/* Gives the last item of a line the line's id, and no other item. */
static void set_line_id(struct wal__opencode_storage *storage)
{
    size_t count = storage->batch_count;

    for (size_t i = 0; i + 1 < count; i++) {
        struct wal__model_item *item = &storage->batch[i];
        if (item->id.size > 2 &&
            wal__json_characters_equal(item->id, storage->line_id)) {
            item->id = append_number(storage->reader->scratch, item->id, 0);
            storage->has_failed |= item->id.data == NULL;
        }
    }
    if (count > 0) {
        storage->batch[count - 1].id = storage->line_id;
    }
}

void wal__opencode_emit_prefix(struct wal__opencode_storage *storage)
{
    struct wal__model_item item = {.kind = WAL__ITEM_LINE,
                                   .is_echo = true,
                                   .id = storage->prefix_id,
                                   .raw = storage->raw_prefix};

    if (storage->raw_prefix.size > 0) {
        storage->raw_prefix.size = 0;
        item.data = item.raw;
        emit(storage, &item);
    }
}

void wal__opencode_emit_batch(struct wal__opencode_storage *storage,
                              struct wal__json_span id,
                              struct wal__json_span raw)
{
    size_t count = storage->batch_count;

    if (storage->line_id.size > 0) {
        set_line_id(storage);
    }
    if (count == 0 || raw.size == 0) {
        wal__opencode_emit_prefix(storage);
    }
    if (count == 0 && raw.size > 0) {
        storage->raw_prefix = raw; /* goes with the next message */
        storage->prefix_id = id;
        return;
    }
    storage->has_lost_mark |= count == 0;
    if (count > 0 && count <= UINT32_MAX && raw.size > 0 &&
        !has_follower(storage)) {
        storage->batch[0].raw = raw;
        storage->batch[0].raw_prefix = storage->raw_prefix;
        storage->batch[0].raw_items_left = (uint32_t)(count - 1);
    }
    storage->raw_prefix.size = 0;
    for (size_t i = 0; i < count && !storage->has_failed; i++) {
        emit(storage, &storage->batch[i]);
    }
    storage->batch_count = 0;
}

struct wal__json_span
wal__opencode_message_line(struct wal__opencode_storage *storage,
                           const struct wal__opencode_document *message,
                           size_t first_part)
{
    size_t capacity = message->value.size + 32;
    struct wal__json_memory text = {.size = 0};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &text};

    for (size_t i = first_part; i != WAL__OPENCODE_NO_PART;
         i = storage->parts.items[i].next) {
        capacity += storage->parts.items[i].value.size + 1;
    }
    text.data = wal__arena_alloc(storage->reader->scratch, capacity);
    text.capacity = capacity;
    if (text.data == NULL) {
        storage->has_failed = true;
        return (struct wal__json_span){NULL, 0};
    }
    wal__json_out_open(&out, '{');
    wal__json_out_key(&out, "info");
    wal__json_out_bytes(&out, message->value.data, message->value.size);
    out.has_value = true;
    wal__json_out_member_open(&out, "parts", '[');
    for (size_t i = first_part; i != WAL__OPENCODE_NO_PART;
         i = storage->parts.items[i].next) {
        wal__json_out_value(&out, storage->parts.items[i].value);
    }
    wal__json_out_close(&out, ']');
    wal__json_out_close(&out, '}');
    return (struct wal__json_span){text.data, text.size};
}
