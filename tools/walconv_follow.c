/*
 * walconv_follow - keeps the views of all sessions current until interrupted.
 *
 * It sleeps until the log has durable news, and then brings up the views of
 * the sessions that have a new record. What it knows between two rounds may
 * be lost at any time: a view's state is beside its files.
 *
 * Threads: one.
 */
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/walconv.h"
#include "tools/walconv_view.h"

#define OPEN_MAX  64   /* views that are held open */
#define LOOK_MS   200  /* between looks at what else may end it */
#define CLOSE_MAX 4096 /* rounds after which an idle view is closed */

struct held {
    char *id;
    struct wal_session *session;
    struct wal_view *view;
    uint64_t round; /* it was last brought up in */
    bool is_failed; /* that was said */
};

struct names {
    char **items;
    size_t count;
    size_t capacity;
};

struct follow {
    const struct cli *cli;
    struct walconv_view of;
    struct held held[OPEN_MAX];
    uint64_t round;
    uint64_t seen; /* sequence number up to which all is in the views */
    int code;
};

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* --------------------------------------------------------------- views --- */

static void release(struct held *held)
{
    wal_view_close(held->view);
    wal_session_close(held->session);
    free(held->id);
    *held = (struct held){.id = NULL};
}

/* The session's view, or the place for it: a free one, or that of the view
 * that had nothing new for the longest time. */
static struct held *place_of(struct follow *follow, const char *id)
{
    struct held *oldest = &follow->held[0];

    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct held *held = &follow->held[i];
        if (held->id != NULL && strcmp(held->id, id) == 0) {
            return held;
        }
        if (oldest->id != NULL &&
            (held->id == NULL || held->round < oldest->round)) {
            oldest = held;
        }
    }
    release(oldest);
    return oldest;
}

static enum wal_status hold(struct follow *follow, struct held *held,
                            const char *id, struct wal_error *error)
{
    enum wal_status status;

    if (held->view != NULL) {
        return WAL_OK;
    }
    held->id = cli_copy(id, strlen(id));
    status = wal_session_open(follow->of.store, cli_slice(id), &held->session,
                              error);
    if (status == WAL_OK) {
        status =
            walconv_view_open(&follow->of, held->session, &held->view, error);
    }
    return status;
}

/* Brings the view of a session up; true when what it said before was written
 * anew. */
static bool bring_up(struct follow *follow, const char *id)
{
    struct wal_view_report report = {.struct_size = sizeof(report)};
    struct wal_error error = CLI_ERROR_INIT;
    struct held *held = place_of(follow, id);
    enum wal_status status = hold(follow, held, id, &error);

    if (status == WAL_OK) {
        status = wal_view_flush(held->view, &report, &error);
    }
    held->round = follow->round;
    if (status == WAL_ENOTFOUND) {
        release(held); /* it was deleted */
        return false;
    }
    if (status != WAL_OK) {
        if (!held->is_failed) {
            follow->code = cli_worse(follow->code,
                                     cli_fail(follow->cli, id, status, &error));
        }
        held->is_failed = true;
        if (held->view == NULL) {
            release(held);
        }
        return false;
    }
    held->is_failed = false;
    if (report.lines > 0 || (report.flags & WAL_VIEW_REPLACED) != 0) {
        walconv_view_print(&follow->of, held->view, id, &report);
    }
    return (report.flags & WAL_VIEW_REPLACED) != 0;
}

static void close_idle(struct follow *follow)
{
    for (size_t i = 0; i < OPEN_MAX; i++) {
        struct held *held = &follow->held[i];
        if (held->id != NULL && held->round + CLOSE_MAX < follow->round) {
            release(held);
        }
    }
}

/* ------------------------------------------------------------- sessions --- */

static void add_name(struct names *names, struct wal_slice id)
{
    for (size_t i = 0; i < names->count; i++) {
        if (cli_slice_equal(cli_slice(names->items[i]), id)) {
            return;
        }
    }
    names->items = cli_room(names->items, names->count, &names->capacity,
                            sizeof(names->items[0]));
    names->items[names->count++] = cli_copy(id.data, (size_t)id.size);
}

static void free_names(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

/* Adds what a list gives. */
static void add_listed(struct follow *follow,
                       const struct wal_list_options *options,
                       struct names *names)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_list *list = NULL;

    if (wal_list_open(follow->of.store, options, &list, NULL) == WAL_OK) {
        while (wal_list_next(list, &info, NULL) == WAL_OK) {
            if ((info.flags & WAL_SESSION_DELETED) == 0) {
                add_name(names, info.id);
            }
        }
    }
    wal_list_close(list);
}

/* What one session hides of what it shares, it hides of all that share it:
 * its ancestors and their forks. */
static void bring_up_family(struct follow *follow, const char *id)
{
    const struct wal_list_options ancestors = {.struct_size = sizeof(ancestors),
                                               .flags = WAL_LIST_LINEAGE,
                                               .of = cli_slice(id)};
    struct names names = {.items = NULL};

    add_name(&names, cli_slice(id));
    add_listed(follow, &ancestors, &names);
    for (size_t i = 0; i < names.count; i++) {
        const struct wal_list_options forks = {
            .struct_size = sizeof(forks), .parent = cli_slice(names.items[i])};
        add_listed(follow, &forks, &names);
    }
    for (size_t i = 1; i < names.count && !is_interrupted; i++) {
        (void)bring_up(follow, names.items[i]);
    }
    free_names(&names);
}

/* The sessions that have a record behind what was seen, newest first. */
static int find_changed(struct follow *follow, struct names *names)
{
    struct wal_session_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_list *list = NULL;
    enum wal_status status =
        wal_list_open(follow->of.store, NULL, &list, &error);

    while (status == WAL_OK &&
           (status = wal_list_next(list, &info, &error)) == WAL_OK &&
           info.last_sequence > follow->seen) {
        names->items = cli_room(names->items, names->count, &names->capacity,
                                sizeof(names->items[0]));
        names->items[names->count++] =
            cli_copy(info.id.data, (size_t)info.id.size);
    }
    wal_list_close(list);
    return status == WAL_OK || status == WAL_END
               ? CLI_GO_ON
               : cli_fail(follow->cli, follow->cli->items[1], status, &error);
}

static int bring_up_changed(struct follow *follow, uint64_t durable)
{
    struct names names = {.items = NULL};
    int code = find_changed(follow, &names);

    for (size_t i = 0; i < names.count && !is_interrupted; i++) {
        if (bring_up(follow, names.items[i])) {
            bring_up_family(follow, names.items[i]);
        }
    }
    fflush(stdout);
    free_names(&names);
    follow->seen = durable;
    follow->round++;
    close_idle(follow);
    return code;
}

/* ------------------------------------------------------------- command --- */

static bool is_over(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return is_interrupted || cli_output_gone() ||
           (poll(&output, 1, 0) > 0 &&
            (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0);
}

static int follow_store(struct follow *follow)
{
    struct wal_error error = CLI_ERROR_INIT;
    uint64_t durable = 0;
    int code = CLI_GO_ON;

    while (code == CLI_GO_ON && !is_over()) {
        enum wal_status status = wal_store_wait(follow->of.store, &durable,
                                                WAL_DURABLE, LOOK_MS, &error);
        if (status == WAL_OK) {
            code = bring_up_changed(follow, durable);
        } else if (status != WAL_EBUSY) {
            code = cli_fail(follow->cli, follow->cli->items[1], status, &error);
        }
    }
    for (size_t i = 0; i < OPEN_MAX; i++) {
        release(&follow->held[i]);
    }
    return code == CLI_GO_ON ? follow->code : cli_worse(follow->code, code);
}

static int check_dialect(const struct cli *cli, const char *name)
{
    const char *known;

    if (name == NULL) {
        return cli_error(cli, CLI_USAGE, "--dialect", "is needed");
    }
    for (uint32_t i = 0; (known = wal_view_dialect(i)) != NULL; i++) {
        if (strcmp(known, name) == 0) {
            return CLI_GO_ON;
        }
    }
    return cli_error(cli, CLI_USAGE, "--dialect",
                     "'%s' cannot be followed (see: walconv dialects)", name);
}

/* A handle that only reads may see the store as it was when it was opened. */
static int check_store(const struct cli *cli, struct wal_store *store)
{
    struct wal_store_info info = {.struct_size = sizeof(info)};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = wal_store_status(store, &info, &error);

    if (status != WAL_OK) {
        return cli_fail(cli, cli->items[1], status, &error);
    }
    return info.status == WAL_EREADONLY
               ? cli_error(cli, CLI_FAILED, cli->items[1],
                           "cannot be followed: it may not be written to")
               : CLI_GO_ON;
}

int walconv_follow(struct cli *cli, int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = interrupt};
    const char *dialect = NULL;
    const struct cli_option options[] = {
        {.name = "dialect", .value = &dialect},
        {.name = NULL},
    };
    struct follow follow = {.cli = cli, .code = CLI_DONE};
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_GO_ON) {
        code = cli_operands(cli, 3, 3);
    }
    if (code == CLI_GO_ON) {
        code = check_dialect(cli, dialect);
    }
    if (code == CLI_GO_ON) {
        code = cli_open(cli, cli->items[1], 0, &follow.of.store);
    }
    if (code != CLI_GO_ON) {
        return code;
    }
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
    follow.of.cli = cli;
    follow.of.dialect = dialect;
    follow.of.root = cli->items[2];
    code = check_store(cli, follow.of.store);
    if (code == CLI_GO_ON) {
        code = follow_store(&follow);
    }
    return cli_close(cli, cli->items[1], follow.of.store, code);
}
