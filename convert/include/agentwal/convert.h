/*
 * agentwal/convert.h - views: a session as files of another program, kept up to date (SPEC.md,
 * Views). The library is libagentwal-convert. The conventions of agentwal.h apply.
 */
#ifndef AGENTWAL_CONVERT_H
#define AGENTWAL_CONVERT_H

#include "agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_view;
struct wal_view_cursor;

/* Takes a piece of a view's output; data holds until it returns. A result other than 0 makes the
 * flush fail with WAL_ECALLBACK and that number in error->sys_errno. It may call this library, but
 * not with the view. */
typedef int32_t wal_view_put_fn(void *ctx, const void *data, uint64_t size);

struct wal_view_options {
    uint32_t struct_size;
    uint32_t reserved;
    struct wal_slice dialect; /* a name that wal_view_dialect returns */
    struct wal_slice root;    /* directory in which the other program looks for
                               * sessions; made when it is missing, with its
                               * parents. Empty: put is called */
    wal_view_put_fn *put;     /* takes the lines instead of files. Of a client
                               * that keeps a session in many documents: the
                               * one file that it exports and imports. Other
                               * documents are left out. Or null */
    void *ctx;                /* of put */
};

enum wal_view_flag {
    WAL_VIEW_REPLACED = 1u << 0 /* a file was created, or written anew and
                                 * renamed over the old one */
};

/* What a flush did. The library fills it. */
struct wal_view_flush_result {
    uint32_t struct_size;
    uint32_t flags;      /* enum wal_view_flag */
    uint64_t lines;      /* added to the files */
    uint64_t bytes;      /* written */
    uint64_t entries;    /* of the session in the files */
    uint64_t sequence;   /* of the newest of them, or 0 */
    uint64_t unreadable; /* entries that the store cannot read; left out */
};

/* What an import of a view did. The library fills it. */
struct wal_view_import_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t lines;      /* whole lines after those that the view wrote */
    uint64_t appended;   /* that became entries */
    uint64_t duplicates; /* that the session had from this file already */
    uint64_t damaged;    /* that are not JSON; they became entries too */
    uint64_t unknown;    /* with an unknown parent; they went under the last
                          * entry that the view wrote */
};

/* How a listed view differs from its session. */
enum wal_view_info_flag {
    /* The session was deleted: the files hold what it had. */
    WAL_VIEW_INFO_DELETED = 1u << 0,
    /* Entries of the session were redacted since the view was written, or that is not known. */
    WAL_VIEW_INFO_REDACTED = 1u << 1,
    /* The states in the root cannot be read: session is empty, and may be any. */
    WAL_VIEW_INFO_UNREADABLE = 1u << 2
};

/* A view; texts are terminated by NUL. The library fills it. */
struct wal_view_info {
    uint32_t struct_size;
    uint32_t reserved;
    char session[WAL_ID_SIZE];
    char dialect[32];
    char root[4096];
    uint32_t flags; /* enum wal_view_info_flag, of a listed view; else 0 */
};

/* Returns the name of the dialect with this index, from 0 on, or null after the last one. Threads:
 * any. */
WAL_API const char *wal_view_dialect(uint32_t index);

/*
 * Creates a view of a session: files in which another program finds it.
 *
 * No file is touched before wal_view_flush, and with WAL_OPEN_NOOP none ever is. The view opens the
 * session again, so that `session` may be closed. Several views, also of one session and in several
 * processes, may exist at the same time. Free *view with wal_view_close.
 *
 * Threads: one at a time may use `session` during the call, since the slices of its
 * wal_session_get_info end. Errors: WAL_ENOTFOUND for the dialect.
 */
WAL_API WAL_MUST_USE enum wal_status wal_view_open(struct wal_store *store,
                                                   struct wal_session *session,
                                                   const struct wal_view_options *options,
                                                   struct wal_view **view, struct wal_error *error);

/* Returns the path of a stream's file, with the root, terminated by NUL; it holds until the next
 * call on the view, or its close. It depends on the session's metadata and is final once the
 * session has entries. Threads: one at a time. Errors: WAL_ENOTFOUND when the dialect has no file
 * of that stream. */
WAL_API WAL_MUST_USE enum wal_status wal_view_path(struct wal_view *view, uint32_t stream,
                                                   const char **path, struct wal_error *error);

/*
 * Brings the files up to the durable end of the log, never beyond it.
 *
 * First syncs the store, as wal_sync does. The cost is proportional to what is new since the last
 * flush, of any process; a change of what was written before (a redaction, a moved head) writes the
 * session anew. A file is appended to, or replaced by rename; after a crash it may lack its end,
 * which the next flush adds. With put every flush passes all lines. result may be null.
 *
 * Threads: one at a time. Errors: WAL_ECHANGED when a file (error->file) holds bytes that this view
 * did not write: it is left as it is and can be imported; WAL_EOUTSIDE for a path out of the root;
 * WAL_ECALLBACK, WAL_EACCESS, WAL_ENOSPACE, and those of wal_sync and wal_entry_cursor_open. The
 * next flush continues.
 */
WAL_API WAL_MUST_USE enum wal_status wal_view_flush(struct wal_view *view,
                                                    struct wal_view_flush_result *result,
                                                    struct wal_error *error);

/* Returns what the dialect could not express in the last flush, from index 0 on: a constant name,
 * terminated by NUL, and a count; WAL_END after the last. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_view_loss(const struct wal_view *view, uint32_t index,
                                                   const char **name, uint64_t *count,
                                                   struct wal_error *error);

/*
 * Appends to the session the lines that another program added to the main file of the view, or the
 * messages that it added to the view's documents, durably.
 *
 * Each whole line, or message, becomes an entry with WAL_ENTRY_LINE under the entry that it names.
 * The head follows the other program; if the session went on too, the lines are another branch. A
 * partial line, or a message that is being written, waits for the next import. A changed title in a
 * document becomes the session's. The files are only read; the next flush may append to them or
 * replace them without loss. A repeated import adds nothing, also after a crash. result may be
 * null.
 *
 * Threads: one at a time. Errors: WAL_ECHANGED when more than the end of the file changed: nothing
 * was appended; WAL_ENOTFOUND when there is no file, the view was never written, or the dialect has
 * neither; WAL_EBUSY when a flush was interrupted: flush first; WAL_EINVAL for a view with put;
 * those of wal_append and wal_entry_cursor_open.
 */
WAL_API WAL_MUST_USE enum wal_status wal_view_import(struct wal_view *view,
                                                     struct wal_view_import_result *result,
                                                     struct wal_error *error);

/* Returns the issues of the last import, from index 0 on: the offset in bytes of a line in the
 * file, and a constant reason, terminated by NUL; WAL_END after the last. Threads: one at a
 * time. */
WAL_API WAL_MUST_USE enum wal_status wal_view_issue(const struct wal_view *view, uint32_t index,
                                                    uint64_t *offset, const char **reason,
                                                    struct wal_error *error);

/* Finds the view of a session of this store that has path as its main file, by the state that views
 * keep in the directories above it, at most eight levels. Threads: any. Errors: WAL_ENOTFOUND when
 * there is no view, or no file. */
WAL_API WAL_MUST_USE enum wal_status wal_view_find(struct wal_store *store, struct wal_slice path,
                                                   struct wal_view_info *info,
                                                   struct wal_error *error);

/* ---------------------------------------- views that a store knows of --- */

/*
 * Adds the root of views in a dialect to the list that the store keeps (SPEC.md 10.7), durably;
 * does nothing when it is there already.
 *
 * wal_view_flush does so with a store that is open for writing. Call it for one that is open for
 * reading: it writes a file of the list, and nothing else of the store. The root must exist. A
 * store in memory, or with persistence off, keeps no list: nothing is done.
 *
 * Threads: any. Errors: WAL_ENOTFOUND for the dialect, and when there is no root; WAL_EREADONLY or
 * WAL_EACCESS when the list may not be written; WAL_ELIMIT when it has 4,096 entries whose roots
 * exist; WAL_EIO, WAL_ENOSPACE.
 */
WAL_API WAL_MUST_USE enum wal_status wal_view_root_add(struct wal_store *store,
                                                       struct wal_slice dialect,
                                                       struct wal_slice root,
                                                       struct wal_error *error);

enum wal_view_cursor_flag {
    /* Only views that may hold what was deleted or redacted: those with a flag. */
    WAL_VIEW_CURSOR_STALE = 1u << 0
};

struct wal_view_cursor_options {
    uint32_t struct_size;
    uint32_t flags;           /* enum wal_view_cursor_flag */
    struct wal_slice session; /* only views of it; empty: of all sessions */
};

/*
 * Lists the views of this store below the roots in its list, as they are now, by the states in
 * these roots.
 *
 * A root that does not exist any more is removed from the list, and one without a state of this
 * store is left out. A damaged entry of the list counts as missing. The cursor is a copy: it may be
 * used after wal_close, and while views change. options may be null. Close *cursor with
 * wal_view_cursor_close.
 *
 * Threads: any. Errors: WAL_EIO when the list cannot be read, or no directory is in its place.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_view_cursor_open(struct wal_store *store, const struct wal_view_cursor_options *options,
                     struct wal_view_cursor **cursor, struct wal_error *error);

/* Fills *info with the next view, or returns WAL_END. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_view_cursor_next(struct wal_view_cursor *cursor,
                                                          struct wal_view_info *info,
                                                          struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_view_cursor_close(struct wal_view_cursor *cursor);

/*
 * Brings a view that a cursor listed up to its session: flushes it, or, when the session was
 * deleted, removes its files and its state, durably.
 *
 * result is that of the flush and may be null; zeros after a removal. What is no file of a view
 * remains: checkpoints and copies of files that were exported next to it, and lines of files that
 * the client shares between sessions.
 *
 * Threads: any. Errors: those of wal_view_flush and wal_session_open, and WAL_ENOTFOUND when the
 * root does not exist. With WAL_ECHANGED a file (error->file) that another program changed is left
 * as it is.
 */
WAL_API WAL_MUST_USE enum wal_status wal_view_update(struct wal_store *store,
                                                     const struct wal_view_info *info,
                                                     struct wal_view_flush_result *result,
                                                     struct wal_error *error);

/* Frees the view; its files remain. view may be null. */
WAL_API void wal_view_close(struct wal_view *view);

#ifdef __cplusplus
}
#endif

#endif
