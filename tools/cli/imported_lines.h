/*
 * imported_lines.h - imported sessions: where they came from, and the bytes of
 * the file they were imported from.
 *
 * A session's source is "DIALECT ORDINAL PATH". PATH is relative to the
 * argument of the import; '%', control bytes and bytes that are not UTF-8 are
 * written as %XX. The file consists of the session's WAL_ENTRY_LINE entries in
 * log order: each payload, then a newline. An entry's meta records exceptions:
 *
 *   {"eol":false}      no newline follows
 *   {"before":"TEXT"}  white space before the line: the end of a line that was
 *                      an entry before it had its newline. Without "before", a
 *                      line after such an entry is preceded by a newline
 *   {"whole":true}     a piece of a file that is not made of lines
 *   {"odd":true}       the import reported an issue of the line
 *   {"inexact":true}   the line is blank or not JSON, or its id or parent
 *                      differs from the one in the log
 *
 * A partial line, the last line while it has no newline yet, is provisional. It
 * is an entry of the stream CLI_PARTIAL_STREAM, which conversation readers
 * ignore. Its meta records where it belongs:
 *
 *   {"of":STREAM,"after":"ID"}  after the entry ID, if that is the last line;
 *                               without "after": at the start of the file
 *
 * Invariant: the bytes returned are the bytes imported.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_CLI_IMPORTED_LINES_H
#define AGENTWAL_TOOLS_CLI_IMPORTED_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "engine/convert/copy/copy.h"
#include "tools/cli/payload.h"

#define CLI_SOURCE_SIZE_MAX 4096

struct cli_source {
    char dialect[32];
    uint64_t ordinal;
    char *path; /* as on disk; owned */
};

/* Returns the source as text, which the caller frees; NULL when it is too
 * long. */
char *cli_source_text(const char *dialect, uint64_t ordinal, const char *path);

/* Parses a source. Returns false when walconv did not write it. The caller
 * deinitialises it after success. */
bool cli_source_parse(struct wal_slice text, struct cli_source *source);
void cli_source_deinit(struct cli_source *source);

/* Escapes '%', control bytes and bytes that are not UTF-8 as %XX, and back. The
 * caller frees the result. cli_source_unescape returns NULL for malformed
 * escapes. */
char *cli_source_escape(const char *path);
char *cli_source_unescape(struct wal_slice text);

#define CLI_PARTIAL_STREAM   254  /* stream number of partial lines */
#define CLI_LINE_PREFIX_SIZE 1024 /* bytes before a line, at most */

/* The lines of an imported session: stream 0 for a session of one file, a
 * stream for each file of a session directory. */
struct cli_lines {
    struct wal_session *session;
    uint32_t stream;
    struct wal_entry_cursor *cursor; /* lines */
    /* NULL until the lines have ended. */
    struct wal_entry_cursor *partial_lines;
    char last_id[256];     /* id of the last line; or empty */
    uint64_t native_count; /* entries skipped that are not lines of the file */
    struct wal__copy copy;
    bool is_copy;   /* the session starts as a copy of another session's file */
    bool is_shared; /* the last line returned is shared with the original */
};

/* Opens the lines. Invalidates slices of an earlier wal_session_get_info. */
enum wal_status cli_lines_open(struct cli_lines *lines,
                               struct wal_session *session, uint32_t stream,
                               struct wal_error *error);

/* Returns the next line, its payload out of line when it is a blob, or WAL_END.
 * WAL_ECORRUPT and WAL_EIO concern one entry. The payload of a shared line is
 * valid until the next call. */
enum wal_status cli_lines_next(struct cli_lines *lines, struct wal_entry *entry,
                               struct wal_error *error);
void cli_lines_close(struct cli_lines *lines);

/* Read the payload of the last line returned, as cli_payload_visit and
 * cli_payload_verify do. */
enum wal_status cli_lines_read_payload(struct cli_lines *lines,
                                       struct wal_store *store,
                                       const struct wal_entry *entry,
                                       cli_payload_fn *visit, void *ctx,
                                       struct wal_error *error);
enum wal_status cli_lines_check(struct cli_lines *lines,
                                struct wal_store *store,
                                const struct wal_entry *entry,
                                struct wal_error *error);

/* Returns true if the line was imported from a view, and is not in the source's
 * file. */
bool cli_line_is_from_view(const struct wal_entry *entry);

/* Return what the entry's meta records. */
bool cli_line_has_newline(const struct wal_entry *entry);
bool cli_line_is_opaque(const struct wal_entry *entry);

/* Writes the bytes that precede a line and returns their count. `is_open`: the
 * line above has no newline and is not a piece of an opaque file. */
size_t cli_line_prefix(const struct wal_entry *entry, bool is_open,
                       char bytes[CLI_LINE_PREFIX_SIZE]);

/* A line of which the import reported an issue. */
struct cli_line_issue {
    uint64_t line; /* line number, from 1 */
    uint64_t offset;
    uint64_t sequence;
};

/* The comparison of a session with the beginning of a file. */
struct cli_match {
    bool is_prefix;        /* the file begins with all of the session's bytes */
    bool is_opaque;        /* the file is stored in pieces, not lines */
    bool has_newline;      /* the last entry ends a line */
    uint64_t bytes;        /* of the session's entries, if is_prefix */
    uint64_t partial_size; /* of the partial line; 0: none */
    uint64_t entries;      /* without the partial line */
    uint64_t lines;        /* that end with a newline */
    uint64_t native_count; /* entries that are not lines */
    /* Of the last entry; valid until the store is closed. */
    struct wal_slice last_id;
    struct wal_slice timestamp; /* of the last entry */
    struct cli_line_issue *issues;
    size_t issue_count;
    size_t issue_capacity;
};

/* Compares by streaming both. Outputs are untouched on failure. The caller
 * deinitialises *match, which it zeroes before, in any case. */
enum wal_status cli_source_match(struct wal_store *store,
                                 struct wal_session *session, uint32_t stream,
                                 int fd, struct cli_match *match,
                                 struct wal_error *error);
void cli_match_deinit(struct cli_match *match);

#endif
