/*
 * session_dir_opencode.c - group the files of OpenCode's storage by session.
 *
 * An info file and a message name their session. A part belongs to the message
 * that its folder or its content names. Any other file belongs to the session
 * that its name or its folder's name identifies. The remaining files form the
 * last group, which is not a session of the client.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/json/json_value.h"
#include "tools/cli/cli.h"
#include "tools/cli/ids.h"
#include "tools/cli/json.h"
#include "tools/walconv/import_dir/session_dir.h"
#include "tools/walconv/import_dir/session_dir_path.h"

struct grouping {
    struct walconv_dir *dir;
    struct cli_ids sessions; /* group + 1 by id */
    struct cli_ids messages; /* group + 1 by id */
};

static size_t find_or_add_group(struct grouping *grouping, struct wal_slice id)
{
    uint32_t *value = cli_ids_get_or_add(&grouping->sessions, id);

    if (*value == 0) {
        char *name = cli_copy_text(id.data, (size_t)id.size);
        size_t group = walconv_dir_add_group(grouping->dir, name);
        grouping->dir->groups[group].id = name;
        *value = (uint32_t)group + 1;
    }
    return *value - 1;
}

/* Converts OpenCode's creation time to the time format of sessions. */
static char *time_text(const char *json, size_t size)
{
    struct wal__json_member member = {.parent = "time", .key = "created"};
    char text[32];
    int64_t ms = 0;

    if (wal__json_members(json, size, &member, 1, NULL) != WAL__JSON_OK ||
        member.value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(member.value.span, &ms) != WAL__JSON_OK) {
        return NULL;
    }
    cli_time_text(ms, text, sizeof(text));
    return cli_copy_text(text, strlen(text));
}

static void set_group_info(struct walconv_dir_group *group, const char *json,
                           size_t size)
{
    group->cwd = walconv_json_member_text(json, size, NULL, "directory");
    group->title = walconv_json_member_text(json, size, NULL, "title");
    group->project = walconv_json_member_text(json, size, NULL, "projectID");
    group->parent = walconv_json_member_text(json, size, NULL, "parentID");
    group->created = time_text(json, size);
}

static void group_info(struct grouping *grouping, struct walconv_dir_file *file,
                       const struct walconv_dir_path *path)
{
    struct walconv_dir_group *group;
    size_t size = 0;
    char *json = walconv_dir_read_file(grouping->dir->root, file->path, &size);
    char *id =
        json != NULL ? walconv_json_member_text(json, size, NULL, "id") : NULL;
    struct wal_slice stem = path->parts[path->count - 1];

    file->group = find_or_add_group(
        grouping, id != NULL && id[0] != '\0' ? cli_slice(id) : stem);
    *cli_ids_get_or_add(&grouping->sessions, stem) = (uint32_t)file->group + 1;
    group = &grouping->dir->groups[file->group];
    group->has_file = true;
    if (json != NULL && group->cwd == NULL && group->created == NULL) {
        set_group_info(group, json, size);
    }
    free(id);
    free(json);
}

/* Reports the missing info file of a session once. */
static void report_orphan(struct walconv_dir_group *group,
                          struct walconv_dir_file *file)
{
    if (!group->has_file) {
        file->missing = "the session's own file is missing";
        group->has_file = true;
    }
}

static void group_message(struct grouping *grouping,
                          struct walconv_dir_file *file,
                          const struct walconv_dir_path *path, size_t first)
{
    size_t size = 0;
    char *json = walconv_dir_read_file(grouping->dir->root, file->path, &size);
    char *id =
        json != NULL ? walconv_json_member_text(json, size, NULL, "id") : NULL;

    file->group = find_or_add_group(grouping, path->parts[first]);
    report_orphan(&grouping->dir->groups[file->group], file);
    *cli_ids_get_or_add(&grouping->messages, path->parts[path->count - 1]) =
        (uint32_t)file->group + 1;
    if (id != NULL) {
        *cli_ids_get_or_add(&grouping->messages, cli_slice(id)) =
            (uint32_t)file->group + 1;
    }
    free(id);
    free(json);
}

static bool find_group(const struct cli_ids *ids, struct wal_slice id,
                       size_t *group)
{
    const uint32_t *value = cli_ids_find(ids, id);

    if (value != NULL && *value > 0) {
        *group = *value - 1;
    }
    return value != NULL && *value > 0;
}

/* Finds the group from the ids that the part contains. */
static bool find_by_content(struct grouping *grouping,
                            struct walconv_dir_file *file)
{
    size_t size = 0;
    char *json = walconv_dir_read_file(grouping->dir->root, file->path, &size);
    char *message = NULL;
    char *session = NULL;
    bool is_found = false;

    if (json != NULL) {
        message = walconv_json_member_text(json, size, NULL, "messageID");
        session = walconv_json_member_text(json, size, NULL, "sessionID");
    }
    if (message != NULL) {
        is_found =
            find_group(&grouping->messages, cli_slice(message), &file->group);
    }
    if (!is_found) {
        file->missing = "its message is missing";
    }
    if (!is_found && session != NULL) {
        file->group = find_or_add_group(grouping, cli_slice(session));
        is_found = true;
    }
    free(message);
    free(session);
    free(json);
    return is_found;
}

static bool group_part(struct grouping *grouping, struct walconv_dir_file *file,
                       const struct walconv_dir_path *path, size_t first)
{
    for (size_t i = path->count - 1; i-- > first;) {
        if (find_group(&grouping->messages, path->parts[i], &file->group)) {
            return true;
        }
    }
    if (find_by_content(grouping, file)) {
        return true;
    }
    for (size_t i = path->count - 1; i-- > first;) {
        if (find_group(&grouping->sessions, path->parts[i], &file->group)) {
            return true;
        }
    }
    return false;
}

static bool group_other(struct grouping *grouping,
                        struct walconv_dir_file *file,
                        const struct walconv_dir_path *path)
{
    for (size_t i = path->count; i-- > 1;) {
        if (find_group(&grouping->sessions, path->parts[i], &file->group)) {
            return true;
        }
    }
    return false;
}

void walconv_dir_group_storage(struct walconv_dir *dir)
{
    struct grouping grouping = {.dir = dir};
    size_t rest = SIZE_MAX;
    struct walconv_dir_path path;
    size_t first;

    for (size_t i = 0; i < dir->file_count; i++) {
        walconv_dir_path_split(dir->files[i].path, &path);
        if (walconv_dir_path_is_info(&path)) {
            group_info(&grouping, &dir->files[i], &path);
        }
    }
    for (size_t i = 0; i < dir->file_count; i++) {
        walconv_dir_path_split(dir->files[i].path, &path);
        if (walconv_dir_path_is_kind(&path, "message", &first) &&
            path.count > first + 1) {
            group_message(&grouping, &dir->files[i], &path, first);
        }
    }
    for (size_t i = 0; i < dir->file_count; i++) {
        struct walconv_dir_file *file = &dir->files[i];
        bool is_part;
        walconv_dir_path_split(file->path, &path);
        is_part = walconv_dir_path_is_kind(&path, "part", &first);
        if (walconv_dir_path_is_info(&path) ||
            (walconv_dir_path_is_kind(&path, "message", &first) &&
             path.count > first + 1)) {
            continue;
        }
        (void)walconv_dir_path_is_kind(&path, "part", &first);
        if (is_part ? !group_part(&grouping, file, &path, first)
                    : !group_other(&grouping, file, &path)) {
            rest = rest < SIZE_MAX ? rest : walconv_dir_add_group(dir, "");
            file->group = rest;
        }
    }
    cli_ids_deinit(&grouping.sessions);
    cli_ids_deinit(&grouping.messages);
}

bool walconv_dir_read_exported(struct walconv_dir *dir, const char *path)
{
    struct wal__json_member members[] = {{.key = "info"}, {.key = "messages"}};
    struct walconv_dir_group *group;
    size_t size = 0;
    char *json = walconv_dir_read_file(dir->root, path, &size);
    char *id = NULL;
    size_t index;

    if (json != NULL &&
        wal__json_members(json, size, members, 2, NULL) == WAL__JSON_OK &&
        members[0].value.kind == WAL__JSON_OBJECT &&
        members[1].value.kind == WAL__JSON_ARRAY) {
        id = walconv_json_member_text((const char *)members[0].value.span.data,
                                      members[0].value.span.size, NULL, "id");
    }
    if (id != NULL) {
        dir->files = cli_reserve(dir->files, 0, &dir->file_capacity,
                                 sizeof(dir->files[0]));
        dir->files[dir->file_count++] = (struct walconv_dir_file){
            .path = cli_copy_text(path, strlen(path))};
        index = walconv_dir_add_group(dir, path);
        group = &dir->groups[index];
        group->id = id;
        set_group_info(group, (const char *)members[0].value.span.data,
                       members[0].value.span.size);
    }
    free(json);
    return id != NULL;
}
