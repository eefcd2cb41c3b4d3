/*
 * core.h - an open store: the log, the indexes built from it, and the lock
 * between the threads that change the indexes and those that read them (SPEC.md
 * 4).
 *
 * Locks: `state` is held for writing by a thread that applies records (a leader that has the append
 * lock, or a reader that catches up) or loads an index, and for reading by all others. It is taken
 * after the committer's mutex and is the last lock in that order.
 */
#ifndef AGENTWAL_ENGINE_STORE_CORE_H
#define AGENTWAL_ENGINE_STORE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "engine/base/struct_size.h"
#include "engine/log/commit.h"
#include "engine/log/control.h"
#include "engine/log/log.h"
#include "engine/store/blob_store.h"
#include "engine/store/branch.h"
#include "engine/store/catalogue.h"
#include "engine/store/documents.h"
#include "engine/store/index_set.h"
#include "engine/store/input_text.h"
#include "engine/store/lineage_list.h"
#include "engine/store/manifest.h"
#include "engine/store/tail_index.h"
#include "format/segment/record.h"

/* The indexes of one session in use, or of the store's own documents. */
struct wal__branch_slot {
    struct wal__branch branch;
    struct wal__annotations annotations;
    struct wal__documents documents; /* loaded on first use */
    bool documents_loaded;
    uint32_t fork_owner; /* of the fork point; 0: none */
    uint32_t pin_count;  /* pinned slots are not evicted; under `state` */
    bool loaded;
    uint64_t last_used; /* value of branch_clock, for eviction */
};

struct wal__core;

/* A snapshot of the catalogue that is being written (catalogue_file.c). */
struct wal__fold {
    struct wal__catalogue image;
    struct wal__catalogue_header header;
    uint64_t generation; /* of the indexes at the freeze */
    bool pending;
    bool is_at_snapshot; /* the snapshot stops where the segment ended, and was
                          * taken before it did */
    uint32_t slots_min;  /* fewer changed sessions are not worth a file */
    uint32_t loaded_max; /* bytes of sessions that a compaction has in memory
                          * before it writes them while it loads */
    uint32_t sync_step;  /* bytes written between two syncs */
    /* The thread that writes it. */
    pthread_t thread;
    bool has_thread;      /* to be joined */
    _Atomic bool is_done; /* the thread changes nothing any more */
    _Atomic bool stop;    /* the store is closing */
    /* Locks `state` for writing, after catching up (wal__core_write_lock). */
    enum wal_status (*lock)(struct wal__core *core, struct wal_error *error);
};

/* A claim of a session (SPEC.md 4.1), in its handle; under claim_mutex. */
struct wal__claim {
    struct wal__claim *next;
    uint32_t session;
    uint32_t slot;
    bool is_held;
};

struct wal__core {
    struct wal__env env;
    struct wal__random random;
    struct wal__time_cache times;
    struct wal__control control;
    struct wal__manifest manifest;
    struct wal__log log;
    struct wal__committer committer;
    struct wal__op_pool ops;
    /* Opened after the log: the log's last COMMIT names the durable end of the blob stream. */
    struct wal__blob_store blobs;
    pthread_rwlock_t state;
    uint32_t schema_version; /* of the caller; 0: any */
    bool strict;
    _Atomic bool ships;   /* this handle ships the log */
    _Atomic bool closed;  /* wal_close was called (handles.c) */
    bool outdated;        /* older format version: read only until migrated */
    bool log_opened;      /* log was initialised */
    bool committer_ready; /* committer was initialised */
    bool is_overtaken;    /* a backup to it committed while it was opened */
    struct wal__catalogue catalogue;
    uint64_t generation; /* raised by each load of the indexes */
    /* Raised by every redaction that is applied or undone, and by every load of the indexes: what a
     * reader knows of redactions is then stale. Written under `state`. */
    _Atomic uint64_t redaction_generation;
    /* Bits that wal__core_require_feature found or put in MANIFEST: they stay there. */
    _Atomic uint64_t required_features;
    /* A derived file was damaged: load from the log, not from the snapshot. */
    bool rebuild_from_log;
    uint64_t catalogue_inode;   /* when the indexes were loaded; 0: none */
    uint64_t snapshot_position; /* of the catalogue's snapshot; 0: none */
    uint64_t snapshot_sequence;
    struct wal__fold fold;
    bool is_incomplete;      /* the indexes: loading them, or that failed */
    bool writes_catalogue;   /* the next load writes what it merged */
    uint64_t known_position; /* end of the log that a catalogue of any version
                              * names; 0: none */
    struct wal__index_set indexes;
    /* The tail segment. */
    struct wal__tail_index tail_index;
    struct wal__index_slot tail_base; /* index file it was loaded from */
    uint64_t tail_text_max;           /* bound on bytes of summary texts */
    /* Sessions in use. */
    /* session number -> rank in branches */
    struct wal__hashmap branch_map;
    struct wal__branch_slot **branches;
    uint32_t branch_count;
    uint32_t branch_capacity;
    uint32_t branch_evict_at; /* count at which eviction looks again */
    uint64_t branch_clock;
    /* The ancestors of forks, by the session that owns the fork point. */
    struct wal__lineage_entry *lineages;
    uint32_t lineage_count;
    /* Sessions claimed by a handle of this store, under claim_mutex. */
    pthread_mutex_t claim_mutex;
    struct wal__claim *claims;
    /* Held with the catalogue lock byte: one thread at a time. */
    pthread_mutex_t catalogue_mutex;
    /* Held with the rewind lock byte: one thread of the process at a time. */
    pthread_mutex_t rewind_mutex;
    /* Held with the compaction lock byte, likewise; never waited for. */
    pthread_mutex_t compact_mutex;
    /* What recovery found at the tail when the store was opened. */
    struct wal__scan_result open_scan_facts;
    uint64_t open_scan_segment;
    /* The live handles, and 1 until wal_close (handles.c). */
    _Atomic uint32_t references;
    /* Frees the struct that the core is in; NULL: its owner does. */
    void (*destroy)(struct wal__core *core);
};

/* Options of an open, derived from those of the public API. */
struct wal__core_options {
    const struct wal__heap *heap;
    /* Used under the state lock only; NULL: heap. */
    const struct wal__heap *large_heap;
    const struct wal__io *io;
    struct wal_open_options open;
    /* Bytes reserved in an operation for its request. */
    size_t request_size;
    bool is_migration; /* open a store of an older version for writing */
};

/* Opens or creates the store, recovers its log and loads its indexes. core is zeroed by the caller;
 * wal__core_detach and wal__core_deinit are valid after success and failure. core->is_overtaken
 * after it: what was read may be of two moments; it is to be opened again. */
enum wal_status wal__core_init(struct wal__core *core, const char *path,
                               const struct wal__core_options *options,
                               struct wal_error *error) WAL_MUST_USE;
/* Flushes and syncs all operations. When is_persistent, also writes the commit mark and, if no
 * other process has the store open, the derived files. Returns the first failure. */
enum wal_status wal__core_shutdown(struct wal__core *core, bool is_persistent,
                                   struct wal_error *error) WAL_MUST_USE;
/* Releases what other processes see and what the system limits: claims, locks, descriptors,
 * threads; and the indexes. What live handles need remains: the maps that their slices point to,
 * and the pool of operations. */
void wal__core_detach(struct wal__core *core);
/* Frees the rest, after wal__core_detach. */
void wal__core_deinit(struct wal__core *core);

/*
 * handles.c: the live handles of a store. Every handle that a caller holds (session, cursor,
 * ticket, blob, blob writer; a view holds a session) is counted when it is made and when it is
 * closed, so that the store's memory outlives them. What a handle owns is not counted. Any thread.
 */
void wal__core_retain(struct wal__core *core);
/* A handle was freed. Destroys the core after wal_close and the last handle; never in a child of
 * fork(). core may be NULL, and is not valid afterwards. */
void wal__core_release(struct wal__core *core);
/* The same for wal_close, which must have detached the core: marks it closed and returns the number
 * of live handles. */
uint32_t wal__core_release_store(struct wal__core *core);
/* Returns WAL_ECLOSED. */
enum wal_status wal__core_fail_closed(const struct wal__core *core, struct wal_error *error);

/* WAL_ECLOSED after wal_close. Relaxed: no other thread is in a call while the store is closed. */
static inline enum wal_status wal__core_check_open(const struct wal__core *core,
                                                   struct wal_error *error)
{
    return atomic_load_explicit(&core->closed, memory_order_relaxed)
               ? wal__core_fail_closed(core, error)
               : WAL_OK;
}

/* The inode of the catalogue that there is now, for a reader; 0: there is none, or the store is
 * writable. */
uint64_t wal__core_catalogue_inode(const struct wal__core *core);
/* Closes the files, and their maps, that compactions of any process replaced and nobody of this
 * process uses. Does nothing where there are none. The background thread calls it each second.
 * Without a lock. */
void wal__core_close_replaced(struct wal__core *core);

/* Locks `state` for reading after catching up with other processes. On failure the lock is not
 * held. */
enum wal_status wal__core_read_lock(struct wal__core *core, struct wal_error *error) WAL_MUST_USE;
/* The same for writing: needed wherever an index may have to be loaded. */
enum wal_status wal__core_write_lock(struct wal__core *core, struct wal_error *error) WAL_MUST_USE;
/* The same for what was found before: where the rest of the log cannot be read, the indexes remain
 * as they are, if they are whole and of present files. */
enum wal_status wal__core_write_lock_or_stale(struct wal__core *core,
                                              struct wal_error *error) WAL_MUST_USE;
void wal__core_unlock(struct wal__core *core);

/*
 * Looks again after WAL_ECORRUPT, without the state lock. Compaction may have replaced a file
 * between finding a record and reading it, or an index before it was mapped: what was read says
 * then nothing about the present files. Loads the indexes of these if they are others. Returns true
 * when the call has to be repeated: always the first time, then as long as the indexes are others
 * than those that the repeated call began with. After false, the present files are damaged.
 * *looked, 0 at first, is of the call; positions are found again.
 */
bool wal__core_look_again(struct wal__core *core, uint64_t *looked);
/* Looks at the files of both streams, and loads the indexes of those that a compaction replaced,
 * also one that was killed. A failure is reported by the next lock. Without a lock. */
void wal__core_adopt_files(struct wal__core *core);
/* wal__core_look_again; where nothing was replaced, the damage may be in a file that is derived
 * from the log: once, everything is loaded from the log and valid segment indexes. False for other
 * statuses. */
bool wal__core_invalidate_derived(struct wal__core *core, enum wal_status status, uint64_t *looked);
/* The same for a reader that found the record: `is_damaged` where the indexes say
 * (wal__log_has_record), they are not made anew, which would leave it out, and only files that were
 * replaced are looked for. */
bool wal__core_read_again(struct wal__core *core, enum wal_status status, bool is_damaged,
                          uint64_t *looked);

/* Adds feature bits to the store (wal__manifest_require); does nothing, and takes no lock, when it
 * did so before. Durable. Without a lock. */
enum wal_status wal__core_require_feature(struct wal__core *core, uint64_t features,
                                          struct wal_error *error) WAL_MUST_USE;

/* Takes the compaction lock for this thread, or fails with WAL_ELOCKED (wal__compact_lock_acquire):
 * until it is released nothing of the store is erased. Any thread, without a lock. */
enum wal_status wal__core_compact_lock(struct wal__core *core,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__core_compact_unlock(struct wal__core *core);

/* handles.c: claims a session for a handle; does nothing when the handle has the claim.
 * WAL_ECLAIMED. */
enum wal_status wal__core_claim(struct wal__core *core, struct wal__claim *claim, uint32_t session,
                                struct wal_error *error) WAL_MUST_USE;
void wal__core_release_claim(struct wal__core *core, struct wal__claim *claim);
/* Releases the claims of sessions that are still open. */
void wal__core_release_claims(struct wal__core *core);

/* What every public function checks first (agentwal.h, Conventions): the handle is there, which a
 * null core denies, and belongs to this process. */
enum wal_status wal__check_process(const struct wal__core *core,
                                   struct wal_error *error) WAL_MUST_USE;
/* And its store is open. */
enum wal_status wal__check_core(const struct wal__core *core, struct wal_error *error) WAL_MUST_USE;
/* And there is a struct to fill (wal__struct_check_output). */
enum wal_status wal__check_output(const struct wal__core *core, const struct wal__struct *type,
                                  const void *output, struct wal_error *error) WAL_MUST_USE;
/* And may write. */
enum wal_status wal__check_writable(const struct wal__core *core,
                                    struct wal_error *error) WAL_MUST_USE;

/* wait.c: implements wal_store_wait; the arguments are valid. */
enum wal_status wal__core_wait(struct wal__core *core, uint64_t *sequence, bool durable,
                               int64_t timeout_ms, struct wal_error *error) WAL_MUST_USE;
/* Waits until everything up to a higher number than *sequence
 * is stored elsewhere too; *sequence is then that number. WAL_EREMOTE: no
 * process ships the store; or the status that it reported meanwhile. WAL_EBUSY:
 * the time is over. */
enum wal_status wal__core_wait_shipped(struct wal__core *core, uint64_t *sequence,
                                       int64_t timeout_ms, struct wal_error *error) WAL_MUST_USE;
/* WAL_EREMOTE unless a process ships the store. */
enum wal_status wal__core_check_ships(struct wal__core *core, struct wal_error *error) WAL_MUST_USE;
/* For a reader that was opened while no other process was alive: attaches to the control page of
 * the processes that are alive now and reloads. Takes the state lock. */
enum wal_status wal__core_rejoin(struct wal__core *core, struct wal_error *error) WAL_MUST_USE;

/* index_load.c: loads all indexes from the log and the derived files; also used to reload when the
 * indexes differ from the log. State lock for writing. */
enum wal_status wal__core_load_indexes(struct wal__core *core,
                                       struct wal_error *error) WAL_MUST_USE;
void wal__core_unload_indexes(struct wal__core *core);

/* apply.c: fills *client with the callbacks of the log. */
void wal__core_init_log_client(struct wal__core *core, struct wal__log_client *client);

/* index_load.c: encodes the tail index as a segment index, after WAL__FRAME_SIZE zero bytes for a
 * frame header. ctx is the core, as in struct wal__log_client. */
enum wal_status wal__core_encode_tail_index(void *ctx, struct wal__index_header *header,
                                            struct wal__buf *out) WAL_MUST_USE;

/* catalogue_file.c */
void wal__core_catalogue_path(const struct wal__core *core, char out[WAL__PATH_MAX]);
/* Maps the catalogue file. *old: the position that a valid one of another version names, or 0.
 * WAL_ENOTFOUND, WAL_ECORRUPT, WAL_EIO, WAL_ENOMEM. */
enum wal_status wal__core_open_snapshot(struct wal__core *core, struct wal__snapshot **snapshot,
                                        uint64_t *old) WAL_MUST_USE;
/* Removes a catalogue file that a killed process did not complete. Of a process that is alone in
 * the store. */
void wal__core_remove_partial_catalogue(struct wal__core *core);
/* Removes the catalogue file, which the next one that opens the store does without, and what a
 * killed process left of one; waits for a process that writes one, at most 10 s: WAL_ELOCKED.
 * WAL_EIO. */
enum wal_status wal__core_drop_catalogue(struct wal__core *core,
                                         struct wal_error *error) WAL_MUST_USE;
/* Removes everything in index/, which is derived from the log; what another process makes meanwhile
 * may stay. WAL_EIO, WAL_ENOMEM. */
enum wal_status wal__clear_index(const struct wal__env *env, struct wal_error *error) WAL_MUST_USE;
/* Writes a catalogue file. deadline: the monotonic time in nanoseconds at which it is given up, of
 * a process that is alone in the store; 0: when the store is closing. WAL_EBUSY: it was given up,
 * or the file is of a later compaction; WAL_EEXISTS: another process, or thread, writes one.
 */
enum wal_status wal__core_write_catalogue(struct wal__core *core,
                                          const struct wal__catalogue *image,
                                          const struct wal__catalogue_header *header,
                                          uint64_t deadline) WAL_MUST_USE;
/* Bytes of log after the catalogue's snapshot, and of the snapshot. */
uint64_t wal__core_log_growth(const struct wal__core *core);
uint64_t wal__core_snapshot_size(const struct wal__core *core);
/* Writes the catalogue of all segments before `next`, whose sessions were merged, and nothing of
 * later ones; then frees their memory. Best effort. Of a load of the indexes. */
void wal__core_fold_base(struct wal__core *core, const struct wal__segment *next);
/* Starts a fold when many sessions have changed. The segment's successor is the tail, without
 * records. State lock for writing. */
void wal__core_fold_at_segment_end(struct wal__core *core, const struct wal__segment *ended);
/* Abandons a pending fold. State lock for writing. */
void wal__core_drop_fold(struct wal__core *core);
/* Ends the thread of a fold, after its present write; no other is started. Of the thread that
 * closes the store, without a lock. */
void wal__core_stop_fold(struct wal__core *core);

/* index_load.c */
/* Writes the index file of the tail and, when it has grown enough, the catalogue's snapshot. The
 * log's end must be durable and marked. */
enum wal_status wal__core_write_indexes(struct wal__core *core,
                                        struct wal_error *error) WAL_MUST_USE;

/* postings.c: the records of a session, newest first. State lock for writing, held from begin to
 * the last call. */
struct wal__posting_cursor {
    struct wal__core *core;
    uint32_t number;
    uint64_t from;           /* sequence */
    uint32_t tail;           /* posting of the tail index, + 1; 0: none left */
    const uint8_t *postings; /* of an index, ascending */
    uint32_t left;           /* of them */
    uint64_t segment;        /* that they are in */
    uint64_t next_segment;   /* before it; 0: none */
};
/* Begins at the newest record whose sequence is not above `from`. */
void wal__posting_cursor_begin(struct wal__posting_cursor *cursor, struct wal__core *core,
                               const struct wal__summary *summary, uint64_t from);
/* The next older record; WAL_END after the oldest. */
enum wal_status wal__posting_cursor_previous(struct wal__posting_cursor *cursor,
                                             struct wal__posting *posting,
                                             uint64_t *position) WAL_MUST_USE;

/* index_load.c: restores the summary of a deleted session that the snapshot omits, as of the end of
 * the newest segment before this one that has it. WAL_ENOTFOUND when none has. State lock for
 * writing. */
enum wal_status wal__core_restore_summary(struct wal__core *core, uint32_t number,
                                          uint64_t segment) WAL_MUST_USE;

/* postings.c: calls each for every record of a session, oldest first, until one call fails. State
 * lock for writing. */
typedef enum wal_status wal__posting_fn(void *ctx, const struct wal__posting *posting,
                                        uint64_t position);
enum wal_status wal__core_visit_postings(struct wal__core *core, const struct wal__summary *summary,
                                         wal__posting_fn *each, void *ctx) WAL_MUST_USE;
/* The same for what the tail segment has of a session, and for postings of an index. */
enum wal_status wal__core_visit_tail(const struct wal__core *core, uint32_t number,
                                     wal__posting_fn *each, void *ctx) WAL_MUST_USE;
enum wal_status wal__postings_visit(const uint8_t *postings, uint32_t count, uint64_t segment,
                                    wal__posting_fn *each, void *ctx) WAL_MUST_USE;

/* handles.c: the summary of a session, also of one in the trash;
 * WAL_ENOTFOUND when it was deleted. State lock for reading. */
enum wal_status wal__session_find(struct wal__core *core, uint32_t number,
                                  struct wal__summary *summary,
                                  struct wal_error *error) WAL_MUST_USE;

/* Fills *error for a session in the trash; returns WAL_ETRASHED. */
enum wal_status wal__session_fail_trashed(struct wal__span id, struct wal_error *error);

/* WAL_ECONFLICT when a session has another newest record than
 * the caller saw. Under the append lock, before the operation is applied. */
enum wal_status wal__session_check_sequence(const struct wal__summary *summary, uint64_t expected,
                                            struct wal_error *error) WAL_MUST_USE;

/* list.c of sessions: reads a SESSION record, decoded by its segment's version, and its sequence
 * number. Texts point into scratch or the segment's map. */
enum wal_status wal__core_read_session_record(struct wal__core *core, uint64_t position,
                                              struct wal__record_buf *scratch,
                                              struct wal__session_record *record,
                                              uint64_t *sequence,
                                              struct wal_error *error) WAL_MUST_USE;

/* branch.c: applies the session's next record to the slot, in log order. After a failure the slot
 * is incomplete; the indexes are then reloaded from the log. */
enum wal_status wal__branch_slot_apply(struct wal__branch_slot *slot,
                                       const struct wal__posting *posting,
                                       uint64_t position) WAL_MUST_USE;
void wal__branch_slot_deinit(struct wal__branch_slot *slot);

/* branch.c: loads the documents that a session sees; WAL__STORE_NUMBER:
 * those of the store. *slot is NULL when there are none. State lock for
 * writing. */
enum wal_status wal__core_load_documents(struct wal__core *core, uint32_t number,
                                         struct wal__branch_slot **slot,
                                         struct wal_error *error) WAL_MUST_USE;

/*
 * branch.c: the branch of a session, loaded when it is not cached. State
 * lock for writing; the slot is valid until the next call unless it is pinned.
 */
enum wal_status wal__core_get_branch(struct wal__core *core, uint32_t number,
                                     struct wal__branch_slot **slot,
                                     struct wal_error *error) WAL_MUST_USE;
/* Loads the ids of the slot's own entries, without which no id is found in it; they stay loaded as
 * long as the slot. State lock for writing. */
enum wal_status wal__core_load_ids(struct wal__core *core, struct wal__branch_slot *slot,
                                   struct wal_error *error) WAL_MUST_USE;
/* The cached slot, which may not be loaded, or NULL. State lock for reading or writing. */
struct wal__branch_slot *wal__core_cached_branch(struct wal__core *core, uint32_t number);
/* Frees all unpinned slots and empties the pinned ones. State lock for writing. */
void wal__core_evict_branches(struct wal__core *core);

/*
 * lineage_list.c: the ancestors of a fork, the root first; empty when it is none. With with_ids the
 * id table is complete for this fork. Release *view with wal__lineage_release. Evicts no slot.
 * State lock for writing.
 */
enum wal_status wal__core_get_lineage(struct wal__core *core, const struct wal__branch_slot *slot,
                                      bool with_ids, struct wal__lineage_view *view,
                                      struct wal_error *error) WAL_MUST_USE;
/* The same when it is cached and its id table complete; else false. Not to be released; valid as
 * long as the state lock is held. State lock for reading. */
bool wal__core_cached_lineage(const struct wal__core *core, const struct wal__branch_slot *slot,
                              struct wal__lineage_view *view);
/* Empties the cache. State lock for writing. */
void wal__core_drop_lineages(struct wal__core *core);

/* Location of an entry in the session's lineage. */
struct wal__entry_location {
    uint64_t position;
    uint64_t sequence;
    uint32_t session; /* owner */
    uint32_t stream;  /* as in wal__stream: above 255 it is a delta, which no
                       * record may name but a redaction */
    uint32_t ordinal; /* in the owner's stream, from 0 */
};

/* Finds an entry by id in the session and, up to each fork point, in its ancestors. WAL_ENOTFOUND.
 * State lock for writing (ancestors may have to be loaded). */
enum wal_status wal__core_find_id(struct wal__core *core, uint32_t number, struct wal__span id,
                                  struct wal__entry_location *found,
                                  struct wal_error *error) WAL_MUST_USE;
/* The same with what is loaded: WAL_ENOTFOUND, without an error, also when an index is missing.
 * State lock for reading. */
enum wal_status wal__core_find_cached_id(struct wal__core *core, uint32_t number,
                                         struct wal__span id, struct wal__entry_location *found,
                                         struct wal_error *error) WAL_MUST_USE;
/* Returns the status, and says that the entry is a delta, which cannot be named. */
enum wal_status wal__core_fail_delta(enum wal_status status, struct wal__span id,
                                     struct wal_error *error);
/* Reads the id of the entry with this sequence number at the position, verified by the record's
 * header and hash. *id points into scratch or the segment's map. Any thread; no lock. */
enum wal_status wal__core_read_id(struct wal__core *core, uint64_t position, uint64_t sequence,
                                  struct wal__record_buf *scratch,
                                  struct wal__span *id) WAL_MUST_USE;
/* Finds an entry by sequence number in the session and its ancestors. State lock for writing. */
enum wal_status wal__core_find_sequence(struct wal__core *core, uint32_t number, uint32_t stream,
                                        uint64_t sequence, struct wal__entry_location *found,
                                        struct wal_error *error) WAL_MUST_USE;

/* The same with what is loaded, from a loaded slot of the session; false also when an index is
 * missing. State lock for reading. */
bool wal__core_find_cached_sequence(struct wal__core *core, const struct wal__branch_slot *slot,
                                    uint32_t stream, uint64_t sequence,
                                    struct wal__entry_location *found);

/* Consecutive entries of a path that one session owns. */
struct wal__path_range {
    uint32_t session;
    uint32_t first; /* ordinal in the stream */
    uint32_t count;
};

/* The whole path from an entry to its root: ranges (struct wal__path_range) appended to out, newest
 * first. State lock for writing. */
enum wal_status wal__core_find_path(struct wal__core *core, uint32_t number, uint32_t stream,
                                    uint64_t sequence, struct wal__buf *out,
                                    struct wal_error *error) WAL_MUST_USE;

/* Sets *on_path when the path from the entry `from` to its root contains the entry `target`; both
 * are sequence numbers. State lock for writing. */
enum wal_status wal__core_is_on_path(struct wal__core *core, uint32_t number, uint32_t stream,
                                     uint64_t from, uint64_t target, bool *on_path,
                                     struct wal_error *error) WAL_MUST_USE;

/* The number of ancestors of an entry that the session sees, across the lineage; counted run by run
 * where a branch has no exact depth (an entry under one older than its fork point). State lock for
 * writing. */
enum wal_status wal__core_entry_depth(struct wal__core *core, uint32_t number, uint32_t stream,
                                      uint64_t sequence, uint64_t *depth,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
