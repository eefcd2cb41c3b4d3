/*
 * progress.c - a progress line, drawn at most ten times a second.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/terminal/progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_MS 500
#define AGAIN_MS 100

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void progress_init(struct progress *progress, bool is_wanted)
{
    progress->is_on = is_wanted && isatty(STDERR_FILENO) == 1;
    progress->is_shown = false;
    progress->next_ms = progress->is_on ? now_ms() + FIRST_MS : 0;
}

void progress_update(struct progress *progress, const char *what, uint64_t done,
                     uint64_t total, const char *unit)
{
    int64_t now;

    if (!progress->is_on) {
        return;
    }
    now = now_ms();
    if (now < progress->next_ms) {
        return;
    }
    progress->next_ms = now + AGAIN_MS;
    progress->is_shown = true;
    if (total > 0) {
        fprintf(stderr, "\r\033[K%s: %llu of %llu %s", what,
                (unsigned long long)done, (unsigned long long)total, unit);
    } else {
        fprintf(stderr, "\r\033[K%s: %llu %s", what, (unsigned long long)done,
                unit);
    }
    fflush(stderr);
}

void progress_clear(struct progress *progress)
{
    if (progress->is_shown) {
        fputs("\r\033[K", stderr);
        fflush(stderr);
        progress->is_shown = false;
    }
}
