/*
 * progress.h - says on a terminal how far long work has come.
 *
 * Invariant: nothing is printed before half a second, nor when standard error
 * is no terminal; what is printed stands on one line that is cleared again.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_PROGRESS_H
#define AGENTWAL_TOOLS_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_on;
    bool is_shown;
    int64_t next_ms; /* when to print again */
};

void progress_init(struct progress *progress, bool is_wanted);

/* Says `what: done of total unit`; total 0: not known. */
void progress_update(struct progress *progress, const char *what, uint64_t done,
                     uint64_t total, const char *unit);

/* Clears the line; to be called before anything else is printed. */
void progress_clear(struct progress *progress);

#endif
