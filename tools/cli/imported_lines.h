/*
 * imported_lines.h - sessions that were imported: where they came from, and the
 * bytes of the file they were.
 *
 * A session's source is "DIALECT ORDINAL PATH", the path being the one below
 * the import's argument, with '%', control bytes and bytes that are not UTF-8
 * as %XX. The file is its WAL_ENTRY_LINE entries in log order: each payload,
 * then a newline. The meta of an entry says what is otherwise:
 *
 *   {"eol":false}      no newline follows
 *   {"before":"TEXT"}  white space that stands before it: the end of a line
 *                      that was an entry before it had a newline. Where such a
 *                      line is followed by one that says nothing, a newline
 *   {"whole":true}     a piece of a file that is not made of lines
 *   {"odd":true}       something was said of the line when it came in
 *   {"inexact":true}   it is blank or no JSON, or its id or parent is not the
 *                      one that the log has
 *
 * A last line that is not complete yet is provisional. It is an entry of the
 * stream CLI_PARTIAL_STREAM, which no reader of conversations sees, and its
 * meta says where it stands:
 *
 *   {"of":STREAM,"after":"ID"}  behind that line's entry, when it is the last
 *                               one; without "after" there is no line
 *
 * Invariant: what is read here is what the import read, byte for byte.
 *
 * Threads: a tool is one thread.
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
    char *path; /* as it was on disk; to be freed */
};

/* A source as text, to be freed; null when it is too long. */
char *cli_source_text(const char *dialect, uint64_t ordinal, const char *path);

/* Reads a source; false when it is none of walconv's. */
bool cli_source_parse(struct wal_slice text, struct cli_source *source);
void cli_source_deinit(struct cli_source *source);

/* A path as text without '%', control bytes and bytes that are not UTF-8, and
 * back; to be freed. Back is null for what is no such text. */
char *cli_source_escape(const char *path);
char *cli_source_unescape(struct wal_slice text);

#define CLI_PARTIAL_STREAM   254  /* stream */
#define CLI_LINE_PREFIX_SIZE 1024 /* of what stands before a line */

/* The lines of an imported session: of one file, or of one of its files. */
struct cli_lines {
    struct wal_session *session;
    uint32_t stream;
    struct wal_entry_cursor *iter; /* lines */
    struct wal_entry_cursor
        *partial_lines;    /* null until the lines have ended */
    char last_id[256];     /* of a line; or empty */
    uint64_t native_count; /* entries passed that are no lines of the file */
    struct wal__copy copy;
    bool is_copy;   /* it began as a copy of another session's file */
    bool is_shared; /* the line given last is told by a shared one */
};

/* Slices of the session's status that were given before may be gone. */
enum wal_status cli_lines_open(struct cli_lines *lines,
                               struct wal_session *session, uint32_t stream,
                               struct wal_error *error);

/* The next line, its payload out of line where that is a blob, or WAL_END;
 * WAL_ECORRUPT and WAL_EIO concern one entry. The payload of a line that is
 * told by a shared one holds until the next call. */
enum wal_status cli_lines_next(struct cli_lines *lines, struct wal_entry *entry,
                               struct wal_error *error);
void cli_lines_close(struct cli_lines *lines);

/* Passes the payload of the line given last, as cli_payload_visit; and whether
 * all of it can be read, as cli_payload_verify. */
enum wal_status cli_lines_read_payload(struct cli_lines *lines,
                                       struct wal_store *store,
                                       const struct wal_entry *entry,
                                       cli_payload_fn *take, void *ctx,
                                       struct wal_error *error);
enum wal_status cli_lines_check(struct cli_lines *lines,
                                struct wal_store *store,
                                const struct wal_entry *entry,
                                struct wal_error *error);

/* Whether the line came in behind a view, and is none of the source's file. */
bool cli_line_is_from_view(const struct wal_entry *entry);

/* What an entry's meta says. */
bool cli_line_has_newline(const struct wal_entry *entry);
bool cli_line_is_opaque(const struct wal_entry *entry);

/* What stands before a line; `is_open`: the line above it has no newline and
 * is no piece of a whole. Answers how many bytes. */
size_t cli_line_prefix(const struct wal_entry *entry, bool is_open,
                       char bytes[CLI_LINE_PREFIX_SIZE]);

/* A line of which something was said when it came in. */
struct cli_line_issue {
    uint64_t line; /* its number, from 1 */
    uint64_t offset;
    uint64_t sequence;
};

/* How a session and the beginning of a file compare. */
struct cli_match {
    bool is_prefix;             /* all of the session's bytes begin the file */
    bool is_opaque;             /* the file was kept whole */
    bool has_newline;           /* its last entry ends a line */
    uint64_t bytes;             /* of its entries, when it is a prefix */
    uint64_t partial_size;      /* of a last line that is not complete */
    uint64_t entries;           /* lines of it, the tail not */
    uint64_t lines;             /* that end with a newline */
    uint64_t native_count;      /* entries that are no lines */
    struct wal_slice last_id;   /* of the last entry; the slices hold until the
                                 * store is closed */
    struct wal_slice timestamp; /* of the last entry */
    struct cli_line_issue *issues;
    size_t issue_count;
    size_t issue_capacity;
};

/* Compares by reading both as streams. Outputs are untouched on failure;
 * *match is deinitialised in any case, zeroed or not used. */
enum wal_status cli_source_match(struct wal_store *store,
                                 struct wal_session *session, uint32_t stream,
                                 int fd, struct cli_match *match,
                                 struct wal_error *error);
void cli_match_deinit(struct cli_match *match);

#endif
