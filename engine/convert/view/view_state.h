/*
 * view_state.h - what a view remembers in the folder of its root: how far it
 * was written, and how its files were left.
 *
 * Invariant: a state that cannot be read whole, or is of another session, is
 * none; nothing is lost with it but time.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_STATE_H
#define AGENTWAL_ENGINE_CONVERT_VIEW_VIEW_STATE_H

#include "engine/convert/render/view_files.h"

/* How far a view was written. */
struct wal__view_position {
    bool is_known;
    bool is_verbatim;    /* all of it is lines as they stand */
    bool append_pending; /* something that may not stay was being appended */
    uint64_t entries[2]; /* of each stream */
    uint64_t total;      /* of both */
    uint64_t redacted;   /* of those that the session sees */
    /* the session's newest record; 0: there was one that was not durable */
    uint64_t session_sequence;
    uint64_t entry_sequence; /* sequence of the newest entry */
    uint64_t session_hash;   /* wal__session_snapshot_hash */
    uint64_t documents;      /* records of documents */
    uint64_t unreadable;     /* entries */
    uint64_t losses[WAL__FEATURE_COUNT];
};

/* Of what a state is. */
struct wal__view_identity {
    uint8_t store[16];
    struct wal_slice session;
    const char *dialect;
};

/* Reads a state, and adds the files that it names. position->is_known is false
 * where there is none. */
enum wal_status wal__view_state_read(const char *name,
                                     const struct wal__view_identity *identity,
                                     struct wal__view_files *files,
                                     struct wal__view_position *position,
                                     struct wal__file_stamp *stamp,
                                     struct wal_error *error) WAL_MUST_USE;

/* Whether it is a state of that store and has that file, of lines; *place then
 * says whose view that is, but for the root. */
enum wal_status wal__view_state_find(const struct wal__view_env *env,
                                     int state_dir, const char *name,
                                     const uint8_t store[16], const char *path,
                                     struct wal_view_info *place,
                                     bool *is_found,
                                     struct wal_error *error) WAL_MUST_USE;

/* Writes it, with the files as they are left once they are committed, or of an
 * open position as they are now. With `is_durable` it is on stable storage. */
enum wal_status wal__view_state_write(const char *name,
                                      const struct wal__view_identity *identity,
                                      const struct wal__view_files *files,
                                      const struct wal__view_position *position,
                                      bool is_durable,
                                      struct wal__file_stamp *stamp,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
