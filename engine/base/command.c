/*
 * command.c - runs a command of the shell (command.h).
 */
#include "engine/base/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "engine/base/descriptor.h"
#include "engine/base/error.h"
#include "engine/base/system.h"

static int64_t now_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

extern char **environ;

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

    if (wal__system_blocking_pipe(ends) != 0) {
        return errno;
    }
    ends[0] = wal__descriptor_above_stdio(ends[0]);
    ends[1] = wal__descriptor_above_stdio(ends[1]);
    (void)sigemptyset(&none);
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawnattr_init(&attributes);
    code = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (code == 0) {
        code = posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    }
    (void)posix_spawnattr_setpgroup(&attributes, 0);
    (void)posix_spawnattr_setsigmask(&attributes, &none);
    (void)posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    if (code == 0) {
        code = posix_spawn(process, "/bin/sh", &actions, &attributes, arguments, environ);
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

/* Reads until the end of the output, which is less than `room` bytes. Returns an errno. */
static int read_all(int fd, int64_t deadline, uint8_t *out, size_t room, size_t *size)
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
        WAL__RETRY_EINTR(got, read(fd, out + *size, room - *size));
        if (got <= 0) {
            return got == 0 ? 0 : errno;
        }
        *size += (size_t)got;
        if (*size == room) {
            return EFBIG;
        }
    }
}

/* Waits for the end of the process until the deadline. Returns an errno: ECHILD in a process that
 * ignores SIGCHLD, to which the system does not say how it ended. */
static int wait_end(pid_t process, int64_t deadline, int *how)
{
    pid_t waited;

    for (;;) {
        WAL__RETRY_EINTR(waited, waitpid(process, how, WNOHANG));
        if (waited != 0) {
            return waited < 0 ? errno : 0;
        }
        if (now_ms() >= deadline) {
            return ETIMEDOUT;
        }
        (void)poll(NULL, 0, 1);
    }
}

enum wal_status wal__command_run(const char *name, const char *command, uint32_t timeout_ms,
                                 uint8_t *out, size_t room, size_t *size, struct wal_error *error)
{
    const int64_t deadline = now_ms() + timeout_ms;
    pid_t process = 0;
    pid_t waited;
    int how = 0;
    int fd = -1;
    int code = spawn_shell(command, &process, &fd);

    if (code != 0) {
        return wal__fail_at(error, WAL_EACCESS, code, NULL, 0, "cannot start %s: %s", name,
                            strerror(code));
    }
    *size = 0;
    code = read_all(fd, deadline, out, room, size);
    (void)close(fd);
    if (code == 0) {
        code = wait_end(process, deadline, &how);
    }
    if (code != 0 && code != ECHILD) {
        (void)kill(-process, SIGKILL);
        WAL__RETRY_EINTR(waited, waitpid(process, &how, 0));
        return wal__fail_at(error, WAL_EACCESS, code, NULL, 0, "%s %s", name,
                            code == ETIMEDOUT ? "did not end in time"
                            : code == EFBIG   ? "printed too much"
                                              : "failed");
    }
    if (how != 0) {
        return wal__fail(error, WAL_EACCESS, "%s failed: %s %d", name,
                         WIFSIGNALED(how) ? "signal" : "exit code",
                         WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how));
    }
    return WAL_OK;
}
