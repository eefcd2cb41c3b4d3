/*
 * server.c - the sockets of a server, its connections, who may connect (docs/seeing.md, Who may
 * connect), and its requests.
 *
 * A client that sends a byte now and then is not idle to libmicrohttpd. A connection that has not
 * sent the head of its next request within the idle time is therefore shut down, and one whose body
 * takes ten times as long.
 *
 * All users of the machine reach a port, from the same address. A connection is a stranger until it
 * has sent a valid token. Strangers do not count against the limit of connections: there are at
 * most SERVE_STRANGERS, another one has the oldest shut down, and each is after SERVE_STRANGER_S.
 * To a Unix socket the processes of other users, except root, are strangers for good.
 *
 * Invariant: a request reaches the route only after all checks; the body of one that is refused at
 * its head is not kept. Secrets are compared in a time that does not depend on where they differ.
 * Each answer to the link has another cookie and makes those before it void; the first request with
 * a cookie of the link uses its key up, and so do time and another link.
 */
#include "engine/base/system.h"
#include "tools/serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "format/bytes/bytes.h"

enum {
    BACKLOG = 1024,
    TURN_ATTEMPTS = 500, /* to lock the directory of a socket */
    TURN_PAUSE_MS = 10
};

static int fail_socket(const struct serve_server *server, const char *what)
{
    if (errno == EADDRINUSE) {
        return cli_error(server->cli, CLI_FAILED, what,
                         server->has_port ? "another program listens on it; without --port a free "
                                            "port is taken"
                                          : "another server listens on it; --socket PATH "
                                            "names another socket");
    }
    if (errno == EEXIST) {
        return cli_error(server->cli, CLI_FAILED, what,
                         "is not a socket; remove it, or name another path "
                         "with --socket");
    }
    return cli_error(server->cli, CLI_FAILED, what, "cannot listen: %s", strerror(errno));
}

/* --- a Unix socket -------------------------------------------------- */

/* Removes the file of a server that has ended. Returns false when one listens, or when the file is
 * no socket. */
static bool make_room(const struct sockaddr_un *address)
{
    struct stat found;
    int fd;
    bool is_free;

    if (lstat(address->sun_path, &found) != 0) {
        return errno == ENOENT;
    }
    if (!S_ISSOCK(found.st_mode)) {
        errno = EEXIST;
        return false;
    }
    fd = wal__system_socket(AF_UNIX);
    if (fd < 0) {
        return false;
    }
    is_free = connect(fd, (const void *)address, sizeof(*address)) != 0 && errno == ECONNREFUSED &&
              unlink(address->sun_path) == 0;
    close(fd);
    if (!is_free) {
        errno = EADDRINUSE;
    }
    return is_free;
}

/* Opens and locks the directory of a path. Returns its descriptor, or -1 with errno. Others may
 * hold the lock of a directory that all can read, such as /tmp: it is not waited for without an
 * end. */
static int lock_directory(const char *path)
{
    const struct timespec pause = {.tv_nsec = TURN_PAUSE_MS * 1000000};
    const char *slash = strrchr(path, '/');
    char *directory =
        slash == NULL ? cli_copy_text(".", 1) : cli_copy_text(path, (size_t)(slash - path) + 1);
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    free(directory);
    for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        if (errno != EWOULDBLOCK || i == TURN_ATTEMPTS) {
            int failure = errno;

            close(fd);
            errno = failure == EWOULDBLOCK ? EADDRINUSE : failure;
            return -1;
        }
        (void)nanosleep(&pause, NULL);
    }
    return fd;
}

static int bind_unix(struct serve_server *server, const struct sockaddr_un *address)
{
    const char *path = server->socket_path;
    mode_t mask;
    int bound;
    int fd;

    if (!make_room(address)) {
        return fail_socket(server, path);
    }
    fd = wal__system_socket(AF_UNIX);
    if (fd < 0) {
        return fail_socket(server, path);
    }
    mask = umask(S_IRWXG | S_IRWXO | S_IXUSR);
    bound = bind(fd, (const void *)address, sizeof(*address));
    umask(mask);
    if (bound != 0 || listen(fd, BACKLOG) != 0) {
        int code = fail_socket(server, path);

        close(fd);
        return code;
    }
    server->sockets[0] = fd;
    return CLI_OK;
}

static int listen_unix(struct serve_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = server->socket_path;
    int directory;
    int code;

    /* The address of an empty path would be one without a file and a mode. */
    if (path[0] == '\0' || strlen(path) >= sizeof(address.sun_path)) {
        return cli_error(server->cli, CLI_USAGE, path, "the path of a socket has 1 to %zu bytes",
                         sizeof(address.sun_path) - 1);
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    directory = lock_directory(path);
    if (directory < 0) {
        return fail_socket(server, path);
    }
    code = bind_unix(server, &address);
    close(directory);
    return code;
}

/* --- a port --------------------------------------------------------- */

/* Binds a socket to a loopback address and the port, and learns which one it is. Returns -1 with
 * errno. */
static int listen_address(struct serve_server *server, int family)
{
    struct sockaddr_in four = {.sin_family = AF_INET,
                               .sin_port = htons(server->port),
                               .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6,
                               .sin6_port = htons(server->port),
                               .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    const void *address = family == AF_INET ? (void *)&four : (void *)&six;
    socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);
    const int on = 1;
    int fd = wal__system_socket(family);

    if (fd < 0) {
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
        bind(fd, address, size) != 0 || listen(fd, BACKLOG) != 0) {
        int failure = errno;

        close(fd);
        errno = failure;
        return -1;
    }
    if (family == AF_INET && getsockname(fd, (void *)&four, &size) == 0) {
        server->port = ntohs(four.sin_port);
    }
    return fd;
}

static int listen_port(struct serve_server *server)
{
    char what[32];

    server->sockets[0] = listen_address(server, AF_INET);
    snprintf(what, sizeof(what), "127.0.0.1:%u", server->port);
    if (server->sockets[0] < 0) {
        return fail_socket(server, what);
    }
    server->sockets[1] = listen_address(server, AF_INET6);
    if (server->sockets[1] < 0 && errno != EAFNOSUPPORT && errno != EADDRNOTAVAIL) {
        snprintf(what, sizeof(what), "[::1]:%u", server->port);
        return fail_socket(server, what);
    }
    return CLI_OK;
}

int serve_listen(struct serve_server *server)
{
    int code;

    server->sockets[0] = -1;
    server->sockets[1] = -1;
    code = server->has_port ? listen_port(server) : listen_unix(server);
    if (code != CLI_OK && server->sockets[0] >= 0) {
        close(server->sockets[0]);
        server->sockets[0] = -1;
    }
    return code;
}

enum serve_wait {
    WAIT_HEAD, /* the next request's head is awaited */
    WAIT_BODY,
    WAIT_NONE /* a request is answered */
};

/* --- connections -------------------------------------------------------- */

enum {
    BODY_FACTOR = 10 /* a body may take N times the idle time */
};

struct serve_peer {
    struct serve_link link; /* the newest first */
    int fd;
    enum serve_wait wait;
    time_t begun; /* monotonic seconds */
    time_t since; /* when `wait` began */
    bool is_known;
    bool is_foreign;
    bool is_evicted; /* a stranger that is counted no more */
};

/* Lock. */
static void evict(struct serve_server *server, struct serve_peer *peer)
{
    if (peer->fd >= 0) {
        shutdown(peer->fd, SHUT_RDWR);
    }
    server->strangers--;
    peer->is_evicted = true;
}

/* Lock. */
static void evict_oldest(struct serve_server *server)
{
    struct serve_peer *oldest = NULL;
    struct serve_peer *peer;

    SERVE_EACH (peer, server->peers) {
        if (!peer->is_known && !peer->is_evicted) {
            oldest = peer;
        }
    }
    if (oldest != NULL) {
        evict(server, oldest);
    }
}

/* Functions of libmicrohttpd's options: whether a connection may be accepted, and that one began or
 * ended. `ctx` is the server. */
static enum MHD_Result peer_accept(void *ctx, const struct sockaddr *address, socklen_t size)
{
    struct serve_server *server = ctx;

    (void)address;
    (void)size;
    pthread_mutex_lock(&server->lock);
    if (server->strangers >= SERVE_STRANGERS) {
        evict_oldest(server);
    }
    server->strangers++;
    pthread_mutex_unlock(&server->lock);
    return MHD_YES;
}

/* Lock. */
static bool admit(struct serve_server *server, struct serve_peer *peer)
{
    if (peer->is_known) {
        return true;
    }
    if (peer->is_evicted || server->known >= server->connection_limit) {
        return false;
    }
    server->strangers--;
    server->known++;
    peer->is_known = true;
    return true;
}

/* Whether the process that connected to a Unix socket is another user's. The mode of the socket
 * keeps others out; this holds where it is no file, or was given another mode. */
static bool has_other_user(int fd)
{
    uid_t user;

    return wal__system_peer_user(fd, &user) != 0 || (user != geteuid() && user != 0);
}

static void begin_connection(struct serve_server *server, struct MHD_Connection *connection,
                             void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct serve_peer *peer = cli_alloc(sizeof(*peer));

    peer->fd = info != NULL ? info->connect_fd : -1;
    peer->begun = peer->since = when_steady_ms() / 1000;
    peer->is_foreign = !server->has_port && has_other_user(peer->fd);
    *socket_context = peer;
    pthread_mutex_lock(&server->lock);
    if (!server->has_port && !peer->is_foreign && !admit(server, peer)) {
        evict(server, peer);
    }
    serve_link_insert(&server->peers, &peer->link);
    pthread_mutex_unlock(&server->lock);
}

static void end_connection(struct serve_server *server, struct serve_peer *peer)
{
    pthread_mutex_lock(&server->lock);
    serve_link_remove(&peer->link);
    if (peer->is_known) {
        server->known--;
    } else if (!peer->is_evicted) {
        server->strangers--;
    }
    pthread_mutex_unlock(&server->lock);
    free(peer);
}

static void peer_notify(void *ctx, struct MHD_Connection *connection, void **socket_context,
                        enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin_connection(ctx, connection, socket_context);
    } else if (*socket_context != NULL) {
        end_connection(ctx, *socket_context);
        *socket_context = NULL;
    }
}

static struct serve_peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info != NULL ? info->socket_context : NULL;
}

/* Counts the connection among those that are known, once it has sent a valid token. Returns false
 * when there are too many of them. */
static bool peer_admit(struct serve_server *server, struct MHD_Connection *connection)
{
    struct serve_peer *peer = peer_of(connection);
    bool is_admitted;

    pthread_mutex_lock(&server->lock);
    is_admitted = peer != NULL && admit(server, peer);
    pthread_mutex_unlock(&server->lock);
    return is_admitted;
}

/* Whether the process at the other end of a Unix socket is another user's. */
static bool peer_is_foreign(struct MHD_Connection *connection)
{
    const struct serve_peer *peer = peer_of(connection);

    return peer == NULL || peer->is_foreign;
}

/* Sends a line of status, and shuts the connection down. */
static void peer_cut(struct MHD_Connection *connection, const char *status)
{
    const struct serve_peer *peer = peer_of(connection);
    char answer[128];
    int size = snprintf(answer, sizeof(answer),
                        "HTTP/1.1 %s\r\nConnection: close\r\n"
                        "Content-Length: 0\r\n\r\n",
                        status);

    if (peer != NULL && peer->fd >= 0) {
        (void)!send(peer->fd, answer, (size_t)size, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(peer->fd, SHUT_RDWR);
    }
}

/* What the connection is waited for from now on. */
static void peer_wait_for(struct serve_server *server, struct MHD_Connection *connection,
                          enum serve_wait what)
{
    struct serve_peer *peer = peer_of(connection);

    if (peer != NULL) {
        pthread_mutex_lock(&server->lock);
        peer->wait = what;
        peer->since = when_steady_ms() / 1000;
        pthread_mutex_unlock(&server->lock);
    }
}

/* Lock. The descriptor is open as long as the peer is in the list. */
static void shut_slow_down(struct serve_server *server)
{
    time_t stranger_limit =
        (time_t)server->idle_s < SERVE_STRANGER_S ? (time_t)server->idle_s : SERVE_STRANGER_S;
    time_t now = when_steady_ms() / 1000;
    struct serve_peer *peer;

    SERVE_EACH (peer, server->peers) {
        time_t limit = (time_t)server->idle_s * (peer->wait == WAIT_BODY ? BODY_FACTOR : 1);

        if (!peer->is_known) {
            if (!peer->is_evicted && now - peer->begun > stranger_limit) {
                evict(server, peer);
            }
        } else if (peer->wait != WAIT_NONE && peer->fd >= 0 && now - peer->since > limit) {
            shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

/* Shuts all connections down. The caller has the server's lock. */
static void peer_shut_down(const struct serve_server *server)
{
    const struct serve_peer *peer;

    SERVE_EACH (peer, server->peers) {
        if (peer->fd >= 0) {
            shutdown(peer->fd, SHUT_RDWR);
        }
    }
}

static void *sweep(void *ctx)
{
    struct serve_server *server = ctx;

    pthread_mutex_lock(&server->lock);
    while (!atomic_load(&server->is_stopping)) {
        struct timespec until = {0};

        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec++;
        shut_slow_down(server);
        (void)pthread_cond_timedwait(&server->changed, &server->lock, &until);
    }
    pthread_mutex_unlock(&server->lock);
    return NULL;
}

/* --- who may connect ---------------------------------------------------- */

static void make_secret(char secret[SERVE_SECRET_SIZE])
{
    uint8_t bytes[(SERVE_SECRET_SIZE - 1) / 2];

    wal__system_random(bytes, sizeof(bytes));
    wal__hex_write(bytes, sizeof(bytes), secret);
}

/* Seconds, also of those that the machine slept. */
static time_t boot_s(void)
{
    return (time_t)(wal__system_clock_ns(WAL__CLOCK_BOOT) / 1000000000);
}

void serve_access_init(struct serve_access *access, uint16_t port)
{
    static const char *const hosts[SERVE_NAMES] = {"127.0.0.1", "[::1]", "localhost"};

    for (size_t i = 0; i < SERVE_NAMES; i++) {
        snprintf(access->names[i], SERVE_NAME_SIZE, "%s:%u", hosts[i], port);
    }
    snprintf(access->cookie_name, SERVE_NAME_SIZE, "agentwal-%u", port);
    access->key_is_used = true;
    pthread_mutex_init(&access->lock, NULL);
    make_secret(access->token);
    make_secret(access->cookie);
}

void serve_access_renew(struct serve_access *access, unsigned link_s)
{
    pthread_mutex_lock(&access->lock);
    make_secret(access->key);
    access->key_until = boot_s() + (time_t)link_s;
    access->key_is_used = false;
    access->is_of_key = false;
    pthread_mutex_unlock(&access->lock);
}

/* Whether a text is the secret. */
static bool is_secret(const char *text, size_t size, const char secret[SERVE_SECRET_SIZE])
{
    volatile uint8_t difference = 0;

    if (text == NULL || size != SERVE_SECRET_SIZE - 1) {
        return false;
    }
    for (size_t i = 0; i < SERVE_SECRET_SIZE - 1; i++) {
        difference |= (uint8_t)(text[i] ^ secret[i]);
    }
    return difference == 0;
}

/* Whether an authority, or an origin without its scheme, is listened on. */
static bool is_name(const struct serve_access *access, const char *name)
{
    for (size_t i = 0; i < SERVE_NAMES; i++) {
        if (strcmp(access->names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_origin(const struct serve_access *access, const char *origin)
{
    return strncmp(origin, "http://", 7) == 0 && is_name(access, origin + 7);
}

/* --- where a request comes from ------------------------------------- */

static bool is_navigation(const struct serve_exchange *exchange)
{
    const char *mode = serve_exchange_header(exchange, "Sec-Fetch-Mode", NULL);

    return exchange->segment_count == 0 && mode != NULL && strcmp(mode, "navigate") == 0 &&
           strcmp(exchange->method, "GET") == 0;
}

static bool check_source(struct serve_exchange *exchange)
{
    const struct serve_access *access = &exchange->server->access;
    unsigned count = 0;
    const char *value = serve_exchange_header(exchange, "Host", &count);

    if (value == NULL || !is_name(access, value)) {
        serve_exchange_refuse(exchange, MHD_HTTP_MISDIRECTED_REQUEST,
                              "the server is %s, not another host", access->names[0]);
        return false;
    }
    value = serve_exchange_header(exchange, "Origin", &count);
    if (count > 0 && (value == NULL || !is_origin(access, value))) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
                              "pages of another origin get no answer");
        return false;
    }
    value = serve_exchange_header(exchange, "Sec-Fetch-Site", &count);
    if (count > 0 && (value == NULL || (strcmp(value, "same-origin") != 0 &&
                                        strcmp(value, "none") != 0 && !is_navigation(exchange)))) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN, "pages of another site get no answer");
        return false;
    }
    return true;
}

/* --- who it is ------------------------------------------------------ */

static bool has_token(const struct serve_exchange *exchange)
{
    const char *value = serve_exchange_header(exchange, "Authorization", NULL);

    return value != NULL && strncasecmp(value, "Bearer ", 7) == 0 &&
           is_secret(value + 7, strlen(value + 7), exchange->server->access.token);
}

static bool has_cookie(const struct serve_exchange *exchange)
{
    struct serve_access *access = &exchange->server->access;
    const char *value =
        MHD_lookup_connection_value(exchange->connection, MHD_COOKIE_KIND, access->cookie_name);
    bool is_valid;

    pthread_mutex_lock(&access->lock);
    is_valid = value != NULL && is_secret(value, strlen(value), access->cookie);
    access->key_is_used = access->key_is_used || (is_valid && access->is_of_key);
    pthread_mutex_unlock(&access->lock);
    return is_valid;
}

static struct MHD_Response *make_text(const char *text)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_MUST_COPY);

    serve_response_check(response, "text/html; charset=utf-8");
    return response;
}

static void refuse_unknown(struct serve_exchange *exchange)
{
    static const char page[] =
        "<!doctype html><meta charset=utf-8><title>agentwal</title>"
        "<h1>This link is not valid any more</h1>"
        "<p>A link of <code>agentwal serve</code> opens the page in one "
        "browser, soon after it was printed. Enter in the terminal of the server "
        "prints another one. Programs send <code>Authorization: Bearer</code> with "
        "the token that <code>--token-file</code> writes.</p>\n";
    const char *accept = serve_exchange_header(exchange, "Accept", NULL);

    if (accept != NULL && strstr(accept, "text/html") != NULL) {
        serve_exchange_respond(exchange, MHD_HTTP_UNAUTHORIZED, make_text(page));
        return;
    }
    serve_exchange_refuse(exchange, MHD_HTTP_UNAUTHORIZED,
                          "no token, or a wrong one: send Authorization: Bearer with the token "
                          "that agentwal serve --token-file writes, or open its link");
}

/* Makes a cookie for the link, if its key is still valid. */
static bool make_cookie(struct serve_access *access, struct wal_slice key, char *cookie,
                        size_t size)
{
    bool is_made;

    pthread_mutex_lock(&access->lock);
    is_made = is_secret(key.data, (size_t)key.size, access->key) && !access->key_is_used &&
              boot_s() < access->key_until;
    if (is_made) {
        make_secret(access->cookie);
        access->is_of_key = true;
        snprintf(cookie, size, "%s=%s; HttpOnly; SameSite=Strict; Path=/", access->cookie_name,
                 access->cookie);
    }
    pthread_mutex_unlock(&access->lock);
    return is_made;
}

/* Answers the link: a cookie, and a page that goes on to the address without the key. A redirect
 * would not do: where a page of another site had the link, the browser sends no SameSite=Strict
 * cookie until a page of this one asks. */
static bool answer_link(struct serve_exchange *exchange)
{
    static const char page[] = "<!doctype html><meta charset=utf-8><title>agentwal</title>"
                               "<meta http-equiv=refresh content=\"0; url=/\">"
                               "<p><a href=\"/\">Go on to the sessions</a></p>\n";
    struct wal_slice key = serve_exchange_query(exchange, "key");
    struct MHD_Response *response;
    char cookie[256];

    if (exchange->segment_count != 0 || exchange->is_bad_path ||
        strcmp(exchange->method, "GET") != 0 ||
        !make_cookie(&exchange->server->access, key, cookie, sizeof(cookie))) {
        return false;
    }
    response = make_text(page);
    serve_response_header(response, "Set-Cookie", cookie);
    serve_exchange_respond(exchange, MHD_HTTP_OK, response);
    return true;
}

/* Checks a request to a port as far as its head. Returns true when it may be answered; else the
 * exchange has its answer, which may be that of the link. */
static bool access_check(struct serve_exchange *exchange)
{
    if (!check_source(exchange)) {
        return false;
    }
    if (has_token(exchange)) {
        return true;
    }
    if (answer_link(exchange)) {
        return false;
    }
    exchange->is_cookie = has_cookie(exchange);
    if (!exchange->is_cookie) {
        refuse_unknown(exchange);
    }
    return exchange->is_cookie;
}

/* --- changes -------------------------------------------------------- */

static bool is_json_type(const char *type)
{
    static const char json[] = "application/json";
    size_t size = sizeof(json) - 1;

    return type != NULL && strncasecmp(type, json, size) == 0 &&
           (type[size] == '\0' || type[size] == ';' || type[size] == ' ');
}

/* Checks a method that changes something. As serve_access_check. */
static bool access_check_change(struct serve_exchange *exchange)
{
    const char *type = serve_exchange_header(exchange, "Content-Type", NULL);
    unsigned origins = 0;

    (void)serve_exchange_header(exchange, "Origin", &origins);
    if (exchange->is_cookie && origins == 0) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN,
                              "a change with a cookie needs an Origin");
        return false;
    }
    if (!exchange->server->can_write) {
        serve_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED,
                              "the server is read-only; start agentwal serve "
                              "with --write");
        return false;
    }
    if (!is_json_type(type) && (type != NULL || strcmp(exchange->method, "DELETE") != 0)) {
        serve_exchange_refuse(exchange, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
                              "a change needs Content-Type: application/json");
        return false;
    }
    return true;
}

enum {
    POOL_SIZE = 48 << 10, /* bytes of a connection's memory */
    WORKERS_MAX = 8,
    DROPPED_MAX = 1 << 20, /* bytes of a refused body that are read */
    OTHER_FILES = 256      /* descriptors, without those of connections */
};

/* --- the head of a request ------------------------------------------ */

static bool is_change(const char *method)
{
    return strcmp(method, "POST") == 0 || strcmp(method, "PATCH") == 0 ||
           strcmp(method, "DELETE") == 0 || strcmp(method, "PUT") == 0;
}

/* Checks what says where the request ends, which proxies must not see otherwise. */
static bool check_framing(struct serve_exchange *exchange)
{
    unsigned lengths = 0;
    unsigned encodings = 0;
    const char *length = serve_exchange_header(exchange, "Content-Length", &lengths);
    const char *encoding = serve_exchange_header(exchange, "Transfer-Encoding", &encodings);

    if (lengths > 1 || encodings > 1 || (lengths > 0 && encodings > 0) ||
        (encoding != NULL && strcasecmp(encoding, "chunked") != 0) ||
        (length != NULL && strspn(length, "0123456789") != strlen(length))) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the length of the body is ambiguous");
        return false;
    }
    if (length != NULL && (strlen(length) > 10 || strtoull(length, NULL, 10) > SERVE_BODY_MAX)) {
        serve_exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most %d bytes",
                              SERVE_BODY_MAX);
        return false;
    }
    return true;
}

/* Bytes that a head has as libmicrohttpd understood it. */
struct understood {
    size_t size;
    size_t empty;   /* headers without a value */
    bool has_blank; /* in a name */
};

static enum MHD_Result see_size(void *ctx, enum MHD_ValueKind kind, const char *name,
                                const char *value)
{
    struct understood *understood = ctx;

    (void)kind;
    understood->size += strlen(name) + 4; /* ": " and CR LF */
    understood->size += value != NULL ? strlen(value) : 0;
    understood->empty += value == NULL || value[0] == '\0';
    understood->has_blank |= name[strcspn(name, " \t")] != '\0';
    return MHD_YES;
}

/* Checks that the head has no byte more or less than what was understood of it: libmicrohttpd takes
 * folded headers, lines that end without CR, and blanks before the colon, and cuts a text at a NUL,
 * where a proxy may not. */
static bool check_bytes(struct serve_exchange *exchange, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct understood understood = {
        .size = strlen(exchange->method) + strlen(exchange->target) + strlen(version) +
                6 /* two blanks, and CR LF twice */
    };
    size_t size = info != NULL ? info->header_size : 0;

    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, see_size, &understood);
    if (understood.has_blank || size > understood.size ||
        size + understood.empty < understood.size) {
        exchange->is_last = true;
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the head of a request has lines that end with "
                              "CR LF, and headers as \"Name: value\", without "
                              "a NUL");
        return false;
    }
    return true;
}

static bool check_head(struct serve_exchange *exchange, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    const char *method = exchange->method;

    if (info != NULL && info->header_size > SERVE_HEAD_MAX) {
        serve_exchange_refuse(exchange, MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE,
                              "the head of a request has at most %d bytes", SERVE_HEAD_MAX);
        return false;
    }
    if (!check_bytes(exchange, version) || !check_framing(exchange)) {
        return false;
    }
    if (exchange->server->has_port) {
        if (!access_check(exchange)) {
            return false;
        }
    } else if (peer_is_foreign(exchange->connection)) {
        serve_exchange_refuse(exchange, MHD_HTTP_FORBIDDEN, "the socket is of another user");
        return false;
    }
    if (!peer_admit(exchange->server, exchange->connection)) {
        exchange->is_last = true;
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server has %u connections at a time",
                              exchange->server->connection_limit);
        return false;
    }
    if (exchange->is_bad_path) {
        serve_exchange_refuse(exchange, MHD_HTTP_BAD_REQUEST,
                              "the path is not percent-encoded, or has too "
                              "many parts");
        return false;
    }
    if (is_change(method)) {
        return access_check_change(exchange);
    }
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) {
        serve_exchange_refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "no resource has this method");
        return false;
    }
    return true;
}

/* Whether the body of a request that was refused is read: a client that is still sending when the
 * connection is closed may lose the answer. */
static bool has_short_body(const struct serve_exchange *exchange)
{
    const char *length = serve_exchange_header(exchange, "Content-Length", NULL);
    unsigned encodings = 0;

    (void)serve_exchange_header(exchange, "Transfer-Encoding", &encodings);
    return encodings == 0 && length != NULL && strlen(length) < 10 &&
           strspn(length, "0123456789") == strlen(length) &&
           strtoul(length, NULL, 10) <= DROPPED_MAX;
}

/* --- requests ------------------------------------------------------- */

static void count_request(struct serve_exchange *exchange, bool begins)
{
    struct serve_server *server = exchange->server;

    exchange->is_counted = begins;
    pthread_mutex_lock(&server->lock);
    server->requests += begins ? 1U : -1U;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->lock);
}

/* Makes room for what a body gets next. Returns false when the bodies of all requests have taken
 * what they may. */
static bool reserve_body(struct serve_exchange *exchange, size_t size)
{
    atomic_size_t *total = &exchange->server->body_bytes;

    while (exchange->body_capacity - exchange->body_size < size) {
        size_t before = exchange->body_capacity;

        if (atomic_load(total) + before > SERVE_BODIES_MAX) {
            return false;
        }
        exchange->body = cli_reserve(exchange->body, exchange->body_capacity,
                                     &exchange->body_capacity, sizeof(char));
        atomic_fetch_add(total, exchange->body_capacity - before);
    }
    return true;
}

static void take_body(struct serve_exchange *exchange, const char *data, size_t size)
{
    if (exchange->body_is_too_big || exchange->is_refused) {
        return;
    }
    if (size > SERVE_BODY_MAX - exchange->body_size) {
        exchange->body_is_too_big = true;
        return;
    }
    if (!reserve_body(exchange, size)) {
        exchange->is_refused = true;
        serve_exchange_refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
                              "the server reads %d bytes of bodies at a time; "
                              "try again",
                              SERVE_BODIES_MAX);
        return;
    }
    memcpy(exchange->body + exchange->body_size, data, size);
    exchange->body_size += size;
}

static enum MHD_Result answer(struct serve_exchange *exchange)
{
    peer_wait_for(exchange->server, exchange->connection, WAIT_NONE);
    if (exchange->is_refused) {
        /* It has its answer. */
    } else if (exchange->body_is_too_big) {
        serve_exchange_refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "a body has at most %d bytes",
                              SERVE_BODY_MAX);
    } else {
        exchange->server->route(exchange);
    }
    /* A job may have answered already: the worker calls again. */
    if (exchange->job != NULL) {
        return MHD_YES;
    }
    atomic_store(&exchange->step, SERVE_STEP_ANSWERED);
    return serve_exchange_queue(exchange);
}

static enum MHD_Result handle(void *ctx, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *upload,
                              size_t *upload_size, void **request)
{
    struct serve_exchange *exchange = *request;

    (void)ctx;
    (void)url;
    if (exchange == NULL) {
        return MHD_NO;
    }
    switch (atomic_load(&exchange->step)) {
    case SERVE_STEP_NEW:
        exchange->connection = connection;
        exchange->method = method;
        count_request(exchange, true);
        exchange->is_refused = !check_head(exchange, version);
        peer_wait_for(exchange->server, connection, WAIT_BODY);
        if (exchange->is_refused && !has_short_body(exchange)) {
            atomic_store(&exchange->step, SERVE_STEP_ANSWERED);
            return serve_exchange_queue(exchange);
        }
        atomic_store(&exchange->step, SERVE_STEP_BODY);
        return MHD_YES;
    case SERVE_STEP_BODY:
        if (*upload_size > 0) {
            take_body(exchange, upload, *upload_size);
            *upload_size = 0;
            return MHD_YES;
        }
        return answer(exchange);
    case SERVE_STEP_RUNNING:
        return MHD_YES;
    case SERVE_STEP_ANSWERED:
        return serve_exchange_queue(exchange);
    }
    return MHD_NO;
}

/* libmicrohttpd 0.9.75 stops where the parameters of a query do not fit its memory, and answers
 * nothing. */
static bool has_many_parameters(const char *target)
{
    size_t count = 0;

    for (; *target != '\0'; target++) {
        count += *target == '&';
    }
    return count >= SERVE_PARAMETERS_MAX;
}

static void *begin_request(void *ctx, const char *target, struct MHD_Connection *connection)
{
    if (has_many_parameters(target)) {
        peer_cut(connection, "414 URI Too Long");
    }
    return serve_exchange_create(ctx, target, connection);
}

static void end_request(void *ctx, struct MHD_Connection *connection, void **request,
                        enum MHD_RequestTerminationCode code)
{
    struct serve_exchange *exchange = *request;

    (void)ctx;
    (void)code;
    if (exchange == NULL) {
        return;
    }
    peer_wait_for(exchange->server, connection, WAIT_HEAD);
    if (exchange->is_counted) {
        count_request(exchange, false);
    }
    serve_exchange_destroy(exchange);
    *request = NULL;
}

/* --- start and stop ------------------------------------------------- */

static unsigned count_workers(void)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);

    return processors < 2 ? 2 : processors > WORKERS_MAX ? WORKERS_MAX : (unsigned)processors;
}

/* A connection takes a descriptor. */
static void raise_file_limit(unsigned connections)
{
    rlim_t wanted = (rlim_t)connections + OTHER_FILES;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < wanted) {
        limit.rlim_cur = limit.rlim_max < wanted ? limit.rlim_max : wanted;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* libmicrohttpd gives each worker a part of its limit; evict_oldest and admit keep that of all. */
static struct MHD_Daemon *start_daemon(struct serve_server *server, int fd)
{
    unsigned workers = count_workers();

    return MHD_start_daemon(
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, 0, peer_accept, server, handle,
        server, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_THREAD_POOL_SIZE, workers,
        MHD_OPTION_CONNECTION_LIMIT, workers * (server->connection_limit + 4 * SERVE_STRANGERS),
        MHD_OPTION_CONNECTION_TIMEOUT, server->idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)POOL_SIZE, MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_URI_LOG_CALLBACK,
        begin_request, server, MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
        MHD_OPTION_NOTIFY_CONNECTION, peer_notify, server, MHD_OPTION_END);
}

static void stop_daemons(struct serve_server *server)
{
    for (size_t i = 0; i < SERVE_SOCKETS; i++) {
        if (server->daemons[i] != NULL) {
            MHD_stop_daemon(server->daemons[i]);
            server->daemons[i] = NULL;
        }
        if (server->sockets[i] >= 0) {
            close(server->sockets[i]);
            server->sockets[i] = -1;
        }
    }
}

int serve_start(struct serve_server *server)
{
    pthread_mutex_init(&server->lock, NULL);
    pthread_cond_init(&server->changed, NULL);
    raise_file_limit(server->connection_limit);
    for (size_t i = 0; i < SERVE_SOCKETS; i++) {
        if (server->sockets[i] < 0) {
            continue;
        }
        server->daemons[i] = start_daemon(server, server->sockets[i]);
        if (server->daemons[i] == NULL) {
            stop_daemons(server);
            return cli_error(server->cli, CLI_FAILED, "serve", "cannot start the server");
        }
    }
    server->has_sweeper = pthread_create(&server->sweeper, NULL, sweep, server) == 0;
    if (!server->has_sweeper) {
        stop_daemons(server);
        return cli_error(server->cli, CLI_FAILED, "serve", "cannot start a thread");
    }
    return CLI_OK;
}

/* Waits until no request is answered. Lock. */
static void drain(struct serve_server *server, time_t seconds)
{
    struct timespec until = {0};

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += seconds;
    while ((server->requests > 0 || server->jobs > 0 || server->streams > 0) &&
           pthread_cond_timedwait(&server->changed, &server->lock, &until) != ETIMEDOUT) {
    }
}

bool serve_stop(struct serve_server *server)
{
    bool has_ended;

    atomic_store(&server->is_stopping, true);
    for (size_t i = 0; i < SERVE_SOCKETS; i++) {
        if (server->daemons[i] != NULL) {
            (void)MHD_quiesce_daemon(server->daemons[i]);
        }
    }
    pthread_mutex_lock(&server->lock);
    pthread_cond_broadcast(&server->changed);
    drain(server, SERVE_DRAIN_S);
    peer_shut_down(server);
    drain(server, SERVE_SHUT_DOWN_S);
    has_ended = server->jobs == 0 && server->streams == 0;
    pthread_mutex_unlock(&server->lock);
    if (server->has_sweeper) {
        pthread_join(server->sweeper, NULL);
        server->has_sweeper = false;
    }
    if (has_ended) {
        stop_daemons(server);
        pthread_cond_destroy(&server->changed);
        pthread_mutex_destroy(&server->lock);
    }
    return has_ended;
}
