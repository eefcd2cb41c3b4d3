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

static enum wal_status hand_off(struct wal_remote *remote,
                                struct wal_session *session,
                                struct wal__own *own, struct wal_error *error)
{
    struct wal_session_move known = WAL_INIT(wal_session_move);
    struct wal__own newest = {.sequence = 0};
    uint8_t mine[16];
    uint64_t number = 0;
    enum wal_status status;

    if (wal_session_get_move(session, &known, NULL) == WAL_OK &&
        (known.flags & WAL_SESSION_MOVE_AWAY) != 0) {
        return wal__fail(error, WAL_ECLAIMED, "the session has moved to %s",
                         known.host[0] != '\0'
                             ? known.host
                             : "the machine that resumes it next");
    }
    memcpy(mine, own->store, sizeof(mine));
    status =
        wal__claim_read(remote, mine, own->session, &newest, &number, error);
    if (status != WAL_OK) {
        return status;
    }
    own->move = newest.move + 1;
    memset(own->store, 0, sizeof(own->store));
    own->host[0] = '\0';
    number++;
    status = wal__claim_create(remote, mine, number, own, error);
    if (status == WAL_OK || status == WAL_ECLAIMED) {
        enum wal_status marked = wal__claim_record(
            session, own, number, true, status == WAL_OK ? error : NULL);

        status = status == WAL_OK ? marked : status;
    }
    return status;
}

enum wal_status wal__handoff(struct wal_remote *remote, struct wal_store *store,
                             struct wal_slice id, struct wal_error *error)
{
    struct wal_session *session = NULL;
    struct wal__own own = {.sequence = 0};
    enum wal_status status = open_session(store, id, &session, &own, error);

    if (status == WAL_OK) {
        status = hand_off(remote, session, &own, error);
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
