/*
 * walconv_import - walks the files and directories of an import.
 *
 * Invariant: files are taken in the order of their names, so that the same
 * tree gives the same sessions. Symbolic links inside a tree are not followed,
 * and the store itself is not imported.
 *
 * Threads: one.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/walconv.h"
#include "tools/walconv_tree.h"

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static int import_path(const struct walconv_import *import, const char *name,
                       const char *path)
{
    int fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    int code;

    if (fd < 0) {
        return cli_error(import->cli, CLI_FAILED, name, "%s", strerror(errno));
    }
    code = walconv_import_file(import, fd, name, path);
    close(fd);
    return code;
}

/* What a file is called below the argument: for the argument itself its
 * name. */
static const char *below(const FTSENT *entry, const char *argument)
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
        walconv_tree_recognise(entry->fts_path, import->forced);

    if (dialect == NULL) {
        return CLI_DONE;
    }
    fts_set(tree, entry, FTS_SKIP);
    return walconv_import_tree(
        import, entry->fts_path,
        entry->fts_level == 0 ? "" : below(entry, argument), dialect);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static int import_entry(const struct walconv_import *import, FTS *tree,
                        FTSENT *entry, const char *argument,
                        const struct stat *store)
{
    if (entry->fts_info == FTS_D) {
        if (is_same(entry->fts_statp, store)) {
            fts_set(tree, entry, FTS_SKIP);
            return CLI_DONE;
        }
        return import_directory(import, tree, entry, argument);
    }
    if (entry->fts_info == FTS_F) {
        return import_path(import, entry->fts_path, below(entry, argument));
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
    return CLI_DONE;
}

static int import_argument(const struct walconv_import *import, char *argument,
                           const struct stat *store)
{
    char *paths[] = {argument, NULL};
    FTS *tree =
        fts_open(paths, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
    FTSENT *entry;
    int code = CLI_DONE;

    if (tree == NULL) {
        return cli_error(import->cli, CLI_FAILED, argument, "%s",
                         strerror(errno));
    }
    while (errno = 0, (entry = fts_read(tree)) != NULL) {
        code =
            cli_worse(code, import_entry(import, tree, entry, argument, store));
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
        return CLI_GO_ON;
    }
    import->forced = wal__dialect_find(name);
    if (import->forced == NULL) {
        return cli_error(import->cli, CLI_USAGE, "--dialect",
                         "'%s' is none (see: walconv dialects)", name);
    }
    return CLI_GO_ON;
}

int walconv_import(struct cli *cli, int argc, char **argv)
{
    const char *dialect = "auto";
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    struct progress progress;
    struct walconv_import import = {.cli = cli, .progress = &progress};
    struct stat store = {.st_ino = 0};
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 3, argc);
    }
    if (code == CLI_GO_ON) {
        code = set_dialect(&import, dialect);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1], 0, &import.store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    progress_init(&progress, !cli->no_progress);
    if (stat(cli->items[1], &store) != 0) {
        store.st_ino = 0;
    }
    code = CLI_DONE;
    for (int i = 2; i < cli->count; i++) {
        code = cli_worse(code, import_argument(&import, cli->items[i], &store));
    }
    progress_clear(&progress);
    return cli_close(cli, cli->items[1], import.store, code);
}
