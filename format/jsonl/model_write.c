/*
 * model_write: items go out in a dialect.
 *
 * Threads: one thread at a time per writer.
 */
#include "format/jsonl/model_write.h"

#include <string.h>

#include "format/jsonl/model_fit.h"
#include "format/jsonl/model_read.h"
#include "format/jsonl/model_time.h"

#define ATTEMPTS 64 /* of which one is free, but for a set that is full */

static const struct wal__json_span none = {NULL, 0};

static void hash_id(const struct wal__model_writer *writer,
                    struct wal__json_span id, uint64_t more, uint64_t hash[2])
{
    uint64_t seed = wal__model_string_hash(more, writer->session->id);

    hash[0] = wal__model_string_hash(seed, id);
    hash[1] = wal__model_string_hash(~seed, id);
}

static bool make(struct wal__model_writer *writer,
                 const struct wal__model_item *item, struct wal__json_span id,
                 uint64_t more, struct wal__json_span *made)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;
    char text[WAL__MODEL_ID_SIZE];
    uint64_t hash[2];
    struct wal__json_span span = {(const uint8_t *)text, 0};

    hash_id(writer, id, more, hash);
    span.size = to->make_id(writer, item, hash, text);
    *made = wal__arena_copy(
        to->ids_are_kept || more > 0 ? writer->keep : writer->scratch, span);
    return made->data != NULL;
}

static bool tell(const struct wal__model_writer *writer,
                 struct wal__json_span item, struct wal__json_span written,
                 bool is_part)
{
    const struct wal__model_listener *listener = writer->listener;

    return listener == NULL || item.size == 0 || written.size == 0 ||
           listener->told(listener->ctx, item, written, is_part);
}

/* Whether no item has the id; then this one does. */
static bool claim(struct wal__model_writer *writer, struct wal__json_span id,
                  bool *is_free)
{
    uint32_t hash = (uint32_t)wal__model_string_hash(0, id);
    bool was_there = false;

    if (!wal__model_set_put(&writer->taken, hash != 0 ? hash : 1, &was_there)) {
        return false;
    }
    *is_free = !was_there;
    return true;
}

static bool link_id(struct wal__model_writer *writer, struct wal__json_span id,
                    struct wal__json_span written)
{
    return wal__model_table_put(&writer->links, wal__model_string_hash(0, id),
                                written);
}

bool wal__model_written_id(struct wal__model_writer *writer,
                           struct wal__json_span id,
                           struct wal__json_span *written)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;

    if (id.size == 0) {
        *written = none;
        return true;
    }
    (void)wal__model_table_get(&writer->parts, wal__model_string_hash(0, id),
                               &id);
    if (wal__model_table_get(&writer->links, wal__model_string_hash(0, id),
                             written)) {
        return true;
    }
    if (to->is_id == NULL || to->is_id(id)) {
        *written = id;
        return true;
    }
    return make(writer, NULL, id, 0, written);
}

/* The id of an item that is about to be written. */
static bool new_id(struct wal__model_writer *writer,
                   const struct wal__model_item *item,
                   struct wal__json_span *written)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;
    bool is_free = true;

    if (to->is_id == NULL || to->is_id(item->id)) {
        *written = item->id;
        return !to->ids_may_meet || claim(writer, item->id, &is_free);
    }
    for (uint64_t n = 0; n < ATTEMPTS; n++) {
        if (!make(writer, item, item->id, n, written) ||
            (to->ids_may_meet && !claim(writer, *written, &is_free))) {
            return false;
        }
        if (is_free) {
            return (n == 0 && !to->ids_are_kept) ||
                   link_id(writer, item->id, *written);
        }
    }
    return false;
}

bool wal__model_piece_id(struct wal__model_writer *writer,
                         const struct wal__model_item *item, uint64_t piece,
                         struct wal__json_span *id)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;
    char text[WAL__MODEL_ID_SIZE];
    struct wal__json_span span = {(const uint8_t *)text, 0};
    bool is_free = true;
    uint64_t hash[2];

    for (uint64_t n = 0; n < ATTEMPTS; n++) {
        hash_id(writer, item->id, (piece + 1) * ATTEMPTS + n, hash);
        span.size = to->make_id(writer, item, hash, text);
        if (to->ids_may_meet && !claim(writer, span, &is_free)) {
            return false;
        }
        if (is_free) {
            *id = wal__arena_copy(writer->scratch, span);
            return id->data != NULL &&
                   tell(writer, writer->head.size > 0 ? writer->head : item->id,
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
    return at;
}

/* What was under an item that is not on a branch goes under its parent. */
static bool pass_over(struct wal__model_writer *writer,
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
        above = wal__arena_copy(writer->keep, above);
    }
    return (above.size == 0 || above.data != NULL) &&
           link_id(writer, item->id, above);
}

/* Whether the item can go out as the line that it was read from. */
static bool stays(const struct wal__model_writer *writer,
                  const struct wal__model_item *item,
                  struct wal__json_span parent)
{
    const uint64_t carries = writer->dialect->writing->carries;

    /* Where there are no branches, no line names its parent. */
    return item->raw.size > 0 && item->dialect == writer->dialect &&
           (item->is_aside || item->parent.size == 0 ||
            (carries & WAL__CARRIES(BRANCHES)) == 0 ||
            (parent.size == item->parent.size &&
             memcmp(parent.data, item->parent.data, parent.size) == 0));
}

/* The id of an item that goes out as its own line is written as it is. */
static bool keep_id(struct wal__model_writer *writer,
                    const struct wal__model_item *item)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;
    struct wal__json_span kept;
    bool is_free;

    if (to->ids_may_meet && !claim(writer, item->id, &is_free)) {
        return false;
    }
    if (to->is_id == NULL || to->is_id(item->id)) {
        return true;
    }
    kept = wal__arena_copy(writer->keep, item->id);
    return kept.data != NULL && link_id(writer, item->id, kept);
}

/* Whether the item is on no branch in the dialect that is written. */
static bool is_beside(const struct wal__model_writer *writer,
                      const struct wal__model_item *item)
{
    return (writer->dialect->writing->asides & 1U << item->kind) != 0 &&
           (item->kind != WAL__MODEL_LINE || item->dialect != writer->dialect);
}

static bool set_ids(struct wal__model_writer *writer,
                    const struct wal__model_item *item,
                    struct wal__model_item *out)
{
    if (!wal__model_written_id(writer, item->parent, &out->parent) ||
        !wal__model_written_id(writer, item->target, &out->target)) {
        return false;
    }
    if (item->target.size > 0 && out->target.size == 0) {
        out->target = writer->first;
    }
    if (!stays(writer, item, out->parent)) {
        out->raw = none;
    }
    if (is_beside(writer, item)) {
        return pass_over(writer, item);
    }
    if (item->id.size > 0 &&
        !(out->raw.size > 0 ? keep_id(writer, item)
                            : new_id(writer, item, &out->id))) {
        return false;
    }
    if (item->is_aside) {
        /* Where lines are on a branch, it is under the last one. */
        out->parent = (struct wal__json_span){writer->tip, writer->tip_size};
        return pass_over(writer, item);
    }
    return true;
}

/* Results that do not name their tool get the name from the call. */
static bool name_tools(struct wal__model_writer *writer,
                       struct wal__model_item *item)
{
    for (size_t i = 0; i < item->block_count; i++) {
        const struct wal__model_block *block = &item->blocks[i];
        struct wal__json_span name;
        if (block->kind != WAL__BLOCK_TOOL_CALL || block->id.size <= 2) {
            continue;
        }
        name = wal__arena_copy(writer->keep, block->name);
        if (name.data == NULL ||
            !wal__model_table_put(&writer->calls,
                                  wal__model_string_hash(0, block->id), name)) {
            return false;
        }
    }
    if (item->kind == WAL__MODEL_MESSAGE && item->role == WAL__ROLE_TOOL &&
        item->name.size == 0 && item->call.size > 2) {
        (void)wal__model_table_get(
            &writer->calls, wal__model_string_hash(0, item->call), &item->name);
    }
    return true;
}

/* Where the client goes on, once this item is written. */
static void move_tip(struct wal__model_writer *writer,
                     const struct wal__model_item *item,
                     struct wal__json_span id, struct wal__json_span parent)
{
    bool is_under = parent.size == writer->tip_size &&
                    (parent.size == 0 ||
                     memcmp(parent.data, writer->tip, parent.size) == 0);

    bool extends = writer->dialect->writing->tip_extends;
    bool is_side = item->is_sidechain && writer->has_mainline;

    if (id.size == 0 || is_side || item->stream != 0 ||
        is_beside(writer, item) || id.size > sizeof(writer->tip) ||
        (extends ? !is_under : item->is_aside)) {
        return;
    }
    writer->has_mainline |= !item->is_sidechain;
    memcpy(writer->tip, id.data, id.size);
    writer->tip_size = id.size;
}

/* What has no time that can be read gets that of the message before it. */
static bool set_time(struct wal__model_writer *writer,
                     struct wal__model_item *item)
{
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms;

    if (wal__model_time_read(item->time, &ms)) {
        writer->time = item->kind == WAL__MODEL_MESSAGE ? ms : writer->time;
        return true;
    }
    item->time = wal__arena_copy(writer->scratch,
                                 wal__model_time_write(writer->time, text));
    return item->time.data != NULL;
}

static bool give(void *ctx, struct wal__model_item *item)
{
    struct wal__model_writer *writer = ctx;
    const struct wal__dialect_writing *to = writer->dialect->writing;
    struct wal__model_item out = *item;

    if (!set_ids(writer, item, &out) || !set_time(writer, &out)) {
        return false;
    }
    if (writer->first.size == 0 && !item->is_aside && out.id.size > 0 &&
        !is_beside(writer, item)) {
        writer->first = wal__arena_copy(writer->keep, out.id);
    }
    if ((to->carries & WAL__CARRIES(TOOL_NAMES)) != 0 &&
        !name_tools(writer, &out)) {
        return false;
    }
    writer->rest = out.raw.size > 0 ? item->rest : 0;
    writer->items++;
    if (!tell(writer, item->id, out.id, false) || !to->item(writer, &out) ||
        writer->out.has_failed) {
        return false;
    }
    move_tip(writer, item, out.id, out.parent);
    return true;
}

static bool joined(void *ctx, struct wal__json_span id,
                   struct wal__json_span to)
{
    struct wal__model_writer *writer = ctx;
    struct wal__json_span kept = wal__arena_copy(writer->keep, to);

    return kept.data != NULL &&
           wal__model_table_put(&writer->parts, wal__model_string_hash(0, id),
                                kept) &&
           tell(writer, id, to, true);
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
    writer->links.arena = writer->keep;
    writer->parts.arena = writer->keep;
    writer->calls.arena = writer->keep;
    writer->taken.arena = writer->keep;
    writer->merge.scratch = writer->scratch;
    writer->merge.give = give;
    writer->merge.joined = joined;
    writer->merge.ctx = writer;
    (void)wal__model_time_read(writer->session->time, &writer->time);
    return writer->dialect->writing->begin(writer) && !writer->out.has_failed;
}

bool wal__model_write_item(struct wal__model_writer *writer,
                           const struct wal__model_item *item)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;
    struct wal__model_item fitted = *item;
    struct wal__model_block *spare =
        wal__arena_take(writer->scratch, sizeof(*spare));

    if (spare == NULL) {
        return false;
    }
    if (writer->rest > 0) {
        writer->rest--;
        move_tip(writer, item, item->id, item->parent);
        return keep_id(writer, item) && tell(writer, item->id, item->id, false);
    }
    if (!wal__model_fit(&fitted, to->carries, writer->dialect, spare,
                        writer->losses)) {
        bool cuts = !item->is_echo || !item->is_aside;
        return (!cuts || wal__model_merge_end(&writer->merge)) &&
               pass_over(writer, item);
    }
    if (fitted.kind == WAL__MODEL_HEADER) {
        /* Another one, behind an entry, is not written. */
        return (to->keeps_header && item->dialect == writer->dialect &&
                writer->items == 0) ||
               pass_over(writer, item);
    }
    return to->merges ? wal__model_merge_put(&writer->merge, &fitted)
                      : give(writer, &fitted);
}

bool wal__model_write_branch(const struct wal__model_writer *writer,
                             struct wal__model_writer *branch,
                             struct wal__arena *arena)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;

    *branch = *writer;
    branch->keep = arena;
    branch->scratch = arena;
    branch->links =
        (struct wal__model_table){.arena = arena, .below = &writer->links};
    branch->parts =
        (struct wal__model_table){.arena = arena, .below = &writer->parts};
    branch->calls =
        (struct wal__model_table){.arena = arena, .below = &writer->calls};
    branch->taken =
        (struct wal__model_set){.arena = arena, .below = &writer->taken};
    branch->merge.scratch = arena;
    branch->merge.ctx = branch;
    return to->branch == NULL || to->branch(branch);
}

bool wal__model_write_is_idle(const struct wal__model_writer *writer)
{
    return !writer->merge.has_item;
}

bool wal__model_write_end(struct wal__model_writer *writer,
                          struct wal__json_span head)
{
    const struct wal__dialect_writing *to = writer->dialect->writing;
    struct wal__json_span written = none;

    if (!wal__model_merge_end(&writer->merge) ||
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
    return to->end(writer) && !writer->out.has_failed;
}

bool wal__model_write_file(struct wal__model_writer *writer, const char *path,
                           bool is_document)
{
    if (!writer->output->file(writer->output->ctx, path, is_document)) {
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

void wal__model_out_time(struct wal__json_out *out, const char *key,
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
