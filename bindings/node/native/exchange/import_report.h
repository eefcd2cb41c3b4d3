/*
 * import_report.h - what an import reports, as its job collects it.
 */
#ifndef AGENTWAL_NODE_IMPORT_REPORT_H
#define AGENTWAL_NODE_IMPORT_REPORT_H

#include <agentwal/import.h>

#include "bindings/node/native/base/list.h"
#include "bindings/node/native/store/job.h"

enum {
    IMPORT_ISSUES = 1000 /* that are kept of a source */
};

struct import_reports {
    struct job *job; /* whose arena they are in, and which is stopped */
    struct list list;
    struct wal_import_result result;
};

/* Callbacks of wal_import_options; ctx is a struct import_reports. */
int32_t import_reports_add(void *ctx, const struct wal_import_report *report);
int32_t import_reports_progress(void *ctx, struct wal_slice path, uint64_t done,
                                uint64_t total);

/* The object of an import's result. */
napi_value import_reports_make(struct call *call,
                               const struct import_reports *reports);

/* Reads the options of an import from the arguments: flags, dialect, exclude.
 * The callbacks are those above, with ctx. */
void import_read_options(struct call *call, size_t first, void *ctx,
                         struct wal_import_options *options);

#endif
