/*
 * project.c - the verbs project and projects.
 *
 * Invariant: they write nothing to a store.
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/project/project.h"

static const struct cli_option no_options[] = {{.name = NULL}};

static void print_project(const struct cli *cli, const char *directory,
                          const char *project)
{
    struct wal__json_out json;

    if (!cli->json) {
        puts(project);
        return;
    }
    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text(&json, "projectId", cli_slice(project));
    cli_json_member_text(&json, "directory", cli_slice(directory));
    wal__json_out_close_line(&json);
}

int verb_project(struct cli *cli, int argc, char **argv)
{
    char project[CLI_PROJECT_SIZE];
    struct stat found;
    const char *operand;
    char *directory;
    int code = cli_parse(cli, argc, argv, no_options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 1, 2);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    operand = cli->count > 1 ? cli->items[1] : ".";
    if (stat(operand, &found) != 0 || !S_ISDIR(found.st_mode)) {
        return cli_error(cli, CLI_NEGATIVE, operand, "no such directory");
    }
    directory = cli_absolute_path(operand);
    cli_project_find(directory, false, project);
    print_project(cli, directory, project);
    free(directory);
    return CLI_OK;
}

/* A project and the totals of its sessions. */
struct project {
    char *id; /* empty: sessions without a project */
    char *newest;
    int64_t updated_ms;
    uint64_t sessions;
    char **directories;
    size_t count;
    size_t capacity;
};

struct projects {
    struct project **items; /* ordered by their newest sessions */
    size_t count;
    size_t capacity;
    void *by_id; /* tree of struct project */
    void *seen;  /* tree of struct project_directory */
};

/* A directory of a project's sessions. */
struct project_directory {
    struct project *project;
    char *directory;
};

static int compare_projects(const void *a, const void *b)
{
    const struct project *one = a;
    const struct project *other = b;

    return strcmp(one->id, other->id);
}

static int compare_directories(const void *a, const void *b)
{
    const struct project_directory *one = a;
    const struct project_directory *other = b;
    int order = strcmp(one->project->id, other->project->id);

    return order != 0 ? order : strcmp(one->directory, other->directory);
}

/* Checks the result of tsearch, which is null if memory is exhausted. */
static void *check_node(void *node)
{
    if (node == NULL) {
        fputs("agentwal: out of memory\n", stderr);
        exit(CLI_FAILED);
    }
    return node;
}

static void project_destroy(struct project *project)
{
    free(project->directories);
    free(project->newest);
    free(project->id);
    free(project);
}

static void project_directory_destroy(void *node)
{
    struct project_directory *project_directory = node;

    free(project_directory->directory);
    free(project_directory);
}

/* tdestroy needs a function; projects_deinit frees the projects. */
static void keep_node(void *node)
{
    (void)node;
}

static void projects_deinit(struct projects *projects)
{
    tdestroy(projects->seen, project_directory_destroy);
    tdestroy(projects->by_id, keep_node);
    for (size_t i = 0; i < projects->count; i++) {
        project_destroy(projects->items[i]);
    }
    free(projects->items);
}

/* The session's project, added if it is new. Call it for the newest session
 * first. */
static struct project *find_or_add_project(struct projects *projects,
                                           const struct wal_session_info *info)
{
    struct project *project = cli_alloc(sizeof(*project));
    struct project *known;

    project->id = cli_copy_text(info->project.data, (size_t)info->project.size);
    known = *(struct project **)check_node(
        tsearch(project, &projects->by_id, compare_projects));
    if (known != project) {
        project_destroy(project);
        return known;
    }
    project->newest = cli_copy_text(info->id.data, (size_t)info->id.size);
    project->updated_ms = info->updated_ms;
    projects->items = cli_reserve(projects->items, projects->count,
                                  &projects->capacity, sizeof(known));
    projects->items[projects->count++] = project;
    return project;
}

static void add_session(struct projects *projects,
                        const struct wal_session_info *info)
{
    struct project *project = find_or_add_project(projects, info);
    struct project_directory *project_directory;
    struct project_directory *known;

    project->sessions++;
    if (info->cwd.size == 0) {
        return;
    }
    project_directory = cli_alloc(sizeof(*project_directory));
    project_directory->project = project;
    project_directory->directory =
        cli_copy_text(info->cwd.data, (size_t)info->cwd.size);
    known = *(struct project_directory **)check_node(
        tsearch(project_directory, &projects->seen, compare_directories));
    if (known != project_directory) {
        project_directory_destroy(project_directory);
        return;
    }
    project->directories = cli_reserve(project->directories, project->count,
                                       &project->capacity, sizeof(char *));
    project->directories[project->count++] = project_directory->directory;
}

static enum wal_status read_projects(struct projects *projects,
                                     struct wal_store *store,
                                     struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_cursor_open(store, NULL, &list, error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        add_session(projects, &info);
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

static void write_row(const struct project *project)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    cli_json_member_text_or_null(&json, "projectId", cli_slice(project->id));
    wal__json_out_member_count(&json, "sessions", project->sessions);
    cli_json_member_text(&json, "newest", cli_slice(project->newest));
    cli_json_member_time(&json, "updated", project->updated_ms);
    wal__json_out_member_open(&json, "directories", '[');
    for (size_t i = 0; i < project->count; i++) {
        cli_json_text(&json, cli_slice(project->directories[i]));
    }
    wal__json_out_close(&json, ']');
    wal__json_out_close_line(&json);
}

static void print_row(const struct project *project, bool is_first)
{
    const char *id = project->id[0] != '\0' ? project->id : "-";
    char updated[64];
    size_t printed;

    if (is_first) {
        printf("%-40s  %8s  %-19s  %-36s  %s\n", "PROJECT", "SESSIONS",
               "UPDATED", "NEWEST", "DIRECTORIES");
    }
    printed = cli_print_name(stdout, cli_slice(id));
    when_text(project->updated_ms, updated);
    printf("%*s  %8" PRIu64 "  %-19.19s  ",
           printed < 40 ? (int)(40 - printed) : 0, "", project->sessions,
           updated);
    printed = cli_print_name(stdout, cli_slice(project->newest));
    printf("%*s", printed < 36 ? (int)(36 - printed) : 0, "");
    for (size_t i = 0; i < project->count; i++) {
        fputs("  ", stdout);
        cli_print_name(stdout, cli_slice(project->directories[i]));
    }
    putchar('\n');
}

int verb_projects(struct cli *cli, int argc, char **argv)
{
    struct projects projects = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *store = NULL;
    enum wal_status status;
    int code = cli_begin(cli, argc, argv, no_options, 2, 2, WAL_OPEN_READ_ONLY,
                         &store);

    if (code != CLI_CONTINUE) {
        return code;
    }
    status = read_projects(&projects, store, &error);
    for (size_t i = 0; status == WAL_OK && i < projects.count; i++) {
        if (cli->json) {
            write_row(projects.items[i]);
        } else {
            print_row(projects.items[i], i == 0);
        }
    }
    projects_deinit(&projects);
    code = status == WAL_OK ? CLI_OK
                            : cli_report(cli, cli->items[1], status, &error);
    return cli_close_store(cli, cli->items[1], store, code);
}
