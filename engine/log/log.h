/*
 * log.h - one stream of a store: segments, where it ends, and how it is read
 * (SPEC.md 3). A stream is applied to the indexes of its client record by
 * record, in log order, each record once.
 *
 * Who may call: open, load and close one thread. catch_up, reserve, write and
 * rotate: one thread at a time, holding the client's state lock; reserve,
 * write and rotate also the stream's lease. read and sync: any thread.
 */
#ifndef AGENTWAL_ENGINE_LOG_LOG_H
#define AGENTWAL_ENGINE_LOG_LOG_H

#include <pthread.h>

#include "engine/base/buf.h"
#include "engine/log/log_record.h"
#include "engine/log/segment.h"
#include "engine/log/segment_reader.h"
#include "engine/process/control.h"
#include "format/index/index_fmt.h"

enum {
    WAL__LOG_ID_LOG = 0,
    WAL__LOG_ID_PACK = 1
};

/* Bytes that a COMMIT frame may take at most. */
enum {
    WAL__COMMIT_SPAN_MAX = WAL__FRAME_SIZE + 56 + 4 * WAL__COMMIT_SESSIONS_MAX
};

/* Who keeps the indexes of a stream. Called under the client's state lock. */
struct wal__log_client {
    void *ctx;
    /* The next record. */
    enum wal_status (*apply)(void *ctx, const struct wal__log_record *record);
    /* A session lost a record; 0: one that cannot be named. */
    enum wal_status (*on_record_lost)(void *ctx, uint32_t session);
    /* A record that was read back was refused by apply with WAL_ECORRUPT: what
     * it stands on was lost to damage. */
    enum wal_status (*on_orphan)(void *ctx,
                                 const struct wal__log_record *record);
    /* Encodes the index of the segment that ends (SPEC.md 2.12, 2.20) behind
     * room for a frame's header; the index's comes filled but for counts and
     * last_session. */
    enum wal_status (*encode_index)(void *ctx, struct wal__index_header *header,
                                    struct wal__buf *out);
    /* Bytes that encode may need when `postings` more records of at most
     * `sessions` sessions with `texts` bytes of text have been applied. */
    uint64_t (*index_bound)(void *ctx, uint32_t postings, uint32_t sessions,
                            uint64_t texts);
    /* The segment has ended and a new one begun: the tail index is empty. A
     * segment without a SEAL comes with its encoded index, to be put beside
     * it, else null. */
    enum wal_status (*on_segment_end)(void *ctx,
                                      const struct wal__segment *segment,
                                      const struct wal__buf *index);
};

struct wal__segment_table {
    struct wal__segment_table *retired; /* kept for readers until close */
    uint32_t count;
    struct wal__segment *segments[]; /* ascending, the chain */
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
    /* The end as applied by this process. */
    struct wal__segment *tail_segment; /* null: the log is empty */
    _Atomic uint64_t end;              /* position */
    uint64_t last_sequence;
    uint64_t commit_offset; /* of the last COMMIT in the tail, 0: none */
    bool marked;            /* the last COMMIT names all before it durable */
    uint64_t last_epoch;    /* in the last COMMIT */
    uint64_t epoch;         /* of this process */
    int64_t clock_ms;
    uint32_t chain;
    uint64_t highest_id;   /* of any file in the directory */
    uint64_t pack_durable; /* of the log: the highest end of the blob
                                   * stream that a group that is kept names */
    /* of the blob stream: segments that are missing or damaged, and were left
     * out */
    uint32_t lost_segment_count;
    bool newest_segment_lost;     /* the newest of them stood behind the tail */
    struct wal__segment *retired; /* out of the chain; open until close */
    /* The group being built: its records are applied before they are written,
     * and deciding the next operation may read them. Of its builder alone. */
    const struct wal__group *pending_group;
    bool append_lock_retained; /* the lease is held for whose turn is next */
    /* What recovery found. */
    bool must_rotate;
    /* what was applied and what is written differ: load again */
    bool needs_reload;
    struct wal__scan_result facts;
    pthread_mutex_t sync_mutex;     /* before the lock byte of the sync turn */
    _Atomic uint64_t last_sync_ns;  /* how long the last sync here took */
    pthread_mutex_t prealloc_mutex; /* before that of making a spare */
    _Atomic uint64_t groups;
    _Atomic uint64_t syncs;
};

/* Sets the fields; the control is open. */
void wal__log_init(struct wal__log *log, const struct wal__env *env,
                   struct wal__control *control, uint32_t log_id,
                   const uint8_t uuid[16], uint32_t group_align,
                   const struct wal__log_client *client);

/*
 * Finds the live segments by the chain of predecessors and opens them: cheap,
 * no frame but OPEN is read. WAL_ECORRUPT when one is missing or foreign; of
 * the blob stream that one is left out. attach.c
 */
enum wal_status wal__log_attach(struct wal__log *log,
                                struct wal_error *error) WAL_MUST_USE;
void wal__log_close(struct wal__log *log);

/* The newest live segment, or 0: that of the written end, so that both are
 * published by one store. */
uint64_t wal__log_newest_id(const struct wal__log *log);
uint32_t wal__log_segment_count(const struct wal__log *log);
struct wal__segment *wal__log_segment_at(const struct wal__log *log,
                                         uint32_t rank);
/* Null when it is not in the chain. */
struct wal__segment *wal__log_segment(const struct wal__log *log, uint64_t id);

/* Applies a whole segment before the tail to the client, for an index that is
 * missing, which the client encodes, and is then given. replay.c */
enum wal_status wal__log_rebuild_index(struct wal__log *log,
                                       struct wal__segment *segment,
                                       struct wal_error *error) WAL_MUST_USE;

/* A crash while a segment was begun leaves one that holds nothing: takes such
 * out of the chain, before anything is loaded. recover.c */
enum wal_status
wal__log_discard_uninitialised_tail(struct wal__log *log,
                                    struct wal_error *error) WAL_MUST_USE;

/* What a tail's index file says: everything before it needs no scan. */
struct wal__tail_state {
    uint64_t end;          /* offset; 0: there is no such index */
    uint64_t known_end;    /* offset that some derived file, or the log of the
                         * blob stream, names durable, or 0 */
    uint64_t pack_durable; /* that the index's COMMIT names */
    uint64_t commit_offset;
    uint64_t last_sequence;
    uint64_t epoch;
    uint32_t chain;
};

/*
 * Brings the tail to its end: recovers it by the table of SPEC.md 3.4 when
 * this process is alone, else catches up with the others. log->facts says what
 * was found. With WAL_OPEN_STRICT what cannot be decided is refused.
 * recover.c
 */
enum wal_status wal__log_recover(struct wal__log *log,
                                 const struct wal__tail_state *state,
                                 bool strict,
                                 struct wal_error *error) WAL_MUST_USE;

/* Applies what other processes published since. */
enum wal_status wal__log_catch_up(struct wal__log *log,
                                  struct wal_error *error) WAL_MUST_USE;

/* Under a lease taken anew: what a builder that died left behind the
 * published end is taken or left, by the same table. */
enum wal_status
wal__log_take_over_dead_writer(struct wal__log *log,
                               struct wal_error *error) WAL_MUST_USE;

/* Lease of the stream; no other thread of the process may hold it. */
enum wal_status wal__log_lock_append(struct wal__log *log,
                                     struct wal_error *error) WAL_MUST_USE;
void wal__log_unlock_append(struct wal__log *log);
/* The same, when another thread of the process takes it at once; it is freed
 * all the same when another process waits for it. */
void wal__log_retain_append_lock(struct wal__log *log);
void wal__log_release_retained_lock(struct wal__log *log);

/* What a group may need at most. */
struct wal__log_reservation {
    uint64_t size; /* bytes of frames, without COMMIT */
    uint32_t frames;
    uint32_t sessions;
    uint64_t texts; /* of these sessions' summaries */
};

/*
 * Makes room for a group and its COMMIT in the tail, going on in a new segment
 * where there is none. WAL_ENOSPACE and nothing changed when a new one cannot
 * be made. rotate.c
 */
enum wal_status wal__log_reserve(struct wal__log *log,
                                 const struct wal__log_reservation *reservation,
                                 struct wal_error *error) WAL_MUST_USE;

/* A group being written: its frames in order, headers encoded in place. */
struct wal__group {
    struct wal__buf iov; /* of struct iovec */
    uint64_t size;       /* bytes so far */
    uint32_t frames;
    uint32_t chain;
    uint64_t first_sequence;
    uint64_t next_sequence;
    int64_t clock_ms;
    bool durable;             /* a member was promised to be durable */
    bool defer_publish;       /* published by who writes it, later */
    const uint32_t *sessions; /* ascending, each once */
    uint32_t session_count;
};

/* Begins a group at the tail's end. */
void wal__group_init(struct wal__group *group, const struct wal__log *log);
void wal__group_deinit(struct wal__group *group);
/* Offset in the tail where the next frame of the group will stand. */
uint64_t wal__group_offset(const struct wal__group *group,
                           const struct wal__log *log);
/* Adds a frame whose 48 header bytes, payload and padding stand at `bytes`;
 * gives it the next sequence number and encodes the header. The bytes must
 * stay until the write. */
enum wal_status wal__group_add(struct wal__group *group,
                               const struct wal__log *log,
                               struct wal__frame *frame,
                               uint8_t *bytes) WAL_MUST_USE;

/*
 * Closes the group with a COMMIT, writes and publishes it. On failure the
 * store is poisoned (WAL_EPOISONED). The client has applied the frames.
 */
enum wal_status wal__log_write(struct wal__log *log, struct wal__group *group,
                               struct wal_error *error) WAL_MUST_USE;

/* A write to the tail failed: poisons the store and says so. */
enum wal_status wal__log_write_failed(struct wal__log *log, int sys_errno,
                                      struct wal_error *error);

/* Everything before `position` on stable storage; shares the sync of whoever
 * is at it. WAL_EPOISONED when a sync failed. sync.c */
enum wal_status wal__log_sync(struct wal__log *log, uint64_t position,
                              struct wal_error *error) WAL_MUST_USE;

/* Whether so much is written and not synced that it should be; and that done,
 * while who writes goes on. A failure poisons the stream. sync.c */
bool wal__log_needs_write_behind(const struct wal__log *log);
void wal__log_write_behind(struct wal__log *log);

/* A group of the log that is kept names this durable end of the blob stream. */
void wal__log_raise_pack_durable(struct wal__log *log, uint64_t position);
/* What a COMMIT that is written now names: never less than those before. */
uint64_t wal__log_pack_durable(const struct wal__log *log);

/* Tells the other processes of what was written. */
void wal__log_publish(struct wal__log *log);

/* Looks which ids are taken, also by processes that died: a new segment is
 * above all of them, for the highest id that names a predecessor wins. */
enum wal_status wal__log_find_highest_id(struct wal__log *log,
                                         struct wal_error *error) WAL_MUST_USE;

/* For who makes spares, and who begins one: from choosing it until it is
 * published, so that nobody makes it again under its writer. rotate.c */
enum wal_status wal__prealloc_lock(struct wal__log *log,
                                   struct wal_error *error) WAL_MUST_USE;
void wal__prealloc_unlock(struct wal__log *log);

/* Who made a segment may have died before its name was durable: makes the
 * names of all durable. rotate.c */
enum wal_status wal__log_sync_directory(const struct wal__log *log,
                                        struct wal_error *error) WAL_MUST_USE;

/* What a sync covered: publishes it, and wakes who follows. sync.c */
void wal__log_set_durable(struct wal__log *log, uint64_t position);

/* Poisons the stream when a process died in the sync turn; costs a load while
 * nobody syncs. Under the lease. sync.c */
void wal__log_check_dead_syncer(struct wal__log *log);

/* Poisons the stream for every process. */
void wal__log_poison(struct wal__log *log);
enum wal_status wal__log_check_poison(const struct wal__log *log,
                                      struct wal_error *error) WAL_MUST_USE;

/* What the index of the tail says of it, but for counts. rotate.c */
void wal__log_index_header(const struct wal__log *log,
                           struct wal__index_header *header);

/* The header of the segment after all that are, without a capacity; and such
 * a segment made, its content complete. The lease is held. rotate.c */
void wal__prealloc_next_header(const struct wal__log *log,
                               struct wal__segment_header *header);
enum wal_status wal__log_install(struct wal__log *log,
                                 struct wal__segment_header *header,
                                 const struct wal__buf *body,
                                 struct wal_error *error) WAL_MUST_USE;

/*
 * Ends the poison: what was published beyond the durable end is copied to a
 * new segment. This process has applied all that was published, holds lease
 * and state lock, and catches up afterwards. WAL_ENOSPACE, WAL_EIO,
 * WAL_ENOMEM: as poisoned as before; WAL_EPOISONED: it cannot be healed while
 * processes live. heal.c
 */
enum wal_status wal__log_heal(struct wal__log *log,
                              struct wal_error *error) WAL_MUST_USE;

/* A spare to be made ahead. */
struct wal__prealloc_job {
    uint64_t id;
    uint64_t capacity;
};

/* Whether the tail is so full that a spare should be made, and no spare is
 * known; by who builds. */
bool wal__prealloc_is_needed(const struct wal__log *log,
                             struct wal__prealloc_job *job);
/* Makes it; with pauses, as long as the tail does not fill too fast, when
 * pause_us is not 0. Any thread, one at a time. spare.c */
enum wal_status wal__prealloc_create(struct wal__log *log,
                                     const struct wal__prealloc_job *job,
                                     uint32_t pause_us,
                                     struct wal_error *error) WAL_MUST_USE;

/*
 * Reads one record: *frame, and *payload in the segment's map, checksums
 * verified. With use_pread the bytes come from `scratch` (never null then).
 * WAL_ECORRUPT names file and offset. Any thread.
 */
enum wal_status wal__log_read(struct wal__log *log, uint64_t position,
                              struct wal__buf *scratch,
                              struct wal__frame *frame,
                              struct wal__span *payload,
                              struct wal_error *error) WAL_MUST_USE;

/* The same of the header alone: *first is so many bytes of the payload, fewer
 * when it has no more, and they are not verified. */
enum wal_status wal__log_peek(struct wal__log *log, uint64_t position,
                              uint32_t size, struct wal__buf *scratch,
                              struct wal__frame *frame, struct wal__span *first,
                              struct wal_error *error) WAL_MUST_USE;

/* Says that so many bytes of the record will be read soon. Any thread. */
void wal__log_prefetch(const struct wal__log *log, uint64_t position,
                       uint64_t size);

/* The COMMIT at a position; WAL_ECORRUPT when there is none. */
enum wal_status
wal__log_read_commit(struct wal__log *log, uint64_t position,
                     struct wal__frame *frame,
                     struct wal__commit_record *commit) WAL_MUST_USE;

/* Walks the frames of a piece that a scan handed over. */
enum wal_status wal__log_apply_piece(struct wal__log *log,
                                     const struct wal__segment *segment,
                                     const struct wal__scan_range *piece,
                                     int64_t clock_ms) WAL_MUST_USE;

/* Internal to engine/log: a copy of the table with room for `more`; the old one
 * stays for readers. Null without memory. */
struct wal__segment_table *wal__log_grow_table(const struct wal__log *log,
                                               uint32_t more);
/* Internal to engine/log: appends to the chain. */
enum wal_status
wal__log_append_segment(struct wal__log *log,
                        struct wal__segment *segment) WAL_MUST_USE;

#endif
