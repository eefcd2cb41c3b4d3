/*
 * model_write.h - writes items in a dialect.
 *
 * The writer does what all dialects need: it removes features that the dialect cannot carry, merges
 * the parts of an answer if the dialect requires it, maps ids deterministically, and builds paths
 * of session files in the way of their clients. The dialect formats the resulting items.
 *
 * Each loss is counted under its feature: the report of a conversion and the table of permitted
 * losses use these counts. A compaction or a summary that the dialect cannot carry becomes a
 * message with its text. The escape of an unpaired surrogate, which strict clients and the
 * interfaces of models refuse, becomes that of U+FFFD unless the text comes from the same dialect.
 *
 * Invariants: text, roles, tool calls, tool results and their order are kept. The written parent of
 * an item is its nearest written ancestor. A generated name of a file has no '/' and is none of "",
 * "." and "..".
 *
 * Threads: one thread at a time per writer.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_WRITE_H
#define AGENTWAL_CONVERT_MODEL_MODEL_WRITE_H

#include "convert/model/dialect.h"
#include "convert/model/model.h"
#include "convert/model/model_table.h"
#include "format/json/json_out.h"

/*
 * Removes from the item, and in place from its blocks, what is not in `carries`. `target` is the
 * dialect to be written, or NULL; its own lines and blocks are kept. *summary_block becomes the
 * block of a summary that is converted to a message. False: nothing is left to write.
 */
bool wal__model_fit(struct wal__model_item *item, uint64_t carries,
                    const struct wal__dialect *target, struct wal__model_block *summary_block,
                    uint64_t losses[WAL__FEATURE_COUNT]);

/* The owner sets the first four fields and zeroes the others. */
struct wal__model_merge {
    /* While has_item is set, its memory and that of the items must stay valid. */
    struct wal__arena *scratch;
    bool (*emit)(void *ctx, struct wal__model_item *item);
    /* Called when the item `id` became a part of the item `to`. */
    bool (*on_merged)(void *ctx, struct wal__json_span id, struct wal__json_span to);
    void *ctx;
    bool has_item;
    struct wal__model_item item;
    struct wal__json_span last_id; /* of its last part */
    size_t capacity;               /* of item.blocks; 0: not in scratch */
};

/* Adds an item and emits those that are complete. False: a function of the owner returned false, or
 * there is no memory. */
bool wal__model_merge_add(struct wal__model_merge *merge, struct wal__model_item *item);

/* Passes over an item of which nothing is left. *is_part: it is a part of the item that waits,
 * which further parts may follow. False as above. */
bool wal__model_merge_drop(struct wal__model_merge *merge, const struct wal__model_item *item,
                           bool *is_part);

/* Emits the item that waits for further parts. */
bool wal__model_merge_flush(struct wal__model_merge *merge);

/* Receives the written id of each item; a later call for the same item replaces an earlier one. For
 * an item that was merged into another, `written` is the id of that item and `is_part` is set. */
struct wal__model_id_listener {
    void *ctx;
    bool (*on_written)(void *ctx, struct wal__json_span item, struct wal__json_span written,
                       bool is_part);
};

/* The owner sets the first five fields, a listener if it wants one, and zeroes the others. */
struct wal__model_writer {
    const struct wal__dialect *dialect;
    const struct wal__model_session *session;
    const struct wal__model_output *output;
    struct wal__arena *arena;                      /* valid as long as the writer */
    struct wal__arena *scratch;                    /* may be freed while the writer is idle */
    const struct wal__model_id_listener *listener; /* or NULL */
    struct wal__json_span head;                    /* the head passed to wal__model_write_end */
    struct wal__json_out out;                      /* to the output; for the dialect */
    void *state;                                   /* of the dialect, in `arena` */
    uint64_t losses[WAL__FEATURE_COUNT];
    uint64_t items; /* count passed to the dialect */
    uint64_t size;  /* bytes that were output */
    /* number of coming items that a written line already contains */
    uint32_t raw_items_left;
    struct wal__json_span first_id; /* the first written id */
    bool has_main_branch;           /* an item outside side chains was written */
    bool is_foreign;                /* what is being written is not the client's own */
    int64_t time;                   /* of the last message that has one, or the session's */
    size_t tip_size;
    uint8_t tip[1600]; /* written id after which the client would continue */
    struct wal__model_merge merge;
    struct wal__model_table written_ids; /* written id by hash of id */
    struct wal__model_table parts;       /* id of the merged item by hash of id */
    struct wal__model_table tool_names;  /* name by hash of the call's id */
    struct wal__model_set used_ids;      /* hashes of written ids */
};

/* Begins the session. False: no memory, or the output failed. */
bool wal__model_write_begin(struct wal__model_writer *writer);

/* Adds the next item. Memory that it points to must stay valid until the writer is idle. False: no
 * memory, or the output failed. */
bool wal__model_write_item(struct wal__model_writer *writer, const struct wal__model_item *item);

/* Whether no item waits for further parts. */
bool wal__model_write_is_idle(const struct wal__model_writer *writer);

/*
 * Clones a writer, so that the clone can be ended while the original continues. The clone shares
 * the original's tables read-only and allocates everything else in `arena`. False: no memory.
 */
bool wal__model_write_clone(const struct wal__model_writer *writer,
                            struct wal__model_writer *branch, struct wal__arena *arena);

/* Ends the session. `head` is the item after which the client should continue; empty: the client's
 * default. */
bool wal__model_write_end(struct wal__model_writer *writer, struct wal__json_span head);

/* Hashes an id of the session: the result does not depend on other ids. */
void wal__model_hash_id(const struct wal__model_session *session, struct wal__json_span id,
                        uint64_t more, uint64_t hash[2]);

/* The functions below are for dialects. */

/* Generates another id, in `scratch`, for the nth piece of an item. */
bool wal__model_derive_id(struct wal__model_writer *writer, const struct wal__model_item *item,
                          uint64_t piece, struct wal__json_span *id);

/* Writes a hash as a UUID of version 8, with quotes; returns its size. */
size_t wal__model_uuid(const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE]);

/* wal__dialect_write_ops.make_id of such ids. */
size_t wal__model_make_uuid(const struct wal__model_writer *writer,
                            const struct wal__model_item *item, const uint64_t hash[2],
                            char id[WAL__MODEL_ID_SIZE]);

/* Returns the value, or `literal`, which is JSON, if the value is empty. */
struct wal__json_span wal__model_or(struct wal__json_span json, const char *literal);

/*
 * Writes JSON as the template has it, in which ' is a quote and these characters are the next of
 * the values: % JSON; ? JSON that is omitted, with the key before it, if it is empty; $ UTF-8 as a
 * string; @ a time as ISO 8601, the epoch if it is none. A newline ends a line. Commas are written
 * where they are needed, and may be left out; spaces are for the reader. Keys and strings of a
 * template have up to 63 characters, which need no escapes.
 */
#define wal__model_print(out, template, ...)                                             \
    wal__model_print_values(out, template, (const struct wal__json_span[]){__VA_ARGS__}, \
                            sizeof((const struct wal__json_span[]){__VA_ARGS__}) /       \
                                sizeof(struct wal__json_span))
void wal__model_print_values(struct wal__json_out *out, const char *template,
                             const struct wal__json_span *values, size_t count);

/* The same of a template without values. */
void wal__model_put(struct wal__json_out *out, const char *template);

/* Writes a member that is a string with a number at its end. */
void wal__model_write_numbered(struct wal__json_out *out, const char *key, const char *text,
                               uint64_t number);

/* Returns true or false as JSON. */
struct wal__json_span wal__model_bool(bool value);

/* Selects the file of the following output. */
bool wal__model_write_file(struct wal__model_writer *writer, const char *path,
                           enum wal__output_kind kind);

/* Selects the file of lines of a stream. False also without memory. */
bool wal__model_write_stream(struct wal__model_writer *writer, uint32_t stream);

/* Writes an item of kind LINE as it was, but for its id and parentId. False: it is another
 * client's, or cannot have them. */
bool wal__model_write_line(struct wal__model_writer *writer, const struct wal__model_item *item,
                           struct wal__json_span parent);

/* A path under construction, NUL-terminated. */
struct wal__model_path {
    struct wal__arena *arena;
    char *text; /* NULL: no memory */
    size_t size;
    size_t capacity;
};

/* Begins an empty path. */
void wal__model_path_init(struct wal__model_path *path, struct wal__arena *arena);

/* Appends text unchanged. */
void wal__model_path_add(struct wal__model_path *path, const char *text);

/* Appends an id as a file name. Unsafe bytes become '_'; a hash is appended then, so that different
 * ids have different names. */
void wal__model_path_add_id(struct wal__model_path *path, struct wal__json_span id);

/* Appends the folder of a directory: its UTF-16 units, with dashes for all but ASCII letters and
 * digits; a name of more than `most` is truncated and gets a hash. */
void wal__model_path_add_folder(struct wal__model_path *path, struct wal__json_span cwd,
                                size_t most);

/* Appends a time as YYYY-MM-DDThh-mm-ss, and -mmmZ if `has_ms` is set; the epoch if `time` is not a
 * time. */
void wal__model_path_add_time(struct wal__model_path *path, struct wal__json_span time,
                              bool has_ms);

/* Appends the last component of a directory as clients name the folders of projects: its letters
 * and digits in lower case and the `plain` bytes, with a dash for what is between them; `max` bytes
 * at most, and `empty` if there are none. */
void wal__model_path_add_slug(struct wal__model_path *path, struct wal__json_span cwd,
                              const char *plain, size_t max, const char *empty);

/* Returns the path that the client gave the session's file, or NULL if the session did not come
 * from this client. */
const char *wal__model_client_path(const struct wal__model_session *session, uint32_t stream,
                                   const char *dialect);

/* Returns the path of a session file of pi and rollouts: sessions/--DIRECTORY--/TIME_ID.jsonl.
 * DIRECTORY has no leading '/', and dashes for bytes for which `is_plain` returns false. NULL: no
 * memory. */
const char *wal__model_dashed_path(const struct wal__model_session *session,
                                   bool (*is_plain)(uint8_t byte), bool has_ms,
                                   struct wal__arena *arena);

/* Whether the id, with its quotes, is a UUID. */
bool wal__model_is_uuid(struct wal__json_span id);

/* Returns a session's id as a UUID, in the arena; data is NULL if there is no memory. */
struct wal__json_span wal__model_session_uuid(struct wal__json_span id, struct wal__arena *arena);

#endif
