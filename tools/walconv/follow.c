/*
 * follow.c - keeps the views of all sessions current until interrupted.
 *
 * It sleeps until the log has durable news, and brings up the views of the
 * sessions that have a record behind what it saw: the list gives the newest
 * first. Beside that it goes once through all sessions, since what it knows
 * between two rounds may be lost at any time: a view's state is beside its
 * files.
 *
 * Invariant: the store is only read. The signals that end it come while it
 * sleeps, so that no view is left between two states.
 *
 * Threads: one.
 */

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tools/cli/ids.h"
#include "tools/walconv/follow_views.h"
#include "tools/walconv/walconv.h"

#define POLL_MS     1000 /* between looks at what no record tells */
#define RETRY_MAX_S 32

struct follow {
    const struct cli *cli;
    const char *path;
    struct walconv_views views;
    /* the wait_for_records of the first look at all, or null */
    struct wal_session_cursor *all;
    uint64_t durable; /* the newest sequence number that is */
    uint64_t
        scanned_sequence;    /* up to here all is in the views, but for `all` */
    time_t retry;            /* when to try again what failed, */
    time_t retry_delay;      /* and what to wait after that */
    int32_t reported_status; /* what is wrong with the store, or WAL_OK */
};

/* ------------------------------------------------------------- signals --- */

/* Only ever while it sleeps. */
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

/* Before any thread is made, so that none takes them. */
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

static time_t seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

/* ------------------------------------------------------------ sessions --- */

typedef bool session_filter(const struct follow *follow,
                            const struct wal_session_info *info,
                            const void *ctx);

/* Brings up those of all sessions that are picked. */
static enum wal_status update_filtered(struct follow *follow,
                                       session_filter *filter, const void *ctx,
                                       struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal_session_cursor_open(follow->views.of.store, NULL, &list, error);

    while (status == WAL_OK && !must_stop() &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK) {
        if (filter(follow, &info, ctx)) {
            (void)walconv_views_update(&follow->views, &info);
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

/* Adds the sessions that a list gives: all of it, or the forks of those that
 * are there. */
static enum wal_status
add_relatives(struct wal_store *store,
              const struct wal_session_cursor_options *options,
              struct cli_ids *ids, struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
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

/* What a session hides of what it shares, it hides of all that share it: its
 * ancestors, and all forks of these. */
static enum wal_status update_relatives(struct follow *follow,
                                        struct wal_slice id,
                                        struct wal_error *error)
{
    const struct wal_session_cursor_options ancestors = {
        .struct_size = sizeof(ancestors),
        .flags = WAL_SESSION_CURSOR_LINEAGE,
        .lineage_of = id};
    struct wal_store *store = follow->views.of.store;
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
    return status == WAL_ENOTFOUND ? WAL_OK : status; /* it was deleted */
}

/* Those that have a record behind what was scanned_sequence. */
static enum wal_status update_changed(struct follow *follow,
                                      struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    uint64_t durable = follow->durable;
    struct wal_session_cursor *list = NULL;
    enum wal_status status =
        wal_session_cursor_open(follow->views.of.store, NULL, &list, error);

    while (status == WAL_OK && !must_stop() &&
           (status = wal_session_cursor_next(list, &info, error)) == WAL_OK &&
           info.last_sequence > follow->scanned_sequence) {
        if (walconv_views_update(&follow->views, &info)) {
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

/* One more of the first look at all. */
static enum wal_status update_next(struct follow *follow,
                                   struct wal_error *error)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    enum wal_status status = wal_session_cursor_next(follow->all, &info, error);

    if (status == WAL_OK) {
        (void)walconv_views_update(&follow->views, &info);
    }
    if (status == WAL_END) {
        wal_session_cursor_close(follow->all);
        follow->all = NULL;
        status = WAL_OK;
    }
    return status;
}

static bool is_failing(const struct follow *follow,
                       const struct wal_session_info *info, const void *ctx)
{
    (void)ctx;
    return walconv_views_is_failing(&follow->views, info->number);
}

/* What failed, and may succeed now: there is room again, or the output
 * directory may be written to. */
static enum wal_status retry(struct follow *follow, struct wal_error *error)
{
    struct walconv_views *views = &follow->views;
    uint64_t update_count = views->update_count;
    enum wal_status status = WAL_OK;

    if (views->failing == 0) {
        follow->retry_delay = 1;
        follow->retry = seconds() + 1;
    } else if (seconds() >= follow->retry) {
        status = update_filtered(follow, is_failing, NULL, error);
        if (status == WAL_OK && !must_stop()) {
            walconv_views_clear_failing(views, update_count);
        }
        follow->retry = seconds() + follow->retry_delay;
        if (follow->retry_delay < RETRY_MAX_S) {
            follow->retry_delay *= 2;
        }
    }
    return status;
}

/* --------------------------------------------------------------- store --- */

/* Who opens a store to read while nobody lives does not hear whoever comes for
 * less than it takes to look. So somebody does live meanwhile. */
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
    status =
        wal_open(follow->path, &read_options, &follow->views.of.store, error);
    (void)wal_close(writable, NULL);
    return status;
}

static void close_store(struct follow *follow)
{
    wal_session_cursor_close(follow->all);
    follow->all = NULL;
    walconv_views_close(&follow->views);
    (void)wal_close(follow->views.of.store, NULL);
    follow->views.of.store = NULL;
}

/* What is durable now is looked at by going through all. */
static enum wal_status open_views(struct follow *follow,
                                  struct wal_error *error)
{
    enum wal_status status = open_store(follow, error);

    follow->durable = 0;
    if (status == WAL_OK) {
        status = wal_store_wait(follow->views.of.store, &follow->durable,
                                WAL_DURABLE, 0, error);
    }
    if (status == WAL_OK || status == WAL_EBUSY) {
        status = wal_session_cursor_open(follow->views.of.store, NULL,
                                         &follow->all, error);
    }
    follow->scanned_sequence = follow->durable;
    return status;
}

/* Sleeps until there are durable news, where nothing else is to be done. */
static enum wal_status wait_for_records(struct follow *follow,
                                        struct wal_error *error)
{
    const sigset_t set = exit_signals();
    int64_t most = follow->all != NULL ? 0 : POLL_MS;
    enum wal_status status;

    (void)fflush(stdout);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    status = wal_store_wait(follow->views.of.store, &follow->durable,
                            WAL_DURABLE, most, error);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    return status;
}

static enum wal_status follow_once(struct follow *follow,
                                   struct wal_error *error)
{
    enum wal_status status = wait_for_records(follow, error);

    if (status == WAL_OK) {
        status = update_changed(follow, error);
    } else if (status == WAL_EBUSY) {
        status = WAL_OK;
    }
    if (status == WAL_OK && follow->all != NULL && !must_stop()) {
        status = update_next(follow, error);
    }
    if (status == WAL_OK) {
        status = retry(follow, error);
    }
    if (status == WAL_OK) {
        walconv_views_close_idle(&follow->views);
    }
    return status;
}

/* The store is in the hands of others: what is wrong with it is reported_status
 * once, and looked at again. */
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
        } else if (follow->all == NULL) {
            follow->reported_status = WAL_OK;
        }
    }
    close_store(follow);
    return CLI_OK;
}

/* ------------------------------------------------------------- command --- */

static int check_dialect(const struct cli *cli, const char *name)
{
    const char *known;

    if (name == NULL) {
        return cli_error(cli, CLI_USAGE, "--dialect", "is needed");
    }
    if (strcmp(name, "source") == 0) {
        return cli_error(cli, CLI_USAGE, "--dialect",
                         "the files that came in are not followed: take the "
                         "dialect that they are of, or walconv export");
    }
    for (uint32_t i = 0; (known = wal_view_dialect(i)) != NULL; i++) {
        if (strcmp(known, name) == 0) {
            return CLI_CONTINUE;
        }
    }
    return cli_error(cli, CLI_USAGE, "--dialect",
                     "'%s' cannot be written (see: walconv dialects)", name);
}

int walconv_follow(struct cli *cli, int argc, char **argv)
{
    const char *dialect = NULL;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    struct follow follow = {.cli = cli, .retry_delay = 1};
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 3, 3);
    }
    if (code == CLI_CONTINUE) {
        code = check_dialect(cli, dialect);
    }
    if (code == CLI_CONTINUE) {
        code = walconv_check_root(cli, cli->items[2]);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    block_signals();
    follow.path = cli->items[1];
    follow.views.of = (struct walconv_view){.cli = cli,
                                            .store_path = follow.path,
                                            .dialect = dialect,
                                            .root = cli->items[2]};
    walconv_views_init(&follow.views);
    code = follow_store(&follow);
    walconv_views_deinit(&follow.views);
    return code;
}
