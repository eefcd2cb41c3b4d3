/*
 * part_object.h - the object of a part (SPEC.md 11.3): the part, and a trailer
 * with its floor.
 *
 *   part | floor u64 | CRC-32 of the floor u32
 *
 * The writer has several parts on the way at a time. All parts of the epoch up
 * to the floor were stored when the object was made, so that one of them that
 * is missing later was lost, and did not stay on the way.
 *
 * Threads: any.
 */
#ifndef AGENTWAL_REMOTE_LAYOUT_PART_OBJECT_H
#define AGENTWAL_REMOTE_LAYOUT_PART_OBJECT_H

#include "agentwal.h"
#include "engine/base/buf.h"

enum {
    WAL__PART_TRAILER_SIZE = 12,
    /* Part N is sent when all those up to N - WAL__PART_WINDOW are stored. */
    WAL__PART_WINDOW = 16
};

/* Appends the trailer to a part: WAL_OK or WAL_ENOMEM. */
enum wal_status wal__part_object_seal(struct wal__buf *bytes,
                                      uint64_t floor) WAL_MUST_USE;

/* Finds the part, which points into the object, and the floor; part_size is
 * what the head of the part says. WAL_ECORRUPT: the object has another size, or
 * its trailer is damaged; error->file is the name. */
enum wal_status wal__part_object_open(struct wal_slice object, const char *name,
                                      uint64_t part_size,
                                      struct wal_slice *part, uint64_t *floor,
                                      struct wal_error *error) WAL_MUST_USE;

#endif
