/*
 * transcript.h - a long Claude Code transcript, made from a seed: rows of a user, of the assistant
 * (text, thinking, tool calls) and of tools, each under the one before.
 *
 * Rows have the sizes of real ones: half below 1 KiB, a mean near 4 KiB, most bytes in results of
 * tools up to 20 KiB and some of 100 KiB; a byte in fifty begins an escape, one in a hundred is not
 * ASCII.
 *
 * Invariant: the same seed gives the same rows. Threads: one at a time per transcript.
 */
#ifndef AGENTWAL_BENCH_TRANSCRIPT_H
#define AGENTWAL_BENCH_TRANSCRIPT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRANSCRIPT_ROW_MAX ((size_t)512 << 10) /* no row is longer */

struct transcript {
    uint64_t state;   /* of the random numbers */
    uint64_t rows;    /* that were made */
    char session[37]; /* ids, as text */
    char last[37];
    char tool[33]; /* that was called, or empty */
};

/* A random number below the bound, which is not 0. */
uint64_t transcript_draw(struct transcript *transcript, uint64_t bound);

void transcript_init(struct transcript *transcript, uint64_t seed);

/* Makes the next row with its newline; answers its size. `row` has room for TRANSCRIPT_ROW_MAX
 * bytes. */
size_t transcript_row(struct transcript *transcript, char *row);

#ifdef __cplusplus
}
#endif

#endif
