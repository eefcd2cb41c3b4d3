/*
 * cli_source.h - sessions that were imported: where they came from, and the
 * bytes of the file they were.
 *
 * A session's source is "DIALECT ORDINAL PATH", the path being the one below
 * the import's argument, with '%', control bytes and bytes that are not UTF-8
 * as %XX. The file is its WAL_ENTRY_LINE entries in log order: each payload,
 * then a newline. The meta of an entry says what is otherwise:
 *
 *   {"eol":false}      no newline follows
 *   {"whole":true}     a piece of a file that is not made of lines
 *   {"replaces":"ID"}  stands for the entry before it, a last line that was
 *                      not complete yet
 *   {"odd":true}       something was said of the line when it came in
 *
 * Invariant: what is read here is what the import read, byte for byte.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_CLI_SOURCE_H
#define AGENTWAL_TOOLS_CLI_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"

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

/* The lines of an imported session: of one file, or of one of its files. */
struct cli_lines {
    struct wal_iter *iter;
    struct wal_entry held; /* may be replaced by the one behind it */
    bool has_held;
    uint64_t natives; /* entries passed that are no lines of the file */
};

enum wal_status cli_lines_open(struct cli_lines *lines,
                               struct wal_session *session, uint32_t stream,
                               struct wal_error *error);

/* The next line, its payload out of line where that is a blob, or WAL_END;
 * WAL_ECORRUPT and WAL_EIO concern one entry. */
enum wal_status cli_lines_next(struct cli_lines *lines, struct wal_entry *entry,
                               struct wal_error *error);
void cli_lines_close(struct cli_lines *lines);

/* What an entry's meta says. */
bool cli_line_has_newline(const struct wal_entry *entry);
bool cli_line_is_whole(const struct wal_entry *entry);

/* A line of which something was said when it came in. */
struct cli_odd {
    uint64_t line; /* its number, from 1 */
    uint64_t offset;
    uint64_t sequence;
};

/* How a session and the beginning of a file compare. */
struct cli_match {
    bool is_prefix;             /* all of the session's bytes begin the file */
    bool is_whole;              /* the file was kept whole */
    bool has_newline;           /* its last entry ends a line */
    uint64_t bytes;             /* of the session, when it is a prefix */
    uint64_t entries;           /* lines of it */
    uint64_t line_offset;       /* where the line of the last entry begins */
    struct wal_slice line_id;   /* id of that line's first entry; the slices */
    struct wal_slice last_id;   /* hold until the store is closed */
    struct wal_slice before_id; /* of the last entry of the line before */
    struct wal_slice timestamp; /* of the last entry */
    uint64_t lines;             /* that end with a newline */
    struct cli_odd *odd;
    size_t odd_count;
    size_t odd_capacity;
};

/* Compares by reading both as streams. Outputs are untouched on failure;
 * *match is deinitialised in any case, zeroed or not used. */
enum wal_status cli_source_match(struct wal_store *store,
                                 struct wal_session *session, uint32_t stream,
                                 int fd, struct cli_match *match,
                                 struct wal_error *error);
void cli_match_deinit(struct cli_match *match);

#endif
