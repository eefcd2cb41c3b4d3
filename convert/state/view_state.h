/*
 * view_state.h - the state of a view, a file below its root: the position up to
 * which it was written, and the saved states of its files (SPEC.md 10.4).
 *
 * Invariant: a state that is incomplete, or of another session, counts as
 * absent; that costs only time.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_CONVERT_STATE_VIEW_STATE_H
#define AGENTWAL_CONVERT_STATE_VIEW_STATE_H

#include "convert/files/view_files.h"

#define WAL__VIEW_STATE_VERSION 1
#define WAL__VIEW_CHECK_KEY     ",\"check\":\""
/* Bytes of the check: 16 digits, and "}\n. */
#define WAL__VIEW_CHECK_SIZE    (sizeof(WAL__VIEW_CHECK_KEY) - 1 + 16 + 3)

/* The position up to which a view was written. */
struct wal__view_position {
    bool is_known;
    bool is_verbatim;    /* all content is verbatim lines */
    bool append_pending; /* an append was in progress */
    uint64_t entries[2]; /* entries of each stream */
    uint64_t total;      /* entries of both streams */
    uint64_t redacted;   /* redacted entries */
    /* sequence of the session's newest record; 0: an entry was not durable */
    uint64_t session_sequence;
    uint64_t entry_sequence; /* sequence of the newest entry */
    uint64_t session_hash;   /* wal__session_snapshot_hash */
    uint64_t documents;      /* records of documents */
    uint64_t unreadable;     /* entries */
    uint64_t losses[WAL__FEATURE_COUNT];
    /* Id of the entry after which the client continues in the files; empty:
     * unknown, or none. */
    char head[WAL_ID_SIZE];
};

/* What a state belongs to. */
struct wal__view_identity {
    uint8_t store[16];
    struct wal_slice session;
    const char *dialect;
};

/* Reads a state and adds its files to `files`. position->is_known is false when
 * there is none. */
enum wal_status wal__view_state_read(const char *name,
                                     const struct wal__view_identity *identity,
                                     struct wal__view_files *files,
                                     struct wal__view_position *position,
                                     struct wal__file_stamp *stamp,
                                     struct wal_error *error) WAL_MUST_USE;

/* Takes a file of a view, below its root; *place describes the view, except for
 * the root. False: no memory. */
typedef bool wal__view_state_each(void *ctx, const char *path,
                                  const struct wal_view_info *place);

/* Passes the files of a state that lead to its session: those of lines, and the
 * document of a session. Nothing, if it is not of the store. */
enum wal_status wal__view_state_list(const struct wal__view_env *env,
                                     int state_dir, const char *name,
                                     const uint8_t store[16],
                                     wal__view_state_each *each, void *ctx,
                                     struct wal_error *error) WAL_MUST_USE;

/* What a view is, and up to where it was written. */
struct wal__view_summary {
    struct wal_view_info info; /* session and dialect */
    uint64_t redacted;         /* redacted entries */
};

/* Reads whose state it is. *is_found is false when it is not one of the
 * store. */
enum wal_status wal__view_state_identify(const struct wal__view_env *env,
                                         int state_dir, const char *name,
                                         const uint8_t store[16],
                                         struct wal__view_summary *summary,
                                         bool *is_found,
                                         struct wal_error *error) WAL_MUST_USE;

/* Writes the state: files as they are after their commit, or, when
 * append_pending, as they were saved before. After a power loss there is this
 * state or, unless is_durable, the one before. */
enum wal_status wal__view_state_write(const char *name,
                                      const struct wal__view_identity *identity,
                                      const struct wal__view_files *files,
                                      const struct wal__view_position *position,
                                      bool is_durable,
                                      struct wal__file_stamp *stamp,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
