/*
 * access.h - who may connect to a port (docs/server.md, Who may connect).
 *
 * Invariant: secrets are compared in a time that does not depend on where they
 * differ. The key of the link is answered once.
 *
 * Threads: any, after the init.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_ACCESS_H
#define AGENTWAL_TOOLS_SERVE_HTTP_ACCESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct MHD_Connection;
struct serve_exchange;

enum {
    SERVE_SECRET_SIZE = 65, /* bytes of 256 bits in hexadecimal, with a NUL */
    SERVE_NAMES = 3,
    SERVE_NAME_SIZE = 32
};

struct serve_access {
    char names[SERVE_NAMES][SERVE_NAME_SIZE]; /* with the port */
    char token[SERVE_SECRET_SIZE];
    char key[SERVE_SECRET_SIZE]; /* of the link */
    char cookie[SERVE_SECRET_SIZE];
    char cookie_name[SERVE_NAME_SIZE];
    atomic_bool key_is_used;
};

/* Makes the secrets. Returns false when the system has no random bytes. */
bool serve_access_init(struct serve_access *access, uint16_t port);

/* Checks a request to a port as far as its head. Returns true when it may be
 * answered; else the exchange has its answer, which may be the redirect of the
 * link. */
bool serve_access_check(struct serve_exchange *exchange);

/* Checks a method that changes something. As serve_access_check. */
bool serve_access_check_change(struct serve_exchange *exchange);

#endif
