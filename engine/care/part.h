/*
 * part.h - parts of a store: bytes of its logs as on disk, from one place
 * between groups to a later one (SPEC.md 11.1).
 *
 * Invariant: every part is verified group by group, and its chain leads from
 * the place before it to the place after it.
 *
 * One thread at a time per reader; any number of readers.
 */
#ifndef AGENTWAL_ENGINE_CARE_PART_H
#define AGENTWAL_ENGINE_CARE_PART_H

#include "engine/base/sha256.h"
#include "engine/store/core.h"
#include "format/segment/part.h"
#include "format/segment/scan.h"

struct wal__part_reader {
    struct wal__core *core;
    struct wal__sha256_alg sha256_alg;
    /* The part read last; its head is written when all ranges are there. */
    struct wal__part_head head;
    struct wal__buf bytes;
    /* Places that this reader returned, or has compared with the log. */
    struct wal__part_place known[WAL__PART_STREAMS];
    struct wal__scan_result facts;
};

void wal__part_reader_init(struct wal__part_reader *reader,
                           struct wal__core *core);
void wal__part_reader_deinit(struct wal__part_reader *reader);

/* Reads what is durable after the places, and before the ends unless they are
 * NULL, as reader->bytes and reader->head: wal_part_reader_next_to. */
enum wal_status wal__part_read(struct wal__part_reader *reader,
                               const struct wal__part_place *places,
                               const struct wal__part_place *ends,
                               uint64_t max_size,
                               struct wal_error *error) WAL_MUST_USE;

/* Verifies size, head and digest of a part. */
enum wal_status wal__part_check(struct wal__sha256_alg *sha256_alg,
                                struct wal__span part,
                                struct wal__part_head *head,
                                struct wal_error *error) WAL_MUST_USE;

/* The same, and its groups: they lead from the places before it to those after
 * it. *facts is only memory for it. */
enum wal_status wal__part_verify(struct wal__sha256_alg *sha256_alg,
                                 struct wal__span part,
                                 struct wal__part_head *head,
                                 struct wal__scan_result *facts,
                                 struct wal_error *error) WAL_MUST_USE;

/* Decodes the head of a part from its first bytes. */
enum wal_status wal__part_get_head(struct wal__span bytes,
                                   struct wal__part_head *head,
                                   struct wal_error *error) WAL_MUST_USE;

/* Appends bytes [from, to) of the segment's file. */
enum wal_status wal__part_read_file(const struct wal__segment *segment,
                                    uint64_t from, uint64_t to,
                                    struct wal__buf *bytes,
                                    struct wal_error *error) WAL_MUST_USE;

/* Verifies groups in memory. `bytes` begin at `from` of a segment with this
 * header, and end where a group may; from 0 they have the header too. Sets
 * *after, and *facts; WAL_ECORRUPT unless at least one group is valid and, with
 * `is_whole`, nothing follows the last. */
enum wal_status wal__part_scan(const struct wal__segment_header *header,
                               const struct wal__part_place *before,
                               uint64_t from, struct wal__span bytes,
                               bool is_whole, struct wal__part_place *after,
                               struct wal__scan_result *facts,
                               struct wal_error *error) WAL_MUST_USE;

/* Reads OPEN at the beginning of a segment's bytes. */
bool wal__part_read_open(const struct wal__segment_header *header,
                         struct wal__span bytes,
                         struct wal__open_record *open) WAL_MUST_USE;

/* Returns whether two places are the same. */
static inline bool wal__part_place_equal(const struct wal__part_place *a,
                                         const struct wal__part_place *b)
{
    return a->segment == b->segment && a->salt == b->salt &&
           a->offset == b->offset && a->sequence == b->sequence &&
           a->chain == b->chain;
}

#endif
