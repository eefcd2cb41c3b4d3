/*
 * checkpoint_entry.c - the entry of the conversation with which a checkpoint is
 * linked (SPEC.md 5.13). Any thread; the state lock is taken inside.
 */
#include "engine/base/error.h"
#include "engine/files/checkpoint.h"
#include "engine/session/session.h"

enum {
    STREAM = 0 /* of the conversation */
};

enum wal_status wal__checkpoint_current_entry(struct wal_session *session,
                                              char out[WAL_ID_SIZE],
                                              struct wal_error *error)
{
    uint64_t looked = 0;
    const struct wal__span main_head = {NULL, 0};
    struct wal_error own = {.struct_size = sizeof(own)};
    enum wal_status status;

    do {
        status = wal__head_get(session, STREAM, main_head, out, &own);
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    if (status == WAL_ENOTFOUND || status == WAL_ECORRUPT) {
        out[0] = '\0';
        return WAL_OK;
    }
    if (status != WAL_OK) {
        wal__error_copy(error, &own);
    }
    return status;
}

static enum wal_status find_entry(struct wal_session *session,
                                  struct wal__span id, uint32_t *stream,
                                  struct wal_error *error)
{
    struct wal__entry_location found;
    enum wal_status status = wal__core_write_lock(session->core, error);

    if (status != WAL_OK) {
        return status;
    }
    status =
        wal__core_find_id(session->core, session->number, id, &found, error);
    wal__core_unlock(session->core);
    if (status == WAL_OK) {
        *stream = found.stream;
    }
    return status;
}

enum wal_status wal__checkpoint_check_entry(struct wal_session *session,
                                            struct wal__span id,
                                            struct wal_error *error)
{
    uint64_t looked = 0;
    uint32_t stream = STREAM;
    enum wal_status status;

    do {
        status = find_entry(session, id, &stream, error);
    } while (wal__core_invalidate_derived(session->core, status, &looked));
    if (status == WAL_ENOTFOUND || (status == WAL_OK && stream != STREAM)) {
        return wal__fail(error, WAL_ENOTFOUND,
                         "the conversation of the session has no entry "
                         "\"%.*s\"",
                         (int)id.size, (const char *)id.data);
    }
    return status;
}
