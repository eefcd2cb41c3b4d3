/*
 * backup.c - the verb backup: copies the store while others write to it.
 *
 * Invariant: the store is opened for reading only, so that one of which others
 * have only read permission, or a backup, can be copied too.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>
#include <stdio.h>

#include "agentwal/admin.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct progress *progress = ctx;
    char text[2 * SIZE_TEXT + 8];
    char sizes[2][SIZE_TEXT];

    if (progress_is_due(progress)) {
        size_text(done, sizes[0]);
        size_text(total, sizes[1]);
        snprintf(text, sizeof(text), "%s of %s", sizes[0], sizes[1]);
        progress_show(progress, "backup", text);
    }
    return 0;
}

static void write_json(const char *path,
                       const struct wal_store_backup_result *result)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"segments", result->segments},
        {"copied", result->copied},
        {"removed", result->removed},
        {"bytes", result->bytes},
        {"sharedBytes", result->shared_bytes},
        {"lastSequence", result->last_sequence},
    };
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "path", cli_slice(path));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        wal__json_out_member_count(&json, numbers[i].key, numbers[i].value);
    }
    wal__json_out_close_line(&json);
}

static void print_result(const struct wal_store_backup_result *result)
{
    char bytes[SIZE_TEXT];
    char shared[SIZE_TEXT];

    if (result->copied == 0 && result->removed == 0) {
        printf("nothing new: the copy has all %" PRIu64 " %s\n",
               result->segments,
               cli_plural(result->segments, "segment", "segments"));
        return;
    }
    size_text(result->bytes, bytes);
    printf("copied %" PRIu64 " of %" PRIu64 " %s: wrote %s", result->copied,
           result->segments,
           cli_plural(result->segments, "segment", "segments"), bytes);
    if (result->shared_bytes > 0) {
        size_text(result->shared_bytes, shared);
        printf(", shared %s with the store", shared);
    }
    if (result->removed > 0) {
        printf("; removed %" PRIu64, result->removed);
    }
    printf("\n");
}

static int run(const struct cli *cli, struct wal_store *store)
{
    struct wal_store_backup_options options =
        WAL_INIT(wal_store_backup_options);
    struct wal_store_backup_result result = WAL_INIT(wal_store_backup_result);
    struct wal_error error = CLI_ERROR_INIT;
    struct progress progress;
    enum wal_status status;

    progress_init(&progress, !cli->no_progress);
    options.progress = show_progress;
    options.ctx = &progress;
    status = wal_store_backup(store, cli->items[2], &options, &result, &error);
    progress_clear(&progress);
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    if (cli->json) {
        write_json(cli->items[2], &result);
    } else {
        print_result(&result);
    }
    return CLI_OK;
}

int verb_backup(struct cli *cli, int argc, char **argv)
{
    const struct cli_option options[] = {{.name = NULL}};
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 3);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], WAL_OPEN_READ_ONLY, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    return cli_close_store(cli, cli->items[1], store, run(cli, store));
}
