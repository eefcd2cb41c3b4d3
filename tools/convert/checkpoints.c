/*
 * checkpoints.c - export the checkpoints of session directories.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/convert/checkpoints.h"

#include <stdlib.h>
#include <string.h>

#include "convert/source/checkpoint_manifest.h"
#include "tools/cli/checkpoint_export.h"

static bool has_checkpoints(struct wal_session *session)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
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

int convert_checkpoints_export(const struct cli *cli, struct wal_store *store,
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

    if (slash == NULL || wal__checkpoint_layout_find(dialect) == NULL ||
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
