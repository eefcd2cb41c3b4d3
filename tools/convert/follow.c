/*
 * follow.c - keep the views of all sessions current until interrupted.
 *
 * The process waits for durable records, then updates the views of the sessions
 * that have a record after scanned_sequence. Separately it scans all sessions
 * once after opening the store, because a view's state is stored next to its
 * files and may have changed while no follower ran.
 *
 * Invariant: of the store only the list of roots of views is written. SIGINT
 * and SIGTERM are unblocked only during waits, so that no view is left
 * half-written.
 *
 * Threads: the tools are single-threaded.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/verbs.h"
#include "tools/convert/follow_views.h"
#include "tools/convert/output_file.h"

#define POLL_MS     1000 /* between checks for changes without a record */
#define RETRY_MAX_S 32   /* between retries of failed views */

struct follow {
    const struct cli *cli;
    const char *path;
    struct convert_views views;
    /* Cursor of the initial scan, NULL when it has ended. */
    struct wal_session_cursor *initial_scan;
    uint64_t durable; /* newest durable sequence number */
    /* Views are current up to here, except those that the initial scan has not
     * reached. */
    uint64_t scanned_sequence;
    /* Time of the next retry, in seconds of CLOCK_MONOTONIC. */
    time_t retry_time;
    time_t retry_delay; /* delay after that retry, in seconds */
    /* The last error of the store that was reported, or WAL_OK. */
    int32_t reported_status;
};

/* ------------------------------------------------------------- signals --- */

/* Runs only during waits. */
static void exit_on_signal(int number)
{
    (void)number;
    _exit(CLI_OK);
}

static sigset_t exit_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/* Runs before any thread is created, so that no thread receives them. */
static void block_signals(void)
{
    const struct sigaction action = {.sa_handler = exit_on_signal};
    const sigset_t set = exit_signals();

    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

static bool must_stop(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    sigset_t set;

    if (sigpending(&set) == 0 &&
        (sigismember(&set, SIGINT) == 1 || sigismember(&set, SIGTERM) == 1)) {
        return true;
    }
    return cli_output_failed() ||
           (poll(&output, 1, 0) > 0 &&
            (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0);
}

/* ------------------------------------------------------------ sessions --- */

typedef bool session_filter(const struct follow *follow,
                            const struct wal_session_info *info,
                            const void *ctx);

/* Updates the views of the sessions that the filter selects. */
static enum wal_status update_filtered(struct follow *follow,
                                       session_filter *filter, const void *ctx,
                                       struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal_session_cursor_open(follow->views.target.store, NULL, &list, error);

    while (status == WAL_OK && !must_stop() &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (filter(follow, &info, ctx)) {
            (void)convert_views_update(&follow->views, &info);
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

static bool is_relative(const struct follow *follow,
                        const struct wal_session_info *info, const void *ctx)
{
    (void)follow;
    return cli_ids_find(ctx, info->id) != NULL;
}

/* Adds the sessions of a list to ids: all of them, or with NULL options the
 * forks of sessions in ids. */
static enum wal_status
add_relatives(struct wal_store *store,
              const struct wal_session_cursor_options *options,
              struct cli_ids *ids, struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal_session_cursor_open(store, options, &list, error);

    while (status == WAL_OK &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        bool is_fork = (info.flags & WAL_SESSION_FORK) != 0;
        if (options != NULL ||
            (is_fork && cli_ids_find(ids, info.parent_id) != NULL)) {
            (void)cli_ids_get_or_add(ids, info.id);
        }
    }
    wal_session_cursor_close(list);
    return status == WAL_END ? WAL_OK : status;
}

/* A redaction of a shared entry affects every session that shares it. Updates
 * the session's ancestors and all forks of these. */
static enum wal_status update_relatives(struct follow *follow,
                                        struct wal_slice id,
                                        struct wal_error *error)
{
    const struct wal_session_cursor_options ancestors = {
        .struct_size = sizeof(ancestors),
        .flags = WAL_SESSION_CURSOR_LINEAGE,
        .lineage_of = id};
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
static enum wal_status update_changed(struct follow *follow,
                                      struct wal_error *error)
{
    const struct wal_session_cursor_options options = {
        .struct_size = sizeof(options),
        .recorded_after = follow->scanned_sequence};
    struct wal_session_info info = WAL_INIT(wal_session_info);
    uint64_t durable = follow->durable;
    struct wal_session_cursor *list = NULL;
    enum wal_status status = wal_session_cursor_open(follow->views.target.store,
                                                     &options, &list, error);

    while (status == WAL_OK && !must_stop() &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (convert_views_update(&follow->views, &info)) {
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
static enum wal_status update_next(struct follow *follow,
                                   struct wal_error *error)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status =
        wal_session_cursor_next(follow->initial_scan, &info, error);

    if (status == WAL_OK) {
        (void)convert_views_update(&follow->views, &info);
    }
    if (status == WAL_END) {
        wal_session_cursor_close(follow->initial_scan);
        follow->initial_scan = NULL;
        status = WAL_OK;
    }
    return status;
}

static bool is_failing(const struct follow *follow,
                       const struct wal_session_info *info, const void *ctx)
{
    (void)ctx;
    return convert_views_is_failing(&follow->views, info->number);
}

/* Retries failed views: for example, the disk may have space again or the
 * output directory may be writable again. */
static enum wal_status retry_failed(struct follow *follow,
                                    struct wal_error *error)
{
    struct convert_views *views = &follow->views;
    uint64_t update_count = views->update_count;
    enum wal_status status = WAL_OK;

    if (views->failing == 0) {
        follow->retry_delay = 1;
        follow->retry_time = when_steady_ms() / 1000 + 1;
    } else if (when_steady_ms() / 1000 >= follow->retry_time) {
        status = update_filtered(follow, is_failing, NULL, error);
        if (status == WAL_OK && !must_stop()) {
            convert_views_clear_failing(views, update_count);
        }
        follow->retry_time = when_steady_ms() / 1000 + follow->retry_delay;
        if (follow->retry_delay < RETRY_MAX_S) {
            follow->retry_delay *= 2;
        }
    }
    return status;
}

/* --------------------------------------------------------------- store --- */

/* A read-only opener of a store that no process has open misses the records of
 * a process that opens and closes the store before it first looks. A short
 * writable open keeps the store open meanwhile. */
static enum wal_status open_store(struct follow *follow,
                                  struct wal_error *error)
{
    const struct wal_open_options write_options =
        cli_open_options(follow->cli, 0);
    const struct wal_open_options read_options =
        cli_open_options(follow->cli, WAL_OPEN_READ_ONLY);
    struct wal_store *writable = NULL;
    enum wal_status status;

    (void)!wal_open(follow->path, &write_options, &writable, NULL);
    status = wal_open(follow->path, &read_options, &follow->views.target.store,
                      error);
    (void)wal_close(writable, NULL);
    return status;
}

static void close_store(struct follow *follow)
{
    wal_session_cursor_close(follow->initial_scan);
    follow->initial_scan = NULL;
    convert_views_close(&follow->views);
    (void)wal_close(follow->views.target.store, NULL);
    follow->views.target.store = NULL;
}

/* Everything durable at this point is covered by the initial scan. */
static enum wal_status open_views(struct follow *follow,
                                  struct wal_error *error)
{
    enum wal_status status = open_store(follow, error);

    follow->durable = 0;
    if (status == WAL_OK) {
        status = wal_store_wait(follow->views.target.store, &follow->durable,
                                WAL_DURABLE, 0, error);
    }
    if (status == WAL_OK || status == WAL_EBUSY) {
        status = wal_session_cursor_open(follow->views.target.store, NULL,
                                         &follow->initial_scan, error);
    }
    follow->scanned_sequence = follow->durable;
    return status;
}

/* Waits until records become durable; does not block during the initial
 * scan. */
static enum wal_status wait_for_records(struct follow *follow,
                                        struct wal_error *error)
{
    const sigset_t set = exit_signals();
    int64_t timeout_ms = follow->initial_scan != NULL ? 0 : POLL_MS;
    enum wal_status status;

    (void)fflush(stdout);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    status = wal_store_wait(follow->views.target.store, &follow->durable,
                            WAL_DURABLE, timeout_ms, error);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return status;
}

static enum wal_status follow_once(struct follow *follow,
                                   struct wal_error *error)
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
        convert_views_close_idle(&follow->views);
    }
    return status;
}

/* The store failed: another process may be replacing or repairing it. Reports
 * each new error once and opens the store again every second. */
static void reopen_store(struct follow *follow, enum wal_status status,
                         struct wal_error *error)
{
    const struct timespec delay = {.tv_sec = POLL_MS / 1000};
    const sigset_t set = exit_signals();

    do {
        if (follow->reported_status != status) {
            cli_report(follow->cli, follow->path, status, error);
        }
        follow->reported_status = status;
        close_store(follow);
        (void)fflush(stdout);
        (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void)nanosleep(&delay, NULL);
        (void)sigprocmask(SIG_BLOCK, &set, NULL);
        status = open_views(follow, error);
    } while (status != WAL_OK && !must_stop());
}

static int follow_store(struct follow *follow)
{
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = open_views(follow, &error);

    if (status != WAL_OK) {
        cli_report(follow->cli, follow->path, status, &error);
        close_store(follow);
        return cli_exit_code(status);
    }
    while (!must_stop()) {
        status = follow_once(follow, &error);
        if (status != WAL_OK) {
            reopen_store(follow, status, &error);
        } else if (follow->initial_scan == NULL) {
            follow->reported_status = WAL_OK;
        }
    }
    close_store(follow);
    return CLI_OK;
}

/* ------------------------------------------------------------- command --- */

static int check_dialect(const struct cli *cli, const char *name)
{
    const char *name_at;

    if (name == NULL) {
        return cli_error(cli, CLI_USAGE, "--dialect", "is required");
    }
    if (strcmp(name, "source") == 0) {
        return cli_error(cli, CLI_USAGE, "--dialect",
                         "'source' cannot be followed; use the dialect of the "
                         "files, or agentwal export");
    }
    for (uint32_t i = 0; (name_at = wal_view_dialect(i)) != NULL; i++) {
        if (strcmp(name_at, name) == 0) {
            return CLI_CONTINUE;
        }
    }
    return cli_error(cli, CLI_USAGE, "--dialect",
                     "'%s' cannot be written (see: agentwal dialects)", name);
}

int verb_follow(struct cli *cli, int argc, char **argv)
{
    const char *dialect = NULL;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    struct follow follow = {.cli = cli, .retry_delay = 1};
    int code = cli_parse(cli, argc, argv, options);

    if (code != CLI_CONTINUE) {
        return code;
    }
    code = cli_check_operands(cli, 3, 3);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = check_dialect(cli, dialect);
    if (code != CLI_CONTINUE) {
        return code;
    }
    code = convert_check_root(cli, cli->items[2]);
    if (code != CLI_CONTINUE) {
        return code;
    }
    block_signals();
    follow.path = cli->items[1];
    follow.views.target = (struct convert_view){.cli = cli,
                                                .store_path = follow.path,
                                                .dialect = dialect,
                                                .root = cli->items[2]};
    convert_views_init(&follow.views);
    code = follow_store(&follow);
    convert_views_deinit(&follow.views);
    return code;
}
