/*
 * opencode_items.c - collects the blocks and results of a message of OpenCode, and emits the items
 * of it (opencode_read.h). What a message becomes is described in opencode_read.c.
 *
 * Threads: one thread at a time per storage.
 */
#include <string.h>

#include "convert/dialect/opencode.h"
#include "convert/dialect/opencode_read.h"
#include "convert/model/model_content.h"
#include "convert/model/model_write.h"
#include "format/json/json_out.h"
#include "format/json/json_text.h"

const struct wal__field wal__opencode_cache_fields[] = {
    {"read", WAL__USAGE_AT(cache_read), .kind = WAL__FIELD_NUMBER},
    {"write", WAL__USAGE_AT(cache_write), .kind = WAL__FIELD_NUMBER},
    {.key = NULL},
};

const struct wal__word wal__opencode_stops[] = {
    {"stop", .value = WAL__STOP_END},
    {"end_turn", .value = WAL__STOP_END},
    {"length", .value = WAL__STOP_LENGTH},
    {"tool-calls", .value = WAL__STOP_TOOL},
    {"content-filter", .value = WAL__STOP_REFUSAL},
    {"error", .value = WAL__STOP_ERROR},
    {.name = NULL},
};

static const struct wal__field metadata_fields[] = {
    {"signature", .parent = "anthropic", .at = PART_AT(signature)},
    {"redactedData", .parent = "anthropic", .at = PART_AT(redacted)},
    {.key = NULL},
};

/* Returns the id in the member, or the document's file name as an id. */
struct wal__json_span wal__opencode_storage_id(const struct opencode_storage *storage,
                                               const struct opencode_document *document,
                                               struct wal__json_span id)
{
    return id.size > 2 ? id : wal__arena_escape(storage->reader->scratch, document->name);
}

/* Keeps a result until the item that it follows was emitted. Returns false if another one follows
 * the same item. */
bool wal__opencode_defer(struct opencode_storage *storage, struct wal__json_span after,
                         const struct wal__model_item *result)
{
    struct opencode_deferred *node;
    uint64_t key = wal__model_string_hash(0, after);
    struct wal__json_span found;

    if (wal__model_table_get(&storage->deferred, key, &found)) {
        return false;
    }
    node = wal__arena_alloc(storage->reader->scratch, sizeof(*node));
    if (node == NULL ||
        !wal__model_table_put(&storage->deferred, key,
                              (struct wal__json_span){(const uint8_t *)node, sizeof(*node)})) {
        storage->has_failed = true;
        return true;
    }
    *node = (struct opencode_deferred){.result = *result, .next = storage->deferred_list};
    storage->deferred_list = node;
    return true;
}

/* Returns the id with a number appended; data is NULL if there is no memory. */
struct wal__json_span wal__opencode_append_number(struct wal__arena *arena,
                                                  struct wal__json_span id, size_t n)
{
    uint8_t digits[WAL__MODEL_DIGITS];

    return wal__model_append(arena, id, "~", wal__model_digits(n, digits));
}

/* Changes the item's id if an earlier item has it. */
static bool assign_unique_id(struct opencode_storage *storage, struct wal__model_item *item)
{
    struct wal__json_span own = item->id.size > 2 ? item->id : wal__model_literal("\"item\"");
    struct wal__json_span found;
    size_t n = storage->emitted_ids.count;

    item->id = own;
    while (
        item->id.data != NULL &&
        wal__model_table_get(&storage->emitted_ids, wal__model_string_hash(0, item->id), &found)) {
        item->id = wal__opencode_append_number(storage->reader->scratch, own, ++n);
    }
    return item->id.data != NULL &&
           wal__model_table_put(&storage->emitted_ids, wal__model_string_hash(0, item->id),
                                item->id);
}

/* Emits an item as a child of the previous one. */
static void emit_one(struct opencode_storage *storage, struct wal__model_item *item)
{
    item->parent = storage->tip;
    if (!assign_unique_id(storage, item) || !wal__model_emit(storage->reader, item)) {
        storage->has_failed = true;
    }
    storage->tip = item->id;
}

/* Emits an item, and the results that follow it. */
static void emit(struct opencode_storage *storage, struct wal__model_item *item)
{
    struct wal__json_span id = item->id;
    struct wal__json_span found;

    emit_one(storage, item);
    while (!storage->has_failed && id.size > 0 &&
           wal__model_table_get(&storage->deferred, wal__model_string_hash(0, id), &found)) {
        struct opencode_deferred *node = (struct opencode_deferred *)(uintptr_t)found.data;
        if (node->is_emitted) {
            return;
        }
        node->is_emitted = true;
        id = node->result.id;
        emit_one(storage, &node->result);
    }
}

/* Emits the results that name an item which no message has. */
void wal__opencode_emit_deferred(struct opencode_storage *storage)
{
    struct opencode_deferred *node = storage->deferred_list;

    for (; node != NULL && !storage->has_failed; node = node->next) {
        if (!node->is_emitted) {
            node->is_emitted = true;
            emit_one(storage, &node->result);
        }
    }
}

/* Adds an item to those of the present message. */
void wal__opencode_emit(struct opencode_storage *storage, const struct wal__model_item *item)
{
    struct wal__model_item *items =
        wal__arena_grow(storage->reader->scratch, storage->batch, storage->batch_count,
                        &storage->batch_capacity, sizeof(items[0]));

    if (items == NULL) {
        storage->has_failed = true;
        return;
    }
    storage->batch = items;
    storage->batch[storage->batch_count++] = *item;
}

/* Whether a result of another message follows one of the items. */
static bool has_follower(const struct opencode_storage *storage)
{
    struct wal__json_span found;

    for (size_t i = 0; i < storage->batch_count; i++) {
        struct wal__json_span id = storage->batch[i].id;
        if (id.size > 0 &&
            wal__model_table_get(&storage->deferred, wal__model_string_hash(0, id), &found)) {
            return true;
        }
    }
    return false;
}

/* Gives the last item of a line the line's id, and no other item. */
static void set_line_id(struct opencode_storage *storage)
{
    size_t count = storage->batch_count;

    for (size_t i = 0; i + 1 < count; i++) {
        struct wal__model_item *item = &storage->batch[i];
        if (item->id.size > 2 && wal__json_characters_equal(item->id, storage->line_id)) {
            item->id = wal__opencode_append_number(storage->reader->scratch, item->id, 0);
            storage->has_failed |= item->id.data == NULL;
        }
    }
    if (count > 0) {
        storage->batch[count - 1].id = storage->line_id;
    }
}

/* Emits the line of a message without items that waits for the next message, as an item that only
 * this dialect writes. */
void wal__opencode_emit_prefix(struct opencode_storage *storage)
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

/* Emits the items of the present message, whose id is given. `raw` is its line, or empty if that
 * cannot be written unchanged. The line of a message without items goes before that of the next
 * message, if that has one. */
void wal__opencode_emit_batch(struct opencode_storage *storage, struct wal__json_span id,
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
    if (count > 0 && count <= UINT32_MAX && raw.size > 0 && !has_follower(storage)) {
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

struct wal__model_block *wal__opencode_add_block(struct opencode_message *message,
                                                 enum wal__model_block_kind kind)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__model_block *block = wal__model_blocks_add(&message->blocks, kind, none);

    message->storage->has_failed |= block == NULL;
    return block;
}

void wal__opencode_read_reasoning(struct opencode_message *message, struct opencode_part *part)
{
    struct wal__model_block *block = wal__opencode_add_block(message, WAL__BLOCK_THINKING);

    if (block == NULL ||
        wal__fields_read(part->metadata, metadata_fields, part, NULL) != WAL__JSON_OK) {
        return;
    }
    block->text = part->text;
    block->is_redacted = part->redacted.size > 0;
    block->signature = block->is_redacted ? part->redacted : part->signature;
}

struct wal__model_item *wal__opencode_add_result(struct opencode_message *message)
{
    struct wal__model_item *items =
        wal__arena_grow(message->storage->reader->scratch, message->results, message->result_count,
                        &message->result_capacity, sizeof(items[0]));

    if (items == NULL) {
        return NULL;
    }
    message->results = items;
    return &message->results[message->result_count++];
}

void wal__opencode_add_synthetic(struct opencode_message *message,
                                 const struct wal__model_block *block)
{
    const struct wal__json_span none = {NULL, 0};
    struct wal__model_block *copy =
        wal__model_blocks_add(&message->synthetic, WAL__BLOCK_TEXT, none);

    if (copy == NULL) {
        message->storage->has_failed = true;
        return;
    }
    *copy = *block;
    if (message->synthetic.count == 1) {
        message->synthetic_part = message->part;
    }
}

/* Emits a message of the user. What its client added to a person's parts, such as the content of a
 * file, is a message after it that no person wrote. */
static void emit_user(struct opencode_message *message)
{
    struct wal__model_item *item = &message->item;
    struct wal__model_item added = *item;
    size_t at = 0;
    size_t kept = 0;

    if (message->is_of_person && !item->is_meta) {
        for (size_t i = 0; i < message->blocks.count; i++) {
            const struct wal__model_block *block = &message->blocks.items[i];

            if (at < message->synthetic.count &&
                block->text.data == message->synthetic.items[at].text.data) {
                at++;
            } else {
                message->blocks.items[kept++] = *block;
            }
        }
        item->block_count = kept;
    }
    item->is_meta |= item->block_count > 0 && !message->is_of_person;
    wal__opencode_emit(message->storage, item);
    if (at > 0) {
        added.id = message->synthetic_part;
        added.is_meta = true;
        added.fields = 0;
        added.blocks = message->synthetic.items;
        added.block_count = message->synthetic.count;
        wal__opencode_emit(message->storage, &added);
    }
}

/* Emits the content and the results read so far: a step, or the rest. */
void wal__opencode_flush(struct opencode_message *message, bool is_end)
{
    struct wal__model_item *item = &message->item;
    bool has_content =
        message->blocks.count > 0 || (is_end && !message->is_emitted &&
                                      message->result_count == 0 && !message->has_compaction_part);

    if (has_content) {
        item->blocks = message->blocks.items;
        item->block_count = message->blocks.count;
        if (item->role == WAL__ROLE_USER) {
            emit_user(message);
        } else {
            wal__opencode_emit(message->storage, item);
        }
        item->usage = (struct wal__model_usage){.input = {NULL, 0}};
        item->fields = 0;
    }
    for (size_t i = 0; i < message->result_count; i++) {
        wal__opencode_emit(message->storage, &message->results[i]);
    }
    message->is_emitted |= has_content || message->result_count > 0;
    message->result_count = 0;
    message->blocks = (struct wal__model_blocks){.arena = message->storage->reader->scratch};
}

/* Emits a compaction whose summary is the texts of the message. */
void wal__opencode_emit_summary(struct opencode_message *message)
{
    struct wal__model_item *item = &message->item;
    struct wal__arena *arena = message->storage->reader->scratch;
    size_t size = 2;
    struct wal__json_memory raw = {.size = 0};
    struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &raw};

    for (size_t i = 0; i < message->blocks.count; i++) {
        size += message->blocks.items[i].text.size + 2;
    }
    raw.data = wal__arena_alloc(arena, size);
    raw.capacity = size;
    if (raw.data == NULL) {
        message->storage->has_failed = true;
        return;
    }
    wal__json_out_string_begin(&out);
    for (size_t i = 0; i < message->blocks.count; i++) {
        const struct wal__model_block *block = &message->blocks.items[i];
        if (block->kind == WAL__BLOCK_TEXT) {
            wal__json_out_string_json(&out, block->text);
        }
    }
    wal__json_out_string_end(&out);
    *item = (struct wal__model_item){
        .kind = WAL__ITEM_COMPACTION,
        .id = item->id,
        .time = item->time,
        .text = {raw.data, raw.size},
        .target = message->storage->first_kept,
    };
    message->storage->first_kept.size = 0;
    wal__opencode_emit(message->storage, item);
}
