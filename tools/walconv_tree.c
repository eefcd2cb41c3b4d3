/*
 * walconv_tree - tells trees, and which session each of their files is of.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/jsonl/json_scan.h"
#include "tools/cli.h"
#include "tools/walconv_survey.h"

#define PROBES 64 /* so many files are looked at */

const uint32_t walconv_streams[WALCONV_STREAMS] = {0, 1, WALCONV_FILES};

static char *joined(const char *root, const char *path)
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

char *walconv_tree_read(const char *root, const char *path, size_t *size)
{
    char *name = joined(root, path);
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

char *walconv_tree_text(const char *json, size_t size, const char *parent,
                        const char *key)
{
    struct wal__json_member member = {.parent = parent, .key = key};

    if (wal__json_members(json, size, &member, 1, NULL) != WAL__JSON_OK) {
        return NULL;
    }
    return walconv_text(wal__line_string(&member), 4096);
}

/* Whether the file's object has these members; `other` may be null. */
static bool has_members(const char *root, const char *path, const char *key,
                        const char *other)
{
    struct wal__json_member members[2] = {{.key = key}, {.key = other}};
    size_t size = 0;
    char *json = walconv_tree_read(root, path, &size);
    bool has = json != NULL &&
               wal__json_members(json, size, members, other != NULL ? 2 : 1,
                                 NULL) == WAL__JSON_OK &&
               members[0].value.kind != WAL__JSON_NONE &&
               (other == NULL || members[1].value.kind != WAL__JSON_NONE);

    free(json);
    return has;
}

/* Whether the first line of a file of messages is one. */
static bool begins_with_message(const char *root, const char *path)
{
    struct wal__json_member uuid = {.key = "uuid"};
    char *name = joined(root, path);
    FILE *file = fopen(name, "re");
    char *line = NULL;
    size_t capacity = 0;
    bool is_one = false;
    ssize_t size = 0;

    for (unsigned i = 0; file != NULL && !is_one && size >= 0 && i < PROBES;
         i++) {
        struct wal__line read;
        size = getline(&line, &capacity, file);
        is_one = size > 0 &&
                 wal__line_of_tree(line, (size_t)size, &read, NULL) ==
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
    return is_one;
}

/* A directory of sdk or of spec11. */
static const struct wal__dialect *recognise_directory(const char *root)
{
    bool has_messages = begins_with_message(root, "messages.jsonl");

    if (has_members(root, "metadata.json", "project_hash", "id")) {
        return &wal__dialect_spec11;
    }
    if (has_members(root, "metadata.json", "session_id", "created_at")) {
        return &wal__dialect_sdk;
    }
    /* Of the code behind sdk; or metadata that is gone, or damaged. */
    return has_messages ? &wal__dialect_sdk : NULL;
}

/* The memory of a project beside its sessions. */
static bool is_memory(const char *root)
{
    size_t size = strlen(root);
    char *sessions;
    struct stat stat;
    bool is_one;

    while (size > 1 && root[size - 1] == '/') {
        size--;
    }
    if (size < 7 || memcmp(root + size - 7, "/memory", 7) != 0) {
        return false;
    }
    sessions = joined(root, "../sessions");
    is_one = lstat(sessions, &stat) == 0 && S_ISDIR(stat.st_mode);
    free(sessions);
    sessions = joined(root, "summary.md");
    is_one = is_one && lstat(sessions, &stat) == 0 && S_ISREG(stat.st_mode);
    free(sessions);
    return is_one;
}

typedef bool probe_file(const char *root, const char *path);

static bool is_json_name(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

/* Whether one of the first files of a directory passes. */
static bool probe_directory(const char *root, const char *path,
                            probe_file *probe)
{
    char *name = joined(root, path);
    DIR *directory = opendir(name);
    struct dirent *entry;
    unsigned count = 0;
    bool is_found = false;

    while (directory != NULL && !is_found && count < PROBES &&
           (entry = readdir(directory)) != NULL) {
        char *file;
        if (!is_json_name(entry->d_name)) {
            continue;
        }
        file = joined(path, entry->d_name);
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

/* The same of the directories below, and of the directory itself. */
static bool probe_below(const char *root, const char *path, probe_file *probe)
{
    char *name = joined(root, path);
    DIR *directory = opendir(name);
    struct dirent *entry;
    unsigned count = 0;
    bool is_found = directory != NULL && probe_directory(root, path, probe);

    while (directory != NULL && !is_found && count < PROBES &&
           (entry = readdir(directory)) != NULL) {
        char *below;
        if (entry->d_name[0] == '.' || entry->d_type == DT_REG) {
            continue;
        }
        below = joined(path, entry->d_name);
        is_found = probe_directory(root, below, probe);
        free(below);
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
    return probe_below(root, "session", is_session) ||
           probe_below(root, "message", is_message) ||
           probe_below(root, "part", is_part);
}

const struct wal__dialect *
walconv_tree_recognise(const char *root, const struct wal__dialect *forced)
{
    const struct wal__dialect *dialect = NULL;

    if (forced != NULL &&
        (forced->reading == NULL || forced->reading->tree == NULL)) {
        return NULL;
    }
    if (is_storage(root)) {
        dialect = &wal__dialect_opencode;
    } else if (is_memory(root)) {
        dialect = &wal__dialect_spec11;
    } else {
        dialect = recognise_directory(root);
        if (dialect != NULL && forced != NULL &&
            forced->reading->stream != NULL) {
            dialect = forced;
        }
    }
    return forced == NULL || dialect == forced ? dialect : NULL;
}

size_t walconv_tree_add_group(struct walconv_tree *tree, const char *name)
{
    tree->groups = cli_room(tree->groups, tree->group_count,
                            &tree->group_capacity, sizeof(tree->groups[0]));
    tree->groups[tree->group_count] =
        (struct walconv_tree_group){.name = cli_copy(name, strlen(name))};
    return tree->group_count++;
}

void walconv_tree_group_directory(struct walconv_tree *tree)
{
    size_t index = walconv_tree_add_group(tree, "");
    struct walconv_tree_group *group = &tree->groups[index];
    const char *slash = strrchr(tree->root, '/');
    size_t size = 0;
    char *json = walconv_tree_read(tree->root, "metadata.json", &size);

    if (json != NULL) {
        group->id = walconv_tree_text(json, size, NULL, "session_id");
        if (group->id == NULL) {
            group->id = walconv_tree_text(json, size, NULL, "id");
        }
        group->cwd = walconv_tree_text(json, size, NULL, "cwd");
        group->title = walconv_tree_text(json, size, NULL, "title");
        group->created = walconv_tree_text(json, size, NULL, "created_at");
        group->project = walconv_tree_text(json, size, NULL, "project_hash");
        group->parent = walconv_tree_text(json, size, NULL, "parent_id");
        if (group->parent == NULL) {
            group->parent =
                walconv_tree_text(json, size, NULL, "parent_session_id");
        }
    }
    if (group->id == NULL) {
        slash = slash != NULL ? slash + 1 : tree->root;
        group->id = cli_copy(slash, strlen(slash));
    }
    free(json);
}

void walconv_tree_deinit(struct walconv_tree *tree)
{
    for (size_t i = 0; i < tree->file_count; i++) {
        free(tree->files[i].path);
    }
    for (size_t i = 0; i < tree->group_count; i++) {
        struct walconv_tree_group *group = &tree->groups[i];
        free(group->name);
        free(group->id);
        free(group->cwd);
        free(group->title);
        free(group->created);
        free(group->project);
        free(group->parent);
    }
    free(tree->files);
    free(tree->groups);
}

const char *walconv_tree_root_end(const char *path)
{
    return strstr(path, "//");
}

const char *walconv_tree_stream_path(const struct wal__dialect *dialect,
                                     uint32_t stream)
{
    static const char *const names[] = {"messages.jsonl", "transcript.jsonl"};
    uint32_t found = 0;

    for (size_t i = 0; dialect->reading->stream != NULL && i < 2; i++) {
        if (dialect->reading->stream(names[i], &found) && found == stream) {
            return names[i];
        }
    }
    return NULL;
}
