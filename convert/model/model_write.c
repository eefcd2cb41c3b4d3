/*
 * model_write.c - writes items in a dialect (model_write.h).
 */
#include "convert/model/model_write.h"

#include <string.h>

#include "convert/model/model_member.h"
#include "format/bytes/assert.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- features that a dialect cannot carry --------------------------------- */

struct fit {
    uint64_t carries;
    const struct wal__dialect *target;
    const struct wal__model_item *item;
    struct wal__model_block *summary_block;
    uint64_t *losses;
};

/* Counts a loss unless the dialect carries the feature; whether it did. */
static bool count_loss(const struct fit *fit, enum wal__feature feature)
{
    WAL__ASSERT(feature < WAL__FEATURE_COUNT);
    bool is_lost = (fit->carries & (UINT64_C(1) << feature)) == 0;

    fit->losses[feature] += is_lost ? 1 : 0;
    return is_lost;
}

static void drop_field(const struct fit *fit, enum wal__feature feature,
                       struct wal__json_span *field)
{
    if (field->size > 0 && count_loss(fit, feature)) {
        field->size = 0;
    }
}

static bool is_native(const struct fit *fit)
{
    return fit->target != NULL && fit->item->dialect == fit->target;
}

/* Whether to keep the block. */
static bool fit_block(const struct fit *fit, struct wal__model_block *block)
{
    bool is_result = fit->item->role == WAL__ROLE_TOOL;

    switch (block->kind) {
    case WAL__BLOCK_TEXT:
    case WAL__BLOCK_TOOL_CALL:
        return true;
    case WAL__BLOCK_THINKING:
        if (count_loss(fit, WAL__FEATURE_THINKING)) {
            return false;
        }
        drop_field(fit, WAL__FEATURE_SIGNATURES, &block->signature);
        return !block->is_redacted || block->signature.size > 0;
    case WAL__BLOCK_IMAGE:
        return !count_loss(fit, is_result ? WAL__FEATURE_RESULT_IMAGES : WAL__FEATURE_IMAGES);
    case WAL__BLOCK_RAW:
        if (!is_native(fit) && block->raw.data[0] != '{') {
            fit->losses[WAL__FEATURE_BLOCKS]++; /* not a block anywhere */
            return false;
        }
        return is_native(fit) || !count_loss(fit, WAL__FEATURE_BLOCKS);
    }
    return true;
}

static void fit_blocks(const struct fit *fit, struct wal__model_item *item)
{
    size_t kept = 0;

    for (size_t i = 0; i < item->block_count; i++) {
        struct wal__model_block block = item->blocks[i];
        if (fit_block(fit, &block)) {
            item->blocks[kept++] = block;
        }
    }
    WAL__ASSERT(kept <= item->block_count);
    item->block_count = kept;
}

static void fit_usage(const struct fit *fit, struct wal__model_usage *usage)
{
    const struct wal__json_span cost = usage->cost;

    drop_field(fit, WAL__FEATURE_REASONING, &usage->reasoning);
    if (wal__model_has_counts(usage) && count_loss(fit, WAL__FEATURE_USAGE)) {
        *usage = (struct wal__model_usage){.cost = cost};
    }
    drop_field(fit, WAL__FEATURE_COSTS, &usage->cost);
}

static bool fit_message(const struct fit *fit, struct wal__model_item *item)
{
    fit_blocks(fit, item);
    fit_usage(fit, &item->usage);
    drop_field(fit, WAL__FEATURE_MODELS, &item->model);
    drop_field(fit, WAL__FEATURE_PROVIDERS, &item->provider);
    if (item->stop == WAL__STOP_OTHER) {
        fit->losses[WAL__FEATURE_STOP_REASONS]++; /* client-specific */
        item->stop = WAL__STOP_NONE;
    } else if (item->stop != WAL__STOP_NONE && count_loss(fit, WAL__FEATURE_STOP_REASONS)) {
        item->stop = WAL__STOP_NONE;
    }
    if (item->role == WAL__ROLE_TOOL) {
        drop_field(fit, WAL__FEATURE_TOOL_NAMES, &item->name);
        if (item->is_error && count_loss(fit, WAL__FEATURE_TOOL_ERRORS)) {
            item->is_error = false;
        }
        return true; /* even without content */
    }
    if (item->is_meta) {
        drop_field(fit, WAL__FEATURE_META_NAMES, &item->name);
        if (count_loss(fit, WAL__FEATURE_META)) {
            item->is_meta = false;
            item->name.size = 0;
        }
    }
    return item->block_count > 0 || !count_loss(fit, WAL__FEATURE_EMPTY);
}

/* Converts the item to a message with its text. */
static bool convert_to_message(const struct fit *fit, struct wal__model_item *item)
{
    *fit->summary_block = (struct wal__model_block){.kind = WAL__BLOCK_TEXT, .text = item->text};
    item->kind = WAL__ITEM_MESSAGE;
    item->role = WAL__ROLE_USER;
    item->is_meta = (fit->carries & WAL__CARRIES(META)) != 0;
    item->blocks = fit->summary_block;
    item->block_count = 1;
    item->name.size = 0;
    item->target.size = 0;
    item->tokens.size = 0;
    return item->text.size > 2;
}

static bool fit_kind(const struct fit *fit, struct wal__model_item *item)
{
    switch (item->kind) {
    case WAL__ITEM_HEADER:
        return true;
    case WAL__ITEM_HEAD:
        return false;
    case WAL__ITEM_MESSAGE:
        return !(item->is_echo && is_native(fit)) && fit_message(fit, item);
    case WAL__ITEM_MODEL_CHANGE:
        if (count_loss(fit, WAL__FEATURE_MODEL_CHANGES)) {
            return false;
        }
        drop_field(fit, WAL__FEATURE_PROVIDERS, &item->provider);
        return true;
    case WAL__ITEM_THINKING_LEVEL:
        return !count_loss(fit, WAL__FEATURE_THINKING_LEVELS);
    case WAL__ITEM_COMPACTION:
        if (count_loss(fit, WAL__FEATURE_COMPACTIONS)) {
            return convert_to_message(fit, item);
        }
        drop_field(fit, WAL__FEATURE_KEPT_RANGES, &item->target);
        drop_field(fit, WAL__FEATURE_TOKENS_BEFORE, &item->tokens);
        return true;
    case WAL__ITEM_BRANCH_SUMMARY:
        if (count_loss(fit, WAL__FEATURE_SUMMARIES)) {
            return convert_to_message(fit, item);
        }
        drop_field(fit, WAL__FEATURE_SUMMARY_SOURCES, &item->target);
        return true;
    case WAL__ITEM_LABEL:
        return !count_loss(fit, WAL__FEATURE_LABELS);
    case WAL__ITEM_TITLE:
        return !count_loss(fit, WAL__FEATURE_TITLES);
    case WAL__ITEM_CUSTOM:
        return !count_loss(fit, WAL__FEATURE_CUSTOM);
    case WAL__ITEM_LINE:
        if (item->is_echo) {
            return false;
        }
        return is_native(fit) || !count_loss(fit, WAL__FEATURE_LINES);
    }
    return true;
}

bool wal__model_fit(struct wal__model_item *item, uint64_t carries,
                    const struct wal__dialect *target, struct wal__model_block *summary_block,
                    uint64_t losses[WAL__FEATURE_COUNT])
{
    const struct fit fit = {carries, target, item, summary_block, losses};

    if (item->stream != 0 && count_loss(&fit, WAL__FEATURE_STREAMS)) {
        return false;
    }
    if (item->is_sidechain && count_loss(&fit, WAL__FEATURE_SIDECHAINS)) {
        item->is_sidechain = false; /* an ordinary branch */
    }
    if (item->raw.size > 0 && is_native(&fit)) {
        return item->kind != WAL__ITEM_HEAD;
    }
    if (item->kind != WAL__ITEM_LINE) {
        losses[WAL__FEATURE_FIELDS] += item->fields;
    }
    drop_field(&fit, WAL__FEATURE_TIMES, &item->time);
    return fit_kind(&fit, item);
}

/* --- parts of one answer -------------------------------------------------- */

static bool is_answer_part(const struct wal__model_item *item)
{
    return item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_ASSISTANT &&
           item->answer_id.size > 0;
}

static void overwrite_if_set(struct wal__json_span *field, struct wal__json_span other)
{
    if (other.size > 0) {
        *field = other;
    }
}

static void merge_fields(struct wal__model_item *item, const struct wal__model_item *other)
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

static bool append_blocks(struct wal__model_merge *merge, const struct wal__model_item *other)
{
    struct wal__model_item *item = &merge->item;
    size_t count = item->block_count + other->block_count;
    struct wal__model_block *blocks;

    if (count > merge->capacity) {
        merge->capacity = 2 * count;
        blocks = wal__arena_alloc(merge->scratch, merge->capacity * sizeof(blocks[0]));
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

static bool is_next_part(const struct wal__model_merge *merge, const struct wal__model_item *item)
{
    return merge->has_item && is_answer_part(item) &&
           wal__json_characters_equal(merge->item.answer_id, item->answer_id) &&
           wal__json_characters_equal(merge->last_id, item->parent) &&
           merge->item.is_sidechain == item->is_sidechain && merge->item.stream == item->stream;
}

bool wal__model_merge_drop(struct wal__model_merge *merge, const struct wal__model_item *item,
                           bool *is_part)
{
    *is_part = is_next_part(merge, item);
    if (*is_part) {
        merge->last_id = item->id;
        return merge->on_merged(merge->ctx, item->id, merge->item.id);
    }
    return (item->is_echo && item->is_off_branch) || wal__model_merge_flush(merge);
}

bool wal__model_merge_add(struct wal__model_merge *merge, struct wal__model_item *item)
{
    if (is_next_part(merge, item)) {
        merge_fields(&merge->item, item);
        merge->last_id = item->id;
        return append_blocks(merge, item) && merge->on_merged(merge->ctx, item->id, merge->item.id);
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

/* --- the writer ----------------------------------------------------------- */

#define REPLACEMENT 0xfffd /* of unpaired surrogates */

#define ATTEMPTS 64 /* to find a free id; all fail only if the set is full */

static const struct wal__json_span none = {NULL, 0};

void wal__model_hash_id(const struct wal__model_session *session, struct wal__json_span id,
                        uint64_t more, uint64_t hash[2])
{
    uint64_t seed = wal__model_string_hash(more, session->id);

    hash[0] = wal__model_string_hash(seed, id);
    hash[1] = wal__model_string_hash(~seed, id);
}

static bool make_written_id(struct wal__model_writer *writer, const struct wal__model_item *item,
                            struct wal__json_span id, uint64_t more, struct wal__json_span *id_out)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2];
    struct wal__json_span span = {(const uint8_t *)text, 0};

    wal__model_hash_id(writer->session, id, more, hash);
    span.size = to->make_id(writer, item, hash, text);
    WAL__ASSERT(span.size <= sizeof(text));
    *id_out =
        wal__arena_copy(to->ids_are_stored || more > 0 ? writer->arena : writer->scratch, span);
    return id_out->data != NULL;
}

static bool notify_written(const struct wal__model_writer *writer, struct wal__json_span item,
                           struct wal__json_span written, bool is_part)
{
    const struct wal__model_id_listener *listener = writer->listener;

    return listener == NULL || item.size == 0 || written.size == 0 ||
           listener->on_written(listener->ctx, item, written, is_part);
}

/* Reserves an id; *is_free: no other item has it. False: no memory. */
static bool claim_id(struct wal__model_writer *writer, struct wal__json_span id, bool *is_free)
{
    uint32_t hash = (uint32_t)wal__model_string_hash(0, id);
    bool was_present = false;

    if (!wal__model_set_put(&writer->used_ids, hash != 0 ? hash : 1, &was_present)) {
        return false;
    }
    *is_free = !was_present;
    return true;
}

static bool map_id(struct wal__model_writer *writer, struct wal__json_span id,
                   struct wal__json_span written)
{
    return wal__model_table_put(&writer->written_ids, wal__model_string_hash(0, id), written);
}

/* Maps an id to the written id; empty if no ancestor was written. False: no memory. */
static bool model_written_id(struct wal__model_writer *writer, struct wal__json_span id,
                             struct wal__json_span *written)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;

    if (id.size == 0) {
        *written = none;
        return true;
    }
    (void)wal__model_table_get(&writer->parts, wal__model_string_hash(0, id), &id);
    if (wal__model_table_get(&writer->written_ids, wal__model_string_hash(0, id), written)) {
        return true;
    }
    if (to->is_id == NULL || to->is_id(id)) {
        *written = id;
        return true;
    }
    return make_written_id(writer, NULL, id, 0, written);
}

/* Determines the id of an item that will be written. */
static bool assign_id(struct wal__model_writer *writer, const struct wal__model_item *item,
                      struct wal__json_span *written)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    bool is_free = true;

    if (to->is_id == NULL || to->is_id(item->id)) {
        *written = item->id;
        return !to->ids_may_collide || claim_id(writer, item->id, &is_free);
    }
    for (uint64_t n = 0; n < ATTEMPTS; n++) {
        if (!make_written_id(writer, item, item->id, n, written) ||
            (to->ids_may_collide && !claim_id(writer, *written, &is_free))) {
            return false;
        }
        if (is_free) {
            return (n == 0 && !to->ids_are_stored) || map_id(writer, item->id, *written);
        }
    }
    return false;
}

bool wal__model_derive_id(struct wal__model_writer *writer, const struct wal__model_item *item,
                          uint64_t piece, struct wal__json_span *id)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    char text[WAL__MODEL_ID_SIZE];
    struct wal__json_span span = {(const uint8_t *)text, 0};
    bool is_free = true;
    uint64_t hash[2];

    for (uint64_t n = 0; n < ATTEMPTS; n++) {
        wal__model_hash_id(writer->session, item->id, (piece + 1) * ATTEMPTS + n, hash);
        span.size = to->make_id(writer, item, hash, text);
        WAL__ASSERT(span.size <= sizeof(text));
        if (to->ids_may_collide && !claim_id(writer, span, &is_free)) {
            return false;
        }
        if (is_free) {
            *id = wal__arena_copy(writer->scratch, span);
            return id->data != NULL &&
                   notify_written(writer, writer->head.size > 0 ? writer->head : item->id, *id,
                                  false);
        }
    }
    return false;
}

size_t wal__model_uuid(const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    size_t at = 0;

    id[at++] = '"';
    for (unsigned i = 0; i < 32; i++) {
        unsigned nibble = (unsigned)(hash[i / 16] >> (60 - 4 * (i % 16))) & 0xF;
        if (i == 8 || i == 12 || i == 16 || i == 20) {
            id[at++] = '-';
        }
        if (i == 12) {
            nibble = 8;
        } else if (i == 16) {
            nibble = 8 | (nibble & 3);
        }
        id[at++] = digits[nibble];
    }
    id[at++] = '"';
    WAL__ASSERT(at <= WAL__MODEL_ID_SIZE);
    return at;
}

size_t wal__model_make_uuid(const struct wal__model_writer *writer,
                            const struct wal__model_item *item, const uint64_t hash[2],
                            char id[WAL__MODEL_ID_SIZE])
{
    (void)writer;
    (void)item;
    return wal__model_uuid(hash, id);
}

/* Maps the id of an item that is on no branch to its parent, for its children. */
static bool map_to_parent(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    struct wal__json_span above = none;

    if (item->id.size == 0) {
        return true;
    }
    if (!model_written_id(writer, item->parent, &above)) {
        return false;
    }
    if (above.size > 0) {
        above = wal__arena_copy(writer->arena, above);
    }
    return (above.size == 0 || above.data != NULL) && map_id(writer, item->id, above);
}

/* Whether the item can be written as the line of its source. */
static bool can_write_raw(const struct wal__model_writer *writer,
                          const struct wal__model_item *item, struct wal__json_span parent)
{
    const uint64_t carries = writer->dialect->write_ops->carries;
    const struct wal__json_span above = item->raw_parent.size > 0 ? item->raw_parent : item->parent;

    /* In a dialect without branches, lines do not name parents. */
    return item->raw.size > 0 && item->dialect == writer->dialect &&
           (item->is_off_branch || item->parent.size == 0 ||
            (carries & WAL__CARRIES(BRANCHES)) == 0 ||
            (parent.size == above.size && memcmp(parent.data, above.data, parent.size) == 0));
}

/* Reserves the id of an item that is written as its source line: unchanged. */
static bool reserve_raw_id(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    struct wal__json_span kept;
    bool is_free;

    if (to->ids_may_collide && !claim_id(writer, item->id, &is_free)) {
        return false;
    }
    if (to->is_id == NULL || to->is_id(item->id)) {
        return true;
    }
    kept = wal__arena_copy(writer->arena, item->id);
    return kept.data != NULL && map_id(writer, item->id, kept);
}

/* Whether the item's kind is on no branch in the target dialect. */
static bool is_kind_off_branch(const struct wal__model_writer *writer,
                               const struct wal__model_item *item)
{
    return (writer->dialect->write_ops->off_branch_kinds & 1U << item->kind) != 0 &&
           (item->kind != WAL__ITEM_LINE || item->dialect != writer->dialect);
}

static bool map_item_ids(struct wal__model_writer *writer, const struct wal__model_item *item,
                         struct wal__model_item *out)
{
    if (!model_written_id(writer, item->parent, &out->parent) ||
        !model_written_id(writer, item->target, &out->target)) {
        return false;
    }
    if (item->target.size > 0 && out->target.size == 0) {
        out->target = writer->first_id;
    }
    if (!can_write_raw(writer, item, out->parent)) {
        out->raw = none;
    }
    if (is_kind_off_branch(writer, item)) {
        return map_to_parent(writer, item);
    }
    if (item->id.size > 0 &&
        !(out->raw.size > 0 ? reserve_raw_id(writer, item) : assign_id(writer, item, &out->id))) {
        return false;
    }
    if (item->is_off_branch) {
        /* If the dialect puts lines on a branch, its parent is the tip. */
        out->parent = (struct wal__json_span){writer->tip, writer->tip_size};
        return map_to_parent(writer, item);
    }
    return true;
}

/* Sets the tool's name of a result from its call if it is missing. */
static bool fill_tool_name(struct wal__model_writer *writer, struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        struct wal__json_span name;
        if (block->kind != WAL__BLOCK_TOOL_CALL || block->id.size <= 2) {
            continue;
        }
        name = wal__arena_copy(writer->arena, block->name);
        if (name.data == NULL ||
            !wal__model_table_put(&writer->tool_names, wal__model_string_hash(0, block->id),
                                  name)) {
            return false;
        }
    }
    if (item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_TOOL && item->name.size == 0 &&
        item->call.size > 2) {
        (void)wal__model_table_get(&writer->tool_names, wal__model_string_hash(0, item->call),
                                   &item->name);
    }
    return true;
}

/* Moves the tip after the item was written. */
static void advance_tip(struct wal__model_writer *writer, const struct wal__model_item *item,
                        struct wal__json_span id, struct wal__json_span parent)
{
    bool is_child = parent.size == writer->tip_size &&
                    (parent.size == 0 || memcmp(parent.data, writer->tip, parent.size) == 0);

    bool extends = writer->dialect->write_ops->tip_advances_to_child;
    bool is_side = item->is_sidechain && writer->has_main_branch;

    if (id.size == 0 || is_side || item->stream != 0 || is_kind_off_branch(writer, item) ||
        id.size > sizeof(writer->tip) || (extends ? !is_child : item->is_off_branch)) {
        return;
    }
    writer->has_main_branch |= !item->is_sidechain;
    WAL__ASSERT(id.size <= sizeof(writer->tip));
    memcpy(writer->tip, id.data, id.size);
    writer->tip_size = id.size;
}

/* Sets an invalid time to that of the previous message. */
static bool fill_time(struct wal__model_writer *writer, struct wal__model_item *item)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms;

    if (wal__model_time_read(item->time, &ms)) {
        writer->time = item->kind == WAL__ITEM_MESSAGE ? ms : writer->time;
        return true;
    }
    item->time = wal__arena_copy(writer->scratch, wal__model_time_write(writer->time, text));
    return item->time.data != NULL;
}

/* Determines what becomes of unpaired surrogates in what comes from this dialect. */
static void set_source(struct wal__model_writer *writer, const struct wal__dialect *source)
{
    writer->is_foreign = source != writer->dialect &&
                         (writer->dialect->write_ops->carries & WAL__CARRIES(SURROGATES)) == 0;
}

/* Moves *escape to the next unpaired surrogate, and *at after it. False: there is none. */
static bool find_unpaired(const uint8_t **at, const uint8_t *end, const uint8_t **escape)
{
    while (*at < end && (*at = memchr(*at, '\\', (size_t)(end - *at))) != NULL) {
        uint32_t character = REPLACEMENT;

        *escape = *at;
        if (!wal__json_character_read(at, end, &character)) {
            *at = end; /* a high half at the end of a piece */
        }
        if (character == REPLACEMENT && *at - *escape == 6 && ((*escape)[2] | 0x20) == 'd') {
            return true;
        }
    }
    return false;
}

static uint64_t count_unpaired(struct wal__json_span text)
{
    const uint8_t *at = text.data;
    const uint8_t *escape;
    uint64_t count = 0;

    while (text.size > 0 && find_unpaired(&at, text.data + text.size, &escape)) {
        count++;
    }
    return count;
}

/* Counts what is replaced in an item: once, in however many places a client has its text. */
static uint64_t count_replaced(const struct wal__model_item *item)
{
    uint64_t count =
        count_unpaired(item->text) + count_unpaired(item->name) + count_unpaired(item->data);

    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        count += block->kind == WAL__BLOCK_RAW
                     ? count_unpaired(block->raw)
                     : count_unpaired(block->text) + count_unpaired(block->name) +
                           count_unpaired(block->arguments);
    }
    return count;
}

static bool emit(void *ctx, struct wal__model_item *item)
{
    struct wal__model_writer *writer = ctx;
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    struct wal__model_item out = *item;

    if (!map_item_ids(writer, item, &out) || !fill_time(writer, &out)) {
        return false;
    }
    if (writer->first_id.size == 0 && !item->is_off_branch && out.id.size > 0 &&
        !is_kind_off_branch(writer, item)) {
        writer->first_id = wal__arena_copy(writer->arena, out.id);
    }
    if ((to->carries & WAL__CARRIES(TOOL_NAMES)) != 0 && !fill_tool_name(writer, &out)) {
        return false;
    }
    writer->raw_items_left = out.raw.size > 0 ? item->raw_items_left : 0;
    writer->items++;
    set_source(writer, item->dialect);
    writer->losses[WAL__FEATURE_SURROGATES] += writer->is_foreign ? count_replaced(item) : 0;
    if (!notify_written(writer, item->id, out.id, false) || !to->item(writer, &out) ||
        writer->out.has_failed) {
        return false;
    }
    advance_tip(writer, item, out.id, out.parent);
    return true;
}

static bool on_merged(void *ctx, struct wal__json_span id, struct wal__json_span to)
{
    struct wal__model_writer *writer = ctx;
    struct wal__json_span kept = wal__arena_copy(writer->arena, to);

    return kept.data != NULL &&
           wal__model_table_put(&writer->parts, wal__model_string_hash(0, id), kept) &&
           notify_written(writer, id, to, true);
}

/* Writes JSON with escapes of U+2028 and U+2029, at which some clients end a line. */
static bool put_separators(struct wal__model_writer *writer, const uint8_t *from, size_t size)
{
    const struct wal__model_output *output = writer->output;
    const uint8_t *end = from + size;

    for (const uint8_t *at = from;
         writer->is_foreign && (at = memmem(at, (size_t)(end - at), "\xe2\x80", 2)) != NULL &&
         end - at > 2;
         at++) {
        if (at[2] == 0xa8 || at[2] == 0xa9) {
            if (!output->put(output->ctx, from, (size_t)(at - from)) ||
                !output->put(output->ctx, at[2] == 0xa8 ? "\\u2028" : "\\u2029", 6)) {
                return false;
            }
            writer->size += 3;
            from = at + 3;
        }
    }
    return from == end || output->put(output->ctx, from, (size_t)(end - from));
}

/* Writes JSON. No escape is in two pieces; a piece has the same size with U+FFFD in it. */
static bool put(void *ctx, const void *data, size_t size)
{
    struct wal__model_writer *writer = ctx;
    const struct wal__model_output *output = writer->output;
    const uint8_t *from = data; /* the first byte that is not written */
    const uint8_t *at = from;
    const uint8_t *end = from + size;
    const uint8_t *escape;

    writer->size += size;
    while (writer->is_foreign && find_unpaired(&at, end, &escape)) {
        if (!put_separators(writer, from, (size_t)(escape - from)) ||
            !output->put(output->ctx, "\\ufffd", 6)) {
            return false;
        }
        from = at;
    }
    return put_separators(writer, from, (size_t)(end - from));
}

bool wal__model_write_begin(struct wal__model_writer *writer)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;

    writer->out.put = put;
    writer->out.ctx = writer;
    writer->written_ids.arena = writer->arena;
    writer->parts.arena = writer->arena;
    writer->tool_names.arena = writer->arena;
    writer->used_ids.arena = writer->arena;
    writer->merge.scratch = writer->scratch;
    writer->merge.emit = emit;
    writer->merge.on_merged = on_merged;
    writer->merge.ctx = writer;
    (void)wal__model_time_read(writer->session->time, &writer->time);
    if (to->state_size > 0) {
        writer->state = wal__arena_calloc(writer->arena, to->state_size);
        if (writer->state == NULL) {
            return false;
        }
    }
    set_source(writer, writer->session->dialect);
    return to->begin(writer) && !writer->out.has_failed;
}

/* Whether the item is written as its line although it may be a part of an answer: lines that name
 * no parents stay as they are. */
static bool stays_line(const struct wal__model_writer *writer, const struct wal__model_item *item)
{
    return item->raw.size > 0 && item->dialect == writer->dialect &&
           (writer->dialect->write_ops->carries & WAL__CARRIES(BRANCHES)) == 0;
}

bool wal__model_write_item(struct wal__model_writer *writer, const struct wal__model_item *item)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    struct wal__model_item fitted = *item;
    struct wal__model_block *summary_block =
        wal__arena_alloc(writer->scratch, sizeof(*summary_block));
    uint64_t titles = writer->losses[WAL__FEATURE_TITLES];

    if (summary_block == NULL) {
        return false;
    }
    if (writer->raw_items_left > 0) {
        writer->raw_items_left--;
        advance_tip(writer, item, item->id, item->parent);
        return reserve_raw_id(writer, item) && notify_written(writer, item->id, item->id, false);
    }
    if (!wal__model_fit(&fitted, to->carries, writer->dialect, summary_block, writer->losses)) {
        bool is_part;

        if (item->kind == WAL__ITEM_TITLE && to->has_title &&
            wal__json_characters_equal(item->text, writer->session->title)) {
            writer->losses[WAL__FEATURE_TITLES] = titles;
        }
        return wal__model_merge_drop(&writer->merge, item, &is_part) &&
               (is_part || map_to_parent(writer, item));
    }
    if (fitted.kind == WAL__ITEM_HEADER) {
        /* Later headers are not written. */
        return (to->header_is_entry && item->dialect == writer->dialect && writer->items == 0) ||
               map_to_parent(writer, item);
    }
    if (to->merges_parts && !stays_line(writer, &fitted)) {
        return wal__model_merge_add(&writer->merge, &fitted);
    }
    return wal__model_merge_flush(&writer->merge) && emit(writer, &fitted);
}

bool wal__model_write_clone(const struct wal__model_writer *writer,
                            struct wal__model_writer *branch, struct wal__arena *arena)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;

    WAL__ASSERT(branch != writer);
    *branch = *writer;
    branch->out.ctx = branch;
    branch->arena = arena;
    branch->scratch = arena;
    branch->written_ids = (struct wal__model_table){.arena = arena, .base = &writer->written_ids};
    branch->parts = (struct wal__model_table){.arena = arena, .base = &writer->parts};
    branch->tool_names = (struct wal__model_table){.arena = arena, .base = &writer->tool_names};
    branch->used_ids = (struct wal__model_set){.arena = arena, .base = &writer->used_ids};
    branch->merge.scratch = arena;
    branch->merge.ctx = branch;
    if (to->state_size > 0) {
        branch->state = wal__arena_alloc(arena, to->state_size);
        if (branch->state == NULL) {
            return false;
        }
        memcpy(branch->state, writer->state, to->state_size);
    }
    return to->clone == NULL || to->clone(branch, writer->state);
}

bool wal__model_write_is_idle(const struct wal__model_writer *writer)
{
    return !writer->merge.has_item;
}

bool wal__model_write_end(struct wal__model_writer *writer, struct wal__json_span head)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    struct wal__json_span written = none;

    if (!wal__model_merge_flush(&writer->merge) || !model_written_id(writer, head, &written)) {
        return false;
    }
    writer->head = head;
    set_source(writer, writer->session->dialect);
    if (written.size > 0 && to->head != NULL &&
        (written.size != writer->tip_size ||
         memcmp(written.data, writer->tip, written.size) != 0) &&
        !to->head(writer, written)) {
        return false;
    }
    return (to->end == NULL || to->end(writer)) && !writer->out.has_failed;
}

bool wal__model_write_file(struct wal__model_writer *writer, const char *path,
                           enum wal__output_kind kind)
{
    if (!writer->output->file(writer->output->ctx, path, kind)) {
        writer->out.has_failed = true;
    }
    writer->out.has_value = false;
    return !writer->out.has_failed;
}

bool wal__model_write_stream(struct wal__model_writer *writer, uint32_t stream)
{
    const char *path = writer->dialect->write_ops->path(writer->session, stream, writer->scratch);

    return path != NULL && wal__model_write_file(writer, path, WAL__OUTPUT_LINES);
}

/* Whether the object can be an entry with a parent: its id is a string, and its parentId a string
 * or null. */
static bool has_entry_ids(struct wal__json_span object)
{
    struct wal__json_member ids[2] = {{.key = "id"}, {.key = "parentId"}};

    return wal__model_members(object, ids, 2, NULL) == WAL__JSON_OK &&
           ids[0].value.kind == WAL__JSON_STRING && !ids[0].is_duplicate &&
           (ids[1].value.kind == WAL__JSON_STRING || ids[1].value.kind == WAL__JSON_NULL);
}

bool wal__model_write_line(struct wal__model_writer *writer, const struct wal__model_item *item,
                           struct wal__json_span parent)
{
    const struct wal__json_override ids[] = {
        {"id", item->id},
        {"parentId", parent},
    };

    if (item->dialect != writer->dialect || !has_entry_ids(item->data)) {
        return false;
    }
    wal__json_out_overridden(&writer->out, item->data, ids, 2);
    wal__json_out_newline(&writer->out);
    return true;
}

struct wal__json_span wal__model_or(struct wal__json_span json, const char *literal)
{
    return json.size > 0 ? json : wal__model_literal(literal);
}

void wal__model_write_numbered(struct wal__json_out *out, const char *key, const char *text,
                               uint64_t number)
{
    uint8_t digits[WAL__MODEL_DIGITS];

    wal__json_out_key(out, key);
    wal__json_out_string_begin(out);
    wal__json_out_string_text(out, wal__model_literal(text));
    wal__json_out_string_text(out, wal__model_digits(number, digits));
    wal__json_out_string_end(out);
}

struct wal__json_span wal__model_bool(bool value)
{
    return wal__model_literal(value ? "true" : "false");
}

static void put_time(struct wal__json_out *out, struct wal__json_span time)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms = 0;
    bool is_text = wal__model_time_read(time, &ms) && time.data[0] == '"';

    wal__json_out_value(out, is_text ? time : wal__model_time_write(ms, text));
}

/* Writes the string or the key at the quote `at`, and returns what follows it; after a key whose
 * value is omitted, what follows that. */
static const char *put_quoted(struct wal__json_out *out, const char *at,
                              const struct wal__json_span **values)
{
    size_t size = strcspn(at + 1, "'");
    const struct wal__json_span text = {(const uint8_t *)at + 1, size};
    char key[64] = "";

    WAL__ASSERT(size < sizeof(key));
    memcpy(key, at + 1, size);
    at += size + 2;
    if (*at != ':') {
        wal__json_out_text(out, text);
        return at;
    }
    if (at[1] == '?' && (*values)->size == 0) {
        ++*values;
        return at + 2;
    }
    wal__json_out_key(out, key);
    return at + 1;
}

void wal__model_print_values(struct wal__json_out *out, const char *template,
                             const struct wal__json_span *values, size_t count)
{
    const struct wal__json_span *end = values + count;
    const char *at = template;
    size_t size;

    while (*at != '\0') {
        switch (*at) {
        case '{':
        case '[':
            wal__json_out_open(out, *at++);
            break;
        case '}':
        case ']':
            wal__json_out_close(out, *at++);
            break;
        case '\n':
            wal__json_out_newline(out);
            at++;
            break;
        case ',':
        case ' ':
            at++;
            break;
        case '\'':
            at = put_quoted(out, at, &values);
            break;
        case '%':
        case '?':
            wal__json_out_compact(out, *values++);
            at++;
            break;
        case '$':
            wal__json_out_text(out, *values++);
            at++;
            break;
        case '@':
            put_time(out, *values++);
            at++;
            break;
        default:
            size = strcspn(at, ",]} \n");
            wal__json_out_value(out, (struct wal__json_span){(const uint8_t *)at, size});
            at += size;
            break;
        }
    }
    WAL__ASSERT(values == end);
}

void wal__model_put(struct wal__json_out *out, const char *template)
{
    wal__model_print_values(out, template, &none, 0);
}

/* --- paths ---------------------------------------------------------------- */

static void append(struct wal__model_path *path, const void *data, size_t size)
{
    if (path->text == NULL) {
        return;
    }
    if (path->capacity - path->size <= size) {
        size_t capacity = 2 * (path->capacity + size);
        char *text = wal__arena_alloc(path->arena, capacity);
        if (text != NULL) {
            memcpy(text, path->text, path->size);
        }
        path->text = text;
        path->capacity = capacity;
        if (text == NULL) {
            return;
        }
    }
    WAL__ASSERT(size < path->capacity - path->size);
    memcpy(path->text + path->size, data, size);
    path->size += size;
    path->text[path->size] = '\0';
}

void wal__model_path_init(struct wal__model_path *path, struct wal__arena *arena)
{
    *path = (struct wal__model_path){.arena = arena, .capacity = 256};
    path->text = wal__arena_calloc(arena, path->capacity);
}

void wal__model_path_add(struct wal__model_path *path, const char *text)
{
    append(path, text, strlen(text));
}

/* Appends the text of a JSON string; bytes for which `is_plain` returns false become `other`. */
static void model_path_add_string(struct wal__model_path *path, struct wal__json_span string,
                                  bool (*is_plain)(uint8_t byte), char other)
{
    struct wal__json_span text = wal__arena_unescape(path->arena, string);

    for (size_t i = 0; i < text.size; i++) {
        append(path, is_plain(text.data[i]) ? (const char *)&text.data[i] : &other, 1);
    }
}

/* The maximum size of a folder's name between its dashes, from the limit of file systems, and the
 * size to which a longer name is truncated. */
#define FOLDER_MAX       251
#define FOLDER_TRUNCATED 200

static bool is_name_byte(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z') || byte == '-' || byte == '_' || byte == '.' ||
           byte == '~' || byte >= 0x80;
}

/* Appends a hash that distinguishes names whose text was changed. */
static void add_hash(struct wal__model_path *path, struct wal__json_span text)
{
    uint64_t value = wal__model_hash(0, text);
    char hash[17] = "-";

    for (size_t i = 0; i < 16; i++) {
        hash[1 + i] = "0123456789abcdef"[value >> (60 - 4 * i) & 0xF];
    }
    append(path, hash, sizeof(hash));
}

void wal__model_path_add_id(struct wal__model_path *path, struct wal__json_span id)
{
    struct wal__json_span text = wal__arena_unescape(path->arena, id);
    const struct wal__json_span head = {text.data, text.size < 160 ? text.size : 160};
    bool is_plain = text.size > 0 && text.size <= 160 && text.data[0] != '.';

    for (size_t i = 0; i < text.size; i++) {
        is_plain = is_plain && is_name_byte(text.data[i]);
    }
    if (is_plain) {
        append(path, text.data, text.size);
        return;
    }
    for (size_t i = 0; i < head.size; i++) {
        bool is_safe =
            is_name_byte(head.data[i]) && head.data[i] < 0x80 && (i > 0 || head.data[i] != '.');
        append(path, is_safe ? (const char *)&head.data[i] : "_", 1);
    }
    add_hash(path, text);
}

/* Appends the hash by which truncated names of folders differ, as Claude Code does. */
static void add_folder_hash(struct wal__model_path *path, int32_t hash)
{
    uint32_t rest = hash < 0 ? 0U - (uint32_t)hash : (uint32_t)hash;
    char digits[16];
    size_t at = sizeof(digits) - 1;

    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdefghijklmnopqrstuvwxyz"[rest % 36];
        rest /= 36;
    } while (rest > 0);
    wal__model_path_add(path, "-");
    wal__model_path_add(path, digits + at);
}

void wal__model_path_add_folder(struct wal__model_path *path, struct wal__json_span cwd,
                                size_t most)
{
    const uint8_t *at = cwd.size > 2 ? cwd.data + 1 : NULL;
    const uint8_t *end = cwd.size > 2 ? cwd.data + cwd.size - 1 : NULL;
    size_t count = 0;
    int32_t hash = 0;
    uint32_t code;

    while (at < end && wal__json_character_read(&at, end, &code)) {
        uint32_t units[2] = {code, 0};
        unsigned size = code > 0xFFFF ? 2 : 1;
        if (size == 2) {
            units[0] = 0xD800 + ((code - 0x10000) >> 10);
            units[1] = 0xDC00 + ((code - 0x10000) & 0x3FF);
        }
        for (unsigned i = 0; i < size; i++) {
            char name[2] = {(char)(((units[i] >= '0' && units[i] <= '9') ||
                                    (units[i] >= 'A' && units[i] <= 'Z') ||
                                    (units[i] >= 'a' && units[i] <= 'z'))
                                       ? units[i]
                                       : '-'),
                            '\0'};
            hash = (int32_t)((uint32_t)hash * 31 + units[i]);
            if (count++ < most) {
                wal__model_path_add(path, name);
            }
        }
    }
    if (count == 0) {
        wal__model_path_add(path, "-");
    } else if (count > most) {
        add_folder_hash(path, hash);
    }
}

void wal__model_path_add_time(struct wal__model_path *path, struct wal__json_span time, bool has_ms)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms = 0;

    (void)wal__model_time_read(time, &ms);
    (void)wal__model_time_write(ms, text);
    for (size_t i = 0; i < sizeof(text); i++) {
        if (text[i] == ':' || text[i] == '.') {
            text[i] = '-';
        }
    }
    append(path, text + 1, has_ms ? 24 : 19);
}

const char *wal__model_client_path(const struct wal__model_session *session, uint32_t stream,
                                   const char *dialect)
{
    return stream == 0 && session->file.size > 0 && strcmp(session->file_dialect, dialect) == 0
               ? (const char *)session->file.data
               : NULL;
}

void wal__model_path_add_slug(struct wal__model_path *path, struct wal__json_span cwd,
                              const char *plain, size_t max, const char *empty)
{
    struct wal__json_span text = wal__arena_unescape(path->arena, cwd);
    size_t begin = path->size;
    bool is_dash = true; /* what comes is between nothing */
    size_t at;

    while (text.size > 0 && text.data[text.size - 1] == '/') {
        text.size--;
    }
    for (at = text.size; at > 0 && text.data[at - 1] != '/'; at--) {
    }
    for (; at < text.size && path->text != NULL && path->size - begin < max; at++) {
        uint8_t byte = text.data[at];
        char name[2] = {(char)(byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte), '\0'};
        bool is_plain = (name[0] >= 'a' && name[0] <= 'z') || (name[0] >= '0' && name[0] <= '9') ||
                        (byte != '\0' && strchr(plain, byte) != NULL);

        if (!is_plain) {
            name[0] = '-';
        }
        if (name[0] == '-' ? path->size > begin && (is_plain || !is_dash) : true) {
            wal__model_path_add(path, name);
        }
        is_dash = !is_plain;
    }
    while (path->text != NULL && path->size > begin && path->text[path->size - 1] == '-') {
        path->text[--path->size] = '\0';
    }
    if (path->size == begin) {
        wal__model_path_add(path, empty);
    }
}

const char *wal__model_dashed_path(const struct wal__model_session *session,
                                   bool (*is_plain)(uint8_t byte), bool has_ms,
                                   struct wal__arena *arena)
{
    struct wal__json_span cwd = session->cwd;
    struct wal__json_span text;
    struct wal__model_path path;
    size_t begin;

    wal__model_path_init(&path, arena);
    wal__model_path_add(&path, "sessions/--");
    if (cwd.size > 2 && cwd.data[1] == '/') {
        cwd = wal__arena_escape(arena, (struct wal__json_span){cwd.data + 2, cwd.size - 3});
    }
    begin = path.size;
    model_path_add_string(&path, cwd, is_plain, '-');
    if (path.text != NULL && path.size - begin > FOLDER_MAX) {
        text = wal__arena_unescape(arena, cwd);
        path.size = begin + FOLDER_TRUNCATED;
        while ((path.text[path.size] & 0xC0) == 0x80) {
            path.size--; /* not inside a character */
        }
        add_hash(&path, text);
    }
    wal__model_path_add(&path, "--/");
    wal__model_path_add_time(&path, session->time, has_ms);
    wal__model_path_add(&path, "_");
    wal__model_path_add_id(&path, session->id);
    wal__model_path_add(&path, ".jsonl");
    return path.text;
}

bool wal__model_is_uuid(struct wal__json_span id)
{
    if (id.size != 38) {
        return false;
    }
    for (size_t i = 1; i < 37; i++) {
        bool is_dash = i == 9 || i == 14 || i == 19 || i == 24;
        uint8_t low = id.data[i] | 0x20;
        bool is_digit = (id.data[i] >= '0' && id.data[i] <= '9') || (low >= 'a' && low <= 'f');
        if (is_dash ? id.data[i] != '-' : !is_digit) {
            return false;
        }
    }
    return true;
}

struct wal__json_span wal__model_session_uuid(struct wal__json_span id, struct wal__arena *arena)
{
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2];

    if (wal__model_is_uuid(id)) {
        return wal__arena_copy(arena, id);
    }
    hash[0] = wal__model_string_hash(1, id);
    hash[1] = wal__model_string_hash(2, id);
    return wal__arena_copy(
        arena, (struct wal__json_span){(const uint8_t *)text, wal__model_uuid(hash, text)});
}
