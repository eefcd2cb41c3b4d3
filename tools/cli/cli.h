/*
 * cli.h - common code of the command line tools: options, errors, exit codes, memory, and opening
 * the store and the session that the operands name.
 *
 * Invariant: standard output carries results only; everything else is written to standard error as
 * `TOOL: what: why`. A tool that rejects its command line prints one line with the argument and the
 * reason, and changes nothing.
 *
 * Threads: the tools are single-threaded, where their files do not say otherwise.
 */
#ifndef AGENTWAL_TOOLS_CLI_CLI_H
#define AGENTWAL_TOOLS_CLI_CLI_H

#include <dirent.h>

#include "agentwal.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"
#include "tools/terminal/terminal.h"

enum cli_exit {
    CLI_OK = 0,
    CLI_NEGATIVE = 1, /* damage found, conflict, not found */
    CLI_USAGE = 2,    /* the command line is invalid */
    CLI_FAILED = 3    /* I/O error, locked, not a store */
};

/* Limits of agentwal.h, in bytes, that a command line can exceed. */
enum { CLI_NO_STORE = -1, CLI_ID_MAX = 255, CLI_TEXT_MAX = 4096, CLI_KEY_MAX = 1024 };

/* Where a key of an encrypted store is; key.h reads it. */
struct cli_key_options {
    const char *file;
    const char *command;
    const char *keyring;
    const char *fd;     /* of a passphrase, or of the code */
    bool is_passphrase; /* ask for one */
    bool is_code;       /* it is a recovery code */
};

struct cli {
    const char *tool; /* the name that the program was called by */
    const char *help;
    bool makes_store; /* the verb creates the store that it names */

    const char *verb;
    bool names_store;       /* walcat, walcheck: the first operand is the store */
    const char *store_path; /* --store, or NULL */
    bool store_is_default;  /* no --store */
    int store_at;           /* index among the operands; CLI_NO_STORE: none */
    bool adds_to_store;     /* the verb may create the store */
    bool json_errors;       /* --json is on the command line */
    bool no_colour;
    bool no_pager;
    struct terminal *terminal;

    bool json;
    bool no_progress;
    bool strict;
    bool force_network_fs;
    struct cli_key_options key;
    const struct wal_key *new_key; /* of the store that the verb creates, or NULL */
    int count;                     /* operands */
    char **items;                  /* operands, the store among them */

    struct wal_error *error; /* of the library call that failed last */

    /* What the verb has open; the program closes them. */
    struct wal_store *store;
    struct wal_session *session;
    const char *opened; /* the path of `store` */
};

/* Values of an option that may be repeated. */
struct cli_values {
    const char **items;
    size_t count;
};

/* An option of one tool or command; exactly one of the pointers says what it takes. Of what is not
 * in `values` the last occurrence counts. */
struct cli_option {
    const char *name;          /* without dashes; NULL ends the table */
    char letter;               /* its short form, or 0 */
    bool *flag;                /* no argument */
    const char **value;        /* a text of at most `max` bytes; 0: of any size */
    struct cli_values *values; /* a text; every occurrence counts */
    const char **directory;    /* a directory, of which it gets the absolute path */
    uint64_t *number;          /* a decimal number from `min` to `max` */
    uint64_t *size;            /* a number of bytes, as cli_parse_size reads it */
    int64_t *time;             /* a time, as cli_parse_time reads it */
    uint64_t min;
    uint64_t max;
    /* Of `value`: checks it further, as cli_check_object does; or NULL. */
    void (*check)(const struct cli *cli, const char *what, const char *text);
    bool may_be_empty; /* "" is an argument; else the command line is refused,
                        * as that of a script whose variable is not set */
};

/* Opens /dev/null for each closed standard stream, so that no other file gets its descriptor. main
 * calls it first. */
void cli_ensure_std_fds(void);

/*
 * Parses the common options and those of the table, before, between or after the operands, and
 * stores the operands in *cli. options may be NULL. Ends the process after --help, after --version
 * and for an invalid command line. The caller sets cli->tool and cli->help first.
 */
void cli_parse(struct cli *cli, int argc, char **argv, const struct cli_option *options);

/* Of a verb that this build does not have: prints why, unless the help or the version was asked
 * for. Returns the exit code. */
int cli_refuse_missing(struct cli *cli, int argc, char **argv, const char *why);

/* Returns the command that prints the help of the verb or tool, until the next call. */
const char *cli_help_command(const struct cli *cli);

/* The functions that parse and check end the process with CLI_USAGE, after an error, unless the
 * command line is as they say. */

/* The number of operands is from min to max. */
void cli_check_operands(const struct cli *cli, int min, int max);

/* cli_parse, and cli_check_operands. */
void cli_parse_operands(struct cli *cli, int argc, char **argv, const struct cli_option *options,
                        int min, int max);

/* Reads the decimal argument of an option, at most `max`. */
void cli_parse_number(const struct cli *cli, const char *option, const char *text, uint64_t max,
                      uint64_t *number);

/* Reads the argument of an option that is a number of bytes: digits, and a unit (B, k, kB, KiB, ...
 * T, TB, TiB) or none. */
void cli_parse_size(const struct cli *cli, const char *option, const char *text, uint64_t *size);

/* The text is NULL or at most max bytes long. */
void cli_check_size(const struct cli *cli, const char *what, const char *text, size_t max);

/* The same of a session's or entry's id, or of a head's name. */
void cli_check_id(const struct cli *cli, const char *what, const char *id);

/* The id of a new session is NULL or can be given on a command line and printed on one line. */
void cli_check_new_id(const struct cli *cli, const char *what, const char *id);

/* The text is NULL or a JSON object. */
void cli_check_object(const struct cli *cli, const char *what, const char *text);

/* The id of a checkpoint is NULL, or neither empty nor too long. */
void cli_check_checkpoint_id(const struct cli *cli, const char *what, const char *id);

/* Reads the argument of an option: 2026-11-20, 2026-11-20T14:03 (local time), a time in ISO 8601
 * with a zone, or an age such as 90m, 12h, 7d or 2w. NULL: *ms stays as it is. */
void cli_parse_time(const struct cli *cli, const char *option, const char *text, int64_t *ms);

/* Return `one` when the count is 1, else `many`; and with the number: "3 sessions", valid for seven
 * further calls. */
const char *cli_plural(uint64_t count, const char *one, const char *many);
const char *cli_counted(uint64_t count, const char *one, const char *many);

/* Prints `TOOL: what: why`; `what` may be NULL. With --json a verb prints
 * {"error":{"status","what","why","cause"?,"file"?,"offset"?,"advice"?, "exitCode"}}. Returns
 * `code`. */
int cli_error(const struct cli *cli, int code, const char *what, const char *why, ...)
    __attribute__((format(printf, 4, 5)));

/* As cli_error, with the exit code and the name of a status. */
int cli_error_status(const struct cli *cli, enum wal_status status, const char *what,
                     const char *why, ...) __attribute__((format(printf, 4, 5)));

/* Prints an error of the library, which is in cli->error or in `error`, with advice on what to do,
 * and nothing for WAL_OK. Returns the exit code. `error` may be NULL. */
int cli_report(const struct cli *cli, const char *what, enum wal_status status);
int cli_report_error(const struct cli *cli, const char *what, enum wal_status status,
                     const struct wal_error *error);

/* Ends the process with an exit code: closes what the verb has open, and waits for the pager. Other
 * handles of the store may be open. */
_Noreturn void cli_end(const struct cli *cli, int code);

/* As cli_error, then cli_end. A verb that has nothing to clean up fails with it. */
_Noreturn void cli_fail(const struct cli *cli, int code, const char *what, const char *why, ...)
    __attribute__((format(printf, 4, 5)));

/* As cli_report, and ends the process unless the status is WAL_OK. */
void cli_check(const struct cli *cli, const char *what, enum wal_status status);

/* Ends the process unless the code is CLI_OK. */
void cli_need(const struct cli *cli, int code);

/* Whether the error of a cursor concerns what cannot be read of the store: one entry or record,
 * after which the cursor continues. */
bool cli_is_damage(enum wal_status status);

/* Returns the name of a status in agentwal.h. */
const char *cli_status_name(enum wal_status status);

/* Returns the exit code of a status. */
int cli_exit_code(enum wal_status status);

/* Returns the worse of two exit codes. */
int cli_worse_code(int code, int other);

/* Call it before printing what may be longer than the screen: a verb starts the pager on a
 * terminal. */
void cli_start_pager(const struct cli *cli);

/* Prints a note on standard error: `TOOL: what: note`. With --json a verb prints nothing, because
 * errors are JSON then. */
void cli_note(const struct cli *cli, const char *what, const char *note);

/* Flushes standard output and waits for the pager. main calls it once with its exit code and
 * returns the result. A closed pipe is not an error. */
int cli_finish(const struct cli *cli, int code);

/* Returns true when writing to standard output failed, so that callers can stop. */
bool cli_output_failed(void);

/* Whether writing to standard output has not failed, and nothing has closed its other end. */
bool cli_output_is_read(void);

/* Has SIGINT say that the verb can be run again to go on, before it ends the process. */
void cli_note_interrupts(void);

/* Has SIGINT and SIGTERM end the process with CLI_OK, and blocks or unblocks them. A verb that goes
 * on until it is interrupted permits them only while it waits, so that nothing that it writes is
 * cut; the first call comes before threads. */
void cli_permit_end(bool is_permitted);

/* Allocates; when memory is exhausted the process exits with CLI_FAILED. cli_alloc zeroes the
 * memory. cli_copy_text and cli_copy_slice terminate the copy with NUL. */
void *cli_alloc(size_t size);
void *cli_realloc(void *data, size_t size);
char *cli_copy_text(const void *data, size_t size);
char *cli_copy_slice(struct wal_slice text);

/* The heap of what the engine and formats have; it exits so too. */
extern const struct wal__heap cli_heap;

/* Appends to a buffer of that heap; a zeroed one is empty. */
void cli_append(struct wal__buf *buf, const void *data, size_t size);

/* Opens a file whose bytes are a text in memory when it is closed; the caller frees it. */
FILE *cli_open_memory(char **text, size_t *size);

/* Returns a text, which the caller frees. */
char *cli_format(const char *form, ...) __attribute__((format(printf, 1, 2)));

/* Return memory that the process owns from now on, and never frees, or such a copy of a text. What
 * a verb has until it ends is kept so, or static. */
void *cli_keep(void *memory);
const char *cli_keep_text(const char *text);
const char *cli_keep_slice(struct wal_slice text);

/* Returns the array with room for at least one more item; capacity counts items. */
void *cli_reserve(void *items, size_t count, size_t *capacity, size_t item_size);
/* Returns the place of another item of an array; and of a list, a struct with the members items,
 * count and capacity. */
#define CLI_PUSH(items, count, capacity) \
    ((items) = cli_reserve((items), (count), &(capacity), sizeof((items)[0])), &(items)[(count)++])
#define CLI_ADD(list) CLI_PUSH((list)->items, (list)->count, (list)->capacity)

struct wal_slice cli_slice(const char *text);
bool cli_slice_equal(struct wal_slice a, struct wal_slice b);

/* Combines the options of the command line with these flags. */
struct wal_open_options cli_open_options(const struct cli *cli, uint32_t flags);

/* The functions that open end the process after an error. */

/* Opens a store, which may be another one than that of the verb, with the options and the key of
 * the command line. The caller closes it. */
enum wal_status cli_try_open(const struct cli *cli, const char *path, uint32_t flags,
                             struct wal_store **store, struct wal_error *error) WAL_MUST_USE;

/* Inserts the store among the operands of a verb: --store, else AGENTWAL_STORE, else the user's
 * data directory. */
void cli_insert_store(struct cli *cli);

/* Opens a store with the options of the command line and these flags. A verb that adds to the store
 * creates it with its missing parents, and prints that on standard error. */
struct wal_store *cli_open_store(const struct cli *cli, const char *path, uint32_t flags);

/* As cli_open_store; the store is cli->store then, which the program closes. */
void cli_use_store(struct cli *cli, const char *path, uint32_t flags);

/* Closes cli->session and cli->store. Returns the worse of `code` and the code of closing. */
int cli_close(const struct cli *cli, int code);

/* Whether there is nothing, or what a creation left that was cut short: it is repeated (SPEC
 * 3.7). */
bool cli_is_missing(const char *path);

/* For verbs that do not use cli_open_store: when there is nothing at the path, prints how to make a
 * store. */
void cli_require_store(const struct cli *cli, const char *path);

/*
 * Goes through a list of sessions:
 *
 *     for (cli_sessions_open(&list, store, options, error);
 *          cli_sessions_next(&list);) {
 *         use(&list.info);
 *     }
 *     return list.status;
 *
 * A failure that the body puts into `status` ends it, and so does WAL_END, as which the end of the
 * list counts: `status` is WAL_OK then. The list is closed when there is no next session.
 */
struct cli_sessions {
    struct wal_session_info info;
    enum wal_status status;
    struct wal_session_cursor *cursor;
    struct wal_error *error;
};

void cli_sessions_open(struct cli_sessions *list, struct wal_store *store,
                       const struct wal_session_cursor_options *options, struct wal_error *error);
bool cli_sessions_next(struct cli_sessions *list);

/* Closes a store. Returns the worse of `code` and the exit code of the close. */
int cli_close_store(const struct cli *cli, const char *path, struct wal_store *store, int code);

/* Opens a session by its id, a unique prefix of it, `@latest`, or the path of an imported file.
 * Returns CLI_OK, or prints the error and returns the exit code. */
int cli_find_session(const struct cli *cli, struct wal_store *store, const char *name,
                     struct wal_session **session);

/* The same of cli->store; the session is cli->session then, which the program closes. */
void cli_use_session(struct cli *cli, const char *name);

/* Opens the store for reading, and the session; or, if the name is the path of a file that the
 * store has no session of, a store in memory with the session of the file. */
void cli_use_session_or_file(struct cli *cli, const char *store, const char *name);

/* As cli_use_session, without id prefixes: for commands that would affect another session when they
 * are repeated, for example delete. */
void cli_use_session_exact(struct cli *cli, const char *name);

/* Returns the id of the session that a name means; the process owns it. */
const char *cli_session_id(const struct cli *cli, struct wal_store *store, const char *name);

/* Finds a session in the trash by its id, a unique prefix of it, or a unique ending. Returns its
 * id, which the process owns, and which may also be that of a session that is not in the trash. */
const char *cli_find_trashed(const struct cli *cli, const char *name);

/* Returns the absolute path of a directory, which need not exist; the caller frees it. */
char *cli_absolute_path(const char *path);

/* The same; the process owns it. */
const char *cli_keep_absolute(const char *path);

#define CLI_ERROR_INIT WAL_INIT(wal_error)

/* Texts that are owned. Zeroed: none. */
struct cli_texts {
    char **items;
    size_t count;
    size_t capacity;
};

/* Adds a copy. */
void cli_texts_add(struct cli_texts *texts, struct wal_slice text);
void cli_texts_deinit(struct cli_texts *texts);

/* --- a map from ids to numbers ------------------------------------------ */

struct cli_id {
    char *text;
    uint64_t size;
    uint32_t value;
};

/* Zeroed: an empty table. */
struct cli_ids {
    struct cli_id *items; /* in the order in which they were added */
    size_t count;
    size_t capacity;
    struct wal__hashmap ranks; /* in items */
};

/* Returns the number of the id, which the caller may change; valid until the next
 * cli_ids_get_or_add. NULL: the id is not in the map. */
uint32_t *cli_ids_find(const struct cli_ids *ids, struct wal_slice id);

/* As cli_ids_find; adds the id with 0 when it is missing. */
uint32_t *cli_ids_get_or_add(struct cli_ids *ids, struct wal_slice id);
void cli_ids_deinit(struct cli_ids *ids);

/* --- files of a store ---------------------------------------------------- */

/* The text of an errno value of opening a file of a store: what is there instead of a file. */
const char *cli_file_error(int error);

/* Opens a directory of a store, never by a symbolic link. NULL: *error is the errno value. */
DIR *cli_directory_open(const char *path, int *error);

/* --- files that get their name when they are complete ------------------- */

/* A file that still has its temporary name. */
struct cli_atomic_file {
    FILE *stream;  /* the caller writes here */
    int directory; /* borrowed; must stay open until the commit */
    bool is_new;   /* set by the caller: a file that has the name stays, EEXIST */
    char temporary[64];
};

/* Opens the directory `name` in the directory `parent`, creates it when missing, and follows no
 * symbolic link. Returns a descriptor, or -1 with errno set. */
int cli_make_directory_at(int parent, const char *name);

/* Creates the temporary file, mode 0600. Returns 0 or an errno value. */
int cli_atomic_file_create(struct cli_atomic_file *file, int directory);

/* Closes the file, and renames it to `name`; with `syncs`, both durably. With another error_number
 * than 0, and after a failure, deletes it: a file of the name is as before, unless only the sync of
 * the directory failed. Returns error_number, or the errno value of what failed. */
int cli_atomic_file_commit(struct cli_atomic_file *file, const char *name, bool syncs,
                           int error_number);

/* --- what the verbs share ----------------------------------------------- */

/* Opens the store, the second operand, and the session, the third one, as those of the verb. */
void cli_open(struct cli *cli, uint32_t flags);

/* cli_parse_operands, where the first operand is the verb's name, and cli_use_store of the
 * second one. */
void cli_begin(struct cli *cli, int argc, char **argv, const struct cli_option *options, int least,
               int most, uint32_t flags);

/* As cli_begin; opens the session too, the third operand. */
void cli_begin_session(struct cli *cli, int argc, char **argv, const struct cli_option *options,
                       int least, int most, uint32_t flags);

/* As cli_report, but names the file of the error if it has one. */
int cli_report_file(const struct cli *cli, const char *what, enum wal_status status);

/* As cli_use_session of an id; creates the session in the current directory when there is none. */
void cli_use_or_create_session(struct cli *cli, const char *id);

/* Reads all of a file, or of standard input if the path is NULL; the caller frees it. Ends the
 * process if it cannot be read or has more than `most` bytes; then the error ends with `advice`. */
char *cli_read_file(const struct cli *cli, const char *path, size_t most, const char *advice,
                    size_t *size);

/* Prints what a verb did: the sentence and the value, or {key: value}. Returns CLI_OK. */
int cli_print_done(const struct cli *cli, const char *key, const char *value, const char *sentence);

/* Prints a session's id, as text or as {"sessionId"}. Returns the exit code. */
int cli_print_id(const struct cli *cli, struct wal_session *session);

/* Prints {"sessionId","lastAppendedEntryId","appendedCount", "duplicateCount"}, and "queued" if it
 * is not null: the number of entries that were queued and whose outcome is unknown. For people: a
 * sentence. */
void cli_print_appended(const struct cli *cli, struct wal_session *session,
                        const struct wal_append_result *result, const uint64_t *queued);

/* Prints {"conflict":{"expected","actual"}}; for people nothing, because the error says it. */
void cli_print_conflict(const struct cli *cli, struct wal_slice expected, struct wal_slice actual);

/* --- the name that a user meant ----------------------------------------- */

struct cli_suggestion {
    const char *typed;
    const char *nearest; /* NULL: no name is near */
    size_t distance;     /* of `nearest` */
};

/* Keeps the name if it is nearer than the names before it. A name is near when one insertion,
 * deletion, substitution or exchange of neighbours for each three characters leads to it, or when
 * it begins with what was typed. */
void cli_suggest(struct cli_suggestion *suggestion, const char *name);

/* The number of insertions, deletions, substitutions and exchanges of neighbours that make one word
 * from the other. Words longer than 63 bytes are infinitely distant. */
size_t cli_edit_distance(const char *from, const char *to);

#endif
