/*
 * session_dir.h - directories whose files together are one or more sessions.
 *
 * A session from a directory has the source "DIALECT ORDINAL ROOT//GROUP". ROOT is the directory
 * relative to the argument of the import, "." for the argument itself. GROUP distinguishes the
 * sessions of one root; it is empty for a session that has all files, or those that belong to no
 * other session. Files of lines are streams of the session. A file of JSON is a document whose key
 * is its path relative to the root. Any other file is an entry of the stream WAL__FILES_STREAM
 * whose meta is {"file":PATH}: the last entry of a path is the file's content, unless a document
 * has the path. Paths are escaped as in sources. An entry of that stream without a file has the
 * time of the client's last change: documents have none.
 *
 * A session is continued if it has the id that the files suggest and its streams are prefixes of
 * the files; otherwise a new session is created. A failure of one of its files is reported; then
 * the session is not.
 *
 * Invariant: every file of a root belongs to one of its sessions. Importing a directory again
 * changes nothing. A changed file becomes a new version of its document; a stream's file that has
 * grown adds lines.
 *
 * Texts are in the arena of the import.
 *
 * Threads: one thread at a time per import.
 */
#ifndef AGENTWAL_CONVERT_IMPORT_SESSION_DIR_H
#define AGENTWAL_CONVERT_IMPORT_SESSION_DIR_H

#include <stdbool.h>
#include <stddef.h>

#include "agentwal.h"
#include "convert/import/import.h"
#include "convert/source/session_dir_files.h"

#define WAL__SESSION_DIR_DOC_SIZE ((size_t)16 << 20)

struct wal__session_database;

enum {
    WAL__SESSION_DIR_SIBLINGS = 4 /* databases next to a storage that are looked at */
};

struct wal__session_dir_file {
    const char *path; /* relative to the root */
    size_t group;
    /* Issue: a file that it refers to is missing; or NULL. */
    const char *missing;
};

struct wal__session_dir_group {
    const char *name; /* as in the source */
    const char *id;   /* suggested session id */
    bool has_id;      /* the files state it */
    const char *cwd;  /* or NULL, as the members below */
    const char *title;
    const char *created;
    const char *project;
    const char *parent;
    const char *origin;       /* the session that was exported to the client as it, */
    const char *origin_title; /* and the title that this had */
    int64_t updated_ms;       /* when the client wrote to it last; or 0 */
    bool is_subagent;         /* the parent started it, for a part of its work */
    bool has_file;            /* the session's info file exists */
    const char *info;         /* OpenCode's: path of that file, below the root */
};

/* The owner sets the first fields and zeroes those from `files` on, which are in the arena. */
struct wal__session_dir {
    struct wal__import *import;
    const char *root; /* directory on disk, or the database */
    /* NULL: the documents are files below the root. Else they are rows, of one group at a time. */
    struct wal__session_database *database;
    /* Those next to a storage. */
    struct wal__session_database *siblings[WAL__SESSION_DIR_SIBLINGS];
    uint32_t sibling_count;
    bool is_exported; /* the only file is one that the client exported */
    /* patterns of the files that belong to it (client.h); NULL: all */
    const char *const *patterns;
    struct wal__session_dir_file *files;
    size_t file_count;
    size_t file_capacity;
    struct wal__session_dir_group *groups;
    size_t group_count;
    size_t group_capacity;
};

/* Detects the dialect of a session directory from its files. Returns NULL if it is not one, or
 * without memory. */
const struct wal__dialect *wal__session_dir_detect(struct wal__import *import, const char *root);

/* Lists the files below the root, and counts those that are left out. A folder that cannot be read
 * is reported as failed, and is not a failure of the call. */
enum wal_status wal__session_dir_list_files(struct wal__session_dir *dir,
                                            struct wal_error *error) WAL_MUST_USE;

/* Set the group of each file: all in one session, or by OpenCode's storage layout. Without memory
 * import->arena.has_failed is set. */
void wal__session_dir_group_single(struct wal__session_dir *dir);
void wal__session_dir_group_storage(struct wal__session_dir *dir);

/* Sets the session that was exported as the group, from the metadata of OpenCode's session, if the
 * store has it, maybe in its trash. A group without a parent becomes a child of it. */
void wal__session_dir_set_origin(struct wal__import *import, struct wal__session_dir_group *group,
                                 struct wal__json_span metadata);

/* If the file is an export of OpenCode's client, {info, messages:[{info, parts}]}, makes it the
 * only file of the directory and returns true. */
bool wal__session_dir_read_exported(struct wal__session_dir *dir, const char *path);

/* --- paths of OpenCode's storage ----------------------------------------- */

enum {
    WAL__STORAGE_PATH_PARTS = 8 /* deeper components are ignored */
};

struct wal__storage_path {
    /* The last one without .json. */
    struct wal_slice parts[WAL__STORAGE_PATH_PARTS];
    size_t count;
};

void wal__storage_path_split(const char *text, struct wal__storage_path *path);

/* Returns true if the file is in the folder of that kind, which older versions keep below
 * "session". *first is the index of the component after the folder. */
bool wal__storage_path_is_kind(const struct wal__storage_path *path, const char *kind,
                               size_t *first);

/* Returns true if it is a session's info file. */
bool wal__storage_path_is_info(const struct wal__storage_path *path);

/* Imports a session directory: files of lines and files of JSON. `path` is
 * relative to the argument of the import, and empty for the argument itself.
 * `patterns` are those of the files to import (client.h); NULL: all. */
enum wal_status wal__import_dir(struct wal__import *import, const char *name, const char *path,
                                const struct wal__dialect *dialect, const char *const *patterns,
                                struct wal_error *error) WAL_MUST_USE;

/* Imports a database of sessions, as a directory `storage` next to it. *is_database is false if the
 * file is none. */
enum wal_status wal__import_database(struct wal__import *import, const char *name, const char *path,
                                     bool *is_database, struct wal_error *error) WAL_MUST_USE;

/* Imports a file that contains a complete session of OpenCode, in the format that its client
 * exports, as a document of that session. *is_exported is false if it is not such a file. */
enum wal_status wal__import_exported(struct wal__import *import, const char *name, const char *path,
                                     bool *is_exported, struct wal_error *error) WAL_MUST_USE;

#endif
