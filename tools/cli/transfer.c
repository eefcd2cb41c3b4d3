/*
 * transfer.c - prints what became of the sessions of a transfer (transfer.h).
 */
#include "tools/cli/transfer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "tools/cli/json.h"
#include "tools/cli/key.h"

static const char *const kinds[] = {
    [WAL_TRANSFER_CREATED] = "created",     [WAL_TRANSFER_CONTINUED] = "continued",
    [WAL_TRANSFER_UNCHANGED] = "unchanged", [WAL_TRANSFER_REFUSED] = "refused",
    [WAL_TRANSFER_DOCUMENT] = "differs",    [WAL_TRANSFER_BRANCHED] = "branched",
};

static int32_t show_progress(void *ctx, uint64_t done, uint64_t total)
{
    struct cli_transfer *transfer = ctx;

    progress_update(&transfer->progress, transfer->what, done, total, "records");
    return 0;
}

static void write_report(const struct cli_transfer *transfer,
                         const struct wal_transfer_report *report)
{
    bool is_document = report->kind == WAL_TRANSFER_DOCUMENT;
    struct wal__json_out json;

    cli_json_begin(&json);
    if (transfer->bundle != NULL) {
        cli_json_member_text(&json, "bundle", cli_slice(transfer->bundle));
    }
    cli_json_member_text(&json, is_document ? "document" : "sessionId",
                         is_document ? report->key : report->session_id);
    cli_json_member_text(&json, "result", cli_slice(kinds[report->kind]));
    if (report->branch_id.size > 0) {
        cli_json_member_text(&json, "branchId", report->branch_id);
    }
    if (!is_document) {
        wal__json_out_member_count(&json, "entries", report->entries);
        wal__json_out_member_count(&json, "documents", report->documents);
    }
    if (report->error != NULL) {
        cli_json_member_text(&json, "why", cli_slice(report->error->text));
    }
    wal__json_out_close_line(&json);
}

static int32_t add_report(void *ctx, const struct wal_transfer_report *report)
{
    struct cli_transfer *transfer = ctx;
    char note[WAL_ID_SIZE + 64];
    char *name;

    progress_clear(&transfer->progress);
    if (transfer->cli->json) {
        write_report(transfer, report);
    } else if (report->kind == WAL_TRANSFER_REFUSED) {
        name = cli_copy_slice(report->session_id);
        (void)cli_report_error(transfer->cli, name, report->status, report->error);
        free(name);
    } else if (report->kind == WAL_TRANSFER_DOCUMENT) {
        name = cli_copy_slice(report->key);
        cli_note(transfer->cli, name, "the document of the store has another value; it was left");
        free(name);
    } else if (report->kind == WAL_TRANSFER_BRANCHED) {
        name = cli_copy_slice(report->session_id);
        (void)snprintf(note, sizeof(note), "both stores went on with it; the other one is %.*s",
                       WAL_ARG(report->branch_id));
        cli_note(transfer->cli, name, note);
        free(name);
    }
    if (report->kind == WAL_TRANSFER_REFUSED || report->kind == WAL_TRANSFER_DOCUMENT) {
        transfer->code = cli_worse_code(transfer->code, CLI_NEGATIVE);
    }
    return 0;
}

void cli_transfer_init(struct cli_transfer *transfer, const struct cli *cli, const char *what,
                       const char *bundle)
{
    *transfer = (struct cli_transfer){
        .cli = cli,
        .what = what,
        .bundle = bundle,
        .options = WAL_INIT(wal_transfer_options),
        .result = WAL_INIT(wal_transfer_result),
    };
    transfer->options.progress = show_progress;
    transfer->options.report = add_report;
    transfer->options.ctx = transfer;
    progress_init(&transfer->progress, !cli->no_progress);
}

void cli_transfer_select(struct cli_transfer *transfer, struct wal_store *store, int first, int end)
{
    struct wal_slice *ids = cli_keep(cli_alloc((size_t)(end - first) * sizeof(ids[0])));

    transfer->sessions = ids;
    transfer->options.sessions = ids;
    for (int i = first; i < end; i++) {
        ids[transfer->options.session_count++] =
            cli_slice(cli_session_id(transfer->cli, store, transfer->cli->items[i]));
    }
}

static void write_summary(const struct cli_transfer *transfer)
{
    const struct wal_transfer_result *result = &transfer->result;
    const struct cli_count numbers[] = {
        {"created", result->created},     {"continued", result->continued},
        {"unchanged", result->unchanged}, {"refused", result->refused},
        {"branched", result->branched},   {"entries", result->entries},
        {"documents", result->documents}, {"differingDocuments", result->differing_documents},
    };
    struct wal__json_out json;

    cli_json_begin(&json);
    wal__json_out_member_open(&json, "summary", '{');
    cli_json_counts(&json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    if (transfer->bundle != NULL) {
        wal__json_out_member_count(&json, "bytes", result->bytes);
    }
    wal__json_out_close(&json, '}');
    wal__json_out_close_line(&json);
}

static void print_summary(const struct cli_transfer *transfer)
{
    const struct wal_transfer_result *result = &transfer->result;

    printf("sessions: %" PRIu64 " new, %" PRIu64 " continued, %" PRIu64 " unchanged",
           result->created, result->continued, result->unchanged);
    if (result->branched > 0) {
        printf(", %" PRIu64 " branched", result->branched);
    }
    if (result->refused > 0) {
        printf(", %" PRIu64 " refused", result->refused);
    }
    printf("; %s, %s of documents added\n", cli_counted(result->entries, "entry", "entries"),
           cli_counted(result->documents, "version", "versions"));
}

int cli_transfer_finish(struct cli_transfer *transfer, const char *path, enum wal_status status)
{
    progress_clear(&transfer->progress);
    if (status != WAL_OK) {
        return cli_worse_code(transfer->code, cli_report(transfer->cli, path, status));
    }
    if (transfer->cli->json) {
        write_summary(transfer);
    } else {
        print_summary(transfer);
    }
    return transfer->code;
}

int cli_transfer_import(const struct cli *cli, struct wal_store *store, const char *bundle,
                        const struct cli_key_options *key)
{
    const struct cli_key_options asked = {.is_passphrase = true};
    struct cli_transfer transfer;
    enum wal_status status;

    cli_transfer_init(&transfer, cli, "import", bundle);
    transfer.options.key = cli_key_is_given(key) ? cli_key_read(cli, key) : NULL;
    status =
        wal_bundle_read(store, cli_slice(bundle), &transfer.options, &transfer.result, cli->error);
    if (status == WAL_EKEY && !cli_key_is_given(key)) {
        transfer.options.key = cli_key_read(cli, &asked);
        status = wal_bundle_read(store, cli_slice(bundle), &transfer.options, &transfer.result,
                                 cli->error);
    }
    return cli_transfer_finish(&transfer, bundle, status);
}
