/*
 * secrets.c - the verb secrets: finds the secrets in a store, and redacts the entries that have
 * them.
 *
 * Invariant: nothing is redacted before all of the store was read.
 */
#include "tools/secrets/secrets.h"

#include "tools/care/care.h"
#include "tools/cli/verbs.h"

/* The sessions that the operands name; NULL: all. */
static const struct cli_ids *find_sessions(const struct cli *cli)
{
    static struct cli_ids ids;

    for (int i = 2; i < cli->count; i++) {
        (void)cli_ids_get_or_add(&ids, cli_slice(cli_session_id(cli, cli->store, cli->items[i])));
    }
    return cli->count > 2 ? &ids : NULL;
}

/* Adds the clients' files of the sessions with entries that were redacted. */
static void add_files(const struct cli *cli, const struct secrets_scan *scan,
                      struct cli_texts *files)
{
    struct cli_ids ids = {.items = NULL};
    struct cli_sessions list;

    for (size_t i = 0; i < scan->count; i++) {
        if (scan->items[i].is_redacted) {
            (void)cli_ids_get_or_add(&ids, cli_slice(scan->items[i].session));
        }
    }
    for (cli_sessions_open(&list, cli->store, NULL, cli->error); cli_sessions_next(&list);) {
        if (cli_ids_find(&ids, list.info.id) != NULL) {
            care_add_file(files, &list.info);
        }
    }
    cli_ids_deinit(&ids);
}

static int redact(struct cli *cli, struct secrets_scan *scan, bool erases, bool rewrites_views)
{
    static struct cli_texts files;
    int code;

    cli_check(cli, "secrets", secrets_scan_redact(scan, cli->store, cli->error));
    secrets_scan_print(scan, cli);
    if (scan->left > 0) {
        cli_note(
            cli, NULL,
            "not redacted: titles and metadata, which agentwal title and meta change; documents, "
            "whose versions stay until the session is erased; deleted sessions");
    }
    code = scan->left > 0 || scan->damaged > 0 ? CLI_NEGATIVE : CLI_OK;
    if (!erases) {
        return code;
    }
    add_files(cli, scan, &files);
    return cli_worse_code(code, care_erase(cli, rewrites_views, &files));
}

int verb_secrets(struct cli *cli, int argc, char **argv)
{
    struct secrets secrets = {.items = NULL};
    static struct secrets_scan scan;
    const char *rules = NULL;
    bool redacts = false;
    bool erases = false;
    bool views = false;
    const struct cli_option options[] = {
        {.name = "redact", .flag = &redacts}, {.name = "erase", .flag = &erases},
        {.name = "views", .flag = &views},    {.name = "possible", .flag = &scan.keeps_possible},
        {.name = "rules", .value = &rules},   {.name = NULL},
    };
    int code;

    cli_parse(cli, argc, argv, options);
    if (erases && !redacts) {
        cli_fail(cli, CLI_USAGE, "--erase", "needs --redact");
    }
    care_check_views(cli, erases, views);
    secrets_open(&secrets, cli, rules);
    cli_use_store(cli, cli->items[1], redacts ? 0 : WAL_OPEN_READ_ONLY);
    scan.secrets = &secrets;
    scan.only = find_sessions(cli);
    cli_check(cli, "secrets", secrets_scan(&scan, cli, cli->store, cli->error));
    if (redacts) {
        code = redact(cli, &scan, erases, views);
    } else {
        secrets_scan_print(&scan, cli);
        code = secrets_scan_count(&scan) > 0 || scan.damaged > 0 ? CLI_NEGATIVE : CLI_OK;
    }
    secrets_scan_deinit(&scan);
    return code;
}
