/*
 * segment.h - one segment file (SPEC.md 2.2, 3.5).
 *
 * Invariant: a segment file is created at its full size, and is never truncated, written anew or
 * reused, so that a map of it stays valid. Compaction puts another file in its place (SPEC.md 3.9).
 *
 * Any thread may read an open segment; only the holder of the log's append lock writes to it.
 */
#ifndef AGENTWAL_ENGINE_LOG_SEGMENT_H
#define AGENTWAL_ENGINE_LOG_SEGMENT_H

#include <stdatomic.h>

#include "engine/base/io.h"
#include "format/segment/record.h"
#include "format/segment/scan.h"
#include "format/segment/segment_fmt.h"

struct wal__segment {
    const struct wal__env *env;
    uint64_t id;
    struct wal__file *file; /* NULL: released, reopened when needed */
    struct wal__segment_header header;
    _Atomic(uint8_t *) map;
    char path[WAL__PATH_MAX];
    /* From OPEN; zeros without a valid one. */
    bool has_open;
    struct wal__open_record open; /* open.damage is NULL */
    /* From the trailer: the segment is complete. */
    bool sealed;
    /* Opening it again found another file in its place, or none. */
    _Atomic bool replaced;
    struct wal__segment *retired; /* next of the log's retired segments */
    _Atomic bool is_retired;      /* it is out of the chain */
    _Atomic uint32_t users;       /* who read it without the chain's lock */
    struct wal__trailer trailer;
    /* Offset of the last group's end. Only that of the tail segment changes. */
    _Atomic uint64_t end;
    int64_t begun_ms; /* when this handle began it; 0: it did not */
};

/* Writes the path of a segment in the directory "log" or "pack". */
void wal__segment_path(const struct wal__env *env, const char *directory, uint64_t id,
                       char out[WAL__PATH_MAX]);
/* The same of its shadow segment (SPEC.md 3.11). */
void wal__segment_shadow_path(const struct wal__env *env, const char *directory, uint64_t id,
                              char out[WAL__PATH_MAX]);

/*
 * Opens an existing segment and reads header, OPEN and trailer, of its shadow segment where
 * env->has_shadows and there is one. The header must match uuid, class and id. WAL_ENOTFOUND,
 * WAL_ECORRUPT (with the reason), WAL_EVERSION, WAL_EIO, WAL_ENOMEM. WAL_END: the header is zero,
 * since its creation was never finished.
 */
enum wal_status wal__segment_open(const struct wal__env *env, const char *directory, uint64_t id,
                                  const uint8_t uuid[16], uint32_t class,
                                  struct wal__segment **segment,
                                  struct wal_error *error) WAL_MUST_USE;

struct wal__control;

/* What to do before the next step of zeroing. */
enum wal__pace {
    WAL__PACE_CONTINUE,
    WAL__PACE_PAUSE, /* write the step, then pause for pause_us */
    WAL__PACE_STOP   /* leave the rest unwritten */
};

struct wal__pacer {
    /* `zeroed`: offset up to which zeros are written. */
    enum wal__pace (*next)(void *ctx, uint64_t zeroed);
    void *ctx;
    uint32_t pause_us;
};

/*
 * Creates a segment without groups: a file of its full size with its header. Replaces a file of
 * that name. Writes zeros up to offset `zeroed`, or to where the pacer stops (NULL: without
 * pausing), and only reserves the rest. Durable on success, directory included. control: of
 * wal__control_sync_directory. WAL_ENOSPACE, WAL_EIO.
 */
enum wal_status wal__segment_preallocate(const struct wal__env *env, const char *directory,
                                         const struct wal__control *control,
                                         const struct wal__segment_header *header, uint64_t zeroed,
                                         const struct wal__pacer *pacer,
                                         struct wal_error *error) WAL_MUST_USE;

/* Creates a segment with complete content: `size` bytes after its header, OPEN first. It gets its
 * name when it is synced. Durable on success; after a failure it may exist, complete. */
enum wal_status wal__segment_install(const struct wal__env *env, const char *directory,
                                     const struct wal__control *control,
                                     const struct wal__segment_header *header, const uint8_t *data,
                                     uint64_t size, struct wal_error *error) WAL_MUST_USE;

/* Returns the end of the segment as the next segment's OPEN and the catalogue name it: of a
 * rewritten one that of the segment it replaced. */
static inline uint64_t wal__segment_original_end(const struct wal__segment *segment)
{
    return wal__segment_is_rewritten(&segment->header) ? segment->header.rewrite.original_end
                                                       : atomic_load(&segment->end);
}

/* Returns the offset of the end of OPEN's group. */
uint64_t wal__segment_open_end(const struct wal__segment *segment);

/* Reads the trailer again: another process may have sealed the segment. */
enum wal_status wal__segment_refresh(struct wal__segment *segment) WAL_MUST_USE;

void wal__segment_close(struct wal__segment *segment);

/* Closes the file, if it is open; the map remains. */
void wal__segment_close_file(struct wal__segment *segment);
/* Unmaps it. Nobody uses it. */
void wal__segment_unmap(struct wal__segment *segment);

/* The same for a segment that is no longer written: a map does not need it, and a store may have
 * more segments than a process may open files. No other thread may read the segment by pread
 * meanwhile. reopen_file opens it again, if it is released. */
void wal__segment_release_file(struct wal__segment *segment);
enum wal_status wal__segment_reopen_file(struct wal__segment *segment,
                                         struct wal_error *error) WAL_MUST_USE;

/* Returns the whole segment, mapped read only until close; NULL with *error set on failure, of
 * which wal__segment_map_status is the status: WAL_ECORRUPT when compaction replaced the file, else
 * WAL_EIO. Any thread. */
const uint8_t *wal__segment_map(struct wal__segment *segment, struct wal_error *error);
enum wal_status wal__segment_map_status(const struct wal__segment *segment);

/* Returns whether compaction replaced the file: it is gone, or is that of another segment. Opens it
 * to find out. Any thread. */
bool wal__segment_find_replaced(struct wal__segment *segment);

/* --- reading ------------------------------------------------------------ */

/* The bytes of a segment for scans (SPEC.md 3.4). One thread at a time. */
struct wal__segment_reader {
    struct wal__segment *segment;
    /* bytes of the map to populate after those fetched */
    uint64_t readahead_size;
    const uint8_t *map; /* NULL until the first fetch, and with use_pread */
    uint64_t populated;
    /* The window that was read by pread. */
    uint8_t *bytes;
    uint64_t capacity;
    uint64_t offset;
    uint64_t size;
    bool use_pread;
    enum wal_status status; /* of the last failure */
    int sys_errno;
};

void wal__segment_reader_init(struct wal__segment_reader *reader, struct wal__segment *segment);
void wal__segment_reader_deinit(struct wal__segment_reader *reader);
/* The function of a struct wal__scan_source; ctx is the reader. Returns `size` bytes at `offset`,
 * valid until the next call, or NULL: reader->status says why, WAL_OK at the end of the file. */
const uint8_t *wal__segment_reader_fetch(void *ctx, uint64_t offset, uint64_t size);

/* Returns whether anything but zeros is in the segment from the offset on. What cannot be read may
 * be anything. */
bool wal__segment_has_rest(struct wal__segment *segment, uint64_t offset);

#endif
