/*
 * model_write.h - items go out in a dialect.
 *
 * What every dialect needs is done here: an item is fitted to what the dialect
 * carries, parts of one answer are merged where it wants that, and ids are
 * mapped, the same way every time. The dialect only writes what it is given.
 *
 * Invariant: a parent that is written is that of the nearest item above that
 * was written.
 *
 * Threads: one thread at a time per writer.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_WRITE_H
#define AGENTWAL_FORMAT_MODEL_MODEL_WRITE_H

#include "format/json/json_out.h"
#include "format/model/dialect.h"
#include "format/model/model_merge.h"
#include "format/model/model_table.h"

/* Is told ids that go out, and of which item each is; what was told last
 * holds. An item that became a part of another one is told with that one's id,
 * and `is_part`. */
struct wal__model_id_listener {
    void *ctx;
    bool (*on_written)(void *ctx, struct wal__json_span item,
                       struct wal__json_span written, bool is_part);
};

/* The owner sets the first five fields, a listener if it wants one, and zeroes
 * the others. */
struct wal__model_writer {
    const struct wal__dialect *dialect;
    const struct wal__model_session *session;
    const struct wal__model_output *output;
    struct wal__arena *keep;    /* lives as long as the writer */
    struct wal__arena *scratch; /* may be taken back while the writer is idle */
    const struct wal__model_id_listener *listener; /* or null */
    struct wal__json_span head; /* the item that a row behind all is about */
    struct wal__json_out out;   /* to the output; for the dialect */
    void *state;                /* the dialect's own, in `keep` */
    uint64_t losses[WAL__FEATURE_COUNT];
    uint64_t items; /* given to the dialect */
    /* items to come that are in a line that went out */
    uint32_t raw_items_left;
    struct wal__json_span first_id; /* id that was written first */
    bool has_main_branch; /* something that is no side chain was written */
    int64_t time; /* of the last message that has one, or the session's */
    size_t tip_size;
    uint8_t tip[1600]; /* written id that the client would go on behind */
    struct wal__model_merge merge;
    struct wal__model_table written_ids; /* written id by hash of id */
    struct wal__model_table parts; /* id of the item that one is part of */
    /* name of a tool by hash of its call's id */
    struct wal__model_table tool_names;
    struct wal__model_set used_ids; /* hashes of written ids */
};

bool wal__model_write_begin(struct wal__model_writer *writer);

/* Takes the next item; what it points to must hold until the writer is idle.
 * False: no memory, or the output failed. */
bool wal__model_write_item(struct wal__model_writer *writer,
                           const struct wal__model_item *item);

/* Whether nothing that was taken waits for more. */
bool wal__model_write_is_idle(const struct wal__model_writer *writer);

/*
 * Makes a writer that can be ended while this one goes on: it knows all that
 * this one does, and changes none of it. It lives in the arena, which it may
 * use for anything. False: no memory.
 */
bool wal__model_write_clone(const struct wal__model_writer *writer,
                            struct wal__model_writer *branch,
                            struct wal__arena *arena);

/* Ends the session. `head` is the item that the client is to go on behind, or
 * empty: wherever it would. */
bool wal__model_write_end(struct wal__model_writer *writer,
                          struct wal__json_span head);

/* For dialects: the id that an id is written as; empty where nothing above it
 * was written. False: no memory. */
bool wal__model_written_id(struct wal__model_writer *writer,
                           struct wal__json_span id,
                           struct wal__json_span *written);

/* For dialects: another id, in `scratch`, for the nth piece of an item. */
bool wal__model_derive_id(struct wal__model_writer *writer,
                          const struct wal__model_item *item, uint64_t piece,
                          struct wal__json_span *id);

/* For dialects: a hash as a UUID of version 8, with quotes; its size. */
size_t wal__model_uuid(const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE]);

/* For dialects: the value, or what stands for none: JSON. */
struct wal__json_span wal__model_or(struct wal__json_span json,
                                    const char *literal);

/* For dialects: a member with a time as ISO 8601; the epoch where it is no
 * time. */
void wal__model_write_time(struct wal__json_out *out, const char *key,
                           struct wal__json_span time);

/* For dialects: what goes out from here on goes to that file. */
bool wal__model_write_file(struct wal__model_writer *writer, const char *path,
                           bool is_document);

#endif
