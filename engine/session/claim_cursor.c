/*
 * claim_cursor.c - the claims of sessions (agentwal/admin.h; SPEC.md 4.1), and a cursor over a copy
 * of them: it is used by one thread at a time and does not follow later changes. The claims are
 * read before the state lock is taken: the lock catches up with the log, so that a session which
 * another process made and claimed is known by then.
 */
#include "engine/session/session.h"

#include <stdlib.h>

#include "engine/base/error.h"
#include "engine/store/input_text.h"
#include "format/bytes/assert.h"

struct wal_claim_cursor {
    struct wal__core *core;
    uint32_t count;
    uint32_t next;
    struct wal__claim_holder holders[WAL__CLAIMS];
    struct wal__span ids[WAL__CLAIMS]; /* in texts */
    uint8_t texts[WAL__CLAIMS * WAL__ID_MAX];
};

static int compare_sessions(const void *left, const void *right)
{
    const struct wal__claim_holder *a = left;
    const struct wal__claim_holder *b = right;

    return a->session < b->session ? -1 : a->session > b->session;
}

/* Copies the ids of the sessions; drops claims of sessions that were deleted. State lock for
 * reading. */
static enum wal_status resolve_ids(struct wal__core *core, struct wal_claim_cursor *cursor,
                                   struct wal_error *error)
{
    struct wal_error own = {.struct_size = sizeof(own)};
    uint8_t *at = cursor->texts;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < cursor->count; i++) {
        struct wal__summary summary;
        enum wal_status status =
            wal__session_find(core, cursor->holders[i].session, &summary, &own);

        if (status == WAL_ENOTFOUND) {
            continue;
        }
        if (status != WAL_OK) {
            wal__error_copy(error, &own);
            return status;
        }
        WAL__ASSERT(summary.id.size <= WAL__ID_MAX);
        memcpy(at, summary.id.data, summary.id.size);
        cursor->ids[kept] = (struct wal__span){at, summary.id.size};
        cursor->holders[kept++] = cursor->holders[i];
        at += summary.id.size;
    }
    cursor->count = kept;
    return WAL_OK;
}

static enum wal_status fill(struct wal__core *core, struct wal_claim_cursor *cursor,
                            struct wal_error *error)
{
    enum wal_status status =
        wal__control_list_claims(&core->control, cursor->holders, &cursor->count, error);

    if (status == WAL_OK) {
        status = wal__core_read_lock(core, error);
    }
    if (status != WAL_OK) {
        return status;
    }
    qsort(cursor->holders, cursor->count, sizeof(cursor->holders[0]), compare_sessions);
    status = resolve_ids(core, cursor, error);
    wal__core_unlock(core);
    return status;
}

/* Opens a cursor over the claims at this moment, by session number; an empty one with persistence
 * off. Takes the state lock. */
static enum wal_status claim_cursor_open(struct wal__core *core, struct wal_claim_cursor **cursor,
                                         struct wal_error *error)
{
    struct wal_claim_cursor *opened = wal__heap_zalloc(core->env.heap, sizeof(*opened));
    enum wal_status status;

    if (opened == NULL) {
        return wal__no_memory(error);
    }
    opened->core = core;
    wal__core_retain(core);
    status = fill(core, opened, error);
    if (status != WAL_OK) {
        wal_claim_cursor_close(opened);
        return status;
    }
    *cursor = opened;
    return WAL_OK;
}

/* The next claim, or WAL_END. Texts are valid until the close. */
static enum wal_status claim_cursor_next(struct wal_claim_cursor *cursor, struct wal_claim *claim)
{
    const struct wal__claim_holder *holder = &cursor->holders[cursor->next];

    if (cursor->next == cursor->count) {
        return WAL_END;
    }
    *claim = (struct wal_claim){
        .struct_size = sizeof(*claim),
        .flags = holder->is_own ? WAL_CLAIM_OWN : 0U,
        .session_number = holder->session,
        .process_id = (int32_t)holder->process_id,
        .session_id = wal__text_slice(cursor->ids[cursor->next]),
    };
    cursor->next++;
    return WAL_OK;
}

void wal_claim_cursor_close(struct wal_claim_cursor *cursor)
{
    struct wal__core *core;

    if (cursor == NULL) {
        return;
    }
    core = cursor->core;
    wal__heap_free(core->env.heap, cursor);
    wal__core_release(core);
}

enum wal_status wal_session_claim(struct wal_session *session, struct wal_error *error)
{
    enum wal_status status = wal__check_writable(session == NULL ? NULL : session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    return wal__core_claim(session->core, &session->claim, session->number, error);
}

enum wal_status wal_session_unclaim(struct wal_session *session, struct wal_error *error)
{
    enum wal_status status = wal__check_session(session, error);

    if (status == WAL_OK) {
        wal__core_release_claim(session->core, &session->claim);
    }
    return status;
}

/* --- the list ------------------------------------------------------------ */

enum wal_status wal_claim_cursor_open(struct wal_store *store, struct wal_claim_cursor **cursor,
                                      struct wal_error *error)
{
    enum wal_status status = wal__check_core(store == NULL ? NULL : &store->core, error);

    if (status == WAL_OK && cursor == NULL) {
        status = wal__invalid(error, "the place for the cursor is null");
    }
    return status == WAL_OK ? claim_cursor_open(&store->core, cursor, error) : status;
}

enum wal_status wal_claim_cursor_next(struct wal_claim_cursor *cursor, struct wal_claim *claim,
                                      struct wal_error *error)
{
    struct wal_claim own = WAL_INIT(wal_claim);
    enum wal_status status;

    if (cursor == NULL) {
        return wal__invalid(error, "the handle is null");
    }
    status = wal__core_check_open(cursor->core, error);
    if (status == WAL_OK) {
        status = wal__struct_check_output(WAL__STRUCT(wal_claim), claim, error);
    }
    if (status == WAL_OK) {
        status = claim_cursor_next(cursor, &own);
    }
    if (status == WAL_OK) {
        wal__struct_store(WAL__STRUCT(wal_claim), claim, &own);
    }
    return status;
}
