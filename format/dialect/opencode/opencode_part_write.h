/*
 * opencode_part_write.h - parts of a message, as OpenCode's storage has them.
 *
 * A block is a part, and each part is a file. A call is written without a
 * result at first, and once more when its result comes.
 *
 * Invariant: numbers of made ids grow from one to the next.
 *
 * Threads: one thread at a time per writer.
 */
#ifndef AGENTWAL_FORMAT_DIALECT_OPENCODE_OPENCODE_PART_WRITE_H
#define AGENTWAL_FORMAT_DIALECT_OPENCODE_OPENCODE_PART_WRITE_H

#include "format/dialect/opencode/opencode_id.h"
#include "format/model/model_path.h"
#include "format/model/model_write.h"

struct wal__opencode_call {
    struct wal__json_span id;
    struct wal__json_span name;
    struct wal__json_span arguments;
    char part[WAL__OPENCODE_ID_SIZE];
};

struct wal__opencode_writer {
    char session[WAL__OPENCODE_ID_SIZE];
    char message[WAL__OPENCODE_ID_SIZE]; /* the last one */
    char user[WAL__OPENCODE_ID_SIZE];    /* the last one of a user */
    uint64_t last_message;               /* numbers of the last ids */
    uint64_t last_part;
    struct wal__opencode_call *calls; /* of the last message */
    size_t call_count;
    size_t call_capacity;
    size_t next_call;
    int64_t time; /* of the last message */
    struct wal__json_span provider;
    struct wal__json_span model;
};

/* The number of the next id: of its time, and behind *last, the one before. */
uint64_t wal__opencode_next_number(uint64_t *last, int64_t ms);

/* A time in milliseconds; the last message's where it is none. */
int64_t wal__opencode_time_ms(const struct wal__opencode_writer *state,
                              struct wal__json_span time);

/* The member "time"; `second` may be null. */
void wal__opencode_write_time(struct wal__json_out *out, const char *first,
                              int64_t ms, const char *second, int64_t end);

void wal__opencode_path_add(struct wal__model_path *path, const char *above,
                            struct wal__json_span id);

/* What is written next goes into the file of that id. All below answer false
 * without memory or when the output fails. */
bool wal__opencode_select_file(struct wal__model_writer *writer,
                               const char *above,
                               const char folder[WAL__OPENCODE_ID_SIZE],
                               struct wal__json_span id);

/* Opens a part up to its type, which may be null; an empty id is made. */
bool wal__opencode_open_part(struct wal__model_writer *writer,
                             char id[WAL__OPENCODE_ID_SIZE], const char *type);
bool wal__opencode_close_part(struct wal__model_writer *writer);

/* The part of a call, and of its result if that is not null; `is_orphan` marks
 * a result without a call. */
bool wal__opencode_write_tool(struct wal__model_writer *writer,
                              struct wal__opencode_call *call,
                              const struct wal__model_item *result,
                              bool is_orphan);

/* The part of a block; a call waits for its result from then on. */
bool wal__opencode_write_block(struct wal__model_writer *writer,
                               const struct wal__model_item *item,
                               const struct wal__model_block *block);

#endif
