/*
 * model_write.c - writes items in a dialect.
 *
 * Threads: one thread at a time per writer.
 */
#include "convert/model/model_write.h"

#include <string.h>

#include "convert/model/model_fit.h"
#include "convert/model/model_member.h"
#include "format/bytes/assert.h"
#include "format/payload/timestamp.h"

#define ATTEMPTS 64 /* to find a free id; all fail only if the set is full */

static const struct wal__json_span none = {NULL, 0};

static void hash_id(const struct wal__model_writer *writer,
                    struct wal__json_span id, uint64_t more, uint64_t hash[2])
{
    uint64_t seed = wal__model_string_hash(more, writer->session->id);

    hash[0] = wal__model_string_hash(seed, id);
    hash[1] = wal__model_string_hash(~seed, id);
}

static bool make_written_id(struct wal__model_writer *writer,
                            const struct wal__model_item *item,
                            struct wal__json_span id, uint64_t more,
                            struct wal__json_span *id_out)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2];
    struct wal__json_span span = {(const uint8_t *)text, 0};

    hash_id(writer, id, more, hash);
    span.size = to->make_id(writer, item, hash, text);
    WAL__ASSERT(span.size <= sizeof(text));
    *id_out = wal__arena_copy(
        to->ids_are_stored || more > 0 ? writer->arena : writer->scratch, span);
    return id_out->data != NULL;
}

static bool notify_written(const struct wal__model_writer *writer,
                           struct wal__json_span item,
                           struct wal__json_span written, bool is_part)
{
    const struct wal__model_id_listener *listener = writer->listener;

    return listener == NULL || item.size == 0 || written.size == 0 ||
           listener->on_written(listener->ctx, item, written, is_part);
}

/* Reserves an id; *is_free: no other item has it. False: no memory. */
static bool claim_id(struct wal__model_writer *writer, struct wal__json_span id,
                     bool *is_free)
{
    uint32_t hash = (uint32_t)wal__model_string_hash(0, id);
    bool was_present = false;

    if (!wal__model_set_put(&writer->used_ids, hash != 0 ? hash : 1,
                            &was_present)) {
        return false;
    }
    *is_free = !was_present;
    return true;
}

static bool map_id(struct wal__model_writer *writer, struct wal__json_span id,
                   struct wal__json_span written)
{
    return wal__model_table_put(&writer->written_ids,
                                wal__model_string_hash(0, id), written);
}

bool wal__model_written_id(struct wal__model_writer *writer,
                           struct wal__json_span id,
                           struct wal__json_span *written)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;

    if (id.size == 0) {
        *written = none;
        return true;
    }
    (void)wal__model_table_get(&writer->parts, wal__model_string_hash(0, id),
                               &id);
    if (wal__model_table_get(&writer->written_ids,
                             wal__model_string_hash(0, id), written)) {
        return true;
    }
    if (to->is_id == NULL || to->is_id(id)) {
        *written = id;
        return true;
    }
    return make_written_id(writer, NULL, id, 0, written);
}

/* Determines the id of an item that will be written. */
static bool assign_id(struct wal__model_writer *writer,
                      const struct wal__model_item *item,
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
            return (n == 0 && !to->ids_are_stored) ||
                   map_id(writer, item->id, *written);
        }
    }
    return false;
}

bool wal__model_derive_id(struct wal__model_writer *writer,
                          const struct wal__model_item *item, uint64_t piece,
                          struct wal__json_span *id)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    char text[WAL__MODEL_ID_SIZE];
    struct wal__json_span span = {(const uint8_t *)text, 0};
    bool is_free = true;
    uint64_t hash[2];

    for (uint64_t n = 0; n < ATTEMPTS; n++) {
        hash_id(writer, item->id, (piece + 1) * ATTEMPTS + n, hash);
        span.size = to->make_id(writer, item, hash, text);
        WAL__ASSERT(span.size <= sizeof(text));
        if (to->ids_may_collide && !claim_id(writer, span, &is_free)) {
            return false;
        }
        if (is_free) {
            *id = wal__arena_copy(writer->scratch, span);
            return id->data != NULL &&
                   notify_written(
                       writer, writer->head.size > 0 ? writer->head : item->id,
                       *id, false);
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

/* Maps the id of an item that is on no branch to its parent, for its children.
 */
static bool map_to_parent(struct wal__model_writer *writer,
                          const struct wal__model_item *item)
{
    struct wal__json_span above = none;

    if (item->id.size == 0) {
        return true;
    }
    if (!wal__model_written_id(writer, item->parent, &above)) {
        return false;
    }
    if (above.size > 0) {
        above = wal__arena_copy(writer->arena, above);
    }
    return (above.size == 0 || above.data != NULL) &&
           map_id(writer, item->id, above);
}

/* Whether the item can be written as the line of its source. */
static bool can_write_raw(const struct wal__model_writer *writer,
                          const struct wal__model_item *item,
                          struct wal__json_span parent)
{
    const uint64_t carries = writer->dialect->write_ops->carries;

    /* In a dialect without branches, lines do not name parents. */
    return item->raw.size > 0 && item->dialect == writer->dialect &&
           (item->is_off_branch || item->parent.size == 0 ||
            (carries & WAL__CARRIES(BRANCHES)) == 0 ||
            (parent.size == item->parent.size &&
             memcmp(parent.data, item->parent.data, parent.size) == 0));
}

/* Reserves the id of an item that is written as its source line: unchanged. */
static bool reserve_raw_id(struct wal__model_writer *writer,
                           const struct wal__model_item *item)
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
    return (writer->dialect->write_ops->off_branch_kinds & 1U << item->kind) !=
               0 &&
           (item->kind != WAL__ITEM_LINE || item->dialect != writer->dialect);
}

static bool map_item_ids(struct wal__model_writer *writer,
                         const struct wal__model_item *item,
                         struct wal__model_item *out)
{
    if (!wal__model_written_id(writer, item->parent, &out->parent) ||
        !wal__model_written_id(writer, item->target, &out->target)) {
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
        !(out->raw.size > 0 ? reserve_raw_id(writer, item)
                            : assign_id(writer, item, &out->id))) {
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
static bool fill_tool_name(struct wal__model_writer *writer,
                           struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        struct wal__json_span name;
        if (block->kind != WAL__BLOCK_TOOL_CALL || block->id.size <= 2) {
            continue;
        }
        name = wal__arena_copy(writer->arena, block->name);
        if (name.data == NULL ||
            !wal__model_table_put(&writer->tool_names,
                                  wal__model_string_hash(0, block->id), name)) {
            return false;
        }
    }
    if (item->kind == WAL__ITEM_MESSAGE && item->role == WAL__ROLE_TOOL &&
        item->name.size == 0 && item->call.size > 2) {
        (void)wal__model_table_get(&writer->tool_names,
                                   wal__model_string_hash(0, item->call),
                                   &item->name);
    }
    return true;
}

/* Moves the tip after the item was written. */
static void advance_tip(struct wal__model_writer *writer,
                        const struct wal__model_item *item,
                        struct wal__json_span id, struct wal__json_span parent)
{
    bool is_child = parent.size == writer->tip_size &&
                    (parent.size == 0 ||
                     memcmp(parent.data, writer->tip, parent.size) == 0);

    bool extends = writer->dialect->write_ops->tip_advances_to_child;
    bool is_side = item->is_sidechain && writer->has_main_branch;

    if (id.size == 0 || is_side || item->stream != 0 ||
        is_kind_off_branch(writer, item) || id.size > sizeof(writer->tip) ||
        (extends ? !is_child : item->is_off_branch)) {
        return;
    }
    writer->has_main_branch |= !item->is_sidechain;
    WAL__ASSERT(id.size <= sizeof(writer->tip));
    memcpy(writer->tip, id.data, id.size);
    writer->tip_size = id.size;
}

/* Sets an invalid time to that of the previous message. */
static bool fill_time(struct wal__model_writer *writer,
                      struct wal__model_item *item)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms;

    if (wal__model_time_read(item->time, &ms)) {
        writer->time = item->kind == WAL__ITEM_MESSAGE ? ms : writer->time;
        return true;
    }
    item->time = wal__arena_copy(writer->scratch,
                                 wal__model_time_write(writer->time, text));
    return item->time.data != NULL;
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
    if ((to->carries & WAL__CARRIES(TOOL_NAMES)) != 0 &&
        !fill_tool_name(writer, &out)) {
        return false;
    }
    writer->raw_items_left = out.raw.size > 0 ? item->raw_items_left : 0;
    writer->items++;
    if (!notify_written(writer, item->id, out.id, false) ||
        !to->item(writer, &out) || writer->out.has_failed) {
        return false;
    }
    advance_tip(writer, item, out.id, out.parent);
    return true;
}

static bool on_merged(void *ctx, struct wal__json_span id,
                      struct wal__json_span to)
{
    struct wal__model_writer *writer = ctx;
    struct wal__json_span kept = wal__arena_copy(writer->arena, to);

    return kept.data != NULL &&
           wal__model_table_put(&writer->parts, wal__model_string_hash(0, id),
                                kept) &&
           notify_written(writer, id, to, true);
}

static bool put(void *ctx, const void *data, size_t size)
{
    const struct wal__model_output *output = ctx;

    return output->put(output->ctx, data, size);
}

bool wal__model_write_begin(struct wal__model_writer *writer)
{
    writer->out.put = put;
    writer->out.ctx = (void *)(uintptr_t)writer->output;
    writer->written_ids.arena = writer->arena;
    writer->parts.arena = writer->arena;
    writer->tool_names.arena = writer->arena;
    writer->used_ids.arena = writer->arena;
    writer->merge.scratch = writer->scratch;
    writer->merge.emit = emit;
    writer->merge.on_merged = on_merged;
    writer->merge.ctx = writer;
    (void)wal__model_time_read(writer->session->time, &writer->time);
    return writer->dialect->write_ops->begin(writer) && !writer->out.has_failed;
}

bool wal__model_write_item(struct wal__model_writer *writer,
                           const struct wal__model_item *item)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    struct wal__model_item fitted = *item;
    struct wal__model_block *summary_block =
        wal__arena_alloc(writer->scratch, sizeof(*summary_block));

    if (summary_block == NULL) {
        return false;
    }
    if (writer->raw_items_left > 0) {
        writer->raw_items_left--;
        advance_tip(writer, item, item->id, item->parent);
        return reserve_raw_id(writer, item) &&
               notify_written(writer, item->id, item->id, false);
    }
    if (!wal__model_fit(&fitted, to->carries, writer->dialect, summary_block,
                        writer->losses)) {
        bool ends_answer = !item->is_echo || !item->is_off_branch;
        return (!ends_answer || wal__model_merge_flush(&writer->merge)) &&
               map_to_parent(writer, item);
    }
    if (fitted.kind == WAL__ITEM_HEADER) {
        /* Later headers are not written. */
        return (to->header_is_entry && item->dialect == writer->dialect &&
                writer->items == 0) ||
               map_to_parent(writer, item);
    }
    return to->merges_parts ? wal__model_merge_add(&writer->merge, &fitted)
                            : emit(writer, &fitted);
}

bool wal__model_write_clone(const struct wal__model_writer *writer,
                            struct wal__model_writer *branch,
                            struct wal__arena *arena)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;

    WAL__ASSERT(branch != writer);
    *branch = *writer;
    branch->arena = arena;
    branch->scratch = arena;
    branch->written_ids =
        (struct wal__model_table){.arena = arena, .base = &writer->written_ids};
    branch->parts =
        (struct wal__model_table){.arena = arena, .base = &writer->parts};
    branch->tool_names =
        (struct wal__model_table){.arena = arena, .base = &writer->tool_names};
    branch->used_ids =
        (struct wal__model_set){.arena = arena, .base = &writer->used_ids};
    branch->merge.scratch = arena;
    branch->merge.ctx = branch;
    return to->clone == NULL || to->clone(branch);
}

bool wal__model_write_is_idle(const struct wal__model_writer *writer)
{
    return !writer->merge.has_item;
}

bool wal__model_write_end(struct wal__model_writer *writer,
                          struct wal__json_span head)
{
    const struct wal__dialect_write_ops *to = writer->dialect->write_ops;
    struct wal__json_span written = none;

    if (!wal__model_merge_flush(&writer->merge) ||
        !wal__model_written_id(writer, head, &written)) {
        return false;
    }
    writer->head = head;
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

struct wal__json_span wal__model_or(struct wal__json_span json,
                                    const char *literal)
{
    return json.size > 0 ? json : wal__model_literal(literal);
}

void wal__model_write_time(struct wal__json_out *out, const char *key,
                           struct wal__json_span time)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms = 0;

    if (wal__model_time_read(time, &ms) && time.data[0] == '"') {
        wal__json_out_member(out, key, time);
        return;
    }
    wal__json_out_member(out, key, wal__model_time_write(ms, text));
}
