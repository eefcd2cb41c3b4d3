/*
 * git.c - running git.
 *
 * Invariant: a child that was started has ended when the call returns.
 *
 * Threads: a tool is one thread.
 */
#include "tools/cli/git.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/cli.h"

enum {
    SHA1_DIGITS = 40,
    SHA256_DIGITS = 64,
    LIMIT_MS = 20000
};

/* What is read from git: a commit a line. */
struct roots {
    char line[CLI_COMMIT_SIZE];
    size_t size; /* of line so far */
    char least[CLI_COMMIT_SIZE];
    bool is_wrong; /* a line that is no commit */
};

bool cli_git_is_commit(const char *text, unsigned digits)
{
    return strlen(text) == digits && strspn(text, "0123456789abcdef") == digits;
}

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Variables that name another repository, or make git do more than it is
 * asked for, go; those that say where git and its configuration are stay. */
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

/* To be freed; only the array is the caller's. */
static char **clean_environment(char *ceiling)
{
    static char no_fetch[] = "GIT_NO_LAZY_FETCH=1";
    static char no_prompt[] = "GIT_TERMINAL_PROMPT=0";
    size_t count = 0;
    size_t kept = 0;
    char **clean;

    while (environ[count] != NULL) {
        count++;
    }
    clean = cli_alloc((count + 4) * sizeof(*clean));
    for (size_t i = 0; i < count; i++) {
        if (keep_variable(environ[i])) {
            clean[kept++] = environ[i];
        }
    }
    clean[kept++] = no_fetch;
    clean[kept++] = no_prompt;
    clean[kept++] = ceiling;
    return clean;
}

/* The end of git's search: a repository around `top` is another one. */
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
    static char words[][32] = {
        "git",      "-C",
        "-c",       "protocol.allow=never",
        "rev-list", "--max-parents=0",
        "--all",
    };
    char *place = cli_copy_text(top, strlen(top));
    char *ceiling = ceiling_directory(top);
    char **clean = clean_environment(ceiling);
    char *arguments[] = {words[0], words[1], place,    words[2], words[3],
                         words[4], words[5], words[6], NULL};
    posix_spawn_file_actions_t actions;
    bool is_done = false;

    if (posix_spawn_file_actions_init(&actions) == 0) {
        is_done =
            posix_spawn_file_actions_addopen(&actions, STDIN_FILENO,
                                             "/dev/null", O_RDONLY, 0) == 0 &&
            posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                             "/dev/null", O_WRONLY, 0) == 0 &&
            posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO) ==
                0 &&
            posix_spawnp(child, "git", &actions, NULL, arguments, clean) == 0;
        posix_spawn_file_actions_destroy(&actions);
    }
    free(clean);
    free(ceiling);
    free(place);
    return is_done;
}

static void parse_line(struct roots *roots)
{
    roots->line[roots->size] = '\0';
    if (!cli_git_is_commit(roots->line, SHA1_DIGITS) &&
        !cli_git_is_commit(roots->line, SHA256_DIGITS)) {
        roots->is_wrong = true;
    } else if (roots->least[0] == '\0' ||
               strcmp(roots->line, roots->least) < 0) {
        memcpy(roots->least, roots->line, sizeof(roots->least));
    }
    roots->size = 0;
}

static void parse_output(struct roots *roots, const char *bytes, size_t size)
{
    for (size_t i = 0; i < size && !roots->is_wrong; i++) {
        if (bytes[i] == '\n') {
            parse_line(roots);
        } else if (roots->size + 1 < sizeof(roots->line)) {
            roots->line[roots->size++] = bytes[i];
        } else {
            roots->is_wrong = true;
        }
    }
}

/* Reads to the end of the output; false when it is not there in time. */
static bool read_roots(int input, int64_t deadline, struct roots *roots)
{
    char bytes[4096];
    ssize_t got;

    do {
        struct pollfd wait = {.fd = input, .events = POLLIN};
        int64_t left = deadline - now_ms();
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready == 0 || (ready < 0 && errno != EINTR)) {
            return false;
        }
        got = ready > 0 ? read(input, bytes, sizeof(bytes)) : -1;
        if (got > 0) {
            parse_output(roots, bytes, (size_t)got);
        }
    } while (!roots->is_wrong && (got > 0 || (got < 0 && errno == EINTR)));
    return got == 0 && roots->size == 0 && !roots->is_wrong;
}

/* Waits for the child, and kills it when its time is over. */
static bool has_succeeded(pid_t child, int64_t deadline)
{
    int state = 0;
    pid_t ended;

    do {
        ended = waitpid(child, &state, WNOHANG);
        if (ended == 0) {
            poll(NULL, 0, 1);
        }
    } while (ended == 0 && now_ms() < deadline);
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
    int64_t deadline = now_ms() + LIMIT_MS;
    int ends[2];
    bool is_whole;
    bool is_there;
    pid_t child;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return false;
    }
    /* Where it is ignored, no child can be waited for. */
    signal(SIGCHLD, SIG_DFL);
    is_there = spawn(top, ends[1], &child);
    close(ends[1]);
    if (is_there) {
        is_whole = read_roots(ends[0], deadline, &roots);
        is_there = has_succeeded(child, is_whole ? deadline : 0) && is_whole &&
                   roots.least[0] != '\0';
    }
    close(ends[0]);
    if (is_there) {
        memcpy(commit, roots.least, sizeof(roots.least));
    }
    return is_there;
}
