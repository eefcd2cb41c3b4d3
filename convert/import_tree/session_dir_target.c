/*
 * session_dir_target.c - finds or creates the session of a directory's files.
 *
 * Threads: one thread at a time per import.
 */
#include "convert/import_tree/session_dir_target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "convert/import/import_time.h"
#include "convert/source/json_string.h"
#include "convert/source/source_lines.h"
#include "engine/base/error.h"

#define HASHED_SIZE 32

/* Returns true if the session has this id, possibly with a number appended. */
static bool has_id(const struct wal_session_info *info, const char *id)
{
    size_t size = strlen(id);

    return info->id.size >= size && memcmp(info->id.data, id, size) == 0 &&
           (info->id.size == size ||
            ((const char *)info->id.data)[size] == '~');
}

/* The fallback id when the suggested one is taken or not valid. */
static void hashed_id(const char *source, char id[HASHED_SIZE])
{
    snprintf(id, HASHED_SIZE, "files-%016" PRIx64, wal__source_hash(source));
}

/* Returns true if the session has the id that the group suggests. */
static bool has_group_id(const struct wal__session_dir_target *target,
                         struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char hashed[HASHED_SIZE];

    hashed_id(target->source, hashed);
    return target->group->id == NULL ||
           (wal_session_get_info(session, &info, NULL) == WAL_OK &&
            (has_id(&info, target->group->id) || has_id(&info, hashed)));
}

/* Compares the file's stream with it, if the file is a stream. */
static enum wal_status
match_stream(const struct wal__session_dir_target *target,
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
    name = wal__import_path(dir->import, dir->root, file->path);
    if (name == NULL) {
        return wal__no_memory(error);
    }
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return WAL_OK;
    }
    status = wal__source_compare(dir->import->heap, dir->import->store, session,
                                 stream, fd, &match, error);
    close(fd);
    *matches = match.is_prefix;
    wal__source_match_deinit(&match);
    return status;
}

/* Compares each stream of the session with its file; *matches: all are
 * prefixes. */
static enum wal_status
match_streams(const struct wal__session_dir_target *target,
              struct wal_session *session, bool *matches,
              struct wal_error *error)
{
    const struct wal__session_dir *dir = target->dir;
    size_t group = (size_t)(target->group - dir->groups);
    enum wal_status status = WAL_OK;

    *matches = true;
    for (uint32_t i = 0; status == WAL_OK && *matches && i < dir->file_count;
         i++) {
        if (dir->files[i].group == group) {
            status =
                match_stream(target, &dir->files[i], session, matches, error);
        }
    }
    return status;
}

static enum wal_status set_source(struct wal__session_dir_target *target,
                                  uint64_t ordinal, struct wal_error *error)
{
    const char *path = target->path[0] != '\0' ? target->path : ".";
    size_t size = strlen(path) + strlen(target->group->name) + 3;
    char *text = wal__arena_alloc(&target->dir->import->arena.arena, size);

    if (text == NULL) {
        return wal__no_memory(error);
    }
    snprintf(text, size, "%s//%s", path, target->group->name);
    return wal__source_text(target->source, target->dialect->name, ordinal,
                            text)
               ? WAL_OK
               : wal__fail(error, WAL_ETOOBIG, "%s",
                           wal_status_text(WAL_ETOOBIG));
}

/* Finds the session; if there is none, sets the source of a new one. */
static enum wal_status find_session(struct wal__session_dir_target *target,
                                    struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = WAL_OK;

    for (uint64_t ordinal = 0; status == WAL_OK; ordinal++) {
        bool matches = false;
        status = set_source(target, ordinal, error);
        if (status != WAL_OK) {
            return status;
        }
        status = wal__session_open_source(target->dir->import->store,
                                          target->source, &session, error);
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

/* Returns true if the session was imported from a directory of the same
 * dialect, as the same group. */
static bool has_group_name(const struct wal__session_dir_target *target,
                           struct wal_session *session)
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
static enum wal_status match_id(struct wal__session_dir_target *target,
                                const char *id, struct wal_error *error)
{
    struct wal_session *session = NULL;
    bool matches = false;
    enum wal_status status = wal_session_open(
        target->dir->import->store, wal__slice_from_text(id), &session, error);

    if (status != WAL_OK) {
        return status == WAL_ENOTFOUND || status == WAL_EINVAL ? WAL_OK
                                                               : status;
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

/* Finds the session among those of the id that the files state, wherever the
 * directory was when they were imported. */
static enum wal_status find_by_id(struct wal__session_dir_target *target,
                                  struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    char id[WAL__SOURCE_SIZE_MAX];

    for (unsigned n = 1; n <= WAL__IMPORT_ID_TRIES && status == WAL_OK &&
                         target->session == NULL;
         n++) {
        snprintf(id, sizeof(id), n == 1 ? "%s" : "%s~%u", target->group->id, n);
        status = match_id(target, id, error);
    }
    return status;
}

/* A wal__import_create_fn. */
static enum wal_status try_create(void *ctx,
                                  struct wal_session_options *options,
                                  struct wal_error *error)
{
    struct wal__session_dir_target *target = ctx;

    return wal_session_create(target->dir->import->store, options,
                              &target->session, error);
}

static enum wal_status create_session(struct wal__session_dir_target *target,
                                      struct wal_error *error)
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

    wal__import_describe(target->dir->import, group->created, &options);
    status = wal__import_check_memory(target->dir->import, error);
    if (status != WAL_OK) {
        return status;
    }
    status = group->id == NULL
                 ? WAL_EINVAL
                 : wal__import_try_ids(try_create, target, &options, group->id,
                                       error);
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        hashed_id(target->source, hashed);
        status =
            wal__import_try_ids(try_create, target, &options, hashed, error);
    }
    return status;
}

enum wal_status
wal__session_dir_target_open(struct wal__session_dir_target *target,
                             struct wal_error *error)
{
    enum wal_status status = find_session(target, error);

    if (status == WAL_OK && target->session == NULL &&
        target->dir->import->matches_ids && target->group->has_id) {
        status = find_by_id(target, error);
    }
    return status == WAL_OK && target->session == NULL
               ? create_session(target, error)
               : status;
}
