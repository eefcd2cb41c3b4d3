/*
 * line_import.h - turns the lines of a file into entries of a session.
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
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_LINE_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_LINE_IMPORT_H

#include "convert/import/file_probe.h"
#include "convert/import/import.h"
#include "convert/import/import_batch.h"
#include "convert/source/source_lines.h"

#define WAL__LINE_ID_SIZE 256

struct wal__import_lines {
    struct wal__heap_arena *arena; /* for texts; its heap for the rest */
    const char *name;              /* path of the file, in issues */
    const struct wal__dialect *dialect;
    const struct wal__file_probe *probe;
    struct wal__source_match match; /* what the session has already */
    struct wal__import_batch batch;
    struct wal_entry_cursor *cursor; /* looks up entries by id */
    int fd;                          /* the file */
    uint32_t stream;                 /* stream of the lines */
    uint64_t file_size;
    uint64_t known_lines; /* lines that the session has */
    uint64_t sequence;    /* of the known line that is parsed again; 0: none */
    char previous_id[WAL__LINE_ID_SIZE]; /* of the previous line; or "" */
    bool is_open;  /* the previous line has no newline yet */
    bool has_rest; /* the rest of the previous line was read */
    char rest[WAL__LINE_PREFIX_SIZE];
    size_t rest_size;
    bool has_partial_line; /* a partial line was added */
    char time[65];         /* of the last line that had a time */
    bool sets_title; /* the last title in the lines becomes the session's */
    struct wal_import_issue *issues;
    uint32_t issue_count;
    uint32_t issue_capacity;
};

/* Prepares adding lines after those that lines->match describes. */
enum wal_status wal__import_lines_begin(struct wal__import_lines *lines,
                                        struct wal_session *session,
                                        struct wal_error *error);

/* Reports the issues of a known line again. */
enum wal_status wal__import_lines_repeat_issues(struct wal__import_lines *lines,
                                                const struct wal__piece *piece,
                                                uint64_t sequence,
                                                struct wal_error *error);

/* Adds the next piece of a file of lines. */
enum wal_status wal__import_lines_add(struct wal__import_lines *lines,
                                      const struct wal__piece *piece,
                                      struct wal_error *error);

/* Must be called after the last piece: stores what the file ends with. */
enum wal_status wal__import_lines_finish(struct wal__import_lines *lines,
                                         struct wal_error *error);

/* Returns true if the text may follow an entry in its line: white space
 * only. */
bool wal__line_is_rest(const struct wal__piece *piece);

/* Reports JSON errors of an opaque file if it begins like JSON. */
enum wal_status wal__import_lines_check_opaque(struct wal__import_lines *lines,
                                               const char *data, size_t size,
                                               struct wal_error *error);

/* Adds the next piece of an opaque file. */
enum wal_status wal__import_lines_add_opaque(struct wal__import_lines *lines,
                                             const struct wal__piece *piece,
                                             struct wal_error *error);

void wal__import_lines_deinit(struct wal__import_lines *lines);

#endif
