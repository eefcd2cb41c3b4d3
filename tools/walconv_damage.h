/*
 * walconv_damage.h - what was odd in the files of an import.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_DAMAGE_H
#define AGENTWAL_TOOLS_WALCONV_DAMAGE_H

#include "tools/cli.h"
#include "tools/cli_json.h"

#define WALCONV_NOWHERE UINT64_MAX

struct walconv_damage {
    char *path;
    uint64_t offset; /* WALCONV_NOWHERE: of no place in the file */
    char *reason;
};

/* Zeroed: none. */
struct walconv_damages {
    struct walconv_damage *items;
    size_t count;
    size_t capacity;
};

/* Adds one; path is taken over. */
void walconv_damages_add(struct walconv_damages *damages, char *path,
                         uint64_t offset, const char *reason);

/* As a member of an object, or as lines on standard error. */
void walconv_damages_write(const struct walconv_damages *damages,
                           struct cli_json *json);
void walconv_damages_print(const struct walconv_damages *damages,
                           const struct cli *cli);
void walconv_damages_deinit(struct walconv_damages *damages);

#endif
