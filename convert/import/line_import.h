/*
 * line_import.h - turns the lines of a file into entries of a session.
 *
 * Every line is imported, whatever it contains. An entry's id is the line's own id if no other
 * entry has it, else an id made from its line number. Ids are looked up in the session and in the
 * pending batch; nothing else is kept of imported lines.
 *
 * A last line without a newline is an entry if it is an object, an array or a string: only white
 * space can follow in the same line. Any other is stored as a partial line and read again when the
 * file has grown.
 *
 * In a dialect that links in turns, a line continues after the last line of its turn. This is
 * decided by the lines above it alone, so that a file that is read in parts gives the same entries.
 *
 * A line that its client wrote again is kept under another id, marked as a replay. A line of
 * another session whose parent is not in the file is kept on a branch that the head is not on.
 *
 * Invariants: known lines are not appended again, but their issues are reported again. The same
 * file gives the same entries in any number of imports. Entries are appended in the order in which
 * they were added. A batch stays below the engine's limit for one group.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_LINE_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_LINE_IMPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"
#include "convert/import/import.h"
#include "convert/model/model_table.h"
#include "convert/source/source_lines.h"
#include "engine/base/heap.h"

#define WAL__IMPORT_BATCH_ENTRIES 512
#define WAL__LINE_TITLE_SIZE      4096
#define WAL__IMPORT_BATCH_SIZE    ((size_t)4 << 20)

#define WAL__IMPORT_BATCH_SLOTS 2048 /* a power of two; at most a quarter is used */

/* Must not move in memory. */
struct wal__import_batch {
    struct wal_session *session;
    struct wal_entry entries[WAL__IMPORT_BATCH_ENTRIES];
    struct wal__heap_arena texts; /* of the entries */
    /* Hash table by id: index of the entry + 1; 0: free. */
    uint16_t slots[WAL__IMPORT_BATCH_SLOTS];
    uint32_t count;
    uint64_t size;                        /* of the texts */
    char title[WAL__LINE_TITLE_SIZE + 1]; /* set together with the entries */
    bool has_title;
    uint64_t appended; /* entries, in all batches */
    uint64_t duplicates;
};

/* Appends the collected entries. */
enum wal_status wal__import_batch_flush(struct wal__import_batch *batch, struct wal_error *error);

#define WAL__LINE_ID_SIZE 256

enum {
    WAL__IMPORT_STEPS = 64 /* newest lines whose steps are in memory */
};

/* An entry on the way from the last line to the parent that a line names. */
struct wal__import_step {
    char id[WAL__LINE_ID_SIZE];
    char parent[WAL__LINE_ID_SIZE];
    enum wal__line_step step;
    uint64_t answer;  /* hash of the answer that it is a part of, or 0 */
    bool is_side;     /* on a side chain of a file that has others, or a stranger */
    bool is_stranger; /* a line of another session, below none of the file's */
};

struct wal__import_lines {
    struct wal__heap_arena *arena; /* for texts; its heap for the rest */
    const char *name;              /* path of the file, in issues */
    const struct wal__dialect *dialect;
    const struct wal__file_probe *probe;
    struct wal__source_match match; /* what the session has already */
    struct wal__import_batch batch;
    struct wal_store *store;
    struct wal_entry_cursor *cursor; /* looks up entries by id */
    int fd;                          /* the file */
    char file[WAL__FILE_ID_SIZE];    /* ids of its entries name it; or "" */
    const char *path;                /* to be kept with its first line; or NULL */
    char base[WAL__LINE_ID_SIZE];    /* entry that its first line comes after; or "" */
    const char *missing;             /* issue of its first line: what it goes on from; or NULL */
    bool keeps_head;                 /* another file of the session is newer */
    uint32_t stream;                 /* stream of the lines */
    uint64_t file_size;
    uint64_t known_lines;                /* lines that the session has */
    uint64_t sequence;                   /* of the known line that is parsed again; 0: none */
    char previous_id[WAL__LINE_ID_SIZE]; /* of the previous line; or "" */
    char main_id[WAL__LINE_ID_SIZE];     /* of the last line that moves the head; or "" */
    /* In a dialect that links in turns: id of the last line that is on no side chain; or "". */
    char turn_id[WAL__LINE_ID_SIZE];
    struct wal__import_step steps[WAL__IMPORT_STEPS];
    size_t step_count; /* lines that were noted in all */
    /* The id of the last entry, by the hash of the id that its line states, where an earlier entry
     * has that id. */
    struct wal__model_table renamed;
    bool is_open;  /* the previous line has no newline yet */
    bool has_rest; /* the rest of the previous line was read */
    char rest[WAL__LINE_PREFIX_SIZE];
    size_t rest_size;
    bool has_partial_line; /* a partial line was added */
    char time[65];         /* of the last line that had a time */
    bool sets_title;       /* the last title in the lines becomes the session's */
    bool is_titled;        /* the session has a title that is in no line */
    struct wal__import_issues issues;
};

/* Prepares adding lines after those that lines->match describes. */
enum wal_status wal__import_lines_begin(struct wal__import_lines *lines,
                                        struct wal_session *session, struct wal_error *error);

/* Reports the issues of a known line again. */
enum wal_status wal__import_lines_repeat_issues(struct wal__import_lines *lines,
                                                const struct wal__piece *piece, uint64_t sequence,
                                                struct wal_error *error);

/* Adds the next piece of a file of lines. */
enum wal_status wal__import_lines_add(struct wal__import_lines *lines,
                                      const struct wal__piece *piece, struct wal_error *error);

/* Must be called after the last piece: stores what the file ends with. */
enum wal_status wal__import_lines_finish(struct wal__import_lines *lines, struct wal_error *error);

/* Returns true if the text may follow an entry in its line: white space only. */
bool wal__line_is_rest(const struct wal__piece *piece);

/* Reports JSON errors of an opaque file if it begins like JSON. */
enum wal_status wal__import_lines_check_opaque(struct wal__import_lines *lines, const char *data,
                                               size_t size, struct wal_error *error);

/* Adds the next piece of an opaque file. */
enum wal_status wal__import_lines_add_opaque(struct wal__import_lines *lines,
                                             const struct wal__piece *piece,
                                             struct wal_error *error);

void wal__import_lines_deinit(struct wal__import_lines *lines);

#endif
