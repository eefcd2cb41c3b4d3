/*
 * import.c - the command import.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/model/dialect.h"
#include "tools/cli/project.h"
#include "tools/walconv/import_print.h"
#include "tools/walconv/walconv.h"

/* One run of the command; the callbacks' ctx. */
struct import {
    const struct cli *cli;
    struct progress progress;
    int code;
    char *directory; /* whose project was found last, or null */
    char project[CLI_PROJECT_SIZE];
};

static int32_t on_report(void *ctx, const struct wal_import_report *report)
{
    struct import *import = ctx;

    progress_clear(&import->progress);
    import->code =
        cli_worse_code(import->code, walconv_print_import(import->cli, report));
    return 0;
}

static int32_t on_progress(void *ctx, struct wal_slice path, uint64_t done,
                           uint64_t total)
{
    struct import *import = ctx;

    progress_update(&import->progress, path.data, done, total, "bytes");
    return 0;
}

/* The project of a directory that exists here, as for `walctl create`. */
static int32_t find_project(void *ctx, struct wal_slice directory,
                            char *project, uint64_t size)
{
    struct import *import = ctx;
    const char *path = directory.data;
    struct stat found;

    if (path[0] != '/' || stat(path, &found) != 0 || !S_ISDIR(found.st_mode)) {
        return 1;
    }
    /* Sessions of one directory follow each other. */
    if (import->directory == NULL || strcmp(import->directory, path) != 0) {
        free(import->directory);
        import->directory = cli_copy_text(path, strlen(path));
        cli_project_find(path, import->project);
    }
    snprintf(project, (size_t)size, "%s", import->project);
    return 0;
}

/* Imports the operands after the store. Returns the exit code. */
static int import_operands(struct import *import, struct wal_store *store,
                           const char *dialect)
{
    const struct cli *cli = import->cli;
    const struct wal_import_options options = {
        .struct_size = sizeof(options),
        .dialect = cli_slice(dialect),
        .exclude = cli_slice(cli->items[1]),
        .progress = on_progress,
        .report = on_report,
        .ctx = import,
        .project = find_project,
    };
    struct wal_error error = CLI_ERROR_INIT;
    uint32_t count = (uint32_t)cli->count - 2;
    struct wal_slice *paths = cli_alloc(count * sizeof(paths[0]));
    enum wal_status status;

    for (uint32_t i = 0; i < count; i++) {
        paths[i] = cli_slice(cli->items[2 + i]);
    }
    progress_init(&import->progress, !cli->no_progress);
    status = wal_import_tree(store, paths, count, &options, NULL, &error);
    progress_clear(&import->progress);
    free(import->directory);
    free(paths);
    return status == WAL_OK ? import->code
                            : cli_report(cli, cli->items[1], status, &error);
}

int walconv_import(struct cli *cli, int argc, char **argv)
{
    const char *dialect = "auto";
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    struct import import = {.cli = cli, .code = CLI_OK};
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, argc);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    if (strcmp(dialect, "auto") == 0) {
        dialect = NULL;
    } else if (wal__dialect_find(dialect) == NULL) {
        return cli_error(
            cli, CLI_USAGE, "--dialect", "'%s' is not a dialect (see: %s)",
            dialect, cli_advice(cli, "walconv dialects", "agentwal dialects"));
    }
    code = cli_open_store(cli, cli->items[1], 0, &store);
    return code == CLI_CONTINUE
               ? cli_close_store(cli, cli->items[1], store,
                                 import_operands(&import, store, dialect))
               : code;
}
