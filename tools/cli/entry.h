/*
 * entry.h - session entries as lines of JSON:
 * {"id","parentId","type","timestamp","runId"?,"payload","meta"?}.
 *
 * Invariant: a payload goes in and out as it was written, number for number.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_ENTRY_H
#define AGENTWAL_TOOLS_CLI_ENTRY_H

#include "agentwal.h"
#include "format/json/json_scan.h"
#include "tools/cli/json.h"

/* Texts that had to be unescaped. Zeroed: none. */
struct cli_texts {
    char **items;
    size_t count;
    size_t capacity;
};

void cli_texts_deinit(struct cli_texts *texts);

/*
 * Reads one line. The entry's slices lie in the line and in texts. False when
 * the line is no entry; *why, of why_size bytes, then says why not.
 */
bool cli_entry_read(const void *line, size_t size, struct cli_texts *texts,
                    struct wal_entry *entry, char *why, size_t why_size);

/* Lets an entry outlive the next call on its iterator: gives a redacted one a
 * payload of its own, to be freed. Null for others, whose slices hold. */
char *cli_entry_detach(struct wal_entry *entry);

/*
 * Writes one line. A payload that is not JSON becomes a string, and the meta
 * gets "damaged":true. One out of line is written piece by piece, unless it is
 * a line: whether that is JSON is known from the whole. A failure to read it
 * is answered before anything is written.
 */
enum wal_status cli_entry_write(struct cli_json *json, struct wal_store *store,
                                const struct wal_entry *entry,
                                struct wal_error *error);

/* The payload as JSON, without white space and byte order mark around it;
 * false when it is not JSON. */
bool cli_entry_json(const struct wal_entry *entry,
                    struct wal__json_span *value);

/* A JSON string as text, kept in texts; empty when it is no string. */
struct wal_slice cli_unescape(const struct wal__json_token *token,
                              struct cli_texts *texts);

#endif
