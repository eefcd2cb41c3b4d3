/*
 * pager.c - run a pager on standard output.
 *
 * Threads: the tools are single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/terminal/terminal.h"

/* Whether the first word of a command is a program in PATH, or names a file
 * that can be run. */
static bool can_run(const char *command)
{
    size_t size = strcspn(command, " \t");
    const char *path = getenv("PATH");
    char file[4096];

    if (memchr(command, '/', size) != NULL) {
        path = "";
    }
    while (path != NULL) {
        size_t length = strcspn(path, ":");
        const char *slash = length > 0 ? "/" : "";
        int count = snprintf(file, sizeof(file), "%.*s%s%.*s", (int)length,
                             path, slash, (int)size, command);
        if (count > 0 && (size_t)count < sizeof(file) &&
            access(file, X_OK) == 0) {
            return true;
        }
        path = path[length] == ':' ? path + length + 1 : NULL;
    }
    return false;
}

/* Returns the command of the pager, or NULL for none. */
static const char *find_pager(void)
{
    const char *command = getenv("PAGER");

    if (command == NULL) {
        command = "less -FRX";
    }
    if (command[0] == '\0' || strcmp(command, "cat") == 0 ||
        !can_run(command)) {
        return NULL;
    }
    return command;
}

/* In the child: becomes the pager. */
static _Noreturn void run_pager(const char *command, const int *ends)
{
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    /* For a pager that is less without options of the user's. */
    (void)setenv("LESS", "FRX", 0);
    execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(127);
}

void terminal_start_pager(struct terminal *terminal)
{
    const char *command = terminal->is_terminal ? find_pager() : NULL;
    int ends[2];

    if (command == NULL || terminal->pager != 0 ||
        pipe2(ends, O_CLOEXEC) != 0) {
        return;
    }
    fflush(stdout);
    terminal->pager = fork();
    if (terminal->pager == 0) {
        run_pager(command, ends);
    }
    close(ends[0]);
    if (terminal->pager < 0) {
        terminal->pager = 0;
    } else {
        (void)dup2(ends[1], STDOUT_FILENO);
        /* The pager decides what an interrupt ends. */
        (void)signal(SIGINT, SIG_IGN);
    }
    close(ends[1]);
}

void terminal_wait_pager(struct terminal *terminal)
{
    if (terminal->pager == 0) {
        return;
    }
    (void)close(STDOUT_FILENO);
    while (waitpid(terminal->pager, NULL, 0) < 0 && errno == EINTR) {
    }
    terminal->pager = 0;
}
