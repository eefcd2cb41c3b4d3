/*
 * document_files.h - replaces the documents of a view (SPEC.md 10.3).
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_FILES_DOCUMENT_FILES_H
#define AGENTWAL_CONVERT_FILES_DOCUMENT_FILES_H

#include "convert/files/view_files.h"

/*
 * Writes the documents whose content was put and differs from the file's; those
 * that are shared with the client are created or get a line. The saved state
 * has all new documents, durably, before the first is written; all names are
 * durable when it returns. WAL_ECHANGED: a document is not the view's; nothing
 * is written.
 */
enum wal_status wal__document_files_write(struct wal__view_files *files,
                                          struct wal_error *error) WAL_MUST_USE;

#endif
