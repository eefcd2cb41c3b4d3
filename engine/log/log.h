/*
 * log.h - a log of a store, the log of sessions or the pack of blobs: its segment chain, its end,
 * and how it is read (SPEC.md 3). The records are applied to the indexes of its client, each once,
 * in log order.
 *
 * Related: group.h writes, leader.h serialises the writers of all
 * processes, rotate.h makes segments, index_file.h stores indexes.
 *
 * Threads: init, attach, recover and close by one thread. rebuild_index and catch_up by one thread
 * at a time, with the client's state lock for writing; take_over, heal and reserve also with the
 * append lock. Reading, syncing and poison by any thread.
 *
 * Invariant: unless needs_reload, `end` is the position of the tail segment's end, and everything
 * before it has been applied, nothing after it.
 */
#ifndef AGENTWAL_ENGINE_LOG_LOG_H
#define AGENTWAL_ENGINE_LOG_LOG_H

#include <pthread.h>

#include "engine/base/heap.h"
#include "engine/base/map.h"
#include "engine/log/control.h"
#include "engine/log/encrypt.h"
#include "engine/log/segment.h"
#include "format/index/index_fmt.h"

struct wal__group;

enum { WAL__LOG_ID_LOG = 0, WAL__LOG_ID_PACK = 1 };

/* The largest COMMIT frame, in bytes. */
enum { WAL__COMMIT_SPAN_MAX = WAL__FRAME_SIZE + 56 + 4 * WAL__COMMIT_SESSIONS_MAX };

/* Loads of a log's indexes before an operation fails: compactions replace segments meanwhile. */
enum { WAL__LOADS_MAX = 64 };

/* A record of the log as the client's apply receives it. */
struct wal__log_record {
    const struct wal__frame *frame;
    struct wal__span payload; /* borrowed for the call */
    uint64_t position;
    int64_t clock_ms; /* of its group's COMMIT */
    uint32_t version; /* format version of its segment */
};

/* The owner of the indexes that follow a log. Called with its state lock held for writing. */
struct wal__log_client {
    void *ctx;
    /* Adds the next record to the indexes. record is borrowed for the call. */
    enum wal_status (*apply)(void *ctx, const struct wal__log_record *record);
    /* A session lost a record to damage; 0: the session is unknown. */
    enum wal_status (*on_record_lost)(void *ctx, uint32_t session);
    /* apply refused a record of a replay with WAL_ECORRUPT: a record that it refers to was lost to
     * damage. */
    enum wal_status (*on_orphan)(void *ctx, const struct wal__log_record *record);
    /* Encodes the index of the segment that ends (SPEC.md 2.12, 2.20) to
     * *out, after room for a frame header; fills the counts and last_session
     * of *header, whose other fields are set. */
    enum wal_status (*encode_index)(void *ctx, struct wal__index_header *header,
                                    struct wal__buf *out);
    /* An upper bound of the encoded size in bytes, when `postings` more records of at most
     * `sessions` sessions with `texts` bytes of text are applied. */
    uint64_t (*index_bound)(void *ctx, uint32_t postings, uint32_t sessions, uint64_t texts);
    /* The segment has ended and a new one begun: the client empties its tail index. `index` is the
     * encoded index of a segment without a SEAL, to be stored as an index file; otherwise NULL. */
    enum wal_status (*on_segment_end)(void *ctx, const struct wal__segment *segment,
                                      const struct wal__buf *index);
};

struct wal__segment_table {
    struct wal__segment_table *retired; /* the one before it */
    uint32_t count;
    struct wal__segment *segments[]; /* the chain, by ascending id */
};

struct wal__log {
    const struct wal__env *env;
    struct wal__control *control;
    struct wal__control_log *shared;
    struct wal__log_client client;
    uint32_t log_id; /* WAL__LOG_ID_LOG, WAL__LOG_ID_PACK */
    uint32_t class;
    const char *directory;
    uint8_t uuid[16];
    uint32_t group_align;
    _Atomic(struct wal__segment_table *) table;
    /* The end of what this process has applied. */
    struct wal__segment *tail_segment; /* NULL: the log is empty */
    _Atomic uint64_t end;              /* position */
    uint64_t last_sequence;
    uint64_t commit_offset; /* of the tail's last COMMIT, 0: none */
    bool marked;            /* the last COMMIT is a commit mark, or equivalent:
                             * it records that all before it is durable */
    uint64_t last_epoch;    /* in the last COMMIT */
    uint64_t epoch;         /* of this process */
    int64_t clock_ms;
    uint32_t chain;
    uint64_t highest_id;   /* highest segment id seen in the directory */
    uint64_t pack_durable; /* of the log of sessions: the highest durable end of
                            * the pack that a COMMIT names */
    /* Missing or damaged segments that the chain of the pack skips. */
    uint32_t lost_segment_count;
    bool newest_segment_lost;     /* the newest of them came after the tail */
    bool has_unlinked;            /* attach found segments that the chain does not name */
    struct wal__segment *retired; /* out of the chain; still open */
    _Atomic bool has_retired;
    _Atomic uint32_t holds; /* that keep all retired segments and tables */
    /* Of an encrypted log, for the holder of the append lock: the tail's cipher, and the frames of
     * the group being built as they are stored. */
    struct wal__cipher cipher;
    struct wal__heap_arena encrypted;
    /* The group being built, or NULL. Its records are applied before they are written, and
     * resolving the next operation may read them. Of the holder of append lock and state lock. */
    const struct wal__group *pending_group;
    bool append_lock_held;           /* by this process; of the holding thread */
    bool append_lock_retained;       /* for the next leader of this process */
    bool must_rotate;                /* recovery found a tail that takes no more groups */
    bool has_unfinished;             /* the directory has files of a compaction */
    bool needs_reload;               /* the indexes differ from the log: rebuild them */
    uint32_t rewrites;               /* value of shared->rewrites that the table is of */
    struct wal__scan_result facts;   /* of the last scan of the tail */
    uint64_t facts_segment_id;       /* the tail that recovery scanned; or 0 */
    pthread_mutex_t sync_mutex;      /* before the sync lock byte */
    _Atomic uint64_t last_sync_ns;   /* duration of the last small sync here */
    pthread_mutex_t prealloc_mutex;  /* before the preallocation lock byte */
    struct wal__write_map write_map; /* of the tail segment */
    _Atomic uint64_t groups;
    _Atomic uint64_t syncs;
};

/* Initialises *log. env and control, which is open, outlive it; *client is copied. */
void wal__log_init(struct wal__log *log, const struct wal__env *env, struct wal__control *control,
                   uint32_t log_id, const uint8_t uuid[16], uint32_t group_align,
                   const struct wal__log_client *client);

/*
 * Finds the segments by the chain of predecessors and opens them. Cheap: reads no frame except
 * OPEN. WAL_ECORRUPT when one is missing or belongs to another store; the pack skips such a
 * segment.
 */
enum wal_status wal__log_attach(struct wal__log *log, struct wal_error *error) WAL_MUST_USE;
/* Closes the files of all segments, and unmaps those that nobody uses. Nothing is read or written
 * afterwards. */
void wal__log_close_files(struct wal__log *log);
void wal__log_close(struct wal__log *log);

/*
 * Segments that are out of the chain stay open for those who use them. A thread that keeps a
 * pointer to a segment, or into its map, has one of: the chain's lock; the right to lead; a use of
 * that segment; a hold, which keeps all. Uses and holds may be taken without any lock.
 */
static inline void wal__log_hold(struct wal__log *log)
{
    atomic_fetch_add(&log->holds, 1);
}
static inline void wal__log_drop_hold(struct wal__log *log)
{
    atomic_fetch_sub(&log->holds, 1);
}
/* As wal__log_segment, and uses it. */
struct wal__segment *wal__log_use_segment(struct wal__log *log, uint64_t id);
void wal__log_end_use(struct wal__segment *segment);
/* Takes a segment out of the chain, which no longer has it. */
void wal__log_retire(struct wal__log *log, struct wal__segment *segment);
/* Closes the retired segments that nobody uses, and the map that the log was written by if it is of
 * one that is no longer the tail. Of the thread that may lead, with the chain's lock for
 * writing. */
void wal__log_close_retired(struct wal__log *log);

/* Returns the id of the newest live segment, or 0: that of the written end, so that one atomic
 * store publishes both. */
uint64_t wal__log_newest_id(const struct wal__log *log);
uint32_t wal__log_segment_count(const struct wal__log *log);
/* rank < wal__log_segment_count, ascending by id. */
struct wal__segment *wal__log_segment_at(const struct wal__log *log, uint32_t rank);
/* Returns NULL when the id is not in the chain. */
struct wal__segment *wal__log_segment(const struct wal__log *log, uint64_t id);
/* Opens the file of the log with this id. WAL_ENOTFOUND, and *segment NULL, also where it is of a
 * segment with another salt. */
enum wal_status wal__log_open_with_salt(const struct wal__log *log, const struct wal__env *env,
                                        uint64_t id, uint64_t salt, struct wal__segment **segment,
                                        struct wal_error *error) WAL_MUST_USE;
/* Returns the id of the segment that is or has replaced this one; 0: none. */
uint64_t wal__log_live_id(const struct wal__log *log, uint64_t id);

/* Finds the segments that compaction replaced since they were opened: the chain then has those in
 * their place. The old ones stay open for their readers. With the client's state lock for writing;
 * the indexes are loaded afterwards. */
enum wal_status wal__log_refresh_segments(struct wal__log *log,
                                          struct wal_error *error) WAL_MUST_USE;
/* Returns the highest generation of the chain's rewritten segments; 0: none. */
uint32_t wal__log_generation(const struct wal__log *log);
/* Returns whether compaction replaced segments since they were opened. */
bool wal__log_is_outdated(const struct wal__log *log);
/* Returns whether the chain has a segment whose file is gone or is another one now. Opens the
 * files: for what could not be read, to find out whether it may be read from the present files. Any
 * thread. */
bool wal__log_find_replaced(struct wal__log *log);

/* Replay: with the client's state lock for writing. replay.c */

/* Fills the start of a scan of the whole segment, from its OPEN. */
void wal__replay_init_start(const struct wal__segment *segment, struct wal__scan_start *start);

/* Scans from `start` and applies the groups that are kept. */
enum wal_status wal__replay_scan(struct wal__log *log, struct wal__segment *segment,
                                 const struct wal__scan_start *start,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error) WAL_MUST_USE;

/* Makes the end that a scan of the tail segment found the end of the log. */
void wal__replay_set_end(struct wal__log *log, const struct wal__scan_result *facts);

/* Rebuilds the missing index of a segment before the tail: applies the segment to the client, has
 * it encoded, and hands it to on_segment_end. replay.c */
enum wal_status wal__log_rebuild_index(struct wal__log *log, struct wal__segment *segment,
                                       struct wal_error *error) WAL_MUST_USE;

/* Removes uninitialised tails from the chain, which a crash during a rotation leaves. Of the first
 * opener, before anything is loaded. recover.c */
enum wal_status wal__log_discard_uninitialised_tail(struct wal__log *log,
                                                    struct wal_error *error) WAL_MUST_USE;

/* What the index file of the tail covers: nothing before `end` is scanned. */
struct wal__tail_state {
    uint64_t end;          /* offset; 0: there is no such index */
    uint64_t known_end;    /* offset that a derived file, or for the pack the
                            * log, names durable, or 0 */
    uint64_t pack_durable; /* named by the COMMIT that the index names */
    uint64_t commit_offset;
    uint64_t last_sequence;
    uint64_t epoch;
    uint32_t chain;
    /* Records of a copy up to this sequence number were durable in the store that they are of. 0:
     * it is no copy. */
    uint64_t copied;
};

/*
 * Finds the end of the log: the first opener recovers the tail by the decision table of SPEC.md 3.4
 * and makes it durable, others catch up. log->facts holds the findings. needs_reload is set where
 * the log was healed: the caller then loads the indexes again. `strict` (WAL_OPEN_STRICT): an
 * ambiguous or damaged tail is WAL_ETORN or WAL_ECORRUPT. recover.c
 */
enum wal_status wal__log_recover(struct wal__log *log, const struct wal__tail_state *state,
                                 bool strict, struct wal_error *error) WAL_MUST_USE;

/*
 * Returns the end to catch up to: the written end. A handle that only reads holds no lock, so that
 * the first opener may reset the page that it follows. Until that one has recovered, this is the
 * end that was returned last, since recovery keeps every published record. Of the log, the end of
 * the pack that its records refer to is kept too. Any thread. replay.c
 */
uint64_t wal__log_follow(struct wal__log *log);

/* Returns whether there is something to catch up to. Any thread. replay.c */
bool wal__log_needs_catch_up(const struct wal__log *log);

/* Applies what other processes published since the last call. needs_reload is set where it has to
 * be read again, and may be on failure. replay.c */
enum wal_status wal__log_catch_up(struct wal__log *log, struct wal_error *error) WAL_MUST_USE;

/* Decides by the same table about groups that a dead writer left after the published end. With the
 * append lock newly acquired. replay.c */
enum wal_status wal__log_take_over_dead_writer(struct wal__log *log,
                                               struct wal_error *error) WAL_MUST_USE;

/* An upper bound of what a group needs. */
struct wal__log_reservation {
    uint64_t size; /* bytes of frames, without the COMMIT */
    uint32_t frames;
    uint32_t sessions;
    uint64_t texts; /* bytes, of these sessions' summaries */
    /* Deletions and redactions only: on a full disk they may take the last bytes of the tail
     * segment, which other groups leave. */
    bool uses_reserve;
};

/*
 * Makes room for a group and its COMMIT in the tail segment; rotates where the room is not there.
 * WAL_ENOSPACE when a new segment cannot be made, and WAL_ETOOBIG when none is large enough:
 * nothing has changed then. rotate.c
 */
enum wal_status wal__log_reserve(struct wal__log *log,
                                 const struct wal__log_reservation *reservation,
                                 struct wal_error *error) WAL_MUST_USE;

/* Ends the tail segment and begins a small one, unless the tail holds no record, nothing is after
 * its end, and it is encrypted by the newest key. As wal__log_reserve. */
enum wal_status wal__log_rotate(struct wal__log *log, struct wal_error *error) WAL_MUST_USE;

/*
 * Makes everything before `position` durable; UINT64_MAX means everything written, with at least
 * one more sync. WAL_OK at once when it is durable, also on a poisoned log. Callers of all
 * processes share one sync where they can. Acquires sync_mutex, then the sync lock. WAL_EPOISONED:
 * the log must be healed first (wal__leader_sync does); WAL_ELOCKED: error->holder, which runs,
 * keeps the sync lock; WAL_EIO. sync.c
 */
enum wal_status wal__log_sync(struct wal__log *log, uint64_t position,
                              struct wal_error *error) WAL_MUST_USE;

/* Returns whether too many bytes are unsynced; and syncs them in that case, so that a later sync is
 * short. Does nothing while another thread holds sync_mutex, and never waits for it. A failure
 * poisons the log. sync.c */
bool wal__log_needs_background_sync(const struct wal__log *log);
void wal__log_background_sync(struct wal__log *log);

/* Raises pack_durable to a position that a COMMIT names. */
void wal__log_raise_pack_durable(struct wal__log *log, uint64_t position);
/* Returns the durable end of the pack that the next COMMIT names: never less than those before; 0
 * for the pack itself. */
uint64_t wal__log_pack_durable(const struct wal__log *log);

/* Appends the ids of all segment files to *ids, as uint64_t, ascending. */
enum wal_status wal__log_list_ids(const struct wal__log *log, struct wal__buf *ids,
                                  struct wal_error *error) WAL_MUST_USE;

/* Removes what failed attempts left: segments below the tail that are not in the chain and hold no
 * record that the chain lacks, and files that compaction was writing. Of the first opener, once the
 * log is recovered. What cannot be removed stays. leftovers.c */
void wal__log_remove_leftovers(struct wal__log *log);
/* Removes what compactions left that were cut short, and the temporary files of segments and
 * indexes that any killed process left: files that they were writing and, unless a name of a
 * rewritten segment may be lost, the segments that it replaces. With the compaction lock and the
 * lock of the chain for writing. leftovers.c */
enum wal_status wal__log_remove_compacted(struct wal__log *log,
                                          struct wal_error *error) WAL_MUST_USE;
/* Removes the segments below the tail that are not in the chain and hold no record that the chain
 * lacks, and calls `left` for each other one. With the compaction lock and the lock of the chain
 * for writing: what other processes begin is above the tail. leftovers.c */
typedef void wal__log_unlinked_left(void *ctx, uint64_t id);
enum wal_status wal__log_remove_unlinked(struct wal__log *log, wal__log_unlinked_left *left,
                                         void *ctx, struct wal_error *error) WAL_MUST_USE;
/* Removes a segment that a rewritten one replaces, and its index file, unless they are gone. The
 * rewritten one is durable. leftovers.c */
enum wal_status wal__log_remove_replaced(const struct wal__log *log, uint64_t id,
                                         struct wal_error *error) WAL_MUST_USE;

/* Returns whether a file of this name is a rewritten segment that is not finished. */
bool wal__log_is_unfinished(const char *name);

/* Raises highest_id to the highest id in the directory, including files of dead processes: recovery
 * takes the highest id that names a predecessor, so a new segment must exceed all. */
enum wal_status wal__log_find_highest_id(struct wal__log *log,
                                         struct wal_error *error) WAL_MUST_USE;

/* Makes the names of all segments durable: the process that created one may have died before it
 * synced the directory. */
enum wal_status wal__log_sync_directory(const struct wal__log *log,
                                        struct wal_error *error) WAL_MUST_USE;

/* Returns whether everything before `position` is known to be durable. sync.c
 * */
bool wal__log_is_durable(const struct wal__log *log, uint64_t position);

/* Acquires the sync lock, with sync_mutex; takes it over from processes that do not run, which
 * poisons the log. WAL_END: `position` became durable first; WAL_ELOCKED: error->holder keeps it.
 * sync.c */
enum wal_status wal__log_lock_sync(struct wal__log *log, uint64_t position,
                                   struct wal_error *error) WAL_MUST_USE;

/* Raises the durable end after a successful sync, and wakes those who wait for it. Never lowers it:
 * the sync may be that of a process that lost the sync lock. sync.c */
void wal__log_set_durable(struct wal__log *log, uint64_t position);

/* Poisons the log when a process died while it synced. Costs one load while no process syncs. With
 * the append lock. sync.c */
void wal__log_check_dead_syncer(struct wal__log *log);

/* Fails with WAL_EPOISONED and the cause when the log is poisoned. sync.c */
enum wal_status wal__log_check_poison(const struct wal__log *log,
                                      struct wal_error *error) WAL_MUST_USE;

/* Fills the header of the index of the newest segment, which is or was the tail, except for the
 * counts. rotate.c */
void wal__log_index_header(const struct wal__log *log, const struct wal__segment *segment,
                           struct wal__index_header *header);

/* Makes a segment with complete content for healing, and sets the capacity of its header
 * (wal__prealloc_next_header). With append and preallocation lock. rotate.c */
enum wal_status wal__log_install(struct wal__log *log, struct wal__segment_header *header,
                                 const struct wal__buf *body, struct wal_error *error) WAL_MUST_USE;

/*
 * Heals a poisoned log: copies what was published beyond the durable end to a new segment, and ends
 * the poison. This process has applied everything published, holds append lock and state lock, and
 * catches up afterwards. WAL_ENOSPACE, WAL_EIO, WAL_ENOMEM: the log is poisoned as before;
 * WAL_EPOISONED: it cannot be healed while processes have it open. leader.c
 */
enum wal_status wal__log_heal(struct wal__log *log, struct wal_error *error) WAL_MUST_USE;

/* A reader's memory for what is not in a map: a record that was read by pread, or the records of a
 * block, which those that follow are read from. One thread at a time; the log outlives it. */
struct wal__record_buf {
    /* The log that was read last, and the segment, which is used until the next read or
     * wal__record_buf_release. */
    const struct wal__log *log;
    struct wal__segment *used;
    /* struct wal__segment *: those before, while slices are pinned. */
    struct wal__buf all_used;
    struct wal__buf bytes;
    struct wal__buf stored;      /* a block or an encrypted record as it was read by pread */
    struct wal__buf block_bytes; /* a block that was decrypted */
    struct wal__cipher cipher;
    /* The block at this offset of the segment with this salt has `records`; 0: none. Those that are
     * in `bytes` outlive the use of the segment. */
    uint64_t salt;
    uint64_t block;
    struct wal__span records;
    bool has_records; /* they are in `bytes`, of a block that was verified */
    /* struct wal__buf: keeps the blocks that were read before, for slices that are pinned; NULL:
     * their memory is used again. */
    struct wal__buf *pinned;
};

void wal__record_buf_init(struct wal__record_buf *buf, const struct wal__heap *heap);
void wal__record_buf_deinit(struct wal__record_buf *buf);
/* Ends the use of the segment that was read last: nothing points to it. */
void wal__record_buf_release(struct wal__record_buf *buf);

/*
 * Reads one record and verifies its checksums. *payload is valid until the next use of `scratch`:
 * it points into the segment's map, into scratch, or of a pending group into the group.
 * WAL_ECORRUPT with file and offset. Any thread. record_read.c
 */
enum wal_status wal__log_read(struct wal__log *log, uint64_t position,
                              struct wal__record_buf *scratch, struct wal__frame *frame,
                              struct wal__span *payload, struct wal_error *error) WAL_MUST_USE;

/* Reads a record's header, and the first `size` bytes of its payload or all of it when it is
 * shorter; the payload is not verified. */
enum wal_status wal__log_peek(struct wal__log *log, uint64_t position, uint32_t size,
                              struct wal__record_buf *scratch, struct wal__frame *frame,
                              struct wal__span *first, struct wal_error *error) WAL_MUST_USE;

/* Returns whether the header of the record with the sequence number is there, as an index says:
 * what cannot be read is then the record, and no index. */
bool wal__log_has_record(struct wal__log *log, uint64_t position, uint64_t sequence,
                         struct wal__record_buf *scratch);

/* Prefetches `size` bytes of a record that is read soon. State lock. */
void wal__log_prefetch(const struct wal__log *log, uint64_t position, uint64_t size);

/* Reads the COMMIT at a position; WAL_ECORRUPT when there is none. */
enum wal_status wal__log_read_commit(struct wal__log *log, uint64_t position,
                                     struct wal__frame *frame,
                                     struct wal__commit_record *commit) WAL_MUST_USE;

/* Appends to the chain: the segment is the tail. Internal to engine/log. WAL_ENOMEM. */
enum wal_status wal__log_append_segment(struct wal__log *log,
                                        struct wal__segment *segment) WAL_MUST_USE;

/*
 * Removes the index files of segments that log/ does not have, by their salt, and those that are
 * being made. After the segments that replace others are published: then no file of a replaced
 * segment gets a name any more. Stops at the first failure. control: of the store, or NULL. Any
 * thread; no lock.
 */
enum wal_status wal__search_files_sweep(const struct wal__env *env,
                                        const struct wal__control *control,
                                        struct wal_error *error) WAL_MUST_USE;

#endif
