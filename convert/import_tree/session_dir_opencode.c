/*
 * session_dir_opencode.c - groups the files of OpenCode's storage by session.
 *
 * An info file and a message name their session. A part belongs to the message
 * that its folder or its content names. Any other file belongs to the session
 * that its name or its folder's name identifies. The remaining files form the
 * last group, which is not a session of the client.
 *
 * Threads: one thread at a time per import.
 */
#include <string.h>

#include "convert/import_tree/session_dir.h"
#include "convert/import_tree/storage_path.h"
#include "convert/model/model_table.h"
#include "convert/source/json_string.h"
#include "format/json/json_scan.h"
#include "format/json/json_value.h"
#include "format/payload/timestamp.h"

#define NO_GROUP    UINT32_MAX
#define TIME_MAX_MS INT64_C(253402300799999) /* of the year 9999 */

/* Each maps hashes of ids to groups, in value.size. */
struct grouping {
    struct wal__session_dir *dir;
    struct wal__model_table sessions;
    struct wal__model_table messages;
};

static uint64_t hash_of(struct wal_slice id)
{
    return wal__model_hash(0,
                           (struct wal__json_span){id.data, (size_t)id.size});
}

/* Without memory the arena's has_failed is set. */
static void set_group(struct wal__model_table *table, struct wal_slice id,
                      size_t group)
{
    (void)wal__model_table_put(table, hash_of(id),
                               (struct wal__json_span){.size = group});
}

static bool find_group(const struct wal__model_table *table,
                       struct wal_slice id, size_t *group)
{
    struct wal__json_span found;
    bool is_found =
        id.size > 0 && wal__model_table_get(table, hash_of(id), &found);

    if (is_found) {
        *group = found.size;
    }
    return is_found;
}

/* Sets the file's group to that of the session; returns it, or NULL without
 * memory. */
static struct wal__session_dir_group *
set_session(struct grouping *grouping, struct wal__session_dir_file *file,
            struct wal_slice id)
{
    struct wal__session_dir *dir = grouping->dir;
    struct wal__json_span copy = {id.data, (size_t)id.size};
    struct wal__session_dir_group *group;
    char name[WAL__STRING_MAX + 1];

    if (find_group(&grouping->sessions, id, &file->group)) {
        return &dir->groups[file->group];
    }
    memcpy(name, copy.data, copy.size);
    name[copy.size] = '\0';
    group = wal__session_dir_add_group(dir, name);
    if (group == NULL) {
        return NULL;
    }
    group->id = group->name;
    group->has_id = true;
    file->group = dir->group_count - 1;
    set_group(&grouping->sessions, id, file->group);
    return group;
}

/* Converts OpenCode's creation time to the time format of sessions. */
static const char *time_text(struct wal__import *import, const char *json,
                             size_t size)
{
    struct wal__json_member member = {.parent = "time", .key = "created"};
    uint8_t text[WAL__MODEL_TIME_SIZE];
    int64_t ms = 0;

    if (wal__json_members(json, size, &member, 1, NULL) != WAL__JSON_OK ||
        member.value.kind != WAL__JSON_NUMBER ||
        wal__json_integer(member.value.span, &ms) != WAL__JSON_OK) {
        return NULL;
    }
    return ms < 0 || ms > TIME_MAX_MS
               ? NULL
               : wal__string_copy(&import->arena.arena,
                                  wal__model_time_write(ms, text),
                                  sizeof(text));
}

static void set_group_info(struct wal__import *import,
                           struct wal__session_dir_group *group,
                           const char *json, size_t size)
{
    group->cwd = wal__session_dir_member(import, json, size, "directory");
    group->title = wal__session_dir_member(import, json, size, "title");
    group->project = wal__session_dir_member(import, json, size, "projectID");
    group->parent = wal__session_dir_member(import, json, size, "parentID");
    group->created = time_text(import, json, size);
}

static void group_info(struct grouping *grouping,
                       struct wal__session_dir_file *file,
                       const struct wal__storage_path *path)
{
    struct wal__import *import = grouping->dir->import;
    struct wal__session_dir_group *group;
    char id[WAL__STRING_MAX + 1] = "";
    size_t size = 0;
    char *json = wal__session_dir_read_file(import, grouping->dir->root,
                                            file->path, &size);
    struct wal_slice stem = path->parts[path->count - 1];

    if (json != NULL) {
        (void)wal__string_member(json, size, NULL, "id", id);
    }
    group = set_session(grouping, file,
                        id[0] != '\0' ? wal__slice_from_text(id) : stem);
    if (group != NULL) {
        set_group(&grouping->sessions, stem, file->group);
        group->has_file = true;
        group->info = group->info == NULL ? file->path : group->info;
        if (json != NULL && group->cwd == NULL && group->created == NULL) {
            set_group_info(import, group, json, size);
        }
    }
    wal__heap_free(import->heap, json);
}

/* Reports the missing info file of a session once. */
static void report_orphan(struct wal__session_dir_group *group,
                          struct wal__session_dir_file *file)
{
    if (!group->has_file) {
        file->missing = "the session's own file is missing";
        group->has_file = true;
    }
}

static void group_message(struct grouping *grouping,
                          struct wal__session_dir_file *file,
                          const struct wal__storage_path *path, size_t first)
{
    struct wal__import *import = grouping->dir->import;
    struct wal__session_dir_group *group =
        set_session(grouping, file, path->parts[first]);
    char id[WAL__STRING_MAX + 1];
    size_t size = 0;
    char *json;

    if (group == NULL) {
        return;
    }
    report_orphan(group, file);
    json = wal__session_dir_read_file(import, grouping->dir->root, file->path,
                                      &size);
    set_group(&grouping->messages, path->parts[path->count - 1], file->group);
    if (json != NULL && wal__string_member(json, size, NULL, "id", id)) {
        set_group(&grouping->messages, wal__slice_from_text(id), file->group);
    }
    wal__heap_free(import->heap, json);
}

/* Finds the group from the ids that the part contains. */
static bool find_by_content(struct grouping *grouping,
                            struct wal__session_dir_file *file)
{
    struct wal__import *import = grouping->dir->import;
    char message[WAL__STRING_MAX + 1] = "";
    char session[WAL__STRING_MAX + 1] = "";
    size_t size = 0;
    char *json = wal__session_dir_read_file(import, grouping->dir->root,
                                            file->path, &size);

    if (json != NULL) {
        (void)wal__string_member(json, size, NULL, "messageID", message);
        (void)wal__string_member(json, size, NULL, "sessionID", session);
    }
    wal__heap_free(import->heap, json);
    if (find_group(&grouping->messages, wal__slice_from_text(message),
                   &file->group)) {
        return true;
    }
    file->missing = "its message is missing";
    return session[0] != '\0' &&
           set_session(grouping, file, wal__slice_from_text(session)) != NULL;
}

static bool group_part(struct grouping *grouping,
                       struct wal__session_dir_file *file,
                       const struct wal__storage_path *path, size_t first)
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
                        struct wal__session_dir_file *file,
                        const struct wal__storage_path *path)
{
    for (size_t i = path->count; i-- > 1;) {
        if (find_group(&grouping->sessions, path->parts[i], &file->group)) {
            return true;
        }
    }
    return false;
}

/* Puts a file that belongs to no session into the last group, which is added
 * for the first of them. */
static void group_rest(struct grouping *grouping,
                       struct wal__session_dir_file *file, uint32_t *rest)
{
    if (*rest == NO_GROUP &&
        wal__session_dir_add_group(grouping->dir, "") != NULL) {
        *rest = grouping->dir->group_count - 1;
    }
    file->group = *rest;
}

void wal__session_dir_group_storage(struct wal__session_dir *dir)
{
    struct wal__arena *arena = &dir->import->arena.arena;
    struct grouping grouping = {
        .dir = dir, .sessions = {.arena = arena}, .messages = {.arena = arena}};
    uint32_t rest = NO_GROUP;
    struct wal__storage_path path;
    size_t first;

    for (uint32_t i = 0; i < dir->file_count; i++) {
        wal__storage_path_split(dir->files[i].path, &path);
        if (wal__storage_path_is_info(&path)) {
            group_info(&grouping, &dir->files[i], &path);
        }
    }
    for (uint32_t i = 0; i < dir->file_count; i++) {
        wal__storage_path_split(dir->files[i].path, &path);
        if (wal__storage_path_is_kind(&path, "message", &first) &&
            path.count > first + 1) {
            group_message(&grouping, &dir->files[i], &path, first);
        }
    }
    for (uint32_t i = 0; i < dir->file_count; i++) {
        struct wal__session_dir_file *file = &dir->files[i];
        wal__storage_path_split(file->path, &path);
        if (wal__storage_path_is_info(&path) ||
            (wal__storage_path_is_kind(&path, "message", &first) &&
             path.count > first + 1)) {
            continue;
        }
        if (wal__storage_path_is_kind(&path, "part", &first)
                ? !group_part(&grouping, file, &path, first)
                : !group_other(&grouping, file, &path)) {
            group_rest(&grouping, file, &rest);
        }
    }
}

bool wal__session_dir_read_exported(struct wal__session_dir *dir,
                                    const char *path)
{
    struct wal__json_member members[] = {{.key = "info"}, {.key = "messages"}};
    const struct wal__json_span *info = &members[0].value.span;
    struct wal__session_dir_group *group = NULL;
    struct wal__import *import = dir->import;
    size_t size = 0;
    char *json = wal__session_dir_read_file(import, dir->root, path, &size);
    const char *id = NULL;

    if (json != NULL &&
        wal__json_members(json, size, members, 2, NULL) == WAL__JSON_OK &&
        members[0].value.kind == WAL__JSON_OBJECT &&
        members[1].value.kind == WAL__JSON_ARRAY) {
        id = wal__session_dir_member(import, (const char *)info->data,
                                     info->size, "id");
    }
    if (id != NULL && wal__session_dir_add_file(dir, path) != NULL) {
        group = wal__session_dir_add_group(dir, path);
    }
    if (group != NULL) {
        group->id = id;
        group->has_id = true;
        set_group_info(import, group, (const char *)info->data, info->size);
    }
    wal__heap_free(import->heap, json);
    return id != NULL;
}
