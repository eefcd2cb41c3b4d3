/*
 * guarded_map.h - maps of files whose pages may vanish: another program cuts
 * the file, or a sector cannot be read. The process then reads zeros there,
 * instead of being ended by SIGBUS (SPEC.md 4.6). Any thread.
 */
#ifndef AGENTWAL_ENGINE_BASE_GUARDED_MAP_H
#define AGENTWAL_ENGINE_BASE_GUARDED_MAP_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * As mmap(2), at an address that the system chooses; NULL with errno on
 * failure. A page that vanishes becomes a private one of zeros for as long as
 * the map exists, which nothing but the count of losses reports: the reader
 * checks the bytes, a writer compares the count before and after.
 *
 * The first call installs a handler of SIGBUS for the process. It passes on
 * signals of other maps to the handler that was there before.
 */
void *wal__guarded_map(int fd, off_t offset, size_t size, int protection,
                       int flags);

/* Unmaps what wal__guarded_map returned, whole. */
void wal__guarded_unmap(void *at, size_t size);

/* Returns how many pages of this process have vanished. */
uint32_t wal__guarded_map_losses(void);

#endif
