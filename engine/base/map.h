/*
 * map.h - maps of files whose pages may vanish: another program cuts
 * the file, or a sector cannot be read. The process then reads zeros there,
 * instead of being ended by SIGBUS (SPEC.md 4.6). Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_MAP_H
#define AGENTWAL_ENGINE_BASE_MAP_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

/*
 * As mmap(2), at an address that the system chooses; NULL with errno on failure. A page that
 * vanishes becomes a private one of zeros for as long as the map exists, which nothing but the
 * count of losses reports: the reader checks the bytes, a writer compares the count before and
 * after.
 *
 * The first call installs a handler of SIGBUS for the process. It passes on signals of other maps
 * to the handler that was there before.
 */
void *wal__guarded_map(int fd, off_t offset, size_t size, int protection, int flags);

/* Unmaps what wal__guarded_map returned, whole. */
void wal__guarded_unmap(void *at, size_t size);

/* Returns how many pages of this process have vanished. */
uint32_t wal__guarded_map_losses(void);

/* --- writing through a map ---------------------------------------------- */

/*
 * A writable map of the file that is appended to, for bytes that no sync follows at once: a copy
 * into the system's cache costs a tenth of a system call (docs/benchmarks.md).
 *
 * A store to a map cannot fail: where the page cannot be written, it vanishes
 * (wal__guarded_map). So pages are populated first, 64 KiB ahead.
 * Where that fails, or a page vanished, the caller writes by the file, which
 * reports why. Populated pages are trusted for a few milliseconds. Where a file
 * system copies on write, a page that was written back may need space again:
 * the caller writes by the file always. Pages that were written are unmapped
 * soon: a sync would have to write-protect each of them on every processor.
 *
 * Invariant: the pages from `written` to `populated` are populated. Threads: init, deinit, write
 * and keep by one at a time; prepare and evict by any.
 */
struct wal__file;
struct wal__io;

struct wal__write_map {
    pthread_mutex_t mutex; /* the map, and populating it */
    uint64_t id;           /* of the file; 0: nothing is mapped */
    uint8_t *at;
    uint64_t size;
    uint32_t losses;               /* of pages, when the file was mapped */
    uint64_t kept;                 /* pages before it are unmapped again */
    _Atomic uint64_t written;      /* end of the last write */
    _Atomic uint64_t populated;    /* end of the populated part */
    _Atomic uint64_t populated_ns; /* when it was populated, coarsely */
};

void wal__write_map_init(struct wal__write_map *map);
void wal__write_map_deinit(struct wal__write_map *map, const struct wal__io *io);

/* A file that is appended to: allocated up to `size`, with an id that no other file has. */
struct wal__write_target {
    struct wal__file *file;
    uint64_t id;
    uint64_t size;
};

/* Writes the pieces to the file at the offset. False: not all of them were written, and the caller
 * writes all by pwritev. */
bool wal__write_map_write(struct wal__write_map *map, const struct wal__io *io,
                          const struct wal__write_target *target, const struct iovec *iov,
                          int count, uint64_t offset);

/* Populates the pages that are written next, unless there are enough, or another thread does: so
 * that the writer need not. */
void wal__write_map_prepare(struct wal__write_map *map, const struct wal__io *io);

/* Unmaps the file unless it has this id; 0: in any case. As write. */
void wal__write_map_keep(struct wal__write_map *map, const struct wal__io *io, uint64_t id);

/* Unmaps what was written, before a sync. Any thread. */
void wal__write_map_evict(struct wal__write_map *map, const struct wal__io *io);

#endif
