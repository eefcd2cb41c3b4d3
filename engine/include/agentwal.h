/*
 * agentwal.h - the core interface of libagentwal, an append-only log for the sessions of AI agents.
 *
 * A store is a directory that holds sessions. A session holds entries; each has an id, a parent and
 * a payload, so that a session is a tree. The path from a root entry to another entry is a branch;
 * a head is a named pointer to an entry. All sessions of a store share one log, so that one sync
 * makes the appends of several writers durable. SPEC.md defines every byte on disk; this header
 * defines every call.
 *
 * Side headers, each of which includes this one:
 *   agentwal/blob.h        content by its SHA-256
 *   agentwal/checkpoint.h  checkpoints of files, differences, rewind
 *   agentwal/admin.h       migration, damage, claims
 *   agentwal/record.h      segments of the log and their records
 *   agentwal/transfer.h    merging stores, and bundles of sessions
 *
 * Other libraries, by the calls of this one:
 *   agentwal/convert.h     libagentwal-convert: views, which are sessions as
 *                          files of other programs
 *   agentwal/import.h      libagentwal-convert: imports of such files
 *   agentwal/search.h      libagentwal-search: full-text search
 *   agentwal/remote.h      libagentwal-remote: stores that are kept elsewhere
 *
 * Conventions
 *   Errors     A call that can fail returns an enum wal_status: WAL_OK, WAL_END
 *              from a cursor that has no more, or a negative WAL_E... code. Its
 *              last parameter takes an optional struct wal_error that the
 *              caller owns and that is filled on failure only. Outputs are
 *              untouched on failure. Misuse returns WAL_EINVAL and changes
 *              nothing. WAL_EINVAL, WAL_ENOMEM, WAL_EIO, WAL_EFORKED and
 *              WAL_ECLOSED may come from any call and are not listed at each
 *              one.
 *   Structs    A struct that crosses the interface begins with struct_size,
 *              which the caller sets to sizeof the struct. The caller zeroes
 *              every other byte before it sets fields; WAL_INIT does both.
 *              Later versions add fields at the end. Fields that a smaller
 *              struct lacks are zero; a larger one is accepted if the bytes
 *              that this version does not know are zero, else WAL_EINVAL. Of
 *              an output, the library fills what fits, and zeroes what it does
 *              not know. The elements of an array have one struct_size, which
 *              is its stride. A size of 0 is WAL_EINVAL, but in wal_error it
 *              is that of version 0.2.
 *   Optional   A pointer may be null only where its call says so; an optional
 *              output that is null is not written.
 *   Slices     struct wal_slice is a pointer and a size in bytes. A slice given
 *              to a call is borrowed until the call returns. A slice that a
 *              call returns holds until the next call on the same handle, or
 *              its close; on a store or session, until the next call of the
 *              same function, and is a copy in memory. WAL_END ends them too: a
 *              cursor at its end keeps no file that a compaction replaces. Text
 *              is UTF-8 and not terminated.
 *   Closing    Handles are closed in any order, each once: a session before
 *              its cursors, a store before its tickets. After wal_close, calls
 *              on the store's other handles return WAL_ECLOSED, except that
 *              they can be closed and that wal_ticket_wait returns the outcome;
 *              slices hold as before, and only the files that they point to
 *              stay mapped. The last close frees the memory of the store.
 *   Threads    Any number of threads may use a struct wal_store or a struct
 *              wal_session at the same time. Every other handle is used by one
 *              thread at a time. Different handles may be closed at the same
 *              time; during wal_close no other call on the store or its handles
 *              may run.
 *   Processes  Any number of processes may open one store. After fork() the
 *              child's handles return WAL_EFORKED; the child opens its own, and
 *              may close the handles that it has, but for the store.
 *   Signals    The library installs a handler of SIGBUS, which keeps a process
 *              alive when another program cuts a file of the store, and passes
 *              every other one on. One that is installed later must do the
 *              same (SPEC.md 4.6). The library's threads take no signal of
 *              the program.
 *   Durability A call that writes returns once its change is durable, unless
 *              it takes an enum wal_durability.
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

/* The result of a call. Failures are negative and differ in what the caller can do about them. The
 * values are part of the ABI. */
enum wal_status {
    WAL_OK = 0,
    WAL_END = 1,           /* the cursor has no more */
    WAL_EINVAL = -1,       /* misuse: correct the call */
    WAL_ENOTFOUND = -2,    /* no such session, entry, head or document */
    WAL_EEXISTS = -3,      /* the id is taken by other content */
    WAL_ECONFLICT = -4,    /* an expectation failed: error->expectation */
    WAL_ETOOBIG = -5,      /* over a limit (SPEC.md, Limits) */
    WAL_ENOSPACE = -6,     /* disk or quota full; nothing was written */
    WAL_EIO = -7,          /* the system failed a read or a write */
    WAL_ETORN = -8,        /* strict: the tail cannot be decided */
    WAL_ECORRUPT = -9,     /* acknowledged bytes are damaged */
    WAL_EVERSION = -10,    /* a newer format, or unknown feature bits */
    WAL_ELOCKED = -11,     /* another process holds a lock: error->holder;
                            * nothing was written */
    WAL_EPOISONED = -12,   /* a write or sync failed, or a process died or
                            * stopped in one, and healing failed: the outcome
                            * is unknown. Reads continue; the next append heals
                            */
    WAL_ENOMEM = -13,      /* out of memory; nothing changed */
    WAL_EBUSY = -14,       /* the queue is full, a ticket is pending, or handles
                            * of a closed store are open */
    WAL_EREADONLY = -15,   /* the store is read-only */
    WAL_ENOTSTORE = -16,   /* the path is not a store */
    WAL_EFORKED = -17,     /* the handle belongs to the parent process */
    WAL_ENOPARENT = -18,   /* the named parent does not exist */
    WAL_EBADJSON = -19,    /* a payload is not valid JSON or UTF-8 */
    WAL_EDAMAGED = -20,    /* the session lost entries; accept that first */
    WAL_ENETWORK = -21,    /* a network file system, or one that ignores syncs,
                            * not permitted */
    WAL_EDEPENDENCY = -22, /* depends on an append that was refused */
    WAL_ECALLBACK = -23,   /* a function of the caller failed */
    WAL_ESCHEMA = -24,     /* a schema version that the caller cannot write */
    WAL_EREDACTED = -25,   /* the entry's content was redacted */
    WAL_ECLAIMED = -26,    /* another handle claims the session: holder; or it
                            * has moved to another store */
    WAL_ELIMIT = -27,      /* no room for another claim */
    WAL_ELOCKFILE = -28,   /* LOCK was removed or replaced while in use */
    WAL_EOUTSIDE = -29,    /* a path leaves its root, or crosses a link */
    WAL_ECHANGED = -30,    /* another program changed the file */
    WAL_EACCESS = -31,     /* no permission to read, write or replace a file */
    WAL_ENOTFILE = -32,    /* a directory or device where a file was named */
    WAL_ECLOSED = -33,     /* the store of the handle was closed */
    WAL_ETRASHED = -34,    /* the session is in the trash: undelete it first */
    WAL_EREMOTE = -35,     /* the remote failed or did not answer: the outcome
                            * is unknown. Retry; the store is as it was */
    WAL_EFENCED = -36,     /* another writer has taken over what this one wrote
                            * to: nothing more is acknowledged there */
    WAL_EKEY = -37         /* the store is encrypted and this key does not open
                            * it, or a key was given for one that is not */
};

/* Bytes or text without a terminator. */
struct wal_slice {
    const void *data;
    uint64_t size; /* bytes */
};

/*
 * Helpers, for C11 and C++11.
 *   WAL_INIT(wal_entry)  sets struct_size and zeroes every other byte:
 *                        struct wal_entry entry = WAL_INIT(wal_entry);
 *
 *   WAL_STR("text")      the slice of a string literal
 *   WAL_ARG(slice)       the two arguments of "%.*s" for a slice
 */
#ifdef __cplusplus
} /* extern "C" */
template <class T> struct agentwal_initial {
    static T value()
    {
        T made = T();
        made.struct_size = sizeof(T);
        return made;
    }
};
extern "C" {
#define WAL_INIT(name)   (agentwal_initial<struct name>::value())
#define WAL_STR(literal) (wal_slice{"" literal, sizeof(literal) - 1})
#else
#define WAL_INIT(name)                               \
    {                                                \
        .struct_size = (uint32_t)sizeof(struct name) \
    }
#define WAL_STR(literal) ((struct wal_slice){"" literal, sizeof(literal) - 1})
#endif
#define WAL_ARG(slice) (int)(slice).size, (const char *)(slice).data

enum {
    WAL_DIGEST_SIZE = 32, /* bytes of a SHA-256 */
    WAL_ID_SIZE = 256     /* bytes of an id with its terminator */
};

/* The expectation that failed with WAL_ECONFLICT. */
enum wal_expectation {
    WAL_EXPECTATION_NONE = 0,
    WAL_EXPECTATION_TAIL = 1,     /* WAL_APPEND_EXPECT */
    WAL_EXPECTATION_HEAD = 2,     /* WAL_HEAD_EXPECT */
    WAL_EXPECTATION_DOCUMENT = 3, /* WAL_DOC_EXPECT */
    WAL_EXPECTATION_METADATA = 4, /* WAL_CHANGE_EXPECT */
    WAL_EXPECTATION_SEQUENCE = 5  /* WAL_SESSION_REMOVE_EXPECT, and
                                   * WAL_CHANGE_EXPECT_SEQUENCE */
};

/* Where and why a call failed. */
struct wal_error {
    uint32_t struct_size;
    int32_t status;       /* enum wal_status */
    int32_t sys_errno;    /* errno, or 0; WAL_ECALLBACK: the function's result */
    int32_t holder;       /* process id for WAL_ELOCKED and WAL_ECLAIMED, or 0 */
    uint32_t expectation; /* enum wal_expectation */
    uint32_t reserved;
    uint64_t offset;          /* in the file, where that is known */
    char file[512];           /* path, or empty */
    char text[512];           /* a sentence: what failed, why, what to do */
    char actual[WAL_ID_SIZE]; /* the present value where another one was
                               * expected. WAL_ECONFLICT: the entry id of the
                               * tail or head, or the version or last_sequence
                               * in decimal.
                               * WAL_ESCHEMA: the version. WAL_EEXISTS: the id
                               * that is taken. Else empty */
};

/* Returns a constant sentence for a status, never null. Threads: any. */
WAL_API const char *wal_status_text(int32_t status);

/* Returns the library's version, "MAJOR.MINOR.PATCH". Threads: any. */
WAL_API const char *wal_version(void);

/* ------------------------------------------------------------- store --- */

struct wal_store;
struct wal_session;
struct wal_ticket;
struct wal_session_cursor;
struct wal_head_cursor;
struct wal_doc_cursor;
struct wal_entry_cursor;

/* When an append is acknowledged. */
enum wal_durability {
    WAL_DURABLE = 0, /* on stable storage: survives a power cut */
    WAL_WRITTEN = 1, /* in the system's cache: survives a killed process */
    WAL_QUEUED = 2,  /* in this process's bounded queue */
    WAL_CLUSTER = 3  /* durable, and stored in the remote too by the process
                      * that ships the store: survives the loss of the
                      * machine (docs/machines.md) */
};

enum wal_open_flag {
    WAL_OPEN_CREATE = 1u << 0,       /* create the store if there is none */
    WAL_OPEN_EXCLUSIVE = 1u << 1,    /* with CREATE: fail if there is one */
    WAL_OPEN_READ_ONLY = 1u << 2,    /* write nothing and keep no lock; follow
                                    * the processes that write, if any did
                                    * when the store was opened */
    WAL_OPEN_STRICT = 1u << 3,       /* fail where recovery cannot decide */
    WAL_OPEN_NETWORK_FS = 1u << 4,   /* permit a network file system, and one
                                    * that ignores syncs */
    WAL_OPEN_PREAD = 1u << 5,        /* read with pread(2) instead of maps: a bad
                                    * sector is WAL_EIO, not a signal */
    WAL_OPEN_NOOP = 1u << 6,         /* persistence off: a store in memory that
                                    * keeps its sessions, and nothing that is
                                    * added to them (SPEC.md 5.11) */
    WAL_OPEN_MEMORY = 1u << 7,       /* an empty store of this process in memory,
                                    * without a name on disk: full behaviour,
                                    * dropped when it is closed. Uses /proc, and
                                    * a descriptor per segment (SPEC.md 5.11) */
    WAL_OPEN_KEY_IF_NEEDED = 1u << 8 /* options->key is not refused by a store
                                      * that is not encrypted */
};

/* What a key of a store is made of (SPEC.md, Encryption). */
enum wal_key_kind {
    WAL_KEY_SECRET = 1,    /* 16 to 4,096 bytes that cannot be guessed */
    WAL_KEY_PASSPHRASE = 2 /* 1 to 4,096 bytes that a person knows: opening
                            * takes a third of a second and 128 MiB */
};

/* A key that opens an encrypted store. The library copies nothing of it beyond the call. */
struct wal_key {
    uint32_t struct_size;
    uint32_t kind; /* enum wal_key_kind */
    struct wal_slice bytes;
    struct wal_slice label; /* for people, at most 32 bytes; of a key that is
                             * added to the store */
};

struct wal_open_options {
    uint32_t struct_size;
    uint32_t flags;           /* enum wal_open_flag */
    uint32_t queue_limit;     /* operations in the queue; 0: 256 */
    uint32_t lock_timeout_ms; /* until WAL_ELOCKED; 20 times that for a process
                               * that runs; 0: 500 */
    uint32_t idle_mark_ms;    /* idle time until a commit mark; 0: 100, and
                               * 5000 where all is durable already */
    uint32_t group_align;     /* with CREATE: 0, 512 or 4096 bytes; aligns groups
                               * for devices without power-safe overwrite */
    uint32_t schema_version;  /* of the sessions that the caller writes;
                               * others can be read, and refuse writes with
                               * WAL_ESCHEMA. 0: not checked */
    uint32_t reserved;
    const struct wal_key *key; /* opens an encrypted store; makes a store that
                                * is created an encrypted one. Null: none */
};

/* What recovery found at the end of the log (SPEC.md, Recovery). */
enum wal_tail {
    WAL_TAIL_CLEAN = 0,
    WAL_TAIL_TORN = 1,      /* an incomplete group was dropped */
    WAL_TAIL_AMBIGUOUS = 2, /* a group that may have been acknowledged was
                             * dropped; its bytes are kept */
    WAL_TAIL_DAMAGED = 3    /* acknowledged bytes are damaged */
};

/* The state of a store. The library fills it. */
struct wal_store_info {
    uint32_t struct_size;
    int32_t status;          /* WAL_OK, or why appends are refused */
    uint32_t format_version; /* of the store */
    uint32_t tail;           /* enum wal_tail, as found when opening */
    uint8_t uuid[16];
    uint64_t tail_segment;    /* segment that was torn or damaged */
    uint64_t tail_offset;     /* first byte of that there */
    uint64_t tail_size;       /* bytes of that */
    uint64_t tail_sequence;   /* first sequence number not kept, or 0 */
    uint64_t sessions;        /* without deleted ones, with those in the
                               * trash */
    uint64_t last_sequence;   /* of the newest record */
    uint64_t segments;        /* live log segments */
    uint64_t log_bytes;       /* below the written end, all segments */
    uint64_t disk_bytes;      /* that all segments take */
    uint64_t groups;          /* that this handle wrote */
    uint64_t syncs;           /* that this handle made */
    uint64_t acknowledged;    /* durable appends that this handle made */
    uint64_t queued;          /* operations in this handle's queue */
    uint64_t pack_segments;   /* live pack segments */
    uint64_t pack_bytes;      /* below the pack's written end */
    uint64_t pack_disk_bytes; /* that the pack segments take */
    int32_t queue_status;     /* the asynchronous error not yet reported, or
                               * WAL_OK; the next queued call, wal_flush or
                               * wal_close reports it */
    uint32_t reserved;
    struct wal_slice path; /* of its directory, as it was opened; empty when
                               * it has none. Holds until the store's end */
    uint32_t is_replica;   /* 1: it follows another store, and is only read
                            * (agentwal/replica.h) */
    uint32_t more_reserved;
};

/*
 * Opens the store at path; recovers it if no other process has it open.
 *
 * options may be null: open an existing store to read and write. A directory without write
 * permission opens read-only, and so does a store of an older format version until
 * wal_store_migrate. With WAL_OPEN_NOOP or WAL_OPEN_MEMORY path is ignored and may be null. Close
 * *store with wal_close.
 *
 * Threads: any. Errors: WAL_ENOTSTORE, WAL_EEXISTS, WAL_EVERSION, WAL_ECORRUPT, WAL_ETORN,
 * WAL_ELOCKED, WAL_ENETWORK, WAL_EKEY; WAL_ENOSPACE when creating. SPEC.md, Recovery.
 */
WAL_API WAL_MUST_USE enum wal_status wal_open(const char *path,
                                              const struct wal_open_options *options,
                                              struct wal_store **store, struct wal_error *error);

/*
 * Commits the queue, makes everything durable, writes a commit mark and the index, and closes the
 * store. Where another process keeps the lock that the mark needs, the store is closed without it.
 *
 * The store is closed also when the call fails; the status then says what could not be made
 * durable. WAL_EBUSY says that all of it was done, and that handles of the store are open: they
 * must be closed to free its memory (Conventions, Closing); its files, locks, descriptors and
 * threads are released already, so that it can be opened again. store may be null, and is not valid
 * afterwards.
 *
 * Threads: no other call on the store or its handles may run. Errors: those of wal_sync, and an
 * asynchronous error not yet reported; WAL_EBUSY if there is none of these. With WAL_EFORKED
 * nothing is closed or freed.
 */
WAL_API enum wal_status wal_close(struct wal_store *store, struct wal_error *error);

/* Waits until everything is durable that was appended to the store before the call, whatever its
 * durability class: on this handle all of it, by others what is written and not in their queues.
 * Threads: any. Errors: an asynchronous error not yet reported; WAL_EPOISONED: it may be durable or
 * not. */
WAL_API WAL_MUST_USE enum wal_status wal_sync(struct wal_store *store, struct wal_error *error);

/* Waits until every operation queued on this handle before the call has been written. Threads: any.
 * Errors: the first failure of a queued operation that no call has reported. */
WAL_API WAL_MUST_USE enum wal_status wal_flush(struct wal_store *store, struct wal_error *error);

/* Fills *info. Reads no file but for its size. Threads: any. */
WAL_API WAL_MUST_USE enum wal_status
wal_store_get_info(struct wal_store *store, struct wal_store_info *info, struct wal_error *error);

/*
 * Waits until the log has a record with a higher sequence number than
 * *sequence, written by any process.
 *
 * durability is WAL_WRITTEN, WAL_DURABLE for records on stable storage, or WAL_CLUSTER for those
 * that are stored in the remote too. timeout_ms is in milliseconds, negative for no limit. On
 * success *sequence is the number of the newest such record. The wait sleeps.
 *
 * Threads: any. Errors: WAL_EBUSY when the time is over. With WAL_CLUSTER WAL_EREMOTE when no
 * process ships the store, and what that process reports.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_wait(struct wal_store *store, uint64_t *sequence,
                                                    uint32_t durability, int64_t timeout_ms,
                                                    struct wal_error *error);

/* The kinds of a completion descriptor. */
enum wal_completion_kind {
    WAL_COMPLETION_EVENTFD = 0, /* a count, which is read as 8 bytes; on Linux */
    WAL_COMPLETION_PIPE = 1,    /* the read end of a pipe */
    WAL_COMPLETION_SOCKET = 2   /* one of a pair of stream sockets */
};

/*
 * Returns a descriptor for event loops in *fd; it becomes readable when a submitted operation of
 * this handle completes.
 *
 * kind is an enum wal_completion_kind: use a pipe or a socket where the event loop refuses an
 * eventfd, as that of Node.js does. Read the descriptor until it is empty, then call
 * wal_ticket_wait with a timeout of 0. The bytes of a pipe or socket mean nothing, and those that
 * find it full are dropped, so that completions never block.
 *
 * The first call makes the descriptor, non-blocking and close-on-exec; later calls return the same.
 * The child of fork() does not have it. wal_close closes both of its ends: pass a duplicate to what
 * closes it too.
 *
 * Threads: any. Errors: WAL_EINVAL when the descriptor of this handle has another kind, or the
 * system has no eventfd, WAL_ENOMEM when the process has no descriptor left.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_completion_fd(struct wal_store *store, uint32_t kind,
                                                             int32_t *fd, struct wal_error *error);

/* ---------------------------------------------------------- sessions --- */

/* A session to be created. Texts have at most 4,096 bytes. */
struct wal_session_options {
    uint32_t struct_size;
    uint32_t schema_version;    /* the caller's; 0: 1 */
    struct wal_slice id;        /* 1 to 255 bytes; empty: a UUIDv7 is made */
    struct wal_slice cwd;       /* directory that the session works in */
    struct wal_slice project;   /* project id */
    struct wal_slice title;     /* for people */
    struct wal_slice parent_id; /* session that this one came from; it need
                                 * not exist */
    struct wal_slice metadata;  /* a JSON object of at most 1 MiB, or empty */
    struct wal_slice source;    /* where it was imported from; opaque; it never
                                   changes */
    int64_t created_ms;         /* Unix time in milliseconds; 0: now, also for
                                 * one before 1970 or over a day ahead */
    uint32_t durability;        /* WAL_DURABLE or WAL_WRITTEN */
    uint32_t reserved;
};

enum wal_session_flag {
    WAL_SESSION_FORK = 1u << 0,    /* made by wal_session_fork */
    WAL_SESSION_DAMAGED = 1u << 1, /* lost entries; refuses appends */
    WAL_SESSION_DELETED = 1u << 2, /* in a lineage only */
    WAL_SESSION_TRASHED = 1u << 3, /* in the trash; refuses changes */
    WAL_SESSION_MOVED = 1u << 4,   /* to another store; refuses appends */
    WAL_SESSION_NO_TEXT = 1u << 5  /* first_text is empty although there is a
                                    * user message: it was redacted, which may
                                    * have been undone, or has gone */
};

/* A session as it is. The library fills it. */
struct wal_session_info {
    uint32_t struct_size;
    uint32_t schema_version;
    uint32_t number; /* of the session in this store */
    uint32_t flags;  /* enum wal_session_flag */
    struct wal_slice id;
    struct wal_slice cwd;
    struct wal_slice project;
    struct wal_slice title;
    struct wal_slice parent_id;
    struct wal_slice head; /* entry id of the head `main`, or empty */
    struct wal_slice source;
    struct wal_slice metadata;
    struct wal_slice first_text; /* start of the first user message on the
                                  * branch, at most 160 bytes */
    int64_t created_ms;          /* Unix time in milliseconds, of the creation
                                  * or of the earliest entry */
    int64_t updated_ms;          /* of the latest entry, or if there is none of
                                  * the creation; orders lists */
    uint64_t entries;            /* of the conversation, own and inherited,
                                  * without deltas */
    uint64_t inherited;          /* on the branch up to the fork point, in the
                                  * fork point's stream */
    uint64_t bytes;              /* of the session's records in the log */
    uint64_t last_sequence;      /* of its newest record; orders lists where
                                  * updated_ms is equal */
    uint64_t metadata_version;   /* of metadata and the texts above; 0 from
                                  * wal_session_cursor_next */
    uint64_t documents;          /* its own document records, all versions */
};

/*
 * Creates a session, as durable as options->durability says: one that is WAL_WRITTEN is durable
 * after wal_sync, or with its first durable entry.
 *
 * options may be null: a session with a made-up id and no texts. Close *session with
 * wal_session_close.
 *
 * Threads: any. Errors: WAL_EEXISTS when the id is taken, WAL_ETRASHED when a session in the trash
 * has it, WAL_EINVAL for another durability, and for an id or a text that is too long or not UTF-8,
 * WAL_EBADJSON for metadata, and those of wal_append. SPEC.md, Sessions.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_create(struct wal_store *store,
                                                        const struct wal_session_options *options,
                                                        struct wal_session **session,
                                                        struct wal_error *error);

/* Opens an existing session by its id. The handle of a session that is deleted later returns
 * WAL_ENOTFOUND. Threads: any. Errors: WAL_ENOTFOUND, WAL_ETRASHED when the session is in the
 * trash. */
WAL_API WAL_MUST_USE enum wal_status wal_session_open(struct wal_store *store, struct wal_slice id,
                                                      struct wal_session **session,
                                                      struct wal_error *error);

/* Opens the session of a directory that was active last, the first of a list; cwd empty: of the
 * whole store. Threads: any. Errors: WAL_ENOTFOUND when there is none. */
WAL_API WAL_MUST_USE enum wal_status wal_session_open_latest(struct wal_store *store,
                                                             struct wal_slice cwd,
                                                             struct wal_session **session,
                                                             struct wal_error *error);

/*
 * Opens the session options->id, or with an empty id the latest of options->cwd; creates it if
 * there is none.
 *
 * The other options are used to create it. *created, if not null, is 1 when the session was created
 * and 0 when it existed. Callers that do this at the same time, in any process, for one id, or for
 * one cwd without an id, get the same session: whether there is one is decided under the append
 * lock. That does not hold for wal_session_create, which makes a session whatever there is.
 *
 * Threads: any. Errors: those of wal_session_open_latest and wal_session_create, except
 * WAL_ENOTFOUND and WAL_EEXISTS.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_open_or_create(struct wal_store *store, const struct wal_session_options *options,
                           struct wal_session **session, int32_t *created, struct wal_error *error);

/* Frees the handle; the session remains. session may be null. */
WAL_API void wal_session_close(struct wal_session *session);

/* Fills *info. Its slices hold until the next wal_session_get_info on this handle, or its close;
 * threads that share a handle take turns with them. Threads: any. Errors: WAL_ENOTFOUND when the
 * session is deleted. */
WAL_API WAL_MUST_USE enum wal_status wal_session_get_info(struct wal_session *session,
                                                          struct wal_session_info *info,
                                                          struct wal_error *error);

/*
 * Expected sequence
 *
 * A caller that reads a session and then removes or changes it, because of what it read, passes the
 * last_sequence of wal_session_info from before it read. The process that writes compares it under
 * the append lock. The session has changed if it has a newer record, of any process: an entry of
 * any stream, also a delta; a document; a head that moved; a change of metadata or texts, which
 * moving to the trash, undelete, migration and a move to another store are too; a redaction of an
 * entry that it does not inherit, also one that a fork made; accepted damage.
 *
 * No change is: an append that is not written yet, which is refused once the session is removed; a
 * fork of the session, which keeps what it shares, and what is written to the fork; a claim;
 * compaction of the store; damage that is found.
 *
 * If it has changed, nothing is written, and the call returns WAL_ECONFLICT with
 * WAL_EXPECTATION_SEQUENCE and the present last_sequence in error->actual. Then look again: the
 * session has what others appended.
 */

/* Which fields of a session a change sets. */
enum wal_change_field {
    WAL_CHANGE_METADATA = 1u << 0,
    WAL_CHANGE_TITLE = 1u << 1,
    WAL_CHANGE_CWD = 1u << 2,
    WAL_CHANGE_PROJECT = 1u << 3,
    WAL_CHANGE_SCHEMA = 1u << 4,
    WAL_CHANGE_EXPECT = 1u << 5,         /* only if metadata_version is
                                  * expected_version */
    WAL_CHANGE_EXPECT_SEQUENCE = 1u << 6 /* only if last_sequence is
                                          * expected_sequence */
};

/* A change of a session's metadata and texts. */
struct wal_session_change {
    uint32_t struct_size;
    uint32_t fields; /* enum wal_change_field */
    uint32_t schema_version;
    uint32_t reserved;
    struct wal_slice metadata; /* a JSON object, or empty */
    struct wal_slice title;
    struct wal_slice cwd;
    struct wal_slice project;
    uint64_t expected_version;  /* WAL_CHANGE_EXPECT: metadata_version */
    uint64_t expected_sequence; /* WAL_CHANGE_EXPECT_SEQUENCE: last_sequence of
                                 * the session (see "Expected sequence") */
};

/*
 * Computes a change; wal_session_update and wal_session_migrate call it.
 *
 * *now is the session as it is. *change comes zeroed but for struct_size;
 * slices put into it hold until the function is called again or the outer call
 * returns. A result other than 0 makes the outer call fail with WAL_ECALLBACK
 * and that number in error->sys_errno. The function may call this library.
 */
typedef int32_t wal_update_fn(void *ctx, const struct wal_session_info *now,
                              struct wal_session_change *change);

/*
 * Changes a session's metadata by a function of its present state, durably.
 *
 * Reads the session, calls fn in the calling thread without holding a lock, and writes if the
 * metadata has not changed since; otherwise starts again. It sets WAL_CHANGE_EXPECT itself. If fn
 * sets WAL_CHANGE_EXPECT_SEQUENCE, any other record refuses the change, and it does not start again
 * for that.
 *
 * Threads: any. Errors, with nothing changed: WAL_ECALLBACK, WAL_EBADJSON, WAL_ECONFLICT after
 * 1,000 attempts or for the expected sequence, and those of wal_append.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_update(struct wal_session *session,
                                                        wal_update_fn *fn, void *ctx,
                                                        struct wal_error *error);

/* Deletes a session for good, durably, also one in the trash: it is no longer listed or opened, and
 * its id is free. Forks of it keep what they share. Close the handle as usual. Threads: any.
 * Errors: WAL_ENOTFOUND when it is deleted already, and those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status wal_session_delete(struct wal_session *session,
                                                        struct wal_error *error);

/*
 * Moves a session to the trash, durably.
 *
 * In the trash it is in no list but that of WAL_SESSION_CURSOR_TRASH and in lineages, and it is not
 * opened; its id stays taken. Handles that are open read on, and refuse changes with WAL_ETRASHED.
 * Forks of it stay as they are. Nothing of it is lost before the store is compacted with
 * WAL_STORE_COMPACT_EMPTY_TRASH, which deletes what is in the trash.
 *
 * The first call adds a feature to the store; a library that does not know it refuses the store
 * with WAL_EVERSION. Threads: any. Errors: WAL_ENOTFOUND when the session is deleted, WAL_ETRASHED
 * when it is in the trash already, and those of wal_append. SPEC.md, Trash.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_trash(struct wal_session *session,
                                                       struct wal_error *error);

enum wal_session_remove_flag {
    WAL_SESSION_REMOVE_TRASH = 1u << 0, /* as wal_session_trash; else as
                                         * wal_session_delete */
    WAL_SESSION_REMOVE_EXPECT = 1u << 1 /* only if last_sequence is
                                         * expected_sequence */
};

struct wal_session_remove_options {
    uint32_t struct_size;
    uint32_t flags;             /* enum wal_session_remove_flag */
    uint64_t expected_sequence; /* WAL_SESSION_REMOVE_EXPECT: last_sequence of
                                 * the session (see "Expected sequence") */
};

/* Deletes a session for good, or moves it to the trash, durably; only if it has not changed since
 * the caller looked at it, when that is asked for. options may be null: as wal_session_delete.
 * Threads: any. Errors, with nothing changed: WAL_ECONFLICT for the expected sequence, and those of
 * wal_session_delete or wal_session_trash, which come first. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_remove(struct wal_session *session, const struct wal_session_remove_options *options,
                   struct wal_error *error);

/* Takes a session out of the trash, durably: it is as it was before, with the same id and times.
 * Threads: any. Errors: WAL_ENOTFOUND when there is no such session, or it is not in the trash, and
 * those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_undelete(struct wal_store *store, struct wal_slice id, struct wal_error *error);

/*
 * Creates a session that shares the branch of another one up to and including the entry `at`
 * (empty: the head `main`), durably.
 *
 * Takes time and space independent of the session's length. options may be null; its empty fields,
 * except source, are copied from the session. parent_id and the creation time are set. The fork has
 * one head, `main` of the fork point's stream, at the fork point. It sees the documents as they are
 * now; later changes on either side do not affect the other.
 *
 * Threads: any. Errors: WAL_ENOTFOUND for `at`, and those of wal_session_create. SPEC.md, Forks.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_fork(struct wal_session *session,
                                                      struct wal_slice at,
                                                      const struct wal_session_options *options,
                                                      struct wal_session **fork,
                                                      struct wal_error *error);

/* -------------------------------------------------- list of sessions --- */

enum wal_session_cursor_flag {
    WAL_SESSION_CURSOR_LINEAGE = 1u << 0, /* the ancestors of lineage_of,
                                           * nearest first, deleted ones and
                                           * those in the trash too; without
                                           * filters */
    WAL_SESSION_CURSOR_TRASH = 1u << 1    /* the sessions in the trash, instead
                                           * of all others */
};

/* Which sessions a cursor lists. An empty slice does not filter. */
struct wal_session_cursor_options {
    uint32_t struct_size;
    uint32_t flags;              /* enum wal_session_cursor_flag */
    struct wal_slice cwd;        /* sessions of this directory */
    struct wal_slice project;    /* sessions of this project */
    struct wal_slice prefix;     /* ids that begin with this */
    struct wal_slice source;     /* sessions imported from there */
    struct wal_slice parent;     /* children of this session */
    struct wal_slice lineage_of; /* WAL_SESSION_CURSOR_LINEAGE: session id */
    struct wal_slice after;      /* position of wal_session_cursor_encode, used
                                  * with the same filters; empty: the start */
    int64_t changed_after;       /* sessions with a greater updated_ms; 0: all */
    uint64_t recorded_after;     /* sessions with a greater last_sequence, such as
                              * they have since wal_store_wait; 0: all */
};

enum {
    WAL_CURSOR_TEXT_SIZE = 64 /* bytes of a position with its terminator */
};

/* Lists sessions as of this call, the one with the latest entry first; reads no
 * entries. SPEC.md 5.4 has the order. options may be null: all sessions. Close
 * *cursor with wal_session_cursor_close. Threads: any. Errors: WAL_ENOTFOUND
 * for lineage_of, WAL_EINVAL for `after`. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_cursor_open(struct wal_store *store, const struct wal_session_cursor_options *options,
                        struct wal_session_cursor **cursor, struct wal_error *error);

/* Fills *info with the next session as it is now, or returns WAL_END. metadata is left empty.
 * Slices hold until the next call on the cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_session_cursor_next(struct wal_session_cursor *cursor,
                                                             struct wal_session_info *info,
                                                             struct wal_error *error);

/* Writes a position that continues after the session returned last, terminated by NUL. It is valid
 * in every process and at any time. A session that gets records meanwhile stays or moves towards
 * the front, and is not returned again; SPEC.md 5.4 has the exception. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_session_cursor_encode(struct wal_session_cursor *cursor,
                                                               char position[WAL_CURSOR_TEXT_SIZE],
                                                               struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_session_cursor_close(struct wal_session_cursor *cursor);

/* ------------------------------------------------------------ append --- */

/* Entry types with a code in the log. Any other text is a type too.
 *
 * Entries of type message_delta_batch, deltas, are provisional, unless they are lines
 * (WAL_ENTRY_LINE): parts of a message that is being written. A delta is under the head and does
 * not move it, is not counted, and cannot be named but by a redaction. Once an entry moved the head
 * under the same parent, the message or what came instead, the delta is complete: compaction drops
 * it, and it may be gone at any time. The first delta of a store adds a feature to it; a library
 * that does not know it refuses the store with WAL_EVERSION. SPEC.md, Entries. */
#define WAL_TYPE_MESSAGE                "message"
#define WAL_TYPE_SESSION_HEADER         "session_header"
#define WAL_TYPE_MESSAGE_DELTA_BATCH    "message_delta_batch"
#define WAL_TYPE_MODEL_CHANGE           "model_change"
#define WAL_TYPE_THINKING_LEVEL_CHANGE  "thinking_level_change"
#define WAL_TYPE_RUNTIME_INIT           "runtime_init"
#define WAL_TYPE_SYSTEM_PROMPT_OVERRIDE "system_prompt_override"
#define WAL_TYPE_COMPACTION_SUMMARY     "compaction_summary"
#define WAL_TYPE_BRANCH_SUMMARY         "branch_summary"
#define WAL_TYPE_REDACTION              "redaction"
#define WAL_TYPE_CUSTOM                 "custom"
#define WAL_TYPE_COMPACTION             "compaction"

enum wal_entry_flag {
    WAL_ENTRY_ROOT = 1u << 0,       /* in: take no parent. out: has none */
    WAL_ENTRY_LINE = 1u << 1,       /* the payload is a line of any bytes; id, parent,
                               * type and time were read from it */
    WAL_ENTRY_HEAD_KEEP = 1u << 2,  /* in: do not move the head */
    WAL_ENTRY_HEAD_MOVE = 1u << 3,  /* in: move the head in any case; not of a
                                     * delta */
    WAL_ENTRY_REDACTED = 1u << 4,   /* out: meta is empty, the payload is
                                     * {"redactedBy":ID,"reason":TEXT}; with
                                     * WAL_ENTRY_LINE it was a line */
    WAL_ENTRY_OUT_OF_LINE = 1u << 5 /* out: the payload is left empty; read the
                                     * blob payload_digest */
};

/* An entry of a session. Fields without "out" are set to append it. */
struct wal_entry {
    uint32_t struct_size;
    uint32_t flags;  /* enum wal_entry_flag */
    uint32_t stream; /* 0 conversation, 1 transcript; at most 255 */
    uint32_t reserved;
    struct wal_slice id;                     /* 1 to 255 bytes; empty in: one is made */
    struct wal_slice parent_id;              /* empty in: the head */
    struct wal_slice type;                   /* 1 to 255 bytes, e.g. "message" */
    struct wal_slice timestamp;              /* text of at most 64 bytes; empty in: now */
    struct wal_slice run_id;                 /* at most 255 bytes, or empty */
    struct wal_slice payload;                /* JSON of at most 1 GiB; WAL_ENTRY_LINE: any
                                 * bytes, at most 32 GiB. Above 256 KiB it is
                                 * kept as a blob */
    struct wal_slice meta;                   /* a JSON object, or empty */
    uint64_t sequence;                       /* out: number in the store's log */
    uint64_t depth;                          /* out: entries above it on its branch */
    uint64_t payload_size;                   /* out: bytes, also of one left out of line */
    uint8_t payload_digest[WAL_DIGEST_SIZE]; /* out: WAL_ENTRY_OUT_OF_LINE */
};

enum wal_append_flag {
    WAL_APPEND_EXPECT = 1u << 0, /* refuse unless the tail is expected_tail */
    WAL_APPEND_NO_WAIT = 1u << 1 /* WAL_EBUSY when the queue is full */
};

struct wal_append_options {
    uint32_t struct_size;
    uint32_t durability; /* enum wal_durability */
    uint32_t flags;      /* enum wal_append_flag */
    uint32_t reserved;
    struct wal_slice expected_tail; /* WAL_APPEND_EXPECT: entry id of the head
                                     * `main`; empty: an empty stream */
};

/* What an append did; ids are terminated by NUL. The library fills it, also on failure: with zeros
 * when nothing is known to be written. With WAL_QUEUED only last_id is set. */
struct wal_append_result {
    uint32_t struct_size;
    uint32_t appended;   /* entries written */
    uint32_t duplicates; /* entries that existed with the same content */
    uint32_t reserved;
    uint64_t sequence;         /* of the last entry written, or 0 */
    char last_id[WAL_ID_SIZE]; /* of the last entry of the call; empty unless
                                * all are as durable as was asked for */
};

/*
 * Appends entries as one atomic batch and waits until it is as durable as options->durability says.
 *
 * options may be null: WAL_DURABLE. result may be null. The entries are of one session and keep
 * their order; a parent may be an entry of the same batch. An id that exists with the same content
 * is skipped and counted before the tail is checked, so that a batch can be sent again. An entry
 * without a parent goes under the head of its stream and moves it; an entry with a parent that is
 * not the head leaves the head in place, and so does a delta.
 *
 * A compaction_summary must name a firstKeptEntryId on its path to the root, a branch_summary an
 * entry of a session, and a redaction an entry that this session sees: else WAL_EINVAL (no such
 * member) or WAL_ENOTFOUND. A redaction hides its target's content from every reader of every
 * session.
 *
 * Threads: any. Errors, with nothing written: WAL_ECONFLICT, WAL_EEXISTS, WAL_ENOPARENT,
 * WAL_EBADJSON, WAL_ETOOBIG, WAL_EREADONLY, WAL_EDAMAGED, WAL_ESCHEMA, WAL_ENOTFOUND, WAL_ENOSPACE,
 * WAL_EBUSY, WAL_ELOCKED. After WAL_EPOISONED and WAL_EIO the outcome is unknown: append the same
 * entries again; what is there is skipped by its id. A process that is killed or stopped while it
 * syncs for this one causes neither: its part is taken over. With WAL_CLUSTER: WAL_EREMOTE, with
 * nothing written and a result of zeros, when no process ships the store. After WAL_EREMOTE,
 * WAL_EFENCED and others that the shipping process reported, the entries are durable here, as the
 * result says, and may be stored in the remote or not; they are shipped later unless another writer
 * took over. SPEC.md, Batches.
 */
WAL_API WAL_MUST_USE enum wal_status wal_append(struct wal_session *session,
                                                const struct wal_entry *entries, uint32_t count,
                                                const struct wal_append_options *options,
                                                struct wal_append_result *result,
                                                struct wal_error *error);

/* Appends one entry durably under the head, with an id that is made up. type is terminated by NUL,
 * such as WAL_TYPE_MESSAGE; payload is JSON; result may be null. Threads: any. Errors: those of
 * wal_append. */
WAL_API WAL_MUST_USE enum wal_status wal_append_one(struct wal_session *session, const char *type,
                                                    struct wal_slice payload,
                                                    struct wal_append_result *result,
                                                    struct wal_error *error);

/*
 * Appends as wal_append does, without waiting: *ticket reports the outcome.
 *
 * The entries are copied. A full queue blocks the call, or with WAL_APPEND_NO_WAIT fails it with
 * WAL_EBUSY. Free *ticket with wal_ticket_destroy.
 *
 * Threads: any. Errors: those of wal_append that concern the arguments.
 */
WAL_API WAL_MUST_USE enum wal_status wal_submit(struct wal_session *session,
                                                const struct wal_entry *entries, uint32_t count,
                                                const struct wal_append_options *options,
                                                struct wal_ticket **ticket,
                                                struct wal_error *error);

/* Waits for a submitted append, at most timeout_ms milliseconds (negative: no limit), and returns
 * what wal_append would have returned. result may be null. May be called again, and after
 * wal_close, which completes every append. A ticket of WAL_CLUSTER completes
 * (wal_store_completion_fd) when the entries are durable; this call then waits until they are
 * stored in the remote too. Threads: one at a time. Errors: WAL_EBUSY while it is pending, and
 * those of wal_append; with WAL_CLUSTER WAL_ECLOSED after wal_close. */
WAL_API WAL_MUST_USE enum wal_status wal_ticket_wait(struct wal_ticket *ticket, int64_t timeout_ms,
                                                     struct wal_append_result *result,
                                                     struct wal_error *error);

/* Frees a ticket; a pending append continues, and its failure becomes an asynchronous error, unless
 * the store was closed. ticket may be null. */
WAL_API void wal_ticket_destroy(struct wal_ticket *ticket);

/* ------------------------------------------------------------- heads --- */

enum wal_head_flag {
    WAL_HEAD_EXPECT = 1u << 0 /* in: refuse unless the head is at `expected` */
};

/* A named pointer to an entry of a stream. Each stream has a head `main`; an append without a
 * parent goes under it. */
struct wal_head {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_head_flag */
    uint32_t stream;
    uint32_t reserved;
    struct wal_slice name;     /* 1 to 255 bytes; empty in: "main" */
    struct wal_slice entry_id; /* empty in: remove the head; `main` then is
                                * before the first entry */
    struct wal_slice note;     /* at most 4,096 bytes, for people; empty out
                                * when an append moved the head */
    struct wal_slice expected; /* WAL_HEAD_EXPECT: entry id; empty: no head */
    uint64_t version;          /* out: sequence number of the last move */
};

/*
 * Moves, creates or removes a head, durably. Entries remain, so that moving back undoes it.
 *
 * A head that is at the entry already, with the note if one is given, is left as it is, whatever
 * was expected. previous may be null; it takes the entry id that the head had, terminated by NUL.
 *
 * Threads: any. Errors, with nothing changed: WAL_ECONFLICT, WAL_ENOTFOUND for the entry,
 * WAL_ETOOBIG beyond 4,096 heads; and those of wal_append, where an unknown outcome is settled by
 * moving again. SPEC.md, Heads.
 */
WAL_API WAL_MUST_USE enum wal_status wal_head_move(struct wal_session *session,
                                                   const struct wal_head *head,
                                                   char previous[WAL_ID_SIZE],
                                                   struct wal_error *error);

/* Copies the entry id of a head, terminated by NUL; name empty: "main". Threads: any. Errors:
 * WAL_ENOTFOUND when there is no such head, or `main` has no entry. */
WAL_API WAL_MUST_USE enum wal_status wal_head_get(struct wal_session *session, uint32_t stream,
                                                  struct wal_slice name, char entry_id[WAL_ID_SIZE],
                                                  struct wal_error *error);

/* Lists the heads that point to an entry as they are now: `main` first, then by stream and name.
 * Close *cursor with wal_head_cursor_close. Threads: any. */
WAL_API WAL_MUST_USE enum wal_status wal_head_cursor_open(struct wal_session *session,
                                                          struct wal_head_cursor **cursor,
                                                          struct wal_error *error);

/* Fills *head with the next head, or returns WAL_END. Slices hold until the next call on the
 * cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_head_cursor_next(struct wal_head_cursor *cursor,
                                                          struct wal_head *head,
                                                          struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_head_cursor_close(struct wal_head_cursor *cursor);

/* --------------------------------------------------------- documents --- */

enum wal_doc_flag {
    WAL_DOC_EXPECT = 1u << 0, /* in: refuse unless the newest version is
                               * `version`; 0: there is no document */
    WAL_DOC_DELETE = 1u << 1, /* in a batch: delete it. out: deleted here */
    WAL_DOC_STORE = 1u << 2   /* in a batch: of the store, not the session */
};

/* JSON under a key of a session or of the store. */
struct wal_doc {
    uint32_t struct_size;
    uint32_t flags;         /* enum wal_doc_flag */
    struct wal_slice key;   /* 1 to 1,024 bytes; the first is not zero */
    struct wal_slice value; /* JSON of at most 16 MiB */
    uint64_t version;       /* rises with every change of any document */
    int64_t modified_ms;    /* out: Unix time in milliseconds */
};

/*
 * Puts a document, durably; older versions remain readable.
 *
 * session null: a document of the store; else store may be null. A put of the value that the
 * document has writes nothing and succeeds, whatever was expected, so that it can be sent again;
 * callers that take turns with WAL_DOC_EXPECT therefore put distinct values. version may be null;
 * it takes the newest version.
 *
 * Threads: any. Errors, with nothing changed: WAL_ECONFLICT, WAL_EBADJSON; and those of wal_append,
 * where an unknown outcome is settled by putting again. SPEC.md, Documents.
 */
WAL_API WAL_MUST_USE enum wal_status wal_doc_put(struct wal_store *store,
                                                 struct wal_session *session,
                                                 const struct wal_doc *doc, uint64_t *version,
                                                 struct wal_error *error);

/* Deletes a document, durably; its value is ignored. As wal_doc_put otherwise. Errors: also
 * WAL_ENOTFOUND when there is no such document. */
WAL_API WAL_MUST_USE enum wal_status wal_doc_delete(struct wal_store *store,
                                                    struct wal_session *session,
                                                    const struct wal_doc *doc, uint64_t *version,
                                                    struct wal_error *error);

/* Fills *doc with a document as it is now; with a version other than 0, as that version left it.
 * session null: of the store; else store may be null. Slices are copies that keep no file of the
 * store, and hold until the next wal_doc_get on the same handle, or its close; threads that share a
 * handle take turns with them. Threads: any. Errors: WAL_ENOTFOUND when there is none, or it was
 * deleted; WAL_ECORRUPT. */
WAL_API WAL_MUST_USE enum wal_status wal_doc_get(struct wal_store *store,
                                                 struct wal_session *session, struct wal_slice key,
                                                 uint64_t version, struct wal_doc *doc,
                                                 struct wal_error *error);

enum wal_doc_cursor_flag {
    WAL_DOC_CURSOR_KEYS = 1u << 0,   /* leave values empty */
    WAL_DOC_CURSOR_HISTORY = 1u << 1 /* every version, newest first within a
                                      * key, deletions too */
};

struct wal_doc_cursor_options {
    uint32_t struct_size;
    uint32_t flags;          /* enum wal_doc_cursor_flag */
    struct wal_slice prefix; /* of keys, or empty */
};

/* Lists the documents of a session, or with session null of the store, as they are now, in byte
 * order of their keys. options may be null: all. Close *cursor with wal_doc_cursor_close. Threads:
 * any. */
WAL_API WAL_MUST_USE enum wal_status
wal_doc_cursor_open(struct wal_store *store, struct wal_session *session,
                    const struct wal_doc_cursor_options *options, struct wal_doc_cursor **cursor,
                    struct wal_error *error);

/* Fills *doc with the next document, or returns WAL_END. Slices hold until the next call on the
 * cursor, or its close. Threads: one at a time. Errors: WAL_ECORRUPT concerns this document only;
 * the next call continues. */
WAL_API WAL_MUST_USE enum wal_status
wal_doc_cursor_next(struct wal_doc_cursor *cursor, struct wal_doc *doc, struct wal_error *error);

/* As wal_doc_get, whatever the prefix, for threads that share a session: slices hold until the next
 * call on the cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_doc_cursor_get(struct wal_doc_cursor *cursor,
                                                        struct wal_slice key, uint64_t version,
                                                        struct wal_doc *doc,
                                                        struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_doc_cursor_close(struct wal_doc_cursor *cursor);

/* ------------------------------------------------------------- batch --- */

/* The parts of an atomic batch. Each may be empty, but not all of them. */
struct wal_batch {
    uint32_t struct_size;
    uint32_t entry_count;
    uint32_t document_count;
    uint32_t head_count;
    const struct wal_entry *entries;
    const struct wal_doc *documents;         /* each key once */
    const struct wal_head *heads;            /* each head once; may name entries
                                              * of the batch */
    const struct wal_session_change *change; /* or null */
};

/*
 * Appends entries, puts documents, moves heads and changes metadata, all or nothing, in this order;
 * waits as wal_append does.
 *
 * Expectations are all checked before anything is written. What exists already (an entry, a
 * document's value, a head's entry, a field) is not written again. A change without
 * WAL_CHANGE_EXPECT applies to the present state. With WAL_CHANGE_EXPECT_SEQUENCE, which needs no
 * other field, the whole batch is written only if the session has not changed; a batch of which all
 * exists already succeeds whatever was expected, so that it can be sent again. options and result
 * may be null.
 *
 * Threads: any. Errors: those of wal_append, wal_doc_put, wal_head_move and wal_session_update.
 * SPEC.md, Batches.
 */
WAL_API WAL_MUST_USE enum wal_status wal_batch_commit(struct wal_session *session,
                                                      const struct wal_batch *batch,
                                                      const struct wal_append_options *options,
                                                      struct wal_append_result *result,
                                                      struct wal_error *error);

/* Commits a batch without waiting, as wal_submit does. A change in it must have WAL_CHANGE_EXPECT,
 * or WAL_CHANGE_EXPECT_SEQUENCE alone. Threads: any. */
WAL_API WAL_MUST_USE enum wal_status wal_batch_submit(struct wal_session *session,
                                                      const struct wal_batch *batch,
                                                      const struct wal_append_options *options,
                                                      struct wal_ticket **ticket,
                                                      struct wal_error *error);

/* -------------------------------------------- redaction, compaction --- */

/* Hides the content of an entry that this session sees from every reader, by a durable entry of
 * type `redaction` under the head. The bytes remain in the log until wal_store_compact erases them;
 * until then wal_session_unredact undoes it. reason has at most 4,096 bytes, or is empty; result
 * may be null. Threads: any. Errors: WAL_ENOTFOUND, and those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_redact(struct wal_session *session, struct wal_slice entry_id, struct wal_slice reason,
                   struct wal_append_result *result, struct wal_error *error);

/*
 * Shows the content of a redacted entry again, in every session that sees it; durable. An entry of
 * type `redaction` that hid it stays, and hides nothing. Titles and the first text that went with
 * the content do not come back. It can be redacted again. Cursors that left the entry out go on
 * without it.
 *
 * Threads: any. Errors: WAL_EREDACTED: its content was erased, and can never be shown again;
 * WAL_ENOTFOUND: there is no such entry, or it is not redacted; WAL_ELOCKED while the store is
 * compacted or backed up; and those of wal_append. SPEC.md, Redaction.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_unredact(struct wal_session *session,
                                                          struct wal_slice entry_id,
                                                          struct wal_error *error);

struct wal_compact_options {
    uint32_t struct_size;
    uint32_t reserved;
    struct wal_slice first_kept;            /* entry on the branch of the head */
    struct wal_slice summary;               /* text that replaces the entries before it,
                                  * at most 4 MiB */
    const struct wal_session_options *into; /* for a fork, or null */
};

/*
 * Records that a summary replaces the entries before first_kept: a durable entry of type
 * `compaction_summary` under the head.
 *
 * With options->into it is written to a fork of the session, made in the same batch and returned in
 * *fork; otherwise to the session itself, and fork may be null. A cursor with
 * WAL_ENTRY_CURSOR_SINCE_COMPACTION begins at first_kept. Nothing is destroyed. result may be null.
 *
 * Threads: any. Errors: WAL_ENOTFOUND for first_kept, and those of wal_append and wal_session_fork.
 * SPEC.md, Compaction.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_compact(struct wal_session *session,
                                                         const struct wal_compact_options *options,
                                                         struct wal_session **fork,
                                                         struct wal_append_result *result,
                                                         struct wal_error *error);

/* ----------------------------------------------------------- reading --- */

/* Fills *entry with one entry by its id, own or shared, on any branch; a payload that is a blob is
 * read into memory. Slices are copies that keep no file of the store, and hold until the next
 * wal_entry_get on the same handle, or its close; threads that share a handle take turns with them.
 * Threads: any. Errors: WAL_ENOTFOUND, WAL_EREDACTED, WAL_ECORRUPT. SPEC.md, Reading. */
WAL_API WAL_MUST_USE enum wal_status wal_entry_get(struct wal_session *session, struct wal_slice id,
                                                   struct wal_entry *entry,
                                                   struct wal_error *error);

enum wal_entry_cursor_mode {
    WAL_ENTRY_CURSOR_BRANCH = 0, /* the path from a root to an entry */
    WAL_ENTRY_CURSOR_ALL = 1     /* the entries that a fork shares, in branch
                                  * order, then its own in log order */
};

enum wal_entry_cursor_flag {
    /* Branch: from the first kept entry of the last compaction on. */
    WAL_ENTRY_CURSOR_SINCE_COMPACTION = 1u << 0,
    /* Stop at the durable end, as far as that is known: while the log is poisoned it may be before
     * what a loss of power left. What a backup or a replica has of its store was durable there, and
     * counts as durable. */
    WAL_ENTRY_CURSOR_DURABLE = 1u << 1,
    /* Include entries of type message_delta_batch. Branch: deltas that are not complete, after the
     * entry that they are under, if that is the last. All: where they are in the log, as long as
     * they are there. */
    WAL_ENTRY_CURSOR_DELTAS = 1u << 2,
    /* Include redacted entries, flagged WAL_ENTRY_REDACTED. */
    WAL_ENTRY_CURSOR_REDACTED = 1u << 3,
    /* Leave payloads that are blobs out of line, flagged WAL_ENTRY_OUT_OF_LINE; otherwise they are
     * read into memory of their size. */
    WAL_ENTRY_CURSOR_OUT_OF_LINE = 1u << 4,
    /* Slices of entries hold until the cursor is closed, and take memory until then where they are
     * not mapped: payloads that are blobs, and those of redacted entries. WAL_EINVAL with
     * WAL_OPEN_PREAD. */
    WAL_ENTRY_CURSOR_PINNED = 1u << 5
};

struct wal_entry_cursor_options {
    uint32_t struct_size;
    uint32_t mode;          /* enum wal_entry_cursor_mode */
    uint32_t flags;         /* enum wal_entry_cursor_flag */
    uint32_t stream;        /* as wal_entry.stream */
    struct wal_slice up_to; /* branch: its last entry; empty: the head */
    uint64_t skip;          /* entries left out at the start */
    struct wal_slice head;  /* branch: of this head; empty: `main` */
    uint64_t last;          /* of these, only the last; 0: all. On a branch
                             * without skip, since_compaction and deltas, up to
                             * 65,536 are found without reading those before */
};

/*
 * Starts reading a session's entries as they are now; redactions take effect at once.
 *
 * options may be null: the branch of the head `main`. The parent_id of an entry is the nearest
 * entry above it that is not left out. Close *cursor with wal_entry_cursor_close.
 *
 * Threads: any. Errors: WAL_ENOTFOUND for up_to and head. SPEC.md, Reading.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_entry_cursor_open(struct wal_session *session, const struct wal_entry_cursor_options *options,
                      struct wal_entry_cursor **cursor, struct wal_error *error);

/* Returns the number of entries left, also when the store is closed. The next call on the cursor
 * subtracts those that were redacted since the last one. Threads: one at a time. */
WAL_API uint64_t wal_entry_cursor_remaining(const struct wal_entry_cursor *cursor);

/* Returns a number that differs from that of an earlier cursor when a redaction was undone between
 * the two; both with WAL_ENTRY_CURSOR_ALL and the same flags and stream. So a copy of what an
 * earlier cursor returned shows the same entries when the number of redacted ones did not change
 * either. Threads: one at a time. */
WAL_API uint64_t wal_entry_cursor_restored(const struct wal_entry_cursor *cursor);

/* Fills *entry with the next entry, its checksum verified, or returns WAL_END. Slices hold until
 * the next call on the cursor, or its close. Threads: one at a time. Errors: each concerns one
 * entry, and the next call continues after it, so that a loop which goes on after errors ends, and
 * has counted the entries that were not read; only WAL_ENOMEM, WAL_EINVAL and WAL_ECLOSED leave the
 * cursor where it is. WAL_ECORRUPT, WAL_EIO: this entry cannot be read, or not be found in the
 * indexes; damage of what was written since the cursor was opened does not concern it.
 * WAL_EPOISONED: it was lost when a sync failed. WAL_ENOTFOUND: the session was deleted, and a
 * compaction has begun. */
WAL_API WAL_MUST_USE enum wal_status wal_entry_cursor_next(struct wal_entry_cursor *cursor,
                                                           struct wal_entry *entry,
                                                           struct wal_error *error);

/* As wal_entry_get, with the flags of the cursor, which does not move; slices hold until the next
 * call on the cursor, or its close. Threads: one at a time. Errors: WAL_EREDACTED unless the cursor
 * has WAL_ENTRY_CURSOR_REDACTED. */
WAL_API WAL_MUST_USE enum wal_status wal_entry_cursor_get(struct wal_entry_cursor *cursor,
                                                          struct wal_slice id,
                                                          struct wal_entry *entry,
                                                          struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_entry_cursor_close(struct wal_entry_cursor *cursor);

#ifdef __cplusplus
}
#endif

#endif
