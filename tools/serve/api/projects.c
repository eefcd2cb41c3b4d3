/*
 * projects.c - the projects of the store's sessions (sessions.h).
 *
 * A session without a project belongs to that of its directory: an item without
 * an id.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/ids.h"
#include "tools/serve/api/opencode.h"
#include "tools/serve/api/sessions.h"
#include "tools/shown/session_json.h"

struct project {
    char *id;           /* empty: none */
    char *cwd;          /* of its newest session */
    int64_t created_ms; /* of the first session that was created */
    int64_t updated_ms;
    uint64_t sessions;
};

struct projects {
    struct project *items; /* by their newest sessions */
    size_t count;
    size_t capacity;
    struct cli_ids ranks; /* of an id, or of "\n" and a directory */
};

static void add(struct projects *projects, const struct wal_session_info *info)
{
    struct wal_slice name = info->project.size > 0 ? info->project : info->cwd;
    size_t size = (size_t)name.size + 1;
    char *key = cli_alloc(size);
    uint32_t *rank;
    struct project *project;

    key[0] = info->project.size > 0 ? ' ' : '\n';
    if (name.size > 0) {
        memcpy(key + 1, name.data, (size_t)name.size);
    }
    rank = cli_ids_get_or_add(&projects->ranks, (struct wal_slice){key, size});
    if (*rank == 0) {
        projects->items =
            cli_reserve(projects->items, projects->count, &projects->capacity,
                        sizeof(projects->items[0]));
        project = &projects->items[projects->count++];
        *project = (struct project){
            .id = cli_copy_text(info->project.data, (size_t)info->project.size),
            .cwd = cli_copy_text(info->cwd.data, (size_t)info->cwd.size),
            .created_ms = info->created_ms,
            .updated_ms = info->updated_ms,
        };
        *rank = (uint32_t)projects->count;
    }
    project = &projects->items[*rank - 1];
    project->sessions++;
    if (info->created_ms < project->created_ms) {
        project->created_ms = info->created_ms;
    }
    free(key);
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
        add(projects, &info);
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

/* The last part of a directory. */
static struct wal_slice name_of(const char *cwd)
{
    const char *slash = strrchr(cwd, '/');

    return cli_slice(slash != NULL && slash[1] != '\0' ? slash + 1 : cwd);
}

static void write_projects(struct shown *shown, const struct projects *projects)
{
    struct wal__json_out *json = shown->json;

    wal__json_out_open(json, '{');
    wal__json_out_member_open(json, "projects", '[');
    for (size_t i = 0; i < projects->count; i++) {
        const struct project *project = &projects->items[i];

        wal__json_out_open(json, '{');
        shown_member(shown, "id", cli_slice(project->id));
        shown_member(shown, "cwd", cli_slice(project->cwd));
        shown_member(shown, "name", name_of(project->cwd));
        wal__json_out_member_count(shown->json, "sessions", project->sessions);
        shown_time(shown, "updated", project->updated_ms);
        wal__json_out_close(json, '}');
    }
    wal__json_out_close(json, ']');
    wal__json_out_close(json, '}');
}

static void deinit(struct projects *projects)
{
    for (size_t i = 0; i < projects->count; i++) {
        free(projects->items[i].id);
        free(projects->items[i].cwd);
    }
    free(projects->items);
    cli_ids_deinit(&projects->ranks);
}

/* Answers with what `write` makes of all projects. */
static void answer(struct serve_exchange *exchange,
                   void (*write)(struct serve_exchange *exchange,
                                 const struct projects *projects))
{
    struct projects projects = {.items = NULL};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status =
        read_projects(&projects, exchange->server->store, &error);

    if (status == WAL_OK) {
        write(exchange, &projects);
    } else {
        serve_exchange_fail(exchange, status, &error);
    }
    deinit(&projects);
}

static void write_own(struct serve_exchange *exchange,
                      const struct projects *projects)
{
    write_projects(&exchange->shown, projects);
}

void serve_get_projects(struct serve_exchange *exchange)
{
    answer(exchange, write_own);
}

/* --- as OpenCode's server answers them ---------------------------------- */

static void write_project(struct shown *shown, const struct project *project)
{
    wal__json_out_open(shown->json, '{');
    cli_json_member_text(
        shown->json, "id",
        cli_slice(project->id[0] != '\0' ? project->id : "global"));
    cli_json_member_text(shown->json, "worktree", cli_slice(project->cwd));
    wal__json_out_member_open(shown->json, "time", '{');
    shown_time(shown, "created", project->created_ms);
    shown_time(shown, "updated", project->updated_ms);
    wal__json_out_close(shown->json, '}');
    wal__json_out_close(shown->json, '}');
}

static void write_opencode(struct serve_exchange *exchange,
                           const struct projects *projects)
{
    wal__json_out_open(&exchange->json, '[');
    for (size_t i = 0; i < projects->count; i++) {
        write_project(&exchange->shown, &projects->items[i]);
    }
    wal__json_out_close(&exchange->json, ']');
}

void serve_opencode_projects(struct serve_exchange *exchange)
{
    answer(exchange, write_opencode);
}

/* Of a directory without sessions it is the one that all others belong to. */
static void write_current(struct serve_exchange *exchange,
                          const struct projects *projects)
{
    struct wal_slice directory = serve_exchange_query(exchange, "directory");
    struct project none = {.id = (char[]){""}, .cwd = (char[]){"/"}};
    const struct project *found = &none;
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session *session = NULL;

    if (directory.size > 0 &&
        wal_session_open_latest(exchange->server->store, directory, &session,
                                NULL) == WAL_OK &&
        wal_session_get_info(session, &info, NULL) == WAL_OK) {
        for (size_t i = 0; i < projects->count; i++) {
            if (cli_slice_equal(cli_slice(projects->items[i].id),
                                info.project)) {
                found = &projects->items[i];
            }
        }
    }
    write_project(&exchange->shown, found);
    wal_session_close(session);
}

void serve_opencode_project(struct serve_exchange *exchange)
{
    answer(exchange, write_current);
}
