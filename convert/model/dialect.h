/*
 * dialect.h - the interface of dialects: recognising, reading and writing the session files of one
 * client.
 *
 * A dialect is recognised by the content of a line, never by a file's name or place. Reading a line
 * extracts what the log needs (id, parent, type, time) and what identifies a session (id,
 * directory, title); everything else stays in the line's bytes.
 *
 * Invariant: spans of struct wal__line_info are inside the line. They are JSON strings with their
 * quotes, or empty if the line has no such string. Reading a line does no I/O, allocates nothing
 * and keeps no state. Outputs are untouched on failure.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_DIALECT_H
#define AGENTWAL_CONVERT_MODEL_DIALECT_H

#include "convert/model/model.h"
#include "format/json/json_scan.h"

struct wal__field;
struct wal__json_out;
struct wal__model_writer;

enum {
    WAL__MODEL_ID_SIZE = 64 /* bytes of a generated id, with quotes */
};

/* The parent of a line. */
enum wal__line_link {
    WAL__LINK_PREVIOUS, /* unspecified: the previous line */
    WAL__LINK_HEAD,     /* the head of its session */
    WAL__LINK_ROOT,     /* none */
    WAL__LINK_EXPLICIT, /* wal__line_info.parent */
    /* The parent of the entry that wal__line_info.parent names, which the line replaces or goes
     * back to before; none if there is no such entry. A line that names itself and is the first
     * with its id has the previous line. */
    WAL__LINK_BEFORE,
    WAL__LINK_MAIN,                /* the last line before it that moves the head */
    WAL__LINK_EXPLICIT_OR_PREVIOUS /* that if it is an earlier line; else the previous line */
};

/* What a line is in the turns of a conversation, of a dialect that links in turns. */
enum wal__line_step {
    WAL__STEP_OTHER,  /* no step: metadata, a note */
    WAL__STEP_PROMPT, /* begins a turn */
    WAL__STEP_ANSWER, /* a part of the answer wal__line_info.answer */
    WAL__STEP_RESULT  /* of a call */
};

/* Whether the head moves to the line. */
enum wal__line_head {
    WAL__HEAD_MOVE,  /* always */
    WAL__HEAD_KEEP,  /* never */
    WAL__HEAD_EXTEND /* if the head is its parent */
};

struct wal__line_info {
    struct wal__json_span id;
    struct wal__json_span parent;
    struct wal__json_span type;
    struct wal__json_span time;
    struct wal__json_span session; /* id of the session the line belongs to */
    struct wal__json_span cwd;
    struct wal__json_span title;
    int64_t time_ms; /* Unix time of a line without `time`; 0: unknown */
    /* Id, or path of the file, of the session that this one was forked from, or that started it. */
    struct wal__json_span starter;
    /* Id, in its name, of the file that this one goes on from: its lines, and those that it goes on
     * from itself, with ordinals below base_end come before. */
    struct wal__json_span base;
    struct wal__json_span base_end; /* a number */
    struct wal__json_span ordinal;  /* of the line, among all of these; a number */
    struct wal__json_span answer;
    enum wal__line_step step;
    enum wal__line_link link;
    enum wal__line_head head;
    bool is_in_conversation; /* part of the conversation */
    bool is_sidechain;       /* part of a side chain, not of the main one */
    bool is_subagent;        /* the session does a part of the work of its starter */
    bool is_message;         /* has a role, in case it has no type */
    bool is_header;          /* identifies the session of its file */
    bool is_preamble;        /* may precede the header */
    bool has_newer_version;  /* of an unknown, newer version */
    bool has_duplicate_key;  /* of a key that is read; the last one counts */
    bool has_inner_cwd;      /* cwd is a string of JSON that is itself in a string: its characters,
                              * with the escapes of both */
};

/* Positions of headers in a file. */
enum wal__headers {
    WAL__HEADERS_NONE,
    WAL__HEADERS_ONE, /* the first line only */
    WAL__HEADERS_MANY /* the first line, and later ones */
};

struct wal__dialect {
    const char *name;
    const char *summary; /* one line, for help texts */

    enum wal__headers headers;

    /* The client knows a session by the name of its file: where that is a UUID, it is the session's
     * id, and the id that the lines state first is that of the session it was resumed from. */
    bool has_id_in_name;

    /* Members, up to one without a key, that the client changes in lines when it rewrites a file in
     * a newer form: a line that differs in nothing else is the same. The first has the number of
     * the form, in the first line; of a session that is one object its size is the form. NULL: it
     * rewrites none. */
    const struct wal__json_member *rewritten;

    /*
     * The parts of an answer, the results of its calls and notes are written as siblings as well as
     * in a row, so the path from the tip to the root misses some. A line whose parent they follow
     * goes on after the last of them, in the order of the file.
     */
    bool links_in_turns;

    /* Members, up to one without a key, that may differ in a line that the client wrote again.
     * NULL: it writes none again. */
    const struct wal__json_member *replay_members;

    /* What is read of a line: members that are fields of a struct of this size, which begins with a
     * struct wal__line_info. */
    const struct wal__field *line_fields;
    size_t line_size;

    /* Whether such a line can only be of this dialect. `is_first`: only blank lines precede it in
     * its file. NULL: no line is. */
    bool (*recognise)(const void *line, bool is_first);

    /* Completes the info of such a line, which is part of the conversation, moves the head, and
     * whose parent is the previous line. NULL: it is complete. */
    void (*judge)(void *line);

    /* NULL if the dialect's sessions cannot be converted. */
    const struct wal__dialect_read_ops *read_ops;
    const struct wal__dialect_write_ops *write_ops;
};

enum wal__progress {
    WAL__PROGRESS_NONE, /* it is being written */
    WAL__PROGRESS_TEXT, /* its parts may be; not when another message is after it */
    WAL__PROGRESS_DONE
};

/* Conversion from a dialect to the model. Functions return OK, the error of a text that is not
 * JSON, or NO_SPACE: no memory, or the sink returned false. */
struct wal__dialect_read_ops {
    /* Emits the items of a session's documents, before its lines. NULL: the dialect has no
     * documents. */
    enum wal__json_status (*documents)(struct wal__model_reader *reader,
                                       const struct wal__model_documents *documents);

    /* Emits the items of a line. A line that the model cannot represent is an item of kind LINE.
     * NULL: the dialect has no lines. */
    enum wal__json_status (*line)(struct wal__model_reader *reader,
                                  const struct wal__model_line *line);

    /* Determines the stream of a file of lines by its path below the session's directory; false for
     * a document. NULL: a session is one file. */
    bool (*stream)(const char *path, uint32_t *stream);

    /* Emits items that wait for a further line. May be NULL. */
    enum wal__json_status (*finish)(struct wal__model_reader *reader);

    /* Emits the items of lines that are held back only to see the next line: an item that does not
     * come from this reader follows. May be NULL. */
    enum wal__json_status (*release)(struct wal__model_reader *reader);

    /* Returns how far the client is with a message, a document, and sets when it was created. NULL,
     * as the following: the dialect has no documents of messages. */
    enum wal__progress (*progress)(struct wal__json_span message, int64_t *created_ms);

    /* Joins a message, the first document, and its parts to a line. Its data is NULL if there is no
     * memory. */
    struct wal__json_span (*join)(struct wal__arena *arena, const struct wal__json_span *documents,
                                  size_t count);

    /* A header without which current lines would be read as an older version. NULL: the version
     * does not matter. */
    const char *header;
};

/* Conversion from the model to a dialect. Functions return false if there is no memory or the
 * output failed. */
struct wal__dialect_write_ops {
    /* A set of WAL__CARRIES(...): the features that survive writing and reading again. Items are
     * passed without the others. */
    uint64_t carries;

    /* The client expects a model's answer in one message: consecutive items of one answer are
     * passed merged. */
    bool merges_parts;

    /* The session that started this one is linked: the files name it, or are next to its files.
     * Otherwise the link is a loss. */
    bool links_starter;

    /* A file of a fork may go on from a line of another one (struct wal__model_base). */
    bool writes_bases;

    /* The session's title is in its own file: the item that has it is no loss. */
    bool has_title;

    /* The header is an entry that can be a parent, and keeps the id that it had in the same
     * dialect. */
    bool header_is_entry;

    /* Returns the path at which the client expects the session's file of this stream, in the arena.
     * NULL: no memory. */
    const char *(*path)(const struct wal__model_session *session, uint32_t stream,
                        struct wal__arena *arena);

    /* Whether an id can be written unchanged. NULL: every id can. */
    bool (*is_id)(struct wal__json_span id);

    /* Generates an id, with quotes, from a hash of session and id; returns its size. `item` is NULL
     * for a reference to an id that was not written. NULL exactly if is_id is NULL. */
    size_t (*make_id)(const struct wal__model_writer *writer, const struct wal__model_item *item,
                      const uint64_t hash[2], char id[WAL__MODEL_ID_SIZE]);

    /* Generated ids are too short to be unique. */
    bool ids_may_collide;
    /* Generated ids depend on more than the hash. */
    bool ids_are_stored;

    /* A set of 1 << kind: kinds of items that are on no branch in this dialect; of kind LINE, only
     * lines of other dialects. Their children become children of their parents. */
    uint32_t off_branch_kinds;

    /* Write the beginning of the session, an item, and the end; `end` may be NULL. The item's ids
     * are those to be written. */
    bool (*begin)(struct wal__model_writer *writer);
    bool (*item)(struct wal__model_writer *writer, const struct wal__model_item *item);
    bool (*end)(struct wal__model_writer *writer);

    /* Writes a document of a session of this dialect that no item has, and that the client changes
     * whenever it works. It is called for the documents whose keys begin with one of
     * kept_documents, which ends with NULL. NULL, as kept_documents: there are none. */
    bool (*document)(struct wal__model_writer *writer, const char *key,
                     struct wal__json_span value);
    const char *const *kept_documents;

    /* Bytes of the writer's state, which is zeroed before `begin`. A cloned writer has a copy. */
    size_t state_size;

    /* Completes the copy of a cloned writer's state. False: no memory. NULL: it points to nothing
     * that ending a session changes. */
    bool (*clone)(struct wal__model_writer *writer, const void *original);

    /* Whether a session that was read from this dialect can be written by copying its lines,
     * provided that their ids are those of the log and that they lead to the same head. NULL:
     * never. */
    bool (*can_copy_verbatim)(const struct wal__model_session *session, struct wal__arena *arena);

    /* Writes the documents of a session, of which there are no more, as the one file in which the
     * client exports and imports a session. NULL: it has no such file. */
    bool (*join)(const struct wal__model_documents *documents, struct wal__json_out *out);

    /* Sets the keys of the ids that the message of an item of the session may be written under; of
     * an item without an id, the second one. NULL, as the following: there is no message_key. */
    void (*item_keys)(const struct wal__model_session *session, struct wal__json_span item,
                      uint64_t keys[2]);

    /* Returns the key of a message's id, without quotes. */
    uint64_t (*message_key)(struct wal__json_span id);

    /* The client's tip moves only to a child of the tip; otherwise it is the last item. */
    bool tip_advances_to_child;

    /* Makes the client continue after the item `id` instead of the tip. NULL: the dialect has no
     * branches. */
    bool (*head)(struct wal__model_writer *writer, struct wal__json_span id);
};

/* All dialects, in the order in which they are tried. The last one, `lines`, fits any file. */
#define WAL__DIALECT_LIST(X) \
    X(rollouts)              \
    X(pi)                    \
    X(codex)                 \
    X(entries)               \
    X(qwen)                  \
    X(claude)                \
    X(sdk)                   \
    X(spec11)                \
    X(opencode)              \
    X(cursor)                \
    X(copilot)               \
    X(gemini)                \
    X(kimi)                  \
    X(droid)                 \
    X(antigravity)           \
    X(lines)

#define WAL__DIALECT_DECLARE(name) extern const struct wal__dialect wal__dialect_##name;
WAL__DIALECT_LIST(WAL__DIALECT_DECLARE)
#undef WAL__DIALECT_DECLARE

/* Their conversions. */
extern const struct wal__dialect_write_ops wal__codex_write_ops;
extern const struct wal__dialect_write_ops wal__claude_write_ops;
extern const struct wal__dialect_write_ops wal__opencode_write_ops;

/* Returns the dialects in the order in which they are tried, then NULL. The last one, `lines`, fits
 * any file. */
const struct wal__dialect *wal__dialect_at(size_t index);

/* Returns the dialect of that name, or NULL. */
const struct wal__dialect *wal__dialect_find(const char *name);

/* All of them and NULL, for wal__model_reader. */
const struct wal__dialect *const *wal__dialect_list(void);

/* Whether it is the dialect of that name; dialect may be NULL. */
bool wal__dialect_is(const struct wal__dialect *dialect, const char *name);

/* Returns the only dialect that can have written the line, or NULL if the line does not determine
 * it. */
const struct wal__dialect *wal__dialect_recognise(const void *data, size_t size, bool is_first);

/* Returns the line without a byte order mark. */
struct wal__json_span wal__line_text(const void *data, size_t size);

/* Whether this line can only be of the dialect. `is_first`: only blank lines precede it in its
 * file. */
bool wal__line_recognise(const struct wal__dialect *dialect, const void *data, size_t size,
                         bool is_first);

/* Reads a line without its newline and byte order mark. JSON that is not an object yields empty
 * fields. Fails if the line is not JSON; then sets *error_offset, unless it is NULL, to the offset
 * of the first error. */
enum wal__json_status wal__line_read(const struct wal__dialect *dialect, const void *data,
                                     size_t size, struct wal__line_info *info,
                                     size_t *error_offset) WAL__JSON_CHECKED;

/* Whether two lines differ in the members of a list only: `rewritten` or `replay_members` of struct
 * wal__dialect. */
bool wal__line_is_same(struct wal__json_span a, struct wal__json_span b,
                       const struct wal__json_member *left_out);

/* Whether the line has only white space. */
bool wal__line_is_blank(const void *data, size_t size);

/* The functions below are for dialects. */

#define WAL__LINE_AT(field) offsetof(struct wal__line_info, field)

/* Whether the member is that string. */
bool wal__line_string_is(const struct wal__json_member *member, const char *text);

/* Sets the parent and the link: an id, or null for a root. */
void wal__line_set_parent(struct wal__line_info *line, const struct wal__json_token *parent);

/* Whether there is a version number, and it is above `known`. */
bool wal__line_version_above(struct wal__json_span number, int64_t known);

#endif
