/*
 * follow.c - keep the views of all sessions current until interrupted.
 *
 * The process waits for durable records, then updates the views of the sessions that have a record
 * after scanned_sequence. Separately it scans all sessions once after opening the store, because a
 * view's state is stored next to its files and may have changed while no follower ran.
 *
 * An open view continues from its memory; a closed one continues from the state stored next to its
 * files. The number of open views affects speed only.
 *
 * Invariant: of the store only the list of roots of views is written. SIGINT and SIGTERM are
 * unblocked only during waits, so that no view is left half-written. A view that cannot be updated
 * does not affect the others. Its error is reported once, until it succeeds or fails differently.
 */
#include "tools/convert/convert.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentwal/checkpoint.h"
#include "tools/cli/verbs.h"

/* --- views, a bounded number open at once ------------------------------- */

#define IDLE_SECONDS 60

enum { OPEN_VIEWS_MAX = 64 };

/* A session whose view is open. */
struct open_view {
    uint32_t number; /* of the session; 0: the slot is free */
    struct wal_session *session;
    struct wal_view *view;
    /* Value of update_count at the last update; the smallest is closed first. */
    uint64_t update_number;
    time_t time;          /* of the last update, CLOCK_MONOTONIC */
    uint64_t checkpoints; /* newest version of those exported with the view */
};

/* The state of a session, kept while its view is closed. */
struct session_state {
    int32_t status;         /* the last status reported, or WAL_OK */
    bool is_known;          /* `redacted` is valid */
    uint64_t redacted;      /* count_redacted */
    uint64_t update_number; /* value of update_count at the last update */
};

struct views {
    struct convert_view target;
    struct open_view *open_views;
    uint64_t update_count;          /* updates so far */
    struct session_state *sessions; /* by session number */
    size_t session_count;
    /* Sessions whose update failed and may succeed without a new record. */
    size_t failing;
};

/* ---------------------------------------------------------- open views --- */

static void close_view(struct open_view *open_view)
{
    wal_view_close(open_view->view);
    wal_session_close(open_view->session);
    *open_view = (struct open_view){.number = 0};
}

/* Closes the views; required before the store is closed. Session states are kept. */
static void views_close(struct views *views)
{
    for (size_t i = 0; i < OPEN_VIEWS_MAX; i++) {
        close_view(&views->open_views[i]);
    }
}

/* Closes the views that were not updated for a minute. */
static void views_close_idle(struct views *views)
{
    time_t now = when_steady_ms() / 1000;

    for (size_t i = 0; i < OPEN_VIEWS_MAX; i++) {
        if (views->open_views[i].number != 0 && now - views->open_views[i].time > IDLE_SECONDS) {
            close_view(&views->open_views[i]);
        }
    }
}

/* Returns the session's slot. If it has none, returns a free slot, or closes the view that was
 * updated least recently. */
static struct open_view *find_slot(struct views *views, uint32_t number)
{
    struct open_view *oldest = &views->open_views[0];

    for (size_t i = 0; i < OPEN_VIEWS_MAX; i++) {
        struct open_view *open_view = &views->open_views[i];
        if (open_view->number == number) {
            oldest = open_view;
            break;
        }
        if (open_view->update_number < oldest->update_number) {
            oldest = open_view;
        }
    }
    if (oldest->number != number) {
        close_view(oldest);
    }
    return oldest;
}

static enum wal_status open_if_closed(struct views *views, struct open_view *open_view,
                                      const struct wal_session_info *info, struct wal_error *error)
{
    enum wal_status status;

    if (open_view->number != 0) {
        return WAL_OK;
    }
    status = wal_session_open(views->target.store, info->id, &open_view->session, error);
    if (status != WAL_OK) {
        return status;
    }
    status = convert_view_open(&views->target, open_view->session, &open_view->view, error);
    if (status != WAL_OK) {
        close_view(open_view);
        return status;
    }
    open_view->number = info->number;
    return WAL_OK;
}

/* ------------------------------------------------------- session state --- */

static struct session_state *get_session_state(struct views *views, uint32_t number)
{
    size_t count = views->session_count;

    if (number >= count) {
        size_t grown = number + count / 2 + 64;
        views->sessions = cli_realloc(views->sessions, grown * sizeof(views->sessions[0]));
        memset(views->sessions + count, 0, (grown - count) * sizeof(views->sessions[0]));
        views->session_count = grown;
    }
    return &views->sessions[number];
}

/* Returns true for errors that may go away without a new record. */
static bool is_retryable(int32_t status)
{
    return status != WAL_OK && status != WAL_ECHANGED && status != WAL_EOUTSIDE;
}

static void set_status(struct views *views, struct session_state *session_state, int32_t status)
{
    views->failing -= is_retryable(session_state->status) ? 1 : 0;
    views->failing += is_retryable(status) ? 1 : 0;
    session_state->status = status;
}

/* Clears the errors of failing sessions that were not updated after the given update_count: they no
 * longer exist. */
static void views_clear_failing(struct views *views, uint64_t update_count)
{
    for (size_t i = 0; i < views->session_count && views->failing > 0; i++) {
        struct session_state *session_state = &views->sessions[i];
        if (is_retryable(session_state->status) && session_state->update_number <= update_count) {
            set_status(views, session_state, WAL_OK);
        }
    }
}

/* ------------------------------------------------------------- session --- */

/* *restored: wal_entry_cursor_restored. */
static uint64_t count_entries(struct wal_session *session, uint32_t stream, uint32_t flags,
                              uint64_t *restored)
{
    const struct wal_entry_cursor_options options = {.struct_size = sizeof(options),
                                                     .mode = WAL_ENTRY_CURSOR_ALL,
                                                     .flags = WAL_ENTRY_CURSOR_DURABLE | flags,
                                                     .stream = stream};
    struct wal_entry_cursor *cursor = NULL;
    uint64_t count = 0;

    if (wal_entry_cursor_open(session, &options, &cursor, NULL) == WAL_OK) {
        count = wal_entry_cursor_remaining(cursor);
        *restored = wal_entry_cursor_restored(cursor);
    }
    wal_entry_cursor_close(cursor);
    return count;
}

/* The redacted entries, and twice the redactions that were undone: each change raises it. */
static uint64_t count_redacted(struct wal_session *session)
{
    uint64_t restored = 0;
    uint64_t count = 0;

    for (uint32_t stream = 0; stream < 2; stream++) {
        count += count_entries(session, stream, WAL_ENTRY_CURSOR_REDACTED, &restored) -
                 count_entries(session, stream, 0, &restored) + 2 * restored;
    }
    return count;
}

/* A fork that is new here may share entries that were redacted before. */
static bool update_redacted(struct session_state *session_state,
                            const struct wal_session_info *info, struct wal_session *session)
{
    uint64_t redacted = count_redacted(session);
    bool has_more = session_state->is_known ? redacted > session_state->redacted
                                            : redacted > 0 && (info->flags & WAL_SESSION_FORK) != 0;

    session_state->redacted = redacted;
    session_state->is_known = true;
    return has_more;
}

/* Exports the checkpoints of a session to the directory of its view. */
static void update_checkpoints(struct views *views, struct open_view *open_view, const char *id,
                               bool has_replaced)
{
    struct wal_checkpoint_info info = WAL_INIT(wal_checkpoint_info);
    struct wal_checkpoint_cursor *list = NULL;
    uint64_t version = 0;

    if (!convert_view_has_checkpoints(&views->target) ||
        wal_checkpoint_cursor_open(open_view->session, &list, NULL) != WAL_OK) {
        return;
    }
    while (wal_checkpoint_cursor_next(list, &info, NULL) == WAL_OK) {
        version = info.version > version ? info.version : version;
    }
    wal_checkpoint_cursor_close(list);
    if ((has_replaced || version != open_view->checkpoints) && version != 0 &&
        convert_view_export_checkpoints(&views->target, open_view->session, open_view->view, id) <=
            CLI_NEGATIVE) {
        open_view->checkpoints = version;
    }
}

/* Whether it is deleted, or in the trash: its view stays as it is. */
static bool is_gone(struct views *views, struct wal_slice id)
{
    struct wal_session *session = NULL;
    enum wal_status status = wal_session_open(views->target.store, id, &session, NULL);

    wal_session_close(session);
    return status == WAL_ENOTFOUND || status == WAL_ETRASHED;
}

/* Updates an open view. */
static enum wal_status flush(struct views *views, struct open_view *open_view, const char *id,
                             struct wal_error *error)
{
    struct wal_view_flush_result result = WAL_INIT(wal_view_flush_result);
    enum wal_status status = convert_view_flush(&views->target, open_view->view, &result, error);
    bool has_replaced = (result.flags & WAL_VIEW_REPLACED) != 0;
    uint64_t missing = 0;

    if (status != WAL_OK) {
        return status;
    }
    /* It reads all rows, so it is not done for each new one. */
    if (open_view->update_number == 0 || has_replaced) {
        (void)convert_file_history_export(&views->target, open_view->session, open_view->view, id,
                                          &missing);
    }
    if (result.lines > 0 || has_replaced) {
        convert_view_print(&views->target, open_view->view, id, &result, missing);
    }
    update_checkpoints(views, open_view, id, has_replaced);
    return WAL_OK;
}

/*
 * Updates the view of a listed session and prints the result. Returns true if other entries of it
 * are redacted than at its last update; sessions that share entries with it then need an update
 * too. A session that was deleted meanwhile is ignored.
 */
static bool views_update(struct views *views, const struct wal_session_info *info)
{
    struct open_view *open_view;
    struct session_state *session_state;
    uint64_t update_number = ++views->update_count;
    enum wal_status status;
    bool has_redacted = false;
    char *id;

    if (!convert_view_has_messages(views->target.dialect, info)) {
        return false;
    }
    open_view = find_slot(views, info->number);
    session_state = get_session_state(views, info->number);
    id = cli_copy_slice(info->id);
    status = open_if_closed(views, open_view, info, views->target.cli->error);

    if (status == WAL_OK) {
        status = flush(views, open_view, id, views->target.cli->error);
        open_view->update_number = update_number;
        open_view->time = when_steady_ms() / 1000;
    }
    if ((status == WAL_ENOTFOUND || status == WAL_ETRASHED) && is_gone(views, info->id)) {
        close_view(open_view);
        status = WAL_OK;
    }
    session_state->update_number = update_number;
    if (status != WAL_OK && session_state->status != status) {
        convert_view_fail(&views->target, id, status, views->target.cli->error);
    }
    set_status(views, session_state, status);
    if (open_view->number != 0) {
        has_redacted = update_redacted(session_state, info, open_view->session);
    }
    free(id);
    return has_redacted;
}

/* --- following ---------------------------------------------------------- */

#define POLL_MS 1000 /* between checks for changes without a record */

#define RETRY_MAX_S 32 /* between retries of failed views */

struct follow {
    const struct cli *cli;
    const char *path;
    struct views views;
    /* Cursor of the initial scan, NULL when it has ended. */
    struct wal_session_cursor *initial_scan;
    uint64_t durable; /* newest durable sequence number */
    /* Views are current up to here, except those that the initial scan has not reached. */
    uint64_t scanned_sequence;
    /* Time of the next retry, in seconds of CLOCK_MONOTONIC. */
    time_t retry_time;
    time_t retry_delay; /* delay after that retry, in seconds */
    /* The last error of the store that was reported, or WAL_OK. */
    int32_t reported_status;
};

/* ------------------------------------------------------------- signals --- */

static bool must_stop(void)
{
    sigset_t set;

    return (sigpending(&set) == 0 &&
            (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1)) ||
           !cli_output_is_read();
}

/* ------------------------------------------------------------ sessions --- */

typedef bool session_filter(const struct follow *follow, const struct wal_session_info *info,
                            const void *ctx);

/* Updates the views of the sessions that the filter selects. */
static enum wal_status update_filtered(struct follow *follow, session_filter *filter,
                                       const void *ctx, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal_session_cursor_open(follow->views.target.store, NULL, &list, error);

    while (status == WAL_OK && !must_stop() &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (filter(follow, &info, ctx)) {
            (void)views_update(&follow->views, &info);
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

static bool is_relative(const struct follow *follow, const struct wal_session_info *info,
                        const void *ctx)
{
    (void)follow;
    return cli_ids_find(ctx, info->id) != NULL;
}

/* Adds the sessions of a list to ids: all of them, or with NULL options the forks of sessions in
 * ids. */
static enum wal_status add_relatives(struct wal_store *store,
                                     const struct wal_session_cursor_options *options,
                                     struct cli_ids *ids, struct wal_error *error)
{
    struct cli_sessions list;

    for (cli_sessions_open(&list, store, options, error); cli_sessions_next(&list);) {
        bool is_fork = (list.info.flags & WAL_SESSION_FORK) != 0;
        if (options != NULL || (is_fork && cli_ids_find(ids, list.info.parent_id) != NULL)) {
            (void)cli_ids_get_or_add(ids, list.info.id);
        }
    }
    return list.status;
}

/* A redaction of a shared entry affects every session that shares it. Updates the session's
 * ancestors and all forks of these. */
static enum wal_status update_relatives(struct follow *follow, struct wal_slice id,
                                        struct wal_error *error)
{
    const struct wal_session_cursor_options ancestors = {
        .struct_size = sizeof(ancestors), .flags = WAL_SESSION_CURSOR_LINEAGE, .lineage_of = id};
    struct wal_store *store = follow->views.target.store;
    struct cli_ids ids = {.items = NULL};
    enum wal_status status;
    size_t count;

    (void)cli_ids_get_or_add(&ids, id);
    status = add_relatives(store, &ancestors, &ids, error);
    do {
        count = ids.count;
        if (status == WAL_OK) {
            status = add_relatives(store, NULL, &ids, error);
        }
    } while (ids.count > count);
    if (status == WAL_OK && count > 1) {
        status = update_filtered(follow, is_relative, &ids, error);
    }
    cli_ids_deinit(&ids);
    return status == WAL_ENOTFOUND ? WAL_OK : status; /* deleted meanwhile */
}

/* Updates the views of sessions with a record after scanned_sequence. */
static enum wal_status update_changed(struct follow *follow, struct wal_error *error)
{
    const struct wal_session_cursor_options options = {.struct_size = sizeof(options),
                                                       .recorded_after = follow->scanned_sequence};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    uint64_t durable = follow->durable;
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal_session_cursor_open(follow->views.target.store, &options, &list, error);

    while (status == WAL_OK && !must_stop() &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (views_update(&follow->views, &info)) {
            status = update_relatives(follow, info.id, error);
        }
    }
    wal_session_cursor_close(list);
    if (status == WAL_OK || status == WAL_END) {
        follow->scanned_sequence = durable;
        status = WAL_OK;
    }
    return status;
}

/* Updates the next view of the initial scan. */
static enum wal_status update_next(struct follow *follow, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status = wal_session_cursor_next(follow->initial_scan, &info, error);

    if (status == WAL_OK) {
        (void)views_update(&follow->views, &info);
    }
    if (status == WAL_END) {
        wal_session_cursor_close(follow->initial_scan);
        follow->initial_scan = NULL;
        status = WAL_OK;
    }
    return status;
}

static bool is_failing(const struct follow *follow, const struct wal_session_info *info,
                       const void *ctx)
{
    (void)ctx;
    return info->number < follow->views.session_count &&
           is_retryable(follow->views.sessions[info->number].status);
}

/* Retries failed views: for example, the disk may have space again or the output directory may be
 * writable again. */
static enum wal_status retry_failed(struct follow *follow, struct wal_error *error)
{
    struct views *views = &follow->views;
    uint64_t update_count = views->update_count;
    enum wal_status status = WAL_OK;

    if (views->failing == 0) {
        follow->retry_delay = 1;
        follow->retry_time = when_steady_ms() / 1000 + 1;
    } else if (when_steady_ms() / 1000 >= follow->retry_time) {
        status = update_filtered(follow, is_failing, NULL, error);
        if (status == WAL_OK && !must_stop()) {
            views_clear_failing(views, update_count);
        }
        follow->retry_time = when_steady_ms() / 1000 + follow->retry_delay;
        if (follow->retry_delay < RETRY_MAX_S) {
            follow->retry_delay *= 2;
        }
    }
    return status;
}

/* --------------------------------------------------------------- store --- */

/* A read-only opener of a store that no process has open misses the records of a process that opens
 * and closes the store before it first looks. A short writable open keeps the store open
 * meanwhile. */
static enum wal_status open_store(struct follow *follow, struct wal_error *error)
{
    struct wal_store *writable = NULL;
    enum wal_status status;

    (void)!cli_try_open(follow->cli, follow->path, 0, &writable, NULL);
    status = cli_try_open(follow->cli, follow->path, WAL_OPEN_READ_ONLY,
                          &follow->views.target.store, error);
    (void)wal_close(writable, NULL);
    return status;
}

static void close_store(struct follow *follow)
{
    wal_session_cursor_close(follow->initial_scan);
    follow->initial_scan = NULL;
    views_close(&follow->views);
    (void)wal_close(follow->views.target.store, NULL);
    follow->views.target.store = NULL;
}

/* Everything durable at this point is covered by the initial scan. */
static enum wal_status open_views(struct follow *follow, struct wal_error *error)
{
    enum wal_status status = open_store(follow, error);

    follow->durable = 0;
    if (status == WAL_OK) {
        status =
            wal_store_wait(follow->views.target.store, &follow->durable, WAL_DURABLE, 0, error);
    }
    if (status == WAL_OK || status == WAL_EBUSY) {
        status =
            wal_session_cursor_open(follow->views.target.store, NULL, &follow->initial_scan, error);
    }
    follow->scanned_sequence = follow->durable;
    return status;
}

/* Waits until records become durable; does not block during the initial scan. */
static enum wal_status wait_for_records(struct follow *follow, struct wal_error *error)
{
    int64_t timeout_ms = follow->initial_scan != NULL ? 0 : POLL_MS;
    enum wal_status status;

    (void)fflush(stdout);
    cli_permit_end(true);
    status = wal_store_wait(follow->views.target.store, &follow->durable, WAL_DURABLE, timeout_ms,
                            error);
    cli_permit_end(false);
    return status;
}

static enum wal_status follow_once(struct follow *follow, struct wal_error *error)
{
    enum wal_status status = wait_for_records(follow, error);

    if (status != WAL_OK && status != WAL_EBUSY) {
        return status;
    }
    if (status == WAL_OK) {
        status = update_changed(follow, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    if (follow->initial_scan != NULL && !must_stop()) {
        status = update_next(follow, error);
        if (status != WAL_OK) {
            return status;
        }
    }
    status = retry_failed(follow, error);
    if (status == WAL_OK) {
        views_close_idle(&follow->views);
    }
    return status;
}

/* The store failed: another process may be replacing or repairing it. Reports each new error once
 * and opens the store again every second. */
static void reopen_store(struct follow *follow, enum wal_status status, struct wal_error *error)
{
    const struct timespec delay = {.tv_sec = POLL_MS / 1000};

    do {
        if (follow->reported_status != status) {
            cli_report_error(follow->cli, follow->path, status, error);
        }
        follow->reported_status = status;
        close_store(follow);
        (void)fflush(stdout);
        cli_permit_end(true);
        (void)nanosleep(&delay, NULL);
        cli_permit_end(false);
        status = open_views(follow, error);
    } while (status != WAL_OK && !must_stop());
}

static int follow_store(struct follow *follow)
{
    enum wal_status status = open_views(follow, follow->cli->error);

    if (status != WAL_OK) {
        cli_report(follow->cli, follow->path, status);
        close_store(follow);
        return cli_exit_code(status);
    }
    while (!must_stop()) {
        status = follow_once(follow, follow->cli->error);
        if (status != WAL_OK) {
            reopen_store(follow, status, follow->cli->error);
        } else if (follow->initial_scan == NULL) {
            follow->reported_status = WAL_OK;
        }
    }
    close_store(follow);
    return CLI_OK;
}

/* ------------------------------------------------------------- command --- */

static void check_dialect(const struct cli *cli, const char *name)
{
    const char *name_at;

    if (name == NULL) {
        cli_fail(cli, CLI_USAGE, "--dialect", "is required");
    }
    if (strcmp(name, "source") == 0) {
        cli_fail(cli, CLI_USAGE, "--dialect",
                 "'source' cannot be followed; use the dialect of the "
                 "files, or agentwal export");
    }
    for (uint32_t i = 0; (name_at = wal_view_dialect(i)) != NULL; i++) {
        if (strcmp(name_at, name) == 0) {
            return;
        }
    }
    cli_fail(cli, CLI_USAGE, "--dialect", "'%s' cannot be written (see: agentwal dialects)", name);
}

int verb_follow(struct cli *cli, int argc, char **argv)
{
    const char *dialect = NULL;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    static struct follow follow = {.retry_delay = 1};
    int code;

    cli_parse_operands(cli, argc, argv, options, 3, 3);
    check_dialect(cli, dialect);
    convert_check_root(cli, cli->items[2]);
    cli_permit_end(false);
    follow.cli = cli;
    follow.path = cli->items[1];
    follow.views.target = (struct convert_view){
        .cli = cli, .store_path = follow.path, .dialect = dialect, .root = cli->items[2]};
    follow.views.open_views = cli_alloc(OPEN_VIEWS_MAX * sizeof(follow.views.open_views[0]));
    code = follow_store(&follow);
    views_close(&follow.views);
    return code;
}
