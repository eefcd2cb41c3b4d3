/*
 * refresh.c - moves sessions to the project of their directory.
 *
 * Invariant: a session is changed only if, when it is written, it still has
 * that directory and a former project.
 *
 * Threads: the tool has one thread.
 */
#include "tools/project/refresh.h"

#include <stdlib.h>
#include <string.h>

#include "tools/project/project.h"

struct texts {
    char **items;
    size_t count;
    size_t capacity;
};

static void add_text(struct texts *texts, struct wal_slice text)
{
    texts->items = cli_reserve(texts->items, texts->count, &texts->capacity,
                               sizeof(texts->items[0]));
    texts->items[texts->count++] = cli_copy_text(text.data, (size_t)text.size);
}

static void texts_deinit(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++) {
        free(texts->items[i]);
    }
    free(texts->items);
}

/* Whether a session has a former project id of its directory. */
static bool is_legacy_project(const struct wal_session_info *info)
{
    char former[CLI_PROJECT_SIZE];

    /* An import of a directory that was not there has its path. */
    if (cli_slice_equal(info->project, cli_slice(CLI_PROJECT_GLOBAL)) ||
        (info->cwd.size > 0 && cli_slice_equal(info->project, info->cwd))) {
        return true;
    }
    cli_project_legacy_id(info->cwd, former);
    return cli_slice_equal(info->project, cli_slice(former));
}

/* The directory whose sessions are moved, and their new project. */
struct refresh {
    struct wal_slice directory;
    struct wal_slice project;
};

static int32_t update_change(void *ctx, const struct wal_session_info *now,
                             struct wal_session_change *change)
{
    const struct refresh *refresh = ctx;

    if (!cli_slice_equal(now->cwd, refresh->directory) ||
        !is_legacy_project(now)) {
        return 1;
    }
    change->fields = WAL_CHANGE_PROJECT;
    change->project = refresh->project;
    return 0;
}

/* Moves a session back to the global project; update_change then moves it
 * again. */
static int32_t release(void *ctx, const struct wal_session_info *now,
                       struct wal_session_change *change)
{
    const struct refresh *refresh = ctx;

    if (!cli_slice_equal(now->cwd, refresh->directory) ||
        !cli_slice_equal(now->project, refresh->project)) {
        return 1;
    }
    change->fields = WAL_CHANGE_PROJECT;
    change->project = cli_slice(CLI_PROJECT_GLOBAL);
    return 0;
}

/* Updates one session. A session that was deleted or changed meanwhile is not a
 * failure. The newest is written even if it has the project already, because of
 * sessions with equal times the one that is written last is the newest, and a
 * change without effect is not written. */
static enum wal_status update_session(struct wal_store *store, const char *id,
                                      struct refresh *refresh, bool is_newest,
                                      uint64_t *count, struct wal_error *error)
{
    struct wal_session *session = NULL;
    bool is_released = false;
    enum wal_status status =
        wal_session_open(store, cli_slice(id), &session, error);

    if (status == WAL_OK && is_newest) {
        status = wal_session_update(session, release, refresh, error);
        is_released = status == WAL_OK;
        status = status == WAL_ECALLBACK ? WAL_OK : status;
    }
    if (status == WAL_OK) {
        status = wal_session_update(session, update_change, refresh, error);
    }
    *count += status == WAL_OK && !is_released;
    wal_session_close(session);
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED ||
                   status == WAL_ECALLBACK
               ? WAL_OK
               : status;
}

/* Lists the sessions of a directory to write, newest first: those with a former
 * project, and the newest if there are any. */
static enum wal_status find_legacy_sessions(struct wal_store *store,
                                            struct wal_slice directory,
                                            struct texts *ids,
                                            struct wal_error *error)
{
    struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .cwd = directory,
    };
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    bool has_legacy_projects = false;
    enum wal_status status =
        wal_session_cursor_open(store, &options, &list, error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        bool is = is_legacy_project(&info);
        if (is || ids->count == 0) {
            add_text(ids, info.id);
        }
        has_legacy_projects = has_legacy_projects || is;
    }
    wal_session_cursor_close(list);
    if (!has_legacy_projects) {
        texts_deinit(ids);
        *ids = (struct texts){.items = NULL};
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status project_refresh(struct wal_store *store, const char *directory,
                                const char *project, uint64_t *count,
                                struct wal_error *error)
{
    struct refresh refresh = {cli_slice(directory), cli_slice(project)};
    struct wal_error other = CLI_ERROR_INIT;
    struct texts ids = {.items = NULL};
    enum wal_status status;
    enum wal_status found;

    if (strcmp(project, CLI_PROJECT_GLOBAL) == 0) {
        return WAL_OK;
    }
    status = find_legacy_sessions(store, refresh.directory, &ids, error);
    /* Write the newest session last, so that the order is kept. */
    for (size_t i = ids.count; i > 0; i--) {
        found = update_session(store, ids.items[i - 1], &refresh, i == 1, count,
                               status == WAL_OK ? error : &other);
        status = status == WAL_OK ? found : status;
    }
    texts_deinit(&ids);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the directories with sessions of former projects, sorted, with
 * repeats. */
static enum wal_status find_directories(struct wal_store *store,
                                        struct texts *directories,
                                        struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_cursor_open(store, NULL, &list, error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (info.cwd.size > 0 && is_legacy_project(&info)) {
            add_text(directories, info.cwd);
        }
    }
    wal_session_cursor_close(list);
    if (directories->count > 0) {
        qsort(directories->items, directories->count,
              sizeof(directories->items[0]), compare);
    }
    return status == WAL_END ? WAL_OK : status;
}

enum wal_status project_refresh_all(struct wal_store *store, uint64_t *count,
                                    struct wal_error *error)
{
    struct wal_error other = CLI_ERROR_INIT;
    struct texts directories = {.items = NULL};
    enum wal_status status = find_directories(store, &directories, error);
    enum wal_status found;

    for (size_t i = 0; i < directories.count; i++) {
        char *directory = directories.items[i];
        char project[CLI_PROJECT_SIZE];
        if (i > 0 && strcmp(directory, directories.items[i - 1]) == 0) {
            continue;
        }
        cli_project_find(directory, true, project);
        found = project_refresh(store, directory, project, count,
                                status == WAL_OK ? error : &other);
        status = status == WAL_OK ? found : status;
    }
    texts_deinit(&directories);
    return status;
}

/* Avoids the search for a repository if no session needs an update. */
static bool has_legacy_projects(struct wal_store *store, const char *directory)
{
    struct texts ids = {.items = NULL};
    bool has;

    has = find_legacy_sessions(store, cli_slice(directory), &ids, NULL) ==
              WAL_OK &&
          ids.count > 0;
    texts_deinit(&ids);
    return has;
}

int project_open_updated(const struct cli *cli, const char *directory,
                         struct wal_store **store)
{
    struct wal_open_options options = cli_open_options(cli, 0);
    struct wal_store *written = NULL;
    char project[CLI_PROJECT_SIZE];
    uint64_t count = 0;
    int code = cli_open_store(cli, cli->items[1], WAL_OPEN_READ_ONLY, store);

    if (code != CLI_CONTINUE || directory == NULL ||
        !has_legacy_projects(*store, directory)) {
        return code;
    }
    cli_project_find(directory, false, project);
    if (strcmp(project, CLI_PROJECT_GLOBAL) == 0) {
        return code;
    }
    wal_close(*store, NULL);
    if (wal_open(cli->items[1], &options, &written, NULL) == WAL_OK) {
        project_refresh(written, directory, project, &count, NULL);
        wal_close(written, NULL);
    }
    return cli_open_store(cli, cli->items[1], WAL_OPEN_READ_ONLY, store);
}
