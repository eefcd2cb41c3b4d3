/*
 * session_dir_import.c - imports session directories (session_dir.h):
 * finds or creates the session of a directory's files, writes what it lacks,
 * and compares the ids in files with the files' paths.
 *
 * Invariant: the same files find the session that they were imported into, as long as its streams
 * are prefixes of the files.
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "convert/clients/client.h"
#include "convert/import/checkpoint_import.h"
#include "convert/import/file_import.h"
#include "convert/import/import.h"
#include "convert/import/session_database.h"
#include "convert/import/session_turns.h"
#include "convert/model/model_member.h"
#include "convert/render/session_items.h"
#include "convert/source/checkpoint_manifest.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "engine/base/error.h"
#include "engine/base/map.h"
#include "engine/base/system.h"
#include "format/bytes/assert.h"
#include "format/json/json_out.h"
#include "format/json/json_scan.h"

static struct wal_slice slice_of(struct wal__json_span span)
{
    return (struct wal_slice){span.data, span.size};
}

/* --- ids against paths --------------------------------------------------- */

/* Adds an issue of the file `path` below the root; copies `reason`. Without memory
 * import->arena.has_failed is set. */
static void add_issue(const struct wal__session_dir *dir, struct wal__import_issues *issues,
                      const char *path, uint64_t offset, const char *reason)
{
    struct wal__heap_arena *arena = &dir->import->arena;

    wal__import_add_issue(arena, issues, wal__import_path(&arena->arena, dir->root, path), 0,
                          offset, wal__arena_copy_text(&arena->arena, reason));
}

struct check {
    const struct wal__session_dir *dir;
    const char *path;
    struct wal_slice json;
    struct wal__import_issues *issues;
};

/* If the member is a string, checks that it equals the name and returns true. */
static bool check_member(const struct check *check, const char *key, struct wal_slice name,
                         const char *reason)
{
    struct wal__json_member member = {.key = key};
    char text[WAL__STRING_MAX + 1];
    bool is_equal;

    if (wal__json_members(check->json.data, (size_t)check->json.size, &member, 1, NULL) !=
            WAL__JSON_OK ||
        member.value.kind != WAL__JSON_STRING) {
        return false;
    }
    is_equal = wal__string_decode(member.value.span, WAL__STRING_MAX, text) &&
               wal__slice_equal(wal__slice_from_text(text), name);
    if (!is_equal) {
        const uint8_t *start = check->json.data;
        add_issue(check->dir, check->issues, check->path,
                  (uint64_t)(member.value.span.data - start), reason);
    }
    return true;
}

static void check_id(const struct check *check, struct wal_slice name)
{
    if (!check_member(check, "id", name, "the id is not the file's name")) {
        add_issue(check->dir, check->issues, check->path, WAL_IMPORT_NO_OFFSET,
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
    } else if (wal__storage_path_is_kind(&path, "message", &first) && last > first) {
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
static struct wal_slice root_name(const char *root, char real[PATH_MAX])
{
    const char *path = realpath(root, real) != NULL ? real : root;
    const char *slash = strrchr(path, '/');

    return wal__slice_from_text(slash != NULL ? slash + 1 : path);
}

/* Adds an issue for each id in a JSON file that differs from the id in its path. */
static void check_file(const struct wal__session_dir *dir, const struct wal__dialect *dialect,
                       const struct wal__session_dir_file *file, struct wal_slice json,
                       struct wal__import_issues *issues)
{
    const struct check check = {dir, file->path, json, issues};
    static const char reason[] = "the id is not the directory's name";
    struct wal_slice name;
    char real[PATH_MAX];

    if (dialect->read_ops->stream == NULL) {
        check_storage(&check);
    } else if (strcmp(file->path, "metadata.json") == 0) {
        name = root_name(dir->root, real);
        if (!check_member(&check, "session_id", name, reason)) {
            check_member(&check, "id", name, reason);
        }
    }
}

/* Adds an issue for each missing file of a session's directory. */
static void check_files(const struct wal__session_dir *dir, const struct wal__dialect *dialect,
                        struct wal__import_issues *issues)
{
    bool has_lines = false;

    for (size_t i = 0; i < dir->file_count; i++) {
        uint32_t stream = 0;
        const char *path = dir->files[i].path;
        if (strcmp(path, "metadata.json") == 0) {
            return;
        }
        has_lines |= dialect->read_ops->stream != NULL && dialect->read_ops->stream(path, &stream);
    }
    if (has_lines) {
        add_issue(dir, issues, "metadata.json", WAL_IMPORT_NO_OFFSET, "is missing");
    }
}

/* --- the session --------------------------------------------------------- */

/* The caller sets the first four members and zeroes the others. */
struct session_dir_target {
    const struct wal__session_dir *dir;
    const struct wal__session_dir_group *group; /* of the directory */
    const struct wal__dialect *dialect;
    const char *path; /* of the directory, in the source */
    char source[WAL__SOURCE_SIZE_MAX + 1];
    struct wal_session *session;
    struct wal__session_turns *turns; /* of a session that was exported to the client; or NULL */
    bool is_origin;                   /* it is the one that was exported as the group */
};

#define HASHED_SIZE 32

/* Returns true if the session has this id, possibly with a number appended. */
static bool has_id(const struct wal_session_info *info, const char *id)
{
    size_t size = strlen(id);

    return info->id.size >= size && memcmp(info->id.data, id, size) == 0 &&
           (info->id.size == size || ((const char *)info->id.data)[size] == '~');
}

/* The fallback id when the suggested one is taken or not valid. */
static void hashed_id(const char *source, char id[HASHED_SIZE])
{
    snprintf(id, HASHED_SIZE, "files-%016" PRIx64, wal__source_hash(source));
}

/* Returns true if the session has the id that the group suggests. */
static bool has_group_id(const struct session_dir_target *target, struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char hashed[HASHED_SIZE];

    hashed_id(target->source, hashed);
    return target->group->id == NULL ||
           (wal_session_get_info(session, &info, NULL) == WAL_OK &&
            (has_id(&info, target->group->id) || has_id(&info, hashed)));
}

/* Compares the file's stream with it, if the file is a stream. */
static enum wal_status match_stream(const struct session_dir_target *target,
                                    const struct wal__session_dir_file *file,
                                    struct wal_session *session, bool *matches,
                                    struct wal_error *error)
{
    const struct wal__session_dir *dir = target->dir;
    struct wal__source_match match = {.is_prefix = true};
    enum wal_status status;
    uint32_t stream = 0;
    char *name;
    int fd;

    if (target->dialect->read_ops->stream == NULL ||
        !target->dialect->read_ops->stream(file->path, &stream)) {
        return WAL_OK;
    }
    name = wal__import_path(&dir->import->arena.arena, dir->root, file->path);
    if (name == NULL) {
        return wal__no_memory(error);
    }
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return WAL_OK;
    }
    status = wal__source_compare(dir->import->heap, dir->import->store, session, stream, NULL, fd,
                                 &match, error);
    close(fd);
    *matches = match.is_prefix;
    wal__source_match_deinit(&match);
    return status;
}

/* Compares each stream of the session with its file; *matches: all are prefixes. */
static enum wal_status match_streams(const struct session_dir_target *target,
                                     struct wal_session *session, bool *matches,
                                     struct wal_error *error)
{
    const struct wal__session_dir *dir = target->dir;
    size_t group = (size_t)(target->group - dir->groups);
    enum wal_status status = WAL_OK;

    *matches = true;
    for (size_t i = 0; status == WAL_OK && *matches && i < dir->file_count; i++) {
        if (dir->files[i].group == group) {
            status = match_stream(target, &dir->files[i], session, matches, error);
        }
    }
    return status;
}

static enum wal_status set_source(struct session_dir_target *target, uint64_t ordinal,
                                  struct wal_error *error)
{
    const char *path = target->path[0] != '\0' ? target->path : ".";
    size_t size = strlen(path) + strlen(target->group->name) + 3;
    char *text = wal__arena_alloc(&target->dir->import->arena.arena, size);

    if (text == NULL) {
        return wal__no_memory(error);
    }
    snprintf(text, size, "%s//%s", path, target->group->name);
    return wal__source_text(target->source, target->dialect->name, ordinal, text)
               ? WAL_OK
               : wal__fail(error, WAL_ETOOBIG, "%s", wal_status_text(WAL_ETOOBIG));
}

/* Finds the session; if there is none, sets the source of a new one. */
static enum wal_status find_session(struct session_dir_target *target, struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = WAL_OK;

    for (uint64_t ordinal = 0; status == WAL_OK; ordinal++) {
        bool matches = false;
        status = set_source(target, ordinal, error);
        if (status != WAL_OK) {
            return status;
        }
        status =
            wal__session_open_source(target->dir->import->store, target->source, &session, error);
        if (status != WAL_OK) {
            break;
        }
        if (has_group_id(target, session)) {
            status = match_streams(target, session, &matches, error);
        }
        if (status == WAL_OK && matches) {
            target->session = session;
            return WAL_OK;
        }
        wal_session_close(session);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* Returns true if the session was imported from a directory of the same dialect, as the same
 * group. */
static bool has_group_name(const struct session_dir_target *target, struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal__source source;
    const char *group = NULL;

    if (wal_session_get_info(session, &info, NULL) == WAL_OK &&
        wal__source_parse(info.source, &source) &&
        strcmp(source.dialect, target->dialect->name) == 0) {
        for (const char *at = source.path; (at = strstr(at, "//")) != NULL;) {
            at += 2;
            group = at;
        }
    }
    return group != NULL && strcmp(group, target->group->name) == 0;
}

/* Opens the session of this id if the directory continues it. */
static enum wal_status match_id(struct session_dir_target *target, const char *id,
                                struct wal_error *error)
{
    struct wal_session *session = NULL;
    bool matches = false;
    enum wal_status status =
        wal_session_open(target->dir->import->store, wal__slice_from_text(id), &session, error);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND || status == WAL_EINVAL ? WAL_OK : status;
    }
    if (has_group_name(target, session)) {
        status = match_streams(target, session, &matches, error);
    }
    if (status == WAL_OK && matches) {
        target->session = session;
        return WAL_OK;
    }
    wal_session_close(session);
    return status;
}

/* Finds the session among those of the id that the files state, wherever the directory was when
 * they were imported. */
static enum wal_status find_by_id(struct session_dir_target *target, struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    char id[WAL__SOURCE_SIZE_MAX];

    for (unsigned n = 1; n <= WAL__IMPORT_ID_TRIES && status == WAL_OK && target->session == NULL;
         n++) {
        snprintf(id, sizeof(id), n == 1 ? "%s" : "%s~%u", target->group->id, n);
        status = match_id(target, id, error);
    }
    return status;
}

/* A wal__import_create_fn. */
static enum wal_status try_create(void *ctx, struct wal_session_options *options,
                                  struct wal_error *error)
{
    struct session_dir_target *target = ctx;

    return wal_session_create(target->dir->import->store, options, &target->session, error);
}

/* The time of the session's first file; 0: there is none. */
static int64_t modified_ms(const struct wal__session_dir *dir,
                           const struct wal__session_dir_group *group)
{
    struct wal__arena *arena = &dir->import->arena.arena;
    struct stat stat;
    size_t i = 0;
    char *path;

    while (i < dir->file_count && &dir->groups[dir->files[i].group] != group) {
        i++;
    }
    path = i < dir->file_count ? wal__import_path(arena, dir->root, dir->files[i].path) : NULL;
    return path != NULL && lstat(path, &stat) == 0 ? wal__system_modified_ns(&stat) / 1000000 : 0;
}

static enum wal_status create_session(struct session_dir_target *target, struct wal_error *error)
{
    const struct wal__session_dir_group *group = target->group;
    struct wal_session_options options = {
        .struct_size = sizeof(options),
        .source = wal__slice_from_text(target->source),
        .cwd = wal__slice_from_text(group->cwd),
        .title = wal__slice_from_text(group->title),
        .project = wal__slice_from_text(group->project),
        .parent_id = wal__slice_from_text(group->parent),
    };
    enum wal_status status;
    char hashed[HASHED_SIZE];

    options.created_ms = group->created == NULL ? modified_ms(target->dir, group) : 0;
    wal__import_describe(
        target->dir->import,
        &(struct wal__import_about){.created = group->created, .is_subagent = group->is_subagent},
        &options);
    status = wal__import_check_memory(target->dir->import, error);
    if (status != WAL_OK) {
        return status;
    }
    status = group->id == NULL
                 ? WAL_EINVAL
                 : wal__import_try_ids(try_create, target, &options, group->id, error);
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        hashed_id(target->source, hashed);
        status = wal__import_try_ids(try_create, target, &options, hashed, error);
    }
    return status;
}

/* Opens the session that was exported to the client as the group, if it is the one of that id. */
static enum wal_status open_origin(struct session_dir_target *target, struct wal_error *error)
{
    struct wal__import *import = target->dir->import;
    const struct wal__session_dir_group *group = target->group;
    enum wal_status status = wal_session_open(import->store, wal__slice_from_text(group->origin),
                                              &target->session, error);

    if (status == WAL_OK) {
        status = wal__session_turns_open(import, target->session, group->id, false, &target->turns,
                                         error);
    }
    target->is_origin = target->turns != NULL;
    if (status == WAL_OK && !target->is_origin) {
        wal_session_close(target->session);
        target->session = NULL;
    }
    return status;
}

/* Finds what was exported of the session's entries to the client from which it was imported. */
static enum wal_status open_turns(struct session_dir_target *target, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    uint64_t entries = 0;
    enum wal_status status = wal_session_get_info(target->session, &info, error);

    if (status == WAL_OK && wal__slice_equal(info.id, wal__slice_from_text(target->group->id))) {
        status = wal__session_items_count(target->session, 0, 0, &entries, error);
    }
    return status == WAL_OK && entries > 0
               ? wal__session_turns_open(target->dir->import, target->session, target->group->id,
                                         true, &target->turns, error)
               : status;
}

/* Opens the session, or creates it. The caller closes it. */
static enum wal_status open_target(struct session_dir_target *target, struct wal_error *error)
{
    const struct wal__session_dir *dir = target->dir;
    const bool has_rows = dir->database != NULL || dir->is_exported;
    enum wal_status status = find_session(target, error);

    if (status == WAL_OK && target->session == NULL && dir->import->matches_ids &&
        target->group->has_id) {
        status = find_by_id(target, error);
    }
    if (status == WAL_OK && has_rows && target->session != NULL) {
        status = open_turns(target, error);
    } else if (status == WAL_OK && has_rows && target->group->origin != NULL) {
        status = open_origin(target, error);
    }
    return status == WAL_OK && target->session == NULL ? create_session(target, error) : status;
}

/* --- the import ---------------------------------------------------------- */

#define BATCH_DOCS 64
#define BATCH_SIZE ((size_t)4 << 20)
#define KEY_SIZE   1024
#define ID_SIZE    200

/* One session of a directory. */
struct dir_import {
    struct wal__import *import;
    const struct wal__session_dir *dir;
    const struct wal__session_dir_group *group;
    const struct wal__dialect *dialect;
    const char *name; /* of the directory, in reports */
    struct session_dir_target target;
    struct wal__session_dir_files files;
    struct wal_doc docs[BATCH_DOCS];
    size_t doc_count;
    size_t doc_bytes;
    uint64_t files_read;
    uint64_t changed;
    uint64_t checkpoints; /* new ones, and ones that gained files */
    bool has_failed;      /* a failure was reported */
    bool has_title;       /* the client gave the session another title */
    struct wal__import_issues issues;
};

/* Reports a failure; the import of other files goes on. */
static enum wal_status fail(struct dir_import *dir_import, const char *name, enum wal_status status,
                            struct wal_error *error)
{
    dir_import->has_failed = true;
    return wal__import_fail(dir_import->import, name, status, error);
}

/* --- files --------------------------------------------------------------- */

static enum wal_status commit_docs(struct dir_import *dir_import, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    const struct wal_session_change change = {
        .struct_size = sizeof(change),
        .fields = WAL_CHANGE_TITLE,
        .title = wal__slice_from_text(dir_import->group->title),
    };
    const struct wal_batch batch = {
        .struct_size = sizeof(batch),
        .document_count = (uint32_t)dir_import->doc_count,
        .documents = dir_import->docs,
        .change = dir_import->has_title ? &change : NULL,
    };
    enum wal_status status = WAL_OK;

    if (dir_import->doc_count > 0) {
        status = wal_batch_commit(dir_import->target.session, &batch, &options, &result, error);
    }
    for (size_t i = 0; i < dir_import->doc_count; i++) {
        wal__heap_free(dir_import->import->heap, (void *)(uintptr_t)dir_import->docs[i].value.data);
    }
    dir_import->doc_count = 0;
    dir_import->doc_bytes = 0;
    dir_import->has_title = false;
    return status;
}

/* Adds a document to the batch; the key is in the arena. */
static enum wal_status put_doc(struct dir_import *dir_import, const char *key,
                               struct wal_slice bytes, struct wal_error *error)
{
    size_t size = (size_t)bytes.size;
    enum wal_status status = WAL_OK;
    char *value;

    for (size_t i = 0; status == WAL_OK && i < dir_import->doc_count; i++) {
        if (wal__slice_equal(dir_import->docs[i].key, wal__slice_from_text(key))) {
            status = commit_docs(dir_import, error); /* two rows with one id */
        }
    }
    if (status != WAL_OK) {
        return status;
    }
    value = wal__heap_copy_text(dir_import->import->heap, bytes.data, size);
    if (value == NULL) {
        return wal__no_memory(error);
    }
    WAL__ASSERT(dir_import->doc_count < BATCH_DOCS);
    dir_import->docs[dir_import->doc_count++] =
        (struct wal_doc){.struct_size = sizeof(struct wal_doc),
                         .key = wal__slice_from_text(key),
                         .value = {value, size}};
    dir_import->doc_bytes += size;
    return dir_import->doc_count == BATCH_DOCS || dir_import->doc_bytes >= BATCH_SIZE
               ? commit_docs(dir_import, error)
               : WAL_OK;
}

/* Reads the session's document of the key; returns false if there is none. */
static bool has_doc(struct dir_import *dir_import, const char *key, struct wal_doc *stored)
{
    *stored = (struct wal_doc){.struct_size = sizeof(*stored)};
    return wal_doc_cursor_get(dir_import->files.docs, wal__slice_from_text(key), 0, stored, NULL) ==
           WAL_OK;
}

/* Returns true if the last version of the file in the session has these bytes. */
static bool has_version(struct dir_import *dir_import, const char *key, struct wal_slice bytes)
{
    const struct wal__session_dir_version *version =
        wal__session_dir_files_last(&dir_import->files, wal__slice_from_text(key));
    struct wal_slice existing = {NULL, 0};
    char *memory = NULL;
    bool is_same = false;
    enum wal_status status;

    if (version == NULL) {
        return false;
    }
    status = wal__session_dir_files_get(&dir_import->files, version, &existing, &memory, NULL);
    dir_import->import->arena.has_failed |= status == WAL_ENOMEM;
    is_same = status == WAL_OK && wal__slice_equal(existing, bytes);
    wal__heap_free(dir_import->import->heap, memory);
    return is_same;
}

/* Makes an unused entry id: the path if it is short enough, else its hash. */
static void make_id(struct dir_import *dir_import, const char *key, char *id)
{
    struct wal__session_dir_files *files = &dir_import->files;
    char base[ID_SIZE + 1];

    if (strlen(key) <= ID_SIZE) {
        snprintf(base, sizeof(base), "%s", key);
    } else {
        snprintf(base, sizeof(base), "file-%016" PRIx64, wal__source_hash(key));
    }
    sprintf(id, "%s", base);
    for (unsigned n = 2; !wal__session_dir_files_add_id(files, wal__slice_from_text(id)) &&
                         !files->arena.has_failed;
         n++) {
        sprintf(id, "%s~%u", base, n);
    }
}

static enum wal_status put_version(struct dir_import *dir_import, const char *key,
                                   struct wal_slice bytes, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_session *session = dir_import->target.session;
    char *meta = wal__string_object(&dir_import->import->arena.arena, "file",
                                    wal__slice_from_text(key), ",\"eol\":false");
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_LINE | WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = WAL__FILES_STREAM,
        .type = wal__slice_from_text("file"),
        .payload = bytes,
        .meta = wal__slice_from_text(meta),
    };
    char id[ID_SIZE + 16];
    struct wal_doc doc;
    enum wal_status status;

    make_id(dir_import, key, id);
    if (dir_import->files.arena.has_failed) {
        return wal__no_memory(error);
    }
    status = wal__import_check_memory(dir_import->import, error);
    entry.id = wal__slice_from_text(id);
    if (status == WAL_OK && has_doc(dir_import, key, &doc)) {
        doc = (struct wal_doc){.struct_size = sizeof(doc), .key = wal__slice_from_text(key)};
        status = wal_doc_delete(dir_import->import->store, session, &doc, NULL, error);
    }
    return status == WAL_OK ? wal_append(session, &entry, 1, &options, &result, error) : status;
}

/* Whether valid JSON is an object. */
static bool is_object(struct wal_slice json)
{
    return ((const char *)json.data)[strspn(json.data, " \t\r\n")] == '{';
}

/* Returns true if the file can be a document. Reports its issues. */
static bool check_document(struct dir_import *dir_import, const struct wal__session_dir_file *file,
                           struct wal_slice bytes, const char *key)
{
    const struct wal__session_dir *dir = dir_import->dir;
    const char *reason = NULL;
    size_t offset = 0;

    if (file->missing != NULL) {
        add_issue(dir, &dir_import->issues, file->path, WAL_IMPORT_NO_OFFSET, file->missing);
    }
    if (bytes.size > WAL__SESSION_DIR_DOC_SIZE) {
        reason = "too large for a document; stored unchanged";
    } else if (strlen(key) > KEY_SIZE) {
        reason = "the path is too long for a document; stored unchanged";
    } else if (wal__json_validate(bytes.data, (size_t)bytes.size, &offset) != WAL__JSON_OK) {
        reason = "not JSON; stored unchanged";
    } else if (dir->database != NULL && !is_object(bytes) && strncmp(key, "todo/", 5) != 0) {
        reason = "not a JSON object; stored unchanged";
    }
    if (reason == NULL) {
        check_file(dir, dir_import->dialect, file, bytes, &dir_import->issues);
    } else if (wal__is_json_name(file->path)) {
        add_issue(dir, &dir_import->issues, file->path,
                  offset > 0 || bytes.size == 0 ? offset : WAL_IMPORT_NO_OFFSET, reason);
    }
    return reason == NULL;
}

/* Whether two objects differ only in white space, and in ids that the paths of both state: a row
 * and the file from which the client made it. */
static bool is_same_object(struct dir_import *dir_import, struct wal_slice a, struct wal_slice b)
{
    static const struct wal__json_override ids[] = {
        {.key = "id"}, {.key = "sessionID"}, {.key = "messageID"}};
    const struct wal__heap *heap = dir_import->import->heap;
    const struct wal__json_span objects[] = {{a.data, (size_t)a.size}, {b.data, (size_t)b.size}};
    struct wal__json_memory texts[2] = {{.size = 0}};
    bool is_same = is_object(a) && is_object(b);

    for (size_t i = 0; is_same && i < 2; i++) {
        struct wal__json_out out = {.put = wal__json_memory_put, .ctx = &texts[i]};
        texts[i].capacity = objects[i].size + 2;
        texts[i].data = wal__heap_zalloc(heap, texts[i].capacity);
        dir_import->import->arena.has_failed |= texts[i].data == NULL;
        is_same = texts[i].data != NULL;
        if (is_same) {
            wal__json_out_overridden(&out, objects[i], ids, 3);
            is_same = !out.has_failed;
        }
    }
    is_same = is_same && texts[0].size == texts[1].size &&
              memcmp(texts[0].data, texts[1].data, texts[0].size) == 0;
    wal__heap_free(heap, texts[0].data);
    wal__heap_free(heap, texts[1].data);
    return is_same;
}

static bool is_info(const struct dir_import *dir_import, const char *file)
{
    struct wal__storage_path path;

    wal__storage_path_split(file, &path);
    return dir_import->dialect->read_ops->stream == NULL && wal__storage_path_is_info(&path);
}

/* Whether the stored document of the session itself has another title. */
static bool changes_title(const struct dir_import *dir_import, const struct wal_doc *existing)
{
    char title[WAL__STRING_MAX + 1];

    return dir_import->group->title != NULL &&
           !(wal__string_member(existing->value.data, (size_t)existing->value.size, NULL, "title",
                                title) &&
             strcmp(title, dir_import->group->title) == 0);
}

/* Deletes the documents of the session itself whose keys are not `key`: of the project to which it
 * belonged. */
static enum wal_status delete_other_info(struct dir_import *dir_import, const char *key,
                                         struct wal_error *error)
{
    const struct wal_doc_cursor_options options = {.struct_size = sizeof(options),
                                                   .prefix = wal__slice_from_text("session/")};
    struct wal__import *import = dir_import->import;
    struct wal_session *session = dir_import->target.session;
    struct wal_doc_cursor *cursor = NULL;
    struct wal_doc doc;
    char *other = NULL;
    enum wal_status status = wal_doc_cursor_open(import->store, session, &options, &cursor, error);

    while (status == WAL_OK && other == NULL) {
        doc = (struct wal_doc){.struct_size = sizeof(doc)};
        status = wal_doc_cursor_next(cursor, &doc, error);
        if (status == WAL_OK && !wal__slice_equal(doc.key, wal__slice_from_text(key))) {
            other = wal__import_text(&import->arena.arena, doc.key);
            status = other != NULL ? WAL_OK : wal__no_memory(error);
        }
        if (status == WAL_OK && other != NULL && is_info(dir_import, other)) {
            dir_import->has_title |= changes_title(dir_import, &doc);
            doc = (struct wal_doc){.struct_size = sizeof(doc), .key = wal__slice_from_text(other)};
            status = wal_doc_delete(import->store, session, &doc, NULL, error);
        } else {
            other = NULL;
        }
    }
    wal_doc_cursor_close(cursor);
    return status == WAL_END ? WAL_OK : status;
}

/* Takes a message, {info, parts}, of a file that the client exported. */
static void take_exported(struct wal__session_turns *turns, struct wal__json_span message)
{
    struct wal__json_member members[] = {
        {.parent = "info", .key = "id"}, {.key = "info"}, {.key = "parts"}};
    struct wal__json_scan parts;
    struct wal__json_token part;
    struct wal_slice name;
    char id[WAL__STRING_MAX + 1];

    if (wal__model_members(message, members, 3, NULL) != WAL__JSON_OK ||
        !wal__string_decode(wal__member_string(&members[0]), WAL__STRING_MAX, id)) {
        return;
    }
    name = wal__slice_from_text(id);
    (void)wal__session_turns_message(turns, name, slice_of(members[1].value.span));
    wal__model_array_begin(&parts, members[2].value.span);
    while (wal__model_array_next(&parts, &part)) {
        (void)wal__session_turns_part(turns, name, slice_of(part.span));
    }
}

/* Whether the document is no document of the session: of a message that is none, or of a session
 * that was exported to the client. */
static bool take_turn(struct dir_import *dir_import, const char *file, struct wal_slice bytes)
{
    struct wal__session_turns *turns = dir_import->target.turns;
    struct wal__json_span json = {bytes.data, (size_t)bytes.size};
    struct wal__json_member messages = {.key = "messages"};
    struct wal__json_token message;
    struct wal__json_scan scan;
    struct wal__storage_path path;
    size_t first;

    wal__storage_path_split(file, &path);
    if (dir_import->dir->is_exported &&
        wal__model_members(json, &messages, 1, NULL) == WAL__JSON_OK) {
        wal__model_array_begin(&scan, messages.value.span);
        for (; wal__model_array_next(&scan, &message); dir_import->files_read++) {
            take_exported(turns, message.span);
        }
        return dir_import->target.is_origin || wal__session_turns_has_any(turns);
    }
    if (wal__storage_path_is_kind(&path, "message", &first) && path.count == first + 2) {
        return wal__session_turns_message(turns, path.parts[first + 1], bytes);
    }
    if (wal__storage_path_is_kind(&path, "part", &first) && path.count == first + 2) {
        return wal__session_turns_part(turns, path.parts[first], bytes);
    }
    return dir_import->target.is_origin;
}

static enum wal_status import_bytes(struct dir_import *dir_import,
                                    const struct wal__session_dir_file *file,
                                    struct wal_slice bytes, struct wal_error *error)
{
    char *key = wal__source_escape(&dir_import->import->arena.arena, file->path);
    struct wal_doc existing;
    enum wal_status status;
    bool is_known;
    bool is_json;

    if (key == NULL) {
        return wal__no_memory(error);
    }
    is_json = check_document(dir_import, file, bytes, key);
    dir_import->files_read++;
    is_known = has_doc(dir_import, key, &existing);
    if (is_json && dir_import->target.turns != NULL &&
        (!is_known || dir_import->dir->is_exported) && take_turn(dir_import, file->path, bytes)) {
        return wal__import_check_memory(dir_import->import, error);
    }
    if (is_known) {
        is_known = is_json && (wal__slice_equal(existing.value, bytes) ||
                               (dir_import->dir->database != NULL &&
                                is_same_object(dir_import, existing.value, bytes)));
        dir_import->has_title |= is_json && !is_known && is_info(dir_import, file->path) &&
                                 changes_title(dir_import, &existing);
    } else {
        is_known = !is_json && has_version(dir_import, key, bytes);
    }
    status = wal__import_check_memory(dir_import->import, error);
    if (status != WAL_OK || is_known) {
        return status;
    }
    dir_import->changed++;
    if (dir_import->dir->database != NULL && is_json && is_info(dir_import, file->path)) {
        status = delete_other_info(dir_import, key, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    return is_json ? put_doc(dir_import, key, bytes, error)
                   : put_version(dir_import, key, bytes, error);
}

static enum wal_status import_open_file(struct dir_import *dir_import,
                                        const struct wal__session_dir_file *file, const char *name,
                                        int fd, struct wal_error *error)
{
    const struct wal__dialect *dialect = dir_import->dialect;
    struct wal_slice bytes = {"", 0};
    enum wal_status status;
    struct stat stat;
    uint32_t stream = 0;
    uint32_t losses;
    void *map;

    if (fstat(fd, &stat) != 0) {
        return wal__import_errno(error);
    }
    if (stat.st_size == 0) {
        return import_bytes(dir_import, file, bytes, error);
    }
    if (dialect->read_ops->stream != NULL && dialect->read_ops->stream(file->path, &stream)) {
        return wal__import_stream(dir_import->import, fd, name, dir_import->target.session, dialect,
                                  stream, error);
    }
    losses = wal__guarded_map_losses();
    map = wal__guarded_map(fd, 0, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE);
    if (map == NULL) {
        return wal__import_errno(error);
    }
    bytes = (struct wal_slice){map, (uint64_t)stat.st_size};
    status = import_bytes(dir_import, file, bytes, error);
    wal__guarded_unmap(map, (size_t)stat.st_size);
    if (status == WAL_OK && losses != wal__guarded_map_losses()) {
        errno = ESTALE;
        status = wal__import_errno(error);
    }
    return status;
}

static enum wal_status import_file(struct dir_import *dir_import,
                                   const struct wal__session_dir_file *file,
                                   struct wal_error *error)
{
    char *name =
        wal__import_path(&dir_import->import->arena.arena, dir_import->dir->root, file->path);
    enum wal_status status;
    int fd;

    if (name == NULL) {
        return wal__no_memory(error);
    }
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        status = wal__import_errno(error);
    } else {
        status = import_open_file(dir_import, file, name, fd, error);
        close(fd);
    }
    return status == WAL_OK ? WAL_OK : fail(dir_import, name, status, error);
}

/* A wal__session_row_fn. */
static enum wal_status import_row(void *ctx, const struct wal__session_dir_file *file,
                                  struct wal_slice json, struct wal_error *error)
{
    struct dir_import *dir_import = ctx;
    struct wal__session_dir_file copy = *file;

    copy.path = wal__arena_copy_text(&dir_import->import->arena.arena, file->path);
    return copy.path != NULL ? import_bytes(dir_import, &copy, json, error) : wal__no_memory(error);
}

/* --- checkpoints --------------------------------------------------------- */

static void on_imported(void *ctx, const struct wal__checkpoint_imported *imported)
{
    struct dir_import *dir_import = ctx;

    dir_import->checkpoints += imported->is_new || imported->added > 0 ? 1 : 0;
}

static enum wal_status on_skipped(void *ctx, const char *path, enum wal_status status,
                                  struct wal_error *error)
{
    struct dir_import *dir_import = ctx;
    const char *below = path + strlen(dir_import->dir->root);

    if (!wal__checkpoint_is_refused(status)) {
        return fail(dir_import, path, status, error);
    }
    add_issue(dir_import->dir, &dir_import->issues, below + strspn(below, "/"),
              WAL_IMPORT_NO_OFFSET, error->text);
    return wal__import_check_memory(dir_import->import, error);
}

static enum wal_status on_progress(void *ctx, const char *path, uint64_t files, uint64_t count,
                                   uint64_t bytes, struct wal_error *error)
{
    struct dir_import *dir_import = ctx;

    (void)files;
    (void)count;
    return wal__import_progress(dir_import->import, path, bytes, 0, error);
}

/* Imports the directory's checkpoints, with paths relative to the session's cwd. A refused
 * checkpoint is an issue. */
static enum wal_status import_checkpoints(struct dir_import *dir_import, struct wal_error *error)
{
    const struct wal__checkpoint_import in = {
        .heap = dir_import->import->heap,
        .store = dir_import->import->store,
        .session = dir_import->target.session,
        .imported = on_imported,
        .skipped = on_skipped,
        .progress = on_progress,
        .ctx = dir_import,
    };
    char *directory = wal__import_path(&dir_import->import->arena.arena, dir_import->dir->root,
                                       WAL__CHECKPOINT_DIR);
    bool is_empty = false;
    struct stat stat;

    if (directory == NULL) {
        return wal__no_memory(error);
    }
    return lstat(directory, &stat) == 0 && S_ISDIR(stat.st_mode)
               ? wal__checkpoint_import(&in, directory, NULL, &is_empty, error)
               : WAL_OK;
}

/* --- session ------------------------------------------------------------- */

static enum wal_status report(struct dir_import *dir_import, struct wal_error *error)
{
    struct wal_import_report report = {
        .kind = WAL_IMPORT_DIRECTORY,
        .path = wal__slice_from_text(dir_import->name),
        .dialect = wal__slice_from_text(dir_import->dialect->name),
        .lines = dir_import->files_read,
        .appended = dir_import->changed,
        .duplicates = dir_import->files_read - dir_import->changed,
        .checkpoints = dir_import->checkpoints,
        .issues = dir_import->issues.items,
        .issue_count = (uint32_t)dir_import->issues.count,
    };

    return wal__import_report(dir_import->import, &report, dir_import->target.session, error);
}

/* Appends an entry without content at the time of the client's last change, unless the session has
 * a later one: the times of documents are not those of their session. */
static enum wal_status note_time(struct dir_import *dir_import, struct wal_error *error)
{
    const struct wal_append_options options = {.struct_size = sizeof(options),
                                               .durability = WAL_WRITTEN};
    struct wal_append_result result = {.struct_size = sizeof(result)};
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session *session = dir_import->target.session;
    int64_t ms = dir_import->group->updated_ms;
    struct wal_entry entry = {
        .struct_size = sizeof(entry),
        .flags = WAL_ENTRY_ROOT | WAL_ENTRY_HEAD_KEEP,
        .stream = WAL__FILES_STREAM,
        .type = wal__slice_from_text("time"),
        .payload = wal__slice_from_text("null"),
    };
    char id[ID_SIZE + 16];
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status != WAL_OK || ms <= info.updated_ms) {
        return status;
    }
    make_id(dir_import, "time", id);
    if (dir_import->files.arena.has_failed) {
        return wal__no_memory(error);
    }
    entry.id = wal__slice_from_text(id);
    entry.timestamp =
        wal__slice_from_text(wal__import_time_text(&dir_import->import->arena.arena, ms));
    dir_import->import->must_sync = true;
    status = wal__import_check_memory(dir_import->import, error);
    return status == WAL_OK ? wal_append(session, &entry, 1, &options, &result, error) : status;
}

/* Takes over a title that was edited in the client. */
static enum wal_status take_title(struct dir_import *dir_import, struct wal_error *error)
{
    const struct wal__session_dir_group *group = dir_import->group;
    const char *before = group->origin_title != NULL ? group->origin_title : "New session";

    return group->title != NULL && strcmp(group->title, before) != 0
               ? wal__import_title(dir_import->target.session,
                                   wal__slice_from_text(group->origin_title),
                                   wal__slice_from_text(group->title), error)
               : WAL_OK;
}

static enum wal_status import_files(struct dir_import *dir_import, struct wal_error *error)
{
    const struct wal__session_dir *dir = dir_import->dir;
    size_t group = (size_t)(dir_import->group - dir->groups);
    enum wal_status status = WAL_OK;

    check_files(dir, dir_import->dialect, &dir_import->issues);
    if (dir->database != NULL) {
        status = wal__session_database_scan(dir->database, dir_import->target.turns != NULL,
                                            import_row, dir_import, error);
    }
    for (size_t i = 0; status == WAL_OK && i < dir->file_count; i++) {
        if (dir->files[i].group == group) {
            status = import_file(dir_import, &dir->files[i], error);
        }
    }
    if (status == WAL_OK) {
        status = commit_docs(dir_import, error);
    }
    if (status == WAL_OK && dir_import->target.turns != NULL) {
        status = wal__session_turns_commit(dir_import->target.turns, &dir_import->changed, error);
    }
    if (status == WAL_OK) {
        status = dir_import->target.is_origin ? take_title(dir_import, error)
                                              : note_time(dir_import, error);
    }
    dir_import->import->must_sync |= dir_import->changed > 0;
    /* A storage of OpenCode has no directory per session. */
    if (status == WAL_OK && !dir_import->has_failed &&
        dir_import->dialect->read_ops->stream != NULL) {
        status = import_checkpoints(dir_import, error);
    }
    return status == WAL_OK ? wal__import_check_memory(dir_import->import, error) : status;
}

/* Imports a session of a storage that is a view of a session of the store.
 * *is_view: it is. */
static enum wal_status import_view(struct dir_import *dir_import, bool *is_view,
                                   struct wal_error *error)
{
    const char *info = dir_import->group->info;
    enum wal_status status = WAL_OK;
    char *path;
    int fd;

    *is_view = false;
    if (info == NULL) {
        return WAL_OK;
    }
    path = wal__import_path(&dir_import->import->arena.arena, dir_import->dir->root, info);
    if (path == NULL) {
        return wal__no_memory(error);
    }
    fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0) {
        status = wal__import_view(dir_import->import, fd, path, is_view, error);
        close(fd);
    }
    return status;
}

static enum wal_status import_group(struct dir_import *dir_import, struct wal_error *error)
{
    bool is_view = false;
    enum wal_status status = import_view(dir_import, &is_view, error);

    if (status != WAL_OK || is_view) {
        return status;
    }
    status = open_target(&dir_import->target, error);
    if (status != WAL_OK) {
        return status;
    }
    dir_import->files.heap = dir_import->import->heap;
    dir_import->files.store = dir_import->import->store;
    dir_import->files.session = dir_import->target.session;
    status = wal__session_dir_files_open(&dir_import->files, error);
    if (status == WAL_OK) {
        status = import_files(dir_import, error);
    }
    if (status == WAL_OK && !dir_import->has_failed) {
        status = report(dir_import, error);
    }
    return status;
}

static void destroy(struct dir_import *dir_import)
{
    const struct wal__heap *heap = dir_import->import->heap;

    for (size_t i = 0; i < dir_import->doc_count; i++) {
        wal__heap_free(heap, (void *)(uintptr_t)dir_import->docs[i].value.data);
    }
    if (dir_import->files.heap != NULL) {
        wal__session_dir_files_deinit(&dir_import->files);
    }
    wal__session_turns_close(dir_import->target.turns);
    wal_session_close(dir_import->target.session);
    wal__heap_free(heap, dir_import);
}

/* Opens the databases next to a storage, for is_in_database. One that cannot be read is reported
 * where it is imported. */
static void open_siblings(struct wal__session_dir *dir)
{
    struct wal__import *import = dir->import;
    char *above = wal__import_path(&import->arena.arena, dir->root, "..");
    DIR *folder = above != NULL ? opendir(above) : NULL;
    struct dirent *entry;

    while (folder != NULL && dir->sibling_count < WAL__SESSION_DIR_SIBLINGS &&
           (entry = readdir(folder)) != NULL) {
        size_t size = strlen(entry->d_name);
        const char *name = size > 3 && strcmp(entry->d_name + size - 3, ".db") == 0
                               ? wal__import_path(&import->arena.arena, above, entry->d_name)
                               : NULL;
        if (name != NULL &&
            wal__session_database_open(import, name, NULL, 0, &dir->siblings[dir->sibling_count],
                                       NULL) == WAL_OK &&
            dir->siblings[dir->sibling_count] != NULL) {
            dir->sibling_count++;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
}

/* Whether the session of a storage is in a database next to it, to which the client moved it: its
 * files are an older copy. */
static bool is_in_database(const struct wal__session_dir *dir,
                           const struct wal__session_dir_group *group)
{
    for (uint32_t i = 0; group->id != NULL && i < dir->sibling_count; i++) {
        if (wal__session_database_has(dir->siblings[i], group->id)) {
            return true;
        }
    }
    return false;
}

static enum wal_status import_groups(struct wal__session_dir *dir, const char *name,
                                     const char *path, const struct wal__dialect *dialect,
                                     struct wal_error *error)
{
    struct wal__import *import = dir->import;
    enum wal_status status = wal__import_check_memory(import, error);

    for (size_t i = 0; status == WAL_OK && i < dir->group_count; i++) {
        struct dir_import *dir_import;

        if (is_in_database(dir, &dir->groups[i])) {
            continue;
        }
        dir_import = wal__heap_zalloc(import->heap, sizeof(*dir_import));
        if (dir_import == NULL) {
            return wal__no_memory(error);
        }
        dir_import->import = import;
        dir_import->dir = dir;
        dir_import->group = &dir->groups[i];
        dir_import->dialect = dialect;
        dir_import->name = name;
        dir_import->target.dir = dir;
        dir_import->target.group = dir_import->group;
        dir_import->target.dialect = dialect;
        dir_import->target.path = path;
        status = import_group(dir_import, error);
        if (status != WAL_OK) {
            status = fail(dir_import, name, status, error);
        }
        destroy(dir_import);
    }
    return status;
}

enum wal_status wal__import_dir(struct wal__import *import, const char *name, const char *path,
                                const struct wal__dialect *dialect, const char *const *patterns,
                                struct wal_error *error)
{
    struct wal__session_dir dir = {.import = import, .root = name, .patterns = patterns};
    enum wal_status status = wal__session_dir_list_files(&dir, error);

    if (status == WAL_OK) {
        if (dialect->read_ops->stream != NULL) {
            wal__session_dir_group_single(&dir);
        } else {
            wal__session_dir_group_storage(&dir);
            open_siblings(&dir);
        }
        status = import_groups(&dir, name, path, dialect, error);
    }
    for (uint32_t i = 0; i < dir.sibling_count; i++) {
        wal__session_database_close(dir.siblings[i]);
    }
    return status;
}

/* Imports the sessions of an open database. A session that cannot be read affects no other. */
static enum wal_status import_sessions(struct wal__session_dir *dir, const char *path,
                                       struct wal_error *error)
{
    struct wal__import *import = dir->import;
    struct wal__session_dir_group group;
    enum wal_status status = WAL_OK;

    dir->groups = &group;
    dir->group_count = 1;
    while (status == WAL_OK) {
        wal__heap_arena_reset(&import->arena);
        status = wal__session_database_next(dir->database, &group, error);
        if (status == WAL_OK) {
            status = import_groups(dir, dir->root, path, &wal__dialect_opencode, error);
        }
    }
    return status == WAL_END ? WAL_OK : wal__import_fail(import, dir->root, status, error);
}

enum wal_status wal__import_database(struct wal__import *import, const char *name, const char *path,
                                     bool *is_database, struct wal_error *error)
{
    struct wal__session_dir dir = {.import = import, .root = name};
    const char *slash = strrchr(path, '/');
    char storage[WAL__SOURCE_SIZE_MAX + 1];
    enum wal_status status;

    *is_database = false;
    if (import->forced != NULL && import->forced != &wal__dialect_opencode) {
        return WAL_OK;
    }
    status = wal__session_database_open(import, name, import->placed != NULL ? path : NULL,
                                        import->since_ms, &dir.database, error);
    *is_database = status != WAL_OK || dir.database != NULL;
    if (status != WAL_OK) {
        return wal__import_fail(import, name, status, error);
    }
    if (dir.database != NULL) {
        snprintf(storage, sizeof(storage), "%.*sstorage",
                 slash != NULL ? (int)(slash - path) + 1 : 0, path);
        status = import_sessions(&dir, storage, error);
        wal__session_database_close(dir.database);
    }
    return status;
}

enum wal_status wal__import_exported(struct wal__import *import, const char *name, const char *path,
                                     bool *is_exported, struct wal_error *error)
{
    struct wal__arena *arena = &import->arena.arena;
    const char *slash = strrchr(name, '/');
    const char *last = strrchr(path, '/');
    const char *root =
        slash != NULL ? wal__import_text(arena, (struct wal_slice){name, (size_t)(slash - name)})
                      : ".";
    const char *directory =
        wal__import_text(arena, (struct wal_slice){path, last != NULL ? (size_t)(last - path) : 0});
    struct wal__session_dir dir = {.import = import, .root = root};
    enum wal_status status = WAL_OK;

    *is_exported = false;
    if (import->forced != NULL && import->forced != &wal__dialect_opencode) {
        return WAL_OK;
    }
    if (root == NULL || directory == NULL) {
        return wal__no_memory(error);
    }
    *is_exported = wal__session_dir_read_exported(&dir, slash != NULL ? slash + 1 : name);
    if (*is_exported) {
        dir.is_exported = true;
        status = import_groups(&dir, name, directory, &wal__dialect_opencode, error);
    }
    return status == WAL_OK ? wal__import_check_memory(import, error) : status;
}
