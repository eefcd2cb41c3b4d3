/*
 * checkpoint_export.c - the verb checkpoint-export.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>

#include "convert/source/checkpoint_manifest.h"
#include "tools/cli/checkpoint_export.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

static void write_loss(struct wal__json_out *json, const char *what,
                       uint64_t count)
{
    if (count > 0) {
        wal__json_out_open(json, '{');
        cli_json_member_text(json, "what", cli_slice(what));
        wal__json_out_member_count(json, "count", count);
        wal__json_out_close(json, '}');
    }
}

static void report_json(const struct cli_checkpoint_exported *exported)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "checkpointId", exported->info.id);
    cli_json_member_text(&json, "layout", cli_slice(exported->layout));
    cli_json_member_text(&json, "path", cli_slice(exported->path));
    wal__json_out_member_count(&json, "files", exported->info.files);
    wal__json_out_member_count(&json, "addedBlobs", exported->blobs);
    wal__json_out_member_count(&json, "addedBytes", exported->bytes);
    wal__json_out_member_bool(&json, "addedManifest", exported->is_new);
    wal__json_out_member_open(&json, "losses", '[');
    write_loss(&json, "symlink", exported->links);
    write_loss(&json, "name that is not UTF-8", exported->non_utf8_names);
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void report(void *ctx, const struct cli_checkpoint_exported *exported)
{
    const struct cli *cli = ctx;

    if (cli->json) {
        report_json(exported);
        return;
    }
    cli_print_name(stdout, cli_slice(exported->path));
    printf(": %" PRIu64 " %s, %" PRIu64 " %s added\n", exported->info.files,
           cli_plural(exported->info.files, "file", "files"), exported->blobs,
           cli_plural(exported->blobs, "content", "contents"));
    cli_checkpoint_export_losses(cli, exported);
}

int verb_checkpoint_export(struct cli *cli, int argc, char **argv)
{
    const char *layout = NULL;
    const struct cli_option options[] = {
        {.name = "layout", .value = &layout},
        {.name = NULL},
    };
    struct progress progress;
    struct cli_checkpoint_export out = {
        .cli = cli, .progress = &progress, .exported = report, .ctx = cli};
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, 4);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    if (layout == NULL || wal__checkpoint_layout_find(layout) == NULL) {
        return cli_error(cli, CLI_USAGE, "--layout",
                         layout == NULL ? "is required: sdk or spec11"
                                        : "is neither sdk nor spec11");
    }
    out.layout = layout;
    out.name = cli->items[2];
    out.root = cli->items[3];
    progress_init(&progress, !cli->no_progress);
    code = cli_open_store(cli, cli->items[1], WAL_OPEN_READ_ONLY, &out.store);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, out.store, cli->items[2], &out.session);
    if (code == CLI_CONTINUE) {
        code = cli_checkpoint_export(&out);
    }
    return cli_end_session(cli, out.store, out.session, code);
}
