/*
 * told.c - which entry of the log is what a view's file has under an id
 * (SPEC.md 10.6).
 *
 * What is settled of the file tells whether the run is the one that wrote it;
 * what stands behind that is known only where all of the file is the same.
 *
 * Threads: one thread at a time.
 */
#include "view/told.h"

#include <string.h>

#include "view/convert.h"

struct telling {
    struct wal__told *told;
    const char *path;
    bool is_chosen;             /* what is put is of that file */
    struct wal__digest digest;  /* of it */
    struct wal__model_table of; /* as it is being told */
    struct wal__json_span last;
};

static bool choose(void *ctx, const char *path, bool is_document)
{
    struct telling *telling = ctx;

    telling->is_chosen = !is_document && strcmp(path, telling->path) == 0;
    return true;
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct telling *telling = ctx;

    if (telling->is_chosen) {
        wal__digest_add(&telling->digest, data, size);
    }
    return true;
}

static bool hear(void *ctx, struct wal__json_span item,
                 struct wal__json_span written, bool is_part)
{
    struct telling *telling = ctx;
    struct wal__json_span kept =
        wal__arena_copy(&telling->told->memory.arena, item);
    uint64_t key = wal__model_string_hash(0, written);

    if (kept.data == NULL) {
        return false;
    }
    if (is_part) {
        return wal__model_table_put(&telling->told->parts, key, kept);
    }
    telling->last = kept;
    return wal__model_table_put(&telling->of, key, kept);
}

/* Runs over what the view has, and keeps what was told if that is it. */
static enum wal_status run(struct telling *telling,
                           struct wal__convert *convert,
                           const struct wal_view *view,
                           const struct wal__left *left,
                           struct wal_error *error)
{
    const struct wal__reach reach = {
        {view->position.entries[0], view->position.entries[1]}};
    const struct wal__model_listener listener = {telling, hear};
    struct wal__json_span head = convert->known.head;
    struct wal__told *told = telling->told;
    uint64_t losses[WAL__FEATURE_COUNT];
    bool extends = true;
    enum wal_status status = wal__convert_begin(convert, error);

    convert->output = (struct wal__model_output){telling, choose, put};
    convert->writer.listener = &listener;
    if (status == WAL_OK) {
        status = wal__convert_take(convert, &reach, head, &extends, error);
    }
    if (status != WAL_OK || !extends ||
        !wal__digest_equal(&telling->digest, &left->settled)) {
        return status;
    }
    told->items = telling->of;
    told->last = telling->last;
    told->is_known = true;
    telling->of = (struct wal__model_table){.arena = &told->memory.arena};
    status = wal__convert_end(convert, head, convert->known.session.updated,
                              losses, error);
    if (status == WAL_OK &&
        wal__digest_equal(&telling->digest, &left->digest)) {
        told->tail = telling->of;
        told->last = telling->last;
    }
    return status;
}

enum wal_status wal__told_read(struct wal__told *told,
                               const struct wal_view *view, const char *path,
                               const struct wal__left *left,
                               struct wal_error *error)
{
    struct wal__view_files files = {.root = NULL};
    struct wal__convert convert = {.env = &view->env,
                                   .store = view->store,
                                   .session = view->session,
                                   .dialect = view->dialect,
                                   .files = &files};
    struct telling telling = {.told = told, .path = path};
    enum wal_status status;

    wal__heap_arena_init(&told->memory, view->env.heap);
    told->parts.arena = &told->memory.arena;
    telling.of.arena = &told->memory.arena;
    wal__view_files_init(&files, &view->env);
    status = wal__known_read(&convert.known, view->env.heap, view->store,
                             view->session, error);
    if (status == WAL_OK) {
        status = run(&telling, &convert, view, left, error);
    }
    wal__convert_deinit(&convert);
    wal__view_files_deinit(&files);
    return status;
}

void wal__told_deinit(struct wal__told *told)
{
    if (told->memory.heap != NULL) {
        wal__heap_arena_deinit(&told->memory);
    }
    *told = (struct wal__told){.is_known = false};
}

struct wal__json_span wal__told_item(const struct wal__told *told,
                                     struct wal__json_span written)
{
    struct wal__json_span item = {NULL, 0};
    uint64_t key = wal__model_string_hash(0, written);

    if (!told->is_known || (!wal__model_table_get(&told->tail, key, &item) &&
                            !wal__model_table_get(&told->items, key, &item))) {
        return (struct wal__json_span){NULL, 0};
    }
    (void)wal__model_table_get(&told->parts, wal__model_string_hash(0, item),
                               &item);
    return item;
}
