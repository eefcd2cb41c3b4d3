/*
 * import.c - the verb import.
 *
 * Threads: the tools are single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "convert/model/dialect.h"
#include "tools/cli/transfer.h"
#include "tools/cli/verbs.h"
#include "tools/convert/import_run.h"

struct import_arguments {
    const char *dialect;
    bool all_files;
    bool is_verbose;
    bool summary;
    bool follows;
};

/* Imports the operands after the store, bundles first. Returns the exit code.
 */
static int import_operands(struct convert_run *run, struct wal_store *store,
                           const struct import_arguments *arguments)
{
    const struct cli *cli = run->cli;
    uint32_t count = (uint32_t)cli->count - 2;
    struct wal_slice *paths = cli_alloc(count * sizeof(paths[0]));
    uint32_t bundles = 0;
    int bundles_code = CLI_OK;
    int code;

    for (uint32_t i = 0; i < count; i++) {
        const char *path = cli->items[2 + i];

        if (wal_bundle_detect(cli_slice(path)) != 0) {
            bundles++;
            bundles_code = cli_worse_code(
                bundles_code, cli_transfer_import(cli, store, path));
        } else {
            paths[i - bundles] = cli_slice(path);
        }
    }
    if (bundles == count) {
        free(paths);
        return bundles_code;
    }
    count -= bundles;
    run->prints_summary = arguments->summary || !cli->json;
    code = arguments->follows ? convert_run_follow(run, store, paths, count)
                              : convert_run_import(run, store, paths, count);
    if (run->prints_summary && !arguments->follows) {
        convert_run_print(run);
    }
    convert_run_deinit(run);
    free(paths);
    return cli_worse_code(code, bundles_code);
}

static int check_dialect(const struct cli *cli,
                         struct import_arguments *arguments)
{
    if (strcmp(arguments->dialect, "auto") == 0) {
        arguments->dialect = NULL;
    } else if (wal__dialect_find(arguments->dialect) == NULL) {
        return cli_error(cli, CLI_USAGE, "--dialect",
                         "'%s' is not a dialect (see: agentwal dialects)",
                         arguments->dialect);
    }
    return CLI_CONTINUE;
}

int verb_import(struct cli *cli, int argc, char **argv)
{
    struct import_arguments arguments = {.dialect = "auto"};
    const struct cli_option options[] = {
        {.name = "dialect", .value = &arguments.dialect},
        {.name = "all-files", .flag = &arguments.all_files},
        {.name = "verbose", .letter = 'v', .flag = &arguments.is_verbose},
        {.name = "follow", .flag = &arguments.follows},
        {.name = "summary", .flag = &arguments.summary},
        {.name = NULL},
    };
    struct convert_run run = {.cli = cli};
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, argc);
    }
    if (code == CLI_CONTINUE) {
        code = check_dialect(cli, &arguments);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    run.flags = arguments.all_files ? WAL_IMPORT_ALL_FILES : 0;
    run.dialect = arguments.dialect;
    run.exclude = cli->items[1];
    run.is_verbose = arguments.is_verbose;
    convert_catch_signals();
    code = cli_open_store(cli, cli->items[1], 0, &store);
    if (code == CLI_CONTINUE) {
        code = cli_close_store(cli, cli->items[1], store,
                               import_operands(&run, store, &arguments));
    }
    if (!run.has_followed) {
        convert_end_interrupted(cli);
    }
    return code;
}
