/*
 * walctl_show - the commands that tell of sessions: list, latest, children and
 * show.
 *
 * Invariant: they write nothing to the store but the project ids of sessions of
 * the directory that is asked for (walctl_adopt.h).
 *
 * Threads: one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli_session.h"
#include "tools/walctl.h"
#include "tools/walctl_adopt.h"
#include "tools/walctl_changes.h"

static const struct cli_option no_options[] = {{.name = NULL}};

int walctl_list(struct cli *cli, int argc, char **argv)
{
    const char *cwd = NULL;
    const char *project = NULL;
    const char *limit_text = "0";
    const char *after = NULL;
    bool cursor = false;
    const struct cli_option options[] = {
        {.name = "cwd", .value = &cwd},
        {.name = "project", .value = &project},
        {.name = "limit", .value = &limit_text},
        {.name = "after", .value = &after},
        {.name = "cursor", .flag = &cursor},
        {.name = NULL},
    };
    struct wal_list_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_store *store = NULL;
    uint64_t limit = 0;
    char *directory;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 2, 2);
    }
    if (code == CLI_GO_ON) {
        code = cli_number(cli, "--limit", limit_text, UINT64_MAX, &limit);
    }
    if (code == CLI_GO_ON) {
        code = cli_limit(cli, "--project", project, CLI_TEXT_MAX);
    }
    if (code == CLI_GO_ON) {
        code = walctl_directory(cli, cwd, &directory);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    code = walctl_open_adopted(cli, directory, &store);
    if (code == CLI_GO_ON) {
        wanted.cwd = cli_slice(directory);
        wanted.project = cli_slice(project);
        wanted.after = cli_slice(after);
        code = cli_session_table(cli, store, cli->items[1], &wanted, limit,
                                 cursor);
        code = cli_close(cli, cli->items[1], store, code);
    }
    free(directory);
    return code;
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
    return status == WAL_OK ? CLI_DONE
                            : cli_fail(cli, cli->items[1], status, &error);
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
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 2, 2);
    }
    if (code == CLI_GO_ON) {
        code = walctl_directory(cli, cwd, &directory);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    code = walctl_open_adopted(cli, directory, &store);
    if (code == CLI_GO_ON) {
        wanted.cwd = cli_slice(directory);
        code = print_latest(cli, store, &wanted);
        code = cli_close(cli, cli->items[1], store, code);
    }
    free(directory);
    return code;
}

int walctl_children(struct cli *cli, int argc, char **argv)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_list_options wanted = {.struct_size = sizeof(wanted)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = walctl_begin(cli, argc, argv, no_options, 3, 3,
                            WAL_OPEN_READ_ONLY, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, store, cli->items[2], &session);
    if (code == CLI_GO_ON) {
        status = wal_session_status(session, &info, &error);
        wanted.parent = info.id;
        code = status == WAL_OK ? cli_session_table(cli, store, cli->items[1],
                                                    &wanted, 0, false)
                                : cli_fail(cli, cli->items[2], status, &error);
        wal_session_close(session);
    }
    return cli_close(cli, cli->items[1], store, code);
}

/* What show tells of a session; its slices hold while it is open. */
struct shown {
    struct wal_session_info info;
    struct cli_heads heads;
    char **lineage; /* ids of the sessions it came from, nearest first */
    size_t lineage_count;
    bool has_checkpoints;
    bool has_changes; /* and they could be read */
    struct wal_changes_info changes;
};

static void shown_deinit(struct shown *shown)
{
    for (size_t i = 0; i < shown->lineage_count; i++) {
        free(shown->lineage[i]);
    }
    free(shown->lineage);
    cli_heads_deinit(&shown->heads);
}

static enum wal_status read_lineage(struct shown *shown,
                                    struct wal_store *store,
                                    struct wal_error *error)
{
    struct wal_list_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_LIST_LINEAGE,
        .of = shown->info.id,
    };
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_list *list = NULL;
    size_t capacity = 0;
    enum wal_status status = wal_list_open(store, &options, &list, error);

    while (status == WAL_OK &&
           (status = wal_list_next(list, &info, error)) == WAL_OK) {
        shown->lineage = cli_room(shown->lineage, shown->lineage_count,
                                  &capacity, sizeof(shown->lineage[0]));
        shown->lineage[shown->lineage_count++] =
            cli_copy(info.id.data, (size_t)info.id.size);
    }
    wal_list_close(list);
    return status == WAL_END ? WAL_OK : status;
}

/* What the session's checkpoints say it changed. */
static enum wal_status read_changes(struct shown *shown,
                                    struct wal_session *session,
                                    struct wal_error *error)
{
    struct wal_checkpoint_info info = {.struct_size = sizeof(info)};
    struct wal_checkpoints *checkpoints = NULL;
    struct wal_file_changes *changes = NULL;
    enum wal_status status = wal_checkpoints_open(session, &checkpoints, error);

    if (status == WAL_OK) {
        status = wal_checkpoints_next(checkpoints, &info, error);
    }
    wal_checkpoints_close(checkpoints);
    if (status == WAL_END) {
        return WAL_OK;
    }
    shown->has_checkpoints = true;
    if (status == WAL_OK) {
        status = wal_session_changes(session, &changes, error);
    }
    if (status == WAL_OK) {
        shown->changes.struct_size = sizeof(shown->changes);
        status = wal_file_changes_status(changes, &shown->changes, error);
    }
    wal_file_changes_close(changes);
    shown->has_changes = status == WAL_OK;
    return status;
}

/* Heads of the conversation; those of other streams are told by `head`. */
static void write_heads(struct cli_json *json, const struct shown *shown)
{
    cli_json_open(json, '{');
    for (size_t i = 0; i < shown->heads.count; i++) {
        if (shown->heads.items[i].stream == 0) {
            cli_json_name(json, shown->heads.items[i].name);
            cli_json_text(json, shown->heads.items[i].entry_id);
        }
    }
    cli_json_close(json, '}');
}

static void write_session(const struct shown *shown)
{
    const struct wal_session_info *info = &shown->info;
    struct cli_json json;

    cli_json_init(&json, stdout);
    cli_json_open(&json, '{');
    cli_session_members(&json, info);
    cli_json_key(&json, "heads");
    write_heads(&json, shown);
    cli_json_key(&json, "lineage");
    cli_json_open(&json, '[');
    for (size_t i = 0; i < shown->lineage_count; i++) {
        cli_json_text(&json, cli_slice(shown->lineage[i]));
    }
    cli_json_close(&json, ']');
    cli_json_key(&json, "metadata");
    cli_json_raw(&json,
                 info->metadata.size > 0 ? info->metadata : cli_slice("{}"));
    cli_json_key(&json, "metadataVersion");
    cli_json_number(&json, info->metadata_version);
    cli_json_key(&json, "bytes");
    cli_json_number(&json, info->bytes);
    cli_json_key(&json, "documents");
    cli_json_number(&json, info->documents);
    cli_json_key(&json, "inherited");
    cli_json_number(&json, info->inherited);
    cli_json_key(&json, "schemaVersion");
    cli_json_number(&json, info->schema_version);
    cli_json_key(&json, "source");
    cli_json_optional(&json, info->source);
    cli_json_key(&json, "fork");
    cli_json_bool(&json, (info->flags & WAL_SESSION_FORK) != 0);
    cli_json_key(&json, "damaged");
    cli_json_bool(&json, (info->flags & WAL_SESSION_DAMAGED) != 0);
    if (shown->has_changes) {
        cli_json_key(&json, "changes");
        walctl_json_sums(&json, &shown->changes);
    }
    cli_json_close(&json, '}');
    cli_json_line(&json);
}

static void print_field(const char *name, struct wal_slice value)
{
    if (value.size > 0) {
        printf("%-10s ", name);
        cli_print(stdout, value, 0, false);
        putchar('\n');
    }
}

static void print_id(const char *name, struct wal_slice id)
{
    if (id.size > 0) {
        printf("%-10s ", name);
        cli_print_name(stdout, id);
        putchar('\n');
    }
}

static void print_heads(const struct shown *shown)
{
    for (size_t i = 0; i < shown->heads.count; i++) {
        const struct wal_head *head = &shown->heads.items[i];
        printf("%-10s ", "head");
        cli_print_name(stdout, head->name);
        if (head->stream != 0) {
            printf(" of stream %" PRIu32, head->stream);
        }
        fputs(": ", stdout);
        cli_print_name(stdout, head->entry_id);
        putchar('\n');
    }
}

static void print_session(const struct shown *shown)
{
    const struct wal_session_info *info = &shown->info;
    char text[64];

    print_id("session", info->id);
    print_field("title", info->title);
    print_field("begins", info->first_text);
    print_field("directory", info->cwd);
    print_field("project", info->project);
    print_id("parent", info->parent_id);
    for (size_t i = 0; i < shown->lineage_count; i++) {
        print_id("lineage", cli_slice(shown->lineage[i]));
    }
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
    print_heads(shown);
    if (shown->has_changes) {
        printf("%-10s ", "changes");
        walctl_print_sums(&shown->changes);
        putchar('\n');
    }
    print_field("metadata", info->metadata);
    if ((info->flags & WAL_SESSION_DAMAGED) != 0) {
        print_field("damaged", cli_slice("lost entries; takes no appends"));
    }
}

static int show(const struct cli *cli, struct wal_store *store,
                struct wal_session *session)
{
    struct shown shown = {.info.struct_size = sizeof(shown.info)};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_session_status(session, &shown.info, &error);
    bool is_whole = false;

    if (status == WAL_OK) {
        status = cli_heads_read(&shown.heads, session, &error);
    }
    if (status == WAL_OK) {
        status = read_lineage(&shown, store, &error);
    }
    /* The rest is told whatever becomes of the checkpoints. */
    if (status == WAL_OK) {
        status = read_changes(&shown, session, &error);
        is_whole = status == WAL_OK || shown.has_checkpoints;
    }
    if (is_whole && cli->json) {
        write_session(&shown);
    } else if (is_whole) {
        print_session(&shown);
    }
    shown_deinit(&shown);
    return status == WAL_OK ? CLI_DONE
                            : cli_fail(cli, cli->items[2], status, &error);
}

int walctl_show(struct cli *cli, int argc, char **argv)
{
    struct wal_session *session = NULL;
    struct wal_store *store = NULL;
    int code = walctl_begin(cli, argc, argv, no_options, 3, 3,
                            WAL_OPEN_READ_ONLY, &store);

    if (code != CLI_GO_ON) {
        return code;
    }
    code = cli_session(cli, store, cli->items[2], &session);
    if (code == CLI_GO_ON) {
        code = show(cli, store, session);
        wal_session_close(session);
    }
    return cli_close(cli, cli->items[1], store, code);
}
