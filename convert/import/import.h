/*
 * import.h - one call of wal_import_file or wal_import_tree: what its parts share
 * (agentwal/import.h), and the file of a source while it is imported.
 *
 * Texts that a source needs are in an arena, which is emptied between sources. A function that
 * returns a text from it returns NULL without memory; callers pass the NULL on, and
 * import->arena.has_failed is checked before anything is written.
 *
 * The lock: one import at a time reads a file, in any process.
 *
 * Lines: a file is read as lines, in bounded memory. Invariant: pieces are contiguous: their bytes,
 * each followed by a newline if has_newline, are the file. A file that grows is read up to the size
 * that it had at the start.
 *
 * The probe detects a file's dialect and session from its beginning. It ends when both are
 * determined, or after WAL__PROBE_LINES lines or WAL__PROBE_SIZE bytes. Later bytes do not change
 * the result. Invariant: equal bytes give equal probes.
 *
 * Threads: one thread at a time per import, descriptor or struct.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_IMPORT_H
#define AGENTWAL_CONVERT_IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "agentwal.h"
#include "agentwal/import.h"
#include "convert/model/dialect.h"
#include "convert/source/source_lines.h"
#include "convert/source/source_name.h"
#include "convert/state/view_state.h"
#include "engine/base/heap.h"

enum {
    WAL__IMPORT_ID_TRIES = 9 /* ids derived from one name */
};

struct wal__tree_source;

/* Must not move in memory. */
struct wal__import {
    struct wal_store *store;
    const struct wal__heap *heap;
    const struct wal__dialect *forced; /* NULL: detect the dialect */
    const struct wal__dialect *placed; /* that of the source's path, unless another is forced; or
                                        * NULL */
    wal_import_progress_fn *progress;
    wal_import_report_fn *report;
    wal_import_project_fn *project;
    void *ctx;
    char *exclude;                /* as in the options; or NULL */
    struct wal__heap_arena arena; /* for one source */
    struct wal__heap_arena walk;  /* for the whole call */
    struct wal__view_index views; /* the same */
    struct stat stat;             /* of the source's file, before it is read */
    int64_t opened_ns;            /* time of that; 0: it is of no source */
    /* of the source, for its report; or NULL */
    const char *view_session;
    /* The source is the session of its id that has its content, whatever its path was when that was
     * imported. */
    bool matches_ids;
    /* A file that is not text is refused. */
    bool refuses_binary;
    /* Of a database: rows that were changed before this time are known; the latest time of a row
     * that was read. In milliseconds, or 0. */
    int64_t since_ms;
    int64_t updated_ms;
    /* A last line without its newline is not read: it is being written. */
    bool waits_for_newline;
    bool takes_rest; /* it is read if it is JSON: nothing follows in it */
    bool has_rest;   /* there was one that was not read */
    /* Files that go on from one that is not in the store wait for the end of the walk. */
    bool defers;
    bool is_deferred; /* the file that was given last waits */
    struct wal__tree_source *deferred;
    uint32_t deferred_begin; /* those before do not wait any longer */
    uint32_t deferred_count;
    uint32_t deferred_capacity;
    /* A source that another import is writing is not reported as failed, but here. */
    bool retries;
    bool must_retry;
    bool must_sync; /* something was written that wal__import_sync makes durable */
    struct wal_import_result result;
    struct wal_error first; /* the first failure; its status, or WAL_OK */
};

/* Calls the progress callback. */
enum wal_status wal__import_progress(struct wal__import *import, const char *path, uint64_t done,
                                     uint64_t total, struct wal_error *error) WAL_MUST_USE;

/* Issues of a source, in the arena of the import. Zeroed: none. */
struct wal__import_issues {
    struct wal_import_issue *items;
    size_t count;
    size_t capacity;
};

/* Adds an issue; the texts must last as long as the arena. line 0: none. Without memory
 * arena->has_failed is set. */
void wal__import_add_issue(struct wal__heap_arena *arena, struct wal__import_issues *issues,
                           const char *path, uint64_t line, uint64_t offset, const char *reason);

/* Makes durable what the import wrote. Sessions and their lines are written without a sync each;
 * the call that imports ends with this one. */
enum wal_status wal__import_sync(struct wal__import *import, struct wal_error *error) WAL_MUST_USE;

/* Counts and reports what was imported. The caller sets all but the session's id, which is read
 * from `session`. */
enum wal_status wal__import_report(struct wal__import *import, struct wal_import_report *report,
                                   struct wal_session *session,
                                   struct wal_error *error) WAL_MUST_USE;

/* Counts and reports that a path failed with a status and *error. Returns WAL_OK if the import goes
 * on: not without memory, and not after a callback stopped it. */
enum wal_status wal__import_fail(struct wal__import *import, const char *path,
                                 enum wal_status status, struct wal_error *error) WAL_MUST_USE;

/* Fills *error for errno, of a system call on the file of a source. ESTALE: it became shorter. */
enum wal_status wal__import_errno(struct wal_error *error) WAL_MUST_USE;

/* Returns WAL_ENOMEM after an allocation from the arena has failed. */
enum wal_status wal__import_check_memory(const struct wal__import *import,
                                         struct wal_error *error) WAL_MUST_USE;

/* Copies a text, with a NUL after it. NULL: no memory. */
char *wal__import_text(struct wal__arena *arena, struct wal_slice text);

/* Joins a directory and a path below it. NULL: no memory. */
char *wal__import_path(struct wal__arena *arena, const char *root, const char *path);

/* Creates a session with the id `base`, or `base~2` to `base~9` when that is taken. */
typedef enum wal_status wal__import_create_fn(void *ctx, struct wal_session_options *options,
                                              struct wal_error *error);

enum wal_status wal__import_try_ids(wal__import_create_fn *create, void *ctx,
                                    struct wal_session_options *options, const char *base,
                                    struct wal_error *error) WAL_MUST_USE;

/* Opens the session of a source. WAL_ENOTFOUND: no session has it; WAL_ETRASHED: one in the trash
 * has it, and no other. */
enum wal_status wal__session_open_source(struct wal_store *store, const char *source,
                                         struct wal_session **session,
                                         struct wal_error *error) WAL_MUST_USE;

/* --- new sessions -------------------------------------------------------- */
#define WAL__IMPORT_TIME_SIZE 65 /* of a time with its terminator */

/* Writes a time as text, without quotes. */
void wal__import_write_time(int64_t ms, char time[WAL__IMPORT_TIME_SIZE]);

/* Returns a time as text, without quotes. NULL: it is not one of the years 1970 to 9999, or no
 * memory. */
char *wal__import_time_text(struct wal__arena *arena, int64_t ms);

/* What the metadata of an imported session says (SPEC.md 5.9). Texts may be NULL, spans empty. */
struct wal__import_about {
    const char *created;  /* the first time in the source */
    const char *imported; /* NULL: now */
    bool is_subagent;
    const char *missing; /* id of the file that it goes on from and that is not in the store */
    struct wal__json_span agent;   /* JSON strings: kind of a subagent, */
    struct wal__json_span call;    /* and id of the call that started it */
    struct wal__json_span sidecar; /* the file next to the session's that it keeps: an object */
};

/* Returns the metadata, in the arena. Empty: no memory. */
struct wal_slice wal__import_metadata(struct wal__import *import,
                                      const struct wal__import_about *about);

/* Returns an imported session's metadata with another stamp, in the arena. Empty: an import did not
 * write it, or no memory. */
struct wal_slice wal__import_metadata_stamped(struct wal__import *import, struct wal_slice metadata,
                                              const char *stamp);

/* Sets durability, metadata, and if they are not set creation time and project, of a session that
 * is about to be created. If about->created is NULL, the caller has set the creation time. The cwd
 * is set. Texts are in the arena. */
void wal__import_describe(struct wal__import *import, const struct wal__import_about *about,
                          struct wal_session_options *options);

/* Returns true if the metadata is empty or has nothing but what an import writes, or one of an
 * older library wrote. */
bool wal__import_is_metadata(struct wal_slice metadata);

/* Sets the time of lines that come before the first time: `known`, of the entry before them, or if
 * that is empty `created`, or if that is NULL the session's. Imports that run at the same time
 * write the same. */
enum wal_status wal__import_first_time(struct wal_session *session, struct wal_slice known,
                                       const char *created, char time[WAL__IMPORT_TIME_SIZE],
                                       struct wal_error *error) WAL_MUST_USE;

/* --- changes to an imported session -------------------------------------- */

/* Gives the session another title, unless it has another one than `before`. */
enum wal_status wal__import_title(struct wal_session *session, struct wal_slice before,
                                  struct wal_slice title, struct wal_error *error) WAL_MUST_USE;

/* *is_modified: the session has documents, checkpoints, heads or metadata that
 * an import did not write, or a title but no entries. Does not check the
 * entries. */
enum wal_status wal__import_is_modified(struct wal_session *session, bool *is_modified,
                                        struct wal_error *error) WAL_MUST_USE;

/* Counts the entries, of all streams, that are no lines such as an import writes; one at least
 * where the session is damaged. */
enum wal_status wal__import_count_others(struct wal_session *session, uint64_t *others,
                                         struct wal_error *error) WAL_MUST_USE;

/* --- regular files ------------------------------------------------------- */

/* Opens a regular file in a directory (or AT_FDCWD) without following a symbolic link. Returns -1
 * with errno set, ELOOP when it is not a regular file. */
int wal__file_open_regular(int directory, const char *name, struct stat *stat);

static inline int64_t wal__time_ns(const struct timespec *time)
{
    return (int64_t)time->tv_sec * 1000000000 + time->tv_nsec;
}

/* Reads `size` bytes, or up to the end of the file. Returns the count, or -1 with errno set. */
ssize_t wal__file_read_full(int fd, void *data, size_t size);

/* Bytes that a compressed file may expand to. */
#define WAL__UNPACKED_SIZE_MAX ((uint64_t)4 << 30)

/* Expands a file of Zstandard frames into a temporary file without a name, *plain, which the caller
 * closes. WAL_EBADJSON: it is cut short or damaged, or other bytes follow its last frame.
 * WAL_ETOOBIG: it expands to more than `most` bytes. */
enum wal_status wal__file_unpack(const struct wal__heap *heap, int fd, uint64_t most, int *plain,
                                 struct wal_error *error) WAL_MUST_USE;

/* --- the file ------------------------------------------------------------ */

/*
 * Waits until no other import, in any process, reads the file: both would add its new lines. The
 * lock ends with the descriptor. A program that keeps the lock for more than ten seconds, and a
 * file system without locks, do not prevent the import. WAL_ECALLBACK: the progress callback
 * stopped it.
 */
enum wal_status wal__source_file_lock(struct wal__import *import, int fd, const char *name,
                                      struct wal_error *error) WAL_MUST_USE;

/* Reduces *size, that of the file, to the end of its last complete line. Returns 0, or -1 with
 * errno set. */
int wal__source_file_end(int fd, uint64_t *size);

/* --- lines --------------------------------------------------------------- */

struct wal__piece {
    const char *data; /* valid until the next call */
    size_t size;
    uint64_t offset;  /* in the file */
    uint64_t line;    /* line number, from 1 */
    bool has_newline; /* a newline follows */
};

struct wal__line_reader {
    const struct wal__heap *heap;
    int fd;
    bool is_opaque;  /* return pieces, ignore newlines */
    bool is_whole;   /* return the file as one piece, without a newline at its end */
    uint64_t size;   /* of the file at the start */
    uint64_t offset; /* of the first byte that was not returned */
    uint64_t line;
    char *window;
    size_t begin;
    size_t end;
    size_t capacity;
    void *mapped; /* a line longer than a window, or NULL */
    size_t mapped_size;
    uint32_t losses; /* of pages, when it was mapped */
};

void wal__line_reader_init(struct wal__line_reader *reader, const struct wal__heap *heap, int fd,
                           uint64_t size, bool is_opaque, uint64_t offset);
void wal__line_reader_deinit(struct wal__line_reader *reader);

/* Continues at the given offset, the start of a line; `line` lines precede it. */
void wal__line_reader_seek(struct wal__line_reader *reader, uint64_t offset, uint64_t line);

/* Returns 1 and the next piece, 0 at the end of the file, or -1 with errno set; ESTALE: the file
 * became shorter. The piece before, if it has more than WAL__PIECE_SIZE, may then have held zeros
 * in the place of what went. */
int wal__line_reader_next(struct wal__line_reader *reader, struct wal__piece *piece);

struct wal__file_probe {
    const struct wal__dialect *dialect;
    uint64_t end;       /* offset at which the probe ended */
    bool is_at_end;     /* that is the end of the file */
    uint64_t nonblank;  /* lines that are not blank */
    uint64_t parsed;    /* of these, valid JSON */
    uint64_t first;     /* number of the first of these; or 0 */
    bool is_opaque;     /* most non-blank lines are not JSON */
    bool is_whole;      /* the file is one object, in several lines, of a dialect */
    bool has_mainline;  /* a line of the conversation is not in a side chain */
    bool has_sidechain; /* a line is in a side chain */
    char *session;      /* in the arena; these are NULL when not found */
    char *stated;       /* id in the lines where that of the session is another */
    char *cwd;
    char *created;
    char *parent;      /* id of the session that this one was forked from, or that started it */
    bool is_subagent;  /* it does a part of the work of that session */
    char *base;        /* id of the file that this one goes on from */
    uint64_t base_end; /* the ordinals of its lines that precede this one are below */
};

/* Returns true if both describe the same session. */
bool wal__file_probe_equal(const struct wal__file_probe *a, const struct wal__file_probe *b);

/* Probes the file into *probe, which the caller zeroes. `forced`: assume this dialect, unless NULL.
 * Returns 0, or -1 with errno set. */
int wal__file_probe(struct wal__heap_arena *arena, int fd, uint64_t size,
                    const struct wal__dialect *forced, struct wal__file_probe *probe);

/* Counts the lines of a file. Returns 0, or -1 with errno set. */
int wal__file_count_lines(const struct wal__heap *heap, int fd, uint64_t size, uint64_t *lines);

#endif
