/*
 * client.h - the clients whose session files are known by their path (docs/clients.md, Session
 * paths), and where a folder is in relation to their folders.
 *
 * A client keeps its files in one folder: its home, which an environment variable may name. A
 * pattern is a path below that folder. Its components may contain '*', which matches no '/'; the
 * component '**' matches everything below.
 *
 * A walk asks for the place of its argument, then for that of each folder by the place of the
 * folder around it. Paths are absolute, without symbolic links and without a '/' at the end.
 *
 * Invariant: the table is the only place that knows paths of clients. A path that no pattern
 * matches is not a session, whatever the file contains. Nothing else of a home directory is read.
 *
 * Threads: any; the environment is read.
 */
#ifndef AGENTWAL_CONVERT_CLIENTS_CLIENT_H
#define AGENTWAL_CONVERT_CLIENTS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

enum {
    WAL__CLIENT_PATH_SIZE = 4096 /* bytes of a path, with its NUL */
};

struct wal__client {
    const char *name;     /* of the program */
    const char *dialect;  /* of its sessions */
    const char *folder;   /* below the user's home directory */
    const char *variable; /* environment variable that names the folder; or
                           * NULL */
    const char *below;    /* appended to the variable's value; or NULL */
    /* Each list ends with NULL. Folders of sessions, below the folder. */
    const char *roots[5];
    const char *files[8];       /* files of sessions */
    const char *directories[3]; /* folders that are sessions as a whole */
};

/* What a file that is not imported is, by its path. */
enum wal__left_kind {
    WAL__FILE_CREDENTIALS,
    WAL__FILE_SETTINGS,
    WAL__FILE_DATABASE,
    WAL__FILE_SNAPSHOT, /* of a shell */
    WAL__FILE_LOG,
    WAL__FILE_HISTORY,
    WAL__FILE_LINK, /* a symbolic link */
    WAL__FILE_OTHER,
    WAL__FILE_KINDS
};

/* Returns the client with this index, from 0 on, or NULL after the last. */
const struct wal__client *wal__client_at(size_t index);

/* Writes the client's folder, without symbolic links if it exists: the value of its variable, else
 * its folder below HOME. Returns false if neither is set, or the path is too long. */
bool wal__client_folder(const struct wal__client *client, char path[WAL__CLIENT_PATH_SIZE]);

/* Returns true if a pattern of the list matches the path. */
bool wal__client_matches(const char *const *patterns, const char *path);

/* The files that belong to a session directory of a dialect; NULL: all. */
const char *const *wal__client_directory_files(const char *dialect);

/* Whether a file should contain JSON, by its name. */
bool wal__is_json_name(const char *name);

/* Whether a file that is in no client's folder has the name of a session. */
bool wal__client_is_session_name(const char *name);
enum wal__left_kind wal__left_kind_of(const char *path);
const char *wal__left_kind_name(enum wal__left_kind kind);

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
struct wal__place wal__place_of_folder(const struct wal__place *parent, const char *path);

/* Returns the path below the client's folder. CLIENT and LEFT_OUT only. */
const char *wal__place_below(const struct wal__place *place, const char *path);

/* Returns true if a file in a client's folder is a session of the client. */
bool wal__place_has_session(const struct wal__place *place, const char *path);

/* The same for a folder whose files together are sessions. */
bool wal__place_is_session(const struct wal__place *place, const char *path);

#endif
