/*
 * session_dir_check.c - compares the ids in files with the files' paths.
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import_tree/session_dir_check.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "convert/import_tree/storage_path.h"
#include "convert/source/json_string.h"
#include "format/json/json_scan.h"

void wal__import_issues_add(const struct wal__session_dir *dir,
                            struct wal__import_issues *issues, const char *path,
                            uint64_t offset, const char *reason)
{
    struct wal__import *import = dir->import;
    struct wal__json_span why = {(const uint8_t *)reason, strlen(reason) + 1};
    const char *name = wal__import_path(import, dir->root, path);
    struct wal_import_issue *items =
        wal__heap_grow_array(import->heap, issues->items, issues->count,
                             &issues->capacity, sizeof(items[0]));

    why = wal__arena_copy(&import->arena.arena, why);
    if (items == NULL) {
        import->arena.has_failed = true;
        return;
    }
    issues->items = items;
    items[issues->count++] = (struct wal_import_issue){
        .struct_size = sizeof(struct wal_import_issue),
        .path = wal__slice_from_text(name),
        .reason = wal__slice_from_text((const char *)why.data),
        .offset = offset};
}

struct check {
    const struct wal__session_dir *dir;
    const char *path;
    struct wal_slice json;
    struct wal__import_issues *issues;
};

/* If the member is a string, checks that it equals the name and returns
 * true. */
static bool check_member(const struct check *check, const char *key,
                         struct wal_slice name, const char *reason)
{
    struct wal__json_member member = {.key = key};
    char text[WAL__STRING_MAX + 1];
    bool is_equal;

    if (wal__json_members(check->json.data, (size_t)check->json.size, &member,
                          1, NULL) != WAL__JSON_OK ||
        member.value.kind != WAL__JSON_STRING) {
        return false;
    }
    is_equal = wal__string_decode(member.value.span, WAL__STRING_MAX, text) &&
               wal__slice_equal(wal__slice_from_text(text), name);
    if (!is_equal) {
        const uint8_t *start = check->json.data;
        wal__import_issues_add(check->dir, check->issues, check->path,
                               (uint64_t)(member.value.span.data - start),
                               reason);
    }
    return true;
}

static void check_id(const struct check *check, struct wal_slice name)
{
    if (!check_member(check, "id", name, "the id is not the file's name")) {
        wal__import_issues_add(check->dir, check->issues, check->path,
                               WAL_IMPORT_NO_OFFSET,
                               "has no id; the file name is used");
    }
}

static void check_storage(const struct check *check)
{
    struct wal__storage_path path;
    size_t first;
    size_t last;

    wal__storage_path_split(check->path, &path);
    last = path.count - 1;
    if (wal__storage_path_is_info(&path)) {
        check_id(check, path.parts[last]);
        if (!wal__slice_equal(path.parts[1], wal__slice_from_text("info"))) {
            check_member(check, "projectID", path.parts[1],
                         "the project's id is not the folder's name");
        }
    } else if (wal__storage_path_is_kind(&path, "message", &first) &&
               last > first) {
        check_id(check, path.parts[last]);
        check_member(check, "sessionID", path.parts[first],
                     "the session's id is not the folder's name");
    } else if (wal__storage_path_is_kind(&path, "part", &first)) {
        check_id(check, path.parts[last]);
        if (last > first) {
            check_member(check, "messageID", path.parts[last - 1],
                         "the message's id is not the folder's name");
        }
    }
}

/* Returns the name of the session's directory. */
static struct wal_slice directory_of(const char *root, char real[PATH_MAX])
{
    const char *path = realpath(root, real) != NULL ? real : root;
    const char *slash = strrchr(path, '/');

    return wal__slice_from_text(slash != NULL ? slash + 1 : path);
}

void wal__session_dir_check_file(const struct wal__session_dir *dir,
                                 const struct wal__dialect *dialect,
                                 const struct wal__session_dir_file *file,
                                 struct wal_slice json,
                                 struct wal__import_issues *issues)
{
    const struct check check = {dir, file->path, json, issues};
    static const char reason[] = "the id is not the directory's name";
    struct wal_slice name;
    char real[PATH_MAX];

    if (dialect->read_ops->stream == NULL) {
        check_storage(&check);
    } else if (strcmp(file->path, "metadata.json") == 0) {
        name = directory_of(dir->root, real);
        if (!check_member(&check, "session_id", name, reason)) {
            check_member(&check, "id", name, reason);
        }
    }
}

void wal__session_dir_check(const struct wal__session_dir *dir,
                            const struct wal__dialect *dialect,
                            struct wal__import_issues *issues)
{
    bool has_lines = false;

    for (size_t i = 0; i < dir->file_count; i++) {
        uint32_t stream = 0;
        const char *path = dir->files[i].path;
        if (strcmp(path, "metadata.json") == 0) {
            return;
        }
        has_lines |= dialect->read_ops->stream != NULL &&
                     dialect->read_ops->stream(path, &stream);
    }
    if (has_lines) {
        wal__import_issues_add(dir, issues, "metadata.json",
                               WAL_IMPORT_NO_OFFSET, "is missing");
    }
}
