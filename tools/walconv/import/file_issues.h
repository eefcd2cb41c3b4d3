/*
 * file_issues.h - issues of the files of an import.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_ISSUES_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_FILE_ISSUES_H

#include "tools/cli/cli.h"
#include "tools/cli/json.h"

#define WALCONV_NO_OFFSET UINT64_MAX

struct walconv_file_issue {
    char *path;
    uint64_t offset; /* WALCONV_NO_OFFSET: concerns the whole file */
    char *reason;
};

/* Zeroed: none. */
struct walconv_file_issues {
    struct walconv_file_issue *items;
    size_t count;
    size_t capacity;
};

/* Adds an issue. Takes ownership of `path`; copies `reason`. */
void walconv_file_issues_add(struct walconv_file_issues *issues, char *path,
                             uint64_t offset, const char *reason);

/* Write the issues as the member "damaged" of an object, or print them to
 * standard error. */
void walconv_file_issues_write(const struct walconv_file_issues *issues,
                               struct cli_json *json);
void walconv_file_issues_print(const struct walconv_file_issues *issues,
                               const struct cli *cli);
void walconv_file_issues_deinit(struct walconv_file_issues *issues);

#endif
