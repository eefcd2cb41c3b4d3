/*
 * cli_window.h - a file that is compared with bytes from front to back.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_WINDOW_H
#define AGENTWAL_TOOLS_CLI_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_window {
    int fd;
    char *bytes;
    uint64_t offset; /* of them in the file */
    size_t size;
};

void cli_window_init(struct cli_window *window, int fd);
void cli_window_deinit(struct cli_window *window);

/* Whether the file has these bytes at the offset. */
bool cli_window_has(struct cli_window *window, uint64_t offset,
                    const void *data, size_t size);

#endif
