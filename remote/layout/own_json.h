/*
 * own_json.h - an object that says where a session of a store goes on (SPEC.md
 * 11.3), `UUID/own/ID/NUMBER`:
 *
 *   {"version":1,"session":ID,"move":M,"store":UUID,"host":HOST,
 *    "entry":ENTRY,"sequence":N,"claimed":MS}
 *
 * Invariant: the decoder accepts any bytes. Of what it accepts every field is
 * within its range. Outputs are untouched on failure.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_OWN_JSON_H
#define AGENTWAL_REMOTE_LAYOUT_OWN_JSON_H

#include "remote/layout/object_json.h"

enum {
    WAL__OWN_JSON_MAX = 8192
};

struct wal__own {
    char session[WAL_ID_SIZE];
    uint64_t move;     /* rises with the moves of the session: from 1 */
    uint8_t store[16]; /* that has the session now; all zero: none yet */
    char host[WAL__EPOCH_HOST_SIZE]; /* printable ASCII; empty: none yet */
    char entry[WAL_ID_SIZE];         /* the last one that moved; empty: none */
    uint64_t sequence;               /* the last one of the replica */
    int64_t claimed_ms;              /* Unix time, milliseconds */
};

/* What names a session in names of objects: the first half of the SHA-256 of
 * its id. WAL_OK or WAL_ENOMEM. */
enum wal_status wal__own_id(const char *session, uint8_t id[16]) WAL_MUST_USE;

/* Appends the JSON: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__own_encode(const struct wal__own *own,
                                struct wal__buf *out) WAL_MUST_USE;
/* WAL_ECORRUPT, or WAL_EVERSION; error->file is the name. */
enum wal_status wal__own_decode(struct wal_slice bytes, const char *name,
                                struct wal__own *own,
                                struct wal_error *error) WAL_MUST_USE;

#endif
