/*
 * shown.h - writes texts of sessions as JSON, for the page and for programs
 * that read a session over HTTP (docs/seeing.md).
 *
 * Invariant: every text of a session passes shown_text or shown_value, so that
 * `strike` sees it whole, before it is cut.
 *
 * Threads: no shared state; one thread at a time per struct.
 */
#ifndef AGENTWAL_TOOLS_SHOWN_SHOWN_H
#define AGENTWAL_TOOLS_SHOWN_SHOWN_H

#include "tools/cli/json.h"

enum {
    SHOWN_LIMIT = 16384, /* bytes of a text in a list of entries */
    SHOWN_PREVIEW = 80   /* bytes of a text in a tree */
};

/* Returns the text without what must not be shown; `texts` owns what is new.
 * `key` names the member of a value whose text it is, or is empty. */
typedef struct wal_slice shown_strike_fn(void *ctx, struct wal_slice key,
                                         struct wal_slice text,
                                         struct cli_texts *texts);

/* Where and how to write. The owner sets all fields. */
struct shown {
    struct wal__json_out *json;
    uint64_t limit; /* bytes that a longer text is cut to; 0: none is */
    shown_strike_fn *strike; /* or NULL */
    void *ctx;               /* of strike */
    bool hides_results;      /* leave the results of tools out */
};

/* Writes the member "text", and "cut" and "bytes" when it is cut. */
void shown_text(struct shown *shown, struct wal_slice text);

/* Writes a member with a text that is never cut, null when it is empty. */
void shown_member(struct shown *shown, const char *key, struct wal_slice text);

/* Writes the member "arguments": a JSON value, the value that a JSON string
 * holds, or a text; and "cut" and "bytes" when it is cut. */
void shown_arguments(struct shown *shown, const struct wal__json_token *value);

/* Returns at most `limit` bytes of a text, whole characters. */
struct wal_slice shown_cut(struct wal_slice text, uint64_t limit);

/* Write a member of JSON: null, a time in milliseconds or null for 0. */
void shown_null(struct shown *shown, const char *key);
void shown_time(struct shown *shown, const char *key, int64_t ms);

#endif
