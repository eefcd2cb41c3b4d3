/*
 * tree_walk.c - finds sources (tree_walk.h).
 *
 * Threads: one thread at a time per walk.
 */
#include "convert/import/tree_walk.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "convert/import/session_dir.h"
#include "convert/import/source_file.h"
#include "engine/base/error.h"

#define TAKES_OTHERS (WAL_IMPORT_ALL_FILES | WAL_IMPORT_OTHER_FILES)

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

void wal__tree_leave_out(struct wal__import *import, const char *path)
{
    import->result.left_out[wal__left_kind_of(path)]++;
}

/* --- places -------------------------------------------------------------- */

/* A folder's place is in its fts_number while the walk is below it. */
static void set_place(FTSENT *entry, const struct wal__place *place)
{
    entry->fts_number =
        (long)((size_t)place->kind | place->client << 4 | place->base << 12);
}

static struct wal__place place_of(const FTSENT *entry)
{
    size_t number = (size_t)entry->fts_number;

    return (struct wal__place){.kind = (enum wal__place_kind)(number & 15),
                               .client = number >> 4 & 255,
                               .base = number >> 12};
}

static bool is_argument(const struct wal__tree_walk *walk, const FTSENT *entry)
{
    return entry->fts_level == 0 && !walk->is_below;
}

/* The place of the folder that contains the entry, which is no argument. */
static struct wal__place place_above(const struct wal__tree_walk *walk,
                                     const FTSENT *entry)
{
    return entry->fts_level == 0 ? walk->below : place_of(entry->fts_parent);
}

/* The path of a file relative to the argument; for the argument itself its
 * name. */
static const char *relative_path(const struct wal__tree_walk *walk,
                                 const FTSENT *entry)
{
    const char *path = entry->fts_path;
    const char *slash;

    if (is_argument(walk, entry)) {
        slash = strrchr(path, '/');
        return slash != NULL ? slash + 1 : path;
    }
    path += strlen(walk->argument);
    return path + strspn(path, "/");
}

/* Writes the absolute path of the entry to walk->path. */
static void set_path(struct wal__tree_walk *walk, const FTSENT *entry)
{
    const char *root =
        strcmp(walk->resolved, "/") == 0 && !is_argument(walk, entry)
            ? ""
            : walk->resolved;

    if (is_argument(walk, entry)) {
        snprintf(walk->path, sizeof(walk->path), "%s", root);
    } else {
        snprintf(walk->path, sizeof(walk->path), "%s/%s", root,
                 relative_path(walk, entry));
    }
}

/* --- directories --------------------------------------------------------- */

/* Returns true for the excluded directory, and for the folder in which views
 * store their state. */
static bool is_excluded(const struct wal__tree_walk *walk, const FTSENT *entry)
{
    return (walk->has_exclude &&
            entry->fts_statp->st_dev == walk->exclude.st_dev &&
            entry->fts_statp->st_ino == walk->exclude.st_ino) ||
           (!is_argument(walk, entry) &&
            strcmp(entry->fts_name, ".agentwal") == 0);
}

static enum wal_status not_a_session(struct wal__tree_walk *walk, FTSENT *entry,
                                     struct wal_error *error)
{
    enum wal_status status = wal__fail(
        error, WAL_ENOTFILE, "the directory is not that of a session");

    fts_set(walk->fts, entry, FTS_SKIP);
    return wal__import_fail(walk->import, entry->fts_path, status, error);
}

static bool may_be_session(const struct wal__tree_walk *walk,
                           const struct wal__place *place)
{
    return walk->is_one_source || (walk->flags & WAL_IMPORT_ALL_FILES) != 0 ||
           place->kind == WAL__PLACE_PLAIN ||
           wal__place_is_session(place, walk->path);
}

/* Visits a session directory as a whole, and excludes its files from the
 * walk. */
static enum wal_status visit_directory(struct wal__tree_walk *walk,
                                       FTSENT *entry,
                                       const struct wal__place *place,
                                       struct wal_error *error)
{
    struct wal__import *import = walk->import;
    bool is_client = wal__place_is_session(place, walk->path);
    struct wal__tree_source source = {
        .name = entry->fts_path,
        .path = is_argument(walk, entry) ? "" : relative_path(walk, entry),
        .is_argument = is_argument(walk, entry),
        .is_matched_by_id = is_client || (walk->flags & TAKES_OTHERS) == 0,
    };
    enum wal_status status;

    source.below = source.path;
    if (is_client && (walk->flags & TAKES_OTHERS) == 0) {
        source.path = wal__place_below(place, walk->path);
    }
    wal__heap_arena_reset(&import->arena);
    source.dialect = wal__session_dir_detect(import, entry->fts_path);
    status = wal__import_check_memory(import, error);
    if (status != WAL_OK) {
        return status;
    }
    if (source.dialect == NULL) {
        return walk->is_one_source ? not_a_session(walk, entry, error) : WAL_OK;
    }
    if ((walk->flags & WAL_IMPORT_ALL_FILES) == 0 &&
        (is_client || (walk->flags & WAL_IMPORT_OTHER_FILES) == 0)) {
        source.files = wal__client_directory_files(source.dialect->name);
    }
    fts_set(walk->fts, entry, FTS_SKIP);
    if (!source.is_argument) {
        walk->parent = place_above(walk, entry);
    }
    return walk->directory(walk->ctx, &source, error);
}

static enum wal_status enter_directory(struct wal__tree_walk *walk,
                                       FTSENT *entry, struct wal_error *error)
{
    struct wal__place parent;
    struct wal__place place;

    if (is_excluded(walk, entry)) {
        fts_set(walk->fts, entry, FTS_SKIP);
        return WAL_OK;
    }
    set_path(walk, entry);
    if (is_argument(walk, entry)) {
        place = wal__place_of_argument(walk->path);
    } else {
        parent = place_above(walk, entry);
        place = wal__place_of_folder(&parent, walk->path);
    }
    if ((walk->flags & TAKES_OTHERS) != 0 &&
        (place.kind == WAL__PLACE_ABOVE || place.kind == WAL__PLACE_IGNORED)) {
        place.kind = WAL__PLACE_PLAIN;
    }
    set_place(entry, &place);
    if (may_be_session(walk, &place)) {
        return visit_directory(walk, entry, &place, error);
    }
    if (place.kind == WAL__PLACE_IGNORED) {
        fts_set(walk->fts, entry, FTS_SKIP);
    }
    return WAL_OK;
}

/* Reports the folder to a walk that watches it. */
static enum wal_status report_folder(struct wal__tree_walk *walk, FTSENT *entry,
                                     struct wal_error *error)
{
    struct wal__place place = place_of(entry);

    if (walk->enter == NULL || entry->fts_instr == FTS_SKIP) {
        return WAL_OK;
    }
    if (place.kind == WAL__PLACE_LEFT_OUT) {
        fts_set(walk->fts, entry, FTS_SKIP);
        return WAL_OK;
    }
    return walk->enter(walk->ctx, entry->fts_path,
                       is_argument(walk, entry) ? ""
                                                : relative_path(walk, entry),
                       &place, error);
}

/* --- files --------------------------------------------------------------- */

/* Returns the path below the client's folder if the file is a session of a
 * client by its path, else NULL. */
static const char *client_path(struct wal__tree_walk *walk, const FTSENT *entry)
{
    const char *slash;
    struct wal__place place;
    char folder[sizeof(walk->path)];

    if (!is_argument(walk, entry)) {
        place = place_above(walk, entry);
    } else {
        slash = strrchr(walk->path, '/');
        if (slash == NULL) {
            return NULL;
        }
        memcpy(folder, walk->path, (size_t)(slash - walk->path));
        folder[slash - walk->path] = '\0';
        place = wal__place_of_argument(folder);
    }
    return wal__place_has_session(&place, walk->path)
               ? wal__place_below(&place, walk->path)
               : NULL;
}

/* Whether a file has the name of credentials, and not that of a session: also
 * where a client keeps its sessions. */
static bool is_credentials(const FTSENT *entry)
{
    return !wal__client_is_session_name(entry->fts_name) &&
           wal__left_kind_of(entry->fts_name) == WAL__FILE_CREDENTIALS;
}

/* Whether a file has other names too, which may be those of credentials: its
 * own name does not say that it is a session. */
static bool is_hard_link(const struct stat *stat)
{
    return stat->st_nlink > 1;
}

/* Whether a file below a directory is a source. Counts it if it is not. */
static bool is_wanted(struct wal__tree_walk *walk, const FTSENT *entry,
                      bool is_client, bool *must_be_session)
{
    struct wal__place place = place_above(walk, entry);
    const char *below = relative_path(walk, entry);

    *must_be_session = false;
    if ((walk->flags & WAL_IMPORT_ALL_FILES) != 0) {
        return true;
    }
    if (is_client) {
        if (is_credentials(entry)) {
            wal__tree_leave_out(walk->import, entry->fts_name);
            return false;
        }
        *must_be_session = is_hard_link(entry->fts_statp);
        return true;
    }
    switch (place.kind) {
    case WAL__PLACE_PLAIN:
        *must_be_session = (walk->flags & WAL_IMPORT_OTHER_FILES) == 0;
        return true;
    case WAL__PLACE_ABOVE:
    case WAL__PLACE_IGNORED:
        return false;
    case WAL__PLACE_CLIENT:
    case WAL__PLACE_LEFT_OUT:
        below = wal__place_below(&place, walk->path);
        break;
    }
    wal__tree_leave_out(walk->import, below);
    return false;
}

static enum wal_status visit_file(struct wal__tree_walk *walk, FTSENT *entry,
                                  struct wal_error *error)
{
    struct wal__tree_source source = {
        .name = entry->fts_path,
        .path = relative_path(walk, entry),
        .size = (uint64_t)entry->fts_statp->st_size,
        .is_argument = is_argument(walk, entry),
    };
    const char *client;

    set_path(walk, entry);
    client = client_path(walk, entry);
    source.below = source.is_argument ? "" : source.path;
    source.is_matched_by_id =
        client != NULL || (walk->flags & TAKES_OTHERS) == 0;
    if (!source.is_argument &&
        !is_wanted(walk, entry, client != NULL, &source.must_be_session)) {
        return WAL_OK;
    }
    if (client != NULL && (walk->flags & TAKES_OTHERS) == 0) {
        source.path = client;
    }
    if (!source.is_argument) {
        walk->parent = place_above(walk, entry);
    }
    return walk->file(walk->ctx, &source, error);
}

/* A symbolic link below an argument. */
static void leave_out_link(struct wal__tree_walk *walk, const FTSENT *entry)
{
    struct wal__place place = place_above(walk, entry);

    if (place.kind != WAL__PLACE_ABOVE && place.kind != WAL__PLACE_IGNORED) {
        walk->import->result.left_out[WAL__FILE_LINK]++;
    }
}

static bool has_ending(const char *path, const char *ending)
{
    size_t size = strlen(path);
    size_t ending_size = strlen(ending);

    return size > ending_size && strcmp(path + size - ending_size, ending) == 0;
}

enum wal_status wal__tree_is_session(struct wal__import *import, int fd,
                                     const char *path, bool *is_session,
                                     struct wal_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    struct wal__file_probe probe = {.end = 0};
    struct stat stat;

    if (fstat(fd, &stat) != 0) {
        return wal__import_errno(error);
    }
    *is_session = wal__client_is_session_name(name) && !is_hard_link(&stat);
    if (*is_session || !has_ending(name, ".jsonl")) {
        return WAL_OK;
    }
    if (wal__file_probe(&import->arena, fd, (uint64_t)stat.st_size,
                        import->forced, &probe) < 0) {
        return wal__import_errno(error);
    }
    *is_session =
        import->forced != NULL || probe.dialect != &wal__dialect_lines;
    return wal__import_check_memory(import, error);
}

/* --- walk ---------------------------------------------------------------- */

static enum wal_status visit(struct wal__tree_walk *walk, FTSENT *entry,
                             struct wal_error *error)
{
    enum wal_status status;

    switch (entry->fts_info) {
    case FTS_D:
        status = enter_directory(walk, entry, error);
        return status == WAL_OK ? report_folder(walk, entry, error) : status;
    case FTS_F:
        return visit_file(walk, entry, error);
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        if (walk->is_below && entry->fts_errno == ENOENT) {
            return WAL_OK;
        }
        errno = entry->fts_errno;
        status = wal__import_errno(error);
        return wal__import_fail(walk->import, entry->fts_path, status, error);
    default:
        if (!is_argument(walk, entry) || entry->fts_info == FTS_DP) {
            if (entry->fts_info == FTS_SL || entry->fts_info == FTS_SLNONE) {
                leave_out_link(walk, entry);
            }
            return WAL_OK;
        }
        status = wal__fail(error, WAL_ENOTFILE,
                           "neither a regular file nor a directory");
        return wal__import_fail(walk->import, entry->fts_path, status, error);
    }
}

/* Resolves the argument; a path that does not exist is reported by the
 * walk. */
static void resolve(struct wal__tree_walk *walk)
{
    static_assert(sizeof(walk->resolved) >= PATH_MAX, "realpath's buffer");
    if (realpath(walk->argument, walk->resolved) == NULL) {
        snprintf(walk->resolved, sizeof(walk->resolved), "%s", walk->argument);
    }
}

static enum wal_status walk_path(struct wal__tree_walk *walk, char *path,
                                 int flags, struct wal_error *error)
{
    char *paths[] = {path, NULL};
    enum wal_status status = WAL_OK;
    FTSENT *entry = NULL;

    walk->fts = fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | flags, by_name);
    while (walk->fts != NULL && status == WAL_OK &&
           (errno = 0, entry = fts_read(walk->fts)) != NULL) {
        status = visit(walk, entry, error);
    }
    if (status == WAL_OK && (walk->fts == NULL || errno != 0)) {
        status = wal__import_errno(error);
        status = wal__import_fail(walk->import, path, status, error);
    }
    if (walk->fts != NULL) {
        fts_close(walk->fts);
        walk->fts = NULL;
    }
    return status;
}

enum wal_status wal__tree_walk_argument(struct wal__tree_walk *walk,
                                        char *argument, struct wal_error *error)
{
    walk->argument = argument;
    walk->is_below = false;
    resolve(walk);
    return walk_path(walk, argument, FTS_COMFOLLOW, error);
}

enum wal_status wal__tree_walk_below(struct wal__tree_walk *walk,
                                     char *argument, const char *path,
                                     const struct wal__place *parent,
                                     struct wal_error *error)
{
    char name[2 * WAL__CLIENT_PATH_SIZE];
    int used = snprintf(name, sizeof(name), "%s/%s", argument, path);

    if (used < 0 || (size_t)used >= sizeof(name)) {
        return WAL_OK;
    }
    walk->argument = argument;
    walk->is_below = true;
    walk->below = *parent;
    resolve(walk);
    return walk_path(walk, name, 0, error);
}
