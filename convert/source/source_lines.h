/*
 * source_lines.h - the bytes of the file that a session was imported from.
 *
 * The file consists of the session's WAL_ENTRY_LINE entries in
 * log order: each payload, then a newline. An entry's meta records exceptions:
 *
 *   {"eol":false}      no newline follows
 *   {"before":"TEXT"}  white space before the line: the end of a line that was
 *                      an entry before it had its newline. Without "before", a
 *                      line after such an entry is preceded by a newline
 *   {"whole":true}     a piece of a file that is not made of lines
 *   {"odd":true}       the import reported an issue of the line
 *   {"inexact":true}   the line is blank or not JSON, or its id or parent
 *                      cannot be that of the entry
 *   {"replay":true}    the client wrote an earlier line again
 *   {"stranger":true}  the line is of another session, below no line of the file
 *   {"file":"PATH"}    the first line of a file that is not the session's source
 *
 * A session may have the lines of several files, each of which goes on from a line of another one
 * (struct wal__line_info.base). Ids of entries name the file of their lines, as FILE:ID; those of
 * the session's source do not, unless the session is a fork, whose source goes on from a line of
 * the session that it shares.
 *
 * A partial line, the last line while it has no newline yet, is provisional. It is an entry of the
 * stream WAL__PARTIAL_STREAM, which conversation readers ignore. Its meta records where it belongs:
 *
 *   {"of":STREAM,"after":"ID"}  after the entry ID, if that is the last line;
 *                               without "after": at the start of the file
 *
 * Payloads of entries that were read with WAL_ENTRY_CURSOR_OUT_OF_LINE are in line or not; at most
 * 1 MiB of an out-of-line one is in memory.
 *
 * Invariant: the bytes returned are the bytes imported. Without memory the functions return
 * WAL_ENOMEM.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_SOURCE_SOURCE_LINES_H
#define AGENTWAL_CONVERT_SOURCE_SOURCE_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "agentwal.h"
#include "convert/copy/copy.h"
#include "convert/source/source_name.h"
#include "engine/base/heap.h"
#include "format/json/json_scan.h"

/* Receives a piece; returns false to stop. */
typedef bool wal__entry_payload_fn(void *ctx, const void *data, size_t size);

/* Passes the payload to `visit` from its beginning. Damage is detected on the way, after earlier
 * pieces were passed. heap NULL: the C library's. */
enum wal_status wal__entry_payload_visit(const struct wal__heap *heap, struct wal_store *store,
                                         const struct wal_entry *entry,
                                         wal__entry_payload_fn *visit, void *ctx,
                                         struct wal_error *error) WAL_MUST_USE;

/* Reads and verifies every byte. */
enum wal_status wal__entry_payload_verify(const struct wal__heap *heap, struct wal_store *store,
                                          const struct wal_entry *entry,
                                          struct wal_error *error) WAL_MUST_USE;

/* Reads the whole payload into memory from the heap, *memory, which the caller frees; NULL for a
 * payload that is in line already. *entry gets the bytes. */
enum wal_status wal__entry_payload_load(const struct wal__heap *heap, struct wal_store *store,
                                        struct wal_entry *entry, char **memory,
                                        struct wal_error *error) WAL_MUST_USE;

/* --- comparing a file ---------------------------------------------------- */

/* The owner sets fd, and heap unless it is the C library's, and zeroes the rest. */
struct wal__file_compare {
    const struct wal__heap *heap;
    int fd;
    char *bytes;     /* allocated by the first comparison */
    uint64_t offset; /* of the window in the file */
    size_t size;
    bool has_failed; /* no memory: the results are false */
    bool has_ended;  /* the file ended before a compared byte */
};

void wal__file_compare_deinit(struct wal__file_compare *window);

/* Returns true if the file has these bytes at the offset. */
bool wal__file_compare_bytes(struct wal__file_compare *window, uint64_t offset, const void *data,
                             size_t size);

/* --- lines --------------------------------------------------------------- */
#define WAL__PARTIAL_STREAM   254  /* stream number of partial lines */
#define WAL__LINE_PREFIX_SIZE 1024 /* bytes before a line, at most */

/* The lines of an imported session: stream 0 for a session of one file, a stream for each file of a
 * session directory. */
struct wal__source_lines {
    const struct wal__heap *heap; /* NULL: the C library's */
    struct wal_session *session;
    uint32_t stream;
    char file[WAL__FILE_ID_SIZE];    /* only lines whose ids name it, or if it is empty none */
    struct wal_entry_cursor *cursor; /* lines; NULL: of a copy */
    /* NULL until the lines have ended. */
    struct wal_entry_cursor *partial_lines;
    char last_id[256];     /* id of the last line; or empty */
    uint64_t native_count; /* entries skipped that are no lines */
    bool has_other_files;  /* lines were skipped that are of other files */
    struct wal__copy copy;
    bool is_copy; /* the lines are read from `copy` */
};

/* Opens the lines of the file with an id; NULL: of the session's source. Invalidates slices of an
 * earlier wal_session_get_info. heap NULL: the C library's. */
enum wal_status wal__source_lines_open(struct wal__source_lines *lines,
                                       const struct wal__heap *heap, struct wal_session *session,
                                       uint32_t stream, const char *file, struct wal_error *error);

/* Returns the next line, its payload out of line when it is a blob, or WAL_END. WAL_ECORRUPT and
 * WAL_EIO concern one entry. The payload of a shared line is valid until the next call. */
enum wal_status wal__source_lines_next(struct wal__source_lines *lines, struct wal_entry *entry,
                                       struct wal_error *error);
void wal__source_lines_close(struct wal__source_lines *lines);

/* Receives another file of a session. Returns false to stop. */
typedef bool wal__source_file_fn(void *ctx, const char *file, const char *path);

/* Visits the files of the session that are not its source, in the order in which they were imported
 * first; of a fork, not those of the session that it was forked from. A path whose line was
 * redacted is that of the source with the file's id as name. */
enum wal_status wal__source_files_visit(struct wal_session *session, wal__source_file_fn *visit,
                                        void *ctx, struct wal_error *error);

/* Read the payload of the last line returned, as wal__entry_payload_visit and
 * wal__entry_payload_verify do. */
enum wal_status wal__source_lines_read_payload(struct wal__source_lines *lines,
                                               struct wal_store *store,
                                               const struct wal_entry *entry,
                                               wal__entry_payload_fn *visit, void *ctx,
                                               struct wal_error *error);
enum wal_status wal__source_lines_check(struct wal__source_lines *lines, struct wal_store *store,
                                        const struct wal_entry *entry, struct wal_error *error);

/* Returns true if the line was imported from a view, and is not in the source's file. */
bool wal__source_line_is_from_view(const struct wal_entry *entry);

/* Return what the entry's meta records. */
bool wal__source_meta_is(const struct wal_entry *entry, const char *key, enum wal__json_kind kind);
bool wal__source_line_has_newline(const struct wal_entry *entry);
bool wal__source_line_is_opaque(const struct wal_entry *entry);

/* Writes the bytes that precede a line and returns their count. `is_open`: the line above has no
 * newline and is not a piece of an opaque file. */
size_t wal__source_line_prefix(const struct wal_entry *entry, bool is_open,
                               char bytes[WAL__LINE_PREFIX_SIZE]);

/* A line of which the import reported an issue. */
struct wal__source_issue {
    uint64_t line; /* line number, from 1 */
    uint64_t offset;
    uint64_t sequence;
};

/* Bytes in a piece of an opaque file, whose entry has an id that begins so; a longer line is
 * mapped. */
#define WAL__PIECE_SIZE ((size_t)4 << 20)
#define WAL__PIECE_ID   "piece-"

/* The comparison of a session with the beginning of a file. */
struct wal__source_match {
    const struct wal__heap *heap; /* of the issues; NULL: the C library's */
    bool is_prefix;               /* the file begins with all of the session's bytes */
    bool is_covered;              /* the session's bytes begin with all of the file */
    bool is_opaque;               /* the file is stored in pieces, not lines */
    bool is_copy;                 /* lines are stored as those of a copy */
    bool has_newline;             /* the last entry ends a line */
    bool is_redacted;             /* the last entry is redacted */
    uint64_t bytes;               /* of the session's entries, if is_prefix */
    uint64_t partial_size;        /* of the partial line; 0: none */
    uint64_t entries;             /* without the partial line */
    uint64_t lines;               /* that end with a newline */
    uint64_t native_count;        /* entries that are not lines */
    char file[WAL__FILE_ID_SIZE]; /* that ids of the entries name; or "" */
    bool has_other_files;         /* the session has lines of other files */
    char last_id[256];            /* of the last entry; or empty */
    char timestamp[65];           /* of the last entry; empty if longer */
    struct wal__source_issue *issues;
    uint32_t issue_count;
    uint32_t issue_capacity;
};

/* Compares the lines of a file, as wal__source_lines_open names it, by streaming both. *match is
 * untouched on failure. The caller deinitialises *match, which it zeroes before, in any case. heap
 * NULL: the C library's. */
enum wal_status wal__source_compare(const struct wal__heap *heap, struct wal_store *store,
                                    struct wal_session *session, uint32_t stream, const char *file,
                                    int fd, struct wal__source_match *match,
                                    struct wal_error *error);
void wal__source_match_deinit(struct wal__source_match *match);

#endif
