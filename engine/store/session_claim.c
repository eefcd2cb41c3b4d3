/*
 * session_claim.c - the session claims of this store handle (SPEC.md 4.1). A
 * lock byte belongs to the store's open file and does not exclude other handles
 * of this process: the list of claims does.
 *
 * Invariant: a session is in the list while its handle holds the lock byte. Any
 * thread.
 */
#include "engine/store/session.h"
#include "format/bytes/assert.h"

static struct wal_session **find_claim(struct wal__core *core, uint32_t number)
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
    holder = *find_claim(core, session->number);
    if (holder != NULL) {
        WAL__ASSERT(holder->claimed);
        if (holder != session) {
            status = wal__control_claim_refused(
                (int32_t)core->control.process_id, error);
        }
        goto done;
    }
    WAL__ASSERT(!session->claimed);
    status = wal__control_claim(&core->control, session->number,
                                &session->claim_slot, error);
    if (status == WAL_OK) {
        session->claimed = true;
        session->next_claim = core->claims;
        core->claims = session;
    }
done:
    pthread_mutex_unlock(&core->claim_mutex);
    return status;
}

/* Caller holds claim_mutex. */
static void release_claim(struct wal__core *core, struct wal_session **at)
{
    struct wal_session *session = *at;

    WAL__ASSERT(session->claimed);
    *at = session->next_claim;
    session->claimed = false;
    wal__control_release_claim(&core->control, session->number,
                               session->claim_slot);
}

void wal__session_release_claim(struct wal_session *session)
{
    struct wal__core *core = session->core;
    struct wal_session **at;

    pthread_mutex_lock(&core->claim_mutex);
    if (session->claimed) {
        at = find_claim(core, session->number);
        WAL__ASSERT(*at == session);
        release_claim(core, at);
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
