/*
 * agentwal.h - the public interface of libagentwal, the append-only log that
 * AI agents keep their sessions in.
 *
 * A store is a directory. It holds sessions; a session holds entries, each an
 * id, a parent and a payload, so that a session is a tree; the path from a
 * root to a head is a branch. Entries of all sessions share one log, so that
 * one sync makes the turns of every writer durable. SPEC.md says what every
 * byte means; this header says what every call does.
 *
 * Conventions
 *   Errors     Every call that can fail returns an enum wal_status: WAL_OK, or
 *              WAL_END from iterators, or a negative WAL_E... code. The last
 *              parameter takes an optional struct wal_error that the caller
 *              owns; it is filled on failure only. Outputs are untouched on
 *              failure. Wrong use is an error and changes nothing.
 *   Structs    Structs that a caller fills begin with struct_size, which must
 *              be sizeof the struct; zero every other byte before setting
 *              fields. Structs that the library fills are named in the call.
 *   Slices     struct wal_slice is a pointer and a size in bytes. Slices given
 *              to a call are borrowed until it returns. Text is UTF-8 and is
 *              not terminated. Slices that a call gives back say until when
 *              they hold.
 *   Threads    A struct wal_store and a struct wal_session may be used by any
 *              number of threads at once. A cursor, a ticket and a view
 *              belong to one thread at a time.
 *   Processes  Any number of processes may open one store. After fork() the
 *              child's handles answer WAL_EFORKED; it opens its own.
 */
#ifndef AGENTWAL_H
#define AGENTWAL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define WAL_API      __attribute__((visibility("default")))
#define WAL_MUST_USE __attribute__((warn_unused_result))
#else
#define WAL_API
#define WAL_MUST_USE
#endif

/* ------------------------------------------------------------ status --- */

/* What a call answers. Negative values are failures, told apart by what the
 * caller may do about them. The values are part of the ABI. */
enum wal_status {
    WAL_OK = 0,
    WAL_END = 1,           /* an iterator has no more */
    WAL_EINVAL = -1,       /* wrong use: mend the call */
    WAL_ENOTFOUND = -2,    /* no such session, entry, head or document */
    WAL_EEXISTS = -3,      /* the id is taken by other content */
    WAL_ECONFLICT = -4,    /* the expected tail is not the tail */
    WAL_ETOOBIG = -5,      /* over a limit of SPEC.md, Limits */
    WAL_ENOSPACE = -6,     /* disk or quota full; nothing was written */
    WAL_EIO = -7,          /* the system refused a read or write */
    WAL_ETORN = -8,        /* strict: the tail cannot be decided */
    WAL_ECORRUPT = -9,     /* acknowledged bytes are damaged */
    WAL_EVERSION = -10,    /* a newer format, or unknown feature bits */
    WAL_ELOCKED = -11,     /* another process holds a lock; its id is named */
    WAL_EPOISONED = -12,   /* a write or sync failed; what it held is unknown;
                          * reads go on, and the next append heals */
    WAL_ENOMEM = -13,      /* out of memory; state as before */
    WAL_EBUSY = -14,       /* the queue is full, or a ticket is pending */
    WAL_EREADONLY = -15,   /* the store was opened, or lies, read-only */
    WAL_ENOTSTORE = -16,   /* the path is not a store */
    WAL_EFORKED = -17,     /* the handle belongs to the parent process */
    WAL_ENOPARENT = -18,   /* the named parent does not exist */
    WAL_EBADJSON = -19,    /* a payload is not valid JSON or UTF-8 */
    WAL_EDAMAGED = -20,    /* the session lost entries; accept that first */
    WAL_ENETWORK = -21,    /* a network file system, not forced */
    WAL_EDEPENDENCY = -22, /* depends on an append that was refused */
    WAL_EHEAD = -23,       /* the head is not where it was expected */
    WAL_ESTALE = -24,      /* document or metadata: another version is there */
    WAL_ECALLBACK = -25,   /* a function of the caller failed */
    WAL_ESCHEMA = -26,   /* the session has a schema the caller cannot write */
    WAL_EREDACTED = -27, /* the entry's content was redacted */
    WAL_ECLAIMED = -28,  /* another handle claims the session; it is named */
    WAL_ELIMIT = -29,    /* there is no room for another claim */
    WAL_ELOCKFILE = -30, /* LOCK was removed or replaced while in use */
    WAL_EOUTSIDE = -31,  /* a path leaves its root, or leads through a link */
    WAL_ECHANGED = -32,  /* a file was changed by somebody else meanwhile */
    WAL_EACCESS = -33,   /* a file may not be read, written or replaced */
    WAL_ENOTFILE = -34   /* a directory or device where a file was named */
};

struct wal_slice {
    const void *data;
    uint64_t size; /* bytes */
};

enum {
    WAL_DIGEST_SIZE = 32 /* bytes of a SHA-256 */
};

/* Where and why a call failed. Owned by the caller; set struct_size first. */
struct wal_error {
    uint32_t struct_size;
    int32_t status;    /* an enum wal_status */
    int32_t sys_errno; /* errno, or 0 */
    int32_t holder;    /* WAL_ELOCKED: the holder's process id, or 0 */
    uint64_t offset;   /* in the file, where that is known */
    char file[512];    /* path, or empty */
    char text[512];    /* a sentence: what, why, what to do */
    char actual[256];  /* what is there instead of what was expected: the tail,
                        * the head's entry, a version, a schema version, the
                        * id that is taken; or empty */
};

/* A constant sentence for a status; never null. Any thread. */
WAL_API const char *wal_status_text(int32_t status);

/* The library's version, "MAJOR.MINOR.PATCH". Any thread. */
WAL_API const char *wal_version(void);

/* ------------------------------------------------------------- store --- */

struct wal_store;
struct wal_session;
struct wal_entry_cursor;
struct wal_session_cursor;
struct wal_ticket;

enum wal_open_flag {
    WAL_OPEN_CREATE = 1u << 0,     /* make the store where there is none */
    WAL_OPEN_EXCLUSIVE = 1u << 1,  /* with CREATE: fail where there is one */
    WAL_OPEN_READ_ONLY = 1u << 2,  /* nothing is written, no lock is kept;
                                    * opened beside writers it follows them,
                                    * opened alone it stays as it is */
    WAL_OPEN_STRICT = 1u << 3,     /* refuse what recovery cannot decide */
    WAL_OPEN_NETWORK_FS = 1u << 4, /* accept a network file system */
    WAL_OPEN_PREAD = 1u << 5,      /* read by pread(2) instead of maps, so
                                    * that a bad sector is WAL_EIO and not a
                                    * signal; slices then hold until the next
                                    * call on the same iterator */
    WAL_OPEN_NOOP = 1u << 6,       /* persistence off: nothing is kept, no
                                    * file is touched (SPEC.md 5.11) */
    WAL_OPEN_MEMORY = 1u << 7      /* an empty store in this process's memory:
                                    * full behaviour, no files, gone when it
                                    * is closed */
};

struct wal_open_options {
    uint32_t struct_size;
    uint32_t flags;           /* enum wal_open_flag */
    uint32_t queue_limit;     /* queued operations; 0: 256 */
    uint32_t lock_timeout_ms; /* until WAL_ELOCKED; 0: 500 */
    uint32_t idle_mark_ms;    /* until the tail is marked; 0: 100 */
    uint32_t group_align;     /* with CREATE: 0, 512 or 4096; aligns groups for
                               * devices without power-safe overwrite */
    uint32_t schema_version;  /* of sessions, that the caller writes; sessions
                               * of another one can be read, and answer
                               * WAL_ESCHEMA to writes. 0: not checked */
    uint32_t reserved;
};

/* What recovery found at the end of the log (SPEC.md, Recovery). */
enum wal_tail {
    WAL_TAIL_CLEAN = 0,
    WAL_TAIL_TORN = 1,      /* an unfinished group was dropped */
    WAL_TAIL_AMBIGUOUS = 2, /* a group that may have been acknowledged was
                             * dropped; it is kept in place */
    WAL_TAIL_DAMAGED = 3    /* acknowledged bytes are damaged */
};

struct wal_store_info {
    uint32_t struct_size;
    int32_t status;          /* WAL_OK, or why appends are refused */
    uint32_t format_version; /* of the store */
    uint32_t tail;           /* enum wal_tail, as found when opening */
    uint8_t uuid[16];
    uint64_t tail_segment;    /* where the tail was torn or damaged, */
    uint64_t tail_offset;     /* from here, */
    uint64_t tail_size;       /* so many bytes, */
    uint64_t tail_sequence;   /* first sequence number not kept, or 0 */
    uint64_t sessions;        /* sessions in the store, deleted ones not */
    uint64_t last_sequence;   /* of the newest record */
    uint64_t segments;        /* live log segments */
    uint64_t log_bytes;       /* below the written end, all segments */
    uint64_t disk_bytes;      /* capacity of all segments */
    uint64_t groups;          /* groups this handle wrote */
    uint64_t syncs;           /* syncs this handle made */
    uint64_t acknowledged;    /* durable appends this handle acknowledged */
    uint64_t queued;          /* operations in this handle's queue */
    uint64_t pack_segments;   /* live segments of the blob stream */
    uint64_t pack_bytes;      /* below its written end, all segments */
    uint64_t pack_disk_bytes; /* capacity of its segments */
    int32_t queue_status;     /* first failure of a queued operation that nobody
                             * was told of; the next queued call, wal_flush or
                             * wal_close tells it */
    uint32_t reserved;
};

/*
 * Opens the store at path, recovering it when no other process has it open
 * (SPEC.md, Recovery). options may be null: open an existing store to read and
 * write. A directory that is not writable opens read-only by itself; so does a
 * store of an older format version, until wal_store_migrate. With
 * WAL_OPEN_NOOP or WAL_OPEN_MEMORY the path is ignored and may be null. On
 * success *store is a handle to close with wal_close. Errors: WAL_ENOTSTORE,
 * WAL_EVERSION, WAL_ECORRUPT, WAL_ETORN, WAL_ELOCKED, WAL_ENETWORK, WAL_EIO,
 * WAL_ENOSPACE (only when creating), WAL_ENOMEM, WAL_EEXISTS.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_open(const char *path, const struct wal_open_options *options,
         struct wal_store **store, struct wal_error *error);

/*
 * Commits what is queued, marks the tail, writes the index beside it unless the
 * store goes with the handle (WAL_OPEN_MEMORY), and frees the handle, also when
 * it fails; the status then says what could not be
 * made durable. Sessions, iterators, lists and tickets of the store must be
 * closed before; no other thread may use the handle. Null is accepted.
 */
WAL_API enum wal_status wal_close(struct wal_store *store,
                                  struct wal_error *error);

/* Waits until everything appended on this handle before the call is durable,
 * whatever its class. Any thread. */
WAL_API WAL_MUST_USE enum wal_status wal_sync(struct wal_store *store,
                                              struct wal_error *error);

/* Fills *info; set info->struct_size first. Any thread; no I/O but stat. */
WAL_API WAL_MUST_USE enum wal_status
wal_store_get_info(struct wal_store *store, struct wal_store_info *info,
                   struct wal_error *error);

/* Waits until every operation queued on this handle before the call has been
 * written: WAL_WRITTEN for all. Answers the first failure of a queued operation
 * that nobody was told of. Any thread. */
WAL_API WAL_MUST_USE enum wal_status wal_flush(struct wal_store *store,
                                               struct wal_error *error);

/*
 * An eventfd for event loops, readable once a submitted operation of this
 * handle has been answered: read it, then ask the tickets with a timeout of 0.
 * Non-blocking, close-on-exec; made by the first call, the same for all, closed
 * with the store. WAL_ENOMEM when there is no descriptor left. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_eventfd(struct wal_store *store,
                                                       int32_t *fd,
                                                       struct wal_error *error);

/*
 * Waits until a record with a higher sequence number than *sequence is in the
 * log, by whatever process: written with WAL_WRITTEN, on stable storage with
 * WAL_DURABLE. Sleeps meanwhile. On success *sequence is that of the newest
 * such record. timeout_ms negative: for ever; WAL_EBUSY when it is over first.
 * Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_store_wait(struct wal_store *store, uint64_t *sequence, uint32_t durability,
               int64_t timeout_ms, struct wal_error *error);

/* What a migration did. */
struct wal_migrate_result {
    uint32_t struct_size;
    uint32_t from; /* version before */
    uint32_t to;   /* version after */
    uint32_t reserved;
    uint64_t sessions; /* that were changed */
};

/*
 * Brings the store at path to this library's format version, which
 * wal_store_info.format_version of a new store tells. No handle on it may be
 * open in this process. Each step is atomic: cut short, the store has its old
 * version, is readable, and refuses writes with WAL_EVERSION; calling again
 * goes on. options as for wal_open, may be null; result may be null, else set
 * its struct_size. Nothing is done, and WAL_OK, for a store of this version.
 * SPEC.md, Versions and migration.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_store_migrate(const char *path, const struct wal_open_options *options,
                  struct wal_migrate_result *result, struct wal_error *error);

/* Lets the store's own documents be written again after some were lost to
 * damage; as wal_session_accept_damage. */
WAL_API WAL_MUST_USE enum wal_status
wal_store_accept_damage(struct wal_store *store, struct wal_error *error);

/* ----------------------------------------------------------- session --- */

struct wal_session_options {
    uint32_t struct_size;
    uint32_t schema_version;  /* the caller's; 0: 1 */
    struct wal_slice id;      /* 1 to 255 bytes; empty: a UUIDv7 is made */
    struct wal_slice cwd;     /* 4,096 bytes at most, as all below */
    struct wal_slice project; /* project id */
    struct wal_slice title;
    struct wal_slice parent_id; /* session this one came from; informative */
    struct wal_slice metadata;  /* a JSON object of 1 MiB at most, or empty */
    struct wal_slice source;    /* opaque to the engine: where it was imported
                                 * from; 4,096 bytes at most */
    int64_t created_ms;         /* Unix time in milliseconds; 0: now */
};

struct wal_session_info {
    uint32_t struct_size;
    uint32_t schema_version;
    uint32_t number; /* of the session in this store */
    uint32_t flags;  /* WAL_SESSION_... */
    struct wal_slice id;
    struct wal_slice cwd;
    struct wal_slice project;
    struct wal_slice title;
    struct wal_slice parent_id;
    struct wal_slice head; /* entry id of the head `main`, or empty */
    struct wal_slice source;
    struct wal_slice metadata;
    struct wal_slice first_text; /* the beginning of the first user message on
                                  * the way to its entries, 160 bytes at most */
    int64_t created_ms;          /* Unix time in milliseconds */
    int64_t updated_ms;          /* of the last record */
    uint64_t entries;            /* own of the conversation, and inherited */
    uint64_t inherited;          /* on the branch up to the fork point, in the
                                * fork point's stream */
    uint64_t bytes;              /* of its own records in the log */
    uint64_t last_sequence;      /* of its newest record; orders the list */
    uint64_t metadata_version;   /* of metadata and the texts above; 0 from
                                * wal_session_cursor_next */
    uint64_t documents;          /* its own document records, all versions */
};

enum wal_session_flag {
    WAL_SESSION_FORK = 1u << 0,    /* made by wal_session_fork */
    WAL_SESSION_DAMAGED = 1u << 1, /* lost entries; refuses appends */
    WAL_SESSION_DELETED = 1u << 2  /* in a lineage only */
};

/*
 * Creates a session, durably. Errors: WAL_EEXISTS when the id is taken,
 * WAL_EINVAL for an id that is empty text, too long or not UTF-8,
 * WAL_EBADJSON for metadata, and those of wal_append. *session is a handle to
 * close with wal_session_close. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_create(struct wal_store *store,
                   const struct wal_session_options *options,
                   struct wal_session **session, struct wal_error *error);

/* Opens an existing session by its id. WAL_ENOTFOUND when there is none. The
 * handle of a session that is deleted later answers WAL_ENOTFOUND. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_open(struct wal_store *store, struct wal_slice id,
                 struct wal_session **session, struct wal_error *error);

/* Frees the handle; the session stays. Null is accepted. */
WAL_API void wal_session_close(struct wal_session *session);

/* Fills *info; set info->struct_size first. Slices hold until the next
 * wal_session_get_info on this handle or its close. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_get_info(struct wal_session *session, struct wal_session_info *info,
                     struct wal_error *error);

/* Opens the newest session of the directory (empty: of all). WAL_ENOTFOUND
 * when there is none. Any thread. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_open_latest(struct wal_store *store, struct wal_slice cwd,
                        struct wal_session **session, struct wal_error *error);

/* Which session is resumed; 0 is none of them. */
enum wal_resume_target {
    WAL_RESUME_ID = 1,    /* the one with options->id */
    WAL_RESUME_LATEST = 2 /* the newest of options->cwd */
};

/* How it goes on; 0 is none of them: there is no default. */
enum wal_resume_mode {
    WAL_RESUME_IN_PLACE = 1, /* in the session itself */
    WAL_RESUME_FORK = 2      /* in a fork of it */
};

struct wal_resume_options {
    uint32_t struct_size;
    uint32_t from; /* enum wal_resume_target */
    uint32_t mode; /* enum wal_resume_mode */
    uint32_t reserved;
    struct wal_slice id;  /* WAL_RESUME_ID */
    struct wal_slice cwd; /* WAL_RESUME_LATEST; empty: any */
    struct wal_slice at;  /* entry to resume at, inclusive; empty: the head.
                           * In place the head `main` is moved there, and the
                           * entries behind it stay (wal_head_move) */
    const struct wal_session_options *fork; /* for the fork, or null */
};

/*
 * Opens a session to go on with it. *session is a handle on the session, or on
 * its fork; read its branch for the entries, wal_session_get_info for metadata.
 * Errors: WAL_ENOTFOUND for the session or `at`; WAL_EINVAL without a choice
 * of from and how; those of wal_session_fork and wal_head_move. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_resume(struct wal_store *store,
                   const struct wal_resume_options *options,
                   struct wal_session **session, struct wal_error *error);

/* Which fields of a session a change sets. */
enum wal_change_field {
    WAL_CHANGE_METADATA = 1u << 0,
    WAL_CHANGE_TITLE = 1u << 1,
    WAL_CHANGE_CWD = 1u << 2,
    WAL_CHANGE_PROJECT = 1u << 3,
    WAL_CHANGE_SCHEMA = 1u << 4,
    WAL_CHANGE_EXPECT = 1u << 5 /* only if metadata_version is still that */
};

/* A change of what a session says about itself. */
struct wal_session_change {
    uint32_t struct_size;
    uint32_t fields; /* enum wal_change_field */
    uint32_t schema_version;
    uint32_t reserved;
    struct wal_slice metadata; /* a JSON object, or empty */
    struct wal_slice title;
    struct wal_slice cwd;
    struct wal_slice project;
    uint64_t expected_version; /* WAL_CHANGE_EXPECT: metadata_version */
};

/*
 * What wal_session_update and wal_session_migrate call: *now is the session as
 * it is, *change comes zeroed but for its struct_size. Slices put into *change
 * must hold until the function is called again or the outer call returns.
 * Answers 0, or any other number for "no": the outer call then fails with
 * WAL_ECALLBACK and that number in error->sys_errno. It may call this library.
 */
typedef int32_t wal_update_fn(void *ctx, const struct wal_session_info *now,
                              struct wal_session_change *change);

/*
 * Changes a session's metadata by a function of what it is: reads, calls fn
 * outside all locks in the calling thread, writes if nobody else did since,
 * and begins again otherwise; that is its own WAL_CHANGE_EXPECT, and takes the
 * place of one that fn sets. Durable. Errors, with nothing changed:
 * WAL_ECALLBACK, WAL_EBADJSON, WAL_ESTALE after 1,000 rounds, and those of
 * wal_append. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_update(struct wal_session *session, wal_update_fn *fn, void *ctx,
                   struct wal_error *error);

/*
 * Brings a session to the schema version `to`, one version at a time: fn is
 * called with now->schema_version being the version before, and each step is
 * one atomic durable record. A null fn knows the steps up to version 1.
 * result may be null, else set its struct_size. Errors: WAL_ESCHEMA when the
 * session is newer than `to` or a null fn does not know the step; those of
 * wal_session_update. What was done before a failure stays. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_migrate(struct wal_session *session, uint32_t to, wal_update_fn *fn,
                    void *ctx, struct wal_migrate_result *result,
                    struct wal_error *error);

/*
 * Deletes a session, durably: it is listed and opened no more, its id is free.
 * Forks of it keep what they share. The handle must still be closed. Errors:
 * WAL_ENOTFOUND when it is deleted already, and those of wal_append.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_delete(struct wal_session *session, struct wal_error *error);

/*
 * Creates a session that shares everything up to and including the entry `at`
 * (empty: the head `main`) with `session`, durably, in O(1) time and bytes
 * whatever the session's length. options may be null; its empty fields are
 * taken from the source but for `source`; its id is made as in
 * wal_session_create, parent_id and creation time are set.
 * The head `main` of the fork point's stream starts there, other heads are not
 * taken over; documents are seen as they are now, and from then on each has
 * its own. Errors: WAL_ENOTFOUND for
 * `at`, and those of wal_session_create. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_fork(struct wal_session *session, struct wal_slice at,
                 const struct wal_session_options *options,
                 struct wal_session **fork, struct wal_error *error);

/* Lets a session that lost entries to damage take appends again. The loss
 * stays reported by walcheck. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_accept_damage(struct wal_session *session, struct wal_error *error);

/*
 * Claims the session for this handle, so that others are told who works in it:
 * a claim is advice, appends of others are not refused. It ends with
 * wal_session_unclaim, with the handle, or with the process. Claiming again is
 * WAL_OK. WAL_ECLAIMED: another handle has it, error->holder is its process.
 * Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_claim(struct wal_session *session, struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_session_unclaim(struct wal_session *session, struct wal_error *error);

/* -------------------------------------------------------------- list --- */

enum wal_session_cursor_flag {
    WAL_SESSION_CURSOR_LINEAGE =
        1u << 0 /* the ancestors of the session `of`, nearest
                                * first, deleted ones too; no filters */
};

struct wal_session_cursor_options {
    uint32_t struct_size;
    uint32_t flags;           /* enum wal_session_cursor_flag */
    struct wal_slice cwd;     /* only sessions of this directory, or empty */
    struct wal_slice project; /* only sessions of this project, or empty */
    struct wal_slice prefix;  /* only ids that begin so, or empty */
    struct wal_slice source;  /* only this import source, or empty */
    struct wal_slice parent;  /* only children of this session, or empty */
    /* with WAL_SESSION_CURSOR_LINEAGE: a session's id */
    struct wal_slice lineage_of;
    /* go on behind a page: what wal_session_cursor_encode gave, with the same
     * filters; or empty */
    struct wal_slice after;
};

/* Lists sessions, newest first as of the call, each as it is when it is given;
 * touches no entry. options may be null. Close with wal_session_cursor_close.
 * WAL_ENOTFOUND for `of`, WAL_EINVAL for an `after` that is no cursor. */
WAL_API WAL_MUST_USE enum wal_status wal_session_cursor_open(
    struct wal_store *store, const struct wal_session_cursor_options *options,
    struct wal_session_cursor **list, struct wal_error *error);

/* The next session, or WAL_END. Set info->struct_size first; metadata is left
 * empty. Slices hold until the next call on the list. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_cursor_next(struct wal_session_cursor *list,
                        struct wal_session_info *info, struct wal_error *error);
WAL_API void wal_session_cursor_close(struct wal_session_cursor *list);

enum {
    WAL_CURSOR_TEXT_SIZE = 64
};

/* A text, terminated by NUL, that stands for the place behind the session
 * given last; it holds in any process and at any time. A session that got a
 * record since is nearer to the front than its page and not seen again. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_cursor_encode(struct wal_session_cursor *list,
                          char cursor[WAL_CURSOR_TEXT_SIZE],
                          struct wal_error *error);

/* ------------------------------------------------------------ append --- */

/* When an append is acknowledged. */
enum wal_durability {
    WAL_DURABLE = 0, /* on stable storage: survives a power cut */
    WAL_WRITTEN = 1, /* in the system's cache: survives a killed process */
    WAL_QUEUED = 2   /* in this process's bounded queue */
};

/* Entry types with a code of their own. Any other text is a type too. */
enum wal_entry_type {
    WAL_TYPE_MESSAGE = 1,
    WAL_TYPE_SESSION_HEADER = 2,
    WAL_TYPE_MESSAGE_DELTA_BATCH = 3, /* left out of reading unless asked for */
    WAL_TYPE_MODEL_CHANGE = 4,
    WAL_TYPE_THINKING_LEVEL_CHANGE = 5,
    WAL_TYPE_RUNTIME_INIT = 6,
    WAL_TYPE_SYSTEM_PROMPT_OVERRIDE = 7,
    WAL_TYPE_COMPACTION_SUMMARY = 8, /* payload: firstKeptEntryId */
    WAL_TYPE_BRANCH_SUMMARY = 9,     /* payload: sourceSessionId and
                                      * sourceEntryId */
    WAL_TYPE_REDACTION = 10,         /* payload: targetEntryId, reason */
    WAL_TYPE_CUSTOM = 11,
    WAL_TYPE_COMPACTION = 12
};

/* The name of a type, as in wal_entry.type; null for other codes. */
WAL_API const char *wal_entry_type_name(uint32_t type);

enum wal_entry_flag {
    WAL_ENTRY_ROOT = 1u << 0, /* in: no parent. out: has none */
    WAL_ENTRY_LINE = 1u << 1, /* payload is a line as it came in, any bytes;
                               * id, parent, type, time were read out of it */
    WAL_ENTRY_HEAD_KEEP = 1u << 2,  /* in: never moves the head */
    WAL_ENTRY_HEAD_MOVE = 1u << 3,  /* in: moves the head whatever it was */
    WAL_ENTRY_REDACTED = 1u << 4,   /* out: meta is empty, payload is
                                    * {"redactedBy":ID,"reason":TEXT}; with
                                    * WAL_ENTRY_LINE it was a line */
    WAL_ENTRY_OUT_OF_LINE = 1u << 5 /* out: the payload was left empty; read
                                     * the blob payload_digest */
};

/* An entry of a session: what wal_append takes and readers give. */
struct wal_entry {
    uint32_t struct_size;
    uint32_t flags;  /* enum wal_entry_flag */
    uint32_t stream; /* 0 conversation, 1 transcript; up to 255 */
    uint32_t reserved;
    struct wal_slice id;        /* 1 to 255 bytes; empty in: one is made */
    struct wal_slice parent_id; /* empty in: under the head */
    struct wal_slice type;      /* 1 to 255 bytes, e.g. "message" */
    struct wal_slice timestamp; /* text of at most 64 bytes; empty: now */
    struct wal_slice run_id;    /* 255 bytes at most, or empty */
    struct wal_slice payload;   /* JSON of 1 GiB at most; WAL_ENTRY_LINE: any
                                 * bytes, 32 GiB at most. Above 256 KiB it is
                                 * kept as a blob, and comes back here unless
                                 * WAL_ENTRY_CURSOR_OUT_OF_LINE leaves it there
                                 * */
    struct wal_slice meta;      /* a JSON object, or empty */
    uint64_t sequence;          /* out: number in the store's log */
    uint64_t depth;             /* out: entries above it on its branch */
    uint64_t payload_size;      /* out: bytes, also of one left out of line */
    uint8_t payload_digest[WAL_DIGEST_SIZE]; /* out: WAL_ENTRY_OUT_OF_LINE */
};

struct wal_append_options {
    uint32_t struct_size;
    uint32_t durability; /* enum wal_durability */
    uint32_t flags;      /* enum wal_append_flag */
    uint32_t reserved;
    struct wal_slice expected_tail; /* with WAL_APPEND_EXPECT: entry id of the
                                     * head `main`; empty: an empty stream */
};

enum wal_append_flag {
    WAL_APPEND_EXPECT = 1u << 0, /* refuse when the tail is another */
    WAL_APPEND_NO_WAIT = 1u << 1 /* queued: WAL_EBUSY when the queue is full */
};

/* What an append did. The library fills it; ids are terminated by NUL. For
 * WAL_QUEUED only last_id is known: its ticket tells the rest. */
struct wal_append_result {
    uint32_t struct_size;
    uint32_t appended;   /* entries written */
    uint32_t duplicates; /* entries that were there with the same content */
    uint32_t reserved;
    uint64_t sequence;     /* of the last entry written, or 0 */
    char last_id[256];     /* of the last entry given */
    char actual_tail[256]; /* WAL_ECONFLICT: the tail as it is */
};

/*
 * Appends entries as one atomic batch and waits for the durability asked for
 * (options null: WAL_DURABLE). All entries are in one session and appear in
 * the order given; a parent may be an entry of the same batch. An id that is
 * there with the same content is skipped and counted, before any tail is
 * checked, so that a batch may be sent again. Without a parent an entry goes
 * under the head of its stream, and the head moves to it; with a parent that
 * is not the head, the head stays.
 *
 * A native compaction_summary must name a firstKeptEntryId on its way to the
 * root, a branch_summary an entry of a session, a redaction an entry that this
 * session sees; else WAL_EINVAL (no such member) or WAL_ENOTFOUND. A redaction
 * hides the content of its target from every reader of every session.
 *
 * result may be null; else set result->struct_size. Any thread.
 * Errors, with nothing written: WAL_ECONFLICT (result->actual_tail),
 * WAL_EEXISTS, WAL_ENOPARENT, WAL_EBADJSON, WAL_ETOOBIG, WAL_EINVAL,
 * WAL_EREADONLY, WAL_EDAMAGED, WAL_ESCHEMA, WAL_ENOTFOUND, WAL_ENOSPACE,
 * WAL_EBUSY, WAL_ELOCKED, WAL_ENOMEM. WAL_EPOISONED and WAL_EIO: unknown; ask
 * again by id. SPEC.md, Batches.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_append(struct wal_session *session, const struct wal_entry *entries,
           uint32_t count, const struct wal_append_options *options,
           struct wal_append_result *result, struct wal_error *error);

/*
 * The same without waiting: *ticket tells when the durability asked for is
 * reached. The entries are copied. A WAL_QUEUED submission blocks while the
 * queue is full, or answers WAL_EBUSY with WAL_APPEND_NO_WAIT.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_submit(struct wal_session *session, const struct wal_entry *entries,
           uint32_t count, const struct wal_append_options *options,
           struct wal_ticket **ticket, struct wal_error *error);

/* Waits at most timeout_ms (negative: for ever) and answers what wal_append
 * would have, or WAL_EBUSY when it is still pending. May be asked again. */
WAL_API WAL_MUST_USE enum wal_status
wal_ticket_wait(struct wal_ticket *ticket, int64_t timeout_ms,
                struct wal_append_result *result, struct wal_error *error);

/* Frees a ticket, pending or not; its append goes on. Null is accepted. */
WAL_API void wal_ticket_destroy(struct wal_ticket *ticket);

/* ------------------------------------------------------------- heads --- */

struct wal_head_cursor;

enum wal_head_flag {
    WAL_HEAD_EXPECT = 1u << 0 /* in: refuse unless the head is at `expected` */
};

/* A named head of a stream: a pointer to an entry. `main` is the one that
 * appends go under; it is there in every stream. */
struct wal_head {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_head_flag */
    uint32_t stream;
    uint32_t reserved;
    struct wal_slice name;     /* 1 to 255 bytes; empty in: "main" */
    struct wal_slice entry_id; /* empty: the head is removed; `main` then is
                                * before the first entry */
    struct wal_slice note;     /* 4,096 bytes at most; why, or where inside a
                                * message; empty out for a head that an append
                                * moved */
    struct wal_slice expected; /* WAL_HEAD_EXPECT: entry id; empty: no head */
    uint64_t version;          /* out: sequence number of what moved it */
};

/*
 * Moves, makes or removes a head, durably. Nothing is lost: the entries stay,
 * and moving back undoes it. A head that is there already, with this note if
 * one is given, is left as it is, whatever was expected. previous, if not null,
 * takes the entry id that the head had, terminated by NUL. Errors, with nothing
 * changed: WAL_EHEAD (the present entry id in error->actual), WAL_ENOTFOUND for
 * the entry, WAL_ETOOBIG beyond 4,096 heads, and those of wal_append. Any
 * thread.
 */
WAL_API WAL_MUST_USE enum wal_status wal_head_move(struct wal_session *session,
                                                   const struct wal_head *head,
                                                   char previous[256],
                                                   struct wal_error *error);

/* The entry id of a head, terminated by NUL; name empty: "main".
 * WAL_ENOTFOUND when there is none, or `main` has no entry. Any thread. */
WAL_API WAL_MUST_USE enum wal_status wal_head_get(struct wal_session *session,
                                                  uint32_t stream,
                                                  struct wal_slice name,
                                                  char entry_id[256],
                                                  struct wal_error *error);

/* Lists the heads that point to an entry, `main` first, then by stream and
 * name. Slices of wal_head_cursor_next (set head->struct_size) hold until
 * wal_head_cursor_close. One thread at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_head_cursor_open(struct wal_session *session,
                     struct wal_head_cursor **heads, struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_head_cursor_next(struct wal_head_cursor *heads, struct wal_head *head,
                     struct wal_error *error);
WAL_API void wal_head_cursor_close(struct wal_head_cursor *heads);

/* --------------------------------------------------------- documents --- */

struct wal_doc_cursor;

enum wal_doc_flag {
    WAL_DOC_EXPECT = 1u << 0, /* in: refuse unless the newest version is
                               * `version`; 0: there is no document */
    WAL_DOC_DELETE = 1u << 1, /* in a batch: delete it. out: deleted here */
    WAL_DOC_STORE = 1u << 2   /* in a batch: the store's, not the session's */
};

/* JSON under a key of a session or of the store. */
struct wal_doc {
    uint32_t struct_size;
    uint32_t flags;         /* enum wal_doc_flag */
    struct wal_slice key;   /* 1 to 1,024 bytes */
    struct wal_slice value; /* JSON of 16 MiB at most */
    uint64_t version;       /* rises with every change of any document */
    int64_t modified_ms;    /* out: Unix time in milliseconds */
};

/*
 * Puts a document, or deletes it, durably; session null: of the store. The
 * versions before stay readable. A put of the value that is there already
 * writes nothing and succeeds, whatever was expected: so it may be sent again.
 * Who takes turns by it puts a value of their own.
 * *version, if not null, takes the newest one. Errors, with nothing changed:
 * WAL_ESTALE (the present version in error->actual), WAL_ENOTFOUND when there
 * is nothing to delete, WAL_EBADJSON, and those of wal_append. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status wal_doc_put(struct wal_store *store,
                                                 struct wal_session *session,
                                                 const struct wal_doc *doc,
                                                 uint64_t *version,
                                                 struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status wal_doc_delete(struct wal_store *store,
                                                    struct wal_session *session,
                                                    const struct wal_doc *doc,
                                                    uint64_t *version,
                                                    struct wal_error *error);

enum wal_doc_cursor_flag {
    WAL_DOC_CURSOR_KEYS = 1u << 0, /* values are left empty */
    WAL_DOC_CURSOR_HISTORY = 1u
                             << 1 /* every version, newest first within a key,
                                * deletions too */
};

struct wal_doc_cursor_options {
    uint32_t struct_size;
    uint32_t flags;          /* enum wal_doc_cursor_flag */
    struct wal_slice prefix; /* of keys, or empty */
};

/*
 * Reads documents of a session, or with session null of the store, in the order
 * of their keys' bytes, as they were at the call. options may be null. Slices
 * of wal_doc_cursor_next and wal_doc_cursor_get hold until the next call on the
 * same reader or its close. One thread at a time.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_doc_cursor_open(struct wal_store *store, struct wal_session *session,
                    const struct wal_doc_cursor_options *options,
                    struct wal_doc_cursor **docs, struct wal_error *error);

/* The next document, or WAL_END. Set doc->struct_size first. */
WAL_API WAL_MUST_USE enum wal_status
wal_doc_cursor_next(struct wal_doc_cursor *docs, struct wal_doc *doc,
                    struct wal_error *error);

/* One document as it is now, whatever the prefix; with a version, as that
 * version left it. WAL_ENOTFOUND when there is none, or it was deleted. */
WAL_API WAL_MUST_USE enum wal_status
wal_doc_cursor_get(struct wal_doc_cursor *docs, struct wal_slice key,
                   uint64_t version, struct wal_doc *doc,
                   struct wal_error *error);
WAL_API void wal_doc_cursor_close(struct wal_doc_cursor *docs);

/* ------------------------------------------------------------- batch --- */

/* What one atomic batch may hold; each part may be empty, not all of them. */
struct wal_batch {
    uint32_t struct_size;
    uint32_t entry_count;
    uint32_t document_count;
    uint32_t head_count;
    const struct wal_entry *entries;
    const struct wal_doc *documents;         /* each key once */
    const struct wal_head *heads;            /* may name entries of the batch;
                                              * each head once */
    const struct wal_session_change *change; /* or null */
};

/*
 * Appends entries, puts documents, moves heads and changes metadata, all or
 * nothing, in this order. Conditions are all checked before anything is
 * written. What is there already, be it an entry, a document's value, a head's
 * place or a field of the session, is not written again. A change without
 * WAL_CHANGE_EXPECT is applied to what is there. Else as wal_append and
 * wal_submit, of which this is the whole.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_batch_commit(struct wal_session *session, const struct wal_batch *batch,
                 const struct wal_append_options *options,
                 struct wal_append_result *result, struct wal_error *error);

/* A change in a submitted batch must have WAL_CHANGE_EXPECT. */
WAL_API WAL_MUST_USE enum wal_status
wal_batch_submit(struct wal_session *session, const struct wal_batch *batch,
                 const struct wal_append_options *options,
                 struct wal_ticket **ticket, struct wal_error *error);

/* Hides the content of an entry that this session sees from every reader, by
 * a durable entry of type `redaction` under the head. The bytes stay in the
 * log. reason: 4,096 bytes at most, or empty. result as in wal_append. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_redact(struct wal_session *session, struct wal_slice entry_id,
                   struct wal_slice reason, struct wal_append_result *result,
                   struct wal_error *error);

struct wal_compact_options {
    uint32_t struct_size;
    uint32_t reserved;
    struct wal_slice first_kept; /* entry on the branch of the head */
    struct wal_slice summary;    /* text of what is before it; 4 MiB at most */
    const struct wal_session_options *into; /* a new session, or null */
};

/*
 * Records that the entries before first_kept are told by a summary: a durable
 * entry of type `compaction_summary` under the head, in the session itself or
 * with options->into in a fork of it, made in the same batch. Reading with
 * WAL_ENTRY_CURSOR_SINCE_COMPACTION begins at first_kept. Nothing is destroyed.
 * *fork is set with options->into only. Errors as wal_append and
 * wal_session_fork; WAL_ENOTFOUND for first_kept.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_compact(struct wal_session *session,
                    const struct wal_compact_options *options,
                    struct wal_session **fork, struct wal_append_result *result,
                    struct wal_error *error);

/* ------------------------------------------------------------- blobs --- */

struct wal_blob;
struct wal_blob_writer;

/* Keeps content under its SHA-256, once in the whole store, durably; digest
 * takes it. Content that is there already costs nothing. Errors: WAL_ENOSPACE
 * and those of wal_append. Any thread. SPEC.md, Blobs. */
WAL_API WAL_MUST_USE enum wal_status
wal_blob_put(struct wal_store *store, struct wal_slice content,
             uint8_t digest[WAL_DIGEST_SIZE], struct wal_error *error);

/* The same for content that comes in pieces; memory is bounded by a few MiB
 * whatever its size. finish makes it durable and tells digest and size (each
 * may be null); discard frees the writer, finished or not; null is accepted.
 * One thread at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_blob_create(struct wal_store *store, struct wal_blob_writer **writer,
                struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_blob_write(struct wal_blob_writer *writer, struct wal_slice piece,
               struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_blob_finish(struct wal_blob_writer *writer, uint8_t digest[WAL_DIGEST_SIZE],
                uint64_t *size, struct wal_error *error);
WAL_API void wal_blob_discard(struct wal_blob_writer *writer);

/*
 * Opens content by its digest. WAL_ENOTFOUND when the store has none of it.
 * wal_blob_read gives `size` bytes from `offset` on, fewer at the end alone;
 * each piece of 1 MiB that it touches is verified against its own digest, and
 * a reading from the first byte to the last against that of the whole.
 * WAL_ECORRUPT: it is damaged; nothing of it was given. One thread at a time.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_blob_open(struct wal_store *store, const uint8_t digest[WAL_DIGEST_SIZE],
              struct wal_blob **blob, struct wal_error *error);
WAL_API uint64_t wal_blob_size(const struct wal_blob *blob);
WAL_API WAL_MUST_USE enum wal_status wal_blob_read(struct wal_blob *blob,
                                                   uint64_t offset, void *data,
                                                   uint64_t size, uint64_t *got,
                                                   struct wal_error *error);
WAL_API void wal_blob_close(struct wal_blob *blob);

/* ------------------------------------------------------- checkpoints --- */

struct wal_file_cursor;
struct wal_checkpoint_cursor;
struct wal_file_change_cursor;

struct wal_checkpoint_options {
    uint32_t struct_size;
    uint32_t threads;      /* that read, digest and compress; 0: as many as
                            * processors, 8 at most */
    struct wal_slice id;   /* 1 to 255 bytes; empty: a UUIDv7 is made */
    struct wal_slice root; /* an absolute path; empty: the session's cwd */
    int64_t created_ms;    /* Unix time in milliseconds; 0: now */
};

/* What a checkpoint is, and what making it cost. The library fills it. */
struct wal_checkpoint_info {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_checkpoint_flag */
    struct wal_slice id;
    struct wal_slice root;
    int64_t created_ms; /* Unix time in milliseconds */
    uint64_t files;     /* that it names, absent ones too */
    uint64_t bytes;     /* of their contents */
    uint64_t new_blobs; /* contents that the store did not have before */
    uint64_t new_bytes; /* that it takes in the blob stream */
    uint64_t version;   /* rises with every change of any checkpoint */
};

enum wal_checkpoint_flag {
    WAL_CHECKPOINT_OFF = 1u << 0 /* checkpoints are off in this session:
                                  * nothing was done */
};

/*
 * Records the state of the named files, durably: content, permission bits,
 * symbolic links as links, and that a file is not there. Paths are below the
 * root, or absolute and below it; each counts once. Only these files are
 * looked at; one whose size, times and inode are as they were at the session's
 * last checkpoints is not read again. Where the session has a checkpoint of
 * this id the files are added to it, and a path's first state stands; its root
 * must be the same (WAL_EEXISTS). count may be 0. *checkpoint, if not null,
 * takes a reader of it, as from wal_file_cursor_open; of a session with
 * checkpoints off a reader with nothing in it.
 *
 * Errors, with no checkpoint made: WAL_EACCESS, WAL_ENOTFILE, WAL_EOUTSIDE,
 * WAL_EIO and WAL_ECHANGED (it changed each time it was read), all with the
 * path in error->file; WAL_EINVAL without a root; those of wal_doc_put. Any
 * thread. SPEC.md, Checkpoints.
 */
WAL_API WAL_MUST_USE enum wal_status wal_checkpoint_create(
    struct wal_session *session, const struct wal_slice *paths, uint64_t count,
    const struct wal_checkpoint_options *options,
    struct wal_file_cursor **checkpoint, struct wal_error *error);

/* Switches checkpoints off or on for a session, durably. While they are off
 * creating one does nothing and rewinding answers that it cannot. They are on
 * in a new session; a fork begins as its source is. Any thread. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_set_checkpointing(struct wal_session *session, int32_t on,
                              struct wal_error *error);

enum wal_file_kind {
    WAL_FILE_ABSENT = 0,
    WAL_FILE_REGULAR = 1,
    WAL_FILE_SYMLINK = 2
};

/* A file as a checkpoint holds it. */
struct wal_file {
    uint32_t struct_size;
    uint32_t kind; /* enum wal_file_kind */
    uint32_t mode; /* permission bits */
    uint32_t reserved;
    struct wal_slice path; /* below the root */
    uint64_t size;         /* of the content; a link's is its target */
    int64_t mtime_ns;      /* Unix time in nanoseconds, when it was recorded */
    uint8_t digest[WAL_DIGEST_SIZE]; /* of the content; zeros when absent */
};

/*
 * As wal_checkpoint_create, but of files as they are told, not as they are on
 * disk, which is not looked at. Of each wal_file kind, mode (0 of a regular
 * file: 0644), path, mtime_ns and digest are read; its content was put before
 * (wal_blob_put, wal_blob_create), and of a link it is the target. A path that
 * is told twice must be told the same. What the checkpoint cost is then its
 * list alone.
 *
 * Errors, with no checkpoint made and the path in error->file: WAL_ENOTFOUND,
 * the store does not have the content; WAL_EOUTSIDE; WAL_ENOTFILE; WAL_EINVAL.
 * Else as wal_checkpoint_create. Any thread.
 */
WAL_API WAL_MUST_USE enum wal_status wal_checkpoint_import(
    struct wal_session *session, const struct wal_file *files, uint64_t count,
    const struct wal_checkpoint_options *options,
    struct wal_file_cursor **checkpoint, struct wal_error *error);

/* Reads a checkpoint that the session has, own or shared by a fork: its files
 * in the order of their paths' bytes. WAL_ENOTFOUND. Slices hold until
 * wal_file_cursor_close. One thread at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_file_cursor_open(struct wal_session *session, struct wal_slice id,
                     struct wal_file_cursor **checkpoint,
                     struct wal_error *error);
/* Set info->struct_size, file->struct_size first. WAL_END behind the last. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_get_info(const struct wal_file_cursor *checkpoint,
                        struct wal_checkpoint_info *info,
                        struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_file_cursor_next(struct wal_file_cursor *checkpoint, struct wal_file *file,
                     struct wal_error *error);
WAL_API void wal_file_cursor_close(struct wal_file_cursor *checkpoint);

/* Lists the checkpoints of a session, oldest first. Slices hold until
 * wal_checkpoint_cursor_close. One thread at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_cursor_open(struct wal_session *session,
                           struct wal_checkpoint_cursor **checkpoints,
                           struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_cursor_next(struct wal_checkpoint_cursor *checkpoints,
                           struct wal_checkpoint_info *info,
                           struct wal_error *error);
WAL_API void
wal_checkpoint_cursor_close(struct wal_checkpoint_cursor *checkpoints);

/* Removes a checkpoint, durably; its contents stay in the store. Forks that
 * share it keep it. WAL_ENOTFOUND. Any thread. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_delete(struct wal_session *session, struct wal_slice id,
                      struct wal_error *error);

/* A difference between two states of a file. */
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

enum wal_file_change_flag {
    WAL_FILE_CHANGE_BINARY = 1u << 0,   /* no lines are counted */
    WAL_FILE_CHANGE_CONTENT = 1u << 1,  /* content differs */
    WAL_FILE_CHANGE_MODE = 1u << 2,     /* permission bits differ */
    WAL_FILE_CHANGE_ELSEWHERE = 1u << 3 /* changed by somebody else since the
                                    * checkpoint that was expected */
};

/* Sums of a list of changes. */
struct wal_file_changes_info {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t files;
    uint64_t insertions;
    uint64_t deletions;
    uint64_t binary;
};

/* What differs from checkpoint `before` to checkpoint `after`, over the files
 * that both name, in the order of paths. after empty: the files as they are on
 * disk. WAL_ENOTFOUND, WAL_ECORRUPT. Slices hold until the close. */
WAL_API WAL_MUST_USE enum wal_status
wal_checkpoint_diff(struct wal_session *session, struct wal_slice before,
                    struct wal_slice after,
                    struct wal_file_change_cursor **changes,
                    struct wal_error *error);
/* A session's changes of files: each path's first state in its checkpoints
 * against its last one there. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_diff(struct wal_session *session,
                 struct wal_file_change_cursor **changes,
                 struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_file_changes_get_info(const struct wal_file_change_cursor *changes,
                          struct wal_file_changes_info *info,
                          struct wal_error *error);
WAL_API WAL_MUST_USE enum wal_status
wal_file_change_cursor_next(struct wal_file_change_cursor *changes,
                            struct wal_file_change *change,
                            struct wal_error *error);
WAL_API void
wal_file_change_cursor_close(struct wal_file_change_cursor *changes);

/* ------------------------------------------------------------ rewind --- */

struct wal_rewind_answer;

enum wal_rewind_flag {
    WAL_REWIND_DRY_RUN = 1u << 0, /* change nothing, report the same */
    WAL_REWIND_FORCE = 1u << 1    /* also over what somebody else changed */
};

struct wal_rewind_options {
    uint32_t struct_size;
    uint32_t flags;            /* enum wal_rewind_flag */
    struct wal_slice root;     /* an absolute path; empty: the checkpoint's */
    struct wal_slice expected; /* checkpoint that holds what the caller last
                              * wrote: where files differ from it, nothing is
                              * touched without WAL_REWIND_FORCE; or empty */
};

struct wal_rewind_info {
    uint32_t struct_size;
    int32_t can_rewind; /* 1, or 0: nothing was touched */
    int32_t status;     /* WAL_OK, or why not: see below */
    uint32_t reserved;
    struct wal_slice error; /* a sentence, or empty */
    struct wal_slice undo;  /* checkpoint that undoes it; empty: nothing
                                   * changed, or a dry run */
    uint64_t files_changed;
    uint64_t insertions;
    uint64_t deletions;
    uint64_t binary; /* files without lines among those changed */
    uint64_t changed_elsewhere;
};

/*
 * Brings the files that a checkpoint names back to its state, all or none:
 * content, permission bits, links; those that were absent are removed. Every
 * content is read and verified, and the present state put into a checkpoint
 * of its own, before the first file is touched. Where the process or the
 * machine dies in the middle, the next wal_rewind or wal_checkpoint_create on
 * the session finishes it, or undoes it.
 *
 * Answers WAL_OK whenever there is an answer, which *rewind holds: can_rewind,
 * or in status why not: WAL_ENOTFOUND (no such checkpoint, or checkpoints are
 * off), WAL_ECORRUPT (content is damaged or missing; error names the file and
 * its digest), WAL_ECHANGED (files differ from options->expected; listed with
 * WAL_FILE_CHANGE_ELSEWHERE), WAL_EOUTSIDE, WAL_EACCESS, WAL_ENOTFILE,
 * WAL_ETOOBIG (its directory's path leaves no room for a temporary file's),
 * WAL_ENOSPACE or WAL_EIO with the file in the sentence. Where files were left
 * in both states, which the next call finishes, it fails instead. Any thread.
 * SPEC.md, Rewind.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_rewind(struct wal_session *session, struct wal_slice checkpoint,
           const struct wal_rewind_options *options,
           struct wal_rewind_answer **rewind, struct wal_error *error);
/* Slices hold until wal_rewind_close. One thread at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_rewind_get_info(const struct wal_rewind_answer *rewind,
                    struct wal_rewind_info *info, struct wal_error *error);
/* The files changed, or that would be; then those changed elsewhere; WAL_END.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_rewind_next(struct wal_rewind_answer *rewind,
                struct wal_file_change *change, struct wal_error *error);
WAL_API void wal_rewind_close(struct wal_rewind_answer *rewind);

/* -------------------------------------------------------------- read --- */

enum wal_entry_cursor_mode {
    WAL_ENTRY_CURSOR_BRANCH = 0, /* the path from a root to an entry */
    WAL_ENTRY_CURSOR_ALL =
        1 /* every own entry in log order, then no others; the
                          * entries a fork shares come first, in branch order */
};

enum wal_entry_cursor_flag {
    WAL_ENTRY_CURSOR_SINCE_COMPACTION =
        1u << 0,                           /* branch: from the last compaction's
                                          * first kept entry on */
    WAL_ENTRY_CURSOR_DURABLE = 1u << 1,    /* stop at the durable end */
    WAL_ENTRY_CURSOR_DELTAS = 1u << 2,     /* with entries of type
                                          * message_delta_batch */
    WAL_ENTRY_CURSOR_REDACTED = 1u << 3,   /* with redacted entries, flagged
                                          * WAL_ENTRY_REDACTED, and why; else
                                          * they are left out */
    WAL_ENTRY_CURSOR_OUT_OF_LINE = 1u << 4 /* payloads that are blobs are left
                                          * there: WAL_ENTRY_OUT_OF_LINE. Else
                                          * they are brought in line, in memory
                                          * of their size, and hold until the
                                          * next call on the iterator */
};

struct wal_entry_cursor_options {
    uint32_t struct_size;
    uint32_t mode;          /* enum wal_entry_cursor_mode */
    uint32_t flags;         /* enum wal_entry_cursor_flag */
    uint32_t stream;        /* 0 conversation, 1 transcript, ... */
    struct wal_slice up_to; /* branch: ends with this entry; empty: the head */
    uint64_t skip;          /* entries left out at the front */
    struct wal_slice head;  /* branch: of this head; empty: `main` */
};

/*
 * Starts reading a session; the iterator sees what was written when it was
 * opened, but obeys redactions at once. options may be null: the branch of the
 * head. An entry whose parent is left out gets the nearest one above that is
 * not as parent_id. Errors: WAL_ENOTFOUND for up_to and head. Close with
 * wal_entry_cursor_close.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_entry_cursor_open(struct wal_session *session,
                      const struct wal_entry_cursor_options *options,
                      struct wal_entry_cursor **iter, struct wal_error *error);

/* How many entries the iterator has left; of those that were redacted since
 * the last call on it, the next one knows. */
WAL_API uint64_t
wal_entry_cursor_remaining(const struct wal_entry_cursor *iter);

/*
 * The next entry, its checksum verified, or WAL_END. Set entry->struct_size
 * first. Slices hold until the store is closed, except with WAL_OPEN_PREAD,
 * and the payload of a redacted entry or one that was brought in line: until
 * the next call on the iterator.
 * WAL_ECORRUPT or WAL_EIO concern this entry alone; the next call goes on
 * behind it.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_entry_cursor_next(struct wal_entry_cursor *iter, struct wal_entry *entry,
                      struct wal_error *error);
WAL_API void wal_entry_cursor_close(struct wal_entry_cursor *iter);

/*
 * One entry by its id, own or shared, whatever branch it is on and wherever the
 * iterator stands; the iterator does not move. Slices as in
 * wal_entry_cursor_next. WAL_EREDACTED for a redacted one, unless the iterator
 * has WAL_ENTRY_CURSOR_REDACTED.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_entry_cursor_get(struct wal_entry_cursor *iter, struct wal_slice id,
                     struct wal_entry *entry, struct wal_error *error);

/* ------------------------------------------------------------- views --- */

struct wal_view;

/* Takes a piece of what a view writes, which holds until it returns. Answers
 * 0, or any other number for "no": the flush then fails with WAL_ECALLBACK and
 * that number in error->sys_errno. It may call this library, not the view. */
typedef int32_t wal_view_put_fn(void *ctx, const void *data, uint64_t size);

struct wal_view_options {
    uint32_t struct_size;
    uint32_t reserved;
    struct wal_slice dialect; /* a name that wal_view_dialect gives */
    struct wal_slice root;    /* directory below which the client looks; made
                               * when it is missing, with those above it.
                               * Empty: put is called */
    wal_view_put_fn *put;     /* takes the lines, and no file is written;
                               * documents are left out. Or null */
    void *ctx;                /* of put */
};

enum wal_view_flag {
    WAL_VIEW_REPLACED = 1u << 0 /* a file was written anew and put in its place:
                                 * it was new, or what it said before holds no
                                 * longer */
};

/* What a flush did. The library fills it. */
struct wal_view_flush_result {
    uint32_t struct_size;
    uint32_t flags;      /* enum wal_view_flag */
    uint64_t lines;      /* that the files did not have */
    uint64_t bytes;      /* that were written */
    uint64_t entries;    /* of the session that the files tell of */
    uint64_t sequence;   /* of the newest of them, or 0 */
    uint64_t unreadable; /* entries that the store cannot read; left out */
};

/* The names of the dialects that views can be of, from index 0 on; null behind
 * the last. Any thread. */
WAL_API const char *wal_view_dialect(uint32_t index);

/*
 * A view: the session as files of another program, so that what reads JSONL
 * finds it where it looks. No file is touched before wal_view_flush, and with
 * WAL_OPEN_NOOP none is ever. The store must stay open as long as the view is;
 * the session is opened once more (what wal_session_get_info told of this
 * handle holds no longer). One thread at a time; several views, also of one
 * session and in several processes, may be used at once. WAL_ENOTFOUND: no such
 * dialect. SPEC.md, Views.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_view_open(struct wal_store *store, struct wal_session *session,
              const struct wal_view_options *options, struct wal_view **view,
              struct wal_error *error);

/* Where the file of a stream lies, with the root before it, terminated by NUL;
 * it holds until the next call on the view. WAL_ENOTFOUND: the dialect has no
 * file of that stream. The path follows what the session says of itself, so it
 * is certain once the session has its first entries. */
WAL_API WAL_MUST_USE enum wal_status wal_view_path(struct wal_view *view,
                                                   uint32_t stream,
                                                   const char **path,
                                                   struct wal_error *error);

/*
 * Brings the files up to the durable end of the log, never beyond it. What was
 * appended on this store's handle before the call is made durable first, so
 * that the files hold it. It costs what is new since the last flush, also that
 * of another process; what changes what was written already (a redaction, a
 * head that moved) has the session written anew. A file is appended to, or
 * replaced by rename; a crash leaves the beginning of it at worst, which the
 * next flush completes. With put all lines are given at each flush.
 *
 * report may be null, else set its struct_size. Errors: WAL_ECHANGED when a
 * file (error->file) holds what is not of this view: it is left as it is, and
 * can be imported; WAL_EOUTSIDE for a path out of the root; WAL_ECALLBACK,
 * WAL_EACCESS, WAL_ENOSPACE, WAL_EIO, and those of wal_sync and
 * wal_entry_cursor_open. What was not written then is by the next flush.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_view_flush(struct wal_view *view, struct wal_view_flush_result *report,
               struct wal_error *error);

/* What the dialect could not carry, as of the last flush: a name, constant and
 * terminated by NUL, and how often; from index 0 on, WAL_END behind the last.
 * None before the first flush. */
WAL_API WAL_MUST_USE enum wal_status
wal_view_loss(const struct wal_view *view, uint32_t index, const char **name,
              uint64_t *count, struct wal_error *error);

/* What an import of a view did. The library fills it. */
struct wal_view_import_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t lines;      /* whole ones behind what the view knew of its file */
    uint64_t appended;   /* that became entries */
    uint64_t duplicates; /* that the session had from there already */
    uint64_t damaged;    /* that are not JSON; they are entries all the same */
    uint64_t unknown;    /* whose parent is not known: they are under the last
                          * entry that the view wrote */
};

/*
 * Takes what another program wrote behind the main file of the view into the
 * session: each whole line is an entry with WAL_ENTRY_LINE, under the entry
 * that it names, durable when the call returns. The head moves to lines that
 * go on behind it; where the session went on too, they are a branch beside
 * that. A last line without its newline waits. The file is only read; the next
 * flush may append to it or replace it, and loses nothing. A second import
 * adds nothing, also after a crash.
 *
 * report may be null, else set its struct_size. Errors: WAL_ECHANGED when the
 * file was not only appended to: nothing was taken; WAL_ENOTFOUND when it is
 * not there, or the view was never written or has no file of lines; WAL_EBUSY
 * when a flush was cut short: flush it first; WAL_EINVAL for a view with put;
 * and those of wal_append and wal_entry_cursor_open. SPEC.md, Views.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_view_import(struct wal_view *view, struct wal_view_import_result *report,
                struct wal_error *error);

/* What the last import found odd: where the line begins in the file, and why,
 * constant and terminated by NUL; from index 0 on, WAL_END behind the last. */
WAL_API WAL_MUST_USE enum wal_status
wal_view_issue(const struct wal_view *view, uint32_t index, uint64_t *offset,
               const char **reason, struct wal_error *error);

/* Whose view a file is. The library fills it; texts are terminated by NUL. */
struct wal_view_info {
    uint32_t struct_size;
    uint32_t reserved;
    char session[256];
    char dialect[32];
    char root[4096];
};

/*
 * Finds the view of a session of this store that the file is the main one of,
 * by what views keep in the directories above it, eight at most. Set
 * place->struct_size. WAL_ENOTFOUND: there is none, or no such file.
 */
WAL_API WAL_MUST_USE enum wal_status wal_view_find(struct wal_store *store,
                                                   struct wal_slice path,
                                                   struct wal_view_info *place,
                                                   struct wal_error *error);

/* Frees the view; its files stay. Null is accepted. */
WAL_API void wal_view_close(struct wal_view *view);

#ifdef __cplusplus
}
#endif

#endif
