/*
 * compare.h - compare a file with bytes, from front to back.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_COMPARE_H
#define AGENTWAL_TOOLS_CLI_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cli_compare {
    int fd;
    char *bytes;
    uint64_t offset; /* of the window in the file */
    size_t size;
};

void cli_compare_init(struct cli_compare *window, int fd);
void cli_compare_deinit(struct cli_compare *window);

/* Returns true if the file has these bytes at the offset. */
bool cli_compare_bytes(struct cli_compare *window, uint64_t offset,
                       const void *data, size_t size);

#endif
