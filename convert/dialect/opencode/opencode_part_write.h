/*
 * opencode_part_write.h - writes the parts of a message for OpenCode.
 *
 * A block is a part, and each part is a file. A call is written without a
 * result first, and again with its result, whenever that comes: the client
 * knows one part for both.
 *
 * Invariant: the numbers of generated ids increase.
 *
 * Threads: one thread at a time per writer.
 */
#ifndef AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_PART_WRITE_H
#define AGENTWAL_CONVERT_DIALECT_OPENCODE_OPENCODE_PART_WRITE_H

#include "convert/dialect/opencode/opencode_id.h"
#include "convert/model/model_path.h"
#include "convert/model/model_table.h"
#include "convert/model/model_write.h"

/* A call without a result. */
struct wal__opencode_call {
    struct wal__json_span id;
    struct wal__json_span name;
    struct wal__json_span arguments;
    char message[WAL__OPENCODE_ID_SIZE]; /* that it belongs to */
    char part[WAL__OPENCODE_ID_SIZE];    /* empty: not written */
    int64_t time;                        /* of the message */
    /* The part as read, without its state; or empty. */
    struct wal__json_span raw;
};

struct wal__opencode_writer {
    /* The documents are those of another session, as in a fork: no id of them
     * is kept, because the client keeps messages and parts of all sessions by
     * their ids. */
    bool is_copy;
    /* They are this session's: its messages are as the client wrote them. */
    bool is_own;
    char session[WAL__OPENCODE_ID_SIZE];
    char message[WAL__OPENCODE_ID_SIZE]; /* the last one */
    char user[WAL__OPENCODE_ID_SIZE];    /* the last one of a user */
    /* The ids that messages were written under, by hash of the ids that they
     * had: what answers name. */
    struct wal__model_table messages;
    uint64_t last_message; /* numbers of the last ids */
    uint64_t last_part;
    struct wal__opencode_call *calls; /* without a result, in order */
    size_t call_count;
    size_t call_capacity;
    /* The message or part that was written last: what a result that is read
     * out of its place follows. */
    char previous[WAL__OPENCODE_ID_SIZE];
    /* The last part of this message that got a result; or empty. */
    char last_result[WAL__OPENCODE_ID_SIZE];
    int64_t time; /* of the last message */
    struct wal__json_span provider;
    struct wal__json_span model;
};

/* Returns the number of the next id: from its time, and greater than *last,
 * which it updates. */
uint64_t wal__opencode_next_number(uint64_t *last, int64_t ms);

/* Returns a time in milliseconds; that of the last message if it is invalid. */
int64_t wal__opencode_time_ms(const struct wal__opencode_writer *state,
                              struct wal__json_span time);

/* Writes the member "time" with one or two keys; `second` may be NULL. */
void wal__opencode_write_time(struct wal__json_out *out, const char *first,
                              int64_t ms, const char *second, int64_t end);

/* Appends `above` and an id to a path. */
void wal__opencode_path_add(struct wal__model_path *path, const char *above,
                            struct wal__json_span id);

/* Selects the file of an id for the following output. This and the functions
 * below return false if there is no memory or the output failed. */
bool wal__opencode_select_file(struct wal__model_writer *writer,
                               const char *above,
                               const char folder[WAL__OPENCODE_ID_SIZE],
                               struct wal__json_span id);

/* Begins the next message: determines its id, and selects its file. The id is
 * the given one unless it is of another session (`is_copy`), or the client does
 * not sort it after the last message's. */
bool wal__opencode_begin_message(struct wal__model_writer *writer,
                                 struct wal__json_span id, bool is_copy,
                                 struct wal__json_span time);

/* Generates the id of a part of the last message. */
void wal__opencode_make_part_id(struct wal__opencode_writer *state,
                                char id[WAL__OPENCODE_ID_SIZE]);

/* Records that the last message is a user's. */
void wal__opencode_set_user(struct wal__opencode_writer *state);

/* Opens a part of the last message and writes its members up to the type, which
 * may be NULL. An empty id is generated. */
bool wal__opencode_open_part(struct wal__model_writer *writer,
                             char id[WAL__OPENCODE_ID_SIZE], const char *type);
bool wal__opencode_close_part(struct wal__model_writer *writer);

/* Writes a result into the part of its call, which may be in any message; or
 * as a part of the last message if no call waits for it. The order of results
 * survives. */
bool wal__opencode_write_result(struct wal__model_writer *writer,
                                const struct wal__model_item *result);

/* Records a call whose part was written; its spans are copied. */
bool wal__opencode_add_call(struct wal__model_writer *writer,
                            const struct wal__opencode_call *call);

/* Whether a call waits for the result. */
bool wal__opencode_has_call(const struct wal__opencode_writer *state,
                            const struct wal__model_item *result);

/* Writes the part of a block, and records a call for its result. */
bool wal__opencode_write_block(struct wal__model_writer *writer,
                               const struct wal__model_item *item,
                               const struct wal__model_block *block);

#endif
