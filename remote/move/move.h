/*
 * move.h - sessions that go on at another machine (SPEC.md 11.3): who has one now, claiming it, and
 * what a store learns of its sessions.
 *
 * A claim is an object of the store that had the session until then, the next one of that session.
 * Of two machines that claim it at the same time one creates it. Each claim has a higher move than
 * those before it, wherever they are, so that claims are followed in one direction only.
 *
 * Threads: one at a time per call and store.
 */
#ifndef AGENTWAL_REMOTE_MOVE_MOVE_H
#define AGENTWAL_REMOTE_MOVE_MOVE_H

#include "agentwal/admin.h"
#include "agentwal/remote.h"
#include "remote/history/remote.h"
#include "remote/layout/layout.h"

/* --- claim.c ------------------------------------------------------------ */

/* Reads the newest claim of a session of the store; *number is 0, and *own as it was, when there is
 * none. */
enum wal_status wal__claim_read(struct wal_remote *remote, const uint8_t uuid[16],
                                const char *session, struct wal__own *own, uint64_t *number,
                                struct wal_error *error) WAL_MUST_USE;
/* Creates the claim of this number. WAL_ECLAIMED: another machine did so at the same time, and *own
 * is its claim; one of the same store is success. */
enum wal_status wal__claim_create(struct wal_remote *remote, const uint8_t uuid[16],
                                  uint64_t number, struct wal__own *own,
                                  struct wal_error *error) WAL_MUST_USE;
/* Creates the next claim for own->store, unless the newest one is for it. */
enum wal_status wal__claim_next(struct wal_remote *remote, const uint8_t uuid[16],
                                struct wal__own *own, uint64_t *number,
                                struct wal_error *error) WAL_MUST_USE;
/* Fills what is known of this machine, its store and now. */
enum wal_status wal__claim_init(struct wal__own *own, const char *session, struct wal_store *store,
                                struct wal_error *error) WAL_MUST_USE;
/* Fills with which entry the session ends in the store. */
enum wal_status wal__claim_set_end(struct wal__own *own, struct wal_session *session,
                                   struct wal_store *store, struct wal_error *error) WAL_MUST_USE;
/* Records the move of a session in its store. */
enum wal_status wal__claim_record(struct wal_session *session, const struct wal__own *own,
                                  uint64_t number, bool is_away,
                                  struct wal_error *error) WAL_MUST_USE;

/* Where a session goes on. */
struct wal__holder {
    uint8_t uuid[16];      /* of the store that has it, or had it before `mine` */
    bool is_mine;          /* it goes on in the store that asks */
    uint64_t number;       /* of the last claim below that store, or 0 */
    uint64_t move;         /* the highest one that was seen */
    struct wal__own claim; /* the last one that was followed; or that by which
                            * the store handed the session off */
};

/* Follows the claims from holder->uuid, which may be `mine`, to the store that has the session now,
 * whose parts the remote has. WAL_ECLAIMED when it has not, unless `takes_over`: then the last
 * store before that. */
enum wal_status wal__holder_find(struct wal_remote *remote, const uint8_t mine[16],
                                 const char *session, bool takes_over, struct wal__holder *holder,
                                 struct wal_error *error) WAL_MUST_USE;
/* A store of the remote other than `mine` from which the session was claimed, else the only other
 * one. WAL_ENOTFOUND, WAL_EINVAL: there are several. */
enum wal_status wal__holder_find_other(struct wal_remote *remote, const uint8_t mine[16],
                                       const char *session, uint8_t uuid[16],
                                       struct wal_error *error) WAL_MUST_USE;
/* The host of the newest writer of a store. WAL_ENOTFOUND: there is none. */
enum wal_status wal__holder_host(struct wal_remote *remote, const uint8_t uuid[16],
                                 char host[WAL__EPOCH_HOST_SIZE],
                                 struct wal_error *error) WAL_MUST_USE;

/* --- sessions.c --------------------------------------------------------- */

/* Stores a session that appends are refused to as a bundle. WAL_EINVAL, WAL_ETOOBIG: it can have
 * none. */
enum wal_status wal__bundle_put(struct wal_remote *remote, struct wal_store *store,
                                struct wal_session *session, const char *id,
                                struct wal_error *error) WAL_MUST_USE;

/* Reads the bundle of a session of the store to a file, which is replaced; name is that of the
 * object, size its bytes. WAL_ENOTFOUND: there is none of the session as it is. */
enum wal_status wal__bundle_get(struct wal_remote *remote, const uint8_t uuid[16],
                                const char *session, const char *path,
                                char name[WAL__STORE_OBJECT_SIZE], uint64_t *size,
                                struct wal_error *error) WAL_MUST_USE;

#endif
