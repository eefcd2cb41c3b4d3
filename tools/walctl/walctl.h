/*
 * walctl.h - the commands of walctl and the functions that they share.
 *
 * Each command gets the whole command line without the program's name, so that
 * its first operand is the command's name, and returns the exit code.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_WALCTL_H
#define AGENTWAL_TOOLS_WALCTL_WALCTL_H

#include "tools/cli/cli.h"

/* The tool: runs the command line and returns the exit code. */
int walctl_main(int argc, char **argv);

int walctl_init(struct cli *cli, int argc, char **argv);
int walctl_create(struct cli *cli, int argc, char **argv);
int walctl_append(struct cli *cli, int argc, char **argv);
int walctl_list(struct cli *cli, int argc, char **argv);
int walctl_latest(struct cli *cli, int argc, char **argv);
int walctl_show(struct cli *cli, int argc, char **argv);
int walctl_children(struct cli *cli, int argc, char **argv);
int walctl_fork(struct cli *cli, int argc, char **argv);
int walctl_delete(struct cli *cli, int argc, char **argv);
int walctl_undelete(struct cli *cli, int argc, char **argv);
int walctl_pin(struct cli *cli, int argc, char **argv);
int walctl_meta(struct cli *cli, int argc, char **argv);
int walctl_head(struct cli *cli, int argc, char **argv);
int walctl_doc(struct cli *cli, int argc, char **argv);
int walctl_compact_session(struct cli *cli, int argc, char **argv);
int walctl_redact(struct cli *cli, int argc, char **argv);
int walctl_migrate(struct cli *cli, int argc, char **argv);
int walctl_checkpoint(struct cli *cli, int argc, char **argv);
int walctl_checkpoints(struct cli *cli, int argc, char **argv);
int walctl_checkpoint_show(struct cli *cli, int argc, char **argv);
int walctl_checkpoint_diff(struct cli *cli, int argc, char **argv);
int walctl_checkpoint_delete(struct cli *cli, int argc, char **argv);
int walctl_checkpoint_export(struct cli *cli, int argc, char **argv);
int walctl_checkpoint_import(struct cli *cli, int argc, char **argv);
int walctl_checkpointing(struct cli *cli, int argc, char **argv);
int walctl_rewind(struct cli *cli, int argc, char **argv);
int walctl_projects(struct cli *cli, int argc, char **argv);
int walctl_project(struct cli *cli, int argc, char **argv);
int walctl_stats(struct cli *cli, int argc, char **argv);
int walctl_backup(struct cli *cli, int argc, char **argv);
int walctl_gc(struct cli *cli, int argc, char **argv);
/* Compacts the store so that no file of it holds what was deleted or redacted,
 * but for the trash, and says what that does not reach. Lists the views that
 * may hold it, or rewrites them. An exit code. gc.c */
int walctl_erase(const struct cli *cli, struct wal_store *store,
                 bool rewrites_views);
/* CLI_USAGE for --views without --erase; else CLI_CONTINUE. gc.c */
int walctl_check_views(const struct cli *cli, bool erases, bool rewrites_views);
/* Lists the views that may hold what was deleted or redacted, or with
 * `rewrites` brings them up to date: as text, or as items of an array. An exit
 * code. views.c */
struct cli_json;
int walctl_print_views(const struct cli *cli, struct wal_store *store,
                       bool rewrites, struct cli_json *json);
/* The same, as text or as {"views"}. */
int walctl_report_views(const struct cli *cli, struct wal_store *store,
                        bool rewrites);
int walctl_bundle(struct cli *cli, int argc, char **argv);
int walctl_merge(struct cli *cli, int argc, char **argv);
int walctl_retain(struct cli *cli, int argc, char **argv);
int walctl_restore(struct cli *cli, int argc, char **argv);
int walctl_accept_damage(struct cli *cli, int argc, char **argv);

/* Reads the options, checks that there are `least` to `most` operands (the
 * first is the command's name), and opens the store, the second operand.
 * CLI_CONTINUE or the exit code. */
int walctl_open(struct cli *cli, int argc, char **argv,
                const struct cli_option *options, int least, int most,
                uint32_t flags, struct wal_store **store);

/* As walctl_open, and opens the session, the third operand. */
int walctl_open_session(struct cli *cli, int argc, char **argv,
                        const struct cli_option *options, int least, int most,
                        uint32_t flags, struct wal_store **store,
                        struct wal_session **session);

/* Closes both; returns the worse of `code` and the code of closing. */
int walctl_close_session(const struct cli *cli, struct wal_store *store,
                         struct wal_session *session, int code);

/* Sets *directory to the absolute path of --cwd, which the caller frees; null
 * for null. CLI_USAGE if it is too long, with *directory unchanged; else
 * CLI_CONTINUE. */
int walctl_resolve_cwd(const struct cli *cli, const char *cwd,
                       char **directory);

/* As walctl_resolve_cwd, for --root. */
int walctl_resolve_root(const struct cli *cli, const char *option, char **root);

/* CLI_USAGE if a checkpoint's id is empty or too long; else CLI_CONTINUE. */
int walctl_check_checkpoint_id(const struct cli *cli, const char *what,
                               const char *id);

/* As cli_report, but names the file of the error if it has one. */
int walctl_report_file(const struct cli *cli, const char *what,
                       enum wal_status status, const struct wal_error *error);

/* Opens the session of an id, or creates it in the current directory when there
 * is none. CLI_CONTINUE or the exit code. */
int walctl_open_or_create(const struct cli *cli, struct wal_store *store,
                          const char *id, struct wal_session **session);

/* Reads all of standard input; the caller frees it. Null, after printing why,
 * if it cannot be read or has more than `most` bytes; then the text ends with
 * `advice`. */
char *walctl_read_stdin(const struct cli *cli, size_t most, const char *advice,
                        size_t *size);

/* Prints what a verb did: the sentence and the value, or {key: value}. The tool
 * walctl prints nothing. Returns CLI_OK. */
int walctl_print_done(const struct cli *cli, const char *key, const char *value,
                      const char *sentence);

/* Prints a session's id, as text or as {"sessionId"}, and closes it. */
int walctl_print_id(const struct cli *cli, struct wal_session *session);

/* Prints {"sessionId","lastAppendedEntryId","appendedCount", "duplicateCount"},
 * and "queued" if it is not null: the number of entries that were queued and
 * whose outcome is unknown. For people: a sentence. */
void walctl_print_appended(const struct cli *cli, struct wal_session *session,
                           const struct wal_append_result *result,
                           const uint64_t *queued);

/* Prints {"conflict":{"expected","actual"}}; for people nothing, because the
 * error says it. */
void walctl_print_conflict(const struct cli *cli, struct wal_slice expected,
                           struct wal_slice actual);

#endif
