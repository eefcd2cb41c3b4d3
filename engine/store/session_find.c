/*
 * session_find.c - the summary of a session that was not deleted, the error for
 * one in the trash, and the check of an expected sequence (core.h). Any thread;
 * state lock for reading.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/store/core.h"

enum wal_status wal__session_find(struct wal__core *core, uint32_t number,
                                  struct wal__summary *summary,
                                  struct wal_error *error)
{
    enum wal_status status =
        wal__catalogue_get(&core->catalogue, number, summary);

    if (status == WAL_OK && (summary->flags & WAL__SUMMARY_DELETED) != 0) {
        return wal__fail(error, WAL_ENOTFOUND, "session \"%.*s\" was deleted",
                         (int)summary->id.size, (const char *)summary->id.data);
    }
    if (status == WAL_ENOTFOUND) {
        /* The catalogue forgets deleted sessions. */
        return wal__fail(error, status, "the session was deleted");
    }
    if (status != WAL_OK) {
        return wal__fail(error, status, "cannot read the catalogue: %s",
                         wal_status_text(status));
    }
    return WAL_OK;
}

enum wal_status wal__session_fail_trashed(struct wal__span id,
                                          struct wal_error *error)
{
    return wal__fail(error, WAL_ETRASHED,
                     "session \"%.*s\" is in the trash; undelete it first",
                     (int)id.size, (const char *)id.data);
}

enum wal_status wal__session_check_sequence(const struct wal__summary *summary,
                                            uint64_t expected,
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
                         (int)summary->id.size, (const char *)summary->id.data,
                         actual, expected);
}
