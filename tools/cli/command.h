/*
 * command.h - what the verbs share: opening the store and the session that the
 * operands name, reading standard input, and results that several print.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_COMMAND_H
#define AGENTWAL_TOOLS_CLI_COMMAND_H

#include "tools/cli/cli.h"

/* Reads the options, checks that there are `least` to `most` operands (the
 * first is the verb's name), and opens the store, the second operand.
 * CLI_CONTINUE or the exit code. */
int cli_begin(struct cli *cli, int argc, char **argv,
              const struct cli_option *options, int least, int most,
              uint32_t flags, struct wal_store **store);

/* As cli_begin, and opens the session, the third operand. */
int cli_begin_session(struct cli *cli, int argc, char **argv,
                      const struct cli_option *options, int least, int most,
                      uint32_t flags, struct wal_store **store,
                      struct wal_session **session);

/* Closes both; returns the worse of `code` and the code of closing. */
int cli_end_session(const struct cli *cli, struct wal_store *store,
                    struct wal_session *session, int code);

/* Sets *directory to the absolute path of --cwd, which the caller frees; null
 * for null. CLI_USAGE if it is too long, with *directory unchanged; else
 * CLI_CONTINUE. */
int cli_resolve_cwd(const struct cli *cli, const char *cwd, char **directory);

/* As cli_resolve_cwd, for --root. */
int cli_resolve_root(const struct cli *cli, const char *option, char **root);

/* CLI_USAGE if a checkpoint's id is empty or too long; else CLI_CONTINUE. */
int cli_check_checkpoint_id(const struct cli *cli, const char *what,
                            const char *id);

/* As cli_report, but names the file of the error if it has one. */
int cli_report_file(const struct cli *cli, const char *what,
                    enum wal_status status, const struct wal_error *error);

/* Opens the session of an id, or creates it in the current directory when there
 * is none. CLI_CONTINUE or the exit code. */
int cli_open_or_create_session(const struct cli *cli, struct wal_store *store,
                               const char *id, struct wal_session **session);

/* Reads all of standard input; the caller frees it. Null, after printing why,
 * if it cannot be read or has more than `most` bytes; then the text ends with
 * `advice`. */
char *cli_read_stdin(const struct cli *cli, size_t most, const char *advice,
                     size_t *size);

/* Prints what a verb did: the sentence and the value, or {key: value}. Returns
 * CLI_OK. */
int cli_print_done(const struct cli *cli, const char *key, const char *value,
                   const char *sentence);

/* Prints a session's id, as text or as {"sessionId"}, and closes it. */
int cli_print_id(const struct cli *cli, struct wal_session *session);

/* Prints {"sessionId","lastAppendedEntryId","appendedCount", "duplicateCount"},
 * and "queued" if it is not null: the number of entries that were queued and
 * whose outcome is unknown. For people: a sentence. */
void cli_print_appended(const struct cli *cli, struct wal_session *session,
                        const struct wal_append_result *result,
                        const uint64_t *queued);

/* Prints {"conflict":{"expected","actual"}}; for people nothing, because the
 * error says it. */
void cli_print_conflict(const struct cli *cli, struct wal_slice expected,
                        struct wal_slice actual);

#endif
