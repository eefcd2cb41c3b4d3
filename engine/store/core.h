/*
 * core.h - an open store: the log, the indexes that follow it, and the lock
 * between those who change them and those who read (SPEC.md 4).
 *
 * Locks: `state` is held for writing by whoever applies records (a builder
 * under the lease, or a reader that catches up) and by whoever loads an index;
 * for reading by everybody else. It comes after the committer's mutex and
 * before nothing.
 */
#ifndef AGENTWAL_ENGINE_STORE_CORE_H
#define AGENTWAL_ENGINE_STORE_CORE_H

#include <pthread.h>

#include "engine/blob/blob_store.h"
#include "engine/commit/committer.h"
#include "engine/index/annotations.h"
#include "engine/index/branch.h"
#include "engine/index/catalogue.h"
#include "engine/index/documents.h"
#include "engine/index/tail_index.h"
#include "engine/log/log.h"
#include "engine/process/control.h"
#include "engine/store/index_set.h"
#include "engine/store/manifest.h"
#include "format/segment/record.h"

/* What is known of a session in use; of the store's own documents too. */
struct wal__branch_slot {
    struct wal__branch branch;
    struct wal__annotations annotations;
    struct wal__documents documents; /* loaded when they are asked for */
    bool documents_loaded;
    uint32_t pin_count; /* handles and iterators; under `state` */
    bool loaded;
    uint64_t last_used; /* for choosing what to drop */
};

struct wal__core {
    struct wal__env env;
    struct wal__random random;
    struct wal__control control;
    struct wal__manifest manifest;
    struct wal__log log;
    struct wal__committer committer;
    struct wal__op_pool ops;
    /* recovered after the log, which names its end */
    struct wal__blob_store blobs;
    pthread_rwlock_t state;
    uint32_t schema_version; /* that the caller writes; 0: any */
    bool strict;
    bool noop;       /* persistence off: only env is set (noop.h) */
    bool outdated;   /* of an older format version: read only till migrated */
    bool log_opened; /* the log stands */
    bool committer_ready; /* the committer too */
    struct wal__catalogue catalogue;
    uint64_t generation; /* of the indexes: each loading begins one */
    /* Rises with every redaction that is applied, and with every loading: what
     * readers know of redactions is then old. Written under `state`. */
    _Atomic uint64_t redaction_generation;
    bool rebuild_from_log; /* a derived file was damaged: use the log alone */
    struct wal__mapped_file snapshot; /* of the catalogue */
    uint64_t snapshot_position;
    uint64_t snapshot_sequence;
    struct wal__index_set indexes;
    /* The segment that is being written. */
    struct wal__tail_index tail;
    struct wal__index_slot tail_base; /* the file that it began with */
    uint64_t tail_text_max;           /* bound of its summaries' texts */
    /* Sessions in use. */
    struct wal__hashmap branch_map; /* number -> index in branches */
    struct wal__branch_slot **branches;
    uint32_t branch_count;
    uint32_t branch_capacity;
    uint64_t branch_clock;
    /* Sessions that are claimed by a handle of this store. */
    pthread_mutex_t claim_mutex;
    struct wal_session *claims;
    /* One thread at a time has the lock byte of rewinds. */
    pthread_mutex_t rewind_mutex;
    struct wal__scan_result found; /* at the tail, when opening */
    uint64_t found_segment;
};

/* What the interface's options come to. */
struct wal__core_options {
    const struct wal__heap *heap;
    /* used under the state lock; null: heap */
    const struct wal__heap *large_heap;
    const struct wal__io *io;
    struct wal_open_options open;
    size_t request_size; /* bytes that an operation keeps for its request */
    bool is_migration; /* a store of an older version is opened to be written */
};

/* Opens, creates, recovers, loads. core is zeroed by the caller, and is
 * deinit-able whatever happens. */
enum wal_status wal__core_init(struct wal__core *core, const char *path,
                               const struct wal__core_options *options,
                               struct wal_error *error) WAL_MUST_USE;
/* Commits, and where the files outlive the handle marks and writes indexes;
 * the first failure is answered. */
enum wal_status wal__core_shutdown(struct wal__core *core, bool is_persistent,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__core_deinit(struct wal__core *core);

/* Reading: catches up with other processes first. */
enum wal_status wal__core_read_lock(struct wal__core *core,
                                    struct wal_error *error) WAL_MUST_USE;
/* The same, for writing: where an index may have to be loaded. */
enum wal_status wal__core_write_lock(struct wal__core *core,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__core_unlock(struct wal__core *core);

/*
 * After WAL_ECORRUPT: the damage may be in a file that is derived from the
 * log. The first time this answers true, and the next lock has everything
 * loaded from the log and sound indexes alone: the caller tries once more.
 */
bool wal__core_invalidate_derived(struct wal__core *core,
                                  enum wal_status status);

/* claim.c: gives back what sessions that are still open claim. */
void wal__core_release_claims(struct wal__core *core);

/* await.c: as wal_store_wait; the arguments are checked. */
enum wal_status wal__core_wait(struct wal__core *core, uint64_t *sequence,
                               bool durable, int64_t timeout_ms,
                               struct wal_error *error) WAL_MUST_USE;
/* Of a reader that found no process alive: follows those that live now. */
enum wal_status wal__core_rejoin(struct wal__core *core,
                                 struct wal_error *error) WAL_MUST_USE;

/* load.c: everything the indexes hold, from the log and the files beside it;
 * also again, when they differ from the log. State lock for writing. */
enum wal_status wal__core_load_indexes(struct wal__core *core,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__core_unload_indexes(struct wal__core *core);

/* apply.c: the log's client. */
void wal__core_init_log_client(struct wal__core *core,
                               struct wal__log_client *client);

/* snapshot.c: the index of the tail as a segment's index, behind room for a
 * frame's header; ctx is the core, for struct wal__log_client. */
enum wal_status wal__core_encode_tail_index(void *ctx,
                                            struct wal__index_header *header,
                                            struct wal__buf *out) WAL_MUST_USE;
void wal__core_catalogue_path(const struct wal__core *core,
                              char out[WAL__PATH_MAX]);
/* Bytes of log since the catalogue's snapshot. */
uint64_t wal__core_log_growth(const struct wal__core *core);
enum wal_status wal__core_write_catalogue(struct wal__core *core,
                                          uint64_t position, uint32_t chain,
                                          struct wal_error *error) WAL_MUST_USE;
/* The tail's index and the catalogue, beside a log whose end is durable and
 * marked. */
enum wal_status wal__core_write_indexes(struct wal__core *core,
                                        struct wal_error *error) WAL_MUST_USE;

/* postings.c: every record of a session, oldest first. State lock for
 * writing. */
typedef enum wal_status wal__posting_fn(void *ctx,
                                        const struct wal__posting *posting,
                                        uint64_t position);
enum wal_status wal__core_visit_postings(struct wal__core *core,
                                         const struct wal__summary *summary,
                                         wal__posting_fn *each,
                                         void *ctx) WAL_MUST_USE;

/* describe.c: the summary of a session that was not deleted: WAL_ENOTFOUND
 * otherwise. State lock for reading. */
enum wal_status wal__session_find(struct wal__core *core, uint32_t number,
                                  struct wal__summary *summary,
                                  struct wal_error *error) WAL_MUST_USE;

/* describe.c: a SESSION record, decoded by its segment's version, and its
 * sequence number. Texts are in scratch, or in the segment's map. */
enum wal_status wal__core_read_session_record(
    struct wal__core *core, uint64_t position, struct wal__buf *scratch,
    struct wal__session_record *record, uint64_t *sequence,
    struct wal_error *error) WAL_MUST_USE;

/* branches.c: a slot's next record. A failure leaves it in need of loading:
 * the indexes are then built again from the log. */
enum wal_status wal__branch_slot_apply(struct wal__branch_slot *slot,
                                       const struct wal__posting *posting,
                                       uint64_t position) WAL_MUST_USE;
void wal__branch_slot_deinit(struct wal__branch_slot *slot);

/* documents.c: the documents that the session sees, WAL__STORE_NUMBER: the
 * store's. Null in *slot: there are none. State lock for writing. */
enum wal_status wal__core_load_documents(struct wal__core *core,
                                         uint32_t number,
                                         struct wal__branch_slot **slot,
                                         struct wal_error *error) WAL_MUST_USE;

/*
 * branches.c: the branch of a session, loaded when it is not there. Needs the
 * state lock for writing; the slot stays while pinned.
 */
enum wal_status wal__core_get_branch(struct wal__core *core, uint32_t number,
                                     struct wal__branch_slot **slot,
                                     struct wal_error *error) WAL_MUST_USE;
/* The same when it is loaded already, under either kind of lock; else null. */
struct wal__branch_slot *wal__core_cached_branch(struct wal__core *core,
                                                 uint32_t number);
void wal__core_evict_branches(struct wal__core *core);

/* An entry, wherever in the lineage it is. */
struct wal__entry_location {
    uint64_t position;
    uint64_t sequence;
    uint32_t session; /* that owns it */
    uint32_t stream;
    uint32_t ordinal; /* in the owner's stream */
};

/* lineage.c: by id in the session and, up to each fork point, in its
 * ancestors. WAL_ENOTFOUND. State lock for writing (ancestors may have to be
 * loaded). */
enum wal_status wal__core_find_id(struct wal__core *core, uint32_t number,
                                  struct wal__span id,
                                  struct wal__entry_location *found,
                                  struct wal_error *error) WAL_MUST_USE;
/* The same, of the session's own entries alone; slot is loaded. State lock for
 * reading. */
enum wal_status wal__core_find_own_id(struct wal__core *core,
                                      const struct wal__branch_slot *slot,
                                      struct wal__span id,
                                      struct wal__entry_location *found,
                                      struct wal_error *error) WAL_MUST_USE;
/* The id of the entry with this sequence number at the position, verified by
 * the header of its record and the hash there. In scratch, or in the segment's
 * map. Any thread. */
enum wal_status wal__core_read_id(struct wal__core *core, uint64_t position,
                                  uint64_t sequence, struct wal__buf *scratch,
                                  struct wal__span *id) WAL_MUST_USE;
/* By sequence, in the session and its ancestors. */
enum wal_status wal__core_find_sequence(struct wal__core *core, uint32_t number,
                                        uint32_t stream, uint64_t sequence,
                                        struct wal__entry_location *found,
                                        struct wal_error *error) WAL_MUST_USE;

/* A stretch of a path, in whichever session owns it. */
struct wal__path_range {
    uint32_t session;
    uint32_t first; /* ordinal in the stream */
    uint32_t count;
};

/* The whole path from an entry to its root: parts appended to out, newest
 * first. State lock for writing. */
enum wal_status wal__core_find_path(struct wal__core *core, uint32_t number,
                                    uint32_t stream, uint64_t sequence,
                                    struct wal__buf *out,
                                    struct wal_error *error) WAL_MUST_USE;

/* Whether the path from the entry `from` to its root has the entry `wanted`,
 * by sequence. State lock for writing. */
enum wal_status wal__core_is_on_path(struct wal__core *core, uint32_t number,
                                     uint32_t stream, uint64_t from,
                                     uint64_t wanted, bool *on,
                                     struct wal_error *error) WAL_MUST_USE;

/* How many entries of the lineage lie above this own entry of the session. A
 * branch knows it but for entries under an older one than its fork point.
 * State lock for writing. */
enum wal_status wal__core_entry_depth(struct wal__core *core, uint32_t number,
                                      uint32_t stream, uint64_t sequence,
                                      uint64_t *depth,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
