/*
 * file_issues.h - what was odd in the files of an import.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_ISSUES_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_ISSUES_H

#include "tools/cli/cli.h"
#include "tools/cli/json.h"

#define WALCONV_NO_OFFSET UINT64_MAX

struct walconv_file_issue {
    char *path;
    uint64_t offset; /* WALCONV_NO_OFFSET: of no place in the file */
    char *reason;
};

/* Zeroed: none. */
struct walconv_file_issues {
    struct walconv_file_issue *items;
    size_t count;
    size_t capacity;
};

/* Adds one; path is taken over. */
void walconv_file_issues_add(struct walconv_file_issues *issues, char *path,
                             uint64_t offset, const char *reason);

/* As a member of an object, or as lines on standard error. */
void walconv_file_issues_write(const struct walconv_file_issues *issues,
                               struct cli_json *json);
void walconv_file_issues_print(const struct walconv_file_issues *issues,
                               const struct cli *cli);
void walconv_file_issues_deinit(struct walconv_file_issues *issues);

#endif
