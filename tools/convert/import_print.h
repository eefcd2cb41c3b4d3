/*
 * import_print.h - print the reports of an import.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_IMPORT_PRINT_H
#define AGENTWAL_TOOLS_CONVERT_IMPORT_PRINT_H

#include "agentwal/import.h"
#include "tools/cli/cli.h"

enum {
    /* All of it; else only what must not be missed. */
    CONVERT_PRINT_ALL = 1,
    /* The path is an argument: not reading it is a failure of the tool. */
    CONVERT_PRINT_ARGUMENT = 2
};

/* Prints the report; `what` is a set of the above. Returns its exit code. */
int convert_print_import(const struct cli *cli,
                         const struct wal_import_report *report, unsigned what);

#endif
