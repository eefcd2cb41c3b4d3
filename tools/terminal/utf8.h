/*
 * utf8.h - the characters of a text: their bytes, their columns, and those that
 * would control a terminal.
 *
 * Threads: any, after utf8_init.
 */
#ifndef AGENTWAL_TOOLS_TERMINAL_UTF8_H
#define AGENTWAL_TOOLS_TERMINAL_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes utf8_columns know characters that are not ASCII. Call it once. */
void utf8_init(void);

/* Bytes of the UTF-8 sequence at data, or 0 when it is ill-formed. */
size_t utf8_size(const uint8_t *data, size_t size);

/* The code point of the well-formed sequence at data. */
uint32_t utf8_decode(const uint8_t *data);

/* Returns true for a well-formed sequence that a terminal may obey: C0, DEL,
 * C1, line separators and the controls of bidirectional text. */
bool utf8_is_control(const uint8_t *data);

/* Columns that a well-formed sequence takes: 0 to 2. */
size_t utf8_columns(const uint8_t *data);

#endif
