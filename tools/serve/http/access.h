/*
 * access.h - who may connect to a port (docs/seeing.md, Who may connect).
 *
 * Invariant: secrets are compared in a time that does not depend on where they
 * differ. Each answer to the link has another cookie and makes those before it
 * void; the first request with a valid cookie uses the link's key up, and time
 * does.
 *
 * Threads: any, after the init.
 */
#ifndef AGENTWAL_TOOLS_SERVE_HTTP_ACCESS_H
#define AGENTWAL_TOOLS_SERVE_HTTP_ACCESS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

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
    char cookie_name[SERVE_NAME_SIZE];
    time_t key_until; /* seconds since the system was started */
    pthread_mutex_t lock;
    bool key_is_used;               /* lock */
    char cookie[SERVE_SECRET_SIZE]; /* lock; of the last answer to the link */
};

/* Makes the secrets; the link's key is valid for `link_s` seconds. Returns
 * false when the system has no random bytes. */
bool serve_access_init(struct serve_access *access, uint16_t port,
                       unsigned link_s);

/* Checks a request to a port as far as its head. Returns true when it may be
 * answered; else the exchange has its answer, which may be that of the link. */
bool serve_access_check(struct serve_exchange *exchange);

/* Checks a method that changes something. As serve_access_check. */
bool serve_access_check_change(struct serve_exchange *exchange);

#endif
