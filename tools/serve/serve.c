/*
 * serve.c - the verb serve: answers requests until it is interrupted (verbs.h,
 * docs/seeing.md).
 *
 * Threads: this one waits for a signal; those of http/server.h answer.
 */
#include <malloc.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/json.h"
#include "tools/cli/verbs.h"
#include "tools/serve/api/search.h"
#include "tools/serve/events/feed.h"
#include "tools/serve/http/server.h"
#include "tools/serve/place.h"
#include "tools/serve/route.h"

enum {
    CONNECTIONS_MAX = 100000,
    IDLE_MAX_S = 86400,
    LINK_MAX_S = 604800,
    URL_SIZE = 160,
    /* Blocks above this size go back to the system when they are freed. */
    RETURNED_SIZE = 256 << 10,
    ARENAS = 2
};

struct arguments {
    const char *port;
    const char *socket;
    const char *token_file;
    const char *connections;
    const char *idle;
    const char *link_time;
    bool writes;
    bool opens;
};

/* A server and the paths of its files. */
struct serving {
    struct serve_server server;
    sigset_t mask; /* with which to wait for a signal */
    struct serve_file socket;
    struct serve_file token;
    unsigned link_s;
    char link[URL_SIZE];
    char url[URL_SIZE];
};

static int read_number(const struct cli *cli, const char *option,
                       const char *text, uint64_t min, uint64_t max,
                       unsigned *number)
{
    uint64_t value = *number;
    int code = CLI_CONTINUE;

    if (text != NULL) {
        code = cli_parse_number(cli, option, text, max, &value);
    }
    if (code == CLI_CONTINUE && value < min) {
        code = cli_error(cli, CLI_USAGE, option, "must be at least %llu",
                         (unsigned long long)min);
    }
    *number = (unsigned)value;
    return code;
}

/* Reads the options that are numbers. */
static int configure(const struct cli *cli, const struct arguments *arguments,
                     struct serving *serving)
{
    struct serve_server *server = &serving->server;
    unsigned port = 0;
    int code;

    if (arguments->port != NULL && arguments->socket != NULL) {
        return cli_error(cli, CLI_USAGE, "--socket",
                         "cannot be given with --port");
    }
    if (arguments->port == NULL &&
        (arguments->opens || arguments->token_file != NULL ||
         arguments->link_time != NULL)) {
        return cli_error(cli, CLI_USAGE,
                         arguments->opens                ? "--open"
                         : arguments->token_file != NULL ? "--token-file"
                                                         : "--link-time",
                         "needs --port");
    }
    *server = (struct serve_server){
        .cli = cli,
        .can_write = arguments->writes,
        .has_port = arguments->port != NULL,
        .connection_limit = SERVE_CONNECTIONS,
        .idle_s = SERVE_IDLE_S,
        .route = serve_route,
        .list_methods = serve_list_methods,
    };
    serving->link_s = SERVE_LINK_S;
    code = read_number(cli, "--port", arguments->port, 0, UINT16_MAX, &port);
    if (code == CLI_CONTINUE) {
        code = read_number(cli, "--connections", arguments->connections, 1,
                           CONNECTIONS_MAX, &server->connection_limit);
    }
    if (code == CLI_CONTINUE) {
        code = read_number(cli, "--idle", arguments->idle, 1, IDLE_MAX_S,
                           &server->idle_s);
    }
    if (code == CLI_CONTINUE) {
        code = read_number(cli, "--link-time", arguments->link_time, 1,
                           LINK_MAX_S, &serving->link_s);
    }
    server->port = (uint16_t)port;
    return code;
}

/* Names the socket, or makes the token of the port. */
static int open_socket(struct serving *serving,
                       const struct arguments *arguments)
{
    struct serve_server *server = &serving->server;
    int code;

    if (arguments->socket != NULL) {
        serving->socket.path =
            cli_copy_text(arguments->socket, strlen(arguments->socket));
    } else {
        serving->socket.path = serve_place(server->cli, "serve.sock");
    }
    server->socket_path = serving->socket.path;
    code = serving->socket.path != NULL ? serve_listen(server) : CLI_FAILED;
    if (code == CLI_CONTINUE) {
        serve_file_note(&serving->socket);
    }
    return code;
}

static int open_port(struct serving *serving, const struct arguments *arguments)
{
    struct serve_server *server = &serving->server;
    struct serve_access *access = &server->access;
    char name[32];
    int code = serve_listen(server);

    if (code != CLI_CONTINUE) {
        return code;
    }
    if (!serve_access_init(access, server->port, serving->link_s)) {
        return cli_error(server->cli, CLI_FAILED, "serve",
                         "the system has no random bytes");
    }
    snprintf(name, sizeof(name), "serve-%u.token", server->port);
    serving->token.path = arguments->token_file != NULL
                              ? cli_copy_text(arguments->token_file,
                                              strlen(arguments->token_file))
                              : serve_place(server->cli, name);
    snprintf(serving->url, URL_SIZE, "http://%s/", access->names[0]);
    snprintf(serving->link, URL_SIZE, "http://%s/?key=%s", access->names[0],
             access->key);
    if (serving->token.path == NULL) {
        return CLI_FAILED;
    }
    return serve_write_token(server->cli, &serving->token, access->token);
}

static void print_json(const struct serving *serving)
{
    struct wal__json_out json;

    cli_json_init(&json, stdout);
    wal__json_out_open(&json, '{');
    if (serving->server.has_port) {
        cli_json_member_text(&json, "url", cli_slice(serving->url));
        cli_json_member_text(&json, "open", cli_slice(serving->link));
        cli_json_member_text(&json, "tokenFile",
                             cli_slice(serving->token.path));
    } else {
        cli_json_member_text(&json, "socket", cli_slice(serving->socket.path));
    }
    wal__json_out_close_line(&json);
}

static void print_addresses(const struct serving *serving)
{
    const struct serve_server *server = &serving->server;

    if (server->cli->json) {
        print_json(serving);
    } else if (server->has_port) {
        printf("%s\n", serving->link);
        if (server->sockets[1] >= 0) {
            printf("http://%s/\n", server->access.names[1]);
        }
        printf("token: ");
        cli_print_name(stdout, cli_slice(serving->token.path));
        putchar('\n');
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

/* Blocks the signals that end the server, in all threads that are started
 * afterwards too. *before is the mask with which to wait for them. */
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

/* Removes the files. The sockets still listen: no other server has taken the
 * path of this one's meanwhile. */
static void remove_files(const struct serving *serving)
{
    serve_file_remove(&serving->socket);
    serve_file_remove(&serving->token);
}

/* Stops the events and frees what answers have used. */
static void close_parts(struct serve_server *server)
{
    serve_feed_destroy(server->feed);
    serve_index_close(server->index);
}

static int answer_until_signal(struct serving *serving, bool opens)
{
    struct serve_server *server = &serving->server;
    bool has_ended;
    int code;

    server->index = serve_index_open(server);
    server->feed = serve_feed_start(server);
    code = server->feed != NULL ? serve_start(server) : CLI_FAILED;
    if (code != CLI_CONTINUE) {
        if (server->feed != NULL) {
            serve_feed_stop(server->feed);
        }
        close_parts(server);
        return code;
    }
    print_addresses(serving);
    if (opens) {
        open_browser(serving);
    }
    while (!is_interrupted) {
        (void)sigsuspend(&serving->mask);
    }
    remove_files(serving);
    serve_feed_stop(server->feed);
    has_ended = serve_stop(server);
    if (!has_ended) {
        _exit(CLI_OK); /* their threads use the store */
    }
    close_parts(server);
    return CLI_OK;
}

static int serve(struct serving *serving, const struct arguments *arguments)
{
    struct serve_server *server = &serving->server;
    int code = server->has_port ? open_port(serving, arguments)
                                : open_socket(serving, arguments);

    if (code == CLI_CONTINUE) {
        code = answer_until_signal(serving, arguments->opens);
    }
    if (code != CLI_OK) {
        remove_files(serving); /* those that were made */
    }
    if (serving->token.is_made) {
        close(serving->token.lock);
    }
    free(serving->socket.path);
    free(serving->token.path);
    return code;
}

int serve_run(struct cli *cli, int argc, char **argv)
{
    struct arguments arguments = {.port = NULL};
    static struct serving serving;
    const struct cli_option options[] = {
        {.name = "port", .value = &arguments.port},
        {.name = "socket", .value = &arguments.socket},
        {.name = "token-file", .value = &arguments.token_file},
        {.name = "connections", .value = &arguments.connections},
        {.name = "idle", .value = &arguments.idle},
        {.name = "link-time", .value = &arguments.link_time},
        {.name = "write", .flag = &arguments.writes},
        {.name = "open", .flag = &arguments.opens},
        {.name = NULL},
    };
    int code = cli_parse(cli, argc, argv, options);

    if (code == CLI_CONTINUE) {
        code = cli_check_operands(cli, 2, 2);
    }
    if (code == CLI_CONTINUE) {
        code = configure(cli, &arguments, &serving);
    }
    if (code == CLI_CONTINUE) {
        block_signals(&serving.mask); /* before the store has threads */
        code = cli_open_store(cli, cli->items[1], 0, &serving.server.store);
    }
    if (code != CLI_CONTINUE) {
        return code;
    }
    mallopt(M_MMAP_THRESHOLD, RETURNED_SIZE);
    mallopt(M_ARENA_MAX, ARENAS);
    code = serve(&serving, &arguments);
    return cli_close_store(cli, cli->items[1], serving.server.store, code);
}
