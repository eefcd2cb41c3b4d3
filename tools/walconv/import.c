/*
 * import.c - walks the files and directories of an import.
 *
 * Invariant: files are taken in the order of their names, those that name
 * another session as what they come from behind it; so the same tree gives the
 * same sessions. Symbolic links inside a tree are not followed, and the store
 * itself is not imported.
 *
 * Threads: one.
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

/* A file that was put off. */
struct deferred {
    char *name; /* null: it was imported */
    char *path;
};

struct walconv_deferred {
    struct deferred *items;
    size_t count;
    size_t capacity;
};

/* Whether the file names sessions that it may be a copy of, and the store has
 * none of them. */
static bool must_defer(const struct walconv_import *import, int fd)
{
    struct walconv_origins origins = {.count = 0};
    struct stat stat;
    bool answer;

    answer = fstat(fd, &stat) == 0 &&
             walconv_origins_read(fd, (uint64_t)stat.st_size, &origins) == 0 &&
             walconv_origins_are_missing(&origins, import->store);
    walconv_origins_deinit(&origins);
    return answer;
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

/* Imports a file; with `may_defer`, *is_deferred: it must_defer. */
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

/* Imports the files that wait once more; without `may_defer` all. Answers
 * whether there was one. */
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

/* What must_defer for a session that does not come is imported as it is. */
static int import_deferred(const struct walconv_import *import)
{
    int code = CLI_OK;

    while (import_deferred_once(import, true, &code)) {
    }
    (void)import_deferred_once(import, false, &code);
    free(import->deferred->items);
    return code;
}

/* What a file is called relative_path the argument: for the argument itself its
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

/* Imports a directory that is a tree, and keeps its files from being imported
 * one by one. */
static int import_directory(const struct walconv_import *import, FTS *tree,
                            FTSENT *entry, const char *argument)
{
    const struct wal__dialect *dialect =
        walconv_dir_detect(entry->fts_path, import->forced);

    if (dialect == NULL) {
        return CLI_OK;
    }
    fts_set(tree, entry, FTS_SKIP);
    return walconv_import_dir(
        import, entry->fts_path,
        entry->fts_level == 0 ? "" : relative_path(entry, argument), dialect);
}

static bool is_same_inode(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Whether it is the folder that views keep beside their files. */
static bool is_state_dir(const FTSENT *entry)
{
    return entry->fts_level > 0 && strcmp(entry->fts_name, ".agentwal") == 0;
}

static int import_entry(const struct walconv_import *import, FTS *tree,
                        FTSENT *entry, const char *argument,
                        const struct stat *store)
{
    if (entry->fts_info == FTS_D) {
        if (is_same_inode(entry->fts_statp, store) || is_state_dir(entry)) {
            fts_set(tree, entry, FTS_SKIP);
            return CLI_OK;
        }
        return import_directory(import, tree, entry, argument);
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
    FTS *tree =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    FTSENT *entry;
    int code = CLI_OK;

    if (tree == NULL) {
        return cli_error(import->cli, CLI_FAILED, argument, "%s",
                         strerror(errno));
    }
    while (errno = 0, (entry = fts_read(tree)) != NULL) {
        code = cli_worse_code(
            code, import_entry(import, tree, entry, argument, store));
    }
    if (errno != 0) {
        code =
            cli_error(import->cli, CLI_FAILED, argument, "%s", strerror(errno));
    }
    fts_close(tree);
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
                         "'%s' is none (see: walconv dialects)", name);
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

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, argc);
    }
    if (code == CLI_CONTINUE) {
        code = set_dialect(&import, dialect);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &import.store);
    }
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
