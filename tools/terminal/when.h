/*
 * when.h - times for people, in local time.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_WHEN_H
#define AGENTWAL_TOOLS_TERMINAL_WHEN_H

#include <stdint.h>

enum {
    WHEN_SIZE = 32,       /* bytes of a text with its terminator */
    WHEN_AGE_COLUMNS = 10 /* the longest age of the years 0 to 9999 */
};

/* "2026-11-20 14:03"; "-" for a time that the C library cannot convert. */
void when_text(int64_t unix_ms, char text[WHEN_SIZE]);

/* "14:03:59". */
void when_clock(int64_t unix_ms, char text[WHEN_SIZE]);

/* The age at a time: "now" below a minute, "5 min ago", "2 h ago", "6 d ago";
 * from 7 days on, and for the future, the date. */
void when_age(int64_t unix_ms, int64_t now_ms, char text[WHEN_SIZE]);

/* The present time. */
int64_t when_now_ms(void);

#endif
