/*
 * copy_walk.h - walk a copy and its original in parallel, line by line.
 *
 * Invariant: equal files give equal walks.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_WALK_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_WALK_H

#include "agentwal/blob.h"
#include "tools/walconv/import/copy_import.h"

#define WALK_LOOKAHEAD   32 /* lines of the original that are compared */
#define WALK_OWN_RUN_MAX 64 /* consecutive own lines of the copy */

struct walconv_walk {
    const struct walconv_copy *copy;
    struct walconv_reader reader;
    struct walconv_piece piece; /* current line of the copy */
    struct cli_lines lines;     /* of the original */
    struct wal_entry lookahead[WALK_LOOKAHEAD];
    size_t lookahead_count;
    uint64_t sequence; /* of the last shared line */
    uint64_t nonblank; /* non-blank lines of the copy so far */
    uint64_t own_run;
    struct wal_entry base;
    bool is_shared;        /* the current line is a copy of `base` */
    struct wal_blob *blob; /* payload of `base`, when out of line */
    struct wal__delta_source source;
    uint8_t *window;
    struct wal__delta_chunk *scratch;
};

enum wal_status walconv_walk_begin(struct walconv_walk *walk,
                                   const struct walconv_copy *copy,
                                   struct wal_session *origin,
                                   struct wal_error *error);
void walconv_walk_end(struct walconv_walk *walk);

/* Advances to the next line. WAL_END: no later line is shared, or the file has
 * ended. */
enum wal_status walconv_walk_next(struct walconv_walk *walk,
                                  struct wal_error *error);

/* Encodes the current line, which is shared, into the chunk. With `is_named`
 * the encoding contains the id of `base`. */
enum wal__delta_status walconv_walk_encode(struct walconv_walk *walk,
                                           struct wal__delta_chunk *chunk,
                                           bool is_named);

/* Finds the session that the file is a copy of, other than `own`, which may be
 * NULL. */
enum wal_status walconv_copy_find(struct walconv_copy *copy,
                                  struct wal_session *own,
                                  struct wal_error *error);

#endif
