/*
 * project.c - the project that a directory belongs to, and sessions that move to it (project.h).
 *
 * Invariant: git runs without a shell, without the repository variables of this process, reads the
 * given repository only, and ends in bounded time; the child process has ended when the call
 * returns. A stored id is used only if it is exactly forty hexadecimal digits; any other content is
 * replaced. A session is changed only if, when it is written, it still has that directory and a
 * former project.
 */
#include "tools/project/project.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/evp.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/base/directory.h"
#include "engine/base/system.h"
#include "format/bytes/bytes.h"

enum {
    SHA1_DIGITS = 40,
    SHA256_DIGITS = 64,
    TIME_LIMIT_MS = 20000 /* of one run of git */
};

/* The output of `git rev-list`: one commit a line. */
struct roots {
    char line[CLI_COMMIT_SIZE];
    size_t size; /* bytes of the current line */
    char smallest[CLI_COMMIT_SIZE];
    bool is_invalid; /* a line is not a commit */
};

/* Returns true if the text is `digits` lower-case hexadecimal digits. */
static bool git_is_commit(const char *text, unsigned digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

/* Returns false for variables that select another repository or change what git does; those that
 * locate git and its configuration are kept. */
static bool keep_variable(const char *variable)
{
    static const char *const kept[] = {
        "GIT_CONFIG_GLOBAL=",
        "GIT_CONFIG_SYSTEM=",
        "GIT_CONFIG_NOSYSTEM=",
        "GIT_EXEC_PATH=",
    };

    if (strncmp(variable, "GIT_", 4) != 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
        if (strncmp(variable, kept[i], strlen(kept[i])) == 0) {
            return true;
        }
    }
    return false;
}

extern char **environ;

/* The caller frees the array, not its strings. */
static char **make_environment(char *ceiling)
{
    static char no_fetch[] = "GIT_NO_LAZY_FETCH=1";
    static char no_prompt[] = "GIT_TERMINAL_PROMPT=0";
    size_t count = 0;
    size_t kept = 0;
    char **environment;

    while (environ[count] != NULL) {
        count++;
    }
    environment = cli_alloc((count + 4) * sizeof(*environment));
    for (size_t i = 0; i < count; i++) {
        if (keep_variable(environ[i])) {
            environment[kept++] = environ[i];
        }
    }
    environment[kept++] = no_fetch;
    environment[kept++] = no_prompt;
    environment[kept++] = ceiling;
    return environment;
}

/* Stops git's search at the parent of `top`: a repository that contains `top` is a different one.
 * The caller frees it. */
static char *ceiling_directory(const char *top)
{
    const char *slash = strrchr(top, '/');

    return cli_format("GIT_CEILING_DIRECTORIES=%.*s", slash != NULL ? (int)(slash - top) : 0, top);
}

static bool spawn(const char *top, int output, pid_t *child)
{
    static char git_arguments[][32] = {
        "git", "-C", "-c", "protocol.allow=never", "rev-list", "--max-parents=0", "--all",
    };
    char *directory = cli_copy_text(top, strlen(top));
    char *ceiling = ceiling_directory(top);
    char **environment = make_environment(ceiling);
    char *arguments[] = {git_arguments[0], git_arguments[1], directory,
                         git_arguments[2], git_arguments[3], git_arguments[4],
                         git_arguments[5], git_arguments[6], NULL};
    posix_spawn_file_actions_t actions;
    bool is_started = false;

    if (posix_spawn_file_actions_init(&actions) == 0) {
        is_started = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
                                                      0) == 0 &&
                     posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
                                                      O_WRONLY, 0) == 0 &&
                     posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) == 0 &&
                     posix_spawnp(child, "git", &actions, NULL, arguments, environment) == 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    free(environment);
    free(ceiling);
    free(directory);
    return is_started;
}

static void parse_line(struct roots *roots)
{
    roots->line[roots->size] = '\0';
    if (!git_is_commit(roots->line, SHA1_DIGITS) && !git_is_commit(roots->line, SHA256_DIGITS)) {
        roots->is_invalid = true;
    } else if (roots->smallest[0] == '\0' || strcmp(roots->line, roots->smallest) < 0) {
        memcpy(roots->smallest, roots->line, sizeof(roots->smallest));
    }
    roots->size = 0;
}

static void parse_output(struct roots *roots, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size && !roots->is_invalid; i++) {
        if (bytes[i] == '\n') {
            parse_line(roots);
        } else if (roots->size + 1 < sizeof(roots->line)) {
            roots->line[roots->size++] = bytes[i];
        } else {
            roots->is_invalid = true;
        }
    }
}

/* Reads up to the end of the output. Returns false when the deadline passes. */
static bool read_roots(int input, int64_t deadline, struct roots *roots)
{
    char bytes[4096];
    ssize_t got;

    do {
        struct pollfd wait = {.fd = input, .events = POLLIN};
        int64_t left = deadline - when_steady_ms();
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            return false;
        }
        got = ready > 0 ? read(input, bytes, sizeof(bytes)) : -1;
        if (got > 0) {
            parse_output(roots, bytes, (size_t)got);
        }
    } while (!roots->is_invalid && (got > 0 || (got < 0 && errno == EINTR)));
    return got == 0 && roots->size == 0 && !roots->is_invalid;
}

/* Waits for the child and kills it at the deadline. */
static bool has_succeeded(pid_t child, int64_t deadline)
{
    int state = 0;
    pid_t ended;

    do {
        ended = waitpid(child, &state, WNOHANG);
        if (ended == 0) {
            poll(NULL, 0, 1);
        }
    } while (ended == 0 && when_steady_ms() < deadline);
    if (ended == 0) {
        kill(child, SIGKILL);
        while (waitpid(child, &state, 0) < 0 && errno == EINTR) {
        }
    }
    return ended == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
}

/* Finds the smallest root commit of the repository whose top is the absolute directory `top`.
 * Returns false, with `commit` unchanged, when there is none or git fails. */
static bool git_root_commit(const char *top, char commit[CLI_COMMIT_SIZE])
{
    struct roots roots = {.size = 0};
    int64_t deadline = when_steady_ms() + TIME_LIMIT_MS;
    int pipe_fds[2];
    bool is_complete;
    bool has_commit;
    pid_t child;

    if (wal__system_blocking_pipe(pipe_fds) != 0) {
        return false;
    }
    /* While SIGCHLD is ignored, waitpid cannot return a child's status. */
    signal(SIGCHLD, SIG_DFL);
    has_commit = spawn(top, pipe_fds[1], &child);
    close(pipe_fds[1]);
    if (has_commit) {
        is_complete = read_roots(pipe_fds[0], deadline, &roots);
        has_commit = has_succeeded(child, is_complete ? deadline : 0) && is_complete &&
                     roots.smallest[0] != '\0';
    }
    close(pipe_fds[0]);
    if (has_commit) {
        memcpy(commit, roots.smallest, sizeof(roots.smallest));
    }
    return has_commit;
}

/* --- the project of a directory ----------------------------------------- */

enum { STORED_DIGITS = 40, LEGACY_BYTES = 8 };

/* Joins the paths; an absolute `path` is returned unchanged. The caller frees the result. */
static char *join(const char *directory, const char *path)
{
    return path[0] == '/' ? cli_copy_text(path, strlen(path))
                          : cli_format("%s/%s", directory, path);
}

/* Reads a small regular file without trailing white space. Returns false when it is missing or does
 * not fit. */
static bool read_text(const char *path, char *text, size_t capacity)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat file_stat;
    ssize_t size = -1;

    if (file < 0) {
        return false;
    }
    if (fstat(file, &file_stat) == 0 && S_ISREG(file_stat.st_mode)) {
        size = read(file, text, capacity);
    }
    close(file);
    if (size < 0 || (size_t)size == capacity) {
        return false;
    }
    while (size > 0 && strchr(" \t\r\n", text[size - 1]) != NULL) {
        size--;
    }
    text[size] = '\0';
    return true;
}

static bool is_directory(const char *directory, const char *name)
{
    char *path = join(directory, name);
    struct stat file_stat;
    bool is_found = stat(path, &file_stat) == 0 && S_ISDIR(file_stat.st_mode);

    free(path);
    return is_found;
}

/* Returns the common directory of the worktree whose git directory is `git`, or NULL when that is
 * not a repository. The caller frees it. */
static char *common_directory(const char *git)
{
    char text[PATH_MAX];
    struct stat file_stat;
    char *head = join(git, "HEAD");
    char *link = join(git, "commondir");
    char *common = read_text(link, text, sizeof(text)) ? join(git, text) : join(git, ".");

    if (lstat(head, &file_stat) != 0 || !is_directory(common, "objects") ||
        !is_directory(common, "refs")) {
        free(common);
        common = NULL;
    }
    free(link);
    free(head);
    return common;
}

/* Returns the common directory of the repository whose top is `top`, or NULL. A
 * `.git` file ends the search even if it is not valid. */
static char *common_directory_at(const char *top, bool *is_end)
{
    static const char prefix[] = "gitdir: ";
    char text[PATH_MAX];
    char *git = join(top, ".git");
    char *common;

    *is_end = read_text(git, text, sizeof(text));
    if (*is_end && strncmp(text, prefix, strlen(prefix)) == 0) {
        free(git);
        git = join(top, text + strlen(prefix));
    }
    common = common_directory(git);
    free(git);
    return common != NULL || *is_end ? common : common_directory(top);
}

/* Searches upwards from `top` and sets it to the directory of the repository. Returns the common
 * directory, which the caller frees, or NULL. */
static char *find_repository(char *top)
{
    bool is_end = false;
    char *common = common_directory_at(top, &is_end);

    while (common == NULL && !is_end && strcmp(top, "/") != 0) {
        char *slash = strrchr(top, '/');
        if (slash == NULL) {
            return NULL;
        }
        slash[slash == top ? 1 : 0] = '\0';
        common = common_directory_at(top, &is_end);
    }
    return common;
}

/* Stores the id atomically. Failures are ignored: the id can be computed again. */
static void store_id(const char *path, const char *id)
{
    char *temporary = cli_format("%s.XXXXXX", path);
    int file = mkostemp(temporary, O_CLOEXEC);
    bool is_complete;

    if (file >= 0) {
        is_complete = write(file, id, strlen(id)) == (ssize_t)strlen(id) && fchmod(file, 0644) == 0;
        is_complete = close(file) == 0 && is_complete;
        if (!is_complete || rename(temporary, path) != 0) {
            unlink(temporary);
        }
    }
    free(temporary);
}

/* The repository of a directory, and the id that it stores. */
struct repository {
    char *top;
    char *id_path; /* NULL: there is no repository */
    bool is_stored;
};

/* Finds the repository, and sets `id` to the stored one or to "global". */
static void find_stored_id(struct repository *repository, const char *directory,
                           char id[CLI_PROJECT_SIZE])
{
    char text[CLI_PROJECT_SIZE];
    char *common = NULL;

    *repository = (struct repository){.top = cli_copy_text(directory, strlen(directory))};
    snprintf(id, CLI_PROJECT_SIZE, "%s", CLI_PROJECT_GLOBAL);
    if (directory[0] == '/' && is_directory(directory, ".")) {
        common = find_repository(repository->top);
    }
    if (common != NULL) {
        repository->id_path = join(common, "opencode");
        repository->is_stored = read_text(repository->id_path, text, sizeof(text)) &&
                                git_is_commit(text, STORED_DIGITS);
    }
    if (repository->is_stored) {
        memcpy(id, text, STORED_DIGITS + 1);
    }
    free(common);
}

static void repository_deinit(struct repository *repository)
{
    free(repository->top);
    free(repository->id_path);
}

void cli_project_find(const char *directory, bool stores, char id[CLI_PROJECT_SIZE])
{
    struct repository repository;

    find_stored_id(&repository, directory, id);
    if (repository.id_path != NULL && !repository.is_stored &&
        git_root_commit(repository.top, id) && git_is_commit(id, STORED_DIGITS) && stores) {
        store_id(repository.id_path, id);
    }
    repository_deinit(&repository);
}

bool cli_project_read(const char *directory, char id[CLI_PROJECT_SIZE])
{
    struct repository repository;
    bool is_known;

    find_stored_id(&repository, directory, id);
    is_known = repository.id_path == NULL || repository.is_stored;
    repository_deinit(&repository);
    return is_known;
}

/* The id that sessions had before projects were repositories: the first 16 hexadecimal digits of
 * the SHA-256 of the directory's path. */
static void project_legacy_id(struct wal_slice directory, char id[CLI_PROJECT_SIZE])
{
    uint8_t digest[WAL_DIGEST_SIZE] = {0};

    if (EVP_Digest(directory.data, (size_t)directory.size, digest, NULL, EVP_sha256(), NULL) != 1) {
        fputs("agentwal: SHA-256 is not available\n", stderr);
        exit(CLI_FAILED);
    }
    wal__hex_write(digest, LEGACY_BYTES, id);
}

/* --- sessions of a directory -------------------------------------------- */

/* Whether a session has a former project id of its directory. */
static bool is_legacy_project(const struct wal_session_info *info)
{
    char former[CLI_PROJECT_SIZE];
    char normal[WAL__DIRECTORY_SIZE];

    /* An import of a directory that was not there has its path. */
    wal__directory_normalise(info->cwd, normal);
    if (cli_slice_equal(info->project, cli_slice(CLI_PROJECT_GLOBAL)) ||
        (info->cwd.size > 0 && (cli_slice_equal(info->project, info->cwd) ||
                                cli_slice_equal(info->project, cli_slice(normal))))) {
        return true;
    }
    project_legacy_id(info->cwd, former);
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

    if (!cli_slice_equal(now->cwd, refresh->directory) || !is_legacy_project(now)) {
        return 1;
    }
    change->fields = WAL_CHANGE_PROJECT;
    change->project = refresh->project;
    return 0;
}

/* Moves a session back to the global project; update_change then moves it again. */
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

/* Updates one session. A session that was deleted or changed meanwhile is not a failure. The newest
 * is written even if it has the project already, because of sessions with equal times the one that
 * is written last is the newest, and a change without effect is not written. */
static enum wal_status update_session(struct wal_store *store, const char *id,
                                      struct refresh *refresh, bool is_newest, uint64_t *count,
                                      struct wal_error *error)
{
    struct wal_session *session = NULL;
    bool is_released = false;
    enum wal_status status = wal_session_open(store, cli_slice(id), &session, error);

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
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED || status == WAL_ECALLBACK ? WAL_OK
                                                                                        : status;
}

/* Lists the sessions of a directory to write, newest first: those with a former project, and the
 * newest if there are any. */
static enum wal_status find_legacy_sessions(struct wal_store *store, struct wal_slice directory,
                                            struct cli_texts *ids, struct wal_error *error)
{
    struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .cwd = directory,
    };
    struct cli_sessions list;
    bool has_legacy_projects = false;

    for (cli_sessions_open(&list, store, &options, error); cli_sessions_next(&list);) {
        bool is = is_legacy_project(&list.info);
        if (is || ids->count == 0) {
            cli_texts_add(ids, list.info.id);
        }
        has_legacy_projects = has_legacy_projects || is;
    }
    if (!has_legacy_projects) {
        cli_texts_deinit(ids);
    }
    return list.status;
}

enum wal_status project_refresh(struct wal_store *store, const char *directory, const char *project,
                                uint64_t *count, struct wal_error *error)
{
    struct refresh refresh = {cli_slice(directory), cli_slice(project)};
    struct wal_error other = CLI_ERROR_INIT;
    struct cli_texts ids = {.items = NULL};
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
    cli_texts_deinit(&ids);
    return status;
}

static int compare(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Lists the directories with sessions of former projects, sorted, with repeats. */
static enum wal_status find_directories(struct wal_store *store, struct cli_texts *directories,
                                        struct wal_error *error)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, NULL, error); cli_sessions_next(&list);) {
        if (list.info.cwd.size > 0 && is_legacy_project(&list.info)) {
            cli_texts_add(directories, list.info.cwd);
        }
    }
    if (directories->count > 0) {
        qsort(directories->items, directories->count, sizeof(directories->items[0]), compare);
    }
    return list.status;
}

enum wal_status project_refresh_all(struct wal_store *store, uint64_t *count,
                                    struct wal_error *error)
{
    struct wal_error other = CLI_ERROR_INIT;
    struct cli_texts directories = {.items = NULL};
    enum wal_status status = find_directories(store, &directories, error);
    enum wal_status found;

    for (size_t i = 0; i < directories.count; i++) {
        char *directory = directories.items[i];
        char project[CLI_PROJECT_SIZE];
        if (i > 0 && strcmp(directory, directories.items[i - 1]) == 0) {
            continue;
        }
        cli_project_find(directory, true, project);
        found =
            project_refresh(store, directory, project, count, status == WAL_OK ? error : &other);
        status = status == WAL_OK ? found : status;
    }
    cli_texts_deinit(&directories);
    return status;
}

/* Avoids the search for a repository if no session needs an update. */
static bool has_legacy_projects(struct wal_store *store, const char *directory)
{
    struct cli_texts ids = {.items = NULL};
    bool has;

    has = find_legacy_sessions(store, cli_slice(directory), &ids, NULL) == WAL_OK && ids.count > 0;
    cli_texts_deinit(&ids);
    return has;
}

void project_open_updated(struct cli *cli, const char *directory)
{
    struct wal_store *written = NULL;
    char project[CLI_PROJECT_SIZE];
    uint64_t count = 0;

    cli_use_store(cli, cli->items[1], WAL_OPEN_READ_ONLY);
    if (directory == NULL || !has_legacy_projects(cli->store, directory)) {
        return;
    }
    cli_project_find(directory, false, project);
    if (strcmp(project, CLI_PROJECT_GLOBAL) == 0) {
        return;
    }
    wal_close(cli->store, NULL);
    cli->store = NULL;
    if (cli_try_open(cli, cli->items[1], 0, &written, NULL) == WAL_OK) {
        project_refresh(written, directory, project, &count, NULL);
        wal_close(written, NULL);
    }
    cli_use_store(cli, cli->items[1], WAL_OPEN_READ_ONLY);
}
