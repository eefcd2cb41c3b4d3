/*
 * copy_walk.h - a copy and its original, line by line.
 *
 * Invariant: the same files give the same walk.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_WALK_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_COPY_WALK_H

#include "agentwal/blob.h"
#include "tools/walconv/import/copy_import.h"

#define WALK_LOOKAHEAD   32 /* lines of the original that are looked at */
#define WALK_OWN_RUN_MAX 64 /* lines of the copy's own in a row, at most */

struct walconv_walk {
    const struct walconv_copy *copy;
    struct walconv_reader reader;
    struct walconv_piece piece; /* the copy's line */
    struct cli_lines lines;     /* of the original */
    struct wal_entry lookahead[WALK_LOOKAHEAD];
    size_t lookahead_count;
    uint64_t sequence; /* of the last line that was shared */
    uint64_t nonblank; /* lines of the copy that are not blank */
    uint64_t own_run;
    struct wal_entry base;
    bool is_shared;        /* the line is that of `base` */
    struct wal_blob *blob; /* of `base`, when that is out of line */
    struct wal__delta_source source;
    uint8_t *window;
    struct wal__delta_chunk *scratch;
};

enum wal_status walconv_walk_begin(struct walconv_walk *walk,
                                   const struct walconv_copy *copy,
                                   struct wal_session *origin,
                                   struct wal_error *error);
void walconv_walk_end(struct walconv_walk *walk);

/* Goes to the next line. WAL_END: nothing behind is shared, or the file has
 * ended. */
enum wal_status walconv_walk_next(struct walconv_walk *walk,
                                  struct wal_error *error);

/* Tells the line, which is shared, in a chunk. */
enum wal__delta_status walconv_walk_encode(struct walconv_walk *walk,
                                           struct wal__delta_chunk *chunk,
                                           bool is_named);

/* Looks for a session that the file is a copy of, other than `own`, which may
 * be null. */
enum wal_status walconv_copy_find(struct walconv_copy *copy,
                                  struct wal_session *own,
                                  struct wal_error *error);

#endif
