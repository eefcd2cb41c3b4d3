/*
 * model.h - what a session means, whatever client wrote it.
 *
 * A session is a sequence of items in the order of the log. Each dialect turns
 * its lines or documents into items and items into its own files; so each pair
 * of dialects can be converted, and none knows another.
 *
 * Texts are spans of JSON: strings with their quotes and escapes as they were
 * written, so that nothing is decoded only to be encoded again. An empty span
 * is a field that is not there. What a field does not say otherwise is a JSON
 * string.
 *
 * Normal form: a message of role TOOL is the result of one call, and its
 * blocks are the result's content; a source that has several results in one
 * message gives an item for each, the last of which has the line's id. Items
 * that are parts of one answer of a model have the same `group`.
 *
 * Invariant: an item's parent comes before it. What an item points to holds
 * until the sink returns.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_FORMAT_MODEL_MODEL_H
#define AGENTWAL_FORMAT_MODEL_MODEL_H

#include "format/json/arena.h"
#include "format/json/json_text.h"

struct wal__dialect;

/*
 * What a session can have and a dialect may not be able to carry. The texts
 * name losses in reports and in tests/golden/losses.txt. Text, roles, tool
 * calls, tool results and their order are no features: every dialect that is
 * written carries them.
 */
#define WAL__FEATURE_LIST(X)                                   \
    X(BRANCHES, "entries beside the live branch")              \
    X(SIDECHAINS, "side chains, as such")                      \
    X(STREAMS, "entries of other streams")                     \
    X(TIMES, "times of entries")                               \
    X(THINKING, "thinking")                                    \
    X(SIGNATURES, "thinking signatures")                       \
    X(IMAGES, "images")                                        \
    X(RESULT_IMAGES, "images in tool results")                 \
    X(TEXT_BOUNDARIES, "borders between texts of one message") \
    X(EMPTY, "messages without content")                       \
    X(BLOCKS, "blocks of another client")                      \
    X(TOOL_NAMES, "tool names of results")                     \
    X(TOOL_ERRORS, "error marks of tool results")              \
    X(MODELS, "models of messages")                            \
    X(PROVIDERS, "providers of models")                        \
    X(USAGE, "token counts of messages")                       \
    X(REASONING, "token counts of reasoning")                  \
    X(COSTS, "costs of messages")                              \
    X(STOP_REASONS, "stop reasons")                            \
    X(MODEL_CHANGES, "model changes")                          \
    X(THINKING_LEVELS, "thinking levels")                      \
    X(COMPACTIONS, "compactions, kept as messages")            \
    X(KEPT_RANGES, "kept ranges of compactions")               \
    X(TOKENS_BEFORE, "token counts of compactions")            \
    X(SUMMARIES, "branch summaries, kept as messages")         \
    X(SUMMARY_SOURCES, "sources of branch summaries")          \
    X(LABELS, "labels")                                        \
    X(TITLES, "titles")                                        \
    X(CUSTOM, "custom entries")                                \
    X(META, "marks of messages that no person wrote")          \
    X(META_NAMES, "kinds of messages that no person wrote")    \
    X(LINES, "entries of another client")                      \
    X(FIELDS, "fields of the client's own")                    \
    X(PARENTS, "session that this one came from")              \
    X(DAMAGED, "lines that are not JSON")                      \
    X(REDACTED, "redacted entries")

enum wal__feature {
#define WAL__FEATURE_NAME(name, text) WAL__FEATURE_##name,
    WAL__FEATURE_LIST(WAL__FEATURE_NAME)
#undef WAL__FEATURE_NAME
    WAL__FEATURE_COUNT
};

#define WAL__CARRIES(name) (UINT64_C(1) << WAL__FEATURE_##name)

/* The name of a feature in reports. */
const char *wal__feature_text(enum wal__feature feature);

enum wal__model_item_kind {
    WAL__ITEM_HEADER, /* what the session says of itself: `session` */
    WAL__ITEM_MESSAGE,
    WAL__ITEM_MODEL_CHANGE,   /* of the model: provider, model */
    WAL__ITEM_THINKING_LEVEL, /* text */
    WAL__ITEM_COMPACTION,     /* text: summary; target: first item that is
                                * kept, empty: none; tokens: count before */
    WAL__ITEM_BRANCH_SUMMARY, /* text; target: where that branch ended */
    WAL__ITEM_LABEL,          /* target; text, empty: taken away */
    WAL__ITEM_TITLE,          /* text */
    WAL__ITEM_CUSTOM,         /* name; raw JSON in `data` */
    WAL__ITEM_LINE,           /* of its dialect alone: `data` is all of it */
    WAL__ITEM_HEAD            /* nothing but a place to go on under */
};

enum wal__model_role {
    WAL__ROLE_USER,
    WAL__ROLE_ASSISTANT,
    WAL__ROLE_SYSTEM,
    WAL__ROLE_TOOL /* the result of one call */
};

enum wal__model_block_kind {
    WAL__BLOCK_TEXT,      /* text */
    WAL__BLOCK_THINKING,  /* text, signature */
    WAL__BLOCK_TOOL_CALL, /* id, name, arguments */
    WAL__BLOCK_IMAGE,     /* media and data, or url */
    WAL__BLOCK_RAW        /* of its dialect alone: raw */
};

enum wal__stop_reason {
    WAL__STOP_NONE, /* it does not say */
    WAL__STOP_END,
    WAL__STOP_LENGTH,
    WAL__STOP_TOOL,
    WAL__STOP_SEQUENCE,
    WAL__STOP_REFUSAL,
    WAL__STOP_ERROR,
    WAL__STOP_ABORTED,
    WAL__STOP_OTHER
};

struct wal__model_block {
    enum wal__model_block_kind kind;
    bool is_redacted; /* thinking: the text is in the signature only */
    struct wal__json_span text;
    struct wal__json_span signature;
    struct wal__json_span id;
    struct wal__json_span name;
    struct wal__json_span arguments; /* JSON, an object as a rule */
    struct wal__json_span url;
    struct wal__json_span media; /* without quotes: image/png */
    struct wal__json_span data;  /* without quotes: base64 */
    /* The whole value as it stood in the item's source, or empty. */
    struct wal__json_span raw;
};

/* JSON numbers as they stood. */
struct wal__model_usage {
    struct wal__json_span input; /* that were not read from a cache */
    struct wal__json_span output;
    struct wal__json_span cache_read;
    struct wal__json_span cache_write;
    struct wal__json_span reasoning;
    struct wal__json_span cost; /* in US dollars */
};

/* What a session is known by. */
struct wal__model_session {
    struct wal__json_span id;
    struct wal__json_span cwd;
    struct wal__json_span title;
    struct wal__json_span time; /* it began; ISO 8601 */
    struct wal__json_span updated;
    struct wal__json_span parent; /* session, or file, that it came from */
    struct wal__json_span project;
    struct wal__json_span provider;
    struct wal__json_span model;
    struct wal__json_span thinking_level;
    struct wal__json_span agent;
    struct wal__json_span exit_reason;
    struct wal__json_span metadata; /* JSON object of the log, or empty */
    /* The header that it was read from, for the same dialect, or empty. */
    struct wal__json_span raw;
    const struct wal__dialect *dialect;
};

struct wal__model_item {
    enum wal__model_item_kind kind;
    enum wal__model_role role;
    enum wal__stop_reason stop;
    bool is_off_branch; /* on no branch: what is under it is under its parent */
    bool is_sidechain;  /* of a conversation beside the main one */
    bool is_meta;       /* a message that no person, model or tool wrote */
    bool is_error;      /* of a tool's result */
    bool is_echo;       /* says again what other items say: a HEAD, or a LINE
                        * that only its own dialect writes, as it stands */
    uint32_t stream;
    uint32_t fields; /* of its source that the model has no place for */
    struct wal__json_span id;
    struct wal__json_span parent; /* empty: a root */
    struct wal__json_span time;   /* ISO 8601, or a number of milliseconds */
    struct wal__json_span answer_id;
    struct wal__json_span provider;
    struct wal__json_span model;
    struct wal__json_span call; /* id of the call that it is the result of */
    struct wal__json_span name; /* of the tool; of a custom or meta item */
    struct wal__json_span text;
    struct wal__json_span target;
    struct wal__json_span tokens; /* a JSON number */
    struct wal__json_span data;   /* JSON */
    struct wal__model_usage usage;
    struct wal__model_block *blocks;
    size_t block_count;
    const struct wal__model_session *session; /* HEADER */
    const struct wal__dialect *dialect;       /* that it was read from */
    /* The line that it was read from, when the same dialect can write it as it
     * stands; so many items behind this one are in it too. */
    struct wal__json_span raw;
    uint32_t raw_items_left;
    /* a line that goes before raw, or empty */
    struct wal__json_span raw_prefix;
};

/* ----------------------------------------------------------- reading --- */

/* A line of a session, with what the log made of its ids. */
struct wal__model_line {
    struct wal__json_span text; /* without newline and byte order mark */
    struct wal__json_span id;
    struct wal__json_span parent; /* empty: a root */
    struct wal__json_span time;
    uint32_t stream;
    bool is_exact; /* id and parent are those that stand in it */
};

/* The documents of a session that is a tree of files, by their paths. */
struct wal__model_documents {
    void *ctx;
    /* The document of that key; false when there is none. */
    bool (*get)(void *ctx, const char *key, struct wal__json_span *value);
    /* Gives those whose keys begin with `prefix`, in the order of their keys'
     * bytes, until `each` answers false; false then, or when they cannot be
     * read. `each` may call both functions. */
    bool (*scan)(void *ctx, const char *prefix,
                 bool (*each)(void *each_ctx, const char *key,
                              struct wal__json_span value),
                 void *each_ctx);
};

/* The owner sets all fields but the last and zeroes that. */
struct wal__model_reader {
    const struct wal__dialect *dialect;
    struct wal__arena *keep;    /* lives as long as the reader */
    struct wal__arena *scratch; /* lives until the dialect's function returns */
    bool (*sink)(void *ctx, struct wal__model_item *item); /* false: stop */
    void *ctx;
    void *state; /* the dialect's own, in `keep` */
};

/* Gives an item to the sink, as of the reader's dialect unless it is of one
 * already. */
bool wal__model_emit(struct wal__model_reader *reader,
                     struct wal__model_item *item);

/* ----------------------------------------------------------- writing --- */

/* Where a dialect's files go. Paths are relative to the client's directory. */
struct wal__model_output {
    void *ctx;
    /* What is put from here on goes to this file: at the end of what it has
     * (`is_document` false; a file may be chosen again and again), or as all
     * of what it is from now on. False: failed. */
    bool (*file)(void *ctx, const char *path, bool is_document);
    bool (*put)(void *ctx, const void *data, size_t size);
};

#endif
