/*
 * remote.c - the verb remote: a store is kept in an object store too, and brought from it to other
 * machines; the check of a remote; and the verb resume with a remote: a session of another
 * machine's store goes on here, or one that has moved is taken back (verbs.h).
 */
#include "tools/remote/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/walcat/walcat.h"

/* --- the check ---------------------------------------------------------- */

struct check_remote {
    const struct cli *cli;
    char url[REMOTE_URL_SIZE];
    uint8_t uuid[16];
    bool has_uuid;
    struct wal__json_out json;
    struct wal_remote_check_result result;
};

/* --- what is checked ---------------------------------------------------- */

/* Reads the URL, and the id, of the store in a directory. */
static void read_store(struct check_remote *check, const char *path)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    struct remote_config config = {.url = ""};
    struct wal_store *store = cli_open_store(check->cli, path, WAL_OPEN_READ_ONLY);
    enum wal_status status = wal_store_get_info(store, &info, check->cli->error);

    cli_need(check->cli, remote_report(check->cli, path, status));
    memcpy(check->uuid, info.uuid, sizeof(check->uuid));
    check->has_uuid = true;
    cli_need(check->cli, remote_config_read(check->cli, path, true, &config));
    memcpy(check->url, config.url, sizeof(check->url));
    cli_need(check->cli, cli_close_store(check->cli, path, store, CLI_OK));
}

static void read_target(struct check_remote *check, const char *target, const char *store_id)
{
    remote_read_store_id(check->cli, store_id, check->uuid);
    check->has_uuid = store_id != NULL;
    if (strstr(target, "://") != NULL) {
        remote_copy_url(check->cli, "--remote", target, check->url);
    } else if (store_id != NULL) {
        cli_fail(check->cli, CLI_USAGE, "--store-id", "not allowed: the store has its id");
    } else {
        read_store(check, target);
    }
}

/* --- the report --------------------------------------------------------- */

static void begin_report(struct check_remote *check)
{
    if (check->cli->json) {
        cli_json_init(&check->json, stdout);
        wal__json_out_open(&check->json, '{');
        cli_json_member_text(&check->json, "url", cli_slice(check->url));
        wal__json_out_member_open(&check->json, "damage", '[');
    }
}

static int32_t see(void *ctx, const struct wal_error *damage)
{
    struct check_remote *check = ctx;

    if (check->cli->json) {
        wal__json_out_open(&check->json, '{');
        cli_json_member_text(&check->json, "file", cli_slice(damage->file));
        wal__json_out_member_bool(&check->json, "lost", damage->status == WAL_ENOTFOUND);
        cli_json_member_text(&check->json, "reason", cli_slice(damage->text));
        wal__json_out_close(&check->json, '}');
    } else {
        printf("%s: %s\n", damage->file, damage->text);
    }
    return 0;
}

static void end_json(struct check_remote *check, bool is_complete)
{
    const struct wal_remote_check_result *result = &check->result;
    const struct cli_count numbers[] = {
        {"epochs", result->epochs}, {"bases", result->bases}, {"segments", result->segments},
        {"parts", result->parts},   {"bytes", result->bytes}, {"lastSequence", result->sequence},
    };

    wal__json_out_close(&check->json, ']');
    if (is_complete) {
        wal__json_out_member_bool(&check->json, "sound", result->damage == 0);
    }
    cli_json_counts(&check->json, numbers, sizeof(numbers) / sizeof(numbers[0]));
    wal__json_out_close_line(&check->json);
}

static void end_text(const struct check_remote *check)
{
    const struct wal_remote_check_result *result = &check->result;
    char size[SIZE_TEXT];

    size_text(result->bytes, size);
    if (result->damage == 0) {
        printf("sound: ");
    } else {
        printf("damaged: %s; ", cli_counted(result->damage, "object", "objects"));
    }
    printf("%s and %s, %s, up to number %" PRIu64 "\n", cli_counted(result->parts, "part", "parts"),
           cli_counted(result->segments, "segment", "segments"), size, result->sequence);
}

static int run(struct check_remote *check)
{
    struct wal_remote *remote = remote_open(check->cli, "--remote", check->url);
    enum wal_status status;
    bool is_complete;

    begin_report(check);
    status = wal_remote_check(remote, check->has_uuid ? check->uuid : NULL, see, check,
                              &check->result, check->cli->error);
    wal_remote_close(remote);
    is_complete = status == WAL_OK || (status == WAL_ECORRUPT && check->result.damage > 0);
    if (check->cli->json) {
        end_json(check, is_complete);
    } else if (is_complete) {
        end_text(check);
    }
    if (!is_complete) {
        return remote_report(check->cli, check->url, status);
    }
    return status == WAL_OK ? CLI_OK : CLI_NEGATIVE;
}

int remote_check(const struct cli *cli, const char *target, const char *store_id)
{
    struct check_remote check = {.cli = cli, .result = WAL_INIT(wal_remote_check_result)};

    read_target(&check, target, store_id);
    return run(&check);
}

/* --- the verb ----------------------------------------------------------- */

enum {
    HANDOFF_WAIT_MS = 100, /* for the process that pushes, at a time */
    HANDOFF_WAITS = 600
};

/* The command line, and what it opened. */
struct request {
    struct cli *cli;
    const char *path; /* of the store */
    const char *store_id;
    const char *rate;
    bool takes_over;
    bool replaces;
    bool follows;
    bool is_now;
    bool is_anew;
    bool erases;
    struct remote_config config;
    struct wal_remote *remote;
};

/* Opens the store of the command line, which is no replica. */
static void open_store(struct request *request)
{
    struct wal_store_info info = WAL_INIT(wal_store_info);
    enum wal_status status;

    cli_use_store(request->cli, request->path, 0);
    status = wal_store_get_info(request->cli->store, &info, request->cli->error);
    cli_check(request->cli, request->path, status);
    if (info.is_replica != 0) {
        cli_end(request->cli,
                cli_error_status(request->cli, WAL_EREADONLY, request->path,
                                 "the store is a replica, which follows another one; to write to "
                                 "it: agentwal remote pull --take-over URL %s",
                                 request->path));
    }
}

static void read_config(struct request *request)
{
    cli_need(request->cli, remote_config_read(request->cli, request->path, true, &request->config));
}

/* Opens the store of the command line, and the remote that it has. */
static void open_both(struct request *request)
{
    open_store(request);
    read_config(request);
    request->remote = remote_open(request->cli, "URL", request->config.url);
}

/* Waits for no other process that pushes. */
static int lock_store(const struct request *request)
{
    int lock = -1;

    cli_need(request->cli, remote_config_lock(request->cli, request->path, true, &lock));
    return lock;
}

/* --- add ---------------------------------------------------------------- */

/* Refuses to go from one remote to another without --replace. */
static void check_former(const struct request *request, const char *url)
{
    struct remote_config former = {.url = ""};
    int code = remote_config_read(request->cli, request->path, false, &former);

    if (code == CLI_OK && strcmp(former.url, url) != 0 && !request->replaces) {
        cli_fail(request->cli, CLI_NEGATIVE, request->path,
                 "the store has the remote %s; --replace takes another one", former.url);
    }
    cli_need(request->cli, code == CLI_FAILED && !request->replaces ? code : CLI_OK);
}

static int add(struct request *request)
{
    const char *url = request->cli->items[3];
    char copy[REMOTE_URL_SIZE];
    enum wal_status status;

    remote_copy_url(request->cli, "URL", url, copy);
    open_store(request);
    check_former(request, url);
    request->remote = remote_open(request->cli, "URL", url);
    status = wal_remote_probe(request->remote, request->cli->error);
    if (status == WAL_EINVAL) {
        cli_fail(request->cli, CLI_NEGATIVE, url, "%s", request->cli->error->text);
    }
    cli_need(request->cli, remote_report(request->cli, url, status));
    if (remote_config_read(request->cli, request->path, false, &request->config) != CLI_OK) {
        remote_config_init(&request->config);
    }
    if (strcmp(request->config.url, url) != 0) {
        request->config.mark_count = 0;
    }
    memcpy(request->config.url, copy, sizeof(copy));
    cli_need(request->cli, remote_config_write(request->cli, request->path, &request->config));
    remote_print_url(request->cli, "added", url);
    return CLI_OK;
}

/* --- remove, list ------------------------------------------------------- */

static int remove_remote(struct request *request)
{
    int lock;

    read_config(request);
    lock = lock_store(request);
    remote_config_remove(request->cli, request->path);
    remote_print_url(request->cli, "removed", request->config.url);
    cli_note(request->cli, request->config.url,
             "what is there remains; to push there again: agentwal remote "
             "add, then agentwal remote push --take-over");
    close(lock);
    return CLI_OK;
}

static int list(struct request *request)
{
    const char *url = request->cli->items[3];
    enum wal_status status;

    request->remote = remote_open(request->cli, "URL", url);
    status = wal_remote_list(request->remote, remote_print_store, (void *)(uintptr_t)request->cli,
                             request->cli->error);
    return remote_report(request->cli, url, status);
}

/* --- sessions ----------------------------------------------------------- */

static int list_sessions(struct request *request)
{
    const struct cli *cli = request->cli;
    const char *url = cli->items[3];
    uint8_t uuid[16];
    enum wal_status status;

    remote_read_store_id(cli, request->store_id, uuid);
    request->remote = remote_open(cli, "URL", url);
    cli_start_pager(cli);
    status = wal_remote_list_sessions(request->remote, request->store_id != NULL ? uuid : NULL,
                                      remote_print_session, (void *)(uintptr_t)cli, cli->error);
    /* The reader of the output has had enough. */
    return status == WAL_ECALLBACK ? CLI_OK : remote_report(cli, url, status);
}

/* --- push --------------------------------------------------------------- */

/* Keeps the marks in the file of the store. */
static int32_t keep(void *ctx, const struct wal_remote_mark *marks, uint64_t count)
{
    struct request *request = ctx;

    memcpy(request->config.marks, marks, (size_t)count * sizeof(marks[0]));
    request->config.mark_count = count;
    return remote_config_write(request->cli, request->path, &request->config) == CLI_OK ? 0 : EIO;
}

/* Keeps for other verbs whether another writer has taken over. */
static void keep_fenced(struct request *request, enum wal_status status)
{
    bool is_fenced = status == WAL_EFENCED;

    if ((is_fenced || status == WAL_OK) && request->config.is_fenced != is_fenced) {
        request->config.is_fenced = is_fenced;
        (void)remote_config_write(request->cli, request->path, &request->config);
    }
}

/* Says from whom the epoch is taken. */
static void note_writer(const struct request *request)
{
    struct wal_remote_status found = WAL_INIT(wal_remote_status);
    enum wal_status status =
        wal_remote_get_status(request->remote, request->cli->store, &found, request->cli->error);
    char note[256];

    if (status == WAL_OK && found.epoch > 0 &&
        memcmp(found.writer, request->config.writer, sizeof(found.writer)) != 0) {
        (void)snprintf(note, sizeof(note), "takes over from the writer of epoch %llu, on host %s",
                       (unsigned long long)found.epoch, found.host);
        cli_note(request->cli, request->config.url, note);
    }
}

/* Sessions that moved are marked first: the marks are pushed too. A claim that cannot be read keeps
 * nothing from being stored. */
static int push_once(struct request *request, struct wal_remote_writer *writer)
{
    struct wal_remote_push_result result = WAL_INIT(wal_remote_push_result);
    enum wal_status status;
    int code =
        remote_check_moves(request->cli, request->config.url, request->remote, request->cli->store);

    status = wal_remote_push(writer, &result, request->cli->error);
    keep_fenced(request, status);
    if (status != WAL_OK) {
        return remote_report(request->cli, request->config.url, status);
    }
    remote_print_push(request->cli, request->config.url, &result);
    remote_upkeep(request->cli, request->config.url, request->remote, request->cli->store,
                  result.parts, result.part);
    return code;
}

/* Returns the argument of --rate; 0: not given. */
static uint32_t parse_rate(const struct request *request)
{
    uint64_t rate = 0;

    if (request->rate != NULL) {
        cli_parse_number(request->cli, "--rate", request->rate, 10000, &rate);
        if (rate == 0) {
            cli_fail(request->cli, CLI_USAGE, "--rate", "'0' is not a number from 1 to 10000");
        }
    }
    return (uint32_t)rate;
}

/* Starts writing as this copy of the store. */
static int open_writer(struct request *request, struct wal_remote_writer **writer)
{
    struct wal_remote_writer_options options = WAL_INIT(wal_remote_writer_options);
    enum wal_status status;

    options.flags = request->takes_over ? WAL_REMOTE_TAKE_OVER : 0U;
    memcpy(options.writer, request->config.writer, sizeof(options.writer));
    options.marks = request->config.marks;
    options.mark_count = request->config.mark_count;
    options.keep = keep;
    options.ctx = request;
    status = wal_remote_writer_open(request->remote, request->cli->store, &options, writer,
                                    request->cli->error);
    keep_fenced(request, status);
    return remote_report(request->cli, request->config.url, status);
}

static int push_locked(struct request *request)
{
    struct wal_remote_writer *writer = NULL;
    uint32_t rate = parse_rate(request);
    int code;

    if (request->takes_over) {
        note_writer(request);
    }
    if (request->follows) {
        remote_ship_init();
    }
    code = open_writer(request, &writer);
    if (code != CLI_OK) {
        return code;
    }
    code = request->follows ? remote_ship(request->cli, request->config.url, request->remote,
                                          request->cli->store, writer, rate)
                            : push_once(request, writer);
    wal_remote_writer_close(writer);
    return code;
}

/* Pushes, and ends the lock. */
static int push_holding(struct request *request, int lock)
{
    /* Another process may have pushed meanwhile. */
    int code = remote_config_read(request->cli, request->path, true, &request->config);

    if (code == CLI_OK) {
        code = push_locked(request);
    }
    close(lock);
    return code;
}

static int push(struct request *request)
{
    open_both(request);
    return push_holding(request, lock_store(request));
}

/* --- handoff ------------------------------------------------------------ */

/* Stores everything up to a number of the log, or waits until the process that pushes has done so:
 * a shipper, or another push. */
static int store_up_to(struct request *request, uint64_t wanted)
{
    const struct timespec nap = {.tv_nsec = (long)HANDOFF_WAIT_MS * 1000000};

    for (int waits = 0;; waits++) {
        uint64_t sequence = wanted - 1;
        enum wal_status status;
        int lock = -1;
        int code = remote_config_lock(request->cli, request->path, waits == HANDOFF_WAITS, &lock);

        if (code != CLI_NEGATIVE) {
            return code == CLI_OK ? push_holding(request, lock) : code;
        }
        status = wal_store_wait(request->cli->store, &sequence, WAL_CLUSTER, HANDOFF_WAIT_MS, NULL);
        if (status == WAL_OK) {
            return CLI_OK;
        }
        if (status != WAL_EBUSY) {
            (void)nanosleep(&nap, NULL); /* it is no shipper, or failed */
        }
    }
}

/* The session was not given away: it stays here. */
static void keep_session(const struct request *request, const char *session)
{
    const int code = remote_permit_appends(request->cli, request->cli->store, session);

    cli_note(request->cli, session,
             code == CLI_OK ? "it was not handed off; appends to it are permitted here"
                            : "it was not handed off, and appends to it are refused here: "
                              "hand it off again, or: agentwal resume --take-back");
}

/* The session is marked: nothing is added to it any more. Stores it to its end, and gives it
 * away. */
static int give_away(struct request *request, const char *session)
{
    struct wal_session_info info = WAL_INIT(wal_session_info);
    enum wal_status status =
        wal_session_get_info(request->cli->session, &info, request->cli->error);
    int code = CLI_OK;

    if (status == WAL_OK) {
        code = store_up_to(request, info.last_sequence);
    }
    if (status == WAL_OK && code == CLI_OK) {
        status = wal_remote_handoff(request->remote, request->cli->store, cli_slice(session),
                                    request->cli->error);
    }
    if (status != WAL_OK) {
        code = remote_report(request->cli, session, status);
    }
    if (code != CLI_OK && status != WAL_ECLAIMED) {
        keep_session(request, session);
    }
    return code;
}

static int handoff(struct request *request)
{
    const char *session = request->cli->items[3];
    enum wal_status status;
    int code;

    open_both(request);
    cli_use_session_exact(request->cli, session);
    status = wal_remote_handoff(request->remote, request->cli->store, cli_slice(session),
                                request->cli->error);
    code = status == WAL_EBUSY ? give_away(request, session)
                               : remote_report(request->cli, session, status);
    if (code == CLI_OK) {
        cli_note(request->cli, session,
                 "the next machine that resumes it has it; appends to it are refused here");
    }
    return code;
}

/* --- pull --------------------------------------------------------------- */

/* Keeps the mark of a take-over in the directory that becomes the store. */
static int32_t keep_taken(void *ctx, const struct wal_remote_mark *marks, uint64_t count)
{
    struct request *request = ctx;

    request->path = request->cli->items[4];
    return keep(request, marks, count);
}

static int pull(struct request *request)
{
    const struct cli *cli = request->cli;
    const char *url = cli->items[3];
    const char *path = cli->items[4];
    struct wal_remote_pull_options options = WAL_INIT(wal_remote_pull_options);
    struct wal_remote_pull_result result = WAL_INIT(wal_remote_pull_result);
    enum wal_status status;

    remote_read_store_id(cli, request->store_id, options.uuid);
    remote_copy_url(cli, "URL", url, request->config.url);
    request->remote = remote_open(cli, "URL", url);
    if (request->follows) {
        return remote_follow(cli, request->remote, path, &options);
    }
    if (request->takes_over) {
        remote_config_init(&request->config);
        memcpy(options.writer, request->config.writer, sizeof(options.writer));
        options.flags = WAL_REMOTE_PULL_TAKE_OVER;
        options.keep = keep_taken;
        options.ctx = request;
    }
    status = wal_remote_pull(request->remote, path, &options, &result, cli->error);
    cli_need(cli, remote_report(cli, path, status));
    remote_print_pull(cli, path, request->takes_over, &result);
    return CLI_OK;
}

/* --- compact ------------------------------------------------------------ */

/* A process that has files which a compaction replaced. */
static void count_reader(void *ctx, int32_t process, uint64_t bytes)
{
    uint64_t *readers = ctx;

    (void)process;
    (void)bytes;
    (*readers)++;
}

/* Erases in the store what is deleted and redacted. */
static void erase_store(struct request *request)
{
    uint64_t readers = 0;
    struct wal_store_compact_options options = WAL_INIT(wal_store_compact_options);
    struct wal_store_compact_result result = WAL_INIT(wal_store_compact_result);
    enum wal_status status;

    options.flags = WAL_STORE_COMPACT_ERASE | WAL_STORE_COMPACT_EMPTY_TRASH;
    options.reader = count_reader;
    options.ctx = &readers;
    status = wal_store_compact(request->cli->store, &options, &result, request->cli->error);
    cli_check(request->cli, request->path, status);
    if (result.refused != 0 || readers != 0) {
        cli_fail(request->cli, CLI_NEGATIVE, request->path,
                 "the store itself holds what is to be erased yet; agentwal gc --erase says where; "
                 "nothing was erased in the remote");
    }
}

/* Erases in the remote what the store has erased. */
static int erase_remote(struct request *request)
{
    struct wal_remote_compact_result result = WAL_INIT(wal_remote_compact_result);
    struct wal_remote_writer *writer = NULL;
    enum wal_status status;
    int code;

    cli_need(request->cli, open_writer(request, &writer));
    status = wal_remote_erase(writer, &result, request->cli->error);
    wal_remote_writer_close(writer);
    if (status != WAL_OK) {
        code = remote_report(request->cli, request->config.url, status);
        cli_note(request->cli, request->config.url, "what was erased may be there yet; repeat it");
        return code;
    }
    remote_print_compact(request->cli, request->config.url, &result);
    cli_note(request->cli, request->config.url,
             "not reached: replicas until their next pull, and earlier versions "
             "that the object store keeps of objects");
    return CLI_OK;
}

static int erase(struct request *request)
{
    int lock;
    int code;

    open_both(request);
    lock = lock_store(request);
    read_config(request); /* another process may have pushed meanwhile */
    erase_store(request);
    code = erase_remote(request);
    close(lock);
    return code;
}

static int compact(struct request *request)
{
    struct wal_remote_compact_options options = WAL_INIT(wal_remote_compact_options);
    struct wal_remote_compact_result result = WAL_INIT(wal_remote_compact_result);
    enum wal_status status;

    if (request->erases) {
        return erase(request);
    }
    open_both(request);
    if (request->is_now) {
        options.flags |= WAL_REMOTE_COMPACT_NOW;
    }
    if (request->is_anew) {
        options.flags |= WAL_REMOTE_COMPACT_NOW | WAL_REMOTE_COMPACT_ANEW;
    }
    status = wal_remote_compact(request->remote, request->cli->store, &options, &result,
                                request->cli->error);
    cli_need(request->cli, remote_report(request->cli, request->config.url, status));
    remote_print_compact(request->cli, request->config.url, &result);
    return CLI_OK;
}

/* --- status ------------------------------------------------------------- */

static int print_status(struct request *request)
{
    struct wal_remote_status found = WAL_INIT(wal_remote_status);
    enum wal_status status;

    open_both(request);
    status =
        wal_remote_get_status(request->remote, request->cli->store, &found, request->cli->error);
    if (status == WAL_OK || status == WAL_ECONFLICT) {
        bool is_writer = found.epoch > 0 &&
                         memcmp(found.writer, request->config.writer, sizeof(found.writer)) == 0;

        remote_print_status(request->cli, request->config.url, is_writer, status == WAL_OK, &found);
    }
    return remote_report(request->cli, request->config.url, status);
}

/* --- the verb ----------------------------------------------------------- */

static const struct command {
    const char *name;
    int operands; /* after the store */
    int (*run)(struct request *request);
} commands[] = {
    {"add", 1, add},
    {"remove", 0, remove_remote},
    {"list", 1, list},
    {"push", 0, push},
    {"pull", 2, pull},
    {"status", 0, print_status},
    {"handoff", 1, handoff},
    {"compact", 0, compact},
    {"sessions", 1, list_sessions},
};

static const struct command *find_command(const struct cli *cli)
{
    for (size_t i = 0; cli->count > 1 && i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, cli->items[1]) == 0) {
            return &commands[i];
        }
    }
    cli_fail(cli, CLI_USAGE, cli->count > 2 ? cli->items[1] : "remote",
             "expected add, remove, list, sessions, push, pull, "
             "status, handoff or compact");
}

/* Checks that the command has the options and operands. */
static void check_request(const struct request *request, const struct command *command)
{
    const struct cli *cli = request->cli;
    bool is_push = command->run == push;
    bool is_pull = command->run == pull;

    if (request->takes_over && !is_push && !is_pull) {
        cli_fail(cli, CLI_USAGE, "--take-over", "is an option of push and pull");
    }
    if ((request->store_id != NULL && !is_pull && command->run != list_sessions) ||
        (request->replaces && command->run != add) || (request->follows && !is_push && !is_pull) ||
        (request->rate != NULL && !is_push) ||
        ((request->is_now || request->is_anew || request->erases) && command->run != compact)) {
        cli_fail(cli, CLI_USAGE, command->name, "has no such option");
    }
    if (request->rate != NULL && !request->follows) {
        cli_fail(cli, CLI_USAGE, "--rate", "needs --follow");
    }
    if (request->follows && request->takes_over && is_pull) {
        cli_fail(cli, CLI_USAGE, "--follow", "not allowed with --take-over");
    }
    cli_check_operands(cli, 3 + command->operands, 3 + command->operands);
}

int remote_run(struct cli *cli, int argc, char **argv)
{
    struct request request = {.cli = cli};
    const struct cli_option options[] = {
        {.name = "store-id", .value = &request.store_id},
        {.name = "take-over", .flag = &request.takes_over},
        {.name = "replace", .flag = &request.replaces},
        {.name = "follow", .flag = &request.follows},
        {.name = "rate", .value = &request.rate},
        {.name = "now", .flag = &request.is_now},
        {.name = "anew", .flag = &request.is_anew},
        {.name = "erase", .flag = &request.erases},
        {.name = NULL},
    };
    const struct command *command;
    int code;

    cli_parse(cli, argc, argv, options);
    command = find_command(cli);
    check_request(&request, command);
    request.path = cli->items[2];
    code = command->run(&request);
    wal_remote_close(request.remote);
    return code;
}

/* --- the verb resume ---------------------------------------------------- */

enum {
    TAIL = 50,      /* entries that are printed */
    NOTE_SIZE = 512 /* bytes */
};

/* The command line, and what it opened. */
struct resume_request {
    struct cli *cli;
    const char *path;    /* of the store */
    const char *session; /* its id */
    const char *url;
    const char *store_id;
    bool takes_back;
    bool takes_over;
    struct wal_remote *remote;
};

/* --- what is printed ---------------------------------------------------- */

static void write_result(const struct wal_remote_resume_result *result)
{
    static const char *const kinds[] = {
        [WAL_TRANSFER_CREATED] = "created",
        [WAL_TRANSFER_CONTINUED] = "continued",
        [WAL_TRANSFER_UNCHANGED] = "unchanged",
        [WAL_TRANSFER_BRANCHED] = "branched",
    };
    struct wal__json_out json;

    cli_json_begin(&json);
    cli_json_member_text(&json, "sessionId", cli_slice(result->session));
    cli_json_member_text(&json, "result", cli_slice(kinds[result->kind]));
    cli_json_member_text(&json, "host", cli_slice(result->host));
    wal__json_out_member_count(&json, "entries", result->entries);
    wal__json_out_member_count(&json, "parts", result->parts);
    wal__json_out_member_count(&json, "bytes", result->bytes);
    wal__json_out_close_line(&json);
}

static void print_result(const struct resume_request *request,
                         const struct wal_remote_resume_result *result)
{
    char note[NOTE_SIZE];

    if (request->cli->json) {
        write_result(result);
        return;
    }
    if (strcmp(result->session, request->session) != 0) {
        (void)snprintf(note, sizeof(note),
                       "it went on here and at %s: what is from there is the session %s",
                       result->host, result->session);
    } else {
        (void)snprintf(note, sizeof(note), "it goes on here; %s from %s%s",
                       cli_counted(result->entries, "new entry", "new entries"), result->host,
                       result->parts > 0 ? ", whose store was pulled" : "");
    }
    cli_note(request->cli, request->session, note);
}

static int print_tail(const struct resume_request *request, const char *id)
{
    const struct walcat_options view = {
        .tail = TAIL, .text = !request->cli->json, .store = request->cli->store};
    enum wal_status status = wal_session_open(request->cli->store, cli_slice(id),
                                              &request->cli->session, request->cli->error);

    cli_check(request->cli, id, status);
    return walcat_print_entries(request->cli, request->cli->session, &view);
}

/* --- the two ways ------------------------------------------------------- */

static int bring(struct resume_request *request)
{
    struct wal_remote_resume_options options = WAL_INIT(wal_remote_resume_options);
    struct wal_remote_resume_result result = WAL_INIT(wal_remote_resume_result);
    char *replicas = NULL;
    enum wal_status status;

    remote_read_store_id(request->cli, request->store_id, options.uuid);
    request->remote = remote_open(request->cli, "URL", request->url);
    replicas = cli_keep(cli_format("%s/remotes", request->path));
    options.flags = request->takes_over ? WAL_REMOTE_RESUME_TAKE_OVER : 0U;
    options.session = cli_slice(request->session);
    options.directory = cli_slice(replicas);
    status = wal_remote_resume(request->remote, request->cli->store, &options, &result,
                               request->cli->error);
    cli_need(request->cli, remote_report(request->cli, request->session, status));
    print_result(request, &result);
    return print_tail(request, result.session);
}

static int take_back(struct resume_request *request)
{
    struct remote_config config = {.url = ""};
    enum wal_status status;
    int code = remote_config_read(request->cli, request->path, false, &config);

    if (code == CLI_NEGATIVE) {
        code = remote_permit_appends(request->cli, request->cli->store, request->session);
    } else if (code == CLI_OK) {
        request->remote = remote_open(request->cli, "URL", config.url);
        status = wal_remote_take_back(request->remote, request->cli->store,
                                      cli_slice(request->session), request->cli->error);
        code = remote_report(request->cli, request->session, status);
    }
    cli_need(request->cli, code);
    cli_note(request->cli, request->session, "it goes on here again");
    return print_tail(request, request->session);
}

/* --- the verb ----------------------------------------------------------- */

static void check_resume(const struct resume_request *request)
{
    const struct cli *cli = request->cli;

    if (request->takes_back == (request->url != NULL)) {
        cli_fail(cli, CLI_USAGE, "resume", "has either --remote or --take-back");
    }
    if (request->takes_back && (request->takes_over || request->store_id != NULL)) {
        cli_fail(cli, CLI_USAGE, "--take-back", "has no further options");
    }
    cli_check_operands(cli, 3, 3);
}

int remote_resume_run(struct cli *cli, int argc, char **argv)
{
    struct resume_request request = {.cli = cli};
    const struct cli_option options[] = {
        {.name = "remote", .value = &request.url},
        {.name = "take-back", .flag = &request.takes_back},
        {.name = "store-id", .value = &request.store_id},
        {.name = "take-over", .flag = &request.takes_over},
        {.name = NULL},
    };
    int code;

    cli_parse(cli, argc, argv, options);
    check_resume(&request);
    request.path = cli->items[1];
    request.session = cli->items[2];
    cli->adds_to_store = !request.takes_back;
    /* Also where a process was killed while it made the store. */
    cli_use_store(cli, request.path, request.takes_back ? 0 : WAL_OPEN_CREATE);
    code = request.takes_back ? take_back(&request) : bring(&request);
    wal_remote_close(request.remote);
    return code;
}
