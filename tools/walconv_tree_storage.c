/*
 * walconv_tree_storage - which session each file of OpenCode's storage is of.
 *
 * A session's own file and its messages name it; a part names its message, by
 * its folder or in itself; of other files the name, or a folder's, is that of
 * the session. What is left is of the last group, which is no session.
 *
 * Threads: a tool is one thread.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/jsonl/json_value.h"
#include "tools/cli.h"
#include "tools/cli_ids.h"
#include "tools/cli_json.h"
#include "tools/walconv_tree.h"
#include "tools/walconv_tree_path.h"

struct grouping {
    struct walconv_tree *tree;
    struct cli_ids sessions; /* group + 1 by id */
    struct cli_ids messages; /* group + 1 by id */
};

static size_t group_of(struct grouping *grouping, struct wal_slice id)
{
    uint32_t *value = cli_ids_put(&grouping->sessions, id);

    if (*value == 0) {
        char *name = cli_copy(id.data, (size_t)id.size);
        size_t group = walconv_tree_add_group(grouping->tree, name);
        grouping->tree->groups[group].id = name;
        *value = (uint32_t)group + 1;
    }
    return *value - 1;
}

/* A time of OpenCode as a time of sessions. */
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
    return cli_copy(text, strlen(text));
}

static void describe(struct walconv_tree_group *group, const char *json,
                     size_t size)
{
    group->cwd = walconv_tree_text(json, size, NULL, "directory");
    group->title = walconv_tree_text(json, size, NULL, "title");
    group->project = walconv_tree_text(json, size, NULL, "projectID");
    group->parent = walconv_tree_text(json, size, NULL, "parentID");
    group->created = time_text(json, size);
}

static void take_info(struct grouping *grouping, struct walconv_tree_file *file,
                      const struct walconv_tree_path *path)
{
    struct walconv_tree_group *group;
    size_t size = 0;
    char *json = walconv_tree_read(grouping->tree->root, file->path, &size);
    char *id = json != NULL ? walconv_tree_text(json, size, NULL, "id") : NULL;
    struct wal_slice stem = path->parts[path->count - 1];

    file->group =
        group_of(grouping, id != NULL && id[0] != '\0' ? cli_slice(id) : stem);
    *cli_ids_put(&grouping->sessions, stem) = (uint32_t)file->group + 1;
    group = &grouping->tree->groups[file->group];
    group->has_file = true;
    if (json != NULL && group->cwd == NULL && group->created == NULL) {
        describe(group, json, size);
    }
    free(id);
    free(json);
}

/* A session whose own file is gone is told of once. */
static void note_orphan(struct walconv_tree_group *group,
                        struct walconv_tree_file *file)
{
    if (!group->has_file) {
        file->lacks = "the session's own file is not there";
        group->has_file = true;
    }
}

static void take_message(struct grouping *grouping,
                         struct walconv_tree_file *file,
                         const struct walconv_tree_path *path, size_t below)
{
    size_t size = 0;
    char *json = walconv_tree_read(grouping->tree->root, file->path, &size);
    char *id = json != NULL ? walconv_tree_text(json, size, NULL, "id") : NULL;

    file->group = group_of(grouping, path->parts[below]);
    note_orphan(&grouping->tree->groups[file->group], file);
    *cli_ids_put(&grouping->messages, path->parts[path->count - 1]) =
        (uint32_t)file->group + 1;
    if (id != NULL) {
        *cli_ids_put(&grouping->messages, cli_slice(id)) =
            (uint32_t)file->group + 1;
    }
    free(id);
    free(json);
}

static bool find(const struct cli_ids *ids, struct wal_slice id, size_t *group)
{
    const uint32_t *value = cli_ids_find(ids, id);

    if (value != NULL && *value > 0) {
        *group = *value - 1;
    }
    return value != NULL && *value > 0;
}

/* What the part itself says that it is of. */
static bool find_inside(struct grouping *grouping,
                        struct walconv_tree_file *file)
{
    size_t size = 0;
    char *json = walconv_tree_read(grouping->tree->root, file->path, &size);
    char *message = NULL;
    char *session = NULL;
    bool is_found = false;

    if (json != NULL) {
        message = walconv_tree_text(json, size, NULL, "messageID");
        session = walconv_tree_text(json, size, NULL, "sessionID");
    }
    if (message != NULL) {
        is_found = find(&grouping->messages, cli_slice(message), &file->group);
    }
    if (!is_found) {
        file->lacks = "its message is not there";
    }
    if (!is_found && session != NULL) {
        file->group = group_of(grouping, cli_slice(session));
        is_found = true;
    }
    free(message);
    free(session);
    free(json);
    return is_found;
}

static bool take_part(struct grouping *grouping, struct walconv_tree_file *file,
                      const struct walconv_tree_path *path, size_t below)
{
    for (size_t i = path->count - 1; i-- > below;) {
        if (find(&grouping->messages, path->parts[i], &file->group)) {
            return true;
        }
    }
    if (find_inside(grouping, file)) {
        return true;
    }
    for (size_t i = path->count - 1; i-- > below;) {
        if (find(&grouping->sessions, path->parts[i], &file->group)) {
            return true;
        }
    }
    return false;
}

static bool take_other(struct grouping *grouping,
                       struct walconv_tree_file *file,
                       const struct walconv_tree_path *path)
{
    for (size_t i = path->count; i-- > 1;) {
        if (find(&grouping->sessions, path->parts[i], &file->group)) {
            return true;
        }
    }
    return false;
}

void walconv_tree_group_storage(struct walconv_tree *tree)
{
    struct grouping grouping = {.tree = tree};
    size_t rest = SIZE_MAX;
    struct walconv_tree_path path;
    size_t below;

    for (size_t i = 0; i < tree->file_count; i++) {
        walconv_tree_split(tree->files[i].path, &path);
        if (walconv_tree_is_info(&path)) {
            take_info(&grouping, &tree->files[i], &path);
        }
    }
    for (size_t i = 0; i < tree->file_count; i++) {
        walconv_tree_split(tree->files[i].path, &path);
        if (walconv_tree_is_kind(&path, "message", &below) &&
            path.count > below + 1) {
            take_message(&grouping, &tree->files[i], &path, below);
        }
    }
    for (size_t i = 0; i < tree->file_count; i++) {
        struct walconv_tree_file *file = &tree->files[i];
        bool is_part;
        walconv_tree_split(file->path, &path);
        is_part = walconv_tree_is_kind(&path, "part", &below);
        if (walconv_tree_is_info(&path) ||
            (walconv_tree_is_kind(&path, "message", &below) &&
             path.count > below + 1)) {
            continue;
        }
        (void)walconv_tree_is_kind(&path, "part", &below);
        if (is_part ? !take_part(&grouping, file, &path, below)
                    : !take_other(&grouping, file, &path)) {
            rest = rest < SIZE_MAX ? rest : walconv_tree_add_group(tree, "");
            file->group = rest;
        }
    }
    cli_ids_deinit(&grouping.sessions);
    cli_ids_deinit(&grouping.messages);
}

bool walconv_tree_take_exported(struct walconv_tree *tree, const char *path)
{
    struct wal__json_member members[] = {{.key = "info"}, {.key = "messages"}};
    struct walconv_tree_group *group;
    size_t size = 0;
    char *json = walconv_tree_read(tree->root, path, &size);
    char *id = NULL;
    size_t index;

    if (json != NULL &&
        wal__json_members(json, size, members, 2, NULL) == WAL__JSON_OK &&
        members[0].value.kind == WAL__JSON_OBJECT &&
        members[1].value.kind == WAL__JSON_ARRAY) {
        id = walconv_tree_text((const char *)members[0].value.span.data,
                               members[0].value.span.size, NULL, "id");
    }
    if (id != NULL) {
        tree->files = cli_room(tree->files, 0, &tree->file_capacity,
                               sizeof(tree->files[0]));
        tree->files[tree->file_count++] =
            (struct walconv_tree_file){.path = cli_copy(path, strlen(path))};
        index = walconv_tree_add_group(tree, path);
        group = &tree->groups[index];
        group->id = id;
        describe(group, (const char *)members[0].value.span.data,
                 members[0].value.span.size);
    }
    free(json);
    return id != NULL;
}
