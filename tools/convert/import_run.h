/*
 * import_run.h - run an import for a command: its progress, its reports, and
 * one summary at the end.
 *
 * Invariant: without --verbose and --json the output does not grow with the
 * number of sources, except for failures.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CONVERT_IMPORT_RUN_H
#define AGENTWAL_TOOLS_CONVERT_IMPORT_RUN_H

#include "agentwal/import.h"
#include "tools/project/project.h"

enum {
    CONVERT_WARNINGS_MAX = 64, /* different texts that are counted */
    CONVERT_NAMES_MAX = 10     /* sessions with another id that are printed */
};

/* Warnings of one text. */
struct convert_warning {
    char *reason;
    uint64_t count;
};

/* The caller sets the first five members and zeroes the others. */
struct convert_run {
    const struct cli *cli;
    uint32_t flags;      /* enum wal_import_selection */
    const char *dialect; /* NULL: detected */
    const char *exclude; /* the store */
    bool is_verbose;     /* prints every source and every warning */
    bool prints_summary;
    bool has_followed; /* the first import is complete */
    int code;          /* exit code so far */
    struct progress progress;
    int64_t start_ms;
    struct wal_import_result total; /* to be imported, for the progress */
    uint64_t files;                 /* imported so far */
    uint64_t bytes;
    struct convert_warning warnings[CONVERT_WARNINGS_MAX];
    uint32_t warning_count;
    uint64_t other_warnings; /* of further texts */
    uint64_t other_ids;      /* sessions that could not have their id */
    uint64_t trashed;        /* sources of sessions in the trash */
    const struct wal_slice *paths;
    uint32_t path_count;
    struct wal_import_result result;
    char *directory; /* whose project was found last, or null */
    char project[CLI_PROJECT_SIZE];
    bool has_project; /* `project` is known */
};

/* SIGINT and SIGTERM stop an import after this; a second one ends the
 * process. */
void convert_catch_signals(void);

/* If a signal came, prints how to continue and ends the process by it. Does
 * nothing otherwise. Call it when the store is closed. */
void convert_end_interrupted(const struct cli *cli);

/* Imports the paths and prints the reports. Returns the exit code. */
int convert_run_import(struct convert_run *run, struct wal_store *store,
                       const struct wal_slice *paths, uint32_t count);

/* Imports the paths, and then what changes in them, until a signal comes.
 * Prints the summary of the first import. Returns the exit code. */
int convert_run_follow(struct convert_run *run, struct wal_store *store,
                       const struct wal_slice *paths, uint32_t count);

/* Prints what was imported, what was left out, and the warnings. As JSON with
 * --json. */
void convert_run_print(const struct convert_run *run);
void convert_run_deinit(struct convert_run *run);

/* Prints the files that were left out, by kind, after `before`; nothing if
 * there are none. */
void convert_print_left_out(FILE *file, const char *before,
                            const struct wal_import_result *result);

/* Prints a number of bytes with a unit: "63.0 MB". */
void convert_print_bytes(FILE *file, uint64_t bytes);

#endif
