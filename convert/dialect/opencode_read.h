/*
 * opencode_read.h - what the readers of OpenCode's messages share: opencode_read.c reads those of
 * version 1, opencode_second.c those of version 2, and their order. Both collect items with
 * opencode_items.c.
 *
 * Functions without a result report failures in the storage's has_failed.
 *
 * Threads: one thread at a time per storage.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_READ_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_READ_H

#include "convert/model/model.h"
#include "convert/model/model_member.h"
#include "convert/model/model_table.h"

#define OPENCODE_NO_PART SIZE_MAX

struct opencode_document {
    struct wal__json_span value;
    uint64_t owner;             /* of a part: hash of its message's id */
    size_t next;                /* part of the same message, or OPENCODE_NO_PART */
    struct wal__json_span name; /* of its file, without .json */
    bool is_version_2;
    int64_t created;
    int64_t number; /* seq or position; or -1 */
};

struct opencode_documents {
    struct opencode_document *items;
    size_t count;
    size_t capacity;
};

/* A result that is read before the item that it follows. */
struct opencode_deferred {
    struct wal__model_item result;
    struct opencode_deferred *next;
    bool is_emitted;
};

struct opencode_storage {
    struct wal__model_reader *reader;
    struct opencode_documents messages;
    struct opencode_documents parts;
    struct wal__json_span info;              /* the session's document, or empty */
    struct wal__model_table part_lists;      /* struct part_list by hash of id */
    struct wal__model_table emitted_ids;     /* ids of items, by hash */
    struct wal__model_table deferred;        /* by hash of the id they follow */
    struct opencode_deferred *deferred_list; /* all of them */
    struct wal__model_item *batch;           /* items of the present message */
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

/* A message being read. */
struct opencode_message {
    struct opencode_storage *storage;
    struct wal__model_blocks blocks;
    struct wal__model_blocks synthetic; /* those of a user's message that no person wrote */
    struct wal__model_item item;
    struct wal__json_span part;           /* id of the present part */
    struct wal__json_span synthetic_part; /* of the first of these blocks */
    struct wal__model_item *results;      /* to emit at the end of the step */
    size_t result_count;
    size_t result_capacity;
    bool is_of_person;               /* a part is not synthetic text */
    bool is_emitted;                 /* an item of the message was emitted */
    bool has_compaction_part;        /* the mark of a compaction */
    struct wal__json_span last_part; /* id of the part before, if it is raw */
    bool is_raw;                     /* the client's form of it can be written unchanged */
};

struct opencode_part {
    struct wal__json_span id;
    struct wal__json_span type;
    struct wal__json_span text;
    struct wal__json_span signature;
    struct wal__json_span redacted;
    struct wal__json_span call;
    struct wal__json_span tool;
    struct wal__json_span mime;
    struct wal__json_span url;
    struct wal__json_span first_kept;
    struct wal__json_span metadata;
    struct wal__json_span state; /* of a tool: the following */
    struct wal__json_span status;
    struct wal__json_span input;
    struct wal__json_token output;
    struct wal__json_token error;
    struct wal__json_token content;
    struct wal__json_span end;
    struct wal__json_span attachments;
    struct wal__json_span after; /* id of the item that the result follows */
    bool is_synthetic;
    bool is_orphan;
};

#define PART_AT(field) offsetof(struct opencode_part, field)

/* --- items ------------------------------------------------------------------ */

extern const struct wal__word wal__opencode_stops[];
extern const struct wal__field wal__opencode_cache_fields[]; /* of struct wal__model_usage */

/* Returns the id in the member, or the document's file name as an id. */
struct wal__json_span wal__opencode_storage_id(const struct opencode_storage *storage,
                                               const struct opencode_document *document,
                                               struct wal__json_span id);

/* Returns the id with a number appended; data is NULL if there is no memory. */
struct wal__json_span wal__opencode_append_number(struct wal__arena *arena,
                                                  struct wal__json_span id, size_t n);

/* Add a block, and a result, to the message. NULL: no memory. */
struct wal__model_block *wal__opencode_add_block(struct opencode_message *message,
                                                 enum wal__model_block_kind kind);
struct wal__model_item *wal__opencode_add_result(struct opencode_message *message);

/* Notes that no person wrote the last block of the user's message. */
void wal__opencode_add_synthetic(struct opencode_message *message,
                                 const struct wal__model_block *block);
void wal__opencode_read_reasoning(struct opencode_message *message, struct opencode_part *part);

/* Adds an item to those of the present message. */
void wal__opencode_emit(struct opencode_storage *storage, const struct wal__model_item *item);

/* Emits the content and the results read so far: a step, or the rest. */
void wal__opencode_flush(struct opencode_message *message, bool is_end);

/* Emits a compaction whose summary is the texts of the message. */
void wal__opencode_emit_summary(struct opencode_message *message);

/* Emits the items of the present message, whose id is given. `raw` is its line, or empty if that
 * cannot be written unchanged. */
void wal__opencode_emit_batch(struct opencode_storage *storage, struct wal__json_span id,
                              struct wal__json_span raw);

/* Keeps a result until the item that it follows was emitted. Returns false if another one follows
 * the same item. */
bool wal__opencode_defer(struct opencode_storage *storage, struct wal__json_span after,
                         const struct wal__model_item *result);

/* Emits the results that name an item which no message has. */
void wal__opencode_emit_deferred(struct opencode_storage *storage);

/* Emits the line of a message without items that waits for the next message, as an item that only
 * this dialect writes. */
void wal__opencode_emit_prefix(struct opencode_storage *storage);

/* --- of version 2 ---------------------------------------------------------- */

/* Puts the messages into the order in which the client shows them. False: no memory. */
bool wal__opencode_sort(struct opencode_storage *storage);

void wal__opencode_read_second(struct opencode_storage *storage,
                               const struct opencode_document *document);

#endif
