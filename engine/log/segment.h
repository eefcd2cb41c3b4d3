/*
 * segment.h - one segment file (SPEC.md 2.2, 3.5): made at its full size,
 * never shortened, rewritten or used again, so that a map of it is never in
 * danger.
 *
 * A struct wal__segment may be read by any thread once it is open; only the
 * holder of the stream's lease writes through it.
 */
#ifndef AGENTWAL_ENGINE_LOG_SEGMENT_H
#define AGENTWAL_ENGINE_LOG_SEGMENT_H

#include <stdatomic.h>

#include "engine/os/env.h"
#include "format/segment/record.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"

struct wal__segment {
    const struct wal__env *env;
    uint64_t id;
    struct wal__file *file; /* null: parked, opened again when needed */
    struct wal__segment_header header;
    _Atomic(uint8_t *) map;
    char path[WAL__PATH_MAX];
    /* From OPEN; zeros when the segment has none that is valid. */
    bool has_open;
    struct wal__open_record open; /* open.damage is null */
    /* From the trailer: the segment is complete. */
    bool sealed;
    struct wal__segment *retired; /* of a list, once out of the chain */
    struct wal__trailer trailer;
    /* End of the last group: of a tail it moves, of others it stays. */
    _Atomic uint64_t end;
};

/* Path of a segment in the directory ("log" or "pack"). */
void wal__segment_path(const struct wal__env *env, const char *directory,
                       uint64_t id, char out[WAL__PATH_MAX]);

/*
 * Opens an existing segment and reads header, OPEN and trailer. The header
 * must fit uuid, class and id. WAL_ENOTFOUND, WAL_ECORRUPT (with the reason),
 * WAL_EVERSION, WAL_EIO, WAL_ENOMEM. A header of zeros is WAL_END: a spare
 * that was never finished.
 */
enum wal_status wal__segment_open(const struct wal__env *env,
                                  const char *directory, uint64_t id,
                                  const uint8_t uuid[16], uint32_t class,
                                  struct wal__segment **segment,
                                  struct wal_error *error) WAL_MUST_USE;

/* How fast zeros are written, asked before each step of them. */
enum wal__pace {
    WAL__PACE_CONTINUE,
    WAL__PACE_PAUSE, /* sync, and leave the disk to others for a while */
    WAL__PACE_STOP   /* no more of them */
};

struct wal__pacer {
    enum wal__pace (*next)(void *ctx, uint64_t zeroed);
    void *ctx;
    uint32_t pause_us;
};

/*
 * Makes a spare: a file of its full size with its header, synced, the
 * directory too. An unusable file of that name is removed first. The
 * first `zeroed` bytes are written, or as many of them as the pacer wants
 * (null: all at once), the rest is only reserved. Durable on return.
 */
enum wal_status
wal__segment_preallocate(const struct wal__env *env, const char *directory,
                         const struct wal__segment_header *header,
                         uint64_t zeroed, const struct wal__pacer *pacer,
                         struct wal_error *error) WAL_MUST_USE;

/* Makes a segment whose content is complete: `size` bytes behind its header,
 * OPEN first. It gets its name when all is synced. Durable on success; after a
 * failure it may be there, whole. */
enum wal_status wal__segment_install(const struct wal__env *env,
                                     const char *directory,
                                     const struct wal__segment_header *header,
                                     const uint8_t *data, uint64_t size,
                                     struct wal_error *error) WAL_MUST_USE;

/* Reads the trailer again: another process may have sealed the segment. */
enum wal_status wal__segment_refresh(struct wal__segment *segment) WAL_MUST_USE;

void wal__segment_close(struct wal__segment *segment);

/* Closes the file of a segment that is not written any more: a map does not
 * need it, and a store may have more segments than a process may have files.
 * No other thread may read the segment by pread at the same time. */
void wal__segment_release_file(struct wal__segment *segment);
enum wal_status wal__segment_reopen_file(struct wal__segment *segment,
                                         struct wal_error *error) WAL_MUST_USE;

/* The whole segment, read only; null with *error set on failure. */
const uint8_t *wal__segment_map(struct wal__segment *segment,
                                struct wal_error *error);

#endif
