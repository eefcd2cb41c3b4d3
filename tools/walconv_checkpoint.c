/*
 * walconv_checkpoint - checkpoints of sessions that are directories.
 *
 * Threads: a tool is one thread.
 */
#include "tools/walconv_checkpoint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli_checkpoint_in.h"
#include "tools/cli_checkpoint_out.h"
#include "tools/cli_layout.h"

static void made(void *ctx, const struct cli_checkpoint_made *made)
{
    struct walconv_checkpoints *checkpoints = ctx;

    checkpoints->count++;
    checkpoints->added += made->is_new || made->added > 0 ? 1 : 0;
}

static void left_out(void *ctx, int code, const char *path, const char *why)
{
    struct walconv_checkpoints *checkpoints = ctx;

    (void)code;
    checkpoints->left_out(checkpoints->ctx, path, why);
}

int walconv_checkpoints_take(struct walconv_checkpoints *checkpoints)
{
    const struct cli_checkpoint_in in = {
        .cli = checkpoints->import->cli,
        .store = checkpoints->import->store,
        .session = checkpoints->session,
        .progress = checkpoints->import->progress,
        .made = made,
        .left_out = left_out,
        .ctx = checkpoints,
    };
    size_t size = strlen(checkpoints->root) + sizeof("/" CLI_CHECKPOINTS);
    char *directory = cli_alloc(size);
    bool is_empty = false;
    struct stat stat;
    int code = CLI_DONE;

    snprintf(directory, size, "%s/" CLI_CHECKPOINTS, checkpoints->root);
    if (lstat(directory, &stat) == 0 && S_ISDIR(stat.st_mode)) {
        code = cli_checkpoint_in_all(&in, directory, &is_empty);
    }
    free(directory);
    return code == CLI_NO ? CLI_DONE : code;
}

static bool has_any(struct wal_session *session)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoints *list = NULL;
    bool has = wal_checkpoints_open(session, &list, NULL) == WAL_OK &&
               wal_checkpoints_next(list, &info, NULL) != WAL_END;

    wal_checkpoints_close(list);
    return has;
}

static void written(void *ctx, const struct cli_checkpoint_written *written)
{
    cli_checkpoint_out_losses(ctx, written);
}

int walconv_checkpoints_put(const struct cli *cli, struct wal_store *store,
                            struct wal_session *session, const char *name,
                            const char *dialect, const char *file)
{
    const char *slash = strrchr(file, '/');
    struct progress progress;
    struct cli_checkpoint_out out = {
        .cli = cli,
        .store = store,
        .session = session,
        .name = name,
        .layout = dialect,
        .progress = &progress,
        .written = written,
        .ctx = (void *)(uintptr_t)cli,
    };
    char *root;
    int code;

    if (slash == NULL || cli_layout_find(dialect) == NULL ||
        !has_any(session)) {
        return CLI_DONE;
    }
    progress_init(&progress, !cli->no_progress);
    root = cli_copy(file, (size_t)(slash - file));
    out.root = root;
    code = cli_checkpoint_out(&out);
    free(root);
    return code;
}
