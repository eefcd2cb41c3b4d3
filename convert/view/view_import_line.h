/*
 * view_import_line.h - makes an entry from a line that another program appended
 * to a view (SPEC.md 10.6).
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_LINE_H
#define AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_LINE_H

#include "convert/view/view_lock.h"
#include "convert/view/written_ids.h"

#define WAL__IMPORT_BATCH_MAX 256 /* entries per batch */

/* An import in progress. */
struct wal__view_importer {
    struct wal_view *view;
    struct wal__view_lock view_lock;
    struct wal__session_snapshot snapshot;
    struct wal_view_import_result report;
    struct wal__view_file *file;  /* the view's main file */
    struct wal__file_stamp stamp; /* stamp of the opened file */
    /* of the file up to the end of the imported lines */
    struct wal__fingerprint fingerprint;
    struct wal__buf buf;
    int fd;
    struct wal__written_ids written_ids;
    bool has_loaded_ids;
    struct wal_entry_cursor *cursor;      /* for lookups by id */
    struct wal__heap_arena import_arena;  /* lives as long as the import */
    struct wal__heap_arena scratch;       /* lives as long as a batch */
    struct wal__model_table imported_ids; /* by hash of the line's id */
    struct wal_slice last_written;        /* id of the last entry in the view */
    struct wal_slice previous_id; /* id of the previous line; empty: none yet */
    struct wal_slice time;
    /* The log's head is where the file showed it, or moved with the file's
     * lines: it follows them as the client's does. */
    bool is_following;
    char head[WAL_ID_SIZE]; /* then: the head after the lines so far */
    struct wal_entry entries[WAL__IMPORT_BATCH_MAX];
    uint32_t count;
    size_t size;
};

/* A line and the entry made from it. */
struct wal__imported_line {
    struct wal__json_span text;
    struct wal__line_info line;
    uint64_t offset;
    struct wal_slice line_id; /* its id, if valid in the log */
    struct wal_entry entry;
    struct wal__json_span after; /* item of a document that it goes on after */
    char position_hash[17];
    bool is_inexact;
    bool is_known; /* the log has the line already */
};

/* Determines whether the head follows the lines. */
void wal__view_import_find_head(struct wal__view_importer *importer);

/* Determines the last entry that the view wrote from the log alone. */
enum wal_status
wal__view_import_find_last(struct wal__view_importer *importer,
                           struct wal_error *error) WAL_MUST_USE;

/* Makes an entry from the line; text and offset are set. The entry is valid
 * until `scratch` is reset. */
enum wal_status wal__view_import_line(struct wal__view_importer *importer,
                                      struct wal__imported_line *imported,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
