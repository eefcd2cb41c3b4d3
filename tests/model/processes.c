/*
 * processes.c - starts and stops workers, and sets them what to do (model.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/rng.h"
#include "tests/model/model.h"

enum {
    LONGEST_MS = 60000 /* that a worker may take for an answer */
};

static const char *const tasks[] = {
    "open",    "operation", "make", "call",  "mark",    "look",     "find",   "check",
    "compact", "compact",   "sync", "learn", "back up", "transfer", "reopen", "end",
};

uint32_t model_random(struct model *model, uint32_t sides)
{
    return (uint32_t)rng_below(&model->rng_state, sides);
}

void model_note(struct model *model, const char *format, ...)
{
    char *line = model->last[model->last_count++ % MODEL_LAST];
    int used = snprintf(line, MODEL_LINE, "step %" PRIu64 ": ", model->step);
    va_list list;

    va_start(list, format);
    (void)vsnprintf(line + used, MODEL_LINE - (size_t)used, format, list);
    va_end(list);
}

void model_fail(struct model *model, const char *format, ...)
{
    va_list list;

    if (model->has_failed) {
        return; /* the first one says most */
    }
    va_start(list, format);
    (void)vsnprintf(model->failure, sizeof(model->failure), format, list);
    va_end(list);
    model->has_failed = true;
}

void model_start(struct model *model, uint32_t worker, uint32_t flags)
{
    struct model_worker *one = &model->workers[worker];
    pid_t driver = getpid();
    pid_t process;
    int pair[2];

    WAL__ASSERT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    memset(&one->run, 0, sizeof(one->run));
    one->run.open_flags = flags;
    atomic_store(&one->kill_at, 0);
    process = fork();
    WAL__ASSERT(process >= 0);
    if (process == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != driver) {
            _exit(0);
        }
        for (uint32_t i = 0; i <= MODEL_WORKERS; i++) {
            if (i != worker && model->workers[i].process != 0) {
                (void)close(model->workers[i].socket);
            }
        }
        (void)close(pair[0]);
        model_work(model, worker, pair[1]);
    }
    (void)close(pair[1]);
    one->process = process; /* in common memory: the driver alone writes it */
    one->socket = pair[0];
    one->is_busy = false;
    (void)model_do(model, worker, MODEL_OPEN, 0);
}

void model_send(struct model *model, uint32_t worker, enum model_task task, uint32_t argument)
{
    struct model_worker *one = &model->workers[worker];
    const uint32_t message[2] = {(uint32_t)task, argument};

    model_note(model, "process %u: %s%s", worker,
               task == MODEL_OPERATION ? differential_operations[argument].name : tasks[task],
               atomic_load(&one->kill_at) != 0 ? ", and it may be killed" : "");
    model->tally.tasks[task]++;
    one->is_busy =
        send(one->socket, message, sizeof(message), MSG_NOSIGNAL) == (ssize_t)sizeof(message);
}

/* The process ended, or it has to. */
static void collect(struct model *model, uint32_t worker, bool late)
{
    struct model_worker *one = &model->workers[worker];
    int status = 0;

    if (late) {
        model_fail(model, "process %u, %s: no answer for %d s", worker,
                   one->run.operation != NULL ? one->run.operation : "new", LONGEST_MS / 1000);
        (void)kill(one->process, SIGKILL);
    }
    (void)waitpid(one->process, &status, 0);
    (void)close(one->socket);
    one->process = 0;
    if (!late &&
        !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && atomic_load(&one->kill_at) < 0)) {
        model_fail(model, "process %u, %s: ended with status %#x", worker,
                   one->run.operation != NULL ? one->run.operation : "new", (unsigned)status);
    }
    /* What it had in hand is not given again. */
    model->made += 1000;
    model->tally.kills++;
}

bool model_await(struct model *model, uint32_t worker)
{
    struct model_worker *one = &model->workers[worker];
    struct pollfd poll_for = {.fd = one->socket, .events = POLLIN};
    uint32_t answer = 0;
    int ready;

    if (one->process == 0) {
        return false;
    }
    do {
        ready = poll(&poll_for, 1, LONGEST_MS);
    } while (ready < 0 && errno == EINTR);
    if (!one->is_busy || ready <= 0 ||
        recv(one->socket, &answer, sizeof(answer), 0) != (ssize_t)sizeof(answer)) {
        collect(model, worker, ready == 0);
        return false;
    }
    one->is_busy = false;
    atomic_store(&one->kill_at, 0);
    return true;
}

bool model_do(struct model *model, uint32_t worker, enum model_task task, uint32_t argument)
{
    model_send(model, worker, task, argument);
    return model_await(model, worker);
}

void model_kill(struct model *model, uint32_t worker)
{
    struct model_worker *one = &model->workers[worker];

    if (one->process != 0) {
        (void)kill(one->process, SIGKILL);
        (void)waitpid(one->process, NULL, 0);
        (void)close(one->socket);
        one->process = 0;
    }
}
