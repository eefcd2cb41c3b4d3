/*
 * session_dir_check.c - compare the ids in files with the files' paths.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import_dir/session_dir_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/cli.h"
#include "tools/walconv/import/file_probe.h"
#include "tools/walconv/import_dir/session_dir_path.h"

struct check {
    const struct walconv_dir *dir;
    const char *path;
    struct wal_slice json;
    struct walconv_file_issues *issues;
};

static char *full_path(const struct walconv_dir *dir, const char *path)
{
    char *name = cli_alloc(strlen(dir->root) + strlen(path) + 2);

    sprintf(name, "%s/%s", dir->root, path);
    return name;
}

/* If the member is a string, checks that it equals the name and returns
 * true. */
static bool check_member(const struct check *check, const char *key,
                         struct wal_slice name, const char *reason)
{
    struct wal__json_member member = {.key = key};
    char *text;
    bool is_equal;

    if (wal__json_members(check->json.data, (size_t)check->json.size, &member,
                          1, NULL) != WAL__JSON_OK ||
        member.value.kind != WAL__JSON_STRING) {
        return false;
    }
    text = walconv_copy_text(member.value.span, WALCONV_DOC_SIZE);
    is_equal = text != NULL && cli_slice_equal(cli_slice(text), name);
    free(text);
    if (!is_equal) {
        const uint8_t *start = check->json.data;
        walconv_file_issues_add(
            check->issues, full_path(check->dir, check->path),
            (uint64_t)(member.value.span.data - start), reason);
    }
    return true;
}

static void check_id(const struct check *check, struct wal_slice name)
{
    if (!check_member(check, "id", name, "the id is not the file's name")) {
        walconv_file_issues_add(
            check->issues, full_path(check->dir, check->path),
            WALCONV_NO_OFFSET, "has no id; the file name is used");
    }
}

static void check_storage(const struct check *check)
{
    struct walconv_dir_path path;
    size_t first;
    size_t last;

    walconv_dir_path_split(check->path, &path);
    last = path.count - 1;
    if (walconv_dir_path_is_info(&path)) {
        check_id(check, path.parts[last]);
        if (!cli_slice_equal(path.parts[1], cli_slice("info"))) {
            check_member(check, "projectID", path.parts[1],
                         "the project's id is not the folder's name");
        }
    } else if (walconv_dir_path_is_kind(&path, "message", &first) &&
               last > first) {
        check_id(check, path.parts[last]);
        check_member(check, "sessionID", path.parts[first],
                     "the session's id is not the folder's name");
    } else if (walconv_dir_path_is_kind(&path, "part", &first)) {
        check_id(check, path.parts[last]);
        if (last > first) {
            check_member(check, "messageID", path.parts[last - 1],
                         "the message's id is not the folder's name");
        }
    }
}

/* Returns the name of the session's directory; the caller frees *memory. */
static struct wal_slice directory_of(const char *root, char **memory)
{
    const char *slash;

    *memory = cli_absolute_path(root);
    slash = strrchr(*memory, '/');
    return cli_slice(slash != NULL ? slash + 1 : *memory);
}

void walconv_dir_check_file(const struct walconv_dir *dir,
                            const struct wal__dialect *dialect,
                            const struct walconv_dir_file *file,
                            struct wal_slice json,
                            struct walconv_file_issues *issues)
{
    const struct check check = {dir, file->path, json, issues};
    static const char reason[] = "the id is not the directory's name";
    struct wal_slice name;
    char *memory;

    if (dialect->read_ops->stream == NULL) {
        check_storage(&check);
    } else if (strcmp(file->path, "metadata.json") == 0) {
        name = directory_of(dir->root, &memory);
        if (!check_member(&check, "session_id", name, reason)) {
            check_member(&check, "id", name, reason);
        }
        free(memory);
    }
}

void walconv_dir_check(const struct walconv_dir *dir,
                       const struct wal__dialect *dialect,
                       struct walconv_file_issues *issues)
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
        walconv_file_issues_add(issues, full_path(dir, "metadata.json"),
                                WALCONV_NO_OFFSET, "is missing");
    }
}
