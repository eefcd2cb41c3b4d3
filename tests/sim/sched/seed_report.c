/*
 * seed_report.c - names the schedule that runs when the program ends by a
 * signal, a failed assertion's too (sched.h).
 *
 * Invariant: the text is whole at any time a handler may write it: it is
 * formatted elsewhere, and then pointed to. Handlers run on their own stack,
 * since the coroutine's may be exhausted.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "format/bytes/assert.h"
#include "tests/lib/sanitizers.h"
#include "tests/sim/sched/internal.h"

#if WITH_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#endif

enum {
    TEXT_SIZE = 256,
    STACK_SIZE = 64 * 1024
};

static char texts[2][TEXT_SIZE];
static const char *_Atomic present; /* null: no schedule runs */

/* Only functions that are safe in a signal handler. */
static void report(void)
{
    const char *text = atomic_exchange(&present, NULL);

    if (text != NULL) {
        (void)!write(STDERR_FILENO, text, strlen(text));
    }
}

static void on_signal(int signal)
{
    report();
    (void)raise(signal); /* now with its default effect */
}

static void catch_signal(int signal)
{
    struct sigaction action;

    memset(&action, 0, sizeof(action));
    action.sa_handler = on_signal;
    action.sa_flags = (int)(SA_RESETHAND | SA_ONSTACK | SA_NODEFER);
    WAL__ASSERT(sigaction(signal, &action, NULL) == 0);
}

void sched__seed_report_install(void)
{
    static uint8_t stack[STACK_SIZE];
    const stack_t own = {.ss_sp = stack, .ss_size = sizeof(stack)};

    WAL__ASSERT(sigaltstack(&own, NULL) == 0);
    catch_signal(SIGABRT);
    catch_signal(SIGTERM); /* of who waits no longer for it */
    catch_signal(SIGINT);
#if WITH_ADDRESS_SANITIZER
    __sanitizer_set_death_callback(report);
#else
    catch_signal(SIGSEGV);
    catch_signal(SIGBUS);
    catch_signal(SIGFPE);
    catch_signal(SIGILL);
#endif
}

void sched__seed_report_begin(const char *name, uint64_t seed, uint64_t number)
{
    char *text = texts[number % 2];

    (void)snprintf(text, TEXT_SIZE,
                   "%s ended in schedule %llu; AGENTWAL_SEED=%llu %s runs it "
                   "again\n",
                   name, (unsigned long long)number, (unsigned long long)seed,
                   name);
    atomic_store(&present, text);
}

void sched__seed_report_end(void)
{
    atomic_store(&present, NULL);
}
