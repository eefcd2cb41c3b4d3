/*
 * changes.c - checkpoints and their differences as JSON (changes.h).
 */
#include "tools/shown/changes.h"

#include <stdlib.h>
#include <string.h>

#include "agentwal/blob.h"
#include "agentwal/checkpoint.h"
#include "tools/cli/cli.h"
#include "tools/shown/patch.h"

/* --- checkpoints -------------------------------------------------------- */

enum wal_status shown_checkpoints_read(struct shown_checkpoints *checkpoints,
                                       struct wal_session *session,
                                       struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *cursor = NULL;
    enum wal_status status =
        wal_checkpoint_cursor_open(session, &cursor, error);

    while (status == WAL_OK) {
        status = wal_checkpoint_cursor_next(cursor, &info, error);
        if (status == WAL_OK) {
            checkpoints->ids = cli_reserve(checkpoints->ids, checkpoints->count,
                                           &checkpoints->capacity,
                                           sizeof(checkpoints->ids[0]));
            checkpoints->ids[checkpoints->count++] =
                cli_copy_text(info.id.data, (size_t)info.id.size);
        }
    }
    wal_checkpoint_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

void shown_checkpoints_deinit(struct shown_checkpoints *checkpoints)
{
    for (size_t i = 0; i < checkpoints->count; i++) {
        free(checkpoints->ids[i]);
    }
    free(checkpoints->ids);
    *checkpoints = (struct shown_checkpoints){.ids = NULL};
}

static void put_checkpoint(struct shown *shown,
                           const struct wal_checkpoint_info *info)
{
    wal__json_out_open(shown->json, '{');
    cli_json_member_text(shown->json, "id", info->id);
    shown_member(shown, "root", info->root);
    shown_time(shown, "time", info->created_ms);
    wal__json_out_member_count(shown->json, "files", info->files);
    wal__json_out_member_count(shown->json, "bytes", info->bytes);
    cli_json_member_text_or_null(shown->json, "entryId", info->entry_id);
    wal__json_out_close(shown->json, '}');
}

enum wal_status shown_checkpoints_write(struct shown *shown,
                                        struct wal_session *session,
                                        struct wal_error *error)
{
    struct shown_checkpoints list = {.ids = NULL};
    enum wal_status status = shown_checkpoints_read(&list, session, error);

    wal__json_out_member_open(shown->json, "checkpoints", '[');
    for (size_t i = list.count; i > 0 && status == WAL_OK; i--) {
        struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
        struct wal_file_cursor *cursor = NULL;

        status = wal_file_cursor_open(session, cli_slice(list.ids[i - 1]),
                                      &cursor, error);
        if (status == WAL_OK) {
            status = wal_checkpoint_get_info(cursor, &info, error);
        }
        if (status == WAL_OK) {
            put_checkpoint(shown, &info);
        }
        wal_file_cursor_close(cursor);
        if (status == WAL_ENOTFOUND) {
            status = WAL_OK; /* deleted meanwhile */
        }
    }
    wal__json_out_close(shown->json, ']');
    shown_checkpoints_deinit(&list);
    return status;
}

/* --- contents ----------------------------------------------------------- */

/* A file in a checkpoint. */
struct file {
    char *path;
    size_t path_size;
    uint32_t kind;
    uint64_t size;
    uint8_t digest[WAL_DIGEST_SIZE];
};

/* The files of a checkpoint, in byte order of their paths. */
struct files {
    struct file *items;
    size_t count;
    size_t capacity;
};

static enum wal_status read_files(struct files *files,
                                  struct wal_session *session,
                                  struct wal_slice id, struct wal_error *error)
{
    struct wal_file file = WAL_INIT(wal_file);
    struct wal_file_cursor *cursor = NULL;
    enum wal_status status = wal_file_cursor_open(session, id, &cursor, error);

    while (status == WAL_OK &&
           (status = wal_file_cursor_next(cursor, &file, error)) == WAL_OK) {
        struct file *item;

        files->items = cli_reserve(files->items, files->count, &files->capacity,
                                   sizeof(files->items[0]));
        item = &files->items[files->count++];
        *item = (struct file){
            .path = cli_copy_text(file.path.data, (size_t)file.path.size),
            .path_size = (size_t)file.path.size,
            .kind = file.kind,
            .size = file.size};
        memcpy(item->digest, file.digest, sizeof(item->digest));
    }
    wal_file_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

static void free_files(struct files *files)
{
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].path);
    }
    free(files->items);
}

static int compare_paths(const void *a, const void *b)
{
    const struct file *one = a;
    const struct file *other = b;
    size_t size =
        one->path_size < other->path_size ? one->path_size : other->path_size;
    int order = memcmp(one->path, other->path, size);

    return order != 0 ? order
                      : (one->path_size > other->path_size) -
                            (one->path_size < other->path_size);
}

static const struct file *find_file(const struct files *files,
                                    struct wal_slice path)
{
    struct file wanted = {.path_size = (size_t)path.size};

    wanted.path = cli_copy_text(path.data, (size_t)path.size);
    const struct file *found =
        files->count == 0 ? NULL
                          : bsearch(&wanted, files->items, files->count,
                                    sizeof(wanted), compare_paths);
    free(wanted.path);
    return found;
}

/* Reads a content into memory that the caller frees; an absent file has none.
 * False: it is too large, or cannot be read. */
static bool load(struct wal_store *store, const struct file *file, char **data,
                 struct wal_slice *content)
{
    struct wal_blob *blob = NULL;
    uint64_t got = 0;
    bool is_read;

    *content = (struct wal_slice){NULL, 0};
    if (file == NULL || file->kind == WAL_FILE_ABSENT || file->size == 0) {
        return true;
    }
    if (file->size > SHOWN_CONTENT_MAX) {
        return false;
    }
    *data = cli_alloc((size_t)file->size);
    is_read = wal_blob_open(store, file->digest, &blob, NULL) == WAL_OK &&
              wal_blob_read(blob, 0, *data, file->size, &got, NULL) == WAL_OK &&
              got == file->size;
    wal_blob_close(blob);
    *content = (struct wal_slice){*data, got};
    return is_read;
}

/* --- differences -------------------------------------------------------- */

struct pair {
    struct wal_store *store;
    struct files before;
    struct files after;
};

static void put_patch(struct shown *shown, const struct pair *pair,
                      struct wal_slice path)
{
    struct wal_slice before;
    struct wal_slice after;
    char *before_data = NULL;
    char *after_data = NULL;
    char *text = NULL;
    size_t size = 0;
    FILE *file;

    if (load(pair->store, find_file(&pair->before, path), &before_data,
             &before) &&
        load(pair->store, find_file(&pair->after, path), &after_data, &after) &&
        (file = open_memstream(&text, &size)) != NULL) {
        shown_patch(file, before, after);
        if (fclose(file) != 0) {
            size = 0;
        }
    }
    if (size > SHOWN_PATCH_MAX) {
        size = 0;
    }
    shown_member(shown, "patch", (struct wal_slice){text, size});
    free(text);
    free(before_data);
    free(after_data);
}

static void put_change(struct shown *shown, const struct pair *pair,
                       const struct wal_file_change *change)
{
    bool is_binary = (change->flags & WAL_FILE_CHANGE_BINARY) != 0;
    const char *word = change->kind_before == WAL_FILE_ABSENT  ? "added"
                       : change->kind_after == WAL_FILE_ABSENT ? "deleted"
                                                               : "modified";

    wal__json_out_open(shown->json, '{');
    shown_member(shown, "path", change->path);
    cli_json_member_text(shown->json, "change", cli_slice(word));
    wal__json_out_member_count(shown->json, "added", change->insertions);
    wal__json_out_member_count(shown->json, "removed", change->deletions);
    wal__json_out_member_bool(shown->json, "binary", is_binary);
    if (is_binary) {
        shown_null(shown, "patch");
    } else {
        put_patch(shown, pair, change->path);
    }
    wal__json_out_close(shown->json, '}');
}

static enum wal_status put_changes(struct shown *shown, const struct pair *pair,
                                   struct wal_file_change_cursor *cursor,
                                   struct wal_error *error)
{
    struct wal_file_change change = WAL_INIT(wal_file_change);
    enum wal_status status;

    wal__json_out_member_open(shown->json, "files", '[');
    while ((status = wal_file_change_cursor_next(cursor, &change, error)) ==
           WAL_OK) {
        put_change(shown, pair, &change);
    }
    wal__json_out_close(shown->json, ']');
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status shown_diff(struct shown *shown, struct wal_store *store,
                           struct wal_session *session, struct wal_slice before,
                           struct wal_slice after, struct wal_error *error)
{
    struct pair pair = {.store = store};
    struct wal_file_change_cursor *cursor = NULL;
    enum wal_status status =
        wal_checkpoint_diff(session, before, after, &cursor, error);

    if (status == WAL_OK) {
        status = read_files(&pair.before, session, before, error);
    }
    if (status == WAL_OK) {
        status = read_files(&pair.after, session, after, error);
    }
    if (status == WAL_OK) {
        status = put_changes(shown, &pair, cursor, error);
    }
    wal_file_change_cursor_close(cursor);
    free_files(&pair.before);
    free_files(&pair.after);
    return status;
}
