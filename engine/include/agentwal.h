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
 *              number of threads at once. A struct wal_iter, wal_list and
 *              wal_ticket belongs to one thread at a time.
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
    WAL_END = 1,         /* an iterator has no more */
    WAL_EINVAL = -1,     /* wrong use: mend the call */
    WAL_ENOTFOUND = -2,  /* no such session, entry or head */
    WAL_EEXISTS = -3,    /* the id is taken by other content */
    WAL_ECONFLICT = -4,  /* the expected tail is not the tail */
    WAL_ETOOBIG = -5,    /* over a limit of SPEC.md, Limits */
    WAL_ENOSPACE = -6,   /* disk or quota full; nothing was written */
    WAL_EIO = -7,        /* the system refused a read or write */
    WAL_ETORN = -8,      /* strict: the tail cannot be decided */
    WAL_ECORRUPT = -9,   /* acknowledged bytes are damaged */
    WAL_EVERSION = -10,  /* a newer format, or unknown feature bits */
    WAL_ELOCKED = -11,   /* another process holds a lock; its id is named */
    WAL_EPOISONED = -12, /* a write or sync failed; reads go on */
    WAL_ENOMEM = -13,    /* out of memory; state as before */
    WAL_EBUSY = -14,     /* the queue is full, or a ticket is pending */
    WAL_EREADONLY = -15, /* the store was opened, or lies, read-only */
    WAL_ENOTSTORE = -16, /* the path is not a store */
    WAL_EFORKED = -17,   /* the handle belongs to the parent process */
    WAL_ENOPARENT = -18, /* the named parent does not exist */
    WAL_EBADJSON = -19,  /* a payload is not valid JSON or UTF-8 */
    WAL_EDAMAGED = -20,  /* the session lost entries; accept that first */
    WAL_ENETWORK = -21,  /* a network file system, not forced */
    WAL_ESKIPPED = -22   /* depends on an append that was refused */
};

struct wal_slice {
    const void *data;
    uint64_t size; /* bytes */
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
};

/* A constant sentence for a status; never null. Any thread. */
WAL_API const char *wal_status_text(int32_t status);

/* The library's version, "MAJOR.MINOR.PATCH". Any thread. */
WAL_API const char *wal_version(void);

/* ------------------------------------------------------------- store --- */

struct wal_store;
struct wal_session;
struct wal_iter;
struct wal_list;
struct wal_ticket;

enum wal_open_flag {
    WAL_OPEN_CREATE = 1u << 0,     /* make the store where there is none */
    WAL_OPEN_EXCLUSIVE = 1u << 1,  /* with CREATE: fail where there is one */
    WAL_OPEN_READ_ONLY = 1u << 2,  /* nothing is written, no lock is kept */
    WAL_OPEN_STRICT = 1u << 3,     /* refuse what recovery cannot decide */
    WAL_OPEN_NETWORK_FS = 1u << 4, /* accept a network file system */
    WAL_OPEN_PREAD = 1u << 5       /* read by pread(2) instead of maps, so
                                    * that a bad sector is WAL_EIO and not a
                                    * signal; slices then hold until the next
                                    * call on the same iterator */
};

struct wal_open_options {
    uint32_t struct_size;
    uint32_t flags;           /* enum wal_open_flag */
    uint32_t queue_limit;     /* queued operations; 0: 256 */
    uint32_t lock_timeout_ms; /* until WAL_ELOCKED; 0: 500 */
    uint32_t idle_mark_ms;    /* until the tail is marked; 0: 100 */
    uint32_t group_align;     /* with CREATE: 0, 512 or 4096; aligns groups for
                               * devices without power-safe overwrite */
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
    uint64_t tail_segment;  /* where the tail was torn or damaged, */
    uint64_t tail_offset;   /* from here, */
    uint64_t tail_size;     /* so many bytes, */
    uint64_t tail_sequence; /* first sequence number not kept, or 0 */
    uint64_t sessions;      /* sessions in the store */
    uint64_t last_sequence; /* of the newest record */
    uint64_t segments;      /* live log segments */
    uint64_t log_bytes;     /* below the written end, all segments */
    uint64_t disk_bytes;    /* capacity of all segments */
    uint64_t groups;        /* groups this handle wrote */
    uint64_t syncs;         /* syncs this handle made */
    uint64_t acknowledged;  /* durable appends this handle acknowledged */
};

/*
 * Opens the store at path, recovering it when no other process has it open
 * (SPEC.md, Recovery). options may be null: open an existing store to read and
 * write. A directory that is not writable opens read-only by itself. On
 * success *store is a handle to close with wal_close. Errors: WAL_ENOTSTORE,
 * WAL_EVERSION, WAL_ECORRUPT, WAL_ETORN, WAL_ELOCKED, WAL_ENETWORK, WAL_EIO,
 * WAL_ENOSPACE (only when creating), WAL_ENOMEM, WAL_EEXISTS.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_open(const char *path, const struct wal_open_options *options,
         struct wal_store **store, struct wal_error *error);

/*
 * Commits what is queued, marks the tail, writes the index beside it, and
 * frees the handle, also when it fails; the status then says what could not be
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
wal_store_status(struct wal_store *store, struct wal_store_info *info,
                 struct wal_error *error);

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
    int64_t created_ms;     /* Unix time in milliseconds */
    int64_t updated_ms;     /* of the last append */
    uint64_t entries;       /* conversation entries: own and inherited */
    uint64_t inherited;     /* of these, on the branch it was forked from */
    uint64_t bytes;         /* of its own records in the log */
    uint64_t last_sequence; /* of its newest record; orders the list */
};

enum wal_session_flag {
    WAL_SESSION_FORK = 1u << 0,   /* made by wal_session_fork */
    WAL_SESSION_DAMAGED = 1u << 1 /* lost entries; refuses appends */
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

/* Opens an existing session by its id. WAL_ENOTFOUND when there is none. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_open(struct wal_store *store, struct wal_slice id,
                 struct wal_session **session, struct wal_error *error);

/* Frees the handle; the session stays. Null is accepted. */
WAL_API void wal_session_close(struct wal_session *session);

/* Fills *info; set info->struct_size first. Slices hold until the next
 * wal_session_status on this handle or its close. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_status(struct wal_session *session, struct wal_session_info *info,
                   struct wal_error *error);

/*
 * Creates a session that shares everything up to and including the entry `at`
 * (empty: the head `main`) with `session`, durably, in O(1) time and bytes
 * whatever the session's length. options may be null; its empty fields are
 * taken from the source but for `source`; its id is made as in
 * wal_session_create, parent_id is set.
 * The heads of the copy start at the fork point. Errors: WAL_ENOTFOUND for
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

/* -------------------------------------------------------------- list --- */

struct wal_list_options {
    uint32_t struct_size;
    uint32_t flags;           /* 0 */
    struct wal_slice cwd;     /* only sessions of this directory, or empty */
    struct wal_slice project; /* only sessions of this project, or empty */
    struct wal_slice prefix;  /* only ids that begin so, or empty */
    struct wal_slice source;  /* only this import source, or empty */
    struct wal_slice parent;  /* only children of this session, or empty */
};

/* Lists sessions, newest first, as they were at the call; touches no entry.
 * options may be null. Close with wal_list_close. */
WAL_API WAL_MUST_USE enum wal_status
wal_list_open(struct wal_store *store, const struct wal_list_options *options,
              struct wal_list **list, struct wal_error *error);

/* The next session, or WAL_END. Set info->struct_size first; metadata is left
 * empty. Slices hold until the next call on the list. */
WAL_API WAL_MUST_USE enum wal_status
wal_list_next(struct wal_list *list, struct wal_session_info *info,
              struct wal_error *error);
WAL_API void wal_list_close(struct wal_list *list);

/* ------------------------------------------------------------ append --- */

/* When an append is acknowledged. */
enum wal_durability {
    WAL_DURABLE = 0, /* on stable storage: survives a power cut */
    WAL_WRITTEN = 1, /* in the system's cache: survives a killed process */
    WAL_QUEUED = 2   /* in this process's bounded queue */
};

enum wal_entry_flag {
    WAL_ENTRY_ROOT = 1u << 0, /* in: no parent. out: has none */
    WAL_ENTRY_LINE = 1u << 1, /* payload is a line as it came in, any bytes;
                               * id, parent, type, time were read out of it */
    WAL_ENTRY_HEAD_KEEP = 1u << 2, /* in: never moves the head */
    WAL_ENTRY_HEAD_MOVE = 1u << 3  /* in: moves the head whatever it was */
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
    struct wal_slice payload;   /* JSON of 16 MiB at most; WAL_ENTRY_LINE: any
                                 * bytes */
    struct wal_slice meta;      /* a JSON object, or empty */
    uint64_t sequence;          /* out: number in the store's log */
    uint64_t depth;             /* out: entries above it on its branch */
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

/* What an append did. The library fills it; ids are terminated by NUL. */
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
 * result may be null; else set result->struct_size. Any thread.
 * Errors, with nothing written: WAL_ECONFLICT (result->actual_tail),
 * WAL_EEXISTS, WAL_ENOPARENT, WAL_EBADJSON, WAL_ETOOBIG, WAL_EINVAL,
 * WAL_EREADONLY, WAL_EDAMAGED, WAL_ENOSPACE, WAL_EBUSY, WAL_ELOCKED,
 * WAL_ENOMEM. WAL_EPOISONED and WAL_EIO: unknown; ask again by id.
 * SPEC.md, Appending.
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

/* -------------------------------------------------------------- read --- */

enum wal_iter_mode {
    WAL_ITER_BRANCH = 0, /* the path from a root to an entry */
    WAL_ITER_ALL = 1     /* every own entry in log order, then no others; the
                          * entries a fork shares come first, in branch order */
};

enum wal_iter_flag {
    WAL_ITER_SINCE_COMPACTION = 1u << 0, /* branch: from the last compaction's
                                          * first kept entry on */
    WAL_ITER_DURABLE = 1u << 1           /* stop at the durable end */
};

struct wal_iter_options {
    uint32_t struct_size;
    uint32_t mode;          /* enum wal_iter_mode */
    uint32_t flags;         /* enum wal_iter_flag */
    uint32_t stream;        /* 0 conversation, 1 transcript, ... */
    struct wal_slice up_to; /* branch: ends with this entry; empty: the head */
    uint64_t skip;          /* entries left out at the front */
};

/*
 * Starts reading a session; the iterator sees what was written when it was
 * opened. options may be null: the branch of the head. Errors: WAL_ENOTFOUND
 * for up_to. Close with wal_iter_close.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_iter_open(struct wal_session *session,
              const struct wal_iter_options *options, struct wal_iter **iter,
              struct wal_error *error);

/* How many entries the iterator has left. */
WAL_API uint64_t wal_iter_remaining(const struct wal_iter *iter);

/*
 * The next entry, its checksum verified, or WAL_END. Set entry->struct_size
 * first. Slices hold until the store is closed, except with WAL_OPEN_PREAD:
 * until the next call. WAL_ECORRUPT or WAL_EIO concern this entry alone; the
 * next call goes on behind it.
 */
WAL_API WAL_MUST_USE enum wal_status wal_iter_next(struct wal_iter *iter,
                                                   struct wal_entry *entry,
                                                   struct wal_error *error);
WAL_API void wal_iter_close(struct wal_iter *iter);

/*
 * One entry by its id, own or shared, whatever branch it is on and wherever
 * the iterator stands; the iterator does not move. Slices as in wal_iter_next.
 */
WAL_API WAL_MUST_USE enum wal_status wal_iter_get(struct wal_iter *iter,
                                                  struct wal_slice id,
                                                  struct wal_entry *entry,
                                                  struct wal_error *error);

#ifdef __cplusplus
}
#endif

#endif
