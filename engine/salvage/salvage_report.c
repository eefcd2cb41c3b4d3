/*
 * salvage_report.c - the failure of a salvage, what it reports, and its
 * progress.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "engine/base/error.h"
#include "engine/salvage/salvage.h"
#include "engine/transfer/record_copy.h"
#include "format/bytes/assert.h"

enum {
    REASON_SIZE = 700,
    PROGRESS_STEP = 1024 * 1024 /* bytes read from call to call */
};

/* --- failures ------------------------------------------------------------- */

void wal__salvage_fail(struct wal__salvage *salvage, enum wal_status status,
                       const struct wal_error *error)
{
    WAL__ASSERT(status != WAL_OK);
    if (salvage->failed != WAL_OK) {
        return;
    }
    salvage->failed = status;
    if (error != NULL) {
        salvage->why = *error;
    } else {
        wal__fail(&salvage->why, status, "%s", wal_status_text(status));
    }
}

bool wal__salvage_try(struct wal__salvage *salvage, enum wal_status status)
{
    if (wal__copy_is_fatal(status)) {
        wal__salvage_fail(salvage, status, &salvage->error);
    }
    return status == WAL_OK;
}

bool wal__salvage_grow(struct wal__salvage *salvage, void **items,
                       uint32_t count, uint32_t *capacity, size_t size)
{
    void *grown =
        wal__heap_grow_array(salvage->heap, *items, count, capacity, size);

    if (grown == NULL) {
        wal__salvage_fail(salvage, WAL_ENOMEM, NULL);
        return false;
    }
    *items = grown;
    return true;
}

static void check_answer(struct wal__salvage *salvage, int32_t answer,
                         const char *function)
{
    if (answer != 0 && salvage->failed == WAL_OK) {
        salvage->failed =
            wal__fail_at(&salvage->why, WAL_ECALLBACK, answer, NULL, 0,
                         "the %s function returned %" PRId32, function, answer);
    }
}

/* --- reports -------------------------------------------------------------- */

struct wal_slice wal__salvage_text(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

void wal__salvage_send_report(struct wal__salvage *salvage,
                              const struct wal_salvage_report *report)
{
    const struct wal_salvage_options *options = salvage->options;

    if (salvage->failed != WAL_OK) {
        return;
    }
    salvage->result.losses++;
    if (options->report != NULL) {
        check_answer(salvage, options->report(options->ctx, report), "report");
    }
}

static void send_text(struct wal__salvage *salvage, enum wal_salvage_kind kind,
                      const char *session, const char *entry, const char *text)
{
    const struct wal_salvage_report report = {
        .struct_size = sizeof(report),
        .kind = kind,
        .session_id = wal__salvage_text(session),
        .entry_id = wal__salvage_text(entry),
        .reason = wal__salvage_text(text),
    };

    wal__salvage_send_report(salvage, &report);
}

void wal__salvage_report(struct wal__salvage *salvage,
                         enum wal_salvage_kind kind, const char *session,
                         const char *entry, const char *reason, ...)
{
    char text[REASON_SIZE];
    va_list arguments;

    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    send_text(salvage, kind, session, entry, text);
}

bool wal__salvage_check(struct wal__salvage *salvage, enum wal_status status,
                        enum wal_salvage_kind kind, const char *session,
                        const char *entry, const char *reason, ...)
{
    const char *why = salvage->error.text;
    char text[REASON_SIZE];
    va_list arguments;
    size_t size;

    if (wal__salvage_try(salvage, status)) {
        return true;
    }
    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    size = strlen(text);
    snprintf(text + size, sizeof(text) - size, ": %s",
             why[0] != '\0' ? why : wal_status_text(status));
    send_text(salvage, kind, session, entry, text);
    return false;
}

void wal__salvage_report_reparented(struct wal__salvage *salvage,
                                    const char *session, const char *entry,
                                    uint64_t lost_parent, const char *parent)
{
    bool is_root = parent[0] == '\0';

    wal__salvage_report(
        salvage, entry[0] == '\0' ? WAL_SALVAGE_SESSION : WAL_SALVAGE_ENTRY,
        session, entry, "its parent, sequence %" PRIu64 ", is lost; %s%s%s",
        lost_parent, is_root ? "it is a root" : "its parent is ", parent,
        " now");
}

/* --- progress ------------------------------------------------------------- */

enum wal_status wal__salvage_progress(void *ctx, uint64_t size)
{
    struct wal__salvage *salvage = ctx;
    const struct wal_salvage_options *options = salvage->options;

    salvage->done += size;
    if (options->progress != NULL &&
        (salvage->done >= salvage->reported + PROGRESS_STEP ||
         salvage->done >= salvage->total)) {
        salvage->reported = salvage->done;
        check_answer(
            salvage,
            options->progress(options->ctx, salvage->done, salvage->total),
            "progress");
    }
    return salvage->failed;
}
