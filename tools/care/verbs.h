/*
 * verbs.h - the verbs of agentwal that look after a store.
 *
 * A verb gets the whole command line without the program's name: its first
 * operand is its own name, the next one the store. It returns the exit code.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CARE_VERBS_H
#define AGENTWAL_TOOLS_CARE_VERBS_H

#include "tools/cli/cli.h"

int verb_init(struct cli *cli, int argc, char **argv);
int verb_stats(struct cli *cli, int argc, char **argv);
int verb_migrate(struct cli *cli, int argc, char **argv);
int verb_accept_damage(struct cli *cli, int argc, char **argv);
int verb_gc(struct cli *cli, int argc, char **argv);
int verb_backup(struct cli *cli, int argc, char **argv);
int verb_bundle(struct cli *cli, int argc, char **argv);
int verb_merge(struct cli *cli, int argc, char **argv);
int verb_retain(struct cli *cli, int argc, char **argv);
int verb_restore(struct cli *cli, int argc, char **argv);

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
struct wal__json_out;
int care_print_views(const struct cli *cli, struct wal_store *store,
                     bool rewrites, struct wal__json_out *json);
/* The same, as text or as {"views"}. */
int care_report_views(const struct cli *cli, struct wal_store *store,
                      bool rewrites);

#endif
