/*
 * state.h - what a view remembers in the folder of its root: how far it was
 * written, and how its files were left.
 *
 * Invariant: a state that cannot be read whole, or is of another session, is
 * none; nothing is lost with it but time.
 *
 * Threads: one thread at a time.
 */
#ifndef AGENTWAL_VIEW_STATE_H
#define AGENTWAL_VIEW_STATE_H

#include "view/files.h"

/* How far a view was written. */
struct wal__position {
    bool is_known;
    bool is_verbatim;    /* all of it is lines as they stand */
    bool is_open;        /* something that may not stay was being appended */
    uint64_t entries[2]; /* of each stream */
    uint64_t total;      /* of both */
    uint64_t redacted;   /* of those that the session sees */
    uint64_t seen;       /* the session's newest record; 0: there was one that
                           * was not durable */
    uint64_t newest;     /* sequence of the newest entry */
    uint64_t known;      /* hash of what the session is known by */
    uint64_t documents;  /* records of documents */
    uint64_t unreadable; /* entries */
    uint64_t losses[WAL__FEATURE_COUNT];
};

/* Of what a state is. */
struct wal__subject {
    uint8_t store[16];
    struct wal_slice session;
    const char *dialect;
};

/* Reads a state, and adds the files that it names. position->is_known is false
 * where there is none. */
enum wal_status
wal__state_read(const char *name, const struct wal__subject *subject,
                struct wal__view_files *files, struct wal__position *position,
                struct wal__stamp *stamp, struct wal_error *error) WAL_MUST_USE;

/* Whether it is a state of that store and has that file, of lines; *place then
 * says whose view that is, but for the root. */
enum wal_status wal__state_find(const struct wal__view_env *env, int folder,
                                const char *name, const uint8_t store[16],
                                const char *path, struct wal_view_place *place,
                                bool *is_found,
                                struct wal_error *error) WAL_MUST_USE;

/* Writes it, with the files as they are left once they are committed, or of an
 * open position as they are now. With `is_durable` it is on stable storage. */
enum wal_status wal__state_write(const char *name,
                                 const struct wal__subject *subject,
                                 const struct wal__view_files *files,
                                 const struct wal__position *position,
                                 bool is_durable, struct wal__stamp *stamp,
                                 struct wal_error *error) WAL_MUST_USE;

#endif
