/*
 * walconv_tree_session - the session that files of a tree go into.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_tree_session.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli_ids.h"
#include "tools/cli_source.h"
#include "tools/walconv_survey.h"

#define ID_TRIES    9
#define HASHED_SIZE 32

static char *joined(const char *root, const char *path)
{
    char *name = cli_alloc(strlen(root) + strlen(path) + 2);

    sprintf(name, "%s/%s", root, path);
    return name;
}

/* Whether the session's id is this one, or this one with a number. */
static bool has_id(const struct wal_session_info *info, const char *id)
{
    size_t size = strlen(id);

    return info->id.size >= size && memcmp(info->id.data, id, size) == 0 &&
           (info->id.size == size ||
            ((const char *)info->id.data)[size] == '~');
}

/* The id of a session that cannot have the one that it asks for. */
static void hashed_id(const char *source, char id[HASHED_SIZE])
{
    snprintf(id, HASHED_SIZE, "files-%016" PRIx64, cli_hash(cli_slice(source)));
}

/* Whether the session is the one that asks for the group's id. */
static bool is_same_id(const struct walconv_tree_session *at,
                       struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    char hashed[HASHED_SIZE];

    hashed_id(at->source, hashed);
    return at->group->id == NULL ||
           (wal_session_status(session, &info, NULL) == WAL_OK &&
            (has_id(&info, at->group->id) || has_id(&info, hashed)));
}

/* Whether each stream of the session is the beginning of its file. */
static enum wal_status match_streams(const struct walconv_tree_session *at,
                                     struct wal_session *session, bool *matches,
                                     struct wal_error *error)
{
    const struct walconv_tree *tree = at->tree;
    enum wal_status status = WAL_OK;

    *matches = true;
    for (size_t i = 0; status == WAL_OK && *matches && i < tree->file_count;
         i++) {
        struct cli_match match = {.is_prefix = true};
        uint32_t stream = 0;
        char *name;
        int fd;
        if (tree->files[i].group != (size_t)(at->group - at->tree->groups) ||
            at->dialect->reading->stream == NULL ||
            !at->dialect->reading->stream(tree->files[i].path, &stream)) {
            continue;
        }
        name = joined(tree->root, tree->files[i].path);
        fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        free(name);
        if (fd >= 0) {
            status = cli_source_match(at->import->store, session, stream, fd,
                                      &match, error);
            close(fd);
        }
        *matches = match.is_prefix;
        cli_match_deinit(&match);
    }
    return status;
}

static char *source_of(const struct walconv_tree_session *at, uint64_t ordinal)
{
    const char *path = at->path[0] != '\0' ? at->path : ".";
    char *text = cli_alloc(strlen(path) + strlen(at->group->name) + 3);
    char *source;

    sprintf(text, "%s//%s", path, at->group->name);
    source = cli_source_text(at->dialect->name, ordinal, text);
    free(text);
    return source;
}

/* Looks for the session; sets the source of a new one where there is none. */
static enum wal_status find(struct walconv_tree_session *at,
                            struct wal_error *error)
{
    struct wal_session *session = NULL;
    enum wal_status status = WAL_OK;

    for (uint64_t ordinal = 0; status == WAL_OK; ordinal++) {
        bool matches = false;
        free(at->source);
        at->source = source_of(at, ordinal);
        if (at->source == NULL) {
            return WAL_ETOOBIG;
        }
        status =
            walconv_open_source(at->import->store, at->source, &session, error);
        if (status != WAL_OK) {
            break;
        }
        if (is_same_id(at, session)) {
            status = match_streams(at, session, &matches, error);
        }
        if (status == WAL_OK && matches) {
            at->session = session;
            return WAL_OK;
        }
        wal_session_close(session);
    }
    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

static enum wal_status try_ids(struct walconv_tree_session *at,
                               struct wal_session_options *options,
                               const char *base, struct wal_error *error)
{
    enum wal_status status = WAL_EEXISTS;
    char *id = cli_alloc(strlen(base) + 32);

    for (unsigned n = 1; n <= ID_TRIES && status == WAL_EEXISTS; n++) {
        sprintf(id, n == 1 ? "%s" : "%s~%u", base, n);
        options->id = cli_slice(id);
        status =
            wal_session_create(at->import->store, options, &at->session, error);
    }
    free(id);
    return status;
}

static enum wal_status create(struct walconv_tree_session *at,
                              struct wal_error *error)
{
    const struct walconv_tree_group *group = at->group;
    struct wal_session_options options = {.struct_size = sizeof(options)};
    enum wal_status status = WAL_EINVAL;
    char *metadata = NULL;
    char hashed[HASHED_SIZE];

    options.source = cli_slice(at->source);
    options.cwd = cli_slice(group->cwd);
    options.title = cli_slice(group->title);
    options.project = cli_slice(group->project);
    options.parent_id = cli_slice(group->parent);
    if (group->created != NULL) {
        metadata = walconv_object("created", cli_slice(group->created), "");
        options.metadata = cli_slice(metadata);
    }
    if (group->id != NULL) {
        status = try_ids(at, &options, group->id, error);
    }
    if (status == WAL_EEXISTS || status == WAL_EINVAL) {
        hashed_id(at->source, hashed);
        status = try_ids(at, &options, hashed, error);
    }
    free(metadata);
    return status;
}

enum wal_status walconv_tree_session_open(struct walconv_tree_session *at,
                                          struct wal_error *error)
{
    enum wal_status status = find(at, error);

    return status == WAL_OK && at->session == NULL ? create(at, error) : status;
}

void walconv_tree_session_close(struct walconv_tree_session *at)
{
    wal_session_close(at->session);
    free(at->source);
}
