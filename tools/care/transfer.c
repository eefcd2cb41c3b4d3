/*
 * transfer.c - the verbs merge and bundle: sessions of one store to another, and to a file; and
 * backup, which copies the store while others write to it.
 *
 * Invariant: the store that sessions are taken from is opened for reading only; so is one that is
 * backed up, which others may have only read permission for, or which may be a backup.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "agentwal/admin.h"
#include "tools/cli/json.h"
#include "tools/cli/key.h"
#include "tools/cli/transfer.h"
#include "tools/cli/verbs.h"
#include "tools/secrets/secrets.h"

/* --- backup ------------------------------------------------------------- */

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    progress_update_sizes(ctx, "backup", done, total);
    return 0;
}

static void write_json(const char *path, const struct wal_store_backup_result *result)
{
    const struct cli_count numbers[] = {
        {"segments", result->segments},        {"copied", result->copied},
        {"removed", result->removed},          {"bytes", result->bytes},
        {"sharedBytes", result->shared_bytes}, {"lastSequence", result->last_sequence},
    };
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "path", cli_slice(path));
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    wal__json_out_close_line(&json);
}

static void print_result(const struct wal_store_backup_result *result)
{
    char bytes[SIZE_TEXT];
    char shared[SIZE_TEXT];

    if (result->copied == 0 && result->removed == 0) {
        printf("nothing new: the copy has all %s\n",
               cli_counted(result->segments, "segment", "segments"));
        return;
    }
    size_text(result->bytes, bytes);
    printf("copied %" PRIu64 " of %s: wrote %s", result->copied,
           cli_counted(result->segments, "segment", "segments"), bytes);
    if (result->shared_bytes > 0) {
        size_text(result->shared_bytes, shared);
        printf(", shared %s with the store", shared);
    }
    if (result->removed > 0) {
        printf("; removed %" PRIu64, result->removed);
    }
    printf("\n");
}

int verb_backup(struct cli *cli, int argc, char **argv)
{
    struct wal_store_backup_options options = WAL_INIT(wal_store_backup_options);
    struct wal_store_backup_result result = WAL_INIT(wal_store_backup_result);
    struct progress progress;
    enum wal_status status;

    cli_begin(cli, argc, argv, NULL, 3, 3, WAL_OPEN_READ_ONLY);
    cli_note_interrupts();
    progress_init(&progress, !cli->no_progress);
    options.progress = show_progress;
    options.ctx = &progress;
    status = wal_store_backup(cli->store, cli->items[2], &options, &result, cli->error);
    progress_clear(&progress);
    cli_check(cli, cli->items[2], status);
    if (cli->json) {
        write_json(cli->items[2], &result);
    } else {
        print_result(&result);
    }
    return CLI_OK;
}

/* --- merge ---------------------------------------------------------------- */

int verb_merge(struct cli *cli, int argc, char **argv)
{
    bool keeps_both = false;
    const struct cli_option options[] = {{.name = "keep-both", .flag = &keeps_both},
                                         {.name = NULL}};
    struct cli_transfer transfer;
    struct wal_store *from = NULL;
    enum wal_status status;
    int code;

    cli_parse_operands(cli, argc, argv, options, 3, 3);
    status = cli_try_open(cli, cli->items[2], WAL_OPEN_READ_ONLY, &from, cli->error);
    if (status == WAL_ENOTSTORE) {
        return cli_error_status(cli, status, cli->items[2],
                                "there is no store to take sessions from");
    }
    cli_check(cli, cli->items[2], status);
    cli_use_store(cli, cli->items[1], 0);
    cli_transfer_init(&transfer, cli, "merge", NULL);
    transfer.options.flags = keeps_both ? WAL_TRANSFER_KEEP_BOTH : 0U;
    status = wal_store_merge(from, cli->store, &transfer.options, &transfer.result, cli->error);
    code = cli_transfer_finish(&transfer, cli->items[2], status);
    return cli_close_store(cli, cli->items[2], from, code);
}

/* --- bundle --------------------------------------------------------------- */

/* Writes it, encrypted by the key that the options name; that of an encrypted store by a passphrase
 * that is asked for, unless it is to be plain. */
static enum wal_status write_bundle(struct cli_transfer *transfer, const char *path,
                                    struct cli_key_options *key, bool is_plain)
{
    const struct cli *cli = transfer->cli;
    const bool is_given = cli_key_is_given(key);
    enum wal_status status;

    transfer->options.flags |= is_plain ? WAL_TRANSFER_PLAIN : 0U;
    transfer->options.key = is_given ? cli_key_make(cli, key, "bundle", NULL) : NULL;
    status = wal_bundle_write(cli->store, cli_slice(path), &transfer->options, &transfer->result,
                              cli->error);
    if (status == WAL_EKEY && !is_given && !is_plain) {
        key->is_passphrase = true;
        transfer->options.key = cli_key_make(cli, key, "bundle", NULL);
        status = wal_bundle_write(cli->store, cli_slice(path), &transfer->options,
                                  &transfer->result, cli->error);
    }
    return status;
}

int verb_bundle(struct cli *cli, int argc, char **argv)
{
    struct secrets_filter filter = {.counts = NULL};
    struct cli_key_options key = {.file = NULL};
    bool no_passphrase = false;
    bool no_secrets = false;
    const char *rules = NULL;
    const struct cli_option options[] = {
        {.name = "no-secrets", .flag = &no_secrets},
        {.name = "rules", .value = &rules},
        {.name = "bundle-key-file", .value = &key.file},
        {.name = "bundle-passphrase", .flag = &key.is_passphrase},
        {.name = "bundle-passphrase-fd", .value = &key.fd},
        {.name = "no-passphrase", .flag = &no_passphrase},
        {.name = NULL},
    };
    struct cli_transfer transfer;
    char size[SIZE_TEXT];
    enum wal_status status;
    const char *path;

    cli_begin(cli, argc, argv, options, 4, argc, WAL_OPEN_READ_ONLY);
    if (no_passphrase && cli_key_is_given(&key)) {
        cli_fail(cli, CLI_USAGE, "--no-passphrase", "excludes a key of the bundle");
    }
    path = cli->items[cli->count - 1];
    cli_transfer_init(&transfer, cli, "bundle", path);
    cli_transfer_select(&transfer, cli->store, 2, cli->count - 1);
    /* Its errors name the session. */
    transfer.options.report = NULL;
    if (no_secrets || rules != NULL) {
        secrets_filter_open(&filter, cli, rules);
        secrets_filter_set(&filter, &transfer.options);
    }
    status = write_bundle(&transfer, path, &key, no_passphrase);
    if (status == WAL_OK && !cli->json) {
        size_text(transfer.result.bytes, size);
        printf("%s: %s\n", path, size);
    }
    if (status == WAL_OK) {
        secrets_filter_report(&filter, cli);
    }
    secrets_filter_deinit(&filter);
    return cli_transfer_finish(&transfer, path, status);
}
