/*
 * walconv_view - a session written as a dialect's client has it.
 *
 * A dialect without branches gets the live one: a first pass finds out which
 * items are on the way to the head, a second one writes them.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/jsonl/model_write.h"
#include "tools/walconv_items.h"
#include "tools/walconv_view_files.h"

struct viewing {
    const struct walconv_view *view;
    struct walconv_arena keep;
    struct walconv_arena scratch;
    struct wal__model_session known;
    struct wal__json_span head;
    struct wal__model_table parents; /* hash of the parent in value.size,
                                      * value.data set where it is live */
    uint64_t last;                   /* hash of the last item that can be one */
    bool is_linear;
    bool has_failed;
    struct wal__model_writer writer;
};

static uint64_t hash_of(struct wal__json_span id)
{
    return id.size > 0 ? wal__model_string_hash(0, id) : 0;
}

/* First pass: remembers the item's parent. */
static bool note(void *ctx, struct wal__model_item *item)
{
    struct viewing *viewing = ctx;
    struct wal__json_span parent = {NULL, (size_t)hash_of(item->parent)};

    if (item->kind == WAL__MODEL_HEADER || item->id.size == 0) {
        return true;
    }
    if (!item->is_aside && !item->is_sidechain) {
        viewing->last = hash_of(item->id);
    }
    return wal__model_table_put(&viewing->parents, hash_of(item->id), parent);
}

/* Marks what is on the way from the head to its root. */
static bool mark_live(struct viewing *viewing)
{
    static const uint8_t mark[1];
    uint64_t key = hash_of(viewing->head);
    struct wal__json_span parent;

    if (!wal__model_table_get(&viewing->parents, key, &parent)) {
        key = viewing->last;
    }
    while (key != 0 && wal__model_table_get(&viewing->parents, key, &parent) &&
           parent.data == NULL) {
        parent.data = mark;
        if (!wal__model_table_put(&viewing->parents, key, parent)) {
            return false;
        }
        key = (uint64_t)parent.size;
    }
    return true;
}

static bool is_live(const struct viewing *viewing,
                    const struct wal__model_item *item)
{
    struct wal__json_span parent = {NULL, 0};

    return item->is_aside || item->kind == WAL__MODEL_HEADER ||
           item->kind == WAL__MODEL_HEAD ||
           (wal__model_table_get(&viewing->parents, hash_of(item->id),
                                 &parent) &&
            parent.data != NULL);
}

static bool write_item(void *ctx, struct wal__model_item *item)
{
    struct viewing *viewing = ctx;

    if (viewing->is_linear && !is_live(viewing, item)) {
        viewing->writer.losses[item->is_sidechain ? WAL__FEATURE_SIDECHAINS
                                                  : WAL__FEATURE_BRANCHES]++;
        return true;
    }
    viewing->has_failed |= !wal__model_write_item(&viewing->writer, item);
    return !viewing->has_failed;
}

static bool write_end(void *ctx)
{
    struct viewing *viewing = ctx;

    viewing->has_failed =
        viewing->has_failed ||
        !wal__model_write_end(&viewing->writer, viewing->head);
    return !viewing->has_failed;
}

static bool is_idle(void *ctx)
{
    struct viewing *viewing = ctx;
    bool idle = wal__model_write_is_idle(&viewing->writer);

    if (idle) {
        walconv_arena_reset(&viewing->scratch);
    }
    return idle;
}

static int fail(const struct viewing *viewing, enum wal_status status,
                const struct wal_error *error)
{
    return cli_fail(viewing->view->cli, viewing->view->name, status, error);
}

static int find_live(struct viewing *viewing, struct walconv_items *items)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct walconv_items first = *items;
    enum wal_status status;

    first.sink = note;
    first.is_idle = NULL;
    first.end = NULL;
    status = walconv_items_read(&first, &error);
    if (status != WAL_OK) {
        return fail(viewing, status, &error);
    }
    return mark_live(viewing) ? CLI_DONE : fail(viewing, WAL_ENOMEM, NULL);
}

static int write_all(struct viewing *viewing, struct walconv_viewed *viewed)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct walconv_items items = {.store = viewing->view->store,
                                  .session = viewing->view->session,
                                  .sink = write_item,
                                  .is_idle = is_idle,
                                  .end = write_end,
                                  .ctx = viewing};
    enum wal_status status =
        wal_session_status(viewing->view->session, &info, &error);
    int code = CLI_DONE;

    if (status != WAL_OK) {
        return fail(viewing, status, &error);
    }
    items.dialect = walconv_items_dialect(&info);
    if (viewing->is_linear) {
        code = find_live(viewing, &items);
    }
    if (code != CLI_DONE) {
        return code;
    }
    if (!wal__model_write_begin(&viewing->writer)) {
        return CLI_FAILED;
    }
    status = walconv_items_read(&items, &error);
    if (status != WAL_OK) {
        return fail(viewing, status, &error);
    }
    if (viewing->has_failed) {
        return CLI_FAILED;
    }
    memcpy(viewed->losses, viewing->writer.losses, sizeof(viewed->losses));
    viewed->losses[WAL__FEATURE_DAMAGED] += items.damaged;
    viewed->losses[WAL__FEATURE_REDACTED] += items.redacted;
    viewed->unreadable = items.unreadable;
    return items.unreadable > 0 ? CLI_NO : CLI_DONE;
}

static int begin(struct viewing *viewing, const struct walconv_view *view)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;

    viewing->view = view;
    viewing->is_linear =
        (view->dialect->writing->carries & WAL__CARRIES(BRANCHES)) == 0;
    walconv_arena_init(&viewing->keep);
    walconv_arena_init(&viewing->scratch);
    viewing->parents.arena = &viewing->keep.arena;
    status =
        walconv_items_session(view->store, view->session, &viewing->keep.arena,
                              &viewing->known, &viewing->head, &error);
    return status == WAL_OK ? CLI_DONE : fail(viewing, status, &error);
}

static void end(struct viewing *viewing)
{
    walconv_arena_deinit(&viewing->keep);
    walconv_arena_deinit(&viewing->scratch);
}

static void set_path(struct viewing *viewing, uint32_t stream,
                     struct walconv_viewed *viewed)
{
    const char *root = viewing->view->root;
    const char *path = viewing->view->dialect->writing->path(
        &viewing->known, stream, &viewing->keep.arena);
    size_t size;

    if (path == NULL) {
        return;
    }
    root = root != NULL ? root : "";
    size = strlen(root);
    viewed->path = cli_alloc(size + strlen(path) + 2);
    sprintf(viewed->path, "%s%s%s", root,
            size > 0 && root[size - 1] != '/' ? "/" : "", path);
}

int walconv_view_path(const struct walconv_view *view, uint32_t stream,
                      struct walconv_viewed *viewed)
{
    struct viewing viewing = {.view = view};
    int code = begin(&viewing, view);

    if (code == CLI_DONE) {
        set_path(&viewing, stream, viewed);
    }
    end(&viewing);
    return code;
}

int walconv_view_put(const struct walconv_view *view,
                     struct walconv_viewed *viewed)
{
    struct walconv_view_files files = {.cli = view->cli, .root = view->root};
    struct wal__model_output output = walconv_view_output(&files);
    struct viewing viewing = {.view = view};
    int code = begin(&viewing, view);
    int put = CLI_DONE;

    viewing.writer = (struct wal__model_writer){
        .dialect = view->dialect,
        .session = &viewing.known,
        .output = &output,
        .keep = &viewing.keep.arena,
        .scratch = &viewing.scratch.arena,
    };
    if (code == CLI_DONE) {
        set_path(&viewing, 0, viewed);
        code = write_all(&viewing, viewed);
    }
    if (code <= CLI_NO) {
        put = walconv_view_files_commit(&files);
    }
    viewed->is_refused = put != CLI_DONE || code > CLI_NO;
    viewed->added = files.added;
    walconv_view_files_deinit(&files);
    end(&viewing);
    return cli_worse(code, put);
}
