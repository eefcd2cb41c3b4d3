/*
 * walctl.h - the commands of walctl.
 *
 * Each takes the whole command line of the process but for the program's name,
 * so that the first operand is the command's own name, and answers the exit
 * code.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCTL_WALCTL_H
#define AGENTWAL_TOOLS_WALCTL_WALCTL_H

#include "tools/cli/cli.h"

int walctl_init(struct cli *cli, int argc, char **argv);
int walctl_create(struct cli *cli, int argc, char **argv);
int walctl_append(struct cli *cli, int argc, char **argv);
int walctl_list(struct cli *cli, int argc, char **argv);
int walctl_latest(struct cli *cli, int argc, char **argv);
int walctl_show(struct cli *cli, int argc, char **argv);
int walctl_children(struct cli *cli, int argc, char **argv);
int walctl_fork(struct cli *cli, int argc, char **argv);
int walctl_delete(struct cli *cli, int argc, char **argv);
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
int walctl_accept_damage(struct cli *cli, int argc, char **argv);

/* Reads the options, asks for so many operands (the command's name is the
 * first), and opens the store, which is the second. CLI_CONTINUE or the exit
 * code. */
int walctl_open(struct cli *cli, int argc, char **argv,
                const struct cli_option *options, int least, int most,
                uint32_t flags, struct wal_store **store);

/* The same, and opens the session, which is the third. */
int walctl_open_session(struct cli *cli, int argc, char **argv,
                        const struct cli_option *options, int least, int most,
                        uint32_t flags, struct wal_store **store,
                        struct wal_session **session);

/* Closes both and answers the worse of code and what closing gave. */
int walctl_close_session(const struct cli *cli, struct wal_store *store,
                         struct wal_session *session, int code);

/* The absolute path of --cwd, to be freed; null for null. CLI_USAGE, with
 * *directory as it was, when it is too long; else CLI_CONTINUE. */
int walctl_resolve_cwd(const struct cli *cli, const char *cwd,
                       char **directory);

/* The same for --root. */
int walctl_resolve_root(const struct cli *cli, const char *option, char **root);

/* Fails with CLI_USAGE when a checkpoint's id is empty or too long; else
 * CLI_CONTINUE. */
int walctl_check_checkpoint_id(const struct cli *cli, const char *what,
                               const char *id);

/* As cli_report, of a file where the error names one. */
int walctl_report_file(const struct cli *cli, const char *what,
                       enum wal_status status, const struct wal_error *error);

/* All of standard input, to be freed; null, and why not printed, when it
 * cannot be read or is larger than `most` bytes. The advice follows then. */
char *walctl_read_stdin(const struct cli *cli, size_t most, const char *advice,
                        size_t *size);

/* Prints a session's id, as text or as {"sessionId"}, and closes it. */
int walctl_print_id(const struct cli *cli, struct wal_session *session);

/* Prints {"sessionId","lastAppendedEntryId","appendedCount",
 * "duplicateCount"}; and "queued", when that is not null: so many entries were
 * handed in, and what becomes of them is not known yet. */
void walctl_print_appended(struct wal_session *session,
                           const struct wal_append_result *result,
                           const uint64_t *queued);

/* Prints {"conflict":{"expected","actual"}}. */
void walctl_print_conflict(struct wal_slice expected, struct wal_slice actual);

#endif
