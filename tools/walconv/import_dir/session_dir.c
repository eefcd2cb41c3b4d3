/*
 * session_dir.c - detect session directories and group their files by session.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import_dir/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/json/json_scan.h"
#include "tools/cli/cli.h"
#include "tools/walconv/import/file_probe.h"

#define PROBE_FILES_MAX 64 /* files and folders examined per folder */

const uint32_t walconv_streams[WALCONV_STREAMS] = {0, 1, WALCONV_FILES};

static char *join_path(const char *root, const char *path)
{
    char *text = cli_alloc(strlen(root) + strlen(path) + 2);

    sprintf(text, "%s/%s", root, path);
    return text;
}

static bool read_all(int fd, char *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(fd, bytes + done, size - done);
        if (got <= 0) {
            return false;
        }
        done += (size_t)got;
    }
    return true;
}

char *walconv_dir_read_file(const char *root, const char *path, size_t *size)
{
    char *name = join_path(root, path);
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat stat;
    char *bytes = NULL;

    free(name);
    if (fd < 0) {
        return NULL;
    }
    if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) &&
        (size_t)stat.st_size <= WALCONV_DOC_SIZE) {
        *size = (size_t)stat.st_size;
        bytes = cli_alloc(*size + 1);
        bytes[*size] = '\0';
        if (!read_all(fd, bytes, *size)) {
            free(bytes);
            bytes = NULL;
        }
    }
    close(fd);
    return bytes;
}

char *walconv_json_member_text(const char *json, size_t size,
                               const char *parent, const char *key)
{
    struct wal__json_member member = {.parent = parent, .key = key};

    if (wal__json_members(json, size, &member, 1, NULL) != WAL__JSON_OK) {
        return NULL;
    }
    return walconv_copy_text(wal__line_string(&member), 4096);
}

/* Returns true if the file is an object with these members; `other` may be
 * NULL. */
static bool has_members(const char *root, const char *path, const char *key,
                        const char *second_key)
{
    struct wal__json_member members[2] = {{.key = key}, {.key = second_key}};
    size_t size = 0;
    char *json = walconv_dir_read_file(root, path, &size);
    bool is_found =
        json != NULL &&
        wal__json_members(json, size, members, second_key != NULL ? 2 : 1,
                          NULL) == WAL__JSON_OK &&
        members[0].value.kind != WAL__JSON_NONE &&
        (second_key == NULL || members[1].value.kind != WAL__JSON_NONE);

    free(json);
    return is_found;
}

/* Returns true if one of the first lines is a message that has a uuid. */
static bool begins_with_message(const char *root, const char *path)
{
    struct wal__json_member uuid = {.key = "uuid"};
    char *name = join_path(root, path);
    FILE *file = fopen(name, "re");
    char *line = NULL;
    size_t capacity = 0;
    bool is_match = false;
    ssize_t size = 0;

    for (unsigned i = 0;
         file != NULL && !is_match && size >= 0 && i < PROBE_FILES_MAX; i++) {
        struct wal__line_info read;
        size = getline(&line, &capacity, file);
        is_match = size > 0 &&
                   wal__line_read_generic(line, (size_t)size, &read, NULL) ==
                       WAL__JSON_OK &&
                   read.is_message &&
                   wal__line_members(line, (size_t)size, &uuid, 1, NULL) ==
                       WAL__JSON_OK &&
                   uuid.value.kind == WAL__JSON_STRING;
    }
    if (file != NULL) {
        fclose(file);
    }
    free(line);
    free(name);
    return is_match;
}

/* Recognises the session directories of sdk and spec11. */
static const struct wal__dialect *recognise_directory(const char *root)
{
    bool has_messages = begins_with_message(root, "messages.jsonl");

    if (has_members(root, "metadata.json", "project_hash", "id")) {
        return &wal__dialect_spec11;
    }
    if (has_members(root, "metadata.json", "session_id", "created_at")) {
        return &wal__dialect_sdk;
    }
    /* The metadata file has other members, is missing or is damaged. */
    return has_messages ? &wal__dialect_sdk : NULL;
}

/* Returns true if the directory is the project memory of spec11, next to the
 * project's sessions. */
static bool is_memory(const char *root)
{
    size_t size = strlen(root);
    char *sessions;
    struct stat stat;
    bool is_match;

    while (size > 1 && root[size - 1] == '/') {
        size--;
    }
    if (size < 7 || memcmp(root + size - 7, "/memory", 7) != 0) {
        return false;
    }
    sessions = join_path(root, "../sessions");
    is_match = lstat(sessions, &stat) == 0 && S_ISDIR(stat.st_mode);
    free(sessions);
    sessions = join_path(root, "summary.md");
    is_match = is_match && lstat(sessions, &stat) == 0 && S_ISREG(stat.st_mode);
    free(sessions);
    return is_match;
}

typedef bool probe_file(const char *root, const char *path);

static bool is_json_name(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

/* Returns true if `probe` accepts one of the first JSON files of a folder. */
static bool probe_directory(const char *root, const char *path,
                            probe_file *probe)
{
    char *name = join_path(root, path);
    DIR *directory = opendir(name);
    struct dirent *entry;
    unsigned count = 0;
    bool is_found = false;

    while (directory != NULL && !is_found && count < PROBE_FILES_MAX &&
           (entry = readdir(directory)) != NULL) {
        char *file;
        if (!is_json_name(entry->d_name)) {
            continue;
        }
        file = join_path(path, entry->d_name);
        is_found = probe(root, file);
        free(file);
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    free(name);
    return is_found;
}

/* As probe_directory, for the folder and the folders in it. */
static bool probe_subfolders(const char *root, const char *path,
                             probe_file *probe)
{
    char *name = join_path(root, path);
    DIR *directory = opendir(name);
    struct dirent *entry;
    unsigned count = 0;
    bool is_found = directory != NULL && probe_directory(root, path, probe);

    while (directory != NULL && !is_found && count < PROBE_FILES_MAX &&
           (entry = readdir(directory)) != NULL) {
        char *subfolder;
        if (entry->d_name[0] == '.' || entry->d_type == DT_REG) {
            continue;
        }
        subfolder = join_path(path, entry->d_name);
        is_found = probe_directory(root, subfolder, probe);
        free(subfolder);
        count++;
    }
    if (directory != NULL) {
        closedir(directory);
    }
    free(name);
    return is_found;
}

static bool is_session(const char *root, const char *path)
{
    return has_members(root, path, "id", "time") &&
           (has_members(root, path, "projectID", NULL) ||
            has_members(root, path, "version", "title"));
}

static bool is_message(const char *root, const char *path)
{
    return has_members(root, path, "sessionID", "role");
}

static bool is_part(const char *root, const char *path)
{
    return has_members(root, path, "messageID", "type");
}

static bool is_storage(const char *root)
{
    return probe_subfolders(root, "session", is_session) ||
           probe_subfolders(root, "message", is_message) ||
           probe_subfolders(root, "part", is_part);
}

const struct wal__dialect *walconv_dir_detect(const char *root,
                                              const struct wal__dialect *forced)
{
    const struct wal__dialect *dialect = NULL;

    if (forced != NULL &&
        (forced->read_ops == NULL || forced->read_ops->documents == NULL)) {
        return NULL;
    }
    if (is_storage(root)) {
        dialect = &wal__dialect_opencode;
    } else if (is_memory(root)) {
        dialect = &wal__dialect_spec11;
    } else {
        dialect = recognise_directory(root);
        if (dialect != NULL && forced != NULL &&
            forced->read_ops->stream != NULL) {
            dialect = forced;
        }
    }
    return forced == NULL || dialect == forced ? dialect : NULL;
}

size_t walconv_dir_add_group(struct walconv_dir *dir, const char *name)
{
    dir->groups = cli_reserve(dir->groups, dir->group_count,
                              &dir->group_capacity, sizeof(dir->groups[0]));
    dir->groups[dir->group_count] =
        (struct walconv_dir_group){.name = cli_copy_text(name, strlen(name))};
    return dir->group_count++;
}

void walconv_dir_group_single(struct walconv_dir *dir)
{
    size_t index = walconv_dir_add_group(dir, "");
    struct walconv_dir_group *group = &dir->groups[index];
    const char *slash = strrchr(dir->root, '/');
    size_t size = 0;
    char *json = walconv_dir_read_file(dir->root, "metadata.json", &size);

    if (json != NULL) {
        group->id = walconv_json_member_text(json, size, NULL, "session_id");
        if (group->id == NULL) {
            group->id = walconv_json_member_text(json, size, NULL, "id");
        }
        group->cwd = walconv_json_member_text(json, size, NULL, "cwd");
        group->title = walconv_json_member_text(json, size, NULL, "title");
        group->created =
            walconv_json_member_text(json, size, NULL, "created_at");
        group->project =
            walconv_json_member_text(json, size, NULL, "project_hash");
        group->parent = walconv_json_member_text(json, size, NULL, "parent_id");
        if (group->parent == NULL) {
            group->parent =
                walconv_json_member_text(json, size, NULL, "parent_session_id");
        }
    }
    if (group->id == NULL) {
        slash = slash != NULL ? slash + 1 : dir->root;
        group->id = cli_copy_text(slash, strlen(slash));
    }
    free(json);
}

void walconv_dir_deinit(struct walconv_dir *dir)
{
    for (size_t i = 0; i < dir->file_count; i++) {
        free(dir->files[i].path);
    }
    for (size_t i = 0; i < dir->group_count; i++) {
        struct walconv_dir_group *group = &dir->groups[i];
        free(group->name);
        free(group->id);
        free(group->cwd);
        free(group->title);
        free(group->created);
        free(group->project);
        free(group->parent);
    }
    free(dir->files);
    free(dir->groups);
}

const char *walconv_dir_root_end(const char *path)
{
    return strstr(path, "//");
}

const char *walconv_dir_stream_path(const struct wal__dialect *dialect,
                                    uint32_t stream)
{
    static const char *const names[] = {"messages.jsonl", "transcript.jsonl"};
    uint32_t found = 0;

    for (size_t i = 0; dialect->read_ops->stream != NULL && i < 2; i++) {
        if (dialect->read_ops->stream(names[i], &found) && found == stream) {
            return names[i];
        }
    }
    return NULL;
}
