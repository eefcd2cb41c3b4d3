/*
 * resume.c - the verb resume with a remote: a session of another machine's
 * store goes on here, or one that has moved is taken back (verbs.h).
 *
 * Threads: the tool has one thread.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentwal/admin.h"
#include "agentwal/transfer.h"
#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/remote/remote.h"
#include "tools/walcat/walcat.h"

enum {
    TAIL = 50,      /* entries that are printed */
    NOTE_SIZE = 512 /* bytes */
};

/* The command line, and what it opened. */
struct resume_request {
    const struct cli *cli;
    const char *path;    /* of the store */
    const char *session; /* its id */
    const char *url;
    const char *store_id;
    bool takes_back;
    bool takes_over;
    struct wal_store *store;
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

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
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
                       "it went on here and at %s: what is from there is the "
                       "session %s",
                       result->host, result->session);
    } else {
        (void)snprintf(note, sizeof(note),
                       "it goes on here; %" PRIu64 " %s from %s",
                       result->entries,
                       cli_plural(result->entries, "new entry", "new entries"),
                       result->host);
    }
    cli_note(request->cli, request->session, note);
}

static int print_tail(const struct resume_request *request, const char *id)
{
    const struct walcat_options view = {
        .tail = TAIL, .text = !request->cli->json, .store = request->store};
    struct wal_error error = CLI_ERROR_INIT;
    struct wal_session *session = NULL;
    enum wal_status status =
        wal_session_open(request->store, cli_slice(id), &session, &error);
    int code;

    if (status != WAL_OK) {
        return cli_report(request->cli, id, status, &error);
    }
    code = walcat_print_entries(request->cli, session, &view);
    wal_session_close(session);
    return code;
}

/* --- the two ways ------------------------------------------------------- */

static int bring(struct resume_request *request)
{
    struct wal_remote_resume_options options =
        WAL_INIT(wal_remote_resume_options);
    struct wal_remote_resume_result result = WAL_INIT(wal_remote_resume_result);
    struct wal_error error = CLI_ERROR_INIT;
    char *replicas = NULL;
    enum wal_status status;
    int code;

    if (request->store_id != NULL &&
        !remote_parse_store_id(request->store_id, options.uuid)) {
        return cli_error(request->cli, CLI_USAGE, "--store-id",
                         "\"%s\" is not the id of a store", request->store_id);
    }
    code = remote_open(request->cli, "URL", request->url, &request->remote);
    if (code != CLI_CONTINUE) {
        return code;
    }
    replicas = cli_format("%s/remotes", request->path);
    options.flags = request->takes_over ? WAL_REMOTE_RESUME_TAKE_OVER : 0U;
    options.session = cli_slice(request->session);
    options.directory = cli_slice(replicas);
    status = wal_remote_resume(request->remote, request->store, &options,
                               &result, &error);
    free(replicas);
    if (status != WAL_OK) {
        return remote_report(request->cli, request->session, status, &error);
    }
    print_result(request, &result);
    return print_tail(request, result.session);
}

static int take_back(struct resume_request *request)
{
    struct remote_config config = {.url = ""};
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status;
    int code = remote_config_read(request->cli, request->path, false, &config);

    if (code == CLI_NEGATIVE) {
        code = remote_permit_appends(request->cli, request->store,
                                     request->session);
    } else if (code == CLI_CONTINUE) {
        code = remote_open(request->cli, "URL", config.url, &request->remote);
        if (code != CLI_CONTINUE) {
            return code;
        }
        status = wal_remote_take_back(request->remote, request->store,
                                      cli_slice(request->session), &error);
        code = status == WAL_OK ? CLI_OK
                                : remote_report(request->cli, request->session,
                                                status, &error);
    }
    if (code == CLI_OK) {
        cli_note(request->cli, request->session, "it goes on here again");
        code = print_tail(request, request->session);
    }
    return code;
}

/* --- the verb ----------------------------------------------------------- */

static int check(const struct resume_request *request)
{
    const struct cli *cli = request->cli;

    if (request->takes_back == (request->url != NULL)) {
        return cli_error(cli, CLI_USAGE, "resume",
                         "has either --remote or --take-back");
    }
    if (request->takes_back &&
        (request->takes_over || request->store_id != NULL)) {
        return cli_error(cli, CLI_USAGE, "--take-back",
                         "has no further options");
    }
    return cli_check_operands(cli, 3, 3);
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

    cli->adds_to_store = true;
    code = cli_parse(cli, argc, argv, options);
    if (code == CLI_CONTINUE) {
        code = check(&request);
    }
    if (code == CLI_CONTINUE) {
        request.path = cli->items[1];
        request.session = cli->items[2];
        cli->adds_to_store = !request.takes_back;
        /* Also where a process was killed while it made the store. */
        code = cli_open_store(cli, request.path,
                              request.takes_back ? 0 : WAL_OPEN_CREATE,
                              &request.store);
    }
    if (code == CLI_CONTINUE) {
        code = request.takes_back ? take_back(&request) : bring(&request);
    }
    wal_remote_close(request.remote);
    if (request.store != NULL) {
        code = cli_close_store(cli, request.path, request.store, code);
    }
    return code;
}
