/*
 * entry.h - session entries as lines of JSON:
 * {"id","parentId","type","timestamp","runId"?,"payload","meta"?}.
 *
 * Invariant: a payload is read and written byte for byte, including the text of
 * its numbers.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_ENTRY_H
#define AGENTWAL_TOOLS_CLI_ENTRY_H

#include "agentwal.h"
#include "format/json/json_scan.h"
#include "tools/cli/json.h"

/* Owns strings that had to be unescaped. Zeroed: none. */
struct cli_texts {
    char **items;
    size_t count;
    size_t capacity;
};

void cli_texts_deinit(struct cli_texts *texts);

/*
 * Parses one line. The entry's slices point into the line and into texts.
 * Returns false when the line is not an entry, and then writes the reason to
 * `why`, a buffer of why_size bytes.
 */
bool cli_entry_read(const void *line, size_t size, struct cli_texts *texts,
                    struct wal_entry *entry, char *why, size_t why_size);

/* Makes the entry valid beyond the next call on its cursor: copies the payload
 * of a redacted entry. The caller frees the result, which is NULL for other
 * entries: their slices stay valid. */
char *cli_entry_detach(struct wal_entry *entry);

/*
 * Writes one line. A payload that is not JSON is written as a string, and meta
 * gets "damaged":true. An out-of-line payload is streamed, except for an entry
 * with WAL_ENTRY_LINE: whether that is JSON is known only from all of it. When
 * the payload cannot be read, returns the error before writing anything.
 */
enum wal_status cli_entry_write(struct wal__json_out *json,
                                struct wal_store *store,
                                const struct wal_entry *entry,
                                struct wal_error *error);

/* The same as a value of an open object or array. */
enum wal_status cli_entry_write_value(struct wal__json_out *json,
                                      struct wal_store *store,
                                      const struct wal_entry *entry,
                                      struct wal_error *error);

/* Sets *value to the payload without surrounding white space and byte order
 * mark. Returns false when the payload is not JSON. */
bool cli_entry_json(const struct wal_entry *entry,
                    struct wal__json_span *value);

/* Unescapes a JSON string; texts owns the result. Empty for other values. */
struct wal_slice cli_unescape(const struct wal__json_token *token,
                              struct cli_texts *texts);

#endif
