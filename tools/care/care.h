/*
 * care.h - what deletes for good and lists the views that keep a copy.
 */
#ifndef AGENTWAL_TOOLS_CARE_CARE_H
#define AGENTWAL_TOOLS_CARE_CARE_H

#include "tools/cli/cli.h"
#include "tools/cli/json.h"

/* Compacts the store so that no file of it holds what was deleted or redacted,
 * but for the trash, and says what that does not reach. Lists the views that
 * may hold it, or rewrites them. An exit code. gc.c */
int care_erase(const struct cli *cli, struct wal_store *store,
               bool rewrites_views);
/* CLI_USAGE for --views without --erase; else CLI_CONTINUE. gc.c */
int care_check_views(const struct cli *cli, bool erases, bool rewrites_views);
/* Lists the views that may hold what was deleted or redacted, or with
 * `rewrites` brings them up to date: as text, or as items of an array. An exit
 * code. views.c */
int care_print_views(const struct cli *cli, struct wal_store *store,
                     bool rewrites, struct wal__json_out *json);
/* The same, as text or as {"views"}. */
int care_report_views(const struct cli *cli, struct wal_store *store,
                      bool rewrites);

#endif
