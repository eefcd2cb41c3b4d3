/*
 * line_import.h - lines of a file become entries of a session.
 *
 * Every line goes in, whatever it is. Its id is its own where it has one that
 * no entry has, else one made of its number; so the same file gives the same
 * entries each time. Ids are looked up in the session and in the batch that
 * waits: nothing is kept of a line once it went in.
 *
 * A last line without a newline is an entry when it is an object, array or
 * string: nothing but white space can follow it in its line. Any other is kept
 * as a tail, and read again when the file has grown.
 *
 * Invariant: a line that is known is not sent again. Where something was said
 * of it the same is said again. The same file gives the same entries, in
 * however many imports it came.
 *
 * Threads: a tool is one thread.
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
    uint64_t offset;    /* of the first byte that is wrong */
    const char *reason; /* constant */
};

struct walconv_lines {
    const struct wal__dialect *dialect;
    const struct walconv_file_probe *probe;
    struct cli_match match; /* what the session has already */
    struct walconv_batch batch;
    struct wal_entry_cursor *iter;    /* that entries are looked up with */
    struct wal_store *store;          /* null: the session is no copy */
    struct walconv_copy_names *names; /* of lines that it shares */
    uint32_t stream;                  /* that the lines go into */
    uint64_t file_size;
    uint64_t known_lines; /* lines that the session has */
    uint64_t sequence;    /* of the known line that is judged, or 0 */
    char previous_id
        [WALCONV_ID_SIZE]; /* id of the line's entry before; or empty */
    bool is_open;          /* that line has no newline yet, */
    bool has_rest;         /* or it ended so: */
    char rest[CLI_LINE_PREFIX_SIZE];
    size_t rest_size;
    bool has_partial_line; /* one was put in */
    char time[65];         /* of the last line that had one */
    bool sets_title;       /* the last one in a line is the session's */
    struct walconv_line_issue *issues;
    size_t issue_count;
    size_t issue_capacity;
};

/* Makes ready to take lines into the session behind what lines->match says. */
enum wal_status walconv_lines_begin(struct walconv_lines *lines,
                                    struct wal_session *session,
                                    struct wal_error *error);

/* Says of a known line what was said of it when it came in. */
void walconv_lines_repeat_issues(struct walconv_lines *lines,
                                 const struct walconv_piece *piece,
                                 uint64_t sequence);

/* Takes the next piece of a file of lines. */
enum wal_status walconv_lines_add(struct walconv_lines *lines,
                                  const struct walconv_piece *piece,
                                  struct wal_error *error);

/* To be called behind the last piece: what the file ends with. */
enum wal_status walconv_lines_finish(struct walconv_lines *lines,
                                     struct wal_error *error);

/* Whether the rest of a line is what may follow an entry in it. */
bool walconv_is_rest(const struct walconv_piece *piece);

/* Reports what is wrong with a file that is kept whole, where that was to be
 * JSON; of one that begins otherwise nothing is expected. */
void walconv_lines_check_opaque(struct walconv_lines *lines, const char *data,
                                size_t size);

/* Takes the next piece of a file that is kept whole. */
enum wal_status walconv_lines_add_opaque(struct walconv_lines *lines,
                                         const struct walconv_piece *piece,
                                         struct wal_error *error);

void walconv_lines_deinit(struct walconv_lines *lines);

#endif
