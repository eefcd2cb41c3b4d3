/*
 * serve.c - the verb serve: answers requests until it is interrupted (verbs.h, docs/seeing.md);
 * which function answers which method and path; the page.
 *
 * Invariant: the socket and the token of a port are readable by their owner only. A running server
 * holds a lock on the file of its token. What is not the token of a server that has ended is not
 * replaced.
 *
 * Threads: this one waits for a signal; those of server.c answer.
 */
#include "tools/serve/api.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/system.h"
#include "tools/cli/verbs.h"
#include "tools/page/page.h"
#include "tools/usage/usage.h"

/* --- methods and paths -------------------------------------------------- */

static enum wal_status get_page(struct serve_exchange *exchange, struct wal_error *error)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        page_bytes_size, (void *)(uintptr_t)page_bytes, MHD_RESPMEM_PERSISTENT);
    char policy[PAGE_POLICY_SIZE];

    (void)error;
    page_policy(false, policy);
    serve_response_check(response, "text/html; charset=utf-8");
    serve_response_header(response, "Content-Security-Policy", policy);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
    return WAL_OK;
}

struct serve_route {
    const char *method;
    const char *path; /* "*" is any segment */
    serve_handler *handle;
    unsigned session; /* the segment that names the session to be opened; 0: none */
    bool is_slow;     /* writes, or reads more than a part of a session */
};

static const struct serve_route routes[] = {
    {"GET", "/", get_page, 0, false},
    {"GET", "/api/v1/info", serve_get_info, 0, false},
    {"GET", "/api/v1/events", serve_get_events, 0, false},
    {"GET", "/api/v1/projects", serve_get_projects, 0, true},
    {"GET", "/api/v1/sessions", serve_get_sessions, 0, false},
    {"GET", "/api/v1/sessions/*", serve_get_session, 3, false},
    {"GET", "/api/v1/sessions/*/entries", serve_get_entries, 0, false},
    {"GET", "/api/v1/sessions/*/entries/*", serve_get_entry, 3, false},
    {"GET", "/api/v1/sessions/*/tree", serve_get_tree, 3, false},
    {"GET", "/api/v1/sessions/*/heads", serve_get_heads, 3, false},
    {"GET", "/api/v1/sessions/*/checkpoints", serve_get_checkpoints, 3, false},
    {"GET", "/api/v1/sessions/*/diff", serve_get_diff, 3, true},
    {"GET", "/api/v1/sessions/*/usage", serve_get_session_usage, 3, true},
    {"GET", "/api/v1/sessions/*/export", serve_get_export, 3, false},
    {"GET", "/api/v1/search", serve_get_search, 0, true},
    {"GET", "/api/v1/usage", serve_get_usage, 0, true},
    {"GET", "/api/v1/blobs/*", serve_get_blob, 0, false},
    {"GET", "/session", serve_opencode_list, 0, false},
    {"POST", "/session", serve_opencode_create, 0, true},
    {"GET", "/session/status", serve_opencode_other, 0, false},
    {"GET", "/session/*", serve_opencode_get, 1, false},
    {"PATCH", "/session/*", serve_opencode_change, 0, true},
    {"DELETE", "/session/*", serve_opencode_delete, 1, true},
    {"GET", "/session/*/children", serve_opencode_children, 1, false},
    {"GET", "/session/*/message", serve_opencode_messages, 1, false},
    {"POST", "/session/*/message", serve_opencode_append, 0, true},
    {"GET", "/project", serve_opencode_projects, 0, true},
    {"GET", "/project/current", serve_opencode_project, 0, true},
};

/* HEAD has the head of the answer to GET. */
static bool has_method(const struct serve_route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/* Writes the methods that the resource has, as the header Allow lists them; without --write those
 * that only read. */
static void serve_list_methods(const struct serve_exchange *exchange, char text[SERVE_METHODS_SIZE])
{
    size_t size = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct serve_route *route = &routes[i];
        bool is_get = strcmp(route->method, "GET") == 0;

        if ((is_get || exchange->server->can_write) &&
            serve_exchange_matches(exchange, route->path)) {
            size += (size_t)snprintf(text + size, SERVE_METHODS_SIZE - size, "%s%s",
                                     size > 0 ? ", " : "", is_get ? "GET, HEAD" : route->method);
        }
    }
}

enum wal_status serve_open_session(struct serve_exchange *exchange, unsigned segment,
                                   struct wal_error *error)
{
    enum wal_status status = wal_session_open(exchange->server->store, exchange->segments[segment],
                                              &exchange->session, error);

    /* An id that no session can have names no session. */
    return status == WAL_EINVAL || status == WAL_ETOOBIG ? WAL_ENOTFOUND : status;
}

/* Opens the session of the route, and answers. */
static void run_route(struct serve_exchange *exchange)
{
    const struct serve_route *route = exchange->route;
    struct wal_error error = CLI_ERROR_INIT;
    enum wal_status status = WAL_OK;

    if (route->session != 0) {
        status = serve_open_session(exchange, route->session, &error);
    }
    if (status == WAL_OK) {
        status = route->handle(exchange, &error);
    }
    if (status != WAL_OK) {
        serve_exchange_fail(exchange, status, &error);
    }
    wal_session_close(exchange->session);
    exchange->session = NULL;
}

/* Answers a request that passed the checks. */
static void route_request(struct serve_exchange *exchange)
{
    bool is_known = false;

    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        const struct serve_route *route = &routes[i];

        if (!serve_exchange_matches(exchange, route->path)) {
            continue;
        }
        is_known = true;
        if (has_method(route, exchange->method)) {
            exchange->route = route;
            /* With a text to look for, every session of a list may have to be looked at. */
            if (route->is_slow || serve_exchange_query(exchange, "title").size > 0) {
                serve_exchange_run(exchange, run_route);
            } else {
                run_route(exchange);
            }
            return;
        }
    }
    if (!is_known && serve_opencode_has(exchange)) {
        (void)serve_opencode_other(exchange, NULL);
    } else if (is_known) {
        serve_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "this resource does not have the method %s", exchange->method);
    } else {
        serve_exchange_refuse(exchange, MHD_HTTP_NOT_FOUND,
                              "there is no such resource; docs/seeing.md lists them");
    }
}

/* A file that the server made. Zeroed: none. */
struct serve_file {
    const char *path; /* or NULL */
    int lock;         /* a descriptor, while is_made: of a token */
    bool is_made;
    dev_t device;
    ino_t inode;
};

/* --- the files of a running server -------------------------------------- */

/* Whether a file has what write_token writes. */
static bool is_token(int fd)
{
    char text[SERVE_SECRET_SIZE + 1];
    struct stat found;

    return fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && found.st_uid == geteuid() &&
           found.st_size == SERVE_SECRET_SIZE &&
           read(fd, text, sizeof(text)) == SERVE_SECRET_SIZE &&
           text[SERVE_SECRET_SIZE - 1] == '\n' &&
           strspn(text, "0123456789abcdef") == SERVE_SECRET_SIZE - 1;
}

/* Removes the token of a server that has ended. */
static int remove_old_token(const struct cli *cli, const char *path)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    int code = CLI_OK;

    if (fd < 0 && errno == ENOENT) {
        return CLI_OK;
    }
    if (fd < 0 || !is_token(fd)) {
        code = cli_error(cli, CLI_FAILED, path,
                         "is not a token of agentwal serve; remove it, or name "
                         "another file with --token-file");
    } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        code = cli_error(cli, CLI_FAILED, path,
                         "is the token of another server, which runs; name "
                         "another file with --token-file");
    } else if (unlink(path) != 0 && errno != ENOENT) {
        code = cli_error(cli, CLI_FAILED, path, "cannot replace the token: %s", strerror(errno));
    }
    if (fd >= 0) {
        close(fd);
    }
    return code;
}

/* Notes which file is at the path now: the server has made it. */
static void file_note(struct serve_file *file)
{
    struct stat found;

    file->is_made = lstat(file->path, &found) == 0;
    if (file->is_made) {
        file->device = found.st_dev;
        file->inode = found.st_ino;
    }
}

/* Writes the token to a file that is made anew, and notes it. Returns CLI_OK, or an exit code
 * after an error. */
static int write_token(const struct cli *cli, struct serve_file *file, const char *token)
{
    size_t size = strlen(token);
    int code = remove_old_token(cli, file->path);

    if (code != CLI_OK) {
        return code;
    }
    file->lock =
        open(file->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (file->lock < 0 || flock(file->lock, LOCK_EX | LOCK_NB) != 0 ||
        write(file->lock, token, size) != (ssize_t)size || write(file->lock, "\n", 1) != 1) {
        code =
            cli_error(cli, CLI_FAILED, file->path, "cannot write the token: %s", strerror(errno));
        if (file->lock >= 0) {
            close(file->lock);
        }
        return code;
    }
    file_note(file);
    return CLI_OK;
}

/* Removes the file if it is still the one that was noted. */
static void file_remove(const struct serve_file *file)
{
    struct stat found;

    if (file->is_made && lstat(file->path, &found) == 0 && found.st_dev == file->device &&
        found.st_ino == file->inode) {
        unlink(file->path);
    }
}

/* --- the verb ----------------------------------------------------------- */

enum {
    CONNECTIONS_MAX = 100000,
    IDLE_MAX_S = 86400,
    LINK_MAX_S = 604800,
    URL_SIZE = 160,
    /* Blocks above this size go back to the system when they are freed. */
    RETURNED_SIZE = 256 << 10
};

struct arguments {
    uint64_t port; /* UINT64_MAX: not given */
    const char *socket;
    const char *token_file;
    uint64_t connections;
    uint64_t idle_s;
    uint64_t link_s; /* UINT64_MAX: not given */
    const char *prices;
    bool writes;
    bool opens;
};

/* A server and the paths of its files. */
struct serving {
    struct serve_server server;
    sigset_t mask; /* with which to wait for a signal */
    pthread_t preparer;
    bool is_preparing; /* the thread was started */
    atomic_bool is_prepared;
    struct serve_file socket;
    struct serve_file token;
    char link[URL_SIZE];
    char url[URL_SIZE];
};

static void configure(const struct cli *cli, const struct arguments *arguments,
                      struct serving *serving)
{
    bool has_port = arguments->socket == NULL;

    if (!has_port && (arguments->port != UINT64_MAX || arguments->opens ||
                      arguments->token_file != NULL || arguments->link_s != UINT64_MAX)) {
        cli_fail(cli, CLI_USAGE, "--socket", "takes no option of a port");
    }
    serving->server = (struct serve_server){
        .cli = cli,
        .can_write = arguments->writes,
        .has_port = has_port,
        .port = arguments->port != UINT64_MAX ? (uint16_t)arguments->port : 0,
        .connection_limit = (unsigned)arguments->connections,
        .idle_s = (unsigned)arguments->idle_s,
        .route = route_request,
        .list_methods = serve_list_methods,
        .link_s =
            arguments->link_s != UINT64_MAX ? (unsigned)arguments->link_s : (unsigned)SERVE_LINK_S,
    };
}

static int open_socket(struct serving *serving, const struct arguments *arguments)
{
    struct serve_server *server = &serving->server;
    int code;

    serving->socket.path = arguments->socket;
    server->socket_path = arguments->socket;
    code = serve_listen(server);
    if (code == CLI_OK) {
        file_note(&serving->socket);
    }
    return code;
}

/* Makes a link, and the one before void. */
static void make_link(struct serving *serving)
{
    struct serve_access *access = &serving->server.access;

    serve_access_renew(access, serving->server.link_s);
    snprintf(serving->link, URL_SIZE, "http://%s/?key=%s", access->names[0], access->key);
}

static int open_port(struct serving *serving, const struct arguments *arguments)
{
    struct serve_server *server = &serving->server;
    struct serve_access *access = &server->access;
    int code = serve_listen(server);

    if (code != CLI_OK) {
        return code;
    }
    serve_access_init(access, server->port);
    snprintf(serving->url, URL_SIZE, "http://%s/", access->names[0]);
    serving->token.path = arguments->token_file;
    make_link(serving);
    if (arguments->token_file != NULL) {
        code = write_token(server->cli, &serving->token, access->token);
    }
    return code;
}

static void print_json(const struct serving *serving)
{
    struct wal__json_out json;

    cli_json_begin(&json);
    if (serving->server.has_port) {
        cli_json_member_text(&json, "url", cli_slice(serving->url));
        cli_json_member_text(&json, "open", cli_slice(serving->link));
        cli_json_member_text_or_null(&json, "tokenFile", cli_slice(serving->token.path));
    } else {
        cli_json_member_text(&json, "socket", cli_slice(serving->socket.path));
    }
    wal__json_out_close_line(&json);
}

static void print_address(const struct serving *serving)
{
    if (serving->server.cli->json) {
        print_json(serving);
    } else if (serving->server.has_port) {
        printf("%s\n", serving->link);
    } else {
        cli_print_name(stdout, cli_slice(serving->socket.path));
        putchar('\n');
    }
    fflush(stdout);
}

/* Opens the link in the user's browser. */
static void open_browser(const struct serving *serving)
{
    extern char **environ;
    char program[] = "xdg-open";
    char *arguments[] = {program, (char *)(uintptr_t)serving->link, NULL};
    pid_t child;

    if (posix_spawnp(&child, program, NULL, NULL, arguments, environ) != 0) {
        cli_note(serving->server.cli, "--open",
                 "there is no xdg-open; open the link that is printed");
    }
}

static volatile sig_atomic_t is_interrupted;

static void interrupt(int number)
{
    (void)number;
    is_interrupted = 1;
}

/* Blocks the signals that end the server, in all threads that are started afterwards too. *before
 * is the mask with which to wait for them. */
static void block_signals(sigset_t *before)
{
    const struct sigaction action = {.sa_handler = interrupt};
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &set, before);
    sigdelset(before, SIGINT);
    sigdelset(before, SIGTERM);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* Waits for a signal. Enter prints another link, unless the terminal's input is another job's. */
static void wait_for_signal(struct serving *serving)
{
    const struct timespec pause = {.tv_sec = 1};
    fd_set input;
    bool has_terminal = serving->server.has_port && isatty(STDIN_FILENO) != 0;
    char line[256];

    if (has_terminal) {
        fputs("The link opens in one browser. Enter prints another one, Ctrl-C ends.\n", stderr);
    }
    while (!is_interrupted) {
        bool is_own = has_terminal && tcgetpgrp(STDIN_FILENO) == getpgrp();
        int ready;

        FD_ZERO(&input);
        FD_SET(STDIN_FILENO, &input);
        ready = pselect(is_own ? STDIN_FILENO + 1 : 0, &input, NULL, NULL,
                        has_terminal ? &pause : NULL, &serving->mask);
        if (ready <= 0 || tcgetpgrp(STDIN_FILENO) != getpgrp()) {
            continue;
        }
        has_terminal = read(STDIN_FILENO, line, sizeof(line)) > 0;
        if (has_terminal) {
            make_link(serving);
            print_address(serving);
        }
    }
}

/* Removes the files. The sockets still listen: no other server has taken the path of this one's
 * meanwhile. */
static void remove_files(const struct serving *serving)
{
    file_remove(&serving->socket);
    file_remove(&serving->token);
}

/* Stops the events and frees what answers have used. */
static void close_parts(struct serve_server *server)
{
    serve_feed_destroy(server->feed);
    serve_index_close(server->index);
    serve_totals_close(server->totals);
}

/* The thread reads what the first browser would wait for. */
static void *prepare(void *ctx)
{
    struct serving *serving = ctx;

    serve_totals_prepare(&serving->server);
    serve_index_prepare(serving->server.index);
    atomic_store(&serving->is_prepared, true);
    return NULL;
}

static int answer_until_signal(struct serving *serving, bool opens)
{
    struct serve_server *server = &serving->server;
    bool has_ended;
    int code;

    server->index = serve_index_open(server);
    server->totals = serve_totals_open();
    server->feed = serve_feed_start(server);
    code = server->feed != NULL ? serve_start(server) : CLI_FAILED;
    if (code != CLI_OK) {
        if (server->feed != NULL) {
            serve_feed_stop(server->feed);
        }
        close_parts(server);
        return code;
    }
    serving->is_preparing =
        server->has_port && pthread_create(&serving->preparer, NULL, prepare, serving) == 0;
    print_address(serving);
    if (opens) {
        open_browser(serving);
    }
    wait_for_signal(serving);
    remove_files(serving);
    serve_feed_stop(server->feed);
    has_ended = serve_stop(server);
    if (serving->is_preparing && atomic_load(&serving->is_prepared)) {
        pthread_join(serving->preparer, NULL);
    } else if (serving->is_preparing) {
        has_ended = false;
    }
    if (!has_ended) {
        _exit(CLI_OK); /* their threads use the store */
    }
    close_parts(server);
    return CLI_OK;
}

static int serve(struct serving *serving, const struct arguments *arguments)
{
    struct serve_server *server = &serving->server;
    int code = server->has_port ? open_port(serving, arguments) : open_socket(serving, arguments);

    if (code == CLI_OK) {
        code = answer_until_signal(serving, arguments->opens);
    }
    if (code != CLI_OK) {
        remove_files(serving); /* those that were made */
    }
    if (serving->token.is_made) {
        close(serving->token.lock);
    }
    return code;
}

int serve_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.port = UINT64_MAX,
                                  .connections = SERVE_CONNECTIONS,
                                  .idle_s = SERVE_IDLE_S,
                                  .link_s = UINT64_MAX};
    static struct serving serving;
    static struct usage_prices prices;
    const struct cli_option options[] = {
        {.name = "port", .number = &arguments.port, .max = UINT16_MAX},
        {.name = "socket", .value = &arguments.socket},
        {.name = "token-file", .value = &arguments.token_file},
        {.name = "connections", .number = &arguments.connections, .min = 1, .max = CONNECTIONS_MAX},
        {.name = "idle", .number = &arguments.idle_s, .min = 1, .max = IDLE_MAX_S},
        {.name = "link-time", .number = &arguments.link_s, .min = 1, .max = LINK_MAX_S},
        {.name = "prices", .value = &arguments.prices},
        {.name = "write", .flag = &arguments.writes},
        {.name = "open", .flag = &arguments.opens},
        {.name = NULL},
    };
    int code;

    cli_parse_operands(cli, argc, argv, options, 2, 2);
    configure(cli, &arguments, &serving);
    usage_prices_open(&prices, cli, arguments.prices);
    serving.server.prices = &prices;
    block_signals(&serving.mask); /* before the store has threads */
    cli_use_store(cli, cli->items[1], 0);
    serving.server.store = cli->store;
    wal__system_limit_heap(RETURNED_SIZE);
    code = serve(&serving, &arguments);
    usage_prices_deinit(&prices);
    return code;
}

/* --- search of a build without SQLite ------------------------------------- */

/* search.c replaces these. */
__attribute__((weak)) struct serve_index *serve_index_open(struct serve_server *server)
{
    (void)server;
    return NULL;
}

__attribute__((weak)) void serve_index_close(struct serve_index *index)
{
    (void)index;
}

__attribute__((weak)) void serve_index_prepare(struct serve_index *index)
{
    (void)index;
}

__attribute__((weak)) enum wal_status serve_get_search(struct serve_exchange *exchange,
                                                       struct wal_error *error)
{
    (void)error;
    serve_exchange_refuse(exchange, MHD_HTTP_NOT_IMPLEMENTED,
                          "this agentwal was built without search");
    return WAL_OK;
}
