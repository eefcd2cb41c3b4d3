/*
 * client.h - the clients whose session files are known by their path: their contract, as data
 * (docs/clients.md, Programs, Versions and files, Session paths; `agentwal dialects --json`), and
 * where a folder is in relation to their folders.
 *
 * A client keeps its files in one folder, which variables and settings may move, as a whole or one
 * of its roots: the folders of sessions in it. Patterns and roots are paths below the client's
 * folder, wherever that, or the root, is. The components of a pattern may contain '*', which
 * matches no '/'; the component '**' matches everything below. A component that begins with "{id}",
 * "{starter}" or "{agent}" matches as one with '*' there, and what that matches identifies the
 * session, for clients whose lines do not. "{project}" is the name of a project's folder.
 *
 * The files in `unread` are counted and reported with what to do about them. A client whose
 * sessions are all of that kind has no dialect.
 *
 * A walk asks for the place of its argument, then for that of each folder by the place of the
 * folder around it. Paths are absolute and without a '/' at the end.
 *
 * Invariant: the table is the only place that knows paths and commands of clients. Below a client's
 * folder a path that no pattern matches is not a session, whatever the file contains, and the
 * dialect of one that a pattern matches is that of the client. Nothing else of a home directory is
 * read, but the settings that move a folder.
 *
 * Threads: any; the environment is read.
 */
#ifndef AGENTWAL_CONVERT_CLIENTS_CLIENT_H
#define AGENTWAL_CONVERT_CLIENTS_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"
#include "engine/base/sha256.h"

enum {
    WAL__CLIENT_PATH_SIZE = 4096, /* bytes of a path, with its NUL */
    WAL__CLIENT_BELOW_SIZE = 2 * WAL__CLIENT_PATH_SIZE + 64,
    WAL__CLIENT_MOVED = 16 /* folders that are not at their names; more are not known */
};

/* A folder of a client: the path in a variable, with `below` appended, else that below the user's
 * home directory; or the one that a setting has, if that is absolute or begins with "~/". */
struct wal__client_folder {
    const char *home;     /* below the home directory; or NULL */
    const char *variable; /* of the environment; or NULL */
    const char *below;    /* or NULL */
    const char *setting;  /* a member of the JSON object in the client's settings.json; or NULL */
    const char *object;   /* the member of the settings that has it; NULL: it is at the top */
    const char *root;     /* the root that it is; NULL: the client's folder */
};

enum {
    WAL__CLIENT_FOLDERS = 4 /* of one client */
};

/* A file of JSON, or one of YAML with scalars, by its ending, that has what the lines of a session
 * do not. Members that it has are strings, but for a time, which may be a number of
 * milliseconds. */
struct wal__client_info {
    /* Below the client's folder, with "{id}" and '*'. Or "{file}" and an ending: it is next to the
     * session's file, has that ending instead of the file's, and its bytes are kept. NULL: there is
     * none. */
    const char *path;
    /* An object with the names of the folders of projects by their directories, instead of the
     * members below; or NULL. */
    const char *projects;
    const char *title;
    const char *untitled; /* the title of a session without one; or NULL */
    const char *cwd;
    const char *created;
    const char *agent; /* kind of a subagent */
    const char *call;  /* id of the call that started it, in the session of its starter */
};

/* Lists end with NULL. Texts without another comment are phrases for a reader. */
struct wal__client {
    const char *name;    /* of the program */
    const char *dialect; /* of its sessions; NULL: they are not read */
    const char *versions;
    /* The first is the default; the rest is used in addition if it is set. */
    struct wal__client_folder folders[WAL__CLIENT_FOLDERS];
    const char *roots[5]; /* folders of sessions, and databases */
    /* Files of sessions. Where the first one is there for an id, the others of it do not count. */
    const char *files[10];
    const char *directories[3]; /* folders that are sessions as a whole */
    struct wal__client_info info;
    const char *unread[6]; /* files of sessions that cannot be read */
    const char *advice;    /* what to do about those: an imperative clause */
    /* A path for each pattern of files, directories and unread, in their order. */
    const char *examples[16];

    const char *session; /* what identifies one */
    const char *parent;  /* what links an entry, and a session, to its parent */
    const char *message;
    const char *call;
    const char *result;
    const char *usage;
    const char *compaction;
    const char *title;

    const char *reads;
    const char *writes;   /* NULL: nothing is written */
    const char *resume;   /* the command that continues a session, with %s for its id; or NULL */
    const char *tests[6]; /* names of files below tests/, without their ending */
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

/* Writes where a folder of the client is, without symbolic links if it exists. Returns false if it
 * is not set, or the path is too long. */
bool wal__client_folder(const struct wal__client *client, const struct wal__client_folder *folder,
                        char path[WAL__CLIENT_PATH_SIZE]);

/* Returns the client of a session with this dialect and path, as its source has them, and sets
 * *below, unless it is NULL, to the path below the client's folder. NULL: no client reads the
 * dialect. The path of a session of another client than the first that has the dialect begins with
 * the first folder of that client. */
const struct wal__client *wal__client_of_source(const char *dialect, const char *path,
                                                const char **below);

/* Returns true if a pattern of the list matches the path. */
bool wal__client_matches(const char *const *patterns, const char *path);

/* What the path of a session's file says; empty where its pattern has no such component. Slices of
 * the path. */
struct wal__client_ids {
    struct wal_slice id;
    struct wal_slice starter; /* id of the session that started this one, which is a subagent's */
    struct wal_slice agent;   /* name of the subagent in that */
    struct wal_slice project; /* name of the folder of its project */
};

/* Reads the ids in the path of a session's file below the client's folder. */
struct wal__client_ids wal__client_read_path(const struct wal__client *client, const char *path);

/* The files that belong to a session directory of a dialect; NULL: all. */
const char *const *wal__client_directory_files(const char *dialect);

/* Whether a file should contain JSON, by its name. */
bool wal__is_json_name(const char *name);

/* Whether a file that is in no client's folder has the name of a session. */
bool wal__client_is_session_name(const char *name);
enum wal__left_kind wal__left_kind_of(const char *path);
const char *wal__left_kind_name(enum wal__left_kind kind);

/* Writes the SHA-256 of a directory, by which clients name the folders of projects, in hexadecimal;
 * nothing without memory. */
void wal__client_digest(struct wal_slice directory, char text[WAL__DIGEST_HEX_SIZE]);

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
    size_t root;   /* the folder is the client's root of index root - 1; 0: the client's folder */
    size_t base;   /* size of the path of the client's folder or root; of ABOVE: of the folder that
                    * contains clients' folders */
};

/* Folders and roots of clients that are not where their names say it: moved by a variable, a
 * setting or a symbolic link. */
struct wal__places {
    size_t count;
    struct {
        size_t client;
        size_t root; /* as in struct wal__place */
        size_t size;
        size_t at; /* of the path, in `paths` */
    } moved[WAL__CLIENT_MOVED];
    char paths[4 * WAL__CLIENT_PATH_SIZE];
    size_t used;
};

/* Reads the environment and the settings. */
void wal__places_read(struct wal__places *places);

enum wal__symlink_kind {
    WAL__SYMLINK_OTHER,
    WAL__SYMLINK_FOLLOWED, /* it is a root of the client, or in a root, and leads to a folder of the
                         * user who owns the link */
    WAL__SYMLINK_REFUSED   /* it is a root, and does not */
};

/* What a symbolic link in a place is. */
enum wal__symlink_kind wal__place_symlink(const struct wal__place *place, const char *path);

/* Returns the place of the argument of an import. */
struct wal__place wal__place_of_argument(const struct wal__places *places, const char *path);

/* Returns the place of a folder whose parent has the given one. */
struct wal__place wal__place_of_folder(const struct wal__places *places,
                                       const struct wal__place *parent, const char *path);

/* Returns the path below the client's folder, in `below` or in `path`. CLIENT and LEFT_OUT only. */
const char *wal__place_below(const struct wal__place *place, const char *path,
                             char below[WAL__CLIENT_BELOW_SIZE]);

/* Returns the path that a session of this place keeps, in `kept` or in `path`:
 * wal__client_of_source. */
const char *wal__place_kept_path(const struct wal__place *place, const char *path,
                                 char kept[WAL__CLIENT_BELOW_SIZE]);

/* Returns true if a file in a client's folder is a session of the client. */
bool wal__place_has_session(const struct wal__place *place, const char *path);

/* Returns true if a file is one of sessions that cannot be read. Of a client without a folder that
 * is so in any PLAIN place; then sets the place's client and base. */
bool wal__place_has_unread(struct wal__place *place, const char *path);

/* Whether the file is a sidecar, next to that of a session: the import of that looks at it. */
bool wal__client_keeps_file(const char *path);

/* Writes the path of the file with the ending, of an info.path, that is next to that of a session.
 * False: there is none. */
bool wal__client_sidecar(const struct wal__client *client, const char *path,
                         char sidecar[WAL__CLIENT_BELOW_SIZE]);

/* Returns true if the files of a folder together are sessions. */
bool wal__place_is_session(const struct wal__place *place, const char *path);

#endif
