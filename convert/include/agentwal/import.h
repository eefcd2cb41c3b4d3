/*
 * agentwal/import.h - imports the session files of other programs. The library is
 * libagentwal-convert. The conventions of agentwal.h apply.
 *
 * A source is a file of lines, which becomes one session, or a directory whose files together are
 * sessions. A line becomes an entry with WAL_ENTRY_LINE, so that the bytes of the source can be
 * read back; nothing is lost.
 *
 * Selection: of a directory, the files that are sessions of a client by their path are imported
 * (docs/clients.md, Session paths); in a directory that belongs to no client, files of lines whose
 * content is that of a dialect. Everything else is left out and counted. A file that is given by
 * its path is imported, unless it is not text; with the dialect `lines`, and with flags, that too.
 * Symbolic links below a directory are followed to a client's folders of sessions only.
 *
 * Sessions that cannot be read: of a client that is known and not read, and in a form of another
 * that is not, they are left out, and one report for each client has the status WAL_EVERSION and a
 * text that names it and says what to do.
 *
 * Identity: a source continues the session of its id, dialect and file name whose bytes are its
 * beginning, whatever the directories above it are named; if that session already begins with all
 * of the source, nothing is added. With flags, files that are no client's are identified by their
 * dialect and path, relative to the path that was given (of that path itself: its name). A source
 * that continues no session becomes a new one; when its id is taken, a number is added to the id. A
 * file that its client rewrote in a newer form replaces its session, unless others wrote to that. A
 * file that a client made by copying that of another session becomes a session with all its lines;
 * its parent_id is the id of the session that the file names. A file that is a view of a session of
 * this store continues that session, as wal_view_import does.
 *
 * Idempotence: a repeated import adds only what is new, also after a crash or an import that failed
 * or was stopped. The same sources give the same sessions, in one import or in several.
 *
 * Times: an entry has the time of its line, or that of the line before; in a source without times
 * that of the file, its last modification. The order of lists follows these. The metadata of an
 * imported session has the member `imported`, the time of the import, and `created`, the first time
 * in the source.
 *
 * Durability: what an import wrote, and so what its reports and its result count, is durable when
 * the call returns, also with an error; one sync ends it. When a report is made the entries are
 * written: they survive a killed process.
 *
 * Threads: any; calls may run at the same time, in several processes too. An
 * import of a source that another import is writing fails with WAL_ECLAIMED or
 * WAL_EBUSY: import it again. Sources are only read. The import of a
 * source that another process truncates meanwhile fails; of a line of more than
 * 4 MiB it may leave zeros in the place of what went.
 */
#ifndef AGENTWAL_IMPORT_H
#define AGENTWAL_IMPORT_H

#include "agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The offset of an issue that concerns a whole file. */
#define WAL_IMPORT_NO_OFFSET UINT64_MAX

/* What a report is about. */
enum wal_import_kind {
    WAL_IMPORT_NONE = 0,      /* nothing: the source failed */
    WAL_IMPORT_FILE = 1,      /* a file of lines that is a session */
    WAL_IMPORT_STREAM = 2,    /* a file of lines of a session directory */
    WAL_IMPORT_VIEW = 3,      /* a view of a session of the store */
    WAL_IMPORT_DIRECTORY = 4, /* a session of a directory, or of one file that
                               * has a whole session as JSON */
};

enum wal_import_flag {
    /* The file is a view of the session view_session, but more than its end changed; it was
     * imported as another session. */
    WAL_IMPORT_CHANGED_VIEW = 1u << 0,
    /* The id that the source states is that of another session; the new session has another id. */
    WAL_IMPORT_OTHER_ID = 1u << 1,
    /* The file goes on from a line of another one that is not there: the session is without what
     * came before. The first issue says which. */
    WAL_IMPORT_PARTIAL = 1u << 2
};

/* Flags of wal_import_options. */
enum wal_import_selection {
    /* Every file below a directory is a source. */
    WAL_IMPORT_ALL_FILES = 1u << 1,
    /* Every file is, except in clients' folders. */
    WAL_IMPORT_OTHER_FILES = 1u << 2
};

/* What a file is that is left out, by its path: an index of wal_import_result.left_out. */
enum wal_import_left_out {
    WAL_IMPORT_CREDENTIALS = 0,
    WAL_IMPORT_SETTINGS = 1,
    WAL_IMPORT_DATABASES = 2,
    WAL_IMPORT_SHELL_SNAPSHOTS = 3,
    WAL_IMPORT_LOGS = 4,
    WAL_IMPORT_HISTORIES = 5, /* of prompts */
    WAL_IMPORT_LINKS = 6,     /* symbolic */
    WAL_IMPORT_OTHERS = 7,
    WAL_IMPORT_LEFT_OUT_SIZE = 8
};

/* Damage, or what the client of the dialect does not write. The content was imported
 * nevertheless. */
struct wal_import_issue {
    uint32_t struct_size; /* also the stride of report->issues */
    uint32_t reserved;
    struct wal_slice path;   /* of the file */
    struct wal_slice reason; /* a phrase */
    uint64_t line;           /* number of the line, from 1; 0: no line */
    uint64_t offset;         /* in the file, or WAL_IMPORT_NO_OFFSET */
};

/* The result of one source, or why it failed. Pointers and slices hold until the callback returns;
 * texts are terminated by NUL. */
struct wal_import_report {
    uint32_t struct_size;
    uint32_t kind;         /* enum wal_import_kind */
    uint32_t flags;        /* enum wal_import_flag */
    int32_t status;        /* WAL_OK, or why this path failed */
    struct wal_slice path; /* as given, and the path below it */
    struct wal_slice dialect;
    struct wal_slice session_id;
    struct wal_slice view_session; /* with WAL_IMPORT_CHANGED_VIEW */
    uint64_t lines;                /* of the file; of a directory: files that
                                    * are not streams */
    uint64_t appended;             /* that became entries; of a directory: new
                                    * and changed files */
    uint64_t duplicates;           /* that the session had before */
    uint64_t checkpoints;          /* of a directory: added, or completed */
    const struct wal_import_issue *issues;
    uint64_t issue_count;
    const struct wal_error *error; /* of the failure, or null */
    uint64_t bytes;                /* size of a file of lines; else 0 */
};

/* Called for each source that was imported, for each stream of a session directory before the
 * directory, and for each path that failed. A result other than 0 stops the import with
 * WAL_ECALLBACK and that number in error->sys_errno. It may call this library. */
typedef int32_t wal_import_report_fn(void *ctx, const struct wal_import_report *report);

/* Called while a source is read: the bytes of it that were read, and its size, or 0 if that is not
 * known. path is terminated by NUL. A result other than 0 stops the import like that of
 * wal_import_report_fn. */
typedef int32_t wal_import_progress_fn(void *ctx, struct wal_slice path, uint64_t done,
                                       uint64_t total);

/* Called before a session is created: writes the id of the project of its
 * directory, as the source names it, terminated by NUL, to project, which has
 * `size` bytes. directory is terminated by NUL; it may not exist here. A result
 * other than 0: the directory's path is the id. It may call this library. */
typedef int32_t wal_import_project_fn(void *ctx, struct wal_slice directory, char *project,
                                      uint64_t size);

struct wal_import_options {
    uint32_t struct_size;
    uint32_t flags;                   /* enum wal_import_selection */
    struct wal_slice dialect;         /* name of the only dialect to accept; empty:
                               * detected from the content */
    struct wal_slice exclude;         /* directory that is not imported when it is
                               * found, such as the store's; or empty */
    wal_import_progress_fn *progress; /* or null */
    wal_import_report_fn *report;     /* or null */
    void *ctx;                        /* of the callbacks */
    wal_import_project_fn *project;   /* or null: always the path */
};

/* What an import did; also when it failed or was stopped. The library fills it. */
struct wal_import_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t sources;  /* files and session directories that were tried */
    uint64_t sessions; /* that they are, without those that failed */
    uint64_t appended; /* sums of the reports; without streams, whose
                          * directories are counted, and failures */
    uint64_t duplicates;
    uint64_t failed; /* reports with a status other than WAL_OK */
    uint64_t bytes;  /* size of the files of lines */
    /* Files below directories that were not imported, by kind. */
    uint64_t left_out[WAL_IMPORT_LEFT_OUT_SIZE];
};

/* A folder of a client whose session files are known by their path. The library fills it. */
struct wal_import_client {
    uint32_t struct_size;
    uint32_t reserved;
    const char *name;    /* of the program */
    const char *dialect; /* of its sessions; empty: they cannot be read */
    char folder[4096];   /* in which it keeps its files; it may not exist */
};

/* An import that goes on: wal_import_follow_open. */
struct wal_import_follow;

/* The library fills it. */
struct wal_import_follow_info {
    uint32_t struct_size;
    /* 1: not every folder can be watched, because of sys_errno (ENOSPC: the limit of watches is
     * reached; EMFILE: that of instances), so that all are scanned every few seconds. */
    uint32_t is_scanning;
    int32_t sys_errno;
    uint32_t reserved;
    uint64_t folders; /* that are watched */
    uint64_t scans;   /* of all arguments */
};

/* Returns the name of the dialect with this index, from 0 on, or null after the last one. Threads:
 * any. */
WAL_API const char *wal_import_dialect(uint32_t index);

/* Returns the folder of a client with this index, from 0 on: the one that the environment names,
 * else the default below HOME; then those to which the client's settings, and variables that do not
 * replace the first, move its sessions. Threads: any that do not change the environment. Errors:
 * WAL_END after the last; WAL_ENOTFOUND when neither the variable nor HOME is set: then only the
 * folder is missing in *client. */
WAL_API WAL_MUST_USE enum wal_status
wal_import_client(uint32_t index, struct wal_import_client *client, struct wal_error *error);

/* Returns a name for enum wal_import_left_out, or null. Threads: any. */
WAL_API const char *wal_import_left_out_name(uint32_t kind);

/*
 * Imports one source: a file, or a session directory. A file of 0 bytes is left out, but with
 * WAL_IMPORT_ALL_FILES or WAL_IMPORT_OTHER_FILES. options and result may be null.
 *
 * Errors: the first failure that was reported: WAL_ENOTFOUND for the path or the dialect;
 * WAL_ENOTFILE for a directory that is not that of a session, and for neither a file nor a
 * directory; WAL_EACCESS; WAL_EIO, also for a file that became shorter; WAL_ECLAIMED and WAL_EBUSY,
 * see above; WAL_ETOOBIG for a path that is too long; WAL_ECALLBACK; those of wal_append,
 * wal_session_create and wal_sync.
 */
WAL_API WAL_MUST_USE enum wal_status wal_import_file(struct wal_store *store, struct wal_slice path,
                                                     const struct wal_import_options *options,
                                                     struct wal_import_result *result,
                                                     struct wal_error *error);

/*
 * Imports all sources among and below the paths, files and directories, in the order of their
 * names. Hidden state of views is ignored. options and result may be null.
 *
 * A source that fails does not end the import: WAL_OK is returned, the failure is reported and
 * counted in result->failed.
 *
 * Errors: WAL_ENOTFOUND for the dialect; WAL_ECALLBACK; WAL_ENOMEM. What was imported before
 * remains.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_import_tree(struct wal_store *store, const struct wal_slice *paths, uint32_t path_count,
                const struct wal_import_options *options, struct wal_import_result *result,
                struct wal_error *error);

/*
 * Counts what wal_import_tree would import, and imports nothing: sources, sessions (files, and
 * sessions in session directories), bytes, left_out and failed. report is called for paths that
 * cannot be read, progress for each source. options may be null.
 *
 * Errors: those of wal_import_tree.
 */
WAL_API WAL_MUST_USE enum wal_status wal_import_scan(const struct wal_slice *paths,
                                                     uint32_t path_count,
                                                     const struct wal_import_options *options,
                                                     struct wal_import_result *result,
                                                     struct wal_error *error);

/*
 * Prepares to import the paths and then what changes in them: files that grow, are replaced,
 * created or renamed, also in folders that are created later. Removed files keep their sessions.
 * options may be null; its slices are copied. Free *follow with wal_import_follow_close, before the
 * store.
 *
 * Threads: one at a time per follow; several processes may follow the same folders, nothing is
 * imported twice. Errors: those of wal_import_tree.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_import_follow_open(struct wal_store *store, const struct wal_slice *paths, uint32_t path_count,
                       const struct wal_import_options *options, struct wal_import_follow **follow,
                       struct wal_error *error);

/*
 * The first call imports everything, as wal_import_tree does. Later calls wait for changes, at most
 * timeout_ms, or until a signal is handled, and import them; an incomplete last line waits for its
 * end, and one that lacks only the newline for a second. What they import is durable when they
 * return. A source that another program holds, or changed while it was read, is tried again a
 * moment later, without a change. result may be null; it is about this call.
 *
 * Errors: WAL_ECALLBACK, WAL_ENOMEM; the next call goes on.
 */
WAL_API WAL_MUST_USE enum wal_status wal_import_follow_next(struct wal_import_follow *follow,
                                                            uint32_t timeout_ms,
                                                            struct wal_import_result *result,
                                                            struct wal_error *error);

/* Describes how the changes are found. Threads: one at a time per follow. */
WAL_API WAL_MUST_USE enum wal_status
wal_import_follow_get_info(const struct wal_import_follow *follow,
                           struct wal_import_follow_info *info, struct wal_error *error);

/* Stops following. follow may be null. */
WAL_API void wal_import_follow_close(struct wal_import_follow *follow);

#ifdef __cplusplus
}
#endif

#endif
