/*
 * convert.h - what the verbs import, adopt, export and follow share: views of sessions, files below
 * the output directory, and running an import.
 *
 * Invariant: nothing is written outside the output directory: a path that leaves it is rejected,
 * and symbolic links below it are not followed. A file is replaced as a whole, by rename. Without
 * --verbose and --json the output of an import does not grow with the number of sources, except for
 * failures.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_CONVERT_H
#define AGENTWAL_TOOLS_CONVERT_CONVERT_H

#include "agentwal/convert.h"
#include "agentwal/import.h"
#include "convert/model/dialect.h"
#include "tools/cli/json.h"
#include "tools/project/project.h"

/* --- views -------------------------------------------------------------- */

/* What an export of several sessions did. Zeroed it is empty. */
struct convert_summary {
    uint64_t files;
    uint64_t lines; /* that were added */
    uint64_t bytes; /* that were written to files of views */
    struct convert_loss {
        char *what;
        uint64_t count;
    } * items;
    size_t count;
    size_t capacity;
};

/* Prints it, and frees its memory. */
void convert_summary_end(struct convert_summary *summary);

struct convert_view {
    const struct cli *cli;
    struct wal_store *store;
    const char *store_path;
    const char *dialect;
    const char *root;                /* output directory; NULL: standard output */
    struct convert_summary *summary; /* NULL: each file is printed */
};

enum wal_status convert_view_open(const struct convert_view *target, struct wal_session *session,
                                  struct wal_view **view, struct wal_error *error);

/* Flushes a view, and has the store list its root, so that erasing finds it; where the list may not
 * be written, it does not. */
enum wal_status convert_view_flush(const struct convert_view *target, struct wal_view *view,
                                   struct wal_view_flush_result *result, struct wal_error *error);

/* Whether the session belongs into a view of all sessions. That leaves out those without entries,
 * and imported ones without a message of a user; transcripts of subagents belong only into views of
 * the same client, and of OpenCode. */
bool convert_view_has_messages(const char *dialect, const struct wal_session_info *info);

/* Updates the view of a session and prints the result. Returns an exit code. */
int convert_view_export(const struct convert_view *target, const char *id);

/* Prints the result of a flush; `name` is the session's, `missing` the number of missing backups.
 * Returns an exit code. */
int convert_view_print(const struct convert_view *target, struct wal_view *view, const char *name,
                       const struct wal_view_flush_result *result, uint64_t missing);

/* Prints the error of a flush with the file's path, if known. Returns an exit code. */
int convert_view_fail(const struct convert_view *target, const char *name, enum wal_status status,
                      const struct wal_error *error);

/* Returns true if the view's dialect has checkpoints next to its files. */
bool convert_view_has_checkpoints(const struct convert_view *target);

/* Exports the session's missing checkpoints. Returns an exit code. */
int convert_view_export_checkpoints(const struct convert_view *target, struct wal_session *session,
                                    struct wal_view *view, const char *id);

/* Prints a path, for a verb with --json as {"path"}. */
void convert_print_path(const struct cli *cli, const char *path);

/* Prints the path of a session's view. Returns an exit code. */
int convert_view_print_path(const struct convert_view *target, struct wal_session *session,
                            const char *name, uint32_t stream);

/* --- files below the output directory ----------------------------------- */

/* Returns true if the relative path has no empty, "." or ".." component. */
bool convert_path_is_beneath(const char *path);

/*
 * Opens the directory that contains the file. Missing directories are created with mode 0700,
 * unless `is_read_only`. Returns a descriptor, or -1 with errno set. *name points to the last
 * component of path.
 */
int convert_open_parent(const char *root, const char *path, bool is_read_only, const char **name);

/* Ends the process unless root is a directory, does not exist, or is NULL for standard output. */
void convert_check_root(const struct cli *cli, const char *root);

/* Writes the backups that the session's view names and the store has. *missing: the number of those
 * that are neither in the store nor in the view's place. Returns an exit code. Does nothing for
 * views in other dialects. */
int convert_file_history_export(const struct convert_view *target, struct wal_session *session,
                                struct wal_view *view, const char *name, uint64_t *missing);

struct convert_source {
    const struct cli *cli;
    struct wal_store *store;
    struct wal_session *session;
    const char *root;    /* output directory; NULL: standard output */
    const char *path;    /* of the file, below root */
    const char *name;    /* of the file, in messages */
    uint32_t stream;     /* stream that the file's lines are in */
    const char *file;    /* id of the file; NULL: the session's source */
    int64_t modified_ms; /* time of the file; 0: that of the session */
};

struct convert_outcome {
    uint64_t added;        /* lines that the file lacked */
    uint64_t native_count; /* entries that are not lines of the file */
    uint64_t damaged;      /* entries that cannot be read */
    uint64_t redacted;     /* entries that are left out */
    bool is_rejected;      /* nothing was written; the error was printed */
};

enum convert_file_state {
    CONVERT_FILE_MISSING,  /* the file does not exist */
    CONVERT_FILE_PREFIX,   /* the file is a prefix of the session */
    CONVERT_FILE_COMPLETE, /* the session is a prefix of the file */
    CONVERT_FILE_DIFFERENT /* different content, or not a regular file */
};

/* Compares the existing file, of *size bytes, with the session; `outcome` counts the lines that it
 * lacks. Returns an exit code. */
int convert_source_compare(const struct convert_source *source, enum convert_file_state *state,
                           uint64_t *size, struct convert_outcome *outcome);

/* Counts what the session has, as if there was no file. Returns an exit code. */
int convert_source_count(const struct convert_source *source, struct convert_outcome *outcome);

/* Creates or extends the file; does nothing if it is complete. Returns an exit code. */
int convert_source_write(const struct convert_source *source, struct convert_outcome *outcome);

/* Writes the bytes to standard output. Returns an exit code. */
int convert_source_print(const struct convert_source *source, struct convert_outcome *outcome);

/* --- imports ------------------------------------------------------------ */

enum {
    CONVERT_NAMES_MAX = 10 /* sessions with another id that are printed */
};

/* The caller sets the first five members and zeroes the others. */
struct convert_run {
    const struct cli *cli;
    uint32_t flags;      /* enum wal_import_selection */
    const char *dialect; /* NULL: detected */
    const char *exclude; /* the store */
    bool is_verbose;     /* prints every source and every warning */
    bool prints_summary;
    bool redacts_secrets; /* of what was imported, when it is */
    const char *rules;    /* of secrets; NULL: the program's */
    bool has_followed;    /* the first import is complete */
    bool is_full;         /* the store has no space; the import was stopped */
    bool hides_unread;    /* does not name clients whose sessions cannot be read */
    bool has_found_paths; /* the command was not called with the paths */
    int code;             /* exit code so far */
    struct progress progress;
    int64_t start_ms;
    struct wal_import_result total; /* to be imported, for the progress */
    uint64_t files;                 /* imported so far */
    uint64_t bytes;
    uint64_t odd_files; /* in which the client's format is not followed */
    uint64_t odd_lines;
    uint64_t other_ids; /* sessions that could not have their id */
    uint64_t partials;  /* files that lack what they go on from */
    uint64_t trashed;   /* sources of sessions in the trash */
    uint64_t unread;    /* clients whose sessions cannot be read */
    const struct wal_slice *paths;
    uint32_t path_count;
    struct wal_import_result result;
    char *directory; /* whose project was found last, or null */
    char project[CLI_PROJECT_SIZE];
    bool has_project; /* `project` is known */
};

/* SIGINT and SIGTERM stop an import after this; a second one ends the process. */
void convert_catch_signals(void);

/* If a signal came, prints how to continue and ends the process by it. Does nothing otherwise. Call
 * it when the store is closed. */
void convert_end_interrupted(const struct cli *cli);

/* Whether there is no store and nothing to import, so that none is created; then prints the
 * reports, and sets the result and the exit code. */
bool convert_run_is_empty(struct convert_run *run, const struct wal_slice *paths, uint32_t count);

/* Imports the paths and prints the reports. Returns the exit code. */
int convert_run_import(struct convert_run *run, struct wal_store *store,
                       const struct wal_slice *paths, uint32_t count);

/* Prints what was imported, what was left out, and the warnings. As JSON with
 * --json. */
void convert_run_print(const struct convert_run *run);

/* Prints the files that were left out, by kind, after `before`; nothing if there are none. */
void convert_print_left_out(const char *before, const struct wal_import_result *result);

/* Prints a number of bytes with a unit: "63.0 MB". */
void convert_print_bytes(uint64_t bytes);

#endif
