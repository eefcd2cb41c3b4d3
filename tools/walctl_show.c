/*
 * walctl_show - the commands that tell of a store: list, latest, children,
 * show and stats; and init.
 *
 * Invariant: but for init, they write nothing to the store.
 *
 * Threads: one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli_session.h"
#include "tools/walctl.h"

#define LINEAGE_MAX 1024 /* a circle of parents ends here */

static const struct cli_option no_options[] = {{.name = NULL}};

int walctl_init(struct cli *cli, int argc, char **argv)
{
    struct wal_store *store = NULL;
    int code = cli_parse(cli, argc, argv, no_options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 2, 2);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1],
                        WAL_OPEN_CREATE | WAL_OPEN_EXCLUSIVE, &store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    return cli_close(cli, cli->items[1], store, CLI_DONE);
}

/* Parses a command line of `count` operands and opens the store to read. */
static int begin(struct cli *cli, int argc, char **argv,
                 const struct cli_option *options, int count,
                 struct wal_store **store)
{
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, count, count);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1], WAL_OPEN_READ_ONLY, store);
    }
    return code;
}

int walctl_list(struct cli *cli, int argc, char **argv)
{
    const char *cwd = NULL;
    const char *project = NULL;
    const char *limit_text = "0";
    const struct cli_option options[] = {
        {.name = "cwd", .value = &cwd},
        {.name = "project", .value = &project},
        {.name = "limit", .value = &limit_text},
        {.name = NULL},
    };
    struct wal_list_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_store *store = NULL;
    uint64_t limit = 0;
    char *directory;
    int code = begin(cli, argc, argv, options, 2, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_number(cli, "--limit", limit_text, UINT64_MAX, &limit);
    if (code == CLI_GO_ON) {
        directory = cwd != NULL ? cli_directory(cwd) : NULL;
        wanted.cwd = cli_slice(directory);
        wanted.project = cli_slice(project);
        code = cli_session_table(cli, store, &wanted, limit);
        free(directory);
    }
    return cli_close(cli, cli->items[1], store, code);
}

static int print_latest(const struct cli *cli, struct wal_store *store,
                        const struct wal_list_options *options)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_list *list = NULL;
    enum wal_status status;

    status = wal_list_open(store, options, &list, &error);
    if (status == WAL_OK) {
        status = wal_list_next(list, &info, &error);
    }
    if (status == WAL_OK && cli->json) {
        struct cli_json json;
        cli_json_init(&json, stdout);
        cli_json_open(&json, '{');
        cli_session_members(&json, &info);
        cli_json_close(&json, '}');
        cli_json_line(&json);
    } else if (status == WAL_OK) {
        fwrite(info.id.data, 1, (size_t)info.id.size, stdout);
        putchar('\n');
    }
    wal_list_close(list);
    if (status == WAL_END) {
        return cli_error(cli, CLI_NO, cli->items[1], "there is no session");
    }
    return status == WAL_OK ? CLI_DONE : cli_fail(cli, NULL, status, &error);
}

int walctl_latest(struct cli *cli, int argc, char **argv)
{
    const char *cwd = NULL;
    const struct cli_option options[] = {
        {.name = "cwd", .value = &cwd},
        {.name = NULL},
    };
    struct wal_list_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_store *store = NULL;
    char *directory;
    int code = begin(cli, argc, argv, options, 2, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    directory = cwd != NULL ? cli_directory(cwd) : NULL;
    wanted.cwd = cli_slice(directory);
    code = print_latest(cli, store, &wanted);
    free(directory);
    return cli_close(cli, cli->items[1], store, code);
}

int walctl_children(struct cli *cli, int argc, char **argv)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_list_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = begin(cli, argc, argv, no_options, 3, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, store, cli->items[2], &session);
    if (code == CLI_GO_ON) {
        status = wal_session_status(session, &info, &error);
        wanted.parent = info.id;
        code = status == WAL_OK ? cli_session_table(cli, store, &wanted, 0)
                                : cli_fail(cli, NULL, status, &error);
        wal_session_close(session);
    }
    return cli_close(cli, cli->items[1], store, code);
}

/* Writes the ids of the sessions it came from, the nearest first. */
static void write_lineage(struct cli_json *json, struct wal_store *store,
                          struct wal_slice parent_id)
{
    struct wal_session *session = NULL;
    char *id = cli_copy(parent_id.data, (size_t)parent_id.size);
    enum wal_status status = WAL_OK;

    cli_json_open(json, '[');
    for (int i = 0; i < LINEAGE_MAX && id[0] != '\0' && status == WAL_OK; i++) {
        struct wal_session_info info = {.struct_size = sizeof(info)};
        cli_json_text(json, cli_slice(id));
        status = wal_session_open(store, cli_slice(id), &session, NULL);
        if (status == WAL_OK) {
            status = wal_session_status(session, &info, NULL);
            free(id);
            id = cli_copy(info.parent_id.data, (size_t)info.parent_id.size);
            wal_session_close(session);
        }
    }
    cli_json_close(json, ']');
    free(id);
}

static void write_session(struct cli_json *json, struct wal_store *store,
                          const struct wal_session_info *info)
{
    cli_json_open(json, '{');
    cli_session_members(json, info);
    cli_json_key(json, "heads");
    cli_json_open(json, '{');
    if (info->head.size > 0) {
        cli_json_key(json, "main");
        cli_json_text(json, info->head);
    }
    cli_json_close(json, '}');
    cli_json_key(json, "lineage");
    write_lineage(json, store, info->parent_id);
    cli_json_key(json, "metadata");
    cli_json_raw(json,
                 info->metadata.size > 0 ? info->metadata : cli_slice("{}"));
    cli_json_key(json, "bytes");
    cli_json_number(json, info->bytes);
    cli_json_key(json, "inherited");
    cli_json_number(json, info->inherited);
    cli_json_key(json, "schemaVersion");
    cli_json_number(json, info->schema_version);
    cli_json_key(json, "source");
    cli_json_optional(json, info->source);
    cli_json_key(json, "fork");
    cli_json_bool(json, (info->flags & WAL_SESSION_FORK) != 0);
    cli_json_key(json, "damaged");
    cli_json_bool(json, (info->flags & WAL_SESSION_DAMAGED) != 0);
    cli_json_close(json, '}');
    cli_json_line(json);
}

static void print_field(const char *name, struct wal_slice value)
{
    if (value.size > 0) {
        printf("%-10s ", name);
        cli_print(stdout, value, 0, false);
        putchar('\n');
    }
}

static void print_session(const struct wal_session_info *info)
{
    char text[64];

    print_field("session", info->id);
    print_field("title", info->title);
    print_field("directory", info->cwd);
    print_field("project", info->project);
    print_field("parent", info->parent_id);
    print_field("source", info->source);
    cli_time_text(info->created_ms, text, sizeof(text));
    print_field("created", cli_slice(text));
    cli_time_text(info->updated_ms, text, sizeof(text));
    print_field("updated", cli_slice(text));
    printf("%-10s %" PRIu64, "entries", info->entries);
    if (info->inherited > 0) {
        printf(", %" PRIu64 " of them shared", info->inherited);
    }
    printf("\n%-10s %" PRIu64 "\n", "bytes", info->bytes);
    print_field("head", info->head);
    print_field("metadata", info->metadata);
    if ((info->flags & WAL_SESSION_DAMAGED) != 0) {
        print_field("damaged", cli_slice("lost entries; takes no appends"));
    }
}

int walctl_show(struct cli *cli, int argc, char **argv)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    struct cli_json json;
    int code = begin(cli, argc, argv, no_options, 3, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, store, cli->items[2], &session);
    if (code != CLI_GO_ON) {
        return cli_close(cli, cli->items[1], store, code);
    }
    cli_json_init(&json, stdout);
    status = wal_session_status(session, &info, &error);
    if (status != WAL_OK) {
        code = cli_fail(cli, cli->items[2], status, &error);
    } else if (cli->json) {
        write_session(&json, store, &info);
        code = CLI_DONE;
    } else {
        print_session(&info);
        code = CLI_DONE;
    }
    wal_session_close(session);
    return cli_close(cli, cli->items[1], store, code);
}

static const char *tail_name(uint32_t tail)
{
    static const char *const names[] = {"clean", "torn", "ambiguous",
                                        "damaged"};

    return tail < 4 ? names[tail] : "unknown";
}

static void print_stats(const struct cli *cli,
                        const struct wal_store_info *info)
{
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"formatVersion", info->format_version},
        {"sessions", info->sessions},
        {"lastSequence", info->last_sequence},
        {"segments", info->segments},
        {"logBytes", info->log_bytes},
        {"diskBytes", info->disk_bytes},
    };
    const char *state = wal_status_text(info->status);
    char uuid[33];
    struct cli_json json;

    for (size_t i = 0; i < 16; i++) {
        sprintf(uuid + 2 * i, "%02x", info->uuid[i]);
    }
    if (!cli->json) {
        printf("%-14s %s\n", "uuid", uuid);
        for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
            printf("%-14s %" PRIu64 "\n", numbers[i].key, numbers[i].value);
        }
        printf("%-14s %s\n%-14s %s\n", "tail", tail_name(info->tail), "state",
               state);
        return;
    }
    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_json_key(&json, "uuid");
    cli_json_text(&json, cli_slice(uuid));
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        cli_json_key(&json, numbers[i].key);
        cli_json_number(&json, numbers[i].value);
    }
    cli_json_key(&json, "tail");
    cli_json_text(&json, cli_slice(tail_name(info->tail)));
    cli_json_key(&json, "takesAppends");
    cli_json_bool(&json, info->status == WAL_OK);
    cli_json_key(&json, "state");
    cli_json_text(&json, cli_slice(state));
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

int walctl_stats(struct cli *cli, int argc, char **argv)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = begin(cli, argc, argv, no_options, 2, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    status = wal_store_status(store, &info, &error);
    if (status == WAL_OK) {
        print_stats(cli, &info);
        code = CLI_DONE;
    } else {
        code = cli_fail(cli, cli->items[1], status, &error);
    }
    return cli_close(cli, cli->items[1], store, code);
}
