/*
 * agentwal/checkpoint.h - checkpoints of files, differences between them, and rewinding files to
 * one (SPEC.md, Checkpoints, Rewind). The conventions of agentwal.h apply.
 */
#ifndef AGENTWAL_CHECKPOINT_H
#define AGENTWAL_CHECKPOINT_H

#include "../agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_file_cursor;
struct wal_checkpoint_cursor;
struct wal_file_change_cursor;

/* ------------------------------------------------------- checkpoints --- */

enum wal_file_kind { WAL_FILE_ABSENT = 0, WAL_FILE_REGULAR = 1, WAL_FILE_SYMLINK = 2 };

/* A file in a checkpoint. */
struct wal_file {
    uint32_t struct_size;
    uint32_t kind; /* enum wal_file_kind */
    uint32_t mode; /* permission bits */
    uint32_t reserved;
    struct wal_slice path;           /* below the root */
    uint64_t size;                   /* bytes of the content; of a link: its target */
    int64_t mtime_ns;                /* Unix time in nanoseconds, when it was recorded */
    uint8_t digest[WAL_DIGEST_SIZE]; /* of the content; zeros when absent */
};

struct wal_checkpoint_options {
    uint32_t struct_size;
    uint32_t threads;          /* that read, digest and compress; 0: one for each
                            * processor, at most 8 */
    struct wal_slice id;       /* 1 to 255 bytes; empty: a UUIDv7 is made */
    struct wal_slice root;     /* an absolute path; empty: the session's cwd */
    int64_t created_ms;        /* Unix time in milliseconds; 0: now */
    struct wal_slice entry_id; /* the entry of the conversation at which the
                                * files are so; empty: the head `main` now,
                                * none if there is no entry */
    uint32_t flags;            /* enum wal_checkpoint_flag */
    uint32_t reserved;
};

enum wal_checkpoint_flag {
    WAL_CHECKPOINT_OFF = 1u << 0,        /* out: checkpoints are off in this
                                       * session: nothing was done */
    WAL_CHECKPOINT_UNLINKED = 1u << 1,   /* in: link it with no entry */
    WAL_CHECKPOINT_ALL_OR_NONE = 1u << 2 /* in: fail when a path cannot be
                                          * recorded */
};

/* A path that could not be recorded. The library fills it. */
struct wal_checkpoint_issue {
    uint32_t struct_size;    /* also the stride of info->unrecorded */
    int32_t status;          /* why: WAL_EACCESS, WAL_ENOTFILE, ... */
    struct wal_slice path;   /* below the root, or as it was given */
    struct wal_slice reason; /* a phrase */
};

/* A checkpoint, and what creating it cost. The library fills it. */
struct wal_checkpoint_info {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_checkpoint_flag */
    struct wal_slice id;
    struct wal_slice root;
    int64_t created_ms;        /* Unix time in milliseconds */
    uint64_t files;            /* that it names, absent ones too */
    uint64_t bytes;            /* of their contents */
    uint64_t new_blobs;        /* contents that the store did not have before */
    uint64_t new_bytes;        /* that they take in the pack */
    uint64_t version;          /* rises with every change of any checkpoint */
    struct wal_slice entry_id; /* linked entry of the conversation, or empty */
    /* Of wal_checkpoint_create, by their paths: those that could not be recorded. */
    const struct wal_checkpoint_issue *unrecorded;
    uint64_t unrecorded_count;
};

/*
 * Records the state of the named files, durably: content, permission bits, symbolic links as links,
 * and the absence of a file. A directory is an absent file where a path below it is named too, and
 * a path through a link where that link is named; a rewind then brings back the one or the other.
 *
 * Paths are relative to the root, or absolute and below it. Links to directories that stay below
 * the root are resolved. Two names of one file count once; count may be 0.
 * Only these files are examined; a file with the size, times and inode of the session's last
 * checkpoints is not read again. If the session has a checkpoint of this id with the same root, the
 * files are added to it, and the first state of a path remains, as does the linked entry. cursor
 * may be null; it takes a cursor over the checkpoint as wal_file_cursor_open returns it, an empty
 * one if checkpoints are off.
 *
 * A path that cannot be recorded does not keep the others from it: the checkpoint does not name it,
 * a rewind leaves it as it is, and wal_checkpoint_get_info of *cursor has it in info->unrecorded.
 * The call fails when none can be recorded, with WAL_CHECKPOINT_ALL_OR_NONE, and without a cursor.
 *
 * Threads: any. Errors, with no checkpoint made: WAL_EACCESS, WAL_ENOTFILE, WAL_EOUTSIDE,
 * WAL_ETOOBIG, WAL_EIO and WAL_ECHANGED (the file changed during each attempt to read it), all with
 * the first path in error->file; WAL_EEXISTS when the id has another root, or another entry than
 * options->entry_id; WAL_ENOTFOUND when the session has no such entry in stream 0; WAL_EINVAL
 * without a root; those of wal_doc_put.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_create(struct wal_session *session, const struct wal_slice *paths, uint64_t count,
                      const struct wal_checkpoint_options *options, struct wal_file_cursor **cursor,
                      struct wal_error *error);

/*
 * Records files as the caller describes them, durably; the disk is not examined.
 *
 * Of each wal_file kind, mode (0 of a regular file: 0644), path, mtime_ns and digest are read. Put
 * its content, or the target of a link, as a blob first. A path that is given twice must be given
 * the same. All are recorded or none. As wal_checkpoint_create otherwise.
 *
 * Threads: any. Errors, with no checkpoint made and the path in error->file: WAL_ENOTFOUND when the
 * store does not have the content, WAL_EOUTSIDE, WAL_ENOTFILE, WAL_EINVAL; and those of
 * wal_checkpoint_create.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_import(struct wal_session *session, const struct wal_file *files, uint64_t count,
                      const struct wal_checkpoint_options *options, struct wal_file_cursor **cursor,
                      struct wal_error *error);

/* Removes a checkpoint, durably. Forks that share it keep it; once none does, wal_store_compact
 * removes the contents that nothing else names. Threads: any. Errors: WAL_ENOTFOUND, and those of
 * wal_doc_put. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_delete(struct wal_session *session, struct wal_slice id, struct wal_error *error);

/* Switches checkpoints of a session on (not 0) or off, durably. While they are off,
 * wal_checkpoint_create does nothing and wal_rewind refuses. They are on in a new session; a fork
 * starts with its source's setting. Threads: any. Errors: those of wal_doc_put. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_set_checkpointing(struct wal_session *session, int32_t on, struct wal_error *error);

/* Opens a checkpoint of the session, own or shared: its files in byte order of their paths. Close
 * *cursor with wal_file_cursor_close. Threads: any. Errors: WAL_ENOTFOUND. */
WAL_API WAL_MUST_USE enum wal_status wal_file_cursor_open(struct wal_session *session,
                                                          struct wal_slice id,
                                                          struct wal_file_cursor **cursor,
                                                          struct wal_error *error);

/* Fills *info with the checkpoint of the cursor. Slices hold until the next call on the cursor, or
 * its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_checkpoint_get_info(const struct wal_file_cursor *cursor,
                                                             struct wal_checkpoint_info *info,
                                                             struct wal_error *error);

/* Fills *file with the next file, or returns WAL_END. Slices hold until the next call on the
 * cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_file_cursor_next(struct wal_file_cursor *cursor,
                                                          struct wal_file *file,
                                                          struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_file_cursor_close(struct wal_file_cursor *cursor);

/* Lists the checkpoints of a session, oldest first. Close *cursor with wal_checkpoint_cursor_close.
 * Threads: any. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_cursor_open(struct wal_session *session, struct wal_checkpoint_cursor **cursor,
                           struct wal_error *error);

/* Fills *info with the next checkpoint, or returns WAL_END. Slices hold until the next call on the
 * cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_cursor_next(struct wal_checkpoint_cursor *cursor, struct wal_checkpoint_info *info,
                           struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_checkpoint_cursor_close(struct wal_checkpoint_cursor *cursor);

/* ------------------------------------------------------- differences --- */

enum wal_file_change_flag {
    WAL_FILE_CHANGE_BINARY = 1u << 0,   /* no lines are counted */
    WAL_FILE_CHANGE_CONTENT = 1u << 1,  /* content differs */
    WAL_FILE_CHANGE_MODE = 1u << 2,     /* permission bits differ */
    WAL_FILE_CHANGE_ELSEWHERE = 1u << 3 /* another program changed it since the
                                         * checkpoint that was expected */
};

/* A difference between two states of a file. The library fills it. */
struct wal_file_change {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_file_change_flag */
    struct wal_slice path;
    uint32_t kind_before; /* enum wal_file_kind */
    uint32_t kind_after;
    uint32_t mode_before;
    uint32_t mode_after;
    uint64_t insertions; /* lines, as `git diff --numstat --minimal` */
    uint64_t deletions;
};

/* Totals of a list of changes. The library fills it. */
struct wal_file_changes_info {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t files;
    uint64_t insertions; /* lines */
    uint64_t deletions;  /* lines */
    uint64_t binary;     /* files without lines */
};

/* Compares checkpoint `before` with checkpoint `after`, or with the files on disk if `after` is
 * empty, over the files that both name, in byte order of their paths. Close *cursor with
 * wal_file_change_cursor_close. Threads: any. Errors: WAL_ENOTFOUND, WAL_ECORRUPT. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_diff(struct wal_session *session, struct wal_slice before, struct wal_slice after,
                    struct wal_file_change_cursor **cursor, struct wal_error *error);

/* Compares the first state of each path in the session's checkpoints with its last one there. Close
 * *cursor with wal_file_change_cursor_close. Threads: any. Errors: WAL_ECORRUPT. */
WAL_API WAL_MUST_USE enum wal_status wal_session_diff(struct wal_session *session,
                                                      struct wal_file_change_cursor **cursor,
                                                      struct wal_error *error);

/* Fills *info with the totals over all changes of the cursor that are not flagged
 * WAL_FILE_CHANGE_ELSEWHERE. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_file_changes_get_info(const struct wal_file_change_cursor *cursor,
                          struct wal_file_changes_info *info, struct wal_error *error);

/* Fills *change with the next change, or returns WAL_END. Slices hold until the next call on the
 * cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_file_change_cursor_next(struct wal_file_change_cursor *cursor, struct wal_file_change *change,
                            struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_file_change_cursor_close(struct wal_file_change_cursor *cursor);

/* ------------------------------------------------------------ rewind --- */

enum wal_rewind_flag {
    WAL_REWIND_DRY_RUN = 1u << 0, /* change nothing, return the same result */
    WAL_REWIND_FORCE = 1u << 1,   /* overwrite changes of other programs */
    WAL_REWIND_HEAD = 1u << 2     /* move the head `main` to the entry that the
                                   * checkpoint is linked with, too */
};

struct wal_rewind_options {
    uint32_t struct_size;
    uint32_t flags;            /* enum wal_rewind_flag */
    struct wal_slice root;     /* an absolute path; empty: the checkpoint's */
    struct wal_slice expected; /* checkpoint of what the caller last wrote; if
                                * files differ from it nothing is touched
                                * without WAL_REWIND_FORCE. Or empty */
};

enum {
    WAL_REWIND_TEXT_SIZE = 1040 /* bytes of a path and a sentence, terminated */
};

/* What a rewind did; texts are terminated by NUL. The library fills it. */
struct wal_rewind_result {
    uint32_t struct_size;
    int32_t can_rewind; /* 1, or 0: nothing was touched */
    int32_t status;     /* WAL_OK, or why not */
    uint32_t reserved;
    uint64_t files_changed;
    uint64_t insertions; /* lines */
    uint64_t deletions;  /* lines */
    uint64_t binary;     /* files without lines among those changed */
    uint64_t changed_elsewhere;
    char undo[WAL_ID_SIZE];           /* checkpoint of the state before; empty:
                                       * nothing changed, or a dry run */
    char error[WAL_REWIND_TEXT_SIZE]; /* why not, or empty */
    char previous_head[WAL_ID_SIZE];  /* WAL_REWIND_HEAD: entry id of `main`
                                       * before; or empty */
    char new_head[WAL_ID_SIZE];       /* and after, or where a dry run would
                                       * move it; the same: not moved */
};

/*
 * Restores the files that a checkpoint names to its state, all or none: content, permission bits,
 * links; files that were absent are removed. A directory in the place of a file is removed when all
 * files in it are named as absent, else the rewind is refused (WAL_ENOTFILE).
 *
 * Before the first file is touched every content is read and verified, and the present state is
 * recorded as another checkpoint, linked with the present head. If the process or the machine dies
 * meanwhile, the next wal_rewind or wal_checkpoint_create on the session completes or undoes it.
 * options and result may be null. changes may be null; it takes a cursor over the files that were
 * or would be changed, then those changed elsewhere, to be closed with
 * wal_file_change_cursor_close.
 *
 * With WAL_REWIND_HEAD the files and the head `main` are rewound, or neither. If the process dies
 * and the session is continued before the next call, that call completes the files only and leaves
 * the head where it was moved to.
 *
 * A rewind that is refused returns WAL_OK with result->can_rewind 0 and result->status
 * WAL_ENOTFOUND (no such checkpoint, checkpoints are off, or WAL_REWIND_HEAD and the checkpoint is
 * linked with no entry of this session), WAL_ECORRUPT (content is damaged or missing), WAL_ECHANGED
 * (files differ from options->expected, or the head was moved during the rewind), WAL_EOUTSIDE,
 * WAL_EACCESS, WAL_ENOTFILE, WAL_ETOOBIG (no room for a temporary file's path), WAL_ENOSPACE or
 * WAL_EIO.
 *
 * Threads: any. Errors: those of wal_doc_put, when files were left in both states, or the head was
 * not moved; the next call completes it.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_rewind(struct wal_session *session, struct wal_slice checkpoint,
           const struct wal_rewind_options *options, struct wal_rewind_result *result,
           struct wal_file_change_cursor **changes, struct wal_error *error);

#ifdef __cplusplus
}
#endif

#endif
