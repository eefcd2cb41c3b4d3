/*
 * walctl_session - the commands that make sessions: create and fork; and
 * accept-damage.
 *
 * Invariant: an id is printed after the session is durable.
 *
 * Threads: one.
 */
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli_json.h"
#include "tools/walctl.h"

/* Prints a session's id, as text or as {"sessionId"}, and closes it. */
static int print_id(const struct cli *cli, struct wal_session *session)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_status(session, &info, &error);
    struct cli_json json;

    if (status == WAL_OK && cli->json) {
        cli_json_init(&json, stdout);
        cli_json_open(&json, '{');
        cli_json_key(&json, "sessionId");
        cli_json_text(&json, info.id);
        cli_json_close(&json, '}');
        cli_json_line(&json);
    } else if (status == WAL_OK) {
        fwrite(info.id.data, 1, (size_t)info.id.size, stdout);
        putchar('\n');
    }
    wal_session_close(session);
    return status == WAL_OK ? CLI_DONE : cli_fail(cli, NULL, status, &error);
}

static int create(const struct cli *cli, struct wal_store *store,
                  const struct wal_session_options *options, const char *id)
{
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    enum wal_status status;

    status = wal_session_create(store, options, &session, &error);
    if (status != WAL_OK) {
        return cli_fail(cli, id, status, &error);
    }
    return print_id(cli, session);
}

int walctl_create(struct cli *cli, int argc, char **argv)
{
    const char *id = NULL;
    const char *cwd = ".";
    const char *title = NULL;
    const char *meta = NULL;
    const struct cli_option options[] = {
        {.name = "id", .value = &id},
        {.name = "cwd", .value = &cwd},
        {.name = "title", .value = &title},
        {.name = "meta", .value = &meta},
        {.name = NULL},
    };
    struct wal_session_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_store *store = NULL;
    char *directory;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 2, 2);
    }
    if (code == CLI_GO_ON && id != NULL && id[0] == '\0') {
        code = cli_error(cli, CLI_USAGE, "--id", "is empty");
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    directory = cli_directory(cwd);
    wanted.id = cli_slice(id);
    wanted.cwd = cli_slice(directory);
    wanted.title = cli_slice(title);
    wanted.metadata = cli_slice(meta);
    code = create(cli, store, &wanted, id);
    free(directory);
    return cli_close(cli, cli->items[1], store, code);
}

int walctl_fork(struct cli *cli, int argc, char **argv)
{
    const char *at = NULL;
    const char *id = NULL;
    const struct cli_option options[] = {
        {.name = "at", .value = &at},
        {.name = "id", .value = &id},
        {.name = NULL},
    };
    struct wal_session_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_session *copy = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 3, 3);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, store, cli->items[2], &session);
    if (code == CLI_GO_ON) {
        wanted.id = cli_slice(id);
        status =
            wal_session_fork(session, cli_slice(at), &wanted, &copy, &error);
        code = status == WAL_OK ? print_id(cli, copy)
                                : cli_fail(cli, at != NULL ? at : cli->items[2],
                                           status, &error);
        wal_session_close(session);
    }
    return cli_close(cli, cli->items[1], store, code);
}

static int accept(const struct cli *cli, const char *name,
                  struct wal_session *session)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_accept_damage(session, &error);

    wal_session_close(session);
    return status == WAL_OK ? CLI_DONE : cli_fail(cli, name, status, &error);
}

static int accept_all(const struct cli *cli, struct wal_store *store)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_list *list = NULL;
    enum wal_status status;
    int code = CLI_DONE;

    status = wal_list_open(store, NULL, &list, &error);
    while (status == WAL_OK &&
           (status = wal_list_next(list, &info, &error)) == WAL_OK) {
        char *id;
        if ((info.flags & WAL_SESSION_DAMAGED) == 0) {
            continue;
        }
        id = cli_copy(info.id.data, (size_t)info.id.size);
        status = wal_session_open(store, info.id, &session, &error);
        if (status == WAL_OK) {
            code = cli_worse(code, accept(cli, id, session));
            printf("%s\n", id);
        }
        free(id);
    }
    wal_list_close(list);
    if (status != WAL_END) {
        code = cli_worse(code, cli_fail(cli, NULL, status, &error));
    }
    return code;
}

int walctl_accept_damage(struct cli *cli, int argc, char **argv)
{
    static const struct cli_option options[] = {{.name = NULL}};
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 2, 3);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1], 0, &store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    if (cli->count == 2) {
        code = accept_all(cli, store);
    } else {
        code = cli_session(cli, store, cli->items[2], &session);
        if (code == CLI_GO_ON) {
            code = accept(cli, cli->items[2], session);
        }
    }
    return cli_close(cli, cli->items[1], store, code);
}
