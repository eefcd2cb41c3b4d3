/*
 * agentwal/search.h - full-text search over the sessions of a store. The library is
 * libagentwal-search, which links SQLite; libagentwal does not.
 *
 * A search is opened on a store. It keeps an index of each segment of the log, in files below
 * `index/` that are derived and disposable (docs/search.md), and brings them up to date when it is
 * queried. What was redacted, deleted or put in the trash is never returned, however old an index
 * is.
 *
 * Conventions: agentwal.h. All strings that a call returns are UTF-8.
 */
#ifndef AGENTWAL_SEARCH_H
#define AGENTWAL_SEARCH_H

#include "agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_search;
struct wal_search_cursor;

/* Parts of a conversation. A hit has one of them, a query a set. */
enum wal_search_role {
    WAL_SEARCH_USER = 1u << 0,      /* what a person wrote */
    WAL_SEARCH_ASSISTANT = 1u << 1, /* text of a model's answer */
    WAL_SEARCH_TOOL = 1u << 2,      /* name and arguments of a tool's call */
    WAL_SEARCH_TITLE = 1u << 3,     /* title of a session */
    WAL_SEARCH_SUMMARY = 1u << 4,   /* summary that replaced messages */
    WAL_SEARCH_RESULT = 1u << 5     /* a tool's result: with WAL_SEARCH_DEEP */
};

enum wal_search_open_flag {
    WAL_SEARCH_MEMORY = 1u << 0 /* keep the index in memory, write no file */
};

struct wal_search_options {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_search_open_flag */
};

/*
 * Opens a search on a store. Reads nothing yet.
 *
 * options may be null. The index is kept in memory, not in files, with WAL_SEARCH_MEMORY, on a
 * read-only handle, of a store without files, and where `index/` cannot be written: such a search
 * uses the files that are there, and makes an index of the other segments each time it is opened,
 * of a tenth of their size. Close *search with wal_search_close, before the store or after; once
 * the store is closed no other call may be made with it.
 *
 * Threads: any.
 */
WAL_API WAL_MUST_USE enum wal_status wal_search_open(struct wal_store *store,
                                                     const struct wal_search_options *options,
                                                     struct wal_search **search,
                                                     struct wal_error *error);

/* Frees the search and its cursors' index; files remain. search may be null. */
WAL_API void wal_search_close(struct wal_search *search);

/* ------------------------------------------------------------ update --- */

enum wal_search_update_flag {
    WAL_SEARCH_UPDATE_DEEP = 1u << 0 /* the index of tools' results too */
};

/* Called between records, with bytes of segments indexed so far and to index in total. A result
 * other than 0 stops the update with WAL_ECALLBACK and that number in error->sys_errno; what is
 * complete stays. The function may call the library, but not with the same search. */
typedef int32_t wal_search_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct wal_search_update_options {
    uint32_t struct_size;
    uint32_t flags;                   /* enum wal_search_update_flag */
    wal_search_progress_fn *progress; /* or null */
    void *ctx;
};

/* State of the index after an update. The library fills it. */
struct wal_search_update_result {
    uint32_t struct_size;
    uint32_t unwritten;   /* indexes without a file: kept in memory */
    uint64_t segments;    /* with an index */
    uint64_t built;       /* of them, those that were made or extended now */
    uint64_t read_bytes;  /* of the segments that were read now */
    uint64_t text_bytes;  /* that were indexed now */
    uint64_t index_bytes; /* of all index files, and of indexes in memory */
    uint64_t damaged;     /* records that could not be read now */
};

/*
 * Brings the index up to date with the log: makes the files that are missing, damaged, of another
 * version, or of a segment that compaction replaced, and removes those of segments that are gone. A
 * query does it too; this call is for doing it beforehand, and for showing progress.
 *
 * Several processes may do it at the same time. A process that is killed leaves no file that is
 * used. options and result may be null.
 *
 * Threads: one at a time per search. Errors: WAL_ECALLBACK, WAL_ENOMEM.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_search_update(struct wal_search *search, const struct wal_search_update_options *options,
                  struct wal_search_update_result *result, struct wal_error *error);

/* ------------------------------------------------------------- query --- */

enum wal_search_query_flag {
    WAL_SEARCH_DEEP = 1u << 0,      /* search tools' results too */
    WAL_SEARCH_SUBSTRING = 1u << 1, /* the text, anywhere in words, without
                                     * regard to case; newest first */
    WAL_SEARCH_NO_UPDATE = 1u << 2  /* use the index as it is */
};

/*
 * A query. Empty slices and zeros do not filter.
 *
 * text is a list of words, all of which an entry must have: "a phrase", begin*,
 * -without. Case and diacritics do not matter. Scripts without spaces between
 * words are found by any part of at least one character. With
 * WAL_SEARCH_SUBSTRING it is taken literally, and must have 3 characters in a
 * row that are letters or digits, or one of such a script.
 */
struct wal_search_query {
    uint32_t struct_size;
    uint32_t flags;                   /* enum wal_search_query_flag */
    struct wal_slice text;            /* at most 4,096 bytes */
    struct wal_slice project;         /* project id */
    struct wal_slice cwd;             /* directory of the session, however its path
                                * is written */
    struct wal_slice session;         /* session id; with what it shares as a fork */
    struct wal_slice tool;            /* name of the tool that a call is of; then hits
                                 * are calls */
    int64_t since_ms;                 /* Unix time in milliseconds, inclusive */
    int64_t until_ms;                 /* exclusive */
    uint32_t roles;                   /* set of enum wal_search_role; 0: all */
    uint32_t session_limit;           /* sessions returned; 0: 20 */
    uint32_t hits_limit;              /* hits of each; 0: 3 */
    uint32_t snippet_characters;      /* on each side of a match; 0: 80 */
    wal_search_progress_fn *progress; /* of the update, or null */
    void *ctx;
};

/* A hit. Slices hold until the cursor is closed. */
struct wal_search_hit {
    uint32_t struct_size;
    uint32_t role;               /* enum wal_search_role */
    struct wal_slice session_id; /* hits of a session follow each other */
    struct wal_slice title;      /* of the session, or its first text */
    struct wal_slice cwd;        /* of the session */
    struct wal_slice project;    /* of the session */
    int64_t session_updated_ms;  /* Unix time in milliseconds */
    struct wal_slice entry_id;   /* of a title: empty. Of a message that was
                                   * imported as documents: its id */
    struct wal_slice timestamp;  /* of the entry, as it is there */
    int64_t time_ms;             /* the same as Unix time, or 0 */
    uint64_t sequence;           /* of the record */
    struct wal_slice tool;       /* of a call: the tool's name */
    struct wal_slice snippet;    /* one line of text around the first match;
                                   * white space is single spaces */
    const uint32_t *matches;     /* pairs of byte offsets in snippet: start and
                                   * end of each match, ascending */
    uint32_t match_count;        /* pairs */
    uint32_t rank;               /* of the session, from 0 */
    uint64_t session_hits;       /* records of the session that match, among
                                   * those that were ranked. Of more than the
                                   * best 4,096 of the query, those that have
                                   * the words, shown or not */
    double score;                /* higher is better */
};

/* What a query looked at. The library fills it. */
struct wal_search_summary {
    uint32_t struct_size;
    uint32_t hits;     /* that the cursor returns */
    uint32_t sessions; /* of them */
    uint32_t complete; /* 0: more records match than were ranked, see below */
    uint64_t matches;  /* records with all words, as far as they were counted */
};

/*
 * Searches. The hits are grouped by session; sessions are ranked by the sum of their records, the
 * hits of a session by their own; docs/search.md, Queries, says how. Of equal ones the newer is
 * first.
 *
 * At most 20,000 matching records are ranked, those of the newest segments; with a phrase or
 * WAL_SEARCH_SUBSTRING at most 200,000 records are compared. The hits are found by this call: they
 * stay as they are when the store changes. Close *cursor with wal_search_cursor_close, before or
 * after the search. summary may be null.
 *
 * Threads: one at a time per search. Errors: WAL_EINVAL for a text without a word; WAL_ENOTFOUND
 * and WAL_ETRASHED for session; WAL_ECALLBACK; those of wal_search_update.
 */
WAL_API WAL_MUST_USE enum wal_status wal_search_find(struct wal_search *search,
                                                     const struct wal_search_query *query,
                                                     struct wal_search_cursor **cursor,
                                                     struct wal_search_summary *summary,
                                                     struct wal_error *error);

/* Fills *hit with the next hit, or returns WAL_END. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_search_cursor_next(struct wal_search_cursor *cursor,
                                                            struct wal_search_hit *hit,
                                                            struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_search_cursor_close(struct wal_search_cursor *cursor);

#ifdef __cplusplus
}
#endif

#endif
