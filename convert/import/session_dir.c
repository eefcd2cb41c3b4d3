/*
 * session_dir.c - detects session directories, lists their files and groups them by session.
 *
 * The files of OpenCode's storage are grouped so: an info file and a message name their session. A
 * part belongs to the message that its folder or its content names. Any other file belongs to the
 * session that its name or its folder's name identifies. The remaining files form the last group,
 * which is not a session of the client.
 */
#include "convert/import/session_dir.h"
#include "convert/import/walk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/import/import.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "engine/base/heap.h"
#include "format/json/json_scan.h"
#include "format/json/json_text.h"
#include "format/payload/timestamp.h"

/* --- files and their text ------------------------------------------------ */

#define PROBE_FILES_MAX 64 /* files and folders examined per folder */

/* Reads a file into memory from the heap, with a NUL after it. Returns NULL if it is not a regular
 * file, cannot be read, or is larger than WAL__SESSION_DIR_DOC_SIZE. Without memory
 * import->arena.has_failed is set. */
static char *session_dir_read_file(struct wal__import *import, const char *root, const char *path,
                                   size_t *size)
{
    char *name = wal__import_path(&import->arena.arena, root, path);
    struct stat stat;
    char *bytes = NULL;
    int fd = name != NULL ? wal__file_open_regular(AT_FDCWD, name, &stat) : -1;

    if (fd < 0) {
        return NULL;
    }
    if ((size_t)stat.st_size <= WAL__SESSION_DIR_DOC_SIZE) {
        *size = (size_t)stat.st_size;
        bytes = wal__heap_zalloc(import->heap, *size + 1);
        import->arena.has_failed |= bytes == NULL;
    }
    if (bytes != NULL && wal__file_read_full(fd, bytes, *size) != (ssize_t)*size) {
        wal__heap_free(import->heap, bytes);
        bytes = NULL;
    }
    close(fd);
    return bytes;
}

/* Returns a string member of a JSON object in the arena; NULL: there is none. */
static const char *session_dir_member(struct wal__import *import, const char *json, size_t size,
                                      const char *key)
{
    struct wal__json_member member = {.key = key};

    return wal__json_members(json, size, &member, 1, NULL) == WAL__JSON_OK
               ? wal__string_copy(&import->arena.arena, wal__member_string(&member),
                                  WAL__STRING_MAX)
               : NULL;
}

/* Returns true if the file is an object with these members; `other` may be NULL. */
static bool has_members(struct wal__import *import, const char *root, const char *path,
                        const char *key, const char *second_key)
{
    struct wal__json_member members[2] = {{.key = key}, {.key = second_key}};
    size_t size = 0;
    char *json = session_dir_read_file(import, root, path, &size);
    bool is_found =
        json != NULL &&
        wal__json_members(json, size, members, second_key != NULL ? 2 : 1, NULL) == WAL__JSON_OK &&
        members[0].value.kind != WAL__JSON_NONE &&
        (second_key == NULL || members[1].value.kind != WAL__JSON_NONE);

    wal__heap_free(import->heap, json);
    return is_found;
}

static bool is_message_with_uuid(const struct wal__piece *piece)
{
    struct wal__json_member uuid = {.key = "uuid"};
    struct wal__line_info line;

    return wal__line_read(&wal__dialect_sdk, piece->data, piece->size, &line, NULL) ==
               WAL__JSON_OK &&
           line.is_message &&
           wal__model_members((struct wal__json_span){(const uint8_t *)piece->data, piece->size},
                              &uuid, 1, NULL) == WAL__JSON_OK &&
           uuid.value.kind == WAL__JSON_STRING;
}

/* Returns true if one of the first lines is a message that has a uuid. */
static bool begins_with_message(struct wal__import *import, const char *root, const char *path)
{
    char *name = wal__import_path(&import->arena.arena, root, path);
    struct wal__line_reader reader;
    bool is_match = false;
    struct wal__piece piece;
    int got = 1;
    struct stat stat;
    int fd = name != NULL ? wal__file_open_regular(AT_FDCWD, name, &stat) : -1;

    if (fd < 0) {
        return false;
    }
    wal__line_reader_init(&reader, import->heap, fd, (uint64_t)stat.st_size, false, 0);
    for (unsigned i = 0; !is_match && got > 0 && i < PROBE_FILES_MAX; i++) {
        got = wal__line_reader_next(&reader, &piece);
        is_match = got > 0 && is_message_with_uuid(&piece);
        import->arena.has_failed |= got < 0 && errno == ENOMEM;
    }
    wal__line_reader_deinit(&reader);
    close(fd);
    return is_match;
}

/* Recognises the session directories of sdk and spec11. */
static const struct wal__dialect *recognise_directory(struct wal__import *import, const char *root)
{
    bool has_messages = begins_with_message(import, root, "messages.jsonl");

    if (has_members(import, root, "metadata.json", "project_hash", "id")) {
        return &wal__dialect_spec11;
    }
    if (has_members(import, root, "metadata.json", "session_id", "created_at")) {
        return &wal__dialect_sdk;
    }
    /* The metadata file has other members, is missing or is damaged. */
    return has_messages ? &wal__dialect_sdk : NULL;
}

static bool has_type(struct wal__import *import, const char *root, const char *path, mode_t type)
{
    char *name = wal__import_path(&import->arena.arena, root, path);
    struct stat stat;

    return name != NULL && lstat(name, &stat) == 0 && (stat.st_mode & S_IFMT) == type;
}

/* Returns true if the directory is the project memory of spec11, next to the project's sessions. */
static bool is_memory(struct wal__import *import, const char *root)
{
    size_t size = strlen(root);

    while (size > 1 && root[size - 1] == '/') {
        size--;
    }
    return size >= 7 && memcmp(root + size - 7, "/memory", 7) == 0 &&
           has_type(import, root, "../sessions", S_IFDIR) &&
           has_type(import, root, "summary.md", S_IFREG);
}

/* Lists the first JSON files of a folder, or the first folders in it, by their paths below the
 * root. Returns their number. */
static size_t list_folder(struct wal__import *import, const char *root, const char *path,
                          bool lists_folders, const char *found[PROBE_FILES_MAX])
{
    char *name = wal__import_path(&import->arena.arena, root, path);
    DIR *directory = name != NULL ? opendir(name) : NULL;
    const struct dirent *entry;
    size_t count = 0;

    while (directory != NULL && count < PROBE_FILES_MAX && (entry = readdir(directory)) != NULL) {
        if (lists_folders ? entry->d_name[0] != '.' && entry->d_type != DT_REG
                          : wal__is_json_name(entry->d_name)) {
            found[count] = wal__import_path(&import->arena.arena, path, entry->d_name);
            count += found[count] != NULL ? 1 : 0;
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return count;
}

/* Whether the file is a document of OpenCode of that kind. */
static bool is_document(struct wal__import *import, const char *root, const char *path,
                        const char *kind)
{
    if (strcmp(kind, "message") == 0) {
        return has_members(import, root, path, "sessionID", "role");
    }
    if (strcmp(kind, "part") == 0) {
        return has_members(import, root, path, "messageID", "type");
    }
    return has_members(import, root, path, "id", "time") &&
           (has_members(import, root, path, "projectID", NULL) ||
            has_members(import, root, path, "version", "title"));
}

/* Whether the folder of that kind, or one in it, has such a document among its first files. */
static bool has_documents(struct wal__import *import, const char *root, const char *kind)
{
    const char *folders[1 + PROBE_FILES_MAX] = {kind};
    const char *files[PROBE_FILES_MAX];
    size_t folder_count = 1 + list_folder(import, root, kind, true, folders + 1);

    for (size_t i = 0; i < folder_count; i++) {
        size_t file_count = list_folder(import, root, folders[i], false, files);

        for (size_t n = 0; n < file_count; n++) {
            if (is_document(import, root, files[n], kind)) {
                return true;
            }
        }
    }
    return false;
}

const struct wal__dialect *wal__session_dir_detect(struct wal__import *import, const char *root)
{
    const struct wal__dialect *forced = import->forced;
    const struct wal__dialect *dialect = NULL;

    if (forced != NULL && (forced->read_ops == NULL || forced->read_ops->documents == NULL)) {
        return NULL;
    }
    if (has_documents(import, root, "session") || has_documents(import, root, "message") ||
        has_documents(import, root, "part")) {
        dialect = &wal__dialect_opencode;
    } else if (is_memory(import, root)) {
        dialect = &wal__dialect_spec11;
    } else {
        dialect = recognise_directory(import, root);
        if (dialect != NULL && forced != NULL && forced->read_ops->stream != NULL) {
            dialect = forced;
        }
    }
    return forced == NULL || dialect == forced ? dialect : NULL;
}

/* Adds a file or a group, and returns it; NULL: no memory. */
static struct wal__session_dir_file *session_dir_add_file(struct wal__session_dir *dir,
                                                          const char *path)
{
    struct wal__arena *arena = &dir->import->arena.arena;
    struct wal__session_dir_file *files =
        wal__arena_grow(arena, dir->files, dir->file_count, &dir->file_capacity, sizeof(files[0]));
    char *copy = files != NULL ? wal__arena_copy_text(arena, path) : NULL;

    dir->files = files != NULL ? files : dir->files;
    if (copy == NULL) {
        return NULL;
    }
    files[dir->file_count] = (struct wal__session_dir_file){.path = copy};
    return &files[dir->file_count++];
}

static struct wal__session_dir_group *session_dir_add_group(struct wal__session_dir *dir,
                                                            const char *name)
{
    struct wal__arena *arena = &dir->import->arena.arena;
    struct wal__session_dir_group *groups = wal__arena_grow(
        arena, dir->groups, dir->group_count, &dir->group_capacity, sizeof(groups[0]));
    char *copy = groups != NULL ? wal__arena_copy_text(arena, name) : NULL;

    dir->groups = groups != NULL ? groups : dir->groups;
    if (copy == NULL) {
        return NULL;
    }
    groups[dir->group_count] = (struct wal__session_dir_group){.name = copy};
    return &groups[dir->group_count++];
}

void wal__session_dir_group_single(struct wal__session_dir *dir)
{
    struct wal__session_dir_group *group = session_dir_add_group(dir, "");
    struct wal__import *import = dir->import;
    const char *slash = strrchr(dir->root, '/');
    size_t size = 0;
    char *json = session_dir_read_file(import, dir->root, "metadata.json", &size);

    if (group != NULL && json != NULL) {
        const struct {
            const char **field;
            const char *key;
        } members[] = {
            {&group->id, "session_id"},
            {&group->id, "id"},
            {&group->cwd, "cwd"},
            {&group->title, "title"},
            {&group->created, "created_at"},
            {&group->project, "project_hash"},
            {&group->parent, "parent_id"},
            {&group->parent, "parent_session_id"},
        };
        for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
            if (*members[i].field == NULL) {
                *members[i].field = session_dir_member(import, json, size, members[i].key);
            }
        }
    }
    if (group != NULL) {
        group->has_id = group->id != NULL;
    }
    if (group != NULL && group->id == NULL) {
        group->id =
            wal__arena_copy_text(&dir->import->arena.arena, slash != NULL ? slash + 1 : dir->root);
    }
    wal__heap_free(import->heap, json);
}

/* --- listing ------------------------------------------------------------- */

static enum wal_status list_entry(struct wal__session_dir *dir, struct wal__walk_entry *entry,
                                  struct wal_error *error)
{
    const char *path = entry->path + strlen(dir->root);

    if (entry->kind == WAL__WALK_FOLDER) {
        /* state of views, not the client's files */
        entry->is_skipped = strcmp(entry->name, ".agentwal") == 0;
    } else if (entry->kind == WAL__WALK_FILE) {
        path += strspn(path, "/");
        if (dir->patterns != NULL && !wal__client_matches(dir->patterns, path)) {
            dir->import->result.left_out[wal__left_kind_of(path)]++;
            return WAL_OK;
        }
        return session_dir_add_file(dir, path) != NULL ? WAL_OK : wal__no_memory(error);
    } else if (entry->kind == WAL__WALK_LINK) {
        dir->import->result.left_out[WAL__FILE_LINK]++;
    } else if (entry->kind == WAL__WALK_UNREADABLE) {
        errno = entry->error;
        return wal__import_fail(dir->import, entry->path, wal__import_errno(error), error);
    }
    return WAL_OK;
}

enum wal_status wal__session_dir_list_files(struct wal__session_dir *dir, struct wal_error *error)
{
    struct wal__walk walk = {.heap = dir->import->heap, .argument = dir->root, .follows = true};
    struct wal__walk_entry *entry = NULL;
    enum wal_status status;

    do {
        status = wal__walk_next(&walk, &entry);
        if (status != WAL_OK) {
            status = wal__no_memory(error);
        } else if (entry != NULL) {
            status = list_entry(dir, entry, error);
        }
    } while (status == WAL_OK && entry != NULL);
    wal__walk_deinit(&walk);
    return status;
}

/* --- paths of OpenCode's storage ----------------------------------------- */

void wal__storage_path_split(const char *text, struct wal__storage_path *path)
{
    path->count = 0;
    while (path->count < WAL__STORAGE_PATH_PARTS) {
        size_t size = strcspn(text, "/");
        path->parts[path->count++] = (struct wal_slice){text, size};
        if (text[size] == '\0') {
            struct wal_slice *last = &path->parts[path->count - 1];
            if (wal__is_json_name(text)) {
                last->size -= 5;
            }
            return;
        }
        text += size + 1;
    }
}

static bool part_is(const struct wal__storage_path *path, size_t position, const char *text)
{
    return position < path->count &&
           wal__slice_equal(path->parts[position], wal__slice_from_text(text));
}

bool wal__storage_path_is_kind(const struct wal__storage_path *path, const char *kind,
                               size_t *first)
{
    if (part_is(path, 0, "session") && part_is(path, 1, kind)) {
        *first = 2;
        return path->count > 2;
    }
    *first = 1;
    return part_is(path, 0, kind) && path->count > 1;
}

bool wal__storage_path_is_info(const struct wal__storage_path *path)
{
    size_t first;

    return path->count == 3 && part_is(path, 0, "session") &&
           !wal__storage_path_is_kind(path, "message", &first) &&
           !wal__storage_path_is_kind(path, "part", &first);
}

/* --- groups of OpenCode's storage ---------------------------------------- */

#define NO_GROUP SIZE_MAX

/* Each maps hashes of ids to groups, in value.size. */
struct grouping {
    struct wal__session_dir *dir;
    struct wal__model_table sessions;
    struct wal__model_table messages;
};

static uint64_t hash_of(struct wal_slice id)
{
    return wal__model_hash(0, (struct wal__json_span){id.data, (size_t)id.size});
}

/* Without memory the arena's has_failed is set. */
static void set_group(struct wal__model_table *table, struct wal_slice id, size_t group)
{
    (void)wal__model_table_put(table, hash_of(id), (struct wal__json_span){.size = group});
}

static bool find_group(const struct wal__model_table *table, struct wal_slice id, size_t *group)
{
    struct wal__json_span found;
    bool is_found = id.size > 0 && wal__model_table_get(table, hash_of(id), &found);

    if (is_found) {
        *group = found.size;
    }
    return is_found;
}

/* Sets the file's group to that of the session; returns it, or NULL without memory. */
static struct wal__session_dir_group *
set_session(struct grouping *grouping, struct wal__session_dir_file *file, struct wal_slice id)
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
    group = session_dir_add_group(dir, name);
    if (group == NULL) {
        return NULL;
    }
    group->id = group->name;
    group->has_id = true;
    file->group = dir->group_count - 1;
    set_group(&grouping->sessions, id, file->group);
    return group;
}

void wal__session_dir_set_origin(struct wal__import *import, struct wal__session_dir_group *group,
                                 struct wal__json_span metadata)
{
    const char *json = (const char *)metadata.data;
    const char *id =
        metadata.size > 0 ? session_dir_member(import, json, metadata.size, "agentwal") : NULL;
    struct wal_session *session = NULL;
    enum wal_status status;
    const char *as;

    if (id == NULL || import->store == NULL) {
        return;
    }
    status = wal_session_open(import->store, wal__slice_from_text(id), &session, NULL);
    wal_session_close(session);
    import->arena.has_failed |= status == WAL_ENOMEM;
    as = session_dir_member(import, json, metadata.size, "agentwalAs");
    if (as != NULL && strcmp(as, group->id) == 0 && (status == WAL_OK || status == WAL_ETRASHED)) {
        group->origin = id;
        group->origin_title = session_dir_member(import, json, metadata.size, "agentwalTitle");
    }
    if (status == WAL_OK && group->parent == NULL) {
        group->parent = id;
    }
}

static void set_group_info(struct wal__import *import, struct wal__session_dir_group *group,
                           const char *json, size_t size)
{
    struct wal__json_member created = {.parent = "time", .key = "created"};
    struct wal__json_member updated = {.parent = "time", .key = "updated"};
    struct wal__json_member metadata = {.key = "metadata"};
    int64_t ms = 0;

    group->cwd = session_dir_member(import, json, size, "directory");
    group->title = session_dir_member(import, json, size, "title");
    group->project = session_dir_member(import, json, size, "projectID");
    group->parent = session_dir_member(import, json, size, "parentID");
    group->is_subagent = group->parent != NULL;
    if (wal__json_members(json, size, &metadata, 1, NULL) == WAL__JSON_OK) {
        wal__session_dir_set_origin(import, group, metadata.value.span);
    }
    if (wal__json_members(json, size, &created, 1, NULL) == WAL__JSON_OK &&
        created.value.kind == WAL__JSON_NUMBER &&
        wal__json_integer(created.value.span, &ms) == WAL__JSON_OK) {
        group->created = wal__import_time_text(&import->arena.arena, ms);
    }
    if (wal__json_members(json, size, &updated, 1, NULL) == WAL__JSON_OK) {
        (void)wal__model_time_read(updated.value.span, &group->updated_ms);
    }
}

static void group_info(struct grouping *grouping, struct wal__session_dir_file *file,
                       const struct wal__storage_path *path)
{
    struct wal__import *import = grouping->dir->import;
    struct wal__session_dir_group *group;
    char id[WAL__STRING_MAX + 1] = "";
    size_t size = 0;
    char *json = session_dir_read_file(import, grouping->dir->root, file->path, &size);
    struct wal_slice stem = path->parts[path->count - 1];

    if (json != NULL) {
        (void)wal__string_member(json, size, NULL, "id", id);
    }
    group = set_session(grouping, file, id[0] != '\0' ? wal__slice_from_text(id) : stem);
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

static void group_message(struct grouping *grouping, struct wal__session_dir_file *file,
                          const struct wal__storage_path *path, size_t first)
{
    struct wal__import *import = grouping->dir->import;
    struct wal__session_dir_group *group = set_session(grouping, file, path->parts[first]);
    char id[WAL__STRING_MAX + 1];
    size_t size = 0;
    char *json;

    if (group == NULL) {
        return;
    }
    if (!group->has_file) {
        file->missing = "the session's own file is missing";
        group->has_file = true;
    }
    json = session_dir_read_file(import, grouping->dir->root, file->path, &size);
    set_group(&grouping->messages, path->parts[path->count - 1], file->group);
    if (json != NULL && wal__string_member(json, size, NULL, "id", id)) {
        set_group(&grouping->messages, wal__slice_from_text(id), file->group);
    }
    wal__heap_free(import->heap, json);
}

/* Finds the group from the ids that the part contains. */
static bool find_by_content(struct grouping *grouping, struct wal__session_dir_file *file)
{
    struct wal__import *import = grouping->dir->import;
    char message[WAL__STRING_MAX + 1] = "";
    char session[WAL__STRING_MAX + 1] = "";
    size_t size = 0;
    char *json = session_dir_read_file(import, grouping->dir->root, file->path, &size);

    if (json != NULL) {
        (void)wal__string_member(json, size, NULL, "messageID", message);
        (void)wal__string_member(json, size, NULL, "sessionID", session);
    }
    wal__heap_free(import->heap, json);
    if (find_group(&grouping->messages, wal__slice_from_text(message), &file->group)) {
        return true;
    }
    file->missing = "its message is missing";
    return session[0] != '\0' && set_session(grouping, file, wal__slice_from_text(session)) != NULL;
}

static bool group_part(struct grouping *grouping, struct wal__session_dir_file *file,
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

static bool group_other(struct grouping *grouping, struct wal__session_dir_file *file,
                        const struct wal__storage_path *path)
{
    for (size_t i = path->count; i-- > 1;) {
        if (find_group(&grouping->sessions, path->parts[i], &file->group)) {
            return true;
        }
    }
    return false;
}

void wal__session_dir_group_storage(struct wal__session_dir *dir)
{
    struct wal__arena *arena = &dir->import->arena.arena;
    struct grouping grouping = {
        .dir = dir, .sessions = {.arena = arena}, .messages = {.arena = arena}};
    size_t rest = NO_GROUP; /* the last group, for files that belong to no session */
    struct wal__storage_path path;
    size_t first;

    for (size_t i = 0; i < dir->file_count; i++) {
        wal__storage_path_split(dir->files[i].path, &path);
        if (wal__storage_path_is_info(&path)) {
            group_info(&grouping, &dir->files[i], &path);
        }
    }
    for (size_t i = 0; i < dir->file_count; i++) {
        wal__storage_path_split(dir->files[i].path, &path);
        if (wal__storage_path_is_kind(&path, "message", &first) && path.count > first + 1) {
            group_message(&grouping, &dir->files[i], &path, first);
        }
    }
    for (size_t i = 0; i < dir->file_count; i++) {
        struct wal__session_dir_file *file = &dir->files[i];
        wal__storage_path_split(file->path, &path);
        if (wal__storage_path_is_info(&path) ||
            (wal__storage_path_is_kind(&path, "message", &first) && path.count > first + 1)) {
            continue;
        }
        if (wal__storage_path_is_kind(&path, "part", &first)
                ? !group_part(&grouping, file, &path, first)
                : !group_other(&grouping, file, &path)) {
            if (rest == NO_GROUP && session_dir_add_group(dir, "") != NULL) {
                rest = dir->group_count - 1;
            }
            file->group = rest;
        }
    }
}

bool wal__session_dir_read_exported(struct wal__session_dir *dir, const char *path)
{
    struct wal__json_member members[] = {{.key = "info"}, {.key = "messages"}};
    const struct wal__json_span *info = &members[0].value.span;
    struct wal__session_dir_group *group = NULL;
    struct wal__import *import = dir->import;
    size_t size = 0;
    char *json = session_dir_read_file(import, dir->root, path, &size);
    const char *id = NULL;

    if (json != NULL && wal__json_members(json, size, members, 2, NULL) == WAL__JSON_OK &&
        members[0].value.kind == WAL__JSON_OBJECT && members[1].value.kind == WAL__JSON_ARRAY) {
        id = session_dir_member(import, (const char *)info->data, info->size, "id");
    }
    if (id != NULL && session_dir_add_file(dir, path) != NULL) {
        group = session_dir_add_group(dir, path);
    }
    if (group != NULL) {
        group->id = id;
        group->has_id = true;
        set_group_info(import, group, (const char *)info->data, info->size);
    }
    wal__heap_free(import->heap, json);
    return id != NULL;
}
