/*
 * directory.h - whether two paths name one directory: that of sessions, which clients write as they
 * were started.
 *
 * The normal form of a path has no empty component and no '/' at its end; one that begins with a
 * drive letter has it in upper case, and '/' for each backslash. Two paths name one directory if
 * their normal forms are equal, or both exist and are equal without symbolic links.
 *
 * Threads: one at a time per struct; nothing else is shared. Files are only looked up.
 */
#ifndef AGENTWAL_ENGINE_BASE_DIRECTORY_H
#define AGENTWAL_ENGINE_BASE_DIRECTORY_H

#include <stdbool.h>

#include "agentwal.h"

enum {
    WAL__DIRECTORY_SIZE = 4097 /* of a path with its NUL; the rest of a longer one is ignored */
};

/* Writes the normal form. */
void wal__directory_normalise(struct wal_slice path, char normal[WAL__DIRECTORY_SIZE]);

struct wal__directory {
    char normal[WAL__DIRECTORY_SIZE];
    char resolved[WAL__DIRECTORY_SIZE]; /* without symbolic links; empty if it does not exist */
    char compared[WAL__DIRECTORY_SIZE]; /* normal form of the path that was compared last */
    bool is_same;                       /* the result of that */
};

/* Prepares comparing with a path. */
void wal__directory_init(struct wal__directory *directory, struct wal_slice path);

/* Returns true if the path names the directory. */
bool wal__directory_is(struct wal__directory *directory, struct wal_slice path);

#endif
