/*
 * cli.h - what the command line tools have in common: options, errors, exit
 * codes, opening a store and finding a session in it.
 *
 * Invariant: standard output carries results and nothing else; everything
 * said about them goes to standard error, as `TOOL: what: why`.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_CLI_H
#define AGENTWAL_TOOLS_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agentwal.h"

enum cli_exit {
    CLI_CONTINUE = -1, /* from cli_parse: there is work to do */
    CLI_OK = 0,
    CLI_NEGATIVE = 1, /* damage found, conflict, not found */
    CLI_USAGE = 2,    /* the command line is wrong */
    CLI_FAILED = 3    /* could not do it */
};

/* Limits of agentwal.h, in bytes, for what a command line can exceed. */
enum {
    CLI_ID_MAX = 255,
    CLI_TEXT_MAX = 4096,
    CLI_KEY_MAX = 1024
};

struct cli {
    const char *tool;
    const char *help;
    bool makes_store; /* the command makes the store that it names */
    bool json;
    bool no_progress;
    bool strict;
    bool force_network_fs;
    int count;    /* operands */
    char **items; /* operands, in argv */
};

/* Values of an option that may be given more than once. */
struct cli_values {
    const char **items;
    size_t count;
};

/* An option of one tool or command; one of the last three fields is set. */
struct cli_option {
    const char *name;          /* without its dashes; NULL ends the table */
    char letter;               /* the short form of it, or 0 */
    bool *flag;                /* takes no argument */
    const char **value;        /* takes one; the last one counts */
    struct cli_values *values; /* takes one; all count */
};

/* To be called first in main, before anything is opened: a standard stream
 * that is closed becomes /dev/null, so that no file gets its number. */
void cli_ensure_std_fds(void);

/*
 * Reads the options all tools have and those of the table, wherever they stand,
 * and leaves the operands in *cli. Answers CLI_CONTINUE, or the exit code when
 * --help or --version was asked for or the command line is wrong. Set cli->tool
 * and cli->help first.
 */
int cli_parse(struct cli *cli, int argc, char **argv,
              const struct cli_option *options);

/* Fails with CLI_USAGE unless so many operands were given; else
 * CLI_CONTINUE. */
int cli_check_operands(const struct cli *cli, int least, int most);

/* Reads a decimal number of an option; CLI_USAGE, or CLI_CONTINUE. */
int cli_parse_number(const struct cli *cli, const char *option,
                     const char *text, uint64_t most, uint64_t *number);

/* Fails with CLI_USAGE when a text of the command line, which may be null, has
 * more bytes than that; else CLI_CONTINUE. */
int cli_check_size(const struct cli *cli, const char *what, const char *text,
                   size_t most);

/* The same for an id, or a name, that a session, an entry or a head gets or
 * has. */
int cli_check_id(const struct cli *cli, const char *what, const char *id);

/* Fails with CLI_USAGE unless a new session's id, which may be null, can be
 * named on a command line and shown on a line; else CLI_CONTINUE. */
int cli_check_new_id(const struct cli *cli, const char *what, const char *id);

/* Fails with CLI_USAGE unless the text, which may be null, is a JSON object;
 * else CLI_CONTINUE. */
int cli_check_object(const struct cli *cli, const char *what, const char *text);

/* The form of a noun that goes with a number. */
const char *cli_plural(uint64_t count, const char *one, const char *many);

/* Prints `TOOL: what: why`; what may be null. Answers code. */
int cli_error(const struct cli *cli, int code, const char *what,
              const char *why, ...) __attribute__((format(printf, 4, 5)));

/* Prints a failure of the library, with what to do about it, and answers the
 * exit code for it. */
int cli_report(const struct cli *cli, const char *what, enum wal_status status,
               const struct wal_error *error);

/* The exit code for a status. */
int cli_exit_code(enum wal_status status);

/* The worse of two exit codes. */
int cli_worse_code(int code, int other);

/* To be called once, before main returns its value: flushes standard output.
 * A reader that has gone away is no failure. */
int cli_finish(const struct cli *cli, int code);

/* Whether standard output has failed; then there is no use in going on. */
bool cli_output_failed(void);

/* Memory, or the end of the process with CLI_FAILED. */
void *cli_alloc(size_t size);
void *cli_realloc(void *data, size_t size);
char *cli_copy_text(const void *data, size_t size); /* terminated */

/* Makes room in an array for one item more; capacity counts items. */
void *cli_reserve(void *items, size_t count, size_t *capacity,
                  size_t item_size);

struct wal_slice cli_slice(const char *text);
bool cli_slice_equal(struct wal_slice a, struct wal_slice b);

/* The options of the command line for opening a store, and these flags. */
struct wal_open_options cli_open_options(const struct cli *cli, uint32_t flags);

/* Opens a store with the options of the command line and these flags. Prints
 * why not; answers CLI_CONTINUE or the exit code. */
int cli_open_store(const struct cli *cli, const char *path, uint32_t flags,
                   struct wal_store **store);

/* Closes a store and answers the worse of code and what closing gave. */
int cli_close_store(const struct cli *cli, const char *path,
                    struct wal_store *store, int code);

/* Opens a session by its id, a unique prefix of it, `@latest`, or the path of
 * a file that was imported. Prints why not; CLI_CONTINUE or the exit code. */
int cli_open_session(const struct cli *cli, struct wal_store *store,
                     const char *name, struct wal_session **session);

/* The same for a command that must not take another session the second time
 * it is given: the beginning of an id does not do. */
int cli_open_session_exact(const struct cli *cli, struct wal_store *store,
                           const char *name, struct wal_session **session);

/* An absolute path for a directory of the command line, which need not
 * exist; to be freed. */
char *cli_absolute_path(const char *path);

#define CLI_ERROR_INIT                           \
    {                                            \
        .struct_size = sizeof(struct wal_error), \
    }

#endif
