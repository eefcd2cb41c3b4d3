/*
 * meta.c - the verbs meta, title and pin: metadata, title and pin of a session.
 *
 * Invariant: a merge applies to the metadata that is current when it is
 * written, so that concurrent writers lose nothing.
 *
 * Threads: the tool has one thread.
 */
#include <stdlib.h>

#include "format/json/json_merge.h"
#include "format/json/json_scan.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"

struct merge {
    struct wal__span patch;
    uint8_t *buffer; /* the new metadata */
};

static int32_t apply(void *ctx, const struct wal_session_info *now,
                     struct wal_session_change *change)
{
    struct merge *merge = ctx;
    struct wal__span target = {now->metadata.data, (size_t)now->metadata.size};
    size_t capacity = target.size + merge->patch.size;
    size_t size = 0;

    merge->buffer = cli_realloc(merge->buffer, capacity);
    enum wal__json_status status =
        wal__json_merge(target, merge->patch, merge->buffer, capacity, &size);
    change->fields = WAL_CHANGE_METADATA;
    change->metadata.data = merge->buffer;
    change->metadata.size = size;
    return (int32_t)status;
}

static int update(const struct cli *cli, struct wal_session *session,
                  const char *patch)
{
    struct wal_slice text = cli_slice(patch);
    struct wal_error error = CLI_ERROR_INIT;
    struct merge merge = {
        .patch = {text.data, (size_t)text.size},
    };
    enum wal_status status = wal_session_update(session, apply, &merge, &error);

    free(merge.buffer);
    return status == WAL_OK ? CLI_CONTINUE
                            : cli_report(cli, cli->items[2], status, &error);
}

static int print(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);
    struct wal__json_out json;

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    cli_json_init(&json, stdout);
    cli_json_raw(&json,
                 info.metadata.size > 0 ? info.metadata : cli_slice("{}"));
    wal__json_out_newline(&json);
    return CLI_OK;
}

int verb_meta(struct cli *cli, int argc, char **argv)
{
    const char *patch = NULL;
    const struct cli_option options[] = {
        {.name = "merge", .value = &patch},
        {.name = NULL},
    };
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 3);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_object(cli, "--merge", patch);
    }
    if (code == CLI_CONTINUE) {
        code = cli_open_store(cli, cli->items[1],
                              patch != NULL ? 0 : WAL_OPEN_READ_ONLY, &store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE && patch != NULL) {
        code = update(cli, session, patch);
    }
    if (code == CLI_CONTINUE) {
        code = print(cli, session);
    }
    wal_session_close(session);
    return cli_close_store(cli, cli->items[1], store, code);
}

static int32_t set_title(void *ctx, const struct wal_session_info *now,
                         struct wal_session_change *change)
{
    (void)now;
    change->fields = WAL_CHANGE_TITLE;
    change->title = cli_slice(ctx);
    return 0;
}

int verb_title(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option no_options[] = {{.name = NULL}};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_begin_session(cli, argc, argv, no_options, 4, 4, 0, &store,
                                 &session);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_check_size(cli, "TEXT", cli->items[3], CLI_TEXT_MAX);
    if (code == CLI_CONTINUE) {
        status = wal_session_update(session, set_title, cli->items[3], &error);
        code = status == WAL_OK
                   ? cli_print_done(cli, "title", cli->items[3],
                                    "the title is now")
                   : cli_report(cli, cli->items[2], status, &error);
    }
    return cli_end_session(cli, store, session, code);
}

/* Prints {"sessionId","pinned"}, or a sentence. */
static int print_pinned(const struct cli *cli, struct wal_session *session,
                        bool is_pinned)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_get_info(session, &info, &error);
    struct wal__json_out json;

    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    if (!cli->json) {
        fputs(is_pinned ? "pinned the session " : "unpinned the session ",
              stdout);
        cli_print_name(stdout, info.id);
        putchar('\n');
        return CLI_OK;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "sessionId", info.id);
    wal__json_out_member_bool(&json, "pinned", is_pinned);
    wal__json_out_close_line(&json);
    return CLI_OK;
}

int verb_pin(struct cli *cli, int argc, char **argv)
{
    bool off = false;
    const struct cli_option options[] = {
        {.name = "off", .flag = &off},
        {.name = NULL},
    };
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code =
        cli_begin_session(cli, argc, argv, options, 3, 3, 0, &store, &session);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code =
        update(cli, session, off ? "{\"pinned\":null}" : "{\"pinned\":true}");
    if (code == CLI_CONTINUE) {
        code = print_pinned(cli, session, !off);
    }
    return cli_end_session(cli, store, session, code);
}
