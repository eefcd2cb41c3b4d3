/*
 * head.c - the verb head: lists, shows and moves named heads.
 *
 * Invariant: the previous value of a head is printed after its move is
 * durable.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>

#include "tools/cli/session.h"
#include "tools/cli/verbs.h"

struct request {
    const char *name;     /* null: all heads */
    const char *entry;    /* null: show; empty: remove */
    const char *expected; /* null: any value */
    const char *note;
    uint32_t stream;
    bool has_stream;
};

static void print_head(const struct cli *cli, const struct wal_head *head)
{
    struct wal__json_out json;

    if (!cli->json) {
        cli_print_name(stdout, head->name);
        fputs("  ", stdout);
        cli_print_name(stdout, head->entry_id);
        if (head->stream != 0) {
            printf("  (stream %" PRIu32 ")", head->stream);
        }
        if (head->note.size > 0) {
            fputs("  ", stdout);
            cli_print_text(stdout, head->note, 0, false);
        }
        putchar('\n');
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "name", head->name);
    wal__json_out_member_count(&json, "stream", head->stream);
    cli_json_member_text(&json, "entryId", head->entry_id);
    cli_json_member_text_or_null(&json, "note", head->note);
    wal__json_out_member_count(&json, "version", head->version);
    wal__json_out_close_line(&json);
}

/* Prints all heads, or those of one stream. */
static int list(const struct cli *cli, struct wal_session *session,
                const struct request *request)
{
    struct wal_head head = WAL_INIT(wal_head);
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_head_cursor *heads = NULL;
    enum wal_status status = wal_head_cursor_open(session, &heads, &error);

    while (status == WAL_OK && !cli_output_failed() &&
           (status = wal_head_cursor_next(heads, &head, &error)) == WAL_OK) {
        if (!request->has_stream || head.stream == request->stream) {
            print_head(cli, &head);
        }
    }
    wal_head_cursor_close(heads);
    return status == WAL_OK || status == WAL_END
               ? CLI_OK
               : cli_report(cli, cli->items[2], status, &error);
}

static void print_entry(const struct cli *cli, const struct request *request,
                        const char *key, const char *entry)
{
    struct wal__json_out json;

    if (!cli->json) {
        puts(entry);
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "name", cli_slice(request->name));
    if (request->entry != NULL) {
        cli_json_member_text_or_null(&json, "entryId",
                                     cli_slice(request->entry));
    }
    cli_json_member_text_or_null(&json, key, cli_slice(entry));
    wal__json_out_close_line(&json);
}

static int show(const struct cli *cli, struct wal_session *session,
                const struct request *request)
{
    struct wal_error error = CLI_ERROR_INIT;
    char entry[256];
    enum wal_status status = wal_head_get(
        session, request->stream, cli_slice(request->name), entry, &error);

    if (status != WAL_OK) {
        return cli_report(cli, request->name, status, &error);
    }
    print_entry(cli, request, "entryId", entry);
    return CLI_OK;
}

static int move(const struct cli *cli, struct wal_session *session,
                const struct request *request)
{
    struct wal_head head = {
        .struct_size = sizeof(head),
        .flags = request->expected != NULL ? WAL_HEAD_EXPECT : 0,
        .stream = request->stream,
        .name = cli_slice(request->name),
        .entry_id = cli_slice(request->entry),
        .note = cli_slice(request->note),
        .expected = cli_slice(request->expected),
    };
    struct wal_error error = CLI_ERROR_INIT;
    char previous[256];
    enum wal_status status = wal_head_move(session, &head, previous, &error);

    if (status == WAL_OK) {
        print_entry(cli, request, "previous", previous);
        return CLI_OK;
    }
    if (status == WAL_ECONFLICT) {
        cli_print_conflict(cli, head.expected, cli_slice(error.actual));
    }
    return cli_report(cli, request->name, status, &error);
}

/* The name of a head that is moved may be new: it is not completed. */
static int complete_names(const struct cli *cli, struct wal_session *session,
                          struct request *request)
{
    int code;

    if (request->entry == NULL) {
        return cli_complete_name(cli, session, request->stream, CLI_NAME_HEAD,
                                 &request->name);
    }
    code = cli_complete_name(cli, session, request->stream, CLI_NAME_ENTRY,
                             &request->entry);
    return code == CLI_CONTINUE
               ? cli_complete_name(cli, session, request->stream,
                                   CLI_NAME_ENTRY, &request->expected)
               : code;
}

static int run(const struct cli *cli, struct request *request)
{
    uint32_t flags = request->entry != NULL ? 0 : WAL_OPEN_READ_ONLY;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_open_store(cli, cli->items[1], flags, &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_open_session(cli, store, cli->items[2], &session);
    if (code == CLI_CONTINUE) {
        code = complete_names(cli, session, request);
    }
    if (code == CLI_CONTINUE && request->name == NULL) {
        code = list(cli, session, request);
    } else if (code == CLI_CONTINUE) {
        code = request->entry != NULL ? move(cli, session, request)
                                      : show(cli, session, request);
    }
    wal_session_close(session);
    return cli_close_store(cli, cli->items[1], store, code);
}

static int check_limits(const struct cli *cli, const struct request *request)
{
    int code = cli_check_id(cli, "NAME", request->name);

    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "ENTRY", request->entry);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_id(cli, "--expect", request->expected);
    }
    if (code == CLI_CONTINUE) {
        code = cli_check_size(cli, "--note", request->note, CLI_TEXT_MAX);
    }
    return code;
}

int verb_head(struct cli *cli, int argc, char **argv)
{
    struct request request = {.name = NULL};
    const char *stream_text = NULL;
    const struct cli_option options[] = {
        {.name = "expect", .value = &request.expected, .may_be_empty = true},
        {.name = "note", .value = &request.note, .may_be_empty = true},
        {.name = "stream", .value = &stream_text},
        {.name = NULL},
    };
    uint64_t stream = 0;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 5);
    }
    if (code == CLI_CONTINUE && stream_text != NULL) {
        code = cli_parse_number(cli, "--stream", stream_text, 255, &stream);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    request.stream = (uint32_t)stream;
    request.has_stream = stream_text != NULL;
    request.name = cli->count > 3 ? cli->items[3] : NULL;
    request.entry = cli->count > 4 ? cli->items[4] : NULL;
    if (request.name != NULL && request.name[0] == '\0') {
        return cli_error(cli, CLI_USAGE, "NAME", "is empty");
    }
    if (request.entry == NULL &&
        (request.expected != NULL || request.note != NULL)) {
        return cli_error(cli, CLI_USAGE,
                         request.note != NULL ? "--note" : "--expect",
                         "allowed only with NAME and ENTRY");
    }
    code = check_limits(cli, &request);
    return code == CLI_CONTINUE ? run(cli, &request) : code;
}
