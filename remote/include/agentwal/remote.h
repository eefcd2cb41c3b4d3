/*
 * agentwal/remote.h - a store kept in an object store too, and brought from it to other machines.
 * The library is libagentwal-remote, which links libcurl; libagentwal does not.
 *
 * A remote is a bucket, or a directory. A writer ships the durable log of a store to it in parts
 * (agentwal/replica.h). Only one writer can: each has an epoch, a number that rises, and the writer
 * of a new epoch fences those before it. A replica on any machine is made of what the remote has.
 * SPEC.md 11.3; docs/machines.md says how to run it and what it promises.
 *
 * Conventions: agentwal.h. Credentials come from the environment, a file or a command
 * (docs/machines.md), never from a URL. Of each call below: WAL_EREMOTE when the remote failed or
 * did not answer in time, so that the call can be repeated; WAL_EACCESS when credentials are
 * missing or wrong; WAL_ENOSPACE when the remote is full; WAL_ENOTSTORE when the bucket or
 * directory does not exist. The local store is as it was. error->file is the object.
 */
#ifndef AGENTWAL_REMOTE_H
#define AGENTWAL_REMOTE_H

#include "agentwal/replica.h"

#ifdef __cplusplus
extern "C" {
#endif

struct wal_remote;
struct wal_remote_writer;

enum {
    WAL_REMOTE_HOST_SIZE = 65 /* bytes of a host's name with its terminator */
};

/*
 * Opens a remote by its URL: file:///DIR, a directory that exists; or
 * s3://BUCKET[/PREFIX][?endpoint=URL&region=NAME]. Asks nothing of it yet.
 *
 * Close *remote with wal_remote_close, after its writers. Threads: any; a remote may be used by
 * several threads at the same time.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_open(const char *url, struct wal_remote **remote,
                                                     struct wal_error *error);

/* Closes the remote. remote may be null. */
WAL_API void wal_remote_close(struct wal_remote *remote);

/*
 * Called about each second while a request to an object store waits, by the thread that made it, or
 * by one of the library: waited_ms since its last byte came or went, or since it began. why->text
 * is what the last attempt met, or empty. A result other than 0 ends the request: the call returns
 * WAL_ECALLBACK, and can be repeated.
 */
typedef int32_t wal_remote_wait_fn(void *ctx, uint64_t waited_ms, const struct wal_error *why);

/*
 * Sets what is called while requests of the remote wait; null: nothing. Only s3:// calls it. Call
 * it before everything else of the remote; ctx outlives the remote. Threads: one at a time.
 *
 * A request is tried again for 60 s, for 5 s where nobody is: no such host, nothing listens, or no
 * TLS. An attempt ends when no byte has come or gone for 30 s, and takes as long as bytes flow.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_set_wait(struct wal_remote *remote,
                                                         wal_remote_wait_fn *wait, void *ctx,
                                                         struct wal_error *error);

/* Creates an object below `probe/` by 8 threads at the same time, to find out whether one of them
 * succeeds, as everything here needs, and removes it; four times. Threads: any. Errors: WAL_EINVAL
 * when the remote ignores the condition, or looks for the object before it creates it. */
WAL_API WAL_MUST_USE enum wal_status wal_remote_probe(struct wal_remote *remote,
                                                      struct wal_error *error);

/* ---------------------------------------------------------- shipping --- */

enum wal_remote_writer_flag {
    /* Take over from another writer, which is fenced: what it did not ship by then, it can never
     * ship. */
    WAL_REMOTE_TAKE_OVER = 1u << 0
};

/* A part that a writer has sent. Like wal_slice it has no struct_size. */
struct wal_remote_mark {
    uint64_t epoch;
    uint64_t part;                   /* its number */
    uint8_t digest[WAL_DIGEST_SIZE]; /* at the end of the part */
};

enum {
    WAL_REMOTE_MARKS = 17 /* that a writer has at most */
};

/*
 * Keeps the marks of a writer, durably, in place of those before: the last part that is stored, and
 * those that may be on the way. Called before the first byte of a part is sent, and when nothing is
 * on the way any more. A result other than 0 ends the call with WAL_ECALLBACK and that number in
 * error->sys_errno.
 */
typedef int32_t wal_remote_keep_fn(void *ctx, const struct wal_remote_mark *marks, uint64_t count);

struct wal_remote_writer_options {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_remote_writer_flag */
    /* Names this writer: random, and kept by the caller to go on as the same one later; all zero:
     * made now. Two machines never have the same. */
    uint8_t writer[16];
    uint64_t part_size; /* bytes; 0: 8 MiB */
    uint32_t parallel;  /* parts on the way at a time, at most 16, which is 0 */
    uint32_t reserved;
    /* As `keep` had them last, also of the pull by which this writer took over; null: none. With
     * them the writer goes on in its epoch, and knows the past of the remote as its own where
     * compaction leaves that open. */
    const struct wal_remote_mark *marks;
    uint64_t mark_count;
    wal_remote_keep_fn *keep; /* or null: nothing is kept */
    void *ctx;                /* of keep */
};

/*
 * Starts shipping a store. Makes the first epoch, or goes on in its own: in the newest one when its
 * marks say that nothing was on the way, else in a new one. Takes over from another writer when it
 * may. The store must have everything that the remote has.
 *
 * options may be null. Close *writer with wal_remote_writer_close, before the store and the remote.
 * Threads: any. Errors: WAL_EFENCED when the newest epoch is another writer's, and
 * WAL_REMOTE_TAKE_OVER is not given, or that one took over at the same time; WAL_ECONFLICT when the
 * store is older than what the remote has, or has another past, or may have: nothing has changed
 * there; WAL_ECORRUPT when the remote is damaged; WAL_EINVAL when the store has no files;
 * WAL_EREADONLY when it is a replica.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_writer_open(struct wal_remote *remote, struct wal_store *store,
                       const struct wal_remote_writer_options *options,
                       struct wal_remote_writer **writer, struct wal_error *error);

/* What a push stored. The library fills it. */
struct wal_remote_push_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t parts;    /* stored by this call */
    uint64_t bytes;    /* of them */
    uint64_t epoch;    /* of the last part */
    uint64_t part;     /* its number; 0: none yet */
    uint64_t sequence; /* the last one that the remote has */
};

/*
 * Stores everything in the remote that was durable when the call began; it can then be read from
 * the remote alone. Several parts are on the way at a time. One whose outcome is unknown is stored
 * with the same bytes by the next push, and none is left out.
 *
 * result may be null; it is filled on failure too. Threads: one at a time per writer; the store is
 * used by others. Errors: WAL_EFENCED when another writer has taken over, from then on always;
 * WAL_ECONFLICT when the store was restored to an older state; WAL_ECORRUPT when it, or the remote,
 * is damaged.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_push(struct wal_remote_writer *writer,
                                                     struct wal_remote_push_result *result,
                                                     struct wal_error *error);

/* Frees the writer; its epoch remains. writer may be null. */
WAL_API void wal_remote_writer_close(struct wal_remote_writer *writer);

/* ----------------------------------------------- in the background --- */

struct wal_remote_shipper;

/* How far a shipper is. The library fills it. */
struct wal_remote_shipper_info {
    uint32_t struct_size;
    int32_t status;     /* of the last attempt: WAL_OK, or why it failed */
    uint64_t parts;     /* stored since it was started */
    uint64_t bytes;     /* of them */
    uint64_t epoch;     /* of the last part */
    uint64_t part;      /* its number; 0: none yet */
    uint64_t sequence;  /* the last one that the remote has */
    uint32_t has_ended; /* 1: it does not try again */
    uint32_t reserved;
};

/* Called by the shipper's thread when an attempt failed, with the error, and when one succeeds
 * after that, with an error of WAL_OK. It must not call the shipper. */
typedef void wal_remote_shipper_report_fn(void *ctx, const struct wal_error *error);

struct wal_remote_shipper_options {
    uint32_t struct_size;
    /* At most, but for a quarter of it at once after a pause; 0: 20. Each is a PUT, whatever the
     * number of sessions (docs/machines.md has the price). What becomes durable is collected
     * meanwhile; a part that is full, or the only one on the way, is sent as soon as this
     * permits. */
    uint32_t parts_per_second;
    wal_remote_shipper_report_fn *report; /* or null */
    void *ctx;
};

/*
 * Starts a thread that ships what becomes durable in the store, of any process, as it becomes so;
 * appends with WAL_CLUSTER, in any process, are answered by it (wal_shipper_open). The writer is
 * the shipper's until that is stopped.
 *
 * After a failure it tries again, at most every 10 s. It ends when another writer has taken over,
 * when the store has another past than the remote, or when either is damaged: info.status says
 * which, and WAL_CLUSTER fails.
 *
 * options may be null. Stop *shipper with wal_remote_shipper_stop, before the writer is closed.
 * Threads: any. Errors: WAL_ELOCKED when another one ships the store.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_shipper_start(struct wal_remote_writer *writer,
                         const struct wal_remote_shipper_options *options,
                         struct wal_remote_shipper **shipper, struct wal_error *error);

/* Fills *info. Threads: any. */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_shipper_get_info(struct wal_remote_shipper *shipper,
                            struct wal_remote_shipper_info *info, struct wal_error *error);

/* Stores the rest of what is durable, unless the remote did not answer last, and frees the shipper.
 * shipper may be null. Threads: no other call on the shipper may run. */
WAL_API void wal_remote_shipper_stop(struct wal_remote_shipper *shipper);

/* The newest writer, and how far the remote is. The library fills it. */
struct wal_remote_status {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t epoch; /* the newest one; 0: nothing of the store is there */
    uint8_t writer[16];
    int64_t started_ms; /* of the epoch: Unix time in milliseconds */
    char host[WAL_REMOTE_HOST_SIZE];
    uint8_t reserved_bytes[7];
    uint64_t part_epoch;    /* of the last part */
    uint64_t part;          /* its number; 0: none */
    uint64_t sequence;      /* the last one that the remote has */
    uint64_t lag_sequences; /* numbers of the durable log that it lacks */
    uint64_t lag_bytes;     /* of the parts that would be shipped */
};

/* Compares a store with what the remote has of it. Reads the part of the store that is not shipped.
 * Threads: any. Errors: WAL_ECONFLICT as for wal_remote_writer_open; *status is filled then but for
 * the lag. */
WAL_API WAL_MUST_USE enum wal_status wal_remote_get_status(struct wal_remote *remote,
                                                           struct wal_store *store,
                                                           struct wal_remote_status *status,
                                                           struct wal_error *error);

/* Called for each store, in the order of the ids. *status is without the lag, and holds until the
 * callback returns. A result other than 0 ends the call with WAL_ECALLBACK and that number in
 * error->sys_errno. */
typedef int32_t wal_remote_store_fn(void *ctx, const uint8_t uuid[16],
                                    const struct wal_remote_status *status);

/* Lists the stores that the remote has, with a few requests for each. Threads: any. Errors:
 * WAL_ECORRUPT when one of them is damaged. */
WAL_API WAL_MUST_USE enum wal_status wal_remote_list(struct wal_remote *remote,
                                                     wal_remote_store_fn *store, void *ctx,
                                                     struct wal_error *error);

/* ----------------------------------------------------------- pulling --- */

enum wal_remote_pull_flag {
    /* Fence the writer, pull the rest and make the replica an ordinary store: options->writer goes
     * on in the new epoch. At the path there may also be the store of a former writer that has
     * written nothing since. */
    WAL_REMOTE_PULL_TAKE_OVER = 1u << 0
};

struct wal_remote_pull_options {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_remote_pull_flag */
    /* Of the store; all zero: that of the replica which is there, else the only one that the remote
     * has. */
    uint8_t uuid[16];
    uint8_t writer[16]; /* for WAL_REMOTE_PULL_TAKE_OVER */
    /* With WAL_REMOTE_PULL_TAKE_OVER: keeps the mark with which this writer begins, if there is
     * one, before the replica becomes a store; or null. */
    wal_remote_keep_fn *keep;
    void *ctx; /* of keep */
};

/* What a pull did. The library fills it. */
struct wal_remote_pull_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint8_t uuid[16];
    uint64_t parts;              /* applied by this call */
    uint64_t bytes;              /* of them */
    uint64_t epoch;              /* of the last part */
    uint64_t part;               /* its number; 0: none */
    uint64_t sequence;           /* the last one that the replica has */
    struct wal_remote_mark mark; /* of the last part, with
                                  * WAL_REMOTE_PULL_TAKE_OVER */
};

/*
 * Makes a replica at path of what the remote has of a store, or brings it up to date. It is
 * verified, and always a prefix of the store. When the call fails, what was applied remains, and
 * the next one goes on.
 *
 * options and result may be null. Threads: any. Errors: WAL_ENOTFOUND when the remote has no such
 * store; WAL_EINVAL when it has several, and no uuid is given; WAL_ECORRUPT when an object is
 * damaged or missing, named in error->file; WAL_EEXISTS when another store or other files are at
 * path, or a store that went on by itself, or whose end no part has any more; WAL_EFENCED when
 * another writer took over at the same time; WAL_ELOCKED. A take-over is WAL_ENOTFOUND too when the
 * remote has no part of the store: nothing changes.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_pull(struct wal_remote *remote, const char *path,
                                                     const struct wal_remote_pull_options *options,
                                                     struct wal_remote_pull_result *result,
                                                     struct wal_error *error);

/*
 * Called after each look at the remote, about once a second, with what the call has applied so far;
 * `failure` is null, or says why the remote did not answer. Both hold until it returns. A result
 * other than 0 ends wal_remote_follow.
 */
typedef int32_t wal_remote_look_fn(void *ctx, const struct wal_remote_pull_result *result,
                                   const struct wal_error *failure);

/*
 * As wal_remote_pull, without taking over; then goes on with what comes, until the callback ends
 * it: WAL_OK. Where nothing new is there, a look is one request. A signal ends the pause between
 * two looks. The replica can be read meanwhile. After WAL_EREMOTE it goes on; other errors end it,
 * as they end a pull.
 *
 * options may be null. Threads: any.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_follow(struct wal_remote *remote, const char *path,
                  const struct wal_remote_pull_options *options, wal_remote_look_fn *each,
                  void *ctx, struct wal_error *error);

/* -------------------------------------------------------------- care --- */

enum wal_remote_compact_flag {
    /* Make a base though few parts came after the last one. */
    WAL_REMOTE_COMPACT_NOW = 1u << 0,
    /* Read the whole store for it, as it is after wal_store_compact; needs
     * WAL_REMOTE_COMPACT_NOW. */
    WAL_REMOTE_COMPACT_ANEW = 1u << 1
};

struct wal_remote_compact_options {
    uint32_t struct_size;
    uint32_t flags; /* enum wal_remote_compact_flag */
    /* Milliseconds for which what a base replaces is kept, so that pulls that began before it can
     * end; 0: a day. */
    uint64_t keep_ms;
};

/* What it stored and removed. The library fills it. */
struct wal_remote_compact_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t base;             /* the number of the one that was made, or 0 */
    uint64_t segments;         /* stored for it */
    uint64_t bytes;            /* of them */
    uint64_t removed_parts;    /* that are below an older base */
    uint64_t removed_segments; /* that only older bases name */
    uint64_t removed_bases;
    uint64_t removed_bytes; /* of parts and segments, and of sessions that
                             * were handed off */
};

/*
 * Makes a base of what the remote has of the store, when much came after the last one, and removes
 * what an older base has made needless. A base is the same log in few large objects, from which a
 * pull begins. Nothing that a pull needs is missing at any time. The store must have everything
 * that the remote has; any store that has it may do this, while others write.
 *
 * options and result may be null; it is filled on failure too. Threads: any. Errors: WAL_ECONFLICT
 * when the store is older than what the remote has, or has another past; WAL_ETOOBIG when it is too
 * large for a base.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_compact(struct wal_remote *remote, struct wal_store *store,
                   const struct wal_remote_compact_options *options,
                   struct wal_remote_compact_result *result, struct wal_error *error);

/*
 * Erases in the remote what wal_store_compact with WAL_STORE_COMPACT_ERASE has erased in the store:
 * call it after that has succeeded, refused nothing and called no reader. The writer begins an
 * epoch, in which it stores the document "agentwal.erased" of the store and everything durable; the
 * list of sessions and a base are made of the store as it is now; and all other parts, bases,
 * segments and bundles are removed, at once. So only this writer may be there: a process that
 * compacts the remote from another copy of the store may leave segments. Pulls that run meanwhile
 * go on with the base. A replica is free of what was erased with its next pull, a follower within 8
 * minutes.
 *
 * When it succeeds, no object of the store in the remote has what was erased. Earlier versions that
 * the object store itself keeps of objects remain, and so may a request of a process that was
 * killed, which arrives after the call. When it fails, or the process is killed, the remote is
 * whole, and the next call goes on. result may be null; it is filled on failure too. Threads: one
 * at a time per writer. Errors: as wal_remote_push and wal_remote_compact; WAL_EBUSY when a
 * compaction of the store or of the remote came between.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_erase(struct wal_remote_writer *writer,
                                                      struct wal_remote_compact_result *result,
                                                      struct wal_error *error);

/* Called for each object that is damaged or lost: damage->file names it, damage->text says why;
 * damage->status is WAL_ENOTFOUND when it is lost, WAL_EVERSION when a newer library has made it,
 * else WAL_ECORRUPT. It holds until the callback returns. A result other than 0 ends the check with
 * WAL_ECALLBACK and that number in error->sys_errno. */
typedef int32_t wal_remote_damage_fn(void *ctx, const struct wal_error *damage);

/* What was read. The library fills it. */
struct wal_remote_check_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint8_t uuid[16];
    uint64_t epochs;
    uint64_t parts;
    uint64_t bases;
    uint64_t segments; /* of bases */
    uint64_t bytes;    /* of parts, segments and indexes */
    uint64_t damage;   /* objects that are damaged or lost */
    uint64_t epoch;    /* of the last part */
    uint64_t part;     /* its number; 0: none */
    uint64_t sequence; /* the last one that the remote has */
};

/*
 * Reads everything that the remote has of a store: verifies all parts, segments and indexes, that
 * they follow each other, and that no part or segment is missing. uuid has 16 bytes; null: of the
 * only store that is there.
 *
 * each and result may be null; the result is filled on failure too. Threads:
 * any. Errors: WAL_ECORRUPT when something is damaged or lost, the first one in
 * *error; WAL_ENOTFOUND when the remote has no such store; WAL_EINVAL when it
 * has several, and no uuid is given.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_check(struct wal_remote *remote, const uint8_t *uuid, wal_remote_damage_fn *each,
                 void *ctx, struct wal_remote_check_result *result, struct wal_error *error);

/* ------------------------------------------------ sessions that move --- */

/*
 * A session goes on at one machine at a time. The remote says which: below the store that had it
 * there is a claim of the one that has it now. The former store learns of it by
 * wal_remote_moves_check, and refuses appends to it from then on (wal_session_set_move). When both
 * went on before that, both remain: what was brought becomes a branch (WAL_TRANSFER_KEEP_BOTH).
 */

enum wal_remote_resume_flag {
    /* Go on with what the remote has of a session that is in a store which the remote has not. */
    WAL_REMOTE_RESUME_TAKE_OVER = 1u << 0
};

struct wal_remote_resume_options {
    uint32_t struct_size;
    uint32_t flags;           /* enum wal_remote_resume_flag */
    uint8_t uuid[16];         /* of the store that the session is in; all zero: the
                        * only other one, or any that the session was claimed
                        * from. Its claims lead to the present one */
    struct wal_slice session; /* id */
    /* Where replicas of stores are kept, for this call and later ones: a directory, which is made
     * if its parent exists. */
    struct wal_slice directory;
    const struct wal_key *key; /* of the store that the session is in, where that is encrypted; or
                                * null */
};

/* What was brought. The library fills it. */
struct wal_remote_resume_result {
    uint32_t struct_size;
    uint32_t kind;                   /* enum wal_transfer_kind */
    uint8_t uuid[16];                /* of the store that it came from */
    uint64_t entries;                /* that were added to this store */
    uint64_t parts;                  /* that were pulled; 0: it came by itself */
    uint64_t bytes;                  /* that were read for it */
    char session[WAL_ID_SIZE];       /* to go on with: of a branch another id */
    char host[WAL_REMOTE_HOST_SIZE]; /* that it came from */
    uint8_t reserved[7];
};

/*
 * Brings a session of another store to this one, and claims it. It comes by itself: one that was
 * handed off as a bundle, any other from the newest base of the store and the parts after that, of
 * which what it needs is read. The store is pulled when it has no base or is in the directory
 * already, or when what is read is damaged.
 *
 * What was pulled and merged remains when the call fails, and the next one goes on. The session is
 * copied as wal_store_merge does: its new entries only. result may be null. Threads: any; one at a
 * time per directory. Errors: WAL_ENOTFOUND when the remote has no such store, or the store no such
 * session: nothing is claimed; WAL_EINVAL when the remote has several other stores, none is given,
 * and the session was claimed from none; WAL_ECLAIMED when another machine claimed it at the same
 * time, or it is in a store that the remote has not; those of wal_remote_pull and wal_store_merge.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_remote_resume(struct wal_remote *remote, struct wal_store *store,
                  const struct wal_remote_resume_options *options,
                  struct wal_remote_resume_result *result, struct wal_error *error);

/*
 * Gives a session to the next machine that resumes it, in two steps, so that
 * nothing that was acknowledged is left out. The first call refuses appends
 * to it here, durably, and returns WAL_EBUSY. Then push the store, or wait
 * until its shipper has stored everything (wal_store_wait), and call again:
 * when the remote has the session to its end, this creates the claim.
 *
 * Of a session that is handed off already it is WAL_OK. One that is not to go after all is
 * permitted to be appended to by wal_session_set_move without the flag, and after success by
 * wal_remote_take_back. Threads: any. Errors: WAL_EBUSY also while the remote lacks the end of the
 * session; WAL_ENOTFOUND; WAL_ECLAIMED when it has moved, or did so at the same time; those of
 * wal_remote_get_status.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_handoff(struct wal_remote *remote,
                                                        struct wal_store *store,
                                                        struct wal_slice session,
                                                        struct wal_error *error);

/* Permits appends to a session that has moved away again, and claims it from the store that has it;
 * what was added there is not brought. Threads: any. Errors: WAL_ENOTFOUND when it is not there, or
 * never moved; WAL_ECLAIMED when another machine claimed it at the same time. */
WAL_API WAL_MUST_USE enum wal_status wal_remote_take_back(struct wal_remote *remote,
                                                          struct wal_store *store,
                                                          struct wal_slice session,
                                                          struct wal_error *error);

/* Called for a session that has moved to a host; empty: to none yet. Texts hold until it
 * returns. */
typedef void wal_remote_moved_fn(void *ctx, struct wal_slice session, const char *host);

/*
 * Stores the list of the store's sessions in the remote, in place of the one before: the 1,000 that
 * were active last, without those in the trash. Call it after a push that stored something: one
 * GET, and a PUT when the list differs. It has titles, directories and the beginnings of first
 * messages, as the log has; that of an encrypted store is empty.
 *
 * Threads: any.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_put_sessions(struct wal_remote *remote,
                                                             struct wal_store *store,
                                                             struct wal_error *error);

/*
 * Called for each session of a list. host is where it was made. Of *session the id, cwd, project,
 * title, first_text, updated_ms, cut to the hour, and of the flags WAL_SESSION_MOVED are set.
 * Everything holds until it returns. A result other than 0 ends the call with WAL_ECALLBACK and
 * that number in error->sys_errno.
 */
typedef int32_t wal_remote_session_fn(void *ctx, const uint8_t uuid[16], const char *host,
                                      const struct wal_session_info *session);

/*
 * Lists the sessions of a store as of the last wal_remote_put_sessions, newest first: one GET,
 * whatever the size of the store. uuid has 16 bytes; null: of all stores that are there, one after
 * the other, with a LIST for each.
 *
 * Threads: any. Errors: WAL_ENOTFOUND when there is no list; WAL_ECORRUPT when one is damaged.
 */
WAL_API WAL_MUST_USE enum wal_status wal_remote_list_sessions(struct wal_remote *remote,
                                                              const uint8_t *uuid,
                                                              wal_remote_session_fn *each,
                                                              void *ctx, struct wal_error *error);

struct wal_remote_moves;

/* Watches the claims of a store's sessions. Close *moves before the store and the remote. Threads:
 * any. Errors: WAL_EINVAL. */
WAL_API WAL_MUST_USE enum wal_status wal_remote_moves_open(struct wal_remote *remote,
                                                           struct wal_store *store,
                                                           struct wal_remote_moves **moves,
                                                           struct wal_error *error);

/* Finds the sessions that other machines have claimed since the last check, and refuses appends to
 * them from now on. One LIST for each 1,000 claims, and a GET for each that this handle has not
 * seen. moved may be null. Threads: one at a time per handle. Errors: WAL_ECORRUPT or WAL_EVERSION
 * when a claim cannot be read: the others are done. */
WAL_API WAL_MUST_USE enum wal_status wal_remote_moves_check(struct wal_remote_moves *moves,
                                                            wal_remote_moved_fn *moved, void *ctx,
                                                            struct wal_error *error);

/* Closes the handle. moves may be null. */
WAL_API void wal_remote_moves_close(struct wal_remote_moves *moves);

#ifdef __cplusplus
}
#endif

#endif
