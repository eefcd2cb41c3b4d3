/*
 * compact.c - the verbs compact-session and redact, which hide content from
 * readers.
 *
 * Invariant: nothing in the log is destroyed; the result is printed after it
 * is durable.
 *
 * Threads: the tool has one thread.
 */
#include <stdlib.h>

#include "tools/care/care.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"

/* Larger than any summary that the engine accepts. */
#define SUMMARY_MAX ((size_t)16 << 20)

static int compact(const struct cli *cli, struct wal_session *session,
                   const struct wal_compact_options *options)
{
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *fork = NULL;
    enum wal_status status =
        wal_session_compact(session, options, &fork, &result, &error);

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    cli_print_appended(cli, fork != NULL ? fork : session, &result, NULL);
    wal_session_close(fork);
    return CLI_OK;
}

static int check(const struct cli *cli, const char *first_kept, const char *id)
{
    if (first_kept == NULL) {
        return cli_error(cli, CLI_USAGE, "--first-kept", "is required");
    }
    if (cli_check_id(cli, "--first-kept", first_kept) != CLI_CONTINUE) {
        return CLI_USAGE;
    }
    return cli_check_new_id(cli, "--new", id);
}

int verb_compact_session(struct cli *cli, int argc, char **argv)
{
    const char *first_kept = NULL;
    const char *id = NULL;
    const struct cli_option options[] = {
        {.name = "first-kept", .value = &first_kept},
        {.name = "new", .value = &id},
        {.name = NULL},
    };
    struct wal_session_options into = WAL_INIT(wal_session_options);
    struct wal_compact_options wanted = WAL_INIT(wal_compact_options);
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    size_t size = 0;
    char *summary;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 3);
    }
    if (code == CLI_CONTINUE) {
        code = check(cli, first_kept, id);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code != CLI_CONTINUE) {
        return cli_close_store(cli, cli->items[1], store, code);
    }
    code = cli_complete_name(cli, session, 0, CLI_NAME_ENTRY, &first_kept);
    if (code != CLI_CONTINUE) {
        return cli_end_session(cli, store, session, code);
    }
    summary = cli_read_stdin(cli, SUMMARY_MAX, " for a summary", &size);
    if (summary != NULL) {
        /* A final newline is added by the shell and not part of the summary. */
        size -= size > 0 && summary[size - 1] == '\n';
        into.id = cli_slice(id);
        wanted.first_kept = cli_slice(first_kept);
        wanted.summary = (struct wal_slice){summary, size};
        wanted.into = id != NULL ? &into : NULL;
    }
    code = summary != NULL ? compact(cli, session, &wanted) : CLI_FAILED;
    free(summary);
    return cli_end_session(cli, store, session, code);
}

int verb_redact(struct cli *cli, int argc, char **argv)
{
    const char *reason = NULL;
    bool erase = false;
    bool views = false;
    const struct cli_option options[] = {
        {.name = "reason", .value = &reason, .may_be_empty = true},
        {.name = "erase", .flag = &erase},
        {.name = "views", .flag = &views},
        {.name = NULL},
    };
    struct wal_append_result result = WAL_INIT(wal_append_result);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    const char *entry;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, 4);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "ENTRY", cli->items[3]);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_size(cli, "--reason", reason, CLI_TEXT_MAX);
    }
    if (code == CLI_CONTINUE) {
        code = care_check_views(cli, erase, views);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session_exact(cli, store, cli->items[2], &session);
    entry = cli->items[3];
    if (code == CLI_CONTINUE) {
        code = cli_complete_name(cli, session, 0, CLI_NAME_ENTRY, &entry);
    }
    if (code == CLI_CONTINUE) {
        status = wal_session_redact(session, cli_slice(entry),
                                    cli_slice(reason), &result, &error);
        code =
            status == WAL_OK ? CLI_OK : cli_report(cli, entry, status, &error);
        if (status == WAL_OK && !cli->json) {
            fputs("redacted the entry ", stdout);
            cli_print_name(stdout, cli_slice(entry));
            putchar('\n');
        } else if (status == WAL_OK) {
            cli_print_appended(cli, session, &result, NULL);
        }
    }
    if (code == CLI_OK && erase) {
        code = care_erase(cli, store, views);
    }
    return cli_end_session(cli, store, session, code);
}
