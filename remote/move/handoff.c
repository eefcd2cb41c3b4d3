/*
 * handoff.c - gives a session away before another machine asks for it, and
 * takes it back (move.h).
 */
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "remote/move/move.h"

/* Opens the session, and fills a claim for this store with its end. */
static enum wal_status open_session(struct wal_store *store,
                                    struct wal_slice id,
                                    struct wal_session **session,
                                    struct wal__own *own,
                                    struct wal_error *error)
{
    char text[WAL_ID_SIZE];
    enum wal_status status = wal_session_open(store, id, session, error);

    if (status != WAL_OK) {
        return status;
    }
    (void)snprintf(text, sizeof(text), "%.*s", WAL_ARG(id));
    status = wal__claim_init(own, text, store, error);
    return status == WAL_OK ? wal__claim_set_end(own, *session, store, error)
                            : status;
}

/* --- giving away -------------------------------------------------------- */

static enum wal_status fail_moved(const char *host, struct wal_error *error)
{
    return wal__fail(error, WAL_ECLAIMED, "the session has moved to %s",
                     host[0] != '\0' ? host
                                     : "the machine that resumes it next");
}

/* WAL_EBUSY unless the remote has the session to its end. */
static enum wal_status check_stored(struct wal_remote *remote,
                                    struct wal_store *store,
                                    struct wal_session *session,
                                    struct wal_error *error)
{
    struct wal_remote_status found = WAL_INIT(wal_remote_status);
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_get_info(session, &info, error);

    if (status == WAL_OK) {
        status = wal_remote_get_status(remote, store, &found, error);
    }
    if (status == WAL_OK && found.sequence < info.last_sequence) {
        status = wal__fail(error, WAL_EBUSY,
                           "the remote has the store up to number %llu, and "
                           "the session ends at %llu: push the store, and hand "
                           "the session off again",
                           (unsigned long long)found.sequence,
                           (unsigned long long)info.last_sequence);
    }
    return status;
}

/* Refuses appends, as the claim of this number will say: nothing can be added
 * to the session after what is pushed then. */
static enum wal_status mark(struct wal_session *session,
                            const struct wal__own *own, uint64_t number,
                            struct wal_error *error)
{
    enum wal_status status =
        wal__claim_record(session, own, number, true, error);

    return status == WAL_OK
               ? wal__fail(error, WAL_EBUSY,
                           "appends to the session are refused from now on: "
                           "push the store, and hand the session off again")
               : status;
}

/* Stores the session by itself, and that it has moved. Without that the next
 * machine pulls the store, so that only a call that was ended is a failure. */
static enum wal_status offer(struct wal_remote *remote, struct wal_store *store,
                             struct wal_session *session,
                             const struct wal__own *own,
                             struct wal_error *error)
{
    struct wal_error unused = WAL_INIT(wal_error);
    enum wal_status status =
        wal__bundle_put(remote, store, session, own->session, &unused);

    if (status == WAL_OK) {
        status = wal__sessions_put(remote, store, &unused);
    }
    if (status == WAL_ECALLBACK) {
        wal__error_copy(error, &unused);
        return status;
    }
    return WAL_OK;
}

/* The session is marked, and the remote has it to its end. */
static enum wal_status claim(struct wal_remote *remote, struct wal_store *store,
                             struct wal_session *session,
                             const uint8_t mine[16], struct wal__own *own,
                             uint64_t number, struct wal_error *error)
{
    enum wal_status status = offer(remote, store, session, own, error);

    if (status == WAL_OK) {
        status = wal__claim_create(remote, mine, number, own, error);
    }
    if (status == WAL_ECLAIMED) {
        (void)!wal__claim_record(session, own, number, true, NULL);
    }
    return status;
}

static enum wal_status hand_off(struct wal_remote *remote,
                                struct wal_store *store,
                                struct wal_session *session,
                                struct wal__own *own, struct wal_error *error)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal__own newest = {.sequence = 0};
    uint8_t mine[16];
    uint64_t number = 0;
    enum wal_status status = wal_session_get_move(session, &known, error);
    const bool is_away =
        status == WAL_OK && (known.flags & WAL_SESSION_MOVE_AWAY) != 0;

    if (is_away && !wal__uuid_is_zero(known.store)) {
        return fail_moved(known.host, error);
    }
    memcpy(mine, own->store, sizeof(mine));
    if (status == WAL_OK || status == WAL_ENOTFOUND) {
        status = wal__claim_read(remote, mine, own->session, &newest, &number,
                                 error);
    }
    if (status != WAL_OK) {
        return status;
    }
    if (is_away && number >= known.number &&
        memcmp(newest.store, mine, sizeof(mine)) != 0) {
        /* Handed off before, and perhaps resumed since. */
        if (wal__uuid_is_zero(newest.store)) {
            return WAL_OK;
        }
        status = wal__claim_record(session, &newest, number, true, error);
        return status == WAL_OK ? fail_moved(newest.host, error) : status;
    }
    number++;
    own->move = newest.move + 1;
    memset(own->store, 0, sizeof(own->store));
    own->host[0] = '\0';
    if (!is_away || known.number < number) {
        return mark(session, own, number, error);
    }
    status = check_stored(remote, store, session, error);
    return status == WAL_OK
               ? claim(remote, store, session, mine, own, number, error)
               : status;
}

enum wal_status wal__handoff(struct wal_remote *remote, struct wal_store *store,
                             struct wal_slice id, struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct wal__own own = {.sequence = 0};
    enum wal_status status = open_session(store, id, &session, &own, error);

    if (status == WAL_OK) {
        status = hand_off(remote, store, session, &own, error);
    }
    wal_session_close(session);
    return status;
}

/* --- taking back -------------------------------------------------------- */

/* Claims the session below the store that has it now, and below this one. */
static enum wal_status claim_back(struct wal_remote *remote,
                                  const struct wal_session_move *known,
                                  struct wal__own *own, uint64_t *number,
                                  struct wal_error *error)
{
    struct wal__holder holder = {.is_mine = true};
    uint8_t mine[16];
    enum wal_status status;

    memcpy(mine, own->store, sizeof(mine));
    memcpy(holder.uuid, mine, sizeof(holder.uuid));
    status = wal__holder_find(remote, mine, own->session, true, &holder, error);
    own->move = holder.move + 1;
    if (status == WAL_OK && !holder.is_mine) {
        status = wal__claim_create(remote, holder.uuid, holder.number + 1, own,
                                   error);
    } else if (status == WAL_OK && !wal__uuid_is_zero(known->store) &&
               memcmp(known->store, mine, sizeof(mine)) != 0) {
        /* The store that has it need not be in the remote to read of it. */
        status = wal__claim_next(remote, known->store, own, number, error);
    }
    return status == WAL_OK ? wal__claim_next(remote, mine, own, number, error)
                            : status;
}

enum wal_status wal__take_back(struct wal_remote *remote,
                               struct wal_store *store, struct wal_slice id,
                               struct wal_error *error)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal_session *session = NULL;
    struct wal__own own = {.sequence = 0};
    uint64_t number = 0;
    enum wal_status status = open_session(store, id, &session, &own, error);

    if (status == WAL_OK) {
        status = wal_session_get_move(session, &known, error);
    }
    if (status == WAL_OK && (known.flags & WAL_SESSION_MOVE_AWAY) != 0) {
        if (remote != NULL) {
            status = claim_back(remote, &known, &own, &number, error);
        }
        if (status == WAL_OK) {
            number = number > known.number ? number : known.number;
            status = wal__claim_record(session, &own, number, false, error);
        }
    }
    wal_session_close(session);
    return status;
}
