/*
 * agentwal/transfer.h - sessions from one store to another: merging stores, and bundles, files that
 * hold sessions (docs/machines.md). The conventions of agentwal.h apply.
 *
 * What is taken in: entries with their ids, parents, types, times, runs, meta and payloads, of all
 * streams and branches; heads; documents with their versions in order; checkpoints with the content
 * of their files; redactions; the id, times, title, directory, project, source, metadata and schema
 * version of the session; forks as forks. A session that a fork shares entries with comes along; if
 * it is deleted, or was not asked for, as one that is deleted. Sequence numbers and numbers of
 * versions are new. The content of redacted entries is left out. An unfinished rewind is not
 * repeated.
 *
 * Identity: a session is known by its id. One that the other store does not have is created. One
 * whose entries are the beginning of those here is continued, one that has the same or more stays
 * as it is, but for documents and heads that it does not have. One with other entries, another fork
 * point, or documents that were changed on both sides is refused: nothing of it is changed. One
 * that is in the trash there is refused, too; one that was deleted there is created again. What is
 * in the trash here counts as deleted.
 *
 * WAL_TRANSFER_KEEP_BOTH: a session that both stores went on with is not refused. The one here
 * becomes a branch there: a session "ID@NAME" that is a fork of the session ID at the last entry
 * that both have, with the further entries, the heads and the documents from here. ID itself is not
 * changed.
 *
 * Idempotence: a repeated call adds only what is new, also after a crash or a call that failed or
 * was stopped. Until a new session is complete its metadata is {"agentwalTransfer":"incomplete"}.
 */
#ifndef AGENTWAL_TRANSFER_H
#define AGENTWAL_TRANSFER_H

#include "../agentwal.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a session, or what a report is about. */
enum wal_transfer_kind {
    WAL_TRANSFER_CREATED = 0,   /* the session is new, or was incomplete */
    WAL_TRANSFER_CONTINUED = 1, /* something was added to the session */
    WAL_TRANSFER_UNCHANGED = 2, /* the session had all of it before */
    WAL_TRANSFER_REFUSED = 3,   /* nothing of the session was changed, or
                                 * reading it failed on the way */
    WAL_TRANSFER_DOCUMENT = 4,  /* a document of the store: the other store has
                                 * another value, which stays */
    WAL_TRANSFER_BRANCHED = 5   /* both went on: branch_id is a new session */
};

enum wal_transfer_flag {
    /* Keeps both where two stores went on with one session. */
    WAL_TRANSFER_KEEP_BOTH = 1u << 0,
    /* Writes a bundle of an encrypted store that is not encrypted. */
    WAL_TRANSFER_PLAIN = 1u << 1
};

/* Slices and the error hold until the callback returns. */
struct wal_transfer_report {
    uint32_t struct_size;
    uint32_t kind;  /* enum wal_transfer_kind */
    int32_t status; /* WAL_OK, or why it was refused: WAL_EEXISTS
                                  * for other content under an id */
    uint32_t reserved;
    struct wal_slice session_id;   /* empty: a document of the store */
    struct wal_slice key;          /* of that document */
    uint64_t entries;              /* that were added */
    uint64_t documents;            /* versions that were added */
    const struct wal_error *error; /* of the refusal, or null */
    /* The branch that has what is here, also when nothing was added to it; empty: the session
     * itself has it. */
    struct wal_slice branch_id;
};

/* Called for each session that was asked for, and for each refused one, when all are done, and for
 * each document of the store that differs. A result other than 0 ends the call with WAL_ECALLBACK
 * and that number in error->sys_errno. It may call this library. */
typedef int32_t wal_transfer_report_fn(void *ctx, const struct wal_transfer_report *made);

/* Called while records are copied, `done` of `total`. A result other than 0 stops the call like
 * that of wal_transfer_report_fn. */
typedef int32_t wal_transfer_progress_fn(void *ctx, uint64_t done, uint64_t total);

/* Replaces texts of what is copied, before it is: an entry's payload and meta, the value of a
 * version of a document, which has no second text, a session's title and metadata. It sets a slice
 * to change that text; what it sets holds until its next call. The texts are JSON again, but for
 * the title. It must not call this library. */
typedef void wal_transfer_rewrite_fn(void *ctx, struct wal_slice *text, struct wal_slice *second);

struct wal_transfer_options {
    uint32_t struct_size;
    uint32_t flags;                   /* enum wal_transfer_flag */
    const struct wal_slice *sessions; /* ids; null: all sessions, and in a merge
                                       * the documents of the store */
    uint64_t session_count;
    wal_transfer_progress_fn *progress; /* or null */
    wal_transfer_report_fn *report;     /* or null */
    void *ctx;                          /* of both */
    /* Of a bundle: where a temporary store is made and removed again; empty: the directory of a
     * bundle that is written; to read one, the one that TMPDIR names, else /tmp. What a process
     * that was killed left there is removed by the next call there. */
    struct wal_slice directory;
    /* For WAL_TRANSFER_KEEP_BOTH: names the branches, as the host that `from` is on does. The same
     * name continues the same branches. Empty: the first 8 digits of the id of `from`. */
    struct wal_slice branch_name;
    /* Or null. With it checkpoints are left out: files are not rewritten. The copy differs from
     * what it is of: a store that has that refuses it. */
    wal_transfer_rewrite_fn *rewrite;
    void *rewrite_ctx;
    /* Of a bundle: encrypts the one that is written; opens the one that is read, where it is
     * encrypted. It need not be a key of the store. Null: none. */
    const struct wal_key *key;
};

/* What a call did; also when it failed or was stopped. The library fills it. */
struct wal_transfer_result {
    uint32_t struct_size;
    uint32_t reserved;
    uint64_t created;             /* sessions, without those that came along deleted */
    uint64_t continued;           /* sessions that existed and got something */
    uint64_t unchanged;           /* sessions that had all of it */
    uint64_t refused;             /* sessions */
    uint64_t entries;             /* that were added */
    uint64_t documents;           /* versions that were added, with those of checkpoints
                         * and of the store */
    uint64_t differing_documents; /* of the store, left as they are */
    uint64_t bytes;               /* of the bundle file, or 0 */
    uint64_t branched;            /* sessions that were made as branches */
};

/*
 * Takes sessions of `from` into `to`.
 *
 * `from` may be read-only and in use: what is appended to it meanwhile may be missing, and a head
 * that is moved meanwhile is then at the nearest entry before that is copied. What its handle has
 * queued is written first. `to` may be in use too; a session that another process appends to at the
 * same time is refused or completed by the next call. Everything is durable when the call returns
 * WAL_OK. options and result may be null. Documents of the store are put where `to` has none of
 * that key, or where its versions are the beginning of those here; others that differ are reported.
 *
 * A session that is refused does not end the call: WAL_OK is returned, and the refusal is reported
 * and counted. Sessions that both stores have are read in both. Memory: 24 bytes for each record
 * that is copied, 80 for each of the longest session, 1 KiB for each session; payloads of more than
 * 4 MiB take disk space below `to` while they are copied.
 *
 * Threads: any. Errors: WAL_ENOTFOUND for a session that `from` does not have (error->actual is its
 * id), with nothing changed; WAL_EINVAL when both are one store; WAL_EREADONLY, WAL_ECALLBACK,
 * WAL_EIO, WAL_ENOSPACE and those of wal_append, after which what was copied remains.
 */
WAL_API WAL_MUST_USE enum wal_status wal_store_merge(struct wal_store *from, struct wal_store *to,
                                                     const struct wal_transfer_options *options,
                                                     struct wal_transfer_result *result,
                                                     struct wal_error *error);

/*
 * Writes sessions of a store to a bundle, a file at path that must not exist.
 *
 * The file is written under a temporary name, synced and renamed, so that path is a whole bundle or
 * does not exist. It needs twice its size on disk meanwhile. Documents of the store do not belong
 * to a bundle. options and result may be null.
 *
 * Threads: any. Errors: WAL_EEXISTS when path exists, WAL_EACCESS, WAL_ENOSPACE, WAL_EIO;
 * WAL_EDAMAGED or WAL_ECORRUPT when a session cannot be read, with no file written; WAL_EKEY when
 * the store is encrypted, and options have neither a key nor WAL_TRANSFER_PLAIN; those of
 * wal_store_merge.
 */
WAL_API WAL_MUST_USE enum wal_status wal_bundle_write(struct wal_store *store,
                                                      struct wal_slice path,
                                                      const struct wal_transfer_options *options,
                                                      struct wal_transfer_result *result,
                                                      struct wal_error *error);

/*
 * Takes the sessions of the bundle at path into a store, as wal_store_merge does from the store
 * that the bundle was written from.
 *
 * Every byte of the bundle is checked before the store is changed: nothing of one that is cut or
 * damaged is taken in. options and result may be null.
 *
 * Threads: any. Errors: WAL_ENOTFOUND and WAL_EACCESS for path; WAL_ENOTFILE; WAL_EINVAL when it is
 * not a bundle; WAL_EVERSION for a newer version, with both in the text; WAL_ECORRUPT with the
 * offset when it is cut or damaged; WAL_EKEY when it is encrypted, and not by the key of the
 * options; those of wal_store_merge.
 */
WAL_API WAL_MUST_USE enum wal_status wal_bundle_read(struct wal_store *store, struct wal_slice path,
                                                     const struct wal_transfer_options *options,
                                                     struct wal_transfer_result *result,
                                                     struct wal_error *error);

/* Returns 1 when the file at path begins as a bundle does, of any version, else
 * 0. Threads: any. */
WAL_API int32_t wal_bundle_detect(struct wal_slice path);

#ifdef __cplusplus
}
#endif

#endif
