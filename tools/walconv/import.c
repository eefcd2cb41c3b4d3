/*
 * import.c - walk the files and directories of an import.
 *
 * Invariant: files are imported in the order of their names, except that a file
 * that names another session as its origin waits for that session; so equal
 * directories give equal sessions. Symbolic links inside a directory are not
 * followed, and the store itself is not imported.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/walconv/import/copy_origin.h"
#include "tools/walconv/import_dir/session_dir.h"
#include "tools/walconv/import_view.h"
#include "tools/walconv/walconv.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* A file whose import was deferred. */
struct deferred {
    char *name; /* NULL: it was imported since */
    char *path;
};

struct walconv_deferred {
    struct deferred *items;
    size_t count;
    size_t capacity;
};

/* Returns true if the file may be a copy of sessions it names, and none of
 * these is in the store. */
static bool must_defer(const struct walconv_import *import, int fd)
{
    struct walconv_origins origins = {.count = 0};
    struct stat stat;
    bool must_wait;

    must_wait =
        fstat(fd, &stat) == 0 &&
        walconv_origins_read(fd, (uint64_t)stat.st_size, &origins) == 0 &&
        walconv_origins_are_missing(&origins, import->store);
    walconv_origins_deinit(&origins);
    return must_wait;
}

static void defer(struct walconv_deferred *deferred, const char *name,
                  const char *path)
{
    deferred->items =
        cli_reserve(deferred->items, deferred->count, &deferred->capacity,
                    sizeof(deferred->items[0]));
    deferred->items[deferred->count++] =
        (struct deferred){.name = cli_copy_text(name, strlen(name)),
                          .path = cli_copy_text(path, strlen(path))};
}

/* Imports a file. *is_deferred is true if it must wait for another session;
 * that can happen only with `may_defer`. */
static int import_path(const struct walconv_import *import, const char *name,
                       const char *path, bool may_defer, bool *is_deferred)
{
    int code = CLI_OK;
    int fd;

    *is_deferred = false;
    if (walconv_import_exported(import, name, path, &code)) {
        return code;
    }
    fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) {
        return cli_error(import->cli, CLI_FAILED, name, "%s", strerror(errno));
    }
    if (walconv_import_view(import, fd, name, &code)) {
        close(fd);
        return code;
    }
    if (may_defer && must_defer(import, fd)) {
        *is_deferred = true;
    } else {
        code = walconv_import_file(import, fd, name, path);
    }
    close(fd);
    return code;
}

static int import_or_defer(const struct walconv_import *import,
                           const char *name, const char *path)
{
    bool is_deferred;
    int code = import_path(import, name, path, true, &is_deferred);

    if (is_deferred) {
        defer(import->deferred, name, path);
    }
    return code;
}

/* Tries the deferred files once; without `may_defer`, imports all of them.
 * Returns whether any was imported. */
static bool import_deferred_once(const struct walconv_import *import,
                                 bool may_defer, int *code)
{
    bool has_progress = false;

    for (size_t i = 0; i < import->deferred->count; i++) {
        struct deferred *file = &import->deferred->items[i];
        bool is_deferred = false;

        if (file->name == NULL) {
            continue;
        }
        *code =
            cli_worse_code(*code, import_path(import, file->name, file->path,
                                              may_defer, &is_deferred));
        if (!is_deferred) {
            free(file->name);
            free(file->path);
            *file = (struct deferred){.name = NULL};
            has_progress = true;
        }
    }
    return has_progress;
}

/* A file whose origin is not part of the import is imported without it. */
static int import_deferred(const struct walconv_import *import)
{
    int code = CLI_OK;

    while (import_deferred_once(import, true, &code)) {
    }
    (void)import_deferred_once(import, false, &code);
    free(import->deferred->items);
    return code;
}

/* The path of a file relative to the argument; for the argument itself its
 * name. */
static const char *relative_path(const FTSENT *entry, const char *argument)
{
    const char *path = entry->fts_path;
    const char *slash;

    if (entry->fts_level == 0) {
        slash = strrchr(path, '/');
        return slash != NULL ? slash + 1 : path;
    }
    path += strlen(argument);
    while (*path == '/') {
        path++;
    }
    return path;
}

/* Imports a session directory as a whole, and excludes its files from the
 * walk. */
static int import_directory(const struct walconv_import *import, FTS *walk,
                            FTSENT *entry, const char *argument)
{
    const struct wal__dialect *dialect =
        walconv_dir_detect(entry->fts_path, import->forced);

    if (dialect == NULL) {
        return CLI_OK;
    }
    fts_set(walk, entry, FTS_SKIP);
    return walconv_import_dir(
        import, entry->fts_path,
        entry->fts_level == 0 ? "" : relative_path(entry, argument), dialect);
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns true if it is the folder in which views store their state. */
static bool is_state_dir(const FTSENT *entry)
{
    return entry->fts_level > 0 && strcmp(entry->fts_name, ".agentwal") == 0;
}

static int import_entry(const struct walconv_import *import, FTS *walk,
                        FTSENT *entry, const char *argument,
                        const struct stat *store)
{
    if (entry->fts_info == FTS_D) {
        if (is_same_inode(entry->fts_statp, store) || is_state_dir(entry)) {
            fts_set(walk, entry, FTS_SKIP);
            return CLI_OK;
        }
        return import_directory(import, walk, entry, argument);
    }
    if (entry->fts_info == FTS_F) {
        return import_or_defer(import, entry->fts_path,
                               relative_path(entry, argument));
    }
    if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR ||
        entry->fts_info == FTS_NS) {
        return cli_error(import->cli, CLI_FAILED, entry->fts_path, "%s",
                         strerror(entry->fts_errno));
    }
    if (entry->fts_level == 0 && entry->fts_info != FTS_DP) {
        return cli_error(import->cli, CLI_FAILED, entry->fts_path,
                         "neither a regular file nor a directory");
    }
    return CLI_OK;
}

static int import_argument(const struct walconv_import *import, char *argument,
                           const struct stat *store)
{
    char *paths[] = {argument, NULL};
    FTS *walk =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    FTSENT *entry;
    int code = CLI_OK;

    if (walk == NULL) {
        return cli_error(import->cli, CLI_FAILED, argument, "%s",
                         strerror(errno));
    }
    while (errno = 0, (entry = fts_read(walk)) != NULL) {
        code = cli_worse_code(
            code, import_entry(import, walk, entry, argument, store));
    }
    if (errno != 0) {
        code =
            cli_error(import->cli, CLI_FAILED, argument, "%s", strerror(errno));
    }
    fts_close(walk);
    return code;
}

static int set_dialect(struct walconv_import *import, const char *name)
{
    if (strcmp(name, "auto") == 0) {
        return CLI_CONTINUE;
    }
    import->forced = wal__dialect_find(name);
    if (import->forced == NULL) {
        return cli_error(import->cli, CLI_USAGE, "--dialect",
                         "'%s' is not a dialect (see: walconv dialects)", name);
    }
    return CLI_CONTINUE;
}

int walconv_import(struct cli *cli, int argc, char **argv)
{
    const char *dialect = "auto";
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    struct progress progress;
    struct walconv_deferred deferred = {.items = NULL};
    struct walconv_import import = {
        .cli = cli, .progress = &progress, .deferred = &deferred};
    struct stat store = {.st_ino = 0};
    int code = cli_parse(cli, argc, argv, options);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_check_operands(cli, 3, argc);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = set_dialect(&import, dialect);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_store(cli, cli->items[1], 0, &import.store);
    if (code != CLI_CONTINUE) {
        return code;
    }
    progress_init(&progress, !cli->no_progress);
    if (stat(cli->items[1], &store) != 0) {
        store.st_ino = 0;
    }
    code = CLI_OK;
    for (int i = 2; i < cli->count; i++) {
        code = cli_worse_code(code,
                              import_argument(&import, cli->items[i], &store));
    }
    code = cli_worse_code(code, import_deferred(&import));
    progress_clear(&progress);
    return cli_close_store(cli, cli->items[1], import.store, code);
}
