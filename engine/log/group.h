/*
 * group.h - a group of the log: gathering frames, closing them with a COMMIT, writing and
 * publishing them (SPEC.md 3.1, 3.3); and copying groups to a new segment (4.2).
 *
 * Called with append lock and state lock, after wal__log_reserve for at least the group's size.
 *
 * Invariant: the group's bytes follow the tail segment's end without a gap; a group is published
 * whole or not at all.
 */
#ifndef AGENTWAL_ENGINE_LOG_GROUP_H
#define AGENTWAL_ENGINE_LOG_GROUP_H

#include "engine/log/log.h"

struct wal__group {
    struct wal__buf iov; /* of struct iovec, in order */
    uint64_t size;       /* bytes so far, a multiple of 8 */
    uint32_t frames;
    uint32_t chain;
    uint64_t first_sequence;
    uint64_t next_sequence;
    int64_t clock_ms;
    bool durable;             /* an operation of it is WAL_DURABLE */
    bool defer_publish;       /* the caller publishes it, after a sync */
    bool is_synced;           /* a sync follows at once */
    const uint32_t *sessions; /* ascending, each once; borrowed */
    uint32_t session_count;
};

/* Begins an empty group at the tail's end. */
void wal__group_init(struct wal__group *group, struct wal__log *log);
void wal__group_deinit(struct wal__group *group);
/* Returns the offset in the tail segment of the next frame of the group. */
uint64_t wal__group_offset(const struct wal__group *group, const struct wal__log *log);
/* Adds a frame: 48 bytes for its header, payload and padding at `bytes`, which are borrowed until
 * the group is written. Assigns the next sequence number and encodes the header in place, or where
 * the log is encrypted what is stored elsewhere. WAL_ENOMEM. */
enum wal_status wal__group_add(struct wal__group *group, struct wal__log *log,
                               struct wal__frame *frame, uint8_t *bytes) WAL_MUST_USE;

/*
 * Closes the group with a COMMIT, writes it, and publishes it unless defer_publish. The client has
 * applied its records before. Not synced. On failure log->needs_reload is set; WAL_EPOISONED: the
 * write failed.
 */
enum wal_status wal__group_write(struct wal__group *group, struct wal__log *log,
                                 struct wal_error *error) WAL_MUST_USE;

/* Publishes the written end to all processes, and wakes those who wait for it. */
void wal__log_publish(struct wal__log *log);

/* Poisons the log after a write or sync of the tail failed: WAL__POISON_WRITE or WAL__POISON_SYNC.
 * Fills *error, and returns WAL_EPOISONED. */
enum wal_status wal__log_write_failed(struct wal__log *log, enum wal__poison_kind kind, int err,
                                      struct wal_error *error);

/* --- groups in another segment ------------------------------------------ */

/* The content of a new segment that has groups of another one: payloads and sequence numbers are
 * the same, and the headers are encoded for the new offsets. Healing and backups use it. One
 * thread. */
struct wal__regroup {
    struct wal__segment_header header;
    struct wal__buf body;         /* of the segment; it follows the header */
    uint32_t chain;               /* the caller sets it to that before OPEN */
    struct wal__keyring *keyring; /* of an encrypted store */
    struct wal__cipher from;
    struct wal__cipher to;
};

/* Begins an empty body. The caller sets header and chain. */
void wal__regroup_init(struct wal__regroup *copy, const struct wal__env *env);
void wal__regroup_deinit(struct wal__regroup *copy);

/* Returns the offset in the segment of the next byte of the body. */
uint64_t wal__regroup_end(const struct wal__regroup *copy);

/* Adds the group with OPEN, first of all: `size` bytes of an encoded record. Its COMMIT has epoch,
 * clock and pack_durable of *commit. WAL_ENOMEM. */
enum wal_status wal__regroup_add_open_record(struct wal__regroup *copy, const uint8_t *record,
                                             uint32_t size, uint64_t last_sequence,
                                             const struct wal__commit_record *commit) WAL_MUST_USE;

/* The same with an OPEN that ends the segment `previous_id` at the offset
 * `cut`; `facts` are those of a scan up to there, or NULL without one. */
enum wal_status wal__regroup_add_open(struct wal__regroup *copy, uint64_t previous_id, uint64_t cut,
                                      const struct wal__scan_result *facts,
                                      const struct wal__commit_record *commit) WAL_MUST_USE;

/* Adds a group of a segment with this header, its OPEN too; a commit mark is left out.
 * WAL_ECORRUPT: the range is no whole group. */
enum wal_status wal__regroup_add_group(struct wal__regroup *copy,
                                       const struct wal__scan_range *range,
                                       const struct wal__segment_header *from) WAL_MUST_USE;

#endif
