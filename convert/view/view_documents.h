/*
 * view_documents.h - reads what another program added to a view that is made of
 * documents (SPEC.md 10.6).
 *
 * A message is a document storage/message/SESSION/ID.json, and its parts are
 * the documents in storage/part/ID. It is read as one line, {info, parts}.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_DOCUMENTS_H
#define AGENTWAL_CONVERT_VIEW_VIEW_DOCUMENTS_H

#include "convert/files/view_files.h"
#include "engine/base/heap.h"

/* A document on disk. */
struct wal__view_document {
    const char *path; /* below the root */
    struct wal__json_span value;
    struct wal__file_stamp stamp;
};

/* A message that the view did not write. */
struct wal__view_message {
    struct wal__json_span line; /* {info, parts} */
    const struct wal__view_document *documents;
    size_t count;
    bool is_complete; /* the client is done with it */
    int64_t created_ms;
};

/* The owner sets the first three fields and zeroes the others. */
struct wal__view_documents {
    const struct wal__view_files *files;
    struct wal__heap_arena *memory; /* lives as long as this */
    const char *session;            /* path of the session's document */
    char **names;                   /* of new messages, in order */
    size_t count;
    size_t capacity;
    size_t next;
};

/* Lists the messages that the view's state does not have. */
enum wal_status wal__view_documents_list(struct wal__view_documents *documents,
                                         struct wal_error *error) WAL_MUST_USE;

/* Reads the next message. WAL_END: there is none. */
enum wal_status wal__view_documents_next(struct wal__view_documents *documents,
                                         struct wal__view_message *message,
                                         struct wal_error *error) WAL_MUST_USE;

/* Reads a document below the root. WAL_ENOTFOUND: there is none. */
enum wal_status wal__view_document_read(struct wal__view_documents *documents,
                                        const char *path,
                                        struct wal__view_document *document,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
