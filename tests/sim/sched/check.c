/*
 * check.c - a session, and at the end the whole store, as it is read, against
 * the ledger; and a number in the metadata that has been counted up as often
 * as was acknowledged (sched.h).
 */
#include "tests/sim/sched/internal.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include "format/bytes/assert.h"

/* The memory of a look: it survives the process that is killed during one. */
static struct ledger_checker *checkers[SCHED_PROCESSES];
static jmp_buf failed;

/* Goes on in sched__check_all when no process runs. */
static void on_failure(void *ctx, const char *text)
{
    sched__fail(ctx, "%s", text);
    longjmp(failed, 1);
}

void sched__check_free(void)
{
    for (uint32_t i = 0; i < SCHED_PROCESSES; i++) {
        ledger_checker_destroy(checkers[i]);
        checkers[i] = NULL;
    }
}

/* ---------------------------------------------------------- metadata --- */

/* {"n":1NNN} */
static uint32_t parse_counter(struct wal_slice metadata)
{
    char text[SCHED_TEXT] = "";
    unsigned count = 0;

    if (metadata.size == 10) {
        (void)snprintf(text, sizeof(text), "%.10s",
                       (const char *)metadata.data);
    }
    return sscanf(text, "{\"n\":1%3u}", &count) == 1 ? count : SCHED_NONE;
}

uint32_t sched__check_counter(struct sched *sched, uint32_t session,
                              struct wal_slice metadata, uint64_t since)
{
    uint32_t count = parse_counter(metadata);
    uint32_t least = 0;
    uint32_t most = 0;

    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        const struct ledger_batch *batch = &sched->ledger.batches[i];

        if (sched->ops[i].increments && batch->session == session) {
            least +=
                batch->state >= LEDGER_WRITTEN && batch->known_since <= since;
            most += batch->state != LEDGER_REFUSED;
        }
    }
    if (count < least || count > most) {
        sched__fail(sched, "session %u has counted to %d, not %u to %u",
                    session, (int)count, least, most);
    }
    return count;
}

/* A fork begins with the number of its source. */
static bool read_counter(struct sched_process *process,
                         struct wal_session *handle, uint32_t session,
                         uint64_t since)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = {.struct_size = sizeof(error)};
    enum wal_status status = wal_session_get_info(handle, &info, &error);

    if (!sched__check_status(process, status, &error, "a session's status")) {
        return false;
    }
    if (session < SCHED_SHARED_SESSIONS && !process->read_only) {
        (void)sched__check_counter(process->sched, session, info.metadata,
                                   since);
    }
    return !process->sched->failed;
}

/* ----------------------------------------------------------- reading --- */

static bool accepts(void *ctx, enum wal_status status,
                    const struct wal_error *error, const char *what)
{
    (void)sched__check_status(ctx, status, error, what);
    return true;
}

/* Visible records must remain visible. */
static void note_visible(struct sched *sched, const struct ledger_view *view,
                         const struct ledger_look *look, bool *seen)
{
    const struct ledger *ledger = &sched->ledger;

    for (uint32_t i = 0; i < ledger->batch_count && !sched->failed; i++) {
        const struct ledger_batch *batch = &ledger->batches[i];

        if ((look == NULL || batch->session == look->session) &&
            batch->count + batch->part_count > 0 &&
            ledger_is_visible(ledger, view, i)) {
            sched__mark_visible(
                sched, i, look != NULL && look->durable && batch->count > 0);
            if (seen != NULL) {
                seen[i] = true;
            }
        }
    }
    for (uint32_t i = 0; i < ledger->entry_count; i++) {
        sched->counts->outcomes[SCHED_BLOBS_READ] +=
            view->entries[i] && ledger->entries[i].size > SCHED_INLINE;
    }
}

/* Whether the log is poisoned: what is known to be durable then may be less
 * than what was acknowledged before a loss of power, until it is healed. */
static bool is_poisoned(const struct sched_process *process)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};

    return wal_store_get_info(process->store, &info, NULL) != WAL_OK ||
           info.status != WAL_OK;
}

void sched__read(struct sched_process *process, struct wal_session *handle,
                 uint32_t session, bool durable, uint64_t since)
{
    struct sched *sched = process->sched;
    const bool lags = process->read_only || (durable && is_poisoned(process));
    const struct ledger_look look = {.handle = handle,
                                     .session = session,
                                     .durable = durable,
                                     .lags = lags,
                                     .seen = process->seen,
                                     .since = since,
                                     .accepts = accepts,
                                     .ctx = process};
    struct ledger_checker **checker = &checkers[process->slot];
    const struct ledger_view *view;

    if (*checker == NULL) {
        *checker = ledger_checker_create();
    }
    ledger_on_failure(on_failure, sched);
    sched->counts->outcomes[SCHED_READS]++;
    if (ledger_look(*checker, &sched->ledger, process->store, &look, &view)) {
        note_visible(sched, view, &look, process->seen);
        (void)read_counter(process, handle, session, since);
    }
}

/* -------------------------------------------------------- everything --- */

/* A session that exists was made, and one that was made exists. */
static void check_session(struct sched_process *process, uint32_t session,
                          const struct ledger_view *view)
{
    struct sched *sched = process->sched;
    struct wal_error error = {.struct_size = sizeof(error)};
    struct wal_session *handle = NULL;
    char id[LEDGER_TEXT];

    if (view->sessions[session]
            ? !sched__may_exist(sched, session)
            : sched__must_exist(sched, session, sched->steps)) {
        sched__fail(sched, "session %u %s", session,
                    view->sessions[session] ? "is there, and was never made"
                                            : "is lost");
    }
    if (!view->sessions[session] || sched->failed) {
        return;
    }
    ledger_session_id(session, id);
    if (wal_session_open(process->store, ledger_slice(id), &handle, &error) !=
        WAL_OK) {
        sched__fail(sched, "session %u: opening it fails: %s", session,
                    error.text);
        return;
    }
    (void)read_counter(process, handle, session, sched->steps);
    wal_session_close(handle);
}

/* Operations that only create or count have no visible record. */
static void settle(struct sched *sched, const struct ledger_view *view)
{
    ledger_resolve(&sched->ledger, view);
    for (uint32_t i = 0; i < sched->ledger.batch_count; i++) {
        struct ledger_batch *batch = &sched->ledger.batches[i];

        if (batch->state == LEDGER_WRITTEN) {
            batch->state = LEDGER_DURABLE;
        }
    }
}

uint64_t sched__check_all(struct sched_process *process, bool settles)
{
    static struct ledger_view view;
    struct sched *sched = process->sched;

    ledger_on_failure(on_failure, sched);
    if (setjmp(failed) != 0) {
        return 0;
    }
    ledger_check(&sched->ledger, process->store, LEDGER_NO_LOSS, &view);
    note_visible(sched, &view, NULL, NULL);
    for (uint32_t i = 0; i < sched->ledger.session_count && !sched->failed;
         i++) {
        check_session(process, i, &view);
    }
    if (sched->options.replaces && !sched->failed) {
        sched__check_replaced(process);
    }
    if (settles) {
        settle(sched, &view);
    }
    return view.digest;
}
