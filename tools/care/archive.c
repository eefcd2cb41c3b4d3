/*
 * archive.c - sessions to an archive, which is a store, before the command
 * retain moves them (retain_plan.h); and the command restore, which takes them
 * back.
 *
 * Invariant: a session is in the archive, durably, before it is moved.
 *
 * Threads: the tool has one thread.
 */
#include <stdlib.h>

#include "tools/care/retain_plan.h"
#include "tools/cli/transfer.h"
#include "tools/cli/verbs.h"

/* --- to the archive ------------------------------------------------------- */

struct copying {
    const struct cli *cli;
    struct retain_plan *plan;
};

static int32_t note_refusal(void *ctx, const struct wal_transfer_report *made)
{
    const struct copying *copying = ctx;

    if (made->kind != WAL_TRANSFER_REFUSED) {
        return 0;
    }
    for (size_t i = 0; i < copying->plan->count; i++) {
        struct retain_item *item = &copying->plan->items[i];

        if (copying->plan->sessions[i].rule != WAL__RETAIN_STAYS &&
            cli_slice_equal(made->session_id, cli_slice(item->id))) {
            item->reason = RETAIN_REFUSED;
            cli_note(copying->cli, item->id,
                     made->error != NULL
                         ? made->error->text
                         : wal_status_text((enum wal_status)made->status));
        }
    }
    return 0;
}

static enum wal_status copy(struct copying *copying, struct wal_store *from,
                            struct wal_store *to, struct wal_error *error)
{
    const struct retain_plan *plan = copying->plan;
    struct wal_slice *ids = cli_alloc((plan->count + 1) * sizeof(*ids));
    struct wal_transfer_options options = WAL_INIT(wal_transfer_options);
    enum wal_status status;

    for (size_t i = 0; i < plan->count; i++) {
        if (plan->sessions[i].rule != WAL__RETAIN_STAYS) {
            ids[options.session_count++] = cli_slice(plan->items[i].id);
        }
    }
    options.sessions = ids;
    options.report = note_refusal;
    options.ctx = copying;
    status = wal_store_merge(from, to, &options, NULL, error);
    free(ids);
    return status;
}

int retain_plan_archive(struct retain_plan *plan, const struct cli *cli,
                        struct wal_store *store, const char *directory)
{
    struct wal_open_options options = cli_open_options(cli, WAL_OPEN_CREATE);
    struct copying copying = {cli, plan};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *archive = NULL;
    enum wal_status status = wal_open(directory, &options, &archive, &error);
    int code;

    if (status != WAL_OK) {
        return cli_report(cli, directory, status, &error);
    }
    status = copy(&copying, store, archive, &error);
    code =
        status == WAL_OK ? CLI_OK : cli_report(cli, directory, status, &error);
    code = cli_close_store(cli, directory, archive, code);
    return code == CLI_OK ? CLI_CONTINUE : code;
}

/* --- back ----------------------------------------------------------------- */

/* Takes the session out of the trash of the store, if it is there. */
static enum wal_status undelete(struct wal_store *to, struct wal_slice id,
                                struct wal_error *error)
{
    enum wal_status status = wal_session_undelete(to, id, error);

    return status == WAL_ENOTFOUND ? WAL_OK : status;
}

/* The full ids of the sessions that the operands name in the archive. */
static int find_sessions(const struct cli *cli, struct wal_store *archive,
                         struct wal_store *to, struct wal_slice *ids)
{
    int code = CLI_CONTINUE;

    for (int i = 3; i < cli->count && code == CLI_CONTINUE; i++) {
        struct wal_session_info info = WAL_INIT(wal_session_info);
        struct wal_error error = CLI_ERROR_INIT;
        struct wal_session *session = NULL;
        enum wal_status status;

        code = cli_open_session(cli, archive, cli->items[i], &session);
        if (code != CLI_CONTINUE) {
            break;
        }
        status = wal_session_get_info(session, &info, &error);
        if (status == WAL_OK) {
            ids[i - 3] = (struct wal_slice){
                cli_copy_text(info.id.data, (size_t)info.id.size),
                info.id.size};
            status = undelete(to, info.id, &error);
        }
        if (status != WAL_OK) {
            code = cli_report(cli, cli->items[i], status, &error);
        }
        wal_session_close(session);
    }
    return code;
}

static int restore(const struct cli *cli, struct wal_store *archive,
                   struct wal_store *to)
{
    const size_t count = (size_t)cli->count - 3;
    struct wal_slice *ids = cli_alloc(count * sizeof(*ids));
    struct wal_error error = CLI_ERROR_INIT;
    struct cli_transfer transfer;
    enum wal_status status;
    int code;

    for (size_t i = 0; i < count; i++) {
        ids[i] = cli_slice(NULL);
    }
    code = find_sessions(cli, archive, to, ids);
    if (code == CLI_CONTINUE) {
        cli_transfer_init(&transfer, cli, "restore", NULL);
        transfer.options.sessions = ids;
        transfer.options.session_count = count;
        status = wal_store_merge(archive, to, &transfer.options,
                                 &transfer.result, &error);
        code = cli_transfer_finish(&transfer, cli->items[2], status, &error);
    }
    for (size_t i = 0; i < count; i++) {
        free((void *)(uintptr_t)ids[i].data);
    }
    free(ids);
    return code;
}

int verb_restore(struct cli *cli, int argc, char **argv)
{
    const struct cli_option options[] = {{.name = NULL}};
    struct wal_open_options open_options;
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_store *archive = NULL;
    struct wal_store *to = NULL;
    enum wal_status status;
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 4, argc);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    open_options = cli_open_options(cli, WAL_OPEN_READ_ONLY);
    status = wal_open(cli->items[2], &open_options, &archive, &error);
    if (status != WAL_OK) {
        return cli_report(cli, cli->items[2], status, &error);
    }
    code = cli_open_store(cli, cli->items[1], 0, &to);
    if (code == CLI_CONTINUE) {
        code = restore(cli, archive, to);
        code = cli_close_store(cli, cli->items[1], to, code);
    }
    return cli_close_store(cli, cli->items[2], archive, code);
}
