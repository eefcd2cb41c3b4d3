/*
 * model.h - the model: the neutral form of a session between two dialects.
 *
 * A session is a sequence of items in the order of the log. Each dialect converts its lines or
 * documents to items, and items to its files, so every pair of dialects can be converted, and no
 * dialect depends on another.
 *
 * Texts are spans of JSON: strings with quotes and escapes as they were written, so no text is
 * decoded only to be encoded again. An empty span is an absent field. Unless a field says
 * otherwise, it is a JSON string.
 *
 * Normal form: a message of role TOOL is the result of one call, and its blocks are the content of
 * the result. A source with several results in one message yields an item for each, the last of
 * which has the line's id. Items that are parts of one answer of a model have the same `answer_id`.
 *
 * Invariant: an item's parent precedes it. Memory that an item points to is valid until the sink
 * returns.
 *
 * Threads: no shared state; any thread may call any function.
 */
#ifndef AGENTWAL_CONVERT_MODEL_MODEL_H
#define AGENTWAL_CONVERT_MODEL_MODEL_H

#include "format/json/arena.h"
#include "format/json/json_text.h"

struct wal__dialect;

/*
 * Features of sessions that a dialect may lack. The texts name losses in reports and in
 * tests/golden/losses.txt. Text, roles, tool calls, tool results and their order are not in the
 * list: every dialect with write_ops carries them.
 */
#define WAL__FEATURE_LIST(X)                                \
    X(BRANCHES, "entries off the active branch")            \
    X(SIDECHAINS, "side chains, as such")                   \
    X(STREAMS, "entries of other streams")                  \
    X(TIMES, "times of entries")                            \
    X(THINKING, "thinking")                                 \
    X(SIGNATURES, "thinking signatures")                    \
    X(IMAGES, "images")                                     \
    X(RESULT_IMAGES, "images in tool results")              \
    X(TEXT_BOUNDARIES, "text block boundaries")             \
    X(EMPTY, "messages without content")                    \
    X(BLOCKS, "blocks of another client")                   \
    X(TOOL_NAMES, "tool names of results")                  \
    X(TOOL_ERRORS, "error marks of tool results")           \
    X(MODELS, "models of messages")                         \
    X(PROVIDERS, "providers of models")                     \
    X(USAGE, "token counts of messages")                    \
    X(REASONING, "token counts of reasoning")               \
    X(COSTS, "costs of messages")                           \
    X(STOP_REASONS, "stop reasons")                         \
    X(MODEL_CHANGES, "model changes")                       \
    X(THINKING_LEVELS, "thinking levels")                   \
    X(COMPACTIONS, "compactions, kept as messages")         \
    X(KEPT_RANGES, "kept ranges of compactions")            \
    X(TOKENS_BEFORE, "token counts of compactions")         \
    X(SUMMARIES, "branch summaries, kept as messages")      \
    X(SUMMARY_SOURCES, "sources of branch summaries")       \
    X(LABELS, "labels")                                     \
    X(TITLES, "titles")                                     \
    X(CUSTOM, "custom entries")                             \
    X(META, "marks of messages that no person wrote")       \
    X(META_NAMES, "kinds of messages that no person wrote") \
    X(LINES, "entries of another client")                   \
    X(FIELDS, "client-specific fields")                     \
    X(SURROGATES, "unpaired surrogates, as U+FFFD")         \
    X(PARENTS, "parent session")                            \
    X(DAMAGED, "lines that are not JSON")                   \
    X(REDACTED, "redacted entries")

enum wal__feature {
#define WAL__FEATURE_NAME(name, text) WAL__FEATURE_##name,
    WAL__FEATURE_LIST(WAL__FEATURE_NAME)
#undef WAL__FEATURE_NAME
        WAL__FEATURE_COUNT
};

#define WAL__CARRIES(name) (UINT64_C(1) << WAL__FEATURE_##name)

/* Returns the name of a feature in reports. */
const char *wal__feature_text(enum wal__feature feature);

enum wal__model_item_kind {
    WAL__ITEM_HEADER, /* metadata: `session` */
    WAL__ITEM_MESSAGE,
    WAL__ITEM_MODEL_CHANGE,   /* provider, model */
    WAL__ITEM_THINKING_LEVEL, /* text */
    WAL__ITEM_COMPACTION,     /* text: summary; target: first item that is
                                * kept, empty: none; tokens: count before */
    WAL__ITEM_BRANCH_SUMMARY, /* text; target: last item of that branch */
    WAL__ITEM_LABEL,          /* target; text, empty: label removed */
    WAL__ITEM_TITLE,          /* text */
    WAL__ITEM_CUSTOM,         /* name; raw JSON in `data` */
    WAL__ITEM_LINE,           /* meaningful to its dialect only: `data` */
    WAL__ITEM_HEAD            /* an id without content, to be a parent */
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
    WAL__BLOCK_RAW        /* meaningful to its dialect only: raw */
};

enum wal__stop_reason {
    WAL__STOP_NONE, /* unspecified */
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
    struct wal__json_span arguments; /* JSON, usually an object */
    struct wal__json_span url;
    struct wal__json_span media; /* without quotes: image/png */
    struct wal__json_span data;  /* without quotes: base64 */
    /* The whole value in the item's source, unchanged, or empty. */
    struct wal__json_span raw;
};

/* JSON numbers, unchanged. */
struct wal__model_usage {
    struct wal__json_span input;  /* without those read from a cache */
    struct wal__json_span output; /* with those of reasoning */
    struct wal__json_span cache_read;
    struct wal__json_span cache_write;
    struct wal__json_span reasoning;
    struct wal__json_span cost; /* in US dollars */
};

/* Whether one of the blocks is of that kind. */
bool wal__model_has_block(const struct wal__model_block *blocks, size_t count,
                          enum wal__model_block_kind kind);

/* Metadata of a session. */
/* The lines of another file that a session's file goes on from, and does not repeat. */
struct wal__model_base {
    uint64_t end;        /* their ordinals are below; 0: there are none */
    uint64_t end_offset; /* their bytes */
    char file[37];       /* id of that file */
    /* First line of the session's file if it is written already; or empty. */
    struct wal__json_span header;
};

struct wal__model_session {
    struct wal__json_span id;
    struct wal__json_span cwd;
    char cwd_digest[65]; /* its SHA-256 in hexadecimal; or empty */
    struct wal__json_span title;
    struct wal__json_span time; /* of creation; ISO 8601 */
    struct wal__json_span updated;
    struct wal__json_span parent; /* session or file it was forked from */
    /* Id, time and directory of the session that started this one, a subagent's; or empty. */
    struct wal__json_span starter;
    struct wal__json_span starter_time;
    struct wal__json_span starter_cwd;
    /* The directory that the paths of files are below, absolute; or NULL. */
    const char *root;
    struct wal__json_span project;
    struct wal__json_span provider;
    struct wal__json_span model;
    struct wal__json_span thinking_level;
    struct wal__json_span agent;
    struct wal__json_span exit_reason;
    struct wal__json_span metadata; /* JSON object of the log, or empty */
    /* Path, without quotes and terminated by NUL, that the client of file_dialect gave the
     * session's file; or empty. */
    struct wal__json_span file;
    const char *file_dialect; /* name */
    /* The header as read, to be written in the same dialect, or empty. */
    struct wal__json_span raw;
    const struct wal__dialect *dialect;
    struct wal__model_base base;
};

struct wal__model_item {
    enum wal__model_item_kind kind;
    enum wal__model_role role;
    enum wal__stop_reason stop;
    bool is_off_branch; /* on no branch: its children go to its parent */
    bool is_sidechain;  /* part of a side chain, not of the main one */
    bool is_meta;       /* a message that no person, model or tool wrote */
    bool is_error;      /* of a tool's result */
    bool is_echo;       /* repeats other items: a HEAD, a LINE that only its dialect
                        * writes, unchanged, or a MESSAGE that is in a line of its
                        * dialect */
    uint32_t stream;
    uint32_t fields; /* count of fields that the model cannot represent */
    struct wal__json_span id;
    struct wal__json_span parent; /* empty: a root */
    struct wal__json_span time;   /* ISO 8601, or a number of milliseconds */
    struct wal__json_span answer_id;
    struct wal__json_span provider;
    struct wal__json_span model;
    struct wal__json_span call; /* of a result: id of its call */
    struct wal__json_span name; /* of the tool; of a custom or meta item */
    struct wal__json_span text;
    struct wal__json_span target;
    struct wal__json_span tokens; /* a JSON number */
    struct wal__json_span data;   /* JSON */
    struct wal__model_usage usage;
    struct wal__model_block *blocks;
    size_t block_count;
    const struct wal__model_session *session; /* HEADER */
    const struct wal__dialect *dialect;       /* of its source */
    /* The line of its source if the same dialect can write it unchanged. */
    struct wal__json_span raw;
    uint32_t raw_items_left; /* number of following items in the same line */
    /* The parent that raw goes under, if it is another one, or empty. */
    struct wal__json_span raw_parent;
    /* a line to write before raw, or empty */
    struct wal__json_span raw_prefix;
};

/* --- reading ------------------------------------------------------------- */

/* A line of a session, with its ids in the log. */
struct wal__model_line {
    struct wal__json_span text; /* without newline and byte order mark */
    struct wal__json_span id;
    struct wal__json_span parent; /* empty: a root */
    struct wal__json_span time;
    uint32_t stream;
    bool is_exact; /* the line itself has this id and parent */
};

/* The documents of a session that is a tree of files. Keys are paths. */
struct wal__model_documents {
    void *ctx;
    /* Gets the document of a key; false: there is none. */
    bool (*get)(void *ctx, const char *key, struct wal__json_span *value);
    /* Calls `each` for the documents whose keys begin with `prefix`, in byte order of the keys.
     * Returns false if `each` did, which ends the scan, or if they cannot be read. `each` may call
     * both functions. */
    bool (*scan)(void *ctx, const char *prefix,
                 bool (*each)(void *each_ctx, const char *key, struct wal__json_span value),
                 void *each_ctx);
};

/* The owner sets all fields but the last and zeroes that. */
struct wal__model_reader {
    const struct wal__dialect *dialect;
    const struct wal__dialect *const *dialects; /* all, for the lines of other
                                                 * clients in this one's */
    struct wal__arena *arena;                   /* valid as long as the reader */
    struct wal__arena *scratch;                 /* valid until the dialect's function returns */
    bool (*sink)(void *ctx, struct wal__model_item *item); /* false: stop */
    void *ctx;
    void *state; /* of the dialect, in `arena` */
};

/* Returns the dialect whose name is this JSON string, or NULL. */
const struct wal__dialect *wal__model_find_dialect(const struct wal__model_reader *reader,
                                                   struct wal__json_span name);

/* Passes an item to the sink. Its dialect defaults to the reader's. */
bool wal__model_emit(struct wal__model_reader *reader, struct wal__model_item *item);

/* --- writing ------------------------------------------------------------- */

/* What puts do to a file. */
enum wal__output_kind {
    WAL__OUTPUT_LINES,    /* append to it; it may be selected repeatedly */
    WAL__OUTPUT_DOCUMENT, /* replace its content */
    /* Of several sessions and of the client itself, so never replaced. The document is written
     * where there is none. The line is appended unless the file has one that is equal up to the
     * last comma of this one. */
    WAL__OUTPUT_SHARED_DOCUMENT,
    WAL__OUTPUT_SHARED_LINE
};

/* Receives a dialect's files. Paths are relative to the client's directory. */
struct wal__model_output {
    void *ctx;
    /* Selects the file of the following puts. False: failed. */
    bool (*file)(void *ctx, const char *path, enum wal__output_kind kind);
    bool (*put)(void *ctx, const void *data, size_t size);
};

#endif
