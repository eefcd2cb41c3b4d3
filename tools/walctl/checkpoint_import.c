/*
 * checkpoint_import.c - the command checkpoint-import.
 *
 * Threads: the tool has one thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/checkpoint_import.h"
#include "tools/cli/checkpoint_manifest.h"
#include "tools/cli/json.h"
#include "tools/walctl/walctl.h"

static void report(void *ctx, const struct cli_checkpoint_imported *imported)
{
    const struct cli *cli = ctx;
    struct cli_json json;

    if (!cli->json) {
        cli_print_name(stdout, cli_slice(imported->path));
        fputs(": checkpoint ", stdout);
        cli_print_name(stdout, imported->info.id);
        printf(", %" PRIu64 " %s, %" PRIu64 " added\n", imported->info.files,
               cli_plural(imported->info.files, "file", "files"),
               imported->added);
        return;
    }
    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "checkpointId");
    cli_json_text(&json, imported->info.id);
    cli_json_key(&json, "layout");
    cli_json_text(&json, cli_slice(imported->layout));
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(imported->path));
    cli_json_key(&json, "files");
    cli_json_number(&json, imported->info.files);
    cli_json_key(&json, "bytes");
    cli_json_number(&json, imported->info.bytes);
    cli_json_key(&json, "added");
    cli_json_number(&json, imported->added);
    cli_json_close(&json, '}');
    cli_json_end_line(&json);
}

static void report_refused(void *ctx, int code, const char *path,
                           const char *why)
{
    cli_error(ctx, code, path, "%s", why);
}

static int import_one(const struct cli_checkpoint_import *in, const char *above,
                      const char *name)
{
    int fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    int code;

    if (fd < 0) {
        return cli_error(in->cli, CLI_FAILED, above, "%s", strerror(errno));
    }
    code = cli_checkpoint_import_one(in, fd, above, name);
    close(fd);
    return code;
}

static int import_all(const struct cli_checkpoint_import *in,
                      const char *directory)
{
    bool is_empty = false;
    int code = cli_checkpoint_import_all(in, directory, &is_empty);

    return is_empty ? cli_error(in->cli, cli_worse_code(code, CLI_NEGATIVE),
                                directory, "has no checkpoint")
                    : code;
}

/* Imports a directory that is one checkpoint, that contains the directory
 * `checkpoints`, or that contains checkpoints. */
static int run(const struct cli_checkpoint_import *in, const char *operand)
{
    char *path = cli_absolute_path(operand);
    char *slash = strrchr(path, '/');
    char *below = cli_alloc(strlen(path) + 16);
    struct stat stat;
    int code;

    sprintf(below, "%s/" CLI_MANIFEST, path);
    if (lstat(below, &stat) == 0 && slash != NULL && slash[1] != '\0') {
        *slash = '\0';
        code = import_one(in, slash > path ? path : "/", slash + 1);
    } else {
        sprintf(below, "%s/" CLI_CHECKPOINTS, path);
        if (lstat(below, &stat) != 0 || !S_ISDIR(stat.st_mode)) {
            strcpy(below, path);
        }
        code = import_all(in, below);
    }
    free(below);
    free(path);
    return code;
}

int walctl_checkpoint_import(struct cli *cli, int argc, char **argv)
{
    const char *root_option = NULL;
    const struct cli_option options[] = {
        {.name = "root", .value = &root_option},
        {.name = NULL},
    };
    struct progress progress;
    struct cli_checkpoint_import in = {.cli = cli,
                                       .progress = &progress,
                                       .imported = report,
                                       .on_skipped = report_refused,
                                       .ctx = cli};
    char *root = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, 4);
    }
    if (code == CLI_CONTINUE) {
        code = walctl_resolve_root(cli, root_option, &root);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    in.root = cli_slice(root);
    progress_init(&progress, !cli->no_progress);
    code = cli_open_store(cli, cli->items[1], 0, &in.store);
    if (code == CLI_CONTINUE) {
        code = cli_open_session(cli, in.store, cli->items[2], &in.session);
        if (code == CLI_CONTINUE) {
            code = run(&in, cli->items[3]);
        }
        code = walctl_close_session(cli, in.store, in.session, code);
    }
    free(root);
    return code;
}
