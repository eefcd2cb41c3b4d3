/*
 * test_sched_seed_report.c - a program of schedules that a signal ends, in the middle of a
 * schedule, names the seed, and with that seed ends again.
 */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "format/bytes/assert.h"
#include "tests/lib/sanitizers.h"
#include "tests/lib/test.h"
#include "tests/sim/sched/sched.h"

enum {
    FIRST = 9000100,
    BAD = FIRST + 2 /* the third schedule */
};

static int present_signal;

static void end_at_bad(uint64_t seed)
{
    if (seed == BAD && present_signal == SIGABRT) {
        WAL__ASSERT(seed != BAD);
    }
    if (seed == BAD) {
        (void)raise(present_signal);
    }
}

/* Runs a program of schedules in a child, and returns what it wrote. */
static const char *run(int signal, const char *seed)
{
    static char text[64 * 1024];
    const struct sched_options options = {.seed = FIRST, .processes = 2, .begins = end_at_bad};
    size_t size = 0;
    ssize_t got;
    int ends[2];
    int code;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    present_signal = signal;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)dup2(ends[1], STDERR_FILENO);
        (void)close(ends[0]);
        (void)!freopen("/dev/null", "w", stdout);
        if (seed != NULL) {
            (void)setenv("AGENTWAL_SEED", seed, 1);
        } else {
            (void)unsetenv("AGENTWAL_SEED");
        }
        _exit(sched_main("NAME", &options));
    }
    (void)close(ends[1]);
    while ((got = read(ends[0], text + size, sizeof(text) - 1 - size)) > 0) {
        size += (size_t)got;
    }
    text[size] = '\0';
    (void)close(ends[0]);
    assert_int_equal(waitpid(child, &code, 0), child);
    assert_true(!WIFEXITED(code) || WEXITSTATUS(code) != 0);
    assert_true(WITH_ADDRESS_SANITIZER || (WIFSIGNALED(code) && WTERMSIG(code) == signal));
    return text;
}

TEST(seed_report__of_each_signal)
{
    static const int signals[] = {
        SIGABRT,
        SIGTERM,
#if !WITH_ADDRESS_SANITIZER
        /* Its handlers of these report; here cmocka has replaced them. */
        SIGSEGV,
        SIGBUS,
        SIGFPE,
        SIGILL
#endif
    };
    const char *all = "NAME ended in schedule 3; AGENTWAL_SEED=9000102 NAME "
                      "runs it again\n";
    const char *one = "NAME ended in schedule 1; AGENTWAL_SEED=9000102 NAME "
                      "runs it again\n";

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        const char *text = run(signals[i], NULL);

        if (strstr(text, all) == NULL) {
            fail_msg("signal %d: %s", signals[i], text);
        }
        text = run(signals[i], "9000102");
        if (strstr(text, one) == NULL) {
            fail_msg("signal %d again: %s", signals[i], text);
        }
    }
}

/* The report comes after what the assertion says. */
TEST(seed_report__after_the_assertion)
{
    const char *text = run(SIGABRT, NULL);
    const char *assertion = strstr(text, "broken invariant: seed != BAD");

    assert_non_null(assertion);
    assert_non_null(strstr(assertion, "AGENTWAL_SEED="));
}
