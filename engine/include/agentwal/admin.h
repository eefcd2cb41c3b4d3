/*
 * agentwal/admin.h - administration of stores and sessions: migration, accepted
 * damage, claims and their list. The conventions of agentwal.h apply.
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
 * Migrates the store at path to this library's format version; does nothing if
 * it has that version.
 *
 * Each step is atomic. If a step fails or the process dies, the store keeps its
 * old version, stays readable and refuses writes with WAL_EVERSION; calling
 * again continues. options are those of wal_open and may be null; result may be
 * null. No handle on the store may be open in this process.
 *
 * Threads: any. Errors: those of wal_open and wal_append. SPEC.md, Versions and
 * migration.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_store_migrate(const char *path, const struct wal_open_options *options,
                  struct wal_migrate_result *result, struct wal_error *error);

/*
 * Migrates a session to the schema version `to`, one version at a time.
 *
 * fn is called with now->schema_version being the version before; each step is
 * one atomic durable record. fn may be null: only the step to version 1 is
 * known then. result may be null. Steps done before a failure remain.
 *
 * Threads: any. Errors: WAL_ESCHEMA when the session is newer than `to`, or a
 * null fn does not know the step; those of wal_session_update.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_migrate(struct wal_session *session, uint32_t to, wal_update_fn *fn,
                    void *ctx, struct wal_migrate_result *result,
                    struct wal_error *error);

/* Permits writes to the store's own documents again after damage lost some of
 * them. walcheck still reports the loss. Threads: any. Errors: those of
 * wal_append. */
WAL_API WAL_MUST_USE enum wal_status
wal_store_accept_damage(struct wal_store *store, struct wal_error *error);

/* Permits appends to a session again after damage lost some of its entries.
 * walcheck still reports the loss. Threads: any. Errors: those of
 * wal_append. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_accept_damage(struct wal_session *session, struct wal_error *error);

/*
 * Claims the session for this handle, so that others learn which process works
 * in it.
 *
 * A claim is advisory: appends of others are not refused. It ends with
 * wal_session_unclaim, with the handle, or with the process. Claiming again
 * succeeds.
 *
 * Threads: any. Errors: WAL_ECLAIMED when another handle has it (error->holder
 * is its process), WAL_ELIMIT. SPEC.md, Claims.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_session_claim(struct wal_session *session, struct wal_error *error);

/* Ends the claim of this handle, if it has one. Threads: any. */
WAL_API WAL_MUST_USE enum wal_status
wal_session_unclaim(struct wal_session *session, struct wal_error *error);

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
 * Lists the claims of sessions as they are now, by session number; those of
 * this process too, also of its other handles on the store.
 *
 * A claim counts while its lock is held, so that a killed process has none. A
 * claim that is made or ended during the call may be listed or not; one on a
 * session that was deleted is not. A read-only handle sees the claims when it
 * may read LOCK. Close *cursor with wal_claim_cursor_close.
 *
 * Threads: any. Errors: WAL_EREADONLY when LOCK may not be read,
 * WAL_ELOCKFILE. SPEC.md, Claims.
 */
WAL_API WAL_MUST_USE enum wal_status
wal_claim_cursor_open(struct wal_store *store, struct wal_claim_cursor **cursor,
                      struct wal_error *error);

/* Fills *claim with the next claim, or returns WAL_END. Slices hold until the
 * next call on the cursor, or its close. Threads: one at a time. */
WAL_API WAL_MUST_USE enum wal_status
wal_claim_cursor_next(struct wal_claim_cursor *cursor, struct wal_claim *claim,
                      struct wal_error *error);

/* Frees the cursor. cursor may be null. */
WAL_API void wal_claim_cursor_close(struct wal_claim_cursor *cursor);

#ifdef __cplusplus
}
#endif

#endif
