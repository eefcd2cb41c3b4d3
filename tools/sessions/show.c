/*
 * show.c - the verbs list, latest, children and show; project and projects.
 *
 * Invariant: they write nothing to the store but the project ids of sessions of the requested
 * directory (tools/project/project.h).
 */
#include <agentwal/admin.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "convert/source/source_name.h"
#include "tools/cli/session.h"
#include "tools/cli/verbs.h"
#include "tools/files/files.h"
#include "tools/project/project.h"
#include "tools/shown/shown.h"

int verb_list(struct cli *cli, int argc, char **argv)
{
    struct cli_list list = {.options = WAL_INIT(wal_session_cursor_options)};
    const char *directory = NULL;
    const char *project = NULL;
    const char *after = NULL;
    int64_t since_ms = 0;
    bool trash = false;
    const struct cli_option options[] = {
        {.name = "cwd", .directory = &directory},
        {.name = "project", .value = &project, .max = CLI_TEXT_MAX},
        {.name = "client", .value = &list.client},
        {.name = "title", .value = &list.title},
        {.name = "since", .time = &since_ms},
        {.name = "limit", .number = &list.limit, .max = UINT64_MAX},
        {.name = "after", .value = &after},
        {.name = "cursor", .flag = &list.cursor},
        {.name = "trash", .flag = &trash},
        {.name = "subagents", .flag = &list.subagents},
        {.name = NULL},
    };

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    project_open_updated(cli, directory);
    list.options.cwd = cli_slice(directory);
    list.options.project = cli_slice(project);
    list.options.after = cli_slice(after);
    list.options.changed_after = since_ms > 0 ? since_ms - 1 : 0;
    list.options.flags = trash ? (uint32_t)WAL_SESSION_CURSOR_TRASH : 0;
    return cli_print_sessions(cli, &list);
}

static int print_latest(const struct cli *cli, const struct wal_session_cursor_options *options)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status;

    status = cli_open_latest(cli->store, options, &list, &info, cli->error);
    if (status == WAL_OK && cli->json) {
        struct wal__json_out json;

        cli_json_begin(&json);
        cli_session_json(&json, cli->store, &info);
        wal__json_out_close_line(&json);
    } else if (status == WAL_OK) {
        fwrite(info.id.data, 1, (size_t)info.id.size, stdout);
        putchar('\n');
    }
    wal_session_cursor_close(list);
    if (status == WAL_END) {
        return cli_error(
            cli, CLI_NEGATIVE, options->cwd.size > 0 ? options->cwd.data : cli->items[1],
            options->cwd.size > 0 ? "no session of this directory" : "there is no session");
    }
    return cli_report(cli, cli->items[1], status);
}

int verb_latest(struct cli *cli, int argc, char **argv)
{
    const char *directory = NULL;
    const struct cli_option options[] = {
        {.name = "cwd", .directory = &directory},
        {.name = NULL},
    };
    struct wal_session_cursor_options wanted = {.struct_size = sizeof(wanted)};

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    project_open_updated(cli, directory);
    wanted.cwd = cli_slice(directory);
    return print_latest(cli, &wanted);
}

int verb_children(struct cli *cli, int argc, char **argv)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct cli_list list = {.options = WAL_INIT(wal_session_cursor_options), .subagents = true};

    cli_begin_session(cli, argc, argv, NULL, 3, 3, WAL_OPEN_READ_ONLY);
    cli_check(cli, cli->items[2], wal_session_get_info(cli->session, &info, cli->error));
    list.options.parent = info.id;
    return cli_print_sessions(cli, &list);
}

/* The data that show prints; its slices are valid while the session is open. */
struct session_details {
    struct wal_session_info info;
    struct shown_subagent start; /* of a subagent */
    struct cli_heads heads;
    struct cli_texts lineage; /* ids of its ancestors, nearest first */
    bool has_moved;           /* then `move` says where to */
    struct wal_session_move move;
    bool has_checkpoints;
    bool has_changes; /* its checkpoints could be read */
    struct wal_file_changes_info changes;
};

static enum wal_status read_lineage(struct session_details *session_details,
                                    struct wal_store *store, struct wal_error *error)
{
    struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .flags = WAL_SESSION_CURSOR_LINEAGE,
        .lineage_of = session_details->info.id,
    };
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, &options, error); cli_sessions_next(&list);) {
        cli_texts_add(&session_details->lineage, list.info.id);
    }
    return list.status;
}

/* Reads the changes between the session's checkpoints. */
static enum wal_status read_changes(struct session_details *session_details,
                                    struct wal_session *session, struct wal_error *error)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *checkpoints = NULL;
    struct wal_file_change_cursor *changes = NULL;
    enum wal_status status = wal_checkpoint_cursor_open(session, &checkpoints, error);

    if (status == WAL_OK) {
        status = wal_checkpoint_cursor_next(checkpoints, &info, error);
    }
    wal_checkpoint_cursor_close(checkpoints);
    if (status == WAL_END) {
        return WAL_OK;
    }
    session_details->has_checkpoints = true;
    if (status == WAL_OK) {
        status = wal_session_diff(session, &changes, error);
    }
    if (status == WAL_OK) {
        session_details->changes.struct_size = sizeof(session_details->changes);
        status = wal_file_changes_get_info(changes, &session_details->changes, error);
    }
    wal_file_change_cursor_close(changes);
    session_details->has_changes = status == WAL_OK;
    return status;
}

/* Writes the heads of the conversation; the command head has those of other streams. */
static void write_heads(struct wal__json_out *json, const struct session_details *session_details)
{
    wal__json_out_open(json, '{');
    for (size_t i = 0; i < session_details->heads.count; i++) {
        if (session_details->heads.items[i].stream == 0) {
            cli_json_key_text(json, session_details->heads.items[i].name);
            cli_json_text(json, session_details->heads.items[i].entry_id);
        }
    }
    wal__json_out_close(json, '}');
}

static void write_session(const struct session_details *session_details, struct wal_store *store)
{
    const struct wal_session_info *info = &session_details->info;
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_session_json(&json, store, info);
    wal__json_out_key(&json, "heads");
    write_heads(&json, session_details);
    wal__json_out_member_open(&json, "lineage", '[');
    for (size_t i = 0; i < session_details->lineage.count; i++) {
        cli_json_text(&json, cli_slice(session_details->lineage.items[i]));
    }
    wal__json_out_close(&json, ']');
    if (session_details->start.id != NULL) {
        cli_json_member_text_or_null(&json, "call", cli_slice(session_details->start.call));
        cli_json_member_text_or_null(&json, "callEntryId", cli_slice(session_details->start.entry));
    }
    wal__json_out_key(&json, "metadata");
    cli_json_raw(&json, info->metadata.size > 0 ? info->metadata : cli_slice("{}"));
    wal__json_out_member_count(&json, "metadataVersion", info->metadata_version);
    wal__json_out_member_count(&json, "bytes", info->bytes);
    wal__json_out_member_count(&json, "documents", info->documents);
    wal__json_out_member_count(&json, "inherited", info->inherited);
    wal__json_out_member_count(&json, "schemaVersion", info->schema_version);
    cli_json_member_text_or_null(&json, "source", info->source);
    wal__json_out_member_bool(&json, "fork", (info->flags & WAL_SESSION_FORK) != 0);
    wal__json_out_member_bool(&json, "damaged", (info->flags & WAL_SESSION_DAMAGED) != 0);
    if (session_details->has_changes) {
        wal__json_out_key(&json, "changes");
        files_json_totals(&json, &session_details->changes);
    }
    wal__json_out_close_line(&json);
}

static void print_field(const char *name, struct wal_slice value)
{
    if (value.size > 0) {
        printf("%-10s ", name);
        cli_print_text(stdout, value, 0, false);
        putchar('\n');
    }
}

/* Columns of a text that is cut at the terminal's width, of which `used` are taken. */
static size_t columns_left(const struct cli *cli, size_t used)
{
    size_t columns = cli->terminal->columns;

    return columns > 2 * used ? columns - used : columns;
}

/* As print_field, cut at the terminal's width. */
static void print_title(const struct cli *cli, const char *name, struct wal_slice title)
{
    if (title.size > 0) {
        printf("%-10s ", name);
        terminal_put_style(cli->terminal, TERMINAL_STRONG);
        cell_print(stdout, title.data, (size_t)title.size, columns_left(cli, 11), 0);
        terminal_put_style(cli->terminal, TERMINAL_PLAIN);
        putchar('\n');
    }
}

/* The client and the path of a source, of which a narrow terminal shows the end. */
static void print_source(const struct cli *cli, struct wal_slice text)
{
    struct wal__source source;

    if (!wal__source_parse(text, &source)) {
        print_field("source", text);
        return;
    }
    printf("%-10s %s ", "source", source.dialect);
    if (source.ordinal > 0) {
        printf("%" PRIu64 " ", source.ordinal);
    }
    cell_print(stdout, source.path, strlen(source.path),
               columns_left(cli, 12 + strlen(source.dialect)), CELL_KEEP_END);
    putchar('\n');
}

static void print_id(const char *name, struct wal_slice id)
{
    if (id.size > 0) {
        printf("%-10s ", name);
        cli_print_name(stdout, id);
        putchar('\n');
    }
}

static void print_heads(const struct session_details *session_details)
{
    for (size_t i = 0; i < session_details->heads.count; i++) {
        const struct wal_head *head = &session_details->heads.items[i];
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

static void print_time(const char *name, int64_t unix_ms)
{
    char text[64];

    when_text(unix_ms, text);
    print_field(name, cli_slice(text));
}

static void print_session(const struct cli *cli, const struct session_details *session_details)
{
    const struct wal_session_info *info = &session_details->info;
    char text[CLI_TEXT_MAX];

    print_id("session", info->id);
    print_title(cli, "title", info->title);
    print_title(cli, "begins", cli_session_first_text(cli->store, info, text));
    print_field("directory", info->cwd);
    print_field("project", info->project);
    print_id("parent", info->parent_id);
    print_field("agent", cli_slice(session_details->start.agent));
    print_field("call", cli_slice(session_details->start.call));
    print_id("called in", cli_slice(session_details->start.entry));
    for (size_t i = 0; i < session_details->lineage.count; i++) {
        print_id("lineage", cli_slice(session_details->lineage.items[i]));
    }
    print_source(cli, info->source);
    print_time("created", info->created_ms);
    print_time("updated", info->updated_ms);
    printf("%-10s %" PRIu64, "entries", info->entries);
    if (info->inherited > 0) {
        printf(", %" PRIu64 " of them shared", info->inherited);
    }
    printf("\n%-10s %" PRIu64 "\n", "bytes", info->bytes);
    print_heads(session_details);
    if (session_details->has_changes) {
        printf("%-10s ", "changes");
        files_print_totals(&session_details->changes);
        putchar('\n');
    }
    print_field("metadata", info->metadata);
    if ((info->flags & WAL_SESSION_DAMAGED) != 0) {
        print_field("damaged", cli_slice("lost entries; refuses appends"));
    }
    if (session_details->has_moved) {
        const char *host = session_details->move.host;

        print_field("moved to",
                    cli_slice(host[0] != '\0' ? host : "the machine that resumes it next"));
    }
}

int verb_show(struct cli *cli, int argc, char **argv)
{
    static struct session_details session_details = {.info = WAL_INIT(wal_session_info),
                                                     .move = WAL_INIT(wal_session_move)};
    bool is_whole = false;
    enum wal_status status;

    cli_begin_session(cli, argc, argv, NULL, 3, 3, WAL_OPEN_READ_ONLY);
    status = wal_session_get_info(cli->session, &session_details.info, cli->error);

    session_details.has_moved =
        status == WAL_OK && (session_details.info.flags & WAL_SESSION_MOVED) != 0;
    if (session_details.has_moved) {
        status = wal_session_get_move(cli->session, &session_details.move, cli->error);
    }
    if (status == WAL_OK) {
        status = cli_heads_read(&session_details.heads, cli->session, cli->error);
    }
    if (status == WAL_OK) {
        status = read_lineage(&session_details, cli->store, cli->error);
    }
    /* Print the rest even if the checkpoints cannot be read. */
    if (status == WAL_OK) {
        status = read_changes(&session_details, cli->session, cli->error);
        is_whole = status == WAL_OK || session_details.has_checkpoints;
    }
    if (is_whole) {
        (void)shown_starter_read(&session_details.start, cli->store, &session_details.info);
    }
    if (is_whole && cli->json) {
        write_session(&session_details, cli->store);
    } else if (is_whole) {
        cli_start_pager(cli);
        print_session(cli, &session_details);
    }
    return cli_report(cli, cli->items[2], status);
}

/* --- project and projects ----------------------------------------------- */

static void print_project(const struct cli *cli, const char *directory, const char *project)
{
    struct wal__json_out json;

    if (!cli->json) {
        puts(project);
        return;
    }
    cli_json_begin(&json);
    cli_json_member_text(&json, "projectId", cli_slice(project));
    cli_json_member_text(&json, "directory", cli_slice(directory));
    wal__json_out_close_line(&json);
}

int verb_project(struct cli *cli, int argc, char **argv)
{
    char project[CLI_PROJECT_SIZE];
    struct stat found;
    const char *operand;
    const char *directory;

    cli_parse_operands(cli, argc, argv, NULL, 1, 2);
    operand = cli->count > 1 ? cli->items[1] : ".";
    if (stat(operand, &found) != 0 || !S_ISDIR(found.st_mode)) {
        cli_fail(cli, CLI_NEGATIVE, operand, "no such directory");
    }
    directory = cli_keep_absolute(operand);
    cli_project_find(directory, false, project);
    print_project(cli, directory, project);
    return CLI_OK;
}

static void write_row(const struct cli_project *project)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text_or_null(&json, "projectId", cli_slice(project->id));
    wal__json_out_member_count(&json, "sessions", project->sessions);
    cli_json_member_text(&json, "newest", cli_slice(project->newest));
    cli_json_member_time(&json, "updated", project->updated_ms);
    wal__json_out_member_open(&json, "directories", '[');
    for (size_t i = 0; i < project->directories.count; i++) {
        cli_json_text(&json, cli_slice(project->directories.items[i].text));
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void put_row(struct table *table, struct wal_store *store, const struct cli_project *project)
{
    const bool is_directory = project->directories.count > 0 &&
                              strcmp(project->id, project->directories.items[0].text) == 0;
    size_t others = project->directories.count > 1 ? project->directories.count - 1 : 0;

    table_put_directory(table, cli_slice(project->cwd[0] != '\0' ? project->cwd : "(unknown)"));
    table_put_count(table, others);
    table_put_count(table, project->sessions);
    table_put_age(table, project->updated_ms, when_now_ms());
    table_put(table, cli_session_short(store, cli_slice(project->newest)));
    table_put(table, cli_slice(is_directory ? "" : project->id));
}

int verb_projects(struct cli *cli, int argc, char **argv)
{
    static struct cli_projects projects;
    struct table table;

    cli_begin(cli, argc, argv, NULL, 2, 2, WAL_OPEN_READ_ONLY);
    cli_check(cli, cli->items[1], cli_projects_read(&projects, cli->store, false, cli->error));
    table_init(&table, stdout, cli->terminal,
               TABLE_COLUMNS(TABLE_PATH("DIRECTORY", 20), TABLE_NUMBER("OTHERS"),
                             TABLE_NUMBER("SESSIONS"), TABLE_TIME("UPDATED"), TABLE_ID("NEWEST"),
                             TABLE_ANY("PROJECT", 0, TABLE_ID_MAX, TABLE_FILLED)));
    for (size_t i = 0; i < projects.count; i++) {
        if (cli->json) {
            write_row(&projects.items[i]);
        } else {
            put_row(&table, cli->store, &projects.items[i]);
        }
    }
    table_finish(&table);
    return CLI_OK;
}
