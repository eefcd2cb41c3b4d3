/*
 * adopt_line.h - makes an entry of a line that another program wrote behind a
 * view.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_VIEW_ADOPT_LINE_H
#define AGENTWAL_VIEW_ADOPT_LINE_H

#include "view/hold.h"
#include "view/told.h"

#define WAL__ADOPT_ENTRIES 256 /* of a batch */

/* An import of a view. */
struct wal__adopting {
    struct wal_view *view;
    struct wal__hold hold;
    struct wal__known known;
    struct wal_view_import_report report;
    struct wal__view_file *file; /* the view's main one */
    struct wal__stamp stamp;     /* of the file as it is read */
    struct wal__digest digest;   /* of what was taken, and what is before it */
    struct wal__buf buf;
    int fd;
    struct wal__told told;
    bool is_told;
    struct wal_iter *iter;          /* for looking entries up */
    struct wal__heap_arena keep;    /* as long as this is */
    struct wal__heap_arena scratch; /* as long as a batch is */
    struct wal__model_table taken;  /* id in the log, by hash of a line's own */
    struct wal_slice written;       /* the last entry that the view has */
    struct wal_slice before;        /* the line before; empty: none yet */
    struct wal_slice time;
    struct wal_entry entries[WAL__ADOPT_ENTRIES];
    uint32_t count;
    size_t size;
};

/* A line, and what is made of it. */
struct wal__taking {
    struct wal__json_span text;
    struct wal__line line;
    uint64_t offset;
    struct wal_slice own; /* id that it says, if it can be one */
    struct wal_entry entry;
    char mark[17];
    bool is_inexact;
    bool is_known; /* the log has it */
};

/* Finds the last entry that the view wrote, as far as the log alone tells. */
enum wal_status wal__adopt_written(struct wal__adopting *adopting,
                                   struct wal_error *error) WAL_MUST_USE;

/* Makes an entry of the line, text and offset of which are set. It holds until
 * `scratch` is taken back. */
enum wal_status wal__adopt_judge(struct wal__adopting *adopting,
                                 struct wal__taking *taking,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
