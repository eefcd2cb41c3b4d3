/*
 * checkpoints.c - import and export the checkpoints of session directories.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/walconv/checkpoints.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/checkpoint_export.h"
#include "tools/cli/checkpoint_import.h"
#include "tools/cli/checkpoint_manifest.h"

static void imported(void *ctx, const struct cli_checkpoint_imported *imported)
{
    struct walconv_checkpoints *checkpoints = ctx;

    checkpoints->count++;
    checkpoints->added += imported->is_new || imported->added > 0 ? 1 : 0;
}

static void on_skipped(void *ctx, int code, const char *path, const char *why)
{
    struct walconv_checkpoints *checkpoints = ctx;

    (void)code;
    checkpoints->on_skipped(checkpoints->ctx, path, why);
}

int walconv_checkpoints_import(struct walconv_checkpoints *checkpoints)
{
    const struct cli_checkpoint_import in = {
        .cli = checkpoints->import->cli,
        .store = checkpoints->import->store,
        .session = checkpoints->session,
        .progress = checkpoints->import->progress,
        .imported = imported,
        .on_skipped = on_skipped,
        .ctx = checkpoints,
    };
    size_t size = strlen(checkpoints->root) + sizeof("/" CLI_CHECKPOINTS);
    char *directory = cli_alloc(size);
    bool is_empty = false;
    struct stat stat;
    int code = CLI_OK;

    snprintf(directory, size, "%s/" CLI_CHECKPOINTS, checkpoints->root);
    if (lstat(directory, &stat) == 0 && S_ISDIR(stat.st_mode)) {
        code = cli_checkpoint_import_all(&in, directory, &is_empty);
    }
    free(directory);
    return code == CLI_NEGATIVE ? CLI_OK : code;
}

static bool has_checkpoints(struct wal_session *session)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoint_cursor *list = NULL;
    bool is_found =
        wal_checkpoint_cursor_open(session, &list, NULL) == WAL_OK &&
        wal_checkpoint_cursor_next(list, &info, NULL) != WAL_END;

    wal_checkpoint_cursor_close(list);
    return is_found;
}

static void exported(void *ctx, const struct cli_checkpoint_exported *exported)
{
    cli_checkpoint_export_losses(ctx, exported);
}

int walconv_checkpoints_export(const struct cli *cli, struct wal_store *store,
                               struct wal_session *session, const char *name,
                               const char *dialect, const char *file)
{
    const char *slash = strrchr(file, '/');
    struct progress progress;
    struct cli_checkpoint_export out = {
        .cli = cli,
        .store = store,
        .session = session,
        .name = name,
        .layout = dialect,
        .progress = &progress,
        .exported = exported,
        .ctx = (void *)(uintptr_t)cli,
    };
    char *root;
    int code;

    if (slash == NULL || cli_layout_find(dialect) == NULL ||
        !has_checkpoints(session)) {
        return CLI_OK;
    }
    progress_init(&progress, !cli->no_progress);
    root = cli_copy_text(file, (size_t)(slash - file));
    out.root = root;
    code = cli_checkpoint_export(&out);
    free(root);
    return code;
}
