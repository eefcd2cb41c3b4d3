/*
 * when.c - format times for people.
 *
 * Threads: the tools are single-threaded.
 */
#include "tools/terminal/when.h"

#include <stdio.h>
#include <time.h>

enum {
    MINUTE_MS = 60000,
    HOUR_MS = 60 * MINUTE_MS,
    DAY_MS = 24 * HOUR_MS,
    WEEK_DAYS = 7
};

static void format(int64_t unix_ms, const char *form, char text[WHEN_SIZE])
{
    /* Rounded down for times before 1970 too. */
    time_t seconds = (time_t)(unix_ms / 1000 - (unix_ms % 1000 < 0 ? 1 : 0));
    struct tm tm;

    if (localtime_r(&seconds, &tm) == NULL ||
        strftime(text, WHEN_SIZE, form, &tm) == 0) {
        snprintf(text, WHEN_SIZE, "-");
    }
}

void when_text(int64_t unix_ms, char text[WHEN_SIZE])
{
    format(unix_ms, "%Y-%m-%d %H:%M", text);
}

void when_clock(int64_t unix_ms, char text[WHEN_SIZE])
{
    format(unix_ms, "%H:%M:%S", text);
}

void when_age(int64_t unix_ms, int64_t now_ms, char text[WHEN_SIZE])
{
    int64_t age = now_ms > unix_ms ? now_ms - unix_ms : 0;

    /* A clock that is a minute late is not the future. */
    if (unix_ms - now_ms > MINUTE_MS || age / DAY_MS >= WEEK_DAYS) {
        format(unix_ms, "%Y-%m-%d", text);
    } else if (age < MINUTE_MS) {
        snprintf(text, WHEN_SIZE, "now");
    } else if (age < HOUR_MS) {
        snprintf(text, WHEN_SIZE, "%d min ago", (int)(age / MINUTE_MS));
    } else if (age < DAY_MS) {
        snprintf(text, WHEN_SIZE, "%d h ago", (int)(age / HOUR_MS));
    } else {
        snprintf(text, WHEN_SIZE, "%d d ago", (int)(age / DAY_MS));
    }
}

int64_t when_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
