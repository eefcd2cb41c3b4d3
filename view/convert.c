/*
 * convert.c - a session as a dialect's client has it (SPEC.md 10.2).
 *
 * Threads: one thread at a time.
 */
#include "view/convert.h"

#include <string.h>

#include "engine/base/error.h"

static enum wal_status no_memory(struct wal_error *error)
{
    return wal__fail(error, WAL_ENOMEM, 0, NULL, 0, "no memory");
}

/* -------------------------------------------------------- live branch --- */

static uint64_t hash_of(struct wal__json_span id)
{
    return id.size > 0 ? wal__model_string_hash(0, id) : 0;
}

/* What an item's parent is kept with, once the item was written or left out. */
static const uint8_t live[1];
static const uint8_t left_out[1];

/* First pass: remembers the item's parent. */
static bool note(void *ctx, struct wal__model_item *item)
{
    struct wal__convert *convert = ctx;
    struct wal__json_span parent = {NULL, (size_t)hash_of(item->parent)};

    if (item->kind == WAL__MODEL_HEADER || item->id.size == 0) {
        return true;
    }
    if (!item->is_aside && !item->is_sidechain) {
        convert->last = hash_of(item->id);
    }
    return wal__model_table_put(&convert->parents, hash_of(item->id), parent);
}

/* Whether the way up from an item leads to what was live, or to a root when
 * nothing was, over items that are new. */
static bool leads_to_live(const struct wal__convert *convert, uint64_t key)
{
    struct wal__json_span parent;

    /* Parents that name each other in a circle end it too. */
    for (size_t i = 0; i <= convert->parents.count; i++) {
        if (key == 0 ||
            !wal__model_table_get(&convert->parents, key, &parent)) {
            return convert->live == 0;
        }
        if (parent.data != NULL) {
            return parent.data == live && key == convert->live;
        }
        key = (uint64_t)parent.size;
    }
    return convert->live == 0;
}

/* Marks what is on the way from the head up. *extends: all that was marked
 * before is. */
static bool mark_live(struct wal__convert *convert, struct wal__json_span head,
                      bool *extends)
{
    uint64_t key = hash_of(head);
    struct wal__json_span parent;

    if (!wal__model_table_get(&convert->parents, key, &parent)) {
        key = convert->last;
    }
    *extends = leads_to_live(convert, key);
    if (!*extends) {
        return true;
    }
    convert->live = key;
    while (key != 0 && wal__model_table_get(&convert->parents, key, &parent) &&
           parent.data == NULL) {
        parent.data = live;
        if (!wal__model_table_put(&convert->parents, key, parent)) {
            return false;
        }
        key = (uint64_t)parent.size;
    }
    return true;
}

static bool is_live(const struct wal__convert *convert,
                    const struct wal__model_item *item)
{
    struct wal__json_span parent = {NULL, 0};

    return item->is_aside || item->kind == WAL__MODEL_HEADER ||
           item->kind == WAL__MODEL_HEAD ||
           (wal__model_table_get(&convert->parents, hash_of(item->id),
                                 &parent) &&
            parent.data == live);
}

/* An item that is not live is not written, now or ever. */
static bool leave_out(struct wal__convert *convert,
                      const struct wal__model_item *item)
{
    struct wal__json_span parent = {NULL, 0};

    convert->writer.losses[item->is_sidechain ? WAL__FEATURE_SIDECHAINS
                                              : WAL__FEATURE_BRANCHES]++;
    if (!wal__model_table_get(&convert->parents, hash_of(item->id), &parent)) {
        return true;
    }
    parent.data = left_out;
    return wal__model_table_put(&convert->parents, hash_of(item->id), parent);
}

/* Finds out what is live of what is new. */
static enum wal_status take_notes(struct wal__convert *convert,
                                  const struct wal__reach *reach,
                                  struct wal__json_span head, bool *extends,
                                  struct wal_error *error)
{
    uint64_t given;
    enum wal_status status = wal__items_take(&convert->noting, reach, error);

    given = convert->noting.given;
    if (status == WAL_OK) {
        status = wal__items_finish(&convert->noting, error);
    }
    convert->is_spent |= convert->noting.given > given;
    if (status == WAL_OK && (convert->noting.has_stopped ||
                             !wal__items_head(&convert->noting, &head) ||
                             !mark_live(convert, head, extends))) {
        status = no_memory(error);
    }
    return status;
}

/* ------------------------------------------------------------ writing --- */

static bool write_item(void *ctx, struct wal__model_item *item)
{
    struct wal__convert *convert = ctx;

    convert->has_failed |= convert->is_linear && !is_live(convert, item)
                               ? !leave_out(convert, item)
                               : !wal__model_write_item(&convert->writer, item);
    return !convert->has_failed;
}

static bool is_idle(void *ctx)
{
    struct wal__convert *convert = ctx;

    return wal__model_write_is_idle(&convert->writer);
}

/* Why writing failed. */
static enum wal_status writer_failure(const struct wal__convert *convert,
                                      struct wal_error *error)
{
    if (convert->files->status != WAL_OK) {
        wal__error_copy(error, &convert->files->error);
        return convert->files->status;
    }
    return no_memory(error);
}

static void begin_items(struct wal__convert *convert, struct wal__items *items)
{
    items->heap = convert->env->heap;
    items->store = convert->store;
    items->session = convert->session;
    items->dialect = convert->known.dialect;
    items->is_fork = convert->known.is_fork;
    items->ctx = convert;
    wal__items_init(items);
}

enum wal_status wal__convert_begin(struct wal__convert *convert,
                                   struct wal_error *error)
{
    const struct wal__dialect_writing *to = convert->dialect->writing;
    enum wal_status status = WAL_OK;

    convert->has_begun = true;
    convert->is_linear = (to->carries & WAL__CARRIES(BRANCHES)) == 0;
    convert->output = wal__view_files_output(convert->files);
    wal__heap_arena_init(&convert->keep, convert->env->heap);
    wal__heap_arena_init(&convert->tail, convert->env->heap);
    begin_items(convert, &convert->items);
    begin_items(convert, &convert->noting);
    convert->items.sink = write_item;
    convert->items.is_idle = is_idle;
    convert->items.keeps = to->merges;
    convert->noting.sink = note;
    convert->parents.arena = &convert->keep.arena;
    convert->writer = (struct wal__model_writer){
        .dialect = convert->dialect,
        .session = &convert->known.session,
        .output = &convert->output,
        .keep = &convert->keep.arena,
        .scratch = &convert->items.scratch.arena,
    };
    if (convert->is_linear) {
        status = wal__items_begin(&convert->noting, error);
    }
    return status;
}

void wal__convert_deinit(struct wal__convert *convert)
{
    if (convert->has_begun) {
        wal__items_deinit(&convert->items);
        wal__items_deinit(&convert->noting);
        wal__heap_arena_deinit(&convert->keep);
        wal__heap_arena_deinit(&convert->tail);
    }
    wal__known_deinit(&convert->known);
    *convert = (struct wal__convert){.has_begun = false};
}

enum wal_status wal__convert_take(struct wal__convert *convert,
                                  const struct wal__reach *reach,
                                  struct wal__json_span head, bool *extends,
                                  struct wal_error *error)
{
    bool is_first = convert->writer.out.put == NULL;
    enum wal_status status = WAL_OK;
    uint64_t given;

    *extends = true;
    if (convert->is_linear) {
        status = take_notes(convert, reach, head, extends, error);
    }
    if (status != WAL_OK || !*extends) {
        return status;
    }
    if (is_first) {
        convert->has_failed = !wal__model_write_begin(&convert->writer) ||
                              convert->keep.has_failed ||
                              convert->items.scratch.has_failed;
        status = convert->has_failed ? writer_failure(convert, error)
                                     : wal__items_begin(&convert->items, error);
    }
    if (status == WAL_OK && !convert->has_failed) {
        status = wal__items_take(&convert->items, reach, error);
    }
    given = convert->items.given;
    if (status == WAL_OK && !convert->has_failed) {
        status = wal__items_finish(&convert->items, error);
    }
    convert->is_spent |= convert->items.given > given;
    convert->is_spent |= convert->items.is_copy;
    return status == WAL_OK && convert->has_failed
               ? writer_failure(convert, error)
               : status;
}

enum wal_status wal__convert_end(struct wal__convert *convert,
                                 struct wal__json_span head,
                                 struct wal__json_span updated,
                                 uint64_t losses[WAL__FEATURE_COUNT],
                                 struct wal_error *error)
{
    struct wal__model_session session = convert->known.session;
    struct wal__model_writer branch;
    bool is_written;

    wal__heap_arena_reset(&convert->tail);
    session.updated = updated;
    is_written = wal__model_write_branch(&convert->writer, &branch,
                                         &convert->tail.arena);
    branch.session = &session;
    if (!is_written || !wal__items_head(&convert->items, &head) ||
        !wal__model_write_end(&branch, head) || convert->tail.has_failed ||
        convert->keep.has_failed) {
        convert->is_spent = true;
        return writer_failure(convert, error);
    }
    memcpy(losses, branch.losses, sizeof(branch.losses));
    losses[WAL__FEATURE_DAMAGED] += convert->items.damaged;
    losses[WAL__FEATURE_REDACTED] += convert->items.redacted;
    return WAL_OK;
}
