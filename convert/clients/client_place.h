/*
 * client_place.h - where a folder is in relation to the clients' folders, and
 * which of its files are sessions.
 *
 * A walk asks for the place of its argument, then for that of each folder by
 * the place of the folder around it. Paths are absolute, without symbolic
 * links and without a '/' at the end.
 *
 * Invariant: below a client's folder only its patterns decide. Nothing else of
 * a home directory is read.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_CONVERT_CLIENTS_CLIENT_PLACE_H
#define AGENTWAL_CONVERT_CLIENTS_CLIENT_PLACE_H

#include "convert/clients/client.h"

enum wal__place_kind {
    WAL__PLACE_PLAIN,    /* no client's folder: the content decides */
    WAL__PLACE_ABOVE,    /* it contains clients' folders, which alone count */
    WAL__PLACE_CLIENT,   /* a client's folder, or below it */
    WAL__PLACE_LEFT_OUT, /* below a client's folder; no session can be here */
    WAL__PLACE_IGNORED   /* not looked at */
};

struct wal__place {
    enum wal__place_kind kind;
    size_t client; /* index, of CLIENT and LEFT_OUT */
    size_t base;   /* size of the path of the client's folder; of ABOVE: of the
                    * folder that contains clients' folders */
};

/* Returns the place of the argument of an import. */
struct wal__place wal__place_of_argument(const char *path);

/* Returns the place of a folder whose parent has the given one. */
struct wal__place wal__place_of_folder(const struct wal__place *parent,
                                       const char *path);

/* Returns the path below the client's folder. CLIENT and LEFT_OUT only. */
const char *wal__place_below(const struct wal__place *place, const char *path);

/* Returns true if a file in a client's folder is a session of the client. */
bool wal__place_has_session(const struct wal__place *place, const char *path);

/* The same for a folder whose files together are sessions. */
bool wal__place_is_session(const struct wal__place *place, const char *path);

#endif
