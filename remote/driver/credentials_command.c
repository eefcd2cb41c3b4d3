/*
 * credentials_command.c - runs the command that prints credentials
 * (credentials.h). It has the caller's environment and standard error, and no
 * input. Any thread.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "remote/driver/credentials.h"

enum {
    OUTPUT_MAX = 64 * 1024
};

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Starts it in a process group; *out is the end to read. Returns an errno. */
static int spawn_shell(const char *command, pid_t *process, int *out)
{
    char shell[] = "sh";
    char option[] = "-c";
    char *arguments[] = {shell, option, (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none;
    int ends[2];
    int code;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    ends[0] = wal__descriptor_above_stdio(ends[0]);
    ends[1] = wal__descriptor_above_stdio(ends[1]);
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    code =
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    }
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                                    POSIX_SPAWN_SETSIGMASK);
    if (code == 0) {
        code = posix_spawn(process, "/bin/sh", &actions, &attributes, arguments,
                           environ);
    }
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    if (code != 0) {
        (void)close(ends[0]);
        return code;
    }
    *out = ends[0];
    return 0;
}

/* Reads until the end of the output. Returns an errno. */
static int read_all(int fd, int64_t deadline, uint8_t *end, size_t *size)
{
    for (;;) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        int64_t left = deadline - now_ms();
        int polled = left <= 0 ? 0 : poll(&ready, 1, (int)left);
        ssize_t got;

        if (polled == 0) {
            return ETIMEDOUT;
        }
        if (polled < 0) {
            if (errno == EINTR) {
                continue;
            }
            return errno;
        }
        WAL__RETRY_EINTR(got, read(fd, end + *size, OUTPUT_MAX - *size));
        if (got <= 0) {
            return got == 0 ? 0 : errno;
        }
        *size += (size_t)got;
        if (*size == OUTPUT_MAX) {
            return EFBIG;
        }
    }
}

/* Whether the command ended with success, and how it ended; of a process that
 * ignores SIGCHLD, the system does not say. */
static bool has_succeeded(pid_t process, char how[32])
{
    int status = 0;
    pid_t waited;

    WAL__RETRY_EINTR(waited, waitpid(process, &status, 0));
    (void)snprintf(how, 32, WIFSIGNALED(status) ? "signal %d" : "exit code %d",
                   WIFSIGNALED(status) ? WTERMSIG(status)
                                       : WEXITSTATUS(status));
    return waited < 0 ? errno == ECHILD
                      : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum wal_status wal__credentials_run(const char *command, uint32_t timeout_ms,
                                     struct wal__buf *output,
                                     struct wal_error *error)
{
    int64_t deadline = now_ms() + timeout_ms;
    pid_t process = 0;
    bool succeeded;
    char how[32];
    uint8_t *end;
    size_t size = 0;
    int fd = -1;
    int code;

    if (wal__buf_reserve(output, OUTPUT_MAX, &end) != WAL_OK) {
        return wal__no_memory(error);
    }
    code = spawn_shell(command, &process, &fd);
    if (code != 0) {
        return wal__fail_at(error, WAL_EACCESS, code, NULL, 0,
                            "cannot start AGENTWAL_REMOTE_CREDENTIALS_COMMAND: "
                            "%s",
                            strerrordesc_np(code));
    }
    code = read_all(fd, deadline, end, &size);
    if (code != 0) {
        (void)kill(-process, SIGKILL);
    }
    (void)close(fd);
    succeeded = has_succeeded(process, how);
    if (code != 0) {
        return wal__fail_at(error, WAL_EACCESS, code, NULL, 0,
                            "AGENTWAL_REMOTE_CREDENTIALS_COMMAND %s",
                            code == ETIMEDOUT ? "did not end in time"
                            : code == EFBIG   ? "printed more than credentials"
                                              : "failed");
    }
    if (!succeeded) {
        return wal__fail(error, WAL_EACCESS,
                         "AGENTWAL_REMOTE_CREDENTIALS_COMMAND failed: %s", how);
    }
    output->size += size;
    return WAL_OK;
}
