/*
 * view_import.h - imports what another program added to a view into the
 * session: lines of its main file, or documents (SPEC.md 10.6).
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_H
#define AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_H

#include "convert/view/view.h"

/* --- ids in the file ----------------------------------------------------- */

/* Zeroed: no id is known. */
struct wal__written_ids {
    struct wal__heap_arena memory;
    struct wal__model_table items; /* item, by hash of its id in the file */
    struct wal__model_table provisional; /* the same after the stable part */
    struct wal__model_table parts;       /* last part, by hash of the item */
    struct wal__json_span last;          /* the last item in the file */
    bool is_known;
};

/* --- one line ------------------------------------------------------------ */

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

/* --- the import ---------------------------------------------------------- */

enum wal_status wal__view_import(struct wal_view *view,
                                 struct wal_view_import_result *report,
                                 struct wal_error *error) WAL_MUST_USE;

/* importer->file is the session's document. `append` imports a line and appends
 * what was collected. Sets *is_changed if the state must be saved. */
enum wal_status wal__view_import_documents(
    struct wal__view_importer *importer,
    enum wal_status (*append)(struct wal__view_importer *importer,
                              struct wal__json_span line, uint64_t offset,
                              struct wal_error *error),
    bool *is_changed, struct wal_error *error) WAL_MUST_USE;

#endif
