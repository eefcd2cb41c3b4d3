/*
 * listen.c - the sockets of a server (server.h).
 *
 * Invariant: the socket's file is made with mode 0600; the socket of another
 * server that listens is left as it is. Servers that start at the same time at
 * one path take turns, by a lock on its directory: between bind and listen a
 * socket refuses connections as that of a server that has ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tools/serve/http/server.h"

enum {
    BACKLOG = 1024,
    TURN_ATTEMPTS = 500, /* to lock the directory of a socket */
    TURN_PAUSE_MS = 10
};

static int fail_socket(const struct serve_server *server, const char *what)
{
    if (errno == EADDRINUSE) {
        return cli_error(server->cli, CLI_FAILED, what,
                         server->has_port
                             ? "another program listens on it; --port 0 takes "
                               "a free port"
                             : "another server listens on it; --socket PATH "
                               "names another socket");
    }
    if (errno == EEXIST) {
        return cli_error(server->cli, CLI_FAILED, what,
                         "is not a socket; remove it, or name another path "
                         "with --socket");
    }
    return cli_error(server->cli, CLI_FAILED, what, "cannot listen: %s",
                     strerror(errno));
}

/* --- a Unix socket ------------------------------------------------------ */

/* Removes the file of a server that has ended. Returns false when one listens,
 * or when the file is no socket. */
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
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return false;
    }
    is_free = connect(fd, (const void *)address, sizeof(*address)) != 0 &&
              errno == ECONNREFUSED && unlink(address->sun_path) == 0;
    close(fd);
    if (!is_free) {
        errno = EADDRINUSE;
    }
    return is_free;
}

/* Opens and locks the directory of a path. Returns its descriptor, or -1 with
 * errno. Others may hold the lock of a directory that all can read, such as
 * /tmp: it is not waited for without an end. */
static int lock_directory(const char *path)
{
    const struct timespec pause = {.tv_nsec = TURN_PAUSE_MS * 1000000};
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL
                          ? cli_copy_text(".", 1)
                          : cli_copy_text(path, (size_t)(slash - path) + 1);
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

static int bind_unix(struct serve_server *server,
                     const struct sockaddr_un *address)
{
    const char *path = server->socket_path;
    mode_t mask;
    int bound;
    int fd;

    if (!make_room(address)) {
        return fail_socket(server, path);
    }
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
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
    return CLI_CONTINUE;
}

static int listen_unix(struct serve_server *server)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = server->socket_path;
    int directory;
    int code;

    /* The address of an empty path would be one without a file and a mode. */
    if (path[0] == '\0' || strlen(path) >= sizeof(address.sun_path)) {
        return cli_error(server->cli, CLI_USAGE, path,
                         "the path of a socket has 1 to %zu bytes",
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

/* --- a port ------------------------------------------------------------- */

/* Binds a socket to a loopback address and the port, and learns which one it
 * is. Returns -1 with errno. */
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
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0) {
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        (family == AF_INET6 &&
         setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0) ||
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
    if (server->sockets[1] < 0 && errno != EAFNOSUPPORT &&
        errno != EADDRNOTAVAIL) {
        snprintf(what, sizeof(what), "[::1]:%u", server->port);
        return fail_socket(server, what);
    }
    return CLI_CONTINUE;
}

int serve_listen(struct serve_server *server)
{
    int code;

    server->sockets[0] = -1;
    server->sockets[1] = -1;
    code = server->has_port ? listen_port(server) : listen_unix(server);
    if (code != CLI_CONTINUE && server->sockets[0] >= 0) {
        close(server->sockets[0]);
        server->sockets[0] = -1;
    }
    return code;
}
