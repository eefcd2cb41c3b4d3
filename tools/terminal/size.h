/*
 * size.h - numbers of bytes for people.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_SIZE_H
#define AGENTWAL_TOOLS_TERMINAL_SIZE_H

#include <stdint.h>

enum {
    SIZE_TEXT = 24 /* bytes of a text with its terminator */
};

/* "17 bytes", "1.2 kB", "36.9 MB": powers of 1000, three digits. */
void size_text(uint64_t size, char text[SIZE_TEXT]);

#endif
