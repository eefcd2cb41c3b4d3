/*
 * rotate.h - the next segment (SPEC.md 3.5): making it before it is needed, and giving back what is
 * not. log.h has the rotation; rotate.c explains both.
 *
 * Invariant: a process that chooses, makes or begins a segment holds the preallocation lock from
 * the choice until the segment is published, so that no other process makes it again under its
 * writer.
 */
#ifndef AGENTWAL_ENGINE_LOG_ROTATE_H
#define AGENTWAL_ENGINE_LOG_ROTATE_H

#include "engine/log/log.h"

/* A segment to make before it is needed. */
struct wal__prealloc_job {
    uint64_t id;
    uint64_t capacity;
};

/* Acquires prealloc_mutex, then the preallocation lock byte, with the append lock: a segment that
 * is being zeroed is finished without further zeros. WAL_ELOCKED. */
enum wal_status wal__prealloc_lock_for_rotation(struct wal__log *log,
                                                struct wal_error *error) WAL_MUST_USE;
void wal__prealloc_unlock(struct wal__log *log);

/* Returns whether the tail segment is full enough to preallocate the next one, and none is known.
 * Of the leader. */
bool wal__prealloc_is_needed(const struct wal__log *log, struct wal__prealloc_job *job);
/*
 * Makes the segment of a job, zeroed and durable, unless it is there. With pause_us != 0 it pauses
 * between steps while it is faster than the writers, and stops zeroing when a rotation waits.
 * Acquires the preallocation lock. Any thread.
 */
enum wal_status wal__prealloc_create(struct wal__log *log, const struct wal__prealloc_job *job,
                                     uint32_t pause_us, struct wal_error *error) WAL_MUST_USE;

/* Returns whether more than 2 MiB and a 32nd of the log are unused in the tail: more than a process
 * that ends should leave. */
bool wal__prealloc_has_excess(const struct wal__log *log);

/* Removes a preallocated segment that is larger than that. Acquires the preallocation lock. Of a
 * process that is alone. */
void wal__prealloc_remove_excess(struct wal__log *log);

/* Gives the disk space of whole pages of [from,to) back, which hold zeros or what does not count.
 * Where the file system has no holes it stays used. */
void wal__prealloc_punch(const struct wal__log *log, struct wal__segment *segment, uint64_t from,
                         uint64_t to);

/* Fills the header of a segment above all others, without a capacity. With the append lock. The
 * errors of reading KEYS. */
enum wal_status wal__prealloc_next_header(const struct wal__log *log,
                                          struct wal__segment_header *header,
                                          struct wal_error *error) WAL_MUST_USE;

/* Once segment `id`, which follows `previous`, is durable: removes segments between them. They were
 * preallocated, or processes that died began them or healed to them. Their ids are not used again:
 * a process that failed to begin one may have it open. With append and preallocation lock. */
void wal__prealloc_remove_leftovers(const struct wal__log *log, uint64_t previous, uint64_t id);

#endif
