/*
 * progress.h - show the progress of long work on a terminal.
 *
 * Invariant: nothing is printed in the first half second, nor when standard
 * error is not a terminal. Output is one line, which is cleared.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_PROGRESS_H
#define AGENTWAL_TOOLS_TERMINAL_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool is_on;
    bool is_shown;
    int64_t next_ms; /* CLOCK_MONOTONIC time of the next update */
};

void progress_init(struct progress *progress, bool is_wanted);

/* Shows `what: done of total unit`; total 0: unknown. */
void progress_update(struct progress *progress, const char *what, uint64_t done,
                     uint64_t total, const char *unit);

/* Clears the line. Call it before printing anything else. */
void progress_clear(struct progress *progress);

#endif
