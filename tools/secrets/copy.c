/*
 * copy.c - sessions without their secrets, and what was left out of them (secrets.h).
 */
#include "tools/secrets/secrets.h"

#include <stdlib.h>

#include "agentwal/transfer.h"

/* --- rewriting ---------------------------------------------------------------- */

/* Sets *text to one without secrets, in `buf`, if it has any. */
static void rewrite(struct secrets_filter *filter, struct wal_slice *text, struct wal__buf *buf)
{
    buf->size = 0;
    if (text->size > 0 && secrets_strike_json(&filter->secrets, *text, filter->counts, buf) > 0) {
        *text = (struct wal_slice){buf->data, buf->size};
    }
}

/* A wal_transfer_rewrite_fn. */
static void rewrite_texts(void *ctx, struct wal_slice *text, struct wal_slice *second)
{
    struct secrets_filter *filter = ctx;

    rewrite(filter, text, &filter->texts[0]);
    rewrite(filter, second, &filter->texts[1]);
}

void secrets_filter_open(struct secrets_filter *filter, const struct cli *cli, const char *path)
{
    secrets_open(&filter->secrets, cli, path);
    filter->counts = cli_alloc((filter->secrets.name_count + 1) * sizeof(filter->counts[0]));
}

void secrets_filter_set(struct secrets_filter *filter, struct wal_transfer_options *options)
{
    options->rewrite = rewrite_texts;
    options->rewrite_ctx = filter;
}

void secrets_filter_copy(struct secrets_filter *filter, struct cli *cli, const char *const *ids,
                         size_t count)
{
    const struct wal_open_options memory = cli_open_options(cli, WAL_OPEN_MEMORY);
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);
    struct wal_transfer_result result = WAL_INIT(wal_transfer_result);
    struct wal_slice *sessions = cli_alloc((count + 1) * sizeof(sessions[0]));
    struct wal_store *from = cli->store;
    int code = CLI_OK;

    for (size_t i = 0; i < count; i++) {
        sessions[i] = cli_slice(ids[i]);
    }
    options.sessions = ids != NULL ? sessions : NULL;
    options.session_count = count;
    secrets_filter_set(filter, &options);
    cli->store = NULL;
    cli_check(cli, cli->opened, wal_open(NULL, &memory, &cli->store, cli->error));
    cli_check(cli, cli->opened, wal_store_merge(from, cli->store, &options, &result, cli->error));
    free(sessions);
    code = cli_close_store(cli, cli->opened, from, CLI_OK);
    if (code != CLI_OK || result.refused > 0) {
        cli_fail(cli, CLI_NEGATIVE, cli->opened,
                 "%s cannot be read whole; agentwal check shows why",
                 cli_counted(result.refused, "session", "sessions"));
    }
}

/* --- reports -------------------------------------------------------------------- */

void secrets_report(const struct cli *cli, const char *name, uint64_t count)
{
    if (count > 0) {
        fprintf(stderr, "%s: hidden: %s, %s\n", cli->tool, name,
                cli_counted(count, "place", "places"));
    }
}

void secrets_filter_report(const struct secrets_filter *filter, const struct cli *cli)
{
    struct wal__json_out json;

    if (filter->counts == NULL) {
        return;
    }
    if (!cli->json) {
        for (size_t i = 0; i < filter->secrets.name_count; i++) {
            secrets_report(cli, filter->secrets.names[i], filter->counts[i]);
        }
        return;
    }
    cli_json_begin(&json);
    wal__json_out_member_open(&json, "hidden", '[');
    for (size_t i = 0; i < filter->secrets.name_count; i++) {
        cli_json_loss(&json, filter->secrets.names[i], filter->counts[i]);
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

void secrets_filter_deinit(struct secrets_filter *filter)
{
    free(filter->counts);
    free(filter->texts[0].data);
    free(filter->texts[1].data);
}
