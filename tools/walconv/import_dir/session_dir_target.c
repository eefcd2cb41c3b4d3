/*
 * session_dir_target.c - find or create the session of a directory's files.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/import_dir/session_dir_target.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/ids.h"
#include "tools/cli/imported_lines.h"
#include "tools/walconv/import/file_probe.h"

#define ID_TRIES    9
#define HASHED_SIZE 32

static char *join_path(const char *root, const char *path)
{
    char *name = cli_alloc(strlen(root) + strlen(path) + 2);

    sprintf(name, "%s/%s", root, path);
    return name;
}

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
    snprintf(id, HASHED_SIZE, "files-%016" PRIx64, cli_hash(cli_slice(source)));
}

/* Returns true if the session has the id that the group suggests. */
static bool has_group_id(const struct walconv_dir_session *target,
                         struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char hashed[HASHED_SIZE];

    hashed_id(target->source, hashed);
    return target->group->id == NULL ||
           (wal_session_get_info(session, &info, NULL) == WAL_OK &&
            (has_id(&info, target->group->id) || has_id(&info, hashed)));
}

/* Compares each stream of the session with its file; *matches: all are
 * prefixes. */
static enum wal_status match_streams(const struct walconv_dir_session *target,
                                     struct wal_session *session, bool *matches,
                                     struct wal_error *error)
{
    const struct walconv_dir *dir = target->dir;
    enum wal_status status = WAL_OK;

    *matches = true;
    for (size_t i = 0; status == WAL_OK && *matches && i < dir->file_count;
         i++) {
        struct cli_match match = {.is_prefix = true};
        uint32_t stream = 0;
        char *name;
        int fd;
        if (dir->files[i].group !=
                (size_t)(target->group - target->dir->groups) ||
            target->dialect->read_ops->stream == NULL ||
            !target->dialect->read_ops->stream(dir->files[i].path, &stream)) {
            continue;
        }
        name = join_path(dir->root, dir->files[i].path);
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        free(name);
        if (fd >= 0) {
            status = cli_source_match(target->import->store, session, stream,
                                      fd, &match, error);
            close(fd);
        }
        *matches = match.is_prefix;
        cli_match_deinit(&match);
    }
    return status;
}

static char *source_of(const struct walconv_dir_session *target,
                       uint64_t ordinal)
{
    const char *path = target->path[0] != '\0' ? target->path : ".";
    char *text = cli_alloc(strlen(path) + strlen(target->group->name) + 3);
    char *source;

    sprintf(text, "%s//%s", path, target->group->name);
    source = cli_source_text(target->dialect->name, ordinal, text);
    free(text);
    return source;
}

/* Finds the session; if there is none, sets the source of a new one. */
static enum wal_status find_session(struct walconv_dir_session *target,
                                    struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = WAL_OK;

    for (uint64_t ordinal = 0; status == WAL_OK; ordinal++) {
        bool matches = false;
        free(target->source);
        target->source = source_of(target, ordinal);
        if (target->source == NULL) {
            return WAL_ETOOBIG;
        }
        status = walconv_open_source(target->import->store, target->source,
                                     &session, error);
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

static enum wal_status try_ids(struct walconv_dir_session *target,
                               struct wal_session_options *options,
                               const char *base, struct wal_error *error)
{
    enum wal_status status = WAL_EEXISTS;
    char *id = cli_alloc(strlen(base) + 32);

    for (unsigned n = 1; n <= ID_TRIES && status == WAL_EEXISTS; n++) {
        sprintf(id, n == 1 ? "%s" : "%s~%u", base, n);
        options->id = cli_slice(id);
        status = wal_session_create(target->import->store, options,
                                    &target->session, error);
    }
    free(id);
    return status;
}

static enum wal_status create_session(struct walconv_dir_session *target,
                                      struct wal_error *error)
{
    const struct walconv_dir_group *group = target->group;
    struct wal_session_options options = {.struct_size = sizeof(options)};
    enum wal_status status = WAL_EINVAL;
    char *metadata = NULL;
    char hashed[HASHED_SIZE];

    options.source = cli_slice(target->source);
    options.cwd = cli_slice(group->cwd);
    options.title = cli_slice(group->title);
    options.project = cli_slice(group->project);
    options.parent_id = cli_slice(group->parent);
    if (group->created != NULL) {
        metadata =
            walconv_json_object("created", cli_slice(group->created), "");
        options.metadata = cli_slice(metadata);
    }
    if (group->id != NULL) {
        status = try_ids(target, &options, group->id, error);
    }
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        hashed_id(target->source, hashed);
        status = try_ids(target, &options, hashed, error);
    }
    free(metadata);
    return status;
}

enum wal_status walconv_dir_session_open(struct walconv_dir_session *target,
                                         struct wal_error *error)
{
    enum wal_status status = find_session(target, error);

    return status == WAL_OK && target->session == NULL
               ? create_session(target, error)
               : status;
}

void walconv_dir_session_close(struct walconv_dir_session *target)
{
    wal_session_close(target->session);
    free(target->source);
}
