/*
 * line_import.h - turn the lines of a file into entries of a session.
 *
 * Every line is imported, whatever it contains. An entry's id is the line's own
 * id if no other entry has it, else an id made from its line number. Ids are
 * looked up in the session and in the pending batch; nothing else is kept of
 * imported lines.
 *
 * A last line without a newline is an entry if it is an object, an array or a
 * string: only white space can follow in the same line. Any other is stored as
 * a partial line and read again when the file has grown.
 *
 * Invariant: known lines are not appended again, but their issues are reported
 * again. The same file gives the same entries in any number of imports.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_LINE_IMPORT_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_LINE_IMPORT_H

#include "tools/cli/imported_lines.h"
#include "tools/walconv/import/copy_names.h"
#include "tools/walconv/import/file_probe.h"
#include "tools/walconv/import/import_batch.h"

#define WALCONV_ID_SIZE    256
#define WALCONV_TITLE_SIZE 4096

struct walconv_line_issue {
    uint64_t line;
    uint64_t offset;    /* of the first wrong byte */
    const char *reason; /* string constant */
};

struct walconv_lines {
    const struct wal__dialect *dialect;
    const struct walconv_file_probe *probe;
    struct cli_match match; /* what the session has already */
    struct walconv_batch batch;
    struct wal_entry_cursor *cursor;  /* looks up entries by id */
    struct wal_store *store;          /* NULL: the session is not a copy */
    struct walconv_copy_names *names; /* ids of shared lines */
    uint32_t stream;                  /* stream of the lines */
    uint64_t file_size;
    uint64_t known_lines; /* lines that the session has */
    uint64_t sequence;    /* of the known line that is parsed again; 0: none */
    char previous_id[WALCONV_ID_SIZE]; /* of the previous line; or "" */
    bool is_open;  /* the previous line has no newline yet */
    bool has_rest; /* the rest of the previous line was read */
    char rest[CLI_LINE_PREFIX_SIZE];
    size_t rest_size;
    bool has_partial_line; /* a partial line was added */
    char time[65];         /* of the last line that had a time */
    bool sets_title; /* the last title in the lines becomes the session's */
    struct walconv_line_issue *issues;
    size_t issue_count;
    size_t issue_capacity;
};

/* Prepares adding lines after those that lines->match describes. */
enum wal_status walconv_lines_begin(struct walconv_lines *lines,
                                    struct wal_session *session,
                                    struct wal_error *error);

/* Reports the issues of a known line again. */
void walconv_lines_repeat_issues(struct walconv_lines *lines,
                                 const struct walconv_piece *piece,
                                 uint64_t sequence);

/* Adds the next piece of a file of lines. */
enum wal_status walconv_lines_add(struct walconv_lines *lines,
                                  const struct walconv_piece *piece,
                                  struct wal_error *error);

/* Must be called after the last piece: stores what the file ends with. */
enum wal_status walconv_lines_finish(struct walconv_lines *lines,
                                     struct wal_error *error);

/* Returns true if the text may follow an entry in its line: white space
 * only. */
bool walconv_is_rest(const struct walconv_piece *piece);

/* Reports JSON errors of an opaque file if it begins like JSON. */
void walconv_lines_check_opaque(struct walconv_lines *lines, const char *data,
                                size_t size);

/* Adds the next piece of an opaque file. */
enum wal_status walconv_lines_add_opaque(struct walconv_lines *lines,
                                         const struct walconv_piece *piece,
                                         struct wal_error *error);

void walconv_lines_deinit(struct walconv_lines *lines);

#endif
