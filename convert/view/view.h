/*
 * view.h - a view: its parts, how tests open one, and the import of what
 * another program added to it: lines of its main file, or documents (SPEC.md
 * 10).
 *
 * Invariant: the knowledge about the files is from the last flush, and is used only while their
 * stamps are unchanged.
 *
 * Threads: one thread at a time per view.
 */
#ifndef AGENTWAL_CONVERT_VIEW_VIEW_H
#define AGENTWAL_CONVERT_VIEW_VIEW_H

#include "convert/render/converter.h"
#include "convert/state/view_state.h"
#include "engine/base/struct_size.h"

#define WAL__VIEW_KEY_SIZE 40

/* A line that the import could not place as expected. */
struct wal__view_issue {
    uint64_t offset; /* of the line in the file */
    const char *reason;
};

struct wal_view {
    struct wal__view_env env;
    struct wal_store *store;
    struct wal_session *session; /* a separate handle */
    const struct wal__dialect *dialect;
    char *root;
    char *path;                   /* the last result of wal_view_path */
    char *id;                     /* of the session */
    char key[WAL__VIEW_KEY_SIZE]; /* prefix of the names of state files */
    struct wal__view_identity identity;
    struct wal__view_files files;
    struct wal__view_position position;
    struct wal__file_stamp state; /* of the state file, as written */
    struct wal__converter convert;
    struct wal__view_issue *issues; /* of the last import */
    uint32_t issue_count;
    uint32_t issue_capacity;
    bool is_disabled;       /* the store has no persistence; no file is written */
    bool is_root_known;     /* the store's list has the root */
    bool is_never_verbatim; /* for tests: always convert */
};

/* Writes the prefix of the names of a view's state files: the dialect, and a hash of the session's
 * id. */
void wal__view_key(char key[WAL__VIEW_KEY_SIZE], const char *dialect, const char *session);

/* Sets the id of the session, the prefix of the names of state files, and the identity; store,
 * dialect and env are set. Sets is_disabled. */
enum wal_status wal__view_set_identity(struct wal_view *view, struct wal_slice id,
                                       struct wal_error *error) WAL_MUST_USE;

/* Returns the dialect that views can be written in, or NULL. */
const struct wal__dialect *wal__view_find_dialect(struct wal_slice name);

/* Creates a view without a session; `root` may be empty. */
enum wal_status wal__view_create(struct wal_store *store, const struct wal__dialect *dialect,
                                 struct wal_slice root, const struct wal__view_env *env,
                                 struct wal_view **view, struct wal_error *error) WAL_MUST_USE;

/* Opens a view with a given environment. */
enum wal_status wal__view_open(struct wal_store *store, struct wal_session *session,
                               const struct wal_view_options *options,
                               const struct wal__view_env *env, struct wal_view **view,
                               struct wal_error *error) WAL_MUST_USE;

/* Checks that the store is open, that this process opened it, and an optional output. A view claims
 * nothing, so that unclaiming only checks the handle. */
enum wal_status wal__view_check_call(const struct wal_view *view, const struct wal__struct *type,
                                     const void *report, struct wal_error *error) WAL_MUST_USE;

/* Sets what the file of a fork goes on from, in session.base: the lines before the fork point, if
 * the client has them in a file and `head`, the id of an entry or empty, is after them. Fails
 * without memory alone. */
enum wal_status wal__view_find_base(const struct wal_view *view,
                                    struct wal__session_snapshot *snapshot, const char *head,
                                    struct wal_error *error) WAL_MUST_USE;

/* --- the lock ------------------------------------------------------------ */

/* The owner sets view, which has a root, and lock_fd = -1, and zeroes the rest. */
struct wal__view_lock {
    struct wal_view *view;
    char state[WAL__VIEW_NAME_SIZE]; /* name of the state file */
    int lock_fd;
};

/* Waits until no call in any process holds the lock, and loads the state unless it is unchanged
 * since this view wrote it. Release it in any case. */
enum wal_status wal__view_lock_acquire(struct wal__view_lock *view_lock,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__view_lock_release(struct wal__view_lock *view_lock);
enum wal_status wal__view_lock_save_state(struct wal__view_lock *view_lock,
                                          const struct wal__view_position *position,
                                          bool is_durable, struct wal_error *error) WAL_MUST_USE;

/* Discards all knowledge about the files. */
void wal__view_invalidate(struct wal_view *view);

/* --- known roots --------------------------------------------------------- */

/* Adds a root, which exists, to the list of the store, durably; flags are of enum
 * wal_store_view_root_flag. When it is new there, those that do not exist any more are removed. */
enum wal_status wal__view_root_add(struct wal_store *store, const struct wal__dialect *dialect,
                                   const char *root, uint32_t flags,
                                   struct wal_error *error) WAL_MUST_USE;

/* --- ids in the file ----------------------------------------------------- */

/* Zeroed: no id is known. */
struct wal__written_ids {
    struct wal__heap_arena memory;
    struct wal__model_table items;       /* item, by hash of its id in the file */
    struct wal__model_table provisional; /* the same after the stable part */
    struct wal__model_table parts;       /* last part, by hash of the item */
    struct wal__json_span last;          /* the last item in the file */
    bool is_known;
};

/* --- one line ------------------------------------------------------------ */

#define WAL__IMPORT_BATCH_MAX 256 /* entries per batch */

/* An import in progress. */
struct wal__view_importer {
    struct wal_view *view;
    struct wal__view_lock view_lock;
    struct wal__session_snapshot snapshot;
    struct wal_view_import_result report;
    struct wal__view_file *file;  /* the view's main file */
    struct wal__file_stamp stamp; /* stamp of the opened file */
    /* of the file up to the end of the imported lines */
    struct wal__fingerprint fingerprint;
    struct wal__buf buf;
    int fd;
    struct wal__written_ids written_ids;
    bool has_loaded_ids;
    struct wal_entry_cursor *cursor;      /* for lookups by id */
    struct wal__heap_arena import_arena;  /* lives as long as the import */
    struct wal__heap_arena scratch;       /* lives as long as a batch */
    struct wal__model_table imported_ids; /* by hash of the line's id */
    struct wal_slice last_written;        /* id of the last entry in the view */
    struct wal_slice previous_id;         /* id of the previous line; empty: none yet */
    struct wal_slice time;
    /* The log's head is where the file showed it, or moved with the file's lines: it follows them
     * as the client's does. */
    bool is_following;
    char head[WAL_ID_SIZE]; /* then: the head after the lines so far */
    struct wal_entry entries[WAL__IMPORT_BATCH_MAX];
    uint32_t count;
    size_t size;
};

/* A line and the entry made from it. */
struct wal__imported_line {
    struct wal__json_span text;
    struct wal__line_info line;
    uint64_t offset;
    struct wal_slice line_id; /* its id, if valid in the log */
    struct wal_entry entry;
    struct wal__json_span after; /* item of a document that it goes on after */
    char position_hash[17];
    bool is_inexact;
    bool is_known; /* the log has the line already */
};

/* --- the import ---------------------------------------------------------- */

/* importer->file is the session's document. `append` imports a line and appends what was collected.
 * Sets *is_changed if the state must be saved. */
enum wal_status wal__view_import_documents(
    struct wal__view_importer *importer,
    enum wal_status (*append)(struct wal__view_importer *importer, struct wal__json_span line,
                              uint64_t offset, struct wal_error *error),
    bool *is_changed, struct wal_error *error) WAL_MUST_USE;

#endif
