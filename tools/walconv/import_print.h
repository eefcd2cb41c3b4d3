/*
 * import_print.h - print the reports of an import.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_PRINT_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_PRINT_H

#include "agentwal/import.h"
#include "tools/cli/cli.h"

/* Prints the report. Returns its exit code. */
int walconv_print_import(const struct cli *cli,
                         const struct wal_import_report *report);

#endif
