/*
 * handles.c - the handles of a store: how many live, what each call checks of
 * the one it is given, which of them claim a session (core.h; SPEC.md 4.1,
 * 4.5). Any thread.
 *
 * Invariants: references is the number of live handles, plus 1 until wal_close; the thread that
 * takes it to 0 destroys the core. A claim is in the list while its handle holds the lock byte.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/store/core.h"
#include "format/bytes/assert.h"

void wal__core_retain(struct wal__core *core)
{
    uint32_t before = atomic_fetch_add_explicit(&core->references, 1, memory_order_relaxed);

    WAL__ASSERT(before > 0 && before < UINT32_MAX);
}

/* Gives up a reference and returns how many are left. The core is valid only while there are
 * any. */
static uint32_t release(struct wal__core *core)
{
    /* What other threads did with their handles happens before the core is destroyed. */
    uint32_t before = atomic_fetch_sub_explicit(&core->references, 1, memory_order_acq_rel);

    WAL__ASSERT(before > 0);
    if (before > 1) {
        return before - 1;
    }
    WAL__ASSERT(core->closed && core->destroy != NULL);
    /* In a child, locks of the parent's threads may be held for ever. */
    if (wal__control_is_same_process(&core->control)) {
        core->destroy(core);
    }
    return 0;
}

void wal__core_release(struct wal__core *core)
{
    if (core != NULL) {
        (void)release(core);
    }
}

uint32_t wal__core_release_store(struct wal__core *core)
{
    WAL__ASSERT(!core->closed && !core->committer_ready);
    atomic_store_explicit(&core->closed, true, memory_order_relaxed);
    return release(core);
}

enum wal_status wal__core_fail_closed(const struct wal__core *core, struct wal_error *error)
{
    return wal__fail_at(error, WAL_ECLOSED, 0, core->env.root, 0,
                        "the store of this handle was closed; close the "
                        "handle, and open the store again");
}

/* --- checks --------------------------------------------------------------- */

/* Handles of a parent process are refused: locks and threads did not come along. */
enum wal_status wal__check_process(const struct wal__core *core, struct wal_error *error)
{
    if (core == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    if (!wal__control_is_same_process(&core->control)) {
        return wal__fail_at(error, WAL_EFORKED, 0, core->env.root, 0,
                            "the handle belongs to the parent process; open the "
                            "store again in this one");
    }
    return WAL_OK;
}

enum wal_status wal__check_core(const struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = wal__check_process(core, error);

    return status == WAL_OK ? wal__core_check_open(core, error) : status;
}

enum wal_status wal__check_output(const struct wal__core *core, const struct wal__struct *type,
                                  const void *output, struct wal_error *error)
{
    enum wal_status status = wal__check_core(core, error);

    return status == WAL_OK ? wal__struct_check_output(type, output, error) : status;
}

enum wal_status wal__check_writable(const struct wal__core *core, struct wal_error *error)
{
    enum wal_status status = wal__check_core(core, error);

    if (status == WAL_OK && core->outdated) {
        return wal__fail_at(error, WAL_EVERSION, 0, core->env.root, 0,
                            "the store has format version %u, which can be read; "
                            "migrate it to version %d to write to it",
                            core->manifest.version, (int)WAL__FORMAT_VERSION);
    }
    if (status == WAL_OK && core->env.read_only) {
        return wal__fail_at(error, WAL_EREADONLY, 0, core->env.root, 0, "%s",
                            core->env.is_replica
                                ? "the store is a replica, which is only read: `agentwal "
                                  "remote pull --take-over` makes it the one that is written to"
                                : "the store is open for reading only");
    }
    return status;
}

/* --- sessions; state lock for reading ----------------------------------- */

enum wal_status wal__session_find(struct wal__core *core, uint32_t number,
                                  struct wal__summary *summary, struct wal_error *error)
{
    enum wal_status status = wal__catalogue_get(&core->catalogue, number, summary);

    if (status == WAL_OK && (summary->flags & WAL__SUMMARY_DELETED) != 0) {
        return wal__fail(error, WAL_ENOTFOUND, "session \"%.*s\" was deleted",
                         (int)summary->id.size, (const char *)summary->id.data);
    }
    if (status == WAL_ENOTFOUND) {
        /* The catalogue forgets deleted sessions. */
        return wal__fail(error, status, "the session was deleted");
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot read the catalogue: %s", wal_status_text(status));
    }
    return WAL_OK;
}

enum wal_status wal__session_fail_trashed(struct wal__span id, struct wal_error *error)
{
    return wal__fail(error, WAL_ETRASHED, "session \"%.*s\" is in the trash; undelete it first",
                     (int)id.size, (const char *)id.data);
}

enum wal_status wal__session_check_sequence(const struct wal__summary *summary, uint64_t expected,
                                            struct wal_error *error)
{
    char actual[24];

    if (summary->last_sequence == expected) {
        return WAL_OK;
    }
    (void)snprintf(actual, sizeof(actual), "%" PRIu64, summary->last_sequence);
    return wal__conflict(error, WAL_EXPECTATION_SEQUENCE, actual,
                         "session \"%.*s\" has changed: its newest record has "
                         "sequence number %s, not %" PRIu64,
                         (int)summary->id.size, (const char *)summary->id.data, actual, expected);
}

/* --- claims -------------------------------------------------------------- */

static struct wal__claim **find_claim(struct wal__core *core, uint32_t session)
{
    struct wal__claim **at = &core->claims;

    while (*at != NULL && (*at)->session != session) {
        at = &(*at)->next;
    }
    return at;
}

/* A lock byte belongs to the store's open file and does not exclude other handles of this process:
 * the list of claims does. */
enum wal_status wal__core_claim(struct wal__core *core, struct wal__claim *claim, uint32_t session,
                                struct wal_error *error)
{
    enum wal_status status = WAL_OK;
    const struct wal__claim *holder;

    pthread_mutex_lock(&core->claim_mutex);
    holder = *find_claim(core, session);
    WAL__ASSERT(holder != NULL ? holder->is_held : !claim->is_held);
    if (holder == NULL) {
        status = wal__control_claim(&core->control, session, &claim->slot, error);
        if (status == WAL_OK) {
            claim->is_held = true;
            claim->session = session;
            claim->next = core->claims;
            core->claims = claim;
        }
    } else if (holder != claim) {
        status = wal__control_claim_refused((int32_t)core->control.process_id, error);
    }
    pthread_mutex_unlock(&core->claim_mutex);
    return status;
}

/* Caller holds claim_mutex. */
static void release_claim(struct wal__core *core, struct wal__claim **at)
{
    struct wal__claim *claim = *at;

    WAL__ASSERT(claim->is_held);
    *at = claim->next;
    claim->is_held = false;
    wal__control_release_claim(&core->control, claim->session, claim->slot);
}

void wal__core_release_claim(struct wal__core *core, struct wal__claim *claim)
{
    pthread_mutex_lock(&core->claim_mutex);
    if (claim->is_held) {
        struct wal__claim **at = find_claim(core, claim->session);

        WAL__ASSERT(*at == claim);
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
