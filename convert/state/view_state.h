/*
 * view_state.h - the states of the views of one root, by the paths of their files, and the files of
 * all views below roots (SPEC.md 10.4, 10.6).
 *
 * A state is a file below the root: the position up to which a view was written, and the saved
 * states of its files. The states of a root are read once. When the directory of the states has
 * changed and a path is not found, those that changed are read again.
 *
 * Invariant: a state that is incomplete, or of another session, counts as absent; that costs only
 * time. Nothing but the views' files remains in a client's folder.
 *
 * Threads: one thread at a time per struct.
 */
#ifndef AGENTWAL_CONVERT_STATE_VIEW_STATE_H
#define AGENTWAL_CONVERT_STATE_VIEW_STATE_H

#include <limits.h>
#include <stdbool.h>

#include "agentwal/convert.h"
#include "convert/clients/client.h"
#include "convert/files/view_files.h"
#include "convert/files/view_fs.h"
#include "engine/base/containers.h"
#include "engine/base/heap.h"

/* The position up to which a view was written. */
struct wal__view_position {
    bool is_known;
    bool is_verbatim;    /* all content is verbatim lines */
    bool append_pending; /* an append was in progress */
    uint64_t entries[2]; /* entries of each stream */
    uint64_t total;      /* entries of both streams */
    uint64_t redacted;   /* wal__session_items_count_redacted */
    /* sequence of the session's newest record; 0: an entry was not durable */
    uint64_t session_sequence;
    uint64_t entry_sequence; /* sequence of the newest entry */
    uint64_t session_hash;   /* wal__session_snapshot_hash */
    uint64_t documents;      /* records of documents */
    uint64_t unreadable;     /* entries */
    uint64_t losses[WAL__FEATURE_COUNT];
    /* Id of the entry after which the client continues in the files; empty: unknown, or none. */
    char head[WAL_ID_SIZE];
};

/* What a state belongs to. */
struct wal__view_identity {
    uint8_t store[16];
    struct wal_slice session;
    const char *dialect;
};

/* Reads a state and adds its files to `files`. position->is_known is false when there is none. */
enum wal_status wal__view_state_read(const char *name, const struct wal__view_identity *identity,
                                     struct wal__view_files *files,
                                     struct wal__view_position *position,
                                     struct wal__file_stamp *stamp,
                                     struct wal_error *error) WAL_MUST_USE;

/* What a view is, and up to where it was written. */
struct wal__view_summary {
    struct wal_view_info info; /* session and dialect */
    uint64_t redacted;         /* wal__session_items_count_redacted */
};

/* Reads whose state it is. *is_found is false when it is not one of the store. */
enum wal_status wal__view_state_identify(const struct wal__view_env *env, int state_dir,
                                         const char *name, const uint8_t store[16],
                                         struct wal__view_summary *summary, bool *is_found,
                                         struct wal_error *error) WAL_MUST_USE;

/* Writes the state: files as they are after their commit, or, when append_pending, as they were
 * saved before. After a power loss there is this state or, unless is_durable, the one before. */
enum wal_status wal__view_state_write(const char *name, const struct wal__view_identity *identity,
                                      const struct wal__view_files *files,
                                      const struct wal__view_position *position, bool is_durable,
                                      struct wal__file_stamp *stamp,
                                      struct wal_error *error) WAL_MUST_USE;

/* --- the place ----------------------------------------------------------- */

/* Writes the directory of the states of a root, which exists, and returns true if that is not in
 * the root: the root is a client's folder and has no state from before. */
bool wal__view_place(const char *root, char path[PATH_MAX]);

/* --- states of a root ---------------------------------------------------- */

/* A file with the state of a view. */
struct wal__view_state_file {
    char *name;
    char *session;                      /* NULL: the state is not one of the store */
    const struct wal__dialect *dialect; /* or NULL */
    struct wal__buf paths;              /* of its files, below the root, each with its NUL */
    struct wal__file_stamp stamp;
    bool is_listed; /* in the present listing */
};

struct wal__view_states {
    struct wal__view_env env;
    uint8_t store[16];
    char *name; /* of the directory */
    struct wal__file_stamp stamp;
    bool exists;
    struct wal__view_state_file *items;
    uint32_t count;
    uint32_t capacity;
    struct wal__hashmap by_path; /* index of the state, by hash of each path */
};

/* --- the view of a file -------------------------------------------------- */

struct wal__view_index {
    const struct wal__heap *heap;
    struct wal_store *store;
    uint8_t store_id[16]; /* zeros: the store has none, and no views */
    bool has_store_id;
    /* The last folder in and above which no state is, or an empty text. */
    char bare[WAL__CLIENT_PATH_SIZE];
    struct wal__view_states **items; /* of each directory */
    uint32_t count;
    uint32_t capacity;
};

void wal__view_index_init(struct wal__view_index *index, struct wal_store *store,
                          const struct wal__heap *heap);
void wal__view_index_deinit(struct wal__view_index *index);

/* Finds the view that a file belongs to. WAL_ENOTFOUND: none. Of files in one folder after another
 * the folder is searched once: to find views that were exported meanwhile, refresh first. */
enum wal_status wal__view_index_find(struct wal__view_index *index, struct wal_slice path,
                                     struct wal_view_info *place,
                                     struct wal_error *error) WAL_MUST_USE;

/* Forgets which folder has no state. */
void wal__view_index_refresh(struct wal__view_index *index);

#endif
