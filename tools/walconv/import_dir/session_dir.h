/*
 * session_dir.h - directories whose files together are one or more sessions.
 *
 * A session from a directory has the source "DIALECT ORDINAL ROOT//GROUP". ROOT
 * is the directory relative to the argument of the import, "." for the argument
 * itself. GROUP distinguishes the sessions of one root; it is empty for a
 * session that has all files, or those that belong to no other session. Files
 * of lines are streams of the session. A file of JSON is a document whose key
 * is its path relative to the root. Any other file is an entry of the stream
 * WALCONV_FILES whose meta is {"file":PATH}: the last entry of a path is the
 * file's content, unless a document has the path. Paths are escaped as in
 * sources.
 *
 * Invariant: every file of a root belongs to one of its sessions.
 *
 * Threads: the tools are single-threaded.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_H

#include "agentwal.h"
#include "format/model/dialect.h"
#include "tools/cli/cli.h"

/* The stream number of files that are neither JSON nor lines. */
#define WALCONV_FILES    255
#define WALCONV_STREAMS  3
#define WALCONV_DOC_SIZE ((size_t)16 << 20)

/* The streams that imported sessions can have. */
extern const uint32_t walconv_streams[WALCONV_STREAMS];

struct walconv_dir_file {
    char *path; /* relative to the root */
    size_t group;
    /* Issue: a file that it refers to is missing; or NULL. */
    const char *missing;
};

struct walconv_dir_group {
    char *name; /* as in the source */
    char *id;   /* suggested session id */
    char *cwd;  /* or NULL, as the members below */
    char *title;
    char *created;
    char *project;
    char *parent;
    bool has_file; /* the session's info file exists */
};

struct walconv_dir {
    const char *root; /* directory on disk */
    struct walconv_dir_file *files;
    size_t file_count;
    size_t file_capacity;
    struct walconv_dir_group *groups;
    size_t group_count;
    size_t group_capacity;
};

/* Detects the dialect of a session directory from its files. Returns NULL if it
 * is not one. `forced`: accept only this dialect, unless NULL. */
const struct wal__dialect *
walconv_dir_detect(const char *root, const struct wal__dialect *forced);

/* Lists the files below the root. Returns an exit code. */
int walconv_dir_list_files(const struct cli *cli, struct walconv_dir *dir);

/* Set the group of each file: all in one session, or by OpenCode's storage
 * layout. */
void walconv_dir_group_single(struct walconv_dir *dir);
void walconv_dir_group_storage(struct walconv_dir *dir);
/* If the file is an export of OpenCode's client, {info, messages:[{info,
 * parts}]}, makes it the only file of the directory and returns true. */
bool walconv_dir_read_exported(struct walconv_dir *dir, const char *path);
size_t walconv_dir_add_group(struct walconv_dir *dir, const char *name);
void walconv_dir_deinit(struct walconv_dir *dir);

/* Reads a file. Returns NULL if it is not a regular file, cannot be read, or is
 * larger than WALCONV_DOC_SIZE. The caller frees it. */
char *walconv_dir_read_file(const char *root, const char *path, size_t *size);

/* Decodes a string member of a JSON object; the caller frees it. NULL: there is
 * none. */
char *walconv_json_member_text(const char *json, size_t size,
                               const char *parent, const char *key);

/* Returns the end of the root in the path of a source; NULL: the source is not
 * a session directory. */
const char *walconv_dir_root_end(const char *path);

/* Returns the path of the stream's file relative to the root, or NULL. */
const char *walconv_dir_stream_path(const struct wal__dialect *dialect,
                                    uint32_t stream);

#endif
