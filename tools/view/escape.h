/*
 * escape.h - escapes of JSON, URLs and terminals in a text: what is after one
 * begins a word, although a letter or a digit is before it.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_VIEW_ESCAPE_H
#define AGENTWAL_TOOLS_VIEW_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Whether the byte before `at` is the last one of an escape: "\n" and "\u003c"
 * of JSON in a text, "%20" of a URL, a colour of a terminal. */
bool view_is_after_escape(const char *data, size_t at);

/* The size of "ESC [ PARAMETERS LETTER" at `at`; 0: there is none. */
size_t view_colour_size(const char *data, size_t size, size_t at);

#endif
