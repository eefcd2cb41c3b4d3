/*
 * paths.h - the file names of a command line, given one by one or in a list.
 *
 * Threads: the tool has one thread.
 */
#ifndef AGENTWAL_TOOLS_FILES_PATHS_H
#define AGENTWAL_TOOLS_FILES_PATHS_H

#include "tools/cli/cli.h"

/* Names in the engine's form; zeroed it is empty. */
struct files_paths {
    struct wal_slice *items;
    size_t count;
    size_t capacity;
    char *below; /* prefix of relative names; null: none */
};

/* Without --root: makes relative names relative to the current directory if
 * that is inside `root`, the session's directory; else to `root`. */
void files_paths_init(struct files_paths *names, struct wal_slice root);

/* Adds a copy of a name. */
void files_paths_add(struct files_paths *names, const char *name, size_t size);

/* Adds the names of a file, or of standard input for `-`: one per line, or each
 * ended by a zero byte. CLI_CONTINUE, or CLI_FAILED after printing why. */
int files_paths_read(const struct cli *cli, struct files_paths *names,
                     const char *file, bool is_zero_ended);

void files_paths_deinit(struct files_paths *names);

#endif
