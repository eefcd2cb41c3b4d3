/*
 * session_dir.h - directories whose files together are sessions.
 *
 * A session that is a dir has the source "DIALECT ORDINAL ROOT//GROUP": ROOT
 * is the directory below the import's argument, "." for that itself; GROUP
 * tells sessions of one root apart, and is empty for a session that has all of
 * it, or what belongs to no other. Files of lines are streams of the session.
 * A file of JSON is a document whose key is its path below the root; any other
 * file is an entry of the stream WALCONV_FILES whose meta has {"file":PATH}:
 * the last entry of a path holds, unless there is a document. Paths are escaped
 * as in sources.
 *
 * Invariant: every file of a root is in one of its sessions.
 *
 * Threads: a tool is one thread.
 */
#ifndef AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_H
#define AGENTWAL_TOOLS_WALCONV_IMPORT_DIR_SESSION_DIR_H

#include "agentwal.h"
#include "format/model/dialect.h"
#include "tools/cli/cli.h"

#define WALCONV_FILES    255 /* stream */
#define WALCONV_STREAMS  3
#define WALCONV_DOC_SIZE ((size_t)16 << 20)

/* The streams of imported sessions. */
extern const uint32_t walconv_streams[WALCONV_STREAMS];

struct walconv_dir_file {
    char *path; /* below the root */
    size_t group;
    const char *missing; /* what it needs and is not there, or null */
};

struct walconv_dir_group {
    char *name; /* as in the source */
    char *id;   /* that the session asks for */
    char *cwd;  /* or null, as all below */
    char *title;
    char *created;
    char *project;
    char *parent;
    bool has_file; /* the session's own */
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

/* The dialect that the directory is a dir of, by what its files say; null:
 * of none. `forced`: of none but that one, or null. */
const struct wal__dialect *
walconv_dir_detect(const char *root, const struct wal__dialect *forced);

/* Gathers the files below the root; the exit code. */
int walconv_dir_list_files(const struct cli *cli, struct walconv_dir *dir);

/* Sets the groups of the dir's files. */
void walconv_dir_group_single(struct walconv_dir *dir);
void walconv_dir_group_storage(struct walconv_dir *dir);
/* Makes the file all of the dir, where it is an export of OpenCode's client:
 * {info, messages:[{info, parts}]}. False: it is none. */
bool walconv_dir_read_exported(struct walconv_dir *dir, const char *path);
size_t walconv_dir_add_group(struct walconv_dir *dir, const char *name);
void walconv_dir_deinit(struct walconv_dir *dir);

/* The file below the root; null when it is none, cannot be read, or is larger
 * than a document. */
char *walconv_dir_read_file(const char *root, const char *path, size_t *size);

/* A string member of JSON as text, or null. */
char *walconv_json_member_text(const char *json, size_t size,
                               const char *parent, const char *key);

/* Where the root ends in the path of a source; null: it is no dir. */
const char *walconv_dir_root_end(const char *path);

/* The path below the root of the stream's file, or null. */
const char *walconv_dir_stream_path(const struct wal__dialect *dialect,
                                    uint32_t stream);

#endif
