/*
 * agentwal/admin.h - administration of stores and sessions: migration, salvage, accepted damage,
 * claims and their list, compaction, backup, the list of roots of views. The conventions of
 * agentwal.h apply.
 */
#ifndef AGENTWAL_ADMIN_H
#define AGENTWAL_ADMIN_H

#include "../agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_claim_cursor;

/* What a migration did. The library fills it. */
struct wal_migrate_result {
    uint32_t struct_size;
    uint32_t from; /* version before */
    uint32_t to;   /* version after */
    uint32_t reserved;
    uint64_t sessions; /* that were changed */
};

/*
 * Migrates the store at path to this library's format version; does nothing if it has that version.
 *
 * Each step is atomic. If a step fails or the process dies, the store keeps its old version, stays
 * readable and refuses writes with WAL_EVERSION; calling again continues. options are those of
 * wal_open and may be null; result may be null. No handle on the store may be open in this process.
 *
 * Threads: any. Errors: those of wal_open and wal_append. SPEC.md, Versions and migration.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_migrate(const char *path,
                                                       const struct wal_open_options *options,
                                                       struct wal_migrate_result *result,
                                                       struct wal_error *error);

/* What a salvage reports. */
enum wal_salvage_kind {
    WAL_SALVAGE_RANGE = 0,   /* bytes of a file that held records */
    WAL_SALVAGE_BLOB = 1,    /* content of the blob stream */
    WAL_SALVAGE_SESSION = 2, /* a session, its texts or its fork point */
    WAL_SALVAGE_ENTRY = 3,
    WAL_SALVAGE_HEAD = 4,
    WAL_SALVAGE_DOCUMENT = 5,
    WAL_SALVAGE_CHECKPOINT = 6 /* a checkpoint, some of its files, or an
                                * unfinished rewind */
};

/*
 * Something that is missing in the new store or differs there. Slices hold until the callback
 * returns.
 *
 * With a file it is a place of the damaged store that cannot be read: a range is reported once for
 * each session that is known to have lost records in it, or once without a session. Without a file
 * it is what followed from that in the new store.
 */
struct wal_salvage_report {
    uint32_t struct_size;
    uint32_t kind;               /* enum wal_salvage_kind */
    struct wal_slice session_id; /* empty: none, or unknown */
    struct wal_slice entry_id;   /* empty: none */
    uint64_t first_sequence;     /* of the records; 0: unknown */
    uint64_t last_sequence;
    struct wal_slice file;   /* below the damaged store; empty: none */
    uint64_t offset;         /* in the file */
    uint64_t size;           /* bytes */
    struct wal_slice reason; /* a phrase */
};

/* Called for each loss. A result other than 0 stops the salvage with WAL_ECALLBACK and that number
 * in error->sys_errno. It may call this library. */
typedef int32_t wal_salvage_report_fn(void *ctx, const struct wal_salvage_report *report);

/* Called at least once for each MiB that was read; `done` ascends to `total`, bytes of segments. A
 * result other than 0 stops the salvage like that of wal_salvage_report_fn. */
typedef int32_t wal_salvage_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct wal_salvage_options {
    uint32_t struct_size;
    uint32_t flags;                    /* 0 or WAL_OPEN_NETWORK_FS, for the new store */
    wal_salvage_progress_fn *progress; /* or null */
    wal_salvage_report_fn *report;     /* or null */
    void *ctx;                         /* of both */
    const struct wal_key *key;         /* of an encrypted store, and of the new one, which is
                                        * encrypted then; or null */
};

/* What a salvage did. The library fills it. */
struct wal_salvage_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t sessions; /* in the new store, without deleted ones */
    uint64_t entries;
    uint64_t documents;        /* versions, with those of checkpoints */
    uint64_t blobs;            /* pieces of content, chunks of larger ones included */
    uint64_t deleted_sessions; /* left out, since no fork needs them */
    uint64_t lost_entries;     /* that are known by a header or an index */
    uint64_t lost_blobs;       /* likewise */
    uint64_t losses;           /* reports, also without a callback */
};

/*
 * Makes a new, sound store at `out` from everything that can be read in the damaged store at
 * `path`, which is only read.
 *
 * Sessions keep their ids, entries their ids, order, texts and branches; heads, documents with
 * their versions, redactions, checkpoints and content are repeated. An entry whose parent is lost
 * gets its nearest surviving ancestor as parent, or becomes a root. A session that is deleted is
 * left out unless a fork needs it; then it is created and deleted again. Times of records and
 * numbers of versions are new. Each change and each loss is reported; damage of derived and
 * redundant bytes costs nothing and is not (walcheck reports it). The store may be in use: what is
 * appended meanwhile may be missing.
 *
 * `out` must not exist, and not be below `path`. WAL_OK means that it is a complete store on stable
 * storage, whatever was lost: result->losses is 0 if nothing was. After a failure `out` is removed,
 * and what was reported does not count; if the process dies or the removal fails, a directory is
 * left that may open as a store and is not complete.
 *
 * options and result may be null. No handle on `out` may be open. Memory: a few MiB, and for each
 * session about 1 KiB and its metadata, for each entry 16 bytes. The ids of the entries and
 * payloads above 4 MiB take disk space below `out` instead while they are copied.
 *
 * Threads: any. Errors: WAL_ENOTSTORE, WAL_EACCESS and WAL_EVERSION of `path`; WAL_EEXISTS when
 * `out` exists, WAL_EINVAL when it is below `path`, WAL_ENOTFOUND when its parent directory does
 * not exist; WAL_ECALLBACK; those of wal_open and wal_append; WAL_EKEY of an encrypted store
 * without its key. SPEC.md, Recovery.
 */
WAL_API WAL_MUST_USE enum wal_status wal_salvage(const char *path, const char *out,
                                                 const struct wal_salvage_options *options,
                                                 struct wal_salvage_result *result,
                                                 struct wal_error *error);

/*
 * Migrates a session to the schema version `to`, one version at a time.
 *
 * fn is called with now->schema_version being the version before; each step is one atomic durable
 * record. fn may be null: only the step to version 1 is known then. result may be null. Steps done
 * before a failure remain.
 *
 * Threads: any. Errors: WAL_ESCHEMA when the session is newer than `to`, or a null fn does not know
 * the step; those of wal_session_update.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_migrate(struct wal_session *session, uint32_t to,
                                                         wal_update_fn *fn, void *ctx,
                                                         struct wal_migrate_result *result,
                                                         struct wal_error *error);

/* Permits writes to the store's own documents again after damage lost some of them. walcheck still
 * reports the loss. Threads: any. Errors: those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status wal_store_accept_damage(struct wal_store *store,
                                                             struct wal_error *error);

/* Permits appends to a session again after damage lost some of its entries. walcheck still reports
 * the loss. Threads: any. Errors: those of wal_append. */
WAL_API WAL_MUST_USE enum wal_status wal_session_accept_damage(struct wal_session *session,
                                                               struct wal_error *error);

/*
 * Claims the session for this handle, so that others learn which process works in it.
 *
 * A claim is advisory: appends of others are not refused. It ends with wal_session_unclaim, with
 * the handle, or with the process. Claiming again succeeds.
 *
 * Threads: any. Errors: WAL_ECLAIMED when another handle has it (error->holder is its process),
 * WAL_ELIMIT. SPEC.md, Claims.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_claim(struct wal_session *session,
                                                       struct wal_error *error);

/* Ends the claim of this handle, if it has one. Threads: any. */
WAL_API WAL_MUST_USE enum wal_status wal_session_unclaim(struct wal_session *session,
                                                         struct wal_error *error);

enum {
    WAL_SESSION_HOST_SIZE = 65 /* bytes of a host's name with its terminator */
};

enum wal_session_move_flag {
    WAL_SESSION_MOVE_AWAY = 1u << 0 /* it goes on in another store */
};

/* Where a session goes on. */
struct wal_session_move {
    uint32_t struct_size;
    uint32_t flags;                   /* enum wal_session_move_flag */
    uint64_t number;                  /* rises with each move: from 1 */
    int64_t moved_ms;                 /* Unix time in milliseconds */
    uint8_t store[16];                /* uuid of the store that has it; all zero: none yet */
    char host[WAL_SESSION_HOST_SIZE]; /* printable ASCII; empty: none yet */
    uint8_t reserved[7];
};

/*
 * Records that the session goes on in another store, with WAL_SESSION_MOVE_AWAY, or in this one
 * again, durably.
 *
 * While it is away every call that appends to it, through any handle of any process, is refused
 * with WAL_ECLAIMED and a text that names the host; so are documents, heads, texts and checkpoints.
 * It can be read, forked and deleted, and wal_store_merge and wal_bundle_read add to it. The first
 * one adds a feature to the store; a library that does not know it refuses the store with
 * WAL_EVERSION.
 *
 * Threads: any. Errors: those of wal_append.
 */
WAL_API WAL_MUST_USE enum wal_status wal_session_set_move(struct wal_session *session,
                                                          const struct wal_session_move *move,
                                                          struct wal_error *error);

/* Fills *move with what was recorded last; the flag says whether the session is away now. Threads:
 * any. Errors: WAL_ENOTFOUND when nothing was. */
WAL_API WAL_MUST_USE enum wal_status wal_session_get_move(struct wal_session *session,
                                                          struct wal_session_move *move,
                                                          struct wal_error *error);

enum wal_claim_flag {
    WAL_CLAIM_OWN = 1u << 0 /* a handle of this process has it */
};

/* A session that is claimed. The library fills it. */
struct wal_claim {
    uint32_t struct_size;
    uint32_t flags;          /* enum wal_claim_flag */
    uint32_t session_number; /* `number` of struct wal_session_info */
    int32_t process_id;      /* of the holder; 0: unknown */
    struct wal_slice session_id;
};

/*
 * Lists the claims of sessions as they are now, by session number; those of this process too, also
 * of its other handles on the store.
 *
 * A claim counts while its lock is held, so that a killed process has none. A claim that is made or
 * ended during the call may be listed or not; one on a session that was deleted is not. A read-only
 * handle sees the claims when it may read LOCK. Close *cursor with wal_claim_cursor_close.
 *
 * Threads: any. Errors: WAL_EREADONLY when LOCK may not be read, WAL_ELOCKFILE. SPEC.md, Claims.
 */
WAL_API WAL_MUST_USE enum wal_status wal_claim_cursor_open(struct wal_store *store,
                                                           struct wal_claim_cursor **cursor,
                                                           struct wal_error *error);

/* Fills *claim with the next claim, or returns WAL_END. Slices hold until the next call on the
 * cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status wal_claim_cursor_next(struct wal_claim_cursor *cursor,
                                                           struct wal_claim *claim,
                                                           struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_claim_cursor_close(struct wal_claim_cursor *cursor);

/* ------------------------------------------------------- compaction --- */

enum wal_store_compact_flag {
    /* Leave no byte of what was deleted or redacted in any file of the store,
     * nor of titles and other texts of sessions that were replaced, but for
     * content that wal_blob_put stored. Without it what a redaction hides is
     * kept. Views may have it still:
     * wal_view_cursor_open lists them, wal_view_update rewrites one. */
    WAL_STORE_COMPACT_ERASE = 1u << 0,
    /* Report what would be done, change nothing. */
    WAL_STORE_COMPACT_DRY_RUN = 1u << 1,
    /* Delete the sessions in the trash first. */
    WAL_STORE_COMPACT_EMPTY_TRASH = 1u << 2,
    /* Keep the deltas of messages that are complete. WAL_EINVAL with WAL_STORE_COMPACT_ERASE: they
     * have what a redacted message had. */
    WAL_STORE_COMPACT_KEEP_DELTAS = 1u << 3
};

enum wal_session_space_flag { WAL_SESSION_SPACE_DELETED = 1u << 0 };

/*
 * What a session has in the log, in bytes of records before compression. The content of payloads
 * that are blobs, and of checkpoints, is not counted. The slice holds until the callback returns.
 *
 * The sum of own and shared bytes is what the session sees. Deleting it would make its own bytes
 * reclaimable, and the shared ones that no other session sees any more.
 */
struct wal_session_space {
    uint32_t struct_size;
    uint32_t flags;          /* enum wal_session_space_flag */
    uint32_t session_number; /* `number` of struct wal_session_info; 0: the
                                  * documents of the store */
    uint32_t reserved;
    struct wal_slice session_id; /* empty: the documents of the store */
    uint64_t own_bytes;          /* of its records that no other session sees */
    uint64_t shared_bytes;       /* of its entries that forks of it see, and of
                                  * those that it sees of its ancestors */
    uint64_t reclaimable_bytes;  /* of its records that are dead */
};

/* Called after each new segment, with bytes of segments rewritten so far and to rewrite in total,
 * and with the same again while one is read and written, about four times a second; the total is 0
 * before it is known. A result other than 0 stops the compaction with WAL_ECALLBACK and that number
 * in error->sys_errno. */
typedef int32_t wal_store_compact_progress_fn(void *ctx, uint64_t done, uint64_t total);

/* Called for each segment that is left as it is because it is damaged, or by erasing because of
 * max_bytes though it may hold what is to be erased: refusal->file names it, refusal->text says
 * why. The error holds until the callback returns. */
typedef void wal_store_compact_refused_fn(void *ctx, const struct wal_error *refusal);

/* Called in a dry run for each session that has records, by ascending number; a deleted one too. A
 * result other than 0 stops the run like that of wal_store_compact_progress_fn. */
typedef int32_t wal_session_space_fn(void *ctx, const struct wal_session_space *space);

/* Called at the end for each process, this one too, that still has files mapped or open which were
 * replaced, with their bytes. A process keeps one as long as slices that a call returned point to
 * it; others it closes within about a second, for which erasing waits. Processes of other users are
 * left out where this one may not look at them. */
typedef void wal_store_compact_reader_fn(void *ctx, int32_t process, uint64_t bytes);

struct wal_store_compact_options {
    uint32_t struct_size;
    uint32_t flags;        /* enum wal_store_compact_flag */
    uint32_t dead_percent; /* of the bytes of a segment's records: one that was
                            * rewritten before is rewritten again from there
                            * on; 0: 20 */
    uint32_t reserved;
    uint64_t max_bytes;                      /* of segments to rewrite; 0: all */
    wal_store_compact_progress_fn *progress; /* or null */
    void *ctx;                               /* of all callbacks */
    uint64_t rate; /* bytes read and written in a second, at most; 0: 64 MiB;
                    * UINT64_MAX: no limit. With a limit it also pauses after a
                    * sync that took longer than usual. */
    wal_store_compact_refused_fn *refused; /* or null */
    wal_session_space_fn *session;         /* or null */
    wal_store_compact_reader_fn *reader;   /* or null */
};

/* What a compaction did. The library fills it. */
struct wal_store_compact_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t segments;        /* that could be rewritten: all but the one that is
                               * written to next */
    uint64_t rewritten;       /* of them; dry run: that would be */
    uint64_t refused;         /* of them: damaged, or erasing left them because of
                            * max_bytes; the first is in `refusal` */
    uint64_t bytes_before;    /* of the files of the rewritten ones */
    uint64_t bytes_after;     /* of those in their place; dry run: an upper
                               * bound, since it compresses nothing */
    uint64_t dead_bytes;      /* of records that are dead, in all segments */
    uint64_t kept_records;    /* in the rewritten ones; dry run: 0, as below */
    uint64_t dropped_records; /* from them */
    uint64_t erased_records;  /* kept without their content */
    struct wal_error refusal;
    uint64_t dropped_contents; /* of the pack: nothing named them */
};

/*
 * Gives back the space of what is dead in the log, and compresses what is live: segments that are
 * no longer written to are replaced by smaller ones.
 *
 * Other threads and processes read and write meanwhile; what they append after the call began is
 * kept. Sequence numbers, ids, parents, heads, documents, checkpoints and the states of views stay
 * as they are. Forks keep what they share with deleted sessions. Every process closes the old files
 * soon, but for those that slices point to. With WAL_STORE_COMPACT_ERASE and a `reader` the call
 * waits for that, at most 3 s: when it succeeds, refuses nothing and calls no reader, nothing of
 * what was erased is left. Needs the space of one segment. When it fails, or the process is killed,
 * the store is whole, and the next call goes on. options and result may be null.
 *
 * A dry run takes no lock and works with a read-only handle. It counts what is in the log now;
 * during a compaction, of before or after.
 *
 * Threads: any. The callbacks may not call this library with the same store. Errors: WAL_ELOCKED
 * when the store is being compacted (error->holder is the process, or 0 when it is unknown; this
 * process for another thread of it), WAL_EREADONLY, WAL_ENOSPACE, WAL_EIO, WAL_ECALLBACK. A damaged
 * segment is left as it is and reported. SPEC.md, Compaction.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_store_compact(struct wal_store *store, const struct wal_store_compact_options *options,
                  struct wal_store_compact_result *result, struct wal_error *error);

/* ----------------------------------------------------------- backup --- */

/* Called after each MiB, with bytes of segments copied so far and to copy in total. A result other
 * than 0 stops the backup with WAL_ECALLBACK and that number in error->sys_errno. */
typedef int32_t wal_store_backup_progress_fn(void *ctx, uint64_t done, uint64_t total);

struct wal_store_backup_options {
    uint32_t struct_size;
    uint32_t flags;                         /* 0 */
    wal_store_backup_progress_fn *progress; /* or null */
    void *ctx;
};

/* What a backup did. The library fills it, when the backup succeeds. */
struct wal_store_backup_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t segments;      /* of the copy */
    uint64_t copied;        /* of them, those that were written, in part too */
    uint64_t removed;       /* segments of the copy that compaction replaced */
    uint64_t bytes;         /* written; shared blocks do not count */
    uint64_t shared_bytes;  /* of files that share blocks with the store */
    uint64_t last_sequence; /* of the newest record in the copy */
};

/*
 * Copies the store to the directory at path, while other threads and processes read and write. The
 * copy is a store.
 *
 * The copy has everything that was durable when the call began. A writable handle syncs first, as
 * wal_sync does, so that the copy has everything that any process had written. path is created, its
 * parents are not. If it is an earlier backup of this store, only what is new is written. When the
 * call fails, or the process is killed, or the power goes, the copy is as the last backup left it,
 * or newer, and the next call goes on; until the first call has succeeded it is no store. Nothing
 * of the store changes, so that the handle may be read-only. It may not be compacted meanwhile.
 * options and result may be null.
 *
 * Threads: any. The callback may not call this library with the same store. Errors: WAL_EEXISTS
 * when other files or another store are at path, or a copy that has records which the store lacks:
 * it was written to, or the store is older; WAL_EINVAL when path is inside the store, or the store
 * has no files; WAL_ELOCKED when the copy is open for writing, or the store is being compacted;
 * WAL_ECORRUPT when the copy is damaged; WAL_EBUSY when another process opens the store, and takes
 * longer than the time of locks; WAL_ENOSPACE, WAL_EIO, WAL_ECALLBACK. docs/keeping.md.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_store_backup(struct wal_store *store, const char *path,
                 const struct wal_store_backup_options *options,
                 struct wal_store_backup_result *result, struct wal_error *error);

/* --------------------------------------- the list of roots of views --- */

enum wal_store_view_root_flag {
    /* Make one that is in the list durable too: the process that added it may have died before it
     * did so. */
    WAL_STORE_VIEW_ROOT_SYNC = 1u << 0,
    /* Only with a handle that may write the log, else WAL_EREADONLY. */
    WAL_STORE_VIEW_ROOT_WRITER = 1u << 1
};

/*
 * Adds a root of views in a dialect to the list that the store keeps, durably.
 *
 * The list says where content of the store is outside it (SPEC.md
 * 10.7). To this call a dialect is a name; root is an absolute path, which is
 * not looked up. Without WAL_STORE_VIEW_ROOT_WRITER a handle that is open for
 * reading adds to the list too: that writes a file of it, and nothing else of
 * the store. A store in memory, or with persistence off, keeps no list:
 * nothing is done. *is_new, if not null, is 1 when the root was not in the
 * list, and else 0.
 *
 * Threads: any. Errors: WAL_EINVAL when the dialect has more than 31 bytes or the root more than
 * 4,095; WAL_EREADONLY or WAL_EACCESS when the list may not be written; WAL_ELIMIT when it has
 * 4,096 entries; WAL_EIO, WAL_ENOSPACE.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_store_add_view_root(struct wal_store *store, struct wal_slice dialect, struct wal_slice root,
                        uint32_t flags, int32_t *is_new, struct wal_error *error);

/* Called for each root in the list; the texts are terminated by NUL and hold until it returns. A
 * result other than 0 stops the listing with WAL_ECALLBACK and that number in error->sys_errno. It
 * may call this library. */
typedef int32_t wal_store_view_root_fn(void *ctx, struct wal_slice dialect, struct wal_slice root);

/* Calls `each` for every root in the list, in no order. An entry that cannot be read is left out.
 * Threads: any. Errors: WAL_ECALLBACK; WAL_EIO when there is no directory in the list's place. */
WAL_API WAL_MUST_USE enum wal_status wal_store_list_view_roots(struct wal_store *store,
                                                               wal_store_view_root_fn *each,
                                                               void *ctx, struct wal_error *error);

/* Removes a root from the list, if it is there and the list may be written; not durably: it may be
 * there again after a loss of power. Threads: any. Errors: WAL_EINVAL as
 * wal_store_add_view_root. */
WAL_API WAL_MUST_USE enum wal_status wal_store_remove_view_root(struct wal_store *store,
                                                                struct wal_slice dialect,
                                                                struct wal_slice root,
                                                                struct wal_error *error);

#ifdef __cplusplus
}
#endif

#endif
