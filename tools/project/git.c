/*
 * git.c - run git.
 *
 * Invariant: the child process has ended when the call returns.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/project/git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/cli/cli.h"

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

bool cli_git_is_commit(const char *text, unsigned digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

/* Returns false for variables that select another repository or change what git
 * does; those that locate git and its configuration are kept. */
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

/* Stops git's search at the parent of `top`: a repository that contains `top`
 * is a different one. The caller frees it. */
static char *ceiling_directory(const char *top)
{
    static const char name[] = "GIT_CEILING_DIRECTORIES=";
    const char *slash = strrchr(top, '/');
    size_t size = slash != NULL ? (size_t)(slash - top) : 0;
    char *text = cli_alloc(sizeof(name) + size);

    memcpy(text, name, sizeof(name) - 1);
    memcpy(text + sizeof(name) - 1, top, size);
    return text;
}

static bool spawn(const char *top, int output, pid_t *child)
{
    static char git_arguments[][32] = {
        "git",      "-C",
        "-c",       "protocol.allow=never",
        "rev-list", "--max-parents=0",
        "--all",
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
        is_started =
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                             "/dev/null", O_RDONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                             "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) ==
                0 &&
            posix_spawnp(child, "git", &actions, NULL, arguments,
                         environment) == 0;
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
    if (!cli_git_is_commit(roots->line, SHA1_DIGITS) &&
        !cli_git_is_commit(roots->line, SHA256_DIGITS)) {
        roots->is_invalid = true;
    } else if (roots->smallest[0] == '\0' ||
               strcmp(roots->line, roots->smallest) < 0) {
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

bool cli_git_root_commit(const char *top, char commit[CLI_COMMIT_SIZE])
{
    struct roots roots = {.size = 0};
    int64_t deadline = when_steady_ms() + TIME_LIMIT_MS;
    int pipe_fds[2];
    bool is_complete;
    bool has_commit;
    pid_t child;

    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
        return false;
    }
    /* While SIGCHLD is ignored, waitpid cannot return a child's status. */
    signal(SIGCHLD, SIG_DFL);
    has_commit = spawn(top, pipe_fds[1], &child);
    close(pipe_fds[1]);
    if (has_commit) {
        is_complete = read_roots(pipe_fds[0], deadline, &roots);
        has_commit = has_succeeded(child, is_complete ? deadline : 0) &&
                     is_complete && roots.smallest[0] != '\0';
    }
    close(pipe_fds[0]);
    if (has_commit) {
        memcpy(commit, roots.smallest, sizeof(roots.smallest));
    }
    return has_commit;
}
