/*
 * transfer_report.c - failures of a transfer and refusals of its sessions.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/base/error.h"
#include "engine/transfer/record_copy.h"
#include "engine/transfer/transfer.h"

/* --- failures ------------------------------------------------------------- */

void wal__transfer_fail(struct wal__transfer *transfer, enum wal_status status)
{
    if (transfer->failed == WAL_OK) {
        transfer->failed = status;
        transfer->why = transfer->error;
    }
}

static void refuse(struct wal__transfer *transfer,
                   struct wal__transfer_session *session)
{
    session->state = WAL__TRANSFER_REFUSED;
    if (session->why == NULL) {
        session->why = wal__heap_zalloc(transfer->heap, sizeof(*session->why));
        if (session->why == NULL) {
            wal__transfer_fail(transfer, wal__no_memory(&transfer->error));
            return;
        }
        *session->why = transfer->error;
    }
}

void wal__transfer_refuse(struct wal__transfer *transfer,
                          struct wal__transfer_session *session,
                          enum wal_status status, const char *reason, ...)
{
    char text[sizeof(transfer->error.text)];
    va_list arguments;

    va_start(arguments, reason);
    vsnprintf(text, sizeof(text), reason, arguments);
    va_end(arguments);
    (void)!wal__fail(&transfer->error, status, "%s", text);
    refuse(transfer, session);
}

bool wal__transfer_try(struct wal__transfer *transfer,
                       struct wal__transfer_session *session,
                       enum wal_status status)
{
    if (status == WAL_OK) {
        return session->state != WAL__TRANSFER_REFUSED;
    }
    if (transfer->failed != WAL_OK) {
        return false;
    }
    if (status == WAL_ECORRUPT &&
        wal__core_look_again(transfer->from, &transfer->looked)) {
        transfer->was_replaced = true;
        wal__transfer_fail(transfer, status);
    } else if (wal__copy_is_fatal(status)) {
        wal__transfer_fail(transfer, status);
    } else {
        refuse(transfer, session);
    }
    return false;
}

bool wal__transfer_goes_on(const struct wal__transfer *transfer,
                           const struct wal__transfer_session *session)
{
    return transfer->failed == WAL_OK &&
           session->state != WAL__TRANSFER_REFUSED;
}

void wal__transfer_check_answer(struct wal__transfer *transfer, int32_t answer,
                                const char *function)
{
    if (answer != 0 && transfer->failed == WAL_OK) {
        transfer->failed =
            wal__fail_at(&transfer->why, WAL_ECALLBACK, answer, NULL, 0,
                         "the %s function returned %" PRId32, function, answer);
    }
}

/* --- documents of the store ----------------------------------------------- */

void wal__transfer_report_document(struct wal__transfer *transfer,
                                   uint64_t position)
{
    const struct wal_transfer_options *options = transfer->options;
    struct wal_transfer_report report = {.struct_size = sizeof(report),
                                         .kind = WAL_TRANSFER_DOCUMENT};
    struct wal__doc_record record;
    struct wal__frame frame;

    transfer->result.differing_documents++;
    if (options->report == NULL ||
        wal__transfer_read_doc(transfer->from, position, &transfer->scratch,
                               &frame, &record, NULL) != WAL_OK) {
        return;
    }
    report.key = (struct wal_slice){record.key.data, record.key.size};
    wal__transfer_check_answer(transfer, options->report(options->ctx, &report),
                               "report");
}
