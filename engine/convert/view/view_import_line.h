/*
 * view_import_line.h - makes an entry of a line that another program wrote
 * behind a view.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_IMPORT_LINE_H
#define AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_IMPORT_LINE_H

#include "engine/convert/view/view_lock.h"
#include "engine/convert/view/written_ids.h"

#define WAL__IMPORT_BATCH_MAX 256 /* of a batch */

/* An import of a view. */
struct wal__view_importer {
    struct wal_view *view;
    struct wal__view_lock view_lock;
    struct wal__session_snapshot snapshot;
    struct wal_view_import_result report;
    struct wal__view_file *file;  /* the view's main one */
    struct wal__file_stamp stamp; /* of the file as it is read */
    /* of what was taken, and what is before it */
    struct wal__fingerprint fingerprint;
    struct wal__buf buf;
    int fd;
    struct wal__written_ids written_ids;
    bool has_loaded_ids;
    struct wal_entry_cursor *iter;       /* for looking entries up */
    struct wal__heap_arena import_arena; /* as long as this is */
    struct wal__heap_arena scratch;      /* as long as a batch is */
    struct wal__model_table
        imported_ids;              /* id in the log, by hash of a line's own */
    struct wal_slice last_written; /* the last entry that the view has */
    struct wal_slice previous_id;  /* the line before; empty: none yet */
    struct wal_slice time;
    struct wal_entry entries[WAL__IMPORT_BATCH_MAX];
    uint32_t count;
    size_t size;
};

/* A line, and what is made of it. */
struct wal__imported_line {
    struct wal__json_span text;
    struct wal__line_info line;
    uint64_t offset;
    struct wal_slice line_id; /* id that it says, if it can be one */
    struct wal_entry entry;
    char position_hash[17];
    bool is_inexact;
    bool is_known; /* the log has it */
};

/* Finds the last entry that the view wrote, as far as the log alone tells. */
enum wal_status
wal__view_import_find_last(struct wal__view_importer *importer,
                           struct wal_error *error) WAL_MUST_USE;

/* Makes an entry of the line, text and offset of which are set. It holds until
 * `scratch` is taken back. */
enum wal_status wal__view_import_line(struct wal__view_importer *importer,
                                      struct wal__imported_line *imported,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
