/*
 * dialect.h - what a line of a session file says of itself.
 *
 * A dialect is one agent's way of writing a session as JSON lines. It is told
 * by content, never by name or place. Reading a line takes out of it what the
 * log needs (id, parent, type, time) and what a session is known by (id,
 * directory, title); everything else stays in the line's own bytes.
 *
 * Invariant: spans lie in the line that was read and are JSON strings with
 * their quotes, or empty where the line has no such string. No I/O, no
 * allocation, no state. Outputs are untouched on failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_DIALECT_H
#define AGENTWAL_FORMAT_MODEL_DIALECT_H

#include "format/json/json_scan.h"
#include "format/model/model.h"

struct wal__model_writer;

enum {
    WAL__MODEL_ID_SIZE = 64 /* bytes of an id that is made, with quotes */
};

/* Which entry a line goes under. */
enum wal__line_link {
    WAL__LINK_PREVIOUS, /* it does not say: the line before it */
    WAL__LINK_HEAD,     /* the head of its session */
    WAL__LINK_ROOT,     /* none */
    WAL__LINK_EXPLICIT  /* wal__line_info.parent */
};

/* Whether the head moves to the line. */
enum wal__line_head {
    WAL__HEAD_MOVE,  /* always */
    WAL__HEAD_KEEP,  /* never */
    WAL__HEAD_EXTEND /* when the line went under the head */
};

struct wal__line_info {
    struct wal__json_span id;
    struct wal__json_span parent;
    struct wal__json_span type;
    struct wal__json_span time;
    struct wal__json_span session; /* id of the session the line belongs to */
    struct wal__json_span cwd;
    struct wal__json_span title;
    enum wal__line_link link;
    enum wal__line_head head;
    bool is_in_conversation; /* part of the conversation */
    bool is_sidechain;       /* of a conversation beside the main one */
    bool is_message;         /* has a role, in case it has no type */
    bool is_header;          /* says which session its file is */
    bool has_newer_version;  /* of a version that is not known */
    /* a key of these stands there again; the last counts */
    bool has_duplicate_key;
};

/* Where a file has its headers. */
enum wal__headers {
    WAL__HEADERS_NONE,
    WAL__HEADERS_ONE, /* its first line, and no other */
    WAL__HEADERS_MANY /* its first line, and others behind it */
};

struct wal__dialect {
    const char *name;
    const char *summary; /* of one line, for people */

    enum wal__headers headers;

    /* Whether this valid line can only be of this dialect. `is_first`: no
     * line that is not blank stands before it in its file. */
    bool (*recognise)(const void *data, size_t size, bool is_first);

    /*
     * Reads a line without its newline and byte order mark. A line that is
     * JSON but no object says nothing of itself. Fails when it is not JSON;
     * `error_offset` (may be NULL) is then that of the first error.
     */
    enum wal__json_status (*read)(const void *data, size_t size,
                                  struct wal__line_info *line,
                                  size_t *error_offset);

    /* The rest is null where sessions are kept as lines only. */
    const struct wal__dialect_read_ops *read_ops;
    const struct wal__dialect_write_ops *write_ops;
};

/* From a dialect to the model. Functions answer OK, what is wrong with a text
 * that is not JSON, or NO_SPACE: no memory, or the sink wants no more. */
struct wal__dialect_read_ops {
    /* Gives the items of a session's documents, before its lines; null where
     * it has none. */
    enum wal__json_status (*documents)(
        struct wal__model_reader *reader,
        const struct wal__model_documents *documents);

    /* Gives the items of a line; null where it has none. A line that the
     * model has no place for is given as an item of kind LINE. */
    enum wal__json_status (*line)(struct wal__model_reader *reader,
                                  const struct wal__model_line *line);

    /* The stream of a file of lines, by its path below the session's
     * directory; false for a document. Null: a session is one file. */
    bool (*stream)(const char *path, uint32_t *stream);

    /* Gives what waited for a line that did not come; may be null. */
    enum wal__json_status (*finish)(struct wal__model_reader *reader);

    /* A header without which lines that are written today are read as older
     * ones; null where there is no difference. */
    const char *header;
};

/* From the model to a dialect. Functions answer false when there is no memory
 * or the output failed. */
struct wal__dialect_write_ops {
    /* A set of WAL__CARRIES(...): what a session keeps that is written and
     * read again. Items are given without what is not carried. */
    uint64_t carries;

    /* The client wants an answer of a model whole: items of one group that
     * follow each other are given as one. */
    bool merges_parts;

    /* The header is an entry that others can be under, and has the id that it
     * had in the same dialect. */
    bool header_is_entry;

    /* Where the client looks for the session's main file, as the arena's text;
     * null: no memory. */
    const char *(*path)(const struct wal__model_session *session,
                        uint32_t stream, struct wal__arena *arena);

    /* Whether an id can stay as it is; null: any can. */
    bool (*is_id)(struct wal__json_span id);

    /* Makes an id, with quotes, out of a hash of session and id; answers its
     * size. `item` is null where the id is referred to and was not written.
     * Null where is_id is. */
    size_t (*make_id)(const struct wal__model_writer *writer,
                      const struct wal__model_item *item,
                      const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE]);

    /* Made ids are so short that two can be the same. */
    bool ids_may_collide;
    /* Made ids depend on more than the hash. */
    bool ids_are_stored;

    /* A set of 1 << kind: items that are on no branch in this dialect, of LINE
     * those of other dialects. What goes under one goes under its parent. */
    uint32_t off_branch_kinds;

    /* Writes what stands before all items, an item, and what stands behind.
     * Ids in the item are those to be written. */
    bool (*begin)(struct wal__model_writer *writer);
    bool (*item)(struct wal__model_writer *writer,
                 const struct wal__model_item *item);
    bool (*end)(struct wal__model_writer *writer);

    /* Gives a branch of a writer, which has the writer's state, one of its own.
     * False: no memory. Null where nothing that ends a session changes it. */
    bool (*clone)(struct wal__model_writer *writer);

    /* Whether a session that was read from this dialect is written as its
     * lines stand, when each of them says the ids that the log has and the
     * head is where they put it; may be null: never. */
    bool (*can_copy_verbatim)(const struct wal__model_session *session,
                              struct wal__arena *arena);

    /* The client goes on behind the last item that is under the one where it
     * did before; else behind the last one. */
    bool tip_advances_to_child;

    /* Makes the client go on behind another item than it would; null where
     * there are no branches. */
    bool (*head)(struct wal__model_writer *writer, struct wal__json_span id);
};

extern const struct wal__dialect wal__dialect_codex;
extern const struct wal__dialect wal__dialect_rollouts;
extern const struct wal__dialect wal__dialect_pi;
extern const struct wal__dialect wal__dialect_claude;
extern const struct wal__dialect wal__dialect_entries;
extern const struct wal__dialect wal__dialect_sdk;
extern const struct wal__dialect wal__dialect_spec11;
extern const struct wal__dialect wal__dialect_opencode;
extern const struct wal__dialect wal__dialect_lines;

/* Their ways into the model and out of it. */
extern const struct wal__dialect_read_ops wal__codex_read_ops;
extern const struct wal__dialect_write_ops wal__codex_write_ops;
extern const struct wal__dialect_read_ops wal__rollouts_read_ops;
extern const struct wal__dialect_write_ops wal__rollouts_write_ops;
extern const struct wal__dialect_read_ops wal__pi_read_ops;
extern const struct wal__dialect_write_ops wal__pi_write_ops;
extern const struct wal__dialect_read_ops wal__claude_read_ops;
extern const struct wal__dialect_write_ops wal__claude_write_ops;
extern const struct wal__dialect_read_ops wal__entries_read_ops;
extern const struct wal__dialect_write_ops wal__entries_write_ops;
extern const struct wal__dialect_read_ops wal__sdk_read_ops;
extern const struct wal__dialect_write_ops wal__sdk_write_ops;
extern const struct wal__dialect_read_ops wal__spec11_read_ops;
extern const struct wal__dialect_write_ops wal__spec11_write_ops;
extern const struct wal__dialect_read_ops wal__opencode_read_ops;
extern const struct wal__dialect_write_ops wal__opencode_write_ops;
extern const struct wal__dialect_read_ops wal__lines_read_ops;

/* The dialects in the order in which they are tried, then NULL. The last one,
 * `lines`, fits anything. */
const struct wal__dialect *wal__dialect_at(size_t index);

/* The dialect of that name, or NULL. */
const struct wal__dialect *wal__dialect_find(const char *name);

/* The dialect that alone writes such a line, or NULL when it tells nothing. */
const struct wal__dialect *wal__dialect_recognise(const void *data, size_t size,
                                                  bool is_first);

/* The line without the byte order mark that some editors put before it. */
struct wal__json_span wal__line_text(const void *data, size_t size);

/* For dialects whose sessions are trees: a line of no client's own, as that of
 * a session's messages or transcript. */
enum wal__json_status wal__line_read_generic(const void *data, size_t size,
                                             struct wal__line_info *line,
                                             size_t *error_offset);
bool wal__line_recognise_none(const void *data, size_t size, bool is_first);

/* Whether nothing but white space is in it. */
bool wal__line_is_blank(const void *data, size_t size);

/* For dialects: the member's value when it is a string, else an empty span. */
struct wal__json_span wal__line_string(const struct wal__json_member *member);

/* For dialects: whether the member is that string. */
bool wal__line_string_is(const struct wal__json_member *member,
                         const char *text);

/* For dialects: members as wal__json_members gives them. Where the text is
 * JSON but no object, all of them are absent. */
enum wal__json_status wal__line_members(const void *data, size_t size,
                                        struct wal__json_member *wanted,
                                        size_t count,
                                        size_t *error_offset) WAL__JSON_CHECKED;

/* For dialects: whether the key of one of them stands there more than once. */
bool wal__line_has_duplicate_key(const struct wal__json_member *members,
                                 size_t count);

/* For dialects: whether the member is a number above `known`, of a version. */
bool wal__line_version_above(const struct wal__json_member *member,
                             int64_t known);

#endif
