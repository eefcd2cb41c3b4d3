/*
 * part.h - parts of a store: bytes of its logs as on disk, from one place between groups to a later
 * one (SPEC.md 11.1); and the replica to which they are applied (SPEC.md 11.2).
 *
 * Invariant: every part is verified group by group, and its chain leads from the place before it to
 * the place after it.
 *
 * One thread at a time per reader or replica; any number of them.
 */
#ifndef AGENTWAL_ENGINE_CARE_PART_H
#define AGENTWAL_ENGINE_CARE_PART_H

#include "agentwal/replica.h"
#include "engine/base/sha256.h"
#include "engine/store/core.h"
#include "format/segment/keys_fmt.h"
#include "format/segment/part.h"
#include "format/segment/scan.h"

/* The places as the interface has them. */
void wal__part_places(const struct wal__part_place *from, struct wal_part_place *to);

/* Verifies size, head and digest of a part. */
enum wal_status wal__part_check(struct wal__sha256_alg *sha256_alg, struct wal__span part,
                                struct wal__part_head *head, struct wal_error *error) WAL_MUST_USE;

/* Decodes KEYS of a part, which has it. */
enum wal_status wal__part_check_keys(const struct wal__part_head *head, struct wal__span bytes,
                                     struct wal__keys_file *keys,
                                     struct wal_error *error) WAL_MUST_USE;

/* Decodes the head of a part from its first bytes; WAL_EINVAL for null. */
enum wal_status wal__part_get_head(struct wal__span bytes, struct wal__part_head *head,
                                   struct wal_error *error) WAL_MUST_USE;

/* Appends bytes [from, to) of the segment's file. */
enum wal_status wal__part_read_file(const struct wal__segment *segment, uint64_t from, uint64_t to,
                                    struct wal__buf *bytes, struct wal_error *error) WAL_MUST_USE;

/* Verifies groups in memory. `bytes` begin at `from` of a segment with this
 * header, and end where a group may; from 0 they have the header too. Sets
 * *after, and *facts; WAL_ECORRUPT unless at least one group is valid and, with
 * `is_whole`, nothing follows the last. */
enum wal_status wal__part_scan(const struct wal__segment_header *header,
                               const struct wal__part_place *before, uint64_t from,
                               struct wal__span bytes, bool is_whole, struct wal__part_place *after,
                               struct wal__scan_result *facts,
                               struct wal_error *error) WAL_MUST_USE;

/* Reads OPEN at the beginning of a segment's bytes. */
bool wal__part_read_open(const struct wal__segment_header *header, struct wal__span bytes,
                         struct wal__open_record *open) WAL_MUST_USE;

/* Returns whether two places are the same. */
static inline bool wal__part_place_equal(const struct wal__part_place *a,
                                         const struct wal__part_place *b)
{
    return a->segment == b->segment && a->salt == b->salt && a->offset == b->offset &&
           a->sequence == b->sequence && a->chain == b->chain;
}

/* The last COMMIT of a part in a stream; its offset is 0: there is none. */
struct wal__part_commit {
    uint64_t offset;
    uint64_t epoch;
};

/* An index of a segment, in bytes that have one after the other. part_index.c */
struct wal__part_index {
    struct wal__index_header header;
    uint32_t stream;
    struct wal__span bytes;
};

/* Takes an index from the front of the bytes, and verifies it. */
bool wal__part_index_take(struct wal__span *bytes, struct wal__part_index *index) WAL_MUST_USE;

/* Whether the index is of the segment of the place, which ends there. */
bool wal__part_index_ends_at(const struct wal__part_index *index, const uint8_t uuid[16],
                             const struct wal__part_place *place);

/* Appends the indexes of the segments that a part goes on from, and of those with which the log
 * ends there, as wal_part_reader_get_index. part_index.c */
enum wal_status wal__part_append_index(struct wal__core *core, const struct wal__part_head *head,
                                       const struct wal__part_commit *commits,
                                       struct wal__buf *out) WAL_MUST_USE;

/* part_store.c: wal_open_parts on this heap, which must outlive the store. */
enum wal_status wal__parts_open(const struct wal_parts *parts, const struct wal__heap *heap,
                                struct wal_store **store, struct wal_error *error) WAL_MUST_USE;

/* replica.c: as wal_replica_open, or wal_replica_open_store, with the heap and the system given;
 * both must outlive it. */
enum wal_status wal__replica_open(const char *path, bool takes_store, const struct wal__heap *heap,
                                  const struct wal__io *io, struct wal_replica **replica,
                                  struct wal_error *error) WAL_MUST_USE;

#endif
