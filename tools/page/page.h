/*
 * page.h - the page that shows sessions (docs/seeing.md): one HTML file with one style and one
 * script, which the build puts together from the files of this folder.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_TOOLS_PAGE_PAGE_H
#define AGENTWAL_TOOLS_PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { PAGE_POLICY_SIZE = 512 };

/* The page, as a server sends it. */
extern const unsigned char page_bytes[];
extern const size_t page_bytes_size;

/* SHA-256 of its script and its style, in Base64. */
extern const char page_script_hash[];
extern const char page_style_hash[];

/* Writes the Content-Security-Policy of the page, NUL-terminated: of a server, or of a file, which
 * connects to nothing. */
void page_policy(bool is_file, char policy[PAGE_POLICY_SIZE]);

/* Writes the page as a file with its data, which is JSON. */
void page_write(FILE *file, const char *json, size_t size);

#endif
