/*
 * import_tree.c - wal_import_file and wal_import_tree: imports the sources among files and
 * directories; wal_import_scan: counts what an import would take (agentwal/import.h,
 * import_tree.h).
 */
#include "convert/import/import_tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "convert/import/file_import.h"
#include "convert/import/session_database.h"
#include "convert/import/session_dir.h"
#include "convert/import/walk.h"
#include "engine/base/error.h"
#include "engine/base/struct_size.h"

/* --- the walk ------------------------------------------------------------- */

#define TAKES_OTHERS (WAL_IMPORT_ALL_FILES | WAL_IMPORT_OTHER_FILES)

/* Counts a file that is left out, by its path below the client's folder or the argument, unless a
 * session keeps it. `name` is the path that opens it. */
static void tree_leave_out(struct wal__import *import, const char *path, const char *name)
{
    import->result.left_out[wal__left_kind_of(path)] += wal__client_keeps_file(name) ? 0 : 1;
}

/* --- places -------------------------------------------------------------- */

static struct wal__place place_of(const struct wal__walk_entry *entry)
{
    size_t number = entry->number;

    return (struct wal__place){.kind = (enum wal__place_kind)(number & 15),
                               .client = number >> 4 & 255,
                               .root = number >> 12 & 15,
                               .base = number >> 16};
}

static bool is_argument(const struct wal__tree_walk *walk, const struct wal__walk_entry *entry)
{
    return entry->depth == 0 && !walk->is_below;
}

/* The place of the folder that contains the entry, which is no argument. */
static struct wal__place place_above(const struct wal__tree_walk *walk,
                                     const struct wal__walk_entry *entry)
{
    return entry->depth == 0 ? walk->below : place_of(entry->parent);
}

/* The path of a file relative to the argument; for the argument itself its name. */
static const char *relative_path(const struct wal__tree_walk *walk,
                                 const struct wal__walk_entry *entry)
{
    const char *path = entry->path;
    const char *slash;

    if (is_argument(walk, entry)) {
        slash = strrchr(path, '/');
        return slash != NULL ? slash + 1 : path;
    }
    path += strlen(walk->argument);
    return path + strspn(path, "/");
}

/* Writes the absolute path of the entry to walk->path. */
static void set_path(struct wal__tree_walk *walk, const struct wal__walk_entry *entry)
{
    const char *root =
        strcmp(walk->resolved, "/") == 0 && !is_argument(walk, entry) ? "" : walk->resolved;

    if (is_argument(walk, entry)) {
        snprintf(walk->path, sizeof(walk->path), "%s", root);
    } else {
        snprintf(walk->path, sizeof(walk->path), "%s/%s", root, relative_path(walk, entry));
    }
}

/* --- directories --------------------------------------------------------- */

/* Visits a session directory as a whole, and excludes its files from the walk. */
static enum wal_status walk_directory(struct wal__tree_walk *walk, struct wal__walk_entry *entry,
                                      const struct wal__place *place, struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    bool is_client = wal__place_is_session(place, walk->path);
    struct wal__tree_source source = {
        .name = entry->path,
        .path = is_argument(walk, entry) ? "" : relative_path(walk, entry),
        .is_argument = is_argument(walk, entry),
        .is_matched_by_id = is_client || (walk->flags & TAKES_OTHERS) == 0,
    };
    enum wal_status status;

    source.below = source.path;
    if (is_client && (walk->flags & TAKES_OTHERS) == 0) {
        source.path = wal__place_kept_path(place, walk->path, walk->kept);
    }
    wal__heap_arena_reset(&import->arena);
    source.dialect = wal__session_dir_detect(import, entry->path);
    status = wal__import_check_memory(import, error);
    if (status != WAL_OK) {
        return status;
    }
    if (source.dialect == NULL) {
        if (!walk->is_one_source) {
            return WAL_OK;
        }
        entry->is_skipped = true;
        status = wal__fail(error, WAL_ENOTFILE, "the directory is not that of a session");
        return wal__import_fail(import, entry->path, status, error);
    }
    if ((walk->flags & WAL_IMPORT_ALL_FILES) == 0 &&
        (is_client || (walk->flags & WAL_IMPORT_OTHER_FILES) == 0)) {
        source.files = wal__client_directory_files(source.dialect->name);
    }
    entry->is_skipped = true;
    if (!source.is_argument) {
        walk->parent = place_above(walk, entry);
    }
    return walk->directory(walk, &source, error);
}

static enum wal_status enter_directory(struct wal__tree_walk *walk, struct wal__walk_entry *entry,
                                       struct wal_error *error)
{
    struct wal__place parent;
    struct wal__place place;

    /* Also the folder in which views store their state. */
    if ((walk->has_exclude && entry->stat.st_dev == walk->exclude.st_dev &&
         entry->stat.st_ino == walk->exclude.st_ino) ||
        (!is_argument(walk, entry) && strcmp(entry->name, ".agentwal") == 0)) {
        entry->is_skipped = true;
        return WAL_OK;
    }
    set_path(walk, entry);
    if (is_argument(walk, entry)) {
        place = wal__place_of_argument(&walk->places, walk->path);
    } else {
        parent = place_above(walk, entry);
        place = wal__place_of_folder(&walk->places, &parent, walk->path);
    }
    if ((walk->flags & TAKES_OTHERS) != 0 &&
        (place.kind == WAL__PLACE_ABOVE || place.kind == WAL__PLACE_IGNORED)) {
        place.kind = WAL__PLACE_PLAIN;
    }
    /* While the walk is below it. */
    entry->number = (size_t)place.kind | place.client << 4 | place.root << 12 | place.base << 16;
    if (walk->is_one_source || (walk->flags & WAL_IMPORT_ALL_FILES) != 0 ||
        place.kind == WAL__PLACE_PLAIN || wal__place_is_session(&place, walk->path)) {
        return walk_directory(walk, entry, &place, error);
    }
    if (place.kind == WAL__PLACE_IGNORED) {
        entry->is_skipped = true;
    }
    return WAL_OK;
}

/* Reports the folder to a walk that watches it. */
static enum wal_status report_folder(struct wal__tree_walk *walk, struct wal__walk_entry *entry,
                                     struct wal_error *error)
{
    struct wal__place place = place_of(entry);

    if (walk->enter == NULL || entry->is_skipped) {
        return WAL_OK;
    }
    if (place.kind == WAL__PLACE_LEFT_OUT) {
        entry->is_skipped = true;
        return WAL_OK;
    }
    return walk->enter(walk, entry->path,
                       is_argument(walk, entry) ? "" : relative_path(walk, entry), &place, error);
}

/* --- files --------------------------------------------------------------- */

/* What the path of a file says: whether it is a session of a client. */
struct client_file {
    struct wal__place place; /* of the folder that contains it */
    const char *path;        /* that the session keeps; NULL: of no client's session */
    bool is_unread;          /* the sessions are not read */
};

static struct client_file client_file(struct wal__tree_walk *walk,
                                      const struct wal__walk_entry *entry)
{
    const char *slash = strrchr(walk->path, '/');
    struct client_file file = {.place = {.kind = WAL__PLACE_PLAIN}};
    bool is_read;
    char folder[sizeof(walk->path)];

    if (!is_argument(walk, entry)) {
        file.place = place_above(walk, entry);
    } else if (slash != NULL) {
        memcpy(folder, walk->path, (size_t)(slash - walk->path));
        folder[slash - walk->path] = '\0';
        file.place = wal__place_of_argument(&walk->places, folder);
    }
    is_read = wal__place_has_session(&file.place, walk->path);
    file.is_unread = !is_read && wal__place_has_unread(&file.place, walk->path);
    if (is_read || (file.is_unread && file.place.kind == WAL__PLACE_CLIENT)) {
        file.path = wal__place_kept_path(&file.place, walk->path, walk->kept);
    }
    return file;
}

/* Whether a file has other names too, which may be those of credentials: its own name does not say
 * that it is a session. */
static bool is_hard_link(const struct stat *stat)
{
    return stat->st_nlink > 1;
}

static bool has_ending(const char *path, const char *ending)
{
    size_t size = strlen(path);
    size_t ending_size = strlen(ending);

    return size > ending_size && strcmp(path + size - ending_size, ending) == 0;
}

size_t wal__tree_log_ending(const char *name)
{
    static const char *const endings[] = {"-wal", "-shm", "-journal"};

    for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
        if (has_ending(name, endings[i])) {
            return strlen(endings[i]);
        }
    }
    return 0;
}

/* Whether the file is the log of a database that is a source, and so a part of it. */
static bool is_log(struct wal__tree_walk *walk, const struct wal__place *place)
{
    size_t ending = wal__tree_log_ending(walk->path);
    size_t size = strlen(walk->path) - ending;
    char first = walk->path[size];
    bool is_part;

    walk->path[size] = '\0';
    is_part = ending > 0 && wal__place_has_session(place, walk->path);
    walk->path[size] = first;
    return is_part;
}

/* Counts a file of sessions that cannot be read, and keeps the first folder of its client. */
static enum wal_status count_unread(struct wal__tree_walk *walk,
                                    const struct wal__walk_entry *entry,
                                    const struct wal__place *place, struct wal_error *error)
{
    size_t below = strlen(walk->path) - place->base;
    size_t size = strlen(entry->path);
    size_t least = strlen(walk->argument);
    struct wal__tree_unread *unread = walk->unread;
    char *name;

    size = size > below && size - below > least ? size - below : least;
    while (unread != NULL && unread->client != place->client) {
        unread = unread->next;
    }
    if (unread == NULL) {
        name = wal__arena_alloc(&walk->import.walk.arena, size + 1);
        unread = wal__arena_alloc(&walk->import.walk.arena, sizeof(*unread));
        if (name == NULL || unread == NULL) {
            return wal__no_memory(error);
        }
        memcpy(name, entry->path, size);
        name[size] = '\0';
        *unread =
            (struct wal__tree_unread){.name = name, .client = place->client, .next = walk->unread};
        walk->unread = unread;
    }
    unread->files++;
    return WAL_OK;
}

/* Reports the clients with sessions that cannot be read, once each. */
static enum wal_status report_unread(struct wal__tree_walk *walk, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (struct wal__tree_unread *unread = walk->unread; status == WAL_OK && unread != NULL;
         unread = unread->next) {
        const struct wal__client *client = wal__client_at(unread->client);
        const char *advice = client->advice != NULL
                                 ? client->advice
                                 : "to keep one as it is, import its path with --dialect lines";

        if (!unread->is_reported) {
            unread->is_reported = true;
            status = wal__fail(
                error, WAL_EVERSION,
                "%" PRIu64 " %s with sessions of %s, which this version does not read: %s",
                unread->files, unread->files == 1 ? "file" : "files", client->name, advice);
            status = wal__import_fail(&walk->import, unread->name, status, error);
        }
    }
    return status;
}

/* Whether a file below a directory is a source. Counts it if it is not. */
static bool is_wanted(struct wal__tree_walk *walk, const struct wal__walk_entry *entry,
                      const struct client_file *file, bool *must_be_session)
{
    const struct wal__place place = file->place;
    char below[WAL__CLIENT_BELOW_SIZE];

    *must_be_session = false;
    if ((walk->flags & WAL_IMPORT_ALL_FILES) != 0) {
        return true;
    }
    if (file->path != NULL && !file->is_unread) {
        /* Also where a client keeps its sessions. */
        if (!wal__client_is_session_name(entry->name) &&
            wal__left_kind_of(entry->name) == WAL__FILE_CREDENTIALS) {
            tree_leave_out(&walk->import, entry->name, walk->path);
            return false;
        }
        *must_be_session = is_hard_link(&entry->stat) || has_ending(entry->name, ".db");
        return true;
    }
    switch (place.kind) {
    case WAL__PLACE_PLAIN:
        *must_be_session = (walk->flags & WAL_IMPORT_OTHER_FILES) == 0;
        if (!file->is_unread) {
            return true;
        }
        break;
    case WAL__PLACE_ABOVE:
    case WAL__PLACE_IGNORED:
        return false;
    case WAL__PLACE_CLIENT:
    case WAL__PLACE_LEFT_OUT:
        break;
    }
    if (!is_log(walk, &place)) {
        tree_leave_out(&walk->import,
                       place.kind == WAL__PLACE_PLAIN ? relative_path(walk, entry)
                                                      : wal__place_below(&place, walk->path, below),
                       walk->path);
    }
    return false;
}

#define PACKED_ENDING ".zst"

/* Removes the ending of a compressed file from the paths if without it the file is a client's
 * session, or one of lines. */
static void unpack_path(struct wal__tree_walk *walk, const struct wal__walk_entry *entry,
                        struct wal__tree_source *source)
{
    const size_t ending = sizeof(PACKED_ENDING) - 1;
    size_t size = strlen(walk->path);

    if (!has_ending(entry->name, PACKED_ENDING) || wal__dialect_is(walk->import.forced, "lines")) {
        return;
    }
    walk->path[size - ending] = '\0';
    if (client_file(walk, entry).path == NULL && !has_ending(walk->path, ".jsonl")) {
        walk->path[size - ending] = PACKED_ENDING[0];
        return;
    }
    snprintf(walk->plain, sizeof(walk->plain), "%.*s", (int)(strlen(source->path) - ending),
             source->path);
    source->path = walk->plain;
    source->is_packed = true;
}

/* Whether the file is there without compression too: then the compressed one is not read. */
static bool has_plain_file(const struct wal__tree_walk *walk)
{
    struct stat plain;

    return lstat(walk->path, &plain) == 0 && S_ISREG(plain.st_mode);
}

/* Whether a client's session in one object, NAME.json, is there as lines, NAME.jsonl, too: a newer
 * version of the client went on in those. */
static bool has_file_of_lines(struct wal__tree_walk *walk)
{
    size_t size = strlen(walk->path);
    bool has_lines = false;

    if (wal__is_json_name(walk->path) && size + 1 < sizeof(walk->path)) {
        memcpy(walk->path + size, "l", 2);
        has_lines = has_plain_file(walk);
        walk->path[size] = '\0';
    }
    return has_lines;
}

/* Whether the session is also in the file that its client names first for its id: a newer version
 * of the client went on in that. */
static bool has_first_file(const struct wal__tree_walk *walk, const struct wal__place *place)
{
    static const char mark[] = "{id}";
    const struct wal__client *client = wal__client_at(place->client);
    const size_t size = strlen(walk->path);
    char buffer[WAL__CLIENT_BELOW_SIZE];
    char path[WAL__CLIENT_BELOW_SIZE];
    const char *below = wal__place_below(place, walk->path, buffer);
    const struct wal_slice id = wal__client_read_path(client, below).id;
    const char *at = strstr(client->files[0], mark);
    struct stat first;

    if (id.size == 0 || at == NULL || strpbrk(client->files[0], "*[") != NULL ||
        size < strlen(below) || strcmp(walk->path + size - strlen(below), below) != 0) {
        return false;
    }
    return (size_t)snprintf(path, sizeof(path), "%.*s%.*s%.*s%s", (int)(size - strlen(below)),
                            walk->path, (int)(at - client->files[0]), client->files[0], WAL_ARG(id),
                            at + sizeof(mark) - 1) < sizeof(path) &&
           strcmp(path, walk->path) != 0 && lstat(path, &first) == 0 && S_ISREG(first.st_mode);
}

static enum wal_status walk_file(struct wal__tree_walk *walk, struct wal__walk_entry *entry,
                                 struct wal_error *error)
{
    struct wal__tree_source source = {
        .name = entry->path,
        .path = relative_path(walk, entry),
        .size = (uint64_t)entry->stat.st_size,
        .is_argument = is_argument(walk, entry),
        .is_any_file = (walk->flags & TAKES_OTHERS) != 0,
    };
    struct client_file file;
    enum wal_status status;

    set_path(walk, entry);
    source.below = source.is_argument ? "" : source.path;
    unpack_path(walk, entry, &source);
    if (source.is_packed && !source.is_argument && has_plain_file(walk)) {
        return WAL_OK;
    }
    file = client_file(walk, entry);
    if (!source.is_argument && file.path != NULL && !file.is_unread &&
        (has_file_of_lines(walk) || has_first_file(walk, &file.place))) {
        return WAL_OK;
    }
    source.is_matched_by_id = file.path != NULL || (walk->flags & TAKES_OTHERS) == 0;
    if (!source.is_argument && !is_wanted(walk, entry, &file, &source.must_be_session)) {
        status = file.is_unread ? count_unread(walk, entry, &file.place, error) : WAL_OK;
        return status;
    }
    if (file.path != NULL && (file.is_unread || (walk->flags & TAKES_OTHERS) == 0)) {
        source.path = file.path;
    }
    if (file.path != NULL && !file.is_unread) {
        source.dialect = wal__dialect_find(wal__client_at(file.place.client)->dialect);
    }
    if (!source.is_argument) {
        walk->parent = place_above(walk, entry);
    }
    return walk->file(walk, &source, error);
}

/* A symbolic link below an argument. */
static enum wal_status visit_link(struct wal__tree_walk *walk, struct wal__walk_entry *entry,
                                  struct wal_error *error)
{
    struct wal__place place = place_above(walk, entry);
    enum wal__symlink_kind kind;
    enum wal_status status;

    if (place.kind == WAL__PLACE_ABOVE || place.kind == WAL__PLACE_IGNORED) {
        return WAL_OK;
    }
    set_path(walk, entry);
    kind = wal__place_symlink(&place, walk->path);
    if (kind == WAL__SYMLINK_FOLLOWED) {
        entry->is_followed = true;
        return WAL_OK;
    }
    walk->import.result.left_out[WAL__FILE_LINK]++;
    if (kind == WAL__SYMLINK_OTHER) {
        return WAL_OK;
    }
    status =
        wal__fail(error, WAL_EOUTSIDE,
                  "a link that leads to no folder of its owner is not followed: import what it "
                  "leads to");
    return wal__import_fail(&walk->import, entry->path, status, error);
}

/* *is_session: the open file has lines of a dialect, or the name of a session.
 * It allocates in the arena for one source. */
static enum wal_status tree_is_session(struct wal__import *import, int fd, const char *path,
                                       bool *is_session, struct wal_error *error)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    struct wal__file_probe probe = {.end = 0};
    struct stat stat;

    if (fstat(fd, &stat) != 0) {
        return wal__import_errno(error);
    }
    *is_session = wal__client_is_session_name(name) && !is_hard_link(&stat);
    if (*is_session || !(has_ending(name, ".jsonl") || wal__is_json_name(name))) {
        return WAL_OK;
    }
    if (wal__file_probe(&import->arena, fd, (uint64_t)stat.st_size, import->forced, &probe) < 0) {
        return wal__import_errno(error);
    }
    *is_session =
        probe.is_whole || (has_ending(name, ".jsonl") &&
                           (import->forced != NULL || probe.dialect != &wal__dialect_lines));
    return wal__import_check_memory(import, error);
}

/* --- walk ---------------------------------------------------------------- */

static enum wal_status visit(struct wal__tree_walk *walk, struct wal__walk_entry *entry,
                             struct wal_error *error)
{
    enum wal_status status;

    switch (entry->kind) {
    case WAL__WALK_FOLDER:
        status = enter_directory(walk, entry, error);
        return status == WAL_OK ? report_folder(walk, entry, error) : status;
    case WAL__WALK_FILE:
        return walk_file(walk, entry, error);
    case WAL__WALK_UNREADABLE:
        if (walk->is_below && entry->error == ENOENT) {
            return WAL_OK;
        }
        errno = entry->error;
        status = wal__import_errno(error);
        return wal__import_fail(&walk->import, entry->path, status, error);
    case WAL__WALK_LINK:
        if (!is_argument(walk, entry)) {
            return visit_link(walk, entry, error);
        }
        break;
    case WAL__WALK_OTHER:
        if (!is_argument(walk, entry)) {
            return WAL_OK;
        }
        break;
    }
    status = wal__fail(error, WAL_ENOTFILE, "neither a regular file nor a directory");
    return wal__import_fail(&walk->import, entry->path, status, error);
}

/* Resolves the argument; a path that does not exist is reported by the walk. A link that a walk of
 * the client's folder follows is a folder of the client. */
static void resolve(struct wal__tree_walk *walk)
{
    const char *slash = strrchr(walk->argument, '/');
    struct wal__place place;
    char folder[WAL__CLIENT_PATH_SIZE];
    size_t size;

    wal__places_read(&walk->places);
    if (slash != NULL && slash != walk->argument && slash[1] != '\0' &&
        (size_t)(slash - walk->argument) < sizeof(folder)) {
        memcpy(folder, walk->argument, (size_t)(slash - walk->argument));
        folder[slash - walk->argument] = '\0';
        if (realpath(folder, walk->resolved) != NULL) {
            place = wal__place_of_argument(&walk->places, walk->resolved);
            size = strlen(walk->resolved);
            snprintf(walk->path, sizeof(walk->path), "%s%s", walk->resolved, slash);
            if (wal__place_symlink(&place, walk->path) == WAL__SYMLINK_FOLLOWED &&
                strlen(walk->path) < sizeof(walk->resolved)) {
                memcpy(walk->resolved + size, slash, strlen(slash) + 1);
                return;
            }
        }
    }
    static_assert(sizeof(walk->resolved) >= PATH_MAX, "realpath's buffer");
    if (realpath(walk->argument, walk->resolved) == NULL) {
        snprintf(walk->resolved, sizeof(walk->resolved), "%s", walk->argument);
    }
}

/* The path may be a link if `follows`. */
static enum wal_status walk_path(struct wal__tree_walk *walk, const char *path, bool follows,
                                 struct wal_error *error)
{
    struct wal__walk files = {.heap = walk->import.heap, .argument = path, .follows = follows};
    struct wal__walk_entry *entry = NULL;
    enum wal_status status;

    /* A folder is listed before its files are visited: none of them is exported meanwhile. */
    wal__view_index_refresh(&walk->import.views);
    do {
        status = wal__walk_next(&files, &entry);
        if (status != WAL_OK) {
            status = wal__no_memory(error);
        } else if (entry != NULL) {
            status = visit(walk, entry, error);
        }
    } while (status == WAL_OK && entry != NULL);
    wal__walk_deinit(&files);
    return status;
}

enum wal_status wal__tree_walk_argument(struct wal__tree_walk *walk, char *argument,
                                        struct wal_error *error)
{
    enum wal_status status;

    walk->argument = argument;
    walk->is_below = false;
    resolve(walk);
    status = walk_path(walk, argument, true, error);
    return status == WAL_OK ? report_unread(walk, error) : status;
}

enum wal_status wal__tree_walk_below(struct wal__tree_walk *walk, char *argument, const char *path,
                                     const struct wal__place *parent, struct wal_error *error)
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
    return walk_path(walk, name, false, error);
}

/* --- options ------------------------------------------------------------- */

enum wal_status wal__tree_check_arguments(const struct wal_slice *paths, uint32_t count,
                                          const struct wal_import_options *options,
                                          struct wal_error *error)
{
    const uint32_t flags = WAL_IMPORT_ALL_FILES | WAL_IMPORT_OTHER_FILES;

    if ((paths == NULL && count > 0) || (options->flags & ~flags) != 0) {
        return wal__invalid(error, "paths must not be NULL, and flags "
                                   "must be known");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (paths[i].size > 0 &&
            (paths[i].data == NULL || memchr(paths[i].data, '\0', (size_t)paths[i].size) != NULL)) {
            return wal__invalid(error, "a path must not contain a zero byte");
        }
    }
    return WAL_OK;
}

enum wal_status wal__tree_set_options(struct wal__tree_walk *walk,
                                      const struct wal_import_options *options,
                                      struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    const char *text;

    if (options == NULL) {
        return WAL_OK;
    }
    walk->flags = options->flags;
    import->progress = options->progress;
    import->report = options->report;
    import->project = options->project;
    import->ctx = options->ctx;
    if (options->exclude.size > 0) {
        text = wal__import_text(&import->walk.arena, options->exclude);
        walk->has_exclude = text != NULL && stat(text, &walk->exclude) == 0;
    }
    if (options->dialect.size > 0) {
        text = wal__import_text(&import->walk.arena, options->dialect);
        import->forced = text != NULL ? wal__dialect_find(text) : NULL;
        if (text != NULL && import->forced == NULL) {
            return wal__fail(error, WAL_ENOTFOUND, "there is no dialect '%s'", text);
        }
    }
    return wal__import_check_memory(import, error);
}

/* --- import -------------------------------------------------------------- */

/* Begins a source. */
static void reset(struct wal__import *import, const struct wal__tree_source *source)
{
    wal__heap_arena_reset(&import->arena);
    import->opened_ns = 0;
    import->view_session = NULL;
    import->placed = source->dialect;
    import->is_deferred = false;
    import->matches_ids = source->is_matched_by_id;
    import->refuses_binary = !source->is_any_file && !wal__dialect_is(import->forced, "lines");
}

/* --- files --------------------------------------------------------------- */

static enum wal_status import_open_file(struct wal__import *import, int fd,
                                        const struct wal__tree_source *source,
                                        struct wal_error *error)
{
    bool is_view = false;
    struct stat stat;
    /* A client may have made the file and written nothing yet. */
    bool is_session = source->is_any_file || fstat(fd, &stat) != 0 || stat.st_size > 0;
    enum wal_status status = wal__import_view(import, fd, source->name, &is_view, error);

    if (status == WAL_OK && !is_view && is_session && source->must_be_session) {
        status = tree_is_session(import, fd, source->path, &is_session, error);
    }
    if (status == WAL_OK && !is_session) {
        tree_leave_out(import, source->path, source->name);
        import->result.sources--;
        return WAL_OK;
    }
    return status == WAL_OK && !is_view
               ? wal__import_file(import, fd, source->name, source->path, error)
               : status;
}

/* Imports what a compressed file contains. While that is read, no other import reads the file. */
static enum wal_status import_packed_file(struct wal__import *import, int fd,
                                          const struct wal__tree_source *source,
                                          struct wal_error *error)
{
    bool is_known = false;
    enum wal_status status =
        source->must_be_session
            ? WAL_OK
            : wal__import_known_file(import, source->name, source->path, &is_known, error);
    int plain = -1;

    if (status == WAL_OK && is_known) {
        return WAL_OK;
    }
    if (status == WAL_OK) {
        status = wal__source_file_lock(import, fd, source->name, error);
    }
    if (status == WAL_OK) {
        status = wal__file_unpack(import->heap, fd, WAL__UNPACKED_SIZE_MAX, &plain, error);
    }
    if (status == WAL_OK) {
        status = import_open_file(import, plain, source, error);
        close(plain);
    }
    return status;
}

/* Adds a source to those that wait. */
static enum wal_status defer(struct wal__import *import, const struct wal__tree_source *source,
                             struct wal_error *error)
{
    struct wal__arena *arena = &import->walk.arena;
    struct wal__tree_source *deferred;

    if (!WAL__HEAP_GROW(import->heap, import->deferred, import->deferred_count,
                        import->deferred_capacity)) {
        return wal__no_memory(error);
    }
    import->result.sources--;
    deferred = &import->deferred[import->deferred_count++];
    *deferred = *source;
    deferred->name = wal__arena_copy_text(arena, source->name);
    deferred->path = wal__arena_copy_text(arena, source->path);
    deferred->below = wal__arena_copy_text(arena, source->below);
    return wal__import_check_memory(import, error);
}

enum wal_status wal__tree_import_file(struct wal__tree_walk *walk,
                                      const struct wal__tree_source *source,
                                      struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    int flags = source->is_argument ? 0 : O_NOFOLLOW;
    /* A client's file of another dialect is not opened for this. */
    bool may_be_whole = !source->is_packed &&
                        (source->dialect == NULL || source->dialect == &wal__dialect_opencode);
    bool is_database = false;
    bool is_exported = false;
    enum wal_status status;
    struct timespec now;
    int fd;

    import->result.sources++;
    reset(import, source);
    if (may_be_whole && (!source->must_be_session || has_ending(source->path, ".db"))) {
        status = wal__import_database(import, source->name, source->path, &is_database, error);
        if (status != WAL_OK || is_database) {
            return status;
        }
    }
    if (may_be_whole && (!source->must_be_session || wal__is_json_name(source->path))) {
        status = wal__import_exported(import, source->name, source->path, &is_exported, error);
        if (status != WAL_OK || is_exported) {
            return status;
        }
    }
    fd = open(source->name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags);
    (void)clock_gettime(CLOCK_REALTIME, &now);
    if (fd < 0 || fstat(fd, &import->stat) != 0) {
        status = wal__import_errno(error);
    } else {
        import->opened_ns = wal__time_ns(&now);
        status = source->is_packed ? import_packed_file(import, fd, source, error)
                                   : import_open_file(import, fd, source, error);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (status != WAL_OK) {
        return wal__import_fail(import, source->name, status, error);
    }
    return import->is_deferred ? defer(import, source, error) : WAL_OK;
}

enum wal_status wal__tree_import_deferred(struct wal__tree_walk *walk, struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    enum wal_status status = WAL_OK;
    uint32_t before = UINT32_MAX;

    while (status == WAL_OK && import->deferred_count > 0) {
        uint32_t count = import->deferred_count;

        /* Once no file has got what it waits for, none waits any longer. */
        import->defers = count < before;
        before = count;
        for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
            struct wal__tree_source source = import->deferred[i];

            import->deferred_begin = i + 1;
            status = wal__tree_import_file(walk, &source, error);
        }
        import->deferred_count -= import->deferred_begin;
        memmove(import->deferred, import->deferred + import->deferred_begin,
                import->deferred_count * sizeof(import->deferred[0]));
        import->deferred_begin = 0;
    }
    import->defers = true;
    return status;
}

enum wal_status wal__tree_import_directory(struct wal__tree_walk *walk,
                                           const struct wal__tree_source *source,
                                           struct wal_error *error)
{
    struct wal__import *import = &walk->import;

    import->result.sources++;
    reset(import, source);
    return wal__import_dir(import, source->name, source->path, source->dialect, source->files,
                           error);
}

/* --- scan ---------------------------------------------------------------- */

static_assert((int)WAL_IMPORT_CREDENTIALS == (int)WAL__FILE_CREDENTIALS &&
                  (int)WAL_IMPORT_LINKS == (int)WAL__FILE_LINK &&
                  (int)WAL_IMPORT_OTHERS == (int)WAL__FILE_OTHER &&
                  (int)WAL_IMPORT_LEFT_OUT_SIZE == (int)WAL__FILE_KINDS,
              "the public kinds are those of client.h");

/* Opens a file that counts only with the content of a session. */
static enum wal_status check_content(struct wal__import *import,
                                     const struct wal__tree_source *source, bool *is_session,
                                     struct wal_error *error)
{
    struct wal__session_dir dir = {.import = import, .root = "."};
    enum wal_status status = WAL_OK;
    int packed;
    int fd;

    if (wal__is_json_name(source->path)) {
        *is_session = wal__session_dir_read_exported(&dir, source->name);
        status = wal__import_check_memory(import, error);
        if (status != WAL_OK || *is_session) {
            return status;
        }
    }
    fd = open(source->name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return wal__import_errno(error);
    }
    if (source->is_packed) {
        packed = fd;
        status = wal__file_unpack(import->heap, packed, WAL__UNPACKED_SIZE_MAX, &fd, error);
        close(packed);
    }
    if (status == WAL_OK) {
        status = tree_is_session(import, fd, source->path, is_session, error);
        close(fd);
    }
    return status;
}

/* Counts the sessions of a file that may be a database; otherwise *sessions is unchanged. */
static enum wal_status count_sessions(struct wal__import *import,
                                      const struct wal__tree_source *source, uint64_t *sessions,
                                      struct wal_error *error)
{
    struct wal__session_database *database = NULL;
    enum wal_status status = wal__session_database_open(
        import, source->name, source->dialect != NULL ? source->path : NULL, 0, &database, error);

    if (status == WAL_OK && database != NULL) {
        status = wal__session_database_count(database, sessions, error);
    }
    wal__session_database_close(database);
    return status;
}

/* A wal__tree_visit_fn. */
static enum wal_status scan_file(struct wal__tree_walk *walk, const struct wal__tree_source *source,
                                 struct wal_error *error)
{
    const uint64_t none = UINT64_MAX;
    struct wal__import *import = &walk->import;
    bool is_session = true;
    uint64_t sessions = none;
    enum wal_status status = WAL_OK;

    wal__heap_arena_reset(&import->arena);
    if (has_ending(source->path, ".db")) {
        status = count_sessions(import, source, &sessions, error);
    }
    if (status == WAL_OK && sessions == none && source->must_be_session) {
        status = check_content(import, source, &is_session, error);
    }
    if (status != WAL_OK) {
        return wal__import_fail(import, source->name, status, error);
    }
    if (!is_session) {
        tree_leave_out(import, source->path, source->name);
        return WAL_OK;
    }
    import->result.sources++;
    import->result.sessions += sessions == none ? 1 : sessions;
    import->result.bytes += source->size;
    return wal__import_progress(import, source->name, source->size, source->size, error);
}

/* Adds up the sizes of the directory's files. */
static void add_sizes(const struct wal__session_dir *dir)
{
    struct stat stat;

    for (size_t i = 0; i < dir->file_count; i++) {
        const char *name =
            wal__import_path(&dir->import->arena.arena, dir->root, dir->files[i].path);

        if (name != NULL && lstat(name, &stat) == 0) {
            dir->import->result.bytes += (uint64_t)stat.st_size;
        }
    }
}

/* A wal__tree_visit_fn. */
static enum wal_status scan_directory(struct wal__tree_walk *walk,
                                      const struct wal__tree_source *source,
                                      struct wal_error *error)
{
    struct wal__import *import = &walk->import;
    struct wal__session_dir dir = {
        .import = import, .root = source->name, .patterns = source->files};
    enum wal_status status;

    wal__heap_arena_reset(&import->arena);
    status = wal__session_dir_list_files(&dir, error);
    if (status == WAL_OK) {
        if (source->dialect->read_ops->stream != NULL) {
            wal__session_dir_group_single(&dir);
        } else {
            wal__session_dir_group_storage(&dir);
        }
        add_sizes(&dir);
        import->result.sources++;
        import->result.sessions += dir.group_count;
        status = wal__import_check_memory(import, error);
    }
    return status == WAL_OK ? wal__import_progress(import, source->name, 0, 0, error) : status;
}

/* --- interface ----------------------------------------------------------- */

void wal__tree_init(struct wal__tree_walk *walk, struct wal_store *store,
                    const struct wal__heap *heap)
{
    struct wal__import *import = &walk->import;

    import->store = store;
    import->heap = heap;
    import->defers = true;
    import->first.struct_size = sizeof(import->first);
    import->result.struct_size = sizeof(import->result);
    wal__heap_arena_init(&import->arena, heap);
    wal__heap_arena_init(&import->walk, heap);
    wal__view_index_init(&import->views, store, heap);
    walk->file = wal__tree_import_file;
    walk->directory = wal__tree_import_directory;
}

void wal__tree_deinit(struct wal__tree_walk *walk)
{
    struct wal__import *import = &walk->import;

    wal__heap_arena_deinit(&import->arena);
    wal__heap_arena_deinit(&import->walk);
    wal__heap_free(import->heap, import->deferred);
    wal__view_index_deinit(&import->views);
}

static enum wal_status walk_arguments(struct wal__tree_walk *walk, const struct wal_slice *paths,
                                      uint32_t count, struct wal_error *error)
{
    enum wal_status status = WAL_OK;

    for (uint32_t i = 0; status == WAL_OK && i < count; i++) {
        char *argument = wal__import_text(&walk->import.walk.arena, paths[i]);

        status = argument != NULL ? wal__tree_walk_argument(walk, argument, error)
                                  : wal__no_memory(error);
    }
    return status == WAL_OK ? wal__tree_import_deferred(walk, error) : status;
}

enum wal_status wal__tree_run(struct wal_store *store, const struct wal_slice *paths,
                              uint32_t count, enum wal__tree_call call,
                              const struct wal_import_options *options,
                              const struct wal__heap *heap, struct wal_import_result *result,
                              struct wal_error *error)
{
    struct wal_error cause = {.struct_size = sizeof(cause)};
    struct wal__tree_walk *walk = wal__heap_zalloc(heap, sizeof(*walk));
    enum wal_status sync_status;
    enum wal_status status;

    if (walk == NULL) {
        return wal__no_memory(error);
    }
    wal__tree_init(walk, store, heap);
    walk->is_one_source = call == WAL__TREE_IMPORT_ONE;
    if (call == WAL__TREE_SCAN) {
        walk->file = scan_file;
        walk->directory = scan_directory;
    }
    status = wal__tree_set_options(walk, options, &cause);
    if (status == WAL_OK) {
        status = walk_arguments(walk, paths, count, &cause);
    }
    if (status == WAL_OK && walk->is_one_source) {
        status = (enum wal_status)walk->import.first.status;
        cause = walk->import.first;
    }
    sync_status = wal__import_sync(&walk->import, status == WAL_OK ? &cause : NULL);
    status = status == WAL_OK ? sync_status : status;
    *result = walk->import.result;
    if (status != WAL_OK) {
        wal__error_copy(error, &cause);
    }
    wal__tree_deinit(walk);
    wal__heap_free(heap, walk);
    return status;
}

/* Checks the arguments of a public call, and runs it. A scan alone needs no store, and a result. */
static enum wal_status run(struct wal_store *store, const struct wal_slice *paths, uint32_t count,
                           enum wal__tree_call call, const struct wal_import_options *options,
                           struct wal_import_result *result, struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_result);
    struct wal_import_result done = WAL_INIT(wal_import_result);
    struct wal_import_options own;
    enum wal_status status =
        wal__struct_load(WAL__STRUCT(wal_import_options), &own, options, error);

    if (status == WAL_OK) {
        status = store != NULL || call == WAL__TREE_SCAN
                     ? wal__tree_check_arguments(paths, count, &own, error)
                     : wal__invalid(error, "store must not be NULL");
    }
    if (status == WAL_OK) {
        status = call == WAL__TREE_SCAN ? wal__struct_check_output(type, result, error)
                                        : wal__struct_check_optional(type, result, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    status = wal__tree_run(store, paths, count, call, &own, &wal__heap_libc, &done, error);
    wal__struct_store(type, result, &done);
    return status;
}

enum wal_status wal_import_file(struct wal_store *store, struct wal_slice path,
                                const struct wal_import_options *options,
                                struct wal_import_result *result, struct wal_error *error)
{
    return run(store, &path, 1, WAL__TREE_IMPORT_ONE, options, result, error);
}

enum wal_status wal_import_tree(struct wal_store *store, const struct wal_slice *paths,
                                uint32_t path_count, const struct wal_import_options *options,
                                struct wal_import_result *result, struct wal_error *error)
{
    return run(store, paths, path_count, WAL__TREE_IMPORT, options, result, error);
}

enum wal_status wal_import_scan(const struct wal_slice *paths, uint32_t path_count,
                                const struct wal_import_options *options,
                                struct wal_import_result *result, struct wal_error *error)
{
    return run(NULL, paths, path_count, WAL__TREE_SCAN, options, result, error);
}

const char *wal_import_dialect(uint32_t index)
{
    const struct wal__dialect *dialect = wal__dialect_at(index);

    return dialect != NULL ? dialect->name : NULL;
}

/* Returns the client with this index among the folders of all clients: the first of each, and the
 * others that are set. *is_set: the path of the folder. */
static const struct wal__client *find_folder(uint32_t index, char path[WAL__CLIENT_PATH_SIZE],
                                             bool *is_set)
{
    const struct wal__client *client;

    for (size_t i = 0; (client = wal__client_at(i)) != NULL; i++) {
        for (size_t f = 0; client->folders[0].home != NULL && f < WAL__CLIENT_FOLDERS; f++) {
            *is_set = wal__client_folder(client, &client->folders[f], path);
            if ((f == 0 || *is_set) && index-- == 0) {
                return client;
            }
        }
    }
    return NULL;
}

enum wal_status wal_import_client(uint32_t index, struct wal_import_client *client,
                                  struct wal_error *error)
{
    const struct wal__struct *type = WAL__STRUCT(wal_import_client);
    struct wal_import_client own = WAL_INIT(wal_import_client);
    enum wal_status status = wal__struct_check_output(type, client, error);
    const struct wal__client *found = NULL;
    bool is_set = false;

    if (status == WAL_OK) {
        found = find_folder(index, own.folder, &is_set);
        status = found != NULL ? WAL_OK : WAL_END;
    }
    if (status != WAL_OK) {
        return status;
    }
    own.name = found->name;
    own.dialect = found->dialect != NULL ? found->dialect : "";
    if (!is_set) {
        own.folder[0] = '\0';
    }
    wal__struct_store(type, client, &own);
    return is_set ? WAL_OK : wal__fail(error, WAL_ENOTFOUND, "HOME is not set");
}

const char *wal_import_left_out_name(uint32_t kind)
{
    return wal__left_kind_name((enum wal__left_kind)kind);
}
