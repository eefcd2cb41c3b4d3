/*
 * walctl_export - the command checkpoint-export.
 *
 * Threads: one.
 */
#include <inttypes.h>

#include "tools/cli_checkpoint_out.h"
#include "tools/cli_json.h"
#include "tools/cli_layout.h"
#include "tools/walctl.h"

static void write_loss(struct cli_json *json, const char *what, uint64_t count)
{
    if (count > 0) {
        cli_json_open(json, '{');
        cli_json_key(json, "what");
        cli_json_text(json, cli_slice(what));
        cli_json_key(json, "count");
        cli_json_number(json, count);
        cli_json_close(json, '}');
    }
}

static void report_json(const struct cli_checkpoint_written *written)
{
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "checkpointId");
    cli_json_text(&json, written->info.id);
    cli_json_key(&json, "layout");
    cli_json_text(&json, cli_slice(written->layout));
    cli_json_key(&json, "path");
    cli_json_text(&json, cli_slice(written->path));
    cli_json_key(&json, "files");
    cli_json_number(&json, written->info.files);
    cli_json_key(&json, "addedBlobs");
    cli_json_number(&json, written->blobs);
    cli_json_key(&json, "addedBytes");
    cli_json_number(&json, written->bytes);
    cli_json_key(&json, "addedManifest");
    cli_json_bool(&json, written->is_new);
    cli_json_key(&json, "losses");
    cli_json_open(&json, '[');
    write_loss(&json, "symlink", written->links);
    write_loss(&json, "name that is not UTF-8", written->odd_names);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

static void report(void *ctx, const struct cli_checkpoint_written *written)
{
    const struct cli *cli = ctx;

    if (cli->json) {
        report_json(written);
        return;
    }
    cli_print_name(stdout, cli_slice(written->path));
    printf(": %" PRIu64 " %s, %" PRIu64 " %s added\n", written->info.files,
           cli_noun(written->info.files, "file", "files"), written->blobs,
           cli_noun(written->blobs, "content", "contents"));
    cli_checkpoint_out_losses(cli, written);
}

int walctl_checkpoint_export(struct cli *cli, int argc, char **argv)
{
    const char *layout = NULL;
    const struct cli_option options[] = {
        {.name = "layout", .value = &layout},
        {.name = NULL},
    };
    struct progress progress;
    struct cli_checkpoint_out out = {
        .cli = cli, .progress = &progress, .written = report, .ctx = cli};
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 4, 4);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    if (layout == NULL || cli_layout_find(layout) == NULL) {
        return cli_error(cli, CLI_USAGE, "--layout",
                         layout == NULL ? "is needed: sdk or spec11"
                                        : "neither sdk nor spec11");
    }
    out.layout = layout;
    out.name = cli->items[2];
    out.root = cli->items[3];
    progress_init(&progress, !cli->no_progress);
    code = cli_open(cli, cli->items[1], WAL_OPEN_READ_ONLY, &out.store);
    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, out.store, cli->items[2], &out.session);
    if (code == CLI_GO_ON) {
        code = cli_checkpoint_out(&out);
    }
    return walctl_end_session(cli, out.store, out.session, code);
}
