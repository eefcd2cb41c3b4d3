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

bool wal__salvage_is_fatal(struct wal__salvage *salvage, enum wal_status status,
                           const struct wal_error *error)
{
    static const enum wal_status fatal[] = {
        WAL_ENOSPACE, WAL_EIO,      WAL_EVERSION,  WAL_ELOCKED,   WAL_EPOISONED,
        WAL_ENOMEM,   WAL_EBUSY,    WAL_EREADONLY, WAL_ENOTSTORE, WAL_EFORKED,
        WAL_ENETWORK, WAL_ECLAIMED, WAL_ELIMIT,    WAL_ELOCKFILE, WAL_EACCESS,
    };

    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        if (status == fatal[i]) {
            wal__salvage_fail(salvage, status, error);
            return true;
        }
    }
    return false;
}

const char *wal__salvage_error_text(enum wal_status status,
                                    const struct wal_error *error)
{
    return error->text[0] != '\0' ? error->text : wal_status_text(status);
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

/* --- texts ---------------------------------------------------------------- */

struct wal_slice wal__salvage_text(const char *text)
{
    return (struct wal_slice){text, strlen(text)};
}

void wal__salvage_copy_id(char out[WAL_ID_SIZE], struct wal_slice id)
{
    WAL__ASSERT(id.size < WAL_ID_SIZE);
    if (id.size > 0) {
        memcpy(out, id.data, (size_t)id.size);
    }
    out[id.size] = '\0';
}

/* --- the report ----------------------------------------------------------- */

void wal__salvage_send_report(struct wal__salvage *salvage,
                              const struct wal_salvage_report *report)
{
    const struct wal_salvage_options *options = salvage->options;
    int32_t answer = 0;

    salvage->result.losses++;
    if (options->report != NULL && salvage->failed == WAL_OK) {
        answer = options->report(options->ctx, report);
    }
    if (answer != 0) {
        salvage->failed =
            wal__fail_at(&salvage->why, WAL_ECALLBACK, answer, NULL, 0,
                         "the report function returned "
                         "%" PRId32,
                         answer);
    }
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
    wal__salvage_send_report(
        salvage, &(struct wal_salvage_report){
                     .struct_size = sizeof(struct wal_salvage_report),
                     .kind = kind,
                     .session_id = wal__salvage_text(session),
                     .entry_id = wal__salvage_text(entry),
                     .reason = wal__salvage_text(text),
                 });
}

void wal__salvage_report_reparented(struct wal__salvage *salvage,
                                    const char *session, const char *entry,
                                    uint64_t lost_parent, const char *parent)
{
    enum wal_salvage_kind kind =
        entry[0] == '\0' ? WAL_SALVAGE_SESSION : WAL_SALVAGE_ENTRY;

    if (parent[0] == '\0') {
        wal__salvage_report(salvage, kind, session, entry,
                            "its parent, sequence %" PRIu64
                            ", is lost; it is a root now",
                            lost_parent);
    } else {
        wal__salvage_report(salvage, kind, session, entry,
                            "its parent, sequence %" PRIu64
                            ", is lost; its parent is %s now",
                            lost_parent, parent);
    }
}

enum wal_status wal__salvage_progress(void *ctx, uint64_t size)
{
    struct wal__salvage *salvage = ctx;
    const struct wal_salvage_options *options = salvage->options;
    int32_t answer;

    salvage->done += size;
    if (options->progress == NULL ||
        (salvage->done < salvage->reported + PROGRESS_STEP &&
         salvage->done < salvage->total)) {
        return salvage->failed;
    }
    salvage->reported = salvage->done;
    answer = options->progress(options->ctx, salvage->done, salvage->total);
    if (answer != 0 && salvage->failed == WAL_OK) {
        salvage->failed =
            wal__fail_at(&salvage->why, WAL_ECALLBACK, answer, NULL, 0,
                         "the progress function "
                         "returned %" PRId32,
                         answer);
    }
    return salvage->failed;
}

void wal__salvage_report_frame(struct wal__salvage *salvage,
                               enum wal_salvage_kind kind,
                               const struct wal__damaged_segment *segment,
                               const struct wal__frame *frame, uint64_t offset,
                               const char *reason)
{
    uint64_t size = wal__frame_total_size(frame->stored_size);

    wal__salvage_send_report(
        salvage, &(struct wal_salvage_report){
                     .struct_size = sizeof(struct wal_salvage_report),
                     .kind = kind,
                     .first_sequence = frame->sequence,
                     .last_sequence = frame->sequence,
                     .file = wal__salvage_text(segment->name),
                     .offset = offset,
                     .size = size,
                     .reason = wal__salvage_text(reason),
                 });
}
