/*
 * session_dir.c - detects session directories, lists their files and groups
 * them by session.
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import_tree/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/import/line_reader.h"
#include "convert/source/file_read.h"
#include "convert/source/json_string.h"
#include "engine/base/error.h"
#include "format/json/json_scan.h"

#define PROBE_FILES_MAX 64 /* files and folders examined per folder */

char *wal__session_dir_read_file(struct wal__import *import, const char *root,
                                 const char *path, size_t *size)
{
    char *name = wal__import_path(import, root, path);
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
    if (bytes != NULL &&
        wal__file_read_full(fd, bytes, *size) != (ssize_t)*size) {
        wal__heap_free(import->heap, bytes);
        bytes = NULL;
    }
    close(fd);
    return bytes;
}

const char *wal__session_dir_member(struct wal__import *import,
                                    const char *json, size_t size,
                                    const char *key)
{
    struct wal__json_member member = {.key = key};

    return wal__json_members(json, size, &member, 1, NULL) == WAL__JSON_OK
               ? wal__string_copy(&import->arena.arena,
                                  wal__line_string(&member), WAL__STRING_MAX)
               : NULL;
}

/* Returns true if the file is an object with these members; `other` may be
 * NULL. */
static bool has_members(struct wal__import *import, const char *root,
                        const char *path, const char *key,
                        const char *second_key)
{
    struct wal__json_member members[2] = {{.key = key}, {.key = second_key}};
    size_t size = 0;
    char *json = wal__session_dir_read_file(import, root, path, &size);
    bool is_found =
        json != NULL &&
        wal__json_members(json, size, members, second_key != NULL ? 2 : 1,
                          NULL) == WAL__JSON_OK &&
        members[0].value.kind != WAL__JSON_NONE &&
        (second_key == NULL || members[1].value.kind != WAL__JSON_NONE);

    wal__heap_free(import->heap, json);
    return is_found;
}

static bool is_message_with_uuid(const struct wal__piece *piece)
{
    struct wal__json_member uuid = {.key = "uuid"};
    struct wal__line_info line;

    return wal__line_read_generic(piece->data, piece->size, &line, NULL) ==
               WAL__JSON_OK &&
           line.is_message &&
           wal__line_members(piece->data, piece->size, &uuid, 1, NULL) ==
               WAL__JSON_OK &&
           uuid.value.kind == WAL__JSON_STRING;
}

/* Returns true if one of the first lines is a message that has a uuid. */
static bool begins_with_message(struct wal__import *import, const char *root,
                                const char *path)
{
    char *name = wal__import_path(import, root, path);
    struct wal__line_reader reader;
    bool is_match = false;
    struct wal__piece piece;
    int got = 1;
    struct stat stat;
    int fd = name != NULL ? wal__file_open_regular(AT_FDCWD, name, &stat) : -1;

    if (fd < 0) {
        return false;
    }
    wal__line_reader_init(&reader, import->heap, fd, (uint64_t)stat.st_size,
                          false, 0);
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
static const struct wal__dialect *
recognise_directory(struct wal__import *import, const char *root)
{
    bool has_messages = begins_with_message(import, root, "messages.jsonl");

    if (has_members(import, root, "metadata.json", "project_hash", "id")) {
        return &wal__dialect_spec11;
    }
    if (has_members(import, root, "metadata.json", "session_id",
                    "created_at")) {
        return &wal__dialect_sdk;
    }
    /* The metadata file has other members, is missing or is damaged. */
    return has_messages ? &wal__dialect_sdk : NULL;
}

static bool has_type(struct wal__import *import, const char *root,
                     const char *path, mode_t type)
{
    char *name = wal__import_path(import, root, path);
    struct stat stat;

    return name != NULL && lstat(name, &stat) == 0 &&
           (stat.st_mode & S_IFMT) == type;
}

/* Returns true if the directory is the project memory of spec11, next to the
 * project's sessions. */
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

typedef bool probe_file(struct wal__import *import, const char *root,
                        const char *path);

bool wal__session_dir_is_json(const char *name)
{
    size_t size = strlen(name);

    return size > 5 && strcmp(name + size - 5, ".json") == 0;
}

/* Returns whether the entry of the folder `path` counts, and if so probes it.
 * */
typedef bool probe_entry(struct wal__import *import, const char *root,
                         const char *path, const struct dirent *entry,
                         probe_file *probe, bool *is_found);

/* Probes the first entries of a folder that are of the kind of `each`. */
static bool probe_directory(struct wal__import *import, const char *root,
                            const char *path, probe_entry *each,
                            probe_file *probe)
{
    char *name = wal__import_path(import, root, path);
    DIR *directory = name != NULL ? opendir(name) : NULL;
    struct dirent *entry;
    unsigned count = 0;
    bool is_found = false;

    while (directory != NULL && !is_found && count < PROBE_FILES_MAX &&
           (entry = readdir(directory)) != NULL) {
        count += each(import, root, path, entry, probe, &is_found);
    }
    if (directory != NULL) {
        closedir(directory);
    }
    return is_found;
}

static bool probe_json(struct wal__import *import, const char *root,
                       const char *path, const struct dirent *entry,
                       probe_file *probe, bool *is_found)
{
    const char *below;

    if (!wal__session_dir_is_json(entry->d_name)) {
        return false;
    }
    below = wal__import_path(import, path, entry->d_name);
    *is_found = below != NULL && probe(import, root, below);
    return true;
}

static bool probe_folder(struct wal__import *import, const char *root,
                         const char *path, const struct dirent *entry,
                         probe_file *probe, bool *is_found)
{
    const char *below;

    if (entry->d_name[0] == '.' || entry->d_type == DT_REG) {
        return false;
    }
    below = wal__import_path(import, path, entry->d_name);
    *is_found = below != NULL &&
                probe_directory(import, root, below, probe_json, probe);
    return true;
}

/* The same for the JSON files of the folder and of the folders in it. */
static bool probe_subfolders(struct wal__import *import, const char *root,
                             const char *path, probe_file *probe)
{
    return probe_directory(import, root, path, probe_json, probe) ||
           probe_directory(import, root, path, probe_folder, probe);
}

static bool is_session(struct wal__import *import, const char *root,
                       const char *path)
{
    return has_members(import, root, path, "id", "time") &&
           (has_members(import, root, path, "projectID", NULL) ||
            has_members(import, root, path, "version", "title"));
}

static bool is_message(struct wal__import *import, const char *root,
                       const char *path)
{
    return has_members(import, root, path, "sessionID", "role");
}

static bool is_part(struct wal__import *import, const char *root,
                    const char *path)
{
    return has_members(import, root, path, "messageID", "type");
}

static bool is_storage(struct wal__import *import, const char *root)
{
    return probe_subfolders(import, root, "session", is_session) ||
           probe_subfolders(import, root, "message", is_message) ||
           probe_subfolders(import, root, "part", is_part);
}

const struct wal__dialect *wal__session_dir_detect(struct wal__import *import,
                                                   const char *root)
{
    const struct wal__dialect *forced = import->forced;
    const struct wal__dialect *dialect = NULL;

    if (forced != NULL &&
        (forced->read_ops == NULL || forced->read_ops->documents == NULL)) {
        return NULL;
    }
    if (is_storage(import, root)) {
        dialect = &wal__dialect_opencode;
    } else if (is_memory(import, root)) {
        dialect = &wal__dialect_spec11;
    } else {
        dialect = recognise_directory(import, root);
        if (dialect != NULL && forced != NULL &&
            forced->read_ops->stream != NULL) {
            dialect = forced;
        }
    }
    return forced == NULL || dialect == forced ? dialect : NULL;
}

static char *copy_text(struct wal__session_dir *dir, const char *text)
{
    struct wal__json_span span = {(const uint8_t *)text, strlen(text) + 1};

    return (char *)(uintptr_t)wal__arena_copy(&dir->import->arena.arena, span)
        .data;
}

struct wal__session_dir_file *
wal__session_dir_add_file(struct wal__session_dir *dir, const char *path)
{
    char *copy = copy_text(dir, path);
    struct wal__session_dir_file *files =
        wal__heap_grow_array(dir->import->heap, dir->files, dir->file_count,
                             &dir->file_capacity, sizeof(files[0]));

    if (files == NULL || copy == NULL) {
        dir->files = files != NULL ? files : dir->files;
        dir->import->arena.has_failed = true;
        return NULL;
    }
    dir->files = files;
    files[dir->file_count] = (struct wal__session_dir_file){.path = copy};
    return &files[dir->file_count++];
}

struct wal__session_dir_group *
wal__session_dir_add_group(struct wal__session_dir *dir, const char *name)
{
    char *copy = copy_text(dir, name);
    struct wal__session_dir_group *groups =
        wal__heap_grow_array(dir->import->heap, dir->groups, dir->group_count,
                             &dir->group_capacity, sizeof(groups[0]));

    if (groups == NULL || copy == NULL) {
        dir->groups = groups != NULL ? groups : dir->groups;
        dir->import->arena.has_failed = true;
        return NULL;
    }
    dir->groups = groups;
    groups[dir->group_count] = (struct wal__session_dir_group){.name = copy};
    return &groups[dir->group_count++];
}

void wal__session_dir_group_single(struct wal__session_dir *dir)
{
    struct wal__session_dir_group *group = wal__session_dir_add_group(dir, "");
    struct wal__import *import = dir->import;
    const char *slash = strrchr(dir->root, '/');
    size_t size = 0;
    char *json =
        wal__session_dir_read_file(import, dir->root, "metadata.json", &size);

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
                *members[i].field =
                    wal__session_dir_member(import, json, size, members[i].key);
            }
        }
    }
    if (group != NULL) {
        group->has_id = group->id != NULL;
    }
    if (group != NULL && group->id == NULL) {
        group->id = copy_text(dir, slash != NULL ? slash + 1 : dir->root);
    }
    wal__heap_free(import->heap, json);
}

void wal__session_dir_deinit(struct wal__session_dir *dir)
{
    wal__heap_free(dir->import->heap, dir->files);
    wal__heap_free(dir->import->heap, dir->groups);
}

/* ------------------------------------------------------------- listing --- */

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static enum wal_status list_entry(struct wal__session_dir *dir, FTS *walk,
                                  FTSENT *entry, struct wal_error *error)
{
    const char *path = entry->fts_path + strlen(dir->root);

    if (entry->fts_info == FTS_D && strcmp(entry->fts_name, ".agentwal") == 0) {
        /* state of views, not the client's files */
        fts_set(walk, entry, FTS_SKIP);
    } else if (entry->fts_info == FTS_F) {
        path += strspn(path, "/");
        if (dir->patterns != NULL &&
            !wal__client_matches(dir->patterns, path)) {
            dir->import->result.left_out[wal__left_kind_of(path)]++;
            return WAL_OK;
        }
        return wal__session_dir_add_file(dir, path) != NULL
                   ? WAL_OK
                   : wal__no_memory(error);
    } else if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE) {
        dir->import->result.left_out[WAL__FILE_LINK]++;
    } else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
               entry->fts_info == FTS_NS) {
        errno = entry->fts_errno;
        return wal__import_fail(dir->import, entry->fts_path,
                                wal__import_errno(error), error);
    }
    return WAL_OK;
}

enum wal_status wal__session_dir_list_files(struct wal__session_dir *dir,
                                            struct wal_error *error)
{
    char *paths[] = {(char *)(uintptr_t)dir->root, NULL};
    FTS *walk =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    enum wal_status status = WAL_OK;
    FTSENT *entry = NULL;

    while (walk != NULL && status == WAL_OK &&
           (errno = 0, entry = fts_read(walk)) != NULL) {
        status = list_entry(dir, walk, entry, error);
    }
    if (status == WAL_OK && (walk == NULL || errno != 0)) {
        status = wal__import_fail(dir->import, dir->root,
                                  wal__import_errno(error), error);
    }
    if (walk != NULL) {
        fts_close(walk);
    }
    return status;
}
