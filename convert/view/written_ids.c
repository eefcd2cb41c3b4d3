/*
 * written_ids.c - recovers the ids in a view's file by converting the session
 * again (written_ids.h, SPEC.md 10.6).
 *
 * The fingerprint of the stable part shows whether the conversion yields the
 * same bytes; ids after that part are known only if the whole file is equal.
 *
 * Threads: one thread at a time.
 */
#include "convert/view/written_ids.h"

#include <string.h>

#include "convert/render/converter.h"

struct view_replay {
    struct wal__written_ids *written_ids;
    const char *path;
    bool is_selected; /* output goes to the file with the path */
    struct wal__fingerprint fingerprint; /* of the output to that file */
    struct wal__model_table ids;         /* ids recorded so far */
    struct wal__json_span last;
};

static bool select_file(void *ctx, const char *path, enum wal__output_kind kind)
{
    struct view_replay *replay = ctx;

    replay->is_selected =
        kind == WAL__OUTPUT_LINES && strcmp(path, replay->path) == 0;
    return true;
}

static bool put(void *ctx, const void *data, size_t size)
{
    struct view_replay *replay = ctx;

    if (replay->is_selected) {
        wal__fingerprint_update(&replay->fingerprint, data, size);
    }
    return true;
}

static bool record_id(void *ctx, struct wal__json_span item,
                      struct wal__json_span written, bool is_part)
{
    struct view_replay *replay = ctx;
    struct wal__json_span item_copy =
        wal__arena_copy(&replay->written_ids->memory.arena, item);
    uint64_t key = wal__model_string_hash(0, written);

    if (item_copy.data == NULL) {
        return false;
    }
    if (is_part) {
        return wal__model_table_put(&replay->written_ids->parts, key,
                                    item_copy);
    }
    replay->last = item_copy;
    return wal__model_table_put(&replay->ids, key, item_copy);
}

/* Converts the entries that the view has, and keeps the ids if the bytes are
 * equal. */
static enum wal_status replay_session(struct view_replay *replay,
                                      struct wal__converter *convert,
                                      const struct wal_view *view,
                                      const struct wal__saved_file *saved,
                                      struct wal_error *error)
{
    const struct wal__entry_limits limits = {
        {view->position.entries[0], view->position.entries[1]}};
    const struct wal__model_id_listener listener = {replay, record_id};
    struct wal__written_ids *written_ids = replay->written_ids;
    /* The head of that flush: the log's may be an entry that the file lacks. */
    struct wal__json_span head = wal__json_quote(
        &written_ids->memory.arena, wal__slice_from_text(view->position.head));
    uint64_t losses[WAL__FEATURE_COUNT];
    bool extends = true;
    enum wal_status status = wal__converter_begin(convert, error);

    convert->output = (struct wal__model_output){replay, select_file, put};
    convert->writer.listener = &listener;
    if (status == WAL_OK) {
        status = wal__converter_append(convert, &limits, head, &extends, error);
    }
    if (status != WAL_OK || !extends ||
        !wal__fingerprint_equal(&replay->fingerprint, &saved->stable)) {
        return status;
    }
    written_ids->items = replay->ids;
    written_ids->last = replay->last;
    written_ids->is_known = true;
    replay->ids =
        (struct wal__model_table){.arena = &written_ids->memory.arena};
    status = wal__converter_write_trailer(
        convert, head, convert->snapshot.session.updated, losses, error);
    if (status == WAL_OK &&
        wal__fingerprint_equal(&replay->fingerprint, &saved->fingerprint)) {
        written_ids->provisional = replay->ids;
        written_ids->last = replay->last;
    }
    return status;
}

/* Converts the session once. `is_linked`: the file names the session that
 * started this one, if there is one. */
static enum wal_status load_ids(struct wal__written_ids *written_ids,
                                const struct wal_view *view, const char *path,
                                const struct wal__saved_file *saved,
                                bool is_linked, struct wal_error *error)
{
    struct wal__view_files files = {.root = NULL};
    struct wal__converter convert = {.env = &view->env,
                                     .store = view->store,
                                     .session = view->session,
                                     .dialect = view->dialect,
                                     .files = &files};
    struct view_replay replay = {.written_ids = written_ids, .path = path};
    enum wal_status status;

    wal__heap_arena_init(&written_ids->memory, view->env.heap);
    written_ids->parts.arena = &written_ids->memory.arena;
    replay.ids.arena = &written_ids->memory.arena;
    wal__view_files_init(&files, &view->env);
    files.root = view->root;
    status = wal__session_snapshot_read(&convert.snapshot, view->env.heap,
                                        view->store, view->session, error);
    if (status == WAL_OK &&
        (is_linked || convert.snapshot.session.starter.size > 0)) {
        convert.snapshot.session.starter.size *= is_linked ? 1 : 0;
        status = replay_session(&replay, &convert, view, saved, error);
    }
    wal__converter_deinit(&convert);
    wal__view_files_deinit(&files);
    return status;
}

enum wal_status wal__written_ids_load(struct wal__written_ids *written_ids,
                                      const struct wal_view *view,
                                      const char *path,
                                      const struct wal__saved_file *saved,
                                      struct wal_error *error)
{
    enum wal_status status =
        load_ids(written_ids, view, path, saved, true, error);

    /* A file may be older than links. */
    if (status == WAL_OK && !written_ids->is_known) {
        wal__written_ids_deinit(written_ids);
        status = load_ids(written_ids, view, path, saved, false, error);
    }
    return status;
}

void wal__written_ids_deinit(struct wal__written_ids *written_ids)
{
    if (written_ids->memory.heap != NULL) {
        wal__heap_arena_deinit(&written_ids->memory);
    }
    *written_ids = (struct wal__written_ids){.is_known = false};
}

struct wal__json_span
wal__written_ids_find(const struct wal__written_ids *written_ids,
                      struct wal__json_span written)
{
    struct wal__json_span item = {NULL, 0};
    uint64_t key = wal__model_string_hash(0, written);

    if (!written_ids->is_known ||
        (!wal__model_table_get(&written_ids->provisional, key, &item) &&
         !wal__model_table_get(&written_ids->items, key, &item))) {
        return (struct wal__json_span){NULL, 0};
    }
    (void)wal__model_table_get(&written_ids->parts,
                               wal__model_string_hash(0, item), &item);
    return item;
}
