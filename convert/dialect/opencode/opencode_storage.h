/*
 * opencode_storage.h - the files of a session in OpenCode's storage.
 *
 * A message is a file, and each of its parts is a file. A part names its
 * message or is in the folder of that name. A session that the client exported
 * is one file.
 *
 * Invariant: messages, and the parts of each message, are in the order of their
 * files.
 *
 * Threads: one thread at a time per storage.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_STORAGE_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_STORAGE_H

#include "convert/model/dialect.h"
#include "convert/model/model_table.h"

#define WAL__OPENCODE_NO_PART SIZE_MAX

struct wal__opencode_document {
    struct wal__json_span value;
    uint64_t owner; /* of a part: hash of its message's id */
    size_t next;    /* part of the same message, or WAL__OPENCODE_NO_PART */
    struct wal__json_span name; /* of its file, without .json */
};

struct wal__opencode_documents {
    struct wal__opencode_document *items;
    size_t count;
    size_t capacity;
};

/* A result that is read before the item that it follows. */
struct wal__opencode_deferred {
    struct wal__model_item result;
    struct wal__opencode_deferred *next;
    bool is_emitted;
};

struct wal__opencode_storage {
    struct wal__model_reader *reader;
    struct wal__opencode_documents messages;
    struct wal__opencode_documents parts;
    struct wal__json_span info;          /* the session's document, or empty */
    struct wal__model_table part_lists;  /* struct part_list by hash of id */
    struct wal__model_table emitted_ids; /* ids of items, by hash */
    struct wal__model_table deferred;    /* by hash of the id they follow */
    struct wal__opencode_deferred *deferred_list; /* all of them */
    struct wal__model_item *batch; /* items of the present message */
    size_t batch_count;
    size_t batch_capacity;
    struct wal__json_span raw_prefix; /* the line of a message without items */
    struct wal__json_span prefix_id;  /* the id of that message */
    bool has_lost_mark;               /* a message without items has no line */
    struct wal__json_span line_id;    /* of the last item of a line; or empty */
    struct wal__json_span tip;        /* id of the previous item */
    struct wal__json_span first_kept; /* of the next compaction */
    bool has_failed;
};

/* Reads the documents of a tree. False: no memory. */
bool wal__opencode_storage_read(struct wal__opencode_storage *storage,
                                struct wal__model_reader *reader,
                                const struct wal__model_documents *tree);

/* Reads one message, {info, parts}. False: no memory. */
bool wal__opencode_storage_read_message(struct wal__opencode_storage *storage,
                                        struct wal__model_reader *reader,
                                        struct wal__json_span message);

/* Returns the id in the member, or the document's file name as an id. */
struct wal__json_span
wal__opencode_storage_id(const struct wal__opencode_storage *storage,
                         const struct wal__opencode_document *document,
                         struct wal__json_span id);

/* Returns the first part of the message with that id, or
 * WAL__OPENCODE_NO_PART. */
size_t
wal__opencode_storage_first_part(const struct wal__opencode_storage *storage,
                                 const struct wal__opencode_document *message,
                                 struct wal__json_span id);

#endif
