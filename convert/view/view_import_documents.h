/*
 * view_import_documents.h - imports what another program changed in a view that
 * is made of documents (SPEC.md 10.6).
 *
 * Each message that the view did not write becomes an entry, a line
 * {info, parts} of the view's dialect. A new title becomes the session's.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_DOCUMENTS_H
#define AGENTWAL_CONVERT_VIEW_VIEW_IMPORT_DOCUMENTS_H

#include "convert/view/view_import_line.h"

/* importer->file is the session's document. `append` imports a line and appends
 * what was collected. Sets *is_changed if the state must be saved. */
enum wal_status wal__view_import_documents(
    struct wal__view_importer *importer,
    enum wal_status (*append)(struct wal__view_importer *importer,
                              struct wal__json_span line, uint64_t offset,
                              struct wal_error *error),
    bool *is_changed, struct wal_error *error) WAL_MUST_USE;

#endif
