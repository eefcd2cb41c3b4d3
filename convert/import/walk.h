/*
 * walk.h - visits the files below a path, folders before what they contain, in the order of their
 * names. fts(3) is not in every C library.
 *
 * A symbolic link is visited as a link, unless the caller lets the walk follow it. Files are looked
 * up by their whole paths, so a folder that is moved meanwhile is not followed.
 *
 * Threads: one at a time per walk.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_WALK_H
#define AGENTWAL_CONVERT_IMPORT_WALK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "engine/base/heap.h"

enum wal__walk_kind {
    WAL__WALK_FOLDER,
    WAL__WALK_FILE,
    WAL__WALK_LINK,
    WAL__WALK_OTHER, /* a device, a pipe, a socket; a folder that contains itself by a link */
    /* It could not be looked up, or, after it was visited as a folder, not be listed. */
    WAL__WALK_UNREADABLE
};

struct wal__walk_entry {
    enum wal__walk_kind kind;
    int error;        /* errno of what is unreadable */
    size_t depth;     /* 0: the path of the walk */
    const char *path; /* that opens it, until the next entry */
    const char *name; /* in it, after the last '/' */
    struct stat stat; /* unless it is unreadable */
    /* The folder around it, which is visited; NULL at depth 0. */
    const struct wal__walk_entry *parent;
    size_t number;    /* the caller's, for what is below it; 0 */
    bool is_skipped;  /* set by the caller: what is in this folder is not visited */
    bool is_followed; /* set by the caller: visit what this link leads to next */
};

struct wal__walk_level;

/* The path is borrowed until deinit. */
struct wal__walk {
    const struct wal__heap *heap;
    const char *argument;
    bool follows;      /* the argument may be a link */
    bool folders_only; /* what the file system says is no folder is not visited */
    bool is_begun;
    struct wal__walk_level *level; /* of the entry that was visited last */
    struct wal__buf path;          /* of that entry, with a NUL */
};

void wal__walk_deinit(struct wal__walk *walk);

/* Sets *entry to the next entry, the first time to that of the argument; to NULL at the end. The
 * walk is zeroed but for the first four members. After WAL_ENOMEM it can only be deinitialised. */
enum wal_status wal__walk_next(struct wal__walk *walk, struct wal__walk_entry **entry) WAL_MUST_USE;

#endif
