/*
 * session_claim.c - handles that claim their session (SPEC.md 4.1): a lock byte
 * is of the store's open file, so that of its handles one at a time is let
 * through here. Invariant: a session is in the list while its handle has the
 * lock byte. Any thread.
 */
#include "engine/store/session.h"

static struct wal_session **find(struct wal__core *core, uint32_t number)
{
    struct wal_session **at = &core->claims;

    while (*at != NULL && (*at)->number != number) {
        at = &(*at)->next_claim;
    }
    return at;
}

enum wal_status wal__session_claim(struct wal_session *session,
                                   struct wal_error *error)
{
    struct wal__core *core = session->core;
    enum wal_status status = WAL_OK;
    struct wal_session *holder;

    pthread_mutex_lock(&core->claim_mutex);
    holder = *find(core, session->number);
    if (holder != NULL && holder != session) {
        status = wal__control_claim_refused((int32_t)core->control.process_id,
                                            error);
    } else if (holder == NULL) {
        status = wal__control_claim(&core->control, session->number,
                                    &session->claim_slot, error);
        if (status == WAL_OK) {
            session->claimed = true;
            session->next_claim = core->claims;
            core->claims = session;
        }
    }
    pthread_mutex_unlock(&core->claim_mutex);
    return status;
}

/* The mutex is held. */
static void release_claim(struct wal__core *core, struct wal_session **at)
{
    struct wal_session *session = *at;

    *at = session->next_claim;
    session->claimed = false;
    wal__control_release_claim(&core->control, session->number,
                               session->claim_slot);
}

void wal__session_release_claim(struct wal_session *session)
{
    struct wal__core *core = session->core;

    pthread_mutex_lock(&core->claim_mutex);
    if (session->claimed) {
        release_claim(core, find(core, session->number));
    }
    pthread_mutex_unlock(&core->claim_mutex);
}

void wal__core_release_claims(struct wal__core *core)
{
    pthread_mutex_lock(&core->claim_mutex);
    while (core->claims != NULL) {
        release_claim(core, &core->claims);
    }
    pthread_mutex_unlock(&core->claim_mutex);
}
