/*
 * checkpoint_import.c - the verb checkpoint-import.
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

#include "convert/import/checkpoint_import.h"
#include "convert/source/checkpoint_manifest.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

/* One run of the command; the callbacks' ctx. */
struct import {
    const struct cli *cli;
    struct wal__checkpoint_import in;
    struct progress progress;
    int code;
};

static void report(void *ctx, const struct wal__checkpoint_imported *imported)
{
    struct import *import = ctx;
    const struct cli *cli = import->cli;
    struct wal__json_out json;

    progress_clear(&import->progress);
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
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "checkpointId", imported->info.id);
    cli_json_member_text(&json, "layout", cli_slice(imported->layout));
    cli_json_member_text(&json, "path", cli_slice(imported->path));
    wal__json_out_member_count(&json, "files", imported->info.files);
    wal__json_out_member_count(&json, "bytes", imported->info.bytes);
    wal__json_out_member_count(&json, "added", imported->added);
    wal__json_out_close_line(&json);
}

/* A checkpoint that is refused is a negative answer. */
static enum wal_status report_skipped(void *ctx, const char *path,
                                      enum wal_status status,
                                      struct wal_error *error)
{
    struct import *import = ctx;
    const struct cli *cli = import->cli;
    int code;

    progress_clear(&import->progress);
    code = wal__checkpoint_is_refused(status)
               ? cli_error(cli, CLI_NEGATIVE, path, "%s", error->text)
               : cli_report(cli, path, status, error);
    import->code = cli_worse_code(import->code, code);
    return WAL_OK;
}

static enum wal_status show_progress(void *ctx, const char *path,
                                     uint64_t files, uint64_t count,
                                     uint64_t bytes, struct wal_error *error)
{
    struct import *import = ctx;

    (void)bytes;
    (void)error;
    progress_update(&import->progress, path, files, count, "files");
    return WAL_OK;
}

static int import_one(struct import *import, const char *above,
                      const char *name)
{
    struct wal_error error = CLI_ERROR_INIT;
    int fd = open(above, O_PATH | O_DIRECTORY | O_CLOEXEC);
    enum wal_status status;

    if (fd < 0) {
        return cli_error(import->cli, CLI_FAILED, above, "%s", strerror(errno));
    }
    status = wal__checkpoint_import_one(&import->in, fd, above, name, &error);
    close(fd);
    return status == WAL_OK ? import->code
                            : cli_report(import->cli, above, status, &error);
}

static int import_all(struct import *import, const char *directory)
{
    struct wal_error error = CLI_ERROR_INIT;
    bool is_empty = false;
    enum wal_status status =
        wal__checkpoint_import_all(&import->in, directory, &is_empty, &error);

    if (status != WAL_OK) {
        return cli_report(import->cli, directory, status, &error);
    }
    return is_empty ? cli_error(import->cli,
                                cli_worse_code(import->code, CLI_NEGATIVE),
                                directory, "has no checkpoint")
                    : import->code;
}

/* Imports a directory that is one checkpoint, that contains the directory
 * `checkpoints`, or that contains checkpoints. */
static int run(struct import *import, const char *operand)
{
    char *path = cli_absolute_path(operand);
    char *slash = strrchr(path, '/');
    char *below = cli_alloc(strlen(path) + 16);
    struct stat stat;
    int code;

    sprintf(below, "%s/" WAL__CHECKPOINT_MANIFEST, path);
    if (lstat(below, &stat) == 0 && slash != NULL && slash[1] != '\0') {
        *slash = '\0';
        code = import_one(import, slash > path ? path : "/", slash + 1);
    } else {
        sprintf(below, "%s/" WAL__CHECKPOINT_DIR, path);
        if (lstat(below, &stat) != 0 || !S_ISDIR(stat.st_mode)) {
            strcpy(below, path);
        }
        code = import_all(import, below);
    }
    free(below);
    free(path);
    return code;
}

int verb_checkpoint_import(struct cli *cli, int argc, char **argv)
{
    const char *root_option = NULL;
    const struct cli_option options[] = {
        {.name = "root", .value = &root_option},
        {.name = NULL},
    };
    struct import import = {.cli = cli,
                            .in = {.imported = report,
                                   .skipped = report_skipped,
                                   .progress = show_progress,
                                   .ctx = &import}};
    char *root = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, 4);
    }
    if (code == CLI_CONTINUE) {
        code = cli_resolve_root(cli, root_option, &root);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    import.in.root = cli_slice(root);
    progress_init(&import.progress, !cli->no_progress);
    code = cli_open_store(cli, cli->items[1], 0, &import.in.store);
    if (code == CLI_CONTINUE) {
        code = cli_open_session(cli, import.in.store, cli->items[2],
                                &import.in.session);
        if (code == CLI_CONTINUE) {
            code = run(&import, cli->items[3]);
        }
        code = cli_end_session(cli, import.in.store, import.in.session, code);
    }
    free(root);
    return code;
}
