/*
 * copy_walk.h - walks a copy and its original in parallel, line by line.
 *
 * Invariant: equal files give equal walks.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_COPY_WALK_H
#define AGENTWAL_CONVERT_IMPORT_COPY_WALK_H

#include "agentwal/blob.h"
#include "convert/import/copy_import.h"

#define WAL__COPY_LOOKAHEAD   32 /* lines of the original that are compared */
#define WAL__COPY_OWN_RUN_MAX 64 /* consecutive own lines of the copy */

struct wal__copy_walk {
    const struct wal__copy_import *copy;
    struct wal__line_reader reader;
    struct wal__piece piece;        /* current line of the copy */
    struct wal__source_lines lines; /* of the original */
    struct wal_entry lookahead[WAL__COPY_LOOKAHEAD];
    size_t lookahead_count;
    uint64_t sequence; /* of the last shared line */
    uint64_t nonblank; /* non-blank lines of the copy so far */
    uint64_t own_run;
    struct wal_entry base;
    bool is_shared;        /* the current line is a copy of `base` */
    struct wal_blob *blob; /* payload of `base`, when out of line */
    struct wal__delta_source source;
    uint8_t *window;
    bool has_failed; /* no memory for the window */
    struct wal__delta_chunk *scratch;
};

enum wal_status wal__copy_walk_begin(struct wal__copy_walk *walk,
                                     const struct wal__copy_import *copy,
                                     struct wal_session *origin,
                                     struct wal_error *error);
void wal__copy_walk_end(struct wal__copy_walk *walk);

/* Advances to the next line. WAL_END: no later line is shared, or the file has
 * ended. */
enum wal_status wal__copy_walk_next(struct wal__copy_walk *walk,
                                    struct wal_error *error);

/* Encodes the current line, which is shared, into the chunk. With `is_named`
 * the encoding contains the id of `base`. */
enum wal__delta_status wal__copy_walk_encode(struct wal__copy_walk *walk,
                                             struct wal__delta_chunk *chunk,
                                             bool is_named);

/* Finds the session that the file is a copy of, other than `own`, which may be
 * NULL. */
enum wal_status wal__copy_import_find(struct wal__copy_import *copy,
                                      struct wal_session *own,
                                      struct wal_error *error);

#endif
